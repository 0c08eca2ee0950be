"""Days of months against the standard library's calendar, and the nearest of them by search."""

import datetime

import numpy as np
import pytest

from bayesjpt.numerics.recording_grid import first_of_month, grid_point, grid_points, month_of

EPOCH = datetime.date(1970, 1, 1)


def test_every_month_of_the_calendar_begins_where_the_library_says():
    for year in range(1, 10_000):
        for month in range(1, 13):
            number = 12 * (year - 1970) + month - 1
            day = (datetime.date(year, month, 1) - EPOCH).days
            assert first_of_month(float(number)) == day
            assert month_of(float(day)) == number
            assert month_of(day - 1e-3) == number - 1


def points(n_month, offset):
    """Days from 1899 to 2101 by definition: firsts of every so many months, moved."""
    months = np.arange(np.datetime64("1899-01"), np.datetime64("2101-01"), np.timedelta64(n_month, "M"))
    return months.astype("datetime64[D]").astype(np.float64) + offset


@pytest.mark.parametrize(("n_month", "offset"), [(1, 0), (1, -1), (1, 14), (3, 0), (3, -1), (12, 0), (12, 27)])
def test_the_nearest_day_of_a_month_is_that_of_a_search(n_month, offset):
    known = points(n_month, offset)
    x = np.random.default_rng(n_month).uniform(-25_000.0, 45_000.0, 2_000)
    nearest = np.abs(known[:, None] - x).argmin(axis=0)
    assert (grid_points(x, -float(n_month), 0.0, float(offset)) == known[nearest]).all()
    for moved in (-1, 1):
        found = [grid_point(value, -float(n_month), 0.0, float(offset), moved) for value in x[:200]]
        assert (np.array(found) == known[nearest[:200] + moved]).all()


def test_decimals_come_out_as_they_are_written_and_what_is_not_finite_stays():
    assert grid_point(0.31, 0.1, 10.0, 0.0, 0) == 0.3
    assert grid_point(2.6, 0.0, 0.0, 0.0, -1) == 2.0
    assert grid_point(np.inf, -1.0, 0.0, 0.0, 0) == np.inf
    assert grid_points(np.array([[5.2], [7.3]]), 2.0, 0.0, 1.0).tolist() == [[5.0], [7.0]]
