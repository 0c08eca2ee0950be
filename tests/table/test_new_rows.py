"""New rows under the schema of training rows."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesjpt.errors import BayesjptWarning, SchemaError, TableError
from bayesjpt.table.read import read_cells
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table, read_table
from bayesjpt.table.write import write_filled


@pytest.fixture
def schema() -> Schema:
    frame = pd.DataFrame(
        {
            "alcohol": [9.5, 10.0, 12.5, 14.0] * 10,
            "quality": [3, 5, 6, 8] * 10,
            "color": ["red", "white", "red", "rose"] * 10,
            "sold": [0, 1, 1, 0] * 10,
            "corked": [True, False, False, True] * 10,
            "balance": [-1, 5, 8, 2] * 10,
            "picked": [datetime.date(2020, 9, day) for day in (1, 4, 9, 20)] * 10,
            "row_id": np.arange(40),
        }
    )
    return as_table(frame).schema


def cells(table):
    return {
        name: np.where(seen, values, np.nan).tolist()
        for name, values, seen in zip(table.names, table.values, table.observed, strict=True)
    }


def test_rows_are_aligned_by_name(schema):
    table = as_table(pd.DataFrame({"color": ["white"], "alcohol": [11.0]}), schema=schema)
    assert table.schema is schema
    assert cells(table)["alcohol"] == [11.0]
    assert cells(table)["color"] == [2.0]


def test_columns_that_new_rows_lack_are_all_missing(schema):
    table = as_table(pd.DataFrame({"color": ["white"]}), schema=schema)
    assert table.observed.sum() == 1


def test_column_of_new_rows_may_be_all_missing(schema):
    table = as_table(pd.DataFrame({"alcohol": [None, None], "color": ["red", None], "picked": ["", ""]}), schema=schema)
    assert table.observed.sum() == 1


def test_missing_cells_hold_valid_fillers(schema):
    table = as_table(pd.DataFrame({"color": ["white", "red"]}), schema=schema)
    for column, values in zip(schema, table.values, strict=True):
        assert np.isfinite(values).all()
        assert (values >= column.support[0]).all()
        assert column.base == "real" or (values == np.rint(values)).all()


def test_set_aside_columns_of_new_rows_are_ignored(schema):
    assert as_table(pd.DataFrame({"row_id": [7], "color": ["red"]}), schema=schema).names == schema.names


def test_unknown_column_suggests_the_closest(schema):
    with pytest.raises(SchemaError, match=r"'alchohol'.*'alcohol'"):
        as_table(pd.DataFrame({"alchohol": [7.5]}), schema=schema)


def test_unseen_label_is_other_with_one_warning_naming_label_and_column(schema):
    frame = pd.DataFrame({"color": ["red", "pink", "pink"], "sold": [0, 0, 2]})
    with pytest.warns(BayesjptWarning, match=r"'pink' in column 'color'.*'2' in column 'sold'") as caught:
        table = as_table(frame, schema=schema)
    assert len(caught) == 1
    assert cells(table)["color"] == [0.0, 3.0, 3.0]
    assert schema.columns[2].n_label == 4


def test_unseen_label_is_missing_on_request(schema):
    table = as_table(pd.DataFrame({"color": ["red", "pink"]}), schema=schema, unseen="missing")
    assert table.observed[schema.index("color")].tolist() == [True, False]


def test_unseen_label_is_an_error_on_request(schema):
    with pytest.raises(SchemaError, match="column 'color' holds the unseen label 'pink' in row 2"):
        as_table(pd.DataFrame({"color": ["red", "pink"]}), schema=schema, unseen="error")


def test_the_name_of_other_is_read_as_other_without_a_warning(schema):
    assert cells(as_table(pd.DataFrame({"color": ["other"]}), schema=schema))["color"] == [3.0]


def test_label_called_other_is_a_label_like_any():
    schema = as_table(pd.DataFrame({"x": ["a", "other", "b"]})).schema
    assert schema.columns[0].code_names == ("a", "b", "other", "<other>")
    assert as_table(pd.DataFrame({"x": ["other", "<other>"]}), schema=schema).values.tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize("values", [[0, 1], [0.0, 1.0], ["0", "1.0"], [False, True]])
def test_binary_numbers_are_recognised_however_stored(schema, values):
    assert cells(as_table(pd.DataFrame({"sold": values}), schema=schema))["sold"] == [0.0, 1.0]


@pytest.mark.parametrize("values", [[False, True], ["FALSE", "true"], [0, 1], [0.0, 1.0]])
def test_booleans_are_recognised_however_stored(schema, values):
    assert cells(as_table(pd.DataFrame({"corked": values}), schema=schema))["corked"] == [0.0, 1.0]


@pytest.mark.parametrize("values", [["2020-09-04"], [datetime.date(2020, 9, 4)], pd.to_datetime(["2020-09-04"])])
def test_dates_are_recognised_however_stored(schema, values):
    assert cells(as_table(pd.DataFrame({"picked": values}), schema=schema))["picked"] == [18509.0]


@pytest.mark.parametrize(
    ("name", "values", "shown"),
    [
        ("quality", [3, -1], "holds -1 in row 2"),
        ("quality", [3.0, 1e16], "in row 2"),
        ("alcohol", ["9.5", "strong"], "holds 'strong' in row 2"),
        ("alcohol", [True, False], "holds 'True' in row 1"),
        ("picked", ["2020-09-01", "2020-09-04", "tomorrow", "2020-09-20"], "holds 'tomorrow' in row 3"),
        ("picked", ["2020-09-01", "4.9.2020", "5.9.2020"], "holds '4.9.2020' in row 2"),
        ("picked", ["4.9.2020", "tomorrow", "5.9.2020"], "holds 'tomorrow' in row 2"),
        ("picked", ["2020-09-04", "soon"], "'picked' holds"),
        ("picked", [3.5, 4.5], "expected dates"),
        ("alcohol", [9.5, 1e200], "scale units"),
    ],
)
def test_value_outside_a_column_is_refused_with_column_row_and_value(schema, name, values, shown):
    with pytest.raises(SchemaError, match=name) as caught:
        as_table(pd.DataFrame({name: values}), schema=schema)
    assert shown in str(caught.value)
    assert "\n" not in str(caught.value)


def test_number_that_training_did_not_show_but_a_likelihood_can_give_is_read_with_a_warning(schema):
    with pytest.warns(BayesjptWarning, match=r"did not show: -0\.5 in column 'alcohol' \(first in row 2\)"):
        table = as_table(pd.DataFrame({"alcohol": [9.5, -0.5]}), schema=schema)
    assert cells(table)["alcohol"] == [9.5, -0.5]


def test_number_that_no_likelihood_can_give_is_refused(schema):
    positive = replace(schema.columns[schema.index("alcohol")], families=("gamma",))
    with pytest.raises(SchemaError, match=r"'alcohol' holds -0\.5 in row 2"):
        as_table(pd.DataFrame({"alcohol": [9.5, -0.5]}), schema=Schema((positive,)))


@pytest.mark.parametrize("n_level", [6, 30])
def test_negative_number_is_refused_where_only_levels_have_no_least_value(n_level):
    schema = as_table(pd.DataFrame({"hours": np.tile(np.arange(n_level), 40)})).schema
    assert len(schema.columns[0].levels) == n_level
    with pytest.raises(SchemaError, match=r"'hours' holds -3 in row 1"):
        as_table(pd.DataFrame({"hours": [-3]}), schema=schema)


def test_whole_numbers_below_zero_bind_new_rows_to_whole_numbers_alone(schema):
    assert cells(as_table(pd.DataFrame({"balance": [-99]}), schema=schema))["balance"] == [-99.0]
    with pytest.warns(BayesjptWarning, match=r"-2\.5 in column 'balance' of whole numbers, read as -2"):
        assert cells(as_table(pd.DataFrame({"balance": [-2.5]}), schema=schema))["balance"] == [-2.0]


def test_numbers_that_no_likelihood_can_give_may_be_missing(schema):
    with pytest.warns(BayesjptWarning, match=r"-1 in column 'quality' \(first in row 2\), read as missing"):
        table = as_table(pd.DataFrame({"quality": [3, -1]}), schema=schema, outside="missing")
    assert table.observed[schema.index("quality")].tolist() == [True, False]


def test_unknown_word_for_outside_is_refused(schema):
    with pytest.raises(SchemaError, match="outside='near'; expected one of error, missing"):
        as_table(pd.DataFrame({"quality": [3]}), schema=schema, outside="near")


def test_infinity_in_new_rows_is_refused(schema):
    with pytest.raises(TableError, match="column 'alcohol' holds inf in row 1"):
        as_table(pd.DataFrame({"alcohol": [np.inf]}), schema=schema)


@pytest.mark.filterwarnings("ignore:constant columns")
class TestConstant:
    @pytest.fixture
    def schema(self) -> Schema:
        return as_table(pd.DataFrame({"x": [3, 3], "day": ["2020-01-05"] * 2, "label": ["a", "a"]})).schema

    def test_new_rows_may_differ_within_the_interval(self, schema):
        with pytest.warns(BayesjptWarning, match="'b'"):
            table = as_table(pd.DataFrame({"x": [3, 4.5], "label": ["a", "b"]}), schema=schema)
        assert cells(table)["x"] == [3.0, 4.5]
        assert cells(table)["label"] == [0.0, 1.0]

    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [
            ("x", -0.5, "'x' holds -0.5 in row 1; expected numbers from 0 to 6, around the only value of training"),
            ("day", "2071-01-01", "'day' holds 2071-01-01 in row 1; expected dates from 1970-01-01 to 2070-01-08"),
        ],
    )
    def test_new_row_outside_the_interval_is_refused_naming_it(self, schema, name, value, words):
        with pytest.raises(SchemaError) as caught:
            as_table(pd.DataFrame({name: [value]}), schema=schema)
        assert words in str(caught.value)


def test_new_rows_without_rows_are_refused(schema):
    with pytest.raises(TableError, match="0 rows"):
        as_table(pd.DataFrame({"alcohol": []}), schema=schema)


@pytest.mark.parametrize(
    ("texts", "text", "value"),
    [
        ([f"03/{day}/2024" for day in range(10, 28)], "2024-03-15", "03/15/2024"),
        ([f"{day}.03.2024" for day in range(10, 28)], "2024-03-15", "15.03.2024"),
        ([f"Mar {day}, 2024" for day in range(10, 28)], "2024-03-15", "Mar 15, 2024"),
        ([f"{size} m²" for size in range(20, 200, 7)], "120 m2", "120 m²"),
    ],
    ids=["month first", "day first", "name", "unit"],
)
def test_new_rows_may_write_dates_in_iso_8601_and_powers_as_digits(texts, text, value):
    table = as_table({"x": texts * 3})
    rows = as_table({"x": [text]}, schema=table.schema)
    assert rows.schema.columns[0].text(rows.values[0, 0]) == value


def test_a_cell_that_is_no_date_is_answered_with_how_the_column_writes_them():
    table = as_table({"day": [f"{day}.03.2024" for day in range(10, 28)] * 3})
    with pytest.raises(SchemaError, match=r"expected dates such as 10\.03\.2024, as in training"):
        as_table({"day": ["March 15th"]}, schema=table.schema)


def test_spaces_around_names_tell_no_columns_apart(tmp_path):
    """Frames, and so parquet, keep those behind the commas of their text file, which is read without them."""
    frame = pd.DataFrame({"a": [1.5, 2.5, np.nan, 4.25], " b": ["x", "y", "x", None], "id ": ["p", "q", "r", "s"]})
    schema = as_table(frame, kinds={"id ": "excluded"}).schema
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    known = as_table(frame, schema=schema)
    for name in ("rows.csv", "rows.parquet"):
        rows = read_table(tmp_path / name, schema=schema)
        assert np.array_equal(rows.values, known.values)
        assert np.array_equal(rows.observed, known.observed)


def test_a_column_of_the_very_name_is_the_one(tmp_path):
    schema = as_table(pd.DataFrame({"a": [1.5, 2.5, 3.25]})).schema
    rows = pd.DataFrame({"a ": [7.0], "a": [2.0]})
    with pytest.raises(SchemaError, match="a column 'a ' that training did not show"):
        as_table(rows, schema=schema)


def test_gaps_are_filled_under_the_names_of_the_file(tmp_path):
    schema = as_table(pd.DataFrame({"a": [1.5, 2.5, 3.25], " b": ["x", "y", "x"]})).schema
    (tmp_path / "rows.csv").write_text("b,a,more\n,1.5,u\ny,,v\n")
    rows = pd.DataFrame({" b": ["x", "y"], "a": [1.5, 2.5]})
    filled, observed = as_table(rows, schema=schema), np.array([[True, False], [False, True]])
    cells = read_cells(tmp_path / "rows.csv", as_written=True)[0]
    write_filled(cells, filled, observed, tmp_path / "filled.csv")
    assert (tmp_path / "filled.csv").read_text() == "b,a,more\nx,1.5,u\ny,2.5,v\n"
    write_filled(cells, filled, observed, tmp_path / "filled.parquet")
    assert pd.read_parquet(tmp_path / "filled.parquet").columns.tolist() == ["b", "a", "more"]


@pytest.mark.parametrize("token", ["None", "unknown", "-"])
def test_words_for_missing_among_labels_that_are_amounts_are_missing_in_new_rows(token):
    frame = pd.DataFrame({"paid": ["$0", token, "$1", "$0"] * 10, "x": np.arange(40) / 7})
    with pytest.warns(BayesjptWarning, match="read as missing among numbers"):
        table = as_table(frame)
    assert table.schema.columns[0].labels == ("$0", "$1")
    with pytest.warns(BayesjptWarning, match=f"read as missing: '{token}' in column 'paid'"):
        again = as_table(frame, schema=table.schema)
    assert np.array_equal(again.observed, table.observed)
    with pytest.warns(BayesjptWarning, match="labels not seen in training"):
        assert as_table(pd.DataFrame({"paid": ["$7"]}), schema=table.schema).values[0, 0] == 2.0


@pytest.mark.parametrize("rows", [np.zeros((3, 8)), pd.DataFrame({"Alcohol": [9.5], "taste": ["good"]})])
def test_rows_of_which_no_column_is_known_are_refused(rows, schema):
    with pytest.raises(SchemaError, match="that training did not show"):
        as_table(rows, schema=schema, ignore_new=True)
