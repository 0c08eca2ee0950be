"""Units of which 1 has the singular: 1 day, 2 days."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesjpt.table.notation import shared
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table
from bayesjpt.table.written_numbers import NumberNotation, number_readings

PAIRS = [(" day", " days"), (" Jahr", " Jahre"), (" mes", " meses"), ("night", "nights")]


@pytest.mark.parametrize(("one", "several"), PAIRS)
def test_the_singular_behind_1_is_no_other_unit(one, several):
    texts = [f"{k}{one if k == 1 else several}" for k in range(40)]
    table = as_table(pd.DataFrame({"x": texts, "y": np.arange(40) % 7}))
    np.testing.assert_array_equal(table.values[0], np.arange(40.0))
    restored = Schema.from_dict(table.schema.to_dict()).columns[0]
    assert [restored.text(value) for value in table.values[0]] == texts


@pytest.mark.parametrize(
    "texts",
    [["1 m", "2 mm"], ["1 day", "1 days", "2 days"], ["1 day", "2 day", "3 days"], ["1 min", "2 minutes"]],
)
def test_other_words_behind_numbers_are_other_units(texts):
    assert number_readings(texts) is None


def test_new_rows_may_have_the_singular_that_training_lacks():
    days = NumberNotation(suffix=" days")
    assert (days.value("1 day"), days.value("2 day"), days.value("1 d")) == (1.0, None, None)
    schema = as_table(pd.DataFrame({"x": [f"{k} days" for k in range(2, 40)]})).schema
    assert as_table(pd.DataFrame({"x": ["1 day", "7 days"]}), schema=schema).values[0].tolist() == [1.0, 7.0]


def test_two_tables_share_units_of_which_one_has_no_singular():
    plural, both = NumberNotation(suffix=" days"), NumberNotation(suffix=" days", single=" day")
    assert shared(plural, both) == shared(both, plural) == both


def test_percentages_may_have_their_sign_before_them():
    found = number_readings(["%65", "%7,5", "%100"])
    assert found is not None
    assert [found.notations[0].text(value) for value in found.values[0]] == ["%65", "%7,5", "%100"]
