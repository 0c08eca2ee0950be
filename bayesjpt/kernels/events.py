"""Probabilities of boxes under many draws, and the shares of a column's leaves given boxes: the batch is draws.

What goes in at the leaves is the mass of an interval, or of several of one column. Collected is the root's value, or at
the leaves their share in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.plan import Plan
from bayesjpt.families import dispatch
from bayesjpt.kernels import rows
from bayesjpt.kernels.boxes import Boxes, make_groups
from bayesjpt.kernels.passes import batch_size, down, gather_weights, up
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.ends import lower_end, upper_end
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import logaddexp

_LOST = -1e300
"""Log mass, as families round it, of a cell so far out that no float tells it from 0: all of it is at one end."""


@kernel
def cut_log_mass(family, ends, cell, units, parameters, constants):
    """Return the log probability, at most 0, of the closed interval `ends` given a leaf's cell, in the user's units.

    `cell` is the pair of the cell's ends, `units` as `upper_end` takes them and the distance of neighbouring values, 0
    unless they are whole numbers. The families' units round, so ends are compared in the user's.

    The interval is weighed against the rest of the cell, not the whole: masses of narrow or far cells have few digits,
    and shares add up to 1.
    """
    (lo, hi), (lower, upper) = ends, cell
    if lo <= lower and hi >= upper:
        return 0.0
    lo, hi = max(lo, lower), min(hi, upper)
    if not lo <= hi:
        return -np.inf
    offset, scale, resolution, step = units
    # in a cell a few floats wide the space between two of them has a probability
    units = offset, scale, min(resolution, upper - lower)
    z_lo, z_hi = lower_end(lo, units), upper_end(hi, units)
    log_mass = dispatch.log_mass(family, z_lo, z_hi, parameters, constants)
    if lower == -np.inf and upper == np.inf:
        return log_mass
    z_lower, z_upper = lower_end(lower, units), upper_end(upper, units)
    if step > 0.0:
        # neighbours share no end
        z_lo, z_hi = upper_end(np.ceil(lo) - step, units), lower_end(np.floor(hi) + step, units)
    elif resolution == 0.0:
        # atoms, whose probabilities are parameters
        log_cell = dispatch.log_mass(family, z_lower, z_upper, parameters, constants)
        return min(log_mass - log_cell, 0.0) if log_cell > -np.inf else -np.inf
    log_rest = -np.inf
    if lo > lower:
        log_rest = dispatch.log_mass(family, z_lower, z_lo, parameters, constants)
    if hi < upper:
        log_rest = logaddexp(log_rest, dispatch.log_mass(family, z_hi, z_upper, parameters, constants))
    if max(log_mass, log_rest) <= _LOST:
        return 0.0 if lo <= lower else -np.inf
    return -logaddexp(0.0, log_rest - log_mass) if log_mass > -np.inf else -np.inf


@kernel
def _fill_interval(boxes, const, thetas, column, lo, hi, position, out):
    """Fill out, float64 (n_leaf of the column, n_draw), with the log masses of one interval; `position` is a buffer."""
    first = boxes.leaf_ptr[column]
    # holds the whole of every leaf, truncated or not
    if lo == -np.inf and hi == np.inf:
        out[:] = 0.0
        return
    for batch in range(boxes.batch_ptr[column], boxes.batch_ptr[column + 1]):
        family = boxes.batch_family[batch]
        units = boxes.batch_offset[batch], boxes.batch_scale[batch], boxes.batch_resolution[batch]
        spaced = (*units, boxes.batch_step[batch])
        constants = const[boxes.batch_const_at[batch] : boxes.batch_const_at[batch] + boxes.batch_const_len[batch]]
        for j in range(boxes.batch_first[batch], boxes.batch_first[batch + 1]):
            at, mass = boxes.leaf_at[j], out[j - first]
            if boxes.batch_at_once[batch]:
                # one leaf under all draws: its parameters stand one draw's length apart in the flat array
                for i in range(mass.size):
                    position[i] = at + i * thetas.shape[1]
                z_lo, z_hi = lower_end(lo, units), upper_end(hi, units)
                dispatch.fill_log_masses(family, z_lo, z_hi, thetas.ravel(), position, constants, mass)
            else:
                cell = (boxes.leaf_lower[j], boxes.leaf_upper[j])
                for i in range(mass.size):
                    parameters = thetas[i, at : at + boxes.leaf_len[j]]
                    mass[i] = cut_log_mass(family, (lo, hi), cell, spaced, parameters, constants)


@kernel
def fill_masses(boxes, const, thetas, mass):
    """Fill mass, float64 (n_mass, n_draw), with the log probabilities of all intervals and conditions under all leaves.

    `const` is the plan's, `thetas` float64 (n_draw, n_theta).
    """
    boxes, const, thetas, mass = borrowed(boxes), borrowed(const), borrowed(thetas), borrowed(mass)
    position = np.empty(mass.shape[1], np.int32)
    for condition in range(boxes.condition_column.size):
        column = boxes.condition_column[condition]
        n_leaf = boxes.leaf_ptr[column + 1] - boxes.leaf_ptr[column]
        first, last = boxes.interval_ptr[condition], boxes.interval_ptr[condition + 1]
        together = boxes.condition_at[condition]
        for interval in range(first, last):
            at = boxes.interval_at[interval]
            lo, hi = boxes.interval_lo[interval], boxes.interval_hi[interval]
            _fill_interval(boxes, const, thetas, column, lo, hi, position, mass[at : at + n_leaf])
            if last - first > 1:
                for j in range(n_leaf):
                    for i in range(mass.shape[1]):
                        # the first interval overwrites what the buffer held
                        one = mass[at + j, i]
                        mass[together + j, i] = one if interval == first else logaddexp(mass[together + j, i], one)


@kernel
def _put_masses(group, place, mass, m):
    for k in range(group.input_rank.size):
        copy_into(mass[place[group.input_column[k]] + group.input_rank[k]], m[k])


@kernel
def _fill_log_probability(group, place, mass, weight, m, s, out):
    """Fill the rows of out, float64 (n_box, n_draw), of the group's boxes; `place` is where columns' masses lie."""
    last = m.shape[0] - 1
    for box in group.box:
        _put_masses(group, place[box], mass, m)
        up(group.graph, weight, m, s)
        rows.log_value(m[last], s[last], out[box])


def fill_box_log_probability(plan: Plan, boxes: Boxes, params: Params, out: np.ndarray) -> None:
    """Fill out, float64 (n_draw, n_box), with the log probability of each box under each draw.

    `params` has ``log_weight`` (n_draw, n_edge) and ``theta`` (n_draw, n_theta).
    """
    groups, n_mass = make_groups(plan, boxes), int(boxes.n_mass[0])
    # -1 takes the place of the last condition, which is not read: a group's inputs are leaves of its own columns
    place = boxes.condition_at[boxes.box_condition] if n_mass else np.zeros(boxes.box_condition.shape, np.int64)
    longest = max((group.graph.node.size for group in groups), default=0)
    n = batch_size(n_mass + 3 * longest, out.shape[0])
    for lo in range(0, out.shape[0], n):
        log_weights, thetas = (array[lo : lo + n] for array in params)
        mass, found = np.empty((n_mass, thetas.shape[0])), np.zeros((out.shape[1], thetas.shape[0]))
        fill_masses(boxes, plan.const, thetas, mass)
        for group in groups:
            # a box over no column keeps log 1
            if group.input_rank.size:
                weight, m, s = _buffers(group, log_weights)
                _fill_log_probability(group, place, mass, weight, m, s, found)
        out[lo : lo + n] = found.T


def _buffers(group, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights of a group's graph, and arrays for the pairs of its nodes."""
    weight = np.empty((group.graph.edge.size, log_weights.shape[0]))
    gather_weights(group.graph, log_weights, weight)
    shape = group.graph.node.size, log_weights.shape[0]
    return weight, np.empty(shape), np.empty(shape)


