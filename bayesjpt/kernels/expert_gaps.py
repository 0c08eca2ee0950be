"""Rows that lack covariates: in each sweep they take one of a fixed set of candidates, which stand side by side.

      place        |   2   |   5   |      rows of the task that lack covariates
      task.x       | a b c | d e f |      their candidates, as rows of a task of their own; targets are repeated

The candidates of a row are draws of its missing covariates given its others. With equal weights they are its prior; the
posterior weight of each is in proportion to the density of the row's targets. Choosing among all of many in each sweep
would cost a density each. Among the one that a row has now and some others, drawn from all, the choice leaves the same
posterior as it is (Tjelmeland, 2004; Andrieu, Lee and Vihola, 2018, call it iterated sampling importance resampling).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.kernels.expert_series import fill_memory_odds, path_probability
from bayesjpt.kernels.expert_series_sweep import draw_given_series_paths, fill_before, fill_series_paths
from bayesjpt.kernels.expert_sweep import draw_given_paths, fill_paths, record
from bayesjpt.kernels.expert_tree import Task, bounded, dot, fill_log_density, leaf_log_likelihood
from bayesjpt.numerics.counter_rng import sweep_key
from bayesjpt.numerics.jit import kernel


class Gaps(NamedTuple):
    """Rows that lack covariates, and what these may be.

    Attributes
    ----------
    place : int64 (n_gap,)
        Positions of the rows in their task.
    x : float64 (n_gap, n_candidate, n_covariate)
    gate_x : float64 (n_gap, n_candidate, n_gate_covariate)
    chosen : int64 (n_gap,)
        The candidate that each row has now; part of the state of a chain.
    n_compared : int
        Candidates that are compared in a sweep, the one that a row has now among them.
    """

    place: np.ndarray
    x: np.ndarray
    gate_x: np.ndarray
    chosen: np.ndarray
    n_compared: int


@kernel
def _draw_compared(gaps, rng, compared):
    """Fill compared, int64 (n_gap, n_compared): the candidate that a row has, then others drawn from all of its own."""
    n_candidate = gaps.x.shape[1]
    for k in range(compared.shape[0]):
        compared[k, 0] = gaps.chosen[k]
        for j in range(1, compared.shape[1]):
            compared[k, j] = int(rng.random() * n_candidate)


@kernel
def _choose(task, gaps, compared, log_weight, rng):
    """Give each row one of the candidates compared; log_weight is float64 (n_gap * n_compared,), nats."""
    n = compared.shape[1]
    for k in range(compared.shape[0]):
        own = log_weight[k * n : (k + 1) * n]
        top = -np.inf
        for j in range(n):
            top = max(top, own[j])
        level = rng.random()
        chosen = 0
        if top > -np.inf:  # else the row is impossible, by overflow, whatever it has: it keeps that
            total = 0.0
            for j in range(n):
                total += math.exp(own[j] - top)
            left = level * total
            while chosen < n - 1 and left >= math.exp(own[chosen] - top):
                left -= math.exp(own[chosen] - top)
                chosen += 1
        gaps.chosen[k] = compared[k, chosen]
        task.x[gaps.place[k]] = gaps.x[k, gaps.chosen[k]]
        task.gate_x[gaps.place[k]] = gaps.gate_x[k, gaps.chosen[k]]


@kernel
def room_for(task, gaps):
    """Return a task whose rows are the candidates to compare, n_compared a gap, before any is there."""
    n = gaps.n_compared
    x, gate_x = np.empty((gaps.place.size * n, task.x.shape[1])), np.empty((gaps.place.size * n, task.gate_x.shape[1]))
    y = np.empty((task.y.shape[0], gaps.place.size * n))
    for k in range(gaps.place.size):
        for j in range(n):
            y[:, k * n + j] = task.y[:, gaps.place[k]]
    return Task(x, gate_x, y, task.kind, task.at, task.offset)


@kernel
def _fill_room(gaps, compared, room):
    n = compared.shape[1]
    for k in range(compared.shape[0]):
        for j in range(n):
            room.x[k * n + j] = gaps.x[k, compared[k, j]]
            room.gate_x[k * n + j] = gaps.gate_x[k, compared[k, j]]


@kernel
def fill_gaps(task, gaps, state, room, rng):
    """Draw the covariates of all rows that lack some given their targets and coefficients, paths summed out.

    Parameters
    ----------
    task : Task
        Whose rows of x and gate_x are overwritten.
    gaps : Gaps
        Whose `chosen` is overwritten.
    state : Coefficients
    room : Task
        From `room_for`; overwritten.
    rng : numpy.random.Generator

    Notes
    -----
    Cost: a log density for each gap and candidate that is compared.
    """
    compared, log_density = np.empty((gaps.place.size, gaps.n_compared), np.int64), np.empty(room.x.shape[0])
    _draw_compared(gaps, rng, compared)
    _fill_room(gaps, compared, room)
    fill_log_density(room, state, log_density)
    _choose(task, gaps, compared, log_density, rng)


@kernel
def run_chain_with_gaps(task, gaps, state, prior, leaf, rng, n_skip, kept):
    """Do as `run_chain` does, drawing missing covariates before paths in each sweep.

    Covariates and paths are drawn together given coefficients: covariates with paths summed out, then paths given them.
    """
    room = room_for(task, gaps)
    for k in range(n_skip + kept.gate.shape[0]):
        draw_given_paths(task, state, prior, leaf, rng)
        fill_gaps(task, gaps, state, room, rng)
        fill_paths(task, state, rng, leaf)
        if k >= n_skip:
            record(state, k - n_skip, kept)


@kernel
def _log_path(gate_x, gate, leaf):
    """Return the log probability of a leaf in a row without one before, gates having two ways."""
    node, out = gate.shape[0] + leaf, 0.0
    while node > 0:
        parent = (node - 1) // 2
        log_odds = bounded(dot(gate_x, gate[parent]))
        out += (log_odds if node == 2 * parent + 2 else 0.0) - math.log1p(math.exp(log_odds))
        node = parent
    return out


@kernel
def fill_gaps_of_steps(task, gaps, steps, state, memory, leaf, room, rng):
    """Draw the covariates of all steps that lack some given their targets, coefficients and all paths.

    A step's covariates matter to its own gates, given the leaf before, and to its own experts, where targets are seen.
    Parameters are those of `fill_gaps` and of `bayesjpt.kernels.expert_series_sweep.series_sweep`.
    """
    n, n_leaf = gaps.n_compared, state.dispersion.shape[0]
    n_gate = state.gate.shape[0]
    compared, log_weight = np.empty((gaps.place.size, n), np.int64), np.empty(room.x.shape[0])
    before, memory_odds = np.empty(leaf.size, np.int64), np.empty((n_gate, n_leaf))
    base, eta = np.empty(n_gate), np.empty(state.node.shape[1])
    fill_before(steps.first, leaf, before)
    fill_memory_odds(steps.slot, steps.sign, memory.offset, memory_odds)
    _draw_compared(gaps, rng, compared)
    _fill_room(gaps, compared, room)
    for k in range(gaps.place.size):
        row = gaps.place[k]
        for j in range(n):
            at = k * n + j
            if before[row] < 0:
                log_weight[at] = _log_path(room.gate_x[at], state.gate, leaf[row])
            else:
                for g in range(n_gate):
                    base[g] = math.exp(bounded(dot(room.gate_x[at], state.gate[g])))
                log_weight[at] = math.log(path_probability(base, memory_odds, before[row], leaf[row]))
            if steps.seen[row]:
                node = state.node[n_gate + leaf[row]]
                log_weight[at] += leaf_log_likelihood(room, at, node, state.dispersion[leaf[row]], eta)
    _choose(task, gaps, compared, log_weight, rng)


@kernel
def run_series_chain_with_gaps(task, gaps, steps, state, memory, prior, leaf, rng, key, n_skip, kept, kept_memory):
    """Do as `run_series_chain` does, drawing missing covariates given paths in each sweep."""
    room = room_for(task, gaps)
    for k in range(n_skip + kept.gate.shape[0]):
        draw_given_series_paths(task, steps, state, memory, prior, leaf, rng)
        fill_gaps_of_steps(task, gaps, steps, state, memory, leaf, room, rng)
        fill_series_paths(task, steps, state, memory, sweep_key(key, k), leaf)
        if k >= n_skip:
            record(state, k - n_skip, kept)
            kept_memory.offset[k - n_skip] = memory.offset
            kept_memory.precision[k - n_skip] = memory.precision
