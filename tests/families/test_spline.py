"""What is the splines' own: SciPy's basis, the exact step on weights, order and breaks by BIC, whole numbers, tails."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from bayesjpt.families import features, registry, spline, spline_basis, spline_choice
from bayesjpt.families.record import OK
from bayesjpt.families.spline_choice import LEAF_RULE, RULES, Rule, choose
from tests.families.examples import CHANGE, COUNT, EXAMPLES, POSITIVE, REAL, draw_chain, identify
from tests.families.splines import Spline, SplineDistribution, m_splines
from tests.statistics import LARGEST_Z, batch_z
from tests.strategies import law

EXACT = 1e-12
LINE = (-math.inf, math.inf)
N_DRAW = 40_000
OFF = 1e-9


def learned(column, values, lo=-math.inf, hi=math.inf, **rule) -> np.ndarray:
    """Return the constants that a leaf learns, after the check that saved ones pass."""
    found = spline_choice.leaf_constants(column, np.asarray(values, np.float64), lo, hi, rule=Rule(**rule))
    assert spline_choice.valid_constants(column, found)
    return found


def draws_of_weights(z, constants, rng) -> np.ndarray:
    """Return the mean of draws of a leaf's weights under a prior of 1/5 each."""
    family = registry.family("spline")
    values, count = np.unique(z, return_counts=True)
    theta = np.full(family.n_theta(constants), 1.0 / family.n_theta(constants))
    total = np.zeros(theta.size)
    for _ in range(200):
        family.draw_from_values(values, count.astype(float), np.full(theta.size, 0.2), constants, theta, rng)
        total += theta
    return total / total.sum()


def breaks_of(column, constants) -> np.ndarray:
    """Return the breaks in the user's units."""
    offset, scale = (column.location, column.scale) if column.base == "real" else (0.0, 1.0)
    return constants[6 : 6 + int(constants[1]) + 1] * scale + offset


# --- the basis, against SciPy


@pytest.mark.parametrize("order", range(1, spline_basis.MAX_ORDER + 1))
@pytest.mark.parametrize("n_bin", [1, 2, 7])
def test_every_spline_and_its_integral_are_those_of_scipy(order, n_bin, rng):
    breaks = np.sort(rng.uniform(-3.0, 5.0, n_bin + 1))
    constants = spline_choice.make_constants(order, breaks, step=0.0, sigma=1.0, ends=(breaks[0], breaks[-1]))
    family = registry.family("spline")
    n = n_bin + order - 1
    x = rng.uniform(breaks[0], breaks[-1], 40)
    for j in range(n):
        theta = np.eye(n)[j]
        expected = m_splines(order, breaks.tolist(), theta)
        prepared, out = np.zeros(n + constants.size + 4), np.empty(x.size)
        family.coefficients(theta, constants, prepared)
        family.fill_log_density(x, x, prepared, out)
        np.testing.assert_allclose(np.exp(out), expected(x), atol=EXACT * max(expected(x).max(), 1.0))
        below = expected.antiderivative()
        for lo, hi in itertools.pairwise(x):
            got = math.exp(family.log_mass(min(lo, hi), max(lo, hi), theta, constants))
            assert got == pytest.approx(float(below(max(lo, hi)) - below(min(lo, hi))), abs=EXACT)


@law(60)
@given(
    st.integers(1, spline_basis.MAX_ORDER),
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True).map(sorted),
)
def test_no_ordinate_is_negative(order, breaks):
    breaks = np.array(breaks)
    if np.diff(breaks).min() < 1e-6:
        return
    density = spline_choice.ordinates_of_values(breaks, order, 0.0)
    assert (density >= 0.0).all()
    whole = np.unique(np.floor(breaks) + 0.5)
    if whole.size > 1:
        assert (spline_choice.ordinates_of_values(whole, order, 1.0) >= 0.0).all()


@pytest.mark.parametrize("m", [1, 2, 3, 8, 1000])
@pytest.mark.parametrize("order", [1, 2, 4, 6])
def test_moments_of_whole_numbers_are_those_of_the_sum(order, m, rng):
    ordinate = rng.random(order)
    u = np.linspace(0.0, 1.0, m) if m > 1 else np.array([0.5])
    if m == 1:
        ordinate[:] = ordinate[0]
    mass = np.array([sum(scipy.stats.binom.pmf(p, order - 1, x) * ordinate[p] for p in range(order)) for x in u])
    total, mean, variance = spline_basis.rounded_moments(ordinate, m)
    assert total == pytest.approx(mass.sum(), rel=EXACT)
    assert mean == pytest.approx((mass * u).sum() / mass.sum(), rel=EXACT)
    assert variance == pytest.approx((mass * (u - mean) ** 2).sum() / mass.sum(), rel=1e-11, abs=1e-14)


