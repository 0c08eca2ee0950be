"""What every family promises of a distribution with given parameters, against SciPy, quadrature and sums."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.integrate

from bayesjpt.families import dispatch, features, registry
from tests.families.examples import EXAMPLES, LISTED, SIMPLEX, SPLINES, Example, fill_samples, identify
from tests.statistics import cdf_deviation, dkw_bound

PROMISED = 1e-10
SUMMED = 1e-9
"""Quadrature and long sums are no better than this."""
N_DRAW = 30_000

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=identify)
continuous_examples = [e for e in EXAMPLES if not e.discrete]
continuous = pytest.mark.parametrize("example", continuous_examples, ids=identify)
discrete = pytest.mark.parametrize("example", [e for e in EXAMPLES if e.discrete], ids=identify)
without_tails = [e for e in EXAMPLES if e.name == "spline" and not np.isinf(SPLINES[e.column.name].ends).all()]
with_tails = pytest.mark.parametrize(
    "example",
    [e for e in EXAMPLES if e.name not in (*LISTED, "quantile") and e not in without_tails],
    ids=identify,
)
positive = pytest.mark.parametrize(
    "example", [e for e in continuous_examples if e.family.statistical_type == "positive"], ids=identify
)


def _points(example: Example, rng: np.random.Generator) -> np.ndarray:
    """Return values of z, ten to both sides beyond what is likely too."""
    if example.discrete:
        return example.values()
    likely = example.reference().rvs(size=200, random_state=rng)
    spread = np.linspace(likely.min(), likely.max() + 3.0 * np.ptp(likely), 50)
    points = np.concatenate([likely, spread])
    return points[~_in_first_cell(example, points)]


def _in_first_cell(example: Example, z) -> np.ndarray:
    """Return where a positive family scores by the average density of the cell at zero."""
    return (example.family.statistical_type == "positive") & (z < example.constants[:1].sum())


def _bounds(example: Example) -> tuple[float, float]:
    """Return the example's interval cut to where the mass is, for quadrature."""
    frozen = example.reference()
    return max(example.lo, frozen.ppf(1e-17)), min(example.hi, max(frozen.isf(1e-17), example.lo + 30.0 * frozen.std()))


def _weights(example: Example) -> tuple[np.ndarray, np.ndarray]:
    """Return the values inside the example's interval and their normalised masses."""
    values = example.values()
    values = values[(values >= example.lo) & (values <= example.hi)]
    log_mass = example.log_density(values)
    mass = np.exp(log_mass - log_mass.max())
    return values, mass / mass.sum()


def _quad(example: Example, f, lo: float, hi: float) -> float:
    jumps = example.constants[1:] if example.name == "quantile" else np.empty(0)
    if example.name == "spline":
        jumps = np.array(SPLINES[example.column.name].breaks)
    ends = [lo, *jumps[(jumps > lo) & (jumps < hi)], hi]
    return math.fsum(
        scipy.integrate.quad(f, a, b, epsabs=0.0, epsrel=1e-12, limit=200)[0] for a, b in itertools.pairwise(ends)
    )


def test_every_family_has_examples():
    assert {example.name for example in EXAMPLES} == {family.name for family in registry.FAMILIES}


@each_example
def test_log_density_agrees_with_scipy(example, rng):
    z = _points(example, rng)
    frozen = example.reference()
    expected = frozen.logpmf(z) if example.discrete else frozen.logpdf(z)
    np.testing.assert_allclose(example.log_density(z), expected, rtol=PROMISED, atol=PROMISED)


@positive
def test_cell_at_zero_has_its_average_density(example):
    h = example.constants[0]
    z = np.array([0.0, 1e-12, 0.5 * h, np.nextafter(h, 0.0)])
    expected = example.reference().logcdf(h) - math.log(2.0 * h)
    np.testing.assert_allclose(example.log_density(z), expected, rtol=PROMISED)
    assert example.log_density(h)[0] == pytest.approx(example.reference().logpdf(h), rel=PROMISED, abs=PROMISED)


@each_example
def test_values_outside_the_support_have_no_density(example):
    lo, hi = example.family.support
    outside = [value for value in (lo - 1.0, hi + 1.0) if np.isfinite(value)]
    if example.discrete:
        outside += [0.5] if example.name in ("rounded_normal", "spline") else [0.5, -1.0]
    if outside:
        assert (example.log_density(outside) == -np.inf).all()


@each_example
def test_log_mass_agrees_with_the_integrated_density(example):
    if example.discrete:
        values = example.values()
        inside = values[(values >= example.lo) & (values <= example.hi)]
        expected = math.log(math.fsum(np.exp(example.log_density(inside))))
    else:
        expected = math.log(_quad(example, example.reference().pdf, *_bounds(example)))
    assert example.log_mass(example.lo, example.hi) == pytest.approx(expected, abs=SUMMED)


