"""Spline: a mixture of M-splines over a leaf's breaks, and an exponential tail beyond each end that is open.

theta = weight of each spline, then of the lower and of the upper tail where there is one. Prior: Dirichlet. The density
is never negative, integrates to 1, and is smooth up to its order, which the leaf chose with its breaks
(`bayesjpt.families.spline_choice`). z = (x - m) / s on real columns and z = x on whole numbers, whose breaks lie
halfway between them and whose mass is the integral over the cell around each.

      density |        .--.               constants = (order, number of bins, step, sigma, low end, high end,
              |      .'    '-.              breaks 0 ... n, ordinates)
              |  __.'         '-.___
              |-'   |    |    |     '--   step = 1 on whole numbers, 0 on others; sigma = scale of both tails
             end    0    1    2    end    ordinates: of every spline on every bin (`bayesjpt.families.spline_basis`),
                                            and, on whole numbers, those of their masses

An end is what a condition, or the support, leaves of the line; a tail is truncated there, so that the mass between the
ends is 1 under any weights. A row allocated to the leaf belongs to one spline or tail, drawn given theta; weights are
then a Dirichlet given counts: a Gibbs step on both, reversible in theta.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import plausible, simplex, spline_choice, spline_interval
from bayesjpt.families.features import offset_and_scale
from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, Scaling
from bayesjpt.families.spline_basis import bin_of, fill_bernstein
from bayesjpt.families.spline_choice import constants_of_column
from bayesjpt.families.spline_layout import (
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
    masses_of_values,
    n_weight,
)
from bayesjpt.families.spline_start import smooth_weights
from bayesjpt.families.spline_values import fill_densities, fill_splines
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.draw import draw_dirichlet
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_log

SPLINE_CONCENTRATION = 0.2
"""Dirichlet concentration of each spline and tail, whatever the leaf."""

SPLINE_START = 30.0
"""Pseudo-rows that are spread like the smooth distribution of the leaf (`bayesjpt.families.spline_start`). Both chosen
on held-out training rows of iris, heart and diabetes, of 0.02 to 0.25 and 2 to 300."""


_LOWER_LEVEL, _UPPER_LEVEL, _TO_BREAKS = HIGH + 1, HIGH + 2, HIGH + 3
"""Layout of the coefficients: the constants' head, log densities at the near ends of the tails, breaks, and for each
bin its inverse width and the ordinates of the mixture, times binomial coefficients."""
_NORMAL, _LIFT, _LOG_LIFT = 2.3e-308, 2.0**200, 200.0 * math.log(2.0)
_TO_KEY = 2.0**53
_FEW = 8.0
"""Up to so many equal values are shared out one by one: quicker than binomial draws."""


def default_prior(_column: ColumnFacts, start: np.ndarray) -> np.ndarray:
    """Some rows like the smooth distribution that the leaf's estimate is, and a part of one for each weight."""
    return SPLINE_CONCENTRATION + SPLINE_START * start


def _by_name(column: ColumnFacts) -> bool:
    return not (plausible.is_lopsided(column) or plausible.is_flat(column))


def abda_prior(_column: ColumnFacts, start: np.ndarray) -> np.ndarray:
    """The paper's prior of a categorical: concentration 1 each."""
    return np.ones(start.size)


def entry_labels(column: ColumnFacts, constants: np.ndarray) -> list[str]:
    """Return where each spline has its mean, ``near 11.2``, and where tails begin, in the user's units."""
    offset, scale = offset_and_scale(Scaling.REAL_LOCATION_SCALE, column)
    order, largest = int(constants[ORDER]), np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        breaks = np.clip(breaks_of(constants) * scale + offset, -largest, largest)
    knots = np.concatenate([[breaks[0]] * (order - 1), breaks, [breaks[-1]] * (order - 1)])
    names = [f"near {(knots[j : j + order + 1] / (order + 1.0)).sum():.15g}" for j in range(knots.size - order)]
    half = 0.5 * constants[STEP]
    names += [f"below {breaks[0] + half:.15g}"] if has_lower_tail(constants) else []
    return names + ([f"above {breaks[-1] - half:.15g}"] if has_upper_tail(constants) else [])


@kernel
def coefficients(theta, constants, out):
    order, n_bin = int(constants[ORDER]), int(constants[N_BIN])
    copy_into(constants[:_LOWER_LEVEL], out)
    out[_LOWER_LEVEL], out[_UPPER_LEVEL] = -np.inf, -np.inf
    if has_lower_tail(constants):
        weight = theta[n_bin + order - 1]
        out[_LOWER_LEVEL] = math.log(max(weight, simplex.SMALLEST)) + log_tail_level(0, constants)
    if has_upper_tail(constants):
        out[_UPPER_LEVEL] = math.log(max(theta[theta.size - 1], simplex.SMALLEST)) + log_tail_level(1, constants)
    breaks, ordinates = breaks_of(constants), masses_of_values(constants)
    copy_into(breaks, out[_TO_BREAKS:])
    at = _TO_BREAKS + n_bin + 1
    for i in range(n_bin):
        width = breaks[i + 1] - breaks[i] - constants[STEP]
        out[at] = 1.0 / width if width > 0.0 else 0.0
        binomial = 1.0
        for p in range(order):
            value = 0.0
            for r in range(order):
                value += theta[i + r] * ordinates[i, r, p]
            out[at + 1 + p] = binomial * value
            binomial *= (order - 1.0 - p) / (p + 1.0)
        at += 1 + order


