"""What a user should look at: codes for missing cells, numbers written as text, constants, copies, orders."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bayesjpt.queries.blanks import blanks_for_none
from bayesjpt.queries.near_copies import near_copies
from bayesjpt.queries.type_features import written_numbers
from bayesjpt.table.cells import NO_LABEL_TOKENS, number_of_text
from bayesjpt.table.ordered_labels import NUMBERED, is_no_answer, is_stray, is_two_sided, known_order
from bayesjpt.table.schema import Column, Schema, SetAside
from bayesjpt.table.table import Table

_CODES = frozenset(
    (-1.0, *(sign * (10.0**n - 1.0) for n in (1, 2, 3, 4, 5, 6) for sign in (-1.0, 1.0)))
    + (-127.0, *(2.0**n - 1.0 for n in (8, 15, 16, 31, 32)), *(-(2.0**n) for n in (7, 15, 31)))
)
"""Numbers that stand for a missing one: -1, 9 and -9, 99 and -99, and so on; the ends of whole numbers in devices."""

_DATE_CODES = frozenset(
    """
    0001-01-01 0001-01-02 1000-01-01 1582-10-15 1600-01-01 1601-01-01 1700-01-01 1753-01-01 1800-01-01
    1899-12-30 1899-12-31 1900-01-01 1900-01-02 1901-01-01 1904-01-01 1970-01-01 1970-01-02 1980-01-01
    2038-01-19 2078-12-31 2079-06-06 2099-01-01 2099-12-31 2100-01-01 2200-12-31 2500-12-31 2999-01-01
    2999-12-31 3000-01-01 3999-12-31 4712-12-31 8888-12-31 9000-12-31 9999-01-01 9999-09-09 9999-12-30
    9999-12-31
    """.split()  # noqa: SIM905 - a line for each would say no more
)
"""The ends of calendars, and days from which computers and spreadsheets count."""
_FAR = 0.25
"""Part of the other values' range by which a code must lie beyond them."""

_LEAST_CELLS = 2
"""Cells that hold a code; one far value alone is an outlier."""

_ZERO_FAR = 0.2
_ZERO_SHARE = 0.005
"""A zero that lies so far below all other values, and so often, may be a missing one too."""

_ONE_DIGIT = 9.0

_SIGNS = 3
"""Times by which 1 may be more common than -1, or less, where both are signs and -1 no code."""

_COPIED_ROWS = 20
"""Rows from which two columns that agree everywhere are copies."""

_NUMBER_TEXT = re.compile(
    r"""[-+(]?\s*[$€£¥]?\s*[-+]?\d{1,3}(?:[.,'\s]\d{3})*(?:[.,]\d+)?\)?\s*(?P<a>%|[$€£¥]|[^\W\d_]{1,4})?
    |[-+]?\s*[$€£¥]?\s*\d+(?:[.,]\d+)?\s*(?P<b>%|[$€£¥]|[^\W\d_]{1,5})?""",
    re.VERBOSE,
)
_DATE_TEXT = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{2,4}(\s+\d{1,2}:\d{2}(:\d{2})?(\s*[AaPp][Mm])?)?")
_TEXT_SHARE = 0.9
"""Share of a column's labels that must be numbers, or dates, for it to be one of them written as text."""

_TIME_NAME = re.compile(r".*(time|date|stamp|epoch|created|updated|modified|_at\b|\bts\b|\bunix).*", re.IGNORECASE)
_TIME_UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_TIME_RANGE = (631_152_000.0, 2_145_916_800.0)
"""Seconds since 1970 of the years 1990 to 2038, between which all moments of a table are supposed to lie."""

_LEAST_MOMENTS = 20
"""Different values from which whole numbers between these may be moments without a name that says so."""

_FIRST_DAY, _LAST_DAY, _LEAST_DAYS = 18_000_101, 21_001_231, 10
"""Days written as numbers, and how many different ones make it no chance: one in three such numbers is a day."""

_MANY_DECADES = 6.0
"""Powers of ten that nine tenths of a column's numbers span from which no likelihood of ours follows them all."""

AS_TEXT, DATES_AS_TEXT, IS_CONSTANT = "numbers as text", "dates as text", "constant"
ALL_DIFFERENT = "all different"
MAY_BE_MISSING, IS_CODE = "missing? ", ": missing?"


