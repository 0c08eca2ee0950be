"""Negative binomial counts: the failures before the `size`-th success, for any real size > 0.

theta = (size, p), mass Gamma(z + size) / (Gamma(size) z!) p^size (1 - p)^z, mean size (1 - p) / p; size = 1 is the
geometric, a large size close to the Poisson. Prior: log size ~ Normal(log_size_mean, log_size_sd^2), truncated above at
log cap; p given size ~ Beta(a0 + a1 size, b1 + b0 / (least + size)), which is what a1 rows with the sum b1 leave of
Beta(a0, b0 / (least + size)), truncated below so that sqrt(E[z^3] / E[z]) lies below `plausible.largest_count`
(`lowest_p`). Beyond the cap, 1e6, p comes so close to 1 that 1 - p loses digits.

The auxiliary table is log z!, infinite where z is no count, so that such a value has mass 0. The update of the
parameters is in `negative_binomial_posterior`.

Reference: Johnson, Kemp and Kotz (2005), Univariate Discrete Distributions, chapter 5.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import negative_binomial_posterior, plausible
from bayesjpt.families.negative_binomial_posterior import lowest_p, prior_of_p
from bayesjpt.families.record import ColumnFacts, Family, Parameter, SharedScale
from bayesjpt.numerics.count_search import begin_search, found, is_open, narrowed, tail_targets
from bayesjpt.numerics.few_counts import FEW, moment_of_few
from bayesjpt.numerics.incomplete_beta import log_beta_kernel, log_beta_tails
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import digamma_step, log_rising
from bayesjpt.numerics.special import log1mexp, log_normal_cdf

_SIZE, _P = 0, 1
_LOG_SIZE_MEAN, _LOG_SIZE_SD, _CAP, _A0, _B0, _LEAST, _A1, _B1, _NEAR = range(9)
_N, _SUM, _SQUARES = range(3)
_SMALLEST_MEAN = 1e-3
_LEAST_SIZE = 0.5
"""Ratio of the column's mean and standard deviation, whose square is the least size, at which a part with that mean
would be twice as wide as the column."""
_LARGEST_SIZE = 1e6
_LARGEST_P = 1.0 - 1.1102230246251565e-16
_SMALLEST = 1e-300
_INSIDE = 1.0 + 1e-9  # of a start above the lowest p
_LARGE_SIZE = 10.0
_LARGE_COUNT = 16.0
_N_SUMMED = 256
_NO_DIGITS = 1e-14
"""Nats between two tails whose difference is rounding alone."""
_N_BEFORE, _LARGEST_BEFORE, _MOST_BEFORE = 20.0, 50.0, 0.9
_LARGEST_DRAWN = 1e15
_LARGEST_RATE = 1e300


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Parts have means size (1 - p) / p with the column's mean m, and about its variance at most, whatever the size.

    That is p given size ~ Beta(3 + a1 size, a1 m + 2 m / (least + size)), a1 = m / variance; the centre of log size is
    that of a part with half of the column's variance. Parts of less than the least size have smaller means in place of
    tails without bounds: they are how a leaf describes many zeros.
    """
    mean, sd = max(plausible.mean(column), _SMALLEST_MEAN), plausible.deviation(column)
    variance = max(sd * sd, _SMALLEST_MEAN)
    size = mean * (mean / max(0.5 * variance - mean, 0.1 * variance))
    rows = mean / variance
    log_size = math.log(min(max(size, 0.01), 0.01 * _LARGEST_SIZE))
    least = (_LEAST_SIZE * mean / sd) ** 2
    near = 1.0 / (plausible.largest_count(column) ** 2 - 1.0)
    return np.array([log_size, 1.5, _LARGEST_SIZE, 3.0, 2.0 * mean, least, rows, rows * mean, near])


def _by_name(column: ColumnFacts) -> bool:
    """Not where even a Poisson is much wider than the column, or values are too few to show a tail."""
    return plausible.has_few_levels(column) or plausible.is_too_wide(column, plausible.mean(column))


