"""Means and variances of responses for pairs of a draw and a row, straight from coefficients: no parameters are made.

The expectation of a mixture needs weights and means of its leaves alone, so that a pair of 16 leaves and four responses
costs less than writing its parameters down.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    POISSON,
    bounded,
    count_ways,
    fill_columns,
    fill_path_weights,
    fill_products,
)
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel


@kernel
def _fill_weights(log_odds, n_way, out):
    """Fill out, float64 (n_leaf,), with the probabilities of the leaves; of two ways without a logarithm."""
    n_leaf = out.size
    if n_way > 2:
        fill_path_weights(log_odds, n_way, out)
        for k in range(n_leaf):
            out[k] = math.exp(out[k])
        return
    out[0] = 1.0
    width, node = n_leaf, 0
    while width > 1:
        for first in range(0, n_leaf, width):
            small = math.exp(-abs(log_odds[node]))
            large = 1.0 / (1.0 + small)
            small *= large
            right = log_odds[node] > 0.0
            # the right child first: the next line overwrites what both begin with
            out[first + width // 2] = out[first] * (large if right else small)
            out[first] *= small if right else large
            node += 1
        width //= 2


@kernel
def fill_weights(n_node, gate_x, state, out):
    """Fill the probabilities of leaves of all pairs.

    Parameters
    ----------
    n_node : int
        Of the tree.
    gate_x : float64 (n_version, n_row, n_covariate)
        Of several versions (imputations), draw d takes version d modulo their number.
    state : Coefficients
        With a leading axis over draws.
    out : float64 (n_draw, n_row, n_leaf)
    """
    state = borrowed(state)
    n_way, n_gate_row = count_ways(n_node, out.shape[2]), state.gate.shape[1]
    log_odds, columns = np.empty(n_gate_row), np.empty((gate_x.shape[2], n_gate_row))
    for d in range(out.shape[0]):
        fill_columns(state.gate[d : d + 1], columns)
        for row in range(out.shape[1]):
            fill_products(gate_x[d % gate_x.shape[0], row], columns, log_odds)
            _fill_weights(log_odds, n_way, out[d, row])


@kernel
def fill_moments(leaves, x, state, weight, out):
    """Fill out, float64 (3, n_draw, n_response, n_row), with means, variances within experts, and between their means.

    Parameters
    ----------
    leaves : Leaves
        Of responses that are numbers alone something is filled; in the families' units.
    x : float64 (n_version, n_row, n_covariate)
    state : Coefficients
        With a leading axis over draws.
    weight : float64 (n_draw, n_row, n_leaf)
        As `fill_weights` leaves them, or other probabilities of leaves.
    out : float64 (3, n_draw, n_response, n_row)

    Notes
    -----
    With weights g, means m and variances v of the leaves: within = sum g v, between = sum g (m - sum g m)^2.
    """
    leaves, state = borrowed(leaves), borrowed(state)
    n_leaf, n_predictor = weight.shape[2], state.node.shape[2]
    first = state.node.shape[1] - n_leaf
    columns, eta = np.empty((x.shape[2], n_leaf * n_predictor)), np.empty(n_leaf * n_predictor)
    mean, dispersion = np.empty(n_leaf), np.empty(n_leaf)
    for d in range(weight.shape[0]):
        fill_columns(state.node[d, first:], columns)
        for row in range(weight.shape[1]):
            fill_products(x[d % x.shape[0], row], columns, eta)
            for c in range(leaves.kind.size):
                kind, at = leaves.kind[c], leaves.at[c]
                if kind != GAUSSIAN and kind != POISSON and kind != GAMMA:
                    continue
                centre, within, between = 0.0, 0.0, 0.0
                for leaf in range(n_leaf):
                    value, leaf_dispersion = (
                        leaves.offset[c] + eta[leaf * n_predictor + at],
                        state.dispersion[d, leaf, c],
                    )
                    if kind == GAUSSIAN:
                        mean[leaf], dispersion[leaf] = value, leaf_dispersion
                    else:
                        mean[leaf] = math.exp(bounded(value))
                        dispersion[leaf] = mean[leaf] if kind == POISSON else mean[leaf] * mean[leaf] / leaf_dispersion
                    centre += weight[d, row, leaf] * mean[leaf]
                    within += weight[d, row, leaf] * dispersion[leaf]
                for leaf in range(n_leaf):
                    between += weight[d, row, leaf] * (mean[leaf] - centre) * (mean[leaf] - centre)
                out[0, d, c, row], out[1, d, c, row], out[2, d, c, row] = centre, within, between
