"""Random draws that NumPy's generator does not offer inside compiled code, each guarded against bad parameters.

`numpy.random.Generator.gamma` and `beta` never return when a parameter is NaN, so every function here checks first
and answers NaN instead; callers turn that into a status.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.jit import kernel

_SMALLEST = 1e-300
_LEAST_LOG_SHARE = -345.0
_LONGEST_STEP = 700.0
_SMALL = 0.1
"""Below, NumPy's beta tries again and again until a power does not underflow."""


@kernel
def draw_gamma(shape, rate, rng):
    """Return a draw of Gamma(shape, rate), or NaN where the parameters are not positive and finite."""
    if not (shape > 0.0 and rate > 0.0 and shape < np.inf and rate < np.inf):
        return np.nan
    # at small shapes a draw underflows
    return max(rng.standard_gamma(shape) / rate, _SMALLEST)


@kernel
def _log_gamma_draw(a, rng):
    """Return log Gamma(a): log Gamma(a + 1) + log(U) / a (Marsaglia and Tsang, 2000, section 6)."""
    # 1 - U is in (0, 1]: its logarithm is finite
    return math.log(rng.standard_gamma(a + 1.0)) + math.log(1.0 - rng.random()) / a


@kernel
def draw_beta(a, b, rng):
    """Return a draw of Beta(a, b) inside (0, 1), or NaN where the parameters are not positive and finite."""
    if not (a > 0.0 and b > 0.0 and a < np.inf and b < np.inf):
        return np.nan
    if min(a, b) < _SMALL:
        # of gammas in logarithms, of which neither underflows; the exponential of their difference stays finite
        p = 1.0 / (1.0 + math.exp(min(_log_gamma_draw(b, rng) - _log_gamma_draw(a, rng), 700.0)))
    else:
        p = rng.beta(a, b)
    # the largest float below 1
    return min(max(p, _SMALLEST), 1.0 - 1.1102230246251565e-16)


@apart
@kernel
def draw_beta_above(a, b, x, y, rng):
    """Return a draw of Beta(a, b) given that it is at least x, y being 1 - x; NaN where parameters are invalid.

    The plain beta where x is no more than a standard deviation above the mode, in log odds, whose density is
    log-concave; otherwise log odds of x and an exponential beyond it, by the tangent there.
    """
    if not (a > 0.0 and b > 0.0 and a < np.inf and b < np.inf and 0.0 <= x < 1.0 and y > 0.0):
        return np.nan
    # minus the slope of the log density of the log odds at x
    slope, n = b * x - a * y, a + b
    if slope <= math.sqrt(n * x * y):
        while True:
            p = draw_beta(a, b, rng)
            if p >= x:
                return p
    while True:
        step = rng.standard_exponential() / slope
        if step < _LONGEST_STEP:
            fall = n * math.log1p(x * math.expm1(step)) - a * step
            # the tangent lies above the log density, which is concave: accepted by how far
            if math.log(1.0 - rng.random()) <= slope * step - fall:
                return max(min(x / (x + y * math.exp(-step)), 1.0 - 1.1102230246251565e-16), x)


@kernel
def draw_gamma_above(shape, rate, lower, rng):
    """Return a draw of Gamma(shape, rate) given that it is at least `lower`; NaN where parameters are invalid.

    The plain gamma where `lower` is no more than a standard deviation above the mean; otherwise an exponential beyond
    it, by the tangent of the log density there (log-concave for shape > 1), or for a smaller shape by the rate, than
    which the density falls faster.
    """
    if not (shape > 0.0 and rate > 0.0 and shape < np.inf and rate < np.inf and 0.0 <= lower < np.inf):
        return np.nan
    if lower == 0.0:
        return draw_gamma(shape, rate, rng)
    if shape >= 1.0 and rate * lower <= shape + math.sqrt(shape):
        while True:
            x = rng.standard_gamma(shape) / rate
            if x >= lower:
                return x
    slope = max(shape - 1.0, 0.0) / lower
    while True:
        # positive: beyond the mean the slope (shape - 1) / lower is less than the rate
        step = rng.standard_exponential() / (rate - slope)
        if math.log(1.0 - rng.random()) <= (shape - 1.0) * math.log1p(step / lower) - slope * step:
            return lower + step


