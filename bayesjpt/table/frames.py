"""Data frames to cells and back, through narwhals: pandas, polars, pyarrow. Knows nothing of what columns become."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import TableError
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.header import made_distinct
from bayesjpt.table.written_dates import zoned_notation

_N_DIGITS = 80
"""Digits of a whole decimal number that are looked at; Arrow's widest has 76."""

BACKENDS = ("pandas", "polars", "pyarrow")

_TYPES = {
    "text": nw.String(),
    "boolean": nw.Boolean(),
    "integer": nw.Int64(),
    "number": nw.Float64(),
    "datetime": nw.Datetime("us"),
    "time": nw.Time(),
}


def with_lists(frame: Any) -> Any:
    """Return rows with their cells in lists, where they are a dict of single cells or one row of a data frame.

    Examples
    --------
    >>> with_lists({"x": 1.5, "kind": "a"})
    {'x': [1.5], 'kind': ['a']}
    """
    if hasattr(frame, "to_dict") and np.ndim(frame) == 1:
        frame = frame.to_dict()
    if not isinstance(frame, Mapping):
        return frame
    return {name: [cells] if isinstance(cells, str) or np.ndim(cells) == 0 else cells for name, cells in frame.items()}


def frame_cells(frame: Any) -> list[Cells]:
    """Return the cells of each column of a data frame, of an array, or of a mapping from names to columns.

    Raises
    ------
    TableError
        Where it is neither a data frame nor an array nor a mapping from names to columns of one length.

    Notes
    -----
    Columns of types that are no numbers, texts, booleans or dates are there, with the reason why they are excluded.
    """
    if hasattr(frame, "collect"):
        raise TableError(f"a lazy frame ({type(frame).__name__})", "rows that can be read", "Call .collect() first.")
    if hasattr(frame, "iter_tables"):
        raise TableError("rows in files", "a Table, or a data frame", "Take some rows: dataset.sample(100_000).")
    if isinstance(frame, Mapping):
        return _mapping_cells(frame)
    if isinstance(frame, np.ndarray):
        return _array_cells(frame)
    try:
        wide = nw.from_native(with_names(frame), eager_only=True)
    except TypeError:
        package = type(frame).__module__.split(".")[0]
        raise TableError(
            f"a {type(frame).__name__}" if package == "builtins" else f"a {package} {type(frame).__name__}",
            "a data frame of pandas, polars or pyarrow, an array, or a dict of columns",
            "To read a file use bj.read_table(path)."
            if isinstance(frame, (str, Path))
            else "Wrap it in a DataFrame with named columns.",
        ) from None
    return [_series_cells(name, wide[name]) for name in wide.columns]


def with_names(frame: Any) -> Any:
    """Return a frame or dict of columns whose names are distinct texts, those that the columns of its Table have."""
    if isinstance(frame, Mapping):
        return dict(zip(_distinct_names(list(frame)), frame.values(), strict=True))
    columns = getattr(frame, "columns", None)
    if columns is not None and hasattr(columns, "tolist"):  # pandas
        old = columns.tolist()
        names = _distinct_names(old)
        return frame if names == old else frame.set_axis(names, axis=1)
    if hasattr(frame, "rename_columns"):  # pyarrow
        return frame.rename_columns(_distinct_names(frame.column_names))
    return frame


def _distinct_names(names: Sequence[Any]) -> list[str]:
    """Return names as distinct texts: 7 is ``7``, and a pair of names is joined."""
    texts = []
    for position, name in enumerate(names, start=1):
        if isinstance(name, tuple):
            name = "_".join(str(part) for part in name if str(part))
        empty = name is None or (isinstance(name, float) and name != name)
        texts.append(f"unnamed_{position}" if empty else str(name))
    return made_distinct(texts)


def _mapping_cells(columns: Mapping[Any, Any]) -> list[Cells]:
    """Return the cells of a mapping from names to columns: sequences, arrays or series of one length."""
    table = [_column_cells(name, column) for name, column in with_names(columns).items()]
    for cells in table:
        if cells.codes.size != table[0].codes.size:
            raise TableError(
                f"column {cells.name!r} has {cells.codes.size} cells",
                f"{table[0].codes.size} as column {table[0].name!r} has",
            )
    return table


