"""Allocations one row at a time, given those of all other rows, with weights and parameters integrated out.

    record    every row's path given weights and parameters, as `gibbs.allocate` draws it, and kept    `paths.record`
    begin     how many rows took each edge, and the statistics of each leaf
    scan      row by row: taken out, its path drawn by what all others predict, put back
    replay    counts and statistics of the new paths, as `gibbs.allocate` leaves them                `paths.replay`

Given the allocations of the others, weights of different sums and parameters of different leaves are independent, and
a row meets each at most once (products are decomposable). So what the others predict of it is the value of the circuit
with each edge's weight and each leaf's density replaced by its posterior expectation,

    (a_e + n_e) / sum over siblings of (a + n)        and        p(x | rows of the leaf) = e(rows, x) / e(rows),

both without the row; one pass upward and one downward draw its path. Factors that leaves share are held. So are the
parameters of leaves without such a density (`Family.predictive`): their density is that at the parameters.

Statistics change by one row at a time, and back: they are kept in two parts, whose sum is exact to 32 digits, so that a
leaf forgets a distant value that has left it.

References: Vergari et al. (2019), appendix A, equation 4; Liu (1994), The collapsed Gibbs sampler in Bayesian
computations, Journal of the American Statistical Association 89.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import dispatch
from bayesjpt.kernels import rows
from bayesjpt.kernels.leaf import INTERVAL_CUT
from bayesjpt.kernels.paths import BLOCK, BY_PREDICTIVE, HELD, choose, entry_of
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.counter_rng import uniform
from bayesjpt.numerics.jit import inlined, kernel
from bayesjpt.numerics.logspace import fast_exp, fast_log

_NEGLIGIBLE = -45.0
"""Logarithm of a term beside the largest that changes no sum in double precision."""


@kernel
def _add_exactly(x, sign, stats, rest):
    """Add x to a sum in two parts, of which the first is the nearest float (Knuth's sum of two floats)."""
    for k in range(x.size):
        step = sign * x[k]
        total = stats[k] + step
        # sign is 1 or -1: a fused multiply-add rounds as the addition alone does, and the error of the sum is exact
        part = total - stats[k]
        rest[k] += (stats[k] - (total - part)) + (step - part)
        # the first part is the nearest float again, the second what it lacks
        stats[k] = total + rest[k]
        rest[k] -= stats[k] - total


@inlined
def _shift(plan, cells, paths, leaf, entry, sign):
    """Add a row, or take it out, from the statistics of a leaf."""
    first, last = plan.stat_at[leaf], plan.stat_at[leaf + 1]
    # an empty leaf holds exact zeros: rounding errors of rows that have left cannot build up
    if paths.leaf_count[leaf] == 0:
        paths.stats[first:last] = 0.0
        paths.rest[first:last] = 0.0
    else:
        z_at, aux_at = cells.feature_at[plan.leaf_value[leaf]], cells.feature_at[plan.leaf_aux[leaf]]
        paths.row_stats[: last - first] = 0.0
        dispatch.accumulate(
            plan.leaf_family[leaf],
            cells.feature[z_at + entry : z_at + entry + 1],
            cells.feature[aux_at + entry : aux_at + entry + 1],
            paths.only,
            plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]],
            paths.row_stats[: last - first],
        )
        _add_exactly(paths.row_stats[: last - first], sign, paths.stats[first:last], paths.rest[first:last])


@inlined
def _predict(plan, paths, hyper, hyper_at, theta, leaf):
    """Prepare the density of a leaf's next value from its statistics."""
    family = plan.leaf_family[leaf]
    stats, prior = paths.stats[plan.stat_at[leaf] : plan.stat_at[leaf + 1]], hyper[hyper_at[leaf] : hyper_at[leaf + 1]]
    const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
    out = paths.coefficient[plan.coef_at[leaf] : plan.coef_at[leaf + 1]]
    if paths.mode[leaf] == BY_PREDICTIVE:
        parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
        dispatch.predictive(family, stats, prior, const, parameters, out)
    else:
        mean = paths.mean[: plan.theta_len[leaf]]
        dispatch.initial(family, stats, prior, const, mean)
        dispatch.coefficients(family, mean, const, out)
        if plan.leaf_cut[leaf] == INTERVAL_CUT:
            paths.log_cell[leaf] = dispatch.log_mass(family, plan.leaf_lo[leaf], plan.leaf_hi[leaf], mean, const)


