"""Answers about intervals under a spline leaf: mass, moments, mode and samples, bin by bin, then the two tails.

On whole numbers an interval stands for the cells of those inside: their masses are integrals of the density, their
moments and mode those of the masses. See `bayesjpt.families.spline`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from bayesjpt.families.simplex import SMALLEST
from bayesjpt.families.spline_basis import bernstein_moments, restrict, rounded_moments
from bayesjpt.families.spline_layout import (
    BREAKS,
    HIGH,
    LOW,
    N_BIN,
    ORDER,
    SIGMA,
    STEP,
    breaks_of,
    has_lower_tail,
    has_upper_tail,
    log_tail_level,
    log_tail_mass,
    masses_of_values,
    ordinates_of,
    tail_reach,
)
from bayesjpt.numerics.apart import apart_until_called
from bayesjpt.numerics.cancellation import logaddexp
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.tilted import tilted_mean, tilted_variance

_LEAST_SUM = 1e-290
_N_BISECTION = 60
_WITH_HALVES = 2.0**52


@kernel
def _cells_between(lo, hi, constants):
    """Return the ends of what carries the mass of lo ... hi: on whole numbers, the cells of those inside."""
    if constants[STEP] > 0.0:
        # halves beside larger whole numbers round to whole ones: there a cell lies on the side of 0
        first, last = np.ceil(lo), np.floor(hi)
        below = first - 0.5 if abs(first) < _WITH_HALVES else first - 1.0 if first > 0.0 else first
        return below, last + 0.5 if abs(last) < _WITH_HALVES else last + 1.0 if last < 0.0 else last
    return lo, hi


@kernel
def _mix(i, theta, ordinates, out):
    """Fill the ordinates of the mixture on bin i."""
    for p in range(out.size):
        out[p] = 0.0
        for r in range(out.size):
            out[p] += theta[i + r] * ordinates[i, r, p]


@kernel
def _overlap(i, lo, hi, breaks):
    """Return the ends of what a bin has of lo ... hi, and those of u; an empty overlap has a >= c."""
    width = breaks[i + 1] - breaks[i]
    a, c = max(lo, breaks[i]), min(hi, breaks[i + 1])
    return a, c, (a - breaks[i]) / width, (c - breaks[i]) / width


@kernel
def _bin_mass(i, lo, hi, theta, basis, mixed):
    """Return the mass that bin i has of lo ... hi; `mixed` is scratch for ordinates."""
    breaks, ordinates = basis
    if lo >= breaks[i + 1] or hi <= breaks[i]:
        return 0.0
    if lo <= breaks[i] and hi >= breaks[i + 1]:
        total = 0.0
        for r in range(mixed.size):
            for p in range(mixed.size):
                total += theta[i + r] * ordinates[i, r, p]
        return (breaks[i + 1] - breaks[i]) * (total / mixed.size)
    a, c, u, v = _overlap(i, lo, hi, breaks)
    _mix(i, theta, ordinates, mixed)
    restrict(mixed, u, v)
    return (c - a) * mixed.mean()


@kernel
def _log_tails(lo, hi, theta, constants):
    """Return the log masses that both tails have of lo ... hi."""
    lower, upper = -np.inf, -np.inf
    breaks, sigma = breaks_of(constants), constants[SIGMA]
    first, last = breaks[0], breaks[-1]
    at = int(constants[ORDER]) + int(constants[N_BIN]) - 1
    if has_lower_tail(constants):
        if lo < first:
            weight = theta[at]
            near, far = max(first - hi, 0.0), first - lo
            lower = math.log(max(weight, SMALLEST)) + log_tail_mass(near, far, tail_reach(0, constants), sigma)
        at += 1
    if has_upper_tail(constants) and hi > last:
        near, far = max(lo - last, 0.0), hi - last
        upper = math.log(max(theta[at], SMALLEST)) + log_tail_mass(near, far, tail_reach(1, constants), sigma)
    return lower, upper


@kernel
def log_mass(lo, hi, theta, constants):
    lo, hi = _cells_between(lo, hi, constants)
    if lo <= constants[LOW] and hi >= constants[HIGH]:
        return 0.0
    if not lo < hi:
        return -np.inf
    mixed, basis = np.empty(int(constants[ORDER])), (breaks_of(constants), ordinates_of(constants))
    inside = 0.0
    for i in range(int(constants[N_BIN])):
        inside += _bin_mass(i, lo, hi, theta, basis, mixed)
    return _log_share(inside, _log_tails(lo, hi, theta, constants), theta)


@kernel
def _log_share(inside, log_tails, weights):
    """Return the log of what bins and tails have together, over all weights; at most 0.

    Gradients of a cell's mass move one weight at a time (`bayesjpt.kernels.gradient`): so the sum is divided by.
    """
    lower, upper = log_tails
    everything = weights.sum()
    total = inside + math.exp(lower) + math.exp(upper)
    if total > _LEAST_SUM:
        return math.log(min(total / everything, 1.0))
    log_inside = math.log(inside) if inside > 0.0 else -np.inf
    return logaddexp(logaddexp(lower, upper), log_inside) - math.log(everything)


@kernel
def fill_log_masses(lo, hi, theta, at, constants, out):
    """Integrate every spline once; a leaf's mass is then a sum of products with its weights."""
    order, n_bin = int(constants[ORDER]), int(constants[N_BIN])
    n_spline = n_bin + order - 1
    n_weight = n_spline + int(has_lower_tail(constants)) + int(has_upper_tail(constants))
    lo, hi = _cells_between(lo, hi, constants)
    if lo <= constants[LOW] and hi >= constants[HIGH]:
        out[:] = 0.0
        return
    if not lo < hi:
        out[:] = -np.inf
        return
    breaks, ordinates = breaks_of(constants), ordinates_of(constants)
    share, part = np.zeros(n_spline), np.empty(order)
    for i in range(n_bin):
        a, c, u, v = _overlap(i, lo, hi, breaks)
        if a < c:
            for r in range(order):
                copy_into(ordinates[i, r], part)
                if u > 0.0 or v < 1.0:
                    restrict(part, u, v)
                share[i + r] += (c - a) * part.mean()
    for j in range(out.size):
        weights = theta[at[j] : at[j] + n_weight]
        inside = 0.0
        for k in range(n_spline):
            inside += weights[k] * share[k]
        out[j] = _log_share(inside, _log_tails(lo, hi, weights, constants), weights)


