"""Tables that are refused, each in one line that names the column, the row and the remedy."""

from __future__ import annotations

import ast
import datetime
import pathlib
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayesjpt.errors import BayesjptWarning, SchemaError, TableError
from bayesjpt.table.table import as_table, read_table

pytestmark = pytest.mark.filterwarnings("ignore:constant columns")
BIG = 2**53 + 1


def excluded(schema):
    return {column.name: column.reason for column in schema.set_aside}


def refused(frame, error=TableError, **options):
    with pytest.raises(error) as caught:
        as_table(frame, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_table_without_rows_is_refused_naming_the_counts(make):
    assert "0 rows and 1 columns" in refused(make({"x": []}))


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame(index=[1, 2]), pl.DataFrame(), pa.table({})])
def test_table_without_columns_is_refused_naming_the_counts(frame):
    assert "0 columns" in refused(frame)


@pytest.mark.parametrize(
    "values",
    [
        [None, None],
        [np.nan, np.nan],
        ["", "?"],
        [pd.NaT, pd.NaT],
        pd.array([None, None], dtype="Int64"),
        pd.array([None, None], dtype="boolean"),
        pd.Categorical([None, None], categories=["a"]),
        ["  ", "\t"],
        pd.to_datetime([None, None]),
        pd.to_datetime([None, None]).tz_localize("UTC"),
        pd.array([None, None], dtype="string"),
        pd.array([None, None], dtype=pd.ArrowDtype(pa.timestamp("us"))),
        pd.Series([None, None], dtype=object),
    ],
)
def test_column_without_observed_cell_is_excluded_and_costs_no_other(values):
    schema = as_table(pd.DataFrame({"y": [1.5, 2.5], "x": values})).schema
    assert schema.names == ("y",)
    assert excluded(schema) == {"x": "empty: no value in 2 rows"}


def test_polars_column_of_nulls_is_excluded():
    assert excluded(as_table(pl.DataFrame({"y": [1.5, 2.5], "x": [None, None]})).schema) == {
        "x": "empty: no value in 2 rows"
    }


@pytest.mark.parametrize("kind", ["real", "integer"])
def test_column_without_observed_cell_cannot_be_asked_for(kind):
    text = refused(pd.DataFrame({"y": [1.5, 2.5], "x": ["", ""]}), SchemaError, kinds={"x": kind})
    assert "column 'x' has no observed cell in 2 rows" in text


@pytest.mark.parametrize(
    "values",
    [
        [0.5, np.inf, -np.inf],
        ["0.5", "inf", "1"],
        ["0.5", "1" + "0" * 400, "1"],
        pd.array([0.5, np.inf, 1.0], dtype="Float64"),
        pd.Series([Decimal("0.5"), Decimal("Infinity"), Decimal(1)], dtype=object),
        pd.Series([0.5, 10**400, 1], dtype=object),
    ],
)
def test_infinity_is_refused_with_column_and_first_row(values):
    assert "column 'x' holds inf in row 2" in refused(pd.DataFrame({"x": values}))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": [1, 2, BIG, BIG]}),
        pd.DataFrame({"x": pd.array([1, None, BIG, BIG], dtype="Int64")}),
        pd.DataFrame({"x": pd.Series([1, 2, BIG, 2**70], dtype=object)}),
        pd.DataFrame({"x": ["1", "2", str(BIG), "2"]}),
        pd.DataFrame({"x": ["1", "2", f"-0{BIG}.00", "2"]}),
        pd.DataFrame({"x": np.array([1, 2, BIG, 2**63 + 1], np.uint64)}),
        pd.DataFrame({"x": pd.Series([Decimal(1), Decimal("2.5"), Decimal(BIG), Decimal(2)], dtype=object)}),
        pl.DataFrame({"x": [Decimal(1), Decimal(2), Decimal(BIG), None]}),
        pa.table({"x": pa.array([Decimal(1), Decimal(2), Decimal(BIG), None], pa.decimal256(40, 2))}),
        pl.DataFrame({"x": [1, 2, BIG, None]}),
        pl.DataFrame({"x": pl.Series([1, 2, BIG, 2**70], dtype=pl.Int128)}),
        pa.table({"x": [1, 2, BIG, None]}),
    ],
)
def test_integer_beyond_2_53_is_refused_with_column_and_first_row(frame):
    text = refused(frame)
    assert re.search(rf"column 'x' holds the whole number (-0)?{BIG}(\.00)? in row 3", text)


def test_integers_beyond_2_53_that_identify_rows_are_set_aside(rng):
    values = 2**60 + rng.choice(10**9, 50, replace=False)
    schema = as_table(pd.DataFrame({"x": values, "y": np.resize([0.5, 1.5], 50)})).schema
    assert schema.names == ("y",)


