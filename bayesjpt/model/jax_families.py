"""Log densities of the built-in families in jax.numpy, for samplers that differentiate through JAX.

The compiled slots of a family are numba's, which JAX cannot read: so each family that JAX may evaluate is written here
once more, for all leaves of one family and of one size at a time. Imported where PyTensor compiles a block for JAX, and
nowhere else (`bayesjpt.model.jax_mode`).

Arrays have leaves first: z and what `prepare` made of it are (n_leaf, n_row), theta (n_leaf, n_theta), constants and
ends of cells NumPy arrays, (n_leaf, n_constant) and (n_leaf,). A value at which a branch has no derivative is replaced
before the branch is taken: JAX multiplies the derivative of a branch that is not chosen by 0, and 0 times infinity is
not a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax  # pyright: ignore[reportMissingImports] - an extra
import jax.numpy as jnp  # pyright: ignore[reportMissingImports] - an extra
import numpy as np
from jax.scipy.special import erfc, erfcx, gammainc, gammaln  # pyright: ignore[reportMissingImports] - an extra

from bayesjpt.families import registry
from bayesjpt.families.simplex import SMALLEST
from bayesjpt.model.spline_pieces import piecewise, spline_pieces

HALF_LOG_2PI = 0.9189385332046727
SQRT_2 = 1.4142135623730951
STIRLING_FROM = 15.0
"""From here on the asymptotic series of Stirling's error is exact to 1e-16 with six terms."""
STIRLING = (1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0)
SERIES_BELOW, N_SERIES = 0.9, 320
"""The series of the incomplete gamma function falls by at least this factor a term: .9^320 is 2e-15."""
LARGE_COUNT = 16
NODE, NODE_WEIGHT = np.polynomial.legendre.leggauss(32)
NARROW, SLOPE = 1.5, 15.0
"""Half a cell, and half a cell times its distance, in standard deviations, up to which 32 nodes are exact to 1e-15."""
OFF_GRID, ROUNDING = 1e-6, 1e-15  # as in `bayesjpt.families.rounded`


class JaxFamily(NamedTuple):
    """What JAX needs of a family.

    Attributes
    ----------
    log_density : callable
        ``(z, aux, theta, constants) -> (n_leaf, n_row)``, per unit of z, or a mass.
    prepare : callable or None
        ``(z, constants) -> aux`` of one column, (n_row,), and the constants of one leaf.
    log_mass : callable or None
        ``(lo, hi, theta, constants) -> (n_leaf,)``, of closed intervals; None where there is no such form.
    """

    log_density: Callable[..., Any]
    prepare: Callable[..., Any] | None = None
    log_mass: Callable[..., Any] | None = None


# --- scalar functions


def log1mexp(x):
    """Return log(1 - exp(-x)) for x >= 0."""
    near = x < 0.6931471805599453
    small, large = jnp.where(near, x, 0.5), jnp.where(near, 1.0, x)
    positive = small > 0.0
    head = jnp.where(positive, jnp.log(-jnp.expm1(-jnp.where(positive, small, 0.5))), -jnp.inf)
    return jnp.where(near, head, jnp.log1p(-jnp.exp(-large)))


def log_normal_cdf(x):
    """Return the log of the standard normal distribution function, exact far out in the lower tail."""
    lower = x < -1.0
    t = jnp.where(lower, -x / SQRT_2, 1.0)
    return jnp.where(lower, jnp.log(0.5 * erfcx(t)) - t * t, jnp.log1p(-0.5 * erfc(jnp.where(lower, 0.0, x) / SQRT_2)))


def stirling_error(x):
    """Return log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for x > 0."""
    far = x >= STIRLING_FROM
    large, small = jnp.where(far, x, STIRLING_FROM), jnp.where(far, 1.0, x)
    inverse = 1.0 / large
    series = sum(c * inverse ** (2 * k + 1) for k, c in enumerate(STIRLING))
    return jnp.where(far, series, gammaln(small) - ((small - 0.5) * jnp.log(small) - small + HALF_LOG_2PI))


