"""Fits the weights of `bayesjpt.queries.type_probability` to labelled columns: penalised maximum likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

VARIANCE = 0.5
"""Of the normal prior of each weight, mean 0: nats squared. Chosen on the scores of these tables, each left out, from
.25, .5, 1, 2 and 4, for accuracy on the benchmark."""

MEANS: Mapping[str, float] = {
    "in steps": 1.0,
    "digits": 0.5,
}
"""Of the priors of weights that the tables can say little of, for want of such columns; 0 of all others. Numbers in
steps of 5 or 0.1 are amounts to people, and 14.99 is no code."""

TABLE_COLUMNS = 10.0
"""Columns that each table counts for, however many it has: one with 65 pixels does not decide for all."""

MISLABELLED = 1e-3
"""Probability that is left for a label that the column cannot have."""


@dataclass(frozen=True)
class Example:
    """One column.

    Parameters
    ----------
    features : mapping from type to mapping from feature to value
    right : tuple of sets of types
        Each counts as much: the label alone, and with the defensible ones.
    """

    features: Mapping[str, Mapping[str, float]]
    right: tuple[frozenset[str], ...]


def fit_weights(tables: Sequence[Sequence[Example]]) -> dict[str, float]:
    """Return the weight of every feature.

    Examples
    --------
    >>> seen = Example({"a": {"is a": 1.0}, "b": {}}, (frozenset("a"),))
    >>> fit_weights([[seen]])["is a"] > 0.0
    True
    """
    examples = [each for table in tables for each in table]
    share = np.concatenate([np.full(len(table), TABLE_COLUMNS / max(len(table), 1)) for table in tables])
    names = sorted({name for each in examples for own in each.features.values() for name in own})
    types = sorted({name for each in examples for name in each.features})
    x = np.zeros((len(examples), len(types), len(names)))
    allowed = np.full((len(examples), len(types)), -np.inf)
    n_right = max(len(each.right) for each in examples)
    right = np.zeros((n_right, len(examples), len(types)))
    for i, each in enumerate(examples):
        for name, own in each.features.items():
            allowed[i, types.index(name)] = 0.0
            for feature, value in own.items():
                x[i, types.index(name), names.index(feature)] = value
        for k in range(n_right):
            right[k, i] = [name in each.right[min(k, len(each.right) - 1)] for name in types]

    means = np.array([MEANS.get(name, 0.0) for name in names])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        score = x @ weights + allowed
        score -= score.max(axis=1, keepdims=True)
        p = np.exp(score)
        p /= p.sum(axis=1, keepdims=True)
        value, slope = 0.5 * ((weights - means) ** 2).sum() / VARIANCE, (weights - means) / VARIANCE
        for accepted in right:
            given = (p * accepted).sum(axis=1) + MISLABELLED
            value -= (share * np.log(given)).sum() / n_right
            part = p * accepted / given[:, None]
            pull = (part - p * part.sum(axis=1, keepdims=True)) * (share / n_right)[:, None]
            slope = slope - np.einsum("it,itk->k", pull, x)
        return value, slope

    found = minimize(loss, means, jac=True, method="L-BFGS-B")
    return dict(zip(names, found.x.tolist(), strict=True))
