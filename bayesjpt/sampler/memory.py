"""How much memory a fit will take, asked before it samples, and how much there is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.defaults import CHAINS, DRAWS, MAX_TABLE_BYTES, MAX_WORK_BYTES
from bayesjpt.errors import SamplingError
from bayesjpt.kernels.paths import BLOCK, longest_path
from bayesjpt.kernels.samplers import BLOCKED, COLLAPSED
from bayesjpt.kernels.work import block_rows
from bayesjpt.sampler.schedule import Schedule, draw_arrays
from bayesjpt.sampler.target import RESIDENT_BYTES
from bayesjpt.sampler.workers import n_worker
from bayesjpt.table.dataset import Dataset

if TYPE_CHECKING:
    from bayesjpt.table.table import Table

MAX_MEMORY_SHARE = 0.8
"""Of the available memory that sampling may take; the rest is for the table itself and for the first answers."""


UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "kiB"))

CGROUP = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of the process's group, in a container."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that sampling will take.

    Parameters
    ----------
    draws : int
        Kept draws of all chains; exact.
    workspaces : int
        Buffers of the sweeps, one set a thread; an upper bound.
    cells : int
        The table as the sweeps read it; an upper bound.
    """

    draws: int
    workspaces: int
    cells: int

    @property
    def total(self) -> int:
        """Bytes of all three."""
        return self.draws + self.workspaces + self.cells

    def __str__(self) -> str:
        parts = f"draws {in_words(self.draws)}, workspaces {in_words(self.workspaces)}, cells {in_words(self.cells)}"
        return f"{in_words(self.total)} ({parts})"


def in_words(n_byte: int) -> str:
    """Return a number of bytes as people read it."""
    for size, unit in UNITS:
        if n_byte >= size:
            return f"{n_byte / size:.1f} {unit}"
    return f"{n_byte} bytes"


def estimate_memory(
    circuit: Circuit,
    table: Table | Dataset,
    *,
    draws: int = DRAWS,
    chains: int = CHAINS,
    cores: int | None = None,
    sampler: str = BLOCKED,
) -> MemoryEstimate:
    """Return how many bytes sampling a circuit over a table will take, without sampling.

    Parameters
    ----------
    circuit : Circuit
        What a learner returned for the table.
    table : Table
    draws, chains, cores, sampler
        As in `bayesjpt.fit`; sweeps that tuning or thinning discard take no memory.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"height": np.random.default_rng(1).normal(size=50)}))
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(2))
    >>> one, two = (bj.estimate_memory(circuit, table, draws=draws) for draws in (1000, 2000))
    >>> two.draws == 2 * one.draws, two.cells == one.cells
    (True, True)
    """
    plan = make_plan(circuit, table.schema)
    return memory_of(plan, circuit, table, draws=draws, chains=chains, cores=cores, sampler=sampler)


def memory_of(
    plan: Plan,
    circuit: Circuit,
    table: Table | Dataset,
    *,
    draws: int,
    chains: int,
    cores: int | None,
    sampler: str,
) -> MemoryEstimate:
    """Return what `estimate_memory` does, where the circuit's plan is at hand."""
    schedule = Schedule(n_chain=chains, n_tune=0, n_draw=draws)
    forms = draw_arrays(schedule, circuit.n_edge, circuit.n_theta).values()
    n_row, n_column = table.n_row, table.n_column
    n_block = block_rows(plan, MAX_WORK_BYTES)
    n_valued, n_term = int(plan.node_row.max()) + 1, int(plan.edge_row.max(initial=-1)) + 1
    n_dictionary = int(np.diff(plan.child_ptr)[plan.slot_node].max(initial=3))
    # a column is coded only where its tables fit the budget, so its distinct values are bounded
    tables = np.bincount(plan.slot_column, 1 + np.diff(plan.child_ptr)[plan.slot_node], minlength=n_column)
    longest = max(n_block, min(n_row + 1, int(MAX_TABLE_BYTES / (8 * tables[tables > 0].min()))))
    n_kept = int((plan.column_kept >= 0).sum())
    workspace = (
        8 * n_block * (2 * n_valued + n_term + 4)
        + n_block * n_valued
        + 8 * longest * (n_dictionary + 2)
        + MAX_TABLE_BYTES
        + 4 * plan.kind.size * (n_block + 3)
        + 8 * (2 * plan.leaf_family.size + int(plan.coef_at[-1]) + 2 * int(plan.stat_at[-1]))
        + (n_kept > 0) * n_row * (20 * n_kept + 16)
    )
    if (plan.split_column >= 0).any():  # segments need fewer nodes, and have longer blocks within the same bound
        workspace += MAX_WORK_BYTES
    if sampler == COLLAPSED:
        workspace += 4 * n_row * (longest_path(plan) + n_column) + 8 * BLOCK * plan.leaf_family.size + MAX_TABLE_BYTES
    bytes_of_row = 8 * plan.feature_column.size + 6 * n_column + 16
    return MemoryEstimate(
        draws=sum(_product(shape) * dtype.itemsize for shape, dtype in forms),
        workspaces=workspace * n_worker(cores, chains),
        # a feature holds one number a cell, the codes of a column and its marks less
        cells=n_row * bytes_of_row if not isinstance(table, Dataset) else min(n_row * bytes_of_row, RESIDENT_BYTES),
    )


def _product(shape: tuple[int, ...]) -> int:
    """Return the number of entries, exactly: NumPy's would overflow for the very requests that must be refused."""
    n = 1
    for size in shape:
        n *= int(size)
    return n


def check_memory(estimate: MemoryEstimate) -> None:
    """Raise `SamplingError` where an estimate exceeds what the machine, or the process's group, has left."""
    available = available_memory()
    if available is not None and estimate.total > MAX_MEMORY_SHARE * available:
        raise SamplingError(
            f"sampling would take {estimate} of memory",
            f"at most {MAX_MEMORY_SHARE:.0%} of the {in_words(available)} that are available",
            "Ask for fewer draws or chains, keep every tenth sweep with thin=10 and a tenth of the draws, "
            "or learn a smaller structure with a larger min_rows",
            command="Ask for fewer draws or chains, keep every tenth sweep with --thin 10 and a tenth of the draws, "
            "or learn a smaller structure with a larger --min-rows",
        )


def available_memory() -> int | None:
    """Return the bytes that can be taken without swapping, or None where the system does not say.

    On Linux what the kernel calls available, or less where a control group sets a limit; elsewhere all memory of the
    machine.
    """
    found = [n for n in (_of_machine(), _of_group(CGROUP)) if n is not None]
    return min(found) if found else None


def _of_machine(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _of_group(root: Path) -> int | None:
    """Return what a control group's limit leaves: version 2, or version 1."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            bound, taken = int((root / limit).read_text()), int((root / used).read_text())
            stat = (root / used).with_name("memory.stat").read_text()
            # files that were not read lately: the kernel gives them up on demand
            freed = [int(line.split()[1]) for line in stat.splitlines() if line.split()[0] == cache]
        except (OSError, ValueError, IndexError):
            continue
        return max(bound - taken + sum(freed), 0)
    return None
