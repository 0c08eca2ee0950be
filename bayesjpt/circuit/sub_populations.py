"""Sub-populations of a circuit: what the sums nearest to its root tell apart.

      latent                        rows go down from the root through latent and hard sums, until they come to the
      ├─ product          0         first product (or column). Where they end is their sub-population: 0, 1 or 2
      └─ latent
         ├─ product       1
         └─ product       2

The root of a table whose columns fall into independent groups is a product; then the sums of its widest factor count.
Of a tree these are its leaves; a tree of labels is one, be it a component of a mixture or the whole. They are the same
in all draws of a structure, and in no two structures.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.paths import begins_tree_of_labels
from bayesjpt.circuit.scope import scopes


def sub_populations(circuit: Circuit, n_column: int) -> list[int]:
    """Return the nodes at which sub-populations begin, from left to right; one of them where no sum is near the root.

    Examples
    --------
    >>> import pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"x": np.linspace(-3.0, 3.0, 200), "y": ["a"] * 100 + ["b"] * 100}))
    >>> circuit = bj.learn_jpt(table, np.random.default_rng(0), max_leaves=2)
    >>> [arrays.KIND_NAMES[circuit.kind[node]] for node in sub_populations(circuit, 2)]
    ['product', 'product']
    """
    top = circuit.n_node - 1
    if circuit.kind[top] == arrays.PRODUCT:
        width = scopes(circuit, n_column).sum(axis=1)
        while circuit.kind[top] == arrays.PRODUCT:
            factors = [node for node in children(circuit, top) if circuit.kind[node] not in _COLUMNS]
            if not factors:
                return [circuit.n_node - 1]
            top = max(factors, key=lambda node: int(width[node]))
    found: list[int] = []
    pending = [top]
    while pending:
        node = pending.pop()
        kind = circuit.kind[node]
        if kind == arrays.LATENT or (kind == arrays.HARD and not begins_tree_of_labels(circuit, node)):
            # a stack: the leftmost child comes off it first
            pending += reversed(children(circuit, node))
        elif node not in found:
            found.append(node)
    return found


_COLUMNS = (arrays.LEAF, arrays.LIKELIHOOD)


def children(circuit: Circuit, node: int) -> list[int]:
    """Return the children of a node, in the order of its edges."""
    return circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]].tolist()


def above(circuit: Circuit, nodes: list[int]) -> np.ndarray:
    """Return the nodes on all ways from the root to some nodes, ascending, both ends included, int32 (n,)."""
    wanted = np.zeros(circuit.n_node, bool)
    wanted[nodes] = True
    # children first: one pass marks all that is above
    for node in range(circuit.n_node):
        wanted[node] |= wanted[circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]].any()
    return np.flatnonzero(wanted).astype(np.int32)
