"""What every family promises of learning: statistics, start, posterior draws and evidence.

Draws are compared with the posterior on a grid of parameters, made of SciPy's likelihood of the raw values and of the
prior as `Family.parameters` describes it to PyMC; so the two descriptions of a prior are compared as well.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

from bayesjpt.families import dispatch, features, registry
from bayesjpt.families.record import INVALID, OK
from tests.families.examples import COARSE, COUNT, EXAMPLES, LABELS, LEVELS, POSITIVE, REAL, TIED, fill_chain, identify
from tests.families.grid import grid_posterior
from tests.statistics import LARGEST_Z, batch_z, cdf_deviation, dkw_bound

N_DRAW = 60_000
SUMMED = 1e-12
INTEGRATED = 1e-4
"""The grid's midpoint rule loses some digits at a floor of the variance."""
PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)

X_REAL = (1.2, 3.4, 3.5, 4.1, 6.0, 2.2)
X_POSITIVE = (1.0, 2.5, 3.0, 0.5, 4.5, 8.0)
X_COUNT = (0.0, 3.0, 2.0, 2.0, 7.0, 1.0)
# name, column, prior, values in the user's units
CASES = (
    ("normal", REAL, "default", X_REAL),
    ("normal", REAL, "abda", X_REAL),
    ("normal", TIED, "default", (2.0,) * 5),
    ("normal", REAL, "default", ()),
    ("gamma", POSITIVE, "default", X_POSITIVE),
    ("gamma", POSITIVE, "abda", X_POSITIVE),
    ("gamma", COARSE, "default", (2.0, 2.0, 2.0, 1.0, 2.0)),
    ("gamma", POSITIVE, "default", (0.0, 0.0, *X_POSITIVE)),
    ("gamma", POSITIVE, "default", (0.0, 0.0, 0.0)),
    ("gamma", POSITIVE, "abda", (0.0, 1.0)),
    ("gamma", POSITIVE, "default", ()),
    ("exponential", POSITIVE, "default", X_POSITIVE),
    ("exponential", POSITIVE, "abda", (0.0, 0.0, *X_POSITIVE)),
    ("exponential", POSITIVE, "default", (0.0, 0.0, 0.0, 0.0)),
    ("exponential", POSITIVE, "default", ()),
    ("poisson", COUNT, "default", X_COUNT),
    ("poisson", COUNT, "abda", X_COUNT),
    ("poisson", COUNT, "default", ()),
    ("geometric", COUNT, "default", X_COUNT),
    ("geometric", COUNT, "abda", X_COUNT),
    ("geometric", COUNT, "default", ()),
)
CATEGORICAL_CASES = ((LABELS, (0.0, 1.0, 1.0, 3.0, 0.0)), (LEVELS, (5.0, 9.0, 9.0, 5.0, 1.0, 5.0)), (LABELS, ()))


def _name(case) -> str:
    name, column, prior, x = case
    return f"{name}-{column.name}-{prior}-{len(x)}rows"


each_case = pytest.mark.parametrize("case", CASES, ids=_name)
with_rows = pytest.mark.parametrize("case", [case for case in CASES if case[3]], ids=_name)
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=identify)


def _chain(case, rng, x=None) -> np.ndarray:
    """Return successive draws of the parameters, (N_DRAW, n_theta), from statistics of x or of the case itself."""
    name, column, prior, own = case
    family = registry.family(name)
    start = features.initial_theta(family, column, np.array(own))
    hyper = family.priors[prior](column, start)
    stats = features.statistics(family, column, np.array(own if x is None else x))
    out = np.empty((N_DRAW, start.size))
    status = fill_chain(registry.number(name), stats, hyper, family.constants(column), start, rng, out)
    assert status == OK
    return out


def _z_scores(case, draws: np.ndarray) -> list[float]:
    """Return z-scores of the draws' shares below quantiles of the grid posterior, one list over all parameters."""
    grid = grid_posterior(case)
    scores = []
    for j in range(draws.shape[1]):
        scores += [batch_z(draws[:, j] <= at, p) for at, p in grid.marginal_quantiles(j, PROBABILITIES)]
    if draws.shape[1] == 2:  # and that both are jointly below their medians
        (first, _), (second, _) = (grid.marginal_quantiles(j, (0.5,))[0] for j in (0, 1))
        scores.append(batch_z((draws[:, 0] <= first) & (draws[:, 1] <= second), grid.joint(first, second)))
    return scores


def test_every_family_has_posterior_cases():
    assert {case[0] for case in CASES} | {"categorical"} == {family.name for family in registry.FAMILIES}


@each_case
def test_draws_follow_the_grid_posterior(case, rng):
    assert max(map(abs, _z_scores(case, _chain(case, rng)))) < LARGEST_Z


@with_rows
def test_draws_from_statistics_with_one_row_more_are_caught(case, rng):
    wrong = _chain(case, rng, x=(*case[3], case[3][-1]))
    assert max(map(abs, _z_scores(case, wrong))) > LARGEST_Z


