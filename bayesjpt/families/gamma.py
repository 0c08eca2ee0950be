"""Gamma on z = x / s; recorded zeros count as cells.

theta = (shape, rate). Prior: log shape ~ Normal(log_shape_mean, log_shape_sd^2), truncated above at log cap; rate given
shape ~ Gamma(a0, b0 / shape^k), truncated below at least * sqrt((shape + 1) (shape + 2)), so that
sqrt(E[z^3] / E[z]) lies below `plausible.farthest`. The cap, 12 (maximum / resolution)^2, keeps a standard deviation at
the column's maximum from falling below that of a rounding error.

A recorded value stands for its cell. Away from 0 the density at the value serves; the cell of 0, [-h, h) with
h = resolution / (2 scale), gets its average density P(Z < h) / (2 h), neither zero nor infinite. `fill_log_density` and
`mode` follow this score; `log_mass`, `cdf`, `moment` and `sample` are the plain gamma's.

The update of the parameters is in `gamma_posterior`.

Reference: Minka (2002), Estimating a gamma distribution.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import gamma_posterior, plausible
from bayesjpt.families.gamma_posterior import (
    lowest_rate,
)
from bayesjpt.families.record import ColumnFacts, Family, Parameter, Scaling, SharedScale
from bayesjpt.numerics.draw import draw_gamma
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_log
from bayesjpt.numerics.quadrature import NODES, WEIGHTS
from bayesjpt.numerics.special import (
    digamma,
    gamma_mean_between,
    gamma_p,
    gamma_quantile_between,
    log_gamma_interval,
    log_gamma_p,
    log_normal_cdf,
    log_poisson_mass,
    stirling_error,
)

_HALF_LOG_2PI = 0.9189385332046727
_SHAPE, _RATE = 0, 1
_LOG_SHAPE_MEAN, _LOG_SHAPE_SD, _CAP, _A0, _B0, _K, _LEAST = range(7)
_N, _SUM, _SUM_LOG, _N_ZERO = range(4)
_SMALLEST = 1e-300
_DIGITS_LEFT = 1e-3  # of a difference of squares, relative to these
_PART_VARIANCE = 2.0 * plausible.PART_VARIANCE
"""At the median of the shape, whose distribution is skewed."""
_INSIDE = 1.0 + 1e-6  # of a start above the lowest rate
_LARGEST_SHAPE = 1e10  # beyond, shape * log z and rate * z agree in all digits that their difference needs


def _cap(column: ColumnFacts) -> float:
    ratio = column.maximum / column.resolution
    return min(max(12.0 * ratio * ratio, 1.0), _LARGEST_SHAPE)


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Parts have means shape / rate ~ InverseGamma with the column's mean and about its variance, and are narrower.

    Log shape is normal, with standard deviation 1.5, around that of a part with `_PART_VARIANCE` times the column's
    variance, below the cap. Tails are bounded.
    """
    ratio, a0 = plausible.ratio(column), plausible.mean_shape(column)
    mean = plausible.relative_mean(column)
    log_shape, least = math.log(ratio * ratio / _PART_VARIANCE), 1.0 / plausible.farthest(column)
    return np.array([log_shape, 1.5, _cap(column), a0, (a0 - 1.0) * mean, 1.0, least])


def abda_prior(column: ColumnFacts, start: np.ndarray) -> np.ndarray:
    """The paper's prior in raw units, rewritten for z: shape held at the start, rate of x ~ Gamma(1, 1)."""
    held = math.log(min(start[_SHAPE], 0.9 * _LARGEST_SHAPE))
    return np.array([held, 0.01, _LARGEST_SHAPE, 1.0, 1.0 / column.scale, 0.0, 0.0])


def _constants(column: ColumnFacts) -> np.ndarray:
    return np.array([0.5 * column.resolution / column.scale])


@kernel
def prepare(z, constants, out):
    for i in range(out.size):
        # values of 0 have a cell: their logarithm is not read
        out[i] = fast_log(max(z[i], _SMALLEST))


@kernel
def _log_level(shape, rate):
    """Return shape log rate - log Gamma(shape), by the ratio rate / shape since the two terms nearly cancel."""
    return shape * (math.log(rate / shape) + 1.0) + 0.5 * math.log(shape) - _HALF_LOG_2PI - stirling_error(shape)


@kernel
def coefficients(theta, constants, out):
    shape, rate, h = theta[_SHAPE], theta[_RATE], constants[0]
    out[0] = _log_level(shape, rate)
    out[1] = shape - 1.0
    out[2] = rate
    out[3] = log_gamma_p(shape, rate * h) - math.log(2.0 * h)
    out[4] = h


