"""Differences of log Gamma and digamma over a step, against exact products, sums and SciPy."""

from __future__ import annotations

import math

import pytest
import scipy.special

from bayesjpt.numerics.rising import digamma_step, log_rising

PRECISE = 1e-13


@pytest.mark.parametrize("x", [1e-8, 0.3, 5.0, 9.999, 10.0, 250.0, 1e6, 1e12])
@pytest.mark.parametrize("step", [0, 1, 7, 16, 17, 100, 3000])
def test_whole_steps_agree_with_the_product_and_the_sum(x, step):
    logs = math.fsum(math.log(x + j) for j in range(step))
    assert log_rising(x, float(step)) == pytest.approx(logs, rel=PRECISE, abs=PRECISE)
    total = math.fsum(1.0 / (x + j) for j in range(step))
    assert digamma_step(x, float(step)) == pytest.approx(total, rel=PRECISE, abs=1e-300)


@pytest.mark.parametrize(("x", "step"), [(0.2, 0.7), (3.0, 2.5), (40.0, 0.01), (17.0, 1e5)])
def test_fractional_steps_agree_with_scipy(x, step):
    expected = scipy.special.gammaln(x + step) - scipy.special.gammaln(x)
    assert log_rising(x, step) == pytest.approx(expected, rel=1e-11)
    expected = scipy.special.digamma(x + step) - scipy.special.digamma(x)
    assert digamma_step(x, step) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("x", [16.0, 1000.0, 1e9])
@pytest.mark.parametrize("step", [-0.9, -0.1])
def test_small_negative_steps_agree_with_the_opposite_ones(x, step):
    assert log_rising(x, step) == pytest.approx(-log_rising(x + step, -step), rel=PRECISE)
