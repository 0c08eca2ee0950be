"""Variables of a block in a step of the user's: the Gibbs step reads them from the point and draws the rest."""

from __future__ import annotations

import itertools

import numpy as np
import pymc as pm
import pytest
import scipy.special

import bayesjpt as bj
from bayesjpt.errors import ModelError
from bayesjpt.kernels.density import rows_log_density
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import statistics
from tests.model import reference
from tests.model.conftest import QUICK

GAMMA = 1.5
N_SWEEP = 8_000
N_FIRST = 200
N_GRID = 4_001
LARGEST_Z = 4.5


@pytest.fixture
def mixed(rng) -> tuple[pm.Model, Table]:
    """Return a model of one positive column with normals and exponentials in its dictionaries."""
    table = ex.make_table((ex.POSITIVE,), 4, rng)
    table = Table(table.schema, table.values + 0.3, table.observed)  # the exponential is conjugate away from 0
    circuit = ex.mixture(table, dictionary=ex.only("normal", "exponential"))
    return bj.build_model(circuit, table, gamma=GAMMA, alpha=GAMMA, prior="abda"), table


def variables(model: pm.Model, *names: str) -> list:
    return [model[name] for name in names]


def swept(step: CircuitGibbs, point: dict, rng: np.random.Generator, n: int = N_SWEEP):
    """Yield the points of a chain that begins at a point of the test's choice."""
    step.setup_chain(rng, 1, n)
    step._unset = dict.fromkeys(point, np.array(np.nan))  # the point is chosen
    for sweep in range(-N_FIRST, n):
        point, _ = step.step(point)
        if sweep >= 0:
            yield point


def test_held_variables_stay_as_they_are(mixed, rng):
    model, _ = mixed
    step = CircuitGibbs(variables(model, "x_sum_weights", "x_normal_variance", "x_normal_mu"), model=model)
    assert [var.name for var in step.vars] == ["x_sum_weights", "x_normal_variance", "x_normal_mu"]
    step.setup_chain(rng, 1, 1)
    point = model.initial_point()
    new, _ = step.step(point)
    for name, value in point.items():
        assert (name in {var.name for var in step.vars}) == bool((new[name] != value).any()), name


def test_parameters_given_held_weights_agree_with_the_enumerated_posterior(mixed, rng):
    model, table = mixed
    held = {"x_sum_weights": np.array([0.8, 0.2]), "x_likelihood_weights": np.array([0.3, 0.7, 0.9, 0.1])}
    parameters = [rv for rv in model.free_RVs if rv.name not in held]
    further = np.array([[1.0], [3.0]])
    plan = model["x"].owner.op.frozen.plan
    step = CircuitGibbs(parameters, model=model)
    densities = np.array(
        [
            np.exp(rows_log_density(further, np.zeros_like(further, bool), *step._params(point), plan))
            for point in swept(step, model.initial_point() | held, rng)
        ]
    )
    # each row is in one of four leaves; rows, and a further row, are exchangeable within a leaf
    probability = np.log(np.array([0.8 * 0.3, 0.8 * 0.7, 0.2 * 0.9, 0.2 * 0.1]))
    families = ["normal", "exponential", "normal", "exponential"]

    def log_evidence(values: list[float]) -> float:
        terms = []
        for leaves in itertools.product(range(4), repeat=len(values)):
            term = sum(probability[leaf] for leaf in leaves)
            for leaf in set(leaves):
                inside = [value for value, at in zip(values, leaves, strict=True) if at == leaf]
                term += reference.leaf_log_evidence(families[leaf], table.schema.columns[0], inside)
            terms.append(term)
        return float(scipy.special.logsumexp(terms))

    rows = list(table.values[0])
    for k, value in enumerate(further[:, 0]):
        expected = np.exp(log_evidence([*rows, value]) - log_evidence(rows))
        assert abs(statistics.batch_z(densities[:, k], expected)) < LARGEST_Z


