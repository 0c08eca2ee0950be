"""Between Posterior, the sampler's draws and a learner's estimate: nothing is lost or reordered."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import start_params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.errors import ModelError
from bayesjpt.posterior.convert import to_datatree
from bayesjpt.posterior.draws import Posterior
from tests import examples as ex
from tests.conftest import SEED

DRAWS = 5


@pytest.fixture(scope="module")
def fitted():
    """Return (table, circuit, model, draws) of a short run whose block has a name of its own."""
    rng = np.random.default_rng([SEED, 2])
    table = ex.make_table(ex.COLUMNS, 250, rng, missing=0.1)
    circuit = ex.two_level(table)
    model = bj.build_model(circuit, table, name="rows")
    with model:
        idata = pm.sample(
            draws=DRAWS,
            tune=2,
            chains=2,
            cores=1,
            progressbar=False,
            compute_convergence_checks=False,
            random_seed=SEED,
            quiet=True,
        )
    return table, circuit, model, idata


@pytest.fixture(scope="module")
def from_model(fitted) -> Posterior:
    _, _, model, idata = fitted
    return Posterior.from_idata(idata, model)


def test_every_variable_is_read_back_exactly(fitted, from_model):
    _, circuit, _, idata = fitted
    layout = make_layout(circuit, from_model.schema)
    for variable in layout.weights:
        drawn = idata["posterior"][f"rows_{variable.name}"].to_numpy()
        assert np.array_equal(from_model.params.log_weight[..., variable.edges], np.log(drawn))
    for variable in layout.parameters:
        drawn = idata["posterior"][f"rows_{variable.name}"].to_numpy()
        assert np.array_equal(from_model.params.theta[..., variable.positions], drawn)


def test_every_position_belongs_to_exactly_one_variable(fitted, from_model):
    _, circuit, _, _ = fitted
    layout = make_layout(circuit, from_model.schema)
    theta = np.concatenate([variable.positions for variable in layout.parameters])
    edges = np.concatenate([variable.edges for variable in layout.weights])
    assert np.array_equal(np.sort(theta), np.arange(circuit.n_theta))
    products = np.setdiff1d(np.arange(circuit.n_edge), edges)
    assert np.unique(edges).size == edges.size
    assert (from_model.params.log_weight[..., products] == 0.0).all()


def test_sampler_statistics_are_read_back(fitted, from_model):
    _, _, _, idata = fitted
    for name in ("log_likelihood", "n_active_edges"):
        assert np.array_equal(from_model.sample_stats[name], idata["sample_stats"][name].to_numpy())


def test_reference_rows_are_rows_of_the_table_with_their_missing_cells(fitted, from_model):
    table, _, _, _ = fitted
    reference = from_model.reference
    rows = np.unique(np.linspace(0, table.n_row - 1, reference.n_row).astype(int))
    assert reference.n_row == 200
    assert np.array_equal(reference.observed, table.observed[:, rows])
    assert np.array_equal(reference.values[reference.observed], table.values[:, rows][reference.observed])


def test_draws_come_back_through_arviz_groups(from_model):
    tree = to_datatree(from_model, "rows")
    assert tree["posterior"].sizes["chain"] == 2
    weights = tree["posterior"]["rows_sum_weights"]
    assert np.abs(weights.sum("rows_edge") - 3.0).max() < 1e-12  # the root and one sum below each component


def test_draws_of_another_model_are_refused_by_name(fitted, rng):
    _, _, _, idata = fitted
    table = ex.make_table((ex.COUNT,), 30, rng)
    model = bj.build_model(ex.independent(table), table, name="other")
    with pytest.raises(ModelError, match="other_likelihood_weights"):
        Posterior.from_idata(idata, model)


@pytest.mark.parametrize(
    ("value", "match"),
    [(np.nan, "below 0 or not a number"), (-0.1, "below 0 or not a number"), (0.3, "no shares of one")],
)
def test_draws_that_are_no_shares_are_refused_by_name(value, match, fitted):
    model, idata = fitted[2], fitted[3].copy(deep=True)
    name = next(name for name in idata["posterior"].data_vars if "weight" in name)
    idata["posterior"][name].values[0, 1, 0] = value
    with pytest.raises(ModelError, match=match):
        Posterior.from_idata(idata, model)


def test_draws_in_single_precision_can_be_saved_and_loaded(fitted, from_model, tmp_path):
    idata = fitted[3].copy(deep=True)
    for name in idata["posterior"].data_vars:
        if "weight" in name:
            values = idata["posterior"][name].values
            values[...] = values.astype(np.float32)
    post = Posterior.from_idata(idata, fitted[2])
    np.testing.assert_allclose(np.exp(post.params.log_weight), np.exp(from_model.params.log_weight), rtol=1e-6)
    post.save(tmp_path / "fit.nc")
    assert np.array_equal(bj.load(tmp_path / "fit.nc").params.log_weight, post.params.log_weight)


def test_model_without_a_block_is_refused(fitted):
    with pm.Model() as model:
        pm.Normal("z")
    with pytest.raises(ModelError, match="no circuit block"):
        Posterior.from_idata(fitted[3], model)


def test_unknown_block_is_refused_with_the_known_ones(fitted):
    with pytest.raises(ModelError, match="one of rows"):
        Posterior.from_idata(fitted[3], fitted[2], name="cells")


def test_learners_estimate_is_one_chain_of_one_draw(fitted):
    table, circuit, _, _ = fitted
    post = Posterior.from_circuit(circuit, table.schema)
    estimate = start_params(circuit)
    assert (post.n_chain, post.n_draw) == (1, 1)
    assert np.array_equal(post.params.log_weight[0, 0], estimate.log_weight)
    assert np.array_equal(post.params.theta[0, 0], estimate.theta)


def test_learners_estimate_answers_the_same_queries(fitted):
    table, circuit, _, _ = fitted
    post = bj.Posterior.from_circuit(circuit, table.schema)
    assert post.log_density(table).shape == (1, 1, table.n_row)
    assert len(post.types().columns) == table.n_column
    assert "cannot be judged" in post.convergence().sentence()
