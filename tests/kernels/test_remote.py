"""Counting in other processes: the draws of one process, whatever becomes of the workers."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import sys
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace

import numpy as np
import pytest

from bayesjpt.code_hash import hash_of
from bayesjpt.errors import SamplingError
from bayesjpt.families import registry
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


class OtherWorker:
    """An executor whose worker has registered other families."""

    def __init__(self, families):
        self._families = families

    def submit(self, function, /, *args):
        here, registry.FAMILIES = registry.FAMILIES, self._families
        future = Future()
        try:
            future.set_result(function(*args))
        finally:
            registry.FAMILIES = here
        return future


def _density(z, aux, coefficients, out):
    out[:] = 1.0


def _other_density(z, aux, coefficients, out):
    out[:] = 2.0


def own_family(name, density=_density):
    return replace(registry.family("normal"), name=name, bases=(), fill_log_density=density)


@pytest.fixture
def built_in(monkeypatch):
    """Return the built-in families, after a test in which this process has two more."""
    families = registry.FAMILIES
    monkeypatch.setattr(registry, "FAMILIES", [*families, own_family("first"), own_family("second")])
    monkeypatch.setattr(registry, "family_hash", lambda name: hash_of(registry.family(name)))
    return families


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["second", "first"], "families of your own second, first; expected first, second"),
        (["first", "second", "third"], "families of your own first, second, third"),
        ([], "families of your own none"),
    ],
)
def test_a_worker_that_numbers_families_otherwise_is_told(built_in, names, found):
    worker = OtherWorker([*built_in, *map(own_family, names)])
    with pytest.raises(SamplingError, match=rf"{found}.*Start workers anew that import {__name__}"):
        after(remote_sweeper(a_case("mixture", 400), worker), 1)


def test_a_worker_with_other_code_is_told(built_in, monkeypatch):
    worker = OtherWorker([*built_in, own_family("first"), own_family("second", _other_density)])
    with pytest.raises(SamplingError, match="another version of the family 'second'"):
        after(remote_sweeper(a_case("mixture", 400), worker), 1)
    call = remote.SameCode(os.getpid)
    assert call() == os.getpid()
    monkeypatch.setattr(remote, "package_hash", lambda: "0")
    with pytest.raises(SamplingError, match="another version of bayesjpt"):
        call()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_worker_imports_the_modules_of_families_that_it_lacks(built_in, tmp_path, monkeypatch, is_there):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"registers_the_third_{is_there}"
    program = f"""
from dataclasses import replace
from bayesjpt.families import registry
def density(z): return z
normal = registry.family('normal')
registry.FAMILIES.append(replace(normal, name={name!r}, bases=(), fill_log_density=density))
"""
    (tmp_path / f"{name}.py").write_text(program)
    importlib.import_module(name)
    worker = OtherWorker([*built_in, own_family("first"), own_family("second")])
    monkeypatch.setattr(registry, "family_hash", functools.cache(registry.family_hash))
    registry.family_hash(name)  # while this process still knows the module
    monkeypatch.delitem(sys.modules, name)
    case = a_case("mixture", 400)
    if is_there:
        assert bits(after(remote_sweeper(case, worker), 1)) == bits(after(sweeper_of(case, SMALL), 1))
        return
    (tmp_path / f"{name}.py").unlink()
    with pytest.raises(SamplingError, match=f"cannot import '{name}'"):
        after(remote_sweeper(case, worker), 1)


def test_a_process_that_ends_is_told():
    case = a_case("mixture", 400)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        sweeper = remote_sweeper(case, executor)
        executor.submit(os._exit, 1)
        with pytest.raises(SamplingError, match="a process of the executor ended"):
            after(sweeper, 1)
