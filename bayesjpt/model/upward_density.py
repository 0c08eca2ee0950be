"""From log densities of leaves to that of the root of a circuit whose weights are numbers: one op, and its derivative.

Group by group, as `bayesjpt.model.node_groups` has them, in PyTensor's own operations this was most of what NUTS had to
compile. The ops have that form, too: for JAX, and for second derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_grad, disconnected_type
from pytensor.graph.basic import Apply

from bayesjpt.internals import numba_njit, register_funcify_default_op_cache_key
from bayesjpt.model.flat_vectors import FlatOp
from bayesjpt.model.node_groups import NodeGroup
from bayesjpt.model.versions import ops_version
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.jit import kernel, read_only


def root_value(leaves: Any, groups: list[NodeGroup], log_weight: np.ndarray) -> Any:
    """Return the symbolic values (n,) of the root.

    Parameters
    ----------
    leaves : TensorVariable (n_leaf, n), nats
    groups : list of NodeGroup
    log_weight : float64 (n_edge,), nats
    """
    none = np.zeros(0, np.int64)  # of a circuit that is one leaf
    edges = np.concatenate([none, *(group.edges.ravel() for group in groups)])
    arrays = (
        np.cumsum([0, *(len(group.children) for group in groups)]),
        np.cumsum([0, *(group.children.shape[1] for group in groups for _ in group.children)]),
        np.concatenate([none, *(group.children.ravel() for group in groups)]),
        np.repeat([group.is_product for group in groups], [len(group.children) for group in groups]),
    )
    constants = (pt.constant(np.asarray(array, np.int64)) for array in arrays)
    value, _ = NodeValues().make_node(leaves, *constants, pt.constant(log_weight[edges])).outputs
    return value[-1]


def _groups_of(group_ptr: Any, ptr: Any) -> Iterator[tuple[slice, slice, tuple[int, int]]]:
    """Yield (nodes, edges, numbers of nodes and of children of each) of the groups."""
    for first, last in zip(group_ptr.data[:-1].tolist(), group_ptr.data[1:].tolist(), strict=True):
        start, end = ptr.data[[first, last]].tolist()
        yield slice(first, last), slice(start, end), (last - first, (end - start) // (last - first))


class NodeValues(FlatOp):
    """Values (n_node, n) of leaves and, behind these, inner nodes; shares (n_edge, n) of children, 1 below products.

    Inner nodes come in groups, with offsets of groups and of children.
    """

    def make_node(self, leaves, *arrays):
        n_leaf, n = leaves.type.shape
        n_node = None if n_leaf is None else n_leaf + arrays[3].type.shape[0]
        shapes = ((n_node, n), (arrays[2].type.shape[0], n))
        return Apply(self, [leaves, *arrays], [pt.matrix(dtype="float64", shape=shape) for shape in shapes])

    @staticmethod
    def symbolic(leaves, group_ptr, ptr, child, is_product, log_weight):
        value, shares = leaves, [leaves[:0]]
        for nodes, edges, shape in _groups_of(group_ptr, ptr):
            terms = value[child.data[edges]].reshape((*shape, -1))
            if is_product.data[nodes][0]:
                new, share = terms.sum(axis=1), pt.ones_like(terms)
            else:
                new, share = _mixed(terms + log_weight[edges].reshape((*shape, 1)))
            value = pt.concatenate([value, new])
            shares.append(share.reshape((shape[0] * shape[1], -1)))
        return [value, pt.concatenate(shares)]

    def perform(self, node, inputs, outputs):
        leaves, _, *arrays = inputs
        outputs[0][0], outputs[1][0] = values_of(leaves, *map(read_only, arrays))

    def connection_pattern(self, node):
        return [[k == 0] * 2 for k in range(len(node.inputs))]

    def pullback(self, inputs, outputs, cotangents):
        """Return the flow of each leaf: a sum hands out shares, a product its flow to each child."""
        if isinstance(cotangents[1].type, DisconnectedType):
            _, group_ptr, ptr, child, is_product, _ = inputs
            flows = LeafFlows()(cotangents[0], outputs[1], group_ptr, ptr, child, is_product)
        else:  # of second derivatives
            flows, *_ = super().pullback(inputs, outputs, cotangents)
        return [flows, *(disconnected_type() for _ in inputs[1:])]


class LeafFlows(FlatOp):
    """Derivatives (n_leaf, n) with respect to leaves, of the cotangents of all nodes' values and children's shares."""

    def make_node(self, cotangent, shares, *arrays):
        n_node, n = cotangent.type.shape
        n_leaf = None if n_node is None else n_node - arrays[3].type.shape[0]
        return Apply(self, [cotangent, shares, *arrays], [pt.matrix(dtype="float64", shape=(n_leaf, n))])

    @staticmethod
    def symbolic(cotangent, shares, group_ptr, ptr, child, is_product):
        flow, n_inner = cotangent, is_product.data.size
        for nodes, edges, shape in reversed(list(_groups_of(group_ptr, ptr))):
            # from the end, where the ends of slices are numbers, as JAX wants them
            own = flow[nodes.start - n_inner : (nodes.stop - n_inner) or None][:, None]
            passed = own * shares[edges].reshape((*shape, -1))
            flow = pt.inc_subtensor(flow[child.data[edges]], passed.reshape((shape[0] * shape[1], -1)))
        return [flow[:-n_inner] if n_inner else flow]

    def perform(self, node, inputs, outputs):
        cotangent, shares, _, *arrays = inputs
        outputs[0][0] = flows_of(cotangent, shares, *map(read_only, arrays))


def _mixed(terms: Any) -> tuple[Any, Any]:
    """Return the log sum of exponentials along axis 1 and the share of each; -inf and 0 where all of them are 0."""
    # the shift cancels: no derivative runs through it
    largest: Any = disconnected_grad(pt.max(terms, axis=1, keepdims=True))
    largest = pt.switch(largest > -np.inf, largest, 0.0)
    exponentials = pt.exp(terms - largest)
    total = exponentials.sum(axis=1, keepdims=True)
    # log 0 has an infinite slope, also in the branch that is not taken
    safe: Any = pt.switch(total > 0.0, total, 1.0)
    value: Any = pt.switch(total > 0.0, pt.log(safe) + largest, -np.inf)
    return value[:, 0], exponentials / safe


@apart
@kernel
def values_of(leaves, ptr, child, is_product, log_weight):
    """Return float64 (n_node, n) and (n_edge, n): values of leaves and inner nodes, and shares of children."""
    n_leaf, n = leaves.shape
    value, shares, largest = np.empty((n_leaf + is_product.size, n)), np.ones((child.size, n)), np.empty(n)
    value[:n_leaf] = leaves
    for k in range(is_product.size):
        out = value[n_leaf + k]
        out[:] = 0.0
        if is_product[k] != 0:
            for edge in range(ptr[k], ptr[k + 1]):
                terms = value[child[edge]]
                for row in range(n):
                    out[row] += terms[row]
            continue
        largest[:] = -math.inf
        for edge in range(ptr[k], ptr[k + 1]):
            terms = value[child[edge]]
            for row in range(n):
                largest[row] = max(largest[row], terms[row] + log_weight[edge])
        for row in range(n):
            largest[row] = largest[row] if largest[row] > -math.inf else 0.0
        for edge in range(ptr[k], ptr[k + 1]):
            terms, share = value[child[edge]], shares[edge]
            for row in range(n):
                share[row] = math.exp(terms[row] + log_weight[edge] - largest[row])
                out[row] += share[row]
        for edge in range(ptr[k], ptr[k + 1]):
            share = shares[edge]
            for row in range(n):
                share[row] /= out[row] if out[row] > 0.0 else 1.0
        for row in range(n):
            out[row] = math.log(out[row]) + largest[row] if out[row] > 0.0 else -math.inf
    return value, shares


@apart
@kernel
def flows_of(cotangent, shares, ptr, child, is_product):
    """Return float64 (n_leaf, n): derivatives with respect to leaves."""
    n_leaf, n = cotangent.shape[0] - is_product.size, cotangent.shape[1]
    flow = cotangent.copy()
    # parents come behind their children: what reaches a node is complete when it has its turn
    for k in range(is_product.size - 1, -1, -1):
        own = flow[n_leaf + k]
        for edge in range(ptr[k], ptr[k + 1]):
            share, out = shares[edge], flow[child[edge]]
            for row in range(n):
                out[row] += own[row] * share[row]
    return flow[:n_leaf].copy()


@register_funcify_default_op_cache_key(NodeValues)
def _node_values_numba(op, node, **kwargs):
    @numba_njit
    def node_values(leaves, group_ptr, ptr, child, is_product, log_weight):
        return values_of(leaves, ptr, child, is_product, log_weight)

    return node_values, ops_version()


@register_funcify_default_op_cache_key(LeafFlows)
def _leaf_flows_numba(op, node, **kwargs):
    @numba_njit
    def leaf_flows(cotangent, shares, group_ptr, ptr, child, is_product):
        return flows_of(cotangent, shares, ptr, child, is_product)

    return leaf_flows, ops_version()
