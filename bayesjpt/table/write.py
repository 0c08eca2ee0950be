"""Tables to delimited text, with labels in place of codes; nothing but the standard library."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayesjpt.errors import TableError
from bayesjpt.replace_file import reason, replace_file
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table


def texts(column: Column, values: np.ndarray, unseen: np.ndarray | None = None) -> list[str]:
    """Return the text of each value of a column: labels, dates, and numbers by their shortest exact decimal.

    `unseen` are labels that take the place of "other", None elsewhere.
    """
    if column.base == "category":
        names = [column.code_names[int(code)] for code in values]
        return (
            names if unseen is None else [name if new is None else new for name, new in zip(names, unseen, strict=True)]
        )
    return [cells_of.value_label(value, column.dtype) for value in values.tolist()]


def write_table(table: Table, path: str | Path) -> None:
    """Write a table to a .csv or .tsv file (also with .gz); missing cells are empty.

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
    columns = []
    for position, column in enumerate(table.schema):
        shown = texts(column, table.values[position], table.unseen.get(position))
        seen = table.observed[position].tolist()
        columns.append([text if here else "" for text, here in zip(shown, seen, strict=True)])
    _write(path, table.names, columns)


def write_filled(read: Sequence[Cells], filled: Table, observed: np.ndarray, path: str | Path) -> None:
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

    Raises
    ------
    TableError
        As `write_table`.
    """
    made = dict(zip(filled.names, zip(filled.schema, filled.values, ~observed, strict=True), strict=True))
    names, columns = [], []
    for cells in read:
        labels = np.array([*cells_of.labels_of(cells), ""], object)
        shown = labels[cells.codes].tolist()
        if cells.name in made:
            column, values, missing = made[cells.name]
            for row, text in zip(np.flatnonzero(missing).tolist(), texts(column, values[missing]), strict=True):
                shown[row] = text
        names.append(cells.name)
        columns.append(shown)
    for name in filled.names:
        if name not in names:
            names.append(name)
            column, values, _ = made[name]
            columns.append(texts(column, values))
    _write(path, names, columns)


def check_path(path: str | Path) -> Path:
    """Return the path of a file that can be written to, or raise `TableError`."""
    path = Path(path)
    if not path.name.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        raise TableError(
            f"file {path.name!r} is of an unknown kind", "a name that ends in .csv or .tsv, or these with .gz"
        )
    if path.is_dir():
        raise TableError(f"{str(path)!r} is a folder", "the name of a file to write")
    if not path.parent.is_dir():
        raise TableError(f"no folder {str(path.parent)!r} to write {path.name!r} into")
    return path


def _write(path: str | Path, names: Sequence[str], columns: Sequence[Sequence[str]]) -> None:
    path = check_path(path)
    separator = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    content = text.getvalue().encode()
    if path.name.lower().endswith(".gz"):
        content = gzip.compress(content)
    try:
        replace_file(path, content)
    except OSError as error:
        raise TableError(f"cannot write {str(path)!r}: {reason(error)}") from None
