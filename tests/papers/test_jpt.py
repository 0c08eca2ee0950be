"""The experiments with joint probability trees on tiny tables of the same form as the data sets."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import TableError
from bayesjpt.posterior.draws import Posterior
from tests.papers import jpt, jpt_curve, jpt_predict
from tests.papers.jpt_data import FLIGHT_KINDS, PAPER, SHARES, TABLES, curve, curve_rows, split_of

QUICK = ["--splits", "1", "--folds", "2", "--draws", "2", "--tune", "1", "--chains", "1"]
SAME_TREE = 0.02
"""Relative difference of errors between our tree and scikit-learn's: the ends of leaves have a little prior mass."""

FOUR_DEVIATIONS = 2.0
"""Of the mean of a Poisson variable with mean 10, over the 40 rows of a leaf."""


@pytest.fixture
def folder(tmp_path, rng) -> Path:
    """Return a folder of data sets in miniature: a table, flights, images of two by two pixels."""
    (tmp_path / "uci").mkdir()
    (tmp_path / "flights").mkdir()
    group = rng.integers(0, 2, 80)
    size = (3.0 * group + rng.normal(size=80)).round(2)
    pd.DataFrame({"size": size, "kind": group}).to_csv(tmp_path / "uci/things.csv.gz", index=False)
    numbers = [name for name, kind in FLIGHT_KINDS.items() if kind == "integer"]
    flights = {
        name: rng.poisson(5.0 + 9.0 * group) if name in numbers else np.array(["BOS", "SFO"])[group]
        for name in FLIGHT_KINDS
    }
    pd.DataFrame({"Year": 2015, **flights}).to_csv(tmp_path / "flights/airlines_2015.csv.gz", index=False)
    pixels = {f"pixel_{k}": rng.poisson(1.0 + 9.0 * (group == k % 2)) for k in range(4)}
    pd.DataFrame({**pixels, "class": group}).to_csv(tmp_path / "uci/digits.csv.gz", index=False)
    return tmp_path


def estimate(train, share: float, seed: int) -> Posterior:
    """Return the learner's own estimate in place of a fit."""
    return Posterior.from_circuit(bj.learn_jpt(train, np.random.default_rng(seed), min_rows=share), train.schema)


def test_printed_figures_are_there_for_every_table_and_size_of_leaf():
    assert set(PAPER) == set(TABLES)
    assert {len(rows) for rows in PAPER.values()} == {len(SHARES)}


@pytest.mark.filterwarnings("ignore:labels not seen")
def test_schema_is_decided_from_training_rows():
    frame = pd.DataFrame({"x": [str(k / 4) for k in range(40)], "g": ["a", "b"] * 19 + ["c", "c"]})
    split = split_of(frame, np.array([38, 39]))
    assert split.train.schema.columns[1].labels == ("a", "b")
    assert (split.train.n_row, split.test.n_row) == (38, 2)
    assert split.test.schema == split.train.schema


def test_tables_are_scored_at_every_size_of_leaf_without_a_row_of_likelihood_zero(folder, capsys):
    assert jpt.main(["--data", str(folder), "--parts", "tables", "--tables", "things", *QUICK]) == 0
    lines = [line for line in capsys.readouterr().out.split("\n") if "%" in line]
    assert [line.split()[0] for line in lines] == ["90%", "40%", "20%", "10%", "5%", "1%"]
    assert {line.split()[5] for line in lines} == {"0.0%"}


