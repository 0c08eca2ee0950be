"""M-splines as polynomials between breaks, each by its Bezier ordinates, none of which is negative.

An M-spline of order k is a density made of polynomials of degree k - 1 that join smoothly at the breaks (Ramsay, 1988).
On the bin between two neighbouring breaks, with u from 0 to 1, k of the splines are not zero, and each is

    M(u) = sum over p of ordinate[p] B_p(u),     B_p(u) = C(k - 1, p) u^p (1 - u)^(k - 1 - p)

Recursion, restriction to a part of a bin, integrals and moments are sums of products of what is not negative. So
nothing cancels: no density below 0, and masses far out in a bin keep their digits.

References: Ramsay (1988), Monotone regression splines in action, Statistical Science 3, equation 1; Farin (2002),
Curves and surfaces for CAGD, chapters 4 to 6 (de Casteljau's algorithm, degree elevation).
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel

MAX_ORDER = 6

_GAUSS_AT = 0.7745966692414834
_GAUSS_SIDE, _GAUSS_MIDDLE = 5.0 / 18.0, 4.0 / 9.0
"""Gauss's rule of three points, exact to degree 5, which is that of order 6."""


@kernel
def fill_ordinates(breaks, out):
    """Fill the ordinates of every M-spline on every bin.

    Parameters
    ----------
    breaks : float64 (n_bin + 1,)
        Ascending. The first and the last count `order` times among the knots.
    out : float64 (n_bin, order, order)
        ``out[i, r, p]``: ordinate p, on bin i, of spline i + r. Density per unit of the breaks.
    """
    n_bin, order, _ = out.shape
    knot = np.empty(n_bin + 2 * order - 1)
    for i in range(order - 1):
        knot[i] = breaks[0]
        knot[n_bin + order + i] = breaks[n_bin]
    for i in range(n_bin + 1):
        knot[order - 1 + i] = breaks[i]
    last, now = np.zeros((order, order)), np.zeros((order, order))
    for i in range(n_bin):
        left, right = breaks[i], breaks[i + 1]
        now[:] = 0.0
        now[0, 0] = 1.0 / (right - left)
        for o in range(2, order + 1):
            copy_into(now.ravel(), last.ravel())
            now[:] = 0.0
            # splines j = s - o + 1 ... s of order o are alive on the bin; those of order o - 1 begin one later
            s = i + order - 1
            for r in range(o):
                lower, upper = knot[s - o + 1 + r], knot[s + 1 + r]
                factor = o / ((o - 1.0) * (upper - lower))
                if r > 0:
                    _add_product(factor * (left - lower), factor * (right - lower), last[r - 1], o - 2, now[r])
                if r < o - 1:
                    _add_product(factor * (upper - left), factor * (upper - right), last[r], o - 2, now[r])
        copy_into(now.ravel(), out[i].ravel())


@kernel
def _add_product(at_zero, at_one, ordinate, degree, out):
    """Add the ordinates of a polynomial times a line that runs from `at_zero` to `at_one`."""
    for p in range(degree + 1):
        out[p] += (degree + 1 - p) / (degree + 1.0) * at_zero * ordinate[p]
        out[p + 1] += (p + 1) / (degree + 1.0) * at_one * ordinate[p]


@kernel
def restrict(ordinate, a, c):
    """Replace ordinates by those of the same polynomial between u = a and u = c, 0 <= a <= c <= 1 (de Casteljau)."""
    n = ordinate.size
    if c < 1.0:
        for level in range(1, n):
            for p in range(n - 1, level - 1, -1):
                ordinate[p] = (1.0 - c) * ordinate[p - 1] + c * ordinate[p]
    if a > 0.0:
        # c > 0, since a <= c
        part = min(a / c, 1.0)
        for level in range(1, n):
            for p in range(n - level):
                ordinate[p] = (1.0 - part) * ordinate[p] + part * ordinate[p + 1]


