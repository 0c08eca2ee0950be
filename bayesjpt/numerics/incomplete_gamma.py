"""The regularised incomplete gamma functions P (lower) and Q (upper) in logarithms, with intervals and quantiles.

The smaller of P and Q is computed directly and the other from it:

    a >= 100, x within 30 % of a    uniform asymptotic expansion (Temme)
    a < 1/2, x < 1                  series of Q, which is small where a is
    x < a + 1                       series of P
    otherwise                       continued fraction of Q

References: Gautschi (1979), A computational procedure for incomplete gamma functions; Temme (1979), The asymptotic
expansion of the incomplete gamma functions; NIST Digital Library of Mathematical Functions, sections 8.11 and 8.12.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.cancellation import expm1_minus, log1mexp, log1p_minus, logaddexp
from bayesjpt.numerics.gaussian import mills_ratio, normal_quantile
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.quadrature import FEW_NODES, FEW_WEIGHTS, NODES, WEIGHTS, is_slight

_HALF_LOG_2PI = 0.9189385332046727
_ONE_MINUS_EULER = 0.4227843350984671
_ROUNDING = 1e-17
_N_TERM = 5000
_TEMME_FROM = 100.0
_TEMME_WITHIN = 0.3
_SMALLEST = 1e-300
_LOG_SMALLEST = -690.7755278982137
_N_BISECTION = 200
_MOST_CANCELLED = 8.0


def _temme_table(n_order: int, n_power: int) -> np.ndarray:
    """Return d[k, n] of DLMF 8.12.12: the correction's coefficient of a^-k eta^n, float64 (n_order, n_power)."""
    n_alpha = n_power + 2 * n_order + 2
    alpha = [Fraction(0), Fraction(1)]  # x / a - 1 as a power series in eta: (mu^2)' / 2 = eta (1 + mu)
    for m in range(3, n_alpha + 2):
        convolution = sum(alpha[i] * alpha[m - i] for i in range(2, m - 1))
        alpha.append((alpha[m - 2] * Fraction(2, m) - convolution) / 2)
    exponent = {1: Fraction(1, 12), 3: Fraction(-1, 360), 5: Fraction(1, 1260), 7: Fraction(-1, 1680)}
    stirling = [Fraction(1)]  # Gamma(a) in units of its Stirling formula, in powers of 1 / a
    for k in range(1, n_order):
        stirling.append(sum((j * c * stirling[k - j] for j, c in exponent.items() if j <= k), Fraction(0)) / k)
    first = [Fraction(-1, 3)] + [(n + 2) * alpha[n + 2] for n in range(1, n_alpha - 2)]
    row = first
    table = np.empty((n_order, n_power))
    for k in range(n_order):
        if k > 0:
            row = [(-1) ** k * stirling[k] * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
        table[k] = [float(value) for value in row[:n_power]]
    return table


def _zeta_minus_one(k: int) -> float:
    """Return zeta(k) - 1 by Euler and Maclaurin's formula from 200 terms."""
    n = 200.0
    head = math.fsum(i**-k for i in range(2, 200))
    tail = n ** (1 - k) / (k - 1) + n**-k / 2 + k * n ** (-k - 1) / 12
    return head + tail - k * (k + 1) * (k + 2) * n ** (-k - 3) / 720


_TEMME = _temme_table(6, 18)
_ZETA = np.array([_zeta_minus_one(k) for k in range(2, 32)])


@kernel
def stirling_error(a):
    """Return log Gamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2) for a > 0."""
    # below 10 the series of 1 / a has too few digits, and the difference still has them all
    if a < 10.0:
        return math.lgamma(a) - ((a - 0.5) * math.log(a) - a + _HALF_LOG_2PI)
    s = 1.0 / (a * a)
    tail = 1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360 - s / 156)))
    return (1.0 / 12 - s * (1.0 / 360 - s * tail)) / a


