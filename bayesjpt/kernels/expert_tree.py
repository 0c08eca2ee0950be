"""A tree of gated experts as arrays: log weights of its leaves, linear predictors, log likelihoods of responses.

Nodes are numbered as in a heap. Gates are the first n_gate = 2^depth - 1, leaves the last 2^depth:

                 0                  a gate's log odds x . v is that of its right child
              /     \\
             1       2
            / \\     / \\
           3   4   5   6            leaf l is node n_gate + l

Gates of m ways are softmax: a node's children are m node + 1 to m node + m, and the coefficients of gate g are the rows
from (m - 1) g: log odds of each way but the first against it. So there are as many rows as leaves less one, whatever m
is, and with two ways a row is a gate.

Every node, gates included, has coefficients of experts: a leaf's are those of its expert, a gate's the centre to which
its children's are shrunk.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import log_expit_both

GAUSSIAN = 0
LOGISTIC = 1
MULTINOMIAL = 2
POISSON = 3
GAMMA = 4
LOG_LINKED = (POISSON, GAMMA)
"""Whose means are exponentials of predictors."""

KIND_NAMES = {
    GAUSSIAN: "gaussian",
    LOGISTIC: "logistic",
    MULTINOMIAL: "multinomial",
    POISSON: "poisson",
    GAMMA: "gamma",
}

LARGEST = 50.0
"""Of the logarithm of a mean, so that a covariate far from all training rows gives a number."""
_HALF_LOG_2PI = 0.9189385332046727


class Task(NamedTuple):
    """What is known: training rows and what stands at the leaves.

    Attributes
    ----------
    x : float64 (n_row, n_covariate)
        Covariates of experts, the intercept first.
    gate_x : float64 (n_row, n_gate_covariate)
        Those of gates; the intercept alone makes their weights the same for all rows.
    y : float64 (n_response, n_row)
        In the families' units; codes of labels.
    kind : int8 (n_response,)
    at : int32 (n_response + 1,)
        Which linear predictors belong to a response: one, or one for each label of a multinomial expert.
    offset : float64 (n_response,)
        What is added to a response's predictor, so that coefficients of zero are the mean of all rows.
    """

    x: np.ndarray
    gate_x: np.ndarray
    y: np.ndarray
    kind: np.ndarray
    at: np.ndarray
    offset: np.ndarray


class Coefficients(NamedTuple):
    """One draw, and the state of a chain.

    Attributes
    ----------
    gate : float64 (n_leaf - 1, n_gate_covariate)
        A row a gate of two ways; n_way - 1 rows of a gate of more.
    node : float64 (n_node, n_predictor, n_covariate)
    dispersion : float64 (n_leaf, n_response)
        Variance of a gaussian expert, shape of a gamma one; 1 for others.
    gate_precision : float64 (1,)
    precision : float64 (depth + 1, n_response)
        Of coefficients around their parent's, by level; of the root's around 0.
    noise : float64 (n_response,)
        Rate of the gamma prior of gaussian experts' precisions.
    """

    gate: np.ndarray
    node: np.ndarray
    dispersion: np.ndarray
    gate_precision: np.ndarray
    precision: np.ndarray
    noise: np.ndarray


@kernel
def dot(a, b):
    """Return the inner product of two vectors."""
    total = 0.0
    for k in range(b.size):
        total += a[k] * b[k]
    return total


@kernel
def bounded(eta):
    """Return the logarithm of a mean, kept from overflowing."""
    return min(max(eta, -LARGEST), LARGEST)


class Columns(NamedTuple):
    """What passes over rows take of one draw: coefficients side by side, so that sums over covariates run side by side.

    Attributes
    ----------
    gate : float64 (n_gate_covariate, n_leaf - 1)
    leaf : float64 (n_covariate, n_leaf * n_predictor)
        Predictor by predictor within each leaf.
    log_dispersion : float64 (n_leaf, n_response)
    """

    gate: np.ndarray
    leaf: np.ndarray
    log_dispersion: np.ndarray


@kernel
def as_columns(state):
    """Return the coefficients of gates and leaves as columns."""
    n_leaf, n_predictor = state.dispersion.shape[0], state.node.shape[1]
    gate = np.empty((state.gate.shape[1], state.gate.shape[0]))
    for j in range(gate.shape[0]):
        for g in range(gate.shape[1]):
            gate[j, g] = state.gate[g, j]
    leaf = np.empty((state.node.shape[2], n_leaf * n_predictor))
    for j in range(leaf.shape[0]):
        for k in range(leaf.shape[1]):
            leaf[j, k] = state.node[state.node.shape[0] - n_leaf + k // n_predictor, k % n_predictor, j]
    return Columns(gate, leaf, np.log(state.dispersion))


@kernel
def fill_columns(rows, out):
    """Fill out, float64 (n_covariate, n * m), with coefficients side by side; rows is (n, m, n_covariate)."""
    m = rows.shape[1]
    for j in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[j, k] = rows[k // m, k % m, j]


@kernel
def fill_products(x, columns, out):
    """Fill out, float64 (n,), with the inner products of a row's covariates and each of n columns."""
    for k in range(out.size):
        out[k] = 0.0
    # covariates outside, columns inside: neighbouring entries of one row of `columns`, so that the loop vectorises
    for j in range(x.size):
        for k in range(out.size):
            out[k] += x[j] * columns[j, k]


@kernel
def fill_log_odds(gate_x, gate, out):
    """Fill out, float64 (n_leaf - 1,), with a row's log odds at gates: of each way but the first against it."""
    for g in range(out.size):
        out[g] = dot(gate_x, gate[g])


