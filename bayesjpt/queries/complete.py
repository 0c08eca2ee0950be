"""Rows completed from the posterior: what sample and impute have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.paths import Interval, Region
from bayesjpt.defaults import MAX_REDRAWS, QUERY_WORK_BYTES
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.kernels.draws import draw_missing
from bayesjpt.kernels.work import block_rows
from bayesjpt.numerics.generator import as_generator
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.boxes import Box
from bayesjpt.queries.condition import condition
from bayesjpt.queries.density import log_density
from bayesjpt.queries.given import box_log_probability
from bayesjpt.queries.paths import conditions
from bayesjpt.table.encode import filler
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

SAMPLED_ROWS = 16_384
"""Rows that are drawn together; bounds the workspace of `sample` and `impute`."""


_WHOLE = 1e-9


def check_count(n: object, name: str) -> int:
    """Return a number of things of which there is one at least, or raise `QueryError`."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise QueryError(f"{name}={n!r}", "a whole number from 1")
    return int(n)


def as_rng(rng: object) -> np.random.Generator:
    """Return a generator of NumPy: itself, that of a seed, or a fresh one for None; raise `QueryError` for others."""
    generator = as_generator(rng)
    if generator is None:
        raise QueryError(f"rng = {rng!r}", "None, a seed from 0, or a generator such as numpy.random.default_rng(1)")
    return generator


def grid(schema: Schema) -> np.ndarray:
    """Return float64 (3, n_column): the step of the grid of each column, recorded numbers per unit, offset of the grid.

    The step is that which values keep, months below 0 (`bayesjpt.numerics.recording_grid`), or the resolution of real
    columns with a recording grid, and 0 elsewhere.

    Recorded numbers per unit are 0 where they are no whole number. Whole numbers divided by them are decimals as
    people write them.
    """
    resolution = np.array([_width(column) for column in schema])
    with np.errstate(divide="ignore"):
        per_unit = np.where(resolution > 0.0, 1.0 / np.where(resolution > 0.0, resolution, 1.0), 0.0)
    whole = np.round(per_unit)
    is_whole = (whole > 0.0) & (np.abs(per_unit - whole) < _WHOLE * whole)
    step = np.array(
        [
            -column.months or (column.step if column.offset else width)
            for column, width in zip(schema, resolution, strict=True)
        ]
    )
    return np.array([step, np.where(is_whole, whole, 0.0), [column.offset for column in schema]])


def _width(column: Column) -> float:
    """Return the width of the grid on which a column was recorded; 0 for none, and for all whole numbers."""
    if column.base == "integer":
        return column.step if column.step > 1.0 else 0.0
    return column.resolution if column.base == "real" and column.has_grid else 0.0


def limits_of(schema: Schema, *, bounds: np.ndarray | None, recorded: bool) -> np.ndarray:
    """Return the limits, float64 (5, n_column), of drawn values: bounds (2, n_column), or none, and their grid."""
    free = np.array([[-np.inf], [np.inf]]).repeat(len(schema), axis=1)
    on_grid = grid(schema) if recorded else np.zeros((3, len(schema)))
    return np.vstack([free if bounds is None else bounds, on_grid])


def constants_kept(post: Posterior, bounds: np.ndarray, rows: Table) -> np.ndarray:
    """Return bounds, float64 (2, n_column), under which a column of one value that rows lack has no other.

    What its likelihoods give mass to beside is for rows that hold it; nor is it kept where what is given rules it out.
    """
    found = [
        position
        for position, column in enumerate(post.schema)
        if column.base != "category" and column.minimum == column.maximum and column.atoms
    ]
    found = [position for position in found if not rows.observed[position].all()]
    if not found:
        return bounds
    kept, values = bounds.copy(), np.array([post.schema.columns[position].minimum for position in found])
    possible = np.isfinite(_log_probability_of(post, found, values)).all(axis=0)
    kept[:, np.array(found)[possible]] = values[possible]
    return kept


@pooled
def _log_probability_of(post: Posterior, positions: Sequence[int], values: np.ndarray) -> np.ndarray:
    """Return float64 (n_draw, n): of a value of each of some columns, -inf where what is given rules it out."""
    boxes = [Box({c: np.array([[value, value]])}) for c, value in zip(positions, values.tolist(), strict=True)]
    return box_log_probability(post, post.plan(), boxes)


