"""Geweke's joint test of the sweep over series, as `tests.experts.geweke` does it for rows apart."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_series_start import slots
from bayesjpt.kernels.expert_series_sweep import series_sweep
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Coefficients, Task, dot
from bayesjpt.numerics.counter_rng import sweep_key
from bayesjpt.numerics.jit import kernel
from tests.experts.geweke import MOST_DIRECT, N_ROW, draw_response, observe, prior_draw

N_FIRST = 5
"""Rows of the first of two series."""


def make_steps(depth: int, transitions: str, first: tuple[int, ...] = (0, N_FIRST, N_ROW)) -> Steps:
    """Return two series, of which one row each has no response."""
    slot, sign, _ = slots(depth, transitions)
    seen = np.ones(N_ROW, bool)
    seen[[2, N_ROW - 1]] = False
    return Steps(np.array(first), seen, slot, sign)


@kernel
def simulate_series(task, steps, state, memory, path, rng):
    """Replace paths and responses by draws given coefficients, decision by decision."""
    n_gate = state.gate.shape[0]
    for series in range(steps.first.size - 1):
        for row in range(steps.first[series], steps.first[series + 1]):
            node, level = 0, 0
            while node < n_gate:
                log_odds = dot(task.gate_x[row], state.gate[node])
                if row > steps.first[series]:
                    k = path[row - 1]
                    log_odds += steps.sign[level, k] * memory.offset[node, steps.slot[level, k]]
                node = 2 * node + (2 if rng.random() < 1.0 / (1.0 + math.exp(-log_odds)) else 1)
                level += 1
            path[row] = node - n_gate
            draw_response(task, state, row, path[row], rng)


@kernel
def observe_series(task, steps, state, memory, path, out):
    """Fill out with functions of parameters, data and paths; among them whether decisions go where offsets push."""
    n = observe(task, state, out)
    for g in range(memory.offset.shape[0]):
        for k in range(memory.offset.shape[1]):
            out[n] = math.tanh(memory.offset[g, k])
            out[n + 1] = out[n] * out[n]
            n += 2
    out[n] = math.log(memory.precision[0])
    for row in range(1, path.size):
        out[n + row] = 1.0 if path[row] == path[row - 1] else 0.0
    n += path.size
    for row in range(1, path.size):  # where a series begins, offsets of the row before push nothing
        k = path[row - 1]
        push = math.tanh(steps.sign[0, k] * memory.offset[0, steps.slot[0, k]])
        out[n] = push if 2 * path[row] > state.gate.shape[0] else -push
        n += 1
    return n


@kernel
def successive_series(task, steps, believed, state, memory, prior, leaf, rng, thin, out):
    """Fill out, float64 (n_draw, n_function), along the chain of sweeps, which believe in `believed`, and new data."""
    number = 0
    for draw in range(out.shape[0]):
        for _ in range(thin):
            simulate_series(task, steps, state, memory, leaf, rng)
            series_sweep(task, believed, state, memory, prior, leaf, rng, sweep_key(11, number))
            number += 1
        # after the sweep: paths are then drawn by it, and a wrong pass back over a series is seen at once
        observe_series(task, steps, state, memory, leaf, out[draw])


def series_prior_draw(
    task: Task, steps: Steps, prior: Prior, depth: int, rng: np.random.Generator
) -> tuple[Coefficients, Memory]:
    """Return a draw from the prior, by its definition; gates without covariates have normal intercepts here."""
    state, n_slot = prior_draw(task, prior, (depth, 2), rng), int(steps.slot.max()) + 1
    if task.gate_x.shape[1] == 1:
        precision = rng.gamma(prior.gate_shape, 1.0 / prior.gate_rate)
        gate = rng.normal(0.0, precision**-0.5, state.gate.shape)
        state = state._replace(gate=gate, gate_precision=np.full(1, precision))
    precision = rng.gamma(prior.gate_shape, 1.0 / prior.gate_rate)
    return state, Memory(rng.normal(0.0, precision**-0.5, (state.gate.shape[0], n_slot)), np.full(1, precision))


def compare_series(
    task: Task, steps: Steps, believed: Steps, priors: tuple[Prior, Prior], n_draw: int, seed: int, thin: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Return functions of direct draws and along the chain; its sweep believes in other steps and the second prior."""
    rng, (prior, swept) = np.random.default_rng(seed), priors
    depth, leaf = steps.slot.shape[0], np.zeros(N_ROW, np.int64)
    state, memory = series_prior_draw(task, steps, prior, depth, rng)
    buffer = np.zeros(10_000)
    n = observe_series(task, steps, state, memory, leaf, buffer)
    direct = np.empty((min(n_draw, MOST_DIRECT), n))
    for draw in range(direct.shape[0]):
        each = series_prior_draw(task, steps, prior, depth, rng)
        simulate_series(task, steps, *each, leaf, rng)
        observe_series(task, steps, *each, leaf, direct[draw])
    chain = np.empty((n_draw, n))
    successive_series(task, steps, believed, state, memory, swept, leaf, rng, thin, chain)
    return direct, chain