@kernel
def fill_log_density(z, aux, coefficients, out):
    """Polynomials first and logarithms after them, both without calls or branches; then the values in tails."""
    n_bin, half = int(coefficients[N_BIN]), 0.5 * coefficients[STEP]
    breaks = coefficients[_TO_BREAKS : _TO_BREAKS + n_bin + 1]
    fill_densities(z, breaks, half, coefficients[_TO_BREAKS + n_bin + 1 :], int(coefficients[ORDER]), out)
    first, last = breaks[0], breaks[n_bin]
    n_inside = 0
    for i in range(out.size):
        n_inside += (z[i] >= first) & (z[i] <= last)
        # fast_log takes no subnormal number
        small = out[i] < _NORMAL
        value = fast_log(out[i] * (_LIFT if small else 1.0)) - (_LOG_LIFT if small else 0.0)
        out[i] = value if out[i] > 0.0 else -np.inf
    if n_inside < out.size:
        for i in range(out.size):
            x = z[i]
            if first <= x <= last:
                continue
            if coefficients[LOW] <= x < first:
                out[i] = coefficients[_LOWER_LEVEL] - (first - half - x) / coefficients[SIGMA]
            elif last < x <= coefficients[HIGH]:
                out[i] = coefficients[_UPPER_LEVEL] - (x - half - last) / coefficients[SIGMA]
            else:
                out[i] = -np.inf
    if half > 0.0:
        for i in range(out.size):
            out[i] = out[i] if z[i] == np.rint(z[i]) else -np.inf


@kernel
def _place(x, constants, bernstein):
    """Return the bin of a value and fill B_p there; or -1 (lower tail), -2 (upper tail), -3 (nowhere)."""
    breaks, half = breaks_of(constants), 0.5 * constants[STEP]
    if breaks[0] <= x <= breaks[-1]:
        k = bin_of(x, breaks)
        width = breaks[k + 1] - breaks[k] - constants[STEP]
        fill_bernstein((x - breaks[k] - half) / width if width > 0.0 else 0.0, bernstein)
        return k
    if constants[LOW] <= x < breaks[0]:
        return -1
    return -2 if breaks[-1] < x <= constants[HIGH] else -3


@kernel
def _tail_entry(place, constants):
    """Return the position in theta of the tail of a place."""
    n_spline = int(constants[ORDER]) + int(constants[N_BIN]) - 1
    return n_spline + (1 if place == -2 and has_lower_tail(constants) else 0)


@kernel
def accumulate(z, aux, rows, constants, stats):
    """Count a value for the splines that are not zero there, in the shares that they have under equal weights."""
    order, n_bin, half = int(constants[ORDER]), int(constants[N_BIN]), 0.5 * constants[STEP]
    breaks, ordinates = breaks_of(constants), masses_of_values(constants)
    bernstein, share = np.empty(order), np.empty(order)
    for j in range(rows.size):
        x = z[rows[j]]
        if breaks[0] <= x <= breaks[n_bin]:
            k = bin_of(x, breaks)
            width = breaks[k + 1] - breaks[k] - constants[STEP]
            fill_bernstein((x - breaks[k] - half) / width if width > 0.0 else 0.0, bernstein)
            total = 0.0
            for r in range(order):
                value = 0.0
                for p in range(order):
                    value += ordinates[k, r, p] * bernstein[p]
                share[r] = value
                total += value
            for r in range(order):
                stats[k + r] += share[r] / total
        elif constants[LOW] <= x <= constants[HIGH]:
            stats[_tail_entry(-1 if x < breaks[0] else -2, constants)] += 1.0


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    order = int(constants[ORDER])
    ordinates = masses_of_values(constants)
    bernstein, density = np.empty(order), np.empty(order)
    for i in range(flow.size):
        place = _place(z[i], constants, bernstein) if flow[i] != 0.0 else -3
        if place >= 0:
            total = 0.0
            for r in range(order):
                value = 0.0
                for p in range(order):
                    value += ordinates[place, r, p] * bernstein[p]
                density[r] = value
                total += theta[place + r] * value
            for r in range(order):
                out[place + r] += flow[i] * density[r] / max(total, simplex.SMALLEST)
        elif place > -3:
            at = _tail_entry(place, constants)
            out[at] += flow[i] / max(theta[at], simplex.SMALLEST)


