"""Steps of training rows as kernels take them, and where chains of `bj.fit_experts` over series begin."""

from __future__ import annotations

import numpy as np

from bayesjpt.experts.model import ExpertModel
from bayesjpt.experts.start import begin
from bayesjpt.kernels.expert_series import Steps
from bayesjpt.kernels.expert_series_start import Start, best_start, hard_paths, seen_rows, slots, stretches
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Coefficients, Task
from bayesjpt.table.steps import Order


def steps_of(model: ExpertModel, order: Order, seen: np.ndarray, transitions: str) -> Steps:
    """Return steps of training rows as kernels take them; `seen` in the order of `order`."""
    slot, sign, _ = slots(model.depth, transitions)
    return Steps(order.first, seen, slot, sign)


def begin_series(
    model: ExpertModel, task: Task, steps: Steps, prior: Prior, start: str, rng: np.random.Generator
) -> Start:
    """Return the best of several starts, swept a little; see `bayesjpt.kernels.expert_series_start.best_start`.

    Every other one is a tree of hard splits (``cart``), the others give stretches of rows a random leaf each, which
    finds regimes that no covariate tells.
    """
    known = seen_rows(task, steps.seen)

    def first(trial: int) -> tuple[Coefficients, np.ndarray]:
        state, own = begin(model, known, prior, start if trial % 2 == 0 else "random", rng)
        leaf = hard_paths(state.gate, task.gate_x)
        leaf[steps.seen] = own
        if start == "random" or trial % 2 or task.gate_x.shape[1] == 1:
            leaf = stretches(leaf.size, model.n_leaf, rng)
        return state, leaf

    return best_start(task, steps, prior, first, rng)
