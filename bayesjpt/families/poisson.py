"""Poisson counts, with a conjugate gamma prior on the rate.

theta = (rate,). Prior: rate ~ Gamma(a0, b0) truncated above at `most`: means of parts lie within the column. The
auxiliary table is log z!, infinite where z is no count, so that such a value has mass 0.

Reference: Gelman et al. (2013), Bayesian Data Analysis, section 2.6.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import plausible
from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Parameter, SharedScale
from bayesjpt.numerics.count_search import begin_search, found, is_open, narrowed, tail_targets
from bayesjpt.numerics.draw import draw_gamma_below
from bayesjpt.numerics.few_counts import FEW, moment_of_few
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import log_rising
from bayesjpt.numerics.special import log1mexp, log_gamma_p, log_gamma_q, log_poisson_mass

_RATE = 0
_A0, _B0, _MOST = range(3)
_N, _SUM, _SUM_LOG_FACTORIAL = range(3)
_SMALLEST_MEAN = 1e-3
_N_SUMMED = 256
_N_BEFORE, _LARGEST_BEFORE, _MOST_BEFORE = 20.0, 50.0, 0.9
_LARGEST_DRAWN = 1e15


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Parts have rates with the column's mean and at most its variance: Gamma(a0, a0 / mean), a0 at least 1."""
    a0 = max(plausible.ratio(column) ** 2, 1.0)
    return np.array([a0, a0 / max(plausible.mean(column), _SMALLEST_MEAN), plausible.largest_count(column)])


def _by_name(column: ColumnFacts) -> bool:
    """Not where a Poisson is much wider than the column."""
    return plausible.is_too_wide(column, plausible.mean(column))


