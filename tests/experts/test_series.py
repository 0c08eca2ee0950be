"""Fits of hidden Markov decision trees: what they find, what they answer, and what bad rows get."""

from __future__ import annotations

import warnings
from dataclasses import replace

import h5py
import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, FitFileError, LearnerError, QueryError, SchemaError, TableError
from bayesjpt.experts.series import ExpertSeriesPosterior
from bayesjpt.experts.words import chance
from tests.experts import series_naive
from tests.files import renew_checksum
from tests.statistics import LARGEST_Z

SHORT = {"draws": 10, "tune": 20, "chains": 2, "rng": 1}
ORDER = {"time": "t", "series": "id"}


def regimes(n: int = 150, seed: int = 1) -> pd.DataFrame:
    """Return two series whose slope switches, with noise so large that a row alone hardly tells."""
    rng = np.random.default_rng(seed)
    out = []
    for name in ("a", "b"):
        switch = rng.random(n) < 0.05
        regime = (np.cumsum(switch) + (name == "b")) % 2
        x = rng.normal(size=n).round(3)
        y = np.where(regime == 1, 1.5 * x, -1.5 * x) + rng.normal(0.0, 0.7, n)
        out.append(pd.DataFrame({"t": np.arange(n), "id": name, "x": x, "y": y.round(3), "regime": regime}))
    return pd.concat(out, ignore_index=True)


@pytest.fixture(scope="module")
def fitted() -> tuple[ExpertSeriesPosterior, pd.DataFrame]:
    rows = regimes()
    found = bj.fit_experts(rows, target="y", given=["x"], depth=1, **ORDER, **(SHORT | {"draws": 40, "tune": 60}))
    assert isinstance(found, ExpertSeriesPosterior)
    return found, rows


def test_regimes_that_rows_alone_do_not_tell_are_found(fitted):
    post, rows = fitted
    smooth = post.smooth(rows).sel(chain=0).mean("draw").values
    np.testing.assert_allclose(smooth.sum(axis=0), 1.0, rtol=1e-12)
    agree = float((smooth.argmax(axis=0) == rows["regime"]).mean())
    assert max(agree, 1.0 - agree) > 0.93
    apart = bj.fit_experts(rows, target="y", given=["x"], depth=1, **SHORT)
    gain = post.log_density(rows).mean() - apart.log_density(rows).mean()
    assert float(gain) > 0.1
    assert "follows itself" in post.explain()
    assert 0.85 < float(post.transition_probabilities().sel(leaf_before=0, leaf=0).mean()) < 1.0


def one_draw(post: ExpertSeriesPosterior, gate: np.ndarray, offset: np.ndarray) -> ExpertSeriesPosterior:
    """Return the posterior of one draw with other gates, (n_gate, n_covariate), and offsets, (n_gate, n_slot)."""
    own = post.of_chain(0).some_draws(1)
    coefficients = own.coefficients._replace(gate=gate[None, None])
    return replace(own, coefficients=coefficients, memory=own.memory._replace(offset=offset[None, None]))


def test_gates_are_told_given_the_leaf_before(fitted):
    post, rows = fitted
    text = one_draw(post, np.array([[0.2, 0.01]]), np.array([[-9.0, 9.0]])).explain()
    gate = "after leaf 0 nearly never (probability <0.001); after leaf 1 nearly always (probability >0.999)"
    assert f"\n{gate}:\n    leaf 1: y: " in text
    assert "\nelse:\n    leaf 0: y: " in text
    sharp = one_draw(post, np.array([[0.2, 6.0]]), np.array([[-1.0, 4.0]]))
    x = sharp.model.covariates.members[0]
    cuts = [x.centre - x.scale * (0.2 + offset) / 6.0 for offset in (-1.0, 4.0)]
    gate = f"after leaf 0 if x > {cuts[0]:.4g} (sharp); after leaf 1 if x > {cuts[1]:.4g} (sharp)"
    assert f"\n{gate}:\n" in sharp.explain()
    assert gate in str(sharp.tree(rows))
    assert gate.replace(">", "<") in str(sharp.tree(rows))
    alike = one_draw(post, np.array([[0.2, 6.0]]), np.zeros((1, 2))).explain()
    assert f"\nif x > {x.centre - x.scale * 0.2 / 6.0:.4g} (sharp):\n" in alike


