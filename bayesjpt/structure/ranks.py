"""Numbers as 16-bit codes: ranks of distinct values, or of buckets that hold about equally many rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.impurity import MISSING

MAX_CODES = MISSING
"""Codes 0 ... 65,534; the last 16-bit number stands for missing cells."""


class Ranks(NamedTuple):
    """The codes of one column of numbers.

    Parameters
    ----------
    code : uint16 (n_row,)
        Ascending with the number; `MISSING` where there is none.
    least, largest : float64 (n_code,)
        The least and the largest number of each code; the same where every distinct number has a code of its own.
    """

    code: np.ndarray
    least: np.ndarray
    largest: np.ndarray

    @property
    def exact(self) -> bool:
        """Whether every distinct number has a code of its own."""
        return bool((self.least == self.largest).all())


def rank_codes(values: np.ndarray, observed: np.ndarray, max_codes: int = MAX_CODES) -> Ranks:
    """Return the codes of a column.

    Parameters
    ----------
    values, observed : float64 (n_row,), bool (n_row,)
    max_codes : int
        Up to so many distinct numbers are exact; above, they share codes that hold about equally many rows. A number
        is never divided between two codes.
    """
    code = np.full(values.size, MISSING, np.uint16)
    distinct, inverse, counts = np.unique(values[observed], return_inverse=True, return_counts=True)
    if distinct.size <= max_codes:
        code[observed] = inverse
        return Ranks(code, distinct, distinct)
    # by the middle of a number's rows: a number falls into one bucket, however many rows it has
    middle = np.cumsum(counts) - 0.5 * counts
    bucket = (middle * (max_codes / counts.sum())).astype(np.int64)
    first = np.flatnonzero(np.diff(bucket, prepend=-1))
    last = np.append(first[1:], distinct.size) - 1
    number = np.repeat(np.arange(first.size), last - first + 1)
    code[observed] = number[inverse]
    return Ranks(code, distinct[first], distinct[last])
