"""The draw of the factors that leaves share, against their conditional on a grid, priors by SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.priors import make_priors
from bayesjpt.kernels.scales import draw_scales, draw_scales_given_statistics
from tests import examples as ex
from tests import naive, statistics
from tests.kernels import runs
from tests.model import reference

N_DRAW = 8_000
THIN = 4
"""Draws made for each one kept, of factors that are drawn by slice updates."""
N_GRID = 401
LOG_RANGE = (-9.0, 4.0)
NEGLIGIBLE = -700.0
"""Log weight of a component that gets no rows."""
CASES = {"poisson": ex.PLAIN[2], "exponential": ex.PLAIN[1], "normal": ex.PLAIN[0], "gamma": ex.PLAIN[1]}
"""Families whose factors have gamma conditionals, and such that need slice updates."""
COUNTED = {"categorical": ex.LABEL, "bernoulli": ex.FLAG}
"""Families whose factors are drawn given counts."""


def drawn_and_expected(family: str, rng: np.random.Generator, twice: bool = False):
    """Return draws of log factors, and their cdf on a grid, of three leaves of which the last has no rows.

    The draws may count the first leaf twice.
    """
    table = ex.make_table(((CASES | COUNTED)[family],), 12, rng)
    circuit = ex.mixture(table, 3, ex.only(family))
    priors = make_priors(
        circuit, table.schema, make_layout(circuit, table.schema), gamma=1.0, alpha=1.0, prior="default"
    )
    params = ex.random_params(circuit, table.schema, rng)
    params.log_weight[-1] = NEGLIGIBLE
    run = runs.prepare(circuit, table)
    found = runs.allocate(run, params, 1)
    assert found.edge_count[-1] == 0
    assert (found.edge_count[:2] > 0).all()
    scales = priors.scales
    if twice:
        scales = scales._replace(leaf=np.concatenate([scales.leaf[:1], scales.leaf]), leaf_ptr=np.array([0, 4]))
    tau, draws = np.ones(1), np.empty(N_DRAW)
    theta = params.theta.copy()
    hyper = (found.stats, priors.hyper, priors.hyper_at)
    for draw in range(N_DRAW):
        for _ in range(THIN):
            if family in COUNTED:
                assert draw_scales_given_statistics(run.plan, scales, *hyper, tau, rng) == -1
            assert draw_scales(run.plan, scales, found.work, *hyper, theta, tau, rng) == -1
        draws[draw] = np.log(tau[0])
    column, grid = table.schema.columns[0], np.linspace(*LOG_RANGE, N_GRID)
    log_mass = np.empty(N_GRID)
    for k, log_tau in enumerate(grid):
        factor = float(np.exp(log_tau))
        log_mass[k] = reference.log_prior_scale(family, column, factor) + log_tau
        for leaf in range(2):
            at = slice(circuit.theta_at[leaf], circuit.theta_at[leaf] + circuit.theta_len[leaf])
            assert naive.leaf_family(circuit, leaf) == family
            if family in COUNTED:
                counts = found.stats[run.plan.stat_at[leaf] : run.plan.stat_at[leaf + 1]]
                log_mass[k] += log_probability_of_counts(family, counts, factor, column)
            else:
                log_mass[k] += float(reference.default_log_prior(family, column, params.theta[at], scale=factor))
    mass = np.exp(log_mass - log_mass.max())
    upto = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return draws, lambda x: np.interp(x, grid, upto, left=0.0, right=1.0)


def log_probability_of_counts(family: str, counts: np.ndarray, factor: float, column) -> float:
    """Return the log probability of counts in some order, shares integrated out, by SciPy."""
    expected = 2.0 * factor * np.array(column.frequencies[: counts.size])
    return float(scipy.stats.dirichlet_multinomial(expected, int(counts.sum())).logpmf(counts.astype(int)))


@pytest.mark.parametrize("family", [*CASES, *COUNTED])
def test_factors_follow_their_conditional_given_leaves_with_rows(family, rng):
    draws, cdf = drawn_and_expected(family, rng)
    assert statistics.cdf_deviation(draws, cdf) < statistics.dkw_bound(N_DRAW)


@pytest.mark.parametrize("family", [*CASES, *COUNTED])
def test_a_leaf_that_is_counted_twice_is_caught(family, rng):
    draws, cdf = drawn_and_expected(family, rng, twice=True)
    assert statistics.cdf_deviation(draws, cdf) > statistics.dkw_bound(N_DRAW)
