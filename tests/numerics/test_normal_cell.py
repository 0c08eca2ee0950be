"""Masses of cells of a standard normal variable, from the bulk to where their edges are no longer apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate

from bayesjpt.numerics.normal_cell import edge_ratios, log_normal_cell, log_normal_width, log_tail_integral

PRECISE = 1e-12
STEP = 1e-5
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def _integral(near: float, width: float) -> float:
    top = min(width, 45.0 / max(near, 1.0))
    return scipy.integrate.quad(
        lambda s: math.exp(-s * (near + 0.5 * s)), 0.0, top, epsabs=0.0, epsrel=1e-13, limit=300
    )[0]


@pytest.mark.parametrize("near", [0.0, 1e-3, 0.3, 2.0, 4.9, 5.1, 20.0, 1e4, 1e8])
@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.5, 0.99, 1.01, 10.0, math.inf])
def test_tail_integral_agrees_with_quadrature(near, width):
    assert log_tail_integral(near, width) == pytest.approx(math.log(_integral(near, width)), abs=PRECISE)


@pytest.mark.parametrize("middle", [0.0, 0.4, 0.6, 3.0, 7.0, 30.0])
@pytest.mark.parametrize("half", [1e-3, 0.3, 0.5, 0.7, 3.0, 20.0])
def test_cell_agrees_with_its_two_sides(middle, half):
    near = middle - half
    if near >= 0.0:
        expected = math.log(_integral(near, 2.0 * half)) - 0.5 * near * near - _HALF_LOG_2PI
    else:
        expected = math.log(_integral(0.0, -near) + _integral(0.0, middle + half)) - _HALF_LOG_2PI
    got = log_normal_cell(middle, half, -0.5 * middle * middle)
    assert got == pytest.approx(expected, abs=PRECISE, rel=PRECISE)
    assert log_normal_width(near, 2.0 * half) == pytest.approx(expected, abs=PRECISE, rel=PRECISE)
    assert log_normal_width(-near - 2.0 * half, 2.0 * half) == pytest.approx(expected, abs=PRECISE, rel=PRECISE)


def test_cell_far_beyond_the_resolution_of_its_edges_has_mass():
    middle, half = 1e17, 0.5  # the next float beyond is 16 away
    near = middle - half
    expected = -0.5 * near * near - _HALF_LOG_2PI - math.log(near)
    assert log_normal_cell(middle, half, -0.5 * middle * middle) == pytest.approx(expected, rel=PRECISE)


@pytest.mark.parametrize("middle", [-4.0, -0.2, 0.1, 2.0, 9.0])
@pytest.mark.parametrize("half", [0.05, 0.5, 3.0])
def test_edge_ratios_are_the_slopes_of_the_log_mass(middle, half):
    def log_mass(shift, log_scale):
        a = (middle - half - shift) * math.exp(-log_scale)
        return log_normal_width(a, 2.0 * half * math.exp(-log_scale))

    first, second = edge_ratios(middle, half)
    by_mean = (log_mass(STEP, 0.0) - log_mass(-STEP, 0.0)) / (2.0 * STEP)
    by_scale = (log_mass(0.0, STEP) - log_mass(0.0, -STEP)) / (2.0 * STEP)
    assert first == pytest.approx(by_mean, rel=1e-7, abs=1e-8)
    assert second == pytest.approx(by_scale, rel=1e-7, abs=1e-8)


def test_edge_ratios_of_a_cell_without_visible_edges_are_finite():
    assert np.isfinite(edge_ratios(1e17, 0.5)).all()
