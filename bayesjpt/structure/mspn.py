"""Mixed sum-product networks: columns apart by random dependence, rows apart by 2-means, leaves of any family.

References: Gens and Domingos (2013), Learning the structure of sum-product networks, ICML; Molina et al. (2018), Mixed
sum-product networks, AAAI; Vergari et al. (2019), Automatic Bayesian density analysis, AAAI, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import Dictionary, Node, build_circuit
from bayesjpt.families import registry
from bayesjpt.structure import base
from bayesjpt.structure.base import Columns, Progress, Rows, Task
from bayesjpt.structure.cluster import two_means
from bayesjpt.structure.dependence import chance, hold_together, subsample, whiten_all
from bayesjpt.structure.features import Codes, ColumnFeatures, RandomFeatures, column_features, make_codes
from bayesjpt.structure.settle import settled, shapes_are_fixed
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.table import Table

MSPN_THRESHOLD = 0.1
"""Dependence coefficient from which two columns may stay together; ABDA's grid is 0.9, 0.7, 0.5, 0.3, but a label that
depends on many columns at once depends little on each."""


def learn_mspn(
    table: Table | Dataset,
    rng: int | np.random.Generator | None = None,
    *,
    min_rows: float | None = None,
    threshold: float | None = None,
    rows_first: bool = True,
    n_features: int = defaults.RDC_N_FEATURES,
    scale: float = defaults.RDC_SCALE,
    max_rows: int = defaults.RDC_MAX_ROWS,
    dictionary: Dictionary | None = None,
    progress: Progress | None = None,
) -> Circuit:
    """Return the circuit of a mixed sum-product network learned from a table.

    Parameters
    ----------
    table : Table or Dataset
        Of a Dataset as many rows are taken as `bayesjpt.defaults.LEARN_ROWS`, chosen by a hash of their numbers.
        Missing cells are allowed: see Notes.
    rng : int, numpy.random.Generator or None
        The same state gives the same circuit, whatever the number of cores.
    min_rows : int or float, optional
        A sub-population of at most so many rows is not divided further: a number of rows, or a share of the table's.
        25 rows or 5 % unless given, whichever is more. Sub-populations may be smaller than that, since 2-means decides
        on their sizes.
    threshold : float, optional
        Columns whose dependence coefficient reaches it stay together; in [0, 1]. 0 never separates columns. Unless
        given it is 0.1, or what independent columns reach by chance once in a thousand times, whichever is more: 0.35
        for two numbers that 200 rows hold together, 0.11 for 2,000 (`dependence.chance`).
    rows_first : bool, optional
        Whether the root divides rows before any columns are compared, as in ABDA; otherwise columns come first, as in
        Gens and Domingos (2013).
    n_features, scale, max_rows : optional
        Features a column, standard deviation of their random weights, and the number of rows on which coefficients
        and cluster centres are found where there are more.
    dictionary : callable, optional
        ``(column) -> families`` at the leaves; by default every family that suits the column.
    progress : callable, optional
        ``progress(n_done, n_total)``: cells that belong to a leaf already, and all cells.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, `rng` is not a Generator, or the table is empty.
    CircuitError
        Where `dictionary` offers a column no family.

    Notes
    -----
    For each block of rows and columns, beginning with the whole table:

    1. A single column is a leaf; a block of at most `min_rows` rows is a product of leaves.
    2. Columns that are constant in these rows (or without an observed cell) become leaves.
    3. Columns are separated by the connected components of "dependence coefficient >= threshold" (a product).
    4. Otherwise rows are divided by 2-means on the features (a sum). Rows that are all alike end in leaves.

    Columns that hang together are not compared again before their rows are divided. Sums of sums and products of
    products become one node. Small clusters are kept as they are: their leaves have proper priors, and the sampler
    moves rows between children anyway.

    Leaves whose breaks stay where they were placed, splines, cannot follow rows that move. Where all numbers have these
    alone, rows are first moved by the sweeps that a chain discards, under the default dictionary (`settled`).

    A missing cell has the features of its column's mean when rows are divided, and leaves out its row when two columns
    are compared. Nothing is imputed.

    Cost: O(n_row n_column n_features + max_rows (n_column n_features)^2) a level of the tree.

    References
    ----------
    Molina et al. (2018), Mixed sum-product networks, AAAI; Vergari et al. (2019), section 3.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesjpt.table.table import as_table
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> table = as_table(pd.DataFrame({"x": x, "square": x**2, "other": rng.normal(size=500)}))
    >>> circuit = learn_mspn(table, rng, min_rows=250, rows_first=False)
    >>> [int(column) for column in np.unique(circuit.leaf_var)]
    [0, 1, 2]
    """
    table = in_memory(table)
    rng = base.check_input(table, rng)
    settings = Settings(
        min_rows=base.least_rows(min_rows, table.n_row),
        threshold=None if threshold is None else base.check_between("threshold", threshold, 0.0, 1.0),
        rows_first=bool(rows_first),
        features=RandomFeatures(n_features, scale, max_rows),
    )
    root = mspn_tree(table, rng, settings, progress)
    if shapes_are_fixed(table.schema, dictionary or registry.dictionary):
        root = settled(root, table, rng, progress)
    return build_circuit(root, table, dictionary)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `LearnerError` for given options of `learn_mspn` that make no sense, before kernels are compiled."""
    if "threshold" in options:
        base.check_between("threshold", options["threshold"], 0.0, 1.0)


