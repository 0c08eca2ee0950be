"""A posterior as the prior of latent rows: its density, gradient, distribution function and draws, and NUTS on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from scipy import special, stats

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import ModelError, QueryError
from bayesjpt.model.cell_density import CELL_FAMILIES
from bayesjpt.model.upward_density import root_value
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.model.conftest import QUICK

TOLERANCE = 1e-12
DIFFERENCE_TOLERANCE = 1e-8
"""Relative to the largest entry; of four-point central differences."""
N_ERRORS = 4.5
"""Monte Carlo errors by which an estimate may differ from what it estimates."""

COLUMNS = (ex.REAL, replace(ex.POSITIVE, families=()), ex.COUNT, ex.named(ex.REAL, "other"))
REALS = ["real", "positive", "other"]
DICTIONARY = ex.only("normal", "gamma", "exponential", "lognormal", "student_t", "uniform", "poisson")


@pytest.fixture
def post(rng):
    """Return draws of a two-level circuit over real columns of every usable likelihood, and a count."""
    table = ex.make_table(COLUMNS, 30, rng, continuous=True)
    return ex.random_posterior(ex.two_level(table, dictionary=DICTIONARY), table, rng)


def as_rows(post, names, values: np.ndarray) -> Table:
    """Return rows, (n_column, n_row), as a table of the marginal's schema."""
    return Table(post.marginal(names).schema, values, np.ones(values.shape, bool))


def mean_density(post, names, values: np.ndarray) -> np.ndarray:
    """Return the log of the mean density over all draws of each row."""
    scores = post.marginal(names).log_density(as_rows(post, names, values)).to_numpy()
    return special.logsumexp(scores.reshape(-1, values.shape[1]), axis=0) - np.log(scores.shape[0] * scores.shape[1])


def log_density(post, columns, **more):
    """Return the compiled log density and gradient of `CircuitPrior.dist`."""
    value = pt.dvector() if isinstance(columns, str) else pt.dmatrix()
    logp = pm.logp(bj.CircuitPrior.dist(post, columns, **more), value)
    return pytensor.function([value], [logp, pt.grad(logp.sum(), value)])


def assert_slopes(function, rows: np.ndarray) -> None:
    """Compare gradients with four-point differences."""
    _, gradient = function(rows)
    slopes = np.zeros_like(rows)
    for j in range(rows.shape[1]):
        for sign, weight in ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0)):
            moved = rows.copy()
            moved[:, j] += sign * 1e-3
            slopes[:, j] += weight * function(moved)[0] / 1e-3
    np.testing.assert_allclose(gradient, slopes, rtol=0.0, atol=DIFFERENCE_TOLERANCE * np.abs(slopes).max())


def cells(rng, n: int = 25) -> np.ndarray:
    """Return rows of the real columns, away from the walls of the positive likelihoods."""
    return np.stack([rng.normal(1.0, 2.0, n), 0.3 + rng.gamma(2.0, 1.2, n), rng.normal(1.0, 2.0, n)], axis=1)


def test_density_is_the_mean_over_draws_and_its_gradient_agrees_with_differences(post, rng):
    function, rows = log_density(post, REALS), cells(rng)
    np.testing.assert_allclose(function(rows)[0], mean_density(post, REALS, rows.T.copy()), rtol=TOLERANCE)
    assert_slopes(function, rows)


def test_density_where_some_likelihoods_are_zero_is_the_mean_over_draws(post, rng):
    rows = cells(rng)
    rows[:, 1] = np.linspace(-0.2, 0.2, len(rows))  # below zero, and inside the cell of zero
    found, gradient = log_density(post, REALS)(rows)
    np.testing.assert_allclose(found, mean_density(post, REALS, rows.T.copy()), rtol=TOLERANCE)
    assert np.isfinite(gradient).all()


