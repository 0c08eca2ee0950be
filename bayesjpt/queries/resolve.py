"""What the comparisons of an event mean in a column of a schema: a set of values, in the user's units or as codes."""

from __future__ import annotations

import calendar
import math
import operator
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.queries.event import (
    INCLUSIVE,
    Between,
    Comparison,
    EventError,
    Leaf,
    Membership,
    Place,
    Value,
    is_whole_name,
    refuse_reversed,
    rendered_name,
    rendered_value,
)
from bayesjpt.queries.intervals import Domain, Intervals, domain_of, intersection
from bayesjpt.table import cells as cells_of
from bayesjpt.table.excluded import IN_ONE_UNIT, WITH_ONE_MARK, censored, first_odd
from bayesjpt.table.ordered_labels import known_order
from bayesjpt.table.overrides import LABEL_KINDS
from bayesjpt.table.schema import SUMMED_OUT, Column, Schema, closest
from bayesjpt.table.written_dates import COUNTED, DateNotation
from bayesjpt.table.written_durations import DurationNotation
from bayesjpt.table.written_numbers import NumberNotation
from bayesjpt.table.yes_no import same_answer, truth

_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_N_LABELS_SHOWN = 10
_LITERAL = re.compile(r"[+-]?\d+(?:\.\d+)?(?![\w.])")
_MISSING = {"null", "na", "nan", "none", "missing", "empty"}
NO_TEST_FOR_MISSING = "There is no test for missing cells: an event is about the values of a column."


def names_of(columns: Any) -> list[str]:
    """Return the names of columns that are given as one name or several.

    Raises
    ------
    QueryError
        For anything but texts.
    """
    names = [columns] if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
    for name in names:
        if not isinstance(name, str) and not is_whole_name(name):
            raise QueryError(f"column {name!r}, of type {type(name).__name__}", "the names of columns")
    return [str(name) for name in names]


def position_of(name: str, schema: Schema, place: Place | None = None) -> int:
    """Return the position of a column of a schema.

    Raises
    ------
    EventError
        For a column that is not there, with the closest name, or that was set aside, with the reason.
    """
    if not isinstance(name, str) and not is_whole_name(name):
        raise EventError(f"a column called {name!r}", "a text")
    name = str(name)
    if name in schema.names:
        return schema.names.index(name)
    for column in schema.set_aside:
        if column.name == name and column.reason == SUMMED_OUT:
            raise EventError(
                f"column {name!r} was summed out of this posterior",
                remedy="Name it in post.marginal([...]) too, or ask the posterior that has it.",
                command="Ask the fit that has it.",
                place=place,
            )
        odd = first_odd(column.reason) if column.name == name else None
        if odd is not None:
            token, bound = f"{name}={odd[0]}", censored(odd[0])
            if bound is not None:
                raise EventError(
                    f"column {name!r} is not part of the model; it is left out: {column.reason}",
                    remedy=f"{bound.in_words()} Then fit again.",
                    place=place,
                )
            raise EventError(
                f"column {name!r} is not part of the model; it is left out: {column.reason}",
                remedy=f"Mend such cells, or read them as missing with na={token!r}, and fit again.",
                command=f"Mend such cells, or read them as missing with --na {shlex.quote(token)}, and fit again.",
                place=place,
            )
        in_one = next((way for way in (IN_ONE_UNIT, WITH_ONE_MARK) if column.reason.endswith(way)), None)
        if column.name == name and in_one is not None:
            raise EventError(
                f"column {name!r} is not part of the model; it is left out: {column.reason}",
                remedy=f"Write them {in_one.removesuffix(' they are read')}, and fit again.",
                place=place,
            )
        if column.name == name:
            raise EventError(
                f"column {name!r} is not part of the model; it is left out: {column.reason}",
                remedy=f"To model it, fit again with kinds={{{name!r}: ...}}.",
                command=f"To model it, fit again with --kind {shlex.quote(name)}=...",
                place=place,
            )
    left_out = [column.name for column in schema.set_aside]
    raise EventError(f"no column {name!r}", closest(name, schema.names, left_out), place=place)


