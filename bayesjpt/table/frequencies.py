"""How often, in words: never, less than monthly, 1-2 times a week, every day. Each label becomes a number a year."""

from __future__ import annotations

import re
from collections.abc import Sequence

_A_YEAR = {"hour": 8760.0, "day": 365.0, "night": 365.0, "week": 52.0, "fortnight": 26.0, "month": 12.0} | {
    "quarter": 4.0,
    "year": 1.0,
}
_ADVERBS = {"hourly": 8760.0, "daily": 365.0, "nightly": 365.0, "weekly": 52.0, "fortnightly": 26.0} | {
    "monthly": 12.0,
    "quarterly": 4.0,
    "yearly": 1.0,
    "annually": 1.0,
}
_NEVER = frozenset({"never", "not at all", "none", "0 times", "0", "no"})
_WORDS = {"once": 1.0, "one": 1.0, "a": 1.0, "an": 1.0, "twice": 2.0, "two": 2.0, "three": 3.0, "four": 4.0} | {
    "five": 5.0,
    "six": 6.0,
    "few": 2.5,
    "a few": 2.5,
    "a couple of": 2.1,
    "couple of": 2.1,
    "several": 4.0,
    "many": 10.0,
    "multiple": 4.0,
}
_LONGEST = 60
"""Characters of a label that says how often."""

_UNIT = "|".join(_A_YEAR)
_AMOUNT = r"\d{1,3}|" + "|".join(sorted(_WORDS, key=len, reverse=True))
_RATE = re.compile(
    rf"(?P<first>{_AMOUNT})(?:\s*(?:-|\u2013|to|or)\s*(?P<second>{_AMOUNT}))?"
    r"(?P<open>\s*(?:\+|(?:or|and) (?:more|over)))?(?:\s*(?:times|time|x|days?|nights?)\b)?(?P<late>\s+or more)?"
    rf"(?:\s*(?:/|\b(?:a|an|per|each|every|in a)\b)\s*(?P<unit>{_UNIT}))?"
)
_EVERY = re.compile(rf"(?:every|each) (?:(?P<n>\d{{1,2}}|other|two|three|few|second) )?(?P<unit>{_UNIT})s?")
_EVERY_OTHER = {"other": 2.0, "second": 2.0, "two": 2.0, "three": 3.0, "few": 3.0}
_LESS = re.compile(r"(?:<|less (?:often |frequently )?than|under|fewer than|below|up to|at most)\s*")
_MORE = re.compile(r"(?:>|more (?:often |frequently )?than|over|at least)\s*")
_PERIOD = re.compile(rf"\b(?:{_UNIT}|{'|'.join(_ADVERBS)}|daily|times|once|twice)")
_OR_LESS = re.compile(r"\s+or (?P<way>less|more)(?: often| frequently)?$")
_ALMOST = re.compile(r"(?:about|around|roughly|approximately|almost|nearly|mostly|only)\s+")


def times_a_year(labels: Sequence[str]) -> dict[str, float]:
    """Return how often a year each label says, where all say it, each another number; {} otherwise.

    Examples
    --------
    >>> found = times_a_year(["Weekly", "Never", "1-2 times a month", "Less than monthly"])
    >>> sorted(found, key=found.get)
    ['Never', 'Less than monthly', '1-2 times a month', 'Weekly']
    >>> times_a_year(["weekly", "red", "blue"])
    {}
    """
    found: dict[str, float] = {}
    n_period = 0
    texts = [" ".join(label.casefold().split()) if len(label) <= _LONGEST else "" for label in labels]
    for label, text in zip(labels, texts, strict=True):
        rate = _rate(text)
        if rate is None:
            return {}
        n_period += bool(_PERIOD.search(text))
        found[label] = rate
    if len(labels) < 3 or n_period < 2 or len(set(found.values())) < len(found) or set(texts) <= _ADVERBS.keys():
        return {}
    return found


def _rate(text: str) -> float | None:
    if text in _NEVER:
        return 0.0
    if text in ("less often", "less frequently", "rarely", "seldom", "hardly ever", "almost never"):
        return 0.01
    for pattern, times in ((_LESS, 0.9), (_MORE, 1.1), (_ALMOST, 0.95)):
        match = pattern.match(text)
        if match:
            rest = _rate(text[match.end() :])
            return None if rest is None else rest * times
    if text in _ADVERBS:
        return _ADVERBS[text]
    match = _OR_LESS.search(text)
    if match:
        rest = _rate(text[: match.start()])
        return None if rest is None else rest * (0.9 if match["way"] == "less" else 1.05)
    match = _EVERY.fullmatch(text)
    if match:
        n = match["n"] or "1"
        return _A_YEAR[match["unit"]] / (_EVERY_OTHER[n] if n in _EVERY_OTHER else max(float(n), 1.0))
    match = _RATE.fullmatch(text)
    if match is None or (text in _WORDS and text not in ("once", "twice")):
        return None
    first, second = _amount(match["first"]), _amount(match["second"] or match["first"])
    more = 1.05 if match["open"] or match["late"] else 1.0
    return (first + second) / 2.0 * more * _A_YEAR[match["unit"] or "year"]


def _amount(text: str) -> float:
    return _WORDS[text] if text in _WORDS else float(text)
