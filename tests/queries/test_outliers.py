"""Outlier scores: cells given the rest of their row, against masses of rows with and without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesjpt as bj
import bayesjpt.queries.methods  # queries become methods
from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import QueryError, SchemaError
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries import averages as module
from bayesjpt.queries import outliers as scoring
from bayesjpt.queries.tails import near_cells, together
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive_events

EXACT = 1e-9


@pytest.fixture(scope="module", params=[ex.independent, ex.mixture, ex.two_level], ids=lambda shape: shape.__name__)
def case(request):
    """Return a table with missing cells and unrelated draws of a circuit over it."""
    rng = np.random.default_rng(8)
    table = ex.make_table(ex.COLUMNS, 25, rng, missing=0.3)
    return table, ex.random_posterior(request.param(table), table, rng, n_draw=3)


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


def test_scores_average_over_so_many_draws_as_are_asked_for(case):
    table, post = case
    two = post.take_draws([0, 2])  # of three, the middles of their halves
    for max_draws, expected in ((2 * post.n_chain, two), (3 * post.n_chain, post), (None, post)):
        found = post.outliers(table, max_draws=max_draws)["log_mass"].to_numpy()
        assert np.abs(found - mean_mass(expected, table)).max() < EXACT
    with pytest.raises(QueryError, match="max_draws=0"):
        post.outliers(table, max_draws=0)


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
    found = post.outliers(table, score="log_mass", reference=table)
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
    post = ex.random_posterior(ex.mixture(table, 3), table, rng)
    even = Schema(tuple(replace(column, cell_ends=(), cell_shifts=()) for column in table.schema))
    plain = replace(post, schema=even, reference=None)
    found, expected = (
        own.outliers(without(rows, 1), score="log_mass", reference=rows)["quantile"].to_numpy()
        for own, rows in ((post, table), (plain, Table(even, table.values, table.observed)))
    )
    assert found == pytest.approx(expected, abs=EXACT)


def test_patterns_of_missing_cells_are_scored_together(case, monkeypatch):
    table, post = case
    calls, score = [], module.even_log_mass
    monkeypatch.setattr(module, "even_log_mass", lambda post, rows: calls.append(rows.n_row) or score(post, rows))
    post.outliers(table, score="log_mass", reference=table)
    assert len(np.unique(table.observed, axis=1).T) > len(calls) == 1


def test_scores_that_differ_by_rounding_alone_are_equal():
    known = np.array([-3.0, -60.22123128401531, -61.0])
    beside = known[1] * (1.0 + np.array([-2e-16, 0.0, 2e-16]))
    assert scoring._share_below(known, beside).tolist() == pytest.approx([2 / 3] * 3)


def test_excess_is_measured_from_the_mean_of_the_column_in_reference_rows(case):
    table, post = case
    found = post.outliers(table, reference=table)
    excess = found["cell_excess"].to_numpy()
    for column in range(table.n_column):
        assert abs(excess[table.observed[column], column].mean()) < EXACT


@pytest.mark.parametrize("score", ["tail", "log_mass"])
def test_the_planted_cell_is_responsible(rng, score):
    table = ex.make_table(ex.COLUMNS, 50, rng)
    post = ex.random_posterior(ex.independent(table), table, rng)
    values = table.values.copy()
    values[0, 3], values[2, 7] = 40.0, 60.0
    found = post.outliers(Table(table.schema, values, table.observed), score=score, reference=table)
    assert set(np.argsort(found["score"].to_numpy())[-2:]) == {3, 7}
    assert found["responsible"].to_numpy()[[3, 7]].tolist() == ["real", "count"]
    assert (found["quantile"].to_numpy()[[3, 7]] == 0.0).all()


def test_a_contradiction_between_columns_is_seen_in_both(rng):
    """Two labels that agree in the fitted rows: a row in which they differ is as usual cell by cell."""
    table = ex.make_table((replace(ex.LABEL, name="one"), replace(ex.LABEL, name="other")), 20, rng)
    circuit = ex.mixture(table, 2)
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=1)
    for leaf, common in enumerate((0, 0, 1, 1)):
        post.params.theta[0, 0, 4 * leaf : 4 * leaf + 4] = 0.001
        post.params.theta[0, 0, 4 * leaf + common] = 0.997
    cells = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    rows = Table(table.schema, cells, np.ones((2, 3), bool))
    found = post.outliers(rows, reference=rows.take([0, 1]))
    assert (found["cell_log_mass"].to_numpy()[:2] > -0.1).all()
    assert (found["cell_log_mass"].to_numpy()[2] < -3.0).all()
    assert (found["cell_score"].to_numpy()[2] > 3.0).all()
    assert (found["score"].to_numpy()[:2] < 0.6 * float(found["score"][2])).all()


def test_two_impossible_cells_leave_no_nan_where_the_rest_is_possible(rng):
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.LABEL), 10, rng)
    post = ex.random_posterior(ex.independent(table), table, rng).condition("real < 3")
    values = table.values[:, :2].copy()
    values[0] = [50.0, 1.0]
    rows = Table(table.schema, values, np.ones((3, 2), bool))
    by_tails, found = (post.outliers(rows, score=score, reference=table) for score in ("tail", "log_mass"))
    assert by_tails["score"][0] == by_tails["cell_score"][0, 0] == np.inf
    assert by_tails["responsible"][0] == "real"
    assert np.isfinite(by_tails["score"][1])
    assert not by_tails["cell_score"].isnull().any()
    assert found["log_mass"][0] == -np.inf
    assert found["cell_log_mass"][0, 0] == -np.inf
    assert np.isnan(found["cell_log_mass"][0, 1:]).all()
    assert found["responsible"][0] == "real"


def test_leaving_a_row_out_weighs_draws_by_the_inverse_of_its_density(rng):
    table = ex.make_table(ex.COLUMNS, 12, rng)
    post = ex.random_posterior(ex.independent(table), table, rng, n_chain=2, n_draw=200)
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


@pytest.mark.parametrize("n_same", [20, 150])
def test_the_largest_weights_may_all_be_the_same(n_same, rng):
    """A Pareto distribution cannot be fitted to them: they are kept."""
    table = ex.make_table(ex.COLUMNS, 12, rng)
    few = ex.random_posterior(ex.independent(table), table, rng, n_chain=2, n_draw=2)
    post = few.take_draws(np.repeat([0, 1], n_same))
    found = post.outliers(table, training=True)
    mass = np.exp(few.log_mass(table).to_numpy())
    n_draw = 4 * n_same
    weight = np.exp(-np.sqrt(n_draw / (n_draw - 1)) * few.log_density(table).to_numpy())
    expected = np.log((mass * weight).sum(axis=(0, 1)) / weight.sum(axis=(0, 1)))
    assert (found["pareto_k"] == -np.inf).all()
    np.testing.assert_allclose(found["log_mass"].to_numpy(), expected, rtol=1e-9)


def test_leaving_a_row_out_of_an_ensemble_keeps_the_share_of_each_structure(rng):
    table = ex.make_table(ex.COLUMNS, 12, rng)
    shapes = (ex.independent(table), ex.mixture(table), ex.two_level(table))
    parts = tuple(ex.random_posterior(shape, table, rng, n_chain=1, n_draw=25) for shape in shapes)
    found = StackedPosterior(parts, [1 / 3] * 3).outliers(table, training=True)
    mass = 0.0
    for part in parts:
        weight = np.exp(-part.log_density(table).to_numpy()[0])
        mass += (np.exp(part.log_mass(table).to_numpy()[0]) * weight).sum(axis=0) / weight.sum(axis=0) / len(parts)
    known = found["pareto_k"].to_numpy()
    assert np.isfinite(known).all()  # 25 draws of one structure have no tail
    good = known < 0.3
    assert good.any()
    assert np.abs(found["log_mass"].to_numpy() - np.log(mass))[good].max() < 0.05


def test_two_draws_of_each_structure_leave_a_row_out(rng):
    n_row, n_structure = 20, 2000
    x = np.append(rng.normal(size=n_row - 1), 4.0)
    table = bj.as_table(pd.DataFrame({"x": x}), kinds={"x": "real"})
    column = table.schema.columns[0]
    circuit, z = ex.independent(table, ex.only("normal")), (x - column.location) / column.scale
    means = rng.normal(z.mean(), np.sqrt(1.0 / n_row), (n_structure, 2))  # the variance is known to be 1
    weight = np.broadcast_to(circuit.start_log_weight, (1, 2, circuit.n_edge)).copy()
    thetas = [np.stack([np.ones(2), pair], axis=1)[None] for pair in means]
    parts = [bj.Posterior(circuit, table.schema, Params(weight, theta)) for theta in thetas]
    found = StackedPosterior(parts, [1.0 / n_structure] * n_structure).outliers(table, training=True, reference=table)
    rest = (z.sum() - z) / (n_row - 1)
    fitted = stats.norm.logpdf(z, z.mean(), np.sqrt(1.0 + 1.0 / n_row))
    expected = stats.norm.logpdf(z, rest, np.sqrt(1.0 + 1.0 / (n_row - 1))) - fitted
    correction = found["log_mass"] - np.log(column.resolution / column.scale) - fitted
    influential = np.abs(expected) > 0.1
    assert influential.any()
    np.testing.assert_allclose(correction[influential], expected[influential], rtol=0.3)


@pytest.mark.parametrize("score", ["tail", "log_mass"])
def test_rows_that_were_fitted_are_compared_with_reference_rows_left_out_too(rng, score):
    table = ex.make_table(ex.COLUMNS, 25, rng, missing=0.2)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=2, n_draw=40)
    found = replace(post, reference=table).outliers(table, training=True, score=score)
    known = found["n_reference"] > 0
    # each row is one of those that it is compared with, and the last of them is as odd as none other
    assert (found["quantile"] * found["n_reference"] >= 1.0 - EXACT)[known].all()
    if score == "tail":
        assert found["quantile"].min() == 1.0 / table.n_row


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
        case[1].outliers(ex.make_table((ex.COUNT,), 3, rng))


# --- by tails


def around(post, table):
    found = module.averages(post, table, by_tails=True)[1]
    assert found is not None
    return found


def log_mass_of_boxes(post, table, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Return the log of the mean over draws of the probability of each row's intervals, by recursion."""
    flat, out = post.flat(), np.zeros((post.n_chain * post.n_draw, table.n_row))
    for draw, point in enumerate(zip(flat.log_weight, flat.theta, strict=True)):
        for row in range(table.n_row):
            ends = np.stack([lo[:, row], hi[:, row]], axis=1)
            box = {int(column): ends[[column]] for column in np.flatnonzero(table.observed[:, row])}
            out[draw, row] = naive_events.probability(post.circuit, post.schema, type(flat)(*point), [box])
    return np.log(out.mean(axis=0))