def values_of(leaf: Leaf, column: Column) -> Intervals:
    """Return the set of values of its column that a comparison asks for.

    Raises
    ------
    EventError
        For a value that the column cannot be compared with.
    """
    domain = domain_of(column)
    match leaf:
        case Comparison(_, "==", value):
            return _points([value_in(column, value, leaf.place(0))], domain)
        case Comparison(_, "!=", value):
            return domain.complement(_points([value_in(column, value, leaf.place(0))], domain))
        case Comparison(_, sign, value):
            _check_ordered(column, leaf, [(sign, value)])
            return _ordered(column, sign, _bound(column, value, leaf.place(0)), domain)
        case Between(_, lo, hi, inclusive):
            left, right = INCLUSIVE[inclusive]
            above_sign = {"<": ">", "<=": ">="}[left]
            _check_ordered(column, leaf, [(above_sign, lo), (right, hi)])
            ends = _bound(column, lo, leaf.place(0)), _bound(column, hi, leaf.place(1))
            if ends[0] > ends[1]:
                refuse_reversed(leaf)
            above = _ordered(column, above_sign, ends[0], domain)
            return intersection(above, _ordered(column, right, ends[1], domain))
        case Membership(_, values):
            return _points([value_in(column, value, leaf.place(i)) for i, value in enumerate(values)], domain)
        case _:
            raise AssertionError(type(leaf))


def value_in(column: Column, value: Value, place: Place | None = None) -> float:
    """Return the number, day or code that a value stands for in a column.

    Raises
    ------
    EventError
        For a value of another kind than the column's, and for an unknown label, with the closest one.
    """
    return _code(column, value, place) if column.base == "category" else _number(column, value, place)


def value_name(column: Column, value: float) -> str:
    """Return a value of a column as the language of events writes it.

    Examples
    --------
    >>> value_name(Column("size", "real", (0.0, 9.0)), 12.0)
    '12'
    >>> value_name(Column("day", "real", (0.0, 9.0), dtype="datetime"), 1.5)
    "'1970-01-02T12:00'"
    """
    if column.base == "category":
        return rendered_value(column.code_names[int(value)])
    told = number_or_text(column, value)
    return rendered_value(told) if isinstance(told, str) else cells_of.number_label(value)


def number_or_text(column: Column, value: float) -> Value:
    """Return a value of a column of numbers for an event: a number, of dates, times and durations a text of them.

    Examples
    --------
    >>> number_or_text(Column("lasts", "integer", (0.0, 9e9), notation=DurationNotation("h:mm:ss")), 3069.0)
    '0:51:09'
    """
    if column.dtype == "datetime":
        return cells_of.value_label(value, column.dtype)
    notation = column.notation
    is_clock = isinstance(notation, DateNotation) and notation.order == "clock"
    if notation is not None and (is_clock or isinstance(notation, DurationNotation)):
        text = notation.text(value)
        if notation.value(text) == value:
            return text
    return value


def refuse_two_columns(names: tuple[str, str], places: tuple[Place, Place], schema: Schema) -> NoReturn:
    """Raise `EventError` for a comparison of two names: of two columns, or of one with a value that wants quotes."""
    known = {*schema.names, *(column.name for column in schema.set_aside)}
    left, right = names
    if left in known and right in known:
        found = f"columns {left!r} and {right!r} are compared"
        raise EventError(found, "a column and a value", "Two columns cannot be compared.", place=places[1])
    which = 0 if right not in known else 1
    name, word, place = names[which], names[1 - which], places[1 - which]
    column = schema.columns[position_of(name, schema, places[which])]
    try:
        value_in(column, word)
    except EventError as error:
        refused = error
    else:
        remedy = f"Write {rendered_value(word)} in single quotes."
        raise EventError(f"{word!r} is no column", "a column and a value", remedy, place=place)
    if word.lower() in _MISSING:
        raise EventError(f"{word!r} is no column", "a column and a value", NO_TEST_FOR_MISSING, place=place)
    raise EventError(f"{word!r} is no column; {refused.found}", refused.expected, refused.remedy, place=place)


# --- sets ------------------------------------------------------------------------------------------------------------


def _points(values: Sequence[float], domain: Domain) -> Intervals:
    return domain.canonical([(value, value) for value in values if not domain.whole or value == math.floor(value)])