def log_gamma_p(a, x):
    """Return the log of the regularised lower incomplete gamma function, by its series where that is quick."""
    series = x <= SERIES_BELOW * (a + 1.0)
    a1, x1 = jnp.where(series, a, 1.0), jnp.where(series, x, 0.5)
    n = jnp.arange(1, N_SERIES + 1).reshape((-1,) + (1,) * jnp.ndim(a))
    tail = jnp.cumprod(x1 / (a1 + n), axis=0).sum(axis=0)
    # x^a exp(-x) / Gamma(a + 1), as `_level` does: the terms nearly cancel where a is large
    head = _level(a1 + 1.0, x1) - jnp.log(x1) - x1
    a2, x2 = jnp.where(series, 1.0, a), jnp.where(series, 1.0, x)
    return jnp.where(series, head + jnp.log1p(tail), jnp.log(gammainc(a2, x2)))


def _level(shape, rate):
    """Return shape log rate - log Gamma(shape)."""
    ratio = shape * (jnp.log(rate / shape) + 1.0)
    return ratio + 0.5 * jnp.log(shape) - HALF_LOG_2PI - stirling_error(shape)


def _log_normal_interval(lo, hi, mean, scale):
    """Return the log probability of intervals whose ends, NumPy arrays, may be infinite."""

    def tail(end, sign):
        inside = np.isfinite(end)
        value = log_normal_cdf(sign * (np.where(inside, end, 0.0) - mean) / scale)
        return jnp.where(inside, value, np.where(sign * end > 0.0, 0.0, -np.inf))

    above = lo > mean  # reflected, so that nothing is subtracted from 1
    large = jnp.where(above, tail(lo, -1.0), tail(hi, 1.0))
    small = jnp.where(above, tail(hi, -1.0), tail(lo, 1.0))
    return large + log1mexp(large - small)


def _chosen(possible, value):
    return jnp.where(possible, value, -jnp.inf)


def _is_count(z):
    return (z >= 0.0) & (jnp.floor(z) == z)


# --- numbers on the line


def _normal(z, aux, theta, constants):
    variance, mean = theta[:, :1], theta[:, 1:2]
    return -HALF_LOG_2PI - 0.5 * jnp.log(variance) - 0.5 * (z - mean) ** 2 / variance


def _normal_mass(lo, hi, theta, constants):
    return _log_normal_interval(lo, hi, theta[:, 1], jnp.sqrt(theta[:, 0]))


def _student_t(z, aux, theta, constants):
    variance, mean, nu = theta[:, :1], theta[:, 1:2], theta[:, 2:3]
    a = 0.5 * nu
    level = a * (jnp.log1p(0.5 / a) - 0.5 / a) + stirling_error(a + 0.5) - stirling_error(a) - HALF_LOG_2PI
    return level - 0.5 * jnp.log(variance) - 0.5 * (nu + 1.0) * jnp.log1p((z - mean) ** 2 / (nu * variance))


def _log_of(z, constants):
    return jnp.log(jnp.maximum(z, SMALLEST))


def _gamma(z, aux, theta, constants):
    shape, rate, half = theta[:, :1], theta[:, 1:2], constants[:, :1]
    plain = _level(shape, rate) + (shape - 1.0) * aux - rate * z
    at_zero = log_gamma_p(shape, rate * half) - np.log(2.0 * half)
    return jnp.where(z >= half, plain, _chosen(z >= 0.0, at_zero))


def _exponential(z, aux, theta, constants):
    rate, half = theta[:, :1], constants[:, :1]
    at_zero = log1mexp(rate * half) - np.log(2.0 * half)
    return jnp.where(z >= half, jnp.log(rate) - rate * z, _chosen(z >= 0.0, at_zero))


def _exponential_mass(lo, hi, theta, constants):
    rate, lo = theta[:, 0], np.maximum(lo, 0.0)
    width = np.where(np.isfinite(hi), hi - lo, 1.0)
    mass = -rate * lo + jnp.where(np.isfinite(hi), log1mexp(rate * np.maximum(width, 0.0)), 0.0)
    return _chosen(lo < hi, mass)


def _lognormal(z, aux, theta, constants):
    variance, mean, half = theta[:, :1], theta[:, 1:2], constants[:, :1]
    plain = -HALF_LOG_2PI - 0.5 * jnp.log(variance) - 0.5 * (aux - mean) ** 2 / variance - aux
    at_zero = log_normal_cdf((np.log(half) - mean) / jnp.sqrt(variance)) - np.log(2.0 * half)
    return jnp.where(z >= half, plain, _chosen(z >= 0.0, at_zero))


