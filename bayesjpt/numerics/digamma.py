"""The digamma function, the derivative of log Gamma."""

from __future__ import annotations

import math

from bayesjpt.numerics.jit import kernel

_ASYMPTOTIC_FROM = 10.0


@kernel
def digamma(x):
    """Return the derivative of log Gamma(x) for x > 0: recurrence up to 10, then the asymptotic series.

    References
    ----------
    NIST Digital Library of Mathematical Functions, equations 5.5.2 and 5.11.2.
    """
    shift = 0.0
    while x < _ASYMPTOTIC_FROM:
        shift += 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    tail = s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s * (1.0 / 12 - s * 3617.0 / 8160))))
    return math.log(x) - 0.5 / x - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - tail))) - shift
