"""Chow-Liu trees against counts pair by pair and against every spanning tree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bayesjpt.structure import chow_liu as module
from bayesjpt.structure.chow_liu import Bins, chow_liu, independent_log_likelihood
from tests.structure import naive_trees as naive

N_BIN = np.array([2, 3, 2, 5, 1, 2])
EQUAL = 1e-9


def bins_of(rng: np.random.Generator, missing: float, n_row: int = 150) -> Bins:
    base = rng.integers(30, size=n_row)
    code = np.stack([(base // int(rng.integers(1, 4)) + (rng.random(n_row) < 0.3)) % n for n in N_BIN]).astype(np.int16)
    code[rng.random(code.shape) < missing] = -1
    return Bins(code, N_BIN.astype(np.int64))


def weights(bins: Bins, rows: np.ndarray, ess: float) -> np.ndarray:
    n = N_BIN.size
    weight = np.zeros((n, n))
    for a, b in itertools.permutations(range(n), 2):
        weight[a, b] = naive.information(
            naive.pair_counts(bins.code[a, rows], bins.code[b, rows], int(N_BIN[a]), int(N_BIN[b])), ess
        )
    return weight


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_pairs_are_counted_as_by_hand(rng, missing):
    bins = bins_of(rng, missing)
    rows, columns = np.sort(rng.choice(150, 101, replace=False)), np.arange(N_BIN.size)
    bits, at, count = module._pack(bins.code, bins.n_bin, rows, columns)
    for a, b in itertools.permutations(range(N_BIN.size), 2):
        out = np.empty((N_BIN[a], N_BIN[b]))
        n = module._pair(bits, at, count, rows.size, a, b, out)
        expected = naive.pair_counts(bins.code[a, rows], bins.code[b, rows], int(N_BIN[a]), int(N_BIN[b]))
        np.testing.assert_array_equal(out, expected)
        assert n == expected.sum()


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("ess", [0.01, 1.0])
def test_no_spanning_tree_has_more_information(rng, missing, ess):
    for _ in range(5):
        bins, rows = bins_of(rng, missing), np.arange(150)
        weight = weights(bins, rows, ess)
        found = chow_liu(bins, rows, np.arange(N_BIN.size), ess)
        edges = [(column, parent) for column, parent in enumerate(found.parents) if parent >= 0]
        assert len(edges) == N_BIN.size - 1
        assert naive.total_information(edges, weight) == pytest.approx(naive.best_tree(weight), abs=EQUAL)


def test_log_likelihood_is_that_of_the_shares_of_the_rows(rng):
    bins, rows = bins_of(rng, 0.0), np.arange(0, 150, 2)
    columns = np.arange(N_BIN.size)
    found = chow_liu(bins, rows, columns, 1.0)
    for parents, value in (
        (found.parents, found.log_likelihood),
        (np.full(N_BIN.size, -1), independent_log_likelihood(bins, rows, columns)),
    ):
        tables = naive.smoothed_tables(bins.code[:, rows], parents, N_BIN, 1e-12)
        each = [naive.tree_probability(bins.code[:, row], parents, tables) for row in rows]
        assert np.log(each).sum() == pytest.approx(value, abs=1e-6)


def test_a_wrong_parent_is_caught(rng):
    bins, rows = bins_of(rng, 0.0), np.arange(150)
    weight = weights(bins, rows, 1.0)
    parents = chow_liu(bins, rows, np.arange(N_BIN.size), 1.0).parents.copy()
    worst = int(np.argmin(weight[3] + 1e9 * (np.arange(N_BIN.size) == 3)))
    parents[3] = worst
    edges = [(column, parent) for column, parent in enumerate(parents) if parent >= 0]
    assert naive.total_information(edges, weight) < naive.best_tree(weight) - EQUAL


def test_some_columns_and_no_rows(rng):
    bins = bins_of(rng, 0.1)
    found = chow_liu(bins, np.arange(150), np.array([4, 1]), 1.0)
    assert found.parents.tolist() == [-1, 0]
    empty = chow_liu(bins, np.arange(0), np.array([0, 1, 2]), 1.0)
    assert (empty.parents[1:] >= 0).all()
    assert empty.log_likelihood == 0.0
