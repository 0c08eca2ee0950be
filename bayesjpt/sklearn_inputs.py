"""What estimators of scikit-learn's kind are given: columns by name, a free name for the target, and checks of y."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data


def columns_of(estimator: Any, X: Any, *, reset: bool) -> tuple[list[str] | None, list[Any]]:
    """Return the names of the columns, None where X is an array, and the columns themselves.

    Raises
    ------
    ValueError
        Where there are no rows, or not the columns of the fit (of scikit-learn).
    """
    if not hasattr(X, "columns"):
        checked: Any = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")  # pyright: ignore[reportArgumentType]
        return None, list(checked.T)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if not len(X):
        raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    names = X.column_names if hasattr(X, "rename_columns") else X.columns  # the columns of pyarrow are no names
    return [str(name) for name in names], [X[name] for name in names]


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
        values = np.asarray(column)
        if values.dtype.kind == "f" and (np.isfinite(values) & (values != np.rint(values))).any():
            found[name] = "real"
    return found


def rows_of(columns: Mapping[str, Any]) -> int:
    """Return how many rows columns have."""
    return len(next(iter(columns.values())))


def labels(y: Any, n_row: int) -> np.ndarray:
    """Return classes, or raise ValueError where there are none, or not as many as rows."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    anything: Any = None
    y = check_array(y, ensure_2d=False, dtype=anything, ensure_all_finite=True, input_name="y", ensure_min_samples=0)
    if len(y) != n_row:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_row}, {len(y)}]")
    return y
