"""Cells into which the values of one column are cut, under one draw, so that little is lost of what they tell.

What a value tells about anything outside its column it tells through the slot that it comes from. So sorting values
into cells loses at most what the cells lose of the information about that slot, a sum over the cells:

      I(cell; slot) = sum over cells of   sum over slots i of  p_i log(p_i / p),     up to the entropy of the slot

Every cell is halved, and halved again. Where densities are smooth on its scale, halving divides the loss by four, so
that what both halvings win agrees up to that factor; cells where it does not agree are split. So are cells that hold
most of a likelihood, in which halvings may see nothing. A cell of a single value stays whole.

      point 0     1      2      3     4         quarters: what is summed
      cell  |-----+------+------+-----|         halves, cell: what tells how sums converge
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.families import dispatch
from bayesjpt.kernels.leaf import WHOLE_CUT, leaf_cdf
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.ordering import stable_order

_NEGLIGIBLE = 1e-11  # of a row: where a leaf or cell holds less is not looked at
_MOST = 0.5  # of a likelihood, in one cell: its shape may be hidden there
_NEAR_ZERO = 1.0 / 16.0  # where a cell that begins at zero is cut: some densities have no scale there
_DOUBT = 0.1  # of what the second halving wins: both might agree by chance


class Start(NamedTuple):
    """Cells to begin with.

    Attributes
    ----------
    ptr : int32 (n_target + 1,)
    end : float64 (n_end,)
        Ends of each column's cells, ascending, in the user's units, codes of labels; a value equal to an end lies below
        it. The first is -inf or below all values, the last is not below any.
    whole, from_zero : bool (n_target,)
        Whether the column holds whole numbers or codes; whether densities may be infinite at zero.
    """

    ptr: np.ndarray
    end: np.ndarray
    whole: np.ndarray
    from_zero: np.ndarray


class Grid(NamedTuple):
    """Buffers for the cells of one column under one draw.

    Attributes
    ----------
    point : float64 (n_point,), below : float64 (n_entry, n_point)
        Ends of cells and of their quarters; the probability of values up to them under each leaf of the column.
    between : int32 (n_point, 2)
        Earlier points to either side of each; the same for those at the beginning.
    cell : int32 (n_cell, 5)
        Numbers of each cell's points.
    fault, hidden : float64 (n_cell,)
        By how much both halvings disagree, nats; how much of a row hides in the cell, 0 where all is known.
    total : float64 (n_cell,)
        Share of rows.
    """

    point: np.ndarray
    below: np.ndarray
    between: np.ndarray
    cell: np.ndarray
    fault: np.ndarray
    hidden: np.ndarray
    total: np.ndarray


@kernel
def make_grid(slots, start, n_split):
    """Return buffers that hold the cells of any column after `n_split` splits, whose number they limit."""
    n_cell, n_entry = 1, 1
    for t in range(start.whole.size):
        n_cell = max(n_cell, np.int64(start.ptr[t + 1] - start.ptr[t]) + n_split)
        first, last = slots.entry_ptr[slots.ptr[t]], slots.entry_ptr[slots.ptr[t + 1]]
        n_entry = max(n_entry, np.int64(last - first))
    n_point = 4 * n_cell + 5
    return Grid(
        np.empty(n_point),
        np.empty((n_entry, n_point)),
        np.empty((n_point, 2), np.int32),
        np.empty((n_cell, 5), np.int32),
        np.empty(n_cell),
        np.empty(n_cell),
        np.empty(n_cell),
    )


@kernel
def _fill_whole_cdf(family, point, between, first, nothing, units, parameters, constants, below):
    offset, scale = units
    for k in range(first, below.size):
        lo, hi = between[k]
        # a cdf is monotone: it is flat between two points with next to nothing between them; lo == hi has no neighbours
        if lo != hi and below[hi] - below[lo] < nothing:
            below[k] = below[lo]
        elif math.isinf(point[k]):
            below[k] = 1.0 if point[k] > 0.0 else 0.0
        else:
            below[k] = dispatch.cdf(family, (point[k] - offset) / scale, parameters, constants)


@kernel
def _fill_leaf_cdf(plan, theta, leaf, point, between, first, nothing, below):
    """Fill the probability of values up to each point from the first on; it is known of those before.

    Between two points that hold less than `nothing` between them it is that of the lower one.
    """
    if plan.leaf_cut[leaf] == WHOLE_CUT:
        feature = plan.leaf_value[leaf]
        units = plan.feature_offset[feature], plan.feature_scale[feature]
        parameters = theta[plan.theta_at[leaf] : plan.theta_at[leaf] + plan.theta_len[leaf]]
        constants = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        _fill_whole_cdf(plan.leaf_family[leaf], point, between, first, nothing, units, parameters, constants, below)
    else:
        for k in range(first, below.size):
            below[k] = leaf_cdf(plan, theta, leaf, point[k])


@kernel
def _middle(lo, hi, kind):
    """Return where an interval above lo and up to hi is cut; hi where it cannot be.

    `kind` tells whether its column holds whole numbers, and whether zero is a special place.
    """
    whole, from_zero = kind
    middle = _NEAR_ZERO * hi if from_zero and lo == 0.0 else lo + 0.5 * (hi - lo)
    if whole:
        middle = math.floor(middle)
    # false for the infinity or NaN of a cell with an infinite end, too: it stays whole
    return middle if lo < middle < hi else hi


@kernel
def _cut(grid, n_point, lo, hi, kind):
    """Return the number of the point that cuts the interval between two points, and how many there are then."""
    middle = _middle(grid.point[lo], grid.point[hi], kind)
    if middle == grid.point[hi]:
        return hi, n_point
    grid.point[n_point] = middle
    grid.between[n_point, 0], grid.between[n_point, 1] = lo, hi
    return n_point, n_point + 1


@kernel
def _quarter(grid, cell, n_point, kind):
    """Set the points of a cell whose ends and middle are known; return how many there are then."""
    points = grid.cell[cell]
    points[1], n_point = _cut(grid, n_point, points[0], points[2], kind)
    points[3], n_point = _cut(grid, n_point, points[2], points[4], kind)
    return n_point


@kernel
def _add_term(p, total):
    # p log p tends to 0
    return p * math.log(p / total) if p > 0.0 else 0.0


@kernel
def _judge(slots, t, weight, buffer, grid, cell):
    """Fill what is known of one cell; `weight` is that of every entry in a row, `buffer` float64 (2, 4)."""
    points = grid.cell[cell]
    base = slots.entry_ptr[slots.ptr[t]]
    share, total = buffer[0], buffer[1]
    total[:] = 0.0
    hidden = 0.0
    for k in range(base, slots.entry_ptr[slots.ptr[t + 1]]):
        below = grid.below[k - base]
        for j in range(4):
            total[j] += weight[k] * max(below[points[j + 1]] - below[points[j]], 0.0)
        if below[points[4]] - below[points[0]] > _MOST:
            hidden += weight[k]
    halves = total[0] + total[1], total[2] + total[3]
    all_of_it = halves[0] + halves[1]
    whole, halved, quartered = 0.0, 0.0, 0.0
    for slot in range(slots.ptr[t], slots.ptr[t + 1]):
        share[:] = 0.0
        for k in range(slots.entry_ptr[slot], slots.entry_ptr[slot + 1]):
            below = grid.below[k - base]
            for j in range(4):
                share[j] += weight[k] * max(below[points[j + 1]] - below[points[j]], 0.0)
        for j in range(4):
            quartered += _add_term(share[j], total[j])
        halved += _add_term(share[0] + share[1], halves[0]) + _add_term(share[2] + share[3], halves[1])
        whole += _add_term(share[0] + share[1] + share[2] + share[3], all_of_it)
    grid.total[cell] = all_of_it
    # a middle at the upper end: the cell cannot be cut
    can = points[2] != points[4]
    won, won_again = max(halved - whole, 0.0), max(quartered - halved, 0.0)
    # halving divides a smooth loss by four, so that 4 won_again = won; a third of the difference is what is still off
    grid.fault[cell] = abs(4.0 * won_again - won) / 3.0 + _DOUBT * won_again if can else 0.0
    grid.hidden[cell] = min(hidden, -whole) if can else 0.0


@kernel
def _evaluate(plan, slots, theta, t, weight, grid, first, n_point):
    """Fill what lies below some new points under each leaf."""
    base = slots.entry_ptr[slots.ptr[t]]
    for k in range(base, slots.entry_ptr[slots.ptr[t + 1]]):
        below = grid.below[k - base, :n_point]
        if weight[k] < _NEGLIGIBLE:
            below[first:] = 0.0
        else:
            nothing = _NEGLIGIBLE / weight[k]
            _fill_leaf_cdf(plan, theta, slots.entry_leaf[k], grid.point, grid.between, first, nothing, below)


@kernel
def _chosen(grid, n_cell, tolerance, split):
    """Mark the cells to be split: those that hide too much, and the worst until the rest may stay as it is."""
    n = 0
    left = 0.0
    for cell in range(n_cell):
        split[cell] = grid.hidden[cell] > 0.1 * tolerance
        n += split[cell]
        left += grid.fault[cell]
    if left > tolerance:
        # stable: equal faults are split in their order, the same on every machine
        for cell in stable_order(-grid.fault[:n_cell]):
            if left <= 0.5 * tolerance:
                break
            left -= grid.fault[cell]
            n += not split[cell]
            split[cell] = True
    return n


@kernel
def fill_grid(plan, slots, theta, t, start, weight, tolerance, grid):
    """Cut one column into cells under one draw, and return their number.

    Parameters
    ----------
    plan, slots : Plan, Slots
    theta : float64 (n_theta,)
    t : int
        Number of the column.
    start : Start
    weight : float64 (n_entry,)
        Share of rows that every entry of `slots` describes in its column.
    tolerance : float
        Nats by which halvings of all cells may disagree; a tenth of it may hide in a cell.
    grid : Grid
    """
    kind = start.whole[t], start.from_zero[t]
    n_cell = np.int64(start.ptr[t + 1] - start.ptr[t]) - 1
    n_point = n_cell + 1
    copy_into(start.end[start.ptr[t] : start.ptr[t + 1]], grid.point)
    grid.between[:n_point] = 0
    for cell in range(n_cell):
        grid.cell[cell, 0], grid.cell[cell, 4] = cell, cell + 1
        grid.cell[cell, 2], n_point = _cut(grid, n_point, cell, cell + 1, kind)
        n_point = _quarter(grid, cell, n_point, kind)
    _evaluate(plan, slots, theta, t, weight, grid, 0, n_point)
    buffer, split = np.empty((2, 4)), np.empty(grid.total.size, np.bool_)
    for cell in range(n_cell):
        _judge(slots, t, weight, buffer, grid, cell)
    while True:
        n = _chosen(grid, n_cell, tolerance, split)
        if n == 0 or n_cell + n > grid.total.size:
            return n_cell
        before, first = n_cell, n_point
        for cell in range(before):
            if split[cell]:
                points = grid.cell[cell]
                # the upper half before the lower one: that overwrites the points it is made of
                grid.cell[n_cell, 0], grid.cell[n_cell, 2], grid.cell[n_cell, 4] = points[2], points[3], points[4]
                # the old quarters are the middles of the halves: what is known there is used again
                points[2], points[4] = points[1], points[2]
                n_point = _quarter(grid, n_cell, _quarter(grid, cell, n_point, kind), kind)
                n_cell += 1
        _evaluate(plan, slots, theta, t, weight, grid, first, n_point)
        # only cells whose points are new
        for cell in range(n_cell):
            if cell >= before or split[cell]:
                _judge(slots, t, weight, buffer, grid, cell)


@kernel
def fill_quarters(slots, t, weight, grid, n_cell, mass, parents):
    """Fill the masses of all quarters, ascending, and return their number.

    Parameters
    ----------
    mass : float64 (n_slot, n_quarter)
        Share of rows in each slot of the column and quarter.
    parents : int32 (2, n_quarter)
        Numbers of each quarter's half, and of each half's cell, counted from 0 without gaps.
    """
    base = slots.entry_ptr[slots.ptr[t]]
    n, n_half, n_kept = 0, 0, 0
    for cell in stable_order(grid.point[grid.cell[:n_cell, 0]]):
        if grid.total[cell] < _NEGLIGIBLE:
            continue
        points = grid.cell[cell]
        for half in range(2):
            if points[2 * half] == points[2 * half + 2]:
                continue
            for j in range(2 * half, 2 * half + 2):
                lo, hi = points[j], points[j + 1]
                if lo == hi:
                    continue
                for slot in range(slots.ptr[t], slots.ptr[t + 1]):
                    mass[slot, n] = 0.0
                    for k in range(slots.entry_ptr[slot], slots.entry_ptr[slot + 1]):
                        mass[slot, n] += weight[k] * max(grid.below[k - base, hi] - grid.below[k - base, lo], 0.0)
                parents[0, n] = n_half
                n += 1
            parents[1, n_half] = n_kept
            n_half += 1
        n_kept += 1
    return n
