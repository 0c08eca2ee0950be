"""Outlier scores: cells given the rest of their row, against masses of rows with and without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
import bayesjpt.queries.verbs  # the verbs become methods
from bayesjpt.errors import QueryError, SchemaError
from bayesjpt.queries import outliers as module
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import zoo

EXACT = 1e-9


@pytest.fixture(scope="module", params=[zoo.independent, zoo.mixture, zoo.two_level], ids=lambda shape: shape.__name__)
def case(request):
    """Return a table with missing cells and unrelated draws of a circuit over it."""
    rng = np.random.default_rng(8)
    table = zoo.make_table(zoo.COLUMNS, 25, rng, missing=0.3)
    return table, zoo.random_posterior(request.param(table), table, rng, n_draw=3)


def mean_mass(post, table) -> np.ndarray:
    """Return the log of the mean over draws of each row's mass."""
    return np.log(np.exp(post.log_mass(table).to_numpy()).mean(axis=(0, 1)))


def without(table, column: int) -> Table:
    observed = table.observed.copy()
    observed[column] = False
    return Table(table.schema, table.values, observed)


def test_rows_are_scored_by_their_mass_averaged_over_draws(case):
    table, post = case
    assert np.abs(post.outliers(table)["log_mass"].to_numpy() - mean_mass(post, table)).max() < EXACT


def test_cells_are_scored_by_the_row_with_them_over_the_row_without(case):
    table, post = case
    found = post.outliers(table)["cell_log_mass"].to_numpy()
    for column in range(table.n_column):
        expected = mean_mass(post, table) - mean_mass(post, without(table, column))
        seen = table.observed[column]
        assert np.abs(found[seen, column] - expected[seen]).max() < EXACT
        assert np.isnan(found[~seen, column]).all()


def test_quantiles_are_shares_of_reference_rows_over_the_same_columns(case):
    table, post = case
    found = post.outliers(table, reference=table)
    for row in range(table.n_row):
        pattern = table.observed[:, row]
        alike = table.take(np.flatnonzero(table.observed[pattern].all(axis=0)))
        same = Table(alike.schema, alike.values, np.repeat(pattern[:, None], alike.n_row, axis=1))
        own = mean_mass(post, table.take([row]))
        assert found["n_reference"][row] == alike.n_row
        assert found["quantile"][row] == pytest.approx((mean_mass(post, same) <= own + EXACT).mean())


def test_rows_with_holes_and_reference_rows_are_scored_by_cells_of_one_width(rng):
    sizes = rng.normal(10.0, 1.0, 600)
    sizes = np.round(np.where(rng.random(600) < 0.6, np.round(2.0 * sizes) / 2.0, sizes), 1)
    table = bj.as_table(pd.DataFrame({"size": sizes, "age": np.round(rng.normal(size=600), 1)}))
    assert table.schema.columns[0].cell_ends
    post = zoo.random_posterior(zoo.mixture(table, 3), table, rng)
    even = Schema(tuple(replace(column, cell_ends=(), cell_shifts=()) for column in table.schema))
    plain = replace(post, schema=even, reference=None)
    found, expected = (
        own.outliers(without(rows, 1), reference=rows)["quantile"].to_numpy()
        for own, rows in ((post, table), (plain, Table(even, table.values, table.observed)))
    )
    assert found == pytest.approx(expected, abs=EXACT)


def test_patterns_of_missing_cells_are_scored_together(case, monkeypatch):
    table, post = case
    calls, score = [], module.even_log_mass
    monkeypatch.setattr(module, "even_log_mass", lambda post, rows: calls.append(rows.n_row) or score(post, rows))
    post.outliers(table, reference=table)
    assert len(np.unique(table.observed, axis=1).T) > len(calls) == 1


def test_scores_that_differ_by_rounding_alone_are_equal():
    known = np.array([-3.0, -60.22123128401531, -61.0])
    beside = known[1] * (1.0 + np.array([-2e-16, 0.0, 2e-16]))
    assert module._share_below(known, beside).tolist() == pytest.approx([2 / 3] * 3)


