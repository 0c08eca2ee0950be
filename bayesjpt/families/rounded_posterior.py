"""The draw of a rounded normal's variance and mu given a leaf's values.

Slice updates of the exact posterior along three lines: mu; log variance at a fixed mu; and log variance along the
ridge of the truncated normal, on which (mu - edge) / variance, the slope of the density at the edge, stays the same
(data that look exponential fix that slope alone). The last one moves along a group of transformations, so that its
target carries the Jacobian (Liu and Sabatti, 2000).

Each evaluation visits every distinct value. Where the data are spread over several cells, the updates run on a
surrogate instead, the normal without rounding with a cell's variance added (Sheppard's correction, normaliser exact);
the outcome is then accepted or not by the ratio of the two targets (Christen and Fox, 2005). Which of the two is done
depends on the data alone. The lines are taken in one order or the other, by chance, so that the draw as a whole is
reversible: it is half a pass and half its adjoint.

Layout of theta, hyper and constants: see `bayesjpt.families.rounded`.

References: Neal (2003), Slice sampling; Liu and Sabatti (2000), Generalised Gibbs sampler; Christen and Fox (2005),
Markov chain Monte Carlo using an approximation.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.record import INVALID, OK
from bayesjpt.families.rounded import (
    A0,
    B0,
    EDGE,
    FLOOR,
    HALF,
    M0,
    MU,
    V0,
    VARIANCE,
    coefficients,
    fill_log_density,
    hazard,
    match_truncated,
    position,
)
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.draw import draw_gamma_below
from bayesjpt.numerics.gaussian import log_normal_cdf
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more

_ALONG_MU, _ALONG_VARIANCE, _ALONG_RIDGE = range(3)
_LEAST_ROWS = 20.0
_LEAST_SPREAD = 1.0
"""Rows, and variance in squared cells, from which the surrogate is so near that it is seldom refused."""
_FAR_BELOW = 100.0
"""Nats below the moments' density, from which a chain begins at the moments: only a start learned from other rows lies
there, and its slice of log variance would be hundreds of units wide."""
_WHOLE = 81.0
"""Squared distance of mu from the edge, in variances, from which the mass above the edge is 1 to the last digit."""
_UNTRUNCATED = 64.0
"""That of the mean, from which no tail is cut off."""
_N_BISECTION = 6
"""Steps to the slope of a line, which need not be exact."""
_FAR_FROM_EDGE = 4.0
"""That of the mean, up to which data may look exponential."""


@kernel
def _log_prior(mu, log_variance, hyper):
    """Return the log prior density of (mu, log variance), up to a constant."""
    variance = math.exp(log_variance)
    if not 0.0 < variance < np.inf or variance < hyper[FLOOR]:
        return -np.inf
    deviation = mu - hyper[M0]
    return -(hyper[A0] + 0.5) * log_variance - (hyper[B0] + 0.5 * deviation * deviation / hyper[V0]) / variance


@kernel
def _log_target(mu, log_variance, hyper, cells):
    """Return the log posterior density of (mu, log variance) up to a constant; the last three `cells` are scratch."""
    z, k, count, constants, theta, prepared, masses = cells
    value = _log_prior(mu, log_variance, hyper)
    if value == -np.inf:
        return value
    theta[VARIANCE], theta[MU] = math.exp(log_variance), mu
    coefficients(theta, constants, prepared)
    fill_log_density(z, k, prepared, masses)
    for i in range(z.size):
        if count[i] > 0.0:
            value += count[i] * masses[i]
    return value


@kernel
def _log_surrogate(mu, log_variance, hyper, facts):
    """Return the log density of the surrogate, up to a constant; facts = (rows, mean, scatter, half a cell, edge)."""
    n, mean, scatter, half, edge, _ = facts
    value = _log_prior(mu, log_variance, hyper)
    if value == -np.inf:
        return value
    variance = math.exp(log_variance)
    recorded = variance + half * half / 3.0
    deviation = mean - mu
    value -= 0.5 * n * math.log(recorded) + 0.5 * (scatter + n * deviation * deviation) / recorded
    distance = mu - edge
    if distance > 0.0 and distance * distance > _WHOLE * variance:
        return value
    return value - n * log_normal_cdf(distance / math.sqrt(variance))


@kernel
def _moved(line, step, point, facts):
    """Return (mu, log variance) and the log Jacobian after a step along a line."""
    mu, log_variance = point
    if line == _ALONG_MU:
        return mu + step, log_variance, 0.0
    if line == _ALONG_VARIANCE:
        return mu + facts[5] * step, log_variance + step, 0.0
    edge = facts[4]
    return edge + (mu - edge) * math.exp(step), log_variance + step, step


@kernel
def _width(line, point, hyper, facts):
    """Return the slice's first width: along mu, twice the standard deviation by the information in the rows.

    Along the ridge mu moves in proportion to its distance from the edge; how far that can be depends on where the data
    lie, never on the point along the line.
    """
    n, mean, scatter, half, edge, _ = facts
    if line == _ALONG_RIDGE:
        ratio = (mean - edge) * (mean - edge) / (scatter / n + half * half)
        return max(4.0 / math.sqrt(16.0 + n * max(ratio - _FAR_FROM_EDGE, 0.0)), 1e-3)
    if line == _ALONG_VARIANCE:
        return max(4.0 / math.sqrt(8.0 + 0.5 * n), 0.02)
    rounding = half * half / 3.0
    variance = math.exp(point[1]) + rounding
    information = 1.0 / (hyper[V0] * variance) + (scatter + n * rounding) / (variance * variance)
    return 2.0 / math.sqrt(information)


@kernel
def _slice_exact(line, point, density, hyper, cells, facts, state, rng):
    """Return (mu, log variance), and its log density, after a slice update of the exact target along a line."""
    step = slice_begin(state, 0.0, density, _width(line, point, hyper, facts), rng)
    proposal, before = point, density
    while slice_wants_more(state):
        mu, log_variance, jacobian = _moved(line, step, point, facts)
        proposal = (mu, log_variance)
        density = _log_target(mu, log_variance, hyper, cells)
        step = slice_next(state, density + jacobian, rng)
    return (proposal, density) if step != 0.0 else (point, before)


@kernel
def _slice_surrogate(line, point, density, hyper, facts, state, rng):
    """Return (mu, log variance), and its log density, after a slice update of the surrogate along a line."""
    step = slice_begin(state, 0.0, density, _width(line, point, hyper, facts), rng)
    proposal, before = point, density
    while slice_wants_more(state):
        mu, log_variance, jacobian = _moved(line, step, point, facts)
        proposal = (mu, log_variance)
        density = _log_surrogate(mu, log_variance, hyper, facts)
        step = slice_next(state, density + jacobian, rng)
    return (proposal, density) if step != 0.0 else (point, before)


@kernel
def _draw_exact(point, hyper, cells, facts, rng):
    """Return (mu, log variance) after an update of the exact target along each line; NaN where it is not finite."""
    density = _log_target(point[0], point[1], hyper, cells)
    state = slice_state()
    n_line = 3 if facts[4] > -np.inf else 2
    backwards = rng.random() < 0.5
    for update in range(n_line):
        if not -np.inf < density < np.inf:
            return np.nan, np.nan
        line = n_line - 1 - update if backwards else update
        point, density = _slice_exact(line, point, density, hyper, cells, facts, state, rng)
    return point


@kernel
def _draw_by_surrogate(point, hyper, cells, facts, rng):
    """Return (mu, log variance) after an update of the surrogate along each line and one correction."""
    n_line = 3 if facts[4] > -np.inf else 2
    backwards = rng.random() < 0.5
    start = _log_surrogate(point[0], point[1], hyper, facts)
    moments = (facts[1], math.log(facts[2] / facts[0]))
    at_moments = _log_surrogate(moments[0], moments[1], hyper, facts)
    # the exact target is asked, too: beside rare far values the surrogate may be that far off where a chain belongs
    if start < at_moments - _FAR_BELOW and (
        _log_target(point[0], point[1], hyper, cells) < _log_target(moments[0], moments[1], hyper, cells) - _FAR_BELOW
    ):
        point, start = moments, at_moments
    proposal, density = point, start
    state = slice_state()
    for update in range(n_line):
        if not -np.inf < density < np.inf:
            return np.nan, np.nan
        line = n_line - 1 - update if backwards else update
        proposal, density = _slice_surrogate(line, proposal, density, hyper, facts, state, rng)
    before = _log_target(point[0], point[1], hyper, cells) - start
    after = _log_target(proposal[0], proposal[1], hyper, cells) - density
    if math.isnan(before) or math.isnan(after):
        return np.nan, np.nan
    return proposal if math.log(1.0 - rng.random()) <= after - before else point


@kernel
def _slant(n, mean, scatter, constants):
    """Return by how much mu must grow with log variance for the truncated normal to keep its mean, near the data's."""
    edge, rounding = constants[EDGE], constants[HALF] * constants[HALF] / 3.0
    if edge == -np.inf or n == 0.0 or mean <= edge:
        return 0.0
    distance, variance = mean - edge, max(scatter / n - rounding, rounding)
    if distance * distance > _UNTRUNCATED * variance:
        return 0.0
    alpha, scale = match_truncated(distance, variance, _N_BISECTION)
    rate = hazard(alpha)
    by_alpha = rate * (rate - alpha)
    return -0.5 * scale * (rate - alpha * by_alpha) / (1.0 - by_alpha)


