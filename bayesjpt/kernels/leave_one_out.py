"""Each cell of a row given the rest of the row: one pass up and one down for a block of rows.

With v(n) the value of node n and d(n) the derivative of the root with respect to it, a column's slots satisfy

      root = sum of d(slot) v(slot)        the row
      rest = sum of d(slot)                the row without that column

so that two passes answer for all columns at once. The derivative of a product's child is that of the product times
the values of the other children; an impossible child is left out of that product, so nothing is divided by zero. On
the way down all is in logarithms: every step there is an addition, and only the sums over slots take exponentials.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels import rows
from bayesjpt.kernels.upward import PRODUCT_KIND, fill_mass_tables, fill_tables, prepare_coefficients, upward
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_exp
from bayesjpt.numerics.special import log_gamma_q, logaddexp


@kernel
def _fill_values(plan, cells, work, lo, n, value):
    """Fill the log values of all nodes outside dictionaries from what `upward` left behind for rows ``lo:lo + n``."""
    for node in range(plan.kind.size):
        at = plan.node_row[node]
        if at < 0:
            continue
        slot = plan.slot_of_node[node]
        if slot >= 0 and cells.table_at[slot] >= 0:
            column = plan.slot_column[slot]
            table = work.table[cells.table_at[slot] : cells.table_at[slot] + cells.n_distinct[column] + 1]
            rows.gather(table, cells.code[cells.code_row[column], lo : lo + n], value[at, :n])
        else:
            rows.log_value(work.m[at, :n], work.s[at, :n], value[at, :n])


@kernel
def _add_possible(x, total, n_impossible):
    for i in range(x.size):
        possible = x[i] > -np.inf
        total[i] += x[i] if possible else 0.0
        n_impossible[i] += not possible


@kernel
def _times_others(derivative, x, total, n_impossible, out):
    """Fill out with the derivative of a product times its other children, x left out."""
    for i in range(out.size):
        possible = x[i] > -np.inf
        # all others are possible where x is the only impossible child, or none is
        others = total[i] - x[i] if possible else total[i]
        out[i] = derivative[i] + others if n_impossible[i] == (not possible) else -np.inf


@kernel
def _hand_down(x, shift, is_first, out):
    """Set out to x + shift, or add that to what another parent handed down."""
    if is_first:
        rows.shifted(x, shift, out)
    else:
        # several parents: the derivative of the root is the sum over them
        for i in range(out.size):
            out[i] = logaddexp(out[i], x[i] + shift)


@kernel
def _fill_derivatives(plan, log_weight, value, n, derivative, buffer, n_impossible):
    """Fill the log derivative of the root with respect to every node outside dictionaries.

    `buffer` is float64 (2, n_block), `n_impossible` int64 (n_block,).
    """
    root = plan.kind.size - 1
    reached = np.zeros(plan.kind.size, np.bool_)
    derivative[plan.node_row[root], :n] = 0.0
    total, others = buffer[0, :n], buffer[1, :n]
    # parents before children: what all of them hand down is complete when a node's turn comes
    for node in range(root, -1, -1):
        # members of dictionaries have no row of values, and slots hand nothing on
        if plan.node_row[node] < 0 or plan.slot_of_node[node] >= 0:
            continue
        node_derivative = derivative[plan.node_row[node], :n]
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        is_product = plan.kind[node] == PRODUCT_KIND
        if is_product:
            total[:] = 0.0
            n_impossible[:n] = 0
            for e in range(first, last):
                _add_possible(value[plan.node_row[plan.child[e]], :n], total, n_impossible)
        for e in range(first, last):
            child = plan.child[e]
            out = derivative[plan.node_row[child], :n]
            if is_product:
                _times_others(node_derivative, value[plan.node_row[child], :n], total, n_impossible, others)
                _hand_down(others, 0.0, not reached[child], out)
            else:
                _hand_down(node_derivative, log_weight[e], not reached[child], out)
            reached[child] = True


@kernel
def _add_exp(x, top, out):
    for i in range(out.size):
        out[i] += fast_exp(x[i] - top[i])


@kernel
def _fill_rest(plan, column, derivative, n, top, out):
    """Fill out with the log mass of the rows without one of their cells."""
    top[:n] = -np.inf
    for slot in range(plan.slot_node.size):
        if plan.slot_column[slot] == column:
            rows.max_shifted(derivative[plan.node_row[plan.slot_node[slot]], :n], 0.0, top[:n])
    out[:] = 0.0
    for i in range(n):
        top[i] = max(top[i], -1e300)  # impossible without the cell too: no difference of two infinities
    for slot in range(plan.slot_node.size):
        if plan.slot_column[slot] == column:
            _add_exp(derivative[plan.node_row[plan.slot_node[slot]], :n], top[:n], out)
    rows.log_value(top[:n], out, out)


@kernel
def fill_cell_log_mass(plan, cells, params, draw_weights, n_block, log_row, log_rest):
    """Fill the log mass of each row, and of each row without each of its cells, averaged over draws.

    Parameters
    ----------
    plan, cells : Plan, Cells
        Every column is coded.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    draw_weights : float64 (n_draw, n_row) or (n_draw, 1)
        Logarithms of the draws' weights.
    n_block : int
        Rows that are evaluated together.
    log_row : float64 (n_row,)
    log_rest : float64 (n_column, n_row)
        Equal to the row's where the cell is missing.
    """
    log_weights, thetas = params
    made = make_work(plan, cells, n_block)
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(made)
    value, derivative = np.empty(work.m.shape), np.empty(work.m.shape)
    buffer, n_impossible = np.empty((2, n_block)), np.empty(n_block, np.int64)
    row, rest = np.empty(n_block), np.empty(n_block)
    root = plan.node_row[plan.kind.size - 1]
    some_missing = cells.missing.shape[1] > 0
    log_row[:] = -np.inf
    log_rest[:] = -np.inf
    for draw in range(log_weights.shape[0]):
        prepare_coefficients(plan, cells, thetas[draw], work)
        fill_mass_tables(plan, cells, log_weights[draw], thetas[draw], work)
        for lo in range(0, log_row.size, n_block):
            n = min(n_block, log_row.size - lo)
            upward(plan, cells, log_weights[draw], work, lo, n)
            _fill_values(plan, cells, work, lo, n, value)
            _fill_derivatives(plan, log_weights[draw], value, n, derivative, buffer, n_impossible)
            for i in range(n):
                # a log mass: what is above 0 is rounding
                row[i] = min(value[root, i], 0.0)
                weight = draw_weights[draw, min(lo + i, draw_weights.shape[1] - 1)]
                log_row[lo + i] = logaddexp(log_row[lo + i], row[i] + weight)
            for column in range(log_rest.shape[0]):
                _fill_rest(plan, column, derivative, n, buffer[0], rest[:n])
                for i in range(n):
                    missing = some_missing and cells.missing[column, lo + i]
                    # a row is never more probable than the row without one of its cells
                    without = row[i] if missing else min(max(rest[i], row[i]), 0.0)
                    weight = draw_weights[draw, min(lo + i, draw_weights.shape[1] - 1)]
                    log_rest[column, lo + i] = logaddexp(log_rest[column, lo + i], without + weight)
    keep(made)


@kernel
def fill_likeliest_slots(plan, cells, params, n_block, out):
    """Fill out with the slot of each column that each row most probably takes, given its other cells, by densities.

    Parameters
    ----------
    plan, cells : Plan, Cells
        Rows are not routed: a cell that decides a hard sum is one that others are asked about.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    n_block : int
        Rows that are evaluated together.
    out : int32 (n_draw, n_column, n_row)
        The column's last slot where the other cells are impossible.
    """
    log_weights, thetas = params
    made = make_work(plan, cells, n_block)
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(made)
    value, derivative = np.empty(work.m.shape), np.empty(work.m.shape)
    buffer, n_impossible = np.empty((2, n_block)), np.empty(n_block, np.int64)
    best = np.empty((out.shape[1], n_block))
    for draw in range(out.shape[0]):
        prepare_coefficients(plan, cells, thetas[draw], work)
        fill_tables(plan, cells, log_weights[draw], work)
        for lo in range(0, out.shape[2], n_block):
            n = min(n_block, out.shape[2] - lo)
            upward(plan, cells, log_weights[draw], work, lo, n)
            _fill_values(plan, cells, work, lo, n, value)
            _fill_derivatives(plan, log_weights[draw], value, n, derivative, buffer, n_impossible)
            best[:] = -np.inf
            for slot in range(plan.slot_node.size):
                column = plan.slot_column[slot]
                slot_derivative = derivative[plan.node_row[plan.slot_node[slot]]]
                for i in range(n):
                    if slot_derivative[i] > best[column, i] or best[column, i] == -np.inf:
                        best[column, i] = slot_derivative[i]
                        out[draw, column, lo + i] = slot
    keep(made)


@kernel
def fill_log_gamma_tail(mean, variance, x, out):
    """Fill out with the log probability that a Gamma variable of each mean and variance exceeds x, (n,) each."""
    for i in range(out.size):
        if x[i] == np.inf:
            out[i] = -np.inf
        else:
            # a Gamma of this mean and variance has shape mean^2 / variance and rate mean / variance
            out[i] = log_gamma_q(mean[i] * mean[i] / variance[i], x[i] * mean[i] / variance[i])
