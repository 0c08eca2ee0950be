"""Trees of experts row by row: recursive least squares is least squares, and forgets what it should."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import LearnerError, TableError
from bayesjpt.experts.fit import make_model, make_prior
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.experts.start import first_state
from bayesjpt.kernels.expert_online import Memory, fill_row_posterior, forget_and_add, learn_row
from tests.experts import naive_em
from tests.experts.test_fit import BAD, regimes
from tests.experts.test_posterior import EXPERTS, frame
from tests.papers.experts_arm import simulate

EXACT = 1e-9
RIDGE = 0.3


def task_of(rows: pd.DataFrame, depth: int):
    model, table = make_model(rows, ExpertSettings(target="y", depth=depth, experts="gaussian"))
    return model, model.task(table), make_prior(model)


def empty_memory(model, ridge: float = RIDGE) -> Memory:
    n, n_gate = len(model.covariates.names), len(model.gate_covariates.names)
    return Memory(
        np.tile(np.eye(n) / ridge, (model.n_leaf, int(model.at[-1]), 1, 1)),
        np.tile(np.eye(n_gate) / ridge, (model.n_gate, 1, 1)),
        np.ones(model.n_leaf),
    )


def hard_shares(model, n_row: int) -> np.ndarray:
    """Return fixed posteriors of each row and node: one leaf each."""
    out = np.zeros((n_row, model.n_node))
    for row in range(n_row):
        node = model.n_gate + row * 7 % model.n_leaf
        while node > 0:
            out[row, node] = 1.0
            node = (node - 1) // 2
        out[row, 0] = 1.0
    return out


def learned(forgetting: float, *, error: bool = False):
    model, task, prior = task_of(regimes(120, 1), depth=2)
    share = hard_shares(model, 120)
    state, memory = first_state(model, prior), empty_memory(model)
    most = np.full(int(model.at[-1]) + 1, 1.0 / RIDGE)
    for row in range(120):
        own = 0.9 * share[row] if error else share[row]
        learn_row(task, state, memory, row, own, forgetting, most, prior.floor)
    return model, task, state, share


def batch(x, y, weight, ridge: float) -> np.ndarray:
    return np.linalg.solve((x.T * weight) @ x + ridge * np.eye(x.shape[1]), (x.T * weight) @ y)


@pytest.mark.parametrize("error", [False, True])
def test_without_forgetting_and_with_hard_posteriors_it_is_ridge_regression(error):
    model, task, state, share = learned(1.0, error=error)
    far = 0.0
    for leaf in range(model.n_leaf):
        weight = share[:, model.n_gate + leaf]
        y = task.y[0] - task.offset[0]
        expected = batch(task.x, y, weight, RIDGE)
        far = max(far, np.abs(state.node[model.n_gate + leaf, 0] - expected).max())
        squares = (weight * (y - task.x @ expected) ** 2).sum() + RIDGE * (expected**2).sum()
        variance = (1.0 + squares) / (1.0 + weight.sum())
        far = max(far, abs(state.dispersion[leaf, 0] - variance))
    for gate in range(model.n_gate):
        odds = np.where(share[:, 2 * gate + 2] > 0, 5.0, -5.0)  # the largest that are believed
        expected = batch(task.gate_x, odds, share[:, gate], RIDGE)
        far = max(far, np.abs(state.gate[gate] - expected).max())
    assert far > 1e4 * EXACT if error else far < EXACT


def test_forgotten_rows_have_weights_that_fall_geometrically():
    rng, forgetting = np.random.default_rng(1), 0.9
    x, y, weight = rng.normal(size=(40, 3)), rng.normal(size=40), rng.uniform(0.2, 1.0, 40)
    inverse, gain, coefficient = np.eye(3) / RIDGE, np.empty(3), np.zeros(3)
    for row in range(40):
        residual = y[row] - x[row] @ coefficient
        forget_and_add(inverse, x[row], weight[row], forgetting, np.inf, gain)
        coefficient += weight[row] * residual * gain
    age = np.arange(39, -1, -1)
    expected = batch(x, y, weight * forgetting**age, RIDGE * forgetting**40)
    np.testing.assert_allclose(coefficient, expected, atol=EXACT)
    np.testing.assert_array_equal(inverse, inverse.T)


def test_directions_that_no_row_shows_do_not_grow():
    inverse, gain = np.eye(2), np.empty(2)
    for _ in range(5000):
        forget_and_add(inverse, np.array([1.0, 0.0]), 1.0, 0.9, 1.0, gain)
    assert np.isfinite(inverse).all()
    assert inverse[1, 1] <= 1.0 + 1e-12


def test_posteriors_of_a_row_are_those_of_the_definition():
    model, task, prior = task_of(regimes(10, 1), depth=2)
    rng = np.random.default_rng(2)
    state = first_state(model, prior)
    state.node[:], state.gate[:] = rng.normal(size=state.node.shape), rng.normal(size=state.gate.shape)
    log_joint, share = naive_em.joint(task, state), np.empty(model.n_node)
    for row in range(10):
        fill_row_posterior(task, state, row, share)
        expected = np.exp(log_joint[row] - np.logaddexp.reduce(log_joint[row]))
        np.testing.assert_allclose(share[model.n_gate :], expected, atol=1e-12)
        np.testing.assert_allclose(share[[0, 1, 2]], [1.0, expected[:2].sum(), expected[2:].sum()], atol=1e-12)


def test_ten_passes_come_near_to_em_on_the_arm():
    x, y = simulate(3_000, 1)
    new_x, new_y = simulate(1_000, 2)
    scale = y.std(axis=0)
    names, targets = [f"x{k}" for k in range(12)], [f"y{j}" for j in range(4)]
    rows = pd.DataFrame(np.hstack([x, y / scale]), columns=names + targets)
    new = pd.DataFrame(new_x, columns=names)
    own = {"target": targets, "depth": 3, "experts": "gaussian", "rng": 1}

    def error(post) -> float:
        return float(((new_y / scale - post.expectation(new).values[0, 0].T) ** 2).sum())

    online = bj.OnlineExperts(rows, **own)
    for _ in range(9):
        online.partial_fit(rows)
    assert online.n_row == 30_000
    assert error(online.posterior()) < 1.2 * error(bj.fit_experts(rows, method="em", passes=35, **own))


def test_what_changed_is_learned_and_what_was_is_forgotten():
    rng = np.random.default_rng(4)
    x = rng.normal(size=4000)
    sign = np.where(np.arange(4000) < 2000, 1.0, -1.0)
    rows = pd.DataFrame({"x": x, "y": sign * x + 0.1 * rng.normal(size=4000)})
    slopes = []
    for forgetting in (1.0, 0.99):
        online = bj.OnlineExperts(rows[:2000], target="y", depth=0, forgetting=forgetting, rng=1)
        found = online.partial_fit(rows[2000:]).posterior().expectation({"x": [0.0, 1.0]}).values[0, 0, 0]
        slopes.append(found[1] - found[0])
    np.testing.assert_allclose(slopes, [0.0, -1.0], atol=0.1)


@pytest.mark.parametrize("name", EXPERTS)
def test_all_kinds_of_experts_learn(name):
    rows = pd.concat([frame()] * 5)
    own = {"target": name, "given": ["x", "color"], "experts": EXPERTS[name], "depth": 1}
    online = bj.OnlineExperts(rows, kinds={"count": "integer"}, rng=1, **own)
    first = float(online.posterior().log_density(rows).mean())
    for _ in range(5):
        online.partial_fit(rows)
    last = float(online.posterior().log_density(rows).mean())
    nothing = bj.fit_experts(rows, kinds={"count": "integer"}, method="em", rng=1, **own | {"given": [], "depth": 0})
    assert last > first - 0.01
    assert last > float(nothing.log_density(rows).mean())


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
@pytest.mark.parametrize("name", BAD)
def test_bad_tables_get_an_answer(name, forgetting):
    rows = pd.DataFrame(BAD[name](40))
    kinds = {c: "real" for c in rows if rows[c].dtype == float}
    online = bj.OnlineExperts(rows, target="y", depth=2, kinds=kinds, forgetting=forgetting, rng=1)
    for _ in range(20):
        online.partial_fit(rows)
    assert np.isfinite(online.posterior().log_density(rows)).all()
    assert np.isfinite(online.posterior().predict(rows).to_numpy()).all()


@pytest.mark.parametrize("value", [0.0, -1.0])
@pytest.mark.filterwarnings("ignore:values that training did not show")
def test_numbers_that_gamma_experts_cannot_give_are_refused(value):
    rows = regimes(50, 1).assign(y=lambda frame: np.exp(frame["y"]))
    online = bj.OnlineExperts(rows, target="y", experts="gamma", depth=1, rng=1)
    with pytest.raises(TableError, match=f"{value:g} of the target 'y' in row 2; expected numbers above 0"):
        online.partial_fit({"x": [0.5, 0.5], "y": [1.0, value]})
    assert online.n_row == 50
    assert np.isfinite(online.posterior().log_density(rows)).all()


@pytest.mark.filterwarnings("ignore:constant columns")
def test_a_covariate_that_was_constant_in_the_first_rows_may_vary_later():
    rows = regimes(50, 1)
    plain = bj.OnlineExperts(rows, target="y", depth=1, rng=1).partial_fit(rows)
    online = bj.OnlineExperts(rows.assign(place=1.0), target="y", depth=1, rng=1)
    online.partial_fit(rows.assign(place=np.arange(50.0)))
    np.testing.assert_array_equal(online.posterior().log_density(rows), plain.posterior().log_density(rows))


def test_mistakes_are_refused_by_name():
    rows = regimes(50, 1)
    for changes, words in (
        ({"forgetting": 0.0}, "forgetting=0.0"),
        ({"forgetting": "x"}, "forgetting='x'"),
        ({"ridge": 0.0}, "ridge=0"),
        ({"depth": 7}, "depth=7"),
    ):
        with pytest.raises(LearnerError, match=words):
            bj.OnlineExperts(rows, target="y", **changes)
    online = bj.OnlineExperts(rows, target="y", depth=1, rng=1)
    with pytest.raises(TableError, match="no value of the target 'y' in row 3"):
        online.partial_fit(rows.assign(y=np.where(np.arange(50) == 2, np.nan, rows["y"])))
    assert online.n_row == 50
    assert repr(online) == "OnlineExperts(y; 2 leaves, 50 rows)"
