"""The path of every row of a table, kept: drawn, counted, and what a scan over rows needs beside it.

Allocations are functions of a key and are not kept from sweep to sweep. Only the collapsed sampler keeps them, for the
length of one sweep:

    row            x1  x2  x3            the sums that a row visits are few: at most `longest_path` of them
    taken           e   e   e  -1        edges of these sums, in the order of the walk from the root
    leaf            l   l  -1            leaf of each cell; -1 where it is missing
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import AS_WHOLE, CONJUGATE, Plan
from bayesjpt.families import dispatch, registry
from bayesjpt.kernels import rows
from bayesjpt.kernels.cells import Cells
from bayesjpt.kernels.gibbs import CHUNK
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.statistics import accumulate_block, forget_values
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND, fill_tables, prepare_coefficients, upward_by
from bayesjpt.kernels.work import lay_out
from bayesjpt.numerics.borrowed import borrowed, by_address
from bayesjpt.numerics.counter_rng import uniform
from bayesjpt.numerics.jit import inlined, kernel

HELD, BY_MEAN, BY_PREDICTIVE = range(3)
"""What the density of a leaf is taken at: its parameters, their posterior mean, or none, they being integrated out."""

BLOCK = 32
"""Rows whose densities are filled together: those under leaves that change before a row's turn are filled anew."""


@by_address
class Paths(NamedTuple):
    """The path of every row, and what the paths of a scan make of sums and leaves.

    Attributes
    ----------
    mode : int32 (n_leaf,)
        `HELD`, `BY_MEAN` or `BY_PREDICTIVE`.
    node_of_leaf : int32 (n_leaf,), sum_of_edge : int32 (n_edge,)
    taken : int32 (n_row, n_taken)
        Edges of sums that the row at each place takes; -1 behind the last.
    leaf : int32 (n_row, n_column)
        Leaf that each of its cells reaches; -1 where it is missing.
    count : int64 (n_edge,), n_visit : int64 (n_node,), leaf_count : int64 (n_leaf,)
        Rows that take an edge, visit a sum, reach a leaf.
    log_share : float64 (n_edge,), log_total : float64 (n_node,)
        Logarithm of concentration and count of an edge, and of their sum at a sum.
    total : float64 (n_node,)
        Sum of the concentrations at a sum.
    stats, rest : float64 (n_stats,)
        Statistics of leaves that are not held, in two parts.
    coefficient : float64 (n_coefficient,), log_cell : float64 (n_leaf,)
        Of every leaf's density, and the log mass of its cell.
    kept_stats, kept_rest, kept_coefficient, kept_log_cell
        The same of leaves that a row was taken out of, as they were with it.
    value : float64 (n_node,), term : float64 (n_edge,), seen : bool (n_node,)
        Of one row: log value of each node, log terms of sums, whether a cell in the node's scope is observed.
    before : int32 (n_column,), changed_before : bool (n_column,)
        Its leaves before it was taken out, and whether they had changed.
    block : float64 (n_feature, BLOCK), at_atom : bool (n_column, BLOCK)
        Features of the rows at hand, and whether they are at an atom of the column.
    cached : float64 (n_leaf, BLOCK), changed : bool (n_leaf,)
        Log densities of these rows under each leaf, and whether it has changed since they were filled.
    table : float64 (n_table,), table_at : int64 (n_leaf,)
        Log densities of a coded column's distinct values under held leaves, and where each leaf's lie; -1 for others.
    row_stats : float64 (n_longest,), mean : float64 (n_longest,), only : int32 (1,), density : float64 (1,)
    stack : int32 (n_node,)
    """

    mode: np.ndarray
    node_of_leaf: np.ndarray
    sum_of_edge: np.ndarray
    taken: np.ndarray
    leaf: np.ndarray
    count: np.ndarray
    n_visit: np.ndarray
    leaf_count: np.ndarray
    log_share: np.ndarray
    log_total: np.ndarray
    total: np.ndarray
    stats: np.ndarray
    rest: np.ndarray
    coefficient: np.ndarray
    log_cell: np.ndarray
    kept_stats: np.ndarray
    kept_rest: np.ndarray
    kept_coefficient: np.ndarray
    kept_log_cell: np.ndarray
    value: np.ndarray
    term: np.ndarray
    seen: np.ndarray
    before: np.ndarray
    changed_before: np.ndarray
    block: np.ndarray
    at_atom: np.ndarray
    cached: np.ndarray
    changed: np.ndarray
    table: np.ndarray
    table_at: np.ndarray
    row_stats: np.ndarray
    mean: np.ndarray
    only: np.ndarray
    density: np.ndarray
    stack: np.ndarray