def _array_cells(array: np.ndarray) -> list[Cells]:
    """Return the cells of an array (n_row, n_column), or of one with named fields (n_row,)."""
    if array.dtype.names:
        return [_column_cells(str(name), array[name].ravel()) for name in array.dtype.names]
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise TableError(
            f"an array of shape {array.shape}", "rows and columns", "Reshape it: array.reshape(n_row, -1)."
        )
    return [_column_cells(f"column_{position}", array[:, position - 1]) for position in range(1, array.shape[1] + 1)]


def _column_cells(name: str, column: Any) -> Cells:
    if not isinstance(column, np.ndarray):
        if type(column).__module__ == "pyarrow.lib" and not hasattr(column, "chunks"):
            import pyarrow as pa

            column = pa.chunked_array([column])  # narwhals takes no array of a single piece
        try:
            return _series_cells(name, nw.from_native(column, series_only=True))
        except TypeError:
            if isinstance(column, str | bytes) or not isinstance(column, Iterable):
                raise TableError(
                    f"column {name!r} is a {type(column).__name__}", "a sequence with a cell for each row"
                ) from None
            return object_cells(name, list(column))
    column = cells_of.unmasked(column)
    if column.ndim != 1:
        return cells_of.excluded(name, len(column), f"an array of shape {column.shape}, not one value a row")
    if column.dtype.kind == "f" and column.dtype.itemsize <= 8:
        return _narrow_floats(name, column)
    if column.dtype.kind in "iu" and np.abs(column.astype(object)).max(initial=0) <= defaults.LARGEST_INTEGER:
        return cells_of.from_floats(name, column.astype(np.float64))
    if column.dtype.kind == "b":
        return cells_of.from_floats(name, column.astype(np.float64), "boolean")
    if column.dtype.kind == "M":
        return cells_of.from_floats(name, _calendar_days(name, column), "datetime")
    if column.dtype.kind == "m":
        return cells_of.excluded(name, len(column), f"of type {column.dtype}: {_REMEDIES['duration']}")
    return object_cells(name, column.tolist())


def _arrow_type(series: nw.Series) -> str:
    """Return the name of a type of Arrow's that narwhals does not know, empty for all others."""
    return str(series.to_native().type) if series.dtype == nw.Unknown and series.implementation.is_pyarrow() else ""


def _zone_of(series: nw.Series) -> str | None:
    """Return the zone of a column of moments; None of those without, and of all others."""
    if series.implementation.is_pandas():
        zone = getattr(series.to_native().dtype, "tz", None)
        return None if zone is None else str(zone)
    return series.dtype.time_zone if isinstance(series.dtype, nw.Datetime) else None


def _series_cells(name: str, series: nw.Series) -> Cells:
    zone = _zone_of(series)
    if zone is not None and series.implementation.is_pandas():
        # a zone of pandas whose name narwhals cannot read, America/New_York
        series = nw.from_native(series.to_native().dt.tz_convert("UTC"), series_only=True)
    if _arrow_type(series).startswith("date64"):
        series = nw.from_native(series.to_native().cast("timestamp[ms]"), series_only=True)
    dtype = series.dtype
    if dtype == nw.Boolean:
        values = series.to_numpy()  # objects where some are missing
        floats = values.astype(np.float64) if values.dtype.kind == "b" else _floats(series.to_list())
        return cells_of.from_floats(name, floats, "boolean")
    if dtype.is_integer():
        return _integer_cells(name, series)
    if dtype.is_float():
        return _float_cells(name, series)
    if dtype == nw.Decimal or _arrow_type(series).startswith("decimal"):
        return object_cells(name, series.to_list())
    # narwhals looks at the first hundred objects alone to call a column text
    if dtype == nw.String and series.implementation.is_pandas_like() and series.to_native().dtype == object:
        return object_cells(name, series.to_list())
    if dtype == nw.String:
        return cells_of.from_text(name, *_coded(series))
    if dtype in (nw.Categorical, nw.Enum):
        return _labelled_cells(name, series)
    if dtype in (nw.Datetime, nw.Date):
        cells = cells_of.from_floats(name, _days(name, series), "datetime")
        if zone is None:
            return cells
        note = "" if zone.upper() in _UTC else f"times of column {name!r} are told in UTC, not in {zone}"
        return replace(cells, notation=zoned_notation(cells.distinct), note=note)
    if dtype == nw.Time:
        return text_cells(name, (None if is_missing(value) else value.isoformat() for value in series.to_list()))
    if dtype == nw.Object:
        return object_cells(name, series.to_list())
    if not dtype.is_nested() and all(is_missing(value) for value in series.to_list()):
        return text_cells(name, [None] * len(series))
    kind = dtype if dtype != nw.Unknown else _arrow_type(series) or series.to_native().dtype
    return cells_of.excluded(
        name,
        len(series),
        f"of type {str(kind).partition('({')[0]}: {_REMEDIES.get(_kind_of_type(str(kind)), _CONVERT)}",
    )


