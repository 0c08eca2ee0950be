"""Neighbourhoods of cells and their tail probabilities: against sums over places by recursion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesjpt.circuit.arrays import Params
from bayesjpt.kernels.flow import fill_marginal_log_mass
from bayesjpt.queries import tails
from bayesjpt.queries.tails import NEAR, near_cells
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive_events

EXACT = 1e-9
FAR = 0.8
"""Of its distance: values far out share neighbourhoods with others at such distances."""


def evenly(post) -> np.ndarray:
    n_draw = post.n_chain * post.n_draw
    return np.full((n_draw, 1), -np.log(n_draw))


def draws(post) -> list[Params]:
    flat = post.flat()
    return [Params(*point) for point in zip(flat.log_weight, flat.theta, strict=True)]


def mass_between(post, params: Params, column: int, lo: float, hi: float) -> float:
    return naive_events.probability(post.circuit, post.schema, params, [{column: np.array([[lo, hi]])}])


def log_beyond(post, column: int, lo: float, hi: float) -> float:
    """Return the log of the mean probability of values outside of an interval."""
    outside = [(-np.inf, lo), (hi, np.inf)]
    return np.log(np.mean([sum(mass_between(post, params, column, *x) for x in outside) for params in draws(post)]))


@pytest.fixture(params=[ex.independent, ex.mixture, ex.two_level], ids=lambda shape: shape.__name__)
def case(request, rng):
    table = ex.make_table((*ex.COLUMNS, ex.FLAG, ex.CHANGE, ex.ZEROS), 30, rng, missing=0.2)
    return table, ex.random_posterior(request.param(table), table, rng, n_draw=2)


def test_places_and_neighbourhoods_hold_their_values_and_labels_are_their_own(case):
    table, post = case
    near = near_cells(post, table, evenly(post))
    seen = table.observed
    away = np.where(seen, np.abs(table.values - near.centre), 0.0)
    assert (away <= near.half[0] + EXACT).all()
    assert (near.half[1] >= near.half[0]).all()
    for column, own in enumerate(table.schema):
        half = near.half[1, column, seen[column]]
        if own.base == "category":
            assert (half == 0.0).all()
        else:
            wide = NEAR * np.hypot(own.scale, near.centre[column, seen[column]] - own.location)
            assert (half >= wide).all()
            assert (half <= np.maximum(wide, 0.5)).all()


def test_masses_of_places_and_neighbourhoods_are_those_of_intervals(case):
    table, post = case
    near = near_cells(post, table, evenly(post))
    for column in range(table.n_column):
        for row in np.flatnonzero(table.observed[column])[:4]:
            for alone, half in zip(near.alone[:, column, row], near.half[:, column, row], strict=True):
                ends = near.centre[column, row] + half * np.array([-1.0, 1.0])
                expected = np.mean([mass_between(post, params, column, *ends) for params in draws(post)])
                assert np.exp(alone) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert (near.alone[:, ~table.observed] == 0.0).all()


def test_tails_of_labels_are_sums_over_labels_at_most_as_probable(case):
    table, post = case
    near = near_cells(post, table, evenly(post))
    for column in (4, 5):
        codes = range(len(table.schema.columns[column].code_names))
        mass = np.array([[mass_between(post, params, column, k, k) for k in codes] for params in draws(post)])
        tail = np.where(mass[:, None] <= mass[:, :, None] * (1.0 + EXACT), mass[:, None], 0.0).sum(axis=2).mean(axis=0)
        seen = table.observed[column]
        assert np.abs(np.exp(near.tail[column, seen]) - tail[table.values[column, seen].astype(int)]).max() < 1e-6
        assert (near.tail[column, ~seen] == 0.0).all()


@pytest.mark.parametrize("column", [0, 7])
def test_tails_of_numbers_are_the_content_of_what_is_near_no_more(rng, column):
    """The share of values from a draw whose neighbourhood, found by recursion, has at most the mass of the cell's."""
    table = ex.make_table((*ex.COLUMNS, ex.FLAG, ex.CHANGE, ex.ZEROS), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=1)
    (params,) = draws(post)
    own = table.schema.columns[column]
    near = near_cells(post, table, evenly(post))
    steps = np.sinh(np.linspace(-np.arcsinh(50.0), np.arcsinh(50.0), 401))
    edges = own.location + own.scale * steps
    x = 0.5 * (edges[1:] + edges[:-1])
    half = NEAR * np.hypot(own.scale, x - own.location)
    mass = np.diff([mass_between(post, params, column, -np.inf, edge) for edge in edges])
    wide = np.array([mass_between(post, params, column, *ends) for ends in zip(x - half, x + half, strict=True)])
    for row in np.flatnonzero(table.observed[column])[:8]:
        ends = near.centre[column, row] + near.half[1, column, row] * np.array([-1.0, 1.0])
        at_row = mass_between(post, params, column, *ends)
        least, most = (mass[wide <= at_row * slack].sum() for slack in (0.85, 1.15))
        assert least - 0.03 < np.exp(near.tail[column, row]) < most + 0.03


