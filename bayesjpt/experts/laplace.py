"""The Gaussian approximation of a posterior at its optimum: draws of coefficients and of logarithms of dispersions.

The Hessian of a mixture's log likelihood comes from what EM computes anyway (Louis, 1982). With complete-data scores S
and information I_c given the path of a row, expectations over paths given the data:

      information = E[I_c] - E[S S'] + E[S] E[S]'      summed over rows, plus that of the penalty.

References: Louis (1982), Finding the Observed Information Matrix when Using the EM Algorithm, JRSS B 44, equation 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.errors import counted, warn
from bayesjpt.experts.em import Optimum, completed, copied
from bayesjpt.experts.model import ExpertModel
from bayesjpt.kernels.expert_em import Penalty, fill_active, fill_posteriors
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, LOGISTIC, MULTINOMIAL, Coefficients, Task
from bayesjpt.numerics.digamma import digamma

_BLOCK = 2048
_SMALLEST = 1e-9
"""Eigenvalue, of the largest, below which a direction is one in which the optimum is none."""


class Layout:
    """Where the free parameters of a tree stand in one vector: open gates, active leaves, then log dispersions."""

    def __init__(self, model: ExpertModel, opened: np.ndarray):
        active = np.zeros(model.n_node, bool)
        fill_active(opened, active)
        self.gates = np.flatnonzero(active[: model.n_gate] & opened)
        self.leaves = np.flatnonzero(active[model.n_gate :])
        self.n_gate_covariate = len(model.gate_covariates.names)
        self.n_slope = int(model.at[-1]) * len(model.covariates.names)
        self.free = np.flatnonzero(np.isin(model.kind, (GAUSSIAN, GAMMA)))
        first = self.gates.size * self.n_gate_covariate
        self.n_coefficient = first + self.leaves.size * self.n_slope
        self.size = self.n_coefficient + self.leaves.size * self.free.size
        self._first = first

    def gate(self, k: int) -> np.ndarray:
        """Return the places of the k-th open gate."""
        return np.arange(self.n_gate_covariate) + k * self.n_gate_covariate

    def leaf(self, k: int) -> np.ndarray:
        """Return the places of the k-th active leaf, coefficients first."""
        slopes = self._first + k * self.n_slope + np.arange(self.n_slope)
        return np.concatenate([slopes, self.n_coefficient + k * self.free.size + np.arange(self.free.size)])

    def moved(self, model: ExpertModel, state: Coefficients, step: np.ndarray, floor: np.ndarray) -> Coefficients:
        """Return a state moved by a step of the vector; variances stay above their floor."""
        state = copied(state)
        for k, gate in enumerate(self.gates):
            state.gate[gate] += step[self.gate(k)]
        for k, leaf in enumerate(self.leaves):
            own, shape = step[self.leaf(k)], state.node.shape[1:]
            state.node[model.n_gate + leaf] += own[: self.n_slope].reshape(shape)
            state.dispersion[leaf, self.free] *= np.exp(np.clip(own[self.n_slope :], -_MOST, _MOST))
        least = np.where(model.kind == GAUSSIAN, floor, 1e-6)
        np.maximum(state.dispersion, least, out=state.dispersion)
        return state


_MOST = 20.0
"""Of a step of the logarithm of a dispersion, which a leaf without rows hardly holds."""


def information(model: ExpertModel, task: Task, penalty: Penalty, optimum: Optimum) -> np.ndarray:
    """Return minus the Hessian of the penalised log likelihood, float64 (n, n), by the vector of a `Layout`.

    Notes
    -----
    Exact at any state, not at an optimum alone. Cost: rows times parameters squared.
    """
    layout, n_row = Layout(model, optimum.opened), task.x.shape[0]
    state, out = optimum.state, np.zeros((layout.size, layout.size))
    share = np.empty((model.n_node, n_row))
    fill_posteriors(task, state, optimum.opened, share)
    for lo in range(0, n_row, _BLOCK):
        part = slice(lo, min(lo + _BLOCK, n_row))
        _add_rows(model, task, state, layout, share[:, part], part, out)
    return out + np.diag(penalty_information(model, penalty, optimum))


def penalty_information(model: ExpertModel, penalty: Penalty, optimum: Optimum) -> np.ndarray:
    """Return the diagonal of minus the Hessian of the penalty, which has nothing beside it, float64 (n,)."""
    layout = Layout(model, optimum.opened)
    diagonal = np.full(layout.size, penalty.ridge)
    expert_ridge = np.repeat(penalty.expert_ridge, np.diff(model.at) * len(model.covariates.names))
    for k, leaf in enumerate(layout.leaves):
        slopes, own = np.split(layout.leaf(k), [layout.n_slope])
        diagonal[slopes] = expert_ridge
        gaussian = 0.5 * penalty.n_row * penalty.variance / optimum.state.dispersion[leaf, layout.free]
        diagonal[own] = np.where(model.kind[layout.free] == GAUSSIAN, gaussian, penalty.log_shape_precision)
    return diagonal


def _add_rows(
    model: ExpertModel,
    task: Task,
    state: Coefficients,
    layout: Layout,
    share: np.ndarray,
    part: slice,
    out: np.ndarray,
) -> None:
    gate_x = task.gate_x[part]
    mean, gate_at = np.zeros((gate_x.shape[0], layout.size)), {}
    right = np.zeros((model.n_gate, gate_x.shape[0]))
    for k, gate in enumerate(layout.gates):
        own, eta = layout.gate(k), gate_x @ state.gate[gate]
        gate_at[int(gate)] = own
        right[gate] = _expit(eta)
        weight = share[gate] * right[gate] * (1.0 - right[gate])
        out[np.ix_(own, own)] += (gate_x.T * weight) @ gate_x
    for k, leaf in enumerate(layout.leaves):
        weight, own = share[model.n_gate + leaf], layout.leaf(k)
        score, complete = _leaf_terms(model, task, state, layout, int(leaf), part, weight)
        out[np.ix_(own, own)] += complete
        places, scores, node = [own], [score], model.n_gate + int(leaf)
        while node > 0:
            parent = (node - 1) // 2
            if parent in gate_at:
                went = 1.0 if node == 2 * parent + 2 else 0.0
                places.append(gate_at[parent])
                scores.append((went - right[parent])[:, None] * gate_x)
            node = parent
        path, both = np.concatenate(places), np.concatenate(scores, axis=1)
        out[np.ix_(path, path)] -= (both.T * weight) @ both
        mean[:, path] += weight[:, None] * both
    out += mean.T @ mean


def _leaf_terms(
    model: ExpertModel, task: Task, state: Coefficients, layout: Layout, leaf: int, part: slice, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of a leaf's rows, (n_row, n), and its weighted complete-data information, (n, n)."""
    x, node = task.x[part], state.node[model.n_gate + leaf]
    n, p = layout.n_slope + layout.free.size, x.shape[1]
    score, complete = np.zeros((x.shape[0], n)), np.zeros((n, n))
    for c, kind in enumerate(model.kind):
        first, last = int(model.at[c]), int(model.at[c + 1])
        y, eta, dispersion = task.y[c, part], x @ node[first:last].T + task.offset[c], state.dispersion[leaf, c]
        slope, curvature = _slopes(kind, y, eta, dispersion)
        score[:, first * p : last * p] = (slope[:, :, None] * x[:, None, :]).reshape(x.shape[0], -1)
        for h in range(last - first):
            for k in range(last - first):
                at = slice((first + h) * p, (first + h + 1) * p), slice((first + k) * p, (first + k + 1) * p)
                complete[at] += (x.T * (weight * curvature[:, h, k])) @ x
        if c in layout.free:
            at = layout.n_slope + int(np.flatnonzero(layout.free == c)[0])
            own, second, cross = _dispersion_terms(kind, y, eta[:, 0], dispersion)
            score[:, at] = own
            complete[at, at] += weight @ second
            mixed = x.T @ (weight * cross)
            complete[at, first * p : last * p] += mixed
            complete[first * p : last * p, at] += mixed
    return score, complete


