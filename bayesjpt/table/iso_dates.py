"""Dates in ISO 8601 as a table writes them: what stands before the time of the day, and to which unit it is told.

ISO 8601 leaves both open, and a file that mixes them is one that many programs refuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np

from bayesjpt.table import cells as cells_of
from bayesjpt.table.schema import Column
from bayesjpt.table.written_dates import DateNotation, iso_notation

type Unit = Literal["D", "m", "s", "ms", "us"]

_TICKS: dict[Unit, int] = {"D": 86_400_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds of each unit to which dates are told, as `numpy.datetime_as_string` calls it, the longest first."""

_UNIT: dict[str, Unit] = {"": "D", "%H:%M": "m", "%H:%M:%S": "s", "%H:%M:%S.%L": "ms", "%H:%M:%S.%f": "us"}
_DAY = "%Y-%m-%d"


def is_iso(column: Column) -> bool:
    """Return whether a column holds dates that are written in ISO 8601, without a zone."""
    if column.dtype != "datetime" or column.notation is None:
        return column.dtype == "datetime"
    pattern = column.notation.pattern if isinstance(column.notation, DateNotation) else ""
    mark, time = pattern[len(_DAY) :][:1], pattern[len(_DAY) + 1 :]
    return pattern.startswith(_DAY) and mark in ("", " ", "T") and time in _UNIT


def iso_texts(column: Column, days: np.ndarray) -> list[str]:
    """Return the texts of days since 1970-01-01, float64 (n,), all to the same unit.

    It is that of the table's texts; where there were none, the unit in which the column was recorded, or a finer one
    where the days ask for it.

    Examples
    --------
    >>> iso_texts(Column("day", "real", (-1e9, 1e9), dtype="datetime", resolution=1 / 1440), np.array([1.0, 1.5]))
    ['1970-01-02T00:00', '1970-01-02T12:00']
    """
    moments = cells_of.calendar_moments(days)
    if isinstance(column.notation, DateNotation):
        mark, time = column.notation.pattern[len(_DAY) :][:1], column.notation.pattern[len(_DAY) + 1 :]
        unit = _UNIT[time]
    else:
        mark, unit = "T", _least_unit(column, moments)
    ticks = np.rint(moments.astype(np.int64) / _TICKS[unit]).astype(np.int64) * _TICKS[unit]
    texts: list[str] = np.datetime_as_string(ticks.astype("datetime64[us]"), unit=unit).tolist()
    # one by one: numpy.char.replace refuses an array of none, of a column without a gap
    return [text.replace("T", mark) for text in texts]


def _least_unit(column: Column, moments: np.ndarray) -> Unit:
    """Return the longest unit of which the resolution of a column and all of some moments are multiples."""
    recorded = round(column.resolution * _TICKS["D"]) if column.base == "real" and column.has_grid else _TICKS["D"]
    ticks = np.append(moments.astype(np.int64), recorded)
    return next(unit for unit, size in _TICKS.items() if not (ticks % size).any())


def written_as(column: Column, texts: Iterable[str]) -> Column:
    """Return a column that writes its dates as the texts of a file at hand; as it is where they are none of ISO 8601.

    Examples
    --------
    >>> written_as(Column("day", "real", (-1e9, 1e9), dtype="datetime"), ["2024-03-01 00:00:00"]).text(1.5)
    '1970-01-02 12:00:00'
    """
    if column.dtype != "datetime":
        return column
    dates = list(filter(cells_of.is_iso_date, texts))
    found = iso_notation(dates)
    if found is None and dates and column.resolution >= 1.0:
        found = DateNotation("ymd", _DAY)
    return column if found is None else replace(column, notation=found)
