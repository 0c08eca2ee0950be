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
from bayesjpt.table.schema import Column
from tests.families.examples import (
    ANSWER,
    ATOMS,
    CHANGE,
    COARSE,
    COUNT,
    EXAMPLES,
    GRADES,
    LABELS,
    LEVELS,
    PIECES,
    POSITIVE,
    REAL,
    SIZE,
    TIED,
    constants_of,
    draw_chain,
    draw_once,
    identify,
    listed_values,
)
from tests.families.grid import grid_posterior
from tests.statistics import LARGEST_Z, batch_z, cdf_deviation, dkw_bound

N_DRAW = 60_000
SUMMED = 1e-12
REORDERED = 1e-9
"""Sums in another order move a slice's ends by rounding errors."""
INTEGRATED = 1e-4
"""The grid's midpoint rule loses some digits at a floor of the variance."""
N_PROPOSED = 4000
LARGEST_SPREAD = 0.5
"""Standard deviation of the evidence under proposed parameters, over its mean: where proposals are near the posterior,
it is well below 1."""
PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)

X_REAL = (1.2, 3.4, 3.5, 4.1, 6.0, 2.2)
X_POSITIVE = (1.0, 2.5, 3.0, 0.5, 4.5, 8.0)
X_COUNT = (0.0, 3.0, 2.0, 2.0, 7.0, 1.0)
X_CHANGE = (-3.0, 4.0, 1.0, 1.0, 9.0, -6.0, 2.0)
X_SPREAD = (-25.0, -10.0, 3.0, 8.0, 27.0) * 5
X_SIZE = (*(0.0,) * 9, *(1.0,) * 6, *(2.0,) * 3, 3.0, 3.0, 5.0)
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
    ("negative_binomial", COUNT, "default", X_COUNT),
    ("negative_binomial", COUNT, "abda", X_COUNT),
    ("negative_binomial", COUNT, "abda", (0.0, 0.0, 0.0)),
    ("negative_binomial", COUNT, "default", ()),
    ("rounded_normal", CHANGE, "default", X_CHANGE),
    ("rounded_normal", CHANGE, "abda", X_CHANGE),
    ("rounded_normal", CHANGE, "default", (3.0, 3.0, 3.0, 4.0)),
    ("rounded_normal", CHANGE, "default", X_SPREAD),
    ("truncated_rounded_normal", SIZE, "default", X_COUNT),
    ("truncated_rounded_normal", SIZE, "default", X_SIZE),
    ("truncated_rounded_normal", SIZE, "default", (0.0, 2.0, 6.0, 13.0, 31.0) * 5),
    ("truncated_rounded_normal", SIZE, "default", ()),
    ("ordinal", LEVELS, "default", (5.0, 9.0, 9.0, 5.0, 1.0, 5.0)),
    ("ordinal", LEVELS, "abda", (5.0, 2.0, 2.0, 5.0, 1.0)),
    ("ordinal", LEVELS, "default", (9.0,) * 6),
    ("ordinal", GRADES, "default", (3.0, 4.0, 4.0, 8.0, 25.0, 40.0)),
    ("ordinal", GRADES, "default", ()),
    ("lognormal", POSITIVE, "default", X_POSITIVE),
    ("lognormal", POSITIVE, "abda", X_POSITIVE),
    ("lognormal", COARSE, "default", (2.0, 2.0, 2.0, 1.0, 2.0)),
    ("lognormal", POSITIVE, "default", (0.0, 0.0, *X_POSITIVE)),
    ("lognormal", POSITIVE, "default", (0.0, 0.0, 0.0)),
    ("lognormal", POSITIVE, "abda", (0.0, 1.0)),
    ("lognormal", POSITIVE, "default", ()),
    ("student_t", REAL, "default", X_REAL),
    ("student_t", REAL, "abda", X_REAL),
    ("student_t", REAL, "default", (3.0, 3.2, 3.4, 3.4, 3.4, 60.0)),
    ("student_t", TIED, "default", (2.0,) * 5),
    ("student_t", REAL, "default", ()),
)
CATEGORICAL_CASES = (
    ("categorical", LABELS, (0.0, 1.0, 1.0, 3.0, 0.0)),
    ("categorical", LEVELS, (5.0, 9.0, 9.0, 5.0, 1.0, 5.0)),
    ("categorical", LABELS, ()),
    ("atom", ATOMS, (5.0, 9.0, 0.0, 5.0)),
    ("quantile", REAL, (0.5, 1.2, 2.2, 3.5, 4.1, 6.0)),
    ("quantile", COUNT, (0.0, 3.0, 2.0, 3.0, 14.0)),
)


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
    start = features.initial_theta(family, column, np.array(own), constants_of(family, column))
    hyper = family.priors[prior](column, start)
    out = np.empty((N_DRAW, start.size))
    assert draw_chain(family, column, own if x is None else x, hyper, start, rng, out) == OK
    return out