def test_values_far_out_are_told_apart_by_how_far(case):
    table, post = case
    own = table.schema.columns[0]
    far = np.array([20.0, 40.0, 80.0, 2.0 * own.scale * tails._REACH])
    only = np.repeat(np.arange(table.n_column)[:, None] == 0, far.size, axis=1)
    found = near_cells(post, Table(table.schema, np.where(only, far, 0.0), only), evenly(post)).tail[0]
    assert (np.diff(found) < -1.0).all()
    for x, tail in zip(far[:2] - own.location, found[:2], strict=True):
        least, most = (log_beyond(post, 0, own.location - reach, own.location + reach) for reach in (FAR * x, x / FAR))
        assert most < tail < least


def test_at_most_a_share_of_the_values_has_a_tail_probability_of_that_share(rng):
    table = ex.make_table((ex.REAL, ex.LABEL, ex.COUNT), 20, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=1)
    drawn = post.sample(4000, rng=rng, labels="all")
    tail = near_cells(post, drawn, evenly(post)).tail
    for share in (0.01, 0.1, 0.5):
        spread = 4.0 * np.sqrt(share * (1.0 - share) / drawn.n_row)
        assert (np.exp(tail) <= share).mean(axis=1).max() < 1.05 * share + spread
    assert (np.exp(tail[0]) <= 0.5).mean() > 0.4


def test_the_resolution_of_a_column_does_not_change_its_tails(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    fine = Schema((ex.with_resolution(ex.REAL, 0.001), ex.LABEL))
    finer = replace(post, schema=fine)
    coarse_tail = near_cells(post, table, evenly(post)).tail
    fine_tail = near_cells(finer, Table(fine, table.values, table.observed), evenly(post)).tail
    assert np.abs(coarse_tail - fine_tail).max() < EXACT


def test_a_value_near_which_nothing_is_probable_has_a_tail_of_none(rng):
    table = ex.make_table((ex.POSITIVE, ex.LABEL), 10, rng)
    post = ex.random_posterior(ex.independent(table), table, rng).condition("positive > 3")
    rows = Table(table.schema, np.array([[0.5, 5.0], [0.0, 0.0]]), np.ones((2, 2), bool))
    near = near_cells(post, rows, evenly(post))
    assert near.alone[1, 0, 0] == near.tail[0, 0] == -np.inf
    assert np.isfinite(near.tail[0, 1])


def test_what_lies_beside_an_atom_has_it_in_its_neighbourhood(rng):
    table = ex.make_table((ex.ZEROS, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_chain=1, n_draw=1)
    cells = np.array([[0.2, 6.0], [0.0, 0.0]])
    found = near_cells(post, Table(table.schema, cells, np.ones((2, 2), bool)), evenly(post)).alone[1, 0]
    at_zero = np.log(mass_between(post, draws(post)[0], 0, 0.0, 0.0))
    assert found[0] > at_zero > found[1]


def test_columns_scored_in_parts_have_the_same_tails(case, monkeypatch):
    table, post = case
    whole = near_cells(post, table, evenly(post))
    monkeypatch.setattr("bayesjpt.queries.tails._N_MASS", 1)
    for found, expected in zip(near_cells(post, table, evenly(post)), whole, strict=True):
        assert np.array_equal(found, expected)


def test_marginal_masses_of_intervals_are_those_of_boxes(case):
    post = case[1]
    plan, flat = post.plan(), post.flat()
    ends = np.array([[0.2, 1.0, 1.0], [4.5, 3.0, 1.0]])  # a number, a count, a label
    ptr = np.array([0, 1, 1, 2, 2, 3, 3, 3, 3])
    out = np.empty((flat.theta.shape[0], 3))
    fill_marginal_log_mass(plan, flat.log_weight, flat.theta, ptr, ends, out)
    for k, column in enumerate((0, 2, 4)):
        params = type(flat)(flat.log_weight[0], flat.theta[0])
        expected = naive_events.probability(post.circuit, post.schema, params, [{column: ends[:, [k]].T}])
        assert np.exp(out[0, k]) == pytest.approx(expected, rel=EXACT)
