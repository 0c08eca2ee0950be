"""Saving against full disks, limits and other writers: an error of ours, and the old file as it was."""

from __future__ import annotations

import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.errors import CheckpointError, FitFileError
from bayesjpt.sampler.files import write_whole
from bayesjpt.sampler.structures_folder import StructuresFolder

N_WRITER = 6


def refused(post: bj.Posterior, path, words: str) -> None:
    """Assert that a fit cannot be saved, and that nothing has become of the folder."""
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(FitFileError, match=words) as caught:
        post.save(path)
    assert path.name in str(caught.value)
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_file_size_limit_is_an_error_of_ours(saved, tmp_path, run_python):
    path = shutil.copy(saved, tmp_path / "fit.nc")
    before = path.read_bytes()
    said = run_python(f"""
import resource
import bayesjpt as bj
post = bj.load({str(path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) // 2}, -1))
try:
    post.save({str(path)!r})
except bj.BayesjptError as error:
    print(error)
""")
    assert "size limit" in said
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_an_error_of_ours(post, saved, small_disk):
    assert saved.stat().st_size > 2**16
    (small_disk / "fit.nc").write_bytes(b"the old one")
    refused(post, small_disk / "fit.nc", "no space")


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_an_error_of_the_disk_is_an_error_of_ours(post, saved, tmp_path, call, number, monkeypatch):
    path = shutil.copy(saved, tmp_path / "fit.nc")

    def planted(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, planted)
    refused(post, path, "no space|error")


def test_no_memory_for_the_content_is_an_error_of_ours(post, saved, tmp_path, monkeypatch):
    path = shutil.copy(saved, tmp_path / "fit.nc")

    def planted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("xarray.DataTree.to_netcdf", planted)
    refused(post, path, "no memory")


def test_of_threads_that_save_to_one_path_one_wins(post, tmp_path):
    path = tmp_path / "fit.nc"
    fits = [bj.Posterior(*post_with(post, seed)) for seed in range(N_WRITER)]
    with ThreadPoolExecutor(N_WRITER) as pool:
        list(pool.map(lambda fit: fit.save(path), fits))
    assert bj.load(path).settings["seed"] in range(N_WRITER)
    assert list(tmp_path.iterdir()) == [path]


def post_with(post: bj.Posterior, seed: int) -> tuple:
    """Return the arguments of a Posterior that differs in its settings alone."""
    return post.circuit, post.schema, post.params, post.sample_stats, post.reference, {**post.settings, "seed": seed}


def test_what_is_written_is_what_was_written_before(post, saved, tmp_path):
    path = tmp_path / "again.nc"
    bj.load(saved).save(path)
    again = bj.load(path)
    assert again.params.theta.tobytes() == post.params.theta.tobytes()
    assert again.params.log_weight.tobytes() == post.params.log_weight.tobytes()


def test_a_checkpoint_says_why_it_cannot_be_written(small_disk):
    with pytest.raises(CheckpointError, match="no space"):
        write_whole(small_disk / "run.json", "x" * 100_000)
    with StructuresFolder(small_disk) as folder, pytest.raises(CheckpointError, match="no space"):
        folder.keep_scores(0, np.zeros((100, 1000)))
    assert list(small_disk.iterdir()) == []


@pytest.mark.filterwarnings("ignore")
def test_a_fit_is_saved_while_a_client_of_dask_is_open(post, saved, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.Client(n_workers=0, protocol="tcp", dashboard_address=None):
        post.save(tmp_path / "fit.nc")
    assert (tmp_path / "fit.nc").read_bytes() == saved.read_bytes()
