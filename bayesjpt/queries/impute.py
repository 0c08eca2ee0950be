"""Tables with their missing cells filled in: by draws, or by expectations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults import INTERVAL
from bayesjpt.errors import warn
from bayesjpt.kernels.boxes import EVERYWHERE, make_boxes
from bayesjpt.kernels.given_labels import fill_label_probability
from bayesjpt.kernels.mixture import make_components
from bayesjpt.kernels.path_probability import make_targets
from bayesjpt.numerics.recording_grid import grid_points
from bayesjpt.posterior.answer import PlainAnswers, query_method, with_labels_of_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.complete import as_rng, check_count, complete_within, constants_kept, even_draws, grid
from bayesjpt.queries.evidence import as_rows
from bayesjpt.queries.given import refuse_impossible_rows, row_blocks
from bayesjpt.queries.moments import moments
from bayesjpt.queries.question import ask
from bayesjpt.table.possible import possible_values
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    import xarray as xr

_N_EXPECTATION, _N_ROW = 2**23, 256
"""Expectations, over draws, columns and rows, that are held at a time: 64 MB; and rows at least."""


@dataclass(frozen=True, eq=False)
class MeanImputation:
    """A table completed by expectations, and how certain they are.

    Parameters
    ----------
    table : Table
    plain_cells
        What `cells` are made of.
    """

    table: Table
    plain_cells: PlainAnswers

    @cached_property
    def cells(self) -> xr.Dataset:
        """What is known of the cells, dims (obs_id, feature); NaN where they were observed.

        ``expectation``: of a number, before rounding; of labels, the probability of the one that was filled in.
        ``lower`` and ``upper``: ends of its equal-tailed credible interval.
        """
        return self.plain_cells.to_xarray()

    def __repr__(self) -> str:
        n_cell = int((~np.isnan(self.plain_cells["expectation"])).sum())
        shape = f"{self.table.n_row} rows x {self.table.n_column} columns"
        return f"MeanImputation({shape}, {n_cell} cells filled; rows in .table, intervals in .cells)"


@query_method
def impute(
    post: Posterior,
    table,
    n_imputations: int = 1,
    *,
    rng: int | np.random.Generator | None = None,
    recorded: bool = True,
) -> list[Table]:
    """Return completed tables: each from a draw of its own, missing cells drawn jointly given the row's observed cells.

    Run an analysis on each of them and pool the answers: their spread is what the missing cells leave open.

    Parameters
    ----------
    post : Posterior
    table : Table or data frame
        A frame is read under the posterior's schema.
    n_imputations : int
    rng : int, numpy.random.Generator or None
        A seed, a generator, or None for other draws each time.
    recorded : bool
        Round drawn numbers to the grid on which their column was recorded.

    Returns
    -------
    list of Table
        Without missing cells; observed cells to the last bit as they were, labels that training never showed included
        (`Table.to_frame` writes them as they were read). Drawn labels are labels of the training table, never "other",
        and drawn numbers lie in the support of their column: not above zero where no training value does, and not
        beyond an atom that is its least or largest value.

    Raises
    ------
    EvidenceError
        For a row whose observed cells are impossible under a draw, or leave no probability to such labels and numbers.
    QueryError
        For `n_imputations` below 1.
    SchemaError, TableError
        For rows that do not fit the schema.

    Warns
    -----
    BayesjptWarning
        Where training had blanks beside one value alone, with which they are filled.

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
    rng = as_rng(rng)
    rows = as_rows(table, post.schema)
    _tell_constants(rows)
    bounds = possible_values(post.schema)
    completed = []
    for number in even_draws(n_imputations, post.n_chain * post.n_draw, rng):
        draw = np.full(rows.n_row, number)
        values = complete_within(post, rows, draw, rng, bounds=bounds, recorded=recorded, one_row=False)
        completed.append(Table(post.schema, values, np.ones(values.shape, bool), rows.unseen))
    return completed


