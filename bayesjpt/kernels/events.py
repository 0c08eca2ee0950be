"""Probabilities of boxes under many draws, and the shares of a column's leaves given a box.

One pass from the leaves to the root a box, scalar, over the steps that `bayesjpt.kernels.boxes` prepared. Values are
pairs (s, m) with value s exp(m) as in `bayesjpt.kernels.upward`: nothing underflows however many columns are asked for.
A pass back from the root gives the share of every leaf in a box's probability.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.families import dispatch
from bayesjpt.kernels import boxes as _boxes
from bayesjpt.numerics.jit import inlined, kernel
from bayesjpt.numerics.lent import lent
from bayesjpt.numerics.logspace import fast_exp
from bayesjpt.numerics.special import logaddexp

LEAF_STEP = int(_boxes.LEAF_STEP)
DICTIONARY_STEP = int(_boxes.DICTIONARY_STEP)
PRODUCT_STEP = int(_boxes.PRODUCT_STEP)
_LARGE = 1e100


@kernel
def cut_log_mass(family, lo, hi, cell, offset, scale, parameters, constants):
    """Return the log probability, at most 0, of the closed interval lo ... hi given a leaf's cell, in the user's units.

    `cell` is the pair of the cell's ends. The families' units round, so ends are compared in the user's.
    """
    lower, upper = cell
    if lo <= lower and hi >= upper:
        return 0.0
    lo, hi = max(lo, lower), min(hi, upper)
    if not lo <= hi:
        return -np.inf
    log_mass = dispatch.log_mass(family, (lo - offset) / scale, (hi - offset) / scale, parameters, constants)
    if lower == -np.inf and upper == np.inf:
        return log_mass
    log_cell = dispatch.log_mass(family, (lower - offset) / scale, (upper - offset) / scale, parameters, constants)
    return min(log_mass - log_cell, 0.0) if log_cell > -np.inf else -np.inf


@inlined
def fill_masses(boxes, const, theta, mass):
    """Fill mass, float64 (n_mass,), with the log probabilities of all intervals and conditions under all leaves.

    `const` is the plan's, `theta` that of one draw.
    """
    leaf_ptr, leaf_at, leaf_len = boxes.leaf_ptr, boxes.leaf_at, boxes.leaf_len
    lower, upper = boxes.leaf_lower, boxes.leaf_upper
    batch_ptr, batch_first, at_once = boxes.batch_ptr, boxes.batch_first, boxes.batch_at_once
    batch_family, const_at, const_len = boxes.batch_family, boxes.batch_const_at, boxes.batch_const_len
    batch_offset, batch_scale = boxes.batch_offset, boxes.batch_scale
    interval_ptr, interval_lo, interval_hi = boxes.interval_ptr, boxes.interval_lo, boxes.interval_hi
    condition_column, condition_at, interval_at = boxes.condition_column, boxes.condition_at, boxes.interval_at
    for condition in range(condition_column.size):
        column = condition_column[condition]
        n = leaf_ptr[column + 1] - leaf_ptr[column]
        for interval in range(interval_ptr[condition], interval_ptr[condition + 1]):
            at = interval_at[interval] - leaf_ptr[column]
            lo, hi = interval_lo[interval], interval_hi[interval]
            for batch in range(batch_ptr[column], batch_ptr[column + 1]):
                begin, end = batch_first[batch], batch_first[batch + 1]
                offset, scale = batch_offset[batch], batch_scale[batch]
                constants = const[const_at[batch] : const_at[batch] + const_len[batch]]
                if lo == -np.inf and hi == np.inf:
                    mass[at + begin : at + end] = 0.0
                elif at_once[batch]:
                    dispatch.fill_log_masses(
                        batch_family[batch], (lo - offset) / scale, (hi - offset) / scale,
                        theta, leaf_at[begin:end], constants, mass[at + begin : at + end],
                    )  # fmt: skip
                else:
                    for j in range(begin, end):
                        parameters = theta[leaf_at[j] : leaf_at[j] + leaf_len[j]]
                        cell = (lower[j], upper[j])
                        mass[at + j] = cut_log_mass(
                            batch_family[batch], lo, hi, cell, offset, scale, parameters, constants
                        )
            if interval_ptr[condition + 1] - interval_ptr[condition] > 1:
                together, at = condition_at[condition], interval_at[interval]
                for j in range(n):
                    first = interval == interval_ptr[condition]
                    mass[together + j] = mass[at + j] if first else logaddexp(mass[together + j], mass[at + j])


@kernel
def _exponentials(top, out):
    for i in range(out.size):
        out[i] = fast_exp(out[i] - top)


@kernel
def _fill_pairs(kind, column, entry_ptr, entry, entry_edge, place, mass, log_weight, m, s, term):
    """Fill the pairs of one group's steps for one box; `place` holds where each column's log masses lie.

    The arrays of steps are those of the group; `entry_ptr` indexes all groups' entries. `term` is float64 (n_longest,).
    """
    term = lent(term)
    for step in range(kind.size):
        first, last = entry_ptr[step], entry_ptr[step + 1]
        top = -np.inf
        total = 0.0
        if kind[step] == LEAF_STEP:
            top = mass[place[column[step]] + entry[first]]
            total = 1.0 if top > -np.inf else 0.0
        elif kind[step] == DICTIONARY_STEP:
            at = place[column[step]]
            for k in range(first, last):
                t = mass[at + entry[k]] + log_weight[entry_edge[k]]
                term[k - first] = t
                top = t if t > top else top
            if top > -np.inf:
                _exponentials(top, term[: last - first])
                for k in range(last - first):
                    total += term[k]
        elif kind[step] == PRODUCT_STEP:
            top = 0.0
            total = 1.0
            for k in range(first, last):
                top += m[entry[k]]
                total *= s[entry[k]]
                if total > _LARGE:
                    top += math.log(total)
                    total = 1.0
        else:
            for k in range(first, last):
                t = m[entry[k]] + log_weight[entry_edge[k]]
                term[k - first] = t
                top = t if t > top else top
            if top > -np.inf:
                _exponentials(top, term[: last - first])
                for k in range(first, last):
                    total += s[entry[k]] * term[k - first]
        m[step] = top
        s[step] = total


@kernel
def _fill_shares(kind, column, entry_ptr, entry, entry_edge, place, mass, log_weight, m, s, wanted, reach, leaf_share):
    """Add each wanted column's leaves' shares to leaf_share, at the places of their log masses.

    The pairs are ready; the last entry of `reach`, float64 (n_step,), is the share of the root, the others are 0.
    """
    for step in range(kind.size - 1, -1, -1):
        first, last = entry_ptr[step], entry_ptr[step + 1]
        share = reach[step]
        if share == 0.0:
            continue
        if kind[step] == PRODUCT_STEP:
            for k in range(first, last):
                reach[entry[k]] += share
        elif column[step] < 0:
            for k in range(first, last):
                term = s[entry[k]] * fast_exp(m[entry[k]] + log_weight[entry_edge[k]] - m[step])
                reach[entry[k]] += share * (term / s[step])
        elif wanted[column[step]]:
            at = place[column[step]]
            if kind[step] == LEAF_STEP:
                leaf_share[at + entry[first]] += share
            else:
                for k in range(first, last):
                    term = fast_exp(mass[at + entry[k]] + log_weight[entry_edge[k]] - m[step])
                    leaf_share[at + entry[k]] += share * (term / s[step])


@kernel
def _log_pair(m, s):
    return m + math.log(s) if s > 0.0 else -np.inf


@kernel
def _longest(ptr):
    longest = 1
    for i in range(ptr.size - 1):
        longest = max(longest, ptr[i + 1] - ptr[i])
    return longest


@kernel
def fill_box_log_probability(plan, boxes, log_weights, thetas, out):
    """Fill out, float64 (n_draw, n_box), with the log probability of each box under each draw.

    `log_weights` is float64 (n_draw, n_edge), `thetas` float64 (n_draw, n_theta).
    """
    plan, boxes = lent(plan), lent(boxes)
    log_weights, thetas = lent(log_weights), lent(thetas)
    mass = np.empty(boxes.n_mass[0])
    n = _longest(boxes.step_ptr)
    m, s = np.empty(n), np.empty(n)
    term = np.empty(_longest(boxes.entry_ptr))
    n_column = boxes.box_condition.shape[1]
    place = np.zeros(n_column, np.int64)
    kind, column, entry_ptr = boxes.step_kind, boxes.step_column, boxes.entry_ptr
    entry, entry_edge, step_ptr = boxes.entry, boxes.entry_edge, boxes.step_ptr
    box_condition, box_group, condition_at = boxes.box_condition, boxes.box_group, boxes.condition_at
    placed = -1
    for draw in range(out.shape[0]):
        log_weight = log_weights[draw]
        fill_masses(boxes, plan.const, thetas[draw], mass)
        for box in range(out.shape[1]):
            if placed != box:
                for c in range(n_column):
                    place[c] = condition_at[box_condition[box, c]] if box_condition[box, c] >= 0 else 0
                placed = box
            begin, end = step_ptr[box_group[box]], step_ptr[box_group[box] + 1]
            if begin == end:
                out[draw, box] = 0.0
                continue
            _fill_pairs(
                kind[begin:end], column[begin:end], entry_ptr[begin:], entry, entry_edge,
                place, mass, log_weight, m, s, term,
            )  # fmt: skip
            out[draw, box] = _log_pair(m[end - begin - 1], s[end - begin - 1])


@kernel
def fill_leaf_shares(plan, boxes, log_weight, theta, wanted, mass, leaf_share, log_box):
    """Return the log probability of a union of disjoint boxes under one draw, and fill its shares by leaf and interval.

    Parameters
    ----------
    plan, boxes : Plan, Boxes
        Every box has a condition on each wanted column.
    log_weight, theta : float64 (n_edge,), (n_theta,)
    wanted : bool (n_column,)
    mass : float64 (n_mass,)
        Filled with the log masses of this draw.
    leaf_share : float64 (n_mass,)
        At the place of each interval and leaf of a wanted column: the probability, given the union, that the cell
        comes from that leaf and lies in that interval. All 0 where the union has probability 0.
    log_box : float64 (n_box,)
        Filled with the log probabilities of the boxes under this draw.
    """
    plan, boxes, theta, mass = lent(plan), lent(boxes), lent(theta), lent(mass)
    leaf_share[:] = 0.0
    if log_box.size == 0:
        return -np.inf
    fill_masses(boxes, plan.const, theta, mass)
    n = _longest(boxes.step_ptr)
    m, s, reach = np.empty(n), np.empty(n), np.empty(n)
    term = np.empty(_longest(boxes.entry_ptr))
    place = np.zeros(wanted.size, np.int64)
    top, total = -np.inf, -np.inf
    for box in range(log_box.size):
        for c in range(wanted.size):
            condition = boxes.box_condition[box, c]
            place[c] = boxes.condition_at[condition] if condition >= 0 else 0
        begin, end = boxes.step_ptr[boxes.box_group[box]], boxes.step_ptr[boxes.box_group[box] + 1]
        kind, column, entry_ptr = boxes.step_kind[begin:end], boxes.step_column[begin:end], boxes.entry_ptr[begin:]
        _fill_pairs(
            kind, column, entry_ptr, boxes.entry, boxes.entry_edge,
            place, mass, log_weight, m, s, term,
        )  # fmt: skip
        log_box[box] = _log_pair(m[end - begin - 1], s[end - begin - 1])
        if log_box[box] == -np.inf:
            continue
        total = logaddexp(total, log_box[box])
        if log_box[box] > top:  # shares are relative to the most probable box so far
            _scale(math.exp(top - log_box[box]), leaf_share)
            top = log_box[box]
        reach[: end - begin] = 0.0
        reach[end - begin - 1] = math.exp(log_box[box] - top)
        _fill_shares(
            kind, column, entry_ptr, boxes.entry, boxes.entry_edge,
            place, mass, log_weight, m, s, wanted, reach, leaf_share,
        )  # fmt: skip
    if total > -np.inf:
        _scale(math.exp(top - total), leaf_share)
        _split_by_interval(boxes, wanted, mass, leaf_share)
    return total


@kernel
def _scale(factor, out):
    for i in range(out.size):
        out[i] *= factor


@kernel
def _split_by_interval(boxes, wanted, mass, leaf_share):
    """Hand the shares of conditions with several intervals on to the intervals."""
    for condition in range(boxes.condition_column.size):
        column = boxes.condition_column[condition]
        first, last = boxes.interval_ptr[condition], boxes.interval_ptr[condition + 1]
        if not wanted[column] or last - first == 1:
            continue
        at = boxes.condition_at[condition]
        for j in range(boxes.leaf_ptr[column + 1] - boxes.leaf_ptr[column]):
            if leaf_share[at + j] > 0.0:
                for interval in range(first, last):
                    part = boxes.interval_at[interval] + j
                    leaf_share[part] = leaf_share[at + j] * math.exp(mass[part] - mass[at + j])
