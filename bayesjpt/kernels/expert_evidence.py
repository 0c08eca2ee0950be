"""How probable known responses are, for pairs of a draw and a row, straight from coefficients: no parameters are made.

The weight of a leaf is a product over the gates above it, of which each takes one exponential and no logarithm:

      P(left) = exp(min(-t, 0)) / (1 + exp(-|t|)),      P(right) = exp(min(t, 0)) / (1 + exp(-|t|))

Exponents are added up along a path and denominators, between 1 and 2 each, are multiplied; the former join the log
densities of the leaf's experts, so that nothing underflows, and a pair takes one logarithm in all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    LOGISTIC,
    POISSON,
    bounded,
    count_ways,
    fill_columns,
    fill_path_weights,
    fill_products,
    log_sum_exp,
)
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.incomplete_gamma import log_gamma_p, stirling_error
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import log_expit_both

_HALF_LOG_2PI = 0.9189385332046727
_LOG_LEAST_SHARE = math.log(1e-15)
"""Of a label, as `bayesjpt.kernels.expert_pairs` bounds its probability."""


@kernel
def _fill_paths(log_odds, n_way, exponent, divisor):
    """Fill both, float64 (n_leaf,), such that exp(exponent) / divisor are the probabilities of leaves."""
    if n_way > 2:
        fill_path_weights(log_odds, n_way, exponent)
        divisor[:] = 1.0
        return
    exponent[0], divisor[0] = 0.0, 1.0
    width, node = exponent.size, 0
    while width > 1:
        # nodes are numbered level by level, as `first` runs over them
        for first in range(0, exponent.size, width):
            right, t = first + width // 2, log_odds[node]
            divisor[first] *= 1.0 + math.exp(-abs(t))
            divisor[right] = divisor[first]
            # the right child first: the next line overwrites what both begin with
            exponent[right] = exponent[first] + min(t, 0.0)
            exponent[first] += min(-t, 0.0)
            node += 1
        width //= 2


@kernel
def _fill_levels(leaves, dispersion, level):
    """Fill level, float64 (n_leaf, n_response), with what a log density has whatever the row: of one draw."""
    for leaf in range(level.shape[0]):
        for c in range(level.shape[1]):
            leaf_dispersion = dispersion[leaf, c]
            level[leaf, c] = 0.0
            if leaves.kind[c] == GAUSSIAN:
                level[leaf, c] = -_HALF_LOG_2PI - 0.5 * math.log(leaf_dispersion)
            elif leaves.kind[c] == GAMMA:
                level[leaf, c] = (
                    leaf_dispersion + 0.5 * math.log(leaf_dispersion) - _HALF_LOG_2PI - stirling_error(leaf_dispersion)
                )


@kernel
def _label_log_density(leaves, c, code, eta):
    """Return the log probability of a label, one that training never showed included, -inf of what is none."""
    n_label = 2 if leaves.kind[c] == LOGISTIC else eta.size
    other = leaves.other[c]
    if code == n_label and other >= 0.0:
        return math.log(other)
    if not 0.0 <= code < n_label:
        return -np.inf
    if leaves.kind[c] == LOGISTIC:
        left, right = log_expit_both(-eta[0])
        share = right if code > 0.5 else left
    else:
        share = eta[int(code)] - log_sum_exp(eta)
    return max(share, _LOG_LEAST_SHARE) + math.log1p(-max(other, 0.0))


@kernel
def _gamma_log_density(half, y, log_y, log_mean, shape, level):
    """Return the log density of a gamma expert; `half` a resolution from 0, where values are rounded to 0, its mean."""
    if y >= half:
        return level - shape * (log_mean + y * math.exp(-log_mean)) + (shape - 1.0) * log_y
    if y >= 0.0:
        return log_gamma_p(shape, shape * math.exp(-log_mean) * half) - math.log(2.0 * half)
    return -np.inf


@kernel
def _add_evidence(leaves, row, cells, dispersion, level, eta, out):
    """Add the log densities of a row's seen responses to out, float64 (n_leaf,); eta without offsets, leaf by leaf."""
    z, aux, seen = cells
    n_predictor = eta.size // out.size
    for c in range(leaves.kind.size):
        if not seen[c, row]:
            continue
        y, offset, kind = z[c, row], leaves.offset[c], leaves.kind[c]
        first, last = leaves.at[c], leaves.at[c + 1]
        if kind == GAUSSIAN:
            for leaf in range(out.size):
                deviation = y - (offset + eta[leaf * n_predictor + first])
                out[leaf] += level[leaf, c] - 0.5 * deviation * deviation / dispersion[leaf, c]
        elif kind == POISSON:
            for leaf in range(out.size):
                log_mean = bounded(offset + eta[leaf * n_predictor + first])
                out[leaf] += y * log_mean - math.exp(log_mean) - aux[c, row]
        elif kind == GAMMA:
            half = leaves.const[leaves.const_at[c]]
            for leaf in range(out.size):
                log_mean = bounded(offset + eta[leaf * n_predictor + first])
                out[leaf] += _gamma_log_density(half, y, aux[c, row], log_mean, dispersion[leaf, c], level[leaf, c])
        else:
            for leaf in range(out.size):
                predictors = eta[leaf * n_predictor + first : leaf * n_predictor + last]
                for h in range(predictors.size):
                    predictors[h] += offset
                out[leaf] += _label_log_density(leaves, c, y, predictors)


