"""Comparing two tables: alike halves are alike, planted differences are found and told, nothing is lost on the way."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli
from bayesjpt.errors import SamplingError, SchemaError, TableError

START = pd.Timestamp("2024-01-01")


def made(rng: np.random.Generator, n: int) -> pd.DataFrame:
    kind = rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.3, 0.2])
    size = (rng.gamma(3.0, 10.0, n) + 20.0 * (kind == "pro")).round(1)
    size[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "kind": kind,
            "size": size,
            "rings": rng.poisson(9.0, n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        }
    )


def test_halves_of_one_table_are_alike(rng):
    frame = made(rng, 1200)
    found = bj.compare(frame.iloc[:600], frame.iloc[600:])
    assert found.differing == ()
    assert found.together < 0.5
    assert found.parts == ()
    assert "The columns are alike." in repr(found)


@pytest.mark.parametrize("columns", [["kind", "size", "rings", "day"], ["kind", "rings"]])
def test_the_same_rows_in_any_order_do_not_differ(rng, columns):
    frame = made(rng, 180)[columns]
    found = bj.compare(frame, frame.sample(frac=1.0, random_state=1))
    assert (found.differing, found.together, found.n_copied) == ((), 0.0, 180)
    assert "Both hold the same rows." in repr(found)


def test_copies_of_rows_are_no_difference(rng):
    frame = made(rng, 400)
    found = bj.compare(frame.iloc[:300], frame.iloc[100:])
    assert found.together < 0.5
    assert 195 <= found.n_copied <= 200
    assert "rows are in both" in " ".join(repr(found).split())


@pytest.mark.filterwarnings("ignore:constant columns")
def test_one_value_in_both_is_no_difference(rng):
    frames = [pd.DataFrame({"x": rng.normal(size=n), "land": "DE", "year": 2020}) for n in (60, 20)]
    found = bj.compare(*frames)
    assert [(found[name].probability, found[name].size, found[name].verdict) for name in ("land", "year")] == [
        (0.0, 0.0, "alike")
    ] * 2
    assert bj.compare(frames[0], frames[1].assign(land="AT"))["land"].verdict == "differs"


def test_each_planted_difference_is_found_and_told(rng):
    first, second = made(rng, 600), made(rng, 600)
    second["rings"] += 3
    second.loc[second["kind"] == "basic", "kind"] = rng.choice(["basic", "new"], (second["kind"] == "basic").sum())
    second.loc[rng.random(600) < 0.3, "size"] = np.nan
    second["day"] += pd.Timedelta(200, "D")
    found = bj.compare(first, second)
    assert set(found.differing) == {"kind", "size", "rings", "day"}
    assert found["size"].probability < 0.95 < found["size"].missing
    assert "missing 9 % -> 38 %" in found["size"].words
    assert "new 0 % ->" in found["kind"].words
    assert found["day"].words.startswith("half 2024-")
    assert found["rings"].size > 0.3
    assert found.together > 0.99
    assert found.parts


def test_rows_differ_at_least_as_surely_as_a_column(rng):
    one, other = (pd.DataFrame({c: rng.normal(m * (c == "y"), 1.0, 150) for c in "uvwxy"}) for m in (0.0, 0.8))
    found = bj.compare(one, other)
    assert found.differing == ("y",)
    assert found.together is not None
    assert found.together >= found["y"].probability


def test_what_hangs_together_is_found_where_no_column_differs(rng):
    one = pd.DataFrame(rng.normal(size=(600, 2)), columns=["u", "v"])
    other = pd.DataFrame(rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], 600), columns=["u", "v"])
    found = bj.compare(one, other)
    assert found.differing == ()
    assert found.together > 0.99
    assert "what hangs together does" in " ".join(repr(found).split())
    assert all("u" in part.event and "v" in part.event for part in found.parts)
    part = found.parts[0]
    share = len(other.query(part.event.replace(" = ", " == "))) / len(other)
    assert part.second[1] - 0.05 < share < part.second[2] + 0.05


def test_columns_of_one_table_alone_are_told_and_unreadable_ones_left_out(rng):
    first, second = made(rng, 100), made(rng, 100)
    first["old"], second["fresh"] = 1.5, 2.5
    for frame in (first, second):
        frame["note"] = [f"a text {k}" for k in range(100)]
    with pytest.warns(bj.BayesjptWarning):
        found = bj.compare(first, second, names=("a.csv", "b.csv"))
    assert (found.only_first, found.only_second, found.left_out) == (("old",), ("fresh",), ("note",))
    text = repr(found)
    assert "only in a.csv: old" in text
    assert f"not compared: note ({found.reasons[0]})" in " ".join(text.split())
    assert "not compared: note (" in found._repr_html_()
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.filterwarnings("ignore:constant columns")
@pytest.mark.parametrize("name", ["kind", "size", "day"])
@pytest.mark.parametrize("n_kept", [0, 1])
def test_column_that_one_table_lost_differs_by_its_missing_cells(rng, name, n_kept):
    first, second = made(rng, 100), made(rng, 100)
    second[name] = second[name].where(np.arange(100) < n_kept)
    for found in (bj.compare(first, second), bj.compare(second, first)):
        assert found[name].missing > 0.99
        assert found[name].verdict == "differs"
        assert "missing" in found[name].words
        assert found.left_out == ()
        assert "1 column differs" in repr(found)


def test_reasons_name_the_table_that_has_them(rng):
    first, second = made(rng, 100), made(rng, 100)
    first["note"], second["note"] = [f"a text {k}" for k in range(100)], None
    first["none"] = second["none"] = None
    found = bj.compare(first, second, names=("a.csv", "b.csv"))
    assert found.left_out == ("none", "note")
    assert found.reasons[0] == "empty: no value in 100 rows"
    assert found.reasons[1].startswith("in a.csv ")
    assert found.reasons[1].endswith("; in b.csv empty: no value in 100 rows")


def test_numbers_that_a_few_rows_made_labels_are_compared_as_numbers(rng):
    first = pd.DataFrame({"age": rng.integers(18, 80, 300), "x": rng.normal(size=300)})
    found = bj.compare(bj.as_table(first), bj.as_table(first.iloc[:2], kinds={"age": "category", "x": "real"}))
    assert "0 %" not in found["age"].words
    assert found["age"].verdict != "differs"


ANSWERS = {
    "bool": [False, True],
    "0 and 1": [0, 1],
    "0. and 1.": [0.0, 1.0],
    "texts of 0 and 1": ["0", "1"],
    "True": ["False", "True"],
    "true": ["false", "true"],
    "yes": ["no", "yes"],
    "ja": ["nein", "ja"],
}


@pytest.mark.parametrize("one", ANSWERS)
@pytest.mark.parametrize("other", ["bool", "0 and 1", "yes"])
def test_answers_are_alike_however_they_are_spelled(one, other):
    first, second = (pd.DataFrame({"x": values * 50, "k": range(100)}) for values in (ANSWERS[one], ANSWERS[other]))
    found = bj.compare(first, second)
    assert found["x"].verdict == "alike"
    assert found["x"].size == 0.0
    mostly_yes = pd.DataFrame({"x": ANSWERS[other][:1] * 20 + ANSWERS[other][1:] * 80, "k": range(100)})
    assert bj.compare(first, mostly_yes)["x"].verdict == "differs"
    assert bj.compare(first, mostly_yes)["x"].size == pytest.approx(0.3)


@pytest.mark.filterwarnings("ignore:constant columns")
@pytest.mark.parametrize("one", [[True], ["yes"], [1]])
@pytest.mark.parametrize("other", [[False, True], ["no", "yes"], [0, 1]])
def test_single_answer_is_that_of_the_other_table(one, other):
    first, second = (pd.DataFrame({"x": values * (100 // len(values)), "k": range(100)}) for values in (one, other))
    assert bj.compare(first, second)["x"].size == 0.5


def test_labels_that_are_no_answers_stay_what_they_are():
    first, second = (pd.DataFrame({"x": values * 50, "k": range(100)}) for values in (["red", "no"], [0, 1]))
    assert bj.compare(first, second)["x"].size == 1.0


ROUNDED = {
    "digits": (lambda x: x.round(1), lambda x: x.round(3), "recorded to 0.1 / 0.001"),
    "all digits": (lambda x: x, lambda x: x.round(1), "recorded to all digits / 0.1"),
    "tens": (lambda x: (x * 100.0).round(-1), lambda x: (x * 100.0).round(0), "recorded to 10 / 1"),
    "halves to even": (lambda x: (x * 8.0).round(0), lambda x: (x * 80.0).round(0) / 10.0, "recorded to 1 / 0.1"),
    "halves up": (lambda x: np.floor(np.round(x * 20.0) / 2.0 + 0.5), lambda x: np.round(x * 20.0) / 2.0,
                  "recorded to 1 / 0.5"),
    "cut off": (lambda x: np.floor(5.0 * abs(x)), lambda x: (5.0 * abs(x)).round(2), "recorded to 1 / 0.01"),
    "dates": (lambda x: (START + pd.to_timedelta(200.0 * x, "D")).floor("D"),
              lambda x: (START + pd.to_timedelta(200.0 * x, "D")).floor("min"), "recorded to the day / the minute"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_same_quantity_at_other_digits_is_alike_and_told(rng, name):
    one, other, words = ROUNDED[name]
    first, second = pd.DataFrame({"x": one(rng.normal(size=400))}), pd.DataFrame({"x": other(rng.normal(size=400))})
    found = bj.compare(first, second)
    assert found["x"].verdict == "alike"
    assert found["x"].words == words
    assert found.together < 0.5
    text = " ".join(repr(found).split())
    assert "The columns are alike, but for the digits to which they were recorded." in text
    assert f"x: {words}, compared at " in text
    assert found["x"].rounding in html.unescape(found._repr_html_())
    words = words.removeprefix("recorded to ").split(" / ")
    assert bj.compare(second, first)["x"].words == f"recorded to {words[1]} / {words[0]}"


@pytest.mark.parametrize("seed", range(3))
def test_a_table_whose_gaps_were_filled_differs_in_nothing_but_these(seed):
    """Of many labels each half of the rows holds others: those of one half would tell the tables apart in the other."""
    n, rng = 90, np.random.default_rng(2)
    day = np.where(rng.random(n) < 0.2, "no day", [f"day {k}" for k in rng.integers(0, 300, n)])
    frame = pd.DataFrame({"day": day, "size": rng.normal(size=n).round(2)})
    frame["note"] = np.where(rng.random(n) < 0.36, None, rng.choice(["good", "bad", "so so"], n))
    filled = frame.fillna({"note": pd.Series(rng.choice(["good", "bad", "so so"], n))})
    found = bj.compare(frame, filled, seed=seed)
    assert found.differing == ("note",)
    assert all("note" in part.event for part in found.parts)


def test_a_part_says_that_rows_with_gaps_are_among_its_own():
    n, rng = 300, np.random.default_rng(2)
    first = pd.DataFrame(
        {"x": rng.normal(size=n), "note": rng.choice(["good", "bad", "so so"], n, p=[0.3, 0.65, 0.05])}
    )
    second = first.assign(note=np.where(rng.random(n) < 0.5, None, first["note"]), x=rng.normal(size=n))
    found = bj.compare(first, second)
    part = found.parts[0]
    assert part.or_missing == ("note",)
    assert f"{part.event} (or missing: note)" in " ".join(repr(found).split())
    assert part.second[0] > 2.0 * part.first[0]


def test_rounded_copies_of_rows_are_the_same_rows(rng):
    frame = pd.DataFrame({"x": rng.normal(size=300).round(3), "k": rng.choice(["a", "b"], 300)})
    found = bj.compare(frame, frame.round(1))
    assert found.n_copied == 300
    assert "Both hold the same rows, but for the digits" in " ".join(repr(found).split())


def test_difference_beyond_rounding_is_found(rng):
    first, second = rng.normal(size=400).round(1), (rng.normal(size=400) + 0.5).round(3)
    found = bj.compare(pd.DataFrame({"x": first}), pd.DataFrame({"x": second}))["x"]
    assert found.verdict == "differs"
    assert found.words.endswith("; recorded to 0.1 / 0.001")


def test_share_of_values_between_the_coarser_ones_is_told(rng):
    whole = rng.integers(5, 60, 300)
    first, second = (pd.DataFrame({"price": whole + ends}) for ends in (0, np.where(rng.random(300) < 0.5, 0.0, 0.99)))
    found = bj.compare(first, second)["price"]
    assert re.search(r"recorded to 1 / 0.01, compared at 1; (4|5)\d % of the values of the second lie", found.rounding)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0, 1] * 150, np.linspace(0.0, 1.0, 300).round(3)),  # of two values nothing is left to compare
        ([10.0, 12.0, 15.0, 20.0, 30.0, 41.0], [*range(5, 60), 7.5, 8.5, 9.5]),  # whole by chance
        (np.linspace(0.0, 10.0, 21), np.linspace(0.0, 10.0, 51)),  # halves and fifths
        ([3.0] * 300, np.linspace(0.0, 10.0, 300).round(2)),  # a constant has no digits
        (np.arange(11) * 1e-160, [*np.geomspace(1e-160, 2e-160, 50), 1e200]),  # more steps than float64 has numbers for
        (np.arange(11) * 1e160, np.arange(50) * 1e-160),
    ],
)
@pytest.mark.filterwarnings("ignore:constant columns")
def test_what_rounding_does_not_explain_is_compared_as_it_is(first, second):
    first, second = pd.DataFrame({"x": first}), pd.DataFrame({"x": second})
    assert bj.compare(first, second)["x"].rounding == ""


def test_long_names_and_markup_are_kept_in_their_place(rng):
    first, second = made(rng, 100), made(rng, 100)
    names = {"rings": "<b>" + "x" * 100}
    second["rings"] += 20
    found = bj.compare(first.rename(columns=names), second.rename(columns=names))
    assert max(map(len, repr(found).splitlines())) <= 80
    assert "<b>" not in found._repr_html_()
    assert "&lt;b&gt;" in found._repr_html_()


def test_posterior_stands_for_the_rows_that_it_keeps(rng):
    frame = made(rng, 300)
    post = bj.fit(frame, n_structures=2, draws=2, tune=2, seed=1, cores=1, progress=False)
    assert bj.compare(post, frame).differing == ()
    assert "rings" in bj.compare(post, frame.assign(rings=frame["rings"] + 5)).differing


def test_what_cannot_be_compared_is_refused(rng):
    frame = made(rng, 50)
    with pytest.raises(TableError, match="without a column in common"):
        bj.compare(frame[["size"]], frame[["rings"]])
    with pytest.raises(SamplingError, match="seed = -1"):
        bj.compare(frame, frame, seed=-1)


def test_errors_advise_what_compare_can_be_given(rng):
    frame = pd.DataFrame({"id": range(1, 101)})
    with pytest.raises(SchemaError) as raised:
        bj.compare(frame, frame)
    advised = "bj.as_table(..., kinds={'id': 'integer'})"
    assert f"for example {advised}." in str(raised.value)
    assert "--kind" in raised.value.at_the_command_line()
    table = bj.as_table(frame, kinds={"id": "integer"})  # what is advised
    assert bj.compare(table, table).differing == ()


def test_command_prints_text_and_json(rng, tmp_path, capfd):
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    made(rng, 200).to_csv(paths[0], index=False)
    made(rng, 200).assign(rings=30).to_csv(paths[1], index=False)
    assert cli.run(["compare", *map(str, paths), "-q"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("a.csv and b.csv: 200 and 200 rows, 4 columns compared\n1 column differs.")
    assert max(map(len, out.splitlines())) <= 80
    assert cli.run(["compare", *map(str, paths), "-q", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["tables"] == ["a.csv", "b.csv"]
    assert {column["name"]: column["verdict"] for column in found["columns"]}["rings"] == "differs"


def test_command_lists_columns_that_one_file_lost(rng, tmp_path, capfd):
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    frame = made(rng, 100).assign(none=None)
    frame.to_csv(paths[0], index=False)
    frame.assign(rings=None).to_csv(paths[1], index=False)
    assert cli.run(["compare", *map(str, paths), "-q", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert {column["name"]: column["verdict"] for column in found["columns"]}["rings"] == "differs"
    assert found["not_compared_because"] == {"none": "empty: no value in 100 rows"}


def test_conditions_on_two_labels_name_the_one_that_is_meant():
    rng = np.random.default_rng(3)

    def rows(p: float) -> pd.DataFrame:
        seen = rng.random(400) < p
        return pd.DataFrame({"bin": seen.astype(int), "x": rng.normal(size=400) + 2.0 * seen})

    events = [part.event for part in bj.compare(rows(0.2), rows(0.6)).parts]
    assert any("bin = '0'" in event for event in events)
    assert not any("!=" in event or "other" in event for event in events)


def test_conditions_on_durations_are_written_as_the_tables_write_them(rng):
    def rows(scale: float) -> pd.DataFrame:
        seconds = rng.gamma(4.0, scale, 400).astype(int) + 60
        return pd.DataFrame({"lasts": [f"{s // 3600}:{s // 60 % 60:02}:{s % 60:02}" for s in seconds]})

    first = rows(600.0)
    found = bj.compare(first, rows(1500.0)).parts
    assert found
    for part in found:
        assert re.fullmatch(r"lasts [<>=]+ '\d:\d\d:\d\d'|lasts between '\d:\d\d:\d\d' and '\d:\d\d:\d\d'", part.event)
        assert bj.parse_event(part.event).columns == ("lasts",)


def test_rows_that_differ_in_a_column_of_many_values_are_not_the_same_rows(rng):
    """Under one schema the column had more labels than are looked at, and was passed over."""
    frame = pd.DataFrame({"x": rng.normal(size=150), "k": rng.choice(["a", "b"], 150)})
    found = bj.compare(frame, frame.assign(x=rng.choice(["low", "high"], 150)))
    assert found.differing == ("x",)
    assert found.n_copied == 0
    assert "same rows" not in repr(found)


@pytest.mark.parametrize("names", [("a",), "ab", None, ("a", 1), ("a", "b", "c")])
def test_names_that_are_not_two_texts_are_refused(names, rng):
    with pytest.raises(TableError, match=r"names = .*; expected what to call the two tables: two texts"):
        bj.compare(made(rng, 50), made(rng, 50), names=names)
