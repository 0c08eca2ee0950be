"""Tables to files: delimited text as the table spells its cells, or parquet and feather with their types."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesjpt.errors import TableError
from bayesjpt.replace_file import reason, replace_file
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells, is_iso_date
from bayesjpt.table.iso_dates import is_iso, iso_texts, written_as
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table
from bayesjpt.table.written_dates import DateNotation
from bayesjpt.table.written_durations import DurationNotation
from bayesjpt.table.written_numbers import NumberNotation
from bayesjpt.user_paths import as_output, as_path


def texts(column: Column, values: np.ndarray, unseen: np.ndarray | None = None) -> list[str]:
    """Return the text of each value of a column: labels, dates, and numbers by their shortest exact decimal.

    `unseen` are labels that take the place of "other", None elsewhere.
    """
    if column.base == "category":
        code_names = _label_texts(column)
        names = [code_names[int(code)] for code in values]
        return (
            names if unseen is None else [name if new is None else new for name, new in zip(names, unseen, strict=True)]
        )
    if is_iso(column):
        return iso_texts(column, values)
    return [column.text(value) for value in values.tolist()]


def _label_texts(column: Column) -> tuple[str, ...]:
    """Return the text of each code: labels that are dates in ISO 8601 as the table writes them."""
    if column.notation is None or not is_iso(column):
        return column.code_names
    days = {label: cells_of.days(np.array([label], "datetime64[us]")) for label in filter(is_iso_date, column.labels)}
    return tuple(iso_texts(column, days[name])[0] if name in days else name for name in column.code_names)


def write_table(table: Table, path: str | Path) -> None:
    """Write a table to a .csv or .tsv file (also with .gz) as it spells its cells, or typed to .parquet or .feather.

    Missing cells are empty.

    Raises
    ------
    TableError
        For another kind of file, and where it cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile, bayesjpt as bj, pandas as pd
    >>> table = bj.as_table(pd.DataFrame({"kind": ["a", "b", None] * 9, "size": [0.25, 3.0, None] * 9}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "out.csv"
    ...     write_table(table.take([0, 1, 2]), path)
    ...     print(path.read_text())
    kind,size
    a,0.25
    b,3
    ,
    <BLANKLINE>
    """
    if is_typed(path):
        write_arrow(typed(table), path)
        return
    write_columns(path, *spelled(table))


def spelled(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the names of a table's columns and their cells as it spells them, each (n_row,), missing ones empty."""
    columns = []
    for position, column in enumerate(table.schema):
        cell_texts = texts(column, table.values[position], table.unseen.get(position))
        seen = table.observed[position].tolist()
        columns.append([text if is_observed else "" for text, is_observed in zip(cell_texts, seen, strict=True)])
    return list(table.names), columns


def with_all_digits(table: Table) -> Table:
    """Return a table that spells numbers with all their digits, where it gives each as many, `$1,234.50`."""
    columns = tuple(
        replace(column, notation=replace(column.notation, digits=-1))
        if isinstance(column.notation, NumberNotation)
        else column
        for column in table.schema
    )
    return table.with_schema(replace(table.schema, columns=columns))


def write_filled(
    read: Sequence[Cells], filled: Table, observed: np.ndarray, path: str | Path, *, separator: str = ","
) -> None:
    """Write what was read from a file with its missing cells filled in, and columns that it lacked behind the others.

    Parameters
    ----------
    read : sequence of Cells
        The file's columns. Those that the table does not have are written as they are.
    filled : Table
        The same rows completed.
    observed : bool (n_column, n_row)
        Which of its cells were observed; they are written as they were read.
    path : str or Path
    separator : str
        As in `write_columns`: that of the file that was read.

    Raises
    ------
    TableError
        As `write_table`.
    """
    if is_typed(path):
        _write_filled_arrow(read, filled, path)
        return
    write_columns(path, *spelled_filled(read, filled, observed), separator)


def spelled_filled(read: Sequence[Cells], filled: Table, observed: np.ndarray) -> tuple[list[str], list[list[str]]]:
    """Return names and columns of texts, as `write_filled` writes them."""
    filled = named_as(filled, [cells.name for cells in read])
    made = dict(zip(filled.names, zip(filled.schema, filled.values, ~observed, strict=True), strict=True))
    names, columns = [], []
    for cells in (cells_of.with_tokens(one, one.tokens) for one in read):  # NA stays where nothing is filled in
        written = cells_of.labels_of(cells)
        if cells.stored == "datetime" and cells.notation is not None:  # moments with a zone, of no file of text
            written = [cells.notation.text(value) for value in cells.distinct.tolist()]
        cell_texts = np.array([*written, ""], object)[cells.codes].tolist()
        if cells.name in made:
            column, values, missing = made[cells.name]
            column = written_as(column, cells_of.labels_of(cells) if cells.stored == "text" else ())
            for row, text in zip(np.flatnonzero(missing).tolist(), texts(column, values[missing]), strict=True):
                cell_texts[row] = text
        names.append(cells.name)
        columns.append(cell_texts)
    for name in filled.names:
        if name not in names:
            names.append(name)
            column, values, _ = made[name]
            columns.append(texts(column, values))
    return names, columns


def named_as(filled: Table, names: Sequence[str]) -> Table:
    """Return a table whose columns have the names of a file, where these have other spaces around them."""
    known = filled.names
    spelled = {cells_of.name_among(name, known): name for name in names if name not in known}
    columns = [
        replace(column, name=spelled.get(column.name, column.name) if column.name not in names else column.name)
        for column in filled.schema
    ]
    return filled.with_schema(replace(filled.schema, columns=tuple(columns)))


def _write_filled_arrow(read: Sequence[Cells], filled: Table, path: str | Path) -> None:
    """Write completed columns with their types, others as texts, in the order in which they were read."""
    import pyarrow as pa

    frame = typed(named_as(filled, [cells.name for cells in read]))
    columns = {}
    for cells in read:
        if cells.name in frame.column_names:
            columns[cells.name] = frame.column(cells.name)
        else:
            labels = np.array([*cells_of.labels_of(cells), None], object)
            columns[cells.name] = pa.array(labels[cells.codes].tolist(), pa.string())
    columns |= {name: frame.column(name) for name in frame.column_names if name not in columns}
    write_arrow(pa.table(columns), path)


def typed(table: Table) -> Any:
    """Return a table of Arrow's; times of day and durations as they are written: as numbers nobody would know them."""
    import pyarrow as pa

    frame = table.to_frame("pyarrow")
    for position, column in enumerate(table.schema):
        is_clock = isinstance(column.notation, DateNotation) and column.notation.order == "clock"
        if column.base != "category" and (is_clock or isinstance(column.notation, DurationNotation)):
            cells = zip(texts(column, table.values[position]), table.observed[position].tolist(), strict=True)
            written = pa.array([text if seen else None for text, seen in cells], pa.string())
            frame = frame.set_column(position, column.name, written)
        elif column.dtype == "datetime" and isinstance(column.notation, DateNotation) and column.notation.has_zone:
            frame = frame.set_column(position, column.name, frame.column(position).cast(pa.timestamp("us", "UTC")))
    return frame


_TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ARROWS = (".parquet", ".feather")


def check_path(path: str | Path) -> Path:
    """Return the path of a file that can be written to, or raise `TableError`."""
    path = as_path(path, TableError)
    if not path.name.lower().endswith(_TEXTS + _ARROWS):
        raise TableError(
            f"file {path.name!r} is of an unknown kind",
            "a name that ends in .csv or .tsv, these with .gz, .parquet or .feather",
        )
    return as_output(path, TableError)


def is_typed(path: str | Path) -> bool:
    """Return whether a file keeps the types of its columns.

    Examples
    --------
    >>> is_typed("rows.parquet"), is_typed("rows.csv")
    (True, False)
    """
    return as_path(path, TableError).name.lower().endswith(_ARROWS)


def write_arrow(frame: Any, path: str | Path) -> None:
    """Write a table of Arrow's to a .parquet or .feather file.

    Raises
    ------
    TableError
        Where it cannot be written.
    """
    import pyarrow as pa
    from pyarrow import feather, parquet

    path = check_path(path)
    content = pa.BufferOutputStream()
    if path.name.lower().endswith(".parquet"):
        parquet.write_table(frame, content)
    else:
        feather.write_feather(frame, content)
    _replace(path, content.getvalue().to_pybytes())


def write_columns(
    path: str | Path, names: Sequence[str], columns: Sequence[Sequence[str]], separator: str = ","
) -> None:
    """Write columns of texts, each (n_row,), to a .csv file with some separator, or a .tsv file, also with .gz.

    Raises
    ------
    TableError
        For another kind of file, and where it cannot be written.
    """
    path = check_path(path)
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        separator = "\t"
    content = delimited(names, columns, separator).encode()
    _replace(path, gzip.compress(content) if path.name.lower().endswith(".gz") else content)


def delimited(names: Sequence[str], columns: Sequence[Sequence[str]], separator: str = ",") -> str:
    """Return columns of texts, each (n_row,), as the text of a csv file.

    Examples
    --------
    >>> delimited(["kind", "size"], [["a", "b"], ["1", "2"]])
    'kind,size\\na,1\\nb,2\\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    # a name such as "size; cm" would be read as two, where nothing but the first line tells what parts cells
    special = {*',;\t|"\r\n', separator}
    first = [name if special.isdisjoint(name) else f'"{name.replace(chr(34), 2 * chr(34))}"' for name in names]
    text.write(f"{separator.join(first)}\n")
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _replace(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content)
    except OSError as error:
        raise TableError(f"cannot write {str(path)!r}: {reason(error)}") from None
