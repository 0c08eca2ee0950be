"""Each kind of frame and dtype gives the same table."""

from __future__ import annotations

import datetime
import decimal
import re

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesjpt.errors import BayesjptWarning, TableError
from bayesjpt.table.frames import frame_cells
from bayesjpt.table.table import Table, as_table, read_table
from bayesjpt.table.write import spelled_filled, texts, write_table

PANDAS_NUMBERS = {
    "float64": pd.Series([1.5, None, 3.0, 4.5]),
    "float32": pd.Series([1.5, None, 3.0, 4.5], dtype="float32"),
    "nullable": pd.array([1.5, None, 3.0, 4.5], dtype="Float64"),
    "nullable float32": pd.array([1.5, None, 3.0, 4.5], dtype="Float32"),
    "pyarrow": pd.array([1.5, None, 3.0, 4.5], dtype="double[pyarrow]"),
    "object": pd.Series([1.5, None, 3, np.float64(4.5)], dtype=object),
    "decimal": pd.Series([decimal.Decimal("1.5"), None, decimal.Decimal(3), decimal.Decimal("4.5")], dtype=object),
    "pyarrow decimal": pd.array(
        [decimal.Decimal("1.5"), None, decimal.Decimal(3), decimal.Decimal("4.5")],
        dtype=pd.ArrowDtype(pa.decimal128(5, 2)),
    ),
    "text": pd.Series(["1.5", None, " 3 ", "45e-1"]),
}
PANDAS_INTEGERS = {
    "int64": pd.Series([1, 2, 2, 5]),
    "uint8": pd.Series([1, 2, 2, 5], dtype="uint8"),
    "nullable": pd.array([1, 2, 2, 5], dtype="Int64"),
    "pyarrow": pd.array([1, 2, 2, 5], dtype="int32[pyarrow]"),
    "float64": pd.Series([1.0, 2.0, 2.0, 5.0]),
    "object": pd.Series([1, 2, 2.0, np.int64(5)], dtype=object),
}
PANDAS_TEXTS = {
    "str": pd.Series(["b", None, "a", "b"]),
    "object": pd.Series(["b", None, "a", "b"], dtype=object),
    "object NaN": pd.Series(["b", float("nan"), "a", "b"], dtype=object),
    "object NA": pd.Series(["b", pd.NA, "a", "b"], dtype=object),
    "string": pd.array(["b", None, "a", "b"], dtype="string[python]"),
    "pyarrow": pd.array(["b", None, "a", "b"], dtype=pd.ArrowDtype(pa.string())),
    "category": pd.Categorical(["b", None, "a", "b"]),
    "pyarrow dictionary": pd.array(["b", None, "a", "b"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    "white space": pd.Series([" b", "?", "a ", "b"]),
}
PANDAS_BOOLEANS = {
    "nullable": pd.array([True, None, False, True], dtype="boolean"),
    "object": pd.Series([True, None, False, np.True_], dtype=object),
    "pyarrow": pd.array([True, None, False, True], dtype="bool[pyarrow]"),
    "text": pd.Series(["True", "NA", "false", "TRUE"]),
}
DAYS = [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 5), datetime.date(2021, 7, 1)]
PANDAS_DATES = {
    "datetime64": pd.to_datetime(pd.Series(DAYS)),
    "nanoseconds": pd.to_datetime(pd.Series(DAYS)).astype("datetime64[ns]"),
    "zone": pd.to_datetime(pd.Series(DAYS)).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
    "object": pd.Series(DAYS, dtype=object),
    "pyarrow": pd.array(DAYS, dtype=pd.ArrowDtype(pa.date32())),
    "text": pd.Series(["2020-01-01", None, "2020-01-05", "2021-07-01"]),
}


def cells_of(column):
    table = as_table(pd.DataFrame({"x": column}))
    return table.schema.columns[0], np.where(table.observed[0], table.values[0], np.nan)


@pytest.mark.parametrize("stored", PANDAS_NUMBERS)
def test_numbers_of_every_pandas_dtype_are_equal(stored):
    column, cells = cells_of(PANDAS_NUMBERS[stored])
    assert (column.base, column.resolution, column.dtype) == ("real", 0.5, "number")
    np.testing.assert_array_equal(cells, [1.5, np.nan, 3.0, 4.5])


@pytest.mark.parametrize("stored", PANDAS_INTEGERS)
def test_integers_of_every_pandas_dtype_are_equal(stored):
    column, cells = cells_of(PANDAS_INTEGERS[stored])
    assert column.base == "integer"
    np.testing.assert_array_equal(cells, [1.0, 2.0, 2.0, 5.0])


@pytest.mark.parametrize("stored", PANDAS_TEXTS)
def test_texts_of_every_pandas_dtype_are_equal(stored):
    column, cells = cells_of(PANDAS_TEXTS[stored])
    assert (column.labels, column.dtype) == (("a", "b"), "text")
    np.testing.assert_array_equal(cells, [1.0, np.nan, 0.0, 1.0])


@pytest.mark.parametrize("stored", PANDAS_BOOLEANS)
def test_booleans_of_every_pandas_dtype_are_equal(stored):
    column, cells = cells_of(PANDAS_BOOLEANS[stored])
    assert (column.labels, column.dtype) == (("False", "True"), "boolean")
    np.testing.assert_array_equal(cells, [1.0, np.nan, 0.0, 1.0])


@pytest.mark.filterwarnings("ignore:times of column")
@pytest.mark.parametrize("stored", PANDAS_DATES)
def test_dates_of_every_pandas_dtype_are_equal(stored):
    column, cells = cells_of(PANDAS_DATES[stored])
    assert (column.base, column.dtype, column.resolution) == ("real", "datetime", 1.0)
    np.testing.assert_array_equal(cells, [18262.0, np.nan, 18266.0, 18809.0])


@pytest.mark.filterwarnings("ignore:times of column")
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_arrow_timestamps_of_every_unit_and_zone_are_equal(unit, zone):
    moments = pa.array([18262 * 86_400, None, 18266 * 86_400], pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    table = as_table(pa.table({"x": moments}))
    assert table.values[0][table.observed[0]].tolist() == [18262.0, 18266.0]


def test_arrow_dates_in_milliseconds_are_dates():
    table = as_table(pa.table({"x": pa.array(DAYS, pa.date64())}))
    assert (table.schema.columns[0].dtype, table.values[0, 0]) == ("datetime", 18262.0)


@pytest.mark.parametrize("make", [pa.decimal128, pa.decimal256])
def test_arrow_decimals_are_numbers(make):
    values = [decimal.Decimal("1.5"), None, decimal.Decimal("2.25")]
    table = as_table(pa.table({"x": pa.array(values, make(9, 4))}))
    assert table.values[0][table.observed[0]].tolist() == [1.5, 2.25]


def test_signalling_nan_is_missing():
    frame = pd.DataFrame({"x": pd.Series([decimal.Decimal("1.5"), decimal.Decimal("sNaN"), 2.5], dtype=object)})
    assert as_table(frame).observed[0].tolist() == [True, False, True]


def test_single_precision_stands_for_its_shortest_decimal():
    table = as_table(pd.DataFrame({"x": np.array([5.1, 2.2, 3.3], np.float32)}))
    np.testing.assert_array_equal(table.values[0], [5.1, 2.2, 3.3])


def test_numeric_categories_are_labels_in_their_declared_order():
    column, cells = cells_of(pd.Categorical([3.0, 1.0, 3.0], categories=[3.0, 1.0, 2.0]))
    assert column.labels == ("3", "1", "2")
    np.testing.assert_array_equal(cells, [0.0, 1.0, 0.0])


SHADES = pd.Series(pd.Categorical(["teal", None, "grey", "teal"], categories=["teal", "beige", "grey"], ordered=True))


@pytest.mark.parametrize(
    "column",
    [SHADES, pa.array(SHADES), pa.chunked_array([pa.array(SHADES[:2]), pa.array(SHADES[2:])])],
    ids=["pandas", "arrow", "chunks"],
)
def test_ordered_categories_carry_their_order(column):
    (found,) = as_table({"shade": column}).schema
    assert (found.labels, found.families) == (("teal", "beige", "grey"), ("ordinal",))
    (asked,) = as_table({"shade": column}, kinds={"shade": "category"}).schema
    assert asked.families == ()


def test_chunks_of_several_orders_declare_none():
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(labels), ordered=True)
        for labels in (["S", "L"], ["S", "M", "L"])
    ]
    (found,) = as_table({"size": pa.chunked_array(chunks)}).schema
    assert (found.labels, found.families) == (("L", "M", "S"), ())


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["teal", "grey", "beige"])], ids=["categorical", "enum"])
def test_dictionaries_with_unsigned_codes_are_read(tmp_path, dtype):
    frame = pl.DataFrame({"shade": pl.Series(["teal", None, "grey", "teal", "beige"], dtype=dtype)})
    frame.write_parquet(tmp_path / "t.parquet")
    for table in (read_table(tmp_path / "t.parquet"), as_table(frame.to_arrow())):
        labels = table.schema.columns[0].labels
        codes, observed = table.values[0], table.observed[0]
        found = [labels[int(code)] if seen else None for code, seen in zip(codes, observed, strict=True)]
        assert found == frame["shade"].to_list()


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_files_of_ordered_categories_carry_their_order(tmp_path, suffix):
    frame = pd.DataFrame({"shade": SHADES, "plain": SHADES.cat.as_unordered()})
    getattr(frame, f"to_{suffix[1:]}")(tmp_path / f"shades{suffix}")
    shade, plain = read_table(tmp_path / f"shades{suffix}").schema
    assert (shade.labels, shade.families) == (("teal", "beige", "grey"), ("ordinal",))
    assert plain.families == ()


