"""The recording grid, and location and scale, at every magnitude."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.table import resolution
from bayesjpt.table.cells import MICROSECONDS_PER_DAY
from bayesjpt.table.resolution import moment_grid, months_apart, steps_apart, whole_step

RELATIVE = 1e-12

steps = st.lists(st.integers(-20_000, 20_000).filter(bool), min_size=40, max_size=80, unique=True)
digits = st.sampled_from([1, 2, 5])


def counted(values):
    return np.unique(np.asarray(values, float), return_counts=True)


@settings(derandomize=True, deadline=None)
@given(steps, digits, st.integers(-290, 290))
def test_grid_of_multiples_of_a_width_is_that_width(numbers, digit, exponent):
    width = float(f"{digit}e{exponent}")
    # 1 and 7 steps make sure that no coarser grid holds all; with 40 values no value may be off the grid
    found = resolution.grid(*counted(width * np.array([*numbers, 1, 7])))
    assert found == width


@settings(derandomize=True, deadline=None)
@given(steps, digits, st.integers(-6, 6))
def test_grid_of_values_as_they_are_printed_is_the_last_printed_digit(numbers, digit, exponent):
    unit = f"e{exponent}"
    values = [float(f"{number * digit}{unit}") for number in [*numbers, 1, 7]]
    assert resolution.grid(*counted(values)) == float(f"{digit}{unit}")


def test_grid_survives_one_value_in_a_hundred_off_it(rng):
    values = np.append(rng.integers(1, 500, 990) / 100.0, rng.normal(size=10))
    assert resolution.grid(*counted(values)) == 0.01


def test_grid_does_not_survive_three_values_in_a_hundred_off_it(rng):
    values = np.append(rng.integers(1, 500, 970) / 100.0, rng.normal(size=30))
    assert resolution.grid(*counted(values)) is None


def test_zeros_do_not_hide_the_grid_of_the_others(rng):
    values = np.append(np.zeros(9_900), rng.integers(1, 500, 100) / 20.0)
    assert resolution.grid(*counted(values)) == 0.05


@pytest.mark.parametrize("n_zeros", [20, 200, 2_000])
def test_zeros_stored_as_a_millionth_do_not_make_the_grid_finer(rng, n_zeros):
    values = np.append(np.full(n_zeros, 1e-6), rng.integers(1, 500, 1_000) / 100.0)
    assert resolution.grid(*counted(values)) == 0.01


def test_a_frequent_half_among_whole_numbers_keeps_the_grid_of_halves(rng):
    values = np.append(np.full(100, 0.5), rng.integers(1, 50, 900))
    assert resolution.grid(*counted(values)) == 0.5


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 1e300])
def test_continuous_values_have_no_grid(rng, scale):
    assert resolution.grid(*counted(scale * rng.normal(size=500))) is None


def test_rounding_errors_of_sums_do_not_hide_a_grid(rng):
    values = 0.1 * rng.integers(1, 30, 300) + 0.2 * rng.integers(1, 30, 300)
    assert resolution.grid(*counted(values)) == 0.1


def test_grid_of_the_largest_numbers_is_finite():
    largest = np.finfo(float).max
    assert np.isfinite(resolution.grid(np.array([largest]), np.array([3])) or 0.0)


def test_all_zero_values_have_no_grid():
    assert resolution.grid(np.zeros(1), np.array([7])) is None


def test_grid_is_found_among_a_million_distinct_values():
    values = np.arange(1, 1_000_001) * 0.01
    assert resolution.grid(values, np.ones(values.size, np.int64)) == 0.01


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=2, max_size=50),
    st.integers(-900, 900),
)
def test_summary_scales_with_the_values(values, exponent):
    distinct, counts = counted(values)
    plain = np.array(resolution.summarise(distinct, counts))
    scaled = np.array(resolution.summarise(np.ldexp(distinct, exponent), counts))
    np.testing.assert_allclose(np.ldexp(scaled, -exponent), plain, rtol=RELATIVE, atol=0.0)


def test_summary_is_median_interquartile_range_and_mean(rng):
    values = rng.integers(0, 50, 401).astype(float)
    lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75])
    found = resolution.summarise(*counted(values))
    np.testing.assert_allclose(found, (median, upper - lower, values.mean()), rtol=RELATIVE)


def test_spread_falls_back_to_the_standard_deviation_where_quartiles_agree():
    values = np.array([3.0] * 90 + [5.0] * 10)
    assert resolution.summarise(*counted(values))[1] == pytest.approx(values.std(), rel=RELATIVE)


def test_spread_of_a_constant_is_zero():
    assert resolution.summarise(np.array([4.0]), np.array([10]))[:2] == (4.0, 0.0)


@pytest.mark.parametrize("parts", [1, 24, 1_440, 86_400, 86_400_000])
def test_day_grid_is_the_largest_unit_of_time_that_divides(rng, parts):
    ticks = rng.integers(-(10**6), 10**6, 50) * (MICROSECONDS_PER_DAY // parts) + MICROSECONDS_PER_DAY // parts
    assert resolution.day_grid(np.append(ticks, MICROSECONDS_PER_DAY // parts) / MICROSECONDS_PER_DAY) == 1.0 / parts


@pytest.mark.parametrize("value", [3.0, -3.0, 1e-300, 1e300])
def test_fallback_of_a_constant_is_a_thousandth_of_it(value):
    assert resolution.fallback(np.array([value]), 0.0) == pytest.approx(abs(value) / 1_000.0, rel=RELATIVE)


def test_fallback_of_zeros_is_one():
    assert resolution.fallback(np.zeros(1), 0.0) == 1.0


def test_no_grid_is_wider_than_the_values_are_apart(rng):
    stamps = np.unique(1.7e18 + rng.integers(0, 1_000_000, 40))
    assert resolution.grid(stamps, np.ones(stamps.size, np.int64)) is None
    hundreds = 1.7e9 + 100.0 * np.arange(3)
    assert resolution.grid(hundreds, np.full(3, 9)) == 100.0


@pytest.mark.parametrize(
    ("seconds", "step"), [(600, 600), (300, 300), (3_600, 3_600), (420, 60), (7_200, 7_200), (0.1, 0.1)]
)
def test_times_on_a_coarser_grid_than_their_unit_are_recorded_to_it(seconds, step, rng):
    days = 19_800.0 + rng.choice(4_000, 60, replace=False) * seconds / 86_400.0
    assert moment_grid(np.unique(days)) * 86_400.0 == pytest.approx(step)


def test_few_times_that_may_be_on_a_grid_by_chance_keep_their_unit():
    assert moment_grid(np.array([0.0, 20.0, 40.0]) / 1_440.0) == 1.0 / 1_440.0


@pytest.mark.parametrize(
    ("values", "step"), [((0, 5, 10, 15, 20), 5), ((2, 4, 6, 10), 1), ((-30, 0, 10, 20, 70), 10), ((7,), 1)]
)
def test_whole_numbers_have_the_step_that_divides_all_unless_it_may_be_chance(values, step):
    assert whole_step(np.array(values, float)) == step


@pytest.mark.parametrize(
    ("values", "width", "found"),
    [
        (np.arange(6) + 0.99, 0.01, (1.0, 0.99)),
        (np.arange(0.25, 5.0, 0.25), 0.01, (0.25, 0.25)),
        (19_723.0 + 7.0 * np.arange(6), 1.0, (7.0, 4.0)),  # 2024-01-01 and five Mondays more
        (19_719.0 + 7.0 * np.arange(6), 1.0, (7.0, 7.0)),  # Thursdays, as 1970-01-01 was
        (np.array([0.5, 1.5, 2.5]), 0.1, (0.0, 0.0)),
        (np.array([1.0, 2.0, 4.5, 7.5, 9.0, 9.1]), 0.1, (0.0, 0.0)),
    ],
)
def test_values_that_lie_several_widths_apart_have_a_step_and_an_offset(values, width, found):
    assert steps_apart(values, width) == pytest.approx(found)


@pytest.mark.parametrize(
    ("days", "found"),
    [
        (("2020-01-01", "2020-02-01", "2021-07-01"), (1.0, 0.0)),
        (("2020-01-31", "2020-02-29", "2021-06-30"), (1.0, -1.0)),
        (("2020-03-31", "2020-06-30", "2020-12-31", "2021-03-31", "2022-06-30", "2022-09-30"), (3.0, -1.0)),
        (("2000-01-01", "2004-01-01", "2011-01-01"), (12.0, 0.0)),
        (("1969-11-28", "1970-01-28", "1970-02-28", "1970-05-28"), (1.0, 27.0)),
        (("2020-02-29", "2020-03-29", "2020-05-29"), (0.0, 0.0)),  # no day of every month
        (("2020-01-01", "2020-02-01", "2021-07-02"), (0.0, 0.0)),
        (("2020-01-01", "2020-02-01"), (0.0, 0.0)),  # two may agree by chance
    ],
)
def test_dates_of_one_day_of_the_month_are_months_apart(days, found):
    values = np.sort(np.array(days, "datetime64[D]").astype(float))
    assert months_apart(values, 1.0) == found
    assert months_apart(values, 0.5) == (0.0, 0.0)
