"""Scopes: which columns each node is about. Computed on demand, never stored."""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.arrays import LEAF, Circuit


def scopes(circuit: Circuit, n_column: int) -> np.ndarray:
    """Return bool (n_node, n_column): the columns of every node's scope. Cost: n_edge * n_column."""
    scope = np.zeros((circuit.n_node, n_column), bool)
    for node in range(circuit.n_node):
        if circuit.kind[node] == LEAF:
            leaf = circuit.leaf_of[node]
            scope[node, circuit.leaf_var[circuit.leaf_var_ptr[leaf] : circuit.leaf_var_ptr[leaf + 1]]] = True
        else:
            edges = slice(circuit.child_ptr[node], circuit.child_ptr[node + 1])
            scope[node] = scope[circuit.child[edges]].any(axis=0)
    return scope


def levels(circuit: Circuit) -> list[np.ndarray]:
    """Return the edges grouped by the depth of their parent (longest path from the root), the root's edges first.

    A node's parents all lie in earlier groups, so quantities that flow from the root can be computed group by group.
    """
    parent = circuit.edge_parent()
    depth = np.zeros(circuit.n_node, np.int64)
    for edge in range(circuit.n_edge - 1, -1, -1):
        child = circuit.child[edge]
        depth[child] = max(depth[child], depth[parent[edge]] + 1)
    edge_depth = depth[parent]
    return [np.flatnonzero(edge_depth == d) for d in range(int(edge_depth.max()) + 1)] if circuit.n_edge else []
