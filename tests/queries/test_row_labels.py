"""Answers about rows keep the index of a frame of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from tests import examples as ex

QUERIES = {
    "log_density": lambda post, rows: post.log_density(rows),
    "probability": lambda post, rows: post.probability("x > 0", rows[["label"]]),
    "probability of an object": lambda post, rows: post.probability(bj.col("x") > 0.0, rows[["label"]]),
    "outliers": lambda post, rows: post.outliers(rows),
    "membership": lambda post, rows: post.membership(rows),
    "most_probable": lambda post, rows: post.most_probable(rows[["label"]]),
    "mode": lambda post, rows: post.mode(given=rows[["label"]]),
    "expectation": lambda post, rows: post.expectation("x", rows[["label"]]),
    "impute_mean": lambda post, rows: post.impute_mean(rows.assign(x=[None, 1.0, None])).cells,
}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=40).round(2), "label": rng.choice(list("ab"), 40)})
    table = bj.as_table(frame)
    return ex.random_posterior(ex.mixture(table), table, rng, n_draw=2), frame


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ([7, 3, 9], [7, 3, 9]),
        (["b", "a", "b"], ["b", "a", "b"]),
        (pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), ["a, 1", "a, 2", "b, 1"]),
        (pd.period_range("2024-01", periods=3, freq="M"), ["2024-01", "2024-02", "2024-03"]),
        (pd.RangeIndex(3), None),
    ],
    ids=["numbers", "texts", "levels", "periods", "range"],
)
def test_answers_have_the_index_of_the_frame_beside_the_numbers_of_rows(query, index, expected, fitted):
    post, frame = fitted
    rows = frame.head(3).set_axis(index, axis=0)
    answer, plain = query(post, rows), query(post, frame.head(3))
    assert answer["obs_id"].to_numpy().tolist() == [0, 1, 2]
    assert (answer["index"].to_numpy().tolist() if expected else "index" not in answer.coords) == (expected or True)
    assert "index" not in plain.coords
    for name in plain.to_dataset(name="values") if hasattr(plain, "to_dataset") else plain:
        found, numbered = (one if hasattr(one, "to_dataset") else one[name] for one in (answer, plain))
        np.testing.assert_array_equal(found.to_numpy(), numbered.to_numpy())


def test_answers_about_a_shuffled_frame_and_its_table_are_the_same_rows(fitted, tmp_path):
    post, frame = fitted
    shuffled = frame.sample(frac=1.0, random_state=1)
    answer = post.log_density(shuffled)
    assert (answer - post.log_density(bj.as_table(shuffled, schema=post.schema)) == 0.0).all()
    assert answer.sizes["obs_id"] == len(frame)
    of_moments = shuffled.set_axis(pd.date_range("2024-01-01", periods=len(frame), tz="Asia/Tokyo"), axis=0)
    found = post.log_density(of_moments)
    assert found["index"].to_numpy()[0] == np.datetime64("2023-12-31T15:00")
    found.to_netcdf(tmp_path / "answer.nc", engine="h5netcdf")


def test_both_axes_of_rows_have_it_and_tables_have_numbers(fitted):
    post, frame = fitted
    rows = frame.head(3).set_axis(["p", "q", "r"], axis=0)
    together = post.comembership(rows)
    assert together["index_other"].to_numpy().tolist() == ["p", "q", "r"]
    assert "index" not in post.log_density(bj.as_table(rows, schema=post.schema)).coords


def test_of_several_tables_the_first_is_asked_about(fitted):
    post, frame = fitted
    rows, reference = frame.head(3), frame.iloc[10:13]
    assert "index" not in post.outliers(rows, reference=reference).coords
    assert "index" not in post.outliers(reference=reference, table=bj.as_table(rows, schema=post.schema)).coords
    assert post.outliers(reference, reference=rows)["index"].to_numpy().tolist() == [10, 11, 12]
