"""Log density and log mass of rows, for one point or for many draws."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.rows import scatter
from bayesjpt.kernels.upward import fill_mass_tables, fill_tables, prepare_coefficients, root_log_value, upward_by
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.counter_rng import mix
from bayesjpt.numerics.jit import kernel

DENSITY_BLOCK = 256
_HIDDEN = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def _fill_root(plan, cells, log_weight, theta, work, out):
    n_row = cells.n_row[0]
    n_block = work.u.size
    lo = 0
    while lo < n_row:
        n = block_size(cells.segment_ptr, lo, n_block, n_row)
        upward_by(plan, cells, log_weight, theta, work, lo, n, False)
        if cells.row.size > 0:
            root_log_value(plan, work, n, work.u)
            scatter(work.u[:n], cells.row[lo : lo + n], out)
        else:
            root_log_value(plan, work, n, out[lo : lo + n])
        lo += n


@kernel
def fill_log_density(plan, cells, log_weight, theta, work, out):
    """Fill out, float64 (n_row,), with each row's log density in the families' units."""
    _fill_log_density(borrowed(plan), borrowed(cells), log_weight, theta, borrowed(work), out)


@kernel
def _fill_log_density(plan, cells, log_weight, theta, work, out):
    prepare_coefficients(plan, cells, theta, work)
    fill_tables(plan, cells, log_weight, work)
    # an empty theta asks `upward_by` for densities, not masses
    _fill_root(plan, cells, log_weight, log_weight[:0], work, out)


@kernel
def fill_log_mass(plan, cells, log_weight, theta, work, out):
    """Fill out, float64 (n_row,), with the log mass of each row's cells."""
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(work)
    prepare_coefficients(plan, cells, theta, work)
    fill_mass_tables(plan, cells, log_weight, theta, work)
    # not empty where a circuit has no parameters: that would ask for densities
    _fill_root(plan, cells, log_weight, theta if theta.size > 0 else np.zeros(1), work, out)


@kernel
def fill_row_evidence(plan, cells, params, n_block, out):
    """Fill out, float64 (n_draw, n_row), with the log density of each row under each draw, in the families' units.

    `params` is a pair of float64 (n_draw, n_edge) and (n_draw, n_theta).
    """
    log_weights, thetas = params
    made = make_work(plan, cells, n_block)
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(made)
    for draw in range(out.shape[0]):
        _fill_log_density(plan, cells, log_weights[draw], thetas[draw], work, out[draw])
    keep(made)


@kernel
def rows_log_density(values, missing, log_weight, theta, plan):
    """Return float64 (n_row,): log density of rows in the user's units; values and missing are (n_row, n_column)."""
    n_row, n_column = values.shape
    jacobians = plan.column_log_jacobian
    by_column = np.empty((n_column, n_row))
    hidden = np.empty((n_column, n_row), np.bool_)
    jacobian = np.zeros(n_row)
    for i in range(n_row):
        for j in range(n_column):
            by_column[j, i] = values[i, j]
            hidden[j, i] = missing[i, j]
            if not missing[i, j]:
                jacobian[i] += jacobians[j]
    cells = row_cells(plan, by_column, hidden)
    out = np.empty(n_row)
    made = make_work(plan, cells, DENSITY_BLOCK)
    _fill_log_density(borrowed(plan), borrowed(cells), log_weight, theta, borrowed(made), out)
    keep(cells)
    keep(made)
    for i in range(n_row):
        out[i] += jacobian[i]
    return out


@kernel
def _fingerprint(values, missing, log_weight, theta):
    """Return a 64-bit hash, never 0, of rows, of which cells are missing, and of parameters."""
    key = np.uint64(values.shape[1])
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            # the bits of a NaN stand for a missing cell, whatever is written in it
            bits = _HIDDEN if missing[i, j] else np.float64(values[i, j]).view(np.uint64)
            key = mix(key ^ bits)
    for e in range(log_weight.size):
        key = mix(key ^ np.float64(log_weight[e]).view(np.uint64))
    for k in range(theta.size):
        key = mix(key ^ np.float64(theta[k]).view(np.uint64))
    # the lowest bit is set: a memory of zeros matches no key
    return key | np.uint64(1)


@kernel
def remembered_log_density(values, missing, log_weight, theta, plan, memory):
    """Return what `rows_log_density` does, from memory where it was last asked of the same rows and parameters.

    Parameters
    ----------
    memory : float64 (n_row + 1,)
        A fingerprint of 64 bits and the answer to it, written in place; zeros at first, and of one plan. With another
        number of rows nothing is remembered.
    """
    if memory.size != values.shape[0] + 1:
        return rows_log_density(values, missing, log_weight, theta, plan)
    # the key's bits in the place of a float: stored and compared as integers, they never pass through a float
    stored = memory[:1].view(np.uint64)
    key = _fingerprint(values, missing, log_weight, theta)
    if stored[0] != key:
        copy_into(rows_log_density(values, missing, log_weight, theta, plan), memory[1:])
        stored[0] = key
    # a copy: the next call overwrites the memory
    return memory[1:].copy()
