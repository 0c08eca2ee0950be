"""Masses of rows and their cells, averaged over draws: each row by all draws alike, or by the posterior without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesjpt.defaults import QUERY_WORK_BYTES, SCORED_ROWS
from bayesjpt.errors import QueryError
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.leave_one_out import fill_cell_log_mass
from bayesjpt.kernels.work import block_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import log_density
from bayesjpt.queries.given import log_sum
from bayesjpt.queries.tails import near_cells
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.table import Table

_N_TAIL = 30
"""Draws below which the tail of importance weights is too short to be smoothed: ArviZ fits Pareto's distribution to the
largest fifth of them, and to no fewer than six."""


class Surroundings(NamedTuple):
    """Logarithms of averages over draws, of where rows and their cells lie; 0 for missing cells.

    Attributes
    ----------
    row, alone : float64 (n_row,), (n_column, n_row)
        Masses of the neighbourhoods of rows, and of their cells by themselves.
    tail : float64 (n_column, n_row)
        Tail probabilities of cells.
    place_row, place_rest, place_alone : float64 (n_row,), (n_column, n_row), (n_column, n_row)
        Masses of the places of rows, of rows without one of their cells, and of cells by themselves.
    """

    row: np.ndarray
    alone: np.ndarray
    tail: np.ndarray
    place_row: np.ndarray
    place_rest: np.ndarray
    place_alone: np.ndarray

    def cell_scores(self) -> np.ndarray:
        """Return how odd cells are by their tails, and given the rest of their row, at least 0; 0 if missing."""
        apart = self.place_rest + self.place_alone
        possible = apart > -np.inf
        against = np.where(possible, apart, 0.0) - np.where(possible, self.place_row, 0.0)
        return np.maximum(against, 0.0) - self.tail


class Averages(NamedTuple):
    """Logarithms of averages over draws, of some rows.

    Attributes
    ----------
    row : float64 (n_row,)
        Masses of rows.
    rest : float64 (n_column, n_row)
        Masses of rows without one of their cells.
    """

    row: np.ndarray
    rest: np.ndarray

    def take(self, which: slice | np.ndarray) -> Averages:
        """Return those of some of the rows."""
        return Averages(self.row[which], self.rest[:, which])

    def given_rest(self, observed: np.ndarray) -> np.ndarray:
        """Return log masses of cells given the rest of their row, NaN if missing or impossible without it too."""
        known = observed & (self.rest > -np.inf)
        return np.where(known, np.minimum(self.row - np.where(known, self.rest, 0.0), 0.0), np.nan)


def averages(
    post: Posterior, both: Table, fitted: Table | None, *, by_tails: bool
) -> tuple[Averages, Surroundings | None, np.ndarray | None]:
    """Return averages over all draws; where rows lie, if asked; Pareto's k of the first rows, if they were fitted."""
    structures = post.by_structure()
    shares = np.array([structure.n_draw for structure in structures]) / post.n_draw
    left_out, pareto_k = (None, None) if fitted is None else _leave_one_out(structures, fitted)
    parts = []
    for number, structure in enumerate(structures):
        weights = np.full((structure.n_chain * structure.n_draw, 1), -np.log(structure.n_chain * structure.n_draw))
        if left_out is not None:
            weights = weights.repeat(both.n_row, axis=1)
            weights[:, : left_out[number].shape[1]] = left_out[number]
        # favourite values are no news about a row: here all cells of a column are equally wide
        found = _log_masses(structure, both, weights, *recorded_cells(post.schema, both.values, even=True))
        if by_tails:
            near = near_cells(structure, both, weights)
            place, wide = (_log_masses(structure, both, weights, near.centre, half) for half in near.half)
            found += wide[0], near.alone[1], near.tail, *place, near.alone[0]
        parts.append(found)
    averaged = [_averaged(list(values), shares) for values in zip(*parts, strict=True)]
    around = Surroundings(*averaged[2:]) if by_tails else None
    return Averages(*averaged[:2]), around, pareto_k


def _averaged(log_values: list[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """Return the logarithm of an average over structures."""
    if len(log_values) == 1:
        return log_values[0]
    return log_sum(np.stack([values + np.log(share) for values, share in zip(log_values, shares, strict=True)]), 0)


def _log_masses(
    post: Posterior, both: Table, weights: np.ndarray, centre: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return log masses of rows, (n_row,), and of rows without each cell, (n_column, n_row).

    Of the intervals around some centres, averaged over the draws of one structure by the logarithms of their weights,
    (n_draw, n_row) or (n_draw, 1).
    """
    plan, params = post.plan(), post.flat()
    row_score, rest_score = np.empty(both.n_row), np.empty((both.n_column, both.n_row))
    n_block = block_rows(plan, QUERY_WORK_BYTES)
    for lo in range(0, both.n_row, SCORED_ROWS):
        part = slice(lo, min(lo + SCORED_ROWS, both.n_row))
        values, observed, part_half = (np.ascontiguousarray(x[:, part]) for x in (centre, both.observed, half))
        tables = {"max_distinct_share": 1.0, "max_table_bytes": 2**62, "keep_terms": False}
        cells = make_cells(plan, values, observed, **tables, half=part_half)
        together, rest = np.empty(values.shape[1]), np.empty(values.shape)
        part_weights = np.ascontiguousarray(weights[:, part] if weights.shape[1] > 1 else weights)
        fill_cell_log_mass(plan, cells, params, part_weights, min(n_block, together.size), together, rest)
        row_score[part], rest_score[:, part] = together, rest
    return row_score, rest_score


def _leave_one_out(structures: Sequence[Posterior], rows: Table) -> tuple[list[np.ndarray], np.ndarray]:
    """Return log importance weights of the draws for each row left out, and Pareto's k of each row, (n_row,).

    Each structure keeps its share of the answer whether a row is left out or not, so weights are relative to the mean
    of their structure, and add up to one there: for each, (n_draw, n_row). Their tail is that of all structures
    together, as 25 draws of one have none.
    """
    ratios = []
    for structure in structures:
        log_ratio = -log_density(structure, rows).values.reshape(-1, rows.n_row)
        ratios.append(log_ratio - log_sum(log_ratio, 0) + np.log(len(log_ratio)))
    log_weight = np.concatenate(ratios)
    if len(log_weight) < _N_TAIL:
        raise QueryError(f"{len(log_weight)} draws", f"at least {_N_TAIL} for rows that were fitted")
    possible = np.isfinite(log_weight).all(axis=0)
    level = possible & (np.ptp(log_weight, axis=0) == 0.0)
    pareto_k = np.where(level, -np.inf, np.inf)
    log_weight[:, ~possible] = 0.0
    smooth = possible & ~level
    if smooth.any():
        from arviz_stats.base.array import array_stats

        stats: Any = array_stats  # its annotations promise tuples where arrays come back
        smoothed, pareto_k[smooth] = stats.psislw(-log_weight[:, smooth].T, axis=-1)
        log_weight[:, smooth] = np.asarray(smoothed).T
    ends = np.cumsum([len(ratio) for ratio in ratios])
    return [part - log_sum(part, 0) for part in np.split(log_weight, ends[:-1])], pareto_k
