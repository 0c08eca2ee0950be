"""Intervals of the rounded normals: mass, moments, mode and draws of the whole numbers in [lo, hi].

The whole numbers of an interval are one run of cells, so their mass is that of one interval of the normal. Moments
are sums over the cells that matter; where these are many, Euler and Maclaurin's formula of the rounding error: with
r(x) the distance of x from its whole number and f the density on cells a ... b,

    E r     = [f / 12 - f'' / 720]
    Cov(x, r) = [g / 12 - g'' / 720],  g = (x - mean) f
    E r^2   = 1 / 12 + [f' / 360]

brackets being differences between the ends. Layout of theta and constants: see `bayesjpt.families.rounded`.

Reference: NIST Digital Library of Mathematical Functions, section 2.10(i).
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families.rounded import ANCHOR, EDGE, FIRST, HALF, MU, VARIANCE, coefficients, log_mass_at
from bayesjpt.numerics.gaussian import (
    log_normal_cdf,
    log_normal_interval,
    mills_ratio,
    normal_moments_between,
    normal_quantile_between,
)
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.normal_cell import log_normal_width, log_tail_integral

_HALF_LOG_2PI = 0.9189385332046727
_ON_GRID = 1e-6
_ROUNDING = 1e-15
_LOWEST = -1e300
_N_SUMMED = 1000.0
_VANISHED = 80.0
_NEGLIGIBLE = 1e-18
_TAIL = 5.0
_WIDE = 1.0
"""Standard deviations from which the ends of an interval are told apart by themselves."""


@kernel
def _ends(lo, hi, constants):
    """Return the first and last k of the interval [lo, hi] in units of z; the first is above the last where none is."""
    width = 2.0 * constants[HALF]
    first = (lo - constants[ANCHOR]) / width
    last = (hi - constants[ANCHOR]) / width
    # ends that are whole numbers but for rounding belong to the interval
    first = np.ceil(first - _ON_GRID - _ROUNDING * abs(first)) if abs(first) < np.inf else first
    last = np.floor(last + _ON_GRID + _ROUNDING * abs(last)) if abs(last) < np.inf else last
    first = max(first, constants[FIRST])
    if first == np.inf or last == -np.inf:
        return 1.0, 0.0
    return first, last


@kernel
def _lower_edge(k, theta, constants):
    """Return the lower end of a cell in standard deviations from mu."""
    edge = constants[ANCHOR] + constants[HALF] * (2.0 * k - 1.0)
    return (edge - theta[MU]) / math.sqrt(theta[VARIANCE])


@kernel
def _log_mass_between(first, last, theta, constants):
    """Return the log mass of the cells first ... last."""
    if not first <= last:
        return -np.inf
    if first == constants[FIRST] and last == np.inf:
        return 0.0
    scale = math.sqrt(theta[VARIANCE])
    half = constants[HALF] / scale
    alpha = (constants[EDGE] - theta[MU]) / scale
    width = 2.0 * half * (last - first + 1.0)
    if alpha > 0.0:
        distance = 2.0 * half * (first - constants[FIRST])
        value = log_tail_integral(alpha + distance, width) - math.log(mills_ratio(alpha))
        return max(min(value - distance * (alpha + 0.5 * distance), 0.0), _LOWEST)
    if first == -np.inf:
        value = log_normal_cdf(_lower_edge(last + 1.0, theta, constants))
    elif width < _WIDE:
        value = log_normal_width(_lower_edge(first, theta, constants), width) - log_normal_cdf(-alpha)
    else:
        # each end from the anchor: one end and the width lose the digits of the other
        ends = _lower_edge(first, theta, constants), _lower_edge(last + 1.0, theta, constants)
        value = log_normal_interval(ends[0], ends[1]) - log_normal_cdf(-alpha)
    return max(min(value, 0.0), _LOWEST)


@kernel
def log_mass(lo, hi, theta, constants):
    first, last = _ends(lo, hi, constants)
    return _log_mass_between(first, last, theta, constants)


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def _peak(first, last, theta, constants):
    """Return the k of first ... last with the largest mass."""
    return min(max(np.rint((theta[MU] - constants[ANCHOR]) / (2.0 * constants[HALF])), first), last)


@kernel
def mode(lo, hi, theta, constants):
    first, last = _ends(lo, hi, constants)
    if not first <= last:
        first, last = constants[FIRST], np.inf
    value = constants[ANCHOR] + 2.0 * constants[HALF] * _peak(first, last, theta, constants)
    return min(max(value, lo), hi)


@kernel
def _summed_moments(first, last, theta, constants):
    """Return mean and variance of k, the mean as an offset from the peak, cell by cell outwards."""
    prepared = np.empty(6)
    coefficients(theta, constants, prepared)
    width = 2.0 * constants[HALF]
    peak = _peak(first, last, theta, constants)
    at_peak = log_mass_at(constants[ANCHOR] + width * peak, peak, prepared)
    total, mean, square = 1.0, 0.0, 0.0
    for side in (-1.0, 1.0):
        k = peak + side
        while first <= k <= last:
            share = math.exp(log_mass_at(constants[ANCHOR] + width * k, k, prepared) - at_peak)
            # shares only fall from the peak outwards
            if share < _NEGLIGIBLE:
                break
            total += share
            mean += share * (k - peak)
            square += share * (k - peak) * (k - peak)
            k += side
    mean /= total
    return mean, max(square / total - mean * mean, 0.0)


@kernel
def _rounding_terms(end, ratio, offset, spread):
    """Return f / 12 - f'' / 720, g / 12 - g'' / 720 and f' / 360 at one end, in cells.

    `end` is the end in standard deviations from mu, `ratio` the density there by the mass of the interval, `offset` the
    end's distance from the mean, `spread` the standard deviation.
    """
    if ratio == 0.0:
        return 0.0, 0.0, 0.0
    slope = -end / spread * ratio
    curve = (end * end - 1.0) / (spread * spread) * ratio
    return (
        ratio / 12.0 - curve / 720.0,
        offset * ratio / 12.0 - (2.0 * slope + offset * curve) / 720.0,
        slope / 360.0,
    )


@kernel
def _end_ratios(a, b):
    """Return the standard normal density at a and at b by the mass between them."""
    if a >= 0.0:
        scale = math.exp(-log_tail_integral(a, b - a))
        return scale, scale * math.exp(-(b - a) * (a + 0.5 * (b - a)))
    if b <= 0.0:
        scale = math.exp(-log_tail_integral(-b, b - a))
        return scale * math.exp(-(b - a) * (0.5 * (b - a) - b)), scale
    log_all = log_normal_interval(a, b) + _HALF_LOG_2PI
    return math.exp(-0.5 * a * a - log_all), math.exp(-0.5 * b * b - log_all)


@kernel
def _smooth_moments(first, last, theta, constants):
    """Return mean and variance of k, the mean as an offset from the peak, by the formula of Euler and Maclaurin."""
    width = 2.0 * constants[HALF]
    spread = math.sqrt(theta[VARIANCE]) / width
    peak = _peak(first, last, theta, constants)
    a, b = _lower_edge(first, theta, constants), _lower_edge(last + 1.0, theta, constants)
    end, offset, share = normal_moments_between(a, b)
    if end < 0:
        mean = first - 0.5 - peak + spread * offset
    elif end > 0:
        mean = last + 0.5 - peak + spread * offset
    else:
        mean = (theta[MU] - constants[ANCHOR]) / width - peak + spread * offset
    at_a, at_b = _end_ratios(a, b)
    ratio_a, ratio_b = at_a / spread, at_b / spread
    from_a = first - 0.5 - peak - mean if ratio_a > 0.0 else 0.0
    from_b = last + 0.5 - peak - mean if ratio_b > 0.0 else 0.0
    error_a, product_a, square_a = _rounding_terms(a, ratio_a, from_a, spread)
    error_b, product_b, square_b = _rounding_terms(b, ratio_b, from_b, spread)
    error = error_b - error_a
    variance = spread * spread * share - 2.0 * (product_b - product_a) + 1.0 / 12.0 + (square_b - square_a)
    return mean - error, max(variance - error * error, 0.0)


@kernel
def moment(k, lo, hi, theta, constants):
    first, last = _ends(lo, hi, constants)
    if not first <= last:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    width = 2.0 * constants[HALF]
    peak = _peak(first, last, theta, constants)
    apart = abs(constants[ANCHOR] + width * peak - theta[MU]) / math.sqrt(theta[VARIANCE])
    reach = _VANISHED / (math.sqrt(apart * apart + _VANISHED) + apart) * math.sqrt(theta[VARIANCE]) / width
    if min(last - first + 1.0, 2.0 * reach) <= _N_SUMMED:
        offset, variance = _summed_moments(first, last, theta, constants)
    else:
        offset, variance = _smooth_moments(first, last, theta, constants)
    mean = min(max(constants[ANCHOR] + width * (peak + offset), lo), hi)
    return mean if k == 1 else width * width * variance


@kernel
def _draw_from_end(near, width, rng):
    """Return how far beyond `near` > 0 a standard normal variable lies, given that it is within `width`.

    Exponential proposals with the slope at the end (Robert, 1995), so that nothing cancels far out.
    """
    inside = -math.expm1(-near * width)
    while True:
        # by the inverse of the exponential's distribution function up to `width`
        step = -math.log1p(-rng.random() * inside) / near
        if rng.random() <= math.exp(-0.5 * step * step):
            return min(step, width)


@kernel
def sample(lo, hi, theta, constants, rng):
    first, last = _ends(lo, hi, constants)
    if not first <= last:
        return mode(lo, hi, theta, constants)
    scale = math.sqrt(theta[VARIANCE])
    width = 2.0 * constants[HALF]
    a, b = _lower_edge(first, theta, constants), _lower_edge(last + 1.0, theta, constants)
    length = (last - first + 1.0) * width / scale
    if a > _TAIL:
        k = first + np.floor(_draw_from_end(a, length, rng) * scale / width)
    elif b < -_TAIL:
        k = last - np.floor(_draw_from_end(-b, length, rng) * scale / width)
    else:
        everything = a == -np.inf and b == np.inf
        u = rng.standard_normal() if everything else normal_quantile_between(a, b, rng.random() + 1e-17)
        k = np.rint((theta[MU] + scale * u - constants[ANCHOR]) / width)
    value = constants[ANCHOR] + width * min(max(k, first), last)
    return min(max(value, lo), hi)
