"""The moments of the slides: variance within experts, and between their means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.kernels.expert_tree import GAUSSIAN, POISSON
from bayesjpt.posterior.answer import PlainAnswers

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior


def variance_parts(post: ExpertPosterior, rows: Any) -> PlainAnswers:
    """Return ``within`` and ``between``, dims (chain, draw, feature, obs_id).

    Notes
    -----
    With weights g, means m and variances v of the leaves: within = sum g v, between = sum g (m - sum g m)^2.
    """
    model = post.model
    numbers = [c for c, column in enumerate(model.response) if column.base != "category"]
    if not numbers:
        raise QueryError("targets of labels, which have no variance", "a target of numbers")
    table = post.read(rows)
    shape = (post.n_chain, post.n_draw, len(numbers), table.n_row)
    within, between = np.empty(shape), np.empty(shape)
    for which, (log_weight, theta) in post._parts(table):
        weight = np.exp(log_weight[..., model.leaves.edge]) if model.n_leaf > 1 else np.ones((*theta.shape[:2], 1))
        for k, c in enumerate(numbers):
            mean, variance = _leaf_moments(model.kind[c], theta, model.leaves.theta_at[:, c])
            column, family = model.response.columns[c], model.families[c]
            scale = 1.0 if family.scaling.value == "none" else column.scale
            centre = (weight * mean).sum(axis=-1, keepdims=True)
            own = (weight * variance).sum(axis=-1), (weight * (mean - centre) ** 2).sum(axis=-1)
            for out, part in zip((within, between), own, strict=True):
                out[:, :, k, which] = (scale * scale * part).reshape(post.n_chain, post.n_draw, -1)
    dims = ("chain", "draw", "feature", "obs_id")
    coords = {
        "chain": np.arange(post.n_chain),
        "draw": np.arange(post.n_draw),
        "feature": [model.targets[c] for c in numbers],
        "obs_id": np.arange(table.n_row),
    }
    return PlainAnswers({"within": (dims, within), "between": (dims, between)}, coords)


def _leaf_moments(kind: int, theta: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each leaf, (..., n_leaf), in the family's units."""
    if kind == GAUSSIAN:
        return theta[..., at + 1], theta[..., at]
    if kind == POISSON:
        return theta[..., at], theta[..., at]
    shape, rate = theta[..., at], theta[..., at + 1]
    return shape / rate, shape / rate**2
