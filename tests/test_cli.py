"""The command line: what it prints, where, and with which status."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli
from bayesjpt.announced import announced
from bayesjpt.fitting.for_types import estimate_for_types
from bayesjpt.kernels.sweeper import Sweeper

FEW = ["--structures", "1", "--draws", "12", "--tune", "4", "--chains", "2", "--cores", "1", "--seed", "1"]


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    """Return the path of a small table with one column of each base and one identifier."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "id": np.arange(120),
            "size": rng.gamma(3.0, 1.0, 120).round(1),
            "rings": rng.poisson(30.0, 120),
            "colour": rng.choice(["red", "white"], 120),
        }
    )
    frame.loc[3, "size"] = np.nan
    path = tmp_path_factory.mktemp("tables") / "small.csv"
    frame.to_csv(path, index=False)
    return path


def run(capfd, *arguments) -> tuple[int, str, str]:
    """Return (status, standard output, standard error) of the command line."""
    status = cli.run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return status, out, err


def refused(capfd, *arguments) -> str:
    """Return the one line on standard error with which a call must end."""
    status, out, err = run(capfd, *arguments)
    assert status == 2
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("bayesjpt: ")
    assert lines[0].count("bayesjpt: ") == 1
    return lines[0]


# --- types


def test_types_prints_one_line_a_column_and_nothing_of_chains(csv, capfd):
    status, out, _ = run(capfd, "types", csv, "--seed", "1")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "small.csv: 120 rows, 4 columns, 1 missing"
    assert [line.split()[0] for line in lines[1:]] == ["column", "size", "rings", "colour", "left"]
    assert max(map(len, lines)) <= 80
    assert "left out: id, running number" in out


