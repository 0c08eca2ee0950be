"""Forward passes over rows that follow each other, and what is made of them: leaves, paths, weights of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesjpt.experts.missing import COMPARED, lacking
from bayesjpt.experts.row_parts import N_IMPUTATION, RowPart, one_version, row_parts
from bayesjpt.kernels.expert_evidence import fill_evidence
from bayesjpt.kernels.expert_series import (
    fill_base_odds,
    fill_drawn_paths,
    fill_filtered,
    fill_memory_odds,
    fill_smoothed,
)
from bayesjpt.kernels.expert_series_gaps import (
    GapSteps,
    fill_ahead,
    fill_drawn_gaps,
    fill_filtered_gaps,
    fill_smoothed_gaps,
)
from bayesjpt.kernels.expert_series_start import slots
from bayesjpt.kernels.expert_tree import Coefficients

if TYPE_CHECKING:
    from bayesjpt.experts.series import ExpertSeriesPosterior, OrderedTable

GAP_BYTES = 256 * 2**20
"""Of all versions of rows that lack covariates; of many such rows each has fewer versions, and at least `COMPARED`."""


class Forward(NamedTuple):
    """What the forward pass of one draw leaves, rows in the order of their series.

    Attributes
    ----------
    steps : GapSteps
    predicted, filtered : float64 (n_row, n_leaf)
        Probabilities of leaves given the targets before a row, and given those up to it.
    log_density : float64 (n_row,), nats
        Of a row's targets given those before it, in the families' units.
    """

    steps: GapSteps
    predicted: np.ndarray
    filtered: np.ndarray
    log_density: np.ndarray

    @property
    def has_gaps(self) -> bool:
        return self.steps.version_base.shape[1] > 0

    def smoothed(self) -> np.ndarray:
        """Return the probabilities of leaves given all targets of the series, float64 (n_row, n_leaf)."""
        steps, out = self.steps, np.empty(self.filtered.shape)
        if self.has_gaps:
            fill_smoothed_gaps(steps, self.predicted, self.filtered, self.log_density, out)
        else:
            fill_smoothed(steps.first, steps.base, steps.memory_odds, self.predicted, self.filtered, out)
        return out

    def drawn(self, key: np.uint64) -> tuple[np.ndarray, np.ndarray]:
        """Return a draw of leaves and of versions of covariates given all targets, int64 (n_row,) each."""
        steps, leaf = self.steps, np.empty(self.filtered.shape[0], np.int64)
        version = np.zeros(leaf.size, np.int64)
        if self.has_gaps:
            fill_drawn_gaps(steps, self.filtered, key, leaf, version)
        else:
            fill_drawn_paths(steps.first, steps.base, steps.memory_odds, self.filtered, key, leaf)
        return leaf, version

    def before(self) -> np.ndarray:
        """Return the probabilities of the leaf before each row given the targets up to it, 0 where a series begins."""
        out = np.zeros(self.filtered.shape)
        out[1:] = self.filtered[:-1]
        out[self.steps.first[:-1]] = 0.0
        return out


def parts_of(post: ExpertSeriesPosterior, table: OrderedTable) -> list[RowPart]:
    """Return the rows without gaps, and those with gaps, all of these in one part."""
    model, n_version = post.model, N_IMPUTATION
    if post.missing is not None:
        n_number = len(model.covariates.names) + len(model.gate_covariates.names) + model.n_node
        n_gap = int(lacking(model, table).sum())
        n_version = min(n_version, max(GAP_BYTES // (8 * max(n_gap, 1) * n_number), COMPARED))
    parts = list(row_parts(model, post.missing, table, n_version))
    gaps = [part for part in parts if part.gaps]
    if len(gaps) < 2:
        return parts
    x, gate_x = (np.concatenate(arrays, axis=1) for arrays in zip(*((p.x, p.gate_x) for p in gaps), strict=True))
    rows = np.concatenate([part.rows for part in gaps])
    return [*(part for part in parts if not part.gaps), RowPart(rows, x, gate_x, gaps=True)]


def forward_passes(post: ExpertSeriesPosterior, table: OrderedTable, parts: Sequence[RowPart]) -> Iterator[Forward]:
    """Yield the forward pass of each draw, those of a chain side by side.

    Parameters
    ----------
    post : ExpertSeriesPosterior
    table : OrderedTable
    parts : sequence of RowPart
        Of the table, from `parts_of`.
    """
    model, order, flat, cells = post.model, table.order, post.flat(), post.target_cells(table)
    x, gate_x = (array[order.rows] for array in one_version(parts, table.n_row))
    slot, sign, _ = slots(model.depth, post.transitions)
    offset = post.flat_offset()
    n_row, n_leaf, n_gate = table.n_row, model.n_leaf, model.n_gate
    gaps, at = next((part for part in parts if part.gaps), None), np.full(n_row, -1)
    shape, ordered = (0, 0), tuple(array[:, order.rows] for array in cells)
    if gaps is not None:
        at[np.argsort(order.rows)[gaps.rows]] = np.arange(gaps.rows.size)
        shape, versions = (gaps.n_version, gaps.rows.size), gaps.spread()
        version_cells = tuple(np.ascontiguousarray(array[:, versions.rows]) for array in cells)
    evidence, base = np.empty((1, n_row, n_leaf)), np.empty((n_row, n_gate))
    version_evidence, version_base = np.empty((1, shape[0] * shape[1], n_leaf)), np.empty((shape[0] * shape[1], n_gate))
    memory_odds = np.empty((n_gate, n_leaf))
    steps = GapSteps(
        order.first,
        memory_odds,
        base,
        evidence[0],
        at,
        version_base.reshape(*shape, n_gate),
        version_evidence.reshape(*shape, n_leaf),
    )
    for d in range(flat.gate.shape[0]):
        own = Coefficients(*(array[d : d + 1] for array in flat))
        fill_evidence(model.leaves, x[None], ordered, own, evidence)
        fill_base_odds(gate_x, flat.gate[d], base)
        fill_memory_odds(slot, sign, offset[d], memory_odds)
        predicted, filtered, log_density = np.empty((n_row, n_leaf)), np.empty((n_row, n_leaf)), np.empty(n_row)
        if gaps is None:
            fill_filtered(order.first, base, memory_odds, evidence[0], predicted, filtered, log_density)
        else:
            fill_evidence(model.leaves, versions.x, version_cells, own, version_evidence)
            fill_base_odds(versions.gate_x[0], flat.gate[d], version_base)
            fill_filtered_gaps(steps, predicted, filtered, log_density)
        yield Forward(steps, predicted, filtered, log_density)


def with_history(post: ExpertSeriesPosterior, table: OrderedTable, parts: Sequence[RowPart]) -> list[RowPart]:
    """Return the parts with what the targets before each row say; see `RowPart`."""
    out = [
        part._replace(history=np.empty((post.n_chain * post.n_draw, part.rows.size, post.model.n_leaf)))
        for part in parts
    ]
    place = np.argsort(table.order.rows)
    for d, forward in enumerate(forward_passes(post, table, parts)):
        for part in out:
            assert part.history is not None
            part.history[d] = (forward.before() if part.gaps else forward.predicted)[place[part.rows]]
    return out


def weights_ahead(post: ExpertSeriesPosterior, part: RowPart, n_version: int) -> np.ndarray:
    """Return the probabilities of leaves given the targets before each row, float64 (draw * version, row, leaf)."""
    history, model, flat = part.history, post.model, post.flat()
    assert history is not None
    if not part.gaps:
        return history
    slot, sign, _ = slots(model.depth, post.transitions)
    offset = post.flat_offset()
    out = np.empty((history.shape[0] * n_version, *history.shape[1:]))
    base, memory_odds = np.empty((part.rows.size, model.n_gate)), np.empty((model.n_gate, model.n_leaf))
    for pair in range(out.shape[0]):
        d = pair // n_version
        fill_base_odds(part.gate_x[pair % part.n_version], flat.gate[d], base)
        fill_memory_odds(slot, sign, offset[d], memory_odds)
        fill_ahead(base, memory_odds, history[d], out[pair])
    return out
