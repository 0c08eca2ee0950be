"""Random draws against their cdfs, in every regime of the samplers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from bayesjpt.numerics import draw
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more
from tests.statistics import LARGEST_Z, batch_z, cdf_deviation, dkw_bound

N_DRAW = 30_000


@kernel
def _fill_gamma_below(shape, rate, upper, rng, out):
    # a generator costs 60 microseconds a call from Python: one call for all draws
    for i in range(out.size):
        out[i] = draw.draw_gamma_below(shape, rate, upper, rng)


@kernel
def _fill_gamma_above(shape, rate, lower, rng, out):
    for i in range(out.size):
        out[i] = draw.draw_gamma_above(shape, rate, lower, rng)


@kernel
def _fill_beta(a, b, rng, out):
    for i in range(out.size):
        out[i] = draw.draw_beta(a, b, rng)


@kernel
def _fill_beta_above(a, b, x, rng, out):
    for i in range(out.size):
        out[i] = draw.draw_beta_above(a, b, x, 1.0 - x, rng)


@kernel
def _fill_inside(prior, count, inside, rng, out):
    valid = True
    for i in range(out.shape[0]):
        valid &= draw.draw_dirichlet_inside(prior, count, inside, out[i], rng)
    return valid


@kernel
def _fill_log_dirichlet(concentration, rng, out):
    valid = True
    for i in range(out.shape[0]):
        valid &= draw.draw_log_dirichlet(concentration, out[i], rng)
    return valid


def _gamma_below(shape, rate, upper, rng, n=N_DRAW):
    out = np.empty(n)
    _fill_gamma_below(float(shape), rate, upper, rng, out)
    return out


@pytest.mark.parametrize(
    ("shape", "rate", "upper"),
    [
        (0.3, 2.0, 0.1),  # power law
        (4.0, 0.5, 1.0),  # power law, shape above 1
        (0.5, 3.0, 2.0),  # plain, mode at 0
        (5.0, 2.0, 3.0),  # plain, mode inside
        (50.0, 10.0, 4.8),  # plain, mode just outside
        (50.0, 10.0, 2.0),  # tangent
        (1e4, 1.0, 9e3),  # tangent, far out
        (2.0, 1.0, np.inf),  # not truncated
    ],
)
def test_draws_of_truncated_gamma_follow_its_cdf(shape, rate, upper, rng):
    draws = _gamma_below(shape, rate, upper, rng)
    plain = scipy.stats.gamma(shape, scale=1.0 / rate)
    log_all = plain.logcdf(upper)
    assert draws.max() <= upper
    assert cdf_deviation(draws, lambda x: np.exp(plain.logcdf(x) - log_all)) < dkw_bound(N_DRAW)


@pytest.mark.parametrize("shape", [1.0 + 1e-13, 1.5, 2.0, 1e6])
def test_truncated_gamma_returns_when_its_mode_is_just_beyond_the_bound(shape, rng):
    # the tangent at the bound is then almost flat and of no use as a proposal
    rate = 1e3
    upper = (shape - 1.0) / rate * (1.0 - 1e-12)
    draws = _gamma_below(shape, rate, upper, rng, n=200)
    assert draws.min() > 0.0
    assert draws.max() <= upper


def test_truncated_gamma_draw_with_a_wrong_shape_is_caught(rng):
    draws = _gamma_below(5.5, 2.0, 3.0, rng)
    plain = scipy.stats.gamma(5.0, scale=0.5)
    assert cdf_deviation(draws, lambda x: plain.cdf(x) / plain.cdf(3.0)) > dkw_bound(N_DRAW)


@pytest.mark.parametrize(
    ("shape", "rate", "lower"),
    [(2.5, 4.0, 0.0), (3.0, 2.0, 0.5), (0.3, 1.3, 1e-3), (0.6, 1.3, 4.0), (40.0, 2.0, 26.0), (300.0, 1.0, 420.0)],
)
def test_draws_of_gamma_above_a_bound_follow_its_cdf(shape, rate, lower, rng):
    draws = np.empty(N_DRAW)
    _fill_gamma_above(shape, rate, lower, rng, draws)
    plain = scipy.stats.gamma(shape, scale=1.0 / rate)
    assert draws.min() >= lower
    assert cdf_deviation(draws, lambda x: 1.0 - plain.sf(x) / plain.sf(lower)) < dkw_bound(N_DRAW)


def test_gamma_far_above_its_mass_is_at_the_bound(rng):
    assert draw.draw_gamma_above(1e6, 1e18, 0.2, rng) == pytest.approx(0.2, rel=1e-15)


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(3.0, 40.0, 0.0), (3.0, 40.0, 0.02), (3.0, 40.0, 0.4), (0.4, 0.2, 0.9), (5.0, 0.5, 0.3), (400.0, 60.0, 0.95)],
)
def test_draws_of_beta_above_a_bound_follow_its_cdf(a, b, x, rng):
    draws = np.empty(N_DRAW)
    _fill_beta_above(a, b, x, rng, draws)
    plain = scipy.stats.beta(a, b)
    assert draws.min() >= x
    assert draws.max() < 1.0
    assert cdf_deviation(draws, lambda p: 1.0 - plain.sf(p) / plain.sf(x)) < dkw_bound(N_DRAW)


def test_beta_far_above_its_mass_is_at_the_bound(rng):
    assert draw.draw_beta_above(2.0, 1e12, 0.5, 0.5, rng) == pytest.approx(0.5, rel=1e-10)


@pytest.mark.parametrize("bad", [np.nan, -1.0, 0.0, np.inf])
def test_draws_with_invalid_parameters_are_nan(bad, rng):
    assert math.isnan(draw.draw_gamma(bad, 1.0, rng))
    assert math.isnan(draw.draw_gamma(1.0, bad, rng))
    assert math.isnan(draw.draw_beta(bad, 1.0, rng))
    assert math.isnan(draw.draw_gamma_below(bad, 1.0, 1.0, rng))
    assert math.isnan(draw.draw_gamma_above(bad, 1.0, 1.0, rng))
    assert math.isnan(draw.draw_gamma_above(1.0, bad, 1.0, rng))
    assert math.isnan(draw.draw_beta_above(bad, 1.0, 0.5, 0.5, rng))
    assert math.isnan(draw.draw_beta_above(1.0, bad, 0.5, 0.5, rng))
    assert not draw.draw_log_dirichlet(np.array([1.0, bad]), np.empty(2), rng)


def test_draws_of_beta_follow_its_cdf(rng):
    draws = np.empty(N_DRAW)
    _fill_beta(0.7, 2.5, rng, draws)
    assert cdf_deviation(draws, scipy.stats.beta(0.7, 2.5).cdf) < dkw_bound(N_DRAW)


@pytest.mark.parametrize("concentration", [0.001, 0.5, 20.0])
def test_log_dirichlet_draws_have_beta_marginals_and_sum_to_one(concentration, rng):
    n = 3
    alpha = np.array([concentration, 2.0 * concentration, concentration])
    draws = np.empty((N_DRAW, n))
    assert _fill_log_dirichlet(alpha, rng, draws)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(np.exp(draws).sum(axis=1), 1.0, rtol=1e-12)
    marginal = scipy.stats.beta(alpha[0], alpha[1:].sum())
    # on the log scale, where small concentrations put their mass: P(log X < t) = I(exp t)
    for t in (-2000.0, -500.0, -50.0, -3.0, -0.2):
        log_cdf = marginal.logcdf(math.exp(t)) if t > -700.0 else None
        if log_cdf is None:  # leading term of the incomplete beta function
            a, b = alpha[0], alpha[1:].sum()
            log_cdf = a * t - math.log(a) - math.lgamma(a) - math.lgamma(b) + math.lgamma(a + b)
        assert (draws[:, 0] <= t).mean() == pytest.approx(math.exp(log_cdf), abs=dkw_bound(N_DRAW))


@kernel
def _bimodal(x):
    """Return the log density of two normals of unit weight apart by 6, up to a constant."""
    return np.logaddexp(-0.5 * (x + 3.0) * (x + 3.0), -0.5 * (x - 3.0) * (x - 3.0))


@kernel
def _slice_chain(width, draws, rng):
    state = slice_state()
    x = 0.0
    for i in range(draws.size):
        point = slice_begin(state, x, _bimodal(x), width, rng)
        while slice_wants_more(state):
            point = slice_next(state, _bimodal(point), rng)
        x = point
        draws[i] = x


@pytest.mark.parametrize("width", [0.3, 4.0, 1e4])
def test_slice_updates_leave_their_target_invariant(width, rng):
    draws = np.empty(200_000)
    _slice_chain(width, draws, rng)
    for t in (-4.0, -2.5, 0.0, 2.5, 4.0):
        expected = 0.5 * (scipy.stats.norm.cdf(t + 3.0) + scipy.stats.norm.cdf(t - 3.0))
        assert abs(batch_z(draws <= t, expected)) < LARGEST_Z


def test_slice_update_with_nan_outside_its_start_stays_there(rng):
    state = slice_state()
    slice_begin(state, 1.5, 0.0, 1.0, rng)
    point = np.nan
    while slice_wants_more(state):
        point = slice_next(state, np.nan, rng)
    assert point == 1.5


@pytest.mark.parametrize("factor", [1.0, 1e-2, 1e-4])
def test_dirichlet_draws_inside_a_set_keep_their_ratios_however_small_the_concentrations(factor, rng):
    prior = factor * np.array([0.5, 0.5, 0.02, 0.02, 0.02, 0.02, 0.02])
    inside = np.arange(7) >= 2
    count = np.array([0.0, 0.0, 90.0, 6.0, 2.0, 1.0, 1.0])
    out = np.empty((N_DRAW, 7))
    assert _fill_inside(prior, count, inside, rng, out)
    drawn = out[:, inside] / out[:, inside].sum(axis=1)[:, None]
    expected = scipy.stats.beta(prior[2:] + count[2:], (prior + count)[2:].sum() - prior[2:] - count[2:])
    assert (np.abs(drawn.mean(axis=0) - expected.mean()) < LARGEST_Z * expected.std() / np.sqrt(len(drawn))).all()


def test_dirichlet_draws_inside_a_set_without_counts_are_the_priors(rng):
    prior, inside = 1e-4 * np.ones(6), np.arange(6) >= 3
    out = np.empty((2_000, 6))
    assert _fill_inside(prior, np.zeros(6), inside, rng, out)
    largest = out[:, inside].max(axis=1) > 0.999 * out[:, inside].sum(axis=1)
    assert largest.sum() > 1_950  # one entry has all, as a rule; underflow would make them equal


@pytest.mark.parametrize(("a", "b"), [(0.02, 0.05), (1e-6, 3.0), (0.5, 1e-3)])
def test_beta_draws_of_small_parameters_are_on_the_right_side(a, b, rng):
    p = np.empty(N_DRAW)
    _fill_beta(a, b, rng, p)
    share = scipy.stats.beta(a, b).sf(0.5)
    assert abs((p > 0.5).mean() - share) < LARGEST_Z * np.sqrt(max(share * (1.0 - share), 1e-4) / p.size)
    assert (p > 0.0).all()
    assert (p < 1.0).all()
