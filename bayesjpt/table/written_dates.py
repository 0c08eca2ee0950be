"""Dates and times as people write them: ``28.02.2024``, ``2/28/24 1:05 PM``, ``28. Februar 2024``, ``14:30``.

Which number is the day is decided on the whole column: a 28 in one cell tells for all. Numbers such as 20240228, and
seconds since 1970, are dates where somebody says so.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bayesjpt.table.cells import number_label, number_of_text

_MONTHS = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
MONTHS = {language: tuple(names.split()) for language, names in _MONTHS.items()}
_SHORT = {
    "märz": ("mrz", "mär"),
    "juillet": ("juil",),
    "maart": ("mrt",),
    "september": ("sept",),
    "settembre": ("set",),
}

_TIME = (
    r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d{1,6}))?)?"
    r"(?P<ap> ?[AaPp]\.?[Mm]\.?)?(?: ?(?P<z>Z|UTC|GMT|[+-]\d{2}:?\d{2}))?(?: (?:Uhr|h))?"
)
_AT = rf"(?:(?:,? +|T|(?<=\d{{4}}):){_TIME})?"
_WEEKDAY = r"(?:(?i:mo|tu|we|th|fr|sa|su|di|mi|do|so|lu|ma|me|je|ve|vi|mi|ju|do|gi|wo|za|zo)[^\W\d_]{0,8}\.?,? +)?"
"""First letters of the days of the week in the languages of months."""
_NUMERIC = re.compile(rf"{_WEEKDAY}(?P<a>\d{{1,4}})(?P<s>\. ?|[/ -])(?P<b>\d{{1,2}})(?P=s)(?P<c>\d{{1,4}})\.?{_AT}")
_DAY_NAME = re.compile(
    rf"{_WEEKDAY}(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|º)?(?P<s>\. ?| de | of |[ /-]|(?=[^\W\d]))(?P<n>[^\W\d_]+)\.?,?"
    rf"(?:[ /-]| de | of )(?P<y>\d{{4}}|\d{{2}}){_AT}"
)
_NAME_DAY = re.compile(
    rf"{_WEEKDAY}(?P<n>[^\W\d_]+)\.?(?P<s>[ -])(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?[ -](?P<y>\d{{4}}){_AT}"
)
_MONTH = re.compile(
    r"(?P<n>[^\W\d_]+)\.?(?P<s>[ /'-])(?P<y>\d{4}|(?<! )\d{2})"
    r"|(?P<m>\d{2}|\d(?=/(?:19|20)\d\d))(?P<s2>[/-])(?P<y2>\d{4})"
)
_YEAR_MONTH = re.compile(r"(?P<y>\d{4})(?P<s>[/-])(?P<m>\d{2})")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_CLOCK = re.compile(_TIME)
_MICROSECOND = re.compile(r":\d\d[.,]\d{4}")
ORDERS = ("ymd", "dmy", "mdy")
FIRST_YEAR = 1969
"""Of the hundred years that two digits stand for in POSIX."""
_MOST_YEARS, _MONTHS_A_YEAR = 16, 4
"""Years of a column of Jan-20, and months of each on average, from which 20 is no day."""
_PAST, _FUTURE = 2000, 2040
"""Years of one column, before and after which it holds dates of birth rather than dates to come."""
DIGITS, EPOCH = "digits", "epoch"
COUNTED = (DIGITS, EPOCH)
"""Orders of dates that are stored as numbers: year, month and day in eight digits, and a count since 1970."""
_DIGITS = re.compile(r"(\d{4})(\d{2})(\d{2})")
_TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_EPOCHS = (31_536_000.0, 4_102_444_800.0)
"""Seconds since 1970 of the years 1971 to 2100, between which counts lie: so one number has one unit, and none that is
written as 20240131 is a count."""
_PATTERN = re.compile(r"(?:%[YymneBbdHkIlMSLfpz]|[^%])*")
_MICROSECONDS = 1e6
_DAY_SECONDS = 86_400.0
_EPOCH = datetime.datetime(1970, 1, 1)
"""Naive, as are all moments here: in UTC."""


@dataclass(frozen=True)
class DateNotation:
    """How a column spells its dates, or times of day.

    Parameters
    ----------
    order : str
        ``ymd``, ``dmy`` or ``mdy``; ``name`` where months have names, ``month`` without days, ``clock`` for times,
        ``digits`` for 20241231, ``epoch`` for a count since 1970.
    pattern : str
        Of a count its unit, ``s``, ``ms``, ``us`` or ``ns``. Otherwise as of ``strftime``; ``%e``, ``%n``, ``%k``,
        ``%l`` are day, month and hour (of 24 and 12) without a zero before, ``%L`` milliseconds.
    language : str
        Of the names of months.
    first_year : int
        The first of the hundred years that two digits stand for.
    """

    order: str
    pattern: str
    language: str = "en"
    first_year: int = FIRST_YEAR

    def __post_init__(self):
        if not _PATTERN.fullmatch(self.pattern) or self.language not in MONTHS:
            raise ValueError(f"pattern {self.pattern!r} of dates")
        if self.order == EPOCH and self.pattern not in _TICKS:
            raise ValueError(f"unit {self.pattern!r} of a count since 1970")

    @property
    def day_length(self) -> float | None:
        """How many of its units a day has, of times of day: minutes, or seconds; None of dates."""
        if self.order != "clock":
            return None
        return _DAY_SECONDS if "%S" in self.pattern else _DAY_SECONDS / 60.0

    @property
    def has_zone(self) -> bool:
        """Whether moments are written with their zone, which is UTC."""
        return "%z" in self.pattern

    def value(self, text: str) -> float | None:
        """Return the days since 1970-01-01 (of times the minutes, or seconds, since midnight) that a text spells.

        None where it spells none, of a count where it lies outside 1971 to 2100. Days may be written in ISO 8601 too.

        Examples
        --------
        >>> DateNotation("dmy", "%d.%m.%Y").value("02.01.1970")
        1.0
        >>> DateNotation("clock", "%H:%M").value("14:30")
        870.0
        >>> DateNotation("digits", "%Y%m%d").value("19700102"), DateNotation("epoch", "ms").value("1728043200000")
        (1.0, 20000.5)
        """
        if self.order in COUNTED:
            number = number_of_text(text)
            return None if number is None else self.value_of_number(number)
        found = _moment(text, self.order, self.first_year)
        if found is None and self.order in (*ORDERS, "name") and _ISO.match(text):
            found = _moment(text, "ymd")
        if self.order == "clock" and found is not None and "%S" not in self.pattern:
            return found / 60.0
        return found

    def value_of_number(self, number: float) -> float | None:
        """Return the days since 1970-01-01 of a number that stands for a date; None where it stands for none."""
        if self.order == DIGITS:
            return _moment(number_label(number), DIGITS)
        scale = _TICKS[self.pattern]
        return number / scale / _DAY_SECONDS if _EPOCHS[0] * scale <= number <= _EPOCHS[1] * scale else None

    def text(self, value: float) -> str:
        """Return a date as the column spells it, to the unit that it spells.

        Examples
        --------
        >>> DateNotation("name", "%e. %B %Y", "de").text(1.25)
        '2. Januar 1970'
        """
        if self.order == EPOCH:
            return str(round(value * _DAY_SECONDS * _TICKS[self.pattern]))
        if not math.isfinite(value):
            return str(value)
        tick = 1_000 if "%L" in self.pattern else 1
        ticks = round(value / (self.day_length or 1.0) * _DAY_SECONDS * _MICROSECONDS / tick) * tick
        try:
            moment = _EPOCH + datetime.timedelta(microseconds=ticks)
        except OverflowError:
            return str(value)
        name = MONTHS[self.language][moment.month - 1]
        name = name.capitalize() if self.language in ("en", "de") else name
        half = moment.hour % 12 or 12
        parts = {
            "%Y": f"{moment.year:04}", "%y": f"{moment.year % 100:02}", "%m": f"{moment.month:02}",
            "%n": f"{moment.month}", "%d": f"{moment.day:02}", "%e": f"{moment.day}", "%B": name, "%b": name[:3],
            "%H": f"{moment.hour:02}", "%k": f"{moment.hour}", "%I": f"{half:02}", "%l": f"{half}",
            "%M": f"{moment.minute:02}", "%S": f"{moment.second:02}", "%f": f"{moment.microsecond:06}",
            "%L": f"{moment.microsecond // 1_000:03}",
            "%p": "AM" if moment.hour < 12 else "PM", "%z": "Z",
        }  # fmt: skip
        return re.sub("%.", lambda mark: parts[mark[0]], self.pattern)

    def in_words(self) -> str:
        """Return how dates are written, for the reason of a decision."""
        if self.order == EPOCH:
            return f"counted in {self.pattern}"
        example = self.text(_EXAMPLE if self.order != "clock" else 870.0 * (60.0 if "%S" in self.pattern else 1.0))
        unit = ", in seconds since midnight" if "%S" in self.pattern else ", in minutes since midnight"
        years = "" if self.first_year == FIRST_YEAR else f", years from {self.first_year} to {self.first_year + 99}"
        return f"written as {example}{unit if self.order == 'clock' else years}"


_EXAMPLE = float((datetime.date(2024, 12, 31) - _EPOCH.date()).days)


@dataclass(frozen=True)
class DateReadings:
    """The ways in which all texts of a column can be read as dates; as `NumberReadings`."""

    notations: tuple[DateNotation, ...]
    values: tuple[np.ndarray, ...]
    example: str = ""


def date_readings(texts: Sequence[str]) -> DateReadings | None:
    """Return the ways to read all texts of a column as dates or times; None where one of them is neither."""
    made: list[tuple[str, int, np.ndarray]] = []
    for order in (*ORDERS, "name", "month", "clock"):
        values, first_year = _moments(texts, order), FIRST_YEAR
        if values is None or (order == "month" and not _are_months(texts)):
            continue
        if order in (*ORDERS, "name") and values.size and values.max() > _day_of(_FUTURE):
            first_year = _first_year(texts, order)
            moved = _moments(texts, order, first_year)
            values, first_year = (values, FIRST_YEAR) if moved is None else (moved, first_year)
        if not any(np.array_equal(values, other) for *_, other in made):
            made.append((order, first_year, values))
    if not made or not len(texts):
        return None
    notations = tuple(DateNotation(order, *_pattern(texts, order), first_year) for order, first_year, _ in made)
    values = tuple(
        found / 60.0 if one.order == "clock" and "%S" not in one.pattern else found
        for one, (*_, found) in zip(notations, made, strict=True)
    )
    example = texts[int(np.flatnonzero(values[0] != values[1])[0])] if len(made) > 1 else ""
    return DateReadings(notations, values, example)


def _moments(texts: Sequence[str], order: str, first_year: int = FIRST_YEAR) -> np.ndarray | None:
    values = np.empty(len(texts))
    for position, text in enumerate(texts):
        found = _moment(text, order, first_year)
        if found is None:
            return None
        values[position] = found
    return values


def _are_months(texts: Sequence[str]) -> bool:
    """Return whether the two digits behind the names of months are years: few, of several months each, not days."""
    years = [_year(text[-2:], FIRST_YEAR) for text in texts if not text[-4:].isdigit()]
    if not years or all(text[0].isdigit() for text in texts):
        return True
    return max(years) - min(years) < _MOST_YEARS and len(years) >= _MONTHS_A_YEAR * len(set(years)) > _MONTHS_A_YEAR


def _first_year(texts: Sequence[str], order: str) -> int:
    """Return the first of the hundred years that the two digits of a column stand for.

    That of POSIX, unless the column then has a wider gap than is left at the two ends of its hundred years, between
    years of the last century and years to come: dates of birth, from 1948 to 2006, are those before the gap.
    """
    parts = [_parts(text, order) for text in texts]
    found = [(part[0].groupdict(), part[1]) for part in parts if part is not None]
    is_short = [all(len(group.get(name) or "") < 3 for name in ("y", "a", "c")) for group, _ in found]
    years = sorted({year for (_, year), short in zip(found, is_short, strict=True) if short})
    if len(years) < 2 or years[0] >= _PAST or years[-1] <= _FUTURE:
        return FIRST_YEAR
    gap, before = max((after - before, before) for before, after in pairwise(years))
    at_ends = years[0] + 100 - years[-1]
    return before + gap // 2 - 99 if gap > at_ends and before + gap > _PAST else FIRST_YEAR


def _day_of(year: int) -> float:
    return float((datetime.date(year, 1, 1) - _EPOCH.date()).days)


def iso_notation(texts: Sequence[str]) -> DateNotation | None:
    """Return how dates in ISO 8601 write the time of the day, as the longest does; None where none has one.

    Examples
    --------
    >>> iso_notation(["2024-03-01", "2024-03-01 10:30"])
    DateNotation(order='ymd', pattern='%Y-%m-%d %H:%M', language='en', first_year=1969)
    """
    longest = max(texts, key=len, default="")
    lengths = {10: "", 16: "%H:%M", 19: "%H:%M:%S", **dict.fromkeys((21, 22, 23), "%H:%M:%S.%L")}
    time = lengths.get(len(longest), "%H:%M:%S.%f")
    return DateNotation("ymd", f"%Y-%m-%d{longest[10]}{time}") if len(longest) > 10 else None


def zoned_notation(days: np.ndarray) -> DateNotation:
    """Return how moments in UTC, float64 (n,) days since 1970-01-01, are written: with their zone, to their unit.

    Examples
    --------
    >>> zoned_notation(np.array([19_783.25, np.nan])).text(19_783.25)
    '2024-03-01T06:00Z'
    """
    ticks = np.rint(days[np.isfinite(days)] * _DAY_SECONDS * _MICROSECONDS)
    units = (("%H:%M", 60e6), ("%H:%M:%S", 1e6), ("%H:%M:%S.%L", 1e3), ("%H:%M:%S.%f", 1.0))
    time = next(time for time, size in units if not (ticks % size).any())
    return DateNotation("ymd", f"%Y-%m-%dT{time}%z")


def counted_dates(numbers: np.ndarray) -> tuple[DateNotation, np.ndarray] | None:
    """Return how numbers, float64 (n,), stand for dates, and the days since 1970-01-01; None where they do not.

    Examples
    --------
    >>> counted_dates(np.array([20240131.0, 20240201.0]))
    (DateNotation(order='digits', pattern='%Y%m%d', language='en', first_year=1969), array([19753., 19754.]))
    >>> counted_dates(np.array([1.7e12]))[0].pattern, counted_dates(np.array([20240132.0, 3.0]))
    ('ms', None)
    """
    for notation in (DateNotation(DIGITS, "%Y%m%d"), *(DateNotation(EPOCH, unit) for unit in _TICKS)):
        days = np.empty(numbers.size)
        for position, number in enumerate(numbers.tolist()):
            day = notation.value_of_number(number)
            if day is None:
                break
            days[position] = day
        else:
            return notation, days
    return None


def _moment(text: str, order: str, first_year: int = FIRST_YEAR) -> float | None:
    """Return the days since 1970-01-01 of a text whose parts come in some order; seconds of a clock."""
    text = text.strip()
    if order == "clock":
        found = _CLOCK.fullmatch(text)
        return None if found is None or found["z"] else _seconds(found)
    if order == DIGITS:
        found = _DIGITS.fullmatch(text)
        parts = None if found is None else (found, *(int(part) for part in found.groups()))
    else:
        parts = _parts(text, order, first_year)
    if parts is None:
        return None
    found, year, month, day = parts
    try:
        date = datetime.date(year, month, day)
    except ValueError:
        return None
    days = float((date - _EPOCH.date()).days)
    clock = found.groupdict().get("H")
    if clock is None:
        return days
    seconds = _seconds(found)
    return None if seconds is None else days + (seconds - _offset(found["z"])) / 86_400.0


def _parts(text: str, order: str, first_year: int = FIRST_YEAR) -> tuple[re.Match, int, int, int] | None:
    if order == "name":
        found = _DAY_NAME.fullmatch(text) or _NAME_DAY.fullmatch(text)
        month = None if found is None else _named(found["n"])
        if found is None or month is None:
            return None
        return found, _year(found["y"], first_year), month[0], int(found["d"])
    if order == "month":
        found = _YEAR_MONTH.fullmatch(text)
        if found is not None:
            return found, int(found["y"]), int(found["m"]), 1
        found = _MONTH.fullmatch(text)
        if found is None or found["m"]:
            return None if found is None else (found, int(found["y2"]), int(found["m"]), 1)
        month = _named(found["n"])
        return None if month is None else (found, _year(found["y"], first_year), month[0], 1)
    found = _NUMERIC.fullmatch(text)
    if found is None or (found["s"] == " " and len(found["a"] + found["c"]) < 6):
        return None
    a, b, c = found["a"], found["b"], found["c"]
    year, month, day = {"ymd": (a, b, c), "dmy": (c, b, a), "mdy": (c, a, b)}[order]
    fitting = len(day) <= 2 and len(month) <= 2 and len(year) in ((4,) if order == "ymd" else (2, 4))
    return (found, _year(year, first_year), int(month), int(day)) if fitting else None


def _year(text: str, first_year: int) -> int:
    """Return a year; of two digits, one of the hundred from the first."""
    return int(text) if len(text) == 4 else first_year + (int(text) - first_year) % 100


def _seconds(match: re.Match) -> float | None:
    hour, minute, second = int(match["H"]), int(match["M"]), int(match["S"] or 0)
    if match["ap"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["ap"].strip()[0] in "pP" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return 3600.0 * hour + 60.0 * minute + second + float(f"0.{match['f'] or 0}")


def _offset(zone: str | None) -> float:
    """Return the seconds by which a zone's clock is ahead of UTC."""
    if not zone or zone in ("Z", "UTC", "GMT"):
        return 0.0
    digits = zone[1:].replace(":", "")
    return (3600.0 * int(digits[:2]) + 60.0 * int(digits[2:])) * (-1.0 if zone[0] == "-" else 1.0)