def _slopes(kind: int, y: np.ndarray, eta: np.ndarray, dispersion: float) -> tuple[np.ndarray, np.ndarray]:
    """Return derivatives by the predictors, (n_row, K), and minus second derivatives, (n_row, K, K)."""
    if kind == GAUSSIAN:
        return (y[:, None] - eta) / dispersion, np.full((*eta.shape, 1), 1.0 / dispersion)
    if kind == MULTINOMIAL:
        p = np.exp(eta - eta.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        hit = np.eye(eta.shape[1])[y.astype(np.int64)]
        return hit - p, p[:, :, None] * np.eye(eta.shape[1]) - p[:, :, None] * p[:, None, :]
    if kind == LOGISTIC:
        p = _expit(eta)
        return y[:, None] - p, (p * (1.0 - p))[:, :, None]
    mean = np.exp(np.clip(eta, -50.0, 50.0))
    if kind == GAMMA:
        ratio = y[:, None] / mean
        return dispersion * (ratio - 1.0), (dispersion * ratio)[:, :, None]
    return y[:, None] - mean, mean[:, :, None]


def _dispersion_terms(kind: int, y: np.ndarray, eta: np.ndarray, dispersion: float) -> tuple[np.ndarray, ...]:
    """Return the derivative by the log dispersion, minus the second one, and minus the mixed one with the predictor."""
    if kind == GAUSSIAN:
        square = (y - eta) ** 2 / dispersion
        return 0.5 * (square - 1.0), 0.5 * square, (y - eta) / dispersion
    ratio = y * np.exp(-np.clip(eta, -50.0, 50.0))
    own = dispersion * (np.log(dispersion) + 1.0 - eta - digamma(dispersion) + np.log(y) - ratio)
    second = own + dispersion * (1.0 - dispersion * trigamma(dispersion))
    return own, -second, -dispersion * (ratio - 1.0)


def trigamma(x: float) -> float:
    """Return the second derivative of log Gamma(x) for x > 0: recurrence up to 10, then the asymptotic series.

    References
    ----------
    NIST Digital Library of Mathematical Functions, equations 5.15.5 and 5.15.8.

    Examples
    --------
    >>> bool(abs(trigamma(1.0) - np.pi**2 / 6) < 1e-12)
    True
    """
    total = 0.0
    while x < 10.0:
        total += 1.0 / (x * x)
        x += 1.0
    s = 1.0 / (x * x)
    series = 1 / 6 - s * (1 / 30 - s * (1 / 42 - s * (1 / 30 - s * (5 / 66 - s * 691 / 2730))))
    return total + 1.0 / x + 0.5 * s + s / x * series


def _expit(eta: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(eta))
    return np.where(eta >= 0.0, 1.0, small) / (1.0 + small)


def laplace_draws(
    model: ExpertModel, task: Task, penalty: Penalty, optimum: Optimum, n_draw: int, rng: np.random.Generator
) -> tuple[Coefficients, int]:
    """Return draws of the Gaussian approximation at an optimum, with a leading axis, and a number of directions.

    Those are the ones in which it is no optimum; a search that ended early leaves them, and they get the
    penalty's precision. See `tell_no_optimum`.
    """
    layout = Layout(model, optimum.opened)
    value, vector = np.linalg.eigh(information(model, task, penalty, optimum))
    # of each direction its own: a dispersion's is not the ridge
    least = penalty_information(model, penalty, optimum) @ (vector * vector)
    deviation = 1.0 / np.sqrt(np.maximum(value, least))
    steps = (rng.standard_normal((n_draw, layout.size)) * deviation) @ vector.T
    states = [
        completed(model, layout.moved(model, optimum.state, step, penalty.floor), optimum.opened) for step in steps
    ]
    n_none = int((value < -_SMALLEST * value[-1]).sum())
    return Coefficients(*(np.stack(arrays) for arrays in zip(*states, strict=True))), n_none


def tell_no_optimum(found: Sequence[int]) -> None:
    """Warn of chains whose optimum is none in some directions; their numbers are `found`, one a chain."""
    if any(found):
        none = f"{counted(max(found), 'direction')} in which the search has not found an optimum"
        warn(
            f"{none}, in {sum(n > 0 for n in found)} of {counted(len(found), 'chain')}: draws are too wide or too "
            "narrow there. Give more passes, or a larger ridge."
        )
