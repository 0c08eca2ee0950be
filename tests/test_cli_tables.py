"""Tables and schema documents on the command line: each mistake is one line and status 2, for every command alike."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

import bayesjpt as bj
from tests.test_cli import refused, run

N = 30
PLAIN = np.resize([0.5, 1.0, 1.5], N)
BIG = 2**53 + 1


@pytest.fixture(params=["types", "fit", "schema"])
def command(request, tmp_path):
    """Return the start of each command that reads a table, as far as the table."""
    return [request.param, *(["-o", tmp_path / "out"] if request.param != "types" else [])]


def text_file(path, columns):
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def arrow_file(path, columns):
    feather.write_feather(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


def spoiled(value, row=7):
    """Return texts of numbers, one of them another."""
    texts = [f"{i % 9}.5" for i in range(N)]
    texts[row - 1] = value
    return texts


BAD_TEXT = {
    "no bytes": ("", ["is empty"]),
    "no names": ("\n\n", ["is empty"]),
    "no rows": ("x,y\n", ["0 rows and 2 columns"]),
    "no value at all": ("x,y\n,\nNA,?\n  ,\t\n", ["no column is left", "'y': empty: no value in 3 rows"]),
    "infinity": ("x,y\n" + "1.5,1\n" * 3 + "-inf,2\n", ["column 'x' holds -inf in row 4", "finite"]),
    "beyond float64": ("x,y\n1.5,1\n2e999,2\n", ["column 'x' holds inf in row 2"]),
    "whole beyond 2^53": (
        f"x,y\n1,1\n2,2\n{BIG},3\n2,3\n",
        [f"the whole number {BIG} in row 3", "2^53", "--kind x=excluded"],
    ),
    "thousands of digits": (f"x,y\n1,1\n{'9' * 5_000},2\n", ["column 'x'", "row 2"]),
    "ragged": ("x,y\n1,2\n1,2,3\n", ["data row 2 of 't.csv' has 3 cells", "2 as in the header"]),
    "open quote": ('x,y\n"a,2\n', ["'t.csv' cannot be read"]),
    "values too far apart": ("x\n1.5\n2.5\n3.5\n4.5\n1e300\n", ["column 'x' holds 1e+300 in row 5", "logarithms"]),
    "no column left": ("id\n" + "\n".join(map(str, range(N))), ["no column is left", "--kind id=integer"]),
    "no column left, nor a kind": (
        "text\n" + "\n".join(f"name {i}" for i in range(1_001)),
        ["no column is left", "identifier or free text", "Add columns"],
    ),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text_file_is_refused_in_one_line(command, case, tmp_path, capfd):
    content, words = BAD_TEXT[case]
    path = tmp_path / "t.csv"
    path.write_text(content)
    line = refused(capfd, *command, path)
    for word in words:
        assert word in line


@pytest.mark.parametrize("name", ["t.docx", "t.pdf", "table"])
def test_unknown_kind_of_file_is_refused_listing_the_known(command, name, tmp_path, capfd):
    path = tmp_path / name
    path.write_text("x\n1\n")
    line = refused(capfd, *command, path)
    assert repr(name) in line
    assert all(suffix in line for suffix in (".csv", ".tsv", ".parquet", ".feather", ".arrow", ".ipc"))


BAD_TYPE = {
    "durations": [datetime.timedelta(days=i) for i in range(N)],
    "bytes": [b"a"] * N,
    "lists": [[1, 2]] * N,
    "structs": [{"a": {"b": 1}}] * N,
    "maps": pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("case", BAD_TYPE)
def test_column_of_an_unknown_type_is_excluded_and_costs_no_other(case, tmp_path, capfd):
    path = arrow_file(tmp_path / "t.feather", {"plain": PLAIN, "odd": BAD_TYPE[case]})
    status, out, _ = run(capfd, "schema", path)
    assert status == 0
    assert "# of type" in out


def test_dates_beyond_the_calendar_are_refused_with_column_row_and_year(command, tmp_path, capfd):
    path = arrow_file(tmp_path / "t.feather", {"day": pa.array([0, 5, 10**14], pa.timestamp("s"))})
    assert "column 'day' holds a date of the year 3170843 in row 3" in refused(capfd, *command, path)


@pytest.mark.parametrize("scale", [1e299, 1e-299])
def test_extreme_scales_are_no_mistake(scale, tmp_path, capfd):
    path = text_file(tmp_path / "t.csv", {"x": scale * np.arange(1, N + 1) * 1.25})
    status, out, err = run(capfd, "schema", path)
    assert (status, err) == (0, "")
    assert f"resolution = {scale / 20:g}\n" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kind", "x=integer"], ["the kind asks for 'integer'", "'x' holds 'many' in row 7"]),
        (["--kind", "x=real"], ["the kind asks for 'real'", "'x' holds 'many' in row 7"]),
        (["--kind", "many=category"], ["'many' has 1001 labels", "at most 1000", "an identifier or a text"]),
        (["--kind", "z=real"], ["a kind for column 'z', which the table does not have", "'x', 'many'"]),
        (
            ["--kind", "x=real", "--kind", "x=excluded"],
            ["--kind x=real and --kind x=excluded", "one kind of each column"],
        ),
        (["--kind", "x=cardinal"], ["'cardinal'", "category, integer, real", "excluded"]),
    ],
)
def test_kind_that_contradicts_the_cells_is_refused(command, options, words, tmp_path, capfd):
    n = 1_001
    texts = np.resize(spoiled("many"), n)
    path = text_file(tmp_path / "t.csv", {"x": texts, "many": [f"name {i}" for i in range(n)]})
    line = refused(capfd, *command, path, *options)
    for word in words:
        assert word in line


# --- schema


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(1)
    return text_file(
        tmp_path / "t.csv",
        {"size": rng.gamma(3.0, 1.0, N).round(1), "grade": rng.integers(1, 6, N), "id": np.arange(N)},
    )


def test_schema_goes_to_standard_output(csv, capfd):
    status, out, err = run(capfd, "schema", csv)
    assert (status, err) == (0, "")
    assert out.startswith("# What each column of the table is")
    assert '[column."grade"]\n# whole numbers from 1 to 5, none negative' in out
    assert '[column."id"]\n# running number' in out


def test_schema_is_written_and_read_back_by_the_same_words(csv, tmp_path, capfd):
    path = tmp_path / "schema.toml"
    assert run(capfd, "schema", csv, "-o", path) == (0, "", "")
    path.write_text(path.read_text().replace('base = "excluded"', 'base = "integer"'))
    again = run(capfd, "schema", csv, "--schema", path)[1]
    assert '[column."id"]\n# whole numbers from 0 to 29' in again
    assert bj.read_table(csv, schema=path).names == ("size", "grade", "id")


def test_schema_takes_kinds(csv, capfd):
    _, out, _ = run(capfd, "schema", csv, "--kind", "grade=category", "--kind", "size=aside")
    assert 'labels = ["1", "2", "3", "4", "5"]' in out
    assert '[column."size"]\n# left out on request\nbase = "excluded"' in out


def test_schema_keeps_a_file_that_may_hold_decisions(csv, tmp_path, capfd):
    path = tmp_path / "schema.toml"
    path.write_text("mine")
    line = refused(capfd, "schema", csv, "-o", path)
    assert "exists, and may hold your decisions" in line
    assert "--overwrite" in line
    assert path.read_text() == "mine"
    assert run(capfd, "schema", csv, "-o", path, "--overwrite") == (0, "", "")
    assert path.read_text().startswith("# What")


def test_schema_into_no_folder_is_refused(csv, tmp_path, capfd):
    assert "cannot be written" in refused(capfd, "schema", csv, "-o", tmp_path / "none" / "schema.toml")


def test_warnings_go_to_standard_error_unless_quiet(tmp_path, capfd):
    path = text_file(tmp_path / "t.csv", {"x": PLAIN, "y": [7] * N})
    assert run(capfd, "schema", path)[2] == "bayesjpt: constant columns, which say nothing about others: 'y'\n"
    assert run(capfd, "schema", path, "--quiet")[2] == ""


def test_mistake_in_a_document_is_one_line_that_names_its_line(command, csv, tmp_path, capfd):
    path = tmp_path / "schema.toml"
    path.write_text('[column.size]\nbase = "real"\nresolutoin = 0.1')
    line = refused(capfd, *command, csv, "--schema", path)
    assert line.startswith("bayesjpt: line 3 of 'schema.toml': unknown key 'resolutoin' of column 'size'")
    assert "one like 'resolution'" in line


def test_document_that_contradicts_the_rows_is_refused(command, csv, tmp_path, capfd):
    path = tmp_path / "schema.toml"
    path.write_text('[column.grade]\nbase = "category"\nlabels = ["1", "2"]')
    line = refused(capfd, *command, csv, "--schema", path)
    assert "line 3 of 'schema.toml' does not list" in line


def test_document_beside_kinds_is_refused(command, csv, tmp_path, capfd):
    path = tmp_path / "schema.toml"
    path.write_text("")
    assert "both kinds and schema" in refused(capfd, *command, csv, "--schema", path, "--kind", "size=real")


def test_missing_document_is_refused_by_name(command, csv, capfd):
    assert "no file 'none.toml'" in refused(capfd, *command, csv, "--schema", "none.toml")


def test_schema_loads_neither_pymc_nor_a_learner(csv, run_python):
    program = f"import sys; from bayesjpt import cli; cli.run(['schema', {str(csv)!r}]); print([name for name in (" + (
        "'pymc', 'pytensor', 'arviz', 'arviz_stats', 'sklearn', 'xarray', 'bayesjpt.kernels') if name in sys.modules])"
    )
    assert run_python(program).splitlines()[-1] == "[]"


def test_folders_and_patterns_of_files_are_one_table(tmp_path, capfd):
    frame = pd.DataFrame({"size": np.arange(300) % 40, "colour": ["red", "blue", "green"] * 100})
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(3):
        frame[100 * number : 100 * number + 100].to_csv(folder / f"part_{number}.csv", index=False)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    found = [
        run(capfd, "types", str(path), "--json", "-q", "--seed", "1")[1]
        for path in (tmp_path / "whole.csv", folder, folder / "part_*.csv")
    ]
    columns = [json.loads(out)["columns"] for out in found]
    assert columns[0] == columns[1] == columns[2]
    status, _, said = run(capfd, "types", str(folder), "--sheet", "1")
    assert status != 0
    assert "--sheet with several files" in said
    status, _, said = run(capfd, "fit", str(tmp_path / "none_*.csv"), "-o", str(tmp_path / "fit.nc"))
    assert status != 0
    assert "none_" in said


def test_new_rows_in_several_files_are_refused(tmp_path, capfd):
    frame = pd.DataFrame({"x": PLAIN, "c": np.resize(["a", "b", "b"], N)})
    (tmp_path / "parts").mkdir()
    frame.to_csv(tmp_path / "parts" / "a.csv", index=False)
    bj.fit(frame, n_structures=2, draws=2, tune=1, seed=1, progress=False).save(tmp_path / "fit.nc")
    status, _, said = run(capfd, "impute", tmp_path / "fit.nc", tmp_path / "parts")
    assert status == 2
    assert "new rows in several files" in said


@pytest.mark.parametrize("words", [["types", "t.csv", "--na"], ["query", "t.nc", "--given"]])
def test_an_option_without_its_value_names_the_command_that_has_it(words, capfd):
    assert refused(capfd, *words).endswith(f"Try 'bayesjpt {words[0]} --help'")
