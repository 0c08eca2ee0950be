"""Connected components of columns, found edge by edge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Components(NamedTuple):
    """Which component each column belongs to.

    Attributes
    ----------
    part_of : int64 (n_column,)
        Components are numbered by their first columns, from 0.
    """

    part_of: np.ndarray

    @classmethod
    def apart(cls, n_column: int) -> Components:
        """Return every column by itself."""
        return cls(np.arange(n_column))

    @property
    def n_part(self) -> int:
        return int(self.part_of.max()) + 1

    def joined(self, first: np.ndarray, second: np.ndarray) -> Components:
        """Return the components when columns first[k] and second[k] are joined, too, for each k.

        Each component takes the least number that an edge brings it, until none does (Shiloach and Vishkin, 1982, An
        O(log n) parallel connectivity algorithm).
        """
        number = self.part_of.copy()
        while first.size:
            least = np.minimum(number[first], number[second])
            if (number[first] == number[second]).all():
                break
            taken = np.arange(number.size)
            np.minimum.at(taken, number[first], least)
            np.minimum.at(taken, number[second], least)
            while (taken[taken] != taken).any():
                taken = taken[taken]
            number = taken[number]
        return Components(np.unique(number, return_inverse=True)[1])


def components(together: np.ndarray) -> Components:
    """Return the components of columns of which some are together, bool (n_column, n_column), symmetric.

    Examples
    --------
    >>> together = np.eye(4, dtype=bool)
    >>> together[0, 2] = together[2, 0] = True
    >>> components(together).part_of.tolist()
    [0, 1, 0, 2]
    """
    return Components.apart(len(together)).joined(*np.nonzero(np.triu(together, 1)))
