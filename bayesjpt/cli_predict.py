"""What ``bayesjpt predict`` prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from bayesjpt.queries.predict import Prediction


def _columns(found: Prediction) -> list[list[str]]:
    """Return the texts of each column: probabilities, or values as the table spells them."""
    columns = _in_days(found).T.tolist()
    if found.column.base == "category":
        return [[f"{value:.9g}" for value in column] for column in columns]
    if found.column.dtype == "datetime" or found.column.notation is not None:
        return [[found.column.text(value) for value in column] for column in columns]
    return [[f"{value:.6g}" for value in column] for column in columns]


def _in_days(found: Prediction) -> np.ndarray:
    """Return the values, those of a column of days without a time of the day as whole days."""
    is_day = found.column.dtype == "datetime" and found.column.base != "category" and found.column.resolution >= 1.0
    return found.values.round() if is_day else found.values


def as_csv(found: Prediction) -> str:
    """Return a prediction as csv, with the number of each row, from 1."""
    from bayesjpt.table.write import delimited

    numbers = [str(row) for row in range(1, len(found.values) + 1)]
    return delimited(["row", *found.names], [numbers, *_columns(found)])


def write(found: Prediction, path: Path) -> None:
    """Write a prediction to a file, a line for each row of the table, in its order."""
    from bayesjpt.table.write import is_typed, write_arrow, write_columns

    if not is_typed(path):
        write_columns(path, found.names, _columns(found))
        return
    import pyarrow as pa

    from bayesjpt.table.cells import moments

    is_date = found.column.dtype == "datetime" and found.column.base != "category"
    columns = [moments(column) if is_date else column for column in _in_days(found).T]
    write_arrow(pa.table(dict(zip(found.names, columns, strict=True))), path)