@kernel
def _fill(mode, family, z, aux, x, coefficient, at_atom, cut, out):
    """Fill the log densities of ``out.size`` values under one leaf.

    `x` are the values in the units of the leaf's cell; `at_atom` marks those where the column's atoms have the say;
    `cut` is the kind of the cell, its ends and its log mass.
    """
    if mode == BY_PREDICTIVE:
        dispatch.fill_log_predictive(family, z, aux, coefficient, out)
    else:
        dispatch.fill_log_density(family, z, aux, coefficient, out)
    if at_atom.size > 0:
        rows.mask_atoms(at_atom, out)
    kind, lo, hi, log_cell = cut
    if kind == INTERVAL_CUT:
        if log_cell > -np.inf:
            rows.truncate(x, lo, hi, log_cell, out)
        else:
            out[:] = -np.inf


@inlined
def _fill_leaf(plan, paths, leaf, column, first, out):
    """Fill the log densities of ``out.size`` rows of the block, from `first` on, under a leaf."""
    last = first + out.size
    cut = plan.leaf_cut[leaf], plan.leaf_lower[leaf], plan.leaf_upper[leaf], paths.log_cell[leaf]
    _fill(
        paths.mode[leaf],
        plan.leaf_family[leaf],
        paths.block[plan.leaf_value[leaf], first:last],
        paths.block[plan.leaf_aux[leaf], first:last],
        paths.block[plan.leaf_raw[leaf], first:last],
        paths.coefficient[plan.coef_at[leaf] : plan.coef_at[leaf + 1]],
        # the leaf of an atom is never masked: an empty slice of marks
        paths.at_atom[column, first : last if not plan.leaf_is_atom[leaf] else first],
        cut,
        out,
    )


@inlined
def _fill_tables(plan, cells, paths):
    """Fill the log densities of the distinct values of coded columns under leaves that are held."""
    for leaf in range(plan.leaf_family.size):
        if paths.table_at[leaf] < 0:
            continue
        column = plan.feature_column[plan.leaf_value[leaf]]
        n = np.int64(cells.n_distinct[column])
        z, aux = cells.feature_at[plan.leaf_value[leaf]], cells.feature_at[plan.leaf_aux[leaf]]
        raw, marks = cells.feature_at[plan.leaf_raw[leaf]], max(cells.atom_at[column], 0)
        n_mark = n if cells.atom_at[column] >= 0 and not plan.leaf_is_atom[leaf] else 0
        cut = plan.leaf_cut[leaf], plan.leaf_lower[leaf], plan.leaf_upper[leaf], paths.log_cell[leaf]
        _fill(
            paths.mode[leaf],
            plan.leaf_family[leaf],
            cells.feature[z : z + n],
            cells.feature[aux : aux + n],
            cells.feature[raw : raw + n],
            paths.coefficient[plan.coef_at[leaf] : plan.coef_at[leaf + 1]],
            cells.at_atom[marks : marks + n_mark],
            cut,
            paths.table[paths.table_at[leaf] : paths.table_at[leaf] + n],
        )


