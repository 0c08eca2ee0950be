"""Several responses that share an `ExpertTree`: a product at each leaf, by the definition, and PyMC's functions."""

from __future__ import annotations

import datetime
import itertools
import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import scipy.special
import scipy.stats

import bayesjpt as bj
from bayesjpt import ExpertPosterior
from bayesjpt.defaults_experts import precision_bounds
from bayesjpt.errors import BayesjptWarning, ModelError, TableError
from bayesjpt.experts.fit import make_model
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.kernels.expert_tree import KIND_NAMES
from bayesjpt.model.expert_responses import read_responses
from bayesjpt.model.expert_step import ExpertGibbs

N_ROW = 12
LACKS = 5
"""A row without a value of a response."""
N_DRAW = 15
QUIET = {"cores": 1, "random_seed": 1, "progressbar": False, "compute_convergence_checks": False}


def rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.normal(size=N_ROW), "side": np.tile(["l", "r"], N_ROW // 2)})
    Y = pd.DataFrame(
        {
            "height": rng.normal(2.0, 3.0, N_ROW),
            "sick": np.tile(["no", "yes", "no"], N_ROW // 3),
            "color": np.tile(["u", "v", "w", "w"], N_ROW // 4),
            "visits": rng.poisson(3.0, N_ROW),
            "failure": rng.gamma(2.0, 1.0, N_ROW),
        }
    )
    Y.loc[LACKS, "height"] = np.nan
    return X, Y


def a_point(model: pm.Model, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0.0, 0.5, np.shape(value)) for name, value in model.initial_point().items()}


def at_leaves(model: pm.Model, point: dict, x: np.ndarray, Y: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return each response's log density at each leaf, (row, leaf), by SciPy from the model's variables."""
    out = {}
    for name in Y:
        if name in ("visits", "failure"):  # bounded from below: PyMC's value is the logarithm of what lies above
            _, ((root,), (other,)) = precision_bounds([True], 2, depth=2)
            precision = np.exp(point[f"y_precision_{name}_interval__"]) + np.array([root, other, other])
        else:
            precision = np.exp(point[f"y_precision_{name}_log__"])
        deviation = precision**-0.5
        step, depth = point[f"y_step_{name}"], deviation.size - 1
        node = step * deviation[np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))].reshape(
            -1, *[1] * (step.ndim - 1)
        )
        for number in range(1, len(node)):
            node[number] += node[(number - 1) // 2]
        eta = np.einsum("rk,l...k->rl...", x, node[2**depth - 1 :])
        y = Y[name].to_numpy()
        if name == "height":
            seen = y[~np.isnan(y)]
            sd = seen.std() * np.exp(0.5 * point["y_variance_height_log__"])
            out[name] = scipy.stats.norm.logpdf(y[:, None], y[Y.notna().all(axis=1)].mean() + seen.std() * eta, sd)
        elif name == "sick":
            out[name] = np.log(scipy.special.expit(np.where((y == "yes")[:, None], eta, -eta)))
        elif name == "color":
            code = np.unique(y, return_inverse=True)[1]
            out[name] = scipy.special.log_softmax(eta, axis=2)[np.arange(len(y)), :, code]
        else:
            mean = np.exp(np.log(y[Y.notna().all(axis=1)].mean()) + eta)
            shape = np.exp(point.get("y_shape_failure_log__", 0.0))
            out[name] = (
                scipy.stats.poisson.logpmf(y[:, None], mean)
                if name == "visits"
                else scipy.stats.gamma.logpdf(y[:, None], shape, scale=mean / shape)
            )
    return out


@pytest.fixture(scope="module")
def several():
    """Return a model of five kinds of responses, its tree, and a few draws of it with all that PyMC adds."""
    X, Y = rows()
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        with pytest.warns(BayesjptWarning, match="1 row without a value of some response has a log density of 0"):
            tree = bj.ExpertTree("y", X, Y, depth=2, experts={"failure": "gamma"})
        idata = pm.sample(draws=N_DRAW, tune=5, chains=2, **QUIET)
        pm.compute_log_likelihood(idata, progressbar=False)
        own = {"random_seed": 1, "progressbar": False}
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, **own)
        pm.set_data({"y_covariates": bj.ExpertTree.matrix(tree, X.head(4))})
        idata["predictions"] = pm.sample_posterior_predictive(idata, predictions=True, **own)["predictions"]
        pm.set_data({"y_covariates": bj.ExpertTree.matrix(tree, X)})
    return model, tree, idata


def test_log_density_is_the_sum_over_paths_of_products(several):
    model, tree, _ = several
    (X, Y), point = rows(), a_point(model, 3)
    x = np.column_stack([np.ones(N_ROW), bj.ExpertTree.matrix(tree, X)])
    right = scipy.special.expit(x @ point["y_gate"].T)
    weight = np.stack(
        [
            np.prod([right[:, g] if way else 1.0 - right[:, g] for g, way in ((0, one), (1 + one, two))], axis=0)
            for one, two in itertools.product((0, 1), repeat=2)
        ],
        axis=1,
    )
    each = at_leaves(model, point, x, Y)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        found = model.compile_logp(vars=model.observed_RVs, sum=False)(point)[0]
        slope = model.compile_dlogp()(point)
    seen = Y.notna().all(axis=1).to_numpy()
    expected = np.log((weight * np.exp(sum(each.values()))).sum(axis=1))
    np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-12, atol=1e-12)
    assert abs(found[LACKS]) < 1e-12
    assert np.isfinite(slope).all()
    for left_out in each:
        wrong = np.log((weight * np.exp(sum(own for name, own in each.items() if name != left_out))).sum(axis=1))
        assert np.abs(found - wrong)[seen].min() > 1e-3


def test_a_point_and_the_coefficients_of_a_sweep_say_the_same(several):
    model, _, _ = several
    step, point = ExpertGibbs(model=model), a_point(model, 4)
    again = step._values(step._state(point))
    assert set(again) == set(point)
    for name, value in point.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-12, atol=1e-12)
    assert [KIND_NAMES[kind] for kind in step._task.kind] == ["gaussian", "logistic", "multinomial", "poisson", "gamma"]
    assert step._task.y.shape == (5, N_ROW - 1)


def test_variables_and_answers_of_pymc_have_names_of_responses(several):
    model, _, idata = several
    for kind, own in (("step", "height sick color visits failure"), ("variance", "height"), ("shape", "failure")):
        assert {rv.name for rv in model.free_RVs if rv.name.startswith(f"y_{kind}")} == {
            f"y_{kind}_{name}" for name in own.split()
        }
    assert idata.posterior["y_coefficient_color"].coords["y_label_color"].values.tolist() == ["u", "v", "w"]
    drawn = idata.posterior_predictive["y"]
    assert drawn.sizes == {"chain": 2, "draw": N_DRAW, "y_row": N_ROW, "y_response": 5}
    assert set(np.unique(drawn.sel(y_response="color"))) <= {0.0, 1.0, 2.0}
    assert (drawn.sel(y_response="failure") > 0.0).all()
    assert idata.predictions["y"].sizes["y_row"] == 4
    observed = idata.observed_data["y"]
    assert np.isnan(observed.sel(y_row=LACKS)).all()
    assert int(np.isnan(observed).any("y_response").sum()) == 1
    assert idata.log_likelihood["y"].sizes == {"chain": 2, "draw": N_DRAW, "y_row": N_ROW}
    known = (
        idata.copy()
    )  # but for the row without cells, whose log density is 0 up to rounding: ArviZ smooths no constants
    known["log_likelihood"] = known["log_likelihood"].isel(y_row=np.flatnonzero(np.arange(N_ROW) != LACKS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of so few draws
        assert np.isfinite(az.loo(known).elpd)


def test_the_posterior_of_the_draws_is_asked_about_several_responses(several):
    model, _, idata = several
    X, Y = rows()
    post = ExpertPosterior.from_idata(idata, model)
    seen = Y.notna().all(axis=1).to_numpy()
    found = post.log_density(X.join(Y)).to_numpy()[..., seen]
    np.testing.assert_allclose(found, idata.log_likelihood["y"].to_numpy()[..., seen], rtol=1e-11)
    # given the leaf responses are independent; over leaves they are not
    joint = post.probability("height > 2 and sick = 'yes'", X).to_numpy()
    product = post.probability("height > 2", X).to_numpy() * post.probability("sick = 'yes'", X).to_numpy()
    assert ((joint > 0.0) & (joint < 1.0)).all()
    assert np.abs(joint - product).max() > 1e-4
    assert post.model.targets == tuple(Y)


def test_draws_of_another_model_are_refused(several):
    """Kernels would read past the end of arrays, and other labels would take the names of these."""
    model, _, idata = several
    X, Y = rows()
    for other, message in (
        ({"X": X[["x"]]}, r"draws of 'y_coefficient_height' of shape \(7, 3\); expected \(7, 2\)"),
        ({"X": X.rename(columns={"x": "z"})}, "along intercept, x, side=r; expected intercept, z, side=r"),
        ({"y": Y.replace({"color": {"w": "q"}})}, "along u, v, w; expected q, u, v"),
        ({"y": Y.replace({"color": {"w": "v"}})}, r"shape \(7, 3, 3\); expected \(7, 3\)"),
        ({"depth": 1}, r"'y_precision_height' of shape \(3,\); expected \(2,\)"),
        ({"time": range(N_ROW)}, "the draws hold no 'y_offset'"),
        ({"y": Y.assign(height=Y["height"] + 1e-3)}, "draws given other values of 'y' than the model's"),
        ({"y": Y.assign(height=Y["height"].fillna(1.0))}, "draws given other values of 'y' than the model's"),
    ):
        with pm.Model() as wrong, warnings.catch_warnings():
            warnings.simplefilter("ignore", BayesjptWarning)
            bj.ExpertTree("y", **{"X": X, "y": Y, "depth": 2, "experts": {"failure": "gamma"}} | other)
        with pytest.raises(ModelError, match=message):
            ExpertPosterior.from_idata(idata, wrong)
    for wrong, message in (
        (None, "a NoneType in place of a model"),
        (pm.Model(), "Pass the model that bj.ExpertTree was built in"),
    ):
        with pytest.raises(ModelError, match=message):
            ExpertPosterior.from_idata(idata, wrong)
    for empty in (None, {"prior": idata.posterior}):
        with pytest.raises(ModelError, match="without a group posterior"):
            ExpertPosterior.from_idata(empty, model)
    with pytest.raises(ModelError, match="no tree of experts 'z'"):
        ExpertPosterior.from_idata(idata, model, "z")
    with pytest.raises(ModelError, match="hold no 'y_precision_height'"):
        ExpertPosterior.from_idata({"posterior": idata.posterior.to_dataset().drop_vars("y_precision_height")}, model)


@pytest.mark.filterwarnings("ignore:.* rows? without a value")
def test_sweeps_are_those_of_fit_experts():
    X, Y = rows()
    Y, n_draw = Y[["height", "sick", "color", "visits"]], 4
    with pm.Model() as model:
        bj.ExpertTree("y", X, Y, depth=2)
    own = {"target": list(Y), "kinds": {"visits": "integer"}, "depth": 2}
    post = bj.fit_experts(X.join(Y), draws=n_draw, tune=0, chains=1, rng=1, **own)
    step = ExpertGibbs(model=model)
    step.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(1).spawn(1)[0]))
    # where chains of fit_experts begin
    point = model.initial_point() | {"y_variance_height_log__": np.zeros(4)}
    for draw in range(n_draw):
        point, _ = step.step(point)
        state = step._state(point)
        assert abs(state.noise[0] / post.coefficients.noise[0, draw, 0] - 1.0) < 1e-6
        for name in ("gate", "node", "dispersion", "precision"):
            expected = getattr(post.coefficients, name)[0, draw]
            np.testing.assert_allclose(getattr(state, name), expected, rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.fixture(scope="module")
def over_time():
    """Return a model of two responses of a short series, its rows, and a few draws."""
    X, Y = rows()
    X, Y = X.assign(t=np.arange(N_ROW))[["t", "x"]].head(7), Y[["height", "sick"]].head(7)
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        with pytest.warns(BayesjptWarning, match="1 row without a value of some response is a step without any"):
            tree = bj.ExpertTree("y", X, Y, depth=1, time="t")
        idata = pm.sample(draws=2, tune=3, chains=1, **QUIET)
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.set_data(bj.ExpertTree.data(tree, X.head(3)))
        own = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False, predictions=True)
        idata["predictions"] = own["predictions"]
        pm.set_data(bj.ExpertTree.data(tree, X))
    return model, tree, idata, (X, Y)


def test_log_density_over_time_is_the_sum_over_all_paths(over_time):
    model, tree, _, (X, Y) = over_time
    point = a_point(model, 5)
    x = np.column_stack([np.ones(len(X)), bj.ExpertTree.matrix(tree, X.drop(columns="t"))])
    leaves = np.where(Y.notna().all(axis=1).to_numpy()[:, None], sum(at_leaves(model, point, x, Y).values()), 0.0)
    base, offset = x @ point["y_gate"][0], point["y_offset"][0]
    total = []
    for path in itertools.product((0, 1), repeat=len(X)):
        odds = base + np.r_[0.0, offset[list(path[:-1])]]
        way = np.where(path, 1.0, -1.0)
        total.append(np.log(scipy.special.expit(way * odds)).sum() + leaves[np.arange(len(X)), path].sum())
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        found = model.compile_logp(vars=model.observed_RVs, sum=False)(point)[0]
    np.testing.assert_allclose(found.sum(), scipy.special.logsumexp(total), rtol=1e-12)
    assert abs(found[LACKS]) < 1e-12


def test_draws_over_time_are_asked_about_several_responses(over_time):
    model, _, idata, (X, Y) = over_time
    assert idata.predictions["y"].sizes == {"chain": 1, "draw": 2, "y_row": 3, "y_response": 2}
    post = ExpertPosterior.from_idata(idata, model)
    # up to the row that lacks a response, of which a question sees the other
    found = post.log_density(X.join(Y)).to_numpy()[..., :LACKS]
    np.testing.assert_allclose(found, idata.log_likelihood["y"].to_numpy()[..., :LACKS], rtol=1e-11)
    with pm.Model() as named_as_time:
        bj.ExpertTree("t", X, Y["sick"], depth=1, time="t")
    with pytest.raises(ModelError, match="'t' is both response and time"):
        ExpertPosterior.from_idata(idata, named_as_time)


def test_responses_may_depend_on_random_covariates_and_be_data():
    values = np.random.default_rng(2).normal(size=(N_ROW, 2))
    with pm.Model() as model:
        latent, data = pm.Normal("latent", shape=(N_ROW, 1)), pm.Data("data", values)
        bj.ExpertTree("y", latent, data, depth=1)
        bj.ExpertTree("z", values[:, :1], bj.as_table(rows()[1][["sick", "failure"]]), depth=1)
    assert not any(ExpertGibbs.competence(rv, True) for rv in model.free_RVs if rv.name.startswith("y"))
    assert {rv.name for rv in model.free_RVs if rv.name.startswith("y_step")} == {"y_step_column_1", "y_step_column_2"}
    assert np.isfinite(list(model.point_logps().values())).all()
    assert "y_data" not in model.named_vars
    assert ExpertGibbs(model=model)._task.kind.tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore:.* rows? without a value")
def test_what_makes_no_sense_is_refused():
    X, Y = rows()
    for own, message in (
        ({"experts": {"weight": "gamma"}}, "experts of weight"),
        ({"experts": {"height": "poisson"}}, "poisson experts for the values of 'height'"),
        ({"experts": {"height": 3}}, "experts=3"),
        ({"X": X.assign(sick=X["side"])}, "column 'sick' is both response and covariate"),
        ({"time": range(N_ROW), "y": Y.rename(columns={"height": "time"})}, "'time' is both response and time"),
        (
            {"X": X.assign(t=range(N_ROW)), "time": "t", "series": "side", "y": Y.rename(columns={"sick": "side"})},
            "'side' is both response and series",
        ),
        ({"X": X.head(3)}, "3 rows for 12 values"),
        ({"y": Y.assign(visits=np.inf)}, "'visits' has infinite values"),
        ({"y": Y.assign(visits=np.nan)}, "'visits' without any value"),
        ({"y": Y.assign(visits=np.where(np.arange(N_ROW) == LACKS, 1.0, np.nan))}, "no row of 'y' has a value of"),
        ({"y": np.zeros((2, 2, 2))}, "3 axes"),
    ):
        with pm.Model(), pytest.raises(ModelError, match=message):
            bj.ExpertTree("y", **{"X": X, "y": Y, "depth": 1} | own)


def kinds_of(y: object) -> list[tuple[str, tuple[str, ...]]]:
    """Return each response's kind of expert, and the labels of its column."""
    read = read_responses("y", y, "auto")
    return [(KIND_NAMES[kind], column.labels) for kind, column in zip(read.kinds, read.table.schema, strict=True)]


def test_labels_are_those_that_are_declared():
    for present, declared in (("ac", "abc"), ("ac", "ca"), ("a", "ab")):
        labels = pd.Categorical(list(present) * 4, categories=list(declared))
        kind = "logistic" if len(declared) == 2 else "multinomial"
        assert kinds_of(pd.Series(labels)) == [(kind, tuple(declared))]
    assert kinds_of(["a"] * 4) == [("multinomial", ("a",))]


def test_a_table_keeps_the_kinds_and_labels_of_its_schema():
    Y = rows()[1][["color", "visits"]].assign(code=np.tile([1, 2, 3], N_ROW // 3))
    declared = bj.as_table(Y, kinds={"visits": "real", "code": "category"})
    assert kinds_of(declared) == [
        ("multinomial", ("u", "v", "w")),
        ("gaussian", ()),
        ("multinomial", ("1", "2", "3")),
    ]
    assert [kind for kind, _ in kinds_of(declared.to_frame())] == ["multinomial", "poisson", "poisson"]
    chosen = make_model(declared, ExpertSettings(target=list(Y), given=[], depth=0))[0].experts
    assert [kind for kind, _ in kinds_of(declared)] == list(chosen)
    with pytest.raises(ModelError, match="poisson experts for the values of 'visits'; expected one of gaussian"):
        read_responses("y", declared, {"visits": "poisson"})
    # of new rows a label that the schema does not know
    with pytest.warns(BayesjptWarning):
        new = bj.as_table(Y.replace({"color": {"u": "q"}}), schema=declared.schema)
    with pytest.warns(BayesjptWarning, match="3 rows with a label of y that its schema does not know"):
        read = read_responses("y", new, "auto")
    assert read.table.schema.columns[0].labels == ("u", "v", "w")
    np.testing.assert_array_equal(read.seen, Y["color"] != "u")


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        [-1, 1],
        [3.0, 7.0],
        [0, 1, 2],
        [True, False],
        [datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)],
        [datetime.datetime(1970, 1, 1) + datetime.timedelta(days=2.0**k) for k in range(12)],
        [2.0**k / 7.0 for k in range(12)],
        [1e-200, 2e-200, -3e-200],
    ],
)
def test_experts_are_those_of_fit_experts(values):
    y = (values * N_ROW)[:60]
    frame = pd.DataFrame({"x": np.sin(np.arange(len(y))), "y": y})
    model = make_model(frame, ExpertSettings(target="y", depth=0))[0]
    read = read_responses("y", frame["y"], "auto")
    assert KIND_NAMES[read.kinds[0]] == model.experts[0]
    if model.experts[0] == "gaussian":
        column = model.response.columns[0]
        np.testing.assert_allclose([read.each[0].scale, read.each[0].offset], [column.scale, column.location])


def test_two_labels_may_be_multinomial_and_data_are_not_recoded():
    y = np.tile([1.0, 2.0], N_ROW // 2)
    assert read_responses("y", y, "multinomial").each[0].labels == ("1", "2")
    with pm.Model():
        assert kinds_of(pm.Data("data", y)) == [("poisson", ())]
        assert kinds_of(pm.Data("codes", y - 1.0)) == [("logistic", ("0", "1"))]
    X = rows()[0]
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        bj.ExpertTree("y", X, y, depth=1, experts="multinomial")
        step = ExpertGibbs(model=model)
    point = step.step(model.initial_point())[0]
    assert all(np.isfinite(value).all() for value in point.values())


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1e200, 2.5, 1.0] * 4, TableError, r"column 'y' holds 1e\+200; expected numbers below 1e\+150"),
        ([0.1] * N_ROW, ModelError, "response 'y' is 0.1 in each row, of gaussian experts"),
        (
            [datetime.timedelta(k) for k in range(N_ROW)],
            ModelError,
            "response 'y' is of type timedelta in row 1: lengths",
        ),
        (np.arange(N_ROW).astype("m8[D]"), ModelError, r"of type timedelta64\[D\]: lengths of time"),
        (np.arange(N_ROW).astype("m8[ns]"), ModelError, r"of type timedelta64\[ns\]: lengths of time"),
    ],
)
def test_values_without_an_answer_are_refused(y, error, message):
    with pm.Model(), pytest.raises(error, match=message):
        bj.ExpertTree("y", rows()[0], y, depth=1)


