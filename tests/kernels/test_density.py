"""Log density and log mass of rows: laws, and the slow twin in the log domain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.circuit.plan import make_plan
from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.density import fill_log_density, rows_log_density
from bayesjpt.kernels.work import make_work
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, strategies
from tests.kernels import runs

EXACT = 1e-12  # relative, of log values; absolute near 0
CANCELLED = 1e-9  # SciPy's mass of a narrow cell is a difference of two cdfs


def assert_close(found, expected, tolerance=EXACT):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def snapped(table):
    """Return the table with its reals moved to the centres of their cells."""
    values = table.values.copy()
    for column, facts in enumerate(table.schema):
        if facts.base == "real":
            values[column] = np.round(values[column] / facts.resolution) * facts.resolution
    return Table(table.schema, values, table.observed)


# --- the slow twin


@strategies.law(60)
@given(strategies.cases(), st.sampled_from(list(runs.MODES)))
def test_log_density_agrees_with_recursion_in_the_log_domain(case, mode):
    assert_close(
        runs.log_density(case.circuit, case.params, case.table, mode),
        naive.log_values(case.circuit, case.params, case.table),
    )


@strategies.law(30)
@given(strategies.cases())
def test_log_mass_agrees_with_recursion_in_the_log_domain(case):
    table = snapped(case.table)
    assert_close(
        runs.log_mass(case.circuit, case.params, table),
        naive.log_values(case.circuit, case.params, table, naive.family_log_mass),
        CANCELLED,
    )


@strategies.law(60)
@given(strategies.truncated_cases(), st.sampled_from(list(runs.MODES)))
def test_log_density_under_truncated_leaves_agrees_with_recursion(case, mode):
    assert_close(
        runs.log_density(case.circuit, case.params, case.table, mode),
        naive.log_values(case.circuit, case.params, case.table),
        CANCELLED,
    )


@strategies.law(30)
@given(strategies.truncated_cases())
def test_log_mass_under_truncated_leaves_agrees_with_recursion(case):
    table = snapped(case.table)
    assert_close(
        runs.log_mass(case.circuit, case.params, table),
        naive.log_values(case.circuit, case.params, table, naive.family_log_mass),
        CANCELLED,
    )


@pytest.mark.parametrize("mode", runs.MODES)
def test_log_density_of_a_circuit_that_is_no_tree_agrees_with_recursion(mode, rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 50, rng, missing=0.2)
    circuit = ex.shared_leaf(table)
    params = ex.random_params(circuit, table.schema, rng)
    assert_close(runs.log_density(circuit, params, table, mode), naive.log_values(circuit, params, table))


# --- laws


@strategies.law(30)
@given(strategies.cases())
def test_row_without_observed_cell_has_log_density_exactly_zero(case):
    nothing = Table(case.table.schema, case.table.values, np.zeros_like(case.table.observed))
    for mode in runs.MODES:
        assert (runs.log_density(case.circuit, case.params, nothing, mode) == 0.0).all()


@strategies.law(30)
@given(strategies.cases())
def test_log_mass_is_at_most_zero(case):
    assert runs.log_mass(case.circuit, case.params, snapped(case.table)).max() <= EXACT


@strategies.law(30)
@given(strategies.cases())
def test_rows_do_not_influence_each_other(case):
    together = runs.log_density(case.circuit, case.params, case.table)
    alone = [runs.log_density(case.circuit, case.params, case.table.rows(row))[0] for row in range(case.table.n_row)]
    assert together.tolist() == alone


@strategies.law(30)
@given(strategies.cases())
def test_filler_of_a_missing_cell_has_no_influence(case):
    other = Table(case.table.schema, np.where(case.table.observed, case.table.values, 7.0), case.table.observed)
    for mode in runs.MODES:
        found = runs.log_density(case.circuit, case.params, other, mode)
        assert found.tolist() == runs.log_density(case.circuit, case.params, case.table, mode).tolist()


def test_densities_of_all_labels_add_up_to_one(rng):
    table = ex.make_table((ex.LABEL, ex.LEVELS), 50, rng)
    circuit = ex.mixture(table, 3, dictionary=ex.only("categorical"))
    grid = np.array([(a, b) for a in range(4) for b in ex.LEVELS.levels]).T
    every = Table(table.schema, grid, np.ones_like(grid, bool))
    log_density = runs.log_density(circuit, ex.random_params(circuit, table.schema, rng), every)
    assert np.exp(log_density).sum() == pytest.approx(1.0, rel=EXACT)


def test_hiding_a_column_sums_it_out(rng):
    table = ex.make_table((ex.REAL, ex.LABEL, ex.POSITIVE), 6, rng)
    circuit = ex.two_level(table)
    params = ex.random_params(circuit, table.schema, rng)
    hidden = Table(table.schema, table.values, table.observed & (np.arange(3) != 1)[:, None])
    total = np.zeros(table.n_row)
    for code in range(4):
        values = table.values.copy()
        values[1] = code
        total += np.exp(runs.log_density(circuit, params, Table(table.schema, values, table.observed)))
    assert_close(np.log(total), runs.log_density(circuit, params, hidden))


def test_mixture_of_identical_components_is_the_component(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 20, rng, missing=0.2)
    alone, twice = ex.independent(table), ex.mixture(table, 2)
    assert_close(
        runs.log_density(twice, ex.start(twice), table),
        runs.log_density(alone, ex.start(alone), table),
    )


# --- doors


@pytest.fixture
def case(rng) -> strategies.Case:
    """Return a table of every base with missing cells under a circuit of two levels."""
    table = ex.make_table(ex.COLUMNS, 100, rng, missing=0.2)
    circuit = ex.two_level(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


def test_rows_log_density_takes_rows_first_and_answers_in_users_units(case):
    plan = make_plan(case.circuit, case.table.schema)
    values = np.ascontiguousarray(case.table.values.T)
    found = rows_log_density(values, np.ascontiguousarray(~case.table.observed.T), *case.params, plan)
    assert found.tolist() == runs.log_density(case.circuit, case.params, case.table).tolist()


def test_rows_log_density_ignores_nan_in_missing_cells(case):
    plan = make_plan(case.circuit, case.table.schema)
    missing = np.ascontiguousarray(~case.table.observed.T)
    values = np.where(missing, np.nan, case.table.values.T)
    found = rows_log_density(values, missing, *case.params, plan)
    assert found.tolist() == runs.log_density(case.circuit, case.params, case.table).tolist()


def test_row_cells_equal_cells_made_without_coding(case):
    run = runs.prepare(case.circuit, case.table, "by row")
    cells = row_cells(run.plan, np.array(case.table.values), np.array(~case.table.observed))
    for name, made in cells._asdict().items():
        np.testing.assert_array_equal(made, getattr(run.cells, name), err_msg=name)


def test_work_of_a_larger_block_serves_a_smaller_table(case):
    run = runs.prepare(case.circuit, case.table, "by row")
    few = runs.prepare(case.circuit, case.table.rows(slice(0, 3)), "by row")
    out = np.empty(3)
    fill_log_density(few.plan, few.cells, *case.params, make_work(run.plan, run.cells, 256), out)
    assert out.tolist() == runs.log_scores(run, case.params)[:3].tolist()


def test_table_without_rows_has_no_scores(case):
    for mode in runs.MODES:
        assert runs.log_density(case.circuit, case.params, case.table.rows(slice(0, 0)), mode).size == 0


# --- cells by recorded value


def test_mass_of_all_cells_of_a_real_column_is_one(rng):
    table = ex.make_table((ex.REAL,), 30, rng)
    circuit = ex.mixture(table, 2)
    grid = np.arange(-4000, 4001)[None] * 0.1
    every = Table(table.schema, grid, np.ones_like(grid, bool))
    log_mass = runs.log_mass(circuit, ex.random_params(circuit, table.schema, rng), every)
    assert np.exp(log_mass).sum() == pytest.approx(1.0, rel=CANCELLED)
