"""The randomised dependence coefficient of all pairs of columns, and which columns it holds together.

Features of cells, and how a column is kept as a table of them, are explained in `bayesjpt.structure.features`.

References: Lopez-Paz, Hennig, Schoelkopf (2013), The randomized dependence coefficient, NIPS; Molina et al. (2018),
Mixed sum-product networks, AAAI, for labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt import defaults
from bayesjpt.structure import base
from bayesjpt.structure.components import components, joined
from bayesjpt.structure.features import ColumnFeatures, RandomFeatures, column_features
from bayesjpt.table.table import Table

RDC_TOLERANCE = 1e-7
"""Singular values over the largest; directions below are redundant. That of R's `cancor`, which the program of
Lopez-Paz et al. (2013) calls: about four directions of a number remain, polynomials of its rank in effect."""

RDC_CHANCE = 1.0
"""Singular values of independent normals above the sum of the roots of their matrix's dimensions, once in a thousand
times: 0.9 to 1.5 by simulation, see `structure.dependence.chance`."""

RDC_CHANCE_PER_DECADE = 0.75
"""What they exceed once in ten thousand times lies 0.5 above that, and once in a hundred thousand as far again; more is
added, since 1.0 is exceeded three times in a thousand: see `structure.dependence.chance`."""

RDC_CHANCE_PAIRS = 100
"""Pairs of a block up to which one in a thousand may seem dependent by chance: a tenth of a pair, and as many of blocks
with more. One such pair joins two groups of columns."""

RDC_COMMON_TOLERANCE = 1e-10
"""Variance, of 1 over all rows, that a direction must keep on the rows common to two columns: far above the rounding
errors of sums over 10^4 rows, far below one row's share."""


_CROSS_NUMBERS = 2**22
"""Features that `whiten_all` has in memory at once: 32 MB."""

_COLUMNS_AT_ONCE = 32
"""Columns that `hold_together` compares with others at a time: enough for products of matrices to be fast."""

_FEW_COLUMNS = 6
"""Columns of which all coefficients are found sooner than bounds of them."""

_MARGIN = 1e-9
"""By which a bound of a coefficient has to differ from the threshold to decide, relative: far above rounding errors."""

_FEW_VALUES = 16
"""Lines of zeros that a table may get, beside as many as it has, to be whitened with others: they cost less than a
call."""

_PAIRS_AT_ONCE = 512
"""Pairs whose coefficients are found before those that have become needless are left out."""


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
    counts = np.bincount(index, minlength=n_distinct + 1)
    # missing cells do not count for mean and variance
    counts[n_distinct] = 0
    lines = np.concatenate([lines, np.zeros((1, lines.shape[1]))])
    return _whitened([index], lines[None], counts[None], np.array([n_distinct]))[0]


