"""Files to cells: delimited text, parquet, feather and Arrow. Knows nothing of what becomes of the columns."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesjpt.defaults import FREE_EXPANSION_BYTES, MAX_EXPANSION, MAX_LINE_BYTES
from bayesjpt.errors import TableError
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells

_TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
_ARROW_SUFFIXES = (".parquet", ".feather", ".arrow", ".arrows", ".ipc")
_ARROW_FILE_STARTS = (b"ARROW1", b"FEA1")
"""First bytes of a feather file of either version; a stream of Arrow batches has none of its own."""
_SEPARATORS = (",", ";", "\t", "|")
_N_ROW_CHUNK = 65_536
_N_BYTE_PIECE = 2**16
"""Bytes read at once."""

_LINE_END = re.compile(rb"[\r\n]")
_N_HEAD_LINES = 64
"""Lines in which header and first record are looked for, to find the separator; quoted cells may hold line ends."""


@dataclass(frozen=True)
class ReadLimits:
    """How much of a file is believed, for files from anywhere.

    Parameters
    ----------
    line_bytes : int
        Of a line of text; a longer one is an error, before it is in memory.
    expansion : float
        How often more bytes a compressed file may hold than it has; cells of 8 bytes count in Arrow's files.
    free_bytes : int
        What a compressed file may hold in any case.

    Examples
    --------
    >>> import bayesjpt as bj
    >>> bj.ReadLimits(line_bytes=100_000_000).expansion
    200.0
    """

    line_bytes: int = MAX_LINE_BYTES
    expansion: float = MAX_EXPANSION
    free_bytes: int = FREE_EXPANSION_BYTES

    def __post_init__(self):
        for name, value in vars(self).items():
            if not isinstance(value, int | float) or not value > 0:
                raise TableError(f"ReadLimits with {name} = {value!r}", "a number above 0")

    def expanded(self, n_byte: int) -> float:
        """Return what a compressed file of some bytes may hold."""
        return max(self.free_bytes, self.expansion * n_byte)


def read_cells(path: str | Path, limits: ReadLimits | None = None) -> list[Cells]:
    """Return the cells of each column of a file.

    Raises
    ------
    TableError
        Where the file is missing, of an unknown kind, empty, ragged, beyond a limit, or has empty or duplicate names.
    """
    limits = ReadLimits() if limits is None else limits
    if not isinstance(path, str | Path):
        raise TableError(f"a path of type {type(path).__name__}", "a text or a Path", "Data frames go to bj.as_table.")
    path = Path(path)
    name = path.name.lower()
    if not path.is_file():
        raise TableError(f"no file {str(path)!r}")
    if name.endswith(_TEXT_SUFFIXES):
        return _read_text(path, limits)
    if name.endswith(_ARROW_SUFFIXES):
        return _read_arrow(path, limits)
    known = ", ".join(_TEXT_SUFFIXES + _ARROW_SUFFIXES)
    raise TableError(f"file {path.name!r} is of an unknown kind", f"a name that ends in one of {known}")


class _Guarded(io.RawIOBase):
    """Bytes of a file as they are read, up to the limits.

    Parameters
    ----------
    raw : file
        Of which the bytes are read, expanded where the file is compressed.
    path : Path
        For messages, and for the size of what is compressed; None for no limit of the expansion.
    """

    def __init__(self, raw: Any, path: Path, limits: ReadLimits, *, is_compressed: bool):
        self._raw, self._name, self._limits = raw, path.name, limits
        self._most = limits.expanded(path.stat().st_size) if is_compressed else math.inf
        self._n_read = self._n_line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._raw.readinto(buffer)
        self._n_read += n
        content = bytes(memoryview(buffer)[:n])
        most = self._limits.line_bytes
        # only where a line could be too long are all of them measured
        if self._n_line + n > most and max(map(len, _LINE_END.split(b"x" * self._n_line + content))) > most:
            raise TableError(
                f"a line of {self._name!r} has more than {most} bytes",
                "a table with line ends",
                "Raise it with limits=bj.ReadLimits(line_bytes=...).",
            )
        end = max(content.rfind(b"\n"), content.rfind(b"\r"))
        self._n_line = self._n_line + n if end < 0 else n - end - 1
        if self._n_read > self._most:
            raise TableError(
                f"{self._name!r} holds more than {int(self._most)} bytes, compressed",
                f"at most {self._limits.expansion:g} times those of the file",
                "Raise it with limits=bj.ReadLimits(expansion=...), or expand the file.",
            )
        return n


def _read_text(path: Path, limits: ReadLimits) -> list[Cells]:
    is_compressed = path.name.lower().endswith(".gz")
    try:
        with (gzip.open if is_compressed else open)(path, "rb") as raw:
            guarded = io.BufferedReader(_Guarded(raw, path, limits, is_compressed=is_compressed), _N_BYTE_PIECE)
            file = io.TextIOWrapper(guarded, encoding="utf-8-sig", newline="")
            head = list(itertools.islice(file, _N_HEAD_LINES))
            separator = _named_separator(head)
            if separator is None:
                separator = _separator(path, head)
            else:
                head = [*head[1:], *itertools.islice(file, 1)]
            lines = itertools.chain(head, file)
            return _parse(csv.reader(lines, delimiter=separator, strict=True), path.name)
    except UnicodeDecodeError as error:
        raise TableError(
            f"file {path.name!r} is not UTF-8 text (byte {error.start})", None, "Save it with UTF-8 encoding."
        ) from None
    except (csv.Error, zlib.error, EOFError, OSError) as error:
        raise TableError(f"file {path.name!r} cannot be read: {error}") from None
    except MemoryError:
        raise TableError(f"file {path.name!r} does not fit into memory") from None


def _named_separator(head: Sequence[str]) -> str | None:
    """Return the separator that a first line ``sep=;`` names, as Excel writes and reads it, or None."""
    found = re.fullmatch(r'"?sep=([^\r\n"])"?[\r\n]*', head[0], re.IGNORECASE) if head else None
    return found[1] if found else None


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


def _read_arrow(path: Path, limits: ReadLimits) -> list[Cells]:
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
                about = parquet.ParquetFile(file).metadata
                _check_cells(path, about.num_rows, about.num_columns, limits)
                file.seek(0)
                frame = parquet.read_table(file)
            elif start.startswith(_ARROW_FILE_STARTS):
                frame = feather.read_table(file)
            else:
                frame = ipc.open_stream(file).read_all()
        frame.validate(full=True)
        _check_cells(path, frame.num_rows, frame.num_columns, limits)
        return frame_cells(frame)
    except UnicodeDecodeError:
        raise TableError(f"file {path.name!r} holds names or texts that are not UTF-8") from None
    except (ArrowException, OSError, MemoryError) as error:
        raise TableError(f"file {path.name!r} cannot be read: {str(error) or 'it does not fit into memory'}") from None


def _check_cells(path: Path, n_row: int, n_column: int, limits: ReadLimits) -> None:
    """Raise `TableError` for more cells than a file of this size may hold."""
    if 8 * n_row * n_column > limits.expanded(path.stat().st_size):
        raise TableError(
            f"{path.name!r} holds {n_row} rows of {n_column} columns in {path.stat().st_size} bytes",
            f"at most {limits.expansion:g} times as many bytes as the file has",
            "Raise it with limits=bj.ReadLimits(expansion=...).",
        )
