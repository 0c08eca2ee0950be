"""Slow twin of a pass of expectation-maximisation: from the definition, leaf by leaf, in NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats

from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, LOGISTIC, MULTINOMIAL, POISSON
from tests.experts.naive import path_probabilities


def leaves_of(state) -> np.ndarray:
    return state.node[state.node.shape[0] - state.dispersion.shape[0] :]


def count_ways(state) -> int:
    return (state.node.shape[0] - 1) // (state.node.shape[0] - state.dispersion.shape[0])


def leaf_log_density(task, state, leaf: int, row: int) -> float:
    node, total = leaves_of(state)[leaf], 0.0
    for c, kind in enumerate(task.kind):
        eta = node[task.at[c] : task.at[c + 1]] @ task.x[row] + task.offset[c]
        y, dispersion = task.y[c, row], state.dispersion[leaf, c]
        if kind == GAUSSIAN:
            total += scipy.stats.norm.logpdf(y, eta[0], np.sqrt(dispersion))
        elif kind == LOGISTIC:
            total += scipy.special.log_expit(eta[0] if y > 0.5 else -eta[0])
        elif kind == MULTINOMIAL:
            total += scipy.special.log_softmax(eta)[int(y)]
        elif kind == POISSON:
            total += scipy.stats.poisson.logpmf(y, np.exp(eta[0]))
        else:
            total += scipy.stats.gamma.logpdf(y, dispersion, scale=np.exp(eta[0]) / dispersion)
    return total


def joint(task, state) -> np.ndarray:
    """Return log p(leaf, y | x) of each row and leaf."""
    n_row, n_leaf = task.x.shape[0], state.dispersion.shape[0]
    return np.array(
        [
            np.log(path_probabilities(state.gate, task.gate_x[row], count_ways(state)))
            + [leaf_log_density(task, state, leaf, row) for leaf in range(n_leaf)]
            for row in range(n_row)
        ]
    )


def penalised(task, state, penalty) -> float:
    """Return the penalised log likelihood of a complete tree."""
    leaves = leaves_of(state)
    total = scipy.special.logsumexp(joint(task, state), axis=1).sum()
    total -= 0.5 * penalty.ridge * (state.gate**2).sum()
    total -= 0.5 * (np.repeat(penalty.expert_ridge, np.diff(task.at)) @ (leaves**2).sum(axis=(0, 2)))
    for c, kind in enumerate(task.kind):
        own = state.dispersion[:, c]
        if kind == GAUSSIAN:
            total -= 0.5 * penalty.n_row * (np.log(own) + penalty.variance / own).sum()
        elif kind == GAMMA:
            total -= 0.5 * penalty.log_shape_precision * ((np.log(own) - penalty.log_shape_mean) ** 2).sum()
    return float(total)


def _newton(x, first, ridge, slopes) -> np.ndarray:
    """Return where there is no slope; `slopes` gives derivatives by the predictors, (n, K) and (n, K, K)."""
    b = first.copy()
    for _ in range(200):
        gradient, curvature = slopes(x @ b.T)
        hessian = np.einsum("nij,na,nb->iajb", curvature, x, x).reshape(b.size, b.size) + ridge * np.eye(b.size)
        step = np.linalg.solve(hessian, (gradient.T @ x - ridge * b).ravel()).reshape(b.shape)
        b += step * min(1.0, 2.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-14:
            break
    return b


def em_pass(task, state, penalty, *, error: str = ""):
    """Return the state after one pass whose regressions are solved; `error` names one to plant."""
    n_way, n_leaf = count_ways(state), state.dispersion.shape[0]
    n_gate = state.node.shape[0] - n_leaf
    log_joint = joint(task, state)
    leaf_share = np.exp(log_joint - scipy.special.logsumexp(log_joint, axis=1, keepdims=True))
    share = np.zeros((n_gate + n_leaf, task.x.shape[0]))
    share[n_gate:] = leaf_share.T
    for node in range(n_gate - 1, -1, -1):
        share[node] = share[n_way * node + 1 : n_way * node + n_way + 1].sum(axis=0)
    gate, node, dispersion = state.gate.copy(), state.node.copy(), state.dispersion.copy()
    for g in range(n_gate):
        weight = np.ones(task.x.shape[0]) if error == "gates of all rows" else share[g]
        hit = (share[n_way * g + 2 : n_way * g + n_way + 1] / share[g]).T

        def slopes(eta, weight=weight, hit=hit):
            p = scipy.special.softmax(np.column_stack([np.zeros(eta.shape[0]), eta]), axis=1)[:, 1:]
            curvature = np.eye(p.shape[1]) * p[:, None, :] - p[:, :, None] * p[:, None, :]
            return weight[:, None] * (hit - p), weight[:, None, None] * curvature

        own = slice((n_way - 1) * g, (n_way - 1) * (g + 1))
        gate[own] = _newton(task.gate_x, gate[own], penalty.ridge, slopes)
    for leaf in range(n_leaf):
        weight = share[n_gate + leaf]
        if error == "shares given the parent" and n_gate:
            weight = weight / share[(n_gate + leaf - 1) // n_way]
        for c, kind in enumerate(task.kind):
            at = slice(task.at[c], task.at[c + 1])
            own = (task, c, weight, penalty, dispersion[leaf, c])
            node[n_gate + leaf, at], dispersion[leaf, c] = _expert(kind, own, node[n_gate + leaf, at])
            if error == "variances of all rows" and kind == GAUSSIAN:
                dispersion[leaf, c] *= weight.sum() / task.x.shape[0]
    return state._replace(gate=gate, node=node, dispersion=dispersion)


def _expert(kind, own, first):
    task, c, weight, penalty, dispersion = own
    y, offset = task.y[c], task.offset[c]

    def slopes(eta):
        eta = eta + offset
        if kind == GAUSSIAN:
            return (weight * (y - eta[:, 0]) / dispersion)[:, None], (weight / dispersion)[:, None, None]
        if kind == MULTINOMIAL:
            p = scipy.special.softmax(eta, axis=1)
            hit = np.eye(eta.shape[1])[y.astype(int)]
            curvature = np.eye(eta.shape[1]) * p[:, None, :] - p[:, :, None] * p[:, None, :]
            return weight[:, None] * (hit - p), weight[:, None, None] * curvature
        mean = scipy.special.expit(eta[:, 0]) if kind == LOGISTIC else np.exp(eta[:, 0])
        if kind == GAMMA:
            return (weight * dispersion * (y / mean - 1))[:, None], (weight * dispersion * y / mean)[:, None, None]
        curvature = mean * (1 - mean) if kind == LOGISTIC else mean
        return (weight * (y - mean))[:, None], (weight * curvature)[:, None, None]

    b = _newton(task.x, first, penalty.expert_ridge[c], slopes)
    eta = task.x @ b[0] + offset
    if kind == GAUSSIAN:
        squares = (weight * (y - eta) ** 2).sum() + penalty.n_row * penalty.variance
        dispersion = max(squares / (weight.sum() + penalty.n_row), penalty.floor[c])
    if kind == GAMMA:

        def slope(log_shape):
            shape = np.exp(log_shape)
            inner = log_shape + 1 - scipy.special.digamma(shape) + np.log(y) - eta - y * np.exp(-eta)
            return shape * (weight * inner).sum() - penalty.log_shape_precision * (log_shape - penalty.log_shape_mean)

        dispersion = np.exp(scipy.optimize.brentq(slope, -10, 20, xtol=1e-13))
    return b, dispersion
