"""Blank cells that may say "none" rather than that nothing is known: no pool, no garage and so no type of garage."""

from __future__ import annotations

import numpy as np

from bayesjpt.table.table import Table

_MOSTLY = 0.8
"""Share of blank cells from which a column of a few labels is rather one of yes and blank."""
_LEAST_BLANKS = 10
"""Blank cells that go together with another column's value beyond accident."""
_N_ROWS = 20_000
"""Rows that are compared."""


def blanks_for_none(table: Table) -> dict[int, str]:
    """Return notes on columns of labels that are mostly blank, and on columns blank exactly where another has a value.

    Examples
    --------
    >>> import bayesjpt as bj
    >>> cars = [0, 1, 2, 1] * 10
    >>> kind = [None if n == 0 else "ab"[row % 3 == 0] for row, n in enumerate(cars)]
    >>> blanks_for_none(bj.as_table({"cars": cars, "kind": kind}))
    {1: 'blank if cars = 0'}
    """
    table = table.take(np.arange(_N_ROWS)) if table.n_row > _N_ROWS else table
    found = {}
    for position, column in enumerate(table.schema):
        blank = ~table.observed[position]
        n_blank = int(blank.sum())
        if n_blank < _LEAST_BLANKS or n_blank == table.n_row:
            continue
        where = _value_of(table, position, blank)
        if where:
            found[position] = f"blank if {where}"
        elif column.base == "category" and n_blank > _MOSTLY * table.n_row:
            found[position] = "blank: none?"
    return found


def _value_of(table: Table, position: int, blank: np.ndarray) -> str:
    """Return the column and its value that exactly the blank rows have; empty where there is none."""
    first = int(np.argmax(blank))
    for other, column in enumerate(table.schema):
        seen, values = table.observed[other], table.values[other]
        if other == position or column.dtype == "datetime" or not seen[first] or column.n_distinct < 2:
            continue
        if np.array_equal(seen & (values == values[first]), blank):
            return f"{column.name} = {column.text(float(values[first]))}"
    return ""
