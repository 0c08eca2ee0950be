"""Which rows need which nodes: below a hard sum a row needs the children that its value can reach, both where missing.

An *exit* is a node below all splits that a row passes, such as the product at a leaf of the tree. Rows with the same
exits are brought together, and the nodes that they need are listed once:

      row        0  1  2  3  4              order      0  3 | 2 | 1  4
      exits      A  B  AB A  B              segments   A    | AB| B           live nodes of each: paths and subtrees

Groups of few rows join their neighbours, since visiting a node costs as much as a few dozen rows. A node that no row of
a segment needs counts as zero, which is what the densities of its leaves, truncated to their regions, would say. So
nothing but the time depends on how rows are grouped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.numerics.counter_rng import mix
from bayesjpt.numerics.jit import kernel

_FEW = 32
"""Rows below which a group joins the next."""

_MANY = 1024
"""Rows that descend together."""

_NARROW = 1e-7
"""Half a cell over its value, at least: more than `bayesjpt.kernels.upward.NARROWEST_CELL`, whatever the units."""


class Routes(NamedTuple):
    """An order of rows, and the nodes that each segment of them needs. Without hard sums: no order, one segment.

    Attributes
    ----------
    row : int64 (n_row,) or (0,)
        The row of the table at each place; empty where rows stay in their places.
    segment_ptr : int64 (n_segment + 1,)
    live_ptr : int64 (n_segment + 1,), live : int32 (n_live,)
        Nodes that the rows of each segment need, ascending; none are listed where all are needed.
    n_needed : int64 (3,)
        The most nodes with a value, edges of sums, and nodes, that one segment needs.
    n_open : int64 (1,)
        Rows that come to a split without an observed cell of its column.
    """

    row: np.ndarray
    segment_ptr: np.ndarray
    live_ptr: np.ndarray
    live: np.ndarray
    n_needed: np.ndarray
    n_open: np.ndarray


@kernel
def no_routes(plan, n_row):
    """Return the Routes of rows that stay in their places and need all nodes."""
    needed = np.zeros(3, np.int64)
    for node in range(plan.node_row.size):
        needed[0] = max(needed[0], plan.node_row[node] + 1)
    for edge in range(plan.edge_row.size):
        needed[1] = max(needed[1], plan.edge_row[edge] + 1)
    needed[2] = plan.kind.size
    ends = np.array([0, n_row], np.int64)
    return Routes(
        np.empty(0, np.int64), ends, np.zeros(2, np.int64), np.empty(0, np.int32), needed, np.zeros(1, np.int64)
    )


def make_routes(plan: Plan, values: np.ndarray, observed: np.ndarray, *, mass: bool) -> Routes:
    """Return the Routes of a table's rows.

    Parameters
    ----------
    plan : Plan
    values : float64 (n_column, n_row), the user's units
    observed : bool (n_column, n_row)
    mass : bool
        Whether a number stands for the cell around it, which may reach both sides of a threshold.
    """
    n_row = values.shape[1]
    if not (plan.split_column >= 0).any() or n_row == 0:
        return no_routes(plan, n_row)
    half = np.zeros(plan.column_resolution.size)
    if mass:
        np.maximum.at(half, plan.feature_column, _NARROW * np.abs(plan.feature_offset))
        half = np.where(plan.column_resolution > 0.0, half + 0.5 * plan.column_resolution, 0.0)
    return _make_routes(plan, np.ascontiguousarray(values), np.ascontiguousarray(observed), half)


@kernel
def _longer(array, size):
    """Return an array with room for twice `size` entries that begins as the one given."""
    out = np.empty(2 * size, array.dtype)
    out[: array.size] = array
    return out


@kernel
def _two_ways(plan, leads, half):
    """Return (column, ends, below, label_at) of each node: int64 (n_node,), and 4, 2 and 2 numbers a node.

    Nodes from which a known value goes one of two ways have a column, others -1. Of numbers, `ends` are those of both
    intervals; of labels, `label_at` tells where the flags of each way begin, and is -1 for numbers. `below` is where
    the ways go to.
    """
    n_node = plan.kind.size
    column, ends = np.full(n_node, -1, np.int64), np.zeros((n_node, 4))
    below, label_at = np.zeros((n_node, 2), np.int64), np.full((n_node, 2), -1, np.int64)
    for node in range(n_node):
        e, c = plan.child_ptr[node], plan.split_column[node]
        if not leads[node] or c < 0 or half[c] > 0.0 or plan.child_ptr[node + 1] - e != 2:
            continue
        column[node] = c
        for k in range(2):
            ends[node, 2 * k], ends[node, 2 * k + 1] = plan.edge_lower[e + k], plan.edge_upper[e + k]
            below[node, k] = plan.child[e + k]
            label_at[node, k] = plan.edge_label_at[e + k]
    return column, ends, below, label_at


@kernel
def _descend(plan, leads, values, observed, half):
    """Return int32 (n_row,): the node that each row comes to while it meets two ways, and its value decides.

    Level by level, all rows of a block: the steps of one row wait for each other, those of many rows do not.
    """
    n_node, n_row = plan.kind.size, values.shape[1]
    split_column, ends, below, label_at = _two_ways(plan, leads, half)
    reaches = plan.label_reaches
    place, under_way = np.full(n_row, n_node - 1, np.int32), np.empty(_MANY, np.uint32)
    for begin in range(0, n_row if split_column[n_node - 1] >= 0 else 0, _MANY):
        n = min(_MANY, n_row - begin)
        under_way[:n] = np.arange(begin, begin + n)
        while n > 0:
            n_left = 0
            for i in range(n):
                row = under_way[i]
                node = np.uint32(place[row])
                column = np.uint32(split_column[node])
                x = values[column, row] if observed[column, row] else np.nan
                way = np.uint32(not x <= ends[node, 1])
                passes = ends[node, np.uint32(2) * way] <= x <= ends[node, np.uint32(3)]
                if label_at[node, 0] >= 0:
                    code = np.uint32(x if x >= 0.0 else 0.0)
                    way = np.uint32(not reaches[np.uint32(label_at[node, 0]) + code])
                    passes = x >= 0.0 and reaches[np.uint32(label_at[node, way]) + code]
                if passes:
                    node = np.uint32(below[node, way])
                    place[row] = node
                    under_way[n_left] = row
                    n_left += split_column[node] >= 0
            n = n_left
    return place


@kernel
def _find_exits(plan, leads, start, values, observed, half):
    """Return (exit_ptr, exits, digest, n_open): the exits of each row, from left to right, and a hash of each row's.

    Each row begins at its node `start`.
    """
    n_node, n_row = plan.kind.size, values.shape[1]
    child_ptr, child, split_column = plan.child_ptr, plan.child, plan.split_column
    lower, upper, label_at, label_reaches = plan.edge_lower, plan.edge_upper, plan.edge_label_at, plan.label_reaches
    stack, visited = np.empty(n_node + 1, np.int32), np.full(n_node, -1, np.int64)
    exit_ptr, exits = np.zeros(n_row + 1, np.int64), np.empty(n_row + n_node, np.int32)
    digest = np.zeros(n_row, np.uint64)
    n_open = 0
    for row in range(n_row):
        is_open = False
        n = exit_ptr[row]
        if n + n_node > exits.size:
            exits = _longer(exits, n + n_node)
        stack[0] = start[row]
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if not leads[node]:
                exits[n] = node
                n += 1
                digest[row] = mix(digest[row] + np.uint64(node + 1))
                continue
            column = split_column[node]
            known = column >= 0 and observed[column, row]
            is_open |= column >= 0 and not known
            x = values[column, row] if known else 0.0
            width = half[column] + _NARROW * abs(x) if known and half[column] > 0.0 else 0.0
            for e in range(child_ptr[node + 1] - 1, child_ptr[node] - 1, -1):
                if known:
                    if label_at[e] >= 0:
                        if not label_reaches[label_at[e] + int(x)]:
                            continue
                    elif not (x + width >= lower[e] and x - width <= upper[e]):
                        continue
                if visited[child[e]] != row:
                    visited[child[e]] = row
                    stack[depth] = child[e]
                    depth += 1
                if known and width == 0.0:  # children are disjoint
                    break
        exit_ptr[row + 1] = n
        n_open += is_open
    return exit_ptr, exits, digest, n_open


@kernel
def _sort_by(first, digest, n_node):
    """Return the rows by their first exit and then by digest, in their order where both are equal."""
    start = np.zeros(n_node + 1, np.int64)
    for i in range(first.size):
        start[first[i] + 1] += 1
    for node in range(n_node):
        start[node + 1] += start[node]
    end = start.copy()
    order = np.empty(first.size, np.int64)
    for i in range(first.size):
        order[end[first[i]]] = i
        end[first[i]] += 1
    for node in range(n_node):
        group = order[start[node] : end[node]]
        mixed = False
        for j in range(1, group.size):
            mixed |= digest[group[j]] != digest[group[0]]
        if mixed:
            group[:] = group[np.argsort(digest[group], kind="mergesort")]
    return order


@kernel
def _segments(first, digest, order):
    """Return where segments of the ordered rows begin and end: groups of equal exits, small ones joined."""
    out = [np.int64(0)]
    begin = 0
    while begin < order.size:
        end = begin + 1
        while (
            end < order.size
            and (first[order[end]] == first[order[begin]])
            and (digest[order[end]] == digest[order[begin]])
        ):
            end += 1
        # `out` ends with the end of the last segment; what came since then is small
        if end - begin >= _FEW and out[-1] < begin:
            out.append(np.int64(begin))
        if end - out[-1] >= _FEW:
            out.append(np.int64(end))
        begin = end
    if out[-1] < order.size:
        out.append(np.int64(order.size))
    return np.array(out)


@kernel
def _mark_below(plan, node, alive, found, n):
    """Mark a node and all below it, append them to the n nodes found so far, and return how many these are then."""
    if alive[node]:
        return n
    alive[node] = True
    found[n] = node
    at = n
    n += 1
    while at < n:
        for e in range(plan.child_ptr[found[at]], plan.child_ptr[found[at] + 1]):
            child = plan.child[e]
            if not alive[child]:
                alive[child] = True
                found[n] = child
                n += 1
        at += 1
    return n


@kernel
def _mark_above(plan, leads, alive, found, n):
    """Mark the nodes that lead to marked ones, and what these need besides; count as in `_mark_below`."""
    lead = np.flatnonzero(leads)
    for node in lead:
        needed = node == alive.size - 1
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            needed |= alive[plan.child[e]]
        if needed and not alive[node]:
            alive[node] = True
            found[n] = node
            n += 1
    for node in lead[::-1]:
        if alive[node] and plan.split_column[node] < 0:
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                child = plan.child[e]
                if not leads[child]:  # no exit of these rows, where another parent brought this node in
                    n = _mark_below(plan, child, alive, found, n)
                elif not alive[child]:  # a part in which a row reaches nothing: its value is zero, and must be there
                    alive[child] = True
                    found[n] = child
                    n += 1
    return n


@kernel
def _make_routes(plan, values, observed, half):
    n_node, n_row = plan.kind.size, values.shape[1]
    leads = np.zeros(n_node, np.bool_)
    for node in range(n_node):
        leads[node] = plan.split_column[node] >= 0
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            leads[node] |= leads[plan.child[e]]
    start = _descend(plan, leads, values, observed, half)
    exit_ptr, exits, digest, n_open = _find_exits(plan, leads, start, values, observed, half)
    first = np.zeros(n_row, np.int32)
    for row in range(n_row):
        first[row] = exits[exit_ptr[row]] if exit_ptr[row + 1] > exit_ptr[row] else 0
    order = _sort_by(first, digest, n_node)
    segment_ptr = _segments(first, digest, order)
    needed = np.zeros(3, np.int64)
    live_ptr = np.zeros(segment_ptr.size, np.int64)
    alive = np.zeros(n_node, np.bool_)
    found, live = np.empty(n_node, np.int32), np.empty(n_node, np.int32)
    for segment in range(segment_ptr.size - 1):
        n = 0
        for place in range(segment_ptr[segment], segment_ptr[segment + 1]):
            row = order[place]
            if place > segment_ptr[segment] and digest[row] == digest[order[place - 1]]:
                continue
            for k in range(exit_ptr[row], exit_ptr[row + 1]):
                n = _mark_below(plan, exits[k], alive, found, n)
        n = _mark_above(plan, leads, alive, found, n)
        at = live_ptr[segment]
        if at + n > live.size:
            live = _longer(live, at + n)
        n_valued, n_term = 0, 0
        live[at : at + n] = np.sort(found[:n])
        for node in found[:n]:
            alive[node] = False
            n_valued += plan.node_row[node] >= 0
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                n_term += plan.edge_row[e] >= 0
        needed[0], needed[1] = max(needed[0], n_valued), max(needed[1], n_term)
        needed[2] = max(needed[2], n)
        live_ptr[segment + 1] = at + n
    return Routes(order, segment_ptr, live_ptr, live[: live_ptr[-1]].copy(), needed, np.full(1, n_open, np.int64))


@kernel
def reordered(values, row):
    """Return values[:, row], without the detours of an array that may be indexed in any way."""
    out = np.empty((values.shape[0], row.size), values.dtype)
    for column in range(values.shape[0]):
        x, y = values[column], out[column]
        for place in range(row.size):
            y[place] = x[row[place]]
    return out


@kernel
def segment_of(segment_ptr, place):
    """Return the segment that holds a place."""
    return np.searchsorted(segment_ptr, place, side="right") - 1


@kernel
def block_size(segment_ptr, lo, n_block, end):
    """Return how many rows from `lo` on to evaluate together: at most n_block, before `end`, of one segment."""
    return min(n_block, end - lo, segment_ptr[segment_of(segment_ptr, lo) + 1] - lo)
