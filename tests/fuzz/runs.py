"""Many generated tables fitted and asked, in several processes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import hypothesis
from hypothesis import strategies as st

from tests.fuzz.fits import outcome
from tests.fuzz.questions import QUESTIONS
from tests.fuzz.tables import frames

FAILED = "FAILED"
"""What failures are counted as."""


def run_tables(
    n: int,
    seed: int,
    learners: Sequence[str],
    counts: Counter[str],
    *,
    questions: Sequence[str] = tuple(QUESTIONS),
    smallest: bool = False,
) -> None:
    """Fit so many generated tables and count how often each outcome is met; failures are told and counted.

    With `smallest` the first failure ends the run: its table is made smaller as long as it fails, and then raised.
    """
    began = time.perf_counter()
    phases = (hypothesis.Phase.generate, hypothesis.Phase.shrink)[: 1 + smallest]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=n,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=phases,
        print_blob=False,
    )
    @hypothesis.given(frames(), st.integers(0, 2**31 - 1), st.sampled_from(learners))
    def run(frame, table_seed, learner):
        try:
            counts[f"{learner}: {outcome(frame, table_seed, learner, among=questions)}"] += 1
        except Exception as error:
            if smallest:
                raise
            counts[FAILED] += 1
            print(f"seed {seed}, table {counts.total()}, {learner}: {type(error).__name__}: {error}"[:1000], flush=True)
            traceback.print_exc()
        if counts.total() % 500 == 0:
            print(f"... seed {seed}: {counts.total()} tables in {time.perf_counter() - began:.0f} s", flush=True)

    run()


def _counted(n: int, seed: int, options: argparse.Namespace) -> tuple[Counter[str], float]:
    """Return the outcomes of some tables, and the processor seconds that they took."""
    began, counts = time.process_time(), Counter[str]()
    try:
        run_tables(n, seed, options.learners, counts, questions=options.questions, smallest=options.smallest)
    except Exception:  # any is a finding, and the other processes go on
        counts[FAILED] += 1
        traceback.print_exc()
    return counts, time.process_time() - began


def tables(options: argparse.Namespace) -> int:
    """Fit tables, a share of them in each process under a seed of its own; return the exit status."""
    n_process = max(1, min(options.processes or os.cpu_count() or 1, options.tables))
    shares = [options.tables // n_process + (k < options.tables % n_process) for k in range(n_process)]
    seeds = [options.seed + k for k in range(n_process)]
    began = time.perf_counter()
    if n_process == 1:
        found = [_counted(options.tables, options.seed, options)]
    else:
        with ProcessPoolExecutor(n_process, mp_context=multiprocessing.get_context("spawn")) as pool:
            found = list(pool.map(_counted, shares, seeds, n_process * [options]))
    counts: Counter[str] = Counter()
    for of_process, _ in found:
        counts.update(of_process)
    total, seconds = counts.total(), sum(of_process[1] for of_process in found)
    clock = time.perf_counter() - began
    print(f"{total} tables in {clock:.0f} s, {seconds:.0f} processor seconds, seeds {seeds}; outcomes:")
    for text, count in counts.most_common():
        print(f"{count:7d}  {count / total:6.1%}  {text}")
    for share, seed, (of_process, _) in zip(shares, seeds, found, strict=True):
        if of_process[FAILED] and not options.smallest:
            same = shlex.join(["--learners", *options.learners, "--questions", *options.questions])
            print(f"the smallest: --tables {share} --seed {seed} {same} --processes 1 --smallest")
    return int(counts[FAILED] > 0)
