"""Values as pairs (s, m): wide tables, densities beyond the range of floats, impossible rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesjpt.circuit.build import Product, Sum, build_circuit
from bayesjpt.circuit.plan import make_plan
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import naive, strategies, zoo
from tests.kernels import runs

WIDE = 2000
ROUNDING = 1e-11  # relative, of a sum over thousands of columns


def wide_table(column, rng, n_column=WIDE, n_row=3):
    columns = tuple(replace(column, name=f"{column.name} {i}") for i in range(n_column))
    return zoo.make_table(columns, n_row, rng)


@pytest.mark.parametrize("mode", runs.MODES)
def test_2000_columns_do_not_underflow(mode, rng):
    table = wide_table(zoo.REAL, rng)
    circuit = zoo.mixture(table, 2, strategies.first_family)
    params = zoo.random_params(circuit, table.schema, rng)
    expected = naive.log_values(circuit, params, table)
    assert expected.max() < -2000.0
    np.testing.assert_allclose(runs.log_density(circuit, params, table, mode), expected, rtol=ROUNDING)


@pytest.mark.parametrize("mode", runs.MODES)
def test_linear_factors_of_2000_dictionaries_do_not_overflow(mode, rng):
    # two equal members with equal weights give a linear factor of 2 a column: 2^2000 overflows
    table = wide_table(zoo.REAL, rng)
    circuit = zoo.independent(table, strategies.every_family_twice)
    plan = make_plan(circuit, table.schema)
    assert plan.renormalise.any()
    alone = zoo.independent(table, strategies.first_family)
    np.testing.assert_allclose(
        runs.log_density(circuit, zoo.start(circuit), table, mode),
        runs.log_density(alone, zoo.start(alone), table, mode),
        rtol=ROUNDING,
    )


def test_linear_factors_below_nested_sums_do_not_overflow(rng):
    table = wide_table(zoo.REAL, rng, n_column=700)

    def mixture_over(first, last):
        halves = tuple(Product(tuple(zoo.leaf(column, table) for column in range(first, last))) for _ in range(4))
        return Sum(halves, (1,) * 4)

    circuit = build_circuit(
        Product((mixture_over(0, 350), mixture_over(350, 700))), table, strategies.every_family_twice
    )
    params = zoo.start(circuit)
    expected = naive.log_values(circuit, params, table)
    np.testing.assert_allclose(runs.log_density(circuit, params, table), expected, rtol=ROUNDING)


def normal_at(table, circuit, mean, variance):
    """Return parameters with the given normal in every leaf."""
    params = zoo.start(circuit)
    params.theta[0::2] = variance
    params.theta[1::2] = mean
    return params


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize(("mean", "variance"), [(1e3, 1e-10), (1e150, 1.0), (0.0, 1e-300)])
def test_densities_far_below_the_range_of_floats_stay_finite(mode, mean, variance, rng):
    table = zoo.make_table((zoo.REAL,), 10, rng, continuous=True)
    circuit = zoo.mixture(table, 2)
    params = normal_at(table, circuit, mean, variance)
    found = runs.log_density(circuit, params, table, mode)
    z = (table.values[0] - zoo.REAL.location) / zoo.REAL.scale
    expected = -0.5 * (z - mean) ** 2 / variance - 0.5 * np.log(2.0 * np.pi * variance) - np.log(zoo.REAL.scale)
    assert expected.max() < -1e10
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)


def test_component_a_million_nats_behind_is_still_chosen_when_it_is_alone(rng):
    table = zoo.make_table((zoo.REAL, zoo.POSITIVE), 20, rng)
    circuit = zoo.mixture(table, 2)
    params = zoo.start(circuit)
    first, last = circuit.child_ptr[-2], circuit.child_ptr[-1]
    params.log_weight[first:last] = [0.0, -1e6]
    run = runs.prepare(circuit, table)
    assert runs.allocate(run, params, 1).edge_count[first:last].tolist() == [20, 0]
    params.log_weight[first:last] = [-np.inf, -1e6]
    allocated = runs.allocate(run, params, 1)
    assert allocated.edge_count[first:last].tolist() == [0, 20]
    assert np.isfinite(allocated.log_likelihood)


# --- impossible rows

UNSEEN_LEVEL = replace(zoo.LEVELS, name="unseen level")
SHAPES = {
    "leaf": lambda table: zoo.independent(table.of(1), strategies.last_family),
    "dictionary": lambda table: zoo.independent(table.of(1), strategies.every_family_twice),
    "product": lambda table: zoo.independent(table.of(3), strategies.last_family),
    "mixture of leaves": lambda table: zoo.mixture(table.of(1), 2, strategies.last_family),
    "mixture of products": lambda table: zoo.mixture(table.of(3), 2, strategies.last_family),
    "two levels": lambda table: zoo.two_level(table.of(3), strategies.last_family),
}


def table_with_impossible_row(column, x, n_column, rng):
    """Return a table of 10 rows and parts of it: the first column of row 4 holds a value that no family can."""
    others = (zoo.LABEL, zoo.REAL)[: n_column - 1]
    table = zoo.make_table((column, *others), 10, rng)
    values = table.values.copy()
    values[0, 4] = x
    return table, Table(Schema((column, *others)), values, table.observed)


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize(
    ("column", "x", "dictionary"),
    [
        (zoo.LEVELS, 3.0, "categorical"),  # a level that training never showed
        (zoo.COUNT, 0.5, "poisson"),
        (zoo.COUNT, -1.0, "geometric"),
        (zoo.POSITIVE, -1.0, "gamma"),
        (zoo.POSITIVE, -1.0, "exponential"),
    ],
)
@pytest.mark.parametrize(
    ("shape", "n_column"),
    [(zoo.independent, 1), (zoo.independent, 3), (zoo.mixture, 1), (zoo.mixture, 3), (zoo.two_level, 3)],
)
class TestImpossibleRow:
    def runs_of(self, column, x, dictionary, shape, n_column, rng, mode):
        possible, impossible = table_with_impossible_row(column, x, n_column, rng)
        circuit = shape(possible, dictionary=zoo.only(dictionary))
        return runs.prepare(circuit, impossible, mode), zoo.random_params(circuit, impossible.schema, rng)

    def test_has_log_density_minus_infinity(self, column, x, dictionary, shape, n_column, rng, mode):
        run, params = self.runs_of(column, x, dictionary, shape, n_column, rng, mode)
        scores = runs.log_scores(run, params)
        assert scores[4] == -np.inf
        assert np.isfinite(np.delete(scores, 4)).all()

    def test_is_named_by_the_allocation(self, column, x, dictionary, shape, n_column, rng, mode):
        run, params = self.runs_of(column, x, dictionary, shape, n_column, rng, mode)
        assert runs.allocate(run, params, 1).impossible == 4


def test_impossible_dictionary_member_leaves_the_others(rng):
    table = zoo.make_table((replace(zoo.POSITIVE, support=(-np.inf, np.inf)),), 10, rng)
    values = table.values.copy()
    values[0, 3] = -0.5
    table = Table(table.schema, values, table.observed)
    everything = lambda column: strategies.registry.FAMILIES[:3]  # noqa: E731
    circuit = zoo.independent(table, everything)
    params = zoo.random_params(circuit, table.schema, rng)
    np.testing.assert_allclose(
        runs.log_density(circuit, params, table), naive.log_values(circuit, params, table), rtol=ROUNDING
    )
