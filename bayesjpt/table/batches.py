"""Tables that lie in files, batch by batch: which files, in which order, of which columns; never a whole file at once.

Rows are numbered from 0 in the order of the files. So what is decided by a row's number does not depend on how rows are
cut into files.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesjpt.errors import TableError

PARQUET, ARROW, TEXT = (".parquet",), (".feather", ".arrow", ".ipc"), (".csv", ".csv.gz", ".tsv", ".tsv.gz")
SUFFIXES = PARQUET + ARROW + TEXT
BATCH_ROWS = 65_536
"""Rows read at once."""
_TEXT_BYTES = 2**24
"""Bytes of a text file that are parsed at once."""


@dataclass(frozen=True)
class Files:
    """Files of the same columns.

    Parameters
    ----------
    paths : tuple of Path
    names : tuple of str
    kinds : tuple of str
        Of each column, as Arrow calls them; of text files what all cells can be read as.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]

    def batches(self) -> Iterator[Any]:
        """Yield all rows as ``pyarrow.RecordBatch``, none of them empty.

        Raises
        ------
        TableError
            For a file that disappeared, or cannot be read any more.
        """
        for path in self.paths:
            if not path.is_file():
                raise TableError(
                    f"file {path.name!r} is not there any more", f"{str(path)!r}", "Bring it back, or begin anew."
                )
            for batch in _guarded(path, dict(zip(self.names, self.kinds, strict=True))):
                if batch.num_rows:
                    yield batch.select(list(self.names))

    def stamps(self) -> list[list[Any]]:
        """Return name, bytes and time of change of each file."""
        return [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self.paths]


def find_files(paths: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """Return the files that a folder, a pattern, a file or a list of these names, each once.

    Files of a folder or a pattern come in the order of their names.

    Raises
    ------
    TableError
        Where there is none, or one is of an unknown kind.
    """
    asked = [paths] if isinstance(paths, str | Path) else list(paths)
    found: dict[Path, None] = {}
    for entry in asked:
        path = Path(entry)
        if path.is_dir():
            own = sorted(each for each in path.iterdir() if each.name.lower().endswith(SUFFIXES))
        elif path.is_file():
            own = [path]
        else:
            own = sorted(Path(each) for each in glob.glob(str(entry), recursive=True))
        if not own:
            raise TableError(
                f"no file {str(entry)!r}", "a file, a folder of files or a pattern such as 'folder/*.parquet'"
            )
        for each in own:
            if not each.name.lower().endswith(SUFFIXES):
                raise TableError(
                    f"file {each.name!r} is of an unknown kind", f"a name that ends in one of {', '.join(SUFFIXES)}"
                )
            found[each] = None
    if not found:
        raise TableError("no files", "at least one")
    return tuple(found)


def is_several(path: str | Path) -> bool:
    """Return whether a path names a folder, or is a pattern of names."""
    return Path(path).is_dir() or (any(mark in str(path) for mark in "*?[") and not Path(path).exists())


def open_files(paths: str | Path | Sequence[str | Path]) -> Files:
    """Return files, having made sure that they have the same columns of the same kinds.

    Raises
    ------
    TableError
        As `find_files`; and for a file that cannot be read, or whose columns differ from the first file's, by name.
    """
    found = find_files(paths)
    columns = [_columns(path) for path in found]
    first = columns[0]
    for path, own in zip(found[1:], columns[1:], strict=True):
        for name in [*first, *own]:
            if name not in own or name not in first:
                where = path.name if name not in own else found[0].name
                raise TableError(
                    f"file {where!r} has no column {name!r}", f"the columns of {found[0].name!r} in each file"
                )
            if own[name] != first[name] and not _is_text(path):
                raise TableError(
                    f"column {name!r} is {own[name]} in {path.name!r} and {first[name]} in {found[0].name!r}",
                    "one type in all files",
                )
    names = tuple(first)
    kinds = {name: {own[name] for own in columns} for name in names}
    return Files(found, names, tuple(_common(kinds[name]) for name in names))


def _is_text(path: Path) -> bool:
    return path.name.lower().endswith(TEXT)


def _common(kinds: set[str]) -> str:
    """Return what the cells of all text files can be read as."""
    known = kinds - {"null"}
    if len(known) <= 1:
        return next(iter(known), "null")
    return "double" if known <= {"int64", "double"} else "string"


def _columns(path: Path) -> dict[str, str]:
    """Return the kind of each column of a file; a text file is read for it."""
    import pyarrow as pa

    if not _is_text(path):
        try:
            schema = _arrow_file(path).schema_arrow if path.suffix.lower() in PARQUET else _arrow_file(path).schema
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"file {path.name!r} cannot be read: {_line(error)}") from error
        return {name: str(kind) for name, kind in zip(schema.names, schema.types, strict=True)}
    kinds: dict[str, set[str]] = {}
    for batch in _guarded(path, {}):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kinds.setdefault(name, set()).add(_read_as(column))
    if not kinds:
        raise TableError(f"file {path.name!r} has no rows", "at least one")
    return {name: _common(own) for name, own in kinds.items()}


def _read_as(column: Any) -> str:
    """Return what texts of a batch can be read as: ``int64``, ``double``, ``string``; ``null`` if all are missing."""
    import pyarrow as pa

    if column.null_count == len(column):
        return "null"
    for kind in (pa.int64(), pa.float64()):
        try:
            column.cast(kind)
        except pa.ArrowInvalid:
            continue
        return str(kind)
    return "string"


def _arrow_file(path: Path) -> Any:
    if path.suffix.lower() in PARQUET:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(path, memory_map=False)
    import pyarrow.ipc

    return pyarrow.ipc.open_file(str(path))


def _guarded(path: Path, kinds: dict[str, str]) -> Iterator[Any]:
    """Yield the batches of a file; what Arrow says of a bad one becomes our error."""
    import pyarrow as pa

    try:
        yield from _batches(path, kinds)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"file {path.name!r} cannot be read: {_line(error)}") from error


def _batches(path: Path, kinds: dict[str, str]) -> Iterator[Any]:
    """Yield the batches of a file: of a text file, with the kinds given and texts else."""
    if path.suffix.lower() in PARQUET:
        yield from _arrow_file(path).iter_batches(BATCH_ROWS)
    elif path.name.lower().endswith(ARROW):
        file = _arrow_file(path)
        for number in range(file.num_record_batches):
            yield file.get_batch(number)
    else:
        import pyarrow as pa
        from pyarrow import csv

        separator = "\t" if ".tsv" in path.name.lower() else ","
        types = {name: _TYPES.get(kind, "string") for name, kind in kinds.items()}
        types = types or dict.fromkeys(_names(path, separator), "string")
        yield from csv.open_csv(
            path,
            csv.ReadOptions(block_size=_TEXT_BYTES),
            csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            csv.ConvertOptions(
                column_types={name: pa.type_for_alias(kind) for name, kind in types.items()},
                null_values=list(_MISSING),
                strings_can_be_null=True,
            ),
        )


_TYPES = {"int64": "int64", "double": "float64"}
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")
"""Texts that mean a missing cell, as in `bayesjpt.read_table`."""


def _names(path: Path, separator: str) -> list[str]:
    """Return the names in the first line of a text file."""
    import gzip

    import pyarrow as pa
    from pyarrow import csv

    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        head = file.read(_TEXT_BYTES // 16)
    end = head.rfind(b"\n")
    return csv.read_csv(
        pa.BufferReader(head[: end + 1] if end >= 0 else head),
        parse_options=csv.ParseOptions(delimiter=separator, invalid_row_handler=lambda row: "skip"),
    ).schema.names


def _line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