def test_interval_in_a_thin_end_keeps_its_digits():
    constants = spline_choice.make_constants(6, np.array([0.0, 1.0]), step=0.0, sigma=1.0, ends=(0.0, 1.0))
    theta = np.eye(6)[0]  # density 6 (1 - x)^5
    got = registry.family("spline").log_mass(1.0 - 1e-6, 1.0, theta, constants)
    assert got == pytest.approx(6.0 * math.log(1e-6), rel=1e-9)


# --- weights


def _exact_marginals(hyper: np.ndarray, densities: np.ndarray, n_grid: int = 400):
    """Return quantiles of the first weight and their probabilities, by quadrature over a simplex of three weights."""
    edge = (np.arange(n_grid) + 0.5) / n_grid
    first, share = np.meshgrid(edge, edge, indexing="ij")
    weights = np.stack([first, (1.0 - first) * share, (1.0 - first) * (1.0 - share)])
    log_mass = scipy.stats.dirichlet(hyper).logpdf(weights.reshape(3, -1)).reshape(n_grid, n_grid)
    log_mass += np.log(1.0 - first)  # Jacobian of (share of the rest)
    log_mass += np.log(np.einsum("ij,jab->iab", densities, weights)).sum(axis=0)
    mass = np.exp(log_mass - log_mass.max())
    below = np.cumsum(mass.sum(axis=1)) / mass.sum()
    at = [int(np.abs(below - p).argmin()) for p in (0.1, 0.5, 0.9)]
    return [((i + 1.0) / n_grid, float(below[i])) for i in at]


@pytest.mark.parametrize("values", [[0.05, 0.3, 0.35, 0.6, 0.9], [0.2] * 3 + [0.7] * 30])
@pytest.mark.parametrize(("order", "breaks"), [(3, [0.0, 1.0]), (2, [0.0, 0.4, 1.0])])
def test_draws_of_weights_follow_the_posterior(values, order, breaks, rng):
    constants = spline_choice.make_constants(order, np.array(breaks), step=0.0, sigma=1.0, ends=(0.0, 1.0))
    hyper, theta = np.array([1.5, 2.0, 1.0]), np.full(3, 1.0 / 3.0)
    family = registry.family("spline")
    z, count = np.unique(values, return_counts=True)
    out = np.empty((N_DRAW, 3))
    for i in range(N_DRAW):
        assert family.draw_from_values(z, count.astype(float), hyper, constants, theta, rng) == OK
        out[i] = theta
    densities = np.array([[float(m_splines(order, breaks, np.eye(3)[j])(x)) for j in range(3)] for x in values])
    for at, p in _exact_marginals(hyper, densities):
        assert abs(batch_z(out[:, 0] <= at, p)) < LARGEST_Z
    wrong = _exact_marginals(hyper + np.array([2.0, 0.0, 0.0]), densities)
    assert max(abs(batch_z(out[:, 0] <= at, p)) for at, p in wrong) > LARGEST_Z


def test_rows_in_tails_are_counts_of_the_tails(rng):
    constants = spline_choice.make_constants(2, np.array([0.0, 1.0]), step=0.0, sigma=1.0, ends=LINE)
    hyper, theta, out = np.ones(4), np.full(4, 0.25), np.empty((N_DRAW // 4, 4))
    z, count = np.array([-3.0, 1.5, 7.0]), np.array([5.0, 1.0, 12.0])
    for i in range(out.shape[0]):
        registry.family("spline").draw_from_values(z, count, hyper, constants, theta, rng)
        out[i] = theta
    np.testing.assert_allclose(out.mean(axis=0), np.array([1.0, 1.0, 6.0, 14.0]) / 22.0, atol=0.01)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.name == "spline"], ids=identify)
def test_draws_given_many_rows_find_their_distribution(example, rng):
    x = example.reference().rvs(size=4000, random_state=rng)
    x = x * example.column.scale + example.column.location if example.column.base == "real" else x
    hyper = np.ones(len(example.theta))
    out = np.empty((300, hyper.size))
    draw_chain(example.family, example.column, x, hyper, np.full(hyper.size, 1.0 / hyper.size), rng, out)
    mean = dataclasses.replace(example, theta=tuple(out[100:].mean(axis=0)))
    for at in example.reference().ppf(np.array([0.05, 0.3, 0.6, 0.95])):
        assert mean.cdf(at) == pytest.approx(example.cdf(at), abs=0.03)