def complete_within(
    post: Posterior,
    rows: Table,
    draw: np.ndarray,
    rng: np.random.Generator,
    *,
    bounds: np.ndarray,
    recorded: bool,
    one_row: bool,
) -> np.ndarray:
    """Return what `complete` does, values within bounds, float64 (2, n_column), and constants kept.

    But where a row rules a constant out, as a condition on several columns may: then none is kept.
    """
    kept = constants_kept(post, bounds, rows)
    if kept is not bounds:
        limits = limits_of(post.schema, bounds=kept, recorded=recorded)
        with contextlib.suppress(EvidenceError):  # of what is impossible without constants, too, the last line tells
            return complete(post, rows, draw, rng, limits=limits, one_row=one_row)
    limits = limits_of(post.schema, bounds=bounds, recorded=recorded)
    return complete(post, rows, draw, rng, limits=limits, one_row=one_row)


def empty_rows(schema: Schema, n_row: int) -> Table:
    """Return rows without observed cells."""
    values = np.repeat([[filler(column)] for column in schema], n_row, axis=1)
    return Table(schema, values, np.zeros(values.shape, bool))


def even_draws(n: int, n_draw: int, rng: np.random.Generator) -> np.ndarray:
    """Return int64 (n,): numbers of draws in random order, each equally often up to one."""
    return rng.permutation(np.floor((np.arange(n) + rng.random()) * (n_draw / n)).astype(np.int64) % n_draw)


def complete(
    post: Posterior, rows: Table, draw: np.ndarray, rng: np.random.Generator, *, limits: np.ndarray, one_row: bool
) -> np.ndarray:
    """Return float64 (n_column, n_row): rows with their missing cells drawn given the observed ones.

    Parameters
    ----------
    post : Posterior
    rows : Table
    draw : int64 (n_row,)
        The draw that each row is completed from.
    rng : numpy.random.Generator
    limits : float64 (5, n_column)
        As in `bayesjpt.kernels.draws.draw_missing`.
    one_row : bool
        Whether the rows are one row given over and over, for the words of errors.

    Raises
    ------
    EvidenceError
        For a row that is impossible under its draw, or has no probability within the limits.

    Notes
    -----
    A row is drawn anew until it keeps to the limits, which is exact; where that takes too long it is drawn from the
    conditional given them, which is the same distribution.
    """
    out, inside = rows.values.copy(), np.ones(rows.n_row, bool)
    for structure, which, numbers in post.locate(draw):
        order = np.argsort(numbers, kind="stable")
        where = which[order], numbers[order]
        impossible = _complete(structure, rows, where, rng=rng, limits=limits, inside=inside, out=out)
        if impossible is not None:
            raise _impossible(post, rows, impossible, int(draw[impossible]), one_row)
    if not inside.all():
        _complete_within(post, rows, np.flatnonzero(~inside), draw, rng=rng, limits=limits, out=out)
    # rounded families are drawn on standardised grids, whose points are whole up to the last digit
    drawn = np.array([[column.base == "integer"] for column in post.schema]) & ~rows.observed
    out[drawn] = np.rint(out[drawn]) + 0.0  # no negative zero
    return out


def _complete(
    post: Posterior,
    rows: Table,
    where: tuple[np.ndarray, np.ndarray],
    *,
    rng: np.random.Generator,
    limits: np.ndarray,
    inside: np.ndarray,
    out: np.ndarray,
) -> int | None:
    """Fill some rows of `out`, and whether they keep to the limits; return the first that is impossible, if any is.

    `where` are the numbers of the rows and of the draws that they are completed from, the latter ascending.
    """
    order, draw = where
    plan, params = post.plan(), post.flat()
    n_block = block_rows(plan, QUERY_WORK_BYTES)
    for lo in range(0, order.size, SAMPLED_ROWS):
        which = order[lo : lo + SAMPLED_ROWS]
        values = np.ascontiguousarray(rows.values[:, which])
        missing = np.ascontiguousarray(~rows.observed[:, which])
        filled, log_evidence, fine = np.ascontiguousarray(values.T), np.empty(which.size), np.empty(which.size, bool)
        draw_missing(
            plan, values, missing, params, draw[lo : lo + SAMPLED_ROWS], min(n_block, which.size), limits, MAX_REDRAWS,
            rng, log_evidence, fine, filled,
        )  # fmt: skip
        impossible = np.flatnonzero(log_evidence == -np.inf)
        if impossible.size:
            return int(which[impossible].min())
        out[:, which], inside[which] = filled.T, fine
    return None


