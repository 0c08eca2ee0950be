"""Densities and draws of a tree of experts in plain PyTensor and NumPy: path weights, experts at leaves, mixtures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def leaf_logp(kinds: Sequence[int], value: Any, leaves: Sequence[Any]) -> Any:
    """Return the log density of each row's responses at each leaf, (row, leaf): 0 of rows that lack one.

    Parameters
    ----------
    kinds : sequence of int
        Of the experts of each response.
    value : (row,), or (row, response) where `leaves` say that there are several
        NaN where it is missing.
    leaves : sequence
        Predictors, (row, leaf[, label]), and what else the leaves' densities have, (leaf,), response by response; at
        the end, where values have an axis of responses, a vector as long as that is.
    """
    value = value if _by_column(kinds, leaves) else value[..., None]
    missing: Any = pt.isnan(value).any(axis=-1, keepdims=True)
    # in place of a missing value a 1, which all experts allow: a gradient through NaN would be NaN, even times 0
    known: Any = pt.switch(missing, 1.0, value)
    own: Any = [LEAF_LOGP[kind](known[..., c], *leaves[2 * c : 2 * c + 2]) for c, kind in enumerate(kinds)]
    return pt.switch(missing, 0.0, sum(own))


def mixture_logp(kinds: Sequence[int], value: Any, log_weight: Any, *leaves: Any) -> Any:
    """Return the log density of each row, paths summed out; see `leaf_logp`."""
    return pt.logsumexp(log_weight + leaf_logp(kinds, value, leaves), axis=-1)


def mixture_random(
    kinds: Sequence[int], log_weight: np.ndarray, *leaves: np.ndarray, rng: np.random.Generator, size: Any = None
) -> np.ndarray:
    """Return responses drawn for each row given log weights of leaves, (row, leaf); see `leaf_logp`."""
    shape = log_weight.shape[:-1] if size is None else tuple(size)
    weight = np.broadcast_to(log_weight, (*shape, log_weight.shape[-1]))
    return draw_at_leaves(kinds, np.argmax(weight + rng.gumbel(size=weight.shape), axis=-1), leaves, rng)


def draw_at_leaves(
    kinds: Sequence[int], leaf: np.ndarray, leaves: Sequence[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Return the responses of each row, (row,) or (row, response), drawn at its leaf, int (row,)."""
    drawn = []
    for c, kind in enumerate(kinds):
        eta = _of_leaf(leaves[2 * c], leaf, n_label_axis=int(kind == MULTINOMIAL))
        drawn.append(_DRAW[kind](eta, _of_leaf(leaves[2 * c + 1], leaf, n_label_axis=0), rng))
    return np.stack(drawn, axis=-1) if _by_column(kinds, leaves) else drawn[0]


def signature(kinds: Sequence[int], by_column: bool, head: Sequence[str], axis: tuple[str, ...] = ()) -> str:
    """Return the signature of a random variable whose last parameters are `leaves`, as NumPy writes them.

    Parameters
    ----------
    kinds : sequence of int
    by_column : bool
        Whether values have an axis of responses.
    head : sequence of str
        Of the parameters before leaves.
    axis : tuple of str
        That of rows, where they depend on each other.
    """

    def core(*names: str) -> str:
        return f"({','.join((*axis, *names))})"

    leaves = [
        part for c, kind in enumerate(kinds) for part in (core("l", *[f"k{c}"] * int(kind == MULTINOMIAL)), "(l)")
    ]
    own = ["c"] * int(by_column)
    return f"{','.join([*head, *leaves, *[f'({name})' for name in own]])}->{core(*own)}"


def _by_column(kinds: Sequence[int], leaves: Sequence[Any]) -> bool:
    return len(leaves) > 2 * len(kinds)


def _of_leaf(values: np.ndarray, leaf: np.ndarray, *, n_label_axis: int) -> np.ndarray:
    """Return the values of each row's leaf, (..., row[, label]), of values (..., leaf[, label])."""
    core = values.shape[values.ndim - 1 - n_label_axis :]
    values = np.broadcast_to(values, (*leaf.shape, *core))
    index = leaf[(..., None, *[None] * n_label_axis)]
    return np.take_along_axis(values, index, axis=leaf.ndim).squeeze(leaf.ndim)


def _draw_gaussian(eta: np.ndarray, deviation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(eta, deviation)


def _draw_logistic(eta: np.ndarray, _dispersion: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.logistic(size=eta.shape) < eta).astype(np.int64)


def _draw_multinomial(eta: np.ndarray, _dispersion: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.argmax(eta + rng.gumbel(size=eta.shape), axis=-1).astype(np.int64)


def _draw_poisson(eta: np.ndarray, _dispersion: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(np.exp(np.minimum(eta, _LARGEST_LOG_MEAN))).astype(np.int64)


def _draw_gamma(eta: np.ndarray, shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
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
_DRAW: Mapping[int, Any] = {
    GAUSSIAN: _draw_gaussian,
    LOGISTIC: _draw_logistic,
    MULTINOMIAL: _draw_multinomial,
    POISSON: _draw_poisson,
    GAMMA: _draw_gamma,
}
"""Draws of values given what stands at a leaf."""
