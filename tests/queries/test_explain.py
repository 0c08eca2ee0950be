"""Explanations: sub-populations add up to the answer, are described by what they are, and never by codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import Posterior
from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import QueryError
from tests import examples as ex

EXACT = 1e-12
"""Relative."""

QUESTIONS = [
    ("real > 1 and count <= 3", None),
    ("real > 1 or label = 'a'", "count <= 3 or flag = 'yes'"),
    ("label in ('a', 'b')", {"count": 2, "positive": 1.5}),
]


@pytest.fixture
def post(rng) -> Posterior:
    """Return a posterior over columns of every base."""
    table = ex.make_table(ex.EVERY, 40, rng)
    return ex.random_posterior(ex.two_level(table), table, rng, n_draw=5)


@pytest.fixture(scope="module")
def groups() -> Posterior:
    """Return the learner's estimate of a table of three groups, two of them of one colour."""
    rng = np.random.default_rng(1)
    group = np.repeat([0, 1, 2], 60)
    frame = pd.DataFrame(
        {
            "size": (np.array([0.0, 20.0, 20.0])[group] + rng.normal(5.0, 1.0, 180)).round(1),
            "mass": (np.array([9.0, 9.0, 50.0])[group] + rng.normal(0.0, 1.0, 180)).round(1),
            "colour <b>": np.array(["red", "white", "white"])[group],
        }
    )
    table = bj.as_table(frame)
    return Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=40), table.schema)


@pytest.mark.parametrize(("event", "given"), QUESTIONS)
@pytest.mark.parametrize("k", [1, 2, 4, 50])
def test_parts_add_up_to_the_answer(post, event, given, k):
    found = post.explain(event, given, k=k)
    answer = float(found.answer.sel(chain=found.chain, draw=found.draw))
    assert sum(p.weight_given * p.probability for p in found.parts) == pytest.approx(answer, rel=EXACT)
    for name in ("share", "weight", "weight_given"):
        assert sum(getattr(p, name) for p in found.parts) == pytest.approx(1.0, rel=EXACT)


def test_explained_draw_is_the_median_one(post):
    found = post.explain("real > 1")
    answers = found.answer.to_numpy()
    explained = answers[found.chain, found.draw]
    assert np.array_equal(answers, post.probability("real > 1"))
    assert (answers < explained).sum() <= answers.size // 2 <= (answers <= explained).sum()


def test_parts_are_told_apart_until_there_are_enough(post):
    n_parts = [len(post.explain("real > 1 and count > 2", k=k).parts) for k in (1, 2, 3, 4, 50)]
    assert n_parts == [1, 2, 3, 4, 4]


def test_columns_apart_from_the_question_do_not_split_it(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 40, rng)
    post = ex.random_posterior(ex.independent(table), table, rng)
    found = post.explain("real > 1")
    assert len(found.parts) == 1
    assert found.parts[0].facts == ()


def test_the_group_with_the_event_carries_it(groups):
    found = groups.explain("size < 10", k=3)
    first = found.parts[0]
    assert first.share > 0.8
    assert first.weight == pytest.approx(1 / 3, abs=0.05)
    assert first.probability > 0.9
    assert first.facts[0] == "`colour <b>` = 'red' 98% (whole table 33%)"
    assert first.facts[1].startswith("mass mostly ")
    assert not any(fact.startswith("size") for part in found.parts for fact in part.facts)


def test_numbers_in_words_are_deciles_of_the_part_and_of_the_table(groups):
    found = groups.explain("mass > 30", k=3)
    ends = [found.table[end].sel(part=part, feature="size").item() for part in (0, -1) for end in ("lower", "upper")]
    fact = next(fact for fact in found.parts[0].facts if fact.startswith("size"))
    shown = [float(word.strip("()")) for word in fact.split() if word.strip("()").replace(".", "").isdigit()]
    assert shown == pytest.approx(ends, abs=0.5)
    assert ends[2:] == pytest.approx(groups.quantile([0.1, 0.9], "size").to_numpy().ravel(), rel=EXACT)
    assert ends[0] > 20.0, "the part holds the large ones"
    assert 0.0 < ends[2] < 10.0, "the table holds the small ones too"


def test_evidence_changes_weights_and_not_what_a_part_is(groups):
    plain, given = groups.explain("mass > 30", k=3), groups.explain("mass > 30", "size > 15", k=3)
    assert given.given == "size > 15"
    assert [fact for fact in plain.parts[0].facts if not fact.startswith("size")] == list(given.parts[0].facts)
    assert plain.parts[0].weight == pytest.approx(given.parts[0].weight, rel=EXACT)
    assert given.parts[0].weight_given > 1.4 * given.parts[0].weight


def test_evidence_by_values_is_written_with_labels(post):
    assert post.explain("real > 1", {"label": "b", "count": 2}).given == "count = 2 and label = 'b'"


def test_posteriors_given_an_event_are_explained_too(groups):
    found = groups.condition("size > 15 or mass < 10").explain("mass > 30")
    assert sum(p.weight_given * p.probability for p in found.parts) == pytest.approx(found.answer.item(), rel=EXACT)


def test_prints_the_answer_and_a_line_for_each_part(groups):
    found = groups.explain("size < 10", k=3)
    headline, header, *lines = repr(found).splitlines()
    assert headline.startswith(f"P(size < 10) = {found.answer.item():.3g}, 0.9 interval ")
    assert header.split()[:3] == ["of", "the", "answer"]
    shown = ["<1%" if 0.0 < part.share < 0.01 else f"{part.share:.0%}" for part in found.parts]
    assert [line.split()[0] for line in lines] == shown


def test_html_is_escaped(groups):
    text = groups.explain("size < 10")._repr_html_()
    assert "<b>" not in text
    assert "&lt;b&gt;" in text


def test_parts_beyond_those_shown_are_one_line(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 40, rng)
    post = ex.random_posterior(ex.mixture(table, 7), table, rng, n_draw=1)
    found = post.explain("real > 1", k=3)
    assert len(found.parts) == 7
    assert "4 others together" in repr(found).splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"event": "real > 1", "k": 0}, "k=0"),
        ({"event": "real < 1 and real > 2"}, "probability zero"),
        ({"event": "real > 1", "given": pd.DataFrame({"count": [1, 2]})}, "rows as evidence"),
        ({"event": "real > 1", "given": "count < 0"}, "contradicts itself"),
    ],
)
def test_mistakes_are_told(post, arguments, text):
    with pytest.raises(QueryError, match=text):
        post.explain(**arguments)


def test_one_draw_without_weight_on_a_component_is_explained(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 40, rng)
    post = ex.random_posterior(ex.mixture(table, 3), table, rng, n_chain=1, n_draw=1)
    log_weight = post.params.log_weight.copy()
    log_weight[..., -3:] = np.log([0.5, 0.5, 1e-300]) + [0.0, 0.0, -np.inf]
    found = replace(post, params=Params(log_weight, post.params.theta)).explain("real > 1", "label = 'a'")
    assert found.parts[-1].share == 0.0
    assert np.isfinite(found.table["share"]).all()
