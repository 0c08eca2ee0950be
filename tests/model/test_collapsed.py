"""The collapsed sampler inside ``pm.sample``: asked for at the block, refused where it cannot work."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.errors import ModelError
from bayesjpt.kernels.collapsed_sweeper import CollapsedSweeper
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests import examples as ex
from tests.conftest import SEED
from tests.model.conftest import QUICK


@pytest.fixture
def two_columns(rng):
    table = ex.make_table((ex.POSITIVE, ex.LABEL), 30, rng)
    return ex.mixture(table), table


def test_a_block_says_how_its_sweeps_draw_allocations(two_columns):
    kinds = [
        type(CircuitGibbs(model=bj.build_model(*two_columns, sampler=s))._sweeper) for s in ("blocked", "collapsed")
    ]
    assert kinds == [Sweeper, CollapsedSweeper]
    assert type(CircuitGibbs(model=bj.build_model(*two_columns))._sweeper) is Sweeper


def test_pm_sample_takes_the_blocks_sampler_beside_a_concentration_that_is_drawn(two_columns):
    draws = []
    for sampler in ("blocked", "collapsed", "collapsed"):
        with pm.Model():
            alpha = pm.HalfNormal("alpha", 0.5)
            bj.CircuitMixture("x", *two_columns, alpha=alpha, type_prior="columns", sampler=sampler)
            idata = pm.sample(draws=5, tune=4, chains=2, cores=1, random_seed=SEED, **QUICK)
        draws.append(np.asarray(idata["posterior"]["x_normal_mu"]))
        assert np.ptp(np.asarray(idata["posterior"]["alpha"])) > 0.0
    assert not np.array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[1], draws[2])


def test_an_unknown_sampler_leaves_the_model_as_it_was(two_columns):
    with pm.Model() as model:
        with pytest.raises(ModelError, match="sampler = 'nuts'; expected one of blocked, collapsed"):
            bj.CircuitMixture("x", *two_columns, sampler="nuts")
        assert not model.named_vars


def test_a_block_with_transforms_has_no_sweeps_to_choose(two_columns):
    with pm.Model() as model:
        with pytest.raises(ModelError, match=r"transforms=True and sampler='collapsed'.*Leave transforms out"):
            bj.CircuitMixture("x", *two_columns, sampler="collapsed", transforms=True)
        assert not model.named_vars


def test_a_step_that_holds_a_part_of_the_block_is_refused(two_columns):
    model = bj.build_model(*two_columns, sampler="collapsed")
    with pytest.raises(ModelError, match=r"x_sum_weights of block 'x' is given to another step.*sampler='blocked'"):
        CircuitGibbs([rv for rv in model.free_RVs if rv.name != "x_sum_weights"], model=model)
