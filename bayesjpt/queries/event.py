"""Events: comparisons of columns with values, combined by and, or, not. They know no schema.

`repr` writes an event in the language that `parse_event` reads. What a value means in a column (a label, a date, a
number) is settled when the event meets a schema, in `resolve`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from bayesjpt.defaults import MAX_EVENT_DEPTH
from bayesjpt.errors import QueryError
from bayesjpt.table.cells import number_label

type Value = float | bool | str
"""Numbers, true and false, and texts: labels, or dates in ISO 8601."""

FLIPPED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">=": "<=", ">": "<"}
"""Each comparison, and the one that says the same with its sides exchanged."""

INCLUSIVE = {"both": ("<=", "<="), "left": ("<=", "<"), "right": ("<", "<="), "neither": ("<", "<")}
"""Which ends belong to a range, as pandas names them, and the comparisons with its lower and upper end."""

KEYWORDS = frozenset({"and", "or", "not", "between", "in", "true", "false", "inf", "infinity", "nan"})
"""Words of the language, in any case; a column of such a name is quoted."""

BARE_NAME = r"[^\W\d][\w.]*"
"""Names that need no quotes: a letter of any script or an underscore, then letters, digits, underscores, dots."""

_N_SHOWN = 100
"""Characters of a text around the place of a mistake."""


@dataclass(frozen=True)
class Place:
    """A place in a text, for messages."""

    text: str
    position: int

    def drawn(self) -> str:
        """Return the line around the place and, under it, a caret."""
        first = max(0, min(self.position - _N_SHOWN // 2, len(self.text) - _N_SHOWN))
        before = ("..." if first else "") + self.text[first : self.position]
        after = self.text[self.position : first + _N_SHOWN] + ("..." if first + _N_SHOWN < len(self.text) else "")
        line = "".join(letter if letter.isprintable() else " " for letter in before + after)
        return f"    {line}\n    {' ' * _n_cell(line[: len(before)])}^"


def _n_cell(text: str) -> int:
    """Return how many cells of a terminal a text fills."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


class EventError(QueryError):
    """A mistake in an event; where the event was a text, the message ends with the text and a caret under the place."""

    def __init__(
        self,
        found: str,
        expected: str | None = None,
        remedy: str | None = None,
        *,
        place: Place | None = None,
        command: str | None = None,
    ):
        super().__init__(found, expected, remedy, command=command)
        self.place = place

    def __str__(self) -> str:
        line = super().__str__()
        return line if self.place is None else f"{line}\n{self.place.drawn()}"

    def __reduce__(self):
        return (_made_again, (self.found, self.expected, self.remedy, self.place, self.command))

    def at_the_command_line(self) -> str:
        return str(
            self if self.command is None else EventError(self.found, self.expected, self.command, place=self.place)
        )


class TwoColumnsError(EventError):
    """A comparison of two names, of which a schema may tell what was meant."""

    def __init__(self, names: tuple[str, str], places: tuple[Place, Place], remedy: str):
        super().__init__("two columns are compared", "a column and a value", remedy, place=places[1])
        self.names, self.places = names, places


def _made_again(
    found: str, expected: str | None, remedy: str | None, place: Place | None, command: str | None
) -> EventError:
    return EventError(found, expected, remedy, place=place, command=command)


def is_whole_name(name: Any) -> bool:
    """Return whether a column is named by a whole number, as in frames without names: the text of it is its name."""
    return isinstance(name, int | np.integer) and not isinstance(name, bool)


