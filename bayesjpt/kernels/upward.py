"""From leaves to root: the value of every node for a block of rows, as pairs (s, m) with value s exp(m).

A sum takes m = max over children of (m + log w) and s = sum of s exp(m + log w - m_max); a product adds m and
multiplies s. That is one exponential per (row, edge) and no logarithm, and agrees with the log domain to 1e-15. Every
s is at least 1 (the largest term's exponential is 1) or exactly 0; it can only grow, by a factor that
`bayesjpt.circuit.plan` bounds beforehand, so that renormalisation happens where it is flagged and nowhere else.

The loops over nodes read arrays from their tuples in place and hand on single arrays. To hand on a tuple, even to an
inlined function, counts a reference to each of its arrays, which costs several times the densities of a block of rows.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.circuit.arrays import LEAF as _LEAF
from bayesjpt.circuit.arrays import PRODUCT as _PRODUCT
from bayesjpt.families import dispatch
from bayesjpt.kernels import rows
from bayesjpt.kernels.leaf import INTERVAL_CUT, WHOLE_CUT, recorded_log_mass
from bayesjpt.numerics.jit import inlined, kernel

NARROWEST_CELL = 1e-8
"""Half a cell over its value: a narrower one would drown in the rounding of its bounds, and is a share of this one."""

LEAF_KIND = int(_LEAF)
PRODUCT_KIND = int(_PRODUCT)


@kernel
def prepare_coefficients(plan, theta, work):
    """Prepare the constants of all leaves' log densities, and the masses of their cells."""
    for leaf in range(plan.leaf_family.size):
        at, length = plan.theta_at[leaf], plan.theta_len[leaf]
        const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        out = work.coefficient[plan.coef_at[leaf] : plan.coef_at[leaf] + length + 4]
        dispatch.coefficients(plan.leaf_family[leaf], theta[at : at + length], const, out)
        if plan.leaf_cut[leaf] == INTERVAL_CUT:
            work.log_cell[leaf] = dispatch.log_mass(
                plan.leaf_family[leaf], plan.leaf_lo[leaf], plan.leaf_hi[leaf], theta[at : at + length], const
            )


@kernel
def _fill_leaf(family, z, aux, coefficients, at_atom, cut, out):
    """Fill the log density of one leaf for ``out.size`` entries of its features.

    `at_atom` marks entries where the column's atoms have the say, or is empty; `cut` is the kind of the leaf's cell,
    its ends, its log mass and its column's log-Jacobian.
    """
    dispatch.fill_log_density(family, z, aux, coefficients, out)
    if at_atom.size > 0:
        rows.mask_atoms(at_atom, out)
    kind, lo, hi, log_cell, log_jacobian = cut
    if kind == WHOLE_CUT:
        return
    if kind != INTERVAL_CUT:
        # the log-Jacobian is added to every row later: at a known value there is none
        rows.at_point(z, lo, -log_jacobian, out)
    elif log_cell > -np.inf:
        rows.truncate(z, lo, hi, log_cell, out)
    else:
        out[:] = -np.inf


@kernel
def _fill_leaves(plan, cells, work, node, n):
    """Fill ``work.leaf`` with the log densities of a slot's leaves at the n distinct values of its column."""
    alone = plan.kind[node] == LEAF_KIND
    first = plan.child_ptr[node]
    for k in range(1 if alone else plan.child_ptr[node + 1] - first):
        leaf = plan.leaf_of[node if alone else plan.child[first + k]]
        column = plan.feature_column[plan.leaf_value[leaf]]
        z, aux = cells.feature_at[plan.leaf_value[leaf]], cells.feature_at[plan.leaf_aux[leaf]]
        marks = max(cells.atom_at[column], 0)
        n_mark = n if cells.atom_at[column] >= 0 and not plan.leaf_is_atom[leaf] else 0
        cut = (
            plan.leaf_cut[leaf], plan.leaf_lo[leaf], plan.leaf_hi[leaf], work.log_cell[leaf],
            plan.column_log_jacobian[column],
        )  # fmt: skip
        _fill_leaf(
            plan.leaf_family[leaf], cells.feature[z : z + n], cells.feature[aux : aux + n],
            work.coefficient[plan.coef_at[leaf] :], cells.at_atom[marks : marks + n_mark], cut, work.leaf[k, :n],
        )  # fmt: skip


