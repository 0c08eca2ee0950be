"""The cells of one column as they were read: distinct values, and a code for each row.

Every decision about a column depends on its distinct values and their counts, so it costs one pass over the rows; their
order only tells running numbers. Knows nothing of schemas.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt import defaults
from bayesjpt.table.country_codes import NAMIBIA, place_called_na

if TYPE_CHECKING:
    from bayesjpt.table.notation import Notation

MISSING_TOKENS = frozenset(
    {"", "?", "NA", "na", "NaN", "nan", "NAN", "null", "NULL", "Null"} | {"N/A", "n/a", "#N/A", "#NA", "<NA>", "NaT"}
)
"""What a missing cell looks like in text, once white space is stripped. `Na` is sodium, and not among them."""

NO_NUMBER_TOKENS = frozenset(
    {"None", "none", "-", "--", "---", "\u2013", "\u2014", ".", "..", "n.a.", "k.A.", "k. A.", "unknown", "missing"}
    | {"#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NULL!", "#NAME?", "(blank)"}
    | {"DNF", "DNS", "DSQ", "DQ"}  # of races: did not finish, did not start, disqualified
)
"""What a missing cell looks like among numbers; among other texts each of these may be a label."""

NO_LABEL_TOKENS = NO_NUMBER_TOKENS - {"None", "none", "unknown", "missing", "DNF", "DNS", "DSQ", "DQ"}
"""Those that are no word. Among labels they may say "not applicable", which is no gap: training rows keep them, and are
to be looked at; new rows of a column that has no such label are missing there."""

_NAMIBIAS = NAMIBIA, NAMIBIA.lower()

MICROSECONDS_PER_DAY = 86_400_000_000
FARTHEST_DAY = 1e8
"""From 1970 to either side: datetime64[us] holds 1.06e8 days, 292,000 years."""

LEAST_DAY, LARGEST_DAY = -719_162.0, 2_932_896.999_999
"""From 0001-01-01 to the end of 9999-12-31 in days since 1970-01-01: what Python's dates hold."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_INFINITY = re.compile(r"[+-]?(inf|infinity)", re.IGNORECASE)
_NOT_OF_NUMBERS = re.compile(r"[^0-9+\-.eE\n]")
_INTEGER = re.compile(r"[+-]?(\d+)(?:\.0*)?")
_ZERO_PADDED = re.compile(r"[+-]?0\d+")
_DATE = re.compile(r"(?!0000)\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?")


_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")
"""NUL ends a text in many formats, and a surrogate alone is no character: neither survives being saved."""

_N_SPELLINGS = 2**4 + 2**5
"""Ways to write true and false in capitals and small letters."""


