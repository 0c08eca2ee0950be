"""Which values a missing cell may have: labels of the training table, and numbers in the support of their column."""

from __future__ import annotations

import numpy as np

from bayesjpt.table.schema import Schema


def possible_values(schema: Schema) -> np.ndarray:
    """Return float64 (2, n_column): the least and largest value that a cell of each column may have, codes of labels.

    A likelihood of the whole line may go beyond the support of its column, and "other" is no label of a table.
    """
    supports = np.array([column.support for column in schema]).T
    return np.where(np.isfinite(highest_label(schema)), seen_labels(schema), supports)


def seen_labels(schema: Schema) -> np.ndarray:
    """Return float64 (2, n_column): least and largest code of each column's training labels; none of numbers."""
    labels = highest_label(schema)
    return np.array([np.where(np.isfinite(labels), 0.0, -np.inf), labels])


def highest_label(schema: Schema) -> np.ndarray:
    """Return float64 (n_column,): the last code of each column's training labels, infinite for numbers."""
    return np.array([len(column.labels) - 1.0 if column.base == "category" else np.inf for column in schema])