def abda_prior(_column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """In the spirit of the paper, which has no negative binomial: p ~ Beta(1, 1), as for its geometric."""
    return np.array([0.0, 1.5, _LARGEST_SIZE, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])


@kernel
def prepare(z, constants, out):
    for i in range(out.size):
        out[i] = math.lgamma(z[i] + 1.0) if z[i] >= 0.0 and np.floor(z[i]) == z[i] else np.inf


@kernel
def coefficients(theta, constants, out):
    out[0] = theta[_SIZE]
    out[1] = theta[_P]
    out[2] = theta[_SIZE] * math.log(theta[_P])
    out[3] = math.log1p(-theta[_P])
    out[4] = math.lgamma(theta[_SIZE])


@kernel
def _log_mass_at(z, aux, prepared):
    """Return the log mass of one count; where size and z are large, terms cancel before they are computed."""
    if aux == np.inf:
        return -np.inf
    size = prepared[0]
    if z < _LARGE_COUNT:
        return log_rising(size, z) - aux + prepared[2] + z * prepared[3]
    if size < _LARGE_SIZE:
        return log_rising(z + 1.0, size - 1.0) - prepared[4] + prepared[2] + z * prepared[3]
    p = prepared[1]
    return log_beta_kernel(size, z + 1.0, p, 1.0 - p) - math.log(z + size) - prepared[3]


@kernel
def fill_log_density(z, aux, coefficients, out):
    for i in range(out.size):
        out[i] = _log_mass_at(z[i], aux[i], coefficients)


@kernel
def accumulate(z, aux, rows, constants, stats):
    total = stats[_SUM]
    squares = stats[_SQUARES]
    for j in range(rows.size):
        value = z[rows[j]]
        total += value
        squares += value * value
    stats[_N] += rows.size
    stats[_SUM] = total
    stats[_SQUARES] = squares


@kernel
def initial(stats, hyper, constants, theta):
    """Moments: 1 / size is the variance beyond a Poisson's by the squared mean, with one pseudo-row of the prior's."""
    n = stats[_N]
    inverse = math.exp(-hyper[_LOG_SIZE_MEAN])
    if n > 0.0 and stats[_SUM] > 0.0:
        mean = stats[_SUM] / n
        # rounding may leave less than 0 where all values are alike
        variance = max(stats[_SQUARES] / n - mean * mean, 0.0)
        inverse = (inverse + n * max((variance - mean) / (mean * mean), 0.0)) / (n + 1.0)
    size = min(1.0 / inverse, 0.99 * hyper[_CAP])
    a, b = prior_of_p(size, hyper)
    a, b = a + n * size, b + stats[_SUM]
    theta[_SIZE] = size
    least = _INSIDE * lowest_p(size, hyper[_NEAR])[0]
    theta[_P] = min(max(a / (a + b), least, _SMALLEST), _LARGEST_P)


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    size, p = theta[_SIZE], theta[_P]
    by_size = 0.0
    by_p = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0 and aux[i] < np.inf:
            by_size += flow[i] * (digamma_step(size, z[i]) + math.log(p))
            by_p += flow[i] * (size / p - z[i] / (1.0 - p))
    out[_SIZE] += by_size
    out[_P] += by_p


@kernel
def _log_upto(k, theta):
    """Return log P(X <= k) for k >= 0."""
    return log_beta_tails(theta[_SIZE], k + 1.0, theta[_P], 1.0 - theta[_P])[0]


@kernel
def _log_beyond(k, theta):
    """Return log P(X > k) for k >= 0."""
    return log_beta_tails(theta[_SIZE], k + 1.0, theta[_P], 1.0 - theta[_P])[1]


@kernel
def _log_from(first, size, p):
    """Return the log mass of the counts from `first` on; by those before it where these are few, and leave enough."""
    at_zero = size * math.log(p)
    if first <= _N_BEFORE and at_zero >= -_LARGEST_BEFORE:
        total = 0.0
        term = 1.0
        for k in range(int(first)):
            total += term
            term *= (size + k) * (1.0 - p) / (k + 1.0)
        before = math.exp(at_zero) * total
        if before < _MOST_BEFORE:
            return math.log1p(-before)
    return log_beta_tails(size, first, p, 1.0 - p)[1]


@kernel
def _log_mass_of(k, size, p):
    """Return the log mass of one count k."""
    prepared = np.empty(6)
    coefficients(np.array([size, p]), np.empty(0), prepared)
    return _log_mass_at(k, math.lgamma(k + 1.0), prepared)


@kernel
def _mode_of(size, p):
    return max(np.floor((size - 1.0) * ((1.0 - p) / p)), 0.0)


@kernel
def _summed_mass(first, last, size, p):
    """Return the log mass of the counts first ... last, term by term from the largest."""
    # relative to the largest term: none overflows
    peak = min(max(_mode_of(size, p), first), last)
    q = 1.0 - p
    total = 1.0
    term = 1.0
    for i in range(int(peak - first)):
        term *= (peak - i) / ((size + (peak - i - 1.0)) * q)
        total += term
    term = 1.0
    for i in range(int(last - peak)):
        term *= (size + (peak + i)) * q / (peak + i + 1.0)
        total += term
    return min(math.log(total) + _log_mass_of(peak, size, p), 0.0)


@kernel
def _integer_mass(first, last, size, p):
    """Return the log mass of the counts first ... last; last may be infinite."""
    first = max(first, 0.0)
    if not (first <= last and first < np.inf):
        return -np.inf
    if last == np.inf:
        return _log_from(first, size, p) if first > 0.0 else 0.0
    if last - first < _N_SUMMED:
        return _summed_mass(first, last, size, p)
    theta = np.array([size, p])
    upto_last = _log_upto(last, theta)
    if first == 0.0:
        return upto_last
    from_first = _log_beyond(first - 1.0, theta)
    # the two tails that are small: their difference keeps its digits
    if upto_last < from_first:
        larger, smaller = upto_last, _log_upto(first - 1.0, theta)
    else:
        larger, smaller = from_first, _log_beyond(last, theta)
    if larger == -np.inf:
        return -np.inf
    if larger - smaller < _NO_DIGITS:  # it keeps none: about as many counts as there are, each about as probable
        middle = first + np.floor(0.5 * (last - first))
        highest = max(_log_mass_of(first, size, p), _log_mass_of(middle, size, p), _log_mass_of(last, size, p))
        return min(math.log(last - first + 1.0) + highest, larger + math.log(_NO_DIGITS))
    return larger + log1mexp(larger - smaller)


@kernel
def log_mass(lo, hi, theta, constants):
    return _integer_mass(np.ceil(lo), np.floor(hi), theta[_SIZE], theta[_P])


@kernel
def cdf(x, theta, constants):
    if x == np.inf:
        return 1.0
    return math.exp(_log_upto(np.floor(x), theta)) if x >= 0.0 else 0.0


@kernel
def moment(k, lo, hi, theta, constants):
    size, p, first, last = theta[_SIZE], theta[_P], max(np.ceil(lo), 0.0), np.floor(hi)
    if 0.0 <= last - first < FEW:
        return moment_of_few(k, first, last, size * (1.0 - p), 1.0 - p)
    log_all = _integer_mass(first, last, size, p)
    if log_all == -np.inf:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    # x f(x; size) = size (1 - p) / p f(x - 1; size + 1): moments are masses of shifted intervals
    odds = (1.0 - p) / p
    mean = size * odds * math.exp(_integer_mass(first - 1.0, last - 1.0, size + 1.0, p) - log_all)
    mean = min(max(mean, first, 0.0), last)
    if k == 1:
        return mean
    # E[x g(x)] = (1 - p) E[(x + size) g(x + 1)], and what the ends take away
    variance = odds * (mean + size)
    if first > 0.0:
        log_end = _integer_mass(first - 1.0, first - 1.0, size, p) - log_all
        variance += odds * (first - 1.0 + size) * (first - mean) * math.exp(log_end)
    if last < np.inf:
        log_end = _integer_mass(last, last, size, p) - log_all
        variance -= odds * (last + size) * (last + 1.0 - mean) * math.exp(log_end)
    half = 0.5 * (last - first)
    return min(variance, half * half) if variance > 0.0 else 0.0


@kernel
def mode(lo, hi, theta, constants):
    first, last, peak = max(np.ceil(lo), 0.0), np.floor(hi), _mode_of(theta[_SIZE], theta[_P])
    if first <= last:
        return min(max(peak, first), last)
    return min(max(peak, lo), hi)


@kernel
def _reached(k, log_below, log_above, theta):
    """Return whether P(X <= k) is at least the target, compared in the smaller tail."""
    if log_below < log_above:
        return _log_upto(k, theta) >= log_below
    return _log_beyond(k, theta) <= log_above


@kernel
def _quantile(first, last, theta, u):
    """Return the u-quantile of the counts in first ... last."""
    size, p = theta[_SIZE], theta[_P]
    start = min(max(_mode_of(size, p), first), last)
    log_all = _integer_mass(first, last, size, p)
    if log_all == -np.inf:
        return start
    log_before = _log_upto(first - 1.0, theta) if first > 0.0 else -np.inf
    log_behind = _log_beyond(last, theta) if last < np.inf else -np.inf
    log_below, log_above = tail_targets(u, log_all, log_before, log_behind)
    search = begin_search(start)
    while is_open(search):
        search = narrowed(search, _reached(search[0], log_below, log_above, theta), first, last)
    return found(search)


@kernel
def sample(lo, hi, theta, constants, rng):
    first, last = max(np.ceil(lo), 0.0), np.floor(hi)
    if not (first <= last and first < np.inf):
        return mode(lo, hi, theta, constants)
    if first > 0.0 or last < np.inf:
        # never 0: log u is finite
        return _quantile(first, last, theta, rng.random() + 1e-17)
    # a Poisson whose rate is gamma
    rate = min(rng.standard_gamma(theta[_SIZE]) * ((1.0 - theta[_P]) / theta[_P]), _LARGEST_RATE)
    if rate < _LARGEST_DRAWN:
        return float(rng.poisson(rate))
    # so far out a Poisson is normal, and the generator's own draw would overflow
    return np.floor(rng.normal(rate, math.sqrt(rate)) + 0.5)


def lowest_p_of(size, near):
    """Return what `lowest_p` returns, of arrays and tensors alike."""
    linear = 3.0 * (size + 1.0) * near
    root = linear + (linear * linear + 4.0 * (size + 1.0) * (size + 2.0) * near) ** 0.5
    return root / (root + 2.0)


@kernel
def _accumulate_scale(theta, hyper, out):
    pass  # all is in the normaliser


@kernel
def _log_scale_normaliser(tau, theta, hyper):
    centre, sd = hyper[_LOG_SIZE_MEAN] - math.log(tau), hyper[_LOG_SIZE_SD]
    total = 0.5 * theta.size * log_normal_cdf((math.log(hyper[_CAP]) - centre) / sd)
    for at in range(0, theta.size, 2):
        deviation = (math.log(theta[at + _SIZE]) - centre) / sd
        total += 0.5 * deviation * deviation
    return total


FAMILY = Family.of(
    globals(),
    negative_binomial_posterior,
    name="negative_binomial",
    bases=("integer",),
    support=(0.0, np.inf),
    statistical_type="count",
    parameters=(
        Parameter(
            "size",
            "positive",
            "log_normal",
            lambda hyper, theta: (hyper["log_size_mean"], hyper["log_size_sd"], hyper["cap"]),
            "none",
        ),
        Parameter(
            "p",
            "unit",
            "beta_above",
            lambda hyper, theta: (
                hyper["a0"] + hyper["a1"] * theta["size"],
                hyper["b1"] + hyper["b0"] / (hyper["least"] + theta["size"]),
                lowest_p_of(theta["size"], hyper["near"]),
            ),
            "probability",
        ),
    ),
    hyper_names=("log_size_mean", "log_size_sd", "cap", "a0", "b0", "least", "a1", "b1", "near"),
    shared_scale=SharedScale({}, 2.0, _accumulate_scale, _log_scale_normaliser, {"log_size_mean": -1.0}),
    priors={"default": default_prior, "abda": abda_prior},
    n_stats=3,
    by_name=_by_name,
)
