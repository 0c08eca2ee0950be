"""Conditions of a tree: which values can reach each node. Read from the cells of the leaves, stored nowhere else.

      x < 3 ?                       region {}
      ├─ yes: leaf                  region {x: (-inf, 3)}
      └─ no: x < 7 ?                region {x: [3, inf)}
             ├─ yes: leaf           region {x: [3, 7)}
             └─ no: leaf            region {x: [7, inf)}

A region is what is left of all conditions on the way, simplified: one interval, or one set of labels, a column. Every
leaf below the tree is truncated to it, so children of a hard sum are disjoint in the column that it splits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.families import categorical, registry
from bayesjpt.families.record import ColumnFacts

LABELS_FAMILY = registry.number("categorical")


class Interval(NamedTuple):
    """A closed interval in the user's units; open ends are neighbouring floats or integers."""

    lo: float
    hi: float


Labels = tuple[int, ...]
"""Codes of labels, ascending."""

Region = Mapping[int, Interval | Labels]
"""What each constrained column may be."""


class Condition(NamedTuple):
    """A split: a number below the threshold meets it, or a label among `labels` where the column has labels."""

    column: int
    threshold: float
    labels: Labels = ()


@dataclass(frozen=True)
class TreeNode:
    """A split or a leaf of a tree.

    Parameters
    ----------
    node : int
        In the circuit.
    region : Region
    column : int
        That is split; -1 at a leaf.
    children : tuple of int
        Positions among the tree's nodes, in the order of the circuit's edges; none at a leaf.
    edges : tuple of int
        The circuit's edges to the children.
    """

    node: int
    region: Region
    column: int
    children: tuple[int, ...]
    edges: tuple[int, ...]


def halves(region: Region, condition: Condition, column: ColumnFacts) -> tuple[Region, Region] | None:
    """Return the parts of a region where a condition holds, and where not.

    None where one of them would be empty, or so narrow that it is a single number of a real column, in its own units or
    in those of likelihoods: that has no mass.

    Examples
    --------
    >>> from bayesjpt.table.schema import Column
    >>> count = Column("n", "integer", (0.0, np.inf))
    >>> halves({}, Condition(2, 3.5), count)
    ({2: Interval(lo=-inf, hi=3.0)}, {2: Interval(lo=4.0, hi=inf)})
    """
    k = condition.column
    if column.base == "category":
        here = region.get(k, tuple(range(column.n_label)))
        parts = (
            tuple(label for label in here if label in condition.labels),
            tuple(label for label in here if label not in condition.labels),
        )
        return ({**region, k: parts[0]}, {**region, k: parts[1]}) if all(parts) else None
    lo, hi = region.get(k, (-np.inf, np.inf))
    if column.base == "integer":
        first = math.ceil(condition.threshold)
        last, enough = first - 1, lo <= first - 1 and first <= hi
    else:
        first = condition.threshold
        last = math.nextafter(first, -math.inf)
        enough = _differ(lo, last, column) and _differ(first, hi, column)
    below, above = Interval(float(lo), float(last)), Interval(float(first), float(hi))
    return ({**region, k: below}, {**region, k: above}) if enough else None


def _differ(lo: float, hi: float, column: ColumnFacts) -> bool:
    """Return whether the support between two numbers has a width in the units of likelihoods.

    From 1e-320 to 1e-310 it has none where a scale is 1.
    """
    lo, hi = max(lo, column.support[0]), min(hi, column.support[1])
    return (lo - column.location) / column.scale < (hi - column.location) / column.scale


def regions(circuit: Circuit) -> list[Region]:
    """Return the region of every node: the hull of those below a sum, all together below a product."""
    cells = circuit.leaf_interval()
    found: list[Region] = []
    for node in range(circuit.n_node):
        leaf = int(circuit.leaf_of[node])
        below = [found[child] for child in circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]]
        if leaf >= 0:
            found.append(_of_leaf(circuit, leaf, cells[leaf]))
        elif circuit.kind[node] == arrays.PRODUCT:
            found.append({column: part for region in below for column, part in region.items()})
        else:
            found.append(_hull(below, circuit))
    return found


def separating_column(parts: Sequence[Region]) -> int:
    """Return the first column in which regions are pairwise disjoint, -1 where there is none."""
    shared = set(parts[0]).intersection(*parts[1:])
    for column in sorted(shared):
        if _disjoint([region[column] for region in parts]):
            return column
    return -1


def tree_nodes(circuit: Circuit) -> tuple[TreeNode, ...]:
    """Return splits and leaves of a circuit's tree, the root first and parents before children.

    A circuit that does not begin with a hard sum is a tree of one leaf.
    """
    region = regions(circuit)
    found: list[TreeNode] = []
    pending = [circuit.n_node - 1]
    n_known = 1
    while pending:
        node = pending.pop(0)
        edges = range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        if circuit.kind[node] != arrays.HARD:
            found.append(TreeNode(node, region[node], -1, (), ()))
            continue
        children = circuit.child[edges.start : edges.stop].tolist()
        column = separating_column([region[child] for child in children])
        places = tuple(range(n_known, n_known + len(children)))
        found.append(TreeNode(node, region[node], column, places, tuple(edges)))
        pending += children
        n_known += len(children)
    return tuple(found)


def allowed_labels(circuit: Circuit, leaf: int) -> np.ndarray | None:
    """Return the codes that a leaf may take, ascending, where it is restricted to some labels; else None."""
    if circuit.leaf_family[leaf] != LABELS_FAMILY:
        return None
    allowed = categorical.allowed(circuit.constants_of(leaf))
    return None if allowed.all() else np.flatnonzero(allowed)


def _of_leaf(circuit: Circuit, leaf: int, cell: np.ndarray) -> Region:
    if circuit.leaf_var_ptr[leaf + 1] - circuit.leaf_var_ptr[leaf] != 1:
        return {}
    column = int(circuit.leaf_var[circuit.leaf_var_ptr[leaf]])
    labels = allowed_labels(circuit, leaf)
    if labels is not None:
        return {column: tuple(labels[(labels >= cell[0]) & (labels <= cell[1])].tolist())}
    return {column: Interval(float(cell[0]), float(cell[1]))} if circuit.leaf_cell[leaf] >= 0 else {}


def _hull(below: Sequence[Region], circuit: Circuit) -> Region:
    shared = set(below[0]).intersection(*below[1:])
    hull: dict[int, Interval | Labels] = {}
    for column in shared:
        parts = [region[column] for region in below]
        intervals = [part for part in parts if isinstance(part, Interval)]
        if len(intervals) == len(parts):
            whole = Interval(min(part.lo for part in intervals), max(part.hi for part in intervals))
            if whole != (-np.inf, np.inf):
                hull[column] = whole
        elif not intervals:
            labels = sorted({int(label) for part in parts for label in part})
            if len(labels) < _n_label(circuit, column):
                hull[column] = tuple(labels)
    return hull


def _n_label(circuit: Circuit, column: int) -> int:
    leaves = np.flatnonzero((circuit.leaf_var == column) & (circuit.leaf_family == LABELS_FAMILY))
    return int(circuit.const_len[leaves[0]]) // 2


def _disjoint(parts: Sequence[Interval | Labels]) -> bool:
    intervals = sorted(part for part in parts if isinstance(part, Interval))
    if intervals:
        apart = all(before.hi < after.lo for before, after in itertools.pairwise(intervals))
        return apart and len(intervals) == len(parts)
    return sum(len(part) for part in parts) == len(set().union(*parts))