def _lognormal_mass(lo, hi, theta, constants):
    with np.errstate(divide="ignore"):
        lo, hi = np.log(np.maximum(lo, 0.0)), np.log(np.maximum(hi, 0.0))
    return _log_normal_interval(lo, hi, theta[:, 1], jnp.sqrt(theta[:, 0]))


def _uniform(z, aux, theta, constants):
    lo, hi = constants[:, :1], constants[:, 1:2]
    return _chosen((z >= lo) & (z <= hi), -np.log(0.5 * hi - 0.5 * lo) - np.log(2.0))


def _uniform_mass(lo, hi, theta, constants):
    inside = 0.5 * np.minimum(hi, constants[:, 1]) - 0.5 * np.maximum(lo, constants[:, 0])
    share = inside / (0.5 * constants[:, 1] - 0.5 * constants[:, 0])
    return jnp.asarray(np.log(np.maximum(share, 0.0), out=np.full(share.shape, -np.inf), where=share > 0.0))


def _quantile(z, aux, theta, constants):
    step, knots = constants[:, :1], constants[:, 1:]
    level = jnp.log(jnp.maximum(theta, SMALLEST)) - np.log(np.diff(knots, axis=1))
    piece = (z[:, :, None] >= knots[:, None, :-1]).sum(axis=-1) - 1
    inside = (piece >= 0) & (z <= knots[:, -1:]) & ((step == 0.0) | (z == jnp.rint(z)))
    return _chosen(inside, jnp.take_along_axis(level, jnp.maximum(piece, 0), axis=1))


def _spline(z, aux, theta, constants):
    of = spline_pieces(constants)
    ordinates = jnp.einsum("lbpt,lt->lbp", of.ordinates, theta)
    density = piecewise(of, jnp.clip(z, of.first, of.last), ordinates, jnp.asarray)
    positive = density > 0.0
    inside = _chosen(positive, jnp.log(jnp.where(positive, density, 1.0)))
    level = jnp.log(jnp.maximum(jnp.take_along_axis(theta, of.tail, axis=1), SMALLEST)) + of.log_level
    below = _chosen(z >= of.low, level[:, :1] - (of.first - of.half - z) / of.sigma)
    above = _chosen(z <= of.high, level[:, 1:] - (z - of.half - of.last) / of.sigma)
    value = jnp.where(z < of.first, below, jnp.where(z > of.last, above, inside))
    return _chosen((of.half == 0.0) | (z == jnp.rint(z)), value)


def _spline_mass(lo, hi, theta, constants):
    mass = np.empty(theta.shape)
    for leaf, (start, end) in enumerate(zip(lo, hi, strict=True)):
        for weight, alone in enumerate(np.eye(theta.shape[1])):
            mass[leaf, weight] = registry.family("spline").log_mass(start, end, alone, constants[leaf])
    largest = mass.max(axis=1)
    largest[largest == -np.inf] = 0.0
    share = (theta * np.exp(mass - largest[:, None])).sum(axis=1)
    any_share = share > 0.0
    return _chosen(any_share, jnp.log(jnp.where(any_share, share, 1.0) / theta.sum(axis=1)) + largest)


# --- whole numbers


def _log_factorial(z, constants):
    count = _is_count(z)
    return jnp.where(count, gammaln(jnp.where(count, z, 0.0) + 1.0), jnp.inf)


def _poisson(z, aux, theta, constants):
    rate, possible = theta[:, :1], aux < jnp.inf
    return _chosen(possible, z * jnp.log(rate) - rate - jnp.where(possible, aux, 0.0))


def _decay(p):
    """Return -log(1 - p), finite at p = 1."""
    below = p < 1.0
    return jnp.where(below, -jnp.log1p(-jnp.where(below, p, 0.5)), 1e300)


def _geometric(z, aux, theta, constants):
    p = theta[:, :1]
    return _chosen(_is_count(z), jnp.log(p) - _decay(p) * z)


