"""Blocks compiled for JAX: log density and gradient of the numba kernels, or a refusal that names the family."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import bayesjpt as bj
from bayesjpt.circuit.plan import make_plan
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.kernels.density import rows_log_density
from bayesjpt.kernels.gradient import rows_gradient
from bayesjpt.model.circuit_rows import CircuitLogDensity
from bayesjpt.model.flat_vectors import FlatOp
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive
from tests.model.conftest import QUICK
from tests.model.test_numba_mode import flat_cases

jax = pytest.importorskip("jax")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of samplers that JAX has moved on from
    pytest.mark.filterwarnings("ignore::UserWarning:pytensor"),
]

TOLERANCE = 1e-10
CELL_TOLERANCE = 1e-7
"""Relative to the largest entry: the kernel's gradient of the mass of a cell is one of differences."""
N_ERRORS = 4.5
"""Monte Carlo errors by which two estimates of one mean may differ."""

REFUSED_ON_CELLS = (
    "gamma",
    "poisson",
    "student_t",
    "negative_binomial",
    "rounded_normal",
    "truncated_rounded_normal",
    "quantile",
    "ordinal",
)
FAMILIES = [family.name for family in registry.FAMILIES]
ON_CELLS = [family.name for family in registry.FAMILIES if family.name not in REFUSED_ON_CELLS]


def jax_circuit(plan):
    from bayesjpt.model.jax_density import JaxCircuit

    return JaxCircuit(plan)


def assert_agrees(table, circuit, params, tolerance: float = TOLERANCE) -> np.ndarray:
    """Compare value and gradient with the kernels', and return the value."""
    rows, missing = np.ascontiguousarray(table.values.T), np.ascontiguousarray(~table.observed.T)
    plan = make_plan(circuit, table.schema)
    density, cotangent = jax_circuit(plan), np.linspace(0.3, 2.0, len(rows))
    value = rows_log_density(rows, missing, *params, plan)

    def total(log_weight, theta):
        found = density(rows, missing, log_weight, theta)
        return jax.numpy.where(value > -np.inf, cotangent * found, 0.0).sum(), found

    gradients, found = jax.jit(jax.grad(total, argnums=(0, 1), has_aux=True))(*params)
    np.testing.assert_allclose(found, value, rtol=TOLERANCE, atol=TOLERANCE)
    expected = rows_gradient(cotangent, rows, missing, *params, plan)
    for gradient, kernel in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, kernel, rtol=0.0, atol=tolerance * np.abs(kernel).max(initial=1.0))
    return np.asarray(found)


