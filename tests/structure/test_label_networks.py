"""Networks grown in compiled code against those grown with objects; their circuits against the generic builder's."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import Node, Sum, build_circuit
from bayesjpt.circuit.check import check_circuit
from bayesjpt.circuit.networks import Network, expand
from bayesjpt.circuit.paths import Division
from bayesjpt.circuit.recognised import Recognised, recognise
from bayesjpt.circuit.trees import Tree
from bayesjpt.errors import LearnerError
from bayesjpt.families.label import label_groups
from bayesjpt.structure import cutset
from bayesjpt.structure.bins import bins_of
from bayesjpt.structure.label_networks import RANDOM, Counted, Growth, grow_network
from bayesjpt.table.table import Table
from tests.structure import naive_trees as naive
from tests.structure.test_cutset import binary

ESS = 1.0
EQUAL = 1e-9


def labels(rng: np.random.Generator, *, other: bool = False) -> Table:
    """Return columns of two labels, one of three, one of a single label."""
    frame = binary(rng, 500, 6)
    frame["colour"] = rng.choice(list("xyz"), 500)
    frame["same"] = "k"
    return bj.as_table(frame, kinds={"same": "category"}, other=other)


def grown(table: Table, **options) -> Counted:
    growth = Growth(**{"select": RANDOM, "has_trees": True, "min_rows": 80, "min_columns": 2, "ess": ESS} | options)
    return grow_network(bins_of(table)[0], growth, np.random.default_rng(3))


def by_objects(monkeypatch, table: Table, **options) -> Circuit:
    with monkeypatch.context() as patch:
        patch.setattr(cutset, "is_grown_here", lambda *_: False)
        return cutset.learn_cutset(table, np.random.default_rng(3), **options)


def as_node(network: Network, table: Table, part: int, rows: np.ndarray, fixed: tuple[int, ...] = ()) -> Node:
    """Return a network as what circuits are built from, filled with the rows that come to each part."""
    if network.split[part] < 0:
        place = slice(network.tree_ptr[part], network.tree_ptr[part + 1])
        columns = np.r_[network.column[place], sorted(fixed)].astype(int)
        return Tree(columns, np.r_[network.parent[place], np.full(len(fixed), -1)].astype(int), rows)
    column = int(network.split[part])
    groups = label_groups(table.schema.columns[column])
    sides = [rows[np.isin(table.values[column, rows], codes)] for codes in groups]
    below = network.way[network.way_ptr[part] : network.way_ptr[part + 1]].tolist()
    children = tuple(
        as_node(network, table, child, own, (*fixed, column)) for child, own in zip(below, sides, strict=True)
    )
    return Sum(children, tuple(own.size for own in sides), Division(column, groups))


def information(found: Recognised, table: Table, part: int, rows: np.ndarray) -> float:
    """Return the information of the trees of a network, below a part, in the rows that come there."""
    network, codes = found.network, bins_of(table)[0].code
    if network.split[part] >= 0:
        below = network.way[network.way_ptr[part] : network.way_ptr[part + 1]].tolist()
        x = codes[network.split[part]]
        return sum(information(found, table, child, rows[x[rows] == way]) for way, child in enumerate(below))
    place = slice(network.tree_ptr[part], network.tree_ptr[part + 1])
    columns, total = network.column[place], 0.0
    for column, parent in zip(columns, network.parent[place], strict=True):
        if parent >= 0:
            pair = (int(column), int(columns[parent]))
            counts = naive.pair_counts(*(codes[k, rows] for k in pair), *(int(network.n_group[k]) for k in pair))
            total += naive.information(counts, ESS)
    return total


GROWTHS = [
    (select, leaf, subspace)
    for select, leaf, subspace in itertools.product(cutset.SELECTS, ("chow_liu", "bernoulli"), (1.0, 0.5))
    if select != "random" or subspace == 1.0
]


@pytest.mark.parametrize(("select", "leaf", "subspace"), GROWTHS)
def test_compiled_growth_is_that_with_objects(rng, monkeypatch, select, leaf, subspace):
    table = bj.as_table(binary(rng, 600, 7), other=False)
    options = {"select": select, "leaf": leaf, "min_rows": 60, "min_columns": 2, "ess": ESS, "subspace": subspace}
    circuits = (
        cutset.learn_cutset(table, np.random.default_rng(3), **options),
        by_objects(monkeypatch, table, **options),
    )
    fast, slow = (recognise(circuit, table.schema) for circuit in circuits)
    assert fast is not None
    assert slow is not None
    assert fast.network.n_tree > 2
    for name in ("split", "way", "tree_ptr", "column"):
        np.testing.assert_array_equal(getattr(fast.network, name), getattr(slow.network, name))
    # trees of equal information may differ, since rounding decides between them (between splits, too: 1 table of 30)
    every = np.arange(table.n_row)
    assert information(fast, table, 0, every) == pytest.approx(information(slow, table, 0, every), abs=EQUAL)
    if leaf == "bernoulli":
        assert circuits[0].digest() == circuits[1].digest()


@pytest.mark.parametrize("other", [False, True])
def test_the_circuit_is_that_of_the_generic_builder(rng, other):
    table = labels(rng, other=other)
    network, count = grown(table)
    circuit = expand(network, table.schema, count, ESS).circuit
    expected = build_circuit(as_node(network, table, 0, np.arange(table.n_row)), table, ess=ESS)
    assert circuit.digest() == expected.digest()
    check_circuit(circuit, table.n_column)


@pytest.mark.parametrize("has_trees", [False, True])
def test_networks_are_recognised_in_their_circuits(rng, has_trees):
    table = labels(rng, other=True)
    network, count = grown(table, has_trees=has_trees)
    circuit, edge_of = expand(network, table.schema, count, ESS)
    found = recognise(circuit, table.schema)
    assert found is not None
    for one, two in zip(found.network, network, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(found.edge_of, edge_of)


def test_other_circuits_are_no_networks(rng):
    table = bj.as_table(binary(rng), other=False)
    circuit = bj.learn_cutset(table, rng, min_rows=200, min_columns=2)
    given = bj.Posterior.from_circuit(circuit, table.schema).condition("a = '1'")
    for other in (bj.learn_mspn(table, rng), bj.learn_tree_mixture(table, rng, n_components=2), given.circuit):
        assert recognise(other, table.schema) is None
    numbers = bj.as_table(pd.DataFrame({"x": rng.normal(size=300)}))
    assert recognise(bj.learn_cutset(numbers, rng), numbers.schema) is None


def test_a_subspace_without_columns_is_refused(rng):
    with pytest.raises(LearnerError, match="subspace is 0"):
        cutset.learn_cutset(bj.as_table(binary(rng)), rng, subspace=0.0)