def test_every_table_is_fitted_sampled_saved_and_loaded(folder, capsys):
    assert jpt.main(["--data", str(folder), "--parts", "saving"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.split("\n") if ".csv" in line]
    assert [line[0] for line in lines] == sorted(path.name for path in (folder / "uci").glob("*.csv.gz"))
    assert {line[6] for line in lines} == {"0"}


def test_rows_beyond_the_training_values_are_impossible_to_the_bare_tree_alone(rng):
    frame = pd.DataFrame({"x": rng.normal(size=60).round(3).astype(str), "g": ["a", "b", "b"] * 20})
    frame.loc[len(frame)] = ["99.5", "a"]
    scores = jpt.score(split_of(frame, np.array([60])), 0.5, jpt.Settings(2, 1, 1), seed=0)
    assert scores.zero == 0.0
    assert np.isfinite(scores.test)
    assert scores.bare_zero == 1.0
    assert np.isnan(scores.bare_test)
    assert np.isfinite(scores.bare_train)


def test_curve_has_half_of_its_points_on_each_side_and_small_noise(rng):
    frame = curve_rows(rng)
    assert (frame["x"] < 0.0).sum() == 500
    noise = frame["y"] - curve(frame["x"].to_numpy())
    assert 1.5 < noise.std() < 2.0


def test_tree_judged_by_the_curve_alone_errs_as_much_as_cart():
    errors = jpt_curve.curve_errors(0.1, estimate, seed=0)
    assert errors.discriminative == pytest.approx(errors.cart, rel=SAME_TREE)


def test_trees_by_hand_have_the_leaves_of_the_learner():
    frame = curve_rows(np.random.default_rng(0))
    by_hand = jpt_curve.leaves_by_hand(frame.to_numpy(), 50, equally=False)
    table = bj.as_table(frame)
    circuit = bj.learn_jpt(table, np.random.default_rng(0), min_rows=50, assignment="soft")
    shares = np.exp(circuit.start_log_weight[circuit.child_ptr[-2] :])
    assert np.sort(shares) == pytest.approx(np.sort([len(leaf) / len(frame) for leaf in by_hand]), rel=0.02)


def test_columns_are_judged_where_they_are_observed(rng):
    table = bj.as_table(pd.DataFrame({"n": [1.5, 2.5, None, 4.5], "g": ["a", "b", "b", "a"]}))
    assert jpt_predict.judge(table, 0, np.array([1.5, 3.5, 0.0, 4.5])) == {"MAE": pytest.approx(1.0 / 3.0)}
    scores = jpt_predict.judge(table, 1, np.array([0.0, 1.0, 1.0, 1.0]))
    assert scores == {"micro F1": pytest.approx(0.75), "macro F1": pytest.approx((2.0 / 3.0 + 0.8) / 2.0)}


def test_flights_are_predicted_column_by_column(folder, capsys):
    assert jpt.main(["--data", str(folder), "--parts", "flights", "--flights", "airlines_2015", *QUICK]) == 0
    text = capsys.readouterr().out
    for name, kind in FLIGHT_KINDS.items():
        assert (f"{name}, MAE" in text) == (kind == "integer")
        assert (f"{name}, macro F1" in text) == (kind == "category")


def test_digits_are_the_expectations_of_leaves(folder):
    frame = pd.read_csv(folder / "uci/digits.csv.gz", dtype=str)
    clusters = jpt_predict.digit_clusters(frame, partial(jpt.fit, settings=jpt.Settings(20, 10, 1)), min_rows=30)
    assert len(clusters) == 2
    assert sum(cluster.probability for cluster in clusters) == pytest.approx(1.0)
    assert {cluster.digit for cluster in clusters} == {"0", "1"}
    for cluster in clusters:
        pixels = frame[frame["class"] == cluster.digit].iloc[:, :4].astype(float)
        np.testing.assert_allclose(cluster.pixels, pixels.mean(), atol=FOUR_DEVIATIONS)


def test_picture_of_the_digits_is_written(folder, capsys):
    picture = folder / "digits.svg"
    assert jpt.main(["--data", str(folder), "--parts", "digits", "--picture", str(picture), *QUICK]) == 0
    assert picture.read_text().count("<image") == capsys.readouterr().out.count("  probability")


def test_missing_table_is_named(folder):
    with pytest.raises(TableError, match="'nowhere'"):
        jpt.main(["--data", str(folder), "--parts", "tables", "--tables", "nowhere", *QUICK])
