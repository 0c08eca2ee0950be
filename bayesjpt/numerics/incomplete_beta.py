"""The regularised incomplete beta function I_x(a, b) and its complement, in logarithms.

The tail on the near side of the bulk is computed directly, the other one from it:

    a < 1/100          power series, of both tails: the lower one is nearly 1, and its complement would keep no digits
    min(a, b) < 1000   continued fraction, whose number of terms grows like the root of min(a, b): up to 90
    otherwise          quadrature of the density of log(x / y), y = 1 - x, which is log-concave, from x outwards

so the cost is bounded for parameters of any size. The relative error of the direct tail is some 1e-14; the other one,
its complement, loses digits where it is small: up to 4e-13 at a = 1/100.

References: Didonato and Morris (1992), Significant digit computation of the incomplete beta function ratios, ACM
Transactions on Mathematical Software 18, equation 9, for the fraction; Loader (2000), Fast and accurate computation of
binomial probabilities, for the factor in front.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.cancellation import log1mexp, log1p_minus
from bayesjpt.numerics.digamma import digamma
from bayesjpt.numerics.incomplete_gamma import log_gamma_1p, stirling_error
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.quadrature import NODES, WEIGHTS

_LOG_2PI = 1.8378770664093453
_QUADRATURE_FROM = 1000.0
"""The smaller parameter from which the fraction takes as long as the quadrature."""
_SERIES_BELOW = 0.01
_N_TERM = 5000
_N_NEWTON = 60
_LOG_NEGLIGIBLE = -40.0
"""A probability of e^-40 changes nothing that is added to another."""
_REACH = 42.0
"""The integrand has fallen by e^-42 where the quadrature ends."""


@kernel
def log_beta(a, b):
    """Return the logarithm of the beta function B(a, b) for a, b > 0, without cancellation at large arguments."""
    at_mean = -a * math.log1p(b / a) - b * math.log1p(a / b)
    error = stirling_error(a) + stirling_error(b) - stirling_error(a + b)
    return at_mean + 0.5 * (_LOG_2PI - math.log(a) - math.log(b / (a + b))) + error


@kernel
def _log_ratio_minus(x, centre, difference):
    """Return log(x / centre) - difference / centre, where difference = x - centre."""
    ratio = x / centre
    if 0.6 < ratio < 1.4:
        return log1p_minus(difference / centre)
    return math.log(ratio) - difference / centre


@kernel
def log_beta_kernel(a, b, x, y):
    """Return log(x^a y^b / B(a, b)) for 0 < x < 1 and y = 1 - x, the log density of log(x / y) under Beta(a, b)."""
    n = a + b
    p, q = a / n, b / n
    difference = x * q - y * p
    exponent = a * _log_ratio_minus(x, p, difference) + b * _log_ratio_minus(y, q, -difference)
    # near the centre the logarithm cancels against the difference
    error = stirling_error(n) - stirling_error(a) - stirling_error(b)
    return exponent + 0.5 * (math.log(a) + math.log(q) - _LOG_2PI) + error


@kernel
def _lower_fraction(a, b, x, y):
    """Return I_x(a, b) B(a, b) / (x^a y^b) by a continued fraction, evaluated as Lentz did.

    It is every other convergent of the fraction with numerators alone. Where b < 1000 or so, and x is no larger than
    the mode of log(x / y), its terms are positive, or small: a y - b x stands where 1 - (a + b) x / a would cancel.
    """
    edge = a * y - b * x + 1.0
    denominator = a * edge / (a + 1.0)
    c, d = denominator, 0.0
    for n in range(1, _N_TERM):
        odd = a + 2.0 * n - 1.0
        step = n * (b - n) * x / odd
        numerator = (a + n - 1.0) * (a + b + n - 1.0) * step * x / odd
        term = n + step + (a + n) * (edge + n * (1.0 + y)) / (odd + 2.0)
        d = 1.0 / (term + numerator * d)
        c = term + numerator / c
        factor = c * d
        denominator *= factor
        if abs(factor - 1.0) <= 4e-16:
            break
    return 1.0 / denominator


@kernel
def _fall(a, b, x, y, step):
    """Return how far the log density of log(y / x) lies below its value at y / x where that grew by e^step."""
    if y < 0.5:
        return (a + b) * math.log1p(y * math.expm1(step)) - b * step
    return (a + b) * math.log1p(x * math.expm1(-step)) + a * step


@kernel
def _lower_integral(a, b, x, y):
    """Return I_x(a, b) B(a, b) / (x^a y^b) by quadrature."""
    # the fall is convex: two bounds of its reach, then Newton's steps from beyond
    reach = (_REACH - (a + b) * math.log(y)) / a
    slope = a * y - b * x
    if slope > 0.0:
        reach = min(reach, _REACH / slope)
    for _ in range(_N_NEWTON):
        fall = _fall(a, b, x, y, reach)
        if fall < _REACH + 4.0:
            break
        slope = (a + b) * y / (y + x * math.exp(-reach)) - b
        reach -= (fall - _REACH) / slope
    half = 0.5 * reach
    total = 0.0
    for i in range(NODES.size):
        total += WEIGHTS[i] * math.exp(-_fall(a, b, x, y, half * (1.0 + NODES[i])))
    return half * total


@kernel
def _log_lower(a, b, x, y):
    part = _lower_fraction(a, b, x, y) if min(a, b) < _QUADRATURE_FROM else _lower_integral(a, b, x, y)
    return log_beta_kernel(a, b, x, y) + math.log(part)


@kernel
def _short_rise(b, a):
    """Return log Gamma(b + a) - log Gamma(b) for 0 < a < 1/100, by quadrature: the difference has few digits."""
    from_one = 0.0
    if b < 1.0:  # away from the pole
        from_one = math.log1p(a / b)
        b += 1.0
    half = 0.5 * a
    middle = b + half
    reach = half * 0.7745966692414834  # of Gauss's three points: sqrt(3 / 5)
    return half * (5.0 * (digamma(middle - reach) + digamma(middle + reach)) + 8.0 * digamma(middle)) / 9.0 - from_one


@kernel
def _series_tails(a, b, x):
    """Return (log I_x(a, b), log I_y(b, a)) for a < 1/100, x on the near side of the bulk.

    Of 1 - x^a / (a B(a, b)) (1 + a sum of (1 - b)_n x^n / (n! (a + n))) the leading 1 is taken off by expm1. Source:
    NIST Digital Library of Mathematical Functions, equation 8.17.7, the hypergeometric function written out.
    """
    exponent = a * math.log(x) + _short_rise(b, a) - log_gamma_1p(a)
    total = 0.0
    power = 1.0
    for n in range(1, _N_TERM):
        power *= x * (n - b) / n
        term = power / (a + n)
        total += term
        if abs(term) <= 1e-17 * abs(total):
            break
    missing = -math.expm1(exponent) - math.exp(exponent) * a * total
    upper = math.log(min(missing, 1.0)) if missing > 0.0 else -np.inf
    return min(exponent + math.log1p(a * total), 0.0), upper


@apart
@kernel
def log_beta_tails(a, b, x, y):
    """Return (log I_x(a, b), log I_y(b, a)) for y = 1 - x, given apart since one of them may be tiny.

    NaN where a or b is not positive and finite, or x is NaN.
    """
    if not (0.0 < a < np.inf and 0.0 < b < np.inf) or math.isnan(x) or math.isnan(y):
        return np.nan, np.nan
    if x <= 0.0:
        return -np.inf, 0.0
    if y <= 0.0:
        return 0.0, -np.inf
    # on the near side of the bulk the lower tail is the small one, unless a is tiny
    if y * (a + 1.0) >= x * (b + 1.0):
        if a < _SERIES_BELOW:
            return _series_tails(a, b, x)
        lower = min(_log_lower(a, b, x, y), 0.0)
        return lower, log1mexp(-lower)
    if b < _SERIES_BELOW:
        upper, lower = _series_tails(b, a, y)
        return lower, upper
    upper = min(_log_lower(b, a, y, x), 0.0)
    return log1mexp(-upper), upper


@kernel
def _log_lower_bound(a, b, x, y):
    """Return what log I_x(a, b) is below, where x is no larger than the mode of log(x / y): three logarithms.

    The ratio of neighbours in the series of I_x(a, b) a B(a, b) / (x^a y^b), (a + b + k) x / (a + 1 + k), is at most
    its first or x, and Stirling's errors left out of the factor in front are negative together.
    """
    n = a + b
    ratio = max(n * x / (a + 1.0), x)
    return a * math.log(x * (n / a)) + b * math.log(y * (n / b)) + math.log(math.sqrt(b / (a * n)) / (1.0 - ratio))


@kernel
def log_beta_above(a, b, x, y):
    """Return log I_y(b, a) for y = 1 - x, or 0 where that is less than 1e-17 away, as it often is far below the bulk.

    What `log_beta_tails` returns in the second place, for normalisers of variables above x.
    """
    is_below = x > 0.0 and 0.0 < a < np.inf and 0.0 < b < np.inf and y * (a + 1.0) >= x * (b + 1.0)
    if is_below and _log_lower_bound(a, b, x, y) < _LOG_NEGLIGIBLE:
        return 0.0
    return log_beta_tails(a, b, x, y)[1]


@kernel
def log_beta_p(a, b, x):
    """Return log I_x(a, b), the log probability that a Beta(a, b) variable is at most x; NaN unless a, b > 0."""
    return log_beta_tails(a, b, x, 1.0 - x)[0]


@kernel
def log_beta_q(a, b, x):
    """Return log(1 - I_x(a, b)), the log probability that a Beta(a, b) variable exceeds x; NaN unless a, b > 0."""
    return log_beta_tails(a, b, x, 1.0 - x)[1]


@kernel
def beta_p(a, b, x):
    """Return I_x(a, b), the probability that a Beta(a, b) variable is at most x; NaN unless a, b > 0."""
    return math.exp(log_beta_tails(a, b, x, 1.0 - x)[0])
