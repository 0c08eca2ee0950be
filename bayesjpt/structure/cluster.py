"""Rows in two clusters by 2-means on the random features of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.structure.dependence import ColumnFeatures, subsample

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
    chosen = subsample(features[0].index.size, max_rows, rng)
    points = _points(features, chosen)
    if (points == points[0]).all():
        return _smaller(_differing(features, 0 if chosen is None else int(chosen[0])))
    starts = [_lloyd(points, *_start(points, rng)) for _ in range(TWO_MEANS_STARTS)]
    _, first, second = min(starts, key=lambda found: found[0])
    return _smaller(_beyond(features, second - first, 0.5 * float(second @ second - first @ first)))


def _start(points: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two of the points, the second far from the first: greedy k-means++ (Arthur and Vassilvitskii, 2007)."""
    first = points[rng.integers(len(points))]
    squares = ((points - first) ** 2).sum(axis=1)
    if not squares.any():  # cannot be: some point differs from the others
        return first, first
    candidates = points[rng.choice(len(points), _N_CANDIDATE, p=squares / squares.sum())]
    left = [np.minimum(squares, ((points - other) ** 2).sum(axis=1)).sum() for other in candidates]
    return first, candidates[int(np.argmin(left))]


def _lloyd(points: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return (sum of squared distances, centres) where 2-means from two centres comes to rest.

    Nearer to the second centre are the rows beyond the plane half-way: so a step is two products of a matrix and a
    vector. It ends where no row changes sides, or the centres move by less than `TWO_MEANS_TOLERANCE`.
    """
    total, n = points.sum(axis=0), len(points)
    squares = float(np.einsum("ij,ij->", points, points))
    tolerance = TWO_MEANS_TOLERANCE * (squares - total @ total / n) / n
    side = np.zeros(n, bool)
    for _ in range(TWO_MEANS_STEPS):
        beyond = points @ (second - first) > 0.5 * (second @ second - first @ first)
        n_beyond = int(beyond.sum())
        if n_beyond in (0, n):  # equal centres, up to rounding errors
            break
        sum_beyond = beyond.astype(np.float64) @ points
        before = first, second
        first, second = (total - sum_beyond) / (n - n_beyond), sum_beyond / n_beyond
        moved = ((first - before[0]) ** 2).sum() + ((second - before[1]) ** 2).sum()
        if moved <= tolerance or np.array_equal(beyond, side):
            break
        side = beyond
    nearer = np.minimum(((points - first) ** 2).sum(axis=1), ((points - second) ** 2).sum(axis=1))
    return float(nearer.sum()), first, second


def _points(features: Sequence[ColumnFeatures], rows: np.ndarray | None) -> np.ndarray:
    """Return float64 (n, n_column * n_features): the rows' features side by side."""
    parts = [column.table[column.index if rows is None else column.index[rows]] for column in features]
    return np.concatenate(parts, axis=1)


def _differing(features: Sequence[ColumnFeatures], row: int) -> np.ndarray:
    """Return bool (n_row,): the rows whose features differ from those of one row."""
    out = np.zeros(features[0].index.size, bool)
    for column in features:
        out |= (column.table != column.table[column.index[row]]).any(axis=1)[column.index]
    return out


def _beyond(features: Sequence[ColumnFeatures], direction: np.ndarray, half_way: float) -> np.ndarray:
    """Return bool (n_row,): the rows whose product with a direction exceeds a number."""
    score = np.zeros(features[0].index.size)
    at = 0
    for column in features:
        width = column.table.shape[1]
        score += (column.table @ direction[at : at + width])[column.index]
        at += width
    return score > half_way


def _smaller(side: np.ndarray) -> np.ndarray | None:
    """Return the smaller side, of two equal ones that without the first row; None where one is empty."""
    n_true, n_false = int(side.sum()), int((~side).sum())
    if n_true == 0 or n_false == 0:
        return None
    return ~side if n_true > n_false or (n_true == n_false and side[0]) else side
