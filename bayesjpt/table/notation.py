"""How a column spells its values, where that is no plain number or ISO date: each reads a text and writes a value."""

from __future__ import annotations

from bayesjpt.table.written_dates import DateNotation
from bayesjpt.table.written_durations import DurationNotation
from bayesjpt.table.written_numbers import NumberNotation

Notation = NumberNotation | DateNotation | DurationNotation
