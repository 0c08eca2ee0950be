"""Mixtures over draws of mixtures over leaves, row by row: their mean, their quantiles, their labels.

The mixture of all draws is one distribution, and its quantile one root. With F the distribution function, f the density
and f' its slope, Halley's step from v with e = F(v) - level,

      v - (e / f) / (1 - e f' / (2 f^2)),

triples the digits that are right. It starts at the root of a few draws, and what leaves the bracket is bisected;
Cantelli's inequality gives the first bracket from mean and deviation. Gammas do so in the logarithm of v; counts take
Newton's step, rounded, with mass for density.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    LOGISTIC,
    POISSON,
    bounded,
    fill_columns,
    fill_products,
    log_sum_exp,
)
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.incomplete_gamma import gamma_p, log_gamma_q, log_poisson_mass
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import expit
from bayesjpt.numerics.logspace import fast_exp

_PER_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_FAR = 8.5
"""Deviations from a normal mean beyond which less than 1e-17 lies."""
_LEAST_WEIGHT = 1e-14
"""Of a leaf within a draw: what is left out moves cumulative probabilities by less than a thousandth of a billionth."""
_FEW = 24
"""Draws whose quantile is the start."""
_STEP = 3e-4
"""In deviations of the narrowest component; the error that is left is of the order of its third power."""
_SUMMED = 64.0
"""Counts up to which cumulative probabilities are sums of masses."""
_MOST_STEPS = 200
_ROUGH = 1e-2
"""As `_STEP`, where a start is looked for, in deviations of the mixture."""
_SMALLEST = 1e-300


@kernel
def fill_means(leaves, c, x, state, out):
    """Fill out, float64 (n_draw, n_row, n_leaf), with the mean of a response of numbers at each leaf.

    Parameters
    ----------
    leaves : Leaves
    c : int
        The response.
    x : float64 (n_version, n_row, n_covariate)
        Of several versions (imputations), draw d takes version d modulo their number.
    state : Coefficients
        With a leading axis over draws.
    """
    leaves, state, x, out = borrowed(leaves), borrowed(state), borrowed(x), borrowed(out)
    n_leaf, n_node, at = out.shape[2], state.node.shape[1], leaves.at[c]
    columns = np.empty((x.shape[2], n_leaf))
    for d in range(out.shape[0]):
        fill_columns(state.node[d, n_node - n_leaf :, at : at + 1], columns)
        for row in range(out.shape[1]):
            fill_products(x[d % x.shape[0], row], columns, out[d, row])
            for leaf in range(n_leaf):
                eta = leaves.offset[c] + out[d, row, leaf]
                out[d, row, leaf] = eta if leaves.kind[c] == GAUSSIAN else math.exp(bounded(eta))


@kernel
def fill_label_shares(leaves, c, x, state, weight, out):
    """Fill out, float64 (n_row, n_label), with mean probabilities of labels over draws; others than these left out.

    Parameters are those of `fill_means`; `weight` as in `fill_predicted`.
    """
    leaves, state, x, weight = borrowed(leaves), borrowed(state), borrowed(x), borrowed(weight)
    n_draw, n_leaf, n_node = weight.shape[0], weight.shape[2], state.node.shape[1]
    first, last = leaves.at[c], leaves.at[c + 1]
    columns, eta = np.empty((x.shape[2], n_leaf * (last - first))), np.empty(n_leaf * (last - first))
    out[:] = 0.0
    for d in range(n_draw):
        fill_columns(state.node[d, n_node - n_leaf :, first:last], columns)
        for row in range(out.shape[0]):
            fill_products(x[d % x.shape[0], row], columns, eta)
            for leaf in range(n_leaf):
                share = weight[d, row, leaf] / n_draw
                if leaves.kind[c] == LOGISTIC:
                    second = expit(leaves.offset[c] + eta[leaf])
                    out[row, 0] += share * (1.0 - second)
                    out[row, 1] += share * second
                else:
                    predictors = eta[leaf * (last - first) : (leaf + 1) * (last - first)]
                    total = log_sum_exp(predictors)
                    for k in range(predictors.size):
                        out[row, k] += share * math.exp(predictors[k] - total)


@kernel
def _scaled_tail(size):
    """Return Phi(-size) exp(size^2 / 2) to 1e-14, for sizes from 0 to 8.5; without calls or branches: it vectorises.

    A polynomial in s = 50/17 t - 33/17, with t = 1 / (1 + size / 4), which goes from 1 to -1: the Chebyshev
    interpolation of degree 16, from values of SciPy's erfcx.
    """
    s = (50.0 / 17.0) / (1.0 + 0.25 * size) - 33.0 / 17.0
    p = 1.2171055450287208e-10
    p = p * s - 2.6977123287993584e-10
    p = p * s - 1.7304779471692932e-09
    p = p * s + 7.551994809274028e-09
    p = p * s + 1.4997185515795897e-08
    p = p * s - 1.4745802064639135e-07
    p = p * s - 9.609243126389413e-08
    p = p * s + 2.7807690546636307e-06
    p = p * s + 1.5460793901769372e-06
    p = p * s - 5.800250992449204e-05
    p = p * s - 0.00012678626163757683
    p = p * s + 0.0011385061053990958
    p = p * s + 0.009490492154654835
    p = p * s + 0.037725065816239994
    p = p * s + 0.0994133535130256
    p = p * s + 0.18803676845457395
    p = p * s + 0.1643764987590343
    return p


@kernel
def _fill_normal_terms(v, n, parts, terms):
    """Fill terms, float64 (3, n), with what each component adds to F, f sqrt(2 pi) and f' sqrt(2 pi) at v."""
    weight, mean, other = parts
    for i in range(n):
        z = (v - mean[i]) * other[i]
        bell = fast_exp(-0.5 * z * z)
        tail = bell * _scaled_tail(min(abs(z), _FAR))
        density = weight[i] * other[i] * bell
        terms[0, i] = weight[i] * (1.0 - tail if z > 0.0 else tail)
        terms[1, i] = density
        terms[2, i] = -density * z * other[i]


