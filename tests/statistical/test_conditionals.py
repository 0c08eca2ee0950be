"""Given allocations, every weight and every parameter is drawn from what the complete-data joint density says.

The joint is written with SciPy (`tests.model.reference`), evaluated on a grid of the leaf's parameters with all else
fixed, and normalised; the marginal distributions of the draws must be those of the grid. On a simplex the share of one
entry in the sum of two is followed: the joint along that line does not depend on the other entries.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import scipy.special
import scipy.stats

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.circuit.priors import make_priors
from bayesjpt.kernels.cells import Cells, Work, row_cells
from bayesjpt.kernels.gibbs import draw_params
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, statistics
from tests.conftest import SEED
from tests.model import reference

GAMMA, ALPHA = 3.0, 0.4
N_ROW = 12
N_DRAW = 30_000
THIN = 5
"""Draws made for each one kept: slice steps start from the draw before."""
N_GRID = 200
TABLES = {
    "real": ((ex.PLAIN[0],), ("normal",)),
    "positive": ((ex.PLAIN[1],), ("gamma", "exponential", "lognormal")),
    "with atoms": ((ex.HEAPED,), ("normal", "atom")),
    "levels and counts": ((ex.PLAIN[2], ex.PLAIN[3]), ("poisson", "geometric", "categorical")),
    "counts drawn by value": ((ex.PLAIN[2],), ("negative_binomial", "truncated_rounded_normal")),
    "whole numbers below zero": ((ex.CHANGE,), ("rounded_normal",)),
    "labels": ((ex.PLAIN[4], ex.FLAG), ("categorical", "bernoulli")),
    "ordered levels and labels": ((ex.PLAIN[3], ex.PLAIN[4]), ("ordinal",)),
}
"""Columns and the likelihoods of their leaves. Student's t, which has three parameters, is not followed here."""


@kernel
def repeat(plan, cells, work, stats, edge_count, priors, log_weight, theta, rng, thin, log_weights, thetas):
    """Fill both arrays with every `thin`-th draw given the same allocations; return -1 or the node that failed."""
    concentration, hyper, hyper_at = priors
    for draw in range(thetas.shape[0]):
        for _ in range(thin):
            node = draw_params(
                plan, cells, work, stats, edge_count, concentration, hyper, hyper_at, log_weight, theta, rng
            )
            if node >= 0:
                return node
        log_weights[draw] = log_weight
        thetas[draw] = theta
    return -1


class Allocated(NamedTuple):
    """A table whose allocations are fixed, and the draws of weights and parameters given them."""

    circuit: Circuit
    table: Table
    taken: np.ndarray
    cells: list[list[float]]
    draws: Params


@pytest.fixture(scope="module", params=TABLES)
def case(request) -> Allocated:
    """Return a mixture of two, its rows allocated at random but for the last leaf of each column, which gets none."""
    rng = np.random.default_rng([SEED, zlib.crc32(request.param.encode())])
    columns, families = TABLES[request.param]
    table = ex.make_table(columns, N_ROW, rng, missing=0.2)
    circuit = ex.mixture(table, dictionary=ex.only(*families))
    layout = make_layout(circuit, table.schema)
    plan = make_plan(circuit, table.schema)
    start = ex.start(circuit)
    taken = np.zeros(circuit.n_edge, np.int64)
    cells: list[list[float]] = [[] for _ in range(circuit.n_leaf)]
    reached: list[tuple[int, int]] = []
    last = {naive.leaf_column(circuit, leaf): leaf for leaf in range(circuit.n_leaf)}
    for row in range(N_ROW):
        paths = [
            path
            for path in naive.induced_paths(circuit, table.observed[:, row])
            if not set(path[1]) & set(last.values())
            and naive.path_log_joint(circuit, table.schema, start, table.values[:, row], path) > -np.inf
        ]
        edges, leaves = paths[rng.integers(len(paths))]
        taken[list(edges)] += 1
        for leaf in leaves:
            cells[leaf].append(float(table.values[naive.leaf_column(circuit, leaf), row]))
            reached.append((leaf, row))
    stats = [naive.leaf_statistics(circuit, table.schema, leaf, x) for leaf, x in enumerate(cells)]
    priors = make_priors(circuit, table.schema, layout, gamma=GAMMA, alpha=ALPHA, prior="default")
    draws = Params(np.empty((N_DRAW, circuit.n_edge)), np.empty((N_DRAW, circuit.n_theta)))
    arguments = (priors.concentration, priors.hyper, priors.hyper_at)
    by_row = row_cells(plan, table.values.copy(), np.ascontiguousarray(~table.observed))
    work = make_work(plan, by_row, N_ROW)
    keep_values(plan, by_row, work, reached)
    assert repeat(plan, by_row, work, np.concatenate(stats), taken, arguments, *start, rng, THIN, *draws) == -1
    return Allocated(circuit, table, taken, cells, draws)