def test_neighbourhoods_of_rows_have_the_probability_of_boxes(case):
    table, post = case
    table = table.take(range(8))
    n_draw = post.n_chain * post.n_draw
    near = near_cells(post, table, np.full((n_draw, 1), -np.log(n_draw)))
    place, wide = (log_mass_of_boxes(post, table, near.centre - half, near.centre + half) for half in near.half)
    assert around(post, table).row == pytest.approx(wide, rel=1e-6, abs=1e-9)
    assert around(post, table).place_row == pytest.approx(place, rel=1e-6, abs=1e-9)
    for column in range(table.n_column):
        rest = Table(table.schema, table.values, table.observed & (np.arange(table.n_column)[:, None] != column))
        expected = log_mass_of_boxes(post, rest, near.centre - near.half[0], near.centre + near.half[0])
        seen = table.observed[column]
        assert around(post, table).place_rest[column, seen] == pytest.approx(expected[seen], rel=1e-6, abs=1e-9)


def test_cells_are_scored_by_their_tail_and_by_what_the_rest_of_the_row_says_against_them(case):
    table, post = case
    found, own = post.outliers(table, reference=table), around(post, table)
    seen = table.observed.T
    against = np.maximum(own.place_alone + own.place_rest - own.place_row, 0.0)
    expected = (against - own.tail).T
    assert np.abs(found["cell_score"].to_numpy() - expected)[seen].max() < EXACT
    assert np.isnan(found["cell_score"].to_numpy()[~seen]).all()
    assert np.abs(found["cell_tail"].to_numpy() - np.exp(own.tail.T))[seen].max() < EXACT
    names = np.array(table.names)[np.where(seen, expected, -np.inf).argmax(axis=1)]
    assert (found["responsible"].to_numpy() == np.where(seen.any(axis=1), names, "")).all()


