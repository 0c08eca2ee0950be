"""Drawn cells are such as the table holds: constants, positive numbers, nothing in a gap between two clusters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, EvidenceError, QueryError

FEW = {"n_structures": 2, "seed": 1, "progress": False}


@pytest.fixture(scope="module", params=["mspn", "jpt"])
def post(request):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "constant": 7.5,
            "day": pd.Timestamp("2020-01-01"),
            "tiny": rng.gamma(0.3, 1e-6, 300),
            "real": rng.normal(size=300),
        }
    )
    with pytest.warns(BayesjptWarning, match="constant columns"):
        table = bj.as_table(frame)
    return bj.fit(table, request.param, **FEW)


def holes(post, *names):
    frame = post.sample(200, rng=2).to_frame()
    frame[list(names)] = None
    return bj.as_table(frame, schema=post.schema)


def test_a_column_of_one_value_is_drawn_and_filled_with_it(post):
    rows = post.sample(50_000, rng=1).to_frame()
    filled = post.impute(holes(post, "constant", "day"), rng=1)[0].to_frame()
    means = post.impute_mean(holes(post, "constant", "day")).table.to_frame()
    for frame in rows, filled, means:
        assert (frame["constant"] == 7.5).all()
        assert (frame["day"] == pd.Timestamp("2020-01-01")).all()
    assert post.sample(20_000, rng=1, labels="all").to_frame()["constant"].nunique() > 1  # there is more than that


def test_a_column_of_one_value_is_not_kept_where_what_is_given_rules_it_out(post):
    for rows in post.sample(5, "constant > 10", rng=1), post.condition("constant > 10").sample(5, rng=1):
        assert (rows.to_frame()["constant"] > 10.0).all()
    assert (post.sample(3, {"constant": 9.0}, rng=1).to_frame()["constant"] == 9.0).all()


def test_numbers_without_a_recording_grid_are_not_rounded(post):
    filled = post.impute(holes(post, "tiny"), rng=1)[0].to_frame()["tiny"]
    assert (filled > 0.0).all()
    assert (post.impute_mean(holes(post, "tiny")).table.to_frame()["tiny"] > 0.0).all()


def test_a_joint_tree_leaves_the_gap_between_two_clusters_empty():
    rng = np.random.default_rng(2)
    x = np.where(rng.random(1000) < 0.3, rng.normal(0.0, 0.01, 1000), rng.normal(10.0, 0.01, 1000))
    frame = pd.DataFrame({"x": x} | {f"z{k}": rng.normal(size=1000) for k in range(4)})
    post = bj.fit(frame, "jpt", **FEW)
    assert float(post.probability("x between 1 and 9").mean()) < 0.03  # .2 under a normal alone


def test_a_likelihood_that_cannot_be_drawn_on_a_cell_is_replaced_and_said():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "z": rng.normal(size=300)})
    with pytest.warns(BayesjptWarning, match="student_t cannot be drawn on a part of column"):
        post = bj.fit(frame, "jpt", families=["student_t"], **FEW)
    assert np.isfinite(post.log_mass(frame).values).all()


def test_shares_and_intervals_that_are_none_are_told(post):
    for ask in (
        lambda: post.patterns(min_support="a"),
        lambda: post.patterns(coverage="a"),
        lambda: post.types(interval="a"),
        lambda: post.components(None),
        lambda: post.components(["real"]),
    ):
        with pytest.raises(QueryError):
            ask()


def test_a_row_that_rules_a_constant_out_is_filled_all_the_same(post):
    given = post.condition("constant > 7.6 or real > 0")
    rows = bj.as_table(pd.DataFrame({"real": [-0.5], "constant": [None]}), schema=post.schema)
    filled = given.impute(rows, rng=1)[0].to_frame()
    assert float(filled["constant"].iloc[0]) > 7.6


@pytest.fixture(scope="module")
def ends():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "mark": rng.choice(5, 400, p=[0.1, 0.2, 0.3, 0.25, 0.15]) + 1,
            "visits": rng.poisson(6.0, 400),
            "price": rng.gamma(1.2, 2.0, 400).round(2),
        }
    )
    return bj.fit(bj.as_table(frame, kinds={"mark": "integer"}), **FEW)


def test_numbers_are_drawn_up_to_the_ends_of_their_column(ends):
    frame = ends.sample(20_000, rng=1).to_frame()
    assert set(frame["mark"]) == {1, 2, 3, 4, 5}
    assert frame["price"].min() >= 0.0
    assert frame["visits"].max() > ends.schema.columns[1].maximum  # counts thin out: more may come
    model = ends.sample(20_000, rng=1, labels="all").to_frame()
    assert not set(model["mark"]) <= {1, 2, 3, 4, 5}


def test_what_is_given_may_lie_beyond_the_ends_where_the_model_is_asked(ends):
    assert (ends.sample(5, "mark > 5", rng=1, labels="all").to_frame()["mark"] > 5).all()
    with pytest.raises(EvidenceError, match="labels='all'"):
        ends.sample(5, "mark > 5", rng=1)