@dataclass(frozen=True)
class Cells:
    """One column as read, before anything is decided.

    Parameters
    ----------
    name : str
    stored : str
        ``text``, ``number``, ``boolean`` (0 and 1) or ``datetime`` (days since 1970-01-01, UTC).
    distinct : array (n_distinct,)
        Distinct observed values, ascending: objects of type str (text), otherwise float64.
    codes : int64 (n_row,)
        Position in `distinct`, -1 where the cell is missing.
    labels : tuple of str
        All labels in their declared order, where the column was stored with one; empty otherwise.
    is_ordered : bool
        Whether that order is one of the values, as of an ordered categorical, and not of the list alone.
    notation : Notation, optional
        How the texts were written from which numbers or days were read, where that was no plain number or ISO date.
    note : str
        What the user should know of how the column was read; empty for nothing.
    excluded : str
        Why the column cannot be modelled, whatever its values; its cells then stand for nothing.
    is_yes_no : bool
        Whether the labels are yes and no.
    tokens : tuple of str
        Words such as ``NA`` that are read as missing in this column of texts.
    token_codes : int64 (n_row,), optional
        Position in `tokens`, -1 in other cells; None where there are no tokens.
    """

    name: str
    stored: str
    distinct: np.ndarray
    codes: np.ndarray
    labels: tuple[str, ...] = ()
    is_ordered: bool = False
    notation: Notation | None = None
    note: str = ""
    excluded: str = ""
    is_yes_no: bool = False
    tokens: tuple[str, ...] = ()
    token_codes: np.ndarray | None = None

    @property
    def n_distinct(self) -> int:
        return len(self.distinct)

    @property
    def n_missing(self) -> int:
        return int((self.codes < 0).sum())

    @property
    def n_observed(self) -> int:
        return self.codes.size - self.n_missing

    def counts(self) -> np.ndarray:
        """Return int64 (n_distinct,): observed cells of each distinct value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.n_distinct)

    def first(self, positions: Iterable[int]) -> tuple[int, Any]:
        """Return (data row counted from 1, value) of the first cell that holds one of some distinct values."""
        row = int(np.flatnonzero(np.isin(self.codes, list(positions)))[0])
        return row + 1, self.distinct[int(self.codes[row])]

    def retold(self, stored: str, values: np.ndarray) -> Cells:
        """Return the same cells with another float64 value, NaN for missing, for each distinct one."""
        values = np.asarray(values, np.float64)
        kept = ~np.isnan(values)
        distinct, inverse = np.unique(values[kept], return_inverse=True)
        codes = np.full(self.n_distinct + 1, -1)
        codes[:-1][kept] = inverse
        return Cells(self.name, stored, distinct, codes[self.codes])


def from_text(name: str, distinct: Sequence[str], codes: np.ndarray) -> Cells:
    """Return the cells of a text column: white space stripped, missing tokens recognised, distinct values sorted."""
    stripped = [text.strip() for text in distinct]
    kept = sorted(set(stripped) - MISSING_TOKENS)
    position = {text: number for number, text in enumerate(kept)}
    renumber = np.array([*(position.get(text, -1) for text in stripped), -1], np.int64)
    token = next((one for one in _NAMIBIAS if one in stripped), "")
    others = kept if token == NAMIBIA else [text.upper() for text in kept if text.islower()]
    place = place_called_na(others) if token and len(others) == len(kept) else ""
    option = f"{name}={token}"
    note = (
        f"{token!r} in column {name!r} is read as missing (if it is {place}, keep_na={option!r}, or --keep-na "
        f"{shlex.quote(option)}, keeps it)"
        if place
        else ""
    )
    tokens = tuple(sorted(MISSING_TOKENS.intersection(stripped) - {""}))
    place_of = {token: number for number, token in enumerate(tokens)}
    token_codes = np.array([*(place_of.get(text, -1) for text in stripped), -1], np.int64)[codes] if tokens else None
    return Cells(
        name, "text", np.array(kept, object), renumber[codes], note=note, tokens=tokens, token_codes=token_codes
    )


def with_tokens(cells: Cells, words: Collection[str]) -> Cells:
    """Return cells of texts in which some of the words that are read as missing are labels.

    Examples
    --------
    >>> with_tokens(from_text("region", ["EU", "NA", ""], np.array([0, 1, 1, 2])), ["NA"]).codes.tolist()
    [0, 1, 1, -1]
    """
    kept = [number for number, token in enumerate(cells.tokens) if token in words]
    if cells.token_codes is None or cells.stored != "text" or cells.labels or not kept:
        return cells
    distinct = sorted([*cells.distinct.tolist(), *(cells.tokens[number] for number in kept)])
    place = {text: number for number, text in enumerate(distinct)}
    codes = np.array([*(place[text] for text in cells.distinct), -1], np.int64)[cells.codes]
    for number in kept:
        codes[cells.token_codes == number] = place[cells.tokens[number]]
    left = tuple(token for token in cells.tokens if token not in words)
    renumber = [left.index(token) if token in left else -1 for token in cells.tokens]
    token_codes = np.array([*renumber, -1], np.int64)[cells.token_codes] if left else None
    return replace(
        cells, distinct=np.array(distinct, object), codes=codes, tokens=left, token_codes=token_codes,
        note="" if any(one in words for one in _NAMIBIAS) else cells.note,
    )  # fmt: skip


def from_floats(name: str, values: np.ndarray, stored: str = "number") -> Cells:
    """Return the cells of a column of float64 (n_row,), NaN where missing."""
    observed = ~np.isnan(values)
    whole = bool(observed.all())
    known = values if whole else values[observed]
    distinct, inverse = _close_integers(known) or np.unique(known + 0.0, return_inverse=True)
    if whole:
        return Cells(name, stored, distinct, inverse)
    codes = np.full(values.size, -1, np.int64)
    codes[observed] = inverse
    return Cells(name, stored, distinct, codes)


def unmasked(values: np.ndarray) -> np.ndarray:
    """Return an array whose masked entries are missing, whatever stands below the mask.

    Examples
    --------
    >>> unmasked(np.ma.masked_equal([1.5, -99.0], -99.0)).tolist(), unmasked(np.ma.masked_equal([1, -99], -99)).tolist()
    ([1.5, nan], [1, None])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if values.dtype.kind in "fmM":
        none = np.array("NaN" if values.dtype.kind == "f" else "NaT", values.dtype)
        return np.where(np.ma.getmaskarray(values), none, values.data)
    if not np.ma.is_masked(values):
        return values.data
    entries = values.data.astype(object)  # whole numbers, truth values and texts have no missing one
    entries[np.ma.getmaskarray(values)] = None
    return entries