def make_paths(plan: Plan, cells: Cells, hyper: np.ndarray, hyper_at: np.ndarray, theta: np.ndarray) -> Paths:
    """Return Paths for the rows of a table, not filled.

    Parameters
    ----------
    plan : Plan
    cells : Cells
    hyper : float64 (n_hyper,), hyper_at : int32 (n_leaf + 1,), theta : float64 (n_theta,)
        Any that are valid: with them it is found out whether the predictive density of a column's values is known.
    """
    n_row, n_column = int(cells.n_row[0]), plan.column_resolution.size
    n_node, n_edge, n_leaf = plan.kind.size, plan.child.size, plan.leaf_family.size
    n_stats, n_coefficient = int(plan.stat_at[-1]), int(plan.coef_at[-1])
    node_of_leaf = np.zeros(n_leaf, np.int32)
    node_of_leaf[plan.leaf_of[plan.leaf_of >= 0]] = np.flatnonzero(plan.leaf_of >= 0)
    mode = _modes(plan, cells, hyper, hyper_at, theta)
    column = plan.feature_column[plan.leaf_value]
    # parameters that stand for the whole scan: one density for each distinct value serves all rows
    tabulated = (mode == HELD) & (cells.code_row[column] >= 0)
    length = np.where(tabulated, cells.n_distinct[column].astype(np.int64), 0)
    return Paths(
        mode=mode,
        node_of_leaf=node_of_leaf,
        sum_of_edge=np.repeat(np.arange(n_node, dtype=np.int32), np.diff(plan.child_ptr)),
        taken=np.full((n_row, longest_path(plan)), -1, np.int32),
        leaf=np.full((n_row, n_column), -1, np.int32),
        count=np.zeros(n_edge, np.int64),
        n_visit=np.zeros(n_node, np.int64),
        leaf_count=np.zeros(n_leaf, np.int64),
        log_share=np.zeros(n_edge),
        log_total=np.zeros(n_node),
        total=np.zeros(n_node),
        stats=np.zeros(n_stats),
        rest=np.zeros(n_stats),
        coefficient=np.zeros(n_coefficient),
        log_cell=np.zeros(n_leaf),
        kept_stats=np.zeros(n_stats),
        kept_rest=np.zeros(n_stats),
        kept_coefficient=np.zeros(n_coefficient),
        kept_log_cell=np.zeros(n_leaf),
        value=np.zeros(n_node),
        term=np.zeros(n_edge),
        seen=np.zeros(n_node, np.bool_),
        before=np.full(n_column, -1, np.int32),
        changed_before=np.zeros(n_column, np.bool_),
        block=np.zeros((plan.feature_column.size, BLOCK)),
        at_atom=np.zeros((n_column, BLOCK), np.bool_),
        cached=np.zeros((n_leaf, BLOCK)),
        changed=np.zeros(n_leaf, np.bool_),
        table=np.zeros(int(length.sum())),
        table_at=np.where(tabulated, np.cumsum(length) - length, -1),
        row_stats=np.zeros(int(np.diff(plan.stat_at).max(initial=1))),
        mean=np.zeros(int(plan.theta_len.max(initial=1))),
        only=np.zeros(1, np.int32),
        density=np.zeros(1),
        stack=np.zeros(n_node, np.int32),
    )


def longest_path(plan: Plan) -> int:
    """Return the most sums that one row can visit, at least 1."""
    most = np.zeros(plan.kind.size, np.int64)
    for node in range(plan.kind.size):
        below = most[plan.child[plan.child_ptr[node] : plan.child_ptr[node + 1]]]
        # a row takes all children of a product, and one of a sum
        if plan.kind[node] == arrays.PRODUCT:
            most[node] = below.sum()
        elif below.size:
            most[node] = 1 + below.max()
    return max(int(most[-1]), 1)


