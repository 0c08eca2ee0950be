"""One text file of many, batch by batch: separator, names, what its cells can be read as, and what is wrong with it."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesjpt.errors import TableError
from bayesjpt.table.delimited import around_names, holds_line_end, named_separator, ragged, separator_of, strict_records
from bayesjpt.table.header import plain_names
from bayesjpt.table.read import Guarded, ReadLimits

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_TEXT_BYTES = 2**24
"""Bytes of a text file that are parsed at once, unless lines may be longer."""
_MOST_TEXT_BYTES = 2**31 - 1
"""What Arrow can parse at once."""
_N_FIRST_BYTES = _TEXT_BYTES // 16
"""Bytes in which the names of its columns stand."""
_HEAD_BYTES = 2**16
"""Bytes in which its separator is looked for, and rows that are none of the table."""

_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")
"""Texts that mean a missing cell, as in `bayesjpt.read_table`."""
_CODE = r"^\s*(\+|-?0[0-9xX])"
_MANY_DIGITS = r"^\s*-?[0-9]{16,}\s*$"
_THOUSANDS = r"^\s*-?([0-9]{1,3}(\.[0-9]{3})*|[0-9]+)\s*$"


def is_text(path: Path) -> bool:
    """Return whether a file is of text, by its name."""
    return path.name.lower().endswith(TEXT)


def text_kinds(path: Path, limits: ReadLimits) -> tuple[dict[str, Any], int]:
    """Return what the cells of each column can be read as, and the number of rows.

    Raises
    ------
    TableError
        Where the file cannot be read, its quotes do not close, or a row has another number of cells than the names.
    """
    found: dict[str, set[Any]] = {name: set() for name in text_names(path)}
    n_row, has_line_ends = 0, False
    try:
        with as_our_errors(path, limits):
            for batch in text_batches(path, {}, limits):
                n_row += batch.num_rows
                for name, column in zip(found, batch.columns, strict=True):
                    found[name].add(_read_as(column))
                    has_line_ends = has_line_ends or holds_line_end(column)
    except TableError:
        _check_records(path, limits)  # tells the row
        raise
    if has_line_ends:
        _check_records(path, limits)
    return {name: common_kind(kinds) for name, kinds in found.items()}, n_row


def common_kind(kinds: set[Any]) -> Any:
    """Return what all cells can be read as, of columns of texts that can be read as these."""
    import pyarrow as pa

    known = kinds - {pa.null()}
    if len(known) <= 1:
        return next(iter(known), pa.null())
    return pa.float64() if known <= {pa.int64(), pa.float64()} else pa.string()


def text_batches(path: Path, kinds: dict[str, Any], limits: ReadLimits) -> Iterator[Any]:
    """Yield the batches of a file, with the types given, or as texts."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    readable = pa.int64(), pa.float64(), pa.string()  # of others, which are those of Arrow files, all is missing
    written = _written_names(path)
    types = {name: kinds.get(plain, pa.null()) for name, plain in zip(written, plain_names(written), strict=True)}
    types = {name: kind if kind in readable else pa.null() for name, kind in types.items()}
    options = (
        arrow_csv.ReadOptions(block_size=_n_piece(limits), skip_rows=_n_above(path)),
        arrow_csv.ParseOptions(delimiter=separator(path), newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types=types if kinds else dict.fromkeys(written, pa.string()),
            null_values=list(_MISSING),
            strings_can_be_null=True,
        ),
    )
    with _opened(path, limits) as file:
        for batch in arrow_csv.open_csv(file, *options):
            yield pa.RecordBatch.from_arrays(batch.columns, plain_names(batch.schema.names))


def text_names(path: Path) -> list[str]:
    """Return the names of the columns; raise `TableError` where the file holds more than names and rows below."""
    with as_our_errors(path):
        head = _head(path)
        if not head.removeprefix(codecs.BOM_UTF8).strip():
            raise TableError(f"file {path.name!r} is empty", "names in its first row", "Leave it out.")
        if len(head) == _N_FIRST_BYTES and b"\n" not in head and b"\r" not in head:
            raise _long_line(path, _N_FIRST_BYTES, "Read it by itself where it is one: bj.read_table(path).")
        found = around_names(head[:_HEAD_BYTES], path.name)
        if found:
            raise TableError(
                f"file {path.name!r} has {found}",
                "names in the first row of each of several files, and rows of cells below",
                "Write it without them, or read it by itself: bj.read_table leaves them out.",
            )
        return plain_names(_written_names(path))


def separator(path: Path) -> str:
    """Return the character between the cells of a file."""
    lines = _first_lines(path)
    return named_separator(lines) or separator_of(path.name, lines)