def whiten_all(features: Sequence[ColumnFeatures], rows: np.ndarray | None = None) -> list[ColumnFeatures]:
    """Return what `whiten` returns of each column, of columns with about as many values at once."""
    if rows is not None:
        return [whiten(column, rows) for column in features]
    out: list[ColumnFeatures] = list(features)
    n_distinct = np.array([column.n_distinct for column in features])
    left = np.argsort(n_distinct)
    while left.size:
        most = min(2 * int(n_distinct[left[0]]) + _FEW_VALUES, int(n_distinct[left[-1]]))
        n_batch = min(int(np.searchsorted(n_distinct[left], most, side="right")), max(_CROSS_NUMBERS // (most + 1), 1))
        batch, left = left[:n_batch], left[n_batch:]
        n_line = int(n_distinct[batch[-1]]) + 1  # one for missing cells
        index = [features[k].index for k in batch]
        lines = np.zeros((n_batch, n_line, features[0].table.shape[1]))
        for column_lines, k in zip(lines, batch, strict=True):
            column_lines[: n_distinct[k]] = features[k].table[:-1]
        position = np.array(index, np.intp) + n_line * np.arange(n_batch)[:, None]
        counts = np.bincount(position.ravel(), minlength=n_batch * n_line).reshape(n_batch, n_line)
        counts[np.arange(n_batch), n_distinct[batch]] = 0
        for k, white in zip(batch, _whitened(index, lines, counts, n_distinct[batch]), strict=True):
            out[k] = white
    return out


def _whitened(
    index: Sequence[np.ndarray], lines: np.ndarray, counts: np.ndarray, n_distinct: np.ndarray
) -> list[ColumnFeatures]:
    """Return whitened columns.

    Parameters
    ----------
    index : sequence of int32 (n_row,)
    lines : float64 (n_column, n_line, n_features)
        The first n_distinct of a column matter.
    counts : int64 (n_column, n_line)
        0 behind these.
    n_distinct : int64 (n_column,)
        Less than n_line.
    """
    mean = (counts[:, None] @ lines) / np.maximum(counts.sum(axis=1), 1)[:, None, None]
    lines = lines - mean
    lines[np.count_nonzero(counts, axis=1) < 2] = 0.0
    # singular values of all rows are those of distinct lines, each times the root of its count
    _, singular, directions = np.linalg.svd(np.sqrt(counts)[:, :, None] * lines, full_matrices=False)
    kept = singular > RDC_TOLERANCE * singular[:, :1]
    table = lines @ directions.transpose(0, 2, 1) / np.where(kept, singular, 1.0)[:, None]
    table[np.arange(len(index)), n_distinct] = 0.0
    width = kept.sum(axis=1).tolist()  # singular values descend, so those kept come first
    sizes = zip(index, table, n_distinct.tolist(), width, strict=True)
    return [ColumnFeatures(column_index, white[: n + 1, :p]) for column_index, white, n, p in sizes]


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
    """Return what the coefficients of independent columns exceed about once in a thousand pairs, and in ten tables.

    Parameters
    ----------
    white : sequence of ColumnFeatures
        Whitened.

    Returns
    -------
    float64 (n_column, n_column)
        (sqrt(p) + sqrt(q) + c) / sqrt(n) for columns with p and q features left (about 4 for numbers, one less than
        labels for categories, 10 at most) that n rows hold together; at least as much above 1 where n is small. c is 1
        for up to 14 columns, and 0.75 more for each tenfold of 100 pairs.

    Notes
    -----
    Whitened features of independent columns over n rows multiply to nearly a matrix of independent normals of variance
    1/n, whose largest singular value seldom exceeds (sqrt(p) + sqrt(q)) / sqrt(n) by much (Davidson and Szarek, 2001,
    Local operator theory, random matrices and Banach spaces, theorem II.13). Of 60 to 5,000 rows, numbers and 2 to 20
    labels, one simulated pair in a thousand exceeds it by 0.9 to 1.5 over sqrt(n). The largest of the 2,415 pairs of 70
    columns exceeds it by 2.04 over sqrt(n), which is c there, in 1 to 14 of 100 simulated tables of 60 to 400 rows.
    """
    root = np.sqrt([column.table.shape[1] for column in white])
    n_pair = len(white) * (len(white) - 1) / 2
    excess = RDC_CHANCE + RDC_CHANCE_PER_DECADE * np.log10(max(n_pair / RDC_CHANCE_PAIRS, 1.0))
    seen = _seen(white)
    if seen.all():
        return (root[:, None] + root + excess) / np.sqrt(max(seen.shape[1], 1.0))
    seen = seen.astype(np.float64)
    return (root[:, None] + root + excess) / np.sqrt(np.maximum(seen @ seen.T, 1.0))


def _seen(white: Sequence[ColumnFeatures]) -> np.ndarray:
    """Return bool (n_column, n_row): cells that are observed."""
    return np.array([column.index for column in white]) < np.array([[column.n_distinct] for column in white])


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
        # rounding alone carries a correlation above 1
        out[first, first + 1 :] = out[first + 1 :, first] = np.minimum(largest, 1.0)
    return out


def hold_together(white: Sequence[ColumnFeatures], threshold: float | np.ndarray) -> np.ndarray:
    """Return the connected components of "coefficient >= threshold", intp (n_column,): the first column of each.

    Parameters
    ----------
    white : sequence of ColumnFeatures
        Whitened.
    threshold : float or float64 (n_column, n_column)

    Notes
    -----
    The coefficient is the largest singular value s of a matrix C of cross products. Only pairs that could join two
    components, and that no bound decides, have it computed:

        trace((C C')^2) / trace(C C') <= s^2 <= trace((C C')^2)^(1/2) <= trace(C C')

    Columns are compared some at a time, those of the largest component first, and only with columns that are not
    known to hang together with them: where few components remain, most pairs are never looked at.

    Of few columns, and where a cell is missing, all pairs are computed.
    """
    n_column = len(white)
    threshold = np.broadcast_to(np.asarray(threshold, np.float64), (n_column, n_column))
    if n_column <= _FEW_COLUMNS or not _seen(white).all():
        return components(largest_correlations(white) >= threshold)
    width = np.array([max(column.table.shape[1], 1) for column in white])
    start = np.concatenate([[0], np.cumsum(width)])
    block = np.zeros((start[-1], white[0].index.size))
    for column, at in zip(white, start.tolist(), strict=False):
        block[at : at + column.table.shape[1]] = column.table.T[:, column.index]
    features = _Blocks(block, start, width)
    found, left = np.arange(n_column), np.arange(n_column)
    while True:
        # columns of the largest component first: they are compared with those outside alone
        size = np.bincount(found, minlength=n_column)[found[left]]
        left = left[np.lexsort((left, found[left], -size))]
        now, left = left[:_COLUMNS_AT_ONCE], left[_COLUMNS_AT_ONCE:]
        others = left if (found[now] != found[now[0]]).any() else left[found[left] != found[now[0]]]
        found = _compared(features, now, np.concatenate([now, others]), threshold, found)
        if (found[left] == found[left[:1]]).all():
            return found


class _Blocks(NamedTuple):
    """Whitened features of columns, one column below the other.

    Attributes
    ----------
    lines : float64 (n_line, n_row)
    start : int (n_column + 1,)
        Where the lines of each column begin.
    width : int (n_column,)
        How many there are.
    """

    lines: np.ndarray
    start: np.ndarray
    width: np.ndarray

    def of(self, columns: np.ndarray) -> _Blocks:
        """Return those of some columns."""
        width = self.width[columns]
        start = np.concatenate([[0], np.cumsum(width)])
        chosen = np.repeat(self.start[columns] - start[:-1], width) + np.arange(start[-1])
        return _Blocks(self.lines[chosen], start, width)


def _compared(
    features: _Blocks, now: np.ndarray, others: np.ndarray, threshold: np.ndarray, component: np.ndarray
) -> np.ndarray:
    """Return the components of columns after some, `now`, were compared with others, of which they are the first."""
    left = features.of(now)
    right = left if now.size == others.size else features.of(others)
    cross = left.lines @ right.lines.T
    square = np.add.reduceat(cross * cross, left.start[:-1], axis=0)
    square = np.add.reduceat(square, right.start[:-1], axis=1)
    wanted = threshold[now[:, None], others]
    rank = np.minimum(left.width[:, None], right.width)
    possible = (square >= wanted**2 * (1.0 - _MARGIN)) & (np.arange(now.size)[:, None] < np.arange(others.size))
    # a square of 0 never exceeds a threshold of 0 by a margin, and reaches it
    certain = (square >= rank * wanted**2 * (1.0 + _MARGIN)) & (wanted <= 1.0) & possible
    a, b = np.nonzero(certain)
    component = joined(component, now[a], others[b])
    a, b = np.nonzero(possible & ~certain)
    while True:
        apart = component[now[a]] != component[others[b]]
        if not apart.any():
            return component
        a, b = a[apart], b[apart]
        these, those = a[:_PAIRS_AT_ONCE], b[:_PAIRS_AT_ONCE]
        reached = _reaches(_padded(cross, (left, right), these, those), wanted[these, those])
        component = joined(component, now[these[reached]], others[those[reached]])
        a, b = a[_PAIRS_AT_ONCE:], b[_PAIRS_AT_ONCE:]


def _padded(cross: np.ndarray, features: tuple[_Blocks, _Blocks], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross products of some pairs, float64 (n_pair, width, width), zeros beyond those of narrow columns."""
    left, right = features
    each = np.arange(max(left.width[a].max(), right.width[b].max()))
    first, second = (
        np.minimum(each, blocks.width[k, None] - 1) + blocks.start[k, None] for blocks, k in ((left, a), (right, b))
    )
    inside = (each < left.width[a, None])[:, :, None] & (each < right.width[b, None])[:, None, :]
    return np.where(inside, cross[first[:, :, None], second[:, None, :]], 0.0)


def _reaches(cross: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Return bool (n_pair,): whether the largest singular value of each matrix, at most 1, reaches a threshold."""
    product = cross @ cross.transpose(0, 2, 1)
    square, fourth = np.einsum("pii->p", product), np.einsum("pij,pij->p", product, product)
    reached = fourth >= square * threshold**2 * (1.0 + _MARGIN)
    reached &= (threshold <= 1.0) & (square > 0.0)
    unsure = np.flatnonzero(~reached & (fourth >= threshold**4 * (1.0 - _MARGIN)))
    if unsure.size:
        largest = np.linalg.svd(cross[unsure], compute_uv=False)[:, 0]
        reached[unsure] = np.minimum(largest, 1.0) >= threshold[unsure]
    return reached


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
