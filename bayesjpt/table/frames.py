"""Data frames to cells and back, through narwhals: pandas, polars, pyarrow. Knows nothing of what columns become."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import TableError
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells

_N_DIGITS = 80
"""Digits of a whole decimal number that are looked at; Arrow's widest has 76."""

BACKENDS = ("pandas", "polars", "pyarrow")

_TYPES = {
    "text": nw.String(),
    "boolean": nw.Boolean(),
    "integer": nw.Int64(),
    "number": nw.Float64(),
    "datetime": nw.Datetime("us"),
}


def frame_cells(frame: Any) -> list[Cells]:
    """Return the cells of each column of a data frame.

    Raises
    ------
    TableError
        Where it is not a data frame, its names are no distinct texts, or a column is of a type that is not a column of
        numbers, texts, booleans or dates.
    """
    if hasattr(frame, "collect"):
        raise TableError(f"a lazy frame ({type(frame).__name__})", "rows that can be read", "Call .collect() first.")
    names = getattr(frame, "columns", None)
    if names is not None and hasattr(names, "tolist"):  # pandas: narwhals does not look at names that are no texts
        _check_names(names.tolist())
    try:
        wide = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError:
        _check_names(list(frame.column_names))
        raise
    except TypeError:
        package = type(frame).__module__.split(".")[0]
        raise TableError(
            f"a {type(frame).__name__}" if package == "builtins" else f"a {package} {type(frame).__name__}",
            "a data frame of pandas, polars or pyarrow",
            "To read a file use bj.read_table(path)."
            if isinstance(frame, (str, Path))
            else "Wrap it in a DataFrame with named columns.",
        ) from None
    return [_series_cells(name, wide[name]) for name in wide.columns]


def _arrow_type(series: nw.Series) -> str:
    """Return the name of a type of Arrow's that narwhals does not know, empty for all others."""
    return str(series.to_native().type) if series.dtype == nw.Unknown and series.implementation.is_pyarrow() else ""


def _check_names(names: list[Any]) -> None:
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise TableError(
                f"column {position + 1} is named {name!r}, a {type(name).__name__}",
                "texts as names",
                "Rename it, for example frame.columns = [str(name) for name in frame.columns].",
            )
    cells_of.check_distinct(names)


def _series_cells(name: str, series: nw.Series) -> Cells:
    if _arrow_type(series).startswith("date64"):
        series = nw.from_native(series.to_native().cast("timestamp[ms]"), series_only=True)
    dtype = series.dtype
    if dtype == nw.Boolean:
        return cells_of.from_floats(name, _floats(series.to_list()), "boolean")
    if dtype.is_integer():
        return _integer_cells(name, series)
    if dtype.is_float():
        return _float_cells(name, series)
    if dtype == nw.Decimal or _arrow_type(series).startswith("decimal"):
        return _object_cells(name, series.to_list())
    # narwhals looks at the first hundred objects alone to call a column text
    if dtype == nw.String and series.implementation.is_pandas_like() and series.to_native().dtype == object:
        return _object_cells(name, series.to_list())
    if dtype == nw.String:
        return text_cells(name, (None if _is_missing(value) else value for value in series.to_list()))
    if dtype in (nw.Categorical, nw.Enum):
        return _labelled_cells(name, series)
    if dtype in (nw.Datetime, nw.Date):
        return cells_of.from_floats(name, _days(name, series), "datetime")
    if dtype == nw.Object:
        return _object_cells(name, series.to_list())
    if all(_is_missing(value) for value in series.to_list()):
        return text_cells(name, [None] * len(series))
    shown = dtype if dtype != nw.Unknown else _arrow_type(series) or series.to_native().dtype
    raise TableError(
        f"column {name!r} is of type {shown}",
        "numbers, texts, booleans or dates",
        "Convert or drop it.",
    )


