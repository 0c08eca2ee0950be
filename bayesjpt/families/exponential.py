"""Exponential on z = x / s, with a gamma prior on the rate; recorded zeros count as cells.

theta = (rate,). Prior: rate ~ Gamma(a0, b0) truncated below at `least`, so that sqrt(E[z^3] / E[z]) = sqrt(6) / rate
lies below `plausible.farthest`: conjugate without recorded zeros, sliced on the logarithm with them. The cell of 0,
[-h, h) with h = resolution / (2 scale), gets its average density (1 - exp(-rate h)) / (2 h). `fill_log_density` and
`mode` follow this score; `log_mass`, `cdf`, `moment` and `sample` are the plain exponential's.

References: Neal (2003), Slice sampling.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import plausible
from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Parameter, Scaling, SharedScale
from bayesjpt.numerics.draw import draw_gamma_above
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more
from bayesjpt.numerics.special import log1mexp, log_gamma_q, tilted_mean, tilted_variance

_RATE = 0
_A0, _B0, _LEAST = 0, 1, 2
_N, _SUM, _N_ZERO = range(3)
_SMALLEST = 1e-300
_N_ROUND = 3
_INSIDE = 1.0 + 1e-9  # of a start above the least rate


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Parts have means 1 / rate ~ InverseGamma with the column's mean and about its variance, and bounded tails."""
    a0 = plausible.mean_shape(column)
    b0 = (a0 - 1.0) * plausible.relative_mean(column)
    return np.array([a0, b0, math.sqrt(6.0) / plausible.farthest(column)])


