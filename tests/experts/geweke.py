"""Geweke's joint test of the sweep over trees of experts: parameters and data drawn directly, or by turns.

The direct draws are made with NumPy from the definition; the simulator of responses is compiled, and shared.

Reference: Geweke (2004), Getting it right: joint distribution tests of posterior simulators.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.experts.model import KINDS
from bayesjpt.kernels.expert_sweep import Prior, sweep
from bayesjpt.kernels.expert_tree import (
    GAMMA,
    GAUSSIAN,
    LOGISTIC,
    MULTINOMIAL,
    POISSON,
    Coefficients,
    Task,
    count_ways,
    dot,
    fill_log_odds,
    fill_path_weights,
)
from bayesjpt.numerics.jit import kernel

N_ROW = 9
N_LABEL = 3
MOST_DIRECT = 8_000
"""Independent draws, which take the most time and need be no more than the chain's effective ones."""


def make_prior(**changes) -> Prior:
    """Return informative hyperparameters, under which the chain travels; a floor that cuts off a tenth."""
    own = {
        "gate_shape": 6.0,
        "gate_rate": 4.0,
        "precision_shape": 8.0,
        "precision_rate": np.array([[4.0], [3.0]]),
        # of which the hyperprior's own draws, of mean 2 and 8/3, are cut off often
        "least_precision": np.array([[1.5], [2.0]]),
        "noise_shape": 3.0,
        "noise_rate_shape": 6.0,
        "noise_rate_rate": 4.0,
        "log_shape_mean": 0.5,
        "log_shape_deviation": 0.5,
        "floor": np.full(1, 0.3),
    }
    own |= changes
    shape = (2, own["floor"].size)
    for name in ("precision_rate", "least_precision"):
        own[name] = np.broadcast_to(own[name], shape).copy()
    return Prior(**own)


def make_task(*kinds: str, gates: bool = True) -> Task:
    """Return a task of responses whose values the chain replaces."""
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(N_ROW), rng.normal(size=N_ROW)])
    codes = np.array([KINDS[kind] for kind in kinds], np.int8)
    return Task(
        x=x,
        gate_x=x.copy() if gates else np.ones((N_ROW, 1)),
        y=np.ones((codes.size, N_ROW)),
        kind=codes,
        at=np.cumsum([0, *np.where(codes == MULTINOMIAL, N_LABEL, 1)]).astype(np.int32),
        offset=np.where(np.isin(codes, (GAUSSIAN, POISSON, GAMMA)), 0.2, 0.0),
    )


