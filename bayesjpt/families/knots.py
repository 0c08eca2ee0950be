"""CDF-LEARN: where a piecewise linear distribution function bends (Nyga et al., 2023, section 3.2, algorithm 1).

A recorded value stands for its cell, so the distribution function of n recorded values is piecewise linear itself. Its
*corners* are the edges of the cells and how many values lie below; cells closer than a resolution meet halfway:

      n            .--       value      5     6   6        9
                 _/          cell    [---|---------]    [-----]
            ____/            corner  0   1         3    3     4
      0  --'

CDF-LEARN keeps some of the corners as *knots*: it begins with the first and the last, and adds, in the segment with
the largest mean squared error, the corner that leaves the smallest, until all errors are within the bound.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel

_TOUCHING = 1.0 + 1e-6
"""Cells whose values are a resolution apart touch, but for rounding errors."""


@kernel
def fill_corners(z, half, lo, hi, edge, below):
    """Fill the corners of the distribution function of the cells around some values; return how many there are.

    Parameters
    ----------
    z : float64 (n,)
        Ascending, at least one, inside lo ... hi.
    half : float
        Half a cell.
    lo, hi : float
        No cell reaches beyond.
    edge, below : float64 (2 n + 1,)
        Ascending edges of cells, and the number of values below each.
    """
    n = 1
    edge[0] = max(z[0] - half, lo)
    below[0] = 0.0
    for i in range(1, z.size + 1):
        if i == z.size:
            n = _add_corner(min(z[i - 1] + half, hi), i, edge, below, n)
        elif z[i] - z[i - 1] > 2.0 * half * _TOUCHING:
            n = _add_corner(z[i - 1] + half, i, edge, below, n)
            n = _add_corner(z[i] - half, i, edge, below, n)
        elif z[i] > z[i - 1]:
            n = _add_corner(0.5 * z[i - 1] + 0.5 * z[i], i, edge, below, n)
    return n


@kernel
def _add_corner(at, count, edge, below, n):
    """Add a corner, or move the last one up where rounding leaves no room between them; return how many there are."""
    if at > edge[n - 1]:
        edge[n] = at
        n += 1
    if n > 1:
        below[n - 1] = count
    return n


@kernel
def learn_knots(edge, below, bounds, least, at):
    """Fill the positions of the corners that become knots, ascending; return the number of segments between them.

    Parameters
    ----------
    edge, below : float64 (n_corner,)
        What `fill_corners` made; two corners at least.
    bounds : tuple of two floats
        Largest mean squared error of a segment, the larger bound counts: in squared shares of all values, and in
        squared numbers of values for each value in the segment. The mean is over the values of the segment, each at
        both ends of its cell.
    least : float
        Values that a segment holds at least.
    at : int64 (n_most + 1,)
        Room for the knots. Where it does not suffice the largest errors are removed, and others above the bound stay.

    Notes
    -----
    O(n_corner) for each level of the recursion; the error of a segment is known from the split that made it.
    """
    n = 1
    at[0], at[1] = 0, edge.size - 1
    bounds = bounds[0] * below[-1] * below[-1], bounds[1]
    error = np.empty(at.size - 1)
    error[0] = _above(_error(edge, below), below[-1] - below[0], bounds)
    rest = np.empty(edge.size)
    while n < error.size:
        worst = np.argmax(error[:n])
        # 0 where within the bound, or where no corner divides the segment
        if error[worst] == 0.0:
            break
        first, last = at[worst], at[worst + 1]
        split, left, right = _best_split(edge[first : last + 1], below[first : last + 1], least, rest)
        if split == 0:
            error[worst] = 0.0
            continue
        # from the end: room for one more behind the segment that is split
        for k in range(n, worst, -1):
            at[k + 1] = at[k]
        for k in range(n - 1, worst, -1):
            error[k + 1] = error[k]
        split += first
        at[worst + 1] = split
        error[worst] = _above(left, below[split] - below[first], bounds)
        error[worst + 1] = _above(right, below[last] - below[split], bounds)
        n += 1
    return n


@kernel
def _above(total, count, bounds):
    """Return the mean of `count` squared errors that add up to `total`, 0 where it is within the bounds."""
    mean = total / count
    return mean if mean > max(bounds[0], bounds[1] * count) else 0.0


@kernel
def _error(edge, below):
    """Return the sum of squared errors, over values, of the line between the first corner and the last."""
    total = 0.0
    slope = (below[-1] - below[0]) / (edge[-1] - edge[0])
    for k in range(1, edge.size - 1):
        miss = below[k] - below[0] - slope * (edge[k] - edge[0])
        total += 0.5 * (below[k + 1] - below[k - 1]) * miss * miss
    return total


@kernel
def _best_split(edge, below, least, rest):
    """Return the corner at which two lines leave the smallest error, and the sums of squared errors of both.

    The corner is 0 where none leaves `least` values on both sides. `rest` is a buffer.
    """
    last = edge.size - 1
    moments = 0.0, 0.0, 0.0
    # from the right: what the line to the last corner misses, for each corner that it may begin at
    for k in range(last - 1, 0, -1):
        u, v = edge[last] - edge[k], below[last] - below[k]
        rest[k] = _missed(v / u, moments)
        moments = _with_corner(u, v, below[k + 1] - below[k - 1], moments)
    best, split, best_left = np.inf, 0, 0.0
    moments = 0.0, 0.0, 0.0
    for k in range(1, last):
        u, v = edge[k] - edge[0], below[k] - below[0]
        left = _missed(v / u, moments)
        if left + rest[k] < best and v >= least and below[last] - below[k] >= least:
            best, split, best_left = left + rest[k], k, left
        moments = _with_corner(u, v, below[k + 1] - below[k - 1], moments)
    return split, best_left, rest[split]


@kernel
def _with_corner(u, v, weight, moments):
    """Return the weighted sums of u u, u v and v v with those of one corner, whose cells hold `weight` values."""
    half = 0.5 * weight
    return moments[0] + half * u * u, moments[1] + half * u * v, moments[2] + half * v * v


@kernel
def _missed(slope, moments):
    """Return the sum of (v - slope u)^2."""
    return max(moments[2] - slope * (2.0 * moments[1] - slope * moments[0]), 0.0)
