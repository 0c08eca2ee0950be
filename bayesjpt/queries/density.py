"""Log density and log mass of rows under each draw, given evidence where there is some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesjpt.defaults import MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES, SCORED_ROWS
from bayesjpt.errors import QueryError, SchemaError
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.density import fill_log_density, fill_log_mass
from bayesjpt.kernels.routes import make_routes
from bayesjpt.kernels.work import block_rows, make_work
from bayesjpt.posterior.answer import PlainAnswer, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.condition import condition
from bayesjpt.queries.evidence import Evidence, as_evidence
from bayesjpt.queries.given import refuse_impossible_rows
from bayesjpt.queries.networks import has_tables, scores_by_tables
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.table import Table


@query_method
def log_density(post: Posterior, rows, given=None) -> PlainAnswer:
    """Return the log density of each row under each draw, in nats and per user's unit of every real column.

    Missing cells are marginalised: a row with none observed has log density 0. On integer columns and labels the
    density is the mass.

    Parameters
    ----------
    post : Posterior
    rows : Table or data frame
        A frame is read under the posterior's schema.
    given : event, text, mapping from column to value, Table or data frame, optional
        Evidence. A mapping is given with every row; a table holds what is given with each, and has as many rows or one.
        Their columns are missing in `rows`.

    Returns
    -------
    DataArray, dims (chain, draw, obs_id)

    Raises
    ------
    SchemaError, TableError
        For rows that do not fit the schema.
    QueryError, EvidenceError
        For a cell that is both given and asked for; for evidence that is impossible under some draw.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"grade": ["a", "a", "a", "b"] * 20, "size": np.linspace(0.1, 8.0, 80)})
    >>> table = bj.as_table(frame)
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=40), table.schema)
    >>> post.log_density(frame.head(3)).sizes
    Frozen({'chain': 1, 'draw': 1, 'obs_id': 3})
    >>> post.log_density(pd.DataFrame({"grade": ["a", None]})).round(1).values.tolist()
    [[[-0.3, 0.0]]]
    >>> post.log_density(frame.loc[:2, ["grade"]], given={"size": 8.0}).sizes
    Frozen({'chain': 1, 'draw': 1, 'obs_id': 3})
    """
    return _conditional(post, _rows(post, rows), given, _log_density)


def _log_density(post: Posterior, table: Table) -> PlainAnswer:
    scores = _scores(post, table.values, table.observed)
    jacobian = post.schema.log_jacobian()
    scores += jacobian.sum() if table.observed.all() else jacobian @ table.observed
    return _answer(post, scores, "log_density")


@query_method
def log_mass(post: Posterior, rows, given=None) -> PlainAnswer:
    """Return the log probability of each row's cells under each draw, in nats: at most 0.

    A recorded real value stands for its cell, half a resolution to either side of its grid point, or as wide as
    training values say where people favour some of them (`bayesjpt.table.heaps`); integers and labels stand for
    themselves. So the score does not depend on units, and repeated values cannot inflate it: cells do not overlap.

    Parameters and errors are those of `log_density`; rows of evidence too are given by their recorded cells.

    Returns
    -------
    DataArray, dims (chain, draw, obs_id)

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"size": np.linspace(0.1, 8.0, 80)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    >>> bool((post.log_mass(table) <= 0.0).all())
    True
    """
    return _conditional(post, _rows(post, rows), given, _log_mass)


@pooled
def even_log_mass(post: Posterior, table: Table) -> PlainAnswer:
    """Return `log_mass` as if all cells of a column were equally wide: no value is a favourite."""
    return _log_mass(post, table, even=True)


def _log_mass(post: Posterior, table: Table, *, even: bool = False) -> PlainAnswer:
    centre, half = recorded_cells(post.schema, table.values, even=even)
    return _answer(post, np.minimum(_scores(post, centre, table.observed, half), 0.0), "log_mass")


def _conditional(post: Posterior, table: Table, given, score) -> PlainAnswer:
    """Return the score of rows given evidence, of which there may be none; complete rows of labels by tables."""
    whole = table.observed.all(axis=0)
    if given is not None or not whole.any() or not has_tables(post):
        return _conditional_of_any(post, table, given, score)
    if whole.all():
        return _answer(post, scores_by_tables(post, table), score.__name__.removeprefix("_"))
    by_tables = scores_by_tables(post, table.take(np.flatnonzero(whole)))
    rest = _conditional_of_any(post, table.take(np.flatnonzero(~whole)), None, score)
    values = np.empty((*rest.values.shape[:2], table.n_row))
    values[..., whole], values[..., ~whole] = by_tables.reshape(*values.shape[:2], -1), rest.values
    return replace(rest, values=values, coords={**rest.coords, "obs_id": np.arange(table.n_row)})


@pooled
def _conditional_of_any(post: Posterior, table: Table, given, score) -> PlainAnswer:
    """Return the score of rows given evidence: given other cells, the joint less that of what is given."""
    if given is None:
        return score(post, table)
    evidence = as_evidence(given, post.schema)
    if evidence.rows is None:
        return score(condition(post, given), table)
    known, joint = _joined(table, evidence)
    log_known = score(post, known)
    refuse_impossible_rows(post, known, log_known.values.reshape(-1, known.n_row), evidence.one_row)
    joint_score = score(post, joint)
    return replace(joint_score, values=joint_score.values - log_known.values)


def _joined(table: Table, evidence: Evidence) -> tuple[Table, Table]:
    """Return the rows that are given, as many as the table has, and both together."""
    rows = evidence.rows
    assert rows is not None
    if rows.n_row not in (1, table.n_row):
        raise QueryError(f"evidence of {rows.n_row} rows for {table.n_row}", "as many rows, or one")
    shape = table.values.shape
    values, observed = np.broadcast_to(rows.values, shape), np.broadcast_to(rows.observed, shape)
    twice = np.argwhere(table.observed & observed)
    if twice.size:
        column, row = twice[0]
        name = table.schema.names[column]
        raise QueryError(
            f"column {name!r} is both given and asked for in row {row + 1}", "one or the other", "Leave it out of one."
        )
    known = Table(table.schema, np.ascontiguousarray(values), np.ascontiguousarray(observed))
    return known, Table(table.schema, np.where(observed, values, table.values), table.observed | observed)


def _rows(post: Posterior, rows) -> Table:
    if isinstance(rows, Table):
        if rows.schema.names != post.schema.names:
            raise SchemaError(
                f"rows with columns {', '.join(rows.schema.names)}", f"the columns {', '.join(post.schema.names)}"
            )
        if rows.schema != post.schema:
            raise SchemaError(
                "rows read under another schema than the posterior's",
                remedy="Read them with bj.as_table(frame, schema=post.schema)",
            )
        return rows
    from bayesjpt.table.table import as_table

    return as_table(rows, schema=post.schema)


def _scores(post: Posterior, values: np.ndarray, observed: np.ndarray, half: np.ndarray | None = None) -> np.ndarray:
    """Return float64 (n_draw, n_row): log densities in the families' units, or log masses of cells of half widths.

    In parts of the rows: tables of masses grow with the distinct values of a part, and rows that are routed change
    their places within a cache.
    """
    plan = post.plan()
    n_row = values.shape[1]
    mass = half is not None
    n_part = SCORED_ROWS if mass or (plan.split_column >= 0).any() else n_row
    limits = {"max_distinct_share": MAX_DISTINCT_SHARE, "max_table_bytes": MAX_TABLE_BYTES}
    if mass:
        limits = {"max_distinct_share": 1.0, "max_table_bytes": 2**62}
    fill = fill_log_mass if mass else fill_log_density
    log_weight, theta = post.flat()
    out = np.empty((theta.shape[0], n_row))
    for lo in range(0, n_row, n_part):
        which = slice(lo, min(lo + n_part, n_row))
        part = np.ascontiguousarray(values[:, which]), np.ascontiguousarray(observed[:, which])
        part_half = None if half is None else np.ascontiguousarray(half[:, which])
        routes = make_routes(plan, *part, part_half)
        cells = make_cells(plan, *part, **limits, routes=routes, half=part_half, keep_terms=False)
        work = make_work(plan, cells, block_rows(plan, MAX_WORK_BYTES, cells))
        for draw in range(out.shape[0]):
            fill(plan, cells, log_weight[draw], theta[draw], work, out[draw, which])
    return out


def _answer(post: Posterior, scores: np.ndarray, name: str) -> PlainAnswer:
    scores = scores.reshape(post.n_chain, post.n_draw, -1)
    coords = post.coords() | {"obs_id": np.arange(scores.shape[2])}
    return PlainAnswer(name, ("chain", "draw", "obs_id"), scores, coords)
