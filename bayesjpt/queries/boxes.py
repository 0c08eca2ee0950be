"""Boxes: products of sets of values, one for each constrained column. Every event is a union of disjoint boxes.

A box is what one pass over a circuit answers. Values are in the user's units, labels are codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from bayesjpt.defaults import MAX_BOXES
from bayesjpt.errors import QueryError
from bayesjpt.queries.event import And, Between, Comparison, Event, Leaf, Membership, Not, Or, rendered_name
from bayesjpt.queries.grammar import as_event
from bayesjpt.queries.intervals import Intervals, domain_of, intersection
from bayesjpt.queries.partition import Formula, Formulas, disjoint_products
from bayesjpt.queries.resolve import position_of, value_name, values_of
from bayesjpt.table.cells import number_label
from bayesjpt.table.schema import Column, Schema


@dataclass(frozen=True, eq=False)
class Box:
    """A product of sets of values; columns that are not named may take any.

    Parameters
    ----------
    intervals : mapping from int to float64 (n_interval, 2)
        Position of a column in the schema, and [lowest, highest] of closed intervals, ascending and disjoint, in the
        user's units (codes of labels). Unbounded ends are infinite. Kept read-only, in the order of the columns.
    """

    intervals: Mapping[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        kept = {column: _frozen(self.intervals[column]) for column in sorted(self.intervals)}
        object.__setattr__(self, "intervals", MappingProxyType(kept))

    @property
    def columns(self) -> tuple[int, ...]:
        """Positions of the constrained columns, ascending."""
        return tuple(self.intervals)

    def null_columns(self, schema: Schema) -> tuple[int, ...]:
        """Return the real columns in which the box holds single values alone, none an atom: its probability is 0."""
        return tuple(
            column
            for column, intervals in self.intervals.items()
            if schema.columns[column].base == "real"
            and bool((intervals[:, 0] == intervals[:, 1]).all())
            and not np.isin(intervals[:, 0], schema.columns[column].atoms).any()
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Box):
            return NotImplemented
        return self.columns == other.columns and all(
            np.array_equal(intervals, other.intervals[column]) for column, intervals in self.intervals.items()
        )

    def __hash__(self) -> int:
        return hash(tuple((column, intervals.tobytes()) for column, intervals in self.intervals.items()))

    def __repr__(self) -> str:
        sets = (f"{column}: {intervals.tolist()}" for column, intervals in self.intervals.items())
        return f"Box({{{', '.join(sets)}}})"


CERTAIN = (Box(),)
"""The boxes of the certain event."""


def _frozen(intervals: np.ndarray) -> np.ndarray:
    if isinstance(intervals, np.ndarray) and not intervals.flags.writeable and intervals.dtype == np.float64:
        return intervals
    frozen = np.array(intervals, np.float64).reshape(-1, 2)
    assert frozen.size
    assert (frozen.ravel()[:-1] <= frozen.ravel()[1:]).all()
    assert (frozen[1:, 0] > frozen[:-1, 1]).all()
    frozen.flags.writeable = False
    return frozen


def boxes(event: Event | str, schema: Schema, *, max_boxes: int = MAX_BOXES) -> tuple[Box, ...]:
    """Return disjoint boxes whose union is an event.

    An open end is moved to the neighbouring float on a real column, so that ``>`` and ``>=`` differ where their bound
    is an atom and nowhere else, and to the neighbouring integer on integer columns. A contradiction has no boxes, the
    certain event one without constraints; a column that may take any value does not appear. A disjunction of n
    comparisons has at most n boxes, and one of a single column at most one; a conjunction of comparisons, at most one.

    Parameters
    ----------
    event : Event or str
    schema : Schema
    max_boxes : int
        More are refused.

    Raises
    ------
    QueryError
        For a text that is no event, a column or label that the schema does not have (with the closest one), a column
        that was set aside, a value of another kind than the column's, an order comparison of labels without order, and
        an event that splits into too many boxes.

    Examples
    --------
    >>> schema = Schema((Column("size", "real", (-np.inf, np.inf)), Column("n", "integer", (0.0, np.inf))))
    >>> boxes("size >= 2 and n in (1, 2, 5)", schema)
    (Box({0: [[2.0, inf]], 1: [[1.0, 2.0], [5.0, 5.0]]}),)
    >>> boxes("size >= 2 or n > 3.5", schema)
    (Box({0: [[2.0, inf]]}), Box({0: [[-inf, 1.9999999999999998]], 1: [[4.0, inf]]}))
    >>> boxes("n < 0", schema)
    ()
    """
    if max_boxes < 1:
        raise QueryError(f"max_boxes={max_boxes}", "at least 1")
    formulas = Formulas([domain_of(column) for column in schema])
    positions: dict[str, int] = {}
    return _solved(formulas, _formula(as_event(event, schema), False, schema, formulas, positions), max_boxes)


def _formula(event: Event, negated: bool, schema: Schema, formulas: Formulas, positions: dict[str, int]) -> Formula:
    """Return an event, or its complement, as a formula over the positions of columns."""
    if isinstance(event, Not):
        return _formula(event.part, not negated, schema, formulas, positions)
    if isinstance(event, And | Or):
        parts = [_formula(part, negated, schema, formulas, positions) for part in event.parts]
        return formulas.group(isinstance(event, And) != negated, parts)
    assert isinstance(event, Leaf)
    position = positions.get(event.column)
    if position is None:
        position = positions[event.column] = position_of(event.column, schema, event.place())
    found = values_of(event, schema.columns[position])
    return formulas.literal(position, formulas.domains[position].complement(found) if negated else found)


def _solved(formulas: Formulas, formula: Formula, max_boxes: int) -> tuple[Box, ...]:
    arrays: dict[Intervals, np.ndarray] = {}
    made = []
    for product in disjoint_products(formulas, formula, max_boxes):
        for intervals in product.values():
            if intervals not in arrays:
                arrays[intervals] = _frozen(np.array(intervals))
        made.append(Box({column: arrays[intervals] for column, intervals in product.items()}))
    return tuple(made)


def _as_intervals(intervals: np.ndarray) -> Intervals:
    return tuple((lo, hi) for lo, hi in intervals.tolist())


def intersect(first: Box, second: Box) -> Box | None:
    """Return the box of what lies in both of two boxes, None where that is nothing.

    Examples
    --------
    >>> intersect(Box({0: [[0, 2]]}), Box({0: [[1, 5]], 3: [[7, 7]]}))
    Box({0: [[1.0, 2.0]], 3: [[7.0, 7.0]]})
    """
    joined = dict(first.intervals)
    for column, intervals in second.intervals.items():
        known = joined.get(column)
        if known is None:
            joined[column] = intervals
            continue
        common = intersection(_as_intervals(known), _as_intervals(intervals))
        if not common:
            return None
        joined[column] = _frozen(np.array(common))
    return Box(joined)


def intersections(first: Sequence[Box], second: Sequence[Box]) -> tuple[Box, ...]:
    """Return the boxes of what lies in a box of both of two collections; disjoint where each collection is."""
    pairs = (intersect(one, other) for one in first for other in second)
    return tuple(box for box in pairs if box is not None)


def complement(union: Box | Sequence[Box], schema: Schema, *, max_boxes: int = MAX_BOXES) -> tuple[Box, ...]:
    """Return disjoint boxes whose union is what lies in none of some boxes; of one box with k columns, at most k.

    Raises
    ------
    QueryError
        Where there would be more than `max_boxes`.

    Examples
    --------
    >>> schema = Schema((Column("n", "integer", (0.0, np.inf)), Column("m", "integer", (0.0, np.inf))))
    >>> complement(Box({0: [[0, 2]], 1: [[5, 5]]}), schema)
    (Box({0: [[3.0, inf]]}), Box({0: [[0.0, 2.0]], 1: [[0.0, 4.0], [6.0, inf]]}))
    """
    formulas = Formulas([domain_of(column) for column in schema])
    outside = [
        formulas.group(
            False,
            [
                formulas.literal(column, formulas.domains[column].complement(_as_intervals(intervals)))
                for column, intervals in box.intervals.items()
            ],
        )
        for box in ([union] if isinstance(union, Box) else union)
    ]
    return _solved(formulas, formulas.group(True, outside), max_boxes)


def contains(box: Box, values: np.ndarray) -> np.ndarray:
    """Return which rows lie in a box.

    Parameters
    ----------
    box : Box
    values : float64 (n_column, n_row)
        In the user's units, codes of labels; NaN lies in no interval.

    Returns
    -------
    bool (n_row,)

    Examples
    --------
    >>> contains(Box({1: [[0, 2], [5, 5]]}), np.array([[0.0, 0.0, 0.0], [1.0, 3.0, 5.0]])).tolist()
    [True, False, True]
    """
    inside = np.ones(values.shape[1], bool)
    for column, intervals in box.intervals.items():
        row = values[column]
        position = np.searchsorted(intervals[:, 0], row, side="right") - 1
        inside &= (position >= 0) & (row <= intervals[position, 1])
    return inside


def why_null(union: Sequence[Box], schema: Schema, event: Event | None = None) -> str | None:
    """Return why an event has probability zero by its form alone, in a sentence; None where it need not have.

    `event` is what the boxes were made of, to name its columns.

    Examples
    --------
    >>> schema = Schema((Column("x", "real", (0.0, np.inf), resolution=0.1),))
    >>> why_null(boxes("x = 12", schema), schema)
    "column 'x' is continuous: P(x == 12) is 0; ask for x between 11.95 and 12.05"
    >>> why_null(boxes("x < 1 and x > 2", schema), schema)
    'the event contradicts itself: no row can be in it'
    >>> why_null((), schema, as_event("x < 1 and x > 2"))
    "the event contradicts itself on column 'x': no row can be in it"
    >>> whole = Schema((Column("n", "integer", (0.0, np.inf)),))
    >>> why_null((), whole, as_event("n = 2.5"))
    "column 'n' holds whole numbers: no row can be in n == 2.5"
    """
    if not union:
        fraction = None if event is None else _asks_for_fraction(event, schema)
        if fraction is not None:
            return f"column {fraction.column!r} holds whole numbers: no row can be in {fraction!r}"
        names = ", ".join(map(repr, event.columns)) if event is not None else ""
        where = f" on column{'s' * (', ' in names)} {names}" if names else ""
        return f"the event contradicts itself{where}: no row can be in it"
    null = [box.null_columns(schema) for box in union]
    if not all(null):
        return None
    column = schema.columns[null[0][0]]
    value = float(union[0].intervals[null[0][0]][0, 0])
    name, rendered = rendered_name(column.name), value_name(column, value)
    return (
        f"column {column.name!r} is continuous: P({name} == {rendered}) is 0; ask for "
        f"{name} between {_cell_end(column, value, -0.5)} and {_cell_end(column, value, 0.5)}"
    )


def why_between_steps(union: Sequence[Box], schema: Schema) -> str | None:
    """Return why an event of single whole numbers, where all were multiples of 5, misses mass; None where none is.

    Likelihoods of whole numbers give the numbers between the multiples their share.

    Examples
    --------
    >>> schema = Schema((Column("paid", "integer", (0.0, np.inf), step=50.0),))
    >>> print(why_between_steps(boxes("paid = 500", schema), schema))
    column 'paid' held multiples of 50 alone, others have a share in the model: ask for paid between 476 and 525
    >>> why_between_steps(boxes("paid between 476 and 525", schema), schema)
    """
    for box in union:
        for position, intervals in box.intervals.items():
            column = schema.columns[position]
            if column.base != "integer" or column.step == 1.0 or column.levels:
                continue
            first = np.ceil((intervals[:, 0] - column.offset) / column.step)
            narrow = (np.ceil(intervals[:, 1]) - np.floor(intervals[:, 0]) < column.step - 1.0) & (
                np.floor((intervals[:, 1] - column.offset) / column.step) == first
            )
            if narrow.any():
                value = first[narrow][0] * column.step + column.offset
                lo = value - np.ceil(column.step / 2.0) + 1.0
                name = rendered_name(column.name)
                steps = f"{column.offset:.17g} + " if column.offset else ""
                steps += f"multiples of {column.step:.17g}"
                return (
                    f"column {column.name!r} held {steps} alone, others have a share in the "
                    f"model: ask for {name} between {lo:.17g} and {lo + column.step - 1.0:.17g}"
                )
    return None


def _asks_for_fraction(event: Event, schema: Schema) -> Leaf | None:
    """Return the comparison that empties an event because its column holds whole numbers alone; None for none."""
    if isinstance(event, And | Or):
        found = [_asks_for_fraction(part, schema) for part in event.parts]
        if isinstance(event, Or) and None in found:
            return None
        return next((leaf for leaf in found if leaf is not None), None)
    if not isinstance(event, Leaf):
        return None
    column = schema.columns[position_of(event.column, schema)]
    if column.base != "integer" or values_of(event, column):
        return None
    match event:
        case Comparison(_, "==", float() as value):
            is_between = not value.is_integer()
        case Membership(_, values):
            is_between = all(isinstance(value, float) and not value.is_integer() for value in values)
        case Between(_, float() as lo, float() as hi):
            is_between = np.ceil(lo) > np.floor(hi)
        case _:
            is_between = False
    return event if is_between else None


def _cell_end(column: Column, value: float, share: float) -> str:
    """Return an end of the cell that a value stands for, without digits below a thousandth of the resolution."""
    # prices at .99 stand for all numbers to half a step to either side, which have their share in the model
    width = 30.0 * column.months or (column.step if column.offset else column.resolution)
    end = value + share * width
    if column.dtype == "datetime":
        return value_name(column, end)
    n_digit = max(0, 3 - int(np.floor(np.log10(column.resolution))))
    return number_label(round(end, n_digit))
