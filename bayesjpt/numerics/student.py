"""The standard Student t distribution in logarithms: tails, intervals, quantiles, truncated moments.

With t = sqrt(nu) sinh(v), the density of v is cosh(v)^-nu / B(1/2, nu/2): log-concave, normal in the middle and
exponential in both tails, whatever nu. Everything here is done in v, so that power-law tails cost no digits. Tails are
incomplete beta functions of sech(v)^2; what nearly cancels there is integrated by quadrature from the nearer end.

Reference: NIST Digital Library of Mathematical Functions, section 8.17, for the incomplete beta function.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.cancellation import log1mexp, log1p_minus, logaddexp
from bayesjpt.numerics.incomplete_beta import log_beta, log_beta_tails
from bayesjpt.numerics.incomplete_gamma import stirling_error
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.quadrature import NODES, WEIGHTS

_HALF_LOG_2PI = 0.9189385332046727
_LOG_2 = 0.6931471805599453
_STRAIGHT = 20.0
"""From here on cosh(v) and sinh(v) are exp(v) / 2 to the last bit."""
_PANEL = 2.0
_FALL = 20.0
"""Largest width of a panel of the quadrature, and largest fall of the log density along it."""
_N_NEWTON = 100
_SMALLEST = 1e-300


@kernel
def log_student_level(nu):
    """Return the log density at 0 of the standard t distribution: log Gamma((nu+1)/2) / (Gamma(nu/2) sqrt(nu pi))."""
    a = 0.5 * nu
    return a * log1p_minus(0.5 / a) + stirling_error(a + 0.5) - stirling_error(a) - _HALF_LOG_2PI


@kernel
def _log_upper(nu, v):
    """Return log P(T > sqrt(nu) sinh(v)) for v >= 0."""
    if v >= _STRAIGHT:
        return -nu * (v - _LOG_2) - math.log(nu) - log_beta(0.5 * nu, 0.5)
    # 1 - sech(v)^2 = tanh(v)^2, so that neither end of the beta's interval is rounded
    tanh = math.tanh(v)
    return log_beta_tails(0.5 * nu, 0.5, 1.0 / math.cosh(v) ** 2, tanh * tanh)[0] - _LOG_2


@kernel
def _log_from_zero(nu, v):
    """Return log P(0 < T < sqrt(nu) sinh(v)) for v >= 0."""
    if v >= _STRAIGHT:
        return log1mexp(-_LOG_2 - _log_upper(nu, v)) - _LOG_2
    tanh = math.tanh(v)
    return log_beta_tails(0.5 * nu, 0.5, 1.0 / math.cosh(v) ** 2, tanh * tanh)[1] - _LOG_2


@apart
@kernel
def log_student_cdf(nu, t):
    """Return log P(T <= t), accurate in both tails; NaN unless nu is positive and finite."""
    if not 0.0 < nu < np.inf or math.isnan(t):
        return np.nan
    v = math.asinh(t / math.sqrt(nu))
    if math.isinf(v):
        return 0.0 if v > 0.0 else -np.inf
    return _log_upper(nu, -v) if v < 0.0 else math.log1p(-math.exp(_log_upper(nu, v)))


@kernel
def student_cdf(nu, t):
    """Return P(T <= t)."""
    return math.exp(log_student_cdf(nu, t))


@kernel
def _width(a, b):
    """Return asinh(b) - asinh(a) for 0 <= a <= b < inf without cancellation."""
    # far from each other the difference loses no digits
    if b > 2.0 * a:
        return math.asinh(b) - math.asinh(a)
    # asinh(b) - asinh(a) = asinh(b sqrt(1 + a^2) - a sqrt(1 + b^2)), times its conjugate
    return math.asinh((b - a) * ((b + a) / (b * math.hypot(1.0, a) + a * math.hypot(1.0, b))))


@kernel
def _fall(nu, slope, step):
    """Return the fall of the log density of v from a point with tanh(v) = slope to `step` beyond it."""
    # cosh(v + step) / cosh(v) = 1 + 2 sinh(step / 2)^2 + tanh(v) sinh(step)
    half = math.sinh(0.5 * step)
    return nu * math.log1p(2.0 * half * half + slope * math.sinh(step))


@kernel
def _one_sided_interval(nu, a, b):
    """Return log P(sqrt(nu) a < T < sqrt(nu) b) for 0 <= a < b."""
    if a == 0.0:
        return _log_from_zero(nu, math.asinh(b)) if b < np.inf else -_LOG_2
    v = math.asinh(a)
    nearer = _log_upper(nu, v)
    if nearer == -np.inf or b == np.inf:
        return nearer
    farther = _log_upper(nu, math.asinh(b))
    # a difference of tails that loses at most two bits; closer ones are integrated
    if nearer - farther > 0.25:
        return nearer + log1mexp(nearer - farther)
    half = 0.5 * _width(a, b)
    slope = math.tanh(v)
    total = 0.0
    for i in range(NODES.size):
        total += WEIGHTS[i] * math.exp(-_fall(nu, slope, half * (1.0 + NODES[i])))
    log_cosh = 0.5 * math.log1p(a * a) if a < 1.0 else math.log(math.hypot(1.0, a))
    return math.log(half * total) - nu * log_cosh - log_beta(0.5 * nu, 0.5)


@apart
@kernel
def log_student_interval(nu, a, b):
    """Return log P(a < T < b) without cancellation; -inf where b <= a, NaN where an argument is."""
    if not 0.0 < nu < np.inf or math.isnan(a) or math.isnan(b):
        return np.nan
    if b <= a:
        return -np.inf
    root = math.sqrt(nu)
    a, b = a / root, b / root
    if a >= 0.0:
        return _one_sided_interval(nu, a, b)
    if b <= 0.0:
        return _one_sided_interval(nu, -b, -a)
    outside = 0.0
    if b < np.inf:
        outside += math.exp(_log_upper(nu, math.asinh(b)))
    if a > -np.inf:
        outside += math.exp(_log_upper(nu, math.asinh(-a)))
    # both tails are small numbers that keep their digits
    if outside < 0.5:
        return math.log1p(-outside)
    return logaddexp(_one_sided_interval(nu, 0.0, b), _one_sided_interval(nu, 0.0, -a))


@kernel
def log_lost_student(nu, lo, hi, mean, scale):
    """Return log P(lo < mean + scale T < hi) where `is_lost` holds; never -inf. The density is that of the middle."""
    middle = (0.5 * lo + 0.5 * hi - mean) / scale
    log_density = log_student_level(nu) - (nu + 1.0) * math.log(math.hypot(1.0, middle / math.sqrt(nu)))
    return log_density + math.log(max((hi - lo) / scale, _SMALLEST))


@kernel
def _lower_quantile(nu, log_p):
    """Return t <= 0 with log P(T <= t) = log_p <= log(1 / 2); Newton's steps on a concave function of v."""
    if log_p == -np.inf:
        return -np.inf
    normaliser = log_beta(0.5 * nu, 0.5)
    v = 0.0
    for _ in range(_N_NEWTON):
        tail = _log_upper(nu, v)
        log_cosh = math.log(math.cosh(v)) if v < _STRAIGHT else v - _LOG_2
        # Newton on log P(T > t), concave in v: the first step passes the solution, the others come back from there
        step = (tail - log_p) * math.exp(min(tail + nu * log_cosh + normaliser, 700.0))
        v = max(v + step, 0.0)
        if abs(step) <= 1e-15 * v or abs(step) <= 1e-17:
            break
    return -math.sqrt(nu) * math.sinh(v)


