"""The step against exact posteriors: tiny tables whose every allocation has a marginal likelihood in closed form.

The posterior mean of the density of a further row is p(rows, row) / p(rows): both by enumeration. It does not care
how components are labelled.
"""

from __future__ import annotations

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.kernels.density import rows_log_density
from bayesjpt.kernels.samplers import SAMPLERS
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import statistics
from tests.model import reference

GAMMA, ALPHA = 1.0, 0.6
"""Weak priors: chains move between allocations."""
N_LEARNED = 40
"""Rows from which a leaf learns more than one piece."""
N_SWEEP = 6_000
N_FIRST = 500
LARGEST_Z = 4.5

TABLES = {
    "normals": ((ex.PLAIN[0],), 5, ("normal",)),
    "poisson and geometric beside labels": ((ex.PLAIN[2], ex.PLAIN[4]), 4, ("poisson", "geometric", "categorical")),
    "normal and exponential": ((ex.PLAIN[1],), 4, ("normal", "exponential")),
    "atoms beside normals": ((ex.HEAPED,), 4, ("normal", "atom")),
    "two labels beside poisson": ((ex.FLAG, ex.PLAIN[2]), 4, ("bernoulli", "poisson")),
    "counts and levels": ((ex.PLAIN[3],), 3, ("poisson", "geometric", "categorical")),
    "pieces beside normals": ((ex.PLAIN[0],), 4, ("normal", "quantile")),
}


def tiny(name: str, rng: np.random.Generator) -> tuple[Circuit, Table, Table]:
    """Return a circuit, its rows (one cell missing where there are two columns) and three further rows."""
    columns, n_row, families = TABLES[name]
    learned = ex.make_table(columns, N_LEARNED, rng)
    table = learned.rows(slice(n_row + 3))
    values, observed = table.values.copy(), table.observed.copy()
    if "exponential" in families:
        values += 0.3  # the exponential is conjugate away from 0
    if len(columns) > 1:
        observed[0, 1] = observed[1, n_row] = False
    table = Table(table.schema, values, observed)
    circuit = ex.mixture(learned if "quantile" in families else table, dictionary=ex.only(*families))
    return circuit, table.rows(slice(n_row)), table.rows(slice(n_row, None))


def sampled_densities(
    circuit: Circuit, table: Table, further: Table, rng: np.random.Generator, sampler: str
) -> np.ndarray:
    """Return float64 (n_further_row, n_sweep): densities of the further rows under the draws of the step."""
    model = bj.build_model(circuit, table, gamma=GAMMA, alpha=ALPHA, prior="abda", sampler=sampler)
    step = CircuitGibbs(model=model, random_start=0.0)
    step.setup_chain(rng, 1, N_SWEEP)
    point = model.initial_point()
    plan = model["x"].owner.op.frozen.plan
    rows, missing = np.ascontiguousarray(further.values.T), np.ascontiguousarray(~further.observed.T)
    out = np.empty((further.n_row, N_SWEEP))
    for sweep in range(-N_FIRST, N_SWEEP):
        point, _ = step.step(point)
        if sweep >= 0:
            params: Params = step._params(point)
            out[:, sweep] = np.exp(rows_log_density(rows, missing, *params, plan))
    return out


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", TABLES)
def test_predictive_densities_agree_with_the_enumerated_posterior(name, sampler, rng):
    circuit, table, further = tiny(name, rng)
    log_evidence = reference.log_evidence(circuit, table, gamma=GAMMA, alpha=ALPHA)
    densities = sampled_densities(circuit, table, further, rng, sampler)
    for row in range(further.n_row):
        longer = Table(
            table.schema,
            np.column_stack([table.values, further.values[:, row]]),
            np.column_stack([table.observed, further.observed[:, row]]),
        )
        expected = np.exp(reference.log_evidence(circuit, longer, gamma=GAMMA, alpha=ALPHA) - log_evidence)
        assert abs(statistics.batch_z(densities[row], expected)) < LARGEST_Z


def test_evidence_of_one_row_and_one_leaf_is_an_integral(rng):
    table = ex.make_table((ex.PLAIN[2],), 1, rng)
    circuit = ex.independent(table, ex.only("poisson"))
    # a Poisson variable whose rate is exponential, here Gamma(1, 1), is geometric
    expected = np.log(0.5) + table.values[0, 0] * np.log(0.5)
    assert reference.log_evidence(circuit, table, gamma=GAMMA, alpha=ALPHA) == pytest.approx(expected)
