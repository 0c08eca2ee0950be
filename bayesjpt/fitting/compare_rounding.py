"""Numbers and dates that two tables recorded to different digits, at the digits of the coarser one.

Rounded numbers lie on points that hardly any other number hits, which is a difference with certainty and tells nothing
of what was measured.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from bayesjpt.fitting.compare_cells import ColumnCells, percent

_LEAST_VALUES = 5
"""Different values that either table must have at the coarser digits: rounded to 0 and 1, anything is alike."""

_CHANCE = 0.01
"""Probability up to which values are not on a coarser grid by chance, if they were like those of the other table."""

_TOLERANCE = 1e-6
"""Steps of a grid; distances to its points, and to what lies halfway, that are rounding errors of float64."""

_LARGEST_STEP = 2.0**53
"""From here on float64 are at least one step apart."""

_LARGEST_DENOMINATOR = 10**9
"""Of a width as a fraction: 0.1 is 1/10, and 3/10 the float64 that is written 0.3, as 3 * 0.1 is not."""

_DAY_PARTS = {1: "the day", 24: "the hour", 1440: "the minute", 86_400: "the second", 86_400_000: "the millisecond"}


class AtOneRounding(NamedTuple):
    """A column of both tables as it is compared, and in words to what it was recorded; none where nothing was rounded.

    Parameters
    ----------
    first, second : ColumnCells
    recorded : str
        To what either table recorded it: ``recorded to 0.1 / 0.001``.
    remark : str
        The same, at what it is compared, and how many values of the finer table lie between.
    """

    first: ColumnCells
    second: ColumnCells
    recorded: str = ""
    remark: str = ""


def at_one_rounding(first: ColumnCells, second: ColumnCells) -> AtOneRounding:
    """Return a column of both tables at the digits of the coarser one, where rounding explains what these are.

    Parameters
    ----------
    first, second : ColumnCells
        In one language.

    Notes
    -----
    The finer one is rounded where the wider grid consists of every k-th point of the other, at least `_LEAST_VALUES`
    values are left in both, and the coarser values would hardly be on their grid by chance: if f is the share of the
    finer values, other than 0, that are, f^n is at most `_CHANCE` for n coarser ones. Whether halves were rounded up
    or to even, or digits were cut off, nobody tells; the rule under which the two are most alike is taken.
    """
    from bayesjpt.queries.two_sample import numbers_log_factor

    both, unchanged = (first, second), AtOneRounding(first, second)
    if first.values.dtype == object or not (first.values.size and second.values.size):
        return unchanged
    widths = [_width(cells) for cells in both]
    k = int(np.argmax(widths))
    wide, narrow = widths[k], widths[1 - k]
    if not _is_multiple(wide, narrow):
        return unchanged
    if max(float(np.abs(cells.values).max()) for cells in both) / _LARGEST_STEP >= wide:
        return unchanged  # float64 there lie further apart than points of the grid
    coarse, fine = both[k], both[1 - k]
    on_grid = _is_on_grid(fine.values[fine.values != 0.0], wide)
    if on_grid.size and on_grid.mean() ** np.count_nonzero(coarse.values) > _CHANCE:
        return unchanged
    is_date = fine.column.dtype == "datetime"
    at_grid = _roundings(coarse.values, wide, is_date=is_date)[0]
    rounded = _roundings(fine.values, wide, is_date=is_date)
    if min(np.unique(at_grid).size, np.unique(rounded[0]).size) < _LEAST_VALUES:
        return unchanged
    best = min(rounded, key=lambda values: numbers_log_factor(at_grid, values))
    made = replace(coarse, values=at_grid), replace(fine, values=best)
    recorded = f"recorded to {' / '.join(_width_text(width, is_date=is_date) for width in widths)}"
    between = percent(1.0 - float(on_grid.mean())) if on_grid.size else "none"
    remark = (
        f"{recorded}, compared at {_width_text(wide, is_date=is_date)}; {between} of the values of the "
        f"{'second' if k == 0 else 'first'} lie between"
    )
    return AtOneRounding(made[k], made[1 - k], recorded, remark)


def _width(cells: ColumnCells) -> float:
    """Return the width of the grid of what a table holds, but for atoms; 0 for none.

    Not that of the schema: whole numbers may be recorded to tens, and rows may be read under the schema of others.
    """
    from bayesjpt.table.resolution import day_grid, grid

    distinct, counts = np.unique(cells.values, return_counts=True)
    is_other = ~np.isin(distinct, cells.column.atoms)
    if is_other.any():
        distinct, counts = distinct[is_other], counts[is_other]
    if cells.column.dtype == "datetime":
        return day_grid(distinct)
    return grid(distinct, counts) or 0.0


def _is_multiple(wide: float, narrow: float) -> bool:
    """Return whether each point of the wide grid is one of the narrow one, and not the other way round."""
    if not narrow:
        return wide > 0.0
    if wide / _LARGEST_STEP >= narrow:
        return False
    steps = wide / narrow
    return steps > 1.5 and abs(steps - round(steps)) <= _TOLERANCE * steps


def _is_on_grid(values: np.ndarray, width: float) -> np.ndarray:
    steps = values / width
    return np.abs(steps - np.rint(steps)) <= _TOLERANCE


def _roundings(values: np.ndarray, width: float, *, is_date: bool) -> list[np.ndarray]:
    """Return values at the nearest point, halves away from 0; the same, halves to even; and cut off."""
    steps = values / width
    # a number loses digits, a moment the part of its day, before 1970 too
    sign, size = (1.0, steps) if is_date else (np.sign(steps), np.abs(steps))
    below = np.floor(size + _TOLERANCE)
    rest = size - below
    nearest = below + (rest > 0.5 - _TOLERANCE)
    even = np.where(np.abs(rest - 0.5) <= _TOLERANCE, below + below % 2.0, nearest)
    # a quotient of whole numbers is the float64 next to it, as a number that is read is
    exact = Fraction(width).limit_denominator(_LARGEST_DENOMINATOR)
    up, down = (float(exact.numerator), float(exact.denominator)) if exact else (width, 1.0)
    return [sign * number * up / down + 0.0 for number in (nearest, even, below)]


def _width_text(width: float, *, is_date: bool) -> str:
    if not width:
        return "all digits"
    if not is_date:
        return f"{width:g}"
    return _DAY_PARTS.get(round(1.0 / width), "the microsecond")