def test_rows_are_scored_by_their_neighbourhood_by_its_sides_or_by_the_oddest_cell(case):
    """Surprises are compared with those of the reference rows, and of one row of independent columns of 1 nat each."""
    table, post = case
    found, own = post.outliers(table, reference=table), around(post, table)
    expected = np.array([np.append(-x[seen], 1.0).mean() for x, seen in zip(own.alone, table.observed, strict=True)])
    score = np.nanmax(found["cell_score"].to_numpy(), axis=1) - np.log(table.observed.sum(axis=0))
    size = expected @ table.observed
    for surprise in (-own.row, -own.alone.sum(axis=0)):
        share = (surprise.sum() + 1.0) / (size.sum() + 1.0)
        variance = size * np.append((surprise - share * size) ** 2 / size, 1.0).mean()
        mean = share * size
        score = np.maximum(score, -stats.gamma.logsf(surprise, mean**2 / variance, scale=variance / mean))
    assert found["score"].to_numpy() == pytest.approx(np.maximum(score, 0.0), rel=1e-6)


def test_a_tight_group_of_few_rows_is_odd_though_its_rows_are_probable(rng):
    """One row in fifty lies in a part of its own, a fiftieth as wide: by mass it is among the most usual."""
    columns = tuple(replace(ex.named(ex.REAL, name), families=("normal",)) for name in "abc")
    table = ex.make_table(columns, 20, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=1)
    post.params.log_weight[0, 0, post.circuit.child_ptr[-2] :] = np.log([0.98, 0.02])
    for leaf, at in enumerate(post.circuit.theta_at):
        post.params.theta[0, 0, at : at + 2] = (1.0, 0.0) if leaf < 3 else (0.02**2, 2.5)  # variance and mean
    reference = post.sample(500, rng=rng)
    group = Table(table.schema, np.full((3, 1), 6.0), np.ones((3, 1), bool))  # 2.5 scales from the location
    by_tails, by_mass = (post.outliers(group, reference=reference, score=score) for score in ("tail", "log_mass"))
    assert float(by_tails["quantile"][0]) < 0.06
    assert float(by_mass["quantile"][0]) > 0.9


