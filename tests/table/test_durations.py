"""Lengths of time as people write them: read as numbers, and written back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table
from bayesjpt.table.write import write_table
from bayesjpt.table.written_dates import DateNotation
from bayesjpt.table.written_durations import DurationNotation, duration_readings

READ = [
    (["7h 20m", "45m", "1h"], "0h 0m", [440.0, 45.0, 60.0]),
    (["7 Std. 20 Min.", "45 Min."], "0 Std. 0 Min.", [440.0, 45.0]),
    (["2 days, 3 hours", "5 hours"], "0 days, 0 hours", [51.0, 5.0]),
    (["1:05.33", "0:59.80"], "m:ss.00", [65.33, 59.8]),
    (["37:20", "5:01"], "0:00", [2240.0, 301.0]),
    (["59:10", "1:02:33"], "h:mm:ss", [3550.0, 3753.0]),
    (["0 days 01:20:00", "3 days 00:00:01"], "d hh:mm:ss", [4800.0, 259_201.0]),
    (["22d 06:58:33", "3d 01:00:00"], "0d hh:mm:ss", [1_925_913.0, 262_800.0]),
    (["2 days, 4:05:06", "5:06:07", "1 day, 0:00:00"], "0 days, h:mm:ss", [187_506.0, 18_367.0, 86_400.0]),
    (["2h28", "0h05", "12h00"], "0h00", [148.0, 5.0, 720.0]),
    (["4:57/km", "12:03/km"], "m:ss/km", [297.0, 723.0]),
    (["09:59.80", "10:02.10"], "mm:ss.00", [599.8, 602.1]),
    (["05:01", "37:20"], "00:00", [301.0, 2240.0]),
    (["+16:52.62", "0:00.00", "-0:03.10"], "+m:ss.00", [1012.62, 0.0, -3.1]),
    (["+1:02:33", "+0:59:10"], "+h:mm:ss", [3753.0, 3550.0]),
    (["-1h 20m", "15m"], "0h 0m", [-80.0, 15.0]),
    (["1h 05m", "45m", "2h 00m"], "0h 00m", [65.0, 45.0, 120.0]),
    (["0h 54min", "7h 7min", "2h 0min"], "1h 1min", [54.0, 427.0, 120.0]),
    (["01h 05m 30s", "00h 45m 09s"], "00h 00m 00s", [3930.0, 2709.0]),
]
NOT_READ = [["45m", "5m"], ["5 ft 3 in"], ["20m 7h"], ["7h 20m", "soon"], ["1:65", "2:10"], ["7h 20m", "1:05.3"], []]
NOT_READ += [["4:57/km", "7:10/mi"], ["4:57/km", "5:10"], ["2h75", "2h10"], ["2h", "9h"]]
NOT_READ += [["+02:00", "-05:00", "+05:30"], ["+1:05.2", "27:10.0"], ["+", "1:05.2"]]


@pytest.mark.parametrize(("texts", "pattern", "values"), READ)
def test_durations_are_read_in_the_unit_of_the_last_number(texts, pattern, values):
    found = duration_readings(texts)
    assert found is not None
    assert found[0] == DurationNotation(pattern)
    np.testing.assert_allclose(found[1], values, rtol=1e-15)


@pytest.mark.parametrize("texts", [texts for texts, *_ in READ[6:]])
def test_durations_are_written_as_they_were_read(texts):
    found = duration_readings(texts)
    assert [found[0].text(value) for value in found[1]] == texts


@pytest.mark.parametrize("texts", NOT_READ)
def test_what_is_no_duration_is_none(texts):
    assert duration_readings(texts) is None


@pytest.mark.parametrize("pattern", [pattern for _, pattern, _ in READ])
def test_what_a_notation_writes_it_reads(pattern):
    notation = DurationNotation(pattern)
    for value in (0.0, 1.0, 59.0, 60.0, 61.0, 3_599.0, 3_600.0, 86_399.0, 86_400.0, 200_003.0):
        assert notation.value(notation.text(value)) == value, notation.text(value)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["12:10", "9:58", "1:02:33"], [730.0, 598.0, 3753.0]),
        (["12:10", "9:58", "14:02:33"], [43800.0, 35880.0, 50553.0]),
        (["12:10 PM", "9:58 AM", "1:02:33 PM"], [43800.0, 35880.0, 46953.0]),
    ],
)
def test_minutes_beside_few_hours_are_no_times_of_day(texts, values):
    table = as_table(pd.DataFrame({"x": texts}))
    assert table.values[0].tolist() == values


def test_a_fraction_that_rounds_up_carries_over():
    assert DurationNotation("m:ss.00").text(59.999) == "1:00.00"


@pytest.mark.parametrize("pattern", ["", "h", "0x 0m", "0m 0h", "%H:%M"])
def test_a_pattern_that_is_none_is_refused(pattern):
    with pytest.raises(ValueError, match="of durations"):
        DurationNotation(pattern)


def test_columns_of_files_are_numbers_whose_answers_and_files_give_the_texts_back(rng, tmp_path):
    minutes = rng.integers(30, 600, 150)
    trip = [f"{m // 60}h {m % 60}m" if m % 60 and m >= 60 else f"{m}m" if m < 60 else f"{m // 60}h" for m in minutes]
    lap = [f"{s // 60:.0f}:{s % 60:05.2f}" for s in rng.uniform(55.0, 130.0, 150)]
    pd.DataFrame({"trip": trip, "lap": lap}).to_csv(tmp_path / "t.csv", index=False)
    table = bj.read_table(tmp_path / "t.csv")
    assert [column.base for column in table.schema] == ["integer", "real"]
    np.testing.assert_array_equal(table.values[0], minutes)
    assert "in minutes" in table.schema.columns[0].reason
    assert "in seconds" in table.schema.columns[1].reason
    for name in ("t.csv", "t.parquet"):
        write_table(table, tmp_path / f"again_{name}")
        again = bj.read_table(tmp_path / f"again_{name}")
        np.testing.assert_allclose(again.values, table.values, rtol=1e-12)
        assert [column.notation for column in again.schema] == [column.notation for column in table.schema]
    stored = Schema.from_dict(table.schema.to_dict())
    assert stored == table.schema
    new = as_table(pd.DataFrame({"trip": ["50h 3m"], "lap": ["9:01"]}), schema=stored)
    assert new.values[:, 0].tolist() == [3_003.0, 541.0]


def cells(name: str, texts) -> pd.DataFrame:
    return pd.DataFrame({name: texts})


def hours(first: int, last: int, width: int = 1) -> list[str]:
    """Return times to the second between two hours, written with so many digits of hours at least."""
    return [f"{k // 60:0{width}}:{k % 60:02}:{k * 7 % 60:02}" for k in range(60 * first, 60 * last, 5)]


@pytest.mark.parametrize(
    ("name", "texts", "pattern"),
    [
        ("Dauer", ["1:28", "0:45", "4:59"], "0:00"),
        ("trip_duration", hours(0, 23, 2), "hh:mm:ss"),
        ("Zeit (min)", ["13:20", "23:47"], "0:00"),
        ("Marathon", hours(2, 6), "h:mm:ss"),
        ("net", hours(0, 3, 2), "hh:mm:ss"),
    ],
)
def test_lengths_that_may_be_times_of_day_are_known_by_name_and_size(name, texts, pattern):
    assert as_table(cells(name, texts), kinds={name: "real"}).schema.columns[0].notation == DurationNotation(pattern)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("start", hours(8, 10)),
        ("logged", hours(0, 24, 2)),
        ("wake", ["5:10", "6:20"]),
        ("Zeit", ["5:10", "6:20"]),
        ("night", hours(0, 4, 2)),
        ("duration", ["1:10 pm", "2:10 pm"]),
    ],
)
def test_times_of_day_stay_such(name, texts):
    assert isinstance(as_table(cells(name, texts), kinds={name: "real"}).schema.columns[0].notation, DateNotation)


def test_words_of_races_and_remarks_among_durations_are_missing_and_told():
    finish = [*hours(2, 6), *["DNF", "DNS"] * 4]
    with pytest.warns(BayesjptWarning, match="read as missing among numbers: 'DNF' in column 'finish'; 'DNS' in"):
        table = as_table(cells("finish", finish))
    assert table.schema.columns[0].n_missing == 8
    lap = [f"1:{k % 60:02}.{k:02}" for k in range(100)]
    with pytest.warns(BayesjptWarning, match="'crash' in column 'lap'"):
        table = as_table(cells("lap", [*lap, "crash"]))
    assert table.schema.columns[0].notation == DurationNotation("m:ss.00")
    with pytest.warns(BayesjptWarning, match="'off' in column 'lap'"):
        new = as_table(cells("lap", [*lap, "off"]), schema=table.schema)
    assert new.observed.sum() == 100


def test_words_of_races_among_labels_are_labels():
    assert as_table(cells("result", ["won", "lost", "DNF"] * 20)).schema.columns[0].labels == ("DNF", "lost", "won")