@kernel
def _share_out(n, weight, total, out, rng):
    """Add n things to `out`, each to an entry in proportion to its weight; `total` is the sum of the weights."""
    if n <= _FEW:
        for _ in range(int(n)):
            left = rng.random() * total
            k = 0
            while k < weight.size - 1 and left >= weight[k]:
                left -= weight[k]
                k += 1
            # rounding may leave the last entry where it has no weight
            while weight[k] <= 0.0 and k > 0:
                k -= 1
            out[k] += 1.0
        return
    for k in range(weight.size - 1):
        share = weight[k] / total if total > 0.0 else 0.0
        taken = float(rng.binomial(np.int64(n), min(max(share, 0.0), 1.0))) if n > 0.0 else 0.0
        out[k] += taken
        n -= taken
        total -= weight[k]
    out[weight.size - 1] += n


@kernel
def _fill_tables(theta, constants, polynomials, shares):
    """Fill, of each bin, what `fill_densities` reads, and the shares of its splines in each Bernstein polynomial.

    `shares` float64 (n_bin, order, order): bin, Bernstein polynomial, splines; summed up over the last.
    """
    breaks, ordinates = breaks_of(constants), masses_of_values(constants)
    n_bin, order = shares.shape[0], shares.shape[1]
    for i in range(n_bin):
        width = breaks[i + 1] - breaks[i] - constants[STEP]
        polynomials[i, 0] = 1.0 / width if width > 0.0 else 0.0
        binomial = 1.0
        for p in range(order):
            total = 0.0
            for r in range(order):
                total += theta[i + r] * ordinates[i, r, p]
                shares[i, p, r] = total
            polynomials[i, 1 + p] = binomial * total
            binomial *= (order - 1.0 - p) / (p + 1.0)
            for r in range(order):
                shares[i, p, r] = shares[i, p, r] / total if total > 0.0 else 1.0


@kernel
def _share_out_value(x, n, half, breaks, polynomials, n_of, rng):
    """Add the n times that a value occurs to `n_of`, float64 (n_bin, order), by Bernstein polynomial of its bin."""
    order = n_of.shape[1]
    k = bin_of(x, breaks)
    u = (x - breaks[k] - half) * polynomials[k, 0]
    weight = np.empty(order)
    power = 1.0
    for p in range(order):
        weight[p] = polynomials[k, 1 + p] * power
        power *= u
    power, total = 1.0, 0.0
    for p in range(order - 1, -1, -1):
        weight[p] *= power
        power *= 1.0 - u
        total += weight[p]
    _share_out(n, weight, total, n_of[k], rng)


@kernel
def draw_from_values(z, count, hyper, constants, theta, rng):
    """Draw the spline of each value given theta, then theta given how many each spline has.

    A value is first given a Bernstein polynomial of its bin: the density is a mixture of these and of splines. Where
    values occur many times, only counts of both are drawn.
    """
    for j in range(hyper.size):
        if not 0.0 < hyper[j] < np.inf:  # counts would hide it
            return INVALID
    order, n_bin, half = int(constants[ORDER]), int(constants[N_BIN]), 0.5 * constants[STEP]
    breaks, ordinates = breaks_of(constants), masses_of_values(constants)
    polynomials, shares = np.empty((n_bin, order + 1)), np.empty((n_bin, order, order))
    _fill_tables(theta, constants, polynomials, shares)
    spline = np.empty(z.size, np.int64)
    key = np.uint64(rng.random() * _TO_KEY)
    fill_splines(z, breaks, half, polynomials.ravel(), shares.ravel(), key, order, spline)
    posterior = hyper.copy()
    n_of = np.zeros((n_bin, order))
    first, last = breaks[0], breaks[n_bin]
    for j in range(z.size):
        if first <= z[j] <= last:
            if count[j] == 1.0:
                posterior[spline[j]] += 1.0
            else:
                _share_out_value(z[j], count[j], half, breaks, polynomials, n_of, rng)
        elif constants[LOW] <= z[j] <= constants[HIGH]:
            posterior[_tail_entry(-1 if z[j] < first else -2, constants)] += count[j]
    weight = np.empty(order)
    for i in range(n_bin):
        for p in range(order):
            if n_of[i, p] > 0.0:
                total = 0.0
                for r in range(order):
                    weight[r] = theta[i + r] * ordinates[i, r, p]
                    total += weight[r]
                _share_out(n_of[i, p], weight, total, posterior[i : i + order], rng)
    return OK if draw_dirichlet(posterior, theta, rng) else INVALID


FAMILY = Family.of(
    globals(),
    spline_choice,
    spline_interval,
    name="spline",
    bases=("real", "integer"),
    statistical_type="support",
    scaling=Scaling.REAL_LOCATION_SCALE,
    parameters=(simplex.PROBABILITY,),
    hyper_names=("concentration",),
    priors={"default": default_prior, "abda": abda_prior},
    constants=constants_of_column,
    estimate=smooth_weights,
    n_theta=n_weight,
    n_stats=n_weight,
    by_name=_by_name,
    reversible_draw=True,
    initial=simplex.initial,
)
