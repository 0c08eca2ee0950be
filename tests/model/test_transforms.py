"""Blocks for samplers that follow gradients: transforms, the gradient of the circuit, NUTS, ADVI, MAP."""

from __future__ import annotations

import itertools

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import simplex
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.plan import make_plan
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.kernels.density import rows_log_density
from bayesjpt.model import distributions, transforms, truncated_beta
from bayesjpt.model.circuit_rows import CircuitLogDensity, CircuitLogDensityGradient
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.model.segments import SMALLEST_WEIGHT, Segments
from bayesjpt.numerics import jit
from tests import examples as ex
from tests.model.conftest import QUICK

DIFFERENCE_TOLERANCE = 2e-8
"""Relative to the largest entry; of four-point central differences."""
LINKER_TOLERANCE = 2e-13
TOLERANCE = 1e-9
STEP = 1e-3
"""Relative to the distance of a parameter from 0 and 1, where probabilities end, or to the smallest scale."""
SMALLEST_SCALE = 0.005
PTR = (0, 2, 5, 6, 10)

ON_CELL = [f.name for f in registry.FAMILIES if f.samplable_on_cell and f.accumulate_gradient and f.parameters]
FAMILIES = [family.name for family in registry.FAMILIES if family.accumulate_gradient is not None]
NEW_FACTOR_SD = 0.1
SIX = ex.only("normal", "gamma", "exponential", "poisson", "geometric", "categorical")
"""A dictionary without the families whose compilation takes long."""


def coordinates(rng: np.random.Generator, scale: float = 1.0) -> np.ndarray:
    """Return float64 (6,): free coordinates of segments of 2, 3, 1 and 4 entries."""
    return rng.normal(0.0, scale, 6)


def compiled(function, *values):
    """Return a symbolic function of arguments like these values as one of numbers."""
    inputs = [pt.as_tensor(value).type() for value in values]
    return pytensor.function(inputs, function(*inputs))


def evaluated(function, *values) -> np.ndarray:
    """Return a symbolic function's value."""
    return compiled(function, *values)(*values)


# --- transforms


def test_segment_simplex_is_pymcs_simplex_in_each_segment(rng):
    transform = transforms.SegmentSimplex(Segments(PTR))
    at = coordinates(rng)
    found, log_jacobian = evaluated(transform.backward, at), evaluated(transform.log_jac_det, at)
    expected, expected_log_jacobian, used = [], 0.0, 0
    for lo, hi in itertools.pairwise(PTR):
        part = at[used : used + hi - lo - 1]
        used += part.size
        expected.append(evaluated(simplex.backward, part) if part.size else np.ones(1))
        expected_log_jacobian += float(evaluated(simplex.log_jac_det, part)) if part.size else 0.0
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=TOLERANCE)
    assert log_jacobian == pytest.approx(expected_log_jacobian, rel=TOLERANCE)
    np.testing.assert_allclose(evaluated(transform.forward, found), at, rtol=TOLERANCE)


def test_segment_simplex_far_out_stays_above_the_smallest_weight(rng):
    transform = transforms.SegmentSimplex(Segments(PTR))
    weights = evaluated(transform.backward, coordinates(rng, 5000.0))
    assert (weights >= SMALLEST_WEIGHT).all()
    assert (weights <= 1.0).all()


def test_segment_simplex_keeps_leading_dimensions(rng):
    transform = transforms.SegmentSimplex(Segments(PTR))
    at = np.array([coordinates(rng) for _ in range(3)])
    found = evaluated(transform.backward, at)
    for row, expected in zip(at, found, strict=True):
        np.testing.assert_allclose(evaluated(transform.backward, row), expected, rtol=TOLERANCE)


