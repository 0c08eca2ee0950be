"""Every query of fits of hidden trees and of mixtures of trees: answers are those of all states."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.errors import QueryError
from bayesjpt.learners import LEARNERS
from tests.model.conftest import QUICK
from tests.queries.test_cutset import EXACT, meets, share
from tests.structure.test_cutset import binary

N_COLUMN = 6
N_STRUCTURE = 2
OPTIONS = {"hclt": {"n_states": 3}, "tree_mixture": {"n_components": 3}}


@pytest.fixture(scope="module", params=OPTIONS)
def post(request) -> bj.Posterior:
    frame = binary(np.random.default_rng(5), 400, N_COLUMN)
    table = bj.as_table(frame.mask(np.random.default_rng(6).random(frame.shape) < 0.05), other=False)
    settings: dict[str, Any] = {"draws": 3, "tune": 5, "seed": 1, "progress": False} | OPTIONS[request.param]
    return bj.fit(table, learner=request.param, n_structures=N_STRUCTURE, **settings)


@pytest.fixture(scope="module")
def states(post) -> pd.DataFrame:
    names = post.schema.names
    return pd.DataFrame(list(itertools.product("01", repeat=len(names))), columns=list(names))


@pytest.fixture(scope="module")
def joint(post, states) -> np.ndarray:
    """Return the probability of each state under each draw, float64 (n_draw, n_state)."""
    density = post.log_density(states).transpose("chain", "draw", "obs_id").values
    return np.exp(density.reshape(-1, len(states)))


def test_probabilities_of_all_states_add_up_to_one(joint):
    assert joint.sum(axis=1) == pytest.approx(np.ones(len(joint)), abs=1e-12)


def test_components_and_states_of_the_first_column_are_sub_populations(post, states):
    for structure in post.by_structure():
        found = structure.membership(states)
        assert found.sizes["sub_population"] == 3
        np.testing.assert_allclose(found.sum("sub_population"), 1.0, rtol=EXACT)


def test_every_query_answers_from_all_states(post, states, joint, tmp_path):
    event, given = meets(states, "b = '1' and d = '0'"), meets(states, "a = '1' and c = '0'")
    expected = share(joint, event, given)
    asked = "b = '1' and d = '0'", "a = '1' and c = '0'"
    assert post.probability(*asked).values.ravel() == pytest.approx(expected, rel=EXACT)
    assert post.condition(asked[1]).probability(asked[0]).values.ravel() == pytest.approx(expected, rel=EXACT)

    hidden = states.assign(b=None, e=None)
    summed = [
        joint[:, (states[["a", "c", "d", "f"]] == row).all(axis=1)].sum(axis=1)
        for row in states[["a", "c", "d", "f"]].to_numpy()
    ]
    found = post.log_density(hidden).transpose("chain", "draw", "obs_id").values.reshape(joint.shape)
    np.testing.assert_allclose(np.exp(found), np.array(summed).T, rtol=EXACT)

    found = post.mode()
    rows = found["value"].values.reshape(len(joint), N_COLUMN).astype(str)
    at = [int(np.flatnonzero((states.to_numpy() == row).all(axis=1))[0]) for row in rows]
    log_mass = found["log_mass"].values.ravel()
    assert log_mass == pytest.approx(np.log(joint[np.arange(len(joint)), at]), rel=EXACT)
    assert log_mass == pytest.approx(np.log(joint.max(axis=1)), rel=EXACT)

    told = post.explain("b = '1'", "c = '0'")
    own = joint[told.draw]
    total = sum(part.weight_given * part.probability for part in told.parts)
    want = share(own[None], meets(states, "b = '1'"), meets(states, "c = '0'"))[0]
    assert total == pytest.approx(want, rel=EXACT)
    assert sum(part.weight for part in told.parts) == pytest.approx(1.0, rel=EXACT)

    found = post.dependence().sel(feature="a", feature_other="c").values.ravel()
    one, other = (states[name].to_numpy() == "1" for name in "ac")
    expected = np.zeros(len(joint))
    for a, b in itertools.product((True, False), repeat=2):
        pair = share(joint, (one == a) & (other == b))
        expected += pair * np.log(pair / share(joint, one == a) / share(joint, other == b))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)

    n = 20_000
    drawn = post.sample(n, rng=np.random.default_rng(2)).to_frame().astype(str)
    counts = drawn.groupby(list(drawn.columns)).size()
    found = counts.reindex(pd.MultiIndex.from_frame(states), fill_value=0).to_numpy() / n
    want = joint.mean(axis=0)
    assert (np.abs(found - want) < 5.0 * np.sqrt(want * (1.0 - want) / n) + 1.0 / n).all()

    post.save(tmp_path / "fit.nc")
    again = bj.load(tmp_path / "fit.nc").log_density(states).transpose("chain", "draw", "obs_id").values
    assert np.array_equal(np.exp(again.reshape(joint.shape)), joint)

    with pytest.raises(QueryError, match="rows are not told apart by splits"):
        post.tree()


@pytest.mark.parametrize("learner", OPTIONS)
def test_pm_sample_draws_what_fits(learner):
    table = bj.as_table(binary(np.random.default_rng(5), 200, 4), other=False)
    circuit = getattr(bj, f"learn_{learner}")(table, np.random.default_rng(1), **OPTIONS[learner])
    with bj.build_model(circuit, table):
        settings: dict[str, Any] = {"draws": 4, "tune": 2, "chains": 1, "cores": 1, "random_seed": 1} | QUICK
        idata = pm.sample(**settings)
    log_likelihood = idata["sample_stats"]["log_likelihood"].to_numpy()
    assert np.isfinite(log_likelihood).all()
    start = bj.Posterior.from_circuit(circuit, table.schema).log_density(table).values.sum()
    assert log_likelihood.mean() > start - 30.0


def test_imaginary_rows_of_a_cutset_network_may_be_a_random_variable():
    table = bj.as_table(binary(np.random.default_rng(5), 200, 4), other=False)
    circuit = bj.learn_cutset(table, np.random.default_rng(1), min_rows=100, min_columns=1)
    with pm.Model():
        ess = pm.LogNormal("ess", 0.0, 1.0)
        bj.CircuitMixture("x", circuit, table, ess=ess)
        settings: dict[str, Any] = {"draws": 6, "tune": 4, "chains": 1, "cores": 1, "random_seed": 1} | QUICK
        idata = pm.sample(**settings)
    drawn = idata["posterior"]["ess"].to_numpy()
    assert (drawn > 0.0).all()
    assert np.ptp(drawn) > 0.0
    assert np.isfinite(bj.Posterior.from_idata(idata).log_density(table)).all()


def test_fit_knows_the_learners_by_name():
    assert set(OPTIONS) < set(LEARNERS)
