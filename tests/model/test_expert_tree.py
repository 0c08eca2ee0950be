"""The mixture of experts inside PyMC: its density is that of the Gibbs sampler's kernels, and PyMC's functions work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special
import scipy.stats

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, ModelError, TableError
from bayesjpt.kernels.expert_tree import Coefficients, Task, fill_log_density
from bayesjpt.model.expert_responses import KINDS
from bayesjpt.model.expert_step import ExpertGibbs

N_ROW = 12
DEPTH = 2


def rows(kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=N_ROW), "kind": np.tile(["a", "b", "c"], N_ROW // 3)})
    y = {
        "gaussian": rng.normal(2.0, 3.0, N_ROW),
        "logistic": np.tile(["no", "yes"], N_ROW // 2),
        "multinomial": np.tile(["u", "v", "w", "w"], N_ROW // 4),
        "poisson": rng.poisson(3.0, N_ROW),
        "gamma": rng.gamma(2.0, 1.0, N_ROW),
    }
    return frame, y[kind]


def tree(kind: str) -> tuple[pm.Model, object]:
    with pm.Model() as model:
        variable = bj.ExpertTree("y", *rows(kind), depth=DEPTH, experts=kind)
    return model, variable


@pytest.mark.parametrize("kind", KINDS)
def test_log_density_is_that_of_the_kernels(kind):
    model, variable = tree(kind)
    frame, y = rows(kind)
    point = {
        rv.name: np.array(value)
        for rv, value in zip(model.free_RVs, pm.draw(model.free_RVs, random_seed=2), strict=True)
    }
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        coefficient = model["y_coefficient"].eval(
            {model[name]: value for name, value in point.items() if name in ("y_step", "y_precision")}
        )
        found = pm.logp(variable, variable.owner.op and model.rvs_to_values[variable]).eval(
            {model[name]: value for name, value in point.items() if name not in ("y_noise", "y_gate_precision")},
            on_unused_input="ignore",
        )
    values = y.astype(float) if np.asarray(y).dtype.kind in "if" else np.unique(y, return_inverse=True)[1].astype(float)
    gaussian, logs = kind == "gaussian", kind in ("poisson", "gamma")
    scale = values.std() if gaussian else 1.0
    units = (values - values.mean()) / scale if gaussian else values
    x = np.column_stack([np.ones(N_ROW), bj.ExpertTree.matrix(variable, frame)])
    n = 3 if kind == "multinomial" else 1
    task = Task(
        x,
        x,
        units[None],
        np.array([KINDS[kind]], np.int8),
        np.array([0, n], np.int32),
        np.array([np.log(values.mean()) if logs else 0.0]),
    )
    dispersion = point.get("y_variance", point.get("y_shape", np.ones(2**DEPTH)))[:, None]
    node = coefficient if n > 1 else coefficient[:, None]
    state = Coefficients(
        point["y_gate"],
        np.ascontiguousarray(node),
        np.ascontiguousarray(dispersion),
        np.ones(1),
        np.ones((DEPTH + 1, 1)),
        np.ones(1),
    )
    expected = np.empty(N_ROW)
    fill_log_density(task, state, expected)
    np.testing.assert_allclose(found, expected - np.log(scale), rtol=1e-10, atol=1e-10)


def test_new_rows_are_predicted():
    model, variable = tree("gaussian")
    new = pd.DataFrame({"x": [0.0, 1.0], "kind": ["a", "c"]})
    with model:
        pm.set_data({"y_covariates": bj.ExpertTree.matrix(variable, new)})
        drawn = pm.draw(variable, draws=3, random_seed=1)
    assert drawn.shape == (3, 2)
    assert np.isfinite(drawn).all()


def test_labels_are_drawn_as_codes():
    for kind, n in (("logistic", 2), ("multinomial", 3)):
        drawn = pm.draw(tree(kind)[1], draws=20, random_seed=1)
        assert set(np.unique(drawn)) <= set(range(n))


def test_covariates_may_be_random_variables_of_the_model():
    with pm.Model() as model:
        latent = pm.Normal("latent", shape=(N_ROW, 1))
        bj.ExpertTree("y", latent, rows("gaussian")[1], depth=1)
    assert np.isfinite(list(model.point_logps().values())).all()


def test_depth_and_branches_may_be_integers_of_numpy():
    with pm.Model() as model:
        bj.ExpertTree("y", *rows("gaussian"), depth=np.int64(1), branches=np.int32(3))
    assert len(model.coords["y_leaf"]) == 3


def test_what_makes_no_sense_is_refused():
    frame, y = rows("gaussian")
    with pm.Model():
        with pytest.raises(ModelError, match="depth=9"):
            bj.ExpertTree("y", frame, y, depth=9)
        with pytest.raises(ModelError, match="branches=1"):
            bj.ExpertTree("y", frame, y, branches=1)
        with pytest.raises(ModelError, match="poisson experts"):
            bj.ExpertTree("y", frame, y, experts="poisson")
        with pytest.raises(ModelError, match="12 rows for 11 values"):
            bj.ExpertTree("y", frame, y[1:])
        with pytest.raises(ModelError, match="without covariates"):
            bj.ExpertTree("y", np.empty((len(y), 0)), y, depth=1)


def a_point(model: pm.Model, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0.0, 0.5, np.shape(value)) for name, value in model.initial_point().items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_and_the_coefficients_of_a_sweep_say_the_same(kind):
    model, _ = tree(kind)
    step, point = ExpertGibbs(model=model), a_point(model, 3)
    again = step._values(step._state(point))
    assert set(again) == set(point)
    for name, value in point.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "gamma", "poisson"])
def test_the_prior_is_that_of_the_sweep(kind):
    model, _ = tree(kind)
    step, point = ExpertGibbs(model=model), a_point(model, 4)
    state, prior = step._state(point), step._prior
    gamma = scipy.stats.gamma
    expected = gamma.logpdf(state.gate_precision, prior.gate_shape, scale=1 / prior.gate_rate).sum()
    expected += scipy.stats.norm.logpdf(state.gate, 0.0, state.gate_precision[0] ** -0.5).sum()
    below = np.minimum(np.arange(DEPTH + 1), 1)
    own = gamma(prior.precision_shape, scale=1 / prior.precision_rate[below])
    # at least the bound: a density is that of the gamma, divided by its mass above
    assert (state.precision > prior.least_precision[below]).all()
    assert (prior.least_precision > 0.0).all() == (kind != "gaussian")
    expected += (own.logpdf(state.precision) - own.logsf(prior.least_precision[below])).sum()
    for number in range(2 ** (DEPTH + 1) - 1):
        deviation = state.precision[int(np.log2(number + 1)), 0] ** -0.5
        centre = state.node[(number - 1) // 2] if number else 0.0
        # per unit of the step, not of the coefficient
        expected += (scipy.stats.norm.logpdf(state.node[number], centre, deviation) + np.log(deviation)).sum()
    if kind == "gaussian":
        expected += gamma.logpdf(state.noise, prior.noise_rate_shape, scale=1 / prior.noise_rate_rate).sum()
        expected += scipy.stats.invgamma.logpdf(state.dispersion, prior.noise_shape, scale=state.noise).sum()
    if kind == "gamma":
        deviation = prior.log_shape_deviation
        expected += scipy.stats.lognorm.logpdf(state.dispersion, deviation, scale=np.exp(prior.log_shape_mean)).sum()
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        terms = model.compile_logp(vars=model.free_RVs, jacobian=False)
    np.testing.assert_allclose(terms(point), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["gaussian", "multinomial"])
def test_gates_of_three_ways_are_those_of_the_kernels(kind):
    frame, y = rows(kind)
    with pm.Model() as model:
        bj.ExpertTree("y", frame, y, depth=2, branches=3, experts=kind)
    step, point = ExpertGibbs(model=model), a_point(model, 5)
    state, expected = step._state(point), np.empty(N_ROW)
    assert state.gate.shape[0] == 8
    fill_log_density(step._task, state, expected)
    expected -= np.log(np.std(y)) if kind == "gaussian" else 0.0
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        found = model.compile_logp(vars=model.observed_RVs, sum=False)(point)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    again = step._values(state)
    for name, value in point.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-12, atol=1e-12)
    step.setup_chain(np.random.default_rng(1), 1, 1)
    moved, _ = step.step(point)
    assert np.abs(moved["y_gate"] - point["y_gate"]).min() > 0.0


def test_gibbs_sweeps_are_chosen_and_predict_as_those_outside_pymc():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, 200)
    y = np.where(x > 0.5, 1.0 + 0.5 * x, -1.0 - 1.5 * x) + rng.normal(0.0, np.where(x > 0.5, 0.3, 0.8))
    frame, new = pd.DataFrame({"x": x}), pd.DataFrame({"x": [-2.0, -1.0, 1.5, 2.0]})
    with pm.Model() as model:
        variable = bj.ExpertTree("y", frame, y, depth=1)
        other = pm.Normal("other")
    step = ExpertGibbs(model=model)
    assert ExpertGibbs.competence(model["y_gate"], True) > ExpertGibbs.competence(other, True)
    step.setup_chain(np.random.default_rng(1), 100, 200)
    point, means = model.initial_point(), []
    grid = np.column_stack([np.ones(4), bj.ExpertTree.matrix(variable, new)])
    for sweep in range(300):
        point, _ = step.step(point)
        if sweep >= 100:
            state = step._state(point)
            right = scipy.special.expit(grid @ state.gate[0])
            means.append((1.0 - right) * (grid @ state.node[1, 0]) + right * (grid @ state.node[2, 0]))
    post = bj.fit_experts(frame.assign(y=y), target="y", depth=1, rng=1)
    expected = post.expectation(new).mean(("chain", "draw")).values[0]
    np.testing.assert_allclose(y.mean() + y.std() * np.mean(means, axis=0), expected, atol=0.1)


@pytest.mark.parametrize("of", ["data", "a tensor of data"])
def test_covariates_of_data_are_drawn_by_sweeps_with_the_values_that_they_have(of):
    matrix, y = np.random.default_rng(1).normal(size=(N_ROW, 1)), rows("poisson")[1]
    with pm.Model() as model:
        data, counts, gain = pm.Data("matrix", matrix), pm.Data("counts", y), pm.Normal("gain")
        bj.ExpertTree("y", data if of == "data" else pt.concatenate([data, data**2], axis=1), counts, depth=1)
        pm.set_data({"matrix": 2.0 * matrix[:8], "counts": 3 + y[:8]})
    assert {"y_covariates", "y_data"}.isdisjoint(model.named_vars)
    copied = pm.do(model, {gain: 1.0})
    with copied:
        pm.set_data({"matrix": 5.0 * matrix[:6], "counts": 7 + y[:6]})
    for own, factor, shift, n in ((model, 2.0, 3, 8), (copied, 5.0, 7, 6)):
        step, covariates = ExpertGibbs(model=own), factor * matrix[:n]
        columns = [np.ones(n), covariates] + ([covariates**2] if of != "data" else [])
        np.testing.assert_allclose(step._task.x, np.column_stack(columns))
        np.testing.assert_array_equal(step._task.y[0], y[:n] + shift)


def test_a_tree_in_a_submodel_is_drawn_by_its_step():
    with pm.Model() as model, pm.Model("sub"):
        bj.ExpertTree("y", *rows("gaussian"), depth=1)
    step = ExpertGibbs(model=model)
    step.setup_chain(np.random.default_rng(1), 1, 1)
    moved, _ = step.step(model.initial_point())
    assert {value.name for value in step.vars} == set(moved)


@pytest.mark.parametrize("time", [False, True])
def test_trees_of_one_name_in_two_submodels_have_dims_of_their_own(time):
    X, y = rows("gaussian")
    responses = pd.DataFrame({"number": y, "label": np.where(np.arange(N_ROW) % 3, "a", "b")})
    with pm.Model() as model:
        for prefix, depth, n_row in (("left", 1, N_ROW), ("right", 2, N_ROW - 2)):
            with pm.Model(name=prefix):
                given = {"time": np.arange(n_row)} if time else {}
                experts = {"label": "multinomial"}
                bj.ExpertTree("y", X[:n_row], responses[:n_row], depth=depth, experts=experts, **given)
    point = model.initial_point()
    for rv in [*model.free_RVs, *model.observed_RVs]:
        dims = model.named_vars_to_dims.get(rv.name, ())
        assert all(dim.startswith(f"{rv.name.split('::')[0]}::y_") for dim in dims), (rv.name, dims)
        value = model.rvs_to_values[rv]
        shape = np.shape(point[value.name]) if value.name in point else tuple(value.shape.eval())
        lengths = [len(model.coords[d]) if model.coords[d] else int(model.dim_lengths[d].eval()) for d in dims]
        assert not dims or shape == tuple(lengths), rv.name


def test_masked_values_of_a_tree_are_missing():
    X, y = rows("gaussian")
    masked = np.ma.array(y, mask=np.arange(N_ROW) == 2)
    with pm.Model() as model, pytest.warns(BayesjptWarning, match="1 row without a value"):
        bj.ExpertTree("y", X, masked, depth=1)
    assert model["y_seen"].get_value().tolist() == [int(row != 2) for row in range(N_ROW)]
    with pm.Model(), pytest.raises(ModelError, match="nan in row 3 of the covariate 'x0'"):
        bj.ExpertTree("y", masked[:, None], y, depth=1)
    with pm.Model(), pytest.raises(TableError, match="time"):
        bj.ExpertTree("y", None, y, depth=1, time=np.ma.array(np.arange(N_ROW), mask=masked.mask))


def test_covariates_and_values_of_other_numbers_of_rows_are_refused():
    matrix, y = np.zeros((N_ROW, 1)), rows("gaussian")[1]
    with pm.Model() as model:
        data = pm.Data("matrix", matrix)
        with pytest.raises(ModelError, match="12 rows for 11 values"):
            bj.ExpertTree("y", data, y[1:], depth=1)
        bj.ExpertTree("z", data, y, depth=1)
        pm.set_data({"matrix": matrix[1:]})
    with pytest.raises(ModelError, match="11 rows for 12 values"):
        ExpertGibbs(model=model)


def test_the_step_keeps_away_from_random_covariates_and_other_factors():
    with pm.Model() as model:
        latent = pm.Normal("latent", shape=(N_ROW, 1))
        bj.ExpertTree("y", latent, rows("gaussian")[1], depth=1)
    assert not any(ExpertGibbs.competence(rv, True) for rv in model.free_RVs)
    with pm.Model() as model:
        bj.ExpertTree("y", *rows("gaussian"), depth=1)
        pm.Potential("more", model["y_gate"].sum())
    with pytest.raises(ModelError, match="more depends on variables of ExpertTree 'y'"):
        ExpertGibbs(model=model)


def test_steps_of_two_trees_have_random_numbers_of_their_own():
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        for name in ("y", "z"):
            bj.ExpertTree(name, *rows("gaussian"), depth=DEPTH)
        first, second = ExpertGibbs(model=model, rng=1).methods
        point = model.initial_point()
        one, two = first.step(point)[0], second.step(point)[0]
    assert not np.isclose(one["y_gate"], two["z_gate"]).any()
