"""What stands above a table in its file: titles, comments and blank rows before the row with the names of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayesjpt.errors import warn
from bayesjpt.table import header as header_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.written_numbers import number_readings

_MOST_ROWS = 30
"""Rows that may stand above a table."""

_ENOUGH = 0.9
"""Share of the rows below the names that must have as many cells."""

_REMARK = re.compile(r"[^\w+.-]|.*[^\W\d].*[\s:]|[_-]{3}")
"""A sign of its own kind, or words, begin a remark; one word alone may be the beginning of a row."""

_TOTALS = frozenset({"total", "totals", "grand total", "sum", "summe", "gesamt", "insgesamt", "gesamtsumme", "somme"})
_MEANS = frozenset({"mean", "average", "mittelwert", "durchschnitt", "moyenne"})
_KINDS = dict.fromkeys(_TOTALS, "total") | dict.fromkeys(_MEANS, "mean")
"""What the first cell of a row of totals or means says."""

_ROUNDING = 1e-6
"""Relative difference between a total and the sum of the cells that sums of floats may make."""

_IMPORT = '{"ImportId"'
"""What the cells of the last row between the names and the answers of a Qualtrics survey begin with."""

_N_LAST = 200
"""Rows before the last ones, which must be fuller."""

_N_NUMBERS = 5
"""Columns without names that a note tells by their numbers."""

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


def names_of(first: Sequence[str], below: Sequence[Sequence[str]], name: str) -> tuple[list[str], int]:
    """Return the names of a table's columns, and how many rows below the first one belong to them; warns of such a row.

    Parameters
    ----------
    first : sequence of str (n_column,)
        The row of names.
    below : sequence of records (n_column,)
        Rows below it; less than three of them say nothing.
    name : str
        Of the file.
    """
    if len(below) > 2:
        n_question = next((k for k, row in enumerate(below[:3], start=1) if row[0].startswith(_IMPORT)), 0)
        if n_question:
            rows_are = "row is" if n_question == 1 else f"{n_question} rows are"
            warn(f"{rows_are} left out below the names of {name!r}: questions, and the keys of their import")
            return header_of.names_of(first), n_question
        joined = header_of.joined_names(first, below[0], below[1:])
        if joined:
            warn(f"the names of {name!r} stand in two rows, which are joined: {_clipped(', '.join(joined))}")
            return joined, 1
        if header_of.holds_units(below[0], below[1:]):
            units = _clipped(", ".join(filter(None, below[0])))
            warn(f"the row of {name!r} below the names ({units}) holds units and is left out")
            return header_of.names_of(first), 1
    return header_of.names_of(first), 0


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else f"{text[:_LONGEST_TITLE]}..."


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


def n_below(rows: Sequence[Sequence[Any]], text: Callable[[Any], str] = str.strip) -> int:
    """Return how many of the last rows of a table stand below it: totals, means, remarks, and empty ones among them.

    Parameters
    ----------
    rows : sequence of sequence
        All rows below the names, filled up with empty cells.
    text : callable
        What a cell says.

    Notes
    -----
    A row of the table that is lost is worse than a total that is not found. So a last row is one of totals, or means,
    where its first cell says so, no other does, and each number in it is the sum, or mean, of those above; of both,
    one each. Remarks, a cell of words each, stand behind such rows, or behind an empty one where the rows before are
    more than half full and none begins as they do: without it, they may be rows to be filled in.

    Examples
    --------
    >>> n_below([["a", "2", "3"], ["b", "2", "4"], ["", "", ""], ["Sum:", "4", ""], ["as of May", "", ""]])
    3
    >>> n_below([["a", "2", "3"], ["b", "2", "4"], ["sum", "5", ""]]), n_below([["a", "2", "3"], ["New York", "", ""]])
    (0, 0)
    """
    if not rows or len(rows[0]) < 3:
        return 0
    last = [[text(cell) for cell in row] for row in rows[-_MOST_ROWS:]]
    n_remark = 0
    while n_remark < len(last) and _is_remark(last[-n_remark - 1]):
        n_remark += 1
    before = rows[: len(rows) - n_remark]
    n_total = _n_totals(before, text)
    if n_total:
        n_empty = next((k for k, row in enumerate(reversed(before[:-n_total])) if any(map(text, row))), 0)
        return n_empty + n_total + n_remark
    apart = next((k for k, row in enumerate(last) if k >= len(last) - n_remark and not any(row)), len(last))
    labels = {row[0] for row in last[apart:] if row[0]}
    before = rows[: len(rows) - len(last) + apart]
    if not labels or not before:
        return 0
    is_full = all(2 * sum(map(bool, map(text, row))) > len(row) for row in before[-_N_LAST:])
    is_new = labels.isdisjoint(text(row[0]) for row in before)
    return len(last) - apart if is_full and is_new else 0


def _is_remark(row: Sequence[str]) -> bool:
    """Return whether a row is empty, or holds a remark in its first cell alone."""
    filled = [cell for cell in row if cell]
    return not filled or (bool(row[0]) and is_below([filled], len(row)))


def _n_totals(rows: Sequence[Sequence[Any]], text: Callable[[Any], str]) -> int:
    """Return how many last rows hold totals and means: two, one or none."""
    for n in (2, 1):
        last = [[text(cell) for cell in row] for row in rows[len(rows) - n :]]
        kinds = [_KINDS.get(_label(row[0]), "") for row in last]
        if len(rows) < n + 2 or not all(kinds) or len(set(kinds)) < n:
            continue
        above = rows[: len(rows) - n]
        is_new = {_label(row[0]) for row in last}.isdisjoint(_label(text(row[0])) for row in above)
        if is_new and all(_sums_up(row, above, text) for row in last):
            return n
    return 0


def _label(cell: str) -> str:
    return cell.casefold().strip(" :")


def _sums_up(row: Sequence[str], above: Sequence[Sequence[Any]], text: Callable[[Any], str]) -> bool:
    """Return whether each cell of a row but the first is empty or the sum, or mean, of those above; one is."""
    kind, n_equal = _KINDS[_label(row[0])], 0
    for position, cell in enumerate(row):
        if position == 0 or cell in header_of.MISSING:
            continue
        texts = [known for other in above if (known := text(other[position])) not in header_of.MISSING]
        found = number_readings([*texts, cell]) if texts else None
        if found is None:
            return False
        digits = re.search(r"[.,](\d+)\D*$", cell)
        unit = 10.0 ** -len(digits[1]) if digits else 1.0
        if not any(_is_equal(values, kind, unit) for values in found.values):
            return False
        n_equal += 1
    return n_equal > 0


def _is_equal(values: np.ndarray, kind: str, unit: float) -> bool:
    """Return whether the last of some numbers is the sum, or mean, of the others, as rounded to a unit."""
    others = values[:-1]
    expected = others.sum() if kind == "total" else others.mean()
    # a mean of few digits would be that of many values
    rounding = 0.5 * unit if kind == "total" else min(0.5 * unit, 0.005 * float(np.ptp(others)))
    return bool(abs(values[-1] - expected) <= max(_ROUNDING * abs(expected), rounding))


def tell_below(name: str, rows: Sequence[Sequence[str]], *, is_kept_by_option: bool) -> None:
    """Warn that rows below a table are left out, and how they are kept, where they can be."""
    title = next((cell for row in rows for cell in row if cell), "")
    clipped = title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}..."
    rows_are = "the last row" if len(rows) == 1 else f"the last {len(rows)} rows"
    verb, them = ("is", "it") if len(rows) == 1 else ("are", "them")
    option = f"; header=True, or --header, keeps {them}" if is_kept_by_option else ""
    warn(f"{rows_are} of {name!r} ({clipped}), below the table, {verb} left out{option}")


def tell_of_total(name: str, rows: Sequence[Sequence[Any]], text: Callable[[Any], str] = str.strip) -> None:
    """Warn that the last row of a table, which is kept, may be one of totals, or means, as its first cell says."""
    if len(rows) < 3 or len(rows[0]) < 2:
        return
    title = text(rows[-1][0])
    kind = _KINDS.get(_label(title))
    if kind is None or any(_label(text(row[0])) == _label(title) for row in rows[:-1]):
        return
    of_those = "the sum" if kind == "total" else "the mean"
    warn(
        f"the last row of {name!r} ({title}) may hold {kind}s, but not every cell is {of_those} of those above: it is "
        f"kept as row {len(rows)}; delete it from the file if it does"
    )


def without_empty(table: Sequence[Cells], header: Sequence[str], name: str) -> list[Cells]:
    """Return columns but for those that have neither name nor cells, with a warning unless they are the first or last.

    A separator at the beginning or end of each line makes those.
    """
    is_kept = [bool(text) or cells.n_observed > 0 for cells, text in zip(table, header, strict=True)]
    known = [k for k, kept in enumerate(is_kept) if kept]
    inside = [str(k + 1) for k in range(known[0], known[-1]) if not is_kept[k]] if known else []
    if inside:
        numbers = ", ".join(inside[:_N_NUMBERS]) + (
            f" and {len(inside) - _N_NUMBERS} more" * (len(inside) > _N_NUMBERS)
        )
        are = "column {} of {!r} is" if len(inside) == 1 else "columns {} of {!r} are"
        warn(f"{are.format(numbers, name)} left out: without a name and empty")
    return [cells for cells, kept in zip(table, is_kept, strict=True) if kept]


def tell(name: str, n_row: int, first: Sequence[str]) -> None:
    """Warn that rows above a table are left out."""
    clipped = _clipped(next(filter(None, first), ""))
    rows, verb = ("row 1", "is") if n_row == 1 else (f"rows 1 to {n_row}", "are")
    warn(
        f"{rows} of {name!r} ({clipped}), above the table, {verb} left out; header=True, or --header, begins with row 1"
    )
