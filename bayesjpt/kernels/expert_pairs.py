"""Trees of gated experts given rows: pairs of a draw and a row, each of which is a mixture with numbers of its own.

A pair's log weights and parameters are those of one circuit over the responses: a sum over the leaves, each of which
is the product of its experts. So every kernel that takes draws of a circuit takes pairs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.families import dispatch
from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    LOGISTIC,
    MULTINOMIAL,
    POISSON,
    bounded,
    count_ways,
    fill_columns,
    fill_path_weights,
    fill_products,
    log_sum_exp,
)
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import expit

_LEAST_SHARE = 1e-15


class Leaves(NamedTuple):
    """Where the circuit over the responses keeps what belongs to each leaf.

    Attributes
    ----------
    kind : int8 (n_response,)
    at : int32 (n_response + 1,)
        As in `Task`.
    offset : float64 (n_response,)
    other : float64 (n_response,)
        Probability of labels that training never showed; -1 where there is no code for them.
    edge : int32 (n_leaf,)
        The edge of the sum to each leaf; none of a single leaf.
    family : int64 (n_response,)
    theta_at, theta_len : int32 (n_leaf, n_response)
    const_at, const_len : int32 (n_response,)
    const : float64 (n_const,)
    """

    kind: np.ndarray
    at: np.ndarray
    offset: np.ndarray
    other: np.ndarray
    edge: np.ndarray
    family: np.ndarray
    theta_at: np.ndarray
    theta_len: np.ndarray
    const_at: np.ndarray
    const_len: np.ndarray
    const: np.ndarray


@kernel
def _fill_theta(kind, eta, dispersion, other, theta):
    """Fill the parameters of one leaf's family from the linear predictors of its expert; of gaussian ones none."""
    if kind == LOGISTIC:
        share = min(max(expit(eta[0]), _LEAST_SHARE), 1.0 - _LEAST_SHARE)
        if theta.size == 1:
            theta[0] = share
        else:
            theta[0], theta[1] = 1.0 - share, share
    elif kind == MULTINOMIAL:
        total = log_sum_exp(eta)
        rest = 1.0 - max(other, 0.0)
        for k in range(eta.size):
            theta[k] = rest * max(math.exp(eta[k] - total), _LEAST_SHARE)
        if other >= 0.0:
            theta[eta.size] = other
    elif kind == POISSON:
        theta[0] = math.exp(bounded(eta[0]))
    elif kind == GAMMA:
        theta[0], theta[1] = dispersion, dispersion * math.exp(-bounded(eta[0]))


@kernel
def fill_params(leaves, x, gate_x, state, log_weight, theta):
    """Fill the log weights and parameters of all pairs.

    Parameters
    ----------
    leaves : Leaves
    x, gate_x : float64 (n_version, n_row, n_covariate)
        Covariates; of several versions (imputations), draw d takes version d modulo their number.
    state : Coefficients
        With a leading axis over draws.
    log_weight : float64 (n_draw, n_row, n_edge), nats
    theta : float64 (n_draw, n_row, n_theta)
    """
    leaves, state, theta = borrowed(leaves), borrowed(state), borrowed(theta)
    x, gate_x = borrowed(x), borrowed(gate_x)
    n_leaf, n_node, n_predictor = leaves.theta_at.shape[0], state.node.shape[1], state.node.shape[2]
    n_way = count_ways(n_node, n_leaf)
    gates, log_odds, weight = np.empty((gate_x.shape[2], n_leaf - 1)), np.empty(n_leaf - 1), np.empty(n_leaf)
    columns, eta = np.empty((x.shape[2], n_leaf * n_predictor)), np.empty(n_leaf * n_predictor)
    predictors = borrowed(eta)
    for d in range(theta.shape[0]):
        version = d % x.shape[0]
        fill_columns(state.gate[d : d + 1], gates)
        fill_columns(state.node[d, n_node - n_leaf :], columns)
        for row in range(theta.shape[1]):
            fill_products(gate_x[version, row], gates, log_odds)
            fill_path_weights(log_odds, n_way, weight)
            for leaf in range(leaves.edge.size):
                log_weight[d, row, leaves.edge[leaf]] = weight[leaf]
            fill_products(x[version, row], columns, eta)
            for c in range(leaves.kind.size):
                first, last, offset = leaves.at[c], leaves.at[c + 1], leaves.offset[c]
                if leaves.kind[c] == GAUSSIAN:  # by itself, for it is half the cost where there are many
                    for leaf in range(n_leaf):
                        at = leaves.theta_at[leaf, c]
                        theta[d, row, at] = state.dispersion[d, leaf, c]
                        theta[d, row, at + 1] = offset + eta[leaf * n_predictor + first]
                    continue
                for leaf in range(n_leaf):
                    at, leaf_eta = leaves.theta_at[leaf, c], predictors[leaf * n_predictor :]
                    for h in range(first, last):
                        leaf_eta[h] += offset
                    leaf_theta = theta[d, row, at : at + leaves.theta_len[leaf, c]]
                    _fill_theta(
                        leaves.kind[c], leaf_eta[first:last], state.dispersion[d, leaf, c], leaves.other[c], leaf_theta
                    )
    keep(eta)


@kernel
def fill_log_mass(leaves, lo, hi, seen, log_weight, theta, out):
    """Fill out, float64 (n_draw, n_row), with the log probability of each row's own intervals, in the families' units.

    Parameters
    ----------
    lo, hi : float64 (n_response, n_row)
    seen : bool (n_response, n_row)
        What is not seen is marginalised.
    log_weight, theta : as `fill_params` leaves them
    """
    leaves = borrowed(leaves)
    n_leaf = leaves.theta_at.shape[0]
    value = np.empty(n_leaf)
    for d in range(out.shape[0]):
        for row in range(out.shape[1]):
            for leaf in range(n_leaf):
                value[leaf] = log_weight[d, row, leaves.edge[leaf]] if leaves.edge.size > 0 else 0.0
                for c in range(leaves.kind.size):
                    if seen[c, row]:
                        at = leaves.theta_at[leaf, c]
                        constants = leaves.const[leaves.const_at[c] : leaves.const_at[c] + leaves.const_len[c]]
                        leaf_theta = theta[d, row, at : at + leaves.theta_len[leaf, c]]
                        value[leaf] += dispatch.log_mass(
                            leaves.family[c], lo[c, row], hi[c, row], leaf_theta, constants
                        )
            out[d, row] = min(log_sum_exp(value), 0.0)
