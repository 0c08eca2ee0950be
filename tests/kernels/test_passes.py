"""The passes: values and flows for a batch, with weights that are shared or own, over parts of generated circuits."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.circuit.arrays import LEAF, PRODUCT, Circuit
from bayesjpt.circuit.build import Product, Sum, build_circuit
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.families import registry
from bayesjpt.kernels.best import best, best_inputs, make_parts
from bayesjpt.kernels.passes import (
    Graph,
    batch_size,
    begin_walk,
    down,
    gather_weights,
    make_graph,
    n_input,
    nodes_above,
    numbers_in,
    up,
    walk,
)
from tests import examples as ex
from tests import naive, strategies
from tests.statistics import LARGEST_Z

EXACT = 1e-12
N = 5


class Asked(NamedTuple):
    """A generated circuit, some of its columns, and a batch of leaf values and weights.

    `leaf_value` is float64 (n_leaf, n), 0 for leaves of other columns; `log_weights` float64 (n, n_edge).
    """

    circuit: Circuit
    plan: Plan
    columns: list[int]
    leaf_value: np.ndarray
    log_weights: np.ndarray


@st.composite
def asked(draw) -> Asked:
    """Draw a circuit, some columns, and values: of any size, some impossible, some entries altogether."""
    case = draw(strategies.cases())
    circuit, schema = case.circuit, case.table.schema
    rng = np.random.default_rng(draw(strategies.seeds))
    columns = sorted(draw(st.sets(st.integers(0, case.table.n_column - 1), min_size=1)))
    leaf_value = rng.normal(0.0, draw(st.sampled_from([0.1, 3.0, 2000.0])), (circuit.n_leaf, N))
    leaf_value[rng.random(leaf_value.shape) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
    leaf_value[:, -1] = -np.inf
    leaf_value[~np.isin(circuit.leaf_var, columns)] = 0.0
    weights = np.array([ex.random_params(circuit, schema, rng).log_weight for _ in range(N)])
    return Asked(circuit, make_plan(circuit, schema), columns, leaf_value, weights)


def graph_of(case: Asked) -> Graph:
    return make_graph(case.plan, nodes_above(case.plan, case.columns))


def weights_of(graph: Graph, log_weights: np.ndarray) -> np.ndarray:
    out = np.empty((graph.edge.size, log_weights.shape[0]))
    gather_weights(graph, log_weights, out)
    return out


def values(graph: Graph, plan: Plan, weight: np.ndarray, leaf_value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return m and s of all nodes."""
    m, s = np.full((2, graph.node.size, leaf_value.shape[1]), np.nan)
    m[: n_input(graph)] = leaf_value[plan.leaf_of[graph.node[: n_input(graph)]]]
    up(graph, weight, m, s)
    return m, s


def log_root(graph: Graph, plan: Plan, weight: np.ndarray, leaf_value: np.ndarray) -> np.ndarray:
    m, s = values(graph, plan, weight, leaf_value)
    with np.errstate(divide="ignore"):
        return np.where(m[-1] > -np.inf, m[-1] + np.log(s[-1]), -np.inf)


def expected_root(case: Asked, leaf_value: np.ndarray | None = None) -> np.ndarray:
    leaf_value = case.leaf_value if leaf_value is None else leaf_value
    return np.array(
        [naive.leaf_values_log_value(case.circuit, case.log_weights[i], leaf_value[:, i]) for i in range(N)]
    )


def assert_same_logs(found: np.ndarray, expected: np.ndarray) -> None:
    """Assert that logarithms of any size agree, as relative differences of large ones and of values of small ones."""
    np.testing.assert_allclose(found, expected, rtol=EXACT, atol=EXACT)


# --- up


@strategies.law(60)
@given(asked())
def test_up_is_the_recursion_of_the_definition(case):
    graph = graph_of(case)
    assert_same_logs(
        log_root(graph, case.plan, weights_of(graph, case.log_weights), case.leaf_value), expected_root(case)
    )


@strategies.law(20)
@given(asked())
def test_shared_weights_answer_as_weights_of_each_entry_that_are_equal(case):
    graph = graph_of(case)
    one = weights_of(graph, case.log_weights[:1])
    shared = values(graph, case.plan, one, case.leaf_value)
    own = values(graph, case.plan, np.repeat(one, N, axis=1), case.leaf_value)
    for found, expected in zip(shared, own, strict=True):
        np.testing.assert_array_equal(found, expected)


@strategies.law(20)
@given(asked())
def test_entry_does_not_depend_on_the_batch(case):
    graph = graph_of(case)
    weight = weights_of(graph, case.log_weights)
    together = log_root(graph, case.plan, weight, case.leaf_value)
    apart = [
        log_root(graph, case.plan, np.ascontiguousarray(weight[:, i : i + 1]), case.leaf_value[:, i : i + 1])[0]
        for i in range(N)
    ]
    assert_same_logs(together, np.array(apart))


