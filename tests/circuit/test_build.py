"""From a learner's tree to frozen arrays, and the starting values that come with them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given

import bayesjpt as bj
from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, start_params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit, freeze
from bayesjpt.circuit.paths import Condition
from bayesjpt.errors import CircuitError
from bayesjpt.families import registry
from bayesjpt.families.features import initial_theta
from tests import examples as ex
from tests import naive, strategies

DTYPES = {
    "kind": np.int8,
    "child_ptr": np.int32,
    "child": np.int32,
    "leaf_of": np.int32,
    "leaf_family": np.int16,
    "leaf_var": np.int32,
    "leaf_cell": np.int32,
    "cell": np.float64,
    "theta_at": np.int32,
    "theta_len": np.int32,
    "const_at": np.int32,
    "const_len": np.int32,
    "const": np.float64,
    "start_log_weight": np.float64,
    "start_theta": np.float64,
}


@pytest.fixture
def table(rng):
    return ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT), 40, rng, missing=0.2)


@pytest.fixture
def positive(table):
    """Return the positive column alone."""
    return ex.part(table, 1)


def theta_of(circuit, leaf):
    return circuit.start_theta[circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]]


# --- arrays


@strategies.law(40)
@given(strategies.cases())
def test_children_come_before_parents_and_the_root_last(case):
    parent = case.circuit.edge_parent()
    assert (case.circuit.child < parent).all()
    assert set(range(case.circuit.n_node)) - set(case.circuit.child.tolist()) == {case.circuit.n_node - 1}


@strategies.law(20)
@given(strategies.cases())
def test_arrays_are_contiguous_read_only_and_of_fixed_dtypes(case):
    assert case.circuit._fields == tuple(DTYPES)
    for name, array in case.circuit._asdict().items():
        assert array.dtype == DTYPES[name]
        assert array.flags.c_contiguous
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_tree_becomes_nodes_in_the_order_of_a_walk_children_first(table):
    rows = np.arange(table.n_row)
    tree = Sum((ColumnLeaf(0, rows), ColumnLeaf(0, rows[:10])), (30, 10))
    few = ex.only("normal", "gamma", "exponential", "poisson", "geometric")
    circuit = build_circuit(Product((tree, ColumnLeaf(2, rows), ColumnLeaf(1, rows))), table, few)
    normal_and_normal = [arrays.LEAF, arrays.LEAF, arrays.LATENT]
    count = [arrays.LEAF, arrays.LEAF, arrays.LIKELIHOOD]
    positive = [arrays.LEAF, arrays.LEAF, arrays.LEAF, arrays.LIKELIHOOD]
    assert circuit.kind.tolist() == [*normal_and_normal, *count, *positive, arrays.PRODUCT]
    assert circuit.child.tolist() == [0, 1, 3, 4, 6, 7, 8, 2, 5, 9]
    assert circuit.leaf_var.tolist() == [0, 0, 2, 2, 1, 1, 1]


def test_dictionary_of_one_member_is_a_bare_leaf(positive):
    circuit = build_circuit(ex.leaf(0, positive), positive, strategies.first_family)
    assert circuit.kind.tolist() == [arrays.LEAF]
    assert circuit.n_edge == 0


def test_dictionary_of_several_members_is_a_likelihood_sum(positive):
    circuit = build_circuit(ex.leaf(0, positive), positive)
    assert circuit.kind.tolist() == [arrays.LEAF] * 3 + [arrays.LIKELIHOOD]
    assert [naive.leaf_family(circuit, leaf) for leaf in range(3)] == ["normal", "gamma", "exponential"]


def test_dictionary_is_that_of_the_registry_unless_given(rng):
    table = ex.make_table((ex.LEVELS,), 20, rng)
    circuit = build_circuit(ex.leaf(0, table), table)
    assert [naive.leaf_family(circuit, leaf) for leaf in range(circuit.n_leaf)] == [
        family.name for family in registry.dictionary(ex.LEVELS)
    ]


def test_leaves_of_one_column_and_family_share_their_constants(table):
    circuit = ex.mixture(table, 3)
    places = {}
    for leaf in range(circuit.n_leaf):
        key = (naive.leaf_column(circuit, leaf), naive.leaf_family(circuit, leaf))
        places.setdefault(key, set()).add((int(circuit.const_at[leaf]), int(circuit.const_len[leaf])))
    assert all(len(place) == 1 for place in places.values())
    assert circuit.const.size == sum(length for ((_, length),) in places.values())


def test_constants_are_those_of_the_family_for_the_column(table):
    circuit = ex.mixture(table, 2)
    for leaf in range(circuit.n_leaf):
        family = registry.FAMILIES[circuit.leaf_family[leaf]]
        found = circuit.const[circuit.const_at[leaf] : circuit.const_at[leaf] + circuit.const_len[leaf]]
        assert found.tolist() == family.constants(table.schema.columns[circuit.leaf_var[leaf]]).tolist()


@strategies.law(20)
@given(strategies.cases())
def test_parameters_of_leaves_lie_one_after_the_other(case):
    c = case.circuit
    assert c.theta_at.tolist() == (np.cumsum(c.theta_len) - c.theta_len).tolist()
    assert c.n_theta == c.theta_len.sum()


def test_tree_deeper_than_the_recursion_limit_is_built(rng):
    table = ex.make_table((ex.COUNT,), 5, rng)
    node = ex.leaf(0, table)
    for _ in range(2000):
        node = Sum((node, ex.leaf(0, table)), (3, 2))
    circuit = build_circuit(node, table, strategies.first_family)
    assert (circuit.kind == arrays.LATENT).sum() == 2000


# --- starting values


def test_start_weights_of_a_sum_are_shares_of_rows_with_one_added_to_each(positive):
    rows = np.arange(40)
    tree = Sum((ColumnLeaf(0, rows[:7]), ColumnLeaf(0, rows[7:])), (7, 33))
    circuit = build_circuit(tree, positive, strategies.first_family)
    np.testing.assert_allclose(np.exp(circuit.start_log_weight), [8 / 42, 34 / 42], rtol=1e-15)


def test_start_weights_of_a_dictionary_are_equal(positive):
    circuit = build_circuit(ex.leaf(0, positive), positive)
    np.testing.assert_allclose(np.exp(circuit.start_log_weight), [1 / 3] * 3, rtol=1e-15)


def test_start_weights_of_a_product_are_one(table):
    circuit = ex.independent(table)
    assert not circuit.start_log_weight[circuit.edges_of_kind(arrays.PRODUCT)].any()


def test_start_parameters_are_estimated_from_the_observed_cells_of_the_leafs_rows(table):
    rows = np.array([1, 4, 5, 8, 20, 33])
    circuit = build_circuit(Product(tuple(ColumnLeaf(column, rows) for column in range(3))), table)
    for leaf in range(circuit.n_leaf):
        column, family = circuit.leaf_var[leaf], registry.FAMILIES[circuit.leaf_family[leaf]]
        cells = table.values[column, rows[table.observed[column, rows]]]
        expected = initial_theta(family, table.schema.columns[column], cells)
        assert theta_of(circuit, leaf).tolist() == expected.tolist()


def test_leaf_without_observed_cells_starts_at_finite_parameters(rng):
    table = ex.make_table(ex.COLUMNS, 10, rng, missing=1.0)
    assert np.isfinite(ex.independent(table).start_theta).all()


def test_start_params_are_the_circuits_own(table):
    circuit = ex.mixture(table)
    params = start_params(circuit)
    assert params.log_weight is circuit.start_log_weight
    assert params.theta is circuit.start_theta


# --- refusals


def test_empty_dictionary_is_refused_naming_the_column(table):
    with pytest.raises(CircuitError, match="column 'positive' has an empty likelihood dictionary"):
        build_circuit(ex.leaf(1, table), table, lambda column: ())


@pytest.mark.parametrize(
    ("dictionary", "found"),
    [
        (3, "dictionary=3"),
        (lambda column: None, "a dictionary that returns None for column 'positive'"),
        (lambda column: "normal", "a dictionary that returns 'normal'"),
        (lambda column: ["normal"], "'normal' in the dictionary of column 'positive'"),
    ],
    ids=["a number", "nothing", "a text", "a name"],
)
def test_dictionary_that_returns_no_families_is_refused(table, dictionary, found):
    with pytest.raises(CircuitError, match=f"{re.escape(found)}.*; expected a function of a column that returns"):
        build_circuit(ex.leaf(1, table), table, dictionary)
    with pytest.raises(CircuitError, match="expected a function of a column that returns"):
        bj.learn_mspn(table, 1, dictionary=dictionary)


def test_tree_that_is_no_circuit_is_refused(table):
    with pytest.raises(CircuitError, match="children with a column in common"):
        build_circuit(Product(tuple(ex.leaf(column, table) for column in (0, 1, 2, 0))), table)


def test_tree_over_some_columns_is_refused(table):
    with pytest.raises(CircuitError, match="does not cover column 2"):
        build_circuit(Product((ex.leaf(0, table), ex.leaf(1, table))), table)


# --- freezing


def test_frozen_copy_of_strided_arrays_is_contiguous(table):
    circuit = ex.mixture(table)
    strided = Circuit(*(np.repeat(array, 2)[::2] for array in circuit))
    frozen = freeze(strided)
    for made, original in zip(frozen, circuit, strict=True):
        assert made.flags.c_contiguous
        assert not made.flags.writeable
        assert made.tolist() == original.tolist()


# --- objects that stand at several places


def test_an_object_that_stands_at_several_places_is_one_node(table):
    rows = np.arange(table.n_row)
    ways = tuple(Product((ColumnLeaf(0, rows), ColumnLeaf(1, rows))) for _ in range(2))
    sums = [Sum(ways, (10, 30), weights=weights) for weights in ((0.25, 0.75), (0.5, 0.5))]
    parts = tuple(Product((one, ColumnLeaf(2, rows))) for one in sums)
    circuit = build_circuit(Sum(parts, (10, 30)), table, ex.only("normal", "poisson"))
    latent = np.flatnonzero(circuit.kind == arrays.LATENT)
    children = [circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]].tolist() for node in latent]
    assert children[0] == children[1] != children[2]
    assert circuit.n_leaf == 2 * 2 + 2
    weights = np.exp(circuit.start_log_weight[circuit.edges_of_kind(arrays.LATENT)])
    np.testing.assert_allclose(weights, [0.25, 0.75, 0.5, 0.5, 11 / 42, 31 / 42])


def test_an_object_below_both_sides_of_a_split_is_a_node_on_each(table):
    rows = np.arange(table.n_row)
    below = Product(tuple(ColumnLeaf(column, rows) for column in range(3)))
    threshold = float(np.median(table.values[0, table.observed[0]]))
    one, other = Product((below,)), Product((below,))
    root = Sum((one, other), (20, 20), Condition(0, threshold))
    circuit = build_circuit(root, table, ex.only("normal", "poisson"))
    assert circuit.n_leaf == 6
    assert (np.diff(np.sort(circuit.leaf_cell[circuit.leaf_var == 0])) == 1).all()
