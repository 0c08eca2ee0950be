"""The sweep over trees of experts draws from the posterior, by Geweke's joint test; wrong ones are found out."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.kernels.expert_sweep import draw_given_paths, fill_paths
from tests.experts.geweke import compare, make_prior, make_task, observe, prior_draw, simulate, z_scores
from tests.statistics import LARGEST_Z

N_DRAW = 12_000
N_WRONG = 6_000
"""Draws that find the planted errors, each far beyond the bound."""

CASES = [
    ("gaussian", 2, True),
    ("logistic", 2, True),
    ("multinomial", 2, True),
    ("poisson", 2, True),
    ("gamma", 2, True),
    ("gaussian", 1, False),
]


@pytest.mark.parametrize(("kind", "depth", "gates"), CASES)
def test_sweeps_and_direct_draws_have_the_same_joint_distribution(kind, depth, gates):
    direct, chain = compare(make_task(kind, gates=gates), depth, make_prior(), make_prior(), N_DRAW, seed=3)
    assert np.abs(z_scores(direct, chain)).max() < LARGEST_Z


@pytest.mark.parametrize("gates", [True, False])
def test_sweeps_with_gates_of_three_ways_have_it_too(gates):
    task, prior = make_task("gaussian", gates=gates), make_prior()
    direct, chain = compare(task, 1, prior, prior, N_DRAW, seed=4, n_way=3)
    assert np.abs(z_scores(direct, chain)).max() < LARGEST_Z


@pytest.mark.parametrize(
    "error",
    [
        {"noise_shape": 3.5},
        {"floor": np.full(1, 0.2)},
        {"gate_rate": 5.0},
        {"precision_rate": 5.0},
        {"least_precision": 0.0},
    ],
    ids=["a missing half row", "a wrong truncation", "gates", "coefficients", "no bound of precisions"],
)
def test_a_planted_error_is_found(error):
    direct, chain = compare(make_task("gaussian"), 2, make_prior(), make_prior(**error), N_WRONG, seed=3)
    assert np.abs(z_scores(direct, chain)).max() > LARGEST_Z


def test_two_responses_share_a_tree_and_a_sweep_without_one_in_the_paths_is_found():
    task, prior = make_task("gaussian", "logistic"), make_prior(floor=np.array([0.3, 0.3]))
    direct, chain = compare(task, 2, prior, prior, N_DRAW, seed=3)
    assert np.abs(z_scores(direct, chain)).max() < LARGEST_Z
    # paths drawn given the second response alone
    rng = np.random.default_rng(3)
    state, leaf = prior_draw(task, prior, (2, 2), rng), np.zeros(task.x.shape[0], np.int64)
    simulate(task, state, leaf, rng)
    for draw in range(N_WRONG):
        for _ in range(2):
            draw_given_paths(task, state, prior, leaf, rng)
            one = task._replace(y=task.y[1:], kind=task.kind[1:], at=task.at[:2], offset=task.offset[1:])
            own = state._replace(node=state.node[:, 1:].copy(), dispersion=state.dispersion[:, 1:].copy())
            fill_paths(one, own, rng, leaf)
        simulate(task, state, leaf, rng)
        observe(task, state, chain[draw])
    assert np.abs(z_scores(direct, chain[:N_WRONG])).max() > LARGEST_Z
