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
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.counter_rng import mix
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.ordering import n_up_to, stable_order

_FEW = 32
"""Rows below which a group joins the next."""

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
        Rows that may come to a split without an observed cell of its column; none is left out.
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


def make_routes(plan: Plan, values: np.ndarray, observed: np.ndarray, half: np.ndarray | None = None) -> Routes:
    """Return the Routes of a table's rows.

    Parameters
    ----------
    plan : Plan
    values : float64 (n_column, n_row), the user's units
    observed : bool (n_column, n_row)
    half : float64 (n_column, n_row), optional
        Half widths of the cells that numbers stand for, where they do: a cell may reach both sides of a threshold.
    """
    n_row = values.shape[1]
    if not (plan.split_column >= 0).any() or n_row == 0:
        return no_routes(plan, n_row)
    widest = np.zeros(plan.column_resolution.size)
    if half is not None:
        np.maximum.at(widest, plan.feature_column, _NARROW * np.abs(plan.feature_offset))
        widest = np.where(plan.column_resolution > 0.0, widest + half.max(axis=1), 0.0)
    values, observed = np.ascontiguousarray(values).view(), np.ascontiguousarray(observed).view()
    for view in (values, observed):  # of a Table or made for a question: compiled once for both
        view.flags.writeable = False
    return _make_routes(plan, values, observed, widest)


@kernel
def _longer(array, size):
    """Return an array with room for twice `size` entries that begins as the one given."""
    out = np.empty(2 * size, array.dtype)
    copy_into(array, out)
    return out


@kernel
def _part(rows, x, known, lower, upper, flags, rest):
    """Move the rows that reach a child to the front, in their order, the others behind; return how many do.

    The child is reached by the numbers of an interval, or by the codes that `flags` tell, empty for numbers.
    """
    is_label = flags.size > 0
    n, n_rest = 0, 0
    for i in range(rows.size):
        row = rows[i]
        value = x[row] if known[row] else np.nan
        reaches = lower <= value <= upper
        if is_label:
            # a missing cell is NaN: every comparison fails, and it is left among the rest
            # unsigned: numba looks at a signed index whether it is negative
            reaches = value >= 0.0 and flags[np.uint32(value if value >= 0.0 else 0.0)]
        # in place: n <= i, so that only rows that were read are overwritten
        rows[n], rest[n_rest] = row, row
        n += reaches
        n_rest += not reaches
    copy_into(rest[:n_rest], rows[n:])
    return n


