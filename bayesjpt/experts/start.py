"""States that chains of gated experts begin with: hard splits found greedily, or at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesjpt import defaults_experts
from bayesjpt.errors import LearnerError
from bayesjpt.experts.model import ExpertModel
from bayesjpt.kernels.expert_gaps import Gaps, fill_gaps, room_for
from bayesjpt.kernels.expert_series_start import seen_rows
from bayesjpt.kernels.expert_start import begin_paths, begin_ways
from bayesjpt.kernels.expert_sweep import Prior, fill_paths, sweep
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, Coefficients, Task

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior

STARTS = ("cart", "random")
_COMPLETE_SWEEPS = 20
"""Of complete rows alone, before the others take covariates that agree with a state."""
FIRST_COMPARED = 200
"""Candidates of a row that a first state compares; sweeps compare fewer, and come near in several."""


def first_state(model: ExpertModel, prior: Prior) -> Coefficients:
    """Return a state before any row: all coefficients 0, precisions and variances at their prior means."""
    shape = (model.n_leaf, len(model.targets))
    dispersion = np.ones(shape)
    dispersion[:, model.kind == GAMMA] = np.exp(prior.log_shape_mean)
    return Coefficients(
        gate=np.zeros((model.n_leaf - 1, len(model.gate_covariates.names))),
        node=np.zeros((model.n_node, int(model.at[-1]), len(model.covariates.names))),
        dispersion=np.maximum(dispersion, np.where(model.kind == GAUSSIAN, prior.floor, 0.0)),
        gate_precision=np.full(1, prior.gate_shape / prior.gate_rate),
        precision=np.maximum(prior.precision_shape / prior.precision_rate, prior.least_precision)[
            np.minimum(np.arange(model.depth + 1), 1)
        ],
        noise=np.full(len(model.targets), prior.noise_rate_shape / prior.noise_rate_rate),
    )


def begin(
    model: ExpertModel, task: Task, prior: Prior, start: str, rng: np.random.Generator
) -> tuple[Coefficients, np.ndarray]:
    """Return a state and the leaf of each row, int64 (n_row,); of ``cart`` from half of the rows, drawn at random."""
    state, n_row = first_state(model, prior), task.x.shape[0]
    if start == "random" or task.gate_x.shape[1] == 1 or not model.depth:
        return state, rng.integers(0, model.n_leaf, n_row)
    if model.branches > 2:
        return state, begin_ways(task, model.depth, model.branches, rng)
    leaf = begin_paths(task, state.gate, rng)
    return state, leaf


def check_start(start: object) -> None:
    """Raise `LearnerError` unless a start is one of `STARTS` or a fit."""
    if start not in STARTS if isinstance(start, str) else not hasattr(start, "coefficients"):
        raise LearnerError(f"start={start!r}", f"one of {', '.join(STARTS)}, or a fit of experts")


def check_same_model(model: ExpertModel, other: ExpertModel) -> None:
    """Raise `LearnerError` unless coefficients of one model mean the same in the other."""
    same = {
        "targets": model.targets == other.targets,
        "experts": model.experts == other.experts,
        "depth": model.depth == other.depth,
        "branches": model.branches == other.branches,
        "covariates": model.covariates.members == other.covariates.members,
        "gates": model.gate_covariates.members == other.gate_covariates.members,
        "units of targets": model.response == other.response and np.array_equal(model.offset, other.offset),
    }
    for name, equal in same.items():
        if not equal:
            raise LearnerError(f"a start with other {name}", "a fit of the same table with the same settings")


def last_draw(post: ExpertPosterior, chain: int) -> Coefficients:
    """Return the last draw of one of a fit's chains, which take turns.

    A search leaves the precision of gates at its prior mean, which would pull sharp gates back at once: it becomes its
    mean given the gates.
    """
    state = Coefficients(*(array[chain % post.n_chain, -1].copy() for array in post.coefficients))
    if "method" in post.settings:
        shape, rate = defaults_experts.GATE_PRECISION
        state.gate_precision[0] = (shape + 0.5 * state.gate.size) / (rate + 0.5 * float((state.gate**2).sum()))
    return state


def go_on(state: Coefficients, task: Task, rng: np.random.Generator) -> tuple[Coefficients, np.ndarray]:
    """Return a state and paths of the rows drawn given it."""
    leaf = np.zeros(task.x.shape[0], np.int64)
    fill_paths(task, state, rng, leaf)
    return state, leaf


def begin_with_gaps(
    model: ExpertModel, task: Task, gaps: Gaps, prior: Prior, start: str, rng: np.random.Generator
) -> tuple[Coefficients, np.ndarray]:
    """Return a state and the leaf of each row, where some rows lack covariates: of sweeps over the complete rows.

    Covariates drawn without a look at targets would have blurred the splits. Fewer complete rows than coefficients say
    nothing; a chain then begins with such covariates.
    """
    full = np.ones(task.x.shape[0], bool)
    full[gaps.place] = False
    if full.sum() < task.x.shape[1]:
        return begin(model, task, prior, start, rng)
    known = seen_rows(task, full)
    state, leaf = begin(model, known, prior, start, rng)
    for _ in range(_COMPLETE_SWEEPS):
        sweep(known, state, prior, leaf, rng)
    return go_on_with_gaps(state, task, gaps, rng)


def go_on_with_gaps(
    state: Coefficients, task: Task, gaps: Gaps, rng: np.random.Generator
) -> tuple[Coefficients, np.ndarray]:
    """Return a state and paths of the rows drawn given it, after missing covariates, which `task` has then."""
    many = gaps._replace(n_compared=FIRST_COMPARED)
    fill_gaps(task, many, state, room_for(task, many), rng)
    return go_on(state, task, rng)
