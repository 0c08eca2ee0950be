"""Rows of a question in parts: those that have all covariates, and those that lack some, in several versions.

A row that lacks covariates is a mixture over what these may be. Questions that do not look at targets ask each draw
under a few versions, of which all draws together see each. Where known targets weigh versions (densities, leaves), each
draw needs all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.errors import TableError
from bayesjpt.experts.missing import AVERAGE_GAPS, drawn_covariates, lacking
from bayesjpt.experts.model import ExpertModel, mixture_circuit
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.table import Table

N_IMPUTATION = 100
"""Of each row of a question with missing covariates. Ends of an interval of nine tenths are found among so many values
to about three hundredths of its probability; of ten values, an interval has four fifths."""
VERSION_BYTES = 64 * 2**20
"""Of the versions of rows that are made at once."""


class RowPart(NamedTuple):
    """Some rows of a question.

    Attributes
    ----------
    rows : int64 (n_row,)
        Where they are in the table.
    x, gate_x : float64 (n_version, n_row, n_covariate)
        Covariates of experts and gates; several versions of rows that lack some.
    gaps : bool
        Whether the rows lack covariates.
    history : float64 (n_draw, n_row, n_leaf), optional
        Over time: probabilities of leaves given the targets before each row. Of rows with gaps, whose versions differ
        in these: probabilities of the leaf before, 0 where a series begins.
    """

    rows: np.ndarray
    x: np.ndarray
    gate_x: np.ndarray
    gaps: bool = False
    history: np.ndarray | None = None

    @property
    def n_version(self) -> int:
        return self.x.shape[0]

    def n_asked(self, n_draw: int) -> int:
        """Return under how many versions a draw is asked, such that all draws together see each."""
        return math.ceil(self.n_version / n_draw)

    def split(self, step: int) -> Iterator[RowPart]:
        """Yield so many rows at a time."""
        if self.rows.size <= step:
            yield self
            return
        for lo in range(0, self.rows.size, step):
            own = slice(lo, lo + step)
            x, gate_x = np.ascontiguousarray(self.x[:, own]), np.ascontiguousarray(self.gate_x[:, own])
            history = None if self.history is None else np.ascontiguousarray(self.history[:, own])
            yield RowPart(self.rows[own], x, gate_x, self.gaps, history)

    def spread(self) -> RowPart:
        """Return each version as a row of its own, all rows of a version side by side: each draw sees all of them."""
        if self.n_version == 1:
            return self
        x, gate_x = (array.reshape(1, -1, array.shape[2]) for array in (self.x, self.gate_x))
        history = None if self.history is None else np.tile(self.history, (1, self.n_version, 1))
        return RowPart(np.tile(self.rows, self.n_version), x, gate_x, self.gaps, history)


def row_parts(
    model: ExpertModel, joint: Posterior | None, table: Table, n_version: int | None = None
) -> Iterator[RowPart]:
    """Yield the rows without gaps, then those with gaps, each in several versions drawn given its others.

    Parameters
    ----------
    model : ExpertModel
    joint : Posterior, optional
        Of the covariates; without it a missing one is refused.
    table : Table
    n_version : int, optional
        `N_IMPUTATION` unless given.

    Raises
    ------
    TableError
        For no rows, and for a missing covariate without `joint`.
    """
    if not table.n_row:
        raise TableError("no rows", "one at least")
    lacks = np.zeros(table.n_row, bool) if joint is None else lacking(model, table)
    full, gaps = np.flatnonzero(~lacks), np.flatnonzero(lacks)
    if full.size:
        known = table.take(full) if gaps.size else table
        x, gate_x = (own.matrix(known, AVERAGE_GAPS) for own in (model.covariates, model.gate_covariates))
        yield RowPart(full, x[None], gate_x[None])
    if joint is None:
        return
    rng = np.random.default_rng(0)  # the same imputations for all questions about the same rows
    n_version = N_IMPUTATION if n_version is None else n_version
    n_bytes = 8 * n_version * (len(model.covariates.names) + len(model.gate_covariates.names) + 1)
    step = max(1, VERSION_BYTES // n_bytes)
    for lo in range(0, gaps.size, step):
        place = gaps[lo : lo + step]
        drawn = drawn_covariates(model, joint, table, place, n=n_version, rng=rng)
        x, gate_x = (np.ascontiguousarray(np.swapaxes(array, 0, 1)) for array in drawn)
        yield RowPart(place, x, gate_x, gaps=True)


def mixed(model: ExpertModel, n_version: int, params: Params) -> tuple[Circuit, Params]:
    """Return the circuit of the mixture over versions of a tree's mixtures, with its weights and parameters.

    Parameters
    ----------
    model : ExpertModel
    n_version : int
    params : Params
        Of the model's circuit, with axes (draw * version, row), versions of a draw side by side.

    Returns
    -------
    Circuit, Params
        The latter with axes (draw, row).
    """
    if n_version == 1:
        return model.circuit, params
    n_pair, n_row, n_theta = params.theta.shape
    n_draw, n_leaf = n_pair // n_version, model.n_leaf
    circuit = mixture_circuit(model.response, model.families, n_version * n_leaf)
    # the builder numbers leaves child by child: parameters of versions are side by side
    assert circuit.n_theta == n_version * n_theta
    own = params.log_weight[..., model.leaves.edge] if n_leaf > 1 else np.zeros((n_pair, n_row, 1))

    def side_by_side(values: np.ndarray) -> np.ndarray:
        by_version = values.reshape(n_draw, n_version, n_row, -1)
        return np.swapaxes(by_version, 1, 2).reshape(n_draw, n_row, -1)

    log_weight = np.zeros((n_draw, n_row, circuit.n_edge))
    edges = np.flatnonzero(circuit.kind[circuit.edge_parent()] == arrays.LATENT)
    log_weight[..., edges] = side_by_side(own) - math.log(n_version)
    return circuit, Params(log_weight, side_by_side(params.theta))


def one_version(parts: Iterable[RowPart], n_row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return covariates of experts and gates, float64 (n_row, n_covariate), of the first version of each row."""
    found = list(parts)
    x, gate_x = (np.empty((n_row, array.shape[2])) for array in (found[0].x, found[0].gate_x))
    for part in found:
        x[part.rows], gate_x[part.rows] = part.x[0], part.gate_x[0]
    return x, gate_x
