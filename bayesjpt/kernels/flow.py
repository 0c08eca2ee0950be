"""What flows from the root by the weights alone: the share of rows that each node describes."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.leaf import leaf_cdf
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.jit import kernel


@kernel
def fill_reach(plan, log_weight, reach):
    """Fill reach, float64 (n_node,), with the probability that a row without evidence takes a path through a node."""
    reach[:] = 0.0
    reach[plan.kind.size - 1] = 1.0
    for node in range(plan.kind.size - 1, -1, -1):
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            share = 1.0 if plan.kind[node] == PRODUCT_KIND else math.exp(log_weight[e])
            reach[plan.child[e]] += reach[node] * share


@kernel
def fill_shares(plan, log_weights, out):
    """Fill out, float64 (n_draw, n_column, n_family), with each family's share of each column (ABDA equation 3)."""
    reach = np.empty(plan.kind.size)
    out[:] = 0.0
    for draw in range(out.shape[0]):
        fill_reach(plan, log_weights[draw], reach)
        for node in range(plan.kind.size):
            if plan.kind[node] == LEAF_KIND:
                leaf = plan.leaf_of[node]
                column = plan.feature_column[plan.leaf_value[leaf]]
                out[draw, column, plan.leaf_family[leaf]] += reach[node]


@kernel
def fill_marginal_cdf(plan, log_weights, thetas, point_column, points, out):
    """Fill out, float64 (n_draw, n_point), with P(X_column <= point) for points in the user's units."""
    reach = np.empty(plan.kind.size)
    out[:] = 0.0
    for draw in range(out.shape[0]):
        fill_reach(plan, log_weights[draw], reach)
        for node in range(plan.kind.size):
            if plan.kind[node] != LEAF_KIND:
                continue
            leaf = plan.leaf_of[node]
            column = plan.feature_column[plan.leaf_value[leaf]]
            for p in range(points.size):
                if point_column[p] == column:
                    out[draw, p] += reach[node] * leaf_cdf(plan, thetas[draw], leaf, points[p])
