"""Scores of single cells, alone and given the rest of their rows, by whatever program scores parts of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests.papers import measures
from tests.papers.lace_peer import Lace

CELLS = 20_000
"""Cells that are scored at once: each is a row of its own."""


@dataclass(frozen=True)
class CellScores:
    """Scores of the hidden cells, nats per cell, over all cells that are scored.

    Parameters
    ----------
    marginal, conditional : float
        Mean over draws and cells of the log density of the cell alone, and given the row's cells that the fit saw.
    marginal_of_mean, conditional_of_mean : float
        Mean over cells of the log of the mean over draws.
    n_cell, n_impossible : int
        Cells, and those with density zero or not a number under some draw: one makes the averages infinite.
    """

    marginal: float
    conditional: float
    marginal_of_mean: float
    conditional_of_mean: float
    n_cell: int
    n_impossible: int


Score = Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]
"""From values (n_column, n), cells and known cells (or None), bool likewise, to log scores of the cells given those
that are known, (n_chain, n_draw, n)."""


def by_verb(verb: Callable, schema: Schema) -> Score:
    """Return the score by `post.log_density` or `post.log_mass`, of values as of tables under a schema."""

    def score(values: np.ndarray, cells: np.ndarray, known: np.ndarray | None) -> np.ndarray:
        given = {} if known is None else {"given": Table(schema, values, known)}
        return verb(Table(schema, values, cells), **given).to_numpy()

    return score


def by_lace(fit: Lace, widths: np.ndarray) -> Score:
    """Return the score by masses of cells of these widths under a fit by lace, whose chains are one draw each."""

    def score(values: np.ndarray, cells: np.ndarray, known: np.ndarray | None) -> np.ndarray:
        log_mass = fit.score(values, widths)
        return log_mass(cells) if known is None else log_mass(cells | known) - log_mass(known)

    return score


def score_cells(score: Score, values: np.ndarray, observed: np.ndarray, scored: np.ndarray) -> CellScores:
    """Return the scores of cells.

    Parameters
    ----------
    score : callable
    values : float64 (n_column, n_row)
        With every value.
    observed : bool (n_column, n_row)
        What the fit saw of each row.
    scored : bool (n_row, n_column)
    """
    columns, rows = np.nonzero(scored.T)
    parts = []
    for first in range(0, columns.size, CELLS):
        column, row = columns[first : first + CELLS], rows[first : first + CELLS]
        alone = np.arange(len(values))[:, None] == column
        asked = np.ascontiguousarray(values[:, row]), alone
        parts.append([score(*asked, None), score(*asked, np.ascontiguousarray(observed[:, row]))])
    marginal, conditional = (np.concatenate(part, axis=2) for part in zip(*parts, strict=True))
    return CellScores(
        marginal=float(marginal.mean()),
        conditional=float(conditional.mean()),
        marginal_of_mean=float(measures.log_of_mean(marginal).mean()),
        conditional_of_mean=float(measures.log_of_mean(conditional).mean()),
        n_cell=marginal.shape[2],
        n_impossible=measures.n_impossible(marginal, conditional),
    )
