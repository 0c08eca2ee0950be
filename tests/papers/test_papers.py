"""The scripts on tiny tables of the same form as the data sets, and on the data sets where they are at hand."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import TableError
from bayesjpt.families import registry
from tests import naive
from tests.papers import abda, cell_scores, lace_peer, structures, transductive, type_data, types
from tests.papers.abda_data import our_tables, paper_schema, read_data, under_schema

ARITHMETIC = 1e-9

SHORT = {"n_structures": 1, "draws": 4, "tune": 4, "chains": 1, "progress": False}
"""Relative error allowed between the kernels' densities and the recursion's."""

DATA = os.environ.get("BAYESJPT_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="BAYESJPT_DATA does not name the folder of the data sets")

TINY = abda.Settings(min_rows=60, tune=5, draws=8)
TINY_TYPES = types.Settings()


def draw_rows(n_row: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of a continuous non-negative, a continuous, and a discrete column; two groups, some missing cells."""
    group = rng.integers(0, 2, n_row)
    rows = np.column_stack([rng.gamma(2.0 + 8.0 * group), rng.normal(5.0 * group, 1.0), rng.poisson(3.0 + 9.0 * group)])
    rows[:5, 1] = np.nan
    return rows.round(2)


@pytest.fixture
def folder(tmp_path, rng) -> Path:
    """Return a folder of data sets in miniature."""
    for name in ("abda", "abda_synthetic", "uci", "type_benchmark"):
        (tmp_path / name).mkdir()
    parts = {"train": draw_rows(120, rng), "valid": draw_rows(17, rng), "test": draw_rows(30, rng)}
    whole = np.concatenate(list(parts.values()))
    whole = np.column_stack([whole, rng.integers(0, 3, len(whole))])
    masks = {}
    for share in transductive.SHARES:
        hidden = rng.random(whole.shape) < float(share)
        kept = hidden & (rng.random(whole.shape) < 0.2)
        masks |= {f"mask_{share}_1111": np.packbits(hidden), f"maskval_{share}_1111": np.packbits(kept)}
    np.savez(tmp_path / "abda/tiny.npz", meta_type=np.array([1, 1, 3]), **parts)
    np.savez(tmp_path / "abda/holes.npz", X=whole, meta_type=np.array([1, 1, 3, 3]), **masks)
    np.savez(
        tmp_path / "abda_synthetic/made.npz",
        types=np.array(["pos", "real", "count"]),
        true_log_density_test=np.full(30, -4.5),
        **parts,
    )
    frame = pd.DataFrame(
        {
            "record": rng.permutation(5000)[:80],
            "weight": rng.gamma(3.0, size=80).round(2),
            "color": rng.choice(["red", "green", "blue", "?"], 80),
            "flag": rng.integers(0, 2, 80),
        }
    )
    frame.to_csv(tmp_path / "uci/things.csv.gz", index=False)
    frame.to_csv(tmp_path / "type_benchmark/things.csv.gz", index=False)
    known = [("record", "nominal"), ("weight", "positive"), ("color", "nominal"), ("flag", "binary")]
    columns = [{"name": name, "type": kind} for name, kind in known]
    datasets = {
        "uci/things.csv.gz": {"missing": "?", "columns": columns},
        "uci/things_test.csv.gz": {"columns_as": "uci/things.csv.gz"},
        "uci/gone.csv.gz": {"columns": [{"name": "x", "type": "real"}]},
        "mspn/other.csv.gz": {"columns": columns},
        "abda/holes.npz": {"columns_named_as": "raw", "column_names": ["size", "shift", "n", "color"]},
        "raw": {
            "columns": [
                {"name": name, "type": kind}
                for name, kind in (("color", "nominal"), ("size", "positive"), ("shift", "real"), ("n", "count"))
            ]
        },
    }
    (tmp_path / "columns.json").write_text(json.dumps({"datasets": datasets}))
    labels = {"things.csv.gz": {"weight": "numeric", "color": "categorical", "flag": "categorical"}}
    (tmp_path / "type_benchmark/labels.json").write_text(json.dumps(labels))
    return tmp_path


def test_read_data_takes_the_split_and_who_is_discrete(folder):
    data = read_data(folder, "tiny")
    assert data.train.shape == (120, 3)
    assert data.test.shape == (30, 3)
    assert data.n_row == 167
    assert data.discrete.tolist() == [False, False, True]
    assert data.true_density is None


