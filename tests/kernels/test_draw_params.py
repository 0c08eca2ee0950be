"""Weights and parameters given counts and statistics, and what happens where a conditional is not valid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.stats

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.plan import Plan
from bayesjpt.families import registry
from bayesjpt.kernels.cells import Cells, Work
from bayesjpt.kernels.gibbs import count_active, draw_params
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.kernels import runs
from tests.statistics import LARGEST_Z, cdf_deviation, dkw_bound

N_DRAW = 5_000
SMALLEST_WEIGHT = 1e-300
MANY = 1e8
ESTIMATED = 1e-3  # of a draw given so many rows: ten times its standard deviation


class Conditional(NamedTuple):
    """All that `draw_params` conditions on."""

    circuit: Circuit
    table: Table
    plan: Plan
    cells: Cells
    work: Work
    stats: np.ndarray
    edge_count: np.ndarray
    concentration: np.ndarray
    hyper: runs.Hyper

    def draw(self, params: Params, rng: np.random.Generator) -> int:
        """Replace the parameters by a draw; return the status."""
        return draw_params(
            self.plan, self.cells, self.work, self.stats, self.edge_count, self.concentration, *self.hyper, *params, rng
        )

    def log_weights(self, rng: np.random.Generator, n_draw: int = N_DRAW) -> np.ndarray:
        """Return float64 (n_draw, n_edge)."""
        params = ex.start(self.circuit)
        out = np.empty((n_draw, self.circuit.n_edge))
        for draw in out:
            assert self.draw(params, rng) == -1
            draw[:] = params.log_weight
        return out

    def sums(self) -> list[slice]:
        """Return the edges of each sum."""
        nodes = np.flatnonzero(np.isin(self.circuit.kind, arrays.SUM_KINDS))
        return [slice(self.circuit.child_ptr[node], self.circuit.child_ptr[node + 1]) for node in nodes]


def conditional(table: Table, circuit: Circuit, concentration: float, key: int = 1) -> Conditional:
    """Return the conditional given one allocation of a table's rows."""
    run = runs.prepare(circuit, table)
    allocated = runs.allocate(run, ex.start(circuit), key)
    of_sums = np.isin(circuit.kind[circuit.edge_parent()], arrays.SUM_KINDS)
    return Conditional(
        circuit,
        table,
        run.plan,
        run.cells,
        allocated.work,
        allocated.stats,
        allocated.edge_count,
        np.where(of_sums, concentration, 0.0),
        runs.hyper_of(circuit, table.schema),
    )


@pytest.fixture
def given(rng) -> Conditional:
    """Return the conditional given 60 rows of every base under a circuit of two levels."""
    table = ex.make_table(ex.COLUMNS, 60, rng, missing=0.1)
    return conditional(table, ex.two_level(table), 0.7)


# --- weights


def test_weights_have_the_mean_of_their_dirichlet(given, rng):
    weights = np.exp(given.log_weights(rng))
    for edges in given.sums():
        alpha = given.concentration[edges] + given.edge_count[edges]
        posterior = scipy.stats.dirichlet(alpha)
        error = np.sqrt(posterior.var() / N_DRAW)
        assert (np.abs(weights[:, edges].mean(axis=0) - posterior.mean()) < LARGEST_Z * error).all()


def test_weights_follow_the_marginal_of_their_dirichlet(given, rng):
    weights = np.exp(given.log_weights(rng))
    for edges in given.sums():
        alpha = given.concentration[edges] + given.edge_count[edges]
        marginal = scipy.stats.beta(alpha[0], alpha[1:].sum())
        assert cdf_deviation(weights[:, edges.start], marginal.cdf) < dkw_bound(N_DRAW)


def test_count_plus_one_is_caught(given, rng):
    edge_count = np.arange(given.circuit.n_edge) % 7  # unequal, so that one more of each moves the mean
    weights = np.exp(given._replace(edge_count=edge_count).log_weights(rng))
    edges = given.sums()[-1]
    wrong = scipy.stats.dirichlet(given.concentration[edges] + edge_count[edges] + 1.0)
    error = np.sqrt(wrong.var() / N_DRAW)
    assert (np.abs(weights[:, edges].mean(axis=0) - wrong.mean()) > LARGEST_Z * error).any()


def test_weights_of_a_sum_add_up_to_one(given, rng):
    weights = np.exp(given.log_weights(rng, 200))
    for edges in given.sums():
        np.testing.assert_allclose(weights[:, edges].sum(axis=1), 1.0, rtol=1e-13)


def test_edges_of_products_keep_weight_one(given, rng):
    assert not given.log_weights(rng, 20)[:, given.circuit.edges_of_kind(arrays.PRODUCT)].any()


def test_weights_never_fall_below_the_smallest(rng):
    table = ex.make_table((ex.REAL, ex.POSITIVE), 20, rng)
    given = conditional(table, ex.mixture(table, 4), 1e-4)
    empty = given._replace(edge_count=np.zeros_like(given.edge_count))
    log_weights = empty.log_weights(rng, 500)
    assert log_weights.min() >= np.log(SMALLEST_WEIGHT)
    assert (log_weights < -600.0).any()  # the bound was in play


# --- parameters