def test_types_in_full_adds_shares_and_convergence(csv, capfd):
    status, out, _ = run(capfd, "types", csv, "--full", *FEW)
    assert status == 0
    for word in ("because", "shares of cells", "lognormal", "Chains"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 80


def test_types_as_json_as_csv_and_as_a_frame_are_the_same_answers(csv, capfd):
    told = json.loads(run(capfd, "types", csv, "--json", "--seed", "1")[1])
    text = run(capfd, "types", csv, "--csv", "--seed", "1")[1]
    frame = pd.read_csv(io.StringIO(text), keep_default_na=False)
    assert frame["column"].tolist() == ["size", "rings", "colour", "id"]
    assert frame["type"].iloc[-1] == "left out"
    assert told["left_out"][0]["column"] == "id"
    for column, row in zip(told["columns"], frame.to_dict("records"), strict=False):
        for key in ("column", "type", "certainty", "second", "values"):
            assert column[key] == row[key]
        assert float(row["probability"]) == pytest.approx(column["probability"])
        assert "; ".join(column["look_at"]) == row["look_at"]
    table = bj.read_table(csv)
    kept = estimate_for_types(table, seed=1).types(table).to_frame()
    assert kept[["column", "type", "certainty"]].values.tolist() == frame[list(kept.columns)[:3]].values.tolist()


def test_types_as_json_in_full_have_the_documented_keys(csv, capfd):
    answer = json.loads(run(capfd, "types", csv, "--json", "--full", *FEW)[1])
    assert set(answer) == {"table", "rows", "rows_fitted", "columns", "left_out", "shares", "convergence"}
    keys = {"column", "type", "certainty", "probability", "second", "values", "look_at", "missing", "distinct"}
    assert set(answer["columns"][0]) == keys | {"probabilities", "base", "because", "reason"}
    assert answer["columns"][0]["missing"] == 1
    assert set(answer["convergence"]["quantities"]["log_likelihood"]) == {"rhat", "rhat_q95", "ess"}


def test_json_holds_null_where_a_number_does_not_exist(csv, capfd):
    _, out, _ = run(capfd, "types", csv, "--json", "--full", *FEW, "--draws", "3", "-q")
    assert "NaN" not in out
    assert json.loads(out)["shares"][0]["rhat"] is None


def test_why_tells_of_one_column_and_refuses_an_unknown_one(csv, capfd):
    _, out, _ = run(capfd, "types", csv, "--why", "rings", "--seed", "1")
    assert out.startswith("rings: ")
    assert "because" in out
    assert run(capfd, "types", csv, "--why", "id", "--seed", "1")[1].startswith("id: left out")
    assert "'rings'" in refused(capfd, "types", csv, "--why", "ring")


def test_why_tells_of_several_columns(csv, capfd):
    _, out, _ = run(capfd, "types", csv, "--why", "rings", "--why", "id", "--seed", "1")
    assert [part.partition(":")[0] for part in out.split("\n\n")] == ["rings", "id"]
    assert "'rings'" in refused(capfd, "types", csv, "--why", "rings", "--why", "ring")


def test_large_tables_are_fitted_from_some_rows_and_say_so(csv, capfd):
    _, out, _ = run(capfd, "types", csv, "--rows", "50", "--seed", "1")
    assert out.splitlines()[-1].startswith("fitted: 50 of 120 rows, drawn at random; --rows all")
    assert "fitted" not in run(capfd, "types", csv, "--rows", "all", "--quick", "--seed", "1")[1]


def test_phases_that_take_their_time_are_announced_off_a_terminal(csv, capfd, monkeypatch):
    monkeypatch.setattr("bayesjpt.announced.ANNOUNCED_SECONDS", 0.0)
    _, out, err = run(capfd, "types", csv, "--seed", "1")
    assert "..." not in out
    learning = "learning a structure; the first time compiles what it needs"
    for text in ("reading small.csv", learning, "compiling what judges columns, once", "judging the columns"):
        assert f"{text} ...\n" in err
        assert f"{text}: done in " in err


def test_a_phase_within_another_says_nothing_of_its_own(capfd, monkeypatch):
    monkeypatch.setattr("bayesjpt.announced.ANNOUNCED_SECONDS", 0.0)
    for wanted in (True, False):
        with announced("outer", wanted), announced("inner", True):
            pass
        err = capfd.readouterr().err
        assert ("inner" in err, "outer" in err) == (False, wanted)


def test_same_seed_prints_the_same_answer(csv, capfd):
    answers = [run(capfd, "types", csv, "--json", "-q", *FEW)[1] for _ in range(2)]
    assert answers[0] == answers[1]


def test_quiet_prints_nothing_on_standard_error(tmp_path, capfd):
    path = tmp_path / "constant.csv"
    path.write_text("x,y\n" + "1.5,7\n2.5,7\n0.5,7\n" * 10)
    warned = run(capfd, "types", path, *FEW)[2]
    assert "bayesjpt: constant columns" in warned
    status, out, err = run(capfd, "types", path, *FEW, "--quiet")
    assert status == 0
    assert out
    assert err == ""


def test_kind_overrides_a_decision(csv, capfd):
    _, out, _ = run(capfd, "types", csv, "--json", "-q", "--kind", "rings=real", "--kind", "colour=excluded", *FEW)
    answer = json.loads(out)
    assert {column["column"]: column["base"] for column in answer["columns"]} == {"size": "real", "rings": "real"}


# --- fit


def test_fit_writes_a_file_that_load_reads(csv, tmp_path, capfd):
    path = tmp_path / "fit.nc"
    status, out, _ = run(capfd, "fit", csv, "-o", path, *FEW)
    assert status == 0
    assert f"Wrote {path}: Posterior(2 chains x 12 draws, 3 columns" in out
    post = bj.load(path)
    assert (post.n_chain, post.n_draw) == (2, 12)
    assert post.settings["seed"] == 1
    assert post.schema.names == ("size", "rings", "colour")


@pytest.mark.parametrize("weights", ["even", "stacking"])
def test_fit_of_several_structures_writes_them_all_and_removes_its_checkpoint(csv, tmp_path, capfd, weights):
    several = ["--structures", 2, "--weights", weights, "--checkpoint", tmp_path / "kept", "--resume"]
    status, out, err = run(capfd, "fit", csv, *FEW, *several, "-o", tmp_path / "fit.nc")
    assert status == 0
    assert ("structures weighed" in err) == (weights == "stacking")
    assert "no structure is done in" in err
    wrote, sentence = out.splitlines()
    assert "StackedPosterior(" in wrote
    assert "structures" in sentence or weights == "stacking"  # of unrelated columns one structure may have all weight
    assert not (tmp_path / "kept").exists()
    assert bj.load(tmp_path / "fit.nc").n_draw == 24
    status, out, _ = run(capfd, "query", tmp_path / "fit.nc", "size > 2", "--explain")
    assert status == 0
    assert "(48 draws)" in out


def test_fit_with_a_checkpoint_removes_it_once_the_file_is_there(csv, tmp_path, capfd):
    path = tmp_path / "fit.nc"
    status, _, err = run(capfd, "fit", csv, "-o", path, "--checkpoint", tmp_path / "state", "--resume", *FEW)
    assert status == 0
    assert "nothing in" in err
    assert bj.load(path).n_draw == 12
    assert not (tmp_path / "state").exists()


def test_resumed_fit_says_from_where_and_equals_the_undisturbed_one(csv, tmp_path, capfd, monkeypatch):
    draw, done = Sweeper.draw, []

    def killed(self, *given, **how):
        if len(done) == 11:
            raise KeyboardInterrupt
        done.append(1)
        return draw(self, *given, **how)

    state = ["--checkpoint", tmp_path / "state"]
    with monkeypatch.context() as patch:
        patch.setattr(Sweeper, "draw", killed)
        assert run(capfd, "fit", csv, "-o", tmp_path / "part.nc", *state, *FEW)[0] == 0
    assert (tmp_path / "state").is_dir()
    _, _, err = run(capfd, "fit", csv, "-o", tmp_path / "resumed.nc", *state, "--resume", *FEW)
    assert "going on from sweep 11 of 32" in err
    assert "checkpoint read" in err
    run(capfd, "fit", csv, "-o", tmp_path / "whole.nc", *FEW)
    resumed, whole = bj.load(tmp_path / "resumed.nc"), bj.load(tmp_path / "whole.nc")
    assert resumed.params.theta.tobytes() == whole.params.theta.tobytes()
    assert resumed.settings == whole.settings


def test_existing_checkpoint_is_not_touched_without_resume(csv, tmp_path, capfd):
    state = tmp_path / "state"
    bj.fit(bj.read_table(csv), n_structures=1, checkpoint=state, draws=12, tune=4, chains=2, seed=1, progress=False)
    assert "--resume" in refused(capfd, "fit", csv, "-o", tmp_path / "fit.nc", "--checkpoint", state, *FEW)
    assert state.is_dir()


def test_resume_without_a_checkpoint_is_refused(csv, tmp_path, capfd):
    assert "resume without a checkpoint" in refused(capfd, "fit", csv, "-o", tmp_path / "fit.nc", "--resume", *FEW)


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        ("cutset", "--select entropy --ess 2 --min-rows 40"),
        ("cutset", "--leaf bernoulli --min-columns 2 --prune 0.2 --select entropy --subspace 0.5"),
        ("tree_mixture", "--components 2 --edges shared --ess 2"),
        ("hclt", "--states 2"),
        ("wmispn", "--bins frequency --n-bins 2 --order 3 --p-value 0.01 --penalty 0.1"),
    ],
)
def test_fit_by_learners_with_options_of_their_own(csv, tmp_path, capfd, learner, options):
    path = tmp_path / "fit.nc"
    status, _, _ = run(capfd, "fit", csv, "-o", path, "--learner", learner, *options.split(), *FEW)
    assert status == 0
    settings = bj.load(path).settings
    assert settings["learner"] == learner
    for name, value in zip(options.split()[::2], options.split()[1::2], strict=True):
        key = name[2:].replace("-", "_")
        assert str(settings[f"n_{key}" if key in ("states", "components") else key]).removesuffix(".0") == value


