"""Concentrations drawn given the allocations: enumerated posteriors, Geweke's joint test, and errors it must catch.

Geweke's two simulators are here the model itself, whose variables PyMC draws forward, and the step, between whose
sweeps the rows and the user's own observed variable are drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest
import scipy.stats

import bayesjpt as bj
from bayesjpt.circuit.type_prior import make_column_types
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model import gibbs_step
from bayesjpt.model.concentration_step import ConcentrationGibbs
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.numerics.rising import log_rising
from tests import examples as ex
from tests import statistics
from tests.model import reference
from tests.statistical import geweke

N_SWEEP = 5_000
N_FIRST = 500
N_GRID = 80
N_TYPE_GRID = 30
LARGEST_Z = 4.5
SHAPE, RATE = 0.7, 1.4
"""Of the gamma prior of a concentration: half of its mass is below .25, and it is no stranger to .001."""


def swept(model: pm.Model, rng: np.random.Generator, *names: str) -> np.ndarray:
    """Return draws of scalars, float64 (n_name, N_SWEEP)."""
    step = CircuitGibbs(model=model, random_start=0.0)
    step.setup_chain(rng, N_FIRST, N_SWEEP)
    point, out = model.initial_point(), np.empty((len(names), N_SWEEP))
    for sweep in range(-N_FIRST, N_SWEEP):
        if sweep == 0:
            step.stop_tuning()
        point, _ = step.step(point)
        if sweep >= 0:
            out[:, sweep] = [np.ravel(point[name])[0] for name in names]
    return out


def half_line(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a grid over the positive numbers, even in x / (1 + x), and log widths of its cells."""
    share = (np.arange(n) + 0.5) / n
    return share / (1.0 - share), -2.0 * np.log1p(-share)


def assert_moments(draws: np.ndarray, at: np.ndarray, log_density: np.ndarray) -> None:
    """Compare means of powers of x / (1 + x) with those over a grid."""
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    for power in (1, 2, 3):
        expected = float(weight @ (at / (1.0 + at)) ** power)
        assert abs(statistics.batch_z((draws / (1.0 + draws)) ** power, expected)) < LARGEST_Z


# --- enumeration


