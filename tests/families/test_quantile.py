"""Knots: CDF-LEARN against a slow twin, its bound, and what a leaf learns where values are few or tied."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bayesjpt import defaults
from bayesjpt.families import quantile
from bayesjpt.families.knots import fill_corners, learn_knots
from bayesjpt.families.quantile import QUANTILE_MAX_SEGMENTS, QUANTILE_MIN_VALUES, QUANTILE_NOISE
from tests.families.examples import COUNT, POSITIVE, REAL
from tests.strategies import law

ROUNDING = 1e-9
BOUNDS = (1e-3, 0.05)
LEAST = 3.0
MOST = 6

GRID = st.lists(st.integers(-30, 30), min_size=1, max_size=60).map(lambda cells: np.sort(np.array(cells) * 0.5))
"""Values on a grid, with ties and gaps."""


def corners(z: np.ndarray, half: float, lo: float = -math.inf, hi: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
    edge, below = np.empty(2 * z.size + 1), np.empty(2 * z.size + 1)
    n = fill_corners(z, half, lo, hi, edge, below)
    return edge[:n].copy(), below[:n].copy()


def knots(edge: np.ndarray, below: np.ndarray, bounds=BOUNDS, least: float = LEAST, most: int = MOST) -> list[int]:
    at = np.empty(most + 1, np.int64)
    n = learn_knots(edge, below, bounds, least, at)
    return at[: n + 1].tolist()


def naive_error(edge: np.ndarray, below: np.ndarray, first: int, last: int) -> float:
    """Return the mean squared error of one line over the values between two corners, each at both ends of its cell."""
    total = 0.0
    for k in range(first, last):
        line = np.interp(edge[k : k + 2], edge[[first, last]], below[[first, last]])
        total += (below[k + 1] - below[k]) * ((line - below[k : k + 2]) ** 2).mean()
    return total / (below[last] - below[first])


def bound(below: np.ndarray, first: int, last: int, bounds=BOUNDS) -> float:
    """Return the largest error, in squared numbers of values, that a segment may have."""
    return max(bounds[0] * below[-1] ** 2, bounds[1] * (below[last] - below[first]))


def splits(below: np.ndarray, first: int, last: int, least: float = LEAST) -> list[int]:
    """Return the corners that leave enough values on both sides."""
    return [k for k in range(first + 1, last) if min(below[k] - below[first], below[last] - below[k]) >= least]


def naive_knots(edge: np.ndarray, below: np.ndarray) -> list[int]:
    """Return the knots by the definition: the worst segment that may be split is split where least is left."""
    at = [0, edge.size - 1]
    while len(at) <= MOST:
        open_segments = [
            (naive_error(edge, below, first, last), first, last)
            for first, last in itertools.pairwise(at)
            if naive_error(edge, below, first, last) > bound(below, first, last) and splits(below, first, last)
        ]
        if not open_segments:
            break
        _, first, last = max(open_segments, key=lambda segment: (segment[0], -segment[1]))

        def left_over(k: int, first: int = first, last: int = last) -> float:
            left = naive_error(edge, below, first, k) * (below[k] - below[first])
            return left + naive_error(edge, below, k, last) * (below[last] - below[k])

        at = sorted([*at, min(splits(below, first, last), key=left_over)])
    return at


def learned(column, values, lo=-math.inf, hi=math.inf) -> np.ndarray:
    """Return the knots that a leaf learns, in the user's units."""
    found = quantile.leaf_constants(column, np.asarray(values, np.float64), lo, hi)
    assert quantile.valid_constants(column, found)
    return found[1:] * column.scale + column.location if column.base == "real" else found[1:]


# --- CDF-LEARN


def test_corners_are_edges_of_cells_that_meet_halfway_or_leave_a_gap():
    edge, below = corners(np.array([5.0, 6.0, 6.0, 9.0]), 0.75)
    np.testing.assert_allclose(edge, [4.25, 5.5, 6.75, 8.25, 9.75])
    assert below.tolist() == [0.0, 1.0, 3.0, 3.0, 4.0]


@law(150)
@given(GRID, st.sampled_from([0.05, 0.25]))
def test_corners_ascend_and_count_the_values_below(z, half):
    edge, below = corners(z, half)
    assert (np.diff(edge) > 0.0).all()
    assert below.tolist() == [float((z < e).sum()) for e in edge]