def _close_integers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what `numpy.unique` does, with positions, of whole numbers that lie closer than rows are many; else None.

    A table of the numbers between the least and the largest takes their place: nothing is sorted.
    """
    lo, hi = (float(values.min()), float(values.max())) if values.size else (0.0, math.inf)
    if not (hi - lo <= max(values.size, 256) and max(abs(lo), abs(hi)) <= defaults.LARGEST_INTEGER):
        return None
    whole = values.astype(np.int64)
    if not (whole == values).all():
        return None
    whole -= int(lo)
    occurs = np.bincount(whole) > 0
    number = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs) + lo, number[whole]


def name_among(name: str, names: Collection[str]) -> str:
    """Return a name as others spell it, who may have other spaces around it; as it is where none, or several, do.

    Examples
    --------
    >>> name_among("size", [" size", "age"]), name_among("size", ["size", "size "]), name_among("size", ["age"])
    (' size', 'size', 'size')
    """
    if name in names:
        return name
    alike = [other for other in names if other.strip() == name.strip()]
    return alike[0] if len(alike) == 1 else name


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names of columns made distinct: the second ``a`` is ``a_2``.

    Examples
    --------
    >>> distinct_names(["a", "b", "a", "a_2", "a"])
    ['a', 'b', 'a_3', 'a_2', 'a_4']
    """
    taken = set(names)
    seen: set[str] = set()
    made = []
    for name in names:
        if name in seen:
            number = 2
            while f"{name}_{number}" in taken:
                number += 1
            name = f"{name}_{number}"
        seen.add(name)
        taken.add(name)
        made.append(name)
    return made


def renamed_note(old: Sequence[str], new: Sequence[str]) -> str:
    """Return which columns were renamed because another one has their name; empty for none."""
    changed = [
        f"column {position} is {_short(after)!r}, for {_short(before)!r} is the name of column {old.index(before) + 1}"
        for position, (before, after) in enumerate(zip(old, new, strict=True), start=1)
        if before != after
    ]
    more = f"; and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"{'; '.join(changed[:3])}{more}" if changed else ""


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}..."


def without_values(cells: Cells, tokens: Sequence[str]) -> Cells:
    """Return cells with those as missing that some tokens stand for, as a text or as a number."""
    mine = [token.partition("=")[2] if token.startswith(f"{cells.name}=") else token for token in tokens]
    if not mine or cells.excluded:
        return cells
    if set(mine) & set(cells.tokens):  # said to be missing: no question is left
        cells = replace(cells, tokens=(), token_codes=None, note="")
    numbers = {float(token) for token in mine if number_of_text(token) is not None}
    if cells.stored == "text":
        gone = [text in mine or (number_of_text(text) in numbers) for text in cells.distinct]
    else:
        gone = [value in numbers for value in cells.distinct.tolist()]
        gone = [one or label in mine for one, label in zip(gone, labels_of(cells), strict=True)]
    return without_distinct(cells, np.array(gone, bool))


