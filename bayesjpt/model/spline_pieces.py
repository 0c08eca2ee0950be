"""Spline leaves as arrays, for graphs that PyTensor or JAX differentiates: polynomials of one order on every bin.

Leaves differ in order and bins. Here all have the highest order, since a polynomial in Bezier form keeps its values
when its degree is raised (Farin, 2002, chapter 6), and as many bins as the leaf that has most; those beyond a leaf's
own begin at infinity, where no value is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesjpt.families.spline_basis import MAX_ORDER
from bayesjpt.families.spline_layout import (
    HIGH,
    LOW,
    N_BIN,
    ORDER,
    SIGMA,
    STEP,
    breaks_of,
    has_lower_tail,
    has_upper_tail,
    log_tail_level,
    masses_of_values,
    n_weight,
)


class SplinePieces(NamedTuple):
    """Leaves with as many weights each, (n_leaf, ...); see `bayesjpt.families.spline`.

    Attributes
    ----------
    inner : (n_leaf, n_bin - 1)
        Breaks between two bins.
    start, inverse : (n_leaf, n_bin)
        u = (x - start) * inverse runs from 0 to 1 on a bin.
    ordinates : (n_leaf, n_bin, MAX_ORDER, n_theta)
        Of every spline's density, or mass, on every bin.
    first, last, low, high, half, sigma : (n_leaf, 1)
        Outermost breaks, ends of the leaf, half the distance of whole numbers (or 0), scale of the tails.
    tail : int (n_leaf, 2)
        Places in theta of the lower and the upper tail, 0 where there is none.
    log_level : (n_leaf, 2)
        Log density of the tails at their breaks, -inf where there is none.
    """

    inner: np.ndarray
    start: np.ndarray
    inverse: np.ndarray
    ordinates: np.ndarray
    first: np.ndarray
    last: np.ndarray
    low: np.ndarray
    high: np.ndarray
    half: np.ndarray
    sigma: np.ndarray
    tail: np.ndarray
    log_level: np.ndarray

    def mixed(self, theta: np.ndarray) -> np.ndarray:
        """Return the ordinates, (n_leaf, n_bin, MAX_ORDER), of mixtures with some weights, (n_leaf, n_theta)."""
        return (self.ordinates @ theta[:, None, :, None])[..., 0]

    def tail_weights(self, theta: np.ndarray) -> np.ndarray:
        """Return the weights, (n_leaf, 2), of the lower and the upper tail, 0 where there is none."""
        return np.where(self.log_level > -np.inf, np.take_along_axis(theta, self.tail, axis=1), 0.0)


def spline_pieces(constants: np.ndarray) -> SplinePieces:
    """Return the pieces of some leaves, from their constants, (n_leaf, n_constant)."""
    n_leaf, n_bin, n_theta = len(constants), int(constants[:, N_BIN].max()), n_weight(constants[0])
    inner, start = np.full((n_leaf, n_bin - 1), np.inf), np.zeros((n_leaf, n_bin))
    inverse, ordinates = np.zeros((n_leaf, n_bin)), np.zeros((n_leaf, n_bin, MAX_ORDER, n_theta))
    first, last = np.empty((2, n_leaf, 1))
    tail, log_level = np.zeros((n_leaf, 2), int), np.full((n_leaf, 2), -np.inf)
    for k, leaf in enumerate(constants):
        breaks, order, n = breaks_of(leaf), int(leaf[ORDER]), int(leaf[N_BIN])
        width = np.diff(breaks) - leaf[STEP]
        inner[k, : n - 1], first[k], last[k] = breaks[1:-1], breaks[0], breaks[-1]
        start[k, :n] = breaks[:-1] + 0.5 * leaf[STEP]
        np.divide(1.0, width, out=inverse[k, :n], where=width > 0.0)
        splines = raised(np.swapaxes(masses_of_values(leaf), 1, 2))
        for i in range(n):
            ordinates[k, i, :, i : i + order] = splines[i]
        place = n + order - 1
        for upper, is_open in enumerate((has_lower_tail(leaf), has_upper_tail(leaf))):
            if is_open:
                tail[k, upper], log_level[k, upper] = place, log_tail_level(upper, leaf)
                place += 1
    low, high, half, sigma = (constants[:, j : j + 1] for j in (LOW, HIGH, STEP, SIGMA))
    return SplinePieces(inner, start, inverse, ordinates, first, last, low, high, 0.5 * half, sigma, tail, log_level)


def raised(ordinates: np.ndarray, order: int = MAX_ORDER) -> np.ndarray:
    """Return ordinates, (n_bin, order, ...), of the same polynomials at a higher order."""
    while ordinates.shape[1] < order:
        degree = ordinates.shape[1]
        share = np.arange(degree + 1).reshape((-1,) + (1,) * (ordinates.ndim - 2)) / degree
        nothing = np.zeros_like(ordinates[:, :1])
        before, here = np.concatenate([nothing, ordinates], 1), np.concatenate([ordinates, nothing], 1)
        ordinates = share * before + (1.0 - share) * here
    return ordinates


def piecewise(of: SplinePieces, x: Any, ordinates: Any, as_array: Callable[[Any], Any]) -> Any:
    """Return a polynomial of each bin at values, (n_leaf, n), that lie from `of.first` to `of.last`.

    Parameters
    ----------
    of : SplinePieces
    x : array of PyTensor or JAX
    ordinates : array (n_leaf, n_bin, order)
    as_array : callable
        Makes a NumPy array one that arrays like x index.
    """
    leaf = np.arange(len(of.start))[:, None]
    piece = (x[:, :, None] >= of.inner[:, None, :]).sum(axis=-1)
    u = (x - as_array(of.start)[leaf, piece]) * as_array(of.inverse)[leaf, piece]
    ordinate = as_array(ordinates)[leaf, piece]
    degree = ordinates.shape[2] - 1
    value, power = ordinate[:, :, 0], 1.0
    for p in range(1, degree + 1):  # Bernstein polynomials, by sums of products
        power = power * u
        value = value * (1.0 - u) + math.comb(degree, p) * power * ordinate[:, :, p]
    return value


def up_to(of: SplinePieces, ordinates: np.ndarray) -> np.ndarray:
    """Return ordinates, (n_leaf, n_bin, order + 1), of the integral of a density from the first break on."""
    n_leaf, n_bin, order = ordinates.shape
    width = np.divide(1.0, of.inverse, out=np.zeros_like(of.inverse), where=of.inverse > 0.0)
    part = np.zeros((n_leaf, n_bin, order + 1))
    part[:, :, 1:] = np.cumsum(ordinates, axis=2) * (width / order)[:, :, None]
    before = np.cumsum(part[:, :, -1], axis=1) - part[:, :, -1]
    return before[:, :, None] + part


def from_on(of: SplinePieces, ordinates: np.ndarray) -> np.ndarray:
    """Return those of the integral up to the last break, which falls; nothing is subtracted from 1."""
    n_leaf, n_bin, order = ordinates.shape
    width = np.divide(1.0, of.inverse, out=np.zeros_like(of.inverse), where=of.inverse > 0.0)
    part = np.zeros((n_leaf, n_bin, order + 1))
    part[:, :, :-1] = np.cumsum(ordinates[:, :, ::-1], axis=2)[:, :, ::-1] * (width / order)[:, :, None]
    whole = part[:, ::-1, 0]
    after = (np.cumsum(whole, axis=1) - whole)[:, ::-1]
    return after[:, :, None] + part
