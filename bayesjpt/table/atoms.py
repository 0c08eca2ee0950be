"""Values of a column that repeat far beyond chance: zeros of an amount, a censored maximum, a code such as -999.

What is beyond chance is judged by other values alone: a density, recorded on a grid, gives neighbours similar counts.
Works on ascending distinct values and their counts.

    counts    . . : . : | . : . . :                      |
    values    0 1 2 3 4 5 6 7 8 9 ...                  999
                        ^ neighbours are rare            ^ an end: neighbours on one side, far away
"""

from __future__ import annotations

import numpy as np

from bayesjpt.table import resolution

# chosen on the columns of 40 public tables: zeros of amounts, censored maxima and codes are found; ages, times of day,
# prices and measurements that people round to fives and tens are not
MAX_ATOMS = 10
"""Atoms of a column; more values that repeat far beyond their neighbours are a habit of rounding."""

ATOM_SHARE = 0.002
"""Share of the cells from which a value may be an atom; a rarer one changes no answer that is worth a leaf."""

ATOM_MIN_COUNT = 5
"""Cells that an atom holds at least."""

ATOM_RATIO = 10.0
"""How many times the median count (plus one half) of its neighbours an atom's count must be. Of a million values from a
density that puts one value on each grid point, none repeats 15 times by chance (10^-5)."""

ATOM_NEAREST = 3
"""Neighbours on each side of which the first median is taken: so a steep density is followed."""

ATOM_NEIGHBOURS = 10
"""Neighbours on each side of which the second median is taken: so a neighbouring atom does not hide one."""

ATOM_LEAD = 5.0
"""How many times the count of the most frequent other value each of the most frequent values must have."""

ATOM_END_RATIO = 3.0
"""How many times the counts of its nearest neighbours the least or largest value must have to be an atom."""

ATOM_END_NEIGHBOURS = 5
"""Distinct values that are the nearest neighbours of the least or largest one."""

ATOM_MIN_OTHERS = 20
"""Distinct values that must remain beside the atoms; with fewer, a frequent value is just a coarse grid."""

ATOM_MIN_FAR_OTHERS = 5
"""Distinct values that must remain beside an atom that lies far away."""

ATOM_FAR = 3.0
"""How many times the range of the other values away a repeated value is a code; doublings (1, 2, 4, ..., 64) and
triplings are not."""

FEW_MIN_CELLS = 20.0
"""Cells per distinct value from which at most ten values are all atoms: a density between them would not be seen."""

ATOM_MAX_CODES = 3
"""Values side by side that far away that may all be codes (997, 998, 999)."""

ATOM_MIN_STEPS = 10.0
"""Grid steps in the interquartile range of the other values; with fewer, a frequent value is just a coarse grid."""


