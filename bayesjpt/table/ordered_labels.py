"""Whether labels come in an order that people know: words of one scale, numbered ranks, ranges, letters in a row.

A set of labels is judged as a whole. Digits alone make no order: A11, A12 are codes; 10-19, 20-29 are ranges, level 1,
level 2 are ranks.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from bayesjpt.table import scales
from bayesjpt.table.frequencies import times_a_year

WORDS, NUMBERED, LETTERS = "words of a scale", "ranks or ranges", "letters in a row"

_LEAST_SHARE = 0.75
"""Share of the labels that must lie on one scale: a table may have a label or two beside it."""
_LONGEST = 200
"""Characters of a label that may come from a scale; what is longer is a text, and a set of labels with one no scale."""

_PUNCTUATION = re.compile(r"[^\w+\-]|_|(?<!\w)[-+]+|-")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")  # noqa: RUF001 - people type both
"""A bachelor's degree is one of bachelors."""
_NUMBER = r"\d+(?:[.,]\d+)*\s*[km%€$]?"
_RANGE = re.compile(
    rf"(?P<below><=?|≤|under|below|less than|up to|at most|unter|bis zu|bis|weniger als|moins de|jusqu\W?[aà]"
    r"|menos de|hasta|meno di|fino a|minder dan|tot)?"
    r"\s*[$€]?"
    rf"(?P<first>{_NUMBER})\s*(?:st|nd|rd|th)?"
    rf"(?P<rest>\s*(?:-|\u2013|\u2014|\.\.\.?|to|bis|a|à|and|und)\s*[$€]?(?P<second>{_NUMBER})(?:st|nd|rd|th)?"
    r"|\s*\+|\s*(?:or |and |und |et |ou |y |o |e |en )?"
    r"(?:more|over|above|older|up|mehr|alter|älter|darüber|plus|más|mas|più|piu|oltre|meer|ouder))?",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    rf"(?P<above>>=?|≥|over|above|more than|at least|ab|über|mehr als|plus de|más de|mas de|più di|oltre|meer dan)"
    rf"\s*[$€]?(?P<first>{_NUMBER})",
    re.IGNORECASE,
)
_ANCHORED = re.compile(r"(?P<n>\d{1,2})(?P<words>\s*[-\u2013:=.(]\s*[^\d\s].*)?")
_OVER = re.compile(r"(\d{1,4})\s*/\s*(\d{1,4})")
_PART_OF_YEAR = re.compile(r"(?P<y>\d{4})[-\s/]?(?P<p>W|Q|KW|H|S)(?P<n>\d{1,2})", re.IGNORECASE)
_YEAR_BEHIND = re.compile(r"(?P<p>W|Q|KW|T|H|S)[\s.]?(?P<n>\d{1,2})[-\s/]*(?P<y>\d{4})", re.IGNORECASE)
_PLURAL = 2
"""Letters by which the plural of a unit may be longer: year, years; Jahr, Jahre; mes, meses."""
_RANK = re.compile(r"([^\W\d]{3,})[\s_\-.:]*(\d+|[ivx]+)$|^(\d+)[\s_\-.:]*([^\W\d]{3,})$", re.IGNORECASE)
_MORE = frozenset({"more", "many", "over", "mehr", "plus", "mas"})
_BESIDE = frozenset(
    """
    more many over above older up mehr alter älter und darüber bis plus et ou a à más mas o y mayores e più piu oltre
    en meer ouder tot to or and
    """.split()  # noqa: SIM905 - a line for each would say no more
)
"""Words beside a number that are no unit."""
_CODE = re.compile(r"[a-z]\d+")
"""A word of a scale that is one only where all labels are: levels of a language, A1 to C2."""
ORDINAL = re.compile(r"(?P<n>\d+)(?:st|nd|rd|th|er|ère|e|è|ème|eme|º|ª)", re.IGNORECASE)
"""An ordinal number: 1st, 2e."""
_MARK = re.compile(r"(\d)([+-]?)")
_EMPTY_SIGNS = "☆✩○◯·"
_NEITHER = frozenset({"o", "0", "=", "~", "+/-", "±", "neg", "neg.", "negative", "negativ", "négatif", "negativo"})
"""What stands between + and -, or below +."""
_ROMAN = {
    "i": 1,
    "ii": 2,
    "iii": 3,
    "iv": 4,
    "v": 5,
    "vi": 6,
    "vii": 7,
    "viii": 8,
    "ix": 9,
    "x": 10,
    "xi": 11,
    "xii": 12,
}


