"""Files to cells: delimited text, parquet, feather and Arrow. Knows nothing of what becomes of the columns."""

from __future__ import annotations

import csv
import gzip
import itertools
import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayesjpt.errors import TableError
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells

_TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
_ARROW_SUFFIXES = (".parquet", ".feather", ".arrow", ".arrows", ".ipc")
_ARROW_FILE_STARTS = (b"ARROW1", b"FEA1")
"""First bytes of a feather file of either version; a stream of Arrow batches has none of its own."""
_SEPARATORS = (",", ";", "\t", "|")
_N_ROW_CHUNK = 65_536
_N_HEAD_LINES = 64
"""Lines in which header and first record are looked for, to find the separator; quoted cells may hold line ends."""


def read_cells(path: str | Path) -> list[Cells]:
    """Return the cells of each column of a file.

    Raises
    ------
    TableError
        Where the file is missing, of an unknown kind, empty, ragged, or has empty or duplicate names.
    """
    if not isinstance(path, str | Path):
        raise TableError(f"a path of type {type(path).__name__}", "a text or a Path", "Data frames go to bj.as_table.")
    path = Path(path)
    name = path.name.lower()
    if not path.is_file():
        raise TableError(f"no file {str(path)!r}")
    if name.endswith(_TEXT_SUFFIXES):
        return _read_text(path)
    if name.endswith(_ARROW_SUFFIXES):
        return _read_arrow(path)
    known = ", ".join(_TEXT_SUFFIXES + _ARROW_SUFFIXES)
    raise TableError(f"file {path.name!r} is of an unknown kind", f"a name that ends in one of {known}")


def _read_text(path: Path) -> list[Cells]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            head = list(itertools.islice(file, _N_HEAD_LINES))
            lines = itertools.chain(head, file)
            return _parse(csv.reader(lines, delimiter=_separator(path, head), strict=True), path.name)
    except UnicodeDecodeError as error:
        raise TableError(
            f"file {path.name!r} is not UTF-8 text (byte {error.start})", None, "Save it with UTF-8 encoding."
        ) from None
    except (csv.Error, zlib.error, EOFError, OSError) as error:
        raise TableError(f"file {path.name!r} cannot be read: {error}") from None


def _separator(path: Path, head: Sequence[str]) -> str:
    """Return the tab of a .tsv file, otherwise one of comma, semicolon, tab and bar.

    The first of them that header and first record hold equally often, or else the first that the header holds.
    """
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    n_line = _n_record_lines(head)
    rest = [line for line in head[n_line:] if line.strip("\r\n")]
    header, record = _unquoted(head[:n_line]), _unquoted(rest[: _n_record_lines(rest)])
    held = [separator for separator in _SEPARATORS if separator in header]
    return next((one for one in held if header.count(one) == record.count(one)), held[0] if held else ",")


def _n_record_lines(lines: Sequence[str]) -> int:
    """Return the number of lines of the first record, which ends where its quotes are balanced."""
    n_quote = 0
    for position, line in enumerate(lines, start=1):
        n_quote += line.count('"')
        if n_quote % 2 == 0:
            return position
    return len(lines)


def _unquoted(lines: Sequence[str]) -> str:
    return re.sub(r'"[^"]*"', "", "".join(lines))


def _parse(reader, file_name: str) -> list[Cells]:
    header = [name.strip() for name in next(reader, [])]
    if not any(header):
        raise TableError(f"file {file_name!r} is empty", "a header line with the names of the columns")
    if all(cells_of.number_of_text(name) is not None for name in header):
        raise TableError(
            f"the first line of {file_name!r} holds numbers only", "the names of the columns", "Add a header line."
        )
    names = [name or f"unnamed_{position}" for position, name in enumerate(header, start=1)]
    cells_of.check_distinct(names)
    # each column numbers its distinct texts as they come: one string is kept for each, whatever the number of rows
    numbers: list[defaultdict[str, int]] = [defaultdict() for _ in names]
    for number in numbers:
        number.default_factory = number.__len__
    codes: list[list[np.ndarray]] = [[] for _ in names]
    n_row = 0
    while rows := list(itertools.islice(filter(None, reader), _N_ROW_CHUNK)):
        for offset, row in enumerate(rows):
            if len(row) != len(names):
                raise TableError(
                    f"data row {n_row + offset + 1} of {file_name!r} has {len(row)} cells",
                    f"{len(names)} as in the header line",
                    "Put quotes around cells that hold the separator.",
                )
        for number, parts, column in zip(numbers, codes, zip(*rows, strict=True), strict=True):
            parts.append(np.fromiter(map(number.__getitem__, column), np.int64, len(rows)))
        n_row += len(rows)
    table = [
        cells_of.from_text(name, list(number), np.concatenate([*parts, np.empty(0, np.int64)]))
        for name, number, parts in zip(names, numbers, codes, strict=True)
    ]
    # a separator at the end of each line makes a last column without name and cells
    return [cells for cells, name in zip(table, header, strict=True) if name or cells.n_observed or not n_row]


def _read_arrow(path: Path) -> list[Cells]:
    try:
        from pyarrow import ArrowException, feather, ipc, parquet
    except ImportError:
        raise TableError(
            f"reading {path.name!r} needs the package pyarrow", None, 'Install it: pip install "bayesjpt[arrow]".'
        ) from None
    from bayesjpt.table.frames import frame_cells

    try:
        with path.open("rb") as file:
            start = file.read(6)
            file.seek(0)
            if path.name.lower().endswith(".parquet"):
                frame = parquet.read_table(file)
            elif start.startswith(_ARROW_FILE_STARTS):
                frame = feather.read_table(file)
            else:
                frame = ipc.open_stream(file).read_all()
    except (ArrowException, OSError) as error:
        raise TableError(f"file {path.name!r} cannot be read: {error}") from None
    return frame_cells(frame)
