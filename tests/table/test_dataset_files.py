"""Files as people have them: odd types, notations, gaps and faults, each read as one table is or told by name."""

from __future__ import annotations

import datetime
import decimal
import gzip
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, SamplingError, SchemaError, TableError
from bayesjpt.table import batches, dataset, evidence, text_files
from bayesjpt.table.evidence import chosen_rows
from tests.table.test_dataset import a_frame, assert_same, written

N = 60
X = pa.array(np.random.default_rng(1).normal(size=N))
DAY = datetime.date(2020, 1, 1)
LATE, N_MANY = 3_777, 4_000
"""A row that is none of those by which a schema is decided, and all rows."""


def put(folder, *columns):
    """Write a parquet file for each column, beside a column of numbers."""
    folder.mkdir(exist_ok=True)
    for number, column in enumerate(columns):
        pq.write_table(pa.table({"x": X, "c": column}), folder / f"part_{number}.parquet")
    return folder


@pytest.fixture
def few_rows(monkeypatch):
    """Decide schemas by few rows, and read few at once."""
    monkeypatch.setattr(evidence, "SCHEMA_ROWS", 300)
    monkeypatch.setattr(batches, "BATCH_ROWS", 128)
    assert LATE not in chosen_rows(N_MANY, 300, 0)


def late(folder, column):
    rng = np.random.default_rng(1)
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"x": rng.normal(size=N_MANY), "c": column}), folder / "a.parquet")
    return folder


COLUMNS = {
    "float16": pa.array((np.arange(N) % 7).astype(np.float16)),
    "length of time": pa.array(range(N), pa.duration("ns")),
    "decimal": pa.array([decimal.Decimal(i % 9) / 4 for i in range(N)], pa.decimal128(10, 2)),
    "date": pa.array([DAY + datetime.timedelta(i % 50) for i in range(N)]),
    "date64": pa.array([DAY + datetime.timedelta(i % 50) for i in range(N)], pa.date64()),
    "time": pa.array([i % 50 * 60 for i in range(N)], pa.time32("s")),
    "timestamp": pa.array([10**18 + i * 10**14 + 1 for i in range(N)], pa.timestamp("ns", "Europe/Berlin")),
    "dictionary": pa.array(["a", "b", None] * 20).dictionary_encode(),
    "large_string": pa.array(["a", "b", None] * 20, pa.large_string()),
    "boolean": pa.array([True, False, None] * 20),
    "NaN": pa.array([np.nan, 1.5, 2.5, 3.5] * 15),
    "bytes": pa.array([b"a", b"b"] * 30),
    "list": pa.array([[1], [2, 3]] * 30),
    "null": pa.nulls(N),
}


@pytest.mark.filterwarnings("ignore:times of column")
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_every_type_are_those_of_the_table(tmp_path, kind):
    expected = bj.as_table(pa.table({"x": X, "c": COLUMNS[kind]}))
    assert_same(bj.dataset(put(tmp_path, COLUMNS[kind])), expected)


def test_dates_that_python_does_not_know_are_told(tmp_path):
    with pytest.raises(TableError, match=r"column 'c' holds a date of the year \d+ in row 1"):
        bj.dataset(put(tmp_path, pa.array([10**13 + i for i in range(N)], pa.timestamp("s"))))


def test_texts_that_arrow_writes_as_views_are_read(tmp_path):
    table = pa.table({"x": X, "c": pa.array(["a", "b", "b"] * 20, pa.string_view())})
    with ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    assert bj.dataset(tmp_path).schema.columns[1].labels == ("a", "b")


@pytest.mark.parametrize("kind", ["decimal", "date", "dictionary", "boolean", "list"])
def test_a_column_that_is_empty_in_one_file_has_the_type_of_the_others(tmp_path, kind):
    column = COLUMNS[kind]
    for number, columns in enumerate(((pa.nulls(N), column), (column, pa.nulls(N)), (column[:0], column, pa.nulls(N)))):
        folder = tmp_path / str(number)
        folder.mkdir()
        for k, own in enumerate(columns):
            pq.write_table(pa.table({"x": X[: len(own)], "c": own}), folder / f"{k}.parquet")
        rows = bj.dataset(folder)
        assert (rows.n_row, rows.schema.names) == (2 * N, bj.as_table(pa.table({"x": X, "c": column})).names)
        if kind != "list":
            assert rows.n_observed[1] == N - column.null_count


