"""Dependence and explanations on the command line; examples in every help; what the questioning commands load."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli, cli_query

HEAVY = ("pymc", "pytensor", "arviz", "sklearn", "matplotlib", "xarray", "pandas", "scipy.stats")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    colour = np.where(rng.random(120) < 0.5, "red", "white")
    size = (rng.gamma(3.0, 1.0, 120) + 6.0 * (colour == "red")).round(1)
    return pd.DataFrame({"size": size, "rings": rng.poisson(30.0, 120), "colour": colour})


@pytest.fixture(scope="module")
def post(frame) -> bj.Posterior:
    """Return an estimate and slightly different weights as two draws, with reference rows."""
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


def run(capfd, *arguments) -> tuple[int, str, str]:
    """Return (status, standard output, standard error) of the command line."""
    status = cli.run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return status, out, err


# --- dependence


def test_dependence_prints_pairs_from_the_most_dependent_on(fit, post, capfd):
    status, out, err = run(capfd, "dependence", fit)
    assert (status, err) == (0, "")
    headline, *lines = out.splitlines()
    assert headline == "mutual information in nats, 0.9 interval (2 draws)"
    assert {*lines[0].split()[-2:]} == {"size", "colour"}
    shown = [float(line.split()[0]) for line in lines]
    assert shown == sorted(shown, reverse=True)
    expected = float(post.dependence().sel(feature="size", feature_other="colour").mean())
    assert shown[0] == pytest.approx(expected, abs=6e-4)


def test_what_dependence_says_of_pairs_that_rows_do_not_show_fits_a_terminal(tmp_path, capfd, rng):
    frame = pd.DataFrame({"a": rng.normal(size=60).round(2), "b": rng.normal(size=60).round(2)})
    bj.fit(frame, n_structures=1, draws=4, tune=2, chains=1, seed=1, progress=False).save(tmp_path / "noise.nc")
    status, out, _ = run(capfd, "dependence", tmp_path / "noise.nc")
    *_, last = out.splitlines()
    assert (status, last[0]) == (0, "?")
    assert max(map(len, out.splitlines())) <= 80


def test_columns_are_named_in_quotes_where_they_hold_commas(tmp_path, capfd, rng):
    frame = pd.DataFrame({name: rng.normal(size=60).round(2) for name in ("size, in cm", "age", "other")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    bj.fit(frame, n_structures=1, draws=4, tune=2, chains=1, seed=1, progress=False).save(tmp_path / "t.nc")
    status, out, _ = run(capfd, "dependence", tmp_path / "t.nc", "--json", "--columns", '"size, in cm", age')
    assert status == 0
    assert [pair["columns"] for pair in json.loads(out)["pairs"]] == [["size, in cm", "age"]]
    few = ["--learner", "experts", "--draws", "4", "--tune", "4", "--chains", "1", "--depth", "1", "--seed", "1"]
    status, *_ = run(
        capfd,
        "fit",
        tmp_path / "t.csv",
        "-o",
        tmp_path / "e.nc",
        "-q",
        *few,
        "--target",
        '"size, in cm"',
        "--given",
        "age",
    )
    assert status == 0
    status, out, _ = run(capfd, "predict", tmp_path / "e.nc", tmp_path / "t.csv")
    assert len(out.splitlines()) == 61


def test_dependence_as_json_of_some_columns_given_an_event(fit, post, capfd):
    arguments = ("--columns", "size, colour", "--given", "size > 3", "--normalised", "--json")
    status, out, _ = run(capfd, "dependence", fit, *arguments)
    found = json.loads(out)
    assert status == 0
    assert (found["quantity"], found["given"], found["n_draw"]) == ("correlation", "size > 3", 2)
    (pair,) = found["pairs"]
    assert pair["columns"] == ["size", "colour"]
    expected = post.dependence(["size", "colour"], normalised=True, given="size > 3")
    assert pair["mean"] == pytest.approx(float(expected.sel(feature="size", feature_other="colour").mean()), abs=1e-9)
    assert pair["interval"][0] <= pair["mean"] <= pair["interval"][1]


def test_dependence_shows_as_many_pairs_as_asked(fit, capfd):
    assert len(run(capfd, "dependence", fit, "--top", 1)[1].splitlines()) == 2


# --- explanations


def test_query_explains_its_answer(fit, capfd):
    _, plain, _ = run(capfd, "query", fit, "size > 8")
    status, out, err = run(capfd, "query", fit, "size > 8", "--explain")
    assert (status, err) == (0, "")
    assert out.startswith(plain)
    told = out[len(plain) :].splitlines()
    assert told[0].startswith("Sub-populations of chain 0, draw ")
    assert "colour = 'red'" in told[1]


def test_an_explanation_as_json_adds_up_to_the_answer(fit, capfd):
    _, out, _ = run(capfd, "query", fit, "size > 8", "--explain", "--json")
    found = json.loads(out)
    parts = found["explanation"]["parts"]
    total = sum(part["weight_given"] * part["probability"] for part in parts)
    assert total == pytest.approx(found["probability"], rel=1e-9)


# --- mistakes


@pytest.mark.parametrize(
    "arguments",
    [
        ("dependence", "missing.nc"),
        ("dependence", None, "--columns", "size"),
        ("dependence", None, "--given", "size < 0 and size > 1"),
        ("dependence", None, "--interval", "0"),
        ("dependence", None, "--draws", "0"),
        ("outliers", None, "missing.csv"),
        ("tree", None),
        ("tree", None, "-o", "tree.pdf"),
        ("impute", None, "missing.csv", "-o", "filled.csv"),
        ("sample", None, "-o", "rows.csv", "--given", "size < 0 and size > 1"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments)),
)
def test_mistakes_are_one_line_and_status_2(fit, arguments, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capfd, *(fit if argument is None else argument for argument in arguments))
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("bayesjpt: ")


@pytest.mark.parametrize("command", cli_query.COMMANDS, ids=lambda command: command.__name__)
def test_help_has_an_example(command, capfd):
    status, out, _ = run(capfd, command.__name__, "--help")
    assert status == 0
    assert f"Example: bayesjpt {command.__name__}" in " ".join(out.split())


# --- what is loaded


def test_no_questioning_command_loads_a_slow_library(fit, frame, tmp_path, run_python):
    holes = frame.head(6).astype(object)
    holes.loc[0, "size"] = None
    holes.to_csv(tmp_path / "holes.csv", index=False)
    fit, folder = str(fit), str(tmp_path)
    commands = [
        ["query", fit, "size > 2", "--given", "colour = 'red'", "--explain"],
        ["dependence", fit],
        ["sample", fit, "-n", "5", "-o", f"{folder}/rows.csv"],
        ["impute", fit, f"{folder}/holes.csv", "-o", f"{folder}/filled.csv"],
        ["impute", fit, f"{folder}/holes.csv", "-o", f"{folder}/filled.csv", "--mean"],
        ["outliers", fit, f"{folder}/holes.csv"],
    ]
    program = f"""
import sys
from bayesjpt import cli
statuses = [cli.run(command) for command in {commands!r}]
print("statuses", statuses, sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    assert run_python(program).splitlines()[-1] == f"statuses {[0] * len(commands)} []"
