"""How odd values and rows are by what lies near them: the probability of their neighbourhood.

      density   |      __                 near x lies what is within a third of the column's scale; farther out
                |     /  \\          __    as much of the distance
                |  [.x.]  \\________/[y]
                |__/       \\____/      \\__
                     x              y     tail of x: the probability of all values near which no more lies

Nothing narrower than a neighbourhood makes a value usual: no atom or level beside which others are as good, no tight
group of few rows. Tails have no units, are the same on columns of any resolution, and compare numbers with labels,
whose neighbourhoods are themselves. Under one draw at most a share q of the values has a tail probability of q or less.

References: Hyndman (1996), Computing and graphing highest density regions, The American Statistician: a tail
probability is one less the content of the smallest region of highest density that leaves x out. Knorr and Ng (1998),
Algorithms for mining distance-based outliers in large datasets, VLDB: a row is odd if few rows lie within a distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.flow import fill_marginal_log_mass
from bayesjpt.kernels.leave_one_out import fill_log_gamma_tail
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.given import log_sum
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

NEAR = 0.3
"""Scales of a column to either side of its location that are near a value there; farther out it is as many of the
distance. Chosen on the validation tables of docs/results.md."""


_ROUNDING = 1e-9
"""Of a probability: neighbourhoods that differ by less are equally probable."""

_N_MASS = 2**22
"""Masses, over draws and intervals, that are held at a time unless a column has more: 32 MB."""

_N_CELL = 159
"""Intervals of a column of numbers whose values share one neighbourhood, which is 4.8 times as wide."""

_REACH = 1e4
"""Scales of a column to either side of its location that these intervals reach."""


class Near(NamedTuple):
    """Where the cells of some rows lie: first in the place that a cell shares with others, then in its neighbourhood.

    Attributes
    ----------
    centre : float64 (n_column, n_row)
        The middle of both, in the user's units; the code of a label.
    half : float64 (2, n_column, n_row)
        Half widths, 0 for labels.
    alone : float64 (2, n_column, n_row)
        Log masses in the column by itself, averaged over draws; 0 where the cell is missing, as below.
    tail : float64 (n_column, n_row)
        Log tail probabilities, averaged over draws.
    """

    centre: np.ndarray
    half: np.ndarray
    alone: np.ndarray
    tail: np.ndarray


def near_cells(post: Posterior, rows: Table, log_weights: np.ndarray) -> Near:
    """Return where cells lie, and how probable that is by the draws of one structure.

    Parameters
    ----------
    post : Posterior
    rows : Table
    log_weights : float64 (n_draw, n_row) or (n_draw, 1)
        Of the draws.
    """
    shape = rows.values.shape
    near = Near(np.zeros(shape), np.zeros((2, *shape)), np.zeros((2, *shape)), np.zeros(shape))
    places = [_places(column) for column in rows.schema]
    for columns in _parts([place.half.size for place in places], log_weights.shape[0]):
        for column, log_mass in zip(columns, _log_masses(post, places, columns), strict=True):
            place, seen = places[column], rows.observed[column]
            at = np.searchsorted((place.centre + place.half[0])[:-1], rows.values[column, seen])
            weights = log_weights[:, seen] if log_weights.shape[1] > 1 else log_weights
            near.centre[column, seen], near.half[:, column, seen] = place.centre[at], place.half[:, at]
            for log_value, out in zip((*log_mass, _log_tails(*log_mass)), (*near.alone, near.tail), strict=True):
                out[column, seen] = np.minimum(log_sum(log_value[:, at] + weights, 0), 0.0)
    return near


def _parts(sizes: list[int], n_draw: int) -> list[list[int]]:
    """Return parts of columns, by number, whose masses are held at a time."""
    parts: list[list[int]] = [[]]
    n_held = 0
    for column, size in enumerate(sizes):
        n_held += size * n_draw
        if parts[-1] and n_held > _N_MASS:
            parts.append([])
            n_held = size * n_draw
        parts[-1].append(column)
    return parts


class _Places(NamedTuple):
    """A column cut into intervals, ascending, and the neighbourhoods of all values in each.

    Attributes
    ----------
    centre : float64 (n_place,)
    half : float64 (2, n_place)
        Half widths of the intervals and of the neighbourhoods; 0 for labels.
    """

    centre: np.ndarray
    half: np.ndarray


def _places(column: Column) -> _Places:
    """Return each label of a column, or intervals that grow with the distance from its location."""
    if column.base == "category":
        codes = np.arange(float(len(column.code_names)))
        return _Places(codes, np.zeros((2, codes.size)))
    edges = column.location + column.scale * np.sinh(np.arcsinh(_REACH) * np.linspace(-1.0, 1.0, _N_CELL + 1))
    if column.base == "integer":
        edges = np.unique(np.rint(edges)) - 0.5
    centre, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    wide = NEAR * np.hypot(column.scale, centre - column.location)
    return _Places(centre, np.stack([half, np.maximum(wide, np.maximum(half, 0.5 * column.resolution))]))


def _log_masses(post: Posterior, places: list[_Places], columns: list[int]) -> list[np.ndarray]:
    """Return log masses of some columns' intervals and of their neighbourhoods, float64 (2, n_draw, n_place) each."""
    plan, params = post.plan(), post.flat()
    n_draw, sizes = params.theta.shape[0], np.zeros(len(places), np.int64)
    sizes[columns] = [places[column].half.size for column in columns]
    ends = [
        (place.centre + place.half * np.array([-1.0, 1.0])[:, None, None]) for place in (places[c] for c in columns)
    ]
    intervals = np.concatenate([end.reshape(2, -1) for end in ends], axis=1)
    out, ptr = np.empty((n_draw, intervals.shape[1])), np.append(0, np.cumsum(sizes))
    fill_marginal_log_mass(plan, params.log_weight, params.theta, ptr, intervals, out)
    return [part.reshape(n_draw, 2, -1).swapaxes(0, 1) for part in np.split(out, ptr[1:][columns][:-1], axis=1)]


