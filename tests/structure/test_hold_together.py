"""Which columns hang together: components of pairs, most of which no coefficient is computed for; codes of cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bayesjpt.structure import dependence, features
from bayesjpt.structure.components import components
from bayesjpt.structure.dependence import coefficients, hold_together, largest_correlations, whiten, whiten_all
from bayesjpt.structure.features import RandomFeatures, column_features, make_codes
from tests.structure.tables import table_of, without_cells

ROUNDING = 1e-9
SETTINGS = RandomFeatures()


def table_of_groups(rng, n_row=300, n_group=4):
    """Return pairs of columns that share a latent normal, of numbers and labels."""
    z = rng.standard_normal((n_group, n_row))
    numbers = z + 0.5 * rng.standard_normal(z.shape)
    labels = np.clip(np.round(2.0 * z + rng.standard_normal(z.shape)) + 3.0, 0.0, 6.0)
    return table_of(*numbers, *labels, bases="r" * n_group + "c" * n_group)


def features_of(table, rows=None, seed=3, codes=None):
    rows = np.arange(table.n_row) if rows is None else rows
    return column_features(table, rows, range(table.n_column), SETTINGS, np.random.default_rng(seed), codes)


def by_scipy(together):
    """Return the first column of each column's component."""
    _, part = connected_components(csr_array(together), directed=False)
    return np.array([np.flatnonzero(part == own)[0] for own in part])


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=14))
def test_components_are_scipys(n, edges):
    together = np.eye(n, dtype=bool)
    for a, b in edges:
        together[a % n, b % n] = together[b % n, a % n] = True
    assert np.array_equal(components(together), by_scipy(together))


@pytest.mark.parametrize("columns_at_once", [1, 3, 32])
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0, 1.5])
def test_columns_held_together_are_components_of_all_coefficients(rng, monkeypatch, threshold, columns_at_once):
    monkeypatch.setattr(dependence, "_COLUMNS_AT_ONCE", columns_at_once)
    monkeypatch.setattr(dependence, "_PAIRS_AT_ONCE", 2)
    white = whiten_all(features_of(table_of_groups(rng, 60)))
    expected = components(largest_correlations(white) >= threshold)
    assert np.array_equal(hold_together(white, threshold), expected)


def test_columns_of_one_component_are_not_compared_with_each_other(rng, monkeypatch):
    numbers = rng.normal(size=60) + 0.1 * rng.normal(size=(40, 60))
    white = whiten_all(features_of(table_of(*numbers, bases="r" * 40)))
    looked_at = []

    def compared(features, now, others, *arguments):
        looked_at.append((now.size, others.size))
        return original(features, now, others, *arguments)

    original = dependence._compared
    monkeypatch.setattr(dependence, "_compared", compared)
    monkeypatch.setattr(dependence, "_COLUMNS_AT_ONCE", 4)
    assert not hold_together(white, 0.5).any()
    assert looked_at == [(4, 40)]


def test_thresholds_of_single_pairs_count(rng):
    white = whiten_all(features_of(table_of_groups(rng)))
    found = largest_correlations(white)
    wanted = np.where(rng.random(found.shape) < 0.5, found - 1e-6, found + 1e-6)
    wanted = np.triu(wanted, 1) + np.triu(wanted, 1).T
    assert np.array_equal(hold_together(white, wanted), components((found >= wanted) & ~np.eye(len(found), dtype=bool)))


def test_pairs_that_bounds_leave_open_are_decided_and_a_wrong_decision_is_caught(rng, monkeypatch):
    white = whiten_all(features_of(table_of_groups(rng, 60)))
    expected = {wanted: components(largest_correlations(white) >= wanted) for wanted in np.linspace(0.3, 0.9, 25)}
    assert all(np.array_equal(hold_together(white, wanted), found) for wanted, found in expected.items())
    monkeypatch.setattr(dependence, "_reaches", lambda cross, threshold: np.ones(len(cross), bool))
    assert not all(np.array_equal(hold_together(white, wanted), found) for wanted, found in expected.items())


def test_missing_cells_leave_out_their_rows(rng):
    white = whiten_all(features_of(without_cells(table_of_groups(rng), 0.2, rng)))
    assert np.array_equal(hold_together(white, 0.4), components(largest_correlations(white) >= 0.4))


def test_columns_whitened_together_span_what_each_spans_alone(rng):
    table = without_cells(table_of_groups(rng), 0.1, rng)
    made = features_of(table)
    together, alone = whiten_all(made), [whiten(column) for column in made]
    for one, other in zip(together, alone, strict=True):
        assert one.table.shape == other.table.shape
        basis, twin = (column.table[column.index] for column in (one, other))
        np.testing.assert_allclose(basis @ basis.T, twin @ twin.T, atol=1e-6)
    np.testing.assert_allclose(largest_correlations(together), coefficients(made), atol=1e-6)


# --- codes


def test_a_block_has_the_features_of_a_table_of_its_rows(rng):
    table = without_cells(table_of_groups(rng, 2000), 0.1, rng)
    rows = np.sort(rng.choice(2000, 40, replace=False))  # far fewer cells than distinct values
    for one, other in zip(
        features_of(table, rows, codes=make_codes(table)), features_of(table.take(rows)), strict=True
    ):
        assert np.array_equal(one.index, other.index)
        assert np.array_equal(one.table, other.table)


def test_columns_made_a_few_at_a_time_have_the_same_features(rng, monkeypatch):
    table = table_of_groups(rng, 50)
    before = features_of(table)
    monkeypatch.setattr(features, "_CELLS_AT_ONCE", 1)
    for one, other in zip(features_of(table), before, strict=True):
        assert np.array_equal(one.index, other.index)
        np.testing.assert_allclose(one.table, other.table, atol=ROUNDING)


def test_constant_columns_hold_at_most_one_value_in_the_rows():
    table = table_of([1.0, 1.0, 2.0], [np.nan, 3.0, 4.0], [np.nan, np.nan, 5.0], [6.0, 7.0, 7.0])
    codes, every = make_codes(table), np.arange(4)
    assert codes.constant(np.array([0, 1]), every).tolist() == [True, True, True, False]
    assert codes.constant(np.array([1, 2]), every).tolist() == [False, False, True, True]
    assert codes.constant(np.array([1, 2]), every[2:]).tolist() == [True, True]
