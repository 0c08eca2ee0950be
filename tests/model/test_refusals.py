"""Models in which the block's conditional draws would be wrong are refused by name when the step is built."""

from __future__ import annotations

import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.errors import ModelError
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests import examples as ex
from tests.model.conftest import QUICK

DEPENDENT = {
    "an observed variable": lambda block: pm.Normal("culprit", block.sum(), 1.0, observed=0.3),
    "a free variable": lambda block: pm.Normal("culprit", block[0], 1.0),
    "a variable, through a Deterministic": lambda block: pm.Normal(
        "culprit", pm.Deterministic("between", block**2).sum(), 1.0, observed=0.3
    ),
    "a Potential": lambda block: pm.Potential("culprit", -(block**2).sum()),
    "a Potential, through a Deterministic": lambda block: pm.Potential(
        "culprit", pm.Deterministic("between", block.sum()) * 2.0
    ),
    "a CustomDist": lambda block: pm.CustomDist(
        "culprit", block[0], logp=lambda value, mu: -((value - mu) ** 2), observed=1.0
    ),
}

HARMLESS = {
    "a Deterministic of the block": lambda model: pm.Deterministic("d", model["x_normal_mu"].sum()),
    "a variable of its own": lambda model: pm.Normal("y", pm.Normal("mu"), 1.0, observed=[0.1, 0.2]),
    "a Potential of the data": lambda model: pm.Potential("p", model["x_data"].sum()),
    "a Potential of the observed rows": lambda model: pm.Potential("p", -(model["x"] ** 2).sum()),
    "an unused Deterministic between": lambda model: pm.Normal(
        "y", pm.Deterministic("d", model["x_missing"].sum() * 1.0), 1.0, observed=0.1
    ),
}


@pytest.mark.parametrize("dependent", DEPENDENT.values(), ids=DEPENDENT)
@pytest.mark.parametrize("variable", ["x_normal_mu", "x_sum_weights"])
def test_a_factor_that_depends_on_the_block_is_refused_by_name(dependent, variable, small):
    model, _ = small
    with model:
        dependent(model[variable])
        with pytest.raises(ModelError, match=r"culprit depends on variables of block 'x'"):
            CircuitGibbs()


def test_pm_sample_refuses_a_factor_that_depends_on_the_block(small):
    model, _ = small
    with model:
        pm.Normal("culprit", model["x_normal_mu"][0], 1.0, observed=0.3)
        with pytest.raises(ModelError, match=r"culprit.*only Deterministics"):
            pm.sample(draws=2, tune=0, chains=1, cores=1, **QUICK)


def test_a_factor_that_depends_on_one_of_two_blocks_is_refused_by_name(rng):
    table = ex.make_table((ex.REAL,), 4, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    with pm.Model() as model:
        bj.CircuitMixture("first", circuit, table)
        bj.CircuitMixture("second", circuit, table)
        pm.Potential("culprit", -(model["second_normal_mu"] ** 2).sum())
        with pytest.raises(ModelError, match="culprit depends on variables of block 'second'"):
            CircuitGibbs()


def test_a_block_whose_concentration_depends_on_another_block_is_refused_by_name(rng):
    table = ex.make_table((ex.REAL,), 4, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    with pm.Model() as model:
        bj.CircuitMixture("first", circuit, table)
        bj.CircuitMixture("second", circuit, table, gamma=1.0 + model["first_normal_mu"][0] ** 2)
        with pytest.raises(ModelError, match="second_sum_weights depends on variables of block 'first'"):
            CircuitGibbs()


def test_all_factors_that_depend_on_the_block_are_named(small):
    model, _ = small
    with model:
        pm.Normal("first", model["x_normal_mu"][0], 1.0, observed=0.3)
        pm.Potential("second", model["x_sum_weights"][0])
        with pytest.raises(ModelError, match=r"first, second"):
            CircuitGibbs()


@pytest.mark.parametrize("harmless", HARMLESS.values(), ids=HARMLESS)
def test_a_factor_that_does_not_depend_on_the_block_is_accepted(harmless, small):
    model, _ = small
    with model:
        harmless(model)
        names = ["x_sum_weights", "x_normal_scale", "x_normal_variance", "x_normal_mu"]
        assert {rv.name for rv in CircuitGibbs([model[name] for name in names]).vars} == set(names)


def test_variables_of_no_block_are_refused_by_name():
    with pm.Model():
        stranger = pm.Normal("stranger")
        with pytest.raises(ModelError, match="stranger of no circuit block"):
            CircuitGibbs([stranger])


def test_a_block_whose_rows_do_has_replaced_is_refused(small):
    model, table = small
    done = pm.do(model, {"x": table.values.T})
    with pytest.raises(ModelError, match="x_normal_mu of no circuit block"):
        CircuitGibbs(model=done)


def test_competence_claims_the_variables_of_a_block_and_no_others(small):
    model, _ = small
    with model:
        stranger = pm.Normal("stranger")
    claimed = {rv.name for rv in model.free_RVs if CircuitGibbs.competence(rv, True) > 0}
    assert claimed == {"x_sum_weights", "x_normal_scale", "x_normal_variance", "x_normal_mu"}
    assert CircuitGibbs.competence(stranger, True) == 0


def test_table_with_columns_in_another_order_is_refused_by_column(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 20, rng)
    circuit = ex.independent(table)
    swapped = ex.make_table((ex.COUNT, ex.REAL), 20, rng)
    with pytest.raises(ModelError, match="does not fit column"):
        bj.build_model(circuit, swapped)


def test_second_block_of_the_same_name_is_refused(rng):
    table = ex.make_table((ex.REAL,), 20, rng)
    circuit = ex.independent(table)
    with pm.Model():
        bj.CircuitMixture("x", circuit, table)
        with pytest.raises(ModelError, match="'x'"):
            bj.CircuitMixture("x", circuit, table)
