"""Mean-field posteriors: bounds that only grow and stay below the evidence, and draws near those of Gibbs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats

import bayesjpt as bj
from bayesjpt.errors import LearnerError
from bayesjpt.experts.em import Search
from bayesjpt.experts.fit import make_model, make_prior
from bayesjpt.experts.mean_field import ascend
from bayesjpt.experts.settings import ExpertSettings
from tests.experts.test_em import begun, problem
from tests.experts.test_fit import BAD, regimes
from tests.experts.test_posterior import frame


@pytest.mark.parametrize("name", ["real", "two"])
def test_the_bound_never_falls(name):
    model, task, prior, penalty = problem(name, depth=2)
    _, trace = ascend(model, task, penalty, Search(ridge=0.5, passes=60, gain=0.0), begun(model, task, prior))
    assert len(trace) > 20
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()


@pytest.mark.parametrize("name", ["real", "two"])
def test_the_bound_is_below_the_evidence_and_near_it(name):
    rows = frame().head(15)
    model, table = make_model(rows, ExpertSettings(target=name, given=[], depth=0))
    task, prior = model.task(table), make_prior(model)
    _, _, _, penalty = problem(name, depth=0)
    field, trace = ascend(model, task, penalty, Search(ridge=0.5, passes=200, gain=0.0), begun(model, task, prior))
    y, offset, ridge = task.y[0], task.offset[0], penalty.ridge
    b = np.linspace(-8.0, 8.0, 4001)
    prior_b = scipy.stats.norm.pdf(b, 0.0, ridge**-0.5)
    if name == "two":
        log_likelihood = (np.outer(y, b) - np.logaddexp(0.0, b)).sum(axis=0)
        evidence = np.log(scipy.integrate.simpson(prior_b * np.exp(log_likelihood), x=b))
    else:
        log_tau = np.linspace(-8.0, 8.0, 1001)
        tau = np.exp(log_tau)
        squares = ((y[:, None] - offset - b) ** 2).sum(axis=0)
        log_likelihood = 0.5 * y.size * np.log(tau / (2 * np.pi))[:, None] - 0.5 * tau[:, None] * squares
        a, rate = 0.5 * penalty.n_row, 0.5 * penalty.n_row * penalty.variance
        prior_tau = scipy.stats.gamma.pdf(tau, a, scale=1.0 / rate) * tau
        inner = scipy.integrate.simpson(prior_b * np.exp(log_likelihood), x=b, axis=1)
        evidence = np.log(scipy.integrate.simpson(prior_tau * inner, x=log_tau))
    assert trace[-1] < evidence
    assert trace[-1] > evidence - 0.1
    # a divergence that is left out would put the bound above the evidence
    assert trace[-1] + field.experts[0][0].divergence(ridge) > evidence


def test_draws_are_near_those_of_gibbs():
    rows = regimes(500, 1)
    own = {"target": "y", "depth": 1, "rng": 1, "draws": 200, "chains": 1}
    new = {"x": [-2.0, -1.0, 1.5, 2.5]}
    ours = bj.fit_experts(rows, method="mean_field", **own).expectation(new).values[0, :, 0]
    gibbs = bj.fit_experts(rows, tune=200, **own).expectation(new).values[0, :, 0]
    np.testing.assert_allclose(ours.mean(axis=0), gibbs.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(ours.std(axis=0), gibbs.std(axis=0), rtol=0.5)


@pytest.mark.parametrize("name", [name for name in BAD if name != "a label seen once"])
def test_bad_tables_get_an_answer(name):
    rows = pd.DataFrame(BAD[name](40))
    kinds = {c: "real" for c in rows if rows[c].dtype == float}
    post = bj.fit_experts(rows, target="y", depth=2, kinds=kinds, method="mean_field", draws=5, chains=2, rng=1)
    assert post.n_draw == 5
    assert np.isfinite(post.log_density(rows)).all()


@pytest.mark.parametrize("target", ["y", "label"])
def test_collinear_covariates_get_an_answer_whatever_the_ridge_is(target):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=300)})
    rows = rows.assign(near=rows["x"] + 1e-9 * rng.normal(size=300), twice=2.0 * rows["x"], y=rows["x"].abs() - 1.0)
    rows["label"] = np.where(rows["x"] > 0.0, "a", "b")
    own = {"target": target, "given": ["x", "near", "twice"], "depth": 2, "method": "mean_field", "chains": 1}
    for ridge in (1e-8, 1e-14, 1e-100):
        post = bj.fit_experts(rows, ridge=ridge, rng=1, **own)
        assert np.isfinite(post.log_density(rows)).all()


def test_experts_without_a_bound_are_refused():
    with pytest.raises(LearnerError, match="mean_field' with multinomial experts of 'three'"):
        bj.fit_experts(frame(), target="three", method="mean_field")