@kernel
def _facts(z, count, constants):
    """Return rows, mean, scatter, half a cell and edge."""
    n = 0.0
    total = 0.0
    for i in range(z.size):
        n += count[i]
        total += count[i] * z[i]
    mean = total / n if n > 0.0 else 0.0
    scatter = 0.0
    for i in range(z.size):
        scatter += count[i] * (z[i] - mean) * (z[i] - mean)
    return n, mean, scatter, constants[HALF], constants[EDGE], _slant(n, mean, scatter, constants)


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
def _store(mu, variance, hyper, theta):
    """Write a draw into theta where it is valid; return the status."""
    variance = max(variance, hyper[FLOOR])
    if not (-np.inf < mu < np.inf and 0.0 < variance < np.inf):
        return INVALID
    theta[VARIANCE] = variance
    theta[MU] = mu
    return OK


@kernel
def _draw_prior(hyper, theta, rng):
    upper = 1.0 / hyper[FLOOR] if hyper[FLOOR] > 0.0 else np.inf
    variance = 1.0 / draw_gamma_below(hyper[A0], hyper[B0], upper, rng)
    if not 0.0 < variance < np.inf:
        return INVALID
    return _store(rng.normal(hyper[M0], math.sqrt(hyper[V0] * variance)), variance, hyper, theta)