@kernel
def _normal_at(v, n, parts, terms):
    """Return F, f and f' at v of a mixture of normals; other holds reciprocal deviations."""
    _fill_normal_terms(v, n, parts, terms)
    below, density, slope = 0.0, 0.0, 0.0
    for i in range(n):
        below += terms[0, i]
        density += terms[1, i]
        slope += terms[2, i]
    return below, density * _PER_ROOT_2PI, slope * _PER_ROOT_2PI


@kernel
def _gamma_at(u, n, parts):
    """Return F at exp(u), and its first two derivatives in u, of a mixture of gammas; other holds shapes."""
    weight, mean, other = parts
    below, density, slope, v = 0.0, 0.0, 0.0, math.exp(u)
    for i in range(n):
        shape, ratio = other[i], other[i] * v / mean[i]
        below += weight[i] * gamma_p(shape, ratio)
        term = weight[i] * shape * math.exp(log_poisson_mass(shape, ratio))
        density += term
        slope += term * (shape - ratio)
    return below, density, slope


@kernel
def _poisson_at(v, n, weight, mean):
    """Return F at a count, and its mass."""
    below, mass = 0.0, 0.0
    for i in range(n):
        if v <= _SUMMED and mean[i] <= _SUMMED:
            term = math.exp(-mean[i])
            total = term
            for k in range(1, int(v) + 1):
                term *= mean[i] / k
                total += term
        else:
            # P(N <= v) = Q(v + 1, mean)
            term, total = math.exp(log_poisson_mass(v, mean[i])), math.exp(log_gamma_q(v + 1.0, mean[i]))
        below += weight[i] * total
        mass += weight[i] * term
    return below, mass


@kernel
def _real_quantile(kind, level, start, bracket, tolerance, n, parts, terms):
    """Return the quantile of a mixture with a density, of gammas its logarithm; see the module."""
    (lo, hi), v = bracket, start
    for _ in range(_MOST_STEPS):
        if kind == GAUSSIAN:
            below, density, slope = _normal_at(v, n, parts, terms)
        else:
            below, density, slope = _gamma_at(v, n, parts)
        excess = below - level
        if excess == 0.0:
            return v
        if excess > 0.0:
            hi = v
        else:
            lo = v
        step = 0.0
        if density > 0.0:
            step = -excess / density
            bend = 1.0 + 0.5 * step * slope / density
            # bounded: far from the root Halley's divisor may be near 0 or below
            step /= min(max(bend, 0.5), 2.0)
        after = v + step
        if density <= 0.0 or not lo < after < hi:
            after = 0.5 * (lo + hi)
            # no float lies between both ends
            if not lo < after < hi:
                return v
        step = after - v
        v = after
        if abs(step) <= tolerance:
            return v
    return v


@kernel
def _count_quantile(level, start, bracket, n, parts):
    """Return the smallest count with cumulative probability `level` of a mixture of Poissons."""
    weight, mean, _ = parts
    # NumPy's floor stays a float; that of math is an int64 here, which ends at 9.2e18
    lo, hi = np.floor(bracket[0]), np.ceil(bracket[1])  # F(lo) < level <= F(hi)
    v = min(max(np.floor(start), lo + 1.0), hi)
    for _ in range(_MOST_STEPS):
        below, mass = _poisson_at(v, n, weight, mean)
        if below >= level:
            hi = v
            # F(v - 1) < level <= F(v)
            if below - mass < level:
                return v
        else:
            lo = v
        if hi - lo <= 1.0:
            return hi
        after = np.floor(v + (level - below) / mass) if mass > 0.0 else lo
        if not lo < after < hi:
            after = np.floor(0.5 * (lo + hi))
            # no float lies between both ends
            if not lo < after < hi:
                return hi
        v = after
    return hi


