"""Targets predicted from covariates, by the mixture over all draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import QueryError
from bayesjpt.experts.model import mixture_circuit
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.distribution import quantile
from bayesjpt.queries.moments import expectation
from bayesjpt.queries.predict import Prediction
from bayesjpt.table.schema import Schema
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


def _probabilities(post: ExpertPosterior, table: Table, c: int) -> np.ndarray:
    """Return float64 (n_row, n_label): mean probabilities of the labels, "other" left out."""
    model = post.model
    out = np.empty((table.n_row, len(model.response.columns[c].labels)))
    for which, (log_weight, theta) in post._parts(table):
        weight = np.exp(log_weight[..., model.leaves.edge]) if model.n_leaf > 1 else np.ones((*theta.shape[:2], 1))
        at, n = model.leaves.theta_at[:, c], out.shape[1]
        if model.leaves.theta_len[0, c] == 1:
            second = (weight * theta[..., at]).sum(axis=-1).mean(axis=0)
            out[which] = np.column_stack([1.0 - second, second])
        else:
            shares = theta[..., at[:, None] + np.arange(n)]
            out[which] = (weight[..., None] * shares).sum(axis=-2).mean(axis=0)
    return out / out.sum(axis=1, keepdims=True)


def _numbers(post: ExpertPosterior, table: Table, c: int, interval: float) -> np.ndarray:
    """Return float64 (n_row, 3): mean, and ends of the interval.

    The mixture over draws of mixtures over leaves is one mixture, and so a circuit too: its draws are the rows.
    """
    model = post.model
    schema = Schema((model.response.columns[c],))
    n_draw, n_leaf = post.n_chain * post.n_draw, model.n_leaf
    circuit = mixture_circuit(schema, model.families[c : c + 1], n_draw * n_leaf)
    levels = [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]
    at, n_theta = model.leaves.theta_at[:, c], int(model.leaves.theta_len[0, c])
    out = np.empty((table.n_row, 3))
    for which, (log_weight, theta) in post._parts(table):
        n_row = theta.shape[1]
        weights = log_weight[..., model.leaves.edge] if n_leaf > 1 else np.zeros((n_draw, n_row, 1))
        together = np.moveaxis(weights - np.log(n_draw), 1, 0).reshape(1, n_row, -1)
        own = np.moveaxis(theta[..., at[:, None] + np.arange(n_theta)], 1, 0).reshape(1, n_row, -1)
        params = Params(together[..., : circuit.n_edge], own)
        mixture = Posterior(circuit, schema, Params(*(np.ascontiguousarray(array) for array in params)))
        out[which, 0] = expectation(mixture).values[0, :, 0]
        out[which, 1:] = quantile(mixture, levels).values[0, :, :, 0]
    return out
