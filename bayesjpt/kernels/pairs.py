"""Mutual information of pairs of columns whose values are sorted into cells, under many draws.

A row takes one slot of each column, and given the slots its cells are independent. So the table of two columns is

      P(a, b) = sum over slots i of the first column and j of the second:  F[i, a] J[i, j] F[j, b]

with F the probability of each cell under each slot, and J the probability that a row takes both slots. One pass from
the leaves gives the slots that rows take below every node, one pass from the root how often rows come through it; two
slots are taken together where their paths part, at a product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import Plan
from bayesjpt.families import dispatch
from bayesjpt.kernels.flow import fill_reach
from bayesjpt.kernels.leaf import WHOLE_CUT, leaf_cdf
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.jit import kernel

_NEGLIGIBLE = 1e-13  # of a slot: what it leaves out of an answer is far below its rounding


class Slots(NamedTuple):
    """The slots of some columns, and which of them lie below every node.

    Attributes
    ----------
    ptr : int32 (n_target + 1,)
        Slots of each column.
    node : int32 (n_slot,)
    entry_ptr : int32 (n_slot + 1,), entry_leaf, entry_edge : int32 (n_entry,)
        Leaves of each slot, and the edges with their weights; -1 where the slot is a leaf.
    below_ptr : int32 (n_node + 1,), below : int32 (n_below,)
        Slots below each node, ascending; a slot's node has itself.
    edge_ptr : int32 (n_edge + 1,), edge_place : int32 (n_place,)
        For each slot below an edge's child: its place among those below the parent.
    """

    ptr: np.ndarray
    node: np.ndarray
    entry_ptr: np.ndarray
    entry_leaf: np.ndarray
    entry_edge: np.ndarray
    below_ptr: np.ndarray
    below: np.ndarray
    edge_ptr: np.ndarray
    edge_place: np.ndarray


class Cuts(NamedTuple):
    """Where the values of some columns are cut into cells: each reaches from above one cut up to the next.

    Attributes
    ----------
    ptr : int32 (n_target + 1,)
    at : float64 (n_cut,)
        Ascending within each column, in the user's units, codes of labels. The last one is not below any value.
    """

    ptr: np.ndarray
    at: np.ndarray


def make_slots(plan: Plan, columns: Sequence[int]) -> Slots:
    """Return the slots of some columns, in the order of the columns."""
    of_column = [plan.slot_node[plan.slot_column == column] for column in columns]
    node = np.concatenate(of_column).astype(np.int32)
    number = {int(n): k for k, n in enumerate(node)}
    leaf: list[int] = []
    edge: list[int] = []
    counts = []
    for n in node.tolist():
        edges = [-1] if plan.kind[n] == arrays.LEAF else list(range(plan.child_ptr[n], plan.child_ptr[n + 1]))
        leaf += [int(plan.leaf_of[n if e < 0 else plan.child[e]]) for e in edges]
        edge += edges
        counts.append(len(edges))
    below: list[list[int]] = []
    places: list[list[int]] = []
    for n in range(plan.kind.size):
        edges = range(plan.child_ptr[n], plan.child_ptr[n + 1])
        if plan.slot_of_node[n] >= 0:
            below.append([number[n]] if n in number else [])
            places += [[] for _ in edges]
            continue
        found = sorted({slot for e in edges for slot in below[plan.child[e]]})
        place = {slot: k for k, slot in enumerate(found)}
        below.append(found)
        places += [[place[slot] for slot in below[plan.child[e]]] for e in edges]
    return Slots(
        ptr=_pointer([part.size for part in of_column]),
        node=node,
        entry_ptr=_pointer(counts),
        entry_leaf=np.array(leaf, np.int32),
        entry_edge=np.array(edge, np.int32),
        below_ptr=_pointer([len(part) for part in below]),
        below=np.array([slot for part in below for slot in part], np.int32),
        edge_ptr=_pointer([len(part) for part in places]),
        edge_place=np.array([k for part in places for k in part], np.int32),
    )


def make_cuts(cuts: Sequence[np.ndarray]) -> Cuts:
    """Return the cuts, float64 (n_cut,), of some columns."""
    return Cuts(_pointer([part.size for part in cuts]), np.concatenate(cuts))


def _pointer(lengths: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int32)


@kernel
def _add_cdf(family, weight, points, units, parameters, constants, out):
    offset, scale = units
    for k in range(points.size):
        out[k] += weight * dispatch.cdf(family, (points[k] - offset) / scale, parameters, constants)


@kernel
def _fill_below(plan, slots, cuts, log_weight, theta, out):
    """Fill out, float64 (n_slot, n_longest), with the probability of values up to each cut under each slot."""
    for target in range(slots.ptr.size - 1):
        begin, end = cuts.ptr[target], cuts.ptr[target + 1]
        for slot in range(slots.ptr[target], slots.ptr[target + 1]):
            out[slot, : end - begin] = 0.0
            for k in range(slots.entry_ptr[slot], slots.entry_ptr[slot + 1]):
                edge = slots.entry_edge[k]
                weight = math.exp(log_weight[edge]) if edge >= 0 else 1.0
                if weight < _NEGLIGIBLE:
                    continue
                leaf = slots.entry_leaf[k]
                if plan.leaf_cut[leaf] == WHOLE_CUT:
                    feature = plan.leaf_value[leaf]
                    units = plan.feature_offset[feature], plan.feature_scale[feature]
                    parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
                    constants = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
                    _add_cdf(
                        plan.leaf_family[leaf], weight, cuts.at[begin:end], units, parameters, constants, out[slot]
                    )
                else:
                    for c in range(begin, end):
                        out[slot, c - begin] += weight * leaf_cdf(plan, theta, leaf, cuts.at[c])


@kernel
def fill_below(plan, slots, cuts, log_weights, thetas, out):
    """Fill out, float64 (n_draw, n_slot, n_longest), with the probability of values up to each cut under each slot."""
    for draw in range(out.shape[0]):
        _fill_below(plan, slots, cuts, log_weights[draw], thetas[draw], out[draw])


@kernel
def _difference(row):
    for c in range(row.size - 1, 0, -1):
        row[c] = max(row[c] - row[c - 1], 0.0)


@kernel
def _fill_taken(plan, slots, log_weight, taken):
    """Fill taken, float64 (n_below,), with the probability of each slot below a node for a row that comes there."""
    taken[:] = 0.0
    for node in range(plan.kind.size):
        at = slots.below_ptr[node]
        if plan.slot_of_node[node] >= 0:
            if slots.below_ptr[node + 1] > at:
                taken[at] = 1.0
            continue
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            weight = 1.0 if plan.kind[node] == PRODUCT_KIND else math.exp(log_weight[e])
            child = slots.below_ptr[plan.child[e]]
            first = slots.edge_ptr[e]
            for k in range(slots.edge_ptr[e + 1] - first):
                taken[at + slots.edge_place[first + k]] += weight * taken[child + k]


@kernel
def _fill_joint(plan, slots, reach, taken, joint):
    """Fill joint, float64 (n_slot, n_slot), with the probability that a row takes two slots, the one above first."""
    joint[:] = 0.0
    for node in range(plan.kind.size):
        if plan.kind[node] != PRODUCT_KIND or reach[node] == 0.0:
            continue
        for first in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            one = plan.child[first]
            for second in range(first + 1, plan.child_ptr[node + 1]):
                other = plan.child[second]
                for i in range(slots.below_ptr[one], slots.below_ptr[one + 1]):
                    share = reach[node] * taken[i]
                    for j in range(slots.below_ptr[other], slots.below_ptr[other + 1]):
                        p, q = slots.below[i], slots.below[j]
                        joint[min(p, q), max(p, q)] += share * taken[j]


@kernel
def _add_scaled(factor, row, out):
    for k in range(out.size):
        out[k] += factor * row[k]


@kernel
def _entropy_term(p):
    return -p * math.log(p) if p > 0.0 else 0.0


@kernel
def _information(table):
    """Return the mutual information of a table of two columns, float64 (n_first, n_second), in nats."""
    n_first, n_second = table.shape
    second = np.zeros(n_second)
    total = 0.0
    out = 0.0
    for a in range(n_first):
        first = 0.0
        for b in range(n_second):
            p = table[a, b]
            first += p
            second[b] += p
            if p > 0.0:
                out += p * math.log(p)
        out += _entropy_term(first)
        total += first
    for b in range(n_second):
        out += _entropy_term(second[b])
    return max(out / total + math.log(total), 0.0)


@kernel
def fill_joint(plan, slots, log_weights, out):
    """Fill out, float64 (n_draw, n_slot, n_slot), with the probability that a row takes two slots.

    Filled above the diagonal; on it lies the probability of each slot. Two slots of one column are never taken
    together.
    """
    reach, taken = np.empty(plan.kind.size), np.empty(slots.below.size)
    for draw in range(out.shape[0]):
        fill_reach(plan, log_weights[draw], reach)
        _fill_taken(plan, slots, log_weights[draw], taken)
        _fill_joint(plan, slots, reach, taken, out[draw])
        for slot in range(slots.node.size):
            out[draw, slot, slot] = reach[slots.node[slot]]


@kernel
def _fill_table(slots, joint, mass, t, u, given, table):
    """Fill the table of the cells of two columns."""
    table[:] = 0.0
    n_second = table.shape[1]
    for i in range(slots.ptr[t], slots.ptr[t + 1]):
        given[:n_second] = 0.0
        for j in range(slots.ptr[u], slots.ptr[u + 1]):
            share = joint[min(i, j), max(i, j)]
            if share > 0.0:
                _add_scaled(share, mass[j, :n_second], given[:n_second])
        for a in range(table.shape[0]):
            if mass[i, a] > 0.0:
                _add_scaled(mass[i, a], given[:n_second], table[a])


@kernel
def fill_information(plan, slots, cuts, apart, params, out):
    """Fill out, float64 (n_draw, n_target, n_target), with the mutual information of the cells of columns, in nats.

    Parameters
    ----------
    plan, slots, cuts : Plan, Slots, Cuts
    apart : bool (n_target, n_target)
        Columns that are independent whatever the parameters: exactly 0.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    out : float64 (n_draw, n_target, n_target)
        The diagonal is NaN.
    """
    log_weights, thetas = params
    n_target = slots.ptr.size - 1
    longest = 1
    for t in range(n_target):
        longest = max(longest, cuts.ptr[t + 1] - cuts.ptr[t])
    joint = np.empty((1, slots.node.size, slots.node.size))
    mass = np.empty((slots.node.size, longest))
    given, table = np.empty(longest), np.empty(longest * longest)
    for draw in range(out.shape[0]):
        fill_joint(plan, slots, log_weights[draw : draw + 1], joint)
        _fill_below(plan, slots, cuts, log_weights[draw], thetas[draw], mass)
        for t in range(n_target):
            for slot in range(slots.ptr[t], slots.ptr[t + 1]):
                _difference(mass[slot, : cuts.ptr[t + 1] - cuts.ptr[t]])
        for t in range(n_target):
            out[draw, t, t] = np.nan
            n_first = cuts.ptr[t + 1] - cuts.ptr[t]
            for u in range(t + 1, n_target):
                n_second = cuts.ptr[u + 1] - cuts.ptr[u]
                information = 0.0
                if not apart[t, u]:
                    square = table[: n_first * n_second].reshape(n_first, n_second)
                    _fill_table(slots, joint[0], mass, t, u, given, square)
                    information = _information(square)
                out[draw, t, u] = out[draw, u, t] = information


def apart(plan: Plan, columns: Sequence[int]) -> np.ndarray:
    """Return bool (n_target, n_target): columns of which no sum has to choose slots together.

    From the root down, a product with both columns below one child hands over to it, and so does a sum with one child;
    a product that parts them makes them independent.
    """
    scope = np.zeros((plan.kind.size, len(columns)), bool)
    number = {column: k for k, column in enumerate(columns)}
    for node in range(plan.kind.size):
        if plan.kind[node] == LEAF_KIND:
            column = int(plan.feature_column[plan.leaf_value[plan.leaf_of[node]]])
            if column in number:
                scope[node, number[column]] = True
        else:
            scope[node] = scope[plan.child[plan.child_ptr[node] : plan.child_ptr[node + 1]]].any(axis=0)
    out = np.zeros((len(columns), len(columns)), bool)
    pending = [plan.kind.size - 1]
    while pending:
        node = pending.pop()
        children = plan.child[plan.child_ptr[node] : plan.child_ptr[node + 1]]
        if plan.kind[node] == arrays.PRODUCT:
            inside = scope[children]
            together = (inside[:, :, None] & inside[:, None, :]).any(axis=0)
            out |= scope[node][:, None] & scope[node][None, :] & ~together
            pending += children.tolist()
        elif children.size == 1:
            pending += children.tolist()
    return out