def test_batches_have_few_rows_however_a_file_was_written(tmp_path):
    table = pa.table({"x": np.arange(150_000.0)})
    with ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    (tmp_path / "b.csv").write_text("x\n" + "0.5\n" * 150_000)
    assert max(batch.num_rows for batch in batches.open_files(tmp_path).batches()) == batches.BATCH_ROWS


# --- rows by which nothing was decided -------------------------------------------------------------------------------


def numbers(last: int = 1_000) -> np.ndarray:
    values = np.random.default_rng(2).integers(0, 200, N_MANY)
    values[LATE] = last
    return values


SPELLED = {
    "decimals": lambda x: pa.array([decimal.Decimal(int(each)) for each in x], pa.decimal128(10, 0)),
    "money": lambda x: pa.array([f"${each}" for each in x]),
    "texts": lambda x: pa.array([str(each) for each in x]),
    "numbers": pa.array,
}


@pytest.mark.parametrize("spelling", SPELLED)
def test_no_number_is_lost_however_it_is_written(tmp_path, few_rows, spelling):
    rows = bj.dataset(late(tmp_path, SPELLED[spelling](numbers())))
    values, observed = rows.arrays(0, N_MANY)
    assert observed.all()
    assert values[1].tolist() == numbers().tolist()


@pytest.mark.parametrize(
    "values",
    [[1, 2, 9, 3], [1.5, 2.0, 9.5, 3.0], [True, True, True, False], np.array([0, 9, 99, 50], "datetime64[D]")],
)
def test_labels_that_are_no_texts_are_known_wherever_they_stand(tmp_path, few_rows, values):
    column = np.resize(values[:3], N_MANY)
    column[LATE] = values[3]
    rows = bj.dataset(late(tmp_path, pa.array(column)), kinds={"c": "category"})
    assert len(rows.schema.columns[1].labels) == len(set(np.array(values).tolist()))


def test_rows_are_told_by_their_numbers_in_the_whole_table(tmp_path, few_rows):
    values = np.random.default_rng(1).normal(size=N_MANY)
    values[LATE] = np.inf
    with pytest.raises(TableError, match=f"holds inf in row {LATE + 1};"):
        bj.dataset(late(tmp_path, pa.array(values)))
    texts = [str(each) for each in numbers()]
    texts[LATE] = "oops"
    with pytest.warns(BayesjptWarning, match=rf"'oops' in column 'c' \(first in row {LATE + 1}\)"):
        bj.dataset(late(tmp_path, pa.array(texts)))
    chosen = chosen_rows(N_MANY, 300, 0).tolist()
    damaged = list(texts)
    for row in [row for row in range(LATE, LATE + 40) if row not in chosen][:15]:  # too many of the rows read at once
        damaged[row] = "oops"
    with pytest.raises(SchemaError, match=f"holds 'oops' in row {LATE + 1};"):
        bj.dataset(late(tmp_path, pa.array(damaged)))
    damaged = list(texts)
    damaged[LATE], damaged[chosen[250]] = "5", "ooh"
    with pytest.warns(BayesjptWarning, match=rf"'ooh' in column 'c' \(first in row {chosen[250] + 1}\)"):
        bj.dataset(late(tmp_path, pa.array(damaged)))
    texts[LATE] = "3.5"
    with pytest.warns(BayesjptWarning, match=rf"first in row {LATE + 1}\)"):
        bj.dataset(late(tmp_path, pa.array(texts)))


# --- text files ------------------------------------------------------------------------------------------------------


