"""Sufficient statistics of the leaves from the lists of rows that reached them.

Rows are added one after the other, in order, within chunks of fixed length; chunk sums are added in chunk order. So
the result does not depend on the size of blocks, nor on where a table is cut, as long as cuts fall between chunks.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.families import dispatch
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.jit import inlined, kernel


@inlined
def _accumulate(plan, cells, leaf, start, rows, stats):
    """Add rows, or codes, of the values from `start` on to what `stats` holds of a leaf."""
    value, aux = plan.leaf_value[leaf], plan.leaf_aux[leaf]
    value_at, aux_at = cells.feature_at[value], cells.feature_at[aux]
    z = cells.feature[value_at + start : value_at + cells.feature_len[value]]
    prepared = cells.feature[aux_at + start : aux_at + cells.feature_len[aux]]
    const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
    leaf_stats = stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]]
    dispatch.accumulate(plan.leaf_family[leaf], z, prepared, rows, const, leaf_stats)


@apart
@kernel
def accumulate_block(plan, cells, work, swaps, nodes, lo):
    """Add the rows of the block that starts at `lo` to the chunk's statistics, and to how many reached each leaf.

    Rows of a leaf that may swap are also added to what `swaps` holds of the other leaf.
    """
    for position in range(nodes.size):
        leaf = plan.leaf_of[nodes[position]]
        size = work.n_rows[position]
        if leaf < 0 or size == 0:
            continue
        column = plan.feature_column[plan.leaf_value[leaf]]
        # lists of coded columns hold codes, which count from the first distinct value; others hold places in the block
        start = 0 if cells.code_row[column] >= 0 else lo
        work.n_reached[leaf] += size
        _accumulate(plan, cells, leaf, start, work.rows[position, :size], work.chunk_stats)
        if swaps.other[leaf] >= 0:
            _accumulate(plan, cells, swaps.other[leaf], start, work.rows[position, :size], swaps.chunk_stats)
        if work.tally_at[leaf] >= 0:
            for j in range(size):
                work.tally[work.tally_at[leaf] + work.rows[position, j]] += 1
        elif plan.leaf_by_value[leaf]:
            row = plan.column_kept[column]
            at, first = work.n_kept[row], cells.feature_at[plan.leaf_value[leaf]] + start
            for j in range(size):
                work.kept_value[row, at + j] = cells.feature[first + work.rows[position, j]]
                work.kept_leaf[row, at + j] = leaf
            work.n_kept[row] += size


@inlined
def forget_values(work):
    """Empty the lists of values, and counts of rows, before the first block."""
    work.tally[:] = 0
    work.n_kept[:] = 0
    work.n_reached[:] = 0


@kernel
def sort_kept(plan, work):
    """Order the kept values leaf by leaf, those of one leaf as they came: in the order of their rows."""
    ends = work.sorted_ptr
    ends[:] = 0
    for row in range(work.n_kept.size):
        for j in range(work.n_kept[row]):
            ends[work.kept_leaf[row, j], 1] += 1
    for row in range(work.n_kept.size):
        at = np.int64(0)
        for leaf in range(plan.leaf_family.size):
            if plan.leaf_by_value[leaf] and plan.column_kept[plan.feature_column[plan.leaf_value[leaf]]] == row:
                ends[leaf, 0] = at
                at += ends[leaf, 1]
                ends[leaf, 1] = ends[leaf, 0]
        for j in range(work.n_kept[row]):
            leaf = work.kept_leaf[row, j]
            # a counting sort: stable, so values keep the order of their rows and the draws do not depend on the blocks
            work.sorted_value[row, ends[leaf, 1]] = work.kept_value[row, j]
            ends[leaf, 1] += 1


@apart
@kernel
def list_values(plan, cells, work, leaf):
    """Fill ``work.listed`` with a leaf's values and counts; return how many there are.

    Values of a coded column are distinct and ascending; those of any other are listed row by row, each once.
    """
    feature = plan.leaf_value[leaf]
    column = plan.feature_column[feature]
    n = 0
    if work.tally_at[leaf] < 0:
        row = plan.column_kept[column]
        for j in range(work.sorted_ptr[leaf, 0], work.sorted_ptr[leaf, 1]):
            work.listed[0, n] = work.sorted_value[row, j]
            work.listed[1, n] = 1.0
            n += 1
        return n
    z = cells.feature[cells.feature_at[feature] : cells.feature_at[feature] + cells.feature_len[feature]]
    for code in range(cells.n_distinct[column]):
        count = work.tally[work.tally_at[leaf] + code]
        if count > 0:
            work.listed[0, n] = z[code]
            work.listed[1, n] = count
            n += 1
    return n
