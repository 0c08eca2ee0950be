"""What learners share: growth of a tree from decisions, thread limits, argument checks."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bayesjpt.circuit.build import ColumnLeaf, Product, Sum
from bayesjpt.errors import LearnerError
from bayesjpt.structure import base
from bayesjpt.structure.base import Columns, Rows, Task
from tests.structure.tables import table_of


def task(n_row=8, n_column=4):
    return Task(np.arange(n_row), np.arange(n_column))


def halves_of_rows(item):
    middle = item.rows.size // 2
    return Rows((Task(item.rows[:middle], item.scope), Task(item.rows[middle:], item.scope)))


def halves_of_columns(item):
    middle = item.scope.size // 2
    return Columns((Task(item.rows, item.scope[:middle]), Task(item.rows, item.scope[middle:])))


def test_no_decision_makes_one_leaf_per_column():
    tree = base.grow(task(n_column=3), lambda item: None)
    assert isinstance(tree, Product)
    assert [leaf.column for leaf in tree.children] == [0, 1, 2]


def test_single_column_is_a_leaf_without_product():
    tree = base.grow(task(n_column=1), lambda item: None)
    assert isinstance(tree, ColumnLeaf)
    assert np.array_equal(tree.rows, np.arange(8))


def test_sums_of_sums_become_one_sum_with_the_counts_of_its_children():
    tree = base.grow(task(n_column=1), lambda item: halves_of_rows(item) if item.rows.size > 2 else None)
    assert isinstance(tree, Sum)
    assert tree.n_rows == (2, 2, 2, 2)
    assert [leaf.rows.tolist() for leaf in tree.children] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_products_of_products_become_one_product():
    tree = base.grow(task(), lambda item: halves_of_columns(item) if item.scope.size > 1 else None)
    assert isinstance(tree, Product)
    assert [leaf.column for leaf in tree.children] == [0, 1, 2, 3]


def test_alternating_splits_alternate_in_the_tree():
    def decide(item):
        if item.scope.size == 4:
            return halves_of_columns(item)
        return halves_of_rows(item) if item.rows.size == 8 else None

    tree = base.grow(task(), decide)
    assert [type(child) for child in tree.children] == [Sum, Sum]
    assert [type(part) for part in tree.children[0].children] == [Product, Product]


def test_tree_may_be_deeper_than_the_recursion_limit():
    def one_row_off(item):
        if item.rows.size == 1:
            return None
        return Rows((Task(item.rows[:1], item.scope), Task(item.rows[1:], item.scope)))

    tree = base.grow(task(n_row=3000, n_column=1), one_row_off)
    assert tree.n_rows == (1,) * 3000


def test_progress_rises_to_the_number_of_cells():
    calls = []
    base.grow(
        task(), lambda item: halves_of_rows(item) if item.rows.size > 2 else None, lambda *call: calls.append(call)
    )
    assert calls == [(8, 32), (16, 32), (24, 32), (32, 32)]


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_thread_holds_blas_until_the_last_context_is_closed():
    with threadpool_limits(2, user_api="blas"):
        with base.one_thread():
            other = base.one_thread()
            other.__enter__()
        assert set(blas_threads()) == {1}  # as where another thread still learns
        other.__exit__(None, None, None)
        assert set(blas_threads()) == {2}


@pytest.mark.parametrize(("value", "n_row", "expected"), [(0.1, 100, 10), (0.999, 10, 9), (0.01, 10, 1), (7, 3, 7)])
def test_rows_are_counted_or_a_share_of_the_table(value, n_row, expected):
    assert base.rows_of("min_rows", value, n_row) == expected


@pytest.mark.parametrize("value", [0, -1, 0.0, 1.0, 2.5, -0.1, np.nan, True, "0.1", None])
def test_other_numbers_of_rows_are_refused(value):
    with pytest.raises(LearnerError, match="min_rows is"):
        base.rows_of("min_rows", value, 100)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, True, "a"])
def test_number_outside_its_interval_is_refused(value):
    with pytest.raises(LearnerError, match=r"threshold is .* from 0 to 1"):
        base.check_between("threshold", value, 0.0, 1.0)


def test_number_at_the_end_of_its_interval_is_accepted():
    assert base.check_between("threshold", 1, 0.0, 1.0) == 1.0


@pytest.mark.parametrize("rng", [-1, True, np.random, np.random.RandomState(0)])
def test_anything_but_a_generator_is_refused(rng):
    with pytest.raises(LearnerError, match=r"numpy\.random\.Generator.*default_rng\("):
        base.check_input(table_of([1.0]), rng)


@pytest.mark.parametrize("rng", [7, np.int64(7), np.random.default_rng(7)])
def test_a_seed_stands_for_its_generator(rng):
    assert base.check_input(table_of([1.0]), rng).random() == np.random.default_rng(7).random()


def test_without_a_seed_the_generator_is_a_fresh_one():
    first, second = (base.check_input(table_of([1.0]), None).random() for _ in range(2))
    assert first != second


def test_a_table_without_rows_or_columns_is_refused(rng):
    with pytest.raises(LearnerError, match="0 rows and 2 columns"):
        base.check_input(table_of([], []), rng)


def test_data_that_are_not_a_table_are_refused(rng):
    with pytest.raises(LearnerError, match="ndarray"):
        base.check_input(np.zeros((3, 2)), rng)
