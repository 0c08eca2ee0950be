"""Random features of cells: what dependence coefficients are computed from, and what 2-means divides.

A cell's features depend on its value alone, given the rows at hand. So a column is kept as a table of features, one
line per distinct value, and a position in it per row; a missing cell points at a last line of zeros:

      values     5.1  4.9   ?   5.1          index   1  0  2  1
      table      4.9 -> (-.02, .01, ...)     5.1 -> (.01, -.02, ...)     ? -> (0, 0, ...)

Values are sorted once a table (`make_codes`); a block of rows then needs counts of codes only, of all columns at once.

References: Lopez-Paz, Hennig, Schoelkopf (2013), The randomized dependence coefficient, NIPS; Molina et al. (2018),
Mixed sum-product networks, AAAI, for labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesjpt import defaults
from bayesjpt.structure import base
from bayesjpt.table.table import Table

_CELLS_AT_ONCE = 2**21
"""Cells whose features are made together: 16 MB of positions."""

_LINES_PER_CELL = 4
"""Distinct values of the table, for each cell at hand, up to which counting all of them is cheaper than sorting these
cells."""


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


class Codes(NamedTuple):
    """The cells of a table as ranks among the distinct values of their column.

    Attributes
    ----------
    code : int32 (n_column, n_row)
        0 for the least value; the number of distinct values where the cell is missing.
    n_distinct : int64 (n_column,)
    """

    code: np.ndarray
    n_distinct: np.ndarray

    def constant(self, rows: np.ndarray, scope: np.ndarray) -> np.ndarray:
        """Return bool (n_column,): columns of a scope that hold at most one value in some rows, int (n,)."""
        out = np.empty(scope.size, bool)
        step = max(_CELLS_AT_ONCE // max(rows.size, 1), 1)
        for first in range(0, scope.size, step):
            columns = scope[first : first + step]
            block = self.code[columns[:, None], rows]
            missing = block == self.n_distinct[columns, None]
            least = block.min(axis=1)  # of a missing cell the code is above all others
            out[first : first + step] = ((block == least[:, None]) | missing).all(axis=1)
        return out


def make_codes(table: Table) -> Codes:
    """Return the codes of all cells of a table; cost: O(n_row log n_row) a column."""
    code = np.empty(table.values.shape, np.int32)
    n_distinct = np.empty(table.n_column, np.int64)
    for column, (values, seen) in enumerate(zip(table.values, table.observed, strict=True)):
        distinct, position = np.unique(values[seen], return_inverse=True)
        code[column] = n_distinct[column] = distinct.size
        code[column, seen] = position
    return Codes(code, n_distinct)


def column_features(
    table: Table,
    rows: np.ndarray,
    scope: Iterable[int] | np.ndarray,
    settings: RandomFeatures,
    rng: np.random.Generator,
    codes: Codes | None = None,
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
    codes : Codes, optional
        Of the table, where many blocks of it are asked for.

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

    Cost: O(n_row) a column, given the codes.
    """
    codes = make_codes(table) if codes is None else codes
    scope = np.fromiter(scope, np.intp)
    step = max(_CELLS_AT_ONCE // max(rows.size, 1), 1)
    features: list[ColumnFeatures] = []
    for first in range(0, scope.size, step):
        columns = scope[first : first + step]
        is_label = np.array([table.schema.columns[column].base == "category" for column in columns])
        lines = _present_lines(codes, rows, columns)
        table_of_lines = _feature_lines(lines, is_label, settings, rng)
        ends = lines.start.tolist()
        features += [
            ColumnFeatures(index, table_of_lines[a:b])
            for index, a, b in zip(lines.index, ends[:-1], ends[1:], strict=True)
        ]
    return features


class _Lines(NamedTuple):
    """The distinct values of some columns in some rows, column by column, each with a last line for missing cells.

    Attributes
    ----------
    index : int32 (n_column, n_row)
        Line of each cell, counted from the first of its column.
    start : int64 (n_column + 1,)
        First line of each column.
    column : int64 (n_line,)
        Position of the column that a line belongs to.
    count : int64 (n_line,)
        Cells of each value; 0 for missing ones.
    """

    index: np.ndarray
    start: np.ndarray
    column: np.ndarray
    count: np.ndarray


def _present_lines(codes: Codes, rows: np.ndarray, columns: np.ndarray) -> _Lines:
    code = codes.code[columns[:, None], rows]
    n_line = codes.n_distinct[columns] + 1
    if n_line.sum() > _LINES_PER_CELL * code.size:
        code, n_line = _dense(code, n_line - 1)
    first = np.concatenate([[0], np.cumsum(n_line)])
    missing = first[1:] - 1
    everywhere = code + first[:-1, None]
    count = np.bincount(everywhere.ravel(), minlength=first[-1])
    # missing cells have no part in ranks and means
    count[missing] = 0
    present = count > 0
    present[missing] = True
    place = np.cumsum(present) - 1
    start = np.concatenate([[0], place[missing] + 1])
    local = (place - np.repeat(start[:-1], n_line)).astype(np.int32)
    column = np.repeat(np.arange(columns.size), start[1:] - start[:-1])
    return _Lines(local[everywhere], start, column, count[present])


def _dense(code: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return codes among those at hand, by sorting, and lines of each column; `missing` is the code of such cells."""
    out = np.empty_like(code)
    n_line = np.empty(len(code), np.int64)
    for k, column_code in enumerate(code):
        distinct, position = np.unique(column_code, return_inverse=True)
        n_line[k] = distinct.size + int(distinct[-1] != missing[k])
        out[k] = position
    return out, n_line


def _feature_lines(
    lines: _Lines, is_label: np.ndarray, settings: RandomFeatures, rng: np.random.Generator
) -> np.ndarray:
    """Return the features of all lines, float64 (n_line, n_features); zeros for missing cells.

    Of a number the phase is w u + b for u = average rank / n. An indicator that is 1 in c of n rows has average rank
    (n - c + 1) / 2 at zero and n / 2 more at one: so the phase of a label is the sum of w (n - c + 1) / (2 n) over
    labels, plus w / 2 for its own w, plus b. Each column draws its weights and shifts behind those of the one before.
    """
    k, count, start = settings.n_features, lines.count, lines.start
    n_value = start[1:] - start[:-1] - 1
    n_normal = np.where(is_label, n_value + 1, 2)
    normal = settings.scale * rng.standard_normal((n_normal.sum(), k))
    first = np.cumsum(n_normal) - n_normal
    total = np.maximum(np.add.reduceat(count, start[:-1]), 1)
    n = total[lines.column]
    # a number draws its weight first and then its shift, labels their shift first
    weight = normal[first][lines.column]
    phase = normal[first + 1 - is_label][lines.column]
    at_end = np.cumsum(count)
    # average rank: the last of equal values less half of how many there are but one
    rank = at_end - (at_end[start[:-1]] - count[start[:-1]])[lines.column] - 0.5 * (count - 1)
    number = ~is_label[lines.column]
    if not number.all():
        label = np.flatnonzero(~number)
        position = first[lines.column[label]] + 1 + label - start[lines.column[label]]
        label_weight = normal[np.minimum(position, normal.shape[0] - 1)]
        label_weight[count[label] == 0] = 0.0  # missing cells have no weight
        weight[label] = label_weight
        at_zero = (n[label] - count[label] + 1) / (2.0 * n[label])
        ends = np.cumsum(n_value[is_label] + 1)
        both = np.add.reduceat(at_zero[:, None] * label_weight, ends - n_value[is_label] - 1, axis=0)
        phase[label] += np.repeat(both, n_value[is_label] + 1, axis=0) + 0.5 * label_weight
        weight[label] = 0.0
    phase += (rank / n)[:, None] * weight
    out = _centred(np.sin(phase), count, start, lines.column)
    out[start[1:] - 1] = 0.0
    return out


def _centred(table: np.ndarray, count: np.ndarray, start: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return lines minus their column's mean weighted by counts; exactly zero where a single line of it counts.

    Parameters
    ----------
    table : float64 (n_line, n_features)
    count, start, column : as in `_Lines`
    """
    mean = np.add.reduceat(count[:, None] * table, start[:-1], axis=0)
    mean /= np.maximum(np.add.reduceat(count, start[:-1]), 1)[:, None]
    out = table - mean[column]
    single = start[1:] - start[:-1] < 3  # a value, and the line of missing cells
    if single.any():
        out[single[column]] = 0.0
    return out
