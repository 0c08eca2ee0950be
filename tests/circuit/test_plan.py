"""What kernels take: slots, features, workspace rows, renormalisation, offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bayesjpt.circuit import arrays
from bayesjpt.circuit.build import Product, Sum, build_circuit
from bayesjpt.circuit.plan import RENORMALISE_ABOVE_LOG, make_plan
from bayesjpt.circuit.scope import scopes
from bayesjpt.families import registry
from bayesjpt.families.features import offset_and_scale
from bayesjpt.families.record import N_EXTRA_COEFFICIENTS
from tests import examples as ex
from tests import naive, strategies


def plan_of(case):
    return make_plan(case.circuit, case.table.schema)


# --- slots


@strategies.law(40)
@given(strategies.cases())
def test_slots_are_dictionaries_and_leaves_outside_them(case):
    c, plan = case.circuit, plan_of(case)
    parent_kinds = [c.kind[c.edge_parent()[c.child == node]] for node in range(c.n_node)]
    expected = [
        node
        for node in range(c.n_node)
        if c.kind[node] == arrays.LIKELIHOOD
        or (c.kind[node] == arrays.LEAF and not (parent_kinds[node] == arrays.LIKELIHOOD).any())
    ]
    assert plan.slot_node.tolist() == expected
    assert plan.slot_of_node[plan.slot_node].tolist() == list(range(len(expected)))
    assert (plan.slot_of_node >= 0).sum() == len(expected)


@strategies.law(40)
@given(strategies.cases())
def test_column_of_a_slot_is_its_scope(case):
    plan = plan_of(case)
    scope = scopes(case.circuit, case.table.n_column)
    for node, column in zip(plan.slot_node, plan.slot_column, strict=True):
        assert np.flatnonzero(scope[node]).tolist() == [column]


@strategies.law(40)
@given(strategies.cases())
def test_slots_stand_alone_below_sums_and_at_the_root(case):
    c, plan = case.circuit, plan_of(case)
    for node, alone in zip(plan.slot_node, plan.slot_alone, strict=True):
        kinds = c.kind[c.edge_parent()[c.child == node]]
        assert alone == (node == c.n_node - 1 or (kinds != arrays.PRODUCT).any())


# --- workspace


@strategies.law(40)
@given(strategies.cases())
def test_edges_of_sums_have_rows_of_their_own_in_order(case):
    c, plan = case.circuit, plan_of(case)
    of_sums = np.isin(c.kind[c.edge_parent()], arrays.SUM_KINDS)
    assert plan.edge_row[of_sums].tolist() == list(range(of_sums.sum()))
    assert (plan.edge_row[~of_sums] == -1).all()


@strategies.law(40)
@given(strategies.cases())
def test_nodes_outside_dictionaries_have_rows_of_their_own_in_order(case):
    c, plan = case.circuit, plan_of(case)
    inside = {int(c.child[e]) for e in c.edges_of_kind(arrays.LIKELIHOOD)}
    outside = [node for node in range(c.n_node) if node not in inside]
    assert plan.node_row[outside].tolist() == list(range(len(outside)))
    assert (plan.node_row >= 0).sum() == len(outside)


@strategies.law(20)
@given(strategies.cases())
def test_coefficients_and_statistics_of_leaves_do_not_overlap(case):
    c, plan = case.circuit, plan_of(case)
    assert (np.diff(plan.coef_at) >= plan.theta_len + plan.const_len + N_EXTRA_COEFFICIENTS).all()
    for leaf in range(c.n_leaf):
        n_stats = registry.FAMILIES[c.leaf_family[leaf]].n_stats(c.constants_of(leaf))
        assert plan.stat_at[leaf + 1] - plan.stat_at[leaf] == n_stats


# --- features


@strategies.law(40)
@given(strategies.cases())
def test_leaf_reads_its_column_in_its_familys_units(case):
    c, plan = case.circuit, plan_of(case)
    for leaf in range(c.n_leaf):
        column, feature = c.leaf_var[leaf], plan.leaf_value[leaf]
        family = registry.FAMILIES[c.leaf_family[leaf]]
        units = (plan.feature_offset[feature], plan.feature_scale[feature])
        assert plan.feature_column[feature] == column
        assert units == offset_and_scale(family.scaling, case.table.schema.columns[column])
        assert plan.feature_source[feature] == -1


@strategies.law(40)
@given(strategies.cases())
def test_auxiliary_of_a_leaf_is_made_from_its_value_by_a_leaf_of_its_family(case):
    c, plan = case.circuit, plan_of(case)
    for leaf in range(c.n_leaf):
        value, aux = plan.leaf_value[leaf], plan.leaf_aux[leaf]
        if registry.FAMILIES[c.leaf_family[leaf]].prepare is None:
            assert aux == value
        else:
            assert plan.feature_source[aux] == value
            assert c.leaf_family[plan.feature_leaf[aux]] == c.leaf_family[leaf]


@strategies.law(40)
@given(strategies.cases())
def test_sources_come_before_what_is_made_of_them(case):
    plan = plan_of(case)
    assert (plan.feature_source < np.arange(plan.feature_source.size)).all()


def test_families_with_the_same_units_share_a_feature(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT), 10, rng)
    circuit = ex.mixture(table, 3, ex.only("normal", "gamma", "exponential", "poisson", "geometric"))
    plan = make_plan(circuit, table.schema)
    # normal reads (x - m) / s; gamma and exponential x / s; gamma's log; counts x; poisson's log factorial
    assert plan.feature_column.tolist() == [0, 0, 0, 1, 1]
    assert plan.feature_source.tolist() == [-1, -1, 1, -1, 3]
    by_family = {naive.leaf_family(circuit, leaf): plan.leaf_value[leaf] for leaf in range(circuit.n_leaf)}
    assert by_family == {"normal": 0, "gamma": 1, "exponential": 1, "poisson": 3, "geometric": 3}


# --- columns


@pytest.fixture
def plan(rng):
    table = ex.make_table(ex.COLUMNS, 10, rng)
    return make_plan(ex.independent(table), table.schema)


def test_resolution_and_jacobian_are_those_of_real_columns_and_zero_elsewhere(plan):
    assert plan.column_resolution.tolist() == [0.1, 0.1, 0.0, 0.0, 0.0]
    assert plan.column_log_jacobian == pytest.approx([-np.log(2.0), -np.log(1.5), 0.0, 0.0, 0.0])


@strategies.law(20)
@given(strategies.cases())
def test_every_plan_has_one_compiled_type(case):
    reference = reference_plan()
    for name, array in plan_of(case)._asdict().items():
        assert array.dtype == getattr(reference, name).dtype, name
        assert array.ndim == 1
        assert array.flags.c_contiguous
        assert array.flags.writeable


def reference_plan():
    table = ex.make_table(ex.COLUMNS, 10, np.random.default_rng(0))
    return make_plan(ex.two_level(table), table.schema)


def test_plan_does_not_share_memory_with_the_circuit(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 10, rng)
    circuit = ex.mixture(table)
    plan = make_plan(circuit, table.schema)
    assert not any(np.shares_memory(array, own) for array in plan for own in circuit)


# --- renormalisation


def largest_factors(circuit, plan):
    """Return the largest logarithm that the linear factor of each node can reach under the plan's flags."""
    bound = np.zeros(circuit.n_node)
    reached = np.zeros(circuit.n_node)
    for node in range(circuit.n_node):
        edges = naive.edges_of(circuit, node)
        if circuit.kind[node] == arrays.PRODUCT:
            for e in edges:
                if plan.renormalise[e]:
                    bound[node] = 0.0
                bound[node] += bound[circuit.child[e]]
                reached[node] = max(reached[node], bound[node])
        elif circuit.kind[node] != arrays.LEAF:
            bound[node] = np.logaddexp.reduce(bound[circuit.child[edges.start : edges.stop]])
            reached[node] = bound[node]
    return reached


