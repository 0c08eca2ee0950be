"""Tables with their missing cells filled in: by draws, or by expectations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from bayesjpt.defaults import INTERVAL
from bayesjpt.errors import EvidenceError
from bayesjpt.kernels.boxes import make_boxes
from bayesjpt.kernels.given_labels import fill_label_probability
from bayesjpt.kernels.mixture import make_pieces
from bayesjpt.kernels.reach import make_reach
from bayesjpt.posterior.draws import Posterior, verb
from bayesjpt.queries.complete import check_count, check_rng, complete, even_draws, grid, highest_label
from bayesjpt.queries.condition import within
from bayesjpt.queries.evidence import as_rows
from bayesjpt.queries.given import refuse_impossible_rows, row_blocks
from bayesjpt.queries.moments import expectation
from bayesjpt.table.table import Table


@dataclass(frozen=True, eq=False)
class MeanImputation:
    """A table completed by expectations, and how certain they are.

    Parameters
    ----------
    table : Table
    cells : Dataset, dims (obs_id, feature)
        NaN for cells that were observed. ``expectation``: of a number, before rounding; of labels, the probability of
        the one that was filled in. ``lower`` and ``upper``: ends of its equal-tailed credible interval.
    """

    table: Table
    cells: xr.Dataset


@verb
def impute(
    post: Posterior, table, n_imputations: int = 1, *, rng: np.random.Generator, recorded: bool = True
) -> list[Table]:
    """Return completed tables: each from a draw of its own, missing cells drawn jointly given the row's observed cells.

    Run an analysis on each of them and pool the answers: their spread is what the missing cells leave open.

    Parameters
    ----------
    post : Posterior
    table : Table or data frame
        A frame is read under the posterior's schema.
    n_imputations : int
    rng : numpy.random.Generator
    recorded : bool
        Round drawn numbers to the grid on which their column was recorded.

    Returns
    -------
    list of Table
        Without missing cells; observed cells to the last bit as they were. Drawn labels are labels of the training
        table, never "other".

    Raises
    ------
    EvidenceError
        For a row whose observed cells are impossible under a draw.
    QueryError
        For `n_imputations` below 1.
    SchemaError, TableError
        For rows that do not fit the schema.

    References
    ----------
    Rubin (1987). Multiple Imputation for Nonresponse in Surveys.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> holes = pd.DataFrame({"kind": ["a", None], "size": [None, 9.0]})
    >>> first, second = post.impute(holes, 2, rng=np.random.default_rng(1))
    >>> first.to_frame()["kind"].tolist(), first.n_missing
    (['a', 'b'], 0)
    """
    n_imputations = check_count(n_imputations, "n_imputations")
    check_rng(rng)
    rows = as_rows(table, post.schema)
    limits = np.vstack([highest_label(post.schema), grid(post.schema) if recorded else np.zeros((2, rows.n_column))])
    completed = []
    for number in even_draws(n_imputations, post.n_chain * post.n_draw, rng):
        draw = np.full(rows.n_row, number)
        values = complete(post, rows, draw, rng, limits=limits, one_row=False)
        completed.append(Table(post.schema, values, np.ones(values.shape, bool)))
    return completed


@verb
def impute_mean(post: Posterior, table, *, interval: float = INTERVAL, recorded: bool = True) -> MeanImputation:
    """Return a table completed by expectations given each row's observed cells: labels by the most probable one.

    Means make every row look like the typical one: variances and correlations of the completed table are too small.
    For analyses take `impute`.

    Parameters
    ----------
    post : Posterior
    table : Table or data frame
    interval : float
        Probability of the credible intervals.
    recorded : bool
        Round expectations to the grid on which their column was recorded.

    Returns
    -------
    MeanImputation

    Raises
    ------
    EvidenceError
        For a row whose observed cells are impossible under a draw.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    Expectations are the mean over draws, and given that the value lies within one range of the column's training values
    beyond their ends. A likelihood that explains no row has its parameters from the prior, and its mean may be beyond
    any bound or not exist: the least weight of it would take over. `expectation` leaves nothing out.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> filled = post.impute_mean(pd.DataFrame({"kind": ["a", None], "size": [None, 9.0]}))
    >>> filled.table.to_frame()["kind"].tolist()
    ['a', 'b']
    """
    rows = as_rows(table, post.schema)
    answer = np.full((3, rows.n_column, rows.n_row), np.nan)
    values = rows.values.copy()
    tails = [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]
    for number, column in enumerate(post.schema):
        holes = np.flatnonzero(~rows.observed[number])
        if not holes.size:
            continue
        part = rows.take(holes)
        if column.base == "category":
            by_draw = _label_probability(post, part, number)
            best = np.argmax(by_draw.mean(axis=0), axis=0)
            values[number, holes] = best
            by_draw = by_draw[:, best, np.arange(holes.size)]
        else:
            by_draw = _numbers(expectation(_near_training(post, number), column.name, part))
            values[number, holes] = _rounded(post, number, by_draw.mean(axis=0), recorded)
        answer[0, number, holes] = by_draw.mean(axis=0)
        answer[1:, number, holes] = np.quantile(by_draw, tails, axis=0)
    cells = xr.Dataset(
        {
            name: (("obs_id", "feature"), part.T)
            for name, part in zip(("expectation", "lower", "upper"), answer, strict=True)
        },
        coords={"obs_id": np.arange(rows.n_row), "feature": list(post.schema.names)},
        attrs={"interval": interval},
    )
    return MeanImputation(Table(post.schema, values, np.ones(values.shape, bool)), cells)


def _near_training(post: Posterior, number: int) -> Posterior:
    """Return the posterior given that a column lies within one range of its training values beyond their ends."""
    column = post.schema.columns[number]
    reach = column.maximum - column.minimum
    if not 0.0 < reach < np.inf:
        return post
    lo, hi = column.minimum - reach, column.maximum + reach
    if column.base == "integer":
        lo, hi = np.floor(lo), np.ceil(hi)
    try:
        return within(post, number, lo if lo > column.support[0] else -np.inf, hi if hi < column.support[1] else np.inf)
    except EvidenceError:  # a conditional far from all training rows
        return post


def _numbers(answer: xr.DataArray) -> np.ndarray:
    """Return float64 (n_draw, n_row) of an answer about one column."""
    return answer.to_numpy().reshape(-1, answer.sizes["obs_id"])


def _rounded(post: Posterior, number: int, x: np.ndarray, recorded: bool) -> np.ndarray:
    """Return expectations as values of their column: whole numbers of integers, grid points where `recorded`."""
    column = post.schema.columns[number]
    if column.base == "integer":
        return np.clip(np.round(x), *column.support) + 0.0  # no negative zero
    if not recorded:
        return x
    resolution, per_unit = grid(post.schema)[:, number]
    return (np.round(x / resolution) / per_unit if per_unit else np.round(x / resolution) * resolution) + 0.0


def _label_probability(post: Posterior, rows: Table, number: int) -> np.ndarray:
    """Return float64 (n_draw, n_label, n_row): probabilities of the training labels of a column given each row."""
    plan, params = post.plan(), post.flat()
    n_label = post.schema.columns[number].n_label - 1
    boxes = make_boxes(plan, [{}], also=[number])
    leaves = boxes.leaf[boxes.leaf_ptr[number] : boxes.leaf_ptr[number + 1]]
    targets = make_reach(plan, make_pieces(plan, boxes, [number], np.array([[0.0, 1.0]])), leaves, [number])
    out = np.empty((params.theta.shape[0], n_label, rows.n_row))
    log_evidence = np.empty((params.theta.shape[0], rows.n_row))
    for which, part, cells, n_block in row_blocks(plan, rows):
        own, own_evidence = np.empty((out.shape[0], n_label, part.n_row)), np.empty((out.shape[0], part.n_row))
        fill_label_probability(plan, cells, targets, leaves, params, n_block, np.array([0, n_label]), own_evidence, own)
        out[..., which], log_evidence[:, which] = own, own_evidence
    refuse_impossible_rows(post, plan, rows, log_evidence, False)
    return out
