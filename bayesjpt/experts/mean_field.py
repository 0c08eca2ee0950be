"""The mean-field posterior: paths, gates, experts and variances independent of each other, by coordinate ascent.

Logistic likelihoods are bounded by Gaussians whose precisions are expectations of Polya-Gamma variables, so that every
step is in closed form and the bound of the evidence never falls. Gates and logistic experts are the same regression:

      log s(t) >= t / 2 - c / 2 + log s(c) - w(c) (t^2 - c^2) / 2,    w(c) = tanh(c / 2) / (2 c), best at c^2 = E t^2.

References: Jaakkola and Jordan (2000), Bayesian Parameter Estimation via Variational Methods, Statistics and Computing
10, equation 7; Durante and Rigon (2019), Conditionally Conjugate Mean-Field Variational Bayes for Logistic Models,
Statistical Science 34; Waterhouse, MacKay and Robinson (1996), Bayesian Methods for Mixtures of Experts.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.errors import LearnerError
from bayesjpt.experts.em import Optimum, Search, completed, copied
from bayesjpt.experts.model import ExpertModel
from bayesjpt.kernels.expert_em import Penalty
from bayesjpt.kernels.expert_tree import GAUSSIAN, LOGISTIC, Coefficients, Task
from bayesjpt.numerics.digamma import digamma

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_ROUNDING = 1e-14
"""Eigenvalue, of the largest, below which rounding errors make it."""


class Normal:
    """A normal distribution of one vector of coefficients: mean and covariance."""

    def __init__(self, mean: np.ndarray, precision: float):
        self.mean, self.covariance = mean.copy(), np.eye(mean.size) / precision

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expectation of each row's predictor and of its square."""
        eta = x @ self.mean
        return eta, eta * eta + np.maximum(((x @ self.covariance) * x).sum(axis=1), 0.0)

    def update(self, x: np.ndarray, weight: np.ndarray, linear: np.ndarray, ridge: float) -> None:
        """Make it the best one: precision ridge + x' weight x, and linear term x' linear."""
        value, vector = np.linalg.eigh((x.T * weight) @ x + ridge * np.eye(x.shape[1]))
        # the ridge is below all eigenvalues, but for rounding where covariates are collinear
        self.covariance = (vector / np.maximum(value, max(ridge, _ROUNDING * value[-1]))) @ vector.T
        self.mean = self.covariance @ (linear @ x)

    def divergence(self, ridge: float) -> float:
        """Return the Kullback-Leibler divergence from N(0, 1 / ridge)."""
        n = self.mean.size
        squares = float(self.mean @ self.mean + np.trace(self.covariance))
        return 0.5 * (ridge * squares - n - n * math.log(ridge) - np.linalg.slogdet(self.covariance)[1])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        value, vector = np.linalg.eigh(self.covariance)
        return self.mean + vector @ (np.sqrt(np.maximum(value, 0.0)) * rng.standard_normal(self.mean.size))


