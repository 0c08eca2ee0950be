"""Messages and draws of hidden trees, at the cost of what is unusual in a row.

      z1 -- z2 -- z3        a row whose only unusual cell is of column 3: below z4 and z5 all is usual, and what goes up
             |     |        from there is the same for every such row: it is found once, not once a row
            z4    z5

A row computes messages, and draws states, of the variables that have an unusual cell at or below them: they are its
*active* variables. Of the others it is enough to know how many rows there are whose parent is in which state.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.jit import kernel
from bayesjpt.structure.distinct_rows import DistinctRows
from bayesjpt.structure.tree_messages import parents_first


class Tree(NamedTuple):
    """A hidden tree over bins.

    Attributes
    ----------
    parents, order, place : int64 (n_column,)
        -1 at roots; the variables, parents first; where each of them is in that order.
    transition : float64 (n_column, n_state, n_state)
        ``[i, k, q]``: state k of variable i where its parent is in state q (0 of roots).
    emission : float64 (sum n_bin, n_state)
        Of each bin of each column, one column after the other.
    bin_at : int64 (n_column + 1,)
    """

    parents: np.ndarray
    order: np.ndarray
    place: np.ndarray
    transition: np.ndarray
    emission: np.ndarray
    bin_at: np.ndarray


class Usual(NamedTuple):
    """What goes up the tree in a row that is usual everywhere.

    Attributes
    ----------
    below : float64 (n_column, n_state)
        Product of the messages of a variable's children, the largest 1.
    message : float64 (n_column, n_state of the parent)
        Of evidence at and below a variable that is scaled to add up to 1.
    log_norm : float64 (n_column,), nats
        Logarithm of that scale; of roots that of the message beside.
    log_value : float64 (1,), nats
        Log probability of the row.
    """

    below: np.ndarray
    message: np.ndarray
    log_norm: np.ndarray
    log_value: np.ndarray


class Counts(NamedTuple):
    """Rows that drew each state.

    Attributes
    ----------
    pairs : float64 (n_column, n_state of the parent, n_state)
    cells : float64 (sum n_bin, n_state)
        By the column's bin.
    missing : float64 (n_column, n_state)
        Of rows without the column's cell.
    """

    pairs: np.ndarray
    cells: np.ndarray
    missing: np.ndarray


def tree_of(parents: np.ndarray, n_bin: np.ndarray, transition: np.ndarray, emission: np.ndarray) -> Tree:
    """Return a Tree; transition and emission as `Tree` has them."""
    order = np.array(parents_first(parents.tolist()), np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    bin_at = np.concatenate([[0], np.cumsum(n_bin)]).astype(np.int64)
    return Tree(np.ascontiguousarray(parents, np.int64), order, place, transition, emission, bin_at)


def usual_messages(tree: Tree, usual: np.ndarray) -> Usual:
    """Return what goes up the tree in a row that is usual everywhere."""
    n, n_state = tree.transition.shape[:2]
    found = Usual(np.ones((n, n_state)), np.zeros((n, n_state)), np.empty(n), np.zeros(1))
    _fill_usual(tree, usual, found)
    return found


def log_density(rows: DistinctRows, tree: Tree) -> np.ndarray:
    """Return the log density of each row, hidden states and missing cells summed out, float64 (n_row,), nats."""
    usual = usual_messages(tree, rows.usual)
    of_distinct = np.empty(rows.n_distinct)
    _log_densities(rows, tree, usual, of_distinct)
    return rows.in_order(of_distinct)


def draw_counts(rows: DistinctRows, tree: Tree, rng: np.random.Generator) -> tuple[Counts, float]:
    """Return how many rows drew each state, and the log density of all rows together.

    Rows of which nothing is unusual at and below a variable are divided over its states at once: how many take each is
    multinomial given how many come from each state of the parent.
    """
    usual = usual_messages(tree, rows.usual)
    n, n_state = tree.transition.shape[:2]
    counts = Counts(np.zeros((n, n_state, n_state)), np.zeros((int(tree.bin_at[-1]), n_state)), np.zeros((n, n_state)))
    value = _draw_active(rows, tree, usual, rng, counts)
    total = np.zeros((n, n_state))
    for i in tree.order.tolist():
        parent = int(tree.parents[i])
        come = total[parent].copy() if parent >= 0 else np.eye(1, n_state)[0] * rows.order.size
        come = np.rint(come - counts.pairs[i].sum(axis=1)).astype(np.int64)
        from_states = np.flatnonzero(come)
        if from_states.size:
            u = tree.bin_at[i] + rows.usual[i]
            share = tree.transition[i, :, from_states] * (usual.below[i] * tree.emission[u])
            share /= share.sum(axis=1, keepdims=True)
            # exact counts: rows that are usual here differ in nothing but the state of the parent
            counts.pairs[i, from_states] += rng.multinomial(come[from_states], share)
        total[i] = counts.pairs[i].sum(axis=0)
        column_cells = counts.cells[tree.bin_at[i] : tree.bin_at[i + 1]]
        column_cells[rows.usual[i]] = 0.0
        column_cells[rows.usual[i]] = total[i] - column_cells.sum(axis=0) - counts.missing[i]
    return counts, float(value)


@kernel
def _fill_usual(tree, usual_bin, usual):
    n, n_state, _ = tree.transition.shape
    for j in range(n - 1, -1, -1):
        i = tree.order[j]
        emission, p = tree.emission[tree.bin_at[i] + usual_bin[i]], tree.parents[i]
        total = 0.0
        for k in range(n_state):
            total += usual.below[i, k] * emission[k]
        usual.log_norm[i] = math.log(total)
        for k in range(n_state):
            share = usual.below[i, k] * emission[k] / total
            for q in range(n_state):
                usual.message[i, q] += tree.transition[i, k, q] * share
        if p < 0:
            usual.log_norm[i] += math.log(usual.message[i, 0])
        else:
            top = 0.0
            for q in range(n_state):
                usual.below[p, q] *= usual.message[i, q]
                top = max(top, usual.below[p, q])
            for q in range(n_state):
                # a state that hundreds of usual cells speak against may be that of a row with many unusual ones
                usual.below[p, q] = max(usual.below[p, q] / top, 1e-290)
            usual.log_value[0] += math.log(top)
        usual.log_value[0] += usual.log_norm[i]


@kernel
def _go_up(rows, row, tree, usual, x, stamp, active, share, value):
    """Return (log density of a row, how many variables are active), these in `active` as places, parents first.

    share, float64 (n_column, n_state), becomes what lies at and below each of them, adding up to 1. x is usual before,
    and holds the row's cells behind; stamp holds numbers of rows.
    """
    n_state = value.size
    n_active = 0
    for e in range(rows.ptr[row], rows.ptr[row + 1]):
        i = rows.column[e]
        x[i] = rows.code[e]
        # up to an ancestor that is marked: it and all above it are in the list
        while i >= 0 and stamp[i] != row:
            stamp[i] = row
            active[n_active] = tree.place[i]
            n_active += 1
            i = tree.parents[i]
    # places are numbered parents first: sorted, each parent stands before its children
    active[:n_active].sort()
    for j in range(n_active):
        i = tree.order[active[j]]
        for k in range(n_state):
            share[i, k] = usual.below[i, k]
    log_value = usual.log_value[0]
    for j in range(n_active - 1, -1, -1):
        i = tree.order[active[j]]
        mine, p = share[i], tree.parents[i]
        total = 0.0
        if x[i] >= 0:
            emission = tree.emission[tree.bin_at[i] + x[i]]
            for k in range(n_state):
                mine[k] *= emission[k]
        for k in range(n_state):
            total += mine[k]
        # in place of what the usual row has there
        log_value += math.log(total) - usual.log_norm[i]
        for k in range(n_state):
            mine[k] /= total
        value[:] = 0.0
        for k in range(n_state):
            weight, ways = mine[k], tree.transition[i, k]
            for q in range(n_state):
                value[q] += ways[q] * weight
        if p < 0:
            log_value += math.log(value[0])
            continue
        above, message, top = share[p], usual.message[i], 0.0
        for q in range(n_state):
            # the usual message of this child is taken out of the product, and its own put in
            above[q] *= value[q] / message[q]
            top = max(top, above[q])
        for q in range(n_state):
            above[q] /= top
        log_value += math.log(top)
    return log_value, n_active


@kernel
def _log_densities(rows, tree, usual, out):
    n, n_state, _ = tree.transition.shape
    x, stamp, active = rows.usual.copy(), np.full(n, -1, np.int64), np.empty(n, np.int64)
    share, value = np.empty((n, n_state)), np.empty(n_state)
    for row in range(out.size):
        out[row], _ = _go_up(rows, row, tree, usual, x, stamp, active, share, value)
        # only the row's unusual cells are set back
        for e in range(rows.ptr[row], rows.ptr[row + 1]):
            x[rows.column[e]] = rows.usual[rows.column[e]]


@kernel
def _draw_active(rows, tree, usual, rng, counts):
    """Add to counts what rows draw for their active variables; return the log density of all rows together."""
    n, n_state, _ = tree.transition.shape
    x, stamp, active = rows.usual.copy(), np.full(n, -1, np.int64), np.empty(n, np.int64)
    share, value = np.empty((n, n_state)), np.empty(n_state)
    state = np.empty(n, np.int64)
    whole = 0.0
    for row in range(rows.first.size - 1):
        log_value, n_active = _go_up(rows, row, tree, usual, x, stamp, active, share, value)
        whole += (rows.first[row + 1] - rows.first[row]) * log_value
        for _ in range(rows.first[row], rows.first[row + 1]):
            for j in range(n_active):
                i = tree.order[active[j]]
                p = tree.parents[i]
                q = state[p] if p >= 0 else 0
                reached = 0.0
                for k in range(n_state):
                    reached += tree.transition[i, k, q] * share[i, k]
                    # sums up to each state: the draw falls on the first above its target
                    value[k] = reached
                target, z = rng.random() * reached, 0
                while z < n_state - 1 and value[z] <= target:
                    z += 1
                state[i] = z
                counts.pairs[i, q, z] += 1.0
                if x[i] >= 0:
                    counts.cells[tree.bin_at[i] + x[i], z] += 1.0
                else:
                    counts.missing[i, z] += 1.0
        for e in range(rows.ptr[row], rows.ptr[row + 1]):
            x[rows.column[e]] = rows.usual[rows.column[e]]
    return whole
