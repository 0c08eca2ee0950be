"""A few of the mutants of files in every run of the tests; `tests.fuzz --files` opens many, under limits."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from bayesjpt.numerics.jit import kernel
from tests import examples as ex
from tests.fuzz.files import Mutants
from tests.fuzz.mutants import mutate
from tests.fuzz.seeds import copy

N_MUTANT = 150
N_SLOW = 1_500
N_CHECKED = 200


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


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run ``python -m tests.fuzz``."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.fuzz", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its workers")
def test_many_mutants_neither_crash_nor_hang_nor_take_a_gigabyte():
    done = program("--files", str(N_SLOW))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert ", 0 failures" in done.stdout


@kernel
def read_behind(values):
    """Return what lies behind the last entry of an array."""
    return values[values.size]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its workers")
def test_mutants_make_no_kernel_read_beyond_its_arrays(tmp_path):
    rng = np.random.default_rng(4)
    table = ex.make_table((ex.REAL, ex.LABEL), 12, rng, missing=0.1)
    ex.random_posterior(ex.mixture(table), table, rng, n_draw=2).save(tmp_path / "small.nc")
    (tmp_path / "cache").mkdir()
    # numba takes what a cache holds, checked or not: so none, and few kernels, which need not be fast
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "0"}
    planted = "import numpy; from tests.fuzz.test_files import read_behind; read_behind(numpy.zeros(2))"
    found = subprocess.run(
        [sys.executable, "-c", planted], env=os.environ | checked, capture_output=True, text=True, check=False
    )
    assert "IndexError: index is out of bounds" in found.stderr, "kernels do not check their indices"
    done = program("--files", str(N_CHECKED), "--seeds", str(tmp_path / "small.nc"), "--processes", "1", **checked)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert ", 0 failures" in done.stdout
    assert " opened" in done.stdout
