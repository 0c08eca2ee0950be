"""Units around the numbers of a column, where they differ: kilograms beside grams, a word behind a few, decimal marks.

How numbers are written is in `bayesjpt.table.written_numbers`; here, why a column of numbers is not read as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bayesjpt.table.written_numbers import PADDED, is_currency, number_readings, parted_of

_MOST_UNITS = 12
"""In one column; what stands around more numbers in more ways is no unit."""

_STRAY_SHARE, _LEAST_BARE = 0.05, 20
"""A word behind so few of a column's numbers is no unit of theirs, where so many cells have none."""

_FACTOR_OF_SCALES = 20.0
"""Between the typical numbers with and without a unit, from which on they are in two: shares of 1 are a hundredth of
those in %, kilograms a thousandth of grams."""


def units_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the units, or currencies, of texts that all are numbers, where there are several; else nothing.

    Examples
    --------
    >>> units_of(["1.5 kg", "800 g", "2 kg"]), units_of(["$5", "€7"]), units_of(["5 cm", "7"]), units_of(["a1", "2"])
    (('g', 'kg'), ('$', '€'), (), ())
    """
    found: dict[str, str] = {}
    for text in texts:
        parts = parted_of(text)
        if parts is None or PADDED.match(parts.core):
            return ()
        for unit in (parts.prefix.strip(), parts.suffix.strip()):
            if unit:
                found.setdefault(unit.casefold(), unit)
    return tuple(sorted(found.values())) if 1 < len(found) <= _MOST_UNITS else ()


def stray_units(texts: Sequence[str], counts: np.ndarray) -> list[int]:
    """Return which texts are numbers with a word that hardly another number has, such as ``4O`` among whole numbers.

    A currency may stand before the first number alone, as in accounts, and is none.

    Parameters
    ----------
    texts : sequence of str (n_text,)
    counts : int64 (n_text,)
        Cells of each.

    Examples
    --------
    >>> stray_units(["41", "4O", "52"], np.array([30, 1, 20])), stray_units(["41 cm", "52"], np.array([30, 20]))
    ([1], [])
    """
    marked: list[int] = []
    n_bare = n_marked = 0
    for k, text in enumerate(texts):
        parts = parted_of(text)
        if parts is None:
            continue
        if parts.prefix or not parts.suffix or is_currency(parts.suffix.strip()):
            n_bare += int(counts[k])
        else:
            marked.append(k)
            n_marked += int(counts[k])
    return marked if n_bare >= _LEAST_BARE and n_marked <= _STRAY_SHARE * (n_bare + n_marked) else []


@dataclass(frozen=True)
class PartlyMarked:
    """Numbers of which some have a unit behind them and many have none.

    Parameters
    ----------
    unit : str
    n_bare, n_cell : int
        Cells without it, and all of them.
    medians : tuple of float
        Of the sizes of those without and those with it, zeros apart.
    """

    unit: str
    n_bare: int
    n_cell: int
    medians: tuple[float, float]

    @property
    def is_of_two_scales(self) -> bool:
        """Whether the sizes are so far apart that those without the unit must be in another: 0.12 beside 12%."""
        least, largest = sorted(self.medians)
        return largest > _FACTOR_OF_SCALES * least > 0.0

    def in_words(self) -> str:
        """Return how many cells there are of each kind, for a note or a reason."""
        return f"{self.n_bare} of {self.n_cell} cells without {self.unit}"


def partly_marked(texts: Sequence[str], counts: np.ndarray) -> PartlyMarked | None:
    """Return what is known of numbers of which some have a unit, and many none; None for all others.

    A currency may stand before some of the numbers of an account, and is no such unit.

    Parameters
    ----------
    texts : sequence of str (n_text,)
    counts : int64 (n_text,)
        Cells of each.

    Examples
    --------
    >>> found = partly_marked(["12%", "15%", "0.12", "0.13"], np.array([10, 10, 9, 11]))
    >>> found.in_words(), found.is_of_two_scales
    ('20 of 40 cells without %', True)
    """
    found = number_readings(texts)
    unit = "" if found is None else found.notations[0].suffix.strip()
    if found is None or not unit or is_currency(unit):
        return None
    is_bare = np.array([parts is not None and not parts.suffix for parts in map(parted_of, texts)])
    n_bare, n_cell = int(counts[is_bare].sum()), int(counts.sum())
    if not _STRAY_SHARE * n_cell < n_bare < (1.0 - _STRAY_SHARE) * n_cell:
        return None
    sizes = np.repeat(np.abs(found.values[0]), counts)
    bare, kept = np.repeat(is_bare, counts), sizes > 0.0
    groups = (sizes[bare & kept], sizes[~bare & kept])
    without, with_unit = (float(np.median(one)) if one.size else 0.0 for one in groups)
    return PartlyMarked(unit, n_bare, n_cell, (without, with_unit))


def mixed_decimals(texts: Iterable[str]) -> tuple[str, ...]:
    """Return a text with a decimal comma and one with a point, where all are numbers, each in its way; else nothing.

    Examples
    --------
    >>> mixed_decimals(["12,50", "7.25", "3"]), mixed_decimals(["12,50", "7,25"]), mixed_decimals(["12,50", "a"])
    (('12,50', '7.25'), (), ())
    """
    example: dict[str, str] = {}
    for text in texts:
        found = number_readings([text])
        if found is None:
            return ()
        example.setdefault(found.tells_decimal, text)
    return (example[","], example["."]) if "," in example and "." in example else ()
