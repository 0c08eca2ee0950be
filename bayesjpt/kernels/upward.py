"""From leaves to root: the value of every node for a block of rows, as pairs (s, m) with value s exp(m).

A sum takes m = max over children of (m + log w) and s = sum of s exp(m + log w - m_max); a product adds m and
multiplies s. That is one exponential per (row, edge) and no logarithm, and agrees with the log domain to 1e-15. Every
s is at least 1 (the largest term's exponential is 1) or exactly 0; it can only grow, by a factor that
`bayesjpt.circuit.plan` bounds beforehand, so that renormalisation happens where it is flagged and nowhere else.

The loops over nodes read arrays from their tuples in place and hand on single arrays. To hand on a tuple copies all its
arrays, and counts a reference to each unless they are borrowed: several times the densities of a block of rows. What
takes tuples for one node or slot is inlined, therefore.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.circuit.arrays import LEAF as _LEAF
from bayesjpt.circuit.arrays import PRODUCT as _PRODUCT
from bayesjpt.families import dispatch
from bayesjpt.kernels import rows
from bayesjpt.kernels.leaf import INTERVAL_CUT, WHOLE_CUT, recorded_log_mass
from bayesjpt.kernels.work import lay_out
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import inlined, kernel

NARROWEST_CELL = 1e-8
"""Half a cell over its value: a narrower one would drown in the rounding of its bounds, and is a share of this one."""

LEAST_SUM = 1e-250
"""A sum whose children's exponentials were taken once is trusted above it: below it, some may have vanished."""

LEAF_KIND = int(_LEAF)
PRODUCT_KIND = int(_PRODUCT)


@apart
@kernel
def prepare_coefficients(plan, cells, theta, work):
    """Prepare the constants of the log densities of leaves that rows have values for, and the masses of their cells."""
    for leaf in range(plan.leaf_family.size):
        # no row of this unit has a value for the leaf: its coefficients are never read
        if cells.feature_len[plan.leaf_value[leaf]] == 0:
            continue
        at, length = plan.theta_at[leaf], plan.theta_len[leaf]
        const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        out = work.coefficient[plan.coef_at[leaf] : plan.coef_at[leaf + 1]]
        dispatch.coefficients(plan.leaf_family[leaf], theta[at : at + length], const, out)
        if plan.leaf_cut[leaf] == INTERVAL_CUT:
            work.log_cell[leaf] = dispatch.log_mass(
                plan.leaf_family[leaf], plan.leaf_lo[leaf], plan.leaf_hi[leaf], theta[at : at + length], const
            )


@kernel
def _fill_leaf(family, z, aux, x, coefficients, at_atom, cut, out):
    """Fill the log density of one leaf for ``out.size`` entries of its features.

    `x` are the entries in the units of the cell; `at_atom` marks those where the column's atoms have the say, or is
    empty; `cut` is the kind of the leaf's cell, its ends, its log mass and its column's log-Jacobian.
    """
    dispatch.fill_log_density(family, z, aux, coefficients, out)
    if at_atom.size > 0:
        rows.mask_atoms(at_atom, out)
    kind, lo, hi, log_cell, log_jacobian = cut
    if kind == WHOLE_CUT:
        return
    if kind != INTERVAL_CUT:
        # the log-Jacobian is added to every row later: at a known value there is none
        rows.at_point(x, lo, -log_jacobian, out)
    elif log_cell > -np.inf:
        rows.truncate(x, lo, hi, log_cell, out)
    else:
        out[:] = -np.inf


@kernel
def _fill_leaves(plan, cells, work, node, lo, n):
    """Fill ``work.leaf`` with the log densities of a slot's leaves at n values of its column, from `lo` on."""
    alone = plan.kind[node] == LEAF_KIND
    first = plan.child_ptr[node]
    for k in range(1 if alone else plan.child_ptr[node + 1] - first):
        leaf = plan.leaf_of[node if alone else plan.child[first + k]]
        column = plan.feature_column[plan.leaf_value[leaf]]
        z, aux = cells.feature_at[plan.leaf_value[leaf]] + lo, cells.feature_at[plan.leaf_aux[leaf]] + lo
        raw = cells.feature_at[plan.leaf_raw[leaf]] + lo
        # all leaves but the atom itself are masked where it has the say
        marks = max(cells.atom_at[column], 0) + lo
        n_mark = n if cells.atom_at[column] >= 0 and not plan.leaf_is_atom[leaf] else 0
        cut = (
            plan.leaf_cut[leaf], plan.leaf_lower[leaf], plan.leaf_upper[leaf], work.log_cell[leaf],
            plan.column_log_jacobian[column],
        )  # fmt: skip
        _fill_leaf(
            plan.leaf_family[leaf],
            cells.feature[z : z + n], cells.feature[aux : aux + n], cells.feature[raw : raw + n],
            work.coefficient[plan.coef_at[leaf] :], cells.at_atom[marks : marks + n_mark], cut, work.leaf[k, :n],
        )  # fmt: skip


