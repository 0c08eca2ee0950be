"""Columns in Python, `col`, and what they may be compared with."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from bayesjpt.queries.event import (
    Between,
    Comparison,
    Event,
    EventError,
    Place,
    Value,
    is_whole_name,
    membership,
    short_repr,
)


class Col:
    """A column of a table, by its name, to be compared with values; made by `col`."""

    __slots__ = ("name",)
    __array_ufunc__ = None  # or NumPy scalars on the left would take the comparison for theirs
    __hash__ = None  # type: ignore[assignment]  # == makes an event, so a set or dict could not tell two columns apart

    def __init__(self, name: str):
        if not isinstance(name, str) and not is_whole_name(name):
            raise EventError(f"a column named {name!r}, a {type(name).__name__}", "a text")
        self.name = str(name)

    def __lt__(self, value: Any) -> Event:
        return Comparison(self.name, "<", as_value(value, self.name))

    def __le__(self, value: Any) -> Event:
        return Comparison(self.name, "<=", as_value(value, self.name))

    def __gt__(self, value: Any) -> Event:
        return Comparison(self.name, ">", as_value(value, self.name))

    def __ge__(self, value: Any) -> Event:
        return Comparison(self.name, ">=", as_value(value, self.name))

    def __eq__(self, value: Any) -> Event:  # type: ignore[override]  # an event, as with the columns of data frames
        return Comparison(self.name, "==", as_value(value, self.name))

    def __ne__(self, value: Any) -> Event:  # type: ignore[override]  # likewise
        return Comparison(self.name, "!=", as_value(value, self.name))

    def between(self, lo: Any, hi: Any, *, inclusive: str = "both") -> Event:
        """Return the rows whose value lies between two.

        Parameters
        ----------
        lo, hi : number, or date as text or object
        inclusive : str
            Which ends belong to it: ``both``, ``left``, ``right`` or ``neither``.
        """
        return Between(self.name, as_value(lo, self.name), as_value(hi, self.name), inclusive)

    def isin(self, values: Iterable[Any]) -> Event:
        """Return the rows whose value is one of several."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise EventError(
                f"column {self.name!r} .isin({values!r})", "a list of values", f"Write .isin([{values!r}])."
            )
        return membership(self.name, [as_value(value, self.name) for value in values])

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def refuse_alone(self, *_other: object) -> NoReturn:
        """Raise `EventError` for a column where an event was wanted."""
        raise EventError(
            f"column {self.name!r} alone was used as an event; & and | bind tighter than comparisons",
            f"a comparison in parentheses, for example (bj.col({self.name!r}) > 12) & ...",
            f"For true and false write bj.col({self.name!r}) == True.",
        )

    __and__ = __rand__ = __or__ = __ror__ = __invert__ = __bool__ = refuse_alone


def col(name: str) -> Col:
    """Return a column by its name, for events: comparisons of it with values.

    Comparisons are ``<``, ``<=``, ``==``, ``!=``, ``>=``, ``>``, ``.between(lo, hi)`` and ``.isin([...])``. Combine
    them by ``&``, ``|`` and ``~``, each in parentheses. Values are numbers, labels, True and False, and dates (objects,
    or texts in ISO 8601).

    Parameters
    ----------
    name : str

    Raises
    ------
    QueryError
        For a value that is missing or cannot be compared, a range whose lower end is above the upper one, ``and``,
        ``or`` and ``not`` in place of the operators. Columns and labels are checked when the event meets a schema.

    Examples
    --------
    >>> (col("alcohol") > 12) & ~col("color").isin(["red", "rosé"])
    alcohol > 12 and color not in ('red', 'rosé')
    >>> col("fixed acidity").between(4, 6.5, inclusive="left") | (col("quality") >= 7)
    4 <= `fixed acidity` < 6.5 or quality >= 7
    """
    return Col(name)


# --- values ----------------------------------------------------------------------------------------------------------


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NaT or pandas NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, numbers.Real | decimal.Decimal) and bool(value != value)


def as_value(value: Any, column: str, place: Place | None = None) -> Value:
    """Return what a column is compared with as a float, bool or text; dates become texts in ISO 8601 (UTC).

    Raises
    ------
    EventError
        For missing values, other columns, lists, numbers that float64 cannot hold, and objects of other types.
    """
    if is_missing(value):
        raise EventError(
            f"column {column!r} compared with a missing value ({value})",
            "a number, text or date",
            "An event cannot ask for missing cells; leave the column out.",
            place=place,
        )
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime.date | np.datetime64):
        return _iso(value)
    if isinstance(value, numbers.Real | decimal.Decimal):
        return _as_float(value, column, place)
    if isinstance(value, Col):
        raise EventError(f"column {column!r} compared with column {value.name!r}", "a value", place=place)
    if isinstance(value, Event):
        raise EventError(
            f"column {column!r} compared with an event ({value!r})",
            "a value",
            "Put each comparison in parentheses: (bj.col('a') > 1) & (bj.col('b') == 2).",
        )
    raise EventError(
        f"column {column!r} compared with {short_repr(value)}, of type {type(value).__name__}",
        "one number, text or date",
        "For several values use .isin([...])." if isinstance(value, Iterable) else None,
    )


def _as_float(value: Any, column: str, place: Place | None) -> float:
    if isinstance(value, np.floating) and value.dtype.itemsize < 8:
        value = str(value)  # a narrow float stands for its shortest decimal, as in tables
    try:
        number = float(value) + 0.0  # no negative zero
    except OverflowError:
        raise EventError(
            f"column {column!r} compared with a number beyond float64", "at most 1.8e308 in size", place=place
        ) from None
    if isinstance(value, numbers.Integral) and int(number) != int(value):
        raise EventError(
            f"column {column!r} compared with {value}, a whole number that float64 cannot hold",
            f"a number such as {int(number)}",
            place=place,
        )
    return number


def _iso(value: datetime.date | np.datetime64) -> str:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return str(np.datetime_as_string(np.datetime64(value, "us"), unit="auto"))
