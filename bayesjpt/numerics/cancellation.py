"""Logarithms of sums and differences, log(1 + x) - x and exp(x) - 1 - x, without cancellation."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.jit import kernel

_LOG_2 = 0.6931471805599453


@kernel
def log1mexp(x):
    """Return log(1 - exp(-x)) for x >= 0; -inf at 0, NaN below.

    References
    ----------
    Maechler, M. (2012), Accurately computing log(1 - exp(-|a|)), for the switch at log 2.
    """
    if x <= 0.0:
        return -np.inf if x == 0.0 else np.nan
    if x <= _LOG_2:
        return math.log(-math.expm1(-x))
    return math.log1p(-math.exp(-x))


@kernel
def logaddexp(a, b):
    """Return log(exp(a) + exp(b)); -inf where both are -inf."""
    hi = max(a, b)
    # the difference of two equal infinities below would be NaN
    if hi == -np.inf or hi == np.inf:
        return hi
    return hi + math.log1p(math.exp(-abs(a - b)))


@kernel
def expm1_minus(x):
    """Return exp(x) - 1 - x, to a few units in the last place near 0 too."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    total = 1.0
    for k in range(16, 2, -1):
        total = 1.0 + x / k * total
    return 0.5 * x * x * total


@kernel
def log1p_minus(x):
    """Return log(1 + x) - x for x > -1, to a few units in the last place near 0 too.

    Notes
    -----
    With r = x / (2 + x), log(1 + x) = 2 artanh(r) = 2 r + 2 r^3 / 3 + 2 r^5 / 5 + ..., and x - 2 r = r x.
    """
    # as far from 0 as this the subtraction costs two bits at most
    if abs(x) > 0.4:
        return math.log1p(x) - x
    r = x / (2.0 + x)
    square = r * r
    power = 1.0
    total = 0.0
    # |r| is at most 1/4: squares fall below 1e-17 within 15 terms
    for k in range(20):
        total += power / (2.0 * k + 3.0)
        power *= square
        if power < 1e-17:
            break
    return r * (2.0 * square * total - x)