def test_constant_positive_numbers_have_no_gamma_experts():
    with pytest.raises(ModelError, match="response 'y' is 3 in each row, of gamma experts"):
        read_responses("y", [3] * N_ROW, "gamma")


@pytest.mark.filterwarnings("ignore:.* rows? without a value")
def test_names_with_a_slash_are_refused_before_anything_is_made():
    X, Y = rows()
    for name, y, message in (
        ("a/b", Y["sick"], "a tree of experts named 'a/b'; expected a name without a slash"),
        ("y", Y.rename(columns={"sick": "a/b"}), "response 'a/b'; expected a name without a slash.* Rename it"),
    ):
        with pm.Model() as model, pytest.raises(ModelError, match=message):
            bj.ExpertTree(name, X, y, depth=1)
        assert not model.named_vars
    with pm.Model() as model:
        bj.ExpertTree("y", X.rename(columns={"x": "a/b"}), Y["sick"], depth=1)
    assert list(model.coords["y_covariate"]) == ["intercept", "a/b", "side=r"]


def test_draws_of_values_that_were_set_since_are_those_of_the_model():
    values = np.random.default_rng(3).normal(size=N_ROW)
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        data = pm.Data("data", values)
        bj.ExpertTree("y", rows()[0], data, depth=1)
        pm.set_data({"data": values[::-1].copy()})
        idata = pm.sample(draws=2, tune=2, chains=1, **QUIET)
        assert ExpertPosterior.from_idata(idata, model).targets == ("y",)
        pm.set_data({"data": values + 1.0})
        with pytest.warns(BayesjptWarning, match="values of 'y' than the model's, which have been set"):
            ExpertPosterior.from_idata(idata, model)
        pm.set_data({"data": values})
        with pytest.raises(ModelError, match="draws given other values of 'y' than the model's"):
            ExpertPosterior.from_idata(idata, model)


