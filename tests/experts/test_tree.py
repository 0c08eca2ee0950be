"""Trees of experts as pictures: shares, histograms and deviances against their definitions."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bayesjpt as bj
from bayesjpt import defaults_experts
from bayesjpt.errors import QueryError
from bayesjpt.experts.em import make_penalty
from bayesjpt.experts.fit import make_prior
from bayesjpt.experts.start import first_state
from bayesjpt.experts.tree import _SOLVED as SOLVED
from bayesjpt.experts.tree import _fitted
from bayesjpt.kernels.expert_em import penalty_of
from tests.experts import naive
from tests.experts.test_posterior import EXPERTS, frame

SVG = "{http://www.w3.org/2000/svg}"
GIVEN = {"given": ["x", "color"], "kinds": {"count": "integer"}}


def regimes(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.uniform(-2.0, 2.0, n)
    y = np.where(x > 0.3, 2.0 * x, -1.0) + rng.normal(0.0, 0.2, n)
    return pd.DataFrame({"<b>x</b> & so on": x, "y": y})


@pytest.fixture(scope="module")
def post() -> bj.ExpertPosterior:
    return bj.fit_experts(regimes(), target="y", depth=2, draws=6, tune=60, chains=2, rng=1)


def leaf_shares(post, rows: pd.DataFrame, draw: tuple[int, int]) -> np.ndarray:
    """Return P(leaf | x, y), (n_row, n_leaf), by Bayes' rule."""
    table = post.read(rows)
    x, y = post.model.covariates.matrix(table), table.values[table.schema.index("y")]
    out = np.empty((table.n_row, post.model.n_leaf))
    for row in range(table.n_row):
        prior = naive.path_probabilities(post.coefficients.gate[draw], x[row])
        density = [naive.leaf_distribution(post, 0, draw, leaf, x[row]).pdf(y[row]) for leaf in range(out.shape[1])]
        out[row] = prior * density / (prior * density).sum()
    return out


def test_shares_and_histograms_are_those_of_bayes_rule(post):
    view = post.tree(regimes(), 1, max_draws=None)
    each = [leaf_shares(post, regimes(), (1, draw)) for draw in range(6)]
    right = [np.minimum(shares[:, 2:].sum(axis=1), 1.0) for shares in each]
    # nodes by level: root, left, right, four leaves
    np.testing.assert_allclose(view.data.nodes[2].share.mean, np.mean(right), rtol=1e-9)
    np.testing.assert_allclose(view.data.nodes[2].share.lo, np.quantile([r.mean() for r in right], 0.05), rtol=1e-9)
    bins = [np.histogram(r, 10, (0.0, 1.0))[0] / r.size for r in right]
    np.testing.assert_allclose(view.data.nodes[2].histogram.mean, np.mean(bins, axis=0), atol=1e-12)
    second = [shares[:, 1] / shares[:, :2].sum(axis=1) for shares in each]
    weight = [shares[:, :2].sum(axis=1) for shares in each]
    bins = [np.histogram(s, 10, (0.0, 1.0), weights=w)[0] / w.sum() for s, w in zip(second, weight, strict=True)]
    np.testing.assert_allclose(view.data.nodes[4].histogram.mean, np.mean(bins, axis=0), atol=1e-9)


def test_the_deviance_of_the_root_is_that_of_one_regression(post):
    rows, root = regimes(), post.tree(regimes()).data.nodes[0]
    design = np.column_stack([np.ones(len(rows)), rows.iloc[:, 0]])
    fitted = design @ np.linalg.lstsq(design, rows["y"], rcond=None)[0]
    residual = (rows["y"] - fitted).to_numpy()
    expected = -2.0 * scipy.stats.norm.logpdf(residual, 0.0, residual.std()).mean()
    # a ridge of .1 and an imaginary row move it a little, and up
    assert expected <= root.deviance.mean[0] <= expected + 0.01


