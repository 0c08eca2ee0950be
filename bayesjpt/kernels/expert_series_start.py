"""What gates see of the leaf of the row before, and where chains over series of rows begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_series_sweep import series_sweep
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Coefficients, Task
from bayesjpt.numerics.counter_rng import sweep_key

TRANSITIONS = ("leaf", "decision")
_N_TRIAL = 6
_TRIAL_SWEEPS = 20
_MOST_EXCHANGES, _EXCHANGE_SWEEPS = 12, 10
_HOPELESS = 50.0
"""Nats of the log density of all rows, by which a start falls behind that of another chain."""
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


class Start(NamedTuple):
    """Where a chain begins.

    Attributes
    ----------
    log_density : float
        Of all responses, paths summed out, after a few sweeps; nats.
    state : Coefficients
    memory : Memory
    leaf : int64 (n_row,)
    """

    log_density: float
    state: Coefficients
    memory: Memory
    leaf: np.ndarray


def best_start(
    task: Task,
    steps: Steps,
    prior: Prior,
    begin: Callable[[int], tuple[Coefficients, np.ndarray]],
    rng: np.random.Generator,
) -> Start:
    """Return the best of several starts, swept a little, with its subtrees exchanged as long as that is better.

    Parameters
    ----------
    task : Task
        Rows in the order of `steps`.
    steps : Steps
    prior : Prior
    begin : callable
        Returns a state of its own and the leaf of each row for the number of a trial.
    rng : numpy.random.Generator

    Notes
    -----
    Which leaf holds which regime matters to gates: those of the paper see one decision of the row before. Sweeps do not
    get from one arrangement to another, for every gate on the way would have to change at once.
    """
    depth, n_slot = steps.slot.shape[0], int(steps.slot.max(initial=0)) + 1

    def swept(state: Coefficients, memory: Memory, leaf: np.ndarray, n_sweep: int) -> Start:
        key = np.uint64(rng.integers(2**62))
        found = [
            series_sweep(task, steps, state, memory, prior, leaf, rng, np.uint64(sweep_key(key, k)))
            for k in range(n_sweep)
        ]
        return Start(float(np.mean(found[n_sweep // 2 :])), state, memory, leaf)

    def first(trial: int) -> tuple[Coefficients, Memory, np.ndarray]:
        state, leaf = begin(trial)
        offset, precision = np.zeros((state.gate.shape[0], n_slot)), np.full(1, prior.gate_shape / prior.gate_rate)
        return state, Memory(offset, precision), leaf

    if depth == 0:
        return Start(0.0, *first(0))
    best = max((swept(*first(trial), _TRIAL_SWEEPS) for trial in range(_N_TRIAL)), key=lambda start: start.log_density)
    pairs = exchanges(depth, siblings=n_slot == 1)
    waiting = list(rng.permutation(len(pairs)))
    for _ in range(_MOST_EXCHANGES):
        if not waiting:
            break
        other = swept(*exchanged(best, depth, pairs[waiting.pop()]), _EXCHANGE_SWEEPS)
        if other.log_density > best.log_density:
            best, waiting = other, list(rng.permutation(len(pairs)))
    return best


def exchanges(depth: int, *, siblings: bool) -> list[tuple[int, int, int]]:
    """Return (level, node, node) of all pairs of nodes of a level, numbered from 0 on each.

    Siblings are left out, whose exchange is the mirror image of the gate above, but where gates of a level share what
    left and right mean: there each gate but the root has two images that differ.

    Examples
    --------
    >>> exchanges(2, siblings=False)
    [(2, 0, 2), (2, 0, 3), (2, 1, 2), (2, 1, 3)]
    """
    return [
        (level, one, other)
        for level in range(2, depth + 1)
        for one in range(2**level)
        for other in range(one + 1, 2**level)
        if siblings or one // 2 != other // 2
    ]


def exchanged(start: Start, depth: int, pair: tuple[int, int, int]) -> tuple[Coefficients, Memory, np.ndarray]:
    """Return copies of a start's state, memory and paths with the leaves below two nodes exchanged; gates stay.

    Examples
    --------
    >>> import numpy as np
    >>> node, dispersion, rest = np.zeros((7, 1, 1)), np.arange(4.0)[:, None], np.ones(1)
    >>> state = Coefficients(np.zeros((3, 1)), node, dispersion, rest, rest, rest)
    >>> start = Start(0.0, state, Memory(np.zeros((3, 4)), np.ones(1)), np.array([0, 1, 2, 3, 3]))
    >>> own, _, leaf = exchanged(start, 2, (2, 0, 3))
    >>> leaf.tolist(), own.dispersion[:, 0].tolist()
    ([3, 1, 2, 0, 0], [3.0, 1.0, 2.0, 0.0])
    """
    level, one, other = pair
    below, place = depth - level, np.arange(2**depth)
    node, step = place >> below, (other - one) << below
    place = place + np.where(node == one, step, 0) - np.where(node == other, step, 0)
    _, state, memory, leaf = _copy(start)
    n_gate = state.node.shape[0] - place.size
    state.node[n_gate + place], state.dispersion[place] = start.state.node[n_gate:], start.state.dispersion
    return state, memory, place[leaf]


def _copy(start: Start) -> Start:
    """Return a start of its own: sweeps overwrite."""
    state, memory = Coefficients(*map(np.copy, start.state)), Memory(*map(np.copy, start.memory))
    return Start(start.log_density, state, memory, start.leaf.copy())


def not_hopeless(starts: Sequence[Start]) -> list[Start]:
    """Return the starts of several chains over the same rows, those far behind replaced by copies of the best.

    What is e^-50 times as likely, and stays so for many sweeps, is no part of the posterior that answers average over.
    """
    best = max(starts, key=lambda start: start.log_density)
    return [_copy(best) if best.log_density - start.log_density > _HOPELESS else start for start in starts]


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