def test_weights_given_a_held_family_agree_with_a_grid(rng):
    table = ex.make_table((ex.REAL,), 5, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    model = bj.build_model(circuit, table, gamma=GAMMA)
    held = {"x_normal_variance": np.array([0.3, 0.8]), "x_normal_mu": np.array([-0.7, 0.6])}
    step = CircuitGibbs(variables(model, "x_sum_weights"), model=model)
    draws = np.array([point["x_sum_weights"][0] for point in swept(step, model.initial_point() | held, rng)])
    w = np.linspace(0.0, 1.0, N_GRID)[1:-1]
    plan = model["x"].owner.op.frozen.plan
    theta = step._params(model.initial_point() | held).theta
    rows, missing = np.ascontiguousarray(table.values.T), np.zeros((5, 1), bool)
    of_component = np.array(
        [rows_log_density(rows, missing, np.array([at, -800.0 - at]), theta, plan) for at in (0.0, -800.0)]
    )
    log_density = (GAMMA - 1.0) * np.log(w * (1.0 - w)) + np.log(
        np.exp(of_component[0])[:, None] * w + np.exp(of_component[1])[:, None] * (1.0 - w)
    ).sum(axis=0)
    weight = np.exp(log_density - log_density.max())
    for function in (np.asarray, np.square):
        expected = float((weight * function(w)).sum() / weight.sum())
        assert abs(statistics.batch_z(function(draws), expected)) < LARGEST_Z


def test_a_step_of_the_user_samples_beside_the_gibbs_step(mixed):
    model, _ = mixed
    with model:
        own = pm.Metropolis(variables(model, "x_exponential_rate"))
        idata = pm.sample(step=[own], draws=60, tune=60, chains=1, cores=1, random_seed=1, **QUICK)
    draws = idata["posterior"]
    for name in ("x_exponential_rate", "x_normal_mu", "x_sum_weights"):
        assert draws[name].to_numpy().std() > 0.0
    assert "accept" in idata["sample_stats"]
    assert "log_likelihood" in idata["sample_stats"]


@pytest.mark.parametrize("step", [pm.Metropolis, pm.Slice])
def test_a_step_that_walks_off_the_simplex_is_refused_where_it_does(step, mixed):
    model, _ = mixed
    with model:
        own = step(variables(model, "x_sum_weights"))
    with model, pytest.raises(ModelError, match=r"add up to one.*Leave weights out of step=.*transforms=True"):
        pm.sample(step=[own], draws=20, tune=5, chains=1, cores=1, random_seed=1, **QUICK)


def test_part_of_a_family_in_another_step_is_refused_by_name(mixed):
    model, _ = mixed
    with model:
        own = pm.Metropolis(variables(model, "x_normal_mu"))
        with pytest.raises(
            ModelError,
            match=r"x_normal_mu of block 'x' is given to another step.*all of x_normal_variance, x_normal_mu in one",
        ):
            pm.sample(step=[own], draws=2, tune=0, chains=1, cores=1, **QUICK)


def test_a_factor_of_the_user_may_depend_on_a_variable_that_is_held(mixed):
    model, _ = mixed
    with model:
        pm.Potential("pull", -(model["x_exponential_rate"] ** 2).sum())
        with pytest.raises(ModelError, match="pull depends on"):
            CircuitGibbs()
        own = pm.Metropolis(variables(model, "x_exponential_rate"))
        idata = pm.sample(step=[own], draws=5, tune=0, chains=1, cores=1, random_seed=1, **QUICK)
    assert np.isfinite(idata["posterior"]["x_normal_mu"].to_numpy()).all()


def test_held_values_are_those_of_the_point_from_the_first_sweep_on(mixed, rng):
    model, _ = mixed
    step = CircuitGibbs([rv for rv in model.free_RVs if rv.name != "x_sum_weights"], model=model, random_start=0.0)
    step.setup_chain(rng, 1, 1)
    params = step._begin(model.initial_point() | {"x_sum_weights": np.array([0.9, 0.1])}).params
    np.testing.assert_allclose(params.log_weight[-2:], np.log([0.9, 0.1]))
    learned = step._frozen.circuit.start_theta
    np.testing.assert_array_equal(params.theta, learned)
