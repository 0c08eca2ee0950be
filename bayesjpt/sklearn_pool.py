"""What the classifier of scikit-learn's kind adds to posteriors: a linear expert, and pools that weigh all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from bayesjpt.table.table import Table

N_EXPERT = 4
N_FOLD = 3
_STRENGTHS = (0.03, 0.1, 0.3, 1.0)
"""Of the ridge of the pool, the strongest first."""
_LINEAR_STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Of the ridge of the linear expert."""
_N_EM = 200
"""Steps by which an average's weights are found: each gains less than the one before."""
_FARTHEST = 1e3
"""Standard deviations beyond which a number is taken for that far: of new rows one may be anything."""


class LinearExpert:
    """A logistic regression in the columns of a table: z-scores of numbers, indicators of labels and of missing cells.

    Parameters
    ----------
    table : Table
    target : str
        Name of its column of classes, whose labels are ``class 0``, ``class 1``, ...
    strength : float
        Inverse of the ridge.
    """

    def __init__(self, table: Table, target: str, strength: float):
        classes = table.schema.index(target)
        self.positions = [k for k in range(table.n_column) if k != classes]
        self.numbers = [k for k in self.positions if table.schema.columns[k].base != "category"]
        self.labels = [k for k in self.positions if k not in self.numbers]
        seen = [table.values[k, table.observed[k]] for k in self.numbers]
        with np.errstate(over="ignore"):
            self.centres = [_finite(values.mean(), 0.0) if values.size else 0.0 for values in seen]
            self.scales = [_finite(values.std(), 0.0) or 1.0 if values.size else 1.0 for values in seen]
        self.with_gaps = [k for k in self.positions if not table.observed[k].all()]
        code = np.array([code_of(label) for label in table.schema.columns[classes].labels])  # class 10 before class 2
        self.model = _regression(strength).fit(self.design(table), code[table.values[classes].astype(np.int64)])

    def design(self, table: Table) -> np.ndarray:
        """Return float64 (n_row, n_covariate); a missing number stands at the mean, a missing label at none."""
        parts = [(~table.observed[k]).astype(float)[:, None] for k in self.with_gaps]
        for k, centre, scale in zip(self.numbers, self.centres, self.scales, strict=True):
            z = np.where(table.observed[k], table.values[k] - centre, 0.0) / scale
            parts.append(np.clip(z, -_FARTHEST, _FARTHEST)[:, None])
        for k in self.labels:
            codes = np.arange(len(table.schema.columns[k].labels))
            parts.append(((table.values[k][:, None] == codes) & table.observed[k][:, None]).astype(float))
        return np.hstack([np.zeros((table.n_row, 1)), *parts])

    def probabilities(self, rows: Table, n_class: int) -> np.ndarray:
        """Return float64 (n_row, n_class): those of classes that training did not show are 0."""
        out = np.zeros((rows.n_row, n_class))
        out[:, self.model.classes_] = self.model.predict_proba(self.design(rows))
        return out


class AveragePool(ClassifierMixin, BaseEstimator):
    """A linear opinion pool: the average of experts, with the weights under which held-out classes are likeliest.

    References
    ----------
    Genest and Zidek (1986).
    """

    def fit(self, said: np.ndarray, codes: np.ndarray):
        """Return the pool, fitted to log probabilities (n_row, n_expert * n_class) and the codes of classes."""
        self.classes_ = np.unique(codes)
        each = np.exp(said).reshape(len(codes), N_EXPERT, -1)
        of_truth = each[np.arange(len(codes)), :, codes]
        self.weights_ = np.full(N_EXPERT, 1.0 / N_EXPERT)
        for _ in range(_N_EM):
            shares = of_truth * self.weights_
            self.weights_ = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
        return self

    def predict_proba(self, said: np.ndarray) -> np.ndarray:
        """Return float64 (n_row, n_class)."""
        each = np.einsum("e,rec->rc", self.weights_, np.exp(said).reshape(len(said), N_EXPERT, -1))
        return each / each.sum(axis=1, keepdims=True)


def _finite(number: np.floating, otherwise: float) -> float:
    return float(number) if np.isfinite(number) else otherwise


def code_of(label: str) -> int:
    """Return the code of a class by its label."""
    return int(label.removeprefix("class "))


def _regression(strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=2_000)


def _best(models: Sequence[Any], X: np.ndarray, codes: np.ndarray) -> Any:
    """Return the model that predicts held-out classes best."""
    scores = [cross_val_score(model, X, codes, cv=N_FOLD, scoring="neg_log_loss").mean() for model in models]
    return models[int(np.argmax(scores))]


def strength_of_linear(table: Table, target: str, codes: np.ndarray) -> float | None:
    """Return the inverse of the linear expert's ridge, chosen on held-out rows; None where there is no such expert."""
    counts = np.bincount(codes)
    if len(counts) < 2 or table.n_column < 2:
        return None
    if counts.min() < N_FOLD:
        return 1.0
    design = LinearExpert(table, target, 1.0).design(table)
    return _best([_regression(c) for c in _LINEAR_STRENGTHS], design, codes).C


def best_pool(said: np.ndarray, codes: np.ndarray) -> Any:
    """Return the fitted pool that predicts held-out classes best: an average, or a regression of log probabilities."""
    return _best([AveragePool(), *map(_regression, _STRENGTHS)], said, codes).fit(said, codes)
