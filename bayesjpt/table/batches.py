"""Tables that lie in files, batch by batch: which files, in which order, of which columns; never a whole file at once.

Rows are numbered from 0 in the order of the files. So what is decided by a row's number does not depend on how rows are
cut into files.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import itertools
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesjpt.errors import TableError
from bayesjpt.executors import Run, in_turn
from bayesjpt.table.delimited import around_names, named_separator, separator_of
from bayesjpt.table.read import Guarded, ReadLimits
from bayesjpt.user_paths import as_path

PARQUET, ARROW, TEXT = (".parquet",), (".feather", ".arrow", ".ipc"), (".csv", ".csv.gz", ".tsv", ".tsv.gz")
SUFFIXES = PARQUET + ARROW + TEXT
BATCH_ROWS = 65_536
"""Rows read at once."""
_TEXT_BYTES = 2**24
"""Bytes of a text file that are parsed at once, unless lines may be longer."""
_MOST_TEXT_BYTES = 2**31 - 1
"""What Arrow can parse at once."""
_N_FIRST_BYTES = _TEXT_BYTES // 16
"""Bytes in which the names of its columns stand."""
_HEAD_BYTES = 2**16
"""Bytes in which its separator is looked for, and rows that are none of the table."""
_N_SHOWN = 6
"""Categories that a message names."""


@dataclass(frozen=True)
class Files:
    """Files of the same columns.

    Parameters
    ----------
    paths : tuple of Path
    names : tuple of str
    kinds : tuple of pyarrow.DataType
        Of each column; of text files what all cells can be read as.
    n_rows : tuple of int
        Of each file.
    limits : ReadLimits
        Of text files.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    kinds: tuple[Any, ...]
    n_rows: tuple[int, ...]
    limits: ReadLimits

    @property
    def first_rows(self) -> list[int]:
        """The number of each file's first row in the whole table."""
        return [0, *itertools.accumulate(self.n_rows)][:-1]

    def batches(self) -> Iterator[Any]:
        """Yield all rows as ``pyarrow.RecordBatch`` of at most `BATCH_ROWS`, none of them empty.

        Raises
        ------
        TableError
            For a file that disappeared, or cannot be read any more.
        """
        for number in range(len(self.paths)):
            yield from self.batches_of(number)

    def batches_of(self, number: int) -> Iterator[Any]:
        """Yield the rows of one file; see `batches`.

        Raises
        ------
        TableError
            Also where they are more or fewer than they were.
        """
        path, n_row = self.paths[number], 0
        if not os.path.isfile(path):
            raise _vanished(path)
        for batch in _guarded(path, dict(zip(self.names, self.kinds, strict=True)), self.limits):
            n_row += batch.num_rows
            for first in range(0, batch.num_rows, BATCH_ROWS):  # some writers make batches of all rows
                yield batch.slice(first, BATCH_ROWS)
        if n_row != self.n_rows[number]:
            raise TableError(
                f"file {path.name!r} held {self.n_rows[number]} rows at first, and {n_row} later",
                "files that do not change meanwhile",
            )

    def stamps(self) -> list[list[Any]]:
        """Return name, bytes and time of change of each file; raise `TableError` where one is not there any more."""
        try:
            return [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self.paths]
        except FileNotFoundError as error:
            raise _vanished(Path(error.filename)) from error


def _vanished(path: Path) -> TableError:
    return TableError(f"file {path.name!r} is not there any more", f"{str(path)!r}", "Bring it back, or begin anew.")


