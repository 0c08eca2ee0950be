"""What the estimators for scikit-learn are given: names of columns, kinds of frames, targets, and few rows."""

from __future__ import annotations

import datetime
import warnings

import narwhals
import numpy as np
import pandas as pd
import pytest

from bayesjpt.errors import BayesjptWarning
from bayesjpt.sklearn import CircuitClassifier, CircuitDensity, CircuitImputer, CircuitOutlierDetector, CircuitRegressor

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


def typed(rng):
    """Return columns of pandas of one type each, by name; rows 0 to 3 lack all cells but the first."""
    x = rng.normal(size=60).round(2)
    third, moments = np.digitize(x, [-0.4, 0.4]), pd.Series(pd.date_range("2024-03-20", periods=60, freq="7h"))
    frame = pd.DataFrame({"x": x, "n": pd.Series(third, dtype="UInt8"), "sure": pd.Series(x > 0.0, dtype="boolean")})
    frame["half"] = pd.Categorical(third / 2.0)
    frame["grade"] = pd.Categorical.from_codes(third, ["low", "middle", "high"], ordered=True)
    frame["bin"] = pd.cut(frame["x"], [-9.0, -0.4, 0.4, 9.0])
    frame["flag"] = (x > 0.0).astype(float)
    frame["at"] = moments.astype("datetime64[ns]")
    for zone in ("Europe/Berlin", "America/New_York"):
        frame[zone] = moments.dt.tz_localize("UTC").dt.tz_convert(zone)
    frame.loc[:3, frame.columns[1:]] = None
    return frame.set_index(np.arange(60) + 7)


@pytest.mark.parametrize("pyarrow", [False, True])
@pytest.mark.filterwarnings("ignore:times of column")
def test_frames_of_pandas_keep_the_types_and_cells_of_their_columns(rng, pyarrow):
    frame = typed(rng)
    if pyarrow:
        pytest.importorskip("pyarrow")
        frame = frame.convert_dtypes(dtype_backend="pyarrow")
    model = CircuitImputer(**FEW).fit(frame)
    filled = model.transform(frame)
    pd.testing.assert_frame_equal(filled[4:], frame[4:])
    assert filled.notna().all(axis=None)
    numbered = frame.set_axis(range(frame.shape[1]), axis=1)
    found = CircuitImputer(**FEW).fit(numbered).transform(numbered)
    pd.testing.assert_frame_equal(found, filled.set_axis(numbered.columns, axis=1))


def test_frames_of_a_class_made_of_pandas_stay_of_it(frame):
    class Frame(pd.DataFrame):
        @property
        def _constructor(self):
            return Frame

    gaps = Frame(frame.mask(frame > 1.0))
    assert isinstance(CircuitImputer(**FEW).fit(gaps).transform(gaps), Frame)


def test_categories_that_a_frame_does_not_have_are_added_last(rng):
    frame = typed(rng)[["x", "grade"]]
    model = CircuitImputer(**FEW).fit(frame)
    few = pd.DataFrame({"x": [1.2, -1.2], "grade": pd.Categorical([None, "low"], ["low", "middle"], ordered=True)})
    filled = model.transform(few)["grade"]
    assert filled.tolist() == ["high", "low"]
    assert filled.cat.categories.tolist() == ["low", "middle", "high"]


def test_estimators_of_frames_are_asked_with_arrays_by_position(frame):
    model = CircuitRegressor(**FEW).fit(frame, 3.0 * frame["a"])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but CircuitRegressor was fitted with"):
        found = model.predict(frame.to_numpy())
    np.testing.assert_array_equal(found, model.predict(frame))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_arrays_of_another_width_are_refused(frame):
    model = CircuitRegressor(**FEW).fit(frame, 3.0 * frame["a"])
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.zeros((2, 3)))


@pytest.mark.parametrize("kind", [CircuitClassifier, CircuitImputer])
def test_frames_without_columns_are_refused(frame, kind):
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(60, 0\)\) while a minimum of 1 is required"):
        kind(**FEW).fit(frame[[]], np.resize([0, 1], len(frame)))


def test_estimators_of_arrays_are_asked_with_frames_by_position(frame):
    gaps = frame.mask(frame > 1.0)
    model = CircuitImputer(**FEW).fit(gaps.to_numpy())
    with pytest.warns(UserWarning, match="X has feature names, but CircuitImputer was fitted without"):
        found = model.transform(gaps)
    assert list(found.columns) == ["a", "b"]
    np.testing.assert_array_equal(found.to_numpy(), model.transform(gaps.to_numpy()))


@pytest.mark.parametrize("dtype", [object, "string", "category"])
@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_classes_that_are_missing_are_refused(frame, dtype, nothing):
    y = pd.Series(np.resize(["p", "q"], len(frame)), dtype=object)
    y[3] = nothing
    with pytest.raises(ValueError, match="Input y contains missing values: 1, the first in row 4"):
        CircuitClassifier(**FEW).fit(frame, y.astype(dtype))


@pytest.mark.parametrize("kind", [CircuitClassifier, CircuitRegressor])
def test_numbers_that_are_missing_are_refused(frame, kind):
    y = np.resize([0.0, 1.0, 2.0], len(frame))
    objects = y.astype(object)
    objects[3] = None
    for target in (pd.Series(y, dtype="Float64").mask(y > 1.0), objects, np.where(y > 1.0, np.nan, y)):
        with pytest.raises(ValueError, match=r"Input y contains (missing values|NaN)"):
            kind(**FEW).fit(frame, target)


def test_numbers_are_no_dates(frame):
    days = pd.Series(pd.date_range("2024", periods=len(frame)))
    for y in (days, days.dt.tz_localize("UTC"), days - days[0], days.dt.date, days.to_list()):
        with pytest.raises(ValueError, match="Input y contains dates or durations; expected numbers"):
            CircuitRegressor(**FEW).fit(frame, y)


@pytest.mark.parametrize("share", ["auto", None, 0.0, 0.6])
def test_a_share_of_outliers_that_is_none_is_refused_with_what_is_one(frame, share):
    with pytest.raises(ValueError, match=f"contamination = {share!r}; expected a share above 0, and 0.5 at most"):
        CircuitOutlierDetector(contamination=share, **FEW).fit(frame)


@pytest.mark.parametrize("y", [[2.0], [-3.0, -3.0]])
def test_a_single_number_in_few_rows_has_a_wide_interval(frame, y):
    model = CircuitRegressor(**FEW)
    assert any("below 5 intervals" in message for message in told_at_fit(model, frame[: len(y)].to_numpy() * 0.0, y))
    lower, upper = model.predict_interval([[0.0, 0.0]])[0]
    assert upper - lower > abs(y[0])
    assert lower < y[0] < upper


def test_intervals_of_few_rows_are_told_to_say_nothing(frame):
    told = [told_at_fit(CircuitRegressor(**FEW), frame[:n], frame["a"][:n]) for n in (4, 5)]
    assert told == [["4 rows: below 5 intervals of predicted numbers are far too narrow"], []]


def test_a_number_that_many_rows_hold_is_certain(frame):
    model = CircuitRegressor(**FEW).fit(frame, np.full(len(frame), 3.0))
    np.testing.assert_allclose(model.predict_interval(frame[:2]), 3.0, atol=0.01)
