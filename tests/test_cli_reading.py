"""How tables are read, as options of every command that reads one."""

from __future__ import annotations

import csv as csv_module
import gzip
import inspect

import numpy as np
import pandas as pd
import pytest

from bayesjpt import cli, cli_query, cli_reading
from bayesjpt.table.read import ReadLimits
from tests.test_cli import refused, run

N = 80


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """Return the path of a table as a German spreadsheet exports it, with gaps."""
    rng = np.random.default_rng(4)
    amount = [f"{x:,.2f} €".replace(",", "_").replace(".", ",").replace("_", ".") for x in rng.gamma(2, 900, N)]
    day = [f"{1 + k % 28:02}.{1 + k % 12:02}.2024" for k in rng.integers(0, 300, N)]
    frame = pd.DataFrame({"Umsatz": amount, "Datum": day, "Aktiv": rng.choice(["ja", "nein"], N), "leer": ""})
    frame.loc[3, "Umsatz"] = frame.loc[5, "Datum"] = frame.loc[6, "Aktiv"] = ""
    path = tmp_path_factory.mktemp("tables") / "german.csv"
    frame.to_csv(path, index=False, sep=";", encoding="cp1252", quoting=csv_module.QUOTE_MINIMAL)
    return path


@pytest.fixture(scope="module")
def fitted(german, tmp_path_factory):
    path = tmp_path_factory.mktemp("fits") / "german.nc"
    few = ["--structures", "1", "--draws", "6", "--tune", "2", "--chains", "1", "--cores", "1", "--seed", "1"]
    assert cli.run(["fit", str(german), "-o", str(path), "-q", *few]) == 0
    return path


READERS = [
    command
    for command in (cli.types, cli.fit, cli.show_schema, *cli_query.COMMANDS)
    if "table" in inspect.signature(command).parameters
]


@pytest.mark.parametrize("command", READERS)
def test_every_command_that_reads_a_table_takes_every_option(command):
    assert set(cli_reading._OPTIONS) <= set(inspect.signature(command).parameters)


def test_a_table_that_is_no_utf8_is_read_and_that_is_said(german, capfd):
    status, out, err = run(capfd, "schema", german)
    assert status == 0
    assert "read as Windows-1252" in err
    for name in ("Umsatz", "Datum", "Aktiv"):
        assert f'[column."{name}"]' in out or f"[column.{name}]" in out
    assert "written in € with decimal comma and points between thousands" in out
    assert "empty: no value" in out


def test_options_say_how_a_table_is_to_be_read(tmp_path, capfd):
    (tmp_path / "t.csv").write_bytes("1,5^ä^03/04/2024\n2,5^-9^05/06/2024\n3,25^ö^07/08/2024\n".encode("cp437"))
    options = ["--encoding", "cp437", "--sep", "^", "--decimal", ",", "--na", "-9", "--no-header", "--day-first"]
    status, out, err = run(capfd, "schema", tmp_path / "t.csv", *options)
    assert (status, err) == (0, "")
    assert 'labels = ["ä", "ö"]' in out
    assert "from 2024-04-03 to 2024-08-07" in out
    assert "from 1.5 to 3.25" in out


def test_a_sheet_may_be_chosen(tmp_path, capfd):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        pd.DataFrame({"a": [1.5, 2.5]}).to_excel(book, sheet_name="One", index=False)
        pd.DataFrame({"b": [1.5, 2.5]}).to_excel(book, sheet_name="Two", index=False)
    assert "column.b" in run(capfd, "schema", tmp_path / "t.xlsx", "--sheet", "Two")[1].replace('"', "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--line-bytes", "20"], "Raise it with --line-bytes"),
        (["--encoding", "klingon"], "encoding 'klingon'"),
        (["--sep", ";;"], "sep ';;'"),
        (["--decimal", "x"], "decimal 'x'"),
        (["--sheet", "2"], "no workbook"),
    ],
)
def test_mistakes_are_one_line(german, options, words, capfd):
    assert words in refused(capfd, "schema", german, *options)


@pytest.mark.parametrize("place", ["t.csv.gz", "*.csv.gz"])
def test_a_compressed_file_may_be_allowed_to_hold_more(place, tmp_path, capfd, monkeypatch):
    path = tmp_path / place
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1.5\n2.5\n" * 9000))
    monkeypatch.setattr(ReadLimits, "expanded", lambda limits, n_byte: limits.expansion * n_byte)
    assert "Raise it with --expansion" in refused(capfd, "schema", path, "--expansion", "2")
    assert run(capfd, "schema", path, "--expansion", "2000")[0] == 0


def test_filled_tables_give_the_user_s_texts_back(german, fitted, tmp_path, capfd):
    output = tmp_path / "filled.csv"
    assert run(capfd, "impute", fitted, german, "-o", output, "--seed", "1")[0] == 0
    read = pd.read_csv(german, sep=";", dtype=str, keep_default_na=False, encoding="cp1252")
    filled = pd.read_csv(output, sep=";", dtype=str, keep_default_na=False)
    holes = np.zeros(read.shape, bool)
    holes[[3, 5, 6], [0, 1, 2]] = True
    assert (read.to_numpy() == filled.to_numpy())[~holes].all()
    assert filled.loc[3, "Umsatz"].endswith(" €")
    assert "," in filled.loc[3, "Umsatz"]
    assert filled.loc[5, "Datum"].count(".") == 2
    assert filled.loc[6, "Aktiv"] in ("ja", "nein")


