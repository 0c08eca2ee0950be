"""NUTS and Gibbs sweeps on one `ExpertTree`: the same answers, each within its Monte Carlo error."""

from __future__ import annotations

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import scipy.special
import scipy.stats

import bayesjpt as bj

NEW = pd.DataFrame({"x": [-2.0, -1.0, 0.4, 0.7, 1.5, 2.5]})
AT = np.array([-1.0, 0.5, 1.0, 0.8, 1.5, 2.0])
ERRORS = 3.0
"""Monte Carlo errors that one answer may differ by; of several the largest may be as improbable as that."""


def regimes() -> tuple[pd.DataFrame, np.ndarray]:
    """Return 200 rows whose regimes one cut nearly separates: the posterior of the gate is wide, not normal."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, 200)
    y = np.where(x > 0.5, 1.0 + 0.5 * x, -1.0 - 1.5 * x) + rng.normal(0.0, np.where(x > 0.5, 0.3, 0.8))
    return pd.DataFrame({"x": x}), y


def answers(posterior, grid: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return expectations, log densities at `AT` and log variances within experts, (chain, draw, 18): label-free."""
    right = scipy.special.expit(posterior["y_gate"].values[:, :, 0] @ grid.T)
    weight = np.stack([1.0 - right, right], axis=2)
    mean = y.mean() + y.std() * posterior["y_coefficient"].values[:, :, 1:] @ grid.T
    scale = y.std() * np.sqrt(posterior["y_variance"].values)[..., None]
    density = (weight * scipy.stats.norm.pdf(AT, mean, scale)).sum(axis=2)
    each = (weight * mean).sum(axis=2), np.log(density), np.log((weight * scale**2).sum(axis=2))
    return np.concatenate(each, axis=-1)


def told(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean of each answer, its Monte Carlo error, and its effective number of draws."""
    n = np.array([float(az.ess(values[..., k])) for k in range(values.shape[-1])])
    return values.mean(axis=(0, 1)), values.std(axis=(0, 1)) / np.sqrt(n), n


def are_the_same(one: np.ndarray, other: np.ndarray, error: np.ndarray) -> bool:
    """Return whether means agree within their errors, float64 (n_answer,) each, with as few false alarms as for one."""
    largest = scipy.stats.norm.isf(scipy.stats.norm.sf(ERRORS) / one.size)
    return float(np.abs((one - other) / error).max()) < largest


def sampled(model: pm.Model) -> tuple:
    """Return draws by sweeps and by NUTS."""
    own = {"random_seed": 1, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    with pytensor.config.change_flags(mode="NUMBA"), model:  # NUTS takes a million gradients
        swept = pm.sample(draws=4000, tune=300, chains=4, **own)
        # one side of the mirror, so that no chain begins between both
        begin = {"y_gate": np.array([[0.0, 4.0]])}
        step = pm.NUTS(target_accept=0.9)
        nuts = pm.sample(draws=1000, tune=400, chains=2, step=step, initvals=begin, **own)
    return swept, nuts


@pytest.mark.slow
def test_nuts_and_sweeps_give_the_same_answers():
    frame, y = regimes()
    with pm.Model() as model:
        tree = bj.ExpertTree("y", frame, y, depth=1)
    swept, nuts = sampled(model)
    assert {"y_gate", "y_step"} <= {rv.name for rv in model.free_RVs}
    grid = np.column_stack([np.ones(len(NEW)), bj.ExpertTree.matrix(tree, NEW)])
    (one, one_error, one_n), (other, other_error, other_n) = (
        told(answers(idata.posterior, grid, y)) for idata in (swept, nuts)
    )
    assert are_the_same(one, other, np.hypot(one_error, other_error))
    # errors are worth something, and the sweeps travel where the gate is nearly separated (x = 0.4, 0.7)
    assert other_n.min() > 100
    assert one_n.min() > 400


@pytest.mark.slow
def test_they_do_for_two_responses_that_share_a_tree():
    frame, y = regimes()
    rng = np.random.default_rng(1)
    sick = np.where(rng.random(200) < np.where(frame["x"] > 0.5, 0.85, 0.25), "yes", "no")
    with pm.Model() as model:
        bj.ExpertTree("y", frame, pd.DataFrame({"height": y, "sick": sick}), depth=1)
    both = []
    new = NEW.assign(height=AT, sick=["yes", "no"] * 3)
    for idata in sampled(model):
        post = bj.ExpertPosterior.from_idata(idata, model)
        each = (
            post.log_density(new),
            post.expectation(NEW)[..., 0, :],
            post.probability("sick = 'yes'", NEW),
            post.probability("height > 1 and sick = 'yes'", NEW),
        )
        both.append(told(np.concatenate([np.asarray(answer) for answer in each], axis=-1)))
    (one, one_error, one_n), (other, other_error, other_n) = both
    assert are_the_same(one, other, np.hypot(one_error, other_error))
    assert other_n.min() > 100
    assert one_n.min() > 400


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["poisson", "gamma"])
def test_they_do_where_means_are_exponentials(kind):
    frame, _ = regimes()
    rng = np.random.default_rng(2)
    mean = np.exp(np.where(frame["x"] > 0.5, 2.0 + 0.3 * frame["x"], 0.5 - 0.3 * frame["x"]))
    y = rng.poisson(mean) if kind == "poisson" else rng.gamma(4.0, mean / 4.0)
    with pm.Model() as model:
        bj.ExpertTree("y", frame, y, depth=1, experts=kind)
    both = []
    new = NEW.assign(y=[3, 2, 5, 9, 12, 15])
    for idata in sampled(model):
        post = bj.ExpertPosterior.from_idata(idata, model)
        precision = np.log(idata.posterior["y_precision"].values)
        each = (
            np.asarray(post.log_density(new)),
            np.log(np.asarray(post.expectation(NEW))).reshape(*precision.shape[:2], -1),
        )
        both.append(told(np.concatenate([*each, precision], axis=-1)))
    (one, one_error, one_n), (other, other_error, other_n) = both
    assert are_the_same(one, other, np.hypot(one_error, other_error))
    assert other_n.min() > 100
    assert one_n.min() > 400
