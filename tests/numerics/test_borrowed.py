"""Borrowed arrays keep their owner."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel

N = 1000


class Inner(NamedTuple):
    array: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    array: np.ndarray


@kernel
def _total(outer):
    outer = borrowed(outer)
    return outer.inner.array.sum() + outer.array.sum()


@kernel
def _total_after_loans():
    array = np.full(N, 7.0)
    outer = Outer(Inner(array), np.ones(3))
    for _ in range(10):
        _total(outer)
    other = np.full(N, 1.0)  # takes the place of what was given back
    return array.sum(), other.sum()


def test_arrays_of_tuples_inside_tuples_survive_being_borrowed():
    assert _total(Outer(Inner(np.ones(N)), np.ones(3))) == N + 3
    assert _total_after_loans() == (7.0 * N, N)


@kernel
def _read(outer, position):
    return outer.array[position] + outer.inner.array[position]


@kernel
def _total_of_own(n):
    made = Outer(Inner(np.ones(n)), np.arange(n) * 1.0)
    outer = borrowed(made)
    total = 0.0
    for position in range(n):
        other = np.full(n, 100.0)  # takes the place of what was given back too early
        total += _read(borrowed(outer), position) + 0.0 * other[position]
    keep(made)
    return total


def test_what_a_kernel_made_lives_until_it_is_no_longer_kept():
    assert _total_of_own(50) == 50.0 + 49.0 * 50.0 / 2.0


def test_a_lent_tuple_is_handed_on_as_one_address():
    numba.njit(_total_of_own.py_func)(3)  # from a cache it would not ask for what it calls
    (signature,) = _read.signatures
    assert "borrowed" in str(signature[0])


@kernel
def _misspelt(outer):
    outer = borrowed(outer)
    return outer.arrays.size


def test_a_field_that_a_lent_tuple_lacks_is_refused():
    with pytest.raises(TypingError, match="arrays"):
        _misspelt(Outer(Inner(np.ones(2)), np.ones(2)))


@kernel
def _many_draws(rng, n):
    rng = borrowed(rng)
    total = 0.0
    for _ in range(n):
        total += _one_draw(rng)
    return total


@kernel
def _one_draw(rng):
    return rng.standard_gamma(2.5) + rng.random()


def test_a_borrowed_generator_draws_what_it_draws_and_stays_with_its_owner():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    before = sys.getrefcount(rng)
    total = _many_draws(rng, 100) + _many_draws(rng, 100)
    assert sys.getrefcount(rng) == before
    assert total == pytest.approx(sum(_one_draw(twin) for _ in range(200)), rel=1e-12)
    assert rng.bit_generator.state == twin.bit_generator.state
