"""Trees of labels as nodes of a circuit: hard sums over label leaves, for every label of the parent one.

      b given a         a: hard          the root: which label a has
                        /    \\
                      x        x         a product a label: the label itself, and the sums of the columns that depend
                    / |        | \\       on it, given this label
                  a=0 hard   hard a=1    b given a = 0, b given a = 1: different weights ...
                      |  \\ /  |
                      b=0   b=1          ... and the same children

A column of one label needs no sum. So any number of labels, missing cells and any circuit around a tree are what sums,
products and leaves do anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.paths import Region
from bayesjpt.circuit.possible import Labels
from bayesjpt.errors import CircuitError
from bayesjpt.families.label import label_groups
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema

if TYPE_CHECKING:
    from bayesjpt.table.table import Table

_CODES: WeakKeyDictionary[Table, np.ndarray] = WeakKeyDictionary()
"""Of tables that were coded: hundreds of networks are learned from one."""

_BLOCK = 512
"""Rows of which a column is coded at once: with a hundred columns they take a part of the second cache."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of columns of labels in the sub-population `rows`: each depends on its parent alone.

    Parameters
    ----------
    columns : int (n,)
        Of labels, each once.
    parents : int (n,)
        The position of each column's parent among `columns`, -1 for roots, of which there may be several.
    rows : int (n_row,)
        Positions in the training table; from their cells the circuit's starting weights are counted.
    tables : list of float64 (n_group of the parent, n_group), optional
        Where given, starting weights are these probabilities of the column's groups of labels given the parent's, one
        row at roots.
    """

    columns: np.ndarray
    parents: np.ndarray
    rows: np.ndarray
    tables: list[np.ndarray] | None = None


class Grown(NamedTuple):
    """Nodes of a tree, children first, numbered from some number on.

    Attributes
    ----------
    kind : int8 (n_node,)
    n_children : int32 (n_node,)
    child : int32 (n_edge,)
    count : float64 (n_edge,)
        Rows that take each edge of a sum, where the cells that decide are known; 0 at products. Of a tree with tables
        their probabilities.
    roots : int32 (n_root,)
    """

    kind: np.ndarray
    n_children: np.ndarray
    child: np.ndarray
    count: np.ndarray
    roots: np.ndarray


def codes_of(table: Table) -> np.ndarray:
    """Return the `group_codes` of a table, read-only, coded once."""
    if table not in _CODES:
        codes = group_codes(table.schema, table.values, table.observed)
        codes.flags.writeable = False
        _CODES[table] = codes
    return _CODES[table]


def group_codes(schema: Schema, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return int16 (n_column, n_row): which of its `label_groups` a cell is in; -1 if missing, or of no labels."""
    out = np.empty(values.shape, np.int16)
    _fill_groups(values, observed, *_groups_of_codes(schema), out)
    return out


def group_rows(schema: Schema, values: np.ndarray) -> np.ndarray:
    """Return the `group_codes` of complete rows of labels, row by row: (n_row, n_column), uint8 where they fit."""
    group, group_at = _groups_of_codes(schema)
    dtype = np.uint8 if group.max(initial=0) < 256 else np.int16
    out = np.empty(values.shape[::-1], dtype)
    _fill_rows(values, group.astype(dtype), group_at, out)
    return out


