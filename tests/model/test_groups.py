"""Blocks whose rows have groups: density by definition, NUTS against quadrature, draws, and queries by group."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats

import bayesjpt as bj
from bayesjpt.circuit.arrays import start_params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.priors import make_priors
from bayesjpt.errors import ModelError
from bayesjpt.model.groups import FrozenGroups, GroupedRows, Groups, flat_weights, group_weights
from bayesjpt.model.priors import weight_variable
from tests import examples as ex
from tests import naive
from tests.conftest import SEED
from tests.model.conftest import QUICK

TOLERANCE = 1e-9
N_ERRORS = 4.5
"""Monte Carlo errors by which an estimate may differ from what it estimates."""
KAPPA = 4.0
SIX = ex.only("normal", "gamma", "exponential", "poisson", "geometric", "categorical")


def make_case(rng):
    """Return a table of three columns with missing cells, a two-level circuit, and the group of each row."""
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 14, rng, missing=0.2)
    return table, ex.two_level(table, dictionary=SIX), rng.permutation(["DE", "FR", "IT"] * 4 + ["FR", "FR"])


@pytest.fixture
def case(rng):
    """Return what `make_case` makes, for each test anew."""
    return make_case(rng)


def values_at(model, point: dict) -> dict:
    """Return {name: value on its own scale} of the free variables at a point."""
    free = model.free_RVs
    return dict(zip([rv.name for rv in free], evaluated(model, model.replace_rvs_by_values(free), point), strict=True))


def evaluated(model, expressions, point: dict):
    """Return the values at a point of expressions of the model's value variables."""
    return model.compile_fn(expressions, inputs=model.value_vars, on_unused_input="ignore")(point)


def test_density_is_that_of_each_groups_rows_under_its_own_weights(case, rng):
    table, circuit, group = case
    model = bj.build_model(circuit, table, transforms=True, group=group, kappa=KAPPA)
    point = {k: value + rng.normal(0.0, 0.3, value.shape) for k, value in model.initial_point().items()}
    values = values_at(model, point)
    found = evaluated(model, model.logp(vars=model["x"], sum=False)[0], point)
    layout = make_layout(circuit, table.schema)
    expected = np.empty(table.n_row)
    for k, label in enumerate(["DE", "FR", "IT"]):
        named = {name: values[f"x_{name}"] for name in layout.names()}
        named["sum_weights"] = values["x_group_sum_weights"][k]
        rows = np.flatnonzero(group == label)
        expected[rows] = naive.log_values(circuit, layout.join(circuit, named), table.take(rows))
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_weights_of_groups_have_a_dirichlet_prior_around_the_shared_ones(case, rng):
    table, circuit, group = case
    with pm.Model() as model:
        kappa = pm.HalfNormal("kappa", 10.0)
        bj.CircuitMixture("x", circuit, table, transforms=True, group=group, kappa=kappa)
    point = {k: value + rng.normal(0.0, 0.3, value.shape) for k, value in model.initial_point().items()}
    values = values_at(model, point)
    weights = model["x_group_sum_weights"]
    logp = evaluated(model, model.logp(vars=weights, jacobian=False, sum=False)[0], point)
    (ptr,) = (w.ptr for w in make_layout(circuit, table.schema).weights if w.name == "sum_weights")
    shared = values["x_sum_weights"]
    expected = [
        sum(
            stats.dirichlet.logpdf(own[lo:hi] / own[lo:hi].sum(), values["kappa"] * shared[lo:hi])
            for lo, hi in itertools.pairwise(ptr)
        )
        for own in values["x_group_sum_weights"]
    ]
    np.testing.assert_allclose(logp, expected, rtol=1e-7)
    assert model.named_vars_to_dims["x_group_sum_weights"] == ("x_group", "x_edge")
    assert model.coords["x_group"] == ("DE", "FR", "IT")
    assert "x_group_likelihood_weights" not in model  # dictionaries are shared
    assert np.isfinite(model.compile_dlogp()(point)).all()


def mixture_of_two(rng):
    """Return a table of one column, and a mixture of two normals over it."""
    table = ex.make_table((ex.REAL,), 9, rng)
    return table, ex.mixture(table, dictionary=ex.only("normal"))


def beta_grid(n: int) -> np.ndarray:
    return (np.arange(n) + 0.5) / n


