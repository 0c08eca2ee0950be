"""Differences of log Gamma and of its derivative over a step, without cancellation at large arguments."""

from __future__ import annotations

import math

from bayesjpt.numerics.cancellation import log1p_minus
from bayesjpt.numerics.incomplete_gamma import stirling_error
from bayesjpt.numerics.jit import kernel

_LARGE = 10.0
_LONGEST_PRODUCT, _LARGEST_FACTOR = 16.0, 1e15


@kernel
def log_rising_excess(x, step):
    """Return log Gamma(x + step) - log Gamma(x) - step log x for x >= 10 and step >= 0."""
    ratio = step / x
    return x * log1p_minus(ratio) + (step - 0.5) * math.log1p(ratio) + (stirling_error(x + step) - stirling_error(x))


@kernel
def log_rising(x, step):
    """Return log Gamma(x + step) - log Gamma(x) for x > 0 and step >= 0, the log of Pochhammer's symbol.

    A product where the step is a small whole number, a quarter of the work of Stirling's formula for large x.
    """
    # at most 16 factors of 1e15: the product does not overflow
    if step <= _LONGEST_PRODUCT and math.floor(step) == step and x < _LARGEST_FACTOR:
        product = 1.0
        for j in range(int(step)):
            product *= x + j
        return math.log(product)
    if x >= _LARGE:
        return log_rising_excess(x, step) + step * math.log(x)
    return math.lgamma(x + step) - math.lgamma(x)


@kernel
def _digamma_correction(x):
    """Return digamma(x) - log x for x >= 10."""
    s = 1.0 / (x * x)
    series = 1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760)))))
    return -0.5 / x - s * series


@kernel
def digamma_step(x, step):
    """Return digamma(x + step) - digamma(x) for x > 0 and step >= 0."""
    if step <= _LONGEST_PRODUCT and math.floor(step) == step:
        total = 0.0
        for j in range(int(step)):
            total += 1.0 / (x + j)
        return total
    lower, upper = x, x + step
    total = 0.0
    # digamma(x + 1) = digamma(x) + 1 / x, until both are large
    while lower < _LARGE:
        total += 1.0 / lower
        lower += 1.0
    while upper < _LARGE:
        total -= 1.0 / upper
        upper += 1.0
    return total + math.log1p((upper - lower) / lower) + (_digamma_correction(upper) - _digamma_correction(lower))