@strategies.law(20)
@given(asked())
def test_linear_factor_is_at_least_one_where_a_value_is_possible(case):
    graph = graph_of(case)
    m, s = values(graph, case.plan, weights_of(graph, case.log_weights), case.leaf_value)
    assert not np.isnan(m).any()
    assert (s[m > -np.inf] >= 1.0 - EXACT).all()


def wide(rng, n_column: int, n_leaf: int):
    """Return the plan of a product of mixtures of many leaves of one column each: s is n_leaf^n_column."""
    table = ex.make_table(tuple(ex.named(ex.FLAG, f"c{k}") for k in range(n_column)), 5, rng)
    parts = tuple(Sum(tuple(ex.leaf(c, table) for _ in range(n_leaf)), (1,) * n_leaf) for c in range(n_column))
    circuit = build_circuit(Product(parts), table, lambda column: registry.dictionary(column)[:1])
    return make_plan(circuit, table.schema)


def test_products_of_many_equal_terms_do_not_overflow(rng):
    plan = wide(rng, 340, 10)
    graph = make_graph(plan, nodes_above(plan, range(340)))
    assert graph.fold.any()
    weight = np.full((graph.edge.size, 1), -math.log(10.0))
    m, s = values(graph, plan, weight, np.full((plan.leaf_family.size, 2), -3.0))
    assert np.isfinite(s).all()
    assert m[-1] + np.log(s[-1]) == pytest.approx([-3.0 * 340] * 2, rel=EXACT)


# --- down


@strategies.law(40)
@given(asked())
def test_flow_of_a_leaf_is_what_the_root_loses_without_it(case):
    graph = graph_of(case)
    weight = weights_of(graph, case.log_weights)
    m, s = values(graph, case.plan, weight, case.leaf_value)
    flow = np.full(m.shape, np.nan)
    root = expected_root(case)
    flow[-1] = root > -np.inf
    down(graph, weight, m, s, flow)
    for k in range(n_input(graph)):
        # the root is linear in the value of each leaf
        without = case.leaf_value.copy()
        without[case.plan.leaf_of[graph.node[k]]] = -np.inf
        rest = expected_root(case, without)
        expected = [1.0 - math.exp(a - b) if b > -np.inf else 0.0 for a, b in zip(rest, root, strict=True)]
        np.testing.assert_allclose(
            flow[k], expected, atol=1e-9 if np.abs(root[root > -np.inf]).max(initial=0.0) > 1e3 else EXACT
        )


@strategies.law(20)
@given(asked())
def test_flow_is_proportional_to_that_of_the_root(case):
    graph = graph_of(case)
    weight = weights_of(graph, case.log_weights)
    m, s = values(graph, case.plan, weight, case.leaf_value)
    one, other = np.ones(m.shape), np.full(m.shape, 0.25)
    down(graph, weight, m, s, one)
    down(graph, weight, m, s, other)
    np.testing.assert_array_equal(other, 0.25 * one)


# --- walk


def drawn_slots(plan: Plan, log_weight: np.ndarray, pairs: tuple, n: int, rng) -> np.ndarray:
    """Return how often each slot lies on n paths of the only entry, int64 (n_slot,)."""
    count = np.zeros(plan.slot_node.size, np.int64)
    stack = np.empty(plan.kind.size + 1, np.int64)
    for _ in range(n):
        depth = begin_walk(plan, stack)
        while depth > 0:
            slot, depth = walk(plan, log_weight, pairs, 0, rng, stack, depth)
            count[slot] += 1
    return count


def test_paths_take_slots_as_often_as_their_flow_says(rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 20, rng)
    circuit = ex.two_level(table)
    plan, log_weight = make_plan(circuit, table.schema), ex.start(circuit).log_weight
    graph = make_graph(plan, plan.node_row >= 0)
    for k in np.flatnonzero(~graph.is_product):
        log_weight[graph.edge[graph.child_ptr[k] : graph.child_ptr[k + 1]]] = np.log([0.3, 0.7])
    weight = weights_of(graph, log_weight[None])
    m, s = np.zeros((2, graph.node.size, 1))
    m[: n_input(graph), 0] = np.linspace(-1000.0, -999.0, n_input(graph))  # log likelihoods of a row's cells
    m[1] = -np.inf
    up(graph, weight, m, s)
    flow = np.ones(m.shape)
    down(graph, weight, m, s, flow)
    row = numbers_in(graph, plan.kind.size)
    expected, n = flow[row[plan.slot_node], 0], 4000
    assert (expected == 0.0).any()
    assert ((expected > 0.05) & (expected < 0.95)).sum() > 4
    found = drawn_slots(plan, log_weight, (m, s, row), n, rng)
    assert not found[expected == 0.0].any()
    assert (np.abs(found - n * expected) <= LARGEST_Z * np.sqrt(n * expected * (1.0 - expected)) + 1e-6).all()


