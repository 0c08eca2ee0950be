"""Text files of a data set: what one table is, and what is wrong with one of them."""

from __future__ import annotations

import warnings

import pytest

import bayesjpt as bj
from bayesjpt.errors import TableError
from bayesjpt.table import delimited
from tests.table.test_dataset import assert_same

HEADER = "x,l\n"
ROWS = [f"{i}.5,{'uvw'[i % 3]}\n" for i in range(60)]
OPEN = {"at the end": ['5,"u\n'], "up to the next quotes": ['5,"u\n', '6,"v"\n']}


def put(folder, *parts):
    for number, part in enumerate(parts):
        (folder / f"part_{number}.csv").write_text(part, encoding="utf-8")
    return folder


def said_by(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    return made, [str(each.message) for each in caught]


@pytest.mark.parametrize("where", OPEN)
def test_quotes_that_do_not_close_are_refused_by_their_line(tmp_path, where):
    put(tmp_path, HEADER + "".join(ROWS), HEADER + "".join([*ROWS[:30], *OPEN[where], *ROWS[30:]]))
    with pytest.raises(TableError, match=r"file 'part_1.csv' cannot be read: .*line 32"):
        bj.dataset(tmp_path)


@pytest.mark.parametrize("where", OPEN)
def test_quotes_of_a_large_table_that_do_not_close_are_refused_by_their_line(tmp_path, where, monkeypatch):
    monkeypatch.setattr(delimited, "_LARGE_BYTES", 1)
    put(tmp_path, HEADER + "".join([*ROWS[:30], *OPEN[where], *ROWS[30:]]))
    with pytest.raises(TableError, match=r"file 'part_0.csv' cannot be read: .*line 32"):
        bj.read_table(tmp_path / "part_0.csv")


def test_cells_of_several_lines_are_those_of_one_table(tmp_path, monkeypatch):
    rows = [row.replace("u", '"a\nb"') for row in ROWS]
    put(tmp_path, HEADER + "".join(rows[:20]), HEADER + "".join(rows[20:]))
    (tmp_path / "whole").mkdir()
    whole = put(tmp_path / "whole", HEADER + "".join(rows)) / "part_0.csv"
    table = bj.read_table(whole)
    assert_same(bj.dataset(tmp_path), table)
    monkeypatch.setattr(delimited, "_LARGE_BYTES", 1)
    assert bj.read_table(whole).schema == table.schema


def test_a_row_of_another_number_of_cells_is_told_by_its_number(tmp_path):
    put(tmp_path, HEADER + "".join(ROWS), HEADER + "".join([*ROWS[:4], "1,u,9\n"]))
    with pytest.raises(TableError, match=r"data row 5 of 'part_1.csv' has 3 cells; expected 2"):
        bj.dataset(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "'part_1.csv' is empty; expected names"),
        ("x,l\n1,ä\n".encode("utf-16"), "'part_1.csv' .*Save it as UTF-8"),
    ],
)
def test_a_file_without_names_or_in_another_encoding_says_what_to_do(tmp_path, content, words):
    put(tmp_path, HEADER + "".join(ROWS))
    (tmp_path / "part_1.csv").write_bytes(content)
    with pytest.raises(TableError, match=words):
        bj.dataset(tmp_path)


def test_columns_without_a_name_are_called_as_in_one_table(tmp_path):
    parts = [",l,\n" + "".join(f"{i % 7},{'uvw'[i % 3]},{i % 4}\n" for i in range(40))] * 2
    assert bj.dataset(put(tmp_path, *parts)).names == ("unnamed_1", "l", "unnamed_3")


ODD = {
    "semicolons tell of decimal commas": ("x;l\n", [f"{i + 1}.{i:03d};{'uvw'[i % 3]}\n" for i in range(60)]),
    "signs": ("x,l\n", [f"+{i % 7}.5,{'uvw'[i % 3]}\n" for i in range(60)]),
    "a word among numbers": ("x,l\n", ["unknown,u\n", *ROWS]),
    "a remark among amounts, in a part of few rows": ("x,l\n", ["call us,u\n", *(f"${row}" for row in ROWS)]),
    "a remark among dates, in a part of few rows": (
        "x,l\n",
        ["soon,u\n", *(f"{1 + i % 28}.03.2020,{'uvw'[i % 3]}\n" for i in range(60))],
    ),
}


@pytest.mark.parametrize("n_first", [1, 5])
@pytest.mark.parametrize("kind", ODD)
def test_cells_are_read_and_told_as_those_of_one_table(tmp_path, kind, n_first):
    header, rows = ODD[kind]
    (tmp_path / "whole").mkdir()
    whole = put(tmp_path / "whole", header + "".join(rows)) / "part_0.csv"
    table, expected = said_by(lambda: bj.read_table(whole))
    put(tmp_path, header + "".join(rows[:n_first]), header + "".join(rows[n_first:]))
    found, said = said_by(lambda: bj.dataset(tmp_path))
    assert_same(found, table)
    assert said == expected


def test_a_folder_without_tables_says_what_it_should_hold(tmp_path):
    (tmp_path / "year=2020").mkdir()
    put(tmp_path / "year=2020", HEADER + "".join(ROWS))
    with pytest.raises(TableError, match=r"holds no table; expected files whose names end in .*\.parquet.*\*\*/"):
        bj.dataset(tmp_path)
