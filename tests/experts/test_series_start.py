"""Where chains over series begin: subtrees exchanged, starts compared."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.kernels.expert_series import Memory
from bayesjpt.kernels.expert_series_start import Start, exchanged, exchanges, not_hopeless
from bayesjpt.kernels.expert_series_sweep import fill_evidence
from bayesjpt.kernels.expert_tree import GAUSSIAN, Coefficients, Task


def start(log_density: float, depth: int = 3, n_row: int = 20) -> tuple[Task, Start]:
    rng = np.random.default_rng(1)
    n_leaf, x = 2**depth, rng.normal(size=(n_row, 2))
    node, dispersion = rng.normal(size=(2 * n_leaf - 1, 1, 2)), np.exp(rng.normal(size=(n_leaf, 1)))
    state = Coefficients(np.zeros((n_leaf - 1, 2)), node, dispersion, *(np.ones(1) for _ in range(3)))
    task = Task(
        x, x, rng.normal(size=(1, n_row)), np.full(1, GAUSSIAN, np.int8), np.array([0, 1], np.int32), np.zeros(1)
    )
    memory = Memory(np.zeros((n_leaf - 1, n_leaf)), np.ones(1))
    return task, Start(log_density, state, memory, rng.integers(n_leaf, size=n_row))


@pytest.mark.parametrize("pair", [(3, 0, 5), (2, 0, 3), (2, 1, 2)])
def test_rows_follow_their_experts_where_subtrees_are_exchanged(pair):
    task, first = start(0.0)
    before, after = np.empty((20, 8)), np.empty((20, 8))
    seen = np.ones(20, bool)
    fill_evidence(task, seen, first.state, before)
    state, _, leaf = exchanged(first, 3, pair)
    fill_evidence(task, seen, state, after)
    rows = np.arange(20)
    np.testing.assert_array_equal(after[rows, leaf], before[rows, first.leaf])
    assert (leaf != first.leaf).any()
    again = exchanged(Start(0.0, state, first.memory, leaf), 3, pair)
    np.testing.assert_array_equal(again[2], first.leaf)
    np.testing.assert_array_equal(again[0].node, first.state.node)


def test_exchanges_reach_every_arrangement_of_leaves_that_is_no_mirror_image():
    seen, waiting = {(0, 1, 2, 3)}, [(0, 1, 2, 3)]
    while waiting:
        here = list(waiting.pop())
        for level, one, other in exchanges(2, siblings=False):
            assert level == 2
            after = here.copy()
            after[one], after[other] = here[other], here[one]
            if tuple(after) not in seen:
                seen.add(tuple(after))
                waiting.append(tuple(after))
    # pairs of leaves below the same gate: three ways to make two of four
    assert len({frozenset((frozenset(each[:2]), frozenset(each[2:]))) for each in seen}) == 3
    assert len(exchanges(3, siblings=False)) == 4 + 24
    assert len(exchanges(3, siblings=True)) == 6 + 28


def test_starts_far_behind_begin_at_a_copy_of_the_best():
    best, near, far = (start(value)[1] for value in (-100.0, -140.0, -160.0))
    found = not_hopeless([far, best, near])
    assert found[1] is best
    assert found[2] is near
    assert found[0].log_density == -100.0
    assert not np.shares_memory(found[0].leaf, best.leaf)
    assert not np.shares_memory(found[0].state.node, best.state.node)
