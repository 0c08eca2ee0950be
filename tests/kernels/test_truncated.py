"""Parameters of truncated leaves: every update leaves the posterior on a grid, cell's mass included, as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.paths import Condition
from bayesjpt.circuit.plan import SLICE, SPACES, make_plan
from bayesjpt.circuit.priors import make_priors
from bayesjpt.circuit.scales import no_scales
from bayesjpt.families import features, registry
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.kernels.truncated import _log_target, draw_from_values_on_cell, draw_on_cell
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.families.examples import ATOMS, COUNT, LABELS, POSITIVE, REAL, UNSCALED
from tests.families.grid import grid_posterior
from tests.kernels import runs
from tests.statistics import LARGEST_Z, batch_z, cdf_deviation, dkw_bound

N_START = 4000
N_STEP = 3
N_SWEEP = 1000
GRID = 2e-3
"""Of a cumulative probability: what a grid's cells make of it."""
PROBABILITIES = (0.1, 0.5, 0.9)

X_REAL = (3.4, 3.5, 4.1, 4.8, 4.9, 3.2, 4.5, 4.4)
X_POSITIVE = (1.0, 2.5, 3.0, 0.5, 2.0, 0.0)
X_COUNT = (2.0, 3.0, 2.0, 2.0, 5.0, 4.0)
CASES = (
    ("normal", REAL, "default", X_REAL, (3.0, 5.0)),
    ("normal", REAL, "abda", X_REAL, (3.15, np.inf)),
    ("gamma", POSITIVE, "default", X_POSITIVE, (-np.inf, 3.25)),
    ("gamma", POSITIVE, "default", X_POSITIVE[:4], (0.5, 3.5)),
    ("exponential", POSITIVE, "default", X_POSITIVE, (-np.inf, 3.25)),
    ("lognormal", POSITIVE, "default", X_POSITIVE[:5], (0.5, 3.5)),
    ("poisson", COUNT, "default", X_COUNT, (2.0, 5.0)),
    ("geometric", COUNT, "default", X_COUNT, (2.0, np.inf)),
)


def _name(case) -> str:
    return f"{case[0]}-{case[2]}-{case[4]}"


each_case = pytest.mark.parametrize("case", CASES, ids=_name)


def sweeps(sweeper: Sweeper, params: Params, rng: np.random.Generator) -> np.ndarray:
    """Return float64 (N_SWEEP, n_theta): the parameters after each of some sweeps."""
    draws = np.empty((N_SWEEP, params.theta.size))
    for draw in draws:
        sweeper.sweep(params, rng, 0, 0)
        draw[:] = params.theta
    return draws


def on_cell(circuit: Circuit, cell) -> Circuit:
    """Return the circuit with every leaf truncated to a cell."""
    return circuit._replace(leaf_cell=np.zeros_like(circuit.leaf_cell), cell=np.array(cell, float))


def sweeper_of(circuit: Circuit, table: Table, prior: str = "default") -> Sweeper:
    plan = make_plan(circuit, table.schema)
    priors = make_priors(circuit, table.schema, make_layout(circuit, table.schema), gamma=1.0, alpha=1.0, prior=prior)
    priors = priors._replace(scales=no_scales(priors.hyper.size))  # the grid's hyperparameters are fixed
    cells = make_cells(plan, table.values, table.observed, max_distinct_share=0.0, max_table_bytes=0)
    return Sweeper(circuit, plan, priors, cells, n_block=64)


def single(case) -> tuple[Sweeper, Params]:
    """Return a sweeper over the case's rows under its one leaf, and the learner's estimate."""
    name, column, prior, x, cell = case
    table = Table(Schema((column,)), np.array([x]), np.ones((1, len(x)), bool))
    sweeper = sweeper_of(on_cell(ex.independent(table, ex.only(name)), cell), table, prior)
    return sweeper, sweeper.learned()


@kernel
def _move(family, update, space, stats, hyper, constants, cell, n_step, rng, draws):
    """Replace each point by the one that some updates lead to; return how many of them were refused."""
    refused = 0
    for i in range(draws.shape[0]):
        for _ in range(n_step):
            refused += draw_on_cell(family, update, space, stats, hyper, constants, draws[i], cell, rng) != 0
    return refused


