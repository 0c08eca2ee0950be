"""Dates that are stored as numbers, 20240131 or milliseconds since 1970: they are dates where somebody asks."""

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.table.written_dates import DateNotation

DAYS = pd.date_range("2023-11-20", periods=60)
SCALES = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def counted(unit: str) -> np.ndarray:
    """Return the days as they are stored, int64 (60,)."""
    if unit == "digits":
        return DAYS.strftime("%Y%m%d").astype(int).to_numpy()
    return DAYS.to_numpy().astype("datetime64[s]").astype(np.int64) * SCALES[unit]


def table_of(unit: str, **options) -> bj.Table:
    return bj.as_table(pd.DataFrame({"day": counted(unit), "x": np.arange(60) % 7}), **options)


@pytest.mark.parametrize("unit", ["digits", *SCALES])
def test_numbers_that_stand_for_dates_are_dates_on_request(unit):
    column = table_of(unit, kinds={"day": "date"}).schema.columns[0]
    assert (column.base, column.dtype) == ("real", "datetime")
    assert column.minimum == (DAYS[0] - pd.Timestamp(0)).days
    assert column.text(column.minimum) == str(counted(unit)[0])
    assert table_of(unit).schema.columns[0].dtype == "number"


@pytest.mark.parametrize("unit", ["digits", "ms"])
def test_new_rows_answers_events_and_files_keep_them(unit, tmp_path):
    table = table_of(unit, kinds={"day": "date"})
    new = bj.as_table(pd.DataFrame({"day": counted(unit)[:3], "x": [1, 2, 3]}), schema=table.schema)
    assert np.array_equal(new.values[0], table.values[0, :3])
    texts = bj.as_table(pd.DataFrame({"day": counted(unit)[:3].astype(str), "x": [1, 2, 3]}), schema=table.schema)
    assert np.array_equal(texts.values[0], new.values[0])
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    middle = counted(unit)[30]
    by_number, by_date = (float(post.probability(f"day < {end}").mean()) for end in (middle, f"'{DAYS[30]:%Y-%m-%d}'"))
    assert by_number == by_date == pytest.approx(0.5, abs=0.1)
    table.schema.write(tmp_path / "schema.toml")
    assert 'base = "date"' in (tmp_path / "schema.toml").read_text()
    again = table_of(unit, schema=tmp_path / "schema.toml")
    assert np.array_equal(again.values, table.values)
    post.save(tmp_path / "fit.nc")
    assert bj.load(tmp_path / "fit.nc").schema.columns[0].notation == table.schema.columns[0].notation


def test_counts_of_seconds_are_summarised_as_days():
    table = table_of("s", kinds={"day": "date"})
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    assert post.types(table)["day"].values.startswith("2023-11-20 to 2024-01-18")


def test_files_that_are_read_in_parts_have_the_same_dates(tmp_path):
    frame = pd.DataFrame({"day": np.tile(counted("digits"), 10), "x": np.arange(600) % 7})
    for part in range(2):
        frame[part * 300 : (part + 1) * 300].to_csv(tmp_path / f"{part}.csv", index=False)
    whole = bj.as_table(frame, kinds={"day": "date"})
    found = bj.dataset(tmp_path / "*.csv", kinds={"day": "date"}).schema.columns[0]
    assert (found.dtype, found.notation, found.minimum) == ("datetime", DateNotation("digits", "%Y%m%d"), 19681.0)
    assert found.maximum == whole.schema.columns[0].maximum


def test_dates_written_as_texts_are_dates_on_request_too():
    table = bj.as_table(pd.DataFrame({"day": DAYS.strftime("%d.%m.%Y"), "x": range(60)}), kinds={"day": "date"})
    assert table.schema.columns[0].dtype == "datetime"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([20240131, 20240230], "'20240230' in row 2; expected"),
        ([1.5, 2.5], "'1.5' in row 1"),
        (["2024-01-31", "never"], "'never' in row 2"),
        ([True, False], "'True' in row 1"),
        ([1_700_000_000, 0, 0], "'0' in row 2; expected"),
        ([1_700_000_000, 1_700_000_000_000], "'1700000000' in row 1 and '1700000000000' in row 2; expected dates, all"),
        (["2024-01-31", "20240201"], "'2024-01-31' in row 1 and '20240201' in row 2"),
        (["2024-01-31", "01.02.2024"], "'2024-01-31' in row 1 and '01.02.2024' in row 2"),
    ],
)
def test_what_is_no_date_is_named(values, words):
    frame = pd.DataFrame({"day": values * 20, "x": range(len(values) * 20)})
    with pytest.raises(bj.errors.SchemaError, match=r"asks for 'date' but column 'day' holds") as error:
        bj.as_table(frame, kinds={"day": "date"})
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("unit", "odd"), [("digits", 20230231), ("digits", np.inf), ("ms", 1_700_000_000), ("s", 0), ("s", 1e30)]
)
def test_new_rows_that_are_no_days_are_named(unit, odd):
    schema = table_of(unit, kinds={"day": "date"}).schema
    days = [*counted(unit)[:2].tolist(), odd]
    for cells in (days, [f"{day}" for day in days]):
        with pytest.raises(bj.errors.BayesjptError, match=r"in row 3"):
            bj.as_table(pd.DataFrame({"day": cells, "x": [1, 2, 3]}), schema=schema)


@pytest.mark.parametrize("event", ["day < true", "day < '2023'", "day < 20231220", "day = 5"])
def test_events_about_what_is_no_moment_are_refused(event):
    table = table_of("s", kinds={"day": "date"})
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    with pytest.raises(bj.errors.QueryError, match="'day' holds dates"):
        post.probability(event)


@pytest.mark.parametrize("spelled", ["{}.0", "{:,}", "{} s"])
def test_numbers_in_other_notations_are_dates_in_training_and_in_new_rows(spelled):
    texts = [spelled.format(value) for value in counted("s").tolist()]
    frame = pd.DataFrame({"day": texts, "x": np.arange(60) % 7})
    table = bj.as_table(frame, kinds={"day": "date"})
    assert table.schema.columns[0].minimum == (DAYS[0] - pd.Timestamp(0)).days
    assert np.array_equal(bj.as_table(frame, schema=table.schema).values, table.values)


def test_whole_numbers_with_gaps_are_dates_in_training_and_in_new_rows(tmp_path):
    days = pd.Series(counted("digits")).astype(float)
    days[[3, 30]] = np.nan  # pandas writes 20231120.0
    pd.DataFrame({"day": days, "x": np.arange(60) % 7}).to_csv(tmp_path / "t.csv", index=False)
    table = bj.read_table(tmp_path / "t.csv", kinds={"day": "date"})
    again = bj.read_table(tmp_path / "t.csv", schema=table.schema)
    assert table.schema.columns[0].n_missing == 2
    assert np.array_equal(again.values, table.values)


@pytest.mark.parametrize("values", [counted("digits"), DAYS.strftime("%Y-%m-%d"), DAYS])
def test_categoricals_of_dates_are_dates_on_request(values):
    frame = pd.DataFrame({"day": pd.Categorical(values), "x": np.arange(60) % 7})
    column = bj.as_table(frame, kinds={"day": "date"}).schema.columns[0]
    assert (column.dtype, column.minimum) == ("datetime", 19681.0)
