"""Counting in other processes: the draws of one process, whatever becomes of the workers."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace

import numpy as np
import pytest

from bayesjpt.errors import SamplingError
from bayesjpt.kernels import remote
from bayesjpt.kernels.samplers import make_sweeper
from tests.kernels.test_units import BLOCKED, SHAPES, SMALL, a_case, after, bits, sweeper_of, units_of


def remote_sweeper(case, executor):
    return make_sweeper(
        case.circuit,
        case.plan,
        case.priors,
        units_of(case, SMALL),
        **BLOCKED,
        executor=executor,
    )


OVERHEAD_BYTES = 1_000
"""Of an answer on its way: names of classes, types and shapes of arrays."""


class Elsewhere:
    """An executor that computes at once, as if every task came to a worker that knows nothing, and counts bytes."""

    def __init__(self):
        self.n_submitted, self.answers = 0, []

    def submit(self, function, /, *args):
        self.n_submitted += 1
        remote._cached.clear()
        future = Future()
        future.set_result(function(*args))
        self.answers.append(future.result())
        return future


@pytest.mark.parametrize("shape", SHAPES)
def test_threads_of_an_executor_change_no_bit(shape):
    case = a_case(shape, 700)
    with ThreadPoolExecutor(3) as executor:
        assert bits(after(remote_sweeper(case, executor))) == bits(after(sweeper_of(case, SMALL)))


def test_threads_forget_the_rows_with_the_sweeper():
    case = a_case("mixture", 400)
    with ThreadPoolExecutor(2) as executor:
        sweeper = remote_sweeper(case, executor)
        after(sweeper, 1)
        known = len(remote._cached)
        del sweeper
        assert len(remote._cached) == known - 1


def test_workers_that_know_nothing_are_told_where_rows_lie():
    case = a_case("mixture", 700)
    executor = Elsewhere()
    sweeper = remote_sweeper(case, executor)
    assert bits(after(sweeper)) == bits(after(sweeper_of(case, SMALL)))
    n_part = len(sweeper._count._parts)
    assert executor.n_submitted == 3 * 2 * n_part  # a start and two sweeps, each asked for twice


def test_what_comes_back_grows_with_the_logarithm_of_the_rows():
    sizes, whole = [], a_case("hard", SMALL * 32)
    for n_row in (SMALL * 16, SMALL * 32):
        case = SimpleNamespace(**vars(whole) | {"table": whole.table.rows(slice(0, n_row))})
        executor = Elsewhere()
        executor._max_workers = 1
        sweeper = remote_sweeper(case, executor)
        sweeper.allocate(sweeper.learned(), np.random.default_rng(1), 1, 0)
        pieces = [answer.sums.n_piece for answer in executor.answers if answer is not None]
        assert len(pieces) == remote.PARTS_PER_WORKER
        assert set(pieces) == {1}
        counts = [answer.counts.nbytes for answer in executor.answers if answer is not None]
        sizes.append(sum(counts) + sum(pieces) * 8 * (2 * sweeper._stats.size + 1))
        sent = [len(ForkingPickler.dumps(answer)) for answer in executor.answers if answer is not None]
        assert sum(sent) <= sizes[-1] + OVERHEAD_BYTES * len(sent)
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("n_unit", "n_worker", "n_part"),
    [(1, 2, 1), (3, 2, 2), (16, 1, 4), (16, 2, 4), (16, 8, 8), (4_096, 2, 8), (17, 2, 4)],
)
def test_parts_are_few_and_hold_each_unit_once(n_unit, n_worker, n_part):
    parts = remote.parts_of(n_unit, n_worker)
    assert [unit for part in parts for unit in range(*part)] == list(range(n_unit))
    assert len(parts) == n_part
    longest = max(last - first for first, last in parts)
    assert longest == -(-n_unit // n_part)


def test_processes_change_no_bit():
    case = a_case("mixture", 400)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        assert bits(after(remote_sweeper(case, executor), 1)) == bits(after(sweeper_of(case, SMALL), 1))


def test_a_process_that_ends_is_told():
    case = a_case("mixture", 400)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        sweeper = remote_sweeper(case, executor)
        executor.submit(os._exit, 1)
        with pytest.raises(SamplingError, match="a process of the executor ended"):
            after(sweeper, 1)
