"""Missing cells of a data frame of polars or pyarrow replaced by others, with the types of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np


def filled_in(
    frame: Any, names: Sequence[str], missing: Mapping[str, np.ndarray], filled: Any, means: Mapping[str, np.ndarray]
) -> Any:
    """Return a frame with its missing cells filled.

    Parameters
    ----------
    frame : data frame of polars or pyarrow
    names : sequence of str
        What its columns are called in what follows.
    missing : mapping from str to bool (n_row,)
        Of the columns that may be filled.
    filled : data frame
        Of the same kind, with at least these columns, complete.
    means : mapping from str to float64 (n_row,)
        What columns of floats get in place of `filled`.

    Returns
    -------
    data frame
        Of the same kind. Columns have their types, but for texts that spell numbers or dates, which become such.
    """
    wide, complete = nw.from_native(frame, eager_only=True), nw.from_native(filled, eager_only=True)
    backend: Any = wide.implementation
    new = []
    for name, own in zip(wide.columns, names, strict=True):
        if own not in missing or not missing[own].any():
            continue
        column, cells = wide[name], complete[own].alias(name)
        if column.dtype.is_float() and own in means:
            cells = nw.new_series(name, means[own].tolist(), nw.Float64(), backend=backend)
        if column.dtype == nw.String and cells.dtype != nw.String:
            new.append(cells)
            continue
        kept = nw.new_series(name, (~missing[own]).tolist(), nw.Boolean(), backend=backend)
        if column.dtype in (nw.Categorical, nw.Enum):  # codes of two columns do not mean the same
            new.append(column.cast(nw.String).zip_with(kept, cells.cast(nw.String)).cast(column.dtype))
        else:
            new.append(column.zip_with(kept, _as_type(cells, column.dtype)))
    return nw.to_native(wide.with_columns(*new))


def _as_type(cells: nw.Series, dtype: Any) -> nw.Series:
    """Return complete cells as another type; moments are in UTC."""
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        cells = cells.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
    if dtype.is_integer() and cells.dtype.is_float():
        cells = cells.round()  # a whole number whose float is a little less would lose one
    return cells.cast(dtype)
