"""Moments of a few counts whose masses obey f(x + 1) / f(x) = (a + b x) / (x + 1), about the largest of them."""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel

FEW = 4096.0
"""Counts that are summed up one by one: beyond, differences of tails keep their digits."""
_NOTHING = 1e-18


@kernel
def moment_of_few(k, first, last, a, b):
    """Return the mean (k = 1) or the variance (k = 2) of the counts first ... last, both finite."""
    peak = min(max(np.floor((a - 1.0) / (1.0 - b)) + 1.0, first), last)
    total, sum_, squares = 1.0, 0.0, 0.0
    term, x = 1.0, peak
    while x < last and term > _NOTHING * total:
        term *= (a + b * x) / (x + 1.0)
        x += 1.0
        total += term
        sum_ += term * (x - peak)
        squares += term * (x - peak) * (x - peak)
    term, x = 1.0, peak
    while x > first and term > _NOTHING * total:
        x -= 1.0
        term *= (x + 1.0) / (a + b * x)
        total += term
        sum_ -= term * (peak - x)
        squares += term * (peak - x) * (peak - x)
    apart = sum_ / total
    if k == 1:
        return min(max(peak + apart, first), last)
    return max(squares / total - apart * apart, 0.0)
