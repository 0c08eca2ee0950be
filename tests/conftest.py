"""One seed for the suite, from the environment; a generator for each test, keyed by its name."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher, _FunctionCompiler

try:
    import fcntl
except ImportError:  # Windows: each worker compiles for itself
    fcntl = None

# what a slow machine takes its time for stays out of the standard error that tests read; before the package is imported
os.environ.setdefault("BAYESJPT_ANNOUNCED_SECONDS", "inf")
# workers and other children of this process: their BLAS would spin on the cores that the other workers compute on
os.environ |= {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
# PyTensor would note for each variable of a graph where it was made, which takes a fifth of the time of making graphs;
# and it would print that a rewrite of ours fails, and go on
os.environ.setdefault("PYTENSOR_FLAGS", "traceback__limit=0,on_opt_error=raise")
SEED = int(os.environ.get("BAYESJPT_SEED", "20260101"))
gc.set_threshold(50_000, 20, 20)  # compiling makes many objects that live on: a twentieth of the time went into them

hypothesis.settings.register_profile("same examples every time", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same examples every time")

LONGEST = (
    "test_kernels_and_families_stay",
    "test_pyright_finds",
    "test_notebook_runs",
    "test_nuts_and_gibbs_agree",
    "test_resumed_fits_are",
    "test_nuts_draws_shared",
    "test_sweeps_leave_concentrations",
    "test_scikit_learn_s_checks",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest: what a worker begins last, all others wait for."""
    items.sort(key=lambda item: not item.name.startswith(LONGEST))


def compile_once() -> None:
    """Let the workers of a run compile each function once: one compiles, the others wait and read its cache.

    They ask for the same kernels at nearly the same time, and numba compiles what is not yet on disk once for each. The
    system takes a lock back when its process ends, however it ends; callees are compiled inside their callers, so the
    order of locks is that of the calls, and no two processes wait for each other.
    """
    folder = Path(tempfile.gettempdir()) / f"bayesjpt-compiles-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    held: set[Path] = set()
    compile_ = Dispatcher.compile

    @contextlib.contextmanager
    def locked(path: Path) -> Iterator[None]:
        if path in held:
            yield
            return
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            held.add(path)
            try:
                yield
            finally:
                held.remove(path)

    @functools.wraps(compile_)
    def compile_or_wait(self: Any, sig: Any) -> Any:
        index = getattr(getattr(self._cache, "_cache_file", None), "_index_path", None)
        if index is None:
            return compile_(self, sig)
        name = hashlib.sha256(index.encode()).hexdigest()[:32]
        with global_compiler_lock, locked(folder / name):  # threads first: they share what is held
            return compile_(self, sig)

    Dispatcher.compile = compile_or_wait


if fcntl is not None:
    compile_once()


def without_entry_for_c(_compiler: Any, flags: Any) -> Any:
    """Compile numba's own functions and PyTensor's as ours: without an entry for C, which `numba.cfunc` alone needs."""
    flags.no_cfunc_wrapper = True
    return flags


_FunctionCompiler._customize_flags = without_entry_for_c


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Return a generator that depends on the suite's seed and the test's name alone."""
    return np.random.default_rng([SEED, zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture(scope="session")
def run_python() -> Callable[[str], str]:
    """Return a function that runs a program in a fresh interpreter and returns what it printed."""

    def run(program: str) -> str:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """Return the folder of a real disk of 64 kB; skip where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no disk can be mounted: {error}")
    if done.returncode:
        pytest.skip(f"no disk can be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
