"""How the tests call the kernels: a table under a circuit, evaluated by row, by distinct value, or both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.families import registry
from bayesjpt.kernels import gibbs
from bayesjpt.kernels.cells import Cells, Work, make_cells
from bayesjpt.kernels.density import fill_log_density, fill_log_mass
from bayesjpt.kernels.swaps import make_swaps
from bayesjpt.kernels.work import make_work
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

PROJECT = Path(__file__).resolve().parents[2]
PLENTY = 10**9

needs_compiler = pytest.mark.skipif(not hasattr(gibbs.allocate, "stats"), reason="numba's JIT is switched off")

MODES = {
    "by row": {"max_distinct_share": 0.0, "max_table_bytes": 0},
    "coded": {"max_distinct_share": 1.0, "max_table_bytes": PLENTY},
    "mixed": {"max_distinct_share": 0.0, "max_table_bytes": PLENTY},  # codes integers and labels alone
}


class Run(NamedTuple):
    """A plan and a table's cells under it."""

    plan: Plan
    cells: Cells


class Allocated(NamedTuple):
    """What `bayesjpt.kernels.gibbs.allocate` returned and filled."""

    log_likelihood: float
    impossible: int
    stats: np.ndarray
    edge_count: np.ndarray
    work: Work


class Hyper(NamedTuple):
    """Hyperparameters of all leaves, one leaf after the other."""

    values: np.ndarray
    at: np.ndarray


def hyper_of(circuit: Circuit, schema: Schema, prior: str = "default") -> Hyper:
    """Return the hyperparameters of the families' priors of a kind."""
    blocks = []
    for leaf in range(circuit.n_leaf):
        column = schema.columns[circuit.leaf_var[leaf]]
        start = circuit.start_theta[circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]]
        blocks.append(registry.FAMILIES[circuit.leaf_family[leaf]].priors[prior](column, start))
    at = np.concatenate([[0], np.cumsum([block.size for block in blocks])]).astype(np.int32)
    return Hyper(np.concatenate(blocks), at)


def prepare(circuit: Circuit, table: Table, mode: str = "by row") -> Run:
    """Return the plan and the cells of a table in one of the `MODES`."""
    plan = make_plan(circuit, table.schema)
    return Run(plan, make_cells(plan, table.values, table.observed, **MODES[mode]))


def log_jacobian(table: Table) -> np.ndarray:
    """Return float64 (n_row,): what turns log densities in the families' units into ones in the user's."""
    return (table.observed * table.schema.log_jacobian()[:, None]).sum(axis=0)


def log_scores(run: Run, params: Params, n_block: int = 64) -> np.ndarray:
    """Return float64 (n_row,): log densities in the families' units."""
    out = np.full(run.cells.n_row[0], np.nan)
    fill_log_density(run.plan, run.cells, *params, make_work(run.plan, run.cells, n_block), out)
    return out


def log_density(circuit: Circuit, params: Params, table: Table, mode: str = "by row") -> np.ndarray:
    """Return float64 (n_row,): log densities in the user's units."""
    return log_scores(prepare(circuit, table, mode), params) + log_jacobian(table)


def log_mass(circuit: Circuit, params: Params, table: Table) -> np.ndarray:
    """Return float64 (n_row,): log masses of the cells of values that lie on their grid."""
    plan = make_plan(circuit, table.schema)
    centre, half = recorded_cells(table.schema, table.values)
    return log_masses(Run(plan, make_cells(plan, centre, table.observed, **MODES["coded"], half=half)), params)


def log_masses(run: Run, params: Params) -> np.ndarray:
    """Return float64 (n_row,): log masses of the cells of a run's rows."""
    out = np.full(run.cells.n_row[0], np.nan)
    fill_log_mass(run.plan, run.cells, *params, make_work(run.plan, run.cells, 64), out)
    return out


def allocate(run: Run, params: Params, key: int, n_block: int = 64, *, by_prior: bool = False) -> Allocated:
    """Run one sweep of allocations; the arrays are dirty beforehand, since the kernel must overwrite them."""
    stats = np.full(run.plan.stat_at[-1], np.nan)
    edge_count = np.full(run.plan.child.size, -1, np.int64)
    work = make_work(run.plan, run.cells, n_block)
    swaps = make_swaps(run.plan)
    answer = gibbs.allocate(run.plan, run.cells, *params, work, swaps, np.uint64(key), by_prior, stats, edge_count)
    return Allocated(*answer, stats, edge_count, work)


def run_python(arguments: list[str], **environment: str) -> subprocess.CompletedProcess:
    """Run Python on some arguments in the project's folder, with variables added to the environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
