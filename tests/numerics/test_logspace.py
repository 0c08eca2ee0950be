"""The polynomial exponential and logarithm against the library's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logspace import fast_exp, fast_log

PROMISED = 5e-16  # relative


@kernel
def _fill_exp(x, out):
    for i in range(out.size):
        out[i] = fast_exp(x[i])


@kernel
def _fill_log(x, out):
    for i in range(out.size):
        out[i] = fast_log(x[i])


def exp_of(x):
    out = np.full(len(x), np.nan)
    _fill_exp(np.asarray(x, np.float64), out)
    return out


def test_agrees_with_the_library_over_the_range_of_floats(rng):
    x = np.concatenate([rng.uniform(-708.0, 708.0, 200_000), rng.normal(0.0, 1.0, 200_000), [708.0, -707.999]])
    expected = np.array([math.exp(value) for value in x])
    assert np.abs(exp_of(x) / expected - 1.0).max() < PROMISED


def test_agrees_with_the_library_beside_the_changes_of_exponent():
    halves = (np.arange(-1020, 1020) + 0.5) * math.log(2.0)
    x = np.concatenate([np.nextafter(halves, -np.inf), halves, np.nextafter(halves, np.inf)])
    expected = np.array([math.exp(value) for value in x])
    assert np.abs(exp_of(x) / expected - 1.0).max() < PROMISED


def test_of_zero_is_exactly_one():
    assert exp_of([0.0, -0.0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("x", [-708.0, -708.1, -745.0, -1e10, -1e308, -np.inf, np.nan])
def test_is_exactly_zero_far_down_and_for_nan(x):
    assert exp_of([x]).tolist() == [0.0]


def test_is_finite_above_its_range():
    assert np.isfinite(exp_of([709.0, 710.0, 1e308, np.inf])).all()


def test_never_decreases(rng):
    x = np.sort(rng.uniform(-20.0, 20.0, 10_000))
    assert (np.diff(exp_of(x)) >= 0.0).all()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 15, 31, 33])
def test_length_of_the_loop_changes_no_bit(n, rng):
    x = rng.uniform(-50.0, 5.0, 64)
    assert exp_of(x[:n]).tolist() == exp_of(x)[:n].tolist() == [fast_exp(value) for value in x[:n]]


def test_logarithm_agrees_with_the_library_over_the_range_of_floats(rng):
    near_one = 1.0 + rng.normal(0.0, 1.0, 100_000) * 10.0 ** rng.uniform(-15.0, -1.0, 100_000)
    halves = np.sqrt(2.0) * 2.0 ** np.arange(-1000.0, 1000.0)
    x = np.concatenate([np.exp(rng.uniform(-708.0, 708.0, 200_000)), near_one[near_one > 0.0], halves, [1.0, 2.3e-308]])
    found = np.full(x.size, np.nan)
    _fill_log(x, found)
    expected = np.array([math.log(value) for value in x])
    assert np.abs(found - expected).max() / 708.0 < PROMISED
    assert (np.abs(found - expected) <= PROMISED * np.abs(expected)).all()


def test_logarithm_of_zero_is_a_number():
    found = np.full(1, np.nan)
    _fill_log(np.zeros(1), found)
    assert 0.0 * found[0] == 0.0