# --- best


def terms_of_root(graph: Graph, weight: np.ndarray, score: np.ndarray) -> dict[frozenset[int], float]:
    """Return the possible terms of the root's polynomial: the inputs of each, and the largest log of such a term."""
    terms = [{frozenset([k]): score[k]} for k in range(n_input(graph))]
    for k, is_product in enumerate(graph.is_product):
        edges = range(graph.child_ptr[k], graph.child_ptr[k + 1])
        own: dict[frozenset[int], float] = {}
        if is_product:
            for parts in itertools.product(*(terms[graph.child[j]].items() for j in edges)):
                inputs = frozenset().union(*(part for part, _ in parts))
                own[inputs] = max(own.get(inputs, -np.inf), sum(log for _, log in parts))
        else:
            for j in edges:
                for inputs, log in terms[graph.child[j]].items():
                    own[inputs] = max(own.get(inputs, -np.inf), log + weight[j])
        terms.append(own)
    return {inputs: log for inputs, log in terms[-1].items() if log > -np.inf}


@strategies.law(15)
@given(asked())
def test_best_parts_are_the_largest_terms_of_the_polynomial(case):
    graph, k = graph_of(case), 4
    weight = weights_of(graph, case.log_weights)
    parts, first = make_parts(graph, k), n_input(graph)
    marks = np.random.default_rng(0).integers(0, 2**62, first).astype(np.uint64)
    stack, taken = np.empty((2, graph.node.size, 2), np.int64)
    for entry in range(N):
        score = case.leaf_value[case.plan.leaf_of[graph.node[:first]], entry]
        expected = terms_of_root(graph, weight[:, entry], score)
        parts.score[:first, 0], parts.mark[:first, 0], parts.length[:first] = score, marks, score > -np.inf
        best(graph, weight, entry, parts)
        n = parts.length[-1]
        largest = sorted(expected.values(), reverse=True)[:k]
        assert n == len(largest)
        assert_same_logs(parts.score[-1, :n], np.array(largest))
        for r in range(n):
            inputs = frozenset(taken[: best_inputs(graph, parts, r, stack, taken), 0].tolist())
            assert expected[inputs] == pytest.approx(parts.score[-1, r], rel=EXACT, abs=EXACT)


# --- graphs


@strategies.law(40)
@given(asked())
def test_graph_has_children_before_parents_and_inputs_first(case):
    graph = graph_of(case)
    first = n_input(graph)
    assert all(case.plan.kind[node] == LEAF for node in graph.node[:first])
    for k in range(graph.is_product.size):
        children = graph.child[graph.child_ptr[k] : graph.child_ptr[k + 1]]
        assert (children < first + k).all()
        assert graph.is_product[k] == (case.plan.kind[graph.node[first + k]] == PRODUCT)


@strategies.law(20)
@given(asked())
def test_graph_has_every_leaf_of_its_columns_once(case):
    graph = graph_of(case)
    leaf = case.plan.leaf_of[graph.node[: n_input(graph)]]
    assert sorted(leaf.tolist()) == np.flatnonzero(np.isin(case.circuit.leaf_var, case.columns)).tolist()


def test_siblings_of_what_is_inside_have_value_one(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 10, rng)
    circuit = ex.mixture(table, 3, dictionary=lambda column: registry.dictionary(column)[:1])
    plan = make_plan(circuit, table.schema)
    inside = np.zeros(circuit.n_node, bool)
    inside[[0, 2, circuit.n_node - 1]] = True  # a leaf, the product above it and the root
    graph = make_graph(plan, inside)
    assert graph.node.tolist() == [0, 5, 8, 2, 9]  # the other products are certain
    m, s = np.zeros((2, graph.node.size, 1))
    m[0] = math.log(0.2)
    up(graph, np.log([[1.0], [0.5], [0.25], [0.25]]), m, s)
    assert (s[-1] * np.exp(m[-1])).tolist() == pytest.approx([0.6], rel=EXACT)


def test_graph_without_columns_has_no_node(rng):
    plan = make_plan(
        ex.mixture(ex.make_table((ex.REAL, ex.COUNT), 10, rng)),
        ex.make_table((ex.REAL, ex.COUNT), 10, rng).schema,
    )
    assert make_graph(plan, nodes_above(plan, [])).node.size == 0


def test_batches_are_no_larger_than_what_there_is():
    assert batch_size(10, 7) == 7
    assert batch_size(10**9, 1000) == batch_size(10**12, 1000) > 1
    assert batch_size(0, 0) == 1