@pytest.mark.parametrize("transitions", ["leaf", "decision"])
def test_gates_of_many_leaves_before_are_told_by_their_ends(transitions):
    own = {"target": "y", "given": ["x"], "depth": 3, "transitions": transitions, **ORDER, **SHORT}
    post = bj.fit_experts(regimes(20), **(own | {"draws": 1, "tune": 1, "chains": 1}))
    text = post.explain()
    table = post.transition_probabilities().values[0, 0]
    right = table[1:, 4:].sum(axis=1)  # of the root, by the leaf before
    if transitions == "leaf":
        least, most = int(right.argmin()), int(right.argmax())
        ends = f"{chance(right[least])} after leaf {least} to {chance(right[most])} after leaf {most}"
        assert f"\nwith probability {ends} at average covariates:\n" in text
    else:
        assert "after leaves 0, 1, 2 and 3 " in text.splitlines()[2]
        np.testing.assert_allclose(right[:4], right[0])


def test_average_covariates_of_transitions_are_those_of_the_rows():
    rows = regimes(60).assign(kind=lambda frame: np.where(frame["t"] % 7 == 0, "u", "v"))
    post = bj.fit_experts(rows, target="y", given=[], gates=["kind", "id", "x"], depth=1, **ORDER, **SHORT)
    row = post.model.gate_covariates.matrix(post.read(rows)).mean(axis=0)
    for draw in ((0, 0), (1, 9)):
        gate, offset = post.coefficients.gate[draw], post.memory.offset[draw]
        own = series_naive.transition(gate, offset, row, 1, "leaf")
        np.testing.assert_allclose(post.transition_probabilities().values[draw][2], own, rtol=1e-9)


def test_draws_do_not_depend_on_cores_or_on_the_order_of_rows(fitted):
    post, rows = fitted
    shuffled = rows.sample(frac=1.0, random_state=3)
    own = {"target": "y", "given": ["x"], "depth": 2, **ORDER, **SHORT}
    one, two = bj.fit_experts(rows, cores=1, **own), bj.fit_experts(shuffled, cores=2, **own)
    for a, b in zip((*one.coefficients, *one.memory), (*two.coefficients, *two.memory), strict=True):
        np.testing.assert_array_equal(a, b)
    again = post.log_density(shuffled).values
    np.testing.assert_array_equal(again, post.log_density(rows).values[:, :, shuffled.index])
    pd.testing.assert_frame_equal(post.predict(shuffled), post.predict(rows).loc[shuffled.index])


def test_answers_have_the_index_of_the_frame_and_draws_the_grid_of_the_target(fitted):
    post, rows = fitted
    some = rows.head(4).set_axis(["p", "q", "r", "s"], axis=0)
    for answer in (post.filter(some), post.log_density(some), post.transition_probabilities(some)):
        assert answer["index"].to_numpy().tolist() == ["p", "q", "r", "s"]
    assert "index" not in post.transition_probabilities().coords
    resolution = post.model.response.columns[0].resolution
    drawn = post.sample_series(2, some.assign(y=np.nan), rng=1)["y"].to_numpy() / resolution
    np.testing.assert_allclose(drawn, drawn.round(), atol=1e-6)