@pytest.mark.parametrize("name", EXPERTS)
def test_splits_take_deviance_away_but_for_the_penalty_of_the_expert_above(name):
    """With optima b above and b_k below, sum_k (l_k + p)(b_k) >= sum_k (l_k + p)(b), and sum_k l_k = l."""
    post = bj.fit_experts(
        frame(), target=name, experts=EXPERTS[name], depth=0, draws=1, tune=0, chains=1, rng=2, **GIVEN
    )
    model, table, rng = post.model, post.read(frame()), np.random.default_rng(4)
    task, prior = model.task(table), make_prior(model)
    penalty = make_penalty(model, prior, defaults_experts.RIDGE)
    here = rng.uniform(0.0, 1.0, table.n_row)
    left = here * (table.values[0] > 0.3)

    def fitted(weight: np.ndarray) -> tuple[float, float]:
        state = first_state(model, prior)
        log_density = _fitted(model, task, prior, state, weight)
        return float(log_density @ weight), penalty_of(task, state, np.zeros(0, bool), penalty)

    (whole, above), *children = (fitted(weight) for weight in (here, left, here - left))
    gained = sum(value + own for value, own in children) - (whole + 2.0 * above)
    assert gained > -SOLVED * table.n_row


@pytest.mark.parametrize("name", EXPERTS)
def test_nodes_of_all_experts_have_shares_that_add_up_and_finite_deviances(name):
    post = bj.fit_experts(frame(), target=name, experts=EXPERTS[name], depth=2, draws=3, tune=20, rng=2, **GIVEN)
    nodes = post.tree(frame()).data.nodes
    for node in nodes:
        if node.gain is not None:
            held = sum(nodes[child].share.mean[0] for child in node.children)
            assert held == pytest.approx(node.share.mean[0], rel=1e-9)
        assert all(np.isfinite(end).all() for end in node.deviance.__dict__.values())


def test_the_picture_is_whole_and_names_break_nothing(post, tmp_path):
    view = post.tree(regimes())
    drawn = ET.fromstring(view.to_svg())
    groups = [group for group in drawn.iter(f"{SVG}g") if group.get("class") == "node"]
    assert len(groups) == len(view.data.nodes) == 7
    width = float(drawn.get("width", "0"))
    assert all(0.0 <= float(text.get("x", "-1")) <= width for text in drawn.iter(f"{SVG}text"))
    assert "<b>" not in view.to_svg()
    for suffix in ("svg", "txt", "dot"):
        view.save(tmp_path / f"tree.{suffix}")
    assert (tmp_path / "tree.txt").read_text() == f"{view}\n"
    assert str(view).count("deviance") == 8
    assert "split takes" in str(view)


def test_a_tree_that_was_not_grown_further_is_shown_as_it_is():
    rows = regimes()
    post = bj.fit_experts(rows, target="y", depth=3, method="em", grow=True, rng=1)
    assert len(post.tree(rows).data.leaves()) == post.settings["leaves"]
    assert "interval" not in str(post.tree(rows))


def test_rows_without_targets_count_by_their_covariates(post):
    rows = regimes()
    gates = post.tree(rows.assign(y=[*rows["y"][:60], *[None] * 60])).data.nodes
    assert all(np.isfinite(node.deviance.mean[0]) for node in gates)
    with pytest.raises(QueryError, match="no row with a value of y"):
        post.tree(rows.assign(y=None))
    with pytest.raises(QueryError, match="chain=2"):
        post.tree(rows, 2)


def test_empty_leaves_have_the_deviance_above(post):
    gate = post.coefficients.gate.copy()
    gate[..., 0, :] = [-1e5, 0.0]  # nobody goes right at the root
    empty = replace(post, coefficients=post.coefficients._replace(gate=gate))
    nodes = empty.tree(regimes()).data.nodes
    assert nodes[2].share.hi[0] < 1e-9
    assert nodes[2].deviance.mean[0] == pytest.approx(nodes[0].deviance.mean[0])


def test_series_are_shown_by_what_is_known_of_the_whole_series():
    t = np.arange(60)
    table = {"t": t, "y": np.where(t // 15 % 2, 4.0, 0.0) + 0.5 * np.sin(7.0 * t)}
    post = bj.fit_experts(table, target="y", time="t", depth=1, draws=5, tune=30, chains=1, rng=1)
    smoothed = post.smooth(table).mean(("draw", "obs_id")).values[0]
    nodes = post.tree(table).data.nodes
    np.testing.assert_allclose([node.share.mean[0] for node in nodes[1:]], smoothed, rtol=1e-9)
