"""Sheets of Excel and OpenDocument to cells."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from bayesjpt.errors import TableError, warn
from bayesjpt.table import header as header_of
from bayesjpt.table import preamble
from bayesjpt.table.cells import Cells
from bayesjpt.table.reading import Reading

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

_N_HEAD_ROWS = 200
"""Rows in which the names of columns are looked for."""


def read_sheet(path: Path, reading: Reading, most_bytes: float) -> list[Cells]:
    """Return the cells of each column of a sheet.

    Parameters
    ----------
    path : Path
    reading : Reading
    most_bytes : float
        What the file may hold, expanded.

    Raises
    ------
    TableError
        Where the file is damaged, holds too much, or has no such sheet, or no sheet with cells.
    """
    from python_calamine import CalamineError, CalamineWorkbook

    _check_size(path, most_bytes)
    try:
        with CalamineWorkbook.from_path(str(path)) as book:
            chosen, rows = _chosen(book, path.name, reading.sheet)
    except TableError:  # a ValueError, too
        raise
    except (CalamineError, OSError, ValueError) as error:
        found = f"file {path.name!r} cannot be read: {' '.join(str(error).split())}"
        raise TableError(found, "a workbook of Excel or LibreOffice") from None
    others = [name for name in book.sheet_names if name != chosen]
    if others and reading.sheet is None:
        warn(f"sheet {chosen!r} of {path.name!r} is read; sheet=, or --sheet, takes {', '.join(map(repr, others[:5]))}")
    return _columns(rows, f"{path.name}, sheet {chosen}", reading)


def _check_size(path: Path, most_bytes: float) -> None:
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        n_byte = sum(part.file_size for part in archive.infolist())
    if n_byte > most_bytes:
        raise TableError(
            f"{path.name!r} holds {n_byte} bytes in {path.stat().st_size}",
            f"at most {int(most_bytes)}",
            "Raise it with limits=bj.ReadLimits(expansion=...).",
            command="Raise it with --expansion.",
        )


def _chosen(book: Any, name: str, sheet: str | int | None) -> tuple[str, list[list[Any]]]:
    names = book.sheet_names
    if sheet is not None:
        number = int(sheet) if str(sheet).isdigit() and str(sheet) not in names else None
        if str(sheet) not in names and not (number is not None and 1 <= number <= len(names)):
            raise TableError(
                f"file {name!r} has no sheet {sheet!r}", f"one of {', '.join(map(repr, names[:20]))}, or its number"
            )
        found = str(sheet) if number is None else names[number - 1]
        return found, _rows(book, found)
    found = [(one, rows) for one in names if (rows := _rows(book, one))]
    if found:
        return next((pair for pair in found if not _holds_notes(pair[1])), found[0])
    raise TableError(f"file {name!r} is empty", "a sheet with cells")


def _holds_notes(rows: list[list[Any]]) -> bool:
    """Return whether a sheet holds a single row, or a column of texts: what people write before their table."""
    return len(rows) < 2 or all(sum(cell != "" for cell in row) == 1 and isinstance(row[0], str) for row in rows)


def _rows(book: Any, sheet: str) -> list[list[Any]]:
    rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=True)
    return [row for row in rows if any(cell != "" for cell in row)]


def _columns(rows: list[list[Any]], name: str, reading: Reading) -> list[Cells]:
    from bayesjpt.table.frames import object_cells

    if not rows:
        raise TableError(f"{name!r} is empty", "a header row with the names of the columns")
    if reading.header is None:
        n_above = preamble.n_above([[_text(cell) for cell in row] for row in rows[:_N_HEAD_ROWS]], [False] * len(rows))
        if n_above:
            preamble.tell(name, n_above, [_text(cell) for cell in rows[0]])
            rows = rows[n_above:]
    first = [_text(cell) for cell in rows[0]]
    has_header = reading.header
    if has_header is None:
        records = [[_text(cell) for cell in row] for row in rows[1:200]]
        has_header = not all(isinstance(cell, str) for cell in rows[0]) and header_of.holds_names(first, records)
        has_header = has_header or all(isinstance(cell, str) for cell in rows[0])
    if has_header:
        rows = rows[1:]
        head = [[_text(cell) for cell in row] for row in rows[:_N_HEAD_ROWS]]
        names, n_below = preamble.names_of(first, head if reading.header is None else [], name)
        rows = rows[n_below:]
        if reading.header is None:
            rows = _above_end(rows, name)
    else:
        names = header_of.numbered(len(first), first, name, is_stated=reading.header is False)
    table = [object_cells(one, [_cell(row[k]) for row in rows]) for k, one in enumerate(names)]
    return preamble.without_empty(table, first, name) if has_header else table


def _above_end(rows: list[list[Any]], name: str) -> list[list[Any]]:
    """Return rows without totals and remarks below them."""
    n_below = preamble.n_below(rows, _text)
    if not n_below:
        preamble.tell_of_total(name, rows, _text)
        return rows
    last = [[_text(cell) for cell in row] for row in rows[-n_below:]]
    preamble.tell_below(name, last, is_kept_by_option=True)
    return rows[:-n_below]


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _cell(cell: Any) -> Any:
    """Return a cell as an object of Python: None for an empty one."""
    return (cell.strip() or None) if isinstance(cell, str) else cell
