"""One small target for the tests of this room."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.type_prior import COLUMNS, MEMBERS
from bayesjpt.sampler.chains import Chain, new_chains, run_chains
from bayesjpt.sampler.schedule import Draws, Schedule, empty_draws
from bayesjpt.sampler.target import Target, make_target
from bayesjpt.table.table import Table
from tests import examples as ex

SEED = np.random.SeedSequence(11)
SCHEDULE = Schedule(n_chain=3, n_tune=4, n_draw=6)


@pytest.fixture(scope="session")
def small_table() -> Table:
    return ex.make_table(ex.COLUMNS, 60, np.random.default_rng(5), missing=0.1)


@pytest.fixture(scope="session", params=[MEMBERS, COLUMNS])
def target(request, small_table) -> Target:
    """Return a target whose chains carry weights and parameters, and one with weights of types behind them."""
    return make_target(ex.two_level(small_table), small_table, type_prior=request.param)


def seeded(schedule: Schedule = SCHEDULE) -> list[Chain]:
    """Return chains that have not begun; the same ones at each call."""
    return new_chains(schedule.n_chain, np.random.SeedSequence(SEED.entropy))


def sampled(target: Target, schedule: Schedule = SCHEDULE, *, n_thread: int = 1) -> Draws:
    """Return all draws of a schedule."""
    draws = empty_draws(schedule, target.circuit.n_edge, target.circuit.n_theta)
    assert not run_chains(target, schedule, seeded(schedule), draws, n_thread=n_thread)
    return draws


def assert_same(one: Draws, two: Draws) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