@kernel
def _inside_below(x, theta, constants):
    """Return the weight of what splines have below x, which lies above the first break.

    Splines that end below the bin of x count whole, so only `order` of them are integrated: over bins below from their
    mean ordinates, and in the bin of x by the integral of B_0 ... B_{q-1} on 0 ... u, sum_{s>=q} binomial(k, s) u^s
    (1 - u)^{k-s} / k, whose terms are all positive. Grids and quantiles ask for it very often: views of `constants` and
    buffers would take five times as long as the sums.
    """
    order, n_bin = int(constants[ORDER]), int(constants[N_BIN])
    ordinates = BREAKS + n_bin + 1
    k = 0
    total = 0.0
    while k < n_bin - 1 and x > constants[BREAKS + k + 1]:
        total += theta[k]
        k += 1
    for i in range(max(k - order + 1, 0), k):
        mass = 0.0
        for r in range(k - i, order):
            for p in range(order):
                mass += theta[i + r] * constants[ordinates + (i * order + r) * order + p]
        total += (constants[BREAKS + i + 1] - constants[BREAKS + i]) * mass / order
    width = constants[BREAKS + k + 1] - constants[BREAKS + k]
    u = min((x - constants[BREAKS + k]) / width, 1.0)
    mass, mixed, binomial, power = 0.0, 0.0, 1.0, 1.0
    for s in range(1, order + 1):
        for r in range(order):
            mixed += theta[k + r] * constants[ordinates + (k * order + r) * order + s - 1]
        binomial *= (order - s + 1.0) / s
        power *= u
        rest = 1.0
        for _ in range(order - s):
            rest *= 1.0 - u
        mass += mixed * binomial * power * rest
    return total + width * mass / order