def test_importing_the_package_and_making_a_block_imports_no_jax():
    program = (
        "import sys, numpy as np, pandas as pd, bayesjpt as bj\n"
        "table = bj.as_table(pd.DataFrame({'x': np.linspace(0.1, 8.0, 40)}))\n"
        "bj.build_model(bj.learn_mspn(table, np.random.default_rng(1)), table, transforms=True).logp()\n"
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_density_and_gradient_of_every_family_are_the_kernels(name, rng):
    table = ex.make_table((ex.column_of(name),), 30, rng, missing=0.2)
    circuit = ex.mixture(table, dictionary=ex.only(name, "normal", "atom"))
    assert np.isfinite(assert_agrees(table, circuit, ex.random_params(circuit, table.schema, rng))).any()


@pytest.mark.parametrize("name", ON_CELLS)
def test_density_and_gradient_of_families_on_cells_are_the_kernels(name, rng):
    table = ex.make_table((ex.column_of(name),), 30, rng, missing=0.2)
    circuit = ex.truncated(ex.mixture(table, dictionary=ex.only(name)), table.schema, rng, share=1.0)
    assert_agrees(table, circuit, ex.random_params(circuit, table.schema, rng), CELL_TOLERANCE)


def test_density_of_a_deep_circuit_is_the_definition(rng):
    table = ex.make_table(ex.EVERY, 30, rng, missing=0.3)
    circuit = ex.two_level(table)
    params = ex.random_params(circuit, table.schema, rng)
    found = assert_agrees(table, circuit, params)
    np.testing.assert_allclose(found, naive.log_values(circuit, params, table), rtol=TOLERANCE, atol=TOLERANCE)


def test_density_below_a_shared_leaf_is_the_definition(rng):
    table = ex.make_table((ex.REAL, ex.REAL), 12, rng, missing=0.3)
    circuit = ex.shared_leaf(table)
    params = ex.random_params(circuit, table.schema, rng)
    found = assert_agrees(table, circuit, params)
    np.testing.assert_allclose(found, naive.log_values(circuit, params, table), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("family", "theta"),
    [
        ("gamma", (900.0, 400.0)),  # where log level and log z nearly cancel
        ("gamma", (0.02, 30.0)),
        ("gamma", (5.0, 700.0)),  # zeros take nearly all of the mass
        ("student_t", (2.0, 0.3, 4000.0)),
        ("negative_binomial", (3e4, 0.9999)),
        ("negative_binomial", (0.3, 0.01)),
        ("truncated_rounded_normal", (4.0, -9.0)),
        ("truncated_rounded_normal", (1e5, 3.0)),
        ("truncated_rounded_normal", (0.05, 1.0)),
        ("lognormal", (0.01, 3.0)),
        ("ordinal", (0.05, 2.0)),
    ],
)
def test_density_at_extreme_parameters_is_the_kernels(family, theta, rng):
    table = ex.make_table((ex.column_of(family),), 40, rng)
    circuit = ex.independent(table, dictionary=ex.only(family))
    kept = [int(registry.FAMILIES[number].name == family) for number in circuit.leaf_family]
    assert sum(kept) == 1
    params = ex.random_params(circuit, table.schema, rng)
    at = circuit.theta_at[kept.index(1)]
    params.theta[at : at + len(theta)] = theta
    assert_agrees(table, circuit, params)


@pytest.mark.parametrize(
    ("family", "theta"),
    [
        ("negative_binomial", (0.3, 0.01)),
        ("negative_binomial", (30.0, 0.2)),
        ("negative_binomial", (3e4, 0.99)),
        ("poisson", (400.0,)),
        ("truncated_rounded_normal", (300.0, 2.0)),
    ],
)
def test_density_of_large_counts_is_the_kernels(family, theta, rng):
    counts = np.append(np.arange(10.0, 40.0), [63.0, 127.0, 300.0, 301.0, 500.0, 800.0, 1e3, 2e3, 3e3, 5e3])
    table = Table(Schema((ex.COUNT,)), counts[None, :], np.ones((1, counts.size), bool))
    circuit = ex.independent(table, dictionary=ex.only(family))
    params = ex.random_params(circuit, table.schema, rng)
    params.theta[: len(theta)] = theta
    assert_agrees(table, circuit, params)


def test_a_family_without_a_form_in_jax_is_refused_by_name(rng, monkeypatch):
    from bayesjpt.model.jax_families import JAX_FAMILIES

    monkeypatch.delitem(JAX_FAMILIES, "gamma")  # as of a family of the user's own
    table = ex.make_table((ex.POSITIVE,), 30, rng)
    circuit = ex.mixture(table, dictionary=ex.only("gamma"))
    with pytest.raises(ModelError, match=r"likelihood gamma, which is not written in JAX.*nutpie"):
        jax_circuit(make_plan(circuit, table.schema))


@pytest.mark.parametrize("base", [ex.REAL, ex.POSITIVE, ex.COUNT], ids=lambda column: column.name)
def test_density_of_splines_of_several_orders_is_the_kernels(base, rng):
    table = ex.make_table((base, ex.named(base, "other")), 200, rng, missing=0.1)
    circuit = ex.two_level(table, dictionary=bj.spline_dictionary)
    assert_agrees(table, circuit, ex.random_params(circuit, table.schema, rng))


@pytest.mark.parametrize("name", REFUSED_ON_CELLS)
def test_a_family_without_a_mass_in_jax_is_refused_below_splits_by_name(name, rng):
    table = ex.make_table((ex.column_of(name),), 30, rng)
    circuit = ex.mixture(table, dictionary=ex.only(name))
    cut = circuit._replace(leaf_cell=np.zeros_like(circuit.leaf_cell), cell=np.array([0.0, 5.0]))
    with pytest.raises(ModelError, match=rf"{name}.* below a split of its column"):
        jax_circuit(make_plan(cut, table.schema))


def test_a_block_for_sweeps_is_refused_in_jax(rng):
    table = ex.make_table((ex.COUNT,), 6, rng)
    model = bj.build_model(ex.mixture(table, dictionary=ex.only("poisson")), table)
    with pytest.raises(ModelError, match="transforms=True"):
        model.compile_logp(mode="JAX")


def test_pytensor_compiles_a_block_for_jax_whenever_jax_was_imported(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT), 12, rng, missing=0.1)
    circuit = ex.mixture(table, dictionary=ex.only("gamma", "poisson"))
    params = ex.random_params(circuit, table.schema, rng)
    rows, missing = np.ascontiguousarray(table.values.T), np.ascontiguousarray(~table.observed.T)
    plan = make_plan(circuit, table.schema)
    log_weight, theta = pt.dvector(), pt.dvector()
    out = CircuitLogDensity()(rows, missing, log_weight, theta, *[pt.constant(array) for array in plan])
    found = pytensor.function([log_weight, theta], out, mode="JAX")(*params)
    np.testing.assert_allclose(found, rows_log_density(rows, missing, *params, plan), rtol=TOLERANCE)


