"""Columns that say nothing about a population of rows: identifiers, running numbers, free texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import warn
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.number_units import mixed_decimals, partly_marked, units_of
from bayesjpt.table.ordered_labels import ORDINAL
from bayesjpt.table.schema import SetAside
from bayesjpt.table.written_dates import date_readings
from bayesjpt.table.written_numbers import NumberNotation, number_readings

MIN_IDENTIFIER_ROWS = 20
"""Rows; below, distinct values say nothing: 20 draws from 40 equally likely values are all distinct 1 in 300 times."""

IDENTIFIER_SHARE = 0.9
"""Distinct values over observed cells; a text column above it is an identifier, an integer one if its name says so."""

RUNNING_NUMBER_FILL = 0.5
"""Share of its range that a column of all-distinct integers fills; above it, it is a running number (rows may have been
dropped). Of 100 draws from 200 values all are distinct once in 10^13 times."""

ON_REQUEST = "left out on request"
"""Reason of a column that the user excluded."""

_FEW_TEXTS = 20
"""Different texts up to which numbers in several units, such as 500 g and 1 kg, may be labels of packs."""


MOST_ODD = 0.25
"""Share of the different texts that may be no numbers, or dates, where a column is said to hold mostly such."""


_MOST_TOLD = 5
"""Columns that a warning names."""
_BOUND = re.compile(r"([<>]=?|[≤≥]) ?(.+)|(.+?) ?\+")
_BELOW = ("<", "≤")

IN_ONE_UNIT, WITH_ONE_MARK = "in one unit they are read", "with one mark they are read"
"""What would make numbers of some columns; the ends of their reasons."""

_ID_NAME = re.compile(
    r"""[\W_]*(id|ids|idx|index|key|pk|serial|no|nr|ean|gtin|upc|isbn|iban|imei|barcode|row[\W_]?(id|no|nr|names?|number)|index_level_\d+)[\W_]*
    |\#|unnamed([\W_].*)?
    |.*[\W_](id|ids|key|pk|no|nr|uuid|guid|ssn|isbn|doi|hash|ean|gtin|upc|iban|imei|barcode)
    |(id|uuid|guid)([\W_].*)?
    |.+nummer|.*[\W_](number|num[eé]ro|n[uú]mero)|.*nr\.?|n[°º].*|.*\#""",
    re.IGNORECASE | re.VERBOSE,
)
_CAMEL_ID_NAME = re.compile(r"[a-z](Id|ID|Key|Uuid|UUID)$")


def set_aside_reason(cells: Cells, view: Cells) -> str | None:
    """Return why a column, as stored and as interpreted, says nothing about a population of rows; None if it may."""
    n, n_distinct = view.n_observed, view.n_distinct
    enough = n >= MIN_IDENTIFIER_ROWS
    nearly_all = n_distinct > IDENTIFIER_SHARE * n
    if view.stored == "text":
        units = units_of(view.distinct) if enough and n_distinct > _FEW_TEXTS else ()
        if units:
            return f"numbers in {', '.join(units[:-1])} and {units[-1]}: {n_distinct} texts; {IN_ONE_UNIT}"
        part = partly_marked(view.distinct.tolist(), view.counts()) if enough and n_distinct > _FEW_TEXTS else None
        if part and part.is_of_two_scales:
            sizes = " and ".join(f"{size:.3g}" for size in part.medians)
            return (
                f"numbers with and without {part.unit}, of two scales: {part.in_words()}, medians {sizes} without and "
                f"with it; {IN_ONE_UNIT}"
            )
        marks = mixed_decimals(view.distinct) if enough and n_distinct > _FEW_TEXTS else ()
        if marks:
            examples = f"{marks[0]!r} and {marks[1]!r}"
            return f"numbers with decimal commas and points, {examples}: {n_distinct} texts; {WITH_ONE_MARK}"
        if enough and nearly_all:
            found = f"{n_distinct} distinct texts in {n} observed cells"
            return f"identifier or free text: {found}{nearly_read(view)}"
        n_label = len(view.labels) or n_distinct
        if n_label > defaults.MAX_LABELS:
            return f"text: {n_label} labels, more than the {defaults.MAX_LABELS} of a category{nearly_read(view)}"
        return None
    if view.stored != "number" or not enough:
        return None
    written = view.notation
    if isinstance(written, NumberNotation) and (written.prefix or written.suffix or written.group):
        return None  # a unit, a currency or marks between thousands: an amount, whatever its name
    if cells.stored == "text" and cells.n_distinct > IDENTIFIER_SHARE * n and cells_of.inexact(cells):
        return f"identifier: {cells.n_distinct} distinct whole numbers in {n} observed cells, some beyond 2^53"
    if not cells_of.is_whole(view.distinct):
        return None
    range_length = view.distinct[-1] - view.distinct[0] + 1.0
    ordered = is_identifier_name(view.name) or _in_row_order(view)
    if n_distinct == n and n >= RUNNING_NUMBER_FILL * range_length and ordered:
        return f"running number: {n} whole numbers, all distinct, that fill {n / range_length:.0%} of their range"
    if nearly_all and is_identifier_name(view.name):
        return f"identifier by its name: {n_distinct} distinct whole numbers in {n} observed cells"
    return None