class Event:
    """A set of rows. Made by comparing `col`, or by `parse_event`; combined by ``&``, ``|`` and ``~``."""

    __slots__ = ()
    __array_ufunc__ = None  # or NumPy scalars on the left would take the comparison for theirs

    def __and__(self, other: Event) -> Event:
        return all_of((self, _operand(other, "&")))

    def __rand__(self, other: object) -> NoReturn:
        _operand(other, "&")
        raise AssertionError

    def __or__(self, other: Event) -> Event:
        return any_of((self, _operand(other, "|")))

    def __ror__(self, other: object) -> NoReturn:
        _operand(other, "|")
        raise AssertionError

    def __invert__(self) -> Event:
        return none_of(self)

    def __bool__(self) -> bool:
        raise EventError(
            "an event was used as true or false, as and, or, not, if and 1 < col < 2 do",
            "&, | and ~, each comparison in parentheses",
            'For a range use bj.col("name").between(lo, hi).',
        )

    def _compared(self, other: object) -> NoReturn:
        raise EventError(
            f"an event was compared with {short_repr(other)}",
            "comparisons of a column with one value",
            'For a range use bj.col("name").between(lo, hi); around & and | put each comparison in parentheses.',
        )

    __lt__ = __le__ = __gt__ = __ge__ = _compared

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in the order in which they first appear."""
        return tuple(dict.fromkeys(leaf.column for leaf in leaves(self)))

    def __repr__(self) -> str:
        return rendered(self)


class Leaf(Event):
    """Rows that one column decides: a comparison, a range or a set."""

    column: str
    places: tuple[Place, ...]
    """Where the column and then each value stood in the text; empty where there was none."""

    def place(self, value: int | None = None) -> Place | None:
        """Return where the column, or a value by its number, stood in the text."""
        return self.places[0 if value is None else value + 1] if self.places else None


@dataclass(frozen=True, repr=False)
class Comparison(Leaf):
    """Rows whose value of a column stands in a relation (``<``, ``<=``, ``==``, ``!=``, ``>=``, ``>``) to a value."""

    column: str
    operator: str
    value: Value
    places: tuple[Place, ...] = field(default=(), compare=False)

    def __post_init__(self):
        if self.operator in ("==", "!=") and self.value in (np.inf, -np.inf):
            raise EventError(
                f"column {self.column!r} compared with {rendered_value(self.value)} by {self.operator}",
                "a finite value",
                place=self.place(0),
            )


@dataclass(frozen=True, repr=False)
class Between(Leaf):
    """Rows whose value of a column lies between two values; `inclusive` as in pandas."""

    column: str
    lo: Value
    hi: Value
    inclusive: str = "both"
    places: tuple[Place, ...] = field(default=(), compare=False)

    def __post_init__(self):
        if self.inclusive not in INCLUSIVE:
            raise EventError(f"inclusive={self.inclusive!r}", f"one of {', '.join(map(repr, INCLUSIVE))}")
        if isinstance(self.lo, float) and isinstance(self.hi, float) and self.lo > self.hi:
            refuse_reversed(self)


@dataclass(frozen=True, repr=False)
class Membership(Leaf):
    """Rows whose value of a column is one of several."""

    column: str
    values: tuple[Value, ...]
    places: tuple[Place, ...] = field(default=(), compare=False)

    def __post_init__(self):
        for number, value in enumerate(self.values):
            if value in (np.inf, -np.inf):
                raise EventError(
                    f"{rendered_value(value)} among the values of column {self.column!r}",
                    "finite values",
                    place=self.place(number),
                )


@dataclass(frozen=True, repr=False)
class Not(Event):
    """Rows that are not in an event; made by `none_of`."""

    part: Event
    depth: int = field(compare=False, default=0)


@dataclass(frozen=True, repr=False)
class And(Event):
    """Rows that are in every one of some events; made by `all_of`."""

    parts: tuple[Event, ...]
    depth: int = field(compare=False, default=0)


@dataclass(frozen=True, repr=False)
class Or(Event):
    """Rows that are in one of some events at least; made by `any_of`."""

    parts: tuple[Event, ...]
    depth: int = field(compare=False, default=0)


def all_of(events: Sequence[Event]) -> Event:
    """Return the rows that are in every one of some events; nested conjunctions become one."""
    return _joined(And, events)


def any_of(events: Sequence[Event]) -> Event:
    """Return the rows that are in one of some events at least; nested disjunctions become one."""
    return _joined(Or, events)


def none_of(event: Event) -> Event:
    """Return the rows that are not in an event."""
    return event.part if isinstance(event, Not) else Not(event, _deeper([event]))


def _joined(kind: type[And] | type[Or], events: Sequence[Event]) -> Event:
    if len(events) == 1:
        return events[0]
    parts: list[Event] = []
    for event in events:
        parts += event.parts if isinstance(event, kind) else (event,)
    nested = max((event.depth for event in events if isinstance(event, kind)), default=0)
    return kind(tuple(parts), max(nested, _deeper([event for event in events if not isinstance(event, kind)])))


def _deeper(parts: Sequence[Event]) -> int:
    depth = 1 + max((getattr(part, "depth", 0) for part in parts), default=0)
    if depth > MAX_EVENT_DEPTH:
        raise EventError(
            f"an event with {depth} levels of and, or, not inside each other", f"at most {MAX_EVENT_DEPTH}"
        )
    return depth


def leaves(event: Event) -> Iterator[Leaf]:
    """Yield the comparisons of an event, from left to right."""
    match event:
        case Not(part):
            yield from leaves(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from leaves(part)
        case Leaf():
            yield event


def refuse_reversed(leaf: Between) -> NoReturn:
    """Raise `EventError` for a range whose lower end lies above its upper one."""
    lo, hi = rendered_value(leaf.lo), rendered_value(leaf.hi)
    raise EventError(
        f"column {leaf.column!r} between {lo} and {hi}: the lower end is above the upper one",
        f"between {hi} and {lo}",
        place=leaf.place(0),
    )


def membership(column: str, values: Sequence[Value], places: Sequence[Place] = ()) -> Membership:
    """Return the rows whose value is one of several, each named once; `places` as in `Membership`."""
    kept: dict[tuple[bool, Value], int] = {}
    for number, value in enumerate(values):
        kept.setdefault((isinstance(value, bool), value), number)  # True and 1 are two values to us
    at = [0, *(number + 1 for number in kept.values())]
    return Membership(column, tuple(value for _, value in kept), tuple(places[i] for i in at) if places else ())


def _operand(other: object, operator: str) -> Event:
    if isinstance(other, Event):
        return other
    raise EventError(
        f"an event {operator} {short_repr(other)}; {operator} binds tighter than comparisons",
        "an event on either side",
        'Put each comparison in parentheses: (bj.col("a") > 1) & (bj.col("b") == 2).',
    )


def short_repr(value: object) -> str:
    """Return a value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


