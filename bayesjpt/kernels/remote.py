"""Counting in other processes, here or on other machines, through any executor: `concurrent.futures` or Dask's.

      driver     task of a sweep ->  [ units 0-3 ] [ units 4-7 ] ...   one submission a part; nothing is pinned anywhere
      workers    a part is a pure function of (where rows lie, units, task): one that is lost is computed again
      driver     sums of neighbouring units  ->  total                 two arrays of each size a part, at most

A worker keeps what it arranged, as a cache of what it can make again.
"""

from __future__ import annotations

import hashlib
import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from bayesjpt.circuit.plan import Plan
from bayesjpt.code_hash import package_hash
from bayesjpt.errors import SamplingError
from bayesjpt.executors import Submits, client_of, lost_processes_told, run_by
from bayesjpt.families import registry
from bayesjpt.kernels.histograms import Bins, Counts, count_rows
from bayesjpt.kernels.unit_sweeper import Counted, SweepTask, count_units, make_buffers
from bayesjpt.kernels.units import UNIT_ROWS, ArraySource, Source, Units

PARTS_PER_WORKER = 4
"""At most: a worker that is late, or lost, then costs a fourth of its share, and submissions stay few."""
PART_UNITS = 4
"""Units of a part, at least, where that leaves no worker idle: Dask needs some 10 milliseconds of processor time for a
task, on both sides together, as long as sweeps take for 10,000 to 20,000 rows."""
MAX_CACHED = 2
"""Tables and circuits that a worker keeps arranged."""


class SameCode:
    """A function for a task, which raises where the worker has other code, or numbers families otherwise.

    Plans and circuits hold numbers of families: under others a worker would count with another likelihood.

    Parameters
    ----------
    function : callable
        Of a module of this package.

    Raises
    ------
    SamplingError
        When it is called in a process with another version of this package, or other families.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function, self.__name__ = function, function.__name__
        self._package, self._families = package_hash(), registry.sent_families()

    def __call__(self, *arguments: Any) -> Any:
        if self._package != package_hash():
            raise SamplingError(
                "a worker with another version of bayesjpt", "the version of this process", "Install it, and start anew"
            )
        registry.check_sent_families(self._families)
        return self._function(*arguments)


_cached: OrderedDict[str, tuple[Units, int]] = OrderedDict()
_lock = threading.Lock()
_thread = threading.local()


def count_part(name: str, shared: tuple[Units, int] | None, first: int, last: int, task: SweepTask) -> Counted | None:
    """Return what a sweep counts in units ``first`` to ``last - 1``; None where a worker does not know the rows.

    Parameters
    ----------
    name : str
        Of the rows and how they are arranged.
    shared : (Units, int), optional
        The units, without rows, and the rows of a block: sent where a worker did not know them.
    first, last : int
    task : SweepTask
    """
    with _lock:
        if shared is not None:
            _cached.setdefault(name, shared)
        if name not in _cached:
            return None
        _cached.move_to_end(name)
        while len(_cached) > MAX_CACHED:
            _cached.popitem(last=False)
        units, n_block = _cached[name]
    if getattr(_thread, "name", None) != name:  # a worker may have several threads: each has buffers of its own
        _thread.name, _thread.buffers = name, make_buffers(units.plan, units[0], n_block)
    return count_units(units.plan, units, range(first, last), task, _thread.buffers)


def _forget(name: str) -> None:
    with _lock:
        _cached.pop(name, None)


class ExecutorCounter:
    """Counts through an executor; a `bayesjpt.kernels.unit_sweeper.Counter`.

    Parameters
    ----------
    units : Units
    n_block : int
    executor : Submits
    n_worker : int, optional
        Processes of the executor; asked of it unless given.
    """

    def __init__(self, units: Units, n_block: int, executor: Submits, n_worker: int | None = None):
        self._executor, self._found = executor, (units, n_block)
        plan = hashlib.sha256()
        for array in units.plan:
            plan.update(array.tobytes())
        where = getattr(units.source, "folder", "")  # a worker may know the same rows in a folder that is gone
        self._name = f"{units.digest()}{plan.hexdigest()}{where}"
        self._parts = parts_of(len(units), n_worker or workers_of(executor))
        weakref.finalize(self, _forget, self._name)  # threads of this process would keep the rows until its end

    def __call__(self, task: SweepTask) -> Counted:
        with lost_processes_told():
            return self._counted(task)

    def _counted(self, task: SweepTask) -> Counted:
        total = Counted()
        submit, name, counting = self._executor.submit, self._name, SameCode(count_part)
        # all parts are on their way before the first result is waited for
        waiting = [(part, submit(counting, name, None, *part, task)) for part in self._parts]
        unknown = []
        for part, future in waiting:
            found = future.result()
            if found is None:
                unknown.append((part, submit(counting, name, self._found, *part, task)))
            else:
                total.merge(found)
        for _, future in unknown:
            total.merge(future.result())
        return total


def count_through(executor: Submits, plan: Plan, bins: Bins, source: Source) -> Counts:
    """Return what `bayesjpt.kernels.histograms.count_rows` counts in all rows, a part in each task of an executor.

    Rows that lie in memory go with the task; those in files are found by the worker.
    """
    calls = []
    for part in parts_of(max(-(-source.n_row // UNIT_ROWS), 1), workers_of(executor)):
        first, last = (min(unit * UNIT_ROWS, source.n_row) for unit in part)
        if isinstance(source, ArraySource):
            # only the rows of the part travel with it
            calls.append((plan, bins, ArraySource(*source.arrays(first, last)), (0, last - first), first))
        else:
            calls.append((plan, bins, source, (first, last)))
    total = Counts.none(plan, bins)
    for counts in run_by(executor)(SameCode(count_rows), calls):
        total.merge(counts)
    return total


def parts_of(n_unit: int, n_worker: int) -> list[tuple[int, int]]:
    """Return the first unit of each task, and the one behind its last.

    Tasks are at most `PARTS_PER_WORKER` for each worker; of fewer than `PART_UNITS` units each they are no more than
    workers.
    """
    n_part = min(PARTS_PER_WORKER * n_worker, max(n_unit // PART_UNITS, n_worker))
    size = math.ceil(n_unit / min(n_unit, n_part))
    return [(first, min(first + size, n_unit)) for first in range(0, n_unit, size)]


def workers_of(executor: Any) -> int:
    """Return how many workers an executor, or a client of Dask, has now, 1 where it does not say."""
    client = client_of(executor)
    if client is not None:
        return max(sum(client.nthreads().values()), 1)
    return max(int(getattr(executor, "_max_workers", 1)), 1)
