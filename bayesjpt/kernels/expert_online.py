"""Trees of gated experts row by row: recursive least squares with forgetting at every gate and expert.

A regression whose row t has weight h_t, and counts for lambda^(T - t) at time T, keeps its coefficients and the inverse
R of its normal equations. With R^-1 <- lambda R^-1 + h x x', by the Sherman-Morrison formula,

      R <- (R - R x x' R / (lambda / h + x' R x)) / lambda,        coefficients <- coefficients + h (y - eta) R x.

The slides leave out the division of the first R by lambda, without which nothing is forgotten. Gates regress posterior
log odds; what the slides do for every branch, of a softmax of two, is here done for the difference of both. Labels,
counts and times take a step of reweighted least squares: h is then h times the curvature.

References: Jordan and Jacobs (1994), Hierarchical Mixtures of Experts and the EM Algorithm, equations 28 to 34;
Ljung and Soderstrom (1986), Theory and Practice of Recursive Identification.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_glm import LEAST_WEIGHT, believed_log_odds, slopes
from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    MULTINOMIAL,
    bounded,
    dot,
    fill_log_odds,
    fill_path_weights,
    leaf_log_likelihood,
    log_sum_exp,
)
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel

_LEAST_CURVATURE = 1e-6
_LARGEST_MOVE = 5.0
"""Of a linear predictor by one row."""


class Memory(NamedTuple):
    """What a tree keeps of the rows that it has seen, beside coefficients.

    Attributes
    ----------
    node : float64 (n_leaf, n_predictor, n_covariate, n_covariate)
        Inverses of the normal equations of experts.
    gate : float64 (n_gate, n_gate_covariate, n_gate_covariate)
    weight : float64 (n_leaf,)
        Rows of each leaf, those forgotten left out.
    """

    node: np.ndarray
    gate: np.ndarray
    weight: np.ndarray


@kernel
def forget_and_add(inverse, x, weight, forgetting, most, gain):
    """Replace R by that with one more row, and fill `gain` with the new R x.

    Parameters
    ----------
    inverse : float64 (n, n)
        R; its largest diagonal entry is kept at `most` at most, so that directions that no row shows do not grow.
    x : float64 (n,)
    weight : float
    forgetting : float
        Lambda, above 0 and at most 1.
    most : float
    gain : float64 (n,)
    """
    n = x.size
    spread = 0.0
    for i in range(n):
        gain[i] = dot(inverse[i], x)
        spread += x[i] * gain[i]
    if weight > LEAST_WEIGHT:
        divisor = 1.0 / (forgetting / weight + spread)
        for i in range(n):
            for j in range(i + 1):
                # from one side, so that rounding leaves R symmetric
                inverse[i, j] -= gain[i] * gain[j] * divisor
                inverse[j, i] = inverse[i, j]
    largest = 0.0
    for i in range(n):
        largest = max(largest, inverse[i, i])
    scale = min(1.0 / forgetting, most / max(largest, 1e-300))
    # with all rows kept, rounding alone brings an entry above `most`
    if forgetting < 1.0:
        for i in range(n):
            for j in range(n):
                inverse[i, j] *= scale
    for i in range(n):
        gain[i] = dot(inverse[i], x)


@kernel
def _move(coefficient, gain, size):
    for k in range(gain.size):
        coefficient[k] += size * gain[k]


@kernel
def _bounded_move(size, spread):
    """Return a step that moves the row's own predictor by `_LARGEST_MOVE` at most, where no square is minimised."""
    moved = abs(size * spread)
    return size * _LARGEST_MOVE / moved if moved > _LARGEST_MOVE else size


@kernel
def fill_row_posterior(task, state, row, share):
    """Fill share, float64 (n_node,), with one row's posterior of each node."""
    n_leaf = state.dispersion.shape[0]
    n_gate = n_leaf - 1
    log_odds, log_weight, eta = np.empty(n_gate), np.empty(n_leaf), np.empty(state.node.shape[1])
    fill_log_odds(task.gate_x[row], state.gate, log_odds)
    fill_path_weights(log_odds, 2, log_weight)
    for leaf in range(n_leaf):
        log_weight[leaf] += leaf_log_likelihood(task, row, state.node[n_gate + leaf], state.dispersion[leaf], eta)
    total = log_sum_exp(log_weight)
    for leaf in range(n_leaf):
        share[n_gate + leaf] = math.exp(log_weight[leaf] - total)
    # children have larger numbers: their shares are there
    for node in range(n_gate - 1, -1, -1):
        share[node] = share[2 * node + 1] + share[2 * node + 2]


