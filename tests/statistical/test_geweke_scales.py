"""Geweke's joint test of sweeps that draw the factors shared by the priors of a column's leaves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.priors import Priors, make_priors
from bayesjpt.families import registry
from bayesjpt.kernels import sweeper
from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.collapsed_sweeper import CollapsedSweeper
from tests import examples as ex
from tests import naive
from tests.statistical import geweke
from tests.statistical.geweke import Case
from tests.statistical.test_geweke import FINE

N_DRAW = 12_000
N_ROW = 4
"""Fewer than would fill all leaves: some are without rows in most sweeps."""
BLOCKED, COLLAPSED = sweeper.Sweeper, CollapsedSweeper
COLUMN_OF = {
    "normal": ex.PLAIN[0],
    "gamma": FINE,
    "poisson": ex.PLAIN[2],
    "categorical": ex.LABEL,
    "bernoulli": ex.FLAG,
}


def mixture(family: str, rng: np.random.Generator) -> tuple[Case, Priors]:
    """Return three leaves of a family under its default prior, whose factor is drawn."""
    table = ex.make_table((COLUMN_OF[family],), N_ROW, rng)
    circuit = ex.mixture(table, 3, ex.only(family))
    layout = make_layout(circuit, table.schema)
    priors = make_priors(circuit, table.schema, layout, gamma=2.0, alpha=1.0, prior="default")
    assert priors.scales.n_group == 1
    case = geweke.make_case(circuit, table.schema, np.zeros((1, N_ROW), bool))
    return case._replace(concentration=priors.concentration, hyper=priors.hyper, hyper_at=priors.hyper_at), priors


def joint_draws(case: Case, priors: Priors, n: int, rng: np.random.Generator):
    """Return (weights and parameters, factors, tables) of n independent draws."""
    params = geweke.prior_draws(case, n, rng)
    family, shape = registry.FAMILIES[case.circuit.leaf_family[0]], priors.scales.shape[0]
    shared, tau = family.shared_scale, rng.gamma(shape, 1.0 / shape, n)
    assert shared is not None
    for leaf in range(case.circuit.n_leaf):
        hyper = np.repeat(case.hyper[case.hyper_at[leaf] : case.hyper_at[leaf + 1]][:, None], n, axis=1)
        names = family.hyper_names if len(family.hyper_names) > 1 else family.hyper_names * len(hyper)
        for j, name in enumerate(names):
            hyper[j] = hyper[j] * tau ** shared.exponents.get(name, 0.0) + shared.shifts.get(name, 0.0) * np.log(tau)
        at = slice(case.circuit.theta_at[leaf], case.circuit.theta_at[leaf] + case.circuit.theta_len[leaf])
        params.theta[:, at] = geweke.prior_leaf(family.name, hyper, n, rng)
    tables = np.empty((n, 1, N_ROW))
    geweke.record_each(case.plan, case.snap, case.near_zero, *params, rng, tables)
    return params, tau, tables


def chain(case: Case, priors: Priors, n: int, rng: np.random.Generator, kind: type[sweeper.Sweeper]):
    """Return (weights and parameters, factors, tables) of a chain of sweeps, data redrawn after each."""
    params, tau, tables = joint_draws(case, priors, 1, rng)
    at, values = Params(params.log_weight[0].copy(), np.concatenate([params.theta[0], tau])), tables[0].copy()
    n_theta, rows = case.circuit.n_theta, np.empty((N_ROW, 1))
    log_weights, thetas, taus = np.empty((n, case.circuit.n_edge)), np.empty((n, n_theta)), np.empty(n)
    out, key = np.empty((n, 1, N_ROW)), int(rng.integers(2**62))
    for t in range(n):
        cells = row_cells(case.plan, values, case.missing)
        step = kind(case.circuit, case.plan, priors, cells, n_block=geweke.ROW_BLOCK)
        step.sweep(at, rng, key, t)
        log_weights[t], thetas[t], taus[t] = at.log_weight, at.theta[:n_theta], at.theta[n_theta]
        geweke.record(case.plan, case.snap, case.near_zero, at.log_weight, thetas[t], rng, rows, values)
        out[t] = values
    return Params(log_weights, thetas), taus, out


def functions(case: Case, params: Params, tau: np.ndarray, tables: np.ndarray) -> dict[str, np.ndarray]:
    """Return bounded functions of factors, parameters and data by name."""
    scale, log_scale = geweke.squash(tau), geweke.squash(np.log(tau))
    out = geweke.functions(case, params, tables) | {"scale": scale, "scale squared": scale**2, "log scale": log_scale}
    first = geweke.squash(params.theta[:, 0])
    data = geweke.squash(tables[:, 0]).mean(axis=1)
    for leaf in range(case.circuit.n_leaf):
        log_theta = np.log(params.theta[:, case.circuit.theta_at[leaf]])
        relative = geweke.squash(log_theta - np.log(tau))
        out |= {f"relative {leaf}": relative, f"relative {leaf} squared": relative**2}
        out[f"log of {leaf} by log scale"] = geweke.squash(log_theta) * log_scale
    return out | {"scale by parameter": scale * first, "log scale by data": log_scale * data}


def agrees(
    case: Case, priors: Priors, believed: Priors, rng: np.random.Generator, kind: type[sweeper.Sweeper] = BLOCKED
) -> tuple[bool, float]:
    """Return whether both simulators agree, and the chain's least effective size."""
    exact = functions(case, *joint_draws(case, priors, N_DRAW, rng))
    found = functions(case, *chain(case, believed, N_DRAW, rng, kind))
    moving = [name for name, values in exact.items() if np.ptp(values) > geweke.ROUNDING]
    first, second = (np.column_stack([values[name] for name in moving]) for values in (exact, found))
    ess = geweke.effective_sizes(second)
    z = (second.mean(axis=0) - first.mean(axis=0)) / np.sqrt(first.var(axis=0) / N_DRAW + second.var(axis=0) / ess)
    threshold = scipy.stats.norm.isf(geweke.FAMILY_ERROR / 2.0 / len(moving))
    return bool(np.abs(z).max() < threshold), float(ess.min())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BLOCKED, COLLAPSED])
@pytest.mark.parametrize("family", COLUMN_OF)
def test_sweeps_that_draw_factors_keep_the_joint_distribution(family, kind, rng):
    case, priors = mixture(family, rng)
    assert naive.leaf_family(case.circuit, 0) == family
    agreed, ess = agrees(case, priors, priors, rng, kind)
    assert ess > geweke.MIN_ESS
    assert agreed


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BLOCKED, COLLAPSED])
def test_another_prior_of_the_factor_is_caught(kind, rng):
    case, priors = mixture("normal", rng)
    other = priors._replace(scales=priors.scales._replace(shape=priors.scales.shape + 2.0))
    agreed, ess = agrees(case, priors, other, rng, kind)
    assert ess > geweke.MIN_ESS
    assert not agreed