def test_quantiles_by_tails_are_among_all_reference_rows(case):
    table, post = case
    found = post.outliers(table, reference=table)
    score = found["score"].to_numpy()
    assert found["quantile"].to_numpy().tolist() == [(score >= own - EXACT).mean() for own in score]
    assert (found["n_reference"].to_numpy() == table.n_row).all()


def test_scores_of_rows_that_the_model_expects_are_minus_logarithms_of_probabilities(rng):
    table = ex.make_table((ex.REAL, ex.POSITIVE, *(ex.named(ex.REAL, name) for name in "abc")), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=1)
    drawn = post.sample(3000, rng=rng, labels="all")
    holes = Table(drawn.schema, drawn.values, rng.random(drawn.values.shape) < 0.7)
    for rows in (drawn, holes):
        score = post.outliers(rows, reference=post.sample(1000, rng=rng, labels="all"))["score"].to_numpy()
        for share in (0.5, 0.1, 0.02):
            assert 0.6 * share < (score >= -np.log(share)).mean() < 2.2 * share  # the odder of two: at most twice


def test_columns_that_go_together_are_not_counted_twice(rng):
    """The same surprises in four columns, once dependent and once not: together they say less."""
    table = ex.make_table(tuple(ex.named(ex.REAL, name) for name in "abcd"), 200, rng)
    alone = rng.exponential(size=(4, 200))
    copies = np.repeat(alone[:1], 4, axis=0)
    alone[:, 0] = copies[:, 0] = 4.0
    usual, none = slice(1, None), np.zeros(200)
    apart, same = (together(table, none, own, np.zeros(own.shape), usual)[0] for own in (alone, copies))
    assert apart > 6.5
    assert same == pytest.approx(4.0, abs=0.6)