def tokens_of_no_cell(table: Sequence[Cells], tokens: Sequence[str]) -> list[str]:
    """Return those tokens that are the value of no cell, and none that is read as missing anyway."""
    known = MISSING_TOKENS.union(token for cells in table for token in cells.tokens)
    return [
        token
        for token in tokens
        if token not in known
        and token.partition("=")[2] not in known - {""}
        and all(cells.excluded or without_values(cells, [token]).n_distinct == cells.n_distinct for cells in table)
    ]


def without_distinct(cells: Cells, gone: np.ndarray) -> Cells:
    """Return cells with some distinct values, bool (n_distinct,), as missing."""
    if not gone.any():
        return cells
    renumber = np.append(np.where(gone, -1, np.cumsum(~gone) - 1), -1)
    return replace(cells, distinct=cells.distinct[~gone], codes=renumber[cells.codes])


def excluded(name: str, n_row: int, reason: str) -> Cells:
    """Return the cells of a column that cannot be modelled, all of them missing."""
    return Cells(name, "text", np.empty(0, object), np.full(n_row, -1, np.int64), excluded=reason)


def unstorable(text: str) -> bool:
    """Return whether a text holds a NUL character or a lone surrogate.

    Examples
    --------
    >>> [unstorable(text) for text in ("Müller", "a" + chr(0), chr(0xD800))]
    [False, True, True]
    """
    return _UNSTORABLE.search(text) is not None


def number_of_text(text: str) -> float | None:
    """Return the number that a text spells, or None."""
    return float(text) if _NUMBER.fullmatch(text) or _INFINITY.fullmatch(text) else None


def spelled_boolean(cells: Cells) -> Cells | None:
    """Return text cells that say true and false alone, in any case, as booleans; None otherwise.

    Of one spelling each, true and false or TRUE and FALSE, they are labels: answers give the text back.
    """
    written = cells.distinct[:_N_SPELLINGS].tolist()
    lowered = [text.lower() for text in written]
    if cells.n_distinct > _N_SPELLINGS or not set(lowered) <= {"true", "false"}:
        return None
    if set(written) in ({"true", "false"}, {"TRUE", "FALSE"}):
        return None
    return cells.retold("boolean", np.array([float(text == "true") for text in lowered]))


def spelled_number(cells: Cells) -> Cells | None:
    """Return text cells that all spell numbers as numbers; None otherwise."""
    # one search over the joined texts spares a match for each: these characters alone make numbers or nothing
    plain = not _NOT_OF_NUMBERS.search("\n".join(cells.distinct))
    values = np.empty(cells.n_distinct)
    for position, text in enumerate(cells.distinct):
        try:
            value = float(text) if plain else number_of_text(text)
        except ValueError:
            return None
        if value is None:
            return None
        values[position] = value
    return cells.retold("number", values + 0.0) if np.isfinite(values).any() else None


def is_iso_date(text: str) -> bool:
    """Return whether a text looks like an ISO 8601 date, or date and time without zone."""
    return _DATE.fullmatch(text) is not None


def spelled_datetime(cells: Cells) -> Cells | None:
    """Return text cells that are all ISO 8601 dates, or dates and times without zone, as days; None otherwise."""
    if not all(map(is_iso_date, cells.distinct)):
        return None
    try:
        moments = np.array(cells.distinct.tolist(), "datetime64[us]")
    except ValueError:
        return None
    return cells.retold("datetime", days(moments))


def days(moments: np.ndarray) -> np.ndarray:
    """Return float64 days since 1970-01-01, NaN for NaT, of an array of datetime64."""
    ticks = moments.astype("datetime64[us]")
    out = ticks.astype(np.int64) / MICROSECONDS_PER_DAY
    out[np.isnat(ticks)] = np.nan
    return out


