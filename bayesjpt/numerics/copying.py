"""Copying entries, in compiled code."""

from __future__ import annotations

from bayesjpt.numerics.jit import kernel


@kernel
def copy_into(source, out):
    """Copy an array of one axis into another, from the first entry on, to the end of the shorter.

    ``out[:] = source`` takes a division an entry, and a second of compilation for the message about shapes that differ.
    """
    for i in range(min(source.size, out.size)):
        out[i] = source[i]