# --- where weights begin


@pytest.mark.parametrize(
    ("column", "frozen"),
    [
        (REAL, scipy.stats.norm(REAL.location, 2.0 * REAL.scale)),
        (POSITIVE, scipy.stats.lognorm(0.8, scale=POSITIVE.scale)),
        (COUNT, scipy.stats.nbinom(6, 0.2)),
    ],
    ids=("normal", "lognormal", "counts"),
)
def test_start_is_near_the_distribution_of_the_values(column, frozen, rng):
    x = frozen.rvs(size=400, random_state=rng)
    constants = learned(column, x)
    family = registry.family("spline")
    theta = family.estimate(column, x, constants)
    assert theta.sum() == pytest.approx(1.0)
    assert (theta > 0.0).all()
    points = features.to_units(family, column, frozen.ppf(np.linspace(0.02, 0.98, 25)))
    got = [family.cdf(at, theta, constants) for at in points]
    user = points if column.base == "integer" else points * column.scale + column.location
    np.testing.assert_allclose(got, frozen.cdf(user), atol=0.06)
    even = np.full(theta.size, 1.0 / theta.size)
    assert max(abs(family.cdf(at, even, constants) - p) for at, p in zip(points, frozen.cdf(user), strict=True)) > 0.06


@pytest.mark.parametrize("values", [[], [4.0], [4.0] * 30, [0.0, 4.0], [0.0] * 20, [0.0] * 9 + [1e9]], ids=str)
@pytest.mark.parametrize("column", [REAL, POSITIVE, COUNT, CHANGE], ids=lambda column: column.name)
def test_start_of_few_values_and_ties_is_a_point_of_the_simplex(column, values):
    x = np.array(values)
    theta = registry.family("spline").estimate(column, x, learned(column, x))
    assert theta.sum() == pytest.approx(1.0)
    assert (theta > 0.0).all()


def test_small_leaf_of_a_dictionary_has_six_cubic_bins_and_a_rough_large_one_more(rng):
    family = registry.family("spline")
    small = family.leaf_constants(REAL, rng.normal(REAL.location, REAL.scale, 25), -np.inf, np.inf)
    rough = np.concatenate([rng.normal(at, 0.3, 3000) for at in (-20.0, -11.0, 0.0, 14.0)]) * REAL.scale
    large = family.leaf_constants(REAL, rough, -np.inf, np.inf)
    assert small[:2].tolist() == [4.0, 6.0]
    assert large[1] > 6.0
    ties = family.leaf_constants(REAL, REAL.location + np.arange(8) * REAL.resolution, -np.inf, np.inf)
    assert ties[0] < 4.0


# --- order and breaks


@pytest.mark.parametrize("rule", RULES)
def test_more_bins_where_the_density_asks_for_them(rule, rng):
    simple, rough = rng.normal(size=600), np.concatenate([rng.normal(-4.0, 0.3, 400), rng.normal(3.0, 1.0, 400)])
    few, many = (choose(z, (z.min(), z.max()), 1e-6, Rule(rule)) for z in (simple, rough))
    assert few.n_bin + few.order < many.n_bin + many.order


