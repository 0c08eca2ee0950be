"""What every sweep asks of every value of a spline leaf: its density there, and which spline it belongs to.

Loops over all rows of a table, with nothing in them that keeps a processor from taking several values at once: bins
are counted, not searched, and the order is the length of a tuple, known when a loop is compiled, so that loops over it
are unrolled. One version is compiled for each order that some leaf has.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bayesjpt.numerics.apart import apart_until_called
from bayesjpt.numerics.counter_rng import mix
from bayesjpt.numerics.jit import kernel

_ORDERS = ((0,), (0, 0), (0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0))
_NEXT = np.uint64(0x9E3779B97F4A7C15)
"""Step of SplitMix64 (Steele, Lea and Flood, 2014)."""
_UNIT = 2.0**-53
_LEAST_REST = 1e-30
"""Its fifth power and that one's inverse are floats; 1 - u is 0 or at least 1e-16."""


@kernel
def fill_densities(z, breaks, half, polynomials, order, out):
    """Fill the mixture's density, or mass, at each value; outside the breaks some number.

    Parameters
    ----------
    z, out : float64 (n,)
    breaks : float64 (n_bin + 1,)
    half : float
        Half the distance of whole numbers, 0 on the line.
    polynomials : float64 (n_bin * (order + 1),)
        Of each bin the inverse width, and the ordinates times binomial coefficients.
    order : int
    """
    if order == 1:
        _fill_densities(z, breaks, half, polynomials, _ORDERS[0], out)
    elif order == 2:
        _fill_densities(z, breaks, half, polynomials, _ORDERS[1], out)
    elif order == 3:
        _fill_densities(z, breaks, half, polynomials, _ORDERS[2], out)
    elif order == 4:
        _fill_densities(z, breaks, half, polynomials, _ORDERS[3], out)
    elif order == 5:
        _fill_densities(z, breaks, half, polynomials, _ORDERS[4], out)
    else:
        _fill_densities(z, breaks, half, polynomials, _ORDERS[5], out)


@apart_until_called(types.none)
@kernel
def _fill_densities(z, breaks, half, polynomials, orders, out):
    order, n_bin = len(orders), breaks.size - 1
    for i in range(out.size):
        x = z[i]
        k = 0
        for m in range(1, n_bin):
            k += x >= breaks[m]
        at = k * (order + 1)
        u = (x - breaks[k] - half) * polynomials[at]
        rest = 1.0 - u
        value = polynomials[at + 1]
        power = 1.0
        for p in range(1, order):
            power *= u
            value = value * rest + power * polynomials[at + 1 + p]
        out[i] = value


@kernel
def fill_splines(z, breaks, half, polynomials, shares, key, order, out):
    """Fill a draw, for each value inside the breaks, of the spline it belongs to; outside some number.

    Parameters
    ----------
    z, breaks, half, polynomials, order : as in `fill_densities`
    shares : float64 (n_bin * order * order,)
        Of each bin and Bernstein polynomial the shares of its splines, summed up.
    key : uint64
        Of the stream of uniform numbers, two for each value.
    out : int64 (n,)

    Notes
    -----
    A value's Bernstein polynomial is drawn first, p with probability m_p u^p (1 - u)^(k - 1 - p) / sum, then the spline
    given that. Sums up to p are those of Horner's scheme times a power of 1 - u; so is the sum of all, and no weight
    need be kept.
    """
    if order == 1:
        _fill_splines(z, breaks, half, polynomials, shares, key, _ORDERS[0], out)
    elif order == 2:
        _fill_splines(z, breaks, half, polynomials, shares, key, _ORDERS[1], out)
    elif order == 3:
        _fill_splines(z, breaks, half, polynomials, shares, key, _ORDERS[2], out)
    elif order == 4:
        _fill_splines(z, breaks, half, polynomials, shares, key, _ORDERS[3], out)
    elif order == 5:
        _fill_splines(z, breaks, half, polynomials, shares, key, _ORDERS[4], out)
    else:
        _fill_splines(z, breaks, half, polynomials, shares, key, _ORDERS[5], out)


@apart_until_called(types.none)
@kernel
def _fill_splines(z, breaks, half, polynomials, shares, key, orders, out):
    order, n_bin = len(orders), breaks.size - 1
    for i in range(z.size):
        k = 0
        for m in range(1, n_bin):
            k += z[i] >= breaks[m]
        out[i] = k
    for i in range(z.size):
        k = np.uint64(out[i])  # an unsigned place needs no test whether it counts from the end
        at = k * np.uint64(order + 1)
        u = (z[i] - breaks[k] - half) * polynomials[at]
        rest = max(1.0 - u, _LEAST_REST)
        value = polynomials[at + np.uint64(1)]
        power, left = 1.0, 1.0
        for p in range(1, order):
            power *= u
            left *= rest
            value = value * rest + power * polynomials[at + np.uint64(p + 1)]
        first = mix(key + np.uint64(2 * i) * _NEXT)
        second = mix(key + np.uint64(2 * i + 1) * _NEXT)
        level = (first >> np.uint64(11)) * _UNIT * value
        inverse = 1.0 / rest
        upto = polynomials[at + np.uint64(1)]
        power = 1.0
        chosen = 0
        for p in range(1, order):
            chosen += level >= upto * left
            power *= u
            left *= inverse
            upto = upto * rest + power * polynomials[at + np.uint64(p + 1)]
        level = (second >> np.uint64(11)) * _UNIT
        row = (k * np.uint64(order) + np.uint64(chosen)) * np.uint64(order)
        spline = out[i]
        for r in range(order - 1):
            spline += level >= shares[row + np.uint64(r)]
        out[i] = spline
