"""How far each row's probability reaches: given the row, the probability that its path runs through a node.

Only nodes above some wanted columns are visited, from the root down to the columns' slots. What is above them in the
workspace was left by `bayesjpt.kernels.upward`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels import rows
from bayesjpt.kernels.mixture import Pieces
from bayesjpt.kernels.passes import nodes_above
from bayesjpt.kernels.upward import PRODUCT_KIND
from bayesjpt.numerics.jit import kernel


class Reach(NamedTuple):
    """The nodes above some columns, and the slots of those columns.

    Attributes
    ----------
    node : int32 (n_reached,)
        Nodes whose scope meets the columns, ascending, the root last; leaves inside dictionaries left out.
    at : int32 (n_node,)
        Position in `node`, -1 elsewhere.
    slot_ptr : int32 (n_target + 1,), slot : int32 (n_target_slot,)
        Positions in `node` of each column's slots.
    part_ptr : int32 (n_target_slot + 1,), part : int32 (n_part,), part_edge : int32 (n_part,)
        The pieces of each slot, by number, and the edges of their weights (-1 for bare leaves).
    """

    node: np.ndarray
    at: np.ndarray
    slot_ptr: np.ndarray
    slot: np.ndarray
    part_ptr: np.ndarray
    part: np.ndarray
    part_edge: np.ndarray


def make_reach(plan: Plan, pieces: Pieces, leaves: np.ndarray, columns: Sequence[int]) -> Reach:
    """Return the nodes above some columns.

    `pieces` are those columns' whole leaves, `leaves` (n_piece,) which leaf each is.
    """
    node = np.flatnonzero(nodes_above(plan, columns) & (plan.node_row >= 0)).astype(np.int32)
    at = np.full(plan.kind.size, -1, np.int32)
    at[node] = np.arange(node.size)
    piece_of = {int(leaf): number for number, leaf in enumerate(leaves)}
    slot: list[int] = []
    counts: list[int] = []
    lengths: list[int] = []
    part: list[int] = []
    part_edge: list[int] = []
    for column in columns:
        own = plan.slot_node[plan.slot_column == column]
        counts.append(own.size)
        for n in own.tolist():
            slot.append(int(at[n]))
            if plan.kind[n] == arrays.LEAF:
                members = [(n, -1)]
            else:
                members = [(int(plan.child[e]), e) for e in range(plan.child_ptr[n], plan.child_ptr[n + 1])]
            lengths.append(len(members))
            part += [piece_of[int(plan.leaf_of[child])] for child, _ in members]
            part_edge += [e for _, e in members]
    return Reach(
        node=node,
        at=at,
        slot_ptr=np.cumsum([0, *counts]).astype(np.int32),
        slot=np.array(slot, np.int32),
        part_ptr=np.cumsum([0, *lengths]).astype(np.int32),
        part=np.array(part, np.int32),
        part_edge=np.array(part_edge, np.int32),
    )


@kernel
def _add_product(x, y, out):
    for i in range(out.size):
        out[i] += x[i] * y[i]


@kernel
def _divide(x, total, out):
    for i in range(out.size):
        out[i] = x[i] / total[i] if total[i] > 0.0 else 0.0


@kernel
def fill_reach(plan, targets, work, total, share, reach, n):
    """Fill reach, float64 (n_reached, n_block), from what `upward` left behind for n rows.

    `total` and `share` are buffers, float64 (n_block,). All 0 below the root where the row has no density.
    """
    reach[:, :n] = 0.0
    last = targets.node.size - 1
    reach[last, :n] = 1.0
    for position in range(last, -1, -1):
        node = targets.node[position]
        if plan.slot_of_node[node] >= 0 or work.node_at[node] < 0:
            continue
        own = reach[position, :n]
        first, end = plan.child_ptr[node], plan.child_ptr[node + 1]
        if plan.kind[node] == PRODUCT_KIND:
            for e in range(first, end):
                if targets.at[plan.child[e]] >= 0:
                    rows.add(own, reach[targets.at[plan.child[e]], :n])
        else:
            total[:n] = 0.0
            for e in range(first, end):
                rows.add(work.term[work.edge_at[e], :n], total[:n])
            _divide(own, total[:n], share[:n])
            for e in range(first, end):
                _add_product(share[:n], work.term[work.edge_at[e], :n], reach[targets.at[plan.child[e]], :n])


@kernel
def fill_part_weights(targets, log_weight, out):
    """Fill out, float64 (n_part,), with the weight of each piece within its slot; 1 for bare leaves."""
    for k in range(out.size):
        out[k] = math.exp(log_weight[targets.part_edge[k]]) if targets.part_edge[k] >= 0 else 1.0


@kernel
def fill_row_shares(targets, reach, weight, t, row, least, share):
    """Fill the shares of one column's pieces given one row."""
    for k in range(targets.slot_ptr[t], targets.slot_ptr[t + 1]):
        for j in range(targets.part_ptr[k], targets.part_ptr[k + 1]):
            share[targets.part[j]] = 0.0
    for k in range(targets.slot_ptr[t], targets.slot_ptr[t + 1]):
        own = reach[targets.slot[k], row]
        if own > least:
            for j in range(targets.part_ptr[k], targets.part_ptr[k + 1]):
                share[targets.part[j]] += own * weight[j]
