"""The cells of a table as the kernels read them, and the two doors: `read_table` for files, `as_table` for frames."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from bayesjpt.errors import SchemaError, TableError, warn
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.written_dates import DateNotation

if TYPE_CHECKING:
    from bayesjpt.table.cells import Cells
    from bayesjpt.table.document import SchemaDocument
    from bayesjpt.table.read import ReadLimits
    from bayesjpt.table.reading import Reading, ReadingOptions


@dataclass(frozen=True, eq=False)
class Table:
    """Cells in the user's units (codes for labels), column by column, with the mask of what was observed.

    Parameters
    ----------
    schema : Schema
    values : float64 (n_column, n_row)
        C-contiguous and read-only. A missing cell holds a valid filler, never NaN.
    observed : bool (n_column, n_row)
    unseen : mapping from int to object (n_row,), optional
        Of columns with labels that the schema does not know, whose code is that of "other": these labels as texts, and
        None in the other rows. They are written out again as they were read.
    """

    schema: Schema
    values: np.ndarray
    observed: np.ndarray
    unseen: Mapping[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        for name, dtype in (("values", np.float64), ("observed", np.bool_)):
            array = np.ascontiguousarray(getattr(self, name), dtype).view()
            assert array.ndim == 2
            assert array.shape[0] == len(self.schema)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        assert self.values.shape == self.observed.shape

    @property
    def n_row(self) -> int:
        return self.values.shape[1]

    @property
    def n_column(self) -> int:
        return self.values.shape[0]

    @property
    def n_missing(self) -> int:
        return int(self.observed.size - self.observed.sum())

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    def __len__(self) -> int:
        return self.n_row

    def take(self, rows: np.ndarray | Sequence[int]) -> Table:
        """Return the table of some rows: positions in the order given, or a boolean mask of all rows."""
        index = np.asarray(rows)
        if index.dtype != np.bool_:
            index = index.astype(np.intp)
        return self._part(index)

    def rows(self, index: int | slice | np.ndarray | Sequence[int]) -> Table:
        """Return the table of one row, of a slice, of positions or of a boolean mask."""
        if isinstance(index, slice):
            return self._part(index)
        return self.take(np.atleast_1d(np.asarray(index)))

    def with_schema(self, schema: Schema) -> Table:
        """Return the same rows under a schema whose cells are the same, such as one of fewer likelihoods."""
        return Table(schema, self.values, self.observed)

    def _part(self, index: slice | np.ndarray) -> Table:
        unseen = {column: labels[index] for column, labels in self.unseen.items()}
        return Table(self.schema, self.values[:, index], self.observed[:, index], unseen)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame of labels, booleans, dates and times of day as stored, with missing cells as missing.

        Parameters
        ----------
        backend : str
            ``pandas``, ``polars`` or ``pyarrow``; it must be installed.

        Raises
        ------
        TableError
            Where the backend is unknown or not installed.

        Notes
        -----
        A label that training never showed comes out as it was read; where it was not read (`Posterior.sample` with
        ``labels="all"``), as ``other``. Numbers, booleans or dates among which it stands come out as texts.
        """
        from bayesjpt.table.frames import build_frame

        columns = {}
        for position, column in enumerate(self.schema):
            seen, unseen = self.observed[position], self.unseen.get(position)
            cells = np.full(self.n_row, None, object)
            kind, cells[seen] = restored(column, self.values[position, seen], None if unseen is None else unseen[seen])
            columns[column.name] = kind, cells.tolist()
        return build_frame(columns, backend)

    def _summary(self) -> str:
        missing = f", {self.n_missing} cells missing" if self.n_missing else ""
        return f"{self.n_row} rows x {self.n_column} columns{missing}"

    def __repr__(self) -> str:
        return f"Table({self._summary()})\n{self.schema!r}"

    def _repr_html_(self) -> str:
        return f"<p><b>Table</b>: {html.escape(self._summary())}</p>{self.schema._repr_html_()}"