@kernel
def _quantile(kind, level, few, moments, n, parts, terms):
    """Return a quantile: first of `few` of the components, from where all of them start."""
    mean, deviation, narrowest = moments
    # Cantelli's inequality, and a little room for rounding and for what was left out
    reach = deviation * (1.0 + 1e-6)
    lo = mean - reach * math.sqrt((1.0 - level) / level)
    hi = mean + reach * math.sqrt(level / (1.0 - level))
    if kind == POISSON:
        bracket = (max(lo, 0.0) - 1.0, hi + 1.0)  # no count is below 0
        start = _count_quantile(level, mean, (-1.0, 1e300), few[0], few[1])
        return _count_quantile(level, start, bracket, n, parts)
    if kind == GAUSSIAN:
        rough, wide = _ROUGH * deviation, (lo - 10.0 * deviation, hi + 10.0 * deviation)
    else:
        # close to 0 the density of a shape below 1 has no bound, but that of the logarithm has
        lo, hi = math.log(max(lo, _SMALLEST)), math.log(hi)
        rough, wide, mean = _ROUGH, (math.log(_SMALLEST), hi + 10.0), math.log(mean)
    start = _real_quantile(kind, level, mean, wide, rough, few[0], few[1], terms)
    start = min(max(start, lo), hi)
    found = _real_quantile(kind, level, start, (lo, hi), _STEP * narrowest, n, parts, terms)
    return found if kind == GAUSSIAN else math.exp(found)


@kernel
def _gather(kind, row, draws, cells, parts):
    """Fill weight, mean and other of the leaves that count; return their number, and three numbers of the mixture.

    These are its mean, its deviation, and the deviation of its narrowest component.
    """
    (given, means, dispersion), (weight, mean, other) = cells, parts
    n, centre = 0, 0.0
    for d in draws:
        for leaf in range(given.shape[2]):
            if given[d, row, leaf] > _LEAST_WEIGHT:
                weight[n], mean[n] = given[d, row, leaf] / draws.size, means[d, row, leaf]
                other[n] = 1.0 / math.sqrt(dispersion[d, leaf]) if kind == GAUSSIAN else dispersion[d, leaf]
                centre += weight[n] * mean[n]
                n += 1
    spread, narrowest = 0.0, np.inf
    for i in range(n):
        if kind == GAUSSIAN:
            within = 1.0 / (other[i] * other[i])
        else:
            within = mean[i] if kind == POISSON else mean[i] * mean[i] / other[i]
        spread += weight[i] * (within + (mean[i] - centre) * (mean[i] - centre))
        # gammas are looked at on the scale of logarithms
        narrowest = min(narrowest, min(1.0 / other[i], 1.0) if kind == GAMMA else within)
    return n, (centre, math.sqrt(spread), math.sqrt(narrowest))


@kernel
def fill_predicted(kind, weight, means, dispersion, levels, out):
    """Fill out, float64 (n_row, 1 + n_level), with the mean of the mixture over draws and leaves, and its quantiles.

    Parameters
    ----------
    kind : int
        Of the response.
    weight : float64 (n_draw, n_row, n_leaf)
        Probabilities of leaves.
    means : float64 (n_draw, n_row, n_leaf)
        As `fill_means` leaves them.
    dispersion : float64 (n_draw, n_leaf)
    levels : float64 (n_level,)
        Strictly between 0 and 1.
    out : float64 (n_row, 1 + n_level)
        In the family's units.

    Notes
    -----
    Cost: two or three cumulative probabilities of all leaves that count for each quantile.
    """
    n_draw = weight.shape[0]
    size = n_draw * weight.shape[2]
    parts = (np.empty(size), np.empty(size), np.empty(size))
    rough, terms = (np.empty(size), np.empty(size), np.empty(size)), np.empty((3, size))
    every, n_few = np.arange(n_draw), min(n_draw, _FEW)
    few = np.empty(n_few, np.int64)
    for k in range(n_few):
        # in the middle of n_few equal parts of the draws
        few[k] = (2 * k + 1) * n_draw // (2 * n_few)
    cells = (weight, means, dispersion)
    for row in range(out.shape[0]):
        n, moments = _gather(kind, row, every, cells, parts)
        n_rough = _gather(kind, row, few, cells, rough)[0]
        out[row, 0] = moments[0]
        for k in range(levels.size):
            out[row, 1 + k] = _quantile(kind, levels[k], (n_rough, rough), moments, n, parts, terms)
