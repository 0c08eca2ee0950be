"""What query methods do with evidence: its log densities, errors where it is impossible, tables in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.defaults import MAX_TABLE_BYTES, QUERY_WORK_BYTES
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.kernels.boxes import make_boxes
from bayesjpt.kernels.cells import Cells, make_cells
from bayesjpt.kernels.density import fill_row_evidence
from bayesjpt.kernels.events import fill_box_log_probability
from bayesjpt.kernels.routes import make_routes
from bayesjpt.kernels.work import block_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.boxes import Box, why_null
from bayesjpt.queries.evidence import Evidence
from bayesjpt.table.table import Table

QUERY_DISTINCT_SHARE = 0.9
"""Distinct values over rows; up to this share a real column is evaluated once per distinct value where nothing is drawn
by it. A table then costs a lookup and a logarithm a value more than its leaves."""

QUERY_ROWS = 4096
"""Rows given as evidence that are evaluated together; bounds a query's workspace, and changes no answer."""


ON_ZERO = ("error", "nan")


def check_on_zero(on_zero: str) -> None:
    """Raise `QueryError` unless it is one of the two words."""
    if on_zero not in ON_ZERO:
        raise QueryError(f"on_zero={on_zero!r}", "'error' or 'nan'")


def log_sum(log_values: np.ndarray, axis: int) -> np.ndarray:
    """Return the logarithm of a sum of exponentials along an axis; -inf where it is empty or all are."""
    if log_values.shape[axis] == 0:
        return np.full(np.delete(log_values.shape, axis), -np.inf)
    top = np.max(log_values, axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(log_values - np.where(np.isfinite(top), top, 0.0)), axis=axis))
    return total + np.where(np.isfinite(top), top, 0.0).squeeze(axis)


def box_log_probability(post: Posterior, plan: Plan, boxes: Sequence[Box]) -> np.ndarray:
    """Return float64 (n_draw, n_box), draws of all chains one after the other."""
    flat = post.flat()
    out = np.empty((flat.theta.shape[0], len(boxes)))
    if boxes:
        fill_box_log_probability(plan, make_boxes(plan, [box.intervals for box in boxes]), flat, out)
    return out


def row_blocks(
    plan: Plan, rows: Table, queried: Sequence[int] = (), *, routed: bool = True
) -> Iterator[tuple[slice | np.ndarray, Table, Cells, int]]:
    """Yield parts of a table small enough for the workspace: (which rows, the part, its Cells, rows in one go).

    The rows of a part are in an order in which those that need the same nodes are together, unless none is `routed`.
    """
    for lo in range(0, rows.n_row, QUERY_ROWS):
        which: slice | np.ndarray = slice(lo, min(lo + QUERY_ROWS, rows.n_row))
        part = Table(
            rows.schema, np.ascontiguousarray(rows.values[:, which]), np.ascontiguousarray(rows.observed[:, which])
        )
        routes = make_routes(plan, part.values, part.observed) if routed else None
        if routes is not None and routes.row.size:
            which, part = lo + routes.row, part.take(routes.row)
            routes = routes._replace(row=routes.row[:0])
        cells = make_cells(
            plan,
            part.values,
            part.observed,
            max_distinct_share=QUERY_DISTINCT_SHARE,
            max_table_bytes=MAX_TABLE_BYTES,
            queried=queried,
            routes=routes,
            keep_terms=False,
        )
        yield which, part, cells, min(block_rows(plan, QUERY_WORK_BYTES, cells), part.n_row)


def refuse_impossible_boxes(post: Posterior, evidence: Evidence, log_total: np.ndarray) -> None:
    """Raise `EvidenceError` where an event given as evidence has probability zero under some draw.

    It names the first of its columns, in the order of the schema, with which the event becomes impossible.
    """
    if not (log_total == -np.inf).any():
        return
    boxes = evidence.boxes
    assert boxes is not None
    reason = why_null(boxes, post.schema, evidence.event)
    if reason is not None:
        raise EvidenceError(f"evidence of probability zero: {reason}")
    draw = int(np.argmax(log_total == -np.inf))
    one, plan = _one_draw(post, draw), post.plan()
    columns = sorted({column for box in boxes for column in box.columns})

    def possible(kept: Sequence[int]) -> bool:
        parts = [Box({c: v for c, v in box.intervals.items() if c in kept}) for box in boxes]
        return bool((box_log_probability(one, plan, parts) > -np.inf).any())

    _refuse(post, _first_impossible(columns, possible), "the event given as evidence", draw, nan_offered=True)


def refuse_impossible_rows(
    post: Posterior, rows: Table, log_evidence: np.ndarray, one_row: bool, *, nan_offered: bool = False
) -> None:
    """Raise `EvidenceError` where a row given as evidence has density zero under some draw.

    `log_evidence` is float64 (n_draw, n_row). The error names the row and the first of its columns, in the order of the
    schema, with which it becomes impossible. `nan_offered`: whether the query method takes ``on_zero="nan"``.
    """
    impossible = log_evidence == -np.inf
    if not impossible.any():
        return
    draw, row = (int(index) for index in np.argwhere(impossible)[0])
    one, plan = _one_draw(post, draw), post.plan()
    flat = one.flat()
    columns = np.flatnonzero(rows.observed[:, row]).tolist()

    def possible(kept: Sequence[int]) -> bool:
        observed = np.zeros((rows.n_column, 1), bool)
        observed[list(kept)] = True
        part = Table(rows.schema, np.ascontiguousarray(rows.values[:, row : row + 1]), observed)
        out = np.empty((1, 1))
        for _, _, cells, n_block in row_blocks(plan, part):
            fill_row_evidence(plan, cells, flat, n_block, out)
        return bool(out[0, 0] > -np.inf)

    where = "the row given as evidence" if one_row else f"row {row + 1} of the evidence"
    _refuse(post, _first_impossible(columns, possible), where, draw, nan_offered=nan_offered)


def _one_draw(post: Posterior, draw: int) -> Posterior:
    flat = post.flat()
    params = type(post.params)(flat.log_weight[None, draw : draw + 1], flat.theta[None, draw : draw + 1])
    return replace(post, params=params, sample_stats={}, reference=None)


def _first_impossible(columns: Sequence[int], possible: Callable[[Sequence[int]], bool]) -> int:
    """Return the first column that, with those before it, is impossible: more columns never make it possible again."""
    lo, hi = 0, len(columns)
    while hi - lo > 1:
        middle = (lo + hi) // 2
        lo, hi = (middle, hi) if possible(columns[:middle]) else (lo, middle)
    return columns[hi - 1]


def _refuse(post: Posterior, column: int, what: str, draw: int, *, nan_offered: bool) -> None:
    chain, number = divmod(draw, post.n_draw)
    name = post.schema.names[column]
    raise EvidenceError(
        f"{what} has probability zero from column {name!r} on (chain {chain}, draw {number})",
        "evidence that is possible under every draw",
        f"Leave column {name!r} out{", or use on_zero='nan'" if nan_offered else ''}.",
        command=f"Leave column {name!r} out.",
    )
