"""The cells of one table, arranged for one plan: features by row or by distinct value.

A column with few distinct values is evaluated once per distinct value; its rows then look the answer up by code:

      rows      value  7  3  7  .  3          (. is missing)
      code             1  0  1  2  0          one code more stands for "missing", whose log value is 0
      feature          f(3)  f(7)             (n_distinct,)

Any other column is evaluated row by row, in blocks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.families import dispatch
from bayesjpt.kernels.routes import Routes, no_routes, reordered
from bayesjpt.numerics.jit import kernel


class Cells(NamedTuple):
    """One table under one plan.

    Attributes
    ----------
    feature : float64 (n_value,)
        All features, one after the other.
    feature_at, feature_len : int64 (n_feature,)
        Where each lies; one entry a row, or one a distinct value.
    code_row : int32 (n_column,)
        Row of `code` for columns evaluated by distinct value, -1 for the others.
    code : int32 (n_coded, n_row)
        Position of each cell's distinct value; the number of distinct values where missing.
    n_distinct : int32 (n_column,)
        Distinct observed values of coded columns, 0 for the others.
    missing : bool (n_column, n_row), or (n_column, 0) when nothing is missing
    table_at : int64 (n_slot,)
        Where the log values of a coded slot lie, (n_distinct + 1,) of them; -1 for the others.
    term_at : int64 (n_slot,)
        Where its weighted terms lie, (n_edge, n_distinct + 1) of them.
    n_table, n_term : int64 (1,)
        Sizes of both tables.
    at_atom : bool (n_marked,)
        Whether the entries of columns with atoms are at one, in the order of their features' entries.
    atom_at : int64 (n_column,)
        Where a column's marks lie, -1 for columns without atoms.
    n_row : int64 (1,)
    row, segment_ptr, live_ptr, live, n_needed, n_open : as in `bayesjpt.kernels.routes.Routes`
        Everything above that has an entry a row is in the order of `row`.
    """

    feature: np.ndarray
    feature_at: np.ndarray
    feature_len: np.ndarray
    code_row: np.ndarray
    code: np.ndarray
    n_distinct: np.ndarray
    missing: np.ndarray
    table_at: np.ndarray
    term_at: np.ndarray
    n_table: np.ndarray
    n_term: np.ndarray
    at_atom: np.ndarray
    atom_at: np.ndarray
    n_row: np.ndarray
    row: np.ndarray
    segment_ptr: np.ndarray
    live_ptr: np.ndarray
    live: np.ndarray
    n_needed: np.ndarray
    n_open: np.ndarray


class Work(NamedTuple):
    """Reusable buffers of one sweep; their content means nothing between calls.

    Attributes
    ----------
    node_at : int32 (n_node,), edge_at : int32 (n_edge,), list_at : int32 (n_node,)
        Rows of buffers for the value of each node, the term of each edge of a sum, and the list of each node; -1 for
        nodes that the segment at hand does not need, and for leaves inside dictionaries.
    segment : int64 (1,)
        The segment for which these are laid out.
    m, s : float64 (n_valued_node, n_block)
        The pair of each node's value, s exp(m).
    term : float64 (n_sum_edge, n_block)
        Weighted terms of sums that are evaluated by row, relative to the sum's m.
    leaf : float64 (n_dictionary, n_longest)
        Log densities of the leaves of one slot.
    pair : float64 (2, n_longest)
        The pair of one coded slot.
    table, table_term : float64
        Log values and weighted terms of coded slots.
    coefficient : float64 (n_coefficient,)
    log_cell : float64 (n_leaf,)
        Log mass of the cell of each leaf that is truncated to an interval.
    seen : bool (n_valued_node, n_block)
        Whether a row has an observed cell in a node's scope; empty when nothing is missing.
    rows : int32 (n_node + 1, n_block + 1)
        Rows (or codes) that reach each node, by `list_at`; the last is for those that no row can reach.
    n_rows : int64 (n_node + 1,)
    u, target, reached : float64 (n_block,)
    choice : int32 (n_block,)
        Of the rows at one sum: uniform numbers, and the search for the child that each falls on.
    chunk_stats : float64 (n_stats,)
    n_reached : int64 (n_leaf,)
        Rows that reached each leaf in the last sweep.
    kept_entry, kept_leaf : int32 (n_kept_column, n_row)
        For columns with leaves drawn by value: the entries of features that reached such leaves, and which.
    n_kept : int64 (n_kept_column,)
    sorted_entry : int32 (n_kept_column, n_row), sorted_ptr : int64 (n_leaf, 2)
        The same entries leaf by leaf, and where each leaf's begin and end.
    value, count : float64 (n_longest_list,), tally : int64 (n_longest_code,)
        The values of one leaf, how often each occurs, and the buffer in which codes are counted.
    """

    node_at: np.ndarray
    edge_at: np.ndarray
    list_at: np.ndarray
    segment: np.ndarray
    m: np.ndarray
    s: np.ndarray
    term: np.ndarray
    leaf: np.ndarray
    pair: np.ndarray
    table: np.ndarray
    table_term: np.ndarray
    coefficient: np.ndarray
    log_cell: np.ndarray
    seen: np.ndarray
    rows: np.ndarray
    n_rows: np.ndarray
    u: np.ndarray
    target: np.ndarray
    reached: np.ndarray
    choice: np.ndarray
    chunk_stats: np.ndarray
    n_reached: np.ndarray
    kept_entry: np.ndarray
    kept_leaf: np.ndarray
    n_kept: np.ndarray
    sorted_entry: np.ndarray
    sorted_ptr: np.ndarray
    value: np.ndarray
    count: np.ndarray
    tally: np.ndarray


@kernel
def _fill_feature(plan, feature, x, source, out):
    """Fill one feature from the column's values, or from the feature that it is made of."""
    leaf = plan.feature_leaf[feature]
    if plan.feature_source[feature] < 0:
        offset, scale = plan.feature_offset[feature], plan.feature_scale[feature]
        for i in range(out.size):
            out[i] = (x[i] - offset) / scale
    else:
        constants = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        dispatch.prepare(plan.leaf_family[leaf], source, constants, out)


