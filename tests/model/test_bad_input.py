"""What is no name, model, draws, index, target or start is one error of ours, and leaves the model as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from pymc.initial_point import make_initial_point_fns_per_chain

import bayesjpt as bj
from bayesjpt.errors import ModelError, QueryError
from bayesjpt.model.starts import check_starts

N_ROW = 60
QUIET = {"chains": 1, "cores": 1, "progressbar": False, "random_seed": 1, "compute_convergence_checks": False}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    numbers = {"height": rng.normal(170, 10, N_ROW), "kids": rng.poisson(2, N_ROW)}
    return pd.DataFrame(numbers | {"kind": rng.choice(list("ab"), N_ROW)})


@pytest.fixture(scope="module")
def table(frame):
    return bj.as_table(frame)


@pytest.fixture(scope="module")
def circuit(table):
    return bj.learn_mspn(table, 1)


@pytest.fixture
def model(circuit, table):
    with pm.Model() as model:
        bj.CircuitMixture("x", circuit, table)
    return model


@pytest.fixture(scope="module")
def post(circuit, table):
    return bj.Posterior.from_circuit(circuit, table.schema)


@pytest.mark.parametrize("flag", ["impute", "transforms"])
@pytest.mark.parametrize("value", ["no", 1, None])
def test_a_flag_that_is_neither_true_nor_false_is_refused(flag, value, circuit, table):
    with pytest.raises(ModelError, match=rf"{flag}={value!r}; expected True or False"):
        bj.build_model(circuit, table, **{flag: value})


@pytest.mark.parametrize(
    ("name", "taken", "coords"),
    [
        ("x/y", "other", None),
        ("x", "x_sum_weights", None),
        ("x", "x_normal_scale", None),
        ("x", "x_type_weights", None),
        ("x", "other", {"x_obs_id": [1, 2, 3]}),
    ],
)
def test_a_name_that_is_taken_is_refused_before_anything_is_made(name, taken, coords, circuit, table):
    with pm.Model(coords=coords) as model:
        pm.Normal(taken)
        variables, dims = set(model.named_vars), set(model.coords)
        with pytest.raises(ModelError, match="name"):
            bj.CircuitMixture(name, circuit, table)
        assert (set(model.named_vars), set(model.coords)) == (variables, dims)
        bj.CircuitMixture("free", circuit, table)


@pytest.mark.parametrize(
    ("index", "first"),
    [
        (pd.MultiIndex.from_product([["a", "b"], range(30)]), "a, 0"),
        (pd.Index([1, "a", None, 2.5, (1, 2)] * 12, dtype=object), "1"),
        (pd.date_range("2020-01-01", periods=N_ROW), np.datetime64("2020-01-01")),
    ],
)
def test_any_index_names_rows_of_draws(index, first, model, frame):
    bj.set_rows(model, frame.set_axis(index))
    assert model.coords["x_obs_id"][0] == first
    idata = pm.sample(draws=1, tune=1, model=model, **QUIET)
    assert idata["observed_data"].sizes["x_obs_id"] == N_ROW


def test_draws_and_models_that_are_none_are_told(model, frame):
    idata = pm.sample(draws=2, tune=1, model=model, **QUIET)
    for draws in (idata.isel(draw=slice(0, 0)), idata.isel(draw=1), None, "x", {}):
        with pytest.raises(ModelError):
            bj.Posterior.from_idata(draws, model)
    for ask in (
        lambda: bj.Posterior.from_idata(idata, 5),
        lambda: bj.set_rows(None, frame),
        lambda: bj.predict(None, model, frame, targets=["kids"]),
        lambda: bj.select_column(None, "height"),
    ):
        with pytest.raises(ModelError, match="of type"):
            ask()
    for targets in (None, 5, ["height", 5]):
        with pytest.raises(QueryError, match="targets"):
            bj.predict(idata, model, frame, targets=targets)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a/b", {}),
        (5, {}),
        ("", {}),
        ("z", {"dims": "q"}),
        ("z", {"columns": 5}),
        ("z", {"n": True}),
        ("z", {"observed": np.zeros(3)}),
    ],
)
def test_options_of_a_prior_that_contradict_each_other_are_refused(name, options, post):
    with pm.Model() as model, pytest.raises(ModelError):
        bj.CircuitPrior(name, post, **{"n": 2, "columns": "height"} | options)
    assert not model.named_vars


def test_groups_of_dates_are_asked_for_as_they_are_written(circuit, table):
    days = pd.date_range("2020-01-01", periods=2)
    with pm.Model() as model:
        bj.CircuitMixture("x", circuit, table, group=np.repeat(days.to_numpy(), N_ROW // 2))
    idata = pm.sample(draws=1, tune=1, model=model, **QUIET)
    found = [bj.Posterior.from_idata(idata, model, group=day) for day in ("2020-01-02", days[1], days[1].to_numpy())]
    assert all(np.array_equal(found[0].params.log_weight, other.params.log_weight) for other in found)
    with pytest.raises(ModelError, match="2020-01-01"):
        bj.Posterior.from_idata(idata, model, group="2021-01-01")
    with pm.Model(), pytest.raises(ModelError, match="one type"):
        bj.CircuitMixture("x", circuit, table, group=["a", 1] * (N_ROW // 2))


STARTS = {
    "not finite": ("x_normal_mu", [np.nan, np.nan], "x_normal_mu that are not finite"),
    "negative": ("x_normal_variance", [-1.0, -1.0], "x_normal_variance: normal_variance holds -1"),
    "no shares": ("x_sum_weights", [0.9, 0.9], "x_sum_weights: sum_weights holds numbers that are no shares"),
    "negative factor": ("x_normal_scale", [-1.0], "x_normal_scale with numbers not above 0"),
    "too few": ("x_normal_variance", [1.0], r"x_normal_variance of shape \(1,\); expected \(2,\).*x_normal_leaf"),
    "too many": ("x_sum_weights", [0.2, 0.3, 0.5], r"x_sum_weights of shape \(3,\); expected \(2,\).*x_edge"),
    "a number": ("x_normal_mu", 0.5, r"x_normal_mu of shape \(\)"),
    "texts": ("x_normal_mu", ["a", "b"], "x_normal_mu that are no numbers"),
    "ragged": ("x_normal_mu", [[1.0, 2.0], [1.0]], "x_normal_mu that are no numbers"),
    "a word": ("x_normal_mu", "mean", "x_normal_mu: 'mean'; expected numbers, 'support_point', 'prior'"),
    "unknown": ("x_normal_mean", [0.0, 0.0], "x_normal_mean, which is no free variable of 'x'; .*x_sum_weights"),
    "the rows": ("x", [1.0], "x, which is no free variable"),
}


@pytest.fixture(scope="module", params=[False, True], ids=["sweeps", "transforms"])
def begun(request, circuit, table):
    return bj.build_model(circuit, table, transforms=request.param)


@pytest.mark.parametrize(("name", "value", "match"), STARTS.values(), ids=STARTS)
def test_a_start_that_is_no_value_of_its_variable_is_named(name, value, match, begun):
    """Before PyMC makes a graph of it, whose errors are about types of PyTensor's; names it passes over."""
    for starts in ({name: value}, [{}, {name: value}]):
        with pytest.raises(ModelError, match=f"starting values of {match}"):
            make_initial_point_fns_per_chain(model=begun, overrides=starts, chains=2)


