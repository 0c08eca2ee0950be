"""Files as they come: encodings, separators, headers, sheets, JSON lines; large texts by Arrow as by the csv module."""

from __future__ import annotations

import datetime
import json
import warnings

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, TableError
from bayesjpt.table import delimited
from bayesjpt.table.interpret import interpret
from bayesjpt.table.read import read_cells
from bayesjpt.table.reading import Reading
from bayesjpt.table.table import as_table, read_table

CITIES = ["Zürich", "Genève", "Málaga", "Zürich"]
TEXT = "city,size\n" + "".join(f"{city},{k}.5\n" for k, city in enumerate(CITIES))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_encodings_of_unicode_are_found(tmp_path, encoding):
    mark = "\ufeff" if encoding == "utf-32-le" else ""
    (tmp_path / "t.csv").write_bytes((mark + TEXT).encode(encoding))
    table = read_table(tmp_path / "t.csv")
    assert table.names == ("city", "size")
    assert set(table.schema.columns[0].labels) == set(CITIES)


@pytest.mark.parametrize(("encoding", "words"), [("cp1252", "Windows-1252"), ("latin-1", "Windows-1252")])
def test_encodings_of_windows_are_found_and_that_is_said(tmp_path, encoding, words):
    (tmp_path / "t.csv").write_bytes(TEXT.encode(encoding))
    with pytest.warns(BayesjptWarning, match=f"read as {words}"):
        table = read_table(tmp_path / "t.csv")
    assert set(table.schema.columns[0].labels) == set(CITIES)


def test_bytes_that_windows_does_not_know_are_latin_1(tmp_path):
    (tmp_path / "t.csv").write_bytes("x,y\nZ\u00fcrich,1\n\u0081b,2\nc,3\n".encode("latin-1"))
    with pytest.warns(BayesjptWarning, match="read as Latin-1"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("encoding", ["cp1250", "cp437", "shift_jis"])
def test_an_encoding_may_be_given(tmp_path, encoding):
    text = "city,size\nあ,1.5\nい,2.5\n" if encoding == "shift_jis" else "city,size\nüß,1.5\nö,2.5\n"
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    labels = read_table(tmp_path / "t.csv", encoding=encoding).schema.columns[0].labels
    assert set(labels) == ({"あ", "い"} if encoding == "shift_jis" else {"üß", "ö"})


def test_bytes_that_are_not_in_the_encoding_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(TableError, match=r"'t\.csv' is not utf-8 text \(byte 11\)"):
        read_table(tmp_path / "t.csv", encoding="utf-8")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"encoding": "klingon"}, "encoding 'klingon'"),
        ({"sep": ";;"}, "sep ';;'"),
        ({"decimal": "x"}, "decimal 'x'"),
        ({"encoding": "zip"}, "encoding 'zip'"),
        ({"sheet": "a"}, "sheet 'a' of 't.csv'"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, option, message):
    (tmp_path / "t.csv").write_text(TEXT, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "t.csv", **option)


@pytest.mark.parametrize("sep", [";", "tab", "|", " ", "^"])
def test_a_separator_may_be_given(tmp_path, sep):
    mark = {"tab": "\t"}.get(sep, sep)
    (tmp_path / "t.csv").write_text(TEXT.replace(",", mark), encoding="utf-8")
    assert read_table(tmp_path / "t.csv", sep=sep).names == ("city", "size")