@pytest.mark.parametrize("odd", [1, 2.5, True, datetime.date(2020, 1, 1)])
def test_mixed_object_column_is_read_as_texts_naming_the_first_odd_row(odd):
    with pytest.warns(BayesjptWarning, match="column 'x' mixes kinds .* in row 3 is no text"):
        column = as_table(pd.DataFrame({"x": pd.Series(["a", None, odd, "b"], dtype=object)})).schema.columns[0]
    assert set(column.labels) == {"a", "b", str(odd)}


def test_mixed_object_column_is_what_its_texts_in_a_file_are(tmp_path):
    frame = pd.DataFrame({"x": pd.Series(["a", 1, 2.5, True, datetime.date(2020, 1, 1), None] * 9, dtype=object)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(BayesjptWarning, match="mixes kinds"):
        mixed = as_table(frame)
    assert mixed.schema == read_table(tmp_path / "t.csv").schema


def test_mixed_object_column_is_noticed_however_late_the_first_odd_row():
    frame = pd.DataFrame({"x": pd.Series(["a"] * 500 + [1], dtype=object)})
    with pytest.warns(BayesjptWarning, match="'1' in row 501 is no text"):
        as_table(frame)


@pytest.mark.parametrize("values", [[[1], [2]], [{1}, {2}], [object(), object()]])
def test_column_of_other_objects_is_excluded_and_costs_no_other(values):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "y": [1.5, 2.5]})
    assert excluded(as_table(frame).schema)["x"].startswith(f"of type {type(values[0]).__name__}")


@pytest.mark.parametrize(
    "values",
    [
        pd.to_timedelta(["1D", "2D"]),
        pd.period_range("2020", periods=2, freq="D"),
        pd.IntervalIndex.from_breaks([0, 1, 2]),
        np.array([1j, 2j]),
        np.array([1.0, 2.0], np.longdouble),
        pd.array([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        pd.array([{"a": 1}, {"a": 2}], dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())]))),
        pd.array([b"a", b"b"], dtype=pd.ArrowDtype(pa.binary())),
    ],
)
def test_unsupported_dtype_is_excluded_and_costs_no_other(values):
    schema = as_table(pd.DataFrame({"x": values, "y": [1.5, 2.5]})).schema
    assert schema.names == ("y",)
    assert excluded(schema)["x"].startswith("of type")


def test_unsupported_dtype_cannot_be_asked_for():
    frame = pd.DataFrame({"x": pd.to_timedelta(["1D", "2D"])})
    assert "column 'x' is of type" in refused(frame, SchemaError, kinds={"x": "real"})


def test_new_rows_of_an_unsupported_dtype_are_refused():
    schema = as_table(pd.DataFrame({"x": [1.5, 2.5]})).schema
    text = refused(pd.DataFrame({"x": pd.to_timedelta(["1D", "2D"])}), SchemaError, schema=schema)
    assert "column 'x' is of type Duration" in text


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"a", b"b"]),
        pa.array([[1], [2]]),
        pa.array([{"a": {"b": [1]}}, {"a": None}]),
        pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        pa.array([datetime.timedelta(1), None]),
        pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        pa.RunEndEncodedArray.from_arrays([1, 2], [1, 2]),
        pa.array([b"0123456789abcdef", None], pa.uuid()),
    ],
    ids=lambda values: str(values.type),
)
def test_unsupported_type_of_arrow_is_excluded_and_costs_no_other(values):
    schema = as_table(pa.table({"x": values, "y": [1.5, 2.5]})).schema
    assert schema.names == ("y",)
    assert excluded(schema)["x"].startswith("of type")


@pytest.mark.parametrize(
    "values",
    [[b"a", b"b"], [[1], [2]], [{"a": 1}, {"a": 2}], [datetime.timedelta(1)] * 2, [object(), object()]],
)
def test_unsupported_type_of_polars_is_excluded_and_costs_no_other(values):
    schema = as_table(pl.DataFrame({"x": values, "y": [1.5, 2.5]})).schema
    assert list(excluded(schema)) == ["x"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_times_of_day_are_seconds_since_midnight(make):
    table = as_table(make({"x": [datetime.time(1), datetime.time(13, 30), None, datetime.time(2)]}))
    assert table.values[0, :2].tolist() == [3600.0, 48_600.0]
    assert table.schema.columns[0].text(48_600.0) == "13:30:00"


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": np.array(["2020-01-01", "20000-01-01", "1970-01-01"], "datetime64[s]")}),
        pl.DataFrame({"x": pl.Series([0, 568_971_820_800_000, 5], dtype=pl.Datetime("ms"))}),
        pa.table({"x": pa.array([0, 568_971_820_800, 5], pa.timestamp("s"))}),
    ],
)
def test_date_beyond_the_calendar_is_refused_with_column_row_and_year(frame):
    assert "column 'x' holds a date of the year 20000 in row 2; expected years 1 to 9999" in refused(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
        pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"]),
    ],
)
def test_duplicate_names_are_made_distinct_with_a_note(frame):
    with pytest.warns(BayesjptWarning, match="column 3 is 'a_2', for 'a' is the name of column 1"):
        assert as_table(frame).names == ("a", "b", "a_2")


