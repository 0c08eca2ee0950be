"""Missing cells as variables: their density, their draws against enumeration and quadrature, and who may use them."""

from __future__ import annotations

import itertools
import warnings

import arviz as az
import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.stats
from pymc.model.transform.optimization import freeze_dims_and_data

import bayesjpt as bj
from bayesjpt.errors import ModelError
from bayesjpt.model import imputation_step
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.model.imputation_step import CircuitImputation
from bayesjpt.model.imputed import CompletedRows
from bayesjpt.model.row_axis import MIXED, row_axis
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import statistics
from tests.model import reference
from tests.model.conftest import QUICK

TOLERANCE = 1e-9
LARGEST_Z = 4.5
N_SWEEP = 2_000
N_FIRST = 100
COLUMNS = (ex.PLAIN[0], ex.PLAIN[4])


def with_gaps(table: Table, *cells: tuple[int, int]) -> Table:
    observed = table.observed.copy()
    for column, row in cells:
        observed[column, row] = False
    return Table(table.schema, table.values, observed)


# --- which rows an expression mixes


EXPRESSIONS = {
    "a column": (lambda x, b: x[:, 1], 0),
    "columns": (lambda x, b: x[:, [0, 2]], 0),
    "a product with coefficients": (lambda x, b: x @ b, 0),
    "a product from the left": (lambda x, b: pt.dot(b, x.T), 0),
    "a sum of columns": (lambda x, b: (x[:, :2] * b[:2]).sum(-1), 0),
    "labels that look up": (lambda x, b: b[pt.cast(pt.abs(x[:, 0]) > 1, "int64")], 0),
    "columns side by side": (lambda x, b: pt.stack([x[:, 0], x[:, 1] ** 2], axis=1).max(axis=1), 0),
    "columns below each other": (lambda x, b: pt.stack([x[:, 0], x[:, 1] ** 2]), 1),
    "a switch": (lambda x, b: pt.switch(x[:, 0] > 0, pt.exp(x[:, 1]), b[0]), 0),
    "rows beside others": (lambda x, b: x[:, 0][:, None] * b[None, :], 0),
    "the number of rows": (lambda x, b: x[:, 0] / x.shape[0], 0),
    "the mean": (lambda x, b: x[:, 0] - x[:, 0].mean(), MIXED),
    "some rows": (lambda x, b: x[1:, 0], MIXED),
    "rows in another order": (lambda x, b: x[[1, 0, 2, 3], 0], MIXED),
    "rows against rows": (lambda x, b: x[:, 0][:, None] - x[:, 1][None, :], MIXED),
    "running sums": (lambda x, b: pt.cumsum(x[:, 0]), MIXED),
    "products of rows": (lambda x, b: pt.dot(x.T, x), MIXED),
    "another thing": (lambda x, b: b * 2.0, None),
}


