"""Gaussian approximations at an optimum: the Hessian is that of finite differences, draws are those of closed forms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.special

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, LearnerError
from bayesjpt.experts.em import Optimum, Search, optimise
from bayesjpt.experts.laplace import Layout, information, laplace_draws, trigamma
from tests.experts import naive_em
from tests.experts.test_em import KINDS, begun, problem
from tests.experts.test_fit import BAD, regimes

STEP = 2e-3
"""Of finite differences of fourth order."""


def finite_differences(model, task, penalty, optimum) -> np.ndarray:
    layout = Layout(model, optimum.opened)

    def value(step: np.ndarray) -> float:
        moved = layout.moved(model, optimum.state, step, np.zeros(len(model.targets)))
        return naive_em.penalised(task, moved, penalty)

    out = np.empty((layout.size, layout.size))
    for i in range(layout.size):
        for j in range(i + 1):
            total = 0.0
            for size, weight in ((1.0, 4.0 / 3.0), (2.0, -1.0 / 12.0)):
                a, b = STEP * size * np.eye(layout.size)[[i, j]]
                total += weight * (value(a + b) - value(a - b) - value(b - a) + value(-a - b))
            out[i, j] = out[j, i] = -total / (4.0 * STEP * STEP)
    return out


@pytest.mark.parametrize("name", [name for name in KINDS if name != "all"])
def test_the_information_is_minus_the_hessian(name):
    model, task, prior, penalty = problem(name, depth=1)
    few = task._replace(x=task.x[:12], gate_x=task.gate_x[:12], y=np.ascontiguousarray(task.y[:, :12]))
    # three passes from the start: no optimum, where all terms count
    optimum = optimise(model, few, prior, Search(ridge=0.5, passes=3), begun(model, few, prior))
    found = information(model, few, penalty, optimum)
    expected = finite_differences(model, few, penalty, optimum)
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
    wrong = information(model, few, penalty._replace(ridge=0.501), optimum)
    assert np.abs(wrong - expected).max() > 1e-4


def test_the_information_of_a_deeper_tree_is_minus_the_hessian():
    model, task, prior, penalty = problem("two", depth=2)
    few = task._replace(x=task.x[:8, :2], gate_x=task.gate_x[:8, :2], y=np.ascontiguousarray(task.y[:, :8]))
    first = begun(model, task, prior)
    state = first.state._replace(
        gate=np.ascontiguousarray(first.state.gate[:, :2]), node=np.ascontiguousarray(first.state.node[:, :, :2])
    )

    class Narrow:
        n_gate, n_node, n_leaf, kind, at, targets = 3, 7, 4, model.kind, model.at, model.targets

        class covariates:
            names = ("intercept", "x")

        gate_covariates = covariates

    optimum = Optimum(state, first.opened, np.zeros(0))
    found = information(Narrow, few, penalty, optimum)
    np.testing.assert_allclose(found, finite_differences(Narrow, few, penalty, optimum), atol=1e-5)


def test_draws_of_a_single_regression_spread_as_those_of_least_squares():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"x": rng.normal(size=200)})
    rows["y"] = 3.0 + 2.0 * rows["x"] + rng.normal(0.0, 0.5, 200)
    post = bj.fit_experts(rows, target="y", depth=0, method="laplace", draws=2000, chains=1, rng=1)
    found = post.expectation({"x": [float(rows["x"].mean())]})
    np.testing.assert_allclose(float(found.std()), 0.5 / np.sqrt(200), rtol=0.1)
    np.testing.assert_allclose(float(found.mean()), float(rows["y"].mean()), atol=0.01)


def test_dispersions_spread_as_rows_tell_however_large_the_ridge_is():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"x": rng.normal(size=30), "y": rng.normal(size=30)})
    post = bj.fit_experts(rows, target="y", depth=0, method="laplace", ridge=400.0, draws=4000, chains=1, rng=1)
    # half of the rows, and of the imaginary one, is the information of a logarithm of a variance
    np.testing.assert_allclose(np.log(post.coefficients.dispersion).std(), np.sqrt(2.0 / 31.0), rtol=0.06)


def test_draws_are_near_those_of_gibbs():
    rows = regimes(500, 1)
    own = {"target": "y", "depth": 1, "rng": 1, "draws": 200, "chains": 1}
    new = {"x": [-2.0, -1.0, 1.5, 2.5]}
    laplace = bj.fit_experts(rows, method="laplace", **own).expectation(new).values[0, :, 0]
    gibbs = bj.fit_experts(rows, tune=200, **own).expectation(new).values[0, :, 0]
    np.testing.assert_allclose(laplace.mean(axis=0), gibbs.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(laplace.std(axis=0), gibbs.std(axis=0), rtol=0.4)


def test_what_is_no_optimum_is_told():
    model, task, prior, penalty = problem("real", depth=2)
    first = begun(model, task, prior)
    far = first.state._replace(dispersion=np.full_like(first.state.dispersion, 1e-3))
    with pytest.warns(BayesjptWarning, match="has not found an optimum"):
        drawn = laplace_draws(model, task, penalty, first._replace(state=far), 2, np.random.default_rng(1))
    assert all(np.isfinite(array).all() for array in drawn)


@pytest.mark.filterwarnings("ignore::bayesjpt.BayesjptWarning")
@pytest.mark.parametrize("name", BAD)
def test_bad_tables_get_an_answer(name):
    rows = pd.DataFrame(BAD[name](40))
    kinds = {c: "real" for c in rows if rows[c].dtype == float}
    post = bj.fit_experts(rows, target="y", depth=2, kinds=kinds, method="laplace", draws=5, chains=1, rng=1)
    assert np.isfinite(post.log_density(rows)).all()
    assert np.isfinite(post.predict(rows).to_numpy()).all()


def test_trees_that_grew_have_draws_of_their_own_leaves():
    post = bj.fit_experts(regimes(300, 1), target="y", depth=2, method="laplace", grow=True, draws=3, chains=1, rng=1)
    assert post.settings["leaves"] == 2
    assert post.explain().count("give or take") == 2


def test_trigamma_is_that_of_scipy():
    for x in (0.05, 0.7, 3.0, 9.9, 50.0, 1e6):
        np.testing.assert_allclose(trigamma(x), scipy.special.polygamma(1, x), rtol=1e-11)


def test_a_prior_is_needed():
    for method in ("laplace", "mean_field"):
        with pytest.raises(LearnerError, match="above 0: it is the prior's precision"):
            bj.fit_experts(regimes(50, 1), target="y", method=method, ridge=0.0)
