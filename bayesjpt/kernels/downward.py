"""From root to leaves: every row draws its path, and the lists of rows that reach each node.

A row visits a node only if it has an observed cell in the node's scope; choices below a wholly missing scope, and
the likelihood of a missing cell, are neither drawn nor counted. Lists are partitioned without branches, and keep the
order of the rows. Below a coded slot a list holds codes instead of rows, which is what the leaf's statistics read.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels import rows
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.counter_rng import fill_uniform
from bayesjpt.numerics.jit import inlined, kernel


@inlined
def _choose_by_count(positions, u, term, plan, first, work, edge_count):
    """Append each position to the list of the child that its uniform number falls on, for any number of children.

    The child's number is the count of partial sums at or below the target: no branch, so the loops vectorise.
    """
    k = term.shape[0]
    n = positions.size
    target, reached, choice = work.target[:n], work.reached[:n], work.choice[:n]
    rows.total_terms(term, positions, target)
    rows.multiply(u, target)
    reached[:] = 0.0
    choice[:] = 0
    for c in range(k - 1):
        rows.count_reached(term[c], positions, target, reached, choice)
    for j in range(n):
        child = plan.child[first + choice[j]]
        work.rows[child, work.n_rows[child]] = positions[j]
        work.n_rows[child] += 1
        edge_count[first + choice[j]] += 1


@inlined
def _choose(positions, u, term, plan, node, work, edge_count):
    """Distribute positions over the children of a sum in proportion to the terms, (n_child, ...)."""
    first = plan.child_ptr[node]
    k = plan.child_ptr[node + 1] - first
    list_rows, size = work.rows, work.n_rows
    if k == 2:
        c0, c1 = plan.child[first], plan.child[first + 1]
        q0, q1 = size[c0], size[c1]
        n0, n1 = rows.split_in_two(positions, u, term[0], term[1], list_rows[c0], q0, list_rows[c1], q1)
        size[c0], size[c1] = n0, n1
        edge_count[first] += n0 - q0
        edge_count[first + 1] += n1 - q1
    elif k == 3:
        c0, c1, c2 = plan.child[first], plan.child[first + 1], plan.child[first + 2]
        q0, q1, q2 = size[c0], size[c1], size[c2]
        n0, n1, n2 = rows.split_in_three(positions, u, term, list_rows[c0], q0, list_rows[c1], q1, list_rows[c2], q2)
        size[c0], size[c1], size[c2] = n0, n1, n2
        edge_count[first] += n0 - q0
        edge_count[first + 1] += n1 - q1
        edge_count[first + 2] += n2 - q2
    elif k == 1:
        child = plan.child[first]
        edge_count[first] += positions.size
        size[child] = rows.append_all(positions, list_rows[child], size[child])
    else:
        _choose_by_count(positions, u, term, plan, first, work, edge_count)


@kernel
def downward(plan, cells, key, work, lo, n, edge_count):
    """Draw the paths of rows ``lo:lo + n`` and count the edges taken; the upward pass of the block has just run."""
    any_missing = cells.missing.shape[1] > 0
    root = plan.kind.size - 1
    work.n_rows[:] = 0
    here = work.rows[root]
    if any_missing:
        seen = work.seen[plan.node_row[root]]
        q = 0
        for i in range(n):
            here[q] = i
            q += seen[i]
        work.n_rows[root] = q
    else:
        for i in range(n):
            here[i] = i
        work.n_rows[root] = n
    for node in range(root, -1, -1):
        size = work.n_rows[node]
        if size == 0 or plan.node_row[node] < 0:
            continue
        visitors = work.rows[node, :size]
        slot = plan.slot_of_node[node]
        if slot >= 0:
            if cells.table_at[slot] >= 0:
                _coded_slot(plan, cells, key, work, node, slot, lo, edge_count)
            elif plan.kind[node] != LEAF_KIND:
                edge = plan.edge_row[plan.child_ptr[node]]
                k = plan.child_ptr[node + 1] - plan.child_ptr[node]
                fill_uniform(key, lo, visitors, node, work.u)
                _choose(visitors, work.u, work.term[edge : edge + k], plan, node, work, edge_count)
        elif plan.kind[node] == PRODUCT_KIND:
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                child = plan.child[e]
                if any_missing:
                    seen = work.seen[plan.node_row[child]]
                    work.n_rows[child] = rows.append_observed(visitors, seen, work.rows[child], work.n_rows[child])
                else:
                    work.n_rows[child] = rows.append_all(visitors, work.rows[child], work.n_rows[child])
        else:
            edge = plan.edge_row[plan.child_ptr[node]]
            k = plan.child_ptr[node + 1] - plan.child_ptr[node]
            fill_uniform(key, lo, visitors, node, work.u)
            _choose(visitors, work.u, work.term[edge : edge + k], plan, node, work, edge_count)


@inlined
def _coded_slot(plan, cells, key, work, node, slot, lo, edge_count):
    """Turn the visitors of a coded slot into codes, and choose their likelihoods."""
    column = plan.slot_column[slot]
    size = work.n_rows[node]
    visitors = work.rows[node, :size]
    code = cells.code[cells.code_row[column], lo:]
    if plan.kind[node] == LEAF_KIND:
        for j in range(size):
            visitors[j] = code[visitors[j]]
        return
    fill_uniform(key, lo, visitors, node, work.u)
    for j in range(size):
        visitors[j] = code[visitors[j]]
    k = plan.child_ptr[node + 1] - plan.child_ptr[node]
    length = np.int64(cells.n_distinct[column]) + 1
    at = cells.term_at[slot]
    term = work.table_term[at : at + k * length].reshape(k, length)
    _choose(visitors, work.u, term, plan, node, work, edge_count)