def find_files(paths: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """Return the files that a folder, a pattern, a file or a list of these names, each once.

    Files of a folder or a pattern come in the order of their names.

    Raises
    ------
    TableError
        Where there is none, or one is of an unknown kind.
    """
    if not isinstance(paths, str | os.PathLike | Iterable):
        raise TableError(f"files of type {type(paths).__name__}", "a path, or a list of paths")
    entries = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: dict[Path, None] = {}
    for entry in entries:
        path = as_path(entry, TableError)
        if os.path.isdir(path):
            files = sorted(each for each in path.iterdir() if each.name.lower().endswith(SUFFIXES))
        elif os.path.isfile(path):
            files = [path]
        else:
            files = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
        if not files:
            raise TableError(
                f"no file {str(entry)!r}", "a file, a folder of files or a pattern such as 'folder/*.parquet'"
            )
        for each in files:
            if not each.name.lower().endswith(SUFFIXES):
                raise TableError(
                    f"file {each.name!r} is of an unknown kind", f"a name that ends in one of {', '.join(SUFFIXES)}"
                )
            found[Path(os.path.abspath(each))] = None
    if not found:
        raise TableError("no files", "at least one")
    return tuple(found)


def is_several(path: str | Path) -> bool:
    """Return whether a path names a folder, or is a pattern of names."""
    path = as_path(path, TableError)
    return os.path.isdir(path) or (any(mark in str(path) for mark in "*?[") and not os.path.exists(path))


def open_files(paths: str | Path | Sequence[str | Path], run: Run = in_turn, limits: ReadLimits | None = None) -> Files:
    """Return files, having made sure that they have the same columns of the same kinds; `run` looks at each.

    Compressed text files hold as much as `limits` allow, and lines of text may be as long, or 16 MiB.

    Raises
    ------
    TableError
        As `find_files`; and for a file that cannot be read, or whose columns differ from the first file's, by name.
    """
    limits = ReadLimits() if limits is None else limits
    if not isinstance(limits, ReadLimits):
        raise TableError(f"limits of type {type(limits).__name__}", "bj.ReadLimits(...)")
    found = find_files(paths)
    columns, n_rows = zip(*run(_facts_of, [(path, limits) for path in found]), strict=True)
    first = columns[0]
    for path, kind_of in zip(found[1:], columns[1:], strict=True):
        for name in [*first, *kind_of]:
            if name not in kind_of or name not in first:
                where, other = (path, found[0]) if name not in kind_of else (found[0], path)
                raise TableError(
                    f"file {where.name!r} has no column {name!r}, and {other.name!r} has",
                    "the same columns in each file",
                )
    _check_orders(found, first, limits)
    kinds = {name: {path: kind_of[name] for path, kind_of in zip(found, columns, strict=True)} for name in first}
    in_all = tuple(_kind_in_all(name, by_file) for name, by_file in kinds.items())
    return Files(found, tuple(first), in_all, tuple(n_rows), limits)


def _check_orders(paths: Sequence[Path], kinds: dict[str, Any], limits: ReadLimits) -> None:
    """Raise `TableError` where an ordered column declares its categories in several orders, by name."""
    import pyarrow as pa

    for name, kind in kinds.items():
        if not (pa.types.is_dictionary(kind) and kind.ordered) or len(paths) < 2:
            continue
        declared: dict[Path, list[Any]] = {}
        for path in paths:
            batch = next(_guarded(path, {name: kind}, limits), None)
            declared |= {} if batch is None else {path: batch.column(0).dictionary.to_pylist()}
        longest = max(declared, key=lambda path: len(declared[path]), default=None)
        for path, labels in declared.items():
            if longest is not None and declared[longest][: len(labels)] != labels:
                orders = [" < ".join(map(str, declared[one][:_N_SHOWN])) for one in (path, longest)]
                raise TableError(
                    f"column {name!r} has the order {orders[0]} in {path.name!r} and {orders[1]} in {longest.name!r}",
                    "one order of its categories in all files",
                    "Write one of them anew with the categories of the other.",
                )


def _is_text(path: Path) -> bool:
    return path.name.lower().endswith(TEXT)


def _kind_in_all(name: str, kinds: dict[Path, Any]) -> Any:
    """Return the type of a column in all files: a file in which it is empty has that of the others.

    Numbers of several types have the one that holds them all, as texts and texts by codes are texts.
    """
    import pyarrow as pa

    of_texts = _common({kind for path, kind in kinds.items() if _is_text(path)})
    known = {path: of_texts if _is_text(path) else kind for path, kind in kinds.items()}
    known = {path: kind for path, kind in known.items() if kind != pa.null()}
    first = next(iter(known), None)
    if first is None:
        return pa.null()
    promoted = _promoted(set(known.values()))
    if promoted is not None:
        return promoted
    for path, kind in known.items():
        if kind != known[first]:
            raise TableError(
                f"column {name!r} is {kind} in {path.name!r} and {known[first]} in {first.name!r}",
                "one type in all files",
                "Write one of them anew with the type of the other.",
            )
    return known[first]


def _promoted(kinds: set[Any]) -> Any:
    """Return the type that holds the cells of several types; None where types are of several sorts.

    Whole numbers that a double does not hold exactly are refused when they are read, and moments that the finest unit
    does not reach.
    """
    import pyarrow as pa

    if all(pa.types.is_integer(kind) for kind in kinds):
        return next(iter(kinds)) if len(kinds) == 1 else pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        return next(iter(kinds)) if len(kinds) == 1 else pa.float64()
    if all(pa.types.is_timestamp(kind) for kind in kinds) and len({kind.tz for kind in kinds}) == 1:
        return max(kinds, key=lambda kind: _UNITS.index(kind.unit))
    plain = {kind.value_type if pa.types.is_dictionary(kind) and not kind.ordered else kind for kind in kinds}
    if len(kinds) > 1 and all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in plain):
        return pa.string()
    return None


