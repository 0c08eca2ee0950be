"""The block's variables: names, dims, coords, concentrations, shares of types, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.errors import CircuitError, ModelError
from bayesjpt.families import registry
from tests import examples as ex

TOLERANCE = 1e-12


def test_variables_are_one_of_each_kind_under_the_name_of_the_block(sampled):
    expected = {
        "x_sum_weights",
        "x_likelihood_weights",
        "x_normal_scale",
        "x_normal_variance",
        "x_normal_mu",
        "x_gamma_scale",
        "x_gamma_shape",
        "x_gamma_rate",
        "x_exponential_scale",
        "x_exponential_rate",
        "x_poisson_scale",
        "x_poisson_rate",
        "x_geometric_scale",
        "x_geometric_p",
        "x_categorical_scale",
        "x_categorical_probability",
    }
    assert {rv.name for rv in sampled.model.free_RVs} == expected
    assert [rv.name for rv in sampled.model.observed_RVs] == ["x"]


def test_dims_are_named_and_their_labels_readable(sampled):
    dims = sampled.model.named_vars_to_dims
    assert dims["x"] == ("x_obs_id", "x_feature")
    assert dims["x_sum_weights"] == ("x_edge",)
    assert dims["x_likelihood_weights"] == ("x_likelihood_edge",)
    assert dims["x_normal_mu"] == dims["x_normal_variance"] == ("x_normal_leaf",)
    assert dims["x_type_weights"] == ("x_feature", "x_likelihood")
    coords = sampled.model.coords
    assert list(coords["x_feature"]) == list(sampled.table.names)
    assert list(coords["x_likelihood"]) == [family.name for family in registry.FAMILIES]
    assert "positive[0]:gamma" in coords["x_likelihood_edge"]
    assert "real[0]" in coords["x_normal_leaf"]
    assert "label[0]=a" in coords["x_categorical_leaf"]


def test_labels_of_a_dimension_are_unique_and_as_many_as_entries(sampled):
    for name, value in sampled.model.initial_point().items():
        (dim,) = sampled.model.named_vars_to_dims[name]
        labels = sampled.model.coords[dim]
        assert len(set(labels)) == len(labels) == value.size


def test_missing_cells_are_no_free_variables(sampled):
    assert not sampled.table.observed.all()
    assert len(sampled.model.free_RVs) == len(sampled.model.value_vars)
    assert not any("unobserved" in name or "missing" in name for name in (rv.name for rv in sampled.model.free_RVs))


def test_log_density_ignores_what_stands_in_a_missing_cell(sampled):
    point = sampled.model.initial_point()
    values = sampled.table.values.T.copy()
    values[~sampled.table.observed.T] = 1e6
    with sampled.model.copy() as changed:  # it adds up its factors in another order
        before = changed.compile_logp()(point)
        pm.set_data({"x_data": values})
        assert changed.compile_logp()(point) == before
        values[sampled.table.observed.T] += 1.0
        pm.set_data({"x_data": values})
        assert changed.compile_logp()(point) != before


def test_a_row_without_any_observed_cell_adds_nothing(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 5, rng)
    observed = table.observed.copy()
    observed[:, 2] = False
    hidden = replace(table, observed=observed)
    circuit = ex.mixture(table)
    model = bj.build_model(circuit, hidden)
    # the rows' density given their parameters does not take the factors of these parameters' priors
    point = {name: value for name, value in model.initial_point().items() if not name.endswith("_scale")}
    rows = model.compile_fn(model.logp(vars=model["x"], sum=False)[0])(point)
    assert rows.shape == (5,)
    assert rows[2] == 0.0
    assert (rows[[0, 1, 3, 4]] != 0.0).all()


def test_type_weights_of_every_column_sum_to_one(sampled):
    shares = sampled.idata["posterior"]["x_type_weights"].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=-1), 1.0, rtol=0.0, atol=TOLERANCE)


def test_type_weights_are_those_that_the_posterior_reports(sampled):
    shares = sampled.idata["posterior"]["x_type_weights"].to_numpy()
    reported = bj.Posterior.from_idata(sampled.idata, sampled.model).types().shares.draws["likelihood_share"].to_numpy()
    np.testing.assert_allclose(shares, reported, rtol=0.0, atol=TOLERANCE)


def test_concentrations_are_gamma_at_sums_and_alpha_at_dictionaries(rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    circuit = ex.mixture(table)
    model = bj.build_model(circuit, table, gamma=3.0, alpha=0.5)
    concentration = {rv.name: set(rv.owner.inputs[2].eval()) for rv in model.free_RVs if "weights" in rv.name}
    assert concentration == {"x_sum_weights": {3.0}, "x_likelihood_weights": {0.5}}


def test_a_circuit_without_sums_has_no_weights(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 4, rng)
    model = bj.build_model(ex.independent(table, ex.only("normal")), table)
    parameters = {"x_normal_scale", "x_normal_variance", "x_normal_mu"}
    parameters |= {"x_categorical_scale", "x_categorical_probability"}
    assert {rv.name for rv in model.free_RVs} == parameters
    with model:
        shares = pm.draw(model["x_type_weights"])
    np.testing.assert_array_equal(shares, np.eye(len(registry.FAMILIES))[[0, 5]])


def test_two_blocks_live_in_one_model_under_their_names(rng):
    table = ex.make_table((ex.REAL,), 4, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    with pm.Model() as model:
        bj.CircuitMixture("first", circuit, table)
        bj.CircuitMixture("second", circuit, table)
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    assert {rv.name for rv in model.free_RVs} == {
        f"{block}_{name}"
        for block in ("first", "second")
        for name in ("sum_weights", "normal_scale", "normal_variance", "normal_mu")
    }


@pytest.mark.parametrize("setting", [{"gamma": 0.0}, {"gamma": np.nan}, {"alpha": -1.0}, {"alpha": "many"}])
def test_a_concentration_that_is_no_positive_number_is_refused_by_name(setting, rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    with pytest.raises(ModelError, match=next(iter(setting))):
        bj.build_model(ex.mixture(table), table, **setting)


def test_an_unknown_prior_is_refused_with_those_that_exist(rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    with pytest.raises(ModelError, match=r"'jeffreys'.*default, abda"):
        bj.build_model(ex.mixture(table), table, prior="jeffreys")


def test_data_that_are_no_table_are_refused_with_the_way_to_make_one(rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    with pytest.raises(ModelError, match=r"ndarray.*bj\.as_table"):
        bj.build_model(ex.mixture(table), table.values)


def test_a_circuit_that_is_none_is_refused(rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    with pytest.raises(ModelError, match="dict"):
        bj.build_model({}, table)


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_name_that_is_no_text_is_refused(name, rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    with pytest.raises(ModelError, match="block name"):
        bj.build_model(ex.mixture(table), table, name=name)


def test_a_circuit_over_other_columns_is_refused(rng):
    table = ex.make_table((ex.COUNT, ex.LABEL), 4, rng)
    with pytest.raises(CircuitError):
        bj.build_model(ex.mixture(table), ex.part(table, 0))


def test_a_block_outside_any_model_is_refused(rng):
    table = ex.make_table((ex.COUNT,), 4, rng)
    with pytest.raises(TypeError, match="context stack"):
        bj.CircuitMixture("x", ex.mixture(table), table)
