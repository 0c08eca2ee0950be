"""The observed variable of a block: rows drawn from a circuit, with all latent choices summed out in the density."""

from __future__ import annotations

import hashlib

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.tensor.random.op import RandomVariable

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.circuit.priors import Priors
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.internals import (
    log_probability,
    numba_core_rv_funcify,
    numba_njit,
    register_funcify_default_op_cache_key,
    support_point,
)
from bayesjpt.kernels.density import remembered_log_density, rows_log_density
from bayesjpt.kernels.gradient import rows_gradient
from bayesjpt.kernels.samplers import BLOCKED
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model.distributions import apply_rv
from bayesjpt.model.gaps import check_gaps_of
from bayesjpt.model.segments import SMALLEST_WEIGHT
from bayesjpt.numerics.jit import source_version
from bayesjpt.table.schema import Schema

LARGEST_PARAMETER = 1e300
"""Beyond it a parameter is taken for infinite: its square, or the sum of many, would be."""


class FrozenCircuit:
    """A circuit, its schema and its priors as one hashable property of an op.

    Parameters
    ----------
    circuit : Circuit
    schema : Schema
    priors : Priors
    swept : bool
        Whether sweeps draw the block's variables. Other steps then evaluate the rows many times at one point.
    sampler : str
        How sweeps draw allocations: one of `bayesjpt.kernels.samplers.SAMPLERS`.
    """

    def __init__(
        self, circuit: Circuit, schema: Schema, priors: Priors, *, swept: bool = False, sampler: str = BLOCKED
    ):
        self.circuit = circuit
        self.swept = swept
        self.sampler = sampler
        self.schema = schema
        self.priors = priors
        self.families = {int(number): registry.FAMILIES[number] for number in np.unique(circuit.leaf_family)}
        self.plan = make_plan(circuit, schema)
        self.theta_bounds = _theta_bounds(circuit, schema)
        schema_bytes = repr(schema.to_dict()).encode()
        prior_bytes = b"".join(array.tobytes() for array in priors.arrays().values())
        names = repr(self.families).encode()  # numbers of families belong to a process, compiled code may outlive it
        self.digest = hashlib.sha256(circuit.digest().encode() + schema_bytes + prior_bytes + names).hexdigest()

    def __setstate__(self, state):
        """Take up the state in another process, where the families must have the same numbers."""
        self.__dict__.update(state)
        for number, family in self.families.items():
            if registry.FAMILIES[number : number + 1] != [family]:
                raise ModelError(
                    f"likelihood family {family.name!r} is not number {number} in a worker process",
                    "families registered when their module is imported, in one order",
                    "Register it at the top of a module, not below a __main__ guard.",
                )

    def __eq__(self, other):
        return isinstance(other, FrozenCircuit) and other.digest == self.digest

    def __hash__(self):
        return hash(self.digest)

    def __repr__(self):
        return f"{self.circuit.n_node} nodes"