def _log_tails(log_mass: np.ndarray, log_near: np.ndarray) -> np.ndarray:
    """Return the log probability of all intervals whose neighbourhood is at most as probable, (n_draw, n_place)."""
    out = np.empty(log_mass.shape)
    for draw, near_mass in enumerate(log_near):
        order = np.argsort(near_mass)
        sums = np.cumsum(np.exp(log_mass[draw, order]))
        last = np.searchsorted(near_mass[order], near_mass + _ROUNDING, side="right") - 1
        with np.errstate(divide="ignore"):
            out[draw] = np.log(np.where(near_mass > -np.inf, sums[last], 0.0))
    return np.minimum(out, 0.0)


def together(rows: Table, near: np.ndarray, alone: np.ndarray, cell_score: np.ndarray, usual: slice) -> np.ndarray:
    """Return outlier scores, the largest of three minus logarithms of probabilities, float64 (n_row,), at least 0.

    Of the row's neighbourhood; of what it were if columns were independent; and of the oddest cell, times the number of
    observed cells (Bonferroni). Each of the first two is a sum of surprises, compared with those of the usual rows as a
    Gamma variable whose mean and variance are proportional to what the observed columns add by themselves on average.

    Parameters
    ----------
    rows : Table
    near : float64 (n_row,)
        Minus log masses of the rows' neighbourhoods.
    alone, cell_score : float64 (n_column, n_row)
        Minus log masses of the cells' by themselves, and the cells' own scores; 0 where missing.
    usual : slice
        The rows that are usual. One cell of 1 nat more counts in each column, and one row of independent such columns.
    """
    known = rows.observed[:, usual] & np.isfinite(alone[:, usual])
    expected = (np.where(known, alone[:, usual], 0.0).sum(axis=1) + 1.0) / (known.sum(axis=1) + 1.0)
    size = expected @ rows.observed.astype(float)
    some = np.flatnonzero(size)
    score = np.zeros(rows.n_row)
    score[some] = cell_score.max(axis=0)[some] - np.log(rows.observed.sum(axis=0)[some])
    for surprise in (near, alone.sum(axis=0)):
        score[some] = np.maximum(score[some], _beyond(surprise, size, some, usual))
    return np.maximum(score, 0.0)


def _beyond(surprise: np.ndarray, size: np.ndarray, some: np.ndarray, usual: slice) -> np.ndarray:
    """Return minus log probabilities of at least as large a surprise, for some rows."""
    known = np.isfinite(surprise[usual]) & (size[usual] > 0.0)
    x, n = surprise[usual][known], size[usual][known]
    share = (x.sum() + 1.0) / (n.sum() + 1.0)
    spread = (((x - share * n) ** 2 / np.maximum(n, 1e-300)).sum() + 1.0) / (n.size + 1.0)
    log_tail = np.empty(some.size)
    fill_log_gamma_tail(share * size[some], spread * size[some], surprise[some], log_tail)
    return -log_tail
