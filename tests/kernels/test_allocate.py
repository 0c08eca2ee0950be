"""Allocations: counts and statistics of the slow twin that replays the same uniform numbers row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.circuit import arrays
from bayesjpt.numerics import counter_rng
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, strategies
from tests.kernels import runs

SUMS = 1e-12  # relative, of sums in another order
KEY = 20260101
MODES = list(runs.MODES)


def twin(case, key=KEY, score=naive.family_log_density):
    return naive.allocate(case.circuit, case.params, case.table, np.uint64(key), score)


def assert_same_allocation(found, expected):
    assert found.edge_count.tolist() == expected.edge_count.tolist()
    np.testing.assert_allclose(found.stats, expected.stats, rtol=SUMS, atol=SUMS)


def made(columns, n_row, rng, missing=0.0, shape=ex.two_level, dictionary=None) -> strategies.Case:
    """Return a case over some columns."""
    table = ex.make_table(columns, n_row, rng, missing)
    circuit = shape(table) if dictionary is None else shape(table, dictionary=dictionary)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


@pytest.fixture
def case(rng) -> strategies.Case:
    """Return 300 rows of every base with missing cells, under a circuit of two levels."""
    return made(ex.COLUMNS, 300, rng, missing=0.3)


# --- the slow twin


@strategies.law(60)
@given(strategies.cases(), st.sampled_from(MODES), st.integers(0, 2**63 - 1))
def test_counts_and_statistics_are_those_of_the_slow_twin(case, mode, key):
    found = runs.allocate(runs.prepare(case.circuit, case.table, mode), case.params, key)
    assert_same_allocation(found, twin(case, key))


@pytest.mark.parametrize("mode", MODES)
def test_counts_and_statistics_of_many_rows_are_those_of_the_slow_twin(case, mode):
    assert_same_allocation(runs.allocate(runs.prepare(case.circuit, case.table, mode), case.params, KEY), twin(case))


@pytest.mark.parametrize("mode", MODES)
def test_log_likelihood_is_the_sum_of_log_densities(case, mode):
    run = runs.prepare(case.circuit, case.table, mode)
    found = runs.allocate(run, case.params, KEY).log_likelihood
    assert found == pytest.approx(runs.log_scores(run, case.params).sum(), rel=SUMS)
    assert found + runs.log_jacobian(case.table).sum() == pytest.approx(twin(case).log_likelihood, rel=SUMS)


def test_no_row_of_a_plausible_table_is_impossible(case):
    assert runs.allocate(runs.prepare(case.circuit, case.table), case.params, KEY).impossible == -1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_leaf", [2, 3, 4])
def test_leaf_shared_by_two_sums_gets_the_rows_of_both(n_leaf, mode, rng):
    for position in range(n_leaf):
        case = made(
            (ex.REAL, ex.COUNT), 200, rng, 0.2, shape=lambda table, at=position: ex.shared_leaf(table, n_leaf, at)
        )
        assert (case.circuit.child == 1 + position).sum() == 2
        found = runs.allocate(runs.prepare(case.circuit, case.table, mode), case.params, KEY)
        assert_same_allocation(found, twin(case))


def test_same_key_gives_the_same_allocation(case):
    run = runs.prepare(case.circuit, case.table, "mixed")
    first, second = (runs.allocate(run, case.params, KEY) for _ in range(2))
    assert first.edge_count.tolist() == second.edge_count.tolist()
    assert first.stats.tolist() == second.stats.tolist()


def test_another_key_gives_another_allocation(case):
    run = runs.prepare(case.circuit, case.table)
    counts = {tuple(runs.allocate(run, case.params, key).edge_count) for key in range(5)}
    assert len(counts) == 5


# --- by the weights alone


@pytest.mark.parametrize("mode", MODES)
def test_flat_allocation_chooses_by_the_weights_alone(case, mode):
    found = runs.allocate(runs.prepare(case.circuit, case.table, mode), case.params, KEY, by_prior=True)
    assert_same_allocation(found, twin(case, score=naive.flat))


def test_flat_allocation_does_not_depend_on_the_data(case, rng):
    other = ex.make_table(ex.COLUMNS, case.table.n_row, rng)
    other = Table(other.schema, other.values, case.table.observed)
    counts = [
        runs.allocate(runs.prepare(case.circuit, table), case.params, KEY, by_prior=True).edge_count.tolist()
        for table in (case.table, other)
    ]
    assert counts[0] == counts[1]


# --- who is counted


def edges_by_child_scope(case, kind):
    """Return {node: edges} of the sums of one kind."""
    circuit = case.circuit
    return {node: naive.edges_of(circuit, node) for node in np.flatnonzero(circuit.kind == kind)}


def slot_column(circuit, node):
    """Return the column of a dictionary."""
    return naive.leaf_column(circuit, circuit.leaf_of[circuit.child[circuit.child_ptr[node]]])


def test_every_row_with_an_observed_cell_takes_one_edge_at_the_root(case):
    found = runs.allocate(runs.prepare(case.circuit, case.table), case.params, KEY)
    root_edges = naive.edges_of(case.circuit, case.circuit.n_node - 1)
    assert found.edge_count[list(root_edges)].sum() == case.table.observed.any(axis=0).sum()


def test_rows_do_not_visit_a_sum_whose_scope_is_missing(rng):
    case = made((ex.REAL, ex.POSITIVE, ex.COUNT), 200, rng)
    observed = case.table.observed.copy()
    observed[1:, :150] = False  # of the inner sums' scope, the last 50 rows alone see something
    table = Table(case.table.schema, case.table.values, observed)
    found = runs.allocate(runs.prepare(case.circuit, table), case.params, KEY)
    root = case.circuit.n_node - 1
    inner = [edges for node, edges in edges_by_child_scope(case, arrays.LATENT).items() if node != root]
    assert sum(int(found.edge_count[list(edges)].sum()) for edges in inner) == 50


@pytest.mark.parametrize("mode", MODES)
def test_likelihoods_of_missing_cells_are_not_chosen(case, mode):
    found = runs.allocate(runs.prepare(case.circuit, case.table, mode), case.params, KEY)
    chosen = np.zeros(case.table.n_column, int)
    for node, edges in edges_by_child_scope(case, arrays.LIKELIHOOD).items():
        chosen[slot_column(case.circuit, node)] += found.edge_count[list(edges)].sum()
    expected = case.table.observed.sum(axis=1)
    has_dictionary = chosen > 0
    assert has_dictionary.tolist() == [False, True, True, True, False]  # reals and labels have one likelihood
    assert chosen[has_dictionary].tolist() == expected[has_dictionary].tolist()


@pytest.mark.parametrize("mode", MODES)
def test_a_wholly_missing_table_counts_nothing(case, mode):
    nothing = Table(case.table.schema, case.table.values, np.zeros_like(case.table.observed))
    found = runs.allocate(runs.prepare(case.circuit, nothing, mode), case.params, KEY)
    assert not found.edge_count.any()
    assert not found.stats.any()
    assert found.log_likelihood == 0.0


def test_edges_of_products_are_not_counted(case):
    found = runs.allocate(runs.prepare(case.circuit, case.table), case.params, KEY)
    assert not found.edge_count[case.circuit.edges_of_kind(arrays.PRODUCT)].any()


def test_statistics_of_a_normal_leaf_count_the_rows_that_reach_it(rng):
    case = made((ex.REAL,), 100, rng, missing=0.2, shape=ex.mixture, dictionary=ex.only("normal"))
    found = runs.allocate(runs.prepare(case.circuit, case.table), case.params, KEY)
    assert found.stats.reshape(2, 3)[:, 0].tolist() == found.edge_count.tolist()


@pytest.mark.parametrize("n_component", [2, 3, 4, 6])
def test_component_of_weight_zero_is_never_chosen(n_component, rng):
    case = made((ex.REAL, ex.COUNT), 3000, rng, shape=lambda table: ex.mixture(table, n_component))
    edges = list(naive.edges_of(case.circuit, case.circuit.n_node - 1))
    for empty in edges:
        log_weight = case.params.log_weight.copy()
        log_weight[empty] = -np.inf
        found = runs.allocate(runs.prepare(case.circuit, case.table), case.params._replace(log_weight=log_weight), KEY)
        assert found.edge_count[empty] == 0
        assert found.edge_count[edges].sum() == case.table.n_row


# --- mistakes that the comparison must catch


def catches(case, key=KEY) -> bool:
    """Return whether the comparison with the (mutilated) twin fails."""
    found = runs.allocate(runs.prepare(case.circuit, case.table, "mixed"), case.params, key)
    try:
        assert_same_allocation(found, twin(case, key))
    except AssertionError:
        return True
    return False


def test_counting_rows_that_do_not_visit_is_caught(case, monkeypatch):
    assert not catches(case)
    monkeypatch.setattr(naive, "has_observed", lambda *_: True)
    assert catches(case)


def test_one_uniform_number_for_all_nodes_is_caught(case, monkeypatch):
    monkeypatch.setattr(naive, "uniform", lambda key, row, node: counter_rng.uniform(key, row, np.uint64(0)))
    assert catches(case)


def test_choosing_without_the_weights_is_caught(case):
    unweighted = case._replace(params=case.params._replace(log_weight=np.zeros_like(case.params.log_weight)))
    found = runs.allocate(runs.prepare(case.circuit, case.table), case.params, KEY)
    assert found.edge_count.tolist() != twin(unweighted).edge_count.tolist()
