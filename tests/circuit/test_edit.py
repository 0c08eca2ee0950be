"""Edits of circuits: what is copied, what is shared, and where weights and parameters come from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.circuit import arrays
from bayesjpt.circuit.check import check_circuit, check_samplable
from bayesjpt.circuit.edit import conditioned, constrained, marginalised
from bayesjpt.errors import EvidenceError, ModelError, QueryError
from tests import examples as ex
from tests import strategies

PLENTY = 10**6


def box(**columns):
    """Return a box: one list of intervals for each column, named c0, c1, ..."""
    return {int(name[1:]): np.array(intervals, float) for name, intervals in columns.items()}


@pytest.fixture
def table(rng):
    return ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 30, rng)


# --- fewer columns


@strategies.law(30)
@given(strategies.truncated_cases(), st.data())
def test_marginal_is_a_valid_circuit_over_the_columns_that_stay(case, data):
    n = case.table.n_column
    kept = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    edit = marginalised(case.circuit, kept, max_edges=PLENTY)
    check_circuit(edit.circuit, len(kept))
    assert edit.circuit.leaf_var.tolist() == [kept.index(c) for c in case.circuit.leaf_var[edit.leaf_from]]
    intervals = case.circuit.leaf_interval()[edit.leaf_from]
    assert edit.circuit.leaf_interval().tolist() == intervals.tolist()


@strategies.law(20)
@given(strategies.cases())
def test_parameters_of_a_marginal_are_those_of_its_leaves(case):
    edit = marginalised(case.circuit, [0], max_edges=PLENTY)
    theta = case.params.theta[edit.theta_from]
    assert edit.circuit.n_theta == theta.size == edit.circuit.theta_len.sum()
    for leaf, old in enumerate(edit.leaf_from):
        at, old_at = edit.circuit.theta_at[leaf], case.circuit.theta_at[old]
        n = edit.circuit.theta_len[leaf]
        assert theta[at : at + n].tolist() == case.params.theta[old_at : old_at + n].tolist()


def test_all_columns_in_their_order_are_the_circuit_itself(table):
    circuit = ex.two_level(table)
    assert marginalised(circuit, range(3), max_edges=PLENTY).circuit.digest() == circuit.digest()


def test_product_with_one_child_left_is_that_child(table):
    circuit = ex.mixture(table, 2, strategies.first_family)
    edit = marginalised(circuit, [1], max_edges=PLENTY)
    assert edit.circuit.kind.tolist() == [arrays.LEAF, arrays.LEAF, arrays.LATENT]


def test_edges_to_children_that_become_one_add_up(table):
    circuit = ex.mixture(table, 3, strategies.first_family)  # nodes 0 1 2 | product | 4 5 6 | product | ...
    edit = marginalised(ex.merged(circuit, 1, 5), [1], max_edges=PLENTY)
    root = edit.circuit.n_node - 1
    sizes = np.diff(edit.edge_from_ptr)[edit.circuit.child_ptr[root] : edit.circuit.child_ptr[root + 1]]
    assert sizes.tolist() == [2, 1]


# --- evidence


def test_part_without_evidence_is_shared_by_all_boxes(table):
    circuit = ex.mixture(table, 2, strategies.first_family)
    boxes = [box(c0=[[-np.inf, 0.0]]), box(c0=[[1.0, np.inf]], c1=[[0.0, 3.0]])]
    edit = conditioned(circuit, table.schema, boxes, max_edges=PLENTY)
    check_circuit(edit.circuit, 3)
    columns = edit.circuit.leaf_var
    assert [int((columns == c).sum()) for c in range(3)] == [4, 4, 2]
    assert not edit.touched[edit.circuit.leaf_node()[columns == 2]].any()
    assert np.unique(edit.circuit.child[edit.circuit.kind[edit.circuit.edge_parent()] == arrays.PRODUCT]).size == 10


def test_copies_of_a_leaf_share_its_parameters(table):
    circuit = ex.mixture(table, 2, strategies.first_family)
    edit = conditioned(circuit, table.schema, [box(c1=[[0.0, 1.0], [4.0, 5.0]])], max_edges=PLENTY)
    assert edit.circuit.n_theta == circuit.n_theta
    with pytest.raises(ModelError, match="share parameters"):
        check_samplable(edit.circuit, table.schema)


def test_several_intervals_become_members_of_the_dictionary(table):
    circuit = ex.independent(table)
    edit = conditioned(circuit, table.schema, [box(c1=[[0.0, 1.0], [4.0, 5.0]])], max_edges=PLENTY)
    old = circuit.leaf_family[circuit.leaf_var == 1]
    assert edit.circuit.leaf_family[edit.circuit.leaf_var == 1].tolist() == np.repeat(old, 2).tolist()
    assert (edit.circuit.kind == arrays.LATENT).sum() == 0


def test_several_intervals_of_a_bare_leaf_become_a_dictionary(table):
    circuit = ex.independent(table, strategies.first_family)
    edit = conditioned(circuit, table.schema, [box(c1=[[0.0, 1.0], [4.0, 5.0]])], max_edges=PLENTY)
    assert (edit.circuit.kind == arrays.LIKELIHOOD).sum() == 1
    assert edit.circuit.start_log_weight[edit.circuit.edges_of_kind(arrays.LIKELIHOOD)] == pytest.approx(np.log(0.5))


def test_cells_of_conditions_intersect(table):
    circuit = ex.independent(table, strategies.first_family)
    for intervals in ([[0.0, np.inf]], [[-np.inf, 4.0]]):
        circuit = conditioned(circuit, table.schema, [box(c0=intervals)], max_edges=PLENTY).circuit
    assert circuit.leaf_interval()[circuit.leaf_var == 0].tolist() == [[0.0, 4.0]]


def families_given(value: float, rng) -> set[str]:
    table = ex.make_table((ex.ZEROS, ex.LABEL), 30, rng)
    circuit = ex.mixture(table)
    edit = constrained(circuit, table.schema, {0: value}, max_edges=PLENTY)
    numbers = edit.circuit.leaf_family[edit.circuit.leaf_var == 0]
    return {ex.registry.FAMILIES[number].name for number in numbers}


def test_only_the_atom_has_a_say_at_an_atom(rng):
    assert families_given(2.0, rng) == {"atom"}


def test_the_atom_has_no_say_elsewhere(rng):
    assert "atom" not in families_given(2.5, rng)


def test_evidence_outside_of_every_cell_is_impossible(table):
    circuit = ex.mixture(table)
    edit = conditioned(circuit, table.schema, [box(c1=[[0.0, 2.0]])], max_edges=PLENTY)
    with pytest.raises(EvidenceError, match="probability zero"):
        conditioned(edit.circuit, table.schema, [box(c1=[[3.0, 4.0]])], max_edges=PLENTY)
    with pytest.raises(EvidenceError, match="probability zero"):
        constrained(edit.circuit, table.schema, {1: 3.0}, max_edges=PLENTY)


def test_circuit_beyond_the_cap_is_refused(table):
    with pytest.raises(QueryError, match="more than 5 edges"):
        conditioned(ex.mixture(table), table.schema, [box(c0=[[0.0, 1.0]])], max_edges=5)
