"""The randomised dependence coefficient of all pairs of columns, and the random features that it is made of.

A cell's features depend on its value alone, given the rows at hand. So a column is kept as a table of features, one
line per distinct value, and a position in it per row; a missing cell points at a last line of zeros:

      values     5.1  4.9   ?   5.1          index   1  0  2  1
      table      4.9 -> (-.02, .01, ...)     5.1 -> (.01, -.02, ...)     ? -> (0, 0, ...)

References: Lopez-Paz, Hennig, Schoelkopf (2013), The randomized dependence coefficient, NIPS; Molina et al. (2018),
Mixed sum-product networks, AAAI, for labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesjpt import defaults
from bayesjpt.structure import base
from bayesjpt.table.table import Table

RDC_TOLERANCE = 1e-7
"""Singular values over the largest; directions below are redundant. That of R's `cancor`, which the program of
Lopez-Paz et al. (2013) calls: about four directions of a number remain, polynomials of its rank in effect."""

RDC_CHANCE = 1.0
"""Singular values of independent normals above the sum of the roots of their matrix's dimensions, once in a thousand
times: 0.9 to 1.5 by simulation, see `structure.dependence.chance`."""

RDC_COMMON_TOLERANCE = 1e-10
"""Variance, of 1 over all rows, that a direction must keep on the rows common to two columns: far above the rounding
errors of sums over 10^4 rows, far below one row's share."""


@dataclass(frozen=True)
class RandomFeatures:
    """How cells are turned into features.

    Parameters
    ----------
    n_features : int
        Features a column (k in the paper).
    scale : float
        Standard deviation of the random weights (s in the paper).
    max_rows : int
        Coefficients and cluster centres are found on at most so many rows, drawn without replacement.
    """

    n_features: int = defaults.RDC_N_FEATURES
    scale: float = defaults.RDC_SCALE
    max_rows: int = defaults.RDC_MAX_ROWS

    def __post_init__(self):
        base.check_count("n_features", self.n_features)
        base.check_positive("scale", self.scale)
        base.check_count("max_rows", self.max_rows)


class ColumnFeatures(NamedTuple):
    """Random features of one column on some rows.

    Attributes
    ----------
    index : int32 (n_row,)
        Line of the table for each row; the last line where the cell is missing.
    table : float64 (n_distinct + 1, n_features)
        Features of each distinct value, with mean zero over the observed cells; the last line is zero.
    """

    index: np.ndarray
    table: np.ndarray

    @property
    def n_distinct(self) -> int:
        return self.table.shape[0] - 1


def column_features(
    table: Table,
    rows: np.ndarray,
    scope: Iterable[int] | np.ndarray,
    settings: RandomFeatures,
    rng: np.random.Generator,
) -> list[ColumnFeatures]:
    """Return the random features of some columns on some rows, one ColumnFeatures a column.

    Parameters
    ----------
    table : Table
    rows : intp (n_row,)
    scope : int (n_column,), or any iterable of int
        Columns.
    settings : RandomFeatures
    rng : numpy.random.Generator

    Notes
    -----
    A number x is replaced by its empirical copula u, rank / n over the observed cells; equal values share their
    *average* rank, so that turning a scale around changes nothing but u to 1 + 1/n - u. Its features are
    sin(w u + b) with w, b ~ N(0, scale^2). The paper's formula is followed; the authors' program also divides
    by the number of inputs (2 for a number, labels + 1 for a category), which would silence columns of many labels
    among the others when rows are clustered.

    Only columns of base ``category`` are one-hot: each label becomes an indicator, whose average ranks differ by one
    half, and the features are sin(sum of w_label u_label + b). Integer columns are ordered, hence ranked like reals;
    ABDA's program one-hots every column that the user calls discrete.

    Cost: O(n_row log n_row) a column.
    """
    features = []
    for column in scope:
        seen = table.observed[column, rows]
        values = table.values[column, rows]
        if not seen.all():
            values = values[seen]
        distinct, position, counts = np.unique(values, return_inverse=True, return_counts=True)
        if table.schema.columns[column].base == "category":
            phase = _label_phase(counts, settings, rng)
        else:
            phase = _number_phase(counts, settings, rng)
        index = np.full(rows.size, distinct.size, np.int32)
        index[seen] = position
        lines = np.zeros((distinct.size + 1, settings.n_features))
        lines[:-1] = _centred(np.sin(phase), counts)
        features.append(ColumnFeatures(index, lines))
    return features


def _number_phase(counts: np.ndarray, settings: RandomFeatures, rng: np.random.Generator) -> np.ndarray:
    """Return w u + b, float64 (n_distinct, n_features), for the distinct values of numbers in ascending order."""
    weight, shift = settings.scale * rng.standard_normal((2, settings.n_features))
    rank = np.cumsum(counts) - 0.5 * (counts - 1)
    return (rank / max(counts.sum(), 1))[:, None] * weight + shift


