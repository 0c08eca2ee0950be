"""Ticks of axes: few, inside their range, and round as the column spells its values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.queries.ticks import ticks_of
from bayesjpt.table.cells import LARGEST_DAY, LEAST_DAY
from bayesjpt.table.written_dates import DateNotation
from bayesjpt.table.written_durations import DurationNotation
from bayesjpt.table.written_numbers import NumberNotation
from tests import examples as ex

DAY = replace(ex.REAL, dtype="datetime", resolution=1.0, atoms=())
MOMENT = replace(DAY, resolution=1.0 / 1440.0, notation=DateNotation("ymd", "%Y-%m-%d %H:%M"))
GERMAN = replace(DAY, notation=DateNotation("dmy", "%d.%m.%Y"))
MONTH = replace(DAY, notation=DateNotation("month", "%m/%Y"))
CLOCK = replace(ex.COUNT, notation=DateNotation("clock", "%H:%M"))
SECONDS = replace(ex.COUNT, notation=DateNotation("clock", "%H:%M:%S"))
DURATION = replace(ex.COUNT, notation=DurationNotation("0h 0m"))
LAP = replace(ex.REAL, notation=DurationNotation("m:ss.00"), resolution=0.01, atoms=())
MONEY = replace(ex.REAL, notation=NumberNotation(".", prefix="$", digits=2), resolution=0.01, atoms=())


def days(text: str) -> float:
    return float(np.datetime64(text, "m").astype(np.int64)) / 1440.0


def words(column, lo: float, hi: float) -> list[str]:
    return [text for _, text in ticks_of(column, lo, hi)]


@pytest.mark.parametrize(
    ("column", "lo", "hi", "expected"),
    [
        (DAY, "2017-12-28", "2019-02-05", ["2018-01-01", "2018-07-01", "2019-01-01"]),
        (DAY, "2018-01-30", "2018-03-04", ["2018-02-01", "2018-02-16", "2018-03-01"]),
        (DAY, "1890-05-01", "2020-05-01", ["1900-01-01", "1950-01-01", "2000-01-01"]),
        (GERMAN, "2018-02-03", "2018-02-06", ["03.02.2018", "05.02.2018"]),
        (MONTH, "2018-01-10", "2018-04-20", ["02/2018", "03/2018", "04/2018"]),
        (MOMENT, "2018-01-01", "2018-08-05", ["2018-01-01", "2018-04-01", "2018-07-01"]),
        (MOMENT, "2018-01-01T05:10", "2018-01-02T04:20", ["2018-01-01 12:00", "2018-01-02 00:00"]),
    ],
)
def test_dates_are_firsts_of_years_and_months_or_round_times(column, lo, hi, expected):
    assert words(column, days(lo), days(hi)) == expected


@pytest.mark.parametrize(
    ("column", "lo", "hi", "expected"),
    [
        (CLOCK, 340.0, 1180.0, ["06:00", "12:00", "18:00"]),
        (CLOCK, -90.0, 1700.0, ["00:00", "12:00"]),
        (SECONDS, 28_000.0, 31_000.0, ["08:00:00", "08:15:00", "08:30:00"]),
        (DURATION, 0.0, 400.0, ["0m", "3h", "6h"]),
        (LAP, 60.1, 63.0, ["1:01.00", "1:02.00", "1:03.00"]),
        (LAP, 60.01, 60.08, ["1:00.02", "1:00.06"]),
        (replace(ex.REAL, atoms=()), -4.5, 4.9, ["-4", "0", "4"]),
        (ex.COUNT, -0.5, 2.5, ["0", "1", "2"]),
        (replace(ex.REAL, atoms=()), 0.0, 1.3e13, ["0", "5e+12", "1e+13"]),
        (MONEY, -106_000.0, 74_000.0, ["-$100000.00", "$0.00"]),
    ],
)
def test_times_durations_and_numbers_are_round_as_they_are_written(column, lo, hi, expected):
    assert words(column, lo, hi) == expected


@given(
    st.sampled_from([DAY, MOMENT, GERMAN, MONTH, CLOCK, SECONDS, DURATION, LAP, MONEY, ex.COUNT]),
    st.floats(LEAST_DAY, LARGEST_DAY - 1e5),
    st.floats(-2.0, 5.0),
)
def test_ticks_are_few_distinct_and_inside(column, lo, size):
    if column in (CLOCK, SECONDS):
        lo %= 700.0
    span = max(10.0**size, 3.0 * column.resolution)
    found = ticks_of(column, lo, lo + span)
    places = [place for place, _ in found]
    assert len(found) <= 3
    assert all(lo <= place <= lo + span for place in places)
    assert len({text for _, text in found}) == len(found)