def mixed_columns():
    return {
        "real": [0.5, 1.0, None, 2.5],
        "whole": [0, 3, 4, 9],
        "text": ["b", None, "a", "b"],
        "truth": [True, False, None, True],
        "day": DAYS,
        "moment": [datetime.datetime(2020, 1, 1, 6), None, datetime.datetime(2020, 1, 2), None],
    }


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_polars_and_pyarrow_give_the_table_of_pandas(make):
    expected = as_table(pd.DataFrame(mixed_columns()))
    found = as_table(make(mixed_columns()))
    assert found.schema == expected.schema
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.observed, expected.observed)


def test_polars_nan_is_missing():
    table = as_table(pl.DataFrame({"x": [0.5, float("nan"), 1.5]}))
    assert table.observed[0].tolist() == [True, False, True]


def test_polars_enum_keeps_its_order():
    series = pl.Series(["mid", "low", None], dtype=pl.Enum(["low", "mid", "high"]))
    assert as_table(pl.DataFrame({"x": series})).schema.columns[0].labels == ("low", "mid", "high")


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"x": pl.Series(["2", None, "1"], dtype=pl.Categorical)}),
        pa.table({"x": pa.array(["2", None, "1"]).dictionary_encode()}),
    ],
    ids=["polars", "pyarrow"],
)
def test_categories_in_order_of_first_appearance_are_sorted_labels(frame):
    assert as_table(frame).schema.columns[0].labels == ("1", "2")


