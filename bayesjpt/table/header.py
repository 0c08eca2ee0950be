"""The names of columns: whether the first row holds them, and which are made where it does not, or holds one twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from bayesjpt.errors import warn
from bayesjpt.table import cells as cells_of
from bayesjpt.table.written_dates import date_readings
from bayesjpt.table.written_durations import duration_readings
from bayesjpt.table.written_numbers import number_readings

_N_RECORDS = 200
"""Records that are compared with the first one."""


def holds_names(first: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Return whether the first record of a table holds the names of its columns.

    It does not where it looks like the others: numbers (or dates) over numbers, and no text over them; and the texts
    over texts that repeat are among those. Whole numbers in a row, such as years, are names. So are cells that repeat,
    unless most of them stand in their columns below, too, and a cell that is empty, or such as ?, over a column
    without gaps.

    Examples
    --------
    >>> holds_names(["age", "kind"], [["70", "a"], ["57", "b"]]), holds_names(["61", "a"], [["70", "a"], ["57", "b"]])
    (True, False)
    >>> holds_names(["country", "2019", "2020"], [["F", "1.5", "2"], ["D", "3", "4"]])
    True
    >>> holds_names(["61", "", "a"], [["70", "5", "a"], ["57", "", "b"]])
    False
    """
    records = [record for record in records[:_N_RECORDS] if len(record) == len(first)]
    if not records or not any(first):
        return True
    columns = [{record[position].strip() for record in records} for position in range(len(first))]
    if any(name in MISSING and MISSING.isdisjoint(cells) for name, cells in zip(first, columns, strict=True)):
        return True
    n_below = sum(name in cells for name, cells in zip(first, columns, strict=True))
    if len(set(first)) < len(first) / 2 and n_below < len(first) / 2:
        return True
    alike = n_repeated = n_found = 0
    whole = []
    for name, cells in zip(first, columns, strict=True):
        below = [text for text in cells if text not in MISSING]
        if not below or name in MISSING:
            continue
        if is_value(below):
            if not is_value([*below, name]):  # not by itself: the 19 of Feb-19 may be a day or a year
                return True
            alike += 1
            value = cells_of.number_of_text(name)
            whole += [value] if value is not None and value.is_integer() else []
        elif len(below) <= len(records) / 2:
            n_repeated += 1
            n_found += name in below
    if n_repeated and not n_found:
        return True
    if alike and len(whole) == alike >= 2 and all(b - a == 1.0 for a, b in pairwise(whole)):
        return True
    return not alike and n_found < max(n_repeated, 1)


def names_values(first: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Return whether some cell of a record that is no value stands over values alone.

    Examples
    --------
    >>> names_values(["age", "kind"], [["70", "a"], ["57", "b"]]), names_values(["a", "b"], [["c", "d"]])
    (True, False)
    """
    for position, name in enumerate(first):
        below = [text for text in {record[position].strip() for record in records[:_N_RECORDS]} if text not in MISSING]
        if name and below and is_value(below) and not is_value([name]):
            return True
    return False


def holds_units(record: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Return whether the first record below the names holds units: no value over values alone, in two columns at least.

    A number, of rows or cases, may have none. A text that stands among those below is a cell of a row, whose numbers
    were not measured.

    Examples
    --------
    >>> holds_units(["C", "%", ""], [["20.5", "51", "N"], ["21", "50", "S"]]), holds_units(["C", "51"], [["3", "50"]])
    (True, False)
    >>> holds_units(["", "C", "bar"], [["1", "20.5", "2"], ["2", "21", "3"]])
    True
    """
    n_unit = 0
    for position, unit in enumerate(record):
        below = [text for text in {other[position].strip() for other in records[:_N_RECORDS]} if text not in MISSING]
        if below and is_value(below):
            if unit and (unit in MISSING or is_value([unit])):
                return False
            n_unit += bool(unit)
        elif unit in below:
            return False
    return n_unit > 1


def joined_names(first: Sequence[str], record: Sequence[str], records: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the names in the first two records of a table as one a column, where only both tell all columns apart.

    Those of the first one repeat, or stand before empty cells as merged cells of a workbook do; the second one holds no
    value but years, and no text of the records below. None where it is no row of names.

    Examples
    --------
    >>> below = [["Ann", "12", "7.5"], ["Bob", "13", "8"]]
    >>> joined_names(["Person", "Person", "Score"], ["Name", "Age", ""], below)
    ['Person Name', 'Person Age', 'Score']
    >>> joined_names(["Person", "", "Score"], ["Name", "Age", "Art"], below)
    ['Person Name', 'Person Age', 'Score Art']
    >>> joined_names(["", "Sales", ""], ["Person", "2022", "2023"], below)
    ['Person', 'Sales 2022', 'Sales 2023']
    >>> joined_names(["name", "size", "size"], ["", "cm", "cm"], below) is None
    True
    """
    above: list[str] = []
    for name, part in zip(first, record, strict=True):
        above.append(above[-1] if above and part and not name else name)
    names = [" ".join(filter(None, pair)) for pair in zip(above, record, strict=True)]
    named = [name for name in above if name]
    has_years = _holds_years(record, records)
    if len(set(named)) == len(named) or len(set(names)) < len(names):
        return None
    if not has_years and not names_values(record, records):
        return None
    for position, part in enumerate(record):
        below = {other[position].strip() for other in records[:_N_RECORDS]}
        if part and (part in MISSING or part in below or (is_value([part]) and not has_years)):
            return None
    return names


def _holds_years(record: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Return whether the values of a record are years, two at least, and none below them is one."""
    years = [position for position, part in enumerate(record) if part and is_value([part])]
    below = [other[position].strip() for other in records[:_N_RECORDS] for position in years]
    are_years = all(_YEAR.fullmatch(record[position]) for position in years)
    return len(years) > 1 and are_years and not any(map(_YEAR.fullmatch, below))


_YEAR = re.compile(r"(?:19|20)\d\d")


MISSING = cells_of.MISSING_TOKENS | cells_of.NO_NUMBER_TOKENS


def is_value(texts: Sequence[str]) -> bool:
    """Return whether texts all spell numbers, dates or durations."""
    return any(read(texts) is not None for read in (number_readings, date_readings, duration_readings))


def names_of(header: Sequence[str]) -> list[str]:
    """Return the names in a header row: positions for empty ones, and numbers behind those that are there twice."""
    return made_distinct(plain_names(header))


def plain_names(header: Sequence[str]) -> list[str]:
    """Return the names in a header row without the spaces around them, and positions for empty ones."""
    return [name.strip() or f"unnamed_{position}" for position, name in enumerate(header, start=1)]


def made_distinct(names: Sequence[str]) -> list[str]:
    """Return names that are all different; a note says which were changed."""
    made = cells_of.distinct_names(names)
    note = cells_of.renamed_note(names, made)
    if note:
        warn(note)
    return made


def numbered(n_column: int, first: Sequence[str], name: str, *, is_stated: bool) -> list[str]:
    """Return ``column_1, column_2, ...``; a note says so, unless the user said that there is no header."""
    made = [f"column_{position}" for position in range(1, n_column + 1)]
    if not is_stated:
        examples = ", ".join(first[:3]) + (", ..." if n_column > 3 else "")
        new_names = made[0] if n_column == 1 else f"{made[0]} to {made[-1]}"
        warn(f"{name!r} has no header: its first row ({examples}) looks like the others; columns are named {new_names}")
    return made
