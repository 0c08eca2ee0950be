"""The block's random variables: densities against SciPy, draws against CDFs, support points, pickles, cache keys."""

from __future__ import annotations

import itertools

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from pymc.distributions.distribution import support_point
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

from bayesjpt.model import block_variables, distributions, truncated_beta
from bayesjpt.numerics import jit
from tests import statistics

TOLERANCE = 1e-10
SIMPLEX_TOLERANCE = 1e-12
LAST_BITS = 1e-14
"""Relative; NumPy and numba round differently inside a gamma draw."""
N_DRAW = 30_000
N_COMPARED = 200
PTR = (0, 2, 5, 6, 10)
"""Segments of a pair, a triple, a single entry and a quadruple."""
CONCENTRATION = np.array([0.3, 2.0, 1.0, 5.0, 0.7, 4.0, 0.1, 0.1, 0.1, 30.0])

INVERSE_GAMMAS = [(1.0, 0.05, 2e-4), (3.0, 2.0, 0.0), (0.6, 1.3, 4.0), (40.0, 2.0, 0.2), (1.0, 1e-3, 50.0)]
"""Shape, scale, floor: a floor that hardly matters, none, one above most, far above, where almost nothing is left."""
GAMMAS = [(2.5, 4.0, 0.0), (3.0, 2.0, 0.5), (0.6, 1.3, 2.0), (40.0, 2.0, 21.0), (300.0, 1.0, 420.0), (2.0, 1e-3, 5.0)]
"""Shape, rate, floor: none, one below most, above most of a shape below 1, near the mean, far above it, far below."""
GAMMAS_BELOW = [(2.5, 4.0, np.inf), (3.0, 2.0, 5.0), (0.6, 1.3, 0.2), (40.0, 2.0, 19.0)]
"""Shape, rate, cap: none, above most, below most of a shape below 1, near the mean."""
BETAS = [
    (3.0, 40.0, 0.0),
    (3.0, 40.0, 0.02),
    (5.0, 0.5, 0.3),
    (400.0, 60.0, 0.87),
    (4e4, 7.0, 0.9996),
    (1.2, 30.0, 0.1),
]
"""Shapes, floor: none, below most, a second shape below 1, near the mean, large shapes, above most."""
LOG_NORMALS = [(0.7, 1.5, np.inf), (0.7, 1.5, 3.0), (0.7, 0.01, 2.0), (-2.0, 0.5, 0.01), (3.0, 2.0, 1e6)]
"""Mean and standard deviation of the logarithm, cap."""


NORMALS_BELOW = [(0.7, 1.5, np.inf), (0.7, 1.5, 3.0), (-2.0, 0.5, -2.4), (3.0, 2.0, -7.0), (1e3, 0.1, 1e3)]
"""Mean, standard deviation and upper bound: none, above most, below the mean, far below, at the mean."""


def segments() -> list[slice]:
    return [slice(lo, hi) for lo, hi in itertools.pairwise(PTR)]


