"""Special functions against a decimal twin, SciPy where it holds, and their own laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.numerics import special
from tests.numerics import reference

PROMISED = 1e-12
ROUNDING = 1e-13
QUADRATURE = 1e-10


@pytest.mark.parametrize("a", [1e-12, 1e-3, 0.2, 0.49, 0.5, 1.0, 3.7, 40.0, 99.9, 100.1, 777.7, 1e4])
@pytest.mark.parametrize("deviate", [-6.0, -2.5, -0.6, 0.0, 0.3, 1.5, 4.0])
def test_gamma_tails_agree_with_decimal_arithmetic(a, deviate):
    x = a * math.exp(deviate / math.sqrt(a)) if a >= 1.0 else math.exp(deviate)
    log_p, log_q = reference.log_gamma_tails(a, x)
    assert math.expm1(special.log_gamma_p(a, x) - log_p) == pytest.approx(0.0, abs=PROMISED)
    assert math.expm1(special.log_gamma_q(a, x) - log_q) == pytest.approx(0.0, abs=PROMISED)
    assert special.gamma_p(a, x) == pytest.approx(math.exp(log_p), rel=PROMISED)


def test_gamma_tails_agree_with_scipy_where_its_series_ends_in_time(rng):
    for a in 10.0 ** rng.uniform(-6, 3, 2000):
        x = a * math.exp(rng.normal() / math.sqrt(max(a, 0.1)))
        assert special.gamma_p(a, x) == pytest.approx(scipy.special.gammainc(a, x), rel=PROMISED)
        assert math.exp(special.log_gamma_q(a, x)) == pytest.approx(scipy.special.gammaincc(a, x), rel=PROMISED)


@pytest.mark.parametrize("shift", [-4.0, 0.5, 3.0])
def test_gamma_tails_hold_at_shape_ten_million(shift):
    a = 1e7
    x = a + shift * math.sqrt(a)
    log_p, _ = reference.log_gamma_tails(a, x, digits=30)
    assert math.expm1(special.log_gamma_p(a, x) - log_p) == pytest.approx(0.0, abs=PROMISED)


@pytest.mark.parametrize(("a", "x"), [(50.0, 1e-5), (1e4, 100.0), (0.01, 1e-280)])
def test_far_lower_tail_of_gamma_follows_its_leading_terms(a, x):
    leading = a * math.log(x) - x - math.lgamma(a + 1.0) + math.log1p(x / (a + 1.0) * (1.0 + x / (a + 2.0)))
    assert special.log_gamma_p(a, x) == pytest.approx(leading, rel=1e-7)


@pytest.mark.parametrize(("a", "x"), [(2.0, 5e3), (300.0, 1e6), (0.1, 900.0)])
def test_far_upper_tail_of_gamma_follows_its_leading_terms(a, x):
    leading = (a - 1.0) * math.log(x) - x - math.lgamma(a) + math.log1p((a - 1.0) / x * (1.0 + (a - 2.0) / x))
    assert special.log_gamma_q(a, x) == pytest.approx(leading, rel=1e-9)


def test_gamma_tails_at_the_ends_of_the_line():
    assert special.log_gamma_p(2.0, 0.0) == -np.inf
    assert special.log_gamma_q(2.0, 0.0) == 0.0
    assert special.log_gamma_p(2.0, np.inf) == 0.0
    assert special.log_gamma_q(2.0, np.inf) == -np.inf
    assert math.isnan(special.log_gamma_p(-1.0, 1.0))
    assert math.isnan(special.log_gamma_q(1.0, np.nan))


@settings(max_examples=100, deadline=None)
@given(
    a=st.floats(1e-6, 1e9),
    deviate=st.floats(-8, 8),
    log_width=st.floats(-12, 2),
    share=st.floats(0.01, 0.99),
)
def test_gamma_interval_adds_over_its_parts(a, deviate, log_width, share):
    lo = a * math.exp(deviate / math.sqrt(max(a, 1.0)))
    hi = lo * (1.0 + 10.0**log_width)
    middle = lo + share * (hi - lo)
    whole = special.log_gamma_interval(a, lo, hi)
    parts = special.logaddexp(special.log_gamma_interval(a, lo, middle), special.log_gamma_interval(a, middle, hi))
    # an end is known to half a unit in its last place: as a share of the interval, and through the density's slope
    spacing = 2e-16 * (lo / (hi - lo) + abs(a - lo))
    assert parts == pytest.approx(whole, abs=ROUNDING * (1.0 + abs(whole)) + 4.0 * spacing)


@pytest.mark.parametrize("a", [1e10, 1e15, 1e20])
@pytest.mark.parametrize(("deviate", "width"), [(-1.0, 0.01), (0.3, 1.0), (2.0, 0.3), (2.0, 3.0), (6.0, 0.2)])
def test_gamma_interval_of_a_large_shape_is_that_of_a_normal(a, deviate, width):
    lo = a + deviate * math.sqrt(a)
    hi = lo + width * math.sqrt(a)
    ends = (lo - a) / math.sqrt(a), (hi - a) / math.sqrt(a)
    log_normal = math.log(scipy.integrate.quad(scipy.stats.norm.pdf, *ends, epsrel=1e-13)[0])
    skewness = 2.0 / math.sqrt(a)
    assert special.log_gamma_interval(a, lo, hi) == pytest.approx(log_normal, abs=100.0 * skewness + 1e-12)
    middle = lo + 0.37 * (hi - lo)
    parts = special.logaddexp(special.log_gamma_interval(a, lo, middle), special.log_gamma_interval(a, middle, hi))
    assert parts == pytest.approx(special.log_gamma_interval(a, lo, hi), abs=ROUNDING * (1.0 + abs(log_normal)))


def test_gamma_interval_agrees_with_quadrature_in_the_far_tail():
    a, lo, hi = 3.0, 80.0, 80.5
    value, _ = scipy.integrate.quad(lambda t: math.exp(-(t - lo)) * t**2 / 2.0, lo, hi, epsabs=0.0)
    assert special.log_gamma_interval(a, lo, hi) == pytest.approx(math.log(value) - lo, abs=QUADRATURE)


@settings(max_examples=100, deadline=None)
@given(
    a=st.floats(1e-3, 1e8),
    deviate=st.floats(-6, 6),
    log_width=st.floats(-6, 3),
    u=st.floats(1e-6, 1.0 - 1e-6),
)
def test_gamma_quantile_between_inverts_the_interval_mass(a, deviate, log_width, u):
    lo = a * math.exp(deviate / math.sqrt(max(a, 1.0)))
    hi = lo * (1.0 + 10.0**log_width)
    x = special.gamma_quantile_between(a, lo, hi, u)
    assert lo <= x <= hi
    log_all = special.log_gamma_interval(a, lo, hi)
    log_slope = math.log(a) + special.log_poisson_mass(a, x) - log_all
    if log_all > -700.0:
        got = math.exp(special.log_gamma_interval(a, lo, x) - log_all)
        assert got == pytest.approx(u, abs=1e-12 * (1.0 + math.exp(log_slope)))


@pytest.mark.parametrize("a", [1e-3, 0.4, 5.0, 1e3])
def test_gamma_quantile_on_the_whole_line_agrees_with_scipy(a):
    for u in (1e-9, 0.01, 0.5, 0.9, 1.0 - 1e-9):
        expected = scipy.special.gammaincinv(a, u)
        assert special.gamma_quantile_between(a, 0.0, np.inf, u) == pytest.approx(max(expected, 1e-300), rel=1e-9)


@pytest.mark.parametrize("x", [-35.0, -20.0, -5.001, -4.999, -1.0, 0.0, 0.7, 4.0, 8.0])
def test_log_normal_cdf_agrees_with_decimal_arithmetic(x):
    assert special.log_normal_cdf(x) == pytest.approx(reference.log_normal_cdf(x), rel=ROUNDING)
    assert special.normal_cdf(x) == pytest.approx(math.exp(reference.log_normal_cdf(x)), rel=ROUNDING)


def test_log_normal_cdf_in_the_far_tail_follows_the_asymptotic_series():
    x = -1e6
    assert special.log_normal_cdf(x) == pytest.approx(
        -0.5 * x * x - math.log(-x) - 0.5 * math.log(2 * math.pi), rel=1e-15
    )
    assert special.log_normal_cdf(-np.inf) == -np.inf
    assert special.log_normal_cdf(np.inf) == 0.0


@pytest.mark.parametrize(
    ("a", "b"),
    [(10.0, 10.5), (-30.0, -29.0), (-0.5, 0.25), (3.0, 3.0 + 1e-9), (-8.0, 8.0), (2.3, 3.1), (-39.0, -38.95)],
)
def test_normal_interval_agrees_with_quadrature(a, b):
    near = min(abs(a), abs(b)) if a * b > 0 else 0.0
    value, _ = scipy.integrate.quad(lambda t: math.exp(0.5 * (near - t) * (near + t)), a, b, epsabs=0.0, epsrel=1e-12)
    expected = math.log(value) - 0.5 * near * near - 0.5 * math.log(2 * math.pi)
    assert special.log_normal_interval(a, b) == pytest.approx(expected, abs=QUADRATURE)


@settings(max_examples=100, deadline=None)
@given(a=st.floats(-40, 40), log_width=st.floats(-8, 2), share=st.floats(0.01, 0.99))
def test_normal_interval_adds_over_its_parts_and_is_symmetric(a, log_width, share):
    b = a + 10.0**log_width
    middle = a + share * (b - a)
    whole = special.log_normal_interval(a, b)
    parts = special.logaddexp(special.log_normal_interval(a, middle), special.log_normal_interval(middle, b))
    spacing = 2e-16 * (1.0 + abs(a)) / (b - a)
    assert parts == pytest.approx(whole, abs=1e-12 + 4.0 * spacing)
    assert special.log_normal_interval(-b, -a) == whole


def test_empty_normal_interval_has_no_mass():
    assert special.log_normal_interval(1.0, 1.0) == -np.inf
    assert special.log_normal_interval(2.0, 1.0) == -np.inf
    assert math.isnan(special.log_normal_interval(np.nan, 1.0))


def test_normal_quantile_agrees_with_scipy(rng):
    tails = 10.0 ** rng.uniform(-300, 0, 500)
    for p in [*tails, *(1.0 - tails), *(0.5 + tails * 0.4), *rng.random(500)]:
        assert special.normal_quantile(p) == pytest.approx(scipy.special.ndtri(p), rel=ROUNDING)
    assert special.normal_quantile(0.5) == 0.0
    assert math.isnan(special.normal_quantile(1.5))


@settings(max_examples=100, deadline=None)
@given(a=st.floats(-40, 40), log_width=st.floats(-6, 2), u=st.floats(1e-6, 1.0 - 1e-6))
def test_normal_quantile_between_inverts_the_interval_mass(a, log_width, u):
    b = a + 10.0**log_width
    x = special.normal_quantile_between(a, b, u)
    assert a <= x <= b
    log_all = special.log_normal_interval(a, b)
    log_slope = -0.5 * x * x - 0.5 * math.log(2 * math.pi) - log_all
    got = math.exp(special.log_normal_interval(a, x) - log_all)
    assert got == pytest.approx(u, abs=1e-12 + 1e-15 * (1.0 + abs(x)) * math.exp(log_slope))


def test_normal_quantile_between_beyond_reach_is_the_nearer_end():
    assert special.normal_quantile_between(1e200, 2e200, 0.3) == 1e200
    assert special.normal_quantile_between(-np.inf, -1e200, 0.3) == -1e200
    assert special.normal_quantile_between(2.0, 2.0, 0.3) == 2.0
    assert math.isnan(special.normal_quantile_between(3.0, 2.0, 0.3))


@pytest.mark.parametrize(
    ("a", "lo", "hi"),
    [
        (0.4, 0.2, 0.22), (0.4, 0.0, 3.0), (1e-3, 2.0, np.inf), (9.0, 7.0, 7.1), (9.0, 4.0, 12.0), (9.0, 20.0, np.inf),
        (400.0, 380.0, 430.0), (400.0, 300.0, 310.0), (400.0, 0.0, 390.0), (4e4, 39900.0, 40100.0),
    ],
)  # fmt: skip
def test_mean_of_a_truncated_gamma_agrees_with_quadrature(a, lo, hi):
    peak = max(a, lo) if hi == np.inf else min(max(a, lo), hi)
    end = min(hi, peak + 60.0 * (math.sqrt(a) + 1.0))

    def integral(power: int) -> float:
        def value(x: float) -> float:
            return (x - peak) ** power * math.exp((a - 1.0) * math.log(x / peak) - (x - peak))

        parts = [(lo, peak), (peak, end)]
        return sum(scipy.integrate.quad(value, *part, epsabs=0.0, epsrel=1e-12, limit=200)[0] for part in parts)

    expected = peak + integral(1) / integral(0)
    assert special.gamma_mean_between(a, lo, hi) == pytest.approx(expected, rel=QUADRATURE)


@pytest.mark.parametrize("t", [0.0, 1e-9, 0.3, 0.4999, 0.5001, 4.0, 60.0, 5000.0])
def test_tilted_moments_agree_with_quadrature(t):
    def expect(f):
        top = min(1.0, 60.0 / max(t, 1e-9))
        return scipy.integrate.quad(lambda x: f(x) * math.exp(-t * x), 0.0, top, epsabs=0.0, epsrel=1e-12)[0]

    total = expect(lambda x: 1.0)
    mean = expect(lambda x: x) / total
    assert special.tilted_mean(t) == pytest.approx(mean, rel=QUADRATURE)
    assert special.tilted_variance(t) == pytest.approx(expect(lambda x: (x - mean) ** 2) / total, rel=QUADRATURE)


@given(st.floats(1e-300, 700.0))
def test_log1mexp_inverts_itself(x):
    # y = log(1 - exp(-x)) exactly when exp(y) + exp(-x) = 1
    assert math.exp(special.log1mexp(x)) == pytest.approx(-math.expm1(-x), rel=1e-13, abs=1e-300)


@given(st.floats(-0.99, 10.0))
def test_log1p_minus_agrees_with_its_series_or_definition(x):
    if abs(x) < 0.01:
        expected = -(x**2) / 2 + x**3 / 3 - x**4 / 4 + x**5 / 5 - x**6 / 6 + x**7 / 7 - x**8 / 8
    else:
        expected = math.log1p(x) - x
    assert special.log1p_minus(x) == pytest.approx(expected, rel=1e-11, abs=1e-300)


def test_logaddexp_handles_infinities():
    assert special.logaddexp(-np.inf, -np.inf) == -np.inf
    assert special.logaddexp(-np.inf, 3.0) == 3.0
    assert special.logaddexp(1.0, 2.0) == pytest.approx(float(np.logaddexp(1.0, 2.0)), rel=1e-15)


def test_stirling_error_and_poisson_mass_agree_with_scipy(rng):
    for a in 10.0 ** rng.uniform(-8, 3, 500):
        expected = scipy.special.gammaln(a) - ((a - 0.5) * math.log(a) - a + 0.5 * math.log(2 * math.pi))
        assert special.stirling_error(a) == pytest.approx(expected, abs=1e-12 * (1.0 + a * abs(math.log(a))))
        x = a * math.exp(rng.normal())
        mass = a * math.log(x) - x - scipy.special.gammaln(a + 1.0)
        assert special.log_poisson_mass(a, x) == pytest.approx(mass, abs=1e-12 * (1.0 + a * abs(math.log(a)) + x))