@inlined
def _begin_block(plan, cells, paths, nodes, lo, n):
    """Fill the features of n rows, and their log densities under the leaves among `nodes`; of all where it is empty."""
    for feature in range(plan.feature_column.size):
        column = plan.feature_column[feature]
        at, length = cells.feature_at[feature], cells.feature_len[feature]
        for i in range(n if length > 0 else 0):
            # a missing cell has the code behind the last, and no density is asked for
            paths.block[feature, i] = cells.feature[at + min(np.int64(entry_of(cells, column, lo + i)), length - 1)]
    for column in range(cells.atom_at.size):
        coded = cells.code_row[column] >= 0
        length = np.int64(cells.n_distinct[column]) if coded else np.int64(cells.n_row[0])
        for i in range(n if cells.atom_at[column] >= 0 and length > 0 else 0):
            entry = min(np.int64(entry_of(cells, column, lo + i)), length - 1)
            paths.at_atom[column, i] = cells.at_atom[cells.atom_at[column] + entry]
    for position in range(nodes.size):
        leaf = plan.leaf_of[nodes[position]]
        if leaf < 0:
            continue
        column = plan.feature_column[plan.leaf_value[leaf]]
        if paths.table_at[leaf] < 0:
            _fill_leaf(plan, paths, leaf, column, 0, paths.cached[leaf, :n])
            continue
        for i in range(n):
            code = cells.code[cells.code_row[column], lo + i]
            if code < cells.n_distinct[column]:
                paths.cached[leaf, i] = paths.table[paths.table_at[leaf] + code]
    paths.changed[:] = False


@inlined
def _log_density(plan, paths, leaf, column, i):
    """Return the log density of a row's cell under a leaf, the row being the i-th of the block."""
    value = paths.cached[leaf, i]
    if paths.changed[leaf]:
        _fill_leaf(plan, paths, leaf, column, i, paths.density)
        value = paths.density[0]
    return value


@kernel
def _log_sum(term, first, last):
    """Return the logarithm of the sum of exponentials of terms."""
    top = -np.inf
    for e in range(first, last):
        top = max(top, term[e])
    # all are impossible: -inf - -inf below would be NaN
    if not top > -np.inf:
        return top
    total = 0.0
    for e in range(first, last):
        if term[e] - top > _NEGLIGIBLE:
            total += fast_exp(term[e] - top)
    return top + fast_log(total)


@inlined
def _evaluate(plan, cells, paths, nodes, place, i):
    """Fill log values of nodes, ascending, and terms of sums for the i-th row of a block."""
    any_missing = cells.missing.shape[1] > 0
    for position in range(nodes.size):
        node = nodes[position]
        if plan.node_row[node] < 0:  # a member of a dictionary, which evaluates it
            continue
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        slot = plan.slot_of_node[node]
        paths.value[node] = 0.0
        paths.seen[node] = False
        if slot >= 0:
            column = plan.slot_column[slot]
            if any_missing and cells.missing[column, place]:
                continue
            paths.seen[node] = True
            if plan.kind[node] == LEAF_KIND:
                paths.value[node] = _log_density(plan, paths, plan.leaf_of[node], column, i)
                continue
            for e in range(first, last):
                leaf = plan.leaf_of[plan.child[e]]
                paths.term[e] = paths.log_share[e] + _log_density(plan, paths, leaf, column, i)
        elif plan.kind[node] == PRODUCT_KIND:
            for e in range(first, last):
                paths.value[node] += paths.value[plan.child[e]]
                paths.seen[node] |= paths.seen[plan.child[e]]
            continue
        else:
            for e in range(first, last):
                paths.term[e] = paths.log_share[e] + paths.value[plan.child[e]]
                paths.seen[node] |= paths.seen[plan.child[e]]
            if not paths.seen[node]:
                continue
        # shares stand without their denominator: one for all children of the sum
        paths.value[node] = _log_sum(paths.term, first, last) - paths.log_total[node]


