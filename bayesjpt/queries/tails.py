"""How far out in its column a value is: the probability of a value at most as probable as the one recorded.

      density   |      __                    p of x: what lies where the density is at most that at x,
                |     /  \\          __       in the tails, and between modes too
      at x ...  |..../....\\......../..\\....
                |__/#|     \\#####/|   |#\\__
                     x

It has no units, is the same on columns of any resolution, and compares numbers with labels, whose probabilities are
ordered likewise. Under one draw at most a share q of the values has a tail probability of q or less.

Reference: Hyndman (1996), Computing and graphing highest density regions, The American Statistician: p is one less the
content of the smallest highest density region that leaves x out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.defaults import TAIL_CELLS, TAIL_REACH
from bayesjpt.kernels.flow import fill_marginal_log_mass
from bayesjpt.kernels.surprise import fill_log_gamma_tail
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.given import log_sum
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

_ROUNDING = 1e-9
"""Of a probability: labels, counts and atoms that differ by less are equally probable."""

_N_MASS = 2**22
"""Masses, over draws and intervals, that are held at a time unless a column has more: 32 MB."""


def cells_alone(post: Posterior, rows: Table, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log masses of cells by themselves and their log tail probabilities, float64 (n_column, n_row) each.

    Averages over the draws of one structure; 0 where a cell is missing. All recorded cells of a column have one width.

    Parameters
    ----------
    post : Posterior
    rows : Table
    log_weights : float64 (n_draw, n_row) or (n_draw, 1)
        Of the draws.
    """
    alone, tail = np.zeros(rows.values.shape), np.zeros(rows.values.shape)
    cells = recorded_cells(rows.schema, rows.values, even=True)
    pieces = [_pieces(column) for column in rows.schema]
    values = [np.unique(centre[seen]) for centre, seen in zip(cells[0], rows.observed, strict=True)]
    intervals = [
        np.concatenate([own.ends, centre + half.max(initial=0.0) * np.array([[-1.0], [1.0]])], axis=1)
        for own, centre, half in zip(pieces, values, cells[1], strict=True)
    ]
    for columns in _parts([part.shape[1] for part in intervals], log_weights.shape[0]):
        log_masses = _log_masses(post, {column: intervals[column] for column in columns})
        for column, log_mass in zip(columns, log_masses, strict=True):
            seen = rows.observed[column]
            code = np.searchsorted(values[column], cells[0][column, seen])
            weights = log_weights[:, seen] if log_weights.shape[1] > 1 else log_weights
            log_mass, log_value = np.split(log_mass, [pieces[column].ends.shape[1]], axis=1)
            log_tail = _log_tails(pieces[column], np.exp(log_mass), log_value)
            alone[column, seen] = np.minimum(log_sum(log_value[:, code] + weights, 0), 0.0)
            tail[column, seen] = np.minimum(log_sum(log_tail[:, code] + weights, 0), 0.0)
    return alone, tail


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


def _log_masses(post: Posterior, intervals: dict[int, np.ndarray]) -> list[np.ndarray]:
    """Return the log probabilities of intervals (2, n) of some columns, float64 (n_draw, n) each."""
    plan, params = post.plan(), post.flat()
    ends = np.concatenate(list(intervals.values()), axis=1)
    sizes = np.zeros(len(post.schema), np.int64)
    sizes[list(intervals)] = [part.shape[1] for part in intervals.values()]
    out = np.empty((params.theta.shape[0], ends.shape[1]))
    fill_marginal_log_mass(plan, params.log_weight, params.theta, np.append(0, np.cumsum(sizes)), ends, out)
    return np.split(out, np.cumsum(sizes[list(intervals)])[:-1], axis=1)


class _Pieces(NamedTuple):
    """Closed intervals into which a column is cut.

    Attributes
    ----------
    ends : float64 (2, n_piece)
    n_value : float64 (n_piece,)
        Recorded values that each holds.
    single : bool (n_piece,)
        Labels, whole numbers and atoms.
    holder : int64 (n_atom,)
        The intervals that atoms lie in. Atoms are the last pieces.
    """

    ends: np.ndarray
    n_value: np.ndarray
    single: np.ndarray
    holder: np.ndarray


