"""How odd each row of a table is, and which of its cells makes it so.

      tail       how little lies near it, or near its cells, each in its column; and what the rest says against them
      log_mass   how improbable the row is, and its cells given the rest of it

The second knows dense places from others rather than odd from usual: a small tight cluster is probable, a value off an
atom is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import PlainAnswers, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.averages import LeftOut, averages, leave_out, mean_log_masses
from bayesjpt.queries.evidence import as_rows
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.queries.tails import together
from bayesjpt.table.table import Table

_ROUNDING = 1e-12
"""Of a row's value, and at least of a nat; rows by themselves and among others are added up in different orders."""

_SCORES = ("tail", "log_mass")

SCORING_DRAWS = 32
"""Draws that scores average over: two of each structure of a default fit."""

_N_SCORES = 2**22
"""Scores, over draws and rows, that are held at a time: 32 MB."""


@query_method
def outliers(
    post: Posterior,
    table,
    *,
    score: str = "tail",
    reference: Any = None,
    training: bool = False,
    max_draws: int | None = SCORING_DRAWS,
) -> PlainAnswers:
    """Return how odd each row is, and each of its cells, in nats: minus the logarithm of a probability.

    By default a row is as odd as its neighbourhood is improbable: what lies within a third of a scale in each column of
    numbers, and has the same labels. That is asked of the model, and of the columns as if they were independent; the
    row's score is the larger answer, or that of its oddest cell. A cell is as odd as it is far out in its column: its
    tail probability is that of all values near which no more lies. Neither has units, and resolution makes no
    difference. So 2.3 nats are reached by one in ten usual rows, 4.6 by one in a hundred, by at most three times as
    many; whatever columns a row observes. Scores by mass are the posterior-predictive probability of what is recorded.

    Parameters
    ----------
    post : Posterior
    table : Table or data frame
    score : str
        ``tail``, or ``log_mass``: how improbable the row is, and its cells given the rest of it.
    reference : Table or data frame, optional
        Rows that are taken for usual; by default the training rows that the fit kept. Rows that the model expects are
        ``post.sample(1000, rng=rng)``.
    training : bool
        Whether the rows of `table` were fitted. Then each is scored by the posterior without it, by Pareto-smoothed
        importance weights of the draws, and so are the rows that the fit kept for reference.
    max_draws : int, optional
        Draws to average over, of all chains, at least one of each; None for all, which `training` always takes.

    Returns
    -------
    Dataset, dims (obs_id) and (obs_id, feature)
        ``score``: of the row; larger is odder. By mass it is minus ``log_mass``, which is that of the row in nats.
        ``quantile``: share of the reference rows that are as odd or more, and ``n_reference``, how many they are: all;
        by mass those that observe all the columns of the row, and their mass over these alone (NaN if there are none).
        ``responsible``: the column with the largest cell score, empty for rows without observed cells. With `training`,
        ``pareto_k``: above 0.7 the row has so much influence on the fit that its scores are unreliable, and then too
        usual.
        By cell, NaN where it is missing: ``cell_score``; ``cell_log_mass`` given the rest of the row; ``cell_excess``:
        nats by which that is less than the mean of the column's cells in the reference rows; ``cell_quantile`` among
        them. By tails also ``cell_tail``, the tail probability: 0.01 for a value near which as little lies as near one
        in a hundred.

    Raises
    ------
    QueryError
        For an unknown score; without reference rows; with `training` and fewer than 30 draws in all.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    By tails, a cell's score is minus the logarithm of its tail probability, and if its place is less probable given the
    rest of the row than by itself, the nats by which it is; given the rest, at most exp(-x) of the values are so by x
    (Markov's inequality). A place is an eighth of a scale wide. Minus logarithms of the probabilities of neighbourhoods
    are compared with the reference rows' as Gamma variables, whose mean and variance grow with what the row's columns
    add on average: columns that go together are not counted twice. The oddest cell counts log(observed cells) nats
    less (Bonferroni). A score is infinite where no draw allows such a neighbourhood. By mass a cell's score is its
    excess, and NaN where the row is impossible without it too.

    Two cells that contradict each other both have a high score. Cost: draws x rows x edges; by tails three times that,
    and draws x 318 intervals x leaves; by mass the reference rows once for each pattern of missing cells.

    References
    ----------
    Hyndman (1996). Computing and Graphing Highest Density Regions. The American Statistician 50(2).
    Knorr, Ng (1998). Algorithms for Mining Distance-Based Outliers in Large Datasets. VLDB.
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
    >>> bool(found["cell_tail"].sel(feature="size")[0] < found["cell_tail"].sel(feature="size")[1])
    True
    """
    if score not in _SCORES:
        raise QueryError(f"score {score!r}", " or ".join(map(repr, _SCORES)))
    rows = as_rows(table, post.schema)
    usual = post.reference if reference is None else as_rows(reference, post.schema)
    if usual is None:
        raise QueryError(
            "a posterior without reference rows",
            "reference= rows that are taken for usual",
            "The rows that the model expects are post.sample(1000, rng=rng).",
            command="Fit the table anew: bayesjpt fit keeps some of its rows.",
        )
    post = post if training else some_draws(post, max_draws)[1]
    both = _joined(rows, usual)
    left_out = None
    if training:  # rows that the fit kept were fitted too: left out, they are as odd as the rows to be judged
        left_out = leave_out(post, both if reference is None else rows)
    found, around = averages(post, both, left_out, by_tails=score == "tail")
    scored, known = found.take(slice(rows.n_row)), found.take(slice(rows.n_row, None))
    cell_log_mass = scored.given_rest(rows.observed)
    excess, cell_quantile = _compared(rows, cell_log_mass, known.given_rest(usual.observed))
    if around is None:
        row_score, cell_score = -scored.row, excess
        kept = None if left_out is None or reference is not None else left_out.take(slice(rows.n_row, None))
        quantile, n_reference = _row_quantiles(post, rows, usual, scored.row, known.row, kept)
    else:
        cells = around.cell_scores()
        cell_score = np.where(rows.observed, cells[:, : rows.n_row], np.nan)
        scores = together(both, -around.row, -around.alone, cells, slice(rows.n_row, None))
        row_score, n_reference = scores[: rows.n_row], np.full(rows.n_row, usual.n_row)
        quantile = _share_below(-scores[rows.n_row :], -row_score) if usual.n_row else np.full(rows.n_row, np.nan)
    answer = {
        "score": ("obs_id", row_score),
        "log_mass": ("obs_id", scored.row),
        "quantile": ("obs_id", quantile),
        "n_reference": ("obs_id", n_reference),
        "responsible": ("obs_id", _responsible(rows, cell_score)),
        "cell_score": (("obs_id", "feature"), cell_score.T),
        "cell_log_mass": (("obs_id", "feature"), cell_log_mass.T),
        "cell_excess": (("obs_id", "feature"), excess.T),
        "cell_quantile": (("obs_id", "feature"), cell_quantile.T),
    }
    if around is not None:
        tail = np.where(rows.observed, np.exp(around.tail[:, : rows.n_row]), np.nan)
        answer["cell_tail"] = (("obs_id", "feature"), tail.T)
    if left_out is not None:
        answer["pareto_k"] = ("obs_id", left_out.pareto_k[: rows.n_row])
    return PlainAnswers(answer, coords={"obs_id": np.arange(rows.n_row), "feature": list(rows.names)})


