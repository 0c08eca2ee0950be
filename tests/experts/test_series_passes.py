"""Passes over series of rows against sums over all paths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.kernels.expert_series import (
    fill_base_odds,
    fill_drawn_paths,
    fill_filtered,
    fill_memory_odds,
    fill_smoothed,
)
from bayesjpt.kernels.expert_series_start import slots
from tests.experts import series_naive
from tests.statistics import LARGEST_Z

EXACT = 1e-12
N_DRAWN = 40_000
DRAW = (1, 3)
EXPERTS = {"y": "gaussian", "label": "multinomial", "count": "poisson"}


def frame() -> pd.DataFrame:
    """Return rows of three series, one of a single row, in no order, with targets missing here and there."""
    rng = np.random.default_rng(3)
    n = 13
    out = pd.DataFrame(
        {
            "t": [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 9],
            "id": ["b"] * 6 + ["a"] * 6 + ["c"],
            "x": rng.normal(size=n).round(2),
            "y": rng.normal(size=n).round(2),
            "label": np.array(["u", "v", "w"], object)[np.arange(n) % 3],
            "count": rng.poisson(2.0, n).astype(float),
        }
    )
    out.loc[[2, 8], ["y", "label", "count"]] = None
    out.loc[4, "y"] = None
    return out.iloc[rng.permutation(n)].reset_index(drop=True)


@pytest.fixture(scope="module", params=["leaf", "decision"])
def post(request):
    with pytest.warns(bj.BayesjptWarning, match="1 row without .* is a step without any"):
        found = bj.fit_experts(
            frame(),
            target=list(EXPERTS),
            experts=EXPERTS,
            time="t",
            series="id",
            depth=2,
            draws=4,
            tune=4,
            chains=2,
            rng=3,
            transitions=request.param,
            kinds={"y": "real", "x": "real", "count": "integer"},
        )
    assert np.abs(found.memory.offset).max() > 0.5
    return found


def series_rows(table) -> list[np.ndarray]:
    return np.split(table.order.rows, table.order.first[1:-1])


def test_log_density_of_a_series_is_the_sum_over_its_paths(post):
    table = post.read(frame())
    found = post.series_log_density(frame())
    assert list(found["series"].values) == ["a", "b", "c"]
    for number, rows in enumerate(series_rows(table)):
        joint = series_naive.paths(post, table, rows, DRAW)[1]
        np.testing.assert_allclose(found.values[DRAW][number], np.log(joint.sum()), rtol=EXACT, atol=EXACT)


def test_each_row_is_predicted_from_those_before_it(post):
    table, whole = post.read(frame()), post.log_density(frame()).values[DRAW]
    for rows in series_rows(table):
        for t, row in enumerate(rows):
            now = series_naive.paths(post, table, rows[: t + 1], DRAW)[1].sum()
            before = series_naive.paths(post, table, rows[:t], DRAW)[1].sum() if t else 1.0
            np.testing.assert_allclose(whole[row], np.log(now / before), rtol=EXACT, atol=EXACT)


def test_leaves_are_filtered_and_smoothed_as_over_all_paths(post):
    table = post.read(frame())
    filtered, smoothed = post.filter(frame()).values[DRAW], post.smooth(frame()).values[DRAW]
    for rows in series_rows(table):
        found = series_naive.marginals(*series_naive.paths(post, table, rows, DRAW), 4)
        np.testing.assert_allclose(smoothed[:, rows].T, found, rtol=EXACT, atol=EXACT)
        for t, row in enumerate(rows):
            found = series_naive.marginals(*series_naive.paths(post, table, rows[: t + 1], DRAW), 4)
            np.testing.assert_allclose(filtered[:, row], found[-1], rtol=EXACT, atol=EXACT)


def test_transition_probabilities_are_those_of_the_definition(post):
    table = post.read(frame())
    gate_x = post.model.gate_covariates.matrix(table)
    found = post.transition_probabilities(frame()).values[DRAW]
    gate, offset = post.coefficients.gate[DRAW], post.memory.offset[DRAW]
    for row in (0, 7):
        for before in range(-1, 4):
            own = series_naive.transition(gate, offset, gate_x[row], before, post.transitions)
            np.testing.assert_allclose(found[before + 1, :, row], own, rtol=EXACT)
    average = post.transition_probabilities().values[DRAW]
    own = series_naive.transition(gate, offset, np.r_[1.0, np.zeros(gate.shape[1] - 1)], 2, post.transitions)
    np.testing.assert_allclose(average[3], own, rtol=EXACT)


def z_of_drawn_paths(first_drawn: np.ndarray) -> float:
    """Return the largest z-score of pairs of neighbouring leaves among drawn paths, against all paths."""
    rng, n_leaf, n_row = np.random.default_rng(5), 4, 5
    slot, sign, n_slot = slots(2, "leaf")
    gate_x, gate, offset = rng.normal(size=(n_row, 2)), rng.normal(size=(3, 2)), 2.0 * rng.normal(size=(3, n_slot))
    evidence = rng.normal(size=(n_row, n_leaf))
    base, odds = np.empty((n_row, 3)), np.empty((3, n_leaf))
    fill_base_odds(gate_x, gate, base)
    fill_memory_odds(slot, sign, offset, odds)
    predicted, filtered, each = np.empty((n_row, n_leaf)), np.empty((n_row, n_leaf)), np.empty(n_row)
    first = np.array([0, n_row])
    fill_filtered(first, base, odds, evidence, predicted, filtered, each)
    all_paths = np.array(np.meshgrid(*[range(n_leaf)] * n_row, indexing="ij")).reshape(n_row, -1).T
    joint = np.ones(len(all_paths))
    for t in range(n_row):
        own = np.array([series_naive.transition(gate, offset, gate_x[t], k, "leaf") for k in range(-1, n_leaf)])
        before = all_paths[:, t - 1] if t else np.full(len(all_paths), -1)
        joint *= own[before + 1, all_paths[:, t]] * np.exp(evidence[t, all_paths[:, t]])
    np.testing.assert_allclose(each.sum(), np.log(joint.sum()), rtol=EXACT)
    joint /= joint.sum()
    drawn, leaf = np.empty((N_DRAWN, n_row), np.int64), np.empty(n_row, np.int64)
    for k in range(N_DRAWN):
        fill_drawn_paths(first_drawn, base, odds, filtered, np.uint64(1_000 + 7 * k), leaf)
        drawn[k] = leaf
    largest = 0.0
    for t in range(n_row - 1):
        for k in range(n_leaf):
            for own in range(n_leaf):
                p = joint[(all_paths[:, t] == k) & (all_paths[:, t + 1] == own)].sum()
                found = ((drawn[:, t] == k) & (drawn[:, t + 1] == own)).mean()
                largest = max(largest, abs(found - p) / np.sqrt(p * (1.0 - p) / N_DRAWN))
    return largest


def test_drawn_paths_have_the_posterior_of_all_paths():
    assert z_of_drawn_paths(np.array([0, 5])) < LARGEST_Z


def test_a_backward_pass_that_forgets_transitions_is_found():
    # series of one row each: every leaf is drawn from what is known up to its row
    assert z_of_drawn_paths(np.arange(6)) > LARGEST_Z


def test_no_leaf_is_impossible_however_large_the_log_odds_are():
    n_leaf, n_row, depth = 64, 6, 6
    slot, sign, n_slot = slots(depth, "leaf")
    base, odds = np.empty((n_row, n_leaf - 1)), np.empty((n_leaf - 1, n_leaf))
    fill_base_odds(np.full((n_row, 1), 1e9), np.ones((n_leaf - 1, 1)), base)
    fill_memory_odds(slot, sign, np.full((n_leaf - 1, n_slot), 1e300), odds)
    evidence = np.zeros((n_row, n_leaf))
    evidence[:, 0], evidence[3] = 1e6, -np.inf
    predicted, filtered, each = np.empty((n_row, n_leaf)), np.empty((n_row, n_leaf)), np.empty(n_row)
    smoothed, leaf = np.empty((n_row, n_leaf)), np.empty(n_row, np.int64)
    first = np.array([0, 5, 6])
    fill_filtered(first, base, odds, evidence, predicted, filtered, each)
    fill_smoothed(first, base, odds, predicted, filtered, smoothed)
    fill_drawn_paths(first, base, odds, filtered, np.uint64(1), leaf)
    assert (predicted > 0.0).all()
    assert np.isfinite(filtered).all()
    assert np.isfinite(smoothed).all()
    assert np.isneginf(each[3])
    assert (leaf[[0, 1, 2, 4, 5]] == 0).all()


@pytest.mark.parametrize("transitions", ["leaf", "decision"])
@pytest.mark.parametrize("depth", [1, 3, 6])
def test_passes_down_and_up_the_tree_are_products_with_the_matrix_of_transitions(depth, transitions):
    rng, n_leaf, n_row = np.random.default_rng(depth), 2**depth, 5
    slot, sign, n_slot = slots(depth, transitions)
    gate_x, gate = rng.normal(size=(n_row, 2)), rng.normal(size=(n_leaf - 1, 2))
    offset, evidence = 2.0 * rng.normal(size=(n_leaf - 1, n_slot)), 3.0 * rng.normal(size=(n_row, n_leaf))
    base, odds = np.empty((n_row, n_leaf - 1)), np.empty((n_leaf - 1, n_leaf))
    fill_base_odds(gate_x, gate, base)
    fill_memory_odds(slot, sign, offset, odds)
    predicted, filtered, each = np.empty((n_row, n_leaf)), np.empty((n_row, n_leaf)), np.empty(n_row)
    smoothed, first = np.empty((n_row, n_leaf)), np.array([0, n_row])
    fill_filtered(first, base, odds, evidence, predicted, filtered, each)
    fill_smoothed(first, base, odds, predicted, filtered, smoothed)
    matrices = [
        np.array([series_naive.transition(gate, offset, x, k, transitions) for k in range(n_leaf)]) for x in gate_x
    ]
    forward = [series_naive.transition(gate, offset, gate_x[0], -1, transitions) * np.exp(evidence[0])]
    for t in range(1, n_row):
        forward.append(forward[-1] @ matrices[t] * np.exp(evidence[t]))
    backward = [np.ones(n_leaf)]
    for t in range(n_row - 1, 0, -1):
        backward.insert(0, matrices[t] @ (np.exp(evidence[t]) * backward[0]))
    np.testing.assert_allclose(each.cumsum(), [np.log(a.sum()) for a in forward], rtol=EXACT, atol=EXACT)
    found = np.array(forward) * np.array(backward)
    np.testing.assert_allclose(smoothed, found / found.sum(axis=1, keepdims=True), rtol=1e-9, atol=EXACT)
