"""Path probabilities: given a row, the probability that its path runs through a node.

Only nodes above some wanted columns are visited, from the root down to the columns' slots, which take the place of
inputs. The pairs of these nodes, for all that the row observes, were left by `bayesjpt.kernels.upward`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.mixture import Components
from bayesjpt.kernels.passes import Graph, down, gather_weights, make_graph, nodes_above, numbers_in
from bayesjpt.kernels.slots import members_of, pointer
from bayesjpt.numerics.borrowed import by_address
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import inlined, kernel


@by_address
class Targets(NamedTuple):
    """The nodes above some columns, and the slots of those columns.

    Attributes
    ----------
    graph : Graph
        Of the nodes whose scope meets the columns, slots being the inputs.
    slot_ptr : int32 (n_target + 1,), slot : int32 (n_target_slot,)
        Nodes of the graph that are each column's slots.
    part_ptr : int32 (n_target_slot + 1,), part : int32 (n_part,), part_edge : int32 (n_part,)
        The components of each slot, by number, and the edges of their weights (-1 for bare leaves).
    """

    graph: Graph
    slot_ptr: np.ndarray
    slot: np.ndarray
    part_ptr: np.ndarray
    part: np.ndarray
    part_edge: np.ndarray


def make_targets(plan: Plan, components: Components, leaves: np.ndarray, columns: Sequence[int]) -> Targets:
    """Return the nodes above some columns.

    `components` are those columns' whole leaves, `leaves` (n_component,) which leaf each is.
    """
    # members of dictionaries have no row of values: left out, their slots are inputs
    graph = make_graph(plan, nodes_above(plan, columns) & (plan.node_row >= 0))
    at = numbers_in(graph, plan.kind.size)
    component_of = {int(leaf): number for number, leaf in enumerate(leaves)}
    of_column = [plan.slot_node[plan.slot_column == column] for column in columns]
    slots = np.concatenate(of_column)
    part_ptr, leaf, edge = members_of(plan, slots)
    return Targets(
        graph=graph,
        slot_ptr=pointer([nodes.size for nodes in of_column]),
        slot=at[slots].astype(np.int32),
        part_ptr=part_ptr,
        part=np.array([component_of[number] for number in leaf.tolist()], np.int32),
        part_edge=edge,
    )


@kernel
def path_buffers(targets, n_block):
    """Return the buffers of `path_shares`: for the weights, the pairs and the flow of the nodes."""
    return np.empty((targets.graph.edge.size, 1)), np.empty((3, targets.graph.node.size * n_block))


@inlined
def _copy_pair(graph, work, k, n, m, s):
    at = work.node_at[graph.node[k]]
    if at >= 0:
        copy_into(work.m[at, :n], m[k])
        copy_into(work.s[at, :n], s[k])
    else:  # no row of this segment can take it
        m[k], s[k] = -np.inf, 0.0


@kernel
def path_shares(plan, targets, log_weight, work, buffers, n):
    """Return the path probability of the nodes, float64 (n_reached, n), from what `upward` left behind for n rows.

    It lies in the buffers. All 0 below the root where the row has no density.
    """
    graph, weight = targets.graph, buffers[0]
    n_node = graph.node.size
    # whole rows of a contiguous array, also where the last block is shorter than the others
    m = buffers[1][0, : n_node * n].reshape(n_node, n)
    s = buffers[1][1, : n_node * n].reshape(n_node, n)
    flow = buffers[1][2, : n_node * n].reshape(n_node, n)
    first = n_node - graph.is_product.size
    for k in range(graph.is_product.size):
        if not graph.is_product[k]:  # a product hands its flow on as it is
            _copy_pair(graph, work, first + k, n, m, s)
            for j in range(graph.child_ptr[k], graph.child_ptr[k + 1]):
                _copy_pair(graph, work, graph.child[j], n, m, s)
    gather_weights(graph, log_weight.reshape(1, log_weight.size), weight)
    flow[n_node - 1] = 1.0
    down(graph, weight, m, s, flow)
    return flow


@kernel
def fill_part_weights(targets, log_weight, out):
    """Fill out, float64 (n_part,), with the weight of each component within its slot; 1 for bare leaves."""
    for k in range(out.size):
        out[k] = math.exp(log_weight[targets.part_edge[k]]) if targets.part_edge[k] >= 0 else 1.0


@kernel
def fill_row_shares(targets, path_share, weight, t, row, least, share):
    """Fill the shares of one column's components given one row."""
    for k in range(targets.slot_ptr[t], targets.slot_ptr[t + 1]):
        for j in range(targets.part_ptr[k], targets.part_ptr[k + 1]):
            share[targets.part[j]] = 0.0
    for k in range(targets.slot_ptr[t], targets.slot_ptr[t + 1]):
        reached = path_share[targets.slot[k], row]
        if reached > least:
            for j in range(targets.part_ptr[k], targets.part_ptr[k + 1]):
                share[targets.part[j]] += reached * weight[j]
