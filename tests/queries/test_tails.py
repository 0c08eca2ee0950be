"""Tail probabilities of cells: against sums over every value that a column can record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesjpt.kernels.flow import fill_marginal_log_mass
from bayesjpt.queries.density import even_log_mass
from bayesjpt.queries.tails import cells_alone
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import naive, zoo

EXACT = 1e-9
CLOSE = 0.3
"""Nats by which an interpolated tail probability may be off; TYPICAL: by which half of them may be."""
TYPICAL = 0.04
FAR = 0.03
"""Share of its nats by which a tail probability far out may be off."""


def evenly(post) -> np.ndarray:
    n_draw = post.n_chain * post.n_draw
    return np.full((n_draw, 1), -np.log(n_draw))


def alone(post, column: int, values: np.ndarray) -> np.ndarray:
    """Return the probability of recording each value of a column, float64 (n_draw, n_value)."""
    cells = np.zeros((len(post.schema), values.size))
    cells[column] = values
    observed = np.repeat(np.arange(len(cells))[:, None] == column, values.size, axis=1)
    return np.exp(even_log_mass(post, Table(post.schema, cells, observed)).values.reshape(-1, values.size))


def every_value(column, widest: float) -> np.ndarray:
    """Return the values that a column can record, as far as `widest` from 0."""
    if column.base == "category":
        return np.arange(float(len(column.code_names)))
    step = column.resolution if column.base == "real" else 1.0
    values = np.arange(-round(widest / step), round(widest / step) + 1) * step
    return values


def slow_tail(post, column: int, x: np.ndarray, widest: float = 400.0) -> np.ndarray:
    """Return the mean over draws of the probability of values at most as probable as x."""
    all_of_them = alone(post, column, every_value(post.schema.columns[column], widest))
    at_x = alone(post, column, x)
    missed = np.maximum(1.0 - all_of_them.sum(axis=1) - 1e-12, 0.0)  # not what is lost by rounding
    low = all_of_them[:, None, :] <= at_x[:, :, None] * (1.0 + 1e-9)
    return (np.where(low, all_of_them[:, None, :], 0.0).sum(axis=2) + missed[:, None]).mean(axis=0)


@pytest.fixture(params=[zoo.independent, zoo.mixture, zoo.two_level], ids=lambda shape: shape.__name__)
def case(request, rng):
    table = zoo.make_table((*zoo.COLUMNS, zoo.FLAG, zoo.CHANGE, zoo.ZEROS), 30, rng, missing=0.2)
    return table, zoo.random_posterior(request.param(table), table, rng, n_draw=2)


def test_cells_by_themselves_have_the_mass_of_rows_that_observe_nothing_else(case):
    table, post = case
    found, _ = cells_alone(post, table, evenly(post))
    for column in range(table.n_column):
        seen = table.observed[column]
        expected = np.log(alone(post, column, table.values[column, seen]).mean(axis=0))
        assert np.abs(found[column, seen] - expected).max() < EXACT
        assert (found[column, ~seen] == 0.0).all()


def test_tails_of_labels_and_whole_numbers_are_sums_over_values_at_most_as_probable(case):
    table, post = case
    _, found = cells_alone(post, table, evenly(post))
    for column in (2, 4, 5):
        seen = table.observed[column]
        expected = slow_tail(post, column, table.values[column, seen])
        assert np.abs(np.exp(found[column, seen]) - expected).max() < 1e-6
        assert (found[column, ~seen] == 0.0).all()


def test_tails_of_numbers_are_close_to_sums_over_their_grid(case):
    table, post = case
    _, found = cells_alone(post, table, evenly(post))
    for column in (0, 1, 6, 7):
        seen = table.observed[column]
        off = np.abs(found[column, seen] - np.log(slow_tail(post, column, table.values[column, seen])))
        assert off.max() < CLOSE
        assert np.median(off) < TYPICAL


def test_values_far_out_are_told_apart_by_how_far(case):
    table, post = case
    far = np.array([20.0, 40.0, 80.0, 160.0])
    only = np.repeat(np.arange(table.n_column)[:, None] == 0, far.size, axis=1)
    rows = Table(table.schema, np.where(only, far, 0.0), only)
    _, found = cells_alone(post, rows, evenly(post))
    assert (np.diff(found[0]) < -1.0).all()
    assert found[0, :2] == pytest.approx(np.log(slow_tail(post, 0, far[:2])), rel=FAR)


def test_at_most_a_share_of_the_values_has_a_tail_probability_of_that_share(rng):
    table = zoo.make_table((zoo.REAL, zoo.LABEL, zoo.COUNT), 20, rng)
    post = zoo.random_posterior(zoo.mixture(table), table, rng, n_chain=1, n_draw=1)
    drawn = post.sample(4000, rng=rng, recorded=True)
    _, tail = cells_alone(post, drawn, evenly(post))
    for share in (0.01, 0.1, 0.5):
        spread = 4.0 * np.sqrt(share * (1.0 - share) / drawn.n_row)
        assert (np.exp(tail) <= share).mean(axis=1).max() < 1.05 * share + spread
    assert (np.exp(tail[0]) <= 0.5).mean() > 0.4


def test_the_resolution_of_a_column_does_not_change_its_tails(rng):
    table = zoo.make_table((zoo.REAL, zoo.LABEL), 30, rng)
    post = zoo.random_posterior(zoo.mixture(table), table, rng)
    fine = Schema((zoo.with_resolution(zoo.REAL, 0.001), zoo.LABEL))
    finer = replace(post, schema=fine)
    _, coarse_tail = cells_alone(post, table, evenly(post))
    _, fine_tail = cells_alone(finer, Table(fine, table.values, table.observed), evenly(post))
    assert np.abs(coarse_tail - fine_tail).max() < 0.05


def test_a_value_without_probability_has_a_tail_of_none(rng):
    table = zoo.make_table((zoo.POSITIVE, zoo.LABEL), 10, rng)
    post = zoo.random_posterior(zoo.independent(table), table, rng).condition("positive > 1")
    rows = Table(table.schema, np.array([[0.5, 3.0], [0.0, 0.0]]), np.ones((2, 2), bool))
    mass, tail = cells_alone(post, rows, evenly(post))
    assert mass[0, 0] == tail[0, 0] == -np.inf
    assert np.isfinite(tail[0, 1])


def test_columns_scored_in_parts_have_the_same_tails(case, monkeypatch):
    table, post = case
    together = cells_alone(post, table, evenly(post))
    monkeypatch.setattr("bayesjpt.queries.tails._N_MASS", 1)
    assert np.array_equal(together, cells_alone(post, table, evenly(post)))


def test_marginal_masses_of_intervals_are_those_of_boxes(case):
    post = case[1]
    plan, flat = post.plan(), post.flat()
    ends = np.array([[0.2, 1.0, 1.0], [4.5, 3.0, 1.0]])  # a number, a count, a label
    ptr = np.array([0, 1, 1, 2, 2, 3, 3, 3, 3])
    out = np.empty((flat.theta.shape[0], 3))
    fill_marginal_log_mass(plan, flat.log_weight, flat.theta, ptr, ends, out)
    for k, column in enumerate((0, 2, 4)):
        params = type(flat)(flat.log_weight[0], flat.theta[0])
        expected = naive.probability(post.circuit, post.schema, params, [{column: ends[:, [k]].T}])
        assert np.exp(out[0, k]) == pytest.approx(expected, rel=EXACT)
