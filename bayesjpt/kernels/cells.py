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
from bayesjpt.kernels import rows
from bayesjpt.kernels.coding import choose_coding, distinct_values, slot_rows
from bayesjpt.kernels.routes import Routes, no_routes, reordered
from bayesjpt.numerics.borrowed import by_address
from bayesjpt.numerics.jit import kernel, read_only
from bayesjpt.numerics.ordering import n_below


@by_address
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
    half : float64 (n_half,)
        Half widths of cells, the user's units, in the order of a feature's entries; empty where nothing has a mass.
    half_at : int64 (n_column,)
        Where a column's half widths lie.
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
    half: np.ndarray
    half_at: np.ndarray
    n_row: np.ndarray
    row: np.ndarray
    segment_ptr: np.ndarray
    live_ptr: np.ndarray
    live: np.ndarray
    n_needed: np.ndarray
    n_open: np.ndarray


@by_address
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
        Log densities of the leaves of one slot; or values of children that several sums share, or terms of such a sum.
    pair : float64 (2, n_longest)
        The pair of one coded slot; the exponent of shared children.
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
    tally : int64 (n_tally,), tally_at : int64 (n_leaf,)
        How often each code of a coded column reached each leaf that is drawn by value, and where a leaf's counts lie;
        -1 for other leaves.
    kept_value : float64 (n_kept_column, n_listed), kept_leaf : int32 of that shape
        Of other columns with such leaves: the values, as features, that reached one, and which; n_listed is n_row, or 0
        where no column needs it.
    n_kept : int64 (n_kept_column,)
    sorted_value : float64 (n_kept_column, n_listed), sorted_ptr : int64 (n_leaf, 2)
        The same values leaf by leaf, and where each leaf's begin and end.
    listed : float64 (2, n_longest_list)
        The values of one leaf, and how often each occurs.
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
    tally: np.ndarray
    tally_at: np.ndarray
    kept_value: np.ndarray
    kept_leaf: np.ndarray
    n_kept: np.ndarray
    sorted_value: np.ndarray
    sorted_ptr: np.ndarray
    listed: np.ndarray


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
def _arrange(plan, values, missing, row, coded):
    """Return (feature, feature_at, feature_len, code, at_atom, atom_at), as in Cells.

    Column by column, while it is in the cache: to the order `row` of the rows, to codes, to features. `coded` is
    (code_row, known, known_ptr, n_code): of each coded column the values that have features, of which the first n_code
    are distinct and ascending; missing cells have the code that follows.
    """
    code_row, known, known_ptr, n_code = coded
    n_column, n_row = values.shape
    feature_at = np.zeros(plan.feature_column.size + 1, np.int64)
    mark_at = np.zeros(n_column + 1, np.int64)
    length = np.full(n_column, n_row, np.int64)
    for column in range(n_column):
        if code_row[column] >= 0:
            length[column] = known_ptr[column + 1] - known_ptr[column]
    for f in range(plan.feature_column.size):
        feature_at[f + 1] = feature_at[f] + length[plan.feature_column[f]]
    for column in range(n_column):
        has_atoms = plan.atom_ptr[column + 1] > plan.atom_ptr[column]
        mark_at[column + 1] = mark_at[column] + (length[column] if has_atoms else 0)
    feature, at_atom = np.empty(feature_at[-1]), np.empty(mark_at[-1], np.bool_)
    n_coded, atom_at = 0, np.full(n_column, -1, np.int64)
    for column in range(n_column):
        n_coded += code_row[column] >= 0
        if plan.atom_ptr[column + 1] > plan.atom_ptr[column]:
            atom_at[column] = mark_at[column]
    code, moved = np.empty((n_coded, n_row), np.int32), np.empty(row.size)
    for column in range(n_column):
        x = values[column]
        if row.size > 0:
            rows.gather(x, row, moved)
            x = moved
        if code_row[column] >= 0:
            column_code = code[code_row[column]]
            first = known_ptr[column]
            fill_codes(known[first : first + n_code[column]], x, column_code)
            if missing.shape[1] > 0:
                rows.put_where(missing[column], n_code[column], column_code)
            x = known[first : known_ptr[column + 1]]
        for f in range(plan.feature_column.size):
            if plan.feature_column[f] == column:
                # a feature made from the column itself has source -1, and does not read what it is given there
                source = max(plan.feature_source[f], 0)
                _fill_feature(
                    plan, f, x, feature[feature_at[source] : feature_at[source + 1]],
                    feature[feature_at[f] : feature_at[f + 1]],
                )  # fmt: skip
        if mark_at[column + 1] > mark_at[column]:
            _mark_atoms(plan, column, x, at_atom[mark_at[column] : mark_at[column + 1]])
    feature_len = np.empty(plan.feature_column.size, np.int64)
    for f in range(feature_len.size):
        feature_len[f] = feature_at[f + 1] - feature_at[f]
    return feature, feature_at[:-1].copy(), feature_len, code, at_atom, atom_at