@kernel
def log_poisson_mass(k, x):
    """Return k log x - x - log Gamma(k + 1) for real k >= 0 and x > 0, without cancellation at large k."""
    if k < 10.0:
        return k * math.log(x) - x - math.lgamma(k + 1.0)
    # near x = k the three large terms cancel to k (log(1 + d) - d) with d = (x - k) / k
    exponent = k * log1p_minus((x - k) / k) if 0.6 * k < x < 1.4 * k else k * math.log(x / k) + (k - x)
    return exponent - 0.5 * math.log(k) - _HALF_LOG_2PI - stirling_error(k)


@kernel
def log_gamma_1p(a):
    """Return log Gamma(1 + a) for 0 < a <= 1/2, to full relative precision at small a."""
    total = 0.0
    power = a
    for i in range(_ZETA.size):
        power *= -a
        total -= power * _ZETA[i] / (i + 2.0)
    return a * _ONE_MINUS_EULER - math.log1p(a) + total


@kernel
def _lower_series(a, x):
    """Return the sum of x^n / ((a + 1) ... (a + n)) over n >= 0."""
    total = 1.0
    term = 1.0
    for n in range(1, _N_TERM):
        term *= x / (a + n)
        total += term
        if term <= total * _ROUNDING:
            break
    return total


@kernel
def _upper_series(a, x):
    """Return Q(a, x) for a < 1/2 and x < 1."""
    # Q = 1 - x^a / Gamma(1 + a) (1 + a sum): the leading 1 is taken off by expm1
    exponent = a * math.log(x) - log_gamma_1p(a)
    total = 0.0
    power = 1.0
    for n in range(1, _N_TERM):
        power *= -x / n
        term = power / (a + n)
        total += term
        if abs(term) <= abs(total) * _ROUNDING:
            break
    return -math.expm1(exponent) - math.exp(exponent) * a * total


@kernel
def _upper_fraction(a, x):
    """Return Q(a, x) Gamma(a) exp(x) / x^a by the continued fraction, evaluated as Lentz did."""
    b = x + 1.0 - a
    # Lentz's start: c is huge, so that the first c is b alone
    c = 1e300
    d = 1.0 / b
    value = d
    for n in range(1, _N_TERM):
        numerator = n * (a - n)
        b += 2.0
        d = 1.0 / (numerator * d + b)
        c = b + numerator / c
        factor = c * d
        value *= factor
        if abs(factor - 1.0) <= 2e-16:
            break
    return value


@kernel
def _temme_sum(a, eta):
    """Return the correction of the normal approximation, in units of phi / sqrt(a)."""
    total = 0.0
    for k in range(_TEMME.shape[0] - 1, -1, -1):
        row = 0.0
        for n in range(_TEMME.shape[1] - 1, -1, -1):
            row = row * eta + _TEMME[k, n]
        total = total / a + row
    return total


@apart
@kernel
def _log_tails(a, x):
    """Return (log P(a, x), log Q(a, x))."""
    if not (0.0 < a < np.inf) or math.isnan(x):
        return np.nan, np.nan
    if x <= 0.0:
        return -np.inf, 0.0
    if x == np.inf:
        return 0.0, -np.inf
    if a < 0.5 and x < 1.0:
        upper = _upper_series(a, x)
        if upper < 0.5:
            return math.log1p(-upper), math.log(upper)
        return log_poisson_mass(a, x) + math.log(_lower_series(a, x)), math.log(upper)
    if a >= _TEMME_FROM and abs(x - a) <= _TEMME_WITHIN * a:
        # -deviate^2 / 2, the exponent of the normal approximation
        exponent = a * log1p_minus((x - a) / a)
        deviate = math.sqrt(-2.0 * exponent)
        root = math.sqrt(a)
        if x < a:
            lower = exponent - _HALF_LOG_2PI
            # tail of the normal over its density, and Temme's correction in the same units
            lower += math.log(mills_ratio(deviate) - _temme_sum(a, -deviate / root) / root)
            return lower, log1mexp(-lower)
        upper = exponent - _HALF_LOG_2PI + math.log(mills_ratio(deviate) + _temme_sum(a, deviate / root) / root)
        return log1mexp(-upper), upper
    if x < a + 1.0 and a >= 0.5:
        lower = log_poisson_mass(a, x) + math.log(_lower_series(a, x))
        return lower, log1mexp(-lower)
    upper = log_poisson_mass(a, x) + math.log(a * _upper_fraction(a, x))
    return log1mexp(-upper), upper