_UNITS = ("s", "ms", "us", "ns")
"""Of time stamps, from the coarsest on."""


def _common(kinds: set[Any]) -> Any:
    """Return what the cells of all text files can be read as."""
    import pyarrow as pa

    known = kinds - {pa.null()}
    if len(known) <= 1:
        return next(iter(known), pa.null())
    return pa.float64() if known <= {pa.int64(), pa.float64()} else pa.string()


def _facts_of(path: Path, limits: ReadLimits) -> tuple[dict[str, Any], int]:
    """Return the type of each column of a file, and how many rows it has; a text file is read for it."""
    import pyarrow as pa

    if not _is_text(path):
        try:
            file = _arrow_file(path)
            if path.suffix.lower() in PARQUET:
                schema, n_row = file.schema_arrow, file.metadata.num_rows
            else:
                schema = file.schema
                n_row = sum(file.get_batch(number).num_rows for number in range(file.num_record_batches))
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"file {path.name!r} cannot be read: {_line(error)}") from error
        _check_names(path, schema.names)
        # what polars writes as views has few functions in Arrow
        kinds = {
            name: pa.string() if kind == pa.string_view() else kind
            for name, kind in zip(schema.names, schema.types, strict=True)
        }
        return kinds, n_row
    found: dict[str, set[Any]] = {name: set() for name in _guarded_names(path)}
    n_row = 0
    for batch in _guarded(path, {}, limits):
        n_row += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            found[name].add(_read_as(column))
    return {name: _common(types) for name, types in found.items()}, n_row


def _check_names(path: Path, names: Sequence[str]) -> None:
    for name, n_column in Counter(names).items():
        if n_column > 1:
            raise TableError(
                f"file {path.name!r} has {n_column} columns {name!r}", "a name of its own for each", "Rename."
            )


def _read_as(column: Any) -> Any:
    """Return the type as which texts of a batch can be read: int64, float64, string; null if all are missing.

    Texts stay texts, for `bayesjpt.as_table` to decide, where Arrow would read a number into a code such as 007 or
    0x1F, lose digits of a whole number, or take for decimals what may be marks between thousands.
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


_CODE = r"^\s*[+-]?0[0-9xX]"
_MANY_DIGITS = r"^\s*[+-]?[0-9]{16,}\s*$"
_THOUSANDS = r"^\s*[+-]?([0-9]{1,3}(\.[0-9]{3})*|[0-9]+)\s*$"


def _arrow_file(path: Path) -> Any:
    if path.suffix.lower() in PARQUET:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(path, memory_map=False)
    import pyarrow.ipc

    return pyarrow.ipc.open_file(str(path))


@contextlib.contextmanager
def _as_our_errors(path: Path, n_piece: int) -> Iterator[None]:
    """Make what is said of a bad file our error; text is read in pieces of so many bytes."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        raise TableError(f"file {path.name!r} cannot be read: {_line(error)}", "text in UTF-8") from error
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        if "straddl" in str(error):
            remedy = "Raise it with limits=bj.ReadLimits(line_bytes=...).", "Raise it with --line-bytes."
            raise _long_line(path, n_piece, *remedy) from None
        found = f"file {path.name!r} cannot be read: {_line(error)}"
        if "UTF8" in str(error):
            remedy = "Save it as UTF-8; a file that is read by itself may have any encoding."
            raise TableError(found, "text in UTF-8", remedy) from error
        raise TableError(found) from error


def _n_piece(limits: ReadLimits) -> int:
    """Return the bytes of a text file that are parsed at once, of which a line cannot have more."""
    return int(min(max(_TEXT_BYTES, limits.line_bytes), _MOST_TEXT_BYTES))


def _long_line(path: Path, most: int, remedy: str, command: str | None = None) -> TableError:
    found = f"a line of {path.name!r} has more than {most} bytes"
    return TableError(found, "a table with line ends", remedy, command=command)


