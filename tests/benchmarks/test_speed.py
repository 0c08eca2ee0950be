"""How fast a sweep is, in exponentials; what PyMC adds; how long learning takes; how much memory a fit needs."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import time

import numba
import numpy as np
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.kernels.gibbs import allocate, draw_params
from bayesjpt.kernels.swaps import make_swaps
from bayesjpt.kernels.upward import fill_tables, prepare_coefficients, upward
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests.benchmarks import cases, log_domain

NAMES = {"abalone": 0.7, "50 components x 9": 0.4, "100,000 x 10 all distinct": 0.95}
"""Cases, with the ratio that a sweep aims at: at most so many scalar exponentials per (row, likelihood leaf)."""


@numba.njit(error_model="numpy")
def _exponentials(x, out):
    for i in range(out.size):
        out[i] = math.exp(x[i])


@numba.njit(error_model="numpy", nogil=True)
def _densities_and_upward(plan, cells, log_weight, theta, work):
    prepare_coefficients(plan, cells, theta, work)
    fill_tables(plan, cells, log_weight, work)
    for lo in range(0, cells.n_row[0], work.u.size):
        upward(plan, cells, log_weight, work, lo, min(work.u.size, cells.n_row[0] - lo))


def best(function, n: int) -> float:
    """Return the shortest of n runs, in seconds of this thread."""
    function()
    times = []
    for _ in range(n):
        began = time.thread_time()
        function()
        times.append(time.thread_time() - began)
    return min(times)


def exponential_ns() -> float:
    """Return the time of one scalar ``exp``, in ns."""
    x = -np.random.default_rng(0).exponential(10.0, 4096)
    out = np.empty_like(x)
    return best(lambda: [_exponentials(x, out) for _ in range(100)], 9) / 100 / x.size * 1e9


@pytest.mark.parametrize("name", NAMES)
def test_sweep(benchmark, figure, name):
    case = cases.make_case(name)
    log_weight, theta = case.circuit.start_log_weight.copy(), case.circuit.start_theta.copy()
    stats = np.zeros(case.plan.stat_at[-1])
    edge_count = np.zeros(case.circuit.n_edge, np.int64)
    swaps = make_swaps(case.plan)
    n = 20 if case.table.n_row < 10_000 else 5

    def sweep():
        return allocate(
            case.plan, case.cells, log_weight, theta, case.work, swaps, np.uint64(7), False, stats, edge_count
        )

    before = exponential_ns()
    total, _ = sweep()
    sweep_ns = best(sweep, n) / case.n_terms * 1e9
    up_ns = (
        best(lambda: _densities_and_upward(case.plan, case.cells, log_weight, theta, case.work), n) / case.n_terms * 1e9
    )
    cells = log_domain.by_row(case.plan, case.table)
    value = np.empty((case.circuit.n_node, 256))

    def twin():
        return log_domain.upward_log_domain(case.plan, cells, log_weight, theta, case.work, value)

    assert twin() == pytest.approx(total, rel=1e-12)
    twin_ns = best(twin, 3) / case.n_terms * 1e9
    yard = min(before, exponential_ns())
    rng = np.random.default_rng(3)
    draw_ms = best(
        lambda: draw_params(
            case.plan, case.cells, case.work, stats, edge_count,
            case.priors.concentration, case.priors.hyper, case.priors.hyper_at,
            log_weight.copy(), theta.copy(), rng,
        ),
        n,
    ) * 1e3  # fmt: skip
    cells_per_row = case.table.n_row * case.table.n_column
    sampling = (sweep_ns - up_ns) * case.n_terms / cells_per_row
    text = (
        f"{sweep_ns / yard:.2f} exp per (row, leaf) (aim {NAMES[name]}); densities and upward {up_ns / yard:.2f}; "
        f"log-domain twin, upward alone {twin_ns / yard:.2f}; "
        f"sampling and statistics {sampling:.0f} ns per (row, column); "
        f"{sweep_ns * case.n_terms / 1e6:.2f} ms a sweep; weights and parameters {draw_ms:.2f} ms; "
        f"{case.circuit.n_leaf} leaves; one exp {yard:.2f} ns"
    )
    figure(f"sweep, {name}", text)
    benchmark.pedantic(sweep, rounds=5)


class _TimedGibbs(CircuitGibbs):
    """The step, adding up the time that it spends."""

    spent = 0.0

    def step(self, point):
        began = time.perf_counter()
        answer = super().step(point)
        self.spent += time.perf_counter() - began
        return answer


def test_overhead_of_pm_sample(benchmark, figure):
    table = bj.read_table(cases.DATA / "abalone.csv")
    model = bj.build_model(bj.learn_mspn(table, np.random.default_rng(1)), table)

    def sample(draws):
        """Return the seconds of a run, and those spent in the step."""
        step = _TimedGibbs(model=model)
        began = time.perf_counter()
        with model:
            pm.sample(
                draws=draws, tune=0, chains=1, cores=1, step=step, progressbar=False, quiet=True,
                compute_convergence_checks=False, random_seed=1,
            )  # fmt: skip
        return time.perf_counter() - began, step.spent

    sample(10)
    short, short_step = sample(10)
    long, long_step = sample(1010)
    step_ms = (long_step - short_step) / 1000 * 1e3
    overhead = (long - short) / 1000 * 1e6 - step_ms * 1e3
    figure("pm.sample, abalone", f"{step_ms:.2f} ms a step, and {overhead:.0f} microseconds around it a draw")
    step = CircuitGibbs(model=model)
    step.setup_chain(np.random.default_rng(2), 0, 1)
    point = model.initial_point()
    benchmark.pedantic(lambda: step.step(point), rounds=20)


def _like_adult(rng: np.random.Generator):
    """Return a frame of adult's shape, 32,561 x 15: 6 numbers and 9 labels that depend on a hidden group."""
    import pandas as pd

    n = 32_561
    group = rng.integers(0, 4, n)
    numbers = {f"n{k}": np.round(rng.gamma(2.0 + group, 10.0 + k), 0) for k in range(6)}
    labels = {f"c{k}": np.char.add("v", ((group + rng.integers(0, 3 + k, n)) % (4 + k)).astype(str)) for k in range(9)}
    return bj.as_table(pd.DataFrame(numbers | labels))


