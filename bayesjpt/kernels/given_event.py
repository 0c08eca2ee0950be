"""Columns under many draws, once their leaves' shares given an event are known (`bayesjpt.kernels.events`)."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.mixture import fill_component_moments, forget, mixture_cdf, mixture_moments
from bayesjpt.kernels.quantiles import mixture_quantile
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel


@kernel
def _gather(leaf_share, draw, place, out):
    for p in range(out.size):
        out[p] = leaf_share[place[p], draw]


@kernel
def fill_event_moments(components, const, thetas, leaf_share, mean, variance):
    """Fill mean and variance, float64 (n_draw, n_target), in scales of the column from its location; NaN without mass.

    Parameters
    ----------
    components : Components
    const : float64 (n_const,)
        The plan's.
    thetas : float64 (n_draw, n_theta)
    leaf_share : float64 (n_mass, n_draw)
        What `leaf_shares` yields for these draws.
    mean : float64 (n_draw, n_target)
    variance : float64 (n_draw, n_target), or (n_draw, 0) where it is not asked for
    """
    components, const, thetas = borrowed(components), borrowed(const), borrowed(thetas)
    share, centre = np.empty(components.place.size), np.empty(components.place.size)
    spread = np.empty(components.place.size if variance.shape[1] > 0 else 0)
    for draw in range(mean.shape[0]):
        _gather(leaf_share, draw, components.place, share)
        fill_component_moments(components, const, thetas[draw], centre, spread)
        for t in range(mean.shape[1]):
            first, last = components.ptr[t], components.ptr[t + 1]
            mean[draw, t], squares = mixture_moments(share[first:last], centre[first:last], spread[first:last])
            if spread.size > 0:
                variance[draw, t] = squares


@kernel
def fill_event_cdf(components, const, thetas, leaf_share, points, out):
    """Fill out, float64 (n_draw, n_point, n_target), with P(X <= point); points of the same shape. NaN without mass."""
    components, const, thetas = borrowed(components), borrowed(const), borrowed(thetas)
    share, held = np.empty(components.place.size), np.empty((components.place.size, 3))
    for draw in range(out.shape[0]):
        _gather(leaf_share, draw, components.place, share)
        # log masses held for the draw before are those of other parameters
        forget(held)
        for t in range(out.shape[2]):
            total = share[components.ptr[t] : components.ptr[t + 1]].sum()
            for k in range(out.shape[1]):
                below = mixture_cdf(components, const, thetas[draw], held, share, t, points[draw, k, t])
                # below and total are sums in another order, so that rounding may lift the quotient over 1
                out[draw, k, t] = min(below / total, 1.0) if total > 0.0 else np.nan


@kernel
def fill_event_quantiles(components, const, thetas, leaf_share, q, out):
    """Fill out, float64 (n_draw, n_q, n_target), with quantiles; `q` of the same shape. NaN without mass."""
    components, const, thetas = borrowed(components), borrowed(const), borrowed(thetas)
    share, held = np.empty(components.place.size), np.empty((components.place.size, 3))
    for draw in range(out.shape[0]):
        _gather(leaf_share, draw, components.place, share)
        forget(held)
        for k in range(out.shape[1]):
            for t in range(out.shape[2]):
                out[draw, k, t] = mixture_quantile(components, const, thetas[draw], held, share, t, q[draw, k, t])
