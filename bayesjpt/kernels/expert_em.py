"""Expectation-maximisation for a tree of gated experts: posteriors up and down the tree, then a regression a node.

The E step needs one array, a row of it a node. On the way up it holds log likelihoods of subtrees; as soon as a gate
has its own, its children's become their posterior shares given the gate; on the way down these become those of the
whole tree:

      up      log p(y | below 1), log p(y | below 2)    ->  gate: log p(y | below 0), children: h_1|0, h_2|0
      down    h_0 = 1                                   ->  h_1 = h_1|0 h_0, ...

A gate that is closed sends all rows to the left, so that a tree need not be complete; nodes below its other children
are not looked at. Gates of more than two ways are softmax, and fitted way by way, each given the others.

Reference: Jordan and Jacobs (1994), Hierarchical Mixtures of Experts and the EM Algorithm, section 4.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_glm import (
    LEAST_WEIGHT,
    add_weighted,
    believed_log_odds,
    best_shape,
    gaussian_step,
    make_cases,
    newton_step,
    solve_positive,
)
from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    LOGISTIC,
    MULTINOMIAL,
    bounded,
    count_ways,
    dot,
    response_log_likelihood,
)
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel

_BLOCK = 256
_SOLVED = 1e-20
"""A Newton step that gains less, in nats a row, leaves a slope of rounding errors."""


class Penalty(NamedTuple):
    """What is added to the log likelihood.

    Attributes
    ----------
    ridge : float
        Precision of gates' coefficients, intercepts too, around 0.
    expert_ridge : float64 (n_response,)
        Of the coefficients of experts.
    n_row, variance : float
        Imaginary rows of every gaussian expert, and their squared residual.
    log_shape_mean, log_shape_precision : float
        Of the normal prior of the logarithm of gamma experts' shapes.
    floor : float64 (n_response,)
        Least variance of a gaussian expert.
    """

    ridge: float
    expert_ridge: np.ndarray
    n_row: float
    variance: float
    log_shape_mean: float
    log_shape_precision: float
    floor: np.ndarray


@kernel
def fill_active(opened, active):
    """Fill active, bool (n_node,), with the nodes that some row can be at."""
    active[:] = False
    active[0] = True
    n_way = count_ways(active.size, active.size - opened.size)
    for gate in range(opened.size):
        if active[gate]:
            active[n_way * gate + 1] = True
            for child in range(n_way * gate + 2, n_way * gate + n_way + 1):
                active[child] = opened[gate]


@kernel
def _fill_predictor(x, lo, size, coefficient, offset, out):
    """Fill the linear predictors of a block; x holds its covariates side by side, (n_covariate, _BLOCK)."""
    for i in range(size):
        out[i] = offset
    for k in range(coefficient.size):
        slope, covariate = coefficient[k], x[k]
        for i in range(size):
            out[i] += slope * covariate[i]


@kernel
def _add_log_likelihood(kind, y, eta, size, dispersion, one, out):
    """Add the log likelihood of a response at a leaf; eta is (n_predictor, _BLOCK)."""
    if kind == GAUSSIAN:
        constant, precision = response_log_likelihood(kind, 0.0, np.zeros(1), dispersion), 0.5 / dispersion
        for i in range(size):
            deviation = y[i] - eta[0, i]
            out[i] += constant - precision * deviation * deviation
    else:
        for i in range(size):
            for h in range(eta.shape[0]):
                one[h] = eta[h, i]
            out[i] += response_log_likelihood(kind, y[i], one[: eta.shape[0]], dispersion)


@kernel
def _up(log_odds, left, right, size, out):
    """Replace log likelihoods of both children by posterior shares, and fill those of their gate."""
    for i in range(size):
        prior, likelihood = log_odds[i], right[i] - left[i]
        posterior = prior + likelihood
        small, size_of = math.exp(-abs(prior)), math.exp(-abs(posterior))
        # log weights of both ways: min(-+prior, 0) - log1p(small); from the likelier way nothing cancels
        if posterior > 0.0:
            out[i] = right[i] + min(prior, 0.0) - math.log1p(small) + math.log1p(size_of)
            right[i] = 1.0 / (1.0 + size_of)
            left[i] = size_of / (1.0 + size_of)
        else:
            out[i] = left[i] + min(-prior, 0.0) - math.log1p(small) + math.log1p(size_of)
            left[i] = 1.0 / (1.0 + size_of)
            right[i] = size_of / (1.0 + size_of)


@kernel
def _up_softmax(log_odds, below, out):
    """Do as `_up` does at a gate of several ways; `log_odds` are (n_way - 1, n_row), `below` (n_way, n_row)."""
    n_way = below.shape[0]
    for i in range(out.size):
        top, most = 0.0, below[0, i]
        for k in range(1, n_way):
            top = max(top, log_odds[k - 1, i])
            most = max(most, below[k, i] + log_odds[k - 1, i])
        prior, total = math.exp(-top), math.exp(below[0, i] - most)
        for k in range(1, n_way):
            prior += math.exp(log_odds[k - 1, i] - top)
            total += math.exp(below[k, i] + log_odds[k - 1, i] - most)
        for k in range(n_way):
            joint = below[k, i] + (log_odds[k - 1, i] if k > 0 else 0.0)
            below[k, i] = math.exp(joint - most) / total
        out[i] = most + math.log(total) - top - math.log(prior)


@kernel
def fill_posteriors(task, state, opened, posterior):
    """Fill every row's posterior of each node, and return the log likelihood.

    Parameters
    ----------
    task : Task
    state : Coefficients
    opened : bool (n_gate,)
    posterior : float64 (n_node, n_row)

    Notes
    -----
    Cost: rows times (predictors of all leaves + gates) times covariates.
    """
    n_node, n_row = posterior.shape
    n_gate = n_node - state.dispersion.shape[0]
    n_way = count_ways(n_node, n_node - n_gate)
    active = np.empty(n_node, np.bool_)
    fill_active(opened, active)
    # covariate by covariate, so that rows are what the inner loops run over
    x, gate_x = np.empty((task.x.shape[1], _BLOCK)), np.empty((task.gate_x.shape[1], _BLOCK))
    eta, one = np.empty((state.node.shape[1], _BLOCK)), np.empty(state.node.shape[1])
    log_odds = np.empty((n_way - 1, _BLOCK))
    total = 0.0
    for lo in range(0, n_row, _BLOCK):
        hi = min(lo + _BLOCK, n_row)
        size = hi - lo
        for i in range(size):
            for k in range(x.shape[0]):
                x[k, i] = task.x[lo + i, k]
            for k in range(gate_x.shape[0]):
                gate_x[k, i] = task.gate_x[lo + i, k]
        # from the last node up: a gate needs the log likelihoods of its children
        for node in range(n_node - 1, -1, -1):
            node_posterior = posterior[node, lo:hi]
            if not active[node]:
                node_posterior[:] = 0.0
            elif node >= n_gate:
                node_posterior[:] = 0.0
                for c in range(task.kind.size):
                    first, last = task.at[c], task.at[c + 1]
                    for h in range(first, last):
                        _fill_predictor(x, lo, size, state.node[node, h], task.offset[c], eta[h])
                    dispersion = state.dispersion[node - n_gate, c]
                    _add_log_likelihood(
                        task.kind[c], task.y[c, lo:hi], eta[first:last], size, dispersion, one, node_posterior
                    )
            elif opened[node]:
                for h in range(n_way - 1):
                    _fill_predictor(gate_x, lo, size, state.gate[(n_way - 1) * node + h], 0.0, log_odds[h])
                if n_way == 2:
                    _up(
                        log_odds[0],
                        posterior[2 * node + 1, lo:hi],
                        posterior[2 * node + 2, lo:hi],
                        size,
                        node_posterior,
                    )
                else:
                    first = n_way * node + 1
                    _up_softmax(log_odds[:, :size], posterior[first : first + n_way, lo:hi], node_posterior)
            else:
                below = posterior[n_way * node + 1, lo:hi]
                for i in range(size):
                    node_posterior[i] = below[i]
                    below[i] = 1.0
        for i in range(lo, hi):
            total += posterior[0, i]
            posterior[0, i] = 1.0
        # parents first: their shares are those of the whole tree when a child's turn comes
        for node in range(1, n_node):
            if active[node]:
                parent = (node - 1) // n_way
                for i in range(lo, hi):
                    posterior[node, i] *= posterior[parent, i]
    return total


@kernel
def penalty_of(task, state, opened, penalty):
    """Return what is added to the log likelihood of a state."""
    n_gate, n_node = opened.size, state.node.shape[0]
    n_way = count_ways(n_node, n_node - n_gate)
    active = np.empty(n_node, np.bool_)
    fill_active(opened, active)
    total = 0.0
    for node in range(active.size):
        if active[node] and node < n_gate and opened[node]:
            for row in range((n_way - 1) * node, (n_way - 1) * (node + 1)):
                total -= 0.5 * penalty.ridge * dot(state.gate[row], state.gate[row])
        if active[node] and node >= n_gate:
            for c in range(task.kind.size):
                for h in range(task.at[c], task.at[c + 1]):
                    total -= 0.5 * penalty.expert_ridge[c] * dot(state.node[node, h], state.node[node, h])
                dispersion = state.dispersion[node - n_gate, c]
                if task.kind[c] == GAUSSIAN:
                    total -= 0.5 * penalty.n_row * (math.log(dispersion) + penalty.variance / dispersion)
                elif task.kind[c] == GAMMA:
                    deviation = math.log(dispersion) - penalty.log_shape_mean
                    total -= 0.5 * penalty.log_shape_precision * deviation * deviation
    return total


@kernel
def _take(posterior, node, cases):
    """Take the rows that may be at a node, with their posteriors as weights, and return their number."""
    n_case = 0
    for row in range(posterior.shape[1]):
        if posterior[node, row] > LEAST_WEIGHT:
            cases.row[n_case] = row
            cases.weight[n_case] = posterior[node, row]
            n_case += 1
    return n_case


@kernel
def improve_gate(task, state, penalty, posterior, gate, cases, n_step):
    """Fit a gate to the posterior shares of its children by steps of reweighted least squares, way by way."""
    n_case = _take(posterior, gate, cases)
    n_way = count_ways(posterior.shape[0], state.dispersion.shape[0])
    first = (n_way - 1) * gate
    for _ in range(n_step):
        gain = 0.0
        for h in range(n_way - 1):
            for i in range(n_case):
                row = cases.row[i]
                others = 0.0  # log of the sum over the other ways of exp(log odds); that of the first is 0
                for k in range(n_way - 1):
                    if k != h:
                        eta = dot(task.gate_x[row], state.gate[first + k])
                        top = max(others, eta)
                        others = top + math.log(math.exp(others - top) + math.exp(eta - top))
                cases.shift[i] = -others
                # at most 1, which a quotient of rounded shares may exceed
                cases.y[i] = min(posterior[n_way * gate + 2 + h, row] / cases.weight[i], 1.0)
            gain += newton_step(LOGISTIC, task.gate_x, cases, n_case, 1.0, penalty.ridge, state.gate[first + h])
        if gain <= _SOLVED * (1.0 + n_case):
            break


@kernel
def regress_gate(task, state, penalty, posterior, gate, cases):
    """Fit a gate to the log odds of the posterior shares of its children by weighted least squares."""
    n_case = _take(posterior, gate, cases)
    x, a, b = task.gate_x, cases.matrix, cases.linear
    a[:] = 0.0
    b[:] = 0.0
    for k in range(b.size):
        a[k, k] = penalty.ridge
    for i in range(n_case):
        left, right = posterior[2 * gate + 1, cases.row[i]], posterior[2 * gate + 2, cases.row[i]]
        scaled = cases.weight[i] * believed_log_odds(left, right)
        covariates = x[cases.row[i]]
        for k in range(b.size):
            b[k] += scaled * covariates[k]
        add_weighted(covariates, cases.weight[i], a)
    solve_positive(a, b, state.gate[gate])


@kernel
def _improve_labels(task, state, penalty, node, c, cases, n_case):
    """Fit the coefficients of a label given those of the others, one label after the other."""
    first, last = task.at[c], task.at[c + 1]
    gain, ridge = 0.0, penalty.expert_ridge[c]
    for h in range(first, last):
        for i in range(n_case):
            row = cases.row[i]
            others = -np.inf  # log of the sum over the other labels of exp(predictor)
            for k in range(first, last):
                if k != h:
                    eta = dot(task.x[row], state.node[node, k])
                    top = max(others, eta)
                    others = top + math.log(math.exp(others - top) + math.exp(eta - top))
            cases.shift[i] = -others
            cases.y[i] = 1.0 if int(task.y[c, row]) == h - first else 0.0
        gain += newton_step(LOGISTIC, task.x, cases, n_case, 1.0, ridge, state.node[node, h])
    return gain


@kernel
def _improve_shape(task, state, penalty, node, at_leaf, c, cases, n_case):
    total, weight = 0.0, 0.0
    coefficient = state.node[node, task.at[c]]
    for i in range(n_case):
        log_mean = bounded(task.offset[c] + dot(task.x[cases.row[i]], coefficient))
        ratio = math.log(task.y[c, cases.row[i]]) - log_mean
        total += cases.weight[i] * (ratio - math.exp(ratio))
        weight += cases.weight[i]
    state.dispersion[at_leaf, c] = best_shape(
        state.dispersion[at_leaf, c], weight, total, penalty.log_shape_mean, penalty.log_shape_precision
    )


@kernel
def improve_leaf(task, state, penalty, posterior, at_leaf, cases, gram, n_step):
    """Fit a leaf's experts to rows weighted by their posteriors of the leaf."""
    node = posterior.shape[0] - state.dispersion.shape[0] + at_leaf
    n_case = _take(posterior, node, cases)
    weight = 0.0
    some_gaussian = False
    for c in range(task.kind.size):
        some_gaussian |= task.kind[c] == GAUSSIAN
    gram[:] = 0.0
    for i in range(n_case):
        weight += cases.weight[i]
        if some_gaussian:
            # one matrix for all gaussian responses: they share covariates and weights
            add_weighted(task.x[cases.row[i]], cases.weight[i], gram)
    for c in range(task.kind.size):
        kind, coefficient, ridge = task.kind[c], state.node[node, task.at[c]], penalty.expert_ridge[c]
        for i in range(n_case):
            cases.y[i] = task.y[c, cases.row[i]]
            cases.shift[i] = task.offset[c]
        if kind == GAUSSIAN:
            variance = state.dispersion[at_leaf, c]
            squares = gaussian_step(task.x, cases, n_case, gram, variance, ridge, coefficient)
            squares += penalty.n_row * penalty.variance
            # of a leaf without rows or penalty any variance is as good: the old one stays
            if weight + penalty.n_row > 0.0:
                state.dispersion[at_leaf, c] = max(squares / (weight + penalty.n_row), penalty.floor[c])
            continue
        for _ in range(n_step):
            if kind == MULTINOMIAL:
                gain = _improve_labels(task, state, penalty, node, c, cases, n_case)
            else:
                shape = state.dispersion[at_leaf, c]
                gain = newton_step(kind, task.x, cases, n_case, shape, ridge, coefficient)
            if gain <= _SOLVED * (1.0 + n_case):
                break
        if kind == GAMMA and n_case > 0:
            _improve_shape(task, state, penalty, node, at_leaf, c, cases, n_case)


