"""Questions to trees of experts, against slow twins, closed forms and quadrature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.integrate

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, QueryError, SchemaError, TableError
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
    with pytest.raises(TableError, match="1 missing cells of the covariate 'x', the first in row 2"):
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