@kernel
def _fill_leaf_masses(family, z, half, units, cut, parameters, constants, out):
    """Fill the log masses under a leaf of the cells around some values.

    `units` are the units of z, in those of `half`, and the least half width of a cell over its value; `cut` is the kind
    of the leaf's own cell, its ends in units of z and its log mass.
    """
    unit, least = units
    for i in range(out.size):
        half_width = half[i] / unit
        # a cell narrower than its ends can tell apart: a wider one, scaled down to its share
        reach = max(half_width, least * abs(z[i]))
        out[i] = recorded_log_mass(family, z[i] - reach, z[i] + reach, cut, parameters, constants)
        if reach > half_width:
            out[i] += math.log(half_width / reach)


@kernel
def _fill_masses(plan, cells, theta, work, node, lo, n):
    """Fill ``work.leaf`` with the log masses under a slot's leaves of the cells around n values, from `lo` on."""
    alone = plan.kind[node] == LEAF_KIND
    first = plan.child_ptr[node]
    for k in range(1 if alone else plan.child_ptr[node + 1] - first):
        leaf = plan.leaf_of[node if alone else plan.child[first + k]]
        feature = plan.leaf_value[leaf]
        unit = plan.feature_scale[feature]
        half_at = cells.half_at[plan.feature_column[feature]] + lo
        half = cells.half[half_at : half_at + n]
        out = work.leaf[k, :n]
        const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
        value_at = cells.feature_at[feature] + lo
        least = 0.0 if plan.leaf_is_atom[leaf] else NARROWEST_CELL
        z = cells.feature[value_at : value_at + n]
        cut = plan.leaf_cut[leaf], plan.leaf_lo[leaf], plan.leaf_hi[leaf], work.log_cell[leaf]
        _fill_leaf_masses(plan.leaf_family[leaf], z, half, (unit, least), cut, parameters, const, out)


@inlined
def _combine(log_weight, leaf, m, s, term):
    """Fill the pair of a dictionary from its leaves' scores, and the weighted terms.

    `leaf` and `term` are contiguous (n_child, at least n): only whole rows of such arrays are views that vectorise.
    """
    k = log_weight.size
    w0 = log_weight[0]
    if k == 3:
        rows.three_leaf_terms(
            leaf[0], leaf[1], leaf[2], w0, log_weight[1], log_weight[2], m, s, term[0], term[1], term[2]
        )
    elif k == 2:
        rows.two_leaf_terms(leaf[0], leaf[1], w0, log_weight[1], m, s, term[0], term[1])
    else:
        rows.shifted(leaf[0], w0, m)
        for j in range(1, k):
            rows.max_shifted(leaf[j], log_weight[j], m)
        rows.first_leaf_term(leaf[0], w0, m, term[0], s)
        for j in range(1, k):
            rows.next_leaf_term(leaf[j], log_weight[j], m, term[j], s)


@inlined
def _close_table(plan, cells, log_weight, work, slot):
    """Turn the leaf scores of a coded slot, in ``work.leaf``, into its table of log values and weighted terms."""
    at = cells.table_at[slot]
    node = plan.slot_node[slot]
    n = np.int64(cells.n_distinct[plan.slot_column[slot]])
    table = work.table[at : at + n]
    if plan.kind[node] == LEAF_KIND:
        copy_into(work.leaf[0, :n], table)
    else:
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        term_at = cells.term_at[slot]
        term = work.table_term[term_at : term_at + (last - first) * (n + 1)].reshape(last - first, n + 1)
        _combine(log_weight[first:last], work.leaf, work.pair[0, :n], work.pair[1, :n], term)
        rows.log_value(work.pair[0, :n], work.pair[1, :n], table)
    # the entry behind the last value is that of a missing cell: log 1, it is marginalised
    work.table[at + n] = 0.0


