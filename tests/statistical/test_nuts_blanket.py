"""NUTS on the Markov blanket beside Gibbs sweeps, against a hyperparameter's exact posterior."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
import scipy.stats

import bayesjpt as bj
from tests import statistics, zoo
from tests.model import reference
from tests.model.conftest import QUICK

N_DRAW = 40_000
SHAPE = 4.0
"""Of the concentration's prior, whose mean is 1. Concentrations below .001 make log weights of -700, and of the density
a wall into which a trajectory may run: some of 40,000 do, with any seed, and what they are would not be a test."""
N_GRID = 400
LARGEST_Z = 4.5


@pytest.mark.slow
def test_hyperparameters_agree_with_the_enumerated_posterior(rng):
    table = zoo.make_table((zoo.COUNT,), 4, rng)
    circuit = zoo.mixture(table, dictionary=zoo.only("poisson", "geometric"))
    with pm.Model():
        alpha = pm.Gamma("alpha", SHAPE, SHAPE)
        bj.CircuitMixture("x", circuit, table, gamma=2.0 * alpha, alpha=alpha, prior="abda")
        idata = pm.sample(draws=N_DRAW, tune=1000, chains=1, cores=1, random_seed=int(rng.integers(2**31)), **QUICK)
    assert int(idata["sample_stats"]["diverging"].sum()) == 0
    share = (np.arange(N_GRID) + 0.5) / N_GRID  # of alpha / (1 + alpha)
    at = share / (1.0 - share)
    log_density = scipy.stats.gamma.logpdf(at, SHAPE, scale=1.0 / SHAPE) - 2.0 * np.log1p(-share)
    log_density += [reference.log_evidence(circuit, table, gamma=2.0 * a, alpha=a) for a in at]
    weight = np.exp(log_density - log_density.max())
    draws = idata["posterior"]["alpha"].to_numpy()[0]
    for power in (1, 2):
        expected = float((weight * share**power).sum() / weight.sum())
        assert abs(statistics.batch_z((draws / (1.0 + draws)) ** power, expected)) < LARGEST_Z
