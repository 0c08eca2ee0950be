"""Concentrations as expressions of the user's random variables, and the NUTS that samples these by itself."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.step_methods.compound import CompoundStep

import bayesjpt as bj
from bayesjpt.circuit.priors import make_priors
from bayesjpt.circuit.type_prior import make_column_types
from bayesjpt.errors import ModelError, SamplingError
from bayesjpt.model import concentration
from bayesjpt.model.blanket_step import BlanketNUTS, blanket
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests import zoo
from tests.model.conftest import QUICK

TOLERANCE = 1e-9
N_POINT = 3


def chosen_steps(model: pm.Model) -> dict[str, set[str]]:
    """Return the names of the variables that each step method would get."""
    _, steps = pm.sampling.mcmc.assign_step_methods(model)
    return {method.__name__: {model.values_to_rvs[v].name for v in values} for method, values in steps.items()}


@pytest.fixture
def hierarchical(rng) -> pm.Model:
    """Return two blocks that share a hyperparameter, which has a parent and a factor of the user's."""
    table = zoo.make_table((zoo.COUNT,), 12, rng)
    circuit = zoo.mixture(table, dictionary=zoo.only("poisson", "geometric"))
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        alpha = pm.Gamma("alpha", 2.0, 2.0 + scale)
        gamma = pm.LogNormal("gamma", 1.0, 0.5)
        bj.CircuitMixture("first", circuit, table, gamma=gamma, alpha=alpha)
        bj.CircuitMixture("second", circuit, table, gamma=2.0 * gamma, alpha=pt.sqrt(alpha))
        pm.Normal("y", alpha, 1.0, observed=0.3)
        pm.Potential("pull", -(gamma**2))
        pm.Normal("stranger")
    return model


# --- what the Gibbs step is given


@pytest.mark.parametrize("random", ["gamma", "alpha"])
def test_weights_are_not_even_where_gamma_is_sampled_given_them(random, rng):
    table = zoo.make_table((zoo.COUNT,), 12, rng)
    with pm.Model() as model:
        bj.CircuitMixture("x", zoo.mixture(table), table, **{random: pm.Gamma("concentration", 2.0, 2.0)})
    step = CircuitGibbs(members(model, "x"), model=model, random_start=1.0)
    step.setup_chain(np.random.default_rng(1), 4, 1)
    point, _ = step.step(model.initial_point())
    weights = np.exp(step._params(point).log_weight[step._sweeper._soft])
    assert np.allclose(weights, weights[0]) == (random == "alpha")


def test_gibbs_step_evaluates_expressions_at_the_point(hierarchical):
    step = CircuitGibbs([hierarchical["second_sum_weights"], *members(hierarchical, "second")], model=hierarchical)
    point = hierarchical.initial_point() | {"gamma_log__": np.array(np.log(3.0)), "alpha_log__": np.array(np.log(0.25))}
    step.setup_chain(np.random.default_rng(1), 1, 1)
    step.step(point)
    found = step._sweeper.concentration
    layout = step._layout
    np.testing.assert_allclose(found[layout.weights[0].edges], 6.0, rtol=TOLERANCE)
    np.testing.assert_allclose(found[layout.weights[1].edges], 0.5, rtol=TOLERANCE)


def members(model: pm.Model, block: str) -> list:
    return [rv for rv in model.free_RVs if rv.name.startswith(f"{block}_")]


def test_numbers_need_no_function_of_the_point(small):
    model, _ = small
    assert CircuitGibbs(model=model)._concentration is None


