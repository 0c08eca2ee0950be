"""Paths that are none are one error of ours, wherever they are given."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli
from bayesjpt.errors import BayesjptError
from bayesjpt.table import batches
from bayesjpt.table.write import write_table
from bayesjpt.user_paths import as_file, as_output
from tests import examples as ex

LONG = "a" * 300


@pytest.fixture(scope="module")
def post():
    rng = np.random.default_rng(1)
    table = ex.make_table((ex.REAL, ex.COUNT), 40, rng)
    return ex.random_posterior(ex.mixture(table), table, rng, n_draw=2)


WAYS = {
    "load": lambda post, path: bj.load(path),
    "load experts": lambda post, path: bj.load_experts(path),
    "read": lambda post, path: bj.read_table(f"{path}.csv" if path else path),
    "save": lambda post, path: post.save(path),
    "report": lambda post, path: post.report(f"{path}.html" if path else path),
    "tree": lambda post, path: post.tree().save(path),
    "schema": lambda post, path: post.schema.write(path),
    "sample": lambda post, path: write_table(post.sample(3, rng=1), f"{path}.csv" if path else path),
    "dataset": lambda post, path: bj.dataset(f"{path}.csv" if path else path),
}


@pytest.mark.parametrize("path", [None, "", LONG, "a\0b", os.path.join("no such folder", "x")])
@pytest.mark.parametrize("way", WAYS)
def test_a_path_that_is_none_is_an_error_of_ours(way, path, post, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BayesjptError) as error:
        WAYS[way](post, path)
    assert len(str(error.value)) < 700
    assert not list(tmp_path.iterdir())


def test_the_home_folder_is_found_by_its_sign(post, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    post.save("~/fit.nc")
    assert (tmp_path / "fit.nc").is_file()
    assert bj.load("~/fit.nc").n_draw == post.n_draw
    rows = tmp_path / "rows"
    rows.mkdir()
    write_table(post.sample(30, rng=1), "~/rows/a.csv")
    assert batches.is_several("~/rows")
    assert batches.find_files("~/rows/*.csv") == (rows / "a.csv",)
    x = np.linspace(0.0, 1.0, 20)
    bj.fit_experts({"x": x, "y": x}, target="y", depth=0, draws=2, tune=2, chains=1, rng=1).save("~/experts.nc")
    assert (tmp_path / "experts.nc").is_file()
    kept = ["fit", "~/rows/a.csv", "-o", "~/again.nc", "-q", "--checkpoint", "~/kept", "--draws", "2", "--tune", "2"]
    assert cli.run([*kept, "--structures", "1", "--seed", "1"]) == 0
    assert (tmp_path / "again.nc").is_file()
    assert not (tmp_path / "kept").exists()


def test_a_closed_folder_is_said(tmp_path, monkeypatch):
    stat = os.stat

    def closed(path, *args, **options):
        if str(path).startswith(str(tmp_path / "shut")):
            raise PermissionError(13, "Permission denied")
        return stat(path, *args, **options)

    monkeypatch.setattr(os, "stat", closed)
    for check in (as_file, as_output):
        with pytest.raises(BayesjptError, match="no permission to look for"):
            check(tmp_path / "shut" / "x.csv", BayesjptError)


@pytest.mark.parametrize(
    ("name", "is_open", "flag", "why"),
    [
        (LONG, True, 0, "the name is too long"),
        ("new.nc", False, 0, "no permission to write into the folder"),
        ("old.nc", False, 0, "no permission to write into the folder"),
        ("link.nc", False, 0, "no permission to write into the folder"),
        ("new.nc", False, getattr(os, "ST_RDONLY", 1), "the file system is read-only"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(name, is_open, flag, why, tmp_path, monkeypatch):
    inner, asked = tmp_path / "inner", []
    inner.mkdir()
    (inner / "old.nc").touch()
    (tmp_path / "link.nc").symlink_to(inner / "old.nc")
    monkeypatch.setattr(os, "access", lambda folder, _: asked.append(folder) or is_open)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flag))
    with pytest.raises(BayesjptError, match=why):
        as_output(tmp_path / name if name == "link.nc" else inner / name, BayesjptError)
    assert asked in ([], [str(inner)])


def test_a_link_into_no_folder_is_said(tmp_path):
    (tmp_path / "link.nc").symlink_to(tmp_path / "gone" / "fit.nc")
    with pytest.raises(BayesjptError, match="which is no folder"):
        as_output(tmp_path / "link.nc", BayesjptError)


def test_a_device_is_written_into_whatever_its_folder(monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert str(as_output(os.devnull, BayesjptError)) == os.devnull


def test_wide_lines_and_long_cells_are_read(tmp_path):
    names = [f"gene_expression_of_the_sample_number_{k}" for k in range(4_000)]  # lines of 160 and 80 kB
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 4_000)), columns=names)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    assert bj.read_table(tmp_path / "wide.csv").n_column == 4_000
    (tmp_path / "long.csv").write_text("x,y\n" + "".join(f"{k},{'a' * 200_000 if k == 5 else k}\n" for k in range(9)))
    assert "x" in bj.read_table(tmp_path / "long.csv").names
