"""Moments of targets given rows: expectation, and the slides' variances within experts and between their means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults_experts import PAIR_BYTES
from bayesjpt.families import features
from bayesjpt.kernels.expert_moments import fill_moments
from bayesjpt.posterior.answer import PlainAnswer, PlainAnswers
from bayesjpt.queries.question import positions_of

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior

_DIMS = ("chain", "draw", "feature", "obs_id")


def expectation(post: ExpertPosterior, rows: Any) -> PlainAnswer:
    """Return expectations in the user's units, dims (chain, draw, feature, obs_id); of dates as dates."""
    values, coords = _moments(post, rows)
    numbers = [column for column in post.model.response if column.base != "category"]
    of_dates = all(column.dtype == "datetime" for column in numbers)
    return PlainAnswer("expectation", _DIMS, values[0], coords, of_dates=of_dates)


def variance(post: ExpertPosterior, rows: Any) -> PlainAnswer:
    """Return variances in squares of the user's units, dims (chain, draw, feature, obs_id)."""
    values, coords = _moments(post, rows)
    return PlainAnswer("variance", _DIMS, values[1] + values[2], coords)


def variance_parts(post: ExpertPosterior, rows: Any) -> PlainAnswers:
    """Return ``within`` and ``between``, dims (chain, draw, feature, obs_id)."""
    values, coords = _moments(post, rows)
    return PlainAnswers({"within": (_DIMS, values[1]), "between": (_DIMS, values[2])}, coords)


def _over_versions(moments: np.ndarray, n_version: int) -> np.ndarray:
    """Return moments of mixtures over versions, (3, n_draw, ...), of those of pairs, (3, n_draw * n_version, ...)."""
    if n_version == 1:
        return moments
    by_version = moments.reshape(3, -1, n_version, *moments.shape[2:])
    out = by_version.mean(axis=2)
    out[2] += by_version[0].var(axis=1)  # law of total variance
    return out


def _moments(post: ExpertPosterior, rows: Any) -> tuple[np.ndarray, dict[str, Any]]:
    """Return mean, variance within and between, float64 (3, n_chain, n_draw, n_feature, n_row), and coordinates."""
    model, table = post.model, post.read(rows, targets=False)
    numbers = positions_of(None, model.response)
    n_draw = post.n_chain * post.n_draw
    out = np.empty((3, n_draw, len(numbers), table.n_row))
    for whole in post.row_parts(table):
        n_version = whole.n_asked(n_draw)
        flat = post.flat(n_version)
        step = max(1, PAIR_BYTES // (8 * n_draw * n_version * (model.n_leaf + 3 * len(model.targets))))
        for part in whole.split(step):
            made = np.empty((3, n_draw * n_version, len(model.targets), part.rows.size))
            fill_moments(model.leaves, part.x, flat, post.leaf_weights(part, n_version), made)
            out[..., part.rows] = _over_versions(made[:, :, numbers], n_version)
    for k, c in enumerate(numbers):
        offset, scale = features.offset_and_scale(model.families[c].scaling, model.response.columns[c])
        out[0, :, k] = offset + scale * out[0, :, k]
        out[1:, :, k] *= scale * scale
    coords = {
        "chain": np.arange(post.n_chain),
        "draw": np.arange(post.n_draw),
        "feature": [model.targets[c] for c in numbers],
        "obs_id": np.arange(table.n_row),
    }
    return out.reshape(3, post.n_chain, post.n_draw, len(numbers), table.n_row), coords
