"""States that chains of gated experts begin with: hard splits found greedily, or at random."""

from __future__ import annotations

import numpy as np

from bayesjpt.experts.model import ExpertModel
from bayesjpt.kernels.expert_start import begin_paths
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, Coefficients, Task

STARTS = ("cart", "random")


def first_state(model: ExpertModel, prior: Prior) -> Coefficients:
    """Return a state before any row: all coefficients 0, precisions and variances at their prior means."""
    shape = (model.n_leaf, len(model.targets))
    dispersion = np.ones(shape)
    dispersion[:, model.kind == GAMMA] = np.exp(prior.log_shape_mean)
    return Coefficients(
        gate=np.zeros((model.n_gate, len(model.gate_covariates.names))),
        node=np.zeros((model.n_node, int(model.at[-1]), len(model.covariates.names))),
        dispersion=np.maximum(dispersion, np.where(model.kind == GAUSSIAN, prior.floor, 0.0)),
        gate_precision=np.full(1, prior.gate_shape / prior.gate_rate),
        precision=np.full((model.depth + 1, len(model.targets)), prior.precision_shape / prior.precision_rate),
        noise=np.full(len(model.targets), prior.noise_rate_shape / prior.noise_rate_rate),
    )


def begin(
    model: ExpertModel, task: Task, prior: Prior, start: str, rng: np.random.Generator
) -> tuple[Coefficients, np.ndarray]:
    """Return a state and the leaf of each row, int64 (n_row,); of ``cart`` from half of the rows, drawn at random."""
    state, n_row = first_state(model, prior), task.x.shape[0]
    if start == "random" or task.gate_x.shape[1] == 1 or not model.depth:
        return state, rng.integers(0, model.n_leaf, n_row)
    leaf = begin_paths(task, state.gate, rng)
    return state, leaf
