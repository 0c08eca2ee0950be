"""How a block is drawn in functions that PyTensor compiles with numba: one small function for each kind of variable.

PyTensor compiles loops over batches anew around each distribution, and numba copies into them, and then into the
function around them, the code of whatever they call. Of a prior predictive that was two thirds of the time. A rewrite,
which belongs to PyTensor's numba mode alone and runs once generators may be moved on in place, puts these ops there:

      parameters   (generator, size, number of the distribution, its arguments) -> draw_parameters, one address
      weights      (generator, concentrations, offsets)                         -> draw_segments, one address
      rows         (generator, size, mask, log weights, parameters)             -> draw_rows, one address

What it draws is what the distributions draw in Python, but for last bits; a form that they do not know stays as it is,
such as a batch of weights.
"""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.compile import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.tensor.basic import Alloc, MakeVector
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import BetaRV, GammaRV, NormalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT

from bayesjpt.internals import numba_njit, register_funcify_default_op_cache_key
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model import distributions as ours
from bayesjpt.model.block_variables import BlockVariable
from bayesjpt.model.circuit_rows import CircuitRowsRV, FrozenCircuit
from bayesjpt.model.truncated_beta import FlooredBetaRV, draw_beta
from bayesjpt.model.versions import ops_version
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel

NAME = "bayesjpt_draws"
_BEHIND_INPLACE = 99.5
"""Between PyTensor's rewrites that move generators on in place (99) and that prepare the others for numba (100)."""

NUMBERS: dict[type[RandomVariable], int] = {
    NormalRV: 0,
    GammaRV: 1,
    BetaRV: 2,
    ours.FlooredInverseGammaRV: 3,
    ours.FlooredGammaRV: 4,
    ours.CappedGammaRV: 5,
    ours.CappedLogNormalRV: 6,
    ours.CappedNormalRV: 7,
    FlooredBetaRV: 8,
}
"""By which `draw_parameter` knows a distribution."""


@apart
@kernel
def draw_parameter(number, first, second, limit, rng):
    """Return a draw of the distribution of a number of `NUMBERS`; `limit` is for those that are truncated."""
    if number == 0:
        return rng.normal(first, second)
    if number == 1:
        return rng.gamma(first, second)
    if number == 2:
        return rng.beta(first, second)
    if number == 3:
        return ours.draw_inverse_gamma_above(rng, first, second, limit)
    if number == 4:
        return ours.draw_gamma_above(rng, first, second, limit)
    if number == 5:
        return ours.draw_gamma_below(rng, first, second, limit)
    if number == 6:
        return ours.draw_log_normal_below(rng, first, second, limit)
    if number == 7:
        return ours.draw_normal_below(rng, first, second, limit)
    return draw_beta(rng, first, second, limit)


@apart
@kernel
def draw_parameters(rng, n, number, first, second, limit):
    """Return float64 (n,): a draw for each of the arguments, of which there are n or one."""
    out = np.empty(n)
    for i in range(n):
        # an argument of size one serves all draws
        a, b = first[min(i, first.size - 1)], second[min(i, second.size - 1)]
        out[i] = draw_parameter(number, a, b, limit[min(i, limit.size - 1)], rng)
    return out


@apart
@kernel
def draw_segments(rng, concentration, ptr):
    """Return float64 (n,): one Dirichlet vector a segment; a concentration of size one serves all."""
    out = np.empty(ptr[-1])
    if concentration.size != out.size:
        concentration = np.full(out.size, concentration[0])
    ours.fill_segments(concentration, ptr, out, rng)
    return out


@apart
@kernel
def draw_rows(plan, shape, log_weight, theta, rng):
    """Return float64 of a shape (n_row, n_column): rows of a circuit."""
    out = np.empty(shape)
    sample_rows(plan, log_weight, theta, rng, out)
    return out


class _CompiledDraw(Op):
    """An op that moves its generator on, of a numba graph; nothing evaluates it in Python.

    Parameters
    ----------
    kind : TensorType
        Of what it draws; no property, since compiled code of one serves all.
    """

    __props__: tuple = ()
    destroy_map = {0: [0]}  # noqa: RUF012 (PyTensor's)
    default_output = 1

    def __init__(self, kind: TensorType):
        self.kind = kind

    def perform(self, node, inputs, outputs):
        # PyTensor asks every op for this method; a rewrite of the numba mode alone puts the op into graphs
        raise NotImplementedError("of PyTensor's numba mode alone")


class DrawnParameters(_CompiledDraw):
    """The parameters of the leaves of one family, float64 (n,)."""

    def make_node(self, rng, size, number, first, second, limit):
        return Apply(self, [rng, size, number, first, second, limit], [rng.type(), self.kind()])


class DrawnSegments(_CompiledDraw):
    """Weights, one simplex a segment, float64 (n,)."""

    def make_node(self, rng, concentration, ptr):
        return Apply(self, [rng, concentration, ptr], [rng.type(), self.kind()])


