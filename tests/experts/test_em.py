"""Expectation-maximisation of trees of experts: a slow twin, slopes at the optimum, likelihoods that only grow."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, LearnerError
from bayesjpt.experts.em import Search, completed, copied, first_optimum, make_penalty, optimise
from bayesjpt.experts.fit import make_model, make_prior
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.kernels.expert_em import em_pass, fill_posteriors, penalty_of
from bayesjpt.kernels.expert_tree import fill_log_density
from tests.experts import naive_em
from tests.experts.test_fit import BAD, regimes
from tests.experts.test_posterior import EXPERTS, frame

TWIN = 1e-8
KINDS = [*EXPERTS, "all"]
MANY_STEPS = 500
"""Newton steps that solve each regression, labels by turns."""


def problem(name: str, depth: int = 2, ridge: float = 0.5):
    targets = list(EXPERTS) if name == "all" else [name]
    experts = {target: EXPERTS[target] for target in targets}
    settings = {"given": ["x", "color"], "depth": depth, "experts": experts, "kinds": {"count": "integer"}}
    model, table = make_model(frame(), ExpertSettings(target=targets, **settings))
    prior = make_prior(model)
    return model, model.task(table), prior, make_penalty(model, prior, ridge)


def begun(model, task, prior, start: str = "cart"):
    return first_optimum(model, task, prior, start, np.random.default_rng(3))


def one_pass(model, task, penalty, state, opened, steps: int = MANY_STEPS):
    posterior = np.empty((model.n_node, task.x.shape[0]))
    state = copied(state)
    value = em_pass(task, state, opened, penalty, posterior, steps)
    return state, value


@pytest.mark.parametrize("name", KINDS)
def test_passes_are_those_of_the_definition(name):
    model, task, prior, penalty = problem(name)
    first = begun(model, task, prior)
    ours = theirs = first.state
    for _ in range(2):
        value = naive_em.penalised(task, ours, penalty)
        ours, found = one_pass(model, task, penalty, ours, first.opened)
        theirs = naive_em.em_pass(task, theirs, penalty)
        np.testing.assert_allclose(found, value, rtol=1e-11)
        np.testing.assert_allclose(ours.gate, theirs.gate, atol=TWIN, rtol=TWIN)
        np.testing.assert_allclose(ours.node[3:], theirs.node[3:], atol=TWIN, rtol=TWIN)
        np.testing.assert_allclose(ours.dispersion, theirs.dispersion, rtol=TWIN)


@pytest.mark.parametrize("error", ["gates of all rows", "shares given the parent", "variances of all rows"])
def test_planted_errors_are_found(error):
    model, task, prior, penalty = problem("real")
    first = begun(model, task, prior)
    ours, _ = one_pass(model, task, penalty, first.state, first.opened)
    theirs = naive_em.em_pass(task, first.state, penalty, error=error)
    far = [np.abs(a - b).max() for a, b in zip(ours[:3], theirs[:3], strict=True)]
    assert max(far) > 1e4 * TWIN


@pytest.mark.parametrize("name", KINDS)
def test_the_penalised_likelihood_has_no_slope_at_the_optimum(name):
    model, task, prior, penalty = problem(name, depth=1)
    found = optimise(model, task, prior, Search(ridge=0.5, passes=5000, gain=0.0), begun(model, task, prior))

    def value(part: str, index: tuple[int, ...], step: float) -> float:
        moved = copied(found.state)
        array = getattr(moved, part)
        array[index] = array[index] * np.exp(step) if part == "dispersion" else array[index] + step
        return naive_em.penalised(task, moved, penalty)

    parts = [("gate", index) for index in np.ndindex(found.state.gate.shape)]
    parts += [("node", index) for index in np.ndindex(found.state.node.shape) if index[0] >= model.n_gate]
    free = [c for c, kind in enumerate(model.experts) if kind in ("gaussian", "gamma")]
    parts += [("dispersion", (leaf, c)) for leaf in range(model.n_leaf) for c in free]
    for part, index in parts:
        slope = (value(part, index, 1e-4) - value(part, index, -1e-4)) / 2e-4
        assert abs(slope) < 2e-4, (part, index)


@pytest.mark.parametrize("start", ["cart", "random"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("name", KINDS)
def test_the_penalised_likelihood_never_falls(name, ridge, start):
    model, task, prior, _ = problem(name, depth=3)
    trace = optimise(model, task, prior, Search(ridge=ridge), begun(model, task, prior, start)).trace
    assert trace.size > 5
    assert (np.diff(trace) >= -1e-9 * (1.0 + np.abs(trace[1:]))).all()
    assert trace[-1] > trace[0]


def test_trees_with_closed_gates_are_trees_without_them():
    model, task, prior, penalty = problem("all")
    first = begun(model, task, prior)
    opened = np.array([True, False, True])
    full = completed(model, first.state, opened)
    posterior, density = np.empty((model.n_node, task.x.shape[0])), np.empty(task.x.shape[0])
    value = fill_posteriors(task, first.state, opened, posterior)
    fill_log_density(task, full, density)
    np.testing.assert_allclose(value, density.sum(), rtol=1e-12)
    np.testing.assert_allclose(posterior[[3, 5, 6]].sum(axis=0), 1.0, rtol=1e-12)
    assert (posterior[4] == 0.0).all()
    # nor has it a penalty of what is closed
    leaves = first.state.node[[3, 5, 6]]
    only = penalty._replace(n_row=0.0, log_shape_precision=0.0)
    expected = -0.25 * (first.state.gate[[0, 2]] ** 2).sum()
    expected -= 0.5 * np.repeat(penalty.expert_ridge, np.diff(model.at)) @ (leaves**2).sum(axis=(0, 2))
    np.testing.assert_allclose(penalty_of(task, first.state, opened, only), expected, rtol=1e-12)


def test_gates_that_begin_far_too_steep_come_back():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=60)})
    rows["y"] = rows["x"].abs() + 0.1 * rng.normal(size=60)
    rows.loc[3, "x"] = 1e9  # all others are one value beside it, and the first gate cuts between them
    found = bj.fit_experts(rows, target="y", depth=1, method="em", rng=1)
    assert np.abs(found.coefficients.gate).max() < 100.0
    assert found.settings["log_likelihood"] > -100.0


@pytest.mark.parametrize("method", ["em", "least_squares"])
@pytest.mark.parametrize("ridge", [None, 0.0])
@pytest.mark.parametrize("name", BAD)
def test_bad_tables_get_an_answer(name, ridge, method):
    rows = pd.DataFrame(BAD[name](40))
    kinds = {c: "real" for c in rows if rows[c].dtype == float}
    own = {"target": "y", "depth": 2, "kinds": kinds, "rng": 1, "method": method, "ridge": ridge}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        post = bj.fit_experts(rows, **own)
        assert np.isfinite(post.log_density(rows)).all()
        assert np.isfinite(post.predict(rows).to_numpy()).all()
    assert all(np.isfinite(array).all() for array in post.coefficients)
    assert ridge == 0.0 or not any("without a ridge" in str(one.message) for one in told)


def test_what_diverges_without_a_ridge_is_named():
    rows = pd.DataFrame({"x": np.arange(40.0), "z": 2.0 * np.arange(40.0), "y": np.repeat(["a", "b"], 20)})
    words = r"1 expert that is sure of its rows, collinear covariates\. Give a ridge of 0\.1"
    with pytest.warns(BayesjptWarning, match=words):
        bj.fit_experts(rows, target="y", depth=0, method="em", ridge=0.0, kinds={"x": "real", "z": "real"}, rng=1)


def test_indicators_of_three_labels_are_not_called_collinear():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"k": rng.choice(["a", "b", "c"], 80), "x": rng.normal(size=80), "y": rng.normal(size=80)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bj.fit_experts(rows, target="y", depth=0, method="em", ridge=0.0, rng=1)
    rows["again"] = (rows["k"] == "a").map({True: "yes", False: "no"})
    with pytest.warns(BayesjptWarning, match="collinear covariates"):
        bj.fit_experts(rows, target="y", depth=0, method="em", ridge=0.0, rng=1)


def test_all_queries_work_on_the_one_draw(tmp_path):
    rows = regimes(300, 1)
    post = bj.fit_experts(rows, target="y", depth=1, method="em", rng=1)
    assert (post.n_chain, post.n_draw) == (1, 1)
    assert post.settings["method"] == "em"
    assert abs(float(post.expectation({"x": 2.0})[0, 0, 0, 0]) - 2.0) < 0.1
    assert post.quantile([0.5], {"x": 2.0}).sizes["quantile"] == 1
    assert len(post.sample(3, rows.head(2), rng=1)) == 6
    assert "if x" in post.explain()
    post.save(tmp_path / "fit.nc")
    again = bj.load_experts(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.log_density(rows), post.log_density(rows))
    assert again.settings["passes"] == post.settings["passes"]


def test_chains_are_searches_of_their_own_for_any_number_of_cores():
    own = {"target": "y", "depth": 2, "method": "em", "chains": 3, "passes": 5, "rng": 7}
    one, other = (bj.fit_experts(regimes(200, 1), cores=cores, **own) for cores in (1, 2))
    np.testing.assert_array_equal(one.coefficients.node, other.coefficients.node)
    assert np.abs(np.diff(one.coefficients.node, axis=0)).max() > 0.0
    assert one.settings["passes"] == 5


def test_weights_without_covariates_are_those_of_a_mixture():
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.normal(-2.0, 0.3, 150), rng.normal(2.0, 0.3, 50)])
    rows = pd.DataFrame({"x": rng.normal(size=200), "y": y})
    post = bj.fit_experts(rows, target="y", gates=[], depth=1, method="em", rng=1)
    assert abs(float(post.probability("y > 0", {"x": 0.0})[0, 0, 0]) - 0.25) < 0.02


def test_least_squares_keeps_its_best_pass():
    model, task, prior, penalty = problem("all", ridge=0.1)
    found = optimise(model, task, prior, Search("least_squares", 0.1), begun(model, task, prior))
    assert found.trace.max() > found.trace[0]
    np.testing.assert_allclose(naive_em.penalised(task, found.state, penalty), found.trace.max(), rtol=1e-11)


def test_gibbs_goes_on_from_an_optimum():
    rows = regimes(300, 1)
    own = {"target": "y", "depth": 1, "rng": 1}
    found = bj.fit_experts(rows, method="em", **own)
    post = bj.fit_experts(rows, start=found, draws=1, tune=0, chains=2, **own)
    far = float(post.log_density(rows).mean()) - float(found.log_density(rows).mean())
    assert abs(far) < 0.05
    again = bj.fit_experts(rows, start=post, method="em", **own)
    assert again.settings["start"] == "fit"
    np.testing.assert_allclose(again.settings["log_likelihood"], found.settings["log_likelihood"], rtol=1e-3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "newton"}, "method='newton'; expected one of gibbs, em"),
        ({"method": "em", "draws": 5}, "draws=5 with method='em'"),
        ({"ridge": 1.0}, "ridge=1.0 with method='gibbs'"),
        ({"method": "em", "ridge": -1.0}, "ridge=-1.0"),
        ({"method": "em", "ridge": np.nan}, "ridge=nan"),
        ({"method": "em", "passes": 0}, "passes=0"),
        ({"method": ["em"]}, "method=.'em'."),
        ({"start": 5}, "start=5"),
        ({"grow": True}, "grow=True with method='gibbs'; expected grow with em, least_squares, laplace alone"),
        ({"method": "em", "grow": True, "start": "random"}, "grow=True with start='random'"),
        ({"transitions": "decision"}, "transitions='decision' without time"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(LearnerError, match=words):
        bj.fit_experts(regimes(50, 1), target="y", **changes)


def test_a_start_of_another_model_is_refused():
    rows = regimes(60, 1)
    found = bj.fit_experts(rows, target="y", depth=1, method="em", rng=1)
    with pytest.raises(LearnerError, match="grow=True with a fit as start"):
        bj.fit_experts(rows, target="y", depth=1, method="em", start=found, grow=True)
    with pytest.raises(LearnerError, match=r"start=OnlineExperts.*, or a fit of experts"):
        bj.fit_experts(rows, target="y", depth=1, start=bj.OnlineExperts(rows, target="y", depth=1, rng=1))
    for changes, words in (({"depth": 2}, "other depth"), ({"table": rows.head(50)}, "other covariates")):
        with pytest.raises(LearnerError, match=words):
            bj.fit_experts(**{"table": rows, "target": "y", "depth": 1, "start": found} | changes)
