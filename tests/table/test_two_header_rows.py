"""Names of columns that stand in two rows, or repeat."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from bayesjpt.errors import BayesjptWarning
from bayesjpt.table.header import holds_names, joined_names
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


def test_questions_and_import_keys_of_a_survey_are_no_rows(tmp_path):
    head = 'Start,Q1,Q2\nStart Date,"How old,\nin years?",Which?\n'
    keys = '"{""ImportId"":""s""}","{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"\n'
    rows = "".join(f"2024-03-{day:02},{20 + day % 9},{'ab'[day % 2]}\n" for day in range(1, 29))
    (tmp_path / "t.csv").write_text(head + keys + rows)
    with pytest.warns(BayesjptWarning, match="2 rows are left out below the names of 't.csv'"):
        table = read_table(tmp_path / "t.csv")
    assert table.names == ("Start", "Q1", "Q2")
    assert [column.dtype for column in table.schema] == ["datetime", "number", "text"]
    assert table.n_row == 28


def test_names_that_repeat_are_no_row_where_they_do_not_stand_below():
    assert holds_names(3 * ["2019"] + 3 * ["2021"], [["1.5", "2.5", "3", "4", "", "7"], ["2", "3", "4", "5", "8", "9"]])


def test_a_cell_is_a_value_where_it_is_one_among_those_below():
    months = [
        [f"{month}-{year}", f"{k}.5"] for year in (18, 19) for k, month in enumerate(("Jan", "Apr", "Jul", "Sep"))
    ]
    assert not holds_names(["Feb-19", "7"], months)  # the 19 may be a day, too
    assert holds_names(["2019-01-01", "2019-02-01"], [["1.5", "2"], ["3.5", "4"]])


@pytest.mark.parametrize("top", [",Revenue,,Costs,,", "Region,Revenue,Revenue,Costs,Costs,Costs"])
def test_years_below_merged_names_are_names(tmp_path, top):
    rng = np.random.default_rng(3)
    rows = "".join(f"R{k % 7},{','.join(f'{x:.1f}' for x in rng.normal(100.0, 9.0, 5))}\n" for k in range(40))
    first = "Region" if top[0] == "," else ""
    (tmp_path / "t.csv").write_text(f"{top}\n{first},2022,2023,2022,2023,2024\n{rows}")
    with pytest.warns(BayesjptWarning, match="stand in two rows, which are joined: Region, Revenue 2022, Revenue 2023"):
        table = read_table(tmp_path / "t.csv")
    assert (table.n_row, table.names[-1]) == (40, "Costs 2024")


def test_years_below_names_are_cells_where_years_follow():
    first, record = ["Region", "From", "", "n"], ["a", "2001", "2004", "7"]
    below = [["b", "2003", "2005", "8"], ["c", "1999", "2001", "9"]]
    assert joined_names(first, record, below) is None
    assert joined_names(first, ["a", "2001", "2004", "2000"], [["b", "3.5", "1", "8"], ["a", "2", "1", "9"]]) is None
