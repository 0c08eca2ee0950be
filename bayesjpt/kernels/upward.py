"""From leaves to root: the value of every node for a block of rows, as pairs (s, m) with value s exp(m).

A sum takes m = max over children of (m + log w) and s = sum of s exp(m + log w - m_max); a product adds m and
multiplies s. That is one exponential per (row, edge) and no logarithm, and agrees with the log domain to 1e-15. Every
s is at least 1 (the largest term's exponential is 1) or exactly 0; it can only grow, by a factor that
`bayesjpt.circuit.plan` bounds beforehand, so that renormalisation happens where it is flagged and nowhere else.
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
def _cut_density(plan, work, leaf, z, out):
    """Turn the log density of a leaf into that of the leaf given its cell."""
    lo, hi, log_cell = plan.leaf_lo[leaf], plan.leaf_hi[leaf], work.log_cell[leaf]
    if plan.leaf_cut[leaf] != INTERVAL_CUT:
        # the column's log-Jacobian is added to every row later: at a known value there is none
        rows.at_point(z, lo, -plan.column_log_jacobian[plan.feature_column[plan.leaf_value[leaf]]], out)
    elif log_cell > -np.inf:
        rows.truncate(z, lo, hi, log_cell, out)
    else:
        out[:] = -np.inf


@inlined
def _leaf_density(plan, cells, work, leaf, lo, out):
    """Fill the log density of one leaf for ``out.size`` entries of its features, from `lo`."""
    value_at = cells.feature_at[plan.leaf_value[leaf]] + lo
    aux_at = cells.feature_at[plan.leaf_aux[leaf]] + lo
    coefficients = work.coefficient[plan.coef_at[leaf] :]
    dispatch.fill_log_density(
        plan.leaf_family[leaf],
        cells.feature[value_at : value_at + out.size],
        cells.feature[aux_at : aux_at + out.size],
        coefficients,
        out,
    )
    atom_at = cells.atom_at[plan.feature_column[plan.leaf_value[leaf]]]
    if atom_at >= 0 and not plan.leaf_is_atom[leaf]:
        rows.mask_atoms(cells.at_atom[atom_at + lo : atom_at + lo + out.size], out)
    if plan.leaf_cut[leaf] != WHOLE_CUT:
        _cut_density(plan, work, leaf, cells.feature[value_at : value_at + out.size], out)


@kernel
def _leaf_mass(plan, cells, theta, work, leaf, out):
    """Fill the log mass of the cells around the distinct values of one leaf's column."""
    half = plan.leaf_half_cell[leaf]
    if half == 0.0:
        _leaf_density(plan, cells, work, leaf, 0, out)
        return
    const = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
    parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
    value_at = cells.feature_at[plan.leaf_value[leaf]]
    for i in range(out.size):
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
        if cells.table_at[slot] < 0:
            continue
        node = plan.slot_node[slot]
        n = np.int64(cells.n_distinct[plan.slot_column[slot]])
        if plan.kind[node] == LEAF_KIND:
            _leaf_density(plan, cells, work, plan.leaf_of[node], 0, work.leaf[0, :n])
        else:
            first = plan.child_ptr[node]
            for e in range(first, plan.child_ptr[node + 1]):
                _leaf_density(plan, cells, work, plan.leaf_of[plan.child[e]], 0, work.leaf[e - first, :n])
        _close_table(plan, cells, log_weight, work, slot)


@kernel
def fill_mass_tables(plan, cells, log_weight, theta, work):
    """Evaluate every slot by the masses of the cells around its distinct values; all slots are coded."""
    for slot in range(plan.slot_node.size):
        node = plan.slot_node[slot]
        n = np.int64(cells.n_distinct[plan.slot_column[slot]])
        if plan.kind[node] == LEAF_KIND:
            _leaf_mass(plan, cells, theta, work, plan.leaf_of[node], work.leaf[0, :n])
        else:
            first = plan.child_ptr[node]
            for e in range(first, plan.child_ptr[node + 1]):
                _leaf_mass(plan, cells, theta, work, plan.leaf_of[plan.child[e]], work.leaf[e - first, :n])
        _close_table(plan, cells, log_weight, work, slot)