@contextlib.contextmanager
def as_our_errors(path: Path, limits: ReadLimits | None = None) -> Iterator[None]:
    """Make what is said of a bad file our error."""
    import pyarrow as pa

    in_utf8 = "text in UTF-8", "Save it as UTF-8; a file that is read by itself may have any encoding."
    try:
        yield
    except UnicodeDecodeError as error:
        raise TableError(f"file {path.name!r} cannot be read: {first_line(error)}", *in_utf8) from error
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        if "straddl" in str(error):
            remedy = "Raise it with limits=bj.ReadLimits(line_bytes=...).", "Raise it with --line-bytes."
            raise _long_line(path, _n_piece(limits or ReadLimits()), *remedy) from None
        found = f"file {path.name!r} cannot be read: {first_line(error)}"
        raise TableError(found, *(in_utf8 if "UTF8" in str(error) else ())) from error


def first_line(error: Exception) -> str:
    """Return the beginning of what an error says, or its kind."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _read_as(column: Any) -> Any:
    """Return the type as which texts of a batch can be read: int64, float64, string; null if all are missing.

    Texts stay texts, for `bayesjpt.as_table` to decide, where Arrow would read a number into a code such as 007 or
    0x1F, lose digits of a whole number or the sign of +1, or take for decimals what may be marks between thousands.
    """
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute  # its functions are made when it is imported
    if column.null_count == len(column):
        return pa.null()
    if pc.any(pc.match_substring_regex(column, _CODE)).as_py():
        return pa.string()
    for kind, other in ((pa.int64(), None), (pa.float64(), _MANY_DIGITS)):
        try:
            column.cast(kind)
        except pa.ArrowInvalid:
            continue
        if other is None:
            return kind
        in_two_ways = pc.all(pc.match_substring_regex(column, _THOUSANDS)).as_py()
        return pa.string() if in_two_ways or pc.any(pc.match_substring_regex(column, other)).as_py() else kind
    return pa.string()


def _check_records(path: Path, limits: ReadLimits) -> None:
    """Raise `TableError` where quotes do not close, or a row has another number of cells than the names."""
    csv.field_size_limit(max(csv.field_size_limit(), _n_piece(limits)))
    n_above, mark = _n_above(path), separator(path)
    with as_our_errors(path, limits), _bytes(path, replace(limits, line_bytes=_n_piece(limits))) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        records = filter(None, strict_records(itertools.islice(lines, n_above, None), mark, path.name, n_above))
        n_cell = len(next(records, []))
        for number, record in enumerate(records, start=1):
            if len(record) != n_cell:
                raise ragged(path.name, number, record, n_cell)


@contextlib.contextmanager
def _bytes(path: Path, limits: ReadLimits) -> Iterator[Any]:
    """Open the bytes of a file, expanded where it is compressed, as far as limits allow."""
    is_compressed = path.name.lower().endswith(".gz")
    with (gzip.open if is_compressed else open)(path, "rb") as raw:
        yield io.BufferedReader(Guarded(raw, path, limits, is_compressed=is_compressed), _N_FIRST_BYTES)


@contextlib.contextmanager
def _opened(path: Path, limits: ReadLimits) -> Iterator[Any]:
    """Open a file for Arrow; a compressed one holds at most what limits allow."""
    import pyarrow as pa

    if not path.name.lower().endswith(".gz"):
        yield path
        return
    with _bytes(path, limits) as file:
        yield pa.PythonFile(file, "r")


def _head(path: Path) -> bytes:
    """Return the first lines of a file."""
    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        head = file.read(_N_FIRST_BYTES)
    end = head.rfind(b"\n")
    return head[: end + 1] if end >= 0 else head


def _first_lines(path: Path) -> list[str]:
    return _head(path)[:_HEAD_BYTES].decode("utf-8-sig", "replace").splitlines(keepends=True)


def _n_above(path: Path) -> int:
    """Return the number of lines above the names: one that names the separator, or none."""
    return int(named_separator(_first_lines(path)) is not None)


def _written_names(path: Path) -> list[str]:
    """Return the names in the first line, as they are written."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(_head(path)),
        arrow_csv.ReadOptions(skip_rows=_n_above(path)),
        parse_options=arrow_csv.ParseOptions(delimiter=separator(path), invalid_row_handler=lambda row: "skip"),
    ).schema.names


def _n_piece(limits: ReadLimits) -> int:
    """Return the bytes that are parsed at once, of which a line cannot have more."""
    return int(min(max(_TEXT_BYTES, limits.line_bytes), _MOST_TEXT_BYTES))


def _long_line(path: Path, most: int, remedy: str, command: str | None = None) -> TableError:
    found = f"a line of {path.name!r} has more than {most} bytes"
    return TableError(found, "a table with line ends", remedy, command=command)