@inlined
def _draw_path(plan, paths, key, row, place):
    """Replace the path of one row, by the terms that `_evaluate` left."""
    n_taken, depth = 0, 0
    paths.taken[place, :] = -1
    paths.leaf[place, :] = -1
    if paths.seen[plan.kind.size - 1]:
        paths.stack[0] = plan.kind.size - 1
        depth = 1
    while depth > 0:
        depth -= 1
        node = paths.stack[depth]
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        if plan.kind[node] == LEAF_KIND:
            leaf = plan.leaf_of[node]
            paths.leaf[place, plan.feature_column[plan.leaf_value[leaf]]] = leaf
        elif plan.kind[node] == PRODUCT_KIND:
            for e in range(first, last):
                if paths.seen[plan.child[e]]:
                    paths.stack[depth] = plan.child[e]
                    depth += 1
        else:
            # terms add up to one then, and none of them overflows
            top = paths.value[node] + paths.log_total[node]
            for e in range(first, last):
                paths.term[e] = fast_exp(paths.term[e] - top)
            e = choose(paths.term, first, last, uniform(key, row, node))
            paths.taken[place, n_taken] = e
            n_taken += 1
            paths.stack[depth] = plan.child[e]
            depth += 1


@inlined
def _count(paths, concentration, place, step):
    """Add the row at a place to the counts of sums, or take it out."""
    for j in range(paths.taken.shape[1]):
        e = paths.taken[place, j]
        # edges fill the row from the left, -1 behind the last
        if e < 0:
            break
        node = paths.sum_of_edge[e]
        paths.count[e] += step
        paths.n_visit[node] += step
        # a row changes the counts of its own path only, so few logarithms are taken anew
        paths.log_share[e] = math.log(concentration[e] + paths.count[e])
        paths.log_total[node] = math.log(paths.total[node] + paths.n_visit[node])


@kernel
def begin(plan, cells, work, paths, concentration, hyper, hyper_at, theta):
    """Fill counts, statistics and densities from the paths of all rows; arguments as in `scan`."""
    plan, cells, work, paths = borrowed(plan), borrowed(cells), borrowed(work), borrowed(paths)
    paths.count[:] = 0
    paths.n_visit[:] = 0
    paths.leaf_count[:] = 0
    paths.stats[:] = 0.0
    paths.rest[:] = 0.0
    paths.total[:] = 0.0
    # copies: coefficients of leaves that are not held change from row to row
    copy_into(work.coefficient, paths.coefficient)
    copy_into(work.log_cell, paths.log_cell)
    for place in range(cells.n_row[0]):
        for j in range(paths.taken.shape[1]):
            e = paths.taken[place, j]
            if e < 0:
                break
            paths.count[e] += 1
            paths.n_visit[paths.sum_of_edge[e]] += 1
        for column in range(paths.leaf.shape[1]):
            leaf = paths.leaf[place, column]
            if leaf >= 0:
                paths.leaf_count[leaf] += 1
                if paths.mode[leaf] != HELD:
                    _shift(plan, cells, paths, leaf, entry_of(cells, column, place), 1.0)
    for e in range(plan.child.size):
        node = paths.sum_of_edge[e]
        if plan.kind[node] != PRODUCT_KIND:
            paths.total[node] += concentration[e]
            paths.log_share[e] = math.log(concentration[e] + paths.count[e])
    for node in range(plan.kind.size):
        # 0 at products and leaves, which have no shares
        if paths.total[node] > 0.0:
            paths.log_total[node] = math.log(paths.total[node] + paths.n_visit[node])
    for leaf in range(plan.leaf_family.size):
        if paths.mode[leaf] != HELD:
            _predict(plan, paths, hyper, hyper_at, theta, leaf)
    _fill_tables(plan, cells, paths)


