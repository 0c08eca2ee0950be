"""The table as a value: frozen arrays, rows, what it prints; and the tables of the notebooks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table, as_table, read_table

DATA = Path(__file__).resolve().parents[2] / "notebooks" / "data"


@pytest.fixture
def table() -> Table:
    return as_table(pd.DataFrame({"x": [0.5, None, 1.5, 4.0], "y": ["b", "a", "c", None]}))


def test_arrays_are_frozen_and_contiguous(table):
    for array in (table.values, table.observed):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_table_does_not_freeze_the_arrays_it_was_made_of():
    values = np.zeros((1, 3))
    Table(Schema((Column("x", "real", (-np.inf, np.inf)),)), values, np.ones((1, 3), bool))
    assert values.flags.writeable


def test_length_is_the_number_of_rows(table):
    assert (len(table), table.n_row, table.n_column, table.n_missing) == (4, 4, 2, 2)


def test_take_gives_rows_in_the_order_asked(table):
    taken = table.take([2, 0, 0])
    np.testing.assert_array_equal(taken.values, table.values[:, [2, 0, 0]])
    np.testing.assert_array_equal(taken.observed, table.observed[:, [2, 0, 0]])


def test_take_accepts_a_mask_and_no_rows(table):
    assert table.take(np.array([True, False, True, False])).n_row == 2
    assert table.take([]).n_row == 0


@pytest.mark.parametrize(("index", "rows"), [(1, [1]), (-1, [3]), (slice(1, 3), [1, 2]), ([3, 1], [3, 1])])
def test_rows_accepts_a_number_a_slice_or_positions(table, index, rows):
    np.testing.assert_array_equal(table.rows(index).values, table.values[:, rows])


def test_repr_starts_with_the_counts(table):
    assert repr(table).startswith("Table(4 rows x 2 columns, 2 cells missing)\n")
    assert "4 rows x 2 columns" in table._repr_html_()


def test_as_table_of_a_table_is_the_table(table):
    assert as_table(table) is table
    assert as_table(table, schema=table.schema) is table


cells = st.one_of(st.none(), st.sampled_from(["a", "b", "other", "1", "True"]))
reals = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@settings(derandomize=True, deadline=None)
@given(
    stn.arrays(object, st.shared(st.integers(3, 30), key="n"), elements=cells),
    stn.arrays(float, st.shared(st.integers(3, 30), key="n"), elements=st.one_of(st.just(np.nan), reals)),
    stn.arrays(np.int64, st.shared(st.integers(3, 30), key="n"), elements=st.integers(-5, 50)),
)
def test_to_frame_and_back_under_the_schema_is_the_identity(texts, floats, whole):
    texts[:2], floats[:2], whole[:2] = ["a", "b"], [0.5, 2.25], [0, 1]
    table = as_table(pd.DataFrame({"text": texts, "real": floats, "whole": whole}), kinds={"whole": "real"})
    again = as_table(table.to_frame(), schema=table.schema)
    np.testing.assert_array_equal(again.values, table.values)
    np.testing.assert_array_equal(again.observed, table.observed)


def test_wine_quality_is_read_as_documented():
    schema = read_table(DATA / "wine_quality.csv").schema
    bases = [column.base for column in schema]
    assert bases == ["real"] * 11 + ["integer", "category"]
    assert {column.name: column.resolution for column in schema}["density"] == 1e-5


def test_abalone_is_read_as_documented():
    schema = read_table(DATA / "abalone.csv").schema
    assert [column.base for column in schema] == ["category"] + ["real"] * 7 + ["integer"]
    assert {column.name: column.resolution for column in schema}["shell_weight"] == 0.0005


@pytest.mark.parametrize("values", [[0.0, 1e19, 1e19], [1e19, 2e19, 4e19], [0.0, 2.0**60, 2.0**60]])
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_whole_floats_beyond_int64_come_back_as_floats(values, backend):
    frame = as_table(pd.DataFrame({"x": values})).to_frame(backend)
    assert [float(value) for value in frame["x"].to_numpy()] == values