def test_density_of_a_truncated_posterior_is_the_mean_over_draws(post, rng):
    within = post.condition("real > 0 and real < 3 and positive > 1")
    rows = cells(rng)
    inside = (rows[:, 0] > 0.01) & (rows[:, 0] < 2.99) & (rows[:, 1] > 1.01)
    assert 0 < inside.sum() < inside.size
    function = log_density(within, REALS)
    expected = mean_density(within, REALS, rows.T.copy())
    np.testing.assert_allclose(function(rows)[0], expected, rtol=TOLERANCE)
    assert np.isinf(expected[~inside]).any()
    assert_slopes(function, rows[inside])
    with pm.Model() as model:
        bj.CircuitPrior("z", within, n=3, columns=REALS)
    assert np.isfinite(model.compile_logp()(model.initial_point()))


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_what_stands_above_the_leaves_is_what_its_symbolic_form_is_with_two_derivatives(mode, post, rng):
    density = bj.CircuitPrior.dist(post, REALS).owner.op.population.density
    n_leaf = sum(group.leaves.size for group in density._leaves)
    x, cotangent = pt.dmatrix(), pt.dvector()
    root = root_value(x, density._groups, density._log_weight)
    node = root.owner.inputs[0].owner
    form = node.op.symbolic(x, *node.inputs[1:])[0][-1]
    functions = []
    for out in (root, form):
        slope = pt.grad((out * cotangent).sum(), x)
        bend = pt.grad((slope**2).sum(), x)
        functions.append(pytensor.function([x, cotangent], [out, slope, bend], mode=mode))
    leaves = rng.normal(size=(n_leaf, 4))
    leaves[::2, 0], leaves[:, 1] = -np.inf, -np.inf  # outside of some supports, and of all
    ours, theirs = (function(leaves, np.array([0.7, -1.0, 2.0, 0.1])) for function in functions)
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_a_gradient_is_as_many_operations_whatever_the_circuit(post, rng):
    # one after the other, they were about thirty for each height and number of children, which numba had to compile
    table = ex.make_table(COLUMNS, 30, rng, continuous=True)
    flat = ex.random_posterior(ex.mixture(table, dictionary=DICTIONARY), table, rng)
    counts = []
    for of in (flat, post):
        value = pt.dmatrix()
        slope = pt.grad(pm.logp(bj.CircuitPrior.dist(of, REALS), value).sum(), value)
        counts.append(len({variable.owner for variable in ancestors([slope])}))
    assert counts[0] == counts[1]


def test_density_of_several_structures_is_the_mean_over_all_draws(rng):
    table = ex.make_table(COLUMNS, 30, rng, continuous=True)
    circuits = [ex.mixture(table, dictionary=DICTIONARY), ex.two_level(table, dictionary=DICTIONARY)]
    structures = [
        ex.random_posterior(c, table, rng, n_chain=1, n_draw=n) for c, n in zip(circuits, (2, 4), strict=True)
    ]
    stacked = StackedPosterior(structures, [1 / 3, 2 / 3])
    rows = cells(rng)
    found, _ = log_density(stacked, REALS)(rows)
    np.testing.assert_allclose(found, mean_density(stacked, REALS, rows.T.copy()), rtol=TOLERANCE)


@pytest.mark.parametrize("event", [None, "real > -1 and real < 2"])
def test_density_of_splines_is_the_mean_over_draws_and_its_gradient_agrees_with_differences(event, rng):
    table = ex.make_table((ex.REAL, ex.named(ex.REAL, "other")), 60, rng, continuous=True)
    circuit = ex.mixture(table, dictionary=ex.only("normal", "spline"))
    post, rows = ex.random_posterior(circuit, table, rng), cells(rng)[:, [0, 2]]
    post = post if event is None else post.condition(event)
    function, expected = log_density(post, ["real", "other"]), mean_density(post, ["real", "other"], rows.T.copy())
    np.testing.assert_allclose(function(rows)[0], expected, rtol=TOLERANCE)
    assert_slopes(function, rows[expected > -np.inf])
    x, value = np.linspace(-4.0, 6.0, 21), pt.dvector()
    found = pytensor.function([value], pm.logcdf(bj.CircuitPrior.dist(post, "real"), value))(x)
    of_draws = post.cdf(x, "real").mean(("chain", "draw")).to_numpy()[:, 0]
    np.testing.assert_allclose(np.exp(found), of_draws, rtol=1e-9, atol=1e-12)


def test_fewer_draws_are_spread_evenly(post, rng):
    rows = cells(rng)
    found, _ = log_density(post, REALS, max_draws=6)(rows)
    flat = post.flat()
    kept = np.arange(1, 12, 2)
    some = replace(post, params=Params(flat.log_weight[None, kept], flat.theta[None, kept]))
    np.testing.assert_allclose(found, mean_density(some, REALS, rows.T.copy()), rtol=TOLERANCE)


