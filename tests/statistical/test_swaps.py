"""Rows exchanged between members of a dictionary, against every allocation of a tiny table, one by one.

Given an allocation a weight is a beta variable, so its posterior is a finite mixture: of 'all rows in f', 'all rows in
g', and everything between, by evidences that SciPy and quadrature know.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
import scipy.stats

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, statistics
from tests.conftest import SEED
from tests.families.grid import grid_posterior
from tests.kernels import runs
from tests.model import reference
from tests.statistical import geweke

ALPHA = 0.3
"""Members are empty for most of the time."""
N_SWEEP = 60_000
LARGEST_Z = 4.5
NEARLY_ALL = (0.1, 0.5, 0.9)
"""Weights below which the sampled shares are compared."""
DICTIONARIES = {
    "positive numbers": (ex.PLAIN[1], (0.8, 1.1, 3.5), ("normal", "exponential", "gamma")),
    "counts": (ex.PLAIN[2], (0.0, 1.0, 7.0, 2.0), ("poisson", "geometric")),
}
"""Column, values and families; the evidence of values near 0 would not be known."""


def dictionary(name: str) -> tuple[Circuit, Table]:
    """Return a dictionary and the rows."""
    column, values, families = DICTIONARIES[name]
    table = ex.make_table((column,), len(values), np.random.default_rng(SEED))
    table = Table(table.schema, np.array([values]), table.observed)
    return ex.independent(table, ex.only(*families)), table


def log_evidence(family: str, table: Table, rows: tuple[int, ...]) -> float:
    column, x = table.schema.columns[0], tuple(float(table.values[0, row]) for row in rows)
    units = np.log(column.scale) if column.base == "real" else 0.0
    return grid_posterior((family, column, "default", x)).log_evidence - len(x) * units


def expected_shares(circuit: Circuit, table: Table, concentration: np.ndarray) -> np.ndarray:
    """Return float64 (n_member, n_bound): posterior probabilities that each weight lies below the bounds."""
    n_member, n_row = circuit.n_leaf, table.n_row
    families = [naive.leaf_family(circuit, leaf) for leaf in range(n_member)]
    log_p, below = [], []
    for taken in itertools.product(range(n_member), repeat=n_row):
        held = [tuple(row for row in range(n_row) if taken[row] == k) for k in range(n_member)]
        count = np.array([len(rows) for rows in held])
        log_p.append(
            sum(log_evidence(family, table, rows) for family, rows in zip(families, held, strict=True))
            + reference.log_multivariate_beta(concentration + count)
        )
        rest = (concentration + count).sum() - (concentration + count)
        below.append([scipy.stats.beta(a, b).cdf(NEARLY_ALL) for a, b in zip(concentration + count, rest, strict=True)])
    p = np.exp(log_p - scipy.special.logsumexp(log_p))
    return np.tensordot(p, np.array(below), 1)


def z_scores(name: str, rng: np.random.Generator, meddle: int = geweke.AS_IT_IS, n_sweep: int = N_SWEEP) -> np.ndarray:
    """Return z-scores of sampled shares of weights below the bounds; members have different concentrations."""
    circuit, table = dictionary(name)
    case = geweke.make_case(circuit, table.schema, np.zeros(table.values.shape, bool))
    hyper, hyper_at = runs.hyper_of(circuit, table.schema)
    of_dictionary = case.concentration > 0.0
    concentration = np.where(of_dictionary, ALPHA * (1.0 + np.arange(circuit.n_edge)), 0.0)
    case = case._replace(hyper=hyper, hyper_at=hyper_at, concentration=concentration)
    params, _ = geweke.run_chain(case, ex.start(circuit), table.values, n_sweep, rng, redraw=False, meddle=meddle)
    members = np.flatnonzero(of_dictionary)
    expected = expected_shares(circuit, table, concentration[members])
    weights = np.exp(params.log_weight[:, members])
    return np.array(
        [
            [statistics.batch_z(weights[:, k] < bound, expected[k, j]) for j, bound in enumerate(NEARLY_ALL)]
            for k in range(members.size)
        ]
    )


@pytest.mark.parametrize("name", DICTIONARIES)
def test_weights_agree_with_the_enumerated_posterior(name, rng):
    assert np.abs(z_scores(name, rng)).max() < LARGEST_Z


@pytest.mark.parametrize("name", DICTIONARIES)
def test_an_exchange_by_the_evidence_under_another_prior_is_caught(name, rng):
    # z-scores of a wrong sampler grow with the root of the sweeps: with these they are far beyond those of a right one
    z = z_scores(name, rng, geweke.EXCHANGE_UNDER_ANOTHER_PRIOR, 3 * N_SWEEP)
    assert np.abs(z).max() > 1.5 * LARGEST_Z
