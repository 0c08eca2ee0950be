"""What ``bayesjpt predict`` prints and writes."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesjpt.queries.predict import Prediction


def _columns(found: Prediction) -> list[list[str]]:
    """Return the texts of each column: probabilities, or values as the table spells them."""
    columns = found.values.T.tolist()
    if found.column.base == "category":
        return [[f"{value:.9g}" for value in column] for column in columns]
    if found.column.dtype == "datetime" or found.column.notation is not None:
        return [[found.column.text(value) for value in column] for column in columns]
    return [[f"{value:.6g}" for value in column] for column in columns]


def as_csv(found: Prediction) -> str:
    """Return a prediction as csv, with the number of each row, from 1."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", *found.names])
    writer.writerows((row, *cells) for row, cells in enumerate(zip(*_columns(found), strict=True), start=1))
    return text.getvalue()


def write(found: Prediction, path: Path) -> None:
    """Write a prediction to a file, a line for each row of the table, in its order."""
    from bayesjpt.table.write import is_typed, write_arrow, write_columns

    if not is_typed(path):
        write_columns(path, found.names, _columns(found))
        return
    import pyarrow as pa

    from bayesjpt.table.cells import moments

    is_date = found.column.dtype == "datetime" and found.column.base != "category"
    columns = [moments(column) if is_date else column for column in found.values.T]
    write_arrow(pa.table(dict(zip(found.names, columns, strict=True))), path)
