"""Generalised linear models of weighted rows: damped Newton steps, which never lower the penalised likelihood.

The maximisation at every node of a tree of experts is one of these: of a gate, a logistic regression whose responses
are shares between 0 and 1; of a label given the others', one with offsets of its own.

References: Jordan and Jacobs (1994), Hierarchical Mixtures of Experts and the EM Algorithm, section 4 (iteratively
reweighted least squares).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_tree import GAMMA, LOGISTIC, POISSON, bounded, dot
from bayesjpt.numerics.digamma import digamma
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import log_expit_both
from bayesjpt.numerics.normal_draw import factorise, solve_lower, solve_upper

LEAST_WEIGHT = 1e-12
"""A row's posterior of a node below which the node's regression leaves it out."""
_LARGEST_LOG_ODDS = 5.0
"""Of a posterior share as the response of a least-squares gate, for which a sure one would be infinite."""
_LARGEST_STEP = 20.0
"""Of one coefficient in one step away from zero; separated rows would let it go on."""
_MOST_HALVINGS = 30
_CONVERGED = 1e-13
"""A step whose gain, relative to the objective, rounding hides is taken unseen."""
_LOG_SHAPE = (-12.0, 14.0)
"""Between which the logarithm of a gamma expert's shape is looked for; of larger ones rounding makes the likelihood."""


class Cases(NamedTuple):
    """Weighted rows of one regression, in buffers that hold all rows, and room for its normal equations.

    Attributes
    ----------
    row : int64 (n_row,)
    weight, y, shift : float64 (n_row,)
        Shift is what is added to the linear predictor.
    eta, change : float64 (n_row,)
        The predictor, and how a step changes it.
    matrix : float64 (n_covariate, n_covariate)
    linear, step : float64 (n_covariate,)
    """

    row: np.ndarray
    weight: np.ndarray
    y: np.ndarray
    shift: np.ndarray
    eta: np.ndarray
    change: np.ndarray
    matrix: np.ndarray
    linear: np.ndarray
    step: np.ndarray


@kernel
def make_cases(n_row, n_covariate):
    """Return buffers for so many rows."""
    return Cases(
        np.empty(n_row, np.int64),
        np.empty(n_row),
        np.empty(n_row),
        np.empty(n_row),
        np.empty(n_row),
        np.empty(n_row),
        np.empty((n_covariate, n_covariate)),
        np.empty(n_covariate),
        np.empty(n_covariate),
    )


@kernel
def solve_positive(a, b, out):
    """Fill `out` with the solution of A x = b; the lower triangle of A, positive definite, is overwritten, as is b."""
    factorise(a, out.size)
    solve_lower(a, b)
    solve_upper(a, b, out)


@kernel
def believed_log_odds(left, right):
    """Return the log odds of a gate's posterior shares as a response of least squares, finite for sure shares too."""
    odds = math.log(max(right, 1e-300)) - math.log(max(left, 1e-300))
    return min(max(odds, -_LARGEST_LOG_ODDS), _LARGEST_LOG_ODDS)


@kernel
def add_weighted(x, weight, a):
    """Add weight x x' to the lower triangle of a matrix."""
    for i in range(x.size):
        scaled = weight * x[i]
        for j in range(i + 1):
            a[i, j] += scaled * x[j]


@kernel
def _value(kind, y, eta, dispersion):
    """Return the log likelihood of a response, which may be a share of a label, up to what eta does not change."""
    if kind == LOGISTIC:
        right, left = log_expit_both(eta)
        return y * right + (1.0 - y) * left
    log_mean = bounded(eta)
    if kind == POISSON:
        return y * log_mean - math.exp(log_mean)
    if kind == GAMMA:
        return -dispersion * (log_mean + y * math.exp(-log_mean))
    return -0.5 * (y - eta) * (y - eta) / dispersion


@kernel
def slopes(kind, y, eta, dispersion):
    """Return value, derivative by eta, and expected curvature."""
    if kind == LOGISTIC:
        size = math.exp(-abs(eta))
        share = (1.0 if eta >= 0.0 else size) / (1.0 + size)
        rest = math.log1p(size)
        value = y * min(eta, 0.0) + (1.0 - y) * min(-eta, 0.0) - rest
        return value, y - share, size / ((1.0 + size) * (1.0 + size))
    log_mean = bounded(eta)
    if kind == POISSON:
        mean = math.exp(log_mean)
        return y * log_mean - mean, y - mean, mean
    if kind == GAMMA:
        ratio = y * math.exp(-log_mean)
        return -dispersion * (log_mean + ratio), dispersion * (ratio - 1.0), dispersion
    return -0.5 * (y - eta) * (y - eta) / dispersion, (y - eta) / dispersion, 1.0 / dispersion


@kernel
def _penalty(ridge, coefficient, step, share):
    total = 0.0
    for k in range(coefficient.size):
        moved = coefficient[k] + share * step[k]
        total += moved * moved
    return -0.5 * ridge * total


@kernel
def _search(kind, cases, n_case, dispersion, ridge, coefficient, before):
    """Take the step, or the largest half, quarter, ... of it that does not lower the objective."""
    gain = 0.0
    for k in range(coefficient.size):
        # what the quadratic objective gains by the full step: half its product with the gradient
        gain += 0.5 * cases.linear[k] * cases.step[k]
    share = 1.0
    # in reach of the optimum Newton's steps are right, and what rounding makes of the objective says nothing
    if gain > _CONVERGED * (1.0 + abs(before)):
        found = False
        for _ in range(_MOST_HALVINGS):
            value = _penalty(ridge, coefficient, cases.step, share)
            for i in range(n_case):
                value += cases.weight[i] * _value(kind, cases.y[i], cases.eta[i] + share * cases.change[i], dispersion)
            if value >= before:
                found = True
                break
            share *= 0.5
        if not found:
            return 0.0
    for k in range(coefficient.size):
        coefficient[k] += share * cases.step[k]
    return gain