def test_a_vector_of_numbers_has_one_entry_an_edge(rng):
    table = zoo.make_table((zoo.REAL,), 6, rng)
    circuit = zoo.mixture(table, 3, zoo.only("normal"))
    model = bj.build_model(circuit, table, gamma=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(CircuitGibbs(model=model)._sweeper.concentration, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(model["x_sum_weights"].owner.inputs[-1].eval(), [1.0, 2.0, 3.0])


def test_a_vector_expression_has_one_entry_an_edge(rng):
    table = zoo.make_table((zoo.REAL,), 6, rng)
    with pm.Model() as model:
        gamma = pm.HalfNormal("gamma", shape=3)
        bj.CircuitMixture("x", zoo.mixture(table, 3, zoo.only("normal")), table, gamma=gamma)
    step = CircuitGibbs(members(model, "x"), model=model)
    point = model.initial_point() | {"gamma_log__": np.log([1.0, 2.0, 3.0])}
    np.testing.assert_allclose(step._concentration(point), [1.0, 2.0, 3.0], rtol=TOLERANCE)


@pytest.mark.parametrize("given", [np.ones(2), [1.0, -1.0, 1.0], pt.vector("v", shape=(2,)), pt.dmatrix("m"), ["a"]])
def test_concentrations_of_another_length_or_kind_are_refused_by_name(given, rng):
    table = zoo.make_table((zoo.REAL,), 6, rng)
    with pytest.raises(ModelError, match="concentration"):
        bj.build_model(zoo.mixture(table, 3), table, gamma=given)


def test_an_expression_that_is_not_positive_is_named_when_it_occurs(rng):
    table = zoo.make_table((zoo.REAL,), 6, rng)
    with pm.Model() as model:
        bj.CircuitMixture("x", zoo.mixture(table), table, gamma=pm.Normal("gamma", -1.0))
        with pytest.raises(SamplingError, match=r"concentration -1.0 of block 'x'"):
            CircuitGibbs(members(model, "x"))


def test_a_hyperparameter_that_do_has_fixed_is_the_concentration(hierarchical):
    done = pm.do(hierarchical, {"alpha": 0.36})
    step = CircuitGibbs(members(done, "second"), model=done)
    found = step._concentration(done.initial_point())
    np.testing.assert_allclose(found[step._layout.weights[1].edges], 0.6, rtol=TOLERANCE)


def test_an_observed_hyperparameter_is_the_concentration(hierarchical):
    observed = pm.observe(hierarchical, {"alpha": 0.36})
    step = CircuitGibbs(members(observed, "second"), model=observed)
    found = step._concentration(observed.initial_point())
    np.testing.assert_allclose(found[step._layout.weights[1].edges], 0.6, rtol=TOLERANCE)


# --- which step is chosen


def test_nuts_on_the_markov_blanket_claims_what_concentrations_are_made_of_and_no_more(hierarchical):
    chosen = chosen_steps(hierarchical)
    assert chosen["BlanketNUTS"] == {"scale", "alpha", "gamma"}
    assert chosen["NUTS"] == {"stranger"}
    assert set(chosen) == {"BlanketNUTS", "NUTS", "CircuitGibbs"}


@pytest.mark.parametrize("way", ["copy", "do", "observe"])
def test_hyperparameters_are_known_in_a_changed_model(way, hierarchical):
    match way:
        case "copy":
            changed = hierarchical.copy()
        case "do":
            changed = pm.do(hierarchical, {"stranger": 1.0})
        case _:
            changed = pm.observe(hierarchical, {"stranger": 1.0})
    assert chosen_steps(changed)["BlanketNUTS"] == {"scale", "alpha", "gamma"}


def test_parents_of_an_observed_hyperparameter_are_left_to_nuts(rng):
    table = zoo.make_table((zoo.COUNT,), 12, rng)
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        bj.CircuitMixture("x", zoo.mixture(table), table, alpha=pm.HalfNormal("alpha", scale, observed=0.5))
    chosen = chosen_steps(model)
    assert chosen["NUTS"] == {"scale"}
    assert "BlanketNUTS" not in chosen


def test_a_discrete_hyperparameter_is_left_to_the_choice_of_pymc(rng):
    table = zoo.make_table((zoo.COUNT,), 12, rng)
    with pm.Model() as model:
        which = pm.Bernoulli("which", 0.5)
        bj.CircuitMixture("x", zoo.mixture(table), table, alpha=pt.switch(which, 0.1, 1.0))
        assert chosen_steps(model)["BinaryGibbsMetropolis"] == {"which"}
        idata = pm.sample(draws=20, tune=5, chains=1, cores=1, random_seed=1, **QUICK)
    assert set(np.unique(idata["posterior"]["which"])) <= {0, 1}


# --- the Markov blanket


def test_blanket_holds_the_factors_that_depend_on_the_hyperparameters_and_no_circuit(hierarchical):
    values = [hierarchical.rvs_to_values[hierarchical[name]] for name in ("scale", "alpha", "gamma")]
    weights = {f"{block}_{kind}_weights" for block in ("first", "second") for kind in ("sum", "likelihood")}
    names = {factor.name for factor in blanket(hierarchical, values)}
    assert names == {"scale", "alpha", "gamma", "y", "pull"} | weights


def test_density_of_the_blanket_differs_from_that_of_the_model_by_a_constant(hierarchical, rng):
    names = ("scale_log__", "alpha_log__", "gamma_log__")
    model = hierarchical
    step = BlanketNUTS(model=model)
    assert {v.name for v in step.vars} == set(names)
    full, slope = model.compile_logp(), model.compile_dlogp(vars=[model[name] for name in ("scale", "alpha", "gamma")])
    point = model.initial_point()
    point["first_likelihood_weights"] = np.array([0.2, 0.8, 1e-12, 1.0 - 1e-12])
    differences = []
    for _ in range(N_POINT):
        new = point | {name: np.array(rng.normal()) for name in names}
        found, gradient = step._logp_dlogp_func(
            np.array([new[v.name] for v in step.vars]), extra_vars={v.name: new[v.name] for v in model.value_vars}
        )
        differences.append(full(new) - found)
        np.testing.assert_allclose(gradient, slope(new), rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(differences, differences[0], rtol=TOLERANCE)


def test_statistics_of_the_blanket_do_not_pass_its_density_off_as_that_of_the_model(hierarchical):
    with hierarchical:
        idata = pm.sample(draws=5, tune=5, chains=1, cores=1, random_seed=1, target_accept=0.9, **QUICK)
    stats = idata["sample_stats"]
    assert {"diverging", "first_log_likelihood", "second_log_likelihood", "second_n_active_edges"} <= set(stats)
    assert not BlanketNUTS.stats_dtypes_shapes.keys() & {"model_logp"}
    alone = chosen_steps(pm.do(hierarchical, {"stranger": 0.0}))
    assert "NUTS" not in alone
    with pm.do(hierarchical, {"stranger": 0.0}):
        idata = pm.sample(draws=5, tune=5, chains=1, cores=1, random_seed=1, **QUICK)
    assert "lp" not in idata["sample_stats"]


def test_default_number_of_tuning_steps_is_that_of_the_slower_step(hierarchical):
    done = pm.do(hierarchical, {"stranger": 0.0})
    steps = [CircuitGibbs(model=done), BlanketNUTS([done["alpha"]], model=done)]
    tune = pm.sampling.mcmc.get_default_tune_steps(CompoundStep(steps), None)
    assert tune == BlanketNUTS.default_tune_steps


def test_tag_is_on_free_variables_alone(hierarchical):
    tagged = {name for name, variable in hierarchical.named_vars.items() if hasattr(variable.tag, concentration.TAG)}
    assert tagged == {"scale", "alpha", "gamma"}


# --- weights of types


@pytest.fixture
def positive(rng):
    """Return two components over a column of two types, one of which has three families, and one of a single type."""
    table = zoo.make_table((zoo.PLAIN[1], zoo.COUNT), 12, rng)
    return zoo.mixture(table, dictionary=zoo.only("normal", "gamma", "exponential", "lognormal", "poisson")), table


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
    name = zoo.PLAIN[1].name
    assert model.coords["x_column_type"] == (f"{name}:positive", f"{name}:real")
    assert "x_type_prior" in chosen_steps(model)["CircuitGibbs"]
    assert chosen_steps(model).get("BlanketNUTS", set()) == ({"half"} if isinstance(alpha, str) else set())
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
    table = zoo.make_table((zoo.COUNT,), 12, rng)
    circuit = zoo.mixture(table, dictionary=zoo.only("poisson", "geometric"))
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
