"""The most likely hidden Markov decision tree under a ridge, by expectation-maximisation with exact passes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.experts.em import Search, copied, make_penalty
from bayesjpt.experts.model import ExpertModel
from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_series_em import MemoryCases, Passes, series_em_pass
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Coefficients, Task


class SeriesOptimum(NamedTuple):
    """Where a search ended.

    Attributes
    ----------
    state : Coefficients
    memory : Memory
    trace : float64 (n_pass + 1,), nats
        Penalised log likelihoods before the first pass and after each.
    """

    state: Coefficients
    memory: Memory
    trace: np.ndarray


def optimise_series(
    model: ExpertModel, task: Task, steps: Steps, prior: Prior, search: Search, first: tuple[Coefficients, Memory]
) -> SeriesOptimum:
    """Return the best state that passes from a first one lead to.

    Parameters
    ----------
    model : ExpertModel
    task : Task
        Rows in the order of `steps`.
    steps : Steps
    prior : Prior
    search : Search
    first : (Coefficients, Memory)
        Left as they are.
    """
    penalty = make_penalty(model, prior, search.ridge)
    state, memory = copied(first[0]), Memory(*(array.copy() for array in first[1]))
    n_row, n_leaf = task.x.shape[0], model.n_leaf
    passes = Passes(
        np.empty((n_row, model.n_gate)),
        np.empty((model.n_gate, n_leaf)),
        *(np.empty((n_row, n_leaf)) for _ in range(3)),
    )
    n_case = n_row * n_leaf
    cases = MemoryCases(*(np.empty(n_case, np.int64) for _ in range(2)), *(np.empty(n_case) for _ in range(2)))
    posterior, trace = np.zeros((model.n_node, n_row)), []
    before = (state, memory)
    for _ in range(search.passes + 1):  # what a pass returns is of the state before it: the last one only tells
        before = (copied(state), Memory(*(array.copy() for array in memory)))
        trace.append(series_em_pass(task, steps, state, memory, penalty, passes, cases, posterior))
        if len(trace) > 1 and trace[-1] - trace[-2] < search.gain * n_row:
            break
    state, memory = before
    for gate in range(model.n_gate - 1, -1, -1):
        state.node[gate] = state.node[model.children(gate)].mean(axis=0)
    return SeriesOptimum(state, memory, np.array(trace))
