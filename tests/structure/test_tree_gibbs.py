"""Sweeps over mixtures of trees: densities and draws from their definition, counts by hand, and the circuit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.structure import tree_gibbs, tree_mixture, tree_sampling
from bayesjpt.structure.bins import bins_of
from bayesjpt.structure.chow_liu import Bins
from bayesjpt.structure.distinct_rows import DistinctRows, distinct_rows, usual_bins
from bayesjpt.structure.tree_edges import best_tree, fill_information, pairs_of
from bayesjpt.structure.tree_gibbs import Trees
from bayesjpt.structure.tree_sampling import Mixture
from tests.structure import naive_mixtures as naive
from tests.structure import naive_trees

ROUNDING = 1e-10
"""Relative."""
N_BIN = np.array([2, 3, 2, 2])
PARENTS = np.array([[-1, 0, 0, 2], [1, -1, 1, 0], [-1, 0, -1, 2]]).T
LABELS = np.ones(4, bool)


def some_bins(rng: np.random.Generator, n_row: int = 60) -> Bins:
    """Return columns of which the second follows the first, and the last the third."""
    code = np.array([rng.integers(n, size=n_row) for n in N_BIN])
    code[3] = np.where(rng.random(n_row) < 0.8, code[2], code[3])
    code[1] = np.where(rng.random(n_row) < 0.8, code[0], code[1])
    return Bins(code.astype(np.int16), N_BIN)


def some_mixture(rng: np.random.Generator) -> Mixture:
    trees = tree_gibbs.trees_of(PARENTS, N_BIN)
    table = np.empty(trees.n_entry)
    for i, k in itertools.product(range(4), range(3)):
        for lo in range(trees.at[i, k], trees.at[i, k] + size_of(trees, i, k), N_BIN[i]):
            table[lo : lo + N_BIN[i]] = rng.dirichlet(np.ones(N_BIN[i]))
    return Mixture(trees, np.log(rng.dirichlet(np.ones(3))), np.log(table))


def size_of(trees: Trees, column: int, tree: int) -> int:
    parent = trees.parents[column, tree]
    return int(trees.n_bin[column] * (trees.n_bin[parent] if parent >= 0 else 1))


def probabilities(row, mixture: Mixture) -> list[float]:
    """Return weight times probability of a row in each tree, from the definition."""
    return [
        math.exp(mixture.log_weight[k])
        * naive_trees.tree_probability(row, mixture.trees.parents[:, k].tolist(), mixture.tables(k))
        for k in range(3)
    ]


def arranged(bins: Bins) -> DistinctRows:
    return distinct_rows(bins, usual_bins(bins))


def test_rows_that_are_alike_stand_together_and_come_back_in_order(rng):
    bins = some_bins(rng)
    rows = arranged(bins)
    assert rows.n_distinct == len(set(map(tuple, bins.code.T.tolist())))
    np.testing.assert_array_equal(rows.bins.code, bins.code[:, rows.order])
    for row, (lo, hi) in enumerate(itertools.pairwise(rows.first)):
        assert (rows.bins.code[:, lo:hi] == rows.bins.code[:, [lo]]).all()
        own = rows.usual.copy()
        cells = slice(rows.ptr[row], rows.ptr[row + 1])
        own[rows.column[cells]] = rows.code[cells]
        assert (own == rows.bins.code[:, lo]).all()
        assert (rows.code[cells] != rows.usual[rows.column[cells]]).all()
    np.testing.assert_array_equal(rows.in_order(rows.bins.code[0, rows.first[:-1]]), bins.code[0])


def test_densities_are_sums_over_trees(rng):
    bins, mixture = some_bins(rng), some_mixture(rng)
    want = [math.log(sum(probabilities(row, mixture))) for row in bins.code.T.tolist()]
    np.testing.assert_allclose(mixture.log_density(arranged(bins)), want, rtol=ROUNDING)


def test_a_wrong_parent_and_a_wrong_usual_bin_are_noticed(rng):
    bins, mixture = some_bins(rng), some_mixture(rng)
    rows = arranged(bins)
    right, trees = mixture.log_density(rows), mixture.trees
    parents = trees.parents.copy()
    parents[3, 0] = 0  # as many bins as column 2, so that places of tables are right
    wrong = Mixture(trees._replace(parents=parents), mixture.log_weight, mixture.log_table)
    assert np.abs(wrong.log_density(rows) - right).max() > 0.01
    scorer = mixture.scorer((rows.usual + 1) % 2)
    assert np.abs(tree_gibbs.log_density(rows, trees, scorer) - right).max() > 0.01


def test_trees_are_drawn_in_proportion(rng):
    mixture, n = some_mixture(rng), 20_000
    row = [1, 2, 0, 1]
    bins = Bins(np.repeat(np.array(row, np.int16)[:, None], n, axis=1), N_BIN)
    rows = distinct_rows(bins, np.zeros(4, np.int16))
    tree = np.empty(n, np.int64)
    value = tree_gibbs.draw_trees(rows, mixture.trees, mixture.scorer(rows.usual), rng.random(n), tree)
    want = np.array(probabilities(row, mixture))
    assert value == pytest.approx(n * math.log(want.sum()), rel=ROUNDING)
    found, want = np.bincount(tree, minlength=3) / n, want / want.sum()
    assert (np.abs(found - want) < 5.0 * np.sqrt(want * (1.0 - want) / n)).all()


def test_counts_centres_and_means_are_those_by_hand(rng):
    bins, trees = some_bins(rng), tree_gibbs.trees_of(PARENTS, N_BIN)
    tree = rng.integers(3, size=60)
    counts, centre, mean = (np.empty(trees.n_entry) for _ in range(3))
    tree_gibbs.count_rows(bins.code, trees, tree, counts)
    tree_gibbs.fill_centre(trees, pairs_of(bins), centre)
    tree_gibbs.mean_tables(trees, counts, centre, 3.0, mean)
    for i, k in itertools.product(range(4), range(3)):
        p, n = PARENTS[i, k], N_BIN[i]
        alone = np.bincount(bins.code[i], minlength=n)
        for a in range(N_BIN[p] if p >= 0 else 1):
            meets = bins.code[p] == a if p >= 0 else np.ones(60, bool)
            inside = np.bincount(bins.code[i][meets & (tree == k)], minlength=n)
            whole = np.bincount(bins.code[i][meets], minlength=n) + (alone + 1.0 / n) / 61.0
            place = slice(trees.at[i, k] + a * n, trees.at[i, k] + a * n + n)
            np.testing.assert_array_equal(counts[place], inside)
            np.testing.assert_allclose(centre[place], whole / whole.sum(), rtol=ROUNDING)
            want = (inside + 3.0 * whole / whole.sum()) / (inside.sum() + 3.0)
            np.testing.assert_allclose(mean[place], want, rtol=ROUNDING)


def test_the_marginal_is_a_product_of_predictions_row_by_row(rng):
    bins, trees = some_bins(rng, 20), tree_gibbs.trees_of(PARENTS, N_BIN)
    tree = rng.integers(3, size=20)
    counts, centre = np.zeros(trees.n_entry), np.empty(trees.n_entry)
    tree_gibbs.fill_centre(trees, pairs_of(bins), centre)
    want = 0.0
    for row, k in enumerate(tree.tolist()):
        for i in range(4):
            p, n = PARENTS[i, k], N_BIN[i]
            lo = trees.at[i, k] + (bins.code[p, row] * n if p >= 0 else 0)
            e = lo + bins.code[i, row]
            want += math.log((counts[e] + 2.0 * centre[e]) / (counts[lo : lo + n].sum() + 2.0))
            counts[e] += 1.0
    assert tree_gibbs.log_marginal(trees, counts, centre, 2.0) == pytest.approx(want, rel=ROUNDING)


def test_tables_are_drawn_around_their_means(rng):
    bins, trees = some_bins(rng), tree_gibbs.trees_of(PARENTS, N_BIN)
    counts, centre, mean, drawn = (np.empty(trees.n_entry) for _ in range(4))
    tree_gibbs.count_rows(bins.code, trees, rng.integers(3, size=60), counts)
    tree_gibbs.fill_centre(trees, pairs_of(bins), centre)
    tree_gibbs.mean_tables(trees, counts, centre, 3.0, mean)
    total, n = np.zeros(trees.n_entry), 4000
    for _ in range(n):
        tree_gibbs.draw_tables(trees, counts, centre, 3.0, drawn, rng)
        total += np.exp(drawn)
    assert np.abs(total / n - mean).max() < 5.0 * 0.5 / math.sqrt(n)


def test_edges_are_those_of_the_best_tree_of_rows_and_imaginary_ones(rng):
    bins = some_bins(rng)
    rows, every = np.arange(0, 60, 2), bins.code.T.tolist()
    found = np.zeros((4, 4))
    fill_information(bins.code, N_BIN, rows, pairs_of(bins), 0.1, found)
    weights = np.full(60, 0.1) + (np.arange(60) % 2 == 0)
    want = np.zeros((4, 4))
    for a, b in itertools.permutations(range(4), 2):
        want[a, b] = naive_trees.information(naive.weighted_counts(every, weights, a, b, N_BIN.tolist(), 0.0), 0.0)
    np.testing.assert_allclose(found, want, rtol=1e-8)
    parents = best_tree(found, LABELS)
    edges = [(int(parents[b]), b) for b in range(4) if parents[b] >= 0]
    assert naive_trees.total_information(edges, want) == pytest.approx(naive_trees.best_tree(want), rel=1e-8)


@pytest.mark.parametrize("edges", tree_mixture.EDGES)
def test_sweeps_find_what_rows_are_made_of(rng, edges):
    x = rng.integers(2, size=(3000, 6))
    kind = rng.random(3000) < 0.5
    x[:, 0] = kind
    x[:, 2] = np.where(kind, x[:, 1], 1 - x[:, 1])
    x[:, 4] = x[:, 3]
    bins = Bins(np.ascontiguousarray(x.T.astype(np.int16)), np.full(6, 2))
    rows = tree_sampling.rows_of(bins, np.ones(6, bool))
    *_, state = tree_sampling.run(rows, 4, rng, edges=edges, ess=1.0, n_sweep=30)
    entropy = 4.0 * math.log(2.0)  # kind, two coins, and the last column
    assert state.estimate.log_density(rows.distinct).mean() == pytest.approx(-entropy, abs=0.05)


def test_the_circuit_is_the_last_estimate(rng):
    frame = pd.DataFrame(rng.integers(3, size=(300, 4)), columns=list("abcd")).assign(e=1).astype(str)
    frame.loc[frame["a"] == "2", "b"] = "0"
    table = bj.as_table(frame, kinds=dict.fromkeys("abcde", "category"), other=False)
    circuit = bj.learn_tree_mixture(table, 5, n_components=3, sweeps=6)
    rows = tree_sampling.rows_of(bins_of(table)[0], np.ones(5, bool))
    *_, state = tree_sampling.run(rows, 3, np.random.default_rng(5), edges="own", ess=1.0, n_sweep=6)
    found = bj.Posterior.from_circuit(circuit, table.schema).log_density(table).values.ravel()
    np.testing.assert_allclose(found, state.estimate.log_density(rows.distinct), rtol=ROUNDING)
