"""Rows distributed over the children of a sum, at the ends of the unit interval too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bayesjpt.kernels import rows

LAST = np.nextafter(1.0, 0.0)
"""The largest number that the generator can return."""


def split(u, terms, positions):
    """Return the lists of positions, one a child."""
    lists = [np.full(positions.size + 1, -1, np.int32) for _ in terms]
    if len(terms) == 2:
        sizes = rows.split_in_two(positions, u, terms[0], terms[1], lists[0], 0, lists[1], 0)
    else:
        ends = [part for out in lists for part in (out, 0)]
        sizes = rows.split_in_three(positions, u, terms, *ends)
    return [out[:size].tolist() for out, size in zip(lists, sizes, strict=True)]


def split_slowly(u, terms, positions):
    """Return the lists of positions by a search among partial sums."""
    lists = [[] for _ in terms]
    for number, position in zip(u, positions, strict=True):
        reached = np.cumsum(terms[:, position])
        lists[int(np.searchsorted(reached, number * reached[-1], side="right"))].append(int(position))
    return lists


@pytest.mark.parametrize("n_child", [2, 3])
def test_rows_fall_on_the_child_that_a_search_finds_in_their_order(n_child, rng):
    terms = rng.random((n_child, 500))
    positions = np.sort(rng.choice(500, 200, replace=False)).astype(np.int32)
    u = rng.random(200)
    assert split(u, terms, positions) == split_slowly(u, terms, positions)


@pytest.mark.parametrize("u", [0.0, 0.5, LAST])
@pytest.mark.parametrize("n_child", [2, 3])
def test_child_without_weight_is_never_chosen(n_child, u):
    possible = np.array(list(itertools.product([0.0, 1.0, 0.3, 1.0 + 2**-52], repeat=n_child))[1:]).T
    terms = np.ascontiguousarray(possible)
    positions = np.arange(terms.shape[1], dtype=np.int32)
    for child, members in enumerate(split(np.full(positions.size, u), terms, positions)):
        assert (terms[child, members] > 0.0).all()


@pytest.mark.parametrize("n_child", [2, 3])
def test_every_row_is_on_one_list(n_child, rng):
    terms = rng.random((n_child, 100)) * (rng.random((n_child, 100)) < 0.5)  # some rows impossible
    positions = np.arange(100, dtype=np.int32)
    lists = split(rng.random(100), terms, positions)
    assert sorted(itertools.chain(*lists)) == positions.tolist()


def test_folding_keeps_the_value_and_leaves_a_factor_of_one():
    m, s = np.array([0.0, -1e5, -np.inf, 3.0]), np.array([1e300, 2.0, 0.0, 1.0])
    rows.fold(m, s)
    np.testing.assert_allclose(m, [300.0 * np.log(10.0), -1e5 + np.log(2.0), -np.inf, 3.0], rtol=1e-15)
    assert s[[0, 1, 3]].tolist() == [1.0, 1.0, 1.0]


def test_impossible_rows_stay_impossible_when_folded():
    m, s = np.array([5.0]), np.array([0.0])
    rows.fold(m, s)
    out = np.empty(1)
    rows.log_value(m, s, out)
    assert out[0] == -np.inf