def _geometric_mass(lo, hi, theta, constants):
    first, last = np.maximum(np.ceil(lo), 0.0), np.floor(hi)
    bounded = np.isfinite(last)
    decay, n = _decay(theta[:, 0]), np.where(bounded, last, first) - first + 1.0
    mass = -decay * first + jnp.where(bounded, log1mexp(decay * np.maximum(n, 1.0)), 0.0)
    return _chosen((first <= last) & np.isfinite(first), mass)


def _negative_binomial(z, aux, theta, constants):
    size, p, possible = theta[:, :1], theta[:, 1:2], aux < jnp.inf
    count = jnp.where(possible, z, 0.0)
    few = sum(jnp.where(j < count, jnp.log(size + j), 0.0) for j in range(LARGE_COUNT))
    end = size + jnp.maximum(count, LARGE_COUNT)
    many = (
        (end - size) * jnp.log(end)
        + (size - 0.5) * jnp.log(end / size)
        - (end - size)
        + stirling_error(end)
        - stirling_error(size)
    )
    rising = jnp.where(count < LARGE_COUNT, few, many)  # Gamma(size + count) / Gamma(size)
    mass = rising - jnp.where(possible, aux, 0.0) + size * jnp.log(p) + count * jnp.log1p(-p)
    return _chosen(possible, mass)


def _cell_index(z, constants):
    half, anchor, first = constants[:3]
    place = (z - anchor) / (2.0 * half)
    k = jnp.rint(place)
    return jnp.where((jnp.abs(place - k) <= OFF_GRID + ROUNDING * jnp.abs(place)) & (k >= first), k, jnp.inf)


def _log_normal_cell(middle, half):
    """Return the log probability of middle - half ... middle + half, for middle >= 0."""
    narrow = (half <= NARROW) & (middle * half <= SLOPE)
    m, h = jnp.where(narrow, middle, 1.0), jnp.where(narrow, half, 0.1)
    inside = sum(w * jnp.exp(-m * h * t - 0.5 * (h * t) ** 2) for t, w in zip(NODE, NODE_WEIGHT, strict=True))
    quadrature = -HALF_LOG_2PI - 0.5 * m * m + jnp.log(h) + jnp.log(inside)
    m, h = jnp.where(narrow, 0.0, middle), jnp.where(narrow, 2.0, half)
    near, far = log_normal_cdf(h - m), log_normal_cdf(-h - m)
    return jnp.where(narrow, quadrature, near + log1mexp(near - far))


def _rounded(z, aux, theta, constants):
    scale, mean, possible = jnp.sqrt(theta[:, :1]), theta[:, 1:2], aux < jnp.inf
    middle = jnp.abs(jnp.where(possible, z, 0.0) - mean) / scale
    mass = _log_normal_cell(middle, constants[:, :1] / scale * jnp.ones_like(middle))
    edge = constants[:, 3:4]
    if np.isfinite(edge).all():  # of one family: all leaves are truncated, or none
        mass = mass - log_normal_cdf((mean - edge) / scale)
    return _chosen(possible, jnp.minimum(mass, 0.0))


# --- labels, levels, atoms: one entry of a table each


def _position(z, values):
    at = jnp.minimum(jnp.searchsorted(values, z), values.size - 1)
    return jnp.where(jnp.asarray(values)[at] == z, at, -1)


def _entry(table, position):
    """Return the entries of each leaf's table, (n_leaf, n_entry), at some positions, (n_leaf, n_row)."""
    position = position.astype(int)
    return _chosen(position >= 0, jnp.take_along_axis(table, jnp.maximum(position, 0), axis=1))


def _share_inside(theta, values, lo, hi):
    inside = (values >= lo[:, None]) & (values <= hi[:, None])
    share = jnp.where(inside, theta, 0.0).sum(axis=1)
    any_share = share > 0.0
    return _chosen(any_share, jnp.log(jnp.where(any_share, share, 1.0) / theta.sum(axis=1)))


def _categorical(z, aux, theta, constants):
    allowed = constants[:, theta.shape[1] :] > 0.0
    weight = jnp.maximum(theta, SMALLEST)
    total = jnp.where(allowed.all(axis=1), 1.0, jnp.where(allowed, weight, 0.0).sum(axis=1))
    return _entry(_chosen(allowed, jnp.log(weight) - jnp.log(total)[:, None]), aux)


