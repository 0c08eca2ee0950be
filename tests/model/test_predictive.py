"""What PyMC does with a block beside sampling it: predictive draws, log-likelihood, new rows, do, observe, copy."""

from __future__ import annotations

import arviz as az
import numpy as np
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.errors import ModelError
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests import examples as ex
from tests.model.conftest import QUICK

TOLERANCE = 1e-9
SLOPE_TOLERANCE = 1.0
"""Six posterior standard deviations."""


def inside_the_supports(rows: np.ndarray) -> bool:
    """Return whether rows (..., 5) of all bases are values that their columns could hold."""
    real, positive, count, levels, label = np.moveaxis(rows, -1, 0)
    return bool(
        np.isfinite(real).all()
        and (positive > -np.inf).all()
        and (count >= 0.0).all()
        and (count == np.floor(count)).all()
        and (levels >= 0.0).all()
        and np.isin(label, [0.0, 1.0, 2.0, 3.0]).all()
    )


def test_prior_predictive_rows_are_shaped_like_the_data_and_inside_the_supports(sampled):
    with sampled.model:
        idata = pm.sample_prior_predictive(draws=20, random_seed=1)
    rows = idata["prior_predictive"]["x"]
    assert rows.dims == ("chain", "draw", "x_obs_id", "x_feature")
    assert rows.shape == (1, 20, sampled.table.n_row, 5)
    assert inside_the_supports(rows.to_numpy())
    assert set(idata["prior"].data_vars) == set(sampled.idata["posterior"].data_vars)


def test_posterior_predictive_rows_are_shaped_like_the_data_and_inside_the_supports(sampled):
    with sampled.model:
        idata = pm.sample_posterior_predictive(sampled.idata, random_seed=1, progressbar=False)
    rows = idata["posterior_predictive"]["x"]
    assert rows.shape == (2, 25, sampled.table.n_row, 5)
    assert list(rows["x_feature"].to_numpy()) == list(sampled.table.names)
    assert inside_the_supports(rows.to_numpy())


