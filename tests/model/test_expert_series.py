"""Trees of experts over time inside PyMC: densities and sweeps are those of the kernels, and PyMC's functions work."""

from __future__ import annotations

import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import scipy.stats

import bayesjpt as bj
from bayesjpt.errors import ModelError, TableError
from bayesjpt.kernels.expert_series import fill_base_odds, fill_filtered, fill_memory_odds
from bayesjpt.kernels.expert_series_sweep import fill_evidence
from bayesjpt.kernels.expert_tree import KIND_NAMES, MULTINOMIAL
from bayesjpt.model.expert_series import _series_random
from bayesjpt.model.expert_series_step import ExpertSeriesGibbs
from bayesjpt.model.expert_step import ExpertGibbs, _prior, block_of
from tests.statistics import LARGEST_Z

N_ROW = 14
UNSEEN = 6


def rows(kind: str) -> tuple[pd.DataFrame, list]:
    """Return two series in mixed order, and responses of which one is missing."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"t": np.arange(N_ROW) // 2, "id": np.tile(["b", "a"], N_ROW // 2), "x": rng.normal(size=N_ROW)}
    )
    y = {
        "gaussian": rng.normal(2.0, 3.0, N_ROW),
        "logistic": np.tile(["no", "yes"], N_ROW // 2),
        "multinomial": np.resize(["u", "v", "w", "w"], N_ROW),
        "poisson": rng.poisson(3.0, N_ROW).astype(float),
        "gamma": rng.gamma(2.0, 1.0, N_ROW),
    }[kind].tolist()
    y[UNSEEN] = None
    return frame.sample(frac=1.0, random_state=0), y


def tree(kind: str, transitions: str = "leaf") -> tuple[pm.Model, object]:
    with pm.Model() as model:
        own = {"time": "t", "series": "id", "transitions": transitions}
        variable = bj.ExpertTree("y", *rows(kind), depth=2, experts=kind, **own)
    return model, variable


def kernel_log_density(step: ExpertSeriesGibbs, point: dict) -> np.ndarray:
    """Return the log density of each row given those before it, in the order of the series."""
    task, steps, state, memory = step._task, step._steps, step._state(point), step._memory(point)
    n, n_leaf = task.x.shape[0], 4
    base, odds = np.empty((n, n_leaf - 1)), np.empty((n_leaf - 1, n_leaf))
    evidence, predicted, filtered, out = (np.empty(shape) for shape in ((n, n_leaf),) * 3 + ((n,),))
    fill_base_odds(task.gate_x, state.gate, base)
    fill_memory_odds(steps.slot, steps.sign, memory.offset, odds)
    fill_evidence(task, steps.seen, state, evidence)
    fill_filtered(steps.first, base, odds, evidence, predicted, filtered, out)
    return out


@pytest.mark.parametrize(
    ("kind", "transitions"), [*((kind, "leaf") for kind in KIND_NAMES.values()), ("gaussian", "decision")]
)
def test_log_density_is_that_of_the_kernels(kind, transitions):
    model, _ = tree(kind, transitions)
    step, rng = ExpertSeriesGibbs(model=model), np.random.default_rng(3)
    point = {name: rng.normal(0.0, 0.7, np.shape(value)) for name, value in model.initial_point().items()}
    expected, order = kernel_log_density(step, point), model["y_order"].get_value()
    if kind == "gaussian":
        expected -= step._steps.seen * np.log(step._block.responses[0].scale)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        found = model.compile_logp(vars=model.observed_RVs, sum=False)(point)[0]
    np.testing.assert_allclose(found[order], expected, rtol=1e-10, atol=1e-10)
    assert abs(found[UNSEEN]) < 1e-12
    again = step._values(step._state(point)) | step._offsets(step._memory(point))
    assert set(again) == set(point)
    for name, value in point.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-12, atol=1e-12)
    step.setup_chain(np.random.default_rng(1), 1, 1)
    moved, _ = step.step(point)
    assert all(np.isfinite(value).all() and (value != point[name]).any() for name, value in moved.items())


def test_the_gradient_is_that_of_differences():
    model, _ = tree("gaussian")
    rng = np.random.default_rng(5)
    point = {name: rng.normal(0.0, 0.5, np.shape(value)) for name, value in model.initial_point().items()}
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        value, slope = model.compile_logp(), model.compile_dlogp()
    start = pm.blocking.DictToArrayBijection.map(point)
    direction = rng.normal(size=start.data.size)
    both = []
    for size in (1e-5, -1e-5):
        moved = start._replace(data=start.data + size * direction)
        both.append(float(value(pm.blocking.DictToArrayBijection.rmap(moved))))
    np.testing.assert_allclose(slope(point) @ direction, (both[0] - both[1]) / 2e-5, rtol=1e-6)


def test_the_prior_of_offsets_is_that_of_the_sweep():
    model, _ = tree("gaussian")
    offset, prior = np.random.default_rng(2).normal(size=(3, 4)), _prior(block_of(model["y_offset"]))
    gamma = scipy.stats.gamma.logpdf(1.7, prior.gate_shape, scale=1.0 / prior.gate_rate)
    expected = gamma + scipy.stats.norm.logpdf(offset, 0.0, 1.7**-0.5).sum()
    point = model.initial_point() | {"y_offset": offset, "y_offset_precision_log__": np.log(1.7)}
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        terms = model.compile_logp(vars=[model["y_offset"], model["y_offset_precision"]], jacobian=False)
    np.testing.assert_allclose(terms(point), expected, rtol=1e-12)


def test_series_are_drawn_from_their_transitions():
    rng, n_draw, order = np.random.default_rng(3), 4000, np.array([2, 0, 3, 1])
    log_begin, log_move = np.log(rng.dirichlet(np.ones(2), 4)), np.log(rng.dirichlet(np.ones(2), (4, 2)))
    eta = np.tile(np.array([[0.0, 500.0], [500.0, 0.0]]), (4, 1, 1))  # leaf k shows the other label for sure
    own = (log_begin, log_move, order, np.array([1, 0, 1, 0]), eta, np.ones(2))
    drawn = 1 - _series_random([MULTINOMIAL], *own, rng=rng, size=(n_draw,))[:, order]
    assert drawn.shape == (n_draw, 4)
    for first in (0, 2):
        joint = np.exp(log_begin[first][:, None] + log_move[first + 1])
        found = [[np.mean((drawn[:, first] == k) & (drawn[:, first + 1] == m)) for m in (0, 1)] for k in (0, 1)]
        z = (found - joint) / np.sqrt(joint * (1.0 - joint) / n_draw)
        assert np.abs(z).max() < LARGEST_Z


def regimes(n_series: int = 2, n_step: int = 60, seed: int = 0) -> pd.DataFrame:
    """Return series that stay in one of two regimes for about fifteen rows."""
    rng, out = np.random.default_rng(seed), []
    for number in range(n_series):
        regime = np.cumsum(rng.random(n_step) < 1.0 / 15.0) % 2
        x = rng.normal(size=n_step)
        y = np.where(regime == 1, 2.0 + x, -1.0 - x) + rng.normal(0.0, np.where(regime == 1, 0.3, 0.6))
        out.append(pd.DataFrame({"t": np.arange(n_step), "id": number, "x": x, "y": y, "regime": regime}))
    return pd.concat(out, ignore_index=True)


def test_sweeps_are_chosen_and_find_the_regimes_as_those_outside_pymc():
    train, new = regimes(), regimes(seed=1)
    # interpreted: three functions with a scan each would take half a minute to compile
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        tree = bj.ExpertTree("y", train[["t", "id", "x"]], train["y"], depth=1, time="t", series="id")
        other = pm.Normal("other")
        idata = pm.sample(
            draws=30, tune=100, chains=2, cores=1, random_seed=1, progressbar=False, compute_convergence_checks=False
        )
        assert ExpertSeriesGibbs.competence(model["y_offset"], True) > ExpertSeriesGibbs.competence(other, True)
        assert ExpertGibbs.competence(model["y_offset"], True) == ExpertSeriesGibbs.competence(other, True)
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.set_data(bj.ExpertTree.data(tree, new[["t", "id", "x"]]))
        drawn = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False, predictions=True)
    post = bj.fit_experts(
        train, target="y", given=["x"], depth=1, time="t", series="id", draws=30, tune=100, chains=2, rng=2
    )
    # of the same rows, each given those before it
    found = np.log(np.exp(idata.log_likelihood["y"]).mean(("chain", "draw"))).sum()
    expected = np.log(np.exp(post.log_density(train)).mean(("chain", "draw"))).sum()
    assert abs(float(found) - float(expected)) < 0.02 * len(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of so few draws it warns that weights are heavy
        assert np.isfinite(az.loo(idata).elpd)
    # series of the same kind: as spread as the new rows, and not as rows by themselves
    values = drawn.predictions["y"].values.reshape(-1, len(new))
    assert abs(values.std() - new["y"].std()) < 0.5
    stays = np.corrcoef(values[:, :-1].ravel(), values[:, 1:].ravel())[0, 1]
    assert stays > 0.2


def test_series_without_covariates_and_values_as_time():
    y = np.r_[np.zeros(8), np.full(8, 5.0)] + np.random.default_rng(0).normal(size=16)
    with pm.Model() as model:
        tree = bj.ExpertTree("y", None, y, depth=1, time=np.arange(16)[::-1])
        assert model["y_order"].get_value().tolist() == list(range(15, -1, -1))
        assert np.isfinite(list(model.point_logps().values())).all()
        pm.set_data(bj.ExpertTree.data(tree, None, time=[1, 2, 3]))
        assert pm.draw(tree, draws=2, random_seed=1).shape == (2, 3)
    with pm.Model() as model:
        x = pm.Normal("latent", shape=(16, 1))
        bj.ExpertTree("y", x, y, depth=1, time=np.arange(16))
    assert not any(ExpertSeriesGibbs.competence(rv, True) for rv in model.free_RVs)
    assert np.isfinite(list(model.point_logps().values())).all()


def test_what_makes_no_sense_is_refused():
    frame, y = rows("gaussian")
    with pm.Model():
        for own, message in (
            ({"series": "id"}, "without time"),
            ({"time": "t", "series": "id", "transitions": "node"}, "transitions='node'"),
            ({"time": "t", "series": "id", "branches": 3}, "branches=3 with time"),
            ({"time": "t", "series": "id", "depth": 0}, "depth=0 with time"),
            ({"time": "t", "series": list(frame["id"])}, "names of both"),
        ):
            with pytest.raises(ModelError, match=message):
                bj.ExpertTree("y", frame, y, **{"depth": 2} | own)
        with pytest.raises(TableError, match="at the same 't'"):
            bj.ExpertTree("y", frame, y, time="t")
        with pytest.raises(ModelError, match="infinite values"):
            bj.ExpertTree("y", frame, [np.inf] * N_ROW, time="t", series="id")
        with pytest.raises(ModelError, match="without any value"):
            bj.ExpertTree("y", frame, [None] * N_ROW, time="t", series="id")