@kernel
def cdf(x, theta, constants):
    """Add up what lies below, without logarithms."""
    _, x = _cells_between(-np.inf, x, constants)
    if x >= constants[HIGH]:
        return 1.0
    if x <= constants[LOW]:
        return 0.0
    n_bin, sigma = int(constants[N_BIN]), constants[SIGMA]
    first, last = constants[BREAKS], constants[BREAKS + n_bin]
    total = _inside_below(x, theta, constants) if x > first else 0.0
    if has_lower_tail(constants):
        weight, near, reach = theta[n_bin + int(constants[ORDER]) - 1], first - x, tail_reach(0, constants)
        total += weight if near <= 0.0 else weight * math.exp(log_tail_mass(near, reach, reach, sigma))
    if x > last:
        total += theta[theta.size - 1] * math.exp(log_tail_mass(0.0, x - last, tail_reach(1, constants), sigma))
    return min(total / theta.sum(), 1.0)


@kernel
def _whole_between(i, lo, hi, breaks):
    """Return the first whole number that bin i has of the cells lo ... hi, and how many there are."""
    a, c = max(lo, breaks[i]), min(hi, breaks[i + 1])
    return a + 0.5, int(np.rint(c - a))


@kernel
def _bin_moments(i, lo, hi, theta, constants, mixed):
    """Return (mass, mean, variance) of what bin i has of lo ... hi."""
    breaks = breaks_of(constants)
    if constants[STEP] > 0.0:
        first, m = _whole_between(i, lo, hi, breaks)
        if m < 1:
            return 0.0, 0.0, 0.0
        _mix(i, theta, masses_of_values(constants), mixed)
        width = breaks[i + 1] - breaks[i] - 1.0
        if width > 0.0:
            u = (first - breaks[i] - 0.5) / width
            restrict(mixed, u, (first + m - 1.5 - breaks[i]) / width)
        total, mean, variance = rounded_moments(mixed, m)
        return total, first + (m - 1.0) * mean, (m - 1.0) * (m - 1.0) * variance
    a, c, u, v = _overlap(i, lo, hi, breaks)
    if not a < c:
        return 0.0, 0.0, 0.0
    _mix(i, theta, ordinates_of(constants), mixed)
    restrict(mixed, u, v)
    total, mean, variance = bernstein_moments(mixed)
    return (c - a) * total / mixed.size, a + (c - a) * mean, (c - a) * (c - a) * variance


@kernel
def _distance_moments(near, far, constants):
    """Return mean and variance of the distance from a tail's break, given that it lies between near and far.

    A whole number's cell is left by its distance's integer part; what remains is independent of that (an exponential
    forgets), so mean and variance of the integer part are differences.
    """
    sigma, length = constants[SIGMA], far - near
    if length < np.inf:
        mean = near + length * tilted_mean(length / sigma)
        variance = length * length * tilted_variance(length / sigma)
    else:
        mean, variance = near + sigma, sigma * sigma
    if constants[STEP] > 0.0:
        mean += 0.5 - tilted_mean(1.0 / sigma)
        variance = max(variance - tilted_variance(1.0 / sigma), 0.0)
    return mean, variance


@kernel
def _tail_between(upper, lo, hi, constants):
    """Return the distances, from its break, between which a tail meets lo ... hi."""
    breaks = breaks_of(constants)
    if upper:
        return max(lo - breaks[-1], 0.0), min(hi, constants[HIGH]) - breaks[-1]
    return max(breaks[0] - hi, 0.0), breaks[0] - max(lo, constants[LOW])


@kernel
def _add(state, mass, mean, variance):
    """Return (mass, mean, sum of squared deviations) with one component more."""
    total = state[0] + mass
    if not mass > 0.0:
        return state
    shift = mean - state[1]
    return (
        total,
        state[1] + shift * (mass / total),
        state[2] + mass * variance + shift * shift * (mass * (state[0] / total)),
    )


@kernel
def moment(k, lo, hi, theta, constants):
    lower, upper = _cells_between(lo, hi, constants)
    log_tails = _log_tails(lower, upper, theta, constants) if lower < upper else (-np.inf, -np.inf)
    largest = max(log_tails[0], log_tails[1])
    order = int(constants[ORDER])
    mixed = np.empty(order)
    state = (0.0, 0.0, 0.0)
    for i in range(int(constants[N_BIN])):
        mass, mean, variance = _bin_moments(i, lower, upper, theta, constants, mixed)
        state = _add(state, mass, mean, variance)
    # far out in a tail its mass alone may be too small for a float
    shift = largest if state[0] == 0.0 and largest > -np.inf else 0.0
    for side in range(2):
        if log_tails[side] > -np.inf:
            mean, variance = _distance_moments(*_tail_between(side, lower, upper, constants), constants)
            breaks = breaks_of(constants)
            at = breaks[-1] + mean if side == 1 else breaks[0] - mean
            state = _add(state, math.exp(log_tails[side] - shift), at, variance)
    if state[0] == 0.0:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    mean = min(max(state[1], lo), hi)
    return mean if k == 1 else state[2] / state[0]