class Answer(Protocol):
    """What is known of a column's type."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def second(self) -> str: ...
    @property
    def certainty(self) -> str: ...


def notes_of(answers: Sequence[Answer], schema: Schema, table: Table | None) -> list[tuple[str, ...]]:
    """Return, for each column, what to look at; nothing for most."""
    copies = {} if table is None else copies_of(table)
    cells_of = [None if table is None else table.values[k, table.observed[k]] for k in range(len(schema.columns))]
    codes = [codes_for_missing(column, cells) for column, cells in zip(schema.columns, cells_of, strict=True)]
    near = {} if table is None else near_copies(table, dict(enumerate(codes)))
    blanks = {} if table is None else blanks_for_none(table)
    found = []
    for position, (answer, column) in enumerate(zip(answers, schema.columns, strict=True)):
        cells = cells_of[position]
        notes = []
        if column.n_distinct == 1:
            notes.append(IS_CONSTANT)
        else:
            notes += [f"{_number(code)}{IS_CODE}" for code in codes[position]]
            notes += [f"{date}{IS_CODE}" for date in dates_for_missing(column, cells)]
            n_decade = decades_of(column, cells)
            notes += [f"{n_decade:.0f} decades: logarithm?"] if n_decade >= _MANY_DECADES else []
            is_text = column.dtype == "text" and not _is_read(column)
            notes += written_as_text(column.labels, column.reason) if is_text else []
            if position in copies:
                notes.append(f"copy of {schema.columns[copies[position]].name}")
            elif position in near:
                notes.append(f"nearly a copy of {schema.columns[near[position]].name}")
            notes += _of_labels(column, cells, is_ordered=answer.type == "ordinal")
            notes += [f"--kind {shlex.quote(f'{column.name}=date')}"] if may_be_dates(column, cells) else []
            is_open = answer.certainty == "unsure" and {answer.type, answer.second} == {"nominal", "ordinal"}
            notes += [f"--kind {shlex.quote(f'{column.name}=ordinal')}"] if is_open and not notes else []
        blank = [blanks[position]] if position in blanks else []
        notes = [*blank, *notes] if notes == [IS_CONSTANT] else [*notes, *blank]
        found.append(tuple(notes))
    return found


def decades_of(column: Column, cells: np.ndarray | None) -> float:
    """Return how many powers of ten nine tenths of a column's cells span; 0 where some of them are not positive.

    Examples
    --------
    >>> round(decades_of(Column("size", "real", (0.0, np.inf)), 10.0 ** np.linspace(-5.0, 5.0, 200)))
    9
    """
    if cells is None or not cells.size or column.base == "category" or column.dtype == "datetime":
        return 0.0
    lo, hi = np.quantile(cells, [0.05, 0.95], method="inverted_cdf")
    return float(np.log10(hi) - np.log10(lo)) if lo > 0.0 else 0.0


def _of_labels(column: Column, cells: np.ndarray | None, *, is_ordered: bool) -> list[str]:
    """Return notes on labels: those that may say that a cell is missing, those spelled in two ways, and keys."""
    if column.base != "category" or column.dtype != "text" or column.n_distinct < 2:
        return []
    if cells is not None and 2 < column.n_distinct == cells.size == np.unique(cells).size:
        return [ALL_DIFFERENT]
    order = known_order(column.labels)
    ranked = () if order is None else order.ranked
    is_pair = is_two_sided([label for label in column.labels if not is_no_answer(label)])  # yes, no, don't know
    missing = [
        label
        for label in column.labels
        if (label in NO_LABEL_TOKENS and not (set(label) == {"-"} and "+" in column.labels))
        or (is_ordered and ranked and label not in ranked and is_stray(label))
        or (is_pair and is_no_answer(label))
    ]
    spelled: dict[str, str] = {}
    notes = [f"{MAY_BE_MISSING}{label}" for label in missing]
    for label in column.labels:
        other = spelled.setdefault(" ".join(label.casefold().split()), label)
        notes += [f"{other} = {label}?"] if other != label else []
    return notes


def _is_read(column: Column) -> bool:
    """Return whether the labels of a column are a few numbers, such as 5 % and 10 %, which are read as such."""
    return column.reason == "text with few labels" and written_numbers(column.labels) is not None


def may_be_dates(column: Column, cells: np.ndarray | None) -> bool:
    """Return whether the numbers of a column seem to be dates: 20240131, or what is counted from 1970 on.

    Examples
    --------
    >>> days = np.array([20240000.0 + 100.0 * month + day for month in (1, 2, 3) for day in range(1, 29)])
    >>> column = Column("day", "integer", (1.0, np.inf), minimum=days[0], maximum=days[-1], n_distinct=days.size)
    >>> may_be_dates(column, days)
    True
    """
    return _counts_days(column, cells) or _counts_from_1970(column, cells)


def _counts_days(column: Column, cells: np.ndarray | None) -> bool:
    """Return whether the whole numbers of a column are days, written as 20240131."""
    if cells is None or column.base != "integer" or not _FIRST_DAY <= column.minimum <= column.maximum <= _LAST_DAY:
        return False
    days = np.unique(cells).astype(np.int64)
    year, month, day = days // 10_000, days // 100 % 100, days % 100
    inside = (month >= 1) & (month <= 12) & (day >= 1) & (day <= calendar_days(year, month))
    return days.size >= _LEAST_DAYS and bool(inside.all())


def calendar_days(year: np.ndarray, month: np.ndarray) -> np.ndarray:
    """Return how many days months have, int64; of months beyond 12 and before 1, 0."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    days = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    within = np.where((month >= 1) & (month <= 12), month, 0)
    return days[within] + (leap & (within == 2))