def _complete_within(
    post: Posterior, rows: Table, which: np.ndarray, draw: np.ndarray, *, rng, limits: np.ndarray, out: np.ndarray
) -> None:
    """Fill some rows of `out` from the conditionals given that every missing cell keeps to its limits."""
    limited = np.isfinite(limits[:2]).any(axis=0)
    on_grid = np.array([np.full(rows.n_column, -np.inf), np.full(rows.n_column, np.inf), *limits[2:]])
    for row in which.tolist():
        region = _region(post.schema, limits, np.flatnonzero(limited & ~rows.observed[:, row]))
        try:
            within = condition(one_draw(post, int(draw[row])), conditions(region, post.schema))
        except EvidenceError as error:
            raise _nothing_within(post, error.found, int(draw[row])) from None
        whole, alone = np.empty((rows.n_column, 1)), rows.take([row])
        where = np.zeros((2, 1), np.int64)
        impossible = _complete(
            within, alone, (where[0], where[1]), rng=rng, limits=on_grid, inside=where[0] == 0, out=whole
        )
        if impossible is not None:
            raise _nothing_within(post, f"given {conditions(region, post.schema)}", int(draw[row]))
        out[:, row] = whole[:, 0]


def _region(schema: Schema, limits: np.ndarray, columns: np.ndarray) -> Region:
    """Return the limits of some columns as a region."""
    region: dict[int, Interval | tuple[int, ...]] = {}
    for c in columns.tolist():
        lo, hi = (float(end) for end in limits[:2, c])
        region[c] = tuple(range(int(lo), int(hi) + 1)) if schema.columns[c].base == "category" else Interval(lo, hi)
    return region


def _nothing_within(post: Posterior, why: str, draw: int) -> EvidenceError:
    """Return the error of missing cells that cannot keep to their limits."""
    chain, number = divmod(draw, post.n_draw)
    return EvidenceError(
        f"a missing cell cannot be a label of the training table, or in the support of its column, on (chain {chain}, "
        f"draw {number}): {why}",
        "evidence that leaves it a probability",
        "Widen the evidence; sample(..., labels='all') also draws labels that the training table does not have.",
        command="Widen the evidence, or draw labels that the training table does not have, too, with --labels all.",
    )


def one_draw(post: Posterior, draw: int) -> Posterior:
    """Return the posterior of one draw, by its number over all chains."""
    ((structure, _, numbers),) = post.locate(np.array([draw]))
    flat = structure.flat()
    params = Params(flat.log_weight[None, numbers], flat.theta[None, numbers])
    return replace(structure, params=params, sample_stats={}, reference=None)


def _impossible(post: Posterior, rows: Table, row: int, draw: int, one_row: bool) -> EvidenceError:
    """Return the error of a row that is impossible under a draw, naming the first column that makes it so."""
    columns = np.flatnonzero(rows.observed[:, row])
    observed = np.zeros((rows.n_column, columns.size), bool)
    observed[columns] = np.tri(columns.size, dtype=bool).T
    values = np.repeat(rows.values[:, row : row + 1], columns.size, axis=1)
    found = log_density(one_draw(post, draw), Table(rows.schema, values, observed)).values[0, 0]
    name = rows.names[columns[int(np.argmax(found == -np.inf))]]
    chain, number = divmod(draw, post.n_draw)
    where = "the row that is given" if one_row else f"row {row + 1} of those given"
    return EvidenceError(
        f"{where} has probability zero from column {name!r} on (chain {chain}, draw {number})",
        "evidence that is possible under every draw",
        f"Leave column {name!r} out, or widen its families.",
    )