def _groups_of_codes(schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each code of each column, int16, one column behind the other, and where they begin."""
    n_code = [column.n_label if column.base == "category" else 0 for column in schema.columns]
    group_at = np.concatenate([[0], np.cumsum(n_code)]).astype(np.int64)
    group = np.empty(group_at[-1], np.int16)
    for position, column in enumerate(schema.columns):
        for number, codes in enumerate(label_groups(column) if n_code[position] else ()):
            for code in codes:
                group[group_at[position] + code] = number
    return group, group_at


@kernel
def _fill_rows(values, group, group_at, out):
    for first in range(0, out.shape[0], _BLOCK):
        last = min(first + _BLOCK, out.shape[0])
        for column in range(out.shape[1]):
            x, at = values[column], np.uint32(group_at[column])
            for row in range(first, last):  # no index is signed, since numba looks whether those are negative
                out[row, column] = group[at + np.uint32(np.int64(x[row]))]


@kernel
def _fill_groups(values, observed, group, group_at, out):
    for column in range(values.shape[0]):
        x, known, y = values[column], observed[column], out[column]
        group_of = group[group_at[column] : group_at[column + 1]]
        for row in range(x.size):
            y[row] = group_of[np.int64(x[row])] if known[row] and group_of.size > 0 else -1


def ways(
    tree: Tree, schema: Schema, region: Region, groups: Sequence[Sequence[Labels]]
) -> list[list[tuple[int, Labels]]]:
    """Return for each column of a tree what it may be: the number of a group of labels, and those left of it.

    `groups` are the `label_groups` of each column of the schema.

    Raises
    ------
    CircuitError
        For columns that are not in the schema, hold no labels, stand there twice, or have none left.
    """
    columns = np.asarray(tree.columns).tolist()
    if not columns or len(set(columns)) < len(columns) or len(tree.parents) != len(columns):
        raise CircuitError(
            f"a tree of {len(columns)} columns and {len(tree.parents)} parents", "each column once, with a parent"
        )
    missing = [position for position in columns if position not in range(len(schema))]
    if missing:
        raise CircuitError(f"column {missing[0]} in a tree of a table of {len(schema)}", _positions(len(schema)))
    found = []
    for position in columns:
        column = schema.columns[position]
        if column.base != "category":
            raise CircuitError(f"column {column.name!r} of numbers in a tree of labels", "columns of labels")
        each = list(enumerate(groups[position]))
        if position in region:
            part = set(region[position])
            each = [(number, tuple(code for code in codes if code in part)) for number, codes in each]
        found.append([(number, codes) for number, codes in each if codes])
    return found


def grow_tree(
    tree: Tree, groups: np.ndarray, allowed: Sequence[Sequence[int]], leaf_node: Sequence[int], first: int
) -> Grown:
    """Return the nodes of a tree.

    Parameters
    ----------
    tree : Tree
    groups : int16 (n_column, n_row)
        `group_codes` of the table.
    allowed : sequence of sequences of int
        The groups that each column of the tree may be in.
    leaf_node : sequence of int
        The node of each of these, column by column.
    first : int
        The number of the first new node.

    Raises
    ------
    CircuitError
        Where parents go round in a circle, or are none of the columns, and for rows that the table does not have.
    """
    n_way = np.array([len(each) for each in allowed], np.int64)
    last = max(int(groups.max(initial=0)), *(each[-1] for each in allowed))  # rows need not show all labels
    way = np.full((len(allowed), last + 2), -1, np.int64)  # the last entry: missing
    for position, each in enumerate(allowed):
        way[position, list(each)] = np.arange(len(each))
    parents = np.ascontiguousarray(tree.parents, np.int64)
    if ((parents < -1) | (parents >= parents.size)).any():
        raise CircuitError(f"parents {parents.tolist()} in a tree of {parents.size} columns", "positions, -1 for roots")
    order, kid_ptr, kid = grow_order(parents)
    if order.size < parents.size:
        raise CircuitError("parents that go round in a circle", "a tree, or several")
    rows, columns = _rows_of(tree, groups.shape[1]), np.ascontiguousarray(tree.columns, np.int64)
    count, count_at = _count(groups, rows, columns, parents, n_way, way)
    if tree.tables is not None:
        for position, table in enumerate(tree.tables):
            above = allowed[parents[position]] if parents[position] >= 0 else [0]
            count[count_at[position] : count_at[position + 1]] = table[np.ix_(above, allowed[position])].ravel()
    return Grown(
        *grow_whole(
            order, parents, kid_ptr, kid, n_way, np.array(leaf_node, np.int32), count, count_at, np.int64(first)
        )
    )


def _rows_of(tree: Tree, n_row: int) -> np.ndarray:
    """Return the rows of a tree, int64 (n,); kernels read them without looking whether they are there."""
    rows = np.asarray(tree.rows)
    if rows.size == 0:
        return np.empty(0, np.int64)
    if rows.dtype.kind not in "iu":
        raise CircuitError(f"rows of type {rows.dtype} in a tree", _positions(n_row))
    if rows.min() < 0 or rows.max() >= n_row:
        wrong = int(rows[(rows < 0) | (rows >= n_row)][0])
        raise CircuitError(f"row {wrong} in a tree of a table of {n_row}", _positions(n_row))
    return np.ascontiguousarray(rows, np.int64)


def _positions(n: int) -> str:
    return f"positions from 0 to {n - 1}" if n else "none"


def split_shares(circuit: Circuit) -> np.ndarray:
    """Return float64 (n_edge,): one over the ways of a hard sum, the share of each of its edges; 0 elsewhere."""
    parent = circuit.edge_parent()
    share = 1.0 / np.maximum(np.diff(circuit.child_ptr), 1)
    return np.where(circuit.kind[parent] == arrays.HARD, share[parent], 0.0)


def label_parents(circuit: Circuit, node: int) -> dict[int, int]:
    """Return of each column that depends on another one in a tree of labels below a node the column it depends on.

    Nothing of what lies below latent sums.
    """
    found: dict[int, int] = {}
    seen: set[int] = set()
    pending = [(node, -1)]
    while pending:
        node, above = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        children = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]].tolist()
        if circuit.kind[node] == arrays.PRODUCT:
            # a product in a product is a column of one label: what stands below it depends on nothing
            pending += [(child, -1 if circuit.kind[child] == arrays.PRODUCT else above) for child in children]
        elif circuit.kind[node] == arrays.HARD:
            # a way begins with the label that decides, or is this label
            way = children[0]
            label = way if circuit.leaf_of[way] >= 0 else circuit.child[circuit.child_ptr[way]]
            if circuit.leaf_of[label] < 0:
                continue
            column = int(circuit.leaf_var[circuit.leaf_of[label]])
            if above >= 0:
                found[column] = above
            pending += [(child, column) for child in children]
    return found


@kernel
def grow_order(parents):
    """Return (order, kid_ptr, kid): columns reached from the roots, parents first, and the children of each."""
    n = parents.size
    kid_ptr = np.zeros(n + 1, np.int64)
    for parent in parents:
        if parent >= 0:
            kid_ptr[parent + 1] += 1
    kid_ptr = np.cumsum(kid_ptr)
    kid, filled = np.empty(max(kid_ptr[n], 1), np.int64), kid_ptr[:-1].copy()
    order, n_found = np.empty(n, np.int64), 0
    for k in range(n):
        if parents[k] < 0:
            order[n_found] = k
            n_found += 1
        else:
            kid[filled[parents[k]]] = k
            filled[parents[k]] += 1
    at = 0
    # breadth first; columns that go round in a circle are never found
    while at < n_found:
        for j in range(kid_ptr[order[at]], kid_ptr[order[at] + 1]):
            order[n_found] = kid[j]
            n_found += 1
        at += 1
    return order[:n_found], kid_ptr, kid


@kernel
def _count(groups, rows, columns, parents, n_way, way):
    """Return (count, count_at): rows by the way of the parent and of the column itself, where both are known."""
    n = columns.size
    count_at = np.zeros(n + 1, np.int64)
    for k in range(n):
        count_at[k + 1] = count_at[k] + n_way[k] * (n_way[parents[k]] if parents[k] >= 0 else 1)
    count = np.zeros(count_at[n])
    for k in range(n):
        x, way_of = groups[columns[k]], way[k]
        if parents[k] < 0:
            for row in rows:
                if way_of[x[row]] >= 0:
                    count[count_at[k] + way_of[x[row]]] += 1.0
        else:
            y, above = groups[columns[parents[k]]], way[parents[k]]
            for row in rows:
                if way_of[x[row]] >= 0 and above[y[row]] >= 0:
                    count[count_at[k] + above[y[row]] * n_way[k] + way_of[x[row]]] += 1.0
    return count, count_at


@kernel
def grow_whole(order, parents, kid_ptr, kid, n_way, leaf_node, count, count_at, first):
    """Return the fields of `Grown`, of columns in the order, and with the children, that `grow_order` found.

    `count` holds the numbers of the edges of sums: of column k, by the way of its parent and its own way, from
    ``count_at[k]`` on. `leaf_node` holds the nodes of leaves, column by column and way by way.
    """
    n = order.size
    way_at, sum_at = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    n_node, n_edge, n_root = 0, 0, 0
    for k in range(n):
        n_above = n_way[parents[k]] if parents[k] >= 0 else 1
        way_at[k + 1], sum_at[k + 1] = way_at[k] + n_way[k], sum_at[k] + n_above
        n_node += n_way[k] + n_above
        n_edge += n_way[k] * (1 + kid_ptr[k + 1] - kid_ptr[k]) + n_above * n_way[k]
        n_root += parents[k] < 0
    kind, n_children = np.empty(n_node, np.int8), np.empty(n_node, np.int32)
    child, through = np.empty(n_edge, np.int32), np.zeros(n_edge)
    product, sums = np.empty(way_at[n], np.int32), np.empty(sum_at[n], np.int32)
    node, edge = 0, 0
    # children first: the sums that a way leads to are there
    for at in range(n - 1, -1, -1):
        k = order[at]
        for w in range(n_way[k]):
            product[way_at[k] + w] = leaf_node[way_at[k] + w]
            if kid_ptr[k + 1] == kid_ptr[k]:
                continue
            kind[node], n_children[node] = arrays.PRODUCT, 1 + kid_ptr[k + 1] - kid_ptr[k]
            child[edge] = leaf_node[way_at[k] + w]
            edge += 1
            for j in range(kid_ptr[k], kid_ptr[k + 1]):
                child[edge] = sums[sum_at[kid[j]] + w]
                edge += 1
            product[way_at[k] + w] = first + node
            node += 1
        for above in range(sum_at[k + 1] - sum_at[k]):
            # of a single way: it stands for the sum
            sums[sum_at[k] + above] = product[way_at[k]]
            if n_way[k] == 1:
                continue
            kind[node], n_children[node] = arrays.HARD, n_way[k]
            for w in range(n_way[k]):
                child[edge] = product[way_at[k] + w]
                through[edge] = count[count_at[k] + above * n_way[k] + w]
                edge += 1
            sums[sum_at[k] + above] = first + node
            node += 1
    roots = np.empty(n_root, np.int32)
    n_root = 0
    for k in range(n):
        if parents[k] < 0:
            roots[n_root] = sums[sum_at[k]]
            n_root += 1
    return kind[:node], n_children[:node], child[:edge], through[:edge], roots