_UTC = ("UTC", "GMT", "ETC/UTC", "+00:00")
_CONVERT = "no numbers, texts, booleans or dates"
_REMEDIES = {
    "duration": "lengths of time; as numbers they can be modelled, for example their seconds",
    "period": "stretches of time; as the dates on which they begin they can be modelled",
    "list": "several values a row; a column for each can be modelled",
}
"""What is said of columns that cannot be modelled as they are."""


def _kind_of_type(dtype_name: str) -> str:
    name = dtype_name.lower()
    if name.startswith(("duration", "timedelta")):
        return "duration"
    if name.startswith("period"):
        return "period"
    return "list" if name.startswith(("list", "array", "large_list", "fixed_size_list")) else ""


def text_cells(name: str, values: Iterable[str | None]) -> Cells:
    """Return the cells of a column of texts; None is missing."""
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    codes = np.array([-1 if value is None else number[value] for value in values], np.int64)
    return cells_of.from_text(name, list(number), codes)


def is_missing(value: Any) -> bool:
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
    return np.array([np.nan if is_missing(value) else float(value) for value in values])


def _integer_cells(name: str, series: nw.Series) -> Cells:
    low, high = series.min(), series.max()
    if not is_missing(high) and max(abs(int(low)), abs(int(high))) > defaults.LARGEST_INTEGER:
        # as texts no digit is lost; whether the column is an identifier or a mistake is decided later
        return text_cells(name, [None if is_missing(value) else str(int(value)) for value in series.to_list()])
    if series.dtype in (nw.Int128, nw.UInt128):
        return cells_of.from_floats(name, _floats(series.to_list()))
    return cells_of.from_floats(name, np.asarray(series.to_numpy(), np.float64))


def _float_cells(name: str, series: nw.Series) -> Cells:
    values = np.asarray(series.to_numpy())
    if values.dtype.itemsize >= 8 and series.dtype == nw.Float64:
        return cells_of.from_floats(name, values.astype(np.float64))
    return _narrow_floats(name, values)


def _narrow_floats(name: str, values: np.ndarray) -> Cells:
    if values.dtype == np.float64:
        return cells_of.from_floats(name, values)
    # a narrow float stands for its shortest decimal: 5.1, not 5.099999904632568, or no grid is ever visible
    narrow = cells_of.from_floats(name, values.astype(np.float64))
    kind = values.dtype if values.dtype.kind == "f" and values.dtype.itemsize < 8 else np.float32
    return narrow.retold("number", narrow.distinct.astype(kind).astype("U32").astype(np.float64))


def _coded(series: nw.Series) -> tuple[list[Any], np.ndarray]:
    """Return the distinct values of a series, and int64 (n_row,) positions among them, -1 where missing.

    Arrow and pandas know codes already, so that Python looks at distinct values alone.
    """
    native = series.to_native()
    if series.implementation.is_pyarrow() and str(native.type) != "string_view":
        if series.dtype == nw.String:
            native = native.dictionary_encode()
        native = native.unify_dictionaries().combine_chunks()
        values, codes = native.dictionary.to_pylist(), native.indices.cast("int64").fill_null(-1).to_numpy()
    elif (categorical := _categorical(series)) is not None:
        values, codes = categorical.categories.tolist(), np.asarray(categorical.codes)
    elif series.implementation.is_pandas():
        codes, distinct = native.factorize()
        values = distinct.tolist()
    else:
        number: defaultdict[Any, int] = defaultdict()
        number.default_factory = number.__len__
        codes = np.array([-1 if is_missing(value) else number[value] for value in series.to_list()], np.int64)
        return list(number), codes
    known = [position for position, value in enumerate(values) if not is_missing(value)]
    renumber = np.full(len(values) + 1, -1, np.int64)
    renumber[known] = np.arange(len(known))
    return [values[position] for position in known], renumber[codes]


def _categorical(series: nw.Series) -> Any:
    """Return the categorical array of a series of pandas, None of others; `Series.cat` would make it anew."""
    array = getattr(series.to_native(), "array", None) if series.implementation.is_pandas_like() else None
    return array if hasattr(array, "categories") else None


