"""One Gibbs sweep of a tree of gated experts: coefficients given the rows' paths, then paths given coefficients.

Rows are kept in the order of their leaves, so that the rows of every node, gates included, are a slice of one array:

      order     | leaf 0 | leaf 1 | leaf 2 | leaf 3 |
      first                ^        ^                      rows of the left child of the root: order[first[0]:first[2]]

Logistic likelihoods are made Gaussian by Polya-Gamma draws; a multinomial one is updated label by label, each given
the others (Holmes and Held, 2006, section 3, with the augmentation of Polson, Scott and Windle, 2013). Coefficients of
Poisson and gamma experts are drawn one by one by slice sampling (Neal, 2003).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_gates import add_row, begin_normal, update_gates
from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    LOGISTIC,
    MULTINOMIAL,
    POISSON,
    add_log_likelihoods,
    as_columns,
    bounded,
    count_ways,
    dot,
    fill_path_weights,
    fill_products,
)
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.draw import draw_gamma, draw_gamma_above, draw_gamma_below
from bayesjpt.numerics.incomplete_gamma import log_gamma_p
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.normal_draw import draw_normal
from bayesjpt.numerics.polya_gamma import draw_polya_gamma
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more


class Prior(NamedTuple):
    """Hyperparameters; gamma distributions by shape and rate.

    Attributes
    ----------
    gate_shape, gate_rate : float
        Of the precision of gates' coefficients around 0.
    precision_shape : float
        Of the precisions of experts' coefficients around their parent's.
    precision_rate, least_precision : float64 (2, n_response)
        Rates of these, and what they are at least: of the root, and of all other levels.
    noise_shape : float
        Of gaussian experts' precisions, whose rate is shared and drawn.
    noise_rate_shape, noise_rate_rate : float
        Of that rate.
    log_shape_mean, log_shape_deviation : float
        Of the logarithm of gamma experts' shapes, which is normal.
    floor : float64 (n_response,)
        Least variance of a gaussian expert: that of a rounding error.
    """

    gate_shape: float
    gate_rate: float
    precision_shape: float
    precision_rate: np.ndarray
    least_precision: np.ndarray
    noise_shape: float
    noise_rate_shape: float
    noise_rate_rate: float
    log_shape_mean: float
    log_shape_deviation: float
    floor: np.ndarray


@kernel
def fill_order(leaf, order, first):
    """Fill the rows in the order of their leaves, and where each leaf's begin; first is int64 (n_leaf + 1,)."""
    first[:] = 0
    for row in range(leaf.size):
        first[leaf[row] + 1] += 1
    for k in range(1, first.size):
        first[k] += first[k - 1]
    place = first.copy()
    for row in range(leaf.size):
        order[place[leaf[row]]] = row
        place[leaf[row]] += 1


@kernel
def fill_paths(task, state, rng, leaf):
    """Draw the leaf of every row given coefficients."""
    n_leaf, columns = state.dispersion.shape[0], as_columns(state)
    n_way, value = count_ways(state.node.shape[0], n_leaf), np.empty(n_leaf)
    log_odds, eta = np.empty(n_leaf - 1), np.empty(columns.leaf.shape[1])
    for row in range(leaf.size):
        fill_products(task.gate_x[row], columns.gate, log_odds)
        fill_path_weights(log_odds, n_way, value)
        add_log_likelihoods(task, row, state.dispersion, columns, eta, value)
        top = -np.inf
        for k in range(n_leaf):
            top = max(top, value[k])
        total = 0.0
        for k in range(n_leaf):
            total += math.exp(value[k] - top)
            value[k] = total
        level = rng.random() * total
        chosen = 0
        while chosen < n_leaf - 1 and value[chosen] <= level:
            chosen += 1
        leaf[row] = chosen


@kernel
def parent_of(state, node):
    """Return the gate above a node."""
    return (node - 1) // count_ways(state.node.shape[0], state.dispersion.shape[0])


