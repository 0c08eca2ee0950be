"""What a query method is given: nothing, an event, or rows; the one place where ``given=`` is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesjpt.defaults import MAX_BOXES
from bayesjpt.errors import QueryError, SchemaError
from bayesjpt.queries.boxes import CERTAIN, Box, boxes
from bayesjpt.queries.column import Col, as_value, is_missing
from bayesjpt.queries.event import Event, is_whole_name
from bayesjpt.queries.grammar import as_event
from bayesjpt.queries.resolve import position_of, value_in
from bayesjpt.table import cells as cells_of
from bayesjpt.table.encode import encode, expected_of, filler
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table, as_table


@dataclass(frozen=True, eq=False)
class Evidence:
    """An event, as disjoint boxes, or rows whose observed cells are given; one of `boxes` and `rows` is None.

    Parameters
    ----------
    boxes : tuple of Box, optional
        Of the event; the certain event where nothing is given.
    rows : Table, optional
        Under the schema of the posterior; missing cells are not given.
    event : Event, optional
        What `boxes` was made of.
    one_row : bool
        Whether `rows` was given as a single row, as a mapping.
    """

    boxes: tuple[Box, ...] | None = None
    rows: Table | None = None
    event: Event | None = None
    one_row: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether nothing is given."""
        return self.boxes == CERTAIN

    @property
    def columns(self) -> set[int]:
        """Positions of the columns of which something is given."""
        if self.rows is not None:
            return set(np.flatnonzero(self.rows.observed.any(axis=1)).tolist())
        return {column for box in self.boxes or () for column in box.columns}


def as_evidence(given: Any, schema: Schema, *, max_boxes: int = MAX_BOXES, unseen: str = "other") -> Evidence:
    """Return what is given, read under a schema.

    Parameters
    ----------
    given : None, Event, str, mapping from column to value, Table or data frame
        A text is an event. A mapping is one row, of which only the named columns are given; None and NaN in it, and
        missing cells of tables, are not given.
    schema : Schema
    max_boxes : int
        Boxes that an event may be split into.
    unseen : str
        What becomes of labels in a data frame that training never showed: ``other`` (one warning), ``error`` or
        ``missing``. In a mapping they are errors.

    Raises
    ------
    QueryError
        As `boxes`; for a mapping with a column, label or value that does not fit the schema; for other objects.
    SchemaError, TableError
        For rows that do not fit the schema.

    Examples
    --------
    >>> schema = Schema((Column("size", "real", (0.0, np.inf)), Column("n", "integer", (0.0, np.inf))))
    >>> as_evidence("n > 3", schema).boxes
    (Box({1: [[4.0, inf]]}),)
    >>> as_evidence({"n": 3}, schema).rows.observed.tolist()
    [[False], [True]]
    """
    if given is None:
        return Evidence(boxes=CERTAIN)
    if isinstance(given, Event | str | Col):
        event = as_event(given, schema)  # type: ignore[arg-type]  # it refuses a column alone
        return Evidence(boxes=boxes(event, schema, max_boxes=max_boxes), event=event)
    if isinstance(given, Mapping):
        return Evidence(rows=_row(given, schema), one_row=True)
    if isinstance(given, bool | int | float | list | tuple | set | np.ndarray):
        raise QueryError(
            f"evidence of type {type(given).__name__}",
            "an event, a text such as 'alcohol > 12', a mapping such as {'alcohol': 12}, a Table or a data frame",
        )
    return Evidence(rows=as_rows(given, schema, unseen=unseen))


def as_rows(rows: Any, schema: Schema, *, unseen: str = "other") -> Table:
    """Return a Table under a schema, or a data frame read under it.

    Raises
    ------
    SchemaError, TableError
        For a Table of another schema, and rows that do not fit.
    """
    if not isinstance(rows, Table):
        return as_table(rows, schema=schema, unseen=unseen)
    if rows.schema != schema:
        raise SchemaError(
            "rows read under another schema than the posterior's",
            remedy="Read them with bj.as_table(frame, schema=post.schema).",
        )
    return rows


def _row(given: Mapping[str, Any], schema: Schema) -> Table:
    """Return the table of one row."""
    values = np.array([[filler(column)] for column in schema])
    observed = np.zeros((len(schema), 1), bool)
    for name, value in given.items():
        if not isinstance(name, str) and not is_whole_name(name):
            raise QueryError(f"evidence for {name!r}, of type {type(name).__name__}", "the names of columns")
        position = position_of(name, schema)
        if is_missing(value):
            continue
        if isinstance(value, Iterable) and not isinstance(value, str):
            raise QueryError(
                f"evidence for column {name!r} of type {type(value).__name__}",
                "one value",
                f"For a range or several values give an event, such as bj.col({name!r}).isin([...]); for several rows, "
                "a data frame.",
            )
        column = schema.columns[position]
        values[position] = _checked(column, value_in(column, as_value(value, column.name)))
        observed[position] = True
    return Table(schema, values, observed)


def _checked(column: Column, value: float) -> float:
    """Return a value that lies in its column's support, as it would in a table; codes are known to."""
    if column.base == "category":
        return value
    if column.base == "integer" and np.isfinite(value) and value != np.rint(value):
        # of a file's cell it would be a slip to report; what is asked for is meant
        found = f"column {column.name!r} holds {column.text(value)} in row 1"
        raise SchemaError(found, expected_of(column), "Give a whole number.")
    cells = cells_of.from_floats(column.name, np.array([value]), column.dtype)
    return float(encode([cells], Schema((column,)), 1, "error")[0][0, 0])
