"""Queries against sums over every row of small tables, and against integrals of the density.

Neither knows of boxes, shares or components: rows are scored by recursion, and an event is looked up row by row.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import bayesjpt.queries.methods  # noqa: F401  # queries become methods
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import build_circuit
from bayesjpt.families import registry
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, strategies
from tests.queries import events, slow

EXACT = 1e-10
ROUNDING = 1e-13  # absolute, of probabilities that are a difference from 1
RARE = 1e-9
DEPTH = 5
SMOKER = replace(events.SMOKER, frequencies=(0.5, 0.4, 0.1))
COLUMNS = (ex.LEVELS, ex.LABEL, SMOKER)
OF_SCHEMA = [events.SCHEMA.names.index(column.name) for column in COLUMNS]


# --- every row


class Enumerated(NamedTuple):
    """One draw over columns of few values, and the probability of every row."""

    post: Posterior
    rows: Table
    weight: np.ndarray

    def inside(self, event) -> np.ndarray:
        """Return bool (n_row,): which rows lie in an event, from the definition."""
        row = np.zeros(len(events.SCHEMA))
        found = []
        for values in self.rows.values.T:
            row[OF_SCHEMA] = values
            found.append(events.holds(event, row))
        return np.array(found)


def few_values(column):
    """Offer each family over a column's labels or levels twice."""
    return 2 * ex.only("categorical", "bernoulli")(column)


@st.composite
def enumerated(draw) -> Enumerated:
    """Draw a circuit of up to five levels over three columns of few values, leaves truncated or not."""
    cells = np.array(list(itertools.product(ex.LEVELS.levels, range(4), range(3))), float).T
    rows = Table(Schema(COLUMNS), np.ascontiguousarray(cells), np.ones(cells.shape, bool))
    rng = np.random.default_rng(draw(strategies.seeds))
    circuit = build_circuit(draw(strategies.trees(rows, (0, 1, 2), DEPTH)), rows, few_values)
    if draw(st.booleans()):
        circuit = ex.truncated(circuit, rows.schema, rng, share=0.3)
    if draw(st.booleans()):
        circuit = slow.share_parameters(circuit, rng)
    params = ex.random_params(circuit, rows.schema, rng)
    post = Posterior(circuit, rows.schema, Params(*(array[None, None] for array in params)))
    return Enumerated(post, rows, np.exp(naive.log_values(circuit, params, rows)))


some_events = events.events(COLUMNS, max_leaves=4)


def number(answer) -> float:
    return float(answer.to_numpy().item())


@strategies.law(30)
@hypothesis.given(enumerated(), some_events, some_events)
def test_probability_is_a_sum_over_rows(case, event, given):
    inside, known = case.inside(event), case.inside(given)
    assert number(case.post.probability(event)) == pytest.approx(case.weight[inside].sum(), rel=EXACT, abs=ROUNDING)
    hypothesis.assume(case.weight[known].sum() > RARE)
    expected = case.weight[inside & known].sum() / case.weight[known].sum()
    assert number(case.post.probability(event, given)) == pytest.approx(expected, rel=EXACT, abs=ROUNDING)


@strategies.law(15)
@hypothesis.given(enumerated(), some_events, st.sampled_from([0, 1, 2]), st.integers(0, 47))
def test_probability_given_a_value_is_a_sum_over_rows(case, event, column, row):
    value = case.rows.values[column, row]
    known = case.rows.values[column] == value
    hypothesis.assume(case.weight[known].sum() > RARE)
    observed = np.zeros((3, 1), bool)
    observed[column] = True
    given = Table(case.rows.schema, np.ascontiguousarray(case.rows.values[:, [row]]), observed)
    expected = case.weight[case.inside(event) & known].sum() / case.weight[known].sum()
    found = number(case.post.probability(event, given))
    assert found == pytest.approx(expected, rel=EXACT, abs=ROUNDING)


@strategies.law(20)
@hypothesis.given(enumerated(), some_events, st.sampled_from([0.1, 0.5, 0.93]))
def test_moments_and_quantiles_are_sums_over_rows(case, given, q):
    known = case.inside(given)
    hypothesis.assume(case.weight[known].sum() > RARE)
    weight = np.where(known, case.weight, 0.0) / case.weight[known].sum()
    x = case.rows.values[0]
    mean = weight @ x
    assert number(case.post.expectation("levels", given)) == pytest.approx(mean, rel=EXACT)
    assert number(case.post.variance("levels", given)) == pytest.approx(weight @ (x - mean) ** 2, rel=EXACT, abs=EXACT)
    below = np.array([weight[x <= level].sum() for level in ex.LEVELS.levels])
    found = case.post.cdf(ex.LEVELS.levels, "levels", given).to_numpy().ravel()
    np.testing.assert_allclose(found, below, rtol=EXACT, atol=ROUNDING)
    hypothesis.assume(np.abs(below - q).min() > RARE)
    expected = ex.LEVELS.levels[int(np.searchsorted(below, q))]
    assert number(case.post.quantile(q, "levels", given)) == expected


# --- integrals


@pytest.fixture(scope="module")
def real() -> Posterior:
    """Return a draw of a circuit in which real columns have every family that fits them."""
    rng = np.random.default_rng(11)
    columns = (replace(ex.REAL, families=()), ex.LABEL, replace(ex.POSITIVE, families=()))
    table = ex.make_table(columns, 30, rng)
    return ex.random_posterior(ex.two_level(table), table, rng, n_chain=1, n_draw=1)


def density(post: Posterior, x: np.ndarray, position: int, **known: float) -> np.ndarray:
    """Return the density at values of one column together with known values of others."""
    values, observed = np.zeros((3, x.size)), np.zeros((3, x.size), bool)
    values[position], observed[position] = x, True
    for name, value in known.items():
        values[post.schema.index(name)], observed[post.schema.index(name)] = value, True
    return np.exp(post.log_density(Table(post.schema, values, observed)).to_numpy().ravel())


@pytest.mark.parametrize(
    ("name", "lo", "hi"), [("real", -3.0, 1.25), ("real", 4.5, 8.9), ("positive", 0.06, 2.2), ("positive", 3.0, 11.9)]
)
def test_probability_and_moments_are_integrals_of_the_density(real, name, lo, hi):
    position = real.schema.index(name)
    x, dx = slow.nodes(lo, hi, 0.5 * (lo + hi), 1.0)
    weight = dx * density(real, x, position, label=1.0)
    within = f"{name} between {lo} and {hi}"
    assert number(real.probability(f"{within} and label = 'b'")) == pytest.approx(weight.sum(), rel=EXACT)
    given = f"{within} and label = 'b'"
    mean = weight @ x / weight.sum()
    assert number(real.expectation(name, given)) == pytest.approx(mean, rel=EXACT)
    assert number(real.variance(name, given)) == pytest.approx(weight @ (x - mean) ** 2 / weight.sum(), rel=EXACT)


def test_probability_given_a_value_is_an_integral_over_the_joint_density(real):
    x, dx = slow.nodes(-2.0, 3.0, 0.5, 1.0)
    joint = dx @ density(real, x, 0, positive=1.7)
    alone = density(real, np.array([1.7]), 2)
    found = number(real.probability("real between -2 and 3", {"positive": 1.7}))
    assert found == pytest.approx(float(joint / alone.item()), rel=EXACT)


def test_generated_circuits_have_every_family():
    offered = {family.name for column in slow.COLUMNS for family in registry.dictionary(column)}
    assert offered == {*naive.REAL, *naive.POSITIVE, *naive.COUNT, *naive.ROUNDED, "atom", "bernoulli", "categorical"}
