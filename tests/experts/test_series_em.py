"""EM over time: what gates see against sums over all paths, slopes at the optimum, likelihoods that only grow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import LearnerError
from bayesjpt.experts.em import Search, copied, make_penalty
from bayesjpt.experts.fit import make_prior
from bayesjpt.experts.row_parts import one_version
from bayesjpt.experts.series_em import optimise_series
from bayesjpt.experts.series_model import begin_series, steps_of
from bayesjpt.kernels.expert_series import Memory
from bayesjpt.kernels.expert_series_em import MemoryCases, Passes, fill_gate_cases, fill_passes
from bayesjpt.kernels.expert_tree import Coefficients, Task
from tests.experts import series_naive
from tests.experts.test_series_passes import frame

EXPERTS = {"y": "gaussian", "label": "multinomial", "count": "poisson"}
OWN = {"time": "t", "series": "id", "given": ["x"], "kinds": {"y": "real", "x": "real", "count": "integer"}}

ONE = {**OWN, "kinds": {"y": "real", "x": "real"}}


def fitted(transitions: str, depth: int = 2, **changes) -> bj.ExpertSeriesPosterior:
    own = {"target": list(EXPERTS), "experts": EXPERTS, "depth": depth, "method": "em", "passes": 3, "rng": 2}
    with pytest.warns(bj.BayesjptWarning, match="1 row without .* is a step without any"):
        return bj.fit_experts(frame(), transitions=transitions, **OWN, **{**own, **changes})


def as_problem(post: bj.ExpertSeriesPosterior, rows: pd.DataFrame):
    """Return the task, steps and state of a fit's first draw as kernels take them."""
    table, model = post.read(rows), post.model
    order, (values, seen) = table.order, model.target_cells(table)
    known = seen.all(axis=0)[order.rows]
    y = np.where(known, model.units(np.where(seen, values, 1.0))[:, order.rows], 1.0)
    x, gate_x = (each[order.rows] for each in one_version(post.row_parts(table), table.n_row))
    task = Task(x, gate_x, y, model.kind, model.at, model.offset)
    state = Coefficients(*(array[0, 0].copy() for array in post.coefficients))
    memory = Memory(*(array[0, 0].copy() for array in post.memory))
    return task, steps_of(model, order, known, post.transitions), state, memory