def test_log_likelihood_of_rows_equals_the_log_density_of_the_posterior(sampled):
    with sampled.model:
        found = pm.compute_log_likelihood(sampled.idata, extend_inferencedata=False, progressbar=False)
    post = bj.Posterior.from_idata(sampled.idata, sampled.model)
    expected = post.log_density(sampled.table).to_numpy()
    np.testing.assert_allclose(found["x"].to_numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("n_row", [3, 40])
def test_new_rows_of_another_number_are_scored_and_predicted(n_row, sampled, rng):
    new = ex.make_table(ex.COLUMNS, n_row, rng, missing=0.3)
    with sampled.model.copy():
        pm.set_data(
            {"x_data": new.values.T.copy(), "x_missing": ~new.observed.T}, coords={"x_obs_id": np.arange(n_row)}
        )
        scores = pm.compute_log_likelihood(sampled.idata, extend_inferencedata=False, progressbar=False)
        idata = pm.sample_posterior_predictive(sampled.idata, random_seed=1, progressbar=False)
    expected = bj.Posterior.from_idata(sampled.idata, sampled.model).log_density(new).to_numpy()
    np.testing.assert_allclose(scores["x"].to_numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert idata["posterior_predictive"]["x"].shape == (2, 25, n_row, 5)


def test_new_rows_can_be_conditioned_on(sampled, rng):
    new = ex.make_table(ex.COLUMNS, 21, rng)
    with sampled.model.copy():
        pm.set_data({"x_data": new.values.T.copy(), "x_missing": ~new.observed.T}, coords={"x_obs_id": np.arange(21)})
        idata = pm.sample(draws=5, tune=2, chains=1, cores=1, random_seed=1, **QUICK)
    post = bj.Posterior.from_idata(idata, sampled.model)
    total = post.log_density(new).sum("obs_id").to_numpy()
    lagged = idata["sample_stats"]["log_likelihood"].to_numpy()
    np.testing.assert_allclose(lagged[:, 1:], total[:, :-1], rtol=TOLERANCE)


def test_do_on_weights_decides_which_component_is_drawn_from(rng):
    table = ex.make_table((ex.REAL,), 200, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    model = bj.build_model(circuit, table)
    fixed = {"x_normal_mu": np.array([-100.0, 100.0]), "x_normal_variance": np.ones(2)}
    with pm.do(model, {"x_sum_weights": np.array([0.0, 1.0]), **fixed}) as done:
        rows = pm.draw(done["x"], random_seed=1)
    assert (rows > ex.REAL.location + 90.0 * ex.REAL.scale).all()


def test_step_refuses_a_weight_that_do_has_fixed(small):
    model, _ = small
    done = pm.do(model, {"x_sum_weights": np.array([0.25, 0.75])})
    with pytest.raises(ModelError, match=r"x_sum_weights of block 'x' is no longer a free variable"), done:
        pm.sample(draws=2, tune=0, chains=1, cores=1, **QUICK)


def test_step_refuses_a_parameter_that_observe_has_fixed(small):
    model, _ = small
    observed = pm.observe(model, {"x_normal_mu": np.zeros(2)})
    with pytest.raises(ModelError, match=r"x_normal_mu of block 'x' is no longer a free variable"), observed:
        pm.sample(draws=2, tune=0, chains=1, cores=1, **QUICK)


def test_observed_parameter_enters_the_log_density(small):
    model, _ = small
    point = model.initial_point()
    at = point.pop("x_normal_mu") + 0.5
    observed = pm.observe(model, {"x_normal_mu": at})
    expected = model.compile_logp()(point | {"x_normal_mu": at})
    assert observed.compile_logp()(point) == pytest.approx(expected, rel=TOLERANCE)


def test_copied_model_has_the_same_density_and_samples_the_same_draws(small):
    model, _ = small
    copied = model.copy()
    point = model.initial_point()
    assert copied.compile_logp()(point) == model.compile_logp()(point)
    draws = []
    for one in (model, copied):
        with one:
            idata = pm.sample(draws=5, tune=2, chains=1, cores=1, random_seed=3, **QUICK)
        draws.append(idata["posterior"]["x_normal_mu"].to_numpy())
    np.testing.assert_array_equal(*draws)


def test_block_is_sampled_beside_a_regression_of_the_user(rng):
    table = ex.make_table((ex.REAL,), 30, rng)
    x = rng.normal(size=40)
    with pm.Model():
        bj.CircuitMixture("block", ex.mixture(table, dictionary=ex.only("normal")), table)
        slope = pm.Normal("slope", 0.0, 5.0)
        pm.Normal("y", slope * x, 1.0, observed=2.0 * x + rng.normal(size=40))
        steps = pm.sampling.mcmc.assign_step_methods(pm.modelcontext(None), None)[1]
        idata = pm.sample(draws=150, tune=150, chains=1, cores=1, random_seed=1, **QUICK)
    chosen = {method.__name__: {var.name for var in variables} for method, variables in steps.items() if variables}
    assert chosen == {
        "NUTS": {"slope"},
        "CircuitGibbs": {"block_sum_weights", "block_normal_scale", "block_normal_variance", "block_normal_mu"},
    }
    assert abs(float(idata["posterior"]["slope"].mean()) - 2.0) < SLOPE_TOLERANCE
    assert idata["posterior"]["block_normal_mu"].to_numpy().std() > 0.0


@pytest.mark.filterwarnings("ignore:invalid value encountered in scalar divide")  # R-hat of shares that are always 0
def test_arviz_summary_takes_the_draws(sampled):
    n_entry = sum(np.prod(value.shape[2:]) for value in sampled.idata["posterior"].data_vars.values())
    assert len(az.summary(sampled.idata)) == n_entry


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # few draws of few rows
def test_arviz_loo_takes_the_log_likelihood(sampled):
    with sampled.model:
        idata = pm.compute_log_likelihood(sampled.idata.copy(), progressbar=False)
    assert np.isfinite(az.loo(idata, var_name="x").elpd)


def test_steps_of_a_copied_model_find_the_block(small):
    model, _ = small
    step = CircuitGibbs(model=model.copy())
    assert {var.name for var in step.vars} == {"x_sum_weights", "x_normal_scale", "x_normal_variance", "x_normal_mu"}