def wide(n_column, rng):
    columns = tuple(replace(ex.POSITIVE, name=f"x{i}") for i in range(n_column))
    return ex.make_table(columns, 3, rng)


@strategies.law(40)
@given(strategies.cases())
def test_small_circuits_are_never_renormalised(case):
    assert not plan_of(case).renormalise.any()


def test_product_of_209_dictionaries_of_three_is_not_renormalised(rng):
    table = wide(209, rng)  # 209 log 3 = 229.6
    assert not make_plan(ex.independent(table), table.schema).renormalise.any()


def test_product_of_210_dictionaries_of_three_is_renormalised_at_its_last_edge(rng):
    table = wide(210, rng)  # 210 log 3 = 230.7
    plan = make_plan(ex.independent(table), table.schema)
    assert np.flatnonzero(plan.renormalise).tolist() == [plan.child.size - 1]


def test_product_of_bare_leaves_is_never_renormalised(rng):
    table = wide(1000, rng)
    assert not make_plan(ex.independent(table, strategies.first_family), table.schema).renormalise.any()


def test_linear_factors_stay_within_the_bound_and_one_childs_own(rng):
    table = wide(1200, rng)

    def mixture_over(columns):
        products = tuple(Product(tuple(ex.leaf(column, table) for column in columns)) for _ in range(3))
        return Sum(products, (1, 1, 1))

    tree = Sum((Product((mixture_over(range(600)), mixture_over(range(600, 1200)))),), (3,))
    circuit = build_circuit(tree, table)
    plan = make_plan(circuit, table.schema)
    assert plan.renormalise.any()
    assert largest_factors(circuit, plan).max() < RENORMALISE_ABOVE_LOG + np.log(3.0)


def test_only_edges_of_products_are_flagged(rng):
    table = wide(800, rng)
    circuit = ex.mixture(table)
    plan = make_plan(circuit, table.schema)
    assert (circuit.kind[circuit.edge_parent()[plan.renormalise]] == arrays.PRODUCT).all()
