"""Whole fits of rows in files: the bits of the table in memory, wherever files end and whoever counts."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, SamplingError, TableError
from bayesjpt.fitting import settings
from bayesjpt.kernels import histograms, remote, samplers
from bayesjpt.kernels.histograms import Histograms
from bayesjpt.sampler import target
from bayesjpt.table.dataset import Dataset
from tests.strategies import law
from tests.table.test_dataset import a_frame, written
from tests.test_fit_dataset import assert_equal_draws

SHORT = {"n_structures": 2, "draws": 3, "tune": 2, "seed": 4, "progress": False}
N_ROW = 700
ROOT = Path(__file__).resolve().parents[1]
LEARNERS = {"mspn": {}, "jpt": {"features": ["visits", "member", "year"], "min_rows": 0.15}}
"""Options of each: trees split columns without gaps, so that each row's way is known."""


@pytest.fixture(scope="module", autouse=True)
def small_units():
    """Let a few hundred rows be many: several units, and trees whose rows are counted by slot and value."""
    with pytest.MonkeyPatch.context() as patch:
        for where in (samplers, target, histograms, remote):
            patch.setattr(where, "UNIT_ROWS", 256)
        patch.setattr(target, "RESIDENT_BYTES", 1)
        patch.setattr(target, "COUNTED_ROWS", 300)
        patch.setattr(settings, "ROWS_PER_WORKER", 100)
        yield


def the_frame() -> pd.DataFrame:
    """Return rows with gaps, a label that occurs once, and few distinct values."""
    frame = a_frame(N_ROW).drop(columns="share")
    frame["amount"] = frame["amount"].round(-1)
    frame.loc[frame.index[-1], "grade"] = "rare"
    return frame


def fitted(table, name: str, **more):
    return bj.fit(table, name, **SHORT | LEARNERS[name] | more)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Return the schema of the table, and the fits of it in memory by learner."""
    table = bj.as_table(the_frame())
    return table.schema, {name: fitted(table, name, cores=1) for name in LEARNERS}


@law(4)
@given(data=st.data())
def test_any_cut_into_files_has_the_draws_of_the_table(data, expected, tmp_path_factory):
    schema, fits = expected
    cuts = sorted(data.draw(st.lists(st.integers(0, N_ROW), max_size=6)))
    if data.draw(st.booleans()):
        cuts = [*cuts[:5], N_ROW]  # the last file is empty
    paths = written(the_frame(), tmp_path_factory.mktemp("cut"), cuts)
    name = data.draw(st.sampled_from(sorted(LEARNERS)))
    if data.draw(st.booleans()):
        rows = bj.dataset(paths, progress=False)
        post = fitted(rows, name, cores=data.draw(st.integers(1, 3)))
    else:
        with ThreadPoolExecutor(data.draw(st.integers(1, 3))) as executor:
            rows = bj.dataset(paths, executor=executor, progress=False)
            post = fitted(rows, name, executor=executor)
    assert rows.schema == schema
    assert_equal_draws(post, fits[name])


def test_trees_are_counted_and_mixtures_are_not(expected):
    schema, fits = expected
    table = bj.as_table(the_frame(), schema=schema)
    is_counted = {
        name: isinstance(target.make_target(fits[name].by_structure()[0].circuit, table).units, Histograms)
        for name in LEARNERS
    }
    assert is_counted == {"mspn": False, "jpt": True}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_coding_of_one_part_alone_is_caught(name, expected, tmp_path, monkeypatch):
    rows = bj.dataset(written(the_frame(), tmp_path, (300, 400)), progress=False)

    def of_the_first_part(self, column, most):
        values, observed = self.arrays(0, 300)
        return np.unique(values[column, observed[column]])

    monkeypatch.setattr(Dataset, "distinct", of_the_first_part)
    with pytest.raises((AssertionError, SamplingError)):
        assert_equal_draws(fitted(rows, name, cores=1), expected[1][name])


def test_a_fit_goes_on_with_another_number_of_workers(expected, tmp_path):
    rows = bj.dataset(written(the_frame(), tmp_path / "files", (300, 400)), progress=False)
    begun = {"checkpoint": tmp_path / "begun"}
    with ThreadPoolExecutor(1) as executor, pytest.warns(BayesjptWarning, match="the time is up"):
        fitted(rows, "jpt", executor=executor, time=1e-9, **begun)
    with ThreadPoolExecutor(3) as executor:
        assert_equal_draws(fitted(rows, "jpt", executor=executor, resume=True, **begun), expected[1]["jpt"])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_file_that_disappears_during_a_fit_is_told_and_the_checkpoint_stays(name, expected, tmp_path):
    rows = bj.dataset(written(the_frame(), tmp_path / "files"), folder=tmp_path / "arranged", progress=False)
    file, elsewhere = tmp_path / "arranged" / "values_2.bin", tmp_path / "values"
    asked = SHORT | {"cores": 1}
    learned = []

    def learner(table, rng):
        rng.random()  # one that draws nothing would learn each further structure again, from a bootstrap sample
        if learned and not found:
            file.rename(elsewhere)
        learned.append(getattr(bj, f"learn_{name}")(table, rng, **LEARNERS[name]))
        return learned[-1]

    found = []
    with pytest.raises(TableError, match=r"values_2\.bin.* not there any more"):
        bj.fit(rows, learner, checkpoint=tmp_path / "begun", **asked)
    elsewhere.rename(file)
    learned.clear()
    found.append(bj.fit(rows, learner, checkpoint=tmp_path / "begun", resume=True, **asked))
    assert len(learned) == 1  # the first structure was done
    assert_equal_draws(found[0], bj.fit(rows, learner, **asked))


KILLED = """
import os, signal, sys
import bayesjpt as bj
from bayesjpt.kernels import histogram_sweeper
from bayesjpt.sampler import chains, saves, target
from tests import test_fit_cuts as cuts

saves.SAVE_SECONDS = chains.WATCH_SECONDS = 0.0
target.COUNTED_ROWS = 300
count, left = histogram_sweeper.allocate_counts, [int(sys.argv[1])]

def killed(*arguments):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return count(*arguments)

histogram_sweeper.allocate_counts = killed
cuts.fitted(bj.as_table(cuts.the_frame()), "jpt", cores=1, checkpoint=sys.argv[2], resume=True)
"""


@pytest.mark.slow
def test_a_fit_that_is_killed_in_sweeps_over_counts_goes_on_to_the_same_bits(expected, tmp_path):
    """Killed time and again, each time at another sweep; then it is resumed to its end."""
    begun = tmp_path / "begun"
    for sweep in (2, 4, 3):
        command = [sys.executable, "-c", KILLED, str(sweep), str(begun)]
        done = subprocess.run(command, check=False, capture_output=True, cwd=ROOT)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    table = bj.as_table(the_frame())
    assert_equal_draws(fitted(table, "jpt", cores=1, checkpoint=begun, resume=True), expected[1]["jpt"])


@pytest.mark.slow
def test_processes_have_the_draws_of_the_table(expected, tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        rows = bj.dataset(written(the_frame(), tmp_path, (300, 400)), executor=executor, progress=False)
        for name in LEARNERS:
            assert_equal_draws(fitted(rows, name, executor=executor), expected[1][name])
