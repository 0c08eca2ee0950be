"""Experts at the command line: fitted, saved, asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from tests.test_cli import refused, run

SHORT = ["--learner", "experts", "--draws", "5", "--tune", "10", "--chains", "2", "--seed", "1", "--quiet"]


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=80).round(3), "kind": rng.choice(["u", "v"], 80)})
    frame["y"] = (np.abs(frame["a"]) + 0.1 * rng.normal(size=80)).round(3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def test_new_rows_are_predicted_from_a_saved_fit(csv, tmp_path, capfd):
    fit = tmp_path / "fit.nc"
    assert run(capfd, "fit", csv, "-o", fit, *SHORT, "--target", "y", "--depth", "1")[0] == 0
    pd.read_csv(csv).drop(columns="y").head(3).to_csv(tmp_path / "new.csv", index=False)
    status, out, _ = run(capfd, "predict", fit, tmp_path / "new.csv")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "row,mean,lower,upper"
    assert len(lines) == 4
    assert run(capfd, "predict", fit, tmp_path / "new.csv", "--draws", "2")[1] != out
    assert "'x'" in refused(capfd, "predict", fit, tmp_path / "new.csv", "--target", "x")
    assert "bayesjpt predict" in refused(capfd, "query", fit, "y > 1")


def test_series_are_predicted_one_step_ahead(csv, tmp_path, capfd):
    rows = pd.read_csv(csv).assign(
        day=pd.date_range("2024-01-01", periods=40).tolist() * 2, who=["u"] * 40 + ["v"] * 40
    )
    rows.loc[[38, 39], "y"] = np.nan
    rows.to_csv(tmp_path / "series.csv", index=False)
    fit, order = tmp_path / "fit.nc", ["--step", "day", "--series", "who"]
    own = ["--target", "y", "--given", "a", "--depth", "1"]
    assert run(capfd, "fit", tmp_path / "series.csv", "-o", fit, *SHORT, *own, *order)[0] == 0
    status, out, _ = run(capfd, "predict", fit, tmp_path / "series.csv")
    assert status == 0
    found = bj.load_experts(fit).predict(rows, interval=0.9)
    lines = [line.split(",") for line in out.splitlines()]
    assert lines[0] == ["row", "mean", "lower", "upper"]
    np.testing.assert_allclose([float(line[1]) for line in lines[1:]], found["mean"], rtol=1e-4)
    assert "'day'" in refused(capfd, "predict", fit, csv)
    # the column would be left out as running numbers, but the fit knows what it is
    pd.DataFrame({"day": rows["day"][:40], "who": "u", "a": np.arange(40)}).to_csv(tmp_path / "new.csv", index=False)
    status, out, _ = run(capfd, "predict", fit, tmp_path / "new.csv")
    assert status == 0
    assert len(out.splitlines()) == 41
    assert "--step" in refused(capfd, "fit", csv, "-o", fit, "--step", "a", "--quiet")
    assert "--step" in refused(capfd, "fit", tmp_path / "series.csv", "-o", fit, *SHORT, *own, "--series", "who")
    learner = ["--learner", "experts", "--quiet", "--method", "laplace"]
    assert "--method" in refused(capfd, "fit", tmp_path / "series.csv", "-o", fit, *learner, *own, *order)


def test_dates_of_new_steps_are_read_as_those_of_the_fit_were(tmp_path, capfd):
    days = pd.date_range("2024-03-01", periods=60)
    rows = pd.DataFrame({"day": days.strftime("%d/%m/%Y"), "a": np.tile([0.5, 1.5, 0.7], 20), "y": np.arange(60) * 0.5})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    own = ["--target", "y", "--given", "a,day", "--depth", "0", "--step", "day"]
    assert run(capfd, "fit", tmp_path / "rows.csv", "-o", tmp_path / "fit.nc", *SHORT, *own)[0] == 0
    april = rows.iloc[35:38]  # without any day beyond the twelfth
    april.to_csv(tmp_path / "new.csv", index=False)
    status, out, err = run(capfd, "predict", tmp_path / "fit.nc", tmp_path / "new.csv")
    assert status == 0
    assert "day_first" not in err
    means = [float(line.split(",")[1]) for line in out.splitlines()[1:]]
    np.testing.assert_allclose(means, april["y"], atol=2.0)
    april.drop(columns="day").to_csv(tmp_path / "new.csv", index=False)
    assert "no column 'day'" in refused(capfd, "predict", tmp_path / "fit.nc", tmp_path / "new.csv")


@pytest.mark.parametrize("order", [[], ["--step", "day"]])
def test_columns_that_are_not_in_use_may_hold_anything(csv, tmp_path, capfd, order):
    rows = pd.read_csv(csv).assign(day=np.arange(80.0), note=np.linspace(0.0, 1.0, 80))
    rows.to_csv(tmp_path / "fitted.csv", index=False)
    fit = tmp_path / "fit.nc"
    own = ["--target", "y", "--given", "a", "--depth", "1", *order]
    assert run(capfd, "fit", tmp_path / "fitted.csv", "-o", fit, *SHORT, *own)[0] == 0
    status, expected, _ = run(capfd, "predict", fit, tmp_path / "fitted.csv")
    assert status == 0
    rows.assign(kind="w", note="text").to_csv(tmp_path / "new.csv", index=False)
    assert run(capfd, "predict", fit, tmp_path / "new.csv")[:2] == (0, expected)


def test_labels_get_probabilities(csv, tmp_path, capfd):
    fit = tmp_path / "fit.nc"
    assert run(capfd, "fit", csv, "-o", fit, *SHORT, "--target", "kind", "--given", "a,y")[0] == 0
    status, out, _ = run(capfd, "predict", fit, csv)
    assert status == 0
    assert out.splitlines()[0] == "row,u,v"


def test_trees_are_fitted_by_em(csv, tmp_path, capfd):
    fit = tmp_path / "fit.nc"
    own = ["--learner", "experts", "--target", "y", "--depth", "1", "--seed", "1", "--quiet"]
    chosen = ["--method", "em", "--ridge", "0.5", "--passes", "9", "--grow"]
    assert run(capfd, "fit", csv, "-o", fit, *own, *chosen)[0] == 0
    status, out, _ = run(capfd, "predict", fit, csv)
    assert status == 0
    assert len(out.splitlines()) == 81
    assert "--method em" in refused(capfd, "fit", csv, "-o", fit, *own, "--method", "em", "--draws", "5")
    assert "--method" in refused(capfd, "fit", csv, "-o", fit, "--method", "em", "--quiet")


def test_a_constant_column_is_told_once(csv, tmp_path, capfd):
    pd.read_csv(csv).assign(same=2.5, alike="u").to_csv(csv, index=False)
    loud = [option for option in SHORT if option != "--quiet"]
    own = ["fit", csv, "-o", tmp_path / "fit.nc", *loud, "--target", "y", "--depth", "0"]
    status, _, err = run(capfd, *own)
    assert status == 0
    assert "constant columns, which say nothing about others: 'same', 'alike'" in err
    assert "single value" not in err
    status, _, err = run(capfd, *own, "--kind", "same=real")
    assert status == 0
    assert "others: 'alike'" in err
    assert "covariates with a single value are left out: same" in err


def test_a_target_without_a_name_is_refused_by_its_option(csv, tmp_path, capfd):
    for empty in ("", " , "):
        text = refused(capfd, "fit", csv, "-o", tmp_path / "fit.nc", *SHORT, "--target", empty)
        assert f"--target {empty!r}, which names no column" in text
        assert "[]" not in text


@pytest.mark.parametrize(("command", "learner"), [("fit", "expert"), ("types", "experts")])
def test_an_unknown_learner_is_told_how_experts_are_fitted(csv, tmp_path, capfd, command, learner):
    output = ["-o", tmp_path / "fit.nc"] if command == "fit" else []
    text = refused(capfd, command, csv, *output, "--learner", learner, "--quiet")
    assert f"no learner '{learner}'" in text
    assert "bayesjpt fit --learner experts" in text
    assert "function" not in text


def test_options_of_the_other_learners_are_refused(csv, tmp_path, capfd):
    fit = tmp_path / "fit.nc"
    assert "--target" in refused(capfd, "fit", csv, "-o", fit, *SHORT)
    assert "--target" in refused(capfd, "fit", csv, "-o", fit, "--target", "y", "--quiet")
    assert "--depth" in refused(capfd, "fit", csv, "-o", fit, "--depth", "0", "--quiet")
    assert "--min-rows" in refused(capfd, "fit", csv, "-o", fit, *SHORT, "--target", "y", "--min-rows", "5")
    for option, value in {
        "--structures": "4",
        "--weights": "stacking",
        "--thin": "2",
        "--prior": "abda",
        "--type-prior": "columns",
        "--sampler": "collapsed",
    }.items():
        text = refused(capfd, "fit", csv, "-o", fit, *SHORT, "--target", "y", option, value)
        assert f"{option} does not go with --learner experts" in text
    text = refused(capfd, "fit", csv, "-o", fit, *SHORT, "--target", "y", "--time", "30")
    assert "--time does not go with --learner experts; expected options of one learner" in text
    assert "no limit of time" in text
    text = refused(capfd, "fit", csv, "-o", fit, "--target", "y", "--depth", "0", "--quiet")
    assert "--target, --depth go with --learner experts alone" in text


def test_a_tree_is_shown_for_rows(csv, tmp_path, capfd):
    fit = tmp_path / "fit.nc"
    assert run(capfd, "fit", csv, "-o", fit, *SHORT, "--target", "y", "--depth", "1")[0] == 0
    status, out, _ = run(capfd, "tree", fit, csv, "--chain", "1")
    assert status == 0
    post = bj.load_experts(fit)
    assert out == f"{post.tree(pd.read_csv(csv), 1)}\n"
    assert run(capfd, "tree", fit, csv, "-o", tmp_path / "tree.svg")[0] == 0
    assert (tmp_path / "tree.svg").read_text() == f"{post.tree(pd.read_csv(csv)).to_svg()}\n"
    assert "TABLE" in refused(capfd, "tree", fit)
    ways = ["--learner", "experts", "--target", "y", "--depth", "1", "--branches", "3", "--method", "em", "--quiet"]
    assert run(capfd, "fit", csv, "-o", fit, *ways)[0] == 0
    assert len(bj.load_experts(fit).tree(pd.read_csv(csv)).data.leaves()) == 3
    assert run(capfd, "fit", csv, "-o", fit, *SHORT, "--target", "y", "--depth", "1")[0] == 0
    assert "chain=2" in refused(capfd, "tree", fit, csv, "--chain", "2")
    assert "--columns" in refused(capfd, "tree", fit, csv, "--columns", "a")
