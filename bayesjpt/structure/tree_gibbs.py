"""Gibbs sweeps over mixtures of Chow-Liu trees of complete rows, at the cost of what is unusual in a row.

      log p(row | tree) = of a row that is usual everywhere
                          + for each unusual cell: what it changes while its neighbours are usual
                          + for each unusual cell whose parent is unusual, too: what the pair changes beside

Tables of column i in tree k begin at ``at[i, k]``: the entry of bin a of the parent (0 at roots) and bin b of the
column is ``a * n_bin[i] + b``. Tables, counts and centres lie in flat arrays of that order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.draw import draw_log_dirichlet
from bayesjpt.numerics.jit import kernel
from bayesjpt.structure.distinct_rows import DistinctRows


class Trees(NamedTuple):
    """The trees of a mixture, and where their tables are.

    Attributes
    ----------
    parents : int64 (n_column, n_tree)
        -1 at roots.
    at : int64 (n_column, n_tree)
    n_entry : int
        Of all tables.
    n_bin : int64 (n_column,)
    bin_at : int64 (n_column + 1,)
        Where the bins of each column begin, one column after the other.
    """

    parents: np.ndarray
    at: np.ndarray
    n_entry: int
    n_bin: np.ndarray
    bin_at: np.ndarray


class Scorer(NamedTuple):
    """What a row adds up, in nats.

    Attributes
    ----------
    base : float64 (n_tree,)
        Log weight and log probability of a row that is usual everywhere.
    single : float64 (sum n_bin, n_tree)
        What a bin of a column changes while its parent and its children are usual.
    pair : float64 (n_entry,)
        What a column's bin and its parent's change beside; 0 where one of them is usual.
    """

    base: np.ndarray
    single: np.ndarray
    pair: np.ndarray


def trees_of(parents: np.ndarray, n_bin: np.ndarray) -> Trees:
    """Return trees, int (n_column, n_tree), with places for their tables."""
    size = np.where(parents >= 0, n_bin[parents], 1) * n_bin[:, None]
    ends = np.cumsum(size.ravel()).reshape(size.shape)
    bin_at = np.concatenate([[0], np.cumsum(n_bin)]).astype(np.int64)
    at = np.ascontiguousarray(ends - size, np.int64)
    return Trees(np.ascontiguousarray(parents, np.int64), at, int(ends[-1, -1]), n_bin.astype(np.int64), bin_at)


def scorer_of(trees: Trees, log_weight: np.ndarray, log_table: np.ndarray, usual: np.ndarray) -> Scorer:
    """Return what rows add up, for log weights (n_tree,) and log tables (n_entry,)."""
    scorer = Scorer(log_weight.copy(), np.zeros((int(trees.bin_at[-1]), log_weight.size)), np.zeros(trees.n_entry))
    _fill_scorer(trees, log_table, usual, *scorer)
    return scorer


def log_density(rows: DistinctRows, trees: Trees, scorer: Scorer) -> np.ndarray:
    """Return the log density of each row under the mixture, in the table's order, float64 (n_row,), nats."""
    of_distinct = np.empty(rows.n_distinct)
    _log_densities(rows, trees, scorer, of_distinct)
    return rows.in_order(of_distinct)


@kernel
def _fill_scorer(trees, log_table, usual, base, single, pair):
    for i in range(trees.parents.shape[0]):
        n, u = trees.n_bin[i], usual[i]
        for k in range(trees.parents.shape[1]):
            p, lo = trees.parents[i, k], trees.at[i, k]
            up = usual[p] if p >= 0 else 0
            before = log_table[lo + up * n + u]
            base[k] += before
            for b in range(n):
                single[trees.bin_at[i] + b, k] += log_table[lo + up * n + b] - before
            if p < 0:
                continue
            for a in range(trees.n_bin[p]):
                change = log_table[lo + a * n + u] - before
                single[trees.bin_at[p] + a, k] += change
                for b in range(n):
                    if a != up and b != u:
                        pair[lo + a * n + b] = log_table[lo + a * n + b] - log_table[lo + up * n + b] - change


@kernel
def _add_cells(rows, row, trees, scorer, x, score):
    """Add to score, float64 (n_tree,), what the unusual cells of a row change; x is usual before and after."""
    cells = range(rows.ptr[row], rows.ptr[row + 1])
    # all cells before any pair: the parent of a cell may come later in the list
    for e in cells:
        x[rows.column[e]] = rows.code[e]
    for e in cells:
        i, b = rows.column[e], rows.code[e]
        n, change = trees.n_bin[i], scorer.single[trees.bin_at[i] + b]
        for k in range(score.size):
            score[k] += change[k]
        above, place = trees.parents[i], trees.at[i]
        for k in range(score.size):
            if above[k] >= 0:
                # usual parents add a stored zero: to read it is quicker than to ask
                score[k] += scorer.pair[place[k] + x[above[k]] * n + b]
    for e in cells:
        x[rows.column[e]] = rows.usual[rows.column[e]]


