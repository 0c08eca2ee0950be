"""What chains draw from: the rows of a table under a circuit and its priors, arranged for sweeps."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.circuit.check import check_circuit, check_leaves_fit, check_samplable
from bayesjpt.circuit.layout import Layout, weight_variables
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.circuit.priors import Priors, make_priors
from bayesjpt.circuit.type_prior import MEMBERS
from bayesjpt.defaults import (
    ALPHA,
    ESS,
    GAMMA,
    MAX_DISTINCT_SHARE,
    MAX_TABLE_BYTES,
    MAX_WORK_BYTES,
)
from bayesjpt.errors import LearnerError
from bayesjpt.executors import Submits
from bayesjpt.kernels.histograms import Histograms, count_in_threads, make_bins
from bayesjpt.kernels.remote import count_through
from bayesjpt.kernels.samplers import BLOCKED, arrange, check_sampler, make_sweeper
from bayesjpt.kernels.sweeper import Sweeper, is_closed_form
from bayesjpt.kernels.units import UNIT_ROWS, ArraySource, Source, Units
from bayesjpt.sampler.schedule import StateSizes
from bayesjpt.table.dataset import Dataset

if TYPE_CHECKING:
    from bayesjpt.table.table import Table


COUNTED_ROWS = 100_000
"""Rows above which those of a hard tree are counted by slot and value before the sweeps, in place of in each. Fewer
rows gain little, and keep draws that are functions of (key, row, node)."""

_MAX_BINS = 2**23
"""Counts of slots and values at most, 16 bytes each, and never more than rows: a bin costs a sweep about as much as a
cell of a row."""

RESIDENT_BYTES = 2**29
"""Of rows that lie in files, what a structure keeps arranged in memory; the rest is arranged anew in each sweep."""


@dataclass(frozen=True, eq=False)
class Target:
    """Rows under a circuit and its priors. Threads share it; nothing in it changes.

    Parameters
    ----------
    circuit : Circuit
    plan : Plan
    priors : Priors
    units : Units or Histograms
        The rows, arranged unit by unit; or counted, where that is all that sweeps need and there are many.
    log_jacobian : float
        What turns a log likelihood in the families' units into one in the user's, in nats.
    is_closed_form : bool
        Whether draws are independent, and need no sweep; see `bayesjpt.kernels.sweeper.is_closed_form`.
    sampler : str
        One of `bayesjpt.kernels.samplers.SAMPLERS`.
    n_thread : int
        Threads that share the units of one sweep; no effect on any draw.
    executor : Submits, optional
        Processes that share them in place of threads.
    """

    circuit: Circuit
    plan: Plan
    priors: Priors
    units: Units | Histograms
    log_jacobian: float
    is_closed_form: bool
    sampler: str = BLOCKED
    n_thread: int = 1
    executor: Submits | None = None

    def sweeper(self) -> Sweeper:
        """Return a Sweeper with buffers of its own, for one thread."""
        return make_sweeper(
            self.circuit,
            self.plan,
            self.priors,
            self.units,
            sampler=BLOCKED if self.is_closed_form else self.sampler,
            max_work_bytes=MAX_WORK_BYTES,
            n_thread=self.n_thread,
            executor=self.executor,
            log_jacobian=self.log_jacobian,
        )

    @property
    def sizes(self) -> StateSizes:
        """How many numbers a chain carries."""
        n_behind = self.priors.column_types.n_weight + self.priors.scales.n_group
        return StateSizes(self.circuit.n_edge, self.circuit.n_theta, n_behind)

    def digest(self) -> str:
        """Return a hash of everything that decides the draws beside keys and generators."""
        total = hashlib.sha256(f"{self.circuit.digest()}{self.sampler}".encode())
        total.update(self.units.digest().encode())
        for arrays in (self.plan._asdict(), self.priors.arrays()):
            for name, array in arrays.items():
                total.update(f"{name}{array.dtype.str}{array.shape}".encode())
                total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()


def make_target(
    circuit: Circuit,
    table: Table | Dataset,
    *,
    gamma: float = GAMMA,
    alpha: float = ALPHA,
    prior: str = "default",
    type_prior: str = MEMBERS,
    sampler: str = BLOCKED,
    ess: float | BDeu = ESS,
    n_thread: int = 1,
    executor: Submits | None = None,
    is_checked: bool = False,
) -> Target:
    """Return the Target of a table.

    Parameters
    ----------
    circuit : Circuit
    table : Table or Dataset
    n_thread, executor
        As in `Target`.
    gamma, alpha, prior, type_prior, sampler, ess
        As in `bayesjpt.fit`.
    is_checked
        Whether `check_fits` was called for this circuit and table already.

    Raises
    ------
    LearnerError
        Where the circuit is none.
    CircuitError
        Where it is not valid, or does not fit the table's columns.
    ModelError
        For an unknown prior, sampler or way to divide concentrations, or concentrations that are not positive.
    """
    if not is_checked:
        check_fits(circuit, table)
    check_sampler(sampler)
    plan = make_plan(circuit, table.schema)
    priors = make_priors(
        circuit,
        table.schema,
        Layout(weight_variables(circuit, table.schema), ()),
        gamma=gamma,
        alpha=alpha,
        prior=prior,
        type_prior=type_prior,
        ess=ess,
    )
    limits = {"max_distinct_share": MAX_DISTINCT_SHARE, "max_table_bytes": MAX_TABLE_BYTES}
    if isinstance(table, Dataset):
        source, n_observed = table, table.n_observed
        limits["resident"] = _resident(plan)
    else:
        source, n_observed = ArraySource(table.values, table.observed), table.observed.sum(axis=1)
    units = _counted(plan, source, sampler, n_thread, executor)
    units = arrange(plan, source, sampler, **limits) if units is None else units
    # constant in all parameters, so it is added once
    jacobian = float((n_observed * plan.column_log_jacobian).sum())
    drawn_at_once = priors.column_types.n_weight == 0 and bool(priors.scales.from_statistics.all())
    closed_form = drawn_at_once and is_closed_form(circuit, plan, units.n_open)
    return Target(circuit, plan, priors, units, jacobian, closed_form, sampler, n_thread, executor)


def _counted(plan: Plan, source: Source, sampler: str, n_thread: int, executor: Submits | None) -> Histograms | None:
    """Return many rows counted by slot and value, where that is all that sweeps need of them; else None.

    Whether it is depends on the circuit and on all rows, never on how they are divided.
    """
    if source.n_row <= COUNTED_ROWS or sampler != BLOCKED:
        return None
    bins = make_bins(plan, source, min(source.n_row, _MAX_BINS))
    if bins is None:
        return None
    if executor is None:
        counts = count_in_threads(plan, bins, source, n_thread)
    else:
        counts = count_through(executor, plan, bins, source)
    return None if counts.n_open else Histograms(plan, source, bins, counts)


def _resident(plan: Plan) -> int:
    """Return how many units of rows that need not fit into memory are kept arranged there."""
    bytes_of_row = 8 * plan.feature_column.size + 6 * plan.column_resolution.size + 16
    return RESIDENT_BYTES // (UNIT_ROWS * bytes_of_row)


def check_fits(circuit: Circuit, table: Table | Dataset) -> None:
    """Raise unless a learner returned a valid circuit over the columns of the table; see `make_target`."""
    if not isinstance(circuit, Circuit):
        raise LearnerError(f"a learner that returned an object of type {type(circuit).__name__}", "a Circuit")
    check_circuit(circuit, table.n_column)
    check_leaves_fit(circuit, table.schema)
    check_samplable(circuit, table.schema)