def _compared(rows: Table, cells: np.ndarray, usual_cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much cells are below the mean of the reference rows', and the share of these at most as likely."""
    excess, quantile = np.full((2, *cells.shape), np.nan)
    for column in range(rows.n_column):
        known = usual_cells[column, np.isfinite(usual_cells[column])]
        is_scored = rows.observed[column] & ~np.isnan(cells[column])
        if known.size:
            excess[column, is_scored] = known.mean() - cells[column, is_scored]
            quantile[column, is_scored] = _share_below(known, cells[column, is_scored])
    return excess, quantile


def _joined(first: Table, second: Table) -> Table:
    """Return the rows of two tables: values that both have are then scored once."""
    values = np.concatenate([first.values, second.values], axis=1)
    return Table(first.schema, values, np.concatenate([first.observed, second.observed], axis=1))


def _row_quantiles(
    post: Posterior,
    rows: Table,
    usual: Table,
    mass: np.ndarray,
    usual_mass: np.ndarray,
    left_out: LeftOut | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of reference rows that are at most as likely over the row's columns, and how many there are.

    Reference rows may be `left_out`, too.
    """
    quantile, n_reference = np.full(rows.n_row, np.nan), np.zeros(rows.n_row, np.int64)
    patterns, which = np.unique(rows.observed.T, axis=0, return_inverse=True)
    for number, known in enumerate(_known_masses(post, usual, usual_mass, patterns, left_out)):
        same = np.flatnonzero(which.ravel() == number)
        n_reference[same] = known.size
        if known.size:
            quantile[same] = _share_below(known, mass[same])
    return quantile, n_reference


def _known_masses(
    post: Posterior, usual: Table, usual_mass: np.ndarray, patterns: np.ndarray, left_out: LeftOut | None
) -> list[np.ndarray]:
    """Return for each pattern of columns the log masses over these alone of the reference rows that observe them.

    All patterns are scored together, many to a part: a part's values are scored once, whatever their rows observe.
    """
    alike = [np.flatnonzero(usual.observed[pattern].all(axis=0)) for pattern in patterns]
    more = [usual.observed[~p][:, rows].any(axis=0) for p, rows in zip(patterns, alike, strict=True)]
    observed = np.repeat(patterns, [int(wider.sum()) for wider in more], axis=0)
    row = np.concatenate([rows[wider] for rows, wider in zip(alike, more, strict=True)])
    score = np.empty(row.size)
    n_part = max(usual.n_row, _N_SCORES // (post.n_chain * post.n_draw))
    for lo in range(0, row.size, n_part):
        part = slice(lo, lo + n_part)
        seen = Table(
            usual.schema, np.ascontiguousarray(usual.values[:, row[part]]), np.ascontiguousarray(observed[part].T)
        )
        score[part] = mean_log_masses(post, seen, None if left_out is None else left_out.take(row[part]))
    known = [usual_mass[rows] for rows in alike]
    ends = np.cumsum([int(wider.sum()) for wider in more])[:-1]
    for scores, wider, pattern_score in zip(known, more, np.split(score, ends), strict=True):
        scores[wider] = pattern_score
    return known


def _share_below(known: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the share of known values, at most 0, at or below each of x: equal where they differ by rounding."""
    return np.searchsorted(np.sort(known), x * (1.0 - _ROUNDING) + _ROUNDING, side="right") / known.size


def _responsible(rows: Table, score: np.ndarray) -> np.ndarray:
    """Return the name of the column with the largest score in each row, empty where there is none."""
    filled = np.where(np.isnan(score), -np.inf, score)
    names = np.array([*rows.names, ""])
    best = np.argmax(filled, axis=0)
    return names[np.where(filled.max(axis=0) > -np.inf, best, rows.n_column)]
