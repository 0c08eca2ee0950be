"""What leaves of cutset networks make of rows: log likelihoods by which splits are chosen, scores of held-out rows.

Rows are judged by bins, under the leaf that is built: a Chow-Liu tree of the columns of labels, numbers apart from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.paths import Region
from bayesjpt.structure.bins import bins_of
from bayesjpt.structure.chow_liu import bins_in_use, chow_liu, independent_log_likelihood
from bayesjpt.structure.tree_messages import log_probabilities
from bayesjpt.table.table import Table


class Value(NamedTuple):
    """What a leaf makes of rows: their log likelihood at its best, and how many probabilities it has for that."""

    log_likelihood: float
    n_parameter: int


class Leaves:
    """Values and scores of leaves over one table.

    Parameters
    ----------
    table : Table
    has_trees : bool
        Whether columns of labels depend on each other in a leaf.
    ess : float
        Imaginary rows.
    """

    def __init__(self, table: Table, has_trees: bool, ess: float):
        self.table, self.has_trees, self.ess = table, has_trees, ess
        self.is_labels = np.array([column.base == "category" for column in table.schema.columns])
        self.bins, self.cuts = bins_of(table)
        self._sorted: dict[int, np.ndarray] = {}

    def alone(self, rows: np.ndarray, columns: Sequence[int]) -> Value:
        """Return the value of a leaf of columns that are independent of each other."""
        of = np.array(columns, np.intp)
        return Value(independent_log_likelihood(self.bins, rows, of), int((self._n_used(rows, of) - 1).sum()))

    def value(self, rows: np.ndarray, columns: Sequence[int]) -> Value:
        """Return the value of the leaf that is built: a tree of the columns of labels, numbers apart."""
        if not self.has_trees:
            return self.alone(rows, columns)
        of = np.array(columns, np.intp)
        labels, numbers = of[self.is_labels[of]], of[~self.is_labels[of]]
        tree = chow_liu(self.bins, rows, labels, self.ess)
        n_used = self._n_used(rows, labels)
        n_above = np.where(tree.parents >= 0, n_used[tree.parents], 1) if labels.size else n_used
        apart = self.alone(rows, numbers.tolist())
        n_parameter = int(((n_used - 1) * n_above).sum()) + apart.n_parameter
        return Value(tree.log_likelihood + apart.log_likelihood, n_parameter)

    def _n_used(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the bins of columns whose probabilities rows tell, int64 (n,): two of two labels in any case."""
        return np.maximum(bins_in_use(self.bins, rows, columns), np.minimum(self.bins.n_bin[columns], 2))

    def held_out_scores(
        self, columns: Sequence[int], region: Region, rows: np.ndarray, held_out: np.ndarray
    ) -> np.ndarray:
        """Return the log probability of each held-out row's bins under the leaf of some rows of a region.

        Missing cells are summed out. Densities of numbers are relative to the table's rows (`_scores_of_numbers`).

        Returns
        -------
        float64 (n_held_out,), nats
        """
        of = np.array(columns, np.intp)
        labels, numbers = of[self.is_labels[of]], of[~self.is_labels[of]]
        if not held_out.size:
            return np.zeros(0)
        parents = np.full(labels.size, -1)
        if self.has_trees and rows.size:
            parents = chow_liu(self.bins, rows, labels, self.ess).parents
        tables = [
            self._table(rows, column, int(labels[parent]) if parent >= 0 else None)
            for column, parent in zip(labels.tolist(), parents.tolist(), strict=True)
        ]
        (scores,) = log_probabilities([(parents.tolist(), tables)], self.bins.code[np.ix_(labels, held_out)])
        for column in numbers.tolist():
            scores += self._scores_of_numbers(column, region, rows, held_out)
        return scores

    def _table(self, rows: np.ndarray, column: int, above: int | None) -> np.ndarray:
        """Return the smoothed shares of a column's bins given those of another, float64 (n_bin of it or 1, n_bin)."""
        n = int(self.bins.n_bin[column])
        n_above = 1 if above is None else int(self.bins.n_bin[above])
        x = self.bins.code[column, rows]
        y = np.zeros_like(x) if above is None else self.bins.code[above, rows]
        known = (x >= 0) & (y >= 0)
        # both bins of a pair in one number: the other column's rows, then the column's own
        cell = y[known].astype(np.intp) * n + x[known]
        share = np.bincount(cell, minlength=n * n_above).reshape(n_above, n) + self.ess / n
        return share / share.sum(axis=1, keepdims=True)

    def _scores_of_numbers(self, column: int, region: Region, rows: np.ndarray, held_out: np.ndarray) -> np.ndarray:
        """Return the log density of each held-out number under the shares of the bins of some rows, 0 where missing.

        Within a bin, density is that of the table's rows: a threshold may divide a bin, and what it tells of a number
        there is no news, whether a split or a leaf says it.
        """
        values = self._sorted_values(column)
        lo, hi = region.get(column, (-math.inf, math.inf))
        ends = np.concatenate([[0], np.searchsorted(values, self.cuts[column]), [values.size]])
        inside = np.searchsorted(values, lo), np.searchsorted(values, hi, side="right")
        # how many of the table's rows each bin has left in the region: those held out are among them
        n_left = np.diff(np.clip(ends, *inside))
        code, code_out = self.bins.code[column, rows], self.bins.code[column, held_out]
        count = np.bincount(code[code >= 0], minlength=n_left.size)
        known = code_out >= 0
        n_in_bin = n_left[code_out[known]]
        share = count[code_out[known]] + self.ess * n_in_bin / n_left.sum()
        scores = np.zeros(held_out.size)
        scores[known] = np.log(share / (count.sum() + self.ess) / n_in_bin)
        return scores

    def _sorted_values(self, column: int) -> np.ndarray:
        if column not in self._sorted:
            self._sorted[column] = np.sort(self.table.values[column, self.table.observed[column]])
        return self._sorted[column]