def test_more_values_may_mean_missing(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n-999,x,99\n1.5,gone,3\n-999.0,y,4\n2.5,x,99\n", encoding="utf-8")
    table = read_table(tmp_path / "t.csv", na=["-999", "gone", "c=99"])
    assert table.observed.tolist() == [
        [False, True, False, True],
        [True, False, True, True],
        [False, True, True, False],
    ]
    frame = pd.DataFrame({"a": [-999, 1.5, -999, 2.5], "b": ["x", "gone", "y", "x"], "c": [99, 3, 4, 99]})
    np.testing.assert_array_equal(as_table(frame, na=["-999", "gone", "c=99"]).observed, table.observed)


BODY = "day;kind;sum\n01.02.2023;a;1,5\n02.02.2023;b;-2,5\n28.02.2023;a;3,0\n"


@pytest.mark.parametrize(
    ("above", "rows"),
    [
        ("Account 12\nFrom:;01.01.2023\n\n", "rows 1 to 3"),
        ("Sales, by day;;\n", "row 1"),
        ("# station 7, north\n# units: EUR\n", "rows 1 to 2"),
    ],
)
def test_titles_and_comments_above_a_table_are_left_out_and_that_is_said(tmp_path, above, rows):
    (tmp_path / "t.csv").write_text(above + BODY)
    with pytest.warns(BayesjptWarning, match=f"{rows} of 't.csv' .*, above the table"):
        table = read_table(tmp_path / "t.csv")
    assert table.names == ("day", "kind", "sum")
    assert table.values[2].tolist() == [1.5, -2.5, 3.0]


def test_large_texts_begin_below_their_titles(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_LARGE_BYTES", 1)
    (tmp_path / "t.csv").write_text("Account, \u00fc\n\n" + BODY, encoding="utf-8")
    with pytest.warns(BayesjptWarning, match="above the table"):
        assert read_table(tmp_path / "t.csv").n_row == 3


@pytest.mark.parametrize("large", [False, True])
def test_units_and_sources_around_the_rows_are_left_out_and_that_is_said(tmp_path, monkeypatch, large):
    monkeypatch.setattr(delimited, "_LARGE_BYTES", 1 if large else 2**21)
    rows = "".join(f"{k}.5,{k},{'NS'[k % 2]}\n" for k in range(30))
    (tmp_path / "t.csv").write_text(f"temp,wind,dir\nC,m/s,\n{rows}\nSource: the office\n* April alone\n")
    with pytest.warns(BayesjptWarning) as told:
        table = read_table(tmp_path / "t.csv")
    assert table.values[:2, :2].tolist() == [[0.5, 1.5], [0.0, 1.0]]
    assert table.n_row == 30
    words = " ".join(str(one.message) for one in told)
    assert "below the names (C, m/s) holds units" in words
    assert "the last 2 rows of 't.csv' (Source: the office), below the table, are left out" in words


@pytest.mark.parametrize(
    "text", ["temp wind dir\n1.5 2 N\n-0.5 3 S\n", "  temp  wind dir\n  1.5     2 N \n -0.5     3 S"]
)
def test_cells_apart_by_spaces_are_found_and_that_is_said(tmp_path, text):
    (tmp_path / "t.txt").write_text(text)
    with pytest.warns(BayesjptWarning, match="'t.txt' are read as apart by spaces"):
        table = read_table(tmp_path / "t.txt", kinds={"temp": "real", "wind": "integer"})
    assert table.names == ("temp", "wind", "dir")
    assert table.values[:2].tolist() == [[1.5, -0.5], [2.0, 3.0]]


@pytest.mark.filterwarnings("ignore::bayesjpt.errors.BayesjptWarning")
@pytest.mark.parametrize("cells", ["Ann B. Lee\nTom C. Ray\nKim D. Poe\n", "1 234 567\n2 345 678\n", "2 May 2024\n"])
def test_words_of_one_column_are_not_apart(tmp_path, cells):
    (tmp_path / "t.csv").write_text("what is it\n" + cells * 5)
    assert read_table(tmp_path / "t.csv").names == ("what is it",)


def test_a_short_row_among_others_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n4\n5,6,7\n")
    with pytest.raises(TableError, match=r"data row 2 of 't\.csv' has 1 cell;"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "text",
    [
        "x y\n1 2 3\n2 3 4\n",  # names of two columns, and of rows none
        "note\nfirst, second\nthird, fourth\n",
        "pair\na;5\nb;6\n",
        ",size\na,5\nb,6\n",
        "#,name\n1,a\n2,b\n",
        "a,b,c,d\n1,,,\n2,,,\n3,4,5,6\n",
    ],
)
def test_what_may_be_part_of_the_table_is_not_above_it(text):
    head = text.splitlines(keepends=True)
    for separator in ",; ":
        assert delimited._below_titles(delimited._Head.of(head, separator), head, ",;")[1] == 0


def test_titles_of_a_sheet_are_left_out(tmp_path):
    book = openpyxl.Workbook()
    for row in (["Report"], ["made in March"], [], [None, "Q1", None], ["region", "units", "sum"]):
        book.active.append(row)
    for k in range(6):
        book.active.append(["north" if k % 2 else "south", k, k + 0.5])
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(BayesjptWarning, match="rows 1 to 3 of 't.xlsx, sheet Sheet'"):
        table = read_table(tmp_path / "t.xlsx")
    assert (table.names, table.n_row) == (("region", "units", "sum"), 6)


HEADLESS = [
    "70,basic,35.97\n57,plus,24.85\n49,basic,68.36\n34,plus,33.7\n",
    "1.5\n2.5\n4.5\n",
    "a,yes\na,no\nb,yes\nb,no\na,no\n",
    "5.1,3.5,,0.2\n4.9,,1.4,0.2\n4.7,3.2,,0.4\n4.6,3.1,1.5,0.2\n",  # a gap in the first row
    "2,?,38.5,?\n1,1.5,39.2,\n1,?,38.3,7.5\n1,2.5,39.1,8.4\n",
    "0,0,1,0,0,0\n0,1,0,0,1,0\n1,0,0,0,0,1\n0,0,1,1,0,0\n",
    "left,n,y,?,y,y,n,y\n" + 3 * "right,n,n,?,y,y,n,n\nleft,y,y,n,n,y,y,n\nright,n,n,y,n,n,n,y\n",
]


@pytest.mark.parametrize("text", HEADLESS)
def test_a_table_without_header_loses_no_row_and_that_is_said(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.warns(BayesjptWarning, match="'t.csv' has no header"):
        table = read_table(tmp_path / "t.csv")
    assert table.n_row == text.count("\n")
    assert table.names[0] == "column_1"


@pytest.mark.parametrize(
    "text",
    [
        "age,kind\n70,a\n57,b\n",
        "country,2019,2020\nF,1.5,2\nD,3.5,4\n",
        "2019,2020,2021\n1.5,2,7\n3.5,4,8\n",
        "0,1\n1.5,a\n3.5,a\n",
        "name,note\nx,y\nz,w\n",
        ",y\n1,2.5\n2,3.5\n",
        ",2019,2021\na,1.5,2.5\nb,,3.5\n",
    ],
)
def test_a_header_is_none_of_the_rows(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert read_cells(tmp_path / "t.csv")[0][0].codes.size == text.count("\n") - 1


def test_whether_there_is_a_header_may_be_said(tmp_path):
    (tmp_path / "t.csv").write_text(HEADLESS[0])
    assert read_table(tmp_path / "t.csv", header=False).n_row == 4
    assert read_table(tmp_path / "t.csv", header=True).names == ("70", "basic", "35.97")


def test_a_name_that_is_there_twice_is_changed_and_that_is_said(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,b,a\n1,2,x,3\n2,3,y,4\n4,5,x,9\n")
    with pytest.warns(BayesjptWarning, match="column 2 is 'a_2', for 'a' is the name of column 1; column 4 is 'a_3'"):
        assert read_table(tmp_path / "t.csv").names == ("a", "a_2", "b", "a_3")


def awkward(n):
    """Return the lines of a table with a bit of everything."""
    rng = np.random.default_rng(n)
    plain, codes = rng.normal(size=n).round(3), rng.integers(0, 99, n)
    header = ["plain,whole,code,label,money,day,holes,tokens,tiny,big,text,blank"]
    lines = [
        f'{plain[k]},{codes[k]},{codes[k]:03},{"xyz"[k % 3]},"${1000 * k + 1:,}.50",{1 + k % 28:02}.03.2024,'
        f"{'' if k % 5 else plain[k]},{'NA' if k % 7 else k},1e-{k % 30},{2**53 + k % 3},"
        f'"a ""quoted"", {k % 40}\nline", {k % 11} '
        for k in range(n)
    ]
    return "\n".join([*header, *lines]) + "\n"


@pytest.mark.parametrize("as_written", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_arrow_and_the_csv_module_read_the_same_cells(monkeypatch, as_written, end):
    content = awkward(500).replace("\n", end).encode()
    reading = Reading()
    slow, _ = delimited.read_text(content, "t.csv", reading, as_written=as_written)
    monkeypatch.setattr(delimited, "_LARGE_BYTES", 0)
    monkeypatch.setattr(delimited, "_by_csv", None)
    fast, _ = delimited.read_text(content, "t.csv", reading, as_written=as_written)
    for one, other in zip(slow, fast, strict=True):
        assert one.name == other.name
        view = one if as_written or other.stored == "text" else interpret(one)
        np.testing.assert_array_equal(view.distinct, other.distinct, err_msg=one.name)
        np.testing.assert_array_equal(view.codes, other.codes)
    assert sum(cells.stored == "number" for cells in fast) == (0 if as_written else 6)


def test_arrow_leaves_errors_to_the_csv_module(monkeypatch):
    monkeypatch.setattr(delimited, "_LARGE_BYTES", 0)
    with pytest.raises(TableError, match=r"data row 2 of 't\.csv' has 3 cells; expected 2"):
        delimited.read_text(b"x,y\n1,2\n1,2,3\n", "t.csv", Reading(), as_written=False)


def workbook(path, sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)


ROWS = [
    ["size", "kind", "day", "yes", "empty", 2019],
    [1.5, "a", datetime.date(2024, 2, 28), True, None, 1],
    [2.5, "b", datetime.date(2024, 3, 1), False, None, 2],
    [None, "a", datetime.date(2024, 3, 2), True, None, 4],
]


def test_a_sheet_is_read_as_a_frame_is(tmp_path):
    workbook(tmp_path / "t.xlsx", {"Data": ROWS})
    table = read_table(tmp_path / "t.xlsx")
    frame = pd.DataFrame(ROWS[1:], columns=["size", "kind", "day", "yes", "empty", "2019"])
    frame["day"] = pd.to_datetime(frame["day"])
    assert table.schema == as_table(frame).schema
    np.testing.assert_array_equal(table.observed, as_table(frame).observed)


@pytest.mark.parametrize("sheet", ["B", "2", 2])
def test_a_sheet_may_be_named_or_numbered(tmp_path, sheet):
    workbook(tmp_path / "t.xlsx", {"A": [["x"], [1.5], [2.5]], "B": ROWS})
    assert "size" in read_table(tmp_path / "t.xlsx", sheet=sheet).names


def test_the_first_sheet_with_a_table_is_read_and_that_is_said(tmp_path):
    notes = [["Please read"], ["Sheet A alone"]]
    workbook(tmp_path / "t.xlsx", {"Empty": [], "Notes": notes, "A": [["x"], [1.5], [2.5]], "B": ROWS})
    with pytest.warns(BayesjptWarning, match="sheet 'A' of 't.xlsx' is read; sheet=, or --sheet, takes 'Empty', 'No"):
        assert read_table(tmp_path / "t.xlsx").names == ("x",)


def test_totals_and_remarks_below_a_table_are_left_out(tmp_path):
    rows = [["a", "b", "c"], *([k, 2.5 * k, "xy"[k % 2]] for k in range(8)), ["Total", 70.0, ""], ["as of May", "", ""]]
    workbook(tmp_path / "t.xlsx", {"A": rows})
    (tmp_path / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    for name in ("t.xlsx", "t.csv"):
        with pytest.warns(BayesjptWarning, match=r"the last 2 rows .*\(Total\), below the table, are left out"):
            table = read_table(tmp_path / name)
        assert table.n_row == 8


@pytest.mark.parametrize("row", [["Total", 3, 4], ["New York", None, None]])
def test_a_single_row_of_a_sheet_is_none_below_the_table(tmp_path, row):
    workbook(tmp_path / "t.xlsx", {"A": [["item", "x", "y"], row]})
    assert read_cells(tmp_path / "t.xlsx")[0][0].codes.size == 1


def test_a_row_of_cells_that_were_not_measured_is_no_row_of_units(tmp_path):
    rows = "".join(f"{'ABC'[k % 3]},{k}.5,{k}\n" for k in range(9))
    (tmp_path / "t.csv").write_text(f"site,ph,n\nA,nd,nd\n{rows}")
    assert read_cells(tmp_path / "t.csv")[0][0].codes.size == 10


GROWN = [[f"k{k}", k + 0.5, 2 * k] for k in range(6)]  # columns sum to 18 and 30


@pytest.mark.parametrize(
    "last",
    [
        [["New York", "", ""]],
        [["New York", "", ""], ["San Diego", "", ""]],
        [["Total", 18.0, 31]],
        [["Total", "", ""]],
        [["Total", 18.0, "all"]],
        [["Total", 18.0, 30], ["Total", 36.0, 60]],
        [["x", 4.2, 4], ["average", 3, 5]],  # of so few digits that many rows are near
        [["Total", 3, 4]],
        [["average", 3.0, 4]],
        [["Media", 18.0, 30]] * 3,
        [["Female", 1.5, 2], ["Female", 2.5, 4], ["Total", 22.0, 36], ["Total", 44.0, 72]],
    ],
    ids=str,
)
def test_last_rows_that_may_be_part_of_the_table_are_kept(tmp_path, last):
    rows = [["a", "b", "c"], *GROWN, *last]
    workbook(tmp_path / "t.xlsx", {"A": rows})
    (tmp_path / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    is_new = [row[0] for row in rows].count(last[-1][0]) == 1
    for name in ("t.xlsx", "t.csv"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert read_cells(tmp_path / name)[0][0].codes.size == len(rows) - 1
        told = [str(one.message) for one in caught]
        assert len(told) == (is_new and last[-1][0] in ("Total", "average"))
        assert all(f"({last[-1][0]}) may hold" in one and f"kept as row {len(rows) - 1};" in one for one in told)


@pytest.mark.parametrize(
    "last",
    [
        [["Grand total", 18.0, 30]],
        [["Total:", "18,0", ""], ["Mean", "3,00", "5"]],
        [["", "", ""], ["Mean", 3.0, 5]],
        [["", "", ""], ["Source: the office", "", ""]],
    ],
    ids=str,
)
def test_totals_means_and_remarks_apart_are_left_out_unless_the_option_says_not(tmp_path, last):
    rows = [["a", "b", "c"], *GROWN, *last]
    decimal = "," if "18,0" in last[0] else "."
    lines = [";".join(map(str, row)) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *(line.replace(".", decimal) for line in lines[1:])]))
    with pytest.warns(BayesjptWarning, match="below the table, .* left out; header=True, or --header, keeps"):
        assert read_cells(tmp_path / "t.csv")[0][0].codes.size == len(GROWN)
    assert read_cells(tmp_path / "t.csv", reading=Reading(header=True))[0][0].codes.size == len(rows) - 1


def test_a_sheet_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    workbook(tmp_path / "t.xlsx", {"A": ROWS})
    with pytest.raises(TableError, match=r"^file 't.xlsx' has no sheet 'C'; expected one of 'A'"):
        read_table(tmp_path / "t.xlsx", sheet="C")


def test_a_sheet_holds_as_much_as_the_limit_at_most(tmp_path):
    workbook(tmp_path / "t.xlsx", {"A": ROWS})
    with pytest.raises(TableError, match=r"holds \d+ bytes"):
        read_table(tmp_path / "t.xlsx", limits=bj.ReadLimits(expansion=1.0, free_bytes=10))


def test_a_damaged_workbook_is_refused(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    with pytest.raises(TableError, match=r"cannot be read: .*; expected a workbook"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize("form", ["t.jsonl", "t.ndjson", "t.json"])
def test_json_lines_are_read_and_lists_excluded(tmp_path, form):
    records = [{"size": 1.5, "kind": "a", "tags": [1]}, {"kind": "b", "yes": True}, {"size": 2.5, "kind": "a"}]
    text = json.dumps(records) if form == "t.json" else "\n".join(map(json.dumps, records)) + "\n\n"
    (tmp_path / form).write_text(text)
    with pytest.warns(BayesjptWarning, match="constant"):
        table = read_table(tmp_path / form)
    assert table.names == ("size", "kind", "yes")
    assert table.observed.tolist() == [[True, False, True], [True, True, True], [False, True, False]]
    assert [column.name for column in table.schema.set_aside] == ["tags"]


def test_keys_of_objects_within_objects_are_columns_and_null_in_their_place_is_missing(tmp_path):
    records = [
        {"user": {"age": 30, "geo": {"city": "Rome"}}, "tags": ["a"]},
        {"user": None, "tags": []},
        {"user": {"age": 41, "geo": {}}, "user.age": 42},
        {"user": {"age": 18, "geo": {"city": "Bern"}}},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    table = read_table(path)
    assert table.names == ("user.age", "user.geo.city")
    assert table.values[0].tolist()[::2] == [30.0, 42.0]
    assert table.observed.tolist() == [[True, False, True, True], [True, False, False, True]]
    as_written = {cells.name: cells for cells in read_cells(path, as_written=True)[0]}
    assert as_written["tags"].distinct.tolist() == ['["a"]', "[]"]


def test_objects_with_more_keys_than_a_table_has_columns_are_not_opened(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps({"x": row / 2, "by_id": {f"u{row}": 1}}) for row in range(600)))
    assert read_table(path).names == ("x",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"x": 1}\n{"x": \n', "line 2 of 't.jsonl' is no JSON"),
        (f'{{"x": {"1" * 5000}}}\n', "too many digits"),
        ("[1, 2]", "an object"),
        ("{}\n", "is empty"),
    ],
)
def test_bad_json_is_refused_in_one_line(tmp_path, text, message):
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(TableError, match=message) as caught:
        read_table(tmp_path / "t.jsonl")
    assert "\n" not in str(caught.value)


FRAME = {"size": [0.5, 1.5, 2.5, 2.0], "sold": [3, 4, 9, 0], "yes": [True, False, True, True]}


@pytest.mark.parametrize(
    "make",
    [
        dict,
        lambda columns: {name: np.array(values) for name, values in columns.items()},
        lambda columns: {name: pd.Series(values) for name, values in columns.items()},
        lambda columns: {name: pl.Series(values) for name, values in columns.items()},
        lambda columns: {name: tuple(values) for name, values in columns.items()},
        lambda columns: pd.DataFrame(columns).to_records(index=False),
    ],
)
def test_a_mapping_of_columns_is_a_table(make):
    assert as_table(make(FRAME)).schema == as_table(pd.DataFrame(FRAME)).schema


def test_an_array_is_a_table_with_numbered_columns():
    array = np.array([[0.5, 3], [1.5, 4], [np.nan, 9]])
    table = as_table(array)
    assert table.names == ("column_1", "column_2")
    assert table.n_missing == 1
    assert as_table(array[:, 0]).names == ("column_1",)
    assert as_table(np.array([["a", "1"], ["b", "2"], ["a", "4"]])).schema.columns[1].base == "integer"


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(TableError, match="column 'b' has 3 cells; expected 2 as column 'a' has"):
        as_table({"a": [1, 2], "b": [1, 2, 3]})


def test_new_columns_are_an_error_or_ignored_with_a_warning():
    schema = as_table(FRAME).schema
    with pytest.raises(bj.BayesjptError, match="a column 'new'"):
        as_table({**FRAME, "new": [1, 2, 3, 4]}, schema=schema)
    with pytest.warns(BayesjptWarning, match="ignored: 'new'"):
        assert as_table({**FRAME, "new": [1, 2, 3, 4]}, schema=schema, ignore_new=True).n_row == 4
