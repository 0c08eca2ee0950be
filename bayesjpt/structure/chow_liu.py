"""Chow-Liu trees: of all trees of some columns, the one under which rows are most probable.

Cells are codes of bins, -1 where missing: groups of labels, or intervals of numbers. Rows are counted 64 at once:

      column   bin 1   0110...   rows of that bin, a bit each        rows with a = 1 and b = 1:  bits set in both
               known   1111...   rows with a cell

Bin 0 needs no bits: what is not in the other bins is there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.bits import count_bits, count_both_bits
from bayesjpt.numerics.jit import kernel, read_only


class Bins(NamedTuple):
    """The columns of a table as codes.

    Attributes
    ----------
    code : int16 (n_column, n_row)
        The bin of each cell, -1 where it is missing.
    n_bin : int64 (n_column,)
    """

    code: np.ndarray
    n_bin: np.ndarray


class ChowLiu(NamedTuple):
    """A tree of columns.

    Attributes
    ----------
    parents : int64 (n,)
        Position of each column's parent among the columns; -1 for the first.
    log_likelihood : float, nats
        Of the rows' bins, at the shares that these rows have.
    """

    parents: np.ndarray
    log_likelihood: float


def chow_liu(bins: Bins, rows: np.ndarray, columns: np.ndarray, ess: float) -> ChowLiu:
    """Return the tree of columns with the largest sum of mutual information.

    Parameters
    ----------
    bins : Bins
    rows : intp (n_row,)
    columns : intp (n,)
    ess : float
        Imaginary rows that are spread evenly over the pairs of bins of any two columns.

    Notes
    -----
    Prim's algorithm; the information of two columns is found when the first of them joins the tree. A row counts for
    the pairs of columns that it has cells of. Of equal trees it is the one that Prim finds from the first column on.

    Cost: O(n^2 n_row n_bin^2 / 64), n_bin^2 being (n_bin - 1)^2 where no cell is missing.

    References
    ----------
    Chow and Liu (1968). Approximating discrete probability distributions with dependence trees. IEEE Transactions on
    Information Theory 14(3).

    Examples
    --------
    >>> a = np.array([0, 0, 1, 1, 0, 1, 0, 1], np.int16)
    >>> b = np.array([0, 1, 0, 1, 1, 0, 1, 0], np.int16)
    >>> bins = Bins(np.stack([a, b, a]), np.array([2, 2, 2]))
    >>> chow_liu(bins, np.arange(8), np.arange(3), 1.0).parents.tolist()
    [-1, 0, 0]
    """
    code = read_only(bins.code)
    return ChowLiu(*_chow_liu(code, bins.n_bin, np.asarray(rows, np.int64), np.asarray(columns, np.int64), ess))


def independent_log_likelihood(bins: Bins, rows: np.ndarray, columns: np.ndarray) -> float:
    """Return the log likelihood of the rows' bins with all columns apart, at the shares that these rows have."""
    return float(_alone(bins.code, bins.n_bin, np.asarray(rows, np.int64), np.asarray(columns, np.int64)))


