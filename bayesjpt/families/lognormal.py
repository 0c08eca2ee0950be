"""Lognormal on z = x / s: log z is normal with a normal-inverse-gamma prior; recorded zeros count as cells.

theta = (variance, mu) of log z. Prior: variance ~ InverseGamma(a0, b0) truncated below at the floor; mu given
variance ~ Normal(m0, v0 * variance) truncated above at

    -2 variance - log(max((1 - exp(-variance)) exp(-2 variance) / widest^2, 1 / largest^2)) / 2.

So the standard deviation of z stays below `widest`, and sqrt(E[z^3] / E[z]) = exp(mu + 2 variance) below `largest`: all
moments exist, and beyond `largest` the density falls faster than z^-3, so that the variance on a cell is of the order
of its lower end's square, however little of the lognormal lies there.
The floor, (resolution / maximum)^2 / 12, is the variance of the logarithm's rounding error at the column's maximum; at
least 1e-11.

A recorded value stands for its cell. Away from 0 the density at the value serves; the cell of 0, [-h, h) with
h = resolution / (2 scale), gets its average density P(Z < h) / (2 h). `fill_log_density` and `mode` follow this score;
`log_mass`, `cdf`, `moment` and `sample` are the plain lognormal's.

The update of the parameters is in `lognormal_posterior`.

Reference: Gelman et al. (2013), Bayesian Data Analysis, section 3.3.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import lognormal_posterior, plausible
from bayesjpt.families.lognormal_posterior import (
    log_share_below,
)
from bayesjpt.families.normal_inverse_gamma import (
    HYPER_NAMES,
    M0,
    SCALE_EXPONENTS,
    SCALE_SHAPE,
    V0,
    add_scale_terms,
    log_floor_masses,
    variance_and_mu,
)
from bayesjpt.families.record import ColumnFacts, Family, Parameter, Scaling, SharedScale
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_log
from bayesjpt.numerics.quadrature import NODES, WEIGHTS
from bayesjpt.numerics.special import (
    log_normal_cdf,
    log_normal_interval,
    mills_ratio,
    normal_cdf,
    normal_moments_between,
    normal_quantile_between,
)

_HALF_LOG_2PI = 0.9189385332046727
_VARIANCE, _MU = 0, 1
_N, _SUM_LOG, _SUM_SQUARES, _N_ZERO = range(4)
_SMALLEST = 1e-300
_LARGEST_LOG = 690.0
_DIGITS_LEFT = 1e-3
_NARROW = 7e-6  # up to there a lognormal is a normal to more digits than its moments have
_SMALLEST_FLOOR = 1e-11
"""Below, neighbouring floats would be so far apart that the space between them has a probability, 1e-10 and more."""


def _floor(column: ColumnFacts) -> float:
    ratio = min(column.resolution / column.maximum, 1.0) if column.maximum > 0.0 else 1.0
    return max(ratio * ratio / 12.0, _SMALLEST_FLOOR)


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The normal's prior for the logarithm; the column's is that of a lognormal with its mean and variance.

    Parts are at most twice as wide as the column, and reach no farther than `plausible.farthest` says.
    """
    sd = plausible.relative_deviation(column)
    mean = plausible.relative_mean(column)
    variance = math.log1p((sd / mean) ** 2)
    nig = plausible.normal_inverse_gamma(variance, math.log(mean) - 0.5 * variance, _floor(column))
    return np.array([*nig, 2.0 * sd, plausible.farthest(column)])


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior of the normal, on log x (m0 = 1, v0 = 10, a0 = b0 = 1, no floor or bounds), for log z."""
    return np.array([1.0 - math.log(column.scale), 10.0, 1.0, 1.0, 0.0, np.inf, np.inf])


def _constants(column: ColumnFacts) -> np.ndarray:
    return np.array([0.5 * column.resolution / column.scale])


@kernel
def prepare(z, constants, out):
    for i in range(out.size):
        out[i] = fast_log(max(z[i], _SMALLEST))


@kernel
def _log_at_zero(theta, h):
    """Return the log of the average density of the cell of 0."""
    return log_normal_cdf((math.log(h) - theta[_MU]) / math.sqrt(theta[_VARIANCE])) - math.log(2.0 * h)


@kernel
def coefficients(theta, constants, out):
    out[0] = -_HALF_LOG_2PI - 0.5 * math.log(theta[_VARIANCE])
    out[1] = theta[_MU]
    out[2] = -0.5 / theta[_VARIANCE]
    out[3] = _log_at_zero(theta, constants[0])
    out[4] = constants[0]


@kernel
def fill_log_density(z, aux, coefficients, out):
    level, mean, factor = coefficients[0], coefficients[1], coefficients[2]
    at_zero, h = coefficients[3], coefficients[4]
    for i in range(out.size):
        deviation = aux[i] - mean
        plain = level + factor * (deviation * deviation) - aux[i]
        out[i] = plain if z[i] >= h else (at_zero if z[i] >= 0.0 else -np.inf)


@kernel
def accumulate(z, aux, rows, constants, stats):
    h = constants[0]
    n_zero = 0
    total = stats[_SUM_LOG]
    squares = stats[_SUM_SQUARES]
    for j in range(rows.size):
        i = rows[j]
        if z[i] >= h:
            total += aux[i]
            squares += aux[i] * aux[i]
        else:
            n_zero += 1
    stats[_N] += rows.size - n_zero
    stats[_SUM_LOG] = total
    stats[_SUM_SQUARES] = squares
    stats[_N_ZERO] += n_zero


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    mean, precision, h = theta[_MU], 1.0 / theta[_VARIANCE], constants[0]
    at_zero = 0.0
    total = 0.0
    first = 0.0
    second = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0:
            if z[i] >= h:
                deviation = aux[i] - mean
                total += flow[i]
                first += flow[i] * deviation
                second += flow[i] * deviation * deviation
            else:
                at_zero += flow[i]
    out[_VARIANCE] += 0.5 * precision * (second * precision - total)
    out[_MU] += first * precision
    if at_zero != 0.0:
        deviate = (math.log(h) - mean) * math.sqrt(precision)
        # phi / Phi: in the left tail both underflow, their ratio does not
        if deviate < 0.0:
            hazard = 1.0 / mills_ratio(-deviate)
        else:
            hazard = math.exp(-0.5 * deviate * deviate - _HALF_LOG_2PI) / normal_cdf(deviate)
        out[_VARIANCE] -= 0.5 * at_zero * hazard * deviate * precision
        out[_MU] -= at_zero * hazard * math.sqrt(precision)


@kernel
def _deviate(x, theta):
    """Return the number of standard deviations from the mean of log z to log x."""
    if x <= 0.0:
        return -np.inf
    return (math.log(x) - theta[_MU]) / math.sqrt(theta[_VARIANCE])


@kernel
def log_mass(lo, hi, theta, constants):
    if hi <= 0.0:
        return -np.inf
    return log_normal_interval(_deviate(lo, theta), _deviate(hi, theta))


@kernel
def cdf(x, theta, constants):
    return normal_cdf(_deviate(x, theta))


@kernel
def _plain_mode(lo, hi, theta):
    # the exponential stays finite and positive
    peak = math.exp(min(max(theta[_MU] - theta[_VARIANCE], -_LARGEST_LOG), _LARGEST_LOG))
    return min(max(peak, lo), hi)


@kernel
def _log_moment(k, a, b, theta):
    """Return the log of E[z^k; a < deviate < b]: the density times z^k is the density shifted by k variance."""
    shift = k * math.sqrt(theta[_VARIANCE])
    return k * theta[_MU] + 0.5 * shift * shift + log_normal_interval(a - shift, b - shift)


@kernel
def _relative_variance(excess, a, b, log_all, theta):
    """Return the variance over the squared mean: exp(excess) - 1, or what keeps its digits where that is small."""
    deviation = math.sqrt(theta[_VARIANCE])
    if excess > _DIGITS_LEFT or not (a > -np.inf or b < np.inf):
        return math.expm1(excess)
    if b - a < 1.0:
        middle, half = 0.5 * a + 0.5 * b, 0.5 * (b - a)
        total, first, second = 0.0, 0.0, 0.0
        for i in range(NODES.size):
            t = half * NODES[i]
            density, value = WEIGHTS[i] * math.exp(-t * (middle + 0.5 * t)), math.expm1(deviation * t)
            total += density
            first += density * value
            second += density * value * value
        first /= total
        return max(second / total - first * first, 0.0) / ((1.0 + first) * (1.0 + first))
    _, _, spread = normal_moments_between(a, b)
    # a second difference of logarithms, of which each has 16 digits
    if deviation * math.sqrt(spread) < _NARROW * max(1.0, -log_all) ** (1.0 / 3.0):
        return theta[_VARIANCE] * spread
    return max(math.expm1(excess), 0.0)


@kernel
def moment(k, lo, hi, theta, constants):
    a, b = _deviate(lo, theta), _deviate(hi, theta)
    log_all = log_normal_interval(a, b)
    if hi <= 0.0 or log_all == -np.inf:
        end = _plain_mode(lo, hi, theta)
        return end if k == 1 else 0.0
    log_first = _log_moment(1, a, b, theta) - log_all
    first = math.exp(log_first) if -np.inf < log_first < _LARGEST_LOG else np.inf
    first = min(max(first, max(lo, 0.0)), hi)
    if k == 1:
        return first
    half = 0.5 * (hi - max(lo, 0.0))
    log_second = _log_moment(2, a, b, theta) - log_all
    if not -np.inf < log_second < _LARGEST_LOG:
        return half * half
    return min(first * (first * _relative_variance(log_second - 2.0 * log_first, a, b, log_all, theta)), half * half)


@kernel
def mode(lo, hi, theta, constants):
    h = constants[0]
    if hi < 0.0:
        return hi
    lo = max(lo, 0.0)
    if hi < h:
        return lo
    peak = _plain_mode(max(lo, h), hi, theta)
    if lo >= h:
        return peak
    deviate = _deviate(peak, theta)
    at_peak = -_HALF_LOG_2PI - 0.5 * math.log(theta[_VARIANCE]) - 0.5 * deviate * deviate - math.log(peak)
    return lo if _log_at_zero(theta, h) >= at_peak else peak


@kernel
def sample(lo, hi, theta, constants, rng):
    if hi <= max(lo, 0.0):
        return min(max(lo, 0.0), hi)
    if lo <= 0.0 and hi == np.inf:
        deviate = rng.standard_normal()
    else:
        deviate = normal_quantile_between(_deviate(lo, theta), _deviate(hi, theta), rng.random())
    log_z = theta[_MU] + math.sqrt(theta[_VARIANCE]) * deviate
    return min(max(math.exp(min(max(log_z, -_LARGEST_LOG), _LARGEST_LOG)), lo), hi)


@kernel
def _accumulate_scale(theta, hyper, out):
    add_scale_terms(theta, 2, hyper, out)


@kernel
def _log_scale_normaliser(tau, theta, hyper):
    total = log_floor_masses(tau, theta.size / 2, hyper)
    for at in range(0, theta.size, 2):
        total += log_share_below(theta[at], hyper[M0], hyper[V0] / tau, hyper)
    return total


def _upper_mu(hyper, theta):
    """Return the upper bound of mu, as `upper_mu` does, of arrays or tensors."""
    variance = theta["variance"]
    wide = (np.exp(-2.0 * variance) - np.exp(-3.0 * variance)) / hyper["widest"] ** 2
    least = 1.0 / hyper["largest"] ** 2
    larger = 0.5 * (wide + least + abs(wide - least))  # of tensors, too
    return -2.0 * variance - 0.5 * np.log(larger + _SMALLEST)  # without bounds the logarithm stays finite


FAMILY = Family.of(
    globals(),
    lognormal_posterior,
    name="lognormal",
    bases=("real",),
    support=(0.0, np.inf),
    statistical_type="positive",
    scaling=Scaling.SCALE,
    parameters=(
        variance_and_mu("squared logarithm", "")[0],
        Parameter(
            "mu",
            "real",
            "normal_below",
            lambda hyper, theta: (hyper["m0"], (hyper["v0"] * theta["variance"]) ** 0.5, _upper_mu(hyper, theta)),
            "logarithm of the column's scale units",
        ),
    ),
    hyper_names=(*HYPER_NAMES, "widest", "largest"),
    shared_scale=SharedScale(SCALE_EXPONENTS, SCALE_SHAPE, _accumulate_scale, _log_scale_normaliser),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_stats=4,
    by_name=plausible.is_far_from_zero,
)