def keep_values(plan: Plan, cells: Cells, work: Work, reached: list[tuple[int, int]]) -> None:
    """Note the values of the rows that reached the leaves that are drawn by value, as the sweep does."""
    for leaf, row in reached:
        if plan.leaf_by_value[leaf]:
            kept = plan.column_kept[plan.feature_column[plan.leaf_value[leaf]]]
            at = cells.feature_at[plan.leaf_value[leaf]] + row
            work.kept_value[kept, work.n_kept[kept]] = cells.feature[at]
            work.kept_leaf[kept, work.n_kept[kept]] = leaf
            work.n_kept[kept] += 1


def theta_of(case: Allocated, leaf: int) -> slice:
    return slice(case.circuit.theta_at[leaf], case.circuit.theta_at[leaf] + case.circuit.theta_len[leaf])


def column_of(circuit: Circuit, table: Table, leaf: int):
    return table.schema.columns[naive.leaf_column(circuit, leaf)]


def grid_over(draws: np.ndarray) -> np.ndarray:
    """Return an even grid that reaches well beyond the draws."""
    lo, hi = draws.min(), draws.max()
    return np.linspace(lo - 0.2 * (hi - lo), hi + 0.2 * (hi - lo), N_GRID)


def assert_follows(draws: np.ndarray, grid: np.ndarray, log_mass: np.ndarray) -> None:
    """Check draws against unnormalised log masses at the points of an even grid."""
    mass = np.exp(log_mass - log_mass.max())
    upto = np.cumsum(mass) - 0.5 * mass
    deviation = statistics.cdf_deviation(draws, lambda x: np.interp(x, grid, upto / mass.sum(), left=0.0, right=1.0))
    assert deviation < statistics.dkw_bound(N_DRAW)


def assert_simplex_follows(log_draws: np.ndarray, log_joint: Callable[[np.ndarray], float]) -> None:
    """Check the log ratio of each entry to the next against the joint along the line that changes these two alone."""
    centre = np.exp(log_draws[0])
    for first in range(centre.size - 1):
        ratio = log_draws[:, first] - log_draws[:, first + 1]
        grid = grid_over(ratio)
        log_mass = []
        for log_ratio in grid:
            share = scipy.special.expit([log_ratio, -log_ratio])
            point = centre.copy()
            point[first : first + 2] = share * centre[first : first + 2].sum()
            log_mass.append(log_joint(point) + np.log(share).sum())
        assert_follows(ratio, grid, np.array(log_mass))


def log_joint_of_leaf(case: Allocated, leaf: int, theta) -> np.ndarray:
    """Return the terms of the joint that a leaf's parameters enter: their prior, and the values allocated to it."""
    family, column = naive.leaf_family(case.circuit, leaf), column_of(case.circuit, case.table, leaf)
    total = reference.default_log_prior(family, column, theta)
    with np.errstate(divide="ignore"):  # masses of 0 at the ends of a grid
        for x in case.cells[leaf]:
            total = total + naive.family_log_density(family, column, theta, x)
    return total


def leaves_of(case: Allocated, families: set[str]) -> list[int]:
    """Return the leaves of some families; among them such that hold rows and such that hold none."""
    leaves = [leaf for leaf in range(case.circuit.n_leaf) if naive.leaf_family(case.circuit, leaf) in families]
    assert any(case.cells[leaf] for leaf in leaves)
    return leaves


def test_weights_follow_the_joint(case):
    for node in range(case.circuit.n_node):
        prior = {arrays.LATENT: GAMMA, arrays.LIKELIHOOD: ALPHA}.get(int(case.circuit.kind[node]))
        if prior is not None:
            edges = naive.edges_of(case.circuit, node)
            at = slice(edges.start, edges.stop)
            concentration = np.full(len(edges), prior)

            def log_joint(weight, concentration=concentration, taken=case.taken[at]):
                weight = np.minimum(weight, 1.0)  # a rounding error above
                return scipy.stats.dirichlet.logpdf(weight, concentration) + (taken * np.log(weight)).sum()

            assert_simplex_follows(case.draws.log_weight[:, at], log_joint)


