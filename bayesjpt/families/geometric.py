"""Geometric counts from 0, p (1 - p)^x, with a conjugate beta prior on p.

theta = (p,). Prior: p ~ Beta(a0, b0) truncated below at `least`, so that sqrt(E[z^3] / E[z]), the root of
6 m^2 + 6 m + 1 at a mean m, lies below `plausible.largest_count`.

Reference: Johnson, Kemp and Kotz (2005), Univariate Discrete Distributions, section 5.2.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import plausible
from bayesjpt.families.negative_binomial_posterior import lowest_p
from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Parameter, SharedScale
from bayesjpt.numerics.draw import draw_beta_above
from bayesjpt.numerics.incomplete_beta import log_beta_above
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import log_rising
from bayesjpt.numerics.special import log1mexp, tilted_mean, tilted_variance

_P = 0
_A0, _B0, _LEAST = range(3)
_N, _SUM = 0, 1
_SMALLEST_MEAN = 1e-3
_LARGEST_DECAY = 1e300
_INSIDE = 1.0 + 1e-9  # of a start above the least p


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Parts have means (1 - p) / p with the column's mean and about its variance: p ~ Beta(a0, (a0 - 1) mean)."""
    a0 = plausible.mean_shape(column)
    least = lowest_p(1.0, 1.0 / (plausible.largest_count(column) ** 2 - 1.0))[0]
    return np.array([a0, (a0 - 1.0) * max(plausible.mean(column), _SMALLEST_MEAN), least])


def _by_name(column: ColumnFacts) -> bool:
    """Not where a geometric is much wider than the column, or values are too few to show a tail."""
    mean = plausible.mean(column)
    return plausible.has_few_levels(column) or plausible.is_too_wide(column, mean * (mean + 1.0))


