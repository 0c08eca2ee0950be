"""Names of columns that stand in two rows."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from bayesjpt.errors import BayesjptWarning
from bayesjpt.table.table import read_table

NAMES = ["Person Name", "Person Age", "Score Math", "Score Art", "When"]
TOPS = {
    "repeated": ["Person", "Person", "Score", "Score", "When"],
    "merged": ["Person", "", "Score", "", "When"],
}
PARTS = ["Name", "Age", "Math", "Art", ""]


def rows_of(rng):
    return [
        [f"N{k % 9}", int(rng.integers(18, 70)), round(rng.normal(60, 9), 1), round(rng.normal(50, 9), 1), f"{k}.5"]
        for k in range(40)
    ]


@pytest.mark.parametrize("top", TOPS.values(), ids=TOPS)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_names_in_two_rows_are_joined_and_that_is_said(tmp_path, top, suffix):
    path, rows = tmp_path / f"t.{suffix}", [top, PARTS, *rows_of(np.random.default_rng(3))]
    if suffix == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    else:
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append([None if cell == "" else cell for cell in row])
        book.save(path)
    with pytest.warns(BayesjptWarning, match="stand in two rows, which are joined: Person Name, Person Age"):
        table = read_table(path)
    assert [*table.names, *(one.name for one in table.schema.set_aside)] == NAMES
    assert table.n_row == 40


def test_units_below_names_that_repeat_are_no_names(tmp_path):
    rows = "".join(f"{k % 3},{k}.5,{k * 7 % 11}.25\n" for k in range(30))
    (tmp_path / "t.csv").write_text(f"group,size,size\n,cm,cm\n{rows}")
    with (
        pytest.warns(BayesjptWarning, match="holds units"),
        pytest.warns(BayesjptWarning, match="column 3 is 'size_2'"),
    ):
        assert read_table(tmp_path / "t.csv").names == ("group", "size", "size_2")
