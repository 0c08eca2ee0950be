"""Log density and log mass: equal to recursion from the definition, draw by draw, for any frame of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.paths import Condition
from bayesjpt.errors import BayesjptWarning, EvidenceError, QueryError, SchemaError
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive

EXACT = 1e-9
SUM_TOLERANCE = 1e-10
LONG_ENOUGH = 400
"""Counts above it have no mass worth a mention under the example circuits's parameters."""


@pytest.fixture(params=[ex.independent, ex.mixture, ex.two_level], ids=lambda shape: shape.__name__)
def case(request, rng):
    """Return (table, posterior of unrelated draws)."""
    table = ex.make_table(ex.COLUMNS, 30, rng, missing=0.2)
    return table, ex.random_posterior(request.param(table), table, rng, n_draw=3)


def draw(post, chain: int, number: int) -> Params:
    return Params(post.params.log_weight[chain, number], post.params.theta[chain, number])


def assert_equal_draw_by_draw(answer, post, table, score) -> None:
    for chain in range(post.n_chain):
        for number in range(post.n_draw):
            expected = naive.log_values(post.circuit, draw(post, chain, number), table, score)
            assert np.abs(answer.to_numpy()[chain, number] - expected).max() < EXACT


def test_log_density_is_that_of_the_slow_twin_under_each_draw(case):
    table, post = case
    assert_equal_draw_by_draw(bj.Posterior.log_density(post, table), post, table, naive.family_log_density)


def test_log_mass_is_that_of_the_slow_twin_under_each_draw(case):
    table, post = case
    assert_equal_draw_by_draw(bj.Posterior.log_mass(post, table), post, table, naive.family_log_mass)


def test_log_mass_is_at_most_zero(case):
    table, post = case
    assert (bj.Posterior.log_mass(post, table) <= 0.0).all()


@pytest.fixture(params=["mixture", "tree"])
def favourites(request, rng):
    """Return (grid values, posterior) of one column that people round to halves, with a cell for every grid value.

    The cell of 10.5 reaches beyond the tree's threshold.
    """
    sizes = rng.normal(10.0, 1.0, 1_000)
    sizes = np.round(np.where(rng.random(1_000) < 0.6, np.round(2.0 * sizes) / 2.0, sizes), 1)
    table = bj.as_table(pd.DataFrame({"size": sizes}))
    assert table.schema.columns[0].cell_ends
    grid = np.arange(-2_000, 2_001)[None] / 10.0
    circuit = ex.hard(table, Condition(0, 10.45)) if request.param == "tree" else ex.mixture(table, 3)
    return Table(table.schema, grid, np.ones(grid.shape, bool)), ex.random_posterior(circuit, table, rng)


def test_masses_of_unequal_cells_sum_to_that_of_their_range(favourites):
    grid, post = favourites
    total = np.exp(bj.Posterior.log_mass(post, grid)).sum("obs_id")
    within = bj.Posterior.probability(post, bj.col("size").between(-200.05, 200.05))
    assert np.abs(total - within).max() < SUM_TOLERANCE


def test_mass_of_a_favourite_is_that_of_its_own_cell(favourites):
    grid, post = favourites
    at = np.isclose(grid.values[0], 10.5)
    centre, half = (float(part[0, at][0]) for part in recorded_cells(grid.schema, grid.values))
    assert half > 0.1
    inside = bj.Posterior.log_probability(post, bj.col("size").between(centre - half, centre + half))
    assert np.abs(bj.Posterior.log_mass(post, grid)[..., at] - inside).max() < EXACT


def test_answers_carry_chain_draw_and_row_coordinates(case):
    table, post = case
    for answer in (bj.Posterior.log_density(post, table), bj.Posterior.log_mass(post, table)):
        assert answer.dims == ("chain", "draw", "obs_id")
        assert answer.shape == (post.n_chain, post.n_draw, table.n_row)
        assert answer["obs_id"].to_numpy().tolist() == list(range(table.n_row))


