"""Files to cells, by the end of their name, within limits. Knows nothing of what becomes of the columns."""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import MAX_EXPANSION, MAX_LINE_BYTES
from bayesjpt.errors import TableError
from bayesjpt.table import json_lines, spreadsheet
from bayesjpt.table.cells import Cells
from bayesjpt.table.delimited import read_text
from bayesjpt.table.encodings import as_utf8
from bayesjpt.table.reading import NOTHING_KNOWN, Reading
from bayesjpt.user_paths import as_file

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

FREE_EXPANSION_BYTES = 64 * 2**20
"""Bytes that a compressed file may hold however small it is: constant columns, in small files, are nothing to fear."""


_TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
_ARROW_SUFFIXES = (".parquet", ".feather", ".arrow", ".arrows", ".ipc")
_ARROW_FILE, _OLD_FEATHER = b"ARROW1", b"FEA1"
"""First bytes of a file of either version of feather; a stream of Arrow batches has none of its own."""
_N_BYTE_PIECE = 2**16
"""Bytes read at once."""

_LINE_END = re.compile(rb"[\r\n]")


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


def read_cells(
    path: str | Path,
    limits: ReadLimits | None = None,
    reading: Reading = NOTHING_KNOWN,
    *,
    as_written: bool = False,
) -> tuple[list[Cells], Reading]:
    """Return the cells of each column of a file, and how it was read.

    Parameters
    ----------
    path : str or Path
    limits : ReadLimits, optional
    reading : Reading
        What is known of the file.
    as_written : bool
        Whether cells of a text file are texts whatever they say, and those of columns that cannot be modelled too, so
        that they can be written as they were read.

    Raises
    ------
    TableError
        Where the file is missing, of an unknown kind, empty, ragged or beyond a limit.
    """
    limits = ReadLimits() if limits is None else limits
    if not isinstance(limits, ReadLimits):
        raise TableError(f"limits of type {type(limits).__name__}", "bj.ReadLimits(...)")
    if not isinstance(path, str | Path):
        raise TableError(f"a path of type {type(path).__name__}", "a text or a Path", "Data frames go to bj.as_table.")
    path = as_file(path, TableError)
    name = path.name.lower()
    if reading.sheet is not None and not name.endswith(spreadsheet.SUFFIXES):
        raise TableError(f"sheet {reading.sheet!r} of {path.name!r}", "no sheet: the file is no workbook")
    if name.endswith(_TEXT_SUFFIXES):
        content = as_utf8(_content(path, limits), path.name, reading.encoding)
        table, separator = read_text(content, path.name, reading, as_written=as_written)
        return table, replace(reading, sep=separator)
    if name.endswith(json_lines.SUFFIXES):
        content = as_utf8(_content(path, limits), path.name, reading.encoding)
        return json_lines.read_json(content, path.name, as_written=as_written), reading
    if name.endswith(spreadsheet.SUFFIXES):
        return spreadsheet.read_sheet(path, reading, limits.expanded(path.stat().st_size)), reading
    if name.endswith(_ARROW_SUFFIXES):
        return _read_arrow(path, limits, as_written=as_written), reading
    if name.endswith(".nc"):
        raise TableError(
            f"{path.name!r} is a fit",
            "a table",
            "Load it: bj.load(path).types().",
            command=f"Ask it: bayesjpt report {path.name}, or query, sample, outliers.",
        )
    known = ", ".join(_TEXT_SUFFIXES + _ARROW_SUFFIXES + spreadsheet.SUFFIXES + json_lines.SUFFIXES)
    raise TableError(f"file {path.name!r} is of an unknown kind", f"a name that ends in one of {known}")


