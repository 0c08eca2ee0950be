"""The random variables that Gibbs sweeps draw, each of a type of its own.

The Gibbs step recognises its variables by the type of their op, which survives ``model.copy``, ``pm.do`` and
``pm.observe``. So each distribution of a block has a subclass here; log probability, support point and compiled
generator are inherited. A block made with ``transforms=True`` has the plain distributions instead.
"""

from __future__ import annotations

import pymc as pm
import pytensor.tensor as pt
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.random.basic import BetaRV, GammaRV, NormalRV

from bayesjpt.errors import ModelError
from bayesjpt.internals import log_probability
from bayesjpt.model import distributions, truncated_beta

_FAR_OFF = 1e-5
"""By which shares may miss one: more than numbers of 32 bits, and less than steps that walk freely."""


class BlockVariable:
    """Marks the ops whose variables the Gibbs step samples."""


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
    logp = distributions.segment_dirichlet_logp(op, values, rng, size, concentration, **kwargs)
    near = pt.all(pt.abs(op.segments.sum(values[0]) - 1.0) < _FAR_OFF)
    return CheckAndRaise(
        ModelError,
        "weights of a block that do not add up to one, as where pm.Metropolis or pm.Slice moved them; expected values "
        "of its own sweeps. Leave weights out of step=, or make the block with transforms=True",
    )(logp, near)


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
