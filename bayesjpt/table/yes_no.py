"""Yes and no in several languages: one label for each, however it is spelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_PAIRS = (
    ("no n", "yes y"),
    ("nein n", "ja j"),
    ("non n", "oui o"),
    ("no n", "sí si sì s"),
    ("não nao n", "sim s"),
    ("nee n", "ja j"),
    ("nej n", "ja j"),
    ("nei n", "ja j"),
    ("ei e", "kyllä k"),
    ("nie n", "tak t"),
    ("ne n", "ano a"),
    ("nem n", "igen i"),
    ("hayır hayir h", "evet e"),  # noqa: RUF001 - a letter of Turkish
    ("нет н", "да д"),
    ("ні н", "так т"),
    ("いいえ", "はい"),
    ("否 不是", "是"),
    ("아니요 아니오", "예 네"),
    ("لا", "نعم"),
    ("false f", "true t"),
    ("falsch", "wahr"),
    ("faux", "vrai"),
    ("falso", "verdadero verdadeiro vero"),
    ("onwaar", "waar"),
    ("off", "on"),
    ("aus", "ein an"),
)
PAIRS = tuple((frozenset(no.split()), frozenset(yes.split())) for no, yes in _PAIRS)
"""Spellings of no and of yes, in small letters."""


def yes_no(counts: Mapping[str, int]) -> dict[str, str] | None:
    """Return the label of each text of a column that says yes and no alone: "no" first; None for other columns.

    The label is the most frequent spelling of its side; texts are told apart by case in nothing.

    Parameters
    ----------
    counts : mapping from str to int
        Cells of each distinct text.

    Examples
    --------
    >>> yes_no({"ja": 5, "Ja": 2, "Nein": 3, "n": 1})
    {'Nein': 'Nein', 'n': 'Nein', 'ja': 'ja', 'Ja': 'ja'}
    """
    lowered = {text: text.casefold() for text in counts}
    for no, yes in PAIRS:
        sides = [[text for text in counts if lowered[text] in side] for side in (no, yes)]
        if all(sides) and len(sides[0]) + len(sides[1]) == len(counts):
            labels = [max(side, key=lambda text: (counts[text], len(text))) for side in sides]
            return {text: label for side, label in zip(sides, labels, strict=True) for text in side}
    return None


def truth(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that says yes for true and no for false, where labels are yes and no; None for other texts.

    Examples
    --------
    >>> truth("true", ["nein", "ja"]), truth("false", ["nein", "ja"]), truth("true", ["red", "white"])
    ('ja', 'nein', None)
    """
    if len(labels) != 2 or text not in ("true", "false"):
        return None
    small = [label.casefold() for label in labels]
    for sides in PAIRS:
        for k in (0, 1):
            if small[k] in sides[0] and small[1 - k] in sides[1]:
                return labels[1 - k if text == "true" else k]
    return None


def same_answer(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that says what a text says, where labels are yes and no; None where none does.

    Examples
    --------
    >>> same_answer("YES", ["no", "Yes"]), same_answer("maybe", ["no", "Yes"])
    ('Yes', None)
    """
    if len(labels) != 2:
        return None
    small, of = text.casefold(), [label.casefold() for label in labels]
    for no, yes in PAIRS:
        if of[0] in no | yes and of[1] in no | yes and (of[0] in no) != (of[1] in no):
            side = no if small in no else yes if small in yes else None
            if side is not None:
                return labels[0] if of[0] in side else labels[1]
    return None
