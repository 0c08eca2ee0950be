"""The learner of mixed sum-product networks: invariants of its tree, planted structure, reproducibility."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.circuit import arrays
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum
from bayesjpt.circuit.check import check_circuit
from bayesjpt.errors import LearnerError
from bayesjpt.structure import mspn
from bayesjpt.structure.dependence import dependence, hold_together
from bayesjpt.structure.features import RandomFeatures
from bayesjpt.structure.mspn import Settings, learn_mspn, mspn_tree
from bayesjpt.table.table import Table
from tests.structure.tables import table_of, without_cells

ROOT = Path(__file__).resolve().parents[2]


def tree_of(table, seed=0, *, min_rows=1, threshold=0.3, rows_first=True, max_rows=10_000):
    chosen = Settings(min_rows, threshold, rows_first, RandomFeatures(max_rows=max_rows))
    return mspn_tree(table, np.random.default_rng(seed), chosen)


def nodes_of(tree):
    """Return every node once, parents before children."""
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(getattr(node, "children", ()))
    return found


def block_of(node):
    """Return (rows, columns) of a node: those of the leaves below it."""
    leaves = [leaf for leaf in nodes_of(node) if isinstance(leaf, ColumnLeaf)]
    rows = np.unique(np.concatenate([leaf.rows for leaf in leaves]))
    return rows, frozenset(leaf.column for leaf in leaves)


def as_text(node):
    """Return a tree in writing, rows included."""
    if isinstance(node, ColumnLeaf):
        return f"{node.column}{node.rows.tolist()}"
    return f"{type(node).__name__}({' '.join(as_text(child) for child in node.children)})"


def two_groups(rng, n_row=500, n_column=8):
    """Return a table whose columns are independent within two groups of rows, and the smaller group.

    Clusters are found on ranks, so the groups are of nearly equal size and show in many columns.
    """
    group = np.arange(n_row) % 25 < 12
    columns = [np.where(group, 6.0, -6.0) + rng.standard_normal(n_row) for _ in range(n_column)]
    return table_of(*columns), group


def two_blocks(rng, n_row=2000):
    """Return a table in which columns 0, 2 hang together, and columns 1, 3, and nothing else does."""
    first, second = rng.standard_normal((2, n_row))
    noise = 0.3 * rng.standard_normal((2, n_row))
    return table_of(first, second, first + noise[0], second**2 + noise[1])


small_tables = st.lists(
    st.tuples(
        st.one_of(st.just(np.nan), st.integers(-3, 3)),
        st.one_of(st.just(np.nan), st.integers(0, 2)),
        st.one_of(st.just(np.nan), st.integers(0, 1)),
    ),
    min_size=1,
    max_size=40,
).map(lambda cells: table_of(*np.array(cells, float).T, bases="ric"))


# --- invariants of any tree


@settings(max_examples=15, deadline=None)
@given(small_tables, st.integers(1, 10), st.sampled_from([0.0, 0.3, 0.9, 1.0]), st.booleans())
def test_every_cell_of_any_table_is_in_exactly_one_leaf(table, min_rows, threshold, rows_first):
    tree = tree_of(table, min_rows=min_rows, threshold=threshold, rows_first=rows_first)
    times = np.zeros((table.n_column, table.n_row), int)
    for node in nodes_of(tree):
        if isinstance(node, ColumnLeaf):
            times[node.column, node.rows] += 1
    assert (times == 1).all()


@settings(max_examples=15, deadline=None)
@given(small_tables, st.integers(1, 10), st.sampled_from([0.0, 0.3, 0.9, 1.0]))
def test_sums_partition_rows_and_products_partition_columns(table, min_rows, threshold):
    for node in nodes_of(tree_of(table, min_rows=min_rows, threshold=threshold)):
        if isinstance(node, ColumnLeaf):
            continue
        rows, columns = block_of(node)
        parts = [block_of(child) for child in node.children]
        assert len(parts) > 1
        if isinstance(node, Sum):
            assert tuple(part.size for part, _ in parts) == node.n_rows
            assert np.array_equal(np.sort(np.concatenate([part for part, _ in parts])), rows)
            assert all(scope == columns for _, scope in parts)
        else:
            assert all(np.array_equal(part, rows) for part, _ in parts)
            assert sum(len(scope) for _, scope in parts) == len(columns)


@settings(max_examples=10, deadline=None)
@given(small_tables, st.integers(1, 5))
def test_no_node_has_a_child_of_its_own_kind(table, min_rows):
    for node in nodes_of(tree_of(table, min_rows=min_rows)):
        assert not any(type(child) is type(node) for child in getattr(node, "children", ()))


@settings(max_examples=15, deadline=None)
@given(small_tables, st.integers(1, 10))
def test_no_sub_population_of_at_most_min_rows_is_divided(table, min_rows):
    for node in nodes_of(tree_of(table, min_rows=min_rows)):
        if isinstance(node, Sum):
            assert block_of(node)[0].size > min_rows


def test_table_of_exactly_min_rows_is_not_divided(rng):
    table, _ = two_groups(rng)
    assert isinstance(tree_of(table, min_rows=500), Product)
    assert isinstance(tree_of(table, min_rows=499), Sum)


@pytest.mark.parametrize("min_rows", [50, 200])
def test_leaves_over_dependent_columns_are_at_most_min_rows(rng, min_rows):
    x = rng.standard_normal(600)
    table = table_of(x, x + 0.01 * rng.standard_normal(600))
    leaves = [
        node for node in nodes_of(tree_of(table, min_rows=min_rows, threshold=0.0)) if isinstance(node, ColumnLeaf)
    ]
    assert max(leaf.rows.size for leaf in leaves) <= min_rows


# --- planted structure


def test_two_planted_groups_of_rows_become_the_two_children_of_a_sum(rng):
    table, group = two_groups(rng)
    tree = tree_of(table, min_rows=100, threshold=0.5)
    assert isinstance(tree, Sum)
    assert tree.n_rows == (260, 240)
    assert np.array_equal(block_of(tree.children[0])[0], np.flatnonzero(~group))
    assert all(isinstance(child, Product) for child in tree.children)
    assert all(isinstance(leaf, ColumnLeaf) for child in tree.children for leaf in child.children)


def test_two_planted_blocks_of_columns_become_the_two_children_of_a_product(rng):
    tree = tree_of(two_blocks(rng), min_rows=200, rows_first=False)
    assert isinstance(tree, Product)
    assert {block_of(child)[1] for child in tree.children} == {frozenset({0, 2}), frozenset({1, 3})}
    assert all(isinstance(child, Sum) for child in tree.children)


def test_rows_first_puts_a_sum_at_the_root_of_independent_blocks(rng):
    assert isinstance(tree_of(two_blocks(rng), min_rows=200, rows_first=True), Sum)


def test_planted_blocks_are_found_with_missing_cells(rng):
    tree = tree_of(without_cells(two_blocks(rng), 0.2, rng), min_rows=200, rows_first=False)
    assert {block_of(child)[1] for child in tree.children} == {frozenset({0, 2}), frozenset({1, 3})}


def test_columns_that_hang_together_through_a_third_stay_together(rng):
    a, b = rng.standard_normal((2, 3000))
    table = table_of(a, b, a + b)
    tree = tree_of(table, min_rows=2999, rows_first=False, threshold=0.4)
    assert isinstance(tree, Sum)


def test_independent_columns_become_a_product_of_leaves(rng):
    tree = tree_of(table_of(*rng.standard_normal((5, 2000))), min_rows=100, rows_first=False)
    assert isinstance(tree, Product)
    assert [leaf.column for leaf in tree.children] == [0, 1, 2, 3, 4]
    assert all(leaf.rows.size == 2000 for leaf in tree.children)


def test_threshold_zero_never_separates_columns_before_the_last_rows(rng):
    tree = tree_of(table_of(*rng.standard_normal((3, 400))), min_rows=50, threshold=0.0, rows_first=False)
    assert isinstance(tree, Sum)
    assert all(block_of(child)[0].size <= 50 for child in tree.children)


def test_threshold_zero_keeps_columns_together_that_are_never_observed_together(rng):
    x = rng.standard_normal(100)
    even = np.arange(100) % 2 == 0
    table = table_of(np.where(even, x, np.nan), np.where(even, np.nan, x))
    assert isinstance(tree_of(table, min_rows=50, threshold=0.0, rows_first=False), Sum)
    assert isinstance(tree_of(table, min_rows=50, threshold=1e-9, rows_first=False), Product)


def test_columns_stay_together_by_default_where_chance_does_not_explain_it(rng):
    x = rng.standard_normal(5000)
    weak = 0.2 * x + rng.standard_normal(5000)  # a coefficient of .2, below ABDA's least threshold
    assert isinstance(tree_of(table_of(x, weak), min_rows=4999, rows_first=False, threshold=None), Sum)
    few = table_of(x[:150], weak[:150])
    assert dependence(few, rng)[0, 1] > 0.2
    assert isinstance(tree_of(few, min_rows=100, rows_first=False, threshold=None), Product)


def test_chance_is_that_of_the_rows_that_hold_both_columns(rng):
    x, y = rng.standard_normal((2, 2000))
    rows = np.arange(2000)
    rarely = table_of(np.where(rows < 1030, x, np.nan), np.where(rows >= 970, y, np.nan))
    assert dependence(rarely, rng)[0, 1] > 5 / np.sqrt(2000)
    assert isinstance(tree_of(rarely, min_rows=1000, rows_first=False, threshold=None), Product)


@pytest.mark.parametrize(("n_row", "least"), [(400, 25), (5000, 250)])
def test_sub_populations_end_at_25_rows_of_small_tables_and_five_percent_of_large_ones(rng, monkeypatch, n_row, least):
    told = []
    monkeypatch.setattr(mspn, "mspn_tree", lambda table, rng, settings, _: told.append(settings) or ColumnLeaf(0, rows))
    rows = np.arange(n_row)
    learn_mspn(table_of(rng.standard_normal(n_row)), rng)
    assert [settings.min_rows for settings in told] == [least]


def test_columns_found_dependent_are_not_compared_again_on_the_same_rows(rng, monkeypatch):
    compared = []
    monkeypatch.setattr(
        mspn, "hold_together", lambda white, threshold: compared.append(len(white)) or hold_together(white, threshold)
    )
    tree_of(two_blocks(rng), min_rows=1999, rows_first=False)
    assert compared == [4]


def test_subsampled_rows_find_the_same_blocks(rng):
    tree = tree_of(two_blocks(rng, 5000), min_rows=4999, rows_first=False, max_rows=1000)
    assert {block_of(child)[1] for child in tree.children} == {frozenset({0, 2}), frozenset({1, 3})}


# --- tables at the edge


def test_constant_columns_are_leaves_of_all_rows(rng):
    table, _ = two_groups(rng)
    values = np.vstack([np.full((1, 500), 7.0), table.values, np.full((1, 500), np.nan)])
    tree = tree_of(table_of(*values), min_rows=260)
    assert isinstance(tree, Product)
    leaves = [child for child in tree.children if isinstance(child, ColumnLeaf)]
    assert sorted(leaf.column for leaf in leaves) == [0, 9]
    assert isinstance(tree.children[0], Sum)


def test_rows_come_first_beside_constant_columns_too(rng):
    table = table_of(*two_blocks(rng).values, np.ones(2000))
    rows_first = tree_of(table, min_rows=200)
    assert [type(child) for child in rows_first.children] == [Sum, ColumnLeaf]
    columns_first = tree_of(table, min_rows=200, rows_first=False)
    assert [type(child) for child in columns_first.children] == [Sum, Sum, ColumnLeaf]


def test_column_with_one_observed_value_is_constant_whatever_its_filler():
    values = np.array([[1.0, 1.0, 5.0, 5.0], [1.0, 2.0, 3.0, 4.0]])
    table = Table(table_of(*values).schema, values, np.array([[True, True, False, False], [True] * 4]))
    leaves = [node for node in nodes_of(tree_of(table)) if isinstance(node, ColumnLeaf) and node.column == 0]
    assert [leaf.rows.tolist() for leaf in leaves] == [[0, 1, 2, 3]]


def test_column_constant_within_a_group_is_a_leaf_there(rng):
    table, group = two_groups(rng)
    table = table_of(*table.values, np.where(group, 1.0, rng.standard_normal(500)))
    tree = tree_of(table, min_rows=260, threshold=0.0)
    leaves = [leaf for leaf in nodes_of(tree) if isinstance(leaf, ColumnLeaf) and leaf.column == 8]
    assert any(np.array_equal(leaf.rows, np.flatnonzero(group)) for leaf in leaves)


def test_table_of_constants_is_a_product_of_leaves():
    tree = tree_of(table_of(np.ones(30), np.zeros(30), bases="ri"))
    assert [leaf.column for leaf in tree.children] == [0, 1]


def test_table_of_one_column_is_a_leaf(rng):
    assert isinstance(tree_of(table_of(rng.standard_normal(50))), ColumnLeaf)


def test_table_of_one_row_is_a_product_of_leaves():
    tree = tree_of(table_of([1.0], [2.0], [0.0], bases="ric"))
    assert [leaf.column for leaf in tree.children] == [0, 1, 2]


def test_rows_without_observed_cells_stay_in_the_table(rng):
    table, _ = two_groups(rng)
    values = np.where(np.arange(500) % 3 == 0, np.nan, table.values)
    tree = tree_of(table_of(*values), min_rows=100)
    assert block_of(tree)[0].size == 500


# --- reproducible


def test_same_generator_state_gives_the_same_tree(rng):
    table = without_cells(two_blocks(rng), 0.1, rng)
    assert as_text(tree_of(table, 3, min_rows=50)) == as_text(tree_of(table, 3, min_rows=50))


def test_another_generator_state_gives_another_tree(rng):
    table = without_cells(two_blocks(rng), 0.1, rng)
    assert as_text(tree_of(table, 3, min_rows=50)) != as_text(tree_of(table, 4, min_rows=50))


def test_learning_leaves_the_global_random_state_alone(rng):
    table, _ = two_groups(rng)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the state that must not be touched
    tree_of(table, min_rows=50)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


HASH_OF_A_TREE = """
import hashlib
import numpy as np
from tests.structure.tables import table_of, without_cells
from tests.structure.test_mspn import as_text, tree_of
rng = np.random.default_rng(1)
x = rng.standard_normal((8, 4000)) + rng.standard_normal(4000)
table = without_cells(table_of(*x), 0.05, rng)
print(hashlib.sha256(as_text(tree_of(table, min_rows=20)).encode()).hexdigest())
"""


def test_number_of_threads_does_not_matter():
    answers = []
    for n_thread in ("1", "2"):
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), n_thread)
        done = subprocess.run(
            [sys.executable, "-c", HASH_OF_A_TREE],
            cwd=ROOT,
            env=os.environ | limits | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        answers.append(done.stdout.strip())
    assert len(answers[0]) == 64
    assert answers[0] == answers[1]


# --- the circuit


def test_circuit_is_valid_and_has_the_weights_of_the_row_counts(rng):
    table, _ = two_groups(rng)
    circuit = learn_mspn(table, rng, min_rows=260)
    check_circuit(circuit, table.n_column)
    edges = circuit.edges_of_kind(arrays.LATENT)
    np.testing.assert_allclose(np.exp(circuit.start_log_weight[edges]), [261 / 502, 241 / 502])


def test_circuit_of_a_mixed_table_with_missing_cells_is_valid(rng):
    x = rng.standard_normal(800)
    table = table_of(x, rng.poisson(np.exp(x)), rng.integers(0, 3, 800), np.ones(800), bases="ricr")
    table = without_cells(table, 0.2, rng)
    circuit = learn_mspn(table, rng, min_rows=20)
    check_circuit(circuit, 4)
    assert np.unique(circuit.leaf_var).tolist() == [0, 1, 2, 3]


def test_share_and_number_of_rows_give_the_same_circuit(rng):
    table = two_blocks(rng)
    share = learn_mspn(table, np.random.default_rng(0), min_rows=0.1)
    assert share.digest() == learn_mspn(table, np.random.default_rng(0), min_rows=200).digest()


def test_dictionary_decides_the_families_of_the_leaves(rng):
    from bayesjpt.families import normal

    table, _ = two_groups(rng)
    circuit = learn_mspn(table, rng, min_rows=260, dictionary=lambda column: [normal.FAMILY])
    assert not (circuit.kind == arrays.LIKELIHOOD).any()


def test_progress_ends_with_all_cells(rng):
    calls = []
    learn_mspn(two_blocks(rng), rng, progress=lambda *call: calls.append(call))
    assert calls[-1] == (8000, 8000)
    assert calls == sorted(calls)


@pytest.mark.parametrize(
    "setting",
    [{"min_rows": 0}, {"min_rows": 1.5}, {"threshold": 1.5}, {"n_features": 0}, {"scale": -1.0}, {"max_rows": 0}],
)
def test_senseless_setting_is_refused_by_name(rng, setting):
    with pytest.raises(LearnerError, match=next(iter(setting))):
        learn_mspn(table_of([1.0, 2.0]), rng, **setting)