def _label_phase(counts: np.ndarray, settings: RandomFeatures, rng: np.random.Generator) -> np.ndarray:
    """Return the sum of w_label u_label, plus b, float64 (n_distinct, n_features), for each observed label.

    An indicator that is 1 in c of n rows has average rank (n - c + 1) / 2 at zero and n / 2 more at one.
    """
    n = counts.sum()
    shift = settings.scale * rng.standard_normal(settings.n_features)
    weights = settings.scale * rng.standard_normal((counts.size, settings.n_features))
    at_zero = (n - counts + 1) / (2.0 * max(n, 1))
    return shift + (at_zero[:, None] * weights).sum(axis=0) + 0.5 * weights


def _centred(lines: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return lines minus their mean weighted by counts; exactly zero where a single line counts."""
    if np.count_nonzero(counts) < 2:
        return np.zeros_like(lines)
    return lines - (counts[:, None] * lines).sum(axis=0) / counts.sum()


def subsample(n_row: int, max_rows: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return `max_rows` positions below `n_row`, ascending, drawn without replacement; None where all are taken."""
    if n_row <= max_rows:
        return None
    return np.sort(rng.choice(n_row, max_rows, replace=False))


def whiten(column: ColumnFeatures, rows: np.ndarray | None = None) -> ColumnFeatures:
    """Return features that are orthonormal over the observed cells of some rows, fewer where some are redundant.

    Parameters
    ----------
    column : ColumnFeatures
    rows : intp (n,), optional
        Positions in the column's index; all unless given.

    Returns
    -------
    ColumnFeatures
        ``index`` has one entry per row of `rows`; the columns of ``table[index]`` have mean 0 and are orthonormal.
        Directions whose singular value lies below `RDC_TOLERANCE` times the largest are dropped. A column
        that is constant on the rows has none left.

    Notes
    -----
    The singular values of the features over n rows are those of the lines, each times the root of its count.
    """
    if rows is None:
        index, lines = column.index, column.table[:-1]
    else:
        used, index = np.unique(column.index[rows], return_inverse=True)
        index = index.astype(np.int32)
        lines = column.table[used[: used.size - int(used[-1] == column.n_distinct)]]
    n_distinct = len(lines)
    counts = np.bincount(index, minlength=n_distinct)[:n_distinct]
    lines = _centred(lines, counts)
    _, singular, directions = np.linalg.svd(np.sqrt(counts)[:, None] * lines, full_matrices=False)
    kept = singular > RDC_TOLERANCE * max(singular[:1], default=0.0)
    table = np.zeros((n_distinct + 1, int(kept.sum())))
    table[:-1] = (lines @ directions[kept].T) / singular[kept]
    return ColumnFeatures(index, table)


def coefficients(features: Sequence[ColumnFeatures], rows: np.ndarray | None = None) -> np.ndarray:
    """Return the randomised dependence coefficient of every pair of columns, float64 (n_column, n_column), in [0, 1].

    Parameters
    ----------
    features : sequence of ColumnFeatures
    rows : intp (n,), optional
        Positions in the features' index that are used; all unless given.

    Returns
    -------
    numpy.ndarray
        Symmetric, 1 on the diagonal. 0 for a column that is constant, and for two columns that are observed
        together in fewer than two rows.

    Notes
    -----
    The coefficient is the largest canonical correlation of the two columns' features over the rows in which both
    cells are observed: exactly so, from one whitening per column; only pairs with missing cells need the covariances
    of their common rows. Ranks are those over each column's own observed cells.

    For independent columns it is not 0 but nearly (sqrt(p) + sqrt(q)) / sqrt(n), see `chance`.

    Cost: O(n_row (n_column n_features)^2), and as much per column with missing cells.
    """
    return largest_correlations([whiten(column, rows) for column in features])


def chance(white: Sequence[ColumnFeatures]) -> np.ndarray:
    """Return what the coefficients of independent columns exceed about once in a thousand pairs.

    Parameters
    ----------
    white : sequence of ColumnFeatures
        Whitened.

    Returns
    -------
    float64 (n_column, n_column)
        (sqrt(p) + sqrt(q) + 1) / sqrt(n) for columns with p and q features left (about 4 for numbers, one less than
        labels for categories, 10 at most) that n rows hold together; at least as much above 1 where n is small.

    Notes
    -----
    Whitened features of independent columns over n rows multiply to nearly a matrix of independent normals of variance
    1/n, whose largest singular value seldom exceeds (sqrt(p) + sqrt(q)) / sqrt(n) by much (Davidson and Szarek, 2001,
    Local operator theory, random matrices and Banach spaces, theorem II.13). Of 60 to 5,000 rows, numbers and 2 to 20
    labels, one simulated pair in a thousand exceeds it by 0.9 to 1.5 over sqrt(n).
    """
    seen = np.array([column.index < column.n_distinct for column in white], np.float64)
    root = np.sqrt([column.table.shape[1] for column in white])
    return (root[:, None] + root + RDC_CHANCE) / np.sqrt(np.maximum(seen @ seen.T, 1.0))


def largest_correlations(white: Sequence[ColumnFeatures]) -> np.ndarray:
    """Return what `coefficients` does, from features that are whitened already."""
    n_row = white[0].index.size
    width = max(1, *(column.table.shape[1] for column in white))
    blocks = np.zeros((n_row, len(white), width))
    seen = np.empty((len(white), n_row), bool)
    for position, column in enumerate(white):
        blocks[:, position, : column.table.shape[1]] = column.table[column.index]
        seen[position] = column.index < column.n_distinct
    complete = seen.all(axis=1)
    whiteners = None if complete.all() else _common_whiteners(blocks, seen, complete)
    out = np.eye(len(white))
    for first in range(len(white) - 1):
        # (width, n_row) @ (n_row, columns after this one)
        cross = blocks[:, first].T @ blocks[:, first + 1 :].reshape(n_row, -1)
        cross = cross.reshape(width, -1, width).transpose(1, 0, 2)
        if whiteners is not None:
            others = np.arange(first + 1, len(white))
            cross = cross - whiteners.mean_product(first, others)
            cross = whiteners.factor[first, others].transpose(0, 2, 1) @ cross @ whiteners.factor[others, first]
        largest = np.linalg.svd(cross, compute_uv=False)[:, 0]
        out[first, first + 1 :] = out[first + 1 :, first] = np.minimum(largest, 1.0)
    return out


class _Whiteners(NamedTuple):
    """What makes features white again on the rows common to two columns.

    Attributes
    ----------
    factor : float64 (n_column, n_column, width, width)
        ``factor[a, b]`` whitens the features of a on the rows observed in a and b.
    total : float64 (n_column, n_column, width)
        ``total[a, b]`` sums the features of a over the rows observed in b.
    n_common : float64 (n_column, n_column)
    """

    factor: np.ndarray
    total: np.ndarray
    n_common: np.ndarray

    def mean_product(self, first: int, others: np.ndarray) -> np.ndarray:
        """Return (n_other, width, width): what centring on the common rows takes from each cross product."""
        product = self.total[first, others][:, :, None] * self.total[others, first][:, None, :]
        return product / np.maximum(self.n_common[first, others], 1.0)[:, None, None]


def _common_whiteners(blocks: np.ndarray, seen: np.ndarray, complete: np.ndarray) -> _Whiteners:
    n_column, width = blocks.shape[1:]
    mask = seen.astype(np.float64)
    n_common = mask @ mask.T
    total = np.zeros((n_column, n_column, width))
    factor = np.zeros((n_column, n_column, width, width))
    for second in range(n_column):
        part = blocks if complete[second] else blocks[seen[second]]
        total[:, second] = part.sum(axis=0)
        by_column = part.transpose(1, 0, 2)
        covariance = by_column.transpose(0, 2, 1) @ by_column
        outer = total[:, second, :, None] * total[:, second, None, :]
        covariance -= outer / np.maximum(n_common[:, second], 1.0)[:, None, None]
        variance, direction = np.linalg.eigh(covariance)
        kept = variance > RDC_COMMON_TOLERANCE
        root = np.where(kept, 1.0 / np.sqrt(np.where(kept, variance, 1.0)), 0.0)
        factor[:, second] = direction * root[:, None, :]
    return _Whiteners(factor, total, n_common)


def dependence(
    table: Table,
    rng: int | np.random.Generator | None = None,
    *,
    n_features: int = defaults.RDC_N_FEATURES,
    scale: float = defaults.RDC_SCALE,
    max_rows: int = defaults.RDC_MAX_ROWS,
) -> np.ndarray:
    """Return the randomised dependence coefficient of every pair of a table's columns, float64 (n_column, n_column).

    Parameters
    ----------
    table : Table
    rng : int, numpy.random.Generator or None
        Draws the weights, and the rows where there are more than `max_rows`.
    n_features, scale, max_rows
        See `RandomFeatures`.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, or `rng` is not a Generator.

    See Also
    --------
    coefficients : what the numbers mean.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesjpt.table.table import as_table
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> table = as_table(pd.DataFrame({"x": x, "square": x**2, "other": rng.normal(size=500)}))
    >>> dependence(table, rng) > 0.3
    array([[ True,  True, False],
           [ True,  True, False],
           [False, False,  True]])
    """
    rng = base.check_input(table, rng)
    settings = RandomFeatures(n_features, scale, max_rows)
    with base.one_thread():
        features = column_features(table, np.arange(table.n_row), range(table.n_column), settings, rng)
        return coefficients(features, subsample(table.n_row, settings.max_rows, rng))
