"""New rows that lack covariates: answers are those of mixtures over what these may be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import bayesjpt as bj
from bayesjpt.errors import QueryError
from bayesjpt.experts import row_parts

EXACT = 1e-9
VALUES = [-1.5, 0.5, 2.0, 1.0]
"""Of the missing covariate, in place of draws."""
N_SAMPLE = 4000
TARGETS = ["y", "label"]


def frame(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    out = pd.DataFrame({"x": rng.normal(size=n), "u": rng.normal(size=n)})
    out["y"] = (2.0 * np.abs(out["x"]) + rng.normal(0.0, 0.2, n)).round(2)
    out["label"] = np.where(out["x"] + rng.normal(0.0, 0.5, n) > 0.0, "yes", "no")
    return out


def joint_of(rows: pd.DataFrame) -> bj.Posterior:
    table = bj.as_table(rows)
    return bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)


@pytest.fixture(scope="module", params=[0, 1])
def known(request):
    """Posterior of two draws that differ, without imputations."""
    own = {"target": TARGETS, "given": ["x", "u"], "depth": request.param}
    return bj.fit_experts(frame(), draws=2, tune=20, chains=1, rng=1, **own)


@pytest.fixture
def post(known, monkeypatch):
    """The same, whose imputations are `VALUES`."""

    def drawn(model, joint, table, place, *, n, rng):
        rows = table.take(np.repeat(place, n)).to_frame().assign(x=np.tile(VALUES, place.size))
        filled = bj.as_table(rows, schema=table.schema)
        made = model.covariates.matrix(filled), model.gate_covariates.matrix(filled)
        return tuple(array.reshape(place.size, n, -1) for array in made)

    monkeypatch.setattr(row_parts, "drawn_covariates", drawn)
    monkeypatch.setattr(row_parts, "N_IMPUTATION", len(VALUES))
    return known.with_missing(joint_of(frame()[["x", "u"]]))


def questions() -> pd.DataFrame:
    """Return three rows, of which the second lacks x."""
    rows = frame().head(3)
    rows.loc[1, "x"] = np.nan
    return rows


def versions() -> pd.DataFrame:
    """Return the second row with each of `VALUES`."""
    return questions().iloc[[1] * len(VALUES)].assign(x=VALUES)


def by_draw(answer) -> np.ndarray:
    """Return answers for all versions, (..., draw, n_version), as the versions of each of two draws, (2, ..., 2)."""
    values = np.asarray(answer)[0]
    return np.stack([values[0][..., :2], values[1][..., 2:]])


def one_draw(post, draw: int):
    coefficients = type(post.coefficients)(*(array[:, draw : draw + 1] for array in post.coefficients))
    return bj.ExpertPosterior(post.model, coefficients, post.settings, post.missing)


def test_an_interval_of_one_draw_holds_what_missing_covariates_may_be():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=400), "u": rng.normal(size=400)})
    rows["y"] = 2.0 * rows["x"] + rng.normal(0.0, 0.1, 400)
    new = pd.DataFrame({"x": np.nan, "u": rng.normal(size=400)})
    post = bj.fit_experts(rows, target="y", depth=1, method="em", rng=1).with_missing(joint_of(rows[["x", "u"]]))
    answer, truth = post.predict(new), 2.0 * rng.normal(size=400)
    assert answer["mean"].std() < 0.4  # means of 100 draws with a deviation of 2
    assert 0.85 < ((answer["lower"] < truth) & (truth < answer["upper"])).mean() < 0.95
    assert 5.5 < (answer["upper"] - answer["lower"]).mean() < 7.5  # of the truth 6.6


def test_rows_without_gaps_are_answered_as_without_imputations(post, known):
    rows = questions()
    for ask in (
        lambda p, r: p.log_density(r),
        lambda p, r: p.log_mass(r),
        lambda p, r: p.expectation(r),
        lambda p, r: p.probability("y > 1", r),
        lambda p, r: p.quantile([0.1, 0.9], r),
    ):
        np.testing.assert_array_equal(ask(post, rows)[..., [0, 2]], ask(known, rows.iloc[[0, 2]]))
    with pytest.raises(QueryError, match=r"at\(row\)"):
        post.params(rows)


@pytest.mark.parametrize("name", ["log_density", "log_mass"])
def test_a_density_of_a_draw_is_the_mean_over_all_imputations(post, known, name):
    found = getattr(post, name)(questions())[0, :, 1]
    each = getattr(known, name)(versions())[0]
    np.testing.assert_allclose(found, logsumexp(each, axis=1) - np.log(len(VALUES)), rtol=EXACT)


def test_targets_weigh_the_imputations_of_leaves(post, known):
    found = post.leaf_shares(post.read(questions()))[:, 1]
    each, density = known.leaf_shares(known.read(versions())), np.exp(known.log_density(versions())[0].values)
    assert density.max() > 10.0 * density.min()
    expected = (each * density[..., None]).sum(axis=1) / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=EXACT)


def test_moments_of_a_draw_are_those_of_its_mixture_over_imputations(post, known):
    rows = questions()
    mean, variance = (by_draw(known.expectation(versions())), by_draw(known.variance(versions())))
    np.testing.assert_allclose(post.expectation(rows)[0, ..., 1], mean.mean(axis=-1), rtol=EXACT)
    total = variance.mean(axis=-1) + mean.var(axis=-1)
    np.testing.assert_allclose(post.variance(rows)[0, ..., 1], total, rtol=EXACT)
    parts = post.variance_parts(rows)
    np.testing.assert_allclose(parts["within"] + parts["between"], post.variance(rows), rtol=EXACT)


def test_probabilities_of_a_draw_are_means_over_its_imputations(post, known):
    rows, event = questions(), "y > 1.5 and label == 'yes'"
    expected = by_draw(known.probability(event, versions())).mean(axis=-1)
    np.testing.assert_allclose(post.probability(event, rows)[0, :, 1], expected, rtol=EXACT)
    np.testing.assert_allclose(post.at(rows.iloc[[1]]).probability(event)[0], expected, rtol=EXACT)
    cdf = by_draw(known.cdf([1.0, 3.0], versions(), "y")).mean(axis=-1)
    np.testing.assert_allclose(post.cdf([1.0, 3.0], rows, "y")[0, ..., 1], cdf, rtol=EXACT)


def test_quantiles_and_modes_of_a_draw_are_those_of_its_mixture(post):
    rows = questions()
    low, high = (float(value) for value in post.quantile([0.05, 0.95], rows)[0, 0, :, 0, 1])
    np.testing.assert_allclose(post.cdf([low, high], rows, "y")[0, 0, :, 0, 1], [0.05, 0.95], atol=1e-6)
    bounds = post.confidence_bounds(rows)
    assert ((bounds["lower"] < bounds["expectation"]) & (bounds["expectation"] < bounds["upper"])).all()
    assert np.isfinite(post.mode(rows)["log_mass"]).all()


@pytest.mark.parametrize("draws", ["both", "first"])
def test_predictions_are_of_the_mixture_over_draws_and_imputations(post, known, draws):
    rows, own = questions(), post if draws == "both" else one_draw(post, 0)
    found = own.predict(rows, target="y", interval=0.8).iloc[1]
    np.testing.assert_allclose(found["mean"], own.expectation(rows)[..., 0, 1].mean(), rtol=1e-6)
    at_ends = own.cdf([found["lower"], found["upper"]], rows, "y")[0, :, :, 0, 1].mean("draw")
    np.testing.assert_allclose(at_ends, [0.1, 0.9], atol=1e-6)
    labels = own.predict(rows, target="label").iloc[1]
    shares = own.probability("label == 'yes'", rows)[0, :, 1].mean()
    np.testing.assert_allclose(labels["yes"] / labels["no"], shares / (1.0 - shares), rtol=0.05)  # other left out


def test_drawn_rows_are_of_the_mixture_over_imputations(post):
    rows = questions()
    drawn = post.sample(N_SAMPLE, rows, rng=1, recorded=False)["y"].to_numpy().reshape(3, N_SAMPLE)
    mean = post.expectation(rows)[0, :, 0].mean("draw").values
    variance = post.variance(rows)[0, :, 0].mean("draw").values + post.expectation(rows)[0, :, 0].var("draw").values
    np.testing.assert_array_less(np.abs(drawn.mean(axis=1) - mean), 4.0 * np.sqrt(variance / N_SAMPLE))
    np.testing.assert_allclose(drawn.var(axis=1) / variance, 1.0, atol=0.2)


def test_parts_of_rows_with_gaps_are_answered_as_all_of_them(post, monkeypatch):
    rows = frame().head(6)
    rows.loc[::2, "x"] = np.nan
    table = post.read(rows)
    whole = post.expectation(rows), post.log_density(rows), post.predict(rows, target="y"), post.leaf_shares(table)
    for name in ("posterior", "leaf_moments", "predict", "known_targets"):
        monkeypatch.setattr(f"bayesjpt.experts.{name}.PAIR_BYTES", 1)
    monkeypatch.setattr(row_parts, "VERSION_BYTES", 1)
    parts = post.expectation(rows), post.log_density(rows), post.predict(rows, target="y"), post.leaf_shares(table)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
