"""Gates of several ways: softmax, against the definition; EM against its slow twin. Geweke's test is in its file."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import FitFileError, LearnerError
from bayesjpt.experts.em import Search, optimise
from bayesjpt.kernels.expert_em import fill_posteriors
from bayesjpt.kernels.expert_start import begin_ways
from tests.experts import naive, naive_em
from tests.experts.test_em import TWIN, begun, one_pass, problem
from tests.experts.test_fit import BAD, SHORT

WAYS = 3


def bands(n: int = 240) -> pd.DataFrame:
    """Return three regimes along one covariate, which a single gate of three ways divides."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-3.0, 3.0, n)
    y = np.where(x > 1.0, 4.0 - x, np.where(x > -1.0, 2.0 * x, -4.0)) + rng.normal(0.0, 0.2, n)
    return pd.DataFrame({"x": x, "z": rng.normal(size=n), "y": y})


def three_ways(name: str, depth: int = 2, ridge: float = 0.5):
    model, task, prior, penalty = problem(name, depth, ridge)
    return replace(model, branches=WAYS), task, prior, penalty


@pytest.fixture(scope="module")
def post() -> bj.ExpertPosterior:
    return bj.fit_experts(bands(), target="y", depth=2, branches=WAYS, draws=5, tune=60, chains=2, rng=1)


def test_log_density_is_that_of_all_paths(post):
    table = post.read(bands(20))
    for draw in ((0, 0), (1, 4)):
        expected = naive.log_density(post, table, draw)
        np.testing.assert_allclose(post.log_density(table).values[draw], expected, rtol=1e-10)
    assert post.coefficients.gate.shape[2:] == (8, 3)
    assert post.coefficients.node.shape[2] == 13


def test_a_gate_of_three_ways_finds_three_regimes():
    rows, new = bands(), {"x": [-2.0, 0.0, 2.0], "z": [0.0, 0.0, 0.0]}
    for own in ({"draws": 60, "tune": 100, "chains": 2}, {"method": "em"}):
        fit = bj.fit_experts(rows, target="y", depth=1, branches=WAYS, rng=1, **own)
        found = fit.expectation(new).mean(("chain", "draw")).values[0]
        np.testing.assert_allclose(found, [-4.0, 0.0, 2.0], atol=0.15)


@pytest.mark.parametrize(("name", "depth"), [("real", 2), ("all", 1)])
def test_passes_are_those_of_the_definition(name, depth):
    model, task, prior, penalty = three_ways(name, depth)
    first = begun(model, task, prior)
    posterior = np.empty((model.n_node, task.x.shape[0]))
    fill_posteriors(task, first.state, first.opened, posterior)
    log_joint = naive_em.joint(task, first.state)
    shares = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1)[:, None])
    np.testing.assert_allclose(posterior[model.n_gate :].T, shares, atol=1e-12)
    ours, value = one_pass(model, task, penalty, first.state, first.opened, 5000)
    theirs = naive_em.em_pass(task, first.state, penalty)
    np.testing.assert_allclose(value, naive_em.penalised(task, first.state, penalty), rtol=1e-11)
    np.testing.assert_allclose(ours.gate, theirs.gate, atol=TWIN, rtol=TWIN)
    np.testing.assert_allclose(ours.node[model.n_gate :], theirs.node[model.n_gate :], atol=TWIN, rtol=TWIN)
    wrong = naive_em.em_pass(task, first.state, penalty, error="gates of all rows")
    assert depth == 1 or np.abs(ours.gate - wrong.gate).max() > 1e4 * TWIN


