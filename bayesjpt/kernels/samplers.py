"""The ways to draw allocations, by the names that users give, and the sweeper and units of rows of each."""

from __future__ import annotations

from typing import Any

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.plan import Plan
from bayesjpt.circuit.priors import Priors
from bayesjpt.errors import ModelError
from bayesjpt.executors import Submits
from bayesjpt.kernels.collapsed_sweeper import CollapsedSweeper
from bayesjpt.kernels.histogram_sweeper import HistogramSweeper
from bayesjpt.kernels.histograms import Histograms
from bayesjpt.kernels.remote import ExecutorCounter
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.kernels.unit_sweeper import ThreadCounter, UnitSweeper
from bayesjpt.kernels.units import UNIT_ROWS, Source, Units
from bayesjpt.kernels.work import block_rows

BLOCKED, COLLAPSED = "blocked", "collapsed"
SAMPLERS = (BLOCKED, COLLAPSED)


def check_sampler(sampler: str) -> None:
    """Raise `ModelError` for an unknown way to draw allocations."""
    if sampler not in SAMPLERS:
        raise ModelError(f"sampler = {sampler!r}", f"one of {', '.join(SAMPLERS)}")


def arrange(plan: Plan, source: Source, sampler: str, **options: Any) -> Units:
    """Return rows arranged for sweeps; what draws row by row given all other rows sees them in one unit.

    `options` are parameters of `Units`.
    """
    unit_rows = max(source.n_row, 1) if sampler == COLLAPSED else UNIT_ROWS
    return Units(plan, source, unit_rows=unit_rows, **options)


def make_sweeper(
    circuit: Circuit,
    plan: Plan,
    priors: Priors,
    units: Units | Histograms,
    *,
    sampler: str,
    max_work_bytes: int,
    n_thread: int = 1,
    executor: Submits | None = None,
    **options: Any,
) -> Sweeper:
    """Return what sweeps over units of rows.

    Parameters
    ----------
    circuit, plan, priors : as in `Sweeper`
    units : Units or Histograms
        Of `arrange`, for the same sampler; or rows counted by slot and value, which blocked sweeps alone can take.
    sampler : str
    max_work_bytes : int
        Of the workspace for a block of rows, see `bayesjpt.kernels.work.block_rows`.
    n_thread : int
        Threads that share the units; no effect on any draw.
    executor : Submits, optional
        Processes that share them, in place of threads.
    **options
        Other parameters of `Sweeper`.
    """
    if isinstance(units, Histograms):
        return HistogramSweeper(circuit, plan, priors, units, **options)
    # a block has no more rows than a unit
    n_block = options["n_block"] = min(block_rows(plan, max_work_bytes, units[0]), max(int(units[0].n_row[0]), 1))
    if sampler == COLLAPSED:
        return CollapsedSweeper(circuit, plan, priors, units[0], **options)
    if len(units) == 1:
        return Sweeper(circuit, plan, priors, units[0], **options)
    counter = ThreadCounter(units, n_block, n_thread) if executor is None else ExecutorCounter(units, n_block, executor)
    return UnitSweeper(circuit, plan, priors, units, counter=counter, **options)