@kernel
def fill_table(plan, cells, log_weight, work, slot):
    """Evaluate a coded slot once per distinct value; coefficients of its leaves are prepared."""
    _fill_leaves(plan, cells, work, plan.slot_node[slot], 0, np.int64(cells.n_distinct[plan.slot_column[slot]]))
    _close_table(plan, cells, log_weight, work, slot)


@apart
@kernel
def fill_tables(plan, cells, log_weight, work):
    """Evaluate every coded slot once per distinct value."""
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(work)
    for slot in range(plan.slot_node.size):
        if cells.table_at[slot] >= 0:
            fill_table(plan, cells, log_weight, work, slot)


@apart
@kernel
def fill_mass_tables(plan, cells, log_weight, theta, work):
    """Evaluate every coded slot by the masses of the cells around its distinct values."""
    plan, cells, work = borrowed(plan), borrowed(cells), borrowed(work)
    for slot in range(plan.slot_node.size):
        if cells.table_at[slot] < 0:
            continue
        node = plan.slot_node[slot]
        column = plan.slot_column[slot]
        n = np.int64(cells.n_distinct[column])
        # values without a grid are points, whose density stands for a mass
        if plan.column_resolution[column] == 0.0 and cells.half[cells.half_at[column]] == 0.0:
            _fill_leaves(plan, cells, work, node, 0, n)
        else:
            _fill_masses(plan, cells, theta, work, node, 0, n)
        _close_table(plan, cells, log_weight, work, slot)


@kernel
def _fill_shared(plan, work, node, n):
    """Fill ``work.leaf`` with the values of a sum's children over exp(m), and ``work.pair`` with m, their largest."""
    first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
    top = work.pair[0, :n]
    top[:] = -np.inf
    for e in range(first, last):
        source = work.node_at[plan.child[e]]
        if source >= 0:
            rows.max_shifted(work.m[source, :n], 0.0, top)
    for e in range(first, last):
        source = work.node_at[plan.child[e]]
        if source >= 0:
            rows.scaled(work.m[source, :n], work.s[source, :n], top, work.leaf[e - first, :n])
        else:
            work.leaf[e - first, :n] = 0.0


@kernel
def _sum_of_shared(plan, log_weight, work, node, terms, n):
    """Fill the pair of a sum, and its terms if asked for, from ``work.leaf``; return whether it can be trusted."""
    at = work.node_at[node]
    first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
    m, s = work.m[at, :n], work.s[at, :n]
    s[:] = 0.0
    for e in range(first, last):
        rows.add_times(work.leaf[e - first, :n], math.exp(log_weight[e]), s)
    if not rows.least(s) > LEAST_SUM:
        return False
    copy_into(work.pair[0, :n], m)
    if terms:
        for e in range(first, last):
            term = work.term[work.edge_at[e], :n]
            # `fold` makes s 1: terms are relative to the same m
            rows.divided(work.leaf[e - first, :n], math.exp(log_weight[e]), s, term)
    rows.fold(m, s)
    return True


@inlined
def _take_only(plan, log_weight, work, node, n):
    """Fill the pair of a sum, and its terms, where each row has a single possible child; return how many have more."""
    at, first, last = work.node_at[node], plan.child_ptr[node], plan.child_ptr[node + 1]
    m, s = work.m[at, :n], work.s[at, :n]
    n_more = 0
    if last - first == 2 and work.node_at[plan.child[first]] >= 0 and work.node_at[plan.child[first + 1]] >= 0:
        one, other = work.node_at[plan.child[first]], work.node_at[plan.child[first + 1]]
        edge, next_edge = work.edge_at[first], work.edge_at[first + 1]
        n_more = rows.only_of_two(
            work.m[one, :n], work.m[other, :n], work.s[one, :n], work.s[other, :n], log_weight[first],
            log_weight[first + 1], m, s, work.term[edge, :n], work.term[next_edge, :n],
        )  # fmt: skip
    else:
        m[:] = -np.inf
        s[:] = 0.0
        for e in range(first, last):
            source, term = work.node_at[plan.child[e]], work.term[work.edge_at[e], :n]
            if source < 0:
                term[:] = 0.0
            else:
                n_more += rows.only_term(work.m[source, :n], work.s[source, :n], log_weight[e], m, term, s)
    return n_more