@kernel
def _learn_gates(task, state, memory, row, share, forgetting, most):
    gain, x = np.empty(task.gate_x.shape[1]), task.gate_x[row]
    for gate in range(state.gate.shape[0]):
        # before the step: the residual is that of the coefficients that did not know the row
        before = dot(x, state.gate[gate])
        forget_and_add(memory.gate[gate], x, share[gate], forgetting, most[most.size - 1], gain)
        odds = believed_log_odds(share[2 * gate + 1], share[2 * gate + 2])
        _move(state.gate[gate], gain, share[gate] * (odds - before))


@kernel
def _learn_dispersion(kind, state, at_leaf, c, eta, y, moved, weight, total):
    """Move the variance of a gaussian expert, or the shape of a gamma one, to what the row's residual says."""
    if kind == GAUSSIAN:
        # residuals before and after: their product adds up to the sum of squares of all rows refitted
        square = (y - eta) * (y - moved)
        state.dispersion[at_leaf, c] += weight * (square - state.dispersion[at_leaf, c]) / total
    elif kind == GAMMA:
        ratio = y * math.exp(-bounded(eta)) - 1.0
        spread = 1.0 / state.dispersion[at_leaf, c]
        spread += weight * (min(ratio * ratio, 1e6) - spread) / total
        state.dispersion[at_leaf, c] = 1.0 / spread


@kernel
def _learn_leaf(task, state, memory, row, at_leaf, weight, forgetting, most, floor):
    node, x = state.gate.shape[0] + at_leaf, task.x[row]
    n = x.size
    gain = np.empty(n)
    memory.weight[at_leaf] = forgetting * memory.weight[at_leaf] + weight
    eta = np.empty(state.node.shape[1])
    for c in range(task.kind.size):
        kind, first, last = task.kind[c], task.at[c], task.at[c + 1]
        for h in range(first, last):
            eta[h] = task.offset[c] + dot(x, state.node[node, h])
        top = log_sum_exp(eta[first:last]) if kind == MULTINOMIAL else 0.0
        for h in range(first, last):
            slope, curvature = 0.0, 1.0
            if kind == GAUSSIAN:
                # the variance divides slope and curvature alike
                slope = task.y[c, row] - eta[h]
            elif kind == MULTINOMIAL:
                p = math.exp(eta[h] - top)
                slope = (1.0 if int(task.y[c, row]) == h - first else 0.0) - p
                curvature = p * (1.0 - p)
            else:
                _, slope, curvature = slopes(kind, task.y[c, row], eta[h], state.dispersion[at_leaf, c])
            curvature = max(curvature, _LEAST_CURVATURE)
            forget_and_add(memory.node[at_leaf, h], x, weight * curvature, forgetting, most[h], gain)
            size = weight * slope
            if kind != GAUSSIAN:
                size = _bounded_move(size, dot(x, gain))
            _move(state.node[node, h], gain, size)
        if kind in (GAUSSIAN, GAMMA) and weight > 0.0:
            moved = task.offset[c] + dot(x, state.node[node, first])
            _learn_dispersion(
                kind, state, at_leaf, c, eta[first], task.y[c, row], moved, weight, memory.weight[at_leaf]
            )
            state.dispersion[at_leaf, c] = max(state.dispersion[at_leaf, c], floor[c] if kind == GAUSSIAN else 1e-6)


@kernel
def learn_row(task, state, memory, row, share, forgetting, most, floor):
    """Move a tree by one row, given the row's posterior of each node.

    Parameters
    ----------
    task : Task
    state : Coefficients
        Changed in place.
    memory : Memory
        Changed in place.
    row : int
    share : float64 (n_node,)
    forgetting : float
    most : float64 (n_predictor + 1,)
        As of `forget_and_add`, of each predictor of the experts and, at the end, of gates.
    floor : float64 (n_response,)
        Least variance of a gaussian expert.
    """
    for at_leaf in range(state.dispersion.shape[0]):
        weight = share[state.gate.shape[0] + at_leaf]
        _learn_leaf(task, state, memory, row, at_leaf, weight, forgetting, most, floor)
    _learn_gates(task, state, memory, row, share, forgetting, most)


@kernel
def learn_rows(task, state, memory, forgetting, most, floor):
    """Move a tree by all rows of a task, one after the other; parameters as of `learn_row`.

    Notes
    -----
    Cost: rows times (predictors of all leaves + gates) times covariates squared.
    """
    task, state, memory = borrowed(task), borrowed(state), borrowed(memory)
    share = np.empty(2 * state.gate.shape[0] + 1)
    for row in range(task.x.shape[0]):
        fill_row_posterior(task, state, row, share)
        learn_row(task, state, memory, row, share, forgetting, most, floor)