def test_closed_lists_of_labels_are_fitted_written_and_read_back(csv, tmp_path, capfd):
    status, out, _ = run(capfd, "schema", csv, "--closed")
    assert status == 0
    assert out.count("other = false") == 1
    (tmp_path / "schema.toml").write_text(out)
    networks = ["--learner", "cutset", "--structures", "2", "--seed", "1", "--quiet"]
    for options in (["--closed"], ["--schema", tmp_path / "schema.toml"]):
        status, _, _ = run(capfd, "fit", csv, "-o", tmp_path / "fit.nc", *networks, *options)
        assert status == 0
        colour = next(c for c in bj.load(tmp_path / "fit.nc").schema if c.name == "colour")
        assert colour.code_names == ("red", "white")
    assert "--closed beside --schema" in refused(
        capfd, "fit", csv, "-o", tmp_path / "fit.nc", "--schema", tmp_path / "schema.toml", "--closed"
    )


def test_closed_lists_of_labels_of_several_files_are_fitted(csv, tmp_path, capfd):
    (tmp_path / "files").mkdir()
    head, *lines = csv.read_text().splitlines()
    for number, part in enumerate((lines[:50], lines[50:])):
        (tmp_path / "files" / f"{number}.csv").write_text("\n".join([head, *part]) + "\n")
    networks = ["--learner", "cutset", "--structures", "2", "--seed", "1", "--quiet", "--closed"]
    status, _, err = run(capfd, "fit", tmp_path / "files", "-o", tmp_path / "fit.nc", *networks)
    assert status == 0, err
    colour = next(c for c in bj.load(tmp_path / "fit.nc").schema if c.name == "colour")
    assert colour.code_names == ("red", "white")