@kernel
def _fill_logistic_weights(log_odds, out):
    """Level by level: entry k 2^(depth - level) of `out` is node k of that level."""
    n_leaf = out.size
    out[0] = 0.0
    width, node = n_leaf, 0
    while width > 1:
        for first in range(0, n_leaf, width):
            left, right = log_expit_both(-log_odds[node])
            # of the node whose subtree these entries are: its children take its place and the middle of its range
            value = out[first]
            out[first] = value + left
            out[first + width // 2] = value + right
            node += 1
        width //= 2


@kernel
def count_ways(n_node, n_leaf):
    """Return how many children a gate has; 2 of a tree without gates."""
    return (n_node - 1) // (n_node - n_leaf) if n_node > n_leaf else 2


@kernel
def _fill_softmax_weights(log_odds, n_way, out):
    out[0] = 0.0
    width, row = out.size, 0
    while width > 1:
        step = width // n_way
        for first in range(0, out.size, width):
            # the first way has log odds 0, so that the largest is at least that
            value, top = out[first], 0.0
            out[first] = 0.0
            for way in range(1, n_way):
                eta = log_odds[row]
                out[first + way * step] = eta
                top = max(top, eta)
                row += 1
            total = 0.0
            for way in range(n_way):
                total += math.exp(out[first + way * step] - top)
            value -= top + math.log(total)
            for way in range(n_way):
                out[first + way * step] += value
        width = step


@kernel
def fill_path_weights(log_odds, n_way, out):
    """Fill out, float64 (n_leaf,), with the log probabilities of the leaves given one row's log odds at gates."""
    if n_way == 2:
        _fill_logistic_weights(log_odds, out)
    else:
        _fill_softmax_weights(log_odds, n_way, out)


@kernel
def log_sum_exp(values):
    """Return log(sum(exp(values)))."""
    top = -np.inf
    for k in range(values.size):
        top = max(top, values[k])
    if top == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(values.size):
        total += math.exp(values[k] - top)
    return top + math.log(total)


@kernel
def response_log_likelihood(kind, y, eta, dispersion):
    """Return the log density of a response given its linear predictors, offset included.

    eta : float64, one entry, or one for each label.
    """
    if kind == GAUSSIAN:
        deviation = y - eta[0]
        return -_HALF_LOG_2PI - 0.5 * math.log(dispersion) - 0.5 * deviation * deviation / dispersion
    if kind == LOGISTIC:
        left, right = log_expit_both(-eta[0])
        return right if y > 0.5 else left
    if kind == MULTINOMIAL:
        return eta[int(y)] - log_sum_exp(eta)
    log_mean = bounded(eta[0])
    if kind == POISSON:
        return y * log_mean - math.exp(log_mean) - math.lgamma(y + 1.0)
    return (
        dispersion * (math.log(dispersion) - log_mean)
        - math.lgamma(dispersion)
        + (dispersion - 1.0) * math.log(y)
        - dispersion * math.exp(-log_mean) * y
    )


@kernel
def leaf_log_likelihood(task, row, node, dispersion, eta):
    """Return the log likelihood of a row's responses at one leaf.

    `node` holds the leaf's coefficients, (n_predictor, n_covariate), `dispersion` its own, (n_response,); `eta` is a
    buffer, (n_predictor,).
    """
    x = task.x[row]
    total = 0.0
    for c in range(task.kind.size):
        first, last = task.at[c], task.at[c + 1]
        for h in range(first, last):
            eta[h] = task.offset[c] + dot(x, node[h])
        total += response_log_likelihood(task.kind[c], task.y[c, row], eta[first:last], dispersion[c])
    return total


@kernel
def add_log_likelihoods(task, row, dispersion, columns, eta, out):
    """Add the log likelihoods of a row's responses at every leaf to out, float64 (n_leaf,).

    `columns` are those of `as_columns`, `eta` is a buffer, (n_leaf * n_predictor,).
    """
    n_predictor = eta.size // out.size
    fill_products(task.x[row], columns.leaf, eta)
    for c in range(task.kind.size):
        y, first, last = task.y[c, row], task.at[c], task.at[c + 1]
        if task.kind[c] == GAUSSIAN:
            for leaf in range(out.size):
                deviation = y - (task.offset[c] + eta[leaf * n_predictor + first])
                out[leaf] -= _HALF_LOG_2PI + 0.5 * (
                    columns.log_dispersion[leaf, c] + deviation * deviation / dispersion[leaf, c]
                )
            continue
        for leaf in range(out.size):
            predictors = eta[leaf * n_predictor + first : leaf * n_predictor + last]
            for h in range(predictors.size):
                predictors[h] += task.offset[c]
            out[leaf] += response_log_likelihood(task.kind[c], y, predictors, dispersion[leaf, c])


@kernel
def fill_log_density(task, state, out):
    """Fill out, float64 (n_row,), with the log density of every row's responses, paths summed out."""
    n_leaf, columns = state.dispersion.shape[0], as_columns(state)
    n_way, log_weight = count_ways(state.node.shape[0], n_leaf), np.empty(n_leaf)
    log_odds, eta = np.empty(n_leaf - 1), np.empty(columns.leaf.shape[1])
    for row in range(out.size):
        fill_products(task.gate_x[row], columns.gate, log_odds)
        fill_path_weights(log_odds, n_way, log_weight)
        add_log_likelihoods(task, row, state.dispersion, columns, eta, log_weight)
        out[row] = log_sum_exp(log_weight)
