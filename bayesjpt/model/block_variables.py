"""The random variables that Gibbs sweeps draw, each of a type of its own.

The Gibbs step recognises its variables by the type of their op, which survives ``model.copy``, ``pm.do`` and
``pm.observe``. So each distribution of a block has a subclass here; log probability, support point and compiled
generator are inherited. A block made with ``transforms=True`` has the plain distributions instead.
"""

from __future__ import annotations

from typing import Any

import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.random.basic import BetaRV, GammaRV, NormalRV
from pytensor.tensor.rewriting.basic import register_canonicalize
from pytensor.tensor.subtensor import Subtensor

from bayesjpt.errors import ModelError
from bayesjpt.internals import funcify_and_cache_key, log_probability
from bayesjpt.model import distributions, truncated_beta
from bayesjpt.model.circuit_rows import RefusedGradient

_FAR_OFF = 1e-5
"""By which shares may miss one: more than numbers of 32 bits, and less than steps that walk freely."""


class BlockVariable:
    """Marks the ops whose variables the Gibbs step samples."""


class WithoutGradient(Op):
    """A log density as it is, whose gradient with respect to the other inputs is a `RefusedGradient` at once.

    PyMC takes the gradient of a model's density once a variable, to learn whether it has any. Through the densities of
    a block these were graphs of thousands of nodes, which no step evaluates.

         values ----------------------------.
           |                                 |  refused
        disconnected_grad -> log density -> this op -> the same log density
                                 |
         concentrations ---------'  as ever
    """

    __props__ = ()
    view_map = {0: [0]}  # noqa: RUF012 - PyTensor's

    def make_node(self, log_density, *refused):
        return Apply(self, [log_density, *refused], [log_density.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]

    def infer_shape(self, node, shapes):
        return [shapes[0]]

    def pullback(self, inputs, outputs, cotangents):
        """Return the cotangent of the log density, and gradients that refuse to be compiled."""
        refused: Any = RefusedGradient()(*inputs[1:], return_list=True)
        return [cotangents[0], *refused]


@node_rewriter([WithoutGradient])
def without_gradient_is_the_density(fgraph, node):
    """Return the log density itself: what is compiled has no gradient any more."""
    return [node.inputs[0]]


register_canonicalize(without_gradient_is_the_density, "fast_compile")


@log_probability.register(BlockVariable)
def _block_logp(op, values, rng, size, *parameters, **kwargs):
    """Return the log density of the plain distribution; gradients with respect to values and parameters are refused."""
    value, *cut = (disconnected_grad(x) for x in (*values, *parameters))
    logp = _plain_logp(op)(op, [value], rng, size, *cut, **kwargs)
    return WithoutGradient()(logp, *values, *parameters)


def _plain_logp(op):
    """Return the log probability of the distribution that a block's is made of."""
    mro = type(op).__mro__
    return log_probability.dispatch(mro[mro.index(BlockVariable) + 1])


class OnSimplexes(CheckAndRaise):
    """Weights as they are, which have to add up to one, and may not be compiled as a slice of a longer vector.

    So they are in samplers that move all variables at once along the whole line: ``pm.sample_smc`` took the covariance
    of its particles, which is singular where weights add up to one, once all had been drawn.
    """

    def prepare_node(self, node, storage_map, compute_map, impl):
        self.refuse_slices(node)

    def refuse_slices(self, node) -> None:
        """Raise `ModelError` for weights that are cut from a vector of several variables."""
        value = node.inputs[0]
        while value.owner is not None and not isinstance(value.owner.op, Subtensor):
            value = value.owner.inputs[0]  # casts and reshapes
        if value.owner is not None:
            raise ModelError(
                "weights of a block that Gibbs sweeps draw, in one vector with others, as pm.find_MAP, "
                "pm.NUTS, pm.sample_smc and pm.Metropolis move them, which leave the simplexes",
                "bj.CircuitMixture(..., transforms=True)",
                "Or sample by pm.sample(), and leave weights out of step=",
            )


@funcify_and_cache_key.register(OnSimplexes)
def _on_simplexes_numba(op, node, **kwargs):
    op.refuse_slices(node)
    return funcify_and_cache_key.dispatch(CheckAndRaise)(op, node, **kwargs)


class BlockNormalRV(BlockVariable, NormalRV):
    """Normal of a block."""


class BlockGammaRV(BlockVariable, GammaRV):
    """Gamma of a block."""


class BlockBetaRV(BlockVariable, BetaRV):
    """Beta of a block."""


class BlockSegmentDirichletRV(BlockVariable, distributions.SegmentDirichletRV):
    """Dirichlet vectors of a block."""


@log_probability.register(BlockSegmentDirichletRV)
def _block_segment_dirichlet_logp(op, values, rng, size, concentration, **kwargs):
    """Return the log density; a step that walks off the simplexes would have all it proposes rejected in silence."""
    # concentrations may be of variables that other steps draw, and have their gradient
    cut = disconnected_grad(values[0])
    near = pt.all(pt.abs(op.segments.sum(cut) - 1.0) < _FAR_OFF)
    checked = OnSimplexes(
        ModelError,
        "weights of a block that do not add up to one, as where pm.Metropolis or pm.Slice moved them; expected values "
        "of its own sweeps. Leave weights out of step=, or make the block with transforms=True",
    )(cut, near)
    logp = distributions.segment_dirichlet_logp(op, [checked], rng, size, concentration, **kwargs)
    return WithoutGradient()(logp, *values)


class BlockFlooredInverseGammaRV(BlockVariable, distributions.FlooredInverseGammaRV):
    """Inverse gamma above a floor, of a block."""


class BlockFlooredGammaRV(BlockVariable, distributions.FlooredGammaRV):
    """Gamma above a floor, of a block."""


class BlockCappedGammaRV(BlockVariable, distributions.CappedGammaRV):
    """Gamma below a cap, of a block."""


class BlockFlooredBetaRV(BlockVariable, truncated_beta.FlooredBetaRV):
    """Beta above a floor, of a block."""


class BlockCappedLogNormalRV(BlockVariable, distributions.CappedLogNormalRV):
    """Log-normal below a cap, of a block."""


class BlockCappedNormalRV(BlockVariable, distributions.CappedNormalRV):
    """Normal below a cap, of a block."""


class BlockNormal(pm.Normal):
    """Normal(mu, sigma) of a block."""

    rv_op = BlockNormalRV()


class BlockGamma(pm.Gamma):
    """Gamma(alpha, beta) of a block."""

    rv_op = BlockGammaRV()


class BlockBeta(pm.Beta):
    """Beta(alpha, beta) of a block."""

    rv_op = BlockBetaRV()


class BlockSegmentDirichlet(distributions.SegmentDirichlet):
    """SegmentDirichlet(concentration, ptr) of a block."""

    rv_type = BlockSegmentDirichletRV

    @classmethod
    def rv_op(cls, *parameters, **options):  # PyMC's metaclass hides an inherited one
        """Return the variable of the op."""
        return super().rv_op(*parameters, **options)


class BlockFlooredInverseGamma(distributions.FlooredInverseGamma):
    """FlooredInverseGamma(alpha, beta, floor) of a block."""

    rv_op = BlockFlooredInverseGammaRV()


class BlockFlooredGamma(distributions.FlooredGamma):
    """FlooredGamma(alpha, beta, floor) of a block."""

    rv_op = BlockFlooredGammaRV()


class BlockCappedGamma(distributions.CappedGamma):
    """CappedGamma(alpha, beta, upper) of a block."""

    rv_op = BlockCappedGammaRV()


class BlockFlooredBeta(truncated_beta.FlooredBeta):
    """FlooredBeta(alpha, beta, floor) of a block."""

    rv_op = BlockFlooredBetaRV()


class BlockCappedLogNormal(distributions.CappedLogNormal):
    """CappedLogNormal(mu, sigma, upper) of a block."""

    rv_op = BlockCappedLogNormalRV()


class BlockCappedNormal(distributions.CappedNormal):
    """CappedNormal(mu, sigma, upper) of a block."""

    rv_op = BlockCappedNormalRV()
