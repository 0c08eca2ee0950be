"""Training rows that lack covariates: what a fit with `missing=` makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, LearnerError
from bayesjpt.experts import fit, missing

NEW = pd.DataFrame({"x": [2.0, 1.0, -2.0], "z": [0.0, 0.0, 0.0]})
SLOPE_TOLERANCE = 0.08  # of a slope of 2; about three of its standard errors
SHORT = {"draws": 5, "tune": 10, "chains": 2, "rng": 1}


def line(n: int, seed: int, n_more: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rows of y = 2 x + noise that lack two fifths of x, and more that lack nothing."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"x": rng.normal(size=n + n_more), "z": rng.normal(size=n + n_more)})
    rows["y"] = 2.0 * rows["x"] + rng.normal(0.0, 0.3, n + n_more)
    holes = rows.head(n).copy()
    holes.loc[rng.random(n) < 0.4, "x"] = np.nan
    return holes, rows.tail(n_more)


def joint_of(frame: pd.DataFrame) -> bj.Posterior:
    table = bj.as_table(frame)
    return bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)


def test_candidates_of_many_rows_are_fewer(monkeypatch):
    holes, _ = line(200, 2)
    joint = joint_of(holes[["x", "z"]])
    made = []
    monkeypatch.setattr(fit, "make_gaps", lambda *args: made.append(missing.make_gaps(*args)) or made[-1])
    monkeypatch.setattr(missing, "CANDIDATE_BYTES", 2 * 50 * 8 * 3 * holes["x"].isna().sum())
    post = bj.fit_experts(holes, target="y", missing=joint, rng=1, depth=0, draws=50, chains=2)
    assert made[0].x.shape[1] == 50
    # fewer are farther from the truth
    np.testing.assert_allclose(post.predict(NEW)["mean"] / [4.0, 2.0, -4.0], 1.0, atol=SLOPE_TOLERANCE)


@pytest.mark.parametrize("depth", [0, 2])
def test_slopes_and_intervals_are_those_of_the_truth_where_covariates_are_missing(depth):
    holes, new = line(400, 0, 1000)
    joint = joint_of(holes[["x", "z"]])
    post = bj.fit_experts(holes, target="y", missing=joint, rng=1, depth=depth, draws=50, chains=2)
    np.testing.assert_allclose(post.predict(NEW)["mean"] / [4.0, 2.0, -4.0], 1.0, atol=0.5 * SLOPE_TOLERANCE)
    answer = post.predict(new)
    held = ((new["y"].to_numpy() >= answer["lower"]) & (new["y"].to_numpy() <= answer["upper"])).mean()
    assert 0.86 < held < 0.97
    assert (answer["upper"] - answer["lower"]).mean() < 1.3  # of the truth .99


def test_log_odds_are_those_of_the_truth_where_covariates_are_missing():
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"x": rng.normal(size=1500), "z": rng.normal(size=1500)})
    rows["y"] = np.where(rng.random(1500) < expit(3.0 * rows["x"]), "yes", "no")
    rows.loc[rng.random(1500) < 0.6, "x"] = np.nan
    own = {"target": "y", "depth": 0, "rng": 1, "draws": 50, "chains": 2}
    post = bj.fit_experts(rows, missing=joint_of(rows[["x", "z"]]), **own)
    p = post.probability("y = 'yes'", NEW).mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(logit(p)[[1]], 3.0, atol=0.6)
    np.testing.assert_allclose(logit(p)[[0, 2]], [6.0, -6.0], atol=1.2)


def test_draws_do_not_depend_on_the_number_of_cores_where_covariates_are_missing():
    holes, _ = line(80, 1)
    joint = joint_of(holes[["x", "z"]])
    for own in ({"depth": 2}, {"depth": 1, "time": "t"}):
        rows = holes.assign(t=np.arange(80)) if "time" in own else holes
        posts = [bj.fit_experts(rows, target="y", missing=joint, cores=cores, **own, **SHORT) for cores in (1, 2)]
        for one, two in zip(posts[0].coefficients, posts[1].coefficients, strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_fit_goes_on_from_another_where_covariates_are_missing():
    holes, _ = line(200, 2)
    joint = joint_of(holes[["x", "z"]])
    with pytest.warns(BayesjptWarning, match="left out by method em"):
        first = bj.fit_experts(holes, target="y", missing=joint, depth=1, method="em", rng=1)
    post = bj.fit_experts(holes, target="y", missing=joint, depth=1, start=first, draws=30, tune=30, chains=2, rng=1)
    np.testing.assert_allclose(post.predict(NEW)["mean"] / [4.0, 2.0, -4.0], 1.0, atol=0.5 * SLOPE_TOLERANCE)


@pytest.mark.parametrize("method", ["em", "least_squares", "laplace", "mean_field"])
def test_other_methods_are_of_the_complete_rows_and_say_how_many_are_left_out(method):
    holes, _ = line(200, 2)
    joint = joint_of(holes[["x", "z"]])
    n = int(holes["x"].isna().sum())
    own = {"target": "y", "depth": 0, "method": method, "rng": 1}
    with pytest.warns(
        BayesjptWarning, match=f"^{n} rows without a covariate left out by method {method}; gibbs"
    ) as told:
        post = bj.fit_experts(holes, missing=joint, **own)
    assert len(told) == 1
    assert post.settings["rows"] == 200 - n
    np.testing.assert_allclose(post.predict(NEW)["mean"] / [4.0, 2.0, -4.0], 1.0, atol=0.5 * SLOPE_TOLERANCE)


def test_no_complete_row_is_refused_but_by_gibbs():
    holes, _ = line(40, 2)
    joint = joint_of(holes[["x", "z"]])
    bare = holes.copy()
    bare.loc[bare["x"].notna() & (np.arange(40) % 2 == 0), "z"] = np.nan
    bare.loc[bare["x"].notna() & bare["z"].notna(), "z"] = np.nan
    with pytest.raises(LearnerError, match="no row with all covariates for method='em'"):
        bj.fit_experts(bare.assign(z=bare["z"]), target="y", missing=joint, method="em", depth=0, rng=1)
    assert np.isfinite(bj.fit_experts(bare, target="y", missing=joint, depth=1, **SHORT).predict(NEW).to_numpy()).all()


def test_steps_without_covariates_are_learned_from():
    holes, _ = line(400, 4)
    holes["t"] = np.arange(400)
    joint = joint_of(holes[["x", "z"]])
    own = {"target": "y", "given": ["x", "z"], "time": "t", "depth": 0, "missing": joint}
    new, n = NEW.assign(t=[1, 2, 3]), int(holes["x"].isna().sum())
    post = bj.fit_experts(holes, draws=50, tune=100, chains=2, rng=1, **own)
    np.testing.assert_allclose(post.predict(new)["mean"] / [4.0, 2.0, -4.0], 1.0, atol=0.5 * SLOPE_TOLERANCE)
    with pytest.warns(BayesjptWarning, match=f"the targets of {n} steps without a covariate are left out by method em"):
        post = bj.fit_experts(holes, method="em", rng=1, **own)
    np.testing.assert_allclose(post.predict(new)["mean"] / [4.0, 2.0, -4.0], 1.0, atol=0.5 * SLOPE_TOLERANCE)
