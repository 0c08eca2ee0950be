"""Filled tables keep the types of a parquet or feather file, and every cell that was not missing."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from bayesjpt.table.read import ReadLimits, arrow_table, read_cells
from bayesjpt.table.stored import write_filled_stored
from bayesjpt.table.table import Table, as_table, read_table

N = 60
_STAMPS = [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=7 * k) for k in range(N)]
_BIG = [2**60 + k % 3 for k in range(N)]
COLUMNS = {
    "grade": pa.array(pd.Categorical(["lo", "mid", "hi"] * 20, categories=["lo", "mid", "hi"], ordered=True)),
    "kind": pa.array(["a", "b", "a", "c"] * 15).dictionary_encode(),
    "money": pa.array([Decimal(k * k) / 100 for k in range(N)], pa.decimal128(9, 2)),
    "zone": pa.array(_STAMPS, pa.timestamp("ms", "Europe/Berlin")),
    "naive": pa.array([one.replace(tzinfo=None) for one in _STAMPS], pa.timestamp("s")),
    "day": pa.array([one.date() for one in _STAMPS], pa.date32()),
    "clock": pa.array([one.time().replace(minute=k) for k, one in enumerate(_STAMPS)], pa.time32("s")),
    "big": pa.array(_BIG, pa.int64()),
    "narrow": pa.array(np.linspace(-2.0, 2.0, N).round(2), pa.float32()),
    "small": pa.array([k % 11 - 5 for k in range(N)], pa.int8()),
    "flag": pa.array([k % 3 == 0 for k in range(N)], pa.bool_()),
    "written": pa.array([f"{k},50 €" for k in range(N)], pa.large_string()),
}
EXCLUDED = {
    "length": pa.array([90 * k for k in range(N)], pa.duration("s")),
    "tags": pa.array([["a"] * (k % 3) for k in range(N)], pa.list_(pa.string())),
}
SMALL = [k * k % 7 for k in range(N)]
_KINDS = {"big": "category"}


def with_holes(columns):
    """Return an Arrow table whose columns have a gap each: the first in row 0, the second in row 1, and so on."""
    made = {}
    for row, (name, cells) in enumerate(columns.items()):
        is_hole = pa.array(np.arange(N) == row)
        made[name] = pa.compute.if_else(is_hole, pa.scalar(None, cells.type), cells)
    return pa.table(made)


def filled_of(path, whole):
    """Return the rows of a file with its gaps filled from the whole table, and as they were read."""
    table = read_table(path, kinds={name: kind for name, kind in _KINDS.items() if name in whole.column_names})
    values = as_table(whole, schema=table.schema).values
    return Table(table.schema, np.where(table.observed, table.values, values), np.ones_like(table.observed)), table


@pytest.mark.filterwarnings("ignore:times of column 'zone' are told in UTC")
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_filled_cells_have_the_types_of_their_columns(tmp_path, suffix):
    whole = pa.table(COLUMNS | EXCLUDED)
    holes = with_holes(COLUMNS).append_column("length", EXCLUDED["length"]).append_column("tags", EXCLUDED["tags"])
    path, output = tmp_path / f"t.{suffix}", tmp_path / f"out.{suffix}"
    parquet.write_table(holes, path) if suffix == "parquet" else feather.write_feather(holes, path)
    filled, table = filled_of(path, whole.select(list(COLUMNS)))
    write_filled_stored(arrow_table(path, ReadLimits()), filled, table.observed, output)
    found = parquet.read_table(output) if suffix == "parquet" else feather.read_table(output)
    assert found.schema.types == arrow_table(path, ReadLimits()).schema.types
    for name in whole.column_names:
        assert found[name].to_pylist() == whole[name].to_pylist(), name


def test_a_value_that_the_type_cannot_hold_is_written_with_the_type_of_the_fit(tmp_path):
    frame = pd.DataFrame({"x": pd.array([None, *SMALL[1:]], "Int8"), "y": pd.array(SMALL, "Int16")})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    values = np.where(table.observed, table.values, 300.0)
    filled = Table(table.schema, values, np.ones_like(table.observed))
    write_filled_stored(
        arrow_table(tmp_path / "t.parquet", ReadLimits()), filled, table.observed, tmp_path / "o.parquet"
    )
    found = pd.read_parquet(tmp_path / "o.parquet")
    assert found["x"].tolist() == [300, *SMALL[1:]]
    assert found["y"].dtype == "Int16"


def test_columns_that_cannot_be_modelled_are_written_to_text_files_too(tmp_path):
    parquet.write_table(pa.table(EXCLUDED | {"x": pa.array(range(N))}), tmp_path / "t.parquet")
    length, tags, _ = read_cells(tmp_path / "t.parquet", as_written=True)[0]
    assert [length.distinct[k] for k in length.codes[:3]] == ["0 days 00:00:00", "0 days 00:01:30", "0 days 00:03:00"]
    assert [tags.distinct[k] for k in tags.codes[:3]] == ["[]", '["a"]', '["a", "a"]']
    assert all(cells.excluded for cells in read_cells(tmp_path / "t.parquet")[0][:2])