@pytest.mark.parametrize(("make", "expected"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_rows_that_an_expression_mixes_are_told_from_its_graph(make, expected, rng):
    values, cells, b = rng.normal(size=(4, 3)), pt.vector("cells"), pt.vector("b")
    missing = np.zeros((4, 3), bool)
    missing[:, 0] = True
    out = make(CompletedRows("cells")(values, missing, cells), b)
    assert row_axis(out, cells, CompletedRows) == expected
    if expected in (0, 1):  # the witness: change the cell of one row after the other
        evaluate = pytensor.function([cells, b], out, on_unused_input="ignore")
        at, coefficients = rng.normal(size=4), rng.normal(size=3)
        before = evaluate(at, coefficients)
        for row in range(4):
            moved = at.copy()
            moved[row] += 5.0
            changed = np.moveaxis(evaluate(moved, coefficients) != before, expected, 0)
            assert not np.delete(changed, row, axis=0).any()


# --- density


@pytest.fixture(scope="module")
def pair():
    """Return (table, circuit) of a real column and labels, with gaps."""
    rng = np.random.default_rng(5)
    table = ex.make_table(COLUMNS, 12, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal", "categorical"))
    return with_gaps(table, (0, 0), (1, 0), (0, 3), (1, 5)), circuit


def regression(table: Table, circuit, y: np.ndarray, **options) -> pm.Model:
    with pm.Model() as model:
        rows = bj.CircuitMixture("x", circuit, table, impute=True, **options)
        slope = pm.Normal("slope", 0.0, 1.0)
        effect = pm.Normal("effect", 0.0, 1.0, shape=4)
        pm.Normal("y", slope * rows[:, 0] + effect[rows[:, 1].astype("int64")], 0.5, observed=y)
    return model


@pytest.fixture(scope="module")
def regressed(pair):
    """Return (model, draws) of a regression on the pair's columns."""
    table, circuit = pair
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        model = regression(table, circuit, np.linspace(-1.0, 1.0, 12))
        with model:
            idata = pm.sample(draws=20, tune=20, chains=2, cores=1, random_seed=1, quiet=True, **QUICK)
    return model, idata


def test_density_of_missing_cells_is_that_of_whole_rows_less_that_of_observed_cells(pair, regressed):
    (table, _), (model, idata) = pair, regressed
    term = model.logp(vars=[model["x_imputed"]])
    logp = model.compile_fn(term, inputs=model.value_vars, on_unused_input="ignore")
    post = bj.Posterior.from_idata(idata, model)
    for draw in (0, 19):
        point = {v.name: idata["posterior"][v.name][0, draw].to_numpy() for v in model.value_vars}
        values = table.values.copy()
        values.T[~table.observed.T] = point["x_imputed"]
        whole = post.log_density(Table(table.schema, values, np.ones(values.shape, bool)))[0, draw]
        expected = float((whole - post.log_density(table)[0, draw]).sum())
        assert float(logp(point)) == pytest.approx(expected, rel=TOLERANCE)
        point["x_imputed"] = np.where(np.arange(4) == 1, 7.0, point["x_imputed"])  # no label has this code
        assert float(logp(point)) == -np.inf


def test_steps_are_found_and_observed_cells_stay(pair, regressed):
    (table, _), (model, idata) = pair, regressed
    steps = pm.sampling.mcmc.assign_step_methods(model, None)[1]
    chosen = {method.__name__: {v.name for v in variables} for method, variables in steps.items()}
    assert chosen["CircuitImputation"] == {"x_imputed"}
    assert chosen["NUTS"] == {"slope", "effect"}
    drawn = idata["posterior"]["x_imputed"]
    assert drawn["x_gap"].to_numpy().tolist() == [f"{table.names[c]}[{r}]" for c, r in ((0, 0), (1, 0), (0, 3), (1, 5))]
    labels = drawn[..., [1, 3]].to_numpy()
    assert np.isin(labels, np.arange(len(table.schema.columns[1].labels))).all()
    assert np.isfinite(drawn).all()
    assert np.unique(drawn[0, :, 0]).size > 5
    assert 0.0 < float(idata["sample_stats"]["x_imputed_accepted"].mean()) <= 1.0
    with model:
        rows = pm.draw(CompletedRows("x_imputed")(model["x_data"], model["x_missing"], np.zeros(4)))
    assert np.array_equal(rows[table.observed.T], table.values.T[table.observed.T])


def test_statistics_and_posterior_are_read_back(regressed):
    model, idata = regressed
    assert bj.Posterior.from_idata(idata).circuit.digest() == bj.Posterior.from_idata(idata, model).circuit.digest()
    assert len(az.summary(idata, var_names=["slope", "x_imputed"])) == 5


def test_posterior_predictive_keeps_the_imputed_cells_and_new_rows_draw_theirs(regressed, rng):
    model, idata = regressed
    with model:
        drawn = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
    assert set(drawn["posterior_predictive"].data_vars) == {"x", "y"}
    copy = model.copy()
    new = ex.make_table(COLUMNS, 12, rng)
    bj.set_rows(copy, with_gaps(new, (0, 2), (0, 7), (1, 7)))
    assert copy.coords["x_gap"] == tuple(f"{new.names[c]}[{r}]" for c, r in ((0, 2), (0, 7), (1, 7)))
    with copy:
        drawn = pm.sample_posterior_predictive(
            idata, sample_vars=["x_imputed", "y"], predictions=True, random_seed=1, progressbar=False
        )
    assert drawn["predictions"]["x_imputed"].shape == (2, 20, 3)
    assert np.isfinite(drawn["predictions"]["y"]).all()


def test_a_model_with_missing_cells_survives_cloudpickle(regressed):
    model, _ = regressed
    there = cloudpickle.loads(cloudpickle.dumps(model))
    point = model.initial_point()
    assert there.compile_logp()(point) == pytest.approx(model.compile_logp()(point), rel=TOLERANCE)


# --- draws


def chain_of(model: pm.Model, rng: np.random.Generator, n: int, *, parameters: bool = True) -> np.ndarray:
    """Return the missing cells, float64 (n, n_gap), of a chain of the block's steps; parameters may stay."""
    with model:
        steps = [CircuitImputation([model["x_imputed"]])]
        steps += [CircuitGibbs(model=model, random_start=0.0)] if parameters else []
    for step in steps:
        step.setup_chain(rng, 1, n)
    point = model.initial_point()
    out = np.empty((n, point["x_imputed"].size))
    for sweep in range(-N_FIRST, n):
        for step in steps:
            point, _ = step.step(point)
        if sweep >= 0:
            out[sweep] = point["x_imputed"]
    return out


def test_the_share_accepted_is_that_of_the_rows_that_were_judged(pair, monkeypatch):
    """A factor of all rows together that accepts whatever is proposed, and time for one row of three."""
    monkeypatch.setattr(imputation_step, "MAX_ROWS_ONE_BY_ONE", 1)
    table, circuit = pair
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        rows = bj.CircuitMixture("x", circuit, table, impute=True)
        pm.Potential("mixed", 0.0 * rows[:, 1].sum())
        step = CircuitImputation([model["x_imputed"]])
        _, (stats,) = step.step(model.initial_point())
    assert stats == {"x_imputed_accepted": 1.0}


EFFECT, SD = np.array([0.0, 1.5, -1.0, 0.5]), np.array([1.0, 0.3, 0.3, 0.3, 100.0])
"""Three rows say which label they have, and the last nothing: it learns from the others, by the parameters alone."""
Y = np.array([0.2, 1.4, 1.7, 1.5, 0.0])
FACTORS = {
    "rows apart": (
        lambda x: pm.Normal("y", pt.as_tensor(EFFECT)[x[:, 1].astype("int64")], SD, observed=Y),
        lambda codes: scipy.stats.norm(EFFECT[codes.astype(int)], SD).logpdf(Y).sum(),
    ),
    "rows mixed": (
        lambda x: pm.Potential("p", -((x[:4, 1].sum() - 3.0) ** 2) / 2.0),
        lambda codes: -((codes[:4].sum() - 3.0) ** 2) / 2.0,
    ),
}


@pytest.mark.parametrize("factor", FACTORS)
def test_missing_labels_agree_with_the_enumerated_posterior(factor, rng):
    """Weights and parameters integrated out: the evidence of each completed table, times the factors."""
    add_factor, log_factor = FACTORS[factor]
    whole = ex.make_table((ex.PLAIN[2], ex.PLAIN[4]), 5, rng)
    table = with_gaps(whole, (1, 1), (1, 2), (1, 3), (1, 4))
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "categorical"))
    with pm.Model() as model:
        rows = bj.CircuitMixture("x", circuit, table, gamma=1.0, alpha=0.6, prior="abda", impute=True)
        add_factor(rows)
    combinations = np.array(list(itertools.product(range(len(table.schema.columns[1].labels)), repeat=4)))
    log_p = np.empty(len(combinations))
    for k, codes in enumerate(combinations):
        values = table.values.copy()
        values[1, 1:] = codes
        completed = Table(table.schema, values, np.ones(values.shape, bool))
        log_p[k] = reference.log_evidence(circuit, completed, gamma=1.0, alpha=0.6) + log_factor(values[1])
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    drawn = chain_of(model, rng, N_SWEEP)
    for gap in range(4):
        for code in range(len(table.schema.columns[1].labels)):
            expected = float(p[combinations[:, gap] == code].sum())
            if 0.01 < expected < 0.99:
                assert abs(statistics.batch_z((drawn[:, gap] == code).astype(float), expected)) < LARGEST_Z


def test_a_missing_number_follows_its_conditional(pair, rng):
    """At fixed parameters: moments by quadrature of the circuit's conditional times the factor."""
    table, circuit = pair
    table = with_gaps(Table(table.schema, table.values, np.ones(table.values.shape, bool)), (0, 0))
    y = np.full(12, 1.5)
    with pm.Model() as model:
        rows = bj.CircuitMixture("x", circuit, table, impute=True)
        pm.Normal("y", rows[:, 0], 1.0, observed=y)
    point = model.initial_point()
    logp = model.compile_fn(model.logp(), point_fn=True)
    grid = np.linspace(-15.0, 15.0, 601)
    log_p = np.array([float(logp(point | {"x_imputed": np.array([x])})) for x in grid])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    drawn = chain_of(model, rng, N_SWEEP, parameters=False)[:, 0]
    for power in (1, 2, 3):
        assert abs(statistics.batch_z(drawn**power, float(p @ grid**power))) < LARGEST_Z


@pytest.mark.parametrize("transforms", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_either_kind_of_block_is_sampled_with_missing_cells(transforms, pair):
    table, circuit = pair
    model = regression(table, circuit, np.linspace(-1.0, 1.0, 12), transforms=transforms)
    with model:
        idata = pm.sample(draws=3, tune=3, chains=1, cores=1, random_seed=1, quiet=True, **QUICK)
    assert np.isfinite(idata["posterior"]["x_imputed"]).all()


# --- who may use missing cells


USES = {
    "a variable": lambda x, model: pm.Normal("culprit", x[:, 0].sum(), 1.0, observed=0.3),
    "a potential": lambda x, model: pm.Potential("culprit", -(x[:, 0] ** 2).sum()),
    "the data": lambda x, model: pm.Potential("culprit", model["x_data"][:, 0].sum()),
    "a narrow hat": lambda x, model: pm.Potential("culprit", pt.maximum(0.0, 1.0 - 1e6 * pt.abs(x[:, 0] - 0.1)).sum()),
    "a threshold": lambda x, model: pm.Potential("culprit", pt.sum(x[:, 0] > 1.0) * 0.1),
    "a short interval": lambda x, model: pm.Bernoulli("culprit", pt.where(pt.abs(x[:, 0] - 3.3) < 0.003, 0.9, 0.1),
                                                      observed=np.zeros(12)),
    "a choice of a variable": lambda x, model: pm.Potential("culprit", pt.switch(pm.Normal("b") > 5, x[:, 0], 0).sum()),
    "rows of a variable": lambda x, model: pm.Potential("culprit", x[pm.Categorical("k", np.full(3, 1 / 3)), 0] > 8.0),
    "a loop": lambda x, model: pm.Potential("culprit", pytensor.scan(lambda c: pt.gt(c, 9.0), x[:, 0],
                                                                     return_updates=False).sum()),
    "one of two": lambda x, model: pm.Potential("culprit", pt.sum(pt.or_(x[:, 0] > 9.0, model["x_missing"][:, 1]))),
    "a product": lambda x, model: pm.Potential("culprit", pt.sum(x @ np.array([1.0, 0.0, 0.0])[: 2])),
    "set": lambda x, model: pm.Potential("culprit", pt.sum(pt.set_subtensor(pt.zeros(12)[:], x[:, 0] > 9.0))),
    "labels": lambda x, model: pm.Normal("culprit", pm.Normal("e", shape=5)[x[:, 1].astype("int64")], 1.0,
                                         observed=np.zeros(12)),
}  # fmt: skip
ALLOWED = {
    "cells that the mask shows": lambda x, model: pm.Potential(
        "p", pt.switch(model["x_missing"][:, 0], 0.0, x[:, 0]).sum()
    ),
    "cells that are numbers": lambda x, model: pm.Potential(
        "p", pt.switch(pt.isnan(x[:, 0]), 0.0, x[:, 0] > 9.0).sum()
    ),
    "and not missing": lambda x, model: pm.Potential(
        "p", pt.sum(pt.and_(x[:, 0] > 9.0, ~model["x_missing"][:, 0])) + x.shape[0]
    ),
    "complete rows": lambda x, model: pm.Normal(
        "p", pm.Normal("b") * x[~np.isnan(x_of(model)[:, 0]), 0], 1.0, observed=np.zeros(10)
    ),
    "labels of complete rows": lambda x, model: pm.Normal(
        "p", pm.Normal("e", shape=5)[x[[1, 2, 4, 6, 7], 1].astype("int64")], 1.0, observed=np.zeros(5)
    ),
    "a product of complete rows": lambda x, model: pm.Normal(
        "p", pt.dot(x, pm.Normal("b", shape=2))[[1, 2, 4, 6]], 1.0, observed=np.zeros(4)
    ),
    "looked up by 0 in place of missing": lambda x, model: pm.Normal(
        "p",
        pm.Normal("e", shape=5)[pt.switch(pt.isnan(x[:, 1]), 0.0, x[:, 1]).astype("int64")],
        1.0,
        observed=np.zeros(12),
    ),
    "0 put in place of missing": lambda x, model: pm.Potential(
        "p", pt.sum(pt.set_subtensor(x[:, 0][model["x_missing"][:, 0].nonzero()], 0.0) > 9.0)
    ),
    "a mixture of complete rows": lambda x, model: pm.Mixture(
        "p",
        np.array([0.5, 0.5]),
        [pm.Normal.dist(x[[1, 2, 4], 0], 1.0), pm.Normal.dist(0.0, 1.0, shape=3)],
        observed=np.zeros(3),
    ),
    "a deterministic": lambda x, model: pm.Deterministic("d", x[:, 0].sum()),
}


def x_of(model) -> np.ndarray:
    return model["x_data"].get_value()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_factors_of_missing_cells_are_refused_without_impute(use, pair):
    table, circuit = pair
    with pm.Model() as model:
        use(bj.CircuitMixture("x", circuit, table), model)
        with pytest.raises(ModelError, match=r"culprit depends on missing cells of block 'x', in .*impute=True"):
            CircuitGibbs(vars=[model["x_sum_weights"]])


@pytest.mark.parametrize("cells", [[*range(11), 3, 3], [3] * 13], ids=["one of many values", "the only value"])
def test_a_comparison_with_one_value_of_missing_cells_is_refused(cells):
    frame = pd.DataFrame({"n": [*cells, None, None], "x": np.linspace(0.0, 1.0, 15)}).astype({"n": "Int64"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a constant column
        table = bj.as_table(frame, kinds={"n": "integer", "x": "real"})
    with pm.Model() as model:
        x = bj.CircuitMixture("x", bj.learn_mspn(table, np.random.default_rng(1)), table)
        pm.Normal("culprit", pm.Normal("b") * pt.eq(x[:, 0], 3.0), 1.0, observed=np.zeros(15))
        with pytest.raises(ModelError, match="culprit depends on missing cells of block 'x', in 'n'"):
            CircuitGibbs(vars=[v for v in model.free_RVs if v.name.startswith("x_")])


@pytest.mark.parametrize("use", ALLOWED.values(), ids=ALLOWED)
def test_factors_that_look_at_no_missing_cell_are_fine(use, pair):
    table, circuit = pair
    with pm.Model() as model:
        use(bj.CircuitMixture("x", circuit, table), model)
        CircuitGibbs()


@pytest.mark.parametrize("evaluate", [pm.Model.logp, pm.Model.compile_dlogp], ids=["density", "gradient"])
def test_factors_of_missing_cells_are_refused_for_samplers_that_follow_gradients(evaluate, pair):
    table, circuit = pair
    with pm.Model() as model:
        x = bj.CircuitMixture("x", circuit, table, transforms=True)
        pm.Bernoulli("culprit", pt.where(x[:, 0] > 1.0, 0.9, 0.1), observed=np.zeros(12))
        with pytest.raises(ModelError, match=r"culprit depends on missing cells of block 'x', in .*impute=True"):
            evaluate(model)


def test_factors_of_missing_cells_are_refused_where_data_are_frozen(pair):
    table, circuit = pair
    with pm.Model() as model:
        x = bj.CircuitMixture("x", circuit, table, transforms=True)
        pm.Bernoulli("culprit", pt.where(x[:, 0] > 1.0, 0.9, 0.1), observed=np.zeros(12))
        pm.Normal("fine", x[model["x_data"].get_value()[:, 0] > 0.0, 0].sum(), 1.0, observed=0.0)
    with freeze_dims_and_data(model) as frozen, pytest.raises(ModelError, match="culprit depends on missing cells"):
        frozen.logp()


def test_factors_of_a_column_without_gaps_are_fine(pair):
    table, circuit = pair
    only_labels = with_gaps(Table(table.schema, table.values, np.ones(table.values.shape, bool)), (1, 0))
    with pm.Model() as model:
        x = bj.CircuitMixture("x", circuit, only_labels)
        pm.Normal("y", pm.Normal("slope") * x[:, 0], 1.0, observed=np.zeros(12))
        CircuitGibbs(vars=[v for v in model.free_RVs if v.name.startswith("x_")])


def test_what_cannot_be_imputed_is_refused(pair):
    table, circuit = pair
    with pytest.raises(ModelError, match="impute=True and sampler='collapsed'"):
        bj.build_model(circuit, table, impute=True, sampler="collapsed")
    model = bj.build_model(circuit, table, impute=True)
    seen = pm.observe(model, {"x_imputed": np.zeros(4)})
    with pytest.raises(ModelError, match=r"x_imputed of block 'x' is no longer a free variable"), seen:
        CircuitGibbs()


def test_a_block_without_gaps_has_no_missing_cells_to_draw(pair):
    table, circuit = pair
    whole = Table(table.schema, table.values, np.ones(table.values.shape, bool))
    with regression(whole, circuit, np.linspace(-1.0, 1.0, 12)):
        idata = pm.sample(draws=3, tune=3, chains=1, cores=1, random_seed=1, quiet=True, **QUICK)
    assert idata["posterior"]["x_imputed"].shape == (1, 3, 0)
