"""The observed variable: its Op in both linkers, its generator, and what makes two circuits the same."""

from __future__ import annotations

from dataclasses import replace

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

import bayesjpt as bj
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.circuit.priors import make_priors
from bayesjpt.kernels.density import remembered_log_density
from bayesjpt.model.circuit_rows import CircuitLogDensity, FrozenCircuit, RememberedLogDensity
from bayesjpt.numerics import jit
from bayesjpt.table.schema import Schema
from tests import examples as ex
from tests import naive

LINKER_TOLERANCE = 2e-13
TOLERANCE = 1e-10


@pytest.fixture
def case(rng):
    """Return a table of every base with missing cells, its circuit, and weights and parameters."""
    table = ex.make_table(ex.COLUMNS, 30, rng, missing=0.2)
    circuit = ex.two_level(table)
    return table, circuit, ex.random_params(circuit, table.schema, rng)


def op_inputs(table, params, plan):
    rows, missing = np.ascontiguousarray(table.values.T), np.ascontiguousarray(~table.observed.T)
    return [rows, missing, params.log_weight, params.theta, *plan]


def compiled(inputs, mode):
    symbols = [pt.as_tensor(x).type() for x in inputs]
    return pytensor.function(symbols, CircuitLogDensity()(*symbols), mode=mode)


def frozen_circuit(circuit, schema, **more) -> FrozenCircuit:
    settings = {"gamma": 10.0, "alpha": 0.1, "prior": "default"} | more
    return FrozenCircuit(circuit, schema, make_priors(circuit, schema, make_layout(circuit, schema), **settings))


