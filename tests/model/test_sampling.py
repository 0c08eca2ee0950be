"""Draws of the step under ``pm.sample``: seeds and cores, starts, statistics, rows that are impossible."""

from __future__ import annotations

from dataclasses import replace

import arviz as az
import numpy as np
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.circuit.build import ColumnLeaf, Sum, build_circuit
from bayesjpt.errors import ModelError, SamplingError
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.model.conftest import QUICK

TOLERANCE = 1e-9
FAR_BELOW = 20.0
"""Nats that separate a random start from the learner's on two clusters: they differ by hundreds."""
LARGEST_Z = 5.0
N_CLUSTER = 60
N_COIN = 20
"""Chains; all of them begin alike once in half a million."""


def draws_of(model, **options):
    settings = {"draws": 8, "tune": 4, "chains": 2, "cores": 1, "random_seed": 11} | QUICK | options
    with model:
        return pm.sample(**settings)


def assert_same_draws(first, second) -> None:
    for group in ("posterior", "sample_stats"):
        for name in ("x_sum_weights", "x_normal_mu", "x_gamma_shape", "log_likelihood", "n_active_edges"):
            if name in first[group]:
                np.testing.assert_array_equal(first[group][name].to_numpy(), second[group][name].to_numpy())


def first_log_likelihoods(model, *, chains: int = 2, **options) -> np.ndarray:
    """Return the log-likelihood where each chain begins; as many draws as chains, or ArviZ takes one for the other."""
    idata = draws_of(model, draws=chains, tune=0, chains=chains, **options)
    return idata["sample_stats"]["log_likelihood"].to_numpy()[:, 0]


def log_likelihood_at(model: pm.Model, point: dict) -> float:
    parameters = {name: value for name, value in point.items() if not name.endswith("_scale")}  # no factors of priors
    return float(model.compile_fn(model.logp(vars=model["x"]))(parameters))


@pytest.fixture
def clusters(rng) -> tuple[pm.Model, Table]:
    """Return the model of two clusters that lie 20 apart, the learner's estimate being one component for each."""
    values = np.concatenate([rng.normal(-9.0, 1.0, N_CLUSTER), rng.normal(11.0, 1.0, N_CLUSTER)])[None]
    table = Table(Schema((ex.REAL,)), values, np.ones_like(values, bool))
    halves = np.split(np.arange(2 * N_CLUSTER), 2)
    root = Sum(tuple(ColumnLeaf(0, rows) for rows in halves), (N_CLUSTER, N_CLUSTER))
    return bj.build_model(build_circuit(root, table, ex.only("normal")), table), table


# --- seeds and processes


def test_the_same_seed_gives_the_same_draws_on_one_core_and_on_two(sampled):
    assert_same_draws(draws_of(sampled.model), draws_of(sampled.model, cores=2))


def test_another_seed_gives_other_draws(small):
    first, second = (draws_of(small[0], random_seed=seed)["posterior"]["x_normal_mu"] for seed in (1, 2))
    assert (first.to_numpy() != second.to_numpy()).all()


def test_chains_of_one_run_differ(small):
    draws = draws_of(small[0])["posterior"]["x_normal_mu"].to_numpy()
    assert (draws[0] != draws[1]).all()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws_in_forkserver_processes(sampled):
    assert_same_draws(draws_of(sampled.model), draws_of(sampled.model, cores=2, mp_ctx="forkserver"))


def test_a_step_set_back_to_its_state_repeats_its_sweeps(small):
    model, _ = small
    step = CircuitGibbs(model=model)
    step.setup_chain(np.random.default_rng(3), 1, 1)
    point, _ = step.step(model.initial_point())
    state = step.sampling_state
    first, _ = step.step(point)
    step.sampling_state = state
    second, _ = step.step(point)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def test_a_sweep_leaves_the_point_that_it_was_given_alone(small):
    model, _ = small
    step = CircuitGibbs(model=model)
    step.setup_chain(np.random.default_rng(3), 1, 1)
    point, _ = step.step(model.initial_point())
    before = {name: value.copy() for name, value in point.items()}
    new, _ = step.step(point)
    for name, value in before.items():
        np.testing.assert_array_equal(point[name], value)
        assert not np.shares_memory(new[name], point[name])


# --- statistics


def test_log_likelihood_is_that_of_the_draw_before(sampled):
    total = bj.Posterior.from_idata(sampled.idata, sampled.model).log_density(sampled.table).sum("obs_id").to_numpy()
    lagged = sampled.idata["sample_stats"]["log_likelihood"].to_numpy()
    np.testing.assert_allclose(lagged[:, 1:], total[:, :-1], rtol=TOLERANCE)


def test_active_edges_are_at_least_one_a_visited_sum_and_at_most_all(clusters):
    stats = draws_of(clusters[0], step=CircuitGibbs(model=clusters[0], random_start=0.0))["sample_stats"]
    np.testing.assert_array_equal(stats["n_active_edges"].to_numpy(), 2)


def test_progress_bar_shows_the_statistics_of_the_step(small, capsys):
    draws_of(small[0], progressbar=True, draws=2, tune=1, chains=1)
    assert "Active" in "".join(capsys.readouterr())


# --- starts


def test_a_chain_begins_at_the_estimate_of_the_learner(clusters):
    model, _ = clusters
    step = CircuitGibbs(model=model, random_start=0.0)
    expected = log_likelihood_at(model, step.learned_point())
    np.testing.assert_allclose(first_log_likelihoods(model, step=step), expected, rtol=TOLERANCE)


@pytest.mark.parametrize("random_start", [2.0, -0.1, np.nan, "no", True, None])
def test_a_random_start_that_is_no_probability_is_refused(random_start, clusters):
    with pytest.raises(ModelError, match=f"random_start={random_start!r}; expected a probability, from 0 to 1"):
        CircuitGibbs(model=clusters[0], random_start=random_start)


