"""What flows from the root by the weights alone: how often paths come to a node, and what each column is like.

Nothing goes in at the leaves: every value is 1. Collected is the probability of each leaf, with what the leaf says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.events import cut_log_mass
from bayesjpt.kernels.leaf import leaf_cdf
from bayesjpt.kernels.passes import batch_size, down, gather_weights, make_graph, nodes_above
from bayesjpt.kernels.upward import LEAF_KIND
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import logaddexp


def path_probabilities(plan: Plan, inside: np.ndarray, log_weights: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield parts of the draws, and the probability that the path of a row without evidence takes each node.

    Parameters
    ----------
    plan : Plan
    inside : bool (n_node,)
        The nodes to visit (`make_graph`).
    log_weights : float64 (n_draw, n_edge), nats

    Yields
    ------
    slice, float64 (n_node, n_part)
        0 for nodes outside.
    """
    graph = make_graph(plan, inside)
    n = batch_size(4 * plan.kind.size, log_weights.shape[0])
    for lo in range(0, log_weights.shape[0], n):
        part = log_weights[lo : lo + n]
        weight = np.empty((graph.edge.size, part.shape[0]))
        gather_weights(graph, part, weight)
        shape = graph.node.size, part.shape[0]
        flow = np.ones(shape)
        down(graph, weight, np.zeros(shape), np.ones(shape), flow)
        out = np.zeros((plan.kind.size, part.shape[0]))
        out[graph.node] = flow
        yield slice(lo, lo + part.shape[0]), out


def node_probabilities(plan: Plan, log_weights: np.ndarray, nodes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return `path_probabilities` of some nodes, float64 (n_draw, n)."""
    parts = path_probabilities(plan, np.ones(plan.kind.size, bool), log_weights)
    return np.concatenate([path_share[nodes].T for _, path_share in parts])


@kernel
def _fill_shares(plan, path_share, out):
    plan = borrowed(plan)
    out[:] = 0.0
    for node in range(plan.kind.size):
        if plan.kind[node] == LEAF_KIND:
            leaf = plan.leaf_of[node]
            column, family = plan.feature_column[plan.leaf_value[leaf]], plan.leaf_family[leaf]
            for draw in range(out.shape[0]):
                out[draw, column, family] += path_share[node, draw]


def fill_shares(plan: Plan, log_weights: np.ndarray, out: np.ndarray) -> None:
    """Fill out, float64 (n_draw, n_column, n_family), with each family's share of each column (ABDA equation 3)."""
    for part, path_share in path_probabilities(plan, np.ones(plan.kind.size, bool), log_weights):
        _fill_shares(plan, path_share, out[part])


@kernel
def _fill_cdf(plan, path_share, thetas, point_column, points, out):
    plan = borrowed(plan)
    out[:] = 0.0
    for node in range(plan.kind.size):
        if plan.kind[node] != LEAF_KIND:
            continue
        leaf = plan.leaf_of[node]
        column = plan.feature_column[plan.leaf_value[leaf]]
        for p in range(points.size):
            if point_column[p] == column:
                for draw in range(out.shape[0]):
                    out[draw, p] += path_share[node, draw] * leaf_cdf(plan, thetas[draw], leaf, points[p])


def fill_marginal_cdf(
    plan: Plan,
    log_weights: np.ndarray,
    thetas: np.ndarray,
    point_column: np.ndarray,
    points: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out, float64 (n_draw, n_point), with P(X_column <= point) for points in the user's units."""
    for part, path_share in path_probabilities(plan, nodes_above(plan, point_column), log_weights):
        _fill_cdf(plan, path_share, thetas[part], point_column, points, out[part])


@kernel
def _add_intervals(family, cell, units, parameters, constants, log_share, ends, out):
    """Add a leaf's share of the probability of some intervals, in logarithms."""
    for i in range(out.size):
        log_mass = cut_log_mass(family, (ends[0, i], ends[1, i]), cell, units, parameters, constants)
        out[i] = logaddexp(out[i], log_share + log_mass)


@kernel
def _fill_log_mass(plan, path_share, thetas, ptr, ends, out):
    plan, thetas = borrowed(plan), borrowed(thetas)
    out[:] = -np.inf
    for node in range(plan.kind.size):
        if plan.kind[node] != LEAF_KIND:
            continue
        leaf = plan.leaf_of[node]
        feature = plan.leaf_value[leaf]
        column = plan.feature_column[feature]
        first, last = ptr[column], ptr[column + 1]
        units = plan.feature_offset[feature], plan.feature_scale[feature], plan.leaf_resolution[leaf]
        for draw in range(out.shape[0] if first < last else 0):
            # the logarithm below would be -inf, and adds nothing
            if path_share[node, draw] == 0.0:
                continue
            _add_intervals(
                plan.leaf_family[leaf], (plan.leaf_lower[leaf], plan.leaf_upper[leaf]), (*units, plan.leaf_step[leaf]),
                thetas[draw, plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]],
                plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]],
                math.log(path_share[node, draw]), ends[:, first:last], out[draw, first:last],
            )  # fmt: skip


def fill_marginal_log_mass(
    plan: Plan, log_weights: np.ndarray, thetas: np.ndarray, ptr: np.ndarray, ends: np.ndarray, out: np.ndarray
) -> None:
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
    inside = nodes_above(plan, np.flatnonzero(np.diff(ptr)))
    for part, path_share in path_probabilities(plan, inside, log_weights):
        _fill_log_mass(plan, path_share, thetas[part], ptr, ends, out[part])
