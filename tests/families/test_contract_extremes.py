"""What every family promises at the limits: few rows, ties, zeros, tiny and huge units; no NaN, no invalid draw."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.families import dispatch, features, registry
from bayesjpt.families.record import OK
from tests.families.examples import (
    ANSWER,
    ATOMS,
    CHANGE,
    CONSTANT,
    COUNT,
    EXAMPLES,
    LABELS,
    LEVELS,
    LISTED,
    POSITIVE,
    REAL,
    SIMPLEX,
    SIZE,
    UNSCALED,
    constants_of,
    draw_chain,
    fill_chain,
    fill_chain_from_values,
    fill_samples,
)
from tests.statistics import LARGEST_Z

COLUMNS = {"normal": (REAL,), "gamma": (POSITIVE,), "exponential": (POSITIVE,), "poisson": (COUNT,)}
COLUMNS |= {"geometric": (COUNT,), "categorical": (LABELS, LEVELS)}
COLUMNS |= {"negative_binomial": (COUNT,), "bernoulli": (ANSWER,), "rounded_normal": (CHANGE, UNSCALED)}
COLUMNS |= {"truncated_rounded_normal": (COUNT, SIZE)}
COLUMNS |= {"lognormal": (POSITIVE,), "student_t": (REAL,), "uniform": (REAL, CONSTANT), "atom": (ATOMS,)}
COLUMNS |= {"quantile": (REAL, COUNT), "ordinal": (LEVELS, LABELS), "label": (LABELS,)}
COLUMNS |= {"spline": (REAL, COUNT, CHANGE)}
PAIRS = [(family, column) for family in registry.FAMILIES for column in COLUMNS[family.name]]
each_pair = pytest.mark.parametrize(("family", "column"), PAIRS, ids=lambda part: part.name)

ROWS = {
    "none": [],
    "one": [5.0],
    "one_zero": [0.0],
    "zeros_alone": [0.0] * 50,
    "ties": [5.0] * 1000,
    "many": [1.0, 2.0, 5.0, 9.0] * 50,
    "zeros_and_ties": [0.0, 5.0] * 20,
}
MIXED_STATISTICS = {
    "normal": ([0.0, 0.0, 0.0], [1e6, 0.0, 0.0], [1e6, 1e-6, 1e-18], [1e6, 1e18, 1e30], [1.0, 1e12, 1e24]),
    "gamma": (
        [0.0, 0.0, 0.0, 0.0],
        [1e6, 1e-6, 1e6 * math.log(1e-12), 0.0],
        [1e6, 1e18, 1e6 * math.log(1e12), 0.0],
        [1e6, 1e18, 0.0, 1e6],
        [0.0, 0.0, 0.0, 1e6],
        [1.0, 1e-12, math.log(1e-12), 1.0],
        [1.0, 0.0, 0.0, 0.0],
    ),
    "exponential": ([0.0, 0.0, 0.0], [1e6, 0.0, 0.0], [1e6, 1e18, 0.0], [1.0, 1e-12, 1e6], [0.0, 0.0, 1e6]),
    "poisson": ([0.0, 0.0], [1e6, 0.0], [1e6, 1e18], [1.0, 1e12]),
    "geometric": ([0.0, 0.0], [1e6, 0.0], [1e6, 1e18], [1.0, 1e12]),
    "categorical": ([0.0] * 4, [1e6, 0.0, 0.0, 0.0], [1e6] * 4),
    "bernoulli": ([0.0, 0.0], [1e6, 0.0], [0.0, 1e12], [1e6, 1e6]),
    "lognormal": (
        [0.0, 0.0, 0.0, 0.0],
        [1e6, 0.0, 0.0, 0.0],
        [1e6, -7e8, 4.9e11, 0.0],
        [1e6, 2.8e7, 7.84e8, 1.0],
        [1e6, 2.8e7, 7.84e8, 1e6],
        [0.0, 0.0, 0.0, 1e6],
        [1.0, -690.0, 476100.0, 1.0],
    ),
    "atom": ([0.0] * 4, [1e6, 0.0, 0.0, 0.0], [1e6] * 4),
    "ordinal": ([0.0] * 4, [1e6, 0.0, 0.0, 0.0], [0.0, 1e6, 0.0, 1.0], [1e6] * 4, [1e9, 0.0, 0.0, 1e9]),
    "quantile": ([0.0] * 4, [1e6, 0.0, 0.0, 0.0], [1e6] * 4),
}
MIXED_VALUES = (  # values and how often each occurs
    ([0.0], [1e6]),
    ([7.0], [1e9]),
    ([0.0, 1e15], [1e6, 1.0]),
    ([9e15], [1.0]),
    ([9e15, 9e15 - 2.0], [1e6, 1e6]),
    ([0.0, 1.0], [1e9, 1.0]),
    ([0.0, 1e6, 2e6, 3e12], [5.0, 1e6, 0.0, 3.0]),
)


def _valid(family, theta: np.ndarray, hyper: np.ndarray) -> bool:
    if not np.isfinite(theta).all():
        return False
    if family.name in SIMPLEX:
        return (theta > 0.0).all() and abs(theta.sum() - 1.0) < 1e-12
    for parameter, value in zip(family.parameters, theta, strict=True):
        if parameter.constraint in ("positive", "unit") and not value > 0.0:
            return False
        if parameter.constraint == "unit" and not value < 1.0:
            return False
    if theta.size == 0:
        return True
    named = dict(zip(family.hyper_names, hyper, strict=True))
    if "nu_floor" in named and theta[2] < named["nu_floor"]:
        return False
    if family.name == "exponential" and theta[0] < named["least"]:
        return False
    return named.get("floor", 0.0) <= theta[0] <= named.get("cap", np.inf)


@each_pair
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("prior", ["default", "abda"])
def test_start_is_valid_and_a_chain_goes_on_from_it(family, column, rows, prior, rng):
    x = np.array(ROWS[rows])
    if column.base == "category":
        x = np.minimum(x, column.n_label - 1.0)
    start = features.initial_theta(family, column, x, constants_of(family, column))
    hyper = family.priors["default"](column, start)
    assert _valid(family, start, hyper)
    if "cap" in family.hyper_names:
        assert start[0] < hyper[family.hyper_names.index("cap")]
    hyper = family.priors[prior](column, start)
    draws = np.empty((200, start.size))
    assert draw_chain(family, column, x, hyper, start, rng, draws) == OK
    assert all(_valid(family, theta, hyper) for theta in draws)


def test_start_of_gamma_is_near_the_maximum_likelihood_estimate(rng):
    gamma = registry.family("gamma")
    x = 2.0 * rng.gamma(7.0, 1.0 / 3.0, 20_000)
    start = features.initial_theta(gamma, dataclasses.replace(POSITIVE, resolution=1e-6), x)
    np.testing.assert_allclose(start, [7.0, 3.0], rtol=0.05)


@pytest.mark.parametrize(("family", "column"), [(f, c) for f, c in PAIRS if f.draw_from_values], ids=lambda p: p.name)
@pytest.mark.parametrize("prior", ["default", "abda"])
def test_draws_from_extreme_values_are_valid(family, column, prior, rng):
    for values, counts in MIXED_VALUES:
        z, count = features.to_units(family, column, np.array(values)), np.array(counts)
        theta = features.initial_theta(family, column, np.repeat(values, np.minimum(counts, 100.0).astype(int)))
        hyper = family.priors[prior](column, theta)
        draws = np.empty((100, theta.size))
        number, constants = registry.number(family.name), family.constants(column)
        assert fill_chain_from_values(number, z, count, hyper, constants, theta, rng, draws) == OK
        assert all(_valid(family, draw, hyper) for draw in draws)


@pytest.mark.parametrize(("family", "column"), [(f, c) for f, c in PAIRS if f.draw_posterior], ids=lambda p: p.name)
@pytest.mark.parametrize("prior", ["default", "abda"])
def test_draws_from_extreme_statistics_are_valid(family, column, prior, rng):
    for stats in MIXED_STATISTICS[family.name]:
        constants = constants_of(family, column)
        stats = np.array(stats)[: family.n_stats(constants)]
        n = family.n_theta(constants)
        theta = np.full(n, 1.0 / n)
        hyper = family.priors["default"](column, theta)
        family.initial(stats, hyper, constants, theta)
        assert _valid(family, theta, hyper)
        hyper = family.priors[prior](column, theta)
        draws = np.empty((100, theta.size))
        status = fill_chain(registry.number(family.name), stats, hyper, constants, theta, rng, draws)
        assert status == OK
        assert all(_valid(family, draw, hyper) for draw in draws)


@pytest.mark.parametrize("shape", [0.02, 3.0, 1e4, 1e8])
@pytest.mark.parametrize("n", [1e2, 1e6])
def test_gamma_shape_is_found_without_cancellation_from_many_rows(shape, n, rng):
    gamma = registry.family("gamma")
    # statistics as expected under the shape and mean 1
    series = 1.0 / (2.0 * shape) + 1.0 / (12.0 * shape**2)
    spread = series if shape > 1e3 else math.log(shape) - scipy.special.digamma(shape)
    stats = np.array([n, n, -n * spread, 0.0])
    hyper = np.array([math.log(shape), 5.0, np.inf, 2.0, 2.0, 1.0, 0.0])
    draws = np.empty((4000, 2))
    assert (
        fill_chain(
            registry.number("gamma"), stats, hyper, gamma.constants(POSITIVE), np.array([shape, shape]), rng, draws
        )
        == OK
    )
    log_draws = np.log(draws)
    error = math.sqrt(2.0 / n)  # half of n is the information on log shape at large shapes, n at small ones
    assert abs(log_draws[:, 0].mean() - math.log(shape)) < 0.5 * error + 1e-4
    assert 0.5 * error < log_draws[:, 0].std() < 2.0 * error
    mean_rate = draws[:, 1] / draws[:, 0]
    assert abs(mean_rate.mean() - 1.0) < LARGEST_Z * mean_rate.std() / 20.0 + 4.0 / n


@settings(max_examples=50, deadline=None)
@given(data=st.data(), log_scale=st.floats(-12, 12))
@pytest.mark.parametrize("example", EXAMPLES[::2], ids=lambda example: example.name)
def test_no_answer_is_nan_over_24_decades(example, data, log_scale):
    family, column = example.family, example.column
    n_theta = len(example.theta)
    theta = 10.0 ** np.array(data.draw(st.lists(st.floats(-12, 12), min_size=n_theta, max_size=n_theta)))
    if family.name in ("normal", "rounded_normal", "truncated_rounded_normal", "lognormal", "student_t", "ordinal"):
        theta[1] *= data.draw(st.sampled_from([-1.0, 1.0]))
    elif family.name == "negative_binomial":
        theta[1] /= 1.0 + theta[1]
    elif family.name in ("geometric", "bernoulli"):
        theta = theta / (1.0 + theta)
    elif family.name in SIMPLEX:
        theta = theta / theta.sum()
    scale = 10.0**log_scale
    if column.base == "real":
        column = dataclasses.replace(column, scale=scale, resolution=scale * 10.0 ** data.draw(st.floats(-9, 0)))
    constants, number = constants_of(family, column), example.number
    z = np.array([0.0, 1.0, 2.0, 5.0]) if example.name in LISTED else np.array([0.0, 1e-12, 1.0, 7.0, 1e6, 1e12])
    prepared = example.room()
    family.coefficients(theta, constants, prepared)
    density = np.empty(z.size)
    family.fill_log_density(z, features.auxiliary(family, z, constants), prepared, density)
    assert not np.isnan(density).any()
    assert (density < np.inf).all()
    ends = data.draw(
        st.lists(st.sampled_from([-np.inf, -1.0, 0.0, scale, 3.0 * scale, 1.0, 9.0, np.inf]), min_size=2, max_size=2)
    )
    lo, hi = min(ends), max(ends)
    log_mass = dispatch.log_mass(number, lo, hi, theta, constants)
    assert log_mass <= 1e-12
    assert 0.0 <= dispatch.cdf(number, scale, theta, constants) <= 1.0
    if np.isfinite(lo) or np.isfinite(hi):
        assert lo <= dispatch.mode(number, lo, hi, theta, constants) <= hi
        first = dispatch.moment(number, 1, lo, hi, theta, constants)
        assert lo <= first <= hi
        variance = dispatch.moment(number, 2, lo, hi, theta, constants)
        assert 0.0 <= variance <= (0.5 * (hi - lo)) ** 2 * (1.0 + 1e-12)
    draws = np.empty(20)
    fill_samples(number, (float(lo), float(hi)), theta, constants, np.random.default_rng(1), draws)
    assert ((draws >= lo) & (draws <= hi)).all()