@kernel
def _update_gaussian(task, rows, gram, c, state, node, at_leaf, prior, work, rng):
    """Draw the coefficients of one gaussian expert given its variance, then the variance."""
    level, n = work[0], work.shape[1]
    a, b = work[1 : n + 1], work[n + 1]
    h, tau = task.at[c], level[0]
    precision = 1.0 / state.dispersion[at_leaf, c]
    parent = state.node[parent_of(state, node), h] if node > 0 else work[n + 2]
    for i in range(n):
        b[i] = tau * parent[i]
        for j in range(i + 1):
            a[i, j] = precision * gram[i, j]
        a[i, i] += tau
    for i in range(rows.size):
        x = task.x[rows[i]]
        scaled = precision * (task.y[c, rows[i]] - task.offset[c])
        for k in range(n):
            b[k] += scaled * x[k]
    coefficient = state.node[node, h]
    draw_normal(a, b, coefficient, rng)
    squares = 0.0
    for i in range(rows.size):
        deviation = task.y[c, rows[i]] - task.offset[c] - dot(task.x[rows[i]], coefficient)
        squares += deviation * deviation
    drawn = draw_gamma_below(
        prior.noise_shape + 0.5 * rows.size, state.noise[c] + 0.5 * squares, 1.0 / prior.floor[c], rng
    )
    state.dispersion[at_leaf, c] = max(1.0 / drawn, prior.floor[c])


@kernel
def _update_logistic(task, rows, c, state, node, work, rng):
    """Draw the coefficients of one logistic expert, or of each label of a multinomial one given the others'."""
    n = work.shape[1]
    tau, a, b = work[0, 0], work[1 : n + 1], work[n + 1]
    first, last = task.at[c], task.at[c + 1]
    multinomial = last > first + 1
    for h in range(first, last):
        parent = state.node[parent_of(state, node), h] if node > 0 else work[n + 2]
        begin_normal(a, b, tau, parent)
        for i in range(rows.size):
            x, y = task.x[rows[i]], task.y[c, rows[i]]
            others = 0.0  # log of the sum over the other labels of exp(predictor)
            if multinomial:
                others = -np.inf
                for k in range(first, last):
                    if k != h:
                        eta = dot(x, state.node[node, k])
                        top = max(others, eta)
                        others = top + math.log(math.exp(others - top) + math.exp(eta - top))
                hit = int(y) == h - first
            else:
                hit = y > 0.5
            weight = draw_polya_gamma(dot(x, state.node[node, h]) - others, rng)
            add_row(x, weight, (0.5 if hit else -0.5) + weight * others, a, b)
        draw_normal(a, b, state.node[node, h], rng)


@kernel
def _count_likelihood(kind, y, eta, shape):
    """Return the part of a Poisson or gamma log likelihood that depends on the predictor."""
    log_mean = bounded(eta)
    if kind == POISSON:
        return y * log_mean - math.exp(log_mean)
    return -shape * (log_mean + y * math.exp(-log_mean))


@kernel
def _update_log_linear(task, rows, c, state, node, at_leaf, work, rng):
    """Draw the coefficients of a Poisson or gamma expert one after the other, each by a slice step."""
    n = work.shape[1]
    tau, h, kind = work[0, 0], task.at[c], task.kind[c]
    coefficient, shape = state.node[node, h], state.dispersion[at_leaf, c]
    parent = state.node[parent_of(state, node), h] if node > 0 else work[n + 2]
    eta = np.empty(rows.size)
    for i in range(rows.size):
        eta[i] = task.offset[c] + dot(task.x[rows[i]], coefficient)
    steps = slice_state()
    for j in range(n):
        # about the curvature, made of what the step does not change
        curvature = tau
        for i in range(rows.size):
            curvature += task.x[rows[i], j] ** 2 * (task.y[c, rows[i]] if kind == POISSON else shape)
        old = coefficient[j]
        point = old
        value = -0.5 * tau * (old - parent[j]) ** 2
        for i in range(rows.size):
            value += _count_likelihood(kind, task.y[c, rows[i]], eta[i], shape)
        point = slice_begin(steps, old, value, 2.0 / math.sqrt(curvature), rng)
        while slice_wants_more(steps):
            value = -0.5 * tau * (point - parent[j]) ** 2
            for i in range(rows.size):
                moved = eta[i] + (point - old) * task.x[rows[i], j]
                value += _count_likelihood(kind, task.y[c, rows[i]], moved, shape)
            point = slice_next(steps, value, rng)
        coefficient[j] = point
        for i in range(rows.size):
            eta[i] += (point - old) * task.x[rows[i], j]