@kernel
def fill_log_density(z, aux, coefficients, out):
    level, power, rate = coefficients[0], coefficients[1], coefficients[2]
    at_zero, h = coefficients[3], coefficients[4]
    for i in range(out.size):
        out[i] = level + power * aux[i] - rate * z[i] if z[i] >= h else (at_zero if z[i] >= 0.0 else -np.inf)


@kernel
def accumulate(z, aux, rows, constants, stats):
    h = constants[0]
    n_zero = 0
    total = stats[_SUM]
    total_log = stats[_SUM_LOG]
    for j in range(rows.size):
        i = rows[j]
        if z[i] >= h:
            total += z[i]
            total_log += aux[i]
        else:
            n_zero += 1
    stats[_N] += rows.size - n_zero
    stats[_SUM] = total
    stats[_SUM_LOG] = total_log
    stats[_N_ZERO] += n_zero


@kernel
def initial(stats, hyper, constants, theta):
    """Minka's closed form for the shape's estimate by maximum likelihood; the posterior mean of the rate.

    A pseudo-row at the prior's shape, of weight 1 / (1 + n), stands in where rows are few or all alike.
    """
    n = stats[_N] + stats[_N_ZERO]
    shape = min(math.exp(hyper[_LOG_SHAPE_MEAN]), 0.9 * hyper[_CAP])
    total = stats[_SUM] + stats[_N_ZERO] * 0.5 * constants[0]
    if n > 0.0:
        mean = max(total / n, _SMALLEST)
        # within the cell of 0 as if uniform: the logarithm's mean is log h - 1
        mean_log = (stats[_SUM_LOG] + stats[_N_ZERO] * (math.log(constants[0]) - 1.0)) / n
        spread = max(math.log(mean) - mean_log, 0.0)
        pseudo = 1.0 / (1.0 + n)
        s = (n * spread + pseudo * 0.5 / shape) / (n + pseudo)
        shape = (3.0 - s + math.sqrt((s - 3.0) * (s - 3.0) + 24.0 * s)) / (12.0 * s)
    theta[_SHAPE] = min(shape, 0.99 * hyper[_CAP])
    rate = (hyper[_A0] + n * theta[_SHAPE]) / (hyper[_B0] / theta[_SHAPE] ** hyper[_K] + total)
    theta[_RATE] = max(rate, lowest_rate(theta[_SHAPE], hyper) * _INSIDE, _SMALLEST)


@kernel
def _slope_in_shape(shape, x):
    """Return the derivative of log P(shape, x) in the shape, by a difference of fourth order.

    It has no closed form; log P is smooth on the scale of sqrt(shape), and known to 1e-13, so this is good to 1e-9.
    """
    step = 1e-3 * min(shape, math.sqrt(shape))
    near = log_gamma_p(shape + step, x) - log_gamma_p(shape - step, x)
    far = log_gamma_p(shape + 2.0 * step, x) - log_gamma_p(shape - 2.0 * step, x)
    return (8.0 * near - far) / (12.0 * step)


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    shape, rate, h = theta[_SHAPE], theta[_RATE], constants[0]
    level = math.log(rate) - digamma(shape)
    mean = shape / rate
    at_zero = 0.0
    in_shape = 0.0
    in_rate = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0:
            if z[i] >= h:
                in_shape += flow[i] * (level + aux[i])
                in_rate += flow[i] * (mean - z[i])
            else:
                at_zero += flow[i]
    if at_zero != 0.0:
        x = rate * h
        in_shape += at_zero * _slope_in_shape(shape, x)
        in_rate += at_zero * math.exp(log_poisson_mass(shape, x) + math.log(shape) - log_gamma_p(shape, x)) / rate
    out[_SHAPE] += in_shape
    out[_RATE] += in_rate


@kernel
def log_mass(lo, hi, theta, constants):
    return log_gamma_interval(theta[_SHAPE], theta[_RATE] * lo, theta[_RATE] * hi)


@kernel
def cdf(x, theta, constants):
    return gamma_p(theta[_SHAPE], theta[_RATE] * x)


