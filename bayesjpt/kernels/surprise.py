"""Each cell of a row given the rest of the row: one pass up and one down, in the log domain, by masses.

With v(n) the value of node n and d(n) the derivative of the root with respect to it, a column's slots satisfy

      root = sum of d(slot) v(slot)        the row
      rest = sum of d(slot)                the row without that column

so that two passes answer for all columns at once. The derivative of a product's child is that of the product times
the values of the other children; an impossible child is left out of that product, so nothing is divided by zero.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.cells import make_work
from bayesjpt.kernels.upward import PRODUCT_KIND, fill_mass_tables, prepare_coefficients
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import logaddexp


@kernel
def fill_values(kind, child_ptr, child, slot_of_node, slot_value, log_weight, value):
    """Fill the log value of every node of one row from those of its slots."""
    for node in range(kind.size):
        slot = slot_of_node[node]
        first, last = child_ptr[node], child_ptr[node + 1]
        if slot >= 0:
            value[node] = slot_value[slot]
        elif kind[node] == PRODUCT_KIND:
            value[node] = 0.0
            for e in range(first, last):
                value[node] += value[child[e]]
        elif last > first:
            top = -np.inf
            for e in range(first, last):
                top = max(top, value[child[e]] + log_weight[e])
            total = 0.0
            if top > -np.inf:
                for e in range(first, last):
                    total += math.exp(value[child[e]] + log_weight[e] - top)
            value[node] = top + math.log(total) if total > 0.0 else -np.inf


@kernel
def _fill_derivatives(kind, child_ptr, child, slot_of_node, log_weight, value, derivative):
    """Fill the log derivative of the root with respect to every node outside dictionaries."""
    root = kind.size - 1
    derivative[:] = -np.inf
    derivative[root] = 0.0
    for node in range(root, -1, -1):
        own = derivative[node]
        if own == -np.inf or slot_of_node[node] >= 0:
            continue
        first, last = child_ptr[node], child_ptr[node + 1]
        if kind[node] != PRODUCT_KIND:
            for e in range(first, last):
                derivative[child[e]] = logaddexp(derivative[child[e]], own + log_weight[e])
            continue
        total = 0.0
        n_impossible = 0
        for e in range(first, last):
            if value[child[e]] == -np.inf:
                n_impossible += 1
            else:
                total += value[child[e]]
        for e in range(first, last):
            here = value[child[e]]
            others = total if here == -np.inf else total - here
            if n_impossible == (1 if here == -np.inf else 0):
                derivative[child[e]] = logaddexp(derivative[child[e]], own + others)


@kernel
def fill_cell_log_mass(plan, cells, params, log_row, log_rest):
    """Fill the log mass of each row, and of each row without each of its cells, under many draws.

    Parameters
    ----------
    plan, cells : Plan, Cells
        Every column is coded.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    log_row : float64 (n_draw, n_row)
    log_rest : float64 (n_draw, n_column, n_row)
        Equal to the row's where the cell is missing.
    """
    log_weights, thetas = params
    work = make_work(plan, cells, 1)
    n_node = plan.kind.size
    value, derivative = np.empty(n_node), np.empty(n_node)
    slot_value = np.empty(plan.slot_node.size)
    kind, child_ptr, child, slot_of_node = plan.kind, plan.child_ptr, plan.child, plan.slot_of_node
    slot_node, slot_column, table_at = plan.slot_node, plan.slot_column, cells.table_at
    code, code_row, n_distinct = cells.code, cells.code_row, cells.n_distinct
    for draw in range(log_row.shape[0]):
        log_weight = log_weights[draw]
        prepare_coefficients(plan, thetas[draw], work)
        fill_mass_tables(plan, cells, log_weight, thetas[draw], work)
        for i in range(log_row.shape[1]):
            for slot in range(slot_value.size):
                slot_value[slot] = work.table[table_at[slot] + code[code_row[slot_column[slot]], i]]
            fill_values(kind, child_ptr, child, slot_of_node, slot_value, log_weight, value)
            _fill_derivatives(kind, child_ptr, child, slot_of_node, log_weight, value, derivative)
            log_row[draw, i] = min(value[n_node - 1], 0.0)
            log_rest[draw, :, i] = -np.inf
            for slot in range(slot_value.size):
                column = slot_column[slot]
                rest = logaddexp(log_rest[draw, column, i], derivative[slot_node[slot]])
                log_rest[draw, column, i] = rest
            for column in range(n_distinct.size):
                missing = code[code_row[column], i] == n_distinct[column]
                rest = log_row[draw, i] if missing else max(log_rest[draw, column, i], log_row[draw, i])
                log_rest[draw, column, i] = min(rest, 0.0)