def _tell_constants(rows: Table) -> None:
    """Warn where blanks of a column of one value, such as a cross, are filled with it: they may say "none"."""
    told = []
    for column, n_gap in zip(rows.schema, (~rows.observed).sum(axis=1).tolist(), strict=True):
        if column.n_distinct == 1 and column.n_missing and n_gap:
            only = column.text(0.0 if column.base == "category" else column.minimum)
            told.append(f"{only!r} in column {column.name!r} ({n_gap} cells)")
    if told:
        remedy = 'where a blank cell says "none", write a word for it in the table, and fit again'
        warn(f"filled with the only value that training showed: {', '.join(told)}; {remedy}")


@query_method
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
        Observed cells as in `impute`.

    Raises
    ------
    EvidenceError
        For a row whose observed cells are impossible under a draw.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    Expectations are the mean over draws, and given that the value lies in the support of its column, and within one
    range of the training values beyond their ends. A likelihood that explains no row has its parameters from the prior,
    and its mean may be beyond any bound or not exist: the least weight of it would take over. `expectation` leaves
    nothing out.

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
    _tell_constants(rows)
    answer = np.full((3, rows.n_column, rows.n_row), np.nan)
    values = rows.values.copy()
    tails = [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]
    kept, highest = constants_kept(post, possible_values(post.schema), rows)
    for number, which, by_draw in _by_draw(post, rows):
        mean = _mean_over_draws(by_draw)
        if post.schema.columns[number].base == "category":
            best = np.argmax(mean, axis=0)
            values[number, which] = best
            by_draw, mean = by_draw[best, :, np.arange(which.size)].T, mean[best, np.arange(which.size)]
        else:
            is_constant = kept[number] == highest[number]
            values[number, which] = kept[number] if is_constant else _rounded(post, number, mean, recorded)
        answer[0, number, which] = mean
        answer[1:, number, which] = np.quantile(by_draw, tails, axis=0)
    cells = PlainAnswers(
        {
            name: (("obs_id", "feature"), part.T)
            for name, part in zip(("expectation", "lower", "upper"), answer, strict=True)
        },
        coords={"obs_id": np.arange(rows.n_row), "feature": list(post.schema.names)},
        attrs={"interval": interval},
    )
    filled = Table(post.schema, values, np.ones(values.shape, bool), rows.unseen)
    return MeanImputation(filled, with_labels_of_rows(cells, (table,)))