def _counts_from_1970(column: Column, cells: np.ndarray | None) -> bool:
    """Return whether the numbers of a column seem to count from 1970 on."""
    if cells is None or column.dtype != "number" or column.base == "category":
        return False
    lo, hi = column.minimum, column.maximum
    # seconds are as large as many amounts and keys are; milliseconds need no name that says so
    units = (
        _TIME_UNITS if _TIME_NAME.fullmatch(column.name) else _TIME_UNITS[1:] * (column.n_distinct >= _LEAST_MOMENTS)
    )
    return any(_TIME_RANGE[0] * scale <= lo and hi <= _TIME_RANGE[1] * scale for _, scale in units)


def one_hot_groups(table: Table) -> list[tuple[str, str, int]]:
    """Return (first column, last column, columns) of each label that is written as a column for each value.

    These are three or more columns of two values side by side, whose names begin alike, and of which each row has
    the second value in exactly one.

    Examples
    --------
    >>> import bayesjpt as bj
    >>> table = bj.as_table({f"to_{k}": [int(row % 3 == k) for row in range(30)] for k in range(3)})
    >>> one_hot_groups(table)
    [('to_0', 'to_2', 3)]
    """
    found: list[tuple[str, str, int]] = []
    for stem, positions in _runs_of_indicators(table.schema):
        inside = table.observed[positions].all() and (table.values[positions].sum(axis=0) == 1.0).all()
        if stem and len(positions) > 2 and inside:
            columns = table.schema.columns
            found.append((columns[positions[0]].name, columns[positions[-1]].name, len(positions)))
    return found


def _runs_of_indicators(schema: Schema) -> list[tuple[str, list[int]]]:
    """Return the positions of columns of no and yes, 0 and 1, that stand side by side under names that begin alike."""
    runs: list[tuple[str, list[int]]] = []
    for position, column in enumerate(schema.columns):
        is_indicator = column.base == "category" and column.labels in (("0", "1"), ("False", "True"), ("no", "yes"))
        is_indicator |= column.is_yes_no and column.n_distinct == 2
        stem = re.split(r"[_.:=\- ][^_.:=\- ]*$", column.name)[0] if is_indicator else ""
        stem = "" if stem == column.name else stem
        if runs and stem and runs[-1][0] == stem:
            runs[-1][1].append(position)
        else:
            runs.append((stem, [position]))
    return runs


def notes_of_left_out(column: SetAside) -> tuple[str, ...]:
    """Return what to look at in a column that was not modelled: numbers, or dates, that were written as text."""
    return (AS_TEXT,) if "are numbers" in column.reason else (DATES_AS_TEXT,) if "are dates" in column.reason else ()


def codes_for_missing(column: Column, cells: np.ndarray | None) -> list[float]:
    """Return values such as -999 that lie far beyond all others, and are no measurements.

    Parameters
    ----------
    column : Column
    cells : float64 (n,) or None
        Observed values, or codes of labels.

    Examples
    --------
    >>> age = Column("age", "integer", (-np.inf, np.inf), n_distinct=41)
    >>> codes_for_missing(age, np.array([*range(20, 60), -999.0, -999.0]))
    [-999.0]
    """
    if cells is None or not cells.size or column.dtype in ("datetime", "boolean"):
        return []
    if column.base == "category":
        numbers = [number_of_text(label) for label in column.labels]
        if len(numbers) < 3 or any(number is None for number in numbers):
            return []
        cells = np.array([*(float(number) for number in numbers if number is not None), np.nan])[cells.astype(np.int64)]
        cells = cells[np.isfinite(cells)]
    values, counts = np.unique(cells, return_counts=True)
    found: list[float] = []
    while values.size > 2:  # the last code found hides the next: -99 and -999
        end = _far_code(values, counts)
        if end is None or _are_signs(values, counts):
            break
        found.append(float(values[end]))
        values, counts = np.delete(values, end), np.delete(counts, end)
    return found


