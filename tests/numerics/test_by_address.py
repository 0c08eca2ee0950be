"""Tuples that kernels get by one address: every array is where compiled code looks for it."""

from __future__ import annotations

import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import cloudpickle
import numpy as np
import pytest

from bayesjpt.numerics.borrowed import borrowed, by_address, keep
from bayesjpt.numerics.jit import kernel


@by_address
class Few(NamedTuple):
    """Some arrays."""

    flags: np.ndarray
    table: np.ndarray


@by_address
class Nested(NamedTuple):
    """Few and one more."""

    few: Few
    numbers: np.ndarray


@kernel
def _read(nested, i, j):
    return (
        nested.few.table[i, j],
        nested.few.flags.sum(),
        nested.numbers[i],
        nested.few.table.shape,
        nested.numbers.size,
    )


@kernel
def _double(few):
    for i in range(few.table.shape[0]):
        few.table[i] *= 2.0


def test_threads_that_ask_at_once_get_one_address():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(100):
                own = Nested(few(), np.arange(3))
                barrier = threading.Barrier(8)
                found = set(pool.map(lambda _, own=own, barrier=barrier: (barrier.wait(), own.address)[1], range(8)))
                assert found == {vars(own)["_words"].ctypes.data}
    finally:
        sys.setswitchinterval(interval)


@kernel
def _made(n):
    made = Few(np.ones(n, np.bool_), np.full((n, n), 3.0))
    few = borrowed(made)
    total = few.table.sum() + few.flags.sum()
    keep(made)
    return made, total


def few() -> Few:
    return Few(np.array([True, False, True]), np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_kernel_reads_each_array_by_its_shape_and_strides(order):
    table = np.array(np.arange(12.0).reshape(3, 4), order=order)
    nested = Nested(Few(np.array([True, False, True]), table), np.arange(3, dtype=np.int32))
    assert _read(nested, 1, 2) == (6.0, 2, 1, (3, 4), 3)
    assert _read(nested._replace(numbers=np.arange(5, dtype=np.int32)), 2, 0) == (8.0, 2, 2, (3, 4), 5)


def test_a_kernel_writes_to_the_arrays():
    own = few()
    _double(own)
    np.testing.assert_array_equal(own.table, 2.0 * np.arange(12.0).reshape(3, 4))


def test_what_a_kernel_makes_is_such_a_tuple():
    made, total = _made(4)
    assert isinstance(made, Few)
    assert total == 4 * 4 * 3.0 + 4
    _double(made)
    assert (made.table == 6.0).all()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda own: cloudpickle.loads(cloudpickle.dumps(own))])
def test_copies_have_an_address_of_their_own(again):
    own = few()
    address = own.address
    other = again(own)
    assert isinstance(other, Few)
    assert "address" not in vars(other)
    assert other.address != address
    _double(other)
    assert (other.table == 2.0 * np.arange(12.0).reshape(3, 4)).all()