@pytest.mark.parametrize("event", [None, "positive > 1 and positive < 4"])
def test_distribution_function_of_one_column_is_the_mean_over_draws(event, post):
    post = post if event is None else post.condition(event)
    x, value = np.linspace(-1.0, 9.0, 21), pt.dvector()
    found = pytensor.function([value], pm.logcdf(bj.CircuitPrior.dist(post, "positive"), value))(x)
    expected = post.cdf(x, "positive").mean(("chain", "draw")).to_numpy()[:, 0]
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", [pytest.param("NUMBA", marks=pytest.mark.slow), "FAST_COMPILE"])
def test_draws_have_the_moments_of_the_posterior(mode, rng):
    # likelihoods with light tails alone: Student's t with few degrees of freedom has no variance of its variance
    table = ex.make_table((ex.REAL, ex.POSITIVE), 30, rng, continuous=True)
    post = ex.random_posterior(ex.mixture(table, dictionary=ex.only("normal", "gamma")), table, rng)
    rows = pm.draw(bj.CircuitPrior.dist(post, size=4000), random_seed=3, mode=mode)
    one = pm.draw(bj.CircuitPrior.dist(post, "positive", size=4000), random_seed=4, mode=mode)
    assert rows.shape == (4000, 2)
    assert one.shape == (4000,)
    mean = post.expectation(["real", "positive"]).mean(("chain", "draw")).to_numpy()
    for drawn, expected in zip((*rows.T, one), (*mean, mean[1]), strict=True):
        assert abs(drawn.mean() - expected) < N_ERRORS * drawn.std() / np.sqrt(drawn.size)
    of_all = rows[:, 0] * rows[:, 1]  # the columns of a row come from one component
    draws = post.sample(20_000, rng=5, recorded=False).values
    error = np.hypot(of_all.std() / np.sqrt(of_all.size), draws.prod(axis=0).std() / np.sqrt(20_000))
    assert abs(of_all.mean() - draws.prod(axis=0).mean()) < N_ERRORS * error


def test_a_model_has_named_dims_and_prior_predictive_draws(post):
    with pm.Model() as model:
        bj.CircuitPrior("z", post, n=4, columns=REALS)
        bj.CircuitPrior("one", post, n=3, columns="real")
        prior = pm.sample_prior_predictive(draws=5, random_seed=1)["prior"]
    assert prior["z"].dims == ("chain", "draw", "z_row", "z_column")
    assert prior["z"].coords["z_column"].to_numpy().tolist() == REALS
    assert prior["one"].sizes == {"chain": 1, "draw": 5, "one_row": 3}
    assert np.isfinite(model.compile_logp()(model.initial_point()))


@pytest.mark.parametrize("names", ["only_positive", ["real", "only_positive"]])
def test_transform_inverts_and_knows_its_jacobian(names, rng):
    positive = ex.named(ex.POSITIVE, "only_positive")
    table = ex.make_table((ex.REAL, positive), 30, rng, continuous=True)
    dictionary = lambda column: ex.only("normal" if column.name == "real" else "gamma")(column)  # noqa: E731
    post = ex.random_posterior(ex.mixture(table, dictionary=dictionary), table, rng)
    with pm.Model() as model:
        z = bj.CircuitPrior("z", post, n=3, columns=names)
    transform = model.rvs_to_transforms[z]
    x = np.abs(rng.normal(2.0, 1.0, z.type.shape))
    u = transform.forward(pt.as_tensor(x)).eval()
    moving = z.type()
    backward = pytensor.function([moving], transform.backward(moving))
    np.testing.assert_allclose(backward(u), x, rtol=TOLERANCE)
    moved = [backward(u + step) for step in (1e-5, -1e-5)]
    slopes = np.log((moved[0] - moved[1]) / 2e-5)
    expected = slopes.sum(axis=-1) if z.ndim == 2 else slopes
    np.testing.assert_allclose(transform.log_jac_det(pt.as_tensor(u)).eval(), expected, atol=1e-8)
    assert (backward(u - 50.0)[..., -1] > 0.0).all()


def test_censored_cells_have_the_mass_beyond_the_bound(post):
    censored = pm.Censored.dist(bj.CircuitPrior.dist(post, "real"), lower=None, upper=2.0)
    found = pm.logp(censored, pt.as_tensor([1.0, 2.0])).eval()
    inside, _ = log_density(post, "real")(np.array([1.0]))
    above = 1.0 - post.cdf(2.0, "real").mean(("chain", "draw")).item()
    np.testing.assert_allclose(found, [inside[0], np.log(above)], rtol=1e-9)


def test_rows_are_a_component_of_a_mixture(post, rng):
    rows = cells(rng, 4)
    other = pm.MvNormal.dist(np.zeros(3), np.eye(3))
    mixed = pm.Mixture.dist([0.3, 0.7], [bj.CircuitPrior.dist(post, REALS), other])
    expected = np.logaddexp(
        np.log(0.3) + log_density(post, REALS)(rows)[0],
        np.log(0.7) + stats.multivariate_normal(np.zeros(3)).logpdf(rows),
    )
    np.testing.assert_allclose(pm.logp(mixed, pt.as_tensor(rows)).eval(), expected, rtol=1e-10)


