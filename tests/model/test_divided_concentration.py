"""Concentrations of dictionaries that are divided over types, and weights of types as variables of a block."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesjpt as bj
from bayesjpt.circuit.priors import make_priors
from bayesjpt.circuit.type_prior import make_column_types
from bayesjpt.errors import ModelError
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests import examples as ex
from tests.model.conftest import QUICK
from tests.model.test_concentration import TOLERANCE, chosen_steps, members


@pytest.fixture
def positive(rng):
    """Return two components over a column of two types, one of which has three families, and one of a single type."""
    table = ex.make_table((ex.PLAIN[1], ex.COUNT), 12, rng)
    return ex.mixture(table, dictionary=ex.only("normal", "gamma", "exponential", "lognormal", "poisson")), table


@pytest.mark.parametrize("alpha", [0.3, np.float32(0.3), "expression"])
def test_alpha_is_split_over_types_first(alpha, positive):
    circuit, table = positive
    with pm.Model() as model:
        given = 2.0 * pm.HalfNormal("half", initval=0.15) if isinstance(alpha, str) else alpha
        bj.CircuitMixture("x", circuit, table, alpha=given, type_prior="types")
    step = CircuitGibbs(members(model, "x"), model=model)
    if isinstance(alpha, str):
        step.setup_chain(np.random.default_rng(1), 1, 1)
        step.step(model.initial_point() | {"half_log__": np.array(np.log(0.15))})
    expected = make_priors(
        circuit, table.schema, step._layout, gamma=0.1, alpha=0.3, prior="default", type_prior="types"
    )
    assert np.ptp(expected.concentration) > 0.1
    at = step._layout.weights[1].edges
    np.testing.assert_allclose(step._sweeper.concentration[at], expected.concentration[at], rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.3, "expression"])
def test_weights_of_columns_are_a_variable_of_the_block_that_sweeps_draw(alpha, positive):
    circuit, table = positive
    with pm.Model() as model:
        given = 2.0 * pm.HalfNormal("half", initval=0.15) if isinstance(alpha, str) else alpha
        bj.CircuitMixture("x", circuit, table, alpha=given, type_prior="columns")
    name = ex.PLAIN[1].name
    assert model.coords["x_column_type"] == (f"{name}:positive", f"{name}:real")
    assert "x_type_prior" in chosen_steps(model)["CircuitGibbs"]
    assert ("half" in chosen_steps(model)["CircuitGibbs"]) == isinstance(alpha, str)
    step = CircuitGibbs(members(model, "x"), model=model)
    point = model.initial_point() | {"x_type_prior": np.array([0.9, 0.1])}
    if isinstance(alpha, str):
        point["half_log__"] = np.array(np.log(0.15))
    concentration, types = step._concentration(point), make_column_types(circuit, table.schema)
    np.testing.assert_allclose(
        concentration[types.edge], 0.3 * types.factor * np.array([0.9, 0.1])[types.entry], rtol=TOLERANCE
    )
    step.setup_chain(np.random.default_rng(1), 1, 1)
    after, _ = step.step(point)
    at = step._layout.weights[1].edges
    np.testing.assert_allclose(step._sweeper.concentration[at], 0.3, rtol=TOLERANCE)  # as it is before it is divided
    assert not np.isclose(after["x_type_prior"], point["x_type_prior"]).any()
    np.testing.assert_allclose(after["x_type_prior"].sum(), 1.0)


def test_weights_of_columns_are_not_drawn_where_weights_of_dictionaries_are_held(positive):
    model = bj.build_model(*positive, type_prior="columns")
    drawn = [rv for rv in members(model, "x") if rv.name != "x_likelihood_weights"]
    with pytest.raises(ModelError, match="x_likelihood_weights, x_type_prior in one step"):
        CircuitGibbs(drawn, model=model)


def test_weights_of_columns_may_be_held_while_weights_of_dictionaries_are_drawn(positive):
    model = bj.build_model(*positive, alpha=0.3, type_prior="columns")
    step = CircuitGibbs([rv for rv in members(model, "x") if rv.name != "x_type_prior"], model=model)
    step.setup_chain(np.random.default_rng(1), 1, 1)
    point = model.initial_point() | {"x_type_prior": np.array([0.9, 0.1])}
    after, _ = step.step(point)
    types = make_column_types(positive[0], positive[1].schema)
    expected = 0.3 * types.factor * np.array([0.9, 0.1])[types.entry]
    np.testing.assert_allclose(step._sweeper.concentration[types.edge], expected, rtol=TOLERANCE)
    np.testing.assert_array_equal(after["x_type_prior"], point["x_type_prior"])
    assert not np.isclose(after["x_likelihood_weights"], point["x_likelihood_weights"]).all()


def test_weights_of_columns_that_are_left_alone_are_no_block(positive):
    model = bj.build_model(*positive, type_prior="columns")
    others = [rv for rv in members(model, "x") if rv.name != "x_type_prior"]
    done = pm.do(model, {rv.name: value for rv, value in zip(others, pm.draw(others, random_seed=1), strict=True)})
    assert [rv.name for rv in members(done, "x")] == ["x_type_prior"]
    with pytest.raises(ModelError, match=r"x_type_prior of no circuit block .* replace these, too"):
        CircuitGibbs(members(done, "x"), model=done)


def test_weights_of_columns_that_do_has_fixed_divide_alpha(positive):
    circuit, table = positive
    done = pm.do(bj.build_model(circuit, table, alpha=0.3, type_prior="columns"), {"x_type_prior": [0.9, 0.1]})
    step = CircuitGibbs(members(done, "x"), model=done)
    types = make_column_types(circuit, table.schema)
    expected = 0.3 * types.factor * np.array([0.9, 0.1])[types.entry]
    found = step._concentration(done.initial_point())[types.edge]
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE)


def test_draws_of_a_model_with_weights_of_columns_are_a_posterior(positive):
    model = bj.build_model(*positive, type_prior="columns")
    with model:
        idata = pm.sample(draws=5, tune=5, chains=2, cores=1, random_seed=1, **QUICK)
    np.testing.assert_allclose(idata["posterior"]["x_type_prior"].sum("x_column_type"), 1.0)
    assert bj.Posterior.from_idata(idata, model).types()["count"].type == "count"


def test_weights_of_columns_have_gradients_with_transforms(positive):
    model = bj.build_model(*positive, type_prior="columns", transforms=True)
    value = model.rvs_to_values[model["x_type_prior"]]
    slope = model.compile_dlogp(vars=[model["x_type_prior"]])(model.initial_point())
    assert value.name != "x_type_prior"
    assert np.isfinite(slope).all()
    assert slope.any()


def test_nothing_to_divide_adds_no_variable(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    model = bj.build_model(circuit, table, type_prior="columns")
    assert "x_type_prior" not in model


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"type_prior": "leaves"}, "members, types, columns"),
        ({"type_prior": np.array(["columns", "types"])}, "members, types, columns"),
        ({"type_prior": "columns", "prior": "flat"}, "flat"),
        ({"type_prior": "types", "alpha": np.ones(10)}, "one for all"),
        ({"type_prior": "columns", "alpha": pt.ones(10)}, "one for all"),
        ({"type_prior": "columns", "alpha": -1.0}, "alpha = -1.0"),
        ({"type_prior": "types", "alpha": 0.0}, "alpha = 0.0"),
        ({"type_prior": "columns", "alpha": True}, "alpha = True"),
        ({"type_prior": "types", "alpha": "x"}, "alpha = 'x'"),
    ],
)
def test_alpha_that_cannot_be_divided_is_refused_and_the_model_left_as_it_was(options, words, positive):
    with pm.Model() as model:
        with pytest.raises(ModelError, match=words):
            bj.CircuitMixture("x", *positive, **options)
        assert not model.named_vars
        assert not model.coords