def test_rows_behind_the_end_are_forecasts(fitted):
    post, rows = fitted
    ahead = pd.concat(
        [rows, pd.DataFrame({"t": [150, 151], "id": "b", "x": [1.0, -1.0], "y": np.nan})], ignore_index=True
    )
    weight = post.filter(ahead).values[:, :, :, -3:]  # the last known row, and two without targets
    step = post.transition_probabilities(ahead).values[..., -1]
    np.testing.assert_allclose(
        weight[..., 2], np.einsum("cdk,cdkl->cdl", weight[..., 1], step[:, :, 1:]), rtol=1e-10, atol=1e-12
    )
    predicted = post.predict(ahead).tail(2)
    assert np.isfinite(predicted.to_numpy()).all()
    assert (predicted["lower"] < predicted["upper"]).all()
    assert np.isfinite(post.at({"t": [0], "id": ["new"], "x": [0.5]}).probability("y > 0")).all()


def test_missing_targets_are_drawn_given_all_others_of_the_series(fitted):
    post, rows = fitted
    gone = rows.head(12).copy()
    gone.loc[[4, 5, 11], "y"] = np.nan
    n = 4_000
    few = post.some_draws(2)
    drawn = few.sample_series(n, gone, rng=1, recorded=False)
    assert len(drawn) == n * 12
    known = drawn[drawn["row"] == 3]["y"]
    assert (known == rows["y"][3]).all()
    # leaves and means of two draws of two chains, against all paths
    for row in (4, 5, 11):
        means, seconds = [], []
        for draw in ((0, 0), (1, 0)):
            table = few.read(gone)
            weight = series_naive.marginals(*series_naive.paths(few, table, table.order.rows, draw), 2)[row]
            x = few.model.covariates.matrix(table)[row]
            leaves = [series_naive.naive.leaf_distribution(few, 0, draw, leaf, x) for leaf in range(2)]
            means.append(sum(w * leaf.mean() for w, leaf in zip(weight, leaves, strict=True)))
            second = [w * (leaf.var() + leaf.mean() ** 2) for w, leaf in zip(weight, leaves, strict=True)]
            seconds.append(sum(second))
        own = drawn[drawn["row"] == row]["y"]
        error = np.sqrt((np.mean(seconds) - np.mean(means) ** 2) / n)
        assert abs(own.mean() - np.mean(means)) < LARGEST_Z * error
    # neighbours are drawn together: the leaf mostly stays
    pair = drawn.pivot(index="sample", columns="row", values="leaf")
    assert (pair[4] == pair[5]).mean() > 0.8


def test_leaves_have_intervals(fitted):
    post, rows = fitted
    frame = post.leaves(rows.set_axis(pd.Index(rows.index, name="own")), chain=1, known="past")
    np.testing.assert_allclose(frame["p_1"], post.filter(rows).sel(chain=1, leaf=1).mean("draw"), rtol=1e-12)
    assert (frame["lower_0"] <= frame["upper_0"]).all()
    assert frame.index.name == "own"
    with pytest.raises(QueryError, match="known"):
        post.leaves(rows, known="future")
    with pytest.raises(QueryError, match="chain"):
        post.leaves(rows, chain=2)


def test_a_saved_fit_answers_as_before(fitted, tmp_path):
    post, rows = fitted
    post.save(tmp_path / "fit.nc")
    again = bj.load_experts(tmp_path / "fit.nc")
    assert repr(again) == repr(post)
    np.testing.assert_array_equal(again.log_density(rows), post.log_density(rows))
    np.testing.assert_array_equal(again.smooth(rows), post.smooth(rows))


@pytest.mark.parametrize("damage", ["memory", "order", "slots"])
def test_damaged_files_are_refused(fitted, tmp_path, damage):
    fitted[0].save(tmp_path / "fit.nc")
    with h5py.File(tmp_path / "fit.nc", "r+") as file:
        attrs = file["bayesjpt"].attrs
        if damage == "memory":
            file["posterior/memory_precision"][0, 0, 0] = -1.0
        else:
            old, new = ("leaf", "twig") if damage == "order" else ("leaf", "decision")
            attrs["order"] = attrs["order"].replace(old, new)
            renew_checksum(file)
    with pytest.raises(FitFileError):
        bj.load_experts(tmp_path / "fit.nc")