@pytest.mark.parametrize(("column", "x"), CATEGORICAL_CASES)
def test_categorical_draws_have_beta_marginals(column, x, rng):
    draws = _chain(("categorical", column, "default", x), rng)
    values = np.asarray(column.levels or range(column.n_label), np.float64)
    alpha = 2.0 * np.array(column.frequencies) + (np.array(x)[:, None] == values).sum(axis=0)
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=SUMMED)
    for k in range(values.size):
        marginal = scipy.stats.beta(alpha[k], alpha.sum() - alpha[k])
        assert cdf_deviation(draws[:, k], marginal.cdf) < dkw_bound(N_DRAW)
    wrong = scipy.stats.beta(alpha[0] + 1.0, alpha.sum() - alpha[0])
    assert cdf_deviation(draws[:, 0], wrong.cdf) > dkw_bound(N_DRAW)


@pytest.mark.parametrize("case", [c for c in CASES if c[3] and registry.family(c[0]).log_marginal], ids=_name)
def test_log_marginal_differs_between_priors_as_the_integral_does(case):
    name, column, prior, x = case
    family = registry.family(name)
    stats = features.statistics(family, column, np.array(x))
    start = features.initial_theta(family, column, np.array(x))
    got, expected = [], []
    for other in (prior, "abda" if prior == "default" else "default"):
        hyper = family.priors[other](column, start)
        got.append(family.log_marginal(stats, hyper, family.constants(column)))
        expected.append(grid_posterior((name, column, other, x)).log_evidence)
    assert got[0] - got[1] == pytest.approx(expected[0] - expected[1], abs=INTEGRATED)


@pytest.mark.parametrize(("column", "x"), CATEGORICAL_CASES)
def test_categorical_log_marginal_is_a_product_of_predictions(column, x):
    family = registry.family("categorical")
    alpha = family.priors["default"](column, np.empty(0))
    values = list(column.levels or range(column.n_label))
    counts, expected = np.zeros(alpha.size), 0.0
    for value in x:
        at = values.index(value)
        expected += math.log((alpha[at] + counts[at]) / (alpha.sum() + counts.sum()))
        counts[at] += 1.0
    got = family.log_marginal(counts, alpha, family.constants(column))
    assert got == pytest.approx(expected, abs=SUMMED)


@each_example
def test_statistics_add_over_splits(example, rng):
    family, column = example.family, example.column
    x = example.reference().rvs(size=200, random_state=rng) * (column.scale if column.base == "real" else 1.0)
    whole = features.statistics(family, column, x)
    parts = sum(features.statistics(family, column, part) for part in np.split(x, (0, 1, 77)))
    np.testing.assert_allclose(parts, whole, rtol=SUMMED)


@each_example
def test_dispatched_update_start_and_statistics_equal_the_familys(example, rng):
    family, column, number = example.family, example.column, example.number
    x = example.reference().rvs(size=30, random_state=rng) * (column.scale if column.base == "real" else 1.0)
    z = features.to_units(family, column, x)
    aux = features.auxiliary(family, z, example.constants)
    stats = np.zeros(family.n_stats(column))
    dispatch.accumulate(number, z, aux, np.arange(z.size, dtype=np.int32), example.constants, stats)
    np.testing.assert_array_equal(stats, features.statistics(family, column, x))
    start = features.initial_theta(family, column, x)
    hyper = family.priors["default"](column, start)
    other = np.empty_like(start)
    dispatch.initial(number, stats, hyper, example.constants, other)
    np.testing.assert_array_equal(other, start)
    seed = rng.integers(2**32)
    assert dispatch.draw_posterior(number, stats, hyper, example.constants, other, np.random.default_rng(seed)) == OK
    assert family.draw_posterior(stats, hyper, example.constants, start, np.random.default_rng(seed)) == OK
    np.testing.assert_array_equal(other, start)


@each_example
def test_parameters_and_hyperparameters_match_their_names(example):
    family, column = example.family, example.column
    for prior in family.priors.values():
        hyper = prior(column, example.parameters)
        if family.parameters[0].constraint == "simplex":
            assert hyper.size == family.n_theta(column) == family.n_stats(column)
            named = {family.hyper_names[0]: hyper}
        else:
            assert hyper.size == len(family.hyper_names)
            assert len(family.parameters) == family.n_theta(column)
            named = dict(zip(family.hyper_names, hyper, strict=True))
        theta = dict(zip((p.name for p in family.parameters), example.parameters, strict=False))
        for parameter in family.parameters:
            assert all(np.all(np.isfinite(a) | (a == np.inf)) for a in parameter.arguments(named, theta))


@each_example
def test_update_with_a_nan_hyperparameter_is_refused_and_changes_nothing(example, rng):
    family, column = example.family, example.column
    hyper = family.priors["default"](column, example.parameters)
    for bad in range(hyper.size):
        broken = hyper.copy()
        broken[bad] = np.nan
        theta = example.parameters
        stats = features.statistics(family, column, np.array([1.0, 2.0]))
        assert family.draw_posterior(stats, broken, example.constants, theta, rng) == INVALID
        np.testing.assert_array_equal(theta, example.parameters)


@pytest.mark.parametrize("name", ["gamma", "exponential"])
def test_slice_update_from_an_invalid_state_is_refused(name, rng):
    family = registry.family(name)
    stats = features.statistics(family, POSITIVE, np.array([0.0, 1.0]))
    theta = np.full(family.n_theta(POSITIVE), np.nan)
    hyper = family.priors["default"](POSITIVE, theta)
    assert family.draw_posterior(stats, hyper, family.constants(POSITIVE), theta, rng) == INVALID
