"""Samplers that follow gradients are told at once that a block of Gibbs sweeps has none for them."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytest

from bayesjpt.errors import ModelError
from tests.model.conftest import QUICK

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
