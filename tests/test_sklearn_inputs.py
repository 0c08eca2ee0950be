"""What the estimators for scikit-learn are given: names of columns, kinds of frames, targets, and few rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesjpt.errors import BayesjptWarning
from bayesjpt.sklearn import CircuitClassifier, CircuitDensity, CircuitImputer, CircuitRegressor

FEW = {"n_structures": 2, "draws": 2, "tune": 2, "cores": 1, "random_state": 1}


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(60, 2)).round(2), columns=["a", "b"])


@pytest.mark.parametrize("taken", [["target"], ["target", "target_2"]])
def test_a_feature_called_target_is_used_as_any_other(frame, taken):
    named = frame.set_axis([*taken, "b"][:2], axis=1)
    number, label = 3.0 * frame["a"], np.where(frame["a"] > 0.0, "p", "q")
    regressor, plain = CircuitRegressor(**FEW).fit(named, number), CircuitRegressor(**FEW).fit(frame, number)
    assert regressor.target_ == f"target_{len(taken) + 1}"
    np.testing.assert_array_equal(regressor.predict(named), plain.predict(frame))
    classifier, plain = CircuitClassifier(**FEW).fit(named, label), CircuitClassifier(**FEW).fit(frame, label)
    np.testing.assert_array_equal(classifier.predict_proba(named), plain.predict_proba(frame))


def told_at_fit(estimator, X, y):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    return [str(each.message) for each in told if issubclass(each.category, BayesjptWarning)]


@pytest.mark.parametrize("kind", [CircuitClassifier, CircuitRegressor, CircuitDensity, CircuitImputer])
def test_columns_that_are_not_used_are_told_once_at_fit(frame, kind):
    named = frame.assign(note=[f"text {k}" for k in range(len(frame))])
    told = told_at_fit(kind(**FEW), named, np.resize([0, 1], len(frame)))
    assert told == ["not used: 'note' (identifier or free text: 60 distinct texts in 60 observed cells)"]
    assert not told_at_fit(kind(**FEW), frame, np.resize([0, 1], len(frame)))
