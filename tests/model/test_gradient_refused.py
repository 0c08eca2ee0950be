"""Samplers that follow gradients are told at once that a block of Gibbs sweeps has none for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
from pytensor.gradient import grad
from pytensor.graph.traversal import ancestors

import bayesjpt as bj
from bayesjpt.errors import ModelError
from tests import examples as ex
from tests.model.conftest import QUICK

MOST_NODES = 80
"""Of the graph of a gradient that is refused: the way from the rows to one variable. It was 230 of a gamma's shape."""

WAYS = {
    "NUTS": lambda: pm.sample(draws=2, tune=0, chains=1, cores=1, step=pm.NUTS(), **QUICK),
    "NUTS of one variable": lambda: pm.NUTS([pm.modelcontext(None)["x_normal_mu"]]),
    "find_MAP": lambda: pm.find_MAP(progressbar=False),
    "fit": lambda: pm.fit(n=2, progressbar=False),
    "second derivatives": lambda: pm.modelcontext(None).compile_d2logp([pm.modelcontext(None)["x_normal_mu"]]),
}


@pytest.mark.filterwarnings("ignore:.find_MAP.:FutureWarning")  # of what it will return
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_gradients_of_a_block_of_sweeps_are_refused_with_the_remedy(way, small):
    model, _ = small
    with pytest.raises(ModelError, match=r"Gibbs sweeps.*transforms=True"), model:
        way()


@pytest.mark.filterwarnings("ignore:.find_MAP.:FutureWarning")  # of what it will return
@pytest.mark.parametrize("way", ["find_MAP", "NUTS"])
def test_compiled_refusals_name_what_was_called(way, small):
    with pytensor.config.change_flags(mode="NUMBA"), pytest.raises(ModelError, match=way), small[0]:
        WAYS[way]()


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_smc_which_leaves_the_simplexes_is_refused_before_it_draws(mode, small):
    with pytensor.config.change_flags(mode=mode), pytest.raises(ModelError, match=r"pm\.sample_smc.*transforms=True"):
        pm.sample_smc(20, chains=1, cores=1, model=small[0], progressbar=False, compute_convergence_checks=False)


def test_the_refusal_is_the_same_in_compiled_graphs(small):
    model, _ = small
    with pytensor.config.change_flags(mode="NUMBA"), pytest.raises(ModelError, match="transforms=True"):
        model.compile_dlogp([model["x_normal_mu"]])


def test_nuts_of_other_variables_is_as_ever(small, rng):
    model, _ = small
    with model:
        slope = pm.Normal("slope")
        pm.Normal("y", slope, 1.0, observed=rng.normal(size=5))
        idata = pm.sample(draws=5, tune=5, chains=1, cores=1, random_seed=1, step=pm.NUTS([slope]), quiet=True, **QUICK)
    assert np.isfinite(idata["posterior"]["x_normal_mu"]).all()


@pytest.fixture
def with_alpha(rng) -> pm.Model:
    """Return a model of every kind of parameter, below a concentration of the user's."""
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT), 20, rng)
    with pm.Model() as model:
        bj.CircuitMixture("x", ex.two_level(table), table, alpha=pm.HalfNormal("alpha", 0.5))
    return model


def test_gradients_that_no_step_evaluates_stop_at_the_densities_of_a_block(with_alpha):
    # PyMC makes one a variable before it chooses steps: they were most of the time to the first draw
    logp = with_alpha.logp()
    of_density = {variable.owner for variable in ancestors([logp])}
    for variable in with_alpha.value_vars:
        if variable.name.startswith("x_") and "weights" not in variable.name:
            made = {node.owner for node in ancestors([grad(logp, variable)])} - of_density
            assert len(made) < MOST_NODES, variable.name


def test_a_concentration_has_its_gradient(with_alpha):
    (alpha,) = (variable for variable in with_alpha.value_vars if variable.name.startswith("alpha"))
    logp = with_alpha.compile_logp(mode="FAST_COMPILE")
    slope = with_alpha.compile_dlogp([with_alpha["alpha"]], mode="FAST_COMPILE")
    point = with_alpha.initial_point()
    ends = [logp(point | {alpha.name: point[alpha.name] + step}) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(slope(point), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


@pytest.fixture(scope="module", params=[False, True], ids=["of sweeps", "with transforms"])
def imputing(request) -> pm.Model:
    """Return a model in which a slope goes with a column with gaps."""
    rng = np.random.default_rng(2)
    table = bj.as_table(pd.DataFrame({"a": rng.normal(size=8)}).mask(np.arange(8)[:, None] < 2), kinds={"a": "real"})
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        x = bj.CircuitMixture("x", circuit, table, impute=True, transforms=request.param, gamma=1.0, alpha=1.0)
        pm.Normal("y", pm.Normal("slope") * x[:, 0], 1.0, observed=np.linspace(-1.0, 1.0, 8))
    return model


OF_MISSING_CELLS = {
    "NUTS": WAYS["NUTS"],
    "NUTS of the cells": lambda: pm.NUTS([pm.modelcontext(None)["x_imputed"]]),
    "find_MAP": WAYS["find_MAP"],
    "fit": WAYS["fit"],
}


@pytest.mark.filterwarnings("ignore:.find_MAP.:FutureWarning")  # of what it will return
@pytest.mark.parametrize("way", OF_MISSING_CELLS.values(), ids=OF_MISSING_CELLS)
def test_gradients_of_missing_cells_are_refused_with_the_remedy(way, imputing):
    with pytest.raises(ModelError, match=r"the gradient of .*transforms=True"), imputing:
        way()


def test_nuts_of_a_slope_goes_with_missing_cells(imputing):
    with imputing:
        step = pm.NUTS([imputing["slope"]])
        idata = pm.sample(draws=3, tune=3, chains=1, cores=1, random_seed=1, step=step, quiet=True, **QUICK)
    assert np.isfinite(idata["posterior"]["x_imputed"]).all()
