"""The start and the draw of a lognormal leaf's variance and mu given its statistics.

Without recorded zeros the posterior is normal-inverse-gamma above the floor, but for the upper bound of mu given the
variance: it keeps the part below, and divides it by the prior probability of that part. So a variance is proposed from
the inverse gamma and accepted by the ratio of (posterior / prior probability of the part), which is 1 unless the bound
is near; where it cuts, which the rows alone decide, the log variance has a slice update with mu integrated out, and for
leaves that exchange rows is proposed from a normal near its posterior. Then mu is drawn from its normal below the
bound. Without rows the draw is exact.

Zeros multiply the density by P(Z < h) each: then slice updates of mu, of the log variance, and of the log variance at a
fixed probability of the cell of 0, which is what remains free where a leaf holds zeros alone. Layout of theta, hyper
and stats: see `bayesjpt.families.lognormal`.

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
from bayesjpt.numerics.special import log_gamma_p, log_normal_cdf, normal_quantile_between

_VARIANCE, _MU = 0, 1
_N, _SUM_LOG, _SUM_SQUARES, _N_ZERO = range(4)
_N_ROUND = 3
_N_NEWTON = 4
_MARGIN = 1e-3  # of a start from the bound
_CUT = -0.05
"""Log probability that mu lies below its bound under the rows, from which the bound cuts: an inverse gamma's proposals
are then accepted seldom, the more so the more rows there are."""
_HALF_LOG_2PI = 0.9189385332046727
WIDEST, LARGEST = FLOOR + 1, FLOOR + 2


@kernel
def upper_mu(variance, hyper):
    """Return the upper bound of mu given the variance; infinite without bounds."""
    widest, largest = hyper[WIDEST], hyper[LARGEST]
    wide = -math.expm1(-variance) * math.exp(-2.0 * variance) / (widest * widest)
    return -2.0 * variance - 0.5 * math.log(max(wide, 1.0 / (largest * largest)))


@kernel
def _is_bounded(hyper):
    return hyper[LARGEST] < np.inf


@kernel
def log_share_below(variance, m, v, hyper):
    """Return the log probability that mu ~ Normal(m, v * variance) lies below its upper bound."""
    if not _is_bounded(hyper):
        return 0.0
    return log_normal_cdf((upper_mu(variance, hyper) - m) / math.sqrt(v * variance))


@kernel
def _log_correction(variance, posterior, hyper):
    """Return the log of posterior over prior probability of the part of mu below its bound, given the variance."""
    below = log_share_below(variance, posterior[0], posterior[1], hyper)
    return below - log_share_below(variance, hyper[M0], hyper[V0], hyper)


@kernel
def _is_cut(posterior, hyper):
    """Return whether the bound cuts off a part of the posterior that matters."""
    m, v, a, b = posterior
    return _is_bounded(hyper) and log_share_below(b / (a + 1.0), m, v, hyper) < _CUT


@kernel
def _log_kernel(log_variance, posterior, hyper):
    """Return the log density of the log variance, mu integrated out and corrected for the bound, up to a constant."""
    variance = math.exp(log_variance)
    if not (hyper[FLOOR] <= variance < np.inf and variance > 0.0):
        return -np.inf
    return -posterior[2] * log_variance - posterior[3] / variance + _log_correction(variance, posterior, hyper)


@kernel
def _log_density_of_log_variance(log_variance, posterior, hyper):
    """Return the log density of the log variance, mu integrated out, with the correction for the bound."""
    a, b, floor = posterior[2], posterior[3], hyper[FLOOR]
    above = log_gamma_p(a, b / floor) if floor > 0.0 else 0.0
    return a * math.log(b) - math.lgamma(a) - above + _log_kernel(log_variance, posterior, hyper)


@kernel
def _slice_integrated(variance, posterior, hyper, rng):
    """Return the variance after a slice update of its logarithm, mu integrated out; NaN where it has no density."""
    state = slice_state()
    # the exponential of the logarithm may fall below the floor by a rounding error
    log_variance = math.log(max(variance, hyper[FLOOR] * (1.0 + 1e-15)))
    width = 2.0 / math.sqrt(posterior[2])
    density = _log_kernel(log_variance, posterior, hyper)
    if not -np.inf < density < np.inf:
        return np.nan
    x = slice_begin(state, log_variance, density, width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_kernel(x, posterior, hyper), rng)
    return max(math.exp(x), hyper[FLOOR])


@kernel
def _proposal(posterior, hyper):
    """Return (mean, standard deviation) of a normal near the posterior of the log variance, by Newton's steps."""
    a, b = posterior[2], posterior[3]
    lowest = math.log(hyper[FLOOR]) if hyper[FLOOR] > 0.0 else -np.inf
    sd = 1.0 / math.sqrt(a)
    u = math.log(b / a)
    for _ in range(_N_NEWTON):
        u = max(u, lowest + 1.01 * sd)
        middle = _log_kernel(u, posterior, hyper)
        below = _log_kernel(u - sd, posterior, hyper)
        above = _log_kernel(u + sd, posterior, hyper)
        curvature = max((2.0 * middle - below - above) / (sd * sd), 0.5 * a)
        step = 0.5 * (above - below) / (sd * curvature)
        sd = 1.0 / math.sqrt(curvature)
        u += min(max(step, -1.0), 1.0)
    return u, sd