@pytest.mark.parametrize("case", ["levels and counts", "labels", "with atoms"], indirect=True)
def test_probabilities_of_labels_and_atoms_follow_the_joint(case):
    for leaf in leaves_of(case, {"categorical", "atom"}):
        log_draws = np.log(case.draws.theta[:, theta_of(case, leaf)])
        assert_simplex_follows(log_draws, functools.partial(log_joint_of_leaf, case, leaf))


@pytest.mark.parametrize("case", ["positive", "levels and counts"], indirect=True)
def test_rates_follow_the_joint(case):
    for leaf in leaves_of(case, {"exponential", "poisson"}):
        log_rate = np.log(case.draws.theta[:, case.circuit.theta_at[leaf]])
        grid = grid_over(log_rate)
        assert_follows(log_rate, grid, log_joint_of_leaf(case, leaf, (np.exp(grid),)) + grid)


@pytest.mark.parametrize("case", ["levels and counts", "labels"], indirect=True)
def test_probabilities_of_zero_and_of_the_second_label_follow_the_joint(case):
    for leaf in leaves_of(case, {"geometric", "bernoulli"}):
        log_odds = scipy.special.logit(case.draws.theta[:, case.circuit.theta_at[leaf]])
        grid = grid_over(log_odds)
        p = scipy.special.expit(grid)
        assert_follows(log_odds, grid, log_joint_of_leaf(case, leaf, (p,)) + np.log(p) + np.log1p(-p))


@pytest.mark.parametrize(
    "case", ["real", "positive", "with atoms", "counts drawn by value", "whole numbers below zero"], indirect=True
)
def test_variance_and_mean_follow_the_joint(case):
    for leaf in leaves_of(case, {"normal", "lognormal", "rounded_normal", "truncated_rounded_normal"}):
        variance, mu = case.draws.theta[:, theta_of(case, leaf)].T
        log_variance, in_deviations = np.log(variance), mu / np.sqrt(variance)
        first, second = grid_over(log_variance), grid_over(in_deviations)
        at = np.exp(first)[:, None]
        log_mass = log_joint_of_leaf(case, leaf, (at, second * np.sqrt(at))) + 1.5 * np.log(at)
        assert_follows(log_variance, first, scipy.special.logsumexp(log_mass, axis=1))
        assert_follows(in_deviations, second, scipy.special.logsumexp(log_mass, axis=0))


@pytest.mark.parametrize("case", ["positive"], indirect=True)
def test_shape_and_rate_follow_the_joint(case):
    for leaf in leaves_of(case, {"gamma"}):
        log_shape, log_rate = np.log(case.draws.theta[:, theta_of(case, leaf)]).T
        first, second = grid_over(log_shape), grid_over(log_rate - log_shape)
        shape = np.exp(first)[:, None]
        rate = shape * np.exp(second)
        log_mass = log_joint_of_leaf(case, leaf, (shape, rate)) + np.log(shape) + np.log(rate)
        assert_follows(log_shape, first, scipy.special.logsumexp(log_mass, axis=1))
        assert_follows(log_rate - log_shape, second, scipy.special.logsumexp(log_mass, axis=0))


@pytest.mark.parametrize("case", ["counts drawn by value"], indirect=True)
def test_size_and_mean_of_negative_binomials_follow_the_joint(case):
    for leaf in leaves_of(case, {"negative_binomial"}):
        size, p = case.draws.theta[:, theta_of(case, leaf)].T
        log_size, log_mean = np.log(size), np.log(size) + np.log1p(-p) - np.log(p)
        first, second = grid_over(log_size), grid_over(log_mean)
        at = np.exp(first)[:, None]
        p = at / (at + np.exp(second))
        log_mass = log_joint_of_leaf(case, leaf, (at, p)) + first[:, None] + np.log(p) + np.log1p(-p)
        assert_follows(log_size, first, scipy.special.logsumexp(log_mass, axis=1))
        assert_follows(log_mean, second, scipy.special.logsumexp(log_mass, axis=0))


@pytest.mark.parametrize("case", ["ordered levels and labels"], indirect=True)
def test_scale_and_mean_of_ordered_levels_follow_the_joint(case):
    for leaf in leaves_of(case, {"ordinal"}):
        scale, mu = case.draws.theta[:, theta_of(case, leaf)].T
        log_scale = np.log(scale)
        first, second = grid_over(log_scale), grid_over(mu)
        at = np.exp(first)[:, None]
        log_mass = log_joint_of_leaf(case, leaf, (at, second[None, :])) + first[:, None]
        assert_follows(log_scale, first, scipy.special.logsumexp(log_mass, axis=1))
        assert_follows(mu, second, scipy.special.logsumexp(log_mass, axis=0))
