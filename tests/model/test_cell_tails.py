"""The distribution function of cells and its complement: exact in both tails, of whole leaves and of parts of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special, stats

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.paths import Condition
from bayesjpt.families import registry
from bayesjpt.model import cell_tails
from bayesjpt.model.cell_density import CELL_FAMILIES
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.families.examples import EXAMPLES, SPLINES
from tests.numerics import reference

TOLERANCE = 1e-11
"""Of a log probability: relative beyond 1, absolute below."""
SLOPE_TOLERANCE = 1e-8
"""Relative, of four-point differences and of densities over tails."""
WHOLE = (-np.inf, np.inf)

SPREAD = np.concatenate([-np.logspace(5, -9, 29), [0.0], np.logspace(-9, 5, 29)])
"""Distances from the middle, in standard deviations: beyond 38 a normal tail is no float any more."""

POINTS = {
    "normal": ([[0.3, -1.0], [50.0, 2.0]], lambda theta: theta[1] + np.sqrt(theta[0]) * SPREAD),
    "student_t": (
        [[0.5, -1.0, nu] for nu in (0.7, 1.0, 2.5, 30.0, 1000.0)],
        lambda theta: theta[1] + np.sqrt(theta[0]) * SPREAD * (1.0 if theta[2] < 1000.0 else 1e-2),
    ),
    "gamma": (
        [[shape, 2.5] for shape in (0.05, 0.7, 1.0, 9.0, 300.0, 1e5)],
        lambda theta: np.concatenate([[-1.0, 0.0], theta[0] / theta[1] * np.logspace(-30, 2.5, 60)]),
    ),
    "exponential": ([[0.01], [3.0]], lambda theta: np.concatenate([[-1.0, 0.0], np.logspace(-30, 6, 40)])),
    "lognormal": (
        [[0.01, 1.0], [4.0, -1.0]],
        lambda theta: np.concatenate([[-1.0, 0.0], np.exp(np.linspace(-60.0, 60.0, 41))]),
    ),
    "uniform": ([[]], lambda theta: np.linspace(-3.0, 4.0, 29)),
}


def compiled_tails(name: str, theta: np.ndarray):
    """Return the family, its constants, and z -> (log cdf, log ccdf, and the slopes of both), a row each leaf."""
    family = {family.name: family for family in registry.FAMILIES}[name]
    constants = np.array([-1.5, 2.0]) if name == "uniform" else np.array([1e-3])
    z = pt.dmatrix()
    tails = getattr(cell_tails, f"{name}_tails")(z, theta, np.tile(constants, (len(theta), 1)))
    return family, constants, pytensor.function([z], [*tails, *(pt.grad(tail.sum(), z) for tail in tails)])


@pytest.mark.parametrize("name", POINTS)
def test_both_tails_are_the_masses_of_the_kernels_and_slopes_the_density_over_them(name):
    points, cells = POINTS[name]
    theta = np.array(points, float).reshape(len(points), -1)
    family, constants, tails = compiled_tails(name, theta)
    z = np.stack([cells(one) for one in theta])
    lower, upper, slope, fall = tails(z)
    masses = [
        [(family.log_mass(-np.inf, x, one, constants), family.log_mass(x, np.inf, one, constants)) for x in row]
        for one, row in zip(theta, z, strict=True)
    ]
    np.testing.assert_allclose(np.stack([lower, upper], 2), masses, rtol=TOLERANCE, atol=TOLERANCE)
    assert np.isfinite(slope).all()
    assert np.isfinite(fall).all()
    density = np.stack([log_density(family, one, constants, row) for one, row in zip(theta, z, strict=True)])
    for tail, found in ((lower, slope), (upper, -fall)):
        usable = (tail > -np.inf) & (density > -np.inf) & ((z > 0.01) | (family.support[0] < 0.0))
        # the slope of a normal tail far out is the deviate, the density over the tail a difference of squares
        expected, lost = np.exp(density[usable] - tail[usable]), 1e-15 * np.abs(tail[usable]).max()
        np.testing.assert_allclose(found[usable], expected, rtol=SLOPE_TOLERANCE + lost, atol=1e-250)


def log_density(family, theta: np.ndarray, constants: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the log density of a leaf by its kernels."""
    coefficients, out, aux = np.zeros(theta.size + constants.size + 4), np.empty(z.size), z.copy()
    family.coefficients(theta, constants, coefficients)
    if family.prepare is not None:
        family.prepare(z, constants, aux)
    family.fill_log_density(z, aux, coefficients, out)
    return out


