"""Copying entries, in compiled code."""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel


@kernel
def copy_into(source, out):
    """Copy an array of one axis into another, from the first entry on, to the end of the shorter.

    ``out[:] = source`` takes a division an entry, and a second of compilation for the message about shapes that differ.
    """
    for i in range(min(source.size, out.size)):
        out[i] = source[i]


@kernel
def with_room(array, size):
    """Return the array where it has so many entries, or a longer one that begins as it does, twice as large."""
    if size <= array.size:
        return array
    out = np.empty(2 * size, array.dtype)
    copy_into(array, out)
    return out