@kernel
def log_gamma_p(a, x):
    """Return log P(a, x), the log probability that a Gamma(a, 1) variable is at most x; NaN unless a > 0."""
    return _log_tails(a, x)[0]


@kernel
def log_gamma_q(a, x):
    """Return log Q(a, x), the log probability that a Gamma(a, 1) variable exceeds x; NaN unless a > 0."""
    return _log_tails(a, x)[1]


@kernel
def gamma_p(a, x):
    """Return P(a, x), the probability that a Gamma(a, 1) variable is at most x; NaN unless a > 0."""
    return math.exp(_log_tails(a, x)[0])


@kernel
def _log_middle(lo, hi):
    """Return (centre, middle, half): log(x / centre) for x from lo to hi is middle - half to middle + half.

    To its last digits where the ends are close, whatever the centre's own rounding.
    """
    if hi > 2.0 * lo:
        half = 0.5 * (math.log(hi) - math.log(lo))
        return lo * math.exp(half), 0.0, half
    centre = 0.5 * (lo + hi)
    below, above = math.log1p((lo - centre) / centre), math.log1p((hi - centre) / centre)
    return centre, 0.5 * (above + below), 0.5 * (above - below)


@apart
@kernel
def log_gamma_interval(a, lo, hi):
    """Return log(P(a, hi) - P(a, lo)) without cancellation; -inf where hi <= lo, NaN where an end is NaN.

    A cell of recorded values, and any interval that holds less than a fifth of the nearer tail, is integrated by
    quadrature: the density of log x.
    """
    if math.isnan(lo) or math.isnan(hi):
        return np.nan
    if hi <= lo or hi <= 0.0:
        return -np.inf
    if lo > 0.0 and hi <= 1.5 * lo and 0.0 < a < np.inf:
        centre, middle, half = _log_middle(lo, hi)
        if is_slight(half * (abs(a - centre) + half * centre), half * half * centre):
            total = 0.0
            for i in range(FEW_NODES.size):
                t = middle + half * FEW_NODES[i]
                total += FEW_WEIGHTS[i] * math.exp((a - centre) * t - centre * expm1_minus(t))
            return log_poisson_mass(a, centre) + math.log(a * half * total)
    lower_hi, upper_hi = _log_tails(a, hi)
    if lo <= 0.0:
        return lower_hi
    lower_lo, upper_lo = _log_tails(a, lo)
    # below the median the lower tails have the digits, above it the upper ones
    if lower_hi < upper_lo:
        larger, smaller = lower_hi, lower_lo
    else:
        larger, smaller = upper_lo, upper_hi
    if larger == -np.inf:
        return -np.inf
    # a difference of tails that loses at most two bits; closer ones are integrated
    if larger - smaller > 0.25:
        return larger + log1mexp(larger - smaller)
    centre, middle, half = _log_middle(lo, hi)
    total = 0.0
    for i in range(NODES.size):
        t = middle + half * NODES[i]
        total += WEIGHTS[i] * math.exp((a - centre) * t - centre * expm1_minus(t))
    return log_poisson_mass(a, centre) + math.log(a) + math.log(half * total)