@kernel
def _mark_atoms(plan, column, x, out):
    """Mark the values of a column that are its atoms; a recorded value equals an atom exactly or is none."""
    atoms = plan.atom_value[plan.atom_ptr[column] : plan.atom_ptr[column + 1]]
    for i in range(out.size):
        out[i] = False
        for atom in atoms:
            out[i] |= x[i] == atom


@kernel
def row_cells(plan, values, missing):
    """Return Cells that evaluate every column row by row.

    `values` is float64 (n_column, n_row), without NaN where observed; `missing` is bool of that shape or (n_column, 0).
    """
    n_column, n_row = values.shape
    n_feature = plan.feature_column.size
    n_slot = plan.slot_node.size
    feature = np.empty(n_feature * n_row)
    feature_at = np.empty(n_feature, np.int64)
    for f in range(n_feature):
        feature_at[f] = f * n_row
        source = plan.feature_source[f] * n_row if plan.feature_source[f] >= 0 else 0
        _fill_feature(
            plan,
            f,
            values[plan.feature_column[f]],
            feature[source : source + n_row],
            feature[f * n_row : (f + 1) * n_row],
        )
    n_marked = 0
    atom_at = np.full(n_column, -1, np.int64)
    for column in range(n_column):
        if plan.atom_ptr[column + 1] > plan.atom_ptr[column]:
            atom_at[column] = n_marked
            n_marked += n_row
    at_atom = np.empty(n_marked, np.bool_)
    for column in range(n_column):
        if atom_at[column] >= 0:
            _mark_atoms(plan, column, values[column], at_atom[atom_at[column] : atom_at[column] + n_row])
    routes = no_routes(plan, n_row)
    return Cells(
        feature,
        feature_at,
        np.full(n_feature, n_row, np.int64),
        np.full(n_column, -1, np.int32),
        np.empty((0, n_row), np.int32),
        np.zeros(n_column, np.int32),
        missing,
        np.full(n_slot, -1, np.int64),
        np.full(n_slot, -1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        at_atom,
        atom_at,
        np.full(1, n_row, np.int64),
        routes.row,
        routes.segment_ptr,
        routes.live_ptr,
        routes.live,
        routes.n_needed,
        routes.n_open,
    )


def make_cells(
    plan: Plan,
    values: np.ndarray,
    observed: np.ndarray,
    *,
    max_distinct_share: float,
    max_table_bytes: int,
    asked: Collection[int] = (),
    routes: Routes | None = None,
) -> Cells:
    """Return the Cells of a table, coding columns with few distinct values.

    Parameters
    ----------
    plan : Plan
    values : float64 (n_column, n_row)
    observed : bool (n_column, n_row)
    max_distinct_share : float
        A real column is coded when its distinct values are at most this share of the rows that a slot sees: of all,
        unless rows are routed.
    max_table_bytes : int
        Budget of all tables together (they should stay in the second-level cache); columns with the fewest distinct
        values come first. Columns whose base measure counts need no share, only the budget.
    asked : collection of int
        Columns that are always coded, with one distinct value more, the last. Their missing cells count as observed
        and have it: there a query puts the mass of an event in place of a density.
    routes : Routes, optional
        Of these rows, from `bayesjpt.kernels.routes.make_routes`; they stay in their places unless given.
    """
    n_column, n_row = values.shape
    routes = no_routes(plan, n_row) if routes is None else routes
    complete = bool(observed.all())
    if routes.row.size:
        values = reordered(values, routes.row)
        observed = observed if complete else reordered(observed, routes.row)
    reached, seen_rows = _slot_rows(plan, routes, n_row)
    n_edge_of_slot = np.where(reached, 1 + np.diff(plan.child_ptr)[plan.slot_node], 0)
    bytes_of_value = 8 * np.bincount(plan.slot_column, n_edge_of_slot, minlength=n_column).astype(np.int64)
    few = np.where(plan.column_resolution == 0.0, 1.0, max_distinct_share) * seen_rows
    few[(plan.column_resolution == 0.0) & (plan.column_kept >= 0)] = np.inf
    found = {
        column: _distinct(
            values[column] if complete else values[column, observed[column]],
            np.inf if column in asked else min(few[column], max_table_bytes // max(int(bytes_of_value[column]), 1) - 1),
        )
        for column in range(n_column)
    }
    distinct = {column: values_of for column, values_of in found.items() if values_of is not None}
    budget = max_table_bytes
    chosen = list(asked)
    candidates = [column for column in distinct if column not in asked]
    for column in sorted(candidates, key=lambda c: distinct[c].size):
        cost = (distinct[column].size + 1) * int(bytes_of_value[column])
        if cost <= budget:
            chosen.append(column)
            budget -= cost
    chosen.sort()
    coded = {}
    for column in chosen:
        code = np.empty(n_row, np.int32)
        _fill_codes(distinct[column], values[column], code)
        if not complete:
            code[~observed[column]] = distinct[column].size
        known = np.append(distinct[column], values[column, :1]) if column in asked else distinct[column]
        coded[column] = (known, code)
    if asked:
        observed = observed.copy()
        observed[list(asked)] = True
    return _assemble(plan, values, observed, coded, routes, reached)


def _distinct(x: np.ndarray, most: float) -> np.ndarray | None:
    """Return the distinct values, ascending, or None where there are more than `most`."""
    n_first = 4.0 * most + 64.0
    if x.size > n_first and np.unique(x[: int(n_first)]).size > most:
        return None
    found = np.unique(x)
    return found if found.size <= most else None


@kernel
def _fill_codes(distinct, x, out):
    """Fill the position of each value among the distinct ones, ascending; what is none of them gets any position.

    Whole numbers in a narrow range, such as labels, are looked up in a table of positions.
    """
    span = distinct[-1] - distinct[0] if distinct.size else np.inf
    if span > 4.0 * distinct.size + 64.0 or (distinct != np.floor(distinct)).any():
        out[:] = np.searchsorted(distinct, x)
        return
    position = np.zeros(int(span) + 1, np.int32)
    for k in range(distinct.size):
        position[int(distinct[k] - distinct[0])] = k
    for i in range(x.size):
        at = x[i] - distinct[0]
        out[i] = position[int(at)] if 0.0 <= at <= span else 0


def _slot_rows(plan: Plan, routes: Routes, n_row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which slots some segment needs, bool (n_slot,), and the mean rows of a column's, float64 (n_column,)."""
    n_column = plan.column_resolution.size
    if not routes.live.size:
        return np.ones(plan.slot_node.size, bool), np.full(n_column, float(n_row))
    of_node = np.repeat(np.diff(routes.segment_ptr), np.diff(routes.live_ptr))
    rows = np.bincount(routes.live, of_node, minlength=plan.kind.size)[plan.slot_node]
    reached = rows > 0
    total, n_slot = (np.bincount(plan.slot_column, w, minlength=n_column) for w in (rows, reached.astype(float)))
    return reached, total / np.maximum(n_slot, 1.0)


def _assemble(
    plan: Plan,
    values: np.ndarray,
    observed: np.ndarray,
    coded: dict[int, tuple[np.ndarray, np.ndarray]],
    routes: Routes,
    reached: np.ndarray,
) -> Cells:
    n_column, n_row = values.shape
    length_of = np.array([coded[column][0].size if column in coded else n_row for column in range(n_column)], np.int64)
    lengths = length_of[plan.feature_column]
    ends = np.cumsum(lengths)
    feature = np.empty(lengths.sum())
    features = [feature[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    for f, out in enumerate(features):
        column = int(plan.feature_column[f])
        x = coded[column][0] if column in coded else values[column]
        source = features[plan.feature_source[f]] if plan.feature_source[f] >= 0 else out
        _fill_feature(plan, f, np.ascontiguousarray(x), source, out)
    code_row = np.full(n_column, -1, np.int32)
    n_distinct = np.zeros(n_column, np.int32)
    for row, (column, (distinct, _)) in enumerate(coded.items()):
        code_row[column] = row
        n_distinct[column] = distinct.size
    is_coded = (code_row[plan.slot_column] >= 0) & reached
    length = np.where(is_coded, n_distinct[plan.slot_column].astype(np.int64) + 1, 0)
    n_terms = length * np.diff(plan.child_ptr)[plan.slot_node]
    marks: list[np.ndarray] = []
    atom_at = np.full(n_column, -1, np.int64)
    for column in np.flatnonzero(np.diff(plan.atom_ptr)).tolist():
        x = coded[column][0] if column in coded else values[column]
        atom_at[column] = sum(mark.size for mark in marks)
        marks.append(np.empty(x.size, np.bool_))
        _mark_atoms(plan, column, np.ascontiguousarray(x), marks[-1])
    return Cells(
        feature=feature,
        feature_at=ends - lengths,
        feature_len=lengths,
        code_row=code_row,
        code=np.array([code for _, code in coded.values()], np.int32).reshape(len(coded), n_row),
        n_distinct=n_distinct,
        missing=np.empty((n_column, 0), bool) if observed.all() else np.ascontiguousarray(~observed),
        table_at=np.where(is_coded, np.cumsum(length) - length, -1),
        term_at=np.where(is_coded, np.cumsum(n_terms) - n_terms, -1),
        n_table=np.array([length.sum()], np.int64),
        n_term=np.array([n_terms.sum()], np.int64),
        at_atom=np.concatenate([*marks, np.empty(0, np.bool_)]),
        atom_at=atom_at,
        n_row=np.array([n_row], np.int64),
        **routes._asdict(),
    )
