"""Generators taken apart by one function of a module: the same draws, no reference lost, one copy of the code."""

from __future__ import annotations

import sys

import numba
import numpy as np

import bayesjpt.model  # noqa: F401 (registers it)
from bayesjpt.internals import unboxers
from bayesjpt.numerics.unboxed_generators import register_generators, take_apart

N_CALL = 20


@numba.njit
def draws(first, second, third):
    return first.normal(), second.gamma(2.0, 1.0), third.random(), second


def test_draws_are_those_of_numpy():
    generators = [np.random.default_rng(seed) for seed in (1, 2, 3)]
    found = draws(*generators)
    first, second, third = (np.random.default_rng(seed) for seed in (1, 2, 3))
    assert found[:3] == (first.normal(), second.gamma(2.0, 1.0), third.random())
    assert found[3] is generators[1]
    assert generators[1].random() == second.random()


def test_references_are_given_back():
    generators = [np.random.default_rng(seed) for seed in (1, 2, 3)]
    draws(*generators)
    before = [sys.getrefcount(rng) for rng in generators]
    for _ in range(N_CALL):
        draws(*generators)
    assert [sys.getrefcount(rng) for rng in generators] == before


def test_code_that_takes_generators_apart_stands_once_in_a_function():
    draws(*map(np.random.default_rng, (1, 2, 3)))
    (code,) = draws.inspect_llvm().values()
    assert code.count('c"bit_generator\\00"') == 1
    assert sum(line.startswith("define") and "bayesjpt_unbox_generator" in line for line in code.splitlines()) == 1


def test_to_register_it_twice_is_to_register_it_once():
    register_generators()
    register_generators()
    assert list(unboxers.functions.values()).count(take_apart) == 1
