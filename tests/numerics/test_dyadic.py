"""Sums along a tree: the same bits however terms are cut into parts, and in whatever order they come."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.numerics.dyadic import DyadicSum
from tests.strategies import law


def terms(n: int, seed: int) -> np.ndarray:
    """Return numbers whose sum depends on the order in which they are added."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-8, 8, size=(n, 1))


def summed(x: np.ndarray, numbers) -> DyadicSum:
    total = DyadicSum()
    for number in numbers:
        total.add(int(number), x[number])
    return total


@law(60)
@given(n=st.integers(1, 70), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_any_cut_into_parts_in_any_order_gives_the_same_bits(n, seed, data):
    x = terms(n, seed)
    expected = summed(x, range(n)).total()
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    parts = [summed(x, range(lo, hi)) for lo, hi in zip([0, *cuts], [*cuts, n], strict=True)]
    assert all(part.n_piece <= 2 * math.log2(n + 1) + 1 for part in parts)
    whole = DyadicSum()
    for part in data.draw(st.permutations(parts)):
        whole.merge(part)
    assert whole.total().tobytes() == expected.tobytes()
    assert np.allclose(expected, [math.fsum(column) for column in x.T], rtol=0.0, atol=1e-12 * np.abs(x).sum())


def test_the_order_of_these_terms_matters():
    x = terms(70, 1)
    assert sum(x).tobytes() != summed(x, range(70)).total().tobytes()


def test_a_missing_term_is_told():
    with pytest.raises(ValueError, match="term 2 is missing"):
        summed(terms(4, 1), [0, 1, 3]).total()
    with pytest.raises(ValueError, match="no terms"):
        DyadicSum().total()


def test_a_term_that_comes_twice_is_refused():
    total = summed(terms(2, 1), [0])
    with pytest.raises(AssertionError):
        total.add(0, np.zeros(3))
