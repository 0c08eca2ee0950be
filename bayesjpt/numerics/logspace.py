"""An exponential and a logarithm that vectorise: polynomials without calls or branches, for loops over rows."""

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
_MANTISSA_BITS = 0x000FFFFFFFFFFFFF
_TWO_52_BITS = 0x4330000000000000  # 2^52, in whose low bits an integer is the number added to it
_EXPONENT_BIAS = 4503599627370496.0 + 1023.0
_SQRT_2 = 1.4142135623730951
_LOG_2_LONG = 6.93147180369123816490e-01  # times any exponent it is exact
_LOG_2_REST = 1.90821492927058770002e-10


@kernel
def fast_exp(x):
    """Return exp(x) to 2e-16 for x <= 709; exactly 0 below -708 and where x is NaN (-inf less -inf).

    x = k log 2 + r with |r| <= log(2) / 2; a Taylor polynomial of degree 13 in r, times 2^k set in the exponent bits.
    """
    # choices in place of max() and min(): NaN compares false, so that it ends as the lowest, for which 0 is returned
    t = x if x > _LOWEST else _LOWEST
    t = t if t < _HIGHEST else _HIGHEST
    shifted = t * _LOG2_E + _ROUND
    k = shifted - _ROUND
    # the leading part of log 2 has 16 bits, so that k times it is exact
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
    # of the low bits, k alone survives the shift, into the exponent of 1
    bits = (np.float64(shifted).view(np.int64) << np.int64(52)) + np.int64(_ONE_BITS)
    value = p * np.int64(bits).view(np.float64)
    return value if x > _LOWEST else 0.0


@kernel
def fast_log(x):
    """Return log(x) to 3e-16 for positive x from 2.3e-308; some finite number for 0, so that 0 times it is 0.

    x = 2^k m with m between sqrt(1/2) and sqrt(2); log m = 2 artanh((m - 1) / (m + 1)), ten terms of the series.
    """
    bits = np.float64(x).view(np.int64)
    k = np.int64((bits >> np.int64(52)) | np.int64(_TWO_52_BITS)).view(np.float64) - _EXPONENT_BIAS
    m = np.int64((bits & np.int64(_MANTISSA_BITS)) | np.int64(_ONE_BITS)).view(np.float64)
    # between sqrt(1/2) and sqrt(2) the series converges fastest
    above = m > _SQRT_2
    m = 0.5 * m if above else m
    k = k + 1.0 if above else k
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 2.0 / 21.0
    p = p * z + 2.0 / 19.0
    p = p * z + 2.0 / 17.0
    p = p * z + 2.0 / 15.0
    p = p * z + 2.0 / 13.0
    p = p * z + 2.0 / 11.0
    p = p * z + 2.0 / 9.0
    p = p * z + 2.0 / 7.0
    p = p * z + 2.0 / 5.0
    p = p * z + 2.0 / 3.0
    return k * _LOG_2_LONG + (k * _LOG_2_REST + (2.0 * s + s * z * p))
