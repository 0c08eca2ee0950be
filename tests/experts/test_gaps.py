"""Draws of missing covariates among candidates, against posteriors of candidates by hand."""

from __future__ import annotations

import numpy as np
import scipy.stats
from scipy.special import expit, softmax

from bayesjpt.kernels.expert_gaps import Gaps, fill_gaps, fill_gaps_of_steps, room_for, run_chain_with_gaps
from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_sweep import Prior, draw_given_paths, fill_paths
from bayesjpt.kernels.expert_tree import GAUSSIAN, LOGISTIC, Coefficients, Task
from tests.experts.naive import path_probabilities

PRIOR = Prior(1.0, 1.0, 2.0, np.ones((2, 1)), np.zeros((2, 1)), 2.0, 1.0, 2.0, 0.0, 1.5, np.full(1, 1e-10))
N_DRAW = 20_000
FREQUENCY_TOLERANCE = 0.02  # over four standard errors of a frequency, of draws that depend on the last one


def made_task(kind: int, y: list[float], x: list[float]) -> Task:
    design = np.column_stack([np.ones(len(x)), x])
    at = np.array([0, 1], np.int32)
    return Task(design, design.copy(), np.array([y]), np.array([kind], np.int8), at, np.zeros(1))


def made_gaps(place: list[int], candidates: list[list[float]], n_compared: int) -> Gaps:
    x = np.stack([np.ones(np.shape(candidates)), np.array(candidates)], axis=-1)
    return Gaps(np.array(place), x, x.copy(), np.zeros(len(place), np.int64), n_compared)


def made_state(rng: np.random.Generator, depth: int) -> Coefficients:
    n_leaf = 2**depth
    return Coefficients(
        gate=rng.normal(size=(n_leaf - 1, 2)),
        node=rng.normal(size=(2 * n_leaf - 1, 1, 2)),
        dispersion=rng.uniform(0.2, 0.8, (n_leaf, 1)),
        gate_precision=np.ones(1),
        precision=np.ones((depth + 1, 1)),
        noise=np.ones(1),
    )


def test_candidates_are_drawn_in_proportion_to_the_density_of_targets_with_paths_summed_out():
    rng = np.random.default_rng(1)
    state = made_state(rng, 2)
    task = made_task(GAUSSIAN, [0.3, -0.5, 0.9], [0.1, 0.0, 0.0])
    candidates = [[-1.5, -0.4, 0.3, 1.2], [0.7, -0.9, 0.0, 2.0]]
    expected = []
    for row, own in zip((1, 2), candidates, strict=True):
        density = []
        for x in own:
            each = np.array([1.0, x])
            deviation = np.sqrt(state.dispersion[:, 0])
            leaves = scipy.stats.norm(state.node[3:, 0] @ each, deviation).pdf(task.y[0, row])
            density.append(path_probabilities(state.gate, each) @ leaves)
        expected.append(np.array(density) / np.sum(density))
    assert np.min(expected) < 0.2 < 0.3 < np.max(expected)
    for n_compared in (2, 4):
        gaps = made_gaps([1, 2], candidates, n_compared)
        room, seen = room_for(task, gaps), np.zeros((2, 4))
        for _ in range(N_DRAW):
            fill_gaps(task, gaps, state, room, rng)
            seen[[0, 1], gaps.chosen] += 1.0 / N_DRAW
        np.testing.assert_allclose(seen, expected, atol=FREQUENCY_TOLERANCE)
        np.testing.assert_array_equal(task.x[[1, 2]], gaps.x[[0, 1], gaps.chosen])
        np.testing.assert_array_equal(task.gate_x[[1, 2]], gaps.gate_x[[0, 1], gaps.chosen])
        assert task.x[0, 1] == 0.1


