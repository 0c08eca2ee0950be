"""Ragged simplexes, one after the other along one axis: offsets, and symbolic reductions over each segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

SMALLEST_WEIGHT = 1e-300
"""Weights are kept above it, so that their logarithm stays finite."""


class Segments:
    """Offsets of the segments of a vector; hashable, with a short repr, so that it can be an op's property.

    Parameters
    ----------
    ptr : int (n_segment + 1,)
        Segment k is ``ptr[k]:ptr[k + 1]``; none is empty.
    """

    def __init__(self, ptr):
        self.ptr = np.asarray(ptr, np.int64)
        self.ptr.flags.writeable = False

    def __eq__(self, other):
        return isinstance(other, Segments) and np.array_equal(self.ptr, other.ptr)

    def __hash__(self):
        return hash(self.ptr.tobytes())

    def __repr__(self):
        return f"Segments({self.ptr.size - 1} over {self.ptr[-1]})"

    @property
    def member(self) -> np.ndarray:
        """int (n,): the segment of each entry."""
        return np.repeat(np.arange(self.ptr.size - 1), np.diff(self.ptr))

    def sum(self, x) -> Any:
        """Return the symbolic sums of x over segments, along its last axis."""
        zeros = pt.zeros((*[x.shape[i] for i in range(x.type.ndim - 1)], self.ptr.size - 1))
        return pt.inc_subtensor(zeros[..., self.member], x)

    def max(self, x) -> Any:
        """Return the symbolic maxima of x over segments, along its last axis."""
        length = np.diff(self.ptr)
        # short segments repeat their last entry: that changes no maximum
        within = np.minimum(np.arange(length.max(initial=1)), length[:, None] - 1)
        return pt.max(x[..., self.ptr[:-1, None] + within], axis=-1)
