"""Chains from random allocations keep even weights at structure sums for a while, and what that is good for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.kernels import chain
from bayesjpt.sampler.chains import run_chains
from bayesjpt.sampler.schedule import Schedule, empty_draws
from tests.sampler.conftest import seeded

ABALONE = Path(__file__).parents[2] / "notebooks" / "data" / "abalone.csv"


def sweeps_with_even_weights(target, plan: Schedule) -> np.ndarray:
    """Return bool (n_chain, n_sweep): whether all soft sums of the structure had even weights behind a sweep."""
    edges = target.circuit.edges_of_kind(arrays.LATENT)
    parts = np.diff(target.circuit.child_ptr)[target.circuit.edge_parent()[edges]]
    found = np.zeros((plan.n_chain, plan.n_sweep), bool)

    def record(chain):
        found[chain.number, chain.sweep - 1] = np.allclose(np.exp(chain.state.params.log_weight[edges]), 1.0 / parts)

    draws = empty_draws(plan, target.circuit.n_edge, target.circuit.n_theta)
    run_chains(target, plan, seeded(plan), draws, n_thread=1, record=record)
    return found


@pytest.mark.parametrize(("n_tune", "n_even"), [(0, 0), (1, 0), (5, 2), (6, 3)])
def test_weights_are_even_in_the_first_half_of_the_tuning_of_chains_that_began_at_random(target, n_tune, n_even):
    plan = Schedule(n_chain=4, n_tune=n_tune, n_draw=3)
    expected = np.zeros((4, plan.n_sweep), bool)
    expected[1::2, :n_even] = True
    np.testing.assert_array_equal(sweeps_with_even_weights(target, plan), expected)


def test_allocations_at_random_are_drawn_by_even_weights(target):
    """Whatever the learner's weights are: here one child of every sum would take nearly all rows."""
    circuit, sweeper = target.circuit, target.sweeper()
    uneven = circuit.start_log_weight.copy()
    soft = circuit.edges_of_kind(arrays.LATENT)
    first = np.isin(soft, circuit.child_ptr[circuit.edge_parent()[soft]])
    uneven[soft] = np.where(first, -0.001, np.log(0.001))
    sweeper.circuit = circuit._replace(start_log_weight=uneven)
    root = slice(circuit.child_ptr[-2], circuit.child_ptr[-1])
    taken = np.zeros(circuit.child_ptr[-1] - circuit.child_ptr[-2])
    for seed in range(20):
        sweeper.at_random(np.random.default_rng(seed))
        taken += sweeper._edge_count[root]
    share = taken / taken.sum()
    np.testing.assert_allclose(share, 1.0 / share.size, atol=5.0 * np.sqrt(0.25 / taken.sum()))


def test_other_weights_and_parameters_are_drawn_meanwhile(target):
    sweeper, rng = target.sweeper(), np.random.default_rng(2)
    params = sweeper.at_random(rng)
    before = params.log_weight.copy(), params.theta.copy()
    sweeper.sweep(params, rng, 5, 0, even=True)
    dictionaries = target.circuit.edges_of_kind(arrays.LIKELIHOOD)
    assert (params.log_weight[dictionaries] != before[0][dictionaries]).mean() > 0.5
    assert (params.theta != before[1]).all()


@pytest.mark.slow
def test_chains_from_random_allocations_come_nearer_to_those_from_the_learner(monkeypatch):
    """Without even weights small sub-populations lose their rows to larger ones, and a likelihood of 1,500 nats."""
    table = bj.read_table(ABALONE)
    gap = np.zeros(2)
    for seed in (1, 2):  # of one, some part may happen to be lost either way
        for at, share in enumerate((0.0, chain.EVEN_SHARE)):
            with monkeypatch.context() as patched:
                patched.setattr(chain, "EVEN_SHARE", share)
                post = bj.fit(table, n_structures=1, seed=seed, progress=False)
            level = np.asarray(post.sample_stats["log_likelihood"]).mean(axis=1)
            gap[at] += level[::2].mean() - level[1::2].mean()
    assert gap[0] > 2.0 * gap[1]
