"""Sweeps over rows that lie in several units: what is counted in each is added up, the rest of a sweep is as ever."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.cells import Cells, Work
from bayesjpt.kernels.gibbs import count, prepare
from bayesjpt.kernels.paths import Paths
from bayesjpt.kernels.swaps import Swaps, make_swaps
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.kernels.units import Units
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.dyadic import DyadicSum


class SweepTask(NamedTuple):
    """What has to be known, beside a circuit and its rows, to draw the allocations of a sweep.

    Attributes
    ----------
    log_weight : float64 (n_edge,), theta : float64 (n_theta,)
    other : int32 (n_leaf,)
        Of `bayesjpt.kernels.swaps.Swaps`.
    key : int
        Of this sweep.
    prior : bool
        Draw allocations by the weights alone.
    """

    log_weight: np.ndarray
    theta: np.ndarray
    other: np.ndarray
    key: int
    prior: bool


@dataclass(eq=False)
class Counted:
    """What a sweep counted in some units; parts of it are merged in any order.

    Attributes
    ----------
    sums : DyadicSum
        Of float64 (2 n_stats + 1,) a unit: statistics, statistics under the leaf to swap with, log likelihood in nats.
    counts : int64 (n_edge + n_leaf + n_tally,), or 0
        Rows that took each edge, that reached each leaf, and the tally of codes.
    impossible : int
        The first row with zero density, -1 where there is none.
    kept : dict from int to list of (values, leaves)
        Of each unit, for each column of which values are listed.
    """

    sums: DyadicSum = field(default_factory=DyadicSum)
    counts: np.ndarray | int = 0
    impossible: int = -1
    kept: dict[int, list[tuple[np.ndarray, np.ndarray]]] = field(default_factory=dict)

    def merge(self, other: Counted) -> None:
        """Add what was counted in other units."""
        self.sums.merge(other.sums)
        self.counts = self.counts + other.counts
        if other.impossible >= 0:
            self.impossible = other.impossible if self.impossible < 0 else min(self.impossible, other.impossible)
        self.kept |= other.kept


class Buffers(NamedTuple):
    """What one thread needs to count."""

    work: Work
    swaps: Swaps
    stats: np.ndarray
    edge_count: np.ndarray


def make_buffers(plan: Plan, largest: Cells, n_block: int) -> Buffers:
    """Return the buffers for units of at most as many rows as the one given."""
    return Buffers(
        make_work(plan, largest, n_block),
        make_swaps(plan),
        np.zeros(plan.stat_at[-1]),
        np.zeros(plan.child.size, np.int64),
    )


def count_units(plan: Plan, units: Units, numbers: Iterable[int], task: SweepTask, buffers: Buffers) -> Counted:
    """Return what a sweep counts in some units: a function of its arguments, but for the buffers, which are scratch."""
    total = Counted()
    work, swaps, stats, edge_count = buffers
    swaps.other[...] = task.other
    is_prepared = False
    for number in numbers:
        cells = units[number]
        if not is_prepared:  # units are coded alike: tables are the same in all
            prepare(plan, cells, task.log_weight, task.theta, work)
            is_prepared = True
        log_likelihood, impossible = count(
            plan, cells, task.log_weight, work, swaps, np.uint64(task.key), task.prior, stats, edge_count
        )
        part = Counted(
            counts=np.concatenate([edge_count, work.n_reached, work.tally]),
            impossible=int(impossible),
            kept={
                number: [
                    # copies: the next unit overwrites the buffers
                    (work.kept_value[row, :n].copy(), work.kept_leaf[row, :n].copy())
                    for row, n in enumerate(work.n_kept)
                ]
            },
        )
        part.sums.add(number, np.concatenate([stats, swaps.stats, [log_likelihood]]))
        total.merge(part)
    return total


class Counter(Protocol):
    """What counts the statistics of a sweep in all units."""

    def __call__(self, task: SweepTask, /) -> Counted: ...


class ThreadCounter:
    """Counts in threads of this process, which take the next unit whenever they are done with one.

    Parameters
    ----------
    units : Units
    n_block : int
        Rows evaluated together; no effect on any draw.
    n_thread : int
        No effect either.
    """

    def __init__(self, units: Units, n_block: int, n_thread: int = 1):
        self._units = units
        n_thread = min(n_thread, len(units))
        self._buffers = [make_buffers(units.plan, units[0], n_block) for _ in range(n_thread)]

    def __call__(self, task: SweepTask) -> Counted:
        waiting, lock, total = iter(range(len(self._units))), threading.Lock(), Counted()

        def taken() -> Iterator[int]:
            while True:
                # one iterator for the generators of all threads
                with lock:
                    number = next(waiting, None)
                if number is None:
                    return
                yield number

        def serve(buffers: Buffers) -> None:
            part = count_units(self._units.plan, self._units, taken(), task, buffers)
            with lock:
                total.merge(part)

        if len(self._buffers) == 1:
            serve(self._buffers[0])
            return total
        with ThreadPoolExecutor(len(self._buffers), thread_name_prefix="units") as pool:
            for _ in pool.map(serve, self._buffers):  # an error of a thread is raised here
                pass
        return total


class UnitSweeper(Sweeper):
    """A Sweeper of rows that lie in several units.

    Parameters
    ----------
    circuit, plan, priors : as in `Sweeper`
    units : Units
    counter : Counter
        Of these units.
    **options
        The other parameters of `Sweeper`.
    """

    def __init__(self, circuit, plan, priors, units: Units, *, counter: Counter, **options):
        super().__init__(circuit, plan, priors, units[0], **options)
        self._count, self._n_unit = counter, len(units)
        if self._work.kept_value.shape[1]:  # of all rows, in place of those of one unit
            n_kept = self._work.n_kept.size
            self._work = self._work._replace(
                kept_value=np.empty((n_kept, units.n_row)),
                kept_leaf=np.empty((n_kept, units.n_row), np.int32),
                sorted_value=np.empty((n_kept, units.n_row)),
                listed=np.empty((2, max(units.n_row, self._work.listed.shape[1]))),
            )

    def paths(self, params: Params, key: int) -> Paths:
        """Return the path of every row, as `Sweeper` does, where all lie in one unit."""
        assert self._n_unit == 1, "paths are drawn within a unit"
        return super().paths(params, key)

    def _allocate(self, params: Params, key: np.uint64, by_prior: bool) -> float:
        self._allocated = False
        counted = self._count(SweepTask(params.log_weight, params.theta, self._swaps.other, int(key), by_prior))
        n_stats, n_edge, n_leaf = self._stats.size, self._edge_count.size, self._work.n_reached.size
        total = counted.sums.total()
        self._stats[:], self._swaps.stats[:] = total[:n_stats], total[n_stats : 2 * n_stats]
        taken, reached, tally = np.split(np.asarray(counted.counts), [n_edge, n_edge + n_leaf])
        self._edge_count[:], self._work.n_reached[:], self._work.tally[:] = taken, reached, tally
        self._work.n_kept[:] = 0
        # in the order of the rows, whichever unit was done first
        for number in sorted(counted.kept):
            for row, (values, leaves) in enumerate(counted.kept[number]):
                at = self._work.n_kept[row]
                self._work.kept_value[row, at : at + values.size] = values
                self._work.kept_leaf[row, at : at + values.size] = leaves
                self._work.n_kept[row] += values.size
        return self._tell((float(total[-1]), counted.impossible))