@dataclass(frozen=True)
class Settings:
    """Checked settings of `learn_mspn`; `min_rows` is a number of rows; no threshold: that of the rows at hand."""

    min_rows: int
    threshold: float | None
    rows_first: bool
    features: RandomFeatures


def mspn_tree(table: Table, rng: np.random.Generator, settings: Settings, progress: Progress | None = None) -> Node:
    """Return the tree of sums, products and column leaves from which `learn_mspn` builds its circuit."""
    learner = _Learner(table, make_codes(table), rng, settings)
    root = base.whole(table)
    with base.one_thread():
        return base.grow(Task(root.rows, root.scope, columns_tested=settings.rows_first), learner.decide, progress)


@dataclass(frozen=True)
class _Learner:
    table: Table
    codes: Codes
    rng: np.random.Generator
    settings: Settings

    def decide(self, task: Task) -> Columns | Rows | None:
        if task.scope.size == 1 or task.rows.size <= self.settings.min_rows:
            return None
        constant = self.codes.constant(task.rows, task.scope)
        if constant.all():
            return None
        if constant.any():
            parts = (task.scope[~constant], task.scope[constant])
            return Columns(tuple(Task(task.rows, part, task.columns_tested) for part in parts))
        features = column_features(self.table, task.rows, task.scope, self.settings.features, self.rng, self.codes)
        if not task.columns_tested:
            columns = self._split_columns(task, features)
            if columns is not None:
                return columns
        return self._split_rows(task, features)

    def _split_columns(self, task: Task, features: list[ColumnFeatures]) -> Columns | None:
        chosen = subsample(task.rows.size, self.settings.features.max_rows, self.rng)
        white = whiten_all(features, chosen)
        threshold = self.settings.threshold
        if threshold is None:
            threshold = np.maximum(MSPN_THRESHOLD, chance(white))
        component = hold_together(white, threshold)
        # the first column leads its component: all zeros is a single component
        if not component.any():
            return None
        parts = [task.scope[component == first] for first in np.unique(component)]
        return Columns(tuple(Task(task.rows, part, columns_tested=True) for part in parts))

    def _split_rows(self, task: Task, features: list[ColumnFeatures]) -> Rows | None:
        smaller = two_means(features, self.settings.features.max_rows, self.rng)
        if smaller is None:
            return None
        return Rows(tuple(Task(task.rows[part], task.scope) for part in (~smaller, smaller)))
