"""Joint probability trees: greedy binary splits that make all columns less impure at once.

Reference: Nyga, Picklum, Schierenbeck and Beetz, Joint probability trees, sections 2.2 and 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import Dictionary, Node, Sum, build_circuit
from bayesjpt.circuit.paths import Region, halves
from bayesjpt.errors import LearnerError
from bayesjpt.families import quantile, registry
from bayesjpt.families.record import Family
from bayesjpt.structure import base
from bayesjpt.structure.base import Progress
from bayesjpt.structure.grow import Leaf, Settings, Split, Tree
from bayesjpt.structure.prune import grow_and_prune
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.table import Table

JPT_MIN_ROWS = 0.05
"""Least share of the table's rows in a leaf; in the middle of the paper's grid (Nyga et al., table 3)."""

JPT_MIN_IMPROVEMENT = 1e-6
"""Mean relative reduction of impurity below which a node becomes a leaf: what rounding errors stay below."""


IMPURITIES = ("entropy", "gini")
ASSIGNMENTS = ("hard", "soft")


def learn_jpt(
    table: Table | Dataset,
    rng: int | np.random.Generator | None = None,
    *,
    targets: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    min_rows: float = JPT_MIN_ROWS,
    max_leaves: int | None = None,
    max_depth: int | None = None,
    min_improvement: float = JPT_MIN_IMPROVEMENT,
    symbolic_impurity: str = "entropy",
    validation: float = 0.0,
    assignment: str = "hard",
    epsilon: float = defaults.QUANTILE_EPSILON,
    dictionary: Dictionary | None = None,
    progress: Progress | None = None,
) -> Circuit:
    """Return the circuit of a joint probability tree.

    Parameters
    ----------
    table : Table or Dataset
        Of a Dataset as many rows are taken as `bayesjpt.defaults.LEARN_ROWS`, chosen by a hash of their numbers.
        Missing cells are allowed: see Notes.
    rng : int, numpy.random.Generator or None
        Draws the rows held out for `validation`; without, the tree is a function of the table.
    targets, features : sequence of str, optional
        Columns that splits are judged by, and columns that are split; all of them unless given. With both, this is
        discriminative learning, and with a single target CART.
    min_rows : int or float, optional
        Least rows in a leaf: a number, or a share of the table's.
    max_leaves, max_depth : int, optional
        The tree grows where the improvement, weighted by rows, is largest, until it has so many leaves.
    min_improvement : float, optional
        Mean relative reduction of impurity over the targets, in [0, 1], below which a node is not split.
    symbolic_impurity : str, optional
        ``entropy`` or ``gini``, of columns of labels; that of numbers is the squared deviation from their mean.
    validation : float, optional
        Share of rows, in [0, 1), that are held out while the tree grows. Afterwards, subtrees that do not improve these
        rows are cut, and the leaves are filled with all rows.
    assignment : str, optional
        ``hard``: the tree decides. A row is in the leaf whose conditions it meets, and distributions in the leaves end
        where conditions say. ``soft``: the tree is where chains begin; rows may change their leaf, and distributions
        have no such ends.
    epsilon : float, optional
        CDF-LEARN's, of the histograms ``quantile`` at the leaves: mean squared error of a distribution function, in
        squared shares of the leaf's rows, in [0, 1], above which a segment is split in two. Smaller ones make more
        pieces, down to those that chance alone explains.
    dictionary : callable, optional
        ``(column) -> families`` at the leaves; by default every family that suits the column. The paper's leaves are
        those of ``families=["quantile"]`` in `bayesjpt.fit`.
    progress : callable, optional
        ``progress(n_done, n_total)``: cells that belong to a leaf already, and all cells.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, a column is unknown, `rng` is not a Generator, or the table is empty.
    CircuitError
        Where `dictionary` offers a column no family.

    Notes
    -----
    The score of a split is the mean, over all targets but the column that is split, of the share by which it reduces
    the target's impurity. That is what the paper's section 2.2 describes; its equations (4) and (5) as printed give an
    impurity instead of its reduction. Numbers are split at a threshold; labels by one against the rest, or by the
    beginning of an order by a target's mean.

    A missing cell counts for no impurity. A row whose split cell is missing descends by the share of the others, such
    rows in turn. Distinct numbers have a code of 16 bits each; beyond 65,535 of them codes stand for equally many rows,
    and the two at the best boundary are looked through exactly.

    Cost: O(n_row n_column (n_column + log n_row)) a level of the tree; two copies of the table in 16 and 32 bits.

    References
    ----------
    Nyga et al., Joint probability trees; Breiman et al. (1984), Classification and regression trees.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesjpt.circuit.paths import tree_nodes
    >>> from bayesjpt.table.table import as_table
    >>> x = np.linspace(-3.0, 3.0, 200)
    >>> table = as_table(pd.DataFrame({"x": x, "side": np.where(x < 1.0, "left", "right")}))
    >>> circuit = learn_jpt(table, np.random.default_rng(0), features=["side"])
    >>> [node.region for node in tree_nodes(circuit)][1:]
    [{1: (0,)}, {1: (1, 2)}]
    """
    table = in_memory(table)
    rng = base.check_input(table, rng)
    is_hard = base.check_choice("assignment", assignment, ASSIGNMENTS) == "hard"
    settings = Settings(
        targets=_columns(table, "targets", targets),
        features=_columns(table, "features", features),
        min_rows=base.rows_of("min_rows", min_rows, table.n_row),
        max_leaves=table.n_row if max_leaves is None else base.check_count("max_leaves", max_leaves),
        max_depth=table.n_row if max_depth is None else base.check_count("max_depth", max_depth),
        min_improvement=base.check_between("min_improvement", min_improvement, 0.0, 1.0),
        gini=base.check_choice("symbolic_impurity", symbolic_impurity, IMPURITIES) == "gini",
    )
    epsilon = base.check_between("epsilon", epsilon, 0.0, 1.0)
    tree = grow_and_prune(table, settings, base.check_share("validation", validation), rng, progress)
    families = dictionary or registry.dictionary
    node = _hard_node(tree, table) if is_hard else _soft_node(tree, table)
    return build_circuit(node, table, lambda column: [_with_epsilon(family, epsilon) for family in families(column)])


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `LearnerError` for given options of `learn_jpt` that make no sense, before kernels are compiled."""
    if "epsilon" in options:
        base.check_between("epsilon", options["epsilon"], 0.0, 1.0)


