"""The circuit travels with the draws: files, trees in memory, new rows and predictions, without the model."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr

import bayesjpt as bj
from bayesjpt.circuit.packed import FORMAT, pack, unpack
from bayesjpt.errors import CircuitError, FitFileError, ModelError, QueryError, SchemaError
from bayesjpt.posterior.check import checked_circuit
from bayesjpt.table.schema import Schema
from tests import examples as ex
from tests.conftest import SEED
from tests.model.conftest import QUICK

TOLERANCE = 1e-12
LARGEST_Z = 5.0


def same(one: bj.Posterior, other: bj.Posterior) -> bool:
    return (
        one.circuit.digest() == other.circuit.digest()
        and one.schema == other.schema
        and all(np.array_equal(a, b) for a, b in zip(one.params, other.params, strict=True))
        and set(one.sample_stats) == set(other.sample_stats)
        and np.array_equal(one.reference.values, other.reference.values)
        and np.array_equal(one.reference.observed, other.reference.observed)
    )


@pytest.fixture(scope="module")
def path(sampled, tmp_path_factory):
    path = tmp_path_factory.mktemp("draws") / "idata.nc"
    sampled.idata.to_netcdf(path)
    return path


@pytest.fixture(scope="module")
def with_model(sampled) -> bj.Posterior:
    return bj.Posterior.from_idata(sampled.idata, sampled.model)


def test_draws_of_pm_sample_are_a_posterior_without_the_model(sampled, with_model):
    assert same(bj.Posterior.from_idata(sampled.idata), with_model)


def test_a_file_of_draws_is_loaded_without_the_model(path, with_model):
    assert same(bj.load(path), with_model)


def test_draws_that_arviz_read_from_a_file_are_a_posterior(path, with_model):
    idata = az.from_netcdf(path)
    assert same(bj.Posterior.from_idata(idata), with_model)
    idata.close()


def test_what_travels_is_small(sampled):
    words = sampled.idata["constant_data"]["x_circuit"].to_numpy()
    assert (
        words.nbytes
        < sum(array.nbytes for array in sampled.circuit) + len(json.dumps(sampled.table.schema.to_dict())) + 4000
    )


def test_to_idata_and_back_loses_nothing(with_model, tmp_path):
    noted = with_model.noted(seed=5)
    tree = noted.to_idata()
    back = bj.Posterior.from_idata(tree)
    assert same(back, with_model)
    assert back.settings == {"seed": 5}
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    assert same(bj.load(tmp_path / "tree.nc"), with_model)


def test_observed_data_hold_nan_where_cells_are_missing(sampled):
    rows = sampled.idata["observed_data"]["x"].to_numpy()
    assert np.array_equal(np.isnan(rows), ~sampled.table.observed.T)
    assert np.array_equal(rows[sampled.table.observed.T], sampled.table.values.T[sampled.table.observed.T])


def test_packed_circuits_come_back_bitwise(sampled):
    header, arrays = unpack(pack(sampled.circuit, sampled.table.schema))
    assert bj.Schema.from_dict(header["schema"]) == sampled.table.schema
    for name, array in sampled.circuit._asdict().items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].tobytes() == array.tobytes()


def _changed(words: np.ndarray, old: bytes, new: bytes) -> np.ndarray:
    content = words.tobytes()
    assert old in content
    assert len(old) == len(new)
    return np.frombuffer(content.replace(old, new), np.uint64)


MALFORMED = {
    "another format": lambda w: _changed(w, FORMAT.encode(), FORMAT[:-1].encode() + b"9"),
    "no JSON": lambda w: _changed(w, b'{"format"', b'["format"'),
    "a header without end": lambda w: np.concatenate([np.array([2**60], np.uint64), w[1:]]),
    "a header without length": lambda w: np.concatenate([np.zeros(1, np.uint64), w[1:]]),
    "an end cut off": lambda w: w[:-3],
    "nothing": lambda w: w[:0],
    "numbers that are not whole": lambda w: w.astype(float),
    "another type of array": lambda w: _changed(w, b'"child_ptr", "<i4"', b'"child_ptr", "|O8"'),
    "another array": lambda w: _changed(w, b'"child_ptr"', b'"child_pty"'),
    "an unknown family": lambda w: _changed(w, b'"poisson"', b'"poisoon"'),
    "an unknown base": lambda w: _changed(w, b'"base": "real"', b'"base": "reel"'),
    "other children": lambda w: np.concatenate([w[:-40], w[-40:][::-1]]),
}


def test_no_memory_is_taken_for_children_that_are_not_there(sampled):
    header, arrays = unpack(sampled.idata["constant_data"]["x_circuit"].to_numpy())
    schema = Schema.from_dict(header["schema"])
    checked_circuit(arrays, schema)
    arrays["child_ptr"] = arrays["child_ptr"].copy()
    arrays["child_ptr"][-1] = 10_000_000
    tracemalloc.start()
    with pytest.raises(CircuitError, match="child_ptr"):
        checked_circuit(arrays, schema)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_a_saved_fit_has_no_blocks_to_name(with_model, tmp_path):
    with_model.save(tmp_path / "fit.nc")
    with pytest.raises(ModelError, match="name='x' for a saved fit"):
        bj.load(tmp_path / "fit.nc", name="x")


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_circuit_is_our_error(change, sampled):
    constants = sampled.idata["constant_data"].to_dataset().drop_vars("x_circuit")
    words = change(sampled.idata["constant_data"]["x_circuit"].to_numpy())
    tree = xr.DataTree.from_dict(
        {
            "posterior": sampled.idata["posterior"].to_dataset(),
            "constant_data": constants.drop_dims("x_circuit_dim_0", errors="ignore").assign(x_circuit=("word", words)),
        }
    )
    with pytest.raises(FitFileError, match="the draws cannot be read"):
        bj.Posterior.from_idata(tree)


@pytest.mark.parametrize(
    ("group", "change"),
    [
        ("posterior", lambda d: d.drop_vars("x_normal_mu")),
        ("posterior", lambda d: d.isel(x_normal_leaf=slice(1, None))),
        ("posterior", lambda d: d.assign(x_sum_weights=d["x_sum_weights"] * 2.0)),
        ("posterior", lambda d: d.assign(x_normal_variance=-d["x_normal_variance"])),
        ("posterior", lambda d: d.isel(draw=slice(0, 0))),
        ("observed_data", lambda d: d.isel(x_feature=slice(1, None))),
        ("constant_data", lambda d: d.drop_vars("x_circuit")),
    ],
)
def test_draws_that_do_not_fit_their_circuit_are_our_error(group, change, sampled):
    groups = {name: sampled.idata[name].to_dataset() for name in ("posterior", "observed_data", "constant_data")}
    tree = xr.DataTree.from_dict(groups | {group: change(groups[group])})
    with pytest.raises(FitFileError, match="the draws cannot be read"):
        bj.Posterior.from_idata(tree)


def test_something_else_than_draws_is_refused():
    with pytest.raises(ModelError, match="draws of type dict"):
        bj.Posterior.from_idata({})


def test_a_file_without_a_circuit_says_what_is_missing(sampled, tmp_path):
    xr.DataTree.from_dict({"posterior": sampled.idata["posterior"].to_dataset()}).to_netcdf(
        tmp_path / "plain.nc", engine="h5netcdf"
    )
    with pytest.raises(FitFileError, match=r"no group .bayesjpt., nor a circuit"):
        bj.load(tmp_path / "plain.nc")


@pytest.fixture(scope="module")
def two_blocks(tmp_path_factory):
    """Return (table, model, idata, path): two blocks of one name in named submodels, and one beside them."""
    rng = np.random.default_rng([SEED, 77])
    table = ex.make_table((ex.REAL, ex.LABEL), 12, rng, missing=0.2)
    circuit = ex.mixture(table, dictionary=ex.only("normal", "categorical"))
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model() as model:
        for prefix, n in (("north", 2), ("south", 3)):
            with pm.Model(name=prefix):
                bj.CircuitMixture("x", ex.mixture(table, n, dictionary=ex.only("normal", "categorical")), table)
        bj.CircuitMixture("x", circuit, table)
        idata = pm.sample(draws=4, tune=2, chains=1, cores=1, random_seed=SEED, quiet=True, **QUICK)
    path = tmp_path_factory.mktemp("two") / "idata.nc"
    idata.to_netcdf(path)
    return table, model, idata, path


@pytest.mark.parametrize("name", ["north::x", "south::x", "x"])
def test_blocks_of_named_submodels_are_read_back(name, two_blocks):
    table, model, idata, path = two_blocks
    read = bj.Posterior.from_idata(idata, model, name=name)
    assert read.params.log_weight.shape[:2] == (1, 4)
    assert same(bj.Posterior.from_idata(idata, name=name), read)
    assert same(bj.load(path, name), read)
    assert read.log_density(table).shape == (1, 4, table.n_row)
    dims = idata["posterior"][f"{name}_sum_weights"].dims
    assert dims == ("chain", "draw", f"{name}_edge")


@pytest.mark.parametrize(("name", "match"), [(None, "name= one of them"), ("west", "no block 'west'")])
def test_the_block_must_be_named_where_there_are_several(name, match, two_blocks):
    with pytest.raises(ModelError, match=match):
        bj.Posterior.from_idata(two_blocks[2], name=name)
    with pytest.raises(ModelError, match=match):
        bj.load(two_blocks[3], name)


# --- rows of a frame


FRAME = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})


@pytest.fixture(scope="module")
def kinds():
    table = bj.as_table(FRAME, kinds={"size": "real"})
    circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    return table, bj.build_model(circuit, table), bj.Posterior.from_circuit(circuit, table.schema)


def test_new_rows_keep_their_index_and_their_gaps(sampled, with_model, rng):
    frame = ex.make_table(ex.COLUMNS, 3, rng, missing=0.3).to_frame().set_axis(["x", "y", "z"], axis=0)
    copy = sampled.model.copy()
    with pytest.warns(bj.BayesjptWarning, match="unknown"):
        table = bj.set_rows(copy, frame[frame.columns[::-1]].assign(unknown=1))
    assert copy.coords["x_obs_id"] == ("x", "y", "z")
    assert np.array_equal(copy["x_missing"].get_value(), ~table.observed.T)
    assert np.array_equal(np.isnan(copy["x_data"].get_value()), ~table.observed.T)
    with copy:
        scores = pm.compute_log_likelihood(sampled.idata, extend_inferencedata=False, progressbar=False)
    assert scores["x"]["x_obs_id"].to_numpy().tolist() == ["x", "y", "z"]
    expected = with_model.log_density(table).to_numpy()
    np.testing.assert_allclose(scores["x"].to_numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_rows_of_another_schema_are_refused(kinds):
    _, model, _ = kinds
    with pytest.raises(ModelError, match="another schema"):
        bj.set_rows(model.copy(), bj.as_table(pd.DataFrame({"size": [1.5, 2.25, 3.0]})))
    with pytest.raises(SchemaError):
        bj.set_rows(model.copy(), pd.DataFrame({"size": ["large"]}))
    with pytest.raises(ModelError, match="no block 'y'"):
        bj.set_rows(model.copy(), FRAME, name="y")
    with pytest.raises(ModelError, match="no circuit block"):
        bj.set_rows(pm.Model(), FRAME)


def test_predictions_condition_on_the_other_cells(kinds, rng):
    _, _, post = kinds
    many = replace(post, params=type(post.params)(*(np.repeat(array, 400, axis=1) for array in post.params)))
    new = pd.DataFrame({"size": [0.5, 9.0, None], "kind": ["b", "a", "b"]}, index=[10, 20, 30])
    drawn = bj.predict(many.to_idata(), None, new, ["kind"], rng=rng)
    assert drawn["kind"].dims == ("chain", "draw", "obs_id")
    assert drawn["obs_id"].to_numpy().tolist() == [10, 20, 30]
    assert set(np.unique(drawn["kind"])) <= {"a", "b"}
    share = (drawn["kind"] == "a").mean(("chain", "draw")).to_numpy()
    expected = post.predict("kind", new)["a"].to_numpy()
    assert (np.abs(share - expected) < LARGEST_Z * np.sqrt(expected * (1.0 - expected) / 400) + 1e-3).all()


def test_several_targets_are_drawn_jointly(kinds, rng):
    _, _, post = kinds
    many = replace(post, params=type(post.params)(*(np.repeat(array, 200, axis=1) for array in post.params)))
    drawn = bj.predict(many.to_idata(), None, FRAME[:1], ["kind", "size"], rng=rng)
    large = drawn["size"].where(drawn["kind"] == "b").mean() - drawn["size"].where(drawn["kind"] == "a").mean()
    assert float(large) > 5.0


@pytest.mark.parametrize(
    ("targets", "match"), [([], "no targets"), (["weight"], "weight"), (["draw"], "axis of the answer")]
)
def test_targets_that_make_no_sense_are_refused(targets, match, kinds):
    with pytest.raises(QueryError, match=match):
        bj.predict(kinds[2].to_idata(), None, FRAME, targets)
