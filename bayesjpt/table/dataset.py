"""Tables that need not fit into memory: read in batches, arranged once into files of columns, asked for piece by piece.

files  ->  batches  ->  Schema                           first pass (`evidence`): what each column is
           batches  ->  values_0, observed_0, values_1 ...  second pass: float64 or small whole numbers
rows(first, n), take(index), sample(n)  ->  Table          ordinary tables of some rows
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import operator
import os
import re
import shutil
import tempfile
import threading
import uuid
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from bayesjpt.announced import announced
from bayesjpt.defaults import LEARN_ROWS
from bayesjpt.errors import BayesjptError, BayesjptWarning, TableError, warn
from bayesjpt.executors import Run, Submits, check_executor, run_by
from bayesjpt.table.batches import Files, open_files
from bayesjpt.table.encode import filler
from bayesjpt.table.evidence import chosen_rows, decide_schema, error_in_whole, in_whole, is_evidence
from bayesjpt.table.read import ReadLimits
from bayesjpt.table.reading import ReadingOptions
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table, as_table
from bayesjpt.user_paths import as_path

_FACTS = "dataset.json"
_PIECE_ROWS = 2**20
"""Rows of one column that are looked through at once."""
_FORMAT = 2


class Dataset:
    """Rows in files of columns; made by `bayesjpt.dataset`.

    Attributes
    ----------
    schema : Schema
    n_row : int
    n_observed : int64 (n_column,)
        Observed cells of each column.
    folder : Path
        Where the files lie.
    """

    def __init__(self, folder: Path, schema: Schema, facts: Mapping[str, Any]):
        self.folder, self.schema, self._facts = folder, schema, dict(facts)
        self.n_row = int(facts["n_row"])
        self.n_observed = np.array(facts["n_observed"], np.int64)
        self._types = [np.dtype(name) for name in facts["types"]]
        self._distinct: dict[int, np.ndarray | int] = {}
        self._keep: _Temporary | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def n_column(self) -> int:
        return len(self.schema)

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return bool((self.n_observed == self.n_row).all())

    def __len__(self) -> int:
        return self.n_row

    def digest(self) -> str:
        """Return a hash of all rows."""
        return str(self._facts["digest"])

    def with_schema(self, schema: Schema) -> Dataset:
        """Return the same rows under a schema whose cells are the same, such as one of fewer likelihoods."""
        other = Dataset(self.folder, schema, self._facts)
        other._keep = self._keep
        return other

    def arrays(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (values, observed) of rows ``first`` to ``last - 1``, float64 and bool (n_column, n), as in a Table.

        Raises
        ------
        TableError
            Where a file has disappeared or is shorter than it was.
        """
        values = np.empty((self.n_column, last - first))
        observed = np.ones((self.n_column, last - first), bool)
        for k in range(self.n_column):
            values[k] = self._read(k, first, last)
            if self.n_observed[k] < self.n_row:
                observed[k] = _read(self._path("observed", k), np.dtype(bool), first, last)
                values[k, ~observed[k]] = filler(self.schema.columns[k])
        return values, observed

    def rows(self, first: int, n: int) -> Table:
        """Return the table of n rows, or of those there are."""
        first, n = min(_whole("first", first), self.n_row), _whole("n", n)
        return Table(self.schema, *self.arrays(first, min(first + n, self.n_row)))

    def iter_tables(self, n: int) -> Iterator[Table]:
        """Yield all rows in tables of n rows."""
        for first in range(0, self.n_row, max(_whole("n", n), 1)):
            yield self.rows(first, n)

    def take(self, rows: np.ndarray | Sequence[int]) -> Table:
        """Return the table of some rows: positions in the order given, or a boolean mask of all rows."""
        index = np.asarray(rows)
        index = np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.intp)
        values, observed = np.empty((self.n_column, index.size)), np.ones((self.n_column, index.size), bool)
        for k, kind in enumerate(self._types):
            values[k] = _mapped(self._path("values", k), kind, self.n_row)[index] + self._offset(k)
            if self.n_observed[k] < self.n_row:
                observed[k] = _mapped(self._path("observed", k), np.dtype(bool), self.n_row)[index]
                values[k, ~observed[k]] = filler(self.schema.columns[k])
        return Table(self.schema, values, observed)

    def sample(self, n: int, key: int = 0) -> Table:
        """Return n rows in their order, or all: those whose numbers have the smallest hashes under a key."""
        return self.take(chosen_rows(self.n_row, _whole("n", n), key))

    def distinct(self, column: int, most: float) -> np.ndarray | None:
        """Return the distinct observed values of a column, ascending; None where there are more than `most`."""
        known = self._distinct.get(column)
        if known is None or (isinstance(known, int) and known < most):
            known = self._distinct[column] = self._find_distinct(column, most)
        return known if isinstance(known, np.ndarray) and known.size <= most else None

    def _find_distinct(self, column: int, most: float) -> np.ndarray | int:
        """Return the distinct values, or a number that they exceed."""
        found = np.empty(0)
        for first in range(0, self.n_row, _PIECE_ROWS):
            last = min(first + _PIECE_ROWS, self.n_row)
            piece = self._read(column, first, last)
            if self.n_observed[column] < self.n_row:
                piece = piece[_read(self._path("observed", column), np.dtype(bool), first, last)]
            found = np.union1d(found, piece)
            if found.size > most:
                return int(most)
        return found

    def _offset(self, column: int) -> float:
        return float(self._facts["offsets"][column])

    def _read(self, column: int, first: int, last: int) -> np.ndarray:
        return _read(self._path("values", column), self._types[column], first, last) + self._offset(column)

    def _path(self, what: str, column: int) -> Path:
        return self.folder / f"{what}_{column}.bin"

    def __getstate__(self) -> dict[str, Any]:
        """Leave to this process who removes the files."""
        return self.__dict__ | {"_keep": None}

    def _summary(self) -> str:
        missing = int(self.n_column * self.n_row - self.n_observed.sum())
        return f"{self.n_row} rows x {self.n_column} columns" + (f", {missing} cells missing" if missing else "")

    def __repr__(self) -> str:
        return f"Dataset({self._summary()})\n{self.schema!r}"

    def _repr_html_(self) -> str:
        return f"<p><b>Dataset</b>: {html.escape(self._summary())}</p>{self.schema._repr_html_()}"


