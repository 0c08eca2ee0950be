"""What stands above a table in its file: titles, comments and blank rows before the row with the names of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bayesjpt.errors import warn
from bayesjpt.table import header as header_of

_MOST_ROWS = 30
"""Rows that may stand above a table."""

_ENOUGH = 0.9
"""Share of the rows below the names that must have as many cells."""

_REMARK = re.compile(r"[^\w+.-]|.*[^\W\d].*[\s:]|[_-]{3}")
"""A sign of its own kind, or words, begin a remark; one word alone may be the beginning of a row."""

_TOTALS = frozenset(
    """
    total totals subtotal sum summe summen gesamt insgesamt gesamtsumme endsumme zwischensumme somme totale totaux suma
    soma totaal итого всего mean average mittelwert durchschnitt moyenne media promedio
    """.split()  # noqa: SIM905 - a line for each would say no more
) | {"grand total", "total général", "total general"}
"""What the first cell of a row of totals or means says."""

_N_LAST = 200
"""Rows before the last ones, which must be fuller."""

_LONGEST_TITLE = 40
"""Characters of a title that a note repeats."""


def n_above(records: Sequence[Sequence[str]], is_apart: Sequence[bool]) -> int:
    """Return the number of rows above the table; 0 where the first row may be part of it.

    Parameters
    ----------
    records : sequence of sequence of str
        First rows of a file, those without any text left out, texts stripped.
    is_apart : sequence of bool
        Of each row, whether a row without any text stands before it.

    Notes
    -----
    Comments begin with ``#``; the last one may hold the names. A title fills at most half as many cells as the table
    has columns, its first cell among them. Below titles must be names above values, or any names where a blank row sets
    them apart: a row that is merely too short may be a header of a table whose first column has no name.

    Examples
    --------
    >>> n_above([["Sales", ""], ["region", "units"], ["north", "4"], ["south", "7"]], [False] * 4)
    1
    >>> n_above([["region", "units"], ["north", "4"], ["south", "7"]], [False] * 3)
    0
    """
    n_column = Counter(map(len, records)).most_common(1)[0][0] if records else 0
    if n_column < 2:
        return 0
    is_full = [
        2 * sum(map(bool, record)) > n_column and (k == 0 or len(record) == n_column)
        for k, record in enumerate(records)
    ]
    is_row = [full and len(record) == n_column for full, record in zip(is_full, records, strict=True)]
    n_comment = next((k for k, record in enumerate(records) if not record[0].startswith("#")), 0)
    if n_comment:
        position = n_comment - is_row[n_comment - 1]
    else:
        position = next((k for k, full in enumerate(is_full) if full), 0)
    above, below = records[:position], [record for record, row in zip(records, is_row, strict=True) if row]
    below = below[1:]
    if not 1 <= position <= _MOST_ROWS or not records[0][0] or not is_row[position] or any(is_row[:position]):
        return 0
    if not below or len(below) < _ENOUGH * (len(records) - position - 1):
        return 0
    if n_comment or header_of.names_values(records[position], below):
        return position
    return position if is_apart[position] and above and header_of.holds_names(records[position], below) else 0


def tell_units(name: str, record: Sequence[str]) -> None:
    """Warn that the row below the names is left out."""
    clipped = ", ".join(filter(None, record))
    clipped = clipped if len(clipped) <= _LONGEST_TITLE else f"{clipped[:_LONGEST_TITLE]}..."
    warn(f"the row of {name!r} below the names ({clipped}) holds units and is left out")


def is_below(rows: Sequence[Sequence[str]], n_column: int) -> bool:
    """Return whether the last rows of a file stand below the table: a few, each one cell of several words or signs.

    A row that was cut off begins as others do.

    Examples
    --------
    >>> is_below([["Source: the office"]], 3), is_below([["2.5"]], 3), is_below([["a", "b"], ["c", "d", "e"]], 3)
    (True, False, False)
    """
    filled = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return len(rows) <= _MOST_ROWS and all(
        len(row) != n_column and len(cells) == 1 and bool(_REMARK.match(cells[0])) and not header_of.is_value(cells)
        for row, cells in zip(rows, filled, strict=True)
    )


def n_below(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the last rows, filled up with empty cells, stand below a table: totals, remarks, empty ones.

    Rows before them must be more than half full, or a row with one cell is a row of a table that has few; and none of
    them may begin as these do.

    Examples
    --------
    >>> n_below([["a", "2", "3"], ["b", "2", "4"], ["", "", ""], ["Sum:", "4", ""], ["as of May", "", ""]])
    3
    >>> n_below([["a b", "", ""], ["c", "2", "4"], ["d e", "", ""]])
    0
    """
    n_last = 0
    for row in reversed(rows[-_MOST_ROWS:]):
        filled = [cell.strip() for cell in row if cell.strip()]
        is_total = bool(row[0]) and row[0].casefold().strip(" :") in _TOTALS
        if filled and not is_total and (not row[0].strip() or not is_below([filled], len(row))):
            break
        n_last += 1
    before, last = rows[: len(rows) - n_last][-_N_LAST:], rows[len(rows) - n_last :]
    is_full = all(2 * sum(map(bool, map(str.strip, row))) > len(row) for row in before if any(map(str.strip, row)))
    is_new = {row[0] for row in last if row[0]}.isdisjoint(row[0] for row in rows[: len(rows) - n_last])
    return n_last if before and len(rows[0]) > 2 and is_full and is_new and any(any(row) for row in last) else 0


def tell_below(name: str, rows: Sequence[Sequence[str]]) -> None:
    """Warn that rows below a table are left out."""
    title = next((cell for row in rows for cell in row if cell), "")
    clipped = title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}..."
    rows_are = "the last row" if len(rows) == 1 else f"the last {len(rows)} rows"
    warn(f"{rows_are} of {name!r} ({clipped}), below the table, {'is' if len(rows) == 1 else 'are'} left out")


def tell(name: str, n_row: int, first: Sequence[str]) -> None:
    """Warn that rows above a table are left out."""
    title = next(filter(None, first), "")
    clipped = title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}..."
    rows, verb = ("row 1", "is") if n_row == 1 else (f"rows 1 to {n_row}", "are")
    warn(
        f"{rows} of {name!r} ({clipped}), above the table, {verb} left out; header=True, or --header, begins with row 1"
    )
