"""Scopes and levels against recursion from their definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from bayesjpt.circuit.arrays import LEAF
from bayesjpt.circuit.build import build_circuit
from bayesjpt.circuit.scope import levels, scopes
from tests import examples as ex
from tests import naive, strategies


def columns_below(circuit, node):
    if circuit.kind[node] == LEAF:
        return {naive.leaf_column(circuit, circuit.leaf_of[node])}
    return set().union(*(columns_below(circuit, circuit.child[e]) for e in naive.edges_of(circuit, node)))


def longest_path(circuit, node, parents):
    return max((1 + longest_path(circuit, parent, parents) for parent in parents[node]), default=0)


@strategies.law(30)
@given(strategies.cases())
def test_scope_is_the_set_of_columns_of_the_leaves_below(case):
    found = scopes(case.circuit, case.table.n_column)
    for node in range(case.circuit.n_node):
        assert set(np.flatnonzero(found[node]).tolist()) == columns_below(case.circuit, node)


@strategies.law(30)
@given(strategies.cases())
def test_levels_hold_each_edge_once(case):
    groups = levels(case.circuit)
    every = np.concatenate([*groups, np.empty(0, int)])
    assert sorted(every.tolist()) == list(range(case.circuit.n_edge))


@strategies.law(30)
@given(strategies.cases())
def test_level_of_an_edge_is_its_parents_longest_path_from_the_root(case):
    parent = case.circuit.edge_parent()
    parents = [parent[case.circuit.child == node].tolist() for node in range(case.circuit.n_node)]
    for depth, edges in enumerate(levels(case.circuit)):
        assert {longest_path(case.circuit, node, parents) for node in parent[edges]} == {depth}


def test_circuit_of_one_leaf_has_no_levels(rng):
    table = ex.make_table((ex.REAL,), 5, rng)
    assert levels(build_circuit(ex.leaf(0, table), table)) == []