def dataset(
    paths: str | Path | Sequence[str | Path],
    *,
    folder: str | Path | None = None,
    kinds: Mapping[str, str] | None = None,
    other: bool = True,
    limits: ReadLimits | None = None,
    executor: Submits | None = None,
    progress: bool = True,
    **reading: Unpack[ReadingOptions],
) -> Dataset:
    """Return the rows of files that together need not fit into memory.

    Parameters
    ----------
    paths : str, Path or sequence of these
        A folder, a pattern (``folder/*.parquet``), a file, or several: parquet, feather, Arrow or csv files (also
        .csv.gz, .tsv) of the same columns. Rows are numbered in the order of the files, those of a folder or pattern by
        name.
    folder : path, optional
        Where the rows are arranged, about 1 to 8 bytes a cell. One that holds them already is used as it is. Unless
        given, a temporary one, which is removed with the Dataset.
    kinds : mapping from str to str, optional
        As in `bayesjpt.as_table`.
    other : bool
        Whether lists of labels are open, as in `bayesjpt.as_table`. Closed lists hold the labels of all rows.
    limits : ReadLimits, optional
        What compressed text files may expand to, and how long lines of text may be; those up to 16 MiB are read in any
        case.
    executor : optional
        An object with ``submit``, such as those of `concurrent.futures`: processes that read and arrange a file each,
        into a folder that all of them can write. No effect on the rows.
    progress : bool
        Whether to say on standard error what takes its time.
    **reading
        As in `bayesjpt.as_table`: ``decimal``, ``na``, ``day_first``.

    Returns
    -------
    Dataset
        Takes the place of a Table in `bayesjpt.fit`.

    Raises
    ------
    TableError
        For files that are missing, of an unknown kind, unreadable, of different columns, or that change meanwhile; for
        a folder that holds other rows, or cannot be written.
    SchemaError
        As `bayesjpt.as_table`.
    SamplingError
        For an executor without ``submit``, or whose process ended.

    Notes
    -----
    See ``docs/explanation/scale.md``. Memory does not grow with the rows. Values that the rows looked at do not
    foretell are treated as those of new rows, with a warning: a fraction among whole numbers is rounded.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, pandas as pd, bayesjpt as bj
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for number in range(3):
    ...     frame = pd.DataFrame({"size": np.arange(50) + 0.5 * number, "colour": ["red", "blue"] * 25})
    ...     frame.to_csv(folder / f"part_{number}.csv", index=False)
    >>> rows = bj.dataset(folder / "part_*.csv")
    >>> len(rows), rows.names, rows.rows(149, 1).to_frame().values.tolist()
    (150, ('size', 'colour'), [[50.0, 'blue']])
    """
    for name in reading.keys() - {"decimal", "na", "day_first"}:
        raise TableError(f"{name}= of several files", "decimal, na or day_first", "Read a file by bj.read_table.")
    check_executor(executor)
    run = run_by(executor)
    files = open_files(paths, run, limits)
    closed = {} if other else {"other": False}
    inputs = {"files": files.stamps(), "kinds": dict(kinds or {}), "reading": {k: str(v) for k, v in reading.items()}}
    inputs |= closed
    target = None if folder is None else as_path(folder, TableError).absolute()  # processes elsewhere look for it, too
    if target is not None and (target / _FACTS).is_file():
        return _reopened(target, inputs)
    if target is not None and target.exists() and not target.is_dir():
        raise TableError(f"{str(target)!r} is a file", "a folder in which rows are arranged")
    if target is not None and target.exists() and any(target.iterdir()):
        raise TableError(f"folder {str(target)!r} holds something else", "an empty folder, or one of the same rows")
    known = {**reading, "sep": files.separator}
    with announced(f"Reading {len(files.paths)} file{'s' * (len(files.paths) > 1)}", progress):
        schema, n_row = decide_schema(files, kinds, known | closed, run)
    try:
        made = _new_folder(target)
    except OSError as error:
        raise _not_written(target, error) from error
    try:
        with announced(f"Arranging {n_row} rows", progress):
            facts = _arrange(files, schema, n_row, made, known, run) | {"asked": inputs, "format": _FORMAT}
        if files.stamps() != inputs["files"]:
            raise TableError(
                "files have changed while they were read", "files that do not change meanwhile", "Begin anew."
            )
        counted = zip(schema, facts["n_observed"], strict=True)
        schema = Schema(tuple(replace(column, n_missing=n_row - n) for column, n in counted), schema.set_aside)
        (made / _FACTS).write_text(json.dumps(facts | {"schema": schema.to_dict()}), encoding="utf-8")
        if target is not None:
            if target.exists():
                target.rmdir()
            os.replace(made, target)
            return Dataset(target, schema, facts)
    except BaseException as error:
        shutil.rmtree(made, ignore_errors=True)
        if isinstance(error, OSError):
            raise _not_written(target, error) from error
        raise
    rows = Dataset(made, schema, facts)
    rows._keep = _Temporary(made)
    return rows


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise TableError(f"{name} = {value!r}", "a whole number from 0")
    return number


