"""The start and the draw of a lognormal leaf's variance and mu given its statistics.

Without recorded zeros the posterior is normal-inverse-gamma above the floor, and the draw exact. Zeros multiply it by
P(Z < h) each: then slice updates of mu, of the log variance, and of the log variance at a fixed probability of the
cell of 0, which is what remains free where a leaf holds zeros alone. Layout of theta, hyper and stats: see
`bayesjpt.families.lognormal`.

References: Neal (2003), Slice sampling.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.normal_inverse_gamma import A0, B0, FLOOR, M0, V0, conjugate, log_joint
from bayesjpt.families.normal_inverse_gamma import log_evidence as nig_log_evidence
from bayesjpt.families.record import INVALID, OK
from bayesjpt.numerics.draw import draw_gamma_below
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more
from bayesjpt.numerics.special import log_normal_cdf

_VARIANCE, _MU = 0, 1
_N, _SUM_LOG, _SUM_SQUARES, _N_ZERO = range(4)
_N_ROUND = 3


@kernel
def initial(stats, hyper, constants, theta):
    """Estimate as if values were uniform within the cell of 0: the logarithm's mean is log h - 1, its variance 1."""
    n_zero = stats[_N_ZERO]
    at_zero = math.log(constants[0]) - 1.0
    total = stats[_SUM_LOG] + n_zero * at_zero
    squares = stats[_SUM_SQUARES] + n_zero * (at_zero * at_zero + 1.0)
    m, _, a, b = conjugate(stats[_N] + n_zero, total, squares, hyper)
    theta[_MU] = m
    theta[_VARIANCE] = max(b / (a + 1.0), hyper[FLOOR] * 1.5)


@kernel
def _log_target(mu, log_variance, posterior, zeros, floor):
    """Return the log posterior density of (mu, log variance) up to a constant; zeros = (how many, log h)."""
    value = log_joint(mu, log_variance, posterior, floor)
    if value == -np.inf:
        return value
    n_zero, log_h = zeros
    return value + n_zero * log_normal_cdf((log_h - mu) / math.sqrt(math.exp(log_variance)))


@kernel
def log_posterior(stats, hyper, constants, theta):
    if theta[_VARIANCE] < hyper[FLOOR]:
        return -np.inf
    log_variance = math.log(theta[_VARIANCE])
    posterior = conjugate(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper)
    zeros = (stats[_N_ZERO], math.log(constants[0]))
    return _log_target(theta[_MU], log_variance, posterior, zeros, 0.0) - log_variance


@kernel
def log_evidence(stats, hyper, constants, theta):
    if stats[_N_ZERO] > 0.0:
        return np.nan
    # less the log-Jacobian of z to its logarithm
    return nig_log_evidence(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper) - stats[_SUM_LOG]


@kernel
def _slice_mu(state, start, posterior, zeros, floor, rng):
    """Return mu after a slice update at a fixed variance; NaN where the start has no density."""
    mu, log_variance = start
    density = _log_target(mu, log_variance, posterior, zeros, floor)
    if not -np.inf < density < np.inf:
        return np.nan
    width = 2.0 * math.exp(0.5 * log_variance) * math.sqrt(posterior[1])
    x = slice_begin(state, mu, density, width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target(x, log_variance, posterior, zeros, floor), rng)
    return x


@kernel
def _slice_variance(state, start, posterior, zeros, floor, rng):
    """Return the log variance after a slice update at a fixed mu."""
    mu, log_variance = start
    width = 2.0 / math.sqrt(posterior[2])
    x = slice_begin(state, log_variance, _log_target(mu, log_variance, posterior, zeros, floor), width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target(mu, x, posterior, zeros, floor), rng)
    return x


@kernel
def _slice_ray(state, start, posterior, zeros, floor, rng):
    """Return (mu, log variance) after a slice update at a fixed deviate of log h, the Jacobian being sigma."""
    mu, log_variance = start
    log_h = zeros[1]
    deviate = (log_h - mu) * math.exp(-0.5 * log_variance)
    density = _log_target(mu, log_variance, posterior, zeros, floor) + 0.5 * log_variance
    width = 2.0 / math.sqrt(posterior[2])
    x = slice_begin(state, log_variance, density, width, rng)
    while slice_wants_more(state):
        other = log_h - deviate * math.exp(0.5 * x)
        x = slice_next(state, _log_target(other, x, posterior, zeros, floor) + 0.5 * x, rng)
    return log_h - deviate * math.exp(0.5 * x), x


@kernel
def _store(variance, mu, theta):
    """Write a draw into theta where it is valid; return the status."""
    if not (0.0 < variance < np.inf and -np.inf < mu < np.inf):
        return INVALID
    theta[_VARIANCE] = variance
    theta[_MU] = mu
    return OK


@kernel
def _valid_hyper(hyper):
    return (
        -np.inf < hyper[M0] < np.inf
        and 0.0 < hyper[V0] < np.inf
        and 0.0 < hyper[A0] < np.inf
        and 0.0 < hyper[B0] < np.inf
        and 0.0 <= hyper[FLOOR] < np.inf
    )


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    if not _valid_hyper(hyper):
        return INVALID
    floor = hyper[FLOOR]
    posterior = conjugate(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper)
    if stats[_N_ZERO] == 0.0:
        m, v, a, b = posterior
        precision = draw_gamma_below(a, b, 1.0 / floor if floor > 0.0 else np.inf, rng)
        if not 0.0 < precision < np.inf:
            return INVALID
        variance = max(1.0 / precision, floor)
        return _store(variance, rng.normal(m, math.sqrt(v * variance)), theta)
    if not (0.0 < theta[_VARIANCE] < np.inf and -np.inf < theta[_MU] < np.inf):
        return INVALID
    zeros = (stats[_N_ZERO], math.log(constants[0]))
    mu, log_variance = theta[_MU], math.log(max(theta[_VARIANCE], floor * (1.0 + 1e-15)))
    state = slice_state()
    for _ in range(_N_ROUND):
        mu = _slice_mu(state, (mu, log_variance), posterior, zeros, floor, rng)
        if math.isnan(mu):
            return INVALID
        log_variance = _slice_variance(state, (mu, log_variance), posterior, zeros, floor, rng)
        mu, log_variance = _slice_ray(state, (mu, log_variance), posterior, zeros, floor, rng)
    return _store(max(math.exp(log_variance), floor), mu, theta)
