"""Cutset networks of labels as a few arrays: from a learner to a Circuit without an object a node.

      part   0  split by column 2              way[way_ptr[0]:way_ptr[1]] = 1, 4
             ├─ 1  split by column 0           way[...] = 2, 3
             │     ├─ 2  a tree                column[tree_ptr[2]:tree_ptr[3]], and the parent of each of these columns
             │     └─ 3  a tree
             └─ 4  a tree

      count  one a way of each split, then the tables of the trees: rows by the group of the parent and of the column

Parts are numbered as a walk from the root meets them. `expand` makes the circuit that `bayesjpt.circuit.build` makes of
the same network as objects, array by array; `bayesjpt.circuit.recognised` goes the other way. A network is a tenth of
its circuit, and complete rows are counted and scored by its tables (`bayesjpt.kernels.networks`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import freeze, start_of_splits
from bayesjpt.circuit.trees import grow_order, grow_whole, split_shares
from bayesjpt.families import label, registry
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema


class Network(NamedTuple):
    """The topology of a cutset network whose columns all hold labels.

    Attributes
    ----------
    split : int32 (n_part,)
        The column that divides each part; -1 where the part holds a tree.
    way_ptr : int64 (n_part + 1,), way : int32 (n_way,)
        Parts below each split, one a group of the column's labels.
    tree_ptr : int64 (n_part + 1,)
        Where the columns of each part's tree begin: those that no split above decides, ascending.
    column, parent : int16 (n_place,)
        Each column of a tree, and the place of its parent in the tree, -1 for roots.
    table_ptr : int32 (n_place + 1,)
        Where the table of each place begins, behind the entries of all ways: an entry for each group of the parent, and
        of the column itself, which varies fastest.
    n_group : int64 (n_column,)
        Groups of labels of each column (`bayesjpt.families.label.label_groups`).
    """

    split: np.ndarray
    way_ptr: np.ndarray
    way: np.ndarray
    tree_ptr: np.ndarray
    column: np.ndarray
    parent: np.ndarray
    table_ptr: np.ndarray
    n_group: np.ndarray

    @property
    def n_entry(self) -> int:
        """Ways and table entries, each with a count and a weight."""
        return int(self.table_ptr[-1])

    @property
    def n_tree(self) -> int:
        return int((self.split < 0).sum())


class Expanded(NamedTuple):
    """A network as a circuit.

    Attributes
    ----------
    circuit : Circuit
    edge_of : int32 (n_entry,)
        The edge of each way and table entry; -1 for columns of a single group, which need no sum.
    """

    circuit: Circuit
    edge_of: np.ndarray


def table_pointers(tree_ptr: np.ndarray, column: np.ndarray, parent: np.ndarray, n_group: np.ndarray, n_way: int):
    """Return int32 (n_place + 1,): where tables begin, behind `n_way` entries of ways."""
    tree = np.repeat(np.arange(tree_ptr.size - 1), np.diff(tree_ptr))
    # roots take any entry here: they have no parent, and 1 group above
    above = np.where(parent >= 0, n_group[column[np.where(parent >= 0, tree_ptr[tree] + parent, 0)]], 1)
    ends = np.concatenate([[n_way], n_way + np.cumsum(above * n_group[column])])
    # tables that large fit into no memory, but a file may speak of them: they are not to be taken for small ones
    return ends.astype(np.int32 if ends[-1] < 2**31 else np.int64)


def groups_of(schema: Schema) -> np.ndarray | None:
    """Return the number of groups of labels of each column, int64 (n_column,); None where a column holds numbers."""
    if not all(column.base == "category" for column in schema.columns):
        return None
    return np.array([len(label.label_groups(column)) for column in schema.columns], np.int64)


def expand(network: Network, schema: Schema, count: np.ndarray, ess: float) -> Expanded:
    """Return the circuit of a network, which starts at the posterior mean of its weights.

    Parameters
    ----------
    network : Network
    schema : Schema
    count : (n_entry,)
        Rows of each way and table entry.
    ess : float
        Imaginary rows of each sum, divided evenly over its ways.

    Notes
    -----
    Cost: n_edge. The circuit is not checked: that it is the one of the generic builder is for tests to say.
    """
    made = _expand(
        network.split,
        network.way_ptr,
        network.way,
        network.tree_ptr,
        network.column.astype(np.int64),
        network.parent.astype(np.int64),
        network.table_ptr,
        network.n_group,
    )
    kind, child_ptr, child, entry, leaf_of, leaf_column, leaf_group = made
    groups = [label.label_groups(column) for column in schema.columns]
    const = [
        label.constants_of(groups[column][group], schema.columns[column])
        for column, group in zip(leaf_column.tolist(), leaf_group.tolist(), strict=True)
    ]
    const_len = np.array([constants.size for constants in const], np.int32)
    n_leaf = leaf_column.size
    circuit = Circuit(
        kind=kind,
        child_ptr=child_ptr,
        child=child,
        leaf_of=leaf_of,
        leaf_family=np.full(n_leaf, registry.number("label"), np.int16),
        leaf_var=leaf_column.astype(np.int32),
        leaf_cell=np.full(n_leaf, -1, np.int32),
        cell=np.empty(0),
        theta_at=np.zeros(n_leaf, np.int32),
        theta_len=np.zeros(n_leaf, np.int32),
        const_at=(np.cumsum(const_len) - const_len).astype(np.int32),
        const_len=const_len,
        const=np.concatenate([*const, np.empty(0)]),
        start_log_weight=np.zeros(child.size),
        start_theta=np.empty(0),
    )
    edge_of = np.full(network.n_entry, -1, np.int32)
    edges = np.flatnonzero(entry >= 0)
    edge_of[entry[edges]] = edges
    of_edge = np.where(entry >= 0, np.asarray(count, np.float64)[entry], 0.0)
    start = start_of_splits(circuit, of_edge + ess * split_shares(circuit))
    return Expanded(freeze(circuit._replace(start_log_weight=start)), edge_of)


@kernel
def _room(tree_ptr, column, parent, n_group, n_part, n_way):
    """Return (n_node, n_edge) at most, without leaves that the whole circuit shares."""
    n_column = n_group.size
    n_node, n_edge = n_part, n_way
    for part in range(n_part):
        first, last = tree_ptr[part], tree_ptr[part + 1]
        if last > first:
            n_edge += n_column
        for place in range(first, last):
            n_of_column = n_group[column[place]]
            above = n_group[column[first + parent[place]]] if parent[place] >= 0 else 1
            n_node += n_of_column + above
            n_edge += n_of_column + above + n_of_column * above
    return n_node + n_group.sum(), n_edge + n_column


@kernel
def _expand(split, way_ptr, way, tree_ptr, column, parent, table_ptr, n_group):
    """Return (kind, child_ptr, child, entry, leaf_of, leaf_column, leaf_group); entry: -1 at edges without one."""
    n_part, n_column = split.size, n_group.size
    n_node, n_edge = _room(tree_ptr, column, parent, n_group, n_part, way.size)
    kind, leaf_of = np.empty(n_node, np.int8), np.full(n_node, -1, np.int32)
    child_ptr = np.zeros(n_node + 1, np.int32)
    child, entry = np.empty(n_edge, np.int32), np.full(n_edge, -1, np.int32)
    at_group = np.zeros(n_column + 1, np.int64)
    copy_into(np.cumsum(n_group), at_group[1:])
    leaf_at = np.full(at_group[n_column], -1, np.int32)
    leaf_column, leaf_group = np.empty(leaf_at.size, np.int32), np.empty(leaf_at.size, np.int32)
    root = np.empty(n_part, np.int32)
    fixed = np.full(n_column, -1, np.int64)
    open_part, open_way = np.empty(n_part, np.int64), np.empty(n_part, np.int64)
    depth, node, edge, n_leaf = 0, 0, 0, 0
    for part in range(n_part):
        if split[part] >= 0:
            open_part[depth], open_way[depth] = part, 0
            fixed[split[part]] = 0
            depth += 1
            continue
        # --- the tree: free columns, and behind them those that splits have decided, of one group each
        first = tree_ptr[part]
        n_free = tree_ptr[part + 1] - first
        parents, n_way = np.full(n_column, -1, np.int64), np.ones(n_column, np.int64)
        where, n = np.empty(n_column, np.int64), n_free
        for k in range(n_free):
            where[k] = column[first + k]
            parents[k], n_way[k] = parent[first + k], n_group[where[k]]
        for c in range(n_column):
            if fixed[c] >= 0:
                where[n] = c
                n += 1
        leaf_node = np.empty(n_way.sum(), np.int32)
        count_at = np.full(n_column + 1, table_ptr[first + n_free], np.int64)
        at = 0
        for k in range(n_column):
            if k < n_free:
                count_at[k] = table_ptr[first + k]
            for w in range(n_way[k]):
                group = w if k < n_free else fixed[where[k]]
                place = at_group[where[k]] + group
                # a leaf of some labels is one node for the whole circuit
                if leaf_at[place] < 0:
                    kind[node], leaf_of[node] = arrays.LEAF, n_leaf
                    leaf_column[n_leaf], leaf_group[n_leaf] = where[k], group
                    leaf_at[place] = node
                    child_ptr[node + 1] = edge
                    node += 1
                    n_leaf += 1
                leaf_node[at] = leaf_at[place]
                at += 1
        order, kid_ptr, kid = grow_order(parents)
        # counts that are their own numbers: `grow_whole` hands back which entry each edge has
        numbers = np.arange(1.0, count_at[n_column] - count_at[0] + 1.0)
        shifted = count_at - count_at[0]
        grown = grow_whole(order, parents, kid_ptr, kid, n_way, leaf_node, numbers, shifted, np.int64(node))
        new_kind, n_children, new_child, number, roots = grown
        copy_into(new_kind, kind[node:])
        copy_into(new_child, child[edge:])
        for e in range(new_child.size):
            entry[edge + e] = count_at[0] + np.int64(number[e]) - 1 if number[e] > 0.0 else -1
        at = edge
        for k in range(new_kind.size):
            at += n_children[k]
            child_ptr[node + k + 1] = at
        node, edge = node + new_kind.size, at
        root[part] = roots[0]
        if roots.size > 1:
            kind[node] = arrays.PRODUCT
            copy_into(roots, child[edge:])
            edge += roots.size
            child_ptr[node + 1] = edge
            root[part] = node
            node += 1
        # --- splits whose last way is done
        while depth > 0:
            above = open_part[depth - 1]
            open_way[depth - 1] += 1
            if open_way[depth - 1] < way_ptr[above + 1] - way_ptr[above]:
                fixed[split[above]] = open_way[depth - 1]
                break
            fixed[split[above]] = -1
            kind[node] = arrays.HARD
            for w in range(way_ptr[above], way_ptr[above + 1]):
                child[edge], entry[edge] = root[way[w]], w
                edge += 1
            child_ptr[node + 1] = edge
            root[above] = node
            node += 1
            depth -= 1
    return (
        kind[:node],
        child_ptr[: node + 1],
        child[:edge],
        entry[:edge],
        leaf_of[:node],
        leaf_column[:n_leaf],
        leaf_group[:n_leaf],
    )