@dataclass(frozen=True)
class KnownOrder:
    """Labels in an order that people know.

    Parameters
    ----------
    kind : str
        ``words of a scale``, ``ranks or ranges`` or ``letters in a row``.
    labels : tuple of str
        All labels, those on the scale first and in its order, then the others.
    n_known : int
        Labels that have a place on the scale.
    """

    kind: str
    labels: tuple[str, ...]
    n_known: int

    @property
    def ranked(self) -> tuple[str, ...]:
        """Labels that have a place on the scale, in its order."""
        return self.labels[: self.n_known]

    def places(self, labels: Sequence[str]) -> np.ndarray:
        """Return the place of each of some labels in the order, float64; NaN where it has none."""
        place = {label: float(position) for position, label in enumerate(self.ranked)}
        return np.array([place.get(label, np.nan) for label in labels])


def known_order(labels: Sequence[str]) -> KnownOrder | None:
    """Return the order in which a set of labels comes; None where it has none that people know.

    Examples
    --------
    >>> known_order(["high", "low", "medium"]).labels
    ('low', 'medium', 'high')
    >>> known_order(["Mittwoch", "Montag", "Dienstag"]).labels
    ('Montag', 'Dienstag', 'Mittwoch')
    >>> known_order(["20-29", "30+", "under 20"]).labels
    ('under 20', '20-29', '30+')
    >>> known_order(["A11", "A12", "A13"]) is None
    True
    """
    if any(len(label) > _LONGEST for label in labels):
        return None
    plain = [label for label in labels if not is_stray(label)]
    for kind, places in (
        (NUMBERED, _parts_of_years(plain)),
        (WORDS, times_a_year(plain)),
        (WORDS, _on_a_scale(labels, plain)),
        (NUMBERED, _numbered(plain)),
        (NUMBERED, _ordinal_numbers(plain)),
        (NUMBERED, _anchored(plain)),
        (NUMBERED, _seasons_or_shares(plain)),
        (NUMBERED, _marks(plain)),
        (NUMBERED, _repeated(labels)),
        (NUMBERED, _signs(labels)),
        (LETTERS, _letters(plain)),
    ):
        if len(places) >= 2:
            known = sorted(places, key=places.__getitem__)
            rest = [label for label in labels if label not in places]
            return KnownOrder(kind, (*known, *rest), len(known))
    return None


def is_stray(label: str) -> bool:
    """Return whether a label says that there is no answer: it may stand beside any scale, without a place on it.

    Examples
    --------
    >>> [is_stray(label) for label in ("Don't know", "-", "low")]
    [True, True, False]
    """
    normal = _normal(label)
    return not normal or normal in _words(scales.NO_ANSWERS) or normal in _words(scales.OTHERS)


def is_no_answer(label: str) -> bool:
    """Return whether a label says that there is no answer, in words.

    Examples
    --------
    >>> [is_no_answer(label) for label in ("Ne sait pas", "other", "low")]
    [True, False, False]
    """
    return _normal(label) in _words(scales.NO_ANSWERS)


def is_two_sided(labels: Sequence[str]) -> bool:
    """Return whether two labels are the sides of a matter, such as yes and no.

    Examples
    --------
    >>> is_two_sided(["Oui", "Non"]), is_two_sided(["red", "green"])
    (True, False)
    """
    return len(labels) == 2 and {_normal(label) for label in labels} <= _words(scales.TWO_SIDED)


