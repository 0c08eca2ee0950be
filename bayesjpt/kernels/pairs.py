"""Mutual information of pairs of columns whose values are sorted into cells, under many draws.

Given the slots that a row takes its cells are independent. So the table of two columns is

      P(a, b) = sum over slots i of the first column and j of the second:  F[i, a] J[i, j] F[j, b]

with F the probability of each cell in each slot, and J the probability that a row takes both slots over those that it
takes each. Cells come in quarters, halves and whole (`bayesjpt.kernels.grids`). What is lost by cutting falls to a
quarter with every halving, so three tables give the limit, and how far two estimates of it are apart:

      I(halves) + (I(halves) - I(whole)) / 3        I(quarters) + (I(quarters) - I(halves)) / 3
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.grids import fill_grid, fill_quarters, make_grid
from bayesjpt.kernels.slots import fill_joint, joint_buffers
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_log


@kernel
def _add_scaled(factor, row, out):
    for k in range(out.size):
        out[k] += factor * row[k]


@kernel
def _fill_table(slots, joint, mass, t, u, given, table):
    """Fill the table of the cells of two columns; `given` is a buffer of a row for each slot of the first."""
    first, last = slots.ptr[t], slots.ptr[t + 1]
    n_first, n_second = table.shape
    for i in range(first, last):
        conditional = given[i - first, :n_second]
        conditional[:] = 0.0
        for j in range(slots.ptr[u], slots.ptr[u + 1]):
            # mass is path probability times F: the joint probability is divided by both path probabilities
            apart = joint[i, i] * joint[j, j]
            if apart > 0.0:
                _add_scaled(joint[min(i, j), max(i, j)] / apart, mass[j, :n_second], conditional)
    for a in range(n_first):  # a row of the table stays in the nearest cache
        row = table[a]
        row[:] = 0.0
        for i in range(first, last):
            if mass[i, a] > 0.0:
                _add_scaled(mass[i, a], given[i - first, :n_second], row)


@kernel
def _add_terms(row, out):
    for k in range(out.size):
        out[k] += row[k] * fast_log(row[k])


@kernel
def _add(row, out):
    for k in range(out.size):
        out[k] += row[k]


@kernel
def _information(table, second, terms):
    """Return the mutual information of a table of two columns, float64 (n_first, n_second), in nats.

    `second` and `terms` are buffers of size n_second.
    """
    second[:] = 0.0
    terms[:] = 0.0
    out, total = 0.0, 0.0
    for a in range(table.shape[0]):
        _add_terms(table[a], terms)
        _add(table[a], second)
        first = table[a].sum()
        out -= first * fast_log(first)
        total += first
    for b in range(second.size):
        out += terms[b] - second[b] * fast_log(second[b])
    # all over the total T: (sum of t log t - f log f - s log s) / T + log T
    return max(out / total + math.log(total), 0.0)


@kernel
def _merge(table, shape, first, second):
    """Add up the rows and columns of a table, at the beginning of a flat array, that have the same parent.

    `first` and `second` are the parents of rows and columns, ascending without gaps; returns the shape that is left.
    """
    n_row, n_column = shape
    n_second = second[n_column - 1] + 1
    # in place: a merged entry lies at or before the first of those that it adds up
    for a in range(n_row):
        at = first[a] * n_second
        if a == 0 or first[a] != first[a - 1]:
            for b in range(n_column):
                value, k = table[a * n_column + b], at + second[b]
                table[k] = table[k] + value if b > 0 and second[b] == second[b - 1] else value
        else:
            for b in range(n_column):
                table[at + second[b]] += table[a * n_column + b]
    return first[n_row - 1] + 1, n_second


@kernel
def _pair(slots, joint, mass, parents, n, t, u, buffers):
    """Return the mutual information of two columns, and how far two estimates of it are apart."""
    given, second, terms, table = buffers
    shape = n[t], n[u]
    _fill_table(slots, joint, mass, t, u, given, table[: n[t] * n[u]].reshape(shape))
    fine = _information(table[: shape[0] * shape[1]].reshape(shape), second[: shape[1]], terms[: shape[1]])
    shape = _merge(table, shape, parents[t, 0], parents[u, 0])
    halved = _information(table[: shape[0] * shape[1]].reshape(shape), second[: shape[1]], terms[: shape[1]])
    shape = _merge(table, shape, parents[t, 1], parents[u, 1])
    whole = _information(table[: shape[0] * shape[1]].reshape(shape), second[: shape[1]], terms[: shape[1]])
    limit = fine + (fine - halved) / 3.0
    return limit, abs(limit - (halved + (halved - whole) / 3.0))


@kernel
def fill_information(plan, slots, start, apart, limits, params, out, doubt):
    """Fill the mutual information of columns under many draws, in nats, and how far two estimates of it are apart.

    Parameters
    ----------
    plan, slots, start : Plan, Slots, Start
    apart : bool (n_target, n_target)
        Columns that are independent whatever the parameters: exactly 0.
    limits : tuple of float and int
        Nats by which halvings of a column's cells may disagree; splits of cells at most.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    out, doubt : float64 (n_draw, n_target, n_target)
        The diagonal is NaN.
    """
    plan, slots, start = borrowed(plan), borrowed(slots), borrowed(start)
    log_weights, thetas = params
    tolerance, n_split = limits
    n_target, n_slot = slots.ptr.size - 1, slots.node.size
    made = make_grid(slots, start, n_split)
    grid = borrowed(made)
    longest = 4 * grid.total.size
    joint = np.empty((n_slot, n_slot))
    on_the_way, weight = joint_buffers(slots), np.empty(slots.entry_leaf.size)
    mass, parents, n = (
        np.empty((n_slot, longest)),
        np.empty((n_target, 2, longest), np.int32),
        np.empty(n_target, np.int64),
    )
    buffers = np.empty((n_slot, longest)), np.empty(longest), np.empty(longest), np.empty(longest * longest)
    for draw in range(out.shape[0]):
        log_weight, theta = log_weights[draw], thetas[draw]
        fill_joint(slots, log_weight, on_the_way, joint)
        for slot in range(n_slot):
            for k in range(slots.entry_ptr[slot], slots.entry_ptr[slot + 1]):
                edge = slots.entry_edge[k]
                weight[k] = joint[slot, slot] * (math.exp(log_weight[edge]) if edge >= 0 else 1.0)
        for t in range(n_target):
            n_cell = fill_grid(plan, slots, theta, t, start, weight, tolerance, grid)
            n[t] = fill_quarters(slots, t, weight, grid, n_cell, mass, parents[t])
        for t in range(n_target):
            out[draw, t, t] = doubt[draw, t, t] = np.nan
            for u in range(t + 1, n_target):
                found = 0.0, 0.0
                if not apart[t, u]:
                    found = _pair(slots, joint, mass, parents, n, t, u, buffers)
                out[draw, t, u] = out[draw, u, t] = found[0]
                doubt[draw, t, u] = doubt[draw, u, t] = found[1]
    keep(made)
