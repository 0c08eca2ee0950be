"""The standard normal distribution in logarithms: tails, intervals, quantiles, truncated moments."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.cancellation import log1mexp, logaddexp
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.quadrature import FEW_NODES, FEW_WEIGHTS, NODES, WEIGHTS, is_slight

_SQRT_HALF = 0.7071067811865476
_SQRT_HALF_PI = 1.2533141373155003
_SQRT_2PI = 2.5066282746310002
_HALF_LOG_2PI = 0.9189385332046727
_LOG_2 = 0.6931471805599453
_TAIL = 5.0
_FRACTION_SPREAD, _FRACTION_LEAST = 90.0, 5  # levels for full precision: 22 at 5, 12 at 10, 5 at 50
_N_NEWTON = 60
_LOST = 1e-11
"""Width of an interval over its distance from the mean, below which too few digits of the difference are left."""
_FLAT, _STEEP = 1e-6, 300.0
_SMALLEST, _LEAST = 1e-300, -1e300


@kernel
def mills_ratio(x):
    """Return Phi(-x) / phi(x) for x >= 0, with Laplace's continued fraction in the tail."""
    if x < _TAIL:
        return _SQRT_HALF_PI * math.exp(0.5 * x * x) * math.erfc(x * _SQRT_HALF)
    fraction = x
    # from the innermost level outwards
    for k in range(int(_FRACTION_SPREAD / x) + _FRACTION_LEAST, 0, -1):
        fraction = x + k / fraction
    return 1.0 / fraction


@kernel
def normal_cdf(x):
    """Return Phi(x)."""
    return 0.5 * math.erfc(-x * _SQRT_HALF)


@kernel
def log_normal_cdf(x):
    """Return log Phi(x), accurate in both tails."""
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x * _SQRT_HALF))
    if x > -_TAIL:
        return math.log(0.5 * math.erfc(-x * _SQRT_HALF))
    # the square would overflow
    if x < -1e150:
        return -np.inf
    return -0.5 * x * x - _HALF_LOG_2PI + math.log(mills_ratio(-x))


@apart
@kernel
def log_normal_interval(a, b):
    """Return log(Phi(b) - Phi(a)) without cancellation; -inf where b <= a, NaN where an end is NaN.

    Notes
    -----
    A cell of recorded values, and on one side of 0 any interval narrower than 1, is integrated by quadrature, since the
    two tails nearly cancel; a wider one holds at least two thirds of the nearer tail, so that the difference of tails
    is harmless.
    """
    if math.isnan(a) or math.isnan(b):
        return np.nan
    if b <= a:
        return -np.inf
    middle, half = -0.5 * abs(a + b), 0.5 * (b - a)
    if is_slight(middle * half, half * half):
        total = 0.0
        for i in range(FEW_NODES.size):
            t = half * FEW_NODES[i]
            total += FEW_WEIGHTS[i] * math.exp(-t * (middle + 0.5 * t))
        return math.log(half * total) - 0.5 * middle * middle - _HALF_LOG_2PI
    if a < 0.0 < b:
        if b - a <= 2.0:
            return math.log(0.5 * (math.erf(b * _SQRT_HALF) + math.erf(-a * _SQRT_HALF)))
        return math.log1p(-0.5 * (math.erfc(b * _SQRT_HALF) + math.erfc(-a * _SQRT_HALF)))
    # to the left of 0, where the tail near to it is the small one
    if a >= 0.0:
        a, b = -b, -a
    if half < 0.5 and -middle * half < 20.0:
        total = 0.0
        for i in range(NODES.size):
            t = half * NODES[i]
            total += WEIGHTS[i] * math.exp(-t * (middle + 0.5 * t))
        return math.log(half * total) - 0.5 * middle * middle - _HALF_LOG_2PI
    log_hi = log_normal_cdf(b)
    if log_hi == -np.inf:
        return -np.inf
    return log_hi + log1mexp(log_hi - log_normal_cdf(a))


@kernel
def log_normal_mass(a, b):
    """Return log(Phi(b) - Phi(a)) as `log_normal_interval` does, to 1e-13, at a third of the cost near the middle.

    There the difference of two tails serves. It loses digits by their ratio, and because an end at x, rounded, moves
    its tail by x^2 units in the last place.
    """
    near, far = (b, a) if a + b < 0.0 else (-a, -b)
    if not far < near:
        return log_normal_interval(a, b)
    tail = 0.5 * math.erfc(-near * _SQRT_HALF)
    mass = tail if far == -np.inf else tail - 0.5 * math.erfc(-far * _SQRT_HALF)
    return math.log(mass) if 100.0 * mass > tail * (1.0 + near * near) else log_normal_interval(a, b)


@kernel
def is_lost(lo, hi, mean):
    """Return whether an interval is so narrow, that far from a mean, that the distance of its ends is rounded away."""
    return lo < hi and hi - lo < _LOST * abs(lo - mean)


@kernel
def log_lost_normal(lo, hi, mean, scale):
    """Return log(Phi(b) - Phi(a)) for a, b = (lo, hi - mean) / scale where `is_lost` holds.

    The density is that of the middle times an exponential there, whose integral is a hyperbolic sine. Never -inf.
    """
    width, middle = (hi - lo) / scale, abs(0.5 * lo + 0.5 * hi - mean) / scale
    y = 0.5 * width * middle
    log_sinh = 0.0
    if y > _STEEP:
        # sinh(y) is exp(y) / 2, which would overflow
        log_sinh = y - math.log(2.0 * y)
    elif y > _FLAT:
        log_sinh = math.log(math.sinh(y) / y)
    return max(math.log(max(width, _SMALLEST)) + log_sinh - 0.5 * middle * middle - _HALF_LOG_2PI, _LEAST)


