"""Events over a schema with every kind of column: strategies, and membership row by row from the definition."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.queries.event import And, Between, Comparison, Event, Membership, Not, Or, all_of, any_of, none_of
from bayesjpt.table.schema import Column, Schema
from tests import examples as ex

ATOMIC = replace(ex.REAL, name="with atoms", atoms=(0.0, 5.0), atom_frequencies=(0.7, 0.3))
DAY = Column(name="day", base="real", support=(0.0, np.inf), dtype="datetime")
SMOKER = Column(name="smoker", base="category", support=(0.0, 2.0), labels=("False", "True"), dtype="boolean")
GRADE = Column(name="grade", base="category", support=(0.0, 3.0), labels=("1", "2.5", "10"), dtype="number")
VISIT = Column(
    name="visit", base="category", support=(0.0, 2.0), labels=("2020-01-01", "2020-02-01T12:00"), dtype="datetime"
)
COLOR = Column(name="color", base="category", support=(0.0, 3.0), labels=("red", "rosé", "other"), dtype="text")
BALANCE = Column(name="balance", base="integer", support=(-9.0, 9.0), minimum=-3.0, maximum=4.0)
COLUMNS = (*ex.COLUMNS, ATOMIC, DAY, SMOKER, GRADE, VISIT, COLOR, BALANCE)
SCHEMA = Schema(COLUMNS)

_NUMBERS = (-3.0, 0.0, 0.1, 1.0, 2.0, 2.5, 5.0)
_DATES = ("2019-12-31", "2020-01-01", "2020-01-01T06:30", "2020-02-01T12:00")
_LABELS = {
    "label": ("a", "b", "c", "other"),
    "flag": ("no", "yes", "other"),
    "smoker": (True, False),
    "grade": (1, 2.5, 10),
    "visit": VISIT.labels,
    "color": ("red", "rosé", "other", "<other>"),
}
_RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def _ordered_values(column: Column) -> tuple | None:
    if column.dtype == "datetime":
        return _DATES
    if column.base == "category":
        return (0.0, 1.0, 2.0, 2.5, 11.0) if column is GRADE else None
    return _NUMBERS


@st.composite
def comparisons(draw, columns: tuple[Column, ...] = COLUMNS) -> Event:
    """Draw a comparison, range or set over one of some columns."""
    column = draw(st.sampled_from(columns))
    c = bj.col(column.name)
    ordered = _ordered_values(column)
    single = st.sampled_from(_LABELS.get(column.name, ordered))
    kinds = ["==", "!=", "in"] + ([] if ordered is None else ["<", "<=", ">=", ">", "between", "between"])
    kind = draw(st.sampled_from(kinds))
    if kind == "in":
        return c.isin(draw(st.lists(single, max_size=4)))
    if kind == "between":
        lo, hi = sorted(draw(st.tuples(st.sampled_from(ordered), st.sampled_from(ordered))))
        return c.between(lo, hi, inclusive=draw(st.sampled_from(["both", "left", "right", "neither"])))
    return _RELATIONS[kind](c, draw(single if kind in ("==", "!=") else st.sampled_from(ordered)))


def events(columns: tuple[Column, ...] = COLUMNS, max_leaves: int = 8, leaves=None) -> st.SearchStrategy[Event]:
    """Draw comparisons combined by and, or, not."""
    return st.recursive(
        comparisons(columns) if leaves is None else leaves,
        lambda parts: st.one_of(
            st.lists(parts, min_size=2, max_size=4).map(all_of),
            st.lists(parts, min_size=2, max_size=4).map(any_of),
            parts.map(none_of),
        ),
        max_leaves=max_leaves,
    )


def rows(n_row: int, rng: np.random.Generator) -> np.ndarray:
    """Return float64 (n_column, n_row): values at, next to and between those that events name, every code."""
    out = []
    for column in COLUMNS:
        if column.base == "category":
            pool = np.arange(column.n_label, dtype=float)
        elif column.base == "integer":
            pool = np.arange(-20.0 if column is BALANCE else 0.0, 20.0)
        else:
            named = np.array(_NUMBERS) if column.dtype == "number" else np.array([days(text) for text in _DATES])
            pool = np.concatenate(
                [named, np.nextafter(named, -np.inf), np.nextafter(named, np.inf), named + 0.25, [-1e300, 1e300]]
            )
        out.append(rng.choice(pool, n_row))
    return np.array(out)


def days(text: str) -> float:
    """Return the days since 1970-01-01 of a date."""
    return float((np.datetime64(text, "us") - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "D"))


def holds(event: Event, row: np.ndarray) -> bool:
    """Return whether a row (n_column,) is in an event over `SCHEMA`, from the definition."""
    match event:
        case Not(part):
            return not holds(part, row)
        case And(parts):
            return all(holds(part, row) for part in parts)
        case Or(parts):
            return any(holds(part, row) for part in parts)
    position = SCHEMA.names.index(event.column)
    column = COLUMNS[position]
    match event:
        case Comparison(_, sign, value):
            return _compare(column, row[position], sign, value)
        case Between(_, lo, hi, inclusive):
            left, right = {"both": (">=", "<="), "left": (">=", "<"), "right": (">", "<="), "neither": (">", "<")}[
                inclusive
            ]
            return _compare(column, row[position], left, lo) and _compare(column, row[position], right, hi)
        case Membership(_, values):
            return any(_compare(column, row[position], "==", value) for value in values)
    raise AssertionError(event)


def _compare(column: Column, cell: float, sign: str, value) -> bool:
    """Return whether a cell stands in a relation to a value; a label never seen is below and above nothing."""
    if column.base != "category":
        return _RELATIONS[sign](cell, days(value) if column.dtype == "datetime" else value)
    unseen = cell == len(column.labels)
    if sign in ("==", "!="):
        label = column.code_names[-1] if unseen else column.labels[int(cell)]
        same = float(label) == value if column is GRADE and not unseen else label == str(value)
        return same == (sign == "==")
    if unseen:
        return False
    label = column.labels[int(cell)]
    if column.dtype == "datetime":
        return _RELATIONS[sign](days(label), days(value))
    return _RELATIONS[sign](float(label), value)
