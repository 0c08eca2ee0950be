"""What families promise of the predictive density: the density of a further value, averaged over the posterior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

from bayesjpt.families import features, registry
from bayesjpt.families.record import Family
from bayesjpt.table.schema import Column
from tests import examples as ex
from tests import naive
from tests.families.examples import constants_of
from tests.families.grid import grid_posterior
from tests.families.test_contract_posterior import (
    CASES,
    CATEGORICAL_CASES,
    INTEGRATED,
    X_COUNT,
    X_POSITIVE,
    X_REAL,
    _concentration,
    _entries,
    _has_zeros,
    _name,
)

ROUNDING = 1e-9
FURTHER = {"real": (*X_REAL, -3.0, 12.0), "positive": (*X_POSITIVE, 0.5, 30.0), "integer": (*X_COUNT, 4.0, 12.0)}
BY_MEAN = {"categorical", "atom", "quantile", "bernoulli"}
BY_PREDICTIVE = {"normal", "exponential", "poisson", "geometric", "gamma"}
INTEGRATED_OUT = [case for case in CASES if case[0] in BY_PREDICTIVE and not _has_zeros(case)]
WITH_ZEROS = [case for case in CASES if case[0] in BY_PREDICTIVE and _has_zeros(case)]


def further(column: Column) -> tuple[float, ...]:
    return FURTHER["positive" if column.base == "real" and column.support[0] == 0.0 else column.base]


def log_predictive(family: Family, column: Column, stats, hyper, theta, x) -> np.ndarray:
    """Return the log densities of further values, in the user's units, by the family's slots."""
    constants = constants_of(family, column)
    z = features.to_units(family, column, np.array(x, np.float64))
    out, coefficients = np.empty(len(x)), np.full(theta.size + constants.size + 4, np.nan)
    assert family.predictive is not None
    assert family.fill_log_predictive is not None
    family.predictive(stats, hyper, constants, theta, coefficients)
    family.fill_log_predictive(z, features.auxiliary(family, z, constants), coefficients, out)
    return out - (np.log(column.scale) if column.base == "real" else 0.0)


def given(case) -> tuple[Family, Column, np.ndarray, np.ndarray, np.ndarray]:
    """Return family, column, statistics, hyperparameters and start of a case."""
    name, column, prior, x = case
    family = registry.family(name)
    start = features.initial_theta(family, column, np.array(x), constants_of(family, column))
    stats = features.statistics(family, column, np.array(x), constants_of(family, column))
    return family, column, stats, family.priors[prior](column, start), start


def test_these_families_can_be_integrated_out():
    assert {family.name for family in registry.FAMILIES if family.predicts_by_mean} == BY_MEAN
    assert {family.name for family in registry.FAMILIES if family.predictive is not None} == BY_PREDICTIVE


@pytest.mark.parametrize("case", [c for c in INTEGRATED_OUT if c[0] != "gamma"], ids=_name)
def test_a_predictive_density_is_the_average_over_the_posterior_on_a_grid(case):
    family, column, stats, hyper, start = given(case)
    grid = grid_posterior(case)
    theta = np.array([axis.ravel() for axis in np.meshgrid(*grid.axes, indexing="ij")])
    x = further(column)
    density = [np.exp(naive.family_log_density(family.name, column, theta, value)) for value in x]
    expected = np.array([np.sum(grid.mass.ravel() * each) for each in density])
    np.testing.assert_allclose(np.exp(log_predictive(family, column, stats, hyper, start, x)), expected, INTEGRATED)


@pytest.mark.parametrize("case", [c for c in INTEGRATED_OUT if c[0] == "gamma"], ids=_name)
def test_the_rate_of_a_gamma_is_integrated_out_given_its_shape(case):
    family, column, stats, hyper, _ = given(case)
    grid = grid_posterior(case)
    at = int(grid.mass.sum(axis=1).argmax())
    shape = grid.axes[0][at]
    # of all rates above the lowest, which cuts through cells of the grid
    rate = np.geomspace(max(hyper[6] * np.sqrt((shape + 1.0) * (shape + 2.0)), 1e-4), 1e3, 200_001)
    theta = np.array([np.full(rate.size, shape), rate])
    log_share = scipy.stats.gamma.logpdf(rate, hyper[3], scale=shape ** hyper[5] / hyper[4]) + np.log(rate)
    for value in case[3]:
        log_share += naive.family_log_density("gamma", column, theta, value)
    share = np.exp(log_share - scipy.special.logsumexp(log_share))
    share[0] *= 0.5  # trapezoids
    share /= share.sum()
    x = further(column)
    density = [np.exp(naive.family_log_density("gamma", column, theta, value)) for value in x]
    found = log_predictive(family, column, stats, hyper, np.array([shape, np.nan]), x)
    np.testing.assert_allclose(np.exp(found), [np.sum(share * each) for each in density], INTEGRATED)


@pytest.mark.parametrize("case", [c for c in INTEGRATED_OUT if c[0] != "gamma"], ids=_name)
def test_predictions_multiply_to_the_evidence(case):
    family, column, stats, hyper, start = given(case)
    constants, jacobian = constants_of(family, column), np.log(column.scale) if column.base == "real" else 0.0
    assert family.log_evidence is not None
    for x in further(column):
        more = stats + features.statistics(family, column, np.array([x]), constants)
        ratio = family.log_evidence(more, hyper, constants, start) - family.log_evidence(stats, hyper, constants, start)
        found = log_predictive(family, column, stats, hyper, start, (x,))[0]
        assert found == pytest.approx(ratio - jacobian, rel=ROUNDING, abs=ROUNDING)


@pytest.mark.parametrize("floor", [0.2, 0.02, 0.002])
def test_a_normal_predicts_with_a_floor_near_the_variance_and_far_below(floor):
    family, column, stats, hyper, start = given(INTEGRATED_OUT[0])
    hyper[-1] = floor
    z = np.linspace(-4.0, 4.0, 9)
    values = z * column.scale + column.location
    found = log_predictive(family, column, stats, hyper, start, values) + np.log(column.scale)
    ratio = [
        family.log_evidence(stats + np.array([1.0, x, x * x]), hyper, np.empty(0), start)  # type: ignore[misc]
        - family.log_evidence(stats, hyper, np.empty(0), start)  # type: ignore[misc]
        for x in z
    ]
    np.testing.assert_allclose(found, ratio, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("least", [0.02, 0.4, 2.0, 30.0])
def test_an_exponential_predicts_with_a_least_rate_below_and_above_its_mass(least):
    family, column, stats, hyper, start = given(next(case for case in INTEGRATED_OUT if case[0] == "exponential"))
    hyper[-1] = least
    z = np.linspace(0.5, 9.0, 9)
    found = log_predictive(family, column, stats, hyper, start, z * column.scale) + np.log(column.scale)
    constants = family.constants(column)
    ratio = [
        family.log_evidence(stats + np.array([1.0, x, 0.0]), hyper, constants, start)  # type: ignore[misc]
        - family.log_evidence(stats, hyper, constants, start)  # type: ignore[misc]
        for x in z
    ]
    np.testing.assert_allclose(found, ratio, rtol=ROUNDING, atol=ROUNDING)


def test_a_gamma_predicts_at_shapes_beyond_all_cancellation():
    family, column, _, hyper, _ = given(next(case for case in INTEGRATED_OUT if case[0] == "gamma"))
    for shape in (1e-3, 1.0, 1e3, 1e6):
        n, mean = 20.0, 2.0
        stats = np.array([n, n * mean, n * math.log(mean), 0.0])
        a, b = hyper[3] + n * shape, hyper[4] / shape ** hyper[5] + n * mean
        x = mean * (1.0 + np.array([-0.5, 0.0, 0.5]) / np.sqrt(shape + 1.0))
        z = x / column.scale
        expected = (shape - 1.0) * np.log(z) - scipy.special.betaln(a, shape) - shape * np.log(b)
        expected -= (a + shape) * np.log1p(z / b) + np.log(column.scale)
        unbounded = np.array([*hyper[:6], 0.0])
        found = log_predictive(family, column, stats, unbounded, np.array([shape, np.nan]), x)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("case", WITH_ZEROS, ids=_name)
def test_recorded_zeros_are_not_known_neither_before_nor_as_the_next_value(case):
    family, column, stats, hyper, start = given(case)
    assert np.isnan(log_predictive(family, column, stats, hyper, start, (2.0,)))
    assert np.isnan(log_predictive(family, column, 0.0 * stats, hyper, start, (0.0,)))


@pytest.mark.parametrize(("name", "column", "x"), CATEGORICAL_CASES)
def test_the_start_of_a_simplex_is_its_posterior_mean(name, column, x):
    family = registry.family(name)
    alpha = _concentration(name, column, x)
    counts = np.bincount(_entries(name, column, x), minlength=alpha.size).astype(float)
    theta = np.empty(alpha.size)
    family.initial(counts, alpha, constants_of(family, column), theta)
    np.testing.assert_allclose(theta, (alpha + counts) / (alpha + counts).sum(), rtol=ROUNDING)


def test_the_start_of_a_bernoulli_is_its_posterior_mean():
    family = registry.family("bernoulli")
    hyper, theta = family.priors["default"](ex.FLAG, np.array([0.5])), np.empty(1)
    family.initial(np.array([3.0, 5.0]), hyper, family.constants(ex.FLAG), theta)
    assert theta[0] == pytest.approx((hyper[0] + 5.0) / (hyper.sum() + 8.0), rel=ROUNDING)
