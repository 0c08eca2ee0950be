"""Mean and variance of the density proportional to exp(-t x) on [0, 1]: what truncated exponentials are made of."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.jit import kernel

_SERIES_BELOW = 0.5
# 1 / t - 1 / (exp(t) - 1) - 1 / 2 = sum of these times t, t^3, t^5, ...: minus B_2k / (2 k)!
_SERIES = np.array(
    [
        -1.0 / 12,
        1.0 / 720,
        -1.0 / 30240,
        1.0 / 1209600,
        -1.0 / 47900160,
        691.0 / 1307674368000,
        -1.0 / 74724249600,
    ]
)


@kernel
def tilted_mean(t):
    """Return 1 / t - 1 / (exp(t) - 1), the mean, for 0 <= t <= inf."""
    if t < _SERIES_BELOW:
        total = 0.0
        for k in range(_SERIES.size - 1, -1, -1):
            total = total * t * t + _SERIES[k]
        return 0.5 + t * total
    if t > 700.0:
        return 1.0 / t
    return 1.0 / t - 1.0 / math.expm1(t)


@kernel
def tilted_variance(t):
    """Return 1 / t^2 - exp(t) / (exp(t) - 1)^2, the variance, for 0 <= t <= inf."""
    if t < _SERIES_BELOW:
        total = 0.0
        for k in range(_SERIES.size - 1, -1, -1):
            total = total * t * t - (2.0 * k + 1.0) * _SERIES[k]
        return total
    rest = -math.expm1(-t)
    return 1.0 / (t * t) - math.exp(-t) / (rest * rest)