def _with_epsilon(family: Family, epsilon: float) -> Family:
    """Return a family whose leaves learn their histograms up to an error."""
    if family.name != "quantile":
        return family
    return replace(family, leaf_constants=partial(quantile.leaf_constants, epsilon=epsilon))


def _leaf_node(leaf: Leaf, table: Table) -> Node:
    return base.independent(leaf.rows.astype(np.intp), np.arange(table.n_column))


def _soft_node(tree: Tree, table: Table) -> Node:
    leaves = tree.leaves()
    nodes = [_leaf_node(leaf, table) for leaf in leaves]
    return nodes[0] if len(nodes) == 1 else base.sum_of(nodes, [leaf.rows.size for leaf in leaves])


def _hard_node(tree: Tree, table: Table) -> Node:
    """Return the tree's splits as hard sums; a split that leaves a single number to one side is a leaf instead."""
    region: dict[int, Region] = {0: {}}
    for position, split in enumerate(tree.nodes):  # parents before children
        if isinstance(split, Split) and position in region:
            parts = halves(region[position], split.condition, table.schema.columns[split.column])
            if parts is not None:
                region[split.left], region[split.right] = parts
    nodes: dict[int, Node] = {}
    # a dictionary keeps its order: children of a node come first when it is reversed
    for position in reversed(region):
        split = tree.nodes[position]
        if isinstance(split, Split) and split.left in region:
            children = split.left, split.right
            counts = tuple(tree.n_rows(child) for child in children)
            nodes[position] = Sum(tuple(nodes[child] for child in children), counts, split.condition)
        else:
            nodes[position] = _leaf_node(Leaf(tree.rows(position)), table)
    return nodes[0]


def _columns(table: Table, name: str, chosen: Sequence[str] | None) -> tuple[int, ...]:
    names = table.schema.names
    if chosen is None:
        return tuple(range(len(names)))
    chosen = [chosen] if isinstance(chosen, str) or not isinstance(chosen, Iterable) else list(chosen)
    unknown = [column for column in chosen if column not in names]
    if unknown or not chosen or len(set(chosen)) < len(chosen):
        raise LearnerError(
            f"{name} {', '.join(map(repr, unknown or chosen)) or 'without a column'}",
            f"columns among {', '.join(names)}, each once",
        )
    return tuple(sorted(names.index(column) for column in chosen))
