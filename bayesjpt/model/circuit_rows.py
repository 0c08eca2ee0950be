"""The observed variable of a block: rows drawn from a circuit, with all latent choices summed out in the density."""

from __future__ import annotations

import hashlib
import warnings

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution, _support_point
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.tensor.random.op import RandomVariable

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.kernels.density import rows_log_density
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model.distributions import apply_rv
from bayesjpt.model.priors import Priors
from bayesjpt.numerics.jit import source_version
from bayesjpt.table.schema import Schema

# one call draws the whole batch, so object mode costs nothing that matters
warnings.filterwarnings("ignore", message="Numba will use object mode to run circuit_rows")


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
        prior_bytes = b"".join(array.tobytes() for array in priors)
        self.digest = hashlib.sha256(circuit.digest().encode() + repr(schema).encode() + prior_bytes).hexdigest()

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
    """Rows of a circuit, given the mask of missing cells, the weights of all edges and all parameters."""

    name = "circuit_rows"
    signature = "(d),(e),(t)->(d)"
    dtype = "float64"
    _print_name = ("CircuitMixture", "\\operatorname{CircuitMixture}")
    __props__ = ("name", "signature", "dtype", "inplace", "frozen")

    def __init__(self, frozen: FrozenCircuit | None = None, **kwargs):
        self.frozen = frozen
        super().__init__(**kwargs)

    def rng_fn(self, rng, missing, weight, theta, size=None):
        shape = np.shape(missing) if size is None else (*size, np.shape(missing)[-1])
        batch = shape[:-1]
        plan = self.frozen.plan
        if weight.ndim == 1 or all(n == 1 for n in weight.shape[:-1]):
            out = np.empty((int(np.prod(batch, dtype=int)), shape[-1]))
            sample_rows(plan, np.log(weight).reshape(-1), np.ascontiguousarray(theta).reshape(-1), rng, out)
            return out.reshape(shape)
        weights = np.broadcast_to(weight, (*batch, weight.shape[-1]))
        thetas = np.broadcast_to(theta, (*batch, theta.shape[-1]))
        out = np.empty(shape)
        for index in np.ndindex(batch):
            row = np.empty((1, shape[-1]))
            sample_rows(plan, np.log(weights[index]), np.ascontiguousarray(thetas[index]), rng, row)
            out[index] = row[0]
        return out


class CircuitRows(Distribution):
    """Multivariate distribution of rows under a circuit."""

    rv_type = CircuitRowsRV

    @classmethod
    def dist(cls, frozen, missing, weight, theta, **kwargs):
        return super().dist([pt.as_tensor(p) for p in (missing, weight, theta)], frozen=frozen, **kwargs)

    @classmethod
    def rv_op(cls, missing, weight, theta, *, frozen, size=None, rng=None):
        return apply_rv(CircuitRowsRV(frozen), missing, weight, theta, size=size, rng=rng)


@_logprob.register(CircuitRowsRV)
def _circuit_rows_logp(op, values, rng, size, missing, weight, theta, **kwargs):
    (rows,) = values
    weight, theta = (p[(0,) * (p.type.ndim - 1)] for p in (weight, theta))
    return CircuitLogDensity()(rows, missing, pt.log(weight), theta, *[pt.constant(array) for array in op.frozen.plan])


@_support_point.register(CircuitRowsRV)
def _circuit_rows_support_point(op, rv, rng, size, missing, weight, theta):
    centre = np.array([c.location if c.base == "real" else max(c.support[0], 0.0) for c in op.frozen.schema.columns])
    return pt.broadcast_to(pt.constant(centre), rv.shape)
