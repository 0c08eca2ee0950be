"""Patterns are events that queries read; their probabilities are those of the queries; boxes are where rows are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.sub_populations import above, sub_populations
from bayesjpt.errors import QueryError
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries.patterns import _densest, _shortest
from bayesjpt.table.schema import Column
from tests import examples as ex
from tests.queries.test_membership import CIRCUITS
from tests.strategies import law

EXACT = 1e-10
LABEL = replace(ex.LABEL, dtype="text")


def restricted(post, number: int):
    """Return the posterior of one sub-population: the choices on its path are certain."""
    circuit = post.circuit
    node = sub_populations(circuit, len(post.schema))[number]
    kept = set(above(circuit, [node]).tolist())
    log_weight = post.params.log_weight.copy()
    for parent in kept - {node}:
        if circuit.kind[parent] in arrays.STRUCTURE_KINDS:
            for edge in range(circuit.child_ptr[parent], circuit.child_ptr[parent + 1]):
                log_weight[..., edge] = 0.0 if circuit.child[edge] in kept else -np.inf
    return bj.Posterior(circuit, post.schema, Params(log_weight, post.params.theta))


@pytest.fixture
def clusters(rng) -> tuple[pd.DataFrame, bj.Posterior]:
    """Return three planted clusters and the learner's estimate of a tree that finds them."""
    n = 100
    group = np.repeat([0, 1, 2], n)
    frame = pd.DataFrame(
        {
            "x": np.round(rng.normal(10.0 * group, 0.5), 1),
            "n": rng.poisson(2.0 + 20.0 * (group == 1)),
            "kind": np.array(["a", "b", "c"])[group],
            "noise": rng.normal(size=3 * n),
        }
    )
    table = bj.as_table(frame, kinds={"x": "real", "n": "integer"})
    circuit = bj.learn_jpt(table, rng, min_rows=60)
    return frame, bj.Posterior.from_circuit(circuit, table.schema)


def test_planted_clusters_are_found_as_they_were_planted(clusters):
    frame, post = clusters
    found = post.patterns()
    assert len(found) == 3
    assert sum(part.support.mean[0] for part in found.parts) < 1.0
    for label, rows in frame.groupby("kind"):
        (part,) = [part for part in found.parts if f"'{label}'" in part.event]
        assert "noise" not in part.event
        assert abs(post.condition(part.event).expectation("x").item() - rows["x"].mean()) < 0.5
        assert part.weight.mean[0] == pytest.approx(1 / 3, abs=0.02)
        assert part.probability.mean[0] > 0.5


@pytest.mark.parametrize("name", ["mixture", "nested", "beside a column", "tree"])
def test_numbers_of_a_pattern_are_probabilities_of_its_event(name, rng, monkeypatch):
    monkeypatch.setattr("bayesjpt.queries.patterns.EXPLAINED_DIFFERENCE", 0.0)
    table = ex.make_table(ex.COLUMNS, 60, rng)
    post = ex.random_posterior(CIRCUITS[name][0](table), table, rng, n_chain=1, n_draw=4)
    found = post.patterns(min_support=0.0, coverage=0.7)
    assert len(found) > 0
    weights = post.membership(bj.Table(table.schema, table.values[:, :1], np.zeros((5, 1), bool)))[0, :, 0].to_numpy()
    for part in found.parts:
        support = post.probability(part.event).to_numpy().ravel()
        assert part.support.mean[0] == pytest.approx(support.mean(), abs=EXACT)
        assert (part.support.lo[0], part.support.hi[0]) == pytest.approx(tuple(np.quantile(support, [0.05, 0.95])))
        within = restricted(post, part.sub_population).probability(part.event).to_numpy()
        assert part.probability.mean[0] == pytest.approx(within.mean(), abs=EXACT)
        assert part.weight.mean[0] == pytest.approx(weights[:, part.sub_population].mean(), abs=EXACT)
    data = found.table
    assert data["event"].to_numpy().tolist() == [part.event for part in found.parts]
    assert data["support"].to_numpy().tolist() == sorted(data["support"].to_numpy(), reverse=True)