@pytest.mark.parametrize("end", [np.inf, 1e8, 3.0])
@pytest.mark.parametrize("which", ["floor", "cap"])
def test_bounded_transforms_invert_and_know_their_jacobian(which, end, rng):
    bound = 1.0 / end if which == "floor" else end
    transform = transforms.AboveFloor() if which == "floor" else transforms.BelowCap()

    def backward(value):
        return transform.backward(value, pt.constant(bound))

    at = rng.normal(0.0, 2.0, 6)
    values = evaluated(backward, at)
    assert (values > bound).all() if which == "floor" else ((values > 0.0) & (values < bound)).all()
    np.testing.assert_allclose(
        evaluated(lambda value: transform.forward(value, pt.constant(bound)), values), at, rtol=1e-6, atol=1e-6
    )
    of_numbers = compiled(backward, at)
    slopes = [slope(lambda moved, k=k: of_numbers(moved)[k], at, k) for k in range(at.size)]
    log_jacobian = evaluated(lambda value: transform.log_jac_det(value, pt.constant(bound)), at)
    np.testing.assert_allclose(log_jacobian, np.log(slopes), rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("limit", [np.inf, 1e3, 0.7, -4.0])
def test_transform_below_a_limit_inverts_and_knows_its_jacobian(limit, rng):
    transform = transforms.BelowLimit()

    def backward(value):
        return transform.backward(value, pt.constant(limit))

    at = rng.normal(0.0, 2.0, 6)
    values = evaluated(backward, at)
    assert (values < limit).all()
    np.testing.assert_allclose(
        evaluated(lambda value: transform.forward(value, pt.constant(limit)), values), at, rtol=1e-6, atol=1e-6
    )
    of_numbers = compiled(backward, at)
    slopes = [slope(lambda moved, k=k: of_numbers(moved)[k], at, k) for k in range(at.size)]
    log_jacobian = evaluated(lambda value: transform.log_jac_det(value, pt.constant(limit)), at)
    np.testing.assert_allclose(log_jacobian, np.log(slopes), rtol=0.0, atol=1e-7)


def test_names_of_transforms_have_no_underscore():
    bounded = (transforms.AboveFloor, transforms.AboveFloorBelowOne, transforms.BelowCap, transforms.BelowLimit)
    for transform in (transforms.SegmentSimplex, *bounded):
        assert "_" not in transform.name


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        (lambda: distributions.SegmentDirichlet("v", 1.0, ptr=PTR), "v_segmentsimplex__"),
        (lambda: distributions.FlooredInverseGamma("v", 1.0, 1.0, 0.1), "v_abovefloor__"),
        (lambda: distributions.FlooredGamma("v", 2.0, 1.0, 0.1), "v_abovefloor__"),
        (lambda: distributions.CappedLogNormal("v", 0.0, 1.0, 3.0), "v_belowcap__"),
        (lambda: distributions.CappedGamma("v", 2.0, 1.0, 3.0), "v_belowcap__"),
        (lambda: truncated_beta.FlooredBeta("v", 2.0, 9.0, 0.1), "v_abovefloorbelowone__"),
    ],
)
def test_distributions_have_their_transform_by_default(variable, name):
    with pm.Model() as model:
        variable()
    assert [value.name for value in model.value_vars] == [name]
    assert np.isfinite(model.compile_logp()(model.initial_point()))


# --- gradient of the circuit


def op_case(columns, dictionary, rng, *, missing: float = 0.2, n_row: int = 20):
    """Return the inputs of the Op, without the plan, and the plan."""
    table = ex.make_table(columns, n_row, rng, missing=missing)
    circuit = ex.two_level(table, dictionary) if len(columns) > 2 else ex.mixture(table, dictionary=dictionary)
    params = ex.random_params(circuit, table.schema, rng)
    rows, hidden = np.ascontiguousarray(table.values.T), np.ascontiguousarray(~table.observed.T)
    return [rows, hidden, params.log_weight, params.theta], make_plan(circuit, table.schema)


def gradient_function(inputs, plan, mode):
    rows, hidden = inputs[:2]
    log_weight, theta = pt.dvector(), pt.dvector()
    weight = np.linspace(0.3, 2.0, len(rows))
    logp = CircuitLogDensity()(rows, hidden, log_weight, theta, *[pt.constant(array) for array in plan])
    total = (logp * weight).sum()
    return pytensor.function([log_weight, theta], [total, *pt.grad(total, [log_weight, theta])], mode=mode)