@kernel
def draw_from_values(z, count, hyper, constants, theta, rng):
    if not _valid_hyper(hyper):
        return INVALID
    facts = _facts(z, count, constants)
    n, scatter, cell = facts[0], facts[2], 2.0 * constants[HALF]
    if n == 0.0:
        return _draw_prior(hyper, theta, rng)
    if not (-np.inf < theta[MU] < np.inf and 0.0 < theta[VARIANCE] < np.inf):
        return INVALID
    log_variance = math.log(theta[VARIANCE])
    if hyper[FLOOR] > 0.0:  # the exponential of the logarithm may fall below the floor by a rounding error
        log_variance = max(log_variance, math.log(hyper[FLOOR]) + 1e-12)
    point = (theta[MU], log_variance)
    k = np.empty(z.size)
    for i in range(z.size):
        k[i] = position(z[i], constants)
    scratch = (k, np.empty(2), np.empty(6), np.empty(z.size))
    k, value, prepared, masses = borrowed(scratch)
    cells = (z, k, count, constants, value, prepared, masses)
    if n >= _LEAST_ROWS and scatter >= _LEAST_SPREAD * cell * cell * n:
        point = _draw_by_surrogate(point, hyper, cells, facts, rng)
    else:
        point = _draw_exact(point, hyper, cells, facts, rng)
    keep(scratch)
    return _store(point[0], math.exp(point[1]), hyper, theta)