def exact_means(likelihood: np.ndarray, group: np.ndarray, gamma: float, kappa: float) -> np.ndarray:
    """Return the posterior means of the first shared weight, and of each group's, by quadrature.

    `likelihood` (n_row, 2) are the rows' densities under the two components. Given the shared weight p the groups are
    independent, and a product of rows' mixtures is a polynomial in w, whose expectation under the beta distribution of
    a group is known; it is summed up over all allocations.
    """
    shared = beta_grid(2000)
    log_joint = stats.beta.logpdf(shared, gamma, gamma)
    means = []
    for label in np.unique(group):
        a, b = kappa * shared, kappa * (1.0 - shared)
        evidence, first = np.zeros_like(shared), np.zeros_like(shared)
        own = likelihood[group == label]
        for choice in itertools.product((0, 1), repeat=len(own)):
            n = np.array([choice.count(0), choice.count(1)])
            rising = np.exp(
                sum(np.log(a + j) for j in range(n[0]))
                + sum(np.log(b + j) for j in range(n[1]))
                - sum(np.log(kappa + j) for j in range(n.sum()))
            )
            weight = rising * np.prod(own[np.arange(len(own)), list(choice)])
            evidence += weight
            first += weight * (a + n[0]) / (kappa + n.sum())
        log_joint = log_joint + np.log(evidence)
        means.append(first / evidence)
    posterior = np.exp(log_joint - log_joint.max())
    posterior /= posterior.sum()
    return np.array([posterior @ each for each in (shared, *means)])


def with_fixed_leaves(circuit, table, group, gamma: float, leaves: tuple) -> None:
    """Register weights as a block does, and rows whose normals have given means and variances."""
    layout, groups = make_layout(circuit, table.schema), Groups(group, table.n_row)
    frozen = FrozenGroups(
        circuit,
        table.schema,
        make_priors(circuit, table.schema, layout, gamma=gamma, alpha=1.0, prior="default"),
        groups=groups,
    )
    (variable,) = layout.weights
    pm.modelcontext(None).add_coord("x_edge", list(variable.labels))
    start = layout.split(start_params(circuit))
    shared = weight_variable("x_sum_weights", "x_edge", variable, gamma, start=start["sum_weights"])
    own = group_weights("x", layout, {"sum_weights": shared}, groups, KAPPA, start)
    theta = layout.join(
        circuit, {"sum_weights": start["sum_weights"], "normal_mu": leaves[0], "normal_variance": leaves[1]}
    ).theta
    matrix = flat_weights(layout, pt.ones(circuit.n_edge), own, groups.labels.size)
    GroupedRows("x", frozen, ~table.observed.T, matrix, theta, observed=table.values.T)


@pytest.mark.slow
def test_nuts_draws_shared_and_own_weights_as_enumeration_has_them(rng):
    import arviz_stats

    table, circuit = mixture_of_two(rng)
    group, gamma = np.array(["a", "b", "b"] * 3), 1.5
    mean, variance = np.array([-0.8, 0.6]), np.array([0.2, 0.3])
    with pm.Model():
        with_fixed_leaves(circuit, table, group, gamma, (mean, variance))
        idata = pm.sample(1500, tune=500, chains=2, cores=1, random_seed=3, nuts_sampler="pymc", **QUICK)
    z = (table.values[0][:, None] - ex.REAL.location) / ex.REAL.scale
    likelihood = stats.norm.pdf(z, mean, np.sqrt(variance))
    expected = exact_means(likelihood, group, gamma, KAPPA)
    draws = idata["posterior"].to_dataset()
    error = arviz_stats.mcse(draws)
    found = [draws["x_sum_weights"][..., 0], *(draws["x_group_sum_weights"][:, :, k, 0] for k in range(2))]
    errors = [error["x_sum_weights"][0], *(error["x_group_sum_weights"][k, 0] for k in range(2))]
    for values, own_error, mean in zip(found, errors, expected, strict=True):
        assert float(own_error) < 0.02
        assert abs(float(values.mean()) - mean) < N_ERRORS * float(own_error)


@pytest.fixture(scope="module")
def drawn():
    """Return a block with groups, and a few draws of its prior as if they were of its posterior."""
    table, circuit, group = make_case(np.random.default_rng([SEED, 5]))
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        model = bj.build_model(circuit, table, transforms=True, group=group, kappa=KAPPA)
    with pytensor.config.change_flags(mode="FAST_COMPILE"), model:
        prior = pm.sample_prior_predictive(draws=4, random_seed=1)
    groups = {name: prior[name].to_dataset() for name in ("constant_data", "observed_data")}
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()} | groups)
    return table, model, idata


