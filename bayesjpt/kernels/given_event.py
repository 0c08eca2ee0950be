"""Columns given an event, under many draws: evidence is a union of disjoint boxes, the same for every draw."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.events import fill_leaf_shares
from bayesjpt.kernels.mixture import (
    fill_piece_moments,
    forget,
    mixture_cdf,
    mixture_moments,
)
from bayesjpt.kernels.quantiles import mixture_quantile
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.lent import lent


@kernel
def _gather(share, place, out):
    for p in range(out.size):
        out[p] = share[place[p]]


@kernel
def fill_event_moments(plan, boxes, pieces, params, wanted, log_box, mean, variance):
    """Fill mean and variance, float64 (n_draw, n_target), in scales of the column from its location; NaN without mass.

    Parameters
    ----------
    plan, boxes, pieces : Plan, Boxes, Pieces
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    wanted : bool (n_column,)
        The columns of `pieces`.
    log_box : float64 (n_draw, n_box)
        Filled with the log probabilities of the boxes under each draw.
    mean : float64 (n_draw, n_target)
    variance : float64 (n_draw, n_target), or (n_draw, 0) where it is not asked for
    """
    plan, boxes, pieces = lent(plan), lent(boxes), lent(pieces)
    log_weights, thetas = lent(params)
    mass, leaf_share = np.empty(boxes.n_mass[0]), np.empty(boxes.n_mass[0])
    share, centre = np.empty(pieces.place.size), np.empty(pieces.place.size)
    spread = np.empty(pieces.place.size if variance.shape[1] > 0 else 0)
    for draw in range(mean.shape[0]):
        fill_leaf_shares(plan, boxes, log_weights[draw], thetas[draw], wanted, mass, leaf_share, log_box[draw])
        _gather(leaf_share, pieces.place, share)
        fill_piece_moments(pieces, plan.const, thetas[draw], centre, spread)
        for t in range(mean.shape[1]):
            first, last = pieces.ptr[t], pieces.ptr[t + 1]
            mean[draw, t], squares = mixture_moments(share[first:last], centre[first:last], spread[first:last])
            if spread.size > 0:
                variance[draw, t] = squares


@kernel
def fill_event_cdf(plan, boxes, pieces, params, wanted, log_box, points, out):
    """Fill out, float64 (n_draw, n_point, n_target), with P(X <= point); points of the same shape. NaN without mass."""
    plan, boxes, pieces = lent(plan), lent(boxes), lent(pieces)
    log_weights, thetas = lent(params)
    mass, leaf_share = np.empty(boxes.n_mass[0]), np.empty(boxes.n_mass[0])
    share, held = np.empty(pieces.place.size), np.empty((pieces.place.size, 3))
    for draw in range(out.shape[0]):
        theta = thetas[draw]
        fill_leaf_shares(plan, boxes, log_weights[draw], theta, wanted, mass, leaf_share, log_box[draw])
        _gather(leaf_share, pieces.place, share)
        forget(held)
        for t in range(out.shape[2]):
            total = share[pieces.ptr[t] : pieces.ptr[t + 1]].sum()
            for k in range(out.shape[1]):
                below = mixture_cdf(pieces, plan.const, theta, held, share, t, points[draw, k, t])
                out[draw, k, t] = min(below / total, 1.0) if total > 0.0 else np.nan


@kernel
def fill_event_quantiles(plan, boxes, pieces, params, wanted, log_box, q, out):
    """Fill out, float64 (n_draw, n_q, n_target), with quantiles; `q` of the same shape. NaN without mass."""
    plan, boxes, pieces = lent(plan), lent(boxes), lent(pieces)
    log_weights, thetas = lent(params)
    mass, leaf_share = np.empty(boxes.n_mass[0]), np.empty(boxes.n_mass[0])
    share, held = np.empty(pieces.place.size), np.empty((pieces.place.size, 3))
    for draw in range(out.shape[0]):
        theta = thetas[draw]
        fill_leaf_shares(plan, boxes, log_weights[draw], theta, wanted, mass, leaf_share, log_box[draw])
        _gather(leaf_share, pieces.place, share)
        forget(held)
        for k in range(out.shape[1]):
            for t in range(out.shape[2]):
                out[draw, k, t] = mixture_quantile(pieces, plan.const, theta, held, share, t, q[draw, k, t])