@kernel
def _rescale(top, log_box, flow, leaf_share):
    """Set the root's flow to the box's share, relative to the most probable box so far, and make the shares so too.

    `top` is the largest log probability so far, and is raised.
    """
    changed = False
    factor = np.ones(top.size)
    for i in range(top.size):
        if log_box[i] > top[i]:
            # exp(-inf) where this is the first box: there is nothing to rescale
            factor[i] = math.exp(top[i] - log_box[i])
            changed |= top[i] > -np.inf
            top[i] = log_box[i]
        # relative to the largest so far, so that unions of very improbable boxes keep their digits
        flow[i] = math.exp(log_box[i] - top[i]) if log_box[i] > -np.inf else 0.0
    if changed:
        for k in range(leaf_share.shape[0]):
            rows.multiply(factor, leaf_share[k])


@kernel
def _add_shares(group, place, mass, weight, m, s, wanted, top, log_box, leaf_share):
    """Add the shares of a group's boxes to those of the boxes before."""
    last = m.shape[0] - 1
    flow = np.empty(m.shape)
    for box in group.box:
        _put_masses(group, place[box], mass, m)
        up(group.graph, weight, m, s)
        rows.log_value(m[last], s[last], log_box[box])
        _rescale(top, log_box[box], flow[last], leaf_share)
        down(group.graph, weight, m, s, flow)
        for k in range(group.input_rank.size):
            column = group.input_column[k]
            if wanted[column]:
                rows.add(flow[k], leaf_share[place[box, column] + group.input_rank[k]])


