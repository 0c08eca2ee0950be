"""The logistic distribution: logarithms of its distribution function and of intervals, without cancellation."""

from __future__ import annotations

import math

from bayesjpt.numerics.cancellation import log1mexp
from bayesjpt.numerics.jit import kernel


@kernel
def expit(x):
    """Return 1 / (1 + exp(-x)), the probability that a logistic variable is at most x."""
    size = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else size) / (1.0 + size)


@kernel
def log_expit_both(x):
    """Return (log expit(x), log expit(-x)) of one exponential and one logarithm; x may be infinite."""
    rest = math.log1p(math.exp(-abs(x)))
    return min(x, 0.0) - rest, min(-x, 0.0) - rest


@kernel
def log_logistic_interval(a, b, width):
    """Return log P(a < Z <= b) of a logistic variable; the width is given apart, for b - a may have no digits.

    expit(b) - expit(a) = expit(b) expit(-a) (1 - exp(-width)): three factors, nothing cancels in either tail.
    """
    return log_expit_both(b)[0] + log_expit_both(a)[1] + log1mexp(width)
