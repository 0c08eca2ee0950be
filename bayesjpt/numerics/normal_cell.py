"""Mass of a standard normal variable in cells far out: given by the near edge and the width, never by two far edges.

Beyond some 1e8 standard deviations the two edges of a cell are no longer apart in floating point; and the mass beyond a
truncation point in the tail cancels against the normaliser. So each function here takes the *level*: what stands for
-x^2 / 2 at the given point, in which a caller may have cancelled whatever is common.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.gaussian import log_normal_interval, mills_ratio
from bayesjpt.numerics.jit import kernel

_HALF_LOG_2PI = 0.9189385332046727
_WIDEST_SERIES = 0.5
_STEEPEST_SERIES = 1.5
_N_TERM = 60
_RECIPROCAL = 1.0 / np.arange(1.0, _N_TERM + 3.0)
"""1 / (j + 1) at j: divisions would be most of the series' time."""
_NEGLIGIBLE = 1e-18
_VANISHED = 40.0


@kernel
def _series(middle, half):
    """Return the mean of exp(-t middle - t^2 / 2) over [-half, half]: Hermite's polynomials, integrated."""
    step = half * middle
    square = half * half
    before = 1.0
    term = step
    total = 1.0
    for j in range(1, _N_TERM, 2):
        before = (step * term - square * before) * _RECIPROCAL[j]
        total += before * _RECIPROCAL[j + 1]
        term = (step * before - square * term) * _RECIPROCAL[j + 1]
        if abs(before) < _NEGLIGIBLE and abs(term) < _NEGLIGIBLE:
            break
    return total


@kernel
def log_tail_integral(near, width):
    """Return the log of the integral of exp(-s near - s^2 / 2) over s in [0, width], near >= 0, width > 0."""
    half = 0.5 * width
    if half <= _WIDEST_SERIES and (near + half) * half <= _STEEPEST_SERIES:
        return math.log(width * _series(near + half, half)) - half * (near + 0.5 * half)
    fall = width * (near + half)
    integral = mills_ratio(near)
    if fall < _VANISHED:
        integral -= math.exp(-fall) * mills_ratio(near + width)
    return math.log(integral)


@kernel
def log_normal_cell(middle, half, level):
    """Return log(Phi(middle + half) - Phi(middle - half)) for middle >= 0, `level` standing for -middle^2 / 2."""
    if half <= _WIDEST_SERIES and middle * half <= _STEEPEST_SERIES:
        return level - _HALF_LOG_2PI + math.log(2.0 * half * _series(middle, half))
    if middle >= half:
        shift = half * (middle - 0.5 * half)
        return level + shift - _HALF_LOG_2PI + log_tail_integral(middle - half, 2.0 * half)
    return log_normal_interval(middle - half, middle + half) + (level + 0.5 * middle * middle)


@kernel
def log_normal_span(near, width, level):
    """Return log(Phi(near + width) - Phi(near)) for near >= 0, `level` standing for -near^2 / 2; width may be inf."""
    return level - _HALF_LOG_2PI + log_tail_integral(near, width)


@kernel
def log_normal_width(lo, width):
    """Return log(Phi(lo + width) - Phi(lo)) for any lo."""
    if lo >= 0.0:
        return log_normal_span(lo, width, -0.5 * lo * lo)
    hi = lo + width
    if hi <= 0.0:
        return log_normal_span(-hi, width, -0.5 * hi * hi)
    return log_normal_interval(lo, hi)


@kernel
def edge_ratios(middle, half):
    """Return (r, s): phi's difference over a cell, phi(a) - phi(b), and a phi(a) - b phi(b), both by the cell's mass.

    The cell [a, b] is middle -+ half; they are what the derivatives of its log mass are made of.
    """
    sign = 1.0 if middle >= 0.0 else -1.0
    middle = abs(middle)
    near = middle - half
    far = middle + half
    if near >= 0.0:
        fall = 2.0 * half * middle
        scale = math.exp(-log_tail_integral(near, 2.0 * half))
        gone = -math.expm1(-fall)
        return sign * gone * scale, (near * gone - 2.0 * half * math.exp(-fall)) * scale
    log_mass = log_normal_interval(near, far)
    at_near = math.exp(-0.5 * near * near - _HALF_LOG_2PI - log_mass)
    at_far = math.exp(-0.5 * far * far - _HALF_LOG_2PI - log_mass)
    return sign * (at_near - at_far), near * at_near - far * at_far