@kernel
def _value_at(ordinate, u, scratch):
    """Return the polynomial at u (de Casteljau)."""
    copy_into(ordinate, scratch)
    for level in range(1, ordinate.size):
        for p in range(ordinate.size - level):
            scratch[p] = (1.0 - u) * scratch[p] + u * scratch[p + 1]
    return scratch[0]


@kernel
def _fill_stationary(ordinate, at, scratch):
    """Fill where the derivative of a polynomial changes its sign between 0 and 1, ascending; return how many.

    Between roots of one derivative the one before is monotone: roots are found from the straight line upwards.
    """
    n = ordinate.size
    n_root = 0
    other = np.empty(n + 1)
    for degree in range(1, n - 1):
        # ordinates of the derivative that has this degree, up to a factor: differences
        size = degree + 1
        difference = ordinate.copy()
        for level in range(n - size):
            for p in range(n - 1 - level):
                difference[p] = difference[p + 1] - difference[p]
        derivative = difference[:size]
        ends = other[: n_root + 2]
        ends[0], ends[n_root + 1] = 0.0, 1.0
        copy_into(at[:n_root], ends[1:])
        found = 0
        for k in range(n_root + 1):
            a, c = ends[k], ends[k + 1]
            rises = _value_at(derivative, a, scratch) < 0.0
            if rises != (_value_at(derivative, c, scratch) < 0.0):
                for _ in range(_N_BISECTION):
                    middle = 0.5 * (a + c)
                    if (_value_at(derivative, middle, scratch) < 0.0) == rises:
                        a = middle
                    else:
                        c = middle
                at[found] = 0.5 * (a + c)
                found += 1
        n_root = found
    return n_root


@kernel
def _mode_of_bin(i, lo, hi, theta, constants, highest):
    """Return (density, place) of the mode that bin i has in lo ... hi, or what is below `highest` without looking."""
    breaks, step = breaks_of(constants), constants[STEP]
    a, c = max(lo, breaks[i] + 0.5 * step), min(hi, breaks[i + 1] - 0.5 * step)
    last = i == breaks.size - 2
    if step > 0.0:
        a, c = np.ceil(a), np.floor(c)
    # a break belongs to the bin on its right
    if not a <= c or (step == 0.0 and a == c and a == breaks[i + 1] and not last):
        return -1.0, lo
    order = int(constants[ORDER])
    mixed, scratch, at = np.empty(order), np.empty(order), np.empty(order)
    _mix(i, theta, masses_of_values(constants), mixed)
    width = breaks[i + 1] - breaks[i] - step
    if width > 0.0:
        restrict(mixed, (a - breaks[i] - 0.5 * step) / width, min((c - breaks[i] - 0.5 * step) / width, 1.0))
    if mixed.max() <= highest:
        return -1.0, lo
    if order == 1:
        middle = 0.5 * a + 0.5 * c
        return mixed[0], np.rint(middle) if step > 0.0 else (middle if middle < c else a)
    best, place = mixed[0], a
    if mixed[order - 1] > best:
        best, place = mixed[order - 1], c
    for k in range(_fill_stationary(mixed, at, scratch)):
        if step == 0.0:
            value = _value_at(mixed, at[k], scratch)
            if value > best:
                best, place = value, min(max(a + (c - a) * at[k], a), c)
            continue
        for x in (np.floor(a + (c - a) * at[k]), np.ceil(a + (c - a) * at[k])):
            value = _value_at(mixed, (x - a) / (c - a), scratch)
            if value > best:
                best, place = value, x
    return best, place


@kernel
def _log_tail_top(upper, theta, constants):
    """Return the log density of a tail at its break, times its weight."""
    at = int(constants[ORDER]) + int(constants[N_BIN]) - 1
    at += 1 if upper and has_lower_tail(constants) else 0
    return math.log(max(theta[at], SMALLEST)) + log_tail_level(upper, constants)


