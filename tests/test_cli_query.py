"""The commands that question a saved fit: what they print and write, without PyMC or ArviZ."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli, cli_query
from bayesjpt.posterior.stacked import StackedPosterior

EVENT = "size > 2 and colour = 'red'"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    colour = np.where(rng.random(120) < 0.5, "red", "white")
    size = (rng.gamma(3.0, 1.0, 120) + 6.0 * (colour == "red")).round(1)
    made = pd.DataFrame({"id": [f"row {i}" for i in range(120)], "size": size, "rings": rng.poisson(30.0, 120)})
    return made.assign(colour=colour)


@pytest.fixture(scope="module")
def post(frame) -> bj.Posterior:
    """Return an estimate, twice, with reference rows."""
    table = bj.as_table(frame)
    one = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=40), table.schema)
    params = type(one.params)(np.repeat(one.params.log_weight, 2, axis=1), np.repeat(one.params.theta, 2, axis=1))
    return replace(one, params=params, reference=table.take(range(60)))


@pytest.fixture(scope="module")
def fit(post, tmp_path_factory):
    """Return the path of its file."""
    path = tmp_path_factory.mktemp("fits") / "fit.nc"
    post.save(path)
    return path


@pytest.fixture
def holes(frame, tmp_path):
    """Return the path of a file with missing cells in some spellings."""
    rows = frame.head(4).astype(object)
    rows.loc[0, "size"], rows.loc[1, "colour"], rows.loc[2, "rings"] = "NA", "", "?"
    path = tmp_path / "holes.csv"
    rows.to_csv(path, index=False)
    return path


def run(capfd, *arguments) -> tuple[int, str, str]:
    """Return (status, standard output, standard error) of the command line."""
    status = cli.run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return status, out, err


def read(path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


# --- query


def test_query_prints_mean_interval_and_number_of_draws(fit, post, capfd):
    status, out, err = run(capfd, "query", fit, "size > 2", "--given", "colour = 'red'")
    assert (status, err) == (0, "")
    expected = float(post.probability("size > 2", "colour = 'red'").mean())
    assert out.startswith(f"P(size > 2 | colour = 'red') = {expected:.4g}, 0.9 interval ")
    assert out.endswith("(2 draws)\n")


def test_query_prints_or_in_words_where_it_could_be_read_as_given(fit, post, capfd):
    text = "size > 2 | colour = 'red'"
    _, out, err = run(capfd, "query", fit, text)
    expected = float(post.probability(text).mean())
    assert out.startswith(f"P(size > 2 or colour = 'red') = {expected:.4g}, ")
    assert err == "bayesjpt: | stands for 'or' in an event; evidence is given by --given\n"
    _, out, err = run(capfd, "query", fit, "size > 2", "--given", "size > 1 || rings < 50")
    assert out.startswith("P(size > 2 | size > 1 or rings < 50) = ")
    assert err == ""


def test_query_as_json_holds_the_answer_of_every_draw_on_request(fit, post, capfd):
    _, out, _ = run(capfd, "query", fit, EVENT, "--json", "--per-draw", "--interval", "0.5")
    found = json.loads(out)
    assert np.array(found["per_draw"]).shape == (1, 2)
    assert found["probability"] == pytest.approx(float(post.probability(EVENT).mean()), rel=1e-12)
    assert found["interval_probability"] == 0.5


def test_a_mistake_in_an_event_is_marked_on_lines_of_its_own(fit, capfd):
    status, out, err = run(capfd, "query", fit, "sise > 2")
    assert (status, out) == (2, "")
    first, text, mark = err.splitlines()
    assert first.startswith("bayesjpt: ")
    assert text.index("sise") == mark.index("^")


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.nc", "size > 2"),
        (None, "size > 2", "--given", "size < 0 and size > 1"),
        (None, "size > 2", "--interval", "2"),
    ],
    ids=["no file", "impossible evidence", "interval"],
)
def test_other_mistakes_are_one_line_and_status_2(fit, arguments, capfd):
    status, out, err = run(capfd, "query", arguments[0] or fit, *arguments[1:])
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1


# --- sample


def test_sample_writes_rows_of_the_event_with_labels(fit, tmp_path, capfd):
    path = tmp_path / "rows.csv"
    status, _, _ = run(capfd, "sample", fit, "-n", 30, "-o", path, "--given", EVENT, "--seed", 1, "--recorded")
    assert status == 0
    header, *rows = read(path)
    assert header == ["size", "rings", "colour"]
    assert len(rows) == 30
    assert all(float(size) > 2 and len(size.partition(".")[2]) <= 1 and colour == "red" for size, _, colour in rows)
    assert all(rings.isdigit() for _, rings, _ in rows)


def test_sample_writes_other_labels_where_they_are_asked_for(fit, tmp_path, capfd):
    path = tmp_path / "rows.csv"
    new = "colour not in ('red', 'white')"
    status, _, err = run(capfd, "sample", fit, "-n", 3, "-o", path, "--given", new, "--seed", 1)
    assert status == 2
    assert "--labels all" in err
    assert not path.exists()
    status, _, _ = run(capfd, "sample", fit, "-n", 3, "-o", path, "--given", new, "--seed", 1, "--labels", "all")
    assert status == 0
    assert [row[2] for row in read(path)[1:]] == ["other"] * 3


def test_sample_prints_without_a_file_and_rounds_as_the_table_does_unless_told_not_to(fit, tmp_path, capfd):
    path = tmp_path / "rows.csv"
    run(capfd, "sample", fit, "-n", 20, "--seed", 1, "-o", path)
    status, out, _ = run(capfd, "sample", fit, "-n", 20, "--seed", 1)
    assert status == 0
    assert out == path.read_text()
    decimals = [len(row[0].partition(".")[2]) for row in read(path)[1:]]
    run(capfd, "sample", fit, "-n", 20, "--seed", 1, "-o", path, "--exact")
    exact = [len(row[0].partition(".")[2]) for row in read(path)[1:]]
    assert max(decimals) <= 1 < min(exact)


def test_exact_rows_have_all_digits_in_the_notation_of_their_column(frame, tmp_path, capfd):
    table = bj.as_table({"price": [f"${price:,.2f}" for price in 432.1 * frame["size"]]})
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    post.save(tmp_path / "fit.nc")
    status, out, _ = run(capfd, "sample", tmp_path / "fit.nc", "-n", 9, "--seed", 1, "--exact")
    assert status == 0
    found = [float(row[0].removeprefix("$").replace(",", "")) for row in list(csv.reader(out.splitlines()))[1:]]
    assert found == post.sample(9, rng=1, recorded=False).to_frame()["price"].tolist()


def test_sample_with_one_seed_writes_one_file(fit, tmp_path, capfd):
    paths = [tmp_path / f"{i}.csv" for i in range(3)]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        run(capfd, "sample", fit, "-n", 5, "-o", path, "--seed", seed)
    first, second, third = (path.read_bytes() for path in paths)
    assert first == second
    assert first != third


@pytest.mark.parametrize("name", ["rows.xlsx", "nowhere/rows.csv"])
def test_files_that_cannot_be_written_are_refused_before_the_work(fit, tmp_path, name, capfd):
    status, _, err = run(capfd, "sample", fit, "-o", tmp_path / name)
    assert status == 2
    assert len(err.splitlines()) == 1


# --- impute


@pytest.mark.parametrize("how", [("--seed", "1"), ("--mean",)], ids=["draws", "means"])
def test_impute_fills_the_holes_and_leaves_every_other_cell_as_it_was(fit, holes, tmp_path, how, capfd):
    path = tmp_path / "filled.csv"
    status, _, err = run(capfd, "impute", fit, holes, "-o", path, *how)
    assert status == 0
    assert "3 cells" in err
    before, after = read(holes), read(path)
    hidden = {(1, 1), (2, 3), (3, 2)}
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        for j, (x, y) in enumerate(zip(old, new, strict=True)):
            assert (x == y) is ((i, j) not in hidden)
    assert after[2][3] in ("red", "white")
    assert after[3][2].isdigit()


def test_impute_prints_without_a_file(fit, holes, tmp_path, capfd):
    run(capfd, "impute", fit, holes, "-o", tmp_path / "filled.csv", "--seed", 1)
    status, out, _ = run(capfd, "impute", fit, holes, "--seed", 1)
    assert (status, out) == (0, (tmp_path / "filled.csv").read_text())


def test_impute_adds_columns_that_the_file_lacks(fit, tmp_path, capfd):
    (tmp_path / "part.csv").write_text("rings\n30\n31\n")
    run(capfd, "impute", fit, tmp_path / "part.csv", "-o", tmp_path / "full.csv", "--seed", 1)
    header, *rows = read(tmp_path / "full.csv")
    assert header == ["rings", "size", "colour"]
    assert [row[0] for row in rows] == ["30", "31"]
    assert all(row[2] in ("red", "white") for row in rows)


# --- outliers


def test_outliers_shows_the_planted_row_first_with_its_cell(fit, frame, tmp_path, capfd):
    rows = frame.head(30).copy()
    rows.loc[7, "size"] = 95.5
    rows.to_csv(tmp_path / "rows.csv", index=False)
    status, out, _ = run(capfd, "outliers", fit, tmp_path / "rows.csv", "--top", 3)
    assert status == 0
    header, first, *_ = out.splitlines()
    assert header.split()[0] == "row"
    assert len(out.splitlines()) == 4
    assert first.split()[0] == "8"
    assert first.endswith("size = 95.5")
    _, out, _ = run(capfd, "outliers", fit, tmp_path / "rows.csv", "--json", "--top", 1)
    (line,) = json.loads(out)["rows"]
    assert (line["row"], line["column"], line["value"]) == (8, "size", "95.5")


# --- the last line: stability


def test_query_tells_on_stderr_how_far_another_seed_moves_the_answer(tmp_path, frame, post, capfd):
    table = bj.as_table(frame)
    other = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=100), table.schema)
    several = StackedPosterior([post, replace(other, reference=post.reference)], [0.5, 0.5])
    path = tmp_path / "several.nc"
    several.save(path)
    status, out, err = run(capfd, "query", path, "colour = 'red'")
    assert status == 0
    assert "seed" not in out
    assert re.fullmatch(
        r"2 structures; another seed moves this answer by less than \d+ % of its interval \(95 %\)\.\n", err
    )
    _, out, _ = run(capfd, "query", path, "colour = 'red'", "--json")
    assert int(re.search(r"than (\d+) %", err)[1]) > 0
    assert math.ceil(100 * json.loads(out)["another_seed_moves"]) == int(re.search(r"than (\d+) %", err)[1])


def test_answer_that_rounding_alone_moves_is_not_said_to_move(post, rng):
    several = StackedPosterior([post, post], [0.5, 0.5])
    answers = 1.0 - 1e-16 * rng.integers(0, 3, (several.n_chain, several.n_draw, 1))
    assert cli_query._move(several, answers) == 0.0


def test_other_commands_repeat_what_was_found_at_the_fit(tmp_path, post, capfd):
    path = tmp_path / "noted.nc"
    post.noted(stability="All is well.").save(path)
    for arguments in (("dependence", path), ("sample", path, "-o", tmp_path / "rows.csv")):
        _, out, err = run(capfd, *arguments)
        assert err.endswith("All is well.\n")
        assert "All is well" not in out
