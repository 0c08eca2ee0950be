"""What people look at when they say which type a column is, type by type, as numbers.

A column is described by its schema alone. Which of the features speak for which type, and how much, is the business of
`type_probability`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from bayesjpt.defaults import MAX_INTEGER_LEVELS, MAX_LABELS
from bayesjpt.table.cells import number_of_text
from bayesjpt.table.schema import Column

NUMERIC = ("real", "positive", "interval", "count")
DISCRETE = ("ordinal", "nominal")

_YEARS = (1500.0, 2100.0)
"""Whole numbers between these are years: labels of periods, in an order."""

_LARGEST_COUNT = 1e9
"""Larger whole numbers are amounts or codes, and digits of their factorials would be lost."""

_WORD = re.compile(r"[a-z]+|\d+")

_SCALE_WORDS = frozenset(
    _WORD.findall(
        """
        low small short few little never none poor weak cold bad some medium med middle moderate average fair normal
        high big large long tall many more often always good excellent strong hot light heavy mild severe slow fast
        young old primary secondary tertiary first second third fourth fifth junior senior
        jan feb mar apr may jun jul aug sep oct nov dec january february march april june july august september october
        november december mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday
        """
    )
)
"""Words of scales: sizes, degrees, frequencies, qualities, ranks, months and days."""


@dataclass(frozen=True)
class Described:
    """A column as people see it.

    Parameters
    ----------
    numbers : float64 (n_label,) or None
        What the labels of a category stand for, where all of them are numbers.
    features : dict of str to dict of str to float
        For each type that the column may have: its features, by name.
    """

    numbers: np.ndarray | None
    features: dict[str, dict[str, float]]


def describe(column: Column) -> Described:
    """Return the types that a column may have, with the features of each.

    Examples
    --------
    >>> stars = Column("stars", "integer", (0.0, math.inf), minimum=1.0, maximum=5.0, n_distinct=5)
    >>> list(describe(stars).features)
    ['real', 'positive', 'count', 'ordinal', 'nominal']
    >>> size = Column("size", "category", (0.0, 2.0), labels=("large", "medium", "small"), n_distinct=3)
    >>> describe(size).features["ordinal"]
    {'labels: ordinal': 1.0, 'words of a scale': 1.0}
    """
    numbers = _numbers(column)
    if column.base == "category":
        least, largest = (float(numbers.min()), float(numbers.max())) if numbers is not None else (math.nan, math.nan)
        whole = numbers is not None and bool((numbers % 1.0 == 0.0).all())
    else:
        least, largest = column.minimum, column.maximum
        whole = column.base == "integer" or all(x % 1.0 == 0.0 for x in (column.resolution, least, largest))
    if column.n_distinct <= 2:
        return Described(numbers, _of_two(math.isfinite(least), whole and least >= 0.0))
    if not math.isfinite(least):
        return Described(None, _of_labels(column))
    return Described(numbers, _of_numbers(column, whole, least, largest))


def _numbers(column: Column) -> np.ndarray | None:
    if column.base != "category" or column.dtype not in ("number", "text"):
        return None
    numbers = [number_of_text(label) for label in column.labels]
    is_number = bool(numbers) and all(number is not None and math.isfinite(number) for number in numbers)
    return np.array(numbers, np.float64) if is_number else None


def _of_two(is_number: bool, is_count: bool) -> dict[str, dict[str, float]]:
    types = ["count"] * is_count + ["ordinal"] * is_number + ["nominal", "binary"]
    return {name: {f"two values: {name}": 1.0} for name in types}


def _of_labels(column: Column) -> dict[str, dict[str, float]]:
    known = sum(_is_of_scale(label) for label in column.labels) / max(len(column.labels), 1)
    return {"ordinal": {"labels: ordinal": 1.0, "words of a scale": 2.0 * known - 1.0}, "nominal": {}}


def _is_of_scale(label: str) -> bool:
    words = _WORD.findall(label.lower())
    return any(word.isdigit() or word in _SCALE_WORDS for word in words)


def _of_numbers(column: Column, whole: bool, least: float, largest: float) -> dict[str, dict[str, float]]:
    features: dict[str, dict[str, float]] = {}
    if column.base != "category" and np.isfinite(column.support).all():
        features["interval"] = {"numbers: positive": 1.0}  # known ends make it one, whatever else it is
    else:
        features["real"] = {"numbers: real": 1.0, "below zero": float(least < 0.0)}
        if least >= 0.0:
            features["positive"] = {"numbers: positive": 1.0}
    if whole and least >= 0.0 and largest <= _LARGEST_COUNT:
        small = -0.5 * math.log(max(largest, 1.0) / MAX_INTEGER_LEVELS)
        features["count"] = {"numbers: count": 1.0, "small numbers": small, "from 0": float(least == 0.0)}
    if column.n_distinct <= MAX_LABELS:
        shared = {
            "few values": math.log(MAX_INTEGER_LEVELS / column.n_distinct),
            "from 1": float(whole and least == 1.0),
            "years": float(whole and _YEARS[0] <= least and largest <= _YEARS[1]),
        }
        features |= {name: {f"numbers: {name}": 1.0, **shared} for name in DISCRETE}
    return features
