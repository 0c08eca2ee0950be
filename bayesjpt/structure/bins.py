"""Columns as bins: labels as they are, numbers in intervals that hold about equally many rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayesjpt.circuit.trees import codes_of
from bayesjpt.families.label import label_groups
from bayesjpt.structure.chow_liu import Bins
from bayesjpt.table.table import Table

_BLOCK = 1024

_N_INTERVAL = 8
"""Intervals by which numbers are judged."""


def cuts_of(table: Table, column: int) -> np.ndarray:
    """Return thresholds between the bins of a column of numbers, float64 (n_bin - 1,), in its units."""
    known = table.values[column, table.observed[column]]
    shares = np.linspace(0.0, 1.0, _N_INTERVAL + 1)[1:-1]
    cuts = np.unique(np.quantile(known, shares)) if known.size else np.empty(0)
    # a cut at the least value would leave the bin below it empty
    return cuts[cuts > known.min()] if known.size else cuts


def bins_of(table: Table) -> tuple[Bins, list[np.ndarray]]:
    """Return the cells of a table as bins, and the thresholds of each column: none of a column of labels.

    "Other", where a list of labels is not closed, goes with the most frequent label.
    """
    code = codes_of(table)
    if any(column.base != "category" for column in table.schema.columns):
        # codes are the table's own: numbers are written into a copy
        code = code.copy()
    cuts: list[np.ndarray] = []
    n_bin = np.empty(table.n_column, np.int64)
    for k, column in enumerate(table.schema.columns):
        if column.base == "category":
            cuts.append(np.empty(0))
            n_bin[k] = len(label_groups(column))
            continue
        cuts.append(cuts_of(table, k))
        known = table.observed[k]
        code[k, known] = np.searchsorted(cuts[k], table.values[k, known], side="right")
        n_bin[k] = cuts[k].size + 1
    return Bins(code, n_bin), cuts


def shares_of_bins(bins: Bins) -> list[np.ndarray]:
    """Return the share of each bin of each column among its known cells, one row more spread evenly, float64 each."""
    found = []
    for code, n_bin in zip(bins.code, bins.n_bin.tolist(), strict=True):
        # no share is 0
        count = np.bincount(code[code >= 0], minlength=n_bin) + 1.0 / n_bin
        found.append(count / count.sum())
    return found


def some_rows(bins: Bins, n_row: int, rng: np.random.Generator) -> Bins:
    """Return at most so many rows, drawn at random."""
    n = bins.code.shape[1]
    if n <= n_row:
        return bins
    # ascending: the rows keep their order
    return Bins(np.ascontiguousarray(bins.code[:, np.sort(rng.choice(n, n_row, replace=False))]), bins.n_bin)


def blocks(n_row: int) -> Iterator[slice]:
    """Yield the rows that are worked on together."""
    for lo in range(0, n_row, _BLOCK):
        yield slice(lo, min(lo + _BLOCK, n_row))
