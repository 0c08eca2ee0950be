"""A column's values in a few words: ``18 to 79, half 34 to 67`` or ``basic 45 %, plus 36 %``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.queries.look_at import codes_for_missing
from bayesjpt.table.cells import value_label
from bayesjpt.table.schema import Column
from bayesjpt.table.written_dates import EPOCH, DateNotation
from bayesjpt.table.written_numbers import NumberNotation

_N_LABEL = 12
"""Labels that are named at most; a line has room for fewer."""

_LARGE_SHARE = 0.3
"""Share of the cells from which the one value that they hold is shown."""

_LARGE = 1e9
"""From here on whole numbers are rounded, unless that makes two of them one."""

_MOST_DIGITS = 17
"""Of a float64."""

_MANY_DAYS = 10.0
"""Days between moments from which these are told by their days alone."""


def summary_of(
    column: Column, kind: str, is_open: bool, order: Sequence[str], cells: np.ndarray | None, *, all_cells: bool
) -> str:
    """Return a short summary of a column's values.

    Parameters
    ----------
    column : Column
    kind : str
        Its type.
    is_open : bool
        Whether it is open if the labels have an order.
    order : sequence of str
        Labels in the order that people know; empty where there is none.
    cells : float64 (n,) or None
        Observed values, or codes; None where there are no rows.
    all_cells : bool
        Whether these are all cells of the column; of some, what the schema knows of all of them goes before.
    """
    if column.base == "category":
        return _of_labels(column, kind, is_open, order, cells if all_cells else None)
    if column.n_distinct == 1:
        return value_text(column, column.minimum)
    if kind in ("nominal", "binary") and not all_cells and len(column.levels) == len(column.frequencies) > 0:
        return _shares([value_text(column, value) for value in column.levels], np.array(column.frequencies))
    if kind in ("nominal", "binary") and cells is not None and cells.size:
        values, counts = np.unique(cells, return_counts=True)
        return _shares([value_text(column, value) for value in values], counts)
    return _of_numbers(column, cells, None if all_cells else (column.minimum, column.maximum))


def _of_labels(column: Column, kind: str, is_open: bool, order: Sequence[str], cells: np.ndarray | None) -> str:
    if cells is None or not cells.size:
        counts = np.array(column.frequencies, np.float64)
        if column.n_distinct:  # others have a smoothed share, and no cell
            counts[np.argsort(-counts, kind="stable")[column.n_distinct :]] = 0.0
    else:
        counts = np.bincount(cells.astype(np.int64), minlength=len(column.labels) + 1)
    counts = counts[: len(column.labels)]
    if column.n_distinct == 1:
        return column.labels[int(counts.argmax())]
    if kind == "ordinal" or (is_open and len(order) == len(column.labels)):
        occurring = [label for label in (order or column.labels) if counts[column.labels.index(label)] > 0]
        return (" " if is_open else " < ").join(occurring)
    return _shares(column.labels, counts)


def _shares(labels: Sequence[str], counts: np.ndarray) -> str:
    first = np.argsort(-counts, kind="stable")[:_N_LABEL]
    total = max(float(counts.sum()), 1e-300)
    shares = [f"{labels[i]} {_percent(float(counts[i]) / total)}" for i in first if counts[i] > 0]
    return ", ".join(shares)


def _of_numbers(column: Column, cells: np.ndarray | None, known: tuple[float, float] | None) -> str:
    """Return ends and quartiles of observed values; `known` are the ends of all where these are some."""
    if cells is None or not cells.size:
        return between(column, column.minimum, column.maximum)
    codes = codes_for_missing(column, cells)
    kept = cells[~np.isin(cells, codes)] if codes else cells
    values, counts = np.unique(kept, return_counts=True)
    most = int(counts.argmax())
    first, last = known if known is not None and not codes else (values[0], values[-1])
    if counts[most] > _LARGE_SHARE * kept.size and values.size > 2 and values[most] in (values[0], values[-1]):
        rest = kept[kept != values[most]]
        least, largest = (rest.min(), last) if values[most] == values[0] else (first, rest.max())
        ends = between(column, least, largest)
        return f"{value_text(column, values[most])} {_percent(counts[most] / kept.size)}, else {ends}"
    quartiles = np.quantile(kept, [0.25, 0.75], method="inverted_cdf")
    return f"{between(column, first, last)}, half {between(column, quartiles[0], quartiles[1], 3)}"


def between(column: Column, lo: float, hi: float, n_digit: int = 4) -> str:
    """Return two values, with more digits where so many do not tell them apart."""
    large = abs(lo) >= _LARGE and abs(hi) >= _LARGE and float(lo).is_integer() and float(hi).is_integer()
    if large and lo < hi and _is_plain(column) and value_text(column, lo) == value_text(column, hi):
        return f"{lo:.0f} to {hi:.0f}"
    while lo < hi and n_digit < _MOST_DIGITS and value_text(column, lo, n_digit) == value_text(column, hi, n_digit):
        n_digit += 2
    return f"{value_text(column, lo, n_digit)} to {value_text(column, hi, n_digit)}"


def value_text(column: Column, value: float, n_digit: int = 4) -> str:
    """Return a value, a date, or a number with so many digits where it is not whole."""
    if isinstance(column.notation, DateNotation) and column.notation.order == EPOCH:  # people read no counts of seconds
        whole_days = column.maximum - column.minimum > _MANY_DAYS
        return value_label(float(np.floor(value) if whole_days else value), "datetime")
    if column.base != "category" and not _is_plain(column):
        return column.text(float(value))
    if column.dtype == "datetime":
        return value_label(float(value), "datetime")
    value = float(value) + 0.0
    if abs(value) < _LARGE and (value.is_integer() or abs(value) >= 10.0**n_digit):
        return f"{value:.0f}"  # 1012, not 1.01e+03
    return f"{value:.{n_digit}g}"


def _is_plain(column: Column) -> bool:
    """Return whether nothing but digits and a point stands in a column's numbers."""
    notation = column.notation
    return notation is None or (isinstance(notation, NumberNotation) and notation.is_plain)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if share >= 0.01 else "<1 %"