def test_fit_refuses_options_of_another_learner(csv, tmp_path, capfd):
    asked = ["fit", csv, "-o", tmp_path / "fit.nc"]
    text = refused(capfd, *asked, "--learner", "hclt", "--components", "2")
    assert text == "bayesjpt: --components with --learner hclt; expected one of --states"
    text = refused(capfd, *asked, "--learner", "cutset", "--states", "5")
    names = "--min-rows, --select, --leaf, --min-columns, --prune, --subspace"
    assert text == f"bayesjpt: --states with --learner cutset; expected one of {names}"
    assert "--threshold with --learner jpt" in refused(capfd, "types", csv, "--learner", "jpt", "--threshold", "0.2")
    assert "--states" in refused(capfd, *asked, "--learner", "experts", "--target", "size", "--states", "2")


@pytest.mark.parametrize(("ess", "kept"), [("drawn", "drawn"), ("bdeu:4", "BDeu(rows=4.0)")])
def test_imaginary_rows_are_drawn_or_divided_where_the_command_says_so(csv, tmp_path, capfd, ess, kept):
    lines = [line.split(",") for line in csv.read_text().splitlines()]
    at = lines[0].index("colour")
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(f"{line[at]},{line[at]}{k % 2}" if k else "a,b" for k, line in enumerate(lines)))
    asked = ["fit", labels, "-o", tmp_path / "fit.nc", "--learner", "cutset", "--structures", "2", "--quiet"]
    status, _, _ = run(capfd, *asked, "--ess", ess)
    assert status == 0
    assert bj.load(tmp_path / "fit.nc").settings["ess"] == kept
    for wrong in ("many", "bd:3", "bdeu:", "drawn:2"):
        assert f"--ess {wrong}; expected a positive number, drawn, or bdeu:ROWS" in refused(
            capfd, *asked, "--ess", wrong
        )


@pytest.mark.parametrize(("option", "value"), [("--order", "7"), ("--n-bins", "0"), ("--bins", "equal")])
def test_senseless_order_or_bins_of_splines_are_refused_by_name(csv, tmp_path, capfd, option, value):
    asked = ["fit", csv, "-o", tmp_path / "fit.nc", "--learner", "wmispn", option, value]
    assert option[2:].replace("-", "_") in refused(capfd, *asked)


def test_families_are_those_that_were_named(csv, capfd):
    _, out, _ = run(capfd, "types", csv, "--json", "--full", "-q", "--families", "gamma, poisson", *FEW)
    likelihoods = {column["column"]: set(column["likelihoods"]) for column in json.loads(out)["shares"]}
    of_labels = {"bernoulli"}  # none that was named fits them
    assert likelihoods == {"size": {"gamma"}, "rings": {"poisson"}, "colour": of_labels}


def test_quiet_fit_prints_nothing_at_all(csv, tmp_path, capfd):
    assert run(capfd, "fit", csv, "-o", tmp_path / "fit.nc", "-q", *FEW) == (0, "", "")


def test_fit_into_a_folder_that_does_not_exist_is_refused_before_sampling(csv, tmp_path, capfd):
    assert "no folder" in refused(capfd, "fit", csv, "-o", tmp_path / "nowhere" / "fit.nc")


