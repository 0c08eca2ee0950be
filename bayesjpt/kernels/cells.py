"""The cells of one table, arranged for one plan: features by row or by distinct value, and the workspace.

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


class Work(NamedTuple):
    """Reusable buffers of one sweep; their content means nothing between calls.

    Attributes
    ----------
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
    rows : int32 (n_node, n_block + 1)
        Rows (or codes) that reach each node.
    n_rows : int64 (n_node,)
    u, target, reached : float64 (n_block,)
    choice : int32 (n_block,)
        Of the rows at one sum: uniform numbers, and the search for the child that each falls on.
    chunk_stats : float64 (n_stats,)
    kept_entry, kept_leaf : int32 (n_kept_column, n_row)
        For columns with leaves drawn by value: the entries of features that reached such leaves, and which.
    n_kept : int64 (n_kept_column,)
    sorted_entry : int32 (n_kept_column, n_row), sorted_ptr : int64 (n_leaf, 2)
        The same entries leaf by leaf, and where each leaf's begin and end.
    value, count : float64 (n_longest_list,), tally : int64 (n_longest_code,)
        The values of one leaf, how often each occurs, and the buffer in which codes are counted.
    """

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
    )


def make_cells(
    plan: Plan,
    values: np.ndarray,
    observed: np.ndarray,
    *,
    max_distinct_share: float,
    max_table_bytes: int,
    asked: Collection[int] = (),
) -> Cells:
    """Return the Cells of a table, coding columns with few distinct values.

    Parameters
    ----------
    plan : Plan
    values : float64 (n_column, n_row)
    observed : bool (n_column, n_row)
    max_distinct_share : float
        A real column is coded when its distinct values are at most this share of the rows.
    max_table_bytes : int
        Budget of all tables together (they should stay in the second-level cache); columns with the fewest distinct
        values come first. Columns whose base measure counts need no share, only the budget.
    asked : collection of int
        Columns that are always coded, with one distinct value more, the last. Their missing cells count as observed
        and have it: there a query puts the mass of an event in place of a density.
    """
    n_column, n_row = values.shape
    coded: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for column in range(n_column):
        distinct, inverse = np.unique(values[column, observed[column]], return_inverse=True)
        code = np.full(n_row, distinct.size, np.int32)
        code[observed[column]] = inverse
        coded[column] = (np.append(distinct, values[column, :1]) if column in asked else distinct, code)
    n_edge_of_slot = np.diff(plan.child_ptr)[plan.slot_node]
    budget = max_table_bytes
    chosen = list(asked)
    for column in sorted(set(range(n_column)) - set(asked), key=lambda c: coded[c][0].size):
        n_distinct = coded[column][0].size
        counts = plan.column_resolution[column] == 0.0
        slots = plan.slot_column == column
        cost = 8 * (n_distinct + 1) * int((1 + n_edge_of_slot[slots]).sum())
        few = counts or n_distinct <= max_distinct_share * n_row
        if few and cost <= budget:
            chosen.append(column)
            budget -= cost
    chosen.sort()
    if asked:
        observed = observed.copy()
        observed[list(asked)] = True
    return _assemble(plan, values, observed, {column: coded[column] for column in chosen})


def _assemble(
    plan: Plan, values: np.ndarray, observed: np.ndarray, coded: dict[int, tuple[np.ndarray, np.ndarray]]
) -> Cells:
    n_column, n_row = values.shape
    features: list[np.ndarray] = []
    for f in range(plan.feature_column.size):
        column = int(plan.feature_column[f])
        x = coded[column][0] if column in coded else values[column]
        out = np.empty(x.size)
        source = features[plan.feature_source[f]] if plan.feature_source[f] >= 0 else out
        _fill_feature(plan, f, np.ascontiguousarray(x), source, out)
        features.append(out)
    lengths = np.array([feature.size for feature in features], np.int64)
    code_row = np.full(n_column, -1, np.int32)
    n_distinct = np.zeros(n_column, np.int32)
    for row, (column, (distinct, _)) in enumerate(coded.items()):
        code_row[column] = row
        n_distinct[column] = distinct.size
    is_coded = code_row[plan.slot_column] >= 0
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
        feature=np.concatenate([*features, np.empty(0)]),
        feature_at=np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
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
    )


def block_rows(plan: Plan, max_bytes: int) -> int:
    """Return how many rows to evaluate together: 1,024, or less where the workspace would exceed `max_bytes`.

    The number has no effect on any draw. Many rows spread the cost of visiting a node; the chunk of statistics, 4,096
    rows, is a multiple of every answer.
    """
    values_per_row = 2 * int(plan.node_row.max() + 1) + int(plan.edge_row.max(initial=0) + 1) + plan.kind.size // 2
    n = 1024
    while n > 64 and 8 * n * values_per_row > max_bytes:
        n //= 2
    return n


@kernel
def make_work(plan, cells, n_block):
    """Return the Work of a plan and a table for blocks of at most `n_block` rows."""
    n_valued = 0
    for node in range(plan.node_row.size):
        n_valued = max(n_valued, plan.node_row[node] + 1)
    n_term = 1
    for edge in range(plan.edge_row.size):
        n_term = max(n_term, plan.edge_row[edge] + 1)
    n_dictionary = 3
    for slot in range(plan.slot_node.size):
        node = plan.slot_node[slot]
        n_dictionary = max(n_dictionary, plan.child_ptr[node + 1] - plan.child_ptr[node])
    longest = np.int64(n_block)
    for column in range(cells.n_distinct.size):
        longest = max(longest, np.int64(cells.n_distinct[column] + 1))
    n_coefficient = 0
    for leaf in range(plan.leaf_family.size):
        n_coefficient = max(n_coefficient, plan.coef_at[leaf] + plan.theta_len[leaf] + 4)
    n_node = plan.kind.size
    n_row = cells.n_row[0]
    n_kept = 0
    n_listed = 0
    n_tally = 0
    for column in range(plan.column_kept.size):
        if plan.column_kept[column] >= 0:
            n_kept += 1
            if cells.code_row[column] >= 0:
                n_tally = max(n_tally, np.int64(cells.n_distinct[column]))
            else:
                n_listed = n_row
    n_listed = max(n_listed, n_tally)
    return Work(
        np.zeros((n_valued, n_block)),
        np.zeros((n_valued, n_block)),
        np.zeros((n_term, n_block)),
        np.zeros((n_dictionary, longest)),
        np.zeros((2, longest)),
        np.zeros(cells.n_table[0]),
        np.zeros(cells.n_term[0]),
        np.zeros(n_coefficient),
        np.zeros(plan.leaf_family.size),
        np.zeros((n_valued if cells.missing.shape[1] > 0 else 0, n_block), np.bool_),
        np.zeros((n_node, n_block + 1), np.int32),
        np.zeros(n_node, np.int64),
        np.zeros(n_block),
        np.zeros(n_block),
        np.zeros(n_block),
        np.zeros(n_block, np.int32),
        np.zeros(plan.stat_at[-1]),
        np.empty((n_kept, n_row), np.int32),
        np.empty((n_kept, n_row), np.int32),
        np.zeros(n_kept, np.int64),
        np.empty((n_kept, n_row), np.int32),
        np.zeros((plan.leaf_family.size, 2), np.int64),
        np.empty(n_listed),
        np.empty(n_listed),
        np.zeros(n_tally, np.int64),
    )