def moments(values: np.ndarray) -> np.ndarray:
    """Return datetime64[us] of days since 1970-01-01, NaT for NaN: the inverse of `days`."""
    missing = np.isnan(values)
    ticks = np.rint(np.where(missing, 0.0, values) * MICROSECONDS_PER_DAY).astype(np.int64)
    out = ticks.astype("datetime64[us]")
    out[missing] = np.datetime64("NaT", "us")
    return out


def calendar_moments(values: np.ndarray) -> np.ndarray:
    """Return `moments` of days, those beyond the years 1 to 9999 moved to their ends: likelihoods have tails there."""
    return moments(np.clip(values, LEAST_DAY, LARGEST_DAY))


def dates(values: np.ndarray) -> np.ndarray:
    """Return datetime64[us] of days since 1970-01-01; NaT for NaN, and for what is beyond any date, infinity too."""
    return moments(np.where(np.abs(values) < FARTHEST_DAY, values, np.nan))


def zero_padded(cells: Cells) -> list[int]:
    """Return the distinct texts that are codes with leading zeros, such as ``00501``."""
    return [i for i, text in enumerate(cells.distinct) if text[0] in "0+-" and _ZERO_PADDED.fullmatch(text)]


def inexact(cells: Cells) -> list[int]:
    """Return the distinct texts that spell whole numbers beyond 2^53, which float64 cannot hold."""
    if cells.stored != "text":
        return []
    found = ((i, _INTEGER.fullmatch(text)) for i, text in enumerate(cells.distinct))
    return [i for i, match in found if match and _beyond(match[1])]


def _beyond(digits: str) -> bool:
    size = float(digits)
    return size > defaults.LARGEST_INTEGER or (
        size == defaults.LARGEST_INTEGER and int(digits.lstrip("0")) > defaults.LARGEST_INTEGER
    )


def is_whole(values: np.ndarray) -> bool:
    """Return whether numbers are all whole, and none beyond 2^53 in size."""
    return bool((np.abs(values) <= defaults.LARGEST_INTEGER).all() and (values == np.rint(values)).all())


def number_label(value: float) -> str:
    """Return the label of a number: ``3`` for 3.0, the shortest exact decimal otherwise."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e16 else repr(float(value))


def times_of_day(days: np.ndarray) -> np.ndarray:
    """Return object (n,): the times of parts of a day, to the microsecond; None of 24:00 and what lies outside."""
    counts = np.rint(days * MICROSECONDS_PER_DAY)
    inside = (counts >= 0.0) & (counts < MICROSECONDS_PER_DAY)
    out = np.full(counts.shape, None, object)
    out[inside] = [one.time() for one in counts[inside].astype("datetime64[us]").tolist()]
    return out


def value_label(value: float, stored: str) -> str:
    """Return a number, or the moment of a number of days, as it is shown in a message; infinities are ``inf``."""
    if stored != "datetime" or not LEAST_DAY <= value <= LARGEST_DAY:
        return number_label(value)
    return _moment_label(moments(np.array([value]))[0])


def _moment_label(moment: np.datetime64) -> str:
    """Return the date of a moment, with its time as far as it is not zero."""
    return str(np.datetime_as_string(moment, unit="auto"))


def label_as_stored(label: str, stored: str) -> str | None:
    """Return a label as cells that are stored in some way spell it; None where it cannot be one of theirs."""
    if stored == "boolean":
        return {"true": "True", "false": "False"}.get(label.lower())
    if stored == "number":
        value = number_of_text(label)
        return None if value is None or not np.isfinite(value) else number_label(value)
    if stored == "datetime":
        try:
            return _moment_label(np.datetime64(label, "us")) if _DATE.fullmatch(label) else None
        except ValueError:
            return None
    return label


def labels_of(cells: Cells) -> list[str]:
    """Return the label of each distinct value."""
    if cells.stored == "text":
        return cells.distinct.tolist()
    if cells.stored == "boolean":
        return ["True" if value else "False" for value in cells.distinct]
    if cells.stored == "datetime":
        return [_moment_label(moment) for moment in moments(cells.distinct)]
    return [number_label(value) for value in cells.distinct]
