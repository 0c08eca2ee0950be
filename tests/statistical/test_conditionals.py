"""Given allocations, every weight and every parameter is drawn from what the complete-data joint density says.

The joint is written with SciPy (`tests.model.reference`), evaluated on a grid of the leaf's parameters with all else
fixed, and normalised; the marginal distributions of the draws must be those of the grid. On a simplex the share of one
entry in the sum of two is followed: the joint along that line does not depend on the other entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.kernels.gibbs import draw_params
from bayesjpt.model.priors import make_priors
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.table import Table
from tests import naive, statistics, zoo
from tests.model import reference

GAMMA, ALPHA = 3.0, 0.4
N_ROW = 12
N_DRAW = 30_000
THIN = 5
"""Draws made for each one kept: slice steps start from the draw before."""
N_GRID = 600
TABLES = {
    "normal and the positive families": (zoo.REAL, zoo.POSITIVE),
    "the counts and categorical levels": (zoo.COUNT, zoo.LEVELS),
    "labels": (zoo.LABEL,),
}


@kernel
def repeat(plan, stats, edge_count, priors, log_weight, theta, rng, thin, log_weights, thetas):
    """Fill both arrays with every `thin`-th draw given the same allocations; return -1 or the node that failed."""
    concentration, hyper, hyper_at = priors
    for draw in range(thetas.shape[0]):
        for _ in range(thin):
            node = draw_params(plan, stats, edge_count, concentration, hyper, hyper_at, log_weight, theta, rng)
            if node >= 0:
                return node
        log_weights[draw] = log_weight
        thetas[draw] = theta
    return -1


class Allocated(NamedTuple):
    """A table whose allocations are fixed, and the draws of weights and parameters given them."""

    circuit: Circuit
    table: Table
    plan: Plan
    taken: np.ndarray
    cells: list[list[float]]
    draws: Params


def allocated(columns, rng: np.random.Generator) -> Allocated:
    """Return a mixture of two, its rows allocated at random but for the last leaf of each column, which gets none."""
    table = zoo.make_table(columns, N_ROW, rng, missing=0.2)
    circuit = zoo.mixture(table)
    layout = make_layout(circuit, table.schema)
    plan = make_plan(circuit, table.schema)
    taken = np.zeros(circuit.n_edge, np.int64)
    cells: list[list[float]] = [[] for _ in range(circuit.n_leaf)]
    last = {naive.leaf_column(circuit, leaf): leaf for leaf in range(circuit.n_leaf)}
    for row in range(N_ROW):
        paths = [p for p in naive.induced_paths(circuit, table.observed[:, row]) if not set(p[1]) & set(last.values())]
        edges, leaves = paths[rng.integers(len(paths))]
        taken[list(edges)] += 1
        for leaf in leaves:
            cells[leaf].append(float(table.values[naive.leaf_column(circuit, leaf), row]))
    stats = [
        naive.family_statistics(naive.leaf_family(circuit, leaf), column_of(circuit, table, leaf), x)
        for leaf, x in enumerate(cells)
    ]
    priors = make_priors(circuit, table.schema, layout, gamma=GAMMA, alpha=ALPHA, prior="default")
    start = zoo.start(circuit)
    draws = Params(np.empty((N_DRAW, circuit.n_edge)), np.empty((N_DRAW, circuit.n_theta)))
    arguments = (priors.concentration, priors.hyper, priors.hyper_at)
    assert repeat(plan, np.concatenate(stats), taken, arguments, *start, rng, THIN, *draws) == -1
    return Allocated(circuit, table, plan, taken, cells, draws)


def column_of(circuit: Circuit, table: Table, leaf: int):
    return table.schema.columns[naive.leaf_column(circuit, leaf)]


def grid_of(draws: np.ndarray, transform: Callable, inverse: Callable) -> np.ndarray:
    """Return an even grid, on the transformed scale, that reaches well beyond the draws."""
    lo, hi = transform(draws.min()), transform(draws.max())
    return inverse(np.linspace(lo - 0.2 * (hi - lo), hi + 0.2 * (hi - lo), N_GRID))


def distribution_function(grid: np.ndarray, log_mass: np.ndarray) -> Callable:
    """Return the interpolated cdf of unnormalised log masses at the points of a grid."""
    mass = np.exp(log_mass - log_mass.max())
    upto = np.cumsum(mass) - 0.5 * mass
    return lambda x: np.interp(x, grid, upto / mass.sum(), left=0.0, right=1.0)


def assert_follows(draws: np.ndarray, cdf: Callable) -> None:
    assert statistics.cdf_deviation(draws, cdf) < statistics.dkw_bound(N_DRAW)


def leaf_log_joint(case: Allocated, leaf: int, theta) -> np.ndarray:
    """Return the terms of the joint that a leaf's parameters enter: their prior, and the values allocated to it."""
    family, column = naive.leaf_family(case.circuit, leaf), column_of(case.circuit, case.table, leaf)
    total = reference.default_log_prior(family, column, theta)
    for x in case.cells[leaf]:
        total = total + naive.family_log_density(family, column, theta, x)
    return total


def leaves_of(case: Allocated, *families: str) -> list[int]:
    """Return the leaves of some families; those that hold rows and those that hold none."""
    return [leaf for leaf in range(case.circuit.n_leaf) if naive.leaf_family(case.circuit, leaf) in families]


@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES)
def test_weights_follow_the_joint(columns, rng):
    case = allocated(columns, rng)
    share = np.linspace(0.0, 1.0, 20 * N_GRID + 1)[1:-1]
    for node in range(case.circuit.n_node):
        edges = naive.edges_of(case.circuit, node)
        concentration = {"latent": GAMMA, "likelihood": ALPHA}.get(kind_name(case.circuit, node))
        if concentration is None:
            continue
        for first, second in zip(edges[:-1], edges[1:], strict=True):
            log_joint = (concentration - 1.0 + case.taken[first]) * np.log(share)
            log_joint += (concentration - 1.0 + case.taken[second]) * np.log1p(-share)
            ratio = case.draws.log_weight[:, second] - case.draws.log_weight[:, first]
            assert_follows(1.0 / (1.0 + np.exp(ratio)), distribution_function(share, log_joint))
