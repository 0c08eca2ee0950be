"""Probability of events: equal to recursion from the definition, with and without evidence; laws; shapes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import arviz as az
import hypothesis
import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit, freeze
from bayesjpt.errors import BayesjptWarning, QueryError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries import evidence, probability
from bayesjpt.queries.boxes import Box, complement, intersections
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import strategies
from tests.queries import slow

pytestmark = pytest.mark.filterwarnings("ignore:column .* is continuous")  # laws hold for single values too

EXACT = 1e-10
"""Relative, in probability."""

ROUNDING = 1e-12


def log_of(post: Posterior, boxes, given=None, **options) -> np.ndarray:
    """Return `log_probability` of boxes in place of an event, float64 (n_draw, ...)."""
    answer = probability.log_probability(post, Boxed(boxes), given, on_zero="nan", **options)
    return answer.values.reshape(-1, *answer.values.shape[2:])


class Boxed(tuple):
    """Boxes that stand for an event."""


@pytest.fixture(autouse=True, scope="module")
def boxes_as_events():
    """Let the verbs take `Boxed` in place of events: what becomes of events is tested elsewhere."""
    solve, read = probability.boxes, evidence.as_evidence

    def boxes(event, schema):
        return event if isinstance(event, Boxed) else solve(event, schema)

    def as_evidence(given, schema):
        return evidence.Evidence(boxes=tuple(given)) if isinstance(given, Boxed) else read(given, schema)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probability, "boxes", boxes)
        patch.setattr(probability, "as_evidence", as_evidence)
        yield


def assert_same_logs(found, expected) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    finite = np.isfinite(expected)
    assert np.array_equal(np.isfinite(found), finite)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.abs(np.expm1(found[finite] - expected[finite])).max(initial=0.0) < EXACT


# --- against the slow twin


@strategies.law(20)
@hypothesis.given(case=slow.posteriors(), seed=strategies.seeds, n_box=strategies.st.integers(1, 4))
def test_probability_is_that_of_the_slow_twin(case, seed, n_box):
    post, _ = case
    boxes = slow.random_boxes(post.schema, np.random.default_rng(seed), n_box)
    assert_same_logs(log_of(post, boxes), [twin.log_probability(boxes) for twin in slow.twins(post)])


@strategies.law(15)
@hypothesis.given(case=slow.posteriors(), seed=strategies.seeds)
def test_probability_given_an_event_is_that_of_the_slow_twin(case, seed):
    post, _ = case
    rng = np.random.default_rng(seed)
    boxes, given = slow.random_boxes(post.schema, rng, 2), slow.random_boxes(post.schema, rng, 2)
    joint = intersections(boxes, given)
    expected = []
    for twin in slow.twins(post):
        below = twin.log_probability(given)
        expected.append(twin.log_probability(joint) - below if below > -np.inf else np.nan)
    assert_same_logs(log_of(post, boxes, Boxed(given)), expected)


@strategies.law(15)
@hypothesis.given(case=slow.posteriors(), seed=strategies.seeds)
def test_probability_given_rows_is_that_of_the_slow_twin(case, seed):
    post, table = case
    boxes = slow.random_boxes(post.schema, np.random.default_rng(seed), 3)
    expected = [
        [twin.log_probability_given_row(boxes, table.values[:, i], table.observed[:, i]) for i in range(table.n_row)]
        for twin in slow.twins(post)
    ]
    assert_same_logs(log_of(post, boxes, table), expected)


@pytest.mark.slow
@strategies.long_law(40)
@hypothesis.given(case=slow.posteriors(), seed=strategies.seeds)
def test_probability_is_that_of_the_slow_twin_on_many_circuits(case, seed):
    test_probability_is_that_of_the_slow_twin.hypothesis.inner_test(case, seed, 1 + seed % 4)
    test_probability_given_an_event_is_that_of_the_slow_twin.hypothesis.inner_test(case, seed)
    test_probability_given_rows_is_that_of_the_slow_twin.hypothesis.inner_test(case, seed)


# --- laws


@pytest.fixture
def post(rng):
    """Return a posterior over seven columns of every base, with missing cells in training."""
    table = ex.make_table(ex.EVERY, 40, rng)
    return ex.random_posterior(ex.two_level(table), table, rng, n_draw=3)


EVENT = "real > 0.5 and count <= 3"
EVIDENCE = "label = 'a' or positive between 1 and 3"


def test_probabilities_of_an_event_and_its_complement_add_up_to_one(post):
    total = post.probability(EVENT) + post.probability(f"not ({EVENT})")
    assert np.abs(total - 1.0).max() < ROUNDING


def test_conditional_probabilities_of_an_event_and_its_complement_add_up_to_one(post):
    rows = pd.DataFrame({"label": ["a", "b", None], "positive": [1.0, np.nan, 2.0]})
    for given in (EVIDENCE, {"label": "b", "count": 4}, rows):
        total = post.probability(EVENT, given) + post.probability(f"not ({EVENT})", given)
        assert np.abs(total - 1.0).max() < ROUNDING


def test_chain_rule(post):
    joint = post.log_probability(f"({EVENT}) and ({EVIDENCE})")
    apart = post.log_probability(EVENT, EVIDENCE) + post.log_probability(EVIDENCE)
    assert np.abs(joint - apart).max() < ROUNDING


def test_probability_grows_with_nested_intervals(post):
    widths = np.linspace(0.0, 6.0, 25)
    found = np.array([post.probability(f"real between {1 - w} and {1 + w}").to_numpy() for w in widths])
    assert (np.diff(found, axis=0) > 0.0).all()


def test_order_of_evidence_does_not_matter(post):
    first = post.log_probability(EVENT, {"label": "a", "flag": "yes", "change": 1})
    second = post.log_probability(EVENT, {"change": 1, "flag": "yes", "label": "a"})
    assert np.array_equal(first, second)


def test_certain_event_has_probability_one_and_the_impossible_zero(post):
    assert np.abs(post.log_probability("real < 1 or real >= 1")).max() < ROUNDING
    assert (post.probability("real < 1 and real > 2") == 0.0).all()


def test_order_of_components_does_not_matter(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.mixture(table, 3), table, rng)
    circuit = post.circuit
    order = np.arange(circuit.n_edge)
    order[-3:] = order[-3:][::-1]
    turned = freeze(circuit._replace(child=circuit.child[order]))
    other = replace(post, circuit=turned, params=Params(post.params.log_weight[..., order], post.params.theta))
    found, expected = other.log_probability("real > 1 and count > 2"), post.log_probability("real > 1 and count > 2")
    assert np.abs(found - expected).max() < ROUNDING


def test_order_of_columns_does_not_matter(rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    moved = np.array([2, 0, 1])
    circuit = freeze(post.circuit._replace(leaf_var=np.argsort(moved)[post.circuit.leaf_var].astype(np.int32)))
    schema = Schema(tuple(table.schema.columns[c] for c in moved))
    other = Posterior(circuit, schema, post.params)
    for given in (None, "label in ('a', 'b')", {"count": 2}):
        found, expected = other.log_probability("real > 1", given), post.log_probability("real > 1", given)
        assert np.abs(found - expected).max() < ROUNDING


def test_order_of_labels_does_not_matter(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    moved = [2, 0, 1, 3]  # "other" stays last
    label = replace(ex.LABEL, labels=("c", "a", "b"), frequencies=tuple(ex.LABEL.frequencies[code] for code in moved))
    theta = post.params.theta.copy()
    for leaf in np.flatnonzero(post.circuit.leaf_var == 1):
        at = post.circuit.theta_at[leaf] + np.arange(4)
        theta[..., at] = theta[..., at[moved]]
    other = Posterior(post.circuit, Schema((ex.REAL, label)), Params(post.params.log_weight, theta))
    for event, given in (("label = 'b'", "real > 1"), ("label != 'a'", {"real": 2.0}), ("real > 1", {"label": "c"})):
        assert np.abs(other.log_probability(event, given) - post.log_probability(event, given)).max() < ROUNDING


def test_affine_change_of_units_does_not_matter(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    column = replace(
        ex.REAL,
        location=3.0 - 2.5 * ex.REAL.location,
        scale=2.5 * ex.REAL.scale,
        resolution=2.5 * ex.REAL.resolution,
    )
    # a change of sign turns normals and Student's t around
    other = replace(post, schema=Schema((replace(column, location=3.0 + 2.5 * ex.REAL.location), ex.COUNT)))
    found, expected = other.log_probability("real > 5.5", "count > 2"), post.log_probability("real > 1", "count > 2")
    assert np.abs(found - expected).max() < ROUNDING
    found, expected = other.log_probability("count > 2", {"real": 5.5}), post.log_probability("count > 2", {"real": 1})
    assert np.abs(found - expected).max() < ROUNDING
    turned = Table(other.schema, table.values * [[2.5], [1.0]] + [[3.0], [0.0]], table.observed)
    assert np.abs(other.log_density(turned) + np.log(2.5) - post.log_density(table)).max() < ROUNDING


# --- evidence


def test_mapping_is_one_row(post):
    given = {"label": "b", "positive": 2.0}
    rows = pd.DataFrame({"label": ["b"], "positive": [2.0]})
    assert np.array_equal(post.probability(EVENT, given), post.probability(EVENT, rows).isel(obs_id=0))


def test_empty_mapping_and_row_are_no_evidence(post):
    for given in ({}, {"label": None}):
        assert np.abs(post.log_probability(EVENT, given) - post.log_probability(EVENT)).max() < ROUNDING


def test_event_on_a_column_that_the_row_observes_answers_yes_or_no(post):
    rows = pd.DataFrame({"real": [0.0, 1.0, np.nan], "count": [2, 5, 2]})
    found = post.probability("real > 0.5 or count > 4", rows)
    assert (found.isel(obs_id=0) == 0.0).all()
    assert np.abs(found.isel(obs_id=1) - 1.0).max() < ROUNDING
    alone = post.probability("real > 0.5", {"count": 2})
    assert np.abs(found.isel(obs_id=2) / alone - 1.0).max() < ROUNDING


def test_blocks_of_rows_change_no_answer(post, rng, monkeypatch):
    table = ex.make_table(ex.EVERY, 50, rng, missing=0.5)
    whole = post.probability(EVENT, table)
    monkeypatch.setattr("bayesjpt.queries.given.QUERY_ROWS", 7)
    assert np.abs(post.probability(EVENT, table) - whole).max() < ROUNDING


def test_probability_of_a_label_is_its_parameter(rng):
    table = ex.make_table((ex.LABEL,), 30, rng)
    post = ex.random_posterior(ex.independent(table), table, rng)
    assert np.abs(post.probability("label = 'b'") - post.params.theta[..., 1]).max() < ROUNDING


def wide(n_column: int, rng: np.random.Generator) -> Posterior:
    """Return a mixture of two products of that many columns; a few parameters, again and again, spare the twin time."""
    columns = tuple(ex.named(ex.REAL if k % 2 else ex.LABEL, f"c{k}") for k in range(n_column))
    table = ex.make_table(columns, 5, rng)
    parts = tuple(Product(tuple(ColumnLeaf(c, np.arange(5)) for c in range(n_column))) for _ in range(2))
    circuit = build_circuit(Sum(parts, (1, 1)), table, lambda column: ex.registry.dictionary(column)[:1])
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=2)
    for family in set(circuit.leaf_family.tolist()):
        leaves = np.flatnonzero(circuit.leaf_family == family)
        at = circuit.theta_at[leaves, None] + np.arange(circuit.theta_len[leaves[0]])
        post.params.theta[..., at] = post.params.theta[..., at[rng.integers(0, 20, leaves.size)]]
    return post


def test_two_thousand_columns_of_evidence_do_not_underflow(rng):
    post = wide(2000, rng)
    table = ex.make_table(post.schema.columns, 2, rng)
    observed = table.observed.copy()
    observed[0] = False
    rows = Table(table.schema, table.values, observed)
    by_hand = slow.twins(post)
    found = log_of(post, [Box({0: np.array([[0.0, 0.0]])})], rows)
    for draw, twin in enumerate(by_hand):
        for row in range(2):
            expected = twin.log_probability_given_row(
                [Box({0: np.array([[0.0, 0.0]])})], rows.values[:, row], rows.observed[:, row]
            )
            assert np.abs(np.expm1(found[draw, row] - expected)) < EXACT
    far = Boxed([Box({c: np.array([[9.0, np.inf]]) for c in range(1, 2000, 2)})])
    assert (log_of(post, far) < -1000.0).all()
    # parameters recur, so columns round alike: some units in the last place of a sum of 30,000 nats
    np.testing.assert_allclose(log_of(post, far), [twin.log_probability(far) for twin in by_hand], rtol=1e-14)
    assert np.isfinite(post.probability("c0 = 'a'", far)).all()


# --- ratio of means


def test_ratio_of_means_is_the_mean_joint_over_the_mean_evidence(post):
    joint, below = post.probability(f"({EVENT}) and ({EVIDENCE})"), post.probability(EVIDENCE)
    found = post.probability(EVENT, EVIDENCE, ratio_of_means=True)
    assert found.dims == ()
    assert float(found) == pytest.approx(float(joint.mean() / below.mean()), rel=ROUNDING)


def test_ratio_of_means_given_rows_weighs_draws_by_their_density(post):
    rows = pd.DataFrame({"real": [1.0, -2.0], "label": ["a", "c"]})
    each = post.probability("count > 2", rows)
    weight = np.exp(post.log_density(rows))
    found = post.probability("count > 2", rows, ratio_of_means=True)
    assert found.dims == ("obs_id",)
    expected = (each * weight).mean(("chain", "draw")) / weight.mean(("chain", "draw"))
    assert np.abs(found / expected - 1.0).max() < ROUNDING


def test_ratio_of_means_differs_where_draws_disagree_about_the_evidence(rng):
    """The table of docs/explanation/queries.md: kinds with b always and half of the time, shares 0.8 and 0.1."""
    columns = tuple(ex.named(ex.LABEL, name) for name in "ab")
    table = ex.make_table(columns, 10, rng)
    circuit = ex.mixture(table, 2)
    theta = np.zeros((1, 2, circuit.n_theta))
    for column, first, second in ((0, (1.0, 0.0), (0.0, 1.0)), (1, (1.0, 0.0), (0.5, 0.5))):
        for leaf, labels in zip(np.flatnonzero(circuit.leaf_var == column), (first, second), strict=True):
            theta[..., circuit.theta_at[leaf] : circuit.theta_at[leaf] + 4] = np.maximum([*labels, 0.0, 0.0], 1e-300)
    log_weight = np.zeros((1, 2, circuit.n_edge))
    log_weight[0, :, -2:] = np.log([[0.8, 0.2], [0.1, 0.9]])
    post = Posterior(circuit, table.schema, Params(log_weight, theta))
    each = post.probability("a = 'a'", "b = 'a'")
    assert each.to_numpy().ravel() == pytest.approx([0.8 / 0.9, 0.1 / 0.55], rel=ROUNDING)
    together = post.probability("a = 'a'", "b = 'a'", ratio_of_means=True)
    assert float(together) == pytest.approx(0.45 / 0.725, rel=ROUNDING)
    assert float(each.mean()) == pytest.approx(0.535, abs=5e-4)


# --- impossible evidence


def test_impossible_event_as_evidence_is_refused_naming_the_first_column(rng):
    table = ex.make_table((ex.COUNT, ex.POSITIVE, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table, dictionary=ex.only("gamma", "poisson")), table, rng)
    beyond = Boxed([Box({0: np.array([[1.0, 4.0]]), 1: np.array([[-3.0, -1.0]]), 2: np.array([[0.0, 1.0]])})])
    with pytest.raises(QueryError, match=r"'positive'.*on_zero='nan'"):
        post.probability("label = 'a'", beyond)
    assert np.isnan(post.probability("label = 'a'", beyond, on_zero="nan")).all()


def test_contradiction_as_evidence_is_refused(post):
    with pytest.raises(QueryError, match="contradicts itself"):
        post.probability(EVENT, "real < 1 and real > 2")
    assert np.isnan(post.probability(EVENT, "real < 1 and real > 2", on_zero="nan")).all()


def point_mass(rng) -> Posterior:
    """Return a posterior in which the column real is known to be 2 wherever the label is 'a', and 3 elsewhere."""
    table = ex.make_table((ex.LABEL, ex.REAL), 20, rng)
    circuit = ex.mixture(table, dictionary=lambda column: ex.registry.dictionary(column)[:1])
    known = np.where(circuit.leaf_var == 1, np.cumsum(circuit.leaf_var == 1) - 1, -1).astype(np.int32)
    post = ex.random_posterior(
        freeze(circuit._replace(leaf_cell=known, cell=np.array([2.0, 2.0, 3.0, 3.0]))), table, rng
    )
    return post


def test_impossible_row_is_refused_naming_row_and_column(rng):
    rows = pd.DataFrame({"label": ["a", "b", "b"], "real": [2.0, 2.5, 3.0]})
    post = point_mass(rng)
    with pytest.raises(QueryError, match=r"row 2.*'real'"):
        post.probability("label = 'a'", rows)
    found = post.probability("label = 'a'", rows, on_zero="nan")
    assert np.isnan(found.isel(obs_id=1)).all()
    assert np.isfinite(found.isel(obs_id=[0, 2])).all()


def test_impossible_mapping_is_refused_naming_the_column(rng):
    with pytest.raises(QueryError, match=r"the row given as evidence.*'real'"):
        point_mass(rng).probability("label = 'a'", {"real": 2.5, "label": "b"})


def test_first_impossible_column_comes_before_later_ones(rng):
    table = ex.make_table((ex.POSITIVE, ex.named(ex.POSITIVE, "second"), ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table, dictionary=ex.only("gamma")), table, rng)
    below = np.array([[-2.0, -1.0]])
    with pytest.raises(QueryError, match="'positive'"):
        post.probability("label = 'a'", Boxed([Box({0: below, 1: below})]))


@pytest.mark.parametrize("word", ["raise", "NaN", ""])
def test_other_words_for_on_zero_are_refused(post, word):
    with pytest.raises(QueryError, match="'error' or 'nan'"):
        post.probability(EVENT, on_zero=word)


# --- shapes, and threads


def test_answers_carry_chain_draw_and_row_coordinates(post):
    rows = pd.DataFrame({"label": ["a", "b", "c"]})
    assert post.probability(EVENT).dims == ("chain", "draw")
    assert post.probability(EVENT, {"label": "a"}).dims == ("chain", "draw")
    assert post.probability(EVENT, rows).dims == ("chain", "draw", "obs_id")


def test_arviz_takes_answers_as_they_are(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_draw=30)
    found = post.probability("real > 1", pd.DataFrame({"label": ["a", "b"]}))
    assert len(az.summary(found)) == 2
    assert az.hdi(found).sizes["obs_id"] == 2
    assert az.plot_dist(found, backend="none").viz["dist"]["probability"].sizes["obs_id"] == 2


def test_eight_threads_asking_at_once_get_the_same_answers(post, rng):
    table = ex.make_table(ex.EVERY, 60, rng, missing=0.5)

    def ask(_number):
        return (
            post.log_probability(EVENT, EVIDENCE).to_numpy(),
            post.log_probability(EVENT, table).to_numpy(),
            post.expectation(given=table, on_zero="nan").to_numpy(),
            post.quantile(0.3, "real", EVIDENCE).to_numpy(),
        )

    alone = ask(0)
    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(ask, range(16)):
            for found, expected in zip(answers, alone, strict=True):
                assert np.array_equal(found, expected, equal_nan=True)


def test_complement_of_boxes_has_the_remaining_probability(post, rng):
    boxes = slow.random_boxes(post.schema, rng, 3)
    total = np.exp(log_of(post, boxes)) + np.exp(log_of(post, complement(boxes, post.schema)))
    assert np.abs(total - 1.0).max() < ROUNDING


def test_a_single_whole_number_among_multiples_of_five_tells_which_range_is_meant(rng, recwarn):
    table = bj.as_table({"paid": 5 * rng.integers(0, 200, 300), "n": rng.integers(0, 200, 300)})
    post = bj.Posterior.from_circuit(ex.independent(table), table.schema)
    for event in ("paid > 500", "paid between 498 and 502", "paid between 498 and 512", "n = 500", "n in (4, 5)"):
        post.probability(event)
    assert not recwarn
    with pytest.warns(BayesjptWarning, match="multiples of 5 alone.* ask for paid between 498 and 502$"):
        alone = post.probability("paid = 500")
    assert (alone < 0.3 * post.probability("paid between 498 and 502")).all()