def test_candidates_of_a_whole_chain_have_the_posterior_of_quadrature():
    y, x, candidates = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0], [1.0, 2.0, -1.0, -2.0, 1.5, 0.0, 0.0], [-3.0, 0.5, 3.0]
    grid = np.linspace(-25.0, 25.0, 501)
    b0, b1 = np.meshgrid(grid, grid, indexing="ij")
    prior = (1.0 + 0.5 * (b0**2 + b1**2)) ** -3.0  # normal with a precision that is Gamma(2, 1)
    expected = np.empty((3, 3))
    for i, first in enumerate(candidates):
        for j, second in enumerate(candidates):
            values = [*x[:5], first, second]
            signs = [1.0 if label else -1.0 for label in y]
            each = [expit(sign * (b0 + b1 * value)) for sign, value in zip(signs, values, strict=True)]
            expected[i, j] = (prior * np.prod(each, axis=0)).sum()
    expected /= expected.sum()
    rng = np.random.default_rng(2)
    task, gaps = made_task(LOGISTIC, y, x), made_gaps([5, 6], [candidates, candidates], 2)
    state, leaf, seen = made_state(rng, 0), np.zeros(7, np.int64), np.zeros((3, 3))
    state.dispersion[:] = 1.0
    room = room_for(task, gaps)
    for _ in range(N_DRAW):
        draw_given_paths(task, state, PRIOR, leaf, rng)
        fill_gaps(task, gaps, state, room, rng)
        fill_paths(task, state, rng, leaf)
        seen[gaps.chosen[0], gaps.chosen[1]] += 1.0 / N_DRAW
    np.testing.assert_allclose(seen, expected, atol=FREQUENCY_TOLERANCE)


def test_candidates_of_steps_have_the_posterior_of_enumeration_given_other_leaves():
    rng = np.random.default_rng(3)
    state, memory = made_state(rng, 1), Memory(np.array([[1.5, -1.0]]), np.ones(1))
    task = made_task(GAUSSIAN, [0.3, -0.5, 0.9, 0.2], [0.0, 0.0, 0.0, 0.4])
    steps = Steps(np.array([0, 4]), np.array([True, True, False, True]), np.array([[0, 1]]), np.ones((1, 2)))
    candidates = [[-1.5, -0.4, 0.3, 1.2], [0.7, -0.9, 0.0, 2.0], [0.0, 1.0, 2.0, -2.0]]

    def log_step(row: int, x: float, leaf: int, before: int) -> float:
        each = np.array([1.0, x])
        log_odds = state.gate[0] @ each + (memory.offset[0, before] if row else 0.0)
        value = np.log(expit(log_odds if leaf else -log_odds))
        expert = scipy.stats.norm(state.node[1 + leaf, 0] @ each, np.sqrt(state.dispersion[leaf, 0]))
        return value + (expert.logpdf(task.y[0, row]) if steps.seen[row] else 0.0)

    one = np.array(
        [[[[log_step(t, x, z, k) for x in candidates[t]] for z in (0, 1)] for k in (0, 1)] for t in range(3)]
    )
    log_weight = np.full((4, 4, 4, 2, 2, 2), -np.inf)
    for a, b, c in np.ndindex(4, 4, 4):
        for z in np.ndindex(2, 2, 2):
            value = one[0, 0, z[0], a] + one[1, z[0], z[1], b] + one[2, z[1], z[2], c]
            log_weight[(a, b, c, *z)] = value + log_step(3, 0.4, 1, z[2])
    joint = softmax(log_weight)
    expected = [joint.sum(axis=tuple(k for k in range(6) if k != t)) for t in range(6)]
    gaps, leaf = made_gaps([0, 1, 2], candidates, 3), np.array([1, 0, 1, 1])
    room, seen, leaves = room_for(task, gaps), np.zeros((3, 4)), np.zeros(3)
    for _ in range(N_DRAW):
        fill_gaps_of_steps(task, gaps, steps, state, memory, leaf, room, rng)
        seen[[0, 1, 2], gaps.chosen] += 1.0 / N_DRAW
        leaves += leaf[:3] / N_DRAW
    np.testing.assert_allclose(seen, expected[:3], atol=FREQUENCY_TOLERANCE)
    np.testing.assert_allclose(leaves, [own[1] for own in expected[3:]], atol=FREQUENCY_TOLERANCE)
    np.testing.assert_array_equal(task.x[:3], gaps.x[[0, 1, 2], gaps.chosen])
    assert leaf[3] == 1


def test_draws_are_the_same_wherever_a_run_of_sweeps_is_cut():
    def drawn(cuts: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(4)
        task = made_task(GAUSSIAN, [0.3, -0.5, 0.9, 0.4, -1.0], [0.1, 0.0, 0.0, 1.0, -1.0])
        gaps = made_gaps([1, 2], [[-1.5, -0.4, 0.3, 1.2], [0.7, -0.9, 0.0, 2.0]], 2)
        state, leaf, parts = made_state(rng, 1), np.zeros(5, np.int64), []
        for n in cuts:
            kept = Coefficients(*(np.empty((n, *array.shape)) for array in state))
            run_chain_with_gaps(task, gaps, state, PRIOR, leaf, rng, 0, kept)
            parts.append(kept.node)
        return np.concatenate(parts)

    np.testing.assert_array_equal(drawn((6,)), drawn((1, 3, 2)))
