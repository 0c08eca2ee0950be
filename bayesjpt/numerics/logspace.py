"""The exponential that vectorises: a polynomial without calls or branches, for loops over rows."""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel

_LOG2_E = 1.4426950408889634
_LOG_2_HI = 0.693145751953125
_LOG_2_LO = 1.42860682030941723212e-6
_ROUND = 6755399441055744.0  # 1.5 x 2^52: adding it leaves the nearest integer in the low bits
_LOWEST = -708.0
_HIGHEST = 709.0
_ONE_BITS = 0x3FF0000000000000


@kernel
def fast_exp(x):
    """Return exp(x) to 2e-16 for x <= 709; exactly 0 below -708 and where x is NaN (-inf less -inf).

    x = k log 2 + r with |r| <= log(2) / 2; a Taylor polynomial of degree 13 in r, times 2^k set in the exponent bits.
    """
    t = x if x > _LOWEST else _LOWEST
    t = t if t < _HIGHEST else _HIGHEST
    shifted = t * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (t - k * _LOG_2_HI) - k * _LOG_2_LO
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = (np.float64(shifted).view(np.int64) << np.int64(52)) + np.int64(_ONE_BITS)
    value = p * np.int64(bits).view(np.float64)
    return value if x > _LOWEST else 0.0