def two_groups(rng):
    """Return a posterior of one draw, two groups of independent normals, and (weight, mean, variance) in its units."""
    table = ex.make_table((ex.REAL, ex.named(ex.REAL, "other")), 20, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    schema = Schema(tuple(replace(column, location=0.0, scale=1.0) for column in table.schema))
    weight, mean, variance = (
        np.array([0.3, 0.7]),
        np.array([[-1.0, 2.0], [1.0, -1.0]]),
        np.array([[0.5, 0.3], [0.8, 0.4]]),
    )
    theta, log_weight = circuit.start_theta.copy(), circuit.start_log_weight.copy()
    log_weight[circuit.edges_of_kind(0)] = np.log(weight)
    for leaf in range(circuit.n_leaf):  # leaves of a component stand side by side
        group, column = leaf // 2, circuit.leaf_var[leaf]
        theta[circuit.theta_at[leaf] :][:2] = variance[group, column], mean[group, column]
    post = bj.Posterior(circuit, schema, Params(log_weight[None, None], theta[None, None]))
    return post, weight, mean, variance


@pytest.mark.slow
def test_nuts_recovers_the_conditional_of_one_column_given_a_noisy_other(rng):
    import arviz_stats

    post, weight, mean, variance = two_groups(rng)
    y, noise = np.array([-2.0, -0.5, 0.0, 0.6, 2.0]), 0.6
    given = weight * stats.norm.pdf(y[:, None], mean[:, 0], np.sqrt(variance[:, 0] + noise**2))
    given /= given.sum(axis=1, keepdims=True)
    gain = variance[:, 0] / (variance[:, 0] + noise**2)
    expected = np.stack([(given * (mean[:, 0] + gain * (y[:, None] - mean[:, 0]))).sum(axis=1), given @ mean[:, 1]], 1)
    with pm.Model():
        z = bj.CircuitPrior("z", post, n=5)
        pm.Normal("y", z[:, 0], noise, observed=y)
        idata = pm.sample(2500, tune=500, chains=2, cores=1, random_seed=2, nuts_sampler="pymc", **QUICK)
    found = idata["posterior"].to_dataset()
    error = arviz_stats.mcse(found)["z"].to_numpy()
    assert (error < 0.15).all()
    difference = found["z"].mean(("chain", "draw")).to_numpy() - expected
    assert (np.abs(difference) < N_ERRORS * error).all()


@pytest.mark.parametrize(
    ("columns", "match"),
    [(None, r"'count', of whole numbers.*columns="), (["real", "count"], "'count'"), ("count", "'count'")],
)
def test_columns_without_a_gradient_are_refused_by_name(columns, match, post):
    with pytest.raises(ModelError, match=match):
        bj.CircuitPrior.dist(post, columns)


def test_a_column_with_atoms_and_a_likelihood_without_derivative_are_refused_by_name(rng, monkeypatch):
    table = ex.make_table((ex.HEAPED, ex.REAL), 20, rng)
    atoms = ex.random_posterior(ex.mixture(table), table, rng)
    with pytest.raises(ModelError, match="'heaped'"):
        bj.CircuitPrior.dist(atoms)
    assert bj.CircuitPrior.dist(atoms, ["real"]).type.ndim == 1
    table = ex.make_table((ex.REAL,), 20, rng)
    normals = ex.random_posterior(ex.mixture(table, dictionary=ex.only("normal")), table, rng)
    monkeypatch.delitem(CELL_FAMILIES, "normal")  # as of a family of the user's own
    with pytest.raises(ModelError, match="likelihood normal"):
        bj.CircuitPrior.dist(normals)


@pytest.mark.parametrize(("arguments", "match"), [({"n": 0}, "n=0"), ({"n": 2, "max_draws": 0}, "max_draws=0")])
def test_numbers_of_rows_and_draws_are_checked(arguments, match, post):
    with pm.Model(), pytest.raises(ModelError, match=match):
        bj.CircuitPrior("z", post, columns=REALS, **arguments)
    with pytest.raises(QueryError, match="nothing"):
        bj.CircuitPrior.dist(post, ["nothing"])
    with pytest.raises(ModelError, match="type str"):
        bj.CircuitPrior.dist("fit.nc", ["real"])


def test_columns_of_observed_frames_are_found_by_their_names(post, rng):
    rows = pd.DataFrame(cells(rng), columns=REALS)
    in_another_order = rows[REALS[::-1]].assign(more=1)
    with pm.Model() as model:
        bj.CircuitPrior("z", post, len(rows), columns=REALS, observed=in_another_order)
        bj.CircuitPrior("one", post, len(rows), columns="positive", observed=in_another_order)
        with pytest.raises(ModelError, match="without the column 'positive'"):
            bj.CircuitPrior("y", post, len(rows), columns=REALS, observed=rows[["real", "other"]])
        with pytest.raises(ModelError, match="3 observed rows of 'y'"):
            bj.CircuitPrior("y", post, len(rows), columns=REALS, observed=rows.head(3))
    np.testing.assert_array_equal(model.rvs_to_values[model["z"]].data, rows)
    np.testing.assert_array_equal(model.rvs_to_values[model["one"]].data, rows["positive"])
