"""Variances of values far from 0, where a difference of squares has no digits, against sums and integrals by mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from bayesjpt.families import gamma, lognormal, negative_binomial, poisson

NONE = np.empty(0)
DIGITS = 60


def summed(log_mass, first: int, last: int) -> tuple[float, float]:
    """Return mean less `first`, and variance, of whole numbers of unnormalised log masses."""
    with mpmath.workdps(DIGITS):
        top = max(log_mass(mpmath.mpf(first)), log_mass(mpmath.mpf(last)))
        mass = [mpmath.exp(log_mass(mpmath.mpf(first + d)) - top) for d in range(last - first + 1)]
        total = mpmath.fsum(mass)
        mean = mpmath.fsum(d * m for d, m in enumerate(mass)) / total
        return float(mean), float(mpmath.fsum((d - mean) ** 2 * m for d, m in enumerate(mass)) / total)


def integrated(log_density, lo: float, hi: float, pieces: int = 8) -> float:
    """Return the variance of an unnormalised log density on an interval."""
    with mpmath.workdps(DIGITS):
        lo, hi = mpmath.mpf(lo), mpmath.mpf(hi)
        ends = [lo + (hi - lo) * k / pieces for k in range(pieces + 1)]
        top = max(log_density(end) for end in ends)

        def moment(k, about):
            return mpmath.quad(lambda x: (x - about) ** k * mpmath.exp(log_density(x) - top), ends)

        total = moment(0, 0)
        mean = lo + moment(1, lo) / total
        return float(moment(2, mean) / total)


@pytest.mark.parametrize("rate", [3.0, 1e4, 1.7e9, 1e13])
@pytest.mark.parametrize("width", [1, 9, 300])
def test_poisson_in_a_narrow_interval(rate, width):
    first = max(int(rate - 0.3 * np.sqrt(rate)), 0)
    mean, variance = summed(lambda x: x * mpmath.log(rate) - mpmath.loggamma(x + 1), first, first + width)
    found = [poisson.moment(k, first - 0.5, first + width + 0.5, np.array([rate]), NONE) for k in (1, 2)]
    assert found[0] - first == pytest.approx(mean, rel=1e-9, abs=1e-16 * first)
    assert found[1] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize(("size", "p"), [(2.0, 0.4), (7.5, 1e-8), (1e6, 1e-3)])
@pytest.mark.parametrize("width", [1, 9, 300])
def test_negative_binomial_in_a_narrow_interval(size, p, width):
    first = int(size * (1.0 - p) / p)

    def log_mass(x):
        return mpmath.loggamma(x + size) - mpmath.loggamma(x + 1) + x * mpmath.log1p(-mpmath.mpf(p))

    mean, variance = summed(log_mass, first, first + width)
    found = [negative_binomial.moment(k, first, first + width, np.array([size, p]), NONE) for k in (1, 2)]
    assert found[0] - first == pytest.approx(mean, rel=1e-9, abs=1e-16 * first)
    assert found[1] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("rate", [2e4, 5e6])
@pytest.mark.parametrize(("below", "above"), [(0.5, 0.2), (-0.5, 3.0), (2.0, np.inf), (np.inf, -1.0)])
def test_counts_in_wide_intervals(rate, below, above):
    """Beyond the counts that are summed: within numbers of deviations on both sides of the mean."""
    far = 40.0 * np.sqrt(rate)
    first = int(np.ceil(rate - min(below * np.sqrt(rate), far)))
    last = int(rate + min(above * np.sqrt(rate), far))
    x = np.arange(first, last + 1.0)
    for family, theta, log_ratio in (
        (poisson, [rate], np.log(rate) - np.log(x[1:])),
        (negative_binomial, [5.0 * rate, 5.0 / 6.0], np.log((5.0 * rate + x[:-1]) / 6.0) - np.log(x[1:])),
    ):
        log_mass = np.concatenate([[0.0], np.cumsum(log_ratio)])
        mass = np.exp(log_mass - log_mass.max())
        mean = (mass * (x - first)).sum() / mass.sum()
        variance = (mass * (x - first - mean) ** 2).sum() / mass.sum()
        lo = first if np.isfinite(below) else -np.inf
        hi = last if np.isfinite(above) else np.inf
        assert family.moment(2, lo, hi, np.array(theta), NONE) == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("shape", [0.3, 40.0, 1e6, 1e10])
@pytest.mark.parametrize("width", [1e-6, 1e-2, 0.9, 3.0])
def test_gamma_in_intervals_around_its_mean(shape, width):
    rate = shape / 1.5
    lo, hi = 1.5, 1.5 * (1.0 + width / np.sqrt(shape))
    expected = integrated(lambda x: (shape - 1) * mpmath.log(x) - rate * x, lo, hi)
    assert gamma.moment(2, lo, hi, np.array([shape, rate]), NONE) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("shape", [0.3, 40.0, 1e10])
def test_gamma_on_the_whole_line(shape):
    found = gamma.moment(2, -np.inf, np.inf, np.array([shape, 2.0]), NONE)
    assert found == pytest.approx(shape / 4.0, rel=1e-9)


@pytest.mark.parametrize("deviation", [3e-6, 1e-4, 0.03, 1.2])
@pytest.mark.parametrize(("a", "b"), [(-0.3, -0.299), (-0.3, 0.5), (-0.5, 2.0), (1.0, 9.0), (-np.inf, 0.7)])
def test_lognormal_in_intervals(deviation, a, b):
    lo, hi = np.exp(2.0 + deviation * np.array([a, b]))
    # of the deviate of the logarithm, so that no digit of the ends is lost
    a_, b_ = ((np.log(end) - 2.0) / deviation if end > 0.0 else -40.0 for end in (lo, hi))
    with mpmath.workdps(DIGITS):

        def moment(k, about):
            def term(t):
                return (mpmath.expm1(deviation * t) - about) ** k * mpmath.exp(-t * t / 2)

            return mpmath.quad(
                term, [mpmath.mpf(max(a_, -40.0)), mpmath.mpf(0.5 * (max(a_, -40.0) + b_)), mpmath.mpf(b_)]
            )

        total = moment(0, 0)
        mean = moment(1, 0) / total
        expected = float(mpmath.exp(4) * moment(2, mean) / total)
    found = lognormal.moment(2, lo, hi, np.array([deviation**2, 2.0]), NONE)
    assert found == pytest.approx(expected, rel=2e-4 if deviation < 1e-3 else 1e-9)
