"""How unlikely each row of a table is, and which of its cells makes it so."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesjpt.defaults import QUERY_WORK_BYTES, SCORED_ROWS
from bayesjpt.errors import QueryError
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.surprise import fill_cell_log_mass
from bayesjpt.kernels.work import block_rows
from bayesjpt.posterior.answer import PlainAnswers, verb
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import even_log_mass, log_density
from bayesjpt.queries.evidence import as_rows
from bayesjpt.queries.given import log_sum
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.table import Table

_N_TAIL = 25
"""Draws below which the tail of importance weights is too short to be smoothed; that of Vehtari et al. (2024) needs 5
draws in the fifth of them that is the tail."""

_ROUNDING = 1e-12
"""Of a score; those of one row alone and among others are added up in different orders."""

_N_SCORES = 2**22
"""Scores, over draws and rows, that are held at a time: 32 MB."""


@verb
def outliers(post: Posterior, table, *, reference: Any = None, training: bool = False) -> PlainAnswers:
    """Return how unlikely each row is, and each of its cells given the rest of the row.

    Scores are masses of what is recorded, averaged over draws: the posterior-predictive probability of the row and,
    for a cell, that of the row over that of the row without it. They are judged against the same scores of reference
    rows, which are compared over the columns that the row observes.

    Parameters
    ----------
    post : Posterior
    table : Table or data frame
    reference : Table or data frame, optional
        Rows that are taken for usual; by default the training rows that the fit kept. Rows that the model expects are
        ``post.sample(1000, rng=rng, recorded=True)``.
    training : bool
        Whether the rows of `table` were fitted. Then each is scored by the posterior without it, by Pareto-smoothed
        importance weights of the draws.

    Returns
    -------
    Dataset, dims (obs_id) and (obs_id, feature)
        ``log_mass``: of the row, in nats. ``quantile``: share of the reference rows that are as unlikely or more, NaN
        where none observes all the columns of the row; ``n_reference``: how many do. ``responsible``: the column with
        the largest excess, empty for rows without observed cells. With `training`, ``pareto_k``: above 0.7 the row has
        so much influence on the fit that its scores are unreliable, and then too good.
        By cell, NaN where it is missing: ``cell_log_mass`` given the rest of the row; ``cell_excess``: nats by which
        that is less than the mean of the column's cells in the reference rows; ``cell_quantile`` among them.

    Raises
    ------
    QueryError
        Without reference rows; with `training` and fewer than 25 draws of some structure.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    A cell whose row is impossible without it too has no score (NaN). Two cells that contradict each other are both
    unlikely given the rest: the responsible one is where the contradiction costs most. Cost: draws x rows x edges, and
    the reference rows once for each pattern of missing cells.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao, Gabry (2024). Pareto Smoothed Importance Sampling.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> rows = pd.DataFrame({"kind": ["a", "b"], "size": [30.0, 9.0]})
    >>> found = post.outliers(rows, reference=table)
    >>> found["responsible"].values.tolist()[0], float(found["quantile"][0])
    ('size', 0.0)
    """
    rows = as_rows(table, post.schema)
    usual = post.reference if reference is None else as_rows(reference, post.schema)
    if usual is None:
        raise QueryError(
            "a posterior without reference rows",
            "reference= rows that are taken for usual",
            "The rows that the model expects are post.sample(1000, rng=rng, recorded=True).",
        )
    row_scores, cell_scores, pareto_k = _scores(post, rows, usual, training)
    row_score, usual_score = row_scores[: rows.n_row], row_scores[rows.n_row :]
    cell_score, usual_cells = cell_scores[:, : rows.n_row], cell_scores[:, rows.n_row :]
    quantile, n_reference = _row_quantiles(post, rows, usual, row_score, usual_score)
    excess, cell_quantile = np.full((2, *cell_score.shape), np.nan)
    for column in range(rows.n_column):
        known = usual_cells[column, usual.observed[column] & np.isfinite(usual_cells[column])]
        here = rows.observed[column] & ~np.isnan(cell_score[column])
        if known.size:
            excess[column, here] = known.mean() - cell_score[column, here]
            cell_quantile[column, here] = _share_below(known, cell_score[column, here])
    answer = {
        "log_mass": ("obs_id", row_score),
        "quantile": ("obs_id", quantile),
        "n_reference": ("obs_id", n_reference),
        "responsible": ("obs_id", _responsible(rows, excess)),
        "cell_log_mass": (("obs_id", "feature"), cell_score.T),
        "cell_excess": (("obs_id", "feature"), excess.T),
        "cell_quantile": (("obs_id", "feature"), cell_quantile.T),
    }
    if pareto_k is not None:
        answer["pareto_k"] = ("obs_id", pareto_k)
    return PlainAnswers(answer, coords={"obs_id": np.arange(rows.n_row), "feature": list(rows.names)})


def _together(first: Table, second: Table) -> Table:
    """Return the rows of two tables: values that both have are then scored once."""
    values = np.concatenate([first.values, second.values], axis=1)
    return Table(first.schema, values, np.concatenate([first.observed, second.observed], axis=1))


def _scores(
    post: Posterior, rows: Table, usual: Table, training: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return log masses of rows, (n_row,), and of cells given the rest of their row, (n_column, n_row), NaN if missing.

    Of both tables' rows, one after the other, averaged over draws; and Pareto's k of the first where they were fitted.
    """
    both = _together(rows, usual)
    parts = [_log_masses(structure, both, rows if training else None) for structure in post.by_structure()]
    shares = np.array([structure.n_draw for structure in post.by_structure()]) / post.n_draw
    together, rest = (_averaged([part[k] for part in parts], shares) for k in range(2))
    known = both.observed & (rest > -np.inf)
    cell_score = np.where(known, np.minimum(together - np.where(known, rest, 0.0), 0.0), np.nan)
    return together, cell_score, np.max([part[2] for part in parts], axis=0) if training else None


