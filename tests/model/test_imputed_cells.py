"""Missing cells as variables where their number or values are not those of the rows: other rows, and starts."""

from __future__ import annotations

import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest

import bayesjpt as bj
from bayesjpt.errors import ModelError
from bayesjpt.model.imputation_step import CircuitImputation
from tests import examples as ex
from tests.model.conftest import QUICK

N_ROW = 20
SAMPLE = {"draws": 3, "tune": 3, "chains": 1, "cores": 1, "random_seed": 1, "quiet": True, **QUICK}


def frame_with_gaps(*rows: int):
    """Return 20 rows of two numbers near each other, the second missing in some rows."""
    rng = np.random.default_rng(3)
    a = rng.normal(np.where(np.arange(N_ROW) % 2, 4.0, -4.0), 1.0)
    frame = pd.DataFrame({"a": a, "b": a + rng.normal(0.0, 0.5, N_ROW)})
    frame.loc[list(rows), "b"] = np.nan
    return frame


def regression(**options) -> pm.Model:
    """Return the model of a response that depends on the column with gaps, in the first three rows."""
    table = bj.as_table(frame_with_gaps(0, 1, 2))
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    with pm.Model() as model:
        x = bj.CircuitMixture("x", circuit, table, impute=True, **options)
        slope = pm.Normal("slope", 0.0, 2.0)
        pm.Normal("y", slope * x[:, 1], 1.0, observed=np.linspace(-8.0, 8.0, N_ROW), shape=x.shape[0])
    return model


@pytest.fixture(scope="module")
def drawn():
    """Return (model, draws) of the regression."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        model = regression()
        with model:
            return model, pm.sample(**SAMPLE)


def predicted(model: pm.Model, idata, **options):
    with model:
        return pm.sample_posterior_predictive(idata, predictions=True, random_seed=1, progressbar=False, **options)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
@pytest.mark.parametrize("rows", [(4,), (4, 5, 6, 7, 8)], ids=["fewer", "more"])
@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImplicitFreezeWarning")
def test_cells_of_rows_before_are_refused_for_another_number(mode, rows, drawn):
    model, idata = drawn[0].copy(), drawn[1]
    bj.set_rows(model, frame_with_gaps(*rows))
    with pytensor.config.change_flags(mode=mode):
        with pytest.raises(ModelError, match=r'draws from before bj.set_rows.*sample_vars=\["x_imputed", ...\]'):
            predicted(model, idata)
        with pytest.raises(ModelError, match="another number of missing cells"), model:
            pm.compute_log_likelihood(idata, var_names=["y"], extend_inferencedata=False, progressbar=False)
        found = predicted(model, idata, sample_vars=["x_imputed", "y"])["predictions"]
    assert found["x_imputed"].shape == (1, 3, len(rows))
    assert np.isfinite(found["y"]).all()


def test_as_many_cells_of_rows_before_are_told_by_pymc(drawn):
    model, idata = drawn[0].copy(), drawn[1]
    bj.set_rows(model, frame_with_gaps(4, 5, 6))
    with pytest.warns(pm.exceptions.ImplicitFreezeWarning, match="'x_imputed'.*x_missing"):
        predicted(model, idata)


def test_draws_of_the_new_rows_are_kept(drawn):
    model = drawn[0].copy()
    bj.set_rows(model, frame_with_gaps(4, 5, 6, 7))
    with model:
        idata = pm.sample(**SAMPLE)
        scored = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    assert idata["posterior"]["x_imputed"].shape == (1, 3, 4)
    assert predicted(model, idata)["predictions"]["y"].shape == (1, 3, N_ROW)
    assert np.isfinite(scored["y"]).all()


STARTS = {
    "none": (np.empty(0), r"x_imputed of shape \(0,\); expected \(3,\)"),
    "one": (np.zeros(1), r"x_imputed of shape \(1,\); expected \(3,\)"),
    "too many": (np.zeros(50), r"x_imputed of shape \(50,\); expected \(3,\)"),
    "not a number": (np.array([0.0, np.nan, 0.0]), "x_imputed with values that are not finite"),
}


@pytest.mark.parametrize(("start", "match"), STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("transforms", [False, True])
def test_starts_of_missing_cells_are_checked(transforms, start, match):
    """By the sweeps of a block, and by the step of its cells, which alone draws of a block with transforms."""
    with regression(transforms=transforms), pytest.raises(ModelError, match=match):
        pm.sample(initvals={"x_imputed": start}, **SAMPLE)


def test_starts_of_missing_cells_are_taken():
    with regression():
        idata = pm.sample(initvals={"x_imputed": np.array([-4.0, 4.0, -4.0])}, **SAMPLE)
    assert np.isfinite(idata["posterior"]["x_imputed"]).all()


@pytest.mark.parametrize("rows", [(4, 5, 6), (4, 5)], ids=["as many cells", "fewer cells"])
def test_rows_of_set_data_whose_missing_cells_have_labels_of_others_are_refused(rows):
    frame = frame_with_gaps(*rows)
    with regression() as model:
        pm.set_data({"x_data": frame.fillna(0.0).to_numpy(), "x_missing": frame.isna().to_numpy()})
        with pytest.raises(ModelError, match=r"than coordinate x_gap names.*bj.set_rows"):
            CircuitImputation([model["x_imputed"]])


def test_two_blocks_have_missing_cells_of_their_own():
    tables = {name: bj.as_table(frame_with_gaps(*rows)) for name, rows in {"x": (0, 1, 2), "z": (5, 6)}.items()}
    circuits = {name: ex.mixture(table, dictionary=ex.only("normal")) for name, table in tables.items()}
    with pm.Model() as model:
        x, z = (bj.CircuitMixture(name, circuits[name], tables[name], impute=True) for name in tables)
        pm.Normal("y", pm.Normal("slope") * (x[:, 1] + z[:, 1]), 1.0, observed=np.zeros(N_ROW), shape=x.shape[0])
        idata = pm.sample(**SAMPLE)
    assert {name: idata["posterior"][f"{name}_imputed"].shape[2] for name in tables} == {"x": 3, "z": 2}
    bj.set_rows(model, frame_with_gaps(4), name="z")
    found = predicted(model, idata, sample_vars=["z_imputed", "y"])["predictions"]
    assert found["z_imputed"]["z_gap"].to_numpy().tolist() == ["b[4]"]
    assert np.isfinite(found["y"]).all()


def test_leave_one_out_goes_without_rows_of_missing_cells_alone():
    """As the page on blocks has it."""
    frame = frame_with_gaps()
    frame.iloc[3] = np.nan
    table = bj.as_table(frame)
    with bj.build_model(ex.mixture(table, dictionary=ex.only("normal")), table):
        idata = pm.sample(**SAMPLE | {"draws": 30})
        pm.compute_log_likelihood(idata, progressbar=False)
    with pytest.raises(ValueError, match="All tail values are the same"):
        az.loo(idata)
    known = ~np.isnan(idata["observed_data"]["x"]).all("x_feature")
    idata["log_likelihood"] = idata["log_likelihood"].isel(x_obs_id=known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws
        assert np.isfinite(az.loo(idata).elpd)
