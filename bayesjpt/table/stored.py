"""Columns as files of Arrow's store them: filled in and written again with their types, or as texts.

Knows nothing of how cells are filled in. What a type cannot hold is written with the type of the fit instead.
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.table.cells import Cells
from bayesjpt.table.frames import text_cells
from bayesjpt.table.iso_dates import written_as
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table
from bayesjpt.table.write import named_as, texts, typed, write_arrow

if TYPE_CHECKING:
    import pyarrow as pa

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ROUND = {"s": "second", "ms": "millisecond"}
_NO_FIT = (ValueError, TypeError, NotImplementedError, OverflowError, decimal.InvalidOperation)
"""What a value that its column's type cannot hold raises; Arrow's own errors are among them."""


def write_filled_stored(stored: pa.Table, filled: Table, observed: np.ndarray, path: str | Path) -> None:
    """Write a table as it was stored, with its missing cells filled in and columns that it lacked behind the others.

    Parameters
    ----------
    stored : pyarrow.Table
        Its columns keep their types, and those that `filled` does not have, or that had no gap, all of their cells. A
        column is written with the type that the fit knows where its own cannot hold what was filled in.
    filled : Table
        The same rows completed.
    observed : bool (n_column, n_row)
        Which of its cells were observed.
    path : str or Path
        Of a .parquet or .feather file.

    Raises
    ------
    TableError
        Where it cannot be written.
    """
    import pyarrow as pa

    from bayesjpt.table.frames import frame_cells

    names = [cells.name for cells in frame_cells(stored.schema.empty_table())]
    filled = named_as(filled, names)
    position_of = {name: position for position, name in enumerate(filled.names)}
    fields, columns, changed = [], [], set()
    frame = typed(filled)
    for name, field, cells in zip(names, stored.schema, stored.columns, strict=True):
        position = position_of.get(name)
        rows = np.empty(0, np.intp) if position is None else np.flatnonzero(~observed[position])
        column, made = field.with_name(name), cells
        if position is not None and rows.size:
            try:
                made = _with_filled(cells, filled.schema.columns[position], filled.values[position], rows)
            except _NO_FIT:
                made = frame.column(name)
                column = pa.field(name, made.type)
                changed.add(name)
        fields.append(column)
        columns.append(made)
    for name in filled.names:
        if name not in names:
            columns.append(frame.column(name))
            fields.append(pa.field(name, frame.column(name).type))
    write_arrow(pa.table(columns, schema=pa.schema(fields, _without(stored.schema.metadata, changed))), path)


def _with_filled(cells: pa.ChunkedArray, column: Column, values: np.ndarray, rows: np.ndarray) -> pa.ChunkedArray:
    """Return stored cells with the values of a column at some rows, of the same type.

    Raises
    ------
    One of `_NO_FIT`
        Where the type cannot hold a value.
    """
    import pyarrow as pa
    from pyarrow import types

    kind = cells.type
    if types.is_dictionary(kind):
        return _with_filled_labels(cells, column, values, rows)
    new = _as_type(cells, kind, column, values[rows])
    position = np.arange(len(cells))
    position[rows] = len(cells) + np.arange(rows.size)
    return pa.chunked_array([*cells.chunks, *new.chunks], kind).take(pa.array(position))


def _with_filled_labels(
    cells: pa.ChunkedArray, column: Column, values: np.ndarray, rows: np.ndarray
) -> pa.ChunkedArray:
    """Return stored labels with others at some rows; of an ordered dictionary they must be among its labels."""
    import pyarrow as pa

    kind = cells.type
    whole = cells.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    new = _as_type(cells, kind.value_type, column, values[rows]).to_pylist()
    labels = whole.dictionary.to_pylist()
    number = {label: position for position, label in reversed(list(enumerate(labels)))}
    for label in dict.fromkeys(new):
        if label not in number:
            if kind.ordered:
                raise ValueError(f"{label!r} is none of the ordered labels")
            number[label] = len(labels)
            labels.append(label)
    codes = whole.indices.to_pylist()
    for row, label in zip(rows.tolist(), new, strict=True):
        codes[row] = number[label]
    made = pa.DictionaryArray.from_arrays(
        pa.array(codes, kind.index_type), pa.array(labels, kind.value_type), ordered=kind.ordered
    )
    return pa.chunked_array([made])


def _as_type(cells: pa.ChunkedArray, kind: Any, column: Column, values: np.ndarray) -> pa.ChunkedArray:
    """Return values of a column, float64 (n,) or codes, as stored cells of some type of Arrow's."""
    import pyarrow as pa
    from pyarrow import types
    from pyarrow.compute import AssumeTimezoneOptions, RoundTemporalOptions, call_function

    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_time(kind):
        shown = column
        if column.dtype == "datetime" and not types.is_time(kind):
            shown = written_as(column, filter(None, cells.cast(pa.string()).unique().to_pylist()))
        written = texts(shown, values)
        if types.is_time(kind):
            return pa.chunked_array([pa.array(map(datetime.time.fromisoformat, written), pa.time64("us"))]).cast(kind)
        return pa.chunked_array([pa.array(written, kind)])
    plain = _restored(column, values)
    if types.is_timestamp(kind) or types.is_date(kind):
        unit = _ROUND.get(kind.unit) if types.is_timestamp(kind) else "day"
        plain = plain if unit is None else call_function("round_temporal", [plain], RoundTemporalOptions(unit=unit))
        if types.is_timestamp(kind) and kind.tz is not None:
            # times of a zone are those of UTC in a fit
            plain = call_function("assume_timezone", [plain], AssumeTimezoneOptions("UTC"))
        return plain.cast(kind)
    if types.is_decimal(kind) and types.is_floating(plain.type):
        step = decimal.Decimal(1).scaleb(-kind.scale)
        return pa.chunked_array([pa.array([decimal.Decimal(repr(x)).quantize(step) for x in plain.to_pylist()], kind)])
    if types.is_integer(kind) and types.is_floating(plain.type):
        plain = call_function("round", [plain])
    # a float32 holds the nearest of its numbers, which is no loss
    return plain.cast(kind, safe=not types.is_floating(kind))


