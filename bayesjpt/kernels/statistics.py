"""Sufficient statistics of the leaves from the lists of rows that reached them.

Rows are added one after the other, in order, within chunks of fixed length; chunk sums are added in chunk order. So
the result does not depend on the size of blocks, nor on where a table is cut, as long as cuts fall between chunks.
"""

from __future__ import annotations

from bayesjpt.families import dispatch
from bayesjpt.numerics.jit import kernel


@kernel
def accumulate_block(plan, cells, work, lo):
    """Add the rows of the block that starts at `lo` to the chunk's statistics."""
    for node in range(plan.kind.size):
        leaf = plan.leaf_of[node]
        size = work.n_rows[node]
        if leaf < 0 or size == 0:
            continue
        value, aux = plan.leaf_value[leaf], plan.leaf_aux[leaf]
        column = plan.feature_column[value]
        start = 0 if cells.code_row[column] >= 0 else lo
        value_at, aux_at = cells.feature_at[value], cells.feature_at[aux]
        z = cells.feature[value_at + start : value_at + cells.feature_len[value]]
        prepared = cells.feature[aux_at + start : aux_at + cells.feature_len[aux]]
        const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        stats = work.chunk_stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]]
        dispatch.accumulate(plan.leaf_family[leaf], z, prepared, work.rows[node, :size], const, stats)
