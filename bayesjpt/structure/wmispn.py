"""Sum-product networks over intervals: LearnSPN on binned columns, with piecewise polynomials at the leaves.

The paper abstracts numbers into bins, learns on codes, and gives each leaf a piecewise polynomial. It codes bins
one-hot and lets the learner separate the bits of a column; here a column stays whole
(docs/decisions/leaves_and_splits.md).

References: Bueff, Speichert and Belle (2018), Tractable querying and learning in hybrid domains via sum-product
networks, KR workshop; Gens and Domingos (2013), Learning the structure of sum-product networks, ICML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import Dictionary, Node, build_circuit
from bayesjpt.families import registry, spline_choice
from bayesjpt.families.record import Family
from bayesjpt.families.spline_basis import MAX_ORDER
from bayesjpt.families.spline_choice import LEAF_RULE, RULES, SPLINE_MAX_BINS, Rule
from bayesjpt.families.spline_layout import N_BIN
from bayesjpt.kernels.naive_bayes import assign_rows
from bayesjpt.structure import base
from bayesjpt.structure.base import Columns, Progress, Rows, Task
from bayesjpt.structure.independence import p_values
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

WMISPN_P_VALUE = 0.001
"""Probability of the G statistic under independence below which two columns depend on each other."""

WMISPN_PENALTY = 0.05
"""Of a further cluster of rows, nats a column. Of 0.6, 0.2, 0.05 and 0.01 on the validation rows of six hybrid tables,
the best in all: at 0.6 the 39 columns of one of them open no second cluster, which costs 7 nats a row."""

WMISPN_SMOOTHING = 0.1
"""Pseudo-rows of each code of a column in a cluster."""

WMISPN_MAX_CLUSTERS = 16
"""Clusters of one division at most; more come from dividing these."""

WMISPN_STARTS = 4
"""Orders of the rows that are tried."""

WMISPN_PASSES = 8
"""Times that each row is asked for its cluster."""

WMISPN_DECADES = 1e4
"""How many times the median the largest number is from which a log-normal stands beside splines: no bin of theirs is as
narrow as most values then lie apart, and what is between two of those would have next to no mass."""

WMISPN_MAX_BINS = 100
"""Bins of a column or leaf that may be asked for."""


def learn_wmispn(
    table: Table | Dataset,
    rng: int | np.random.Generator | None = None,
    *,
    bins: str = "width",
    n_bins: int | None = None,
    order: int | None = None,
    p_value: float = WMISPN_P_VALUE,
    min_rows: float | None = None,
    penalty: float = WMISPN_PENALTY,
    dictionary: Dictionary | None = None,
    progress: Progress | None = None,
) -> Circuit:
    """Return the circuit of a sum-product network learned from binned columns, piecewise polynomials at its leaves.

    Parameters
    ----------
    table : Table or Dataset
        Of a Dataset as many rows are taken as `bayesjpt.defaults.LEARN_ROWS`, chosen by a hash of their numbers.
        Missing cells are allowed: no test and no cluster is judged by them.
    rng : int, numpy.random.Generator or None
        The same state gives the same circuit.
    bins : str, optional
        Where a column of numbers is divided: ``width``, bins of equal width; ``frequency``, of equally many values;
        ``mean``, the fullest bin at the mean of its values, again and again. Leaves divide their own values so, too.
    n_bins : int, optional
        Bins of every column and leaf. Unless given, the Bayesian information criterion chooses 1 to 10 of them for
        each. While the structure is learned a column has two at least.
    order : int, optional
        Order of the polynomials, 1 (constants) to 6. Unless given, the criterion chooses it. A leaf with fewer distinct
        values than that needs has a lower one.
    p_value : float, optional
        Columns between which the G-test finds less than that stay together, in [0, 1]. At 0 columns are always
        separated, at 1 those between which G is not 0 stay together.
    min_rows : int or float, optional
        A sub-population of at most so many rows is not divided further: a number of rows, or a share of the table's.
        25 rows or 5 % unless given, whichever is more.
    penalty : float, optional
        What a further cluster of rows costs, in nats a column, at least 0.
    dictionary : callable, optional
        ``(column) -> families`` at the leaves; unless given, ``spline`` for numbers, beside ``categorical``,
        ``ordinal`` or ``atom`` where the column has levels or atoms, ``lognormal`` where its largest number is
        10,000 times its median, and what labels always have; or what the schema names.
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
    For each block of rows and columns, beginning with the whole table: a single column, or a block of at most
    `min_rows` rows, is leaves; columns that no chain of dependent pairs connects are separated (a product); otherwise
    rows are divided by hard incremental EM of a naive Bayes over the codes (a sum). Rows that fall into one cluster are
    leaves. Weights of sums are the shares of rows, where chains begin.

    Cost: O(n_row n_column^2) a level for the tests, O(n_row n_column n_cluster) for the clusters.

    References
    ----------
    Bueff, Speichert and Belle (2018), algorithms 1 and 2; Gens and Domingos (2013), section 3.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesjpt.table.table import as_table
    >>> rng = np.random.default_rng(0)
    >>> side = np.arange(400) < 150
    >>> x = rng.normal(np.where(side, -4.0, 3.0))
    >>> table = as_table(pd.DataFrame({"x": x, "y": x + rng.normal(size=400), "side": np.where(side, "a", "b")}))
    >>> circuit = learn_wmispn(table, rng)
    >>> sorted({registry.FAMILIES[k].name for k in circuit.leaf_family})
    ['bernoulli', 'spline']
    """
    table = in_memory(table)
    rng = base.check_input(table, rng)
    settings = Settings(
        rule=rule_of(bins, n_bins, order),
        p_value=base.check_between("p_value", p_value, 0.0, 1.0),
        min_rows=base.least_rows(min_rows, table.n_row),
        penalty=base.check_between("penalty", penalty, 0.0, np.inf),
    )
    families = dictionary or default_dictionary
    node = wmispn_tree(table, rng, settings, progress)
    return build_circuit(node, table, lambda column: [_with_rule(family, settings.rule) for family in families(column)])


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `LearnerError` for given options of `learn_wmispn` that make no sense, before kernels are compiled."""
    rule_of(options.get("bins", "width"), options.get("n_bins"), options.get("order"))
    base.check_between("p_value", options.get("p_value", WMISPN_P_VALUE), 0.0, 1.0)