class Guarded(io.RawIOBase):
    """Bytes of a file as they are read, up to the limits.

    Parameters
    ----------
    raw : file
        Of which the bytes are read, expanded where the file is compressed.
    path : Path
        For messages, and for the size of what is compressed.
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
                command="Raise it with --line-bytes.",
            )
        end = max(content.rfind(b"\n"), content.rfind(b"\r"))
        self._n_line = self._n_line + n if end < 0 else n - end - 1
        if self._n_read > self._most:
            raise TableError(
                f"{self._name!r} holds more than {int(self._most)} bytes, compressed",
                f"at most {self._limits.expansion:g} times those of the file",
                "Raise it with limits=bj.ReadLimits(expansion=...).",
                command="Raise it with --expansion.",
            )
        return n


def _content(path: Path, limits: ReadLimits) -> bytes:
    """Return the bytes of a file, expanded where it is compressed."""
    is_compressed = path.name.lower().endswith(".gz")
    try:
        with (gzip.open if is_compressed else open)(path, "rb") as raw:
            guarded = io.BufferedReader(Guarded(raw, path, limits, is_compressed=is_compressed), _N_BYTE_PIECE)
            return b"".join(iter(lambda: guarded.read(_N_BYTE_PIECE), b""))
    except (zlib.error, EOFError, OSError) as error:
        raise TableError(f"file {path.name!r} cannot be read: {error}") from None
    except MemoryError:
        raise TableError(f"file {path.name!r} does not fit into memory") from None


def arrow_table(path: Path, limits: ReadLimits) -> pyarrow.Table | None:
    """Return the columns of a parquet, feather or Arrow file as they are stored; None of a file of another kind.

    Raises
    ------
    TableError
        As `read_cells`.
    """
    path = as_file(path, TableError)
    if not path.name.lower().endswith(_ARROW_SUFFIXES):
        return None
    with _arrow_errors(path):
        return _stored(path, limits, nested=True)[0]


def _read_arrow(path: Path, limits: ReadLimits, *, as_written: bool) -> list[Cells]:
    from pyarrow.types import is_nested

    from bayesjpt.table.frames import frame_cells
    from bayesjpt.table.stored import stored_texts

    with _arrow_errors(path):
        frame, schema, n_row = _stored(path, limits, nested=as_written)
        flat = [k for k, field in enumerate(schema) if not is_nested(field.type)]
        read = iter(frame_cells(frame.select(flat) if as_written else frame))
        table = [
            replace(cells, codes=np.full(n_row, -1, np.int64)) if is_nested(field.type) else next(read)
            for cells, field in zip(frame_cells(schema.empty_table()), schema, strict=True)
        ]
        if not as_written:
            return table
        return [
            stored_texts(cells.name, column) if cells.excluded else cells
            for cells, column in zip(table, frame.columns, strict=True)
        ]


@contextmanager
def _arrow_errors(path: Path) -> Iterator[None]:
    """Raise `TableError` where Arrow cannot read a file."""
    from pyarrow import ArrowException

    try:
        yield
    except UnicodeDecodeError:
        raise TableError(f"file {path.name!r} holds names or texts that are not UTF-8") from None
    except (ArrowException, OSError, MemoryError) as error:
        raise TableError(f"file {path.name!r} cannot be read: {str(error) or 'it does not fit into memory'}") from None


def _stored(path: Path, limits: ReadLimits, *, nested: bool) -> tuple[pyarrow.Table, pyarrow.Schema, int]:
    """Return the columns of one of Arrow's files, without nested ones unless asked for; the schema, and n_row."""
    from pyarrow import feather, ipc, parquet
    from pyarrow.types import is_nested

    with path.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        if path.name.lower().endswith(".parquet"):
            stored = parquet.ParquetFile(file)
            schema, n_row = stored.schema_arrow, stored.metadata.num_rows
            _check_cells(path, n_row, stored.metadata.num_columns, limits)
            frame = _whole(stored, path, limits, nested=nested)
        elif start.startswith(_OLD_FEATHER):
            frame = feather.read_table(file)
            schema, n_row = frame.schema, frame.num_rows
        else:
            opened = ipc.open_file if start.startswith(_ARROW_FILE) else ipc.open_stream
            schema = opened(file).schema
            file.seek(0)
            kept = [k for k, field in enumerate(schema) if nested or not is_nested(field.type)]
            # of nested columns alone it takes one, which tells the number of rows
            frame = opened(file, options=ipc.IpcReadOptions(included_fields=kept or [0])).read_all()
            n_row = frame.num_rows
            frame = frame if kept else frame.select([])
    frame.validate(full=True)
    _check_cells(path, n_row, len(schema), limits)
    return frame, schema, n_row


def _whole(stored: parquet.ParquetFile, path: Path, limits: ReadLimits, *, nested: bool) -> pyarrow.Table:
    """Return the columns of a parquet file, without nested ones unless asked for, read in parts.

    A text that repeats takes room in memory, and none in the file; so do the cells of a list.
    """
    import pyarrow

    parts, n_byte = [], 0
    whole = stored.schema_arrow
    flat = pyarrow.schema([field for field in whole if not pyarrow.types.is_nested(field.type)])
    wanted = whole if nested or len(flat) == len(whole) else flat
    columns = None if wanted is whole else flat.names
    for part in stored.iter_batches(columns=columns):
        parts.append(part)
        n_byte += part.nbytes
        if n_byte > limits.expanded(path.stat().st_size):
            raise TableError(
                f"{path.name!r} holds more than {n_byte} bytes of cells in {path.stat().st_size} bytes",
                f"at most {limits.expansion:g} times as many bytes as the file has",
                "Raise it with limits=bj.ReadLimits(expansion=...).",
                command="Raise it with --expansion.",
            )
    return pyarrow.Table.from_batches(parts, wanted)


def _check_cells(path: Path, n_row: int, n_column: int, limits: ReadLimits) -> None:
    """Raise `TableError` for more cells than a file of this size may hold."""
    if 8 * n_row * n_column > limits.expanded(path.stat().st_size):
        raise TableError(
            f"{path.name!r} holds {n_row} rows of {n_column} columns in {path.stat().st_size} bytes",
            f"at most {limits.expansion:g} times as many bytes as the file has",
            "Raise it with limits=bj.ReadLimits(expansion=...).",
            command="Raise it with --expansion.",
        )