def column_of(*texts: object) -> str:
    return "k,v\n" + "".join(f"{'ab'[i % 2]},{texts[i % len(texts)]}\n" for i in range(N))


TEXTS = {
    "leading zeros": column_of("007", "012", "123"),
    "hexadecimal": column_of("0x1F", "0x10", "0x0A"),
    "many digits": column_of(*(2**70 + 3 * i for i in range(N))),
    "marks between thousands": column_of(*(f"{i}.{i:03d}" for i in range(1, N))),
    "decimals": column_of(*(f"{i}.{i:02d}" for i in range(1, N))),
    "semicolons": "k;v\n" + "a;1,5\nb;2,25\nb;3,125\n" * 9,
    "bars": "k|v\n" + "a|1.5\nb|2.25\nb|3.125\n" * 9,
    "a separator that is named": "sep=;\nk;v\n" + "a, b;1\nb;2\nb;3\n" * 9,
    "any character that is named": '\ufeff"SEP=^"\r\nk^v\r\n' + "a;1^x\r\nb^y\r\nb^y\r\n" * 9,
    "quotes": column_of('"a, b"', '"c\nd"', "e"),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("decimal_mark", [None, ","])
def test_text_files_are_read_as_one_table_is(tmp_path, text, decimal_mark):
    (tmp_path / "a.csv").write_text(TEXTS[text], encoding="utf-8", newline="")
    given = {"decimal": decimal_mark} if decimal_mark and text != "decimals" else {}
    with warnings.catch_warnings(action="ignore"):
        table = bj.read_table(tmp_path / "a.csv", **given)
        if text == "decimals":  # a data set parses plain numbers at once: with how many digits is not known
            columns = tuple(replace(column, notation=None) for column in table.schema)
            table = table.with_schema(replace(table.schema, columns=columns))
        assert_same(bj.dataset(tmp_path, **given), table)


def test_a_text_file_with_a_header_alone_has_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(TableError, match="1 file without rows"):
        bj.dataset(tmp_path)
    (tmp_path / "größe 2.csv").write_text("b,a\nx,1\ny,2\ny,3\n", encoding="utf-8")
    rows = bj.dataset(tmp_path)
    assert (len(rows), rows.names, rows.is_complete) == (3, ("a", "b"), True)


GZ = gzip.compress(b"a,b\n" + b"1,x\n3,y\n" * 5_000)
FAULTS = {
    "a.csv": ("ä,b\n1,x\n".encode("cp1252"), ["UTF-8"]),
    "b.csv": ("a,b\n1,x\n".encode("utf-16"), ["UTF-8"]),
    "c.csv.gz": (GZ[:40], ["cannot be read"]),
    "d.csv.gz": (GZ[:20] + b"\xff\xff\xff" + GZ[23:], ["cannot be read"]),
    "e.csv": (b"a,a\n1,2\n", ["2 columns 'a'"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_a_file_are_told_by_its_name(tmp_path, name):
    content, words = FAULTS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as caught:
        bj.dataset(tmp_path)
    assert all(word in str(caught.value) for word in [name, *words])


@pytest.mark.parametrize(("first", "remedy"), [("", "read_table"), ("a,b\n1,x\n", "line_bytes")])
def test_a_line_without_an_end_is_told_with_what_reads_it(tmp_path, first, remedy, monkeypatch):
    monkeypatch.setattr(text_files, "_TEXT_BYTES", 1000)
    monkeypatch.setattr(text_files, "_N_FIRST_BYTES", 500)
    (tmp_path / "a.csv").write_text(first + "x" * 3000)
    with pytest.raises(TableError, match=rf"a line of 'a.csv' has more than \d+ bytes.*{remedy}"):
        bj.dataset(tmp_path, limits=bj.ReadLimits(line_bytes=1000))


def test_lines_are_as_long_as_limits_allow(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_TEXT_BYTES", 1000)
    long = "x" * 3000
    (tmp_path / "a.csv").write_text("a,b\n" + "1,x\n2,y\n" * 30 + f"3,{long}\n" * 9)
    rows = bj.dataset(tmp_path, limits=bj.ReadLimits(line_bytes=4000), kinds={"b": "nominal"}, progress=False)
    assert rows.rows(68, 1).to_frame()["b"].tolist() == [long]


@pytest.mark.parametrize("first", ["0.parquet", "9.parquet"])
@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([DAY, DAY, DAY + datetime.timedelta(1)]), "2020-01-01"),
        (pa.array([1, 2, 3]), "one"),
        (pa.array([True, False, True]), "1"),
    ],
)
def test_files_of_several_kinds_have_the_same_types_or_are_refused(tmp_path, first, column, text):
    pq.write_table(pa.table({"c": column, "d": ["x", "y", "y"]}), tmp_path / first)
    (tmp_path / "5.csv").write_text(f"c,d\n{text},x\n")
    with pytest.raises(TableError, match=r"column 'c' is .* in .* and .* in"):
        bj.dataset(tmp_path)
    (tmp_path / "5.csv").write_text("c,d\n,x\n")
    assert len(bj.dataset(tmp_path)) == 4


@pytest.mark.parametrize("kinds", [(pa.int64(), pa.float64()), (pa.int32(), pa.int64()), (pa.float32(), pa.int16())])
def test_numbers_of_several_types_have_the_one_that_holds_them(tmp_path, kinds):
    for number, kind in enumerate(kinds):
        written = pa.table({"c": pa.array([1, 2, 3], kind), "d": ["x", "y", "y"]})
        pq.write_table(written, tmp_path / f"{number}.parquet")
    (tmp_path / "2.csv").write_text("c,d\n4,x\n")
    rows = bj.dataset(tmp_path)
    assert rows.rows(0, 9).values[0].tolist() == [1, 2, 3, 1, 2, 3, 4]


def test_moments_in_several_units_are_those_of_one_table(tmp_path):
    days = [datetime.datetime(2020, 1, 1 + day, 6) for day in range(9)]
    for unit in ("us", "ns", "s"):
        pq.write_table(pa.table({"c": pa.array(days, pa.timestamp(unit))}), tmp_path / f"{unit}.parquet")
    rows, table = bj.dataset(tmp_path), bj.as_table(pd.DataFrame({"c": days * 3}))
    assert rows.schema.columns[0].resolution == table.schema.columns[0].resolution
    assert rows.rows(0, 27).values[0].tolist() == table.values[0].tolist()
    late = pa.array([datetime.datetime(9999, 1, 1)], pa.timestamp("s"))
    pq.write_table(pa.table({"c": late}), tmp_path / "late.parquet")
    with pytest.raises(TableError, match=r"late\.parquet.* cannot be read"):
        bj.dataset(tmp_path)
    pq.write_table(pa.table({"c": pa.array(days, pa.timestamp("s", "UTC"))}), tmp_path / "late.parquet")
    with pytest.raises(TableError, match=r"column 'c' is .* in .* and .* in"):
        bj.dataset(tmp_path)


def test_whole_numbers_that_a_double_does_not_hold_are_told(tmp_path):
    pq.write_table(pa.table({"c": pa.array([1.5])}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"c": pa.array([2**53 + 1])}), tmp_path / "1.parquet")
    with pytest.raises(TableError, match=r"1\.parquet.* cannot be read"):
        bj.dataset(tmp_path)


def test_texts_by_codes_and_plain_ones_are_texts(tmp_path):
    pq.write_table(pa.table({"c": pa.array(["x", "y"]).dictionary_encode()}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"c": ["z", "x"]}), tmp_path / "1.parquet")
    assert bj.dataset(tmp_path).schema.columns[0].labels == ("x", "y", "z")


