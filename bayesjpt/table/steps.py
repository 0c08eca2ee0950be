"""Rows as steps of series: which belong together, and in which order they come. It knows nothing of what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from bayesjpt.errors import TableError, counted, warn
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.frames import frame_cells, with_lists, with_names
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

_LONGEST_STEP = 1.5
"""Of a series' median one; a longer step is a gap."""
_SAME_STEP = 1e-6
"""Relative difference of steps that are the same."""


@dataclass(frozen=True, eq=False)
class Order:
    """Rows in the order of their series, and of time within each.

    Parameters
    ----------
    rows : int64 (n_row,)
        Position in the table of each row.
    first : int64 (n_series + 1,)
        Where each series begins in `rows`.
    names : tuple of str
        Of the series, sorted; one empty name where there is a single series without one.
    """

    rows: np.ndarray
    first: np.ndarray
    names: tuple[str, ...]

    @property
    def n_series(self) -> int:
        return len(self.names)

    def numbers(self) -> np.ndarray:
        """Return int64 (n_row,): the series of each row of the table."""
        out = np.empty(self.rows.size, np.int64)
        out[self.rows] = np.repeat(np.arange(self.n_series), np.diff(self.first))
        return out


def read_order(frame: Any, time: str, series: str | None, modelled: Sequence[str]) -> tuple[Any, Order]:
    """Return a frame without the columns of time and series, None where no others are left, and the order of its rows.

    Parameters
    ----------
    frame : data frame, Table or dict of columns
        Rows in any order.
    time : str
        A column of numbers or dates.
    series : str, optional
        A column that says to which series a row belongs; all to one without it.
    modelled : sequence of str
        Columns that stay in the frame though they are of time or series: covariates.

    Raises
    ------
    TableError
        For columns that are not there, missing cells in them, times that are neither finite numbers nor dates, and two
        rows of a series at the same time.

    Warns
    -----
    BayesjptWarning
        Where times of a series are on a grid, for the most part, and some of its points are missing: rows on both
        sides of such a gap follow each other.
    """
    table = frame
    if isinstance(frame, Table):
        frame = frame.to_frame()
    frame = with_lists(frame)
    known = {cells.name: cells for cells in frame_cells(frame)}
    for what, name in (("time", time), ("series", series)):
        if name is not None and name not in known:
            raise TableError(f"no column {name!r}", f"the column of {what}, as the fit has it")
    moments = _moments(known[time])
    codes, names = _codes(known[series]) if series is not None else (np.zeros(moments.size, np.int64), ("",))
    rows = np.lexsort((moments, codes))
    first = np.searchsorted(codes[rows], np.arange(len(names) + 1))
    order = Order(rows, first, names)
    _check_times(order, moments[rows], time)
    gone = [name for name in dict.fromkeys((time, series)) if name is not None and name not in modelled]
    if set(known) <= set(gone):
        return None, order
    return table_without(table, gone) if isinstance(table, Table) else _without(frame, gone), order


def _moments(cells: Cells) -> np.ndarray:
    """Return the times of all rows, float64 (n_row,)."""
    _check_whole(cells, "time")
    if cells.stored == "text":
        cells = cells_of.spelled_number(cells) or cells_of.spelled_datetime(cells) or cells
    if cells.stored not in ("number", "datetime"):
        raise TableError(
            f"column {cells.name!r} of {cells.stored}s as time",
            "numbers or dates",
            "Where its texts are dates, bj.as_table(frame) reads them." if cells.stored == "text" else None,
            command="Give a column of numbers or dates.",
        )
    moments = cells.distinct[cells.codes].astype(np.float64)
    if not np.isfinite(moments).all():
        row = int(np.flatnonzero(~np.isfinite(moments))[0]) + 1
        raise TableError(f"column {cells.name!r} holds {moments[row - 1]:g} in row {row}", "times that are finite")
    return moments


def _codes(cells: Cells) -> tuple[np.ndarray, tuple[str, ...]]:
    _check_whole(cells, "series")
    return cells.codes, tuple(cells_of.labels_of(cells))


def _check_whole(cells: Cells, what: str) -> None:
    if cells.excluded:
        raise TableError(f"column {cells.name!r} as {what}: {cells.excluded}", "numbers, dates or labels")
    if not cells.codes.size:
        raise TableError("no rows", "one at least")
    if cells.n_missing:
        row = int(np.flatnonzero(cells.codes < 0)[0]) + 1
        raise TableError(
            f"{counted(cells.n_missing, 'missing cell')} of the column {cells.name!r}, the first in row {row}",
            f"the {what} of each row",
            "Leave the rows out.",
        )


def _check_times(order: Order, moments: np.ndarray, time: str) -> None:
    """Refuse two rows at the same time, and warn of gaps; `moments` in the order of `order`."""
    n_gap = 0
    for number, name in enumerate(order.names):
        lo, hi = order.first[number], order.first[number + 1]
        steps = np.diff(moments[lo:hi])
        if (steps == 0.0).any():
            pair = order.rows[lo + int(np.flatnonzero(steps == 0.0)[0]) :][:2] + 1
            raise TableError(
                f"rows {pair[0]} and {pair[1]} at the same {time!r}" + (f" of series {name!r}" if name else ""),
                "one row at a time",
                "Leave one of them out, or give it another time."
                if name
                else "Name the column of series: series=COLUMN.",
                command=None if name else "Name the column of series: --series COLUMN.",
            )
        usual = float(np.median(steps)) if steps.size else 0.0
        # times on no grid have no gaps
        if 2 * np.isclose(steps, usual, rtol=_SAME_STEP, atol=0.0).sum() > steps.size:
            n_gap += int((steps > _LONGEST_STEP * usual).sum())
    if n_gap:
        warn(
            f"{counted(n_gap, 'gap')} in {time!r}; the rows on both sides are taken as "
            "following each other. Enter a missed step as a row without a target"
        )


def table_without(table: Table, names: Sequence[str]) -> Table:
    """Return a table without some of its columns."""
    kept = [position for position, column in enumerate(table.schema) if column.name not in names]
    schema = Schema(tuple(table.schema.columns[position] for position in kept), table.schema.set_aside)
    unseen = {number: table.unseen[position] for number, position in enumerate(kept) if position in table.unseen}
    return Table(schema, table.values[kept], table.observed[kept], unseen)


def _without(frame: Any, names: Sequence[str]) -> Any:
    if isinstance(frame, np.ndarray):
        raise TableError("an array", "a data frame or a dict of columns, with names")
    frame = with_names(frame)
    if isinstance(frame, Mapping):
        return {name: cells for name, cells in frame.items() if name not in names}
    return nw.from_native(frame, eager_only=True).drop(list(names)).to_native()
