"""Columns of numbers that nearly are straight functions of each other: height in inches beside centimetres, rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bayesjpt.table.table import Table

_LEAST_CORRELATION = 0.995
"""Of values and of ranks: one far cell that two columns share makes the former large, not the latter."""
_LEAST_ROWS = 50
_LEAST_DISTINCT = 20
_MOST_ROWS = 4_000
"""Rows that are looked at, spread evenly over the table."""


def near_copies(table: Table, codes: Mapping[int, Sequence[float]] | None = None) -> dict[int, int]:
    """Return which earlier column each column nearly repeats, up to a factor and a constant.

    Cells that hold one of the `codes` of their column, such as -999 for a missing one, say nothing.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> z = np.random.default_rng(1).normal(size=200)
    >>> frame = pd.DataFrame({"cm": (170 + 9 * z).round(1), "inch": (67 + 3.54 * z).round(1), "other": z**2})
    >>> near_copies(bj.as_table(frame))
    {1: 0}
    """
    numbers = [
        position
        for position, column in enumerate(table.schema.columns)
        if column.base != "category" and column.n_distinct >= _LEAST_DISTINCT
    ]
    if table.n_row < _LEAST_ROWS or len(numbers) < 2:
        return {}
    rows = slice(None, None, -(-table.n_row // _MOST_ROWS))
    values, observed = table.values[numbers, rows], table.observed[numbers, rows]
    for at, position in enumerate(numbers):
        observed[at] &= ~np.isin(values[at], (codes or {}).get(position, ()))
    ranks = np.zeros(values.shape)
    for each, seen, out in zip(values, observed, ranks, strict=True):
        distinct, number, count = np.unique(each[seen], return_inverse=True, return_counts=True)
        out[seen] = (np.cumsum(count) - 0.5 * count)[number] if distinct.size else 0.0
    close = np.minimum(_correlations(values, observed), _correlations(ranks, observed)) >= _LEAST_CORRELATION
    found = {}
    for at in range(1, len(numbers)):
        earlier = np.flatnonzero(close[at, :at])
        if earlier.size:
            found[numbers[at]] = numbers[int(earlier[0])]
    return found


def _correlations(values: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return the sizes of correlations, float64 (n, n), each over the rows that observe both; 0 of too few."""
    count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    centred = _to_one(np.where(observed, values, 0.0))  # squares of numbers of 1e300 overflow
    centred = _to_one(np.where(observed, centred - centred.sum(axis=1, keepdims=True) / count, 0.0))
    seen = observed.astype(np.float64)
    product, squares = centred @ centred.T, centred**2 @ seen.T
    power = squares * squares.T
    known = (seen @ seen.T >= _LEAST_ROWS) & (power > 0.0)
    return np.where(known, np.abs(product) / np.sqrt(np.where(power > 0.0, power, 1.0)), 0.0)


def _to_one(rows: np.ndarray) -> np.ndarray:
    """Return rows over their largest entry by size."""
    scale = np.abs(rows).max(axis=1, keepdims=True)
    return rows / np.where(scale > 0.0, scale, 1.0)
