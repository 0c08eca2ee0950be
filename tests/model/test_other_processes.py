"""Models that travel: a process that only unpickled one samples it by the Gibbs step.

PyMC sends models to its workers by cloudpickle, and users do likewise: what is read here was written by the same test.
The package itself reads no pickle.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable

import cloudpickle
import pymc as pm
import pytest

import bayesjpt as bj
from tests import examples as ex

MODES = {"PYTENSOR_FLAGS": "mode=FAST_COMPILE"}

UNPICKLE_AND_SAMPLE = """
import sys
import cloudpickle
model = cloudpickle.load(sys.stdin.buffer)  # imports what the model names, and nothing else of ours
import pymc as pm
options = {"progressbar": False, "compute_convergence_checks": False}
idata = pm.sample(5, tune=2, chains=1, cores=1, random_seed=1, model=model, **options)
print(*sorted(idata.sample_stats), len(set(idata.posterior["x_normal_mu"].to_numpy()[0, :, 0])))
"""


def statistics_and_distinct_draws(pickled: bytes) -> tuple[list[str], int]:
    """Return the statistics and the number of distinct draws of a pickled model that a worker samples."""
    model = cloudpickle.loads(pickled)
    options = {"progressbar": False, "compute_convergence_checks": False}
    idata = pm.sample(5, tune=2, chains=1, cores=1, random_seed=1, model=model, **options)
    return sorted(idata.sample_stats), len(set(idata.posterior["x_normal_mu"].to_numpy()[0, :, 0]))


def by_spawn(pickled: bytes):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(statistics_and_distinct_draws, (pickled,))


def by_joblib(pickled: bytes):
    joblib = pytest.importorskip("joblib")
    (found,) = joblib.Parallel(n_jobs=2, backend="loky")([joblib.delayed(statistics_and_distinct_draws)(pickled)])
    return found


def by_dask(pickled: bytes):
    dask = pytest.importorskip("dask")
    (found,) = dask.compute(dask.delayed(statistics_and_distinct_draws)(pickled), scheduler="processes", num_workers=1)
    return found


def test_a_process_that_only_unpickled_a_model_samples_it_by_gibbs_sweeps(small):
    done = subprocess.run(
        [sys.executable, "-c", UNPICKLE_AND_SAMPLE],
        input=cloudpickle.dumps(small[0]),
        capture_output=True,
        env=os.environ | MODES,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode().split() == ["log_likelihood", "n_active_edges", "5"]


@pytest.mark.slow
@pytest.mark.parametrize("worker", [by_spawn, by_joblib, by_dask])
def test_workers_that_unpickle_a_model_sample_it_by_gibbs_sweeps(small, monkeypatch, worker: Callable):
    monkeypatch.setenv(*next(iter(MODES.items())))
    assert worker(cloudpickle.dumps(small[0])) == (["log_likelihood", "n_active_edges"], 5)


@pytest.mark.slow
def test_chains_in_spawned_processes_draw_what_those_of_one_process_draw(small, monkeypatch):
    monkeypatch.setenv(*next(iter(MODES.items())))
    options = {"tune": 2, "chains": 2, "random_seed": 1, "progressbar": False, "compute_convergence_checks": False}
    draws = [
        pm.sample(5, model=small[0], **options, **where).posterior["x_normal_mu"].to_numpy()
        for where in ({"cores": 1}, {"cores": 2, "mp_ctx": "spawn"})
    ]
    assert (draws[0] == draws[1]).all()


@pytest.mark.slow
def test_a_model_with_a_random_concentration_keeps_its_step_where_it_is_unpickled(rng):
    table = ex.make_table((ex.REAL,), 8, rng)
    with pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 0.5)
        bj.CircuitMixture("x", ex.mixture(table, dictionary=ex.only("normal")), table, gamma=alpha)
    done = subprocess.run(
        [sys.executable, "-c", UNPICKLE_AND_SAMPLE],
        input=cloudpickle.dumps(model),
        capture_output=True,
        env=os.environ | MODES,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode().split() == ["log_likelihood", "n_active_edges", "5"]
