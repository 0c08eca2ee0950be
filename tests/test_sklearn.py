"""The estimators for scikit-learn: its own checks, frames as they are, and what each is for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from bayesjpt import sklearn as estimators
from bayesjpt.errors import BayesjptWarning
from bayesjpt.sklearn import (
    CircuitClassifier,
    CircuitDensity,
    CircuitImputer,
    CircuitOutlierDetector,
    CircuitRegressor,
)
from bayesjpt.sklearn_pool import AveragePool, LinearExpert
from bayesjpt.table.table import as_table

FEW = {"n_structures": 2, "draws": 2, "tune": 2, "cores": 1, "random_state": 1}
QUICK = ("CircuitDensity", "CircuitImputer")
"""Whose checks take ten seconds; those of the others take minutes."""


def check_by_scikit_learn(name):
    found = check_estimator(getattr(estimators, name)(**FEW | {"random_state": None}), on_skip=None, on_fail=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert not failed
    assert sum(one["status"] == "passed" for one in found) > 30


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUICK)
def test_scikit_learn_s_checks_pass(name):
    check_by_scikit_learn(name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(estimators.__all__) - set(QUICK)))
def test_scikit_learn_s_checks_pass_of_those_that_take_minutes(name):
    check_by_scikit_learn(name)


@pytest.fixture
def customers():
    rng = np.random.default_rng(5)
    n = 300
    age, segment = rng.integers(18, 80, n), rng.choice(["basic", "plus", "pro"], n)
    spend = np.where(segment == "pro", 300, 40) * rng.gamma(8, 1 / 8, n)
    frame = pd.DataFrame({"age": age.astype(float), "segment": segment, "spend": spend.round(2)})
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    frame.loc[rng.choice(n, 30, replace=False), "age"] = np.nan
    churned = np.where(rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 5)), "yes", "no")
    return frame, churned


def test_classes_of_frames_with_texts_dates_and_gaps_are_predicted(customers):
    frame, churned = customers
    model = CircuitClassifier(**FEW).fit(frame[:200], churned[:200])
    found = model.predict_proba(frame[200:])
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    assert log_loss(churned[200:], found) < 0.6
    assert model.score(frame[200:], churned[200:]) > 0.7


def test_log_loss_is_near_that_of_the_true_model():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 500)
    X = rng.normal(size=(500, 2)) + 2.0 * y[:, None]  # logistic regression is the true model
    model = CircuitClassifier(**FEW).fit(X[:300], y[:300])
    best = LogisticRegression().fit(X[:300], y[:300])
    ours, theirs = (log_loss(y[300:], each.predict_proba(X[300:])) for each in (model, best))
    assert ours < theirs + 0.1


@pytest.mark.parametrize("y", [[0, 1] * 30, [True, False] * 30, ["b", "a"] * 30, [3, 7] * 30])
def test_classes_are_given_back_as_they_were(y):
    X = np.linspace(0.0, 1.0, 60)[:, None] % 0.3 + np.resize([0.0, 5.0], 60)[:, None]
    model = CircuitClassifier(**FEW).fit(X, y)
    assert model.predict(X).tolist() == y


def test_numbers_and_their_intervals_are_predicted(customers):
    frame, _ = customers
    rest = frame.drop(columns="spend")
    model = CircuitRegressor(**FEW).fit(rest[:200], frame["spend"][:200])
    found, ends = model.predict(rest[200:]), model.predict_interval(rest[200:], 0.8)
    assert model.score(rest[200:], frame["spend"][200:]) > 0.6
    assert ((ends[:, 0] < found) & (found < ends[:, 1])).mean() > 0.95
    inside = (ends[:, 0] <= frame["spend"][200:]) & (frame["spend"][200:] <= ends[:, 1])
    assert 0.65 < inside.mean() < 0.95


def test_trees_of_a_regressor_differ(rng):
    X = rng.normal(size=(200, 2))
    model = CircuitRegressor(**FEW | {"n_structures": 6}).fit(X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=200))
    found = {own.circuit.digest() for own in model.post_.by_structure() if own.settings["learner"] == "_tree_of"}
    assert len(found) == 3


def test_missing_cells_of_frames_are_filled_and_others_kept(customers):
    frame, _ = customers
    frame = frame.assign(note=[f"text {k}" for k in range(len(frame))])
    frame.loc[3, "segment"] = None
    with pytest.warns(BayesjptWarning, match="not used: 'note'"):
        filled = CircuitImputer(**FEW).fit_transform(frame)
    assert filled["age"].notna().all()
    assert filled.loc[3, "segment"] in ("basic", "plus", "pro")
    kept = frame.notna()
    assert (filled.where(kept) == frame.where(kept)).where(kept, True).all(axis=None)


def whole_numbers_with_gaps():
    """Return float64 (200, 2): a number, and one of whole numbers whose expectation given it is not whole."""
    rng = np.random.default_rng(7)
    x = rng.uniform(0.0, 10.0, 200)
    X = np.column_stack([x, rng.poisson(5.0 + 3.0 * x)]).astype(float)
    X[:20, 1] = np.nan
    return X


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64"])
def test_columns_of_floats_get_expectations_that_are_not_rounded(dtype):
    X = whole_numbers_with_gaps()
    frame = pd.DataFrame(X, columns=["x", "count"]).astype({"count": dtype})
    model = CircuitImputer(**FEW).fit(frame)
    assert model.post_.schema.columns[1].base == "integer"
    filled = model.transform(frame)
    assert filled["count"].dtype == frame["count"].dtype
    expected = model.post_.impute_mean(frame).cells["expectation"].to_numpy()[:20, 1]
    np.testing.assert_allclose(filled["count"][:20].astype(float), expected, rtol=1e-6)
    assert (expected != np.rint(expected)).any()
    pd.testing.assert_frame_equal(filled.iloc[20:], frame.iloc[20:])


def test_arrays_of_floats_get_the_expectations_that_frames_get():
    X = whole_numbers_with_gaps()
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    found = CircuitImputer(**FEW).fit_transform(X)
    np.testing.assert_array_equal(found, CircuitImputer(**FEW).fit_transform(frame).to_numpy())
    assert (found[:20, 1] != np.rint(found[:20, 1])).any()


def test_columns_of_integers_get_whole_numbers():
    frame = pd.DataFrame(whole_numbers_with_gaps(), columns=["x", "count"]).astype({"count": "Int64"})
    filled = CircuitImputer(**FEW).fit_transform(frame)
    assert pd.api.types.is_integer_dtype(filled["count"])
    assert filled["count"].notna().all()


def test_densities_are_those_of_the_posterior(customers):
    frame, _ = customers
    model = CircuitDensity(**FEW).fit(frame)
    found = model.post_.log_mass(frame)
    flat = found.to_numpy().reshape(-1, len(frame))
    np.testing.assert_allclose(model.score_samples(frame), np.log(np.exp(flat).mean(axis=0)), rtol=1e-9)
    assert list(model.sample(4, random_state=1).columns) == list(frame.columns)


def test_far_rows_are_outliers_and_their_share_is_that_asked_for():
    X = np.random.default_rng(1).normal(size=(300, 3))
    model = CircuitOutlierDetector(contamination=0.05, **FEW).fit(X)
    assert model.predict([[0.0, 0.0, 0.0], [7.0, -7.0, 7.0]]).tolist() == [1, -1]
    assert (model.predict(X) == -1).mean() == pytest.approx(0.05, abs=0.01)


def test_values_that_training_did_not_show_are_no_error():
    X = np.column_stack([np.resize([1.0, 2.0, 4.0], 60), np.linspace(1.0, 2.0, 60)])
    model = CircuitRegressor(**FEW).fit(X, X[:, 1])
    with pytest.warns(UserWarning, match="training did not show"):
        assert np.isfinite(model.predict([[-3.0, 1.5], [2.5, 1.5]])).all()


def test_estimators_stand_in_pipelines():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 90)
    X = rng.normal(size=(90, 2)) + 3.0 * y[:, None]
    pipeline = make_pipeline(StandardScaler(), CircuitClassifier(**FEW))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.8


def test_linear_expert_is_a_logistic_regression_whatever_the_order_of_labels(rng):
    codes = np.repeat(np.arange(12), 20)  # class 10 comes before class 2
    x, z = rng.normal(size=240) + 0.2 * codes, rng.normal(size=240)
    z[::9] = np.nan
    table = as_table({"x": x, "z": z, "target": [f"class {code}" for code in codes]}, kinds={"z": "real"})
    expert = LinearExpert(table, "target", 0.5)
    filled = np.where(np.isnan(z), np.nanmean(z), z)
    design = StandardScaler().fit_transform(np.column_stack([x, filled]))
    design[:, 1] *= filled.std() / np.nanstd(z)
    twin = LogisticRegression(C=0.5, max_iter=2_000).fit(np.column_stack([np.isnan(z), design]), codes)
    found = twin.predict_proba(np.column_stack([np.isnan(z), design]))
    np.testing.assert_allclose(expert.probabilities(table, 12), found, atol=1e-4)


def test_average_pool_finds_the_expert_that_knows(rng):
    codes = rng.integers(0, 3, 400)
    knows = np.full((400, 3), 0.1)
    knows[np.arange(400), np.where(rng.random(400) < 0.8, codes, rng.integers(0, 3, 400))] = 0.8
    guesses = [rng.dirichlet(np.ones(3), 400) for _ in range(3)]
    said = np.log(np.hstack([guesses[0], knows, *guesses[1:]]))
    pool = AveragePool().fit(said, codes)
    assert pool.weights_[1] > 0.9
    assert pool.weights_.sum() == pytest.approx(1.0)
    # the likelihood is concave in the weights: at its maximum no expert would gain by more weight
    each = np.exp(said).reshape(400, 4, 3)[np.arange(400), :, codes]
    gains = (each / (each @ pool.weights_)[:, None]).mean(axis=0)
    assert gains.max() < 1.01