@kernel
def _unit_variance(shape, lo, hi, mean):
    """Return the variance at rate 1 given [lo, hi], whose mean is known; where it is narrow, about its middle."""
    log_all = log_gamma_interval(shape, lo, hi)
    # x times the density is the density with shape + 1, times a constant
    last_log = log_gamma_interval(shape + 2.0, lo, hi)
    variance = shape * (shape + 1.0) * math.exp(last_log - log_all) - mean * mean
    if variance > _DIGITS_LEFT * mean * mean:
        return variance
    if lo > 0.5 * hi and hi - lo < math.sqrt(shape):
        middle, half = 0.5 * lo + 0.5 * hi, 0.5 * (hi - lo)
        total, first, second = 0.0, 0.0, 0.0
        for i in range(NODES.size):
            t = half * NODES[i]
            density = WEIGHTS[i] * math.exp((shape - 1.0) * math.log1p(t / middle) - t)
            total += density
            first += density * t
            second += density * t * t
        return max(second / total - first / total * (first / total), 0.0)
    # integrated by parts: the mean, and what the ends take away
    variance = mean
    for end, sign in ((lo, 1.0), (hi, -1.0)):
        if 0.0 < end < np.inf:
            variance += sign * shape * (end - mean) * math.exp(log_poisson_mass(shape, end) - log_all)
    return variance if variance > 0.0 else 0.0


@kernel
def moment(k, lo, hi, theta, constants):
    shape, rate = theta[_SHAPE], theta[_RATE]
    mean = gamma_mean_between(shape, rate * lo, rate * hi)
    if math.isnan(mean):
        end = min(max((shape - 1.0) / rate, lo), hi)
        return end if k == 1 else 0.0
    first = min(max(mean / rate, max(lo, 0.0)), hi)
    if k == 1:
        return first
    half = 0.5 * (hi - max(lo, 0.0))
    return min(_unit_variance(shape, rate * lo, rate * hi, rate * first) / rate / rate, half * half)


@kernel
def mode(lo, hi, theta, constants):
    shape, rate, h = theta[_SHAPE], theta[_RATE], constants[0]
    if hi < 0.0:
        return hi
    lo = max(lo, 0.0)
    if hi < h:
        return lo
    peak = min(max((shape - 1.0) / rate, max(lo, h)), hi)
    if lo >= h:
        return peak
    at_peak = _log_level(shape, rate) + (shape - 1.0) * math.log(peak) - rate * peak
    at_zero = log_gamma_p(shape, rate * h) - math.log(2.0 * h)
    return lo if at_zero >= at_peak else peak


@kernel
def sample(lo, hi, theta, constants, rng):
    shape, rate = theta[_SHAPE], theta[_RATE]
    if lo <= 0.0 and hi == np.inf:
        return draw_gamma(shape, rate, rng)
    value = gamma_quantile_between(shape, rate * lo, rate * hi, rng.random()) / rate
    return min(max(value, lo), hi)


@kernel
def _accumulate_scale(theta, hyper, out):
    pass  # all is in the normaliser


@kernel
def _log_scale_normaliser(tau, theta, hyper):
    centre, sd = hyper[_LOG_SHAPE_MEAN] - math.log(tau), hyper[_LOG_SHAPE_SD]
    total = 0.5 * theta.size * log_normal_cdf((math.log(hyper[_CAP]) - centre) / sd)
    for at in range(0, theta.size, 2):
        deviation = (math.log(theta[at + _SHAPE]) - centre) / sd
        total += 0.5 * deviation * deviation
    return total


def _by_name(column: ColumnFacts) -> bool:
    return plausible.holds_zeros(column) or plausible.is_far_from_zero(column)


FAMILY = Family.of(
    globals(),
    gamma_posterior,
    name="gamma",
    bases=("real",),
    support=(0.0, np.inf),
    statistical_type="positive",
    scaling=Scaling.SCALE,
    parameters=(
        Parameter(
            "shape",
            "positive",
            "log_normal",
            lambda hyper, theta: (hyper["log_shape_mean"], hyper["log_shape_sd"], hyper["cap"]),
            "none",
        ),
        Parameter(
            "rate",
            "positive",
            "gamma_above",
            lambda hyper, theta: (
                hyper["a0"],
                hyper["b0"] / theta["shape"] ** hyper["k"],
                hyper["least"] * ((theta["shape"] + 1.0) * (theta["shape"] + 2.0)) ** 0.5,
            ),
            "per scale unit of the column",
        ),
    ),
    hyper_names=("log_shape_mean", "log_shape_sd", "cap", "a0", "b0", "k", "least"),
    shared_scale=SharedScale({}, 2.0, _accumulate_scale, _log_scale_normaliser, {"log_shape_mean": -1.0}),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_stats=4,
    by_name=_by_name,
)