def _labelled_cells(name: str, series: nw.Series) -> Cells:
    """Return the cells of a categorical column with its labels in their declared order."""
    values, codes = _coded(series)
    texts = [label_of(value) for value in values]
    n_cell = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
    present = {texts[position] for position in np.flatnonzero(n_cell).tolist()}
    categorical = _categorical(series)
    is_ordered = bool(categorical.ordered) if categorical is not None else _is_ordered_dictionary(series)
    if categorical is not None:
        labels = tuple(label_of(label) for label in categorical.categories)
    elif isinstance(series.dtype, nw.Enum):
        labels = tuple(series.dtype.categories)
    elif is_ordered:
        labels = tuple(texts)
    else:  # an order of first appearance is no declared order
        labels = tuple(sorted(present))
    number = {label: position for position, label in enumerate(labels)}
    if len(number) < len(labels):
        twice = next(label for position, label in enumerate(labels) if number[label] != position)
        raise TableError(
            f"column {name!r} declares two labels that both read {twice!r}", "distinct labels", "Rename one."
        )
    used = sorted(number[text] for text in present)
    renumber = np.full(len(labels) + 1, -1, np.int64)
    renumber[used] = np.arange(len(used))
    of_value = np.array([*(renumber[number.get(text, -1)] for text in texts), -1], np.int64)
    distinct = np.array([labels[position] for position in used], object)
    return Cells(name, "text", distinct, of_value[codes], labels, is_ordered)


def _is_ordered_dictionary(series: nw.Series) -> bool:
    """Return whether a column is a dictionary of Arrow's that is declared to be ordered, as files of pandas hold.

    Chunks whose dictionaries do not begin alike declare several orders, so none.
    """
    if not (series.implementation.is_pyarrow() and series.to_native().type.ordered):
        return False
    declared = [chunk.dictionary.to_pylist() for chunk in series.to_native().chunks]
    longest = max(declared, key=len, default=[])
    return all(longest[: len(labels)] == labels for labels in declared)


def label_of(value: Any) -> str:
    """Return how a category of a frame's column is called as a label."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return cells_of.number_label(float(value)) if is_number else str(value)


def _days(name: str, series: nw.Series) -> np.ndarray:
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    elif isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return _calendar_days(name, np.asarray(series.to_numpy()))


def _calendar_days(name: str, moments: np.ndarray) -> np.ndarray:
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


def object_cells(name: str, values: list[Any]) -> Cells:
    """Return the cells of a column of Python objects: of several kinds as a file of text would hold them."""
    values = [value.isoformat() if isinstance(value, datetime.time) else value for value in values]
    kinds = [None if is_missing(value) else _kind(value) for value in values]
    first = next((kind for kind in kinds if kind is not None), "text")
    if "object" in kinds:
        row = kinds.index("object")
        rendered = type(values[row]).__name__
        remedy = _REMEDIES.get(_kind_of_type(rendered.lower()), _CONVERT)
        return cells_of.excluded(name, len(values), f"of type {rendered} in row {row + 1}: {remedy}")
    odd = next((row for row, kind in enumerate(kinds) if kind not in (None, first)), None)
    if odd is not None:
        texts = text_cells(
            name, [None if kind is None else _as_text(value) for kind, value in zip(kinds, values, strict=True)]
        )
        rendered = str(values[odd])
        rendered = rendered if len(rendered) <= 40 else f"{rendered[:37]}..."
        found = f"{rendered!r} in row {odd + 1} is no {first}"
        return replace(texts, note=f"column {name!r} mixes kinds ({found}), so its cells are read as texts")
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


def _as_text(value: Any) -> str:
    """Return a value as a file of text would hold it."""
    if isinstance(value, (bool, np.bool_, str)) or _is_inexact(value):
        return str(value) if not _is_inexact(value) else _digits(value)
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return cells_of.number_label(float(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return str(value.date())
    return str(value)


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

    The kind is ``text``, ``boolean``, ``integer``, ``number``, ``datetime`` or ``time``.
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
    if backend == "pandas" and kind == "time":  # it has no type of its own for them
        return None
    if backend == "pandas" and None in values:
        if kind == "boolean":  # its plain booleans would turn None into False
            return None
        if kind == "integer":
            return nw.Float64()
    return _TYPES[kind]