@pytest.mark.parametrize(("experts", "value"), [("gaussian", 0.0), ("gamma", 1.0)])
def test_data_may_stand_for_values_that_are_set_later(experts, value):
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        bj.ExpertTree("y", rows()[0], pm.Data("data", np.full(N_ROW, value)), depth=1, experts=experts)
        assert np.isfinite(model.compile_logp()(model.initial_point()))


@pytest.mark.parametrize("values", [1e6 + 1e-7 * np.arange(N_ROW), 1e-290 * np.sin(np.arange(N_ROW))])
def test_values_that_are_nearly_one_are_no_constant(values):
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        bj.ExpertTree("y", rows()[0], values, depth=1)
        assert np.isfinite(model.compile_logp()(model.initial_point()))


def test_a_constant_covariate_is_told_of_once():
    X = rows()[0].assign(same=np.r_[np.full(N_ROW - 1, 2.5), 2.5])
    with pytest.warns(BayesjptWarning, match="constant columns"):
        table = bj.as_table(X)
    late = X.assign(same=np.r_[1.0, np.full(N_ROW - 1, 2.5)])
    for given, y, words in (
        (X, range(N_ROW), ["constant columns, which say nothing about others: 'same'"]),
        (table, range(N_ROW), ["covariates with a single value are left out: same"]),
        # in the rows that have a value of y
        (
            late,
            [None, *range(1, N_ROW)],
            [
                "1 row without a value of the response has a log density of 0",
                "covariates with a single value are left out: same",
            ],
        ),
    ):
        with pm.Model() as model, pytest.warns(BayesjptWarning) as told:
            bj.ExpertTree("y", given, y, depth=1)
        assert [str(each.message) for each in told] == words
        assert list(model.coords["y_covariate"]) == ["intercept", "x", "side=r"]