def _z_scores(case, draws: np.ndarray) -> list[float]:
    """Return z-scores of the draws' shares below quantiles of the grid posterior, one list over all parameters."""
    grid = grid_posterior(case)
    scores = []
    for j in range(draws.shape[1]):
        scores += [batch_z(draws[:, j] <= at, p) for at, p in grid.marginal_quantiles(j, PROBABILITIES)]
    if draws.shape[1] > 1:  # and that the first two are jointly below their medians
        (first, _), (second, _) = (grid.marginal_quantiles(j, (0.5,))[0] for j in (0, 1))
        scores.append(batch_z((draws[:, 0] <= first) & (draws[:, 1] <= second), grid.joint(first, second)))
    return scores


def test_every_family_has_posterior_cases():
    apart = {case[0] for case in CATEGORICAL_CASES} | {"bernoulli", "spline"}  # of splines: test_spline
    assert {case[0] for case in CASES} | apart == {family.name for family in registry.FAMILIES if family.parameters}


@each_case
def test_draws_follow_the_grid_posterior(case, rng):
    assert max(map(abs, _z_scores(case, _chain(case, rng)))) < LARGEST_Z


@with_rows
def test_draws_from_statistics_with_one_row_more_are_caught(case, rng):
    wrong = _chain(case, rng, x=(*case[3], max(case[3], key=abs)))
    assert max(map(abs, _z_scores(case, wrong))) > LARGEST_Z


def _entries(name: str, column: Column, x) -> np.ndarray:
    """Return which probability each value counts for, int (n,)."""
    if name != "quantile":
        return np.searchsorted(listed_values(column), x)
    z = features.to_units(registry.family(name), column, np.array(x))
    return np.searchsorted(PIECES[column][1:], z) - 1


def _concentration(name: str, column: Column, x) -> np.ndarray:
    """Return the default prior's: 2 in all, shared out by the column's shares, or by the start of a quantile."""
    if name != "quantile":
        return 2.0 * np.array(column.atom_frequencies or column.frequencies)
    n = len(PIECES[column]) - 2
    return 2.0 * (np.bincount(_entries(name, column, x), minlength=n) + 2.0 / n) / (len(x) + 2.0)


@pytest.mark.parametrize(("name", "column", "x"), CATEGORICAL_CASES)
def test_categorical_draws_have_beta_marginals(name, column, x, rng):
    draws = _chain((name, column, "default", x), rng)
    n = draws.shape[1]
    alpha = _concentration(name, column, x) + np.bincount(_entries(name, column, x), minlength=n)
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=SUMMED)
    for k in range(n):
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