def _averaged(log_values: list[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """Return the logarithm of an average over structures."""
    if len(log_values) == 1:
        return log_values[0]
    return log_sum(np.stack([values + np.log(share) for values, share in zip(log_values, shares, strict=True)]), 0)


def _log_masses(post: Posterior, both: Table, fitted: Table | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log masses of rows, (n_row,), of rows without each cell, (n_column, n_row), and Pareto's k of `fitted`.

    These are the first rows, if given. Averaged over the draws of one structure.
    """
    plan, params = post.plan(), post.flat()
    n_draw = params.theta.shape[0]
    weights, pareto_k = np.full((n_draw, 1), -np.log(n_draw)), np.empty(0)
    if fitted is not None:
        left_out, pareto_k = _leave_one_out(post, fitted)
        weights = np.concatenate([left_out, weights.repeat(both.n_row - fitted.n_row, axis=1)], axis=1)
    row_score, rest_score = np.empty(both.n_row), np.empty((both.n_column, both.n_row))
    # favourite values are no news about a row: here all cells of a column are equally wide
    centre, half = recorded_cells(post.schema, both.values, even=True)
    n_block = block_rows(plan, QUERY_WORK_BYTES)
    for lo in range(0, both.n_row, SCORED_ROWS):
        part = slice(lo, min(lo + SCORED_ROWS, both.n_row))
        values, observed, own_half = (np.ascontiguousarray(x[:, part]) for x in (centre, both.observed, half))
        cells = make_cells(plan, values, observed, max_distinct_share=1.0, max_table_bytes=2**62, half=own_half)
        together, rest = np.empty(values.shape[1]), np.empty(values.shape)
        own = np.ascontiguousarray(weights[:, part] if weights.shape[1] > 1 else weights)
        fill_cell_log_mass(plan, cells, params, own, min(n_block, together.size), together, rest)
        row_score[part], rest_score[:, part] = together, rest
    return row_score, rest_score, pareto_k


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


def _row_quantiles(
    post: Posterior, rows: Table, usual: Table, score: np.ndarray, usual_score: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of reference rows that are at most as likely over the row's columns, and how many there are."""
    quantile, n_reference = np.full(rows.n_row, np.nan), np.zeros(rows.n_row, np.int64)
    patterns, which = np.unique(rows.observed.T, axis=0, return_inverse=True)
    for number, known in enumerate(_known_scores(post, usual, usual_score, patterns)):
        same = np.flatnonzero(which.ravel() == number)
        n_reference[same] = known.size
        if known.size:
            quantile[same] = _share_below(known, score[same])
    return quantile, n_reference


def _known_scores(post: Posterior, usual: Table, usual_score: np.ndarray, patterns: np.ndarray) -> list[np.ndarray]:
    """Return for each pattern of observed columns the scores over these alone of the reference rows that observe them.

    All patterns are scored together, many to a part: a part's values are scored once, whatever their rows observe.
    """
    alike = [np.flatnonzero(usual.observed[pattern].all(axis=0)) for pattern in patterns]
    more = [usual.observed[~p][:, rows].any(axis=0) for p, rows in zip(patterns, alike, strict=True)]
    asked = np.repeat(patterns, [int(wider.sum()) for wider in more], axis=0)
    row = np.concatenate([rows[wider] for rows, wider in zip(alike, more, strict=True)])
    score = np.empty(row.size)
    n_part = max(usual.n_row, _N_SCORES // (post.n_chain * post.n_draw))
    for lo in range(0, row.size, n_part):
        part = slice(lo, lo + n_part)
        seen = Table(
            usual.schema, np.ascontiguousarray(usual.values[:, row[part]]), np.ascontiguousarray(asked[part].T)
        )
        masses = even_log_mass(post, seen).values.reshape(-1, seen.n_row)
        score[part] = log_sum(masses, 0) - np.log(masses.shape[0])
    known = [usual_score[rows] for rows in alike]
    ends = np.cumsum([int(wider.sum()) for wider in more])[:-1]
    for scores, wider, own in zip(known, more, np.split(score, ends), strict=True):
        scores[wider] = own
    return known


def _share_below(known: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the share of known scores, at most 0, at or below each of x: equal where they differ by rounding."""
    return np.searchsorted(np.sort(known), x * (1.0 - _ROUNDING), side="right") / known.size


def _responsible(rows: Table, excess: np.ndarray) -> np.ndarray:
    """Return the name of the column with the largest excess in each row, empty where there is none."""
    filled = np.where(np.isnan(excess), -np.inf, excess)
    names = np.array([*rows.names, ""])
    best = np.argmax(filled, axis=0)
    return names[np.where(filled.max(axis=0) > -np.inf, best, rows.n_column)]
