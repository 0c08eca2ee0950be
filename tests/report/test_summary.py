"""Tables of types as text, as HTML and in the terminal."""

from __future__ import annotations

import html.parser
import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import bayesjpt as bj
from bayesjpt.report.summary import HEADERS, types_table
from tests import zoo

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
    return bj.Posterior.from_circuit(zoo.independent(table), table.schema).types()


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


def test_html_of_types_has_a_row_for_each_column_and_each_one_set_aside(result):
    assert Tags(result._repr_html_()).tags.count("tr") == 1 + 2 + 1


def test_html_of_table_and_schema_escapes_names_and_labels(table):
    for shown, own in ((table, {"p", "b"}), (table.schema, set())):
        seen = Tags(shown._repr_html_())
        assert set(seen.tags) == {"table", "thead", "tbody", "tr", "th", "td"} | own
        assert HOSTILE in seen.text
        assert "&amp;, <b>" in seen.text


def test_text_of_types_aligns_one_line_a_column(result):
    lines = repr(result).splitlines()
    assert len(lines) == 1 + 2 + 1
    assert [header for header in HEADERS if header != "reason"] == lines[0].split()
    assert "set aside" in lines[-1]
    position = lines[0].index("type")
    assert lines[2][position:].startswith(result["size"].type)


def test_terminal_table_shows_markup_as_it_is(result):
    console = Console(width=300, file=io.StringIO())
    console.print(types_table(result, title="wine.csv"))
    shown = console.file.getvalue()
    assert HOSTILE in shown
    assert "wine.csv" in shown