def _evidence(case, n: int, rng) -> np.ndarray:
    """Return exp(log evidence), float64 (n,), under draws of the parameters afresh; 0 for those that are refused."""
    name, column, prior, x = case
    family = registry.family(name)
    start = features.initial_theta(family, column, np.array(x))
    hyper, constants = family.priors[prior](column, start), family.constants(column)
    stats = features.statistics(family, column, np.array(x))
    out = np.zeros(n)
    for i in range(n):
        theta = start.copy()
        if family.draw_afresh is None or family.draw_afresh(stats, hyper, constants, theta, rng) == OK:
            out[i] = np.exp(family.log_evidence(stats, hyper, constants, theta))
    return out


def _has_zeros(case) -> bool:
    return case[1].base == "real" and 0.0 in case[3]


WITH_EVIDENCE = [case for case in CASES if registry.family(case[0]).log_evidence]


@pytest.mark.parametrize("case", [case for case in WITH_EVIDENCE if not _has_zeros(case)], ids=_name)
def test_evidence_is_the_integral_of_likelihood_times_prior(case, rng):
    share = _evidence(case, 1, rng) / np.exp(grid_posterior(case).log_evidence)
    if registry.family(case[0]).draw_afresh is None:
        assert share[0] == pytest.approx(1.0, abs=INTEGRATED)
        return
    share = _evidence(case, N_PROPOSED, rng) / np.exp(grid_posterior(case).log_evidence)
    assert abs(share.mean() - 1.0) < LARGEST_Z * share.std() / np.sqrt(N_PROPOSED) + INTEGRATED
    assert share.std() < LARGEST_SPREAD


@pytest.mark.parametrize("case", [case for case in WITH_EVIDENCE if _has_zeros(case)], ids=_name)
def test_evidence_of_recorded_zeros_is_not_known(case, rng):
    name, column, prior, x = case
    family = registry.family(name)
    start = features.initial_theta(family, column, np.array(x))
    stats = features.statistics(family, column, np.array(x))
    hyper = family.priors[prior](column, start)
    assert np.isnan(family.log_evidence(stats, hyper, family.constants(column), start))


@pytest.mark.parametrize(("name", "column", "x"), CATEGORICAL_CASES)
def test_categorical_log_marginal_is_a_product_of_predictions(name, column, x):
    family = registry.family(name)
    alpha = _concentration(name, column, x)
    counts, expected = np.zeros(alpha.size), 0.0
    for at in _entries(name, column, x):
        expected += math.log((alpha[at] + counts[at]) / (alpha.sum() + counts.sum()))
        counts[at] += 1.0
    got = family.log_marginal(counts, alpha, constants_of(family, column))
    assert got == pytest.approx(expected, abs=SUMMED)


@each_example
def test_statistics_add_over_splits(example, rng):
    family, column = example.family, example.column
    x = example.reference().rvs(size=200, random_state=rng) * (column.scale if column.base == "real" else 1.0)
    whole = features.statistics(family, column, x, example.constants)
    parts = sum(features.statistics(family, column, part, example.constants) for part in np.split(x, (0, 1, 77)))
    np.testing.assert_allclose(parts, whole, rtol=SUMMED)


@each_example
def test_dispatched_update_start_and_statistics_equal_the_familys(example, rng):
    family, column, number = example.family, example.column, example.number
    x = example.reference().rvs(size=30, random_state=rng) * (column.scale if column.base == "real" else 1.0)
    z = features.to_units(family, column, x)
    aux = features.auxiliary(family, z, example.constants)
    stats = np.zeros(family.n_stats(example.constants))
    dispatch.accumulate(number, z, aux, np.arange(z.size, dtype=np.int32), example.constants, stats)
    np.testing.assert_array_equal(stats, features.statistics(family, column, x, example.constants))
    start = np.full(family.n_theta(example.constants), 1.0 / max(family.n_theta(example.constants), 1))
    hyper = family.priors["default"](column, start)
    other = np.empty_like(start)
    dispatch.initial(number, stats, hyper, example.constants, other)
    family.initial(stats, hyper, example.constants, start)
    np.testing.assert_array_equal(other, start)
    seed = rng.integers(2**32)
    args = (hyper, example.constants, other, np.random.default_rng(seed))
    if family.draw_from_values is None:
        assert dispatch.draw_posterior(number, stats, *args) == OK
    else:
        assert dispatch.draw_from_values(number, z, np.ones(z.size), *args) == OK
    assert draw_once(family, column, x, hyper, start, np.random.default_rng(seed)) == OK
    np.testing.assert_array_equal(other, start)


