"""Rows in two clusters by 2-means on the random features of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    squares = np.einsum("ij,ij->i", points, points)
    starts = [_start(points, squares, rng) for _ in range(TWO_MEANS_STARTS)]
    totals, centres = _lloyd(points, squares, np.array(starts).transpose(1, 0, 2))
    first, second = centres[:, int(np.argmin(totals))]
    direction = second - first
    half_way = 0.5 * float(second @ second - first @ first)
    # of each line once: so rows that are alike stay together, whatever the rounding errors
    column = np.repeat(np.arange(len(features)), np.diff(start))
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


def _distances(points: np.ndarray, squares: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the squared distances of points, whose squares are given, from one of them, float64 (n,)."""
    return np.maximum(squares + (centre @ centre - 2.0 * (points @ centre)), 0.0)


def _start(points: np.ndarray, squares: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two of the points, the second far from the first: greedy k-means++ (Arthur and Vassilvitskii, 2007)."""
    first = points[rng.integers(len(points))]
    apart = _distances(points, squares, first)
    up_to = np.cumsum(apart)
    if not up_to[-1] > 0.0:  # cannot be: some point differs from the others
        return first, first
    up_to /= up_to[-1]  # what rng.choice does, without its checks
    candidates = points[up_to.searchsorted(rng.random(_N_CANDIDATE), side="right")]
    left = [np.minimum(apart, _distances(points, squares, other)).sum() for other in candidates]
    return first, candidates[int(np.argmin(left))]


def _lloyd(points: np.ndarray, squares: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of squared distances and centres where 2-means from several pairs of centres comes to rest.

    Nearer to the second centre are the rows beyond the plane half-way: so a step of all starts is two products of
    matrices. A start ends where no row changes sides, or the centres move by less than `TWO_MEANS_TOLERANCE`.

    Parameters
    ----------
    points : float64 (n, d)
    squares : float64 (n,)
        Their squared lengths.
    centres : float64 (2, n_start, d)
        Replaced.

    Returns
    -------
    float64 (n_start,), float64 (2, n_start, d)
    """
    total, n = points.sum(axis=0), len(points)
    tolerance = TWO_MEANS_TOLERANCE * (squares.sum() - total @ total / n) / n
    moving = np.arange(centres.shape[1])
    side = np.zeros((moving.size, n), bool)
    for _ in range(TWO_MEANS_STEPS):
        before = centres[:, moving]
        length = np.einsum("ksd,ksd->ks", before, before)
        beyond = (before[1] - before[0]) @ points.T > 0.5 * (length[1] - length[0])[:, None]
        n_beyond = np.count_nonzero(beyond, axis=1)
        apart = (n_beyond > 0) & (n_beyond < n)
        if not apart.all():  # equal centres, up to rounding errors
            moving, before, side = moving[apart], before[:, apart], side[apart]
            beyond, n_beyond = beyond[apart], n_beyond[apart]
        sum_beyond = beyond.astype(np.float64) @ points
        now = np.stack([total - sum_beyond, sum_beyond]) / np.stack([n - n_beyond, n_beyond])[:, :, None]
        centres[:, moving] = now
        step = now - before
        on = np.einsum("ksd,ksd->s", step, step) > tolerance
        on &= (beyond != side).any(axis=1)
        if not on.any():
            break
        moving, side = moving[on], beyond[on]
    length = np.einsum("ksd,ksd->ks", centres, centres)
    distance = length[:, :, None] - 2.0 * (centres @ points.T)
    return squares.sum() + distance.min(axis=0).sum(axis=1), centres


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
