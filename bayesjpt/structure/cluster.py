"""Rows in two clusters by 2-means on the random features of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.kernels.two_means import two_means_from
from bayesjpt.structure.dependence import subsample
from bayesjpt.structure.features import ColumnFeatures

TWO_MEANS_STEPS = 300
TWO_MEANS_TOLERANCE = 1e-4
"""Steps from each start at most, and squared movement of the centres, of the mean variance of the features, at which
they end: the defaults of scikit-learn."""

TWO_MEANS_STARTS = 3
"""Starts of 2-means, the best is kept; with k-means++ two clusters are found by nearly every start."""


_N_CANDIDATE = 2
"""Points among which the second centre of a start is chosen: 2 + log 2, rounded down, as in scikit-learn."""


def two_means(features: Sequence[ColumnFeatures], max_rows: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return bool (n_row,), True for the rows of the smaller cluster, or None where all rows are alike.

    Parameters
    ----------
    features : sequence of ColumnFeatures
        Of the columns in scope. A missing cell lies at its column's mean.
    max_rows : int
        The centres are found on at most so many rows, drawn without replacement; then every row goes to the nearer one.
        Should the drawn rows be all alike, the rows that differ from them are one cluster.
    rng : numpy.random.Generator

    Notes
    -----
    Features are clustered as they are, neither whitened nor standardised (Molina et al., 2018). Nearer to centre a
    than to centre b means x (b - a) < (b b - a a) / 2, a sum over columns: so the features of all rows never stand in
    one matrix. Call it under `base.one_thread`, otherwise rows half-way may change sides with the number of threads.

    Cost: O(n_row n_column) and 2-means on max_rows by n_column n_features numbers.
    """
    index, lines, start = _stacked(features)
    chosen = subsample(index.shape[1], max_rows, rng)
    points = _points(index if chosen is None else index[:, chosen], lines)
    if (points == points[0]).all():
        return _smaller(_differing(features, 0 if chosen is None else int(chosen[0])))
    n_point = len(points)
    # the numbers of one start follow those of another: a start draws the same, however many come after it
    draws = [(rng.integers(n_point), rng.random(_N_CANDIDATE)) for _ in range(TWO_MEANS_STARTS)]
    chosen_first, uniform = np.array([start for start, _ in draws]), np.array([number for _, number in draws])
    first, second = two_means_from(points, chosen_first, uniform, TWO_MEANS_STEPS, TWO_MEANS_TOLERANCE)
    direction = second - first
    half_way = 0.5 * float(second @ second - first @ first)
    # of each line once: so rows that are alike stay together, whatever the rounding errors
    column = np.repeat(np.arange(len(features)), start[1:] - start[:-1])
    score = np.einsum("ij,ij->i", lines, direction.reshape(len(features), -1)[column])
    return _smaller(score[index].sum(axis=0) > half_way)


def _stacked(features: Sequence[ColumnFeatures]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lines of all columns one below the other, which of them each cell has, and where each column begins.

    The second comes first: intp (n_column, n_row); float64 (n_line, n_features); intp (n_column + 1,).
    """
    start = np.concatenate([[0], np.cumsum([len(column.table) for column in features])])
    index = np.array([column.index for column in features], np.intp)
    index += start[:-1, None]
    return index, np.concatenate([column.table for column in features]), start


def _points(index: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return float64 (n, n_column * n_features): the rows' features side by side."""
    return lines[index.T].reshape(index.shape[1], -1)


def _differing(features: Sequence[ColumnFeatures], row: int) -> np.ndarray:
    """Return bool (n_row,): the rows whose features differ from those of one row."""
    out = np.zeros(features[0].index.size, bool)
    for column in features:
        out |= (column.table != column.table[column.index[row]]).any(axis=1)[column.index]
    return out


def _smaller(side: np.ndarray) -> np.ndarray | None:
    """Return the smaller side, of two equal ones that without the first row; None where one is empty."""
    n_true, n_false = int(side.sum()), int((~side).sum())
    if n_true == 0 or n_false == 0:
        return None
    return ~side if n_true > n_false or (n_true == n_false and side[0]) else side