def test_starts_are_checked_by_pm_sample(model):
    for starts in ({"x_normal_mu": np.zeros(1)}, [{"x_normal_mu": np.zeros(1)}]):
        with pytest.raises(ModelError, match=r"x_normal_mu of shape \(1,\); expected \(2,\)"):
            pm.sample(draws=1, tune=1, model=model, initvals=starts, **QUIET)


def test_deterministics_among_starts_are_passed_over(begun):
    """`pm.find_MAP` returns them beside the variables' values; PyMC passes over them, too."""
    names = [each.name for each in begun.deterministics]
    assert "x_type_weights" in names
    start = {name: np.full(3, np.nan) for name in names} | {"x_normal_mu": np.array([1.0, 2.0])}
    (make,) = make_initial_point_fns_per_chain(model=begun, overrides=start, chains=1)
    point = make(0)
    assert point["x_normal_mu"].tolist() == [1.0, 2.0]
    assert not set(names) & set(point)


def test_values_of_a_point_on_both_scales_are_no_faults_of_ours(begun):
    """Whether PyMC takes those on the whole line is another matter: it does not where bounds are variables."""
    values = {name: np.asarray(value) for name, value in begun.initial_point(0).items()}
    check_starts(begun, values)


def test_starts_on_the_whole_line_are_checked_and_those_of_other_variables_are_not(circuit, table):
    model = bj.build_model(circuit, table, transforms=True)
    with pytest.raises(ModelError, match=r"x_normal_variance_abovefloor__ of shape \(1,\); expected \(2,\)"):
        check_starts(model, {"x_normal_variance_abovefloor__": np.zeros(1)})
    check_starts(model, {"x_normal_variance_abovefloor__": np.zeros(2), model["x_normal_mu"]: np.zeros(2)})
    check_starts(model, {"x_normal_mu": None, "x_sum_weights": "prior", "slope": np.zeros(7)})


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("y_variance", np.array([-1.0, 1.0]), "y_variance with numbers not above 0"),
        ("y_step", np.full((3, 2), np.nan), "y_step that are not finite"),
        ("y_step", np.zeros((2, 2)), r"y_step of shape \(2, 2\); expected \(3, 2\).*y_node and y_covariate"),
        ("y_coefficients", np.zeros((3, 2)), "y_coefficients, which is no free variable of 'y'"),
    ],
)
def test_a_start_of_a_tree_that_is_none_is_named(name, value, match, frame):
    """A negative variance or NaN were taken, and all draws were NaN."""
    with pm.Model() as model:
        bj.ExpertTree("y", frame[["height"]], frame["kids"].to_numpy(np.float64), depth=1, experts="gaussian")
    check_starts(model, {"y_variance": np.ones(2), "y_step": np.zeros((3, 2)), "y_noise": 1.0})
    with model, pytest.raises(ModelError, match=f"starting values of {match}"):
        pm.sample(draws=1, tune=1, initvals={name: value}, **QUIET)


