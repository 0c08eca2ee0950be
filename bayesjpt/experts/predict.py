"""Targets predicted from covariates, by the mixture over all draws: straight from coefficients, no pair is made.

Of rows that lack covariates it is the mixture over draws and imputations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults_experts import PAIR_BYTES
from bayesjpt.errors import QueryError
from bayesjpt.experts.row_parts import RowPart
from bayesjpt.families import features
from bayesjpt.kernels.expert_mixture import fill_label_shares, fill_means, fill_predicted
from bayesjpt.kernels.expert_tree import Coefficients
from bayesjpt.queries.predict import Prediction
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior


def prediction(post: ExpertPosterior, table: Table, target: str, interval: float) -> Prediction:
    """Return what a target is in some rows; see `ExpertPosterior.predict`."""
    if not isinstance(interval, float | int) or not 0.0 < interval < 1.0:
        raise QueryError(f"interval = {interval!r}", "a probability strictly between 0 and 1")
    c = post.targets.index(target)
    column = post.model.response.columns[c]
    if column.base == "category":
        return Prediction(column, column.labels, _probabilities(post, table, c))
    return Prediction(column, ("mean", "lower", "upper"), _numbers(post, table, c, interval))


def _weights(post: ExpertPosterior, table: Table) -> Iterator[tuple[RowPart, Coefficients, np.ndarray]]:
    """Yield some rows at a time, the coefficients of their pairs, and the probabilities of leaves of these."""
    n_draw = post.n_chain * post.n_draw
    for part in post.row_parts(table):
        n_version = part.n_asked(n_draw)
        flat = post.flat(n_version)
        for own in part.split(max(1, PAIR_BYTES // (16 * n_draw * n_version * post.model.n_leaf))):
            yield own, flat, post.leaf_weights(own, n_version)


def _probabilities(post: ExpertPosterior, table: Table, c: int) -> np.ndarray:
    """Return float64 (n_row, n_label): mean probabilities of the labels, "other" left out."""
    model = post.model
    out = np.empty((table.n_row, len(model.response.columns[c].labels)))
    for part, flat, weight in _weights(post, table):
        own = np.empty((weight.shape[1], out.shape[1]))
        fill_label_shares(model.leaves, c, part.x, flat, weight, own)
        out[part.rows] = own
    return out / out.sum(axis=1, keepdims=True)


def _numbers(post: ExpertPosterior, table: Table, c: int, interval: float) -> np.ndarray:
    """Return float64 (n_row, 3): mean, and ends of the interval, of the one mixture over draws and their leaves."""
    model = post.model
    levels = np.array([0.5 * (1.0 - interval), 0.5 * (1.0 + interval)])
    out = np.empty((table.n_row, 3))
    for part, flat, weight in _weights(post, table):
        means, own = np.empty(weight.shape), np.empty((weight.shape[1], 3))
        dispersion = np.ascontiguousarray(flat.dispersion[:, :, c])
        fill_means(model.leaves, c, part.x, flat, means)
        fill_predicted(int(model.kind[c]), weight, means, dispersion, levels, own)
        out[part.rows] = own
    out[:, 1:] = np.maximum.accumulate(out[:, 1:], axis=1)  # of a narrow interval both ends are one but for rounding
    offset, scale = features.offset_and_scale(model.families[c].scaling, model.response.columns[c])
    return offset + scale * out
