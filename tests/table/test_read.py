"""Files to tables."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from bayesjpt.errors import BayesjptWarning, SchemaError, TableError
from bayesjpt.table.read import ReadLimits, read_cells
from bayesjpt.table.reading import Reading
from bayesjpt.table.table import as_table, read_table
from bayesjpt.table.write import delimited

LINES = ["size,color,sold", "0.5,red,3", "1.5,?,4", ",blue,9", "2.5, red ,0"]


def written(tmp_path, name, text, encoding="utf-8"):
    path = tmp_path / name
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "wt", encoding=encoding, newline="") as file:
        file.write(text)
    return path


def check(table):
    assert table.names == ("size", "color", "sold")
    assert [column.base for column in table.schema] == ["real", "category", "integer"]
    cells = np.where(table.observed, table.values, np.nan)
    np.testing.assert_array_equal(cells, [[0.5, 1.5, np.nan, 2.5], [1, np.nan, 0, 1], [3, 4, 9, 0]])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.txt", "T.CSV"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separator_is_found_in_the_header_line(tmp_path, name, separator):
    text = "\n".join(LINES).replace(",", separator)
    check(read_table(written(tmp_path, name, text + "\n")))


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz"])
def test_tsv_is_split_at_tabs(tmp_path, name):
    check(read_table(written(tmp_path, name, "\n".join(LINES).replace(",", "\t"))))


def test_comma_inside_quotes_of_the_header_is_no_separator(tmp_path):
    table = read_table(written(tmp_path, "t.csv", '"size, cm";color\n0.5;a\n1.5;b\n'))
    assert table.names == ("size, cm", "color")


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize(
    ("name", "cells"), [("size; cm", ["1", "2"]), ("size, in cm", ["1", "2"]), ("a|b", ["u", "v"])]
)
def test_a_written_name_that_holds_another_separator_is_read_again(tmp_path, separator, name, cells):
    (tmp_path / "t.csv").write_text(delimited([name], [cells], separator))
    cells = ["1,5", "2,5"] if separator == ";" else cells
    (tmp_path / "two.csv").write_text(delimited([name, "kind"], [cells, ["a", "b"]], separator))
    assert [column.name for column in read_cells(tmp_path / "t.csv")[0]] == [name]
    assert [column.name for column in read_cells(tmp_path / "two.csv")[0]] == [name, "kind"]
    assert (tmp_path / "two.csv").read_text().startswith(f'"{name}"{separator}kind\n')


@pytest.mark.parametrize(
    ("text", "values"), [("x\n1,5\n2\n-3,25\n", [1.5, 2.0, -3.25]), ("x\n1,234,567\n8\n17\n", [1234567, 8, 17])]
)
def test_commas_of_numbers_below_a_single_name_part_no_cells(tmp_path, text, values):
    (tmp_path / "t.csv").write_text(text)
    assert read_table(tmp_path / "t.csv").values[0].tolist() == values


def test_cells_of_texts_below_a_single_name_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("x\na,b\nc,d\n")
    with pytest.raises(TableError, match=r"row 1 of .t\.csv. has 2 cells"):
        read_table(tmp_path / "t.csv")


def test_line_end_inside_quotes_of_the_header_is_read(tmp_path):
    table = read_table(written(tmp_path, "t.csv", '"size\nin, cm";color\n0.5;a\n1.5;b\n'))
    assert table.names == ("size\nin, cm", "color")


def test_separator_is_the_one_that_header_and_first_record_hold_equally_often(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "size, cm;color\n0.5;a\n1.5;b\n"))
    assert table.names == ("size, cm", "color")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_systems_are_read(tmp_path, end):
    check(read_table(written(tmp_path, "t.csv", end.join(LINES) + end)))


def test_byte_order_mark_and_blank_lines_are_skipped(tmp_path):
    check(read_table(written(tmp_path, "t.csv", "\n".join(LINES[:3]) + "\n\n" + "\n".join(LINES[3:]), "utf-8-sig")))


def test_quoted_cells_may_hold_separators_and_line_ends(tmp_path):
    table = read_table(written(tmp_path, "t.csv", 'x,y\n"a,b",0.5\n"a\nb",1.5\n'))
    assert table.schema.columns[0].labels == ("a\nb", "a,b")


def test_nameless_column_is_named_by_its_position(tmp_path):
    lines = [",y"] + [f"{i},{i % 3 / 2}" for i in range(40)]
    schema = read_table(written(tmp_path, "t.csv", "\n".join(lines))).schema
    assert schema.names == ("y",)
    assert schema.set_aside[0].name == "unnamed_1"


def test_separator_at_the_end_of_each_line_makes_no_column(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "x,y,\n0.5,a,\n1.5,b,\n"))
    assert table.names == ("x", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("x,y\n", "0 rows and 2 columns"),
        ("x,y\n1,2\n1,2,3\n", "data row 2 of 't.csv' has 3 cells; expected 2"),
        ("x,y\n1,2\n1\n", "data row 2 of 't.csv' has 1 cell; expected 2"),
        ('x,y\n"a,2\n', "quotes that open in line 2 are not closed"),
        ('x,y\n1,2\n"a\nb",3\n\n4,"c,d\n5,e\n', "quotes that open in line 6 are not closed"),
        ('sep=,\nx,y\n1,2\n3,"4" 5\n', "a cell of line 4 goes on behind its quotes; expected ','"),
    ],
)
def test_bad_text_file_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(TableError, match=message) as caught:
        read_table(written(tmp_path, "t.csv", text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sep", "told"),
    [
        ("x,y\n1,2\n3,4\n", ";", r"'t.csv' has one column by the separator ';', and 2 by ','"),
        ("x;y;z\n1,2;2;3\n3;4;5\n", "|", r"'t.csv' has one column by the separator '\|', and 3 by ';'"),
        ("x\n1,2\n3,4\n", ";", None),
        ("a remark, and another\nthis one has none\nno, no, no\n", "\t", None),
    ],
)
def test_a_separator_that_leaves_one_column_is_told_where_another_cuts_all_lines(tmp_path, text, sep, told):
    path = written(tmp_path, "t.csv", text)
    if told is None:
        read_cells(path, reading=Reading(sep=sep, decimal=","))
    else:
        with pytest.warns(BayesjptWarning, match=told):
            read_cells(path, reading=Reading(sep=sep, header=True))


def test_broken_gzip_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(TableError, match=r"'t\.csv\.gz' cannot be read"):
        read_table(path)


@pytest.mark.parametrize("damage", ["cut", "overwritten", "checksum"])
def test_damaged_gzip_is_refused(tmp_path, damage):
    path = written(tmp_path, "t.csv.gz", "x,y\n" + "".join(f"{i},{i * i % 97}\n" for i in range(2_000)))
    data = path.read_bytes()
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "overwritten":
        data = data[:30] + b"\xff" * 200 + data[230:]
    else:
        data = data[:-8] + b"\0\0\0\0" + data[-4:]
    path.write_bytes(data)
    with pytest.raises(TableError, match=r"'t\.csv\.gz' cannot be read"):
        read_table(path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_cut_arrow_file_is_refused(tmp_path, name):
    path = tmp_path / name
    frame = pd.DataFrame({"x": np.arange(100)})
    frame.to_parquet(path) if name.endswith("parquet") else frame.to_feather(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TableError, match="cannot be read"):
        read_table(path)


@pytest.mark.parametrize("path", [None, 3, ["a.csv"]])
def test_what_is_no_path_is_refused_by_its_type(path):
    with pytest.raises(TableError, match=f"a path of type {type(path).__name__}"):
        read_table(path)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(TableError, match="no file"):
        read_table(tmp_path / "none.csv")


def test_unknown_kind_of_file_lists_the_known_ones(tmp_path):
    with pytest.raises(TableError, match=r"'t\.docx'.*\.parquet"):
        read_table(written(tmp_path, "t.docx", "x"))


FRAME = {"size": [0.5, 1.5, None, 2.5], "color": ["red", None, "blue", "red"], "sold": [3, 4, 9, 0]}


def arrow_written(path, kind, compression=None):
    data = pa.table(FRAME)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    if kind == "parquet":
        parquet.write_table(data, path, compression=compression or "none")
    elif kind == "feather":
        feather.write_feather(data, path, compression=compression or "uncompressed")
    else:
        opened = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as sink, opened(sink, data.schema, options=options) as writer:
            writer.write_table(data, max_chunksize=3)
    return path


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t.parquet", "parquet"),
        ("t.feather", "feather"),
        ("t.arrow", "file"),
        ("t.arrow", "stream"),
        ("t.arrows", "stream"),
        ("T.IPC", "file"),
        ("t.ipc", "stream"),
        ("t.feather", "stream"),
    ],
)
def test_arrow_files_and_streams_are_read(tmp_path, name, kind, compression):
    check(read_table(arrow_written(tmp_path / name, kind, compression)))


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"PAR1", b"not arrow at all", b"FEA1"])
@pytest.mark.parametrize("name", ["t.arrow", "t.feather", "t.parquet", "t.ipc"])
def test_file_that_is_none_of_arrow_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match="cannot be read") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
def test_nested_columns_are_left_out_by_their_type_and_cost_nothing(tmp_path, kind):
    """A list of 10**8 zeros takes a kilobyte in a file, and took 16 s to be read."""
    long = pa.ListArray.from_arrays([0, 10**8, 10**8], np.zeros(10**8, np.int8))
    frame = pa.table({"before": [1.5, 2.5], "long": long, "pairs": [{"x": 1}, {"x": 2}], "after": ["u", "v"]})
    path = tmp_path / ("t.parquet" if kind == "parquet" else "t.arrow")
    if kind == "parquet":
        parquet.write_table(frame, path)
    else:
        opened = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with opened(path, frame.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(frame)
    assert path.stat().st_size < 200_000
    table = read_table(path, limits=ReadLimits(free_bytes=1_000_000))
    assert table.names == ("before", "after")
    aside = {column.name: column.reason for column in table.schema.set_aside}
    assert {name: reason.partition(":")[0] for name, reason in aside.items()} == {
        "long": "of type List(Int8)",
        "pairs": "of type Struct",
    }
    with pytest.raises(SchemaError, match="no column is left"):
        read_table(parquet_of(tmp_path, frame.select(["pairs"])))


def parquet_of(folder, frame):
    parquet.write_table(frame, folder / "only.parquet")
    return folder / "only.parquet"


def test_cut_stream_is_refused(tmp_path):
    path = arrow_written(tmp_path / "t.arrow", "stream")
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(TableError, match="cannot be read"):
        read_table(path)


def test_broken_parquet_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"'t\.parquet' cannot be read"):
        read_table(written(tmp_path, "t.parquet", "not parquet"))


def test_file_and_frame_give_the_same_table(tmp_path):
    frame = pd.DataFrame(FRAME)
    frame.to_csv(tmp_path / "t.csv", index=False)
    read, wrapped = read_table(tmp_path / "t.csv"), as_table(frame)
    assert read.schema == wrapped.schema
    np.testing.assert_array_equal(read.values, wrapped.values)


def test_written_frame_reads_back_under_the_schema(tmp_path):
    table = as_table(
        pd.DataFrame({**FRAME, "true": [True, None, False, True], "day": pd.date_range("2020", periods=4)})
    )
    table.to_frame().to_csv(tmp_path / "t.csv", index=False)
    again = read_table(tmp_path / "t.csv", schema=table.schema)
    np.testing.assert_array_equal(again.values, table.values)
    np.testing.assert_array_equal(again.observed, table.observed)


# --- Excel's first line, and limits for files from anywhere


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.txt", "t.tsv"])
@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_may_name_the_separator(tmp_path, name, first, end):
    text = end.join([first, *LINES]).replace(",", ";")
    check(read_table(written(tmp_path, name, text + end)))


def test_a_separator_that_is_named_may_be_any_character(tmp_path):
    check(read_table(written(tmp_path, "t.csv", "\n".join(["sep=^", *LINES]).replace(",", "^"))))


def test_a_file_that_names_a_separator_and_nothing_else_is_empty(tmp_path):
    with pytest.raises(TableError, match="is empty"):
        read_table(written(tmp_path, "t.csv", "sep=;\n"))


def test_a_column_may_be_called_as_that_line_begins(tmp_path):
    assert read_table(written(tmp_path, "t.csv", "sep=,x\n1,2\n2,3\n")).names == ("sep=", "x")


def test_long_tables_that_name_a_separator_lose_no_row(tmp_path):
    rows = [f"{number % 13};{'xyz'[number % 3]}" for number in range(1000)]
    assert read_table(written(tmp_path, "t.csv", "\n".join(["sep=;", "a;b", *rows]))).n_row == 1000


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("length", [50, 100_000, 1_000_000])  # less and more than what is read at once
@pytest.mark.parametrize("where", [0, 1, 5000])
def test_a_line_is_as_long_as_the_limit_at_most(tmp_path, end, length, where):
    lines = ["name"] + [str(number % 7) for number in range(9000)]
    lines[where] = "x" * length
    path = written(tmp_path, "t.csv", end.join(lines))
    with pytest.raises(TableError, match=f"line of 't.csv' has more than {length - 1} bytes"):
        read_table(path, limits=ReadLimits(line_bytes=length - 1))
    if length == 50:  # the csv reader has a limit of its own for a cell
        assert read_table(path, limits=ReadLimits(line_bytes=length)).n_row == 9000


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", "t.feather"])
def test_a_compressed_file_holds_as_much_as_the_limit_at_most(tmp_path, name):
    frame = pd.DataFrame({"few": np.arange(300_000) // 250_000, "count": np.arange(300_000) % 3})
    path = tmp_path / name
    match name:
        case "t.csv.gz":
            frame.to_csv(path, index=False)
        case "t.parquet":
            frame.to_parquet(path)
        case _:
            feather.write_feather(frame, path, compression="zstd")
    assert read_table(path).n_row == 300_000
    with pytest.raises(TableError, match="at most 2 times"):
        read_table(path, limits=ReadLimits(expansion=2.0, free_bytes=1000))


def test_texts_that_repeat_in_a_parquet_file_count_as_often_as_they_do(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"few": ["a" * 1000, "b"] * 5000}).to_parquet(path)
    assert read_table(path).n_row == 10_000
    with pytest.raises(TableError, match="bytes of cells in"):
        read_table(path, limits=ReadLimits(expansion=2.0, free_bytes=1_000_000))


@pytest.mark.parametrize("limits", [{"line_bytes": 0}, {"expansion": float("nan")}, {"free_bytes": "many"}])
def test_limits_are_positive_numbers(limits):
    with pytest.raises(TableError, match="above 0"):
        ReadLimits(**limits)


def test_an_arrow_file_that_asks_for_too_much_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.feather"
    feather.write_feather(pd.DataFrame({"a": [1.0, 2.0]}), path)

    def planted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(pa.ipc, "open_file", planted)
    with pytest.raises(TableError, match="memory"):
        read_table(path)
