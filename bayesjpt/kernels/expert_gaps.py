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

from bayesjpt.kernels.expert_series import fill_memory_odds
from bayesjpt.kernels.expert_series_sweep import draw_given_series_paths, fill_before, fill_series_paths
from bayesjpt.kernels.expert_sweep import draw_given_paths, fill_paths, record
from bayesjpt.kernels.expert_tree import (
    Task,
    add_log_likelihoods,
    as_columns,
    bounded,
    dot,
    fill_log_density,
    fill_path_weights,
    fill_products,
)
from bayesjpt.numerics.copying import copy_into
from bayesjpt.numerics.counter_rng import sweep_key
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import log_expit_both


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
            for c in range(y.shape[0]):
                y[c, k * n + j] = task.y[c, gaps.place[k]]
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
def _fill_log_next(task, state, memory_odds, row, leaf, out):
    """Fill out, float64 (n_leaf,), with log probabilities of the leaf of a row given each leaf of the row before."""
    n_gate = state.gate.shape[0]
    for k in range(out.size):
        out[k] = 0.0
    node = n_gate + leaf[row]
    while node > 0:
        parent = (node - 1) // 2
        base = bounded(dot(task.gate_x[row], state.gate[parent]))
        for k in range(out.size):
            left, right = log_expit_both(-base - memory_odds[parent, k])
            out[k] += right if node == 2 * parent + 2 else left
        node = parent


@kernel
def fill_gaps_of_steps(task, gaps, steps, state, memory, leaf, room, rng):
    """Draw the covariates and leaves of all steps that lack some, step by step, given all other leaves.

    Parameters
    ----------
    task, gaps, state, room, rng
        As of `fill_gaps`.
    steps, memory
        As of `bayesjpt.kernels.expert_series_sweep.series_sweep`.
    leaf : int64 (n_row,)
        Overwritten at these steps.

    Notes
    -----
    P(x, z) is in proportion to P(z | z before, x) p(y | z, x) P(z after | z, x after). Given its leaf alone, covariates
    would hardly get away from those that fit there. Cost: a row's log densities for each candidate that is compared.
    """
    n, n_leaf, n_gate = gaps.n_compared, state.dispersion.shape[0], state.gate.shape[0]
    columns = as_columns(state)
    log_odds, eta, after = np.empty(n_gate), np.empty(columns.leaf.shape[1]), np.empty(n_leaf)
    compared, weight = np.empty((gaps.place.size, n), np.int64), np.empty((n, n_leaf))
    before, memory_odds = np.empty(leaf.size, np.int64), np.empty((n_gate, n_leaf))
    fill_before(steps.first, leaf, before)  # of which only the beginnings of series are looked at: leaves change
    fill_memory_odds(steps.slot, steps.sign, memory.offset, memory_odds)
    memory_odds = np.log(memory_odds)
    _draw_compared(gaps, rng, compared)
    _fill_room(gaps, compared, room)
    for k in range(gaps.place.size):
        row = gaps.place[k]
        after[:] = 0.0
        if row + 1 < leaf.size and before[row + 1] >= 0:
            _fill_log_next(task, state, memory_odds, row + 1, leaf, after)
        top = -np.inf
        for j in range(n):
            fill_products(room.gate_x[k * n + j], columns.gate, log_odds)
            for g in range(n_gate):
                log_odds[g] = bounded(log_odds[g])
                if before[row] >= 0:
                    log_odds[g] += memory_odds[g, leaf[row - 1]]
            fill_path_weights(log_odds, 2, weight[j])
            if steps.seen[row]:
                add_log_likelihoods(room, k * n + j, state.dispersion, columns, eta, weight[j])
            for z in range(n_leaf):
                weight[j, z] += after[z]
                top = max(top, weight[j, z])
        level = rng.random()
        if top > -np.inf:  # else the step is impossible, by overflow, whatever it has: it keeps that
            total = 0.0
            for at in range(n * n_leaf):
                total += math.exp(weight[at // n_leaf, at % n_leaf] - top)
            left, at = level * total, 0
            while at < n * n_leaf - 1 and left >= math.exp(weight[at // n_leaf, at % n_leaf] - top):
                left -= math.exp(weight[at // n_leaf, at % n_leaf] - top)
                at += 1
            leaf[row] = at % n_leaf
            gaps.chosen[k] = compared[k, at // n_leaf]
        copy_into(gaps.x[k, gaps.chosen[k]], task.x[row])
        copy_into(gaps.gate_x[k, gaps.chosen[k]], task.gate_x[row])


@kernel
def run_series_chain_with_gaps(task, gaps, steps, state, memory, prior, leaf, rng, key, n_skip, kept, kept_memory):
    """Do as `run_series_chain` does, drawing missing covariates with the leaves of their steps in each sweep."""
    room = room_for(task, gaps)
    for k in range(n_skip + kept.gate.shape[0]):
        draw_given_series_paths(task, steps, state, memory, prior, leaf, rng)
        fill_gaps_of_steps(task, gaps, steps, state, memory, leaf, room, rng)
        fill_series_paths(task, steps, state, memory, sweep_key(key, k), leaf)
        if k >= n_skip:
            record(state, k - n_skip, kept)
            kept_memory.offset[k - n_skip] = memory.offset
            kept_memory.precision[k - n_skip] = memory.precision
