"""Which values a missing cell may have: labels of the training table, and numbers in the support of their column."""

from __future__ import annotations

import numpy as np

from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.written_dates import DateNotation

_BEYOND = 0.01
"""Share of rows that is expected beyond the last of a few whole numbers, where it is no end of the column."""


def possible_values(schema: Schema, *, keep_sign: bool = True) -> np.ndarray:
    """Return float64 (2, n_column): the least and largest value that a cell of each column may have, codes of labels.

    A likelihood of the whole line may go beyond what its column can be, and "other" is no label. `keep_sign`:
    nothing lies above zero where no training value does.
    """
    numbers = np.array([_ends_of_numbers(column, keep_sign) for column in schema]).T
    return np.where(np.isfinite(highest_label(schema)), seen_labels(schema), numbers)


def _ends_of_numbers(column: Column, keep_sign: bool) -> tuple[float, float]:
    """Return the support, up to 0 where no training value is above, and no farther than a value that ends the column.

    That is an atom that is the least or the largest value: the 100 of percentages, or what was cut off there; and the
    first or last of a few whole numbers that do not thin out towards it, as the marks 1 to 5. Times of day end before
    24:00.
    """
    lo, hi = column.support
    if (
        keep_sign and column.dtype != "datetime" and column.minimum < 0.0 and column.maximum <= 0.0
    ):  # 1970 is no last date
        hi = min(hi, 0.0)
    if isinstance(column.notation, DateNotation) and column.notation.day_length is not None:
        hi = min(hi, column.notation.day_length - column.resolution)  # a time beyond midnight is one of the morning
    if column.minimum < column.maximum and column.minimum in column.atoms:
        lo = max(lo, column.minimum)
    if column.minimum < column.maximum and column.maximum in column.atoms:
        hi = min(hi, column.maximum)
    if _ends_at(column.levels, column.frequencies):
        lo = max(lo, column.levels[0])
    if _ends_at(column.levels[::-1], column.frequencies[::-1]):
        hi = min(hi, column.levels[-1])
    return lo, hi


def _ends_at(levels: tuple[float, ...], shares: tuple[float, ...]) -> bool:
    """Return whether the first of some whole numbers ends a column: it is too frequent for none to lie beyond.

    Where shares are log-concave, as those of most distributions of counts, that beyond is about first^2 / second.
    """
    return len(levels) > 1 and abs(levels[0] - levels[1]) == 1.0 and shares[0] ** 2 >= _BEYOND * shares[1]


def seen_labels(schema: Schema) -> np.ndarray:
    """Return float64 (2, n_column): least and largest code of each column's training labels; none of numbers."""
    labels = highest_label(schema)
    return np.array([np.where(np.isfinite(labels), 0.0, -np.inf), labels])


def highest_label(schema: Schema) -> np.ndarray:
    """Return float64 (n_column,): the last code of each column's training labels, infinite for numbers."""
    return np.array([len(column.labels) - 1.0 if column.base == "category" else np.inf for column in schema])
