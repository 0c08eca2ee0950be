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

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.possible import LABEL_FAMILIES, Interval, Labels, possible
from bayesjpt.families import categorical, registry
from bayesjpt.families.record import ColumnFacts

_NARROWEST = 1e-290
"""Width of a cell in the units of likelihoods that parts of it are told from to ten digits: these end at 1e-300."""

Region = Mapping[int, Interval | Labels]
"""What each constrained column may be."""


class Condition(NamedTuple):
    """A split: a number below the threshold meets it, or a label among `labels` where the column has labels."""

    column: int
    threshold: float
    labels: Labels = ()


class Division(NamedTuple):
    """A split of a column of labels in as many ways as there are groups, which hold all of its codes together."""

    column: int
    groups: tuple[Labels, ...]


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
        codes = region.get(k, tuple(range(column.n_label)))
        parts = (
            tuple(label for label in codes if label in condition.labels),
            tuple(label for label in codes if label not in condition.labels),
        )
        return ({**region, k: parts[0]}, {**region, k: parts[1]}) if all(parts) else None
    lo, hi = region.get(k, (-np.inf, np.inf))
    if column.base == "integer":
        first = math.ceil(condition.threshold)
        last, enough = first - 1, lo <= first - 1 and first <= hi
    else:
        first = condition.threshold
        # cells are closed: the part below the threshold ends at the float before it
        last = math.nextafter(first, -math.inf)
        enough = _differ(lo, last, column) and _differ(first, hi, column)
    below, above = Interval(float(lo), float(last)), Interval(float(first), float(hi))
    return ({**region, k: below}, {**region, k: above}) if enough else None


def divided(region: Region, division: Division, column: ColumnFacts) -> list[Region] | None:
    """Return the part of a region for each group of a division; None where one is empty or a code is in no group.

    Examples
    --------
    >>> from bayesjpt.table.schema import Column
    >>> size = Column("size", "category", (0.0, 3.0), ("S", "M", "L"))
    >>> divided({}, Division(0, ((0,), (1, 3), (2,))), size)
    [{0: (0,)}, {0: (1, 3)}, {0: (2,)}]
    """
    codes = region.get(division.column, tuple(range(column.n_label)))
    parts: list[Labels] = [tuple(code for code in sorted(group) if code in codes) for group in division.groups]
    if not all(parts) or sorted(code for part in parts for code in part) != sorted(codes):
        return None
    return [{**region, division.column: part} for part in parts]


def _differ(lo: float, hi: float, column: ColumnFacts) -> bool:
    """Return whether the support between two numbers has a width in the units of likelihoods.

    From 1e-320 to 1e-310 it has none where a scale is 1: floats that small have few digits, and their differences less.
    """
    lo, hi = max(lo, column.support[0]), min(hi, column.support[1])
    return (hi - column.location) / column.scale - (lo - column.location) / column.scale > _NARROWEST


def regions(circuit: Circuit, nodes: Iterable[int]) -> list[Region]:
    """Return the regions of some nodes: the hull of those below a sum, all together below a product."""
    values = possible(circuit)
    return [values.region(node) for node in nodes]


def tree_nodes(circuit: Circuit) -> tuple[TreeNode, ...]:
    """Return splits and leaves of a circuit's tree, the root first and parents before children.

    A circuit that does not begin with a split is a tree of one leaf.
    """
    values = possible(circuit)
    found: list[TreeNode] = []
    is_tree = splits_of_tree(circuit)
    pending = [circuit.n_node - 1]
    n_known = 1
    while pending:
        # breadth first: places of children are known when their parent is written down
        node = pending.pop(0)
        edges = range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        region = values.region(node)
        if not is_tree[node]:
            found.append(TreeNode(node, region, -1, (), ()))
            continue
        children = circuit.child[edges.start : edges.stop].tolist()
        column = values.separating_column(np.array(children))
        places = tuple(range(n_known, n_known + len(children)))
        found.append(TreeNode(node, region, column, places, tuple(edges)))
        pending += children
        n_known += len(children)
    return tuple(found)


def splits_of_tree(circuit: Circuit) -> np.ndarray:
    """Return bool (n_node,): the hard sums of the tree that a circuit begins with.

    A tree of labels, below it or in its place, is no part of that: a row passes a sum of it in each column.
    """
    tree = np.zeros(circuit.n_node, bool)
    n_parent = np.bincount(circuit.child, minlength=circuit.n_node)
    pending = [circuit.n_node - 1]
    while pending:
        node = pending.pop()
        children = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]
        is_split = circuit.kind[node] == arrays.HARD and (n_parent[children] == 1).all()
        if is_split and not begins_tree_of_labels(circuit, node):
            tree[node] = True
            pending += children.tolist()
    return tree


def begins_with_split(circuit: Circuit) -> bool:
    """Return whether conditions tell rows apart first of all."""
    return bool(splits_of_tree(circuit)[-1])


def begins_tree_of_labels(circuit: Circuit, node: int) -> bool:
    """Return whether a hard sum is the root of a tree of labels, and no split of rows.

    Each way is a label of the root's column, or begins with it and goes on with the columns that depend on it. Parts of
    a split begin with what is not decided; the label that their rows have in common comes last.
    """
    labels = set()
    columns = set()
    ways = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]].tolist()
    for way in ways:
        is_product = circuit.kind[way] == arrays.PRODUCT
        inside = circuit.child[circuit.child_ptr[way] : circuit.child_ptr[way + 1]].tolist() if is_product else [way]
        label, *others = inside
        if not _is_label(circuit, label):
            return False
        if any(circuit.kind[other] != arrays.HARD and not _begins_with_label(circuit, other) for other in others):
            return False
        labels.add(label)
        columns.add(int(circuit.leaf_var[circuit.leaf_of[label]]))
    return len(labels) == len(ways) and len(columns) == 1


def _begins_with_label(circuit: Circuit, node: int) -> bool:
    """Return whether a node is a column of one label in a tree, alone or with the columns that depend on it."""
    is_product = circuit.kind[node] == arrays.PRODUCT
    return _is_label(circuit, int(circuit.child[circuit.child_ptr[node]]) if is_product else node)


def _is_label(circuit: Circuit, node: int) -> bool:
    """Return whether a node is a leaf without parameters, as trees of labels have them."""
    leaf = circuit.leaf_of[node]
    return bool(leaf >= 0 and circuit.leaf_family[leaf] == registry.number("label"))


def allowed_labels(circuit: Circuit, leaf: int) -> np.ndarray | None:
    """Return the codes that a leaf may take, ascending, where it is restricted to some labels; else None."""
    if circuit.leaf_family[leaf] not in LABEL_FAMILIES:
        return None
    allowed = categorical.allowed(circuit.constants_of(leaf))
    return None if allowed.all() else np.flatnonzero(allowed)