def _by_draw(post: Posterior, rows: Table) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield what each draw says of missing cells: (column, their rows, expectations (n_draw, n)).

    For columns of labels probabilities, float64 (n_label, n_draw, n).
    """
    structures = post.by_structure()
    n_draw = sum(structure.n_chain * structure.n_draw for structure in structures)
    for parts in zip(*(_by_draw_of_structure(structure, rows, n_draw) for structure in structures), strict=True):
        number, which, _ = parts[0]
        yield number, which, np.concatenate([found for _, _, found in parts], axis=-2)


def _by_draw_of_structure(post: Posterior, rows: Table, n_draw: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the same for a single structure, as many rows at a time as all structures with n_draw draws have room for.

    Columns without missing cells are never asked for.
    """
    missing_in = np.flatnonzero(~rows.observed.all(axis=1)).tolist()
    numbers = [number for number in missing_in if post.schema.columns[number].base != "category"]
    holes = np.flatnonzero(~rows.observed[numbers].all(axis=0))
    n_part = max(_N_EXPECTATION // (n_draw * max(len(numbers), 1)), _N_ROW)
    for lo in range(0, holes.size, n_part):
        which = holes[lo : lo + n_part]
        part = rows.take(which)
        question = ask(post, [post.schema.names[number] for number in numbers], part, "error")
        near = {number: _near_training(post.schema.columns[number]) for number in numbers}
        found, _ = moments(question, spread=False, near=near)
        if np.isnan(found).any():  # a conditional far from all training rows
            found = np.where(np.isnan(found), moments(question, spread=False)[0], found)
        for target, number in enumerate(numbers):
            missing = ~part.observed[number]
            yield number, which[missing], found[:, target, missing]
    for number in sorted(set(missing_in) - set(numbers)):
        holes = np.flatnonzero(~rows.observed[number])
        n_part = max(_N_EXPECTATION // (n_draw * max(len(post.schema.columns[number].labels), 1)), _N_ROW)
        for lo in range(0, holes.size, n_part):
            which = holes[lo : lo + n_part]
            yield number, which, label_probability(post, rows.take(which), number).swapaxes(0, 1)


@pooled
def _near_expectations(post: Posterior, rows: Table, number: int) -> np.ndarray:
    """Return float64 (n_draw, n_row): expectations given each row, and that the value is near the training values."""
    question = ask(post, [post.schema.names[number]], rows, "error")
    return moments(question, spread=False, near={number: _near_training(post.schema.columns[number])})[0][:, 0]


def near_expectation(post: Posterior, rows: Table, number: int) -> np.ndarray:
    """Return the expectation of a column of numbers in rows that do not have it, float64 (n_row,), over all draws."""
    n_part = max(_N_EXPECTATION // (post.n_chain * post.n_draw), _N_ROW)
    parts = [rows.rows(slice(lo, lo + n_part)) for lo in range(0, rows.n_row, n_part)]
    return np.concatenate([_mean_over_draws(_near_expectations(post, part, number)) for part in parts])


def _mean_over_draws(by_draw: np.ndarray) -> np.ndarray:
    """Return the mean over the last axis but one, also of numbers next to the largest float, whose sum overflows."""
    unit = 2.0 ** by_draw.shape[-2].bit_length()  # a power of two: no digit changes
    return (by_draw / unit).mean(axis=-2) * unit


def _near_training(column: Column) -> np.ndarray:
    """Return the interval, float64 (1, 2), within one range of a column's training values beyond their ends."""
    reach = column.maximum - column.minimum
    if not 0.0 < reach < np.inf:
        return EVERYWHERE
    lo, hi = column.minimum - reach, column.maximum + reach
    if column.base == "integer":
        lo, hi = np.floor(lo), np.ceil(hi)
    return np.array([[max(lo, column.support[0]), min(hi, column.support[1])]])


def _rounded(post: Posterior, number: int, x: np.ndarray, recorded: bool) -> np.ndarray:
    """Return expectations as values of their column: whole numbers of integers, grid points where `recorded`."""
    column = post.schema.columns[number]
    step, per_unit, offset = grid(post.schema)[:, number]
    if column.base == "integer":
        unit, begin = (step, offset) if recorded and step else (1.0, 0.0)
        return np.clip(np.round((x - begin) / unit) * unit + begin, *column.support) + 0.0  # no negative zero
    if not recorded or step == 0.0:
        return x
    return grid_points(x, step, per_unit, offset) + 0.0


def label_probability(post: Posterior, rows: Table, number: int) -> np.ndarray:
    """Return float64 (n_draw, n_label, n_row): probabilities of the training labels of a column given each row."""
    plan, params = post.plan(), post.flat()
    n_label = len(post.schema.columns[number].labels)
    boxes = make_boxes(plan, [{}], also=[number])
    leaves = boxes.leaf[boxes.leaf_ptr[number] : boxes.leaf_ptr[number + 1]]
    targets = make_targets(plan, make_components(plan, boxes, [number], np.array([[0.0, 1.0]])), leaves, [number])
    out = np.empty((params.theta.shape[0], n_label, rows.n_row))
    log_evidence = np.empty((params.theta.shape[0], rows.n_row))
    for which, part, cells, n_block in row_blocks(plan, rows):
        part_shares, part_evidence = np.empty((out.shape[0], n_label, part.n_row)), np.empty((out.shape[0], part.n_row))
        fill_label_probability(
            plan, cells, targets, leaves, params, n_block, np.array([0, n_label]), part_evidence, part_shares
        )
        out[..., which], log_evidence[:, which] = part_shares, part_evidence
    refuse_impossible_rows(post, rows, log_evidence, False)
    return out