def abda_prior(_column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior: rate ~ Gamma(1, 1)."""
    return np.array([1.0, 1.0, np.inf])


def _constants(_column: ColumnFacts) -> np.ndarray:
    return np.empty(0)


@kernel
def prepare(z, constants, out):
    for i in range(out.size):
        out[i] = math.lgamma(z[i] + 1.0) if z[i] >= 0.0 and np.floor(z[i]) == z[i] else np.inf


@kernel
def coefficients(theta, constants, out):
    out[0] = math.log(theta[_RATE])
    out[1] = theta[_RATE]


@kernel
def fill_log_density(z, aux, coefficients, out):
    log_rate, rate = coefficients[0], coefficients[1]
    # what is no count has an infinite log factorial, and mass 0
    for i in range(out.size):
        out[i] = z[i] * log_rate - rate - aux[i]


@kernel
def accumulate(z, aux, rows, constants, stats):
    total = stats[_SUM]
    log_factorials = stats[_SUM_LOG_FACTORIAL]
    for j in range(rows.size):
        total += z[rows[j]]
        log_factorials += aux[rows[j]]
    stats[_N] += rows.size
    stats[_SUM] = total
    stats[_SUM_LOG_FACTORIAL] = log_factorials


@kernel
def initial(stats, hyper, constants, theta):
    theta[_RATE] = min((hyper[_A0] + stats[_SUM]) / (hyper[_B0] + stats[_N]), hyper[_MOST])


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    rate = draw_gamma_below(hyper[_A0] + stats[_SUM], hyper[_B0] + stats[_N], hyper[_MOST], rng)
    if not 0.0 < rate < np.inf:
        return INVALID
    theta[_RATE] = rate
    return OK


@kernel
def log_posterior(stats, hyper, constants, theta):
    rate = theta[_RATE]
    if rate > hyper[_MOST]:
        return -np.inf
    return (hyper[_A0] + stats[_SUM] - 1.0) * math.log(rate) - (hyper[_B0] + stats[_N]) * rate


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    by_rate = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0 and aux[i] < np.inf:
            by_rate += flow[i] * (z[i] / theta[_RATE] - 1.0)
    out[_RATE] += by_rate


@kernel
def _log_mass_below(a, b, most):
    """Return the log probability that a Gamma(a, b) rate is at most so large."""
    return log_gamma_p(a, b * most) if most < np.inf else 0.0


@kernel
def log_marginal(stats, hyper, constants):
    a, b = hyper[_A0] + stats[_SUM], hyper[_B0] + stats[_N]
    prior = hyper[_A0] * math.log(hyper[_B0]) - math.lgamma(hyper[_A0])
    prior += _log_mass_below(a, b, hyper[_MOST]) - _log_mass_below(hyper[_A0], hyper[_B0], hyper[_MOST])
    return prior + math.lgamma(a) - a * math.log(b) - stats[_SUM_LOG_FACTORIAL]


@kernel
def log_evidence(stats, hyper, constants, theta):
    return log_marginal(stats, hyper, constants)


@kernel
def predictive(stats, hyper, constants, theta, out):
    """A negative binomial's mass, corrected for the largest rate."""
    a, b = hyper[_A0] + stats[_SUM], hyper[_B0] + stats[_N]
    out[0] = a
    out[1] = -a * math.log1p(1.0 / b) - _log_mass_below(a, b, hyper[_MOST])
    out[2] = math.log1p(b)
    out[3] = b
    out[4] = hyper[_MOST]


@kernel
def fill_log_predictive(z, aux, coefficients, out):
    a, level, slope, b, most = coefficients[0], coefficients[1], coefficients[2], coefficients[3], coefficients[4]
    for i in range(out.size):
        if aux[i] < np.inf:
            out[i] = level + log_rising(a, z[i]) - slope * z[i] - aux[i] + _log_mass_below(a + z[i], b + 1.0, most)
        else:
            out[i] = -np.inf


@kernel
def _summed_mass(first, last, rate):
    """Return the log mass of the integers first ... last, term by term from the largest."""
    # relative to the largest term: none overflows
    peak = min(max(np.floor(rate), first), last)
    total = 1.0
    term = 1.0
    for i in range(int(peak - first)):
        term *= (peak - i) / rate
        total += term
    term = 1.0
    for i in range(int(last - peak)):
        term *= rate / (peak + i + 1.0)
        total += term
    return min(math.log(total) + log_poisson_mass(peak, rate), 0.0)


@kernel
def _log_from(first, rate):
    """Return the log mass of the integers from `first` on; by those before it where these are few, and leave enough."""
    if first <= _N_BEFORE and rate <= _LARGEST_BEFORE:
        total = 0.0
        term = 1.0
        for k in range(int(first)):
            total += term
            term *= rate / (k + 1.0)
        before = math.exp(-rate) * total
        if before < _MOST_BEFORE:
            return math.log1p(-before)
    return log_gamma_p(first, rate)


@kernel
def _integer_mass(first, last, rate):
    """Return the log mass of the integers first ... last; last may be infinite."""
    first = max(first, 0.0)
    if not (first <= last and first < np.inf):
        return -np.inf
    if last == np.inf:
        return _log_from(first, rate) if first > 0.0 else 0.0
    if last - first < _N_SUMMED:
        return _summed_mass(first, last, rate)
    upto_last = log_gamma_q(last + 1.0, rate)
    if first == 0.0:
        return upto_last
    from_first = log_gamma_p(first, rate)
    # the two tails that are small: their difference keeps its digits
    if upto_last < from_first:
        larger, smaller = upto_last, log_gamma_q(first, rate)
    else:
        larger, smaller = from_first, log_gamma_p(last + 1.0, rate)
    if larger == -np.inf:
        return -np.inf
    return larger + log1mexp(larger - smaller)


@kernel
def log_mass(lo, hi, theta, constants):
    return _integer_mass(np.ceil(lo), np.floor(hi), theta[_RATE])


@kernel
def cdf(x, theta, constants):
    if x == np.inf:
        return 1.0
    return math.exp(log_gamma_q(np.floor(x) + 1.0, theta[_RATE])) if x >= 0.0 else 0.0


@kernel
def moment(k, lo, hi, theta, constants):
    rate, first, last = theta[_RATE], max(np.ceil(lo), 0.0), np.floor(hi)
    if 0.0 <= last - first < FEW:
        return moment_of_few(k, first, last, rate, 0.0)
    log_all = _integer_mass(first, last, rate)
    if log_all == -np.inf:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    # x p(x) = rate p(x - 1): moments are masses of shifted intervals
    mean = rate * math.exp(_integer_mass(first - 1.0, last - 1.0, rate) - log_all)
    mean = min(max(mean, first), last)
    if k == 1:
        return mean
    # E[x g(x)] = rate E[g(x + 1)], and what the ends take away
    variance = rate
    if first > 0.0:
        variance += rate * (first - mean) * math.exp(log_poisson_mass(first - 1.0, rate) - log_all)
    if last < np.inf:
        variance -= rate * (last + 1.0 - mean) * math.exp(log_poisson_mass(last, rate) - log_all)
    half = 0.5 * (last - first)
    return min(variance, half * half) if variance > 0.0 else 0.0


@kernel
def mode(lo, hi, theta, constants):
    first, last, peak = max(np.ceil(lo), 0.0), np.floor(hi), np.floor(theta[_RATE])
    if first <= last:
        return min(max(peak, first), last)
    return min(max(peak, lo), hi)


@kernel
def _reached(k, log_below, log_above, rate):
    """Return whether P(X <= k) is at least the target, compared in the smaller tail."""
    if log_below < log_above:
        return log_gamma_q(k + 1.0, rate) >= log_below
    return log_gamma_p(k + 1.0, rate) <= log_above


@kernel
def _quantile(first, last, rate, u):
    """Return the u-quantile of the counts in first ... last."""
    start = min(max(np.floor(rate), first), last)
    log_all = _integer_mass(first, last, rate)
    if log_all == -np.inf:
        return start
    log_before = log_gamma_q(first, rate) if first > 0.0 else -np.inf
    log_behind = log_gamma_p(last + 1.0, rate) if last < np.inf else -np.inf
    log_below, log_above = tail_targets(u, log_all, log_before, log_behind)
    search = begin_search(start)
    while is_open(search):
        search = narrowed(search, _reached(search[0], log_below, log_above, rate), first, last)
    return found(search)


@kernel
def sample(lo, hi, theta, constants, rng):
    rate, first, last = theta[_RATE], max(np.ceil(lo), 0.0), np.floor(hi)
    if not (first <= last and first < np.inf):
        return mode(lo, hi, theta, constants)
    if first == 0.0 and last == np.inf:
        # beyond, a Poisson is normal, and the generator's own draw would overflow
        if rate < _LARGEST_DRAWN:
            return float(rng.poisson(rate))
        return np.floor(rng.normal(rate, math.sqrt(rate)) + 0.5)
    # never 0: log u is finite
    return _quantile(first, last, rate, rng.random() + 1e-17)


@kernel
def _accumulate_scale(theta, hyper, out):
    for rate in theta:
        out[0] += hyper[_A0]
        out[1] += hyper[_B0] * rate


@kernel
def _log_scale_normaliser(tau, theta, hyper):
    return theta.size * _log_mass_below(hyper[_A0], tau * hyper[_B0], hyper[_MOST])


FAMILY = Family.of(
    globals(),
    name="poisson",
    bases=("integer",),
    support=(0.0, np.inf),
    statistical_type="count",
    parameters=(
        Parameter(
            "rate", "positive", "gamma_below", lambda hyper, theta: (hyper["a0"], hyper["b0"], hyper["most"]), "counts"
        ),
    ),
    hyper_names=("a0", "b0", "most"),
    shared_scale=SharedScale({"b0": 1.0}, plausible.mean_shape, _accumulate_scale, _log_scale_normaliser),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_stats=3,
    by_name=_by_name,
)
