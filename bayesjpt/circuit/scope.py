"""Scopes: which columns each node is about. Computed on demand, never stored."""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.arrays import Circuit, read_only_arrays
from bayesjpt.numerics.bits import count_bits
from bayesjpt.numerics.jit import kernel


def scopes(circuit: Circuit, n_column: int) -> np.ndarray:
    """Return bool (n_node, n_column): the columns of every node's scope. Cost: n_edge * n_column."""
    circuit = read_only_arrays(circuit)
    return _scopes(circuit.child_ptr, circuit.child, circuit.leaf_of, circuit.leaf_var, n_column)


@kernel
def _scopes(child_ptr, child, leaf_of, leaf_var, n_column):
    scope = np.zeros((leaf_of.size, n_column), np.bool_)
    for node in range(leaf_of.size):
        if leaf_of[node] >= 0:
            scope[node, leaf_var[leaf_of[node]]] = True
        for e in range(child_ptr[node], child_ptr[node + 1]):
            below = scope[child[e]]
            for column in range(n_column):
                scope[node, column] |= below[column]
    return scope


def scope_sizes(circuit: Circuit, n_column: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how many columns each node is about, int64 (n_node,), and which the root is, bool (n_column,).

    Cost: n_edge * n_column / 64.
    """
    circuit = read_only_arrays(circuit)
    size, root = _scope_sizes(circuit.child_ptr, circuit.child, circuit.leaf_of, circuit.leaf_var, n_column)
    bits = root[np.arange(n_column) // 64] >> (np.arange(n_column) % 64).astype(np.uint64)
    return size, (bits & np.uint64(1)).astype(bool)


@kernel
def _scope_sizes(child_ptr, child, leaf_of, leaf_var, n_column):
    n_node = leaf_of.size
    words = np.zeros((n_node, (n_column + 63) // 64), np.uint64)
    size = np.zeros(n_node, np.int64)
    for node in range(n_node):
        scope = words[node]
        if leaf_of[node] >= 0:
            column = leaf_var[leaf_of[node]]
            scope[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
        for e in range(child_ptr[node], child_ptr[node + 1]):
            below = words[child[e]]
            for k in range(scope.size):
                scope[k] |= below[k]
        size[node] = count_bits(scope)
    return size, words[n_node - 1]


def levels(circuit: Circuit) -> list[np.ndarray]:
    """Return the edges grouped by the depth of their parent (longest path from the root), the root's edges first.

    A node's parents all lie in earlier groups, so quantities that flow from the root can be computed group by group.
    """
    parent = circuit.edge_parent()
    depth = _depths(circuit.n_node, parent, circuit.child)
    edge_depth = depth[parent]
    return [np.flatnonzero(edge_depth == d) for d in range(int(edge_depth.max()) + 1)] if circuit.n_edge else []


@kernel
def _depths(n_node, parent, child):
    depth = np.zeros(n_node, np.int64)
    # from the root on down: the depth of a parent is final when its edges have their turn
    for edge in range(child.size - 1, -1, -1):
        depth[child[edge]] = max(depth[child[edge]], depth[parent[edge]] + 1)
    return depth
