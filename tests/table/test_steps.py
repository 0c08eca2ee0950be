"""Rows in the order of series and times."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, TableError
from bayesjpt.table.steps import read_order


def test_rows_are_ordered_by_series_and_time():
    frame = pd.DataFrame({"t": [3, 1, 2, 5, 4], "id": ["b", "b", "a", "a", "b"], "x": range(5)})
    rest, order = read_order(frame, "t", "id", [])
    assert order.rows.tolist() == [2, 3, 1, 0, 4]
    assert order.first.tolist() == [0, 2, 5]
    assert order.names == ("a", "b")
    assert order.numbers().tolist() == [1, 1, 0, 0, 1]
    assert list(rest.columns) == ["x"]


@pytest.mark.parametrize(
    "times",
    [
        ["2024-01-10", "2024-01-09", "2023-12-31"],
        [datetime.date(2024, 1, 10), datetime.date(2024, 1, 9), datetime.date(2023, 12, 31)],
        ["10", "9", "-1"],
        [1.5, 1.25, -3.0],
    ],
)
def test_times_are_numbers_or_dates_however_they_are_stored(times):
    for frame in (pd.DataFrame({"t": times, "x": 1}), pl.DataFrame({"t": times, "x": [1, 2, 3]}), {"t": times}):
        assert read_order(frame, "t", None, [])[1].rows.tolist() == [2, 1, 0]


@pytest.mark.parametrize("frame", [pd.DataFrame({0: [2, 1], 7: [5, 6]}), {0: [2, 1], 7: [5, 6]}])
def test_columns_named_by_numbers_are_known_by_their_texts(frame):
    rest, order = read_order(frame, "0", None, [])
    assert order.rows.tolist() == [1, 0]
    assert list(rest) == ["7"]


def test_a_table_keeps_its_schema_without_time():
    table = bj.as_table({"t": [1.5, 0.5, 2.5], "x": ["a", "b", "a"]})
    rest, order = read_order(table, "t", None, [])
    assert rest.schema.columns == table.schema.columns[1:]
    assert order.rows.tolist() == [1, 0, 2]
    assert read_order(table, "t", None, ["t"])[0].names == ("t", "x")


def test_times_alone_leave_no_frame():
    assert read_order({"t": [1, 2]}, "t", None, [])[0] is None


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"t": [1, None]}, "first in row 2"),
        ({"t": [1, 1]}, "rows 1 and 2 at the same 't'"),
        ({"t": ["a", "b"]}, r"numbers or dates\. Where its texts are dates, bj\.as_table"),
        ({"t": [True, False]}, "numbers or dates"),
        ({"s": [1, 2]}, "no column 't'"),
        (np.zeros((2, 2)), "no column 't'"),
    ],
)
def test_times_that_order_nothing_are_refused(frame, message):
    with pytest.raises(TableError, match=message):
        read_order(frame, "t", None, [])


def test_gaps_are_told_where_times_are_on_a_grid():
    with pytest.warns(BayesjptWarning, match="1 gap in 't'"):
        read_order({"t": [1, 2, 3, 5, 6]}, "t", None, [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_order({"t": [1, 2, 4, 8, 16]}, "t", None, [])
        read_order({"t": pd.date_range("2024-01-01", periods=9, freq="MS")}, "t", None, [])