def _ordered(column: Column, sign: str, bound: float, domain: Domain) -> Intervals:
    """Return the values below or above a bound."""
    if column.base == "category":
        scale = _label_scale(column)
        assert scale is not None
        return _points([float(k) for k, label in enumerate(scale) if _RELATIONS[sign](label, bound)], domain)
    if math.isinf(bound):
        return domain.everything if _RELATIONS[sign](0.0, bound) else ()
    at_least, at_most = (float(np.ceil(bound)), float(np.floor(bound))) if domain.whole else (bound, bound)
    match sign:
        case "<":
            return domain.canonical([(domain.lo, domain.before(at_least))])
        case "<=":
            return domain.canonical([(domain.lo, at_most)])
        case ">":
            return domain.canonical([(domain.after(at_most), domain.hi)])
        case _:
            return domain.canonical([(at_least, domain.hi)])


def _check_ordered(column: Column, leaf: Comparison | Between, asked: list[tuple[str, Value]]) -> None:
    """Raise where the labels of a column have no order in the model, naming those that the signs and values mean."""
    if column.base != "category" or _label_scale(column) is not None:
        return
    known = known_order(column.labels)
    ranked = list(known.ranked) if known is not None else []
    meant = list(column.labels[:2])
    order = ""
    if ranked:
        order = f", by their words {' < '.join(ranked[:_N_LABELS_SHOWN])}"
        places = [(_RELATIONS[sign], ranked.index(value)) for sign, value in asked if value in ranked]
        meant = [one for k, one in enumerate(ranked) if all(relation(k, place) for relation, place in places)]
        meant = meant if len(places) == len(asked) else []
    more = ", ..." if len(meant) > _N_LABELS_SHOWN else ""
    named = ", ".join(map(rendered_value, meant[:_N_LABELS_SHOWN])) + more
    raise EventError(
        f"the labels of column {column.name!r} have no order in the model ({_rendered_labels(column)})",
        "==, != or in",
        f"Name the labels{order}" + (f": {rendered_name(column.name)} in ({named})." if meant else "."),
        place=leaf.place(0),
    )


def _bound(column: Column, value: Value, place: Place | None) -> float:
    """Return the number, day or place of an order comparison."""
    if column.base != "category":
        return _number(column, value, place)
    read = {"datetime": _date, "number": _label_number}.get(column.dtype, _code)
    bound = read(column, value, place)
    if read is _code and bound >= len(column.labels):
        raise EventError(
            f"{rendered_value(value)} is neither below nor above the labels of column {column.name!r}",
            f"one of {_rendered_labels(column)}",
            f"Without an order: {rendered_name(column.name)} = {rendered_value(value)}.",
            place=place,
        )
    return bound


def _rendered_labels(column: Column, n: int = _N_LABELS_SHOWN) -> str:
    more = ", ..." if len(column.labels) > n > 2 else ""
    return ", ".join(map(rendered_value, column.labels[:n])) + more


def _label_scale(column: Column) -> list[float] | None:
    """Return the number or day of each label that was stored as such, or its place in an order; "other" has none."""
    if column.dtype == "datetime":
        days = [_days_of(label) for label in column.labels]
    elif column.dtype == "number":
        days = [cells_of.number_of_text(label) for label in column.labels]
    elif column.families == LABEL_KINDS["ordinal"]:
        days = [float(place) for place in range(len(column.labels))]
    else:
        return None
    known = [day for day in days if day is not None]
    return known if len(known) == len(days) else None


# --- values ----------------------------------------------------------------------------------------------------------


def _number(column: Column, value: Value, place: Place | None) -> float:
    if column.dtype == "datetime":
        return _date(column, value, place)
    if isinstance(value, str) and column.notation is not None:
        written = column.notation.value(value)
        if written is not None:
            return written
    if isinstance(value, bool | str):
        spelled = isinstance(value, str) and cells_of.number_of_text(value) is not None
        _refuse_kind(column, value, "numbers", "Write it without quotes." if spelled else None, place)
    _check_grouped(column, value, place)
    return value


def _check_grouped(column: Column, value: float, place: Place | None) -> None:
    """Raise where a number stands in an event as the column writes another one: 500.000 for 500000.

    What this package writes itself has no zero last, and is no further from the values of its column.
    """
    literal = _LITERAL.match(place.text, place.position) if place is not None else None
    if literal is None or not isinstance(column.notation, NumberNotation):
        return
    written = column.notation.value(literal[0])
    if written is None or written == value:
        return
    if literal[0].endswith("0") or abs(written - column.location) < abs(value - column.location):
        meant, read = cells_of.number_label(written), cells_of.number_label(value)
        read = read if column.notation.value(read) in (None, value) else f"{read}0"  # 1.1250 groups no thousands
        raise EventError(
            f"{literal[0]} may be {meant}, as column {column.name!r} writes it, or {read}",
            remedy=f"Write {meant} or {read}.",
            place=place,
        )


