"""Columns so far from 0 that their resolution is a few floats wide: no probability lies between two neighbours."""

from __future__ import annotations

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table
from tests import examples as ex

EXACT = 1e-9
FAR = 1.5 * 2.0**60
STEP = 256.0
"""Between neighbouring floats there."""


@pytest.fixture(scope="module", params=["normal", "student_t"])
def post(request) -> Posterior:
    """Return a fit whose leaf has nearly all of its probability between three floats."""
    x = FAR + STEP * np.array([-1.0, 0.0, 0.0, 0.0, 1.0])
    column = Column("x", "real", (-np.inf, np.inf), resolution=STEP, location=FAR, scale=STEP)
    table = Table(Schema((column,)), x[None], np.ones((1, x.size), bool))
    return Posterior.from_circuit(ex.independent(table, ex.only(request.param)), table.schema)


def of(post: Posterior, event) -> float:
    return float(np.exp(post.log_probability(event).item()))


@pytest.mark.parametrize("number", [-1, 0, 1])
def test_an_event_and_its_complement_have_all_the_probability(post, number):
    x = FAR + number * STEP
    assert of(post, bj.col("x") <= x) + of(post, bj.col("x") > x) == pytest.approx(1.0, abs=EXACT)
    assert of(post, bj.col("x") < x) + of(post, bj.col("x") >= x) == pytest.approx(1.0, abs=EXACT)
    assert of(post, bj.col("x") == x) + of(post, bj.col("x") != x) == pytest.approx(1.0, abs=EXACT)


def test_a_float_has_the_probability_of_its_own_stretch(post):
    parts = [of(post, bj.col("x") < FAR - STEP), of(post, bj.col("x") > FAR + STEP)]
    parts += [of(post, bj.col("x") == FAR + number * STEP) for number in (-1, 0, 1)]
    assert sum(parts) == pytest.approx(1.0, abs=EXACT)
    assert min(parts[2:]) > 0.01


def test_the_distribution_function_is_the_probability_up_to_a_value(post):
    x = FAR + STEP * np.arange(-2.0, 3.0)
    up_to = [of(post, bj.col("x") <= value) for value in x]
    np.testing.assert_allclose(post.cdf(x, "x").to_numpy().ravel(), up_to, atol=EXACT)


def test_conditions_keep_the_chain_rule(post):
    both, given = of(post, (bj.col("x") >= FAR) & (bj.col("x") <= FAR)), bj.col("x") >= FAR
    assert of(post.condition(given), bj.col("x") <= FAR) * of(post, given) == pytest.approx(both, abs=EXACT)