# --- text ------------------------------------------------------------------------------------------------------------


def rendered(event: Event) -> str:
    """Return an event in the language of `parse_event`."""
    match event:
        case Comparison(column, operator, value):
            return f"{rendered_name(column)} {operator} {rendered_value(value)}"
        case Between(column, lo, hi, "both"):
            return f"{rendered_name(column)} between {rendered_value(lo)} and {rendered_value(hi)}"
        case Between(column, lo, hi, inclusive):
            left, right = INCLUSIVE[inclusive]
            return f"{rendered_value(lo)} {left} {rendered_name(column)} {right} {rendered_value(hi)}"
        case Membership(column, values):
            return f"{rendered_name(column)} in ({', '.join(map(rendered_value, values))})"
        case Not(Membership(column, values)):
            return f"{rendered_name(column)} not in ({', '.join(map(rendered_value, values))})"
        case Not(And() | Or() as part):
            return f"not ({rendered(part)})"
        case Not(part):
            return f"not {rendered(part)}"
        case And(parts):
            return " and ".join(f"({rendered(part)})" if isinstance(part, Or) else rendered(part) for part in parts)
        case Or(parts):
            return " or ".join(map(rendered, parts))
        case _:
            raise AssertionError(type(event))


def rendered_name(name: str) -> str:
    """Return a column's name, in backticks where the language needs quotes.

    Examples
    --------
    >>> [rendered_name(name) for name in ("alcohol", "fixed acidity", "in", "größe")]
    ['alcohol', '`fixed acidity`', '`in`', 'größe']
    """
    if re.fullmatch(BARE_NAME, name) and name.lower() not in KEYWORDS:
        return name
    return f"`{name.replace('`', '``')}`"


def rendered_value(value: Value) -> str:
    """Return a value as the language writes it.

    Examples
    --------
    >>> [rendered_value(value) for value in (12.0, 0.1, True, "red", "Bob's")]
    ['12', '0.1', 'true', "'red'", "'Bob''s'"]
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value.replace(chr(39), chr(39) * 2)}'"
    return number_label(value)
