"""Tables in files: the rows and the schema of the whole table, however it is cut, and never all of it in memory."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, TableError
from bayesjpt.table import batches, dataset, evidence
from bayesjpt.table.evidence import chosen_rows
from tests.strategies import law


def a_frame(n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": rng.gamma(2.0, 30.0, n).round(2),
            "visits": rng.poisson(4.0, n),
            "grade": rng.choice(["low", "medium", "high"], n),
            "member": rng.random(n) < 0.3,
            "share": rng.random(n),
            "year": 1990 + rng.integers(0, 30, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "amount"] = np.nan
    frame.loc[rng.random(n) < 0.05, "grade"] = None
    return frame


def written(frame: pd.DataFrame, folder, cuts=(), suffix: str = ".parquet") -> list:
    folder.mkdir(exist_ok=True, parents=True)
    ends = [0, *cuts, len(frame)]
    paths = []
    for number, (lo, hi) in enumerate(itertools.pairwise(ends)):
        path = folder / f"part_{number}{suffix}"
        if suffix == ".parquet":
            kinds = pa.Schema.from_pandas(frame, preserve_index=False)
            pq.write_table(pa.Table.from_pandas(frame.iloc[lo:hi], schema=kinds, preserve_index=False), path)
        else:
            frame.iloc[lo:hi].to_csv(path, index=False, sep="\t" if ".tsv" in suffix else ",")
        paths.append(path)
    return paths


def assert_same(rows: dataset.Dataset, table: bj.Table) -> None:
    assert rows.schema == table.schema
    values, observed = rows.arrays(0, rows.n_row)
    assert np.array_equal(observed, table.observed)
    assert np.array_equal(values, table.values)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz", ".tsv"])
def test_rows_and_schema_are_those_of_the_table(tmp_path, suffix):
    frame = a_frame(600)
    written(frame, tmp_path / "files", (200, 350), suffix)
    whole = tmp_path / f"whole{suffix}"
    frame.to_parquet(whole) if suffix == ".parquet" else frame.to_csv(
        whole, index=False, sep="\t" if ".tsv" in suffix else ","
    )
    expected = bj.read_table(whole)
    for paths in (tmp_path / "files", tmp_path / "files" / f"part_*{suffix}"):
        assert_same(bj.dataset(paths), expected)


@law(15)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_cuts_into_files_change_neither_schema_nor_rows(data, seed, tmp_path_factory):
    frame = a_frame(300, seed)
    frame["grade"] = np.where(np.arange(300) == data.draw(st.integers(0, 299)), "rare", frame["grade"])
    cuts = sorted(data.draw(st.lists(st.integers(0, 300), max_size=6)))
    folder = tmp_path_factory.mktemp("cut")
    found = [bj.dataset(written(frame, folder / str(k), own)) for k, own in enumerate(((), cuts))]
    assert found[0].digest() == found[1].digest()
    assert found[0].schema == found[1].schema
    assert_same(found[1], bj.as_table(pa.Table.from_pandas(frame, preserve_index=False)))


def test_large_tables_are_judged_by_some_rows_and_by_rare_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "SCHEMA_ROWS", 300)
    monkeypatch.setattr(batches, "BATCH_ROWS", 128)
    frame = a_frame(4_000)
    frame.loc[3_777, "visits"], frame.loc[1_234, "grade"] = 900, "unheard of"
    found = [bj.dataset(written(frame, tmp_path / str(k), cuts)) for k, cuts in enumerate(((), (1_000, 1_000, 3_900)))]
    assert found[0].digest() == found[1].digest()
    by_name = {column.name: column for column in found[0].schema}
    assert by_name["visits"].maximum == 900
    assert "unheard of" in by_name["grade"].labels
    assert by_name["amount"].n_missing == int(frame["amount"].isna().sum())
    whole = bj.as_table(frame, schema=found[0].schema)
    values, observed = found[0].arrays(0, 4_000)
    assert np.array_equal(observed, whole.observed)
    assert np.array_equal(values, whole.values)


def test_batches_alone_are_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 100)
    monkeypatch.setattr(evidence, "SCHEMA_ROWS", 200)
    seen = []
    original = dataset.as_table

    def noting(frame, **options):
        seen.append(len(frame))
        return original(frame, **options)

    for where in (dataset, evidence):
        monkeypatch.setattr(where, "as_table", noting)
    bj.dataset(written(a_frame(5_000), tmp_path))
    n_label_or_end = 3 + 2 + 2 * 4 + 20 + 30
    assert max(seen) <= 200 + n_label_or_end
    assert len(seen) == 51


def test_pieces_of_rows_are_tables(tmp_path):
    frame = a_frame(500)
    rows = bj.dataset(written(frame, tmp_path, (250,)))
    table = bj.as_table(pa.Table.from_pandas(frame, preserve_index=False))
    assert np.array_equal(rows.rows(240, 20).values, table.values[:, 240:260])
    assert np.array_equal(rows.take([499, 3, 3]).values, table.values[:, [499, 3, 3]])
    assert sum(part.n_row for part in rows.iter_tables(64)) == 500
    assert (len(rows), rows.n_column, rows.is_complete) == (500, 6, False)
    assert "500 rows x 6 columns" in repr(rows)
    assert "<b>Dataset</b>" in rows._repr_html_()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda rows: rows.rows(-5, 3), "first = -5; expected a whole number from 0"),
        (lambda rows: rows.rows(0, 2.5), "n = 2.5; expected a whole number from 0"),
        (lambda rows: rows.sample(-1), "n = -1; expected a whole number from 0"),
        (lambda rows: next(rows.iter_tables("all")), "n = 'all'; expected a whole number from 0"),
        (lambda rows: bj.dataset(rows.folder.parent / "in", folder=5), "a path of type int; expected a text or a Path"),
    ],
)
def test_numbers_and_folders_that_are_none_are_refused(tmp_path, asked, message):
    written(a_frame(20), tmp_path / "in")
    rows = bj.dataset(tmp_path / "in", folder=tmp_path / "out")
    with pytest.raises(TableError, match=f"^{message}"):
        asked(rows)
    assert rows.sample(0).n_row == rows.rows(3, 0).n_row == rows.rows(50, 2).n_row == 0


def test_rows_that_an_executor_hands_to_a_worker_are_read_from_the_same_files(tmp_path):
    frame = a_frame(500)
    rows = bj.dataset(written(frame, tmp_path, (250,)))
    table = bj.as_table(pa.Table.from_pandas(frame, preserve_index=False))
    # executors of processes send arguments by pickle; what is read back was written in the line itself
    sent = pickle.dumps(rows)
    assert len(sent) < 10_000, "names of files, no rows"
    assert np.array_equal(pickle.loads(sent).arrays(7, 9)[0], table.values[:, 7:9])


def test_distinct_values_are_those_observed_up_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "_PIECE_ROWS", 64)
    frame = a_frame(500)
    rows = bj.dataset(written(frame, tmp_path))
    expected = np.unique(frame["amount"].dropna())
    assert rows.distinct(0, 5) is None
    assert rows.distinct(0, expected.size - 1) is None
    assert np.array_equal(rows.distinct(0, 10_000), expected)
    assert rows.distinct(0, 5) is None


@law(40)
@given(n_row=st.integers(1, 3_000), n=st.integers(1, 3_000), key=st.integers(0, 9))
def test_chosen_rows_are_those_with_the_smallest_hashes(n_row, n, key):
    hashes = evidence.row_hash(np.arange(n_row), key)
    assert chosen_rows(n_row, n, key).tolist() == np.sort(np.argsort(hashes, kind="stable")[:n]).tolist()


def test_chosen_rows_are_spread_evenly():
    rows = chosen_rows(100_000, 10_000, 3)
    share = np.histogram(rows, 10, (0, 100_000))[0] / 1_000
    assert np.abs(share - 1.0).max() < 6.0 * np.sqrt(0.9 / 1_000)


def test_folders_are_used_again_and_told_apart(tmp_path):
    paths = written(a_frame(200), tmp_path / "files")
    first = bj.dataset(paths, folder=tmp_path / "arranged")
    again = bj.dataset(paths, folder=tmp_path / "arranged")
    assert first.digest() == again.digest()
    assert first.schema == again.schema
    written(a_frame(210), tmp_path / "files")
    with pytest.raises(TableError, match="other rows"):
        bj.dataset(paths, folder=tmp_path / "arranged")
    with pytest.raises(TableError, match="something else"):
        bj.dataset(paths, folder=tmp_path / "files")
    (tmp_path / "arranged" / "dataset.json").write_text("{")
    with pytest.raises(TableError, match="damaged"):
        bj.dataset(paths, folder=tmp_path / "arranged")


def test_temporary_folders_go_with_the_dataset(tmp_path):
    rows = bj.dataset(written(a_frame(50), tmp_path))
    folder = rows.folder
    other = rows.with_schema(rows.schema)
    del rows
    assert folder.exists()
    del other
    assert not folder.exists()


def test_an_error_while_rows_are_arranged_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    paths = written(a_frame(50), tmp_path / "files")

    def broken(*_):
        raise TableError("disk full")

    monkeypatch.setattr(dataset, "_arrange", broken)
    with pytest.raises(TableError, match="disk full"):
        bj.dataset(paths)
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="visits"), ["part_1.parquet", "no column 'visits'"]),
        (lambda frame: frame.assign(more=1), ["part_0.parquet", "no column 'more'"]),
        (lambda frame: frame.assign(visits=frame["visits"].astype(str)), ["'visits'", "string", "int64", "part_1"]),
    ],
)
def test_files_that_differ_are_told_before_anything_is_read(tmp_path, change, words, monkeypatch):
    frame = a_frame(40)
    frame.to_parquet(tmp_path / "part_0.parquet")
    change(frame).to_parquet(tmp_path / "part_1.parquet")
    monkeypatch.setattr(batches.Files, "batches", lambda self: pytest.fail("rows were read"))
    with pytest.raises(TableError) as caught:
        bj.dataset(tmp_path)
    assert all(word in str(caught.value) for word in words)


def test_bad_files_are_told_by_name(tmp_path):
    with pytest.raises(TableError, match=r"no file .*nothing"):
        bj.dataset(tmp_path / "nothing*.parquet")
    (tmp_path / "notes.docx").write_text("x")
    with pytest.raises(TableError, match=r"notes\.docx.* unknown kind"):
        bj.dataset(tmp_path / "notes.docx")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is not one")
    with pytest.raises(TableError, match=r"bad\.parquet.* cannot be read"):
        bj.dataset(tmp_path / "bad.parquet")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    with pytest.raises(TableError, match=r"data row 2 of .ragged\.csv. has 3 cells"):
        bj.dataset(tmp_path / "ragged.csv")
    with pytest.raises(TableError, match="no files"):
        bj.dataset([])


def test_a_file_that_disappears_is_told(tmp_path):
    paths = written(a_frame(60), tmp_path / "files", (30,))
    files = batches.open_files(paths)
    paths[1].unlink()
    with pytest.raises(TableError, match=r"part_1\.parquet.* not there any more"):
        list(files.batches())
    rows = bj.dataset(paths[0], folder=tmp_path / "arranged")
    (tmp_path / "arranged" / "values_2.bin").unlink()
    with pytest.raises(TableError, match=r"values_2\.bin"):
        rows.arrays(0, 5)


def test_values_that_nobody_foresaw_are_rounded_with_one_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "SCHEMA_ROWS", 100)
    monkeypatch.setattr(batches, "BATCH_ROWS", 200)
    frame = pd.DataFrame({"n": np.tile(np.arange(200.0), 10), "x": np.random.default_rng(1).normal(size=2_000)})
    outside = np.setdiff1d(np.arange(2_000), chosen_rows(2_000, 100, 0))[[20, 500, 900]]
    frame.loc[outside, "n"] = 2.5
    with pytest.warns(BayesjptWarning, match="2\\.5") as caught:
        rows = bj.dataset(written(frame, tmp_path))
    assert len(caught) == 1
    assert rows.arrays(0, 2_000)[0][0][outside].tolist() == [2.0] * 3


def test_closed_lists_hold_the_labels_of_all_rows(tmp_path):
    frame = a_frame(300)
    frame["rare"] = np.where(np.arange(300) == 299, "once", "often")
    written(frame, tmp_path / "files", [100, 250])
    rows = bj.dataset(tmp_path / "files", folder=tmp_path / "arranged", other=False, progress=False)
    assert_same(rows, bj.as_table(frame, other=False))
    labels = [column for column in rows.schema if column.base == "category"]
    assert labels
    assert not any(column.other for column in labels)
    again = bj.dataset(tmp_path / "files", folder=tmp_path / "arranged", other=False, progress=False)
    assert again.schema == rows.schema
    with pytest.raises(TableError, match="holds other rows"):  # of open lists
        bj.dataset(tmp_path / "files", folder=tmp_path / "arranged", progress=False)