class DrawnRows(_CompiledDraw):
    """Rows of a circuit, float64 (n_row, n_column)."""

    __props__ = ("frozen",)

    def __init__(self, kind: TensorType, frozen: FrozenCircuit):
        super().__init__(kind)
        self.frozen = frozen

    def make_node(self, rng, size, missing, log_weight, theta):
        """Here the size is a scalar, or a vector of one."""
        return Apply(self, [rng, size, missing, log_weight, theta], [rng.type(), self.kind()])


@register_funcify_default_op_cache_key(DrawnParameters)
def _drawn_parameters_numba(op, node, **kwargs):
    @numba_njit
    def drawn_parameters(rng, size, number, first, second, limit):
        return rng, draw_parameters(rng, size[0], number[0], first, second, limit)

    return drawn_parameters, ops_version()


@register_funcify_default_op_cache_key(DrawnSegments)
def _drawn_segments_numba(op, node, **kwargs):
    @numba_njit
    def drawn_segments(rng, concentration, ptr):
        return rng, draw_segments(rng, concentration, ptr)

    return drawn_segments, ops_version()


@register_funcify_default_op_cache_key(DrawnRows)
def _drawn_rows_numba(op, node, **kwargs):
    plan = op.frozen.plan

    @numba_njit
    def drawn_rows(rng, size, missing, log_weight, theta):
        n = size.item()
        if missing.shape[0] != 1 and missing.shape[0] != n:
            raise ValueError("a mask of missing cells that does not fit the rows")
        return rng, draw_rows(borrowed(plan), (n, missing.shape[1]), log_weight, theta, rng)

    # the arrays are constants of the compiled function, so its key holds their content too
    return drawn_rows, ops_version() ^ int(op.frozen.digest[:14], 16)


def _number_of(op: RandomVariable) -> int | None:
    if not isinstance(op, BlockVariable | ours.TruncatedRV):
        return None  # a distribution of the user's: PyTensor's code for it is as good
    return next((number for kind, number in NUMBERS.items() if isinstance(op, kind)), None)


def _only(size: Variable) -> Variable:
    """Return the scalar entry of a size (1,) where it was made of one, else the size."""
    return size.owner.inputs[0] if size.owner and isinstance(size.owner.op, MakeVector) else size


def _once(x: Variable) -> Variable:
    """Return a number that was repeated to a vector as a vector of one, else x."""
    # PyTensor's loop that repeats it makes numba compile the text of an error, which takes seconds
    repeated = x.owner is not None and isinstance(x.owner.op, Alloc) and x.owner.inputs[0].type.ndim == 0
    return pt.shape_padleft(x.owner.inputs[0]) if repeated else x


def _unexpanded(x: Variable) -> Variable:
    """Return the vector that was expanded to a matrix (1, n), before or after elementwise operations; else x."""
    if x.owner is None:
        return x
    if isinstance(x.owner.op, DimShuffle) and x.owner.op.new_order == ("x", 0):
        return x.owner.inputs[0]
    if isinstance(x.owner.op, Elemwise):
        inner = [_unexpanded(y) for y in x.owner.inputs]
        if all(y.type.ndim == 1 for y in inner):
            return x.owner.op.make_node(*inner).outputs[x.owner.outputs.index(x)]
    return x


@node_rewriter([RandomVariable])
def compiled_draw(fgraph, node) -> list | None:
    """Return the outputs of the op that stands for a block's random variable, None for any other node."""
    op = node.op
    if not op.inplace:
        return None
    rng, size, *parameters = node.inputs
    is_whole = isinstance(size.type, NoneTypeT)
    kind, new = node.outputs[1].type, None
    if isinstance(op, ours.SegmentDirichletRV):
        if kind.ndim != 1:
            return None
        new = DrawnSegments(kind).make_node(rng, _once(parameters[0]), pt.constant(op.segments.ptr))
    elif type(op) is CircuitRowsRV:
        missing, *given = parameters
        log_weight, theta = map(_unexpanded, given)
        if is_whole or kind.ndim != 2 or log_weight.type.ndim != 1 or theta.type.ndim != 1:
            return None
        new = DrawnRows(kind, op.frozen).make_node(rng, _only(size), missing, log_weight, theta)
    else:
        number = _number_of(op)
        if (
            number is None
            or kind.ndim != 1
            or any(x.type.shape not in ((1,), kind.shape) for x in parameters)
            or None in kind.shape
        ):
            return None
        first, second, *limit = (x.astype("float64") for x in parameters)
        size, number = pt.constant(np.array(kind.shape)), pt.constant(np.array([number]))
        new = DrawnParameters(kind).make_node(rng, size, number, first, second, *(limit or [second]))
    return new.outputs


def register_draws() -> None:
    """Add the rewrite to PyTensor's numba mode; once, however often it is called."""
    if NAME not in optdb:
        optdb.register(NAME, dfs_rewriter(compiled_draw), "numba", position=_BEHIND_INPLACE)