@pytest.mark.parametrize("half", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize("n_distinct", [3, 20, 120])
def test_knots_are_those_of_the_slow_twin(n_distinct, half, rng):
    z = np.sort(rng.choice(rng.gamma(2.0, size=n_distinct), 200))
    edge, below = corners(z, half)
    assert knots(edge, below) == naive_knots(edge, below)


@pytest.mark.parametrize("n", [7, 100, 3000])
@pytest.mark.parametrize("decimals", [1, 6])
def test_error_of_every_segment_is_within_the_bound_or_it_cannot_be_split(n, decimals, rng):
    z = np.sort(np.round(rng.standard_t(2.0, n), decimals))
    edge, below = corners(z, 0.5 * 10.0**-decimals)
    bounds, least = (defaults.QUANTILE_EPSILON, QUANTILE_NOISE), float(QUANTILE_MIN_VALUES)
    at = knots(edge, below, bounds, least, QUANTILE_MAX_SEGMENTS)
    assert len(at) <= QUANTILE_MAX_SEGMENTS
    for first, last in itertools.pairwise(at):
        if splits(below, first, last, least):
            assert naive_error(edge, below, first, last) <= bound(below, first, last, bounds) * (1.0 + ROUNDING)


def test_number_of_segments_is_bounded_and_worst_errors_go_first(rng):
    edge, below = corners(np.sort(rng.normal(size=2000)), 1e-6)
    few, more = (knots(edge, below, (0.0, 0.0), 1.0, most) for most in (4, 40))
    assert (len(few), len(more)) == (5, 41)
    assert set(few) < set(more)


def test_bend_between_two_densities_is_found(rng):
    x = np.concatenate([rng.uniform(0.0, 1.0, 3000), rng.uniform(1.0, 10.0, 1000)])
    found = learned(dataclasses.replace(REAL, resolution=1e-6), x)
    np.testing.assert_allclose(found[[0, 1, -1]], [0.0, 1.0, 10.0], atol=0.05)


# --- knots of a leaf


def test_knots_of_a_single_value_are_a_resolution_apart():
    np.testing.assert_allclose(learned(REAL, [4.2] * 50), [4.15, 4.25])
    assert learned(COUNT, [3.0] * 50).tolist() == [2.5, 3.5]


def test_knots_without_values_cover_what_the_interval_leaves_of_the_column():
    np.testing.assert_allclose(learned(REAL, []), [-0.05, 11.05])
    np.testing.assert_allclose(learned(REAL, [], 4.0, math.inf), [4.0, 11.05])
    np.testing.assert_allclose(learned(REAL, [], 20.0, math.inf), [20.0, 20.05])
    assert learned(COUNT, [], 3.0, 7.0).tolist() == [2.5, 7.5]
    assert learned(COUNT, [], 3.0, 3.0).tolist() == [2.5, 3.5]
    np.testing.assert_allclose(learned(REAL, [4.0], 4.0, 4.0), [3.95, 4.05])


def test_knots_stay_inside_the_interval_and_the_support(rng):
    x = np.round(rng.uniform(4.0, 5.0, 500), 1)
    found = quantile.leaf_constants(REAL, x, 4.0, np.nextafter(5.02, 0.0))
    assert found[1] == (4.0 - REAL.location) / REAL.scale
    assert found[-1] == (np.nextafter(5.02, 0.0) - REAL.location) / REAL.scale
    assert learned(POSITIVE, [0.0, 0.5, 0.5])[0] == 0.0
    assert learned(COUNT, [0.0, 1.0, 2.0])[0] == -0.5


def test_knots_reach_the_ends_that_conditions_give_and_no_others(rng):
    x = np.round(rng.uniform(4.4, 4.6, 500), 2)
    column = dataclasses.replace(REAL, resolution=0.01)
    free = learned(column, x)
    for lo, hi in ((4.0, 5.0), (-math.inf, 5.0), (4.0, math.inf)):
        found = learned(column, x, lo, hi)
        assert found[0] == pytest.approx(lo if math.isfinite(lo) else free[0], abs=ROUNDING)
        assert found[-1] == pytest.approx(hi if math.isfinite(hi) else free[-1], abs=ROUNDING)
        assert set(free[1:-1]) <= set(found)
    assert learned(COUNT, [5.0, 6.0, 6.0], 3.0, 9.0).tolist() == [2.5, 6.5, 9.5]


def test_a_gap_wider_than_the_piece_beside_it_is_a_piece_of_its_own():
    values = [4.95] * 9 + [5.05] * 9
    np.testing.assert_allclose(learned(REAL, values, 4.8, 5.2), [4.8, 5.2])
    np.testing.assert_allclose(learned(REAL, values, 4.0, 6.0), [4.0, 4.9, 5.1, 6.0])


@law(60)
@given(GRID, st.floats(0.0, 40.0), st.floats(0.0, 40.0), st.floats(0.0, 1e-2))
def test_pieces_that_reach_beyond_the_values_are_valid_and_hold_them(cells, below, above, epsilon):
    lo, hi = cells[0] - below, cells[-1] + above
    assume(lo < hi)
    found = quantile.leaf_constants(REAL, cells, lo, hi, epsilon=epsilon)
    assert quantile.valid_constants(REAL, found)
    np.testing.assert_array_equal(found[[1, -1]], (np.array([lo, hi]) - REAL.location) / REAL.scale)
    assert (found[1] <= (cells - REAL.location) / REAL.scale).all()
    assert (found[-1] >= (cells - REAL.location) / REAL.scale).all()


def test_knots_of_whole_numbers_lie_between_them(rng):
    found = learned(COUNT, rng.poisson(6.0, 2000))
    assert found.size > 5
    np.testing.assert_array_equal(found % 1.0, 0.5)


def test_many_ties_at_the_least_value_keep_their_mass(rng):
    x = np.concatenate([np.zeros(900), np.round(rng.uniform(1.0, 50.0, 100), 1)])
    constants = quantile.leaf_constants(REAL, x, -math.inf, math.inf)
    theta = np.histogram((x - REAL.location) / REAL.scale, constants[1:])[0] / 1000.0
    lo, hi = ((end - REAL.location) / REAL.scale for end in (-0.05, 0.05))
    assert math.exp(quantile.log_mass(lo, hi, theta, constants)) > 0.89


@law(100)
@given(
    st.lists(st.one_of(st.floats(-1e150, 1e150), st.sampled_from([0.0, 1e15, np.nextafter(1e15, 2e15)])), min_size=1),
    st.floats(-300, 2),
)
def test_knots_ascend_whatever_the_values(values, log_resolution):
    column = dataclasses.replace(REAL, resolution=10.0**log_resolution, location=0.0, scale=1.0)
    assert (np.diff(learned(column, values)) > 0.0).all()


def test_mass_of_the_interval_that_knots_were_learned_on_is_exactly_one(rng):
    x = rng.uniform(4.0, 5.0, 300)
    constants = quantile.leaf_constants(REAL, x, 4.0, 5.0)
    lo, hi = ((end - REAL.location) / REAL.scale for end in (4.0, 5.0))
    theta = rng.dirichlet(np.ones(constants.size - 2))
    assert quantile.log_mass(lo, hi, theta, constants) == 0.0


def test_values_beyond_the_knots_have_no_density_mass_or_statistics():
    constants = np.array([0.0, -1.0, 0.5, 2.0])
    theta, z = np.array([0.3, 0.7]), np.array([-1.1, 2.1, 0.0])
    assert quantile.log_mass(2.1, np.inf, theta, constants) == -np.inf
    stats = np.zeros(2)
    quantile.accumulate(z, z, np.arange(3, dtype=np.int32), constants, stats)
    assert stats.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "constants",
    [[], [0.0], [0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 2.0, 1.0], [0.0, 1.0, np.nan], [0.0, 1.0, np.inf], [1.0, 0.0, 1.0]],
)
def test_constants_that_no_leaf_can_have_are_not_valid(constants):
    assert not quantile.valid_constants(REAL, np.array(constants))


def test_knots_of_whole_numbers_at_whole_numbers_are_not_valid():
    assert quantile.valid_constants(COUNT, np.array([1.0, -0.5, 3.5]))
    assert not quantile.valid_constants(COUNT, np.array([1.0, 0.0, 3.0]))
    assert not quantile.valid_constants(COUNT, np.array([0.0, -0.5, 3.5]))


def test_pieces_are_named_by_their_ranges():
    assert quantile.entry_labels(REAL, np.array([0.0, -1.0, 0.5, 2.25])) == ["1..4", "4..7.5"]
    assert quantile.entry_labels(COUNT, np.array([1.0, -0.5, 2.5, 3.5])) == ["0..2", "3..3"]
