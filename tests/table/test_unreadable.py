"""Columns of numbers or dates in which a few cells are neither, and columns without name and cells."""

from __future__ import annotations

import datetime

import numpy as np
import openpyxl
import pandas as pd
import pytest

from bayesjpt.errors import BayesjptWarning, SchemaError
from bayesjpt.table.read import read_cells
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table, read_table
from bayesjpt.table.unreadable import Unreadable, unreadable_text

AGES = [str(18 + k * 7 % 62) for k in range(100)]
PRICES = [f"{k}.{k * 37 % 100:02}" for k in range(1, 101)]
DAYS = [f"{datetime.date(2021, 1, 1) + datetime.timedelta(days=3 * k)}" for k in range(100)]
NAMES = ("age", "price", "start")


def rows_with(**odd: dict[int, str]) -> pd.DataFrame:
    """Return ages, prices and days with some cells replaced."""
    frame = pd.DataFrame({"age": AGES, "price": PRICES, "start": DAYS}, dtype=object)
    for name, texts in odd.items():
        for row, text in texts.items():
            frame.loc[row, name] = text
    return frame


DAMAGED = {"age": {10: "4O"}, "price": {20: "call us"}, "start": {30: "2021-02-31"}}


def shapes(schema: Schema) -> dict[str, tuple[str, str, int]]:
    return {column.name: (column.base, column.dtype, column.n_missing) for column in schema}


@pytest.mark.parametrize("source", ["file", "large file", "frame"])
def test_one_damaged_cell_is_missing_and_told_by_row(tmp_path, source, monkeypatch):
    frame = rows_with(**DAMAGED)
    frame.to_csv(tmp_path / "t.csv", index=False)
    if source == "large file":
        monkeypatch.setattr("bayesjpt.table.delimited._LARGE_BYTES", 0)
    with pytest.warns(BayesjptWarning, match="read as missing") as told:
        table = as_table(frame) if source == "frame" else read_table(tmp_path / "t.csv")
    (text,) = [str(one.message) for one in told]
    for column, row, cell in (("age", 11, "4O"), ("price", 21, "call us"), ("start", 31, "2021-02-31")):
        assert f"'{cell}' in column '{column}' (first in row {row})" in text
    assert text.endswith("na='age=4O', or --na age=4O")
    assert shapes(table.schema) == {
        "age": ("integer", "number", 1),
        "price": ("real", "number", 1),
        "start": ("real", "datetime", 1),
    }
    assert table.schema.columns[0].notation is None
    assert not table.observed[[0, 1, 2], [10, 20, 30]].any()


def test_the_remedy_that_is_told_says_so_without_a_word():
    tokens = [f"{name}={text}" for name, texts in DAMAGED.items() for text in texts.values()]
    table = as_table(rows_with(**DAMAGED), na=tokens)
    with pytest.warns(BayesjptWarning):
        assert shapes(table.schema) == shapes(as_table(rows_with(**DAMAGED)).schema)


def test_a_frame_of_several_kinds_is_read_as_a_file_is():
    mixed = pd.DataFrame(
        {"price": pd.Series([*map(float, PRICES[:50]), "call us", *map(float, PRICES[50:])], dtype=object)}
    )
    with pytest.warns(BayesjptWarning) as told:
        (column,) = as_table(mixed).schema
    assert ["'call us' in column 'price' (first in row 51)" in str(one.message) for one in told] == [True]
    assert (column.base, column.n_missing) == ("real", 1)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param([f"no {word}" for word in "abcdef"], id="too many cells"),
        pytest.param(["<5"], id="below a limit"),
        pytest.param(["90+"], id="above a limit"),
        pytest.param(["10-20"], id="a range"),
        pytest.param(["over 90"], id="a bound in words"),
    ],
)
def test_texts_that_are_many_or_tell_of_a_number_keep_the_column_out(odd):
    texts = [f"{price}5" for price in PRICES]
    texts[: len(odd)] = odd
    schema = as_table({"x": texts, "y": ["a", "b"] * 50}).schema
    assert f"the first that is not is {odd[0]!r} in row 1" in {one.name: one.reason for one in schema.set_aside}["x"]


@pytest.mark.filterwarnings("ignore::bayesjpt.errors.BayesjptWarning")
@pytest.mark.parametrize("unit", ["", " kg"])
@pytest.mark.parametrize("text", ["x", "1x", "1", "1_", "x ", "1 ", "1-", "1,", "1:"])
def test_a_long_text_beside_numbers_is_looked_at_in_no_time(text, unit):
    # an hour and more where the time grows with the square of the length
    texts = [price + unit for price in PRICES] + [text * 10**6 + "!"]
    assert as_table({"x": texts, "y": ["a", "b"] * 50 + ["a"]}).n_row == 101