@kernel
def _lower_quantile(log_p):
    """Return x <= 0 with log Phi(x) = log_p, for log_p <= log(1 / 2).

    Newton's steps on log Phi, which is concave: from the second on they approach the root from the left.
    """
    if log_p == -np.inf:
        return -np.inf
    if log_p < -3.0:
        # of phi(x) / |x|, what Phi(x) tends to
        x = -math.sqrt(-2.0 * log_p - math.log(-4.0 * math.pi * log_p))
    else:
        x = min((math.exp(log_p) - 0.5) * _SQRT_2PI, 0.0)
    for _ in range(_N_NEWTON):
        step = (log_p - log_normal_cdf(x)) * mills_ratio(-x)
        x = min(x + step, 0.0)
        if abs(step) <= 1e-15 * abs(x) or abs(step) <= 1e-16:
            break
    return x


@kernel
def normal_quantile(p):
    """Return x with Phi(x) = p; -inf at 0, inf at 1, NaN outside [0, 1]."""
    if not 0.0 <= p <= 1.0:
        return np.nan
    if p < 0.1:
        return _lower_quantile(math.log(p)) if p > 0.0 else -np.inf
    if p > 0.9:
        return -_lower_quantile(math.log(1.0 - p)) if p < 1.0 else np.inf
    x = (p - 0.5) * _SQRT_2PI
    for _ in range(_N_NEWTON):
        step = ((p - 0.5) - 0.5 * math.erf(x * _SQRT_HALF)) * _SQRT_2PI * math.exp(0.5 * x * x)
        x += step
        if abs(step) <= 1e-15 * abs(x):
            break
    return x


@kernel
def _quantile_between(a, b, u):
    """Return the u-quantile between a and b where a + b <= 0."""
    log_mass = log_normal_interval(a, b)
    if log_mass == -np.inf or u >= 1.0:
        return b
    if u <= 0.0:
        return a
    log_below = logaddexp(log_normal_cdf(a), math.log(u) + log_mass)
    if log_below <= -_LOG_2:
        x = _lower_quantile(log_below)
    else:
        log_above = logaddexp(log_normal_cdf(-b), math.log1p(-u) + log_mass)
        x = -_lower_quantile(min(log_above, -_LOG_2))
    return min(max(x, a), b)


@apart
@kernel
def normal_quantile_between(a, b, u):
    """Return the u-quantile of a standard normal variable given that it lies in [a, b].

    Accurate in both tails and never outside [a, b]; where the interval is beyond the reach of floating point, its end
    nearest to 0. NaN where a > b or an argument is NaN.
    """
    if not (a <= b and 0.0 <= u <= 1.0):
        return np.nan
    if a == b:
        return a
    if a > -b:
        return -_quantile_between(-b, -a, 1.0 - u)
    return _quantile_between(a, b, u)


@kernel
def _moments_from_end(a, width):
    """Return (mean, variance) of u - a for a standard normal u given that it lies in [a, a + width], a > -1/2.

    Where a < 0, the width is at most 1: the density hardly rises, so the variance is a third of the squared mean,
    or more, and their difference loses no digits.
    """
    # where the density has fallen by e^-40 nothing is left to integrate
    reach = min(width, 40.0 / a) if a > 0.0 else width
    half = 0.5 * reach
    total = 0.0
    first = 0.0
    second = 0.0
    for i in range(NODES.size):
        t = half * (1.0 + NODES[i])
        density = WEIGHTS[i] * math.exp(-t * (a + 0.5 * t))
        total += density
        first += density * t
        second += density * t * t
    mean = first / total
    return mean, second / total - mean * mean


@kernel
def _edge(u, log_mass):
    """Return (phi(u) / mass, u phi(u) / mass) for an end of an interval."""
    # infinity times 0 would be NaN
    if math.isinf(u):
        return 0.0, 0.0
    ratio = math.exp(-0.5 * u * u - _HALF_LOG_2PI - log_mass)
    return ratio, u * ratio


@apart
@kernel
def normal_moments_between(a, b):
    """Return (end, offset, variance) of a standard normal variable given that it lies in [a, b], where a < b.

    The mean is the lower end plus `offset` where end = -1, the upper end plus `offset` where end = 1, and `offset`
    itself where end = 0: so a caller in other units starts from its own exact end. In the tails and in narrow
    intervals the moments come from quadrature, elsewhere from phi at the ends.
    """
    if b - a < 1.0 or a > 3.0 or b < -3.0:
        if a + b >= 0.0:
            mean, variance = _moments_from_end(a, b - a)
            return -1, mean, variance
        mean, variance = _moments_from_end(-b, b - a)
        return 1, -mean, variance
    log_mass = log_normal_interval(a, b)
    ratio_a, product_a = _edge(a, log_mass)
    ratio_b, product_b = _edge(b, log_mass)
    mean = ratio_a - ratio_b
    return 0, mean, 1.0 + product_a - product_b - mean * mean