def test_blanks_around_names_of_text_files_do_not_count(tmp_path):
    (tmp_path / "0.csv").write_text("size, colour \n1,red\n2,blue\n")
    (tmp_path / "1.csv").write_text("size,colour\n3,red\n")
    rows = bj.dataset(tmp_path)
    assert rows.names == ("size", "colour")
    assert rows.rows(0, 9).values[0].tolist() == [1, 2, 3]


def test_two_columns_of_one_name_are_refused(tmp_path):
    pq.write_table(pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], names=["a", "a"]), tmp_path / "a.parquet")
    with pytest.raises(TableError, match=r"a\.parquet.* 2 columns 'a'"):
        bj.dataset(tmp_path)


def test_a_file_counts_once_whatever_it_is_called(tmp_path, monkeypatch):
    path = written(a_frame(30), tmp_path)[0]
    monkeypatch.chdir(tmp_path)
    assert len(bj.dataset([path, path.name, f"../{tmp_path.name}/{path.name}"], folder="arranged")) == 30
    assert len(bj.dataset(path, folder=tmp_path / "arranged")) == 30
    assert bj.dataset(path, folder="arranged").folder.is_absolute()


def test_options_of_one_file_are_refused(tmp_path):
    with pytest.raises(TableError, match="sep= of several files"):
        bj.dataset(written(a_frame(30), tmp_path), sep=";")


