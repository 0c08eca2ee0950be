"""The draw of a negative binomial's size and p given a leaf's values.

A slice update of log size with p integrated out, then p from its conditional, a beta above a bound that depends on the
size: the prior is divided by what it has there. Without rows, an exact draw from the prior. Layout of theta and hyper:
see `bayesjpt.families.negative_binomial`.

References: Neal (2003), Slice sampling.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import INVALID, OK
from bayesjpt.numerics.draw import draw_beta_above
from bayesjpt.numerics.incomplete_beta import log_beta_above
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import log_rising
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more
from bayesjpt.numerics.special import normal_quantile_between

_SIZE, _P = 0, 1
_LOG_SIZE_MEAN, _LOG_SIZE_SD, _CAP, _A0, _B0, _LEAST, _A1, _B1, _NEAR = range(9)


@kernel
def prior_of_p(size, hyper):
    """Return (a, b) of the beta prior of p given size."""
    return hyper[_A0] + hyper[_A1] * size, hyper[_B1] + hyper[_B0] / (hyper[_LEAST] + size)


@kernel
def lowest_p(size, near):
    """Return the least p at a size, and 1 less it; near = 1 / (largest^2 - 1), 0 without a bound.

    E[z^3] / E[z] = (size + 1) (size + 2) q^2 + 3 (size + 1) q + 1 at q = (1 - p) / p, which is largest^2 there.
    """
    linear = 3.0 * (size + 1.0) * near
    root = linear + math.sqrt(linear * linear + 4.0 * (size + 1.0) * (size + 2.0) * near)
    return root / (root + 2.0), 2.0 / (root + 2.0)


@kernel
def _log_mass_above(a, b, size, near):
    """Return the log probability that a Beta(a, b) variable is at least the least p."""
    if near == 0.0:
        return 0.0
    least, rest = lowest_p(size, near)
    return log_beta_above(a, b, least, rest)


@kernel
def _log_target(log_size, z, count, rows, hyper):
    """Return the log posterior density of log size, p integrated out, up to a constant; rows = (number, sum)."""
    if log_size > math.log(hyper[_CAP]):
        return -np.inf
    size = math.exp(log_size)
    if not 0.0 < size < np.inf:
        return -np.inf
    n, total = rows
    a, b = prior_of_p(size, hyper)
    deviation = (log_size - hyper[_LOG_SIZE_MEAN]) / hyper[_LOG_SIZE_SD]
    value = -0.5 * deviation * deviation
    # log B(a + n size, b + total) - log B(a, b), by steps of log Gamma that do not cancel
    value += log_rising(b, total) + log_rising(a, b) - log_rising(a + n * size, b + total)
    near = hyper[_NEAR]
    value += _log_mass_above(a + n * size, b + total, size, near) - _log_mass_above(a, b, size, near)
    for i in range(z.size):
        value += count[i] * log_rising(size, z[i])
    return value


@kernel
def _width(rows, squares, hyper):
    """Return the slice's first width: two standard deviations by the prior and by what an overdispersion tells."""
    n, total = rows
    mean = total / n
    information = 1.0 / (hyper[_LOG_SIZE_SD] * hyper[_LOG_SIZE_SD])
    if total > 0.0:
        excess = max((squares / n - mean * mean - mean) / (mean * mean), 1.0 / n)
        share = mean / (mean + 1.0 / excess)
        information += 0.5 * n * share * share
    return 2.0 / math.sqrt(information)


@kernel
def _valid_hyper(hyper):
    return (
        -np.inf < hyper[_LOG_SIZE_MEAN] < np.inf
        and 0.0 < hyper[_LOG_SIZE_SD] < np.inf
        and hyper[_CAP] > 0.0
        and 0.0 < hyper[_A0] < np.inf
        and 0.0 <= hyper[_B0] < np.inf
        and 0.0 <= hyper[_LEAST] < np.inf
        and 0.0 <= hyper[_A1] < np.inf
        and 0.0 <= hyper[_B1] < np.inf
        and hyper[_B0] + hyper[_B1] > 0.0
        and 0.0 <= hyper[_NEAR] < np.inf
    )


@kernel
def _store(log_size, rows, hyper, theta, rng):
    """Draw p given log size, write both into theta where they are valid; return the status."""
    size = min(math.exp(log_size), hyper[_CAP])
    a, b = prior_of_p(size, hyper)
    least, rest = lowest_p(size, hyper[_NEAR])
    p = draw_beta_above(a + rows[0] * size, b + rows[1], least, rest, rng)
    if not (0.0 < size < np.inf and 0.0 < p < 1.0):
        return INVALID
    theta[_SIZE] = size
    theta[_P] = p
    return OK


@kernel
def draw_from_values(z, count, hyper, constants, theta, rng):
    if not _valid_hyper(hyper):
        return INVALID
    n, total, squares = 0.0, 0.0, 0.0
    for i in range(z.size):
        n += count[i]
        total += count[i] * z[i]
        squares += count[i] * z[i] * z[i]
    rows = (n, total)
    if n == 0.0:
        mean, sd = hyper[_LOG_SIZE_MEAN], hyper[_LOG_SIZE_SD]
        top = (math.log(hyper[_CAP]) - mean) / sd
        # never 0, where the quantile is infinite
        log_size = mean + sd * normal_quantile_between(-np.inf, top, rng.random() + 1e-17)
        return _store(log_size, rows, hyper, theta, rng)
    if not 0.0 < theta[_SIZE] < np.inf:
        return INVALID
    log_size = min(math.log(theta[_SIZE]), math.log(hyper[_CAP]))
    density = _log_target(log_size, z, count, rows, hyper)
    if not -np.inf < density < np.inf:
        return INVALID
    state = slice_state()
    x = slice_begin(state, log_size, density, _width(rows, squares, hyper), rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target(x, z, count, rows, hyper), rng)
    return _store(x, rows, hyper, theta, rng)