@kernel
def improve_leaves(task, state, opened, penalty, posterior, n_step):
    """Fit the experts of all leaves."""
    active = np.empty(posterior.shape[0], np.bool_)
    fill_active(opened, active)
    n = task.x.shape[1]
    cases, gram = make_cases(posterior.shape[1], n), np.empty((n, n))
    for at_leaf in range(state.dispersion.shape[0]):
        if active[opened.size + at_leaf]:
            improve_leaf(task, state, penalty, posterior, at_leaf, cases, gram, n_step)


@kernel
def improve_gates(task, state, opened, penalty, posterior, n_step):
    """Fit all gates by reweighted least squares."""
    active = np.empty(posterior.shape[0], np.bool_)
    fill_active(opened, active)
    cases = make_cases(posterior.shape[1], task.gate_x.shape[1])
    for gate in range(opened.size):
        if active[gate] and opened[gate]:
            improve_gate(task, state, penalty, posterior, gate, cases, n_step)


@kernel
def regress_gates(task, state, opened, penalty, posterior):
    """Fit all gates by least squares to posterior log odds."""
    active = np.empty(posterior.shape[0], np.bool_)
    fill_active(opened, active)
    cases = make_cases(posterior.shape[1], task.gate_x.shape[1])
    for gate in range(opened.size):
        if active[gate] and opened[gate]:
            regress_gate(task, state, penalty, posterior, gate, cases)


