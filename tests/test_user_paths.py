"""Paths that are none are one error of ours, wherever they are given."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptError
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


@pytest.mark.parametrize("path", [None, LONG, "a\0b", os.path.join("no such folder", "x")])
@pytest.mark.parametrize("way", WAYS)
def test_a_path_that_is_none_is_an_error_of_ours(way, path, post, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BayesjptError) as error:
        WAYS[way](post, path)
    assert len(str(error.value)) < 700
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, who may become somebody else")
def test_a_closed_folder_is_said(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed" / "x.csv").write_text("a,b\n1,2\n")
    for folder in tmp_path, *tmp_path.parents:
        if folder.stat().st_mode & 0o5 != 0o5:
            pytest.skip("the folder of temporary files is closed itself")
    os.seteuid(65534)
    try:
        for check in (as_file, as_output):
            with pytest.raises(BayesjptError, match=r"no permission|no folder|closed"):
                check(tmp_path / "closed" / "x.csv", BayesjptError)
    finally:
        os.seteuid(0)


def test_wide_lines_and_long_cells_are_read(tmp_path):
    names = [f"gene{k}" for k in range(15_000)]
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 15_000)).round(3), columns=names)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    assert bj.read_table(tmp_path / "wide.csv").n_column == 15_000
    (tmp_path / "long.csv").write_text("x,y\n" + "".join(f"{k},{'a' * 200_000 if k == 5 else k}\n" for k in range(9)))
    assert "x" in bj.read_table(tmp_path / "long.csv").names