@pytest.mark.parametrize("start", ["cart", "random"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_the_penalised_likelihood_never_falls(ridge, start):
    model, task, prior, _ = three_ways("all")
    trace = optimise(model, task, prior, Search(ridge=ridge), begun(model, task, prior, start)).trace
    assert trace.size > 5
    assert (np.diff(trace) >= -1e-9 * (1.0 + np.abs(trace[1:]))).all()


def test_closed_gates_send_all_rows_to_the_first_way():
    model, task, prior, _ = three_ways("real")
    first = begun(model, task, prior)
    opened = np.array([True, False, True, False])
    posterior = np.empty((model.n_node, task.x.shape[0]))
    fill_posteriors(task, first.state, opened, posterior)
    assert (posterior[[5, 6, 11, 12]] == 0.0).all()
    np.testing.assert_allclose(posterior[[4, 7, 8, 9, 10]].sum(axis=0), 1.0, rtol=1e-12)


def test_starts_give_each_way_rows_of_its_own():
    rng = np.random.default_rng(1)
    _, task, _, _ = three_ways("real", 1)
    x = np.sort(rng.uniform(-2.0, 2.0, 300))
    y = np.where(x > 0.8, 3.0, np.where(x > -0.8, 0.0, -3.0)) + 0.1 * rng.normal(size=300)
    wide = np.column_stack([np.ones(300), x])
    leaf = begin_ways(task._replace(x=wide, gate_x=wide, y=y[None]), 1, WAYS, rng)
    assert set(leaf) == {0, 1, 2}
    assert np.mean([len(set(leaf[part])) for part in (x > 1.1, x < -1.1, abs(x) < 0.5)]) == 1.0


@pytest.mark.parametrize("own", [SHORT, {"method": "em", "rng": 1}, {"method": "em", "ridge": 0.0, "rng": 1}])
@pytest.mark.parametrize("name", BAD)
def test_bad_tables_get_an_answer(name, own):
    rows = pd.DataFrame(BAD[name](40))
    kinds = {c: "real" for c in rows if rows[c].dtype == float}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = bj.fit_experts(rows, target="y", depth=2, branches=WAYS, kinds=kinds, **own)
        assert np.isfinite(fit.log_density(rows)).all()
        assert np.isfinite(fit.predict(rows).to_numpy()).all()


def test_words_pictures_and_files_know_the_ways(post, tmp_path):
    assert post.explain().count("way 2 where") == 4
    view = post.tree(bands())
    assert len(view.data.leaves()) == 9
    assert len(view.data.nodes[0].children) == WAYS
    assert len(list(ET.fromstring(view.to_svg()).iter("{http://www.w3.org/2000/svg}circle"))) == 13
    post.save(tmp_path / "fit.nc")
    again = bj.load_experts(tmp_path / "fit.nc")
    assert again.model.branches == WAYS
    np.testing.assert_array_equal(again.log_density(bands(9)), post.log_density(bands(9)))
    replace(post, model=replace(post.model, branches=9)).save(tmp_path / "other.nc")
    with pytest.raises(FitFileError, match="9 ways"):
        bj.load_experts(tmp_path / "other.nc")


def test_weights_without_covariates_are_told_as_probabilities():
    fit = bj.fit_experts(bands(60), target="y", gates=[], depth=1, branches=4, **SHORT)
    ways = [line for line in fit.explain().splitlines() if line.startswith("with probability 0.")]
    assert len(ways) == 4
    assert "always" not in fit.explain()
    two = bj.fit_experts(bands(60), target="y", gates=[], depth=1, **SHORT).explain().splitlines()
    assert two[2].startswith("with probability 0.")
    assert two[4] == "else:"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"branches": 1}, "branches=1; expected a whole number from 2"),
        ({"branches": 5, "depth": 3}, "branches=5 with depth=3; expected branches.depth, the leaves, at most 64"),
        ({"branches": 3, "method": "laplace"}, "branches=3 with method='laplace'"),
        ({"branches": 3, "method": "em", "grow": True}, "branches=3 with grow=True"),
        ({"branches": 3, "time": "x"}, "branches=3 with time='x'"),
    ],
)
def test_what_ways_cannot_be_is_refused(changes, words):
    with pytest.raises(LearnerError, match=words):
        bj.fit_experts(bands(30), target="y", **changes)
