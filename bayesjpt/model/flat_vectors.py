"""The flat vectors of a block from its variables, and the shares of likelihoods, as one op each.

As chains of PyTensor's own operations (joins, indices, increments level by level) they took seconds to compile. Each op
has that form too, `symbolic`: for derivatives, and in its place where PyTensor compiles for JAX.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, pullback
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.link.utils import compile_function_src

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.scope import levels
from bayesjpt.internals import numba_njit, register_funcify_default_op_cache_key
from bayesjpt.model.versions import ops_version
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.jit import kernel, read_only


def placed(n: int, vectors: list[tuple[np.ndarray, Any]], otherwise: float) -> Any:
    """Return the symbolic vector (n,) that has each vector's entries at its positions.

    Parameters
    ----------
    n : int
    vectors : list of (int (m,), TensorVariable (m,))
        Positions, which are apart, and what stands there.
    otherwise : float
        What stands at all other positions.
    """
    joined = np.zeros(n, np.int64)
    first = 1  # entry 0 of what is joined stands for all that no vector has
    for positions, _ in vectors:
        joined[positions] = first + np.arange(len(positions))
        first += len(positions)
    return Placed()(pt.constant([otherwise]), pt.constant(joined), *(vector for _, vector in vectors))


def type_weights(circuit: Circuit, n_column: int, n_family: int, weight: Any) -> Any:
    """Return the symbolic shares (n_column, n_family) of families in columns, given the weights (n_edge,) of edges.

    References
    ----------
    Vergari et al. (2019), Automatic Bayesian Density Analysis, equation 3: weights flow down from the root.
    """
    depth = levels(circuit)
    edges = np.concatenate([np.asarray(level) for level in depth]) if depth else np.zeros(0, np.int64)
    arrays = (
        np.cumsum([0, *(len(level) for level in depth)]),
        edges,
        circuit.edge_parent()[edges],
        circuit.child[edges],
        circuit.leaf_node(),
        circuit.leaf_var * n_family + circuit.leaf_family,
        np.array([circuit.n_node, n_column, n_family]),
    )
    return TypeWeights()(weight, *(pt.constant(np.asarray(array, np.int64)) for array in arrays))


class FlatOp(Op):
    """An op that is one kernel, and that has a form of PyTensor's operations."""

    __props__ = ()

    @staticmethod
    def symbolic(*inputs) -> Any:
        """Return the outputs in PyTensor's operations, a list."""
        raise NotImplementedError  # each op below has its own

    def connection_pattern(self, node):
        return [[x.type.dtype == "float64"] for x in node.inputs]

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives with respect to real inputs, as of the operations."""
        # of variables in place of the inputs: one input may be computed from another, and counts for itself alone here
        stands = [x.type() if x.type.dtype == "float64" else x for x in inputs]
        real = [new for new, x in zip(stands, inputs, strict=True) if new is not x]
        # an output without a cotangent has a type of its own
        known = [
            (x, slope)
            for x, slope in zip(self.symbolic(*stands), cotangents, strict=True)
            if not isinstance(slope.type, DisconnectedType)
        ]
        slopes: Any = pullback([x for x, _ in known], real, [slope for _, slope in known])
        found = iter(clone_replace(slopes, dict(zip(stands, inputs, strict=True))))
        return [disconnected_type() if new is x else next(found) for new, x in zip(stands, inputs, strict=True)]


class Placed(FlatOp):
    """Vectors that are joined behind a first number, at the places in an order."""

    def make_node(self, otherwise, joined, *vectors):
        vectors = [pt.as_tensor(x) for x in vectors]
        return Apply(self, [otherwise, joined, *vectors], [pt.vector(dtype="float64", shape=joined.type.shape)])

    @staticmethod
    def symbolic(otherwise, joined, *vectors):
        return [pt.concatenate([otherwise, *vectors])[joined]]

    def perform(self, node, inputs, outputs):
        otherwise, joined, *vectors = inputs
        outputs[0][0] = np.concatenate([otherwise, *vectors])[joined]


class TypeWeights(FlatOp):
    """Shares of families in columns; edges come level by level from the root, with offsets of the levels."""

    def make_node(self, weight, ptr, edges, parent, child, leaf_node, place, sizes):
        _, n_column, n_family = sizes.data
        kind = pt.matrix(dtype="float64", shape=(int(n_column), int(n_family)))
        return Apply(self, [pt.as_tensor(weight), ptr, edges, parent, child, leaf_node, place, sizes], [kind])

    @staticmethod
    def symbolic(weight, ptr, edges, parent, child, leaf_node, place, sizes):
        n_node, n_column, n_family = sizes.data.tolist()
        reach = pt.constant((np.arange(n_node) == n_node - 1).astype(np.float64))
        for lo, hi in zip(ptr.data[:-1].tolist(), ptr.data[1:].tolist(), strict=True):
            passed = reach[parent.data[lo:hi]] * weight[edges.data[lo:hi]]
            reach = pt.inc_subtensor(reach[child.data[lo:hi]], passed)
        shares = pt.constant(np.zeros(n_column * n_family))
        return [pt.inc_subtensor(shares[place.data], reach[leaf_node.data]).reshape((n_column, n_family))]

    def perform(self, node, inputs, outputs):
        weight, _, *arrays = inputs
        outputs[0][0] = shares_of_types(weight, *map(read_only, arrays))


@apart
@kernel
def shares_of_types(weight, edges, parent, child, leaf_node, place, sizes):
    """Return float64 (n_column, n_family); sizes are the numbers of nodes, columns and families."""
    reach, out = np.zeros(sizes[0]), np.zeros((sizes[1], sizes[2]))
    reach[-1] = 1.0
    # level by level: what reaches a parent is complete when its edges have their turn
    for k in range(edges.size):
        reach[child[k]] += reach[parent[k]] * weight[edges[k]]
    for k in range(place.size):
        out[place[k] // sizes[2], place[k] % sizes[2]] += reach[leaf_node[k]]
    return out


@apart
@kernel
def copy_behind(vector, at, out):
    """Copy a vector into out from `at` on; return where it ends."""
    for i in range(vector.size):
        out[at + i] = vector[i]
    return at + vector.size


@apart
@kernel
def take(values, order):
    """Return float64 (n,): the values in an order."""
    out = np.empty(order.size)
    for i in range(order.size):
        out[i] = values[order[i]]
    return out


@register_funcify_default_op_cache_key(Placed)
def _placed_numba(op, node, **kwargs):
    # written out, as PyTensor does it: a loop over arrays of several types is none of numba's
    names = [f"vector_{i}" for i in range(len(node.inputs) - 2)]
    lines = [
        f"def placed(otherwise, order, {', '.join(names)}):",
        f"    joined = np.empty(1 + {' + '.join(f'{name}.size' for name in names)})",
        "    end = copy_behind(otherwise, 0, joined)",
        *(f"    end = copy_behind({name}, end, joined)" for name in names),
        "    return take(joined, order)",
    ]
    function = compile_function_src("\n".join(lines), "placed", {"np": np, "copy_behind": copy_behind, "take": take})
    return numba_njit(function), ops_version()


@register_funcify_default_op_cache_key(TypeWeights)
def _type_weights_numba(op, node, **kwargs):
    @numba_njit
    def type_weights(weight, ptr, edges, parent, child, leaf_node, place, sizes):
        return shares_of_types(weight, edges, parent, child, leaf_node, place, sizes)

    return type_weights, ops_version()