def text_cells(name: str, values: Iterable[str | None]) -> Cells:
    """Return the cells of a column of texts; None is missing."""
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    codes = np.array([-1 if value is None else number[value] for value in values], np.int64)
    return cells_of.from_text(name, list(number), codes)


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas NA."""
    if value is None:
        return True
    if isinstance(value, (str, bool, numbers.Integral)):
        return False
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, decimal.Decimal):
        return value.is_nan()  # a signalling NaN refuses to be compared
    return isinstance(value, numbers.Real) and value != value


def _floats(values: list[Any]) -> np.ndarray:
    return np.array([np.nan if _is_missing(value) else float(value) for value in values])


def _integer_cells(name: str, series: nw.Series) -> Cells:
    low, high = series.min(), series.max()
    if not _is_missing(high) and max(abs(int(low)), abs(int(high))) > defaults.LARGEST_INTEGER:
        # as texts no digit is lost; whether the column is an identifier or a mistake is decided later
        return text_cells(name, [None if _is_missing(value) else str(int(value)) for value in series.to_list()])
    if series.dtype in (nw.Int128, nw.UInt128):
        return cells_of.from_floats(name, _floats(series.to_list()))
    return cells_of.from_floats(name, np.asarray(series.to_numpy(), np.float64))


def _float_cells(name: str, series: nw.Series) -> Cells:
    values = np.asarray(series.to_numpy())
    if values.dtype.itemsize >= 8 and series.dtype == nw.Float64:
        return cells_of.from_floats(name, values.astype(np.float64))
    # a narrow float stands for its shortest decimal: 5.1, not 5.099999904632568, or no grid is ever visible
    narrow = cells_of.from_floats(name, values.astype(np.float64))
    kind = values.dtype if values.dtype.kind == "f" and values.dtype.itemsize < 8 else np.float32
    return narrow.retold("number", narrow.distinct.astype(kind).astype("U32").astype(np.float64))


def _labelled_cells(name: str, series: nw.Series) -> Cells:
    """Return the cells of a categorical column with its labels in their declared order."""
    values = [None if _is_missing(value) else _label(value) for value in series.to_list()]
    native = series.to_native()
    if series.implementation.is_pandas_like() and hasattr(native, "cat"):
        labels = tuple(_label(label) for label in native.cat.categories)
    elif isinstance(series.dtype, nw.Enum):
        labels = tuple(series.dtype.categories)
    else:  # an order of first appearance is no declared order
        labels = tuple(sorted({value for value in values if value is not None}))
    number = {label: position for position, label in enumerate(labels)}
    if len(number) < len(labels):
        twice = next(label for position, label in enumerate(labels) if number[label] != position)
        raise TableError(
            f"column {name!r} declares two labels that both read {twice!r}", "distinct labels", "Rename one."
        )
    codes = np.array([-1 if value is None else number[value] for value in values], np.int64)
    used = sorted(number[value] for value in {value for value in values if value is not None})
    renumber = np.full(len(labels) + 1, -1, np.int64)
    renumber[used] = np.arange(len(used))
    distinct = np.array([labels[position] for position in used], object)
    return Cells(name, "text", distinct, renumber[codes], labels)


def _label(value: Any) -> str:
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        return cells_of.number_label(float(value))
    return str(value)


def _days(name: str, series: nw.Series) -> np.ndarray:
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    elif isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    moments = np.asarray(series.to_numpy())
    years = moments.astype("datetime64[Y]").astype(np.int64) + 1970
    outside = np.flatnonzero(~np.isnat(moments) & ((years < 1) | (years > 9999)))
    if outside.size:
        row = int(outside[0])
        raise TableError(
            f"column {name!r} holds a date of the year {years[row]} in row {row + 1}",
            "years 1 to 9999",
            "Mend the cell, or leave it empty.",
        )
    return cells_of.days(moments)


def _object_cells(name: str, values: list[Any]) -> Cells:
    """Return the cells of a column of Python objects that are all of one kind."""
    kinds = [None if _is_missing(value) else _kind(value) for value in values]
    first = next((kind for kind in kinds if kind is not None), "text")
    for row, kind in enumerate(kinds, start=1):
        if kind is not None and (kind != first or kind == "object"):
            raise TableError(
                f"column {name!r} mixes kinds: {values[row - 1]!r} in row {row} is of type "
                f"{type(values[row - 1]).__name__}",
                f"each cell a {first}" if first != "object" else "numbers, texts, booleans or dates",
                "Convert the column to one type.",
            )
    present = [None if kind is None else value for kind, value in zip(kinds, values, strict=True)]
    if first == "text":
        return text_cells(name, present)
    if first == "datetime":
        stamps = [np.datetime64("NaT", "us") if value is None else _utc(value) for value in present]
        return cells_of.from_floats(name, cells_of.days(np.array(stamps, "datetime64[us]")), "datetime")
    if first == "number" and any(map(_is_inexact, present)):
        return text_cells(name, [None if value is None else _digits(value) for value in present])
    return cells_of.from_floats(name, _floats(present), first)


def _is_inexact(value: Any) -> bool:
    """Return whether a value is a whole number that float64 cannot hold."""
    if isinstance(value, decimal.Decimal):
        return (
            value.is_finite() and value.adjusted() < _N_DIGITS and value == value.to_integral_value() and _beyond(value)
        )
    return isinstance(value, numbers.Integral) and _beyond(value)


def _beyond(value: Any) -> bool:
    return abs(int(value)) > defaults.LARGEST_INTEGER


def _digits(value: Any) -> str:
    return str(int(value)) if _is_inexact(value) else str(value)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return "number"
    return "datetime" if isinstance(value, (datetime.date, np.datetime64)) else "object"


def _utc(value: Any) -> np.datetime64:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def build_frame(columns: dict[str, tuple[str, list[Any]]], backend: str) -> Any:
    """Return a native frame from (kind, values) of each column, None where missing.

    The kind is ``text``, ``boolean``, ``integer``, ``number`` or ``datetime``.
    """
    if backend not in BACKENDS:
        raise TableError(f"no data frames of the kind {backend!r}", f"one of {', '.join(BACKENDS)}")
    chosen: Any = backend
    try:
        series = [
            nw.new_series(name, values, _column_type(kind, values, backend), backend=chosen)
            for name, (kind, values) in columns.items()
        ]
    except ImportError as error:
        raise TableError(
            f"data frames of {backend} cannot be made: {error}", None, f"Install it: pip install {backend}."
        ) from None
    return nw.to_native(nw.from_dict({one.name: one for one in series}, backend=chosen))


def _column_type(kind: str, values: list[Any], backend: str) -> Any:
    """Return the type of a column, None to let the backend choose."""
    if backend == "pandas" and None in values:
        if kind == "boolean":  # its plain booleans would turn None into False
            return None
        if kind == "integer":
            return nw.Float64()
    return _TYPES[kind]
