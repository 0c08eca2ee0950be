"""Fits of rows in files: the draws of the table, whatever the files, threads or processes."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, LearnerError, ModelError, SamplingError
from bayesjpt.fitting import ensemble, settings
from bayesjpt.fitting.settings import FitSettings
from bayesjpt.kernels import samplers
from bayesjpt.sampler import target
from bayesjpt.table import dataset
from tests.table.test_dataset import a_frame, written

SHORT = {"n_structures": 2, "draws": 3, "tune": 2, "seed": 4, "progress": False}


@pytest.fixture
def rows(tmp_path):
    return bj.dataset(written(a_frame(1_500), tmp_path, (400, 400, 1_111)))


def small_units(monkeypatch, resident_bytes: int = 2**29):
    monkeypatch.setattr(samplers, "UNIT_ROWS", 256)
    monkeypatch.setattr(target, "UNIT_ROWS", 256)
    monkeypatch.setattr(target, "RESIDENT_BYTES", resident_bytes)


def assert_equal_draws(one, other):
    for a, b in zip(one.by_structure(), other.by_structure(), strict=True):
        assert a.circuit.digest() == b.circuit.digest()
        assert np.array_equal(a.params.theta, b.params.theta)
        assert np.array_equal(a.params.log_weight, b.params.log_weight)


@pytest.mark.parametrize("learner", ["mspn", "jpt"])
def test_draws_are_those_of_the_table_also_where_few_units_stay_in_memory(rows, learner, monkeypatch):
    small_units(monkeypatch)
    table = bj.as_table(a_frame(1_500), schema=rows.schema)
    expected = bj.fit(table, learner, **SHORT)
    assert_equal_draws(bj.fit(rows, learner, cores=1, **SHORT), expected)
    small_units(monkeypatch, resident_bytes=1)
    found = bj.fit(rows, learner, cores=2, **SHORT)
    assert_equal_draws(found, expected)
    assert found.probability("grade = 'high'").mean() == pytest.approx(1 / 3, abs=0.05)
    assert found.types()["member"].type == expected.types()["member"].type


@pytest.mark.parametrize("n_structures", [1, 2])
def test_an_executor_has_the_draws_of_threads(rows, n_structures, monkeypatch):
    small_units(monkeypatch)
    monkeypatch.setattr(settings, "ROWS_PER_WORKER", 100)
    asked = SHORT | {"n_structures": n_structures}
    with ThreadPoolExecutor(2) as executor:
        assert_equal_draws(bj.fit(rows, executor=executor, **asked), bj.fit(rows, **asked))


def test_few_rows_a_worker_are_told(rows):
    with ThreadPoolExecutor(2) as executor, pytest.warns(BayesjptWarning, match="one machine is faster"):
        bj.fit(rows, executor=executor, **SHORT)
    with pytest.raises(SamplingError, match="get_executor"):
        bj.fit(rows, executor="tcp://localhost", **SHORT)


def test_checkpoints_of_a_dataset_go_on(rows, tmp_path, monkeypatch):
    small_units(monkeypatch)
    whole = bj.fit(rows, **SHORT)
    begun = SHORT | {"checkpoint": tmp_path / "begun"}

    with pytest.warns(BayesjptWarning, match="the time is up"):
        first = bj.fit(rows, cores=1, time=1e-9, **begun)
    assert len(first.by_structure()) == 1
    assert_equal_draws(bj.fit(rows, resume=True, **begun), whole)


def test_structures_of_many_rows_are_learned_from_rows_of_their_own(rows, monkeypatch):
    for where in (ensemble, dataset):
        monkeypatch.setattr(where, "LEARN_ROWS", 500)
    learned = []

    def learner(table, rng):
        learned.append(table)
        return bj.learn_mspn(table, rng)

    table = bj.as_table(a_frame(1_500), schema=rows.schema)
    for given in (rows, table):
        bj.fit(given, learner, cores=1, **SHORT)
    assert [own.n_row for own in learned] == [500] * 4
    assert np.array_equal(learned[0].values, learned[2].values)
    assert np.array_equal(learned[1].values, learned[3].values)
    assert not np.array_equal(learned[0].values, learned[1].values)
    learned.clear()
    for given in (rows, table):  # the only structure is the first of several
        bj.fit(given, learner, cores=1, **SHORT | {"n_structures": 1})
        assert np.array_equal(learned.pop().values, rows.sample(500).values)
    assert (
        bj.learn_jpt(rows, np.random.default_rng(1)).digest()
        == bj.learn_jpt(rows.sample(500), np.random.default_rng(1)).digest()
    )


@pytest.mark.parametrize("n_structures", [1, 2])
def test_likelihoods_that_end_where_all_rows_end_are_refused_of_many_rows_in_files(rows, n_structures, monkeypatch):
    for where in (ensemble, dataset):
        monkeypatch.setattr(where, "LEARN_ROWS", 500)
    asked = SHORT | {"n_structures": n_structures, "families": {"share": ["quantile"]}}
    with pytest.raises(LearnerError, match="500 of 1500 rows"):
        bj.fit(rows, **asked)
    bj.fit(bj.as_table(a_frame(1_500), schema=rows.schema), **asked)


def test_many_rows_have_fewer_sweeps_unless_asked(rows):
    class Many:
        n_row = 1_600_000

    schedule = FitSettings().of_rows(Many()).schedule
    assert (schedule.n_tune, schedule.n_draw) == (8, 5)
    assert FitSettings(draws=40).of_rows(Many()).schedule.n_draw == 40
    assert FitSettings(n_structures=1).of_rows(Many()).schedule.n_draw == FitSettings(n_structures=1).schedule.n_draw
    assert FitSettings().of_rows(rows).schedule.n_tune == 30


def test_what_rows_in_files_cannot_have_is_refused(rows):
    with pytest.raises(LearnerError, match="stacking"):
        bj.fit(rows, weights="stacking", **SHORT)
    with pytest.raises(ModelError, match="collapsed"):
        bj.fit(rows, sampler="collapsed", **SHORT)


def test_workers_that_know_the_rows_in_a_folder_that_is_gone_find_them_anew(tmp_path, monkeypatch):
    small_units(monkeypatch, resident_bytes=1)
    monkeypatch.setattr(settings, "ROWS_PER_WORKER", 100)
    paths, found = written(a_frame(1_500), tmp_path), []
    with ThreadPoolExecutor(2) as executor:
        for number in range(2):
            rows = bj.dataset(paths, folder=tmp_path / str(number))
            found.append(bj.fit(rows, executor=executor, **SHORT))
            shutil.rmtree(rows.folder)
    assert_equal_draws(*found)
