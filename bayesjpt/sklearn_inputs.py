"""What estimators of scikit-learn's kind are given: columns by name, a free name for the target, and checks of y."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from bayesjpt.experts.model import as_real
from bayesjpt.table.frames import is_missing
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

FEW_ROWS = 5
"""Rows below which intervals say nothing yet: those of nine tenths hold .6 to .7 of new numbers from two or three rows,
.9 from five."""


def columns_of(estimator: Any, X: Any, *, reset: bool) -> tuple[list[str] | None, list[Any]]:
    """Return the names of the columns, None where X is an array, and the columns themselves.

    Raises
    ------
    ValueError
        Where there are no rows, no columns, or not the columns of the fit (of scikit-learn).
    """
    if not hasattr(X, "columns"):
        checked: Any = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")  # pyright: ignore[reportArgumentType]
        return None, list(checked.T)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if not len(X):
        raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if not len(X.columns):
        raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    names = X.column_names if hasattr(X, "rename_columns") else X.columns  # the columns of pyarrow are no names
    return [str(name) for name in names], [X[name] for name in names]


def with_spread(table: Table, target: str) -> Table:
    """Return a table whose target has a density, of deviations as large as its size, where few rows hold one number.

    As a column of a single value it would be certain: intervals of one row would have no width.
    """
    position = table.schema.index(target)
    column = table.schema.columns[position]
    if table.n_row >= FEW_ROWS or column.n_distinct > 1:
        return table
    real = as_real(column, table.values[position], (-np.inf, np.inf))
    columns = list(table.schema.columns)
    columns[position] = replace(real, families=(), cell_ends=(), cell_shifts=())
    return table.with_schema(Schema(tuple(columns), table.schema.set_aside))


def free_name(taken: Iterable[str]) -> str:
    """Return a name for the column of the target that no feature has.

    Examples
    --------
    >>> free_name(["x0", "x1"]), free_name(["target", "target_2"])
    ('target', 'target_3')
    """
    names, name, number = set(taken), "target", 1
    while name in names:
        number += 1
        name = f"target_{number}"
    return name


def fractions(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the kind of columns that hold fractions: numbers, however few different ones there are."""
    found = {}
    for name, column in columns.items():
        if hasattr(getattr(column, "dtype", None), "categories"):  # of pandas; they may be numbers
            continue
        values = np.asarray(column)
        if values.dtype.kind == "f" and (np.isfinite(values) & (values != np.rint(values))).any():
            found[name] = "real"
    return found


def rows_of(columns: Mapping[str, Any]) -> int:
    """Return how many rows columns have."""
    return len(next(iter(columns.values())))


def _cells(y: Any) -> list[Any]:
    """Return the cells of a target as objects; none of an array of numbers or texts, which scikit-learn checks."""
    values = np.asarray(y)
    return values.ravel().tolist() if values.dtype.kind == "O" else []


def numbers(y: Any, n_row: int) -> np.ndarray:
    """Return numbers, float64 (n_row,), or raise ValueError where they are none, one is missing, or not one a row."""
    cells = [] if y is None else _cells(y)
    dates = datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64
    if np.asarray(y).dtype.kind in "mM" or any(isinstance(cell, dates) for cell in cells):
        raise ValueError("Input y contains dates or durations; expected numbers, such as days since a date")
    return column_or_1d(np.asarray(labels(y, n_row), np.float64), warn=True)


def labels(y: Any, n_row: int) -> np.ndarray:
    """Return classes, or raise ValueError where there are none, one is missing, or not as many as rows."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    # scikit-learn lets None among objects pass, and stumbles over the NA of pandas
    missing = [row for row, cell in enumerate(_cells(y)) if is_missing(cell)]
    if missing:
        raise ValueError(f"Input y contains missing values: {len(missing)}, the first in row {missing[0] + 1}")
    anything: Any = None
    y = check_array(y, ensure_2d=False, dtype=anything, ensure_all_finite=True, input_name="y", ensure_min_samples=0)
    if len(y) != n_row:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_row}, {len(y)}]")
    return y
