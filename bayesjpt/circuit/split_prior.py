"""Imaginary rows of splits: so many for each split, or one imaginary sample that is divided over the whole circuit.

BDeu(8.0)     split: 4 and 4 ─┬─ a tree whose root has 2 and 2, and a column that depends on it 1, 1, 1, 1
                              └─ split: 2 and 2 ─ ...
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.circuit.networks import Network
from bayesjpt.circuit.trees import split_shares


def imaginary_rows(circuit: Circuit, ess: float | BDeu) -> np.ndarray:
    """Return the imaginary rows of each edge of hard sums, float64 (n_edge,); 0 elsewhere."""
    if isinstance(ess, BDeu):
        return ess.rows * shares_of_whole(circuit)
    return float(ess) * split_shares(circuit)


def shares_of_whole(circuit: Circuit) -> np.ndarray:
    """Return the share of one imaginary sample that each edge of a hard sum has, float64 (n_edge,); 0 elsewhere.

    Notes
    -----
    Cost: n_edge, in Python. Parents come after their children, so a walk from the last node meets all parents of a node
    before the node itself.
    """
    ptr, child, kind = circuit.child_ptr.tolist(), circuit.child.tolist(), circuit.kind.tolist()
    share = [0.0] * circuit.n_node
    share[-1] = 1.0
    out = [0.0] * circuit.n_edge
    for node in range(circuit.n_node - 1, -1, -1):
        first, last = ptr[node], ptr[node + 1]
        if first == last:
            continue
        # a product hands on all to each child, a sum divides it
        own = share[node] if kind[node] == arrays.PRODUCT else share[node] / (last - first)
        for edge in range(first, last):
            share[child[edge]] += own
            if kind[node] == arrays.HARD:
                out[edge] = own
    return np.array(out)


def shares_of_entries(network: Network) -> np.ndarray:
    """Return the same of each way and table entry of a network, float64 (n_entry,)."""
    share, ways = np.ones(network.split.size), np.empty(network.way.size)
    for part in np.flatnonzero(network.split >= 0).tolist():  # as a walk from the root meets them
        which = slice(network.way_ptr[part], network.way_ptr[part + 1])
        ways[which] = share[part] / (which.stop - which.start)
        share[network.way[which]] = ways[which]
    size = np.diff(network.table_ptr)
    of_place = np.repeat(share, np.diff(network.tree_ptr)) / size
    return np.concatenate([ways, np.repeat(of_place, size)])