_OF_LEVELS = ("categorical", "ordinal", "atom")


@dataclass(frozen=True)
class Settings:
    """Checked settings of `learn_wmispn`; `min_rows` is a number of rows."""

    rule: Rule
    p_value: float
    min_rows: int
    penalty: float


def rule_of(bins: str, n_bins: int | None, order: int | None) -> Rule:
    """Return how leaves and columns are divided, or raise `LearnerError` for what makes no sense."""
    base.check_choice("bins", bins, RULES)
    if n_bins is not None:
        base.check_count("n_bins", n_bins, WMISPN_MAX_BINS)
    if order is not None:
        base.check_count("order", order, MAX_ORDER)
    return Rule(bins, n_bins or 0, order or 0)


def default_dictionary(column: Column) -> list[Family]:
    """Return splines for numbers, beside the likelihoods of levels and atoms where there are; or what the schema names.

    Whole numbers of which people favour some have no smooth distribution: bins would be the worse description.
    """
    named = registry.dictionary(column)
    if column.families or column.base == "category" or column.minimum == column.maximum:
        return list(named)
    kept = (*_OF_LEVELS, "lognormal") if column.maximum > WMISPN_DECADES * column.location > 0.0 else _OF_LEVELS
    return [registry.family("spline"), *(family for family in named if family.name in kept)]


_BINS_OF_MEMBERS = ("width", "frequency", "frequency")
"""Of `spline_dictionary`. On held-out training rows of heart and australian, five splits, a third member by mean splits
was .03 nats a row worse than a second of equal frequency, and on heart two members .05 worse than three."""


def spline_dictionary(column: Column) -> list[Family]:
    """Return the dictionary of `learn_wmispn` with three splines in place of one.

    Bins of one are of equal width, of two of equal frequency.

    For learners whose leaves are dictionaries: ``bj.fit(table, dictionary=bj.spline_dictionary)``. A member that no row
    uses keeps a weight of alpha; so one spline beside levels or atoms makes a value that training never showed as much
    less probable as there are fewer members than the default dictionary has.

    Parameters
    ----------
    column : Column
        Of the table's schema.

    Returns
    -------
    list of Family

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesjpt.table.table import as_table
    >>> table = as_table(pd.DataFrame({"x": np.random.default_rng(0).normal(size=200), "side": ["a", "b"] * 100}))
    >>> [[family.name for family in spline_dictionary(column)] for column in table.schema]
    [['spline', 'spline', 'spline'], ['bernoulli']]
    """
    members: list[Family] = []
    for family in default_dictionary(column):
        if family.name == "spline":
            members += [_with_rule(family, LEAF_RULE._replace(bins=bins)) for bins in _BINS_OF_MEMBERS]
        else:
            members.append(family)
    return members