def test_a_concentration_of_sums_and_dictionaries_has_its_enumerated_posterior(rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", SHAPE, RATE)
        bj.CircuitMixture("x", circuit, table, gamma=2.0 * alpha, alpha=alpha, prior="abda")
        pm.Normal("y", alpha, 0.5, observed=0.6)
    at, log_density = half_line(N_GRID)
    log_density += scipy.stats.gamma.logpdf(at, SHAPE, scale=1.0 / RATE) + scipy.stats.norm.logpdf(0.6, at, 0.5)
    log_density += [reference.log_evidence(circuit, table, gamma=2.0 * a, alpha=a) for a in at]
    assert_moments(np.exp(swept(model, rng, "alpha_log__")[0]), at, log_density)


def test_a_concentration_of_two_blocks_has_its_enumerated_posterior(rng):
    tables = [ex.make_table((ex.COUNT,), n, rng) for n in (3, 4)]
    circuits = [ex.mixture(table, dictionary=ex.only("poisson", "geometric")) for table in tables]
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", SHAPE, RATE)
        bj.CircuitMixture("first", circuits[0], tables[0], gamma=1.0, alpha=alpha, prior="abda")
        bj.CircuitMixture("second", circuits[1], tables[1], gamma=3.0 * alpha, alpha=0.5, prior="abda")
    at, log_density = half_line(N_GRID)
    log_density += scipy.stats.gamma.logpdf(at, SHAPE, scale=1.0 / RATE)
    log_density += [reference.log_evidence(circuits[0], tables[0], gamma=1.0, alpha=a) for a in at]
    log_density += [reference.log_evidence(circuits[1], tables[1], gamma=3.0 * a, alpha=0.5) for a in at]
    assert_moments(np.exp(swept(model, rng, "alpha_log__")[0]), at, log_density)


def test_a_concentration_and_the_types_that_divide_it_have_their_enumerated_posterior(rng):
    table = ex.make_table((ex.LEVELS,), 3, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric", "categorical"))
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", SHAPE, RATE)
        bj.CircuitMixture("x", circuit, table, gamma=0.8, alpha=alpha, type_prior="columns", prior="abda")
    draws = swept(model, rng, "alpha_log__", "x_type_prior")
    types = make_column_types(circuit, table.schema)
    at, log_width = half_line(N_TYPE_GRID)
    share = (np.arange(N_TYPE_GRID) + 0.5) / N_TYPE_GRID
    log_density = np.empty((at.size, share.size))
    for i, a in enumerate(at):
        for j, s in enumerate(share):
            concentration = np.zeros(circuit.n_edge)
            concentration[types.edge] = a * types.factor * np.array([s, 1.0 - s])[types.entry]
            log_density[i, j] = reference.log_evidence(circuit, table, gamma=0.8, alpha=concentration)
    log_density += (log_width + scipy.stats.gamma.logpdf(at, SHAPE, scale=1.0 / RATE))[:, None]
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    squashed = at / (1.0 + at)
    alpha_draws = np.exp(draws[0])
    for function in (lambda a, s: a, lambda a, s: s, lambda a, s: a * s, lambda a, s: a**2):
        expected = float((weight * function(squashed[:, None], share)).sum())
        assert abs(statistics.batch_z(function(alpha_draws / (1.0 + alpha_draws), draws[1]), expected)) < LARGEST_Z


# --- Geweke


N_ROW = 4
N_DRAW = 20_000
N_CAUGHT = 5_000
"""Fewer draws, in which most errors are seen already: standard errors are those of the draws at hand."""


class Joint:
    """A model with a factor of the user's, its forward draws, and a chain whose data are redrawn after each sweep."""

    def __init__(self, rng: np.random.Generator):
        self.table = ex.make_table((ex.COUNT,), N_ROW, rng)
        circuit = ex.mixture(self.table, dictionary=ex.only("poisson", "geometric"))
        with pm.Model() as model:
            alpha = pm.Gamma("alpha", 2.0, 3.0)
            gamma = pm.LogNormal("gamma", 0.0, 0.7)
            bj.CircuitMixture("x", circuit, self.table, gamma=gamma, alpha=2.0 * alpha, prior="abda")
            self.data = pm.Data("data", np.zeros(2))
            pm.Normal("y", alpha, 0.4, observed=self.data)
        self.model, self.rng = model, rng
        self.parameters = [rv.name for rv in model.free_RVs if rv.name.startswith("x_")]

    def forward(self, n: int) -> dict[str, np.ndarray]:
        """Return n independent draws of all variables."""
        names = ["alpha", "gamma", "y", "x", *self.parameters]
        seed = int(self.rng.integers(2**31))
        draws = pm.draw([self.model[name] for name in names], draws=n, random_seed=seed, mode="NUMBA")
        return dict(zip(names, draws, strict=True))

    def chain(self, start: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
        """Return n states of a chain from a draw, with data redrawn given the variables after each sweep."""
        step = CircuitGibbs(model=self.model, random_start=0.0)
        (sweep,) = step.sweeps.methods
        step.setup_chain(self.rng, 0, n)
        sweep.sweep = 1  # the point is chosen
        plan, missing = sweep._frozen.plan, np.zeros((N_ROW, 1), bool)
        point = {name: start[name] for name in self.parameters}
        point |= {f"{name}_log__": np.log(start[name]) for name in ("alpha", "gamma")}
        rows = start["x"].copy()
        self.data.set_value(start["y"])
        out = {name: np.empty((n, *np.shape(value))) for name, value in start.items()}
        for t in range(n):
            sweep._load(rows, missing)
            point, _ = step.step(point)
            alpha, gamma = (np.exp(point[f"{name}_log__"]) for name in ("alpha", "gamma"))
            # the data given which the sweep drew: redrawn ones would hide that a sweep had not looked at them
            state = {"alpha": alpha, "gamma": gamma, "x": rows, "y": self.data.get_value()}
            for name in out:
                out[name][t] = state[name] if name in state else point[name]
            sample_rows(plan, *sweep._params(point), self.rng, rows)
            self.data.set_value(self.rng.normal(alpha, 0.4, 2))
        return out

    def compare(self, n: int = N_DRAW) -> geweke.Comparison:
        """Return the Comparison of n draws of each simulator."""
        exact = self.forward(n + 1)
        start = {name: values[-1] for name, values in exact.items()}
        found = self.functions(self.chain(start, n))
        return geweke.compare_functions(self.functions({name: values[:-1] for name, values in exact.items()}), found)

    def functions(self, draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return bounded functions of variables and data by name, each float64 (n_draw,)."""
        squashed = {name: geweke.squash(values.reshape(values.shape[0], -1)) for name, values in draws.items()}
        out = {}
        for name in ("alpha", "gamma"):
            (x,) = squashed[name].T
            out |= {name: x, f"{name} squared": x**2, f"{name} by data": x * squashed["x"].mean(axis=1)}
            out[f"{name} by y"] = x * squashed["y"].mean(axis=1)
            for weights in ("x_sum_weights", "x_likelihood_weights"):
                concentrated = (draws[weights] ** 2).sum(axis=1)
                out |= {weights: concentrated, f"{name} by {weights}": x * concentrated}
        for name in self.parameters:
            out |= {f"first of {name}": squashed[name][:, 0], f"squares of {name}": (squashed[name] ** 2).mean(axis=1)}
        x = squashed["x"]
        return out | {"x": x.mean(axis=1), "x squared": (x**2).mean(axis=1), "two rows": x[:, 0] * x[:, -1]}


@pytest.mark.slow
def test_sweeps_leave_concentrations_weights_and_data_jointly_as_they_are(rng):
    comparison = Joint(rng).compare()
    assert comparison.ess.min() > geweke.MIN_ESS
    assert comparison.agrees, comparison.worst


def _without_normaliser(ptr, edge, concentration, edge_count):
    return sum(log_rising(concentration[e], float(edge_count[e])) for e in edge)


def _before_the_allocations(self, point):
    point = self._draw(point)
    (sweep,) = self.sweeps.methods
    point, (stats,) = sweep.draw(point, sweep.allocate(point))
    return point, [stats]


def _without_new_weights(self, point):
    (sweep,) = self.sweeps.methods
    allocated = sweep.allocate(point)
    after, (stats,) = sweep.draw(point, allocated)
    return self._draw(after), [stats]


def _without_jacobian(self, point, right=ConcentrationGibbs.log_density):
    return right(self, point) - point["alpha_log__"]


def _without_the_users_factor(self, point, right=ConcentrationGibbs.log_density):
    alpha, y = np.exp(point["alpha_log__"]), self._log_factors.get_shared()[0].get_value()
    return right(self, point) - float(scipy.stats.norm.logpdf(y, alpha, 0.4).sum())


PLANTED: dict[str, tuple[object, str, Callable]] = {
    "the normaliser left out": (gibbs_step, "log_allocations", _without_normaliser),
    "counts of the sweep before": (ConcentrationGibbs, "step", _before_the_allocations),
    "weights drawn by the concentration before": (ConcentrationGibbs, "step", _without_new_weights),
    "no Jacobian": (ConcentrationGibbs, "log_density", _without_jacobian),
    "the user's factor left out": (ConcentrationGibbs, "log_density", _without_the_users_factor),
}


SUBTLEST = "weights drawn by the concentration before"
"""Four standard errors in N_CAUGHT draws, where 5.5 are asked."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_an_error_planted_in_the_draw_of_concentrations_is_caught(name, rng, monkeypatch):
    where, attribute, wrong = PLANTED[name]
    monkeypatch.setattr(where, attribute, wrong)
    comparison = Joint(rng).compare(N_DRAW if name == SUBTLEST else N_CAUGHT)
    assert comparison.ess.min() > geweke.MIN_ESS
    assert not comparison.agrees, comparison.worst