def _date(column: Column, value: Value, place: Place | None) -> float:
    day = _days_of(value) if isinstance(value, str) else None
    if day is None and isinstance(value, str) and column.notation is not None:
        day = column.notation.value(value)
    notation = column.notation
    if isinstance(notation, DateNotation) and notation.order in COUNTED and not isinstance(value, bool | str):
        day = notation.value_of_number(value)
    if day is None and isinstance(value, str) and cells_of.is_iso_date(value):
        raise EventError(f"{value!r} in column {column.name!r} is no date: {_why_no_date(value)}", place=place)
    if day is None:
        _refuse_kind(column, value, "dates", "Write '2020-01-31' or '2020-01-31T12:30' in single quotes.", place)
    return day


def _why_no_date(text: str) -> str:
    """Return what no calendar, or clock, has in a text that is written as a date in ISO 8601.

    Examples
    --------
    >>> [_why_no_date(text) for text in ("2024-02-30", "2024-13-01", "2024-01-01T25:00")]
    ['February 2024 has 29 days', 'there is no month 13', 'there is no time 25:00']
    """
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if not 1 <= month <= 12:
        return f"there is no month {text[5:7]}"
    n_day = calendar.monthrange(year, month)[1]
    if not 1 <= day <= n_day:
        return f"{calendar.month_name[month]} {year} has {n_day} days"
    return f"there is no time {text[11:]}"


def _days_of(text: str) -> float | None:
    """Return the days since 1970-01-01 of a date in ISO 8601, None for another text."""
    cells = cells_of.spelled_datetime(cells_of.from_text("", [text], np.array([0])))
    return float(cells.distinct[0]) if cells is not None and cells.n_distinct else None


def _code(column: Column, value: Value, place: Place | None) -> float:
    """Return the code of a label, which may be written as `table.encode` reads it in new rows."""
    names = column.code_names
    if isinstance(value, str):
        value = value if value in names else value.strip()
        if value in names:
            return float(names.index(value))
    label = value if isinstance(value, str) else None
    match column.dtype:
        case "boolean":
            text = value if isinstance(value, str) else rendered_value(value)
            label = {"1": "True", "0": "False", "true": "True", "false": "False"}.get(text.lower(), text)
        case "number":
            number = cells_of.number_of_text(value) if isinstance(value, str) else float(value)
            label = label if number is None or math.isinf(number) else cells_of.number_label(number)
        case "text" if column.is_yes_no and (label is not None or isinstance(value, bool)):
            text = rendered_value(value) if label is None else label
            label = same_answer(text, column.labels) or truth(text, column.labels) or text
        case "datetime":
            label = None if label is None else cells_of.label_as_stored(label, "datetime") or label
    if label is None:
        kind = "dates" if column.dtype == "datetime" else "texts"
        text = rendered_value(value)
        in_quotes = kind == "dates" or text in names
        remedy = f"Write '{text}' in single quotes." if in_quotes else f"Its labels are {_rendered_labels(column)}."
        _refuse_kind(column, value, kind, remedy, place)
    if label not in names:
        raise EventError(f"column {column.name!r} has no label {label!r}", closest(label, column.labels), place=place)
    return float(names.index(label))


def _label_number(column: Column, value: Value, place: Place | None) -> float:
    number = cells_of.number_of_text(value) if isinstance(value, str) else float(value)
    if number is None or isinstance(value, bool):
        _refuse_kind(column, value, "numbers", None, place)
    return number


def _refuse_kind(column: Column, value: Value, kind: str, remedy: str | None, place: Place | None) -> NoReturn:
    found = {bool: "true or false", str: "a text", float: "a number"}[type(value)]
    if isinstance(value, str) and cells_of.label_as_stored(value, "datetime") is not None:
        found = "a date"
    raise EventError(
        f"column {column.name!r} holds {kind}, and {rendered_value(value)} is {found}", remedy=remedy, place=place
    )
