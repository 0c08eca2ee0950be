"""Quantiles of a mixture of components: the smallest value whose cumulative probability reaches q.

      F   1 |              ______      q above: a value inside a continuous part, bracketed and closed in upon
            |        _____/            q at a flat part: its left end
          q |.......|                  q inside a jump: the jump itself
            |______/

The bracket (lo, hi] always satisfies F(lo) < q <= F(hi); in the upper half both sides are compared by what is left
above, so that no digits are lost there. ITP steps (interpolate, truncate, project) shorten it as fast as the secant
where F is smooth, and never slower than bisection.

Reference: Oliveira and Takahashi (2020), An enhancement of the bisection method average performance preserving minmax
optimality.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.mixture import component_log_mass, mixture_cdf, mixture_tail
from bayesjpt.numerics.jit import kernel

_TOLERANCE = 1e-9
_FARTHEST = 1e100
_SLACK = 2.0**-44  # so that the shares of a fair coin reach one half whatever their rounding


@kernel
def _has_mass_below(components, const, theta, share, first, last, x):
    """Return whether some component has mass in (-inf, x], however little."""
    for p in range(first, last):
        if share[p] == 0.0 or x < components.lower[p]:
            continue
        if (
            x >= components.upper[p]
            or component_log_mass(components, const, theta, p, components.lower[p], x) > -np.inf
        ):
            return True
    return False


@kernel
def _has_mass_above(components, const, theta, share, first, last, x):
    """Return whether some component has mass in [x, inf), however little."""
    for p in range(first, last):
        if share[p] == 0.0 or x > components.upper[p]:
            continue
        if (
            x <= components.lower[p]
            or component_log_mass(components, const, theta, p, x, components.upper[p]) > -np.inf
        ):
            return True
    return False


@kernel
def _support_end(components, const, theta, share, target, above):
    """Return the lower end of a mixture's support, or the upper one; infinite where no bound is in sight.

    Bisection for the last value beyond which nothing lies; then the end of a component, or 0, if one is that close.
    """
    first, last = components.ptr[target], components.ptr[target + 1]
    location, scale = components.location[target], components.scale[target]
    sign = 1.0 if above else -1.0
    inside, outside = location - sign * _FARTHEST * scale, location + sign * _FARTHEST * scale
    x = outside
    # 1e-15 of the value is a few units of its last place: floats are hardly closer
    while abs(outside - inside) > max(_TOLERANCE * scale, 1e-15 * abs(inside)):
        if above:
            has_mass = _has_mass_above(components, const, theta, share, first, last, x)
        else:
            has_mass = _has_mass_below(components, const, theta, share, first, last, x)
        if has_mass and x == outside:
            return sign * np.inf
        if has_mass:
            inside = x
        else:
            outside = x
        x = inside + 0.5 * (outside - inside)
    if components.counts[target]:
        return np.rint(inside)
    for p in range(first, last):
        end = components.upper[p] if above else components.lower[p]
        if share[p] > 0.0 and abs(end - inside) <= 2.0 * _TOLERANCE * scale:
            return end
    return 0.0 if abs(inside) <= 2.0 * _TOLERANCE * scale else inside


@kernel
def _excess(components, const, theta, held, share, target, level, x):
    """Return how far the cumulative probability at x is above the wanted one; below 0 where it is not reached.

    `level` is the pair of what is to lie at or below the quantile and, in the upper half, of what may lie above it; the
    other one is 0.
    """
    below, above = level
    if above == 0.0:
        return mixture_cdf(components, const, theta, held, share, target, x) - below
    return above - mixture_tail(components, const, theta, held, share, target, x)


@kernel
def _bracket(components, const, theta, held, share, target, level):
    """Return (lo, hi) that holds the quantile, by doubling steps from the column's location."""
    start, step = components.location[target], components.scale[target]
    farthest = _FARTHEST * step
    if components.counts[target]:
        start, step = np.rint(start), max(np.rint(step), 1.0)
    # the first step goes to the side on which the quantile lies
    lo = hi = start
    if _excess(components, const, theta, held, share, target, level, start) >= 0.0:
        while step < farthest:
            lo = hi - step
            if _excess(components, const, theta, held, share, target, level, lo) < 0.0:
                return lo, hi
            hi = lo
            step *= 2.0
        return -np.inf, hi
    while step < farthest:
        hi = lo + step
        if _excess(components, const, theta, held, share, target, level, hi) >= 0.0:
            return lo, hi
        lo = hi
        step *= 2.0
    return lo, np.inf


