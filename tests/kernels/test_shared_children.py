"""Sums that share their children: values, densities, paths and gradients are those of sums taken one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.plan import make_plan
from tests import examples as ex
from tests import naive, strategies
from tests.kernels import runs
from tests.kernels.test_allocate import assert_same_allocation, twin

COLUMNS = (ex.REAL, ex.COUNT, ex.POSITIVE)
EXACT = 1e-11
"""Absolute, nats."""


def two_layers(table, weights=((0.2, 0.3, 0.5), (0.6, 0.3, 0.1), (1e-3, 1e-3, 0.998))):
    """Return a root of three parts, each with a sum of its own weights over three others, the same of all."""
    parts = np.array_split(np.arange(table.n_row), 3)
    below = tuple(Product((ColumnLeaf(0, rows), ColumnLeaf(1, rows))) for rows in parts)
    above = [
        Product((Sum(below, (1, 1, 1), weights=own), ColumnLeaf(2, rows)))
        for own, rows in zip(weights, parts, strict=True)
    ]
    return build_circuit(Sum(tuple(above), (5, 6, 7)), table, ex.only("normal", "poisson", "gamma"))


@pytest.fixture(params=[0.0, 0.3])
def case(request, rng) -> strategies.Case:
    table = ex.make_table(COLUMNS, 300, rng, request.param)
    circuit = two_layers(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


def test_sums_with_the_same_children_stand_side_by_side(case):
    plan = make_plan(case.circuit, case.table.schema)
    shared = np.flatnonzero(plan.shares_children)
    assert shared.size == 3
    assert (np.diff(shared) == 1).all()
    assert plan.follows[shared].tolist() == [False, True, True]
    assert (case.circuit.kind[shared] == arrays.LATENT).all()


@pytest.mark.parametrize("mode", list(runs.MODES))
def test_values_and_paths_are_those_of_the_slow_twin(case, mode):
    run = runs.prepare(case.circuit, case.table, mode)
    found = runs.log_scores(run, case.params) + runs.log_jacobian(case.table)
    np.testing.assert_allclose(found, naive.log_values(case.circuit, case.params, case.table), atol=EXACT)
    assert_same_allocation(runs.allocate(run, case.params, 5), twin(case, 5))
    assert_same_allocation(runs.allocate(run, case.params, 5, by_prior=True), twin(case, 5, naive.flat))


def test_weights_that_leave_the_likeliest_child_nothing_cost_no_digit(rng):
    table = ex.make_table(COLUMNS, 60, rng)
    circuit = two_layers(table)
    params = ex.random_params(circuit, table.schema, rng)
    log_weight = params.log_weight.copy()
    for node in np.flatnonzero(make_plan(circuit, table.schema).shares_children):
        first = circuit.child_ptr[node]
        log_weight[first : first + 3] = -690.0, -650.0, 0.0
    hard = Params(log_weight, params.theta)
    values = table.values.copy()
    values[1] = 10_000.0  # under the likeliest of the children by hundreds of nats
    far = bj.Table(table.schema, values, table.observed)
    found = runs.log_scores(runs.prepare(circuit, far), hard) + runs.log_jacobian(far)
    np.testing.assert_allclose(found, naive.log_values(circuit, hard, far), rtol=1e-12)


def test_rows_that_are_impossible_under_every_child_stay_so(rng):
    table = ex.make_table(COLUMNS, 30, rng)
    circuit = two_layers(table)
    params = ex.random_params(circuit, table.schema, rng)
    values = table.values.copy()
    values[1, 4] = -1.0  # a count
    run = runs.prepare(circuit, bj.Table(table.schema, values, table.observed))
    found = runs.log_scores(run, params)
    assert found[4] == -np.inf
    assert np.isfinite(np.delete(found, 4)).all()


def test_completed_rows_follow_the_sums(rng):
    table = ex.make_table(COLUMNS, 200, rng)
    circuit = two_layers(table)
    post = bj.Posterior.from_circuit(circuit, table.schema)
    given = {table.schema.names[2]: float(np.median(table.values[2]))}
    n, name = 4000, table.schema.names[0]
    drawn = post.sample(n, given=given, rng=np.random.default_rng(1)).to_frame()[name]
    points = np.quantile(drawn, np.linspace(0.05, 0.95, 19))
    cdf = post.cdf(points, name, given).values.ravel()
    assert stats.kstest(drawn, lambda x: np.interp(x, points, cdf)).statistic < 0.06
