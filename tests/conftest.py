"""One seed for the suite, from the environment; a generator for each test, keyed by its name."""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest

SEED = int(os.environ.get("BAYESJPT_SEED", "20260101"))


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Return a generator that depends on the suite's seed and the test's name alone."""
    return np.random.default_rng([SEED, zlib.crc32(request.node.nodeid.encode())])
