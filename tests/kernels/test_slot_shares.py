"""Sub-populations told by other columns: shares equal the sum over all paths, and a row's own cell has no say."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.paths import Condition
from bayesjpt.kernels.leave_one_out import fill_likeliest_slots
from bayesjpt.kernels.path_probability import make_targets
from bayesjpt.kernels.slot_shares import fill_slot_shares
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.given import row_blocks
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive

EXACT = 1e-10


def slot_shares(post: Posterior, rows: Table, position: int) -> np.ndarray:
    """Return float64 (n_draw, n_slot, n_row), the column hidden."""
    plan, params = post.plan(), post.flat()
    targets = make_targets(plan, None, np.flatnonzero(plan.feature_column[plan.leaf_value] == position), [position])
    out = np.empty((params.theta.shape[0], targets.slot.size, rows.n_row))
    observed = rows.observed.copy()
    observed[position] = False
    for which, part, cells, n_block in row_blocks(plan, Table(rows.schema, rows.values, observed)):
        filled = np.empty((*out.shape[:2], part.n_row))
        fill_slot_shares(plan, cells, targets, params, n_block, filled)
        out[..., which] = filled
    return out


def by_paths(post: Posterior, params: Params, rows: Table, row: int, position: int) -> np.ndarray:
    """Return float64 (n_slot,): weights of all allocations by the column's slot, times densities of the other cells."""
    circuit, plan = post.circuit, post.plan()
    nodes = plan.slot_node[plan.slot_column == position].tolist()
    out = np.zeros(len(nodes))
    for edges, leaves in naive.induced_paths(circuit, np.ones(rows.n_column, bool)):
        own = [leaf for leaf in leaves if naive.leaf_column(circuit, leaf) == position]
        others = [leaf for leaf in leaves if leaf not in own and rows.observed[naive.leaf_column(circuit, leaf), row]]
        weight = naive.path_log_joint(circuit, post.schema, params, rows.values[:, row], (edges, tuple(others)))
        node = int(np.flatnonzero(circuit.leaf_of == own[0])[0])
        parents = [n for n in nodes if n == node or node in circuit.child[list(naive.edges_of(circuit, n))]]
        out[nodes.index(parents[0])] += np.exp(weight)
    return out / out.sum()


@pytest.mark.parametrize("shape", [ex.mixture, ex.two_level], ids=lambda shape: shape.__name__)
def test_shares_equal_the_sum_over_all_paths_with_the_column_hidden(shape, rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT, ex.LABEL), 8, rng, missing=0.2)
    post = ex.random_posterior(shape(table), table, rng, n_chain=1, n_draw=2)
    flat = post.flat()
    for position in range(3):
        found = slot_shares(post, table, position)
        for draw in range(2):
            params = Params(flat.log_weight[draw], flat.theta[draw])
            for row in range(table.n_row):
                expected = by_paths(post, params, table, row, position)
                assert np.abs(found[draw, :, row] - expected).max() < EXACT


def split_by(table: Table):
    """Return a circuit whose hard sum follows one column, which other columns' cells do not tell."""
    return ex.hard(table, Condition(0, float(np.median(table.values[0]))))


@pytest.mark.parametrize("shape", [ex.mixture, ex.two_level, split_by], ids=lambda shape: shape.__name__)
def test_likeliest_slots_of_all_columns_are_those_of_each_column_hidden(shape, rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT, ex.LABEL), 40, rng, missing=0.2 if shape != split_by else 0.0)
    post = ex.random_posterior(shape(table), table, rng, n_chain=1, n_draw=3)
    plan = post.plan()
    for n_rows_at_once in (table.n_row, 7):
        found = np.empty((3, 3, table.n_row), np.int32)
        for which, part, cells, n_block in row_blocks(plan, table, routed=False):
            fill_likeliest_slots(plan, cells, post.flat(), min(n_block, n_rows_at_once), found)
            assert part.n_row == table.n_row, which
        for position in range(3):
            shares = slot_shares(post, table, position)
            top = np.sort(shares, axis=1)[:, -2:]
            told = top[:, -1] - top[:, 0] > 1e-9  # the likeliest is one alone
            assert told.any()
            slots = np.flatnonzero(plan.slot_column == position)
            assert (found[:, position] == slots[shares.argmax(axis=1)])[told].all()