def test_synthetic_table_carries_its_true_density(folder):
    data = read_data(folder, "made")
    assert data.true_density == pytest.approx(-4.5)
    assert data.discrete.tolist() == [False, False, True]


def test_unknown_table_is_named(folder):
    with pytest.raises(TableError, match="'nowhere'"):
        abda.main(["--data", str(folder), "--table", "nowhere"])


def test_paper_schema_offers_the_dictionary_of_the_paper():
    train = np.column_stack([np.linspace(0.0, 3.0, 60), np.linspace(-1.0, 1.0, 60), np.arange(60.0)])
    schema = paper_schema(train, np.array([False, False, True]))
    offered = [[family.name for family in registry.dictionary(column)] for column in schema]
    assert offered == [["normal", "gamma", "exponential"], ["normal"], ["poisson", "geometric", "categorical"]]
    assert schema.columns[2].levels == tuple(range(60))


def test_paper_schema_keeps_stored_small_values_apart_from_the_cell_of_zero():
    schema = paper_schema(np.array([[1e-6], [2.0], [7.0]]), np.array([False]))
    assert schema.columns[0].resolution / 2.0 < 1e-6


def test_our_tables_keep_columns_that_the_reader_would_set_aside(folder):
    data = read_data(folder, "tiny")
    parts = [np.column_stack([rows, np.arange(len(rows))]) for rows in (data.train, data.test)]
    numbered = replace(data, train=parts[0], test=parts[1], discrete=np.append(data.discrete, True))
    assert bj.as_table(pd.DataFrame(parts[0], columns=list("abcd"))).names == ("a", "b", "c")
    train, test = our_tables(numbered)
    assert train.names == test.names == ("x0", "x1", "x2", "x3")


@pytest.mark.parametrize("prior", ["abda", "default"])
def test_no_test_row_is_impossible_even_with_codes_and_signs_that_training_lacks(folder, prior):
    data = read_data(folder, "tiny")
    test = data.test.copy()
    test[0] = [100.0, -50.0, 90.0]
    if prior == "abda":
        schema = paper_schema(data.train, data.discrete)
        train = under_schema(schema, data.train)
    else:
        train, _ = our_tables(data)
    scores = abda.fit_and_score(train, under_schema(train.schema, test), prior, TINY, seed=0)
    assert scores.n_impossible == 0
    assert np.isfinite(scores.mean_of_log)


def test_scored_density_is_that_of_the_definition(folder):
    data = read_data(folder, "tiny")
    schema = paper_schema(data.train, data.discrete)
    train, test = under_schema(schema, data.train), under_schema(schema, data.test)
    post = bj.fit(train, min_rows=60, seed=3, prior="abda", **SHORT)
    flat = post.flat()
    expected = [
        [
            naive.log_value(
                post.circuit, schema, type(flat)(w, theta), test.values[:, row], test.observed[:, row].astype(bool)
            )
            for row in range(test.n_row)
        ]
        for w, theta in zip(flat.log_weight, flat.theta, strict=True)
    ]
    assert abda.score(post, test).mean_of_log == pytest.approx(np.mean(expected), rel=ARITHMETIC)


def test_effective_sample_size_per_draw_tells_a_sluggish_chain_from_an_independent_one(rng):
    noise = rng.normal(size=(2, 400))
    sluggish = np.repeat(rng.normal(size=(2, 20)), 20, axis=1)
    constant = np.ones((2, 400))
    independent, slow = abda.ess_per_draw(np.stack([noise, sluggish, constant], axis=-1))
    assert independent > 0.7
    assert slow < 0.2


def test_rhat_needs_two_chains_and_sees_that_they_differ(rng):
    draws = rng.normal(size=(2, 200, 1)) + np.array([0.0, 5.0])[:, None, None]
    assert abda.rhat(draws[:1]).size == 0
    assert abda.rhat(draws)[0] > 1.5


def test_density_script_prints_both_readings_and_the_truth(folder, capsys):
    arguments = ["--data", str(folder), "--table", "made", "--seeds", "2", "--sweeps", "10", "--min-rows", "60"]
    assert abda.main(arguments) == 0
    text = capsys.readouterr().out
    assert "rows left out: none (5 missing test cells, marginalised)" in text
    assert text.count("median ") >= 2
    assert "R-hat over chains" in text
    assert "-4.500" in text


