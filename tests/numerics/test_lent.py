"""Lent arrays keep their owner."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.lent import lent

N = 1000


class Inner(NamedTuple):
    array: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    array: np.ndarray


@kernel
def _total(outer):
    outer = lent(outer)
    return outer.inner.array.sum() + outer.array.sum()


@kernel
def _total_after_loans():
    array = np.full(N, 7.0)
    outer = Outer(Inner(array), np.ones(3))
    for _ in range(10):
        _total(outer)
    other = np.full(N, 1.0)  # takes the place of what was given back
    return array.sum(), other.sum()


def test_arrays_of_tuples_inside_tuples_survive_being_lent():
    assert _total(Outer(Inner(np.ones(N)), np.ones(3))) == N + 3
    assert _total_after_loans() == (7.0 * N, N)
