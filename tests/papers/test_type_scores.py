"""The scripts that judge probabilities of types, on tables in miniature."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bayesjpt.table.schema import Column
from tests.papers import type_scores, type_synthetic
from tests.papers.type_data import Label, documented_tables, source_of
from tests.papers.type_scores import ALSO, KIND, STRICT, Calibration, Judged, bootstrap, by_rule, losses, ours
from tests.papers.type_weights import Example, fit_weights

QUICK = ["--draws", "2", "--tune", "2"]
COLUMN = Column("x", "category", (0.0, 2.0), labels=("a", "b"), n_distinct=3)


def seen(kind: str, label_type: str | None, rule: str, also: tuple[str, ...] = (), value: float = 1.0) -> Judged:
    features = {"count": {"big": value}, "ordinal": {}}
    return Judged(Label("x", kind, label_type, also), features, COLUMN, rule, False)


def test_fitted_weights_give_the_share_of_the_labels():
    """A single indicator with a weak prior: its weight is the log odds of the labels, shrunk a little."""
    features = {"a": {"is a": 1.0}, "b": {}}
    tables = [[Example(features, (frozenset(name),)) for name in "aaab"]] * 50
    odds = fit_weights(tables)["is a"]
    assert odds == pytest.approx(np.log(3.0), abs=0.03)


def test_tables_count_alike_however_many_columns_they_have():
    features = {"a": {"is a": 1.0}, "b": {}}
    many = [Example(features, (frozenset("a"),))] * 100
    few = [Example(features, (frozenset("b"),))]
    assert fit_weights([many, few])["is a"] == pytest.approx(0.0, abs=1e-4)


def test_also_right_types_count_as_right():
    each = seen("numeric", "count", "ordinal", ("ordinal",))
    assert (STRICT.right(each), ALSO.right(each)) == ({"count"}, {"count", "ordinal"})
    assert KIND.right_words(each) == {"numeric"}
    assert (KIND.rule(each), STRICT.rule(each)) == ("categorical", "ordinal")


def test_calibrated_rule_counts_the_other_tables_alone():
    tables = {
        "first": [seen("numeric", "count", "ordinal")],
        "second": [seen("categorical", "ordinal", "ordinal")] * 3,
        "third": [seen("categorical", "nominal", "ordinal")],
    }
    found = by_rule(tables, "first", STRICT, Calibration(1.0, False))[0]
    expected = {"ordinal": 4.0, "nominal": 2.0}
    assert found == pytest.approx([expected.get(name, 1.0) / 10.0 for name in type_scores.TYPES])


def test_tables_of_the_same_data_are_left_out_together():
    mislabelled = [seen("categorical", "ordinal", "count")] * 4
    plain = [seen("numeric", "count", "count")] * 4
    tables = {"iris": mislabelled, "iris raw": mislabelled, "other": plain, "another": plain}
    assert source_of("iris raw") == source_of("iris")
    found = ours(tables)
    assert found["iris"][0]["count"] > 0.8
    assert found["other"][0]["count"] < 0.5


def test_log_loss_is_clipped():
    assert losses([1.0, 0.0]) == pytest.approx(0.5 * np.log(1000.0))


def test_bootstrap_covers_the_mean():
    lo, hi, below = bootstrap(np.array([-0.2, -0.1, 0.1, -0.3]), 1)
    assert lo < -0.125 < hi
    assert 0.8 < below < 1.0


@pytest.fixture
def folder(tmp_path, rng):
    """Return a folder of two documented tables and a benchmark of one, with a column that is set aside."""
    size = rng.normal(5.0, 1.0, 60).round(2)
    frame = pd.DataFrame({"size": size, "n": rng.poisson(3.0, 60), "kind": ["a", "b", "c"] * 20, "id": range(60)})
    types = {"size": "positive", "n": "count", "kind": "nominal", "id": "count"}
    columns = [{"name": name, "type": own, "also": ["ordinal"]} for name, own in types.items()]
    for part in ("uci", "type_benchmark"):
        (tmp_path / part).mkdir()
    for name in ("uci/one", "uci/two", "type_benchmark/three"):
        frame.to_csv(tmp_path / f"{name}.csv.gz", index=False)
    entries = {f"uci/{name}.csv.gz": {"columns": columns} for name in ("one", "two")}
    (tmp_path / "columns.json").write_text(json.dumps({"datasets": entries}))
    kinds = {"size": "numeric", "n": "numeric", "kind": "categorical", "id": "other"}
    (tmp_path / "type_benchmark" / "labels.json").write_text(json.dumps({"three.csv.gz": kinds}))
    return tmp_path


def test_scores_are_printed_for_every_table_and_column(folder, capsys):
    assert [table.name for table in documented_tables(folder)] == ["one", "two"]
    assert type_scores.main(["--data", str(folder), *QUICK, "--weights"]) == 0
    out = capsys.readouterr().out
    assert "2 tables, 8 columns (2 set aside" in out
    assert "1 tables, 3 columns (0)" in out
    assert out.count("macro  ") == 3
    assert '"few values":' in out


def test_synthetic_tables_are_answered_in_three_ways(tmp_path, rng, capsys):
    (tmp_path / "abda_synthetic").mkdir()
    rows = np.column_stack([rng.normal(size=90), rng.gamma(2.0, size=90), rng.poisson(4.0, 90), rng.integers(0, 3, 90)])
    parts = {"train": rows[:60], "valid": rows[60:70], "test": rows[70:]}
    types = np.array(["real", "pos", "count", "cat"])
    np.savez(tmp_path / "abda_synthetic/tiny.npz", types=types, true_log_density_test=np.zeros(20), **parts)
    assert type_synthetic.main(["--data", str(tmp_path), *QUICK]) == 0
    out = capsys.readouterr().out
    for answer in type_synthetic.ANSWERS:
        assert f"{answer}: most likely type" in out
    assert "of 4 right" in out


def test_cosine_is_that_of_the_angle_to_the_true_type():
    own = type_synthetic.Answered(np.array([0.0, 0.6, 0.8, 0.0]), 2)
    assert own.cosine == pytest.approx(0.8)
    assert type_synthetic.confusion([own, own]).tolist()[2] == [0, 0, 2, 0]
