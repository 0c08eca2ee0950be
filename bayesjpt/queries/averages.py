"""Masses of rows and their cells, averaged over draws: each row by all draws alike, or by the posterior without it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesjpt.defaults import QUERY_WORK_BYTES, SCORED_ROWS
from bayesjpt.errors import QueryError
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.surprise import fill_cell_log_mass
from bayesjpt.kernels.work import block_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import log_density
from bayesjpt.queries.given import log_sum
from bayesjpt.queries.tails import near_cells
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.table import Table

_N_TAIL = 25
"""Draws below which the tail of importance weights is too short to be smoothed; that of Vehtari et al. (2024) needs 5
draws in the fifth of them that is the tail."""


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
    parts, pareto_k = [], []
    for structure in structures:
        weights = np.full((structure.n_chain * structure.n_draw, 1), -np.log(structure.n_chain * structure.n_draw))
        if fitted is not None:
            left_out, own_k = _leave_one_out(structure, fitted)
            weights = np.concatenate([left_out, weights.repeat(both.n_row - fitted.n_row, axis=1)], axis=1)
            pareto_k.append(own_k)
        # favourite values are no news about a row: here all cells of a column are equally wide
        found = _log_masses(structure, both, weights, *recorded_cells(post.schema, both.values, even=True))
        if by_tails:
            near = near_cells(structure, both, weights)
            place, wide = (_log_masses(structure, both, weights, near.centre, half) for half in near.half)
            found += wide[0], near.alone[1], near.tail, *place, near.alone[0]
        parts.append(found)
    averaged = [_averaged(list(values), shares) for values in zip(*parts, strict=True)]
    around = Surroundings(*averaged[2:]) if by_tails else None
    return Averages(*averaged[:2]), around, np.max(pareto_k, axis=0) if pareto_k else None


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
        values, observed, own_half = (np.ascontiguousarray(x[:, part]) for x in (centre, both.observed, half))
        tables = {"max_distinct_share": 1.0, "max_table_bytes": 2**62, "keep_terms": False}
        cells = make_cells(plan, values, observed, **tables, half=own_half)
        together, rest = np.empty(values.shape[1]), np.empty(values.shape)
        own = np.ascontiguousarray(weights[:, part] if weights.shape[1] > 1 else weights)
        fill_cell_log_mass(plan, cells, params, own, min(n_block, together.size), together, rest)
        row_score[part], rest_score[:, part] = together, rest
    return row_score, rest_score


def _leave_one_out(post: Posterior, rows: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return log importance weights of the draws for each row left out, (n_draw, n_row), and Pareto's k, (n_row,)."""
    density = log_density(post, rows).values.reshape(-1, rows.n_row)
    if density.shape[0] < _N_TAIL:
        raise QueryError(f"{density.shape[0]} draws", f"at least {_N_TAIL} for rows that were fitted")
    possible = np.isfinite(density).all(axis=0)
    log_weight, pareto_k = np.full(density.shape, -np.log(density.shape[0])), np.full(rows.n_row, np.inf)
    pareto_k[np.ptp(density, axis=0) == 0.0] = -np.inf
    possible &= np.isinf(pareto_k) & (pareto_k > 0)
    if possible.any():
        from arviz_stats.base.array import array_stats

        stats: Any = array_stats  # its annotations promise tuples where arrays come back
        smoothed, pareto_k[possible] = stats.psislw(density[:, possible].T, axis=-1)
        log_weight[:, possible] = np.asarray(smoothed).T
        log_weight[:, possible] -= log_sum(log_weight[:, possible], 0)
    return log_weight, pareto_k
