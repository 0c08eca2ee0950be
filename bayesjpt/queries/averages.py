"""Masses of rows and their cells, averaged over draws: each row by all draws alike, or by the posterior without it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesjpt.defaults import QUERY_WORK_BYTES, SCORED_ROWS
from bayesjpt.errors import QueryError
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.leave_one_out import fill_cell_log_mass
from bayesjpt.kernels.work import block_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import even_log_mass, log_density
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


class LeftOut(NamedTuple):
    """Log importance weights of the draws for rows left out, and what they are worth.

    Attributes
    ----------
    log_weight : list of float64 (n_draw, n_row)
        Of each structure, for an average over its draws; over all draws of all structures they add up to one.
    pareto_k : float64 (n_row,)
        Of each row, as `leave_out` says.
    """

    log_weight: list[np.ndarray]
    pareto_k: np.ndarray

    def take(self, which: slice | np.ndarray) -> LeftOut:
        """Return those of some of the rows."""
        return LeftOut([weights[:, which] for weights in self.log_weight], self.pareto_k[which])


def averages(
    post: Posterior, both: Table, left_out: LeftOut | None = None, *, by_tails: bool
) -> tuple[Averages, Surroundings | None]:
    """Return averages over all draws, and where rows lie, if asked; the first rows may be `left_out`."""
    structures = post.by_structure()
    parts = []
    for number, structure in enumerate(structures):
        weights = _even(structure)
        if left_out is not None:
            weights = weights.repeat(both.n_row, axis=1)
            weights[:, : left_out.pareto_k.size] = left_out.log_weight[number]
        # favourite values are no news about a row: here all cells of a column are equally wide
        found = _log_masses(structure, both, weights, *recorded_cells(post.schema, both.values, even=True))
        if by_tails:
            near = near_cells(structure, both, weights)
            place, wide = (_log_masses(structure, both, weights, near.centre, half) for half in near.half)
            found += wide[0], near.alone[1], near.tail, *place, near.alone[0]
        parts.append(found)
    averaged = [_averaged(list(values), _shares(post)) for values in zip(*parts, strict=True)]
    return Averages(*averaged[:2]), Surroundings(*averaged[2:]) if by_tails else None


def mean_log_masses(post: Posterior, rows: Table, left_out: LeftOut | None = None) -> np.ndarray:
    """Return log masses of rows over the columns that they observe, averaged over all draws as `averages` does."""
    parts = []
    for number, structure in enumerate(post.by_structure()):
        weights = _even(structure) if left_out is None else left_out.log_weight[number]
        masses = even_log_mass(structure, rows).values.reshape(len(weights), rows.n_row)
        parts.append(log_sum(masses + weights, 0))
    return _averaged(parts, _shares(post))


def _even(structure: Posterior) -> np.ndarray:
    n_draw = structure.n_chain * structure.n_draw
    return np.full((n_draw, 1), -np.log(n_draw))


def _shares(post: Posterior) -> np.ndarray:
    return np.array([structure.n_draw for structure in post.by_structure()]) / post.n_draw


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


_LEVEL = 1e-9
"""Nats between the largest weights below which they are the same: smoothing them would not show."""


def leave_out(post: Posterior, rows: Table) -> LeftOut:
    """Return how draws count for each of some fitted rows as if it were left out, by Pareto-smoothed importance.

    A draw's ratio is relative to the geometric mean of its structure, since each structure keeps its share of the
    answer whether a row is left out or not. Deviations from it are those of all structures together: by themselves the
    20 draws or two of one structure have no tail, and none could weigh more than their number. Pareto's k above 0.7
    says that a row has so much influence that these weights do not reach the posterior without it.

    Raises
    ------
    QueryError
        With fewer than 30 draws in all.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao, Gabry (2024). Pareto Smoothed Importance Sampling.
    """
    n_all = post.n_chain * post.n_draw
    if n_all < _N_TAIL:
        raise QueryError(f"{n_all} draws", f"at least {_N_TAIL} for rows that were fitted")
    deviations = []
    for structure in post.by_structure():
        log_ratio = -log_density(structure, rows).values.reshape(-1, rows.n_row)
        n_draw = len(log_ratio)
        # from their own mean n draws lie less far than from that of all that there might be
        spread = np.sqrt(n_draw / max(n_draw - 1, 1))
        impossible = np.isinf(log_ratio).any(axis=0)
        log_ratio[:, impossible] = np.inf
        deviations.append(spread * (log_ratio - np.where(impossible, 0.0, log_ratio.mean(axis=0))))
    log_weight = np.concatenate(deviations)
    possible = np.isfinite(log_weight).all(axis=0)
    level = possible & _has_level_tail(log_weight)
    pareto_k = np.where(level, -np.inf, np.inf)
    log_weight[:, ~possible] = 0.0
    smooth = possible & ~level
    if smooth.any():
        from arviz_stats.base.array import array_stats

        stats: Any = array_stats  # its annotations promise tuples where arrays come back
        smoothed, pareto_k[smooth] = stats.psislw(-log_weight[:, smooth].T, axis=-1)
        log_weight[:, smooth] = np.asarray(smoothed).T
    log_weight -= log_sum(log_weight, 0)
    parts = np.split(log_weight, np.cumsum([len(part) for part in deviations])[:-1])
    return LeftOut([part + np.log(n_all / len(part)) for part in parts], pareto_k)


def _has_level_tail(log_weight: np.ndarray) -> np.ndarray:
    """Return bool (n_row,): whether the largest weights, that Pareto-smoothing would smooth, are all the same.

    They have a bound then, which no draw exceeds; a Pareto distribution cannot be fitted to them.
    """
    n = len(log_weight)
    n_tail = math.floor(3.0 * math.sqrt(n)) if n > 225 else n // 5  # as ArviZ has it
    with np.errstate(invalid="ignore"):  # of rows that are impossible, which are told apart before
        return np.ptp(np.partition(log_weight, n - n_tail, axis=0)[n - n_tail :], axis=0) <= _LEVEL
