"""2-means on random features."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.structure.base import one_thread
from bayesjpt.structure.cluster import two_means
from bayesjpt.structure.features import ColumnFeatures, RandomFeatures, column_features
from tests.structure.tables import table_of, without_cells

ALL = 10_000


def clusters(table, rng, max_rows=ALL):
    with one_thread():
        return two_means(
            column_features(table, np.arange(table.n_row), range(table.n_column), RandomFeatures(), rng), max_rows, rng
        )


def planted(rng, n_row=600, n_small=280):
    """Return a table of ten columns with two groups of rows, and which rows are in the smaller one."""
    small = np.zeros(n_row, bool)
    small[rng.choice(n_row, n_small, replace=False)] = True
    table = table_of(
        np.where(small, 8.0, 0.0) + rng.standard_normal(n_row),
        np.where(small, -8.0, 0.0) + rng.standard_normal(n_row),
        rng.poisson(np.where(small, 60, 2)),
        np.where(small, rng.integers(0, 2, n_row), rng.integers(2, 4, n_row)),
        *(np.where(small, 8.0, 0.0) + rng.standard_normal((6, n_row))),
        bases="rricrrrrrr",
    )
    return table, small


@pytest.mark.parametrize("max_rows", [ALL, 100])
def test_planted_groups_are_found(rng, max_rows):
    table, small = planted(rng)
    assert (clusters(table, rng, max_rows) == small).mean() > 0.98  # ranks leave no gap between the groups


def test_planted_groups_are_found_when_a_third_of_the_cells_is_missing(rng):
    table, small = planted(rng)
    found = clusters(without_cells(table, 0.3, rng), rng)
    assert (found == small).mean() > 0.95


def test_true_marks_the_smaller_cluster(rng):
    for seed in range(10):
        side = clusters(table_of(*rng.standard_normal((2, 300))), np.random.default_rng(seed))
        assert 0 < side.sum() <= 150


def test_every_row_lies_nearer_to_the_mean_of_its_own_cluster(rng):
    group = np.arange(500) < 100
    labels = np.where(rng.random((6, 500)) < 0.8, group, rng.integers(0, 2, (6, 500)))
    features = column_features(table_of(*labels, bases="cccccc"), np.arange(500), range(6), RandomFeatures(), rng)
    with one_thread():
        side = two_means(features, ALL, rng)
    points = np.concatenate([column.table[column.index] for column in features], axis=1)
    distance = [((points - points[part].mean(axis=0)) ** 2).sum(axis=1) for part in (side, ~side)]
    nearer = distance[0] < distance[1]
    assert (nearer == side).mean() > 0.99  # 2-means stops within a tolerance of its fixed point


def test_rows_that_are_all_alike_are_not_divided(rng):
    assert clusters(table_of(np.full(50, 2.0), np.full(50, 1.0), bases="rc"), rng) is None


def test_rows_without_any_observed_cell_are_not_divided(rng):
    assert clusters(table_of(np.full(50, np.nan), np.full(50, np.nan)), rng) is None


def test_a_single_row_is_not_divided(rng):
    assert clusters(table_of([1.0], [2.0]), rng) is None


def test_rows_unlike_a_sample_of_equal_rows_are_a_cluster(rng):
    odd = np.zeros(5000, bool)
    odd[[0, 4000]] = True
    table = table_of(np.where(odd, np.arange(1.0, 5001.0), 0.0), np.zeros(5000))
    assert np.array_equal(clusters(table, np.random.default_rng(0), max_rows=5), odd)


def test_of_two_halves_the_one_without_the_first_row_is_returned(rng):
    side = np.arange(100) >= 50
    column = ColumnFeatures(side.astype(np.int32), np.array([[-1.0, 0.5], [1.0, -0.5], [0.0, 0.0]]))
    with one_thread():
        assert np.array_equal(two_means([column], ALL, rng), side)


def test_same_generator_state_gives_the_same_clusters(rng):
    table = table_of(*rng.standard_normal((3, 500)))
    first = clusters(table, np.random.default_rng(5), max_rows=100)
    assert np.array_equal(first, clusters(table, np.random.default_rng(5), max_rows=100))


def test_clusters_are_those_of_scikit_learn(rng):
    """Neither finds the best two clusters always: each may be better once in a while, by little."""
    from sklearn.cluster import KMeans

    ours, theirs = [], []
    for seed in range(10):
        table = planted(np.random.default_rng(seed), n_small=200)[0]
        features = column_features(table, np.arange(table.n_row), range(10), RandomFeatures(), rng)
        points = np.concatenate([column.table[column.index] for column in features], axis=1)
        side = two_means(features, ALL, np.random.default_rng(seed))
        ours.append(sum(((points[part] - points[part].mean(axis=0)) ** 2).sum() for part in (side, ~side)))
        theirs.append(KMeans(2, n_init=3, random_state=seed).fit(points).inertia_)
    assert np.array(ours) == pytest.approx(np.array(theirs), rel=1e-3)
