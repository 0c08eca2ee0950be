"""The k most probable completions of rows, by max-product (`bayesjpt.kernels.best`).

Values are compared by the mass of what is recorded: the cell of a grid point, a whole number, a label. A dictionary is
one distribution of its column, so only the sums above it are maximised instead of summed:

      put in      at each slot the k best values of its column, of the likeliest values of each of its leaves
      collected   the slots that the root's k best parts take, and which of their values

What is found is then scored exactly, over all paths, by a pass up, and sorted by that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels import rows
from bayesjpt.kernels.best import best, best_inputs, insert, make_parts
from bayesjpt.kernels.cells import row_cells
from bayesjpt.kernels.leaf import leaf_buffer, leaf_log_mass, leaf_mode
from bayesjpt.kernels.passes import gather_weights, up
from bayesjpt.kernels.upward import LEAF_KIND, NARROWEST_CELL, prepare_coefficients, root_log_value, upward
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, by_address, keep
from bayesjpt.numerics.jit import inlined, kernel
from bayesjpt.numerics.recording_grid import grid_point


@by_address
class Candidates(NamedTuple):
    """Where the candidate values of each slot lie, and the table of their scores under all slots of their column.

    Attributes
    ----------
    slot_first, slot_last : int64 (n_slot,)
        Candidates of each slot. Slots over one column of labels share all of its labels.
    column_first, column_last : int64 (n_column,)
    slot_rank : int64 (n_slot,)
        Position among the slots of its column.
    table_at : int64 (n_column,)
        Where the scores of a column's candidates lie, (n_slot_of_column, n_candidate) of them.
    column_slot_ptr : int64 (n_column + 1,), column_slot : int64 (n_slot,)
    n_table : int64 (1,)
    n_label : int64 (n_column,)
        Labels of training rows; 0 for columns of numbers.
    grid : float64 (3, n_column)
        Step, recorded numbers per unit and offset of the grid of each column, as `bayesjpt.queries.complete.grid`.
    extra_ptr : int64 (n_column + 1,), extra : float64 (n_extra,)
        Values of each column that are candidates whatever the leaves say: atoms, levels of whole numbers.
    """

    slot_first: np.ndarray
    slot_last: np.ndarray
    column_first: np.ndarray
    column_last: np.ndarray
    slot_rank: np.ndarray
    table_at: np.ndarray
    column_slot_ptr: np.ndarray
    column_slot: np.ndarray
    n_table: np.ndarray
    n_label: np.ndarray
    grid: np.ndarray
    extra_ptr: np.ndarray
    extra: np.ndarray


def make_candidates(
    plan: Plan, n_label: np.ndarray, grid: np.ndarray, extra: Sequence[Sequence[float]], k: int
) -> Candidates:
    """Return the arrangement of candidates for the k best values.

    `n_label` and `grid` are as in `Candidates`; `extra` are the further values of each column.
    """
    n_column = plan.column_resolution.size
    n_leaf = np.diff(plan.child_ptr)[plan.slot_node]
    n_leaf[plan.kind[plan.slot_node] == arrays.LEAF] = 1
    n_extra = np.array([len(values) for values in extra], np.int64)
    labels = n_label[plan.slot_column]
    # more than k points of each leaf: the best of a mixture lie near the best of its leaves, not always at them
    n_of_slot = np.where(labels > 0, 0, n_leaf * (2 * k + 1) + n_extra[plan.slot_column])
    slot_first, slot_last = np.empty((2, plan.slot_node.size), np.int64)
    column_first, column_last = np.empty((2, n_column), np.int64)
    rank = np.empty(plan.slot_node.size, np.int64)
    column_slots = [np.flatnonzero(plan.slot_column == column) for column in range(n_column)]
    at = 0
    for column, slots in enumerate(column_slots):
        column_first[column] = at
        rank[slots] = np.arange(slots.size)
        for slot in slots:
            slot_first[slot] = at
            slot_last[slot] = at + (n_of_slot[slot] or labels[slot])
            at += int(n_of_slot[slot])
        at += int(n_label[column])
        column_last[column] = at
    n_slot = np.array([slots.size for slots in column_slots])
    size = n_slot * (column_last - column_first)
    return Candidates(
        slot_first=slot_first,
        slot_last=slot_last,
        column_first=column_first,
        column_last=column_last,
        slot_rank=rank,
        table_at=np.cumsum(size) - size,
        column_slot_ptr=np.cumsum([0, *n_slot]).astype(np.int64),
        column_slot=np.concatenate([*column_slots, np.empty(0, np.int64)]).astype(np.int64),
        n_table=np.array([size.sum()], np.int64),
        n_label=n_label.astype(np.int64),
        grid=np.ascontiguousarray(grid),
        extra_ptr=np.cumsum([0, *n_extra]).astype(np.int64),
        extra=np.array([value for values in extra for value in values], np.float64),
    )


@inlined
def _leaf_recorded(plan, theta, leaf, x):
    """Return the log probability of what is recorded as x, a grid point, whole number or label, under one leaf."""
    half = 0.5 * plan.column_resolution[plan.feature_column[plan.leaf_value[leaf]]]
    reach = half
    # a cell whose ends would round to one number: a wider one, scaled down to its share of it
    if half > 0.0 and not plan.leaf_is_atom[leaf]:
        reach = max(half, NARROWEST_CELL * abs(x - plan.feature_offset[plan.leaf_value[leaf]]))
    value = leaf_log_mass(plan, theta, leaf, x - reach, x + reach)
    return value + math.log(half / reach) if reach > half else value


@inlined
def _slot_recorded(plan, log_weight, theta, slot, x):
    """Return the log probability of what is recorded as x under a slot."""
    node = plan.slot_node[slot]
    if plan.kind[node] == LEAF_KIND:
        return _leaf_recorded(plan, theta, plan.leaf_of[node], x)
    first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
    terms = np.empty(last - first)
    top = -np.inf
    for e in range(first, last):
        terms[e - first] = log_weight[e] + _leaf_recorded(plan, theta, plan.leaf_of[plan.child[e]], x)
        top = max(top, terms[e - first])
    if top == -np.inf:
        return -np.inf
    total = 0.0
    for t in terms:
        total += math.exp(t - top)
    # a probability: rounding must not lift it above one
    return min(top + math.log(total), 0.0)


@kernel
def _best_point(plan, theta, leaf, lo, hi, grid, buffer):
    """Return (point, log probability of what is recorded there): of a leaf's points from lo to hi the likeliest."""
    if not lo <= hi:
        return lo, -np.inf
    x, log_density = leaf_mode(plan, theta, leaf, lo, hi, buffer)
    if log_density == -np.inf:
        return x, -np.inf
    # modes of rounded families come from standardised grids, and are whole up to the last digit alone
    step, per_unit, offset, resolution = grid
    point = min(max(grid_point(x, step, per_unit, offset, 0), lo), hi)
    score = _leaf_recorded(plan, theta, leaf, point)
    if score > -np.inf or step == resolution:
        return point, score
    # steps are wider than what is recorded: an event may end between the mode and its point, or have no point in it
    for moved in (1, -1):
        other = grid_point(x, step, per_unit, offset, moved)
        other_score = _leaf_recorded(plan, theta, leaf, other) if lo <= other <= hi else -np.inf
        if other_score > score:
            point, score = other, other_score
    if score == -np.inf:
        point = min(max(grid_point(x, resolution, per_unit, 0.0, 0), lo), hi)
        score = _leaf_recorded(plan, theta, leaf, point)
    return point, score