def test_log_density_op_agrees_with_the_definition(case):
    table, circuit, params = case
    inputs = op_inputs(table, params, make_plan(circuit, table.schema))
    found = compiled(inputs, "FAST_COMPILE")(*inputs)
    np.testing.assert_allclose(found, naive.log_values(circuit, params, table), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.slow
def test_log_density_op_agrees_in_both_linkers(case):
    table, circuit, params = case
    inputs = op_inputs(table, params, make_plan(circuit, table.schema))
    plain, numba = (compiled(inputs, mode)(*inputs) for mode in ("FAST_COMPILE", "NUMBA"))
    np.testing.assert_allclose(numba, plain, rtol=LINKER_TOLERANCE, atol=LINKER_TOLERANCE)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_a_remembered_log_density_is_that_of_the_rows_and_parameters_at_hand(mode, case):
    table, circuit, params = case
    inputs = op_inputs(table, params, make_plan(circuit, table.schema))
    memory = np.zeros(table.n_row + 1)
    symbols = [pt.as_tensor(x).type() for x in [*inputs, memory]]
    remembered = pytensor.function(symbols, RememberedLogDensity()(*symbols), mode=mode)
    plain = compiled(inputs, "FAST_COMPILE")
    for position in (None, 0, 1, 2, 3):
        changed = [x.copy() for x in inputs]
        if position == 1:
            changed[1][:] = ~changed[1] & inputs[1]  # nothing is missing: hidden cells hold numbers, too
        elif position is not None:
            changed[position].ravel()[-1] += 1e-9
        for _ in range(2):
            found = remembered(*changed, memory)
            np.testing.assert_allclose(found, plain(*changed), rtol=LINKER_TOLERANCE, atol=LINKER_TOLERANCE)


def test_a_log_density_is_not_computed_again_at_the_same_point(case):
    table, circuit, params = case
    inputs = op_inputs(table, params, make_plan(circuit, table.schema))
    memory = np.zeros(table.n_row + 1)
    first = remembered_log_density(*inputs[:4], Plan(*inputs[4:]), memory)
    memory[1:] += 1.0  # what only memory knows
    second = remembered_log_density(*inputs[:4], Plan(*inputs[4:]), memory)
    np.testing.assert_array_equal(second, first + 1.0)
    of_fewer = np.ones(table.n_row)
    np.testing.assert_array_equal(remembered_log_density(*inputs[:4], Plan(*inputs[4:]), of_fewer), first)
    assert (of_fewer == 1.0).all()


@pytest.mark.parametrize("transforms", [False, True])
def test_only_blocks_that_sweeps_draw_remember_their_density(transforms, rng):
    table = ex.make_table((ex.COUNT,), 6, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    model = bj.build_model(circuit, table, transforms=transforms)
    ops = {type(node.op) for node in ancestors_of(model.logp())}
    assert (RememberedLogDensity in ops) == (not transforms)
    assert (CircuitLogDensity in ops) == transforms


def test_density_of_a_model_follows_its_data(rng):
    table, other = (ex.make_table((ex.COUNT,), n, rng) for n in (6, 6))
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    model, fresh = (bj.build_model(circuit, t) for t in (table, other))
    point, log_density = model.initial_point(), model.compile_logp()
    log_density(point)
    with model:
        pm.set_data({"x_data": other.values.T.copy()})
    assert log_density(point) == pytest.approx(float(fresh.compile_logp()(point)), rel=TOLERANCE)


def ancestors_of(variable) -> list:
    """Return the nodes above a variable."""
    return [each.owner for each in ancestors([variable]) if each.owner is not None]


def test_log_density_op_has_another_cache_key_after_an_edit_of_a_kernel_source(case, monkeypatch):
    table, circuit, params = case
    node = CircuitLogDensity()(*op_inputs(table, params, make_plan(circuit, table.schema))).owner
    _, before = numba_funcify_and_cache_key(node.op, node=node)
    monkeypatch.setattr(jit, "source_hash", lambda room="": "f" * 64)
    _, after = numba_funcify_and_cache_key(node.op, node=node)
    assert before is not None
    assert before != after


def test_generator_has_another_cache_key_after_an_edit_of_a_kernel_source(case, monkeypatch):
    table, circuit, _ = case
    node = bj.build_model(circuit, table)["x"].owner
    _, before = numba_core_rv_funcify(node.op, node)
    monkeypatch.setattr(jit, "source_hash", lambda room="": "f" * 64)
    _, after = numba_core_rv_funcify(node.op, node)
    assert before != after


@pytest.mark.slow
def test_compiled_and_python_generators_give_the_same_rows(rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 9, rng)
    with bj.build_model(ex.mixture(table), table) as model:
        compiled_rows = pm.draw(model["x"], draws=3, random_seed=5, mode="NUMBA")
        rows = pm.draw(model["x"], draws=3, random_seed=5, mode="FAST_COMPILE")
    assert rows.shape == (3, 9, 3)
    np.testing.assert_allclose(compiled_rows, rows, rtol=LINKER_TOLERANCE, atol=LINKER_TOLERANCE)


@pytest.mark.slow
def test_compiled_generators_of_circuits_that_differ_in_scale_alone_are_not_mixed_up(rng):
    table = ex.make_table((ex.REAL,), 5, rng)
    wide = replace(table, schema=Schema((replace(ex.REAL, scale=200.0),)))
    circuit = ex.independent(table)
    rows = []
    for one in (table, wide):
        model = pm.do(bj.build_model(circuit, one), {"x_normal_mu": np.zeros(1), "x_normal_variance": np.ones(1)})
        rows.append(pm.draw(model["x"], random_seed=5, mode="NUMBA"))
    np.testing.assert_allclose(rows[1] - ex.REAL.location, 100.0 * (rows[0] - ex.REAL.location), rtol=TOLERANCE)


@pytest.mark.parametrize("change", ["scale", "resolution", "gamma", "prior", "edges"])
def test_frozen_circuits_differ_where_their_content_does(change, rng):
    table = ex.make_table((ex.POSITIVE, ex.LABEL), 6, rng)
    circuit = ex.mixture(table)
    other = frozen_circuit(circuit, table.schema)
    assert other == frozen_circuit(circuit, table.schema)
    assert hash(other) == hash(frozen_circuit(circuit, table.schema))
    match change:
        case "gamma":
            changed = frozen_circuit(circuit, table.schema, gamma=9.0)
        case "prior":
            changed = frozen_circuit(circuit, table.schema, prior="abda")
        case "edges":
            changed = frozen_circuit(ex.mixture(table, n_component=3), table.schema)
        case _:
            column = replace(ex.POSITIVE, **{change: getattr(ex.POSITIVE, change) * (1.0 + 1e-12)})
            changed = frozen_circuit(circuit, Schema((column, ex.LABEL)))
    assert changed != other


def test_model_survives_cloudpickle(case):
    table, circuit, params = case
    model = bj.build_model(circuit, table)
    again = cloudpickle.loads(cloudpickle.dumps(model))
    # the factors of the default priors are no parameters of the circuit: the initial point holds them
    values = {f"x_{name}": value for name, value in make_layout(circuit, table.schema).split(params).items()}
    point = model.initial_point() | values
    assert again.compile_logp()(point) == model.compile_logp()(point)


def test_support_point_of_the_rows_has_a_finite_density(case):
    table, circuit, params = case
    model = bj.build_model(circuit, table)
    row = pm.distributions.distribution.support_point(model["x"]).eval()[:1].T
    shown = replace(table, values=row, observed=np.ones_like(row, bool))
    assert np.isfinite(naive.log_values(circuit, params, shown)).all()
