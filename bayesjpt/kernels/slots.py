"""The slots that rows take: which of some columns' slots go together, and how often.

Every row takes one *slot* of each column: one dictionary, at the end of its path. One pass from the leaves gives the
slots that rows take below every node, `path_probabilities` how often rows come through it; two slots are taken
together where their paths part, at a product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.lent import by_address


@by_address
class Slots(NamedTuple):
    """The slots of some columns, and which of them lie below every node.

    Attributes
    ----------
    ptr : int32 (n_target + 1,)
        Slots of each column.
    node : int32 (n_slot,)
    entry_ptr : int32 (n_slot + 1,), entry_leaf, entry_edge : int32 (n_entry,)
        Leaves of each slot, and the edges with their weights; -1 where the slot is a leaf.
    below_ptr : int32 (n_node + 1,), below : int32 (n_below,)
        Slots below each node, ascending; a slot's node has itself.
    edge_ptr : int32 (n_edge + 1,), edge_place : int32 (n_place,)
        For each slot below an edge's child: its place among those below the parent.
    """

    ptr: np.ndarray
    node: np.ndarray
    entry_ptr: np.ndarray
    entry_leaf: np.ndarray
    entry_edge: np.ndarray
    below_ptr: np.ndarray
    below: np.ndarray
    edge_ptr: np.ndarray
    edge_place: np.ndarray


def make_slots(plan: Plan, columns: Sequence[int]) -> Slots:
    """Return the slots of some columns, in the order of the columns."""
    of_column = [plan.slot_node[plan.slot_column == column] for column in columns]
    node = np.concatenate(of_column).astype(np.int32)
    number = {int(n): k for k, n in enumerate(node)}
    leaf: list[int] = []
    edge: list[int] = []
    counts = []
    for n in node.tolist():
        edges = [-1] if plan.kind[n] == arrays.LEAF else list(range(plan.child_ptr[n], plan.child_ptr[n + 1]))
        leaf += [int(plan.leaf_of[n if e < 0 else plan.child[e]]) for e in edges]
        edge += edges
        counts.append(len(edges))
    below: list[list[int]] = []
    places: list[list[int]] = []
    for n in range(plan.kind.size):
        edges = range(plan.child_ptr[n], plan.child_ptr[n + 1])
        if plan.slot_of_node[n] >= 0:
            below.append([number[n]] if n in number else [])
            places += [[] for _ in edges]
            continue
        found = sorted({slot for e in edges for slot in below[plan.child[e]]})
        place = {slot: k for k, slot in enumerate(found)}
        below.append(found)
        places += [[place[slot] for slot in below[plan.child[e]]] for e in edges]
    return Slots(
        ptr=_pointer([part.size for part in of_column]),
        node=node,
        entry_ptr=_pointer(counts),
        entry_leaf=np.array(leaf, np.int32),
        entry_edge=np.array(edge, np.int32),
        below_ptr=_pointer([len(part) for part in below]),
        below=np.array([slot for part in below for slot in part], np.int32),
        edge_ptr=_pointer([len(part) for part in places]),
        edge_place=np.array([k for part in places for k in part], np.int32),
    )


def _pointer(lengths: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int32)


def apart(plan: Plan, columns: Sequence[int]) -> np.ndarray:
    """Return bool (n_target, n_target): columns of which no sum has to choose slots together.

    From the root down, a product with both columns below one child hands over to it, and so does a sum with one child;
    a product that parts them makes them independent.
    """
    scope = np.zeros((plan.kind.size, len(columns)), bool)
    number = {column: k for k, column in enumerate(columns)}
    for node in range(plan.kind.size):
        if plan.kind[node] == LEAF_KIND:
            column = int(plan.feature_column[plan.leaf_value[plan.leaf_of[node]]])
            if column in number:
                scope[node, number[column]] = True
        else:
            scope[node] = scope[plan.child[plan.child_ptr[node] : plan.child_ptr[node + 1]]].any(axis=0)
    out = np.zeros((len(columns), len(columns)), bool)
    pending = [plan.kind.size - 1]
    while pending:
        node = pending.pop()
        children = plan.child[plan.child_ptr[node] : plan.child_ptr[node + 1]]
        if plan.kind[node] == arrays.PRODUCT:
            inside = scope[children]
            together = (inside[:, :, None] & inside[:, None, :]).any(axis=0)
            out |= scope[node][:, None] & scope[node][None, :] & ~together
            pending += children.tolist()
        elif children.size == 1:
            pending += children.tolist()
    return out


@kernel
def _fill_taken(plan, slots, log_weight, taken):
    """Fill taken, float64 (n_below,), with the probability of each slot below a node for a row that comes there."""
    taken[:] = 0.0
    for node in range(plan.kind.size):
        at = slots.below_ptr[node]
        if plan.slot_of_node[node] >= 0:
            if slots.below_ptr[node + 1] > at:
                taken[at] = 1.0
            continue
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            weight = 1.0 if plan.kind[node] == PRODUCT_KIND else math.exp(log_weight[e])
            child = slots.below_ptr[plan.child[e]]
            first = slots.edge_ptr[e]
            for k in range(slots.edge_ptr[e + 1] - first):
                taken[at + slots.edge_place[first + k]] += weight * taken[child + k]


@kernel
def _fill_joint(plan, slots, reach, taken, joint):
    """Fill joint, float64 (n_slot, n_slot), with the probability that a row takes two slots, the one above first."""
    joint[:] = 0.0
    for node in range(plan.kind.size):
        if plan.kind[node] != PRODUCT_KIND or reach[node] == 0.0:
            continue
        for first in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            one = plan.child[first]
            for second in range(first + 1, plan.child_ptr[node + 1]):
                other = plan.child[second]
                for i in range(slots.below_ptr[one], slots.below_ptr[one + 1]):
                    share = reach[node] * taken[i]
                    for j in range(slots.below_ptr[other], slots.below_ptr[other + 1]):
                        p, q = slots.below[i], slots.below[j]
                        joint[min(p, q), max(p, q)] += share * taken[j]


@kernel
def fill_joint(plan, slots, log_weight, reach, taken, out):
    """Fill out, float64 (n_slot, n_slot), with the probability that a row takes two slots.

    Filled above the diagonal; on it lies the probability of each slot. Two slots of one column are never taken
    together. `reach` (n_node,) are `path_probabilities`, `taken` (n_below,) is a buffer.
    """
    _fill_taken(plan, slots, log_weight, taken)
    _fill_joint(plan, slots, reach, taken, out)
    for slot in range(slots.node.size):
        out[slot, slot] = reach[slots.node[slot]]