def find(distinct: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return bool (n_distinct,): which values are atoms.

    Parameters
    ----------
    distinct : float64 (n_distinct,)
        Ascending.
    counts : int64 (n_distinct,)
        Cells of each.

    Notes
    -----
    A value *stands out* if it repeats ten times as often as its neighbours. Those that stand out are atoms if they are
    the most frequent of all, few, and five times as frequent as the next: round numbers that people prefer stand out
    too, but there are many of them, alike. The least and the largest value are also atoms if they are three times as
    frequent as each of the nearest five, and stand out or lie an interquartile range away; and up to three values are
    that lie three times as far from the others as these from each other.

    The others must be a background: at least twenty values, over a grid of at least ten steps (five values for those
    that lie so far out). Costs O(n_distinct) for each of at most 500 frequent values.
    """
    found = _most_frequent(distinct, counts)
    for _ in range(MAX_ATOMS):
        rest = np.flatnonzero(~found)
        low = _n_end_atoms(distinct[rest], counts[rest])
        high = _n_end_atoms(-distinct[rest][::-1], counts[rest][::-1])
        if not low + high or found.sum() + low + high > MAX_ATOMS:
            break
        found[rest[:low]] = True
        found[rest[rest.size - high :]] = True
    return found if found.any() and _has_background(distinct, counts, found) else np.zeros(counts.size, bool)


def are_few(counts: np.ndarray) -> bool:
    """Return whether all values of a column are atoms: few, and each asked for by itself (0.5, 0.8, 1; half stars)."""
    return counts.size <= MAX_ATOMS and counts.sum() >= FEW_MIN_CELLS * counts.size


def is_far(distinct: np.ndarray, is_atom: np.ndarray) -> bool:
    """Return whether an atom lies three times as far from the other values as these from each other."""
    rest = distinct[~is_atom]
    if rest.size < ATOM_MIN_FAR_OTHERS:
        return False
    with np.errstate(over="ignore"):
        gap = max(rest[0] - distinct[is_atom].min(), distinct[is_atom].max() - rest[-1])
        return bool(gap > ATOM_FAR * (rest[-1] - rest[0]))


def _frequent(counts: np.ndarray) -> np.ndarray:
    """Return the positions of the values that hold enough cells to be atoms, the most frequent first."""
    bar = max(ATOM_MIN_COUNT, ATOM_SHARE * counts.sum())
    order = np.argsort(-counts, kind="stable")
    return order[counts[order] >= bar]


def _most_frequent(distinct: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return bool (n_distinct,): the most frequent values, where all stand out and few are far ahead of the next."""
    found = np.zeros(counts.size, bool)
    order = _frequent(counts)[:MAX_ATOMS]
    ahead = found
    for position in order:
        if not _stands_out(counts, found, int(position)):
            break
        found = found.copy()
        found[position] = True
        if not found.all() and counts[position] >= ATOM_LEAD * counts[~found].max():
            ahead = found
    return ahead


def _stands_out(counts: np.ndarray, is_atom: np.ndarray, position: int) -> bool:
    """Return whether a value repeats ten times as often as those around it, atoms left out."""
    left = np.flatnonzero(~is_atom[:position])
    right = np.flatnonzero(~is_atom[position + 1 :]) + position + 1
    if not left.size + right.size:
        return False
    # the nearest few answer for a steep density, more of them for a neighbour that stands out itself
    usual = max(np.median(counts[np.concatenate([left[-n:], right[:n]])]) for n in (ATOM_NEAREST, ATOM_NEIGHBOURS))
    return bool(counts[position] >= ATOM_RATIO * (usual + 0.5))


def _n_end_atoms(distinct: np.ndarray, counts: np.ndarray) -> int:
    """Return how many of the first of some values are atoms."""
    bar = max(ATOM_MIN_COUNT, ATOM_SHARE * counts.sum())
    with np.errstate(over="ignore"):
        for n in range(1, min(ATOM_MAX_CODES, counts.size - ATOM_MIN_FAR_OTHERS) + 1):
            gap, length = distinct[n] - distinct[n - 1], distinct[-1] - distinct[n]
            if counts[:n].min() >= bar and gap > ATOM_FAR * length:
                return n
        nearest = counts[1 : 1 + ATOM_END_NEIGHBOURS]
        if not nearest.size or counts[0] < max(bar, ATOM_END_RATIO * nearest.max()):
            return 0
        spread = resolution.summarise(distinct[1:], counts[1:])[1]
        isolated = distinct[1] - distinct[0] > spread > 0.0
    return int(isolated or _stands_out(counts, np.zeros(counts.size, bool), 0))


def _has_background(distinct: np.ndarray, counts: np.ndarray, is_atom: np.ndarray) -> bool:
    rest, weights = distinct[~is_atom], counts[~is_atom]
    if is_far(distinct, is_atom):
        return True
    if rest.size < ATOM_MIN_OTHERS:
        return False
    width = resolution.grid(rest, weights)
    return width is None or resolution.summarise(rest, weights)[1] >= ATOM_MIN_STEPS * width
