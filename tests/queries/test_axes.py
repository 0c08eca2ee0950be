"""Axes of columns, and numbers in words, at the ends of what floats hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.queries.boxes import Box
from bayesjpt.queries.differences import rounded, rounded_outwards
from bayesjpt.queries.marginals import axis_of, cell_ends
from bayesjpt.table.numeric import LARGEST_NUMBER, LEAST_UNIT
from bayesjpt.table.schema import Column

REAL = Column("x", "real", (-np.inf, np.inf), resolution=0.5)
COUNT = Column("n", "integer", (-np.inf, np.inf))
N_CELL = 12

numbers = st.floats(-LARGEST_NUMBER, LARGEST_NUMBER)
"""Of any size, and those next to each other among them, since Hypothesis repeats and nudges."""


@st.composite
def intervals(draw):
    """Return two numbers in order, often few floats apart."""
    lo = draw(numbers)
    hi = draw(st.one_of(numbers, st.integers(0, 40).map(lambda k: lo + k * float(np.spacing(abs(lo))))))
    return min(lo, hi), max(lo, hi)


@given(intervals(), st.sampled_from([REAL, COUNT]))
def test_cells_of_any_interval_are_apart_and_cover_it(ends, column):
    lo, hi = ends if column is REAL else (float(np.floor(ends[0])), float(np.ceil(ends[1])))
    axis = axis_of(column, 0, (lo, hi), N_CELL)
    cells = cell_ends(axis)
    assert (np.diff(axis.edges) > 0.0).all()
    assert axis.edges.size <= N_CELL + 1
    Box({0: cells})  # refuses cells that overlap, or end before they begin
    assert cells[0, 0] <= lo <= hi <= cells[-1, 1]
    if column is COUNT:
        np.testing.assert_array_equal(cells, np.floor(cells))


@pytest.mark.parametrize(("first", "n"), [(-3, 8), (2**53 - 30, 100), (7, 1)])
def test_cells_of_whole_numbers_hold_each_of_them_once(first, n):
    cells = cell_ends(axis_of(COUNT, 0, (float(first), float(first + n - 1)), N_CELL))
    assert cells[0, 0] <= first < first + n - 1 <= cells[-1, 1] or n == 1
    np.testing.assert_array_equal(cells[1:, 0], cells[:-1, 1] + 1.0)


@given(intervals(), st.sampled_from([LEAST_UNIT, 1e-9, 0.25, 1e280]))
def test_rounded_numbers_are_as_far_as_their_difference_allows(ends, resolution):
    column = Column("x", "real", (-np.inf, np.inf), resolution=resolution)
    lo, hi = ends
    room = max(0.1 * (hi - lo), resolution) * (1.0 + 1e-9) + np.spacing(max(abs(lo), abs(hi)))
    for found in (rounded(column, [lo, hi]), rounded_outwards(column, lo, hi)):
        assert all(math.isfinite(x) for x in found)
        np.testing.assert_allclose(found, [lo, hi], rtol=0.0, atol=room)


def test_steps_of_a_column_keep_their_digits():
    quarters = Column("x", "real", (-np.inf, np.inf), resolution=0.25)
    assert rounded(quarters, [1.75, 1.75]) == [1.75, 1.75]
    assert rounded_outwards(quarters, 1.8, 1.8) == (1.75, 2.0)


def test_infinite_numbers_are_as_they_are():
    assert rounded(REAL, [-math.inf, 3.14159, math.inf]) == [-math.inf, 3.0, math.inf]
