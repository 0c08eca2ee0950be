"""Places on the axis of a column that are round as the column spells its values: numbers, dates, times, durations."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bayesjpt.table.schema import Column
from bayesjpt.table.written_dates import DateNotation
from bayesjpt.table.written_durations import DurationNotation

_N_TICK, _N_WIDE = 3, 2
_WIDE = 11
"""Characters of a value above which two ticks have room, below which three have."""
_LARGE = 1e7
"""Plain numbers from which on zeros are written as a power of ten."""

_DAY = 86_400.0
_CLOCK = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
"""Round numbers of seconds and of minutes."""
_HOURS = (1.0, 2.0, 3.0, 6.0, 12.0)
_DAYS_OF_MONTH = (1, 2, 5, 10, 15)
_MONTHS = (1, 2, 3, 6)


def ticks_of(column: Column, lo: float, hi: float) -> tuple[tuple[float, str], ...]:
    """Return a few round values inside a range, and how they are written.

    Parameters
    ----------
    column : Column
        Of numbers or dates.
    lo, hi : float
        In the user's units, `lo` below `hi`.

    Examples
    --------
    >>> ticks_of(Column("day", "real", (-np.inf, np.inf), dtype="datetime"), 17_532.0, 17_931.0)
    ((17532.0, '2018-01-01'), (17713.0, '2018-07-01'), (17897.0, '2019-01-01'))
    >>> ticks_of(Column("at", "integer", (0.0, np.inf), notation=DateNotation("clock", "%H:%M")), 360.0, 1163.0)
    ((360.0, '06:00'), (720.0, '12:00'), (1080.0, '18:00'))
    """
    unit = _unit(column)
    if isinstance(column.notation, DateNotation) and unit is not None:  # a clock has no time before or after a day
        lo, hi = max(lo, 0.0), min(hi, (_DAY - 1.0) / unit)
    if column.dtype == "datetime":
        found = _dates(lo, hi, column.resolution)
    elif unit is not None:
        found = _times(lo * unit, hi * unit, column.resolution * unit, unit)
    else:
        found = _numbers(lo, hi, column.resolution if column.base == "integer" else 0.0)
    ticks, finer, n_most = (), (), _N_TICK
    for places in found:
        spelled = _without_time(column) if all(place == round(place) for place in places) else column
        ticks = tuple((place, _text(spelled, place)) for place in places)
        words = [text for _, text in ticks]
        n_most = _N_WIDE if max(map(len, words), default=0) > _WIDE else _N_TICK
        if len(ticks) <= n_most and len(set(words)) == len(words):
            break
        finer = ticks if len(set(words)) == len(words) else ()
    if len(ticks) < 2 < len(finer):  # one place alone tells no scale: -4, 0 and 4 of -4, -2, 0, 2, 4 in place of 0
        every = max(math.ceil(len(finer) / n_most), 2)
        return finer[(finer.index(ticks[0]) if ticks and ticks[0] in finer else 0) % every :: every]
    return ticks


def _text(column: Column, place: float) -> str:
    is_plain = column.notation is None and column.dtype != "datetime"
    return f"{place:g}" if is_plain and abs(place) >= _LARGE else column.text(place)


def _without_time(column: Column) -> Column:
    """Return a column of moments as one that spells their days alone."""
    notation = column.notation
    if column.dtype != "datetime" or not isinstance(notation, DateNotation):
        return column
    return replace(column, notation=replace(notation, pattern=re.split("[ T]%[HkIl]", notation.pattern)[0]))


def _unit(column: Column) -> float | None:
    """Return the seconds of the unit of times of day and durations; None of others."""
    if isinstance(column.notation, DurationNotation):
        return column.notation.unit
    length = column.notation.day_length if isinstance(column.notation, DateNotation) else None
    return None if length is None else _DAY / length


def _multiples(lo: float, hi: float, step: float, unit: float = 1.0) -> list[float]:
    """Return the multiples of a step between two ends, in units of so much."""
    return [k * step / unit for k in range(math.ceil(lo / step), math.floor(hi / step) + 1)]


def _decimal(size: float) -> Iterator[float]:
    """Return 1, 2 and 5 times the powers of ten about a size; nine are enough for any range."""
    power = math.floor(math.log10(size))
    return (float(f"{k}e{power + n}") for n in range(3) for k in (1, 2, 5))


def _numbers(lo: float, hi: float, least: float) -> Iterator[list[float]]:
    for step in _decimal((hi - lo) / _N_TICK):
        if step >= least:
            n_digit = max(0, -math.floor(math.log10(step) + 1e-9))
            yield [round(place, n_digit) + 0.0 for place in _multiples(lo, hi, step)]


def _seconds(span: float, least: float) -> list[float]:
    """Return steps up to half a day that have few multiples in a range, all in seconds."""
    short = _decimal(span / _N_TICK) if span < _N_TICK else ()
    minutes, hours = ([unit * k for k in steps] for unit, steps in ((60.0, _CLOCK), (3600.0, _HOURS)))
    steps = [*(step for step in short if step < 1.0), *_CLOCK, *minutes, *hours]
    return [step for step in steps if step >= least and step * 5 * _N_TICK >= span]


def _times(lo: float, hi: float, least: float, unit: float) -> Iterator[list[float]]:
    span = hi - lo
    days = (_DAY * step for step in _decimal(max(span / _N_TICK / _DAY, 1.0)))
    for step in itertools.chain(_seconds(span, least), days):
        yield _multiples(lo, hi, step, unit)


def _dates(lo: float, hi: float, least: float) -> Iterator[list[float]]:
    """Return moments of a day, days of months, firsts of months and of years, the finest first."""
    span = hi - lo
    for step in _seconds(span * _DAY, least * _DAY):
        yield _multiples(lo * _DAY, hi * _DAY, step, _DAY)
    days = np.arange(math.ceil(lo), math.floor(hi) + 1) if span < 100.0 else np.empty(0, np.int64)
    moments = days.astype("datetime64[D]")
    of_month = (moments - moments.astype("datetime64[M]")).astype(np.int64)
    for step in _DAYS_OF_MONTH if days.size else ():
        # none so near the end of a month that the first of the next would follow closely
        yield days[(of_month % step == 0) & ((of_month + step <= 30) | (step == 1))].astype(np.float64).tolist()
    first, last = (math.floor(end / 30.44) + 1970 * 12 + off for end, off in ((lo, -2), (hi, 2)))
    for step in (*_MONTHS, *(12 * int(years) for years in _decimal(max(span / 365.25 / _N_TICK, 1.0)))):
        months = np.arange(first // step * step, last + step, step) - 1970 * 12
        places = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.float64)
        yield places[(places >= lo) & (places <= hi)].tolist()