@each_example
def test_mass_of_everything_is_one(example):
    assert example.log_mass(-np.inf, np.inf) == 0.0
    assert example.cdf(np.inf) == pytest.approx(1.0, abs=1e-15)
    assert example.cdf(-np.inf) == 0.0


@each_example
def test_mass_adds_over_disjoint_intervals(example, rng):
    lo, hi = example.values()[[0, -1]] if example.discrete else example.reference().ppf([1e-9, 1.0 - 1e-9])
    for _ in range(50):
        a, b, c = np.sort(rng.uniform(lo - 1.0, hi + 1.0, 3))
        if example.discrete:
            a, b, c = np.floor(a) + 1.0, np.floor(b), np.floor(c)
        next_b = b + 1.0 if example.discrete else b
        parts = np.logaddexp(example.log_mass(a, b), example.log_mass(next_b, c))
        assert math.exp(parts) == pytest.approx(math.exp(example.log_mass(a, c)), rel=PROMISED, abs=1e-300)


@with_tails
def test_mass_of_both_far_tails_agrees_with_scipy(example):
    frozen = example.reference()
    for probability in (1e-30, 1e-8, 0.2):
        if example.name == "geometric":  # SciPy's inverse survival function fails below 1e-16
            upper = np.ceil(math.log(probability) / math.log1p(-example.theta[0])) - 1.0
        else:
            upper = frozen.isf(probability)
        if np.isfinite(upper):
            beyond = upper + 1.0 if example.discrete else upper
            assert example.log_mass(beyond, np.inf) == pytest.approx(frozen.logsf(upper), rel=1e-8)
        lower = frozen.ppf(probability)
        assert example.log_mass(-np.inf, lower) == pytest.approx(frozen.logcdf(lower), rel=1e-8)


@each_example
def test_interval_without_values_has_no_mass_and_finite_moments(example):
    lo, hi = (2.2, 2.8) if example.discrete else (1.5, 1.5)
    assert example.log_mass(lo, hi) == -np.inf
    assert example.log_mass(3.0, 2.0) == -np.inf
    assert lo <= example.moment(1, lo, hi) <= hi
    assert lo * lo <= example.moment(2, lo, hi) <= hi * hi
    assert lo <= example.mode(lo, hi) <= hi


@each_example
def test_interval_below_the_support_has_no_mass(example):
    if np.isfinite(example.family.support[0]):
        assert example.log_mass(-5.0, -1.0) == -np.inf
        assert example.moment(1, -5.0, -1.0) == -1.0
        assert example.mode(-5.0, -1.0) == -1.0


@each_example
def test_cdf_agrees_with_scipy(example, rng):
    for x in _points(example, rng)[:100]:
        for value in (x, x + 0.3):
            assert example.cdf(value) == pytest.approx(example.reference().cdf(value), rel=PROMISED, abs=1e-15)


@continuous
def test_slope_of_cdf_is_the_density(example):
    frozen = example.reference()
    for probability in (0.05, 0.3, 0.6, 0.95):
        x = frozen.ppf(probability)
        if _in_first_cell(example, x):
            continue
        step = 1e-4 * frozen.std()
        slope = (example.cdf(x + step) - example.cdf(x - step)) / (2.0 * step)
        assert slope == pytest.approx(math.exp(example.log_density(x)[0]), rel=1e-5)


@continuous
def test_narrow_interval_has_density_times_width(example):
    frozen = example.reference()
    share = (
        0.01 if example.name in ("uniform", "quantile", "spline") else 1e-12
    )  # further out, the interval passes the end
    for x in (frozen.ppf(share), frozen.ppf(0.4), frozen.isf(share)):
        width = 1e-7 * abs(x)
        expected = frozen.logpdf(x + 0.5 * width) + math.log(width)
        assert example.log_mass(x, x + width) == pytest.approx(expected, abs=1e-6)


@each_example
@pytest.mark.parametrize("k", [1, 2])
def test_moment_on_the_whole_line_agrees_with_scipy(example, k):
    expected = example.reference().moment(k)
    assert example.moment(k, -np.inf, np.inf) == pytest.approx(expected, rel=PROMISED)


@continuous
@pytest.mark.parametrize("k", [1, 2])
def test_truncated_moment_agrees_with_quadrature(example, k):
    lo, hi = _bounds(example)
    top = max(example.reference().logpdf(lo), example.reference().logpdf(hi), example.reference().logpdf((lo + hi) / 2))

    def density(x):
        return math.exp(example.reference().logpdf(x) - top)

    expected = _quad(example, lambda x: x**k * density(x), lo, hi) / _quad(example, density, lo, hi)
    assert example.moment(k, example.lo, example.hi) == pytest.approx(expected, rel=SUMMED)


