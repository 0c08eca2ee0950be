"""JSON in other forms than an object a line: lists within an object, and objects of columns."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from bayesjpt.errors import BayesjptWarning
from bayesjpt.table.table import read_table

ROWS = [{"size": k / 7.0, "kind": "ab"[k % 2], "at": {"x": k % 5}} for k in range(30)]


@pytest.mark.parametrize(
    ("whole", "path"),
    [
        ({"meta": {"n": 30, "page": 1}, "data": ROWS}, "data"),
        ({"response": {"status": "ok", "items": ROWS, "empty": []}}, "response.items"),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_the_list_of_objects_within_an_object_holds_the_rows(tmp_path, whole, path, indent):
    (tmp_path / "t.json").write_text(json.dumps(whole, indent=indent))
    with pytest.warns(BayesjptWarning, match=f"the rows of 't.json' are those of the list '{path}'"):
        table = read_table(tmp_path / "t.json")
    assert (table.n_row, table.names) == (30, ("size", "kind", "at.x"))


def test_an_object_that_is_nothing_but_a_list_is_read_without_a_word(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"data": ROWS}))
    assert read_table(tmp_path / "t.json").n_row == 30


@pytest.mark.parametrize("orient", ["columns", "list", "records"])
def test_what_pandas_writes_is_read(tmp_path, orient):
    frame = pd.DataFrame({"size": [row["size"] for row in ROWS], "kind": [row["kind"] for row in ROWS]})
    (tmp_path / "t.json").write_text(
        json.dumps(frame.to_dict("list")) if orient == "list" else frame.to_json(orient=orient, double_precision=15)
    )
    table = read_table(tmp_path / "t.json")
    assert (table.n_row, table.names) == (30, ("size", "kind"))
    assert list(table.to_frame()["kind"]) == list(frame["kind"])


def test_two_lists_of_objects_are_no_table(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"first": ROWS, "second": ROWS, "n": 1}))
    with pytest.warns(BayesjptWarning, match="constant"):
        assert read_table(tmp_path / "t.json").n_row == 1