def _guarded(path: Path, kinds: dict[str, Any], limits: ReadLimits) -> Iterator[Any]:
    """Yield the batches of a file, of the columns and types given; what Arrow says of a bad one becomes our error."""
    with _as_our_errors(path, _n_piece(limits)):
        for batch in _batches(path, kinds, limits):
            yield _of_kinds(batch, kinds) if kinds else batch


def _of_kinds(batch: Any, kinds: dict[str, Any]) -> Any:
    import pyarrow as pa

    found = zip(kinds.values(), batch.select(list(kinds)).columns, strict=True)
    columns = [pa.nulls(len(column), kind) if column.type == pa.null() else column.cast(kind) for kind, column in found]
    return pa.RecordBatch.from_arrays(columns, list(kinds))


def _batches(path: Path, kinds: dict[str, Any], limits: ReadLimits) -> Iterator[Any]:
    """Yield the batches of a file: of a text file, with the types given and texts else."""
    if path.suffix.lower() in PARQUET:
        yield from _arrow_file(path).iter_batches(BATCH_ROWS, columns=list(kinds) or None)
    elif path.name.lower().endswith(ARROW):
        file = _arrow_file(path)
        for number in range(file.num_record_batches):
            yield file.get_batch(number)
    else:
        import pyarrow as pa
        from pyarrow import csv

        readable = pa.int64(), pa.float64(), pa.string()  # of others, which are those of Arrow files, all is missing
        written = _names(path)
        types = {name: kinds.get(name.strip(), pa.null()) for name in written}
        types = {name: kind if kind in readable else pa.null() for name, kind in types.items()}
        options = (
            csv.ReadOptions(block_size=_n_piece(limits), skip_rows=_n_above(path)),
            csv.ParseOptions(delimiter=_separator(path), newlines_in_values=True),
            csv.ConvertOptions(
                column_types=types if kinds else dict.fromkeys(written, pa.string()),
                null_values=list(_MISSING),
                strings_can_be_null=True,
            ),
        )
        with _text_file(path, limits) as file:
            for batch in csv.open_csv(file, *options):
                yield pa.RecordBatch.from_arrays(batch.columns, [name.strip() for name in batch.schema.names])


@contextlib.contextmanager
def _text_file(path: Path, limits: ReadLimits) -> Iterator[Any]:
    """Open a text file; a compressed one holds at most what limits allow."""
    import pyarrow as pa

    if not path.name.lower().endswith(".gz"):
        yield path
        return
    with gzip.open(path, "rb") as raw:
        guarded = Guarded(raw, path, limits, is_compressed=True)
        yield pa.PythonFile(io.BufferedReader(guarded, _N_FIRST_BYTES), "r")


_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")
"""Texts that mean a missing cell, as in `bayesjpt.read_table`."""


def _head(path: Path) -> bytes:
    """Return the first lines of a text file."""
    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        head = file.read(_N_FIRST_BYTES)
    end = head.rfind(b"\n")
    return head[: end + 1] if end >= 0 else head


def _first_lines(path: Path) -> list[str]:
    return _head(path)[:_HEAD_BYTES].decode("utf-8-sig", "replace").splitlines(keepends=True)


def _separator(path: Path) -> str:
    lines = _first_lines(path)
    return named_separator(lines) or separator_of(path.name, lines)


def _n_above(path: Path) -> int:
    """Return the number of lines above the names: one that names the separator, or none."""
    return int(named_separator(_first_lines(path)) is not None)


def _names(path: Path) -> list[str]:
    """Return the names in the first line of a text file."""
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(_head(path)),
        csv.ReadOptions(skip_rows=_n_above(path)),
        parse_options=csv.ParseOptions(delimiter=_separator(path), invalid_row_handler=lambda row: "skip"),
    ).schema.names


def _guarded_names(path: Path) -> list[str]:
    with _as_our_errors(path, _TEXT_BYTES):
        head = _head(path)
        if len(head) == _N_FIRST_BYTES and b"\n" not in head and b"\r" not in head:
            raise _long_line(path, _N_FIRST_BYTES, "Read it by itself where it is one: bj.read_table(path).")
        found = around_names(head[:_HEAD_BYTES], path.name)
        if found:
            raise TableError(
                f"file {path.name!r} has {found}",
                "names in the first row of each of several files, and rows of cells below",
                "Write it without them, or read it by itself: bj.read_table leaves them out.",
            )
        names = [name.strip() for name in _names(path)]
    _check_names(path, names)
    return names


def _line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