@kernel
def _draw_mu(variance, m, v, hyper, rng):
    sd = math.sqrt(v * variance)
    if not _is_bounded(hyper):
        return rng.normal(m, sd)
    top = upper_mu(variance, hyper)
    # never 0, where the quantile is infinite
    return min(m + sd * normal_quantile_between(-np.inf, (top - m) / sd, rng.random() + 1e-17), top)


@kernel
def initial(stats, hyper, constants, theta):
    """Estimate as if values were uniform within the cell of 0: the logarithm's mean is log h - 1, its variance 1."""
    n_zero = stats[_N_ZERO]
    at_zero = math.log(constants[0]) - 1.0
    total = stats[_SUM_LOG] + n_zero * at_zero
    squares = stats[_SUM_SQUARES] + n_zero * (at_zero * at_zero + 1.0)
    m, _, a, b = conjugate(stats[_N] + n_zero, total, squares, hyper)
    theta[_VARIANCE] = max(b / (a + 1.0), hyper[FLOOR] * 1.5)
    theta[_MU] = min(m, upper_mu(theta[_VARIANCE], hyper) - _MARGIN) if _is_bounded(hyper) else m


@kernel
def _log_target(mu, log_variance, posterior, zeros, hyper, floor):
    """Return the log posterior density of (mu, log variance) up to a constant; zeros = (how many, log h)."""
    value = log_joint(mu, log_variance, posterior, floor)
    variance = math.exp(log_variance)
    if value == -np.inf or (_is_bounded(hyper) and mu > upper_mu(variance, hyper)):
        return -np.inf
    n_zero, log_h = zeros
    value -= log_share_below(variance, hyper[M0], hyper[V0], hyper)
    return value + n_zero * log_normal_cdf((log_h - mu) / math.sqrt(variance)) if n_zero > 0.0 else value


@kernel
def log_posterior(stats, hyper, constants, theta):
    if theta[_VARIANCE] < hyper[FLOOR]:
        return -np.inf
    log_variance = math.log(theta[_VARIANCE])
    posterior = conjugate(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper)
    zeros = (stats[_N_ZERO], math.log(constants[0]))
    # of the variance, not of its logarithm
    return _log_target(theta[_MU], log_variance, posterior, zeros, hyper, 0.0) - log_variance


@kernel
def log_evidence(stats, hyper, constants, theta):
    if stats[_N_ZERO] > 0.0:
        return np.nan
    if stats[_N] == 0.0:
        return 0.0
    posterior = conjugate(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper)
    # less the log-Jacobian of z to its logarithm
    whole = nig_log_evidence(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper) - stats[_SUM_LOG]
    if _is_cut(posterior, hyper):
        log_variance = math.log(theta[_VARIANCE])
        mean, sd = _proposal(posterior, hyper)
        deviation = (log_variance - mean) / sd
        log_proposal = -0.5 * deviation * deviation - math.log(sd) - _HALF_LOG_2PI
        return whole + _log_density_of_log_variance(log_variance, posterior, hyper) - log_proposal
    return whole + _log_correction(theta[_VARIANCE], posterior, hyper)


@kernel
def _slice_mu(state, start, posterior, zeros, prior, rng):
    """Return mu after a slice update at a fixed variance; NaN where the start has no density."""
    mu, log_variance = start
    density = _log_target(mu, log_variance, posterior, zeros, *prior)
    if not -np.inf < density < np.inf:
        return np.nan
    width = 2.0 * math.exp(0.5 * log_variance) * math.sqrt(posterior[1])
    x = slice_begin(state, mu, density, width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target(x, log_variance, posterior, zeros, *prior), rng)
    return x