def _normal(label: str) -> str:
    """Return a label without case, accents and punctuation; ``+`` and ``-`` are kept behind a letter (A+, B-).

    Longer texts than a scale has come back as they are.
    """
    if len(label) > _LONGEST:
        return label
    text = label.casefold()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    text = _POSSESSIVE.sub("s", text)
    kept = re.sub(r"(?<=[a-f0-9])([+\-])(?=\s*$)", r" \1", text) if len(text.strip()) <= 2 else text
    if len(text.strip()) <= 2 and kept != text:
        return text.strip()
    return " ".join(_PUNCTUATION.sub(" ", text).split())


@functools.cache
def _scales() -> list[dict[str, int]]:
    """Return, for each scale, the rank of each of its words."""
    return [
        {_normal(word): rank for rank, words in enumerate(line.split(" < ")) for word in words.split(",")}
        for line in scales.SCALES.strip().splitlines()
    ]


@functools.cache
def _words(listed: str) -> frozenset[str]:
    return frozenset(_normal(word) for word in listed.split(","))


def _on_a_scale(labels: Sequence[str], plain: Sequence[str]) -> dict[str, float]:
    """Return the ranks of labels on the scale that holds most of them, each of a rank of its own."""
    found: dict[str, float] = {}
    for names in (_bare(labels), _bare(plain), {label: _normal(label) for label in labels}):
        if _is_no_scale([name for name in names.values() if name]):
            continue
        needed = max(_LEAST_SHARE * len([label for label in plain if label in names] or names), 2)
        for scale in _scales():
            places = {label: scale[name] for label, name in names.items() if name in scale}
            if len(places) == 2 < len(names) and _is_no_scale([names[label] for label in places]):
                continue
            codes = any(_CODE.fullmatch(names[label]) for label in places)
            if codes and not all(label in places for label in plain if label in names):
                continue  # rooms and wards have such names, too
            if len(places) >= needed and len(places) > len(found) and len(set(places.values())) == len(places):
                found = {label: float(place) for label, place in places.items()}
    return found


def _is_no_scale(names: Collection[str]) -> bool:
    """Return whether words of scales stand for something else: letters that are no sizes, two sides of a matter."""
    if all(len(name) == 1 and name.isascii() for name in names):
        return len(names) < 3 or not set(names) <= {"s", "m", "l", "h"}
    return len(names) == 2 and set(names) <= _words(scales.TWO_SIDED)


def _bare(labels: Sequence[str]) -> dict[str, str]:
    """Return labels without the words that all of them begin or end with: low risk, high risk."""
    split = [_normal(label).split() for label in labels]
    if len(split) > 1:
        while all(len(words) > 1 for words in split) and len({words[0] for words in split}) == 1:
            split = [words[1:] for words in split]
        while all(len(words) > 1 for words in split) and len({words[-1] for words in split}) == 1:
            split = [words[:-1] for words in split]
        if all(len(words) > 1 for words in split) and all(words[0].isdigit() or len(words[0]) == 1 for words in split):
            split = [words[1:] for words in split]  # 1 low, 2 medium; a) never, b) often
    return {label: " ".join(words) for label, words in zip(labels, split, strict=True)}


