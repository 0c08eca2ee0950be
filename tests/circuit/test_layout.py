"""Named variables and flat arrays: each entry in one place, there and back, with labels of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import Product, build_circuit
from bayesjpt.circuit.layout import LIKELIHOOD_WEIGHTS, SUM_WEIGHTS, make_layout
from bayesjpt.families import registry
from tests import examples as ex
from tests import strategies

ROUNDING = 1e-14  # of a logarithm of an exponential


def layout_of(case):
    return make_layout(case.circuit, case.table.schema)


@pytest.fixture
def case(rng) -> strategies.Case:
    table = ex.make_table((ex.POSITIVE, ex.LABEL), 20, rng)
    circuit = ex.mixture(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


# --- there and back


@strategies.law(30)
@given(strategies.cases())
def test_join_inverts_split(case):
    layout = layout_of(case)
    joined = layout.join(case.circuit, layout.split(case.params))
    np.testing.assert_allclose(joined.log_weight, case.params.log_weight, rtol=ROUNDING, atol=ROUNDING)
    assert joined.theta.tolist() == case.params.theta.tolist()


@strategies.law(20)
@given(strategies.cases())
def test_join_inverts_split_over_leading_axes(case):
    layout = layout_of(case)
    many = Params(*(np.broadcast_to(part, (2, 3, part.size)) for part in case.params))
    joined = layout.join(case.circuit, layout.split(many))
    assert joined.log_weight.shape == (2, 3, case.circuit.n_edge)
    assert joined.theta.tolist() == many.theta.tolist()
    np.testing.assert_allclose(joined.log_weight, many.log_weight, rtol=ROUNDING, atol=ROUNDING)


@strategies.law(20)
@given(strategies.cases())
def test_split_gives_weights_as_probabilities(case):
    layout = layout_of(case)
    values = layout.split(case.params)
    for variable in layout.weights:
        totals = np.add.reduceat(values[variable.name], variable.ptr[:-1])
        np.testing.assert_allclose(totals, 1.0, rtol=1e-13)


# --- each entry in one place


@strategies.law(30)
@given(strategies.cases())
def test_weight_variables_hold_each_edge_of_a_sum_once(case):
    edges = np.concatenate([*(variable.edges for variable in layout_of(case).weights), np.empty(0, int)])
    of_sums = np.isin(case.circuit.kind[case.circuit.edge_parent()], arrays.SUM_KINDS)
    assert sorted(edges.tolist()) == np.flatnonzero(of_sums).tolist()


@strategies.law(30)
@given(strategies.cases())
def test_parameter_variables_hold_each_parameter_once(case):
    positions = np.concatenate([variable.positions for variable in layout_of(case).parameters])
    assert sorted(positions.tolist()) == list(range(case.circuit.n_theta))


@strategies.law(30)
@given(strategies.cases())
def test_segments_of_weights_are_the_edges_of_one_sum(case):
    parent = case.circuit.edge_parent()
    for variable in layout_of(case).weights:
        for lo, hi in zip(variable.ptr[:-1], variable.ptr[1:], strict=True):
            nodes = set(parent[variable.edges[lo:hi]].tolist())
            assert len(nodes) == 1
            assert np.diff(case.circuit.child_ptr)[nodes.pop()] == hi - lo


@strategies.law(30)
@given(strategies.cases())
def test_segments_of_parameters_lie_within_one_leaf(case):
    c = case.circuit
    for variable in layout_of(case).parameters:
        assert len(variable.ptr) == variable.leaves.size + 1
        for leaf, lo, hi in zip(variable.leaves, variable.ptr[:-1], variable.ptr[1:], strict=True):
            place = variable.positions[lo:hi] - c.theta_at[leaf]
            assert ((place >= 0) & (place < c.theta_len[leaf])).all()
            assert registry.FAMILIES[c.leaf_family[leaf]].name == registry.FAMILIES[variable.family].name


def test_circuit_without_sums_has_no_weights(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 5, rng)
    assert make_layout(ex.independent(table), table.schema).weights == ()


# --- labels


@strategies.law(40)
@given(strategies.cases(dictionaries=strategies.NAMED))
def test_labels_of_a_dimension_are_unique_and_one_an_entry(case):
    layout = layout_of(case)
    for variable in (*layout.weights, *layout.parameters):
        assert len(set(variable.labels)) == len(variable.labels) == variable.ptr[-1]


def test_leaves_below_a_structure_sum_are_named_by_their_slots(rng):
    table = ex.make_table((ex.REAL,), 10, rng)
    layout = make_layout(ex.mixture(table, 3), table.schema)
    assert layout.dims()["edge"] == ("S3->real[0]", "S3->real[1]", "S3->real[2]")


def test_labels_name_sums_products_slots_and_likelihoods(case):
    dims = layout_of(case).dims()
    assert dims["edge"] == ("S12->P5", "S12->P11")
    assert dims["likelihood_edge"] == tuple(
        f"positive[{slot}]:{name}" for slot in (0, 1) for name in ("normal", "gamma", "exponential")
    )
    assert dims["gamma_leaf"] == ("positive[0]", "positive[1]")
    assert dims["categorical_leaf"] == tuple(
        f"label[{slot}]={name}" for slot in (0, 1) for name in ("a", "b", "c", "other")
    )


def test_names_are_one_a_kind_and_one_a_parameter(case):
    assert layout_of(case).names() == (
        SUM_WEIGHTS,
        LIKELIHOOD_WEIGHTS,
        "normal_variance",
        "normal_mu",
        "gamma_shape",
        "gamma_rate",
        "exponential_rate",
        "categorical_probability",
    )


def test_labels_of_large_levels_are_unique(rng):
    column = replace(ex.LEVELS, levels=(1234567.0, 1234568.0), frequencies=(0.5, 0.5))
    table = ex.make_table((column,), 10, rng)
    layout = make_layout(ex.independent(table, ex.only("categorical")), table.schema)
    assert layout.parameters[0].labels == ("levels[0]=1234567", "levels[0]=1234568")


@pytest.mark.parametrize("label", ["other", "(other)", "<other>"])
def test_label_that_reads_other_is_told_from_the_other_labels(label, rng):
    column = replace(ex.LABEL, labels=("a", label, "c"))
    table = ex.make_table((column,), 10, rng)
    labels = make_layout(ex.independent(table), table.schema).parameters[0].labels
    assert len(set(labels)) == 4


def test_columns_named_like_nodes_do_not_clash(rng):
    columns = tuple(replace(ex.REAL, name=name) for name in ("S2", "P2", "S2[0]"))
    table = ex.make_table(columns, 5, rng)
    tree = Product(tuple(ex.leaf(column, table) for column in range(3)))
    labels = make_layout(build_circuit(tree, table), table.schema).parameters[0].labels
    assert labels == ("S2[0]", "P2[0]", "S2[0][0]")
