"""From texts to what they say: booleans, numbers, dates, yes and no. What one column leaves open, the others decide."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from bayesjpt import defaults
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.number_units import partly_marked, stray_units
from bayesjpt.table.overrides import NOTHING
from bayesjpt.table.reading import Reading
from bayesjpt.table.written_dates import date_readings, iso_notation
from bayesjpt.table.written_durations import are_lengths, are_race_times, duration_readings
from bayesjpt.table.written_numbers import (
    NumberNotation,
    NumberReadings,
    is_currency,
    number_readings,
    plain_decimal,
)
from bayesjpt.table.yes_no import yes_no

_PARTS_THOUSANDS = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")
_MAY_PART_THOUSANDS = re.compile(r"-?(?:0|[1-9]\d{0,2}(?:\.\d{3})?)")
_SINGLE_DIGIT = 10.0
_POWER = re.compile(r"\d{1,4}[eE]\d{1,2}")
"""What programs write with a point or a sign (1e+05, 1.0e5) people may mean as a code."""
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}")

_N_SAMPLE = 1_000
"""Distinct texts of a column that are asked for evidence about the others."""

_N_NAMES = 5
"""Columns that a note names."""

_MOST_YES_NO = 12
"""Spellings of yes and no in one column."""


@dataclass(frozen=True)
class Hints:
    """What a table as a whole, or the user, says about its texts.

    Parameters
    ----------
    decimal : str
        The decimal mark; empty where nothing tells.
    order : str
        ``dmy`` or ``mdy``; empty where nothing tells.
    decimal_by, order_by : str
        Who says so, in words.
    """

    decimal: str = ""
    order: str = ""
    decimal_by: str = ""
    order_by: str = ""


NO_HINTS = Hints()


def hints_of(table: Sequence[Cells], reading: Reading) -> Hints:
    """Return what the unambiguous columns of a table tell about the others."""
    decimal, decimal_by = reading.decimal or "", "the option says so" if reading.decimal else ""
    order = {None: "", True: "dmy", False: "mdy"}[reading.day_first]
    order_by = "the option says so" if order else ""
    if decimal and order:
        return Hints(decimal, order, decimal_by, order_by)
    decimals: dict[str, str] = {}
    orders: dict[str, str] = {}
    for cells in table:
        if cells.stored != "text" or cells.labels or not cells.n_distinct:
            continue
        texts = cells.distinct[:: max(1, cells.n_distinct // _N_SAMPLE)].tolist()
        plain = plain_decimal(texts)
        if plain is not None:
            if plain:
                decimals.setdefault(plain, cells.name)
            continue
        numbers = number_readings(texts)
        if numbers is not None and numbers.tells_decimal:
            decimals.setdefault(numbers.tells_decimal, cells.name)
        dates = date_readings(texts) if numbers is None else None
        if dates is not None and len(dates.notations) == 1 and dates.notations[0].order in ("dmy", "mdy"):
            orders.setdefault(dates.notations[0].order, cells.name)
    if not decimal and len(decimals) == 1:
        decimal, name = next(iter(decimals.items()))
        decimal_by = f"as in column {name!r}"
    elif not decimal and not decimals and reading.sep == ";":
        decimal, decimal_by = ",", "as usual beside semicolons"
    if not order and len(orders) == 1:
        order, name = next(iter(orders.items()))
        order_by = f"as in column {name!r}"
    elif not order and not orders and decimal == ",":
        order, order_by = "dmy", "as usual beside a decimal comma"
    return Hints(decimal, order, decimal_by, order_by)


def interpret(cells: Cells, hints: Hints = NO_HINTS) -> Cells:
    """Return text cells as booleans, numbers or dates where every one of them says so; others as they are.

    Cells that are no plain numbers and ISO dates without times carry their notation, and a note where it could have
    been another.
    """
    if cells.stored != "text" or cells.labels or not cells.n_distinct:
        return cells
    times = _iso_dates, _dates(hints), _durations
    for read in (cells_of.spelled_boolean, _numbers(hints), *times, _yes_no):
        found = read(cells)
        if found is not None:
            return found
    return cells


def spelled_number(cells: Cells, hints: Hints = NO_HINTS) -> Cells | None:
    """Return text cells that all spell numbers, in whatever notation, as numbers; None otherwise."""
    plain = _with_codes_noted(cells, cells_of.spelled_number(cells))
    by_option = hints.decimal_by.startswith("the option")
    if plain is not None and hints.decimal != ",":
        likely = None if by_option else _likely_thousands(cells)
        return likely or (plain if hints.decimal else _with_doubt(cells, plain))
    found = number_readings(cells.distinct.tolist())
    if found is None:
        return plain
    if found.notations[0].suffix and stray_units(cells.distinct.tolist(), cells.counts()):
        return None
    decimal = hints.decimal if by_option else found.likely_decimal or hints.decimal or _decimal_of_amounts(found)
    chosen = next((k for k, one in enumerate(found.notations) if one.decimal == decimal), 0)
    notation = found.notations[chosen]
    if plain is not None and notation.decimal == "." and not notation.group:
        return plain
    notes = [_number_note(cells, found, chosen, hints), _unit_note(cells) if notation.suffix else ""]
    note = "; ".join(filter(None, notes))
    return replace(cells.retold("number", found.values[chosen]), notation=notation, note=note)


def _decimal_of_amounts(found: NumberReadings) -> str:
    """Return the decimal mark of amounts of money whose marks may all part thousands; empty where nothing tells.

    Prices of a unit, such as 1.459 € a litre, have three decimals; larger amounts have two: 10.229 TL are thousands.
    """
    grouped = [one for one in found.notations if one.group and is_currency((one.prefix or one.suffix).strip())]
    is_small = min(np.abs(values).max() for values in found.values) < _SINGLE_DIGIT
    return grouped[0].decimal if len(found.notations) == 2 and len(grouped) == 1 and not is_small else ""


def _unit_note(cells: Cells) -> str:
    """Return how cells without the unit of the others are read; empty where hardly any cell has none, or all."""
    found = partly_marked(cells.distinct.tolist(), cells.counts())
    return "" if found is None else f"{found.in_words()} in column {cells.name!r} are read as if they had it"


def _is_of_two_scales(cells: Cells) -> bool:
    """Return whether numbers with a unit and those without are so far apart that no one unit can be that of all."""
    found = partly_marked(cells.distinct.tolist(), cells.counts())
    return found is not None and found.is_of_two_scales


def _with_codes_noted(cells: Cells, plain: Cells | None) -> Cells | None:
    """Return plain numbers, with a note where a few texts may be codes: 1E5 beside 2E3, 1.10 beside 1.1."""
    if plain is None or cells.n_distinct > defaults.MAX_LABELS:
        return plain
    texts = cells.distinct.tolist()
    powers = [text for text in texts if _POWER.fullmatch(text)]
    if powers and all(_POWER.fullmatch(text) or text.isdecimal() for text in texts):
        example = powers[0]
    elif not all(map(_VERSION.fullmatch, texts)):
        return plain
    elif plain.n_distinct < len(texts):
        in_order = sorted(texts, key=lambda text: (float(text), len(text)))
        example = next(after for before, after in pairwise(in_order) if float(before) == float(after))
    else:  # a zero that some numbers have last and others, with fewer digits, need not: 1.10 beside 1.9
        digits = {text: len(text.partition(".")[2]) for text in texts}
        example = next((text for text in texts if text[-1] == "0" and digits[text] > min(digits.values())), "")
        if not example:
            return plain
    value = cells_of.number_label(float(example))
    ways = f"{NOTHING.remedy(cells.name, 'category')}, or {NOTHING.command(cells.name, 'category')},"
    return replace(plain, note=f"{example!r} in column {cells.name!r} is read as {value} ({ways} reads it as a label)")


def _likely_thousands(cells: Cells) -> Cells | None:
    """Return plain numbers whose points part thousands by their sizes, such as 412, 990, 1.250; None for others."""
    texts = cells.distinct.tolist()
    if not all(map(_MAY_PART_THOUSANDS.fullmatch, texts)) or not any("." in text for text in texts):
        return None
    found = number_readings(texts)
    if found is None or found.likely_decimal != ",":
        return None
    chosen = next(k for k, one in enumerate(found.notations) if one.decimal == ",")
    note = _number_note(cells, found, chosen, NO_HINTS)
    return replace(cells.retold("number", found.values[chosen]), notation=found.notations[chosen], note=note)


def _with_doubt(cells: Cells, plain: Cells) -> Cells:
    """Return plain numbers, with a note where each point stands before three digits, as if it parted thousands.

    Measurements of a single digit before the point, such as 1.234, are written so more often than not.
    """
    if abs(plain.distinct).max() < _SINGLE_DIGIT or not all(map(_PARTS_THOUSANDS.fullmatch, cells.distinct.tolist())):
        return plain
    found = number_readings(cells.distinct.tolist())
    if found is None or len(found.notations) < 2:
        return plain
    points = next((k for k, one in enumerate(found.notations) if one.decimal == "."), 0)
    return replace(plain, note=_number_note(cells, found, points, NO_HINTS))


def _number_note(cells: Cells, readings: NumberReadings, chosen: int, hints: Hints) -> str:
    if len(readings.notations) == 1 or hints.decimal_by.startswith("the option"):
        return ""
    value = cells_of.number_label(readings.notations[chosen].value(readings.example) or 0.0)
    by = f", {hints.decimal_by}" if hints.decimal_by and readings.notations[chosen].decimal == hints.decimal else ""
    other = "." if readings.notations[chosen].decimal == "," else ","
    option = f"decimal={other!r}, or --decimal {other}"
    return f"{readings.example!r} in column {cells.name!r} is read as {value}{by} ({option} reads it otherwise)"


def _numbers(hints: Hints) -> Callable[[Cells], Cells | None]:
    def read(cells: Cells) -> Cells | None:
        found = None if cells_of.zero_padded(cells) else spelled_number(cells, hints)
        has_unit = found is not None and isinstance(found.notation, NumberNotation) and found.notation.suffix
        return None if has_unit and _is_of_two_scales(cells) else found

    return read


def spelled_datetime(cells: Cells, hints: Hints = NO_HINTS) -> Cells | None:
    """Return text cells that all spell dates, times of day or durations, in whatever notation, as such; else None."""
    return _iso_dates(cells) or _dates(hints)(cells) or _durations(cells)


def _iso_dates(cells: Cells) -> Cells | None:
    days = cells_of.spelled_datetime(cells)
    return None if days is None else replace(days, notation=iso_notation(cells.distinct.tolist()))


def _dates(hints: Hints) -> Callable[[Cells], Cells | None]:
    def read(cells: Cells) -> Cells | None:
        found = date_readings(cells.distinct.tolist())
        if found is None:
            return None
        preferred = hints.order or ("mdy" if "/" in found.example else "dmy")
        chosen = next((k for k, one in enumerate(found.notations) if one.order == preferred), 0)
        notation = found.notations[chosen]
        if notation.order == "clock" and "%p" not in notation.pattern:
            texts = cells.distinct.tolist()
            if (are_race_times(texts) or are_lengths(texts, cells.name)) and _durations(cells) is not None:
                return None
        stored = "number" if notation.order == "clock" else "datetime"
        note = ""
        if len(found.notations) > 1 and not hints.order_by.startswith("the option"):
            day = cells_of.value_label(notation.value(found.example) or 0.0, "datetime")[:10]
            by = f", {hints.order_by}" if hints.order_by and notation.order == hints.order else ""
            is_day_first = notation.order == "dmy"
            option = f"day_first={not is_day_first}, or --{'month' if is_day_first else 'day'}-first,"
            note = f"{found.example!r} in column {cells.name!r} is read as {day}{by} ({option} reads it otherwise)"
        return replace(cells.retold(stored, found.values[chosen]), notation=notation, note=note)

    return read


def _durations(cells: Cells) -> Cells | None:
    found = duration_readings(cells.distinct.tolist())
    return None if found is None else replace(cells.retold("number", found[1]), notation=found[0])


def _yes_no(cells: Cells) -> Cells | None:
    if not 2 <= cells.n_distinct <= _MOST_YES_NO:
        return None
    label_of = yes_no(dict(zip(cells.distinct.tolist(), cells.counts().tolist(), strict=True)))
    if label_of is None:
        return None
    labels = list(dict.fromkeys(label_of.values()))
    distinct = sorted(labels)
    code = np.array([*(distinct.index(label_of[text]) for text in cells.distinct), -1], np.int64)
    return Cells(cells.name, "text", np.array(distinct, object), code[cells.codes], tuple(labels), is_yes_no=True)


def without_tokens(cells: Cells, alone: bool = False) -> tuple[Cells, list[str]]:
    """Return cells with "-" and the like as missing, and those tokens, where all other texts spell numbers or dates.

    Where some do not, the cells as they are, and no tokens. So too where there are no other texts, unless `alone`.
    """
    if cells.stored != "text" or cells.labels:
        return cells, []
    is_token = np.array([text in cells_of.NO_NUMBER_TOKENS for text in cells.distinct], bool)
    if not is_token.any():
        return cells, []
    kept = cells_of.without_distinct(cells, is_token)
    if not (spelled_number(kept) or spelled_datetime(kept) if kept.n_distinct else alone):
        return cells, []
    return kept, cells.distinct[is_token].tolist()


def without_label_tokens(cells: Cells, tokens: Collection[str]) -> tuple[Cells, list[str]]:
    """Return cells of texts with some tokens as missing, and those that there were."""
    if cells.stored != "text" or cells.labels:
        return cells, []
    is_token = np.array([text in tokens for text in cells.distinct], bool)
    if not is_token.any():
        return cells, []
    return cells_of.without_distinct(cells, is_token), cells.distinct[is_token].tolist()


def tokens_text(tokens: Sequence[tuple[str, str]]) -> str:
    """Return which tokens were read as missing, and where.

    Examples
    --------
    >>> tokens_text([("-", "a"), (".", "a"), ("-", "b")])
    "'-' in columns 'a', 'b'; '.' in column 'a'"
    """
    columns: dict[str, list[str]] = {}
    for token, name in tokens:
        columns.setdefault(token, []).append(repr(name))
    parts = []
    for token, names in columns.items():
        more = f" and {len(names) - _N_NAMES} more" if len(names) > _N_NAMES else ""
        parts.append(f"{token!r} in column{'s' * (len(names) > 1)} {', '.join(names[:_N_NAMES])}{more}")
    return "; ".join(parts)
