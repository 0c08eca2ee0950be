"""Log density and log mass of rows, for one point or for many draws."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.rows import scatter
from bayesjpt.kernels.upward import fill_mass_tables, fill_tables, prepare_coefficients, root_log_value, upward_by
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.lent import lent

DENSITY_BLOCK = 256


@kernel
def _fill_root(plan, cells, log_weight, theta, work, out):
    n_row = cells.n_row[0]
    n_block = work.u.size
    lo = 0
    while lo < n_row:
        n = block_size(cells.segment_ptr, lo, n_block, n_row)
        upward_by(plan, cells, log_weight, theta, work, lo, n)
        if cells.row.size > 0:
            root_log_value(plan, work, n, work.u)
            scatter(work.u[:n], cells.row[lo : lo + n], out)
        else:
            root_log_value(plan, work, n, out[lo : lo + n])
        lo += n


@kernel
def fill_log_density(plan, cells, log_weight, theta, work, out):
    """Fill out, float64 (n_row,), with each row's log density in the families' units."""
    plan, cells, work = lent(plan), lent(cells), lent(work)
    prepare_coefficients(plan, cells, theta, work)
    fill_tables(plan, cells, log_weight, work)
    _fill_root(plan, cells, log_weight, log_weight[:0], work, out)


@kernel
def fill_log_mass(plan, cells, log_weight, theta, work, out):
    """Fill out, float64 (n_row,), with the log mass of each row's cells."""
    plan, cells, work = lent(plan), lent(cells), lent(work)
    prepare_coefficients(plan, cells, theta, work)
    fill_mass_tables(plan, cells, log_weight, theta, work)
    _fill_root(plan, cells, log_weight, theta if theta.size > 0 else np.zeros(1), work, out)


@kernel
def fill_row_evidence(plan, cells, params, n_block, out):
    """Fill out, float64 (n_draw, n_row), with the log density of each row under each draw, in the families' units.

    `params` is a pair of float64 (n_draw, n_edge) and (n_draw, n_theta).
    """
    log_weights, thetas = params
    work = make_work(plan, cells, n_block)
    for draw in range(out.shape[0]):
        fill_log_density(plan, cells, log_weights[draw], thetas[draw], work, out[draw])


@kernel
def rows_log_density(values, missing, log_weight, theta, plan):
    """Return float64 (n_row,): log density of rows in the user's units; values and missing are (n_row, n_column)."""
    n_row, n_column = values.shape
    by_column = np.empty((n_column, n_row))
    hidden = np.empty((n_column, n_row), np.bool_)
    jacobian = np.zeros(n_row)
    for i in range(n_row):
        for j in range(n_column):
            by_column[j, i] = values[i, j]
            hidden[j, i] = missing[i, j]
            if not missing[i, j]:
                jacobian[i] += plan.column_log_jacobian[j]
    cells = row_cells(plan, by_column, hidden)
    out = np.empty(n_row)
    fill_log_density(plan, cells, log_weight, theta, make_work(plan, cells, DENSITY_BLOCK), out)
    for i in range(n_row):
        out[i] += jacobian[i]
    return out
