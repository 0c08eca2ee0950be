"""The likelihood that the rounded normals share: a normal variable on z = (x - m) / s, recorded as a whole number x.

The mass of a whole number is that of its cell, [x - 1/2, x + 1/2]; on columns that start at 0 the normal is truncated
at x = -1/2. theta = (variance, mu) are those of the normal before rounding and truncation.

constants = (half, anchor, first, edge), all but `first` in units of z:

    half    half a cell, 1 / (2 s)
    anchor  the whole number nearest to m; whole numbers are counted from there, k = 0, so that large ones stay exact
    first   the smallest k, -inf without truncation
    edge    the truncation point, the lower end of its cell, -inf without truncation

The auxiliary table is k, infinite where a value is not a whole number of the support. Below, alpha is the truncation
point in standard deviations from mu. Where it lies in the upper tail of the normal, cells are measured from it, so
that nothing cancels against the normaliser.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import plausible
from bayesjpt.families.record import ColumnFacts
from bayesjpt.numerics.gaussian import log_normal_cdf, mills_ratio
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.normal_cell import edge_ratios, log_normal_cell

HALF, ANCHOR, FIRST, EDGE = range(4)
VARIANCE, MU = range(2)
M0, V0, A0, B0, FLOOR = range(5)
_N, _SUM, _SQUARES = range(3)
_INVERSE, _CENTRE, _HALF_CELL, _ALPHA, _LEVEL, _START = range(6)
_HALF_LOG_2PI = 0.9189385332046727
_SQRT_HALF = 0.7071067811865476
_LEAST_HALF, _FAR = 0.1, 6.0
"""Half a cell, and distance of its middle, in standard deviations: within, the difference of tails loses one digit."""
_OFF_GRID = 1e-6
_ROUNDING = 1e-15
_LOWEST = -1e300
_NARROWEST_MATCH, _WIDEST_MATCH = 8.0, 5.0
N_BISECTION = 24
"""Steps of `match_truncated` to an alpha of seven digits."""


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """That of the normal, with the variance of rounding to halves as floor, or to whole numbers beside a categorical.

    Masses have no need of a floor, only the sampler; under that of rounding to whole numbers .08 of the mass of a part
    of one value would lie beside it, under the other one .0005. Where the categorical is in the dictionary it describes
    such parts, and narrow counts would only share its cells with it.
    """
    has_categorical = plausible.has_few_shares(column) and "categorical" in (column.families or ("categorical",))
    floor = 1.0 / ((12.0 if has_categorical else 48.0) * column.scale * column.scale)
    return np.array(plausible.normal_inverse_gamma(plausible.squared_deviation(column), 0.0, floor))


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior in raw units (m0 = 1, v0 = 10, a0 = b0 = 1, no floor), rewritten for z = (x - m) / s."""
    inverse = 1.0 / column.scale
    return np.array([(1.0 - column.location) * inverse, 10.0, 1.0, max(inverse * inverse, 1e-300), 0.0])


def constants_everywhere(column: ColumnFacts) -> np.ndarray:
    """Return the constants of a normal over all whole numbers."""
    anchor = round(column.location)
    return np.array([0.5 / column.scale, (anchor - column.location) / column.scale, -np.inf, -np.inf])


def constants_from_zero(column: ColumnFacts) -> np.ndarray:
    """Return the constants of a normal truncated at -1/2."""
    constants = constants_everywhere(column)
    constants[FIRST] = -float(round(column.location))
    constants[EDGE] = (-0.5 - column.location) / column.scale
    return constants


@kernel
def position(z, constants):
    """Return k of a value, infinite where it is not a whole number of the support."""
    place = (z - constants[ANCHOR]) / (2.0 * constants[HALF])
    k = np.rint(place)
    # negated: an infinite or undefined place is no whole number
    if not abs(place - k) <= _OFF_GRID + _ROUNDING * abs(place) or k < constants[FIRST]:
        return np.inf
    return k


@kernel
def prepare(z, constants, out):
    for i in range(out.size):
        out[i] = position(z[i], constants)


@kernel
def coefficients(theta, constants, out):
    scale = math.sqrt(theta[VARIANCE])
    alpha = (constants[EDGE] - theta[MU]) / scale
    out[_INVERSE] = 1.0 / scale
    out[_CENTRE] = theta[MU]
    out[_HALF_CELL] = constants[HALF] / scale
    out[_START] = constants[FIRST]
    if alpha > 0.0:
        out[_ALPHA] = alpha
        out[_LEVEL] = _HALF_LOG_2PI - math.log(mills_ratio(alpha))
    else:
        out[_ALPHA] = 0.0
        out[_LEVEL] = -log_normal_cdf(-alpha)


@kernel
def log_mass_at(z, k, prepared):
    """Return the log mass of one whole number, finite however far out."""
    if k == np.inf:
        return -np.inf
    half, alpha = prepared[_HALF_CELL], prepared[_ALPHA]
    if alpha > 0.0:
        # in half cells from the truncation point: a whole number, so that nothing cancels
        distance = half * (2.0 * (k - prepared[_START]) + 1.0)
        middle = alpha + distance
        level = -distance * (alpha + 0.5 * distance)
    else:
        middle = abs(z - prepared[_CENTRE]) * prepared[_INVERSE]
        level = -0.5 * middle * middle
    return max(min(log_normal_cell(middle, half, level) + prepared[_LEVEL], 0.0), _LOWEST)