def in_memory(table: Table | Dataset) -> Table:
    """Return a table that learners can work on: of rows in files `LEARN_ROWS`, chosen by a hash of their numbers."""
    return table.sample(LEARN_ROWS) if isinstance(table, Dataset) else table


def _new_folder(target: Path | None) -> Path:
    """Return a new folder: a temporary one, or one beside a target, which others may read as they may its parent."""
    if target is None:
        parent = Path(tempfile.gettempdir())
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="bayesjpt-", dir=parent))
    made = target.parent / f"{target.name}-{uuid.uuid4().hex}"
    made.mkdir(parents=True)
    return made


def _not_written(target: Path | None, error: OSError) -> TableError:
    return TableError(
        f"rows cannot be arranged in {str(target or tempfile.gettempdir())!r}: {error.strerror or error}",
        "a folder that can be written, with room",
        "Name another by folder=.",
        command="Name another by the environment variable TMPDIR.",
    )


class _Temporary:
    """A folder that is removed with this object, in the process that made it."""

    def __init__(self, folder: Path):
        self._remove = weakref.finalize(self, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a fork
        shutil.rmtree(folder, ignore_errors=True)


def _reopened(folder: Path, inputs: dict[str, Any]) -> Dataset:
    """Return the rows that a folder holds, having made sure that they are those of the files."""
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        schema = Schema.from_dict(facts["schema"])
        same = facts["format"] == _FORMAT and facts["asked"] == json.loads(json.dumps(inputs))
    except (ValueError, KeyError, TypeError) as error:
        raise TableError(
            f"{_FACTS} of {str(folder)!r} is damaged", remedy="Delete the folder, and begin anew."
        ) from error
    if not same:
        raise TableError(
            f"folder {str(folder)!r} holds other rows: of other files, or of files that have changed since",
            "the same files and options",
            "Name another folder, or delete this one.",
        )
    return Dataset(folder, schema, facts)


# --- second pass -----------------------------------------------------------------------------------------------------


def _stored_as(column: Column, kind: Any) -> tuple[np.dtype, float]:
    """Return the type in which a column's values are kept, and what is taken from them first.

    The ends of numbers that are written as texts are not known before all rows are read.
    """
    import pyarrow as pa

    if column.base == "category":
        return np.dtype(np.uint8 if len(column.labels) < 255 else np.uint32), 0.0
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    whole = column.base == "integer" and np.isfinite([column.minimum, column.maximum]).all()
    if whole and not is_text and column.maximum - column.minimum < 2**16:
        return np.dtype(np.uint8 if column.maximum - column.minimum < 2**8 else np.uint16), column.minimum
    return np.dtype(np.float64), 0.0


class _Part(NamedTuple):
    """What is known of the rows of one file once they are arranged.

    Attributes
    ----------
    n_observed : int64 (n_column,)
    said : list of str
        Warnings.
    """

    n_observed: np.ndarray
    said: list[str]


_one_at_a_time = threading.Lock()
"""Which warnings are shown is known to a whole process."""


def _arrange_file(files: Files, number: int, schema: Schema, folder: Path, reading: dict[str, Any]) -> _Part:
    """Write the rows of one file into the columns' files, in their places."""
    import pyarrow as pa

    types, offsets = _storage(files, schema)
    outside = "part" if is_evidence(sum(files.n_rows)) else "missing"
    names = [name for name in files.names if name in set(schema.names)]
    n_observed, said, done = np.zeros(len(schema), np.int64), [], files.first_rows[number]
    with contextlib.ExitStack() as stack:
        written = [stack.enter_context((folder / f"values_{k}.bin").open("r+b")) for k in range(len(schema))]
        marks = [stack.enter_context((folder / f"observed_{k}.bin").open("r+b")) for k in range(len(schema))]
        for k, kind in enumerate(types):
            written[k].seek(done * kind.itemsize)
            marks[k].seek(done)
        for batch in files.batches_of(number):
            numbers = np.arange(done, done + batch.num_rows)
            with _one_at_a_time, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", BayesjptWarning)
                try:
                    rows = as_table(
                        pa.Table.from_batches([batch.select(names)]), schema=schema, outside=outside, **reading
                    )
                except BayesjptError as error:
                    raise error_in_whole(error, numbers) from None
            said += [in_whole(str(each.message), numbers) for each in caught]
            done += rows.n_row
            for k, kind in enumerate(types):
                x, known = rows.values[k] - offsets[k], rows.observed[k]
                if kind != np.float64 and (known & ((x < 0) | (x > np.iinfo(kind).max))).any():
                    raise TableError(
                        f"column {schema.columns[k].name!r} holds values that were not there at first",
                        "files that do not change meanwhile",
                        "Begin anew.",
                    )
                written[k].write(np.ascontiguousarray(np.where(known, x, 0.0), kind).data)
                marks[k].write(np.ascontiguousarray(known).data)
                n_observed[k] += int(known.sum())
    return _Part(n_observed, said)


def _storage(files: Files, schema: Schema) -> tuple[list[np.dtype], list[float]]:
    """Return how the values of each column are kept, see `_stored_as`."""
    kinds = dict(zip(files.names, files.kinds, strict=True))
    types, offsets = zip(*(_stored_as(column, kinds[column.name]) for column in schema), strict=True)
    return list(types), list(offsets)


def _arrange(
    files: Files, schema: Schema, n_row: int, folder: Path, reading: dict[str, Any], run: Run
) -> dict[str, Any]:
    """Write all rows, column by column, and return the facts of a Dataset; `run` does so for each file."""
    types, offsets = _storage(files, schema)
    n_observed, said = np.zeros(len(schema), np.int64), {}  # warnings of one kind, by what they say beside numbers
    for k, kind in enumerate(types):
        for what, size in (("values", kind.itemsize), ("observed", 1)):
            with (folder / f"{what}_{k}.bin").open("wb") as file:
                file.truncate(n_row * size)
    calls = [(files, number, schema, folder, reading) for number in range(len(files.paths))]
    for part in run(_arrange_file, calls):
        n_observed += part.n_observed
        for text in [] if is_evidence(n_row) else part.said:  # or it was said when the schema was decided
            said.setdefault(re.sub(r"[\d.,]+", "", text), []).append(text)
    for texts in said.values():
        more = "" if len(texts) == 1 else f" (and the like in {len(texts) - 1} more batches)"
        warn(texts[0] + more)
    whole = hashlib.sha256(json.dumps([schema.to_dict(), n_row]).encode())
    for k in range(len(schema)):
        for what in ("values", "observed"):
            with (folder / f"{what}_{k}.bin").open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
    for k in np.flatnonzero(n_observed == n_row):
        (folder / f"observed_{k}.bin").unlink()
    return {
        "n_row": n_row,
        "n_observed": n_observed.tolist(),
        "types": [kind.str for kind in types],
        "offsets": offsets,
        "digest": whole.hexdigest(),
    }


def _mapped(path: Path, kind: np.dtype, n_row: int) -> np.ndarray:
    """Return all of a file, of which only what is looked at is read."""
    _read(path, kind, n_row - 1, n_row)  # says what is wrong with it
    return np.memmap(path, kind, "r")


def _read(path: Path, kind: np.dtype, first: int, last: int) -> np.ndarray:
    try:
        found = np.fromfile(path, kind, last - first, offset=first * kind.itemsize)
    except OSError as error:
        raise TableError(
            f"file {str(path)!r} of a dataset is not there any more", remedy="Make the dataset anew."
        ) from error
    if found.size != last - first:
        raise TableError(f"file {str(path)!r} of a dataset is cut short", remedy="Make the dataset anew.")
    return found