def restored(column: Column, values: np.ndarray, unseen: np.ndarray | None = None) -> tuple[str, np.ndarray]:
    """Return (kind, object array) of a column's cells as stored: labels, booleans, dates, times of day, plain numbers.

    Parameters
    ----------
    column : Column
    values : float64 (n,)
        In the user's units, or codes.
    unseen : object (n,), optional
        Labels that take the place of "other", None elsewhere: see `Table`.

    Returns
    -------
    kind : str
        As `bayesjpt.table.frames.build_frame` has it. A column of numbers, booleans or dates is one of texts where it
        holds "other" or a label of another kind: no cell that holds a label comes out as missing.
    cells : object (n,)
        Times of day are numbers where one of them lies outside a day, as draws of the model may.
    """
    from bayesjpt.table import cells as cells_of

    if column.base != "category":
        if column.dtype == "datetime":
            return "datetime", cells_of.calendar_moments(values).astype(object)
        if isinstance(column.notation, DateNotation) and column.notation.day_length is not None:
            times = cells_of.times_of_day(values / column.notation.day_length)
            if all(time is not None for time in times):
                return "time", times
        whole = column.resolution == 1.0 and cells_of.is_whole(values)
        return ("integer", values.astype(np.int64).astype(object)) if whole else ("number", values.astype(object))
    known = {} if unseen is None else {row: str(label) for row, label in enumerate(unseen) if label is not None}
    distinct = sorted(set(known.values()))
    code = values.astype(np.intp)
    other = len(column.labels) + len(distinct)
    code[code == len(column.labels)] = other
    place = {label: len(column.labels) + number for number, label in enumerate(distinct)}
    code[list(known)] = [place[label] for label in known.values()]
    labels = (*column.labels, *distinct)
    strange = (code == other).any() or any(cells_of.label_as_stored(label, column.dtype) is None for label in labels)
    kind, originals = _original_labels(replace(column, labels=labels, dtype="text" if strange else column.dtype))
    return kind, np.array(originals, object)[code]


def _original_labels(column: Column) -> tuple[str, list[Any]]:
    """Return (kind, value of each code) of a category; only that of texts has one for "other"."""
    from bayesjpt.table import cells as cells_of

    if column.dtype == "boolean":
        return "boolean", [label == "True" for label in column.labels]
    if column.dtype == "number":
        numbers = [float(label) for label in column.labels]
        whole = cells_of.is_whole(np.array(numbers))
        return ("integer", list(map(int, numbers))) if whole else ("number", numbers)
    if column.dtype == "datetime":
        return "datetime", np.array(list(column.labels), "datetime64[us]").tolist()
    return "text", list(column.code_names)