def test_a_random_start_is_far_from_the_estimate_of_the_learner(clusters):
    model, _ = clusters
    step = CircuitGibbs(model=model, random_start=1.0)
    first = first_log_likelihoods(model, step=step, chains=4)
    assert (first < log_likelihood_at(model, step.learned_point()) - FAR_BELOW).all()
    assert np.unique(first).size == 4


def test_a_coin_decides_where_each_chain_begins(clusters):
    model, _ = clusters
    step = CircuitGibbs(model=model)
    first = first_log_likelihoods(model, step=step, chains=N_COIN)
    learned = log_likelihood_at(model, step.learned_point())
    at_the_estimate = np.isclose(first, learned, rtol=TOLERANCE, atol=0.0)
    assert 0 < at_the_estimate.sum() < N_COIN


def even_weights(step: CircuitGibbs, point: dict, tune: int) -> list[bool]:
    """Return for each sweep while it tunes, and one more, whether the structure's weights are even behind it."""
    step.setup_chain(np.random.default_rng(7), tune, 1)
    found = []
    for _ in range(tune + 1):
        point, _ = step.step(point)
        weights = np.exp(step._params(point).log_weight[step._sweeper._soft])
        found.append(bool(np.allclose(weights, weights[0])))
    return found


def test_a_random_start_has_even_weights_in_the_first_half_of_its_tuning(clusters):
    model, _ = clusters
    start = model.initial_point()
    step = CircuitGibbs(model=model, random_start=1.0)
    assert even_weights(step, start, 4) == [True, True, False, False, False]
    assert not any(even_weights(step, step.learned_point(), 4))  # somebody's choice
    assert not any(even_weights(CircuitGibbs(model=model, random_start=0.0), start, 4))


def test_weights_are_drawn_from_where_tuning_was_stopped(clusters):
    model, _ = clusters
    step = CircuitGibbs(model=model, random_start=1.0)
    step.setup_chain(np.random.default_rng(7), 10, 1)
    step.stop_tuning()
    point, _ = step.step(model.initial_point())
    weights = np.exp(step._params(point).log_weight[step._sweeper._soft])
    assert not np.allclose(weights, weights[0])


def test_random_point_gives_valid_values_that_differ_from_draw_to_draw(clusters, rng):
    model, _ = clusters
    step = CircuitGibbs(model=model)
    first, second = step.random_point(rng), step.random_point(rng)
    assert np.isfinite(log_likelihood_at(model, first))
    assert (first["x_normal_mu"] != second["x_normal_mu"]).all()


@pytest.mark.parametrize("way", ["one for all chains", "one a chain", "set in the model"])
def test_initial_values_of_the_user_are_where_chains_begin(way, clusters):
    model, _ = clusters
    given = {"x_normal_mu": np.array([3.0, -2.0]), "x_sum_weights": np.array([0.1, 0.9])}
    point = CircuitGibbs(model=model).learned_point() | given  # the others are where the learner saw them
    options = {}
    match way:
        case "one for all chains":
            options["initvals"] = given
        case "one a chain":
            options["initvals"] = [given, given]
        case _:
            for name, value in given.items():
                model.set_initval(model[name], value)
    expected = log_likelihood_at(model, point)
    np.testing.assert_allclose(first_log_likelihoods(model, **options), expected, rtol=TOLERANCE)


def test_an_initial_value_of_one_variable_leaves_the_others_at_the_learners_estimate(clusters):
    model, _ = clusters
    step = CircuitGibbs(model=model, random_start=1.0)
    given = {"x_normal_mu": np.array([0.5, -0.5])}
    expected = log_likelihood_at(model, step.learned_point() | given)
    first = first_log_likelihoods(model, step=step, initvals=given)
    np.testing.assert_allclose(first, expected, rtol=TOLERANCE)


# --- what cannot be sampled


def test_an_impossible_row_is_named_before_anything_is_sampled(rng):
    table = ex.make_table((ex.POSITIVE,), 6, rng)
    circuit = ex.mixture(table, dictionary=ex.only("exponential"))
    values = table.values.copy()
    values[0, 3] = -1.0
    model = bj.build_model(circuit, replace(table, values=values))
    with pytest.raises(SamplingError, match=r"row 4 of block 'x' has probability zero"):
        CircuitGibbs(model=model)


def test_an_impossible_row_hidden_by_the_mask_is_no_obstacle(rng):
    table = ex.make_table((ex.POSITIVE,), 6, rng)
    circuit = ex.mixture(table, dictionary=ex.only("exponential"))
    values, observed = table.values.copy(), table.observed.copy()
    values[0, 3], observed[0, 3] = -1.0, False
    idata = draws_of(bj.build_model(circuit, replace(table, values=values, observed=observed)))
    assert np.isfinite(idata["sample_stats"]["log_likelihood"].to_numpy()).all()


# --- a toy


def test_two_clusters_are_found_again_with_nearly_independent_draws(clusters):
    model, table = clusters
    idata = draws_of(model, step=CircuitGibbs(model=model, random_start=0.0), draws=400, tune=50, chains=1)
    mean = np.sort(idata["posterior"]["x_normal_mu"].to_numpy()[0], axis=-1) * ex.REAL.scale + ex.REAL.location
    error = 1.0 / np.sqrt(N_CLUSTER)
    truth = table.values[0].reshape(2, -1).mean(axis=1)
    assert (np.abs(mean.mean(axis=0) - truth) < LARGEST_Z * error).all()
    assert float(az.ess(idata, var_names="x_normal_mu")["x_normal_mu"].min()) > 200.0