def test_masses_of_all_labels_and_counts_add_up_to_one(rng):
    table = ex.make_table((ex.LABEL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_draw=3)
    label, count = np.meshgrid(np.arange(ex.LABEL.n_label), np.arange(LONG_ENOUGH), indexing="ij")
    cells = np.array([label.ravel(), count.ravel()], float)
    grid = Table(table.schema, cells, np.ones(cells.shape, bool))
    total = np.exp(bj.Posterior.log_mass(post, grid)).sum("obs_id")
    assert np.abs(total - 1.0).max() < SUM_TOLERANCE


def test_masses_of_all_cells_of_a_real_column_add_up_to_one(rng):
    table = ex.make_table((ex.REAL,), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_draw=3)
    cells = ex.REAL.resolution * np.arange(-2000.0, 2000.0)[None]
    total = np.exp(bj.Posterior.log_mass(post, Table(table.schema, cells, np.ones(cells.shape, bool)))).sum("obs_id")
    assert np.abs(total - 1.0).max() < SUM_TOLERANCE


def test_on_counts_and_labels_mass_is_density(rng):
    table = ex.make_table((ex.COUNT, ex.LEVELS, ex.LABEL), 20, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_draw=2)
    difference = bj.Posterior.log_mass(post, table) - bj.Posterior.log_density(post, table)
    assert np.abs(difference).max() < EXACT


FRAME = pd.DataFrame(
    {
        "colour": ["red", "white", "white", "red", None, "white"] * 10,
        "size": np.round(np.linspace(0.1, 6.0, 60), 1),
        "rings": np.arange(60) % 7,
    }
)


@pytest.fixture(scope="module")
def fitted():
    """Return the estimate of a frame's columns as a Posterior."""
    table = bj.as_table(FRAME)
    return bj.Posterior.from_circuit(ex.mixture(table), table.schema)


def test_frame_is_read_under_the_posteriors_schema(fitted):
    table = bj.as_table(FRAME, schema=fitted.schema)
    assert np.array_equal(fitted.log_density(FRAME), fitted.log_density(table))


def test_order_of_a_frames_columns_does_not_matter(fitted):
    assert np.array_equal(fitted.log_density(FRAME[["rings", "colour", "size"]]), fitted.log_density(FRAME))


@pytest.mark.parametrize("verb", ["log_density", "log_mass"])
def test_missing_column_is_marginalised(fitted, verb):
    blanked = FRAME.assign(size=np.nan)
    assert np.array_equal(getattr(fitted, verb)(FRAME[["colour", "rings"]]), getattr(fitted, verb)(blanked))


def test_frame_of_polars_gives_the_same_answer(fitted):
    assert np.array_equal(fitted.log_mass(pl.from_pandas(FRAME)), fitted.log_mass(FRAME))


def test_unseen_label_has_the_mass_of_other_and_one_warning_that_names_it(fitted):
    with pytest.warns(BayesjptWarning, match="'pink' in column 'colour'") as caught:
        answer = fitted.log_mass(pd.DataFrame({"colour": ["pink"]}))
    assert len(caught) == 1
    table = fitted.schema
    other = Table(table, np.array([[2.0], [0.0], [0.0]]), np.array([[True], [False], [False]]))
    assert np.array_equal(answer, fitted.log_mass(other))
    assert np.isfinite(answer).all()


def test_unknown_column_is_refused_with_the_closest_name(fitted):
    with pytest.raises(SchemaError, match=r"'colours'.*'colour'"):
        fitted.log_density(FRAME.rename(columns={"colour": "colours"}))


def test_value_outside_the_support_is_told_by_column_and_row(fitted):
    with pytest.warns(BayesjptWarning, match=r"-1 in column 'size' \(first in row 2\)"):
        found = fitted.log_mass(pd.DataFrame({"size": [1.0, -1.0]}))
    assert np.isfinite(found).all()


def test_table_of_other_columns_is_refused_naming_them(fitted):
    other = bj.as_table(FRAME[["size", "rings"]])
    with pytest.raises(SchemaError, match="size, rings"):
        fitted.log_density(other)


def test_table_read_under_another_schema_is_refused_with_the_remedy(fitted):
    other = bj.as_table(FRAME.head(20))
    assert isinstance(other.schema, Schema)
    with pytest.raises(SchemaError, match=r"schema=post\.schema"):
        fitted.log_density(other)


def test_row_without_observed_cell_has_density_and_mass_one(fitted):
    empty = pd.DataFrame({"size": [np.nan]})
    assert (fitted.log_density(empty) == 0.0).all()
    assert (fitted.log_mass(empty) == 0.0).all()


# --- given evidence


VERBS = [bj.Posterior.log_density, bj.Posterior.log_mass]


def halves(table: Table) -> tuple[Table, Table]:
    """Return the same rows twice: with the even columns missing, and with the odd ones."""
    even = (np.arange(table.n_column) % 2 == 0)[:, None]
    return Table(table.schema, table.values, table.observed & ~even), Table(
        table.schema, table.values, table.observed & even
    )


@pytest.mark.parametrize("verb", VERBS)
def test_scores_given_rows_are_the_joint_less_that_of_the_evidence(case, verb):
    table, post = case
    asked, given = halves(table)
    np.testing.assert_allclose(
        verb(post, asked, given), verb(post, table) - verb(post, given), rtol=0.0, atol=SUM_TOLERANCE
    )


def test_scores_given_one_row_are_those_under_the_constrained_posterior(case):
    table, post = case
    asked, given = halves(table)
    row = {
        column.name: column.labels[int(given.values[k, 0])] if column.labels else float(given.values[k, 0])
        for k, column in enumerate(table.schema)
        if given.observed[k, 0]
    }
    expected = post.constrain(row).log_density(asked)
    np.testing.assert_allclose(post.log_density(asked, row), expected, rtol=0.0, atol=SUM_TOLERANCE)


@pytest.mark.parametrize("verb", VERBS)
def test_scores_given_an_event_are_those_under_the_conditional_posterior(case, verb):
    table, post = case
    event = f"{table.schema.columns[0].name} > {table.schema.columns[0].location:g}"
    np.testing.assert_array_equal(verb(post, table, event), verb(post.condition(event), table))


def test_a_cell_both_given_and_asked_for_is_named(case):
    table, post = case
    with pytest.raises(QueryError, match=r"is both given and asked for in row \d"):
        post.log_density(table, Table(table.schema, table.values, np.ones_like(table.observed)))


def test_evidence_of_another_number_of_rows_is_refused(case):
    table, post = case
    asked, given = halves(table)
    few = Table(table.schema, given.values[:, :7], given.observed[:, :7])
    with pytest.raises(QueryError, match=f"evidence of 7 rows for {table.n_row}"):
        post.log_density(asked, few)


def test_impossible_evidence_of_scores_is_refused(case):
    table, post = case
    with pytest.raises(EvidenceError, match="probability zero"):
        post.log_density(table, f"{table.schema.columns[0].name} > 1e300 and {table.schema.columns[0].name} < -1e300")