def read_table(
    path: str | Path,
    *,
    kinds: Mapping[str, str] | None = None,
    schema: Schema | SchemaDocument | str | Path | None = None,
    unseen: str = "other",
    other: bool = True,
    ignore_new: bool = False,
    limits: ReadLimits | None = None,
    **reading: Unpack[ReadingOptions],
) -> Table:
    """Return the table in a file; each column's kind is decided from its values unless a schema is given.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv or .txt file (also with .gz); a workbook (.xlsx, .xls, .ods); JSON lines (.jsonl, .ndjson) or a
        JSON list of objects; or a .parquet, .feather, .arrow, .arrows or .ipc file (of Arrow both files and streams,
        compressed or not). Missing cells are empty or say NA, N/A, NaN, null or ?; among numbers and dates also None,
        -, unknown or #DIV/0! (one warning).
    kinds : mapping from str to str, optional
        ``category``, ``integer``, ``real``, or ``excluded`` to leave a column out: overrides the decision for it.
    schema : Schema, SchemaDocument, str or Path, optional
        A Schema reads the rows as new rows under the schema of a training table: columns are aligned by name, missing
        ones are all-missing. A document, or the path of one (see `read_schema`), reads them as training rows: it says
        what each column is, and what it leaves open is decided from the rows.
    unseen : str
        With a Schema, what becomes of a label that training never showed: ``other`` (one warning), ``error`` or
        ``missing``.
    ignore_new : bool
        With a Schema, whether columns that it does not know are ignored with a warning, unless it knows none of the
        table; otherwise they are an error.
    other : bool
        Without a schema, whether each column of labels keeps a little probability for labels that these rows do not
        show. False closes the lists: an unseen label in new rows is an error, or missing.
    limits : ReadLimits, optional
        How long a line may be, and how often more bytes than it has a compressed file may hold.
    **reading
        What is known of the file, each found where it is not given: ``encoding``, ``sep``, ``decimal`` (``.`` or
        ``,``), ``na`` (more texts that mean a missing cell), ``keep_na`` (words such as ``NA`` that do not), ``sheet``
        (name or number), ``header`` (whether there is one) and ``day_first`` (whether 03/04/2024 is in April). See
        `bayesjpt.table.reading.Reading`.

    Raises
    ------
    TableError
        Where the file cannot be read, is empty, ragged or beyond a limit, or a column holds infinities or whole numbers
        beyond 2^53.
    SchemaError
        Where `kinds` or a schema document contradicts the values, no column is left to model, or new rows do not
        fit the schema.

    Notes
    -----
    Numbers may be written as people write them: with a decimal comma, marks between thousands, a currency, a percent
    sign or another unit, and in parentheses where negative; dates in any order of day, month and year, with names of
    months in seven languages; times of day become minutes (with seconds, seconds) since midnight. All cells of a column
    must agree. Where they could be read in two ways, unambiguous columns of the table decide, and a warning says what
    was decided. Columns without values, of free texts, identifiers, lists and the like are excluded;
    ``schema.set_aside`` says why.
    """
    from bayesjpt.table.cells import tokens_of_no_cell
    from bayesjpt.table.read import read_cells
    from bayesjpt.table.reading import Reading

    table, known = read_cells(path, limits, Reading(**reading))
    if known.tokens and not isinstance(schema, Schema):  # new rows may lack what training rows had
        unused = tokens_of_no_cell(table, known.tokens)
        if unused:
            warn(f"no cell holds what na, or --na, says is missing: {', '.join(map(repr, unused))}")
    return _assemble(table, known, kinds, schema, unseen, other=other, ignore_new=ignore_new)


def as_table(
    frame: Any,
    *,
    kinds: Mapping[str, str] | None = None,
    schema: Schema | SchemaDocument | str | Path | None = None,
    unseen: str = "other",
    other: bool = True,
    ignore_new: bool = False,
    outside: str = "error",
    **reading: Unpack[ReadingOptions],
) -> Table:
    """Return the table of a data frame of pandas, polars or pyarrow, an array or a dict; a Table is returned as it is.

    Parameters are those of `read_table`. None, NaN, NaT and pandas NA are missing, and so are the missing tokens of
    `read_table` in columns of plain texts; texts that all spell numbers or dates are read as such, as those of a file
    are. Dates and times become days since 1970-01-01 (UTC). Columns of arrays are named ``column_1`` and so on.

    With ``outside="missing"``, numbers that no likelihood of a Schema can give are missing, with a warning; with
    ``outside="part"``, of rows that are part of those by which it was decided, so are the cells of a column of numbers
    that spell none, however many they are. With `ignore_new`, columns that a Schema does not know are ignored with a
    warning, unless it knows none of the table; otherwise they are an error.

    Raises
    ------
    TableError
        Where it is not a data frame, is empty, or a column holds infinities or whole numbers beyond 2^53.
    SchemaError
        Where `kinds` or a schema document contradicts the values, no column is left to model, or new rows do not
        fit the schema.

    Examples
    --------
    >>> import pandas as pd
    >>> table = as_table(pd.DataFrame({"size": [0.5, 1.5, None, 2.0], "color": ["red", "blue", "red", "red"]}))
    >>> [(column.name, column.base, column.resolution) for column in table.schema]
    [('size', 'real', 0.5), ('color', 'category', 1.0)]
    >>> table.schema.columns[1].labels
    ('blue', 'red')
    """
    if isinstance(frame, Table):
        if kinds is not None or (schema is not None and schema != frame.schema):
            raise TableError(
                "a Table, whose schema is settled", "a data frame", "Call as_table(table.to_frame(), ...)."
            )
        return frame
    from bayesjpt.table.frames import frame_cells
    from bayesjpt.table.reading import Reading

    known = Reading(**reading)
    return _assemble(
        frame_cells(frame), known, kinds, schema, unseen, other=other, ignore_new=ignore_new, outside=outside
    )


