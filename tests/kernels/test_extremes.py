"""Values as pairs (s, m): wide tables, densities beyond the range of floats, impossible rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesjpt.circuit import arrays
from bayesjpt.circuit.build import Product, Sum, build_circuit
from bayesjpt.circuit.plan import make_plan
from bayesjpt.families import registry
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.density import fill_log_density
from bayesjpt.kernels.work import make_work
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, strategies
from tests.kernels import runs

WIDE = 2000
ROUNDING = 1e-11  # relative, of a sum over thousands of columns


def wide_table(column, rng, n_column=WIDE, n_row=3):
    columns = tuple(replace(column, name=f"{column.name} {i}") for i in range(n_column))
    return ex.make_table(columns, n_row, rng)


@pytest.mark.parametrize("mode", runs.MODES)
def test_2000_columns_do_not_underflow(mode, rng):
    table = wide_table(ex.REAL, rng)
    circuit = ex.mixture(table, 2, strategies.first_family)
    params = ex.random_params(circuit, table.schema, rng)
    expected = naive.log_values(circuit, params, table)
    assert expected.max() < -2000.0
    np.testing.assert_allclose(runs.log_density(circuit, params, table, mode), expected, rtol=ROUNDING)


@pytest.mark.parametrize("mode", runs.MODES)
def test_linear_factors_of_2000_dictionaries_do_not_overflow(mode, rng):
    # two equal members with equal weights give a linear factor of 2 a column: 2^2000 overflows
    table = wide_table(ex.REAL, rng)
    circuit = ex.independent(table, strategies.every_family_twice)
    plan = make_plan(circuit, table.schema)
    assert plan.renormalise.any()
    alone = ex.independent(table, strategies.first_family)
    np.testing.assert_allclose(
        runs.log_density(circuit, ex.start(circuit), table, mode),
        runs.log_density(alone, ex.start(alone), table, mode),
        rtol=ROUNDING,
    )


def test_linear_factors_below_nested_sums_do_not_overflow(rng):
    table = wide_table(ex.REAL, rng, n_column=700)

    def mixture_over(first, last):
        halves = tuple(Product(tuple(ex.leaf(column, table) for column in range(first, last))) for _ in range(4))
        return Sum(halves, (1,) * 4)

    circuit = build_circuit(
        Product((mixture_over(0, 350), mixture_over(350, 700))), table, strategies.every_family_twice
    )
    params = ex.start(circuit)
    expected = naive.log_values(circuit, params, table)
    np.testing.assert_allclose(runs.log_density(circuit, params, table), expected, rtol=ROUNDING)


def normal_at(circuit, mean, variance):
    """Return parameters with the given normal in every leaf."""
    params = ex.start(circuit)
    params.theta[0::2] = variance
    params.theta[1::2] = mean
    return params


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize(("mean", "variance"), [(1e3, 1e-10), (1e150, 1.0), (0.0, 1e-300)])
def test_densities_far_below_the_range_of_floats_stay_finite(mode, mean, variance, rng):
    table = ex.make_table((ex.REAL,), 10, rng, continuous=True)
    circuit = ex.mixture(table, 2, ex.only("normal"))
    params = normal_at(circuit, mean, variance)
    found = runs.log_density(circuit, params, table, mode)
    z = (table.values[0] - ex.REAL.location) / ex.REAL.scale
    expected = -0.5 * (z - mean) ** 2 / variance - 0.5 * np.log(2.0 * np.pi * variance) - np.log(ex.REAL.scale)
    assert expected.max() < -1e10
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize("n_member", [2, 3, 4, 6])
@pytest.mark.parametrize("kind", [arrays.LATENT, arrays.LIKELIHOOD])
def test_member_far_ahead_of_all_others_takes_every_row(kind, n_member, mode, rng):
    # beyond 709 nats the exponential of a difference the wrong way round would overflow
    table = ex.make_table((ex.REAL,), 20, rng)
    if kind == arrays.LATENT:
        circuit = ex.mixture(table, n_member, ex.only("normal"))
    else:
        circuit = ex.independent(table, lambda column: ex.only("normal")(column) * n_member)
    assert circuit.kind[-1] == kind
    for best in range(n_member):
        params = ex.start(circuit)
        params.theta[1::2] = 1e5
        params.theta[2 * best + 1] = 0.0
        run = runs.prepare(circuit, table, mode)
        expected = naive.log_values(circuit, params, table)
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(runs.log_scores(run, params) + runs.log_jacobian(table), expected, rtol=ROUNDING)
        assert runs.allocate(run, params, 1).edge_count.tolist() == [20 * (edge == best) for edge in range(n_member)]


def test_component_a_million_nats_behind_is_still_chosen_when_it_is_alone(rng):
    table = ex.make_table((ex.REAL, ex.POSITIVE), 20, rng)
    circuit = ex.mixture(table, 2)
    params = ex.start(circuit)
    first, last = circuit.child_ptr[-2], circuit.child_ptr[-1]
    params.log_weight[first:last] = [0.0, -1e6]
    run = runs.prepare(circuit, table)
    assert runs.allocate(run, params, 1).edge_count[first:last].tolist() == [20, 0]
    params.log_weight[first:last] = [-np.inf, -1e6]
    allocated = runs.allocate(run, params, 1)
    assert allocated.edge_count[first:last].tolist() == [0, 20]
    assert np.isfinite(allocated.log_likelihood)


# --- impossible rows

IMPOSSIBLE = [
    (ex.LEVELS, 3.0, "categorical"),  # a level that training never showed
    (ex.LABEL, 4.0, "categorical"),  # a code beyond that of "other"
    (ex.COUNT, 0.5, "poisson"),
    (ex.COUNT, -1.0, "geometric"),
    (ex.POSITIVE, -1.0, "gamma"),
    (ex.POSITIVE, -1.0, "exponential"),
]
SHAPES = [(ex.independent, 1), (ex.independent, 3), (ex.mixture, 1), (ex.mixture, 3), (ex.two_level, 3)]
BAD_ROW = 4


def with_bad_row(column, x, n_column, rng):
    """Return a plausible table of 10 rows, and the same with a value in its first column that no family can have."""
    table = ex.make_table((column, ex.LABEL, ex.REAL)[:n_column], 10, rng)
    values = table.values.copy()
    values[0, BAD_ROW] = x
    return table, Table(table.schema, values, table.observed)


def check_impossible(shape, column, x, dictionary, n_column, mode, rng):
    """Assert that one row has density zero and no other, and that the allocation names it."""
    plausible, table = with_bad_row(column, x, n_column, rng)
    circuit = shape(plausible, dictionary=dictionary)
    params = ex.random_params(circuit, table.schema, rng)
    run = runs.prepare(circuit, table, mode)
    scores = runs.log_scores(run, params)
    allocated = runs.allocate(run, params, 1)
    assert scores[BAD_ROW] == -np.inf
    assert np.isfinite(np.delete(scores, BAD_ROW)).all()
    assert allocated.impossible == BAD_ROW
    assert allocated.log_likelihood == pytest.approx(np.delete(scores, BAD_ROW).sum(), rel=ROUNDING)


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize(
    ("column", "x", "family"), IMPOSSIBLE, ids=[f"{column.name}-{family}" for column, _, family in IMPOSSIBLE]
)
def test_value_that_no_leaf_can_have_makes_its_row_impossible(column, x, family, mode, rng):
    check_impossible(ex.mixture, column, x, ex.only(family), 3, mode, rng)


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize(("shape", "n_column"), SHAPES)
def test_impossible_row_is_found_in_every_shape_of_circuit(shape, n_column, mode, rng):
    check_impossible(shape, ex.COUNT, 0.5, ex.only("poisson"), n_column, mode, rng)


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize(("shape", "n_column"), SHAPES)
def test_impossible_row_is_found_below_dictionaries(shape, n_column, mode, rng):
    check_impossible(shape, ex.COUNT, 0.5, registry.dictionary, n_column, mode, rng)


def test_first_of_several_impossible_rows_is_named(rng):
    plausible, table = with_bad_row(ex.COUNT, 0.5, 3, rng)
    values = table.values.copy()
    values[0, BAD_ROW + 1 :] = 0.5
    circuit = ex.mixture(plausible)
    run = runs.prepare(circuit, Table(table.schema, values, table.observed))
    assert runs.allocate(run, ex.start(circuit), 1, n_block=2).impossible == BAD_ROW


def test_missing_cell_with_an_impossible_filler_is_possible(rng):
    plausible, table = with_bad_row(ex.COUNT, 0.5, 3, rng)
    observed = table.observed.copy()
    observed[0, BAD_ROW] = False
    circuit = ex.mixture(plausible)
    for mode in runs.MODES:
        run = runs.prepare(circuit, Table(table.schema, table.values, observed), mode)
        assert np.isfinite(runs.log_scores(run, ex.start(circuit))).all()


def test_member_of_a_dictionary_that_cannot_leaves_the_others(rng):
    column = replace(ex.POSITIVE, support=(-np.inf, np.inf))
    plausible, table = with_bad_row(column, -0.5, 1, rng)
    circuit = ex.mixture(plausible, dictionary=lambda _: registry.FAMILIES[:3])
    params = ex.random_params(circuit, table.schema, rng)
    found = runs.log_density(circuit, params, table)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, naive.log_values(circuit, params, table), rtol=ROUNDING)


def test_a_product_of_coded_and_other_columns_renormalises_where_it_is_flagged(rng):
    column = replace(ex.POSITIVE, resolution=1e-9)
    columns = tuple(replace(column, name=f"c{position}") for position in range(1300))
    values = rng.uniform(1.0, 3.0, (1300, 40))
    table = Table(Schema(columns), values, np.ones(values.shape, bool))
    circuit = ex.independent(table)
    plan = make_plan(circuit, table.schema)
    flagged = plan.slot_column[plan.slot_of_node[plan.child[plan.renormalise]]]
    assert flagged.size
    values[flagged] = np.where(values[flagged] > 2.0, 2.5, 1.5)
    params = ex.random_params(circuit, table.schema, rng)
    scores = []
    for share in (0.2, 0.0):
        cells = make_cells(plan, values, table.observed, max_distinct_share=share, max_table_bytes=2**30)
        assert (cells.code_row[flagged] >= 0).all() == (share > 0.0)
        out = np.empty(40)
        fill_log_density(plan, cells, *params, make_work(plan, cells, 64), out)
        scores.append(out)
    assert np.isfinite(scores[1]).all()
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-12)
