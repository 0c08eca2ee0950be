"""Missing cells of rows, drawn jointly from their conditional given the observed ones: each row under its own draw.

      upward      values of all nodes for a block of rows of one draw, missing cells exactly 1
      downward    one path a row, through missing scopes too; a value from every leaf on it whose cell is missing

A row without observed cells is a sample of the distribution itself: all values are 1, and there is no pass upward.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.leaf import leaf_sample
from bayesjpt.kernels.passes import begin_walk, walk, walk_slot
from bayesjpt.kernels.upward import prepare_coefficients, root_log_value, upward
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.recording_grid import grid_point


@kernel
def _on_grid(x, lower, upper, step, per_unit, offset):
    """Return the grid point nearest to x of those between lower and upper, or x where there is none."""
    point = grid_point(x, step, per_unit, offset, 0)
    if point < lower or point > upper:
        point = grid_point(x, step, per_unit, offset, 1 if point < lower else -1)
    # + 0.0 turns -0.0 into 0.0
    return point + 0.0 if lower <= point <= upper else x


@kernel
def _draw_cells(plan, values, i, log_weight, theta, missing, limits, stack, rng, out):
    """Draw the missing cells of the block's row i into out, float64 (n_column,); return whether limits are kept."""
    fine = True
    depth = begin_walk(plan, stack)
    while depth > 0:
        slot, depth = walk(plan, log_weight, values, i, rng, stack, depth)
        column = plan.slot_column[slot]
        if not missing[column]:
            continue
        leaf = walk_slot(plan, log_weight, slot, rng)
        out[column] = leaf_sample(plan, theta, leaf, -np.inf, np.inf, rng)
        step, per_unit, offset = limits[2, column], limits[3, column], limits[4, column]
        fine &= limits[0, column] <= out[column] <= limits[1, column]
        # an atom is its value exactly, on the grid or not
        if step != 0.0 and not plan.leaf_is_atom[leaf]:
            lower, upper = plan.leaf_lower[leaf], plan.leaf_upper[leaf]
            out[column] = _on_grid(out[column], lower, upper, step, per_unit, offset)
    return fine


@kernel
def draw_missing(plan, values, missing, params, draw, n_block, limits, max_tries, rng, log_evidence, inside, out):
    """Fill the missing cells of rows with draws from their joint conditional given the row's observed cells.

    Parameters
    ----------
    plan : Plan
    values : float64 (n_column, n_row)
        In the user's units; missing cells hold any valid filler.
    missing : bool (n_column, n_row)
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    draw : int64 (n_row,), ascending
        Number of the draw whose distribution each row is completed from.
    n_block : int
        Rows that are evaluated together.
    limits : float64 (5, n_column)
        First, the lowest and highest value of each column: rows with a drawn value outside are drawn anew, so that the
        others are exact given that none lies there. Then the grid that drawn values are rounded to, inside the cells of
        their leaves, as in `bayesjpt.numerics.recording_grid`: its step (0 leaves them as they are), the recorded
        numbers per user's unit where that is a whole number (0 elsewhere), and its offset.
    max_tries : int
        The last of so many is kept whatever it is.
    rng : numpy.random.Generator
    log_evidence : float64 (n_row,)
        Filled with the log density of each row's observed cells, in the families' units.
    inside : bool (n_row,)
        Filled with whether the row's drawn values keep to the limits.
    out : float64 (n_row, n_column)
        Missing cells are overwritten, except where the row's observed cells have no density.
    """
    log_weights, thetas = borrowed(params[0]), borrowed(params[1])
    filled = row_cells(plan, values, missing)
    made = make_work(plan, filled, n_block)
    plan, cells, work = borrowed(plan), borrowed(filled), borrowed(made)
    stack = np.empty(plan.kind.size + 1, np.int64)
    pairs = work.m, work.s, work.node_at
    # all nodes share one row of values: m = 0, s = 1
    nothing_given = np.zeros((1, 1)), np.ones((1, 1)), np.zeros(plan.kind.size, np.int32)
    n_row = draw.size
    begin = 0
    while begin < n_row:
        end = begin + 1
        # rows of one draw share its coefficients
        while end < n_row and draw[end] == draw[begin]:
            end += 1
        log_weight, theta = log_weights[draw[begin]], thetas[draw[begin]]
        prepare_coefficients(plan, cells, theta, work)
        for lo in range(begin, end, n_block):
            n = min(n_block, end - lo)
            is_given = not missing[:, lo : lo + n].all()
            if is_given:
                upward(plan, cells, log_weight, work, lo, n)
                root_log_value(plan, work, n, log_evidence[lo : lo + n])
            else:
                log_evidence[lo : lo + n] = 0.0
            for i in range(n):
                inside[lo + i] = True
                # nothing to draw given what cannot be, and nothing where no cell is missing
                if log_evidence[lo + i] == -np.inf or not missing[:, lo + i].any():
                    continue
                row = out[lo + i]
                hidden = missing[:, lo + i]
                values_of, entry = (pairs, i) if is_given else (nothing_given, 0)
                for _ in range(max_tries):
                    inside[lo + i] = _draw_cells(
                        plan, values_of, entry, log_weight, theta, hidden, limits, stack, rng, row
                    )
                    if inside[lo + i]:
                        break
        begin = end
    keep(filled)
    keep(made)