@inlined
def _take_out(plan, cells, paths, hyper, hyper_at, theta, concentration, place):
    """Take the row at a place out of counts, statistics and densities; what they were is kept."""
    _count(paths, concentration, place, -1)
    for column in range(paths.leaf.shape[1]):
        leaf = paths.leaf[place, column]
        paths.before[column] = leaf
        paths.changed_before[column] = leaf >= 0 and paths.changed[leaf]
        if leaf < 0:
            continue
        paths.leaf_count[leaf] -= 1
        if paths.mode[leaf] != HELD:
            # kept bit by bit: to take a row out and add it again need not give the same floats
            for k in range(plan.stat_at[leaf], plan.stat_at[leaf + 1]):
                paths.kept_stats[k], paths.kept_rest[k] = paths.stats[k], paths.rest[k]
            for k in range(plan.coef_at[leaf], plan.coef_at[leaf + 1]):
                paths.kept_coefficient[k] = paths.coefficient[k]
            paths.kept_log_cell[leaf] = paths.log_cell[leaf]
            paths.changed[leaf] = True
            _shift(plan, cells, paths, leaf, entry_of(cells, column, place), -1.0)
            _predict(plan, paths, hyper, hyper_at, theta, leaf)


@inlined
def _put_back(plan, cells, paths, hyper, hyper_at, theta, concentration, place):
    """Add the row at a place to counts, statistics and densities; those of a leaf that it never left are as before."""
    _count(paths, concentration, place, 1)
    for column in range(paths.leaf.shape[1]):
        leaf = paths.leaf[place, column]
        if leaf < 0:
            continue
        paths.leaf_count[leaf] += 1
        if paths.mode[leaf] == HELD:
            continue
        if leaf == paths.before[column]:
            for k in range(plan.stat_at[leaf], plan.stat_at[leaf + 1]):
                paths.stats[k], paths.rest[k] = paths.kept_stats[k], paths.kept_rest[k]
            for k in range(plan.coef_at[leaf], plan.coef_at[leaf + 1]):
                paths.coefficient[k] = paths.kept_coefficient[k]
            paths.log_cell[leaf] = paths.kept_log_cell[leaf]
            # with the old coefficients back, densities cached for the block hold again
            paths.changed[leaf] = paths.changed_before[column]
        else:
            paths.changed[leaf] = True
            _shift(plan, cells, paths, leaf, entry_of(cells, column, place), 1.0)
            _predict(plan, paths, hyper, hyper_at, theta, leaf)


@kernel
def scan(plan, cells, paths, concentration, hyper, hyper_at, theta, key):
    """Draw every row's path anew, one after the other, given the paths of all others.

    Parameters
    ----------
    plan : Plan
    cells : Cells
    paths : Paths
        As `begin` left them.
    concentration : float64 (n_edge,)
    hyper : float64 (n_hyper,), hyper_at : int32 (n_leaf + 1,)
        With the factors that leaves share.
    theta : float64 (n_theta,)
        Parameters that are held, where a density keeps one; the densities of held leaves stand in `paths`.
    key : uint64
        Another one than that of `record`; draws are a function of it, of the row and the node.
    """
    plan, cells, paths = borrowed(plan), borrowed(cells), borrowed(paths)
    n_row, root, segment, nodes = cells.n_row[0], plan.kind.size - 1, -1, np.arange(plan.kind.size).astype(np.int32)
    lo = np.int64(0)
    while lo < n_row:
        if cells.live.size > 0 and (segment < 0 or lo >= cells.segment_ptr[segment + 1]):
            segment += 1
            nodes = cells.live[cells.live_ptr[segment] : cells.live_ptr[segment + 1]]
            paths.value[:] = -np.inf  # of nodes that the rows of this segment cannot reach
            paths.seen[:] = False
        n = block_size(cells.segment_ptr, lo, BLOCK, n_row)
        _begin_block(plan, cells, paths, nodes, lo, n)
        for i in range(n):
            place = lo + i
            row = cells.row[place] if cells.row.size > 0 else place
            _take_out(plan, cells, paths, hyper, hyper_at, theta, concentration, place)
            _evaluate(plan, cells, paths, nodes, place, i)
            if paths.value[root] > -np.inf:  # not NaN, nor below all floats: the row then stays where it is
                _draw_path(plan, paths, key, row, place)
            _put_back(plan, cells, paths, hyper, hyper_at, theta, concentration, place)
        lo += n
