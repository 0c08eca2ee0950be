"""Missing cells of a data frame replaced by others, with the types of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from bayesjpt.table.frames import label_of
from bayesjpt.table.table import Table


def filled_in(
    frame: Any, names: Sequence[str], missing: Mapping[str, np.ndarray], filled: Table, means: Mapping[str, np.ndarray]
) -> Any:
    """Return a frame with its missing cells filled.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    names : sequence of str
        What its columns are called in what follows.
    missing : mapping from str to bool (n_row,)
        Of the columns that may be filled.
    filled : Table
        With at least these columns, complete.
    means : mapping from str to float64 (n_row,)
        What columns of floats get in place of `filled`.

    Returns
    -------
    data frame
        Of the same kind. Columns have their types, but for texts and objects that spell numbers or dates, which become
        such.
    """
    is_pandas = nw.from_native(frame, eager_only=True).implementation.is_pandas()
    # names of pandas may be whole numbers or tuples, which narwhals takes for rows
    wide = nw.from_native(frame.set_axis(list(names), axis=1) if is_pandas else frame, eager_only=True)
    backend: Any = wide.implementation
    complete = nw.from_native(filled.to_frame(backend.value), eager_only=True)
    new = {}
    for position, (name, own) in enumerate(zip(wide.columns, names, strict=True)):
        if own not in missing or not missing[own].any():
            continue
        column, cells = wide[name], complete[own].alias(name)
        if column.dtype.is_float() and own in means:
            cells = nw.new_series(name, means[own].tolist(), nw.Float64(), backend=backend)
        if column.dtype in (nw.String, nw.Object) and cells.dtype != column.dtype:
            new[position] = cells
            continue
        kept = nw.new_series(name, (~missing[own]).tolist(), nw.Boolean(), backend=backend)
        if is_pandas and hasattr(column.to_native().dtype, "categories"):
            new[position] = _categories_filled(column, cells.to_list(), ~missing[own])
        elif column.dtype in (nw.Categorical, nw.Enum):  # codes of two columns do not mean the same
            new[position] = column.cast(nw.String).zip_with(kept, cells.cast(nw.String)).cast(column.dtype)
        else:
            new[position] = column.zip_with(kept, _as_type(cells, column))
    if not is_pandas:
        return nw.to_native(wide.with_columns(*new.values()))
    out = frame.copy()  # which may be of a class made of pandas'
    for position, cells in new.items():
        out.isetitem(position, cells.to_native().array)
    return out


def _categories_filled(column: nw.Series, cells: list[Any], kept: np.ndarray) -> nw.Series:
    """Return a categorical column of pandas filled by labels; its categories may be numbers, and new ones come last."""
    series = column.to_native()
    category = {label_of(each): each for each in series.cat.categories}
    values = [category.get(label_of(cell), cell) for cell in cells]
    series = series.cat.add_categories(sorted(set(values) - set(series.cat.categories), key=str))
    return nw.from_native(series.where(kept, values), series_only=True)


def _as_type(cells: nw.Series, column: nw.Series) -> nw.Series:
    """Return complete cells as the type of a column; moments are in UTC."""
    dtype = column.dtype
    if dtype == nw.Unknown:  # a zone of pandas whose name narwhals cannot read, America/New_York
        moments = cells.to_native().dt.tz_localize("UTC")
        return nw.from_native(moments.astype(column.to_native().dtype), series_only=True)
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        cells = cells.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
    if dtype.is_integer() and cells.dtype.is_float():
        cells = cells.round()  # a whole number whose float is a little less would lose one
    return cells.cast(dtype)