def _categorical_mass(lo, hi, theta, constants):
    n = theta.shape[1]
    return _share_inside(theta * constants[:, n:], constants[:, :n], lo, hi)


def _atom(z, aux, theta, constants):
    return _entry(jnp.log(jnp.maximum(theta, SMALLEST)) + constants[:, :1], aux)


def _atom_mass(lo, hi, theta, constants):
    return _share_inside(theta, constants[:, 1:], lo, hi)


def _bernoulli_table(theta, constants):
    p, other = theta[:, :1], constants[:, :1]
    return jnp.concatenate([(1.0 - other) * (1.0 - p), (1.0 - other) * p, other + 0.0 * p], axis=1)


def _bernoulli(z, aux, theta, constants):
    p, other = theta[:, :1], constants[:, :1]
    log_other = np.log(other, out=np.full(other.shape, -np.inf), where=other > 0.0)
    rest = np.log1p(-other)
    table = jnp.concatenate([rest + jnp.log1p(-p), rest + jnp.log(p), jnp.broadcast_to(log_other, p.shape)], axis=1)
    return _entry(table, aux)


def _bernoulli_mass(lo, hi, theta, constants):
    return _share_inside(_bernoulli_table(theta, constants), np.arange(3.0)[None, :], lo, hi)


def _label(z, aux, theta, constants):
    share = constants[:, constants.shape[1] // 2 :]
    return _entry(jnp.asarray(np.log(share, out=np.full(share.shape, -np.inf), where=share > 0.0)), aux)


def _label_mass(lo, hi, theta, constants):
    n = constants.shape[1] // 2
    return _share_inside(jnp.asarray(constants[:, n:]), constants[:, :n], lo, hi)


def _level_position(z, constants):
    n = constants.size // 2
    at = _position(z, constants[1 : n + 1])
    return jnp.where((z == n) & (z > constants[n]), n, at) if constants[0] > 0.0 else at


def _ordinal(z, aux, theta, constants):
    scale, mean, other = theta[:, :1], theta[:, 1:2], constants[:, :1]
    cuts = constants[:, constants.shape[1] // 2 + 1 :]
    below, above = (jax.nn.log_sigmoid(sign * (cuts - mean) / scale) for sign in (1.0, -1.0))
    between = below[:, 1:] + above[:, :-1] + log1mexp(np.diff(cuts, axis=1) / scale)
    levels = jnp.concatenate([below[:, :1], between, above[:, -1:]], axis=1) + np.log1p(-other)
    log_other = np.log(other, out=np.full(other.shape, -np.inf), where=other > 0.0)
    return _entry(jnp.concatenate([levels, jnp.asarray(log_other)], axis=1), aux)


JAX_FAMILIES: dict[str, JaxFamily] = {
    "normal": JaxFamily(_normal, log_mass=_normal_mass),
    "student_t": JaxFamily(_student_t),
    "gamma": JaxFamily(_gamma, _log_of),
    "exponential": JaxFamily(_exponential, log_mass=_exponential_mass),
    "lognormal": JaxFamily(_lognormal, _log_of, _lognormal_mass),
    "uniform": JaxFamily(_uniform, log_mass=_uniform_mass),
    "quantile": JaxFamily(_quantile),
    "spline": JaxFamily(_spline, log_mass=_spline_mass),
    "poisson": JaxFamily(_poisson, _log_factorial),
    "geometric": JaxFamily(_geometric, log_mass=_geometric_mass),
    "negative_binomial": JaxFamily(_negative_binomial, _log_factorial),
    "rounded_normal": JaxFamily(_rounded, _cell_index),
    "truncated_rounded_normal": JaxFamily(_rounded, _cell_index),
    "categorical": JaxFamily(
        _categorical, lambda z, constants: _position(z, constants[: constants.size // 2]), _categorical_mass
    ),
    "ordinal": JaxFamily(_ordinal, _level_position),
    "bernoulli": JaxFamily(_bernoulli, lambda z, constants: _position(z, np.arange(3.0)), _bernoulli_mass),
    "atom": JaxFamily(_atom, lambda z, constants: _position(z, constants[1:]), _atom_mass),
    "label": JaxFamily(_label, lambda z, constants: _position(z, np.arange(float(constants.size // 2))), _label_mass),
}
"""Families that JAX may evaluate, by name."""