@pytest.mark.parametrize(("name", "limit"), [("abalone", 2.0), ("adult", 20.0)])
def test_learner(benchmark, figure, name, limit):
    folder = os.environ.get("BAYESJPT_DATA")
    if name == "abalone":
        table, source = bj.read_table(cases.DATA / "abalone.csv"), "abalone"
    elif folder:
        table, source = bj.read_table(f"{folder}/uci/adult.csv.gz"), "adult"
    else:
        table, source = _like_adult(np.random.default_rng(5)), "a table of adult's shape (set BAYESJPT_DATA for adult)"
    bj.learn_mspn(table, np.random.default_rng(0))
    began = time.perf_counter()
    bj.learn_mspn(table, np.random.default_rng(1))
    seconds = time.perf_counter() - began
    figure(f"learn_mspn, {name}", f"{seconds:.2f} s on {source}, {table.n_row} x {table.n_column} (aim {limit:g} s)")
    benchmark.pedantic(lambda: bj.learn_mspn(table, np.random.default_rng(1)), rounds=3)


def test_peak_memory(benchmark, figure):
    command = [sys.executable, "-m", "bayesjpt", "types", str(cases.DATA / "abalone.csv"), "--seed", "1", "--quiet"]

    def fit():
        subprocess.run(command, check=True, capture_output=True)

    benchmark.pedantic(fit, rounds=1)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    figure("peak memory", f"{peak:.0f} MiB, largest process of `bayesjpt types notebooks/data/abalone.csv`")
