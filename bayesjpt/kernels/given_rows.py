"""Columns given rows, under many draws: each row is evidence of its own, by density, and has its own answer.

      upward      values of all nodes for a block of rows, missing cells exactly 1
      downward    path probability of every node above a wanted column (`bayesjpt.kernels.path_probability`)
      answer      sum over the column's slots of path probability times what the slot says of the column by itself

What a slot says (its mean, its cumulative probability) does not depend on the row: one number a draw. Cells that a row
itself observes are the caller's business.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.mixture import (
    fill_component_cdf,
    fill_component_log_masses,
    fill_component_moments,
    forget,
    mixture_cdf,
    mixture_moments,
)
from bayesjpt.kernels.path_probability import fill_part_weights, fill_row_shares, path_buffers, path_shares
from bayesjpt.kernels.quantiles import mixture_quantile
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.upward import fill_tables, prepare_coefficients, root_log_value, upward
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel

_NEGLIGIBLE = 1e-14


@kernel
def _add_scaled(x, factor, out):
    for i in range(out.size):
        out[i] += factor * x[i]


@kernel
def _add_squares(x, factor, variance, mean, centre, out):
    """Add factor times x times (variance + (mean - centre)^2)."""
    for i in range(out.size):
        out[i] += factor * x[i] * (variance + (mean - centre[i]) * (mean - centre[i]))


@kernel
def _divide(total, out):
    """Divide by the total; NaN where it is 0."""
    for i in range(out.size):
        out[i] = out[i] / total[i]


@kernel
def _restrict(components, whole, targets, theta, const, buffers, weight):
    """Multiply the weights of components in their slots by the share of their leaf that they hold."""
    log_mass, log_whole = buffers
    fill_component_log_masses(components, const, theta, log_mass)
    fill_component_log_masses(whole, const, theta, log_whole)
    for k in range(weight.size):
        component = targets.part[k]
        # -inf - -inf would be NaN where the leaf has no mass
        held = log_mass[component] - log_whole[component] if log_mass[component] > -np.inf else -np.inf
        # a part of the leaf: what is above log 1 is rounding
        weight[k] *= math.exp(min(held, 0.0))


@kernel
def _set_where_positive(x, value, out):
    for i in range(out.size):
        out[i] = value if x[i] > 0.0 else out[i]


@kernel
def _fill_slot_moments(targets, weight, centre, spread, slot_share, slot_mean, slot_variance):
    """Fill the share of each slot that its components hold, and its moments there from those of its components."""
    longest = 1
    for k in range(slot_mean.size):
        longest = max(longest, targets.part_ptr[k + 1] - targets.part_ptr[k])
    means, variances = np.empty(longest), np.empty(longest)
    for k in range(slot_mean.size):
        first, last = targets.part_ptr[k], targets.part_ptr[k + 1]
        for j in range(first, last):
            means[j - first] = centre[targets.part[j]]
            variances[j - first] = spread[targets.part[j]]
        n = last - first
        slot_share[k] = weight[first:last].sum()
        slot_mean[k], slot_variance[k] = mixture_moments(weight[first:last], means[:n], variances[:n])


@kernel
def _row_moments(targets, path_share, slot_moments, t, total, mean, variance):
    """Fill the moments of one column for a block of rows; an empty `variance` is not wanted, `total` is a buffer."""
    slot_share, slot_mean, slot_variance = slot_moments
    first, last = targets.slot_ptr[t], targets.slot_ptr[t + 1]
    mean[:] = 0.0
    total[:] = 0.0
    for k in range(first, last):
        reached = path_share[targets.slot[k], : mean.size]
        _add_scaled(reached, slot_share[k], total)
        # infinite moments are put in afterwards: here infinity times a share of 0 would be NaN
        if slot_share[k] > 0.0 and math.isfinite(slot_mean[k]):
            _add_scaled(reached, slot_share[k] * slot_mean[k], mean)
    _divide(total, mean)
    for k in range(first, last):
        if slot_share[k] > 0.0 and not math.isfinite(slot_mean[k]):
            _set_where_positive(path_share[targets.slot[k], : mean.size], slot_mean[k], mean)
    variance[:] = 0.0
    if variance.size == 0:
        return
    # a second pass, about the finished mean: squares less a square would cancel
    for k in range(first, last):
        reached = path_share[targets.slot[k], : mean.size]
        if slot_share[k] > 0.0 and math.isfinite(slot_mean[k]) and math.isfinite(slot_variance[k]):
            _add_squares(reached, slot_share[k], slot_variance[k], slot_mean[k], mean, variance)
    _divide(total, variance)
    for k in range(first, last):
        if slot_share[k] > 0.0 and not (math.isfinite(slot_mean[k]) and math.isfinite(slot_variance[k])):
            _set_where_positive(path_share[targets.slot[k], : mean.size], np.inf, variance)


@kernel
def fill_row_moments(plan, cells, all_components, targets, params, n_block, log_evidence, mean, variance):
    """Fill the moments of some columns given each row, in scales of the column from its location.

    Parameters
    ----------
    plan, cells, targets : Plan, Cells, Targets
    all_components : tuple of two Components
        Those in which the columns are known to lie, and whole leaves in the same order. The same for no such knowledge.
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    n_block : int
        Rows that are evaluated together.
    log_evidence : float64 (n_draw, n_row)
        Filled with the log density of each row's observed cells, in the families' units.
    mean, variance : float64 (n_draw, n_target, n_row)
        `variance` may be of shape (n_draw, n_target, 0): not wanted. NaN where the components hold nothing, as where a
        row has no density.
    """
    made = make_work(plan, cells, n_block)
    plan, cells, targets, work = borrowed(plan), borrowed(cells), borrowed(targets), borrowed(made)
    components, whole = borrowed(all_components[0]), borrowed(all_components[1])
    log_weights, thetas = borrowed(params[0]), borrowed(params[1])
    total = np.empty(n_block)
    on_the_way = path_buffers(targets, n_block)
    centre, spread = np.empty(components.place.size), np.empty(components.place.size)
    weight = np.empty(targets.part.size)
    buffers = np.empty(components.place.size), np.empty(components.place.size)
    n_slot = targets.slot.size
    slot_moments = np.empty(n_slot), np.empty(n_slot), np.empty(n_slot)
    for draw in range(mean.shape[0]):
        log_weight, theta = log_weights[draw], thetas[draw]
        prepare_coefficients(plan, cells, theta, work)
        fill_tables(plan, cells, log_weight, work)
        fill_component_moments(components, plan.const, theta, centre, spread)
        fill_part_weights(targets, log_weight, weight)
        _restrict(components, whole, targets, theta, plan.const, buffers, weight)
        _fill_slot_moments(targets, weight, centre, spread, slot_moments[0], slot_moments[1], slot_moments[2])
        lo = 0
        while lo < mean.shape[2]:
            n = block_size(cells.segment_ptr, lo, n_block, mean.shape[2])
            upward(plan, cells, log_weight, work, lo, n)
            root_log_value(plan, work, n, log_evidence[draw, lo : lo + n])
            path_share = path_shares(plan, targets, log_weight, work, on_the_way, n)
            for t in range(mean.shape[1]):
                _row_moments(
                    targets, path_share, slot_moments, t, total[:n],
                    mean[draw, t, lo : lo + n], variance[draw, t, lo : lo + n],
                )  # fmt: skip
            lo += n
    keep(made)


@kernel
def fill_row_cdf(plan, cells, components, targets, params, n_block, log_evidence, points, out):
    """Fill out, float64 (n_draw, n_point, 1, n_row), with P(X <= point) of the column of `components` given each row.

    `points` is float64 (n_point,): what a slot says of them is found once a draw.
    """
    made = make_work(plan, cells, n_block)
    plan, cells, components, targets, work = (
        borrowed(plan),
        borrowed(cells),
        borrowed(components),
        borrowed(targets),
        borrowed(made),
    )
    log_weights, thetas = borrowed(params[0]), borrowed(params[1])
    on_the_way = path_buffers(targets, n_block)
    held, below = np.empty((components.place.size, 3)), np.empty(components.place.size)
    weight = np.empty(targets.part.size)
    slot_cdf = np.empty((points.size, targets.slot.size))
    for draw in range(out.shape[0]):
        log_weight, theta = log_weights[draw], thetas[draw]
        prepare_coefficients(plan, cells, theta, work)
        fill_tables(plan, cells, log_weight, work)
        forget(held)
        fill_part_weights(targets, log_weight, weight)
        for j in range(points.size):
            fill_component_cdf(components, plan.const, theta, held, 0, points[j], below)
            for k in range(targets.slot.size):
                slot_cdf[j, k] = 0.0
                for i in range(targets.part_ptr[k], targets.part_ptr[k + 1]):
                    slot_cdf[j, k] += weight[i] * below[targets.part[i]]
        lo = 0
        while lo < out.shape[3]:
            n = block_size(cells.segment_ptr, lo, n_block, out.shape[3])
            upward(plan, cells, log_weight, work, lo, n)
            root_log_value(plan, work, n, log_evidence[draw, lo : lo + n])
            path_share = path_shares(plan, targets, log_weight, work, on_the_way, n)
            for j in range(points.size):
                cdf = out[draw, j, 0, lo : lo + n]
                cdf[:] = 0.0
                for k in range(targets.slot.size):
                    _add_scaled(path_share[targets.slot[k], :n], slot_cdf[j, k], cdf)
                for i in range(n):
                    cdf[i] = min(cdf[i], 1.0)
            lo += n
    keep(made)


@kernel
def _answer_by_row(plan, cells, components, targets, params, n_block, log_evidence, numbers, quantiles, out):
    """Fill quantiles at, or cumulative probabilities of, numbers that may differ from row to row."""
    made = make_work(plan, cells, n_block)
    plan, cells, components, targets, work = (
        borrowed(plan),
        borrowed(cells),
        borrowed(components),
        borrowed(targets),
        borrowed(made),
    )
    log_weights, thetas = borrowed(params[0]), borrowed(params[1])
    on_the_way = path_buffers(targets, n_block)
    held, share = np.empty((components.place.size, 3)), np.empty(components.place.size)
    weight = np.empty(targets.part.size)
    const = plan.const
    for draw in range(out.shape[0]):
        log_weight, theta = log_weights[draw], thetas[draw]
        prepare_coefficients(plan, cells, theta, work)
        fill_tables(plan, cells, log_weight, work)
        forget(held)
        fill_part_weights(targets, log_weight, weight)
        lo = 0
        while lo < out.shape[3]:
            n = block_size(cells.segment_ptr, lo, n_block, out.shape[3])
            upward(plan, cells, log_weight, work, lo, n)
            root_log_value(plan, work, n, log_evidence[draw, lo : lo + n])
            path_share = path_shares(plan, targets, log_weight, work, on_the_way, n)
            for t in range(out.shape[2]):
                for i in range(n):
                    for k in range(out.shape[1]):
                        # an axis of length 1 serves all rows
                        number = numbers[draw, k, t, min(lo + i, numbers.shape[3] - 1)]
                        if quantiles:
                            # components left out weigh less than the tail that is looked for, by 14 digits
                            least = _NEGLIGIBLE * max(min(number, 1.0 - number), 0.0)
                            fill_row_shares(targets, path_share, weight, t, i, least, share)
                            out[draw, k, t, lo + i] = mixture_quantile(components, const, theta, held, share, t, number)
                        else:
                            fill_row_shares(targets, path_share, weight, t, i, _NEGLIGIBLE, share)
                            below = mixture_cdf(components, const, theta, held, share, t, number)
                            out[draw, k, t, lo + i] = min(below, 1.0)
            lo += n
    keep(made)


@kernel
def fill_row_quantiles(plan, cells, components, targets, params, n_block, log_evidence, q, out):
    """Fill out, float64 (n_draw, n_q, n_target, n_row); `q` of the same shape, or of length 1 on the last axis.

    Paths that carry less than 1e-14 of the smaller tail are left out.
    """
    _answer_by_row(plan, cells, components, targets, params, n_block, log_evidence, q, True, out)


@kernel
def fill_row_cdf_at(plan, cells, components, targets, params, n_block, log_evidence, points, out):
    """Fill out, float64 (n_draw, n_point, n_target, n_row), with P(X <= point); points of the same shape."""
    _answer_by_row(plan, cells, components, targets, params, n_block, log_evidence, points, False, out)