def simplexes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return float64 (n, 10): random points, one simplex a segment."""
    return np.hstack([rng.dirichlet(np.ones(s.stop - s.start), n) for s in segments()])


def scipy_segment_dirichlet(value: np.ndarray) -> float:
    wide = [s for s in segments() if s.stop - s.start > 1]
    return sum(scipy.stats.dirichlet.logpdf(value[s], CONCENTRATION[s]) for s in wide)


def log_density(variable, value) -> np.ndarray:
    return pm.logp(variable, value).eval()


# --- densities


def test_segment_dirichlet_density_is_the_product_of_dirichlet_densities(rng):
    variable = distributions.SegmentDirichlet.dist(CONCENTRATION, ptr=PTR)
    for value in simplexes(rng, 5):
        assert log_density(variable, value) == pytest.approx(scipy_segment_dirichlet(value), rel=0.0, abs=TOLERANCE)


def test_segment_dirichlet_density_keeps_leading_dimensions(rng):
    variable = distributions.SegmentDirichlet.dist(CONCENTRATION, ptr=PTR, shape=(4, 10))
    values = simplexes(rng, 4)
    expected = [scipy_segment_dirichlet(value) for value in values]
    np.testing.assert_allclose(log_density(variable, values), expected, rtol=0.0, atol=TOLERANCE)


def test_segment_dirichlet_takes_one_concentration_for_all(rng):
    value = simplexes(rng, 1)[0]
    one = log_density(distributions.SegmentDirichlet.dist(0.4, ptr=PTR), value)
    all_ten = log_density(distributions.SegmentDirichlet.dist(np.full(10, 0.4), ptr=PTR), value)
    assert one == all_ten


@pytest.mark.parametrize("wrong", ["sum", "negative", "zero"])
def test_segment_dirichlet_density_is_zero_off_the_simplexes(wrong, rng):
    value = simplexes(rng, 1)[0]
    match wrong:
        case "sum":
            value[3] += 1e-3
        case "negative":
            value[3], value[2] = -value[3], value[2] + 2.0 * value[3]
        case "zero":
            value[3], value[2] = 0.0, value[2] + value[3]
    assert log_density(distributions.SegmentDirichlet.dist(CONCENTRATION, ptr=PTR), value) == -np.inf


@pytest.mark.parametrize(("alpha", "beta", "floor"), INVERSE_GAMMAS)
def test_floored_inverse_gamma_density_includes_its_normaliser(alpha, beta, floor, rng):
    prior = scipy.stats.invgamma(alpha, scale=beta)
    value = max(floor, 1e-3 * beta) * np.exp(rng.exponential(1.0, 20))
    expected = prior.logpdf(value) - (prior.logsf(floor) if floor > 0.0 else 0.0)
    variable = distributions.FlooredInverseGamma.dist(alpha, beta, floor)
    np.testing.assert_allclose(log_density(variable, value), expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_floored_inverse_gamma_density_is_zero_below_its_floor():
    variable = distributions.FlooredInverseGamma.dist(2.0, 1.0, 0.5)
    at = np.array([-1.0, 0.0, 0.4999, 0.5])
    np.testing.assert_array_equal(np.isfinite(log_density(variable, at)), [False, False, False, True])


@pytest.mark.parametrize(("alpha", "beta", "floor"), GAMMAS)
def test_floored_gamma_density_includes_its_normaliser(alpha, beta, floor, rng):
    prior = scipy.stats.gamma(alpha, scale=1.0 / beta)
    value = floor + prior.std() * rng.exponential(1.0, 20)
    variable = distributions.FlooredGamma.dist(alpha, beta, floor)
    expected = prior.logpdf(value) - prior.logsf(floor)
    np.testing.assert_allclose(log_density(variable, value), expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert log_density(variable, 0.999 * floor if floor else -1.0) == -np.inf


@pytest.mark.parametrize(("alpha", "floor"), [(0.5, 499.0), (0.5, 501.0), (7.0, 800.0), (100.0, 501.0), (3.0, 1e6)])
def test_floored_gamma_density_is_finite_where_nothing_but_its_floor_is_left(alpha, floor):
    """P(G > x) is x^(alpha - 1) e^-x / Gamma(alpha) times the integral of (1 + u / x)^(alpha - 1) e^-u."""
    tail, _ = scipy.integrate.quad(
        lambda u: np.exp((alpha - 1.0) * np.log1p(u / floor) - u), 0.0, np.inf, epsabs=0.0, epsrel=1e-12
    )
    found = log_density(distributions.FlooredGamma.dist(alpha, 1.0, floor), floor)
    assert float(found) == pytest.approx(-np.log(tail), abs=1e-9)


@pytest.mark.parametrize(("alpha", "beta", "upper"), GAMMAS_BELOW)
def test_capped_gamma_density_includes_its_normaliser(alpha, beta, upper, rng):
    prior = scipy.stats.gamma(alpha, scale=1.0 / beta)
    value = prior.ppf(prior.cdf(upper) * rng.random(20))
    variable = distributions.CappedGamma.dist(alpha, beta, upper)
    expected = prior.logpdf(value) - prior.logcdf(upper)
    np.testing.assert_allclose(log_density(variable, value), expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert log_density(variable, -1.0) == -np.inf
    assert upper == np.inf or log_density(variable, 1.001 * upper) == -np.inf


@pytest.mark.parametrize(("alpha", "beta", "floor"), [*BETAS, (5.0, 1e-3, 0.3)])
def test_floored_beta_density_includes_its_normaliser(alpha, beta, floor, rng):
    prior = scipy.stats.beta(alpha, beta)
    value = np.clip(prior.isf(prior.sf(floor) * rng.random(20)), floor, 1.0 - 1e-12)
    variable = truncated_beta.FlooredBeta.dist(alpha, beta, floor)
    expected = prior.logpdf(value) - prior.logsf(floor)
    np.testing.assert_allclose(log_density(variable, value), expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert log_density(variable, 0.999 * floor if floor else -1.0) == -np.inf
    assert log_density(variable, 1.0001) == -np.inf


def test_beta_tails_have_the_gradients_of_the_incomplete_beta_function():
    a, b, x = (np.array(column) for column in zip(*BETAS[1:], strict=True))
    inputs = [pt.dvector() for _ in range(3)]
    value = truncated_beta.log_beta_tail(*inputs)
    function = pytensor.function(inputs, pt.grad(value.sum(), inputs), mode="FAST_COMPILE")
    by_a, by_b, by_x = function(a, b, x)
    tail = scipy.stats.beta(a, b)
    np.testing.assert_allclose(by_x, -np.exp(tail.logpdf(x) - tail.logsf(x)), rtol=1e-8)
    step = 1e-4
    for found, args in ((by_a, (step, 0.0)), (by_b, (0.0, step))):
        more, less = (np.log(scipy.special.betaincc(a * (1 + s * args[0]), b * (1 + s * args[1]), x)) for s in (1, -1))
        size = (a if args[0] else b) * 2.0 * step
        np.testing.assert_allclose(found, (more - less) / size, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(("mu", "sigma", "upper"), LOG_NORMALS)
def test_capped_log_normal_density_includes_its_normaliser(mu, sigma, upper, rng):
    prior = scipy.stats.lognorm(sigma, scale=np.exp(mu))
    value = min(upper, np.exp(mu + sigma)) * np.exp(-sigma * rng.exponential(1.0, 20))
    expected = prior.logpdf(value) - prior.logcdf(upper)
    variable = distributions.CappedLogNormal.dist(mu, sigma, upper)
    np.testing.assert_allclose(log_density(variable, value), expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(("mu", "sigma", "upper"), NORMALS_BELOW)
def test_capped_normal_density_and_draws_are_scipys_truncated_normal(mu, sigma, upper, rng):
    expected = scipy.stats.truncnorm(-np.inf, (upper - mu) / sigma, loc=mu, scale=sigma)
    value = expected.rvs(20, random_state=rng)
    variable = distributions.CappedNormal.dist(mu, sigma, upper)
    np.testing.assert_allclose(log_density(variable, value), expected.logpdf(value), rtol=TOLERANCE, atol=1e-8)
    draws = pm.draw(distributions.CappedNormal.dist(mu, sigma, upper, shape=N_DRAW), random_seed=rng)
    assert (draws <= upper).all()
    assert statistics.cdf_deviation(draws, expected.cdf) < statistics.dkw_bound(N_DRAW)
    wrong = scipy.stats.truncnorm(-np.inf, (upper - mu) / sigma, loc=mu - 0.1 * sigma, scale=sigma)
    assert statistics.cdf_deviation(draws, wrong.cdf) > statistics.dkw_bound(N_DRAW)


def test_capped_normal_density_is_zero_above_its_limit():
    variable = distributions.CappedNormal.dist(0.0, 1.0, -0.5)
    at = np.array([-3.0, -0.5, -0.4999, 2.0])
    np.testing.assert_array_equal(np.isfinite(log_density(variable, at)), [True, True, False, False])


def test_capped_log_normal_density_is_zero_outside_its_support():
    variable = distributions.CappedLogNormal.dist(0.0, 1.0, 2.0)
    at = np.array([-1.0, 0.0, 2.0, 2.0001])
    np.testing.assert_array_equal(np.isfinite(log_density(variable, at)), [False, False, True, False])


@pytest.mark.parametrize(
    ("variable", "expected", "value"),
    [
        (block_variables.BlockNormal, scipy.stats.norm(1.0, 2.0), [-3.0, 0.2, 9.0]),
        (block_variables.BlockGamma, scipy.stats.gamma(1.0, scale=0.5), [0.1, 1.0, 7.0]),
        (block_variables.BlockBeta, scipy.stats.beta(1.0, 2.0), [0.01, 0.5, 0.9]),
    ],
    ids=["normal", "gamma", "beta"],
)
def test_plain_distributions_keep_their_density(variable, expected, value):
    value = np.array(value)
    found = log_density(variable.dist(np.array(1.0), np.array(2.0)), value)
    np.testing.assert_allclose(found, expected.logpdf(value), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(
    "variable",
    [
        lambda: distributions.SegmentDirichlet.dist([1.0, -1.0], ptr=(0, 2)),
        lambda: distributions.FlooredInverseGamma.dist(0.0, 1.0, 0.0),
        lambda: distributions.FlooredInverseGamma.dist(1.0, 1.0, -1.0),
        lambda: distributions.FlooredGamma.dist(0.0, 1.0, 0.0),
        lambda: distributions.FlooredGamma.dist(1.0, 1.0, -1.0),
        lambda: distributions.CappedGamma.dist(1.0, 1.0, 0.0),
        lambda: truncated_beta.FlooredBeta.dist(1.0, 1.0, 1.0),
        lambda: distributions.CappedLogNormal.dist(0.0, 0.0, 1.0),
        lambda: distributions.CappedLogNormal.dist(0.0, 1.0, 0.0),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_the_density(variable):
    made = variable()
    with pytest.raises(pm.logprob.utils.ParameterValueError):
        log_density(made, np.full(made.type.shape, 0.5))


# --- draws

DRAWN = {
    "segment_dirichlet": lambda shape: block_variables.BlockSegmentDirichlet.dist(
        CONCENTRATION, ptr=PTR, shape=(*shape, 10)
    ),
    "floored_inverse_gamma": lambda shape: block_variables.BlockFlooredInverseGamma.dist(
        *np.transpose(INVERSE_GAMMAS), shape=(*shape, 5)
    ),
    "floored_gamma": lambda shape: block_variables.BlockFlooredGamma.dist(
        *np.transpose(GAMMAS), shape=(*shape, len(GAMMAS))
    ),
    "capped_gamma": lambda shape: block_variables.BlockCappedGamma.dist(
        *np.transpose(GAMMAS_BELOW), shape=(*shape, len(GAMMAS_BELOW))
    ),
    "floored_beta": lambda shape: block_variables.BlockFlooredBeta.dist(
        *np.transpose(BETAS), shape=(*shape, len(BETAS))
    ),
    "capped_log_normal": lambda shape: block_variables.BlockCappedLogNormal.dist(
        *np.transpose(LOG_NORMALS), shape=(*shape, 5)
    ),
    "normal": lambda shape: block_variables.BlockNormal.dist(mu=1.0, sigma=2.0, shape=(*shape, 1)),
    "gamma": lambda shape: block_variables.BlockGamma.dist(alpha=2.5, beta=4.0, shape=(*shape, 1)),
    "beta": lambda shape: block_variables.BlockBeta.dist(alpha=1.0, beta=3.2, shape=(*shape, 1)),
}


def dirichlet_cdfs():
    for s in segments():
        for entry in range(s.start, s.stop):
            rest = CONCENTRATION[s].sum() - CONCENTRATION[entry]
            yield scipy.stats.beta(CONCENTRATION[entry], rest).cdf if rest > 1e-12 else (lambda x: x >= 1.0)


def inverse_gamma_cdfs():
    for alpha, beta, floor in INVERSE_GAMMAS:
        prior = scipy.stats.invgamma(alpha, scale=beta)
        yield lambda x, prior=prior, floor=floor: np.maximum(1.0 - prior.sf(x) / prior.sf(floor), 0.0)


def capped_gamma_cdfs():
    for alpha, beta, upper in GAMMAS_BELOW:
        prior = scipy.stats.gamma(alpha, scale=1.0 / beta)
        yield lambda x, prior=prior, upper=upper: np.minimum(prior.cdf(x) / prior.cdf(upper), 1.0)


def beta_cdfs():
    for alpha, beta, floor in BETAS:
        prior = scipy.stats.beta(alpha, beta)
        yield lambda x, prior=prior, floor=floor: np.maximum(1.0 - prior.sf(x) / prior.sf(floor), 0.0)


def gamma_cdfs():
    for alpha, beta, floor in GAMMAS:
        prior = scipy.stats.gamma(alpha, scale=1.0 / beta)
        yield lambda x, prior=prior, floor=floor: np.maximum(1.0 - prior.sf(x) / prior.sf(floor), 0.0)


def log_normal_cdfs():
    for mu, sigma, upper in LOG_NORMALS:
        prior = scipy.stats.lognorm(sigma, scale=np.exp(mu))
        yield lambda x, prior=prior, upper=upper: np.minimum(prior.cdf(x) / prior.cdf(upper), 1.0)


CDFS = {
    "segment_dirichlet": dirichlet_cdfs,
    "floored_inverse_gamma": inverse_gamma_cdfs,
    "floored_gamma": gamma_cdfs,
    "capped_gamma": capped_gamma_cdfs,
    "floored_beta": beta_cdfs,
    "capped_log_normal": log_normal_cdfs,
    "normal": lambda: [scipy.stats.norm(1.0, 2.0).cdf],
    "gamma": lambda: [scipy.stats.gamma(2.5, scale=0.25).cdf],
    "beta": lambda: [scipy.stats.beta(1.0, 3.2).cdf],
}


@pytest.mark.parametrize("name", DRAWN)
def test_compiled_draws_follow_their_cdfs(name, rng):
    draws = pm.draw(DRAWN[name]((N_DRAW,)), random_seed=int(rng.integers(2**31)), mode="NUMBA")
    for column, cdf in zip(draws.T, CDFS[name](), strict=True):
        assert statistics.cdf_deviation(column, cdf) < statistics.dkw_bound(N_DRAW)


@pytest.mark.parametrize("name", DRAWN)
def test_compiled_and_python_generators_give_the_same_stream(name, rng):
    seed = int(rng.integers(2**31))
    variable = DRAWN[name]((N_COMPARED,))
    compiled = pm.draw(variable, random_seed=seed, mode="NUMBA")
    plain = pm.draw(variable, random_seed=seed, mode="FAST_COMPILE")
    np.testing.assert_allclose(compiled, plain, rtol=LAST_BITS, atol=0.0)


@pytest.mark.parametrize("concentration", [1e-3, 0.1, 1e4])
def test_segment_dirichlet_draws_are_positive_and_sum_to_one(concentration, rng):
    variable = distributions.SegmentDirichlet.dist(concentration, ptr=PTR, shape=(N_COMPARED, 10))
    draws = pm.draw(variable, random_seed=int(rng.integers(2**31)))
    assert (draws >= distributions.SMALLEST_WEIGHT).all()
    for s in segments():
        np.testing.assert_allclose(draws[:, s].sum(axis=1), 1.0, rtol=0.0, atol=SIMPLEX_TOLERANCE)


# --- support points, pickles, names


@pytest.mark.parametrize("name", DRAWN)
def test_support_point_lies_inside_the_support(name):
    variable = DRAWN[name]((3,))
    point = support_point(variable).eval()
    assert point.shape == tuple(variable.shape.eval())
    assert np.isfinite(log_density(variable, point)).all()


def test_support_point_of_a_tiny_concentration_beside_a_huge_one_is_inside():
    variable = distributions.SegmentDirichlet.dist([1e-290, 1e30], ptr=(0, 2))
    assert (support_point(variable).eval() > 0.0).all()


@pytest.mark.parametrize("name", DRAWN)
def test_cloudpickle_keeps_density_draws_and_type(name):
    variable = DRAWN[name]((2,))
    again = cloudpickle.loads(cloudpickle.dumps(variable))
    assert isinstance(again.owner.op, block_variables.BlockVariable)
    assert again.owner.op == variable.owner.op
    draws = pm.draw(variable, random_seed=1)
    np.testing.assert_array_equal(pm.draw(again, random_seed=1), draws)
    np.testing.assert_array_equal(log_density(again, draws), log_density(variable, draws))


def test_repr_of_twenty_thousand_segments_is_short():
    many = distributions.Segments(np.arange(0, 60_001, 3))
    assert len(repr(many)) < 60


@pytest.mark.parametrize("name", ["segment_dirichlet", "floored_inverse_gamma", "floored_gamma", "capped_log_normal"])
def test_compiled_generator_has_another_cache_key_after_an_edit_of_a_kernel_source(name, monkeypatch):
    node = DRAWN[name]((1,)).owner
    _, before = numba_core_rv_funcify(node.op, node)
    monkeypatch.setattr(jit, "source_hash", lambda room="": "f" * 64)
    _, after = numba_core_rv_funcify(node.op, node)
    assert before != after
