"""Concentrations as expressions of the user's random variables, and the step that draws these given the allocations."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import scipy.special
from pymc.model.transform.optimization import freeze_dims_and_data

import bayesjpt as bj
from bayesjpt.errors import ModelError, SamplingError
from bayesjpt.model import concentration
from bayesjpt.model.concentration import blanket
from bayesjpt.model.concentration_step import MAX_SLICES_PER_SWEEP, ConcentrationGibbs
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests import examples as ex
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
    table = ex.make_table((ex.COUNT,), 12, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
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
    table = ex.make_table((ex.COUNT,), 12, rng)
    with pm.Model() as model:
        bj.CircuitMixture("x", ex.mixture(table), table, **{random: pm.Gamma("concentration", 2.0, 2.0)})
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
    table = ex.make_table((ex.REAL,), 6, rng)
    circuit = ex.mixture(table, 3, ex.only("normal"))
    model = bj.build_model(circuit, table, gamma=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(CircuitGibbs(model=model)._sweeper.concentration, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(model["x_sum_weights"].owner.inputs[-1].eval(), [1.0, 2.0, 3.0])


def test_a_vector_expression_has_one_entry_an_edge(rng):
    table = ex.make_table((ex.REAL,), 6, rng)
    with pm.Model() as model:
        gamma = pm.HalfNormal("gamma", shape=3)
        bj.CircuitMixture("x", ex.mixture(table, 3, ex.only("normal")), table, gamma=gamma)
    step = CircuitGibbs(members(model, "x"), model=model)
    point = model.initial_point() | {"gamma_log__": np.log([1.0, 2.0, 3.0])}
    np.testing.assert_allclose(step._concentration(point), [1.0, 2.0, 3.0], rtol=TOLERANCE)


@pytest.mark.parametrize("given", [np.ones(2), [1.0, -1.0, 1.0], pt.vector("v", shape=(2,)), pt.dmatrix("m"), ["a"]])
def test_concentrations_of_another_length_or_kind_are_refused_by_name(given, rng):
    table = ex.make_table((ex.REAL,), 6, rng)
    with pytest.raises(ModelError, match="concentration"):
        bj.build_model(ex.mixture(table, 3), table, gamma=given)


def test_an_expression_that_is_not_positive_is_named_when_it_occurs(rng):
    table = ex.make_table((ex.REAL,), 6, rng)
    with pm.Model() as model:
        bj.CircuitMixture("x", ex.mixture(table), table, gamma=pm.Normal("gamma", -1.0))
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


def test_the_sweep_claims_what_concentrations_are_made_of_and_no_more(hierarchical):
    chosen = chosen_steps(hierarchical)
    assert set(chosen) == {"NUTS", "CircuitGibbs"}
    assert chosen["NUTS"] == {"stranger"}
    assert {"scale", "alpha", "gamma"} < chosen["CircuitGibbs"]


def test_blocks_that_share_variables_are_swept_together_and_others_apart(hierarchical, rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    with hierarchical:
        bj.CircuitMixture("third", ex.mixture(table), table)
    alone, joint = CircuitGibbs(model=hierarchical).methods
    assert {var.name.split("_")[0] for var in alone.vars} == {"third"}
    assert {var.name.split("_")[0] for var in joint.vars} == {"first", "second", "scale", "alpha", "gamma"}
    assert [sweep._block for sweep in joint.sweeps.methods] == ["first", "second"]


@pytest.mark.parametrize("way", ["copy", "do", "observe", "freeze"])
def test_hyperparameters_are_known_in_a_changed_model(way, hierarchical):
    match way:
        case "copy":
            changed = hierarchical.copy()
        case "do":
            changed = pm.do(hierarchical, {"stranger": 1.0})
        case "freeze":
            changed = freeze_dims_and_data(hierarchical)
        case _:
            changed = pm.observe(hierarchical, {"stranger": 1.0})
    assert {"scale", "alpha", "gamma"} < chosen_steps(changed)["CircuitGibbs"]


def test_parents_of_an_observed_hyperparameter_are_left_to_nuts(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        bj.CircuitMixture("x", ex.mixture(table), table, alpha=pm.HalfNormal("alpha", scale, observed=0.5))
    assert chosen_steps(model)["NUTS"] == {"scale"}
    assert isinstance(CircuitGibbs(members(model, "x"), model=model), CircuitGibbs)


def test_a_discrete_hyperparameter_is_left_to_the_choice_of_pymc(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    with pm.Model() as model:
        which = pm.Bernoulli("which", 0.5)
        bj.CircuitMixture("x", ex.mixture(table), table, alpha=pt.switch(which, 0.1, 1.0))
        assert chosen_steps(model)["BinaryGibbsMetropolis"] == {"which"}
        idata = pm.sample(draws=20, tune=5, chains=1, cores=1, random_seed=1, **QUICK)
    assert set(np.unique(idata["posterior"]["which"])) <= {0, 1}


def test_a_step_of_the_user_may_take_a_hyperparameter(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    with pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 1.0)
        bj.CircuitMixture("x", ex.mixture(table), table, alpha=alpha)
        step = [pm.Slice([alpha]), CircuitGibbs(members(model, "x"))]
        idata = pm.sample(step=step, draws=5, tune=5, chains=1, cores=1, random_seed=1, **QUICK)
    assert np.unique(idata["posterior"]["alpha"]).size == 5


@pytest.mark.parametrize("way", ["held", "fixed"])
def test_a_hyperparameter_of_weights_that_no_sweep_draws_is_drawn_given_them(way, rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    with pm.Model() as model:
        bj.CircuitMixture("x", circuit, table, alpha=pm.HalfNormal("alpha", 1.0))
    if way == "fixed":
        others = [rv for rv in model.free_RVs if rv.name != "alpha"]
        model = pm.do(model, {rv.name: value for rv, value in zip(others, pm.draw(others), strict=True)})
        drawn = ["alpha"]
    else:
        drawn = [rv.name for rv in model.free_RVs if rv.name != "x_likelihood_weights"]
    step = CircuitGibbs([model[name] for name in drawn], model=model)
    joint = step.methods[-1] if way == "held" else step
    assert joint.sweeps.methods == []
    point = model.initial_point()
    step.setup_chain(np.random.default_rng(1), 1, 1)
    found = [joint.log_density(point | {"alpha_log__": np.array(at)}) for at in (-1.0, 0.5)]
    expected = [model.compile_logp()(point | {"alpha_log__": np.array(at)}) for at in (-1.0, 0.5)]
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=TOLERANCE)
    after, _ = step.step(point)
    assert after["alpha_log__"] != point["alpha_log__"]


def test_a_block_with_gradients_may_share_a_hyperparameter(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    with pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 1.0)
        bj.CircuitMixture("x", circuit, table, alpha=alpha)
        bj.CircuitMixture("y", circuit, table, alpha=alpha, transforms=True)
    chosen = chosen_steps(model)
    assert "alpha" in chosen["CircuitGibbs"]
    assert all(name.startswith("y_") for name in chosen["NUTS"])
    names = {factor.name for factor in blanket(model, [model.rvs_to_values[alpha]])}
    assert names == {"alpha", "x_likelihood_weights", "y_likelihood_weights"}


# --- the density of what concentrations are made of


def test_blanket_holds_the_factors_that_depend_on_the_hyperparameters_and_no_circuit(hierarchical):
    values = [hierarchical.rvs_to_values[hierarchical[name]] for name in ("scale", "alpha", "gamma")]
    weights = {f"{block}_{kind}_weights" for block in ("first", "second") for kind in ("sum", "likelihood")}
    names = {factor.name for factor in blanket(hierarchical, values)}
    assert names == {"scale", "alpha", "gamma", "y", "pull"} | weights


def log_dirichlet_multinomial(concentration: np.ndarray, count: np.ndarray) -> float:
    """Return the log probability of allocations, from the normalisers of the Dirichlet before and after them."""

    def normaliser(a):
        return scipy.special.gammaln(a).sum() - scipy.special.gammaln(a.sum())

    return float(normaliser(concentration + count) - normaliser(concentration))


def test_density_given_the_allocations_is_that_of_the_users_factors_and_of_the_counts(hierarchical, rng):
    step = CircuitGibbs(model=hierarchical)
    step.setup_chain(np.random.default_rng(1), 1, 1)
    point = hierarchical.initial_point()
    for sweep in step.sweeps.methods:
        sweep.allocate(point)
    factors = [hierarchical[name] for name in ("scale", "alpha", "gamma", "y", "pull")]
    of_factors = hierarchical.compile_logp(vars=factors)
    for _ in range(N_POINT):
        new = point | {name: np.array(rng.normal()) for name in ("scale_log__", "alpha_log__", "gamma_log__")}
        alpha, gamma = np.exp(new["alpha_log__"]), np.exp(new["gamma_log__"])
        expected = float(of_factors(new))
        for sweep, a, g in zip(step.sweeps.methods, (alpha, np.sqrt(alpha)), (gamma, 2.0 * gamma), strict=True):
            count = sweep._sweeper.edge_count
            for variable, value in zip(sweep._layout.weights, (g, a), strict=True):
                for edges in np.split(variable.edges, variable.ptr[1:-1]):
                    expected += log_dirichlet_multinomial(np.full(edges.size, value), count[edges])
        assert step.log_density(new) == pytest.approx(expected, rel=TOLERANCE)


def test_a_slice_never_ends_where_a_concentration_is_not_positive(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    with pm.Model() as model:
        gamma = pm.Normal("gamma", 0.05, 1.0, initval=0.5)
        bj.CircuitMixture("x", ex.mixture(table), table, gamma=gamma)
    step = CircuitGibbs(model=model)
    step.setup_chain(rng, 100, 0)
    point, draws = model.initial_point(), []
    for _ in range(100):
        point, _ = step.step(point)
        draws.append(float(point["gamma"]))
    assert min(draws) > 0.0
    assert step.log_density(point | {"gamma": np.array(-0.1)}) == -np.inf


def test_a_start_without_density_is_refused_by_name(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    with pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 1.0)
        bj.CircuitMixture("x", ex.mixture(table), table, alpha=alpha)
        pm.Potential("wall", pt.switch(alpha > 0.5, 0.0, -np.inf))
    step = CircuitGibbs(model=model)
    step.setup_chain(rng, 1, 1)
    with pytest.raises(SamplingError, match="log density -inf of alpha_log__"):
        step.step(model.initial_point() | {"alpha_log__": np.array(-3.0)})


# --- the chain


def test_a_vector_longer_than_a_sweep_updates_moves_everywhere_in_some_sweeps(rng):
    table = ex.make_table((ex.COUNT,), 12, rng)
    circuit = ex.mixture(table, MAX_SLICES_PER_SWEEP + 5, ex.only("poisson"))
    with pm.Model() as model:
        bj.CircuitMixture("x", circuit, table, gamma=pm.HalfNormal("gamma", shape=MAX_SLICES_PER_SWEEP + 5))
    step = CircuitGibbs(model=model)
    step.setup_chain(rng, 20, 0)
    start = point = model.initial_point()
    first, _ = step.step(start)
    assert (first["gamma_log__"] != start["gamma_log__"]).sum() == MAX_SLICES_PER_SWEEP
    for _ in range(20):
        point, _ = step.step(point)
    assert (point["gamma_log__"] != start["gamma_log__"]).all()


def test_widths_are_adapted_while_the_step_tunes_and_belong_to_the_chain(hierarchical, rng):
    step = CircuitGibbs(model=hierarchical)
    point = hierarchical.initial_point()
    step.setup_chain(rng, 5, 5)
    for _ in range(5):
        point, _ = step.step(point)
    tuned = step.sampling_state
    step.stop_tuning()
    point, _ = step.step(point)
    np.testing.assert_array_equal(step.sampling_state.moved, tuned.moved)
    assert (tuned.n_tuned == 5.0).all()
    assert (tuned.moved > 0.0).all()
    step.setup_chain(rng, 5, 5)
    assert not step.moved.any()
    step.sampling_state = tuned
    np.testing.assert_array_equal(step.moved, tuned.moved)
    assert step.sampling_state.sweeps.methods[0].chain_state.sweep == 5


def test_a_state_that_is_restored_goes_on_with_the_same_draws(hierarchical, rng):
    step = CircuitGibbs(model=hierarchical)
    step.setup_chain(rng, 3, 3)
    point, _ = step.step(hierarchical.initial_point())
    state = step.sampling_state
    first, _ = step.step(point)
    step.sampling_state = state
    second, _ = step.step(point)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value)


def test_a_model_of_blocks_alone_has_statistics_of_the_sweeps_alone(hierarchical):
    with pm.do(hierarchical, {"stranger": 0.0}) as model:
        assert set(chosen_steps(model)) == {"CircuitGibbs"}
        idata = pm.sample(draws=5, tune=5, chains=1, cores=1, random_seed=1, **QUICK)
    expected = {f"{block}_{key}" for block in ("first", "second") for key in CircuitGibbs.stats_dtypes_shapes}
    assert set(idata["sample_stats"]) == expected


def test_default_number_of_tuning_steps_is_that_of_the_sweeps(hierarchical):
    step = CircuitGibbs(model=pm.do(hierarchical, {"stranger": 0.0}))
    assert isinstance(step, ConcentrationGibbs)
    assert pm.sampling.mcmc.get_default_tune_steps(step, None) == CircuitGibbs.default_tune_steps


def test_progress_bar_shows_the_statistics_of_all_blocks(hierarchical, capsys):
    with pm.do(hierarchical, {"stranger": 0.0}) as model:
        pm.sample(draws=2, tune=1, chains=1, cores=1, random_seed=1, compute_convergence_checks=False, progressbar=True)
    columns, fields = CircuitGibbs(model=model)._progressbar_config(1)
    headers = {f"{what} {block}" for block in ("first", "second") for what in ("Log likelihood", "Active edges")}
    assert {column.get_table_column().header for column in columns} == headers
    assert "second_n_active_edges" in fields
    capsys.readouterr()


def test_mark_is_on_free_variables_above_concentrations_alone(hierarchical):
    ops = {rv.name: rv.owner.op for rv in hierarchical.basic_RVs}
    assert {name for name, op in ops.items() if hasattr(op, concentration.MARK)} == {"scale", "alpha", "gamma"}
    assert not hasattr(pm.HalfNormal.dist().owner.op, concentration.MARK)
