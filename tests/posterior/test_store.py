"""Saved fits: what is written is what is read, to the last bit."""

from __future__ import annotations

import os
from dataclasses import replace

import arviz as az
import cloudpickle
import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesjpt as bj
from bayesjpt.errors import FitFileError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import StackedPosterior
from tests import examples as ex

WEIGHT_TOLERANCE = 1e-12


@pytest.fixture(scope="module")
def back(saved) -> Posterior:
    return bj.load(saved)


@pytest.mark.parametrize("name", ["log_weight", "theta"])
def test_params_come_back_bitwise(post, back, name):
    read, written = getattr(back.params, name), getattr(post.params, name)
    assert read.dtype == written.dtype
    assert read.tobytes() == written.tobytes()


def test_circuit_comes_back_bitwise_and_read_only(post, back):
    assert back.circuit.digest() == post.circuit.digest()
    assert not any(array.flags.writeable for array in back.circuit)


def test_schema_and_settings_come_back_equal(post, back):
    assert back.schema == post.schema
    assert back.settings == post.settings


def test_sampler_statistics_come_back_bitwise(post, back):
    assert set(back.sample_stats) == set(post.sample_stats)
    for name, written in post.sample_stats.items():
        assert np.array_equal(back.sample_stats[name], written)


def test_reference_rows_come_back_with_their_missing_cells(post, back):
    assert np.array_equal(back.reference.values, post.reference.values)
    assert np.array_equal(back.reference.observed, post.reference.observed)


def test_fit_without_reference_and_statistics_comes_back(tmp_path, rng):
    table = ex.make_table((ex.LABEL,), 20, rng)
    bare = replace(ex.random_posterior(ex.independent(table), table, rng), reference=None)
    bare.save(tmp_path / "bare.nc")
    read = bj.load(tmp_path / "bare.nc")
    assert read.reference is None
    assert not read.sample_stats
    assert np.array_equal(read.params.theta, bare.params.theta)


def test_saving_twice_gives_the_same_answers(back, tmp_path):
    back.save(tmp_path / "again.nc")
    again = bj.load(tmp_path / "again.nc")
    assert again.params.log_weight.tobytes() == back.params.log_weight.tobytes()


def test_schema_decided_from_a_real_table_survives(tmp_path):
    table = bj.as_table(
        pd.DataFrame(
            {
                "grade ü": ["a", "b", None, 'quote"', "a"],
                "size": [0.1, 0.25, np.nan, 1e-6, 3.0],
                "n": [0, 1, 2, 3, 4],
                "below": [-1.5, 2.0, 0.0, 1.0, -3.5],
            }
        )
    )
    post = Posterior.from_circuit(ex.independent(table), table.schema)
    post.save(tmp_path / "fit.nc")
    assert bj.load(tmp_path / "fit.nc").schema == table.schema


def test_xarray_finds_arviz_groups_and_weights_that_add_up_to_one(post, saved):
    with xr.open_datatree(saved, engine="h5netcdf") as tree:
        assert {"posterior", "sample_stats"} <= set(tree.children)
        weights = tree["posterior"]["x_sum_weights"]
        assert weights.dims == ("chain", "draw", "x_edge")
        total = weights.groupby(weights["x_edge"].str.split(dim="part", sep="->")[:, 0]).sum()
        assert np.abs(total - 1.0).max() < WEIGHT_TOLERANCE


def test_arviz_reads_the_file_and_summarises_it(saved):
    idata = az.from_netcdf(saved)
    summary = az.summary(idata, var_names=["x_poisson_rate"], kind="stats")
    assert len(summary) == idata["posterior"].sizes["x_poisson_leaf"]
    idata.close()


def test_replaced_file_is_the_new_fit_and_nothing_is_left_beside(post, tmp_path):
    path = tmp_path / "fit.nc"
    path.write_text("an old file")
    post.save(path)
    assert bj.load(path).n_draw == post.n_draw
    assert os.listdir(tmp_path) == ["fit.nc"]


def test_folder_that_does_not_exist_is_refused(post, tmp_path):
    with pytest.raises(FitFileError, match="no folder"):
        post.save(tmp_path / "nowhere" / "fit.nc")


def test_folder_as_a_file_name_is_refused(post, tmp_path):
    with pytest.raises(FitFileError, match="is a folder"):
        post.save(tmp_path)