REAL_SPLINES = [example for example in EXAMPLES if example.name == "spline" and example.column.base == "real"]


@pytest.mark.parametrize("example", REAL_SPLINES, ids=lambda example: example.column.name)
def test_density_tails_and_slopes_of_splines_are_scipys(example):
    theta, constants, twin = example.parameters[None, :], example.constants[None, :], example.reference()
    leaf, z = SPLINES[example.column.name], pt.dmatrix()
    middle = np.linspace(leaf.breaks[0] - 3.0, leaf.breaks[-1] + 4.0, 97)
    x = np.concatenate(
        [middle, leaf.breaks, leaf.breaks[0] - np.logspace(-12, 2, 9), leaf.breaks[-1] + np.logspace(-12, 2, 9)]
    )
    outs = [
        CELL_FAMILIES["spline"].log_density(z, None, theta, constants),
        *cell_tails.spline_tails(z, theta, constants),
    ]
    function = pytensor.function([z], [*outs, *(pt.grad(out.sum(), z) for out in outs)])
    density, lower, upper, *slopes = (out[0] for out in function(x[None, :]))
    np.testing.assert_allclose(density, twin.logpdf(x), rtol=1e-12, atol=1e-12)
    masses = [
        [example.family.log_mass(*ends, theta[0], constants[0]) for ends in ((-np.inf, v), (v, np.inf))] for v in x
    ]
    np.testing.assert_allclose(np.stack([lower, upper], 1), masses, rtol=TOLERANCE, atol=TOLERANCE)
    near = (x > leaf.breaks[0] - 5.0) & (x < leaf.breaks[-1] + 5.0)  # SciPy's antiderivative is subtracted from 1
    np.testing.assert_allclose(np.exp(lower[near]), np.exp(twin.logcdf(x[near])), atol=1e-12)
    assert np.isfinite(slopes).all()
    usable = (density > -np.inf) & (lower > -np.inf) & (upper > -np.inf)
    for found, tail in ((slopes[1], lower), (-slopes[2], upper)):
        np.testing.assert_allclose(found[usable], np.exp(density[usable] - tail[usable]), rtol=SLOPE_TOLERANCE)
    inside = usable & (np.abs(x[:, None] - np.array(leaf.breaks)).min(axis=1) > 0.01)
    step = 1e-5
    moved = [function(x[None, :] + sign * step)[0][0, inside] for sign in (1.0, -1.0)]
    np.testing.assert_allclose(slopes[0][inside], (moved[0] - moved[1]) / (2.0 * step), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shape", "x"), [(9, 700.0), (9, 5000.0), (300, 2500.0), (2000, 4500.0)])
def test_upper_tail_of_a_gamma_is_the_finite_sum_of_whole_shapes_where_floats_underflow(shape, x):
    _, _, tails = compiled_tails("gamma", np.array([[shape, 1.0]]))
    _, upper, *_ = tails(np.array([[x]]))
    np.testing.assert_allclose(upper[0, 0], log_gamma_sum(shape, x), rtol=1e-13)


@pytest.mark.parametrize(("shape", "x"), [(9.0, 1e-40), (300.0, 5.0), (2000.0, 900.0)])
def test_lower_tail_of_a_gamma_agrees_with_decimals_where_floats_underflow(shape, x):
    _, _, tails = compiled_tails("gamma", np.array([[shape, 1.0]]))
    lower, *_ = tails(np.array([[x]]))
    np.testing.assert_allclose(lower[0, 0], reference.log_gamma_tails(shape, x)[0], rtol=1e-13)


def log_gamma_sum(shape: int, x: float) -> float:
    """Return the log of P(G > x) = exp(-x) sum of x^k / k! over k < shape, for G ~ Gamma(shape, 1)."""
    k = np.arange(shape)
    return special.logsumexp(k * np.log(x) - x - special.gammaln(k + 1.0))


# --- posteriors with a closed form


def posterior_of(family: str, theta: list[list[float]], weight: list[float]):
    """Return a posterior of one draw: components of one family in the user's units, of one column called x."""
    column = replace(ex.named(ex.REAL if family == "normal" else ex.POSITIVE, "x"), families=())
    table = ex.make_table((column,), 20, np.random.default_rng(0), continuous=True)
    circuit = ex.mixture(table, len(weight), dictionary=ex.only(family))
    schema = Schema(tuple(replace(column, location=0.0, scale=1.0) for column in table.schema))
    log_weight, values = circuit.start_log_weight.copy(), circuit.start_theta.copy()
    log_weight[circuit.edges_of_kind(0)] = np.log(weight)
    for leaf in range(circuit.n_leaf):
        values[circuit.theta_at[leaf] :][: len(theta[leaf])] = theta[leaf]
    return bj.Posterior(circuit, schema, Params(log_weight[None, None], values[None, None]))


NORMALS = ("normal", [[4.0, 0.0], [9.0, 3.0]], [0.4, 0.6])
GAMMAS = ("gamma", [[9.0, 1.0], [3.0, 0.5]], [0.3, 0.7])


def log_tail(model, x: float) -> float:
    """Return log P(X > x) of a mixture, by SciPy or by the finite sum, where floats underflow too."""
    family, theta, weight = model
    if family == "normal":
        parts = [stats.norm.logsf(x, mean, np.sqrt(variance)) for variance, mean in theta]
    else:
        parts = [log_gamma_sum(int(shape), rate * x) for shape, rate in theta]
    return special.logsumexp(parts, b=weight)


def log_mass(model, lo: float, hi: float) -> float:
    """Return log P(lo < X <= hi) of a mixture, from the tails above."""
    if hi == np.inf:
        return log_tail(model, lo)
    return log_tail(model, lo) + np.log(-np.expm1(log_tail(model, hi) - log_tail(model, lo)))


def compiled(rv):
    """Return x -> (log cdf, log ccdf, and the slopes of both) of a univariate distribution."""
    x = pt.dvector()
    out = [pm.logcdf(rv, x), pm.logccdf(rv, x)]
    return pytensor.function([x], [*out, *(pt.grad(value.sum(), x) for value in out)])


@pytest.mark.parametrize("model", [NORMALS, GAMMAS], ids=["normal", "gamma"])
@pytest.mark.parametrize("lo", [20.0, 60.0])
def test_distribution_function_of_a_tail_agrees_with_closed_forms(model, lo):
    post = posterior_of(*model).condition(f"x > {lo}")
    x = lo + np.array([0.01, 0.1, 0.5, 2.0, 10.0, 30.0])
    log_cdf, log_ccdf, *slopes = compiled(bj.CircuitPrior.dist(post, "x"))(x)
    total = log_mass(model, lo, np.inf)
    np.testing.assert_allclose(log_cdf, [log_mass(model, lo, at) - total for at in x], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(log_ccdf, [log_mass(model, at, np.inf) - total for at in x], rtol=1e-10)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("model", [NORMALS, GAMMAS], ids=["normal", "gamma"])
@pytest.mark.parametrize(
    "event",
    ["x > 20 and x < 21", "x < 0.5", "x < 1 or x > 25"],
)
def test_distribution_function_of_a_truncation_is_that_of_the_posterior(event, model):
    post = posterior_of(*model).condition(event)
    x = np.unique([*np.linspace(-9.0, 70.0, 60), *(float(word) for word in event.split() if word[0].isdigit())])
    x = np.unique([*x, 2.0003, *(x - 1e-3), *(x + 1e-3)])
    log_cdf, log_ccdf, *slopes = compiled(bj.CircuitPrior.dist(post, "x"))(x)
    expected = post.cdf(x, "x").to_numpy().ravel()
    np.testing.assert_allclose(np.exp(log_cdf), expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(np.exp(log_ccdf), 1.0 - expected, rtol=0.0, atol=1e-9)
    assert (log_cdf <= 0.0).all()
    assert (log_ccdf <= 0.0).all()
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("model", [NORMALS, GAMMAS], ids=["normal", "gamma"])
@pytest.mark.parametrize("width", [1e-6, 1e-9])
def test_distribution_function_of_a_narrow_interval_is_its_share_to_the_last_floats(width, model):
    lo, hi = 5.0, 5.0 + width
    post = posterior_of(*model).condition(f"x > {lo!r} and x < {hi!r}")
    x = lo + width * np.array([0.1, 0.4, 0.9])
    log_cdf, log_ccdf, *slopes = compiled(bj.CircuitPrior.dist(post, "x"))(x)
    expected = post.cdf(x, "x").to_numpy().ravel()
    tolerance = SLOPE_TOLERANCE + 2.0 * np.spacing(lo) / width
    np.testing.assert_allclose(np.exp(log_cdf), expected, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(np.exp(log_ccdf), 1.0 - expected, rtol=0.0, atol=tolerance)
    assert np.isfinite(slopes).all()


def test_whole_line_has_probability_one_and_nothing_lies_beyond_it():
    post = posterior_of(*NORMALS)
    for given in (post, post.condition("x > 60"), post.condition("x < -30")):
        rv = bj.CircuitPrior.dist(given, "x")
        ends = pt.as_tensor(np.array(WHOLE))
        np.testing.assert_array_equal(pm.logcdf(rv, ends).eval(), [-np.inf, 0.0])
        np.testing.assert_array_equal(pm.logccdf(rv, ends).eval(), [0.0, -np.inf])


def joint_tree(table, dictionary):
    """Return hard sums that split the first column at 2 and, above it, at 5."""

    def part(rows):
        return Product(tuple(ColumnLeaf(column, rows) for column in range(table.n_column)))

    x = table.values[0]
    low, middle, high = (np.flatnonzero((x >= lo) & (x < hi)) for lo, hi in ((-np.inf, 2.0), (2.0, 5.0), (5.0, np.inf)))
    above = Sum((part(middle), part(high)), (middle.size, high.size), Condition(0, 5.0))
    return build_circuit(
        Sum((part(low), above), (low.size, table.n_row - low.size), Condition(0, 2.0)), table, dictionary
    )


def mixed_posteriors(rng) -> dict[str, Any]:
    """Return posteriors over a column of positive numbers: of every likelihood, of a joint tree, and of both."""
    columns = (replace(ex.POSITIVE, families=()), ex.named(ex.REAL, "other"))
    table = ex.make_table(columns, 60, rng, continuous=True)
    values = table.values.copy()
    values[0, :6] = 1.0, 1.5, 3.0, 3.5, 7.0, 8.0  # no part of the tree is empty
    table = Table(table.schema, values, np.ones(values.shape, bool))
    circuits = [
        ex.mixture(table, 3, ex.only("normal", "gamma", "exponential", "lognormal", "student_t", "uniform")),
        joint_tree(table, ex.only("normal", "gamma", "exponential", "lognormal", "student_t")),
    ]
    mixture, tree = (ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=2) for circuit in circuits)
    return {"mixture": mixture, "joint tree": tree, "structures": StackedPosterior([mixture, tree], [0.5, 0.5])}


def mean_log_probability(post, event: str) -> float:
    """Return the log of an event's mean probability over all draws."""
    found = post.log_probability(event).to_numpy().ravel()
    return special.logsumexp(found) - np.log(found.size)


@pytest.mark.parametrize("name", ["joint tree", "structures"])
def test_both_tails_are_the_mean_probabilities_of_draws(name, rng):
    post = mixed_posteriors(rng)[name]
    x = np.array([-3.0, 0.01, 0.7, 1.9, 2.1, 4.9, 5.3, 9.0, 30.0, 200.0])
    log_cdf, log_ccdf, *slopes = compiled(bj.CircuitPrior.dist(post, "positive", max_draws=1000))(x)
    expected = np.array([[mean_log_probability(post, f"positive {sign} {at}") for at in x] for sign in ("<=", ">")])
    np.testing.assert_allclose(np.stack([log_cdf, log_ccdf]), expected, rtol=1e-10, atol=1e-12)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("name", ["mixture", "joint tree"])
def test_gradients_of_both_tails_agree_with_differences(name, rng):
    post = mixed_posteriors(rng)[name].condition("positive > 0.5 and positive < 40")
    function = compiled(bj.CircuitPrior.dist(post, "positive", max_draws=1000))
    x = np.array([0.8, 1.5, 3.0, 4.0, 6.0, 9.0, 15.0, 30.0])
    steps = ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))
    differences = sum(weight / 1e-3 * np.stack(function(x + sign * 1e-3)[:2]) for sign, weight in steps)
    np.testing.assert_allclose(np.stack(function(x)[2:]), differences, rtol=1e-6, atol=1e-10)


# --- what PyMC makes of them


@pytest.mark.parametrize("bound", [50.0, 400.0])
def test_a_censored_cell_far_out_has_the_mass_beyond_the_bound(bound):
    structures = [posterior_of(*NORMALS), posterior_of("normal", [[1.0, -1.0], [25.0, 1.0]], [0.5, 0.5])]
    stacked = StackedPosterior(structures, [0.5, 0.5])
    rv = bj.CircuitPrior.dist(stacked, "x", max_draws=1000)
    found = pm.logp(pm.Censored.dist(rv, lower=None, upper=bound), pt.as_tensor([1.0, bound])).eval()
    beyond = [
        np.log(weight / 2) + stats.norm.logsf(bound, mean, sd)
        for weight, mean, sd in ((0.4, 0.0, 2.0), (0.6, 3.0, 3.0), (0.5, -1.0, 1.0), (0.5, 1.0, 5.0))
    ]
    np.testing.assert_allclose(found, [pm.logp(rv, 1.0).eval(), special.logsumexp(beyond)], rtol=1e-12)


@pytest.mark.parametrize(("lower", "upper"), [(30.0, None), (30.0, 31.0), (None, 30.0), (-31.0, -30.0)])
def test_truncated_cells_have_the_density_over_the_mass_between_the_bounds(lower, upper):
    rv = bj.CircuitPrior.dist(posterior_of(*NORMALS), "x")
    x = (upper if lower is None else lower) + np.array([-0.2, 0.3])
    found = pm.logp(pm.Truncated.dist(rv, lower=lower, upper=upper), x).eval()
    lo, hi = -np.inf if lower is None else lower, np.inf if upper is None else upper
    if lower is not None and lower < 0.0:  # mirrored, where the tails have the digits
        mass = log_mass(("normal", [[4.0, 0.0], [9.0, -3.0]], [0.4, 0.6]), -hi, -lo)
    elif lower is None:
        mass = np.log1p(-np.exp(log_tail(NORMALS, hi)))
    else:
        mass = log_mass(NORMALS, lo, hi)
    expected = np.where((x >= lo) & (x <= hi), pm.logp(rv, x).eval() - mass, -np.inf)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_censored_model_has_a_finite_gradient():
    post = posterior_of(*GAMMAS)
    bound, bound_at = pt.dscalar(), 900.0
    rv = bj.CircuitPrior.dist(post, "x")
    logp = pm.logp(pm.Censored.dist(rv, lower=0.5, upper=bound), pt.stack([0.5, 2.0, bound])).sum()
    value, slope = pytensor.function([bound], [logp, pt.grad(logp, bound)])(bound_at)
    assert np.isfinite(value)
    found = pm.logp(rv, bound_at).eval() - log_tail(GAMMAS, bound_at)
    np.testing.assert_allclose(slope, -np.exp(found), rtol=1e-9)