def test_excess_is_measured_from_the_mean_of_the_column_in_reference_rows(case):
    table, post = case
    found = post.outliers(table, reference=table)
    excess = found["cell_excess"].to_numpy()
    for column in range(table.n_column):
        assert abs(excess[table.observed[column], column].mean()) < EXACT


def test_the_planted_cell_is_responsible(rng):
    table = zoo.make_table(zoo.COLUMNS, 50, rng)
    post = zoo.random_posterior(zoo.independent(table), table, rng)
    values = table.values.copy()
    values[0, 3], values[2, 7] = 40.0, 60.0
    found = post.outliers(Table(table.schema, values, table.observed), reference=table)
    assert found["responsible"].to_numpy()[[3, 7]].tolist() == ["real", "count"]
    assert (found["quantile"].to_numpy()[[3, 7]] == 0.0).all()


def test_a_contradiction_between_columns_is_seen_in_both(rng):
    """Two labels that agree in the fitted rows: a row in which they differ is as usual cell by cell."""
    table = zoo.make_table((replace(zoo.LABEL, name="one"), replace(zoo.LABEL, name="other")), 20, rng)
    circuit = zoo.mixture(table, 2)
    post = zoo.random_posterior(circuit, table, rng, n_chain=1, n_draw=1)
    for leaf, common in enumerate((0, 0, 1, 1)):
        post.params.theta[0, 0, 4 * leaf : 4 * leaf + 4] = 0.001
        post.params.theta[0, 0, 4 * leaf + common] = 0.997
    cells = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    rows = Table(table.schema, cells, np.ones((2, 3), bool))
    found = post.outliers(rows, reference=rows.take([0, 1]))["cell_log_mass"].to_numpy()
    assert (found[:2] > -0.1).all()
    assert (found[2] < -3.0).all()


def test_two_impossible_cells_leave_no_nan_where_the_rest_is_possible(rng):
    table = zoo.make_table((zoo.REAL, zoo.POSITIVE, zoo.LABEL), 10, rng)
    post = zoo.random_posterior(zoo.independent(table), table, rng).condition("real < 3")
    values = table.values[:, :2].copy()
    values[0] = [50.0, 1.0]
    rows = Table(table.schema, values, np.ones((3, 2), bool))
    found = post.outliers(rows, reference=table)
    assert found["log_mass"][0] == -np.inf
    assert found["cell_log_mass"][0, 0] == -np.inf
    assert np.isnan(found["cell_log_mass"][0, 1:]).all()
    assert found["responsible"][0] == "real"


def test_leaving_a_row_out_weighs_draws_by_the_inverse_of_its_density(rng):
    table = zoo.make_table(zoo.COLUMNS, 12, rng)
    post = zoo.random_posterior(zoo.independent(table), table, rng, n_chain=2, n_draw=200)
    found = post.outliers(table, training=True)
    assert set(found.data_vars) > {"pareto_k"}
    raw = -post.log_density(table).to_numpy().reshape(400, -1)
    weight = np.exp(raw - raw.max(axis=0))
    expected = np.log(
        (np.exp(post.log_mass(table).to_numpy().reshape(400, -1)) * weight).sum(axis=0) / weight.sum(axis=0)
    )
    good = found["pareto_k"].to_numpy() < 0.3
    plain = post.outliers(table)["log_mass"].to_numpy()
    assert (found["log_mass"].to_numpy() <= plain + EXACT).all()
    assert np.abs(found["log_mass"].to_numpy() - expected)[good].max(initial=0.0) < 0.05


def test_rows_that_were_fitted_need_draws(case):
    table, post = case
    with pytest.raises(QueryError, match="6 draws"):
        post.outliers(table, training=True)


def test_reference_rows_are_needed(case):
    table, post = case
    with pytest.raises(QueryError, match="reference"):
        replace(post, reference=None).outliers(table)


def test_rows_of_another_schema_are_refused(case, rng):
    with pytest.raises(SchemaError, match="another schema"):
        case[1].outliers(zoo.make_table((zoo.COUNT,), 3, rng))