@kernel
def _log_shape_density(log_shape, n, total, prior):
    """Return the log density of the log shape; `total` is the sum of log(y / mean) - y / mean."""
    shape = math.exp(log_shape)
    deviation = (log_shape - prior.log_shape_mean) / prior.log_shape_deviation
    return n * (shape * log_shape - math.lgamma(shape)) + shape * total - 0.5 * deviation * deviation


@kernel
def _update_shape(task, rows, c, state, node, at_leaf, prior, rng):
    """Draw the shape of a gamma expert by a slice step on its logarithm."""
    total = 0.0
    coefficient = state.node[node, task.at[c]]
    for i in range(rows.size):
        log_mean = bounded(task.offset[c] + dot(task.x[rows[i]], coefficient))
        ratio = math.log(task.y[c, rows[i]]) - log_mean
        total += ratio - math.exp(ratio)
    n = float(rows.size)
    steps = slice_state()
    point = math.log(state.dispersion[at_leaf, c])
    width = 2.0 / math.sqrt(0.5 * n + 1.0 / prior.log_shape_deviation**2)
    point = slice_begin(steps, point, _log_shape_density(point, n, total, prior), width, rng)
    while slice_wants_more(steps):
        point = slice_next(steps, _log_shape_density(point, n, total, prior), rng)
    state.dispersion[at_leaf, c] = math.exp(point)


@kernel
def _update_leaves(task, state, order, first, prior, rng):
    n_leaf, n = first.size - 1, task.x.shape[1]
    n_gate = state.node.shape[0] - n_leaf
    depth = state.precision.shape[0] - 1
    # the level's precision; a matrix; its linear term; zeros, the centre of a root that is a leaf
    work = np.zeros((n + 3, n))
    gram, unused = np.zeros((n, n)), np.zeros(n)
    some_gaussian = False
    for c in range(task.kind.size):
        some_gaussian |= task.kind[c] == GAUSSIAN
    for at_leaf in range(n_leaf):
        node, rows = n_gate + at_leaf, order[first[at_leaf] : first[at_leaf + 1]]
        if some_gaussian:
            gram[:] = 0.0
            for i in range(rows.size):
                add_row(task.x[rows[i]], 1.0, 0.0, gram, unused)
        for c in range(task.kind.size):
            work[0, 0] = state.precision[depth, c]
            if task.kind[c] == GAUSSIAN:
                _update_gaussian(task, rows, gram, c, state, node, at_leaf, prior, work, rng)
            elif task.kind[c] == LOGISTIC or task.kind[c] == MULTINOMIAL:
                _update_logistic(task, rows, c, state, node, work, rng)
            else:
                _update_log_linear(task, rows, c, state, node, at_leaf, work, rng)
                if task.kind[c] == GAMMA:
                    _update_shape(task, rows, c, state, node, at_leaf, prior, rng)


