r"""Sums whose bits depend neither on the order in which terms come nor on who added which.

Terms are numbered. They are added along the tree of aligned powers of two, whatever pieces of it are at hand:

      terms     0   1   2   3   4   5   6
                 \ /     \ /     \ /    |        neighbours are added as soon as both are there
                 0-1     2-3     4-5    |
                   \     /        |     |
                     0-3          |     |        what has no neighbour is added from left to right
                       \________ 0-5 __ 0-6

A part of the terms that lie together has at most two sums of each size, so that is all that need be sent of it.
"""

from __future__ import annotations

import numpy as np


class DyadicSum:
    """The sum of numbered arrays of one shape, as far as they were added.

    Examples
    --------
    >>> import numpy as np
    >>> one, other = DyadicSum(), DyadicSum()
    >>> one.add(0, np.array([0.5]))
    >>> one.add(2, np.array([0.25]))
    >>> other.add(1, np.array([2.0]))
    >>> one.merge(other)
    >>> one.total().tolist(), one.n_piece
    ([2.75], 2)
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], np.ndarray] = {}

    @property
    def n_piece(self) -> int:
        """How many arrays are held: sums of terms that lie together."""
        return len(self._found)

    def add(self, first: int, term: np.ndarray, size: int = 1) -> None:
        """Add a term, or the sum of an aligned power of two of terms; the array becomes the sum's own."""
        # the other half of an aligned block of twice the size differs in this one bit
        while (sibling := (first ^ size, size)) in self._found:
            term = self._found.pop(sibling) + term  # which of both comes first changes no bit
            first, size = min(first, sibling[0]), 2 * size
        assert first % size == 0
        assert (first, size) not in self._found, "each term is added once"
        self._found[first, size] = term

    def merge(self, other: DyadicSum) -> None:
        """Add all that another sum holds."""
        for (first, size), term in sorted(other._found.items()):
            self.add(first, term, size)

    def total(self) -> np.ndarray:
        """Return the sum of all terms, each of which is there.

        Raises
        ------
        ValueError
            Where one is missing.
        """
        total, end = None, 0
        for (first, size), term in sorted(self._found.items()):
            if first != end:
                raise ValueError(f"term {end} is missing")
            total, end = term if total is None else total + term, first + size
        if total is None:
            raise ValueError("there are no terms")
        return total
