"""A tree as data: its splits, the shares of its parts, and what columns are like in each, with intervals over draws.

The top of a tree can be shown alone: sub-trees below it are parts then, as leaves are, with the distributions of all
their rows. So parts always hold all rows together.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesjpt.circuit.paths import Interval, Labels, TreeNode, tree_nodes
from bayesjpt.circuit.trees import label_parents
from bayesjpt.defaults import TREE_COLUMNS, TREE_DRAWS, TREE_LEAVES
from bayesjpt.errors import QueryError
from bayesjpt.families.label import label_groups
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries.complete import check_count
from bayesjpt.queries.event import rendered_name
from bayesjpt.queries.explain_tree import is_tree
from bayesjpt.queries.marginals import Axis, Masses, axes_of, cell_masses, summaries, summarised
from bayesjpt.queries.paths import condition, conditions
from bayesjpt.queries.resolve import names_of, position_of
from bayesjpt.queries.route import below, node_weights
from bayesjpt.queries.some_draws import enough_draws, some_draws
from bayesjpt.queries.stability import answers_of, distances
from bayesjpt.queries.type_shares import type_shares
from bayesjpt.table.schema import Column, Schema

TREE_CELLS = 60
"""Cells of a column of numbers in them: two pixels each."""


CHOW_LIU = "Chow-Liu tree"
"""Of columns, in the place of a tree of splits."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """One column in one part.

    Parameters
    ----------
    cells, atoms : Masses
        Of the axis' cells without their atoms, and of its atoms.
    allowed : tuple of (float, float), or None
        Between which values conditions leave numbers of a column that they name.
    summary : str
        In words: where most values lie, or the most probable label, and which column it depends on in a tree of labels.
    is_decided : bool
        Whether conditions leave a single label, so that there is nothing to say in words.
    """

    cells: Masses
    atoms: Masses
    allowed: tuple[float, float] | None
    summary: str
    is_decided: bool = False


@dataclass(frozen=True, eq=False)
class ViewNode:
    """A split, or a part where the view ends.

    Parameters
    ----------
    condition : str
        Which rows of its parent it holds; empty at the root.
    conditions : str
        Which rows it holds, as an event; empty at the root.
    weight, lo, hi : float
        Share of all rows, and its credible interval.
    children : tuple of int
        Positions among the view's nodes; none at parts.
    n_leaves : int
        Leaves of the whole tree at or below it.
    marginals : tuple of Marginal
        One for each axis, at parts alone.
    column : str
        Whose condition it is, as it stands there; empty at the root.
    follows : tuple of (str, str)
        In a tree of labels: columns of the table, and the column that each depends on; at leaves alone.
    """

    condition: str
    conditions: str
    weight: float
    lo: float
    hi: float
    children: tuple[int, ...]
    n_leaves: int
    marginals: tuple[Marginal, ...]
    column: str = ""
    follows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class TreeData:
    """A tree, or its top.

    Parameters
    ----------
    nodes : tuple of ViewNode
        The root first, parents before children.
    axes : tuple of Axis
        Columns that are shown.
    whole : tuple of float64 (n_cell,)
        Posterior means of each axis' cells, for all rows.
    hidden : tuple of str
        Columns that are not shown.
    n_draw, n_draw_shown : int
        Draws that shares and that marginals are computed from.
    structure, n_structure : int
        Which of how many structures it is.
    kind : str
        What it is called: a joint probability tree, a cutset network where trees of labels stand in its leaves, or a
        Chow-Liu tree where no rows are split from it.
    """

    nodes: tuple[ViewNode, ...]
    axes: tuple[Axis, ...]
    whole: tuple[np.ndarray, ...]
    hidden: tuple[str, ...]
    n_draw: int
    n_draw_shown: int
    structure: int = 0
    n_structure: int = 1
    kind: str = "Joint probability tree"

    def heading(self) -> str:
        """Return what it is, and of how many leaves where rows are split."""
        n_leaves = self.nodes[0].n_leaves
        if self.kind == CHOW_LIU:
            return self.kind
        return f"{self.kind} of {n_leaves} {'leaf' if n_leaves == 1 else 'leaves'}"

    def whose(self) -> str:
        """Return of several structures which one is shown; nothing of a single one."""
        if self.n_structure == 1:
            return ""
        return f"structure {self.structure} of {self.n_structure}, whose answers are nearest to their mean"

    def parts(self) -> list[int]:
        """Return where the view ends, from the first child to the last."""
        return ends_of(self.nodes)


def ends_of(nodes: Sequence[Any]) -> list[int]:
    """Return where nodes without ``children`` are, from the first child of the root, which comes first, to the last."""
    found, pending = [], [0]
    while pending:
        position = pending.pop()
        pending += reversed(nodes[position].children)
        if not nodes[position].children:
            found.append(position)
    return found


def tree_data(
    post: Posterior,
    columns: str | Sequence[str] | None = None,
    *,
    max_leaves: int = TREE_LEAVES,
    max_columns: int = TREE_COLUMNS,
    max_draws: int | None = TREE_DRAWS,
) -> TreeData:
    """Return what `bayesjpt.report.tree.tree` shows; parameters and errors are its own."""
    check_count(max_leaves, "max_leaves")
    check_count(max_columns, "max_columns")
    structure, n_structure = _nearest_tree(post), len(post.by_structure())
    post = enough_draws(post, structure)
    nodes = tree_nodes(post.circuit)
    weight = node_weights(post, nodes)
    children = _opened(nodes, weight.mean(axis=0), max_leaves)
    place = {position: k for k, position in enumerate(children)}
    share, ends = weight.mean(axis=0), summarised(weight)
    n_leaves = _n_leaves(nodes)
    few = some_draws(post, max_draws)[1]
    positions = _columns(post.schema, nodes, columns, max_columns)
    axes = axes_of(few, positions, TREE_CELLS)
    texts = _conditions_of_edges(nodes, children, post.schema)
    whole = [np.zeros(axis.edges.size - 1 if axis.edges.size else len(axis.labels)) for axis in axes]
    few_weight = node_weights(few, nodes)
    made, names = [], post.schema.names
    for position, kept in children.items():
        node = nodes[position]
        marginals: tuple[Marginal, ...] = ()
        # a sub-tree that is shown as one part has trees of labels of its own further down
        follows = label_parents(few.circuit, node.node) if not node.children else {}
        if not kept:
            marginals, masses = _marginals(few, node, axes, follows)
            for total, cells in zip(whole, masses, strict=True):
                total += (few_weight[:, [position]] * cells).mean(axis=0)
        made.append(
            ViewNode(
                condition=texts[position][1] if position else "",
                column=texts[position][0] if position else "",
                conditions=conditions(node.region, post.schema),
                weight=float(share[position]),
                lo=float(ends.lo[position]),
                hi=float(ends.hi[position]),
                children=tuple(place[child] for child in kept),
                n_leaves=n_leaves[position],
                marginals=marginals,
                follows=tuple((names[child], names[parent]) for child, parent in sorted(follows.items())),
            )
        )
    visible = {post.schema.names[position] for position in positions}
    hidden = tuple(name for name in post.schema.names if name not in visible)
    n_draws = weight.shape[0], few_weight.shape[0]
    has_trees = any(node.follows for node in made) or any(
        label_parents(post.circuit, node.node) for node in nodes if not node.children
    )
    # beside columns of numbers leaves may hold no tree of labels: the circuit is that of a joint probability tree
    is_network = has_trees or str(post.settings.get("learner", "")).removeprefix("learn_") == "cutset"
    kind = CHOW_LIU if has_trees and len(nodes) == 1 else "Cutset network" if is_network else TreeData.kind
    return TreeData(tuple(made), tuple(axes), tuple(whole), hidden, *n_draws, structure, n_structure, kind)


def _nearest_tree(post: Posterior) -> int:
    """Return the structure that is shown: of those that begin with a tree, the one whose answers are nearest to all."""
    structures = post.by_structure()
    trees = [number for number, structure in enumerate(structures) if is_tree(structure)]
    if not trees:
        python, command = _remedies(str(post.settings.get("learner", "")).removeprefix("learn_"))
        raise QueryError(
            "a fit whose rows are not told apart by splits",
            "a joint probability tree or a cutset network",
            python,
            command=command,
        )
    if len(structures) == 1:
        return 0
    assert isinstance(post, StackedPosterior)
    shares = type_shares(post).draws["type_share"].to_numpy()
    distance = distances(post.split(answers_of(post, shares).values), post.weights)
    return min(trees, key=distance.__getitem__)


def _remedies(learner: str) -> tuple[str, str]:
    """Return what helps where a learner found no split, or makes none: in Python, and at the command line."""
    if learner == "cutset":
        words = (
            "Learn it again with a lower {0}min{1}rows or {0}min{1}columns: parts of fewer are not split, nor "
            "rows that are alike."
        )
        return words.format("", "_"), words.format("--", "-")
    if learner == "jpt":
        words = "Learn it again with a lower {0}min{1}rows; where columns do not depend on each other none is split."
        return words.format("", "_"), words.format("--", "-")
    return (
        'Fit one: bj.fit(table, learner="jpt"), or learner="cutset".',
        "Fit one: bayesjpt fit TABLE --learner jpt, or --learner cutset.",
    )


def _opened(nodes: Sequence[TreeNode], share: np.ndarray, max_leaves: int) -> dict[int, tuple[int, ...]]:
    """Return the nodes that are shown, each with its children that are: the largest are opened first."""
    children: dict[int, tuple[int, ...]] = {0: ()}
    closed = [(-share[0], 0)]
    n_part = 1
    while closed:
        _, position = heapq.heappop(closed)
        found = _split(nodes, position).children
        if not found or n_part + len(found) - 1 > max_leaves:
            continue
        n_part += len(found) - 1
        children[position] = found
        for child in found:
            children[child] = ()
            heapq.heappush(closed, (-share[child], child))
    return dict(sorted(children.items()))


def _split(nodes: Sequence[TreeNode], position: int) -> TreeNode:
    """Return the first node at or below one that has several children: with one side left, a split tells nothing."""
    node = nodes[position]
    while len(node.children) == 1:
        node = nodes[node.children[0]]
    return node


def _n_leaves(nodes: Sequence[TreeNode]) -> list[int]:
    found = [0] * len(nodes)
    for position in range(len(nodes) - 1, -1, -1):
        found[position] = sum(found[child] for child in nodes[position].children) or 1
    return found


def _conditions_of_edges(
    nodes: Sequence[TreeNode], children: dict[int, tuple[int, ...]], schema: Schema
) -> dict[int, tuple[str, str]]:
    """Return by node the column that it is about, and what it asks of the rows of its parent."""
    texts = {}
    for position, kept in children.items():
        column = _split(nodes, position).column
        before = nodes[position].region.get(column)
        for child in kept:
            added = _added(nodes[child].region[column], before)
            words = condition(schema.columns[column], _true_or_false(schema.columns[column], added))
            texts[child] = rendered_name(schema.columns[column].name), words
    return texts


def _true_or_false(column: Column, part: Interval | Labels) -> Interval | Labels:
    """Return what a part is in words: of what is true or false the one label, though "other" would go with it."""
    if isinstance(part, Interval) or not (column.dtype == "boolean" or column.is_yes_no):
        return part
    return tuple(code for code in part if code < len(column.labels)) or part


def _added(part: Interval | Labels, before: Interval | Labels | None) -> Interval | Labels:
    """Return what an interval asks that was not asked before; labels as they are."""
    if not isinstance(part, Interval) or not isinstance(before, Interval):
        return part
    return Interval(
        part.lo if part.lo > before.lo else -math.inf,
        part.hi if part.hi < before.hi else math.inf,
    )


def _marginals(
    few: Posterior, node: TreeNode, axes: Sequence[Axis], follows: dict[int, int]
) -> tuple[tuple[Marginal, ...], list[np.ndarray]]:
    """Return what each axis' column is like in a node, and the cells' probabilities, (n_draw, n_cell) each."""
    part = below(few, node.node, [axis.position for axis in axes], {})
    assert part is not None
    masses = cell_masses(part, axes)
    marginals = []
    for axis, (cells, atoms), summary in zip(axes, masses, summaries(part, axes, masses), strict=True):
        if axis.position in follows:
            above = follows[axis.position]
            is_shown = any(other.position == above for other in axes)
            summary = f"{summary}, follows {few.schema.names[above]}{'' if is_shown else ' (not shown)'}"
        held = node.region.get(axis.position)
        allowed = (held.lo, held.hi) if isinstance(held, Interval) and not axis.labels else None
        is_decided = held is not None and bool(axis.labels) and _is_group(few.schema.columns[axis.position], held)
        marginals.append(Marginal(summarised(cells), summarised(atoms), allowed, summary, is_decided))
    return tuple(marginals), [cells for cells, _ in masses]


def _is_group(column: Column, held: Interval | Labels) -> bool:
    """Return whether what a path leaves of a column is one label, "other" going with it or not."""
    return not isinstance(held, Interval) and tuple(held) in label_groups(column)


def _columns(
    schema: Schema, nodes: Sequence[TreeNode], columns: str | Sequence[str] | None, max_columns: int
) -> list[int]:
    """Return the positions of the columns that are shown: of all, those that are split come first."""
    if columns is not None:
        names = names_of(columns)
        return list(dict.fromkeys(position_of(name, schema) for name in names))
    split = list(dict.fromkeys(node.column for node in nodes if node.column >= 0))
    others = [position for position in range(len(schema)) if position not in split]
    return sorted([*split, *others][:max_columns])
