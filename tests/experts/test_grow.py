"""Trees of experts that grow where held-out rows become more likely."""

from __future__ import annotations

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.experts.em import Optimum, Search, optimise
from bayesjpt.experts.fit import make_model, make_prior
from bayesjpt.experts.grow import Growth, rows_of
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.experts.start import first_state


def three_regimes(n_row: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3.0, 3.0, (n_row, 2))
    mean = np.where(x[:, 0] > 1, 2 * x[:, 1], np.where(x[:, 0] > -1, 1 - x[:, 1], 3.0))
    return pd.DataFrame(x, columns=["a", "b"]).assign(y=mean + rng.normal(0.0, 0.3, n_row))


def test_a_tree_grows_as_many_leaves_as_there_are_regimes():
    rows, new = three_regimes(900, 1), three_regimes(900, 2)
    post = bj.fit_experts(rows, target="y", depth=4, method="em", grow=True, rng=1)
    assert 3 <= post.settings["leaves"] <= 4
    full = bj.fit_experts(rows, target="y", depth=4, method="em", rng=1)
    assert float(post.log_density(new).mean()) > float(full.log_density(new).mean())
    # what is not grown is not told
    assert post.explain().count("give or take") == post.settings["leaves"]


def test_rows_of_one_regression_stay_one_leaf():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "y"])
    rows["y"] += rows["a"]
    post = bj.fit_experts(rows, target="y", depth=3, method="em", grow=True, rng=1)
    single = bj.fit_experts(rows, target="y", depth=0, method="em", rng=1)
    assert post.settings["leaves"] == 1
    assert "; 1 leaf" in repr(post)
    np.testing.assert_allclose(post.expectation(rows), single.expectation(rows), atol=1e-6)


def test_few_rows_are_no_tree():
    rows = {"x": np.arange(5.0), "y": np.arange(5.0) % 2}
    post = bj.fit_experts(rows, target="y", kinds={"y": "real"}, depth=2, method="em", grow=True, rng=1)
    assert post.settings["leaves"] == 1


def test_splits_that_held_out_rows_do_not_need_are_taken_back():
    rows = three_regimes(800, 3)
    model, table = make_model(rows, ExpertSettings(target="y", depth=2, experts="gaussian"))
    prior, task = make_prior(model), model.task(table)
    growth = Growth(model, rows_of(task, np.arange(500)), rows_of(task, np.arange(500, 800)), prior, Search())
    # by hand: the root where rows change, all others where they do not
    state = first_state(model, prior)
    position = model.gate_covariates.names.index("a")
    state.gate[0, position], state.gate[0, 0] = 20.0, -20.0 * 1.0 / rows["a"].std()
    state.gate[2, model.gate_covariates.names.index("b")] = 3.0
    opened = np.array([True, False, True])
    growth.best = optimise(model, growth.task, prior, Search(passes=20), Optimum(state, opened, np.zeros(0)))
    growth.log_density = growth._judged(growth.best)
    growth.prune()
    np.testing.assert_array_equal(growth.best.opened, [True, False, False])
