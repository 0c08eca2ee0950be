"""What people look at when they say which type a column is, type by type, as numbers.

A column is described by its schema alone, what its name says of numbers (`type_names`) included. Which of the features
speak for which type, and how much, is the business of `type_probability`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesjpt.defaults import MAX_INTEGER_LEVELS, MAX_LABELS
from bayesjpt.queries.type_names import COUNT, MEASUREMENT, RANK, said_by_name
from bayesjpt.table.cells import number_of_text
from bayesjpt.table.ordered_labels import LETTERS, WORDS, KnownOrder, known_order
from bayesjpt.table.schema import Column
from bayesjpt.table.written_numbers import number_readings

NUMERIC = ("real", "positive", "interval", "count")
DISCRETE = ("ordinal", "nominal")

_YEARS = (1500.0, 2100.0)
"""Whole numbers between these are years: labels of periods, in an order."""

_LONG_CODE = re.compile(r"0\d{3,}")
"""A postcode such as 01067, in whose order nothing is ranked; 01 to 12 may be months."""

_LARGEST_COUNT = 1e9
"""Larger whole numbers are amounts or codes, and digits of their factorials would be lost."""

_MOST_DECIMALS = 4
"""Digits after the point up to which numbers are looked at for a common step."""

_ROUND = frozenset({"1.00", "2.50", "5.00"})
"""Digits of the steps in which people give amounts."""

_MOST_STEPS = 1e300
_MOST_DIGITS = 3
"""Digits beyond two from which more say no more."""

_LEAST_STEPS, _STEPS_FILLED = 4, 0.7
"""Different values, and the share that they are of all multiples of their step in between, from which numbers go in
steps: 0, 5, 10, ..., 50, but not the codes 10, 20, 80."""

_LEAST_SCALE, _LONGEST_SCALE = 4, 11
"""Values of a scale that people rate on: 1 to 4, 0 to 10. Three may as well be codes."""

_CALENDAR = frozenset(
    {(1.0, 31.0), (1.0, 12.0), (1.0, 7.0), (0.0, 6.0), (0.0, 23.0), (0.0, 59.0), (1.0, 4.0), (1.0, 53.0)}
)
"""Ends of days, months, weekdays, hours, minutes, quarters and weeks."""

_MOST_RARE = 3.0
"""Nats from which the largest value of a column counts as no rarer."""

_RARE = 3.0
"""What is rare: levels below zero, periods that are no levels, an unknown order of labels. The larger a
feature, the less the weights' prior holds it back."""

_RAREST = 6.0
"""Of columns of years there are four among those that the weights were fitted to."""

SCALE = "labels on a scale"

NAME = "its name"
_TYPES_OF_NAMES = {COUNT: ("count",), RANK: ("ordinal",), MEASUREMENT: ("real", "positive", "interval")}
"""One weight serves all words: that a name tells the type is learned from every kind of them. Attribute names are among
the features of Shah, Lacanlale, Kumar, Yang and Kumar (2021), Towards benchmarking feature type inference."""

_ON_A_SCALE_OF_TWO = 2.0
"""Two labels on a scale are ordered, though their column is binary: outweighs how common binary columns are."""

_MOST_KNOWN = 6.0
"""Of two labels on one scale the feature is 2, of four 4; more than eight count as eight: that all labels of a column
lie on one scale by accident is the less likely, the more there are."""


@dataclass(frozen=True)
class Described:
    """A column as people see it.

    Parameters
    ----------
    numbers : float64 (n_label,) or None
        What the labels of a category stand for, where all of them are numbers.
    order : KnownOrder or None
        The order of labels that are no numbers, where people know one.
    features : dict of str to dict of str to float
        For each type that the column may have: its features, by name.
    """

    numbers: np.ndarray | None
    order: KnownOrder | None
    features: dict[str, dict[str, float]]


def n_values(column: Column) -> int:
    """Return how many values a column has; of a schema by hand that does not count them, its labels."""
    return column.n_distinct or len(column.labels)


def describe(column: Column) -> Described:
    """Return the types that a column may have, with the features of each.

    Examples
    --------
    >>> stars = Column("stars", "integer", (0.0, math.inf), minimum=1.0, maximum=5.0, n_distinct=5)
    >>> list(describe(stars).features)
    ['real', 'positive', 'count', 'ordinal', 'nominal']
    >>> size = Column("size", "category", (0.0, 2.0), labels=("large", "medium", "small"), n_distinct=3)
    >>> describe(size).features["ordinal"]
    {'labels: ordinal': 3.0, 'labels on a scale': 3.16..., 'letters in a row': 0.0}
    """
    numbers = _numbers(column)
    order = known_order(column.labels) if column.base == "category" and numbers is None else None
    if column.base == "category" and numbers is None:
        if n_values(column) < 2:  # a single label says nothing of how many there are
            return Described(None, order, {"nominal": {}, "binary": {}})
        return Described(None, order, _of_two_labels(order) if n_values(column) == 2 else _of_labels(order))
    seen = _seen(column, numbers)
    return Described(
        numbers, None, _of_two_numbers(seen) if column.n_distinct == 2 else _of_numbers(column, seen, numbers)
    )


