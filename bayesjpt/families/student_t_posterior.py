"""The draw of a t leaf's variance, mu and nu given its values.

A t variable is normal with a random precision factor. Given the factors, (variance, mu) has a normal-inverse-gamma
posterior above the floor; given the parameters, the factors are independent gamma variables, and those of n equal
values enter through their sum alone, again a gamma variable. So a histogram of values costs one draw an entry. nu,
which mixes badly given the factors, has a slice update with the factors integrated out. Layout of theta and hyper: see
`bayesjpt.families.student_t`.

References: Liu (1996), Bayesian robust multivariate linear regression with incomplete data; Neal (2003), Slice
sampling.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import INVALID, OK
from bayesjpt.numerics.draw import draw_gamma_below
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more
from bayesjpt.numerics.special import log_student_level

_VARIANCE, _MU, _NU = 0, 1, 2
_M0, _V0, _A0, _B0, _FLOOR, _NU_SHAPE, _NU_SCALE, _NU_FLOOR = range(8)
_N_ROUND = 1
_LARGEST_NU = 1e20  # beyond, the prior has no mass in double precision, and the t is the normal
_LARGEST_SQUARE = 1e300


@kernel
def _log_target_nu(log_nu, z, count, theta, hyper):
    """Return the log posterior density of log nu given variance and mu, up to a constant."""
    nu = math.exp(log_nu)
    if not hyper[_NU_FLOOR] <= nu <= _LARGEST_NU:
        return -np.inf
    mean, factor = theta[_MU], 1.0 / (nu * theta[_VARIANCE])
    n = 0.0
    total = 0.0
    for i in range(z.size):
        deviation = z[i] - mean
        n += count[i]
        total += count[i] * math.log1p(factor * (deviation * deviation))
    prior = -hyper[_NU_SHAPE] * log_nu - hyper[_NU_SCALE] / nu
    return prior + n * log_student_level(nu) - 0.5 * (nu + 1.0) * total


@kernel
def _slice_nu(z, count, n, theta, hyper, rng):
    """Return nu after a slice update of its logarithm; NaN where the present one has no density."""
    log_nu = math.log(max(theta[_NU], hyper[_NU_FLOOR] * (1.0 + 1e-15)))
    density = _log_target_nu(log_nu, z, count, theta, hyper)
    if not -np.inf < density < np.inf:
        return np.nan
    state = slice_state()
    # the data say little of nu unless it is small: a narrower slice would take many steps on nearly normal values
    width = max(2.0 / math.sqrt(1.0 + 0.02 * n), 0.2)
    x = slice_begin(state, log_nu, density, width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target_nu(x, z, count, theta, hyper), rng)
    return max(math.exp(x), hyper[_NU_FLOOR])


@kernel
def _draw_variance(a, b, floor, rng):
    precision = draw_gamma_below(a, b, 1.0 / floor if floor > 0.0 else np.inf, rng)
    return max(1.0 / precision, floor)


@kernel
def _draw_location_scale(z, count, n, state, hyper, rng):
    """Return (variance, mu) drawn given precision factors that are drawn given state = (variance, mu, nu)."""
    variance, mu, nu = state
    weight = 0.0
    first = 0.0
    second = 0.0
    for i in range(z.size):
        if count[i] > 0.0:
            deviation = z[i] - mu
            # an infinite square would make the factor 0, and their product NaN
            square = min(deviation * deviation, _LARGEST_SQUARE)
            rate = 0.5 * (nu + square / variance)
            # the sum of so many equal factors is gamma again
            factor = rng.standard_gamma(0.5 * count[i] * (nu + 1.0)) / rate
            weight += factor
            first += factor * deviation
            second += factor * square
    # everything from the old mu, so that nothing cancels far from 0
    before = hyper[_M0] - mu
    precision = 1.0 / hyper[_V0] + weight
    shift = (before / hyper[_V0] + first) / precision
    average = first / weight if weight > 0.0 else before
    scatter = max(second - first * average, 0.0)
    between = weight / (hyper[_V0] * precision) * (average - before) * (average - before)
    a, b = hyper[_A0] + 0.5 * n, hyper[_B0] + 0.5 * (scatter + between)
    variance = _draw_variance(a, b, hyper[_FLOOR], rng)
    return variance, mu + shift + math.sqrt(variance / precision) * rng.standard_normal()


@kernel
def _valid_hyper(hyper):
    return (
        -np.inf < hyper[_M0] < np.inf
        and 0.0 < hyper[_V0] < np.inf
        and 0.0 < hyper[_A0] < np.inf
        and 0.0 < hyper[_B0] < np.inf
        and 0.0 <= hyper[_FLOOR] < np.inf
        and 0.0 < hyper[_NU_SHAPE] < np.inf
        and 0.0 < hyper[_NU_SCALE] < np.inf
        and 0.0 < hyper[_NU_FLOOR] < _LARGEST_NU
    )


@kernel
def _valid(variance, mu, nu):
    return 0.0 < variance < np.inf and -np.inf < mu < np.inf and 0.0 < nu <= _LARGEST_NU


@kernel
def _store(variance, mu, nu, theta):
    """Write a draw into theta where it is valid; return the status."""
    if not _valid(variance, mu, nu):
        return INVALID
    theta[_VARIANCE] = variance
    theta[_MU] = mu
    theta[_NU] = nu
    return OK


@kernel
def draw_from_values(z, count, hyper, constants, theta, rng):
    if not _valid_hyper(hyper):
        return INVALID
    n = 0.0
    for i in range(count.size):
        n += count[i]
    if n == 0.0:
        variance = _draw_variance(hyper[_A0], hyper[_B0], hyper[_FLOOR], rng)
        mu = rng.normal(hyper[_M0], math.sqrt(hyper[_V0] * variance))
        nu = 1.0 / draw_gamma_below(hyper[_NU_SHAPE], hyper[_NU_SCALE], 1.0 / hyper[_NU_FLOOR], rng)
        return _store(variance, mu, min(max(nu, hyper[_NU_FLOOR]), _LARGEST_NU), theta)
    if not _valid(theta[_VARIANCE], theta[_MU], theta[_NU]):
        return INVALID
    for _ in range(_N_ROUND):
        nu = _slice_nu(z, count, n, theta, hyper, rng)
        if math.isnan(nu):
            return INVALID
        state = (theta[_VARIANCE], theta[_MU], nu)
        variance, mu = _draw_location_scale(z, count, n, state, hyper, rng)
        if _store(variance, mu, nu, theta) != OK:
            return INVALID
    return OK
