"""Intervals so narrow, so far from a mean, that the difference of their ends is rounded away, against 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import gammaln

from bayesjpt.numerics.special import is_lost, log_lost_normal, log_lost_student

N_PANEL = 64
CASES = [
    # mean, scale, middle, width
    (-1.4e16, 2.8e16, 1.4, 1e-3),
    (-1e9, 1e8, 0.5, 1e-3),
    (0.0, 1.0, 1e6, 1e-6),
    (5.0, 1e-3, 2e3, 1e-9),
    (-1e23, 3e22, 0.0, 1e-10),
]


def digits(lo: float, hi: float, mean: float, scale: float, log_density) -> float:
    """Return the log of a density's integral over lo ... hi, by Simpson's rule."""
    with localcontext(prec=60):
        a, b = ((Decimal(end) - Decimal(mean)) / Decimal(scale) for end in (lo, hi))
        level, step = log_density((a + b) / 2), (b - a) / N_PANEL
        weights = [1, *[4, 2] * (N_PANEL // 2 - 1), 4, 1]
        total = sum(weight * (log_density(a + k * step) - level).exp() for k, weight in enumerate(weights))
        return float(level + (total * step / 3).ln())


def ends(case) -> tuple[float, float]:
    _, _, middle, width = case
    return middle - 0.5 * width, middle + 0.5 * width


@pytest.mark.parametrize("case", CASES)
def test_normal_mass_of_a_lost_interval(case):
    mean, scale = case[:2]
    lo, hi = ends(case)
    assert is_lost(lo, hi, mean)
    level = Decimal(-0.5 * np.log(2.0 * np.pi))
    expected = digits(lo, hi, mean, scale, lambda x: level - x * x / 2)
    np.testing.assert_allclose(log_lost_normal(lo, hi, mean, scale), expected, rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("nu", [2.5, 40.0])
def test_student_mass_of_a_lost_interval(case, nu):
    mean, scale = case[:2]
    lo, hi = ends(case)

    level = Decimal(gammaln(0.5 * nu + 0.5) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi))

    def log_density(x: Decimal) -> Decimal:
        return level - Decimal(0.5 * nu + 0.5) * (1 + x * x / Decimal(nu)).ln()

    expected = digits(lo, hi, mean, scale, log_density)
    np.testing.assert_allclose(log_lost_student(nu, lo, hi, mean, scale), expected, rtol=1e-9)


def test_wide_and_near_intervals_are_not_lost():
    assert not is_lost(-1.0, 1.0, 0.0)
    assert not is_lost(-np.inf, 3.0, 0.0)
    assert not is_lost(3.0, 3.0, 0.0)
    assert not is_lost(1e3, 1e3 + 1e-6, 0.0)


def test_mass_is_finite_however_far():
    assert np.isfinite(log_lost_normal(0.0, 1e-9, 1e200, 1e-9))
