"""What known targets say of rows: densities, masses, leaves. Of a row that lacks covariates, they weigh its versions.

With M versions x_m of a row, drawn from p(x missing | x known), a draw has

      p(y | x known) = 1/M sum_m p(y | x_m),      P(leaf | y, x known) = sum_m P(leaf, y | x_m) / sum_m p(y | x_m).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults_experts import PAIR_BYTES
from bayesjpt.experts.row_parts import RowPart
from bayesjpt.kernels.expert_evidence import fill_leaf_shares, fill_log_density
from bayesjpt.kernels.expert_pairs import fill_log_mass
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior

Cells = tuple[np.ndarray, np.ndarray, np.ndarray]


def _spread(post: ExpertPosterior, table: Table, n_value: int) -> Iterator[tuple[RowPart, RowPart]]:
    """Yield some rows and all their versions, so many that n_value numbers a pair stay within memory."""
    for part in post.row_parts(table):
        n_pair = post.n_chain * post.n_draw * part.n_version
        # rows without versions need no more than the answer itself
        step = part.rows.size if part.n_version == 1 else max(1, PAIR_BYTES // (8 * n_pair * n_value))
        for own in part.split(step):
            yield own, own.spread()


def _at(cells: Cells, rows: np.ndarray) -> Cells:
    first, second, third = (np.ascontiguousarray(array[:, rows]) for array in cells)
    return first, second, third


def _log_mean(values: np.ndarray, n_version: int) -> np.ndarray:
    """Return the logarithm of the mean over versions, (n_draw, n_row), of exp(values), (n_draw, n_version * n_row)."""
    if n_version == 1:
        return values
    by_version = values.reshape(values.shape[0], n_version, -1)
    return np.logaddexp.reduce(by_version, axis=1) - np.log(n_version)


def log_density(post: ExpertPosterior, table: Table, cells: Cells) -> np.ndarray:
    """Return the log density of cells, float64 (n_draw, n_row), nats, in the families' units."""
    out = np.empty((post.n_chain * post.n_draw, table.n_row))
    for part, spread in _spread(post, table, 1):
        found = np.empty((out.shape[0], spread.rows.size))
        fill_log_density(post.model.leaves, spread.x, spread.gate_x, _at(cells, spread.rows), post.flat(), found)
        out[:, part.rows] = _log_mean(found, part.n_version)
    return out


def leaf_shares(post: ExpertPosterior, table: Table, cells: Cells) -> np.ndarray:
    """Return the probability of each leaf given a row and its known targets, float64 (n_draw, n_row, n_leaf)."""
    n_draw, n_leaf = post.n_chain * post.n_draw, post.model.n_leaf
    out = np.empty((n_draw, table.n_row, n_leaf))
    for part, spread in _spread(post, table, 1 + n_leaf):
        own, found = _at(cells, spread.rows), np.empty((n_draw, spread.rows.size, n_leaf))
        fill_leaf_shares(post.model.leaves, spread.x, spread.gate_x, own, post.flat(), found)
        if part.n_version > 1:
            density = np.empty(found.shape[:2])
            fill_log_density(post.model.leaves, spread.x, spread.gate_x, own, post.flat(), density)
            weight = _weights_of_versions(density.reshape(n_draw, part.n_version, -1))
            found = (weight[..., None] * found.reshape(*weight.shape, n_leaf)).sum(axis=1)
        out[:, part.rows] = found
    return out


def _weights_of_versions(log_density: np.ndarray) -> np.ndarray:
    """Return the probability of each version given the targets, float64 (n_draw, n_version, n_row).

    Targets that are impossible under all versions say nothing of these.
    """
    top = log_density.max(axis=1, keepdims=True)
    weight = np.exp(np.where(np.isfinite(top), log_density - np.where(np.isfinite(top), top, 0.0), 0.0))
    return weight / weight.sum(axis=1, keepdims=True)


def log_masses(post: ExpertPosterior, table: Table, cells: Cells) -> np.ndarray:
    """Return the log probability of intervals of targets, float64 (n_draw, n_row).

    Parameters
    ----------
    post : ExpertPosterior
    table : Table
    cells : tuple
        Ends, float64 (n_target, n_row), in the families' units, and which targets are known, bool (n_target, n_row).
    """
    circuit = post.model.circuit
    out = np.empty((post.n_chain * post.n_draw, table.n_row))
    for part in post.row_parts(table):
        each = 8 * out.shape[0] * part.n_version * (circuit.n_edge + circuit.n_theta)
        for own in part.split(max(1, PAIR_BYTES // each)):
            spread = own.spread()
            params, found = post.part_params(spread, 1), np.empty((out.shape[0], spread.rows.size))
            lo, hi, seen = _at(cells, spread.rows)
            fill_log_mass(post.model.leaves, lo, hi, seen, params.log_weight, params.theta, found)
            out[:, own.rows] = _log_mean(found, own.n_version)
    return out
