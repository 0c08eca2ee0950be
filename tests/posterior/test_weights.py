"""Stacking weights are the best ones, and draws are dealt out in proportion to them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from bayesjpt.posterior.weights import draws_for, stacking_weights, without_small

TOLERANCE = 1e-6
"""Nats a row: what `stacking_weights` promises."""


def mean_score(weights: np.ndarray, log_score: np.ndarray) -> float:
    return float(np.log(weights @ np.exp(log_score)).mean())


def best_by_descent(log_score: np.ndarray) -> np.ndarray:
    """Return the best weights as a general optimiser finds them, from several starts."""
    n = log_score.shape[0]
    starts = [np.full(n, 1.0 / n), *(0.8 * np.eye(n) + 0.2 / n)]
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1.0}
    found = [
        minimize(
            lambda w: -mean_score(np.maximum(w, 0.0) + 1e-300, log_score),
            start,
            bounds=[(0.0, 1.0)] * n,
            constraints=simplex,
            options={"ftol": 1e-12, "maxiter": 500},
        ).x
        for start in starts
    ]
    return max((np.maximum(w, 0.0) / np.maximum(w, 0.0).sum() for w in found), key=lambda w: mean_score(w, log_score))


@pytest.mark.parametrize("n_structure", [2, 3, 5])
def test_weights_are_as_good_as_those_of_a_general_optimiser(n_structure, rng):
    log_score = rng.normal(-3.0, 1.0, 300) + rng.normal(0.0, 0.7, (n_structure, 300))
    weights = stacking_weights(log_score)
    assert weights.sum() == pytest.approx(1.0)
    assert mean_score(weights, log_score) >= mean_score(best_by_descent(log_score), log_score) - TOLERANCE


def test_the_structure_that_is_right_gets_nearly_all_the_weight(rng):
    x = rng.normal(size=4000)
    right, wrong = -0.5 * x**2, -0.5 * (x / 3.0) ** 2 - np.log(3.0)
    assert stacking_weights(np.array([wrong, right]))[1] > 0.95


def test_of_a_mixture_of_two_the_weights_are_the_shares(rng):
    shares = np.array([0.3, 0.7])
    x = np.where(rng.random(20_000) < shares[0], rng.normal(-3.0, 1.0, 20_000), rng.normal(3.0, 1.0, 20_000))
    log_score = np.array([-0.5 * (x + 3.0) ** 2, -0.5 * (x - 3.0) ** 2])
    assert np.abs(stacking_weights(log_score) - shares).max() < 5.0 * np.sqrt(0.21 / 20_000)


def test_weights_do_not_depend_on_the_scale_of_a_row(rng):
    log_score = rng.normal(size=(3, 50))
    shifted = log_score - 1e4 * rng.random(50)
    assert np.allclose(stacking_weights(log_score), stacking_weights(shifted), rtol=0.0, atol=1e-4)


def test_rows_that_are_impossible_under_all_say_nothing(rng):
    log_score = rng.normal(size=(2, 50))
    more = np.concatenate([log_score, np.full((2, 7), -np.inf)], axis=1)
    assert np.array_equal(stacking_weights(more), stacking_weights(log_score))
    assert stacking_weights(np.full((2, 3), -np.inf)).tolist() == [0.5, 0.5]


def test_a_structure_under_which_a_row_is_impossible_shares_with_one_under_which_it_is_not():
    weights = stacking_weights(np.log([[0.9, 0.9, 0.9, 1e-300], [0.1, 0.1, 0.1, 0.1]]))
    assert 0.5 < weights[0] < 1.0
    assert weights[1] > 0.0


def test_draws_are_in_proportion_and_add_up(rng):
    for _ in range(50):
        weights = rng.dirichlet(np.full(5, 0.3))
        found = draws_for(weights, 40)
        assert found.sum() == 40
        assert (found >= 1).all()
        assert (found <= np.maximum(np.ceil(weights * 40), 1)).all()


def test_a_structure_without_weight_gets_no_draw():
    assert draws_for(np.array([0.5, 0.0, 0.5]), 2).tolist() == [1, 0, 1]


def test_small_weights_are_shared_out():
    assert np.allclose(without_small(np.array([0.6, 0.395, 0.005]), 0.01), [0.6 / 0.995, 0.395 / 0.995, 0.0])


def test_the_largest_weight_stays_however_small():
    assert without_small(np.array([0.4, 0.3, 0.3]), 0.5).tolist() == [1.0, 0.0, 0.0]