def test_masks_say_what_is_hidden_and_what_is_scored(folder):
    data = transductive.read_masked(folder, "holes", "0.1")
    with np.load(folder / "abda/holes.npz") as arrays:
        hidden = np.unpackbits(arrays["mask_0.1_1111"])[: data.values.size].reshape(data.values.shape)
        kept = np.unpackbits(arrays["maskval_0.1_1111"])[: data.values.size].reshape(data.values.shape)
    known = ~np.isnan(data.values)
    assert (data.hidden == (hidden == 1)).all()
    assert (data.scored == ((hidden == 1) & (kept == 0) & known)).all()
    assert data.nominal.tolist() == [False, False, False, True]
    assert (np.isnan(data.train) == (data.hidden | ~known)).all()


def test_unknown_mask_is_told(folder):
    with pytest.raises(TableError, match=r"no mask of 0\.1"):
        abda.main(["--data", str(folder), "--table", "tiny", "--transductive"])


def test_cell_scores_are_those_of_the_definition(folder):
    data = transductive.read_masked(folder, "holes", "0.5")
    seen, whole = transductive.readings(data)["abda"]
    post = bj.fit(seen, min_rows=60, seed=3, prior="abda", **SHORT)
    rows, columns = np.nonzero(data.scored)
    few = np.zeros_like(data.scored)
    few[rows[:6], columns[:6]] = True
    score = cell_scores.by_verb(post.log_density, whole.schema)
    found = cell_scores.score_cells(score, whole.values, seen.observed, few)
    flat = post.flat()
    marginal, conditional = [], []
    for row, column in zip(rows[:6], columns[:6], strict=True):
        alone = np.arange(whole.n_column) == column
        given = seen.observed[:, row].astype(bool)
        for weights, theta in zip(flat.log_weight, flat.theta, strict=True):
            params = type(flat)(weights, theta)
            one, both, rest = (
                naive.log_value(post.circuit, whole.schema, params, whole.values[:, row], observed)
                for observed in (alone, alone | given, given)
            )
            marginal.append(one)
            conditional.append(both - rest)
    assert found.n_cell == 6
    assert found.marginal == pytest.approx(np.mean(marginal), rel=ARITHMETIC)
    assert found.conditional == pytest.approx(np.mean(conditional), rel=ARITHMETIC)


def test_imputation_is_judged_in_standard_deviations_and_by_right_codes():
    values = np.array([[0.0, 1.0], [2.0, 2.0], [0.0, 0.0], [2.0, 1.0]])
    hidden = np.ones_like(values, bool)
    data = transductive.Masked(
        "t", "0.5", values, hidden, hidden, np.array([False, True]), np.array([False, True]), True
    )
    errors = transductive.judge(data, values + np.array([0.5, 0.0]))
    assert errors.error == pytest.approx(0.5)
    assert errors.accuracy == pytest.approx(1.0)
    assert transductive.judge(data, values + np.array([0.0, 1.0])).accuracy == pytest.approx(0.0)


def test_posterior_imputes_expectations_and_most_probable_codes(folder):
    data = transductive.read_masked(folder, "holes", "0.1")
    for prior, (seen, _) in transductive.readings(data).items():
        post = bj.fit(seen, min_rows=60, seed=3, prior=prior, **SHORT)
        filled = transductive.impute_by_posterior(post, data, seen)
        known = ~np.isnan(data.train)
        assert (filled[known] == data.train[known]).all()
        assert np.isin(filled[:, 3], [0.0, 1.0, 2.0]).all()
        assert transductive.judge(data, filled).error < 1.0


def test_transductive_script_prints_scores_errors_and_what_is_left_out(folder, capsys):
    arguments = ["--data", str(folder), "--table", "holes", "--transductive", "--hidden", "0.1"]
    assert abda.main([*arguments, "--seeds", "1", "--sweeps", "8", "--min-rows", "60"]) == 0
    text = capsys.readouterr().out
    assert "rows left out: none" in text
    assert "KNNImputer" in text
    assert "IterativeImputer" in text
    assert "Nominal: x3 (documented types)" in text


