"""Sampled rows follow the posterior's own conditional cdfs, and respect evidence exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
import bayesjpt.queries.methods  # queries become methods
from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.complete import even_draws, grid
from bayesjpt.table.table import Table, as_table
from tests import examples as ex
from tests.statistics import LARGEST_Z, cdf_deviation, dkw_bound

N_ROW = 20_000
ON_GRID = 1e-9
EVIDENCE = {"label": "b", "count": 2}
EVENT = "label in ('a', 'b') and (real > 1.04 or count <= 2)"
JOINT = ("real > 1 and positive > 2", "positive < 1 and levels > 0", "real < 0 and levels = 0")


@pytest.fixture(scope="module")
def post() -> Posterior:
    """Return unrelated draws of a circuit of two levels with every base."""
    rng = np.random.default_rng(5)
    table = ex.make_table((*ex.COLUMNS[:4], replace(ex.LABEL, dtype="text")), 60, rng)
    return ex.random_posterior(ex.two_level(table), table, rng, n_draw=3)


def mean_cdf(post, name, given):
    """Return the cdf of one column: the mean over draws."""
    return lambda points: post.cdf(points, name, given).mean(("chain", "draw")).to_numpy()[:, 0]


def assert_share(drawn: np.ndarray, expected: float) -> None:
    assert abs(drawn.mean() - expected) < LARGEST_Z * np.sqrt(expected * (1.0 - expected) / drawn.size)


@pytest.mark.parametrize("given", [None, EVENT, EVIDENCE], ids=["nothing", "event", "values"])
@pytest.mark.parametrize("name", ["real", "positive"])
def test_rows_follow_the_mean_of_the_conditional_cdfs(post, name, given, rng):
    rows = post.sample(N_ROW, given, rng=rng, recorded=False, labels="all").values[post.schema.index(name)]
    points = np.quantile(rows, np.linspace(0.01, 0.99, 25))
    reached = (rows[None] <= points[:, None]).mean(axis=1)
    assert np.abs(reached - mean_cdf(post, name, given)(points)).max() < dkw_bound(N_ROW)


@pytest.mark.parametrize("given", [EVENT, EVIDENCE], ids=["event", "values"])
def test_counts_follow_the_mean_of_the_conditional_cdfs(post, given, rng):
    rows = post.sample(N_ROW, given, rng=rng)
    for name in ("count", "levels"):
        if given is EVENT or name not in given:
            assert cdf_deviation(rows.values[post.schema.index(name)], mean_cdf(post, name, given)) < dkw_bound(N_ROW)


@pytest.mark.parametrize("given", [None, EVENT, EVIDENCE], ids=["nothing", "event", "values"])
def test_cells_of_a_row_are_drawn_jointly(post, given, rng):
    frame = post.sample(N_ROW, given, rng=rng, recorded=False, labels="all").to_frame()
    for event in JOINT:
        expected = float(post.probability(event, given).mean())
        assert_share(frame.eval(event.replace(" = ", " == ")).to_numpy(), expected)


def test_rows_lie_in_the_event_that_is_given(post, rng):
    frame = post.sample(2000, EVENT, rng=rng, recorded=False).to_frame()
    assert frame.eval("label in ('a', 'b') and (real > 1.04 or count <= 2)").all()


def test_rows_rounded_to_the_grid_lie_in_the_event_too(post, rng):
    rows = post.sample(2000, EVENT, rng=rng)
    assert rows.to_frame().eval("label in ('a', 'b') and (real > 1.04 or count <= 2)").all()
    tenths = rows.values[0] * 10.0
    assert np.abs(tenths - np.round(tenths)).max() < ON_GRID


def test_recorded_decimals_are_the_floats_that_people_write(post, rng):
    values = post.sample(500, rng=rng).values[0]
    assert all(value == float(f"{value:.1f}") for value in values)


def test_integers_are_whole_whatever_the_scale_they_are_drawn_on(rng):
    table = bj.as_table(pd.DataFrame({"signed": np.tile(np.arange(-5, 6), 20), "other": np.tile(np.arange(-9, 2), 20)}))
    post = ex.random_posterior(ex.two_level(table, ex.only("rounded_normal")), table, rng)
    drawn = post.sample(1000, rng=rng).values
    assert table.schema.columns[0].scale > 1.0
    np.testing.assert_array_equal(drawn, np.rint(drawn))


def test_whole_numbers_and_times_lie_on_the_step_of_all_that_were_recorded(rng):
    minutes = 10 * rng.integers(0, 4_000, 200)
    table = as_table(
        {"n": 5.0 * rng.integers(0, 300, 200), "at": np.datetime64("2024-03-01") + minutes.astype("m8[m]")}
    )
    post = Posterior.from_circuit(bj.learn_mspn(table, rng, min_rows=50), table.schema)
    rows = post.sample(300, rng=rng).to_frame()
    assert (rows["n"] % 5 == 0).all()
    assert (rows["at"].dt.floor("10min") == rows["at"]).all()
    assert (post.sample(300, rng=rng, recorded=False).to_frame()["n"] % 5 != 0).any()
    holes = table.to_frame()
    holes.loc[::3, "n"] = np.nan
    assert (post.impute_mean(holes).table.values[0] % 5 == 0).all()


def test_unrecorded_values_are_not_rounded(post, rng):
    values = post.sample(50, rng=rng, recorded=False).values[0]
    assert np.unique(values).size == 50


def coded(rng, n_row: int = 90) -> pd.DataFrame:
    """Return columns of codes that are labels, of booleans and of dates, with a text beside them."""
    return pd.DataFrame(
        {
            "code": rng.choice([3, 7, 9], n_row),
            "flag": rng.random(n_row) < 0.4,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 3, n_row), "D"),
            "kind": rng.choice(["a", "b", "c"], n_row),
        }
    )


@pytest.fixture
def labels_post(rng) -> Posterior:
    """Return draws under which a new row has a label of its own one time in four, in three of four columns."""
    table = bj.as_table(coded(rng), kinds={"code": "category", "day": "category"})
    post = ex.random_posterior(ex.two_level(table, ex.only("categorical")), table, rng, n_chain=1, n_draw=2)
    for first, length in zip(post.circuit.theta_at, post.circuit.theta_len, strict=True):
        theta = post.params.theta[..., first : first + length]
        if length > 1:  # a leaf of two labels has one parameter
            theta[..., :-1] *= 0.75 / theta[..., :-1].sum(axis=-1, keepdims=True)
            theta[..., -1] = 0.25
    return post


@pytest.mark.parametrize("tries", [1, 1000], ids=["conditioned", "drawn anew"])
def test_drawn_labels_are_those_of_the_training_table_in_exact_proportion(labels_post, tries, rng, monkeypatch):
    monkeypatch.setattr("bayesjpt.queries.complete.MAX_REDRAWS", tries)
    n = 600 if tries == 1 else N_ROW
    rows = labels_post.sample(n, rng=rng)
    n_label = np.array([[len(column.labels)] for column in labels_post.schema])
    assert (rows.values < n_label).all()
    given = labels_post.condition("code != 'other' and flag != 'other' and day != 'other' and kind != 'other'")
    frame = rows.to_frame()
    for event, drawn in {
        "code = 3 and kind = 'a'": (frame["code"] == 3) & (frame["kind"] == "a"),
        "kind = 'b' and flag = true": (frame["kind"] == "b") & frame["flag"],
        "day = '2024-01-02'": frame["day"] == "2024-01-02",
    }.items():
        assert_share(drawn.to_numpy(), float(given.probability(event).mean()))


def test_sampled_codes_flags_and_dates_have_their_types_and_none_is_missing(labels_post, rng):
    frame = labels_post.sample(300, rng=rng).to_frame()
    assert not frame.isna().any().any()
    assert frame["code"].dtype == np.int64
    assert frame["flag"].dtype == bool
    assert frame["day"].dtype.kind == "M"


def test_all_labels_hold_other_as_often_as_the_posterior_says_and_none_is_missing(labels_post, rng):
    rows = labels_post.sample(N_ROW, rng=rng, labels="all")
    frame = rows.to_frame()
    assert not frame.isna().any().any()
    assert_share((frame["code"] == "other").to_numpy(), 0.25)
    assert set(frame["code"]) == {"3", "7", "9", "other"}
    again = bj.as_table(frame, schema=rows.schema)
    assert (again.values == rows.values).all()


def test_evidence_that_only_other_labels_meet_is_refused_with_the_remedy(labels_post, rng):
    event = "kind not in ('a', 'b', 'c')"
    with pytest.raises(EvidenceError, match=r"column 'kind'.*labels='all'"):
        labels_post.sample(3, event, rng=rng)
    frame = labels_post.sample(3, event, rng=rng, labels="all").to_frame()
    assert set(frame["kind"]) == {"other"}
    with pytest.raises(QueryError, match="labels='some'"):
        labels_post.sample(3, rng=rng, labels="some")


@pytest.mark.filterwarnings("ignore:labels not seen")
def test_completions_keep_labels_that_training_never_showed(labels_post, rng):
    new = pd.DataFrame({"kind": ["zz", "a"], "code": [None, 5.0]})
    frame = labels_post.sample(2, new, rng=rng).to_frame()
    assert frame["kind"].tolist() == ["zz", "zz", "a", "a"]
    assert frame["code"].tolist()[2:] == [5, 5]
    assert set(frame["code"].tolist()[:2]) <= {3, 7, 9}


def test_given_cells_stay_as_they_are_and_completions_stand_side_by_side(post, rng):
    given = pd.DataFrame({"real": [1.23456, None, -0.5], "label": ["a", "b", None]})
    rows = post.sample(4, given, rng=rng)
    assert rows.n_row == 12
    assert rows.n_missing == 0
    frame = rows.to_frame()
    assert (frame["real"][:4] == 1.23456).all()
    assert (frame["real"][8:] == -0.5).all()
    assert frame["label"][:8].tolist() == ["a"] * 4 + ["b"] * 4


def test_every_draw_is_used_equally_often_up_to_one(rng):
    counts = np.bincount(even_draws(100, 7, rng), minlength=7)
    assert counts.max() - counts.min() <= 1
    assert np.unique(even_draws(5, 1000, rng)).size == 5


def test_rows_come_from_all_draws(rng):
    """Two draws whose labels differ for certain: half of the rows come from each."""
    table = ex.make_table((ex.LABEL,), 10, rng)
    circuit = ex.independent(table)
    theta = np.full((1, 2, 4), 1e-12)
    theta[0, 0, 0] = theta[0, 1, 2] = 1.0
    post = Posterior(circuit, table.schema, Params(np.zeros((1, 2, circuit.n_edge)), theta))
    rows = post.sample(1000, rng=rng).values[0]
    assert (rows == 0).sum() == (rows == 2).sum() == 500


def test_conditioned_posteriors_are_sampled_like_the_event(post, rng):
    rows = post.constrain({"real": 1.0, "label": "b"}).sample(50, rng=rng).to_frame()
    assert (rows["real"] == 1.0).all()
    assert (rows["label"] == "b").all()


def test_same_generator_gives_the_same_rows(post):
    first, second, third = (post.sample(20, EVENT, rng=np.random.default_rng(s)).values.tolist() for s in (1, 1, 2))
    assert first == second
    assert first != third


def test_impossible_rows_are_refused_naming_row_and_column(post, rng):
    given = pd.DataFrame({"label": ["a", "a"], "real": [1.0, 1e6]})
    with pytest.raises(EvidenceError, match=r"row 2 .* column 'real'"):
        post.condition("real < 3").sample(1, given, rng=rng)


def test_impossible_events_are_refused(post, rng):
    with pytest.raises(EvidenceError):
        post.sample(1, "count < 0", rng=rng)


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_numbers_of_rows_below_one_are_refused(post, n, rng):
    with pytest.raises(QueryError, match="whole number from 1"):
        post.sample(n, rng=rng)


def test_other_things_in_place_of_generators_are_refused(post):
    with pytest.raises(QueryError, match="generator"):
        post.sample(1, rng="one")


def test_grid_points_per_unit_are_whole_or_none(rng):
    columns = (ex.REAL, ex.with_resolution(ex.REAL, 0.05), ex.with_resolution(ex.REAL, 0.03), ex.COUNT)
    columns += (ex.with_resolution(ex.REAL, 20.0),)
    resolution, per_unit, _ = grid(ex.make_table(columns, 1, rng).schema)
    assert resolution.tolist() == [0.1, 0.05, 0.03, 0.0, 20.0]
    assert per_unit.tolist() == [10.0, 20.0, 0.0, 0.0, 0.0]


def test_times_of_day_are_drawn_within_a_day(rng):
    minutes = rng.integers(1320, 1440, 200)  # a likelihood of the whole line reaches beyond midnight
    table = bj.as_table({"at": [f"{k // 60}:{k % 60:02}" for k in minutes]})
    circuit = bj.learn_mspn(table, rng)
    post = Posterior.from_circuit(circuit, table.schema)
    beyond = post.sample(2000, rng=rng, labels="all", recorded=False).values[0]
    assert (beyond >= 1440.0).mean() > 0.01
    within = post.sample(2000, rng=rng)
    assert within.values[0].max() <= 1439.0
    assert within.to_frame()["at"].min().hour >= 18


def test_draws_keep_the_steps_of_their_column_where_these_begin_off_zero(rng):
    n = 200
    days = np.datetime64("2024-01-01") + 7 * rng.integers(0, 60, n)
    frame = pd.DataFrame(
        {
            "price": rng.integers(1, 60, n) + 0.99,
            "list": 100 * rng.integers(1, 400, n) + 99,
            "week": days.astype("datetime64[us]"),
            "arrival": (days + rng.integers(0, 24, n).astype("timedelta64[h]")) + np.timedelta64(50, "m"),
        }
    )
    table = bj.as_table(frame)
    post = bj.fit(table, seed=1, n_structures=1, chains=1, tune=5, draws=5, progress=False)
    drawn = post.sample(100, rng=1).to_frame()
    assert (drawn["price"] % 1.0).round(2).eq(0.99).all()
    assert (drawn["list"] % 100 == 99).all()
    assert (drawn["week"].dt.day_name() == "Monday").all()
    assert (drawn["arrival"].dt.minute == 50).all()
    with pytest.warns(bj.BayesjptWarning, match=r"99 \+ multiples of 100 alone.*between 550 and 649"):
        post.probability("list = 599")


def test_draws_are_the_day_of_the_month_that_all_dates_are(rng):
    months = np.datetime64("2019-01") + rng.integers(0, 48, 150).astype("timedelta64[M]")
    firsts = months.astype("datetime64[D]")
    quarters = np.datetime64("2015-01") + (3 * rng.integers(0, 20, 150)).astype("timedelta64[M]")
    quarters = quarters.astype(firsts.dtype)
    ends = firsts - np.timedelta64(1, "D")
    frame = pd.DataFrame({"month": firsts, "end": ends, "quarter": quarters, "size": rng.normal(size=150).round(2)})
    table = bj.as_table(frame.astype(dict.fromkeys(("month", "end", "quarter"), "datetime64[us]")))
    assert [(column.months, column.offset) for column in table.schema][:3] == [(1.0, 0.0), (1.0, -1.0), (3.0, 0.0)]
    assert "in steps of 3 months, on the first day" in table.schema.columns[2].reason
    assert bj.Schema.from_dict(table.schema.to_dict()) == table.schema
    post = bj.fit(table, seed=1, n_structures=1, chains=1, tune=5, draws=5, progress=False)
    gaps = Table(table.schema, table.values[:, :20], np.tile([[False], [False], [False], [True]], 20))
    completed = bj.queries.impute.impute_mean(post, gaps).table.to_frame()
    for drawn in (post.sample(200, rng=1).to_frame(), completed):
        assert (drawn["month"].dt.day == 1).all()
        assert drawn["end"].dt.is_month_end.all()
        assert drawn["quarter"].dt.is_quarter_start.all()
    free = post.sample(50, rng=1, recorded=False).values[0]
    assert (free != np.rint(free)).any()
    # an event without any first of a month keeps its own days
    between = post.sample(20, "month > '2020-03-05' and month < '2020-03-20'", rng=1).to_frame()["month"]
    assert ((between > "2020-03-05") & (between < "2020-03-20")).all()
    best = post.most_probable(k=2)["value"].values
    assert {str(value)[8:10] for value in best[:, 0]} == {"01"}
    with pytest.warns(bj.BayesjptWarning, match="between '2020-03-17' and '2020-04-16'"):
        post.probability("month = '2020-04-01'")
