"""Rows as what is unusual in them: rows that are alike stand together, and cells of a column's usual bin are left out.

      row 7   . . 2 . . 1 .      column 2: bin 2, column 5: bin 1      cost of a row: its unusual cells
      row 9   . . 2 . . 1 .      the same row, counted, not repeated

It knows nothing of what is asked of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.structure.chow_liu import Bins


class DistinctRows(NamedTuple):
    """The rows of a table, those that are alike behind each other.

    Attributes
    ----------
    bins : Bins
        The rows in this order.
    order : intp (n_row,)
        Their positions in the table.
    first : int64 (n_distinct + 1,)
        Where the rows that are alike begin.
    usual : int16 (n_column,)
        The most frequent bin of each column.
    ptr : int64 (n_distinct + 1,)
        Where the unusual cells of each distinct row begin.
    column, code : int32, int16 (n_unusual,)
        Of each of these cells; -1 where missing.
    """

    bins: Bins
    order: np.ndarray
    first: np.ndarray
    usual: np.ndarray
    ptr: np.ndarray
    column: np.ndarray
    code: np.ndarray

    @property
    def n_distinct(self) -> int:
        """Rows that differ from each other."""
        return self.first.size - 1

    def in_order(self, values: np.ndarray) -> np.ndarray:
        """Return values of distinct rows, (n_distinct,), for all rows of the table, (n_row,)."""
        return self.in_table(np.repeat(values, np.diff(self.first)))

    def in_table(self, values: np.ndarray) -> np.ndarray:
        """Return values of the rows as they stand here, (n_row,), in the table's order."""
        out = np.empty_like(values)
        out[self.order] = values
        return out


def usual_bins(bins: Bins) -> np.ndarray:
    """Return the most frequent bin of each column, int16 (n_column,); 0 of columns without cells."""
    counts = (np.bincount(x[x >= 0], minlength=n) for x, n in zip(bins.code, bins.n_bin.tolist(), strict=True))
    return np.array([int(count.argmax()) for count in counts], np.int16)


def distinct_rows(bins: Bins, usual: np.ndarray) -> DistinctRows:
    """Return the rows of a table, those that are alike behind each other.

    Examples
    --------
    >>> rows = distinct_rows(Bins(np.array([[0, 1, 0], [0, 0, 0]], np.int16), np.array([2, 2])), np.zeros(2, np.int16))
    >>> rows.order.tolist(), rows.first.tolist(), rows.column.tolist()
    ([0, 2, 1], [0, 2, 3], [0])
    """
    code = np.ascontiguousarray(bins.code.T)
    # a row as one word of bytes: rows are equal where their bytes are
    words = code.view(np.dtype((np.void, code.dtype.itemsize * code.shape[1]))).ravel()
    _, which = np.unique(words, return_inverse=True)
    # stable: rows that are alike stay in the table's order
    order = np.argsort(which, kind="stable")
    first = np.concatenate([np.flatnonzero(np.diff(which[order], prepend=-1)), [order.size]]).astype(np.int64)
    row_code = code[order[first[:-1]]]
    row, column = np.nonzero(row_code != usual)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=row_code.shape[0]))]).astype(np.int64)
    ordered = Bins(np.ascontiguousarray(bins.code[:, order]), bins.n_bin)
    return DistinctRows(ordered, order, first, usual, ptr, column.astype(np.int32), row_code[row, column])
