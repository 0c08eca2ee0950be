"""Draws of a multivariate normal distribution that is given by its precision matrix."""

from __future__ import annotations

import math

from bayesjpt.numerics.jit import kernel

_SMALLEST_PIVOT = 1e-13
"""Of the diagonal entry: below it a direction counts as one that rounding alone would decide."""


@kernel
def factorise(a, n):
    """Replace the lower triangle of a[:n, :n] by its Cholesky factor.

    A pivot that rounding has made too small is raised: what it belongs to is then drawn with the precision that the
    largest entries can hold, and stays finite.
    """
    for j in range(n):
        least = _SMALLEST_PIVOT * a[j, j] + 1e-300
        pivot = a[j, j]
        for k in range(j):
            pivot -= a[j, k] * a[j, k]
        a[j, j] = math.sqrt(max(pivot, least))
        for i in range(j + 1, n):
            value = a[i, j]
            for k in range(j):
                value -= a[i, k] * a[j, k]
            a[i, j] = value / a[j, j]


@kernel
def solve_lower(factor, b):
    """Replace b, float64 (n,), by the solution u of L u = b, with L the lower triangle of `factor`."""
    for i in range(b.size):
        value = b[i]
        for k in range(i):
            value -= factor[i, k] * b[k]
        b[i] = value / factor[i, i]


@kernel
def solve_upper(factor, b, out):
    """Fill `out`, float64 (n,), with the solution x of L' x = b, with L the lower triangle of `factor`."""
    n = out.size
    for i in range(n - 1, -1, -1):
        value = b[i]
        for k in range(i + 1, n):
            value -= factor[k, i] * out[k]
        out[i] = value / factor[i, i]


@kernel
def draw_normal(precision, linear, out, rng):
    """Fill `out` with a draw of N(A^-1 b, A^-1).

    Parameters
    ----------
    precision : float64 (n, n)
        Lower triangle of A, positive definite; it is overwritten.
    linear : float64 (n,)
        b; overwritten.
    out : float64 (n,)
    rng : numpy.random.Generator

    Notes
    -----
    With A = L L': L u = b, then L' x = u + e with e standard normal. Cost n^3 / 6.
    """
    n = out.size
    factorise(precision, n)
    solve_lower(precision, linear)
    for i in range(n):
        linear[i] += rng.standard_normal()
    solve_upper(precision, linear, out)
