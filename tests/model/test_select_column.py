"""One column of the draws, and ArviZ's plots on it."""

from __future__ import annotations

import arviz as az
import matplotlib as mpl
import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr

import bayesjpt as bj
from bayesjpt.errors import ModelError
from tests.model.conftest import Sampled

PLOTS = ("plot_ppc_dist", "plot_ppc_pit", "plot_ppc_dist_pit", "plot_ppc_interval", "plot_ppc_tstat", "plot_loo_pit")


@pytest.fixture(scope="module")
def predicted(sampled) -> Sampled:
    """Return the sampled model with predictive draws and log-likelihoods."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"), sampled.model:
        idata = sampled.idata.copy()
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(idata, extend_inferencedata=True, random_seed=1, progressbar=False)
    return sampled._replace(idata=idata)


@pytest.fixture
def figures():
    """Draw without a screen, and close what was drawn."""
    backend = mpl.get_backend()
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")
    mpl.use(backend)


@pytest.mark.parametrize("position", range(5))
def test_groups_hold_the_observed_cells_of_the_column(position, predicted):
    table = predicted.table
    column = table.names[position]
    found = bj.select_column(predicted.idata, column)
    shown = table.observed[position]
    np.testing.assert_array_equal(found["observed_data"][column], table.values[position, shown])
    rows = predicted.idata["posterior_predictive"]["x"].to_numpy()[:, :, shown, position]
    np.testing.assert_array_equal(found["posterior_predictive"][column], rows)
    np.testing.assert_array_equal(
        found["log_likelihood"][column], predicted.idata["log_likelihood"]["x"].to_numpy()[:, :, shown]
    )
    assert found["posterior_predictive"][column].dims == ("chain", "draw", "x_obs_id")
    assert not shown.all()


@pytest.mark.parametrize(
    ("column", "variable"), [("l/100 km", "l_100 km"), ("draw", "x_draw"), ("x_obs_id", "x_x_obs_id")]
)
def test_a_column_called_like_a_path_or_an_axis_has_another_name(column, variable, predicted):
    name, names = predicted.table.names[0], list(predicted.table.names)
    groups = {group: part.to_dataset() for group, part in predicted.idata.children.items()}
    features = {"x_feature": [column, *names[1:]]}
    renamed = xr.DataTree.from_dict(
        {group: part.assign_coords(features) if "x_feature" in part else part for group, part in groups.items()}
    )
    expected, found = bj.select_column(predicted.idata, name), bj.select_column(renamed, column)
    for group in ("observed_data", "posterior_predictive", "log_likelihood"):
        assert found[group].to_dataset().identical(expected[group].to_dataset().rename({name: variable}))


def test_counts_and_labels_are_whole_numbers_and_reals_are_not(predicted):
    dtypes = {
        column: bj.select_column(predicted.idata, column)["observed_data"][column].dtype.kind
        for column in predicted.table.names
    }
    assert dtypes == {"real": "f", "positive": "f", "count": "i", "levels": "i", "label": "i"}


def test_labels_are_named_where_the_model_is_given(predicted):
    found = bj.select_column(predicted.idata, "label", model=predicted.model)
    assert found["observed_data"]["label"].attrs["labels"] == ["a", "b", "c", "other"]
    assert bj.select_column(predicted.idata, "count", model=predicted.model)["observed_data"]["count"].attrs == {}


@pytest.mark.filterwarnings("ignore:Variables .* look discrete")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # few draws of few rows
@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("column", ["real", "count"])
def test_predictive_and_pit_plots_take_a_column(column, plot, predicted, figures):
    assert getattr(az, plot)(bj.select_column(predicted.idata, column)) is not None
    assert figures.get_fignums()


def test_rootogram_takes_counts(predicted, figures):
    az.plot_ppc_rootogram(bj.select_column(predicted.idata, "count"))
    assert figures.get_fignums()


def test_draws_without_predictions_have_the_observed_group_alone(sampled):
    found = bj.select_column(sampled.idata, "real")
    assert set(found.children) == {"observed_data", "posterior"}


def test_unknown_column_and_block_are_refused_with_those_that_exist(sampled):
    with pytest.raises(ModelError, match=r"'height'.*real, positive, count, levels, label"):
        bj.select_column(sampled.idata, "height")
    with pytest.raises(ModelError, match=r"'y'.*one of x"):
        bj.select_column(sampled.idata, "real", name="y")


def test_draws_of_no_block_are_refused():
    with pytest.raises(ModelError, match="without the rows of a circuit block"):
        bj.select_column(az.from_dict({"posterior": {"m": np.zeros((1, 3))}}), "m")


def test_predictions_of_other_rows_are_refused(predicted):
    idata = predicted.idata.copy()
    idata["posterior_predictive"] = idata["posterior_predictive"].isel(x_obs_id=slice(3))
    with pytest.raises(ModelError, match="3 rows in posterior_predictive and 14 observed"):
        bj.select_column(idata, "real")