@kernel
def _fill_best_points(plan, theta, leaf, grid, buffer, out):
    """Fill the points to which a leaf gives the largest probabilities, however many modes it has.

    The mode of an interval is its best point; what lies left and right of it are two intervals more.
    """
    n_interval = 1
    lo, hi = np.empty(out.size + 1), np.empty(out.size + 1)
    point, score = np.empty(out.size + 1), np.empty(out.size + 1)
    lo[0], hi[0] = -np.inf, np.inf
    point[0], score[0] = _best_point(plan, theta, leaf, -np.inf, np.inf, grid, buffer)
    for rank in range(out.size):
        best = np.argmax(score[:n_interval])
        out[rank] = point[best]
        if score[best] == -np.inf:
            # fewer points than places: repeats have the same mark, and count once
            out[rank:] = out[0]
            break
        # split the interval at its best point: the right part is new, the left part stays in place
        # one interval more in each round: out.size + 1 places are enough
        lo[n_interval], hi[n_interval] = grid_point(out[rank], grid[0], grid[1], grid[2], 1), hi[best]
        hi[best] = grid_point(out[rank], grid[0], grid[1], grid[2], -1)
        for k in (best, n_interval):
            point[k], score[k] = _best_point(plan, theta, leaf, lo[k], hi[k], grid, buffer)
        n_interval += 1


