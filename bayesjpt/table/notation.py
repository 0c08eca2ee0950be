"""How a column spells its values, where that is no plain number or ISO date: each reads a text and writes a value."""

from __future__ import annotations

import re
from dataclasses import replace

from bayesjpt.table.written_dates import DateNotation
from bayesjpt.table.written_durations import DurationNotation
from bayesjpt.table.written_numbers import NumberNotation

_PADDED = re.compile(r"([hm0])\1(?=:)|(?:00|1)(?= ?[^\W\d_])")

Notation = NumberNotation | DateNotation | DurationNotation


def shared(one: Notation | None, other: Notation | None) -> Notation | None:
    """Return a notation in which two tables write the same numbers; None where they write them differently.

    Units of which one table alone has the singular are the same, as are lengths of time with a zero before and without
    one. Where one table holds times of day and the other, which has shorter ones, lengths of time, all are lengths.

    Examples
    --------
    >>> shared(DateNotation("clock", "%k:%M:%S"), DurationNotation("h:mm:ss"))
    DurationNotation(pattern='h:mm:ss')
    >>> shared(DateNotation("clock", "%H:%M"), DurationNotation("h:mm:ss"))
    >>> shared(DurationNotation("mm:ss.00"), DurationNotation("m:ss.00"))
    DurationNotation(pattern='mm:ss.00')
    >>> shared(NumberNotation(suffix=" days"), NumberNotation(suffix=" days", single=" day")).single
    ' day'
    >>> shared(DurationNotation("1h 00m"), DurationNotation("0h 0m"))
    DurationNotation(pattern='1h 00m')
    """
    if one == other:
        return one
    if isinstance(one, NumberNotation) and isinstance(other, NumberNotation):
        with_single = one if one.single else other  # only one of the tables has 1 day
        return with_single if replace(one, single="") == replace(other, single="") else None
    if isinstance(one, DateNotation) and isinstance(other, DateNotation):
        return one if replace(one, first_year=0) == replace(other, first_year=0) else None
    if isinstance(one, DurationNotation) and isinstance(other, DurationNotation):
        is_same = _PADDED.sub(_unpadded, one.pattern) == _PADDED.sub(_unpadded, other.pattern)
        return max(one, other, key=lambda notation: len(notation.pattern)) if is_same else None
    clock, length = (one, other) if isinstance(one, DateNotation) else (other, one)
    if not isinstance(clock, DateNotation) or not isinstance(length, DurationNotation) or clock.order != "clock":
        return None
    is_same = length.pattern in (("h:mm:ss", "hh:mm:ss") if "%S" in clock.pattern else ("0:00", "00:00"))
    return length if is_same else None


def _unpadded(found: re.Match) -> str:
    return found[1] or "0"
