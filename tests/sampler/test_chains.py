"""Chains in threads: the same draws however they are served, what is kept, and what stops them."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from bayesjpt import Posterior
from bayesjpt.errors import CheckpointError, SamplingError
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.sampler.chains import run_chains
from bayesjpt.sampler.schedule import Schedule, empty_draws
from bayesjpt.sampler.workers import n_processor, n_worker
from tests.sampler.conftest import SCHEDULE, SEED, assert_same, sampled, seeded

TOLERANCE = 1e-9


@pytest.mark.parametrize("n_thread", [2, 3, 5])
def test_draws_are_the_same_for_any_number_of_threads(target, n_thread):
    assert_same(sampled(target), sampled(target, n_thread=n_thread))


def test_draws_are_those_of_sweeps_done_by_hand(target):
    draws = sampled(target)
    for number, seed in enumerate(np.random.SeedSequence(SEED.entropy).spawn(SCHEDULE.n_chain)):
        rng = np.random.default_rng(seed)
        key = int(rng.integers(2**63))
        sweeper = target.sweeper()
        params = sweeper.at_random(rng) if number % 2 else sweeper.learned()
        for sweep in range(SCHEDULE.n_sweep):
            even = number % 2 == 1 and sweep < SCHEDULE.n_tune // 2
            found = sweeper.sweep(params, rng, key, sweep, even=even) + target.log_jacobian
            if sweep >= SCHEDULE.n_tune:
                draw = sweep - SCHEDULE.n_tune
                np.testing.assert_array_equal(draws.theta[number, draw], params.theta[: target.circuit.n_theta])
                np.testing.assert_array_equal(draws.log_weight[number, draw], params.log_weight)
                assert draws.log_likelihood[number, draw] == found
                assert draws.n_active_edges[number, draw] == sweeper.n_active


def test_a_chain_does_not_depend_on_how_many_there_are(target):
    fewer = sampled(target, Schedule(n_chain=2, n_tune=4, n_draw=6))
    np.testing.assert_array_equal(fewer.theta, sampled(target).theta[:2])


def test_thinning_keeps_every_third_sweep_after_tuning(target):
    every = sampled(target, Schedule(n_chain=2, n_tune=4, n_draw=9))
    third = sampled(target, Schedule(n_chain=2, n_tune=4, n_draw=3, thin=3))
    for one, two in zip(every, third, strict=True):
        np.testing.assert_array_equal(one[:, 2::3], two)


def test_without_tuning_even_chains_begin_at_the_estimate_of_the_learner(target, small_table):
    first = sampled(target, Schedule(n_chain=4, n_tune=0, n_draw=1)).log_likelihood[:, 0]
    estimate = Posterior.from_circuit(target.circuit, small_table.schema).log_density(small_table)
    learned = float(estimate.sum())
    np.testing.assert_allclose(first[::2], learned, rtol=TOLERANCE)
    assert not np.isclose(first[1::2], learned, rtol=TOLERANCE).any()


def test_log_likelihood_is_that_of_the_draw_before_in_the_units_of_the_user(target, small_table):
    draws = sampled(target)
    total = Posterior(target.circuit, small_table.schema, draws.params).log_density(small_table).sum("obs_id")
    np.testing.assert_allclose(draws.log_likelihood[:, 1:], total.to_numpy()[:, :-1], rtol=TOLERANCE)


# --- threads


def test_no_more_threads_serve_than_are_asked_for(target, monkeypatch):
    names, draw = set(), Sweeper.draw

    def named(self, *given, **how):
        names.add(threading.current_thread().name)
        return draw(self, *given, **how)

    monkeypatch.setattr(Sweeper, "draw", named)
    sampled(target, Schedule(n_chain=6, n_tune=10, n_draw=10), n_thread=2)
    assert 1 <= len(names) <= 2
    assert threading.current_thread().name not in names


def test_chains_stay_within_two_sweeps_of_each_other_on_one_thread(target):
    chains = seeded()
    apart = []
    draws = empty_draws(SCHEDULE, target.circuit.n_edge, target.circuit.n_theta)
    run_chains(
        target, SCHEDULE, chains, draws, n_thread=1, record=lambda *_: apart.append(np.ptp([c.sweep for c in chains]))
    )
    assert max(apart) == 1


def test_number_of_threads_is_bounded_by_cores_chains_and_processors():
    assert n_worker(1, 4) == 1
    assert n_worker(10**6, 1) == 1
    assert n_worker(10**6, 10**6) == n_processor() == n_worker(None, 10**6)


# --- what stops them


def test_an_error_in_one_chain_stops_the_others_and_is_raised(target, monkeypatch):
    draw, done = Sweeper.draw, []

    def failing(self, *given, **how):
        if len(done) == 7:
            raise SamplingError("row 3 has probability zero")
        done.append(1)
        return draw(self, *given, **how)

    monkeypatch.setattr(Sweeper, "draw", failing)
    with pytest.raises(SamplingError, match="row 3 has probability zero"):
        sampled(target, Schedule(n_chain=2, n_tune=0, n_draw=10_000), n_thread=2)
    assert len(done) == 7
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("chains-")]


@pytest.fixture
def interrupts():
    """Have an interrupt raise KeyboardInterrupt, which a shell may have switched off for its background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_leaves_every_chain_behind_a_complete_sweep(target, interrupts):
    schedule = Schedule(n_chain=2, n_tune=5, n_draw=100_000)
    chains = seeded(schedule)
    draws = empty_draws(schedule, target.circuit.n_edge, target.circuit.n_theta)
    sent = []

    def interrupt(chain):
        if not sent and min(chain.sweep for chain in chains) >= 20:  # chains on a busy machine run far apart
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    assert run_chains(target, schedule, chains, draws, n_thread=2, record=interrupt)
    kept = min(schedule.n_kept(chain.sweep) for chain in chains)
    assert 0 < kept < schedule.n_draw
    undisturbed = sampled(target, Schedule(n_chain=2, n_tune=5, n_draw=kept))
    assert_same(draws.first(kept), undisturbed)
    for chain in chains:
        kept = draws.theta[chain.number, schedule.n_kept(chain.sweep) - 1]
        np.testing.assert_array_equal(chain.state.params.theta[: kept.size], kept)


def test_the_caller_is_asked_to_watch_while_chains_run(target, monkeypatch):
    monkeypatch.setattr("bayesjpt.sampler.chains.WATCH_SECONDS", 1e-4)
    draws = empty_draws(SCHEDULE, target.circuit.n_edge, target.circuit.n_theta)
    seen, asked = [], threading.Event()

    def watch():
        seen.append(threading.current_thread().name)
        asked.set()

    # each chain waits to be watched: a fast machine ends before the first look, a slow one never needs the minute
    run_chains(target, SCHEDULE, seeded(), draws, n_thread=1, record=lambda _: asked.wait(60), watches=[watch])
    assert set(seen) == {threading.current_thread().name}


def test_an_error_of_who_watches_ends_the_run_and_is_raised(target, monkeypatch):
    monkeypatch.setattr("bayesjpt.sampler.chains.WATCH_SECONDS", 1e-4)
    schedule = Schedule(n_chain=2, n_tune=0, n_draw=10_000)
    draws = empty_draws(schedule, target.circuit.n_edge, target.circuit.n_theta)

    asked = threading.Event()

    def full():
        asked.set()
        raise CheckpointError("cannot write")

    with pytest.raises(CheckpointError, match="cannot write"):
        run_chains(
            target, schedule, seeded(schedule), draws, n_thread=2, record=lambda _: asked.wait(60), watches=[full]
        )
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("chains-")]
