"""A few of the mutants of files in every run of the tests; `tests.fuzz --files` opens many, under limits."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.fuzz.files import Mutants
from tests.fuzz.mutants import mutate
from tests.fuzz.seeds import copy

N_MUTANT = 150
N_SLOW = 1_500


@pytest.fixture(scope="module")
def mutants(tmp_path_factory) -> Mutants:
    return Mutants(tmp_path_factory.mktemp("mutants"), 7)


# destructors of the libraries below complain of files that they could not open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_mutants_are_opened_or_refused_by_an_error_of_ours(mutants):
    found = {number: mutants.outcome(number) for number in range(N_MUTANT)}
    assert {number: what for number, what in found.items() if what[1] not in ("opened", "refused")} == {}
    assert {what for _, what in found.values()} == {"opened", "refused"}


def test_a_mutant_is_the_same_whenever_it_is_made(mutants, tmp_path):
    for seed in (path for path in mutants.seeds if path.is_file() and path.suffix != ".nc"):
        made = []
        for _ in range(2):
            path = copy(seed, tmp_path / "mutant")
            mutate(path, np.random.default_rng(3))
            made.append(path.read_bytes())
        assert made[0] == made[1] != seed.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its workers")
@pytest.mark.parametrize("checked", [False, True], ids=["", "bounds checked"])
def test_many_mutants_neither_crash_nor_hang_nor_take_a_gigabyte(checked):
    n = N_SLOW // 10 if checked else N_SLOW
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--files", str(n)],
        capture_output=True,
        text=True,
        env=os.environ | ({"NUMBA_BOUNDSCHECK": "1"} if checked else {}),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert ", 0 failures" in done.stdout
