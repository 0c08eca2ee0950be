"""What stands in place of a block's ops where PyTensor compiles with numba: the same draws, densities, gradients."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.tensor.random.op import RandomVariable, RandomVariableWithCoreShape

import bayesjpt as bj
from bayesjpt.circuit.plan import make_plan
from bayesjpt.families import registry
from bayesjpt.kernels.density import rows_log_density
from bayesjpt.kernels.gradient import rows_gradient
from bayesjpt.model.circuit_rows import CircuitLogDensity
from bayesjpt.model.compiled_density import PlannedGradient, PlannedLogDensity
from bayesjpt.model.compiled_draws import DrawnRows, DrawnVariables
from bayesjpt.model.flat_vectors import FlatOp, Placed, placed, type_weights
from bayesjpt.model.priors import DRAWN
from bayesjpt.model.tape import NUMBERS
from tests import examples as ex

LAST_BITS = 1e-14
"""Relative; NumPy and numba round differently inside a gamma draw."""
STEP = 1e-6
SLOPE_TOLERANCE = 1e-8


def ops(function) -> list:
    return [node.op for node in function.maker.fgraph.apply_nodes]


# --- draws


def test_every_distribution_of_a_block_has_a_number_or_an_op_of_its_own():
    drawn = {name: getattr(kind, "rv_type", None) or type(kind.rv_op) for name, kind in DRAWN.items()}
    numbered = {name for name, kind in drawn.items() if issubclass(kind, tuple(NUMBERS))}
    assert numbered == set(DRAWN) - {"dirichlet"}
    assert sorted(NUMBERS.values()) == list(range(len(NUMBERS)))


def test_compiled_prior_predictive_draws_are_those_of_the_distributions(rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 7, rng, missing=0.2)
    model = bj.build_model(ex.mixture(table), table)
    found = []
    for mode in ("NUMBA", "FAST_COMPILE"):
        with model.copy():  # a model keeps its functions, whatever the mode
            idata = pm.sample_prior_predictive(3, random_seed=4, compile_kwargs={"mode": mode})
        found.append(idata["prior"].to_dataset().merge(idata["prior_predictive"].to_dataset()))
    compiled, plain = found
    assert set(compiled.data_vars) == set(plain.data_vars) >= {"x", "x_type_weights", "x_sum_weights"}
    for name in plain.data_vars:
        np.testing.assert_allclose(compiled[name], plain[name], rtol=LAST_BITS, atol=0.0, err_msg=name)


def test_nothing_of_a_block_is_left_to_the_compiled_loops_of_pytensor(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 4, rng)
    model = bj.build_model(ex.mixture(table), table)
    outputs = [*model.free_RVs, *model.observed_RVs, *model.deterministics]
    function = pm.pytensorf.compile([], outputs, mode="NUMBA")  # compiled by numba when it is first called
    kinds = [type(op) for op in ops(function)]
    assert not [kind for kind in kinds if issubclass(kind, RandomVariable | RandomVariableWithCoreShape)]
    assert {DrawnVariables, DrawnRows} <= set(kinds)
    assert kinds.count(DrawnRows) == 1


def test_draws_of_a_user_are_left_alone():
    function = pm.pytensorf.compile([], [pm.Gamma.dist(2.0, 1.0, shape=3)], mode="NUMBA")
    assert not [op for op in ops(function) if isinstance(op, DrawnVariables)]


# --- flat vectors and shares


def flat_cases(rng) -> list:
    """Return [symbolic inputs, output, a point] of each op."""
    table = ex.make_table(ex.COLUMNS, 6, rng)
    circuit = ex.two_level(table)
    weight = pt.vector("weight", shape=(circuit.n_edge,))
    vectors = [pt.vector(name, shape=(n,)) for name, n in (("a", 3), ("b", 1), ("c", 2))]
    positions = [np.array([4, 0, 6]), np.array([1]), np.array([2, 5])]
    return [
        (
            [weight],
            type_weights(circuit, len(ex.COLUMNS), len(registry.FAMILIES), weight),
            [rng.random(circuit.n_edge)],
        ),
        (vectors, placed(8, list(zip(positions, vectors, strict=True)), 0.25), [rng.random(n) for n in (3, 1, 2)]),
    ]


def test_entries_stand_at_their_positions(rng):
    _, (symbols, out, point) = flat_cases(rng)
    a, b, c = point
    expected = [a[1], b[0], c[0], 0.25, a[0], c[1], a[2], 0.25]
    assert pytensor.function(symbols, out, mode="FAST_COMPILE")(*point).tolist() == expected


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_flat_ops_are_what_their_symbolic_form_is(mode, rng):
    for symbols, out, point in flat_cases(rng):
        (form,) = out.owner.op.symbolic(*out.owner.inputs)
        found = pytensor.function(symbols, out, mode=mode)
        assert any(isinstance(op, FlatOp) for op in ops(found))
        expected = pytensor.function(symbols, form, mode="FAST_COMPILE")(*point)
        np.testing.assert_array_equal(found(*point), expected)
        assert out.type.shape == expected.shape


def test_shares_of_each_column_add_up_to_one(rng):
    table = ex.make_table(ex.COLUMNS, 6, rng)
    circuit = ex.two_level(table)
    weight = np.exp(circuit.start_log_weight)
    shares = type_weights(circuit, len(ex.COLUMNS), len(registry.FAMILIES), pt.constant(weight)).eval(
        mode="FAST_COMPILE"
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


def test_derivatives_of_flat_ops_are_slopes(rng):
    for symbols, out, point in flat_cases(rng):
        cotangent = rng.normal(size=out.type.shape)
        value = pt.sum(out * cotangent)
        value_at = pytensor.function(symbols, value, mode="FAST_COMPILE")
        slopes = pytensor.function(symbols, pytensor.grad(value, symbols), mode="FAST_COMPILE")(*point)
        for which, slope in enumerate(slopes):
            for entry in range(min(slope.size, 5)):
                ends = []
                for step in (STEP, -STEP):
                    moved = [x.copy() for x in point]
                    moved[which][entry] += step
                    ends.append(float(value_at(*moved)))
                assert (ends[0] - ends[1]) / (2.0 * STEP) == pytest.approx(slope[entry], abs=SLOPE_TOLERANCE)


def test_a_vector_computed_from_another_adds_to_its_slope_once():
    a = pt.vector("a", shape=(2,))
    out = placed(4, [(np.array([0, 1]), a), (np.array([2, 3]), a**2)], 0.0)
    slope = pytensor.function([a], pytensor.grad(pt.sum(out), a), mode="FAST_COMPILE")
    np.testing.assert_allclose(slope(np.array([3.0, -1.0])), [7.0, -1.0], rtol=1e-14)


def test_a_vector_that_is_not_of_reals_has_no_derivative():
    a = pt.vector("a", shape=(2,))
    out = placed(2, [(np.array([1, 0]), a)], 0.0)
    assert isinstance(out.owner.op, Placed)
    assert out.owner.op.connection_pattern(out.owner) == [[True], [False], [True]]


# --- densities


def test_densities_with_a_constant_plan_are_those_of_the_kernels(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 9, rng, missing=0.2)
    circuit = ex.mixture(table)
    plan = make_plan(circuit, table.schema)
    rows, hidden = np.ascontiguousarray(table.values.T), np.ascontiguousarray(~table.observed.T)
    log_weight, theta = pt.vector(shape=(circuit.n_edge,)), pt.vector(shape=(circuit.n_theta,))
    cotangent = rng.normal(size=9)
    density = CircuitLogDensity()(rows, hidden, log_weight, theta, *[pt.constant(array) for array in plan])
    slopes = pytensor.grad(pt.sum(density * cotangent), [log_weight, theta])
    function = pytensor.function([log_weight, theta], [density, *slopes], mode="NUMBA")
    assert {PlannedLogDensity, PlannedGradient} <= {type(op) for op in ops(function)}
    at = circuit.start_log_weight, circuit.start_theta
    found = function(*at)
    np.testing.assert_array_equal(found[0], rows_log_density(rows, hidden, *at, plan))
    for mine, kernels in zip(found[1:], rows_gradient(cotangent, rows, hidden, *at, plan), strict=True):
        np.testing.assert_array_equal(mine, kernels)


def test_code_of_another_plan_has_another_key(rng):
    table = ex.make_table((ex.REAL,), 9, rng)
    keys = set()
    for circuit in (ex.mixture(table), ex.mixture(table, 3), ex.mixture(table)):
        plan = make_plan(circuit, table.schema)
        inputs = [pt.matrix(), pt.bmatrix(), pt.vector(), pt.vector()]
        density = CircuitLogDensity()(pt.matrix(shape=(9, 1)), *inputs[1:], *[pt.constant(array) for array in plan])
        function = pytensor.function(list(density.owner.inputs[:4]), density, mode="NUMBA")
        (node,) = [n for n in function.maker.fgraph.apply_nodes if isinstance(n.op, PlannedLogDensity)]
        keys.add(numba_funcify_and_cache_key(node.op, node=node)[1])
    assert len(keys) == 2
