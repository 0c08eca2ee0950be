"""The workspace of kernels: buffers for a block of rows, allocated once.

Nodes have rows of buffers. Where rows of a table are routed, a segment needs a few nodes only, and these share the
rows of the buffers with those of any other segment: small buffers stay in the cache.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.cells import Cells, Work
from bayesjpt.kernels.routes import no_routes, segment_of
from bayesjpt.numerics.jit import kernel

_APART = 8
"""Numbers, a line of the cache, behind each buffer. Blocks are powers of two: so far apart, the first rows of all nodes
would share a few places of the cache, and a segment of few rows would find none of them there again."""


def block_rows(plan: Plan, max_bytes: int, cells: Cells | None = None) -> int:
    """Return how many rows to evaluate together: 1,024, or less where the workspace would exceed `max_bytes`.

    The workspace is that of rows which need all nodes, or of the segments of a table. The number has no effect on any
    draw. Many rows spread the cost of visiting a node; the chunk of statistics, 4,096 rows, is a multiple of every
    answer.
    """
    n_valued, n_term, n_node = no_routes(plan, 1).n_needed if cells is None else cells.n_needed
    # two numbers of a node's pair, one of each term; lists are int32, half a number
    values_per_row = 2 * int(n_valued) + max(int(n_term), 1) + int(n_node) // 2
    n = 1024
    while n > 64 and 8 * n * values_per_row > max_bytes:
        n //= 2
    return n


@kernel
def make_work(plan, cells, n_block):
    """Return the Work of a plan and a table for blocks of at most `n_block` rows."""
    n_valued, n_term, n_node = cells.n_needed[0], max(cells.n_needed[1], 1), cells.n_needed[2]
    n_dictionary = 3
    for node in range(plan.kind.size):
        if plan.slot_of_node[node] >= 0 or plan.shares_children[node]:
            n_dictionary = max(n_dictionary, plan.child_ptr[node + 1] - plan.child_ptr[node])
    longest = np.int64(n_block)
    for column in range(cells.n_distinct.size):
        longest = max(longest, np.int64(cells.n_distinct[column] + 1))
    n_kept, n_listed = 0, np.int64(0)
    for column in range(plan.column_kept.size):
        if plan.column_kept[column] >= 0:
            n_kept += 1
            if cells.code_row[column] < 0:
                n_listed = cells.n_row[0]
    n_tally, n_value = np.int64(0), n_listed
    tally_at = np.full(plan.leaf_family.size, -1, np.int64)
    for leaf in range(plan.leaf_family.size):
        column = plan.feature_column[plan.leaf_value[leaf]]
        if plan.leaf_by_value[leaf] and cells.code_row[column] >= 0:
            tally_at[leaf] = n_tally
            n_tally += cells.n_distinct[column]
            n_value = max(n_value, np.int64(cells.n_distinct[column]))
    return Work(
        plan.node_row.copy(),
        plan.edge_row.copy(),
        np.arange(plan.kind.size).astype(np.int32),
        # no segment yet: where rows are routed, the first block lays its own out
        np.full(1, 0 if cells.live.size == 0 else -1, np.int64),
        np.zeros((n_valued, n_block + _APART)),
        np.zeros((n_valued, n_block + _APART)),
        np.zeros((n_term, n_block + _APART)),
        np.zeros((n_dictionary, longest)),
        np.zeros((2, longest)),
        np.zeros(cells.n_table[0]),
        np.zeros(cells.n_term[0]),
        np.zeros(plan.coef_at[-1]),
        np.zeros(plan.leaf_family.size),
        np.zeros((n_valued if cells.missing.shape[1] > 0 else 0, n_block), np.bool_),
        # one list more for nodes out of reach, one place more for what is written without a branch and not kept
        np.zeros((n_node + 1, n_block + 1), np.int32),
        np.zeros(n_node + 1, np.int64),
        np.zeros(n_block),
        np.zeros(n_block),
        np.zeros(n_block),
        np.zeros(n_block, np.int32),
        np.zeros(plan.stat_at[-1]),
        np.zeros(plan.leaf_family.size, np.int64),
        np.zeros(n_tally, np.int64),
        tally_at,
        np.empty((n_kept, n_listed)),
        np.empty((n_kept, n_listed), np.int32),
        np.zeros(n_kept, np.int64),
        np.empty((n_kept, n_listed)),
        np.zeros((plan.leaf_family.size, 2), np.int64),
        np.empty((2, n_value)),
    )


@kernel
def lay_out(plan, cells, work, place):
    """Give the nodes that the segment at a place needs their rows of buffers; return these nodes, ascending."""
    if cells.live.size == 0:
        return work.list_at  # all are needed, and each has a list and rows of its own: 0, 1, 2 ...
    segment = segment_of(cells.segment_ptr, place)
    nodes = cells.live[cells.live_ptr[segment] : cells.live_ptr[segment + 1]]
    if work.segment[0] != segment:
        work.segment[0] = segment
        work.node_at[:] = -1
        work.list_at[:] = work.n_rows.size - 1
        n_valued, n_term = 0, 0
        for position in range(nodes.size):
            node = nodes[position]
            work.list_at[node] = position
            if plan.node_row[node] >= 0:
                work.node_at[node] = n_valued
                n_valued += 1
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                if plan.edge_row[e] >= 0:
                    work.edge_at[e] = n_term
                    n_term += 1
    return nodes
