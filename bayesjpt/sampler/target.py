"""What chains draw from: the rows of a table under a circuit and its priors, arranged for sweeps."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.check import check_circuit, check_leaves_fit, check_samplable
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.circuit.priors import Priors, make_priors
from bayesjpt.circuit.type_prior import COLUMNS, MEMBERS, ColumnTypes, make_column_types, no_column_types
from bayesjpt.defaults import ALPHA, ESS, GAMMA, MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES
from bayesjpt.errors import LearnerError
from bayesjpt.kernels.cells import Cells, make_cells
from bayesjpt.kernels.collapsed_sweeper import BLOCKED, check_sampler, sweeper_class
from bayesjpt.kernels.routes import make_routes
from bayesjpt.kernels.sweeper import Sweeper, is_closed_form
from bayesjpt.kernels.work import block_rows
from bayesjpt.sampler.schedule import StateSizes

if TYPE_CHECKING:
    from bayesjpt.table.table import Table


@dataclass(frozen=True, eq=False)
class Target:
    """Rows under a circuit and its priors. Threads share it; nothing in it changes.

    Parameters
    ----------
    circuit : Circuit
    plan : Plan
    priors : Priors
    column_types : ColumnTypes
        Weights of types that are drawn, too; a chain carries them behind its parameters.
    cells : Cells
    n_block : int
        Rows evaluated together.
    log_jacobian : float
        What turns a log likelihood in the families' units into one in the user's, in nats.
    is_closed_form : bool
        Whether draws are independent, and need no sweep; see `bayesjpt.kernels.sweeper.is_closed_form`.
    sampler : str
        One of `bayesjpt.kernels.collapsed_sweeper.SAMPLERS`.
    """

    circuit: Circuit
    plan: Plan
    priors: Priors
    column_types: ColumnTypes
    cells: Cells
    n_block: int
    log_jacobian: float
    is_closed_form: bool
    sampler: str = BLOCKED

    def sweeper(self) -> Sweeper:
        """Return a Sweeper with buffers of its own, for one thread."""
        kind = Sweeper if self.is_closed_form else sweeper_class(self.sampler)
        return kind(
            self.circuit,
            self.plan,
            self.priors,
            self.cells,
            n_block=self.n_block,
            column_types=self.column_types,
            log_jacobian=self.log_jacobian,
        )

    @property
    def sizes(self) -> StateSizes:
        """How many numbers a chain carries."""
        return StateSizes(
            self.circuit.n_edge, self.circuit.n_theta, self.column_types.n_weight + self.priors.scales.n_group
        )

    def digest(self) -> str:
        """Return a hash of everything that decides the draws beside keys and generators."""
        total = hashlib.sha256(f"{self.circuit.digest()}{self.sampler}".encode())
        for arrays in (self.plan._asdict(), self.priors.arrays(), self.column_types._asdict(), self.cells._asdict()):
            for name, array in arrays.items():
                total.update(f"{name}{array.dtype.str}{array.shape}".encode())
                total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()


def make_target(
    circuit: Circuit,
    table: Table,
    *,
    gamma: float = GAMMA,
    alpha: float = ALPHA,
    prior: str = "default",
    type_prior: str = MEMBERS,
    sampler: str = BLOCKED,
    ess: float = ESS,
) -> Target:
    """Return the Target of a table.

    Parameters
    ----------
    circuit : Circuit
    table : Table
    gamma, alpha, prior, type_prior, sampler, ess
        As in `bayesjpt.fit`.

    Raises
    ------
    LearnerError
        Where the circuit is none.
    CircuitError
        Where it is not valid, or does not fit the table's columns.
    ModelError
        For an unknown prior, sampler or way to divide concentrations, or concentrations that are not positive.
    """
    check_sampler(sampler)
    check_fits(circuit, table)
    plan = make_plan(circuit, table.schema)
    priors = make_priors(
        circuit,
        table.schema,
        make_layout(circuit, table.schema),
        gamma=gamma,
        alpha=alpha,
        prior=prior,
        type_prior=type_prior,
        ess=ess,
    )
    column_types = make_column_types(circuit, table.schema) if type_prior == COLUMNS else no_column_types()
    cells = make_cells(
        plan,
        table.values,
        table.observed,
        max_distinct_share=MAX_DISTINCT_SHARE,
        max_table_bytes=MAX_TABLE_BYTES,
        routes=make_routes(plan, table.values, table.observed),
    )
    jacobian = float((table.observed.sum(axis=1) * plan.column_log_jacobian).sum())
    n_block = block_rows(plan, MAX_WORK_BYTES, cells)
    drawn_at_once = column_types.n_weight == 0 and bool(priors.scales.from_statistics.all())
    closed_form = drawn_at_once and is_closed_form(circuit, plan, cells)
    return Target(circuit, plan, priors, column_types, cells, n_block, jacobian, closed_form, sampler)


def check_fits(circuit: Circuit, table: Table) -> None:
    """Raise unless a learner returned a valid circuit over the columns of the table; see `make_target`."""
    if not isinstance(circuit, Circuit):
        raise LearnerError(f"a learner that returned an object of type {type(circuit).__name__}", "a Circuit")
    check_circuit(circuit, table.n_column)
    check_leaves_fit(circuit, table.schema)
    check_samplable(circuit, table.schema)
