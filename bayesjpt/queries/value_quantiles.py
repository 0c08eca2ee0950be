"""Quantiles of a column of numbers given rows, of the mixture over all draws: where their mean probability is reached.

What a pass over the rows costs is mostly to weigh sub-populations by each row, which any number of points shares.

    1  points for all rows alike: over the column's range, then within the gaps in which some quantile lies
    2  where the gaps are too many to share points, a row's own: two about the interpolated quantile, and the middle
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.distribution import cdf_of_rows
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

_N_POINT, _N_OUTSIDE = 256, 16
"""Points that rows share in a pass, and how many of the first lie within one range beyond either end."""
_FEWEST = 8
"""Points are shared as long as each gap gets so many: a row's own mostly end the search in one pass or two."""
_N_CELL = 2**23
"""Probabilities, over draws, points and rows, that are held at a time: 64 MB."""
_FARTHEST = 64.0
"""Quantiles are looked for within so many ranges of the training values beyond their ends."""
_FINE = 0.01
"""Of a resolution: to what quantiles are found."""
_LARGEST, _UNIT = float(np.finfo(float).max), 2.0**10
"""Points beyond the quotient of the two are looked for in such units; a power of two rounds nothing."""

type Below = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From points, (n_point,) for all rows or (n_point, n), and the numbers of n rows, to probabilities (n_point, n)."""


class _Gaps(NamedTuple):
    """Ends of gaps (lo, hi] in which levels are reached, and the probabilities there, float64 (n_level, n_row) each."""

    lo: np.ndarray
    hi: np.ndarray
    below_lo: np.ndarray
    below_hi: np.ndarray

    def of_rows(self, rows: np.ndarray) -> _Gaps:
        return _Gaps(*(end[:, rows] for end in self))

    def narrowed(self, points: np.ndarray, below: np.ndarray, levels: np.ndarray) -> _Gaps:
        """Return the gaps between neighbouring points; `points` and `below` broadcast to (n_point, n_level, n_row)."""
        points, below = np.broadcast_arrays(points, below, np.empty(self.lo.shape))[:2]
        inside = (self.lo < points) & (points < self.hi)
        reached = inside & (below >= levels[:, None])
        hi, below_hi = _best(np.argmin, points, below, reached, np.inf, (self.hi, self.below_hi))
        before = inside & (points < hi)
        lo, below_lo = _best(np.argmax, points, below, before, -np.inf, (self.lo, self.below_lo))
        return _Gaps(lo, hi, below_lo, below_hi)

    def are_wider_than(self, fine: float) -> np.ndarray:
        """Return bool (n_level, n_row): whether a gap is wider, and floats lie in it that are not next to its ends."""
        spacing = np.spacing(np.maximum(np.abs(self.lo), np.abs(self.hi)))
        return self.hi - self.lo > np.maximum(fine, 4.0 * spacing)


def _best(best, points, below, is_meant, other, ends) -> tuple[np.ndarray, np.ndarray]:
    """Return the least or largest of the points that are meant, and what lies below it; ends so far where none is."""
    at = best(np.where(is_meant, points, other), axis=0)[None]
    found = is_meant.any(axis=0)
    parts = zip((points, below), ends, strict=True)
    first, second = (np.where(found, np.take_along_axis(part, at, axis=0)[0], end) for part, end in parts)
    return first, second


def value_quantiles(post: Posterior, given: Table, number: int, levels: np.ndarray) -> np.ndarray:
    """Return quantiles of a number that rows do not have, float64 (n_level, n_row), of the mixture over all draws.

    A mean over draws of their quantiles may be a value that no draw thinks possible, such as one between a code for
    missing cells and all other values.

    Parameters
    ----------
    post : Posterior
    given : Table (n_row,)
        In which no cell of the column is observed.
    number : int
        Of the column.
    levels : float64 (n_level,)
        Strictly between 0 and 1.
    """
    column = post.schema.columns[number]
    n_part = max(_N_CELL // (_N_POINT * post.n_chain * post.n_draw), 1)
    ends = np.empty((levels.size, given.n_row))
    for lo in range(0, given.n_row, n_part):
        part = given.rows(slice(lo, lo + n_part))

        def below(points: np.ndarray, rows: np.ndarray, part: Table = part) -> np.ndarray:
            return cdf_of_rows(post, column.name, part.take(rows), points).mean(axis=0)

        ends[:, lo : lo + n_part] = _smallest(below, column, levels, np.arange(part.n_row))
    return ends


def _smallest(below: Below, column: Column, levels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the smallest values with cumulative probabilities of some levels, float64 (n_level, n_row)."""
    # next to the largest floats, smaller units keep sums and differences of points finite
    largest = max(abs(column.minimum), abs(column.maximum))
    unit = _UNIT if max(largest, column.scale) > _LARGEST / _UNIT else 1.0
    reach = max(column.maximum / unit - column.minimum / unit, column.scale / unit, column.resolution / unit)
    is_whole = column.base == "integer"
    fine = 1.0 if is_whole else max(_FINE * column.resolution / unit, 1e-9 * reach)

    points = _first_points(column, unit, reach)
    found = below(unit * points, rows)
    shape = levels.size, rows.size
    gaps = _Gaps(*(np.broadcast_to(end, shape) for end in (points[0], points[-1], found[0], found[-1])))
    # a level that is reached at the first point, or not at the last, is not looked for beyond it
    gaps = gaps._replace(hi=np.where(gaps.below_lo >= levels[:, None], gaps.lo, gaps.hi))
    gaps = gaps._replace(lo=np.where(gaps.below_hi < levels[:, None], gaps.hi, gaps.lo))
    gaps = gaps.narrowed(points[:, None, None], found[:, None], levels)
    while (wide := gaps.are_wider_than(fine)).any():
        which = np.flatnonzero(wide.any(axis=0))
        some = gaps.of_rows(which)
        ends = np.unique(np.stack([gaps.lo[wide], gaps.hi[wide]]), axis=1)
        n_part = _N_POINT // ends.shape[1]
        if n_part >= _FEWEST:
            points = np.linspace(ends[0], ends[1], n_part + 1)[1:-1].ravel()
            points = np.unique(np.floor(points) if is_whole else points)
            some = some.narrowed(points[:, None, None], below(unit * points, rows[which])[:, None], levels)
        else:
            points = _own_points(some, levels, fine, is_whole)
            found = below(unit * points.reshape(-1, which.size), rows[which]).reshape(points.shape)
            some = some.narrowed(points, found, levels)
        for end, narrowed in zip(gaps, some, strict=True):
            end[:, which] = narrowed
    return unit * gaps.hi


