"""One seed for the suite, from the environment; a generator for each test, keyed by its name."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# what a slow machine takes its time for stays out of the standard error that tests read; before the package is imported
os.environ.setdefault("BAYESJPT_ANNOUNCED_SECONDS", "inf")
SEED = int(os.environ.get("BAYESJPT_SEED", "20260101"))

hypothesis.settings.register_profile("same examples every time", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same examples every time")


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Return a generator that depends on the suite's seed and the test's name alone."""
    return np.random.default_rng([SEED, zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture(scope="session")
def run_python() -> Callable[[str], str]:
    """Return a function that runs a program in a fresh interpreter and returns what it printed."""

    def run(program: str) -> str:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
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
