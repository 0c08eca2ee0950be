"""Numbers as people write them: ``1.798,28``, ``$12,345.67``, ``CHF 69'971.-``, ``(1 200)``, ``12,3 %``, ``170 cm``.

What a mark means is decided on the whole column: ``1,234`` alone may be either number, beside ``12,5`` it is not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

GROUP_MARKS = ("", ",", ".", " ", "'")
"""What may stand between thousands."""

_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'", "\u2212": "-", "\u2013": "-"})  # noqa: RUF001 - people type them
_POWERS = str.maketrans("²³", "23")
_CORE = re.compile(r"\d[\d.,' ]*\d(?:[eE][+-]?\d+)?|\d(?:[eE][+-]?\d+)?|[.,]\d+")
_PLAIN = re.compile(r"(-?)(\d(?:[\d.,]*\d)?)")
"""Most numbers, whose parts are seen at once."""
_WITH_POINT = re.compile(r"-?(?:0|[1-9]\d*)(?:\.(\d+))?")
_FOOTNOTE = re.compile(r"(?<=\d)(?:\[(?:[a-z]|\d{1,2})\])+$")
"""What encyclopedias put behind a number, which is none of its unit: 1,204[a]."""
_BEFORE = re.compile(r"(?P<open>\(?) *(?P<sign>[+-]?) *(?P<prefix>[^\s()+-]*(?:\.)?)(?P<gap> *)(?P<inner>[+(-]?) *")
_AFTER = re.compile(
    r"(?P<early>\)?)(?P<gap> *)"
    r"(?P<suffix>[.,]-{1,2}|(?:/(?=[^\W\d_]{2}))?"
    r"[^\s\d()+.,;:'\"#&=/_-][^\d()+,;:'\"#&=-]{0,14}[23]?)??(?P<trail> ?[-+]?)(?P<close> *\)?)"
)
_CURRENCY = frozenset(
    """
    usd eur gbp chf jpy cny rmb inr aud cad nzd sek nok dkk isk pln czk huf ron bgn try rub uah brl mxn ars clp cop pen
    zar egp ils aed sar krw twd hkd sgd thb idr myr php vnd btc tl us$ c$ ca$ a$ au$ nz$ hk$ s$ r$ mx$ kr kr. fr fr. sfr
    sfr. rs rs. zł kč ft lei lv dm dm. dollar dollars euro euros .- .-- ,- ,--
    """.split()  # noqa: SIM905 - a line for each would say no more
)
_PATTERNS = {
    (decimal, group): re.compile(
        (rf"(?:\d+|[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{2,3}})*{re.escape(group)}\d{{3}})" if group else r"\d+")
        + rf"(?:{re.escape(decimal)}\d*)?(?:[eE][+-]?\d+)?|{re.escape(decimal)}\d+(?:[eE][+-]?\d+)?"
    )
    for decimal in ".,"
    for group in GROUP_MARKS
    if group != decimal
}
PADDED = re.compile(r"0\d")
_MOST_DIGITS = 400
"""Behind a decimal mark; float64 has no more."""

_LEAST_PLAIN = 3
"""Different numbers without a mark from which their sizes are evidence."""

_SHORTEST_SINGULAR, _PLURAL = 3, 2
"""Letters of a word for one thing, and those that its plural adds at most: day, days; Jahr, Jahre; mes, meses."""

_N_FIRST = 50
"""Texts that are looked at before all are."""

_SIGNED = "+-"
_SIGNS = {"(": "parentheses for negative", "trailing": "minus behind the number", _SIGNED: "a plus above 0"}


@dataclass(frozen=True)
class NumberNotation:
    """How a column spells its numbers.

    Parameters
    ----------
    decimal : str
        ``.`` or ``,``.
    group : str
        What stands between thousands; empty for nothing.
    prefix, suffix : str
        Around each number, a space to it included: ``$``, `` cm``.
    digits : int
        Digits behind the decimal mark, where all numbers have as many; -1 where they differ.
    negative : str
        ``-``, ``(`` for parentheses, ``trailing`` for a minus behind the number, or ``+-`` where numbers above 0 have a
        plus.
    single : str
        The suffix of 1, where it is another: `` day`` beside `` days``; empty elsewhere.
    """

    decimal: str = "."
    group: str = ""
    prefix: str = ""
    suffix: str = ""
    digits: int = -1
    negative: str = "-"
    single: str = ""

    def __post_init__(self):
        known = (self.decimal, self.group) in _PATTERNS and self.negative in ("-", "(", "trailing", _SIGNED)
        if not known or not -1 <= self.digits <= _MOST_DIGITS:
            raise ValueError(f"notation of numbers with {self.decimal!r} and {self.group!r}")

    @property
    def is_plain(self) -> bool:
        """Whether numbers are plain decimals, all with as many digits."""
        return replace(self, digits=-1) == NumberNotation()

    def value(self, text: str) -> float | None:
        """Return the number that a text spells in this way, None for another text.

        The sign and what is written around the number may be left out.

        Examples
        --------
        >>> NumberNotation(",", ".", suffix=" €").value("-1.798,28 €")
        -1798.28
        >>> NumberNotation(suffix="%").value("12.5"), NumberNotation(suffix="%").value("12.5 cm")
        (12.5, None)
        """
        parts = parted_of(text)
        if parts is None or parts.prefix.strip().casefold() not in ("", self.prefix.strip().casefold()):
            return None
        unit, own = _unit(parts.suffix), _unit(self.suffix)
        if unit not in ("", own) and not (parts.core == "1" and _is_plural(own, unit)):
            return None
        if parts.below == _PLUS_BEHIND and self.negative != "trailing":
            return None
        if not _PATTERNS[self.decimal, self.group].fullmatch(parts.core):
            return None
        return _value(parts, self.decimal, self.group)

    def text(self, value: float) -> str:
        """Return a number as the column spells it.

        Examples
        --------
        >>> NumberNotation(".", ",", prefix="$", digits=2, negative="(").text(-12345.6)
        '($12,345.60)'
        """
        size = abs(value)
        if not np.isfinite(value):
            return str(value)
        if self.digits >= 0:
            written = f"{size:,.{self.digits}f}"
        else:
            written = np.format_float_positional(size, trim="-") if size < 1e16 else repr(size)
            whole, point, rest = written.partition(".")
            written = f"{int(whole):,}{point}{rest}" if whole.isdigit() else written
        written = written.translate(str.maketrans({",": self.group, ".": self.decimal}))
        below = value < 0.0
        before = "-" if below and self.negative in ("-", _SIGNED) else ""
        before = "+" if value > 0.0 and self.negative == _SIGNED else before
        suffix = self.single if self.single and size == 1.0 else self.suffix
        signed = f"{before}{self.prefix}{written}{suffix}"
        if below and self.negative == "(":
            return f"({signed})"
        return f"{signed}-" if below and self.negative == "trailing" else signed

    def in_words(self) -> str:
        """Return how numbers are written, for the reason of a decision; empty for plain ones with other minus signs."""
        forms = []
        if self.decimal == ",":
            forms.append("decimal comma")
        if self.group:
            names = {",": "commas", ".": "points", " ": "spaces", "'": "apostrophes"}
            forms.append(f"{names[self.group]} between thousands")
        if self.negative in _SIGNS:
            forms.append(_SIGNS[self.negative])
        unit = " ".join(part.strip() for part in (self.prefix, self.suffix) if part.strip(" .,-"))
        unit_words = ["in " + unit] if unit else []
        words = [*unit_words, *(["with " + " and ".join(forms)] if forms else [])]
        return f"written {' '.join(words)}" if words else ""


_PLUS_BEHIND, _PLUS = "+", "plus"
"""In place of how a number below 0 is told: one above 0 whose sign stands behind it, or before it."""


@dataclass(frozen=True)
class Parted:
    """A text in its parts: what is around a number, its sign, and its digits with marks."""

    core: str
    prefix: str
    suffix: str
    below: str


def parted_of(text: str) -> Parted | None:
    """Return the parts of a text that holds one number, None for another text."""
    known = _PLAIN.fullmatch(text)
    if known is not None:
        return Parted(known[2], "", "", known[1])
    plain = _FOOTNOTE.sub("", text.translate(_SPACES).strip())
    found = _CORE.search(plain)
    if found is None:
        return None
    before, after = _BEFORE.fullmatch(plain[: found.start()]), _AFTER.fullmatch(plain[found.end() :])
    if before is None or after is None:
        return None
    # a unit stands within the parentheses or beside them: (5 EUR), (5) EUR, $(5)
    opened = before["open"] + before["inner"].strip("+-")
    if len(opened) != len((after["early"] + after["close"]).strip()) or len(opened) > 1:
        return None
    signs = [sign for sign in (before["sign"], before["inner"].strip("("), after["trail"].strip()) if sign]
    if len(signs) > 1 or (signs and opened):
        return None
    prefix, suffix = before["prefix"], (after["suffix"] or "").rstrip()
    if prefix and prefix != "%" and not is_currency(prefix):  # %65 is how percentages are written in Turkish
        return None
    behind = {"-": "trailing", "+": _PLUS_BEHIND}.get(after["trail"].strip(), "")
    below = "(" if opened else behind or {"-": "-", "+": _PLUS}.get("".join(signs), "")
    gap = after["gap"] if suffix else ""
    return Parted(found[0], f"{prefix}{before['gap'] if prefix else ''}", f"{gap}{suffix}", below)


def is_currency(text: str) -> bool:
    """Return whether a text is a sign or code of a currency.

    Examples
    --------
    >>> [is_currency(text) for text in ("$", "EUR", "Fr.", "A")]
    [True, True, True, False]
    """
    return text.casefold() in _CURRENCY or (len(text) == 1 and unicodedata.category(text) == "Sc")


def _unit(suffix: str) -> str:
    """Return a unit as it is compared: m² and m2 are the same."""
    return suffix.strip().translate(_POWERS)


def _value(parts: Parted, decimal: str, group: str) -> float:
    digits = parts.core.replace(group, "") if group else parts.core
    size = float(digits.replace(decimal, "."))
    return -size if parts.below not in ("", _PLUS_BEHIND, _PLUS) else size


def plain_notation(texts: Iterable[str]) -> NumberNotation | None:
    """Return the notation of plain numbers with as many digits each, a zero last in some, or with signs; else None.

    Examples
    --------
    >>> plain_notation(["9.40", "-12.05"]).text(9.4), plain_notation(["9.4", "12.05"]), plain_notation(["9", "12"])
    ('9.40', None, None)
    >>> plain_notation(["+1.5", "-2", "0"]).text(1.5), plain_notation(["+1", "2"])
    ('+1.5', None)
    """
    digits, has_zero, signs = set[int](), False, set[str]()
    for text in texts:
        bare = text.removeprefix("+")
        known = _WITH_POINT.fullmatch(bare)
        digits.add(len((known and known[1]) or ""))
        has_zero = has_zero or text.endswith("0")
        if known is None or bare.strip("0."):  # 0 has a sign or none
            signs.add(text[0] if known is not None else "")
        if len(digits) > 1 and not signs <= {"+", "-"}:
            return None
    same = min(digits.pop(), _MOST_DIGITS) if len(digits) == 1 else -1
    if "+" in signs and signs <= {"+", "-"}:
        return NumberNotation(digits=same, negative=_SIGNED)
    return NumberNotation(digits=same) if has_zero and same > 0 else None


@dataclass(frozen=True)
class NumberReadings:
    """The ways in which all texts of a column can be read as numbers.

    Parameters
    ----------
    notations : tuple of NumberNotation
        Those that give different numbers; one where there is no doubt.
    values : tuple of float64 (n_text,)
        What each reads.
    example : str
        A text that they read differently; empty for none.
    tells_decimal : str
        The decimal mark that the column shows beyond doubt; empty where it shows none.
    likely_decimal : str
        Of two readings, the decimal mark of the one that the sizes of the numbers speak for; empty for neither.
    """

    notations: tuple[NumberNotation, ...]
    values: tuple[np.ndarray, ...]
    example: str = ""
    tells_decimal: str = ""
    likely_decimal: str = ""


def number_readings(texts: Sequence[str]) -> NumberReadings | None:
    """Return the ways to read all texts of a column as numbers; None where one of them is none.

    Parameters
    ----------
    texts : sequence of str (n_text,)
        Distinct, white space stripped, none empty.

    Examples
    --------
    >>> found = number_readings(["250", "990", "1,250", "412", "2,007"])
    >>> [values.tolist()[2] for values in found.values], found.likely_decimal
    ([1250.0, 1.25], '.')
    """
    if not texts or any(parted_of(text) is None for text in texts[:_N_FIRST]):
        return None
    parted: list[Parted] = []
    for text in texts:
        parts = parted_of(text)
        if parts is None or PADDED.match(parts.core):
            return None
        parted.append(parts)
    around = _around(parted)
    if around is None or _is_open_ended(parted):
        return None
    cores = [parts.core for parts in parted]
    fitting = [marks for marks, pattern in _PATTERNS.items() if all(map(pattern.fullmatch, cores))]
    bare = {decimal for decimal, group in fitting if not group}
    fitting = [(decimal, group) for decimal, group in fitting if not group or decimal not in bare]
    made: list[tuple[NumberNotation, np.ndarray]] = []
    for decimal, group in fitting:
        values = np.array([_value(parts, decimal, group) for parts in parted])
        if not any(np.array_equal(values, other) for _, other in made):
            digits = _digits(cores, decimal)
            prefix, suffix, single = around
            made.append((NumberNotation(decimal, group, prefix, suffix, digits, _negative(parted), single), values))
    if not made:
        return None
    used = {notation.decimal for notation, _ in made}
    marked = any("," in core or "." in core for core in cores)
    example = ""
    if len(made) > 1:
        example = texts[int(np.flatnonzero(made[0][1] != made[1][1])[0])]
    tells = used.pop() if marked and len(used) == 1 else ""
    likely = _likely_decimal(made, np.array(["," in core or "." in core for core in cores])) if example else ""
    return NumberReadings(tuple(one for one, _ in made), tuple(values for _, values in made), example, tells, likely)


def _likely_decimal(readings: Sequence[tuple[NumberNotation, np.ndarray]], marked: np.ndarray) -> str:
    """Return the decimal mark of the reading in which numbers with a mark continue those without one.

    Whole numbers of three digits beside ``1,250`` are thousands that begin at 1,000: were the comma a decimal mark,
    numbers of a column would lie around 1 where they have decimals, and in the hundreds where they happen to have none.
    """
    if (~marked).sum() < _LEAST_PLAIN or not marked.any():
        return ""
    plain = np.abs(readings[0][1][~marked])
    grouped = [k for k, (notation, _) in enumerate(readings) if notation.group]
    decimals = [k for k in range(len(readings)) if k not in grouped]
    if len(grouped) != 1 or not decimals or plain.max() >= 1_000.0:
        return ""
    beyond = np.abs(readings[decimals[0]][1][marked]).max()
    return readings[grouped[0]][0].decimal if np.median(plain) > beyond else ""


def plain_decimal(texts: Sequence[str]) -> str | None:
    """Return `NumberReadings.tells_decimal` of texts that are plain numbers; None where that takes a closer look.

    A point before other than three digits parts no thousands.

    Examples
    --------
    >>> plain_decimal(["1.25", "-3"]), plain_decimal(["7", "-3"]), plain_decimal(["1.250"]), plain_decimal(["$1.2"])
    ('.', '', None, None)
    """
    n_digit: set[int] = set()
    for text in texts:
        known = _WITH_POINT.fullmatch(text)
        if known is None:
            return None
        n_digit.add(len(known[1] or ""))
    if n_digit <= {0}:
        return ""
    return None if n_digit <= {0, 3} else "."


def _around(parted: Sequence[Parted]) -> tuple[str, str, str] | None:
    """Return prefix and suffix of a column, and the suffix of 1; None where there are several of one of them."""
    prefixes, suffixes = (sorted({getattr(parts, name) for parts in parted} - {""}) for name in ("prefix", "suffix"))
    if len({one.strip().casefold() for one in prefixes}) > 1:
        return None
    if len(set(map(_unit, suffixes))) > 1:
        single, *others = sorted(suffixes, key=len)
        return ((prefixes or [""])[0], others[0], single) if _is_of_one(single, others, parted) else None
    return (prefixes or [""])[0], (suffixes or [""])[0], ""


def _is_of_one(single: str, others: Sequence[str], parted: Sequence[Parted]) -> bool:
    """Return whether a suffix, such as day, stands behind 1 alone, and its plural, such as days, behind all others."""
    one, several = _unit(single), {*map(_unit, others)}
    if len(several) > 1 or not _is_plural(several.pop(), one):
        return False
    return all((parts.core == "1") == (_unit(parts.suffix) == one) for parts in parted if parts.suffix)


def _is_plural(unit: str, singular: str) -> bool:
    """Return whether a unit is the plural of a word: days of day, Jahre of Jahr, meses of mes; never mm of m."""
    n_more = len(unit) - len(singular)
    return len(singular) >= _SHORTEST_SINGULAR and 0 < n_more <= _PLURAL and unit.startswith(singular)


def _digits(cores: Sequence[str], decimal: str) -> int:
    found = {len(core.partition(decimal)[2]) for core in cores}
    return min(found.pop(), _MOST_DIGITS) if len(found) == 1 and not any("e" in core.lower() for core in cores) else -1


def _is_open_ended(parted: Iterable[Parted]) -> bool:
    """Return whether a plus behind numbers is no sign: 12+ and 7- are numbers, 65+ is none, nor are 2+ and 2."""
    kept = list(parted)
    found = {parts.below for parts in kept}
    unsigned = any(parts.below == "" and parts.core.strip("0.,") for parts in kept)
    return _PLUS_BEHIND in found and ("trailing" not in found or unsigned)


def _negative(parted: Iterable[Parted]) -> str:
    kept = list(parted)
    found = {parts.below for parts in kept} - {"", _PLUS_BEHIND}
    if _PLUS in found and all(parts.below in ("-", _PLUS) or not parts.core.strip("0.,") for parts in kept):
        return _SIGNED
    return next((style for style in ("-", "(", "trailing") if style in found), "-")
