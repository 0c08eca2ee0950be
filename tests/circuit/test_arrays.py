"""What a Circuit says of itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.table.schema import Schema
from tests import examples as ex
from tests import naive, strategies


@pytest.fixture
def circuit(rng) -> Circuit:
    return ex.two_level(ex.make_table((ex.POSITIVE, ex.REAL, ex.COUNT), 20, rng))


@strategies.law(20)
@given(strategies.cases())
def test_counts_are_the_lengths_of_the_tables(case):
    c = case.circuit
    assert (c.n_node, c.n_edge, c.n_leaf, c.n_theta) == tuple(
        len(table) for table in (c.kind, c.child, c.leaf_family, c.start_theta)
    )


@strategies.law(20)
@given(strategies.cases())
def test_edge_parent_is_the_node_that_owns_the_edge(case):
    parent = case.circuit.edge_parent()
    for node in range(case.circuit.n_node):
        assert (parent[list(naive.edges_of(case.circuit, node))] == node).all()
    assert parent.dtype == np.int32


@strategies.law(20)
@given(strategies.cases())
def test_edges_of_all_kinds_are_all_edges(case):
    by_kind = [case.circuit.edges_of_kind(kind) for kind in arrays.KIND_NAMES]
    assert sorted(np.concatenate(by_kind).tolist()) == list(range(case.circuit.n_edge))


@strategies.law(20)
@given(strategies.cases())
def test_leaf_node_inverts_leaf_of(case):
    node = case.circuit.leaf_node()
    assert case.circuit.leaf_of[node].tolist() == list(range(case.circuit.n_leaf))


def test_digest_is_equal_for_equal_content(circuit):
    copy = Circuit(*(array.copy() for array in circuit))
    assert copy.digest() == circuit.digest()


@pytest.mark.parametrize("name", Circuit._fields)
def test_digest_changes_with_every_array(circuit, name, rng):
    circuit = ex.truncated(circuit, Schema((ex.POSITIVE, ex.REAL, ex.COUNT)), rng)
    array = getattr(circuit, name).copy()
    array[-1] += 1
    assert circuit._replace(**{name: array}).digest() != circuit.digest()


def test_digest_changes_with_a_dtype(circuit):
    assert circuit._replace(kind=circuit.kind.astype(np.int16)).digest() != circuit.digest()


def test_digest_changes_where_entries_move_between_arrays(circuit):
    # theta_len and const_at are neighbours: the same bytes, cut elsewhere
    moved = circuit._replace(theta_len=np.append(circuit.theta_len, circuit.const_at[0]), const_at=circuit.const_at[1:])
    assert moved.digest() != circuit.digest()


def test_repr_counts_nodes_by_kind_and_parameters(rng):
    circuit = ex.mixture(ex.make_table((ex.POSITIVE, ex.REAL), 20, rng))
    assert repr(circuit) == ("Circuit(1 latent, 2 likelihood, 0 hard, 2 product, 8 leaf; 14 parameters)")
