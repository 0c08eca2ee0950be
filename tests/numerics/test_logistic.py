"""Intervals of the logistic distribution against SciPy, in both far tails and where they are narrow."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from bayesjpt.numerics.logistic import expit, log_expit_both, log_logistic_interval

RELATIVE = 1e-13


@pytest.mark.parametrize("x", [-np.inf, -800.0, -30.0, -0.1, 0.0, 2.0, 40.0, 800.0, np.inf])
def test_both_tails_agree_with_scipy(x):
    expected = scipy.stats.logistic.logcdf(x), scipy.stats.logistic.logsf(x)
    np.testing.assert_allclose(log_expit_both(x), expected, rtol=RELATIVE)
    assert expit(x) == pytest.approx(scipy.stats.logistic.cdf(x), rel=RELATIVE)


@pytest.mark.parametrize(("a", "b"), [(-1.0, 0.5), (-45.0, -30.0), (3.0, 9.0), (-np.inf, -3.0), (7.0, np.inf)])
def test_interval_agrees_with_the_nearer_tail(a, b):
    lo, hi = (a, b) if b < -a else (-b, -a)
    expected = math.log(scipy.stats.logistic.cdf(hi) - scipy.stats.logistic.cdf(lo))
    assert log_logistic_interval(a, b, b - a) == pytest.approx(expected, rel=RELATIVE)


@pytest.mark.parametrize("a", [-700.0, -1.0, 25.0, 700.0])
def test_narrow_interval_has_density_times_width(a):
    width = 1e-14
    expected = scipy.stats.logistic.logpdf(a) + math.log(width)
    assert log_logistic_interval(a, a + width, width) == pytest.approx(expected, rel=RELATIVE)
