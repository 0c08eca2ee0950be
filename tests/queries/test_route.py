"""Questions that visit a part of a circuit: the part is small, and no answer changes by a bit."""

from __future__ import annotations

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt import Posterior
from bayesjpt.circuit import arrays
from bayesjpt.queries import probability, question
from bayesjpt.queries.evidence import as_evidence
from bayesjpt.queries.route import routed
from tests import examples as ex

COLUMNS = (ex.REAL, ex.POSITIVE, ex.COUNT, ex.LABEL, ex.FLAG, ex.ZEROS)
GIVEN = [
    "label = 'a' and real > 0.5",
    "(label = 'a' and real > 0.5) or (label = 'b' and count <= 2)",
    "flag = 'yes' or count > 2",
    {"label": "a", "real": 1.3, "zeros": 0.0},
    {"count": 2},
]


@pytest.fixture(scope="module", params=["tree", "latent"])
def post(request) -> Posterior:
    rng = np.random.default_rng(1)
    table = ex.make_table(COLUMNS, 120, rng)
    circuit = bj.learn_jpt(table, rng, min_rows=5) if request.param == "tree" else ex.two_level(table)
    return ex.random_posterior(circuit, table, rng, n_chain=2, n_draw=2)


def answers(post: Posterior, given) -> list[np.ndarray]:
    event = "positive > 1 or count in (1, 3)"
    if given is None:
        return [post.probability("positive > 1 and label = 'a'"), post.probability("label != 'b' and real < 2")]
    return [
        post.probability(event, given),
        post.expectation(["positive", "zeros"], given),
        post.cdf([0.5, 1.0, 2.0], "positive", given),
        post.quantile([0.2, 0.7], ["positive", "count"] if given != {"count": 2} else "positive", given),
    ]


@pytest.mark.parametrize("given", [None, *GIVEN], ids=str)
def test_answers_are_those_of_the_whole_circuit(post, given, monkeypatch):
    found = answers(post, given)
    for module in (probability, question):
        monkeypatch.setattr(module, "routed", lambda whole, *_: whole)
    for one, expected in zip(found, answers(post, given), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_a_part_holds_what_the_evidence_leaves(post, given):
    evidence = as_evidence(given, post.schema)
    asked = post.schema.index("positive")
    part = routed(post, evidence, [asked])
    assert set(part.circuit.leaf_var.tolist()) == evidence.columns | {asked}
    assert part.circuit.n_edge < post.circuit.n_edge
    assert part.circuit.n_leaf < post.circuit.n_leaf
    assert part.params.theta is post.params.theta  # not copied


def test_a_row_leaves_few_leaves_of_a_tree(post):
    if post.circuit.kind[-1] != arrays.HARD:
        pytest.skip("a latent circuit excludes nothing")
    part = routed(post, as_evidence(GIVEN[3], post.schema), [1]).circuit
    assert (part.kind == arrays.PRODUCT).sum() <= 0.3 * (post.circuit.kind == arrays.PRODUCT).sum()


def test_several_rows_are_answered_by_the_whole(post):
    rows = ex.make_table(COLUMNS, 3, np.random.default_rng(2))
    assert routed(post, as_evidence(rows, post.schema), [1]) is post