def _named(name: str) -> tuple[int, str] | None:
    """Return (month, language) of the name of a month or its beginning."""
    name = name.casefold()
    for language, months in MONTHS.items():
        for number, month in enumerate(months, start=1):
            if name == month or name in _SHORT.get(month, ()) or (len(name) in (3, 4) and month.startswith(name)):
                return number, language
    return None


def _pattern(texts: Sequence[str], order: str) -> tuple[str, str]:
    """Return (pattern, language) in which the texts are written, as far as they agree: that of the longest."""
    text = max(texts, key=len)
    if order == "clock":
        found = _CLOCK.fullmatch(text)
        assert found is not None
        return _clock_pattern(found, texts).lstrip(" "), "en"
    parts = _parts(text, order)
    assert parts is not None
    found = parts[0]
    group = found.groupdict()
    if order in ORDERS:
        padded = not any(re.match(r"\D*[1-9]\b|.*[./ -][1-9](?:[./ -]|$|,? \d+:)", one) for one in texts)
        mark = {"d": "%d" if padded else "%e", "m": "%m" if padded else "%n"}
        mark["y"] = "%Y" if len(group["a" if order == "ymd" else "c"]) == 4 else "%y"
        date, language = group["s"].join(mark[letter] for letter in order), "en"
    elif order == "month" and not group.get("n"):
        s = group.get("s") or group.get("s2")
        month = "%n" if any(one[1:2] == s for one in texts) else "%m"
        date, language = (f"%Y{s}%m" if "m" in group and text[:4].isdigit() else f"{month}{s}%Y"), "en"
    else:
        found_names = [_names_in(one, order) for one in texts]
        languages = [language for language in MONTHS if all(_in_language(name, language) for name in found_names)]
        language = (languages or ["en"])[0]
        # März, June and août are whole names; a column of mai or May alone says neither
        is_whole = all(name in MONTHS[language] for name in found_names) and any(len(name) > 3 for name in found_names)
        month = "%B" if is_whole or any(len(name) > 4 for name in found_names) else "%b"
        year = "%Y" if len(group["y"]) == 4 else "%y"
        day = "%d" if any(re.search(r"\b0\d\b", one) for one in texts) else "%e"
        if order == "month":
            date = f"{month}{group['s']}{year}"
        elif text.index(group["n"]) < text.index(group["d"]) and _NAME_DAY.fullmatch(text):
            date = f"{month}{group['s']}{day}{',' if ',' in text[: found.end('y')] else ''} {year}"
        else:
            date = f"{day}{group['s']}{month}{text[found.end('n') : found.start('y')] or ' '}{year}"
    timed = [one for one in texts if ":" in one]
    if group.get("H") is None or not timed:
        return date, language
    mark = text[found.start("H") - 1]  # T, a space, or the colon of web servers
    return f"{date}{mark}{_clock_pattern(found, timed)}", language


def _clock_pattern(match: re.Match, texts: Sequence[str]) -> str:
    half = bool(match["ap"])
    padded = not any(re.search(r"(?:^|[ T])\d:", one) for one in texts)
    hour = ("%I" if padded else "%l") if half else ("%H" if padded else "%k")
    is_fine = any(_MICROSECOND.search(one) for one in texts)
    out = f"{hour}:%M" + (":%S" if match["S"] else "") + ((".%f" if is_fine else ".%L") if match["f"] else "")
    return out + (" %p" if half else "") + ("%z" if match["z"] else "")


def _names_in(text: str, order: str) -> str:
    parts = _parts(text, order)
    return "" if parts is None else parts[0]["n"].casefold()


def _in_language(name: str, language: str) -> bool:
    return any(month == name or month.startswith(name) or name in _SHORT.get(month, ()) for month in MONTHS[language])