def test_score_is_that_of_the_best_weights_found_by_slsqp(rng):
    z = rng.gamma(2.0, size=80)
    breaks = np.linspace(z.min(), z.max(), 3)
    basis = [m_splines(3, breaks.tolist(), row)(z) for row in np.eye(4)]
    start = np.full(4, 0.25)
    best = scipy.optimize.minimize(
        lambda w: -np.log(w @ np.array(basis)).sum(),
        start,
        bounds=[(1e-9, 1.0)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
    )
    found = choose(z, (z.min(), z.max()), 1e-6, Rule(n_bins=2, order=3))
    assert found.log_likelihood == pytest.approx(-best.fun, abs=0.05)
    assert found.log_likelihood <= -best.fun + 1e-6
    assert found.score == pytest.approx(found.log_likelihood - 1.5 * math.log(80.0))


def test_rules_place_breaks_as_they_say():
    z = np.array([0.0, 1.0, 2.0, 3.0, 10.0, 20.0, 30.0, 40.0])
    ends = (0.0, 40.0)
    assert choose(z, ends, 0.1, Rule("width", 4, 1)).breaks.tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert choose(z, ends, 0.1, Rule("frequency", 2, 1)).breaks.tolist() == [0.0, 6.5, 40.0]
    assert choose(z, ends, 0.1, Rule("mean", 2, 1)).breaks.tolist() == [0.0, z.mean(), 40.0]
    third = z[z < z.mean()].mean()
    assert choose(z, ends, 0.1, Rule("mean", 3, 1)).breaks.tolist() == [0.0, third, z.mean(), 40.0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("column", "far"), [(REAL, REAL.location - 400.0 * REAL.resolution), (COUNT, 0.0)])
def test_few_values_beyond_a_wide_gap_have_bins_of_their_own(rule, column, far, rng):
    scale = 20.0 * column.resolution
    near = np.round(rng.normal(far + 20.0 * scale, scale, 200) / column.resolution) * column.resolution
    x = np.concatenate([np.full(4, far), near])
    apart, plain = (learned(column, x, bins=rule, n_bins=6, order=4, isolate=isolate) for isolate in (True, False))
    ends = features.to_units(registry.family("spline"), column, far + np.array([-0.5, 0.5]) * column.resolution)
    share = []
    for constants in (apart, plain):
        z = features.to_units(registry.family("spline"), column, x)
        theta = draws_of_weights(z, constants, rng)
        share.append(math.exp(registry.family("spline").log_mass(*ends, theta, constants)))
    assert 0.005 < share[0] < 0.05  # 4 of 204 and a part of a row for each spline
    assert share[1] < 0.2 * share[0]


@pytest.mark.parametrize("rule", RULES)
def test_a_single_row_beyond_a_gap_has_no_bin_of_its_own(rule, rng):
    """The largest of 200 values of a heavy tail was the mode: in a bin as narrow as the resolution."""
    x = np.append(rng.normal(0.0, 1.0, 199), 9.0).round(3)
    apart, plain = (learned(REAL, x, bins=rule, n_bins=6, order=4, isolate=isolate) for isolate in (True, False))
    np.testing.assert_array_equal(apart, plain)
    twice, plain = (
        learned(REAL, np.append(x, 9.0), bins=rule, n_bins=6, order=4, isolate=isolate) for isolate in (1, 0)
    )
    assert twice.size > plain.size


def test_values_without_a_wide_gap_have_the_breaks_of_the_rule(rng):
    x = np.round(rng.normal(30.0, 4.0, 300))
    apart, plain = (learned(COUNT, x, n_bins=6, order=4, isolate=isolate) for isolate in (True, False))
    np.testing.assert_array_equal(apart, plain)


def test_few_distinct_values_lower_the_order_and_the_reason_says_so():
    found = choose(np.array([0.0, 1.0, 1.0, 2.0]), (0.0, 2.0), 0.1, Rule(n_bins=1, order=6))
    assert found.order == 3
    assert "order 6 needs 6 distinct values in so many bins, there are 3" in found.reason
    unasked = choose(np.array([1.0, 2.0, 2.0]), (0.0, 3.0), 0.1, LEAF_RULE)
    assert "order 4 needs" in unasked.reason
    assert "asked for" in found.reason


def test_bins_are_no_narrower_than_a_resolution():
    constants = learned(REAL, np.repeat(REAL.location + np.arange(4) * REAL.resolution, 50), n_bins=8)
    assert np.diff(breaks_of(REAL, constants)).min() >= REAL.resolution * (1.0 - OFF)
    assert constants[1] <= 4.0


@pytest.mark.parametrize("values", [[], [4.2], [4.2] * 50, [4.2, 4.3]], ids=len)
@pytest.mark.parametrize("column", [REAL, POSITIVE, COUNT, CHANGE], ids=lambda column: column.name)
def test_few_values_ties_and_none_get_an_answer(column, values):
    x = np.round(values) if column.base == "integer" else np.array(values)
    constants = learned(column, x)
    family = registry.family("spline")
    theta = np.full(family.n_theta(constants), 1.0 / family.n_theta(constants))
    assert family.log_mass(-np.inf, np.inf, theta, constants) == 0.0
    assert np.isfinite(family.moment(2, -np.inf, np.inf, theta, constants))


def test_breaks_of_whole_numbers_lie_between_them(rng):
    constants = learned(COUNT, rng.poisson(20.0, 800).astype(float))
    assert constants[1] + constants[0] > 2.0
    np.testing.assert_array_equal(breaks_of(COUNT, constants) % 1.0, 0.5)


def test_breaks_of_large_whole_numbers_lie_between_them():
    # the margin of two values far apart is above 2^52, where floats have no halves; `learned` checks the breaks
    far = np.array([4182253550000001.0, 2618945120000007.0])
    for values in (far, -far):
        learned(CHANGE, values)
    learned(CHANGE, [2.0**52], 2.0**52, 2.0**52)


def test_tails_end_with_the_support_and_the_condition(rng):
    x = np.round(rng.uniform(4.0, 5.0, 300), 1)
    assert learned(POSITIVE, x)[4:6].tolist() == [0.0, np.inf]
    cut = learned(POSITIVE, x, 2.0, 7.0)
    lo, hi = 1.0, 3.5
    assert cut[4:6].tolist() == [lo, hi]
    family = registry.family("spline")
    theta = rng.dirichlet(np.ones(family.n_theta(cut)))
    assert family.log_mass(lo, hi, theta, cut) == 0.0
    assert family.log_mass(hi, np.inf, theta, cut) == -np.inf


@pytest.mark.parametrize("step", [0.0, 1.0])
@pytest.mark.parametrize("heavy", [-2, -1])
def test_mode_may_lie_in_a_tail(step, heavy):
    breaks = np.array([-0.5, 3.5, 9.5])
    constants = spline_choice.make_constants(3, breaks, step=step, sigma=2.0, ends=LINE)
    family = registry.family("spline")
    theta = np.full(family.n_theta(constants), 0.02)
    theta[heavy] += 1.0 - theta.sum()
    at = breaks[0] if heavy == -2 else breaks[-1]
    side = -1.0 if heavy == -2 else 1.0
    nearest = at + side * 0.5 * step
    assert family.mode(-np.inf, np.inf, theta, constants) == pytest.approx(nearest, abs=OFF)
    lo, hi = sorted([at + side * 4.5, at + side * 6.5])  # nothing but the tail, which falls
    assert family.mode(lo, hi, theta, constants) == pytest.approx(at + side * 4.5, abs=OFF)


def test_no_row_with_support_is_impossible(rng):
    constants = learned(REAL, rng.normal(3.0, 1.0, 200))
    family = registry.family("spline")
    theta = np.full(family.n_theta(constants), 1.0 / family.n_theta(constants))
    prepared, z = np.zeros(theta.size + constants.size + 4), np.array([-1e6, -50.0, 50.0, 1e6])
    family.coefficients(theta, constants, prepared)
    out = np.empty(4)
    family.fill_log_density(z, z, prepared, out)
    assert np.isfinite(out).all()


def test_damaged_constants_are_not_valid(rng):
    good = learned(REAL, rng.normal(3.0, 1.0, 300), n_bins=3, order=4)
    for at, value in ((0, 7.0), (0, 3.0), (1, 2.0), (2, 1.0), (3, 0.0), (4, 5.0), (5, -9.0), (6, 9.0), (-1, 3.0)):
        bad = good.copy()
        bad[at] = value
        assert not spline_choice.valid_constants(REAL, bad)
    assert not spline_choice.valid_constants(REAL, good[:-1])
    assert not spline_choice.valid_constants(REAL, np.array([np.nan] * good.size))
    assert not spline_choice.valid_constants(COUNT, good)


def test_entries_are_named_by_where_they_are():
    constants = spline_choice.make_constants(2, np.array([-0.5, 3.5, 9.5]), step=1.0, sigma=1.0, ends=(-0.5, np.inf))
    assert spline.entry_labels(COUNT, constants)[1:] == ["near 4.16666666666667", "near 7.5", "above 9"]


def test_type_follows_the_support_of_the_column():
    assert [c.type_of_cells("support") for c in (REAL, POSITIVE, COUNT, CHANGE)] == [
        "real",
        "positive",
        "count",
        "real",
    ]


def test_twin_agrees_with_itself_by_quadrature():
    leaf = Spline((0.2, 0.3, 0.3, 0.1, 0.1), 2, (0.0, 1.0, 4.0), 0.5, LINE)
    frozen = SplineDistribution(leaf)
    assert frozen.moment(0) == pytest.approx(1.0, abs=1e-10)
    assert isinstance(frozen.density, BSpline)
    assert frozen.cdf(4.0) + frozen.sf(4.0) == pytest.approx(1.0, abs=EXACT)