@apart
@kernel
def gamma_mean_between(a, lo, hi):
    """Return the mean of a Gamma(a, 1) variable given that it lies in [lo, hi]; NaN where that is out of reach.

    From the density at the ends, E = a (1 + (d(lo) - d(hi)) / mass) with d(x) = x^a exp(-x) / Gamma(a + 1); where these
    terms nearly cancel, by the mass under Gamma(a + 1, 1), and on a cell of recorded values by one quadrature.
    """
    if lo > 0.0 and lo < hi <= 1.5 * lo and 0.0 < a < np.inf:
        centre, middle, half = _log_middle(lo, hi)
        if is_slight(half * (abs(a - centre) + 1.0 + half * centre), half * half * centre):
            total = 0.0
            first = 0.0
            for i in range(FEW_NODES.size):
                t = middle + half * FEW_NODES[i]
                growth = math.expm1(t)
                density = FEW_WEIGHTS[i] * math.exp((a - centre) * t - centre * expm1_minus(t))
                total += density
                first += density * growth
            return centre + centre * (first / total)
    log_all = log_gamma_interval(a, lo, hi)
    if log_all == -np.inf:
        return np.nan
    if hi > 1.5 * lo:
        at_lo = math.exp(log_poisson_mass(a, lo) - log_all) if lo > 0.0 else 0.0
        at_hi = math.exp(log_poisson_mass(a, hi) - log_all) if hi < np.inf else 0.0
        # few digits cancel: the mass was computed once, and two densities are cheap
        if 1.0 + at_lo + at_hi < _MOST_CANCELLED * (1.0 + at_lo - at_hi):
            return a * (1.0 + at_lo - at_hi)
    return a * math.exp(log_gamma_interval(a + 1.0, lo, hi) - log_all)


@kernel
def _quantile_guess(a, log_p, log_q):
    """Return a first guess of log x with P(a, x) = p: Wilson and Hilferty's, or the power law of the lower tail."""
    # near 0, P(a, x) is about x^a / Gamma(a + 1)
    power_law = (log_p + math.lgamma(a + 1.0)) / a
    deviate = normal_quantile(math.exp(log_p)) if log_p < log_q else -normal_quantile(math.exp(log_q))
    # the cube root of a gamma variable over its mean is nearly normal
    root = 1.0 - 1.0 / (9.0 * a) + deviate / (3.0 * math.sqrt(a))
    if a < 0.5 or not 0.3 < root < np.inf:
        if log_p < log_q:
            return min(power_law, math.log(a + 1.0))
        return math.log(a + 1.0 - log_q)
    return math.log(a) + 3.0 * math.log(root)


@apart
@kernel
def gamma_quantile_between(a, lo, hi, u):
    """Return the u-quantile of a Gamma(a, 1) variable given that it lies in [lo, hi].

    Newton's steps for log P or log Q, whichever is smaller, as a function of log x, kept inside a shrinking bracket.
    Never outside [lo, hi], and at least 1e-300 where that lies inside; where the interval is beyond the reach of
    floating point, its end nearest to the mode. NaN where lo > hi or a is not positive and finite.
    """
    if not (lo <= hi and 0.0 <= u <= 1.0 and 0.0 < a < np.inf):
        return np.nan
    lo = max(lo, 0.0)
    if hi <= lo:
        return hi
    log_mass = log_gamma_interval(a, lo, hi)
    if log_mass == -np.inf:
        return min(max(a - 1.0, lo), hi)
    if u == 0.0 or u == 1.0:
        return lo if u == 0.0 else hi
    log_p = min(logaddexp(log_gamma_p(a, lo), math.log(u) + log_mass), 0.0)
    log_q = min(logaddexp(log_gamma_q(a, hi), math.log1p(-u) + log_mass), 0.0)
    # the logarithm of the smaller tail is steep and keeps its digits
    lower_side = log_p < log_q
    left = math.log(lo) if lo > _SMALLEST else _LOG_SMALLEST
    right = math.log(hi) if hi < np.inf else math.log(a + 1.0 + 10.0 * math.sqrt(a)) + math.log(1.0 - log_q)
    if right <= left:
        return min(max(_SMALLEST, lo), hi)
    t = min(max(_quantile_guess(a, log_p, log_q), left), right)
    for _ in range(_N_BISECTION):
        x = math.exp(t)
        lower, upper = _log_tails(a, x)
        excess = lower - log_p if lower_side else log_q - upper
        if excess > 0.0:
            right = t
        else:
            left = t
        tail = lower if lower_side else upper
        slope = math.exp(min(log_poisson_mass(a, x) + math.log(a) - tail, 700.0))
        step = -excess / slope if slope > 0.0 else np.inf
        if not left <= t + step <= right:
            step = 0.5 * (left + right) - t
        t += step
        if abs(step) <= 1e-15 * max(1.0, abs(t)):
            break
    return min(max(math.exp(t), lo), hi)
