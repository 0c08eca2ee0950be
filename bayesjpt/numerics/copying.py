"""Copying entries, in compiled code."""

from __future__ import annotations

from bayesjpt.numerics.jit import kernel


@kernel
def copy_into(source, out):
    """Copy an array of one axis into another, from its first entry on.

    ``out[:] = source`` takes a division an entry, and a second of compilation for the message about shapes that differ.
    """
    for i in range(source.size):
        out[i] = source[i]
