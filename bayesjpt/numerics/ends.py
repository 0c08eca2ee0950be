"""Ends of intervals in units of z: midway between neighbouring floats where the space between them has a probability.

      x       ...   a              b   ...          neighbouring floats, far from 0 for the column's resolution
      x <= a  --------------|
      x >= b                |--------------         both ends are the same number: nothing lies between

Where a column's numbers are many floats apart the ends are the numbers themselves. So a single number keeps a
probability of exactly 0 there, and has that of its own stretch where there are no numbers between it and the next.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel

_LARGEST_GAP = 1e-10
"""Resolutions, or parts of the smaller one, between two floats that count as nothing: no leaf has more than 1.4e-10 of
its probability there."""
_SMALLEST_FAR = 2.0**51 * _LARGEST_GAP
"""Resolutions from 0 below which no gap is as large: two floats are at most 2^-52 of the larger one apart."""

_FIRST = 5e-324
"""The smallest float above 0."""
_SMALLEST_NEAR = _FIRST / _LARGEST_GAP
"""Floats nearer to 0 lie so far apart for their size that a gamma or lognormal has a probability between them."""


@kernel
def _between(a, b, own, units):
    """Return where the values up to a float a end and those from the next, b, begin; `own` where nothing lies between.

    Values above 0 begin there, and those below end there: a distribution may have all its mass below the first float.
    """
    offset, scale, resolution = units
    if a == 0.0 or b == 0.0:
        return (0.0 - offset) / scale
    if b - a > _LARGEST_GAP * min(resolution, abs(a), abs(b)):
        # halves in units of z: between two neighbouring floats there is none for their middle
        return 0.5 * ((a - offset) / scale) + 0.5 * ((b - offset) / scale)
    return (own - offset) / scale


@kernel
def _has_neighbours(x, resolution):
    """Return whether something may lie between x and the floats beside it."""
    return resolution > 0.0 and (abs(x) < _SMALLEST_NEAR or _SMALLEST_FAR * resolution < abs(x) < np.inf)


@kernel
def upper_end(x, units):
    """Return where the values up to x end, in units of z.

    Parameters
    ----------
    x : float
        In the user's units.
    units : tuple of float
        Offset and scale, z = (x - offset) / scale, and the column's resolution; 0 where a value is a point: of atoms,
        integers, labels.

    Examples
    --------
    >>> far = 2.0**60
    >>> upper_end(far, (far, 256.0, 1.0)), lower_end(far + 256.0, (far, 256.0, 1.0))
    (0.5, 0.5)
    >>> upper_end(3.0, (1.0, 2.0, 0.1)), lower_end(3.0, (1.0, 2.0, 0.1))
    (1.0, 1.0)
    """
    offset, scale, resolution = units
    if _has_neighbours(x, resolution):
        return _between(x, np.nextafter(x, np.inf), x, units)
    return (x - offset) / scale


@kernel
def lower_end(x, units):
    """Return where the values from x begin, in units of z: `upper_end` of the float before it, to the last bit."""
    offset, scale, resolution = units
    if _has_neighbours(x, resolution):
        return _between(np.nextafter(x, -np.inf), x, x, units)
    return (x - offset) / scale


@kernel
def fill_ends(lower, upper, units, lo, hi):
    """Fill the ends lo, hi of closed intervals lower ... upper, all float64 (n,); `units` are arrays of that length."""
    offset, scale, resolution = units
    for i in range(lo.size):
        one = offset[i], scale[i], resolution[i]
        lo[i], hi[i] = lower_end(lower[i], one), upper_end(upper[i], one)