def test_rows_with_few_cells_are_compared_with_as_much_of_the_usual_ones(rng):
    """Surprises of one nat a cell: rows that observe two of twelve columns are as odd as those that observe all."""
    table = ex.make_table(tuple(ex.named(ex.REAL, name) for name in "abcdefghijkl"), 1000, rng)
    observed = np.ones((12, 1000), bool)
    observed[2:, :300] = False
    table = Table(table.schema, table.values, observed)
    alone = np.where(observed, rng.exponential(size=observed.shape), 0.0)
    score = together(table, 0.5 * alone.sum(axis=0), alone, np.zeros(alone.shape), slice(0, None))
    for rows in (slice(0, 300), slice(300, 1000)):
        assert 0.05 < (score[rows] > np.log(10.0)).mean() < 0.18


def test_a_new_value_in_a_constant_column_has_a_finite_score(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 50, rng)
    alone = np.zeros((2, 50))
    alone[1, 0] = 7.0
    found = together(table, alone.sum(axis=0), alone, alone, slice(1, None))
    assert 6.0 < found[0] < 300.0
    assert found[1:].max() < 1e-9


def test_a_row_without_cells_is_not_odd(case):
    table, post = case
    empty = Table(table.schema, table.values[:, :2], np.zeros((table.n_column, 2), bool))
    found = post.outliers(empty, reference=table)
    assert found["score"].to_numpy().tolist() == [0.0, 0.0]
    assert found["quantile"].to_numpy().tolist() == [1.0, 1.0]
    assert found["responsible"].to_numpy().tolist() == ["", ""]


def test_rows_that_were_fitted_have_the_tails_of_the_draws_without_them(rng):
    table = ex.make_table(ex.COLUMNS, 12, rng)
    post = ex.random_posterior(ex.independent(table), table, rng, n_chain=2, n_draw=200)
    found = post.outliers(table, training=True)
    raw = -post.log_density(table).to_numpy().reshape(400, -1)
    weight = np.exp(raw - raw.max(axis=0))
    expected = near_cells(post, table, np.log(weight / weight.sum(axis=0))).tail.T
    good = found["pareto_k"].to_numpy() < 0.3
    assert good.any()
    assert np.abs(np.log(found["cell_tail"].to_numpy()) - expected)[good].max() < 0.05


def test_equal_rows_have_equal_scores_and_quantiles(rng):
    table = ex.make_table(ex.COLUMNS, 30, rng)
    post = ex.random_posterior(ex.two_level(table), table, rng)
    twice = table.take([*range(30), *range(30)])
    found = post.outliers(twice, reference=table)
    for name in ("score", "quantile", "cell_tail"):
        assert np.array_equal(found[name].to_numpy()[:30], found[name].to_numpy()[30:])


def test_a_score_that_does_not_exist_is_refused(case):
    table, post = case
    with pytest.raises(QueryError, match="'tail' or 'log_mass'"):
        post.outliers(table, score="density")
