"""Both tails of the families of real columns in logarithms, as plain PyTensor graphs of cells.

Each function takes cells z in units of the family, (n_leaf, n), and the numbers of its leaves: theta, float64 (n_leaf,
n_theta), and constants, (n_leaf, n_constant). It returns (log P(Z <= z), log P(Z > z)), each (n_leaf, n): exact also
where the probability itself underflows, and with a finite slope at every finite z, since a slope that is not a number
would spoil the gradient of a mixture in which the leaf has no share.
"""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from bayesjpt.families.simplex import SMALLEST
from bayesjpt.model.distributions import log_normal_cdf
from bayesjpt.model.spline_pieces import from_on, piecewise, spline_pieces, up_to
from bayesjpt.numerics.incomplete_beta import log_beta
from bayesjpt.numerics.incomplete_gamma import stirling_error
from bayesjpt.numerics.student import log_student_level

_LOG_2 = 0.6931471805599453
_HALF_LOG_2PI = 0.9189385332046727
_HALF = np.float64(0.5)
"""PyTensor reads a plain 0.5 as float32, and its slope of the beta would have a logarithm with eight digits."""
_UNDERFLOW = 1e-280
"""Probability below which tails are integrated in logarithms: they fall nearly as an exponential there."""
_NODES, _LOG_WEIGHTS = np.polynomial.laguerre.laggauss(6)
_LOG_WEIGHTS = np.log(_LOG_WEIGHTS) + _NODES
"""Of integrals from 0 to infinity whose integrand is nearly exp(-u), as it is below `_UNDERFLOW`."""
_FARTHEST = np.float64(1e150)
"""Square roots of degrees of freedom beyond which squares overflow."""
_NEAR = 1e-3
"""Distance from the median of a t distribution below which a series of three terms has all digits."""


def log1mexp(gap):
    """Return log(1 - exp(-gap)) for gap > 0, which may be infinite."""
    small = gap < _LOG_2
    # each branch gets arguments at which its value and slope are finite, whichever is taken
    near, far = pt.switch(small, gap, _LOG_2), pt.switch(small, _LOG_2, gap)
    return pt.switch(small, pt.log(-pt.expm1(-near)), pt.log1p(-pt.exp(-far)))


def log_difference(larger, smaller):
    """Return log(exp(larger) - exp(smaller)), -inf with slope 0 where nothing is left."""
    is_apart = larger > smaller
    gap = pt.switch(is_apart, larger - smaller, 1.0)
    return pt.switch(is_apart, larger + log1mexp(gap), -np.inf)


def normal_tails(z, theta, constants):
    """Return both tails of a normal, theta = (variance, mean)."""
    deviate = (z - theta[:, 1:2]) / np.sqrt(theta[:, :1])
    return log_normal_cdf(deviate), log_normal_cdf(-deviate)


def lognormal_tails(z, theta, constants):
    """Return both tails of a lognormal, theta = (variance, mean) of the logarithm."""
    lower, upper = normal_tails(pt.log(pt.maximum(z, SMALLEST)), theta, constants)
    return pt.switch(z > 0.0, lower, -np.inf), pt.switch(z > 0.0, upper, 0.0)


def exponential_tails(z, theta, constants):
    """Return both tails of an exponential, theta = (rate,)."""
    x = theta[:, :1] * pt.maximum(z, 0.0)
    return pt.switch(x > 0.0, log1mexp(pt.switch(x > 0.0, x, 1.0)), -np.inf), -x


def uniform_tails(z, theta, constants):
    """Return both tails of a uniform, constants = (lower end, upper end)."""
    lo, hi = constants[:, :1], constants[:, 1:2]
    half = 0.5 * hi - 0.5 * lo  # the width itself may overflow

    def log_share(part):
        share = pt.clip(part / half, 0.0, 1.0)
        return pt.switch(share > 0.0, pt.log(pt.switch(share > 0.0, share, 1.0)), -np.inf)

    return log_share(0.5 * z - 0.5 * lo), log_share(0.5 * hi - 0.5 * z)