@kernel
def em_pass(task, state, opened, penalty, posterior, n_step):
    """Improve a state by one pass of EM and return the penalised log likelihood that it had.

    Parameters
    ----------
    task : Task
    state : Coefficients
        Changed in place.
    opened : bool (n_gate,)
        Gates that divide their rows; the others send all to the left.
    penalty : Penalty
    posterior : float64 (n_node, n_row)
        Filled with the posteriors under the old state.
    n_step : int
        Newton steps of each regression at most.
    """
    task, state, penalty = borrowed(task), borrowed(state), borrowed(penalty)
    value = fill_posteriors(task, state, opened, posterior) + penalty_of(task, state, opened, penalty)
    improve_leaves(task, state, opened, penalty, posterior, n_step)
    improve_gates(task, state, opened, penalty, posterior, n_step)
    return value


@kernel
def least_squares_pass(task, state, opened, penalty, posterior):
    """Replace a state by one pass of least squares and return the penalised log likelihood that it had; see `em_pass`.

    Gates are regressions of posterior log odds, experts one weighted least-squares step; nothing promises that the
    likelihood grows.
    """
    task, state, penalty = borrowed(task), borrowed(state), borrowed(penalty)
    value = fill_posteriors(task, state, opened, posterior) + penalty_of(task, state, opened, penalty)
    improve_leaves(task, state, opened, penalty, posterior, 1)
    regress_gates(task, state, opened, penalty, posterior)
    return value