@kernel
def _update_centres(task, state, rng):
    """Draw the coefficients of gates' experts given their parent's and children's, from the leaves' parents up."""
    n_leaf = state.dispersion.shape[0]
    n_gate, n_way = state.node.shape[0] - n_leaf, count_ways(state.node.shape[0], n_leaf)
    depth = state.precision.shape[0] - 1
    level, n_above = depth, n_gate  # nodes of levels above
    for node in range(n_gate - 1, -1, -1):
        if node < n_above:
            level -= 1
            n_above = (n_above - 1) // n_way
        for c in range(task.kind.size):
            above, below = state.precision[level, c], state.precision[level + 1, c]
            total = above + n_way * below
            for h in range(task.at[c], task.at[c + 1]):
                for k in range(task.x.shape[1]):
                    mean = 0.0
                    for child in range(n_way * node + 1, n_way * node + n_way + 1):
                        mean += below * state.node[child, h, k]
                    if node > 0:
                        mean += above * state.node[(node - 1) // n_way, h, k]
                    state.node[node, h, k] = mean / total + rng.standard_normal() / math.sqrt(total)


@kernel
def _update_precisions(task, state, prior, rng):
    n_covariate = task.x.shape[1]
    n_way = count_ways(state.node.shape[0], state.dispersion.shape[0])
    for c in range(task.kind.size):
        n_predictor = task.at[c + 1] - task.at[c]
        first, last = 0, 1
        for level in range(state.precision.shape[0]):
            squares = 0.0
            for node in range(first, last):
                for h in range(task.at[c], task.at[c + 1]):
                    for k in range(n_covariate):
                        centre = state.node[(node - 1) // n_way, h, k] if node > 0 else 0.0
                        squares += (state.node[node, h, k] - centre) ** 2
            n, below = (last - first) * n_predictor * n_covariate, min(level, 1)
            shape, rate = prior.precision_shape + 0.5 * n, prior.precision_rate[below, c] + 0.5 * squares
            state.precision[level, c] = draw_gamma_above(shape, rate, prior.least_precision[below, c], rng)
            first, last = last, n_way * last + 1
    squares = 0.0
    for g in range(state.gate.shape[0]):
        squares += dot(state.gate[g], state.gate[g])
    if state.gate.shape[1] > 1:
        shape = prior.gate_shape + 0.5 * state.gate.size
        state.gate_precision[0] = draw_gamma(shape, prior.gate_rate + 0.5 * squares, rng)


@kernel
def _log_noise_density(log_rate, n_leaf, total, upper, prior):
    """Return the log density of the log of the shared rate; leaves' precisions are truncated, and so normalised."""
    rate = math.exp(log_rate)
    shape = prior.noise_shape
    value = (prior.noise_rate_shape + n_leaf * shape) * log_rate - (prior.noise_rate_rate + total) * rate
    return value - n_leaf * log_gamma_p(shape, rate * upper)


@kernel
def _update_noise(task, state, prior, rng):
    n_leaf = state.dispersion.shape[0]
    steps = slice_state()
    for c in range(task.kind.size):
        if task.kind[c] == GAUSSIAN:
            total = 0.0
            for at_leaf in range(n_leaf):
                total += 1.0 / state.dispersion[at_leaf, c]
            upper = 1.0 / prior.floor[c]
            point = math.log(state.noise[c])
            point = slice_begin(steps, point, _log_noise_density(point, n_leaf, total, upper, prior), 1.0, rng)
            while slice_wants_more(steps):
                point = slice_next(steps, _log_noise_density(point, n_leaf, total, upper, prior), rng)
            state.noise[c] = math.exp(point)


@kernel
def draw_experts(task, state, order, first, prior, rng):
    """Replace all but gates' coefficients by a draw given the rows of each leaf; see `fill_order`."""
    _update_leaves(task, state, order, first, prior, rng)
    _update_centres(task, state, rng)
    _update_precisions(task, state, prior, rng)
    _update_noise(task, state, prior, rng)


@kernel
def draw_given_paths(task, state, prior, leaf, rng):
    """Replace the state by a draw given the rows' paths, one part after the other; parameters as of `sweep`."""
    task, state, prior = borrowed(task), borrowed(state), borrowed(prior)
    n_leaf = state.dispersion.shape[0]
    order, first = np.empty(leaf.size, np.int64), np.empty(n_leaf + 1, np.int64)
    fill_order(leaf, order, first)
    n = task.gate_x.shape[1]
    update_gates(task, state, leaf, order, first, np.zeros((n + 1, n)), rng)
    draw_experts(task, state, order, first, prior, rng)


@kernel
def sweep(task, state, prior, leaf, rng):
    """Replace state and paths by a draw that leaves their posterior as it is.

    Parameters
    ----------
    task : Task
    state : Coefficients
        Overwritten.
    prior : Prior
    leaf : int64 (n_row,)
        The leaf of each row; overwritten.
    rng : numpy.random.Generator

    Notes
    -----
    Cost: rows times (leaves times predictors times covariates + depth times covariates squared).
    """
    draw_given_paths(task, state, prior, leaf, rng)
    fill_paths(task, state, rng, leaf)


@kernel
def record(state, draw, kept):
    """Write a state as one draw of `kept`, which has the arrays of Coefficients, a draw a row."""
    kept.gate[draw] = state.gate
    kept.node[draw] = state.node
    kept.dispersion[draw] = state.dispersion
    kept.gate_precision[draw] = state.gate_precision
    kept.precision[draw] = state.precision
    kept.noise[draw] = state.noise


@kernel
def run_chain(task, state, prior, leaf, rng, n_skip, kept):
    """Sweep, and record the states after the first `n_skip`; `kept` has the arrays of Coefficients, a draw a row."""
    n_kept = kept.gate.shape[0]
    for k in range(n_skip + n_kept):
        sweep(task, state, prior, leaf, rng)
        if k >= n_skip:
            record(state, k - n_skip, kept)
