"""Missing cells of a block's rows, drawn jointly given the row's observed cells, as one vector: row by row."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.draws import draw_missing
from bayesjpt.numerics.jit import kernel


@kernel
def complete_rows(plan, values, missing, log_weight, theta, limits, n_block, max_tries, rng, inside, out):
    """Fill the missing cells of rows with draws from their conditional given the row's observed cells.

    Parameters
    ----------
    plan : Plan
    values, missing : float64 and bool (n_row, n_column)
        Missing cells hold any valid value.
    log_weight, theta : float64 (n_edge,), (n_theta,)
    limits : float64 (5, n_column)
        As in `bayesjpt.kernels.draws.draw_missing`.
    n_block, max_tries : int
    rng : numpy.random.Generator
    inside : bool (n_row,)
        Filled with whether the row's drawn cells keep to the limits; not where the observed cells have no density.
    out : float64 (n_row, n_column)
        A copy of the values, whose missing cells are overwritten.
    """
    n_row, n_column = values.shape
    by_column, hidden = np.empty((n_column, n_row)), np.empty((n_column, n_row), np.bool_)
    for i in range(n_row):
        for j in range(n_column):
            by_column[j, i] = values[i, j]
            hidden[j, i] = missing[i, j]
    log_weights, thetas = np.empty((1, log_weight.size)), np.empty((1, theta.size))
    log_weights[0], thetas[0] = log_weight, theta
    log_evidence = np.empty(n_row)
    draw = np.zeros(n_row, np.int64)
    draw_missing(
        plan,
        by_column,
        hidden,
        (log_weights, thetas),
        draw,
        n_block,
        limits,
        max_tries,
        rng,
        log_evidence,
        inside,
        out,
    )
    for i in range(n_row):
        inside[i] &= log_evidence[i] > -np.inf


@kernel
def draw_gaps(plan, values, missing, log_weight, theta, limits, n_block, max_tries, rng):
    """Return the missing cells of all rows, float64 (n_missing,), drawn as in `complete_rows`.

    A cell of a row that is impossible, or finds nothing within the limits, has the value that it had.
    """
    n_row, n_column = values.shape
    out, inside = values.copy(), np.empty(n_row, np.bool_)
    complete_rows(plan, values, missing, log_weight, theta, limits, n_block, max_tries, rng, inside, out)
    n_missing = 0
    for i in range(n_row):
        for j in range(n_column):
            if missing[i, j]:
                n_missing += 1
    cells = np.empty(n_missing)
    k = 0
    for i in range(n_row):
        for j in range(n_column):
            if missing[i, j]:
                cells[k] = out[i, j] if inside[i] else values[i, j]
                k += 1
    return cells


@kernel
def completed(values, missing, cells):
    """Return a copy of values, (n_row, n_column), with the missing cells, row by row, replaced by `cells`.

    There is one of `cells`, float64 (n_missing,), for each: the caller has checked that.
    """
    out = np.empty(values.shape)
    k = 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            if missing[i, j]:
                out[i, j] = cells[k]
                k += 1
            else:
                out[i, j] = values[i, j]
    return out