@kernel
def _tail(x):
    """Return the mass of the tail beyond x, on the side away from the mean."""
    return 0.5 * math.erfc(abs(x) * _SQRT_HALF)


@kernel
def _log_between(lower, upper, tail_lower, tail_upper):
    """Return the log mass of a cell of a standard normal from the tails at its ends."""
    if lower >= 0.0:
        return math.log(tail_lower - tail_upper)
    if upper <= 0.0:
        return math.log(tail_upper - tail_lower)
    return math.log(1.0 - tail_lower - tail_upper)


@kernel
def fill_log_density(z, aux, coefficients, out):
    """Fill log masses; whole numbers that follow each other share an end of their cells, and the tail there.

    The difference of tails loses digits in narrow cells, and far out: these are done one by one.
    """
    half, alpha = coefficients[_HALF_CELL], coefficients[_ALPHA]
    if half < _LEAST_HALF:
        for i in range(out.size):
            out[i] = log_mass_at(z[i], aux[i], coefficients)
        return
    level = coefficients[_LEVEL] + 0.5 * alpha * alpha  # less the log mass above the truncation point
    before, upper, tail_upper = np.inf, 0.0, 0.0
    for i in range(out.size):
        k = aux[i]
        if alpha > 0.0:
            middle = alpha + half * (2.0 * (k - coefficients[_START]) + 1.0)
        else:
            middle = (z[i] - coefficients[_CENTRE]) * coefficients[_INVERSE]
        if not (k < np.inf and abs(middle) < _FAR):
            out[i] = log_mass_at(z[i], k, coefficients)
            before = np.inf
            continue
        lower, tail_lower = upper, tail_upper
        # after its predecessor a number's lower end is the upper end before
        if k != before + 1.0:
            lower = middle - half
            tail_lower = _tail(lower)
        before, upper = k, middle + half
        tail_upper = _tail(upper)
        out[i] = min(_log_between(lower, upper, tail_lower, tail_upper) + level, 0.0)


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
def hazard(alpha):
    """Return phi(alpha) / Phi(-alpha)."""
    if alpha >= 0.0:
        return 1.0 / mills_ratio(alpha)
    return math.exp(-0.5 * alpha * alpha - _HALF_LOG_2PI - log_normal_cdf(-alpha))


@kernel
def match_truncated(mean, variance, n_bisection):
    """Return (alpha, scale) of the normal, truncated at 0, that has about the given mean and variance.

    The squared coefficient of variation grows with alpha, from 0 to the 1 of an exponential. Data as spread out as
    that, or more, have no match: alpha then stops a few standard deviations above 0.
    """
    target = variance / (mean * mean)
    lo, hi = -_NARROWEST_MATCH, _WIDEST_MATCH
    for _ in range(n_bisection):
        alpha = 0.5 * (lo + hi)
        rate = hazard(alpha)
        distance = rate - alpha
        if (1.0 - rate * distance) / (distance * distance) < target:
            lo = alpha
        else:
            hi = alpha
    alpha = 0.5 * (lo + hi)
    if alpha < -0.99 * _NARROWEST_MATCH:
        return -mean / math.sqrt(variance), math.sqrt(variance)
    return alpha, mean / (hazard(alpha) - alpha)


@kernel
def initial(stats, hyper, constants, theta):
    """The posterior mean of the normal without rounding, its variance less that of the rounding (Sheppard)."""
    n, total, squares = stats[_N], stats[_SUM], stats[_SQUARES]
    precision = 1.0 / hyper[V0] + n
    mean = (hyper[M0] / hyper[V0] + total) / precision
    spread = hyper[B0]
    if n > 0.0:
        average = total / n
        shift = average - hyper[M0]
        spread += 0.5 * (max(squares - n * average * average, 0.0) + shift * shift * n / (hyper[V0] * precision))
    # variance of a uniform rounding error of up to half a cell
    rounding = constants[HALF] * constants[HALF] / 3.0
    least = max(1.5 * hyper[FLOOR], 0.1 * rounding)
    variance = max(spread / (hyper[A0] + 0.5 * n + 1.0) - rounding, least)
    theta[MU] = mean
    theta[VARIANCE] = variance
    if constants[EDGE] > -np.inf and mean > constants[EDGE]:
        alpha, scale = match_truncated(mean - constants[EDGE], variance, N_BISECTION)
        theta[MU] = constants[EDGE] - alpha * scale
        theta[VARIANCE] = max(scale * scale, least)


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    variance, mu = theta[VARIANCE], theta[MU]
    scale = math.sqrt(variance)
    half = constants[HALF] / scale
    alpha = (constants[EDGE] - mu) / scale
    from_edge = hazard(alpha) if alpha > -np.inf else 0.0
    # -inf times 0 would be NaN
    from_edge_by_alpha = from_edge * alpha if alpha > -np.inf else 0.0
    at_variance = 0.0
    at_mu = 0.0
    for i in range(flow.size):
        if flow[i] != 0.0 and aux[i] < np.inf:
            first, second = edge_ratios((z[i] - mu) / scale, half)
            at_mu += flow[i] * (first - from_edge)
            at_variance += flow[i] * (second - from_edge_by_alpha)
    out[VARIANCE] += 0.5 * at_variance / variance
    out[MU] += at_mu / scale
