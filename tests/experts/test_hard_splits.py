"""The phase transition of hard splits: a student tree of two linear experts learns where its teacher divides the space.

Weights are vectors of length sqrt(N); a student sees many noisy rows of a teacher of its own form. At high temperature
its state is described by overlaps alone, which maximise entropy minus signal times test error. Below a signal of
pi sqrt(1 + pi^2 / 8) its split is independent of the teacher's; above, they align, without a jump.

Reference: Saul and Jordan (1995), as in Jordan's slides, Bayesian Learning in Probabilistic Decision Trees, "Test Set
Error".
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.optimize

import bayesjpt as bj
from bayesjpt.experts.posterior import ExpertPosterior
from bayesjpt.kernels.expert_tree import Coefficients

CRITICAL = np.pi * np.sqrt(1.0 + np.pi**2 / 8.0)
N = 6
SHARP = 1e8
"""Of gates, which makes them hard."""


def error_of(overlap: np.ndarray) -> float:
    """Return the slides' error from overlaps, (3, 3): rows the student's v, w1, w2, columns the teacher's.

    The last term has a minus here, as the expectation over rows of unit covariance has.
    """
    (rv, x1, x2), (y1, r1, c1), (y2, c2, r2) = overlap
    angle = np.arccos(np.clip(rv, -1.0, 1.0)) / np.pi
    crossed = (x1 - x2) * (y1 - y2) / (2.0 * np.pi * np.sqrt(max(1.0 - rv * rv, 1e-300)))
    return float(1.0 - (1.0 - angle) * 0.5 * (r1 + r2) - angle * 0.5 * (c1 + c2) - crossed)


def free_energy(flat: np.ndarray, signal: float) -> float:
    """Return signal times error minus entropy; each student vector has a length, and is free otherwise."""
    overlap = flat.reshape(3, 3)
    left = 1.0 - (overlap**2).sum(axis=1)
    if (left <= 0.0).any():
        return np.inf
    return signal * error_of(overlap) - 0.5 * float(np.log(left).sum())


def aligned(signal: float) -> np.ndarray:
    """Return the overlaps of least free energy, the sign of the split chosen."""
    best = None
    for seed in range(3):
        first = np.random.default_rng(seed).uniform(0.02, 0.1, 9)
        found = scipy.optimize.minimize(
            free_energy, first, (signal,), "Nelder-Mead", options={"maxiter": 40_000, "maxfev": 40_000, "fatol": 1e-14}
        )
        found = scipy.optimize.minimize(
            free_energy,
            found.x,
            (signal,),
            "Nelder-Mead",
            options={"maxiter": 40_000, "maxfev": 40_000, "fatol": 1e-15},
        )
        best = found if best is None or found.fun < best.fun else best
    return best.x.reshape(3, 3)


def tree(v: np.ndarray, w1: np.ndarray, w2: np.ndarray, like: ExpertPosterior) -> ExpertPosterior:
    """Return a posterior of one draw: w1 x where v x > 0 and w2 x elsewhere, over sqrt(N), in units of the targets."""
    zero = np.zeros(1)
    column = like.model.response.columns[0]
    node = np.zeros((3, 1, N + 1))
    centre, scale = (
        np.array([getattr(member, what) for member in like.model.covariates.members]) for what in ("centre", "scale")
    )
    offset = column.location + column.scale * like.model.offset[0]
    for number, w in ((1, w2), (2, w1)):
        slope = w / np.sqrt(N)
        node[number, 0] = np.concatenate([[slope @ centre - offset], slope * scale]) / column.scale
    gate = SHARP * np.concatenate([zero + v @ centre, v * scale])
    state = [gate[None], node, np.ones((2, 1)), np.ones(1), np.ones((2, 1)), np.ones(1)]
    return ExpertPosterior(like.model, Coefficients(*(array[None, None] for array in state)))


def test_the_error_by_overlaps_is_that_of_hard_trees():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40_000, N))
    rows = pd.DataFrame(x, columns=[f"x{k}" for k in range(N)])
    like = bj.fit_experts(rows[:50].assign(y=x[:50, 0]), target="y", depth=1, method="em", passes=1, rng=1)
    teacher, _ = np.linalg.qr(rng.normal(size=(N, 3)))
    student = np.diag([0.9, 0.8, 0.7]) @ teacher.T + 0.4 * rng.normal(size=(3, N))
    # overlaps of a student's own split with its own experts are not among the nine
    student[1:] -= np.outer(student[1:] @ student[0], student[0]) / (student[0] @ student[0])
    student /= np.linalg.norm(student, axis=1, keepdims=True)
    overlap = student @ teacher
    # the term that crosses splits and experts counts
    assert np.abs(overlap[0, 1] - overlap[0, 2]) > 0.1
    assert np.abs(overlap[1, 0] - overlap[2, 0]) > 0.1
    size = np.sqrt(N)
    ours, theirs = (tree(*(size * vectors), like).expectation(rows).values[0, 0, 0] for vectors in (student, teacher.T))
    found = 0.5 * (ours - theirs) ** 2
    expected = error_of(overlap)
    bound = 5.0 * found.std() / np.sqrt(found.size)
    assert abs(found.mean() - expected) < bound
    wrong = overlap * np.where(np.arange(3) == 0, -1.0, 1.0)[:, None]
    assert abs(found.mean() - error_of(wrong)) > bound


def test_splits_align_above_the_critical_signal_alone():
    np.testing.assert_allclose(CRITICAL, 4.695, atol=5e-4)
    below, near, above = (abs(aligned(CRITICAL * share)[0, 0]) for share in (0.97, 1.01, 1.2))
    assert below < 1e-3
    # continuous: the alignment grows as a root of the distance
    assert 0.05 < near < 0.35
    assert above > 2.0 * near


@pytest.mark.parametrize(("signal", "stable"), [(0.999 * CRITICAL, True), (1.001 * CRITICAL, False)])
def test_the_state_without_a_split_is_stable_below_the_critical_signal_alone(signal, stable):
    # experts that both know the sum of the teacher's: signal = 4 r / (1 - 2 r^2)
    r = (-4.0 + np.sqrt(16.0 + 8.0 * signal**2)) / (4.0 * signal)
    overlap = np.array([[0.0, 0.0, 0.0], [0.0, r, r], [0.0, r, r]]).ravel()
    step, hessian = 1e-3, np.empty((9, 9))
    for i, j in np.ndindex(9, 9):
        a, b = step * np.eye(9)[[i, j]]
        values = [free_energy(overlap + s * a + t * b, signal) for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
        hessian[i, j] = (values[0] - values[1] - values[2] + values[3]) / (4 * step * step)
    assert (np.linalg.eigvalsh(hessian)[0] > 0.0) == stable


def test_with_much_signal_the_error_falls_as_two_over_the_signal():
    # by the slides' symmetry all overlaps of vectors with their own teachers count, and none of the others
    def energy(overlaps: np.ndarray) -> float:
        rv, r, c = overlaps
        flat = np.array([[rv, 0.0, 0.0], [0.0, r, c], [0.0, c, r]]).ravel()
        return free_energy(flat, 2000.0)

    best = scipy.optimize.minimize(
        energy, [0.99, 0.99, 0.001], method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-10, "fatol": 1e-12}
    ).x
    error = error_of(np.array([[best[0], 0, 0], [0, best[1], best[2]], [0, best[2], best[1]]]))
    np.testing.assert_allclose(2000.0 * error, 2.0, rtol=0.05)