@kernel
def _slice_variance(state, start, posterior, zeros, prior, rng):
    """Return the log variance after a slice update at a fixed mu."""
    mu, log_variance = start
    width = 2.0 / math.sqrt(posterior[2])
    x = slice_begin(state, log_variance, _log_target(mu, log_variance, posterior, zeros, *prior), width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target(mu, x, posterior, zeros, *prior), rng)
    return x


@kernel
def _slice_ray(state, start, posterior, zeros, prior, rng):
    """Return (mu, log variance) after a slice update at a fixed deviate of log h, the Jacobian being sigma."""
    mu, log_variance = start
    log_h = zeros[1]
    deviate = (log_h - mu) * math.exp(-0.5 * log_variance)
    density = _log_target(mu, log_variance, posterior, zeros, *prior) + 0.5 * log_variance
    width = 2.0 / math.sqrt(posterior[2])
    x = slice_begin(state, log_variance, density, width, rng)
    while slice_wants_more(state):
        other = log_h - deviate * math.exp(0.5 * x)
        x = slice_next(state, _log_target(other, x, posterior, zeros, *prior) + 0.5 * x, rng)
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
        and hyper[WIDEST] > 0.0
        and hyper[LARGEST] > 0.0
    )


@kernel
def _draw_variance(a, b, floor, rng):
    """Return a draw of an InverseGamma(a, b) above a floor; NaN where that is not valid."""
    precision = draw_gamma_below(a, b, 1.0 / floor if floor > 0.0 else np.inf, rng)
    return max(1.0 / precision, floor) if 0.0 < precision < np.inf else np.nan


@kernel
def draw_afresh(stats, hyper, constants, theta, rng):
    if not _valid_hyper(hyper) or stats[_N_ZERO] > 0.0:
        return INVALID
    posterior = conjugate(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper)
    m, v, a, b = posterior
    if stats[_N] > 0.0 and _is_cut(posterior, hyper):
        mean, sd = _proposal(posterior, hyper)
        variance = math.exp(rng.normal(mean, sd))
        if variance < hyper[FLOOR]:
            return INVALID
    else:
        variance = _draw_variance(a, b, hyper[FLOOR], rng)
    if not 0.0 < variance < np.inf:
        return INVALID
    return _store(variance, _draw_mu(variance, m, v, hyper, rng), theta)


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    if not _valid_hyper(hyper):
        return INVALID
    floor = hyper[FLOOR]
    posterior = conjugate(stats[_N], stats[_SUM_LOG], stats[_SUM_SQUARES], hyper)
    if stats[_N_ZERO] == 0.0:
        m, v, a, b = posterior
        if stats[_N] > 0.0 and 0.0 < theta[_VARIANCE] < np.inf and _is_cut(posterior, hyper):
            variance = _slice_integrated(theta[_VARIANCE], posterior, hyper, rng)
            return _store(variance, _draw_mu(variance, m, v, hyper, rng), theta)
        variance = _draw_variance(a, b, floor, rng)
        if not 0.0 < variance < np.inf:
            return INVALID
        if stats[_N] > 0.0 and _is_bounded(hyper) and 0.0 < theta[_VARIANCE] < np.inf:
            log_ratio = _log_correction(variance, posterior, hyper) - _log_correction(
                theta[_VARIANCE], posterior, hyper
            )
            # 1 - u is never 0
            if not math.log1p(-rng.random()) < log_ratio:
                variance = max(theta[_VARIANCE], floor)
        return _store(variance, _draw_mu(variance, m, v, hyper, rng), theta)
    if not (0.0 < theta[_VARIANCE] < np.inf and -np.inf < theta[_MU] < np.inf):
        return INVALID
    zeros = (stats[_N_ZERO], math.log(constants[0]))
    log_variance = math.log(max(theta[_VARIANCE], floor * (1.0 + 1e-15)))
    mu = min(theta[_MU], upper_mu(math.exp(log_variance), hyper)) if _is_bounded(hyper) else theta[_MU]
    prior = (hyper, floor)
    state = slice_state()
    for _ in range(_N_ROUND):
        mu = _slice_mu(state, (mu, log_variance), posterior, zeros, prior, rng)
        if math.isnan(mu):
            return INVALID
        log_variance = _slice_variance(state, (mu, log_variance), posterior, zeros, prior, rng)
        mu, log_variance = _slice_ray(state, (mu, log_variance), posterior, zeros, prior, rng)
    return _store(max(math.exp(log_variance), floor), mu, theta)