def _by_name(column: ColumnFacts) -> bool:
    """Not far from 0, where an exponential is much wider than the column."""
    mean = plausible.mean(column)
    return plausible.is_too_wide(column, mean * mean)


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior in raw units, rate of x ~ Gamma(1, 1), rewritten for z."""
    return np.array([1.0, 1.0 / column.scale, 0.0])


def _constants(column: ColumnFacts) -> np.ndarray:
    return np.array([0.5 * column.resolution / column.scale])


@kernel
def coefficients(theta, constants, out):
    h = constants[0]
    out[0] = math.log(theta[_RATE])
    out[1] = theta[_RATE]
    out[2] = log1mexp(theta[_RATE] * h) - math.log(2.0 * h)
    out[3] = h


@kernel
def fill_log_density(z, aux, coefficients, out):
    log_rate, rate, at_zero, h = coefficients[0], coefficients[1], coefficients[2], coefficients[3]
    for i in range(out.size):
        out[i] = log_rate - rate * z[i] if z[i] >= h else (at_zero if z[i] >= 0.0 else -np.inf)


@kernel
def accumulate(z, aux, rows, constants, stats):
    h = constants[0]
    n_zero = 0
    total = stats[_SUM]
    for j in range(rows.size):
        value = z[rows[j]]
        if value >= h:
            total += value
        else:
            n_zero += 1
    stats[_N] += rows.size - n_zero
    stats[_SUM] = total
    stats[_N_ZERO] += n_zero


@kernel
def initial(stats, hyper, constants, theta):
    n = stats[_N] + stats[_N_ZERO]
    # a recorded zero stands for the middle of the inner half of its cell
    total = stats[_SUM] + 0.5 * constants[0] * stats[_N_ZERO]
    # strictly above the least rate, where the density of a slice is positive
    theta[_RATE] = max((hyper[_A0] + n) / (hyper[_B0] + total), hyper[_LEAST] * _INSIDE, _SMALLEST)


@kernel
def _log_target(log_rate, stats, hyper, h):
    """Return the log posterior density of log rate up to a constant; it is concave above the least rate."""
    rate = math.exp(log_rate)
    if not hyper[_LEAST] <= rate < np.inf or rate == 0.0:
        return -np.inf
    return (
        (hyper[_A0] + stats[_N]) * log_rate
        - (hyper[_B0] + stats[_SUM]) * rate
        + stats[_N_ZERO] * log1mexp(max(rate * h, _SMALLEST))
    )


@kernel
def _log_mass_above(a, b, least):
    """Return the log probability that a Gamma(a, b) rate is at least so large."""
    return log_gamma_q(a, b * least) if least > 0.0 else 0.0


@kernel
def log_posterior(stats, hyper, constants, theta):
    log_rate = math.log(theta[_RATE])
    # of the rate, not of its logarithm
    return _log_target(log_rate, stats, hyper, constants[0]) - log_rate


@kernel
def log_evidence(stats, hyper, constants, theta):
    if stats[_N_ZERO] > 0.0:
        return np.nan
    a0, b0 = hyper[_A0], hyper[_B0]
    a, b = a0 + stats[_N], b0 + stats[_SUM]
    whole = a0 * math.log(b0) - math.lgamma(a0) + math.lgamma(a) - a * math.log(b)
    return whole + _log_mass_above(a, b, hyper[_LEAST]) - _log_mass_above(a0, b0, hyper[_LEAST])


@kernel
def predictive(stats, hyper, constants, theta, out):
    """A Lomax density, corrected for the least rate; with zeros among the values it is not known in this form."""
    a, b = hyper[_A0] + stats[_N], hyper[_B0] + stats[_SUM]
    out[0] = math.log(a / b) if stats[_N_ZERO] == 0.0 else np.nan
    out[1] = a + 1.0
    out[2] = 1.0 / b
    out[3] = constants[0]
    out[4] = hyper[_LEAST]
    out[5] = _log_mass_above(a, b, hyper[_LEAST])


@kernel
def fill_log_predictive(z, aux, coefficients, out):
    level, power, inverse, h = coefficients[0], coefficients[1], coefficients[2], coefficients[3]
    least, log_above = coefficients[4], coefficients[5]
    for i in range(out.size):
        out[i] = level - power * math.log1p(inverse * z[i]) if z[i] >= h else np.nan
        if least > 0.0:
            out[i] += _log_mass_above(power, 1.0 / inverse + z[i], least) - log_above


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    if stats[_N_ZERO] == 0.0:
        rate = draw_gamma_above(hyper[_A0] + stats[_N], hyper[_B0] + stats[_SUM], hyper[_LEAST], rng)
        if not 0.0 < rate < np.inf:
            return INVALID
        theta[_RATE] = rate
        return OK
    if not (0.0 < theta[_RATE] < np.inf and 0.0 < hyper[_A0] < np.inf and 0.0 < hyper[_B0] < np.inf):
        return INVALID
    if not 0.0 <= hyper[_LEAST] < np.inf:
        return INVALID
    log_rate = math.log(max(theta[_RATE], hyper[_LEAST] * _INSIDE))
    width = 2.0 / math.sqrt(hyper[_A0] + stats[_N] + stats[_N_ZERO])
    state = slice_state()
    for _ in range(_N_ROUND):
        density = _log_target(log_rate, stats, hyper, constants[0])
        if not -np.inf < density < np.inf:
            return INVALID
        x = slice_begin(state, log_rate, density, width, rng)
        while slice_wants_more(state):
            x = slice_next(state, _log_target(x, stats, hyper, constants[0]), rng)
        log_rate = x
    theta[_RATE] = math.exp(log_rate)
    return OK


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    rate, h = theta[_RATE], constants[0]
    at_zero = 0.0
    total = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0:
            if z[i] >= h:
                total += flow[i] * (1.0 / rate - z[i])
            else:
                at_zero += flow[i]
    if at_zero != 0.0:
        # derivative of log(1 - exp(-rate h)); bounded, since expm1 would overflow
        total += at_zero * h / math.expm1(min(rate * h, 700.0))
    out[_RATE] += total


@kernel
def log_mass(lo, hi, theta, constants):
    lo = max(lo, 0.0)
    if not lo < hi:
        return -np.inf
    head = -theta[_RATE] * lo
    return head + log1mexp(theta[_RATE] * (hi - lo)) if hi < np.inf else head


@kernel
def cdf(x, theta, constants):
    return -math.expm1(-theta[_RATE] * x) if x > 0.0 else 0.0


@kernel
def moment(k, lo, hi, theta, constants):
    if hi <= max(lo, 0.0):
        end = min(max(lo, 0.0), hi)
        return end if k == 1 else 0.0
    start = max(lo, 0.0)
    width = hi - start
    if width < np.inf:
        first = min(start + width * tilted_mean(theta[_RATE] * width), hi)
        variance = width * width * tilted_variance(theta[_RATE] * width)
    else:
        first = start + 1.0 / theta[_RATE]
        variance = 1.0 / (theta[_RATE] * theta[_RATE])
    return first if k == 1 else variance


@kernel
def mode(lo, hi, theta, constants):
    rate, h = theta[_RATE], constants[0]
    if hi < 0.0:
        return hi
    lo = max(lo, 0.0)
    if lo >= h or hi < h:
        return lo
    # the cell of 0 counts with its average over both halves, of which one is empty: its inner end may score higher
    return lo if log1mexp(rate * h) - math.log(2.0 * h) >= math.log(rate) - rate * h else h


@kernel
def sample(lo, hi, theta, constants, rng):
    start = max(lo, 0.0)
    if hi <= start:
        return min(start, hi)
    rate = theta[_RATE]
    if hi == np.inf:
        return start + rng.standard_exponential() / rate
    # by the inverse of the distribution function: 1 - u (1 - exp(-rate width)), without cancellation
    return min(start - math.log1p(rng.random() * math.expm1(-rate * (hi - start))) / rate, hi)


@kernel
def _accumulate_scale(theta, hyper, out):
    for rate in theta:
        out[0] += hyper[_A0]
        out[1] += hyper[_B0] * rate


@kernel
def _log_scale_normaliser(tau, theta, hyper):
    return theta.size * _log_mass_above(hyper[_A0], tau * hyper[_B0], hyper[_LEAST])


FAMILY = Family.of(
    globals(),
    name="exponential",
    bases=("real",),
    support=(0.0, np.inf),
    statistical_type="positive",
    scaling=Scaling.SCALE,
    parameters=(
        Parameter(
            "rate",
            "positive",
            "gamma_above",
            lambda hyper, theta: (hyper["a0"], hyper["b0"], hyper["least"]),
            "per scale unit of the column",
        ),
    ),
    hyper_names=("a0", "b0", "least"),
    shared_scale=SharedScale({"b0": 1.0}, plausible.mean_shape, _accumulate_scale, _log_scale_normaliser),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_stats=3,
    by_name=_by_name,
)
