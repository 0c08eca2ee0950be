"""A fit that is killed at any moment goes on as if nothing had happened; `tests.sampler.kills` does it at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampler.kills import Case, goal, is_behind, run_kills


@pytest.mark.slow
def test_resumed_fits_are_bitwise_those_of_an_undisturbed_run(tmp_path, rng):
    ways = ["compiling", "learning", "draws", "between", "state", "tuning", "sampling", "saving"]
    kills = list(run_kills(Case(tmp_path, draws=100, tune=40, chains=2), ways, rng))
    assert [kill.way for kill in kills] == ways
    assert all(kill.equal for kill in kills), "\n".join(map(str, kills))


@pytest.mark.parametrize("way", ["tuning", "sampling"])
@pytest.mark.parametrize("done", [[0, 0], [2, 0], [3, 2], [5, 1], [3, 3], [5, 4], [5, 5]], ids=str)
def test_kills_aim_at_a_sweep_that_is_still_to_come(way, done, rng):
    case = Case(Path("nowhere"), draws=2, tune=3, chains=2)
    behind = min(done) >= (3 if way == "tuning" else 5)
    assert is_behind(case, way, done) == behind
    if behind:
        return
    for _ in range(50):
        sweep = goal(case, way, rng, done)
        assert sweep < (6 if way == "tuning" else 10)  # more sweeps than that come, and end the wait
        assert way == "tuning" or sweep >= max(6, sum(done))
