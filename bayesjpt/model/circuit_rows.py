"""The observed variable of a block: rows drawn from a circuit, with all latent choices summed out in the density."""

from __future__ import annotations

import hashlib

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution, _support_point
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.op import RandomVariable

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.kernels.density import rows_log_density
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model.distributions import apply_rv
from bayesjpt.model.priors import Priors
from bayesjpt.numerics.jit import source_version
from bayesjpt.table.schema import Schema


class FrozenCircuit:
    """A circuit, its schema and its priors as one hashable property of an op.

    Parameters
    ----------
    circuit : Circuit
    schema : Schema
    priors : Priors
    """

    def __init__(self, circuit: Circuit, schema: Schema, priors: Priors):
        self.circuit = circuit
        self.schema = schema
        self.priors = priors
        self.plan = make_plan(circuit, schema)
        schema_bytes = repr(schema.to_dict()).encode()
        prior_bytes = b"".join(array.tobytes() for array in priors)
        self.digest = hashlib.sha256(circuit.digest().encode() + schema_bytes + prior_bytes).hexdigest()

    def __eq__(self, other):
        return isinstance(other, FrozenCircuit) and other.digest == self.digest

    def __hash__(self):
        return hash(self.digest)

    def __repr__(self):
        return f"{self.circuit.n_node} nodes"


class CircuitLogDensity(Op):
    """Log density of rows, with every array of the plan as an input: one compilation serves all circuits."""

    __props__ = ()

    def make_node(self, *inputs):
        inputs = [pt.as_tensor(x) for x in inputs]
        return Apply(self, inputs, [pt.vector(dtype="float64", shape=(inputs[0].type.shape[0],))])

    def perform(self, node, inputs, outputs):
        values, missing, log_weight, theta, *plan = inputs
        outputs[0][0] = rows_log_density(values, missing, log_weight, theta, Plan(*plan))

    def connection_pattern(self, node):
        return [[True], [False], [True], [True], *([[False]] * (len(node.inputs) - 4))]


@register_funcify_default_op_cache_key(CircuitLogDensity)
def _circuit_log_density_numba(op, node, **kwargs):
    @numba_njit
    def circuit_log_density(values, missing, log_weight, theta, *plan):
        return rows_log_density(values, missing, log_weight, theta, Plan(*plan))

    return circuit_log_density, source_version()


class CircuitRowsRV(RandomVariable):
    """Rows of a circuit, given the mask of missing cells, the log weights of all edges and all parameters."""

    name = "circuit_rows"
    signature = "(d),(e),(t)->(d)"
    dtype = "float64"
    _print_name = ("CircuitMixture", "\\operatorname{CircuitMixture}")
    __props__ = ("name", "signature", "dtype", "inplace", "frozen")

    def __init__(self, frozen: FrozenCircuit | None = None, **kwargs):
        self.frozen = frozen
        super().__init__(**kwargs)

    def rng_fn(self, rng, missing, log_weight, theta, size=None):
        shape = np.shape(missing) if size is None else (*size, np.shape(missing)[-1])
        batch = shape[:-1]
        plan = self.frozen.plan
        if all(n == 1 for n in log_weight.shape[:-1]):
            out = np.empty((int(np.prod(batch, dtype=int)), shape[-1]))
            sample_rows(plan, np.ascontiguousarray(log_weight).ravel(), np.ascontiguousarray(theta).ravel(), rng, out)
            return out.reshape(shape)
        log_weights = np.broadcast_to(log_weight, (*batch, log_weight.shape[-1]))
        thetas = np.broadcast_to(theta, (*batch, theta.shape[-1]))
        out = np.empty(shape)
        for index in np.ndindex(batch):
            row = np.empty((1, shape[-1]))
            sample_rows(plan, np.ascontiguousarray(log_weights[index]), np.ascontiguousarray(thetas[index]), rng, row)
            out[index] = row[0]
        return out


@numba_core_rv_funcify.register(CircuitRowsRV)
def _circuit_rows_numba(op, node):
    plan = op.frozen.plan

    @numba_njit
    def circuit_rows(rng, missing, log_weight, theta):
        out = np.empty((1, missing.shape[0]))
        sample_rows(plan, log_weight, theta, rng, out)
        return out[0]

    # the arrays are constants of the compiled function, so its key holds their content too
    return circuit_rows, source_version() ^ int(op.frozen.digest[:14], 16)


class CircuitRows(Distribution):
    """Multivariate distribution of rows under a circuit."""

    rv_type = CircuitRowsRV

    @classmethod
    def dist(cls, frozen, missing, weight, theta, **kwargs):
        parameters = pt.as_tensor(missing), pt.log(weight), pt.as_tensor(theta)
        return super().dist(list(parameters), frozen=frozen, **kwargs)

    @classmethod
    def rv_op(cls, missing, log_weight, theta, *, frozen, size=None, rng=None):
        return apply_rv(CircuitRowsRV(frozen), missing, log_weight, theta, size=size, rng=rng)


@_logprob.register(CircuitRowsRV)
def _circuit_rows_logp(op, values, rng, size, missing, log_weight, theta, **kwargs):
    (rows,) = values
    log_weight, theta = (p[(0,) * (p.type.ndim - 1)] for p in (log_weight, theta))
    return CircuitLogDensity()(rows, missing, log_weight, theta, *[pt.constant(array) for array in op.frozen.plan])


@_support_point.register(CircuitRowsRV)
def _circuit_rows_support_point(op, rv, rng, size, missing, log_weight, theta):
    centre = np.array([c.location if c.base == "real" else max(c.support[0], 0.0) for c in op.frozen.schema.columns])
    return pt.broadcast_to(pt.constant(centre), rv.shape)
