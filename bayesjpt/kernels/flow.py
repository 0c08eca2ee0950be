"""What flows from the root by the weights alone: the share of rows that each node describes."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.events import cut_log_mass
from bayesjpt.kernels.leaf import leaf_cdf
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.lent import lent
from bayesjpt.numerics.special import logaddexp


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


@kernel
def _add_intervals(family, cell, units, parameters, constants, log_reach, ends, out):
    """Add a leaf's share of the probability of some intervals, in logarithms."""
    for i in range(out.size):
        log_mass = cut_log_mass(family, ends[0, i], ends[1, i], cell, units[0], units[1], parameters, constants)
        out[i] = logaddexp(out[i], log_reach + log_mass)


@kernel
def fill_marginal_log_mass(plan, log_weights, thetas, ptr, ends, out):
    """Fill out, float64 (n_draw, n_interval), with the log probabilities of intervals, each of one column.

    Parameters
    ----------
    plan : Plan
    log_weights, thetas : float64 (n_draw, n_edge), (n_draw, n_theta)
    ptr : int64 (n_column + 1,)
        Intervals of each column.
    ends : float64 (2, n_interval)
        Closed, in the user's units; codes on columns of labels.
    """
    plan = lent(plan)
    reach = np.empty(plan.kind.size)
    out[:] = -np.inf
    for draw in range(out.shape[0]):
        theta = thetas[draw]
        fill_reach(plan, log_weights[draw], reach)
        for node in range(plan.kind.size):
            if plan.kind[node] != LEAF_KIND or reach[node] == 0.0:
                continue
            leaf = plan.leaf_of[node]
            feature = plan.leaf_value[leaf]
            column = plan.feature_column[feature]
            first, last = ptr[column], ptr[column + 1]
            _add_intervals(
                plan.leaf_family[leaf], (plan.leaf_lower[leaf], plan.leaf_upper[leaf]),
                (plan.feature_offset[feature], plan.feature_scale[feature]),
                theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]],
                plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]],
                math.log(reach[node]), ends[:, first:last], out[draw, first:last],
            )  # fmt: skip
