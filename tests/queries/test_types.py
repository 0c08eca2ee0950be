"""The one answer a column: its type, how sure that is, its order, and what to look at."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import QueryError, SchemaError
from bayesjpt.queries.look_at import codes_for_missing, notes_of, notes_of_left_out, written_as_text
from bayesjpt.queries.near_copies import near_copies
from bayesjpt.queries.resolve import position_of
from bayesjpt.queries.types import DECLARED, LIKELY, RECORD, SURE, UNSURE, certainty, types
from bayesjpt.report import summary
from bayesjpt.table import excluded
from bayesjpt.table.cells import from_text
from bayesjpt.table.schema import Column, Schema, SetAside
from tests import examples as ex

N = 240


def answered(columns, **kinds):
    """Return the types of a table's columns, by independent leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bj.errors.BayesjptWarning)  # constants
        table = bj.as_table(pd.DataFrame(columns), kinds=kinds or None)
    post = bj.Posterior.from_circuit(ex.independent(table), table.schema)
    return types(replace(post, reference=table), table)


def drawn(rng, *labels, n=N):
    return rng.choice(labels, n)


@pytest.mark.parametrize(
    ("probability", "word"),
    [(1.0, SURE), (0.86, SURE), (0.85, LIKELY), (0.61, LIKELY), (0.6, UNSURE), (0.2, UNSURE)],
)
def test_certainty_is_said_in_words(probability, word):
    assert certainty(probability) == word


def test_labels_on_a_scale_are_ordered_and_codes_are_not(rng):
    result = answered(
        {
            "risk": drawn(rng, "low", "medium", "high", "very high"),
            "stufe": drawn(rng, "nie", "selten", "manchmal", "oft"),
            "taille": drawn(rng, "petit", "grand"),
            "code": drawn(rng, "A11", "A12", "A13", "A14"),
            "plan": drawn(rng, "basic", "plus", "pro"),
        }
    )
    assert [column.type for column in result] == ["ordinal"] * 3 + ["nominal"] * 2
    assert result["risk"].values == "low < medium < high < very high"
    assert result["taille"].values == "petit < grand"
    assert result["code"].certainty == result["plan"].certainty == SURE


def test_an_order_that_nothing_tells_is_open_and_says_what_to_do(rng):
    column = answered({"grade": drawn(rng, "A", "B", "C", "D", "F"), "x": rng.normal(size=N)})["grade"]
    assert {column.type, column.second} == {"nominal", "ordinal"}
    if column.certainty == UNSURE:
        assert column.look_at == ("--kind grade=ordinal",)
        assert column.values == "A B C D F"


@pytest.mark.parametrize(("kind", "expected"), [("ordinal", "ordinal"), ("nominal", "nominal")])
def test_a_user_settles_what_labels_are(rng, kind, expected):
    column = answered({"size": drawn(rng, "S", "M", "L", "XL"), "x": rng.normal(size=N)}, size=kind)["size"]
    assert (column.type, column.certainty, column.look_at) == (expected, DECLARED, ())


def test_ordered_labels_that_were_asked_for_have_their_codes_in_order(rng):
    table = bj.as_table(pd.DataFrame({"size": drawn(rng, "S", "M", "L")}), kinds={"size": "ordinal"})
    assert table.schema.columns[0].labels == ("S", "M", "L")
    with pytest.raises(SchemaError, match="ordinal"):
        bj.as_table(pd.DataFrame({"size": drawn(rng, "S", "M", "L")}), kinds={"size": "sorted"})


def test_each_note_is_there_where_it_belongs_and_nowhere_else(rng):
    amount = rng.normal(20.0, 4.0, N).round(1)
    group = drawn(rng, "a", "b", "c")
    result = answered(
        {
            "amount": amount,
            "coded": np.where(np.arange(N) % 20 == 0, -999.0, amount),
            "price": drawn(rng, "$9.99", "$1,250.00", "$5.00", "free"),
            "discount": drawn(rng, "0 %", "2,5 %", "10 %"),
            "day": drawn(rng, "01.02.2020", "13.02.2020", "28.12.2020"),
            "same": np.full(N, 7),
            "again": amount,
            "group": group,
            "renamed": np.char.add("group ", group),
            "level": drawn(rng, "low", "high"),
        }
    )
    assert {column.name: column.look_at for column in result} == {
        "amount": (),
        "coded": ("-999: missing?", "nearly a copy of amount"),
        "price": ("numbers as text",),
        "discount": (),
        "day": (),
        "same": ("constant",),
        "again": ("copy of amount",),
        "group": (),
        "renamed": ("copy of group",),
        "level": (),
    }
    assert result["coded"].values.startswith(f"{amount[np.arange(N) % 20 > 0].min():.4g} to ")


