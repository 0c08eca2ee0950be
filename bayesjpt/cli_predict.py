"""What ``bayesjpt predict`` prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from bayesjpt.queries.predict import Prediction


def _columns(prediction: Prediction) -> list[list[str]]:
    """Return the texts of each column: probabilities, or values as the table spells them."""
    from bayesjpt.table.write import texts

    columns = _as_recorded(prediction).T
    if prediction.column.base == "category":
        return [[f"{value:.9g}" for value in column] for column in columns.tolist()]
    if prediction.column.dtype == "datetime" or prediction.column.notation is not None:
        return [texts(prediction.column, column) for column in columns]
    return [[f"{value:.6g}" for value in column] for column in columns.tolist()]


def _as_recorded(prediction: Prediction) -> np.ndarray:
    """Return the values, dates and times as exactly as their column was recorded, such as to whole days or minutes."""
    column = prediction.column
    unit = column.resolution if column.has_grid else float(column.resolution >= 1.0)
    if column.dtype != "datetime" or column.base == "category" or unit == 0.0:
        return prediction.values
    return (prediction.values / unit).round() * unit


def as_csv(prediction: Prediction) -> str:
    """Return a prediction as csv, with the number of each row, from 1."""
    from bayesjpt.table.write import delimited

    numbers = [str(row) for row in range(1, len(prediction.values) + 1)]
    return delimited(["row", *prediction.names], [numbers, *_columns(prediction)])


def write(prediction: Prediction, path: Path) -> None:
    """Write a prediction to a file, a line for each row of the table, in its order."""
    from bayesjpt.table.write import is_typed, write_arrow, write_columns

    if not is_typed(path):
        write_columns(path, prediction.names, _columns(prediction))
        return
    import pyarrow as pa

    from bayesjpt.table.cells import calendar_moments

    is_date = prediction.column.dtype == "datetime" and prediction.column.base != "category"
    columns = [calendar_moments(column) if is_date else column for column in _as_recorded(prediction).T]
    write_arrow(pa.table(dict(zip(prediction.names, columns, strict=True))), path)