@apart_until_called(types.float64)
@kernel
def mode(lo, hi, theta, constants):
    """Between bins by their largest ordinates, inside one by the roots of the derivative; tails fall from there."""
    breaks, half, sigma = breaks_of(constants), 0.5 * constants[STEP], constants[SIGMA]
    highest, best = -1.0, min(max(0.5 * (breaks[0] + breaks[-1]), lo), hi)
    for i in range(int(constants[N_BIN])):
        density, place = _mode_of_bin(i, lo, hi, theta, constants, highest)
        if density > highest:
            highest, best = density, place
    log_highest = math.log(highest) if highest > 0.0 else -np.inf
    if has_upper_tail(constants) and hi > breaks[-1]:
        nearest = breaks[-1] + half if half > 0.0 else np.nextafter(breaks[-1], np.inf)
        x = max(lo, nearest) if half == 0.0 else np.ceil(max(lo, nearest))
        log_density = _log_tail_top(1, theta, constants) - (x - half - breaks[-1]) / sigma
        if x <= min(hi, constants[HIGH]) and log_density > log_highest:
            log_highest, best = log_density, x
    if has_lower_tail(constants) and lo < breaks[0]:
        nearest = breaks[0] - half if half > 0.0 else np.nextafter(breaks[0], -np.inf)
        x = min(hi, nearest) if half == 0.0 else np.floor(min(hi, nearest))
        log_density = _log_tail_top(0, theta, constants) - (breaks[0] - half - x) / sigma
        if x >= max(lo, constants[LOW]) and log_density > log_highest:
            best = x
    return min(max(best, lo), hi)


@kernel
def _sample_tail(upper, lo, hi, constants, rng):
    near, far = _tail_between(upper, lo, hi, constants)
    sigma = constants[SIGMA]
    # inverse of the distribution function, of what is between both ends
    kept = -math.expm1(-(far - near) / sigma)
    distance = min(near - sigma * math.log1p(-rng.random() * kept), far)
    breaks = breaks_of(constants)
    return breaks[-1] + distance if upper else breaks[0] - distance


@kernel
def _sample_bin(i, lo, hi, theta, constants, mixed, rng):
    """Draw a Bernstein polynomial of the bin in proportion to its ordinate, then u from it: a beta distribution."""
    a, c, u, v = _overlap(i, lo, hi, breaks_of(constants))
    _mix(i, theta, ordinates_of(constants), mixed)
    restrict(mixed, u, v)
    left = rng.random() * mixed.sum()
    p = 0
    while p < mixed.size - 1 and left >= mixed[p]:
        left -= mixed[p]
        p += 1
    along = rng.beta(p + 1.0, float(mixed.size - p)) if mixed.size > 1 else rng.random()
    return a + (c - a) * along


@kernel
def sample(lo, hi, theta, constants, rng):
    lower, upper = _cells_between(lo, hi, constants)
    n_bin = int(constants[N_BIN])
    mixed, basis = np.empty(int(constants[ORDER])), (breaks_of(constants), ordinates_of(constants))
    mass = np.zeros(n_bin + 2)
    if lower < upper:
        log_tails = _log_tails(lower, upper, theta, constants)
        for i in range(n_bin):
            mass[i] = _bin_mass(i, lower, upper, theta, basis, mixed)
        largest = max(log_tails[0], log_tails[1])
        shift = largest if mass.sum() == 0.0 and largest > -np.inf else 0.0
        mass[n_bin], mass[n_bin + 1] = math.exp(log_tails[0] - shift), math.exp(log_tails[1] - shift)
    if not mass.sum() > 0.0:
        return mode(lo, hi, theta, constants)
    left = rng.random() * mass.sum()
    k = 0
    while k < mass.size - 1 and (left >= mass[k] or mass[k] == 0.0):
        left -= mass[k]
        k += 1
    while mass[k] == 0.0:
        k -= 1
    if k < n_bin:
        value = _sample_bin(k, lower, upper, theta, constants, mixed, rng)
    else:
        value = _sample_tail(k - n_bin, lower, upper, constants, rng)
    if constants[STEP] > 0.0:
        value = min(max(np.rint(value), np.ceil(lo)), np.floor(hi))
    return min(max(value, lo), hi)