def bins_in_use(bins: Bins, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return how many bins of each column hold any of the rows, int64 (n_column,)."""
    return _in_use(bins.code, bins.n_bin, np.asarray(rows, np.int64), np.asarray(columns, np.int64))


@kernel
def x_log_x(x):
    """Return x log x, 0 at 0."""
    return x * math.log(x) if x > 0.0 else 0.0


@kernel
def _pack(code, n_bin, rows, columns):
    """Return (bits, at, count, n_known): words of bins 1, 2, ... and then of known cells, counted, column by column."""
    n_word = (rows.size + 63) // 64
    at = np.zeros(columns.size + 1, np.int64)
    for j in range(columns.size):
        at[j + 1] = at[j] + n_bin[columns[j]]  # one for each bin but the first, and one for known cells
    bits = np.zeros((at[-1], n_word), np.uint64)
    count = np.zeros(at[-1], np.int64)
    for j in range(columns.size):
        x, first, last = code[columns[j]], at[j], at[j + 1] - 1
        for i in range(rows.size):
            bin_ = x[rows[i]]
            # row i is bit i modulo 64 of word i div 64
            bit = np.uint64(1) << np.uint64(i & 63)
            if bin_ >= 0:
                bits[last, i >> 6] |= bit
                count[last] += 1
            if bin_ > 0:
                bits[first + bin_ - 1, i >> 6] |= bit
                count[first + bin_ - 1] += 1
    return bits, at, count


@kernel
def _pair(bits, at, count, n_row, j, k, out):
    """Fill out, float64 (n_bin of j, n_bin of k), with the rows in each pair of bins; return how many these are."""
    n_j, n_k = at[j + 1] - at[j], at[k + 1] - at[k]
    known_j, known_k = at[j + 1] - 1, at[k + 1] - 1
    whole_j, whole_k = count[known_j] == n_row, count[known_k] == n_row
    n = n_row if whole_j and whole_k else count_both_bits(bits[known_j], bits[known_k])
    # what is not in another bin is in bin 0: its entries are what is left of the margins
    out[0, 0] = n
    for a in range(1, n_j):
        out[a, 0] = count[at[j] + a - 1] if whole_k else count_both_bits(bits[at[j] + a - 1], bits[known_k])
        out[0, 0] -= out[a, 0]
    for b in range(1, n_k):
        out[0, b] = count[at[k] + b - 1] if whole_j else count_both_bits(bits[known_j], bits[at[k] + b - 1])
        for a in range(1, n_j):
            out[a, b] = count_both_bits(bits[at[j] + a - 1], bits[at[k] + b - 1])
            out[a, 0] -= out[a, b]
            out[0, b] -= out[a, b]
        out[0, 0] -= out[0, b]
    return n


@kernel
def _information(table, ess):
    """Return the mutual information of a table of counts with `ess` spread evenly over it, times their sum; nats."""
    each = ess / table.size
    total, value = 0.0, 0.0
    for a in range(table.shape[0]):
        of_row = 0.0
        for b in range(table.shape[1]):
            of_row += table[a, b] + each
            value += x_log_x(table[a, b] + each)
        value -= x_log_x(of_row)
        total += of_row
    for b in range(table.shape[1]):
        of_column = 0.0
        for a in range(table.shape[0]):
            of_column += table[a, b] + each
        value -= x_log_x(of_column)
    return value + x_log_x(total)


@kernel
def _entropy_terms(count, at, j):
    """Return the sum of n log(n / all) over the bins of a column: its log likelihood by itself."""
    known = count[at[j + 1] - 1]
    first = known
    value = 0.0
    for b in range(at[j], at[j + 1] - 1):
        value += x_log_x(float(count[b]))
        first -= count[b]
    return value + x_log_x(float(first)) - x_log_x(float(known))


@kernel
def _in_use(code, n_bin, rows, columns):
    found = np.zeros(columns.size, np.int64)
    most = 0
    for column in columns:
        most = max(most, n_bin[column])
    seen = np.empty(most, np.bool_)
    for j in range(columns.size):
        x = code[columns[j]]
        seen[:] = False
        for row in rows:
            if x[row] >= 0 and not seen[x[row]]:
                seen[x[row]] = True
                found[j] += 1
    return found


@kernel
def _alone(code, n_bin, rows, columns):
    _bits, at, count = _pack(code, n_bin, rows, columns)
    value = 0.0
    for j in range(columns.size):
        value += _entropy_terms(count, at, j)
    return value


@kernel
def _chow_liu(code, n_bin, rows, columns, ess):
    n = columns.size
    bits, at, count = _pack(code, n_bin, rows, columns)
    most = 0
    for column in columns:
        most = max(most, n_bin[column])
    table = np.empty((most, most))
    parents = np.full(n, -1, np.int64)
    best, joined = np.full(n, -np.inf), np.zeros(n, np.bool_)
    value = 0.0
    for j in range(n):
        value += _entropy_terms(count, at, j)
    current = 0
    for _ in range(1, n):
        joined[current] = True
        following = -1
        for k in range(n):
            if joined[k]:
                continue
            cells = table[: at[current + 1] - at[current], : at[k + 1] - at[k]]
            _pair(bits, at, count, rows.size, current, k, cells)
            found = _information(cells, ess)
            # strictly: of equal trees the one that Prim finds first
            if found > best[k]:
                best[k], parents[k] = found, current
            if following < 0 or best[k] > best[following]:
                following = k
        cells = table[: at[parents[following] + 1] - at[parents[following]], : at[following + 1] - at[following]]
        _pair(bits, at, count, rows.size, parents[following], following, cells)
        # without imaginary rows: the likelihood of these rows at their own shares
        value += _information(cells, 0.0)
        current = following
    return parents, value


# --- columns of two bins, without missing cells -----------------------------------------------------------------------


@kernel
def log_table(n_row, ess):
    """Return float64 (4, n_row + 1): x log x at n, n + ess / 4 and n + ess / 2, and in the last row ess itself."""
    table = np.empty((4, n_row + 1))
    for n in range(n_row + 1):
        table[0, n] = x_log_x(float(n))
        table[1, n] = x_log_x(n + 0.25 * ess)
        table[2, n] = x_log_x(n + 0.5 * ess)
        table[3, n] = ess
    return table


@kernel
def pack_bits(code, rows, columns):
    """Return uint64 (n, n_word): which rows are in the second group of each column, a bit each."""
    bits = np.zeros((columns.size, (rows.size + 63) // 64), np.uint64)
    for j in range(columns.size):
        x = code[columns[j]]
        for w in range(bits.shape[1]):
            word = np.uint64(0)
            for i in range(w * 64, min(w * 64 + 64, rows.size)):
                word |= np.uint64(x[rows[i]]) << np.uint64(i & 63)
            bits[j, w] = word
    return bits


@kernel
def information_of_two(n_a, n_b, n_ab, m, cell, margin):
    """Return the information of two columns of two groups in m rows, less m log m; nats.

    `cell` and `margin` hold x log x of numbers of rows, with a quarter of the imaginary rows and with half of them.
    """
    value = cell[n_ab] + cell[n_a - n_ab] + cell[n_b - n_ab] + cell[m - n_a - n_b + n_ab]
    return value - (margin[n_a] + margin[m - n_a]) - (margin[n_b] + margin[m - n_b])


@kernel
def _take_out(x, place, n):
    """Take one entry out of the first n + 1: those behind it move down."""
    for i in range(place, n):
        x[i] = x[i + 1]


@kernel
def _tree_of_two(code, rows, columns, table):
    """Return (parents, count, with_parent), int64 (n,): the parents of `chow_liu`, and the rows in the second group of
    each column, and of both it and its parent.

    All columns have two bins, whose cells are all known; `table` is a `log_table`. Loops over the columns that are
    left, ascending, take no branch: which of two is larger cannot be foreseen.
    """
    n, m = columns.size, np.uint64(rows.size)
    bits = pack_bits(code, rows, columns)
    cell, margin = table[1], table[2]
    # unsigned: numba looks at a signed index whether it is negative
    count, both, left = np.empty(n, np.uint64), np.empty(n, np.uint64), np.arange(n).astype(np.uint64)
    alone = np.empty(n)
    for j in range(n):
        count[j] = np.uint64(count_bits(bits[j]))
        alone[j] = margin[count[j]] + margin[m - count[j]]
    parents, with_parent, best = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.full(n, -np.inf)
    current, place = np.uint64(0), 0
    for n_left in range(n - 1, 0, -1):
        _take_out(left, place, n_left)
        for i in range(n_left):
            both[i] = np.uint64(count_both_bits(bits[current], bits[left[i]]))
        n_a, of_a = count[current], alone[current]
        most, place = -np.inf, 0
        for i in range(n_left):
            k, n_ab = left[i], both[i]
            found = cell[n_ab] + cell[n_a - n_ab] + cell[count[k] - n_ab] + cell[m + n_ab - n_a - count[k]]
            found = found - of_a - alone[k]
            # strictly: of equal trees the one that Prim finds first
            parents[k] = np.int64(current) if found > best[k] else parents[k]
            with_parent[k] = np.int64(n_ab) if found > best[k] else with_parent[k]
            best[k] = found if found > best[k] else best[k]
            place = i if best[k] > most else place
            most = best[k] if best[k] > most else most
        current = left[place]
    return parents, count.astype(np.int64), with_parent


@kernel
def tree_of_bins(code, n_bin, rows, columns, table):
    """Return the parents of `chow_liu` where no cell is missing, and the counts of `_tree_of_two`, empty unless all
    columns have two bins; `table` is a `log_table` of at least as many rows.
    """
    for column in columns:
        if n_bin[column] != 2:
            return _chow_liu(code, n_bin, rows, columns, table[3, 0])[0], np.empty(0, np.int64), np.empty(0, np.int64)
    return _tree_of_two(code, rows, columns, table)
