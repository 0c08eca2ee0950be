"""A beta distribution above a bound, whose normaliser has gradients in all its arguments, in PyTensor as in JAX.

The regularised incomplete beta function of both has none in its shapes, or only slow ones. The bound, too, depends on
another variable: the prior of the p of a negative binomial, given its size.
"""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.continuous import UnitContinuous
from pymc.distributions.dist_math import check_parameters

from bayesjpt.model.distributions import Truncated, TruncatedRV, sized
from bayesjpt.model.transforms import AboveFloorBelowOne
from bayesjpt.numerics.draw import draw_beta_above
from bayesjpt.numerics.jit import kernel

_N_RAISED = 3
"""How often the second shape is raised by 1, so that the density of log odds falls quickly on its upper side."""
_FALL = 36.0
"""Nats, by which that density has fallen where the quadrature ends."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


def _log_beta(a, b):
    return pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(a + b)


def log_beta_tail(a, b, x):
    """Return log P(p > x) of p ~ Beta(a, b), for x no farther than some standard deviations above the mean.

    I_y(b, a) = y^b x^a / (b B(a, b)) + I_y(b + 1, a), y = 1 - x (Digital Library of Mathematical Functions, 8.17.20), a
    few times; what is left by Gauss and Legendre's rule over log odds, in which the density is log-concave and analytic
    in a strip of width pi on either side.
    """
    log_x, log_y = pt.log(x), pt.log1p(-x)
    terms = [a * log_x + (b + k) * log_y - pt.log(b + k) - _log_beta(a, b + k) for k in range(_N_RAISED)]
    b = b + _N_RAISED
    deviation = pt.sqrt(1.0 / a + 1.0 / b)
    mode, reach = pt.log(a) - pt.log(b), np.sqrt(2.0 * _FALL) * deviation
    lo = pt.maximum(log_x - log_y, mode - reach - _FALL / a)
    hi = pt.maximum(mode, lo) + reach + _FALL / b
    half = 0.5 * (hi - lo)
    t = (lo + half)[..., None] + half[..., None] * _NODES
    density = a[..., None] * t - (a + b)[..., None] * pt.softplus(t) - _log_beta(a, b)[..., None]
    terms.append(pt.log(half) + pt.log(pt.sum(_WEIGHTS * pt.exp(density), axis=-1)))
    return pt.minimum(pt.logsumexp(pt.stack(terms, axis=0), axis=0), 0.0)


@kernel
def draw_beta(rng, alpha, beta, floor):
    """Return a beta variable, given that it is at least a floor."""
    return draw_beta_above(alpha, beta, floor, 1.0 - floor, rng)


class FlooredBetaRV(TruncatedRV):
    """Beta(alpha, beta) given that it exceeds a floor."""

    name = "FlooredBeta"
    draw = staticmethod(draw_beta)
    transform = AboveFloorBelowOne


class FlooredBeta(Truncated, UnitContinuous):
    """Beta distribution truncated below, its normaliser included.

    Parameters
    ----------
    alpha, beta : tensor_like of float
    floor : tensor_like of float
        Lower bound, not far above the mean; 0 for none.
    """

    rv_op = FlooredBetaRV()

    def support_point(rv, size, alpha, beta, floor):
        mean = alpha / (alpha + beta)
        point = pt.switch(mean > floor, mean, 0.5 * (1.0 + floor))
        return sized(point, size)

    def logp(value, alpha, beta, floor):
        bounded = floor > 0.0
        log_mass = pt.switch(bounded, log_beta_tail(alpha, beta, pt.switch(bounded, floor, 0.5)), 0.0)
        inside = (value >= floor) & (value > 0.0) & (value < 1.0)
        # the branch that is not taken has a finite value and slope
        safe = pt.switch(inside, value, 0.5)
        logp = (alpha - 1.0) * pt.log(safe) + (beta - 1.0) * pt.log1p(-safe) - _log_beta(alpha, beta) - log_mass
        return check_parameters(
            pt.switch(inside, logp, -np.inf),
            alpha > 0.0,
            beta > 0.0,
            floor >= 0.0,
            floor < 1.0,
            msg="alpha > 0, beta > 0, 0 <= floor < 1",
        )