# --- folders ---------------------------------------------------------------------------------------------------------


def test_files_that_change_while_they_are_read_are_told(tmp_path, monkeypatch):
    paths = written(a_frame(60), tmp_path / "files", (30,))
    original = dataset._arrange

    def disturbed(*given):
        found = original(*given)
        os.utime(paths[0], ns=(1, 1))
        return found

    monkeypatch.setattr(dataset, "_arrange", disturbed)
    with pytest.raises(TableError, match="changed while they were read"):
        bj.dataset(paths, folder=tmp_path / "arranged")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["files"]


def test_numbers_that_grow_between_the_passes_are_told(tmp_path, monkeypatch):
    paths = written(pd.DataFrame({"n": np.arange(60) % 7, "x": np.arange(60) % 9 + 0.5}), tmp_path / "files")
    original = dataset.decide_schema

    def disturbed(*given):
        found = original(*given)
        written(pd.DataFrame({"n": np.arange(60) % 7 + 900, "x": np.arange(60) % 9 + 0.5}), tmp_path / "files")
        return found

    monkeypatch.setattr(dataset, "decide_schema", disturbed)
    with pytest.raises(TableError, match="column 'n' holds values that were not there"):
        bj.dataset(paths)


def test_folders_that_cannot_be_written_are_told(tmp_path, monkeypatch):
    paths = written(a_frame(60), tmp_path / "files")
    (tmp_path / "taken").write_text("")
    with pytest.raises(TableError, match="taken' is a file"):
        bj.dataset(paths, folder=tmp_path / "taken")
    with pytest.raises(TableError, match=r"cannot be arranged in .*: Not a directory.* folder="):
        bj.dataset(paths, folder=tmp_path / "taken" / "below")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dataset, "_arrange", full)
    with pytest.raises(TableError, match=r"cannot be arranged in .*: No space left on device"):
        bj.dataset(paths, folder=tmp_path / "arranged")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["files", "taken"]


def test_a_folder_may_be_read_by_whoever_reads_its_parent(tmp_path):
    tmp_path.chmod(0o755)
    rows = bj.dataset(written(a_frame(60), tmp_path / "files"), folder=tmp_path / "arranged")
    assert rows.folder.stat().st_mode == (tmp_path / "files").stat().st_mode


def test_rows_are_taken_as_those_of_a_table(tmp_path):
    rows = bj.dataset(written(a_frame(60), tmp_path))
    mask = np.arange(60) % 7 == 3
    assert np.array_equal(rows.take(mask).values, rows.take(np.flatnonzero(mask)).values)
    assert rows.rows(80, 5).n_row == 0
    (rows.folder / "values_1.bin").unlink()
    with pytest.raises(TableError, match="values_1"):
        rows.take([1])


def test_what_takes_a_table_alone_says_how_to_make_one(tmp_path):
    with pytest.raises(TableError, match=r"rows in files.* dataset\.sample"):
        bj.as_table(bj.dataset(written(a_frame(60), tmp_path)))


