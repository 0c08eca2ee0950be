"""Rows of a tree divided anew: by the posterior of the default likelihoods, each row at one child of every sum."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.families import registry
from bayesjpt.structure import settle
from bayesjpt.structure.mspn import learn_mspn
from tests import examples as ex
from tests import naive
from tests.structure.tables import table_of, without_cells

EXACT = 1e-9


def tree_of(n_row: int, n_column: int, rng: np.random.Generator) -> Sum:
    """Return two levels of sums whose rows are dealt at random."""
    side = rng.random(n_row) < 0.5
    parts = []
    for rows in (np.flatnonzero(side), np.flatnonzero(~side)):
        deeper = rng.random(rows.size) < 0.5
        below = [rows[deeper], rows[~deeper]]
        first = Sum(tuple(ColumnLeaf(0, part) for part in below), tuple(part.size for part in below))
        parts.append(Product((first, *(ColumnLeaf(column, rows) for column in range(1, n_column)))))
    return Sum(tuple(parts), (int(side.sum()), int((~side).sum())))


def leaves_of(node, above=()):
    """Return (path, column, rows) of all leaves, ascending rows."""
    if isinstance(node, ColumnLeaf):
        return [(above, node.column, np.sort(node.rows))]
    return [leaf for k, child in enumerate(node.children) for leaf in leaves_of(child, (*above, k))]


def test_log_density_of_a_row_is_that_of_the_slow_twin(rng):
    table = ex.make_table(ex.COLUMNS, 30, rng, missing=0.2)
    for shape in (ex.mixture, ex.two_level):
        post = ex.random_posterior(shape(table), table, rng, n_draw=1)
        params = ex.Params(post.params.log_weight[0, 0], post.params.theta[0, 0])
        found = settle._log_densities(post.circuit, params, table, np.arange(table.n_row))[-1]
        jacobian = table.schema.log_jacobian() @ table.observed
        expected = naive.log_values(post.circuit, params, table, naive.family_log_density)
        assert np.abs(found + jacobian - expected).max() < EXACT


def test_rows_of_every_leaf_make_up_the_table_and_the_form_stays(rng):
    table = without_cells(
        table_of(rng.normal(size=60), rng.gamma(2.0, size=60), rng.integers(0, 3, 60), bases="rrc"), 0.1, rng
    )
    root = tree_of(60, 3, rng)
    found = settle.settled(root, table, rng)
    assert [leaf[:2] for leaf in leaves_of(found)] == [leaf[:2] for leaf in leaves_of(root)]
    for column in range(3):
        rows = np.concatenate([rows for _, own, rows in leaves_of(found) if own == column])
        assert np.array_equal(np.sort(rows), np.arange(60))
    assert sum(found.n_rows) == 60
    build_circuit(found, table)


def test_rows_dealt_at_random_come_back_to_their_groups(rng):
    group = np.repeat([0, 1], 60)
    table = table_of(*(rng.normal(12.0 * group, 1.0) for _ in range(3)))
    root = tree_of(120, 3, rng)
    found = settle.settled(root, table, rng)
    first = next(rows for path, column, rows in leaves_of(found) if column == 1)
    assert max(group[first].mean(), 1.0 - group[first].mean()) > 0.99
    assert 50 < first.size < 70


def test_blocks_of_rows_are_all_routed(rng, monkeypatch):
    monkeypatch.setattr(settle, "BLOCK_ROWS", 7)
    table = table_of(rng.normal(size=40), rng.normal(size=40))
    found = settle.settled(tree_of(40, 2, rng), table, rng)
    assert np.array_equal(np.sort(np.concatenate([r for _, c, r in leaves_of(found) if c == 1])), np.arange(40))


def test_children_are_drawn_in_proportion_to_their_weights(rng):
    log_weight = np.log([0.2, 0.0 + 1e-300, 0.5, 0.3])[:, None] + np.full(20_000, -700.0)
    share = np.bincount(settle._drawn(log_weight, rng), minlength=4) / 20_000
    assert np.abs(share - [0.2, 0.0, 0.5, 0.3]).max() < 4.0 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize(
    ("families", "expected"), [(None, False), ({"x": ["spline"]}, False), ({"x": ["spline"], "y": ["spline"]}, True)]
)
def test_rows_move_where_splines_alone_describe_all_numbers(families, expected, rng, monkeypatch):
    calls = []
    monkeypatch.setattr("bayesjpt.structure.mspn.settled", lambda root, *_: calls.append(root) or root)
    frame = pd.DataFrame({"x": rng.normal(size=80), "y": rng.normal(size=80), "side": ["a", "b"] * 40})
    bj.fit(bj.as_table(frame), families=families, seed=1, progress=False, n_structures=1, chains=1, tune=1, draws=1)
    assert bool(calls) == expected


def test_one_state_of_a_generator_gives_one_circuit(rng):
    table = table_of(rng.normal(size=80), rng.normal(size=80))
    circuits = [
        learn_mspn(table, np.random.default_rng(4), min_rows=20, dictionary=bj.spline_dictionary) for _ in range(2)
    ]
    assert circuits[0].digest() == circuits[1].digest()
    assert {registry.FAMILIES[family].name for family in circuits[0].leaf_family} == {"spline"}