@apart
@kernel
def _evaluate(plan, cells, log_weight, theta, work, nodes, lo, n, terms):
    """Fill the pairs of some nodes, ascending, int32, for rows ``lo:lo + n``.

    By masses where `theta` is given, else by densities. A child of a hard sum that has no row of the workspace is 0.
    Where `terms` is false, the terms of sums that share their children are left out.
    """
    some_missing = cells.missing.shape[1] > 0
    ready = np.int64(-1)  # the node whose children's exponentials are at hand
    for position in range(nodes.size):
        node = nodes[position]
        at = work.node_at[node]
        if at < 0:
            continue
        slot = plan.slot_of_node[node]
        if plan.shares_children[node]:
            # siblings over the same children come one after the other: the exponentials of the first serve all
            if not plan.follows[node] or ready != node - 1:
                _fill_shared(plan, work, node, n)
            ready = np.int64(node)
            if _sum_of_shared(plan, log_weight, work, node, terms, n):
                if some_missing:
                    rows.one_unless(work.seen[at, :n], work.m[at, :n], work.s[at, :n])
                continue
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        m, s = work.m[at, :n], work.s[at, :n]
        if slot >= 0:
            column = plan.slot_column[slot]
            if cells.table_at[slot] >= 0:
                # a product gathers from the table by itself: only other parents, or none, need the node's own row
                if plan.slot_alone[slot]:
                    table = work.table[cells.table_at[slot] : cells.table_at[slot] + cells.n_distinct[column] + 1]
                    rows.gather(table, cells.code[cells.code_row[column], lo : lo + n], m)
                    s[:] = 1.0
            else:
                if theta.size > 0 and plan.column_resolution[column] > 0.0:
                    _fill_masses(plan, cells, theta, work, node, lo, n)
                else:
                    _fill_leaves(plan, cells, work, node, lo, n)
                if plan.kind[node] == LEAF_KIND:
                    copy_into(work.leaf[0, :n], m)
                    s[:] = 1.0
                else:
                    edge = work.edge_at[first]
                    _combine(log_weight[first:last], work.leaf, m, s, work.term[edge : edge + last - first])
                if some_missing:
                    rows.one_where_missing(cells.missing[column, lo : lo + n], m, s)
        elif plan.kind[node] == PRODUCT_KIND:
            m[:] = 0.0
            s[:] = 1.0
            for e in range(first, last):
                # before the linear factors of the next child could overflow
                if plan.renormalise[e]:
                    rows.fold(m, s)
                child = plan.child[e]
                child_slot = plan.slot_of_node[child]
                if child_slot >= 0 and cells.table_at[child_slot] >= 0:
                    column = plan.slot_column[child_slot]
                    table = work.table[
                        cells.table_at[child_slot] : cells.table_at[child_slot] + cells.n_distinct[column] + 1
                    ]
                    rows.add_gathered(table, cells.code[cells.code_row[column], lo : lo + n], m)
                else:
                    source = work.node_at[child]
                    # leaves have s = 1
                    if plan.kind[child] == LEAF_KIND:
                        rows.add(work.m[source, :n], m)
                    else:
                        rows.add_and_multiply(work.m[source, :n], work.s[source, :n], m, s)
        else:
            # a known cell decides for one child, whose exponential of 0 is 1
            if plan.split_column[node] >= 0 and _take_only(plan, log_weight, work, node, n) == 0:
                if some_missing:
                    rows.one_unless(work.seen[at, :n], m, s)
                continue
            alive, only = 0, first
            for e in range(first, last):
                source = work.node_at[plan.child[e]]
                if source < 0:
                    work.term[work.edge_at[e], :n] = 0.0
                elif alive == 0:
                    rows.shifted(work.m[source, :n], log_weight[e], m)
                    alive, only = 1, e
                else:
                    rows.max_shifted(work.m[source, :n], log_weight[e], m)
                    alive += 1
            if alive == 0:
                m[:] = -np.inf
                s[:] = 0.0
            elif alive == 1:
                # one child with a row: m was shifted to it, so that exp(m - m) = 1 and its own s is the sum's
                copy_into(work.s[work.node_at[plan.child[only]], :n], s)
                copy_into(s, work.term[work.edge_at[only], :n])
            for e in range(first, last if alive > 1 else first):
                source = work.node_at[plan.child[e]]
                term = work.term[work.edge_at[e], :n]
                # it sets what the others add to
                if e == only:
                    rows.first_term(work.m[source, :n], work.s[source, :n], log_weight[e], m, term, s)
                elif source >= 0:
                    rows.next_term(work.m[source, :n], work.s[source, :n], log_weight[e], m, term, s)
            if some_missing:
                rows.one_unless(work.seen[at, :n], m, s)


