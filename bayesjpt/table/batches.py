"""Tables that lie in files, batch by batch: which files, in which order, of which columns; never a whole file at once.

Rows are numbered from 0 in the order of the files. So what is decided by a row's number does not depend on how rows are
cut into files.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesjpt.errors import TableError
from bayesjpt.executors import Run, in_turn
from bayesjpt.table.read import ReadLimits
from bayesjpt.table.text_files import (
    TEXT,
    as_our_errors,
    common_kind,
    first_line,
    is_text,
    separator,
    text_batches,
    text_kinds,
    text_names,
)
from bayesjpt.user_paths import as_path

PARQUET, ARROW = (".parquet",), (".feather", ".arrow", ".ipc")
SUFFIXES = PARQUET + ARROW + TEXT
BATCH_ROWS = 65_536
"""Rows read at once."""
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
    separator : str, optional
        The character between cells, if all are text files with one.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    kinds: tuple[Any, ...]
    n_rows: tuple[int, ...]
    limits: ReadLimits
    separator: str | None

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

    Files of a folder or a pattern come in the order of their names; hidden ones are none of them.

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
            # hidden ones are none, as of a pattern: macOS leaves ._part.csv beside part.csv
            named = (each for each in path.iterdir() if not each.name.startswith("."))
            files = sorted(each for each in named if each.name.lower().endswith(SUFFIXES))
        elif os.path.isfile(path):
            files = [path]
        else:
            files = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
        if not files and os.path.isdir(path):
            raise TableError(
                f"folder {str(entry)!r} holds no table",
                f"files whose names end in one of {', '.join(SUFFIXES)}",
                f"Name those in folders within by a pattern: '{entry}/**/*.parquet'.",
            )
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
    columns, n_rows, separators = zip(*run(_facts_of, [(path, limits) for path in found]), strict=True)
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
    separator_of_all = separators[0] if len(set(separators)) == 1 else None
    return Files(found, tuple(first), in_all, tuple(n_rows), limits, separator_of_all)


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


def _kind_in_all(name: str, kinds: dict[Path, Any]) -> Any:
    """Return the type of a column in all files: a file in which it is empty has that of the others.

    Numbers of several types have the one that holds them all, as texts and texts by codes are texts.
    """
    import pyarrow as pa

    of_texts = common_kind({kind for path, kind in kinds.items() if is_text(path)})
    known = {path: of_texts if is_text(path) else kind for path, kind in kinds.items()}
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


def _facts_of(path: Path, limits: ReadLimits) -> tuple[dict[str, Any], int, str | None]:
    """Return the type of each column of a file, and how many rows it has; a text file is read for it.

    The last is the separator of a text file.
    """
    import pyarrow as pa

    if not is_text(path):
        try:
            file = _arrow_file(path)
            if path.suffix.lower() in PARQUET:
                schema, n_row = file.schema_arrow, file.metadata.num_rows
            else:
                schema = file.schema
                n_row = sum(file.get_batch(number).num_rows for number in range(file.num_record_batches))
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"file {path.name!r} cannot be read: {first_line(error)}") from error
        _check_names(path, schema.names)
        # what polars writes as views has few functions in Arrow
        kinds = {
            name: pa.string() if kind == pa.string_view() else kind
            for name, kind in zip(schema.names, schema.types, strict=True)
        }
        return kinds, n_row, None
    _check_names(path, text_names(path))
    return *text_kinds(path, limits), separator(path)


def _check_names(path: Path, names: Sequence[str]) -> None:
    for name, n_column in Counter(names).items():
        if n_column > 1:
            raise TableError(
                f"file {path.name!r} has {n_column} columns {name!r}", "a name of its own for each", "Rename."
            )


def _arrow_file(path: Path) -> Any:
    if path.suffix.lower() in PARQUET:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(path, memory_map=False)
    import pyarrow.ipc

    return pyarrow.ipc.open_file(str(path))


def _guarded(path: Path, kinds: dict[str, Any], limits: ReadLimits) -> Iterator[Any]:
    """Yield the batches of a file, of the columns and types given; what Arrow says of a bad one becomes our error."""
    with as_our_errors(path, limits):
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
        yield from text_batches(path, kinds, limits)