def warn_of_unused(columns: Sequence[SetAside]) -> None:
    """Warn of columns that are left out though nobody asked for it, with the reason of each."""
    told = [f"{column.name!r} ({column.reason})" for column in columns if column.reason != ON_REQUEST]
    if told:
        more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
        warn(f"not used: {', '.join(told[:_MOST_TOLD])}{more}")


def kind_to_suggest(cells: Cells, view: Cells) -> str | None:
    """Return the kind that brings a column back, or None where nothing does.

    Examples
    --------
    >>> texts = cells_of.from_text("name", [f"name {i}" for i in range(2_000)], np.arange(2_000))
    >>> kind_to_suggest(texts, texts) is None
    True
    """
    if not view.n_distinct:
        return None
    if view.stored in ("number", "datetime") and not cells_of.inexact(cells):
        return "integer" if view.stored == "number" and cells_of.is_whole(view.distinct) else "real"
    labels = cells.labels or cells.distinct
    storable = not any(cells_of.unstorable(label) for label in labels) if cells.stored == "text" else True
    return "category" if storable and len(labels) <= defaults.MAX_FORCED_LABELS else None


def is_identifier_name(name: str) -> bool:
    """Return whether a column's name is that of an identifier.

    Examples
    --------
    >>> [is_identifier_name(name) for name in ("id", "customer_id", "PatientId", "grid", "price_index", "index")]
    [True, True, True, False, False, True]
    >>> [is_identifier_name(name) for name in ("Kundennummer", "MLS#", "N° dossier", "ean", "number of rooms")]
    [True, True, True, True, False]
    """
    return bool(_ID_NAME.fullmatch(name) or _CAMEL_ID_NAME.search(name))


def nearly_read(cells: Cells) -> str:
    """Return a hint for a text column most of whose cells spell numbers, or dates: the first one that does not."""
    kinds = (("numbers", number_readings),) if not cells_of.zero_padded(cells) else ()
    for kind, readings in (*kinds, ("dates", date_readings)):
        most, odd = MOST_ODD * cells.n_distinct, []
        for position, text in enumerate(cells.distinct):
            if readings([text]) is None or ORDINAL.fullmatch(text):
                odd.append(position)
                if len(odd) > most:
                    break
        if odd and len(odd) <= most:
            row, value = cells.first(odd)
            return f"; most cells are {kind}, the first that is not is {value!r} in row {row}"
    return ""


def first_odd(reason: str) -> tuple[str, int] | None:
    """Return the text and row that `nearly_read` tells in the reason of a column; None where it tells none.

    Examples
    --------
    >>> first_odd("text: 160 labels; most cells are numbers, the first that is not is 'call us' in row 21")
    ('call us', 21)
    """
    found = re.search(r"the first that is not is ('.*'|\".*\") in row (\d+)$", reason)
    return (str(ast.literal_eval(found[1])), int(found[2])) if found else None


@dataclass(frozen=True)
class Censored:
    """A cell that tells no more of its number than a bound, such as ``<0.5`` or ``90+``.

    Parameters
    ----------
    is_below : bool
        Whether the number is below the bound.
    stand_in : str
        A number to write in its place: half of what it is below, as the limit of an assay, or what it is above.
    """

    is_below: bool
    stand_in: str

    def in_words(self) -> str:
        """Return why such cells are not to be read as missing, and what to do instead."""
        ends, way = ("smallest", "up") if self.is_below else ("largest", "down")
        instead = f"half of the bound, {self.stand_in}," if self.is_below else f"at least the bound, {self.stand_in},"
        return (
            f"Such cells are the {ends} values: read as missing they shift the column {way}; write {instead} for them."
        )


def censored(text: str) -> Censored | None:
    """Return what a text says that is a bound of a number; None for all other texts.

    Examples
    --------
    >>> censored("<0.5"), censored("90+"), censored("<none>"), censored("0.5")
    (Censored(is_below=True, stand_in='0.25'), Censored(is_below=False, stand_in='90'), None, None)
    >>> censored("<0,6 mg").stand_in
    '0,3 mg'
    """
    found = _BOUND.fullmatch(text.strip())
    readings = number_readings([found[2] or found[3]]) if found is not None else None
    if found is None or readings is None or len(readings.values) != 1:
        return None
    is_below, bound = (found[1] or "").startswith(_BELOW), float(readings.values[0][0])
    # with the decimal mark and unit of the text: beside decimal commas 0.3 would be no number
    written = replace(readings.notations[0], digits=-1)
    return Censored(is_below, written.text(bound / 2.0 if is_below and bound > 0.0 else bound))


def _in_row_order(view: Cells) -> bool:
    """Return whether the observed values ascend, or descend, from row to row."""
    steps = np.diff(view.codes[view.codes >= 0])
    return bool((steps > 0).all() or (steps < 0).all())