@kernel
def row_cells(plan, values, missing):
    """Return Cells that evaluate every column row by row.

    `values` is float64 (n_column, n_row), without NaN where observed; `missing` is bool of that shape or (n_column, 0).
    """
    n_column, n_row = values.shape
    n_slot = plan.slot_node.size
    routes = no_routes(plan, n_row)
    code_row, n_distinct = np.full(n_column, -1, np.int32), np.zeros(n_column, np.int32)
    coded = code_row, np.empty(0), np.zeros(n_column + 1, np.int64), n_distinct
    feature, feature_at, feature_len, code, at_atom, atom_at = _arrange(plan, values, missing, routes.row, coded)
    return Cells(
        feature,
        feature_at,
        feature_len,
        code_row,
        code,
        n_distinct,
        missing,
        np.full(n_slot, -1, np.int64),
        np.full(n_slot, -1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        at_atom,
        atom_at,
        np.empty(0),
        np.zeros(n_column, np.int64),
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
    queried: Collection[int] = (),
    routes: Routes | None = None,
    half: np.ndarray | None = None,
    keep_terms: bool = True,
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
    queried : collection of int
        Columns that are always coded, with one distinct value more, the last. Their missing cells count as observed
        and have it: there a query puts the mass of an event in place of a density.
    routes : Routes, optional
        Of these rows, from `bayesjpt.kernels.routes.make_routes`; they stay in their places unless given.
    half : float64 (n_column, n_row), optional
        Half widths of the cells around the values, the same for equal values of a column.
    keep_terms : bool, optional
        Whether slots keep what their leaves add to each value: `downward` draws a leaf by it. Otherwise all slots write
        it to the same place, and tables are a fraction of the size.
    """
    n_row = values.shape[1]
    routes = no_routes(plan, n_row) if routes is None else routes
    reached, seen_rows = slot_rows(plan, [routes], n_row)
    coding = choose_coding(
        plan,
        lambda column, most: distinct_values(values[column], observed[column], most),
        seen_rows,
        reached,
        max_distinct_share=max_distinct_share,
        max_table_bytes=max_table_bytes,
        queried=queried,
        keep_terms=keep_terms,
    )
    coding |= {column: np.append(coding[column], values[column, :1]) for column in queried}
    cells = assemble(plan, values, observed, coding, routes, reached=reached, queried=set(queried))
    if not keep_terms:
        n_term = cells.n_distinct.max(initial=-1) + 1
        widest = np.diff(plan.child_ptr)[plan.slot_node].max(initial=0)
        # -1 stays -1: it marks slots without a table
        cells = cells._replace(term_at=np.minimum(cells.term_at, 0), n_term=np.array([n_term * widest], np.int64))
    return cells if half is None else cells._replace(**_halves(cells, half))


def _halves(cells: Cells, half: np.ndarray) -> dict[str, np.ndarray]:
    """Return half widths of cells, one for each value that a column is evaluated at."""
    of_column = []
    for row, n_distinct, widths in zip(cells.code_row, cells.n_distinct, half, strict=True):
        widths = widths[cells.row] if cells.row.size else widths
        if row >= 0:
            of_row, widths = widths, np.zeros(n_distinct + 1)
            # equal values have equal widths, so the last that is written is as good as the first
            widths[cells.code[row]] = of_row
        of_column.append(widths)
    ends = np.cumsum([widths.size for widths in of_column], dtype=np.int64)
    return {"half": np.concatenate(of_column), "half_at": np.append(0, ends[:-1])}


@kernel
def fill_codes(distinct, x, out):
    """Fill the position of each value among the distinct ones, ascending; what is none of them gets any position.

    Whole numbers in a narrow range, such as labels, are looked up in a table of positions.
    """
    span = distinct[-1] - distinct[0] if distinct.size else np.inf
    # the table of positions has span + 1 entries: only where that is a few for each distinct value
    if span > 4.0 * distinct.size + 64.0 or (distinct != np.floor(distinct)).any():
        for i in range(x.size):
            out[i] = n_below(distinct, x[i])
        return
    # one lookup a row in place of a binary search
    position = np.zeros(int(span) + 1, np.int32)
    for k in range(distinct.size):
        position[int(distinct[k] - distinct[0])] = k
    for i in range(x.size):
        at = x[i] - distinct[0]
        # false for the NaN of a missing cell, too; the mask overwrites its code
        out[i] = position[int(at)] if 0.0 <= at <= span else 0


def assemble(
    plan: Plan,
    values: np.ndarray,
    observed: np.ndarray,
    known: dict[int, np.ndarray],
    routes: Routes,
    *,
    reached: np.ndarray,
    queried: Collection[int] = (),
    masked: bool = False,
) -> Cells:
    """Return the Cells of rows whose coding is known.

    Parameters
    ----------
    plan : Plan
    values, observed, routes, queried : as in `make_cells`
    known : dict from int to float64 (n_distinct,)
        Of each coded column the values that have features, ascending; as `choose_coding` returns them.
    reached : bool (n_slot,)
        Slots that have tables.
    masked : bool
        Keep the mask of missing cells where nothing is missing: other rows of the table lack some.
    """
    n_column, n_row = values.shape
    code_row = np.full(n_column, -1, np.int32)
    code_row[list(known)] = np.arange(len(known))
    n_distinct = np.array([known[c].size if c in known else 0 for c in range(n_column)], np.int32)
    is_queried = np.zeros(n_column, bool)
    is_queried[list(queried)] = True
    missing = np.ascontiguousarray(~observed) if masked or not observed.all() else np.empty((n_column, 0), bool)
    if routes.row.size and missing.size:
        missing = reordered(missing, routes.row)
    coded = (
        code_row,
        np.concatenate([*known.values(), np.empty(0)]),
        np.append(0, np.cumsum(n_distinct, dtype=np.int64)),
        # the last value of a queried column stands for the event: codes are not searched there
        n_distinct - is_queried.astype(np.int32),
    )
    feature, feature_at, feature_len, code, at_atom, atom_at = _arrange(
        plan, read_only(np.ascontiguousarray(values)), missing, routes.row, coded
    )
    if missing.size:
        # a column that an event is about counts as observed; its cells have the code of the event
        missing[list(queried)] = False
    is_coded = (code_row[plan.slot_column] >= 0) & reached
    length = np.where(is_coded, n_distinct[plan.slot_column].astype(np.int64) + 1, 0)
    n_terms = length * np.diff(plan.child_ptr)[plan.slot_node]
    return Cells(
        feature=feature,
        feature_at=feature_at,
        feature_len=feature_len,
        code_row=code_row,
        code=code,
        n_distinct=n_distinct,
        missing=missing if masked or missing.any() else np.empty((n_column, 0), bool),
        table_at=np.where(is_coded, np.cumsum(length) - length, -1),
        term_at=np.where(is_coded, np.cumsum(n_terms) - n_terms, -1),
        n_table=np.array([length.sum()], np.int64),
        n_term=np.array([n_terms.sum()], np.int64),
        at_atom=at_atom,
        atom_at=atom_at,
        half=np.empty(0),
        half_at=np.zeros(n_column, np.int64),
        n_row=np.array([n_row], np.int64),
        **routes._asdict(),
    )
