"""The log-domain twin: the straightforward way to evaluate a circuit, for comparison of speed and values."""

from __future__ import annotations

import math

import numba
import numpy as np

from bayesjpt.circuit.arrays import LEAF, PRODUCT
from bayesjpt.families import dispatch
from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.upward import prepare_coefficients

LEAF_KIND = int(LEAF)
PRODUCT_KIND = int(PRODUCT)


@numba.njit(error_model="numpy")
def upward_log_domain(plan, cells, log_weight, theta, work, value):
    """Return the total log likelihood; value is (n_node, n_block): one ``exp`` per edge and one ``log`` per sum."""
    n_row, n_block = cells.n_row[0], value.shape[1]
    prepare_coefficients(plan, cells, theta, work)
    total = 0.0
    for lo in range(0, n_row, n_block):
        n = min(n_block, n_row - lo)
        for node in range(plan.kind.size):
            first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
            if plan.kind[node] == LEAF_KIND:
                leaf = plan.leaf_of[node]
                z = cells.feature_at[plan.leaf_value[leaf]] + lo
                aux = cells.feature_at[plan.leaf_aux[leaf]] + lo
                dispatch.fill_log_density(
                    plan.leaf_family[leaf],
                    cells.feature[z : z + n],
                    cells.feature[aux : aux + n],
                    work.coefficient[plan.coef_at[leaf] :],
                    value[node, :n],
                )
            elif plan.kind[node] == PRODUCT_KIND:
                for i in range(n):
                    s = 0.0
                    for e in range(first, last):
                        s += value[plan.child[e], i]
                    value[node, i] = s
            else:
                for i in range(n):
                    top = -np.inf
                    for e in range(first, last):
                        top = max(top, log_weight[e] + value[plan.child[e], i])
                    s = 0.0
                    for e in range(first, last):
                        s += math.exp(log_weight[e] + value[plan.child[e], i] - top)
                    value[node, i] = top + math.log(s)
        for i in range(n):
            total += value[plan.kind.size - 1, i]
    return total


def by_row(plan, table):
    """Return Cells without tables, which the twin needs."""
    return row_cells(plan, np.ascontiguousarray(table.values), np.empty((table.n_column, 0), np.bool_))
