"""Questions to trees of experts, against slow twins, closed forms and quadrature."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
from scipy.special import expit, softmax

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, QueryError, SchemaError, TableError
from bayesjpt.experts.gate_words import at_average, gate_in_words
from bayesjpt.experts.words import chance, linear
from bayesjpt.table.covariates import Covariate, Covariates, make_covariates
from bayesjpt.table.schema import Column, Schema
from tests.experts import naive

EXACT = 1e-12
N_ROW = 60
DRAW = (1, 2)


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    x = rng.uniform(-2.0, 2.0, N_ROW)
    return pd.DataFrame(
        {
            "x": x,
            "color": rng.choice(["red", "green", "blue"], N_ROW),
            "real": np.round(np.where(x > 0, 2 * x, -x) + rng.normal(0, 0.2, N_ROW), 3),
            "two": np.where(x + rng.normal(size=N_ROW) > 0, "yes", "no"),
            "three": np.where(x > 1, "c", np.where(rng.random(N_ROW) < 0.5, "a", "b")),
            "count": rng.poisson(np.exp(0.5 + 0.4 * x)) + np.r_[30.0, np.zeros(N_ROW - 1)],
            "time": np.round(rng.gamma(2.0, np.exp(0.3 * x)), 4) + 0.001,
        }
    )


EXPERTS = {"real": "gaussian", "two": "logistic", "three": "multinomial", "count": "poisson", "time": "gamma"}


@pytest.fixture(scope="module")
def posts() -> dict:
    own = {"draws": 4, "tune": 10, "chains": 2, "rng": 3, "given": ["x", "color"], "depth": 2}
    out = {
        name: bj.fit_experts(frame(), target=name, experts=kind, kinds={"count": "integer"}, **own)
        for name, kind in EXPERTS.items()
    }
    return out | {
        "all": bj.fit_experts(frame(), target=list(EXPERTS), experts=EXPERTS, kinds={"count": "integer"}, **own)
    }


@pytest.mark.parametrize("name", [*EXPERTS, "all"])
def test_log_density_is_that_of_the_definition(posts, name):
    post = posts[name]
    table = post.read(frame())
    found = post.log_density(table).values[DRAW]
    np.testing.assert_allclose(found, naive.log_density(post, table, DRAW), rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("name", EXPERTS)
def test_the_circuit_of_a_row_has_the_same_log_density(posts, name):
    post, rows = posts[name], frame()
    found = post.at(rows[["x", "color"]].iloc[[5]]).log_density(rows[[name]].iloc[[5]])
    each = post.log_density(rows).sel(obs_id=5)
    np.testing.assert_allclose(found.values[..., 0], each.values, rtol=EXACT)


@pytest.mark.parametrize("name", ["real", "time", "count"])
def test_moments_are_those_of_the_definition(posts, name):
    post, rows = posts[name], frame().head(5)
    table = post.read(rows)
    x, gate_x = post.model.covariates.matrix(table), post.model.gate_covariates.matrix(table)
    parts = post.variance_parts(rows)
    for row in range(5):
        weight = naive.path_probabilities(post.coefficients.gate[DRAW], gate_x[row])
        leaves = [naive.leaf_distribution(post, 0, DRAW, leaf, x[row]) for leaf in range(4)]
        mean = sum(w * leaf.mean() for w, leaf in zip(weight, leaves, strict=True))
        within = sum(w * leaf.var() for w, leaf in zip(weight, leaves, strict=True))
        between = sum(w * (leaf.mean() - mean) ** 2 for w, leaf in zip(weight, leaves, strict=True))
        at = {"chain": DRAW[0], "draw": DRAW[1], "obs_id": row, "feature": name}
        np.testing.assert_allclose(post.expectation(rows).sel(at), mean, rtol=EXACT)
        np.testing.assert_allclose(post.variance(rows).sel(at), within + between, rtol=EXACT)
        np.testing.assert_allclose(parts["within"].sel(at), within, rtol=EXACT)
        np.testing.assert_allclose(parts["between"].sel(at), between, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("name", ["real", "time"])
def test_probabilities_are_integrals_of_the_density(posts, name):
    post, row = posts[name], frame().iloc[[3]]
    lo, hi = (float(row[name].iloc[0]) - 0.3, float(row[name].iloc[0]) + 0.8)
    lo = max(lo, 0.01)
    found = post.probability(bj.col(name).between(lo, hi), row).values[DRAW][0]

    def density(value):
        return np.exp(naive.log_density(post, post.read(row.assign(**{name: value})), DRAW)[0])

    expected = scipy.integrate.quad(density, lo, hi, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
    np.testing.assert_allclose(found, expected, rtol=EXACT)


def test_quantiles_and_cumulative_probabilities_are_inverse(posts):
    post, rows = posts["real"], frame().head(3)
    found = post.quantile([0.05, 0.5, 0.95], rows)
    assert found.sizes == {"chain": 2, "draw": 4, "quantile": 3, "feature": 1, "obs_id": 3}
    for row in range(3):
        for k, level in enumerate((0.05, 0.5, 0.95)):
            value = float(found[(*DRAW, k, 0, row)])
            np.testing.assert_allclose(float(post.cdf(value, rows)[(*DRAW, 0, row)]), level, atol=1e-7)


@pytest.mark.parametrize("name", ["real", "time", "count"])
def test_cumulative_probabilities_are_those_of_the_definition(posts, name):
    post, rows = posts[name], frame().head(3)
    table = post.read(rows)
    x, gate_x = post.model.covariates.matrix(table), post.model.gate_covariates.matrix(table)
    for value in (0.5, 2.0, 7.0):
        found = post.cdf(value, rows).values[DRAW][0]
        for row in range(3):
            weight = naive.path_probabilities(post.coefficients.gate[DRAW], gate_x[row])
            each = [naive.leaf_distribution(post, 0, DRAW, leaf, x[row]).cdf(value) for leaf in range(4)]
            np.testing.assert_allclose(found[row], weight @ each, rtol=EXACT, atol=EXACT)


def test_probabilities_of_labels_are_those_of_the_definition_and_add_up(posts):
    post, rows = posts["three"], frame().head(4)
    table = post.read(rows)
    x, gate_x = post.model.covariates.matrix(table), post.model.gate_covariates.matrix(table)
    total = 0.0
    for k, label in enumerate("abc"):
        found = post.probability(bj.col("three") == label, rows).values[DRAW]
        for row in range(4):
            weight = naive.path_probabilities(post.coefficients.gate[DRAW], gate_x[row])
            expected = sum(w * naive.leaf_distribution(post, 0, DRAW, leaf, x[row])[k] for leaf, w in enumerate(weight))
            np.testing.assert_allclose(found[row], expected, rtol=EXACT)
        total = total + found
    other = post.probability(bj.col("three") == "other", rows).values[DRAW]
    np.testing.assert_allclose(total + other, 1.0, rtol=EXACT)
    predicted = post.predict(rows)
    assert list(predicted.columns) == ["a", "b", "c"]
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)


def test_masses_of_recorded_cells_are_probabilities(posts):
    for name in EXPERTS:
        mass = posts[name].log_mass(frame())
        assert (mass <= 0.0).all()
        if name in ("two", "three", "count"):
            np.testing.assert_allclose(mass, posts[name].log_density(frame()), rtol=1e-9, atol=1e-9)


def test_masses_of_values_far_beyond_the_resolution_are_those_of_the_density():
    x = np.linspace(0.0, 1.0, 30)
    for target in ({"y": 3.0 + x + 0.1 * np.sin(40.0 * x)}, {"y": np.exp(np.sin(50.0 * x))}):
        post = bj.fit_experts({"x": x, **target}, target="y", depth=0, method="em", rng=1)
        rows = {"x": x[:3], "y": np.array([1e12, 1e15, 7e18])}
        width = math.log(post.model.response.columns[0].resolution)
        np.testing.assert_allclose(post.log_mass(rows), post.log_density(rows) + width, rtol=1e-6)


def test_dates_beyond_the_calendar_are_its_end():
    days = np.datetime64("9990-01-01") + np.arange(0, 3000, 100).astype("timedelta64[D]")
    frame = pd.DataFrame({"x": np.linspace(0.0, 1.0, days.size), "when": days.astype("datetime64[s]")})
    post = bj.fit_experts(frame, target="when", depth=0, method="em", rng=1)
    new = pd.DataFrame({"x": [0.1, 0.5, 50.0, 1e9]})
    last = np.datetime64("9999-12-31T23:59:59")
    for found in (post.predict(new)["mean"], post.sample(2, new, rng=1)["when"].iloc[::2]):
        moments = np.array([np.datetime64(value, "s") for value in found.tolist()])
        assert (moments[1:] >= moments[:-1]).all()
        assert moments[-1] == last
        assert np.datetime64("9990-01-01") < moments[1] < last


def test_predicted_intervals_hold_their_share_of_the_mixture_over_draws(posts):
    post, rows = posts["real"], frame().head(6)
    found = post.predict(rows, interval=0.8)
    for row in range(6):
        ends = [
            float(post.cdf(float(found[end].iloc[row]), rows).mean(("chain", "draw"))[0, row])
            for end in ("lower", "upper")
        ]
        np.testing.assert_allclose(ends, [0.1, 0.9], atol=1e-6)
    np.testing.assert_allclose(found["mean"], post.expectation(rows).mean(("chain", "draw")).values[0], rtol=1e-9)


def test_samples_follow_the_mixture_over_draws(posts):
    post, row = posts["real"], frame().head(1)
    drawn = post.sample(4000, row, rng=1)["real"].to_numpy()
    below = np.mean([np.mean(drawn <= q) for q in np.quantile(drawn, [0.5])])
    expected = float(post.cdf(float(np.quantile(drawn, 0.5)), row).mean())
    assert abs(below - expected) < 5.0 * 0.5 / np.sqrt(4000)


def test_drawn_numbers_lie_on_the_grid_on_which_targets_were_recorded(posts):
    post, row = posts["real"], frame().head(1)
    drawn = post.sample(200, row, rng=1)["real"].to_numpy()
    np.testing.assert_allclose(drawn, drawn.round(3), atol=1e-12)
    free = post.sample(200, row, rng=1, recorded=False)["real"].to_numpy()
    assert (np.abs(free - free.round(3)) > 1e-9).any()
    np.testing.assert_allclose(drawn, free, atol=0.5001e-3)


def test_answers_have_the_index_of_the_frame(posts):
    post, rows = posts["real"], frame().head(3).set_axis(["p", "q", "r"], axis=0)
    answers = [
        post.log_density(rows),
        post.log_mass(rows),
        post.probability("real > 0", rows),
        post.expectation(rows),
        post.variance_parts(rows),
        post.quantile(0.5, rows),
        post.confidence_bounds(rows),
    ]
    for answer in answers:
        assert answer["index"].dims == ("obs_id",)
        assert answer["index"].to_numpy().tolist() == ["p", "q", "r"]
    assert "index" not in post.log_density(post.read(rows)).coords


def test_one_row_of_a_frame_is_predicted_with_its_label(posts):
    post, rows = posts["real"], frame().head(3).set_axis(["p", "q", "r"], axis=0)
    assert post.predict(rows.loc["q"]).equals(post.predict(rows.loc[["q"]]))


def test_modes_and_bounds_lie_where_the_density_is(posts):
    post, rows = posts["real"], frame().head(3)
    found = post.mode(rows)
    assert found["value"].sizes["obs_id"] == 3
    bounds = post.confidence_bounds(rows)
    assert ((bounds["lower"] < bounds["expectation"]) & (bounds["expectation"] < bounds["upper"])).all()
    assert posts["two"].mode(rows)["value"].isin(["yes", "no"]).all()


def test_parts_of_the_rows_are_answered_as_all_of_them(posts, monkeypatch):
    post, rows = posts["all"], frame()
    whole = post.expectation(rows), post.log_density(rows), post.mode(rows)["log_mass"]
    monkeypatch.setattr("bayesjpt.experts.posterior.PAIR_BYTES", 20_000)
    parts = post.expectation(rows), post.log_density(rows), post.mode(rows)["log_mass"]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_draws_do_not_depend_on_the_number_of_threads():
    own = {"target": "real", "given": ["x"], "depth": 2, "draws": 3, "tune": 5, "chains": 3, "rng": 4}
    one, many = bj.fit_experts(frame(), cores=1, **own), bj.fit_experts(frame(), cores=3, **own)
    for a, b in zip(one.coefficients, many.coefficients, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_missing_covariate_is_refused_by_name_or_averaged_over(posts):
    post = posts["real"]
    rows = frame().head(3)[["x", "color"]]
    rows.loc[1, "x"] = np.nan
    with pytest.raises(TableError, match="1 missing cell of the covariate 'x', the first in row 2"):
        post.expectation(rows)
    table = bj.as_table(frame()[["x", "color"]])
    joint = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    averaged = post.with_missing(joint).expectation(rows)
    assert np.isfinite(averaged).all()
    np.testing.assert_array_equal(averaged[..., 0], post.expectation(rows.iloc[[0]])[..., 0])


def test_rows_with_missing_covariates_can_be_learned_from():
    rows = frame()
    rows.loc[::7, "x"] = np.nan
    table = bj.as_table(rows[["x", "color"]])
    joint = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    own = {"target": "real", "given": ["x", "color"], "depth": 1, "draws": 5, "tune": 5, "chains": 2, "rng": 1}
    with pytest.raises(TableError, match="'x'"):
        bj.fit_experts(rows, **own)
    post = bj.fit_experts(rows, missing=joint, **own)
    assert np.isfinite(post.log_density(rows)).all()
    with pytest.raises(QueryError, match="'color'"):
        bj.fit_experts(rows, missing=joint.marginal(["x"]), **own)


def test_an_unseen_label_of_a_covariate_has_no_indicator():
    post = bj.fit_experts(frame(), target="real", given=["x", "color"], depth=1, draws=2, tune=2, chains=1, rng=1)
    with pytest.warns(BayesjptWarning, match="violet"):
        table = post.read(pd.DataFrame({"x": [0.0], "color": ["violet"]}))
    np.testing.assert_array_equal(post.model.covariates.matrix(table)[0, 2:], 0.0)


@pytest.mark.filterwarnings("ignore:constant columns")
@pytest.mark.parametrize("other", [[9.0, -9.0], ["text", "more"], [np.inf, 1.0]])
def test_columns_that_are_not_in_use_may_hold_anything(other):
    rows = frame()[["x", "real"]].assign(unused=frame()["time"], constant=1.0)
    post = bj.fit_experts(rows, target="real", given=["x", "constant"], depth=1, draws=2, tune=2, chains=1, rng=1)
    new = rows.head(2)
    changed = new.assign(unused=other, constant=other)
    pd.testing.assert_frame_equal(post.predict(changed), post.predict(new))
    np.testing.assert_array_equal(post.log_density(changed), post.log_density(new))


def test_targets_are_looked_at_where_densities_are_asked_for_alone(posts):
    post, new = posts["count"], frame().head(2)
    impossible = new.assign(count=[-1, -2])
    pd.testing.assert_frame_equal(post.predict(impossible), post.predict(new))
    np.testing.assert_array_equal(post.expectation(impossible), post.expectation(new))
    np.testing.assert_array_equal(post.probability("count > 2", impossible), post.probability("count > 2", new))
    pd.testing.assert_frame_equal(post.sample(3, impossible, rng=1), post.sample(3, new, rng=1))
    with pytest.raises(SchemaError, match="'count' holds -1 in row 1"):
        post.log_density(impossible)


def test_unknown_covariates_and_targets_are_refused(posts):
    with pytest.raises(SchemaError, match="sise"):
        bj.fit_experts(frame(), target="real", given=["sise"])
    with pytest.raises(QueryError, match="target"):
        posts["all"].predict(frame())


def test_the_tree_is_told_in_words(posts):
    text = posts["all"].explain()
    assert "if " in text
    assert "give or take" in text
    assert "<pre>" in posts["all"]._repr_html_()


def probabilities(gate: np.ndarray, columns: dict) -> np.ndarray:
    """Return the probability of yes in each row of the table that covariates are made of."""
    table = bj.as_table(columns)
    return expit(make_covariates(table, table.names).matrix(table) @ gate)


def told(gate: np.ndarray, columns: dict) -> str:
    table = bj.as_table(columns)
    return gate_in_words(gate, make_covariates(table, table.names)).text


def chances(lo: float, hi: float) -> str:
    return f"{chance(lo)} to {chance(hi)}"


KIND = {"kind": ["b", "a", "b", "a", "b"]}
COLOR = {"color": ["red", "green", "blue", "red", "red"]}


@pytest.mark.parametrize("intercept", [-2.0, -0.3, 0.0, 1.7])
@pytest.mark.parametrize("slope", [-1.5, 0.2, 1.5])
def test_gates_on_a_label_tell_its_probability_whatever_the_intercept(intercept, slope):
    gate = np.array([intercept, slope])
    p = probabilities(gate, KIND)
    assert told(gate, KIND) == f"with probability {chance(p[0])} where kind=b, otherwise {chance(p[1])}"


def test_gates_that_no_row_crosses_go_nearly_always_one_way():
    assert told(np.array([-20.0, 6.0]), KIND) == "nearly never (probability <0.001)"
    assert told(np.array([20.0, 6.0]), KIND) == "nearly always (probability >0.999)"
    gate = np.array([-4.0, 0.3])
    assert told(gate, KIND) == f"nearly never (probability at most {chance(probabilities(gate, KIND).max())})"


def test_gates_on_labels_tell_them_by_their_probabilities():
    gate = np.array([0.5, -0.5, -0.6, 3.0])  # blue, green, red
    red, green, blue = probabilities(gate, COLOR)[:3]
    assert told(gate, COLOR) == f"with probability {chance(red)} where color=red, otherwise {chances(green, blue)}"
    gate[0] = -9.0
    assert told(gate, COLOR).startswith("nearly never")
    gate = np.array([-2.0, 0.5, 1.0, 1.5])
    red, green, blue = (chance(p) for p in probabilities(gate, COLOR)[:3])
    each = f"{red} where color=red, {green} where color=green, {blue} where color=blue"
    assert told(gate, COLOR) == f"with probability {each}"


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_a_gate_holds_in_the_rows(seed):
    """Cuts lie among the rows, where the probability is a half; elsewhere all rows are within what is told."""
    rng, seen = np.random.default_rng(seed), set()
    columns = {"x": rng.normal(50.0, 3.0, 40).round(6)}
    for _ in range(50):
        gate = rng.normal(0.0, [3.0, 1.0])
        p, text = probabilities(gate, columns), told(gate, columns)
        if text.startswith("x "):
            sign, cut = re.match(r"x ([<>]) (\S+) \(", text).groups()
            above = columns["x"] > float(cut)
            assert np.array_equal(p > 0.5, above if sign == ">" else ~above)
            assert 0.0 < above.mean() < 1.0
        elif text.startswith("nearly"):
            assert (p < 0.05).all() if "never" in text else (p > 0.95).all()
        else:
            lo, hi, more = re.match(r"with probability (\S+?)(?: to (\S+), more where x is (\S+))?$", text).groups()
            assert lo == chance(p.min())
            assert hi is None or hi == chance(p.max())
            assert more in (None, "larger" if gate[1] > 0.0 else "smaller")
        seen.add(text.split(" ")[0])
    assert seen == {"x", "nearly", "with"}


PREDICTORS = {
    "days": pd.date_range("2020-01-01", periods=60, freq="D"),
    "seconds": pd.date_range("2020-01-01", periods=60, freq="s"),
    "year": 1990 + np.arange(60) // 2,
    "large": 123456789.0 + 0.5 * np.arange(60),
    "negative": -5000.0 + 0.5 * np.arange(60),
    "small": 0.1 * np.arange(60.0),
    "kind": np.where(np.arange(60) % 3 == 0, "a", "b"),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_the_terms_that_are_told_add_up_to_the_predictor(name):
    kind = "category" if name == "kind" else "real"
    table = bj.as_table(pd.DataFrame({name: PREDICTORS[name]}), kinds={name: kind})
    covariates, coefficients = make_covariates(table, [name]), np.array([2.0, 0.7])
    text = linear(coefficients, covariates)
    days = table.values[0] if kind == "real" else None
    pattern = rf"(\S+) ([+-]) (\S+) (?:\({name} ([+-]) (\S+?)(?:, in (\w+))?\)|{name}(?:=b)?)$"
    first, sign, slope, minus, origin, unit = re.match(pattern, text).groups()
    if name == "kind":
        x = np.asarray(PREDICTORS[name]) == "b"
    elif unit is not None:
        since = (np.datetime64(origin, "us") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        x = (days - since) * {"days": 1.0, "seconds": 86_400.0}[unit]
    else:
        x = days + float(f"{minus}{origin}") if origin else days
    found = float(first) + (-1.0 if sign == "-" else 1.0) * float(slope) * x
    np.testing.assert_allclose(found, covariates.matrix(table) @ coefficients, atol=0.02)


def test_dates_are_told_as_dates():
    day, rng = np.arange(60), np.random.default_rng(1)
    rows = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=60, freq="D")})
    rows["y"] = np.where(day < 30, 1.0, 5.0) + 0.1 * rng.normal(size=60)
    text = bj.fit_experts(rows, target="y", depth=1, experts="gaussian", method="em", rng=1).explain()
    assert re.search(r"when [<>] 2020-01-(29|30|31) \(sharp\)", text)
    assert text.count("(when - 2020-01-31, in days)") == 2
    assert "e+" not in text
    text = bj.fit_experts(rows, target="when", depth=0, experts="gaussian", method="em", rng=1).explain()
    assert re.search(r"when: 20(19|20)-\d\d-\d\d [+] [.0-9]+ y, give or take [.0-9]+ days$", text)


def test_labels_are_told_at_the_average_of_the_covariates():
    rng = np.random.default_rng(0)
    lab = np.where(rng.random(200) < 0.1, "a", "b")
    y = np.where(lab == "a", "k", np.where(rng.random(200) < 0.9, "l", "m"))
    post = bj.fit_experts({"lab": lab, "y": y}, target="y", depth=0, method="em", rng=1)
    row = post.model.covariates.matrix(post.read({"lab": lab})).mean(axis=0)
    most = softmax(post.coefficients.node[0, 0, 0] @ row)[1]
    assert most > 0.8
    assert f"y: 'l' {most:.2f}, " in post.explain()
    assert post.explain().endswith("at average covariates")


def test_average_covariates_are_the_mean_of_the_rows():
    table = bj.as_table(frame())
    covariates = make_covariates(table, ["x", "color", "two", "count"])
    np.testing.assert_allclose(covariates.average(), covariates.matrix(table).mean(axis=0), atol=1e-12)
    taken_as_it_is = Covariates(Schema((Column("x0", "real", (0.0, 1.0)),)), (Covariate("x0", "x0", -1, 0.0, 1.0),))
    assert at_average(covariates) == " at average covariates"
    assert at_average(taken_as_it_is) == " at covariates of 0"
    assert at_average(make_covariates(table, [])) == ""
