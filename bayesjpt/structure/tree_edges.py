"""Edges of trees: how much pairs of columns say of each other among some rows, and the tree with the most of it."""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel
from bayesjpt.structure.chow_liu import Bins, _information, _pack, _pair


def pairs_of(bins: Bins) -> np.ndarray:
    """Return the rows of a table by any two bins, one column's after the other's, float64 (sum n_bin, sum n_bin)."""
    present = np.concatenate(
        [column_code == np.arange(n)[:, None] for column_code, n in zip(bins.code, bins.n_bin.tolist(), strict=True)]
    )
    out = np.zeros((present.shape[0], present.shape[0]))
    for lo in range(0, present.shape[1], _BLOCK):  # single precision is exact up to 2^24 rows
        part = present[:, lo : lo + _BLOCK].astype(np.float32)
        out += part @ part.T
    return out


_BLOCK = 4096


@kernel
def fill_information(code, n_bin, rows, pairs, share, out):
    """Fill out, float64 (n_column, n_column), with the mutual information of columns times their rows, in nats.

    The rows are those listed, and beside them the whole table's (`pairs_of`), each of which counts `share`. A row
    counts for the pairs of columns that it has cells of.
    """
    n = n_bin.size
    bits, at, count = _pack(code, n_bin, rows, np.arange(n))
    table = np.empty((n_bin.max(), n_bin.max()))
    bin_at = np.zeros(n + 1, np.int64)
    for j in range(n):
        bin_at[j + 1] = bin_at[j] + n_bin[j]
    for j in range(n):
        for k in range(j + 1, n):
            cells = table[: n_bin[j], : n_bin[k]]
            _pair(bits, at, count, rows.size, j, k, cells)
            for a in range(n_bin[j]):
                for b in range(n_bin[k]):
                    cells[a, b] += share * pairs[bin_at[j] + a, bin_at[k] + b]
            out[j, k] = _information(cells, 0.0)
            out[k, j] = out[j, k]


def best_tree(information: np.ndarray, is_labels: np.ndarray) -> np.ndarray:
    """Return the parents in the tree of columns of labels with the most information, -1 at roots, intp (n_column,).

    Prim's algorithm; of equal trees it is the one found from the first column on.
    """
    parents = np.full(is_labels.size, -1, np.intp)
    columns = np.flatnonzero(is_labels)
    if columns.size < 2:
        return parents
    best = np.full(parents.size, -np.inf)
    waiting = is_labels.copy()
    current = int(columns[0])
    for _ in range(1, columns.size):
        waiting[current] = False
        better = waiting & (information[current] > best)
        best[better], parents[better] = information[current][better], current
        current = int(np.argmax(np.where(waiting, best, -np.inf)))
    return parents