@kernel
def _fill_candidates(plan, candidates, theta, missing, k, buffer, centre, value):
    """Fill the candidates of every slot whose column is missing: what is recorded, and a value there that is possible.

    The two differ where a leaf's cell cuts through the grid point's.
    """
    n_of_leaf = 2 * k + 1
    for slot in range(plan.slot_node.size):
        column = plan.slot_column[slot]
        at = candidates.slot_first[slot]
        if not missing[column]:
            continue
        if candidates.n_label[column] > 0:
            for label in range(candidates.n_label[column]):
                centre[at + label] = label
                value[at + label] = label
            continue
        node = plan.slot_node[slot]
        resolution = plan.column_resolution[column]
        step = candidates.grid[0, column] if candidates.grid[0, column] != 0.0 else resolution
        grid = step, candidates.grid[1, column], candidates.grid[2, column], resolution
        first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
        is_leaf = plan.kind[node] == LEAF_KIND
        for j in range(1 if is_leaf else last - first):
            leaf = plan.leaf_of[node if is_leaf else plan.child[first + j]]
            if plan.leaf_is_atom[leaf]:
                centre[at : at + n_of_leaf], _ = leaf_mode(plan, theta, leaf, -np.inf, np.inf, buffer)
            else:
                _fill_best_points(plan, theta, leaf, grid, buffer, centre[at : at + n_of_leaf])
            for i in range(at, at + n_of_leaf):
                value[i] = min(max(centre[i], plan.leaf_lower[leaf]), plan.leaf_upper[leaf])
            at += n_of_leaf
        for x in candidates.extra[candidates.extra_ptr[column] : candidates.extra_ptr[column + 1]]:
            centre[at] = x
            value[at] = x
            at += 1


@kernel
def _score(plan, candidates, log_weight, theta, slot, candidate, centre, table):
    """Return the log mass of a candidate of a slot's column under the slot, from the table where it is there."""
    column = plan.slot_column[slot]
    first = candidates.column_first[column]
    length = candidates.column_last[column] - first
    at = candidates.table_at[column] + candidates.slot_rank[slot] * length + candidate - first
    if math.isnan(table[at]):
        # NaN until a candidate is first scored under this draw
        table[at] = _slot_recorded(plan, log_weight, theta, slot, centre[candidate])
    return table[at]


@kernel
def _mark(column, x):
    """Return a hash of a column's value; marks of parts add up to that of the whole."""
    # x + 0.0 turns -0.0 into 0.0; the rest is splitmix64's finaliser
    bits = np.uint64(np.float64(x + 0.0).view(np.int64)) + np.uint64(column + 1) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@kernel
def _fill_best_of_slots(plan, candidates, log_weight, theta, missing, centre, value, table, parts):
    """Fill the k best candidates of every slot whose column is missing."""
    for slot in range(plan.slot_node.size):
        column = plan.slot_column[slot]
        if not missing[column]:
            continue
        n = 0
        for candidate in range(candidates.slot_first[slot], candidates.slot_last[slot]):
            score = _score(plan, candidates, log_weight, theta, slot, candidate, centre, table)
            entry = (score, _mark(column, value[candidate]), np.int64(candidate), np.int64(0))
            n = insert(parts.score[slot], parts.mark[slot], parts.which[slot], parts.rank[slot], n, entry)
        parts.length[slot] = n


@kernel
def _put_slots(plan, work, i, hidden, of_slots, parts, m):
    """Put the parts of slots in at the inputs of a graph: the best candidates where the cell is hidden, else the row's.

    What the row's cell is worth goes into m, (n_node, k), too: it is the same for all completions.
    """
    for slot in range(plan.slot_node.size):
        if hidden[plan.slot_column[slot]]:
            parts.score[slot], parts.mark[slot] = of_slots.score[slot], of_slots.mark[slot]
            parts.which[slot], parts.length[slot] = of_slots.which[slot], of_slots.length[slot]
            continue
        at = work.node_at[plan.slot_node[slot]]
        s = work.s[at, i]
        parts.score[slot, 0] = work.m[at, i] + math.log(s) if s > 0.0 else -np.inf
        # observed cells are the same in all completions: they do not tell two apart
        parts.mark[slot, 0] = np.uint64(0)
        parts.length[slot] = 1 if s > 0.0 else 0
        m[slot] = parts.score[slot, 0]