def _labels_asked_for(schema: Schema | SchemaDocument | None) -> dict[str, tuple[str, ...]]:
    """Return the labels of columns under a schema: a word that is one of them is not a missing cell there."""
    from bayesjpt.table.schema import Schema

    if isinstance(schema, Schema):
        return {column.name: column.labels for column in schema}
    overrides = getattr(schema, "overrides", {})
    return {name: tuple(override.labels or ()) for name, override in overrides.items()}


def _own(name: str, words: Iterable[str]) -> list[str]:
    """Return the words for all columns, and those for one column of that name."""
    return [word.removeprefix(f"{name}=") for word in words]


def _assemble(
    table: list[Cells],
    reading: Reading,
    kinds: Mapping[str, str] | None,
    schema: Schema | SchemaDocument | str | Path | None,
    unseen: str,
    *,
    other: bool = True,
    ignore_new: bool = False,
    outside: str = "error",
) -> Table:
    from bayesjpt.table import decide, encode
    from bayesjpt.table.cells import with_tokens, without_values
    from bayesjpt.table.document import SchemaDocument, read_schema
    from bayesjpt.table.interpret import hints_of
    from bayesjpt.table.overrides import NOTHING

    if isinstance(schema, (str, Path)):
        schema = read_schema(schema)
    labels = _labels_asked_for(schema)
    kept = {cells.name: [*_own(cells.name, reading.kept), *labels.get(cells.name, ())] for cells in table}
    table = [without_values(with_tokens(cells, kept[cells.name]), reading.tokens) for cells in table]
    n_row = table[0].codes.size if table else 0
    if not n_row:
        raise TableError(f"the table has {n_row} rows and {len(table)} columns", "at least one of each")
    if unseen not in encode.UNSEEN:
        raise SchemaError(f"unseen={unseen!r}", f"one of {', '.join(encode.UNSEEN)}")
    if outside not in encode.OUTSIDE:
        raise SchemaError(f"outside={outside!r}", f"one of {', '.join(encode.OUTSIDE)}")
    if schema is not None and kinds is not None:
        raise SchemaError("both kinds and schema were given", "one of them", "A schema already holds the kinds.")
    if schema is not None and not other:
        raise SchemaError(
            "both other=False and schema were given", "one of them", "A schema says which lists are closed."
        )
    names = [cells.name for cells in table]
    if schema is None:
        overrides = decide.overrides_of_kinds(kinds, names)
        if not other:
            overrides = {name: replace(overrides.get(name, NOTHING), other=False) for name in names}
        schema, read = decide.decide_schema(table, overrides, hints_of(table, reading))
    elif isinstance(schema, SchemaDocument):
        schema.check_names(names)
        schema, read = decide.decide_schema(table, schema.overrides, hints_of(table, reading))
    elif isinstance(schema, Schema):
        read = encode.align(table, schema, ignore_new=ignore_new)
    else:
        raise SchemaError(f"schema is a {type(schema).__name__}", "a Schema, a SchemaDocument, or the path of one")
    values, observed, unknown = encode.encode(read, schema, n_row, unseen, outside=outside)
    return Table(schema, values, observed, unknown)
