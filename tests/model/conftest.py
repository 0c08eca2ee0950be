"""What the model tests share: PyTensor without its long compilations, and one sampled model."""

from __future__ import annotations

import logging
import zlib
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.conftest import SEED

QUICK = {"progressbar": False, "compute_convergence_checks": False}
"""Options of ``pm.sample`` in tests: nothing to look at, nothing to judge."""


@pytest.fixture(autouse=True)
def fast_compile():
    """Run PyTensor's own graphs in Python; a test that is about the compiled form asks for numba."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(autouse=True)
def quiet_pymc():
    """Keep PyMC from writing which step it chose and how long it took."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


class Sampled(NamedTuple):
    """A table of every base, its circuit and model, and draws of it."""

    table: Table
    circuit: Circuit
    model: pm.Model
    idata: object


@pytest.fixture(scope="module")
def sampled() -> Sampled:
    """Return a two-level circuit over five columns with missing cells, sampled for a few sweeps by two chains."""
    rng = np.random.default_rng([SEED, zlib.crc32(b"sampled")])
    table = ex.make_table(ex.COLUMNS, 14, rng, missing=0.2)
    circuit = ex.two_level(table)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        model = bj.build_model(circuit, table)
        with model:
            idata = pm.sample(draws=25, tune=10, chains=2, cores=1, random_seed=SEED, **QUICK)
    return Sampled(table, circuit, model, idata)


@pytest.fixture
def small(rng) -> tuple[pm.Model, Table]:
    """Return a fresh model of one real column, to be changed by the test, and its table."""
    table = ex.make_table((ex.REAL,), 8, rng)
    return bj.build_model(ex.mixture(table, dictionary=ex.only("normal")), table), table