def slope(function, point: np.ndarray, k: int) -> float:
    """Return the derivative of a function of a vector along one entry, by four-point central differences."""
    step = STEP * max(min(abs(point[k]), abs(1.0 - point[k])), SMALLEST_SCALE)
    total = 0.0
    for times, weight in ((1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0)):
        for sign in (1.0, -1.0):
            moved = point.copy()
            moved[k] += sign * times * step
            total += sign * weight * float(function(moved))
    return total / step


def assert_slopes(function, point: Params) -> None:
    """Compare gradients with central differences."""
    _, of_weights, of_theta = function(*point)
    for gradient, along, at in (
        (of_weights, lambda moved: function(moved, point.theta)[0], point.log_weight),
        (of_theta, lambda moved: function(point.log_weight, moved)[0], point.theta),
    ):
        slopes = np.array([slope(along, at, k) for k in range(at.size)])
        tolerance = DIFFERENCE_TOLERANCE * np.abs(slopes).max(initial=1.0)
        np.testing.assert_allclose(gradient, slopes, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradient_of_every_family_agrees_with_differences(name, rng):
    inputs, plan = op_case((ex.column_of(name),), ex.only(name, "normal", "atom"), rng)
    assert_slopes(gradient_function(inputs, plan, "FAST_COMPILE"), Params(*inputs[2:]))


@pytest.mark.parametrize("name", ON_CELL)
def test_gradient_of_every_family_on_a_cell_agrees_with_differences(name, rng):
    column = ex.column_of(name)
    table = ex.make_table((column,), 12, rng)
    circuit = ex.mixture(table, dictionary=ex.only(name))
    cell = np.array([table.values.min(), np.quantile(table.values, 0.7)])
    circuit = circuit._replace(leaf_cell=np.zeros_like(circuit.leaf_cell), cell=cell)
    params = ex.random_params(circuit, table.schema, rng)
    inputs = [np.ascontiguousarray(table.values.T), np.ascontiguousarray(~table.observed.T), *params]
    plan = make_plan(circuit, table.schema)
    kept = rows_log_density(*inputs, plan) > -np.inf  # a gradient of log 0 is none
    assert kept.any()
    inputs[:2] = inputs[0][kept], inputs[1][kept]
    assert_slopes(gradient_function(inputs, plan, "FAST_COMPILE"), params)


def test_gradient_at_atoms_agrees_with_differences(rng):
    inputs, plan = op_case((ex.ZEROS, ex.COUNT), ex.only("gamma", "atom", "poisson"), rng)
    assert_slopes(gradient_function(inputs, plan, "FAST_COMPILE"), Params(*inputs[2:]))


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_gradient_of_a_deep_circuit_agrees_with_differences(missing, rng):
    real, _, count, _, label = ex.EVERY[:5]
    inputs, plan = op_case((real, count, label), ex.only(*FAMILIES), rng, missing=missing, n_row=200)
    assert_slopes(gradient_function(inputs, plan, "FAST_COMPILE"), Params(*inputs[2:]))


def test_gradient_of_a_circuit_with_a_shared_leaf_agrees_with_differences(rng):
    table = ex.make_table((ex.REAL, ex.REAL), 12, rng)
    circuit = ex.shared_leaf(table)
    params = ex.random_params(circuit, table.schema, rng)
    inputs = [np.ascontiguousarray(table.values.T), np.ascontiguousarray(~table.observed.T), *params]
    assert_slopes(gradient_function(inputs, make_plan(circuit, table.schema), "FAST_COMPILE"), params)


@pytest.mark.slow
def test_gradient_agrees_in_both_linkers(rng):
    inputs, plan = op_case((ex.REAL, ex.COUNT, ex.LABEL), SIX, rng)
    plain, numba = (gradient_function(inputs, plan, mode)(*inputs[2:]) for mode in ("FAST_COMPILE", "NUMBA"))
    for one, other in zip(plain, numba, strict=True):
        np.testing.assert_allclose(other, one, rtol=LINKER_TOLERANCE, atol=LINKER_TOLERANCE)


def test_gradient_is_finite_at_the_smallest_weights(rng):
    inputs, plan = op_case((ex.REAL,), ex.only("normal"), rng)
    log_weight = inputs[2].copy()
    log_weight[-2:] = np.log(SMALLEST_WEIGHT), 0.0
    for value in gradient_function(inputs, plan, "FAST_COMPILE")(log_weight, inputs[3]):
        assert np.isfinite(value).all()


def test_rows_of_density_zero_have_no_gradient(rng):
    inputs, plan = op_case((ex.POSITIVE,), ex.only("exponential"), rng, missing=0.0)
    inputs[0] = np.where(np.arange(20)[:, None] == 3, -1.0, inputs[0])
    total, *gradients = gradient_function(inputs, plan, "FAST_COMPILE")(*inputs[2:])
    assert total == -np.inf
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_gradient_op_has_another_cache_key_after_an_edit_of_a_kernel_source(rng, monkeypatch):
    inputs, plan = op_case((ex.REAL,), ex.only("normal"), rng)
    node = CircuitLogDensityGradient()(np.ones(20), *inputs, *plan)[0].owner
    _, before = numba_funcify_and_cache_key(node.op, node=node)
    monkeypatch.setattr(jit, "source_hash", lambda room="": "f" * 64)
    _, after = numba_funcify_and_cache_key(node.op, node=node)
    assert before is not None
    assert before != after


def test_rows_have_no_derivative(rng):
    inputs, plan = op_case((ex.REAL,), ex.only("normal"), rng)
    rows = pt.dmatrix()
    logp = CircuitLogDensity()(rows, *inputs[1:], *plan)
    gradient = pt.grad(logp.sum(), rows)
    with pytest.raises(ModelError, match="impute=True"):
        pytensor.function([rows], gradient, mode="FAST_COMPILE")(np.zeros((1, 1)))


# --- models


@pytest.fixture
def transformed(rng):
    """Return a model with transforms of a positive and a count column, and the same for Gibbs sweeps."""
    table = ex.make_table((ex.POSITIVE, ex.COUNT), 25, rng, missing=0.1)
    circuit = ex.mixture(table, dictionary=SIX)
    return bj.build_model(circuit, table, transforms=True), bj.build_model(circuit, table)


def test_density_with_transforms_is_that_without_plus_the_jacobian(transformed, rng):
    with_transforms, plain = transformed
    variables = with_transforms.replace_rvs_by_values(with_transforms.free_RVs)
    backward = with_transforms.compile_fn(variables, on_unused_input="ignore")
    log_joint, expected = with_transforms.compile_logp(jacobian=False), plain.compile_logp()
    for _ in range(3):
        at = {
            name: value + rng.normal(0.0, 0.3, value.shape) for name, value in with_transforms.initial_point().items()
        }
        values = dict(zip([rv.name for rv in with_transforms.free_RVs], backward(at), strict=True))
        assert log_joint(at) == pytest.approx(expected(values), rel=TOLERANCE)


def test_gradient_of_the_model_agrees_with_differences(transformed, rng):
    model, _ = transformed
    log_joint, gradient = model.compile_logp(), model.compile_dlogp()
    at = {name: value + rng.normal(0.0, 0.3, value.shape) for name, value in model.initial_point().items()}
    differences = [
        slope(lambda moved, name=variable.name: log_joint(at | {name: moved}), at[variable.name], k)
        for variable in model.value_vars
        for k in range(at[variable.name].size)
    ]
    scale = np.abs(differences).max()
    np.testing.assert_allclose(gradient(at), differences, rtol=0.0, atol=DIFFERENCE_TOLERANCE * scale)


def test_chains_begin_at_the_estimate_of_the_learner(transformed):
    model, plain = transformed
    point, learned = model.initial_point(), CircuitGibbs(model=plain).learned_point()
    values = model.compile_fn(model.replace_rvs_by_values(model.free_RVs), on_unused_input="ignore")(point)
    for rv, value in zip(model.free_RVs, values, strict=True):
        np.testing.assert_allclose(value, learned[rv.name], rtol=1e-4, atol=1e-6)


def test_every_variable_is_left_to_nuts(transformed):
    model, _ = transformed
    _, steps = pm.sampling.mcmc.assign_step_methods(model)
    assert {method.__name__ for method in steps} == {"NUTS"}


def test_nuts_samples_the_block_and_a_factor_of_the_user_that_depends_on_it(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    with pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 1.0)
        circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
        bj.CircuitMixture("x", circuit, table, alpha=alpha, transforms=True)
        pm.Normal("culprit", model["x_poisson_rate"].sum(), NEW_FACTOR_SD, observed=3.0)
        idata = pm.sample(draws=10, tune=10, chains=1, cores=1, random_seed=1, nuts_sampler="pymc", **QUICK)
    post = bj.Posterior.from_idata(idata, model)
    np.testing.assert_allclose(post.log_density(table).sum("obs_id").shape, (1, 10))
    rates = idata["posterior"]["x_poisson_rate"].sum("x_poisson_leaf").to_numpy()
    assert (np.abs(rates - 3.0) < 10.0 * NEW_FACTOR_SD).all()


def test_advi_runs_on_the_block(transformed):
    model, _ = transformed
    with model:
        approximation = pm.fit(20, method="advi", progressbar=False, random_seed=1)
        draws = approximation.sample(5, random_seed=1)
    assert np.isfinite(approximation.hist).all()
    weights = draws["posterior"]["x_sum_weights"].to_numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=TOLERANCE)