def test_few_different_numbers_beside_a_text_stay_labels():
    (column,) = as_table({"x": [*"12345" * 20, "two"]}).schema
    assert column.labels == ("1", "2", "3", "4", "5", "two")


def test_codes_with_leading_zeros_beside_a_text_stay_texts():
    schema = as_table({"x": [f"0{k}" for k in range(100, 200)] + ["X1"], "y": ["a"] + ["b"] * 100}).schema
    assert [column.name for column in schema.set_aside] == ["x"]


@pytest.mark.filterwarnings("ignore:25 of 100 cells without cm")
def test_a_word_behind_many_numbers_is_their_unit():
    (column,) = as_table({"x": [f"{k}.5 cm" if k % 4 else f"{k}.5" for k in range(100)]}).schema
    assert column.notation is not None
    assert column.notation.suffix == " cm"


def test_a_currency_before_the_first_number_alone_is_one():
    (column,) = as_table({"x": ["$1,200.50", *(f"{k}.25" for k in range(100))]}).schema
    assert (column.base, column.n_missing) == ("real", 0)


def test_rows_under_a_schema_are_read_as_its_training_rows_were():
    with pytest.warns(BayesjptWarning):
        trained = as_table(rows_with(**DAMAGED))
    with pytest.warns(BayesjptWarning, match="'4O' in column 'age' .first in row 11."):
        again = as_table(rows_with(**DAMAGED), schema=trained.schema)
    assert np.array_equal(again.observed, trained.observed)
    assert np.array_equal(again.values, trained.values)


@pytest.mark.parametrize(("name", "text"), [("age", "4O"), ("price", "call us"), ("start", "2021-02-31")])
def test_a_damaged_cell_of_few_new_rows_is_refused(name, text):
    schema = as_table(rows_with()).schema
    with pytest.raises(SchemaError, match=f"'{name}' holds '{text}' in row 1;"):
        as_table({name: [text]}, schema=schema)


def test_a_document_reads_the_rows_that_it_was_written_of(tmp_path):
    with pytest.warns(BayesjptWarning):
        schema = as_table(rows_with(**DAMAGED)).schema
    schema.write(tmp_path / "schema.toml")
    with pytest.warns(BayesjptWarning, match="'4O' in column 'age'"):
        assert as_table(rows_with(**DAMAGED), schema=tmp_path / "schema.toml").schema.columns == schema.columns


def test_a_warning_names_few_columns_and_clips_long_texts():
    told = unreadable_text([Unreadable(f"c{k}", "x" * 90, k + 1, 1 + k) for k in range(6)])
    assert "and 1 more in column 'c1' (first in row 2)" in told
    assert "and 2 columns more" in told
    assert "x" * 60 not in told.partition("; mend them")[0]


def test_an_empty_column_without_a_name_is_told_unless_it_is_at_an_end(tmp_path):
    lines = ["a,,b,", *(f"{k}.5,,{'xy'[k % 2]}," for k in range(6))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    book = openpyxl.Workbook()
    for line in lines:
        book.worksheets[0].append([cell or None for cell in line.split(",")])
    book.save(tmp_path / "t.xlsx")
    for name in ("t.csv", "t.xlsx"):
        with pytest.warns(
            BayesjptWarning, match=f"^column 2 of '{name}.*' is left out: without a name and empty$"
        ) as told:
            assert [cells.name for cells in read_cells(tmp_path / name)[0]] == ["a", "b"]
        assert len(told) == 1
    (tmp_path / "t.csv").write_text("\n".join(f",{line.replace(',,', ',')}" for line in lines))
    assert [cells.name for cells in read_cells(tmp_path / "t.csv")[0]] == ["a", "b"]


@pytest.mark.parametrize("token", ["-", "unknown"])
def test_a_token_among_numbers_that_are_labels_is_missing_under_the_document_too(token, tmp_path):
    frame = pd.DataFrame({"is": ["0", token, "1", "0"] * 10, "x": np.arange(40) / 7})
    with pytest.warns(BayesjptWarning, match=f"read as missing among numbers: '{token}' in column 'is'"):
        table = as_table(frame)
    table.schema.write(tmp_path / "schema.toml")
    with pytest.warns(BayesjptWarning, match=f"read as missing among numbers: '{token}' in column 'is'"):
        again = as_table(frame, schema=tmp_path / "schema.toml")
    assert again.schema.columns == table.schema.columns
    assert np.array_equal(again.observed, table.observed)
    text = f'[column.is]\nbase = "category"\nlabels = ["0", "1", "{token}"]'
    (tmp_path / "schema.toml").write_text(text)
    assert as_table(frame, schema=tmp_path / "schema.toml").schema.columns[0].labels == ("0", "1", token)
