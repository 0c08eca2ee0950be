"""Types as text, as HTML, and one column in detail."""

from __future__ import annotations

import html.parser
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import bayesjpt as bj
from bayesjpt.queries.types import LIKELY, SURE, UNSURE, ColumnType, Types, types
from bayesjpt.report.summary import HEADERS, WIDTH, short_reason, types_text, why_text, words_of
from bayesjpt.table.schema import SetAside
from tests import examples as ex

HOSTILE = "<script>alert('x')</script> & [red]\"quoted\""


@pytest.fixture(scope="module")
def table():
    frame = pd.DataFrame(
        {
            HOSTILE: ["<b>", "&amp;", None] * 20,
            "size": np.round(np.linspace(0.1, 6.0, 60), 1),
            "id": np.arange(60),
        }
    )
    return bj.as_table(frame)


@pytest.fixture(scope="module")
def result(table):
    return types(bj.Posterior.from_circuit(ex.independent(table), table.schema), table)


class Tags(html.parser.HTMLParser):
    """Collects the tags of a document and its text."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_html_of_types_escapes_names_and_keeps_them_readable(result):
    seen = Tags(result._repr_html_())
    assert set(seen.tags) == {"table", "thead", "tbody", "tr", "th", "td"}
    assert HOSTILE in seen.text


def test_html_of_types_has_a_row_for_each_column_and_each_one_left_out(result):
    assert Tags(result._repr_html_()).tags.count("tr") == 1 + 2 + 1


def test_html_of_table_and_schema_escapes_names_and_labels(table):
    for shown, own in ((table, {"p", "b"}), (table.schema, set())):
        seen = Tags(shown._repr_html_())
        assert set(seen.tags) == {"table", "thead", "tbody", "tr", "th", "td"} | own
        assert HOSTILE in seen.text
        assert "&amp;, <b>" in seen.text


def test_text_of_types_has_one_line_a_column_and_one_for_those_left_out(result):
    lines = types_text(result, "small.csv").splitlines()
    assert lines[0] == "small.csv: 60 rows, 3 columns, 20 missing"
    assert len(lines) == 1 + 1 + 2 + 1
    assert lines[1].split("  ")[0] == HEADERS[0]
    assert lines[-1] == "left out: id, running number"


def test_notes_have_a_header_only_where_there_are_some(result):
    assert "look at" not in types_text(result).splitlines()[1]
    column = ColumnType("x", "category", "nominal", 0.5, UNSURE, "ordinal", look_at=("--kind x=ordinal",))
    lines = types_text(of(column)).splitlines()
    assert lines[1].endswith("look at")
    assert lines[2].endswith("--kind x=ordinal")


def of(*columns, left_out=(), n_row=None) -> Types:
    return Types(columns, tuple(left_out), n_row, 0.9, None)


@pytest.mark.parametrize(
    ("kind", "word", "second", "shown"),
    [
        ("count", SURE, "positive", "number, whole"),
        ("nominal", LIKELY, "ordinal", "label, 3"),
        ("ordinal", SURE, "nominal", "order, 3"),
        ("ordinal", UNSURE, "nominal", "label/order"),
        ("nominal", UNSURE, "ordinal", "label/order"),
        ("positive", UNSURE, "count", "number >= 0/whole"),
        ("constant", SURE, "", "constant"),
    ],
)
def test_types_are_said_in_words_and_both_where_unsure(kind, word, second, shown):
    assert words_of(ColumnType("x", "integer", kind, 0.5, word, second, n_distinct=3)) == shown


def test_another_seed_is_mentioned_only_where_it_changes_an_answer():
    steady = ColumnType("x", "integer", "count", 0.9, SURE, "positive")
    moved = ColumnType("y", "integer", "count", 0.7, LIKELY, "positive", rivals=("positive",))
    assert "another seed" not in types_text(of(steady))
    assert types_text(of(steady, moved)).splitlines()[-1] == "another seed may say otherwise: y"


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60)
COLUMN = st.builds(
    ColumnType,
    name=TEXT,
    base=st.just("category"),
    type=st.sampled_from(["real", "positive", "count", "interval", "ordinal", "nominal", "binary", "constant", "date"]),
    probability=st.floats(0.0, 1.0),
    certainty=st.sampled_from([SURE, LIKELY, UNSURE]),
    second=st.sampled_from(["", "real", "positive", "interval", "ordinal", "nominal"]),
    values=st.lists(TEXT, max_size=8).map(" < ".join) | st.lists(TEXT, max_size=8).map(", ".join),
    look_at=st.lists(TEXT, max_size=3).map(tuple),
    n_distinct=st.integers(1, 10**9),
    n_missing=st.integers(0, 10**9),
    because=TEXT,
    reason=TEXT,
    rivals=st.sampled_from([(), ("real",)]),
)
LEFT_OUT = st.builds(SetAside, name=TEXT, reason=TEXT | st.just("text: 4000 labels; most are numbers"))


@settings(max_examples=50, deadline=None)
@given(st.lists(COLUMN, max_size=6), st.lists(LEFT_OUT, max_size=6), TEXT, st.integers(1, 10**9))
def test_no_line_is_wider_than_eighty_and_each_column_has_one(columns, left_out, name, n_row):
    found = of(*columns, left_out=left_out, n_row=n_row)
    lines = types_text(found, name, 1).split("\n")
    assert max(map(cell_len, lines)) <= WIDTH
    n_extra = bool(left_out) + any("are numbers" in column.reason for column in left_out)
    n_extra += any(column.rivals and column.certainty != UNSURE for column in columns) + (n_row > 1)
    n_extra += sum(line.startswith(" " * len("left out: ")) for line in lines[2 + len(columns) :])
    assert len(lines) == 2 + len(columns) + n_extra
    for column in columns:
        assert max(map(cell_len, why_text(found, column.name).split("\n"))) <= WIDTH


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("identifier or free text: 400 distinct texts in 400 observed cells", "400 different texts"),
        ("text: 213 labels, more than the 100 of a category", "213 different texts"),
        ("running number: 60 whole numbers, all distinct", "running number"),
        ("left out on request", "left out on request"),
    ],
)
def test_reasons_of_columns_left_out_are_short(reason, said):
    assert short_reason(SetAside("x", reason)) == said
    assert short_reason(SetAside("x", reason, 1_310)) == f"{said}, 1,310 missing"


def test_missing_cells_of_columns_that_are_left_out_are_told():
    notes = [f"note {k}" if k % 2 else None for k in range(60)]
    table = bj.as_table(pd.DataFrame({"note": notes, "size": np.linspace(0.5, 6.0, 60), "empty": [None] * 60}))
    found = types(bj.Posterior.from_circuit(ex.independent(table), table.schema), table)
    lines = types_text(found).splitlines()
    assert lines[0] == "60 rows, 3 columns, 90 missing"
    assert lines[-1] == "left out: note, 30 different texts, 30 missing; empty, empty"
    assert "missing    30 cells" in why_text(found, "note")


def test_all_columns_that_were_left_out_are_named_in_lines_that_end_in_time():
    asides = tuple(SetAside(f"column number {k}", "a key: for a long reason") for k in range(9))
    lines = types_text(of(left_out=asides)).splitlines()[2:]
    assert max(map(len, lines)) <= WIDTH
    assert all(f"column number {k}, a key" in " ".join(lines) for k in range(9))
    many = types_text(of(left_out=asides * 10)).splitlines()
    assert many[-1].endswith("60 more, see --full")


def test_labels_beside_an_order_are_counted_apart():
    column = ColumnType("x", "category", "ordinal", 0.9, SURE, n_distinct=4, order=("low", "mid", "high"))
    assert words_of(column) == "order, 3 + 1"


def test_an_order_that_the_values_tell_is_not_told_twice():
    column = ColumnType("x", "category", "ordinal", 0.9, SURE, values="low < high", n_distinct=2, order=("low", "high"))
    lines = why_text(of(column), "x").splitlines()
    assert "values     low < high (2 different, 0 missing)" in lines
    assert not any(line.startswith("order ") for line in lines)
    told = why_text(of(replace(column, values="high 60 %, low 40 %")), "x")
    assert "order      low < high" in told.splitlines()


def test_a_code_for_missing_cells_comes_with_the_option_that_reads_it():
    score = np.where(np.arange(200) % 12 == 0, -9, np.arange(200) % 11)
    table = bj.as_table({"final score": score, "size": np.linspace(0.5, 6.0, 200)})
    found = types(bj.Posterior.from_circuit(ex.independent(table), table.schema), table)
    assert why_text(found, "final score").endswith("remedy     --na 'final score=-9' reads that as missing")
    assert "remedy" not in why_text(found, "size")