@pytest.mark.parametrize("transitions", ["leaf", "decision"])
def test_cases_of_gates_are_sums_over_paths(transitions):
    post, rows = fitted(transitions), frame()
    rows.loc[rows[list(EXPERTS)].isna().any(axis=1), list(EXPERTS)] = None  # EM looks at no part of a row
    task, steps, state, memory = as_problem(post, rows)
    n_row, n_leaf, n_gate = task.x.shape[0], post.model.n_leaf, post.model.n_gate
    passes = Passes(np.empty((n_row, n_gate)), np.empty((n_gate, n_leaf)), *(np.empty((n_row, n_leaf)) for _ in "123"))
    room = n_row * n_leaf
    cases = MemoryCases(*(np.empty(room, np.int64) for _ in "12"), *(np.empty(room) for _ in "12"))
    fill_passes(task, steps, state, memory, passes)
    table = post.read(rows)
    for gate in range(n_gate):
        n = fill_gate_cases(steps.first, passes, gate, cases)
        expected = {}
        at = gate
        while at < n_gate:
            at = 2 * at + 1
        width = n_leaf >> int(np.log2(gate + 1))
        own = list(range(at - n_gate, at - n_gate + width))
        for first, members in zip(steps.first, np.split(table.order.rows, table.order.first[1:-1]), strict=False):
            paths, joint = series_naive.paths(post, table, members, (0, 0))
            weight = joint / joint.sum()
            for t in range(members.size):
                for k in range(-1, n_leaf):
                    here = np.isin(paths[:, t], own) & ((paths[:, t - 1] == k) if t else (k == -1))
                    whole = weight[here].sum()
                    right = weight[here & np.isin(paths[:, t], own[width // 2 :])].sum()
                    if whole > 1e-12:
                        expected[first + t, k] = whole, right / whole
        found = {
            (int(cases.row[c]), int(cases.before[c])): (cases.weight[c], cases.share[c])
            for c in range(n)
            if cases.weight[c] > 1e-11
        }
        for key, value in found.items():
            np.testing.assert_allclose(value, expected[key], rtol=1e-6, atol=1e-11)
        lost = sum(weight for key, (weight, _) in expected.items() if key not in found)
        assert lost < 1e-8


def switching(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    regime = np.arange(2 * n) // 15 % 2
    x = rng.normal(size=2 * n)
    y = np.where(regime, 2.0 + x, -2.0 * x) + rng.normal(0.0, 0.3, 2 * n)
    y[[7, 20, 21]] = np.nan
    return pd.DataFrame({"t": np.tile(np.arange(n), 2), "id": np.repeat(["a", "b"], n), "x": x, "y": y})


def begun(transitions: str, depth: int, ridge: float):
    post = bj.fit_experts(
        switching(), target="y", depth=depth, transitions=transitions, draws=1, tune=1, chains=1, rng=1, **ONE
    )
    task, steps, _, _ = as_problem(post, switching())
    model, prior = post.model, make_prior(post.model)
    start = begin_series(model, task, steps, prior, "cart", np.random.default_rng(1))
    return post, (model, task, steps, prior, Search("em", ridge, 3000, 0.0)), (start.state, start.memory)


@pytest.mark.parametrize("transitions", ["leaf", "decision"])
def test_the_penalised_likelihood_grows_to_where_it_has_no_slope(transitions):
    ridge = 0.5
    post, problem, first = begun(transitions, 1, ridge)
    found = optimise_series(*problem, first)
    assert (np.diff(found.trace) >= -1e-9 * (1.0 + np.abs(found.trace[1:]))).all()
    assert found.trace[-1] > found.trace[0] + 1.0
    model, penalty = problem[0], make_penalty(problem[0], problem[3], ridge)
    table = post.read(switching())

    def value(state: Coefficients, memory: Memory) -> float:
        """Return the penalised log likelihood, by what sums over paths have proven (`test_series_passes`)."""
        whole = replace(
            post,
            coefficients=Coefficients(*(array[None, None] for array in state)),
            memory=Memory(*(array[None, None] for array in memory)),
        )
        jacobian = float(model.response.log_jacobian().sum()) * int(model.target_cells(table)[1].sum())
        leaves, own = state.node[model.n_gate :], state.dispersion
        total = float(whole.series_log_density(table).sum()) - jacobian
        total -= 0.5 * ridge * ((state.gate**2).sum() + (leaves**2).sum() + (memory.offset**2).sum())
        return total - 0.5 * penalty.n_row * float((np.log(own) + penalty.variance / own).sum())

    np.testing.assert_allclose(value(found.state, found.memory), found.trace[-1], rtol=1e-9)
    arrays = {"gate": found.state.gate, "node": found.state.node, "dispersion": found.state.dispersion}
    parts = [(name, index) for name, array in arrays.items() for index in np.ndindex(array.shape)]
    parts += [("offset", index) for index in np.ndindex(found.memory.offset.shape)]
    for name, index in parts:
        if name == "node" and index[0] < model.n_gate:
            continue
        ends = []
        for step in (-1e-4, 1e-4):
            state, memory = copied(found.state), Memory(*(array.copy() for array in found.memory))
            array = memory.offset if name == "offset" else getattr(state, name)
            array[index] = array[index] * np.exp(step) if name == "dispersion" else array[index] + step
            ends.append(value(state, memory))
        assert abs(ends[1] - ends[0]) / 2e-4 < 1e-3, (name, index)


@pytest.mark.parametrize("transitions", ["leaf", "decision"])
def test_the_penalised_likelihood_never_falls_for_any_expert(transitions):
    post = fitted(transitions, depth=3, passes=1)
    task, steps, state, memory = as_problem(post, frame())
    problem = (post.model, task, steps, make_prior(post.model), Search("em", 0.1, 60, 0.0))
    trace = optimise_series(*problem, (state, memory)).trace
    assert trace.size > 20
    assert (np.diff(trace) >= -1e-9 * (1.0 + np.abs(trace[1:]))).all()


def test_fits_are_posteriors_of_one_draw_that_know_the_regimes(tmp_path):
    rows = switching()
    post = bj.fit_experts(rows, target="y", depth=1, method="em", rng=1, **ONE)
    assert (post.n_chain, post.n_draw) == (1, 1)
    leaf = post.leaves(rows)["leaf"].to_numpy()
    truth = np.arange(len(rows)) // 15 % 2
    assert max((leaf == truth).mean(), (leaf != truth).mean()) > 0.95
    assert post.settings["method"] == "em"
    post.save(tmp_path / "fit.nc")
    again = bj.load_experts(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.log_density(rows), post.log_density(rows))
    three = [bj.fit_experts(rows, target="y", depth=1, method="em", chains=2, cores=c, rng=3, **ONE) for c in (1, 2)]
    np.testing.assert_array_equal(three[0].memory.offset, three[1].memory.offset)


def test_bad_series_get_an_answer():
    rows = switching(12).assign(again=lambda frame: frame["x"])
    rows["y"] = np.where(rows["x"] > 0, "u", "v")
    rows.loc[3, "y"] = "once"
    own = {**ONE, "given": ["x", "again"], "kinds": {"x": "real", "again": "real"}}
    post = bj.fit_experts(rows, target="y", depth=3, method="em", rng=1, **own)
    assert np.isfinite(post.log_density(rows)).all()
    assert np.isfinite(post.smooth(rows)).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ridge": 0.0}, "ridge=0 with the column of time"),
        ({"grow": True}, "grow=True with the column of time"),
        ({"method": "laplace"}, "expected gibbs or em"),
        ({"draws": 5}, "draws=5 with method='em'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(LearnerError, match=words):
        bj.fit_experts(switching(), target="y", **{"method": "em", **ONE, **changes})
