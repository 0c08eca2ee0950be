"""Simulation-based calibration: the rank of the truth among posterior draws is uniform, for functionals without labels.

Parameters and data come from the joint distribution; a chain that begins elsewhere samples the posterior. Draws are
thinned until they are nearly independent, else ranks pile up at both ends.

Reference: Talts, Betancourt, Simpson, Vehtari and Gelman (2018), Validating Bayesian inference algorithms with
simulation-based calibration.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bayesjpt.circuit.arrays import Params
from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.density import fill_log_density
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.jit import kernel
from tests import examples as ex
from tests.statistical import geweke
from tests.statistical.geweke import Case

pytestmark = pytest.mark.slow

N_SIMULATION = 300
N_ROW = 12
N_PROBE = 3
N_FIRST = 150
N_SWEEP = 600
N_KEPT = 47
N_BIN = 16
SMALLEST_P = 1e-5


def small_mixture(rng: np.random.Generator) -> Case:
    """Return a mixture of two over a normal column and one with a dictionary of two, some cells missing."""
    table = ex.make_table((ex.REAL, ex.COUNT), N_ROW, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal", "poisson", "geometric"))
    return geweke.make_case(circuit, table.schema, rng.random((2, N_ROW)) < 0.15)


@kernel
def fill_log_densities(plan, values, missing, log_weights, thetas, out):
    """Fill out, (n_draw, n_row), with the log density of rows under each draw."""
    cells = row_cells(plan, values, missing)
    work = make_work(plan, cells, values.shape[1])
    for draw in range(out.shape[0]):
        fill_log_density(plan, cells, log_weights[draw], thetas[draw], work, out[draw])


def functionals(case: Case, params: Params, table: np.ndarray, probes: np.ndarray) -> np.ndarray:
    """Return float64 (n_draw, n_functional), none of which cares how components are labelled."""
    n_draw = params.theta.shape[0]
    of_data, of_probes = np.empty((n_draw, N_ROW)), np.empty((n_draw, N_PROBE))
    fill_log_densities(case.plan, table, case.missing, *params, of_data)
    fill_log_densities(case.plan, probes, np.zeros(probes.shape, bool), *params, of_probes)
    weights = np.exp(params.log_weight[:, case.concentration == geweke.CONCENTRATION[geweke.arrays.LATENT]])
    return np.column_stack([of_data.sum(axis=1), of_probes, (weights**2).sum(axis=1)])


def ranks(case: Case, rng: np.random.Generator, sampled: Case | None = None) -> np.ndarray:
    """Return int (n_simulation, n_functional): how many of the thinned draws lie below the truth."""
    probes = geweke.joint_draws(case, 1, rng)[1][0][:, :N_PROBE].copy()
    truths, tables = geweke.joint_draws(case, N_SIMULATION, rng)
    starts = geweke.prior_draws(case, N_SIMULATION, rng)
    true, chains = [], []
    for simulation, table in enumerate(tables):
        params = Params(*(array[simulation : simulation + 1] for array in truths))
        start = Params(*(array[simulation] for array in starts))
        draws, _ = geweke.run_chain(
            case if sampled is None else sampled,
            start,
            table,
            N_FIRST + N_SWEEP,
            rng,
            redraw=False,
            meddle=geweke.AS_IT_IS,
        )
        true.append(functionals(case, params, table, probes)[0])
        chains.append(functionals(case, Params(*(array[N_FIRST:] for array in draws)), table, probes))
    stride = int(np.ceil(np.quantile([N_SWEEP / geweke.effective_sizes(chain) for chain in chains], 0.95)))
    assert N_KEPT * stride <= N_SWEEP, f"draws are independent only every {stride} sweeps"
    kept = np.array(chains)[:, : N_KEPT * stride : stride]
    return (kept < np.array(true)[:, None]).sum(axis=1)


def smallest_p(found: np.ndarray) -> float:
    """Return the smallest p-value of chi-square tests that ranks are uniform on 0 ... N_KEPT, one a functional."""
    counts = [np.bincount(column * N_BIN // (N_KEPT + 1), minlength=N_BIN) for column in found.T]
    return float(scipy.stats.chisquare(counts, axis=1).pvalue.min())


def test_ranks_of_the_truth_are_uniform(rng):
    assert smallest_p(ranks(small_mixture(rng), rng)) > SMALLEST_P


def test_ranks_under_tripled_concentrations_are_not_uniform(rng):
    case = small_mixture(rng)
    wrong = case._replace(concentration=3.0 * case.concentration)
    assert smallest_p(ranks(case, rng, sampled=wrong)) < SMALLEST_P
