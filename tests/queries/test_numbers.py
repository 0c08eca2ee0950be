"""Expectation, variance, quantiles and cumulative probabilities: against slow twins, laws, refusals."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

import arviz as az
import hypothesis
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import freeze
from bayesjpt.errors import QueryError, SchemaError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries import evidence, question
from bayesjpt.table.schema import Schema
from tests import examples as ex
from tests import strategies
from tests.queries import slow

EXACT = 1e-10
"""Relative, or in scales of the column near 0."""

QUANTILE = 1e-8
"""In scales of the column."""

ROUNDING = 1e-12
LEVELS = (0.003, 0.25, 0.5, 0.9)


class Boxed(tuple):
    """Boxes that stand for an event."""


@pytest.fixture(autouse=True, scope="module")
def boxes_as_evidence():
    """Let the verbs take `Boxed` as evidence: what becomes of events is tested elsewhere."""
    read = question.as_evidence

    def as_evidence(given, schema):
        return evidence.Evidence(boxes=tuple(given)) if isinstance(given, Boxed) else read(given, schema)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question, "as_evidence", as_evidence)
        yield


def scalar(answer) -> float:
    """Return the only value of an answer."""
    return float(answer.to_numpy().item())


def numbers_of(post: Posterior) -> list[int]:
    return [position for position, column in enumerate(post.schema) if column.base != "category"]


def assert_close(found: float, expected: float, unit: float) -> None:
    if math.isfinite(expected):
        assert abs(found - expected) <= EXACT * max(abs(expected), unit)
    else:
        assert found == expected


def assert_is_quantile(x: float, q: float, column, cdf) -> None:
    """Assert that x is the smallest value with cumulative probability q, up to the promised distance."""
    reach = QUANTILE * column.scale if column.base == "real" else 0.0
    below = x - (reach if column.base == "real" else 1.0)
    assert cdf(x + reach) >= q - ROUNDING
    assert cdf(below) < q + ROUNDING


def assert_column_as_twin(found: dict[str, np.ndarray], twin: slow.Twin, column, components, points) -> None:
    mean, variance = twin.moments(components)
    assert_close(found["mean"], mean, column.scale)
    assert_close(found["variance"], variance, column.scale**2)
    for value, point in zip(found["cdf"], points, strict=True):
        assert_close(value, twin.cdf(components, point), EXACT)
    for value, q in zip(found["quantile"], LEVELS, strict=True):
        assert_is_quantile(value, q, column, lambda x: twin.cdf(components, x))


def points_of(column, rng) -> list[float]:
    return [*rng.normal(column.location, column.scale, 2), *column.atoms]


@strategies.law(12)
@hypothesis.given(case=slow.posteriors(max_columns=2), seed=strategies.seeds)
def test_answers_given_an_event_are_those_of_the_slow_twin(case, seed):
    post, _ = case
    rng = np.random.default_rng(seed)
    given = Boxed(slow.random_boxes(post.schema, rng, int(rng.integers(1, 4))))
    hypothesis.assume(numbers_of(post))
    mean, variance = post.expectation(None, given, on_zero="nan"), post.variance(None, given, on_zero="nan")
    quantiles = post.quantile(LEVELS, None, given, on_zero="nan")
    for position in numbers_of(post):
        column = post.schema.columns[position]
        points = points_of(column, rng)
        below = post.cdf(points, column.name, given, on_zero="nan")
        for draw, twin in enumerate(slow.twins(post)):
            at = {"chain": 0, "draw": draw, "feature": column.name}
            if twin.log_probability(given) == -np.inf:
                assert np.isnan(mean.sel(at))
                assert np.isnan(quantiles.sel(at)).all()
                continue
            found = {"mean": mean, "variance": variance, "cdf": below, "quantile": quantiles}
            found = {name: answer.sel(at).to_numpy() for name, answer in found.items()}
            assert_column_as_twin(found, twin, column, twin.components(position, boxes=given), points)


@strategies.law(12)
@hypothesis.given(case=slow.posteriors(max_columns=3, n_draw=1), seed=strategies.seeds)
def test_answers_given_rows_are_those_of_the_slow_twin(case, seed):
    post, table = case
    rng = np.random.default_rng(seed)
    table = table.take(range(3))
    hypothesis.assume(numbers_of(post))
    mean, variance = post.expectation(None, table, on_zero="nan"), post.variance(None, table, on_zero="nan")
    quantiles = post.quantile(LEVELS, None, table, on_zero="nan")
    twin = slow.twins(post)[0]
    for position in numbers_of(post):
        column = post.schema.columns[position]
        points = points_of(column, rng)
        below = post.cdf(points, column.name, table, on_zero="nan")
        for row in range(table.n_row):
            x, observed = table.values[:, row], table.observed[:, row]
            found = {"mean": mean, "variance": variance, "cdf": below, "quantile": quantiles}
            at = {"chain": 0, "draw": 0, "feature": column.name, "obs_id": row}
            found = {name: answer.sel(at).to_numpy() for name, answer in found.items()}
            if observed[position]:
                assert found["mean"] == x[position]
                assert found["variance"] == 0.0
                assert (found["quantile"] == x[position]).all()
                assert (found["cdf"] == (x[position] <= np.array(points))).all()
            elif slow.log_value(twin.circuit, twin.params, twin.row_score(x, observed)) == -np.inf:
                assert all(np.isnan(answer).all() for answer in found.values())
            else:
                assert_column_as_twin(found, twin, column, twin.components(position, row=(x, observed)), points)


@pytest.mark.slow
@strategies.long_law(40)
@hypothesis.given(case=slow.posteriors(max_columns=3, n_draw=1), seed=strategies.seeds)
def test_answers_are_those_of_the_slow_twin_on_many_circuits(case, seed):
    test_answers_given_an_event_are_those_of_the_slow_twin.hypothesis.inner_test(case, seed)
    test_answers_given_rows_are_those_of_the_slow_twin.hypothesis.inner_test(case, seed)


# --- laws


@pytest.fixture
def post(rng):
    """Return a posterior over seven columns of every base."""
    table = ex.make_table(ex.EVERY, 40, rng)
    return ex.random_posterior(ex.two_level(table), table, rng, n_draw=3)


def test_cdf_is_the_probability_of_the_event(post):
    rows = pd.DataFrame({"label": ["a", "b"], "count": [1, 4]})
    for given in (None, "count > 2", {"label": "a"}, rows):
        assert np.abs(post.cdf(1.5, "real", given) - post.probability("real <= 1.5", given)).max() < ROUNDING


def test_quantile_inverts_the_cdf(post):
    for given in (None, "real > 0 and label = 'a'"):
        found = post.quantile([0.1, 0.5, 0.99], "real", given)
        for q in (0.1, 0.5, 0.99):
            for draw in range(post.n_draw):
                one = replace(post, params=Params(*(array[:1, draw : draw + 1] for array in post.params)))
                x = scalar(found.sel(chain=0, draw=draw, quantile=q, feature="real"))
                assert scalar(one.cdf(x, "real", given)) == pytest.approx(q, abs=1e-8)


def test_law_of_total_expectation(post):
    inside, outside = post.probability("count > 2"), post.probability("count <= 2")
    total = inside * post.expectation("real", "count > 2") + outside * post.expectation("real", "count <= 2")
    assert np.abs(total - post.expectation("real")).max() < EXACT


def test_law_of_total_variance(post):
    share = {given: post.probability(given) for given in ("count > 2", "count <= 2")}
    mean = post.expectation("real")
    total = sum(
        share[given] * (post.variance("real", given) + (post.expectation("real", given) - mean) ** 2) for given in share
    )
    assert np.abs(total / post.variance("real") - 1.0).max() < EXACT


def test_change_of_units_changes_moments_and_quantiles_alike(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    column = replace(ex.REAL, location=3.0 + 2.5 * ex.REAL.location, scale=2.5 * ex.REAL.scale)
    other = replace(post, schema=Schema((column, ex.COUNT)))
    for given in (None, "count > 2", {"count": 1}):
        mean, turned = post.expectation("real", given), other.expectation("real", given)
        assert np.abs(turned - (3.0 + 2.5 * mean)).max() < EXACT
        assert np.abs(other.variance("real", given) / post.variance("real", given) - 6.25).max() < EXACT
        moved = other.quantile(0.3, "real", given) - (3.0 + 2.5 * post.quantile(0.3, "real", given))
        assert np.abs(moved).max() < QUANTILE * 5.0


@pytest.mark.parametrize("unit", [1e-250, 1e120, 1e300])
def test_quantiles_do_not_depend_on_how_large_the_unit_is(rng, unit):
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng)
    column = replace(ex.REAL, location=unit * ex.REAL.location, scale=unit * ex.REAL.scale)
    other = replace(post, schema=Schema((column, ex.COUNT)))
    found, expected = (p.quantile([0.005, 0.5, 0.995], "real").to_numpy() for p in (other, post))
    np.testing.assert_allclose(found / unit, expected, atol=QUANTILE * ex.REAL.scale)


def test_quantiles_grow_with_q(post):
    found = post.quantile(np.linspace(0.01, 0.99, 30))
    assert (found.diff("quantile") >= 0.0).all()


def test_quantiles_of_integers_are_integers(post):
    found = post.quantile([0.1, 0.5, 0.9], ["count", "change", "levels"])
    assert np.array_equal(found, np.rint(found))


def test_large_offsets_cost_no_digits(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 30, rng)
    post = ex.random_posterior(ex.mixture(table, dictionary=ex.only("normal")), table, rng)
    far = replace(post, schema=Schema((replace(ex.REAL, location=1e9 + ex.REAL.location), ex.LABEL)))
    rows = pd.DataFrame({"label": ["a", "b"]})
    for given in (None, "label = 'a'", rows):
        assert np.abs(far.variance("real", given) / post.variance("real", given) - 1.0).max() < EXACT
        assert np.abs(far.expectation("real", given) - 1e9 - post.expectation("real", given)).max() < 1e-6


def test_columns_and_rows_one_by_one_or_together_are_the_same(post, rng):
    table = ex.make_table(ex.EVERY, 12, rng, missing=0.6)
    together = post.expectation(given=table, on_zero="nan")
    for name in ("real", "count"):
        alone = post.expectation(name, table.take(range(5, 12)), on_zero="nan")
        found = together.sel(feature=name).isel(obs_id=slice(5, 12))
        np.testing.assert_allclose(alone.sel(feature=name), found, rtol=EXACT)


# --- flats, jumps, and no moments


def single(column, family: str, theta, **more) -> Posterior:
    """Return a posterior of one draw, one column and one leaf."""
    table = ex.make_table((column,), 10, np.random.default_rng(0))
    circuit = ex.independent(table, dictionary=lambda _: (ex.registry.family(family),))
    if more:
        circuit = freeze(circuit._replace(**more))
    return Posterior(circuit, table.schema, Params(np.zeros((1, 1, 0)), np.array(theta, float)[None, None]))


def test_quantile_inside_a_jump_is_the_atom_and_beside_it_is_not():
    table = slow.table_of((slow.ATOMIC,), 10, np.random.default_rng(0))
    circuit = ex.independent(table, dictionary=ex.only("normal", "atom"))
    normal_first = circuit.leaf_family[0] == ex.registry.number("normal")
    assert normal_first
    theta = np.array([1.0, 0.0, 0.7, 0.3])  # normal: variance, mu, around 1 with scale 2; atoms 0 and 5
    post = Posterior(circuit, table.schema, Params(np.log([[[0.5, 0.5]]]), theta[None, None]))
    below = 0.5 * scipy.stats.norm(1.0, 2.0).cdf(0.0)
    inside = post.quantile([below + 1e-9, below + 0.2, below + 0.35 - 1e-9], "atomic")
    assert (inside == 0.0).all()
    beside = post.quantile([below - 1e-6, below + 0.35 + 1e-6], "atomic").to_numpy().ravel()
    assert beside[0] < 0.0 < beside[1]


def test_quantile_at_a_flat_part_is_its_left_end():
    post = single(ex.LEVELS, "categorical", [0.25, 0.25, 0.25, 0.25])
    assert post.quantile([0.25, 0.5, 0.75], "levels").to_numpy().ravel().tolist() == [0.0, 1.0, 2.0]
    assert scalar(post.quantile(0.500001, "levels")) == 2.0


def test_quantile_between_two_separated_parts_stays_inside_one():
    given = "real between 0 and 1 or real between 7 and 8"
    post = single(ex.REAL, "normal", [4.0, 1.0])
    share = post.probability("real <= 1", given)
    found = post.quantile([scalar(share) - 1e-3, scalar(share) + 1e-3], "real", given).to_numpy().ravel()
    assert found[0] < 1.0
    assert found[1] > 7.0


def test_expectation_without_mean_is_infinite():
    post = single(ex.REAL, "student_t", [1.0, 0.0, 0.9])
    assert scalar(post.expectation("real")) == np.inf
    assert scalar(post.variance("real")) == np.inf
    assert np.isfinite(post.expectation("real", "real between -100 and 100"))
    assert np.isfinite(post.quantile(0.999, "real"))


def test_variance_without_second_moment_is_infinite():
    post = single(ex.REAL, "student_t", [1.0, 0.0, 1.5])
    assert np.isfinite(post.expectation("real"))
    assert scalar(post.variance("real")) == np.inf


@pytest.mark.parametrize("q", [1e-12, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-10])
def test_quantiles_of_a_single_leaf_are_scipys(q):
    expected = scipy.stats.norm(1.0 + 2.0 * 0.3, 2.0 * math.sqrt(0.7)).ppf(q)
    assert scalar(single(ex.REAL, "normal", [0.7, 0.3]).quantile(q)) == pytest.approx(expected, abs=QUANTILE * 2.0)
    expected = scipy.stats.gamma(0.4, scale=ex.POSITIVE.scale / 1.3).ppf(q)
    found = scalar(single(ex.POSITIVE, "gamma", [0.4, 1.3]).quantile(q))
    assert found == pytest.approx(expected, abs=QUANTILE * ex.POSITIVE.scale)
    assert scalar(single(ex.COUNT, "poisson", [7.5]).quantile(q)) == scipy.stats.poisson(7.5).ppf(q)


@pytest.mark.parametrize("given", [(3.0, 9.0), (-np.inf, 1.0), (-30.0, -20.0), (11.0, 13.0), (21.0, 22.0)])
def test_cdf_close_to_an_end_of_what_is_given_keeps_its_digits(given):
    """There two cumulative probabilities are nearly the same."""
    post = single(ex.REAL, "normal", [0.7, 0.3])
    lo, hi = max(given[0], -40.0), min(given[1], 40.0)
    event = bj.col("real").between(*given)
    for share in (1e-3, 0.03, 0.3, 0.9):
        x = lo + share * (hi - lo)
        part = post.probability(bj.col("real") <= x, event)
        assert scalar(post.cdf(x, "real", event)) == pytest.approx(scalar(part), rel=EXACT, abs=0.0)


# --- bounds around the expectation


def test_bounds_take_the_same_share_on_either_side_of_the_expectation(post):
    bounds = post.confidence_bounds("real", "label = 'a'", confidence=0.3)
    for draw in range(post.n_draw):
        at = {"chain": 1, "draw": draw}
        one = replace(post, params=Params(*(array[1:, draw : draw + 1] for array in post.params)))
        below, centre, above = (
            scalar(one.cdf(scalar(bounds[name].sel(at)), "real", "label = 'a'"))
            for name in ("lower", "expectation", "upper")
        )
        assert (centre - below) / centre == pytest.approx(0.3, abs=1e-8)
        assert (above - centre) / (1.0 - centre) == pytest.approx(0.3, abs=1e-8)
        assert above - below == pytest.approx(0.3, abs=1e-8)


def test_bounds_of_a_symmetric_leaf_are_equation_seven():
    bounds = single(ex.REAL, "normal", [0.7, 0.3]).confidence_bounds(confidence=0.8)
    leaf = scipy.stats.norm(1.0 + 2.0 * 0.3, 2.0 * math.sqrt(0.7))
    assert scalar(bounds["lower"]) == pytest.approx(leaf.ppf(0.5 - 0.4), abs=QUANTILE * 2.0)
    assert scalar(bounds["upper"]) == pytest.approx(leaf.ppf(0.5 + 0.4), abs=QUANTILE * 2.0)


def test_bounds_given_rows_are_those_given_each_row(post):
    rows = pd.DataFrame({"label": ["a", "b"], "positive": [1.0, 3.0]})
    together = post.confidence_bounds(["real", "count"], rows, confidence=0.4)
    for row in range(2):
        alone = post.confidence_bounds(["real", "count"], rows.iloc[row].to_dict(), confidence=0.4)
        for name in ("lower", "expectation", "upper"):
            np.testing.assert_allclose(together[name].isel(obs_id=row), alone[name], atol=2 * QUANTILE * 2.0)


def test_bounds_of_skewed_columns_are_finite_and_inside_the_support():
    skewed = single(ex.POSITIVE, "exponential", [1.0]).confidence_bounds(confidence=0.95)
    below = -math.expm1(-1.0)  # the expectation is the 63 % quantile
    leaf = scipy.stats.expon(scale=ex.POSITIVE.scale)
    assert scalar(skewed["lower"]) == pytest.approx(leaf.ppf(0.05 * below), rel=1e-6)
    assert scalar(skewed["upper"]) == pytest.approx(leaf.ppf(1.0 - 0.05 * (1.0 - below)), rel=1e-6)
    wide = single(ex.POSITIVE, "gamma", [0.05, 1.0]).confidence_bounds("positive", "positive < 4", confidence=0.99)
    assert 0.0 <= scalar(wide["lower"]) <= scalar(wide["expectation"]) <= scalar(wide["upper"]) < 4.0
    below = single(ex.COUNT, "geometric", [0.9]).confidence_bounds(confidence=0.999)
    assert scalar(below["lower"]) == 0.0
    assert np.isfinite(scalar(below["upper"]))


def test_bounds_are_finite_where_the_expectation_is_the_largest_value():
    bounds = single(ex.LEVELS, "categorical", [1e-300, 1e-300, 1e-300, 1.0]).confidence_bounds(confidence=0.9)
    assert scalar(bounds["lower"]) == scalar(bounds["upper"]) == ex.LEVELS.levels[-1]


# --- refusals and shapes


def test_columns_of_labels_are_refused_pointing_to_probability(post):
    for ask in (post.expectation, post.variance, lambda column: post.quantile(0.5, column)):
        with pytest.raises(QueryError, match=r"'label' holds labels.*post\.probability"):
            ask("label")


def test_table_of_labels_alone_is_refused(rng):
    table = ex.make_table((ex.LABEL,), 10, rng)
    with pytest.raises(QueryError, match=r"post\.probability"):
        ex.random_posterior(ex.independent(table), table, rng).expectation()


def test_unknown_repeated_and_missing_names_are_refused(post):
    with pytest.raises(SchemaError, match="'real'"):
        post.expectation("reel")
    with pytest.raises(QueryError, match="named twice"):
        post.expectation(["real", "real"])
    with pytest.raises(QueryError, match="no columns"):
        post.expectation([])


@pytest.mark.parametrize("verb", ["expectation", "marginal", "dependence", "plot_marginal"])
@pytest.mark.parametrize("columns", [3.5, [3.5, 4]])
def test_columns_that_are_no_names_are_refused(post, verb, columns):
    with pytest.raises(QueryError, match=r"column 3.5, of type float.*names of columns"):
        getattr(post, verb)(columns)


def test_a_column_and_its_values_in_the_wrong_order_are_refused(post):
    with pytest.raises(QueryError, match=r"q = 'real'.*probabilities"):
        post.quantile("real", 0.5)
    with pytest.raises(QueryError, match=r"column 1.0, of type float.*names of columns"):
        post.cdf("real", [1.0, 2.0])


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, float("nan"), [0.5, 2.0], [], [[0.5]]])
def test_levels_that_are_no_probabilities_are_refused(post, q):
    with pytest.raises(QueryError, match="strictly between 0 and 1"):
        post.quantile(q)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, float("nan")])
def test_confidence_that_is_no_probability_is_refused(post, confidence):
    with pytest.raises(QueryError, match="strictly between 0 and 1"):
        post.confidence_bounds(confidence=confidence)


def test_missing_points_are_refused(post):
    with pytest.raises(QueryError, match="missing value"):
        post.cdf(float("nan"), "real")


def test_impossible_evidence_is_refused_or_nan(post):
    given = "real < 1 and real > 2"
    for ask in (post.expectation, post.variance, lambda *a, **k: post.quantile(0.5, *a, **k)):
        with pytest.raises(QueryError, match="contradicts itself"):
            ask("count", given)
        assert np.isnan(ask("count", given, on_zero="nan")).all()


def test_answers_are_labelled_by_columns_quantiles_and_rows(post):
    rows = pd.DataFrame({"label": ["a", "b"]})
    assert post.expectation(["count", "real"])["feature"].to_numpy().tolist() == ["count", "real"]
    assert post.expectation(given=rows).dims == ("chain", "draw", "feature", "obs_id")
    assert post.quantile([0.1, 0.9], "real", rows).dims == ("chain", "draw", "quantile", "feature", "obs_id")
    assert post.quantile(0.1, "real", {"label": "a"}).dims == ("chain", "draw", "feature")
    assert post.cdf([0.0, 1.0], "real").dims == ("chain", "draw", "value", "feature")


def test_arviz_takes_answers_as_they_are(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 30, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_draw=30)
    answers = (post.expectation(), post.variance(), post.quantile([0.1, 0.9]), post.cdf([0.0, 1.0], "real"))
    for answer in answers:
        n = int(np.prod(answer.shape[2:]))
        assert len(az.summary(answer)) == n
        assert az.hdi(answer).sizes["feature"] == answer.sizes["feature"]
        drawn = az.plot_dist(answer, backend="none")
        assert drawn.viz["dist"][answer.name].size == n


@pytest.fixture(scope="module")
def dated() -> Posterior:
    frame = pd.DataFrame({"day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(300), "D")})
    table = bj.as_table(frame)
    return Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=300), table.schema)


@pytest.mark.parametrize(
    "day",
    ["2020-05-30", datetime.date(2020, 5, 30), pd.Timestamp("2020-05-30"), np.datetime64("2020-05-30", "ns"), 18412],
    ids=["text", "date", "timestamp", "datetime64", "days"],
)
def test_cdfs_of_dates_take_dates_as_events_do(dated, day):
    expected = dated.probability("day <= '2020-05-30'")
    assert scalar(dated.cdf(day, "day")) == pytest.approx(scalar(expected), rel=EXACT)
    assert dated.cdf([day], "day").sizes["value"] == 1


def test_cdfs_of_arrays_without_axes_are_those_of_a_number(post):
    assert post.cdf(np.array(1.0), "real").equals(post.cdf(1.0, "real"))


@pytest.mark.parametrize("x", ["a", "1", [[1.0, 2.0]], [], True, None], ids=repr)
def test_cdfs_at_what_is_no_number_are_refused(post, x):
    with pytest.raises(QueryError):
        post.cdf(x, "real")