def least_number(column: Column) -> float:
    """Return the least number of a column, also of one whose labels are numbers; NaN of other labels."""
    if column.base != "category":
        return column.minimum
    numbers = _numbers(column)
    return math.nan if numbers is None else float(numbers.min())


@dataclass(frozen=True)
class _Seen:
    """What a column of numbers looks like.

    `step` is what all of them are multiples of, 0 where that is not known; `shares` those of its different values, from
    the least to the largest, where they are counted.
    """

    whole: bool
    least: float
    largest: float
    mean: float
    step: float = 0.0
    shares: np.ndarray | None = None


def _seen(column: Column, numbers: np.ndarray | None) -> _Seen:
    if numbers is not None:
        share = np.asarray(column.frequencies[: numbers.size])
        known = share.size == numbers.size and share.sum() > 0.0
        mean = float(share @ numbers / share.sum()) if known else math.nan
        in_order = share[np.argsort(numbers)] / share.sum() if known else None
        whole = bool((numbers % 1.0 == 0.0).all())
        return _Seen(whole, float(numbers.min()), float(numbers.max()), mean, _step(numbers), in_order)
    ends = (column.resolution, column.minimum, column.maximum)
    # whole numbers are read as real beside atoms, or on request; of others the most frequent grid may be that of 1
    amounts = bool(column.atoms) and all(x % 1.0 == 0.0 for x in ends)
    whole = column.base == "integer" or amounts
    step, in_order = 0.0 if whole else column.resolution, None
    if column.levels:
        levels = np.asarray(column.levels)
        kept = (levels >= column.minimum) & (levels <= column.maximum)  # codes for missing cells are left out
        share = np.asarray(column.frequencies)[kept]
        if kept.any():
            step, in_order = _step(levels[kept]), share / share.sum()
    return _Seen(whole, column.minimum, column.maximum, column.mean, step, in_order)


def _step(numbers: np.ndarray) -> float:
    """Return the largest decimal number of which all numbers are multiples; 0 where they have too many digits.

    Examples
    --------
    >>> _step(np.array([0.0, 10.0, 25.0])), _step(np.array([0.5, 1.0, 2.5])), _step(np.array([1.0, 2.0, 5.0]))
    (5.0, 0.5, 1.0)
    """
    for digit in range(_MOST_DECIMALS + 1):
        scaled = numbers * 10.0**digit
        if np.abs(scaled).max() < _LARGEST_COUNT and (np.abs(scaled - np.rint(scaled)) < 1e-6).all():
            return float(np.gcd.reduce(np.rint(scaled).astype(np.int64))) / 10.0**digit
    return 0.0


def _numbers(column: Column) -> np.ndarray | None:
    if column.base != "category" or column.dtype not in ("number", "text"):
        return None
    if any(_LONG_CODE.fullmatch(label) for label in column.labels):
        return None
    numbers = [number_of_text(label) for label in column.labels]
    if not numbers or any(number is None for number in numbers):
        return written_numbers(column.labels) if known_order(column.labels) is None else None
    made = np.array(numbers, np.float64)
    is_apart = np.isfinite(made).all() and np.unique(made).size == made.size  # 1.1 and 1.10 are no numbers
    return made if is_apart else None


def written_numbers(labels: Sequence[str]) -> np.ndarray | None:
    """Return what labels stand for, float64 (n_label,), where all are numbers in one notation; None otherwise.

    Examples
    --------
    >>> written_numbers(["0 %", "2,5 %", "10 %"]).tolist(), written_numbers(["A11", "A12"])
    ([0.0, 2.5, 10.0], None)
    """
    found = number_readings(labels)
    return found.values[0] if found is not None and len(found.values) == 1 else None


def _of_two_labels(order: KnownOrder | None) -> dict[str, dict[str, float]]:
    features = {name: {f"two values: {name}": 1.0} for name in ("nominal", "binary")}
    if order is not None and order.kind == WORDS:
        features["ordinal"] = {"two values: ordinal": 1.0, SCALE: _ON_A_SCALE_OF_TWO}
    return features


def _of_two_numbers(seen: _Seen) -> dict[str, dict[str, float]]:
    types = ["ordinal", "nominal", "binary"]
    if seen.whole and seen.least >= 0.0:
        types.insert(0, "count")
    features = {name: {f"two values: {name}": 1.0} for name in types}
    features["binary"]["next to each other"] = float(seen.largest - seen.least == 1.0)
    return features


