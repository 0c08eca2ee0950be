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
"""Resolutions between two floats that count as nothing: no leaf has more than 1.4e-10 of its probability there."""
_SMALLEST_FAR = 2.0**51 * _LARGEST_GAP
"""Resolutions from 0 below which no gap is as large: two floats are at most 2^-52 of the larger one apart."""

_FIRST = 5e-324
"""The smallest float above 0."""


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
    z = (x - offset) / scale
    if resolution > 0.0 and _SMALLEST_FAR * resolution < abs(x) < np.inf:
        beyond = np.nextafter(x, np.inf)
        if beyond - x > _LARGEST_GAP * resolution:
            # halves in units of z: between two neighbouring floats there is none for their middle
            z = 0.5 * z + 0.5 * ((beyond - offset) / scale)
    return z


@kernel
def lower_end(x, units):
    """Return where the values from x begin, in units of z: `upper_end` of the float before it, to the last bit.

    Values above 0 begin there: a distribution may have all its mass below the first float.
    """
    offset, scale, resolution = units
    if x == _FIRST and resolution > 0.0:
        x = 0.0
    z = (x - offset) / scale
    if resolution > 0.0 and _SMALLEST_FAR * resolution < abs(x) < np.inf:
        before = np.nextafter(x, -np.inf)
        if x - before > _LARGEST_GAP * resolution:
            z = 0.5 * ((before - offset) / scale) + 0.5 * z
    return z


@kernel
def fill_ends(lower, upper, units, lo, hi):
    """Fill the ends lo, hi of closed intervals lower ... upper, all float64 (n,); `units` are arrays of that length."""
    offset, scale, resolution = units
    for i in range(lo.size):
        one = offset[i], scale[i], resolution[i]
        lo[i], hi[i] = lower_end(lower[i], one), upper_end(upper[i], one)
