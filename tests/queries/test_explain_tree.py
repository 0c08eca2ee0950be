"""Explanations by a tree: what is said of a leaf is what the queries say of its conditions, under every draw."""

from __future__ import annotations

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt import Posterior
from bayesjpt.circuit.arrays import Params
from bayesjpt.defaults import INTERVAL
from tests import examples as ex

EXACT = 1e-9
"""Relative."""

GIVEN = [None, "count <= 3 or flag = 'yes'", {"count": 2, "positive": 1.5}]


@pytest.fixture(scope="module")
def post() -> Posterior:
    """Return four draws of a tree over columns of every base."""
    rng = np.random.default_rng(1)
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT, ex.LABEL, ex.FLAG, ex.ZEROS), 80, rng)
    return ex.random_posterior(bj.learn_jpt(table, rng, max_leaves=6), table, rng, n_chain=2, n_draw=2)


@pytest.mark.parametrize("given", GIVEN)
def test_numbers_of_a_leaf_are_those_of_its_conditions(post, given):
    event = "real > 1 or label = 'a'"
    found = post.explain(event, given)
    assert len(found.parts) == 6
    both = event if given is None else f"({event}) and ({given})"
    for part in found.parts:
        here = found.table.isel(part=found.parts.index(part))
        np.testing.assert_allclose(here["weight"], post.probability(part.conditions), rtol=EXACT)
        within = here["weight_given"] * here["probability"]
        np.testing.assert_allclose(
            here["weight_given"], post.probability(part.conditions, given), rtol=EXACT, atol=1e-15
        )
        together = post.probability(f"({event}) and {part.conditions}", given)
        np.testing.assert_allclose(within, together, rtol=EXACT, atol=1e-15)
        if not isinstance(given, dict):
            np.testing.assert_allclose(here["share"], post.probability(part.conditions, both), rtol=EXACT, atol=1e-15)


def test_numbers_are_posterior_means_with_intervals(post):
    found = post.explain("real > 1")
    for position, part in enumerate(found.parts):
        for name in ("share", "weight", "weight_given", "probability"):
            draws = found.table[name].isel(part=position).to_numpy()
            assert getattr(part, name) == pytest.approx(draws.mean(), rel=EXACT)
            assert part.intervals[name] == pytest.approx(np.quantile(draws, [0.5 - INTERVAL / 2, 0.5 + INTERVAL / 2]))
    assert [part.share for part in found.parts] == sorted((part.share for part in found.parts), reverse=True)


def test_lines_name_conditions_and_intervals(post):
    found = post.explain("real > 1", k=2)
    headline, _, *lines = repr(found).splitlines()
    assert headline.endswith("leaves of the tree:")
    assert len(lines) == 3
    for line, part in zip(lines[:2], found.parts, strict=False):
        lo, hi = part.intervals["share"]
        assert line.strip().startswith(f"{part.share:.0%} ({lo:.0%} to {hi:.0%})")
        assert line.endswith(part.conditions)
    assert lines[-1].endswith("4 others together")


def test_a_point_estimate_has_no_intervals(post):
    one = Posterior(post.circuit, post.schema, Params(*(array[:1, :1] for array in post.params)))
    part = one.explain("real > 1").parts[0]
    assert part.intervals == {}
    assert part.shown()[0] == f"{part.share:.0%}"


def test_a_tree_given_an_event_is_explained_by_what_is_left_of_it(post):
    given = post.condition("real > 1 and label != 'b'")
    found = given.explain("count <= 3")
    weight = sum(part.weight for part in found.parts)
    assert weight == pytest.approx(1.0, rel=EXACT)
    for position, part in enumerate(found.parts):
        expected = given.probability(part.conditions)
        np.testing.assert_allclose(found.table["weight"].isel(part=position), expected, rtol=EXACT)