def test_fit_onto_a_folder_is_refused_before_sampling(csv, tmp_path, capfd):
    assert "is a folder" in refused(capfd, "fit", csv, "-o", tmp_path)


def test_fit_without_output_is_refused(csv, capfd):
    assert "--output" in refused(capfd, "fit", csv)


# --- mistakes


def test_missing_file_is_refused_by_name(tmp_path, capfd):
    assert "missing.csv" in refused(capfd, "types", tmp_path / "missing.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["'bad.csv' is empty"]),
        ("x,y\n", ["0 rows"]),
        ("y\n?\nNA\n", ["no column is left", "'y': empty"]),
        ("x,y\n1.5,1\ninf,2\n", ["column 'x'", "inf", "row 2"]),
        ("x,y\n1,2\n3\n", ["data row 2", "1 cell;"]),
    ],
)
def test_bad_table_is_refused_naming_what_is_wrong(tmp_path, capfd, content, words):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    line = refused(capfd, "types", path)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threshold", "2"], ["threshold is 2.0", "0 to 1"]),
        (["--learner", "jpt", "--epsilon", "2"], ["epsilon is 2.0", "0 to 1"]),
        (["--draws", "0"], ["draws = 0"]),
        (["--tune", "-1"], ["tune = -1"]),
        (["--thin", "0"], ["thin = 0"]),
        (["--families", "gama"], ["'gama'", "'gamma'"]),
        (["--chains", "0"], ["chains = 0"]),
        (["--cores", "0"], ["cores = 0"]),
        (["--seed", "-1"], ["seed = -1"]),
        (["--min-rows", "-1"], ["min_rows is -1", "at least"]),
        (["--min-rows", "2.5"], ["min_rows", "2.5"]),
        (["--min-rows", "0"], ["min_rows"]),
        (["--prior", "flat"], ["'flat'", "default, abda"]),
        (["--sampler", "nuts"], ["'nuts'", "blocked, collapsed"]),
        (["--type-prior", "leaves"], ["'leaves'", "members, types, columns"]),
        (["--learner", "magic"], ["'magic'", "mspn"]),
        (["--rows", "few"], ["--rows few", "or all"]),
        (["--json", "--csv"], ["--json and --csv"]),
        (["--quick", "--draws", "3"], ["--quick with --draws"]),
        (["--kind", "size=colour"], ["'colour'", "category, integer, real, date, excluded, ordinal, nominal"]),
        (["--kind", "size"], ["--kind size"]),
        (["--kind", "sise=real"], ["'sise'", "'size'"]),
        (["--draws", "many"], ["--draws"]),
        (["--draw", "3"], ["--draw"]),
    ],
)
def test_bad_option_is_refused_naming_it(csv, capfd, options, words):
    line = refused(capfd, "types", csv, *options)
    for word in words:
        assert word in line


def test_unknown_command_is_refused_with_the_closest_one(capfd):
    line = refused(capfd, "typos")
    assert "typos" in line
    assert "'types'" in line


# --- the command itself


def test_version_is_the_packages(capfd):
    assert run(capfd, "--version") == (0, f"bayesjpt {bj.__version__}\n", "")


def test_no_arguments_show_the_help_with_status_2(capfd):
    status, out, _ = run(capfd)
    assert status == 2
    assert "Usage: bayesjpt" in out


@pytest.mark.parametrize("command", [[], ["types"], ["fit"]])
def test_help_has_status_0(capfd, command):
    status, out, _ = run(capfd, *command, "--help")
    assert status == 0
    assert "Usage: bayesjpt" in out


def test_module_is_the_same_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "bayesjpt", "types", str(tmp_path / "missing.csv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("bayesjpt: no file")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_cannot_be_printed_is_a_line(csv, unbuffered):
    command = [sys.executable, "-m", "bayesjpt", "schema", str(csv)]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert done.returncode == cli.USER_MISTAKE
    assert done.stderr == "bayesjpt: the output cannot be written: No space left on device\n"


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_enough_is_no_error(csv, unbuffered):
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "bayesjpt", "schema", str(csv)]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(theirs)
    assert done.returncode == 1
    assert done.stderr == ""
