"""The slots that rows take: which of some columns' slots go together, and how often.

Every row takes one *slot* of each column: one dictionary, at the end of its path. What goes in is that a row takes one
slot, value 0 at the others of its column, an entry of the batch for each slot; what is collected is how probable that
is, and its share that runs through each slot of the other columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.passes import Graph, batch_size, down, gather_weights, make_graph, nodes_above, numbers_in, up
from bayesjpt.numerics.borrowed import by_address
from bayesjpt.numerics.jit import kernel


@by_address
class Slots(NamedTuple):
    """The slots of some columns, and the nodes above them.

    Attributes
    ----------
    graph : Graph
        Of the nodes whose scope meets the columns, slots being the inputs.
    ptr : int32 (n_target + 1,)
        Slots of each column.
    node : int32 (n_slot,)
        Which of the graph's nodes each slot is.
    entry_ptr : int32 (n_slot + 1,), entry_leaf, entry_edge : int32 (n_entry,)
        Leaves of each slot, and the edges with their weights; -1 where the slot is a leaf.
    n_batch : int64 (1,)
        Slots that go into the passes at once.
    """

    graph: Graph
    ptr: np.ndarray
    node: np.ndarray
    entry_ptr: np.ndarray
    entry_leaf: np.ndarray
    entry_edge: np.ndarray
    n_batch: np.ndarray


def make_slots(plan: Plan, columns: Sequence[int]) -> Slots:
    """Return the slots of some columns, in the order of the columns."""
    of_column = [plan.slot_node[plan.slot_column == column] for column in columns]
    node = np.concatenate(of_column)
    graph = make_graph(plan, nodes_above(plan, columns) & (plan.node_row >= 0))
    entry_ptr, leaf, edge = members_of(plan, node)
    return Slots(
        graph=graph,
        ptr=pointer([part.size for part in of_column]),
        node=numbers_in(graph, plan.kind.size)[node],
        entry_ptr=entry_ptr,
        entry_leaf=leaf,
        entry_edge=edge,
        n_batch=np.array([batch_size(3 * graph.node.size, node.size)], np.int64),
    )


def members_of(plan: Plan, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leaves of some slots, int32: where each slot's begin, the leaves, and the edges with their weights.

    A slot that is a leaf has itself alone, and the edge -1.
    """
    counts: list[int] = []
    below: list[int] = []
    edges: list[int] = []
    for node in nodes.tolist():
        own = list(range(plan.child_ptr[node], plan.child_ptr[node + 1]))
        below += plan.child[own].tolist() or [node]
        edges += own or [-1]
        counts.append(max(len(own), 1))
    return pointer(counts), plan.leaf_of[np.array(below, np.int64)], np.array(edges, np.int32)


def pointer(lengths: Sequence[int]) -> np.ndarray:
    """Return where parts of some lengths begin, one behind the other, int32 (n + 1,)."""
    return np.cumsum([0, *lengths]).astype(np.int32)


def apart(plan: Plan, columns: Sequence[int]) -> np.ndarray:
    """Return bool (n_target, n_target): columns of which no sum has to choose slots together.

    From the root down, a product with both columns below one child hands over to it, and so does a sum with one child;
    a product that parts them makes them independent.
    """
    scope = np.stack([nodes_above(plan, [column]) for column in columns], axis=1)
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
def joint_buffers(slots):
    """Return the buffers of `fill_joint`: for the weights, and for the pairs and the flow of a batch of slots."""
    n_node = slots.graph.node.size
    return np.empty((slots.graph.edge.size, 1)), np.empty((3, n_node * slots.n_batch[0]))


@kernel
def fill_joint(slots, log_weight, buffers, out):
    """Fill out, float64 (n_slot, n_slot), with the probability that a row takes two slots.

    Filled above the diagonal; on it lies the probability of each slot. Two slots of one column are never taken
    together. `buffers` are `joint_buffers`.
    """
    graph, weight = slots.graph, buffers[0]
    n_node, n_slot = graph.node.size, slots.node.size
    n_input = n_node - graph.is_product.size
    gather_weights(graph, log_weight.reshape(1, log_weight.size), weight)
    t = 0
    for lo in range(0, n_slot, slots.n_batch[0]):
        n = min(slots.n_batch[0], n_slot - lo)
        m = buffers[1][0, : n_node * n].reshape(n_node, n)
        s = buffers[1][1, : n_node * n].reshape(n_node, n)
        flow = buffers[1][2, : n_node * n].reshape(n_node, n)
        # value 1, but for the slots that are ruled out below
        m[:n_input] = 0.0
        for k in range(n):
            # t is the column of the slot; slots are in the order of their columns, so it only moves forward
            while lo + k >= slots.ptr[t + 1]:
                t += 1
            for other in range(slots.ptr[t], slots.ptr[t + 1]):
                if other != lo + k:
                    m[slots.node[other], k] = -np.inf
        up(graph, weight, m, s)
        for k in range(n):
            # the slot's probability in place of 1: what runs through another slot is the probability of both
            flow[n_node - 1, k] = s[n_node - 1, k] * math.exp(m[n_node - 1, k])
        down(graph, weight, m, s, flow)
        for k in range(n):
            # symmetric, so the half above the diagonal is enough
            for other in range(lo + k, n_slot):
                out[lo + k, other] = flow[slots.node[other], k]
