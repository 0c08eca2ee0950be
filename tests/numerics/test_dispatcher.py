"""Kernels have machine code, and a wrapper for Python, once somebody asks for them; the cache keeps what was made."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numba import types
from numba.core.caching import NullCache

from bayesjpt.numerics import dispatcher
from bayesjpt.numerics.jit import kernel

pytestmark = pytest.mark.skipif(not hasattr(kernel(lambda x: x), "overloads"), reason="numba's JIT is switched off")

_KERNELS = """
import numpy as np
from bayesjpt.numerics.jit import kernel

@kernel
def drawn(rng, n):
    total = 0.0
    for _ in range(n):
        total += one(rng)[0]
    return total

@kernel
def one(rng):
    return np.array([rng.standard_gamma(2.5)]) + np.searchsorted(np.arange(9.0), rng.random())
"""
_CALL_KERNEL = "print(drawn(np.random.default_rng(3), 50))"
_CALL_BOTH = f"{_CALL_KERNEL}; rng = np.random.default_rng(3); print(sum(one(rng)[0] for _ in range(50)))"
_COUNT = "print(sum(drawn.stats.cache_hits.values()), sum(one.stats.cache_hits.values()), len(one.stats.cache_misses))"


@pytest.fixture
def run(tmp_path):
    """Return what runs statements on two kernels in a new process, with a cache that the processes share."""
    (tmp_path / "pair_of_kernels.py").write_text(_KERNELS)
    paths = os.pathsep.join([str(tmp_path), os.getcwd()])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run_statements(*statements: str) -> list[str]:
        text = "; ".join(["from pair_of_kernels import *", *statements])
        done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return run_statements


def test_a_kernel_answers_python_and_kernels_alike_from_any_cache(run):
    expected, hits, of_callee, missed = run(_CALL_KERNEL, _COUNT)
    assert (hits, of_callee, missed) == ("0", "0", "1")
    # the callee lies in the cache without machine code: its wrapper is made now, and nothing is compiled
    assert run(_CALL_BOTH, _COUNT) == [expected, expected, "1", "1", "0"]
    assert run(_CALL_BOTH, _COUNT) == [expected, expected, "1", "1", "0"]
    address = "from numba import types; assert one.address((types.npy_rng,)) != 0"
    assert run(address, _CALL_BOTH, _COUNT) == [expected, expected, "1", "1", "0"]


def test_an_address_first_and_python_second(run):
    address = "from numba import types; assert one.address((types.npy_rng,)) != 0"
    assert run(address) == []
    expected, again, *_, missed = run(address, _CALL_BOTH, _COUNT)
    assert (expected, missed) == (again, "0")
    assert run(_CALL_BOTH, address, _COUNT)[:2] == [expected, expected]


@kernel
def _half(x):
    return 0.5 * x


@kernel
def _halves(x):
    total = 0.0
    for value in x:
        total += _half(value)
    return total


def _known() -> object:
    return _half.overloads[(types.float64,)].library


def test_what_kernels_take_in_has_no_machine_code_of_its_own(monkeypatch):
    monkeypatch.setattr(_half, "_cache", NullCache())
    monkeypatch.setattr(_halves, "_cache", NullCache())
    assert _halves(np.arange(5.0)) == 5.0
    assert isinstance(_known(), dispatcher.KernelLibrary)
    assert not _known().has_code
    # what Python calls is not kept alive by numba
    for _ in range(3):
        assert _half(3.0) == 1.5
        gc.collect()
    assert not _known().has_code
    assert _half.address((types.float64,)) != 0
    assert _known().has_code
    assert _halves(np.arange(5.0)) == 5.0


@pytest.mark.parametrize("ask", [lambda kernel: kernel(3), lambda kernel: kernel.address((types.int64,))])
def test_an_interrupt_waits_until_machine_code_is_there_and_the_next_call_has_it(monkeypatch, ask):
    @kernel
    def doubled(x):
        return 2 * x

    make, made = dispatcher.JITCodeLibrary._finalize_final_module, []

    def interrupted(library):
        signal.raise_signal(signal.SIGINT)
        make(library)
        made.append(library)

    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell that runs tests behind it has it ignored
    try:
        with monkeypatch.context() as patched:
            patched.setattr(dispatcher.JITCodeLibrary, "_finalize_final_module", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ask(doubled)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(made) == 1
    assert ask(doubled)
    assert doubled(3) == 6