@kernel
def fill_rounded(breaks, ordinates, out):
    """Fill the ordinates of the masses of whole numbers, from those of the density.

    Parameters
    ----------
    breaks : float64 (n_bin + 1,)
        Halfway between whole numbers.
    ordinates, out : float64 (n_bin, order, order)
        In `out` u runs from the first whole number of the bin, 0, to the last, 1.

    Notes
    -----
    The mass of x is the integral of the density from x - 1/2 to x + 1/2: an average of the same polynomial moved by s,
    with s from -1/2 to 1/2. Each of these, between the first and the last whole number, is a restriction to a part of
    the bin and has no negative ordinate; so neither has their average.
    """
    n_bin, order, _ = out.shape
    moved = np.empty(order)
    for i in range(n_bin):
        width = breaks[i + 1] - breaks[i]
        for r in range(order):
            out[i, r] = 0.0
            for g in range(-1, 2):
                weight = _GAUSS_MIDDLE if g == 0 else _GAUSS_SIDE
                shift = 0.5 * _GAUSS_AT * g
                copy_into(ordinates[i, r], moved)
                restrict(moved, (0.5 + shift) / width, (width - 0.5 + shift) / width)
                for p in range(order):
                    out[i, r, p] += weight * moved[p]


@kernel
def fill_bernstein(u, out):
    """Fill B_0(u) ... B_n(u) of degree n, float64 (n + 1,)."""
    n = out.size - 1
    out[0] = 1.0
    for level in range(1, n + 1):
        carried = 0.0
        for p in range(level):
            share = out[p]
            out[p] = carried + (1.0 - u) * share
            carried = u * share
        out[level] = carried


@kernel
def bin_of(x, breaks):
    """Return the bin of a value inside the breaks; a break belongs to the bin on its right, the last to the last."""
    i = 0
    for m in range(1, breaks.size - 1):
        i += x >= breaks[m]
    return i


@kernel
def bernstein_moments(ordinate):
    """Return (sum, mean of u, variance of u) of a density on 0 ... 1, proportional to the polynomial of some ordinates.

    The integral of the polynomial is the sum over their number. B_p is proportional to Beta(p + 1, n - p + 1).
    """
    n = ordinate.size - 1
    total = 0.0
    first = 0.0
    for p in range(n + 1):
        total += ordinate[p]
        first += ordinate[p] * (p + 1.0)
    if not total > 0.0:
        return 0.0, 0.5, 0.0
    mean = first / ((n + 2.0) * total)
    spread = 0.0
    for p in range(n + 1):
        of_beta = (p + 1.0) / (n + 2.0)
        shift = of_beta - mean
        spread += ordinate[p] * (of_beta * (1.0 - of_beta) / (n + 3.0) + shift * shift)
    return total, mean, spread / total


@kernel
def rounded_moments(ordinate, m):
    """Return (sum over them, mean of u, variance of u) of m whole numbers evenly spaced from u = 0 to u = 1.

    Their masses are the polynomial of these ordinates. Sums of powers of whole numbers around their middle have closed
    forms; with v = 2 u - 1 no power is above 1.
    """
    n = ordinate.size - 1
    if m == 1:
        return ordinate[0], 0.5, 0.0
    # coefficients of v^q: B_p is C(n, p) ((1 + v) / 2)^p ((1 - v) / 2)^(n - p)
    power = np.zeros(n + 3)
    term = np.empty(n + 1)
    binomial = 0.5**n
    for p in range(n + 1):
        term[:] = 0.0
        term[0] = binomial * ordinate[p]
        for level in range(n):
            sign = 1.0 if level < p else -1.0
            for q in range(level + 1, 0, -1):
                term[q] += sign * term[q - 1]
        for q in range(n + 1):
            power[q] += term[q]
        binomial *= (n - p) / (p + 1.0)
    sums = _even_power_sums(m)
    total = 0.0
    first = 0.0
    second = 0.0
    for q in range(n + 1):
        if q % 2 == 0:
            total += power[q] * sums[q // 2]
            second += power[q] * sums[q // 2 + 1]
        else:
            first += power[q] * sums[(q + 1) // 2]
    if not total > 0.0:
        return 0.0, 0.5, 0.0
    mean = first / total
    return total, 0.5 * (mean + 1.0), 0.25 * max(second / total - mean * mean, 0.0)


@kernel
def _even_power_sums(m):
    """Return the sums of v^0, v^2, v^4, v^6 and v^8 over m numbers evenly spaced from -1 to 1."""
    s = float(m) * m
    # sum of (2 i + 1 - m)^q over i = 0 ... m - 1, over (m - 1)^q
    w = (m - 1.0) * (m - 1.0)
    two = m * (s - 1.0) / 3.0
    four = two * (3.0 * s - 7.0) / 5.0
    six = two * ((3.0 * s - 18.0) * s + 31.0) / 7.0
    eight = two * (((5.0 * s - 55.0) * s + 239.0) * s - 381.0) / 15.0
    return float(m), two / w, four / (w * w), six / (w * w * w), eight / (w * w * w * w)