def abda_prior(_column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior: p ~ Beta(1, 1)."""
    return np.array([1.0, 1.0, 0.0])


def _constants(_column: ColumnFacts) -> np.ndarray:
    return np.empty(0)


@kernel
def _decay(theta):
    """Return -log(1 - p), finite at p = 1 so that 0 times it stays 0."""
    return -math.log1p(-theta[_P]) if theta[_P] < 1.0 else _LARGEST_DECAY


@kernel
def coefficients(theta, constants, out):
    out[0] = math.log(theta[_P])
    out[1] = _decay(theta)


@kernel
def fill_log_density(z, aux, coefficients, out):
    log_p, decay = coefficients[0], coefficients[1]
    for i in range(out.size):
        out[i] = log_p - decay * z[i] if z[i] >= 0.0 and np.floor(z[i]) == z[i] else -np.inf


@kernel
def accumulate(z, aux, rows, constants, stats):
    total = stats[_SUM]
    for j in range(rows.size):
        total += z[rows[j]]
    stats[_N] += rows.size
    stats[_SUM] = total


@kernel
def initial(stats, hyper, constants, theta):
    a, b = hyper[_A0] + stats[_N], hyper[_B0] + stats[_SUM]
    theta[_P] = max(a / (a + b), hyper[_LEAST] * _INSIDE)


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    p = draw_beta_above(hyper[_A0] + stats[_N], hyper[_B0] + stats[_SUM], hyper[_LEAST], 1.0 - hyper[_LEAST], rng)
    if not 0.0 < p < 1.0:
        return INVALID
    theta[_P] = p
    return OK


@kernel
def log_posterior(stats, hyper, constants, theta):
    p = theta[_P]
    if p < hyper[_LEAST]:
        return -np.inf
    return (hyper[_A0] + stats[_N] - 1.0) * math.log(p) + (hyper[_B0] + stats[_SUM] - 1.0) * math.log1p(-p)


@kernel
def _log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    p = theta[_P]
    by_p = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0 and z[i] >= 0.0 and np.floor(z[i]) == z[i]:
            # at 0 the second term is 0, also for p = 1, where it would be 0 / 0
            by_p += flow[i] * (1.0 / p - (z[i] / (1.0 - p) if z[i] > 0.0 else 0.0))
    out[_P] += by_p


@kernel
def _log_mass_above(a, b, least):
    """Return the log probability that a Beta(a, b) variable is at least so large."""
    return log_beta_above(a, b, least, 1.0 - least) if least > 0.0 else 0.0


@kernel
def _log_level(a, b, least):
    """Return the log integral of p^(a - 1) (1 - p)^(b - 1) above the least p."""
    return _log_beta(a, b) + _log_mass_above(a, b, least)


@kernel
def log_marginal(stats, hyper, constants):
    a0, b0, least = hyper[_A0], hyper[_B0], hyper[_LEAST]
    return _log_level(a0 + stats[_N], b0 + stats[_SUM], least) - _log_level(a0, b0, least)


@kernel
def log_evidence(stats, hyper, constants, theta):
    return log_marginal(stats, hyper, constants)


@kernel
def predictive(stats, hyper, constants, theta, out):
    """A beta negative binomial's mass, corrected for the least p."""
    a, b = hyper[_A0] + stats[_N], hyper[_B0] + stats[_SUM]
    out[0] = b
    out[1] = a + b
    out[2] = math.log(a) - _log_mass_above(a, b, hyper[_LEAST])
    out[3] = hyper[_LEAST]


@kernel
def fill_log_predictive(z, aux, coefficients, out):
    b, both, level, least = coefficients[0], coefficients[1], coefficients[2], coefficients[3]
    for i in range(out.size):
        if z[i] >= 0.0 and np.floor(z[i]) == z[i]:
            above = _log_mass_above(both - b + 1.0, b + z[i], least)
            out[i] = level + log_rising(b, z[i]) - log_rising(both, z[i] + 1.0) + above
        else:
            out[i] = -np.inf


@kernel
def log_mass(lo, hi, theta, constants):
    first, last = max(np.ceil(lo), 0.0), np.floor(hi)
    if not (first <= last and first < np.inf):
        return -np.inf
    decay = _decay(theta)
    return -decay * first + log1mexp(decay * (last - first + 1.0)) if last < np.inf else -decay * first


@kernel
def cdf(x, theta, constants):
    return -math.expm1(-_decay(theta) * (np.floor(x) + 1.0)) if x >= 0.0 else 0.0


@kernel
def _moments_from_first(decay, n):
    """Return (mean, variance) of the distance from the first of n integers (n may be infinite).

    With small decay by the moments of a tilted uniform variable, whose leading terms do not cancel.
    """
    if n == np.inf:
        rest = -math.expm1(-decay)
        return math.exp(-decay) / rest, math.exp(-decay) / (rest * rest)
    if decay < 0.5:
        mean = n * tilted_mean(n * decay) - tilted_mean(decay)
        return mean, n * n * tilted_variance(n * decay) - tilted_variance(decay)
    rest, rest_n = -math.expm1(-decay), -math.expm1(-n * decay)
    share, share_n = math.exp(-decay), math.exp(-n * decay)
    mean = share / rest - n * share_n / rest_n
    return mean, share / (rest * rest) - n * n * share_n / (rest_n * rest_n)


@kernel
def moment(k, lo, hi, theta, constants):
    first, last = max(np.ceil(lo), 0.0), np.floor(hi)
    if not (first <= last and first < np.inf):
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    offset, variance = _moments_from_first(_decay(theta), last - first + 1.0)
    return first + offset if k == 1 else variance


@kernel
def mode(lo, hi, theta, constants):
    first = max(np.ceil(lo), 0.0)
    if first <= np.floor(hi):
        return first
    return min(max(lo, 0.0), hi)


@kernel
def sample(lo, hi, theta, constants, rng):
    first, last = max(np.ceil(lo), 0.0), np.floor(hi)
    if not (first <= last and first < np.inf):
        return mode(lo, hi, theta, constants)
    decay = _decay(theta)
    if last == np.inf:
        # the floor of an exponential variable is geometric
        return first + np.floor(rng.standard_exponential() / decay)
    offset = -math.log1p(rng.random() * math.expm1(-decay * (last - first + 1.0))) / decay
    return min(first + np.floor(offset), last)


@kernel
def _accumulate_scale(theta, hyper, out):
    for p in theta:
        out[1] -= hyper[_B0] * math.log1p(-p)


@kernel
def _log_scale_normaliser(tau, theta, hyper):
    return theta.size * _log_level(hyper[_A0], tau * hyper[_B0], hyper[_LEAST])


FAMILY = Family.of(
    globals(),
    name="geometric",
    bases=("integer",),
    support=(0.0, np.inf),
    statistical_type="count",
    parameters=(
        Parameter(
            "p",
            "unit",
            "beta_above",
            lambda hyper, theta: (hyper["a0"], hyper["b0"], hyper["least"]),
            "probability of 0",
        ),
    ),
    hyper_names=("a0", "b0", "least"),
    shared_scale=SharedScale({"b0": 1.0}, plausible.mean_shape, _accumulate_scale, _log_scale_normaliser),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_stats=2,
    by_name=_by_name,
)
