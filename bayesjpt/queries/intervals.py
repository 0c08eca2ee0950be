"""Sets of values of one column: closed intervals between floats, ascending and apart. Knows no events and no circuits.

An open end is the neighbouring float (real columns) or the neighbouring integer (integer columns, codes of labels), so
complements of closed intervals are closed intervals again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from bayesjpt.table.schema import Column

type Intervals = tuple[tuple[float, float], ...]
"""(lowest, highest) of each interval, ascending; between two of them lies at least one value."""

NOTHING: Intervals = ()


@dataclass(frozen=True)
class Domain:
    """The values that a column may take: all floats, or all integers, from `lo` to `hi`."""

    lo: float
    hi: float
    whole: bool

    @property
    def everything(self) -> Intervals:
        return ((self.lo, self.hi),)

    def after(self, value: float) -> float:
        """Return the next value."""
        above = math.nextafter(value, math.inf)
        return max(value + 1.0, above) if self.whole else above

    def before(self, value: float) -> float:
        """Return the value before."""
        return 0.0 - self.after(-value)  # no negative zero

    def canonical(self, pieces: Sequence[tuple[float, float]]) -> Intervals:
        """Return the union of pieces within the domain; neighbours are joined, ends without a neighbour are infinite.

        Pieces with their ends exchanged are empty, and so are infinite points. On whole domains ends must be whole.
        """
        kept: list[tuple[float, float]] = []
        for lo, hi in sorted(pieces):
            lo, hi = max(lo, self.lo), min(hi, self.hi)
            if lo > hi or lo == math.inf or hi == -math.inf:
                continue
            if kept and lo <= self.after(kept[-1][1]):
                kept[-1] = (kept[-1][0], max(hi, kept[-1][1]))
            else:
                kept.append((lo, hi))
        if kept and self.before(kept[0][0]) == -math.inf:
            kept[0] = (self.lo, kept[0][1])
        if kept and self.after(kept[-1][1]) == math.inf:
            kept[-1] = (kept[-1][0], self.hi)
        return tuple(kept)

    def union(self, first: Intervals, second: Intervals) -> Intervals:
        """Return the values in one of two sets at least."""
        return self.canonical([*first, *second])

    def complement(self, intervals: Intervals) -> Intervals:
        """Return the values that are not in a set."""
        pieces = []
        start = self.lo
        for lo, hi in intervals:
            pieces.append((start, self.before(lo)))
            start = self.after(hi)
        return self.canonical([*pieces, (start, self.hi)])


def domain_of(column: Column) -> Domain:
    """Return the values that a column may take under a model, which may be more than its support.

    Families of the whole line may stand in the dictionary of a real column with a narrower support, and families of all
    counts in that of an integer column. What they give to values that training never showed belongs to events.
    """
    if column.base == "category":
        return Domain(0.0, column.n_label - 1.0, True)
    if column.base == "integer":
        return Domain(0.0 if column.support[0] >= 0.0 else -math.inf, math.inf, True)
    return Domain(-math.inf, math.inf, False)


def intersection(first: Intervals, second: Intervals) -> Intervals:
    """Return the values in both of two sets."""
    kept = []
    i = j = 0
    while i < len(first) and j < len(second):
        lo, hi = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if lo <= hi:
            kept.append((lo, hi))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return tuple(kept)


def holds(intervals: Intervals, value: float) -> bool:
    """Return whether a value is in a set.

    Examples
    --------
    >>> [holds(((0.0, 1.0), (3.0, 3.0)), value) for value in (1.0, 2.0, 3.0)]
    [True, False, True]
    """
    position = bisect_right(intervals, (value, math.inf)) - 1
    return position >= 0 and value <= intervals[position][1]
