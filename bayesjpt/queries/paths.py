"""Path conditions of trees as events: what the rows of a sub-tree have in common, in the language that events have."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bayesjpt.circuit.paths import Interval, Labels, Region
from bayesjpt.queries.event import (
    INCLUSIVE,
    Between,
    Comparison,
    Event,
    Value,
    membership,
    none_of,
    rendered,
    rendered_name,
    rendered_value,
)
from bayesjpt.queries.resolve import number_or_text, value_in
from bayesjpt.table.schema import Column, Schema

_WHICH_ENDS = {signs: name for name, signs in INCLUSIVE.items()}


def conditions(region: Region, schema: Schema) -> str:
    """Return the conditions of a region as a text that `parse_event` reads as the same set; empty without conditions.

    Columns stand in the order of the schema. Of two neighbouring numbers, the one that is shorter to write is the
    bound, so what a tree splits at a threshold reads ``< threshold`` or ``>= threshold``. Of labels, those are named
    that may occur or those that may not, whichever are fewer.

    Examples
    --------
    >>> alcohol = Column("alcohol", "real", (0.0, math.inf))
    >>> color = Column("color", "category", (0.0, 2.0), labels=("red", "rose", "white"))
    >>> schema = Schema((alcohol, color))
    >>> conditions({1: (0,), 0: Interval(10.4, math.nextafter(12.0, 0.0))}, schema)
    "10.4 <= alcohol < 12 and color = 'red'"
    >>> conditions({1: (0, 2)}, schema), conditions({1: (0, 1, 3)}, schema)
    ("color in ('red', 'white')", "color != 'white'")
    """
    return " and ".join(condition(schema.columns[position], region[position]) for position in sorted(region))


def condition(column: Column, part: Interval | Labels) -> str:
    """Return what a region asks of one column, as `conditions` writes it."""
    if not isinstance(part, Interval):
        event = _labels_event(column, part)
    elif column.base == "category":
        event = _labels_event(column, [code for code in range(column.n_label) if part.lo <= code <= part.hi])
    else:
        event = _interval_event(column, part)
    if isinstance(event, Comparison) and event.operator == "==":  # as people write it; the language reads both
        return f"{rendered_name(column.name)} = {rendered_value(event.value)}"
    return rendered(event)


def _labels_event(column: Column, codes: Sequence[int]) -> Event:
    inside = [column.code_names[code] for code in codes]
    outside = [name for name in column.code_names if name not in inside]
    named = inside if len(inside) <= len(outside) else outside
    if len(named) == 1:
        return Comparison(column.name, "==" if named is inside else "!=", named[0])
    return membership(column.name, named) if named is inside else none_of(membership(column.name, named))


def _interval_event(column: Column, part: Interval) -> Event:
    if part.lo == part.hi:
        return Comparison(column.name, "==", number_or_text(column, part.lo))
    if math.isinf(part.lo):
        return Comparison(column.name, *_bound(column, ("<=", "<"), part.hi, math.inf))
    if math.isinf(part.hi):
        return Comparison(column.name, *_bound(column, (">=", ">"), part.lo, -math.inf))
    right, hi = _bound(column, ("<=", "<"), part.hi, math.inf)
    left, lo = _bound(column, ("<=", "<"), part.lo, -math.inf)
    return Between(column.name, lo, hi, _WHICH_ENDS[left, right])


def _bound(column: Column, signs: tuple[str, str], end: float, outwards: float) -> tuple[str, Value]:
    """Return how to write the end of a closed interval: itself, or as open at its neighbour where that is shorter.

    Dates are written to the microsecond; of two that look alike, the one is written that is read back.
    """
    closed = signs[0], number_or_text(column, end)
    if column.base == "integer":
        return closed
    beyond = math.nextafter(end, outwards)
    choices = [(end, closed), (beyond, (signs[1], number_or_text(column, beyond)))]

    def cost(choice: tuple[float, tuple[str, Value]]) -> tuple[bool, int]:
        number, (_, value) = choice
        return value_in(column, value) != number, len(rendered_value(value))

    return min(choices, key=cost)[1]