def _of_labels(order: KnownOrder | None) -> dict[str, dict[str, float]]:
    known = 0.0 if order is None else min(2.0 * math.log2(order.n_known), _MOST_KNOWN)
    is_letters = order is not None and order.kind == LETTERS
    features = {"labels: ordinal": _RARE, SCALE: known * (not is_letters), "letters in a row": 0.5 * known * is_letters}
    return {"ordinal": features, "nominal": {}}


def _of_numbers(column: Column, seen: _Seen, numbers: np.ndarray | None) -> dict[str, dict[str, float]]:
    least, largest = seen.least, seen.largest
    features: dict[str, dict[str, float]] = {}
    if column.base != "category" and np.isfinite(column.support).all() and column.n_distinct > 1:
        features["interval"] = {"numbers: positive": 1.0}  # known ends make it one, whatever else it is
    else:
        features["real"] = {"numbers: real": 1.0, "below zero": float(least < 0.0)}
        if least >= 0.0:
            features["positive"] = {"numbers: positive": 1.0}
    years, thin = _are_years(seen), _thins_out(column, seen)
    for name in ("real", "positive", "interval"):
        if name in features:
            features[name] |= {"in steps": _RARE * float(_in_steps(column, seen)), "digits": _digits(seen, numbers)}
    if seen.whole and least >= 0.0 and largest <= _LARGEST_COUNT:
        usual = seen.mean if math.isfinite(seen.mean) else largest  # a single large number says little
        small = -0.5 * math.log(max(usual, 1.0) / MAX_INTEGER_LEVELS)
        features["count"] = {
            "numbers: count": 1.0,
            "small numbers": small,
            "thins out": thin,
            "from 0": float(least == 0.0),
        }
    if 1 < column.n_distinct <= MAX_LABELS:
        few = math.log(MAX_INTEGER_LEVELS / column.n_distinct)
        shared = {
            "few values": max(few, 0.0) if years else few,  # periods, however many
            "from 1": float(seen.whole and least == 1.0),
            "years": _RAREST * float(years),
            "levels below zero": _RARE * float(least < 0.0) * (1.0 + 2.0 * (column.n_distinct > MAX_INTEGER_LEVELS)),
            "levels not whole": float(not seen.whole),
        }
        features |= {name: {f"numbers: {name}": 1.0, **shared} for name in DISCRETE}
        features["nominal"]["few codes"] = few
        features["ordinal"]["scale"] = _RARE * float(_is_scale(column, seen)) * (1.0 - thin / _MOST_RARE)
        features["ordinal"]["calendar"] = float(seen.whole and (least, largest) in _CALENDAR)
    for name in _TYPES_OF_NAMES.get(said_by_name(column.name), ()):
        if name in features:
            features[name][NAME] = 1.0
    return features


def _are_years(seen: _Seen) -> bool:
    return seen.whole and _YEARS[0] <= seen.least and seen.largest <= _YEARS[1]


def _in_steps(column: Column, seen: _Seen) -> bool:
    """Return whether numbers go in round steps other than 1, as percentages and prices do and codes do not."""
    if seen.step in (0.0, 1.0) or column.n_distinct < _LEAST_STEPS:
        return False
    filled = column.n_distinct / (1.0 + (seen.largest - seen.least) / seen.step)
    return f"{seen.step:.2e}"[:4] in _ROUND and filled > _STEPS_FILLED


def _is_scale(column: Column, seen: _Seen) -> bool:
    """Return whether the values are all whole numbers from 0 or 1 to the end of a scale that people rate on."""
    n = column.n_distinct
    inside = seen.step == 1.0 and seen.least in (0.0, 1.0) and seen.largest - seen.least == n - 1.0
    return inside and _LEAST_SCALE <= n <= _LONGEST_SCALE


def _thins_out(column: Column, seen: _Seen) -> float:
    """Return by how many nats the largest value is rarer than all are on average: counts have no end, scales do.

    Counts are commonest near their beginning, 0 or 1. Of values that begin elsewhere it is the less, the nearer the
    commonest is to the end: ratings that are given as 3 to 9 and mostly as 6 thin out on both sides.
    """
    if seen.shares is None or seen.shares.size < 2:
        return 0.0
    rare = min(max(-math.log(seen.shares[-1] * max(column.n_distinct, 1)), 0.0), _MOST_RARE)
    peak = 0.0 if seen.least in (0.0, 1.0) else float(seen.shares.argmax()) / (seen.shares.size - 1.0)
    return rare * (1.0 - peak)


def _digits(seen: _Seen, numbers: np.ndarray | None) -> float:
    """Return by how many digits numbers that are not whole have more than two; codes such as .25, .5, 1 have few."""
    if seen.whole:
        return 0.0
    if numbers is None:
        ratio = max(abs(seen.least), abs(seen.largest), seen.step) / seen.step
        n = 1 + math.floor(math.log10(min(ratio, _MOST_STEPS)))
    else:
        n = max(len(f"{abs(x):.6f}".replace(".", "").strip("0")) for x in numbers.tolist())
    return float(min(max(n - 2, 0), _MOST_DIGITS))
