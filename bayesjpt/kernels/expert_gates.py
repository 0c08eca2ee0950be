"""Draws of gates' coefficients given the rows' paths: Polya-Gamma, then two slice steps along which these are slow.

Gates of m ways are drawn way by way, each given the others: against the sum of the others' exponentials the likelihood
of a way is logistic (Holmes and Held, 2006, section 3), with two ways at once.

Where covariates separate the ways, coefficients may be large, and weights w of large log odds are small but not small
enough: a Polya-Gamma step moves by much less than the posterior is wide. So two steps follow that take a gate along the
directions in which it then moves:

      s v       how sharp the gate is, on the scale of log s; s^n is the density of a step along a ray
      v_0 + d   where it cuts
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.expert_tree import count_ways, dot
from bayesjpt.numerics.draw import draw_beta, draw_gamma
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.normal_draw import draw_normal
from bayesjpt.numerics.polya_gamma import draw_polya_gamma
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more

_SMALLEST_WEIGHT = 1e-12
_BLOCK = 512
"""Rows whose likelihoods share a logarithm: the product of as many factors up to 2 is below 1e155."""
_LARGEST_SEEN = 37.0
"""Log odds beyond which 1 + exp(-t) is 1."""


@kernel
def add_row(x, weight, linear, a, b):
    """Add one row to a precision matrix (lower triangle) and its linear term."""
    for i in range(x.size):
        scaled = weight * x[i]
        b[i] += linear * x[i]
        for j in range(i + 1):
            a[i, j] += scaled * x[j]


@kernel
def begin_normal(a, b, precision, centre):
    """Set the terms of a normal prior with one precision."""
    for i in range(b.size):
        b[i] = precision * centre[i]
        for j in range(i + 1):
            a[i, j] = 0.0
        a[i, i] = precision


@kernel
def _draw_weights(way, n_row, n_way, gate, rng):
    """Draw the log odds of a gate without covariates; its ways have a Dirichlet of ones."""
    count = np.ones(n_way)
    for i in range(n_row):
        count[way[i]] += 1.0
    if n_way == 2:
        weight = min(max(draw_beta(count[1], count[0], rng), _SMALLEST_WEIGHT), 1.0 - _SMALLEST_WEIGHT)
        gate[0, 0] = math.log(weight) - math.log1p(-weight)
    else:
        for k in range(n_way):
            count[k] = max(draw_gamma(count[k], 1.0, rng), _SMALLEST_WEIGHT)
        for k in range(1, n_way):
            gate[k - 1, 0] = math.log(count[k]) - math.log(count[0])


@kernel
def _draw_ways(gate_x, rows, way, gate, precision, work, rng):
    """Draw the coefficients of each way but the first given the others'; gate is (n_way - 1, n_covariate)."""
    a, b, zero = work[: work.shape[1]], work[work.shape[1]], np.zeros(work.shape[1])
    for h in range(gate.shape[0]):
        begin_normal(a, b, precision, zero)
        for i in range(rows.size):
            x = gate_x[rows[i]]
            others = 0.0  # log of the sum over the other ways of exp(log odds); that of the first is 0
            for k in range(gate.shape[0]):
                if k != h:
                    eta = dot(x, gate[k])
                    top = max(others, eta)
                    others = top + math.log(math.exp(others - top) + math.exp(eta - top))
            weight = draw_polya_gamma(dot(x, gate[h]) - others, rng)
            # y - 1/2, and the offset -others, which the weight moves to the linear side
            add_row(x, weight, (0.5 if way[i] == h + 1 else -0.5) + weight * others, a, b)
        draw_normal(a, b, gate[h], rng)


@kernel
def _log_likelihood_of_two(eta, way, n_row, factor, shift):
    """Return the log probability of the ways that rows took, with log odds factor eta + shift of the second way.

    Each row's is min(t, 0) - log(1 + exp(-|t|)); the factors 1 + exp(-|t|) are at most 2, so that the product of a
    block of them has one logarithm.
    """
    total = 0.0
    for lo in range(0, n_row, _BLOCK):
        product = 1.0
        for i in range(lo, min(lo + _BLOCK, n_row)):
            log_odds = factor * eta[i, 0] + shift
            size = abs(log_odds)
            if (log_odds > 0.0) != (way[i] == 1):
                total -= size
            if size < _LARGEST_SEEN:
                product *= 1.0 + math.exp(-size)
        total -= math.log(product)
    return total


