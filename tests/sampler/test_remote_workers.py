"""Processes of Dask: the draws of threads, also where a worker is killed or joins in the middle."""

from __future__ import annotations

import io
import logging
import os
import signal
from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, SamplingError
from bayesjpt.kernels import remote
from bayesjpt.kernels.samplers import make_sweeper
from bayesjpt.sampler.remote_workers import workers
from tests.kernels.test_units import BLOCKED, SMALL, a_case, after, bits, sweeper_of, units_of
from tests.table.test_dataset import a_frame, written
from tests.test_fit_dataset import SHORT


def test_numbers_and_addresses_that_make_no_sense_are_told():
    for where in ("0", "two", "-1"):
        with pytest.raises(SamplingError, match="address of a scheduler"), workers(where):
            pass


def test_without_dask_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(SamplingError, match=r"bayesjpt\[dask\]"), workers(2):
        pass


class KilledWorker(Exception):
    """Of the name that Dask gives where workers end one after the other at a task."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CancelledError(), "the executor gave up a task.*expected one that is open"),
        (KilledWorker("Attempted to run task"), "workers of Dask ended one after the other.*more memory"),
        (RuntimeError("cannot schedule new futures after shutdown"), "the executor takes no work"),
    ],
)
def test_what_an_executor_raises_in_a_fit_is_told_in_our_words(error, told, tmp_path):
    class Raising:
        def submit(self, function, *arguments):
            raise error

    rows = bj.dataset(written(a_frame(200), tmp_path / "files", (100,)))
    with (
        pytest.warns(BayesjptWarning, match="200 rows for 1 worker: below"),
        pytest.raises(SamplingError, match=told),
    ):
        bj.fit(rows, executor=Raising(), **SHORT)


def test_a_client_of_dask_is_an_executor_while_it_is_open():
    client = SimpleNamespace(nthreads=lambda: {"tcp://a": 2, "tcp://b": 2}, status="running")
    for executor in (client, SimpleNamespace(_client=client)):
        client.status = "running"
        assert remote.workers_of(executor) == 4
        client.status = "closed"
        with pytest.raises(SamplingError, match="its client of Dask is closed"):
            remote.workers_of(executor)


@pytest.mark.filterwarnings("ignore")
def test_what_dask_logs_of_a_lost_connection_is_not_shown_beside_our_error():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    shown = io.StringIO()
    logger, handler = logging.getLogger("distributed.client"), logging.StreamHandler(shown)
    logger.addHandler(handler)
    with distributed.LocalCluster(n_workers=0, protocol="tcp", dashboard_address=None) as cluster:
        with workers(cluster.scheduler_address):
            logger.error("a traceback")
        logger.error("of others")
    logger.removeHandler(handler)
    assert shown.getvalue() == "of others\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("direct", [False, True])
def test_workers_that_are_killed_and_added_change_no_bit(direct):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    case = a_case("mixture", 700)
    expected = bits(after(sweeper_of(case, SMALL), 4))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, direct_to_workers=direct) as client,
        client.get_executor(pure=False, retries=3) as executor,
    ):
        assert remote.workers_of(executor) == 2
        sweeper = make_sweeper(
            case.circuit,
            case.plan,
            case.priors,
            units_of(case, SMALL),
            **BLOCKED,
            executor=executor,
        )
        count, n_sweep = sweeper._count, 0

        def disturbed(task):
            nonlocal n_sweep
            n_sweep += 1
            if n_sweep == 2:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            if n_sweep == 4:
                cluster.scale(3)
            return count(task)

        sweeper._count = disturbed
        assert bits(after(sweeper, 4)) == expected
        assert n_sweep == 5


class Killing:
    """An executor that kills a worker behind the first task of each kind."""

    def __init__(self, client, executor):
        self._client, self._executor, self.killed = client, executor, set()

    def submit(self, function, /, *args):
        future = self._executor.submit(function, *args)
        if function.__name__ not in self.killed:
            self.killed.add(function.__name__)
            os.kill(next(iter(self._client.run(os.getpid).values())), signal.SIGKILL)
        return future


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_arranging_learning_and_sampling_changes_no_bit(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    from bayesjpt.sampler import target
    from tests.test_fit_dataset import assert_equal_draws, small_units

    small_units(monkeypatch)
    monkeypatch.setattr(target, "COUNTED_ROWS", 500)
    paths = written(a_frame(1_500), tmp_path / "files", (400, 1_111))
    learners = ["mspn", "jpt"]
    expected = bj.fit(bj.dataset(paths), learners, cores=1, **SHORT)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor(pure=False, retries=3) as executor,
    ):
        killing = Killing(client, executor)
        rows = bj.dataset(paths, folder=tmp_path / "arranged", executor=killing)
        assert_equal_draws(bj.fit(rows, learners, executor=killing, **SHORT), expected)
    assert killing.killed >= {"_facts_of", "_evidence_of", "_arrange_file", "learn_there", "count_part"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_processes_of_this_machine_outlive_an_interrupt_of_the_terminal():
    pytest.importorskip("distributed", reason="Dask is not installed")
    with workers(1) as executor:
        process = executor.submit(os.getpid).result()
        os.kill(process, signal.SIGINT)
        assert executor.submit(os.getpid).result() == process


@pytest.mark.slow
def test_the_command_takes_workers(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed")
    import subprocess
    import sys

    written(a_frame(300), tmp_path / "files", (100,))
    common = ["--structures", "2", "--draws", "2", "--tune", "1", "--seed", "1", "-q"]
    for name, more in (("one", []), ("two", ["--workers", "1"])):
        command = ["fit", str(tmp_path / "files"), "-o", str(tmp_path / f"{name}.nc"), *common, *more]
        done = subprocess.run([sys.executable, "-m", "bayesjpt", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    one, two = (bj.load(tmp_path / f"{name}.nc") for name in ("one", "two"))
    for a, b in zip(one.by_structure(), two.by_structure(), strict=True):
        assert a.params.theta.tobytes() == b.params.theta.tobytes()
