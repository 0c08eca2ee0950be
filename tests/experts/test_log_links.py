"""Poisson and gamma experts: means exist under the prior, and those of predictions lie where the rows do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.defaults_experts import PRECISION_RATE
from bayesjpt.experts.em import expert_ridges, make_penalty
from bayesjpt.experts.fit import make_model, make_prior
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.numerics.draw import draw_gamma, draw_gamma_above
from tests.experts.geweke import prior_draw

LOG_LINKED = ["poisson", "gamma"]
N_PRIOR = 20_000
LARGEST_SPREAD = 0.5
"""Of the logarithm of a mean of `N_PRIOR` draws between seeds."""


def counts(n_row: int, level: float, slope: float, seed: int) -> pd.DataFrame:
    """Return a table of one Poisson regression."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_row)
    return pd.DataFrame({"x": x, "y": rng.poisson(level * np.exp(slope * x))})


def times(n_row: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table of one gamma regression of five covariates, and the means."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_row, 5))
    mean = np.exp(1.0 + x @ np.array([0.6, -0.4, 0.3, 0.0, 0.0]))
    return pd.DataFrame(x, columns=list("abcde")).assign(y=rng.gamma(1.5, mean / 1.5)), mean


def model_of(kind: str, depth: int, n_covariate: int = 1):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(60, n_covariate)), columns=[f"x{k}" for k in range(n_covariate)])
    frame["y"] = rng.poisson(3.0, 60) + 1 if kind == "poisson" else rng.gamma(2.0, 1.0, 60)
    return make_model(frame, ExpertSettings(target="y", depth=depth, experts=kind))


@pytest.mark.parametrize("kind", LOG_LINKED)
@pytest.mark.parametrize(("depth", "n_covariate"), [(1, 1), (3, 4)])
def test_means_before_any_row_exist_and_are_plausible(kind, depth, n_covariate):
    model, table = model_of(kind, depth, n_covariate)
    task, prior = model.task(table), make_prior(model)
    # an ordinary row: every covariate one standard deviation from its mean
    x = np.ones(1 + n_covariate)
    assert task.x.shape[1] == x.size
    found, steps = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        own = np.array([prior_draw(task, prior, (depth, 2), rng).node[:, 0] @ x for _ in range(N_PRIOR // 5)])
        found.append(np.log(np.exp(own[:, -1]).mean()))
        steps.append(own[:, -1] - own[:, 0])
    # that of a normal whose precisions stand at their bounds is the largest mean
    most = 0.5 * x.size * (1.0 / prior.least_precision[0, 0] + depth / prior.least_precision[1, 0])
    assert max(found) < most
    assert np.ptp(found) < LARGEST_SPREAD
    # a leaf and the root differ by factors of a few
    assert 1.2 < np.exp(np.std(steps)) < 3.0


def test_means_of_counts_lie_in_their_intervals():
    rows = counts(40, 1000.0, 1.0, seed=21)
    post = bj.fit_experts(rows, target="y", rng=4)
    answer = post.predict(rows)
    # of 1,000 and more the interval has 5 % on either side: a leaf of a weight of .02 may move one mean as far
    assert ((answer["mean"] < answer["lower"]) | (answer["mean"] > answer["upper"])).sum() <= 1
    assert (np.abs(np.log(answer["mean"] / (1000.0 * np.exp(rows["x"])))) < 0.2).all()


def test_a_row_at_the_end_of_the_counts_has_a_mean_near_them():
    rows, new = counts(300, np.exp(1.0), 0.7, seed=11), pd.DataFrame({"x": [2.5, 3.0]})
    for seed in (1, 4):
        answer = bj.fit_experts(rows, target="y", rng=seed).predict(new)
        assert ((answer["lower"] <= answer["mean"]) & (answer["mean"] <= answer["upper"])).all()
        assert (answer["mean"] < 2.0 * np.exp(1.0 + 0.7 * new["x"])).all()


def test_means_of_failure_times_lie_in_their_intervals():
    rows, mean = times(1150, seed=2)
    post = bj.fit_experts(rows.head(150), target="y", rng=2, experts="gamma")
    answer = post.predict(rows.tail(1000))
    outside = (answer["mean"] > answer["upper"]) | (answer["mean"] < answer["lower"])
    assert outside.sum() <= 2
    assert (answer["mean"] / mean[150:]).max() < 6.0


def test_draws_around_an_optimum_have_means_too():
    rows = counts(40, 1e6, 1.0, seed=21)
    post = bj.fit_experts(rows, target="y", rng=4, method="laplace")
    answer = post.predict(rows)
    assert (np.abs(np.log(answer["mean"] / (1e6 * np.exp(rows["x"])))) < 1.0).all()


def test_the_ridge_of_log_links_is_bounded_and_that_of_others_is_as_given():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.poisson(3.0, 60), "y": rng.normal(size=60)})
    model, _ = make_model(frame, ExpertSettings(target=["y", "z"], depth=1))
    assert model.experts == ("gaussian", "poisson")
    small, large = expert_ridges(model, 0.1), expert_ridges(model, 7.0)
    assert small[0] == 0.1
    assert small[1] > 0.1
    assert (large == 7.0).all()
    # without a ridge it is the likelihood alone
    assert (expert_ridges(model, 0.0) == 0.0).all()
    assert (make_penalty(model, make_prior(model), 0.1).expert_ridge == small).all()


def test_other_experts_have_no_bound():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": list("abc") * 20, "y": rng.normal(size=60)})
    model, _ = make_model(frame, ExpertSettings(target=["y", "z"], depth=2))
    prior = make_prior(model)
    assert (prior.least_precision == 0.0).all()
    assert (prior.precision_rate == np.array(PRECISION_RATE)[:, None]).all()
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    assert draw_gamma_above(2.5, 1.5, 0.0, one) == draw_gamma(2.5, 1.5, other)
