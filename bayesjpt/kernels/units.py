"""Rows of a table unit by unit: each unit is arranged by itself, and what a sweep counts in it is a pure function.

      rows    0 ........ 65,535 | 65,536 ....... 131,071 | 131,072 ...         units, fixed by the rows' numbers alone
      sweep   statistics of 0   | statistics of 1        | ...                 computed anywhere, in any order
      total   along a tree of aligned powers of two (`bayesjpt.numerics.dyadic`)

What decides the bits of a sum is decided once for the whole table: which columns are coded and by which values. Rows
are routed within their unit. So units may lie in memory, on disk, or on another machine, and no draw changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.cells import Cells, assemble
from bayesjpt.kernels.coding import choose_coding, distinct_values, slot_rows
from bayesjpt.kernels.gibbs import CHUNK
from bayesjpt.kernels.routes import Routes, make_routes, no_routes

UNIT_ROWS = 16 * CHUNK
"""Rows of a unit, a multiple of the chunk whose statistics are added first. So many that tables of coded columns, which
are filled once a unit, cost a few per cent of its rows; so few that a million rows keep sixteen processors at work."""


class Source(Protocol):
    """Where the rows of a table lie. Rows are asked for in any order, by several threads at once.

    Where other processes count, a copy of it goes to them: it says where to find rows, if there are many.
    """

    @property
    def n_row(self) -> int: ...

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        ...

    def arrays(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (values, observed) of some rows, float64 and bool (n_column, last - first), as in a `Table`."""
        ...

    def distinct(self, column: int, most: float) -> np.ndarray | None:
        """Return the distinct observed values of a column, ascending; None where there are more than `most`."""
        ...

    def digest(self) -> str:
        """Return a hash of all rows."""
        ...


class ArraySource:
    """Rows that lie in memory.

    Parameters
    ----------
    values : float64 (n_column, n_row)
    observed : bool (n_column, n_row)
    """

    def __init__(self, values: np.ndarray, observed: np.ndarray):
        self._values, self._observed = values, observed
        self.n_row = values.shape[1]
        self.is_complete = bool(observed.all())

    def arrays(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        return self._values[:, first:last], self._observed[:, first:last]

    def distinct(self, column: int, most: float) -> np.ndarray | None:
        return distinct_values(self._values[column], self._observed[column], most)

    def digest(self) -> str:
        total = hashlib.sha256(str(self._values.shape).encode())
        total.update(np.ascontiguousarray(self._values).data)
        total.update(np.ascontiguousarray(self._observed).data)
        return total.hexdigest()


class Units(Sequence[Cells]):
    """The Cells of a table, one for each unit of rows.

    Parameters
    ----------
    plan : Plan
    source : Source
    max_distinct_share : float, max_table_bytes : int
        As in `bayesjpt.kernels.cells.make_cells`.
    unit_rows : int
        A multiple of `bayesjpt.kernels.gibbs.CHUNK`, or all rows. Sums differ in their last bits between sizes.
    resident : int, optional
        Units that are kept; all unless given. Others are arranged anew whenever they are asked for.

    Attributes
    ----------
    n_open : int
        Rows that may come to a split without an observed cell of its column.
    """

    def __init__(
        self,
        plan: Plan,
        source: Source,
        *,
        max_distinct_share: float,
        max_table_bytes: int,
        unit_rows: int = UNIT_ROWS,
        resident: int | None = None,
    ):
        self.plan, self.source, self.unit_rows = plan, source, unit_rows
        self._n_unit = max(-(-source.n_row // unit_rows), 1)
        self._resident: dict[int, Cells] = {}
        self._n_resident = self._n_unit if resident is None else max(resident, 1)
        self.n_open, self._n_needed = 0, np.zeros(3, np.int64)
        kept: list[Routes] = []
        self._reached, seen_rows = slot_rows(plan, self._noted_routes(kept), source.n_row)
        self._known = choose_coding(
            plan,
            source.distinct,
            seen_rows,
            self._reached,
            max_distinct_share=max_distinct_share,
            max_table_bytes=max_table_bytes,
        )
        for number, each in enumerate(kept):
            self._resident[number] = self._arranged(number, each)

    @property
    def n_row(self) -> int:
        return self.source.n_row

    def __len__(self) -> int:
        return self._n_unit

    def __getitem__(self, number):
        if not 0 <= number < self._n_unit:
            raise IndexError(number)
        if number in self._resident:
            return self._resident[number]
        cells = self._arranged(number, self._routes(number))
        if len(self._resident) < self._n_resident:
            # of two threads that arranged the same unit both keep the cells of the first
            cells = self._resident.setdefault(number, cells)
        return cells

    def __getstate__(self) -> dict:
        """Leave out arranged rows: a copy arranges those that it needs."""
        return self.__dict__ | {"_resident": {}}

    def digest(self) -> str:
        """Return a hash of all rows and of how they are arranged."""
        total = hashlib.sha256(f"{self.source.digest()}{self.unit_rows}".encode())
        for column, values in self._known.items():
            total.update(f"{column}".encode())
            total.update(values.tobytes())
        return total.hexdigest()

    def _rows(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        first = number * self.unit_rows
        return self.source.arrays(first, min(first + self.unit_rows, self.source.n_row))

    def _routes(self, number: int) -> Routes:
        return make_routes(self.plan, *self._rows(number))

    def _noted_routes(self, kept: list[Routes]) -> Iterator[Routes]:
        """Yield the routes of all units, one after the other; keep those of units that will be kept."""
        routed = (self.plan.split_column >= 0).any()
        for number in range(self._n_unit if routed else 1):
            each = self._routes(number) if routed else no_routes(self.plan, self.source.n_row)
            self.n_open += int(each.n_open[0])
            self._n_needed = np.maximum(self._n_needed, each.n_needed)
            if number < self._n_resident:
                kept.append(each)
            yield each

    def _arranged(self, number: int, routes: Routes) -> Cells:
        values, observed = self._rows(number)
        if not routes.live.size:
            routes = no_routes(self.plan, values.shape[1])
        # one unit is the whole table: exactly what is computed without units
        whole = self._n_unit == 1
        cells = assemble(
            self.plan,
            values,
            observed,
            self._known,
            routes,
            reached=self._reached,
            masked=not (whole or self.source.is_complete),
        )
        if whole:
            return cells
        place = cells.row if cells.row.size else np.arange(values.shape[1])
        return cells._replace(row=place.astype(np.int64) + number * self.unit_rows, n_needed=self._n_needed)