@pytest.mark.filterwarnings("ignore:.*:FutureWarning")  # of a change of what find_MAP returns
def test_find_map_climbs_from_the_estimate_of_the_learner(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT), 25, rng, missing=0.1)
    circuit = ex.mixture(table, dictionary=SIX)
    model = bj.build_model(circuit, table, alpha=2.0, transforms=True)  # below 1 densities of weights have no maximum
    log_joint = model.compile_logp(jacobian=False)
    with model:
        best = pm.find_MAP(progressbar=False)
    assert log_joint({value.name: best[value.name] for value in model.value_vars}) > log_joint(model.initial_point())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x_normal_variance", -1.0),
        ("x_normal_variance", 0.0),
        ("x_normal_variance", np.nan),
        ("x_normal_mu", np.inf),
        ("x_gamma_shape", -3.0),
        ("x_poisson_rate", 0.0),
        ("x_geometric_p", 1.5),
        ("x_categorical_probability", -0.5),
        ("x_sum_weights", np.nan),
        ("x_sum_weights", -0.2),
    ],
)
def test_log_density_of_rows_outside_a_support_is_minus_infinity(name, value, rng):
    table = ex.make_table(ex.COLUMNS, 4, rng)
    model = bj.build_model(ex.mixture(table, dictionary=SIX), table)
    rows = model.compile_fn(model.logp(vars=model["x"], sum=False)[0])
    point = model.initial_point()
    of_rows = {key for key in point if not key.endswith("_scale")}  # rows do not depend on the factors of priors

    def log_density():
        return rows({key: point[key] for key in of_rows})

    assert np.isfinite(log_density()).all()
    point[name] = point[name].copy()
    point[name][0] = value
    found = log_density()
    if name == "x_sum_weights" and value < 0.0:
        assert not np.isnan(found).any()  # taken as the smallest weight; its prior refuses it
        with pytest.raises(ModelError, match="do not add up to one"):
            model.compile_logp()(point)
    else:
        np.testing.assert_array_equal(found, -np.inf)


def test_a_likelihood_without_a_gradient_is_refused_by_name(rng, monkeypatch):
    table = ex.make_table((ex.COUNT,), 5, rng)
    circuit = ex.mixture(table, dictionary=SIX)
    family = registry.family("poisson")
    slot = family.accumulate_gradient
    object.__setattr__(family, "accumulate_gradient", None)
    try:
        with pytest.raises(ModelError, match=r"block 'x' with transforms=True and the likelihood poisson"):
            bj.build_model(circuit, table, transforms=True)
        model = bj.build_model(circuit, table)
        _, steps = pm.sampling.mcmc.assign_step_methods(model)
        assert {method.__name__ for method in steps} == {"CircuitGibbs"}
    finally:
        object.__setattr__(family, "accumulate_gradient", slot)