def _pieces(column: Column) -> _Pieces:
    """Return each label of a column, or intervals that grow with the distance from its location."""
    if column.base == "category":
        codes = np.arange(float(len(column.code_names)))
        return _Pieces(np.stack([codes, codes]), np.ones(codes.size), np.ones(codes.size, bool), np.empty(0, np.int64))
    steps = np.linspace(-np.arcsinh(TAIL_REACH), np.arcsinh(TAIL_REACH), TAIL_CELLS - 1)
    edges = column.location + column.scale * np.sinh(steps)
    if column.base == "integer":
        edges = np.unique(np.rint(edges)) - 0.5
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    if column.base == "integer":
        ends, n_value = np.stack([edges[:-1] + 0.5, edges[1:] - 0.5]), np.diff(edges)
        return _Pieces(ends, n_value, n_value == 1.0, np.empty(0, np.int64))
    atoms = np.array(column.atoms, float)
    ends = np.stack([edges[:-1], np.nextafter(edges[1:], -np.inf)])
    n_value = np.append(np.diff(edges) / column.resolution, np.ones(atoms.size))
    single = np.arange(n_value.size) >= n_value.size - atoms.size
    holder = np.searchsorted(edges, atoms, side="right") - 1
    return _Pieces(np.concatenate([ends, np.stack([atoms, atoms])], axis=1), n_value, single, holder)


def _log_tails(pieces: _Pieces, mass: np.ndarray, log_value: np.ndarray) -> np.ndarray:
    """Return the log probability of values at most as probable, float64 (n_draw, n_value).

    `mass` is that of the pieces, (n_draw, n_piece), `log_value` that of each value. Between the mean densities of two
    intervals it is interpolated, in logarithms; below all of them it falls as the density does.
    """
    for atom, holder in enumerate(pieces.holder):
        mass[:, holder] = np.maximum(mass[:, holder] - mass[:, atom - pieces.holder.size], 0.0)
    outside = mass[:, np.isinf(pieces.n_value)].sum(axis=1)
    bounded = ~pieces.single & np.isfinite(pieces.n_value)
    out = np.empty(log_value.shape)
    for draw, own in enumerate(log_value):
        ascending = np.sort(mass[draw, pieces.single])
        sums = np.append(0.0, np.cumsum(ascending))
        with np.errstate(divide="ignore"):
            tail = np.log(sums[np.searchsorted(ascending, np.exp(own) * (1.0 + _ROUNDING), side="right")])
        here = np.flatnonzero(bounded & (mass[draw] > 0.0))
        if here.size:
            log_mean = np.log(mass[draw, here]) - np.log(pieces.n_value[here])
            order = np.argsort(log_mean)
            log_mean, inside = log_mean[order], mass[draw, here[order]]
            below = outside[draw] + np.cumsum(inside)
            between = np.interp(own, log_mean, np.log(below - 0.5 * inside), right=np.log(below[-1]))
            tail = np.logaddexp(tail, between + np.minimum(own - log_mean[0], 0.0))
        out[draw] = np.where(own > -np.inf, np.clip(tail, own, 0.0), -np.inf)  # at least its own probability
    return out


def together(rows: Table, beyond: np.ndarray, cell_score: np.ndarray, usual: slice) -> np.ndarray:
    """Return how odd rows are, all their cells together or the oddest of them, float64 (n_row,), at least 0.

    Both are minus logarithms of probabilities. All together: Fisher's sum of minus log tail probabilities, whose mean
    and variance over a row's observed columns are those of the usual rows, as one Gamma variable (Brown). The oddest:
    times the number of observed cells (Bonferroni).

    Parameters
    ----------
    rows : Table
    beyond, cell_score : float64 (n_column, n_row)
        Minus log tail probabilities of cells, and with what the rest of the row says against them; 0 where missing.
    usual : slice
        The rows that are usual. The mean and variance of independent continuous columns under the model, which are 1,
        count as one more of them.
    """
    known = rows.observed[:, usual] & np.isfinite(beyond[:, usual])
    n_known = known.sum(axis=1) + 1.0
    mean = (np.where(known, beyond[:, usual], 0.0).sum(axis=1) + 1.0) / n_known
    away = np.where(known, beyond[:, usual] - mean[:, None], 0.0)
    covariance = (away @ away.T + np.eye(mean.size)) / np.sqrt(np.outer(n_known, n_known))
    seen = rows.observed.astype(float)
    n_seen = seen.sum(axis=0)
    some = np.flatnonzero(n_seen)
    log_tail = np.empty(some.size)
    variance = (seen * (covariance @ seen)).sum(axis=0)
    fill_log_gamma_tail((mean @ seen)[some], variance[some], beyond.sum(axis=0)[some], log_tail)
    out = np.zeros(rows.n_row)
    out[some] = np.maximum(-log_tail, cell_score.max(axis=0)[some] - np.log(n_seen[some]))
    return np.maximum(out, 0.0)
