"""The steps of a block with missing cells leave the joint distribution as it is: Geweke's test, a response downstream.

marginal-conditional      parameters ~ prior, rows ~ circuit, response ~ rows
successive-conditional    parameters ~ sweep, missing cells ~ their step, observed cells and response ~ model
"""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytest

import bayesjpt as bj
from bayesjpt.kernels.gaps import draw_gaps
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.model.imputation_step import CircuitImputation
from bayesjpt.table.table import Table
from tests import examples as ex

N_ROW, N_PRIOR, N_SWEEP = 6, 4_000, 12_000
LARGEST_Z = 5.0
FREE = np.array([[-np.inf, -np.inf], [np.inf, np.inf], [0.0, 0.0], [0.0, 0.0]])


def functions(rows: np.ndarray, y: np.ndarray, mu: np.ndarray, weight: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return what both ways of drawing must agree in; heavy tails are made finite."""
    real, count = np.tanh(0.2 * rows[:, 0]), np.tanh(0.2 * rows[:, 1])
    moments = [
        real.mean(),
        count.mean(),
        (real * count).mean(),
        real[missing[:, 0]].mean(),
        count[missing[:, 1]].mean(),
    ]
    joint = [(real * np.tanh(y)).mean(), np.tanh(y).mean(), np.tanh(mu).mean(), (np.tanh(mu) ** 2).mean()]
    return np.array([*moments, *joint, (weight**2).sum(), (weight * np.tanh(mu)).sum() * real.mean()])


def response(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 0.5 * rows[:, 0] - 0.3 * rows[:, 1] + rng.normal(size=rows.shape[0])


@pytest.mark.slow
def test_steps_of_missing_cells_and_parameters_leave_the_joint_distribution_as_it_is(rng):
    table = ex.make_table((ex.PLAIN[0], ex.PLAIN[2]), N_ROW, rng)
    observed = np.ones((2, N_ROW), bool)
    observed[0, :3], observed[1, [0, 4]] = False, False
    table = Table(table.schema, table.values, observed)
    circuit = ex.mixture(table, dictionary=ex.only("normal", "poisson"))
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        x = bj.CircuitMixture("x", circuit, table, gamma=1.0, impute=True)
        data = pm.Data("y_data", np.zeros(N_ROW))
        pm.Normal("y", 0.5 * x[:, 0] - 0.3 * x[:, 1], 1.0, observed=data)
        steps = [CircuitGibbs(random_start=0.0), CircuitImputation([model["x_imputed"]])]
        names = [rv.name for rv in model.free_RVs if rv.name != "x_imputed"]
        prior = pm.sample_prior_predictive(N_PRIOR, var_names=names, random_seed=int(rng.integers(2**31)))["prior"]
    missing, plan = ~observed.T, model["x"].owner.op.frozen.plan
    sweep, impute = steps
    for step in steps:
        step.setup_chain(rng, 0, 1)

    independent, rows = [], np.empty((N_ROW, 2))
    for draw in range(N_PRIOR):
        point = {name: prior[name][0, draw].to_numpy() for name in names}
        params = sweep._params(point)
        sample_rows(plan, params.log_weight, params.theta, rng, rows)
        y = response(rows, rng)
        independent.append(functions(rows, y, point["x_normal_mu"], point["x_sum_weights"], missing))

    sweep.sweep = 1  # the point is a draw, not a start
    point = point | {"x_imputed": rows[missing]}
    chain = []
    for _ in range(N_SWEEP):
        for shared, value in (("x_data", np.where(missing, np.nan, rows)), ("y_data", y)):
            model[shared].set_value(value)
        sweep._rows, impute._values = (model["x_data"].get_value(), missing), model["x_data"].get_value()
        for step in steps:
            point, _ = step.step(point)
        rows[missing] = point["x_imputed"]
        params = sweep._params(point)
        n_theta = circuit.n_theta
        given = (params.log_weight, params.theta[:n_theta], FREE, 4, 1, rng)
        rows[~missing] = draw_gaps(plan, rows, ~missing, *given)
        y = response(rows, rng)
        chain.append(functions(rows, y, point["x_normal_mu"], point["x_sum_weights"], missing))

    first, second = np.array(independent), np.array(chain)
    for k in range(first.shape[1]):
        error = first[:, k].std() / np.sqrt(N_PRIOR)
        spread = second[:, k][: N_SWEEP // 100 * 100].reshape(100, -1).mean(axis=1).std(ddof=1) / 10.0
        z = (first[:, k].mean() - second[:, k].mean()) / np.hypot(error, spread)
        assert abs(z) < LARGEST_Z, (k, z)
