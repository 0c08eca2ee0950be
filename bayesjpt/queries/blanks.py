"""Blank cells that may say "none" rather than that nothing is known: no pool, no garage and so no type of garage."""

from __future__ import annotations

import numpy as np

from bayesjpt.table.table import Table

_MOSTLY = 0.8
"""Share of blank cells from which a column of a few labels is rather one of yes and blank."""
_LEAST_BLANKS = 10
"""Blank cells that go together with another column's value beyond accident."""
_ROWS_OF_A_SLIP = 200
"""Rows of which one may have both of two columns that exclude each other, or none: a line of totals."""
_FIRST_SLIPS = 2
"""Such rows among those that are looked at first."""
_N_FIRST = 16
"""Blank rows, and others, that are looked at first."""
_N_ROWS = 20_000
"""Rows that are compared."""


def blanks_for_none(table: Table) -> dict[int, str]:
    """Return notes on columns of labels that are mostly blank, or have one label beside blanks, such as a cross, and on
    columns blank exactly where another has some value, or any.

    Examples
    --------
    >>> import bayesjpt as bj
    >>> cars = [0, 1, 2, 1] * 10
    >>> kind = [None if n == 0 else "ab"[row % 3 == 0] for row, n in enumerate(cars)]
    >>> blanks_for_none(bj.as_table({"cars": cars, "kind": kind}))
    {1: 'blank if cars = 0'}
    >>> paid, got = [5.0, None] * 20, [None, 7.0] * 20
    >>> blanks_for_none(bj.as_table({"paid": paid, "got": got}, kinds={"paid": "real", "got": "real"}))
    {0: 'blank if got is filled', 1: 'blank if paid is filled'}
    """
    table = table.take(np.arange(_N_ROWS)) if table.n_row > _N_ROWS else table
    found = {}
    for position, column in enumerate(table.schema):
        blank = ~table.observed[position]
        n_blank = int(blank.sum())
        if n_blank < _LEAST_BLANKS or n_blank == table.n_row:
            continue
        where = _value_of(table, position, blank) or _filled_where(table, blank)
        if where:
            found[position] = f"blank if {where}"
        elif column.base == "category" and (n_blank > _MOSTLY * table.n_row or column.n_distinct == 1):
            found[position] = "blank: none?"
    return found


def _value_of(table: Table, position: int, blank: np.ndarray) -> str:
    """Return the column and its value that exactly the blank rows have; empty where there is none."""
    first = int(np.argmax(blank))
    few = _first_rows(blank)
    same = table.observed[:, few] & (table.values[:, few] == table.values[:, [first]])
    for other in np.flatnonzero((same == blank[few]).all(axis=1)).tolist():
        column, value = table.schema.columns[other], table.values[other, first]
        if other == position or column.dtype == "datetime" or column.n_distinct < 2:
            continue
        if np.array_equal(table.observed[other] & (table.values[other] == value), blank):
            return f"{column.name} = {column.text(float(value))}"
    return ""


def _filled_where(table: Table, blank: np.ndarray) -> str:
    """Return the column that the blank rows have a value of, and others not; empty where there is none."""
    few = _first_rows(blank)
    n_slip = (table.observed[:, few] != blank[few]).sum(axis=1)
    for other in np.flatnonzero(n_slip <= _FIRST_SLIPS).tolist():
        filled = table.observed[other]
        n_filled = int(filled.sum())
        is_mixed = min(n_filled, table.n_row - n_filled) >= _LEAST_BLANKS
        if is_mixed and (filled != blank).sum() <= table.n_row // _ROWS_OF_A_SLIP:
            return f"{table.schema.names[other]} is filled"
    return ""


def _first_rows(blank: np.ndarray) -> np.ndarray:
    """Return some rows, blank and others, that rule out nearly all columns."""
    return np.concatenate([np.flatnonzero(blank)[:_N_FIRST], np.flatnonzero(~blank)[:_N_FIRST]])
