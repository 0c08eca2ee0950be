"""A column predicted from the others: labels with probabilities, numbers with intervals."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, QueryError


def frame_of(n=240, seed=3):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    size = np.where(kind == "a", rng.normal(0, 1, n), rng.normal(8, 2, n)).round(2)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.where(kind == "c", 300, 10) + rng.integers(0, 9, n), "D")
    return pd.DataFrame({"kind": kind, "size": size, "count": rng.poisson(np.where(kind == "b", 20, 3)), "day": day})


@pytest.fixture(scope="module")
def post():
    return bj.fit(frame_of(), n_structures=2, draws=4, tune=4, cores=1, seed=1, progress=False)


@pytest.fixture
def rows():
    new = frame_of(7, 4)
    new.index = pd.Index(list("tuvwxyz"), name="who")
    return new


def test_probabilities_of_labels_are_those_of_events_and_add_up_to_one(post, rows):
    found = post.predict("kind", rows, max_draws=None)
    assert list(found.columns) == ["a", "b", "c"]
    assert found.index.equals(rows.index)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    given = rows.drop(columns="kind").reset_index(drop=True)
    each = [post.probability(bj.col("kind") == label, given).mean(("chain", "draw")).to_numpy() for label in "abc"]
    np.testing.assert_allclose(found.to_numpy().T, each / np.sum(each, axis=0), rtol=1e-9)


@pytest.mark.parametrize("column", ["size", "count"])
def test_an_interval_holds_its_probability_under_the_mixture_of_draws(post, rows, column):
    found = post.predict(column, rows, interval=0.8, max_draws=None)
    given = rows.drop(columns=column)
    for row in range(len(rows)):
        one = given.iloc[[row]]
        below = post.cdf(found["lower"].iloc[row], column, one).mean().item()
        above = post.cdf(found["upper"].iloc[row], column, one).mean().item()
        if column == "size":
            assert below == pytest.approx(0.1, abs=2e-3)
            assert above == pytest.approx(0.9, abs=2e-3)
        else:  # the smallest whole number that reaches the level
            assert below >= 0.1 > post.cdf(found["lower"].iloc[row] - 1, column, one).mean().item()
            assert above >= 0.9 > post.cdf(found["upper"].iloc[row] - 1, column, one).mean().item()


def test_the_mean_is_that_of_impute_mean(post, rows):
    found = post.predict("size", rows, max_draws=None)
    holes = rows.assign(size=np.nan)
    expected = post.impute_mean(holes, recorded=False).table.to_frame()["size"]
    np.testing.assert_allclose(found["mean"], expected, rtol=1e-9)
    assert ((found["lower"] < found["mean"]) & (found["mean"] < found["upper"])).all()


def test_dates_are_predicted_as_dates(post, rows):
    found = post.predict("day", rows)
    assert found["lower"].dtype.kind == "M"
    late = found["mean"] > "2024-06-01"
    assert late.tolist() == (rows["kind"] == "c").tolist()


def test_cells_of_the_column_itself_are_not_looked_at(post, rows):
    one, other = (post.predict("kind", rows.assign(kind=kind)) for kind in ("a", None))
    pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(one, post.predict("kind", rows.drop(columns="kind")))


def test_new_columns_are_ignored_with_a_warning(post, rows):
    with pytest.warns(BayesjptWarning, match="ignored: 'new'"):
        found = post.predict("kind", rows.assign(new=1))
    pd.testing.assert_frame_equal(found, post.predict("kind", rows))


@pytest.mark.parametrize("make", [pl.DataFrame, lambda d: pa.table(d), dict])
def test_the_answer_is_a_frame_of_the_kind_of_the_rows(post, rows, make):
    columns = {name: rows[name].tolist() for name in ("size", "count")}
    found = post.predict("kind", make(columns))
    expected = {pl.DataFrame: pl.DataFrame, dict: pd.DataFrame}.get(make, pa.Table)
    assert isinstance(found, expected)


def test_no_rows_have_no_predictions(post, rows):
    table = bj.as_table(rows, schema=post.schema)
    for column, names in (("kind", ["a", "b", "c"]), ("size", ["mean", "lower", "upper"])):
        found = post.predict(column, table.take(np.zeros(table.n_row, bool)))
        assert (list(found.columns), len(found)) == (names, 0)


@pytest.mark.parametrize("interval", [0.0, 1.0, "much"])
def test_an_interval_is_a_probability(post, rows, interval):
    with pytest.raises(QueryError, match="interval"):
        post.predict("size", rows, interval=interval)


def test_an_unknown_column_is_refused_with_the_closest(post, rows):
    with pytest.raises(QueryError, match=r"'sise'.*'size'"):
        post.predict("sise", rows)


def test_one_column_alone_is_predicted_from_nothing():
    post = bj.fit(frame_of()[["kind"]], n_structures=1, draws=2, tune=2, chains=1, seed=1, progress=False)
    with pytest.warns(BayesjptWarning, match="ignored"):
        found = post.predict("kind", pd.DataFrame({"other": [1, 2]}))
    assert found["a"].between(0.4, 0.6).all()


@pytest.mark.parametrize("rng", [None, 3, np.random.default_rng(3)])
def test_randomness_is_none_a_seed_or_a_generator(post, rng):
    rows = post.sample(5, rng=rng)
    filled = post.impute(pd.DataFrame({"kind": [None]}), rng=rng)[0]
    assert (rows.n_row, filled.n_missing) == (5, 0)
    if isinstance(rng, int):
        np.testing.assert_array_equal(rows.values, post.sample(5, rng=np.random.default_rng(rng)).values)


@pytest.mark.parametrize("rng", ["a", -1, True, 1.5])
def test_other_randomness_is_refused(post, rng):
    with pytest.raises(QueryError, match="rng"):
        post.sample(5, rng=rng)


def test_a_moment_is_predicted_beside_a_date(post):
    found = post.predict("day", {"size": [0.0], "count": [3]}, interval=0.5)
    assert found["upper"].iloc[0] >= datetime.datetime(2024, 1, 1)


@pytest.mark.parametrize("signs", [(-0.5, 0.5), (1.0, 1.0)])
def test_intervals_of_columns_of_the_largest_numbers_are_finite(rng, signs):
    size = 1e300 * rng.uniform(0.5, 1.0, 60) * np.resize(signs, 60)
    post = bj.fit(pd.DataFrame({"size": size}), n_structures=1, draws=4, tune=4, cores=1, seed=1, progress=False)
    found = post.predict("size", pd.DataFrame({"size": size[:1]}))
    lower, upper = found.loc[0, ["lower", "upper"]]
    assert np.isfinite([lower, upper]).all()
    np.testing.assert_allclose(post.cdf([lower, upper], "size").mean(("chain", "draw"))[:, 0], [0.05, 0.95], atol=1e-3)


def test_columns_of_frames_without_names_are_asked_for_by_their_numbers(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 3)))
    post = bj.Posterior.from_circuit(bj.learn_mspn(bj.as_table(frame), rng, min_rows=60), bj.as_table(frame).schema)
    assert post.predict(2, frame[:2]).equals(post.predict("2", frame[:2]))
    assert post.expectation([0, np.int64(2)]).equals(post.expectation(["0", "2"]))
    assert post.probability(bj.col(1) > 0.0).equals(post.probability(bj.col("1") > 0.0))
    assert post.expectation(2, given={0: 1.0}).equals(post.expectation("2", given={"0": 1.0}))
    with pytest.raises(QueryError, match="no column '7'"):
        post.predict(7, frame[:2])
    with pytest.raises(QueryError, match="True"):
        post.expectation(True)


def test_ends_of_intervals_of_few_fractions_are_among_them(rng):
    share = rng.choice([0.5, 0.8, 1.0], 200)
    frame = pd.DataFrame({"share": share, "y": np.where(share == 1.0, 5.0, 0.0) + rng.normal(size=200)})
    post = bj.fit(frame, seed=1, n_structures=1, chains=1, tune=20, draws=20, progress=False)
    found = post.predict("share", pd.DataFrame({"y": [0.0, 5.0]}))
    assert found[["lower", "upper"]].to_numpy().tolist() == [[0.5, 0.8], [1.0, 1.0]]
