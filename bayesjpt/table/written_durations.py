"""Lengths of time as people write them: ``7h 20m``, ``2h28``, ``1:05.33``, ``37:20``, ``2 days 04:05:06``, ``4:57/km``.

What the first number of ``12:10`` counts is decided on the whole column: beside ``1:02:33`` it is minutes, beside
``14:02:33`` hours of a day.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_NAMES = {
    86_400.0: "d day days tag tage tagen t j jour jours dia dias día días",
    3_600.0: "h hr hrs hour hours std std. stunde stunden heure heures hora horas",
    60.0: "m min mins min. minute minutes minuten minuto minutos",
    1.0: "s sec secs sec. sek sek. second seconds sekunde sekunden seconde secondes segundo segundos",
}
_SECONDS = {name: seconds for seconds, names in _NAMES.items() for name in names.split()}
_IN_WORDS = {86_400.0: "days", 3_600.0: "hours", 60.0: "minutes", 1.0: "seconds"}

_WORDS = re.compile(r"(?:\d{1,6} ?[^\W\d_]{1,8}\.?,? ?){1,4}")
_PART = re.compile(r"(\d+)( ?)([^\W\d_]+\.?)(,? ?)")
_H00 = "0h00"
_PLUS = "+"
_DAYS, _PER = r" ?d(?:ays?)?,?", r" ?(?:min)?/[^\W\d_]{1,5}"
_COLONS = re.compile(
    rf"(?:(?P<d>\d{{1,6}})(?P<name>{_DAYS}) )?(?:(?P<a>\d{{1,6}}):)?"
    rf"(?P<b>\d{{1,6}}):(?P<c>\d{{2}})(?:\.(?P<f>\d{{1,9}}))?(?P<per>{_PER})?"
)
_HOURS = re.compile(r"(\d{1,4})h(\d{2})?")
_PATTERN = re.compile(
    rf"\+?(?:(?P<days>d |0(?P<name>{_DAYS}) )?(?P<marks>hh?:mm:ss|mm?:ss|00?:00)(?P<fraction>\.0{{1,9}})?"
    rf"(?P<per>{_PER})?|{_H00}|(?P<units>(?:(?:00?|1) ?[^\W\d_]{{1,8}}\.?,? ?){{1,4}}))"
)
_ONE_DIGIT_HOURS = re.compile(r"[1-9]:")

_NAMED = (
    "duration durations elapsed runtime laptime lap pace taken dauer laufzeit fahrzeit fahrtzeit reisezeit wartezeit "
    "rundenzeit nettozeit bruttozeit zielzeit bearbeitungszeit durée duree durata duración duracion duração duracao "
    "duur"
)
_CALLED = frozenset(_NAMED.split())
_TIME = r"(?:time|zeit|temps|tiempo|tempo|tijd)"
_UNIT = r"(?:hh?:mm(?::ss)?|mm?:ss|h|hrs?|hours|std|m|min|mins|minutes|minuten|s|sec|secs|seconds|sek)"
_CALLED_TIME = re.compile(
    rf"\b(?:travel|run|running|race|lap|wait|waiting|response|net|gun|chip)[ _-]?{_TIME}\b"
    rf"|{_TIME}[ _]*[(\[_]{_UNIT}\b|[^\W\d_]dauer\b"
)
"""Words that call a length of time by its name, and ``time`` with a unit, which a time of day has not."""

_OF_UTC = re.compile(r"[+-]\d{1,2}:(?:00|15|30|45)")
"""Offsets of time zones are no lengths."""

_FEWEST_TEXTS = 5
_SHORT, _SHORT_OF_ONE_DIGIT = 3, 6
"""Hours below which times with seconds are lengths when all are, and when they are written without a zero before, of
a few texts at least: nothing is logged to the second in some hours of the night alone, and runners take so long."""

_LONGEST = 80
"""Characters of a duration; parts are not looked for in longer texts."""


@dataclass(frozen=True)
class DurationNotation:
    """How a column spells lengths of time.

    Parameters
    ----------
    pattern : str
        ``h:mm:ss``, ``hh:mm:ss``, ``m:ss``, ``mm:ss`` or, where nothing tells what is counted, ``0:00``, ``00:00``,
        with ``d `` (for days), ``0d `` or the like before where days are, ``.00`` behind for parts of a second, and
        ``/km`` or the like for a pace; or ``0h00``; or a text with units whose numbers are 0, such as ``0h 0m``, 1
        where they are told even if they are 0, and 00 where they have two digits. With a plus before it, where gaps
        above 0 have one.
    """

    pattern: str

    def __post_init__(self):
        found = _PATTERN.fullmatch(self.pattern)
        if found is None or (found["units"] and _units(found["units"]) is None):
            raise ValueError(f"pattern {self.pattern!r} of durations")

    @property
    def unit(self) -> float:
        """Seconds of the unit in which values are: that of the last number."""
        units = _units(self._unsigned)
        return 60.0 if self._unsigned == _H00 else units[-1] if units else 1.0

    @property
    def _unsigned(self) -> str:
        return self.pattern.removeprefix(_PLUS)

    def value(self, text: str) -> float | None:
        """Return the duration that a text spells, in the unit of the last number; None where it spells none.

        Examples
        --------
        >>> DurationNotation("0h 0m").value("7h 20m"), DurationNotation("0h 0m").value("45m")
        (440.0, 45.0)
        >>> DurationNotation("m:ss.00").value("1:05.33"), DurationNotation("0:00").value("37:20")
        (65.33, 2240.0)
        """
        bare = _without_sign(text)
        seconds, found, own = _seconds(bare), _COLONS.fullmatch(bare), _PATTERN.fullmatch(self.pattern)
        if seconds is None or own is None or (found is not None and found["per"] not in (None, own["per"])):
            return None
        return (-seconds if text.startswith("-") else seconds) / self.unit

    def text(self, value: float) -> str:
        """Return a duration as the column spells it; of units those that are 0 may be left out.

        Examples
        --------
        >>> DurationNotation("0h 0m").text(440.0), DurationNotation("m:ss.00").text(65.33)
        ('7h 20m', '1:05.33')
        """
        if not np.isfinite(value):
            return str(value)
        plus = _PLUS if value > 0.0 and self.pattern.startswith(_PLUS) else ""
        sign, size = "-" if value < 0.0 else plus, abs(value) * self.unit
        found = _PATTERN.fullmatch(self.pattern)
        assert found is not None
        if self._unsigned == _H00:
            hours, minutes = divmod(round(size / 60.0), 60)
            return f"{sign}{hours}h{minutes:02}"
        if found["units"]:
            return sign + self._with_units(size)
        n_digit = len(found["fraction"] or ".") - 1
        whole, fraction = divmod(round(size * 10**n_digit), 10**n_digit)
        days, whole = divmod(whole, 86_400) if found["days"] else (0, whole)
        minutes, last = divmod(whole, 60)
        hours, middle = divmod(minutes, 60)
        width = found["marks"].index(":")
        has_hours = "h" in found["marks"]
        written = f"{hours:0{width}}:{middle:02}:{last:02}" if has_hours else f"{minutes:0{width}}:{last:02}"
        behind = (f".{fraction:0{n_digit}}" if n_digit else "") + (found["per"] or "")
        return f"{sign}{_days_text(days, found['name'] or ' days') if found['days'] else ''}{written}{behind}"

    def _with_units(self, size: float) -> str:
        units = _units(self._unsigned)
        assert units is not None
        rest, parts = round(size / units[-1]), []
        for unit, (form, gap, name, behind) in zip(units, _PART.findall(self._unsigned), strict=True):
            number, rest = divmod(rest, round(unit / units[-1]))
            parts.append((number or form != "0", f"{number:0{len(form)}}{gap}{name}", behind))
        kept = [part for part in parts if part[0]] or parts[-1:]
        return "".join(f"{written}{behind}" for _, written, behind in kept[:-1]) + kept[-1][1]

    def in_words(self) -> str:
        """Return how durations are written, for the reason of a decision."""
        example = self.text(5_000.0 if self.unit == 1.0 else 440.0)
        counted = "sixtieths" if self._unsigned in ("0:00", "00:00") else _IN_WORDS[self.unit]
        return f"written as {example}, in {counted}"


def are_race_times(texts: Sequence[str]) -> bool:
    """Return whether texts of minutes and seconds stand beside some of hours, of one digit, minutes and seconds.

    Each of them may be a time of day, but those are written with seconds or without.

    Examples
    --------
    >>> are_race_times(["12:10", "1:02:33"]), are_race_times(["12:10", "14:02:33"]), are_race_times(["12:10", "9:10"])
    (True, False, False)
    """
    with_hours = [text for text in texts if text.count(":") == 2]
    return 0 < len(with_hours) < len(texts) and all(map(_ONE_DIGIT_HOURS.match, with_hours))


def are_lengths(texts: Sequence[str], name: str) -> bool:
    """Return whether texts that may be times of day are lengths of time: by the column's name, or since all are short.

    Examples
    --------
    >>> are_lengths(["1:10", "0:45"], "Dauer"), are_lengths(["13:10", "18:45"], "Zeit (min)")
    (True, True)
    >>> are_lengths(["1:10", "0:45"], "start"), are_lengths([f"2:{k}:09" for k in range(10, 50)], "Marathon")
    (False, True)
    """
    words = re.findall(r"[^\W\d_]+", name.casefold())
    if not _CALLED.isdisjoint(words) or _CALLED_TIME.search(name.casefold()):
        return True
    if len(texts) < _FEWEST_TEXTS or any(text.count(":") != 2 for text in texts):
        return False
    limit = _SHORT_OF_ONE_DIGIT if all(text[1] == ":" for text in texts) else _SHORT
    return all(int(text.partition(":")[0]) < limit for text in texts)


def duration_readings(texts: Sequence[str]) -> tuple[DurationNotation, np.ndarray] | None:
    """Return how all texts of a column spell durations, and their values; None where one spells none.

    Numbers with one unit alone, such as 45m, are none: those are read as numbers.

    Examples
    --------
    >>> duration_readings(["7h 20m", "45m"])
    (DurationNotation(pattern='0h 0m'), array([440.,  45.]))
    >>> duration_readings(["59:10", "1:02:33"])[0].pattern, duration_readings(["45m", "5m"])
    ('h:mm:ss', None)
    """
    if not len(texts) or max(map(len, texts)) > _LONGEST:
        return None
    plus = _plus_of(texts)
    bare = [_without_sign(text) for text in texts]
    colons = [_COLONS.fullmatch(text) for text in bare]
    if all(colons):
        pattern = _pattern_of_colons([one for one in colons if one is not None])
    elif any(colons):
        return None
    else:
        pattern = _pattern_of_units(bare)
    if pattern is None or plus is None:
        return None
    notation = DurationNotation(plus + pattern)
    values = [notation.value(text) for text in texts]
    return None if None in values else (notation, np.array(values, np.float64))


def _without_sign(text: str) -> str:
    return text[1:] if text[:1] in ("+", "-") else text


def _plus_of(texts: Sequence[str]) -> str | None:
    """Return the plus that texts above 0 have; empty where none has, None where only some have or all are offsets."""
    signs = {text[:1] for text in texts if text[:1] in ("+", "-") or re.search("[1-9]", text)}
    if not signs & {"+", "-"}:
        return ""
    if all(map(_OF_UTC.fullmatch, texts)) or (_PLUS in signs and signs - {"+", "-"}):
        return None
    return _PLUS if _PLUS in signs else ""


def _pattern_of_colons(found: Sequence[re.Match]) -> str | None:
    digits = max(len(one["f"] or "") for one in found)
    hours = [one["a"] for one in found if one["a"]]
    names = {one["name"] for one in found if one["name"]}
    per = {one["per"] or "" for one in found}
    if (names and not all(one["a"] for one in found)) or len(per) > 1:
        return None
    first = hours or [one["b"] for one in found]
    has_zero = len({*map(len, first)}) == 1 and any(one[0] == "0" and len(one) == 2 for one in first)
    name = max(names, key=len, default="")
    days = "" if not names else "d " if name in (" day", " days") else f"0{name} "
    marks = "h:mm:ss" if hours else "m:ss" if digits or per != {""} else "0:00"
    marks = marks[0] + marks if has_zero else marks
    return f"{days}{marks}{'.' + digits * '0' if digits else ''}{per.pop()}"


def _days_text(days: int, name: str) -> str:
    """Return days before hours: ``2d ``, ``2 days ``; as Python writes them, ``1 day, ``, and none of 0 days."""
    if not name.endswith(","):
        return f"{days}{name} "
    return "" if days == 0 else f"{days}{name.replace('days', 'day') if days == 1 else name} "


def _pattern_of_units(texts: Sequence[str]) -> str | None:
    """Return the text with the most units, its numbers 0, 1 or 00; None where none has two, or some text one more.

    Of hours and minutes as 2h28, ``0h00``.
    """
    hours = [_HOURS.fullmatch(text) for text in texts]
    if all(hours) and any(one[2] for one in hours if one):
        return _H00
    longest = max(texts, key=lambda text: len(_PART.findall(text)))
    own = _units(longest)
    if own is None or len(own) < 2:
        return None
    if not all(set(_units(text) or (0.0,)) <= set(own) for text in texts):
        return None
    written: dict[float, list[str]] = {unit: [] for unit in own}
    for text in texts:
        for unit, (number, *_) in zip(_units(text) or (), _PART.findall(text), strict=True):
            written[unit].append(number)
    forms = iter([_form(numbers, len(texts)) for numbers in written.values()])
    return re.sub(r"\d+", lambda _: next(forms), longest)


def _form(numbers: Sequence[str], n_text: int) -> str:
    """Return how the numbers of a unit are written: 00 with two digits, 1 where they are told even if 0, else 0."""
    if all(len(number) == 2 for number in numbers) and any(number[0] == "0" for number in numbers):
        return "00"
    return "1" if len(numbers) == n_text and "0" in numbers else "0"


def _units(text: str) -> tuple[float, ...] | None:
    """Return the seconds of each unit of a text such as 7h 20m, which must fall; None for another text."""
    if not _WORDS.fullmatch(text):
        return None
    units = tuple(_SECONDS.get(name.casefold(), 0.0) for _, _, name, _ in _PART.findall(text))
    falls = all(before > after for before, after in pairwise(units))
    return units if units and falls and all(units) else None


def _seconds(text: str) -> float | None:
    """Return the seconds of a text, where the second of two numbers counts them; None where it spells no duration."""
    found, hours = _COLONS.fullmatch(text), _HOURS.fullmatch(text)
    if hours is not None:
        return 3_600.0 * int(hours[1]) + 60.0 * int(hours[2] or 0) if int(hours[2] or 0) < 60 else None
    if found is None:
        units = _units(text)
        if units is None:
            return None
        return sum(float(number) * unit for (number, *_), unit in zip(_PART.findall(text), units, strict=True))
    if int(found["c"]) > 59 or (found["a"] and int(found["b"]) > 59):
        return None
    whole = 86_400 * int(found["d"] or 0) + 3_600 * int(found["a"] or 0) + 60 * int(found["b"]) + int(found["c"])
    return float(f"{whole}.{found['f'] or 0}")