@kernel
def fill_modes(plan, graph, candidates, values, missing, params, n_block, log_evidence, log_mass, out):
    """Fill the k most probable completions of each row under each draw.

    Parameters
    ----------
    plan, graph, found : Plan, Graph, Candidates
        The graph is `slot_graph` of the plan.
    values : float64 (n_column, n_row)
        In the user's units; missing cells hold any valid filler.
    missing : bool (n_column, n_row)
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    n_block : int
        Rows that are evaluated together.
    log_evidence : float64 (n_draw, n_row)
        Filled with the log density of each row's observed cells, in the families' units.
    log_mass : float64 (n_draw, n_row, k)
        Filled with the log probability of what is recorded in the missing cells given the observed ones; -inf, with
        values NaN, where there are fewer completions.
    out : float64 (n_draw, n_row, k, n_column)
        Filled with rows, in the user's units.
    """
    filled = row_cells(plan, values, missing)
    made = make_work(plan, filled, n_block)
    made_parts, made_best = make_parts(graph, log_mass.shape[2]), make_parts(graph, log_mass.shape[2])
    plan, graph, candidates, cells, work = (
        borrowed(plan),
        borrowed(graph),
        borrowed(candidates),
        borrowed(filled),
        borrowed(made),
    )
    parts, of_slots = borrowed(made_parts), borrowed(made_best)
    log_weights, thetas = borrowed(params[0]), borrowed(params[1])
    n_row, k = log_mass.shape[1], log_mass.shape[2]
    n_node, n_column = graph.node.size, missing.shape[0]
    buffer = leaf_buffer(plan)
    n_candidate = 0
    any_missing = np.zeros(n_column, np.bool_)
    for column in range(n_column):
        n_candidate = max(n_candidate, candidates.column_last[column])
        any_missing[column] = missing[column].any()
    centre, value = np.empty(n_candidate), np.empty(n_candidate)
    table = np.empty(candidates.n_table[0])
    weight = np.empty((graph.edge.size, 1))
    m, s, total = np.empty((n_node, k)), np.empty((n_node, k)), np.empty(k)
    stack, taken = np.empty((n_node, 2), np.int64), np.empty((n_node, 2), np.int64)
    final, final_mark = np.empty(k), np.empty(k, np.uint64)
    final_rank, unused = np.empty(k, np.int64), np.empty(k, np.int64)
    picks = np.empty((k, n_column), np.int64)
    for draw in range(log_mass.shape[0]):
        log_weight, theta = log_weights[draw], thetas[draw]
        prepare_coefficients(plan, cells, theta, work)
        gather_weights(graph, log_weight.reshape(1, log_weight.size), weight)
        _fill_candidates(plan, candidates, theta, any_missing, k, buffer, centre, value)
        table[:] = np.nan
        _fill_best_of_slots(plan, candidates, log_weight, theta, any_missing, centre, value, table, of_slots)
        for lo in range(0, n_row, n_block):
            n = min(n_block, n_row - lo)
            upward(plan, cells, log_weight, work, lo, n)
            root_log_value(plan, work, n, log_evidence[draw, lo : lo + n])
            for i in range(n):
                row = lo + i
                log_mass[draw, row] = -np.inf
                out[draw, row] = np.nan
                # nothing completes a row that is impossible
                if log_evidence[draw, row] == -np.inf:
                    continue
                hidden = missing[:, row]
                _put_slots(plan, work, i, hidden, of_slots, parts, m)
                best(graph, weight, 0, parts)
                n_found = parts.length[n_node - 1]
                for r in range(n_found):
                    for j in range(best_inputs(graph, parts, r, stack, taken)):
                        slot = taken[j, 0]
                        picks[r, plan.slot_column[slot]] = parts.which[slot, taken[j, 1]]
                for slot in range(plan.slot_node.size):
                    column = plan.slot_column[slot]
                    for r in range(k if hidden[column] and n_found > 0 else 0):
                        # entries behind the last that was found repeat it, and are not read
                        pick = picks[min(r, n_found - 1), column]
                        # all slots of the column, not only those on the best path: the score is exact over all paths
                        m[slot, r] = _score(plan, candidates, log_weight, theta, slot, pick, centre, table)
                up(graph, weight, m, s)
                rows.log_value(m[n_node - 1], s[n_node - 1], total)
                n_final = 0
                for r in range(n_found):
                    entry = (min(total[r] - log_evidence[draw, row], 0.0), np.uint64(r), np.int64(r), np.int64(0))
                    n_final = insert(final, final_mark, final_rank, unused, n_final, entry)
                for r in range(n_final):
                    log_mass[draw, row, r] = final[r]
                    for column in range(n_column):
                        pick = picks[final_rank[r], column]
                        out[draw, row, r, column] = value[pick] if hidden[column] else values[column, row]
    keep(filled)
    keep(made)
    keep(made_parts)
    keep(made_best)
