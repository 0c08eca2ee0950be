"""A fit that is killed at any moment goes on as if nothing had happened; `tests.sampler.kills` does it at length."""

from __future__ import annotations

import pytest

from tests.sampler.kills import Case, run_kills


@pytest.mark.slow
def test_resumed_fits_are_bitwise_those_of_an_undisturbed_run(tmp_path, rng):
    ways = ["learning", "record", "tuning", "clock", "sampling", "saving"]
    kills = list(run_kills(Case(tmp_path), ways, rng))
    assert [kill.way for kill in kills] == ways
    assert all(kill.equal for kill in kills), "\n".join(map(str, kills))