def test_a_start_that_set_initval_put_into_the_model_is_named(model):
    model.set_initval(model["x_normal_variance"], np.full(2, -1.0))
    with pytest.raises(ModelError, match="starting values of x_normal_variance"):
        pm.sample(draws=1, tune=1, model=model, **QUIET)


def test_a_prior_from_a_joint_tree_of_default_likelihoods_is_that_of_its_draws():
    rng = np.random.default_rng(2)
    x = np.where(rng.random(300) < 0.3, rng.normal(0.0, 0.1, 300), rng.normal(10.0, 0.1, 300))
    table = bj.as_table(pd.DataFrame({"x": x, "z": rng.normal(size=300)}))
    post = bj.fit(table, "jpt", n_structures=1, draws=2, tune=2, chains=1, seed=1, progress=False)
    at = np.array([-0.3, 0.0, 0.1, 1.0, 5.0, 9.9, 10.0, 10.2])
    cells = bj.CircuitPrior.dist(post, "x", max_draws=10)
    density = np.exp(post.marginal(["x"]).log_density(pd.DataFrame({"x": at})).values).mean(axis=(0, 1))
    np.testing.assert_allclose(np.exp(pm.logp(cells, at).eval()), density, rtol=1e-12, atol=1e-300)
    below = post.cdf(at, "x").values.reshape(-1, at.size).mean(axis=0)
    np.testing.assert_allclose(np.exp(pm.logcdf(cells, at).eval()), below, rtol=1e-12)
    with pm.Model() as model:
        pm.Data("seen_data", np.zeros(3))
        bj.CircuitPrior("seen", post, 3, columns="x", observed=model["seen_data"])
    assert np.isfinite(model.point_logps()["seen"])