@kernel
def _normalise(boxes, wanted, mass, top, log_box, leaf_share):
    """Divide by the probability of all boxes; hand shares of conditions with several intervals on to the intervals."""
    factor = np.empty(top.size)
    for i in range(top.size):
        total = 0.0
        for box in range(log_box.shape[0]):
            total += math.exp(log_box[box, i] - top[i]) if top[i] > -np.inf else 0.0
        factor[i] = 1.0 / total if total > 0.0 else 0.0
    for k in range(leaf_share.shape[0]):
        rows.multiply(factor, leaf_share[k])
    for condition in range(boxes.condition_column.size):
        column = boxes.condition_column[condition]
        first, last = boxes.interval_ptr[condition], boxes.interval_ptr[condition + 1]
        # a condition of one interval has its shares in place already
        if not wanted[column] or last - first == 1:
            continue
        at = boxes.condition_at[condition]
        for j in range(boxes.leaf_ptr[column + 1] - boxes.leaf_ptr[column]):
            for interval in range(first, last):
                part = boxes.interval_at[interval] + j
                for i in range(top.size):
                    held = leaf_share[at + j, i]
                    # held > 0 only where the condition has mass: no -inf - -inf
                    leaf_share[part, i] = held * math.exp(mass[part, i] - mass[at + j, i]) if held > 0.0 else 0.0


def leaf_shares(
    plan: Plan, boxes: Boxes, params: Params, wanted: np.ndarray, log_box: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield parts of the draws and, given a union of disjoint boxes, what each leaf and interval has of some columns.

    Parameters
    ----------
    plan, boxes : Plan, Boxes
        Every box has a condition on each wanted column.
    params : Params
        ``log_weight`` (n_draw, n_edge), ``theta`` (n_draw, n_theta).
    wanted : bool (n_column,)
    log_box : float64 (n_draw, n_box)
        Filled with the log probabilities of the boxes, part by part.

    Yields
    ------
    slice, float64 (n_mass, n_part)
        At the place of each interval and leaf of a wanted column: the probability, given the union, that the cell
        comes from that leaf and lies in that interval. All 0 where the union has probability 0.
    """
    groups, n_mass = make_groups(plan, boxes) if log_box.shape[1] else [], int(boxes.n_mass[0])
    place = boxes.condition_at[boxes.box_condition]
    longest = max((group.graph.node.size for group in groups), default=0)
    n = batch_size(2 * n_mass + 4 * longest, log_box.shape[0])
    for lo in range(0, log_box.shape[0], n):
        log_weights, thetas = (array[lo : lo + n] for array in params)
        n_part = thetas.shape[0]
        mass, leaf_share = np.empty((n_mass, n_part)), np.zeros((n_mass, n_part))
        top, found = np.full(n_part, -np.inf), np.empty((log_box.shape[1], n_part))
        fill_masses(boxes, plan.const, thetas, mass)
        for group in groups:
            weight, m, s = _buffers(group, log_weights)
            _add_shares(group, place, mass, weight, m, s, wanted, top, found, leaf_share)
        _normalise(boxes, wanted, mass, top, found, leaf_share)
        log_box[lo : lo + n] = found.T
        yield slice(lo, lo + n_part), leaf_share