def _theta_bounds(circuit: Circuit, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest value, float64 (n_theta,) each, that each parameter may take."""
    lower, upper = np.full(circuit.n_theta, -LARGEST_PARAMETER), np.full(circuit.n_theta, LARGEST_PARAMETER)
    for variable in make_layout(circuit, schema).parameters:
        if variable.parameter.constraint == "positive":
            lower[variable.positions] = np.nextafter(0.0, 1.0)
        elif variable.parameter.constraint in ("unit", "simplex"):
            lower[variable.positions], upper[variable.positions] = 0.0, 1.0
    return lower, upper


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

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives with respect to log weights and parameters; those of rows refuse to be compiled."""
        (cotangent,) = cotangents
        without = families_without_gradient(inputs[4 + Plan._fields.index("leaf_family")])
        if without:
            reason = f"no gradient of {', '.join(without)}"
            derivatives = [grad_not_implemented(self, i, inputs[i], reason) for i in (2, 3)]
        elif isinstance(cotangent.type, DisconnectedType):
            derivatives = [disconnected_type(), disconnected_type()]
        else:
            derivatives = CircuitLogDensityGradient()(cotangent, *inputs)
        others = [disconnected_type() for _ in inputs[4:]]
        return [RefusedRowsGradient()(inputs[0]), disconnected_type(), *derivatives, *others]


class RememberedLogDensity(CircuitLogDensity):
    """`CircuitLogDensity` with one more input, a shared vector in which it keeps its last answer.

    A step on variables that have nothing to do with the rows, such as NUTS on a slope, evaluates the whole model at the
    same weights and parameters in each of its own steps. Threads must not share the vector: it is not for blocks that
    samplers with threads of their own evaluate, those with gradients.
    """

    def perform(self, node, inputs, outputs):
        values, missing, log_weight, theta, *plan, memory = inputs
        outputs[0][0] = remembered_log_density(values, missing, log_weight, theta, Plan(*plan), memory)

    def pullback(self, inputs, outputs, cotangents):
        """Return derivatives that refuse to be compiled: bounded variables without transforms are for sweeps."""
        others = [disconnected_type() for _ in inputs[4:]]
        return [RefusedRowsGradient()(inputs[0]), disconnected_type(), *RefusedGradient()(*inputs[2:4]), *others]


class RefusedGradient(Op):
    """In place of the gradient of a block that sweeps draw: an error of ours where it is compiled.

    PyMC takes gradients of all variables, to learn whether they have any, before it asks which steps want them. So
    the graph may be made, and evaluating it (NUTS, ``pm.fit``, ``pm.find_MAP``) raises at once.
    """

    __props__ = ()

    def make_node(self, *inputs):
        return Apply(self, list(inputs), [pt.tensor(dtype="float64", shape=x.type.shape) for x in inputs])

    def prepare_node(self, node, storage_map, compute_map, impl):
        raise self.error()

    def perform(self, node, inputs, outputs):
        raise self.error()

    def pullback(self, inputs, outputs, cotangents):
        """Raise: second derivatives are asked for by those who want first ones."""
        raise self.error()

    def error(self) -> ModelError:
        """Return the error, which says what to do instead."""
        return no_gradient()


class RefusedRowsGradient(RefusedGradient):
    """In place of the gradient with respect to rows, which is asked for where missing cells are variables.

    ``pm.find_MAP`` would take a gradient that is not implemented for a wish to do without, and stay at its start.
    """

    def error(self) -> ModelError:
        """Return the error, which says what to do instead."""
        return ModelError(
            "the gradient of missing cells, which are variables of a block with impute=True",
            "bj.CircuitMixture(..., transforms=True) without impute for NUTS, pm.fit and pm.find_MAP of all variables",
            "Or leave step= out: pm.sample() finds the steps by itself",
        )


def no_gradient() -> ModelError:
    """Return the error for the gradient of a block that sweeps draw."""
    return ModelError(
        "the gradient of a block that Gibbs sweeps draw",
        "bj.CircuitMixture(..., transforms=True) for NUTS, pm.fit and pm.find_MAP",
        "Or leave step= out: pm.sample() finds the sweeps by itself",
    )


class CircuitLogDensityGradient(Op):
    """Gradient of cotangent-weighted log densities with respect to log weights and parameters."""

    __props__ = ()

    def make_node(self, *inputs):
        inputs = [pt.as_tensor(x) for x in inputs]
        return Apply(self, inputs, [pt.vector(dtype="float64", shape=x.type.shape) for x in inputs[3:5]])

    def perform(self, node, inputs, outputs):
        cotangent, values, missing, log_weight, theta, *plan = inputs
        outputs[0][0], outputs[1][0] = rows_gradient(cotangent, values, missing, log_weight, theta, Plan(*plan))


def families_without_gradient(leaf_family) -> list[str]:
    """Return the names of families that have no `accumulate_gradient`, of a constant or an array of their numbers."""
    if isinstance(leaf_family, Variable) and not isinstance(leaf_family, Constant):
        return []  # the kernel raises where a slot is absent
    numbers = leaf_family.data if isinstance(leaf_family, Constant) else leaf_family
    families = (registry.FAMILIES[number] for number in np.unique(numbers))
    return [family.name for family in families if family.accumulate_gradient is None]


@register_funcify_default_op_cache_key(CircuitLogDensity)
def _circuit_log_density_numba(op, node, **kwargs):
    @numba_njit
    def circuit_log_density(values, missing, log_weight, theta, *plan):
        return rows_log_density(values, missing, log_weight, theta, Plan(*plan))

    return circuit_log_density, source_version()


@register_funcify_default_op_cache_key(RememberedLogDensity)
def _remembered_log_density_numba(op, node, **kwargs):
    @numba_njit
    def circuit_log_density(values, missing, log_weight, theta, *plan_and_memory):
        plan = Plan(*plan_and_memory[:-1])
        return remembered_log_density(values, missing, log_weight, theta, plan, plan_and_memory[-1])

    return circuit_log_density, source_version()


@register_funcify_default_op_cache_key(RefusedGradient)
def _refused_gradient_numba(op, node, **kwargs):
    raise op.error()


@register_funcify_default_op_cache_key(CircuitLogDensityGradient)
def _circuit_log_density_gradient_numba(op, node, **kwargs):
    @numba_njit
    def circuit_log_density_gradient(cotangent, values, missing, log_weight, theta, *plan):
        return rows_gradient(cotangent, values, missing, log_weight, theta, Plan(*plan))

    return circuit_log_density_gradient, source_version()


class CircuitRowsRV(RandomVariable):
    """Rows of a circuit, given the mask of missing cells, the log weights of all edges and all parameters."""

    name = "CircuitMixture"
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
        # one point for all rows: they are drawn in one call
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
        parameters = pt.as_tensor(missing), pt.log(pt.maximum(weight, SMALLEST_WEIGHT)), pt.as_tensor(theta)
        return super().dist(list(parameters), frozen=frozen, **kwargs)

    @classmethod
    def rv_op(cls, missing, log_weight, theta, *, frozen, size=None, rng=None):
        return apply_rv(CircuitRowsRV(frozen), missing, log_weight, theta, size=size, rng=rng)


@log_probability.register(CircuitRowsRV)
def _circuit_rows_logp(op, values, rng, size, missing, log_weight, theta, **kwargs):
    (rows,) = values
    check_gaps_of(rows)
    log_weight, theta = (p[(0,) * (p.type.ndim - 1)] for p in (log_weight, theta))
    memory = None
    if op.frozen.swept and isinstance(rows, SharedVariable):
        memory = pytensor.shared(np.zeros(rows.get_value(borrow=True).shape[0] + 1), "memory", shape=(None,))
    return rows_density(op.frozen, rows, missing, log_weight, theta, memory)


def rows_density(frozen: FrozenCircuit, rows, missing, log_weight, theta, memory):
    """Return the symbolic log density of each row, kept in a shared vector, (n_row + 1,), where there is one."""
    # outside their support parameters have density 0, and never reach the kernel
    lower, upper = frozen.theta_bounds
    inside = pt.all((theta >= lower) & (theta <= upper)) & pt.all(log_weight < np.inf)
    circuit = frozen.circuit
    log_weight = pt.switch(inside, log_weight, circuit.start_log_weight)
    theta = pt.switch(inside, theta, circuit.start_theta)
    inputs = [rows, missing, log_weight, theta, *[pt.constant(array) for array in frozen.plan]]
    logp = CircuitLogDensity()(*inputs) if memory is None else RememberedLogDensity()(*inputs, memory)
    return pt.switch(inside, logp, -np.inf)


@support_point.register(CircuitRowsRV)
def _circuit_rows_support_point(op, rv, rng, size, missing, log_weight, theta):
    centre = np.array([c.location if c.base == "real" else max(c.support[0], 0.0) for c in op.frozen.schema.columns])
    return pt.broadcast_to(pt.constant(centre), rv.shape)
