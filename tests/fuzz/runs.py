"""Many generated tables fitted and asked, in several processes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import hypothesis
from hypothesis import strategies as st

from tests.fuzz.fits import outcome
from tests.fuzz.tables import frames


def run_tables(n: int, seed: int, learners: list[str], counts: Counter[str]) -> None:
    """Fit so many generated tables and count how often each outcome is met; the exception of a failure is raised."""
    failed: list[str] = []
    began = time.perf_counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=n,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        print_blob=False,
    )
    @hypothesis.given(frames(), st.integers(0, 2**31 - 1), st.sampled_from(learners))
    def run(frame, table_seed, learner):
        try:
            counts[f"{learner}: {outcome(frame, table_seed, learner)}"] += 1
        except Exception as error:
            if not failed:  # the smallest table that fails comes at the end, which may be late
                print(f"failure, after {counts.total()} tables: {type(error).__name__}: {error}"[:1000], flush=True)
                traceback.print_exc()
                failed.append(learner)
            raise
        if counts.total() % 500 == 0:
            print(f"... seed {seed}: {counts.total()} tables in {time.perf_counter() - began:.0f} s", flush=True)

    run()


def _counted(n: int, seed: int, learners: list[str]) -> tuple[Counter[str], float, str]:
    """Return the outcomes of some tables, the processor seconds that they took, and how they failed, if they did."""
    began, counts, failure = time.process_time(), Counter[str](), ""
    try:
        run_tables(n, seed, learners, counts)
    except Exception:  # any is a finding: it is told with the seed, beside what other processes counted
        failure = traceback.format_exc()
    return counts, time.process_time() - began, failure


def tables(options: argparse.Namespace) -> int:
    """Fit tables, a share of them in each process under a seed of its own; return the exit status."""
    n_process = max(1, min(options.processes or os.cpu_count() or 1, options.tables))
    shares = [options.tables // n_process + (k < options.tables % n_process) for k in range(n_process)]
    seeds = [options.seed + k for k in range(n_process)]
    began = time.perf_counter()
    if n_process == 1:
        found = [_counted(options.tables, options.seed, options.learners)]
    else:
        with ProcessPoolExecutor(n_process, mp_context=multiprocessing.get_context("spawn")) as pool:
            found = list(pool.map(_counted, shares, seeds, n_process * [options.learners]))
    counts: Counter[str] = Counter()
    for of_process, _, _ in found:
        counts.update(of_process)
    total, seconds = counts.total(), sum(of_process[1] for of_process in found)
    clock = time.perf_counter() - began
    print(f"{total} tables in {clock:.0f} s, {seconds:.0f} processor seconds, seeds {seeds}; outcomes:")
    for text, count in counts.most_common():
        print(f"{count:7d}  {count / total:6.1%}  {text}")
    for share, seed, (_, _, failure) in zip(shares, seeds, found, strict=True):
        if failure:
            learners = " ".join(options.learners)
            print(f"FAILED; once more: --tables {share} --seed {seed} --learners {learners} --processes 1\n{failure}")
    return int(any(failure for _, _, failure in found))