@kernel
def newton_step(kind, x, cases, n_case, dispersion, ridge, coefficient):
    """Move coefficients by one damped step of iteratively reweighted least squares.

    Parameters
    ----------
    kind : int
        Of the response; LOGISTIC for shares too.
    x : float64 (n_row, n_covariate)
    cases : Cases
        Row, weight, y and shift are given, in the first `n_case` entries.
    n_case : int
    dispersion : float
    ridge : float
        Precision of coefficients around 0.
    coefficient : float64 (n_covariate,)
        Changed in place.

    Returns
    -------
    float
        What a quadratic objective would have gained; 0 where no step was taken.
    """
    a, b = cases.matrix, cases.linear
    a[:] = 0.0
    for k in range(b.size):
        b[k] = -ridge * coefficient[k]
        a[k, k] = ridge
    # of a share 0 of any step: where the coefficients stand
    before = _penalty(ridge, coefficient, coefficient, 0.0)
    for i in range(n_case):
        covariates, weight = x[cases.row[i]], cases.weight[i]
        cases.eta[i] = cases.shift[i] + dot(covariates, coefficient)
        value, slope, curvature = slopes(kind, cases.y[i], cases.eta[i], dispersion)
        before += weight * value
        slope *= weight
        for k in range(b.size):
            b[k] += slope * covariates[k]
        add_weighted(covariates, weight * curvature, a)
    return _step_along(kind, x, cases, n_case, dispersion, ridge, coefficient, before)


@kernel
def _step_along(kind, x, cases, n_case, dispersion, ridge, coefficient, before):
    """Solve for the step and take it; `cases.linear` is the gradient, kept for what the step gains."""
    a, b, step = cases.matrix, cases.linear, cases.step
    # a copy: solving overwrites the linear side
    gradient = b.copy()
    solve_positive(a, b, step)
    largest, old, new = 0.0, 0.0, 0.0
    for k in range(b.size):
        b[k] = gradient[k]
        largest = max(largest, abs(step[k]))
        old = max(old, abs(coefficient[k]))
        new = max(new, abs(coefficient[k] + step[k]))
    # negated, so that a step that is NaN is not taken
    if not largest < np.inf:
        return 0.0
    # back towards zero no step is too long: a gate may begin with any slope, as between rows that are nearly the same
    if largest > _LARGEST_STEP and not new < old:
        for k in range(b.size):
            step[k] *= _LARGEST_STEP / largest
    for i in range(n_case):
        cases.change[i] = dot(x[cases.row[i]], step)
    return _search(kind, cases, n_case, dispersion, ridge, coefficient, before)


@kernel
def gaussian_step(x, cases, n_case, gram, variance, ridge, coefficient):
    """Move the coefficients of a linear regression to their maximum given the variance.

    Parameters
    ----------
    x, cases, n_case, ridge, coefficient : as of `newton_step`
    gram : float64 (n_covariate, n_covariate)
        Lower triangle of the weighted sum of products of the covariates, which several responses share.
    variance : float

    Returns
    -------
    float
        The weighted sum of squared residuals afterwards.
    """
    a, b = cases.matrix, cases.linear
    for i in range(b.size):
        b[i] = -ridge * coefficient[i]
        for j in range(i + 1):
            a[i, j] = gram[i, j] / variance
        a[i, i] += ridge
    before = _penalty(ridge, coefficient, coefficient, 0.0)
    for i in range(n_case):
        covariates = x[cases.row[i]]
        cases.eta[i] = cases.shift[i] + dot(covariates, coefficient)
        residual = cases.y[i] - cases.eta[i]
        scaled = cases.weight[i] * residual / variance
        before -= 0.5 * scaled * residual
        for k in range(b.size):
            b[k] += scaled * covariates[k]
    _step_along(0, x, cases, n_case, variance, ridge, coefficient, before)
    squares = 0.0
    for i in range(n_case):
        residual = cases.y[i] - cases.shift[i] - dot(x[cases.row[i]], coefficient)
        squares += cases.weight[i] * residual * residual
    return squares


@kernel
def _shape_value(log_shape, weight, total, mean, precision):
    """Return the log likelihood of gamma responses by the logarithm of their shape, with its normal prior."""
    shape, deviation = math.exp(log_shape), log_shape - mean
    return weight * (shape * log_shape - math.lgamma(shape)) + shape * total - 0.5 * precision * deviation * deviation


@kernel
def best_shape(old, weight, total, mean, precision):
    """Return the most likely shape of gamma responses, by bisection of the derivative by its logarithm.

    Parameters
    ----------
    old : float
        Kept where nothing better is found.
    weight : float
        Of all rows together.
    total : float
        Weighted sum of log(y / mean) - y / mean.
    mean, precision : float
        Of the normal prior of the logarithm.
    """
    lo, hi = _LOG_SHAPE
    for _ in range(60):
        middle = 0.5 * (lo + hi)
        shape = math.exp(middle)
        slope = shape * (weight * (middle + 1.0 - digamma(shape)) + total) - precision * (middle - mean)
        if slope > 0.0:
            lo = middle
        else:
            hi = middle
    found = 0.5 * (lo + hi)
    log_old = math.log(old)
    if _shape_value(found, weight, total, mean, precision) < _shape_value(log_old, weight, total, mean, precision):
        return old
    return math.exp(found)
