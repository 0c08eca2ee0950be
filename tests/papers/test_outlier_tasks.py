"""Tables with odd rows: what is drawn, what is spoiled, and the comparison on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.papers import outlier_tasks, outliers


@pytest.fixture
def folder(tmp_path, rng) -> Path:
    """Return a folder with flowers of three kinds, the third larger by far; a running number tells rows apart."""
    kind = np.repeat(["Iris-setosa", "Iris-versicolor", "Iris-virginica"], 40)
    size = rng.normal(size=(120, 2)) + np.where(kind == "Iris-virginica", 40.0, 0.0)[:, None]
    flowers = pd.DataFrame(size.round(2), columns=["length", "width"]).assign(**{"number": range(120), "class": kind})
    (tmp_path / "uci").mkdir()
    flowers.to_csv(tmp_path / "uci/iris.csv.gz", index=False)
    return tmp_path


def test_odd_rows_are_few_of_another_class_and_the_class_is_dropped(folder, rng):
    make = outlier_tasks.classes("uci/iris", "`class` != 'Iris-virginica'", "`class` == 'Iris-virginica'", "class")
    cells, odd = make(str(folder), rng)
    assert list(cells) == ["length", "width", "number"]
    assert (odd.size, odd.sum()) == (84, 4)
    assert (cells["length"] > 20.0).tolist() == odd.tolist()
    assert cells["number"].is_unique


def test_usual_rows_are_drawn_where_there_are_too_many(folder, rng, monkeypatch):
    monkeypatch.setattr(outlier_tasks, "N_USUAL", 20)
    make = outlier_tasks.classes("uci/iris", "length < 20", "length > 20", "class")
    cells, odd = make(str(folder), rng)
    assert (len(cells), odd.sum()) == (21, 1)
    assert cells["number"].to_numpy()[~odd].max() > 20


def test_odd_rows_depend_on_the_seed_alone(folder):
    make = outlier_tasks.COLLECTIONS["validation"](str(folder))["iris"]
    first, again, other = (make(seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first.cells, again.cells)
    assert not first.cells.equals(other.cells)


@pytest.mark.parametrize(("spoil", "n_cell"), [(outlier_tasks.misplaced, 1), (outlier_tasks.exchanged, 2)])
def test_spoiled_rows_differ_from_their_own_in_as_many_cells_as_asked(spoil, n_cell, rng):
    clean = pd.DataFrame(rng.normal(5.0, 1.0, size=(60, 4)).round(3), columns=list("abcd"))
    cells, odd = outlier_tasks.spoiled(lambda data: clean, spoil, n_cell)("", rng)
    assert odd.sum() == 3
    for row, is_odd in zip(cells.to_numpy(), odd, strict=True):
        assert (clean.to_numpy() != row).sum(axis=1).min() == (n_cell if is_odd else 0)


def test_a_misplaced_decimal_point_makes_numbers_ten_times_as_large_or_small(rng):
    column = pd.Series([2.5, 1.0])
    assert {outlier_tasks.misplaced(column, 0, rng) for _ in range(40)} == {0.25, 25.0}


def test_an_exchanged_cell_is_that_of_another_row_or_its_own_if_all_are_equal(rng):
    column = pd.Series(["a", "a", "b", None])
    assert {outlier_tasks.exchanged(column, 0, rng) for _ in range(20)} == {"b"}
    assert {outlier_tasks.exchanged(column, 2, rng) for _ in range(20)} == {"a"}
    assert outlier_tasks.exchanged(pd.Series([1.0, 1.0]), 0, rng) == 1.0


def test_every_task_of_the_validation_is_compared_as_asked(folder, capsys):
    asked = [
        "--seeds",
        "1",
        "--chains",
        "1",
        "--tune",
        "10",
        "--draws",
        "30",
        "--tasks",
        "validation",
        "--tables",
        "iris",
    ]
    assert outliers.main(["--data", str(folder), *asked]) == 0
    *_, line, _ = capsys.readouterr().out.splitlines()
    name, n_row, n_column, share, *areas = (part.strip() for part in line.strip("|").split("|"))
    assert (name, n_row, n_column, share) == ("iris", "84", "3", "4.8%")
    assert float(areas[1].split()[0]) > 0.9


def test_forests_see_labels_and_missing_cells():
    cells = pd.DataFrame({"label": ["a", "b"] * 30 + ["c"], "number": [0.0, np.nan, 1.0] * 20 + [1.0]})
    assert outliers.forest_scores(cells, seed=0).argmax() == 60


def test_rows_far_from_all_others_are_told_from_them(tmp_path, rng, capsys):
    (tmp_path / "outliers").mkdir()
    odd = np.arange(60) < 4
    cells = rng.normal(size=(60, 3)).round(3)
    cells[odd] += [[30.0, 0.0, 0.0], [0.0, -20.0, 0.0], [0.0, 0.0, 40.0], [-15.0, 15.0, -15.0]]
    np.savez(tmp_path / "outliers/few.npz", X=cells, y=odd.astype(int))
    asked = ["--seeds", "1", "--chains", "1", "--tune", "10", "--draws", "30"]
    assert outliers.main(["--data", str(tmp_path), *asked]) == 0
    *_, line, mean = capsys.readouterr().out.splitlines()
    name, _, _, share, *areas = (part.strip() for part in line.strip("|").split("|"))
    assert (name, share) == ("few", "6.7%")
    assert min(float(area.split()[0]) for area in areas[:5]) > 0.9
    assert "mean" in mean