def _are_signs(values: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether -1 stands beside 0 and 1 as a sign or state does: about as often as 1."""
    less, more = sorted((int(counts[0]), int(counts[-1])))
    return np.array_equal(values, [-1.0, 0.0, 1.0]) and more <= _SIGNS * less


def dates_for_missing(column: Column, cells: np.ndarray | None) -> list[str]:
    """Return dates such as 9999-12-31 that several cells hold at an end of a column, far from its others.

    Examples
    --------
    >>> left = Column("left", "real", (-np.inf, np.inf), dtype="datetime", n_distinct=41)
    >>> dates_for_missing(left, np.array([*range(19_000, 19_040), *3 * [2_932_896.0]]))
    ['9999-12-31']
    """
    if cells is None or column.base != "real" or column.dtype != "datetime":
        return []
    found = []
    values, counts = np.unique(cells, return_counts=True)
    for end, inner in ((0, 1), (-1, -2)):
        if values.size < 3 or counts[end] < _LEAST_CELLS:
            continue
        gap, rest = abs(values[end] - values[inner]), values[-1] - values[0] - abs(values[end] - values[inner])
        date = str(np.datetime64(int(np.floor(values[end])), "D"))
        if date in _DATE_CODES and (gap > rest or counts[end] > 2 * counts[inner]):
            found.append(date)
    return found


def missing_codes(column: Column, cells: np.ndarray) -> list[float]:
    """Return `codes_for_missing` of two digits or more: 0, -1 and 9 may as well be what was measured."""
    return [code for code in codes_for_missing(column, cells) if abs(code) > _ONE_DIGIT]


def _far_code(values: np.ndarray, counts: np.ndarray) -> int | None:
    """Return which end of the values, 0 or -1, is a code for a missing one; None for neither."""
    span = float(values[-1] - values[0])
    for end, inner in ((0, 1), (-1, -2)):
        code, gap = float(values[end]), abs(float(values[end] - values[inner]))
        rest = max(span - gap, 1e-300)
        below_zero = code < 0.0 <= float(values[1]) and end == 0
        # a code is met more often than what lies next to it: of ages to 79, one of 99 may be a person's
        is_code = below_zero or gap > rest or counts[end] > 2 * counts[inner]
        if code in _CODES and counts[end] >= _LEAST_CELLS and is_code and (below_zero or gap > max(_FAR * rest, 1.0)):
            return end
        often = counts[end] > _ZERO_SHARE * counts.sum() and counts[end] > 2 * counts[inner]
        if end == 0 and code == 0.0 and values.size > 20 and gap > max(_ZERO_FAR * rest, 1.0) and often:
            return end
    return None


def written_as_text(labels: Sequence[str], reason: str = "") -> list[str]:
    """Return whether labels are numbers, or dates, that were written as text.

    Examples
    --------
    >>> written_as_text(["$1,200.50", "$80.00", "$99.90"]), written_as_text(["A11", "A12", "A13"])
    (['numbers as text'], [])
    """
    if "are numbers" in reason or "are dates" in reason:
        return [AS_TEXT if "are numbers" in reason else DATES_AS_TEXT]
    texts = [label.strip() for label in labels]
    if len(texts) < 3 or all(number_of_text(text) is not None for text in texts):
        return []
    if sum(bool(_DATE_TEXT.fullmatch(text)) for text in texts) >= _TEXT_SHARE * len(texts):
        return [DATES_AS_TEXT]
    order = known_order(labels)
    if order is not None and order.kind == NUMBERED:
        return []
    matches = [match for text in texts if (match := _NUMBER_TEXT.fullmatch(text))]
    units = {match["a"] or match["b"] or "" for match in matches}
    return [AS_TEXT] if len(matches) >= _TEXT_SHARE * len(texts) and len(units - {""}) <= 1 else []


def copies_of(table: Table) -> dict[int, int]:
    """Return which earlier column each copy repeats: the same cells, or the same under other labels."""
    if table.n_row < _COPIED_ROWS:
        return {}
    seen: dict[bytes, int] = {}
    found = {}
    for position, column in enumerate(table.schema.columns):
        if column.n_distinct < 2:
            continue
        values, observed = table.values[position], table.observed[position]
        first, codes = np.unique(np.where(observed, values, np.nan), return_inverse=True, equal_nan=True)
        if first.size > 0.5 * table.n_row:  # nearly all cells differ: one-to-one with any other such column
            key = b"values" + np.where(observed, values, np.inf).tobytes()
        else:
            key = b"levels" + _by_appearance(codes).tobytes()
        if key in seen:
            found[position] = seen[key]
        else:
            seen[key] = position
    return found


def _by_appearance(codes: np.ndarray) -> np.ndarray:
    """Return codes renumbered by their first row, so that columns with other labels agree."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]


def _number(value: float) -> str:
    return f"{value:.6g}"