@kernel
def _descend(plan, leads, decides, values, observed, half):
    """Return (rows, party_ptr, start): rows by parties that stand at the same node, and the node of each party.

    Node by node, rows part where a known value goes one way. Those that come to an exit together are a party; any other
    row is one by itself, at the node where its value does not decide.
    """
    n_row = values.shape[1]
    permuted, rows, rest = (
        np.arange(n_row).astype(np.uint32),
        np.empty(n_row, np.uint32),
        np.empty(n_row + 1, np.uint32),
    )
    party_ptr, start = np.zeros(n_row + 1, np.int64), np.empty(n_row, np.int32)
    stack = np.empty((plan.kind.size + 1, 3), np.int64)
    stack[0] = plan.kind.size - 1, 0, n_row
    depth, n_party, n = 1, 0, 0
    while depth > 0:
        depth -= 1
        node, begin, end = stack[depth]
        column = decides[node]
        if leads[node] and column >= 0 and half[column] == 0.0:
            first = depth
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                at = plan.edge_label_at[e]
                flags = plan.label_reaches[at if at >= 0 else plan.label_reaches.size :]
                ends = plan.edge_lower[e], plan.edge_upper[e]
                n_taken = _part(permuted[begin:end], values[column], observed[column], ends[0], ends[1], flags, rest)
                if n_taken > 0:
                    stack[depth] = np.int64(plan.child[e]), begin, begin + n_taken
                    depth += 1
                begin += n_taken
            for i in range((depth - first) // 2):  # the first child comes first
                for k in range(3):
                    one, other = stack[first + i, k], stack[depth - 1 - i, k]
                    stack[first + i, k], stack[depth - 1 - i, k] = other, one
        for i in range(begin, end):
            rows[n] = permuted[i]
            if i == begin or leads[node]:
                start[n_party] = node
                n_party += 1
            n += 1
            party_ptr[n_party] = n
    return rows, party_ptr[: n_party + 1], start[:n_party]


@kernel
def _find_exits(plan, leads, decides, start, leader, values, observed, half):
    """Return (exit_ptr, exits, digest, is_open): the exits of some rows, from left to right, and a hash of each row's.

    Each row, `leader`, begins at its node `start`.
    """
    n_node = plan.kind.size
    child_ptr, child = plan.child_ptr, plan.child
    lower, upper, label_at, label_reaches = plan.edge_lower, plan.edge_upper, plan.edge_label_at, plan.label_reaches
    stack, visited = np.empty(n_node + 1, np.int32), np.full(n_node, -1, np.int64)
    exit_ptr, exits = np.zeros(start.size + 1, np.int64), np.empty(start.size + n_node, np.int32)
    digest = np.zeros(start.size, np.uint64)
    n_open = 0
    for party in range(start.size):
        is_open, row = False, leader[party]
        n = exit_ptr[party]
        # one party has at most n_node exits
        if n + n_node > exits.size:
            exits = _longer(exits, n + n_node)
        stack[0] = start[party]
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if not leads[node]:
                exits[n] = node
                n += 1
                digest[party] = mix(digest[party] + np.uint64(node + 1))
                continue
            column = decides[node]
            known = column >= 0 and observed[column, row]
            is_open |= column >= 0 and not known
            x = values[column, row] if known else 0.0
            width = half[column] + _NARROW * abs(x) if known and half[column] > 0.0 else 0.0
            # pushed from the right: exits come off the stack from left to right
            for e in range(child_ptr[node + 1] - 1, child_ptr[node] - 1, -1):
                if known:
                    if label_at[e] >= 0:
                        if not label_reaches[label_at[e] + int(x)]:
                            continue
                    elif not (x + width >= lower[e] and x - width <= upper[e]):
                        continue
                # a node that two splits lead to is an exit once
                if visited[child[e]] != party:
                    visited[child[e]] = party
                    stack[depth] = child[e]
                    depth += 1
                if known and width == 0.0:  # children are disjoint
                    break
        exit_ptr[party + 1] = n
        n_open += is_open
    return exit_ptr, exits, digest, n_open


@kernel
def _sort_by(first, digest, n_node):
    """Return the parties by their first exit and then by digest, in their order where both are equal."""
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
            copy_into(group[stable_order(digest[group])], group)
    return order


@kernel
def _segments(first, digest, order, size):
    """Return where segments of the ordered parties begin and end: those of equal exits, small ones joined."""
    out = [np.int64(0)]
    n_since, end = 0, 0
    while end < order.size:
        begin, n = end, 0
        while (
            end < order.size and first[order[end]] == first[order[begin]] and digest[order[end]] == digest[order[begin]]
        ):
            n += size[order[end]]
            end += 1
        # `out` ends with the end of the last segment; what came since then is small
        if n >= _FEW and n_since > 0:
            out.append(np.int64(begin))
            n_since = 0
        n_since += n
        if n_since >= _FEW:
            out.append(np.int64(end))
            n_since = 0
    if n_since > 0:
        out.append(np.int64(order.size))
    return np.array(out)


@kernel
def _mark_below(plan, node, alive, marked, n):
    """Mark a node and all below it, append them to the n nodes found so far, and return how many these are then."""
    if alive[node]:
        return n
    alive[node] = True
    marked[n] = node
    at = n
    n += 1
    # the list of what was found is the queue of what to look below
    while at < n:
        for e in range(plan.child_ptr[marked[at]], plan.child_ptr[marked[at] + 1]):
            child = plan.child[e]
            if not alive[child]:
                alive[child] = True
                marked[n] = child
                n += 1
        at += 1
    return n


@kernel
def _mark_above(plan, lead, leads, decides, alone, alive, marked, n):
    """Mark the nodes that lead to marked ones, and what these need besides; count as in `_mark_below`.

    `lead` are the nodes that `leads` tells.
    """
    # ascending, children first: what leads to a marked node is marked before its own parents are looked at
    for node in lead:
        needed = node == alive.size - 1
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            needed |= alive[plan.child[e]] and alone[plan.child[e]]  # leaves of labels have many parents
        if needed and not alive[node]:
            alive[node] = True
            marked[n] = node
            n += 1
    # parents have larger numbers than their children, so parents come first here
    for node in lead[::-1]:
        if alive[node] and decides[node] < 0:
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                child = plan.child[e]
                if not leads[child]:  # no exit of these rows, where another parent brought this node in
                    n = _mark_below(plan, child, alive, marked, n)
                elif not alive[child]:  # a part in which a row reaches nothing: its value is zero, and must be there
                    alive[child] = True
                    marked[n] = child
                    n += 1
    return n


@kernel
def _deciding(plan):
    """Return (decides, alone): the column at splits by which rows are brought together, -1 elsewhere, int32 (n_node,);
    and whether a single way leads from the root to a node.

    These are splits on the only way from the root, whose children have no other parent. Below them lie trees of labels,
    whose sums share their children: there each column would be an exit of its own, and nearly all nodes are needed.
    """
    n_node = plan.kind.size
    n_parent = np.zeros(n_node, np.int64)
    for e in range(plan.child.size):
        n_parent[plan.child[e]] += 1
    alone = np.zeros(n_node, np.bool_)
    alone[n_node - 1] = True
    decides = np.full(n_node, -1, np.int32)
    for node in range(n_node - 1, -1, -1):
        if not alone[node]:
            continue
        apart = True
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            child = plan.child[e]
            alone[child] = n_parent[child] == 1
            apart &= alone[child]
        if apart:
            decides[node] = plan.split_column[node]
    return decides, alone


@kernel
def _n_open_below(plan, decides, observed):
    """Return how many rows lack a cell of a column that decides at another split: at most so many are not decided."""
    inner = np.zeros(observed.shape[0], np.bool_)
    for node in range(plan.kind.size):
        if plan.split_column[node] >= 0 and decides[node] < 0:
            inner[plan.split_column[node]] = True
    n = 0
    for row in range(observed.shape[1]):
        for column in range(observed.shape[0]):
            if inner[column] and not observed[column, row]:
                n += 1
                break
    return n


@kernel
def _make_routes(plan, values, observed, half):
    n_node, n_row = plan.kind.size, values.shape[1]
    decides, alone = _deciding(plan)
    leads = decides >= 0
    for node in range(n_node):
        for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
            leads[node] |= leads[plan.child[e]]
    lead = np.flatnonzero(leads)
    rows, party_ptr, start = _descend(plan, leads, decides, values, observed, half)
    leader = rows[party_ptr[:-1]]
    exit_ptr, exits, digest, n_open = _find_exits(plan, leads, decides, start, leader, values, observed, half)
    n_open += _n_open_below(plan, decides, observed)
    first = np.zeros(start.size, np.int32)
    for party in range(start.size):
        first[party] = exits[exit_ptr[party]] if exit_ptr[party + 1] > exit_ptr[party] else 0
    order = _sort_by(first, digest, n_node)
    ends = _segments(first, digest, order, party_ptr[1:] - party_ptr[:-1])
    place, row = 0, np.empty(n_row, np.int64)
    needed = np.zeros(3, np.int64)
    segment_ptr, live_ptr = np.zeros(ends.size, np.int64), np.zeros(ends.size, np.int64)
    alive = np.zeros(n_node, np.bool_)
    found, live = np.empty(n_node, np.int32), np.empty(n_node, np.int32)
    for segment in range(ends.size - 1):
        n = 0
        for k in range(ends[segment], ends[segment + 1]):
            party = order[k]
            for i in range(party_ptr[party], party_ptr[party + 1]):
                row[place] = rows[i]
                place += 1
            # parties of equal digests have equal exits, and lie side by side: marked once
            if k == ends[segment] or digest[party] != digest[order[k - 1]]:
                for at in range(exit_ptr[party], exit_ptr[party + 1]):
                    n = _mark_below(plan, exits[at], alive, found, n)
        segment_ptr[segment + 1] = place
        n = _mark_above(plan, lead, leads, decides, alone, alive, found, n)
        at = live_ptr[segment]
        if at + n > live.size:
            live = _longer(live, at + n)
        n_valued, n_term = 0, 0
        copy_into(np.sort(found[:n]), live[at:])
        # only what was marked is set back: a segment may need few of many nodes
        for node in found[:n]:
            alive[node] = False
            n_valued += plan.node_row[node] >= 0
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                n_term += plan.edge_row[e] >= 0
        needed[0], needed[1] = max(needed[0], n_valued), max(needed[1], n_term)
        needed[2] = max(needed[2], n)
        live_ptr[segment + 1] = at + n
    return Routes(row, segment_ptr, live_ptr, live[: live_ptr[-1]].copy(), needed, np.full(1, n_open, np.int64))


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
    return n_up_to(segment_ptr, place) - 1


@kernel
def block_size(segment_ptr, lo, n_block, end):
    """Return how many rows from `lo` on to evaluate together: at most n_block, before `end`, of one segment."""
    return min(n_block, end - lo, segment_ptr[segment_of(segment_ptr, lo) + 1] - lo)