def _restored(column: Column, values: np.ndarray) -> pa.ChunkedArray:
    from bayesjpt.table.schema import Schema

    observed = np.ones((1, values.size), bool)
    return Table(Schema((column,)), values[None], observed).to_frame("pyarrow").column(0)


def _without(metadata: dict[bytes, bytes] | None, changed: set[str]) -> dict[bytes, bytes] | None:
    """Return what a file says of itself, without what pandas says there of the types of some columns."""
    if not metadata or not changed or b"pandas" not in metadata:
        return metadata
    said = json.loads(metadata[b"pandas"])
    said["columns"] = [one for one in said.get("columns", ()) if one.get("field_name", one.get("name")) not in changed]
    return metadata | {b"pandas": json.dumps(said).encode()}


def stored_texts(name: str, cells: pa.ChunkedArray) -> Cells:
    """Return the cells of a column that cannot be modelled as texts: durations as ``1 days 02:03:04``, others as JSON.

    Examples
    --------
    >>> import pyarrow as pa
    >>> stored_texts("t", pa.chunked_array([pa.array([93_784, None, 5], pa.duration("s"))])).distinct.tolist()
    ['0 days 00:00:05', '1 days 02:03:04']
    """
    from pyarrow import types

    if types.is_duration(cells.type):
        per_second = _PER_SECOND[cells.type.unit]
        ticks: Sequence[int | None] = cells.cast("int64").to_pylist()
        return text_cells(name, [None if one is None else _duration_text(one, per_second) for one in ticks])
    return text_cells(name, [None if one is None else _json_text(one) for one in cells.to_pylist()])


def _duration_text(ticks: int, per_second: int) -> str:
    seconds, rest = divmod(abs(ticks), per_second)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    fraction = f".{str(per_second + rest)[1:]}" if rest else ""
    return f"{'-' if ticks < 0 else ''}{days} days {hour:02}:{minute:02}:{second:02}{fraction}"


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