class MeanField:
    """Factors of all gates, experts and variances, and of the rows' paths.

    Parameters
    ----------
    model : ExpertModel
    task : Task
    penalty : Penalty
        Whose ridge is the precision of coefficients a priori; variances are inverse gamma with its imaginary rows.
    first : Optimum
        Whose coefficients are where the factors begin.
    """

    def __init__(self, model: ExpertModel, task: Task, penalty: Penalty, first: Optimum):
        self.model, self.task, self.penalty = model, task, penalty
        # begins as sure as some tens of rows would make it
        self.gates = [Normal(own, 100.0) for own in first.state.gate]
        leaves = first.state.node[model.n_gate :]
        self.experts = [[Normal(leaf[model.at[c]], 100.0) for c in range(len(model.targets))] for leaf in leaves]
        self.shape = np.full(first.state.dispersion.shape, 0.5 * penalty.n_row)
        self.rate = self.shape * first.state.dispersion
        self.share = np.empty((model.n_node, task.x.shape[0]))

    def update_paths(self) -> float:
        """Make the factor of paths the best one, and return the bound of the log evidence."""
        n_gate = self.model.n_gate
        log_way = np.empty((n_gate, 2, self.task.x.shape[0]))
        for gate, own in enumerate(self.gates):
            eta, square = own.moments(self.task.gate_x)
            c = np.sqrt(square)
            both = -np.log1p(np.exp(-c)) - 0.5 * c
            log_way[gate] = both - 0.5 * eta, both + 0.5 * eta
        up = np.empty(self.share.shape)
        for leaf in range(self.model.n_leaf):
            up[n_gate + leaf] = self._leaf_value(leaf)
        for gate in range(n_gate - 1, -1, -1):
            up[gate] = np.logaddexp(log_way[gate, 0] + up[2 * gate + 1], log_way[gate, 1] + up[2 * gate + 2])
        self.share[0] = 1.0
        for gate in range(n_gate):
            for way in range(2):
                child = 2 * gate + 1 + way
                self.share[child] = self.share[gate] * np.exp(log_way[gate, way] + up[child] - up[gate])
        return float(up[0].sum()) - self._divergence()

    def _leaf_value(self, leaf: int) -> np.ndarray:
        """Return the expected log likelihood of each row at a leaf, of labels its bound."""
        total = np.zeros(self.task.x.shape[0])
        for c, kind in enumerate(self.model.kind):
            y, offset = self.task.y[c], self.task.offset[c]
            eta, square = self.experts[leaf][c].moments(self.task.x)
            if kind == GAUSSIAN:
                shape, rate = self.shape[leaf, c], self.rate[leaf, c]
                residual = (y - offset) ** 2 - 2.0 * (y - offset) * eta + square
                total += 0.5 * (digamma(shape) - math.log(rate)) - _HALF_LOG_2PI - 0.5 * shape / rate * residual
            else:
                c_ = np.sqrt(square)
                total += (y - 0.5) * eta - np.log1p(np.exp(-c_)) - 0.5 * c_
        return total

    def update_factors(self) -> None:
        """Make all other factors the best ones, one after the other."""
        ridge, n_gate = self.penalty.ridge, self.model.n_gate
        for gate, own in enumerate(self.gates):
            _update_logistic(
                own,
                self.task.gate_x,
                self.share[gate],
                0.5 * (self.share[2 * gate + 2] - self.share[2 * gate + 1]),
                ridge,
            )
        for leaf in range(self.model.n_leaf):
            weight = self.share[n_gate + leaf]
            for c, kind in enumerate(self.model.kind):
                own, y = self.experts[leaf][c], self.task.y[c] - self.task.offset[c]
                if kind == GAUSSIAN:
                    precision = self.shape[leaf, c] / self.rate[leaf, c]
                    own.update(self.task.x, precision * weight, precision * weight * y, ridge)
                    eta, square = own.moments(self.task.x)
                    residual = weight @ (y * y - 2.0 * y * eta + square)
                    self.shape[leaf, c] = 0.5 * (self.penalty.n_row + weight.sum())
                    self.rate[leaf, c] = 0.5 * (self.penalty.n_row * self.penalty.variance + residual)
                else:
                    _update_logistic(own, self.task.x, weight, weight * (self.task.y[c] - 0.5), ridge)

    def _divergence(self) -> float:
        """Return the divergence of all factors but that of paths from the prior."""
        ridge = self.penalty.ridge
        total = sum(own.divergence(ridge) for own in self.gates)
        a, b = 0.5 * self.penalty.n_row, 0.5 * self.penalty.n_row * self.penalty.variance
        for leaf, experts in enumerate(self.experts):
            for c, own in enumerate(experts):
                total += own.divergence(ridge)
                if self.model.kind[c] == GAUSSIAN:
                    shape, rate = self.shape[leaf, c], self.rate[leaf, c]
                    total += (shape - a) * digamma(shape) - math.lgamma(shape) + math.lgamma(a)
                    total += a * (math.log(rate) - math.log(b)) + shape * (b - rate) / rate
        return total

    def draw(self, state: Coefficients, rng: np.random.Generator) -> Coefficients:
        """Return a draw of all coefficients and variances, in the place of a state's."""
        state = copied(state)
        for gate, own in enumerate(self.gates):
            state.gate[gate] = own.draw(rng)
        for leaf, experts in enumerate(self.experts):
            for c, own in enumerate(experts):
                state.node[self.model.n_gate + leaf, self.model.at[c]] = own.draw(rng)
                if self.model.kind[c] == GAUSSIAN:
                    precision = max(rng.gamma(self.shape[leaf, c]) / self.rate[leaf, c], 1e-12)
                    state.dispersion[leaf, c] = max(1.0 / precision, self.penalty.floor[c])
        return state


def _update_logistic(own: Normal, x: np.ndarray, weight: np.ndarray, linear: np.ndarray, ridge: float) -> None:
    c = np.sqrt(own.moments(x)[1])
    precision = np.where(c > 1e-6, np.tanh(0.5 * c) / (2.0 * np.maximum(c, 1e-6)), 0.25)
    own.update(x, weight * precision, linear, ridge)


def check_kinds(model: ExpertModel) -> None:
    """Raise `LearnerError` for experts whose likelihood has no Gaussian bound here."""
    for name, expert, kind in zip(model.targets, model.experts, model.kind, strict=True):
        if kind not in (GAUSSIAN, LOGISTIC):
            raise LearnerError(
                f"method='mean_field' with {expert} experts of {name!r}",
                "gaussian or logistic ones",
                "Take method='laplace' or 'gibbs', or for numbers experts='gaussian'.",
            )


def ascend(model: ExpertModel, task: Task, penalty: Penalty, search: Search, first: Optimum) -> tuple[MeanField, list]:
    """Return the factors, and the bounds of the log evidence after each pass."""
    field, trace = MeanField(model, task, penalty, first), []
    for _ in range(search.passes):
        trace.append(field.update_paths())
        if len(trace) > 1 and trace[-1] - trace[-2] < search.gain * task.x.shape[0]:
            break
        field.update_factors()
    return field, trace


def mean_field_draws(
    model: ExpertModel, field: MeanField, first: Optimum, n_draw: int, rng: np.random.Generator
) -> Coefficients:
    """Return draws from the factors, with a leading axis."""
    states = [completed(model, field.draw(first.state, rng), first.opened) for _ in range(n_draw)]
    return Coefficients(*(np.stack(arrays) for arrays in zip(*states, strict=True)))