def deviations(case, rng: np.random.Generator, counted: float = 1.0) -> list[float]:
    """Return how far the marginals of draws of the grid are from it after some updates each.

    Of the rows in the exponent of the cell's mass only a share is `counted`.
    """
    name, column, prior, x, cell = case
    family = registry.family(name)
    grid = grid_posterior(case)
    draws = grid.draws(N_START, rng)
    start = features.initial_theta(family, column, np.array(x))
    space = np.array([SPACES.index(parameter.constraint) for parameter in family.parameters], np.int32)
    refused = _move(
        registry.number(name), SLICE, space, features.statistics(family, column, np.array(x)),
        family.priors[prior](column, start), family.constants(column),
        (*features.to_units(family, column, np.array(cell)), counted * len(x)), N_STEP, rng, draws,
    )  # fmt: skip
    assert not refused
    return [cdf_deviation(draws[:, j], lambda x, j=j: grid.cdf(j, x)) for j in range(draws.shape[1])]


@kernel
def _move_by_values(family, z, count, hyper, constants, cell, n_step, rng, draws):
    """Do what `_move` does for a family that draws from values."""
    refused = 0
    for i in range(draws.shape[0]):
        for _ in range(n_step):
            refused += draw_from_values_on_cell(family, z, count, hyper, constants, draws[i], cell, rng) != 0
    return refused


def rounded_deviation(counted: float, rng: np.random.Generator) -> float:
    """Return what `deviations` does at most, for a rounded normal, which proposes by reversible draws."""
    x, cell = (-1.0, 0.0, 2.0, 1.0, 0.0), (-1.0, 2.0)
    family = registry.family("rounded_normal")
    grid = grid_posterior(("rounded_normal", UNSCALED, "default", x, cell))
    draws = grid.draws(N_START, rng)
    z, count = np.unique(x, return_counts=True)
    hyper = family.priors["default"](UNSCALED, np.empty(2))
    refused = _move_by_values(
        registry.number("rounded_normal"), z, count.astype(float), hyper, family.constants(UNSCALED),
        (*cell, counted * len(x)), N_STEP, rng, draws,
    )  # fmt: skip
    assert not refused
    return max(cdf_deviation(draws[:, j], lambda x, j=j: grid.cdf(j, x)) for j in range(2))


def test_reversible_proposals_leave_the_posterior_by_quadrature_as_it_is(rng):
    assert rounded_deviation(1.0, rng) < dkw_bound(N_START) + GRID
    assert rounded_deviation(1e-9, rng) > dkw_bound(N_START) + GRID


@each_case
def test_slice_steps_leave_the_posterior_by_quadrature_as_it_is(case, rng):
    assert max(deviations(case, rng)) < dkw_bound(N_START) + GRID


@each_case
def test_slice_steps_without_the_mass_of_the_cell_are_caught(case, rng):
    assert max(deviations(case, rng, counted=1e-9)) > dkw_bound(N_START) + GRID


@pytest.mark.parametrize("case", [CASES[0], CASES[6]], ids=_name)
def test_sweeps_from_the_learners_estimate_find_the_posterior_by_quadrature(case, rng):
    sweeper, params = single(case)
    draws = sweeps(sweeper, params, rng)
    grid = grid_posterior(case)
    scores = [
        batch_z(draws[:, j] <= at, p)
        for j in range(draws.shape[1])
        for at, p in grid.marginal_quantiles(j, PROBABILITIES)
    ]
    assert max(map(abs, scores)) < LARGEST_Z


SIMPLEXES = (
    ("atom", ATOMS, (5.0, 9.0, 9.0, 5.0, 9.0), (4.0, 10.0), (2, 3)),
    ("categorical", LABELS, (1.0, 1.0, 2.0, 1.0), (1.0, 2.0), (1, 2)),
)


@pytest.mark.parametrize(("name", "column", "x", "cell", "inside"), SIMPLEXES)
def test_rows_inside_a_cell_say_nothing_of_its_share_nor_of_the_rest(name, column, x, cell, inside, rng):
    sweeper, params = single((name, column, "default", x, cell))
    draws = sweeps(sweeper, params, rng)
    prior = sweeper.priors.hyper
    first, second = (prior[k] + list(x).count(sweeper.plan.const[k + (name == "atom")]) for k in inside)
    bound = dkw_bound(N_SWEEP)
    own = draws[:, list(inside)].sum(axis=1)
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-12)
    assert cdf_deviation(draws[:, inside[0]] / own, scipy.stats.beta(first, second).cdf) < bound
    share = prior[list(inside)].sum()
    assert cdf_deviation(own, scipy.stats.beta(share, prior.sum() - share).cdf) < bound
    rest = draws[:, 0] / (1.0 - own)
    assert (
        np.all(np.abs(rest - 1.0) < 1e-9)
        or cdf_deviation(rest, scipy.stats.beta(prior[0], prior.sum() - share - prior[0]).cdf) < bound
    )


