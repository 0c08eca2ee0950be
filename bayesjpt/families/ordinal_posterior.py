"""Start and draw of an ordinal leaf's scale and mu given how often each level occurs.

Slice updates of mu, of log scale, and along a ray between them. Without rows, an exact draw from the prior. Layout of
theta, hyper and constants: see `bayesjpt.families.ordinal`.

References: Neal (2003), Slice sampling.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import INVALID, OK
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import expit, log_expit_both
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more
from bayesjpt.numerics.special import log1mexp, normal_quantile_between

_SCALE, _MU = 0, 1
_LOG_SCALE_MEAN, _LOG_SCALE_SD, _CAP, _MU_MEAN, _MU_SD = range(5)
_INFORMATION_MU, _INFORMATION_SCALE = 1.0 / 3.0, 1.43
"""Fisher's, of one logistic value on mu / scale and on log scale (1/3 and (pi^2 + 3) / 9)."""


@kernel
def fill_log_cells(scale, mu, constants, out):
    """Fill the log probability of each level, float64 (n_level,), that a latent logistic lies between its cuts."""
    n = out.size
    cuts = constants[n + 1 :]
    above = 0.0
    for k in range(n - 1):
        # one cut gives the upper end of its level and the lower end of the next
        below, next_above = log_expit_both((cuts[k] - mu) / scale)
        inside = log1mexp((cuts[k] - cuts[k - 1]) / scale) if k > 0 else 0.0
        out[k] = below + above + inside
        above = next_above
    out[n - 1] = above


@kernel
def initial(stats, hyper, constants, theta):
    """Moments of the levels' middles on the latent scale, relative to the column's; one pseudo-row of the prior's."""
    n_level = stats.size
    cuts = constants[n_level + 1 :]
    middle = np.empty(n_level)
    middle_variance = 0.0
    below = 0.0
    for k in range(n_level):
        upto = expit(cuts[k]) if k < n_level - 1 else 1.0
        middle[k] = math.log(below + upto) - math.log(2.0 - below - upto)
        middle_variance += (upto - below) * middle[k] * middle[k]
        below = upto
    n = stats.sum() + 1.0
    mean = hyper[_MU_MEAN] / n
    for k in range(n_level):
        mean += stats[k] / n * middle[k]
    spread = middle_variance * math.exp(2.0 * hyper[_LOG_SCALE_MEAN]) / n
    for k in range(n_level):
        spread += stats[k] / n * (middle[k] - mean) ** 2
    theta[_SCALE] = min(math.sqrt(spread / middle_variance), 0.99 * hyper[_CAP])
    theta[_MU] = mean


@kernel
def _log_target(log_scale, mu, stats, hyper, constants, cells):
    """Return the log posterior density of (log scale, mu) up to a constant; `cells` is room for one value a level."""
    if log_scale > math.log(hyper[_CAP]):
        return -np.inf
    scale = math.exp(log_scale)
    if not (0.0 < scale < np.inf and -np.inf < mu < np.inf):
        return -np.inf
    by_scale = (log_scale - hyper[_LOG_SCALE_MEAN]) / hyper[_LOG_SCALE_SD]
    by_mu = (mu - hyper[_MU_MEAN]) / hyper[_MU_SD]
    value = -0.5 * (by_scale * by_scale + by_mu * by_mu)
    fill_log_cells(scale, mu, constants, cells)
    for k in range(stats.size):
        if stats[k] > 0.0:
            value += stats[k] * cells[k]
    return value


@kernel
def log_posterior(stats, hyper, constants, theta):
    log_scale = math.log(theta[_SCALE])
    return _log_target(log_scale, theta[_MU], stats, hyper, constants, np.empty(stats.size)) - log_scale


@kernel
def _valid_hyper(hyper):
    return (
        -np.inf < hyper[_LOG_SCALE_MEAN] < np.inf
        and 0.0 < hyper[_LOG_SCALE_SD] < np.inf
        and hyper[_CAP] > 0.0
        and -np.inf < hyper[_MU_MEAN] < np.inf
        and 0.0 < hyper[_MU_SD] < np.inf
    )


