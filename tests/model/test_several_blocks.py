"""Several blocks in one model: a step each, statistics and draws under their names, PyMC's functions on all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytest

import bayesjpt as bj
from bayesjpt.errors import ModelError
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.conftest import SEED
from tests.model.conftest import QUICK

TOLERANCE = 1e-9
N_DRAW = 12
FEW = ex.only("normal", "categorical", "poisson", "geometric")


class Pair(NamedTuple):
    """Two blocks that share a hyperparameter, and draws of them."""

    tables: dict[str, Table]
    model: pm.Model
    idata: object


@pytest.fixture(scope="module")
def pair() -> Pair:
    """Return blocks ``left`` (a real column and labels, cells missing) and ``right`` (counts), sampled."""
    rng = np.random.default_rng(SEED)
    tables = {
        "left": ex.make_table((ex.REAL, ex.LABEL), 15, rng, missing=0.2),
        "right": ex.make_table((ex.COUNT,), 9, rng),
    }
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 1.0)
        for name, table in tables.items():
            bj.CircuitMixture(name, ex.mixture(table, dictionary=FEW), table, alpha=alpha, gamma=2.0)
        idata = pm.sample(draws=N_DRAW, tune=5, chains=2, cores=1, random_seed=SEED, **QUICK)
    return Pair(tables, model, idata)


def test_each_block_has_a_step_of_its_own(pair):
    step = CircuitGibbs(model=pm.do(pair.model, {"alpha": 0.5}))
    assert [type(method) for method in step.methods] == [CircuitGibbs, CircuitGibbs]
    names = [{var.name.split("_")[0] for var in method.vars} for method in step.methods]
    assert names in ([{"left"}, {"right"}], [{"right"}, {"left"}])


def test_each_block_has_a_posterior_whose_density_its_statistic_follows(pair):
    for name, table in pair.tables.items():
        post = bj.Posterior.from_idata(pair.idata, pair.model, name=name)
        total = post.log_density(table).sum("obs_id").to_numpy()
        assert list(post.schema.names) == list(table.names)
        np.testing.assert_allclose(post.sample_stats["log_likelihood"][:, 1:], total[:, :-1], rtol=TOLERANCE)
        assert post.sample_stats["n_active_edges"].shape == (2, N_DRAW)
        assert post.reference.n_row == table.n_row


def test_a_posterior_of_no_named_block_is_refused_with_the_names(pair):
    with pytest.raises(ModelError, match="left, right"):
        bj.Posterior.from_idata(pair.idata, pair.model)


def test_draws_are_the_same_on_two_cores(pair):
    with pair.model:
        again = pm.sample(draws=N_DRAW, tune=5, chains=2, cores=2, random_seed=SEED, **QUICK)
    for name in ("alpha", "left_normal_mu", "right_poisson_rate"):
        np.testing.assert_array_equal(again["posterior"][name].to_numpy(), pair.idata["posterior"][name].to_numpy())


def test_statistics_of_a_single_block_have_plain_names(small):
    model, _ = small
    assert set(CircuitGibbs(model=model).stats_dtypes_shapes) == {"log_likelihood", "n_active_edges"}


def test_progress_bar_shows_both_blocks(pair, capsys):
    with pair.model:
        pm.sample(draws=2, tune=1, chains=1, cores=1, random_seed=1, compute_convergence_checks=False, progressbar=True)
    columns, fields = CircuitGibbs(model=pair.model)._progressbar_config(1)
    headers = [column.get_table_column().header for column in columns]
    assert headers == ["Log likelihood left", "Active edges left", "Log likelihood right", "Active edges right"]
    assert set(fields) == {f"{name}_{key}" for name in pair.tables for key in ("log_likelihood", "n_active_edges")}
    assert "Sampling" not in capsys.readouterr().err


def test_log_likelihood_is_computed_for_each_block(pair):
    with pair.model:
        found = pm.compute_log_likelihood(pair.idata, extend_inferencedata=False, progressbar=False)
    for name, table in pair.tables.items():
        expected = bj.Posterior.from_idata(pair.idata, pair.model, name=name).log_density(table).to_numpy()
        np.testing.assert_allclose(found[name].to_numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_predictions_of_new_rows_have_their_number_in_the_block_that_got_them(pair, rng):
    new = ex.make_table((ex.REAL, ex.LABEL), 4, rng, missing=0.3)
    with pair.model.copy():
        pm.set_data(
            {"left_data": new.values.T.copy(), "left_missing": ~new.observed.T}, coords={"left_obs_id": np.arange(4)}
        )
        idata = pm.sample_posterior_predictive(pair.idata, predictions=True, random_seed=1, progressbar=False)
        scores = pm.compute_log_likelihood(pair.idata, extend_inferencedata=False, progressbar=False)
    rows = idata["predictions"]
    assert rows["left"].shape == (2, N_DRAW, 4, 2)
    assert rows["right"].shape == (2, N_DRAW, 9, 1)
    assert np.isin(rows["left"].to_numpy()[..., 1], [0.0, 1.0, 2.0, 3.0]).all()
    assert (rows["right"].to_numpy() >= 0.0).all()
    expected = bj.Posterior.from_idata(pair.idata, pair.model, name="left").log_density(new).to_numpy()
    np.testing.assert_allclose(scores["left"].to_numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_prior_predictive_draws_the_hyperparameter_and_both_blocks(pair):
    with pair.model:
        idata = pm.sample_prior_predictive(draws=10, random_seed=1)
    assert idata["prior_predictive"]["left"].shape == (1, 10, 15, 2)
    assert idata["prior_predictive"]["right"].shape == (1, 10, 9, 1)
    assert (idata["prior"]["alpha"].to_numpy() > 0.0).all()
    sums = idata["prior"]["right_likelihood_weights"].to_numpy().reshape(10, 2, -1).sum(axis=-1)
    np.testing.assert_allclose(sums, 1.0, rtol=TOLERANCE)


def test_density_of_a_copied_and_of_an_observed_model_is_that_of_the_model(pair):
    point = pair.model.initial_point()
    expected = pair.model.compile_logp()(point)
    # PyTensor may add up the terms of a copy in another order
    assert pair.model.copy().compile_logp()(point) == pytest.approx(expected, rel=1e-14)
    observed = pm.observe(pair.model, {"alpha": 0.7})
    rest = {name: value for name, value in point.items() if name != "alpha_log__"}
    jacobian = np.log(0.7)
    at = pair.model.compile_logp()(point | {"alpha_log__": np.array(np.log(0.7))})
    assert observed.compile_logp()(rest) == pytest.approx(at - jacobian, rel=TOLERANCE)


def test_one_of_two_blocks_may_be_fixed(pair):
    fixed = {name: value for name, value in pair.model.initial_point().items() if name.startswith("right_")}
    done = pm.do(pair.model, fixed)
    step = CircuitGibbs(model=done)
    alone, of_alpha = step.methods
    assert {var.name.split("_")[0] for var in alone.vars} == {"left"}
    assert [var.name for var in of_alpha.vars] == ["alpha_log__"]
    assert set(alone.stats_dtypes_shapes) == {"log_likelihood", "n_active_edges"}