def test_peer_scores_and_fills_in_the_hidden_cells(folder, capsys, monkeypatch):
    data = transductive.read_masked(folder, "holes", "0.1")
    normal, count, label = [[5.0, 4.0]], [[8.0]], [[0.2, 0.3, 0.5]]
    view = {"columns": [0, 1, 2, 3], "weights": [1.0], "parameters": [normal, normal, count, label]}
    kinds = {"0": "Continuous", "1": "Continuous", "2": "Count", "3": "Categorical"}
    fit = lace_peer.read_lace({"kinds": kinds, "states": [[view]], "processor_seconds": 0.5})
    widths, log_width = transductive.fixed_widths(data, transductive.readings(data)["default"][1].schema)
    score = cell_scores.by_lace(fit, widths)
    found = cell_scores.score_cells(score, data.values.T, ~np.isnan(data.train.T), data.scored)
    assert found.conditional == pytest.approx(found.marginal, rel=ARITHMETIC)  # one component: nothing to learn from
    labels = data.values[data.scored[:, 3], 3].astype(int)
    only = np.arange(4) == 3
    of_labels = cell_scores.score_cells(score, data.values.T, ~np.isnan(data.train.T), data.scored & only)
    assert of_labels.marginal == pytest.approx(np.log(np.array(label[0])[labels]).mean(), rel=ARITHMETIC)
    monkeypatch.setattr(lace_peer, "fit_lace", lambda data, settings, seed: fit)
    arguments = ["--data", str(folder), "--table", "holes", "--transductive", "--hidden", "0.1", "--seeds", "1"]
    assert abda.main([*arguments, "--sweeps", "8", "--min-rows", "60", "--lace-python", "python"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ lace")]
    assert f"{found.conditional_of_mean - log_width:.3f}" in lines[0]
    assert f"{np.mean(labels == 2):.3f}" in lines[1]


def test_transductive_verdict_compares_medians_with_the_targets():
    empty = np.zeros((1, 1), bool)
    data = transductive.Masked("abalone", "0.1", empty * 1.0, empty, empty, empty[0], empty[0], True)
    scores = [cell_scores.CellScores(value, 0.1, value, 0.1, 1, 0) for value in (-1.0, 0.0, 1.0)]
    lines = transductive.verdict(data, scores).splitlines()
    assert lines[0].endswith("0.000, reached")
    assert lines[1].endswith("0.100, MISSED")


def test_verdict_compares_the_median_with_the_target(folder):
    data = abda.Data("abalone", *(np.empty((0, 1)) for _ in range(3)), np.array([False]))
    empty = np.empty(0)
    scores = [abda.Scores(1, value, (value,), value, value, 0, empty, empty, empty) for value in (1.0, 1.7, 1.8)]
    assert abda.verdict(data, scores).endswith("1.700, reached")
    assert abda.verdict(data, scores[:2]).endswith("1.350, MISSED")


def test_raw_tables_leave_duplicates_and_other_folders_out(folder):
    assert [table.name for table in type_data.uci_tables(folder)] == ["things", "gone"]


def test_simple_rules_use_dtype_and_distinct_values(folder):
    things = type_data.uci_tables(folder)[0]
    rules = type_data.simple_rules(things)
    assert rules["dtype"] == {"record": "numeric", "weight": "numeric", "color": "categorical", "flag": "numeric"}
    assert rules["distinct"] == {
        "record": "numeric",
        "weight": "numeric",
        "color": "categorical",
        "flag": "categorical",
    }


def test_simple_types_carry_the_rule_on(folder):
    things = type_data.uci_tables(folder)[0]
    expected = {"record": "count", "weight": "positive", "color": "nominal", "flag": "binary"}
    assert type_data.simple_types(things) == expected


def test_verdicts_hold_strict_lenient_and_kind(folder):
    things = type_data.uci_tables(folder)[0]
    verdicts, note = types.judge(things, TINY_TYPES)
    by_name = {one.column: one for one in verdicts}
    assert "80 rows" in note
    assert by_name["color"].right["strict"]
    assert by_name["flag"].right["kind"]
    assert by_name["weight"].answer.kind == "numeric"
    assert by_name["weight"].right["strict"] == (by_name["weight"].answer.type == "positive")


def test_lenient_accepts_what_is_defensible(folder):
    things = type_data.uci_tables(folder)[0]
    label = type_data.Label("flag", "categorical", "ordinal", ("binary",))
    verdicts, _ = types.judge(type_data.LabelledTable("things", things.path, (label,)), TINY_TYPES)
    assert verdicts[0].right["lenient"]
    assert not verdicts[0].right["strict"]


def test_column_that_is_set_aside_is_of_kind_other(folder):
    path = folder / "type_benchmark/notes.csv"
    path.write_text("note,size\n" + "".join(f"text number {k},{k % 3}\n" for k in range(60)))
    labels = (type_data.Label("note", "other"),)
    verdicts, _ = types.judge(type_data.LabelledTable("notes", path, labels), TINY_TYPES)
    assert verdicts[0].answer.type == types.SET_ASIDE
    assert verdicts[0].right["kind"]


def test_table_that_fails_is_reported_and_wrong(folder):
    path = folder / "uci/ragged.csv"
    path.write_text("a,b\n1,2\n3\n")
    labels = (type_data.Label("a", "numeric", "count"),)
    verdicts, note = types.judge(type_data.LabelledTable("ragged", path, labels), TINY_TYPES)
    assert note.startswith("failed: data row 2 of 'ragged.csv' has 1 cell;")
    assert not any(verdicts[0].right[measure] for measure in ("strict", "lenient", "kind"))


def test_fault_that_is_no_error_of_ours_is_reported_with_its_class(folder, monkeypatch):
    def broken(path, settings):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(types, "answer_types", broken)
    verdicts, note = types.judge(type_data.uci_tables(folder)[0], TINY_TYPES)
    assert note == "failed with RuntimeError: two lines"
    assert not any(one.right["kind"] for one in verdicts)


def test_rows_of_the_fit_are_capped_and_the_note_says_so(folder):
    things = type_data.uci_tables(folder)[0]
    settings = types.Settings(max_rows=50)
    assert types.answer_types(things.path, settings)[1].startswith("80 rows, 50 of them fitted")


def test_macro_weighs_tables_and_micro_columns():
    def verdict(right: bool) -> types.Verdict:
        return types.Verdict("t", "c", "real", types.Answer("real", "numeric", ""), {"kind": right})

    by_table = [[verdict(True)], [verdict(False), verdict(False), verdict(True)]]
    assert types.macro(by_table, "kind") == pytest.approx(2.0 / 3.0)
    assert types.accuracy([one for part in by_table for one in part], "kind") == pytest.approx(0.5)


def test_types_script_goes_on_after_a_failing_table(folder, capsys):
    assert types.main(["--data", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "failed: no file" in text
    assert text.count("macro, tables") == 2


@needs_data
@pytest.mark.parametrize("name", sorted(abda.TARGETS))
def test_target_is_reached_with_one_structure(name):
    data = read_data(DATA, name)
    schema = paper_schema(data.train, data.discrete)
    settings = abda.Settings(abda.MIN_ROWS[name], tune=75, draws=75)
    train, test = under_schema(schema, data.train), under_schema(schema, data.test)
    measure, target = abda.TARGETS[name]
    scores = abda.fit_and_score(train, test, "abda", settings, seed=0)
    assert scores.n_impossible == 0
    assert getattr(scores, measure.replace(" ", "_")) >= target


@needs_data
def test_rule_of_twenty_distinct_values_scores_as_published():
    right = []
    for table in type_data.type_benchmark_tables(DATA):
        kinds = type_data.simple_rules(table)["distinct"]
        right.append([kinds[label.column] == label.kind for label in table.labels if label.kind != "other"])
    assert np.mean([np.mean(part) for part in right]) == pytest.approx(0.950, abs=5e-4)
    assert np.mean(np.concatenate(right)) == pytest.approx(0.968, abs=5e-4)
    assert sum(map(len, right)) == 95


@needs_data
def test_raw_table_with_missing_tokens_is_read_by_itself():
    tables = {table.name: table for table in type_data.uci_tables(DATA)}
    table = bj.read_table(tables["breast_wisconsin"].path)
    assert table.schema.columns[table.schema.index("bare_nuclei")].n_missing == 16


def test_several_structures_are_compared_with_one(folder, capsys):
    asked = ["--tables", "tiny", "--structures", "1", "2", "--tune", "5", "--draws", "8"]
    assert structures.main(["--data", str(folder), *asked]) == 0
    _, one, two = capsys.readouterr().out.splitlines()
    assert one.split()[:2] == ["tiny", "1"]
    assert float(one.split()[3]) == 0.0
    assert two.split()[:2] == ["tiny", "2"]
    assert np.isfinite(float(two.split()[2]))
