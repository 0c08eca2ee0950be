"""Numbers and labels above 0 that are written with a plus."""

from __future__ import annotations

import pandas as pd
import pytest

from bayesjpt.table.table import as_table


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["+1.5", "-2", "0"], [1.5, -2.0, 0.0]),
        (["+1,5 %", "-2,25 %", "0 %"], [1.5, -2.25, 0.0]),
        (["+0.50", "-2.25", "+1.75"], [0.5, -2.25, 1.75]),
    ],
    ids=["plain", "percent", "two digits"],
)
def test_numbers_above_0_keep_their_plus(texts, values):
    table = as_table(pd.DataFrame({"change": [text for text in texts for _ in range(9)]}), kinds={"change": "real"})
    column = table.schema.columns[0]
    assert [column.text(value) for value in values] == texts
    assert "a plus above 0" in column.reason
    # some with a plus and some without are written in one way
    mixed = as_table(pd.DataFrame({"change": [*(texts * 9), "3"]}), kinds={"change": "real"}).schema.columns[0]
    assert mixed.notation is None or "+" not in mixed.text(3.0)


def test_labels_with_a_plus_are_given_back_as_they_are_written():
    table = as_table(pd.DataFrame({"y": ["+1", "-1"] * 20}))
    assert set(table.schema.columns[0].labels) == {"+1", "-1"}
    assert set(table.to_frame()["y"]) == {"+1", "-1"}


@pytest.mark.parametrize("values", [["1", "-1"], [1, -1], [1.0, -1.0]], ids=["texts", "whole numbers", "numbers"])
def test_new_rows_may_hold_labels_without_their_plus(values):
    table = as_table(pd.DataFrame({"y": ["+1", "-1"] * 20}))
    rows = as_table(pd.DataFrame({"y": values}), schema=table.schema)
    assert list(rows.to_frame()["y"]) == ["+1", "-1"]
