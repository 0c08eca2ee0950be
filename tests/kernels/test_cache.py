"""Kernels compiled in another process, anew or loaded from the cache, draw the same."""

from __future__ import annotations

import pytest

from tests.kernels.runs import needs_compiler, run_python
from tests.kernels.sweeps import draws_digest

SWEEPS = ["-m", "tests.kernels.sweeps"]


@needs_compiler
def test_sweeps_are_the_same_in_one_process_and_another():
    result = run_python(SWEEPS)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[0] == draws_digest(1)


@needs_compiler
@pytest.mark.slow
def test_sweeps_are_the_same_from_a_cold_and_a_warm_cache(tmp_path):
    cold, warm = (run_python(SWEEPS, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert cold.returncode == warm.returncode == 0, cold.stderr + warm.stderr
    assert [result.stdout.split()[1] for result in (cold, warm)] == ["0", "2"]
    assert cold.stdout.split()[0] == warm.stdout.split()[0] == draws_digest(1)
