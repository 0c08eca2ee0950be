"""From root to leaves: every row draws its path, and the lists of rows that reach each node.

A row visits a node only if it has an observed cell in the node's scope; choices below a wholly missing scope, and
the likelihood of a missing cell, are neither drawn nor counted. Lists are partitioned without branches, and keep the
order of the rows. Below a coded slot a list holds codes instead of rows, which is what the leaf's statistics read.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels import rows
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.counter_rng import fill_uniform, fill_uniform_of
from bayesjpt.numerics.jit import kernel


@kernel
def _choose_by_count(positions, u, term, child, list_at, lists, size, buffers, count):
    """Append each position to the list of the child that its uniform number falls on, for any number of children.

    The child's number is the count of partial sums at or below the target: no branch, so the loops vectorise.
    `buffers` are a target, what is reached, and the choice: float64, float64, int32, as long as the positions.
    """
    target, reached, choice = buffers
    rows.total_terms(term, positions, target)
    rows.multiply(u, target)
    reached[:] = 0.0
    choice[:] = 0
    # no comparison for the last child: what the others leave, rounding included, is its share
    for c in range(child.size - 1):
        rows.count_reached(term[c], positions, target, reached, choice)
    for j in range(positions.size):
        at = list_at[child[choice[j]]]
        lists[at, size[at]] = positions[j]
        size[at] += 1
        count[choice[j]] += 1


@kernel
def _choose(positions, u, term, child, list_at, lists, size, buffers, count):
    """Distribute positions over the children of a sum in proportion to the terms, (n_child, ...).

    `lists` and `size` are those of all nodes, found by `list_at`; `child` and `count` are those of the sum's edges.
    """
    if child.size == 2:
        c0, c1 = list_at[child[0]], list_at[child[1]]
        q0, q1 = size[c0], size[c1]
        n0, n1 = rows.split_in_two(positions, u, term[0], term[1], lists[c0], q0, lists[c1], q1)
        size[c0], size[c1] = n0, n1
        count[0] += n0 - q0
        count[1] += n1 - q1
    elif child.size == 3:
        c0, c1, c2 = list_at[child[0]], list_at[child[1]], list_at[child[2]]
        q0, q1, q2 = size[c0], size[c1], size[c2]
        n0, n1, n2 = rows.split_in_three(positions, u, term, lists[c0], q0, lists[c1], q1, lists[c2], q2)
        size[c0], size[c1], size[c2] = n0, n1, n2
        count[0] += n0 - q0
        count[1] += n1 - q1
        count[2] += n2 - q2
    elif child.size == 1:
        count[0] += positions.size
        at = list_at[child[0]]
        size[at] = rows.append_all(positions, lists[at], size[at])
    else:
        _choose_by_count(positions, u, term, child, list_at, lists, size, buffers, count)


@kernel
def _to_codes(positions, code):
    for j in range(positions.size):
        positions[j] = code[positions[j]]


@apart
@kernel
def downward(plan, cells, log_weight, key, work, nodes, lo, n, edge_count):
    """Draw the paths of rows ``lo:lo + n`` and count the edges taken; the upward pass of the block has just run.

    `nodes` are those that it returned. A row's choices depend on its number in the table, wherever it stands. The terms
    of sums that share their children are made here, of the rows that come by.
    """
    any_missing = cells.missing.shape[1] > 0
    root = plan.kind.size - 1
    work.n_rows[:] = 0
    root_rows = work.rows[work.list_at[root]]
    if any_missing:
        seen = work.seen[work.node_at[root]]
        q = 0
        for i in range(n):
            root_rows[q] = i
            q += seen[i]
        work.n_rows[work.list_at[root]] = q
    else:
        for i in range(n):
            root_rows[i] = i
        work.n_rows[work.list_at[root]] = n
    # children have smaller numbers than their parents: when a node's turn comes, its list of rows is complete
    for position in range(nodes.size - 1, -1, -1):
        node = nodes[position]
        size = work.n_rows[position]
        if size == 0 or work.node_at[node] < 0:
            continue
        visitors = work.rows[position, :size]
        slot = plan.slot_of_node[node]
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        coded = slot >= 0 and cells.table_at[slot] >= 0
        if plan.kind[node] == LEAF_KIND:
            if coded:
                _to_codes(visitors, cells.code[cells.code_row[plan.slot_column[slot]], lo:])
        elif plan.kind[node] == PRODUCT_KIND:
            for e in range(first, last):
                at = work.list_at[plan.child[e]]
                if any_missing:
                    seen = work.seen[work.node_at[plan.child[e]]]
                    work.n_rows[at] = rows.append_observed(visitors, seen, work.rows[at], work.n_rows[at])
                else:
                    work.n_rows[at] = rows.append_all(visitors, work.rows[at], work.n_rows[at])
        else:
            # where rows are routed, one child of a hard sum is alive for all of a segment: nothing is drawn there
            alive, only = 0, first
            for e in range(first, last if slot < 0 else first):
                if work.node_at[plan.child[e]] >= 0:
                    alive, only = alive + 1, e
            if alive == 1:
                at = work.list_at[plan.child[only]]
                work.n_rows[at] = rows.append_all(visitors, work.rows[at], work.n_rows[at])
                edge_count[only] += size
                continue
            # by the row's number in the table, not its place: the same draw however rows are ordered or cut into parts
            if cells.row.size > 0:
                fill_uniform_of(key, cells.row[lo:], visitors, node, work.u)
            else:
                fill_uniform(key, lo, visitors, node, work.u)
            buffers = work.target[:size], work.reached[:size], work.choice[:size]
            if coded:
                column = plan.slot_column[slot]
                # only now: the uniform numbers needed rows, what follows reads codes
                _to_codes(visitors, cells.code[cells.code_row[column], lo:])
                # one entry more than distinct values: that of missing cells, of which none comes by here
                length = np.int64(cells.n_distinct[column]) + 1
                at = cells.term_at[slot]
                term = work.table_term[at : at + (last - first) * length].reshape(last - first, length)
            elif plan.shares_children[node]:
                term = work.leaf[: last - first]
                at = work.node_at[node]
                for e in range(first, last):
                    source = work.node_at[plan.child[e]]
                    if source >= 0:
                        rows.chosen_terms(
                            work.m[source], work.s[source], log_weight[e], work.m[at], visitors, term[e - first]
                        )
                    else:
                        # a child that this segment does not need has no value here
                        term[e - first, :n] = 0.0
            else:
                edge = work.edge_at[first]
                term = work.term[edge : edge + last - first]
            _choose(
                visitors, work.u, term, plan.child[first:last], work.list_at, work.rows, work.n_rows, buffers,
                edge_count[first:last],
            )  # fmt: skip