@kernel
def _fill_masses(plan, cells, theta, work, node, n):
    """Fill ``work.leaf`` with the log masses under a slot's leaves of the cells around the n distinct values."""
    alone = plan.kind[node] == LEAF_KIND
    first = plan.child_ptr[node]
    for k in range(1 if alone else plan.child_ptr[node + 1] - first):
        leaf = plan.leaf_of[node if alone else plan.child[first + k]]
        half = plan.leaf_half_cell[leaf]
        out = work.leaf[k, :n]
        const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
        value_at = cells.feature_at[plan.leaf_value[leaf]]
        for i in range(n):
            z = cells.feature[value_at + i]
            reach = half if plan.leaf_is_atom[leaf] else max(half, NARROWEST_CELL * abs(z))
            if plan.leaf_cut[leaf] == WHOLE_CUT:
                out[i] = dispatch.log_mass(plan.leaf_family[leaf], z - reach, z + reach, parameters, const)
            else:
                out[i] = recorded_log_mass(plan, leaf, z - reach, z + reach, work.log_cell[leaf], parameters, const)
            if reach > half:
                out[i] += math.log(half / reach)


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


@kernel
def _close_table(plan, cells, log_weight, work, slot):
    """Turn the leaf scores of a coded slot, in ``work.leaf``, into its table of log values and weighted terms."""
    at = cells.table_at[slot]
    node = plan.slot_node[slot]
    n = np.int64(cells.n_distinct[plan.slot_column[slot]])
    table = work.table[at : at + n]
    if plan.kind[node] == LEAF_KIND:
        table[:] = work.leaf[0, :n]
    else:
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        term_at = cells.term_at[slot]
        term = work.table_term[term_at : term_at + (last - first) * (n + 1)].reshape(last - first, n + 1)
        _combine(log_weight[first:last], work.leaf, work.pair[0, :n], work.pair[1, :n], term)
        rows.log_value(work.pair[0, :n], work.pair[1, :n], table)
    work.table[at + n] = 0.0


@kernel
def fill_tables(plan, cells, log_weight, work):
    """Evaluate every coded slot once per distinct value."""
    for slot in range(plan.slot_node.size):
        if cells.table_at[slot] >= 0:
            _fill_leaves(plan, cells, work, plan.slot_node[slot], np.int64(cells.n_distinct[plan.slot_column[slot]]))
            _close_table(plan, cells, log_weight, work, slot)


@kernel
def fill_mass_tables(plan, cells, log_weight, theta, work):
    """Evaluate every slot by the masses of the cells around its distinct values; all slots are coded."""
    for slot in range(plan.slot_node.size):
        node = plan.slot_node[slot]
        column = plan.slot_column[slot]
        n = np.int64(cells.n_distinct[column])
        if plan.column_resolution[column] == 0.0:
            _fill_leaves(plan, cells, work, node, n)
        else:
            _fill_masses(plan, cells, theta, work, node, n)
        _close_table(plan, cells, log_weight, work, slot)


