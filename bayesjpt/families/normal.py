"""Normal on z = (x - m) / s, with a conjugate normal-inverse-gamma prior whose variance has a floor.

theta = (variance, mu). Prior: variance ~ InverseGamma(a0, b0) truncated below at the floor; mu given variance ~
Normal(m0, v0 * variance). The floor, (resolution / scale)^2 / 12, is the variance of a rounding error: without it a
leaf that holds ties alone has no proper scale.

References: Gelman et al. (2013), Bayesian Data Analysis, section 3.3; Vergari et al. (2019), appendix B.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import plausible
from bayesjpt.families.normal_inverse_gamma import (
    FLOOR,
    HYPER_NAMES,
    SHARED_SCALE,
    conjugate,
    log_joint,
    log_predictive,
    variance_and_mu,
)
from bayesjpt.families.normal_inverse_gamma import log_evidence as nig_log_evidence
from bayesjpt.families.normal_inverse_gamma import predictive as nig_predictive
from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Scaling
from bayesjpt.numerics.draw import draw_gamma_below
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_log
from bayesjpt.numerics.special import (
    is_lost,
    log_lost_normal,
    log_normal_interval,
    log_normal_mass,
    normal_cdf,
    normal_moments_between,
    normal_quantile_between,
)

_HALF_LOG_2PI = 0.9189385332046727
_VARIANCE, _MU = 0, 1
_FARTHEST = 1e150  # standard deviations beyond which squares overflow


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Parts of the column lie around its median, spread as its values are, and are narrower than it."""
    floor = plausible.rounding_variance(column)
    return np.array(plausible.normal_inverse_gamma(plausible.squared_deviation(column), 0.0, floor))


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior in raw units (m0 = 1, v0 = 10, a0 = b0 = 1, no floor), rewritten for z = (x - m) / s."""
    inverse = 1.0 / column.scale
    b0 = min(max(inverse * inverse, 1e-300), 1e300)
    return np.array([(1.0 - column.location) / column.scale, 10.0, 1.0, b0, 0.0])


def _constants(_column: ColumnFacts) -> np.ndarray:
    return np.empty(0)


@kernel
def coefficients(theta, constants, out):
    out[0] = -_HALF_LOG_2PI - 0.5 * math.log(theta[_VARIANCE])
    out[1] = theta[_MU]
    out[2] = -0.5 / theta[_VARIANCE]


@kernel
def fill_log_density(z, aux, coefficients, out):
    log_scale, mean, factor = coefficients[0], coefficients[1], coefficients[2]
    for i in range(out.size):
        out[i] = log_scale + factor * ((z[i] - mean) * (z[i] - mean))


@kernel
def accumulate(z, aux, rows, constants, stats):
    total = stats[1]
    squares = stats[2]
    for j in range(rows.size):
        value = z[rows[j]]
        total += value
        squares += value * value
    stats[0] += rows.size
    stats[1] = total
    stats[2] = squares


@kernel
def initial(stats, hyper, constants, theta):
    m, _, a, b = conjugate(stats[0], stats[1], stats[2], hyper)
    theta[_MU] = m
    theta[_VARIANCE] = max(b / (a + 1.0), hyper[FLOOR] * 1.5)


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    if not 0.0 <= hyper[FLOOR] < np.inf:
        return INVALID
    m, v, a, b = conjugate(stats[0], stats[1], stats[2], hyper)
    # a precision below 1 / floor is a variance above the floor
    upper = 1.0 / hyper[FLOOR] if hyper[FLOOR] > 0.0 else np.inf
    precision = draw_gamma_below(a, b, upper, rng)
    if not (precision > 0.0 and precision < np.inf):
        return INVALID
    variance = max(1.0 / precision, hyper[FLOOR])
    mu = rng.normal(m, math.sqrt(v * variance))
    if not -np.inf < mu < np.inf:
        return INVALID
    theta[_VARIANCE] = variance
    theta[_MU] = mu
    return OK


@kernel
def log_posterior(stats, hyper, constants, theta):
    if theta[_VARIANCE] < hyper[FLOOR]:
        return -np.inf
    log_variance = math.log(theta[_VARIANCE])
    posterior = conjugate(stats[0], stats[1], stats[2], hyper)
    return log_joint(theta[_MU], log_variance, posterior, 0.0) - log_variance


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    mean, precision = theta[_MU], 1.0 / theta[_VARIANCE]
    total = 0.0
    first = 0.0
    second = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0:
            deviation = z[i] - mean
            total += flow[i]
            first += flow[i] * deviation
            second += flow[i] * deviation * deviation
    out[_VARIANCE] += 0.5 * precision * (second * precision - total)
    out[_MU] += first * precision


@kernel
def log_marginal(stats, hyper, constants):
    return nig_log_evidence(stats[0], stats[1], stats[2], hyper)


@kernel
def log_evidence(stats, hyper, constants, theta):
    return nig_log_evidence(stats[0], stats[1], stats[2], hyper)


@kernel
def predictive(stats, hyper, constants, theta, out):
    nig_predictive(stats[0], stats[1], stats[2], hyper, out)


@kernel
def fill_log_predictive(z, aux, coefficients, out):
    if coefficients[4] > 0.0:
        for i in range(out.size):
            out[i] = log_predictive(z[i], coefficients)
        return
    mean, level, power, scale = coefficients[0], coefficients[1], coefficients[2], coefficients[3]
    for i in range(out.size):
        # the argument is at least 1, and the power half the rows: log1p would gain nothing
        out[i] = level - power * fast_log(1.0 + scale * ((z[i] - mean) * (z[i] - mean)))


@kernel
def log_mass(lo, hi, theta, constants):
    scale = math.sqrt(theta[_VARIANCE])
    if is_lost(lo, hi, theta[_MU]):
        return log_lost_normal(lo, hi, theta[_MU], scale)
    return log_normal_interval((lo - theta[_MU]) / scale, (hi - theta[_MU]) / scale)


@kernel
def fill_log_masses(lo, hi, theta, at, constants, out):
    for i in range(out.size):
        mean = theta[at[i] + _MU]
        # one division a leaf: both ends are multiplied
        precision = 1.0 / math.sqrt(theta[at[i] + _VARIANCE])
        out[i] = log_normal_mass((lo - mean) * precision, (hi - mean) * precision)
        if is_lost(lo, hi, mean):
            out[i] = log_lost_normal(lo, hi, mean, 1.0 / precision)


@kernel
def cdf(x, theta, constants):
    return normal_cdf((x - theta[_MU]) / math.sqrt(theta[_VARIANCE]))


@kernel
def mode(lo, hi, theta, constants):
    return min(max(theta[_MU], lo), hi)


@kernel
def moment(k, lo, hi, theta, constants):
    mean, scale = theta[_MU], math.sqrt(theta[_VARIANCE])
    a, b = (lo - mean) / scale, (hi - mean) / scale
    if b <= a or max(a, -b) > _FARTHEST:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    end, offset, variance = normal_moments_between(a, b)
    start = lo if end < 0 else (hi if end > 0 else mean)
    first = min(max(start + scale * offset, lo), hi)
    return first if k == 1 else theta[_VARIANCE] * variance


@kernel
def sample(lo, hi, theta, constants, rng):
    if lo == -np.inf and hi == np.inf:
        return rng.normal(theta[_MU], math.sqrt(theta[_VARIANCE]))
    scale = math.sqrt(theta[_VARIANCE])
    u = normal_quantile_between((lo - theta[_MU]) / scale, (hi - theta[_MU]) / scale, rng.random())
    return min(max(theta[_MU] + scale * u, lo), hi)


FAMILY = Family.of(
    globals(),
    name="normal",
    bases=("real",),
    support=(-np.inf, np.inf),
    statistical_type="real",
    scaling=Scaling.LOCATION_SCALE,
    parameters=variance_and_mu("squared scale units of the column", "scale units of the column, from its location"),
    hyper_names=HYPER_NAMES,
    shared_scale=SHARED_SCALE,
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_stats=3,
)