@inlined
def _slot_by_row(plan, cells, log_weight, work, slot, lo, n):
    node = plan.slot_node[slot]
    at = plan.node_row[node]
    m, s = work.m[at, :n], work.s[at, :n]
    if plan.kind[node] == LEAF_KIND:
        _leaf_density(plan, cells, work, plan.leaf_of[node], lo, m)
        s[:] = 1.0
    else:
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        for e in range(first, last):
            _leaf_density(plan, cells, work, plan.leaf_of[plan.child[e]], lo, work.leaf[e - first, :n])
        edge = plan.edge_row[first]
        _combine(log_weight[first:last], work.leaf, m, s, work.term[edge : edge + last - first])
    if cells.missing.shape[1] > 0:
        rows.one_where_missing(cells.missing[plan.slot_column[slot], lo : lo + n], m, s)


@inlined
def _product(plan, cells, work, node, lo, n):
    at = plan.node_row[node]
    m, s = work.m[at, :n], work.s[at, :n]
    m[:] = 0.0
    s[:] = 1.0
    for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
        if plan.renormalise[e]:
            rows.fold(m, s)
        child = plan.child[e]
        slot = plan.slot_of_node[child]
        if slot >= 0 and cells.table_at[slot] >= 0:
            column = plan.slot_column[slot]
            code = cells.code[cells.code_row[column], lo : lo + n]
            table_at = cells.table_at[slot]
            rows.add_gathered(work.table[table_at : table_at + cells.n_distinct[column] + 1], code, m)
        else:
            source = plan.node_row[child]
            rows.add(work.m[source, :n], m)
            if plan.kind[child] != LEAF_KIND:
                rows.multiply(work.s[source, :n], s)


@inlined
def _sum(plan, log_weight, work, node, n):
    at = plan.node_row[node]
    m, s = work.m[at, :n], work.s[at, :n]
    first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
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


@inlined
def _mark_seen(plan, cells, work, node, lo, n):
    """Mark the rows with an observed cell in the scope of a node; without one a sum is exactly 1, not to rounding."""
    seen = work.seen[plan.node_row[node], :n]
    slot = plan.slot_of_node[node]
    if slot >= 0:
        missing = cells.missing[plan.slot_column[slot], lo : lo + n]
        for i in range(n):
            seen[i] = not missing[i]
        return
    first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
    seen[:] = work.seen[plan.node_row[plan.child[first]], :n]
    if plan.kind[node] == PRODUCT_KIND:
        for e in range(first + 1, last):
            other = work.seen[plan.node_row[plan.child[e]], :n]
            for i in range(n):
                seen[i] = seen[i] or other[i]
    else:
        rows.one_unless(seen, work.m[plan.node_row[node], :n], work.s[plan.node_row[node], :n])


@inlined
def _evaluate(plan, cells, log_weight, work, node, lo, n):
    slot = plan.slot_of_node[node]
    if slot >= 0:
        if cells.table_at[slot] < 0:
            _slot_by_row(plan, cells, log_weight, work, slot, lo, n)
        elif plan.slot_alone[slot]:
            column = plan.slot_column[slot]
            code = cells.code[cells.code_row[column], lo : lo + n]
            at = cells.table_at[slot]
            table = work.table[at : at + cells.n_distinct[column] + 1]
            rows.gather(table, code, work.m[plan.node_row[node], :n])
            work.s[plan.node_row[node], :n] = 1.0
    elif plan.kind[node] == PRODUCT_KIND:
        _product(plan, cells, work, node, lo, n)
    else:
        _sum(plan, log_weight, work, node, n)
    if cells.missing.shape[1] > 0:
        _mark_seen(plan, cells, work, node, lo, n)


@kernel
def upward(plan, cells, log_weight, work, lo, n):
    """Fill the pairs of all nodes for rows ``lo:lo + n``; tables and coefficients are ready."""
    for node in range(plan.kind.size):
        if plan.node_row[node] >= 0:
            _evaluate(plan, cells, log_weight, work, node, lo, n)


@kernel
def upward_again(plan, cells, log_weight, work, nodes, lo, n):
    """Fill the pairs of some nodes anew, ascending, int32; those of all others stand from `upward` on the same rows."""
    for node in nodes:
        _evaluate(plan, cells, log_weight, work, node, lo, n)


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
            _mark_seen(plan, cells, work, node, lo, n)


@kernel
def root_log_value(plan, work, n, out):
    """Fill out with the logarithm of the root's value for the block just evaluated."""
    at = plan.node_row[plan.kind.size - 1]
    for i in range(n):
        s = work.s[at, i]
        out[i] = work.m[at, i] + math.log(s) if s > 0.0 else -np.inf
