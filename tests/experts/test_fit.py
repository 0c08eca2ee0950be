"""Fits of trees of experts: what they find, and what bad rows get."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, LearnerError, QueryError, TableError
from bayesjpt.families.skewed import is_skewed

SHORT = {"draws": 20, "tune": 40, "chains": 2, "rng": 1}


def regimes(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3.0, 3.0, n)
    right = x > 0.5
    y = np.where(right, 1.0 + 0.5 * x, -1.0 - 1.5 * x) + rng.normal(0.0, np.where(right, 0.2, 0.8))
    return pd.DataFrame({"x": x, "y": y})


def test_regimes_with_noise_of_their_own_are_found():
    post = bj.fit_experts(regimes(600, 1), target="y", depth=1, draws=50, tune=100, chains=2, rng=1)
    new = regimes(400, 2)
    right = new["x"] > 0.5
    truth = np.where(
        right,
        scipy.stats.norm.logpdf(new["y"], 1 + 0.5 * new["x"], 0.2),
        scipy.stats.norm.logpdf(new["y"], -1 - 1.5 * new["x"], 0.8),
    )
    density = np.exp(post.log_density(new)).mean(("chain", "draw"))
    assert float(np.log(density).mean()) > truth.mean() - 0.05
    assert "x > 0." in post.explain() or "x < 0." in post.explain()


def test_a_tree_without_gates_is_bayesian_linear_regression():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=200)})
    frame["y"] = 3.0 + 2.0 * frame["x"] + rng.normal(0.0, 0.5, 200)
    post = bj.fit_experts(frame, target="y", depth=0, draws=400, tune=50, chains=2, rng=1)
    found = post.expectation(pd.DataFrame({"x": [-1.0, 0.0, 1.0]}))
    slope, intercept = np.polyfit(frame["x"], frame["y"], 1)
    np.testing.assert_allclose(
        found.mean(("chain", "draw"))[0], intercept + slope * np.array([-1.0, 0.0, 1.0]), atol=0.02
    )
    # the posterior's spread is that of least squares, for the prior is weak beside 200 rows
    np.testing.assert_allclose(found.std(("chain", "draw"))[0, 1], 0.5 / np.sqrt(200), rtol=0.3)


def test_weights_without_covariates_are_those_of_a_mixture():
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.normal(-2.0, 0.3, 150), rng.normal(2.0, 0.3, 50)])
    post = bj.fit_experts(
        pd.DataFrame({"x": rng.normal(size=200), "y": y}), target="y", gates=[], depth=1, start="random", **SHORT
    )
    found = post.probability("y > 0", pd.DataFrame({"x": [0.0]}))
    assert abs(float(found.mean()) - 0.25) < 0.08


BAD = {
    "separated labels": lambda n: {"x": np.arange(n) - n / 2, "y": np.where(np.arange(n) > n / 2, "a", "b")},
    "collinear": lambda n: {
        "x": np.arange(n) * 1.0,
        "z": np.arange(n) * 2.0,
        "y": np.arange(n) * 3.0 + np.sin(np.arange(n)),
    },
    "no noise at all": lambda n: {"x": np.arange(n) * 1.0, "y": 2.0 * np.arange(n) + 1.0},
    "fewer rows than coefficients": lambda n: {
        **{f"x{k}": np.random.default_rng(k).normal(size=5) for k in range(8)},
        "y": np.random.default_rng(9).normal(size=5),
    },
    "a label seen once": lambda n: {
        "x": np.arange(n) * 1.0,
        "y": np.array(["a"] * (n // 2) + ["b"] * (n - n // 2 - 1) + ["c"]),
    },
    "far covariates": lambda n: {"x": np.r_[np.zeros(n - 1) + np.arange(n - 1), 1e9], "y": np.sin(np.arange(n))},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_get_an_answer(name):
    frame = pd.DataFrame(BAD[name](40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesjptWarning)
        post = bj.fit_experts(
            frame, target="y", depth=2, kinds={c: "real" for c in frame if frame[c].dtype == float}, **SHORT
        )
        assert np.isfinite(post.log_density(frame)).all()
        predicted = post.predict(frame)
    assert np.isfinite(predicted.to_numpy()).all()
    assert all(np.isfinite(array).all() for array in post.coefficients)


def test_a_constant_covariate_is_left_out_by_name():
    frame = pd.DataFrame({"x": np.sin(np.arange(30.0)), "same": np.full(30, 2.5), "y": np.arange(30.0) % 7})
    for kinds, words in (
        ({"same": "real", "y": "real"}, "covariates with a single value are left out: same"),
        ({"y": "real"}, "constant columns, which say nothing about others: 'same'"),
    ):
        with pytest.warns(BayesjptWarning) as told:
            post = bj.fit_experts(frame, target="y", depth=1, kinds=kinds, **SHORT)
        assert [str(each.message) for each in told] == [words]
        assert post.model.covariates.columns == ("x",)
    with pytest.warns(BayesjptWarning, match="constant columns"):
        whole = bj.as_table(frame)
    for table in (whole, bj.as_table(frame, kinds={"same": "real"}), whole.take(np.arange(20))):
        with pytest.warns(BayesjptWarning) as told:
            bj.fit_experts(table, target="y", depth=0, draws=1, tune=0, chains=1, rng=1)
        assert [str(each.message) for each in told] == ["covariates with a single value are left out: same"]


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e220])
def test_skewness_has_no_unit(unit):
    values = np.random.default_rng(1).exponential(size=60)
    assert is_skewed(unit * values)
    assert not is_skewed(unit * (20.0 + values))


def test_auto_takes_gamma_for_skewed_positive_numbers():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "failure": rng.exponential(np.exp(x)), "height": rng.normal(170.0, 9.0, 200)})
    post = bj.fit_experts(frame, target=["failure", "height"], depth=0, **SHORT)
    assert post.model.experts == ("gamma", "gaussian")
    assert bj.fit_experts(frame, target="failure", depth=0, experts="gaussian", **SHORT).model.experts == ("gaussian",)


def test_counts_and_times_are_found():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, 400)
    frame = pd.DataFrame({"x": x, "n": rng.poisson(np.exp(1.0 + x)), "t": rng.gamma(3.0, np.exp(0.5 - x) / 3.0)})
    for target, expert, truth in (
        ("n", "poisson", lambda x: np.exp(1.0 + x)),
        ("t", "gamma", lambda x: np.exp(0.5 - x)),
    ):
        post = bj.fit_experts(
            frame, target=target, given=["x"], experts=expert, kinds={"n": "integer"}, depth=1, **SHORT
        )
        found = post.expectation(pd.DataFrame({"x": [-0.8, 0.0, 0.8]})).mean(("chain", "draw"))[0]
        np.testing.assert_allclose(found, truth(np.array([-0.8, 0.0, 0.8])), rtol=0.2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depth": 9}, "at most 6"),
        ({"experts": "cauchy"}, "cauchy"),
        ({"experts": "poisson"}, "poisson experts for column 'y'"),
        ({"draws": 0}, "draws=0"),
        ({"given": ["y"]}, "both target and covariate"),
        ({"start": "warm"}, "cart"),
        ({"target": 3}, "target=3; expected one or several different columns, by name"),
        ({"target": None}, "target=None"),
        ({"target": ["y", 3]}, "target=.'y', 3."),
        ({"target": ["y", "y"]}, "several different columns"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(LearnerError, match=words):
        bj.fit_experts(regimes(50, 1), **{"target": "y", **changes})


@pytest.mark.parametrize("other", [3, regimes(5, 1)])
def test_missing_covariates_are_drawn_from_posteriors_alone(other):
    expected = r"^missing covariates to be drawn from (int|DataFrame); expected a Posterior of them\. Fit it: bj\.fit"
    with pytest.raises(QueryError, match=expected):
        bj.fit_experts(regimes(50, 1), target="y", missing=other)


def test_a_gap_is_told_by_its_row_of_the_table_where_rows_are_left_out():
    frame = regimes(60, 1)
    frame.loc[:2, "y"] = np.nan
    frame.loc[[1, 9], "x"] = np.nan
    for fit in (bj.fit_experts, bj.OnlineExperts):
        with (
            pytest.warns(BayesjptWarning, match="3 rows without a value of the target"),
            pytest.raises(TableError, match="1 missing cell of the covariate 'x', the first in row 10"),
        ):
            fit(frame, target="y", given=["x"])


def test_rows_without_the_target_are_left_out_with_a_warning():
    frame = regimes(60, 1)
    frame.loc[:4, "y"] = np.nan
    with pytest.warns(BayesjptWarning, match="5 rows without a value of the target"):
        post = bj.fit_experts(frame, target="y", depth=1, **SHORT)
    assert post.settings["rows"] == 55


def _predicted_of_equal_rows(value: float, n: int) -> np.ndarray:
    """Return mean and interval of the first of n rows with one value of the target."""
    frame = pd.DataFrame({"x": np.linspace(0.0, 1.0, n), "y": np.full(n, value)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesjptWarning)  # constant columns
        post = bj.fit_experts(frame, target="y", experts="gaussian", kinds={"y": "real"}, depth=1, **SHORT)
    return post.predict(frame.head(1)).to_numpy()[0]


def test_one_row_is_answered_widely_however_many_digits_it_has():
    _, lower, upper = _predicted_of_equal_rows(3.26, 1)
    assert upper - lower > 3.26
    for value in (3.2598431, 3.259843123456789):
        np.testing.assert_allclose(_predicted_of_equal_rows(value, 1)[1:], [lower, upper], rtol=1e-2)
    _, lower, upper = _predicted_of_equal_rows(0.0, 1)
    assert upper - lower > 1.0


def test_many_equal_rows_are_answered_surely():
    np.testing.assert_allclose(_predicted_of_equal_rows(3.2598431, 300)[1:], 3.2598431, atol=1e-4)


def test_rows_whose_label_the_schema_does_not_know_are_left_out():
    old = bj.as_table(pd.DataFrame({"x": np.arange(12.0), "k": np.tile(["a", "b", "c"], 4)}))
    new = pd.DataFrame({"x": np.arange(9.0), "k": ["a", "b", "c"] * 2 + ["d", "a", "b"]})
    with pytest.warns(BayesjptWarning, match="not seen in training"):
        rows = bj.as_table(new, schema=old.schema)
    with pytest.warns(BayesjptWarning, match="1 row with a label"):
        post = bj.fit_experts(rows, target="k", depth=0, **SHORT)
    assert post.settings["rows"] == 8


def test_numbers_of_settings_may_be_numpys(tmp_path):
    frame = regimes(30, 1)
    post = bj.fit_experts(frame, target="y", depth=np.int64(1), draws=np.int32(2), tune=np.int64(2), chains=1, rng=1)
    post.save(tmp_path / "fit.nc")
    assert bj.load_experts(tmp_path / "fit.nc").settings["depth"] == 1
    for cores in (0, -1, "2", True):
        with pytest.raises(LearnerError, match="cores"):
            bj.fit_experts(frame, target="y", cores=cores, **SHORT)


def test_numbers_whose_squares_overflow_are_refused_by_name():
    frame = regimes(30, 1)
    for name in ("x", "y"):
        with pytest.raises(TableError, match=f"column '{name}' holds"):
            bj.fit_experts(frame.assign(**{name: frame[name] * 1e200}), target="y", **SHORT)


def test_covariates_that_nobody_chose_and_that_are_not_used_are_told(rng):
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)}).assign(zip=[f"z{k}" for k in range(60)])
    options = {"target": "y", "depth": 0, "draws": 2, "tune": 2, "chains": 1, "rng": 1}
    with pytest.warns(BayesjptWarning, match=r"not used: 'zip' \(identifier or free text: 60 distinct texts in 60"):
        bj.fit_experts(frame, **options)
    bj.fit_experts(frame, given=["x"], **options)  # chosen: warnings are errors here
    bj.fit_experts(frame, kinds={"zip": "excluded"}, **options)