@kernel
def _evaluate(plan, cells, log_weight, work, nodes, lo, n):
    """Fill the pairs of some nodes, ascending, int32, for rows ``lo:lo + n``; of all nodes where `nodes` is empty."""
    some_missing = cells.missing.shape[1] > 0
    for position in range(nodes.size if nodes.size > 0 else plan.kind.size):
        node = nodes[position] if nodes.size > 0 else np.int32(position)
        at = plan.node_row[node]
        if at < 0:
            continue
        slot = plan.slot_of_node[node]
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        m, s = work.m[at, :n], work.s[at, :n]
        if slot >= 0:
            column = plan.slot_column[slot]
            if cells.table_at[slot] >= 0:
                if plan.slot_alone[slot]:
                    table = work.table[cells.table_at[slot] : cells.table_at[slot] + cells.n_distinct[column] + 1]
                    rows.gather(table, cells.code[cells.code_row[column], lo : lo + n], m)
                    s[:] = 1.0
            else:
                alone = plan.kind[node] == LEAF_KIND
                for k in range(1 if alone else last - first):
                    leaf = plan.leaf_of[node if alone else plan.child[first + k]]
                    z, aux = cells.feature_at[plan.leaf_value[leaf]] + lo, cells.feature_at[plan.leaf_aux[leaf]] + lo
                    marks = max(cells.atom_at[column], 0) + lo
                    n_mark = n if cells.atom_at[column] >= 0 and not plan.leaf_is_atom[leaf] else 0
                    cut = (
                        plan.leaf_cut[leaf], plan.leaf_lo[leaf], plan.leaf_hi[leaf], work.log_cell[leaf],
                        plan.column_log_jacobian[column],
                    )  # fmt: skip
                    _fill_leaf(
                        plan.leaf_family[leaf], cells.feature[z : z + n], cells.feature[aux : aux + n],
                        work.coefficient[plan.coef_at[leaf] :], cells.at_atom[marks : marks + n_mark], cut,
                        m if alone else work.leaf[k, :n],
                    )  # fmt: skip
                if alone:
                    s[:] = 1.0
                else:
                    edge = plan.edge_row[first]
                    _combine(log_weight[first:last], work.leaf, m, s, work.term[edge : edge + last - first])
                if some_missing:
                    rows.one_where_missing(cells.missing[column, lo : lo + n], m, s)
        elif plan.kind[node] == PRODUCT_KIND:
            m[:] = 0.0
            s[:] = 1.0
            for e in range(first, last):
                if plan.renormalise[e]:
                    rows.fold(m, s)
                child = plan.child[e]
                own = plan.slot_of_node[child]
                if own >= 0 and cells.table_at[own] >= 0:
                    column = plan.slot_column[own]
                    table = work.table[cells.table_at[own] : cells.table_at[own] + cells.n_distinct[column] + 1]
                    rows.add_gathered(table, cells.code[cells.code_row[column], lo : lo + n], m)
                else:
                    source = plan.node_row[child]
                    rows.add(work.m[source, :n], m)
                    if plan.kind[child] != LEAF_KIND:
                        rows.multiply(work.s[source, :n], s)
        else:
            rows.shifted(work.m[plan.node_row[plan.child[first]], :n], log_weight[first], m)
            for e in range(first + 1, last):
                rows.max_shifted(work.m[plan.node_row[plan.child[e]], :n], log_weight[e], m)
            for e in range(first, last):
                source = plan.node_row[plan.child[e]]
                term = work.term[plan.edge_row[e], :n]
                if e == first:
                    rows.first_term(work.m[source, :n], work.s[source, :n], log_weight[e], m, term, s)
                else:
                    rows.next_term(work.m[source, :n], work.s[source, :n], log_weight[e], m, term, s)
            if some_missing:
                rows.one_unless(work.seen[at, :n], m, s)


@kernel
def _mark_seen(plan, cells, work, lo, n):
    """Mark the rows with an observed cell in a node's scope; without one a sum is exactly 1, not to rounding."""
    for node in range(plan.kind.size):
        if plan.node_row[node] < 0:
            continue
        seen = work.seen[plan.node_row[node], :n]
        slot = plan.slot_of_node[node]
        if slot >= 0:
            rows.negate(cells.missing[plan.slot_column[slot], lo : lo + n], seen)
            continue
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        seen[:] = work.seen[plan.node_row[plan.child[first]], :n]
        if plan.kind[node] == PRODUCT_KIND:
            for e in range(first + 1, last):
                rows.either(work.seen[plan.node_row[plan.child[e]], :n], seen)


@kernel
def upward(plan, cells, log_weight, work, lo, n):
    """Fill the pairs of all nodes for rows ``lo:lo + n``; tables and coefficients are ready."""
    if cells.missing.shape[1] > 0:
        _mark_seen(plan, cells, work, lo, n)
    _evaluate(plan, cells, log_weight, work, work.rows[0, :0], lo, n)


@kernel
def upward_again(plan, cells, log_weight, work, nodes, lo, n):
    """Fill the pairs of some nodes anew, ascending, int32; those of all others stand from `upward` on the same rows."""
    if nodes.size > 0:
        _evaluate(plan, cells, log_weight, work, nodes, lo, n)


@kernel
def upward_flat(plan, cells, log_weight, work, lo, n):
    """Fill what `downward` reads as if every density were 1: paths are then drawn by the weights alone."""
    for node in range(plan.kind.size):
        if plan.node_row[node] < 0:
            continue
        work.m[plan.node_row[node], :n] = 0.0
        work.s[plan.node_row[node], :n] = 1.0
        slot = plan.slot_of_node[node]
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            if plan.edge_row[e] >= 0:
                work.term[plan.edge_row[e], :n] = math.exp(log_weight[e])
                if slot >= 0 and cells.table_at[slot] >= 0:
                    length = np.int64(cells.n_distinct[plan.slot_column[slot]]) + 1
                    at = cells.term_at[slot] + (e - plan.child_ptr[node]) * length
                    work.table_term[at : at + length] = math.exp(log_weight[e])
    if cells.missing.shape[1] > 0:
        _mark_seen(plan, cells, work, lo, n)


@kernel
def root_log_value(plan, work, n, out):
    """Fill out with the logarithm of the root's value for the block just evaluated."""
    at = plan.node_row[plan.kind.size - 1]
    for i in range(n):
        s = work.s[at, i]
        out[i] = work.m[at, i] + math.log(s) if s > 0.0 else -np.inf