def test_a_posterior_of_one_group_has_its_weights(drawn):
    table, model, idata = drawn
    draws, layout = idata["posterior"], make_layout(model["x"].owner.op.frozen.circuit, table.schema)
    for label in ("DE", "FR", "IT"):
        with_model = bj.Posterior.from_idata(idata, model, group=label)
        alone = bj.Posterior.from_idata(idata, group=label)
        named = {name: draws[f"x_{name}"].to_numpy() for name in layout.names()}
        named["sum_weights"] = draws["x_group_sum_weights"].sel(x_group=label).to_numpy()
        expected = layout.join(with_model.circuit, named)
        for post in (with_model, alone):
            np.testing.assert_array_equal(post.params.log_weight, expected.log_weight)
            np.testing.assert_array_equal(post.params.theta, expected.theta)
    shared = bj.Posterior.from_idata(idata)
    np.testing.assert_allclose(layout.split(shared.params)["sum_weights"], draws["x_sum_weights"], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [({"group": "ES"}, "no group 'ES'.*'DE', 'FR', 'IT'"), ({"group": "FR", "name": "y"}, "no block 'y'.*one of x")],
)
def test_unknown_groups_are_refused_by_name(arguments, match, drawn):
    with pytest.raises(ModelError, match=match):
        bj.Posterior.from_idata(drawn[2], **arguments)


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_drawn_rows_follow_the_weights_of_their_group(mode, rng):
    table, circuit = mixture_of_two(rng)
    group = np.array(["a", "b", "b"] * 3)
    layout, groups = make_layout(circuit, table.schema), Groups(group, table.n_row)
    frozen = FrozenGroups(
        circuit,
        table.schema,
        make_priors(circuit, table.schema, layout, gamma=1.0, alpha=1.0, prior="default"),
        groups=groups,
    )
    values = {"normal_mu": np.array([-50.0, 50.0]), "normal_variance": np.ones(2), "sum_weights": np.full(2, 0.5)}
    weights, theta = np.array([[1.0, 1e-200], [1e-200, 1.0]]), layout.join(circuit, values).theta
    rows = pm.draw(GroupedRows.dist(frozen, ~table.observed.T, weights, theta), draws=3, random_seed=1, mode=mode)
    assert rows.shape == (3, 9, 1)
    np.testing.assert_array_equal(rows[..., 0] > 0.0, np.tile(group == "b", (3, 1)))


def test_other_rows_and_imputation_of_grouped_blocks_are_refused(drawn, case):
    table, circuit, group = case
    with pytest.raises(ModelError, match="whose rows have groups"):
        bj.set_rows(drawn[1], table)
    with pytest.raises(ModelError, match="impute"):
        bj.build_model(circuit, table, group=group, transforms=True, impute=True)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"group": ["a"]}, "for 14 rows"),
        ({"group": ["a", None] * 7}, "without a group"),
        ({"group": ["a", np.nan] * 7}, "without a group"),
        ({"group": pd.Series(["a", None] * 7, dtype="string")}, "without a group"),
        ({"group": np.ma.masked_equal([1, 2] * 7, 2)}, "without a group"),
        ({"group": [(1,), (1, 2)] * 7}, "no order"),
        ({"kappa": 3.0}, "no groups"),
        ({"group": ["a", 1] * 7}, "one type"),
        ({"group": ["a", "b"] * 7, "kappa": 0.0}, "kappa=0.0"),
        ({"group": ["a", "b"] * 7, "kappa": np.ones(2)}, "kappa="),
        ({"group": ["a", "b"] * 7, "kappa": True}, "kappa=True"),
    ],
)
def test_groups_and_their_concentration_are_checked(arguments, match, case):
    table, circuit, _ = case
    with pytest.raises(ModelError, match=match):
        bj.build_model(circuit, table, transforms=True, **arguments)


def test_a_model_is_left_as_it_was_where_groups_are_refused(case):
    table, circuit, group = case
    with pm.Model() as model:
        with pytest.raises(ModelError, match="kappa"):
            bj.CircuitMixture("x", circuit, table, transforms=True, group=group, kappa=-1.0)
        assert not model.named_vars
        bj.CircuitMixture("x", circuit, table, transforms=True, group=group, kappa=np.array(2.0))


def test_groups_of_a_circuit_without_sums_are_refused(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 6, rng)
    circuit = ex.independent(table, dictionary=SIX)
    with pytest.raises(ModelError, match="no sum"):
        bj.build_model(circuit, table, transforms=True, group=["a", "b"] * 3)


def test_levels_of_a_categorical_without_rows_are_no_groups(case):
    table, circuit, _ = case
    group = pd.Categorical(["u", "v"] * 7, categories=["v", "never", "u"])
    model = bj.build_model(circuit, table, transforms=True, group=group)
    assert model.coords["x_group"] == ("u", "v")


@pytest.mark.parametrize(
    "labels",
    [
        pd.period_range("2024-01", periods=2, freq="M"),
        pd.IntervalIndex.from_breaks([0.0, 1.0, 2.5]),
        pd.to_datetime(["2024-03-30", "2024-04-01"]).tz_localize("Europe/Berlin"),
        [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)],
    ],
    ids=["months", "intervals", "moments in a zone", "days"],
)
def test_draws_of_groups_with_any_labels_are_written_and_asked(labels, case, tmp_path):
    table, circuit, _ = case
    group = np.tile(np.array(list(labels), object), 7)
    with bj.build_model(circuit, table, group=group) as model:
        idata = pm.sample(draws=2, tune=1, chains=1, cores=1, random_seed=1, **QUICK)
    assert model.coords["x_group"] == tuple(map(str, labels))
    idata.to_netcdf(tmp_path / "idata.nc")
    with xr.open_datatree(tmp_path / "idata.nc") as read:
        for label in (labels[1], str(labels[1])):
            weight = bj.Posterior.from_idata(read, group=label).params.log_weight
            np.testing.assert_array_equal(weight, bj.Posterior.from_idata(idata, model, group=label).params.log_weight)