@kernel
def _log_likelihood_of_ways(eta, way, n_row, factor, shift, h):
    """Return the log probability of the ways that rows took, with log odds factor eta, and shift more for way h + 1."""
    total = 0.0
    for i in range(n_row):
        top, way_odds = 0.0, 0.0
        for k in range(eta.shape[1]):
            odds = factor * eta[i, k] + (shift if k == h else 0.0)
            top = max(top, odds)
            if way[i] == k + 1:
                way_odds = odds
        rest = math.exp(-top)
        for k in range(eta.shape[1]):
            rest += math.exp(factor * eta[i, k] + (shift if k == h else 0.0) - top)
        total += way_odds - top - math.log(rest)
    return total


@kernel
def _log_likelihood(eta, way, n_row, factor, shift, h):
    if eta.shape[1] == 1:
        return _log_likelihood_of_two(eta, way, n_row, factor, shift)
    return _log_likelihood_of_ways(eta, way, n_row, factor, shift, h)


@kernel
def draw_factor(eta, way, n_row, penalty, n, rng):
    """Return by what a gate's n coefficients are multiplied, by a slice step along their ray; `eta` follows.

    `penalty` is minus their log prior density, half the sum of precisions times squares.
    """
    steps = slice_state()
    value = _log_likelihood(eta, way, n_row, 1.0, 0.0, 0) - penalty
    point = slice_begin(steps, 0.0, value, 1.0, rng)
    while slice_wants_more(steps):
        # bounded: the exponential stays finite
        factor = math.exp(min(point, 300.0))
        value = _log_likelihood(eta, way, n_row, factor, 0.0, 0) - penalty * factor * factor
        # n point: the Jacobian of a step along the ray, on the scale of logarithms
        point = slice_next(steps, value + n * point, rng)
    factor = math.exp(min(point, 300.0))
    # predictors are linear in the coefficients
    for i in range(n_row):
        for h in range(eta.shape[1]):
            eta[i, h] *= factor
    return factor


@kernel
def move_intercept(eta, way, n_row, gate, h, precision, rng):
    """Move the intercept of way h + 1 by a slice step; `eta` follows."""
    steps = slice_state()
    # about as wide as the other coefficients are large, which the step does not change
    width = 1.0
    for k in range(1, gate.shape[1]):
        width += 0.25 * abs(gate[h, k])
    old = gate[h, 0]
    value = _log_likelihood(eta, way, n_row, 1.0, 0.0, h) - 0.5 * precision * old * old
    point = slice_begin(steps, old, value, width, rng)
    while slice_wants_more(steps):
        value = _log_likelihood(eta, way, n_row, 1.0, point - old, h) - 0.5 * precision * point * point
        point = slice_next(steps, value, rng)
    gate[h, 0] = point
    for i in range(n_row):
        eta[i, h] += point - old


@kernel
def _move_along(eta, way, n_row, gate, precision, rng):
    """Replace a gate by a slice step along its ray, then move each way's intercept by one."""
    squares = 0.0
    for h in range(gate.shape[0]):
        squares += dot(gate[h], gate[h])
    if squares == 0.0:
        return
    factor = draw_factor(eta, way, n_row, 0.5 * precision * squares, gate.size, rng)
    for h in range(gate.shape[0]):
        for k in range(gate.shape[1]):
            gate[h, k] *= factor
    for h in range(gate.shape[0]):
        move_intercept(eta, way, n_row, gate, h, precision, rng)


@kernel
def update_gates(task, state, leaf, order, first, work, rng):
    """Replace the coefficients of all gates by a draw given the rows' paths.

    Parameters
    ----------
    task : Task
    state : Coefficients
    leaf : int64 (n_row,)
    order, first : int64 (n_row,), int64 (n_leaf + 1,)
        Rows in the order of their leaves; see `bayesjpt.kernels.expert_sweep.fill_order`.
    work : float64 (n_gate_covariate + 1, n_gate_covariate)
    rng : numpy.random.Generator
    """
    n_leaf, n = first.size - 1, work.shape[1]
    n_way = count_ways(state.node.shape[0], n_leaf)
    way, eta = np.empty(leaf.size, np.int64), np.empty((leaf.size, n_way - 1))
    width, row = n_leaf, 0
    while width > 1:
        step = width // n_way
        for start in range(0, n_leaf, width):
            rows = order[first[start] : first[start + width]]
            gate = state.gate[row : row + n_way - 1]
            row += n_way - 1
            for i in range(rows.size):
                # leaves below a gate lie side by side: the part that a leaf lies in is its way
                way[i] = (leaf[rows[i]] - start) // step
            if n == 1:
                _draw_weights(way, rows.size, n_way, gate, rng)
                continue
            _draw_ways(task.gate_x, rows, way, gate, state.gate_precision[0], work, rng)
            for i in range(rows.size):
                for h in range(n_way - 1):
                    eta[i, h] = dot(task.gate_x[rows[i]], gate[h])
            _move_along(eta, way, rows.size, gate, state.gate_precision[0], rng)
        width = step
