"""Dates in ISO 8601 are written as the table writes them: the mark before the time of the day, and the unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesjpt.cli_predict import as_csv
from bayesjpt.queries.predict import Prediction
from bayesjpt.table import cells as cells_of
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table, as_table, read_table
from bayesjpt.table.write import spelled, spelled_filled, write_table
from bayesjpt.table.write import texts as texts_of

MINUTES = ["2024-03-01 10:23", "2024-03-02 00:00", "2024-03-05 07:11", "2024-03-04 23:59", "2024-03-09 12:00"]
WAYS = {
    "a space, to the minute": MINUTES,
    "T, to the minute": [text.replace(" ", "T") for text in MINUTES],
    "a space, to the second": [f"{text}:00" for text in MINUTES],
    "T, to the second": [text.replace(" ", "T") + ":30" for text in MINUTES],
    "days": [text[:10] for text in MINUTES],
}


def rows_of(texts, n=8):
    """Return texts with minutes apart, so that they are many dates in one notation."""
    moments = pd.to_datetime(texts)
    marks = "%Y-%m-%d" + (texts[0][10] + "%H:%M:%S"[: 3 * len(texts[0][11:].split(":")) - 1] if texts[0][10:] else "")
    return [one.strftime(marks) for k in range(n) for one in moments + k * pd.Timedelta(days=11, minutes=7)]


@pytest.mark.parametrize("texts", WAYS.values(), ids=WAYS)
def test_rows_are_written_as_they_were_read(texts, tmp_path):
    texts = rows_of(texts)
    (tmp_path / "rows.csv").write_text("\n".join(["when", *texts]) + "\n")
    table = read_table(tmp_path / "rows.csv")
    write_table(table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "rows.csv").read_text()


@pytest.mark.parametrize("end", ["%I:%M %p", "%H:%M:%SZ", "%H:%M:%S.%f"])
def test_halves_of_days_zones_and_fractions_are_written_as_they_were_read(end, tmp_path):
    moments = pd.date_range("2024-03-01", periods=40, freq="7h13min")
    (tmp_path / "rows.csv").write_text("\n".join(["when", *moments.strftime(f"%Y-%m-%d {end}")]) + "\n")
    write_table(read_table(tmp_path / "rows.csv"), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "rows.csv").read_text()


@pytest.mark.parametrize("start", ["2024-03-01 ", "31.03.2024 ", "2024-03-01T", ""])
@pytest.mark.parametrize("zone", ["", "Z"])
def test_milliseconds_are_written_as_such(start, zone):
    zone = zone if start else ""
    moments = [f"{start}{hour:02}:10:48.{90 * hour + 7:03}{zone}" for hour in range(1, 11)]
    table = as_table(pd.DataFrame({"when": moments}))
    assert texts_of(table.schema.columns[0], table.values[0]) == moments


@pytest.mark.parametrize("texts", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("remembers", [True, False])
def test_filled_cells_are_written_as_the_others_of_the_file(texts, remembers):
    texts = rows_of(texts)
    schema = as_table(pd.DataFrame({"when": texts})).schema
    if not remembers:  # fits of before, and those of dates that were no texts
        schema = Schema(tuple(replace(column, notation=None) for column in schema))
    holes = [*texts[:-1], ""]
    table = as_table(pd.DataFrame({"when": holes}), schema=schema)
    values = table.values.copy()
    values[0, -1] = as_table(pd.DataFrame({"when": texts}), schema=schema).values[0, -1]
    read = cells_of.from_text("when", sorted(set(holes)), np.unique(holes, return_inverse=True)[1])
    _, (written,) = spelled_filled([read], Table(schema, values, np.ones((1, len(texts)), bool)), table.observed)
    assert written == texts
    pd.to_datetime(pd.Series(written))  # mixed formats are refused


@pytest.mark.parametrize("texts", WAYS.values(), ids=WAYS)
def test_a_file_whose_dates_have_no_gap_is_written_as_it_was(texts):
    texts = rows_of(texts)
    table = as_table(pd.DataFrame({"when": texts}))
    read = cells_of.from_text("when", sorted(set(texts)), np.unique(texts, return_inverse=True)[1])
    assert spelled_filled([read], table, table.observed)[1] == [texts]


def test_dates_that_were_no_texts_are_all_written_to_the_unit_in_which_they_were_recorded():
    frame = pd.DataFrame({"when": pd.to_datetime(rows_of(MINUTES))})
    _, (written,) = spelled(as_table(frame))
    assert {len(text) for text in written} == {len("2024-03-02T00:00")}
    assert pd.to_datetime(pd.Series(written)).tolist() == frame["when"].tolist()


@pytest.mark.parametrize("texts", list(WAYS.values())[:2], ids=list(WAYS)[:2])
def test_predicted_dates_are_printed_as_exactly_as_they_were_recorded(texts):
    column = as_table(pd.DataFrame({"when": rows_of(texts)})).schema.columns[0]
    for notation in (column.notation, None):
        found = Prediction(replace(column, notation=notation), ("mean",), np.array([[19783.0 + 36110.18 / 86400.0]]))
        mark = " " if notation is not None and " " in texts[0] else "T"
        assert as_csv(found) == f"row,mean\n1,2024-03-01{mark}10:02\n"


def test_labels_that_are_dates_are_written_as_they_were_read(tmp_path):
    (tmp_path / "rows.csv").write_text("\n".join(["when", *MINUTES[:3] * 20]) + "\n")
    table = read_table(tmp_path / "rows.csv", kinds={"when": "category"})
    assert table.schema.columns[0].base == "category"
    assert spelled(table)[1][0] == MINUTES[:3] * 20


def test_schema_with_a_notation_of_iso_dates_is_read_back():
    schema = as_table(pd.DataFrame({"when": rows_of(MINUTES)})).schema
    assert schema.columns[0].text(19783.0) == "2024-03-01 00:00"
    assert Schema.from_dict(schema.to_dict()) == schema
