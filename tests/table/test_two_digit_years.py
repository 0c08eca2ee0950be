"""Years of two digits: the century that makes a column's dates lie together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesjpt.table.notation import shared
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table
from bayesjpt.table.written_dates import DateNotation, date_readings


@pytest.mark.parametrize(
    ("years", "first", "last"),
    [
        (range(48, 107), 1948, 2006),  # dates of birth
        (range(50, 100), 1950, 1999),
        (range(15, 25), 2015, 2024),
        (range(75, 125), 1975, 2024),
        (range(20, 61), 2020, 2060),  # to come
        ((69, 24), 1969, 2024),
    ],
)
def test_years_of_two_digits_lie_together(years, first, last):
    texts = [f"03/17/{year % 100:02}" for year in years]
    found = date_readings(texts)
    assert found is not None
    days = np.array([first, last]).astype(str).astype("datetime64[Y]").astype("datetime64[D]").astype(float) + 75.0
    np.testing.assert_allclose([found.values[0].min(), found.values[0].max()], days, atol=1.0)
    assert [found.notations[0].text(value) for value in found.values[0]] == texts
    assert [found.notations[0].value(text) for text in texts] == found.values[0].tolist()


def test_dates_of_birth_are_read_alike_in_new_rows_and_by_a_stored_schema():
    frame = pd.DataFrame({"born": [f"17.03.{year % 100:02}" for year in range(48, 107)]})
    schema = as_table(frame, kinds={"born": "date"}).schema
    assert "years from 1928 to 2027" in schema.columns[0].reason
    rows = as_table(pd.DataFrame({"born": ["01.01.55", "1951-01-01"]}), schema=Schema.from_dict(schema.to_dict()))
    assert rows.values[0].tolist() == [-5479.0, -6940.0]


def test_two_tables_whose_years_begin_elsewhere_write_dates_alike():
    one, other = DateNotation("mdy", "%m/%d/%y", first_year=1928), DateNotation("mdy", "%m/%d/%y")
    assert shared(one, other) == one


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@pytest.mark.parametrize("years", [range(20, 24), (98, 99, 0, 1)], ids=["this century", "two centuries"])
def test_months_with_years_of_two_digits_are_dates(years):
    texts = [f"{month}-{year:02}" for year in years for month in MONTHS]
    found = date_readings(texts)
    assert found is not None
    assert found.notations == (DateNotation("month", "%b-%y"),)
    assert [found.notations[0].text(value) for value in found.values[0]] == texts
    assert (np.diff(found.values[0]) > 27.0).all()


@pytest.mark.parametrize("months", [MONTHS, MONTHS[:3]])
def test_days_of_months_are_no_years(months):
    assert date_readings([f"{month}-{day:02}" for month in months for day in range(1, 29)]) is None
    assert date_readings(["Jan-20", "Feb-20"]) is None
