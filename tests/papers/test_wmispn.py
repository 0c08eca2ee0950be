"""The comparison of networks over intervals on a tiny folder of the same form as the data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import TableError
from tests.papers import wmispn, wmispn_picture

QUICK = {"n_structures": 1, "draws": 3, "tune": 2, "chains": 1, "cores": 1}


@pytest.fixture
def folder(tmp_path, rng) -> Path:
    """Return a folder with one table: two numbers and a label, and what no training row had among the test rows."""
    for part, n_row in (("train", 90), ("valid", 12), ("test", 20)):
        group = rng.random(n_row) < 0.4
        frame = pd.DataFrame({"size": rng.normal(4.0 * group).round(2), "visits": rng.poisson(3.0 + 30.0 * group)})
        frame["kind"] = np.where(group, "a", "b")
        if part == "test":
            frame.loc[0, "size"] = 99.0
        (tmp_path / "mspn/tiny").mkdir(parents=True, exist_ok=True)
        frame.to_csv(tmp_path / f"mspn/tiny/{part}.csv.gz", index=False)
    return tmp_path


@pytest.fixture
def quick(monkeypatch) -> None:
    """Shorten every fit."""
    options = wmispn.settings
    monkeypatch.setattr(wmispn, "settings", lambda *asked: options(*asked) | QUICK)


def test_every_model_scores_every_row_with_a_finite_mass(folder, quick, capsys):
    assert wmispn.main(["--data", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    models = [line for line in lines if line.split()[:1] == ["tiny"]][: len(wmispn.MODELS)]
    assert [next(name for name in sorted(wmispn.MODELS, key=len, reverse=True) if name in line) for line in models] == [
        *wmispn.MODELS
    ]
    for line in models:
        mass, gain, error, _, zero, _ = line.rsplit(maxsplit=6)[1:]
        assert np.isfinite([float(mass), float(gain), float(error)]).all()
        assert float(mass) < 0.0
        assert zero == "0"


def test_orders_count_columns_of_numbers_without_levels(folder):
    train = wmispn.read(folder / "mspn/tiny", "test").train
    numbers = sum(column.base != "category" and not column.levels for column in train.schema)
    for n_bins in (2, 5):
        assert wmispn.orders(train, n_bins).sum() == numbers


def test_orders_alone_fit_nothing(folder, monkeypatch, capsys):
    monkeypatch.setattr(bj, "fit", None)
    assert wmispn.main(["--data", str(folder), "--orders"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[2:]] == [["tiny", "2"], ["tiny", "5"]]


def test_dictionary_beside_holds_ours_and_splines(folder):
    train = wmispn.read(folder / "mspn/tiny", "test").train
    names = {c.name: [family.name for family in wmispn.beside(c)] for c in train.schema}
    assert names["size"][-1] == names["visits"][-1] == "spline"
    assert "spline" not in names["kind"]


def test_folder_without_a_part_is_refused_by_name(tmp_path):
    with pytest.raises(TableError, match=r"expected a file train\.csv"):
        wmispn.read(tmp_path, "test")


def test_picture_is_written(tmp_path, rng, monkeypatch):
    fit = bj.fit
    monkeypatch.setattr(bj, "fit", lambda *given, **options: fit(*given, **(options | QUICK)))
    table = bj.as_table(pd.DataFrame({"glucose": rng.poisson(100.0, 60)}), kinds={"glucose": "integer"})
    wmispn_picture.draw(table, "glucose", str(tmp_path / "picture.svg"))
    assert "<svg" in (tmp_path / "picture.svg").read_text(encoding="utf-8")
