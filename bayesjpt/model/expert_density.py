"""Densities and draws of a tree of experts in plain PyTensor and NumPy: path weights, experts at leaves, mixtures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, LOGISTIC, MULTINOMIAL, POISSON


def softmax_weights(log_odds: Any, n_leaf: int, n_way: int) -> Any:
    """Return what `logistic_weights` does, of gates of several ways: log odds of each but the first, side by side."""
    n_gate = (n_leaf - 1) // (n_way - 1)
    scores = log_odds.reshape((log_odds.shape[0], n_gate, n_way - 1))
    scores = pt.concatenate([pt.zeros_like(scores[:, :, :1]), scores], axis=2)
    log_way = (scores - pt.logsumexp(scores, axis=2, keepdims=True)).reshape((log_odds.shape[0], n_gate * n_way))
    taken = np.zeros((n_gate * n_way, n_leaf))
    for leaf in range(n_leaf):
        node = n_gate + leaf
        while node > 0:
            taken[node - 1, leaf] = 1.0  # the ways of all gates, side by side, are the nodes below the root
            node = (node - 1) // n_way
    return log_way @ taken


def logistic_weights(log_odds: Any, n_leaf: int) -> Any:
    """Return the log probabilities of leaves, (..., leaf), given log odds, (..., gate): sums along their paths."""
    right, left = paths(n_leaf)
    return pt.log(pt.sigmoid(log_odds)) @ right + pt.log(pt.sigmoid(-log_odds)) @ left


def paths(n_leaf: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float64 (n_gate, n_leaf) each: 1 where a leaf's path goes right, or left, at a gate."""
    right, left = np.zeros((n_leaf - 1, n_leaf)), np.zeros((n_leaf - 1, n_leaf))
    for leaf in range(n_leaf):
        node = n_leaf - 1 + leaf
        while node > 0:
            parent = (node - 1) // 2
            (right if node == 2 * parent + 2 else left)[parent, leaf] = 1.0
            node = parent
    return right, left


def _gaussian(value: Any, eta: Any, dispersion: Any) -> Any:
    return pm.logp(pm.Normal.dist(eta, dispersion), value[..., None])


def _logistic(value: Any, eta: Any, _dispersion: Any) -> Any:
    return pt.log(pt.sigmoid(pt.switch(pt.gt(value[..., None], 0), eta, -eta)))


def _multinomial(value: Any, eta: Any, _dispersion: Any) -> Any:
    log_share = eta - pt.logsumexp(eta, axis=-1, keepdims=True)
    hit = pt.eq(value[..., None, None], pt.arange(eta.shape[-1]))
    return pt.sum(pt.switch(hit, log_share, 0.0), axis=-1)


def _poisson(value: Any, eta: Any, _dispersion: Any) -> Any:
    value = value[..., None]
    return value * eta - pt.exp(eta) - pt.gammaln(value + 1.0)


def _gamma(value: Any, eta: Any, shape: Any) -> Any:
    return pm.logp(pm.Gamma.dist(shape, shape * pt.exp(-eta)), value[..., None])


def mixture_logp(kind: int, value: Any, log_weight: Any, eta: Any, dispersion: Any) -> Any:
    """Return the log density of each row, paths summed out."""
    return pt.logsumexp(log_weight + LEAF_LOGP[kind](value, eta, dispersion), axis=-1)


def _chosen(log_weight: np.ndarray, values: np.ndarray, rng: np.random.Generator, size: Any) -> tuple[np.ndarray, ...]:
    """Return the values of a leaf drawn for each row, (row[, label]), and which leaf it is."""
    shape = log_weight.shape[:-1] if size is None else tuple(size)
    weight = np.broadcast_to(log_weight, (*shape, log_weight.shape[-1]))
    leaf = np.argmax(weight + rng.gumbel(size=weight.shape), axis=-1)
    extra = values.ndim - log_weight.ndim
    index = leaf[(..., None, *[None] * extra)]
    values = np.broadcast_to(values, (*shape, *values.shape[log_weight.ndim - 1 :]))
    return np.take_along_axis(values, index, axis=len(shape)).squeeze(len(shape)), leaf


def _of_leaf(dispersion: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    if dispersion.ndim == 1:
        return dispersion[leaf]
    return np.take_along_axis(np.broadcast_to(dispersion, (*leaf.shape, dispersion.shape[-1])), leaf[..., None], -1)[
        ..., 0
    ]


def _gaussian_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, leaf = _chosen(log_weight, eta, rng, size)
    return rng.normal(eta, _of_leaf(dispersion, leaf))


def _logistic_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, _ = _chosen(log_weight, eta, rng, size)
    return (rng.logistic(size=eta.shape) < eta).astype(np.int64)


def _multinomial_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, _ = _chosen(log_weight, eta, rng, size)
    return np.argmax(eta + rng.gumbel(size=eta.shape), axis=-1).astype(np.int64)


def _poisson_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, _ = _chosen(log_weight, eta, rng, size)
    return rng.poisson(np.exp(np.minimum(eta, _LARGEST_LOG_MEAN))).astype(np.int64)


def _gamma_random(log_weight, eta, dispersion, rng=None, size=None):
    eta, leaf = _chosen(log_weight, eta, rng, size)
    shape = _of_leaf(dispersion, leaf)
    return rng.gamma(shape, np.exp(eta) / shape)


_LARGEST_LOG_MEAN = 40.0
"""Beyond it NumPy's Poisson draws overflow."""

LEAF_LOGP: Mapping[int, Any] = {
    GAUSSIAN: _gaussian,
    LOGISTIC: _logistic,
    MULTINOMIAL: _multinomial,
    POISSON: _poisson,
    GAMMA: _gamma,
}
"""Log densities of values at each leaf, (row, leaf)."""
RANDOM: Mapping[int, Any] = {
    GAUSSIAN: _gaussian_random,
    LOGISTIC: _logistic_random,
    MULTINOMIAL: _multinomial_random,
    POISSON: _poisson_random,
    GAMMA: _gamma_random,
}
"""Draws of values given log weights of leaves, (row, leaf)."""