def _numbered(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of labels that all are ranges, or numbers behind a word for a rank."""
    ranks = [_RANK.fullmatch(label.strip()) for label in labels]
    if all(ranks) and len(labels) > 2:
        words = {_normal(match[1] or match[4]) for match in ranks if match}
        if len(words) == 1 and words <= _words(scales.RANKED):
            found = [match[2] or match[3] for match in ranks if match]
            return {label: float(_ROMAN.get(n.lower()) or n) for label, n in zip(labels, found, strict=True)}
    bare = labels if len(labels) < 2 else [*_without_unit(labels)]
    places = {label: _place_of_range(text) for label, text in zip(labels, bare, strict=True)}
    known = {label: place for label, place in places.items() if place is not None}
    if len(labels) < 3 or len(known) < len(labels) or not any(_is_range(text) for text in bare) or _are_pairs(bare):
        return {}
    return known if len(set(known.values())) == len(known) else {}


def _without_unit(labels: Sequence[str]) -> Sequence[str]:
    """Return labels without a word that most of them hold behind a number: 10-19 years, 65 years and over."""
    behind = [re.findall(r"\d\+?\s+([^\W\d]+)", label) for label in labels]
    words = {word for found in behind for word in found[-1:] if word.casefold() not in _BESIDE}
    stem = min(words, key=len, default="")
    # < 1 year, 1-3 years; Jahr, Jahre; of two words one is the plural
    same = all(word.startswith(stem) and len(word) <= len(stem) + _PLURAL for word in words)
    if not words or not same or sum(bool(words & set(found)) for found in behind) < len(labels) - 1:
        return [label.strip() for label in labels]
    either = "|".join(sorted(words, key=len, reverse=True))
    return [re.sub(rf"(?<=[\d+])\s+(?:{either})\b", "", label).strip() for label in labels]


def _are_pairs(labels: Sequence[str]) -> bool:
    """Return whether texts of the form a-b are scores or codes, no ranges: some a are below their b, others above."""
    found = [match for match in map(_RANGE.fullmatch, labels) if match and match["second"]]
    signs = {_number(match["first"]) < _number(match["second"]) for match in found}
    return len(signs) == 2 and any(_number(match["first"]) > _number(match["second"]) for match in found)


def _anchored(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of numbers in a row some of which say what they mean: 1 - poor, 2, 3, 4, 5 - great."""
    found = [_ANCHORED.fullmatch(label.strip()) for label in labels]
    if len(labels) < 3 or not all(found):
        return {}
    places = {label: float(match["n"]) for label, match in zip(labels, found, strict=True) if match}
    in_a_row = sorted(places.values()) == [min(places.values()) + k for k in range(len(labels))]
    plain = sum(match["words"] is None for match in found if match)
    return places if in_a_row and 0 < plain < len(labels) else {}


def _parts_of_years(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of weeks (2024-W41, KW 5/2024), quarters (2024Q3, Q3 2024) or halves (H1 2024) of years."""
    found = [
        match
        for label in labels
        if (match := _PART_OF_YEAR.fullmatch(label.strip()) or _YEAR_BEHIND.fullmatch(label.strip()))
    ]
    if len(labels) < 3 or len(found) < len(labels) or len({match["p"].upper() for match in found}) > 1:
        return {}
    return {label: 100.0 * int(match["y"]) + int(match["n"]) for label, match in zip(labels, found, strict=True)}


def _seasons_or_shares(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of seasons (2021/22), or of shares of one number (3/8)."""
    found = [_OVER.fullmatch(label.strip()) for label in labels]
    if len(labels) < 3 or not all(found):
        return {}
    pairs = {label: (m[1], m[2]) for label, m in zip(labels, found, strict=True) if m}
    seasons = all(len(a) == 4 and len(b) in (2, 4) and str(int(a) + 1).endswith(b) for a, b in pairs.values())
    shares = len({b for _, b in pairs.values()}) == 1 and all(int(a) <= int(b) for a, b in pairs.values())
    return {label: float(a) for label, (a, _) in pairs.items()} if seasons or shares else {}


def _ordinal_numbers(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of ordinal numbers: 1st, 2nd, 3rd; 18th, 19th, 20th century; RDC, 1er, 2e, 3e."""
    places = {label: 0.0 for label in labels if _normal(label) in _words(scales.GROUND_FLOORS)}
    above = [label for label in labels if label not in places]
    found = [ORDINAL.fullmatch(text) for text in _without_tail(above)]
    if len(labels) < 3 or not above or not all(found):
        return {}
    places |= {label: float(match["n"]) for label, match in zip(above, found, strict=True) if match}
    return places if len(set(places.values())) == len(places) else {}


def _without_tail(labels: Sequence[str]) -> list[str]:
    """Return labels without the words behind their first one, where these are the same in all."""
    parts = [label.strip().partition(" ") for label in labels]
    return [first for first, _, _ in parts] if len({rest for _, _, rest in parts}) == 1 else list(labels)


def _repeated(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of labels that repeat one sign: stars, $ to $$$, + to +++; empty stars count for nothing."""
    bare = [label.strip().rstrip(_EMPTY_SIGNS) for label in labels if _normal(label) not in _words(scales.NO_ANSWERS)]
    signs = {sign for text in bare for sign in text}
    if len(bare) < max(3, len(labels) - 1) or len(signs) != 1 or signs.pop().isalnum() or len(set(bare)) < len(bare):
        return {}
    return {
        label: float(len(label.strip().rstrip(_EMPTY_SIGNS)))
        for label in labels
        if label.strip().rstrip(_EMPTY_SIGNS) in bare
    }


def _marks(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of school marks, the best first: 1+, 1, 1-, 2+, 2, ..."""
    found = [_MARK.fullmatch(label.strip()) for label in labels]
    if not all(found) or not {"+", "-"} <= {match[2] for match in found if match}:
        return {}
    aside = {"+": -0.3, "": 0.0, "-": 0.3}
    return {label: float(match[1]) + aside[match[2]] for label, match in zip(labels, found, strict=True) if match}


def _signs(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of labels that are signs: --, -, o, +, ++; neg, +, ++, +++."""
    places: dict[str, float] = {}
    for label in labels:
        text = label.strip().casefold()
        if text and text.strip(text[0]) == "" and text[0] in "+-":
            places[label] = float(len(text) if text[0] == "+" else -len(text))
        elif text in _NEITHER:
            places[label] = 0.0
    # of - alone nobody knows whether it is below + or stands for no answer
    known = len(labels) >= 3 and len(places) == len(labels) == len(set(places.values()))
    return places if known and 2.0 in places.values() else {}


def _place_of_range(text: str) -> float | None:
    """Return where a number or range lies; None where the text is neither."""
    if text.lower() in _MORE:
        return float("inf")
    above = _ABOVE.fullmatch(text)
    if above:
        return _number(above["first"]) + 0.5
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    first = _number(match["first"])
    if match["below"]:
        return first - 0.5
    if match["rest"] and match["second"] is None:
        return first + 0.25
    return first + (1e-9 * _number(match["second"]) if match["second"] else 0.0)  # 2020-01, 2020-02


def _is_range(text: str) -> bool:
    match = _RANGE.fullmatch(text)
    return text.lower() in _MORE or bool(_ABOVE.fullmatch(text)) or bool(match and (match["below"] or match["rest"]))


def _number(text: str) -> float:
    text = text.strip().lower()
    times = {"k": 1e3, "m": 1e6}.get(text[-1:], 1.0)
    digits = text.rstrip("km%€$ ").replace(",", "")
    return float(digits if digits.count(".") <= 1 else digits.replace(".", "")) * times


def _letters(labels: Sequence[str]) -> dict[str, float]:
    """Return the places of single letters that follow each other in the alphabet, a gap of one allowed."""
    letters = [label.strip() for label in labels]
    if len(letters) < 3 or not all(len(letter) == 1 and letter.isascii() and letter.isalpha() for letter in letters):
        return {}
    if not (all(letter.isupper() for letter in letters) or all(letter.islower() for letter in letters)):
        return {}
    places = sorted(ord(letter) for letter in letters)
    if places[-1] - places[0] > len(places) or len(set(places)) < len(places):
        return {}
    return {label: float(ord(label.strip())) for label in labels}