def test_a_text_file_of_another_encoding_says_what_to_do(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_bytes("x;ort\n1;Zürich\n2;Bern\n".encode("cp1252"))
    with pytest.raises(TableError, match=r"expected text in UTF-8. Save it as UTF-8"):
        bj.dataset(tmp_path)


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("sep=;\nReport of 2020;\nid;y\n", "rows above"),
        ("Report of 2020,\nid,y\n", "rows above"),
        ("# made by hand\nid,y\n", "rows above"),
        ("id,y\ncm,kg\n", "a row of units"),
        ("", "a first row that looks like the others"),
    ],
)
def test_what_stands_around_the_names_of_text_files_is_told_and_no_row_of_theirs(tmp_path, head, found):
    mark = ";" if ";" in head else ","
    text = head + "".join(f"{i % 7}{mark}{i * i % 11}.5\n" for i in range(40))
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(TableError, match=rf"file 'a.csv' has {found}.*bj.read_table"):
        bj.dataset(tmp_path)


@pytest.mark.parametrize("other", [["low", "mid", "high"], ["high", "low"]])
def test_categories_in_several_orders_are_refused_by_name(tmp_path, other):
    for name, labels in (("a", ["low", "high"]), ("b", other)):
        frame = pd.DataFrame({"x": pd.Categorical(labels * 100, categories=labels, ordered=True)})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(TableError, match=r"column 'x' has the order .*low < high.*one order of its categories"):
        bj.dataset(tmp_path)


def test_categories_of_one_order_may_be_fewer_in_some_files(tmp_path):
    for name, labels in (("a", ["low", "mid"]), ("b", ["low", "mid", "high"])):
        frame = pd.DataFrame({"x": pd.Categorical(labels * 100, categories=labels, ordered=True)})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    assert bj.dataset(tmp_path).schema.columns[0].labels == ("low", "mid", "high")


def test_a_file_that_vanishes_while_rows_are_arranged_is_told_by_its_name(tmp_path, monkeypatch):
    folder, arrange = put(tmp_path / "in", X, X), dataset._arrange

    def arranged(*arguments):
        made = arrange(*arguments)
        (folder / "part_1.parquet").unlink()
        return made

    monkeypatch.setattr(dataset, "_arrange", arranged)
    with pytest.raises(TableError, match=r"file 'part_1.parquet' is not there any more"):
        bj.dataset(folder)


def test_an_executor_that_is_shut_down_is_told(tmp_path):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(SamplingError, match="the executor takes no work"):
        bj.dataset(put(tmp_path / "in", X, X), executor=executor)


def test_a_compressed_file_of_a_data_set_holds_as_much_as_one_that_is_read_by_itself(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + 2**22 * b"12345678,7654321\n"))
    with pytest.raises(TableError, match=r"holds more than 67108864 bytes, compressed.*expansion="):
        bj.dataset(tmp_path / "t.csv.gz", progress=False)


def test_a_compressed_file_of_a_data_set_expands_as_far_as_limits_allow(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(
        gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (k, k % 7) for k in range(2000)))
    )
    with pytest.raises(TableError, match="holds more than 1000 bytes, compressed"):
        bj.dataset(tmp_path, limits=bj.ReadLimits(expansion=0.1, free_bytes=1000), progress=False)
    assert bj.dataset(tmp_path, limits=bj.ReadLimits(expansion=10.0, free_bytes=1), progress=False).n_row == 2000


def test_limits_of_another_type_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match=r"limits of type dict; expected bj.ReadLimits"):
        bj.dataset(tmp_path, limits={"line_bytes": 5})  # type: ignore


def test_hidden_files_of_a_folder_are_none_of_it(tmp_path):
    pd.DataFrame({"x": np.arange(N) % 7}).to_csv(tmp_path / "part.csv", index=False)
    (tmp_path / "._part.csv").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X")
    assert bj.dataset(tmp_path, progress=False).n_row == N