@kernel
def _between_jumps(components, const, theta, held, share, target, level, bracket):
    """Return the part of a bracket between two jumps that holds the quantile; a bracket of width 0 is a jump itself."""
    lo, hi = bracket
    for j in range(components.jump_ptr[target], components.jump_ptr[target + 1]):
        x = components.jump[j]
        # the bracket is open on the left: a jump at lo has been counted already
        if not lo < x <= hi:
            continue
        if _excess(components, const, theta, held, share, target, level, x) < 0.0:
            lo = x
            continue
        # what is reached just before the jump tells whether the jump itself is the answer
        before = np.nextafter(x, -np.inf)
        if before <= lo or _excess(components, const, theta, held, share, target, level, before) < 0.0:
            return x, x
        return lo, before
    return lo, hi


@kernel
def _integer_quantile(components, const, theta, held, share, target, level, bracket):
    lo, hi = bracket
    while hi - lo > 1.0:
        middle = np.floor(0.5 * (lo + hi))
        # neighbouring floats above 2^53 are more than 1 apart: nothing is left between them
        if middle <= lo or middle >= hi:
            break
        if _excess(components, const, theta, held, share, target, level, middle) >= 0.0:
            hi = middle
        else:
            lo = middle
    return hi


@kernel
def _real_quantile(components, const, theta, held, share, target, level, bracket):
    lo, hi = bracket
    tolerance = 0.5 * max(_TOLERANCE * components.scale[target], 2.0**-50 * max(abs(lo), abs(hi)))
    below = _excess(components, const, theta, held, share, target, level, lo)
    above = _excess(components, const, theta, held, share, target, level, hi)
    width = hi - lo
    # one step more than bisection would take: the slack that lets the first steps be secants
    reserve = tolerance * 2.0 ** (math.ceil(math.log2(max(width / (2.0 * tolerance), 1.0))) + 1.0)
    while hi - lo > 2.0 * tolerance:
        middle = 0.5 * (lo + hi)
        # below < 0 <= above, so the denominator is never 0
        secant = (hi * below - lo * above) / (below - above)
        # Oliveira and Takahashi (2020): kappa_1 = 0.2 / width, kappa_2 = 2
        step = 0.2 / width * (hi - lo) * (hi - lo)
        direction = 1.0 if middle >= secant else -1.0
        x = secant + direction * step if step <= abs(middle - secant) else middle
        # projected so far that bisection's bound on the number of steps still holds
        radius = reserve - 0.5 * (hi - lo)
        # negated: a secant that is NaN falls back as well
        if not abs(x - middle) <= radius:
            x = middle - direction * radius
        if not lo < x < hi:
            x = middle
            if not lo < x < hi:
                break
        value = _excess(components, const, theta, held, share, target, level, x)
        if value >= 0.0:
            hi, above = x, value
        else:
            lo, below = x, value
        reserve *= 0.5
    return hi


@kernel
def mixture_quantile(components, const, theta, held, share, target, q):
    """Return the smallest value of a column with cumulative probability of at least q, in the user's units.

    Parameters
    ----------
    components : Components
    const : float64 (n_const,)
    theta : float64 (n_theta,)
    held : float64 (n_component, 3)
        What is known of the components: see `mixture_cdf`.
    share : float64 (n_component,)
        Shares of all components; those of one column are normalised here.
    target : int
        Number of the column among those of `components`.
    q : float
        At or below 0 the lower end of the support, at or above 1 the upper end.

    Returns
    -------
    float
        Within 1e-9 of the column's scale; NaN where every share is 0. Integers and jumps are exact.
    """
    total = 0.0
    for p in range(components.ptr[target], components.ptr[target + 1]):
        total += share[p]
    if not total > 0.0 or math.isnan(q):
        return np.nan
    if q <= 0.0 or q >= 1.0:
        return _support_end(components, const, theta, share, target, q >= 1.0)
    # the slack lets a level be reached a little earlier, whichever half it is in
    level = (q * total * (1.0 - _SLACK), 0.0) if q <= 0.5 else (0.0, (1.0 - q) * total * (1.0 + _SLACK))
    bracket = _bracket(components, const, theta, held, share, target, level)
    if not math.isfinite(bracket[0]) or not math.isfinite(bracket[1]):
        return bracket[0] if math.isinf(bracket[0]) else bracket[1]
    if components.counts[target]:
        return _integer_quantile(components, const, theta, held, share, target, level, bracket)
    bracket = _between_jumps(components, const, theta, held, share, target, level, bracket)
    if bracket[0] == bracket[1]:
        return bracket[1]
    return _real_quantile(components, const, theta, held, share, target, level, bracket)
