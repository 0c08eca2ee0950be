"""Weights of a column's types in whole sweeps, and under NUTS, against their enumerated posterior."""

from __future__ import annotations

import functools

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import scipy.special

import bayesjpt as bj
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.type_prior import column_type_labels, make_column_types
from bayesjpt.kernels.swaps import swap_rows
from bayesjpt.sampler.target import make_target
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import statistics
from tests.kernels.in_pieces import redraw_in_pieces
from tests.model import reference
from tests.model.conftest import QUICK

N_SWEEP = 20_000
N_PYMC = 20_000
N_GRID = 60
GAMMA, ALPHA = 0.8, 0.5
CASES = {
    "counts or labels": (ex.LEVELS, (0.0, 0.0, 5.0, 5.0), ("levels:count", "levels:nominal")),
    "positive or real": (
        ex.PLAIN[1],
        (0.8, 0.9, 0.8, 0.9),
        (f"{ex.PLAIN[1].name}:positive", f"{ex.PLAIN[1].name}:real"),
    ),
}
"""A column, values for which one type is the better account, so that the posterior is away from the flat prior, and the
weights of types. The exponential and the normal of the second exchange rows: there it matters that w divides."""
FAMILIES = ("poisson", "geometric", "categorical", "normal", "exponential")
LARGEST_Z = 4.5


@pytest.fixture(scope="module", params=CASES)
def case(request) -> tuple[Circuit, Table]:
    """Return two components over one column, whose dictionaries have two families of counts and one of labels, or one
    each of positive numbers and of reals."""
    column, values, labels = CASES[request.param]
    table = ex.make_table((column,), len(values), np.random.default_rng(1))
    table = Table(table.schema, np.array([values]), table.observed)
    circuit = ex.mixture(table, dictionary=ex.only(*FAMILIES))
    assert tuple(column_type_labels(circuit, table.schema)) == labels
    return circuit, table


def divided(circuit: Circuit, table: Table, weight):
    """Return the concentrations of all edges of dictionaries under the weights of types."""
    types = make_column_types(circuit, table.schema)
    n_member = types.edge.size // 2
    np.testing.assert_allclose(types.factor, [n_member / np.sum(types.entry[:n_member] == t) for t in types.entry])
    return ALPHA * types.factor * weight[types.entry]


@pytest.fixture(scope="module")
def posterior(case) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of weights of the counts, and their posterior probabilities."""
    circuit, table = case
    grid = (np.arange(N_GRID) + 0.5) / N_GRID
    log_p = np.empty(N_GRID)
    for k, share in enumerate(grid):
        alpha = np.zeros(circuit.n_edge)
        of_dictionaries = make_column_types(circuit, table.schema).edge
        alpha[of_dictionaries] = divided(circuit, table, np.array([share, 1.0 - share]))
        log_p[k] = reference.log_evidence(circuit, table, gamma=GAMMA, alpha=alpha)
    return grid, np.exp(log_p - scipy.special.logsumexp(log_p))


def z_scores(draws: np.ndarray, posterior: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return z-scores of the first powers' means; the grid's are those of its cells, exact to 1e-4."""
    grid, p = posterior
    return np.array([statistics.batch_z(draws**power, float(p @ grid**power)) for power in (1, 2, 3)])


def test_rows_say_something_of_the_weights(posterior):
    grid, p = posterior
    assert abs(float(p @ grid) - 0.5) > 0.03


def swept(case, rng: np.random.Generator) -> np.ndarray:
    """Return draws of the weight of the first type."""
    circuit, table = case
    sweeper = make_target(circuit, table, gamma=GAMMA, alpha=ALPHA, prior="abda", type_prior="columns").sweeper()
    params, draws = sweeper.learned(), np.empty(N_SWEEP)
    for i in range(N_SWEEP):
        sweeper.sweep(params, rng, 17, i)
        draws[i] = params.theta[circuit.n_theta]
    return draws


def test_sweeps_draw_from_the_enumerated_posterior(case, posterior, rng):
    assert np.abs(z_scores(swept(case, rng), posterior)).max() < LARGEST_Z


@pytest.mark.parametrize("case", ["positive or real"], indirect=True)
def test_an_exchange_of_rows_by_concentrations_that_are_not_divided_is_caught(case, posterior, rng, monkeypatch):
    def wrong(plan, swaps, stats, edge_count, concentration, *rest):
        undivided = concentration.copy()
        undivided[types.edge] = ALPHA
        swap_rows(plan, swaps, stats, edge_count, undivided, *rest)

    types = make_column_types(case[0], case[1].schema)
    meddled = functools.partial(redraw_in_pieces, exchange=wrong)
    monkeypatch.setattr("bayesjpt.kernels.sweeper.redraw", meddled)
    assert np.abs(z_scores(swept(case, rng), posterior)).max() > 1.5 * LARGEST_Z


@pytest.mark.slow
def test_steps_of_pymc_draw_from_the_enumerated_posterior(case, posterior, rng):
    circuit, table = case
    with bj.build_model(circuit, table, gamma=GAMMA, alpha=ALPHA, prior="abda", type_prior="columns"):
        idata = pm.sample(draws=N_PYMC, tune=100, chains=1, cores=1, random_seed=int(rng.integers(2**31)), **QUICK)
    draws = idata["posterior"]["x_type_prior"].to_numpy()[0, :, 0]
    assert np.abs(z_scores(draws, posterior)).max() < LARGEST_Z


@pytest.mark.slow
def test_nuts_on_weights_that_the_user_wrote_draws_from_the_same_posterior(case, posterior, rng):
    circuit, table = case
    with pm.Model():
        share = pm.Uniform("share")
        alpha = divided(circuit, table, pt.stack([share, 1.0 - share]))
        bj.CircuitMixture("x", circuit, table, gamma=GAMMA, alpha=alpha, prior="abda")
        idata = pm.sample(draws=N_PYMC, tune=1000, chains=1, cores=1, random_seed=int(rng.integers(2**31)), **QUICK)
    draws = idata["posterior"]["share"].to_numpy()[0]
    assert np.abs(z_scores(draws, posterior)).max() < LARGEST_Z
