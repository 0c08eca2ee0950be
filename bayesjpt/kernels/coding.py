"""Which columns are evaluated once a distinct value, and at which values: decided once for all rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.routes import Routes
from bayesjpt.numerics.jit import kernel, read_only

_NARROW_RANGE = 2.0**16
"""Whole numbers within it are told apart by flags."""


def choose_coding(
    plan: Plan,
    distinct: Callable[[int, float], np.ndarray | None],
    seen_rows: np.ndarray,
    reached: np.ndarray,
    *,
    max_distinct_share: float,
    max_table_bytes: int,
    queried: Collection[int] = (),
    keep_terms: bool = True,
) -> dict[int, np.ndarray]:
    """Return the distinct values of each column that is coded, ascending; columns in their order.

    Parameters
    ----------
    plan : Plan
    distinct : callable
        (column, most) to the distinct observed values of a column, ascending; None where there are more than `most`.
    seen_rows : float64 (n_column,), reached : bool (n_slot,)
        Of `slot_rows`.
    max_distinct_share, max_table_bytes, queried, keep_terms : as in `bayesjpt.kernels.cells.make_cells`
    """
    n_column = seen_rows.size
    n_edge_of_slot = np.where(reached, 1 + keep_terms * np.diff(plan.child_ptr)[plan.slot_node], 0)
    bytes_of_value = 8 * np.bincount(plan.slot_column, n_edge_of_slot, minlength=n_column).astype(np.int64)
    few = np.where(plan.column_resolution == 0.0, 1.0, max_distinct_share) * seen_rows
    # leaves drawn from lists of values sum over each distinct value once, however many rows have it
    few[(plan.column_resolution == 0.0) & (plan.column_kept >= 0)] = np.inf
    found = {}
    for column in range(n_column):
        # one value less: missing cells have an entry, too
        fits = max_table_bytes // max(int(bytes_of_value[column]), 1) - 1
        values = distinct(column, np.inf if column in queried else min(few[column], fits))
        if values is not None:
            found[column] = values
    budget = max_table_bytes
    chosen = set(queried)
    # the smallest first: they save the most for each byte
    for column in sorted(found.keys() - chosen, key=lambda c: (found[c].size, c)):
        cost = (found[column].size + 1) * int(bytes_of_value[column])
        if cost <= budget:
            chosen.add(column)
            budget -= cost
    return {column: found[column] for column in sorted(chosen)}


def slot_rows(plan: Plan, routes: Iterable[Routes], n_row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which slots some segment needs, bool (n_slot,), and the mean rows of a column's, float64 (n_column,).

    `routes` are those of all `n_row` rows, in one piece or in several.
    """
    n_column = plan.column_resolution.size
    rows, is_routed = np.zeros(plan.kind.size), False
    for each in routes:
        is_routed |= each.live.size > 0
        of_node = np.repeat(np.diff(each.segment_ptr), np.diff(each.live_ptr))
        rows += np.bincount(each.live, of_node, minlength=plan.kind.size)
    if not is_routed:
        return np.ones(plan.slot_node.size, bool), np.full(n_column, float(n_row))
    rows = rows[plan.slot_node]
    reached = rows > 0
    total, n_slot = (np.bincount(plan.slot_column, w, minlength=n_column) for w in (rows, reached.astype(float)))
    return reached, total / np.maximum(n_slot, 1.0)


def distinct_values(x: np.ndarray, observed: np.ndarray, most: float) -> np.ndarray | None:
    """Return the distinct observed values of float64 (n_row,), ascending, or None where there are more than `most`."""
    x = x if observed.all() else x[observed]
    # most columns of numbers are refused by the first few rows, without a pass over all
    n_first = 4.0 * most + 64.0
    if x.size > n_first and np.unique(x[: int(n_first)]).size > most:
        return None
    found = _distinct_labels(read_only(np.ascontiguousarray(x)))
    found = found if found.size else np.unique(x)
    return found if found.size <= most else None


@kernel
def _distinct_labels(x):
    """Return the distinct values, ascending, of whole numbers in a narrow range; none where they are not such."""
    lo, hi, whole = np.inf, -np.inf, True
    for i in range(x.size):
        lo, hi = min(lo, x[i]), max(hi, x[i])
        whole &= x[i] == np.floor(x[i])
    if not (whole and 0.0 <= hi - lo < _NARROW_RANGE):
        return np.empty(0)
    occurs = np.zeros(int(hi - lo) + 1, np.bool_)
    for i in range(x.size):
        occurs[int(x[i] - lo)] = True
    found, n_found = np.empty(occurs.size), 0
    for k in range(occurs.size):
        if occurs[k]:
            found[n_found] = lo + k
            n_found += 1
    return found[:n_found].copy()