@kernel
def _draw_prior(hyper, rng):
    """Return a draw of (log scale, mu) from the prior."""
    mean, sd = hyper[_LOG_SCALE_MEAN], hyper[_LOG_SCALE_SD]
    top = (math.log(hyper[_CAP]) - mean) / sd
    log_scale = mean + sd * normal_quantile_between(-np.inf, top, rng.random() + 1e-17)
    return log_scale, rng.normal(hyper[_MU_MEAN], hyper[_MU_SD])


@kernel
def _middle_cut(stats, constants):
    """Return the cut with the most rows on its poorer side."""
    n_level = stats.size
    total, below = stats.sum(), 0.0
    best, most = 0, -1.0
    for k in range(n_level - 1):
        below += stats[k]
        if min(below, total - below) > most:
            best, most = k, min(below, total - below)
    return constants[n_level + 1 + best]


@kernel
def _slice_scale(state, start, pivot, rows, width, rng):
    """Return (log scale, mu) after a slice update along the ray on which (pivot - mu) / scale stays.

    Its Jacobian is the scale; with mu as the pivot mu stays, and there is none. `rows` is what the target takes.
    """
    log_scale, mu = start
    # what stays on the ray
    deviate = (pivot - mu) * math.exp(-log_scale)
    power = 1.0 if deviate != 0.0 else 0.0
    density = _log_target(log_scale, mu, *rows) + power * log_scale
    x = slice_begin(state, log_scale, density, width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target(x, pivot - deviate * math.exp(x), *rows) + power * x, rng)
    return x, pivot - deviate * math.exp(x)


@kernel
def _draw_given_rows(log_scale, mu, stats, hyper, constants, rng):
    """Return (log scale, mu) after slice updates of mu, of log scale, and along the ray of a fixed share of one cut.

    That share is all that two levels tell. Widths count the rows that tell: those beside the most frequent level of mu,
    beside the two most frequent of the scale. NaN where the start has no density.
    """
    rows = (stats, hyper, constants, np.empty(stats.size))
    density = _log_target(log_scale, mu, *rows)
    if not -np.inf < density < np.inf:
        return np.nan, np.nan
    ordered = np.sort(stats)
    apart = ordered[:-2].sum() + 1.0
    state = slice_state()
    information = _INFORMATION_MU * (apart + ordered[-2]) * math.exp(-2.0 * log_scale)
    width = 2.0 / math.sqrt(1.0 / (hyper[_MU_SD] * hyper[_MU_SD]) + information)
    x = slice_begin(state, mu, density, width, rng)
    while slice_wants_more(state):
        x = slice_next(state, _log_target(log_scale, x, *rows), rng)
    width = 2.0 / math.sqrt(1.0 / (hyper[_LOG_SCALE_SD] * hyper[_LOG_SCALE_SD]) + _INFORMATION_SCALE * apart)
    at = _slice_scale(state, (log_scale, x), x, rows, width, rng)
    return _slice_scale(state, at, _middle_cut(stats, constants), rows, width, rng)


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    if not _valid_hyper(hyper):
        return INVALID
    if stats.sum() == 0.0:
        log_scale, mu = _draw_prior(hyper, rng)
    else:
        if not (0.0 < theta[_SCALE] < np.inf and -np.inf < theta[_MU] < np.inf):
            return INVALID
        log_scale = min(math.log(theta[_SCALE]), math.log(hyper[_CAP]))
        log_scale, mu = _draw_given_rows(log_scale, theta[_MU], stats, hyper, constants, rng)
    scale = min(math.exp(log_scale), hyper[_CAP])
    if not (0.0 < scale < np.inf and -np.inf < mu < np.inf):
        return INVALID
    theta[_SCALE] = scale
    theta[_MU] = mu
    return OK