def test_flat_vectors_and_shares_are_written_in_operations_that_jax_knows(rng):
    for symbols, out, point in flat_cases(rng):
        found, plain = (pytensor.function(symbols, out, mode=mode) for mode in ("JAX", "FAST_COMPILE"))
        assert not [node for node in found.maker.fgraph.apply_nodes if isinstance(node.op, FlatOp)]
        np.testing.assert_allclose(found(*point), plain(*point), rtol=TOLERANCE)


def test_a_prior_over_cells_has_the_gradient_of_the_kernels(rng):
    table = ex.make_table((ex.REAL, ex.named(ex.REAL, "other")), 20, rng, continuous=True)
    post = ex.random_posterior(ex.two_level(table, dictionary=ex.only("normal", "student_t")), table, rng)
    value, point = pt.dmatrix(), table.values[:, :3].T
    logp = pm.logp(bj.CircuitPrior.dist(post), value)
    for out in (logp, pt.grad(logp.sum(), value)):
        found, plain = (pytensor.function([value], out, mode=mode) for mode in ("JAX", "FAST_COMPILE"))
        assert not [node for node in found.maker.fgraph.apply_nodes if isinstance(node.op, FlatOp)]
        np.testing.assert_allclose(found(point), plain(point), rtol=TOLERANCE)


def sampled_means(model, sampler: str | None, n_draw: int, **options) -> tuple[dict, dict]:
    """Return posterior means and their squared Monte Carlo errors, {variable: array}, one entry an entry."""
    import arviz_stats

    with model:
        chosen = {} if sampler is None else {"nuts_sampler": sampler}
        idata = pm.sample(n_draw, tune=400, chains=2, cores=1, random_seed=7, **chosen, **options, **QUICK)
    posterior = idata["posterior"].to_dataset()[["x_likelihood_weights", "x_poisson_rate", "x_normal_mu"]]
    means, errors = posterior.mean(("chain", "draw")), arviz_stats.mcse(posterior)
    return (
        {name: means[name].to_numpy() for name in means.data_vars},
        {name: errors[name].to_numpy() ** 2 for name in means.data_vars},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        ("numpyro", {}),
        # chains side by side need a device each, which PyMC asks for too late where JAX was used before
        ("blackjax", {"nuts_sampler_kwargs": {"chain_method": "vectorized"}}),
        ("nutpie", {}),
        ("nutpie", {"nuts_sampler_kwargs": {"backend": "jax", "gradient_backend": "jax"}}),
    ],
)
@pytest.mark.filterwarnings("ignore")  # the samplers' own
def test_samplers_outside_pymc_agree_with_gibbs_sweeps(sampler, options, rng):
    pytest.importorskip(sampler)
    table = ex.make_table((ex.REAL, ex.COUNT), 25, rng, missing=0.1)
    circuit = ex.independent(table, dictionary=ex.only("normal", "poisson", "geometric"))
    with pytensor.config.change_flags(mode="NUMBA"):
        expected, error = sampled_means(bj.build_model(circuit, table, alpha=1.0), None, 4000)
        with_transforms = bj.build_model(circuit, table, alpha=1.0, transforms=True)
        found, other = sampled_means(with_transforms, sampler, 1000, **options)
    for name, mean in expected.items():
        difference = np.abs(found[name] - mean) / np.sqrt(error[name] + other[name])
        assert (difference < N_ERRORS).all(), (name, difference)