def test_filled_tables_keep_the_separator_unless_the_name_says_otherwise(german, fitted, tmp_path, capfd):
    lines = german.read_text(encoding="cp1252").splitlines()
    status, out, _ = run(capfd, "impute", fitted, german, "--seed", "1")
    assert status == 0
    found = out.splitlines()
    assert [new for new, old in zip(found, lines, strict=True) if new != old] == [found[4], found[6], found[7]]
    assert '"' not in out
    for name, separator in (("f.csv", ";"), ("f.tsv", "\t")):
        assert run(capfd, "impute", fitted, german, "-o", tmp_path / name, "--seed", "1", "--mean")[0] == 0
        assert (tmp_path / name).read_text().splitlines()[0] == separator.join(["Umsatz", "Datum", "Aktiv", "leer"])
    assert run(capfd, "impute", fitted, tmp_path / "f.tsv", "-o", tmp_path / "g.csv", "--seed", "1")[0] == 0
    assert (tmp_path / "g.csv").read_text().startswith("Umsatz,Datum,Aktiv,leer\n")


def test_new_columns_are_ignored_with_a_warning(german, fitted, tmp_path, capfd):
    read = pd.read_csv(german, sep=";", dtype=str, encoding="cp1252").assign(neu="x")
    read.to_csv(tmp_path / "new.csv", index=False)
    status, out, err = run(capfd, "outliers", fitted, tmp_path / "new.csv", "--top", "3")
    assert status == 0
    assert "ignored: 'neu'" in err
    assert "€" in out or "ja" in out or ".2024" in out


def test_predictions_are_printed_as_csv_and_add_up_to_one(german, fitted, capfd):
    status, out, _ = run(capfd, "predict", fitted, german, "--target", "Aktiv")
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == "row,nein,ja"
    assert len(lines) == N + 1
    for line in lines[1:]:
        assert abs(sum(map(float, line.split(",")[1:])) - 1.0) < 1e-8


def test_predicted_numbers_and_dates_are_spelled_as_the_table_spells_them(german, fitted, tmp_path, capfd):
    assert run(capfd, "predict", fitted, german, "--target", "Umsatz", "-o", tmp_path / "p.csv")[0] == 0
    found = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert list(found.columns) == ["row", "mean", "lower", "upper"]
    assert found["row"].tolist() == [str(row) for row in range(1, N + 1)]
    assert found["mean"].str.endswith(" €").all()
    assert run(capfd, "predict", fitted, german, "--target", "Datum", "-o", tmp_path / "p.parquet")[0] == 0
    assert pd.read_parquet(tmp_path / "p.parquet")["mean"].dtype.kind == "M"


def test_rows_and_filled_tables_are_written_with_their_types(german, fitted, tmp_path, capfd):
    assert run(capfd, "sample", fitted, "-n", "5", "-o", tmp_path / "s.parquet", "--seed", "1")[0] == 0
    rows = pd.read_parquet(tmp_path / "s.parquet")
    assert rows.dtypes.map(lambda dtype: dtype.kind).tolist()[:2] == ["f", "M"]
    assert run(capfd, "impute", fitted, german, "-o", tmp_path / "f.feather", "--seed", "1")[0] == 0
    filled = pd.read_feather(tmp_path / "f.feather")
    assert list(filled.columns) == ["Umsatz", "Datum", "Aktiv", "leer"]
    assert filled[["Umsatz", "Datum", "Aktiv"]].notna().all(axis=None)


def test_an_unknown_target_is_refused(german, fitted, capfd):
    assert "'Umsats'" in refused(capfd, "predict", fitted, german, "--target", "Umsats")


def test_a_fit_says_which_values_may_be_codes_for_missing_cells(tmp_path, capfd):
    rng = np.random.default_rng(2)
    temp = np.where(np.arange(N) % 9 == 0, -127.0, rng.normal(20.0, 1.0, N).round(1))
    pd.DataFrame({"temp now": temp, "x": rng.normal(size=N)}).to_csv(tmp_path / "t.csv", index=False)
    few = ["--structures", "1", "--draws", "2", "--tune", "1", "--chains", "1", "--cores", "1", "--seed", "1"]
    status, _, err = run(capfd, "fit", tmp_path / "t.csv", "-o", tmp_path / "t.nc", *few)
    assert status == 0
    assert "codes for missing cells? --na 'temp now=-127' reads them so" in err
    status, _, err = run(capfd, "fit", tmp_path / "t.csv", "-o", tmp_path / "t.nc", "--na", "temp now=-127", *few)
    assert status == 0
    assert "codes" not in err


def test_a_fit_says_which_numbers_may_be_dates(tmp_path, capfd):
    days = pd.date_range("2023-01-01", periods=N).strftime("%Y%m%d")
    rng = np.random.default_rng(2)
    pd.DataFrame({"the day": days, "x": rng.normal(size=N).round(2)}).to_csv(tmp_path / "t.csv", index=False)
    few = ["--structures", "1", "--draws", "2", "--tune", "1", "--chains", "1", "--cores", "1", "--seed", "1"]
    status, _, err = run(capfd, "fit", tmp_path / "t.csv", "-o", tmp_path / "t.nc", *few)
    assert status == 0
    assert "are these numbers dates? --kind 'the day=date' reads them so" in err
    status, _, err = run(capfd, "fit", tmp_path / "t.csv", "-o", tmp_path / "t.nc", "--kind", "the day=date", *few)
    assert status == 0
    assert "dates" not in err