@kernel
def _quantile_between(nu, a, b, u):
    """Return the u-quantile between a and b where a + b <= 0."""
    log_mass = log_student_interval(nu, a, b)
    if log_mass == -np.inf or u >= 1.0:
        return b
    if u <= 0.0:
        return a
    log_below = logaddexp(log_student_cdf(nu, a), math.log(u) + log_mass)
    if log_below <= -_LOG_2:
        # whichever tail is smaller has the digits
        x = _lower_quantile(nu, log_below)
    else:
        log_above = logaddexp(log_student_cdf(nu, -b), math.log1p(-u) + log_mass)
        x = -_lower_quantile(nu, min(log_above, -_LOG_2))
    return min(max(x, a), b)


@apart
@kernel
def student_quantile_between(nu, a, b, u):
    """Return the u-quantile of a standard t variable given that it lies in [a, b].

    Never outside [a, b]; where the interval is beyond the reach of floating point, its end nearest to 0. NaN where
    a > b, nu is not positive and finite, or an argument is NaN.
    """
    if not (a <= b and 0.0 <= u <= 1.0 and 0.0 < nu < np.inf):
        return np.nan
    if a == b:
        return a
    if a > -b:
        return -_quantile_between(nu, -b, -a, 1.0 - u)
    return _quantile_between(nu, a, b, u)


