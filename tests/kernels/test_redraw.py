"""Sweeps in one call: the same draws as part by part and one by one; leaves without rows are drawn once."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.kernels import chain, sweeper
from bayesjpt.sampler.target import make_target
from tests import examples as ex
from tests.kernels.in_pieces import redraw_in_pieces


@pytest.fixture(scope="module")
def target():
    rng = np.random.default_rng(3)
    table = ex.make_table(ex.COLUMNS, 90, rng, missing=0.1)
    return make_target(ex.two_level(table), table, type_prior="columns")


def states(target, n: int, at_once: int, monkeypatch) -> list[chain.ChainState]:
    """Return the states behind each of n sweeps, so many to a call."""
    monkeypatch.setattr(sweeper, "SWEEPS_AT_ONCE", at_once)
    own, rng = target.sweeper(), np.random.default_rng(5)
    found = [chain.init(own, rng, 7)]
    while len(found) <= n:
        found += chain.steps(found[-1], own, rng, n + 1 - len(found))
    return found[1:]


def same(one: list[chain.ChainState], other: list[chain.ChainState]) -> bool:
    return all(
        (a.sweep, a.log_likelihood, a.n_active) == (b.sweep, b.log_likelihood, b.n_active)
        and a.params.log_weight.tobytes() == b.params.log_weight.tobytes()
        and a.params.theta.tobytes() == b.params.theta.tobytes()
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("at_once", [3, 8])
def test_sweeps_to_a_call_change_no_bit(target, monkeypatch, at_once):
    assert same(states(target, 8, 1, monkeypatch), states(target, 8, at_once, monkeypatch))


def test_one_call_draws_what_its_parts_draw(target, monkeypatch):
    expected = states(target, 4, 1, monkeypatch)
    monkeypatch.setattr(sweeper, "redraw", redraw_in_pieces)
    assert same(expected, states(target, 4, 1, monkeypatch))


def test_sweeps_over_many_rows_are_asked_for_one_by_one(target, monkeypatch):
    own = target.sweeper()
    assert own.at_once == sweeper.SWEEPS_AT_ONCE
    monkeypatch.setattr(sweeper, "ROWS_AT_ONCE", 90)
    assert own.at_once == 1


def test_leaves_of_factors_given_parameters_are_deferred(target):
    scales, deferred = target.priors.scales, target.sweeper()._given.deferred
    late = {int(leaf) for g in np.flatnonzero(~scales.from_statistics)
            for leaf in scales.leaf[scales.leaf_ptr[g] : scales.leaf_ptr[g + 1]]}  # fmt: skip
    assert set(np.flatnonzero(deferred).tolist()) == late
    assert late