def prior_draw(task: Task, prior: Prior, shape: tuple[int, int], rng: np.random.Generator) -> Coefficients:
    """Return a draw from the prior of a tree of some depth and ways, by its definition."""
    depth, n_way = shape
    n_leaf, n = n_way**depth, task.x.shape[1]
    gate_precision = rng.gamma(prior.gate_shape, 1.0 / prior.gate_rate)
    gate = rng.normal(0.0, gate_precision**-0.5, (n_leaf - 1, task.gate_x.shape[1]))
    if gate.shape[1] == 1:
        weight = rng.dirichlet(np.ones(n_way), gate.shape[0] // (n_way - 1))
        gate, gate_precision = np.log(weight[:, 1:] / weight[:, :1]).reshape(-1, 1), 1.0
    n_response = task.kind.size
    below = np.minimum(np.arange(depth + 1), 1)
    precision = np.zeros((depth + 1, n_response))
    while (short := precision <= prior.least_precision[below]).any():
        drawn = rng.gamma(prior.precision_shape, 1.0 / prior.precision_rate[below])
        precision = np.where(short, drawn, precision)
    levels = np.repeat(np.arange(depth + 1), n_way ** np.arange(depth + 1))
    own = np.repeat(np.arange(n_response), np.diff(task.at))  # the response of each predictor
    node = np.zeros((levels.size, int(task.at[-1]), n))
    for number, level in enumerate(levels):
        centre = node[(number - 1) // n_way] if number else 0.0
        node[number] = centre + rng.normal(0.0, precision[level, own, None] ** -0.5, node[number].shape)
    noise = rng.gamma(prior.noise_rate_shape, 1.0 / prior.noise_rate_rate, n_response)
    dispersion = np.ones((n_leaf, n_response))
    for c, kind in enumerate(task.kind):
        if kind != GAUSSIAN:
            noise[c] = 1.0
        else:
            for leaf in range(n_leaf):
                while True:
                    drawn = rng.gamma(prior.noise_shape, 1.0 / noise[c])
                    if drawn < 1.0 / prior.floor[c]:
                        break
                dispersion[leaf, c] = 1.0 / drawn
        if kind == GAMMA:
            dispersion[:, c] = np.exp(rng.normal(prior.log_shape_mean, prior.log_shape_deviation, n_leaf))
    return Coefficients(gate, node, dispersion, np.full(1, gate_precision), precision, noise)


@kernel
def draw_response(task, state, row, leaf, rng):
    """Replace a row's responses by draws at a leaf."""
    n_leaf = state.dispersion.shape[0]
    for c in range(task.kind.size):
        kind = task.kind[c]
        node = state.node[state.node.shape[0] - n_leaf + leaf, task.at[c] : task.at[c + 1]]
        eta = task.offset[c] + dot(task.x[row], node[0])
        if kind == GAUSSIAN:
            task.y[c, row] = eta + math.sqrt(state.dispersion[leaf, c]) * rng.standard_normal()
        elif kind == LOGISTIC:
            task.y[c, row] = 1.0 if rng.random() < 1.0 / (1.0 + math.exp(-eta)) else 0.0
        elif kind == MULTINOMIAL:
            total = 0.0
            for h in range(node.shape[0]):
                total += math.exp(dot(task.x[row], node[h]))
            left, label = rng.random() * total - math.exp(dot(task.x[row], node[0])), 0
            while left > 0.0 and label < node.shape[0] - 1:
                label += 1
                left -= math.exp(dot(task.x[row], node[label]))
            task.y[c, row] = label
        elif kind == POISSON:
            task.y[c, row] = rng.poisson(math.exp(eta))
        else:
            shape = state.dispersion[leaf, c]
            task.y[c, row] = max(rng.standard_gamma(shape) * math.exp(eta) / shape, 1e-300)


@kernel
def simulate(task, state, path, rng):
    """Replace paths and responses by draws given coefficients."""
    n_leaf = state.dispersion.shape[0]
    log_odds, weight, n_way = np.empty(n_leaf - 1), np.empty(n_leaf), count_ways(state.node.shape[0], n_leaf)
    for row in range(task.x.shape[0]):
        fill_log_odds(task.gate_x[row], state.gate, log_odds)
        fill_path_weights(log_odds, n_way, weight)
        level, leaf = rng.random() - math.exp(weight[0]), 0
        while level > 0.0 and leaf < n_leaf - 1:
            leaf += 1
            level -= math.exp(weight[leaf])
        path[row] = leaf
        draw_response(task, state, row, leaf, rng)


@kernel
def observe(task, state, out):
    """Fill out with functions of parameters and data, all of moderate tails."""
    n = 0
    for g in range(state.gate.shape[0]):
        for k in range(state.gate.shape[1]):
            out[n] = math.tanh(state.gate[g, k])
            out[n + 1] = out[n] * out[n]
            n += 2
    for number in range(state.node.shape[0]):
        for h in range(state.node.shape[1]):
            for k in range(state.node.shape[2]):
                out[n] = math.tanh(state.node[number, h, k])
                out[n + 1] = out[n] * out[n]
                n += 2
    out[n] = math.log(state.gate_precision[0])
    n += 1
    for c in range(task.kind.size):
        for leaf in range(state.dispersion.shape[0]):
            out[n] = math.log(state.dispersion[leaf, c])
            n += 1
        out[n] = math.log(state.noise[c])
        n += 1
        for level in range(state.precision.shape[0]):
            out[n] = math.log(state.precision[level, c])
            n += 1
        for row in range(3):
            out[n] = math.tanh(0.3 * task.y[c, row])
            out[n + 1] = out[n] * math.tanh(state.node[state.node.shape[0] - 1, task.at[c], 1])
            out[n + 2] = out[n] * math.tanh(state.node[0, task.at[c], 0])
            # of responses together, which share a leaf
            out[n + 3] = out[n] * math.tanh(0.3 * task.y[0, row])
            n += 4
    return n


@kernel
def successive(task, state, prior, leaf, rng, thin, out):
    """Fill out, float64 (n_draw, n_function), with functions along the chain of sweeps and new data."""
    for draw in range(out.shape[0]):
        # a sweep begins with coefficients given the paths of the one before, and the same data: were these new after
        # each, paths drawn in a wrong way would be forgotten before they do harm
        for _ in range(thin):
            sweep(task, state, prior, leaf, rng)
        simulate(task, state, leaf, rng)
        observe(task, state, out[draw])


def compare(
    task: Task, depth: int, prior: Prior, swept: Prior, n_draw: int, seed: int, thin: int = 2, n_way: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Return functions of direct draws and along the chain whose sweep believes in `swept`."""
    rng = np.random.default_rng(seed)
    state, leaf = prior_draw(task, prior, (depth, n_way), rng), np.zeros(task.x.shape[0], np.int64)
    buffer = np.zeros(10_000)
    n = observe(task, state, buffer)
    direct = np.empty((min(n_draw, MOST_DIRECT), n))
    for draw in range(direct.shape[0]):
        each = prior_draw(task, prior, (depth, n_way), rng)
        simulate(task, each, leaf, rng)
        observe(task, each, direct[draw])
    chain = np.empty((n_draw, n))
    simulate(task, state, leaf, rng)
    successive(task, state, swept, leaf, rng, thin, chain)
    return direct, chain


def z_scores(direct: np.ndarray, chain: np.ndarray, n_batch: int = 100) -> np.ndarray:
    """Return the difference of the means of both in standard errors, the chain's from batch means."""
    batches = chain[: chain.shape[0] // n_batch * n_batch].reshape(n_batch, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(batches.var(axis=0, ddof=1) / n_batch + direct.var(axis=0, ddof=1) / direct.shape[0])
    return (batches.mean(axis=0) - direct.mean(axis=0)) / np.maximum(error, 1e-12)