def test_wide_integers_of_polars_are_read():
    assert as_table(pl.DataFrame({"x": pl.Series([1, 2, 7], dtype=pl.Int128)})).values[0].tolist() == [1.0, 2.0, 7.0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_table_to_frame_and_back_under_its_schema_is_the_same_table(make, backend):
    table = as_table(make(mixed_columns()))
    again = as_table(table.to_frame(backend), schema=table.schema)
    np.testing.assert_array_equal(again.values, table.values)
    np.testing.assert_array_equal(again.observed, table.observed)


def test_table_to_frame_gives_back_what_was_stored():
    frame = as_table(pd.DataFrame(mixed_columns())).to_frame()
    for name, values in mixed_columns().items():
        found = [None if pd.isna(value) else value for value in frame[name]]
        if name in ("day", "moment"):
            values = [None if value is None else pd.Timestamp(value) for value in values]
        assert found == values, name


def test_binary_numbers_come_back_as_numbers():
    assert as_table(pd.DataFrame({"x": [4, 2, 4]})).to_frame()["x"].tolist() == [4, 2, 4]


def test_whole_numbers_below_zero_come_back_whole():
    frame = as_table(pd.DataFrame({"x": [-4, 2, 7]})).to_frame("polars")
    assert frame["x"].dtype == pl.Int64


def test_backend_that_is_not_installed_is_named_with_its_install_line(monkeypatch):
    def not_installed(*_arguments, **_options):
        raise ImportError("No module named 'polars'")

    table = as_table(pd.DataFrame(mixed_columns()))
    monkeypatch.setattr(nw, "new_series", not_installed)
    with pytest.raises(TableError, match="pip install polars"):
        table.to_frame("polars")


@pytest.mark.parametrize("zone", ["America/New_York", "America/Argentina/Buenos_Aires", "Etc/GMT+3", "Europe/Berlin"])
def test_moments_of_pandas_in_any_zone_are_read(zone):
    stamps = pd.date_range("2024-01-01", periods=30, freq="7h", tz=zone)
    with pytest.warns(BayesjptWarning, match=f"times of column 't' are told in UTC, not in {re.escape(zone)}"):
        table = as_table(pd.DataFrame({"t": stamps}))
    expected = stamps.tz_convert("UTC").tz_localize(None).to_numpy("datetime64[us]").astype(np.int64) / 86_400e6
    np.testing.assert_allclose(table.values[0], expected, rtol=1e-12)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("pattern", ["%H:%M", "%I:%M %p", "%H:%M:%S.%f"])
def test_times_of_day_come_back_as_times(backend, pattern):
    times = [datetime.time(8, 15), None, datetime.time(0, 0), datetime.time(23, 59), datetime.time(17, 5)]
    if "%f" in pattern:
        times = [one and one.replace(second=3, microsecond=250_000) for one in times]
    table = as_table({"at": [one and one.strftime(pattern) for one in times]})
    frame = table.to_frame(backend)
    assert nw.from_native(frame)["at"].to_list() == times
    if backend != "pandas":
        assert nw.from_native(frame).schema["at"] == nw.Time
    again = as_table(frame, schema=table.schema)
    np.testing.assert_array_equal(again.values[again.observed], table.values[table.observed])


def test_times_beyond_a_day_stay_numbers():
    table = as_table({"at": ["08:15", "23:59", "00:00"]})
    beyond = Table(table.schema, np.array([[495.0, 1440.0, 3.0]]), np.ones((1, 3), bool))
    assert beyond.to_frame()["at"].tolist() == [495, 1440, 3]


@pytest.mark.filterwarnings("ignore:times of column")
@pytest.mark.parametrize("backend", ["pandas", "pyarrow", "polars"])
@pytest.mark.parametrize(("every", "clock"), [("7h", "07:00Z"), ("7s", "00:00:07Z"), ("7ms", "00:00:00.007Z")])
def test_moments_of_a_zone_are_written_with_their_zone(backend, every, clock, tmp_path):
    stamps = pd.date_range("2024-01-01", periods=30, freq=every, tz="UTC").tz_convert("Europe/Berlin")
    frame = {
        "pandas": pd.DataFrame,
        "pyarrow": lambda columns: pa.Table.from_pandas(pd.DataFrame(columns)),
        "polars": lambda columns: pl.from_pandas(pd.DataFrame(columns)),
    }[backend]({"t": stamps})
    table = as_table(frame)
    assert texts(table.schema.columns[0], table.values[0])[1] == f"2024-01-01T{clock}"
    _, (written,) = spelled_filled(frame_cells(frame), table, table.observed)
    assert written[1] == f"2024-01-01T{clock}"
    write_table(table, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["t"].to_pylist() == stamps.to_pydatetime().tolist()


MASKED = {
    "numbers": [1.5, 2.25, -99.0, 4.5],
    "whole numbers": [1, 2, -99, 4],
    "truth values": [True, False, True, False],
    "texts": ["a", "b", "-99", "b"],
    "dates": np.array(["2020-01-01", "2020-01-05", "1900-01-01", "2020-02-01"], "datetime64[D]"),
}


@pytest.mark.parametrize("values", MASKED.values(), ids=MASKED)
def test_masked_entries_of_arrays_are_missing(values):
    masked = np.ma.array(values, mask=[False, False, True, False])
    table = as_table({"x": masked, "y": [1.5, 2.5, 3.5, 4.75]})
    assert table.observed[0].tolist() == [True, True, False, True]
    without = as_table({"x": np.array(values)[[0, 1, 3]], "y": [1.5, 2.5, 4.75]})
    np.testing.assert_array_equal(table.values[0, [0, 1, 3]], without.values[0])
    assert table.schema.columns[0].labels == without.schema.columns[0].labels


def test_masked_arrays_of_two_axes_are_read_by_column():
    assert as_table(np.ma.masked_less([[1.5, -99.0], [2.5, 3.0], [4.5, 5.25]], 0.0)).observed[1].tolist() == [
        False,
        True,
        True,
    ]
