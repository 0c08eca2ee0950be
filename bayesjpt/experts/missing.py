"""Missing covariates, drawn from a joint posterior of them given the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesjpt.errors import LearnerError, QueryError, TableError, counted, warn
from bayesjpt.experts.model import ExpertModel
from bayesjpt.kernels.expert_gaps import Gaps
from bayesjpt.kernels.expert_tree import Task
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.sample import sample
from bayesjpt.table.frames import frame_cells
from bayesjpt.table.table import Table, as_table

CANDIDATES = 200
"""Drawn for the missing covariates of a training row. Where targets tell a number to a hundredth of what its other
covariates leave open, about two of them are that near; with few, the nearest is far off, and noise seems larger."""
CANDIDATE_BYTES = 256 * 2**20
"""Of the candidates of all rows; many rows have fewer each, and at least `COMPARED`."""
COMPARED = 20
"""Of the candidates, in a sweep: each costs a row's density, about a tenth of a microsecond a leaf."""
DRAW_GAPS = "Leave the rows out, or draw what is missing: fit_experts(..., missing=bj.fit(covariates))."
_ADD = "Add it, or average over what it may be: fit.with_missing(bj.fit(covariates))."
AVERAGE_GAPS = "Leave the rows out, or average over imputations: fit.with_missing(bj.fit(covariates))."


def check_columns(names: Sequence[str], table: Table, frame: Any) -> None:
    """Raise `TableError` for a covariate of which the frame that a table was read from has no column."""
    # a table under a schema has all its columns, those that the frame lacks without values
    bare = [name for name in names if not table.observed[table.schema.index(name)].any()]
    known = {cells.name for cells in frame_cells(frame)} if bare else set()
    absent = [name for name in bare if name not in known]
    if absent:
        raise TableError(f"no column {absent[0]!r}", "all covariates of the fit", _ADD)


def check_joint(joint: Posterior, names: Sequence[str]) -> None:
    """Raise `QueryError` for what is no posterior, or one without some covariate."""
    remedy = "Fit it: bj.fit(covariates)."
    if not isinstance(joint, Posterior):
        raise QueryError(f"missing covariates to be drawn from {type(joint).__name__}", "a Posterior of them", remedy)
    lacking = [name for name in names if name not in joint.schema.names]
    if lacking:
        raise QueryError(f"a posterior without the covariate {lacking[0]!r}", "one of all covariates", remedy)


def lacking(model: ExpertModel, table: Table) -> np.ndarray:
    """Return bool (n_row,): whether a row lacks a covariate that the model uses."""
    index = [table.schema.index(name) for name in model.covariate_columns]
    return ~table.observed[index].all(axis=0)


def drawn_covariates(
    model: ExpertModel, joint: Posterior, table: Table, place: np.ndarray, *, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return covariates of experts and gates of rows, float64 (n_row, n, n_covariate), missing ones drawn n times.

    Parameters
    ----------
    model : ExpertModel
    joint : Posterior
        Of the covariates, from which they are drawn given the others of their row.
    table : Table
    place : int64 (n_row,)
        Rows of the table.
    n : int
    rng : numpy.random.Generator
    """
    names, rows = model.covariate_columns, table.take(place)
    known = as_table(rows.to_frame()[[name for name in joint.schema.names if name in names]], schema=joint.schema)
    drawn = as_table(sample(joint, n, known, rng=rng, recorded=False).to_frame()[list(names)], schema=table.schema)
    each = table.take(np.repeat(place, n))
    values, observed = each.values.copy(), each.observed.copy()
    for k in (table.schema.index(name) for name in names):
        lacks = ~each.observed[k]
        values[k, lacks] = drawn.values[k, lacks]
        observed[k] = True
    filled = Table(table.schema, values, observed, each.unseen)
    x, gate_x = model.covariates.matrix(filled), model.gate_covariates.matrix(filled)
    return x.reshape(place.size, n, -1), gate_x.reshape(place.size, n, -1)


def make_gaps(model: ExpertModel, joint: Posterior, table: Table, rng: np.random.Generator) -> Gaps | None:
    """Return the rows that lack covariates with candidates for these, drawn from a joint posterior given their others.

    None where no row lacks any.

    Parameters
    ----------
    model : ExpertModel
    joint : Posterior
        Of the covariates.
    table : Table
        Training rows.
    rng : numpy.random.Generator
    """
    place = np.flatnonzero(lacking(model, table))
    if not place.size:
        return None
    n_bytes = 8 * place.size * (len(model.covariates.names) + len(model.gate_covariates.names))
    n = max(min(CANDIDATES, CANDIDATE_BYTES // n_bytes), COMPARED)
    x, gate_x = drawn_covariates(model, joint, table, place, n=n, rng=rng)
    return Gaps(place, x, gate_x, np.zeros(place.size, np.int64), COMPARED)


def filled_matrices(model: ExpertModel, table: Table, gaps: Gaps | None) -> tuple[np.ndarray, np.ndarray]:
    """Return covariates of experts and gates, of rows that lack some the first candidate."""
    if gaps is None:
        return model.covariates.matrix(table, DRAW_GAPS), model.gate_covariates.matrix(table, DRAW_GAPS)
    full = np.ones(table.n_row, bool)
    full[gaps.place] = False
    known = table.take(full)
    x, gate_x = (np.empty((table.n_row, each.shape[2])) for each in (gaps.x, gaps.gate_x))
    x[full], gate_x[full] = model.covariates.matrix(known), model.gate_covariates.matrix(known)
    x[gaps.place], gate_x[gaps.place] = gaps.x[:, 0], gaps.gate_x[:, 0]
    return x, gate_x


def own_gaps(task: Task, gaps: Gaps) -> tuple[Task, Gaps]:
    """Return task and gaps with arrays of their own where a chain writes."""
    return task._replace(x=task.x.copy(), gate_x=task.gate_x.copy()), gaps._replace(chosen=gaps.chosen.copy())


def complete_rows(model: ExpertModel, table: Table, method: str) -> Table:
    """Return the rows that have all covariates, with a warning of how many others there are.

    Raises
    ------
    LearnerError
        Where no row has all.
    """
    lacks = lacking(model, table)
    n = int(lacks.sum())
    if n == table.n_row:
        raise LearnerError(f"no row with all covariates for method={method!r}", "method='gibbs', which needs none")
    if n:
        warn(f"{counted(n, 'row')} without a covariate left out by method {method}; gibbs uses them")
        return table.take(~lacks)
    return table
