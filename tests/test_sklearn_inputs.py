"""What the estimators for scikit-learn are given: names of columns, kinds of frames, targets, and few rows."""

from __future__ import annotations

import datetime
import warnings

import narwhals
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


def mixed(rng):
    """Return columns of each type, by name; rows 0 to 5 lack one cell each."""
    x = rng.normal(size=60).round(2)
    day = [datetime.date(2024, 1, 1) + datetime.timedelta(int(k)) for k in np.rint(10.0 * x + 40.0)]
    columns = {"x": x.tolist(), "n": np.rint(5.0 * x + 20.0).astype(int).tolist(), "day": day}
    columns |= {"at": [datetime.datetime(one.year, one.month, one.day, tzinfo=datetime.UTC) for one in day]}
    columns |= {"kind": np.where(x > 0.0, "u", "v").tolist(), "sure": (x > 0.3).tolist()}
    for row, name in enumerate(columns):
        columns[name][row] = None
    return columns


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_frames_are_filled_as_frames_of_their_kind(rng, package):
    if package == "polars":
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(mixed(rng)).with_columns(
            polars.col("kind").cast(polars.Categorical), n=polars.col("n").cast(polars.UInt8)
        )
    else:
        frame = pytest.importorskip("pyarrow").table(mixed(rng))
    filled = CircuitImputer(**FEW).fit(frame).transform(frame)
    assert type(filled) is type(frame)
    assert filled.schema == frame.schema
    before, after = (narwhals.from_native(each).rows() for each in (frame, filled))
    for row, (old, new) in enumerate(zip(before, after, strict=True)):
        assert None not in new
        assert all(one == two for column, (one, two) in enumerate(zip(old, new, strict=True)) if column != row)


def test_estimators_of_frames_are_asked_with_arrays_by_position(frame):
    model = CircuitRegressor(**FEW).fit(frame, 3.0 * frame["a"])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but CircuitRegressor was fitted with"):
        found = model.predict(frame.to_numpy())
    np.testing.assert_array_equal(found, model.predict(frame))
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.zeros((2, 3)))


def test_estimators_of_arrays_are_asked_with_frames_by_position(frame):
    gaps = frame.mask(frame > 1.0)
    model = CircuitImputer(**FEW).fit(gaps.to_numpy())
    with pytest.warns(UserWarning, match="X has feature names, but CircuitImputer was fitted without"):
        found = model.transform(gaps)
    assert list(found.columns) == ["a", "b"]
    np.testing.assert_array_equal(found.to_numpy(), model.transform(gaps.to_numpy()))