@apart
@kernel
def draw_gamma_below(shape, rate, upper, rng):
    """Return a draw of Gamma(shape, rate) given that it is at most `upper`; NaN where parameters are invalid.

    Three rejection samplers, each used where it accepts often: a power law when rate * upper < 1; the plain gamma when
    its mode lies below `upper`, or above it by less than half a standard deviation of the curvature there; otherwise
    the tangent of the log density at `upper` (the density is log-concave for shape > 1).
    """
    if not (shape > 0.0 and rate > 0.0 and shape < np.inf and rate < np.inf and upper > 0.0):
        return np.nan
    if upper == np.inf:
        return draw_gamma(shape, rate, rng)
    if rate * upper < 1.0:
        while True:
            # x^(shape - 1) below `upper`, thinned by exp(-rate x), which is at least 1 / e
            x = upper * rng.random() ** (1.0 / shape)
            if rng.random() <= math.exp(-rate * x):
                return max(x, _SMALLEST)
    slope = (shape - 1.0) / upper - rate
    if slope <= 0.0 or slope * upper < 0.5 * math.sqrt(shape - 1.0):
        while True:
            x = rng.standard_gamma(shape) / rate
            if x <= upper:
                return max(x, _SMALLEST)
    while True:
        step = rng.standard_exponential() / slope
        if step < upper:
            log_ratio = (shape - 1.0) * math.log1p(-step / upper) + rate * step
            if math.log(1.0 - rng.random()) <= log_ratio + slope * step:
                return max(upper - step, _SMALLEST)


@kernel
def _are_valid(concentration):
    valid = True
    for i in range(concentration.size):
        valid &= 0.0 < concentration[i] < np.inf
    return valid


@kernel
def draw_log_dirichlet(concentration, out, rng):
    """Fill `out` with the logarithm of a Dirichlet draw, without underflow at small concentrations.

    Returns
    -------
    bool
        False where a concentration is not positive and finite; `out` is then as it was.
    """
    n = concentration.size
    if not _are_valid(concentration):
        return False
    top = -np.inf
    for i in range(n):
        g = _log_gamma_draw(concentration[i], rng)
        out[i] = g
        top = max(top, g)
    total = 0.0
    for i in range(n):
        total += math.exp(out[i] - top)
    shift = top + math.log(total)
    for i in range(n):
        out[i] -= shift
    return True


@apart
@kernel
def draw_dirichlet(concentration, out, rng):
    """Fill `out` with a Dirichlet draw, every entry at least 1e-300.

    Returns
    -------
    bool
        False where a concentration is not positive and finite; `out` is then as it was.
    """
    if not draw_log_dirichlet(concentration, out, rng):
        return False
    total = 0.0
    for k in range(out.size):
        out[k] = max(math.exp(out[k]), _SMALLEST)
        total += out[k]
    for k in range(out.size):
        # the total is a little above 1 where entries were raised: the quotient may be below again
        out[k] = max(out[k] / total, _SMALLEST)
    return True


@apart
@kernel
def draw_dirichlet_inside(prior, count, inside, out, rng):
    """Fill `out` with a Dirichlet draw given counts of what lies inside a set, of which it is known that it does.

    The shares inside, relative to each other, are those given prior and counts; the set's own share and the shares
    outside are the prior's, independent of them (neutrality). All in logarithms: at small concentrations a set may have
    a share that underflows. The largest entry inside is at least 1e-150, so that those inside keep their ratios.

    Returns
    -------
    bool
        False where a concentration is not positive and finite; `out` is then as it was.
    """
    log_out, log_in = np.empty(out.size), np.empty(out.size)
    if not (draw_log_dirichlet(prior, log_out, rng) and draw_log_dirichlet(prior + count, log_in, rng)):
        return False
    top_out, top_in = -np.inf, -np.inf
    for k in range(out.size):
        if inside[k]:
            top_out, top_in = max(top_out, log_out[k]), max(top_in, log_in[k])
    share_out, share_in = 0.0, 0.0
    for k in range(out.size):
        if inside[k]:
            share_out += math.exp(log_out[k] - top_out)
            share_in += math.exp(log_in[k] - top_in)
    level = max(top_out + math.log(share_out / share_in), _LEAST_LOG_SHARE)
    for k in range(out.size):
        out[k] = max(math.exp(log_in[k] - top_in + level if inside[k] else log_out[k]), _SMALLEST)
    return True