def test_times_may_be_dates_and_frames_of_any_kind():
    import polars as pl

    n = 40
    days = pd.date_range("2024-01-01", periods=n, freq="D")
    y = np.where(np.arange(n) // 10 % 2, 3.0, 0.0) + 0.3 * np.sin(7.0 * np.arange(n))
    frame = pd.DataFrame({"day": days, "y": y})
    own = {"target": "y", "time": "day", "depth": 1, "kinds": {"y": "real"}, **SHORT}
    post = bj.fit_experts(frame, **own)
    texts = {"day": days.strftime("%Y-%m-%d").tolist(), "y": y}
    for other in (texts, pl.DataFrame(texts), bj.as_table(frame, kinds={"y": "real", "day": "real"})):
        found = bj.fit_experts(other, **(own | ({"kinds": None} if isinstance(other, bj.Table) else {})))
        np.testing.assert_allclose(found.log_density(other), post.log_density(frame), rtol=1e-9)
    # times alone: the marginal of a series without any known target
    ahead = post.predict({"day": days[:3].strftime("%Y-%m-%d").tolist()})
    assert np.isfinite(ahead.to_numpy()).all()


SMALL = {
    "one row": lambda: {"t": [3], "x": [1.0], "y": [2.0]},
    "series of one row each": lambda: {"t": np.zeros(20), "id": np.arange(20), "x": np.sin(np.arange(20.0))},
    "two known targets": lambda: {
        "t": np.arange(20),
        "x": np.sin(np.arange(20.0)),
        "y": [1.0, 2.0] + [None] * 18,
    },
    "no noise at all": lambda: {"t": np.arange(20), "x": np.sin(np.arange(20.0)), "y": np.full(20, 1.5)},
    "far covariates": lambda: {"t": np.arange(20), "x": np.r_[np.arange(19.0), 1e9]},
    "irregular times": lambda: {"t": np.arange(20.0) ** 2, "x": np.sin(np.arange(20.0))},
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("depth", [0, 2])
def test_small_and_strange_series_get_an_answer(name, depth):
    columns = {"y": np.cos(3.0 * np.arange(20.0))} | SMALL[name]()
    series = "id" if "id" in columns else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "covariates with a single value", BayesjptWarning)
        kinds = {"x": "real", "y": "real"}
        post = bj.fit_experts(columns, target="y", time="t", series=series, depth=depth, kinds=kinds, **SHORT)
    for answer in (post.log_density(columns), post.smooth(columns), post.filter(columns)):
        assert np.isfinite(answer).all()
    assert np.isfinite(post.series_log_density(columns)).all()
    assert np.isfinite(post.predict(columns).to_numpy()).all()
    assert np.isfinite(post.sample_series(3, columns, rng=1).to_numpy()).all()


def changed(**cells: list) -> pd.DataFrame:
    frame = regimes(20).assign(word=["a", "b"] * 20)
    for name, values in cells.items():
        frame[name] = frame[name].astype(object)
        frame.loc[[0, 1][: len(values)], name] = values
    return frame


@pytest.mark.parametrize(
    ("rows", "chosen", "message"),
    [
        (changed(t=[None]), {}, "1 missing cell of the column 't', the first in row 1"),
        (changed(id=[None]), {}, "missing cell of the column 'id'"),
        (changed(t=[0, np.inf]), {}, "'t' holds inf in row 2; expected times that are finite"),
        (changed(t=[1]), {}, "rows 1 and 2 at the same 't' of series 'a'"),
        (changed(), {"series": None}, "at the same 't'"),
        (changed(), {"time": "when"}, "no column 'when'"),
        (changed(), {"series": "which"}, "no column 'which'"),
        (changed(), {"time": "word"}, "numbers or dates"),
        (changed(x=[None]), {}, "missing cell of the covariate 'x'"),
    ],
)
def test_rows_without_an_order_are_refused(rows, chosen, message):
    with pytest.raises(TableError, match=message):
        bj.fit_experts(rows, target="y", given=["x"], kinds={"y": "real", "x": "real"}, **(ORDER | SHORT | chosen))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"time": None}, "series='id' without time"),
        ({"time": "y"}, "both target and time"),
        ({"series": "t"}, "both time and series"),
        (
            {"method": "laplace", "draws": None, "tune": None},
            "method='laplace' with the column of time 't'; e",
        ),
        ({"given": 5}, "covariates 5; expected a list"),
        ({"transitions": "all"}, "one of leaf, decision"),
        ({"time": 3}, "time=3"),
        ({"target": 3}, "target=3; expected one or several different columns, by name"),
    ],
)
def test_settings_that_make_no_sense_are_refused(chosen, message):
    with pytest.raises(LearnerError, match=message):
        bj.fit_experts(regimes(20), **({"target": "y"} | ORDER | SHORT | chosen))