@kernel
def _log_densities(rows, trees, scorer, out):
    score, x = np.empty(scorer.base.size), rows.usual.copy()
    for row in range(rows.ptr.size - 1):
        copy_into(scorer.base, score)
        _add_cells(rows, row, trees, scorer, x, score)
        top, total = score.max(), 0.0
        for k in range(score.size):
            total += math.exp(score[k] - top)
        out[row] = top + math.log(total)


@kernel
def draw_trees(rows, trees, scorer, uniform, tree):
    """Fill tree, int64 (n_row,), with a draw of each row's tree; return the log density of all rows together."""
    score, x = np.empty(scorer.base.size), rows.usual.copy()
    value = 0.0
    for row in range(rows.first.size - 1):
        copy_into(scorer.base, score)
        _add_cells(rows, row, trees, scorer, x, score)
        top, reached = score.max(), 0.0
        for k in range(score.size):
            reached += math.exp(score[k] - top)
            score[k] = reached
        value += (rows.first[row + 1] - rows.first[row]) * (top + math.log(reached))
        for copy in range(rows.first[row], rows.first[row + 1]):
            target, lo, hi = uniform[copy] * reached, 0, score.size - 1
            while lo < hi:  # the first tree whose share reaches beyond the target
                middle = (lo + hi) // 2
                if score[middle] > target:
                    hi = middle
                else:
                    lo = middle + 1
            tree[copy] = lo
    return value


@kernel
def count_rows(code, trees, tree, out):
    """Fill out, float64 (n_entry,), with the rows in each entry of the tables of their tree."""
    out[:] = 0.0
    for i in range(code.shape[0]):
        x, n = code[i], trees.n_bin[i]
        for row in range(code.shape[1]):
            k = tree[row]
            p = trees.parents[i, k]
            above = code[p, row] if p >= 0 else 0
            out[trees.at[i, k] + above * n + x[row]] += 1.0


@kernel
def fill_centre(trees, pairs, out):
    """Fill out, float64 (n_entry,), with the shares of each column given its parent in the whole table.

    pairs are its rows by any two bins, float64 (sum n_bin, sum n_bin); one more row has the column's own shares.
    """
    n_tree = trees.parents.shape[1]
    for i in range(trees.parents.shape[0]):
        first, last = trees.bin_at[i], trees.bin_at[i + 1]
        whole = 0.0
        for b in range(first, last):
            whole += pairs[b, b]
        for k in range(n_tree):
            p, lo = trees.parents[i, k], trees.at[i, k]
            for a in range(trees.n_bin[p] if p >= 0 else 1):
                total = 0.0
                for b in range(first, last):
                    share = (pairs[b, b] + 1.0 / (last - first)) / (whole + 1.0)
                    share += pairs[trees.bin_at[p] + a, b] if p >= 0 else pairs[b, b]
                    out[lo] = share
                    total += share
                    lo += 1
                for b in range(lo - (last - first), lo):
                    out[b] /= total


@kernel
def log_marginal(trees, counts, centre, strength):
    """Return the log probability of the rows in the tables of their trees, weights integrated out, nats."""
    value = 0.0
    for i in range(trees.parents.shape[0]):
        n = trees.n_bin[i]
        for k in range(trees.parents.shape[1]):
            p, lo = trees.parents[i, k], trees.at[i, k]
            for _ in range(trees.n_bin[p] if p >= 0 else 1):
                n_row = 0.0
                for e in range(lo, lo + n):
                    # Gamma(own) / Gamma(own) is 1: entries without rows add nothing
                    if counts[e] > 0.0:
                        imaginary = strength * centre[e]
                        value += math.lgamma(imaginary + counts[e]) - math.lgamma(imaginary)
                        n_row += counts[e]
                if n_row > 0.0:
                    value += math.lgamma(strength) - math.lgamma(strength + n_row)
                lo += n
    return value


@kernel
def draw_tables(trees, counts, centre, strength, log_table, rng):
    """Fill log_table, float64 (n_entry,), with draws given the rows of each table."""
    for i in range(trees.parents.shape[0]):
        n = trees.n_bin[i]
        for k in range(trees.parents.shape[1]):
            p, lo = trees.parents[i, k], trees.at[i, k]
            for _ in range(trees.n_bin[p] if p >= 0 else 1):
                weights = log_table[lo : lo + n]
                for b in range(n):
                    weights[b] = counts[lo + b] + strength * centre[lo + b]
                draw_log_dirichlet(weights, weights, rng)
                for b in range(n):
                    weights[b] = max(weights[b], -600.0)  # so that differences keep their digits
                lo += n


@kernel
def mean_tables(trees, counts, centre, strength, table):
    """Fill table, float64 (n_entry,), with the posterior means given the rows of each table."""
    for i in range(trees.parents.shape[0]):
        n = trees.n_bin[i]
        for k in range(trees.parents.shape[1]):
            p, lo = trees.parents[i, k], trees.at[i, k]
            for _ in range(trees.n_bin[p] if p >= 0 else 1):
                n_row = strength
                for e in range(lo, lo + n):
                    n_row += counts[e]
                for e in range(lo, lo + n):
                    table[e] = (counts[e] + strength * centre[e]) / n_row
                lo += n