def test_each_leaf_is_drawn_from_its_own_statistics(rng):
    # statistics of so many rows leave no doubt: a draw is the estimate
    table = ex.make_table(ex.COLUMNS, 400, rng)
    given = conditional(table, ex.mixture(table, 3), 1.0)
    stats = given.stats * MANY
    rich = given._replace(stats=stats)
    params = ex.start(given.circuit)
    assert rich.draw(params, rng) == -1
    checked = 0
    for leaf in np.flatnonzero(given.circuit.leaf_family == registry.number("normal")):
        n, total, squares = stats[given.plan.stat_at[leaf] : given.plan.stat_at[leaf + 1]]
        at = given.circuit.theta_at[leaf]
        if n > 0.0:
            checked += 1
            assert params.theta[at + 1] == pytest.approx(total / n, abs=ESTIMATED)
            assert params.theta[at] == pytest.approx(squares / n - (total / n) ** 2, rel=ESTIMATED)
    for leaf in np.flatnonzero(given.circuit.leaf_family == registry.number("poisson")):
        n, total, _ = stats[given.plan.stat_at[leaf] : given.plan.stat_at[leaf + 1]]
        if n > 0.0:
            checked += 1
            assert params.theta[given.circuit.theta_at[leaf]] == pytest.approx(total / n, abs=ESTIMATED)
    assert checked >= 4


def test_leaves_without_rows_are_drawn_from_their_priors(rng):
    table = ex.make_table((ex.COUNT,), 20, rng)
    given = conditional(table, ex.independent(table, ex.only("poisson")), 1.0)
    empty = given._replace(stats=np.zeros_like(given.stats))
    a0, b0, most = given.hyper.values
    draws = np.empty(N_DRAW)
    params = ex.start(given.circuit)
    for i in range(N_DRAW):
        empty.draw(params, rng)
        draws[i] = params.theta[0]
    prior = scipy.stats.gamma(a0, scale=1.0 / b0)
    assert cdf_deviation(draws, lambda rate: prior.cdf(rate) / prior.cdf(most)) < dkw_bound(N_DRAW)


def test_same_generator_gives_the_same_draw(given):
    draws = []
    for seed in (1, 1, 2):
        params = ex.start(given.circuit)
        given.draw(params, np.random.default_rng(seed))
        draws.append((params.log_weight.tolist(), params.theta.tolist()))
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


# --- invalid conditionals


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_invalid_concentration_returns_its_node(given, bad, rng):
    concentration = given.concentration.copy()
    root = given.circuit.n_node - 1
    concentration[given.circuit.child_ptr[root]] = bad
    edge_count = np.zeros_like(given.edge_count)
    status = given._replace(concentration=concentration, edge_count=edge_count).draw(ex.start(given.circuit), rng)
    assert status == root


CASES = [
    (family.name, index, bad)
    for family in registry.FAMILIES
    for index in range(len(family.hyper_names))
    for bad in (np.nan, -1.0)
]
HARMLESS = {("normal", "m0", -1.0), ("gamma", "log_shape_mean", -1.0), ("gamma", "k", -1.0)}
HARMLESS |= {("negative_binomial", "log_size_mean", -1.0)}
HARMLESS |= {("ordinal", "log_scale_mean", -1.0), ("ordinal", "mu_mean", -1.0)}
HARMLESS |= {
    ("lognormal", "m0", -1.0),
    ("student_t", "m0", -1.0),
    ("rounded_normal", "m0", -1.0),
    ("truncated_rounded_normal", "m0", -1.0),
}


@runs.needs_compiler  # compiled mathematics answers NaN where the interpreter's raises
@pytest.mark.parametrize(("family", "index", "bad"), CASES)
def test_invalid_hyperparameter_returns_its_node_and_does_not_hang(family, index, bad, rng):
    name = registry.family(family).hyper_names[index]
    column = ex.column_of(family)
    table = ex.make_table((column, ex.COUNT), 30, rng)
    given = conditional(table, ex.mixture(table, 2, ex.only(family)), 1.0)
    leaf = int(np.flatnonzero(given.circuit.leaf_family == registry.number(family))[0])
    values = given.hyper.values.copy()
    values[given.hyper.at[leaf] + index] = bad
    stats = np.zeros_like(given.stats)  # rows would hide a bad shape
    status = given._replace(hyper=runs.Hyper(values, given.hyper.at), stats=stats).draw(ex.start(given.circuit), rng)
    expected = -1 if (family, name, bad) in HARMLESS else given.circuit.leaf_node()[leaf]
    assert status == expected


def test_nan_statistics_return_a_node(given, rng):
    leaf = 0
    stats = given.stats.copy()
    stats[given.plan.stat_at[leaf] : given.plan.stat_at[leaf + 1]] = np.nan
    assert given._replace(stats=stats).draw(ex.start(given.circuit), rng) == given.circuit.leaf_node()[leaf]


# --- active edges


def test_active_edges_are_those_of_sums_that_some_row_took(given):
    of_sums = np.concatenate([np.arange(given.circuit.n_edge)[edges] for edges in given.sums()])
    assert count_active(given.plan, given.edge_count) == (given.edge_count[of_sums] > 0).sum()