def quantile_tails(z, theta, constants):
    """Return both tails of uniform segments, theta = their probabilities, constants = (step, knots)."""
    knots = constants[:, None, 1:]
    width = knots[:, :, 1:] - knots[:, :, :-1]
    x = z[:, :, None]

    def log_share(part):
        share = (theta[:, None, :] * pt.clip(part / width, 0.0, 1.0)).sum(axis=-1)
        return pt.switch(share > 0.0, pt.log(pt.switch(share > 0.0, share, 1.0)), -np.inf)

    return log_share(x - knots[:, :, :-1]), log_share(knots[:, :, 1:] - x)


def spline_tails(z, theta, constants):
    """Return both tails of splines and of the exponential tails beyond them; constants as of the family."""
    of = spline_pieces(constants)
    ordinates, beyond = of.mixed(theta), of.tail_weights(theta)
    x = pt.clip(z, of.first, of.last)
    lower = piecewise(of, x, up_to(of, ordinates), pt.as_tensor) + beyond[:, :1]
    upper = piecewise(of, x, from_on(of, ordinates), pt.as_tensor) + beyond[:, 1:]
    log_low, rest_low = _truncated_exponential(of.first - z, of.first - of.low, of.sigma)
    log_high, rest_high = _truncated_exponential(z - of.last, of.high - of.last, of.sigma)
    with np.errstate(divide="ignore"):
        log_weight = np.log(beyond)
    # all that is not in the tail, and the part of the tail on this side of z
    above = from_on(of, ordinates)[:, :1, 0] + beyond[:, 1:] + beyond[:, :1] * rest_low
    below = up_to(of, ordinates)[:, -1:, -1] + beyond[:, :1] + beyond[:, 1:] * rest_high
    is_low, is_high = z < of.first, z > of.last
    log_lower = _log_or_nothing(pt.switch(is_high, below, lower))
    log_upper = _log_or_nothing(pt.switch(is_low, above, upper))
    return (
        pt.switch(is_low, log_weight[:, :1] + log_low, log_lower),
        pt.switch(is_high, log_weight[:, 1:] + log_high, log_upper),
    )


def _truncated_exponential(distance, reach, sigma):
    """Return (log of the share beyond a distance, share up to it) of an exponential on 0 to `reach`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        within = -np.expm1(-reach / sigma)  # 0 where there is no tail
        log_within = np.log(within)
    is_tail = within > 0.0
    distance = pt.clip(distance, 0.0, np.where(is_tail, reach, 0.0))
    gap = (np.where(is_tail, reach, 1.0) - distance) / sigma
    left = gap > 0.0
    log_share = -distance / sigma + log1mexp(pt.switch(left, gap, 1.0)) - np.where(is_tail, log_within, 0.0)
    share = -pt.expm1(-distance / sigma) / np.where(is_tail, within, 1.0)
    return pt.switch(left & is_tail, log_share, -np.inf), pt.switch(is_tail, share, 1.0)


def _log_or_nothing(mass):
    positive = mass > 0.0
    return pt.switch(positive, pt.log(pt.switch(positive, mass, 1.0)), -np.inf)


def gamma_tails(z, theta, constants):
    """Return both tails of a gamma, theta = (shape, rate)."""
    shape = theta[:, :1]
    x = theta[:, 1:2] * z
    positive = x > 0.0
    x = pt.switch(positive, pt.maximum(x, SMALLEST), shape)
    # log of x^shape exp(-x) / Gamma(shape): its large terms cancel before they are rounded
    deviation = (x - shape) / shape
    close = abs(deviation) < 0.5
    log_ratio = pt.switch(close, pt.log1p(pt.switch(close, deviation, 0.0)), pt.log(x / shape))
    level = 0.5 * np.log(shape) - _HALF_LOG_2PI - np.vectorize(stirling_error)(shape)
    log_front = shape * (log_ratio - deviation) + level
    lower, upper = pt.gammainc(shape, x), pt.gammaincc(shape, x)
    is_low, is_high = (lower < _UNDERFLOW) & (x < shape), (upper < _UNDERFLOW) & (x > shape)
    # each integral gets arguments at which its value and slope are finite, whichever is taken
    log_lower = log_front + _log_gamma_lower_integral(shape, pt.switch(is_low, x, 0.5 * shape))
    log_upper = log_front + _log_gamma_upper_integral(shape, pt.switch(is_high, x, 2.0 * shape + 1.0))
    log_lower = pt.switch(is_low, log_lower, pt.log(pt.switch(is_low, 1.0, lower)))
    log_upper = pt.switch(is_high, log_upper, pt.log(pt.switch(is_high, 1.0, upper)))
    return pt.switch(positive, log_lower, -np.inf), pt.switch(positive, log_upper, 0.0)


def _log_integral(log_integrand):
    """Return the log of the integral of f(u) from 0 to infinity, log f given at `_NODES` along the last axis."""
    return pt.log(pt.exp(log_integrand + _LOG_WEIGHTS).sum(axis=-1))


def _log_gamma_lower_integral(shape, x):
    """Return the log of the integral of (t / x)^shape exp(x - t) / t over t from 0 to x, for x < shape."""
    rate = shape - x
    # t = x exp(-u / rate)
    step = _NODES / rate[:, :, None]
    return _log_integral(-shape[:, :, None] * step - x[:, :, None] * pt.expm1(-step)) - pt.log(rate)


def _log_gamma_upper_integral(shape, x):
    """Return the log of the integral of (t / x)^shape exp(x - t) / t over t from x, for x > shape."""
    rate = x - shape + 1.0
    # t = x + x u / rate: shares of x, since the shape may be nothing to it
    share = _NODES / rate[:, :, None]
    log_integrand = (shape[:, :, None] - 1.0) * pt.log1p(share) - x[:, :, None] * share
    return _log_integral(log_integrand) - pt.log(rate)


def student_t_tails(z, theta, constants):
    """Return both tails of Student's t, theta = (squared scale, mean, degrees of freedom)."""
    nu = theta[:, 2:3]
    t = (z - theta[:, 1:2]) / np.sqrt(theta[:, :1])
    inner = abs(t) < 1.0
    # at most a third of the distribution on either side of the median
    middle = _student_from_median(nu, pt.switch(inner, t, 0.0))
    log_tail, tail = _student_tail(nu, pt.switch(inner, 1.0, abs(t)))
    log_rest = pt.log1p(-tail)
    log_lower = pt.switch(inner, pt.log(0.5 + middle), pt.switch(t < 0.0, log_tail, log_rest))
    log_upper = pt.switch(inner, pt.log(0.5 - middle), pt.switch(t < 0.0, log_rest, log_tail))
    return log_lower, log_upper


