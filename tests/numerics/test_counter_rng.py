"""Uniform numbers as a function of (key, row, node): uniform, and independent along every argument."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bayesjpt.numerics import counter_rng
from bayesjpt.numerics.counter_rng import fill_uniform, uniform
from tests.statistics import FALSE_ALARM, LARGEST_Z, cdf_deviation, dkw_bound

N = 40_000
GRID = 16
KEY = np.uint64(0x0123456789ABCDEF)


def sweep_key(chain_key, sweep):
    return np.uint64(counter_rng.sweep_key(np.uint64(chain_key), np.uint64(sweep)))


def by_row(key=KEY, node=3, first_row=0, step=1):
    out = np.empty(N)
    fill_uniform(key, first_row, np.arange(N, dtype=np.int32) * step, node, out)
    return out


def by_node(key=KEY, row=3):
    return np.array([uniform(key, row, node) for node in range(N)])


def by_sweep(chain_key=KEY, row=3, node=5):
    return np.array([uniform(sweep_key(chain_key, sweep), row, node) for sweep in range(N)])


def by_chain(row=3, node=5):
    return np.array([uniform(sweep_key(chain, 0), row, node) for chain in range(N)])


SEQUENCES = {"row": by_row, "node": by_node, "sweep": by_sweep, "chain": by_chain}


def pair_p_value(first, second):
    """Return the p-value of a chi-square test that pairs fill the unit square evenly."""
    counts, _, _ = np.histogram2d(first, second, bins=GRID, range=[[0.0, 1.0], [0.0, 1.0]])
    expected = first.size / GRID**2
    return scipy.stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), GRID**2 - 1)


def correlation_z(first, second):
    return np.corrcoef(first, second)[0, 1] * np.sqrt(first.size)


# --- uniform


@pytest.mark.parametrize("along", SEQUENCES)
def test_numbers_are_uniform(along):
    assert cdf_deviation(SEQUENCES[along](), lambda x: x) < dkw_bound(N)


def test_numbers_are_multiples_of_two_to_the_minus_53_below_one():
    scaled = by_row() * 2.0**53
    assert (scaled == np.floor(scaled)).all()
    assert scaled.min() >= 0.0
    assert scaled.max() < 2.0**53


def test_numbers_are_all_distinct():
    assert np.unique(np.concatenate([by_row(), by_row(node=4), by_sweep()])).size == 3 * N


# --- independent


@pytest.mark.parametrize("lag", [1, 2, 64, 256])
@pytest.mark.parametrize("along", SEQUENCES)
def test_neighbours_are_independent(along, lag):
    numbers = SEQUENCES[along]()
    assert pair_p_value(numbers[:-lag], numbers[lag:]) > FALSE_ALARM
    assert abs(correlation_z(numbers[:-lag], numbers[lag:])) < LARGEST_Z


@pytest.mark.parametrize(
    "other",
    [
        {"node": 4},
        {"node": 2**30},
        {"first_row": 4096},
        {"key": KEY + np.uint64(1)},
        {"key": sweep_key(KEY, 0)},
        {"key": KEY ^ np.uint64(1 << 63)},
    ],
    ids=str,
)
def test_sequences_over_rows_at_other_nodes_and_keys_are_independent(other):
    first, second = by_row(), by_row(**other)
    assert pair_p_value(first, second) > FALSE_ALARM
    assert abs(correlation_z(first, second)) < LARGEST_Z


def test_row_and_node_are_not_interchangeable():
    forth = np.array([uniform(KEY, row, row + 1) for row in range(N)])
    back = np.array([uniform(KEY, row + 1, row) for row in range(N)])
    assert pair_p_value(forth, back) > FALSE_ALARM


def test_correlated_sequences_are_caught():
    numbers = by_row()
    assert pair_p_value(numbers, (numbers + 0.01) % 1.0) < FALSE_ALARM


# --- the loop


@pytest.mark.parametrize("first_row", [0, 1, 4096, 10**12])
def test_filled_numbers_equal_those_one_by_one(first_row, rng):
    rows = np.sort(rng.choice(1024, 77, replace=False)).astype(np.int32)
    out = np.empty(77)
    fill_uniform(KEY, first_row, rows, 11, out)
    assert out.tolist() == [uniform(KEY, first_row + int(row), 11) for row in rows]


def test_a_number_does_not_depend_on_which_others_are_asked():
    alone = np.empty(1)
    fill_uniform(KEY, 0, np.array([123], np.int32), 3, alone)
    assert alone[0] == by_row()[123]
