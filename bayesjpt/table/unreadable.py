"""Columns of numbers or dates with a few cells that are neither: typing errors, remarks, days that no calendar has.

Such a cell must not cost the column. It is read as missing, and a warning names it. What says something about a number
that it does not spell, such as ``<5`` or ``90+``, is no such cell: missing, it would be a wrong answer.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.interpret import NO_HINTS, Hints, spelled_datetime, spelled_number, without_tokens
from bayesjpt.table.number_units import stray_units
from bayesjpt.table.written_dates import date_readings
from bayesjpt.table.written_durations import duration_readings
from bayesjpt.table.written_numbers import number_readings

_FEW_NUMBERS = 20
"""Different numbers up to which they may be labels, as the text beside them then is."""

_FEW_TEXTS = 3


class _Bounds(NamedTuple):
    """How many cells are no numbers, or dates, where the others are.

    Attributes
    ----------
    n_read : int
        Cells that are, at least; fewer say nothing about the others.
    few_texts, more_texts : float
        Share of those that are not, at most: of up to `_FEW_TEXTS` texts, and of more.
    """

    n_read: int
    few_texts: float
    more_texts: float


_IN_A_TABLE = _Bounds(20, 0.05, 0.02)
_IN_A_PART = _Bounds(0, 1.0, 1.0)
"""Of rows that were judged together with the other parts of their table."""

_MANY_TEXTS = 30
"""Texts that are not read, from which on a column is of texts if most of those looked at are: there may be millions."""

_TELLS_OF_NUMBERS = re.compile(r"[<>≤≥≈~+]|\d ?[-–/] ?\d|[^\W\d_]{2}\W*\d|\d\W*\w+ \w")  # noqa: RUF001 - a dash of ranges
"""``<5``, ``90+``, ``10-20``, ``over 90``, ``5 or more``."""

_N_LOOKED_AT = 200
"""Characters at the beginning of a cell that are searched for it: a longer one is a text, and costs no time."""

_N_NAMED, _N_SHOWN = 4, 40


@dataclass(frozen=True)
class Unreadable:
    """The cells of a column that were read as missing: the first one, its row from 1, and how many texts there are."""

    column: str
    text: str
    row: int
    n_text: int


def without_unreadable(cells: Cells, hints: Hints = NO_HINTS) -> tuple[Cells, Unreadable | None]:
    """Return cells of texts without the few that are no numbers, or dates, as all others are; and what those were.

    The cells as they are, and None, where they are too many, or the others may be labels.
    """
    if cells.stored != "text" or cells.labels or cells.n_distinct < 2:
        return cells, None
    for is_odd, read, n_least in ((_odd_numbers, _numbers, _FEW_NUMBERS + 1), (_odd_times, spelled_datetime, 1)):
        kept, found = _without(cells, is_odd)
        if found is not None and kept.n_distinct >= n_least and read(kept, hints) is not None:
            return kept, found
    return cells, None


def new_cells_without_unreadable(
    cells: Cells, *, are_times: bool, are_part: bool = False
) -> tuple[Cells, Unreadable | None]:
    """Return what `without_unreadable` does of new rows, whose column is known to hold times, or numbers.

    Of rows that are part of the table from which this is known, cells are read as missing however many they are.
    """
    if cells.stored != "text" or cells.labels:
        return cells, None
    return _without(cells, _odd_times if are_times else _odd_numbers, _IN_A_PART if are_part else _IN_A_TABLE)


def _numbers(cells: Cells, hints: Hints) -> Cells | None:
    is_code = cells_of.zero_padded(cells) or cells_of.inexact(cells)
    return None if is_code else spelled_number(cells, hints)


def _without(
    cells: Cells, odd_of: Callable[[Cells, np.ndarray, _Bounds], list[int] | None], bounds: _Bounds = _IN_A_TABLE
) -> tuple[Cells, Unreadable | None]:
    counts = cells.counts()
    odd = odd_of(cells, counts, bounds)
    if not odd or int(counts.sum() - counts[odd].sum()) < bounds.n_read:
        return cells, None
    gone = np.zeros(cells.n_distinct, bool)
    gone[odd] = True
    row, text = cells.first(odd)
    kept, _ = without_tokens(replace(cells_of.without_distinct(cells, gone), note=""))
    return kept, Unreadable(cells.name, text, row, len(odd))


def _odd_numbers(cells: Cells, counts: np.ndarray, bounds: _Bounds) -> list[int] | None:
    """Return which distinct texts are no numbers; None where they are too many, or tell of numbers all the same."""

    def is_number(_: int, text: str) -> bool:
        return cells_of.number_of_text(text) is not None or number_readings([text]) is not None

    if _odd(cells, counts, bounds, is_number) is None:
        return None  # before units are looked for: most columns of texts end here
    units = set(stray_units(cells.distinct.tolist(), counts))
    odd = _odd(cells, counts, bounds, lambda k, text: k not in units and is_number(k, text))
    if odd is None or any(k not in units and _TELLS_OF_NUMBERS.search(cells.distinct[k][:_N_LOOKED_AT]) for k in odd):
        return None
    return odd


def _odd_times(cells: Cells, counts: np.ndarray, bounds: _Bounds) -> list[int] | None:
    """Return which distinct texts are neither dates nor times of day nor durations; None where they are too many."""
    return _odd(cells, counts, bounds, lambda _, text: (date_readings([text]) or duration_readings([text])) is not None)


def _odd(cells: Cells, counts: np.ndarray, bounds: _Bounds, is_read: Callable[[int, str], bool]) -> list[int] | None:
    """Return the distinct texts that are not read, tokens for missing numbers apart; None once they are too many."""
    n_cell, n_odd = int(counts.sum()), 0
    odd: list[int] = []
    # in no order: texts stand side by side where they are sorted
    for n_seen, k in enumerate(np.random.default_rng(0).permutation(cells.n_distinct).tolist(), start=1):
        text = str(cells.distinct[k])
        if text in cells_of.NO_NUMBER_TOKENS or is_read(k, text):
            continue
        odd.append(k)
        n_odd += int(counts[k])
        if n_odd > (bounds.few_texts if len(odd) <= _FEW_TEXTS else bounds.more_texts) * n_cell:
            return None
        if bounds.more_texts < 1.0 and len(odd) > _MANY_TEXTS and 2 * len(odd) > n_seen:
            return None
    return sorted(odd)


def unreadable_text(found: Sequence[Unreadable]) -> str:
    """Return a warning that cells were read as missing, and what to do about it.

    Examples
    --------
    >>> unreadable_text([Unreadable("price", "call us", 57, 1)]).partition(" are: ")[2].partition(";")[0]
    "'call us' in column 'price' (first in row 57)"
    """
    parts = []
    for one in found[:_N_NAMED]:
        more = f" and {one.n_text - 1} more" if one.n_text > 1 else ""
        parts.append(f"{_clipped(one.text)!r}{more} in column {one.column!r} (first in row {one.row})")
    if len(found) > _N_NAMED:
        parts.append(f"and {len(found) - _N_NAMED} columns more")
    token = f"{found[0].column}={found[0].text}"
    return (
        f"read as missing, being no numbers or dates as the other cells are: {'; '.join(parts)}; mend "
        f"them, or say that they are missing with na={token!r}, or --na {shlex.quote(token)}"
    )


def _clipped(text: str) -> str:
    return text if len(text) <= _N_SHOWN else f"{text[: _N_SHOWN - 3]}..."