def test_loading_imports_neither_pymc_nor_arviz(saved, run_python):
    heavy = run_python(
        "import sys, bayesjpt as bj\n"
        f"bj.load({str(saved)!r}).types()\n"
        "print([name for name in ('pymc', 'pytensor', 'arviz', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    assert heavy.strip() == "[]"


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(3)
    table = ex.make_table(ex.COLUMNS, 30, rng)
    parts = [ex.random_posterior(ex.mixture(table, k), table, rng, n_draw=n) for k, n in ((2, 3), (3, 1))]
    return StackedPosterior(parts, [0.8, 0.2], {"seed": 5, "n_structures": 3})


def test_several_structures_come_back_with_weights_and_settings(several, tmp_path):
    several.save(tmp_path / "several.nc")
    read = bj.load(tmp_path / "several.nc")
    assert read.weights.tolist() == several.weights.tolist()
    assert read.settings == several.settings
    for own, written in zip(read.by_structure(), several.by_structure(), strict=True):
        assert own.circuit.digest() == written.circuit.digest()
        assert own.params.log_weight.tobytes() == written.params.log_weight.tobytes()
        assert own.params.theta.tobytes() == written.params.theta.tobytes()


def test_arviz_reads_the_sampler_statistics_of_several_structures(several, tmp_path, rng):
    parts = [
        replace(own, sample_stats={"log_likelihood": rng.normal(size=(2, own.n_draw))})
        for own in several.by_structure()
    ]
    StackedPosterior(parts, several.weights).save(tmp_path / "several.nc")
    tree = az.from_netcdf(tmp_path / "several.nc")
    found = tree["sample_stats/log_likelihood"]
    assert found["structure"].to_numpy().tolist() == [0, 0, 0, 1]
    assert np.array_equal(found[:, 3:], parts[1].sample_stats["log_likelihood"])
    tree.close()
    read = bj.load(tmp_path / "several.nc")
    assert np.array_equal(
        read.by_structure()[1].sample_stats["log_likelihood"], parts[1].sample_stats["log_likelihood"]
    )


def test_statistics_schema_and_reference_rows_of_several_structures_are_written_once(several, tmp_path):
    several.save(tmp_path / "several.nc")
    with xr.open_datatree(tmp_path / "several.nc", engine="h5netcdf") as tree:
        assert set(tree.children) <= {"bayesjpt", "sample_stats"}
        assert tree["bayesjpt"].attrs["schema"].startswith("{")
    read = bj.load(tmp_path / "several.nc")
    assert len({id(own.schema) for own in read.by_structure()}) == 1
    assert len({id(own.reference) for own in read.by_structure()}) == 1


def test_files_of_several_structures_of_an_earlier_format_are_refused_by_name(several, tmp_path):
    several.save(tmp_path / "several.nc")
    with h5py.File(tmp_path / "several.nc", "r+") as file:
        file["bayesjpt"].attrs["format"] = "bayesjpt fit of several structures 1"
    with pytest.raises(FitFileError, match=r"several structures 1'; expected 'bayesjpt fit of several structures 3'"):
        bj.load(tmp_path / "several.nc")


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [("length", (0, 3), 10**6), ("length", (1, 0), -1), ("n_draw", (1,), 0), ("n_draw", (0,), 7)],
)
def test_lengths_that_do_not_add_up_are_refused(several, tmp_path, name, at, value):
    several.save(tmp_path / "several.nc")
    with h5py.File(tmp_path / "several.nc", "r+") as file:
        file["bayesjpt"][name][at] = value
    with pytest.raises(FitFileError, match="cannot be read"):
        bj.load(tmp_path / "several.nc")


@pytest.mark.parametrize("weights", [[0.8, 0.3], [1.0, 0.0], [0.5, np.nan]])
def test_weights_of_structures_that_are_no_shares_are_refused(several, tmp_path, weights):
    wrong = StackedPosterior(several.by_structure(), weights)
    wrong.save(tmp_path / "several.nc")
    with pytest.raises(FitFileError, match="no shares of one"):
        bj.load(tmp_path / "several.nc")


def test_an_unpickled_posterior_has_its_verbs_in_a_process_that_asked_for_nothing_else(rng, tmp_path, run_python):
    table = ex.make_table((ex.REAL, ex.LABEL), 20, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_draw=2)
    expected = float(post.probability("real > 0").mean())  # its plan has an address, which stays behind
    (tmp_path / "post").write_bytes(cloudpickle.dumps(post))
    said = run_python(f"""
import cloudpickle
with open({str(tmp_path / "post")!r}, "rb") as file:
    post = cloudpickle.load(file)
print(float(post.probability("real > 0").mean()))
""")
    assert float(said) == expected
