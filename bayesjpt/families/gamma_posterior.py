"""The draw of a gamma leaf's shape and rate given its statistics.

The rate lies above a bound that depends on the shape: the prior is divided by what it has there, the conditional is
a gamma beyond it. Without recorded zeros the rate is integrated out: a slice update of log shape under the marginal
target, then the rate from its conditional. With them, slice updates of (log shape, log rate): along a fixed mean, then
along the rate. Without rows, an exact draw from the prior. Layout of theta, hyper and stats: see
`bayesjpt.families.gamma`.

For leaves that exchange rows, log shape is proposed from a normal near its posterior, the rate integrated out.

References: Neal (2003), Slice sampling; Minka (2002), Estimating a gamma distribution.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import INVALID, OK
from bayesjpt.numerics.draw import draw_gamma_above
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import log_rising, log_rising_excess
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more
from bayesjpt.numerics.special import (
    log1p_minus,
    log_gamma_p,
    log_gamma_q,
    log_normal_cdf,
    normal_quantile_between,
    stirling_error,
)

_SHAPE, _RATE = 0, 1
_LOG_SHAPE_MEAN, _LOG_SHAPE_SD, _CAP, _A0, _B0, _K, _LEAST = range(7)
_N, _SUM, _SUM_LOG, _N_ZERO = range(4)
_SMALLEST = 1e-300
_CERTAIN = 40.0
_HALF_LOG_2PI = 0.9189385332046727
_N_ROUND = 2
_INSIDE = 1.0 + 1e-9  # of a start above the lowest rate


@kernel
def _log_spread(stats):
    """Return log(mean z) - mean(log z) >= 0, all that the data say of the shape."""
    n = stats[_N]
    # Jensen's inequality; what is below is rounding
    return max(math.log(max(stats[_SUM] / n, _SMALLEST)) - stats[_SUM_LOG] / n, 0.0)


@kernel
def lowest_rate(shape, hyper):
    """Return the lower bound of the rate given the shape; 0 without a bound."""
    return hyper[_LEAST] * math.sqrt((shape + 1.0) * (shape + 2.0))


@kernel
def _log_mass_above(a, b, lowest):
    """Return the log probability that a Gamma(a, b) rate is at least so large; 0 where all but exp(-40) is, or more.

    By Chernoff's bound less than exp(-a (r - 1 - log r)) lies below r < 1 times the mean.
    """
    ratio = b * lowest / a
    if ratio <= 0.0 or (ratio < 1.0 and a * (ratio - 1.0 - math.log(ratio)) > _CERTAIN):
        return 0.0
    return log_gamma_q(a, b * lowest)


@kernel
def _log_prior_shape(log_shape, hyper):
    if log_shape > math.log(hyper[_CAP]):
        return -np.inf
    deviation = (log_shape - hyper[_LOG_SHAPE_MEAN]) / hyper[_LOG_SHAPE_SD]
    return -0.5 * deviation * deviation


@kernel
def _log_target_shape(log_shape, spread, stats, hyper):
    """Return the log posterior density of log shape, rate integrated out, up to a constant; n > 0 and no zeros.

    (a - 1) sum log z - n log Gamma(a) + a0 log B + log Gamma(a0 + n a) - (a0 + n a) log(B + sum z), B = b0 / a^k, with
    Stirling's formula in both places: its leading terms cancel into n a times `spread`. Further the log probability
    that the rate exceeds its bound, given the data less beforehand.
    """
    shape = math.exp(log_shape)
    if not 0.0 < shape < np.inf:
        return -np.inf
    n, total, a0 = stats[_N], max(stats[_SUM], 1e-200), hyper[_A0]
    log_b = math.log(hyper[_B0]) - hyper[_K] * log_shape
    weight = n * shape
    ratio = math.exp(log_b) / total
    log_mean_rate = math.log((a0 + weight) / total) - math.log1p(ratio)
    above = 0.0
    if hyper[_LEAST] > 0.0:
        b, lowest = math.exp(log_b), lowest_rate(shape, hyper)
        above = _log_mass_above(a0 + weight, b + total, lowest) - _log_mass_above(a0, b, lowest)
    return (
        _log_prior_shape(log_shape, hyper)
        + above
        + weight * (math.log1p(a0 / weight) - math.log1p(ratio) - spread)
        + 0.5 * n * log_shape
        - n * stirling_error(shape)
        + a0 * (log_b + log_mean_rate)
        - 0.5 * math.log(a0 + weight)
        + stirling_error(a0 + weight)
    )


@kernel
def _log_target(log_theta, spread, stats, hyper, h):
    """Return the log posterior density of (log shape, log rate), cells at zero included, up to a constant."""
    log_shape, log_rate = log_theta
    shape, rate = math.exp(log_shape), math.exp(log_rate)
    if not (0.0 < shape < np.inf and 0.0 < rate < np.inf):
        return -np.inf
    lowest = lowest_rate(shape, hyper)
    if rate < lowest:
        return -np.inf
    log_b = math.log(hyper[_B0]) - hyper[_K] * log_shape
    value = _log_prior_shape(log_shape, hyper) - _log_mass_above(hyper[_A0], math.exp(log_b), lowest)
    value += hyper[_A0] * (log_b + log_rate) - math.exp(log_b + log_rate)
    n = stats[_N]
    if n > 0.0:
        log_q = math.log(max(stats[_SUM] / n, _SMALLEST)) + log_rate - log_shape
        q = math.exp(log_q)
        # near 1 log q and q - 1 cancel
        curve = log1p_minus(q - 1.0) if 0.5 < q < 2.0 else log_q - q + 1.0
        value += n * shape * (curve - spread) + 0.5 * n * log_shape - n * stirling_error(shape)
    if stats[_N_ZERO] > 0.0:
        value += stats[_N_ZERO] * log_gamma_p(shape, rate * h)
    return value


@kernel
def _store(log_shape, rate, hyper, theta):
    """Write a draw into theta where it is valid; return the status."""
    shape = min(math.exp(log_shape), hyper[_CAP])
    if not (0.0 < shape < np.inf and 0.0 < rate < np.inf):
        return INVALID
    theta[_SHAPE] = shape
    theta[_RATE] = rate
    return OK


@kernel
def _draw_rate(log_shape, stats, hyper, rng):
    shape = math.exp(log_shape)
    a = hyper[_A0] + stats[_N] * shape
    b = math.exp(math.log(hyper[_B0]) - hyper[_K] * log_shape) + stats[_SUM]
    return draw_gamma_above(a, b, lowest_rate(shape, hyper), rng)


@kernel
def _draw_prior(stats, hyper, theta, rng):
    """Draw from the prior: the logarithm of the shape by its quantile, then the rate."""
    mean, sd = hyper[_LOG_SHAPE_MEAN], hyper[_LOG_SHAPE_SD]
    top = (math.log(hyper[_CAP]) - mean) / sd
    # never 0, where the quantile is infinite
    log_shape = mean + sd * normal_quantile_between(-np.inf, top, rng.random() + 1e-17)
    return _store(log_shape, _draw_rate(log_shape, stats, hyper, rng), hyper, theta)


@kernel
def _draw_integrated(log_shape, stats, hyper, theta, rng):
    """A slice update of log shape with the rate integrated out, then the rate from its conditional."""
    spread = _log_spread(stats)
    width = 2.0 / math.sqrt(1.0 / (hyper[_LOG_SHAPE_SD] * hyper[_LOG_SHAPE_SD]) + 0.5 * stats[_N])
    density = _log_target_shape(log_shape, spread, stats, hyper)
    if not -np.inf < density < np.inf:
        return INVALID
    state = slice_state()
    x = slice_begin(state, log_shape, density, width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target_shape(x, spread, stats, hyper), rng)
    log_shape = x
    return _store(log_shape, _draw_rate(log_shape, stats, hyper, rng), hyper, theta)


@kernel
def _draw_joint(start, stats, hyper, h, rng):
    """Return (log shape, log rate) after slice updates along a fixed mean and along the rate; NaN where invalid."""
    log_shape, log_rate = start
    spread = _log_spread(stats) if stats[_N] > 0.0 else 0.0
    n = stats[_N] + stats[_N_ZERO]
    width = 2.0 / math.sqrt(1.0 / (hyper[_LOG_SHAPE_SD] * hyper[_LOG_SHAPE_SD]) + 0.5 * n)
    state = slice_state()
    for _ in range(_N_ROUND):
        density = _log_target((log_shape, log_rate), spread, stats, hyper, h)
        if not -np.inf < density < np.inf:
            return np.nan, np.nan
        # both logarithms by the same step: the mean, shape / rate, stays
        x = slice_begin(state, 0.0, density, width, rng)
        while slice_wants_more(state):
            x = slice_next(state, _log_target((log_shape + x, log_rate + x), spread, stats, hyper, h), rng)
        log_shape += x
        log_rate += x
        density = _log_target((log_shape, log_rate), spread, stats, hyper, h)
        rate_width = 2.0 / math.sqrt(hyper[_A0] + n * math.exp(log_shape))
        x = slice_begin(state, log_rate, density, rate_width, rng)
        while slice_wants_more(state):
            x = slice_next(state, _log_target((log_shape, x), spread, stats, hyper, h), rng)
        log_rate = x
    return log_shape, log_rate


@kernel
def _valid_hyper(hyper):
    return (
        -np.inf < hyper[_LOG_SHAPE_MEAN] < np.inf
        and 0.0 < hyper[_LOG_SHAPE_SD] < np.inf
        and hyper[_CAP] > 0.0
        and 0.0 < hyper[_A0] < np.inf
        and 0.0 < hyper[_B0] < np.inf
        and -np.inf < hyper[_K] < np.inf
        and 0.0 <= hyper[_LEAST] < np.inf
    )


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    if not _valid_hyper(hyper):
        return INVALID
    if stats[_N] == 0.0 and stats[_N_ZERO] == 0.0:
        return _draw_prior(stats, hyper, theta, rng)
    if not (0.0 < theta[_SHAPE] < np.inf and 0.0 < theta[_RATE] < np.inf):
        return INVALID
    log_shape = min(math.log(theta[_SHAPE]), math.log(hyper[_CAP]))
    if stats[_N_ZERO] == 0.0:
        return _draw_integrated(log_shape, stats, hyper, theta, rng)
    rate = max(theta[_RATE], lowest_rate(math.exp(log_shape), hyper) * _INSIDE)
    log_shape, log_rate = _draw_joint((log_shape, math.log(rate)), stats, hyper, constants[0], rng)
    return _store(log_shape, math.exp(log_rate), hyper, theta)


@kernel
def _log_rest(stats, hyper):
    """Return what `_log_target_shape` leaves out of the log density of the values and log shape."""
    n, a0 = stats[_N], hyper[_A0]
    top = (math.log(hyper[_CAP]) - hyper[_LOG_SHAPE_MEAN]) / hyper[_LOG_SHAPE_SD]
    prior = math.log(hyper[_LOG_SHAPE_SD]) + log_normal_cdf(top)
    return -stats[_SUM_LOG] - n * _HALF_LOG_2PI - a0 - math.lgamma(a0) - prior


@kernel
def _proposal(stats, hyper):
    """Return (mean, standard deviation) of a normal near the posterior of log shape; n > 0 and no zeros.

    Two of Newton's steps, by differences, from an approximation of the maximum of the likelihood (Minka).
    """
    spread = _log_spread(stats)
    precision = 1.0 / (hyper[_LOG_SHAPE_SD] * hyper[_LOG_SHAPE_SD])
    of_data = 0.5 * (stats[_N] - 1.0)
    s = max(spread, 1e-12)
    highest = math.log(hyper[_CAP])
    u = min(math.log((3.0 - s + math.sqrt((s - 3.0) * (s - 3.0) + 24.0 * s)) / (12.0 * s)), highest)
    u = (of_data * u + precision * hyper[_LOG_SHAPE_MEAN]) / (of_data + precision)
    sd = 1.0 / math.sqrt(of_data + precision)
    for _ in range(2):
        # the point above stays below the cap, beyond which the density is 0
        u = min(u, highest - 1.01 * sd)
        middle = _log_target_shape(u, spread, stats, hyper)
        below, above = _log_target_shape(u - sd, spread, stats, hyper), _log_target_shape(u + sd, spread, stats, hyper)
        curvature = (2.0 * middle - below - above) / (sd * sd)
        step = 0.5 * (above - below) / sd
        # negated, so that NaN counts as flat
        if not curvature > precision:
            curvature = precision
        sd = 1.0 / math.sqrt(curvature)
        u += min(max(step / curvature, -2.0), 2.0)
    return u, sd


@kernel
def log_evidence(stats, hyper, constants, theta):
    if stats[_N_ZERO] > 0.0:
        return np.nan
    if stats[_N] == 0.0:
        return 0.0
    log_shape = math.log(theta[_SHAPE])
    mean, sd = _proposal(stats, hyper)
    deviation = (log_shape - mean) / sd
    log_proposal = -0.5 * deviation * deviation - math.log(sd) - _HALF_LOG_2PI
    return _log_target_shape(log_shape, _log_spread(stats), stats, hyper) + _log_rest(stats, hyper) - log_proposal


@kernel
def predictive(stats, hyper, constants, theta, out):
    """Integrate out the rate given the shape; with zeros among the values the density is not known in this form.

    (s - 1) log z + log Gamma(A + s) / (Gamma(s) Gamma(A)) - s log B - (A + s) log(1 + z / B) at shape s, where the rate
    is Gamma(A, B); with Stirling's formula for Gamma(s) and the ratio of the two others, whose leading terms cancel.
    Above the lowest rate it is multiplied by the ratio of what Gamma(A + s, B + z) and Gamma(A, B) have there.
    """
    shape, n = theta[_SHAPE], stats[_N]
    a = hyper[_A0] + n * shape
    b = math.exp(math.log(hyper[_B0]) - hyper[_K] * math.log(shape)) + stats[_SUM]
    excess = log_rising_excess(a, shape) if a >= 10.0 else log_rising(a, shape) - shape * math.log(a)
    out[0] = shape * (math.log(a / (b * shape)) + 1.0) + 0.5 * math.log(shape) + excess
    out[0] -= _HALF_LOG_2PI + stirling_error(shape)
    if stats[_N_ZERO] > 0.0:
        out[0] = np.nan
    out[1] = shape - 1.0
    out[2] = a + shape
    out[3] = 1.0 / b
    out[4] = constants[0]
    out[5] = lowest_rate(shape, hyper)
    out[6] = _log_mass_above(a, b, out[5])


@kernel
def fill_log_predictive(z, aux, coefficients, out):
    level, power, total, inverse, h = (
        coefficients[0],
        coefficients[1],
        coefficients[2],
        coefficients[3],
        coefficients[4],
    )
    lowest, log_above = coefficients[5], coefficients[6]
    for i in range(out.size):
        out[i] = level + power * aux[i] - total * math.log1p(inverse * z[i]) if z[i] >= h else np.nan
        if lowest > 0.0:
            out[i] += _log_mass_above(total, 1.0 / inverse + z[i], lowest) - log_above


@kernel
def draw_afresh(stats, hyper, constants, theta, rng):
    if not _valid_hyper(hyper) or stats[_N_ZERO] > 0.0:
        return INVALID
    if stats[_N] == 0.0:
        return _draw_prior(stats, hyper, theta, rng)
    mean, sd = _proposal(stats, hyper)
    log_shape = rng.normal(mean, sd)
    if log_shape > math.log(hyper[_CAP]):
        return INVALID
    return _store(log_shape, _draw_rate(log_shape, stats, hyper, rng), hyper, theta)


@kernel
def log_posterior(stats, hyper, constants, theta):
    log_shape, log_rate = math.log(theta[_SHAPE]), math.log(theta[_RATE])
    spread = _log_spread(stats) if stats[_N] > 0.0 else 0.0
    # of shape and rate, not of their logarithms
    return _log_target((log_shape, log_rate), spread, stats, hyper, constants[0]) - log_shape - log_rate
