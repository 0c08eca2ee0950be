"""Circuits that are cutset networks of labels, found again as the few arrays that `expand` makes such circuits of.

A hard sum on the single way from the root is a split, unless its children begin with the labels of the column that
decides: then it is the root of a tree, whose sums share their children. Whatever does not fit is no network, and is
evaluated as any other circuit; an answer is never another for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.networks import Network, groups_of, table_pointers
from bayesjpt.circuit.possible import possible
from bayesjpt.families import label, registry
from bayesjpt.numerics.copying import copy_into, with_room
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema


class Recognised(NamedTuple):
    """The network that a circuit is, and where its weights are.

    Attributes
    ----------
    network : Network
    edge_of : int32 (n_entry,)
        As in `bayesjpt.circuit.networks.Expanded`.
    """

    network: Network
    edge_of: np.ndarray


def recognise(circuit: Circuit, schema: Schema) -> Recognised | None:
    """Return the network that a valid circuit is; None where it is none, or has leaves that hold more than a group.

    Notes
    -----
    Cost: n_edge.
    """
    n_group = groups_of(schema)
    if n_group is None or arrays.one_of(circuit.kind, (arrays.LATENT, arrays.LIKELIHOOD)).any():
        return None
    leaf_group = _groups_of_leaves(circuit, schema)
    if leaf_group is None:
        return None
    column = possible(circuit).split_columns(circuit).astype(np.int64)
    leaves = circuit.leaf_of >= 0
    column[leaves] = circuit.leaf_var[circuit.leaf_of[leaves]]
    group = np.full(circuit.n_node, -1, np.int64)
    group[leaves] = leaf_group[circuit.leaf_of[leaves]]
    found = _recognise(circuit.kind, circuit.child_ptr, circuit.child, column, group, n_group)
    if not found[0]:
        return None
    _, split, way_ptr, way, way_edge, tree_ptr, columns, parent, table_edge = found
    table_ptr = table_pointers(tree_ptr, columns, parent, n_group, way.size)
    assert table_ptr[-1] == way.size + table_edge.size
    network = Network(
        split, way_ptr, way, tree_ptr, columns.astype(np.int16), parent.astype(np.int16), table_ptr, n_group
    )
    return Recognised(network, np.concatenate([way_edge, table_edge]).astype(np.int32))


def _groups_of_leaves(circuit: Circuit, schema: Schema) -> np.ndarray | None:
    """Return the group of labels of each leaf, int64 (n_leaf,); None where one is no group in its training shares."""
    if (circuit.leaf_cell >= 0).any() or (circuit.leaf_family != registry.number("label")).any():
        return None
    groups = [label.label_groups(column) for column in schema.columns]
    found = np.empty(circuit.n_leaf, np.int64)
    for leaf, column in enumerate(circuit.leaf_var.tolist()):
        constants = circuit.constants_of(leaf)
        codes = tuple(np.flatnonzero(constants[constants.size // 2 :] > 0.0).tolist())
        if codes not in groups[column]:
            return None
        if not np.array_equal(constants, label.constants_of(codes, schema.columns[column])):
            return None
        found[leaf] = groups[column].index(codes)
    return found


@kernel
def _begins_with(kind, child_ptr, child, node, column, wanted):
    """Return the leaf of the wanted column that a node is, or that a product begins with; -1 where there is none."""
    if kind[node] == arrays.PRODUCT:
        node = child[child_ptr[node]]
    return node if kind[node] == arrays.LEAF and column[node] == wanted else np.int64(-1)


@kernel
def _column_of(kind, child_ptr, child, node, column):
    """Return the column of what stands in a tree: of a sum, a leaf, or a product that begins with a leaf."""
    if kind[node] == arrays.PRODUCT:
        node = child[child_ptr[node]]
        return column[node] if kind[node] == arrays.LEAF else np.int64(-1)
    return column[node]


@kernel
def _add_tree(kind, child_ptr, child, column, group, n_group, root, tree, n, budget):
    """Add the columns of the tree below a node to the n of `tree` that are there; return how many these are, -1 if not.

    tree is a tuple: columns, parents, where their edges begin and end, edges, where their nodes begin, nodes.
    """
    columns, parents, edge_at, edges, node_at, nodes = tree
    first = n
    columns[n], parents[n] = _column_of(kind, child_ptr, child, root, column), -1
    nodes[node_at[n]] = root
    node_at[n + 1] = node_at[n] + 1
    n += 1
    at = first
    while at < n:
        c, n_above = columns[at], node_at[at + 1] - node_at[at]
        if c < 0:
            return -1
        n_way, e = n_group[c], edge_at[at]
        if e + n_above * n_way > edges.size:
            return -1
        top = nodes[node_at[at]]
        for k in range(n_above):
            node = nodes[node_at[at] + k]
            if n_way == 1:
                if node != top:
                    return -1
                edges[e] = -1
                e += 1
                continue
            if kind[node] != arrays.HARD or child_ptr[node + 1] - child_ptr[node] != n_way:
                return -1
            for w in range(n_way):
                if child[child_ptr[node] + w] != child[child_ptr[top] + w]:
                    return -1
                edges[e] = child_ptr[node] + w
                e += 1
        edge_at[at + 1] = e
        n_kid = -1
        for w in range(n_way):
            below = top if n_way == 1 else child[child_ptr[top] + w]
            leaf = _begins_with(kind, child_ptr, child, below, column, c)
            if leaf < 0 or group[leaf] != w:
                return -1
            n_below = child_ptr[below + 1] - child_ptr[below] - 1 if kind[below] == arrays.PRODUCT else 0
            if n_kid >= 0 and n_below != n_kid:
                return -1
            n_kid = n_below
        budget[0] -= n_above * n_way + n_kid * n_way
        if budget[0] < 0 or n + n_kid > columns.size or node_at[n] + n_kid * n_way > nodes.size:
            return -1
        for kid in range(n_kid):
            parents[n] = at
            for w in range(n_way):
                below = top if n_way == 1 else child[child_ptr[top] + w]
                nodes[node_at[n] + w] = child[child_ptr[below] + 1 + kid]
            columns[n] = _column_of(kind, child_ptr, child, nodes[node_at[n]], column)
            node_at[n + 1] = node_at[n] + n_way
            n += 1
        at += 1
    return n


@kernel
def _add_trees(kind, child_ptr, child, column, group, n_group, node, fixed, is_in, tree, budget):
    """Write the columns of the trees of a part to `tree`; return how many these are, -1 where the part has no trees.

    All columns are in one tree, or have a leaf of the label that splits above have decided (`fixed`). `is_in` is room.
    """
    n = 0
    is_forest = kind[node] == arrays.PRODUCT and (kind[child[child_ptr[node]]] != arrays.LEAF or fixed.max() >= 0)
    begin, end = (child_ptr[node], child_ptr[node + 1]) if is_forest else (np.int32(0), np.int32(1))
    is_in[:] = False
    for e in range(begin, end):
        root = np.int64(child[e]) if is_forest else node
        c = column[root]
        if kind[root] == arrays.LEAF and fixed[c] >= 0:
            if fixed[c] != group[root] or is_in[c]:
                return -1
            is_in[c] = True
        else:
            n = _add_tree(kind, child_ptr, child, column, group, n_group, root, tree, n, budget)
            if n < 0:
                return -1
    for k in range(n):
        if is_in[tree[0][k]]:
            return -1
        is_in[tree[0][k]] = True
    return n if is_in.all() else -1


@kernel
def _is_split(kind, child_ptr, child, column, node):
    """Return whether a node splits a part, and does not begin a tree."""
    if kind[node] != arrays.HARD or column[node] < 0:
        return False
    return _begins_with(kind, child_ptr, child, child[child_ptr[node]], column, column[node]) < 0


@kernel
def _recognise(kind, child_ptr, child, column, group, n_group):
    """Return (is_network, split, way_ptr, way, way_edge, tree_ptr, column, parent, table_edge)."""
    n_node, n_column = kind.size, n_group.size
    most = n_group.max()
    split, way_ptr, tree_ptr = np.empty(64, np.int32), np.zeros(65, np.int64), np.zeros(65, np.int64)
    above, above_way = np.empty(64, np.int64), np.empty(64, np.int64)
    way, way_edge, n_way = np.empty(128, np.int32), np.empty(128, np.int64), 0
    columns, parents, n_place = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    table_edge, n_entry = np.empty(1024, np.int64), 0
    tree = (
        np.empty(n_column, np.int64),
        np.empty(n_column, np.int64),
        np.zeros(n_column + 1, np.int64),
        np.empty(n_column * most * most, np.int64),
        np.zeros(n_column + 1, np.int64),
        np.empty(n_column * most + 1, np.int64),
    )
    stack, seen = np.zeros((n_node + 1, 3), np.int64), np.zeros(n_node, np.bool_)
    fixed, is_in = np.empty(n_column, np.int64), np.empty(n_column, np.bool_)
    # work is bounded by the size of the circuit: nodes that many parents share could be walked far more often
    budget = np.full(1, 4 * child.size + 4 * n_node)
    stack[0] = n_node - 1, -1, 0
    depth, part, is_network = 1, 0, True
    while depth > 0 and is_network:
        depth -= 1
        split, above, above_way = with_room(split, part + 1), with_room(above, part + 1), with_room(above_way, part + 1)
        way_ptr, tree_ptr = with_room(way_ptr, part + 2), with_room(tree_ptr, part + 2)
        node, above[part] = stack[depth, 0], stack[depth, 1]
        slot = int(stack[depth, 2])
        above_way[part] = slot
        if above[part] >= 0:
            way[slot] = part
            above_way[part] = slot - way_ptr[above[part]]
        fixed[:] = -1
        at, n_fixed = part, 0
        while above[at] >= 0:
            split_above = int(above[at])
            fixed[int(split[split_above])] = above_way[at]
            n_fixed += 1
            at = split_above
        split[part] = -1
        if seen[node] and kind[node] != arrays.LEAF:
            is_network = False  # a part that several splits share
        elif _is_split(kind, child_ptr, child, column, node):
            seen[node] = True
            c, first = column[node], child_ptr[node]
            n_child = child_ptr[node + 1] - first
            is_network = n_child == n_group[c] and fixed[c] < 0
            split[part] = c
            way, way_edge = with_room(way, n_way + n_child), with_room(way_edge, n_way + n_child)
            for w in range(n_child - 1, -1, -1):
                way_edge[n_way + w] = first + w
                stack[depth] = np.int64(child[first + w]), np.int64(part), np.int64(n_way + w)
                depth += 1
            n_way += n_child
        else:
            seen[node] = True
            n = _add_trees(kind, child_ptr, child, column, group, n_group, node, fixed, is_in, tree, budget)
            is_network = n == n_column - n_fixed
            if is_network:
                columns, parents = with_room(columns, n_place + n), with_room(parents, n_place + n)
                table_edge = with_room(table_edge, n_entry + tree[2][n])
                order = np.argsort(tree[0][:n])
                place = np.empty(n, np.int64)
                for k in range(n):
                    place[order[k]] = k
                for k in range(n):
                    local = order[k]
                    columns[n_place + k] = tree[0][local]
                    parents[n_place + k] = place[tree[1][local]] if tree[1][local] >= 0 else -1
                    edges = tree[3][tree[2][local] : tree[2][local + 1]]
                    copy_into(edges, table_edge[n_entry:])
                    n_entry += edges.size
                n_place += n
        part += 1
        way_ptr[part], tree_ptr[part] = n_way, n_place
    return (
        is_network, split[:part].copy(), way_ptr[: part + 1].copy(), way[:n_way].copy(), way_edge[:n_way].copy(),
        tree_ptr[: part + 1].copy(), columns[:n_place].copy(), parents[:n_place].copy(), table_edge[:n_entry].copy(),
    )  # fmt: skip
