"""Rows of a tree divided anew: by the posterior of the default likelihoods, each row at one child of every sum."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.plan import make_plan
from bayesjpt.errors import BayesjptWarning, SamplingError
from bayesjpt.families import registry
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.structure import settle
from bayesjpt.structure.mspn import learn_mspn
from tests.structure.tables import table_of, without_cells


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


def test_rows_of_every_leaf_are_those_whose_paths_end_there(rng, monkeypatch):
    table = without_cells(
        table_of(rng.normal(size=60), rng.gamma(2.0, size=60), rng.integers(0, 3, 60), bases="rrc"), 0.1, rng
    )
    root = tree_of(60, 3, rng)
    kept = []
    drawn = Sweeper.paths
    monkeypatch.setattr(Sweeper, "paths", lambda *args: kept.append(drawn(*args)) or kept[-1])
    found = leaves_of(settle.settled(root, table, rng))
    assert [leaf[:2] for leaf in found] == [leaf[:2] for leaf in leaves_of(root)]

    circuit = build_circuit(root, table)
    plan = make_plan(circuit, table.schema)
    # leaves of a tree stand in the order of the circuit's slots, the likelihoods of a slot one behind the other
    last = circuit.leaf_of[plan.slot_node - (circuit.kind[plan.slot_node] == arrays.LIKELIHOOD)]
    slot_of = np.searchsorted(last, kept[0].leaf)
    for slot, (_, column, rows) in enumerate(found):
        seen = rows[table.observed[column, rows]]
        assert np.array_equal(seen, np.flatnonzero((kept[0].leaf[:, column] >= 0) & (slot_of[:, column] == slot)))


def test_rows_dealt_at_random_come_back_to_their_groups(rng):
    group = np.repeat([0, 1], 60)
    table = table_of(*(rng.normal(12.0 * group, 1.0) for _ in range(3)))
    root = tree_of(120, 3, rng)
    found = settle.settled(root, table, rng)
    first = next(rows for path, column, rows in leaves_of(found) if column == 1)
    assert max(group[first].mean(), 1.0 - group[first].mean()) > 0.99
    assert 50 < first.size < 70


def test_a_row_that_the_default_likelihoods_cannot_describe_is_an_error(rng, monkeypatch):
    monkeypatch.setattr(settle, "_default", lambda column: [registry.family("gamma")])
    table = table_of(np.append(rng.gamma(2.0, size=39), -1.0), rng.gamma(2.0, size=40))
    with pytest.raises(SamplingError, match="row 40 of block 'x' has probability zero"):
        settle.settled(tree_of(40, 2, rng), table, rng)


@pytest.mark.parametrize(
    ("families", "expected"), [(None, False), ({"x": ["spline"]}, False), ({"x": ["spline"], "y": ["spline"]}, True)]
)
def test_rows_move_where_splines_alone_describe_all_numbers(families, expected, rng, monkeypatch):
    calls = []
    monkeypatch.setattr("bayesjpt.structure.mspn.settled", lambda root, *_: calls.append(root) or root)
    frame = pd.DataFrame({"x": rng.normal(size=80), "y": rng.normal(size=80), "side": ["a", "b"] * 40, "year": 1998})
    with pytest.warns(BayesjptWarning, match="constant columns"):
        table = bj.as_table(frame)
    bj.fit(table, families=families, seed=1, progress=False, n_structures=1, chains=1, tune=1, draws=1)
    assert bool(calls) == expected


def test_one_state_of_a_generator_gives_one_circuit(rng):
    table = table_of(rng.normal(size=80), rng.normal(size=80))
    circuits = [
        learn_mspn(table, np.random.default_rng(4), min_rows=20, dictionary=bj.spline_dictionary) for _ in range(2)
    ]
    assert circuits[0].digest() == circuits[1].digest()
    assert {registry.FAMILIES[family].name for family in circuits[0].leaf_family} == {"spline"}
