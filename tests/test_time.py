"""A limit of time: what is done by then is the fit; and no phase of it is silent."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, SamplingError
from bayesjpt.fitting.learning import LearnerFunction, StoppedError
from tests.test_ensemble import same

FEW = {"draws": 6, "tune": 3, "progress": False}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    size = rng.gamma(3.0, 1.0, 120).round(1)
    frame = pd.DataFrame({"size": size, "twice": (2.0 * size + rng.normal(0.0, 0.3, 120)).round(1)})
    return bj.as_table(frame.assign(colour=rng.choice(["red", "white", "none"], 120)))


def test_structures_that_are_done_in_time_are_those_of_a_fit_without_a_limit(table):
    """The time is up before anything is done: one structure is waited for, and no more."""
    whole = bj.fit(table, n_structures=3, seed=5, cores=1, **FEW)
    with pytest.warns(BayesjptWarning, match="the time is up: 1 of 3 structures are kept"):
        some = bj.fit(table, n_structures=3, seed=5, cores=1, time=1e-9, **FEW)
    assert len(some.by_structure()) == 1
    assert some.settings["interrupted"] == "1 of 3 structures"
    for ours, theirs in zip(some.by_structure()[0].params, whole.by_structure()[0].params, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_fit_that_ran_out_of_time_goes_on_from_its_checkpoint(table, tmp_path):
    options = {"n_structures": 2, "seed": 5, "cores": 1, "checkpoint": tmp_path / "fit", **FEW}
    with pytest.warns(BayesjptWarning, match="the time is up"):
        bj.fit(table, time=1e-9, **options)
    resumed = bj.fit(table, resume=True, **options)
    whole = bj.fit(table, n_structures=2, seed=5, cores=1, **FEW)
    assert same(resumed, whole)


@pytest.fixture(scope="module")
def long_table():
    rng = np.random.default_rng(2)
    size = rng.gamma(3.0, 1.0, 600).round(1)
    return bj.as_table(pd.DataFrame({"size": size, "colour": np.where(rng.random(600) < size / 8, "red", "white")}))


def test_fit_of_many_rows_without_a_structure_in_time_is_a_draft(long_table, tmp_path):
    options = {"n_structures": 2, "seed": 5, "cores": 1, "checkpoint": tmp_path / "fit", **FEW}
    with pytest.warns(BayesjptWarning, match="the time is up: a draft from 150 of 600 rows is kept"):
        draft = bj.fit(long_table, time=1e-9, **options)
    (post,) = draft.by_structure()
    assert draft.settings["interrupted"] == "a draft from 150 of 600 rows"
    assert post.n_draw == FEW["draws"]
    red = draft.probability("colour = 'red'").values
    assert np.isfinite(red).all()
    assert 0.2 < red.mean() < 0.6
    assert same(bj.fit(long_table, resume=True, **options), bj.fit(long_table, n_structures=2, seed=5, cores=1, **FEW))


def test_a_draft_that_has_too_few_rows_does_not_end_the_fit(long_table):
    """A thousandth of the rows of a draft is none: the first structure is waited for."""
    table = bj.as_table(pd.DataFrame(np.random.default_rng(3).choice(["yes", "no"], (600, 3)), columns=list("abc")))
    with pytest.warns(BayesjptWarning, match="the time is up: 1 of 2 structures are kept"):
        post = bj.fit(table, "cutset", n_structures=2, seed=5, cores=1, time=0.001, prune=0.005, **FEW)
    assert len(post.by_structure()) == 1
    assert "draft" not in post.settings


def test_structures_that_are_done_leave_no_draft(long_table):
    slow, calls = bj.learn_jpt, []

    def learner(table, rng):
        calls.append(table.n_row)
        return slow(table, rng)

    with pytest.warns(BayesjptWarning, match="1 of 3 structures are kept|the time is up"):
        post = bj.fit(long_table, learner, n_structures=3, seed=5, cores=1, time=1e-9, **FEW)
    assert calls == [150]  # in one thread the draft comes first, and nothing behind it
    assert len(post.by_structure()) == 1
    enough = bj.fit(long_table, learner, n_structures=3, seed=5, cores=1, time=1e6, **FEW)
    assert same(enough, bj.fit(long_table, learner, n_structures=3, seed=5, cores=1, **FEW))


def test_enough_time_changes_nothing(table):
    assert "interrupted" not in bj.fit(table, n_structures=2, seed=5, cores=1, time=1e6, **FEW).settings


@pytest.mark.parametrize("time", [0, -1.0, True, float("nan"), float("inf"), "60"])
def test_time_that_makes_no_sense_is_refused(table, time):
    with pytest.raises(SamplingError, match="time = "):
        bj.fit(table, time=time)


@pytest.mark.parametrize("options", [{"n_structures": 1}, {"weights": "stacking"}])
def test_time_needs_structures_that_are_done_one_by_one(table, options):
    with pytest.raises(SamplingError, match="several structures with even weights"):
        bj.fit(table, time=60, **options)


def test_learner_is_stopped_where_it_tells_of_its_progress(table):
    stop = threading.Event()
    learner = LearnerFunction("mspn")
    assert learner(table, np.random.default_rng(1), stop).n_leaf > 0
    stop.set()
    with pytest.raises(StoppedError):
        learner(table, np.random.default_rng(1), stop)


def test_phases_of_a_fit_are_announced_off_a_terminal(table, capfd, monkeypatch):
    monkeypatch.setattr("bayesjpt.announced.ANNOUNCED_SECONDS", 0.0)
    bj.fit(table, n_structures=2, seed=5, cores=1, **{**FEW, "progress": True})
    err = capfd.readouterr().err
    for text in ("compiling (kept on disk for the next time)", "learning and sampling structures"):
        assert f"{text} ...\n" in err
        assert f"{text}: done in " in err
    bj.fit(table, n_structures=2, seed=5, cores=1, **{**FEW, "progress": False})
    assert capfd.readouterr().err == ""


def test_first_use_of_a_query_is_announced_and_later_ones_are_not(table, capfd, monkeypatch):
    from bayesjpt.posterior import answer

    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    monkeypatch.setattr("bayesjpt.announced.ANNOUNCED_SECONDS", 0.0)
    monkeypatch.setattr(answer, "_USED", set())
    post.probability("size > 2")
    assert capfd.readouterr().err.startswith("probability: its first use compiles or loads what it needs ...\n")
    post.probability("size > 3")
    assert capfd.readouterr().err == ""