def _with_rule(family: Family, rule: Rule) -> Family:
    """Return a family whose leaves divide their values as asked."""
    if family.name != "spline":
        return family
    return replace(family, leaf_constants=partial(spline_choice.leaf_constants, rule=rule))


def wmispn_tree(table: Table, rng: np.random.Generator, settings: Settings, progress: Progress | None = None) -> Node:
    """Return the tree of sums, products and column leaves from which `learn_wmispn` builds its circuit."""
    learner = _Learner(binned(table, settings.rule), rng, settings)
    return base.grow(base.whole(table), learner.decide, progress)


def binned(table: Table, rule: Rule) -> np.ndarray:
    """Return the code of each cell, int32 (n_row, n_column); -1 where it is missing.

    Labels, and numbers with no more different values than bins, have a code for each value. Atoms, values that repeat
    far beyond chance, have one of their own each.
    """
    out = np.full((table.n_row, table.n_column), -1, np.int32)
    for position, column in enumerate(table.schema.columns):
        seen = table.observed[position]
        values = table.values[position, seen]
        if values.size:
            out[seen, position] = _codes(values, column, rule)
    return out


def _codes(values: np.ndarray, column: Column, rule: Rule) -> np.ndarray:
    if column.base == "category":
        return values.astype(np.int32)
    atom = np.isin(values, column.atoms)
    rest = values[~atom]
    codes = np.empty(values.size, np.int32)
    codes[atom] = np.searchsorted(column.atoms, values[atom])
    values_of_rest, code = np.unique(rest, return_inverse=True)
    if values_of_rest.size > max(rule.n_bins or SPLINE_MAX_BINS, 2):
        # the column's own choice, in two bins at least: one would tell nothing
        constants = spline_choice.leaf_constants(column, rest, -np.inf, np.inf, rule=rule)
        if constants[N_BIN] < 2.0:
            constants = spline_choice.leaf_constants(column, rest, -np.inf, np.inf, rule=rule._replace(n_bins=2))
        breaks = spline_choice.breaks_in_units_of(column, constants)
        code = np.searchsorted(breaks[1:-1], rest, side="right")
    codes[~atom] = len(column.atoms) + code
    return codes


@dataclass(frozen=True)
class _Learner:
    codes: np.ndarray
    rng: np.random.Generator
    settings: Settings

    def decide(self, task: Task) -> Columns | Rows | None:
        if task.scope.size == 1 or task.rows.size <= self.settings.min_rows:
            return None
        codes = self.codes[np.ix_(task.rows, task.scope)]
        if not task.columns_tested:
            together = p_values(codes) < self.settings.p_value
            n_part, part_of = connected_components(together, directed=False)
            if n_part > 1:
                parts = [task.scope[part_of == part] for part in range(n_part)]
                return Columns(tuple(Task(task.rows, part, columns_tested=True) for part in parts))
        cluster = clusters(codes, self.settings.penalty, self.rng)
        found = [task.rows[cluster == number] for number in np.unique(cluster)]
        if len(found) == 1:
            return None
        return Rows(tuple(Task(rows, task.scope) for rows in found))


def clusters(codes: np.ndarray, penalty: float, rng: np.random.Generator) -> np.ndarray:
    """Return the cluster of each row, int64 (n_row,): the most probable of a few runs in different orders.

    Parameters
    ----------
    codes : int32 (n_row, n_column)
        -1 where a cell is missing.
    penalty : float
        Of a further cluster, in nats a column.
    rng : numpy.random.Generator

    Examples
    --------
    >>> codes = np.repeat(np.array([[0, 0, 0], [1, 1, 1]], np.int32), 50, axis=0)
    >>> np.unique(clusters(codes, 1.0, np.random.default_rng(0)), return_counts=True)[1].tolist()
    [50, 50]
    """
    n_row, n_column = codes.shape
    dense = np.empty((n_row, n_column), np.int32)
    ptr = np.zeros(n_column + 1, np.int32)
    for column in range(n_column):
        found, index = np.unique(codes[:, column], return_inverse=True)
        # -1 sorts first: without it codes begin at 0
        missing = int(found[0] < 0)
        dense[:, column] = index - missing
        ptr[column + 1] = ptr[column] + max(found.size - missing, 1)
    settings = (WMISPN_SMOOTHING, penalty * n_column, WMISPN_MAX_CLUSTERS)
    best, highest = np.zeros(n_row, np.int64), -np.inf
    for _ in range(WMISPN_STARTS):
        order = np.stack([rng.permutation(n_row) for _ in range(WMISPN_PASSES)])
        cluster = np.full(n_row, -1, np.int64)
        value = assign_rows(dense, ptr, order, settings, cluster)
        if value > highest:
            best, highest = cluster, value
    return best
