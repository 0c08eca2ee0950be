"""What ``bayesjpt predict`` prints and writes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from bayesjpt.queries.predict import Prediction
    from bayesjpt.table.schema import Column

_LEAST_DIGITS = 6
"""Significant ones of a predicted number."""


def _columns(prediction: Prediction) -> list[list[str]]:
    """Return the texts of each column: probabilities, or values as the table spells them."""
    from bayesjpt.table.write import texts

    columns = _as_recorded(prediction).T
    if prediction.column.base == "category":
        return [[f"{value:.9g}" for value in column] for column in columns.tolist()]
    if prediction.column.dtype == "datetime" or prediction.column.notation is not None:
        return [texts(prediction.column, column) for column in columns]
    return [[_number(prediction.column, value) for value in column] for column in columns.tolist()]


def _number(column: Column, value: float) -> str:
    """Return a number with a digit more than its column was recorded to: a mean lies between what was recorded."""
    if not math.isfinite(value):
        return str(value)
    size = math.floor(math.log10(abs(value))) if value else 0
    unit = column.resolution if column.base == "real" else column.step
    n_digit = 1 - math.floor(math.log10(unit) + 1e-9)
    n_digit = max(min(n_digit, 15 - size), _LEAST_DIGITS - 1 - size, 0)
    written = f"{round(value, n_digit) + 0.0:.{n_digit}f}" if n_digit <= 15 else f"{value:.{_LEAST_DIGITS}g}"
    return written.rstrip("0").rstrip(".") if "." in written and "e" not in written else written


def _as_recorded(prediction: Prediction) -> np.ndarray:
    """Return the values, dates and times as exactly as their column was recorded: whole days or minutes, or Mondays."""
    from bayesjpt.numerics.recording_grid import grid_points

    column = prediction.column
    unit = column.resolution if column.has_grid else float(column.resolution >= 1.0)
    step = -column.months or (column.step if column.offset else unit)
    if column.dtype != "datetime" or column.base == "category" or step == 0.0:
        return prediction.values
    return grid_points(prediction.values, step, 0.0, column.offset)


def _in_order(prediction: Prediction) -> Prediction:
    """Return a prediction with labels that have a known order in it: low, medium, high."""
    from bayesjpt.table.ordered_labels import known_order

    order = known_order(prediction.names) if prediction.column.base == "category" else None
    if order is None:
        return prediction
    places = [prediction.names.index(label) for label in order.labels]
    return prediction._replace(names=order.labels, values=prediction.values[:, places])


def _names(prediction: Prediction) -> list[str]:
    """Return the names of the columns, that of the rows' numbers first, which a label may be, too."""
    row = "row"
    while row in prediction.names:
        row += "_"
    return [row, *prediction.names]


def as_csv(prediction: Prediction) -> str:
    """Return a prediction as csv, with the number of each row, from 1."""
    from bayesjpt.table.write import delimited

    prediction = _in_order(prediction)
    numbers = [str(row) for row in range(1, len(prediction.values) + 1)]
    return delimited(_names(prediction), [numbers, *_columns(prediction)])


def write(prediction: Prediction, path: Path) -> None:
    """Write a prediction to a file, a line for each row of the table, in its order and with its number, from 1."""
    from bayesjpt.table.write import is_typed, write_arrow, write_columns

    prediction = _in_order(prediction)
    numbers = list(range(1, len(prediction.values) + 1))
    if not is_typed(path):
        write_columns(path, _names(prediction), [list(map(str, numbers)), *_columns(prediction)])
        return
    import pyarrow as pa

    from bayesjpt.table.cells import calendar_moments

    is_date = prediction.column.dtype == "datetime" and prediction.column.base != "category"
    columns = [calendar_moments(column) if is_date else column for column in _as_recorded(prediction).T]
    write_arrow(pa.table(dict(zip(_names(prediction), [numbers, *columns], strict=True))), path)
