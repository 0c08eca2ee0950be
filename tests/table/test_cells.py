"""Cells of numbers: distinct values and positions are those of a sort, however they are found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.table.cells import from_floats
from bayesjpt.table.frames import frame_cells

whole = st.integers(-300, 300).map(float)
odd = st.sampled_from([0.0, -0.0, 0.5, 1e-20, 255.0, 256.0, 257.0, 2.0**53, -(2.0**53), 2.0**53 - 2.0, 1e300, np.inf])


@given(st.lists(st.one_of(whole, odd, st.just(np.nan)), max_size=30) | st.lists(whole, max_size=30))
def test_distinct_values_and_positions_are_those_of_a_sort(values):
    cells = from_floats("x", np.array(values, np.float64))
    known = [value for value in values if value == value]
    assert cells.distinct.tolist() == sorted(set(known))
    assert not np.signbit(cells.distinct[cells.distinct == 0.0]).any()
    assert [None if code < 0 else cells.distinct[code] for code in cells.codes] == [
        None if value != value else value for value in values
    ]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("values", [[True, False, True], [True, None, False], ["b", None, "a", "b"]])
def test_frames_of_truth_values_and_texts_have_the_cells_of_lists(frame, values):
    (found,), (expected,) = frame_cells(frame({"x": values})), frame_cells({"x": values})
    assert (found.stored, found.distinct.tolist()) == (expected.stored, expected.distinct.tolist())
    assert found.codes.tolist() == expected.codes.tolist()


def test_categories_without_rows_keep_their_place():
    series = pd.Series(pd.Categorical(["b", None, "d"], categories=["d", "c", "b"]))
    (cells,) = frame_cells(pd.DataFrame({"x": series}))
    assert cells.labels == ("d", "c", "b")
    assert cells.distinct.tolist() == ["d", "b"]
    assert cells.codes.tolist() == [1, -1, 0]