def _first_points(column: Column, unit: float, reach: float) -> np.ndarray:
    """Return points over a column's support, ascending: the more, the closer to its training values."""
    least, most = max(column.support[0], -_LARGEST) / unit, min(column.support[1], _LARGEST) / unit
    minimum, maximum = column.minimum / unit, column.maximum / unit
    farther = 2.0 ** np.arange(2.0, np.log2(_FARTHEST) + 2.0) - 1.0
    far = reach * np.concatenate([np.arange(1.0, _N_OUTSIDE + 1.0) / _N_OUTSIDE, farther])
    points = np.concatenate([minimum - far, np.linspace(minimum, maximum, _N_POINT - 2 * far.size), maximum + far])
    points = np.clip(points, least, most)
    if column.base == "integer":
        return np.unique(np.floor(points))
    atoms = np.array(column.atoms) / unit  # where one lies, the probability jumps
    return np.unique(np.concatenate([points, atoms, np.nextafter(atoms, -np.inf)]))


def _own_points(gaps: _Gaps, levels: np.ndarray, fine: float, is_whole: bool) -> np.ndarray:
    """Return three points within each gap, float64 (3, n_level, n_row)."""
    width = gaps.hi - gaps.lo
    rise = np.maximum(gaps.below_hi - gaps.below_lo, np.finfo(float).tiny)
    guess = gaps.lo + width * np.clip((levels[:, None] - gaps.below_lo) / rise, 0.0, 1.0)
    about = np.maximum(0.5 * fine, width / 32.0)  # what interpolation is mostly off by
    points = np.stack([guess - about, guess + about, gaps.lo + 0.5 * width])
    return np.floor(points) if is_whole else points
