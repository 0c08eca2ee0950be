"""What the rounded normals promise beyond the contract: units, far tails, truncation, large whole numbers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from bayesjpt.families import features, registry
from bayesjpt.families.record import OK
from tests.families.examples import CHANGE, COUNT, SIZE, UNSCALED, Example, constants_of, draw_once
from tests.families.rounded import RoundedNormal

PROMISED = 1e-10
TINY = 1e-12
NEAR = 0.06
"""A start corrects for the rounding as if the density were smooth at the truncation point."""


def _scaled(example: Example, x: float) -> float:
    return (x - example.column.location) / example.column.scale


@pytest.mark.parametrize(("name", "column"), [("rounded_normal", CHANGE), ("truncated_rounded_normal", SIZE)])
@pytest.mark.parametrize(("variance", "mu"), [(2.0, 0.3), (0.01, -0.4), (900.0, -40.0)])
def test_every_answer_in_scaled_units_is_that_of_the_plain_units(name, column, variance, mu):
    scaled = Example(name, column, (variance, mu), 0.0, 0.0)
    plain = dataclasses.replace(column, location=0.0, scale=1.0)
    raw = Example(name, plain, (variance * column.scale**2, mu * column.scale + column.location), 0.0, 0.0)
    x = np.arange(0.0, 30.0)
    z = (x - column.location) / column.scale
    np.testing.assert_allclose(scaled.log_density(z), raw.log_density(x), rtol=PROMISED)
    np.testing.assert_allclose(scaled.log_density(z), scaled.reference().logpmf(z), rtol=1e-9)
    for lo, hi in ((0.0, 7.0), (2.0, np.inf), (-np.inf, 5.0), (3.0, 3.0)):
        ends = _scaled(scaled, lo), _scaled(scaled, hi)
        assert scaled.log_mass(*ends) == pytest.approx(raw.log_mass(lo, hi), rel=PROMISED, abs=TINY)
        expected = (raw.moment(1, lo, hi) - column.location) / column.scale
        assert scaled.moment(1, *ends) == pytest.approx(expected, rel=1e-9, abs=TINY)
        spread = raw.moment(2, lo, hi) - raw.moment(1, lo, hi) ** 2
        assert scaled.moment(2, *ends) - scaled.moment(1, *ends) ** 2 == pytest.approx(
            spread / column.scale**2, rel=1e-7, abs=1e-9
        )
        assert scaled.mode(*ends) == pytest.approx(_scaled(scaled, raw.mode(lo, hi)), abs=TINY)


@pytest.mark.parametrize("variance", [1e-6, 0.3, 1e6])
def test_whole_numbers_however_far_out_have_finite_mass(variance):
    for name, column in (("rounded_normal", CHANGE), ("truncated_rounded_normal", SIZE)):
        example = Example(name, column, (variance, 0.2), 0.0, 0.0)
        x = np.array([0.0, 1.0, 1e3, 1e9, 2.0**53])
        assert np.isfinite(example.log_density((x - column.location) / column.scale)).all()


def test_fractions_have_no_mass():
    example = Example("rounded_normal", CHANGE, (2.0, 0.0), 0.0, 0.0)
    assert (example.log_density((np.array([0.5, 1e6 + 0.25]) - 2.5) / 4.0) == -np.inf).all()


@pytest.mark.parametrize("alpha", [3.0, 30.0, 1e4, 1e8])
def test_far_below_the_truncation_the_family_is_a_geometric(alpha):
    decay = 0.2
    scale = alpha / decay  # the slope of the normal's tail at the edge is alpha / scale
    example = Example("truncated_rounded_normal", COUNT, (scale**2, -0.5 - alpha * scale), 0.0, 0.0)
    z = np.arange(20.0)
    expected = -decay * z + math.log(-math.expm1(-decay))
    tolerance = 10.0 / alpha**2 * (1.0 + z.max()) + 1e-7
    np.testing.assert_allclose(example.log_density(z), expected, atol=tolerance)
    assert math.fsum(np.exp(example.log_density(np.arange(400.0)))) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("lo", [-400.0, 100.0, 2500.0])
@pytest.mark.parametrize("length", [40.0, 5000.0, np.inf])
def test_moments_of_many_cells_agree_with_a_sum(lo, length):
    example = Example("rounded_normal", UNSCALED, (3e5, 300.4), 0.0, 0.0)
    values = np.arange(lo, min(lo + length, 9000.0) + 1.0)
    log_mass = RoundedNormal(3e5, 300.4, UNSCALED).logpmf(values)
    mass = np.exp(log_mass - log_mass.max())
    mean = (mass * values).sum() / mass.sum()
    assert example.moment(1, lo, lo + length) == pytest.approx(mean, rel=1e-10)
    spread = (mass * (values - mean) ** 2).sum() / mass.sum()
    got = example.moment(2, lo, lo + length) - example.moment(1, lo, lo + length) ** 2
    assert got == pytest.approx(spread, rel=1e-8)


def test_start_of_the_truncated_family_matches_the_moments(rng):
    family = registry.family("truncated_rounded_normal")
    x = np.rint(RoundedNormal(9.0, -1.0, COUNT).rvs(20_000, rng))
    start = Example("truncated_rounded_normal", COUNT, tuple(features.initial_theta(family, COUNT, x)), 0.0, 0.0)
    mean, second = (start.moment(k, -np.inf, np.inf) for k in (1, 2))
    assert mean == pytest.approx(x.mean(), rel=NEAR)
    assert second - mean**2 == pytest.approx(x.var(), rel=NEAR)


def test_a_start_learned_from_other_rows_is_left_at_the_first_draw(rng):
    # without the outlier: its slice of log variance would reach from 1e-2 to 1e10
    family = registry.family("rounded_normal")
    x = np.append(np.rint(rng.normal(30.0, 3.0, 600)), 4_000.0)
    theta = np.array([(3.0 / CHANGE.scale) ** 2, (30.0 - CHANGE.location) / CHANGE.scale])
    assert draw_once(family, CHANGE, x, family.priors["default"](CHANGE, theta), theta, rng) == OK
    assert theta[0] == pytest.approx(x.var() / CHANGE.scale**2, rel=0.3)


def test_a_chain_where_rare_values_are_far_away_is_not_taken_to_the_moments(rng):
    # the surrogate is 100 nats and more wrong about so many zeros; the rows themselves prefer a variance above theirs
    family = registry.family("rounded_normal")
    x, count = np.array([0.0, 1.0, 30.0]), np.array([988_000.0, 10_000.0, 2_000.0])
    mean = count @ x / count.sum()
    moments, mode = count @ (x - mean) ** 2 / count.sum(), 1.834

    def log_likelihood(variance):
        ends = (x[:, None] + (-0.5, 0.5) - mean) / math.sqrt(variance)
        return float(count @ (log_ndtr(-ends[:, 0]) + np.log1p(-np.exp(log_ndtr(-ends[:, 1]) - log_ndtr(-ends[:, 0])))))

    assert log_likelihood(mode) > log_likelihood(moments) + 10.0
    constants = constants_of(family, CHANGE)
    theta = np.array([mode / CHANGE.scale**2, (mean - CHANGE.location) / CHANGE.scale])
    hyper = family.priors["default"](CHANGE, theta)
    z = features.to_units(family, CHANGE, x)
    assert family.draw_from_values(z, count, hyper, constants, theta, rng) == OK
    assert log_likelihood(theta[0] * CHANGE.scale**2) > log_likelihood(moments) + 10.0