@law(15)
@given(seed=st.integers(0, 2**31 - 1), min_support=st.floats(0.0, 0.3))
def test_patterns_of_less_support_are_left_out(seed, min_support):
    rng = np.random.default_rng(seed)
    table = ex.make_table(ex.COLUMNS, 40, rng)
    post = ex.random_posterior(ex.mixture(table, 3), table, rng, n_chain=1, n_draw=1)
    every, some = (post.patterns(min_support=least) for least in (0.0, min_support))
    enough = [part.event for part in every.parts if part.support.mean[0] >= min_support]
    assert [part.event for part in some.parts] == enough


@law(15)
@given(seed=st.integers(0, 2**31 - 1), coverage=st.sampled_from([0.3, 0.8, 0.95]))
def test_a_condition_holds_its_share_in_the_shortest_interval_or_the_fewest_labels(seed, coverage):
    rng = np.random.default_rng(seed)
    table = ex.make_table((*ex.COLUMNS[:3], LABEL), 40, rng)
    post = ex.random_posterior(ex.independent(table), table, rng, n_chain=1, n_draw=1)
    for position, column in enumerate(table.schema):
        (text,) = _densest(post, [position], coverage)
        if column.base == "category":
            share = np.sort([post.probability(f"label = '{label}'").item() for label in column.labels])[::-1]
            fewest = int((np.cumsum(share) < coverage).sum()) + 1
            held = [label for label in column.labels if _holds(text, label)]
            assert (len(held) == fewest) if fewest < share.size else text == ""
            continue
        assert post.probability(text).item() >= coverage - EXACT
        if column.base == "real":
            begin = np.linspace(0.0005, 0.9995 - coverage, 200)
            lo, hi = (post.quantile(levels, column.name).to_numpy().ravel() for levels in (begin, begin + coverage))
            cut = post.condition(text)
            least, largest = cut.quantile([1e-6, 1.0 - 1e-6], column.name).to_numpy().ravel()
            assert largest - max(least, column.support[0]) <= 1.25 * (hi - lo).min()


def _holds(text: str, label: str) -> bool:
    """Return whether a label meets a condition on it."""
    return (f"'{label}'" in text) is ("!=" not in text and "not in" not in text)


def test_a_condition_on_dates_ends_within_the_calendar():
    day = Column("day", "real", (-np.inf, np.inf), dtype="datetime", location=2_900_000.0, scale=1e4, resolution=1.0)
    first, beyond = np.datetime64(2_900_000, "D"), 2_940_000.0
    assert bj.parse_event(_shortest(day, np.array([[[2_900_000.0, beyond]]]))) == (bj.col("day") >= str(first))
    assert _shortest(day, np.array([[[-800_000.0, beyond]]])) == ""
    assert _shortest(day, np.array([[[2_935_000.0, beyond]]])) == ""


def test_several_structures_answer_and_say_whose_sub_populations_they_show(rng):
    table = ex.make_table(ex.COLUMNS, 60, rng)
    parts = [
        ex.random_posterior(CIRCUITS[name][0](table), table, rng, n_chain=1, n_draw=3) for name in ("tree", "mixture")
    ]
    whole = StackedPosterior(parts, [0.5, 0.5])
    found = whole.patterns(min_support=0.0)
    assert f"structure {found.structure}" in repr(found)
    for part in found.parts:
        assert part.support.mean[0] == pytest.approx(whole.probability(part.event).mean().item(), abs=EXACT)


def test_a_table_without_sub_populations_has_no_patterns(rng):
    table = ex.make_table(ex.COLUMNS, 30, rng)
    found = ex.random_posterior(ex.independent(table), table, rng).patterns()
    assert len(found) == 0
    assert repr(found).startswith("No pattern, of sub-populations")
    assert repr(found).endswith(": no column sets one of them apart")


def test_none_of_the_asked_support_tells_the_largest(clusters):
    _, post = clusters
    found = post.patterns(min_support=0.9)
    assert len(found) == 0
    assert 0.2 < found.largest_support < 0.4
    assert f"the largest holds {found.largest_support:.0%} of the rows, less than 90%" in repr(found)
    assert "less than 90%" in found._repr_html_()
    assert found.table.sizes["pattern"] == 0


@pytest.mark.parametrize("options", [{"min_support": 1.0}, {"min_support": -0.1}, {"coverage": 0.0}, {"coverage": 1.0}])
def test_shares_outside_of_their_ranges_are_refused(options, rng):
    table = ex.make_table(ex.COLUMNS, 20, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    with pytest.raises(QueryError, match=next(iter(options))):
        post.patterns(**options)
