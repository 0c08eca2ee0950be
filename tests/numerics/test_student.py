"""Student's t in logarithms against SciPy where it holds, closed forms at 1 and 2 degrees, quadrature, and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.numerics import special

PROMISED = 1e-12
QUADRATURE = 1e-10
INFINITE = np.inf


def _integral(nu: float, a: float, b: float, k: int) -> float:
    """Return the integral of t^k times the density, in units of the one nearest to 0, by panels in asinh(t)."""
    root = math.sqrt(nu)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(math.asinh(a / root), math.asinh(b / root), 1001)
    half = 0.5 * np.diff(edges)[:, None]
    v = edges[:-1, None] + half * (1.0 + nodes)
    t = root * np.sinh(v)
    near = min(max(a, 0.0), b)
    density = np.exp(scipy.stats.t(nu).logpdf(t) - scipy.stats.t(nu).logpdf(near))
    return float((half * weights * t**k * density * root * np.cosh(v)).sum())


def test_student_tails_agree_with_scipy(rng):
    for nu, t in 10.0 ** rng.uniform((0, -3), (3, 3), (500, 2)):
        expected = scipy.stats.t(nu).logsf(t)
        if expected > -600.0:
            assert special.log_student_cdf(nu, -t) == pytest.approx(expected, rel=PROMISED, abs=PROMISED)
            assert special.student_cdf(nu, t) == pytest.approx(scipy.stats.t(nu).cdf(t), rel=PROMISED)


@pytest.mark.parametrize("t", [-1e250, -1e12, -30.0, -1.0, 0.0, 2.5, 1e9])
def test_student_cdf_has_its_closed_forms_at_one_and_two_degrees(t):
    cauchy = math.atan2(1.0, -t) / math.pi
    two = 0.5 * (1.0 + t / math.hypot(t, math.sqrt(2.0))) if t > -1e3 else 0.5 / t / t
    assert special.log_student_cdf(1.0, t) == pytest.approx(math.log(cauchy), rel=PROMISED)
    if t > -1e100:
        assert special.log_student_cdf(2.0, t) == pytest.approx(math.log(two), rel=QUADRATURE)


@pytest.mark.parametrize("nu", [1e12, 1e17, 1e30])
@pytest.mark.parametrize("t", [-30.0, -2.0, -1e-3, 0.0, 4.0])
def test_student_is_the_normal_at_many_degrees(nu, t):
    assert special.log_student_cdf(nu, t) == pytest.approx(special.log_normal_cdf(t), rel=1e-8)
    assert special.log_student_interval(nu, t, t + 0.5) == pytest.approx(
        special.log_normal_interval(t, t + 0.5), rel=1e-8
    )
    ends = {-1: t, 0: 0.0, 1: t + 0.5}
    end, offset, variance = special.student_moments_between(nu, t, t + 0.5)
    near, distance, spread = special.normal_moments_between(t, t + 0.5)
    assert offset == pytest.approx(distance + ends[near] - ends[end], rel=1e-8)
    assert variance == pytest.approx(spread, rel=1e-8)


def test_student_level_agrees_with_scipy(rng):
    for nu in 10.0 ** rng.uniform(-2, 4, 300):
        assert special.log_student_level(nu) == pytest.approx(scipy.stats.t(nu).logpdf(0.0), abs=1e-11)


@settings(max_examples=70, deadline=None)
@given(
    log_nu=st.floats(0, 10),
    a=st.floats(-1e3, 1e3),
    log_width=st.floats(-8, 4),
    share=st.floats(0.01, 0.99),
)
def test_student_interval_adds_over_its_parts_and_is_symmetric(log_nu, a, log_width, share):
    nu, b = 10.0**log_nu, a + 10.0**log_width
    middle = a + share * (b - a)
    whole = special.log_student_interval(nu, a, b)
    parts = special.logaddexp(special.log_student_interval(nu, a, middle), special.log_student_interval(nu, middle, b))
    spacing = 4e-16 * (1.0 + abs(a)) * (1.0 / (b - a) + abs(a))
    assert parts == pytest.approx(whole, rel=1e-13, abs=1e-12 + spacing)
    assert special.log_student_interval(nu, -b, -a) == whole


def test_empty_student_interval_has_no_mass():
    assert special.log_student_interval(3.0, 1.0, 1.0) == -np.inf
    assert special.log_student_interval(3.0, 2.0, 1.0) == -np.inf
    assert math.isnan(special.log_student_interval(3.0, np.nan, 1.0))
    assert math.isnan(special.log_student_cdf(-1.0, 1.0))


INTERVALS = [(-1.0, 0.4), (2.0, 2.1), (-900.0, 3.0), (30.0, 80.0), (-0.01, 5e4), (-7.0, -6.999)]


@pytest.mark.parametrize("nu", [1.0, 1.3, 2.0, 4.5, 200.0])
@pytest.mark.parametrize(("a", "b"), INTERVALS)
def test_student_moments_between_agree_with_quadrature(nu, a, b):
    total = _integral(nu, a, b, 0)
    near = min(max(a, 0.0), b)
    mass = math.log(total) + scipy.stats.t(nu).logpdf(near)
    assert special.log_student_interval(nu, a, b) == pytest.approx(mass, rel=QUADRATURE, abs=QUADRATURE)
    end, offset, variance = special.student_moments_between(nu, a, b)
    mean = (a if end < 0 else b if end > 0 else 0.0) + offset
    assert mean == pytest.approx(_integral(nu, a, b, 1) / total, rel=QUADRATURE)
    assert variance + mean * mean == pytest.approx(_integral(nu, a, b, 2) / total, rel=QUADRATURE)


@pytest.mark.parametrize("nu", [2.2, 5.0, 80.0])
@pytest.mark.parametrize("a", [-2.0, 0.0, 0.7, 50.0])
def test_student_mean_beyond_a_bound_has_its_closed_form(nu, a):
    density, beyond = scipy.stats.t(nu).pdf(a), scipy.stats.t(nu).sf(a)
    expected = (nu + a * a) / (nu - 1.0) * density / beyond
    end, offset, _ = special.student_moments_between(nu, a, np.inf)
    assert (a if end < 0 else 0.0) + offset == pytest.approx(expected, rel=QUADRATURE)


@pytest.mark.parametrize(("nu", "mean", "variance"), [(0.9, INFINITE, INFINITE), (2.0, 0.0, INFINITE), (4.0, 0.0, 2.0)])
def test_student_moments_of_the_whole_line_are_infinite_where_they_do_not_exist(nu, mean, variance):
    assert special.student_moments_between(nu, -np.inf, np.inf) == (0, mean, variance)


def test_student_moments_beyond_a_bound_are_infinite_where_they_do_not_exist():
    assert special.student_moments_between(1.0, 3.0, np.inf) == (-1, np.inf, np.inf)
    assert special.student_moments_between(1.0, -np.inf, 2.0) == (0, -np.inf, np.inf)
    end, offset, variance = special.student_moments_between(1.5, 3.0, np.inf)
    assert end == -1
    assert np.isfinite(offset)
    assert variance == np.inf


@settings(max_examples=70, deadline=None)
@given(log_nu=st.floats(0, 8), a=st.floats(-1e3, 1e3), log_width=st.floats(-4, 4), u=st.floats(1e-6, 1.0 - 1e-6))
def test_student_quantile_between_inverts_the_interval_mass(log_nu, a, log_width, u):
    nu, b = 10.0**log_nu, a + 10.0**log_width
    x = special.student_quantile_between(nu, a, b, u)
    assert a <= x <= b
    log_all = special.log_student_interval(nu, a, b)
    log_slope = special.log_student_level(nu) - 0.5 * (nu + 1.0) * math.log1p(x * x / nu) - log_all
    got = math.exp(special.log_student_interval(nu, a, x) - log_all)
    rounded = 4e-16 * abs(log_all)  # of the logarithms whose difference this is
    assert got == pytest.approx(u, abs=1e-11 + rounded + 4e-15 * (1.0 + abs(x)) * math.exp(log_slope))


@pytest.mark.parametrize("nu", [1.0, 2.7, 30.0])
def test_student_quantile_on_the_whole_line_agrees_with_scipy(nu):
    for u in (1e-12, 0.01, 0.3, 0.5, 0.7, 1.0 - 1e-9):
        expected = scipy.stats.t(nu).ppf(u)
        assert special.student_quantile_between(nu, -np.inf, np.inf, u) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_student_quantile_between_beyond_reach_is_the_nearer_end():
    assert special.student_quantile_between(400.0, 1e200, 2e200, 0.3) == pytest.approx(1e200, rel=1e-2)
    assert special.student_quantile_between(1e30, 1e200, 2e200, 0.3) == 1e200
    assert special.student_quantile_between(3.0, 2.0, 2.0, 0.3) == 2.0
    assert math.isnan(special.student_quantile_between(3.0, 3.0, 2.0, 0.3))
