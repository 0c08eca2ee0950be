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
        (pd.RangeIndex(3), [0, 1, 2]),
    ],
    ids=["numbers", "texts", "levels", "range"],
)
def test_answers_have_the_index_of_the_frame(query, index, expected, fitted):
    post, frame = fitted
    rows = frame.head(3).set_axis(index, axis=0)
    answer, plain = query(post, rows), query(post, frame.head(3))
    assert answer["obs_id"].to_numpy().tolist() == expected
    assert plain["obs_id"].to_numpy().tolist() == [0, 1, 2]
    for name in plain.to_dataset(name="values") if hasattr(plain, "to_dataset") else plain:
        found, numbered = (one if hasattr(one, "to_dataset") else one[name] for one in (answer, plain))
        np.testing.assert_array_equal(found.to_numpy(), numbered.to_numpy())


def test_both_axes_of_rows_have_it_and_tables_have_numbers(fitted):
    post, frame = fitted
    rows = frame.head(3).set_axis(["p", "q", "r"], axis=0)
    together = post.comembership(rows)
    assert together["obs_id_other"].to_numpy().tolist() == ["p", "q", "r"]
    assert post.log_density(bj.as_table(rows, schema=post.schema))["obs_id"].to_numpy().tolist() == [0, 1, 2]


def test_of_several_tables_the_first_is_asked_about(fitted):
    post, frame = fitted
    rows, reference = frame.head(3), frame.iloc[10:13]
    assert post.outliers(rows, reference=reference)["obs_id"].to_numpy().tolist() == [0, 1, 2]
    numbered = post.outliers(reference=reference, table=bj.as_table(rows, schema=post.schema))
    assert numbered["obs_id"].to_numpy().tolist() == [0, 1, 2]
    assert post.outliers(reference, reference=rows)["obs_id"].to_numpy().tolist() == [10, 11, 12]