@each_example
def test_parameters_and_hyperparameters_match_their_names(example):
    family, column = example.family, example.column
    for prior in family.priors.values():
        hyper = prior(column, example.parameters)
        if family.parameters and family.parameters[0].constraint == "simplex":
            assert hyper.size == family.n_theta(example.constants) == family.n_stats(example.constants)
            named = {family.hyper_names[0]: hyper}
        else:
            assert hyper.size == len(family.hyper_names)
            assert len(family.parameters) == family.n_theta(example.constants)
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
        assert draw_once(family, column, [1.0, 2.0], broken, theta, rng) == INVALID
        np.testing.assert_array_equal(theta, example.parameters)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("gamma", POSITIVE),
        ("exponential", POSITIVE),
        ("negative_binomial", COUNT),
        ("truncated_rounded_normal", SIZE),
        ("lognormal", POSITIVE),
        ("student_t", REAL),
        ("ordinal", LEVELS),
    ],
)
def test_slice_update_from_an_invalid_state_is_refused(name, column, rng):
    family = registry.family(name)
    theta = np.full(family.n_theta(family.constants(column)), np.nan)
    hyper = family.priors["default"](column, theta)
    assert draw_once(family, column, [0.0, 1.0], hyper, theta, rng) == INVALID


def _same_stream(case) -> bool:
    """Return whether counted values take as many random numbers as repeated ones; a t draws one for each entry."""
    name, _, _, x = case
    return len(x) > 0 and (name != "student_t" or len(set(x)) == len(x))


by_value = [case for case in CASES if registry.family(case[0]).draw_from_values and _same_stream(case)]


@pytest.mark.parametrize("case", by_value, ids=_name)
def test_values_with_counts_and_repeated_values_give_the_same_draw(case, rng):
    name, column, prior, x = case
    family = registry.family(name)
    theta = features.initial_theta(family, column, np.array(x))
    hyper, other, seed = family.priors[prior](column, theta), theta.copy(), rng.integers(2**32)
    counted = np.empty((1, theta.size))
    assert draw_chain(family, column, x, hyper, theta, np.random.default_rng(seed), counted) == OK
    assert draw_once(family, column, np.sort(x), hyper, other, np.random.default_rng(seed)) == OK
    np.testing.assert_allclose(counted[0], other, rtol=REORDERED)


@pytest.mark.parametrize("x", [(0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 0.0), ()])
def test_bernoulli_draws_are_beta_and_other_says_nothing(x, rng):
    draws = _chain(("bernoulli", ANSWER, "default", x), rng)[:, 0]
    ones, zeros = x.count(1.0), x.count(0.0)
    expected = scipy.stats.beta(2.0 * 0.35 + ones, 2.0 * 0.6 + zeros)
    assert cdf_deviation(draws, expected.cdf) < dkw_bound(N_DRAW)
    assert cdf_deviation(draws, scipy.stats.beta(2.0 * 0.35 + ones, 3.0 * 0.6 + zeros).cdf) > dkw_bound(N_DRAW)


def test_bernoulli_log_marginal_is_a_product_of_predictions():
    family = registry.family("bernoulli")
    a, b = family.priors["default"](ANSWER, np.empty(0))
    counts, expected = np.zeros(2), 0.0
    for value in (1, 0, 0, 1, 0):
        expected += math.log((counts[value] + (a if value else b)) / (counts.sum() + a + b))
        counts[value] += 1.0
    got = family.log_marginal(counts, np.array([a, b]), family.constants(ANSWER))
    assert got == pytest.approx(expected, abs=SUMMED)