@discrete
@pytest.mark.parametrize("k", [1, 2])
def test_truncated_moment_agrees_with_a_sum(example, k):
    values, mass = _weights(example)
    assert example.moment(k, example.lo, example.hi) == pytest.approx((values**k * mass).sum(), rel=SUMMED)


@continuous
def test_truncated_moments_stay_inside_narrow_intervals(example):
    frozen = example.reference()
    for lo in (frozen.ppf(1e-6), frozen.median(), frozen.isf(1e-9)):
        hi = lo + 1e-9 * abs(lo)
        first, second = example.moment(1, lo, hi), example.moment(2, lo, hi)
        assert lo <= first <= hi
        assert second == pytest.approx(first * first, rel=1e-8)


@each_example
def test_mode_has_the_largest_density_of_its_interval(example, rng):
    for lo, hi in ((-np.inf, np.inf), (example.lo, example.hi), (0.0, 1.0), (2.0, 7.0)):
        points = _points(example, rng)
        if not example.discrete:
            points = np.concatenate([points, np.linspace(max(lo, -10.0), min(hi, 100.0), 400), [0.0, 0.1, lo]])
        points = points[(points >= lo) & (points <= hi)]
        if points.size == 0:
            continue
        best = example.mode(lo, hi)
        assert lo <= best <= hi
        assert example.log_density(best)[0] >= example.log_density(points).max() - PROMISED


@each_example
@pytest.mark.parametrize("truncated", [False, True])
def test_samples_follow_the_cdf(example, truncated, rng):
    interval = (example.lo, example.hi) if truncated else (-np.inf, np.inf)
    draws = np.empty(N_DRAW)
    fill_samples(example.number, interval, example.parameters, example.constants, rng, draws)
    assert draws.min() >= interval[0]
    assert draws.max() <= interval[1]
    log_all = example.log_mass(*interval)
    least = interval[0] if truncated else -np.inf

    def cdf(values):
        return [math.exp(example.log_mass(least, value) - log_all) for value in values]

    assert cdf_deviation(draws, cdf) < dkw_bound(N_DRAW)


@each_example
def test_samples_of_other_parameters_are_caught(example, rng):
    draws = np.empty(N_DRAW)
    other, constants = example.parameters, example.constants
    if example.name in SIMPLEX:
        other = np.ascontiguousarray(other[::-1])
    elif example.name == "uniform":
        constants = 1.1 * constants
    elif example.name == "label":
        constants = np.concatenate([constants[: constants.size // 2], constants[constants.size // 2 :][::-1]])
    else:
        other[0] *= 0.9 if example.name == "geometric" else 1.5
    fill_samples(example.number, (-np.inf, np.inf), other, constants, rng, draws)
    assert cdf_deviation(draws, np.vectorize(example.cdf)) > dkw_bound(N_DRAW)


@each_example
def test_dispatch_calls_the_family_of_that_number(example, rng):
    family, theta, constants = example.family, example.parameters, example.constants
    z = np.ascontiguousarray(_points(example, rng)[:20])
    aux = np.empty(z.size)
    dispatch.prepare(example.number, z, constants, aux)
    np.testing.assert_array_equal(aux, features.auxiliary(family, z, constants))
    prepared = example.room()
    dispatch.coefficients(example.number, theta, constants, prepared)
    out = np.empty(z.size)
    dispatch.fill_log_density(example.number, z, aux, prepared, out)
    np.testing.assert_array_equal(out, example.log_density(z))
    interval = (example.lo, example.hi)
    assert dispatch.log_mass(example.number, *interval, theta, constants) == example.log_mass(*interval)
    assert dispatch.cdf(example.number, 1.5, theta, constants) == example.cdf(1.5)
    assert dispatch.moment(example.number, 2, *interval, theta, constants) == example.variance(*interval)
    assert dispatch.mode(example.number, *interval, theta, constants) == example.mode(*interval)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.family.fill_log_masses is not None], ids=identify)
def test_masses_under_several_leaves_are_those_under_each(example):
    n = len(example.theta)
    other = example.parameters * np.array([1.7, 0.9] * n)[:n]
    if example.name in SIMPLEX:
        other /= other.sum()
    theta = np.concatenate([[np.nan], example.parameters, other])
    at = np.array([1, 1 + n, 1], np.int32)
    ends = [example.lo, example.hi, example.hi + 1e-3, 40.0, -40.0, 1e3]
    for lo, hi in [*itertools.combinations(sorted(ends), 2), (-np.inf, example.hi), (example.lo, np.inf)]:
        out = np.empty(3)
        dispatch.fill_log_masses(example.number, lo, hi, theta, at, example.constants, out)
        each = [example.family.log_mass(lo, hi, theta[k : k + n], example.constants) for k in at]
        np.testing.assert_allclose(out, each, rtol=1e-12, atol=1e-12)
