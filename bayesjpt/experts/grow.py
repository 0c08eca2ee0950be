"""Trees of experts that grow by held-out rows: a split stays where these become more likely.

The held-out rows choose; what the tree is worth on new rows they do not tell.
"""

from __future__ import annotations

import numpy as np

from bayesjpt import defaults_experts
from bayesjpt.experts.em import Optimum, Search, completed, copied, optimise, single_leaf
from bayesjpt.experts.model import ExpertModel
from bayesjpt.kernels.expert_em import fill_posteriors
from bayesjpt.kernels.expert_start import SHARPNESS, best_split, working_responses
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Task, fill_log_density

_LEAST_ROWS = 8
"""Below which a table is not divided, and its tree one leaf."""


def grown(model: ExpertModel, task: Task, prior: Prior, search: Search, rng: np.random.Generator) -> Optimum:
    """Return a tree grown and pruned by held-out rows, as fitted to the others.

    Parameters
    ----------
    model : ExpertModel
        Whose depth is that of the largest tree.
    task : Task
    prior : Prior
    search : Search
    rng : numpy.random.Generator
        Chooses the rows that are held out.
    """
    n_row = task.x.shape[0]
    if n_row < _LEAST_ROWS:
        return single_leaf(model, prior)
    order = rng.permutation(n_row)
    n_held = max(int(defaults_experts.HELD_OUT * n_row), 2)
    growth = Growth(
        model, rows_of(task, np.sort(order[n_held:])), rows_of(task, np.sort(order[:n_held])), prior, search
    )
    growth.split()
    growth.prune()
    return growth.best


class Growth:
    """A tree and how likely it makes the held-out rows."""

    def __init__(self, model: ExpertModel, task: Task, held: Task, prior: Prior, search: Search):
        self.model, self.task, self.held, self.prior = model, task, held, prior
        # least squares may lose what a split gains; EM does not
        self.search = search._replace(method="em", passes=defaults_experts.GROWTH_PASSES)
        self.working = working_responses(task)
        self.best = self._fitted(single_leaf(model, prior))
        self.log_density = self._judged(self.best)

    def split(self) -> None:
        """Split leaves, those of upper levels first, and keep the splits that the held-out rows want."""
        waiting = [0] if self.model.n_gate else []
        while waiting:
            node = waiting.pop(0)
            first = self._split_at(node)
            if first is None:
                continue
            found = self._fitted(first)
            density = self._judged(found)
            gain, error = _gain(density, self.log_density)
            if gain > error:
                self.best, self.log_density = found, density
                waiting += [child for child in (2 * node + 1, 2 * node + 2) if child < self.model.n_gate]

    def prune(self) -> None:
        """Take back splits above leaves, from the last one, that the held-out rows do not need."""
        n_gate = self.model.n_gate
        for gate in range(n_gate - 1, -1, -1):
            opened = self.best.opened
            if not opened[gate] or any(opened[child] for child in (2 * gate + 1, 2 * gate + 2) if child < n_gate):
                continue
            fewer = opened.copy()
            fewer[gate] = False
            found = self._fitted(Optimum(self.best.state, fewer, self.best.trace))
            density = self._judged(found)
            loss, error = _gain(self.log_density, density)
            if loss <= error:
                self.best, self.log_density = found, density

    def _fitted(self, first: Optimum) -> Optimum:
        return optimise(self.model, self.task, self.prior, self.search, first)

    def _judged(self, optimum: Optimum) -> np.ndarray:
        """Return the log density of each held-out row."""
        out = np.empty(self.held.x.shape[0])
        fill_log_density(self.held, optimum.state, out)
        return out

    def _split_at(self, node: int) -> Optimum | None:
        """Return the tree with a leaf split where hard regressions on both sides would be best, None where nowhere."""
        posterior = np.empty((self.model.n_node, self.task.x.shape[0]))
        fill_posteriors(self.task, self.best.state, self.best.opened, posterior)
        rows = posterior[node] > 0.5
        both = np.concatenate([self.task.x[rows], self.working[rows]], axis=1)
        if self.task.gate_x.shape[1] == 1:
            return None
        found = best_split(both, self.task.x.shape[1], self.task.gate_x[rows])
        if found is None:
            return None
        covariate, cut = found
        # both children begin as copies of the leaf, which `completed` has put there
        state, opened = copied(completed(self.model, self.best.state, self.best.opened)), self.best.opened.copy()
        opened[node] = True
        slope = SHARPNESS / max(float(self.task.gate_x[rows, covariate].std()), 1e-6)
        state.gate[node] = 0.0
        state.gate[node, covariate], state.gate[node, 0] = slope, -slope * cut
        return Optimum(state, opened, self.best.trace)


def _gain(density: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return by how much one log density of the held-out rows is larger, and the standard error of that."""
    difference = density - other
    return float(difference.sum()), float(difference.std() * np.sqrt(difference.size))


def rows_of(task: Task, rows: np.ndarray) -> Task:
    """Return the task of some rows."""
    y = np.ascontiguousarray(task.y[:, rows])
    return task._replace(x=np.ascontiguousarray(task.x[rows]), gate_x=np.ascontiguousarray(task.gate_x[rows]), y=y)
