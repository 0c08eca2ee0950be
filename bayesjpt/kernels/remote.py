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
from collections import OrderedDict
from concurrent.futures import BrokenExecutor
from typing import Any, Protocol

from bayesjpt.errors import SamplingError
from bayesjpt.kernels.unit_sweeper import Counted, SweepTask, count_units, make_buffers
from bayesjpt.kernels.units import Units

PARTS_PER_WORKER = 4
"""At most: a worker that is late, or lost, then costs a fourth of its share, and submissions stay few."""
MAX_CACHED = 2
"""Tables and circuits that a worker keeps arranged."""


class Future(Protocol):
    """What becomes a result."""

    def result(self) -> Any: ...


class Submits(Protocol):
    """An executor: `concurrent.futures.Executor`, or that of a Dask client (``client.get_executor()``)."""

    def submit(self, function: Any, /, *args: Any) -> Future: ...


_cached: OrderedDict[str, tuple[Units, int]] = OrderedDict()
_lock = threading.Lock()
_thread = threading.local()


def count_part(name: str, found: tuple[Units, int] | None, first: int, last: int, task: SweepTask) -> Counted | None:
    """Return what a sweep counts in units ``first`` to ``last - 1``; None where a worker does not know the rows.

    Parameters
    ----------
    name : str
        Of the rows and how they are arranged.
    found : (Units, int), optional
        The units, without rows, and the rows of a block: sent where a worker did not know them.
    first, last : int
    task : SweepTask
    """
    with _lock:
        if found is not None:
            _cached.setdefault(name, found)
        if name not in _cached:
            return None
        _cached.move_to_end(name)
        while len(_cached) > MAX_CACHED:
            _cached.popitem(last=False)
        units, n_block = _cached[name]
    if getattr(_thread, "name", None) != name:  # a worker may have several threads: each has buffers of its own
        _thread.name, _thread.buffers = name, make_buffers(units.plan, units[0], n_block)
    return count_units(units.plan, units, range(first, last), task, _thread.buffers)


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
        n_part = min(len(units), PARTS_PER_WORKER * (n_worker or workers_of(executor)))
        size = math.ceil(len(units) / n_part)
        self._parts = [(first, min(first + size, len(units))) for first in range(0, len(units), size)]

    def __call__(self, task: SweepTask) -> Counted:
        try:
            return self._counted(task)
        except BrokenExecutor as error:
            raise SamplingError(
                f"a process of the executor ended: {error}",
                "processes that live as long as the fit",
                "A program that starts processes does so under: if __name__ == '__main__'.",
            ) from error

    def _counted(self, task: SweepTask) -> Counted:
        total = Counted()
        submit, name = self._executor.submit, self._name
        waiting = [(part, submit(count_part, name, None, *part, task)) for part in self._parts]
        unknown = []
        for part, future in waiting:
            found = future.result()
            if found is None:
                unknown.append((part, submit(count_part, name, self._found, *part, task)))
            else:
                total.merge(found)
        for _, future in unknown:
            total.merge(future.result())
        return total


def workers_of(executor: Any) -> int:
    """Return how many workers an executor has now, 1 where it does not say."""
    client = getattr(executor, "_client", None)
    if client is not None:
        return max(sum(client.nthreads().values()), 1)
    return max(int(getattr(executor, "_max_workers", 1)), 1)