def test_kinds_that_are_no_mapping_are_refused():
    with pytest.raises(SchemaError, match="kinds is a list"):
        bj.fit_experts(regimes(20), target="y", kinds=["real"], **ORDER, **SHORT)


def test_a_fit_is_no_start_of_series(fitted):
    post, rows = fitted
    with pytest.raises(LearnerError, match="a fit as start with the column of time 't'; expected a start by name"):
        bj.fit_experts(rows, target="y", given=["x"], depth=1, start=post, **ORDER, **SHORT)


def test_targets_named_as_columns_of_samples_are_refused_by_name():
    rows = regimes(20).rename(columns={"y": "leaf"})
    post = bj.fit_experts(rows, target="leaf", given=["x"], depth=1, **ORDER, **SHORT)
    with pytest.raises(QueryError, match=r"target 'leaf'.*Rename it"):
        post.sample_series(1, rows)


def test_gaps_in_a_grid_of_times_are_told():
    rows = regimes(30).drop(index=[4, 5, 17])
    with pytest.warns(BayesjptWarning, match="2 gaps in 't'"):
        bj.fit_experts(rows, target="y", given=["x"], depth=1, **ORDER, **SHORT)


def test_missing_covariates_are_imputed_from_a_posterior_of_them():
    rows = regimes(40)
    rows.loc[::7, "x"] = np.nan
    table = bj.as_table(rows[["x", "y"]])
    joint = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    post = bj.fit_experts(rows, target="y", given=["x"], depth=1, missing=joint, **ORDER, **SHORT)
    assert np.isfinite(post.series_log_density(rows)).all()
    assert np.isfinite(post.sample_series(2, rows, rng=1)[["y"]].to_numpy()).all()
    with pytest.raises(QueryError, match="'x'"):
        bj.fit_experts(rows, target="y", given=["x"], missing=joint.marginal(["y"]), **ORDER, **SHORT)


@pytest.mark.filterwarnings("ignore:constant columns")
def test_columns_that_are_not_in_use_may_hold_anything_over_time():
    rows = regimes(20).assign(constant=1.0)
    post = bj.fit_experts(rows, target="y", given=["x", "constant"], depth=1, **ORDER, **SHORT)
    changed = rows.assign(regime="text", constant=2.0)
    pd.testing.assert_frame_equal(post.predict(changed), post.predict(rows))


def test_time_is_a_covariate_where_it_is_asked_for():
    rows = regimes(40)
    post = bj.fit_experts(rows, target="y", given=["x", "t"], gates=[], depth=1, **ORDER, **SHORT)
    assert post.model.covariates.columns == ("x", "t")
    assert np.isfinite(post.predict(rows).to_numpy()).all()
    with pytest.raises(QueryError, match="one row"):
        post.at(rows)
