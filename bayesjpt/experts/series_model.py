"""What gates of a tree see of the leaf of the row before, and where chains over series begin."""

from __future__ import annotations

import numpy as np

from bayesjpt.experts.model import ExpertModel
from bayesjpt.experts.start import begin
from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_series_sweep import series_sweep
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Coefficients, Task
from bayesjpt.numerics.counter_rng import sweep_key
from bayesjpt.table.steps import Order

TRANSITIONS = ("leaf", "decision")
_N_TRIAL = 6
_TRIAL_SWEEPS = 20
_SEGMENTS = 20
"""Of all rows, in the starts that give each stretch of rows a leaf; at least as many as leaves."""


def slots(depth: int, transitions: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Return slot, sign (both (depth, n_leaf)) and the number of slots: see `bayesjpt.kernels.expert_series.Steps`.

    Parameters
    ----------
    depth : int
    transitions : str
        ``leaf``: a gate has an offset for each leaf before. ``decision``: a gate of level i has one offset, added where
        the decision of level i of the row before was to go right and subtracted where it was left.

    Examples
    --------
    >>> slots(2, "decision")[1].astype(int).tolist()
    [[-1, -1, 1, 1], [-1, 1, -1, 1]]
    """
    n_leaf = 2**depth
    if transitions == "leaf":
        return np.tile(np.arange(n_leaf), (depth, 1)), np.ones((depth, n_leaf)), n_leaf
    level, leaf = np.arange(depth)[:, None], np.arange(n_leaf)[None, :]
    right = (leaf >> (depth - 1 - level)) & 1
    return np.zeros((depth, n_leaf), np.int64), 2.0 * right - 1.0, 1


def steps_of(model: ExpertModel, order: Order, seen: np.ndarray, transitions: str) -> Steps:
    """Return steps of training rows as kernels take them; `seen` in the order of `order`."""
    slot, sign, _ = slots(model.depth, transitions)
    return Steps(order.first, seen, slot, sign)


def begin_series(
    model: ExpertModel, task: Task, steps: Steps, prior: Prior, start: str, rng: np.random.Generator
) -> tuple[Coefficients, Memory, np.ndarray]:
    """Return a state, its memory and the leaf of each row: of several starts, swept a little, that of highest density.

    Every other one is a tree of hard splits (``cart``), the others give stretches of rows a random leaf each, which
    finds regimes that no covariate tells.
    """
    best: tuple[float, Coefficients, Memory, np.ndarray] | None = None
    n_slot = int(steps.slot.max(initial=0)) + 1
    for trial in range(_N_TRIAL if model.depth else 1):
        state, leaf = _begin(model, task, steps.seen, prior, start if trial % 2 == 0 else "random", rng)
        if start == "random" or trial % 2 or task.gate_x.shape[1] == 1:
            leaf = _stretches(leaf.size, model.n_leaf, rng)
        memory = Memory(np.zeros((model.n_gate, n_slot)), np.full(1, prior.gate_shape / prior.gate_rate))
        key, found = np.uint64(rng.integers(2**62)), -np.inf
        for k in range(_TRIAL_SWEEPS if model.depth else 0):
            found = series_sweep(task, steps, state, memory, prior, leaf, rng, np.uint64(sweep_key(key, k)))
        if best is None or found > best[0]:
            best = found, state, memory, leaf
    assert best is not None
    return best[1:]


def _begin(
    model: ExpertModel, task: Task, seen: np.ndarray, prior: Prior, start: str, rng: np.random.Generator
) -> tuple[Coefficients, np.ndarray]:
    """Return a state, and the leaf of each row, learned from those whose responses are seen."""
    known = Task(task.x[seen], task.gate_x[seen], task.y[:, seen], task.kind, task.at, task.offset)
    state, own = begin(model, known, prior, start, rng)
    at = np.zeros(seen.size, np.int64)
    for _ in range(model.depth):
        at = 2 * at + 1 + ((task.gate_x * state.gate[at]).sum(axis=1) > 0.0)
    leaf = at - model.n_gate
    leaf[seen] = own
    return state, leaf


def _stretches(n_row: int, n_leaf: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random leaf for each of some stretches of rows that follow each other."""
    n = min(max(_SEGMENTS, 2 * n_leaf), n_row)
    cuts = np.sort(rng.choice(n_row, n, replace=False))
    return rng.permutation(np.arange(n + 1) % n_leaf)[np.searchsorted(cuts, np.arange(n_row), side="right")]
