"""Targets predicted from covariates, by the mixture over all draws: straight from coefficients, no pair is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults_experts import PAIR_BYTES
from bayesjpt.errors import QueryError, TableError
from bayesjpt.families import features
from bayesjpt.kernels.expert_mixture import fill_label_shares, fill_means, fill_predicted
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


def _weights(post: ExpertPosterior, table: Table) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield some rows at a time, their covariates, and the probabilities of leaves of their pairs."""
    if not table.n_row:
        raise TableError("no rows", "one at least")
    x, gate_x = post.matrices(table)
    step = max(1, PAIR_BYTES // (16 * post.n_chain * post.n_draw * post.model.n_leaf))
    for which, weight in post.weight_parts(table, gate_x, step):
        yield which, np.ascontiguousarray(x[:, which]), weight


def _probabilities(post: ExpertPosterior, table: Table, c: int) -> np.ndarray:
    """Return float64 (n_row, n_label): mean probabilities of the labels, "other" left out."""
    model, flat = post.model, post.flat()
    out = np.empty((table.n_row, len(model.response.columns[c].labels)))
    for which, x, weight in _weights(post, table):
        own = np.empty((weight.shape[1], out.shape[1]))
        fill_label_shares(model.leaves, c, x, flat, weight, own)
        out[which] = own
    return out / out.sum(axis=1, keepdims=True)


def _numbers(post: ExpertPosterior, table: Table, c: int, interval: float) -> np.ndarray:
    """Return float64 (n_row, 3): mean, and ends of the interval, of the one mixture over draws and their leaves."""
    model, flat = post.model, post.flat()
    levels = np.array([0.5 * (1.0 - interval), 0.5 * (1.0 + interval)])
    dispersion = np.ascontiguousarray(flat.dispersion[:, :, c])
    out = np.empty((table.n_row, 3))
    for which, x, weight in _weights(post, table):
        means, own = np.empty(weight.shape), np.empty((weight.shape[1], 3))
        fill_means(model.leaves, c, x, flat, means)
        fill_predicted(int(model.kind[c]), weight, means, dispersion, levels, own)
        out[which] = own
    out[:, 1:] = np.maximum.accumulate(out[:, 1:], axis=1)  # of a narrow interval both ends are one but for rounding
    offset, scale = features.offset_and_scale(model.families[c].scaling, model.response.columns[c])
    return offset + scale * out
