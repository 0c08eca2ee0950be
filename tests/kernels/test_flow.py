"""What flows from the root by the weights alone: path probability of nodes, shares of families, marginal cdfs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from bayesjpt.circuit.arrays import LEAF
from bayesjpt.circuit.plan import make_plan
from bayesjpt.families import registry
from bayesjpt.kernels.flow import fill_marginal_cdf, fill_shares, node_probabilities
from tests import examples as ex
from tests import naive, strategies

EXACT = 1e-12


def shares(case):
    """Return float64 (n_column, n_family)."""
    out = np.full((1, case.table.n_column, len(registry.FAMILIES)), np.nan)
    fill_shares(make_plan(case.circuit, case.table.schema), case.params.log_weight[None], out)
    return out[0]


def marginal_cdf(case, column, points):
    """Return float64 (n_point,): P(X_column <= point)."""
    out = np.full((1, len(points)), np.nan)
    which = np.full(len(points), column, np.int64)
    plan = make_plan(case.circuit, case.table.schema)
    fill_marginal_cdf(plan, case.params.log_weight[None], case.params.theta[None], which, np.array(points), out)
    return out[0]


def path_probability(case):
    """Return float64 (n_node,)."""
    plan, nodes = make_plan(case.circuit, case.table.schema), np.arange(case.circuit.n_node)
    return node_probabilities(plan, case.params.log_weight[None], nodes)[0]


def log_of(p):
    return math.log(p) if p > 0.0 else -math.inf


def root_value(case, column, score):
    """Return the root's value where all columns but one are missing, by recursion."""
    observed = np.arange(case.table.n_column) == column
    return math.exp(naive.log_value(case.circuit, case.table.schema, case.params, np.zeros(9), observed, score))


@pytest.fixture
def case(rng) -> strategies.Case:
    """Return a small circuit of two levels, of which all paths can be listed."""
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT), 10, rng)
    circuit = ex.two_level(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


# --- shares


@strategies.law(30)
@given(strategies.cases())
def test_shares_of_a_column_add_up_to_one(case):
    np.testing.assert_allclose(shares(case).sum(axis=1), 1.0, rtol=EXACT)


@strategies.law(30)
@given(strategies.cases())
def test_share_is_the_value_of_the_circuit_with_indicators_at_the_leaves(case):
    found = shares(case)
    for column in range(case.table.n_column):
        for number, family in enumerate(registry.FAMILIES):
            expected = root_value(case, column, lambda name, *_: 0.0 if name == family.name else -math.inf)  # noqa: B023 - called at once
            assert found[column, number] == pytest.approx(expected, rel=EXACT, abs=EXACT)


def test_shares_equal_the_enumeration_of_paths(case):
    expected = np.zeros((3, len(registry.FAMILIES)))
    for edges, leaves in naive.induced_paths(case.circuit, np.ones(3, bool)):
        p = math.exp(sum(case.params.log_weight[e] for e in edges))
        for leaf in leaves:
            expected[naive.leaf_column(case.circuit, leaf), case.circuit.leaf_family[leaf]] += p
    np.testing.assert_allclose(shares(case), expected, rtol=EXACT, atol=EXACT)


def test_reach_of_leaves_equals_the_enumeration_of_paths(case):
    probability = path_probability(case)
    expected = np.zeros(case.circuit.n_leaf)
    for edges, leaves in naive.induced_paths(case.circuit, np.ones(3, bool)):
        expected[list(leaves)] += math.exp(sum(case.params.log_weight[e] for e in edges))
    np.testing.assert_allclose(probability[case.circuit.leaf_node()], expected, rtol=EXACT)
    assert probability[-1] == 1.0


def test_shares_of_several_draws_are_those_of_each(case, rng):
    draws = [case._replace(params=ex.random_params(case.circuit, case.table.schema, rng)) for _ in range(3)]
    log_weights = np.array([draw.params.log_weight for draw in draws])
    out = np.empty((3, 3, len(registry.FAMILIES)))
    fill_shares(make_plan(case.circuit, case.table.schema), log_weights, out)
    assert out.tolist() == [shares(draw).tolist() for draw in draws]


# --- marginal cdf


def grid(column):
    """Return points below, inside and above a column's support, on and between its values."""
    if column.base == "category":
        return [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 9.0]
    return [-50.0, -1.0, -0.3, 0.0, 0.3, 1.0, 2.0, 2.5, 7.0, 40.0]


@strategies.law(30)
@given(strategies.cases())
def test_marginal_cdf_is_the_value_of_the_circuit_with_cdfs_at_the_leaves(case):
    for column, facts in enumerate(case.table.schema):
        found = marginal_cdf(case, column, grid(facts))
        for x, value in zip(grid(facts), found, strict=True):
            expected = root_value(
                case,
                column,
                lambda family, facts, theta, _: log_of(naive.family_cdf(family, facts, theta, x)),  # noqa: B023 - called at once
            )
            assert value == pytest.approx(expected, rel=EXACT, abs=EXACT)


@strategies.law(20)
@given(strategies.cases())
def test_marginal_cdf_rises_from_zero_to_one(case):
    for column, facts in enumerate(case.table.schema):
        values = marginal_cdf(case, column, [-1e9, *grid(facts), 1e9])
        assert (np.diff(values) >= -EXACT).all()
        assert values[[0, -1]] == pytest.approx([0.0, 1.0], abs=EXACT)


def test_every_leaf_of_the_examples_is_reached(rng):
    table = ex.make_table(ex.COLUMNS, 10, rng)
    circuit = ex.two_level(table)
    probability = path_probability(strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng)))
    assert (probability[circuit.kind == LEAF] > 0.0).all()