def test_conjugate_draw_on_a_cell_is_accepted_by_the_ratio_of_masses(rng):
    # of a Bernoulli leaf on the cell of one label, rows say nothing: what remains is the prior
    sweeper, params = single(("bernoulli", ex.FLAG, "default", (1.0, 1.0, 1.0), (1.0, 1.0)))
    a, b = sweeper.priors.hyper
    draws = rng.beta(a, b, N_SWEEP)
    for i in range(N_SWEEP):
        params.theta[0] = draws[i]
        sweeper.sweep(params, rng, 0, 0)
        draws[i] = params.theta[0]
    assert cdf_deviation(draws, scipy.stats.beta(a, b).cdf) < dkw_bound(N_SWEEP)


def test_truncated_leaf_without_rows_is_drawn_from_its_prior(rng):
    name, column, _, x, cell = CASES[6]
    table = Table(Schema((column,)), np.array([x]), np.zeros((1, len(x)), bool))
    circuit = on_cell(ex.independent(table, ex.only(name)), cell)
    sweeper = sweeper_of(circuit, table)
    draws = sweeps(sweeper, sweeper.learned(), rng)
    a, b, most = sweeper.priors.hyper
    prior = scipy.stats.gamma(a, scale=1.0 / b)
    assert draws.max() <= most
    assert cdf_deviation(draws[:, 0], lambda rate: prior.cdf(rate) / prior.cdf(most)) < dkw_bound(N_SWEEP)


def test_values_that_the_units_of_a_family_cannot_tell_apart_fall_on_their_own_side_of_a_cell(rng):
    column = ex.named(ex.REAL, "x")
    threshold = 0.1
    below = np.nextafter(threshold, -np.inf)
    values = np.array([[below, threshold]])
    assert np.ptp((values - column.location) / column.scale) == 0.0
    table = Table(Schema((column,)), values, np.ones(values.shape, bool))
    whole = ex.independent(table, ex.only("normal"))
    for cell, expected in (((-np.inf, below), [True, False]), ((threshold, np.inf), [False, True])):
        sweeper = sweeper_of(on_cell(whole, cell), table)
        scores = runs.log_scores(runs.Run(sweeper.plan, sweeper.cells), sweeper.learned())
        assert (scores > -np.inf).tolist() == expected


def test_every_family_of_a_truncated_slot_can_be_drawn(rng):
    columns = [replace(column, minimum=column.resolution) for column in ex.EVERY[:4]]  # without recorded zeros
    table = ex.make_table(columns, 60, rng)
    circuit = ex.hard(table, *(Condition(c, float(np.median(table.values[c]))) for c in range(4)))
    on_cells = np.flatnonzero(circuit.leaf_cell >= 0)
    names = {registry.FAMILIES[circuit.leaf_family[leaf]].name for leaf in on_cells}
    assert names >= {"normal", "gamma", "exponential", "lognormal", "poisson", "geometric", "categorical"}
    assert not names & {"student_t", "negative_binomial"}


@kernel
def _log_target_at(family, stats, hyper, constants, theta, cell):
    return _log_target(family, stats, hyper, constants, theta, cell)


def lost_leaf(far: float) -> tuple:
    """Return what `draw_on_cell` takes for a lognormal on the cell of its first case, with its `mu` at `far`."""
    name, column, prior, x, cell = CASES[5]
    family = registry.family(name)
    start = features.initial_theta(family, column, np.array(x))
    theta = start.copy()
    theta[1] = far
    cell = (*features.to_units(family, column, np.array(cell)), float(len(x)))
    stats = features.statistics(family, column, np.array(x))
    return registry.number(name), stats, family.priors[prior](column, start), family.constants(column), theta, cell


def test_parameters_at_which_the_mass_of_a_cell_is_rounding_noise_have_no_density():
    # n log mass is -1e33 there, and one rounding error of it 1e17
    assert _log_target_at(*lost_leaf(-4e16)) == -np.inf
    assert np.isfinite(_log_target_at(*lost_leaf(-30.0)))


def test_a_leaf_lost_where_the_mass_of_its_cell_is_rounding_noise_comes_back(rng):
    family, stats, hyper, constants, theta, cell = lost_leaf(-4e16)
    space = np.array([SPACES.index(parameter.constraint) for parameter in registry.FAMILIES[family].parameters])
    draws = theta[None].copy()
    refused = _move(family, SLICE, space.astype(np.int32), stats, hyper, constants, cell, 20, rng, draws)
    assert refused == 0
    assert abs(draws[0, 1]) < 1e3
