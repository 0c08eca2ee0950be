"""What gates see of the leaf of the row before, and where chains over series of rows begin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_series_sweep import series_sweep
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Coefficients, Task
from bayesjpt.numerics.counter_rng import sweep_key

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


def best_start(
    task: Task,
    steps: Steps,
    prior: Prior,
    begin: Callable[[int], tuple[Coefficients, np.ndarray]],
    rng: np.random.Generator,
) -> tuple[Coefficients, Memory, np.ndarray]:
    """Return a state, its memory and the leaf of each row: of several starts, swept a little, that of highest density.

    Parameters
    ----------
    task : Task
        Rows in the order of `steps`.
    steps : Steps
    prior : Prior
    begin : callable
        Returns a state of its own and the leaf of each row for the number of a trial.
    rng : numpy.random.Generator
    """
    best: tuple[float, Coefficients, Memory, np.ndarray] | None = None
    n_slot = int(steps.slot.max(initial=0)) + 1
    some_gate = steps.slot.shape[0] > 0
    for trial in range(_N_TRIAL if some_gate else 1):
        state, leaf = begin(trial)
        memory = Memory(np.zeros((state.gate.shape[0], n_slot)), np.full(1, prior.gate_shape / prior.gate_rate))
        key, found = np.uint64(rng.integers(2**62)), -np.inf
        for k in range(_TRIAL_SWEEPS if some_gate else 0):
            found = series_sweep(task, steps, state, memory, prior, leaf, rng, np.uint64(sweep_key(key, k)))
        if best is None or found > best[0]:
            best = found, state, memory, leaf
    assert best is not None
    return best[1:]


def stretches(n_row: int, n_leaf: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random leaf for each of some stretches of rows that follow each other."""
    n = min(max(_SEGMENTS, 2 * n_leaf), n_row)
    cuts = np.sort(rng.choice(n_row, n, replace=False))
    return rng.permutation(np.arange(n + 1) % n_leaf)[np.searchsorted(cuts, np.arange(n_row), side="right")]


def seen_rows(task: Task, seen: np.ndarray) -> Task:
    """Return the task of the rows whose responses are seen."""
    y = np.ascontiguousarray(task.y[:, seen])  # in the layout for which kernels are compiled already
    return Task(task.x[seen], task.gate_x[seen], y, task.kind, task.at, task.offset)


def hard_paths(gate: np.ndarray, gate_x: np.ndarray) -> np.ndarray:
    """Return the leaf of each row where gates of two ways send it for sure, int64 (n_row,)."""
    at = np.zeros(gate_x.shape[0], np.int64)
    while at.size and at[0] < gate.shape[0]:  # all rows are on one level
        at = 2 * at + 1 + ((gate_x * gate[at]).sum(axis=1) > 0.0)
    return at - gate.shape[0]