def _modes(plan: Plan, cells: Cells, hyper: np.ndarray, hyper_at: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return int32 (n_leaf,): how each leaf's density is taken; recorded zeros may decide for all of a column."""
    mode = np.full(plan.leaf_family.size, HELD, np.int32)
    for leaf, number in enumerate(plan.leaf_family):
        family, update = registry.FAMILIES[number], plan.leaf_update[leaf]
        if family.predicts_by_mean and update in (CONJUGATE, AS_WHOLE):
            mode[leaf] = BY_MEAN
        elif family.predictive is not None and update == AS_WHOLE:
            mode[leaf] = BY_PREDICTIVE if _is_known(plan, cells, leaf, hyper, hyper_at, theta) else HELD
    return mode


@kernel
def _is_known(plan, cells, leaf, hyper, hyper_at, theta):
    """Return whether the predictive density of a leaf without rows is a number at all its column's values."""
    column = plan.feature_column[plan.leaf_value[leaf]]
    at, aux_at = cells.feature_at[plan.leaf_value[leaf]], cells.feature_at[plan.leaf_aux[leaf]]
    n = cells.feature_len[plan.leaf_value[leaf]]
    if cells.code_row[column] >= 0:
        n = np.int64(cells.n_distinct[column])
    const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
    parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
    coefficient, density = np.zeros(plan.coef_at[leaf + 1] - plan.coef_at[leaf]), np.zeros(n)
    nothing = np.zeros(plan.stat_at[leaf + 1] - plan.stat_at[leaf])
    family = plan.leaf_family[leaf]
    dispatch.predictive(family, nothing, hyper[hyper_at[leaf] : hyper_at[leaf + 1]], const, parameters, coefficient)
    z, aux = cells.feature[at : at + n], cells.feature[aux_at : aux_at + n]
    dispatch.fill_log_predictive(family, z, aux, coefficient, density)
    for i in range(n):
        missing = cells.missing.shape[1] > 0 and cells.code_row[column] < 0 and cells.missing[column, i]
        at_atom = cells.atom_at[column] >= 0 and cells.at_atom[cells.atom_at[column] + i]
        if not missing and not at_atom and math.isnan(density[i]):
            return False
    return True


@kernel
def record(plan, cells, log_weight, theta, work, paths, key):
    """Draw every row's path given weights and parameters, and keep it.

    Parameters
    ----------
    plan, cells, log_weight, theta, work, key : as in `bayesjpt.kernels.gibbs.allocate`, whose paths these are
    paths : Paths
        Paths are written, nothing else.

    Returns
    -------
    log_likelihood, impossible : as `allocate` returns them
    """
    plan, cells, work, paths = borrowed(plan), borrowed(cells), borrowed(work), borrowed(paths)
    n_row, n_block, root = cells.n_row[0], work.u.size, plan.kind.size - 1
    prepare_coefficients(plan, cells, theta, work)
    fill_tables(plan, cells, log_weight, work)
    log_likelihood = 0.0
    impossible = np.int64(-1)
    for chunk in range(0, n_row, CHUNK):
        chunk_end = min(chunk + CHUNK, n_row)
        chunk_total = 0.0
        lo = chunk
        while lo < chunk_end:
            n = block_size(cells.segment_ptr, lo, n_block, chunk_end)
            upward_by(plan, cells, log_weight, log_weight[:0], work, lo, n, True)
            at = work.node_at[root]
            for i in range(n):
                s = work.s[at, i]
                value = work.m[at, i] + math.log(s) if s > 0.0 else -np.inf
                row = cells.row[lo + i] if cells.row.size > 0 else np.int64(lo + i)
                if value > -np.inf:
                    chunk_total += value
                    _descend(plan, cells, work, paths, key, row, lo, i)
                else:
                    impossible = row if impossible < 0 else min(row, impossible)
            lo += n
        log_likelihood += chunk_total
    return log_likelihood, impossible


@inlined
def _descend(plan, cells, work, paths, key, row, lo, i):
    """Draw the path of row `lo + i`, of number `row` in the table, by the terms of the block just evaluated."""
    any_missing = cells.missing.shape[1] > 0
    root = plan.kind.size - 1
    n_taken, depth = 0, 0
    paths.taken[lo + i, :] = -1
    paths.leaf[lo + i, :] = -1
    # a row without any cell visits no sum: it would say nothing of the weights
    if not any_missing or work.seen[work.node_at[root], i]:
        paths.stack[0] = root
        depth = 1
    while depth > 0:
        depth -= 1
        node = paths.stack[depth]
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        if plan.kind[node] == LEAF_KIND:
            leaf = plan.leaf_of[node]
            paths.leaf[lo + i, plan.feature_column[plan.leaf_value[leaf]]] = leaf
        elif plan.kind[node] == PRODUCT_KIND:
            for e in range(first, last):
                if not any_missing or work.seen[work.node_at[plan.child[e]], i]:
                    paths.stack[depth] = plan.child[e]
                    depth += 1
        else:
            # terms of a coded slot are stored for each value, those of others for each row of the block
            slot = plan.slot_of_node[node]
            for e in range(first, last):
                if slot >= 0 and cells.table_at[slot] >= 0:
                    column = plan.slot_column[slot]
                    length = np.int64(cells.n_distinct[column]) + 1
                    code = cells.code[cells.code_row[column], lo + i]
                    paths.term[e] = work.table_term[cells.term_at[slot] + (e - first) * length + code]
                else:
                    paths.term[e] = work.term[work.edge_at[e], i]
            # by the keyed number that `downward` takes: the path is that of `allocate`
            e = choose(paths.term, first, last, uniform(key, row, node))
            paths.taken[lo + i, n_taken] = e
            n_taken += 1
            paths.stack[depth] = plan.child[e]
            depth += 1


@kernel
def choose(term, first, last, u):
    """Return the edge on which a uniform number falls; terms are proportional to the probabilities."""
    target = 0.0
    for e in range(first, last):
        target += term[e]
    # first the total, by the same additions in the same order: the last edge is taken only beyond all others
    target *= u
    reached = 0.0
    for e in range(first, last - 1):
        reached += term[e]
        if target < reached:
            return e
    return last - 1


@inlined
def entry_of(cells, column, place):
    """Return where the cell of a row lies in the features of its column."""
    return cells.code[cells.code_row[column], place] if cells.code_row[column] >= 0 else place


@kernel
def replay(plan, cells, work, swaps, paths, stats, edge_count):
    """Add up counts and statistics of the paths, as `bayesjpt.kernels.gibbs.allocate` leaves them.

    Parameters
    ----------
    plan, cells, work, swaps, stats, edge_count : as there
    paths : Paths
        Paths are read, nothing else.
    """
    plan, cells, work, swaps, paths = borrowed(plan), borrowed(cells), borrowed(work), borrowed(swaps), borrowed(paths)
    n_row, n_block = cells.n_row[0], work.u.size
    stats[:] = 0.0
    swaps.stats[:] = 0.0
    edge_count[:] = 0
    forget_values(work)
    for chunk in range(0, n_row, CHUNK):
        chunk_end = min(chunk + CHUNK, n_row)
        work.chunk_stats[:] = 0.0
        swaps.chunk_stats[:] = 0.0
        lo = chunk
        while lo < chunk_end:
            n = block_size(cells.segment_ptr, lo, n_block, chunk_end)
            nodes = lay_out(plan, cells, work, lo)
            work.n_rows[:] = 0
            for place in range(lo, lo + n):
                for j in range(paths.taken.shape[1]):
                    if paths.taken[place, j] < 0:
                        break
                    edge_count[paths.taken[place, j]] += 1
                for column in range(paths.leaf.shape[1]):
                    leaf = paths.leaf[place, column]
                    if leaf >= 0:
                        at = work.list_at[paths.node_of_leaf[leaf]]
                        # values of a coded column are numbered over the table, others within the block
                        in_block = cells.code_row[column] < 0
                        work.rows[at, work.n_rows[at]] = place - lo if in_block else entry_of(cells, column, place)
                        work.n_rows[at] += 1
            accumulate_block(plan, cells, work, swaps, nodes, lo)
            lo += n
        rows.add(work.chunk_stats, stats)
        rows.add(swaps.chunk_stats, swaps.stats)
