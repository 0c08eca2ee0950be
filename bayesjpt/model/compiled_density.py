"""Densities of rows in functions that PyTensor compiles with numba: the plan is in the code, and the kernels are not.

The ops of `bayesjpt.model.circuit_rows` have every array of the plan as an input, about sixty, which each layer of
PyTensor's functions unpacked anew, with the code of the kernels copied into each: two thirds of the time that a log
likelihood took to compile. A rewrite of PyTensor's numba mode puts these ops in their place where the plan is constant.
"""

from __future__ import annotations

import hashlib

from pytensor.compile import optdb
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter

from bayesjpt.circuit.plan import Plan
from bayesjpt.families import registry
from bayesjpt.internals import numba_njit, register_funcify_default_op_cache_key
from bayesjpt.kernels import density, gradient
from bayesjpt.model.circuit_rows import CircuitLogDensity, CircuitLogDensityGradient, RememberedLogDensity
from bayesjpt.model.versions import ops_version
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel

NAME = "bayesjpt_density"
_BEFORE_NUMBA = 99.5
"""Behind all rewrites that know the ops with their plans."""


class FrozenPlan:
    """A plan as a hashable property of an op.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan):
        self.plan = plan
        digest = hashlib.sha256()
        for array in plan:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        # numbers of families belong to a process, compiled code may outlive it
        digest.update(repr({int(k): registry.FAMILIES[k].name for k in set(plan.leaf_family.tolist())}).encode())
        self.digest = digest.hexdigest()

    def __eq__(self, other):
        return isinstance(other, FrozenPlan) and other.digest == self.digest

    def __hash__(self):
        return hash(self.digest)

    def __repr__(self):
        return self.digest[:12]


class PlannedOp(Op):
    """An op whose plan is a property; of PyTensor's numba mode, nothing evaluates it in Python."""

    __props__ = ("frozen",)

    def __init__(self, frozen: FrozenPlan, kinds: list):
        self.frozen = frozen
        self.kinds = kinds  # of outputs; no property, since compiled code serves all

    def make_node(self, *inputs):
        return Apply(self, list(inputs), [kind() for kind in self.kinds])

    def perform(self, node, inputs, outputs):
        # PyTensor asks every op for this method; a rewrite of the numba mode alone puts the op into graphs
        raise NotImplementedError("of PyTensor's numba mode alone")


class PlannedLogDensity(PlannedOp):
    """`CircuitLogDensity` of rows, mask, log weights and parameters."""


class PlannedRememberedLogDensity(PlannedOp):
    """`RememberedLogDensity` of the same and its memory."""


class PlannedGradient(PlannedOp):
    """`CircuitLogDensityGradient` of a cotangent and the same."""


@apart
@kernel
def rows_log_density(plan, values, missing, log_weight, theta):
    """Return what the kernel of that name does, to callers that hold its address."""
    return density.rows_log_density(values, missing, log_weight, theta, plan)


@apart
@kernel
def remembered_log_density(plan, values, missing, log_weight, theta, memory):
    """Return what the kernel of that name does, to callers that hold its address."""
    return density.remembered_log_density(values, missing, log_weight, theta, plan, memory)


@apart
@kernel
def rows_gradient(plan, cotangent, values, missing, log_weight, theta):
    """Return what the kernel of that name does, to callers that hold its address."""
    return gradient.rows_gradient(cotangent, values, missing, log_weight, theta, plan)


def _compiled_by(of_plan):
    """Return what compiles an op: a call of a kernel whose first argument, the plan, is a constant."""

    def compiled(op, node, **kwargs):
        plan = op.frozen.plan

        @numba_njit
        def planned_density(*inputs):
            return of_plan(borrowed(plan), *inputs)

        # the key differs where the arrays do that are constants of the compiled function
        return planned_density, ops_version() ^ int(op.frozen.digest[:14], 16)

    return compiled


for _op, _of_plan in [
    (PlannedLogDensity, rows_log_density),
    (PlannedRememberedLogDensity, remembered_log_density),
    (PlannedGradient, rows_gradient),
]:
    register_funcify_default_op_cache_key(_op)(_compiled_by(_of_plan))


@node_rewriter([CircuitLogDensity, CircuitLogDensityGradient])
def planned(fgraph, node) -> list | None:
    """Return the outputs of the op whose plan is a property, None where the plan is no constant."""
    match node.op:
        case CircuitLogDensityGradient():
            kind, first = PlannedGradient, 5
        case RememberedLogDensity():
            kind, first = PlannedRememberedLogDensity, 4
        case _:
            kind, first = PlannedLogDensity, 4
    arrays, rest = node.inputs[first : first + len(Plan._fields)], node.inputs[first + len(Plan._fields) :]
    if not all(isinstance(array, Constant) for array in arrays):
        return None
    frozen = FrozenPlan(Plan(*(array.data for array in arrays)))
    op = kind(frozen, [out.type for out in node.outputs])
    return op.make_node(*node.inputs[:first], *rest).outputs


def register_density() -> None:
    """Add the rewrite to PyTensor's numba mode; once, however often it is called."""
    if NAME not in optdb:
        optdb.register(NAME, dfs_rewriter(planned), "numba", position=_BEFORE_NUMBA)