@kernel
def _weighed(exponent, divisor):
    """Return log(sum(exp(exponent) / divisor)), and leave the terms, up to a factor, in `exponent`."""
    top, total = -np.inf, 0.0
    for leaf in range(exponent.size):
        top = max(top, exponent[leaf])
    if top == -np.inf:
        return -np.inf
    for leaf in range(exponent.size):
        exponent[leaf] = math.exp(exponent[leaf] - top) / divisor[leaf]
        total += exponent[leaf]
    return top + math.log(total)


@kernel
def fill_evidence(leaves, x, cells, state, out):
    """Fill out, float64 (n_draw, n_row, n_leaf), with the log density of each row at each leaf.

    Parameters
    ----------
    leaves : Leaves
    x : float64 (n_version, n_row, n_covariate)
        Of several versions (imputations), draw d takes version d modulo their number.
    cells : tuple
        z, aux : float64 (n_response, n_row), in the families' units; seen : bool (n_response, n_row). What is not seen
        is marginalised, and a row without seen responses has 0.
    state : Coefficients
        With a leading axis over draws.
    out : float64 (n_draw, n_row, n_leaf), nats, in the families' units
    """
    leaves, state, x, cells, out = borrowed(leaves), borrowed(state), borrowed(x), borrowed(cells), borrowed(out)
    n_leaf, n_node, n_predictor = out.shape[2], state.node.shape[1], state.node.shape[2]
    columns, eta = np.empty((x.shape[2], n_leaf * n_predictor)), np.empty(n_leaf * n_predictor)
    level = np.empty((n_leaf, leaves.kind.size))
    for d in range(out.shape[0]):
        fill_columns(state.node[d, n_node - n_leaf :], columns)
        _fill_levels(leaves, state.dispersion[d], level)
        for row in range(out.shape[1]):
            fill_products(x[d % x.shape[0], row], columns, eta)
            out[d, row] = 0.0
            _add_evidence(leaves, row, cells, state.dispersion[d], level, eta, out[d, row])


class _Work(NamedTuple):
    """What a pass over the pairs of one draw uses.

    Attributes
    ----------
    gates, columns : float64 (n_covariate, n_leaf - 1), (n_covariate, n_leaf * n_predictor)
        Coefficients of the draw, side by side.
    level : float64 (n_leaf, n_response)
    log_odds, eta, exponent, divisor : float64
        Of one row.
    """

    gates: np.ndarray
    columns: np.ndarray
    level: np.ndarray
    log_odds: np.ndarray
    eta: np.ndarray
    exponent: np.ndarray
    divisor: np.ndarray


