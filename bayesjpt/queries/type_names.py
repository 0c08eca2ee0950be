"""What the name of a column of numbers says of it: how many, how much, or which rank.

Names are split into words, without case and accents. Only words that say the same in any trade are listed; what a
column is *of* (age, score, balls) is not looked at, nor are words for kinds (class, type, group).
"""

from __future__ import annotations

import re
import unicodedata

COUNT, MEASUREMENT, RANK = "count", "measurement", "rank"

_HOW_MANY_OF = frozenset({"no", "nr", "num", "number", "n", "count", "numero", "nombre"})
"""Followed by a word for `of`: number of rooms."""
_OF = frozenset({"of", "the", "der", "de", "des", "di", "van", "af"})
_HOW_MANY = frozenset(
    {"n", "num", "anzahl", "nombre", "cantidad", "quantidade", "quantita", "aantal", "antal", "liczba"}
)
"""First of several words: n_rooms, Anzahl Zimmer."""
_COUNTED = frozenset({"count", "counts", "anzahl"})
"""Last of several words: page count."""
_COUNTS = frozenset({"quantity", "qty", "stuckzahl", "quantite", "cantidad", "quantidade", "quantita"})
"""By themselves or last: whole ones are numbers of pieces."""
_RANKS = frozenset(
    """
    grade rank level rating stage priority severity quality satisfaction education degree year month weekday quarter
    stufe rang prioritat qualitat zufriedenheit bildung jahr monat wochentag quartal niveau qualite annee mois
    trimestre nivel rango calidad satisfaccion ano mes livello qualita anno mese
    """.split()  # noqa: SIM905 - a line for each would say no more
)
_MEASUREMENTS = frozenset(
    """
    length width height depth weight area volume distance thickness diameter radius speed temperature pressure density
    price cost amount income salary wage revenue balance budget discount fee tax duration percent percentage share ratio
    rate mean avg average lange breite hohe gewicht flache abstand temperatur preis kosten betrag einkommen gehalt
    umsatz dauer anteil rabatt
    longueur largeur hauteur poids prix montant salaire duree longitud altura peso precio importe ingreso duracion
    lunghezza larghezza altezza prezzo importo
    """.split()  # noqa: SIM905 - a line for each would say no more
)
_UNITS = re.compile(r"[%€$£¥°]|\((?!n\))(?:[a-z]{1,2}[23]?|[A-Z]{3})\)")
"""In the name of an amount: discount %, Altura (cm), price (EUR)."""
_BETWEEN = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W\d_]+")


def said_by_name(name: str) -> str:
    """Return ``count``, ``measurement`` or ``rank``; an empty text where a name says nothing of that kind.

    Examples
    --------
    >>> [said_by_name(name) for name in ("No of rooms", "n_rooms", "Anzahl Zimmer", "pageCount", "qty", "number")]
    ['count', 'count', 'count', 'count', 'count', '']
    >>> [said_by_name(name) for name in ("sepal_length", "Preis (EUR)", "school year", "Priorität", "x3", "serial no")]
    ['measurement', 'measurement', 'rank', 'rank', '', '']
    """
    split = unicodedata.normalize("NFKD", _BETWEEN.sub(" ", name))
    words = [word.lower() for word in _WORD.findall("".join(c for c in split if not unicodedata.combining(c)))]
    if len(words) > 1:
        of = words[0] in _HOW_MANY_OF and words[1] in _OF
        if of or words[0] in _HOW_MANY or words[-1] in _COUNTED:
            return COUNT
    if words[-1:] and words[-1] in _COUNTS:
        return COUNT
    for word in (*words[-1:], *words[:1]):  # the last word says what it is, and the first does where `of` follows
        if word in _RANKS:
            return RANK
        if word in _MEASUREMENTS:
            return MEASUREMENT
    return MEASUREMENT if _UNITS.search(name) else ""