@kernel
def _power_integral(power, width):
    """Return the integral of exp(power s) over s from 0 to width, which may be infinite."""
    if width == np.inf:
        return -1.0 / power if power < 0.0 else np.inf
    if power == 0.0:
        return width
    return math.expm1(power * width) / power


@kernel
def _moments_from_end(nu, a, b):
    """Return (mean, variance) of (T - sqrt(nu) a) / sqrt(nu + nu a^2) given sqrt(nu) a < T < sqrt(nu) b, 0 <= a < b.

    Panels of a quadrature over the step s = v - asinh(a), where T - sqrt(nu) a is a multiple of
    sinh(s) + tanh(v) (cosh(s) - 1); beyond `_STRAIGHT` only exponentials are left, with integrals in closed form.
    """
    slope = math.tanh(math.asinh(a))
    width = _width(a, b) if b < np.inf else np.inf
    end = min(width, _STRAIGHT)
    total = 0.0
    first = 0.0
    second = 0.0
    start = 0.0
    while start < end:
        # tanh at the panel's start: the fall along the panel is about steepness h + nu h^2 / 2, solved for _FALL
        steepness = nu * math.tanh(math.atanh(min(slope, 1.0 - 1e-16)) + start)
        panel = 2.0 * _FALL / (steepness + math.sqrt(steepness * steepness + 2.0 * _FALL * nu))
        panel = min(panel, _PANEL, end - start)
        before = second
        for i in range(NODES.size):
            step = start + 0.5 * panel * (1.0 + NODES[i])
            half = math.sinh(0.5 * step)
            offset = math.sinh(step) + slope * 2.0 * half * half
            density = 0.5 * panel * WEIGHTS[i] * math.exp(-_fall(nu, slope, step))
            if density == 0.0:
                continue
            total += density
            first += density * offset
            second += density * offset * offset
        start = start + panel if panel < end - start else end
        # nothing comes any more, and the closed form beyond would add nothing
        if second - before <= 1e-18 * second:
            end = start
            width = start
    if width > end:
        # beyond end: cosh(v) = share exp(s) cosh(asinh(a)), and the offset is share exp(s) - slope
        share = 0.5 * (1.0 + slope)
        density = math.exp(-nu * (math.log(share) + end))
        rest = width - end
        grown = share * math.exp(end)
        flat = _power_integral(-nu, rest)
        linear = grown * _power_integral(1.0 - nu, rest)
        total += density * flat
        first += density * (linear - slope * flat)
        square = grown * grown * _power_integral(2.0 - nu, rest)
        second += density * (square - 2.0 * slope * linear + slope * slope * flat) if square < np.inf else np.inf
    mean = first / total
    return mean, (max(second / total - mean * mean, 0.0) if second < np.inf else np.inf)


@apart
@kernel
def student_moments_between(nu, a, b):
    """Return (end, offset, variance) of a standard t variable given that it lies in [a, b], where a < b.

    The mean is the lower end plus `offset` where end = -1, the upper end plus `offset` where end = 1, and `offset`
    itself where end = 0: so a caller in other units starts from its own exact end. Infinite where they do not exist,
    which is where an end is infinite and nu <= 1 (mean) or nu <= 2 (variance); the mean over the whole line too.
    """
    root = math.sqrt(nu)
    if a == -np.inf and b == np.inf:
        return 0, (0.0 if nu > 1.0 else np.inf), (nu / (nu - 2.0) if nu > 2.0 else np.inf)
    if a >= 0.0 or b <= 0.0:
        near, far = (a / root, b / root) if a >= 0.0 else (-b / root, -a / root)
        mean, variance = _moments_from_end(nu, near, far)
        unit = root * math.hypot(1.0, near)
        return (-1, unit * mean, unit * unit * variance) if a >= 0.0 else (1, -unit * mean, unit * unit * variance)
    log_mass = log_student_interval(nu, a, b)
    below, spread_below = _moments_from_end(nu, 0.0, -a / root)
    above, spread_above = _moments_from_end(nu, 0.0, b / root)
    share = math.exp(log_student_interval(nu, 0.0, b) - log_mass)
    mean = share * above - (1.0 - share) * below
    spread = share * spread_above + (1.0 - share) * spread_below
    if spread == np.inf or math.isinf(mean):
        return 0, root * mean, np.inf
    # variance of a mixture: within either half, and between their means
    between = share * (1.0 - share) * (above + below) * (above + below)
    return 0, root * mean, nu * (spread + between)