@kernel
def _room(leaves, x, gate_x, state):
    n_leaf, n_eta = state.dispersion.shape[1], state.dispersion.shape[1] * state.node.shape[2]
    gates, columns = np.empty((gate_x.shape[2], n_leaf - 1)), np.empty((x.shape[2], n_eta))
    level, rest = np.empty((n_leaf, leaves.kind.size)), np.empty(n_leaf - 1)
    return _Work(gates, columns, level, rest, np.empty(n_eta), np.empty(n_leaf), np.empty(n_leaf))


@kernel
def _turn_to(leaves, d, state, work):
    """Take the coefficients of a draw."""
    fill_columns(state.node[d, state.node.shape[1] - work.exponent.size :], work.columns)
    fill_columns(state.gate[d : d + 1], work.gates)
    _fill_levels(leaves, state.dispersion[d], work.level)


@kernel
def _weigh_row(leaves, row, covariates, cells, draw, work):
    """Return a row's log density, and leave what is in proportion to the shares of its leaves in `work.exponent`."""
    (x, gate_x), (n_way, dispersion) = covariates, draw
    fill_products(gate_x[row], work.gates, work.log_odds)
    _fill_paths(work.log_odds, n_way, work.exponent, work.divisor)
    fill_products(x[row], work.columns, work.eta)
    _add_evidence(leaves, row, cells, dispersion, work.level, work.eta, work.exponent)
    value = _weighed(work.exponent, work.divisor)
    if value == -np.inf:  # what is impossible at every leaf says nothing of the leaf
        _fill_paths(work.log_odds, n_way, work.exponent, work.divisor)
        _weighed(work.exponent, work.divisor)
    return value


@kernel
def fill_log_density(leaves, x, gate_x, cells, state, out):
    """Fill out, float64 (n_draw, n_row), with the log density of each row, leaves summed out.

    Parameters
    ----------
    leaves, x, cells, state : as in `fill_evidence`
    gate_x : float64 (n_version, n_row, n_gate_covariate)
    out : float64 (n_draw, n_row), nats, in the families' units
    """
    leaves, state, cells = borrowed(leaves), borrowed(state), borrowed(cells)
    x, gate_x = borrowed(x), borrowed(gate_x)
    n_way, made = count_ways(state.node.shape[1], state.dispersion.shape[1]), _room(leaves, x, gate_x, state)
    work = borrowed(made)
    for d in range(out.shape[0]):
        _turn_to(leaves, d, state, work)
        covariates = (x[d % x.shape[0]], gate_x[d % x.shape[0]])
        for row in range(out.shape[1]):
            out[d, row] = _weigh_row(leaves, row, covariates, cells, (n_way, state.dispersion[d]), work)
    keep(made)


@kernel
def fill_leaf_shares(leaves, x, gate_x, cells, state, out):
    """Fill out, float64 (n_draw, n_row, n_leaf), with the probability of each leaf given a row and its seen responses.

    Parameters are those of `fill_log_density`.
    """
    leaves, state, cells = borrowed(leaves), borrowed(state), borrowed(cells)
    x, gate_x = borrowed(x), borrowed(gate_x)
    n_way, made = count_ways(state.node.shape[1], state.dispersion.shape[1]), _room(leaves, x, gate_x, state)
    work = borrowed(made)
    for d in range(out.shape[0]):
        _turn_to(leaves, d, state, work)
        covariates = (x[d % x.shape[0]], gate_x[d % x.shape[0]])
        for row in range(out.shape[1]):
            _weigh_row(leaves, row, covariates, cells, (n_way, state.dispersion[d]), work)
            total = work.exponent.sum()
            for leaf in range(out.shape[2]):
                out[d, row, leaf] = work.exponent[leaf] / total
    keep(made)