def test_straight_functions_of_a_column_are_nearly_copies(rng):
    z, far = rng.normal(size=N), np.zeros(N)
    far[0] = 1e6
    columns = {"cm": (170 + 9 * z).round(1), "inch": (67 + 3.54 * z + rng.normal(0.0, 0.05, N)).round(1)}
    columns |= {"opposite": (-2.0 * columns["cm"] + 400 + rng.normal(0.0, 0.3, N)).round(2)}
    columns |= {"loose": z + rng.normal(0.0, 0.2, N), "curved": np.exp(z)}
    columns |= {"a": rng.normal(size=N) + far, "b": rng.normal(size=N) + far}  # one far cell in common
    for name in ("inch", "cm"):
        columns[name] = np.where(rng.random(N) < 0.2, np.nan, columns[name])
    columns |= {"huge": 1e301 * rng.uniform(-1.0, 1.0, N), "tiny": 1e-290 * rng.normal(size=N)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert near_copies(bj.as_table(pd.DataFrame(columns))) == {1: 0, 2: 0}
    for name in ("huge", "tiny"):
        del columns[name]
    looked = {column.name: column.look_at for column in answered(columns)}
    assert looked["inch"] == looked["opposite"] == ("nearly a copy of cm",)
    assert not any(looked[name] for name in ("cm", "loose", "curved", "a", "b"))


def test_numbers_over_many_powers_of_ten_ask_for_their_logarithm(rng):
    result = answered({"wide": 10.0 ** rng.uniform(-4.0, 5.0, N), "usual": rng.lognormal(0.0, 2.0, N)})
    assert (result["wide"].look_at, result["usual"].look_at) == (("8 decades: logarithm?",), ())


def test_notes_on_labels_name_those_without_an_answer_those_spelled_twice_and_keys(rng):
    result = answered(
        {
            "often": drawn(rng, "never", "sometimes", "always", "Don't know"),
            "carrier": drawn(rng, "UPS", "ups ", "DHL"),
            "gap": drawn(rng, "x", "y", "-"),
            "unknown": drawn(rng, "red", "green", "unknown"),
        }
    )
    assert {column.name: column.look_at for column in result} == {
        "often": ("missing? Don't know",),
        "carrier": ("UPS = ups?",),
        "gap": ("missing? -",),
        "unknown": (),
    }
    assert result["often"].order == ("never", "sometimes", "always")
    assert result["often"].values == "never < sometimes < always"
    assert answered({"planet": list("ABDKMX")})["planet"].look_at == ("all different",)


@pytest.mark.parametrize(
    ("name", "scale", "notes"),
    [
        ("timestamp", 1.0, ("--kind timestamp=date",)),
        ("created_at", 1e3, ("--kind created_at=date",)),
        ("number", 1.0, ()),
    ],
)
def test_moments_counted_from_1970_are_to_be_looked_at(rng, name, scale, notes):
    column = answered({name: (1.7e9 + rng.permutation(N) * 977) * scale})[name]
    assert column.look_at == notes
    assert column.values.startswith(f"{1.7e9 * scale:.0f} to 17002") or not notes


@pytest.mark.parametrize(("odd", "notes"), [(20240229, ("--kind day=date",)), (20230229, ()), (20241301, ())])
def test_days_written_as_numbers_are_to_be_looked_at(rng, odd, notes):
    days = pd.date_range("2023-11-20", periods=N).strftime("%Y%m%d").astype(int).to_numpy().copy()
    days[0] = odd
    assert answered({"day": rng.permutation(days), "x": rng.normal(size=N)})["day"].look_at == notes


def test_a_label_written_as_a_column_for_each_value_is_found_where_each_row_has_one(rng):
    city, month = rng.integers(0, 4, N), rng.integers(0, 3, N)
    columns = {f"city_{k}": (city == k).astype(int) for k in range(4)} | {f"m.{k}": month == k for k in range(3)}
    columns |= {f"flag_{k}": rng.integers(0, 2, N) for k in range(3)}
    assert answered(columns).one_hot == (("city_0", "city_3", 4), ("m.0", "m.2", 3))


NUMBERS = Column("x", "integer", (-np.inf, np.inf), n_distinct=50)


@pytest.mark.parametrize(("n", "codes"), [(30, []), (4, [-1.0])])
def test_minus_one_beside_zero_and_one_is_a_sign_where_it_is_as_common(n, codes):
    assert codes_for_missing(NUMBERS, np.repeat([-1.0, 0.0, 1.0], [n, 40, 40])) == codes


@pytest.mark.parametrize(
    ("added", "codes"),
    [
        ([], []),
        ([-1.0, -1.0], [-1.0]),
        ([-99.0, -99.0, -999.0, -999.0], [-999.0, -99.0]),
        ([99.0] * 20, [99.0]),
        ([99.0], []),  # one of ninety-nine may be a person's age
        ([-999.0], []),
        ([80.0] * 20, []),
        ([9999.0, 9999.0], [9999.0]),
        ([-127.0, -127.0], [-127.0]),
        ([65535.0, 65535.0], [65535.0]),
        ([255.0], []),
    ],
)
def test_codes_for_missing_cells_are_far_and_repeated(added, codes):
    assert codes_for_missing(NUMBERS, np.array([*map(float, range(18, 80)), *added])) == codes


@pytest.mark.parametrize(
    ("labels", "is_text"),
    [
        (["1,5", "2,5", "3,5"], True),
        (["12%", "7.5%", "3%"], True),
        (["170 cm", "165 cm", "180 cm"], True),
        (["3A", "4B", "5C"], False),
        (["18-24", "25-34", "35+"], False),
        (["A11", "A12", "A13"], False),
        (["01", "02", "03"], False),
    ],
)
def test_numbers_written_as_text_are_told_from_codes_and_ranges(labels, is_text):
    assert bool(written_as_text(labels)) == is_text


def test_a_column_that_was_left_out_for_its_commas_is_to_be_looked_at():
    reason = "identifier or free text: 300 distinct texts; most are numbers with a decimal comma"
    assert notes_of_left_out(SetAside("x", reason)) == ("numbers as text",)
    assert notes_of_left_out(SetAside("x", "identifier or free text: 300 distinct texts")) == ()


def test_the_first_text_that_is_no_date_is_told():
    cells = from_text("day", [*(f"{k:02}.03.2023" for k in range(1, 29)), "Total"], np.arange(29))
    assert excluded.nearly_read(cells) == "; most cells are dates, the first that is not is 'Total' in row 29"
    assert notes_of_left_out(SetAside("day", excluded.nearly_read(cells))) == ("dates as text",)


def test_the_first_odd_cell_of_a_column_that_was_left_out_is_told_with_its_remedy():
    reason = "text: 160 labels; most cells are numbers, the first that is not is 'ask' in row 21"
    lines = summary._left_out([SetAside("price", reason), SetAside("name", "identifier: 300 distinct texts")])
    assert lines[1:] == ["look at, numbers as text: price ('ask' in row 21: --na price=ask)"]
    with pytest.raises(QueryError, match="na='price=ask', and fit again") as caught:
        position_of("price", Schema((), (SetAside("price", reason),)))
    assert "--na price=ask, and fit again" in caught.value.at_the_command_line()


def test_a_column_that_was_left_out_is_named_in_its_remedy_as_a_shell_takes_it():
    with pytest.raises(QueryError) as caught:
        position_of("patient id", Schema((), (SetAside("patient id", "identifier: 300 distinct texts"),)))
    assert "--kind 'patient id'=..." in caught.value.at_the_command_line()


@pytest.mark.parametrize(
    ("text", "short", "words"),
    [
        ("<0.5", "write half, 0.25", "the smallest values: read as missing they shift the column up; write half of"),
        ("<0,5", "write half, 0,25", "write half of the bound, 0,25, for them"),  # 0.25 is no number beside commas
        ("< 3,5 mg", "write half, 1,75 mg", "write half of the bound, 1,75 mg, for them"),
        (
            ">100",
            "write it, 100",
            "the largest values: read as missing they shift the column down; write at least the bound",
        ),
        (
            "90+",
            "write it, 90",
            "the largest values: read as missing they shift the column down; write at least the bound",
        ),
    ],
)
def test_cells_that_tell_a_bound_are_not_to_be_read_as_missing(text, short, words):
    left_out = SetAside("crp", f"text: 160 labels; most cells are numbers, the first that is not is '{text}' in row 9")
    assert summary._left_out([left_out])[1:] == [f"look at, numbers as text: crp ('{text}' in row 9: {short})"]
    with pytest.raises(QueryError, match=words) as caught:
        position_of("crp", Schema((), (left_out,)))
    assert "--na" not in caught.value.at_the_command_line()


def test_a_column_of_labels_most_of_which_are_numbers_tells_what_to_do_about_the_others(rng):
    for odd, remedy in (("90+", "Such cells are the largest values"), ("old", "--na age=old reads it as missing")):
        found = answered({"age": drawn(rng, *map(str, range(40, 90)), *6 * [odd])})
        assert f"numbers as text remedy {remedy}" in " ".join(summary.why_text(found, "age").split())


def test_ordinal_numbers_beside_a_word_are_no_numbers():
    cells = from_text("floor", ["cave", *(f"{k}e" for k in range(2, 12))], np.arange(11))
    assert excluded.nearly_read(cells) == ""


def test_a_word_for_no_answer_beside_two_labels_is_to_be_looked_at(rng):
    column = answered({"again": drawn(rng, "Oui", "Non", "Ne sait pas")})["again"]
    assert (column.type, column.look_at) == ("nominal", ("missing? Ne sait pas",))
    assert answered({"pet": drawn(rng, "yes", "no", "other")})["pet"].look_at == ()


def test_a_minus_beside_a_plus_is_no_missing_cell(rng):
    assert answered({"sign": drawn(rng, "+", "-")})["sign"].look_at == ()
    assert answered({"sign": drawn(rng, "a", "b", "-")})["sign"].look_at == ("missing? -",)
    signs = answered({"sign": drawn(rng, "--", "-", "o", "+", "++")})["sign"]
    assert (signs.type, signs.look_at) == ("ordinal", ())


def test_a_kind_to_copy_is_quoted(rng):
    column = bj.as_table(pd.DataFrame({"my grade": drawn(rng, "p", "q", "r")})).schema.columns[0]
    answer = SimpleNamespace(name="my grade", type="nominal", second="ordinal", certainty="unsure")
    assert notes_of([answer], Schema((column,)), None) == [("--kind 'my grade=ordinal'",)]


def test_frame_and_records_hold_every_column_those_left_out_last(rng):
    result = answered({"size": rng.normal(size=N).round(2), "id": np.arange(N), "kind": drawn(rng, "a", "b", "c")})
    frame = result.to_frame()
    assert list(frame.columns) == list(RECORD)
    assert frame["column"].tolist() == ["size", "kind", "id"]
    assert frame["type"].tolist() == [result["size"].type, "nominal", "left out"]
    assert [row["probability"] for row in result.records()][:2] == [column.probability for column in result]


def test_unknown_columns_and_foreign_tables_are_refused(rng):
    result = answered({"size": rng.normal(size=N)})
    with pytest.raises(QueryError, match="no column 'sise'"):
        result.find("sise")
    with pytest.raises(KeyError, match="among size"):
        result["sise"]
    other = bj.as_table(pd.DataFrame({"other": rng.normal(size=N)}))
    with pytest.raises(QueryError, match="schema"):
        types(result._post, other)


def test_without_rows_the_schema_alone_answers(rng):
    table = bj.as_table(pd.DataFrame({"size": rng.normal(size=N), "kind": drawn(rng, "a", "b", "c")}))
    result = types(bj.Posterior.from_circuit(ex.independent(table), table.schema))
    assert " to " in result["size"].values
    assert result["kind"].type == "nominal"
    assert result.n_row is None


def test_without_rows_ends_and_shares_of_labels_are_those_of_all(rng):
    frame = pd.DataFrame({"x": rng.normal(size=N), "kind": drawn(rng, "a", "b", "b"), "size": drawn(rng, *"SML")})
    frame.loc[7, "x"], frame.loc[9, "x"] = -50.0, 60.0
    table = bj.as_table(frame)
    post = bj.Posterior.from_circuit(ex.independent(table), table.schema)
    post = replace(post, reference=table.take(np.arange(20, 60)))
    some, all_rows = types(post), types(post, frame)
    assert some["x"].values.startswith("-50 to 60, half ")
    for name in ("kind", "size"):
        assert some[name].values == all_rows[name].values
    assert all_rows.n_row == N


def test_labels_without_cells_are_not_shown(rng):
    frame = pd.DataFrame({"kind": pd.Categorical(drawn(rng, "a", "b"), ["a", "never", "b"]), "x": rng.normal(size=N)})
    table = bj.as_table(frame)
    post = bj.Posterior.from_circuit(ex.independent(table), table.schema)
    assert "never" not in types(post)["kind"].values


def test_blanks_that_may_say_none_are_told():
    cars, kind = np.arange(N) % 4, np.arange(N) % 7
    columns = {
        "cars": cars.astype(float),
        "garage": np.where(cars == 0, "", np.char.add("kind ", (kind % 2).astype(str))),
        "pool": np.where(np.arange(N) % 19, "", "yes"),
        "crossed": np.where(kind < 3, "x", ""),
        "fence": np.where(kind == 3, "", np.char.add("type ", (cars % 3).astype(str))),
        # but for a row with both, which may hold the totals
        "debit": np.where((kind < 2) & (np.arange(N) < N - 1), "", (7.5 + np.arange(N)).astype(str)),
        "credit": np.where((kind < 2) | (np.arange(N) == N - 1), (9.25 + np.arange(N)).astype(str), ""),
    }
    looked = {column.name: column.look_at for column in answered(columns)}
    assert looked["garage"] == ("blank if cars = 0",)
    assert looked["pool"] == looked["crossed"] == ("blank: none?", "constant")
    assert not looked["fence"]
    assert "blank if credit is filled" in looked["debit"]
    assert "blank if debit is filled" in looked["credit"]