@pytest.mark.parametrize(("name", "shown"), [(7, "7"), (("a", "b"), "a_b"), (None, "unnamed_2")])
def test_name_that_is_no_text_becomes_one(name, shown):
    frame = pd.DataFrame([[1, 2]])
    frame.columns = pd.Index(["x", name], dtype=object, tupleize_cols=False)
    table = as_table(frame, kinds={"x": "real", shown: "real"})
    assert table.names == ("x", shown)
    assert as_table(frame, schema=table.schema).observed.all()


@pytest.mark.parametrize(
    ("thing", "shown"), [([[1, 2]], "list"), (pd.Series([1.0, 2.0]), "pandas Series"), (np.zeros((2, 2, 2)), "array")]
)
def test_other_things_than_frames_are_refused(thing, shown):
    assert shown in refused(thing)


def test_list_is_called_a_list():
    assert refused([[1, 2]]).startswith("a list; expected")


@pytest.mark.parametrize("path", ["wine.csv", pathlib.Path("wine.csv")])
def test_path_is_refused_asking_for_read_table(path):
    assert "bj.read_table(path)" in refused(path)


def test_declared_labels_that_read_the_same_are_refused_naming_the_label():
    frame = pd.DataFrame({"x": pd.Categorical([1, "1"], categories=[1, "1"])})
    assert "column 'x' declares two labels that both read '1'" in refused(frame)


@pytest.mark.parametrize("bad", ["b\0", "b\ud800"])
def test_label_that_cannot_be_stored_is_refused_with_column_and_row(bad):
    text = refused(pd.DataFrame({"x": pd.Series(["a", "a", bad], dtype=object)}))
    assert f"column 'x' holds {bad!r}" in text
    assert "in row 3" in text


@pytest.mark.parametrize("bad", ["b\0", "b\ud800"])
def test_name_that_cannot_be_stored_is_refused_with_its_position(bad):
    frame = pd.DataFrame([[0.5, 1.5]])
    frame.columns = pd.Index(["x", bad], dtype=object)
    assert f"{bad!r} of column 2, in the header row" in refused(frame)


def test_kinds_that_is_no_mapping_is_refused():
    text = refused(pd.DataFrame({"x": [1, 2, 3]}), SchemaError, kinds=["x"])
    assert text.startswith("kinds is a list; expected a mapping from column names to kinds")


def test_lazy_frame_is_refused_asking_to_collect():
    assert "collect" in refused(pl.LazyFrame({"x": [1, 2]}))


def test_table_with_all_columns_set_aside_is_refused_with_the_reasons():
    text = refused(pd.DataFrame({"id": np.arange(30)}), SchemaError)
    assert "no column is left to model" in text
    assert "running number" in text
    assert "kinds={'id': 'integer'}" in text


@pytest.mark.parametrize(
    "values",
    [
        np.arange(-7, 30),
        [f"name {i}" for i in range(900)],
        [str(2**60 + i * i) for i in range(40)],
        pd.Categorical([f"name {i}" for i in range(200)]),
        ["1.5", "N/A"] * 30,
    ],
)
@pytest.mark.filterwarnings("ignore:read as missing")
def test_remedy_where_no_column_is_left_works(values):
    frame = pd.DataFrame({"x": values})
    text = refused(frame, SchemaError, kinds={"x": "excluded"})
    kinds = ast.literal_eval(re.search(r"kinds=(\{.*?\})", text)[1])
    assert as_table(frame, kinds=kinds).names == ("x",)


def test_remedy_where_no_kind_would_help_names_none():
    text = refused(pd.DataFrame({"x": [f"name {i}" for i in range(1_001)]}), SchemaError)
    assert "kinds" not in text
    assert "Add columns" in text


def test_kinds_beside_a_schema_are_refused():
    frame = pd.DataFrame({"x": [1, 2, 3]})
    schema = as_table(frame).schema
    assert "both kinds and schema" in refused(frame, SchemaError, schema=schema, kinds={"x": "real"})


def test_unknown_word_for_unseen_is_refused():
    assert "unseen='ignore'" in refused(pd.DataFrame({"x": [1, 2, 3]}), SchemaError, unseen="ignore")


def test_unknown_backend_of_to_frame_is_refused():
    with pytest.raises(TableError, match="'excel'"):
        as_table(pd.DataFrame({"x": [1, 2, 3]})).to_frame("excel")
