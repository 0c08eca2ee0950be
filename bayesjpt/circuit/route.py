"""The part of a circuit that a question reaches: some columns, and values that rows may have in some of them.

      queried: x, given y in [0, 1]            +                      +
                                          /     \\                   |
                                         x       x      becomes     x        y > 3 is another leaf of the tree;
                                       / | \\   / | \\               / \\       z is not queried
                                      x  y  z x y>3 z             x   y

Weights stay what they are, so sums need not add up to one any more: under the part, an event that lies inside the
values has the probability that it has under the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.edit import offsets
from bayesjpt.circuit.paths import allowed_labels
from bayesjpt.circuit.possible import LABEL_FAMILIES


class Part(NamedTuple):
    """A part of a circuit.

    Attributes
    ----------
    circuit : Circuit
        Its leaves' parameters stay where they are in the flat vector, most of which is idle.
    edge_from : int64 (n_edge,)
        The old place of each weight.
    """

    circuit: Circuit
    edge_from: np.ndarray


def reached(
    circuit: Circuit, columns: Collection[int], values: Mapping[int, np.ndarray], root: int | None = None
) -> Part | None:
    """Return the part of a circuit that is about some columns and can hold some values; None where nothing can.

    Parameters
    ----------
    circuit : Circuit
    columns : collection of int
        Leaves of other columns are left out.
    values : mapping from int to float64 (n_interval, 2)
        Closed intervals of some of these columns, in the user's units, codes of labels.
    root : int, optional
        The node to begin at, in place of the root.

    Notes
    -----
    Cost: n_edge.
    """
    root = circuit.n_node - 1 if root is None else root
    pointer, child = circuit.child_ptr.tolist(), circuit.child.tolist()
    used = _used(circuit, pointer, child, _queried(circuit, columns), _possible(circuit, values))
    if not used[root]:
        return None
    kept, keep_edge = [False] * circuit.n_node, [False] * circuit.n_edge
    kept[root] = True
    # from the root on down: what a node keeps is decided before its children's turn
    for node in range(root, -1, -1):
        for edge in range(pointer[node], pointer[node + 1]) if kept[node] else ():
            if used[child[edge]]:
                kept[child[edge]] = keep_edge[edge] = True
    return _taken(circuit, np.array(kept), np.array(keep_edge, bool))


def _queried(circuit: Circuit, columns: Collection[int]) -> np.ndarray:
    """Return bool (n_leaf,): whether a leaf is about one of the columns."""
    chosen = np.zeros(max(int(circuit.leaf_var.max()), *columns, 0) + 1, bool)
    chosen[list(columns)] = True
    return chosen[circuit.leaf_var]


def _possible(circuit: Circuit, values: Mapping[int, np.ndarray]) -> np.ndarray:
    """Return bool (n_leaf,): whether a leaf's cell holds some of the values."""
    lower, upper = circuit.leaf_interval().T
    possible = np.ones(circuit.n_leaf, bool)
    for target, intervals in values.items():
        leaves = np.flatnonzero(circuit.leaf_var == target)
        lo = np.maximum(intervals[:, 0], lower[leaves, None])
        hi = np.minimum(intervals[:, 1], upper[leaves, None])
        possible[leaves] = (lo <= hi).any(axis=1)
        for number in np.flatnonzero(arrays.one_of(circuit.leaf_family[leaves], LABEL_FAMILIES)).tolist():
            labels = allowed_labels(circuit, leaves[number])
            if labels is not None:
                possible[leaves[number]] = ((labels >= lo[number, :, None]) & (labels <= hi[number, :, None])).any()
    return possible


def _used(
    circuit: Circuit, pointer: list[int], child: list[int], queried: np.ndarray, possible: np.ndarray
) -> list[bool]:
    """Return which nodes are needed below whatever needs them: those queried that are possible.

    An impossible part makes a product impossible whether or not it is queried.
    """
    kind, leaf_of = circuit.kind.tolist(), circuit.leaf_of.tolist()
    meets, alive = [False] * circuit.n_node, [False] * circuit.n_node
    for node in range(circuit.n_node):
        below = child[pointer[node] : pointer[node + 1]]
        if kind[node] == arrays.LEAF:
            meets[node], alive[node] = bool(queried[leaf_of[node]]), bool(possible[leaf_of[node]])
        else:
            meets[node] = any(meets[c] for c in below)
            alive[node] = (all if kind[node] == arrays.PRODUCT else any)(alive[c] for c in below)
    return [m and a for m, a in zip(meets, alive, strict=True)]


def _taken(circuit: Circuit, kept: np.ndarray, keep_edge: np.ndarray) -> Part:
    """Return the part that holds some nodes and edges."""
    leaves = circuit.leaf_of[kept & (circuit.kind == arrays.LEAF)]
    n_children = np.bincount(circuit.edge_parent()[keep_edge], minlength=circuit.n_node)[kept]
    edge_from = np.flatnonzero(keep_edge)
    is_leaf = circuit.kind[kept] == arrays.LEAF
    part = circuit._replace(
        kind=circuit.kind[kept],
        child_ptr=offsets(n_children),
        child=(np.cumsum(kept) - 1)[circuit.child[keep_edge]].astype(np.int32),
        leaf_of=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        leaf_family=circuit.leaf_family[leaves],
        leaf_var=circuit.leaf_var[leaves],
        leaf_cell=circuit.leaf_cell[leaves],
        theta_at=circuit.theta_at[leaves],
        theta_len=circuit.theta_len[leaves],
        const_at=circuit.const_at[leaves],
        const_len=circuit.const_len[leaves],
        start_log_weight=circuit.start_log_weight[edge_from],
    )
    return Part(part, edge_from)