@kernel
def _mark_seen(plan, cells, work, nodes, lo, n):
    """Mark the rows with an observed cell in a node's scope; without one a sum is exactly 1, not to rounding."""
    for position in range(nodes.size):
        node = nodes[position]
        if work.node_at[node] < 0:
            continue
        seen = work.seen[work.node_at[node], :n]
        slot = plan.slot_of_node[node]
        if slot >= 0:
            rows.negate(cells.missing[plan.slot_column[slot], lo : lo + n], seen)
            continue
        # only an observed cell rules out all children of a sum, as where an event has removed the part it lies in
        seen[:] = plan.kind[node] != PRODUCT_KIND
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            source = work.node_at[plan.child[e]]
            if source >= 0:
                if plan.kind[node] != PRODUCT_KIND:  # all children of a sum have its scope
                    copy_into(work.seen[source, :n], seen)
                    break
                rows.either(work.seen[source, :n], seen)


@inlined
def upward(plan, cells, log_weight, work, lo, n):
    """Fill the pairs of the nodes that rows ``lo:lo + n``, of one segment, need; tables and coefficients are ready."""
    upward_by(plan, cells, log_weight, log_weight[:0], work, lo, n, True)


@apart
@kernel
def upward_by(plan, cells, log_weight, theta, work, lo, n, terms):
    """Do as `upward`, by masses where `theta` is not empty, and return the nodes that they need.

    Where `terms` is false, the terms of sums that share their children are left out.
    """
    nodes = lay_out(plan, cells, work, lo)
    if cells.missing.shape[1] > 0:
        _mark_seen(plan, cells, work, nodes, lo, n)
    _evaluate(plan, cells, log_weight, theta, work, nodes, lo, n, terms)
    return nodes


@kernel
def upward_again(plan, cells, log_weight, work, nodes, lo, n):
    """Fill the pairs of some nodes anew, ascending, int32; those of all others stand from `upward` on the same rows.

    The rows are not routed: every node has its own rows of the workspace.
    """
    _evaluate(plan, cells, log_weight, log_weight[:0], work, nodes, lo, n, True)


@kernel
def upward_flat(plan, cells, log_weight, work, lo, n):
    """Fill what `downward` reads as if every density were 1: paths are then drawn by the weights alone.

    But for hard sums, where values decide. Returns the nodes that were needed, as `upward_by`.
    """
    nodes = upward_by(plan, cells, log_weight, log_weight[:0], work, lo, n, False)
    for position in range(nodes.size):
        node = nodes[position]
        if work.node_at[node] < 0:
            continue
        work.m[work.node_at[node], :n] = 0.0
        work.s[work.node_at[node], :n] = 1.0
        # hard sums keep the terms of the pass: there values decide
        if plan.split_column[node] >= 0:
            continue
        slot = plan.slot_of_node[node]
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            if plan.edge_row[e] >= 0 and not plan.shares_children[node]:
                work.term[work.edge_at[e], :n] = math.exp(log_weight[e])
                if slot >= 0 and cells.table_at[slot] >= 0:
                    length = np.int64(cells.n_distinct[plan.slot_column[slot]]) + 1
                    at = cells.term_at[slot] + (e - plan.child_ptr[node]) * length
                    work.table_term[at : at + length] = math.exp(log_weight[e])
    return nodes


@kernel
def root_log_value(plan, work, n, out):
    """Fill out with the logarithm of the root's value for the block just evaluated."""
    at = work.node_at[plan.kind.size - 1]
    rows.log_value(work.m[at, :n], work.s[at, :n], out[:n])
