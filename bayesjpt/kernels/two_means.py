"""2-means from several pairs of starting points: the inner loop of learning, on some hundred rows at a time.

Written out, since a step on so few rows takes less time than NumPy needs to be called for it. Nearer to the second
centre are the rows beyond the plane half-way, so a step is one product of a matrix and a vector; the sums of the rows
beyond change by the rows that change sides.

References: Lloyd (1982), Least squares quantization in PCM; Arthur and Vassilvitskii (2007), k-means++.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.ordering import n_up_to


@kernel
def _distances(points, squares, centre, out):
    """Fill the squared distances of points, whose squared lengths are given, from one of them."""
    np.dot(points, centre, out)
    length = np.dot(centre, centre)
    for i in range(out.size):
        # |x - c|^2 = |x|^2 + |c|^2 - 2 x c cancels near the centre, and may round below 0
        out[i] = max(squares[i] + (length - 2.0 * out[i]), 0.0)


@kernel
def _second_centre(points, squares, first, uniform, apart, other):
    """Return a point far from the first one: of some drawn by squared distance that which leaves the least of them."""
    _distances(points, squares, points[first], apart)
    up_to = np.cumsum(apart)
    total = up_to[up_to.size - 1]
    best, least = first, np.inf
    if not total > 0.0:  # cannot be: some point differs from the others
        return best
    for j in range(uniform.size):
        candidate = min(n_up_to(up_to / total, uniform[j]), up_to.size - 1)
        _distances(points, squares, points[candidate], other)
        left = 0.0
        for i in range(apart.size):
            left += min(apart[i], other[i])
        if left < least:
            best, least = candidate, left
    return best


@kernel
def _side_of(projected, half_way, side, changed):
    """Replace the sides of rows; return how many are beyond the plane half-way, and how many changed sides."""
    n_beyond, n_changed = 0, 0
    for i in range(side.size):
        beyond = projected[i] > half_way
        n_beyond += beyond
        # written in any case, kept where the side changed: no branch, and one place more than rows
        changed[n_changed] = i
        n_changed += beyond != side[i]
        side[i] = beyond
    return n_beyond, n_changed


@kernel
def _add_changed(points, side, changed, sum_beyond):
    """Bring the sum of the rows beyond up to date."""
    for k in range(changed.size):
        row = points[changed[k]]
        if side[changed[k]]:
            for j in range(row.size):
                sum_beyond[j] += row[j]
        else:
            for j in range(row.size):
                sum_beyond[j] -= row[j]


@kernel
def _lloyd(points, total, centres, limits, scratch):
    """Move two centres, float64 (2, d), to where they come to rest; `limits` are steps and squared movement."""
    n, d = points.shape
    n_step, tolerance = limits
    projected, side, changed, sum_beyond = scratch
    side[:] = False
    sum_beyond[:] = 0.0
    for _ in range(n_step):
        direction = centres[1] - centres[0]
        # |x - c1| < |x - c0|  <=>  x (c1 - c0) > (|c1|^2 - |c0|^2) / 2
        half_way = 0.5 * (np.dot(centres[1], centres[1]) - np.dot(centres[0], centres[0]))
        np.dot(points, direction, projected)
        n_beyond, n_changed = _side_of(projected, half_way, side, changed)
        if n_beyond == 0 or n_beyond == n:  # equal centres, up to rounding errors
            return
        _add_changed(points, side, changed[:n_changed], sum_beyond)
        moved = 0.0
        for j in range(d):
            far = sum_beyond[j] / n_beyond
            near = (total[j] - sum_beyond[j]) / (n - n_beyond)
            moved += (near - centres[0, j]) ** 2 + (far - centres[1, j]) ** 2
            centres[0, j], centres[1, j] = near, far
        if not (moved > tolerance and n_changed > 0):
            return


@kernel
def two_means_from(points, first, uniform, n_step, tolerance):
    """Return the best two centres, float64 (2, d), at which 2-means from several starts comes to rest.

    Parameters
    ----------
    points : float64 (n, d)
        Not all of them alike.
    first : int64 (n_start,)
        The first centre of each start, by its number.
    uniform : float64 (n_start, n_candidate)
        Draws the points among which the second one is chosen.
    n_step : int
    tolerance : float
        Squared movement of the centres at which a start ends, of the mean variance of the points.
    """
    n, d = points.shape
    squares, apart, other = np.empty(n), np.empty(n), np.empty(n)
    total = np.zeros(d)
    length = 0.0
    for i in range(n):
        squares[i] = np.dot(points[i], points[i])
        length += squares[i]
        for j in range(d):
            total[j] += points[i, j]
    # mean variance: mean of squares less square of the mean
    limits = n_step, tolerance * (length - np.dot(total, total) / n) / n
    scratch = np.empty(n), np.zeros(n, np.bool_), np.empty(n + 1, np.int64), np.empty(d)
    centres, best, least = np.empty((2, d)), np.empty((2, d)), np.inf
    for start in range(first.size):
        second = _second_centre(points, squares, first[start], uniform[start], apart, other)
        copy_into(points[first[start]], centres[0])
        copy_into(points[second], centres[1])
        _lloyd(points, total, centres, limits, scratch)
        _distances(points, squares, centres[0], apart)
        _distances(points, squares, centres[1], other)
        left = 0.0
        for i in range(n):
            left += min(apart[i], other[i])
        if left < least:
            least = left
            copy_into(centres[0], best[0])
            copy_into(centres[1], best[1])
    return best
