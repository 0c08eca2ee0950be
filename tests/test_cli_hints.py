"""What the commands say beside an answer, what they write with -o, and remedies that a command line has."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli

PYTHON = re.compile(r"\bbj\.|\bpost\.|[a-z_]+=['\[{A-Z\d]")
"""What only a program can follow."""


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    segment = rng.choice(["basic", "plus"], 120)
    spend = (rng.gamma(3.0, 1.0, 120) + 9.0 * (segment == "plus")).round(2)
    return pd.DataFrame({"spend": spend, "kids": rng.poisson(9.0, 120), "segment": segment})


@pytest.fixture(scope="module")
def post(frame) -> bj.Posterior:
    table = bj.as_table(frame, kinds={"kids": "integer"})
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=40), table.schema)
    return replace(post, reference=table.take(range(60)))


@pytest.fixture(scope="module")
def fit(post, tmp_path_factory):
    path = tmp_path_factory.mktemp("fits") / "fit.nc"
    post.save(path)
    return path


@pytest.fixture
def rows(frame, tmp_path):
    """Return the path of new rows, of which the third has half a kid, and the fourth a segment of its own."""
    new = frame.head(6).astype({"kids": float})
    new.loc[2, "kids"], new.loc[3, "segment"] = 1.5, "gold"
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    return path


def run(capfd, *arguments) -> tuple[int, str, str]:
    status = cli.run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return status, out, err


# --- beside an answer


def test_zero_of_a_continuous_column_says_what_to_ask(fit, capfd):
    status, out, err = run(capfd, "query", fit, "spend = 50")
    assert status == 0
    assert out.startswith("P(spend = 50) = 0,")
    assert "column 'spend' is continuous" in err
    assert "ask for spend between 49.995 and 50.005" in err
    assert run(capfd, "query", fit, "kids = 3")[2] == ""


def test_evidence_of_tiny_probability_warns(fit, capfd):
    _, _, err = run(capfd, "query", fit, "kids > 2", "--given", "spend > 60")
    assert re.search(r"P\(spend > 60\) = \S+: hardly a row of the table tells of it", err)
    assert run(capfd, "query", fit, "kids > 2", "--given", "spend > 6")[2] == ""


def test_explanations_tell_nothing_of_the_columns_that_are_asked_about(fit, capfd):
    _, plain, _ = run(capfd, "query", fit, "spend > 9", "--explain")
    assert "segment = 'plus'" in plain
    told = plain.splitlines()[2:]
    assert told
    assert not [line for line in told if "spend" in line]
    _, given, _ = run(capfd, "query", fit, "kids > 2", "--given", "segment = 'plus' and spend > 9", "--explain")
    assert not [line for line in given.splitlines()[2:] if "segment" in line or "spend" in line]


def test_a_fraction_among_whole_numbers_is_a_note_and_new_labels_are_named(fit, rows, capfd):
    status, out, err = run(capfd, "outliers", fit, rows)
    assert status == 0
    assert "1.5 in column 'kids' of whole numbers, read as 2 (first in row 3)" in err
    assert "segment = gold" in out
    assert len(out.splitlines()) == 7


def test_a_table_in_place_of_a_fit_says_how_to_fit_it(rows, capfd):
    status, _, err = run(capfd, "query", rows, "kids > 1")
    assert status == 2
    assert f"Fit it first: bayesjpt fit {rows} -o new.nc." in err


def test_names_without_a_name_are_refused(rows, fit, capfd):
    for arguments in (("types", rows, "--families", ","), ("dependence", fit, "--columns", " ")):
        status, _, err = run(capfd, *arguments)
        assert (status, "expected names with commas between them" in err) == (2, True)


def test_notes_on_two_tables_name_their_files(tmp_path, capfd):
    for name, size in (("first.csv", "unknown"), ("other.csv", "n.a.")):
        rows = [f"{k % 7 + 0.5};{'a' if k % 3 else 'b'}" for k in range(60)]
        (tmp_path / name).write_text("\n".join(["size;kind", *rows, f"{size};a"]), encoding="utf-8")
    status, _, err = run(capfd, "compare", tmp_path / "first.csv", tmp_path / "other.csv")
    assert status == 0
    assert "bayesjpt: first.csv: read as missing among numbers: 'unknown' in column 'size'" in err
    assert "bayesjpt: other.csv: read as missing among numbers: 'n.a.' in column 'size'" in err
    (tmp_path / "other.csv").write_text("size;kind\n1;2;3\n", encoding="utf-8")
    status, _, err = run(capfd, "compare", tmp_path / "first.csv", tmp_path / "other.csv", "-q")
    assert (status, "other.csv" in err) == (2, True)


def test_types_within_a_time_are_those_of_the_structures_that_are_done(frame, tmp_path, capfd):
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--time", "1e-9", "--draws", 2, "--tune", 2, "--cores", 1, "--seed", 1)
    status, out, err = run(capfd, "types", tmp_path / "table.csv", *options)
    assert status == 0
    assert "the time is up: 1 of 16 structures are kept" in err
    assert re.search(r"--time 1e-09: to judge this table takes at least about \d+ s; the first time compiles", err)
    assert out.splitlines()[2].startswith("spend")
    status, _, err = run(capfd, "types", tmp_path / "table.csv", "--time", 5, "--quick")
    assert (status, "--quick with --time" in err) == (2, True)


def test_a_single_structure_in_time_is_not_judged_and_is_said_to_be_alone(frame, tmp_path, capfd):
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--time", "1e-9", "--draws", 4, "--tune", 2, "--cores", 1, "--seed", 1)
    status, out, err = run(capfd, "fit", tmp_path / "table.csv", "-o", tmp_path / "fit.nc", *options)
    assert status == 0
    assert out.splitlines()[-1] == "1 of 16 structures, of which it is not known how stable its answers are."
    assert "judging" not in err


def test_a_fit_without_a_structure_in_time_is_a_draft_that_answers(tmp_path, capfd):
    rng = np.random.default_rng(1)
    size = rng.normal(0.0, 1.0, 600).round(2)
    pd.DataFrame({"size": size, "twice": 2 * size}).to_csv(tmp_path / "table.csv", index=False)
    options = ("--time", "1e-9", "--draws", 4, "--tune", 2, "--cores", 1, "--seed", 1)
    status, out, err = run(capfd, "fit", tmp_path / "table.csv", "-o", tmp_path / "fit.nc", *options)
    assert status == 0
    assert "the time is up: a draft from 150 of 600 rows is kept" in err
    assert out.splitlines()[-1].startswith("A draft from 150 of 600 rows")
    assert "judging" not in err
    assert re.search(r"--time 1e-09: a fit of this table takes at least about \d+ s; the first time compiles", err)
    status, out, err = run(capfd, "query", tmp_path / "fit.nc", "twice > 0", "--given", "size > 1")
    assert status == 0
    assert "A draft from 150 of 600 rows" in err


# --- to files


def read(path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def commands(fit, rows) -> dict[str, list]:
    return {
        "dependence": ["dependence", fit],
        "outliers": ["outliers", fit, rows],
        "predict": ["predict", fit, rows, "--target", "kids"],
        "types": ["types", rows, "-q", "--seed", 1],
        "compare": ["compare", rows, rows, "-q"],
    }


@pytest.mark.parametrize("command", ["dependence", "outliers", "predict", "types", "compare"])
def test_every_table_that_is_printed_is_written_with_its_types(command, fit, rows, tmp_path, capfd):
    arguments = commands(fit, rows)[command]
    for name in ("out.csv", "out.parquet"):
        status, out, err = run(capfd, *arguments, "-o", tmp_path / name)
        assert (status, out) == (0, "")
        assert f"Wrote {tmp_path / name}: " in err
    texts, typed = read(tmp_path / "out.csv"), pd.read_parquet(tmp_path / "out.parquet")
    assert [*texts[0]] == [*typed.columns]
    assert len(texts) == len(typed)
    numbers = typed.select_dtypes("number")
    assert numbers.shape[1]
    for name in numbers:
        written = [float(line[name]) if line[name] else np.nan for line in texts]
        np.testing.assert_allclose(written, numbers[name].astype(float), rtol=1e-5)


@pytest.mark.parametrize("verb", [("impute", "--mean"), ("outliers",), ("predict", "--target", "kids")])
def test_a_number_of_draws_is_refused_by_the_name_of_its_option(fit, rows, capfd, verb):
    status, _, err = run(capfd, verb[0], fit, rows, *verb[1:], "--draws", 0)
    assert status == 2
    assert err.startswith("bayesjpt: Invalid value for '--draws'")


def test_files_hold_what_is_printed_and_all_of_it(fit, rows, tmp_path, capfd):
    run(capfd, "outliers", fit, rows, "-o", tmp_path / "rows.tsv")
    shown = json.loads(run(capfd, "outliers", fit, rows, "--json")[1])["rows"]
    with (tmp_path / "rows.tsv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file, delimiter="\t"))
    assert [int(line["row"]) for line in written] == [line["row"] for line in shown]
    assert [line["value"] for line in written] == [line["value"] for line in shown]
    run(capfd, "outliers", fit, rows, "-o", tmp_path / "two.csv", "--top", 2)
    assert len(read(tmp_path / "two.csv")) == 2
    _, out, _ = run(capfd, "query", fit, "kids > 2", "-o", tmp_path / "draws.csv")
    (draw,) = read(tmp_path / "draws.csv")
    assert out.startswith(f"P(kids > 2) = {float(draw['probability']):.4g},")
    run(capfd, "dependence", fit, "-o", tmp_path / "pairs.csv", "--top", 1)
    assert next((line["first"], line["second"]) for line in read(tmp_path / "pairs.csv")) == ("spend", "segment")
    assert len(read(tmp_path / "pairs.csv")) == 3


@pytest.mark.parametrize("command", ["dependence", "outliers", "types", "compare"])
def test_a_file_and_json_together_or_an_unknown_kind_of_file_are_refused_before_the_work(
    command, fit, rows, tmp_path, capfd
):
    arguments = commands(fit, rows)[command]
    for options in (("-o", tmp_path / "out.csv", "--json"), ("-o", tmp_path / "out.xlsx")):
        status, out, err = run(capfd, *arguments, *options)
        assert (status, out, len(err.splitlines())) == (2, "", 1)
        assert not [*tmp_path.glob("out.*")]


# --- remedies


def test_errors_of_commands_give_remedies_of_the_command_line(fit, rows, tmp_path, capfd, frame, post):
    replace(post, reference=None).save(tmp_path / "bare.nc")
    frame.assign(name=[f"n{i}" for i in range(120)]).to_csv(tmp_path / "table.csv", index=False)
    gap = frame.astype(object)
    gap.loc[3, "spend"] = None
    gap.to_csv(tmp_path / "gap.csv", index=False)
    experts = ("fit", tmp_path / "table.csv", "-o", tmp_path / "e.nc", "--learner", "experts")
    begun = ("fit", tmp_path / "table.csv", "-o", tmp_path / "f.nc", "--structures", 1)
    asked = {
        "--learner jpt": ("tree", fit),
        "--labels all": (
            "sample",
            fit,
            "-o",
            tmp_path / "s.csv",
            "-n",
            2,
            "--given",
            "segment not in ('basic', 'plus')",
        ),
        "bayesjpt fit keeps": ("outliers", tmp_path / "bare.nc", rows),
        "--kind name=": (*experts, "--target", "name"),
        "--kind spend=": (*experts, "--target", "spend", "--experts", "poisson"),
        "bayesjpt impute": ("fit", tmp_path / "gap.csv", *experts[2:], "--target", "kids", "--given", "spend"),
        "--kind name=...": ("query", _with_text(frame, tmp_path), "name = 'n1'"),
        "--resume": (*begun, "--checkpoint", _begun(tmp_path, capfd)),
    }
    for remedy, arguments in asked.items():
        status, _, err = run(capfd, *arguments)
        last = [line for line in err.splitlines() if line.startswith("bayesjpt: ")][-1]
        assert (status, remedy in last) == (2, True), err
        assert not PYTHON.search(last), last


def _with_text(frame, folder):
    """Return the path of a fit that left a column out."""
    table = bj.as_table(frame.assign(name=[f"n{i}" for i in range(120)]))
    path = folder / "text.nc"
    bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=120), table.schema).save(path)
    return path


def _begun(folder, capfd):
    """Return a folder in which a fit of one structure is kept, as after a kill."""
    table = bj.read_table(folder / "table.csv")
    kept = {"n_structures": 1, "chains": 1, "draws": 4, "tune": 1, "seed": 1, "progress": False}
    bj.fit(table, checkpoint=folder / "kept", **kept)
    capfd.readouterr()
    return folder / "kept"