def _student_from_median(nu, t):
    """Return P(0 < T < t), negative where t is, for t from -1 to 1."""
    near = abs(t) < _NEAR * np.minimum(np.sqrt(nu), 1.0)
    level = np.exp(np.vectorize(log_student_level)(nu))
    square = t**2
    series = level * t * (1.0 - (nu + 1.0) / nu * square * (1.0 / 6.0 - (nu + 3.0) / nu * square / 40.0))
    # the beta's density is infinite at 0, where the series stands
    square = pt.switch(near, 1.0, square)
    share = 0.5 * pt.betainc(_HALF, 0.5 * nu, square / (nu + square))
    return pt.switch(near, series, pt.switch(t < 0.0, -share, share))


def _student_tail(nu, t):
    """Return (log P(T > t), P(T > t)) for t >= 1."""
    root = pt.minimum(t / np.sqrt(nu), _FARTHEST)
    square = root**2
    tail = 0.5 * pt.betainc(0.5 * nu, _HALF, 1.0 / (1.0 + square))
    is_far = tail < _UNDERFLOW
    far = pt.switch(is_far, root, 1.0)
    # t = sqrt(nu) sinh(v), where the density of v falls as cosh(v)^-nu: at first by the rate nu tanh(v)
    tanh = far / pt.sqrt(1.0 + far**2)
    step = _NODES / (nu * tanh)[:, :, None]
    # cosh(v + step) / cosh(v), but for exp(step)
    log_ratio = pt.log1p((0.5 * (1.0 - tanh))[:, :, None] * pt.expm1(-2.0 * step))
    integral = _log_integral(-nu[:, :, None] * (step + log_ratio)) - pt.log(nu * tanh)
    log_far = -0.5 * nu * pt.log1p(far**2) - np.vectorize(log_beta)(0.5 * nu, 0.5) + integral
    return pt.switch(is_far, log_far, pt.log(pt.switch(is_far, 1.0, tail))), tail
