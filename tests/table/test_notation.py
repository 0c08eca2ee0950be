"""Numbers, dates, and yes and no as people write them: read, and written back."""

from __future__ import annotations

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, SchemaError
from bayesjpt.table import written_numbers
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table
from bayesjpt.table.write import write_table
from bayesjpt.table.written_dates import MONTHS, DateNotation, date_readings
from bayesjpt.table.written_numbers import NumberNotation, number_readings
from bayesjpt.table.yes_no import PAIRS

pytestmark = pytest.mark.filterwarnings("ignore:constant columns")

NUMBERS = [
    (["1.798,28", "12,5", "-3,25"], [1798.28, 12.5, -3.25]),
    (["$12,345.67", "$5.00", "($3.20)"], [12345.67, 5.0, -3.2]),
    (["(1.234,56) €", "12,50 €"], [-1234.56, 12.5]),
    (["$(3.20)", "$5.00", "$ (1.75)"], [-3.2, 5.0, -1.75]),
    (["12,3%", "5 %", "41,1%"], [12.3, 5.0, 41.1]),
    (["170 cm", "165cm", "171.5 cm"], [170.0, 165.0, 171.5]),
    (["1 200 €", "800 €", "1\u00a0000,5 €"], [1200.0, 800.0, 1000.5]),
    (["1'200.50", "CHF 1'000.00", "CHF 3.00"], [1200.5, 1000.0, 3.0]),
    (["CHF 69\u2019971.-", "CHF 850.-", "CHF 1'000.-"], [69971.0, 850.0, 1000.0]),
    (["850.\u2013", "12.50"], [850.0, 12.5]),
    (["12-", "13", "1.5"], [-12.0, 13.0, 1.5]),
    (["-$5", "$-6", "$1"], [-5.0, -6.0, 1.0]),
    (["12,34,567", "1,00,000", "5"], [1234567.0, 100000.0, 5.0]),
    (["USD 5.25", "usd 6", "7"], [5.25, 6.0, 7.0]),
    (["\u22125 °C", "3 °C", "0 °C"], [-5.0, 3.0, 0.0]),
    (["1.5 km/h", "2 km/h", "1,200.5 km/h"], [1.5, 2.0, 1200.5]),
    (["1,5E+03", "2", "3,25"], [1500.0, 2.0, 3.25]),
]

NO_NUMBERS = [
    ["A11", "A12"],
    ["10-20", "20-30"],
    ["1st", "2nd"],
    ["10 kg", "5 g"],
    ["$5", "€6"],
    ["1/2", "3/4"],
    ["+1-555-993-1555", "+1-555-993-1556"],
    ["< 5", "5"],
    ["1.2.3", "1.2.4"],
    ["1,2345,6", "1"],
    ["(5", "6)"],
    ["(5) €)", "6 €"],
    ["$(5", "$6"],
    ["007", "010"],
    ["--5", "5"],
    ["1234_a", "1"],
]


@pytest.mark.parametrize(("texts", "expected"), NUMBERS)
def test_numbers_are_read_as_people_write_them(texts, expected):
    found = number_readings(texts)
    assert found is not None
    np.testing.assert_allclose(found.values[0], expected, rtol=1e-15)
    assert len(found.notations) == 1


@pytest.mark.parametrize("texts", NO_NUMBERS)
def test_what_is_no_number_is_none(texts):
    assert number_readings(texts) is None


NOTATIONS = [
    NumberNotation(decimal, group, prefix, suffix, digits, negative)
    for decimal, group in ((".", ","), (",", "."), (",", " "), (".", "'"), (".", ""), (",", ""))
    for prefix, suffix in (("", ""), ("$", ""), ("", " cm"), ("EUR ", ""), ("", "%"))
    for digits in (2, -1)
    for negative in ("-", "(", "trailing", "+-")
]


@given(st.from_regex(r"-?[0-9.,]{1,8}", fullmatch=True))
def test_plain_numbers_have_the_parts_that_others_have(text):
    # a space is no part of a number, but no plain number has one
    assert written_numbers.parted_of(text) == written_numbers.parted_of(f"{text} ")


@given(st.lists(st.from_regex(r"-?[0-9]{1,4}([.,][0-9]{0,4})?", fullmatch=True), min_size=1, max_size=4))
def test_the_decimal_mark_of_plain_numbers_is_the_one_that_readings_tell(texts):
    found = written_numbers.plain_decimal(texts)
    if found is not None:
        readings = number_readings(texts)
        assert readings is not None
        assert readings.tells_decimal == found


@given(st.sampled_from(NOTATIONS), st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=9, unique=True))
def test_what_a_notation_writes_it_reads(notation, hundredths):
    for value in np.array(hundredths) / 100.0:
        assert notation.value(notation.text(value)) == value


@given(st.sampled_from(NOTATIONS), st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=9, unique=True))
def test_what_a_notation_writes_is_among_the_ways_to_read_it(notation, hundredths):
    values = np.array(hundredths) / 100.0
    found = number_readings([notation.text(value) for value in values])
    assert found is not None
    assert any(np.array_equal(values, each) for each in found.values)


@pytest.mark.parametrize(
    ("other", "value", "word"),
    [(["12,5", "3,25", "4,5"], 1.234, "as in column 'other'"), (["1,200.5", "3.25", "4.5"], 1234.0, "column 'other'")],
)
def test_an_ambiguous_column_is_read_as_the_others_are_and_that_is_said(other, value, word):
    frame = pd.DataFrame({"x": ["1,234", "2,500", "7,125"], "other": other})
    with pytest.warns(BayesjptWarning, match=f"'1,234' in column 'x' is read as {value:g}.*{word}"):
        table = as_table(frame)
    assert table.values[0, 0] == value


def test_a_comma_before_three_digits_in_every_cell_parts_thousands_where_nothing_else_tells():
    with pytest.warns(BayesjptWarning, match="'1,234' in column 'x' is read as 1234"):
        assert as_table(pd.DataFrame({"x": ["1,234", "2,500", "7,125"]})).values[0].tolist() == [1234, 2500, 7125]


@pytest.mark.parametrize(("decimal", "value"), [(",", 1.234), (".", 1234.0)])
def test_the_option_decides_without_a_word(decimal, value):
    table = as_table(pd.DataFrame({"x": ["1,234", "2,500", "7,125"]}), decimal=decimal)
    assert table.values[0, 0] == value


def test_plain_numbers_with_three_digits_are_plain_numbers_without_a_word():
    assert as_table(pd.DataFrame({"x": ["1.234", "2.500", "7.125"]})).values[0, 0] == 1.234


def test_points_that_may_part_thousands_in_every_cell_are_told(tmp_path):
    frame = pd.DataFrame({"x": ["12.377", "2.500", "45.120"]})
    with pytest.warns(BayesjptWarning, match=r"'12.377' in column 'x' is read as 12.377 \(decimal=',', or"):
        assert as_table(frame).values[0].tolist() == [12.377, 2.5, 45.12]
    assert as_table(frame.assign(y=["0.5", "1.25", "2"])).values[0, 0] == 12.377  # the other column tells


@pytest.mark.parametrize("mark", [",", "."])
def test_thousands_are_told_by_the_size_of_the_numbers_that_need_no_mark(mark, tmp_path):
    written = [text.replace(",", mark) for text in ("412", "990", "1,250", "77", "-2,007", "640", "3,500")]
    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + "".join(f"{text};{k}{mark}5\n" for k, text in enumerate(written)))
    with pytest.warns(BayesjptWarning, match=rf"'-2{re.escape(mark)}007' in column 'x' is read as -2007"):
        table = bj.read_table(path)
    column = table.schema.columns[0]
    assert (column.minimum, column.maximum) == (-2007.0, 3500.0)
    own = bj.read_table(path, decimal=mark).schema.columns[0]  # who names the mark knows it
    assert (own.minimum, own.maximum) == (-2.007, 990.0)


def test_a_column_in_two_notations_is_excluded_and_says_which(tmp_path):
    cells = [f"{k}{',.'[k % 2]}{10 + k}" for k in range(60)]
    schema = as_table(pd.DataFrame({"x": cells, "y": [0.5, 1.25, 2.0] * 20})).schema
    assert schema.names == ("y",)
    assert "decimal commas and points, '0,10' and '1.11'" in schema.set_aside[0].reason


def test_whole_numbers_beside_three_decimals_are_no_thousands():
    assert number_readings(["1,250", "2", "3", "4", "5,111"]).likely_decimal == ""


def test_points_part_thousands_where_the_decimal_mark_is_a_comma():
    assert as_table(pd.DataFrame({"x": ["1.234", "2.500", "7.125"]}), decimal=",").values[0, 0] == 1234.0


DATES = [
    (["28.02.2024", "01.03.2024"], [(2024, 2, 28), (2024, 3, 1)]),
    (["2/28/24", "12/1/99"], [(2024, 2, 28), (1999, 12, 1)]),
    (["2024/02/28", "2024/03/01"], [(2024, 2, 28), (2024, 3, 1)]),
    (["28-Feb-24", "01-Mar-23"], [(2024, 2, 28), (2023, 3, 1)]),
    (["28. Februar 2024", "3. März 2023"], [(2024, 2, 28), (2023, 3, 3)]),
    (["28/Feb/2024:02:00:00 +0200", "03/Mar/2023:00:00:00 +0000"], [(2024, 2, 28), (2023, 3, 3)]),
    (["Feb 28, 2024", "Sep 1, 2023"], [(2024, 2, 28), (2023, 9, 1)]),
    (["28 de febrero de 2024", "1 de marzo de 2023"], [(2024, 2, 28), (2023, 3, 1)]),
    (["1er mars 2024", "14 juillet 2023"], [(2024, 3, 1), (2023, 7, 14)]),
    (["Mon, 26 Feb 2024", "Tue, 27 Feb 2024"], [(2024, 2, 26), (2024, 2, 27)]),
    (["2024-02", "2023-11"], [(2024, 2, 1), (2023, 11, 1)]),
    (["02/2024", "11/2023"], [(2024, 2, 1), (2023, 11, 1)]),
    (["28.2.2024 14:30", "1.3.2024 09:05"], [(2024, 2, 28, 14, 30), (2024, 3, 1, 9, 5)]),
    (["02/28/2024 2:30 PM", "12/01/2024 12:05 AM"], [(2024, 2, 28, 14, 30), (2024, 12, 1, 0, 5)]),
    (["2024-02-28T10:00:00+01:00", "2024-02-28T10:00:00Z"], [(2024, 2, 28, 9), (2024, 2, 28, 10)]),
]


@pytest.mark.parametrize(("texts", "expected"), DATES)
def test_dates_are_read_as_people_write_them(texts, expected):
    found = date_readings(texts)
    assert found is not None
    epoch = datetime.datetime(1970, 1, 1)
    days = [(datetime.datetime(*parts) - epoch) / datetime.timedelta(days=1) for parts in expected]
    np.testing.assert_allclose(found.values[0], days, rtol=1e-12)


@pytest.mark.parametrize(
    "texts", [["31.02.2024"], ["1.2.3"], ["555 99 1234"], ["25:00"], ["13/13/2024"], ["May"], [""]]
)
def test_what_is_no_date_is_none(texts):
    assert date_readings(texts) is None


PATTERNS = [
    DateNotation("dmy", "%d.%m.%Y"),
    DateNotation("dmy", "%e.%n.%y"),
    DateNotation("mdy", "%m/%d/%Y %H:%M"),
    DateNotation("mdy", "%n/%e/%Y %l:%M %p"),
    DateNotation("ymd", "%Y/%m/%d"),
    DateNotation("ymd", "%Y-%m-%dT%H:%M:%S%z"),
    *(DateNotation("name", "%e %B %Y", language) for language in MONTHS),
    DateNotation("name", "%B %e, %Y"),
    DateNotation("name", "%d-%b-%Y"),
]


MONTHS_OF_YEARS = [
    (["9/2021", "12/2020"], "%n/%Y"),
    (["09/2021", "12/2020"], "%m/%Y"),
    (["2021-09", "2020-12"], "%Y-%m"),
]


@pytest.mark.parametrize(("texts", "pattern"), MONTHS_OF_YEARS)
def test_months_of_years_are_dates_of_their_first_days(texts, pattern):
    found = date_readings(texts)
    assert found is not None
    assert found.notations == (DateNotation("month", pattern),)
    assert found.values[0].tolist() == [18871.0, 18597.0]
    assert [found.notations[0].text(value) for value in found.values[0]] == texts


@pytest.mark.parametrize("texts", [["1/4", "3/8"], ["9/1021", "3/2021"], ["13/2021"]])
def test_fractions_are_no_months(texts):
    assert date_readings(texts) is None


@given(st.sampled_from(PATTERNS), st.integers(0, 20_000), st.integers(0, 1439))
def test_what_a_notation_of_dates_writes_it_reads(notation, day, minute):
    value = day + (minute / 1440.0 if "%M" in notation.pattern else 0.0)
    assert notation.value(notation.text(value)) == pytest.approx(value, abs=1e-9)


@given(st.sampled_from(PATTERNS), st.lists(st.integers(0, 17_000), min_size=20, max_size=20, unique=True))
def test_the_notation_of_dates_is_found_and_gives_the_text_back(notation, days):
    texts = [notation.text(day + 0.5) for day in days]
    found = date_readings(texts)
    assert found is not None
    written = [[one.text(value) for value in values] for one, values in zip(found.notations, found.values, strict=True)]
    assert texts in written


@pytest.mark.parametrize(
    ("texts", "unit", "first"),
    [(["14:30", "9:05", "0:00"], 870, "14:30"), (["1:05 PM", "12:30 AM", "1:06 PM"], 785, "1:05 PM")],
)
def test_times_are_minutes_since_midnight(texts, unit, first):
    table = as_table(pd.DataFrame({"x": texts}))
    assert table.values[0, 0] == unit
    assert table.schema.columns[0].text(unit) == first


def test_an_ambiguous_date_is_read_as_the_others_are_and_that_is_said():
    frame = pd.DataFrame(
        {"x": ["03/04/2024", "05/06/2024", "01/02/2024"], "y": ["13/04/2024", "15/06/2024", "01/02/2023"]}
    )
    with pytest.warns(BayesjptWarning, match="'01/02/2024' in column 'x' is read as 2024-02-01, as in column 'y'"):
        as_table(frame)


@pytest.mark.parametrize(("day_first", "month"), [(True, "2024-04-03"), (False, "2024-03-04")])
def test_the_option_decides_which_number_is_the_day(day_first, month):
    table = as_table(pd.DataFrame({"x": ["03/04/2024", "05/06/2024", "01/02/2024"]}), day_first=day_first)
    assert str(table.to_frame()["x"][0].date()) == month


def test_slashes_put_the_month_first_and_points_the_day_where_nothing_tells():
    with pytest.warns(BayesjptWarning, match="'03/04/2024' .* 2024-03-04.*; '03.04.2024' .* 2024-04-03"):
        as_table(pd.DataFrame({"x": ["03/04/2024", "05/06/2024"], "y": ["03.04.2024", "05.06.2024"]}))


@pytest.mark.parametrize(("no", "yes"), PAIRS)
def test_yes_and_no_are_one_label_each_however_they_are_spelled(no, yes):
    spelled = [*no, *yes, *(text.upper() for text in yes)]
    if {"true", "false"} & {text.lower() for text in spelled}:
        return  # booleans of their own
    column = as_table(pd.DataFrame({"x": spelled * 3})).schema.columns[0]
    assert len(column.labels) == 2
    assert column.labels[0].casefold() in no
    assert column.labels[1].casefold() in yes


def test_new_rows_may_spell_yes_otherwise():
    schema = as_table(pd.DataFrame({"x": ["ja", "nein", "Ja"]})).schema
    assert schema.columns[0].labels == ("nein", "Ja") or schema.columns[0].labels == ("nein", "ja")
    new = as_table(pd.DataFrame({"x": ["JA", "n", "Nein"]}), schema=schema)
    assert new.values[0].tolist() == [1.0, 0.0, 0.0]


def test_labels_with_units_keep_their_texts_in_the_order_of_their_numbers():
    column = as_table(pd.DataFrame({"x": ["10 door", "2 door"] * 9})).schema.columns[0]
    assert column.labels == ("2 door", "10 door")


def german():
    return pd.DataFrame(
        {
            "Umsatz": [f"{1000 + 37 * k % 411:,}".replace(",", ".") + f",{k % 100:02}" for k in range(60)],
            "Datum": [f"{1 + k % 28:02}.{1 + k % 12:02}.2024" for k in range(60)],
            "Rabatt": [f"{k % 40},{k % 7}%" for k in range(60)],
            "Aktiv": ["ja", "nein", "ja"] * 20,
        }
    )


def test_a_schema_keeps_how_columns_are_written_when_it_is_stored():
    schema = as_table(german()).schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert [schema.columns[k].text(v) for k, v in ((0, 1234.5), (1, 0.0), (2, 3.5))] == [
        "1.234,50",
        "01.01.1970",
        "3,5%",
    ]


@pytest.mark.parametrize(
    "entry",
    [
        {"decimal": "x", "group": "", "prefix": "", "suffix": "", "digits": 1, "negative": "-"},
        {"decimal": ".", "group": "", "prefix": "", "suffix": "", "digits": 10**9, "negative": "-"},
        {"order": "dmy", "pattern": "%d.%m.%Q", "language": "en"},
        {"order": "dmy", "pattern": "%d", "language": "tlh"},
    ],
)
def test_a_stored_notation_that_is_none_is_refused(entry):
    plain = as_table(german()).schema.to_dict()
    plain["columns"][0]["notation"] = entry
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.from_dict(plain)


def test_new_rows_are_read_as_training_rows_were_or_as_plain_numbers():
    schema = as_table(german()).schema
    new = pd.DataFrame({"Umsatz": ["1.234", "5,5", None], "Rabatt": ["3,5%", "4", "5"], "Datum": ["02.01.1970"] * 3})
    table = as_table(new, schema=schema)
    assert table.values[0, :2].tolist() == [1234.0, 5.5]
    assert table.values[2].tolist() == [3.5, 4.0, 5.0]
    plain = as_table(pd.DataFrame({"Umsatz": [12.5], "Datum": [pd.Timestamp("1970-01-02")]}), schema=schema)
    assert plain.values[:2, 0].tolist() == [12.5, 1.0]


def test_a_text_that_is_not_in_the_notation_is_refused_with_column_row_and_remedy():
    schema = as_table(german()).schema
    with pytest.raises(SchemaError, match=r"column 'Umsatz' holds 'viel' in row 2; expected numbers.*Mend"):
        as_table(pd.DataFrame({"Umsatz": ["1,5", "viel"]}), schema=schema)


def test_events_take_the_user_s_texts():
    table = as_table(german())
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    for written, plain in [
        ("Umsatz > '1.234,50'", "Umsatz > 1234.5"),
        ("Datum < '15.06.2024'", "Datum < '2024-06-15'"),
        ("Aktiv = 'JA'", "Aktiv = 'ja'"),
    ]:
        assert float(post.probability(written)[0, 0]) == float(post.probability(plain)[0, 0])


def test_frames_and_files_decide_alike(tmp_path):
    german().to_csv(tmp_path / "t.csv", index=False, sep=";")
    assert bj.read_table(tmp_path / "t.csv").schema == as_table(german()).schema


def test_times_of_day_are_written_as_they_were_read_to_typed_files_too(tmp_path):
    table = as_table(pd.DataFrame({"at": ["14:30", "09:05", None, "23:59"], "x": [1.5, 2.5, 0.5, 7.25]}))
    write_table(table, tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet")["at"].fillna("").tolist() == ["14:30", "09:05", "", "23:59"]


def test_what_is_said_of_several_columns_is_said_once_with_the_option():
    texts = ["1,234", "5,678", "9,012"]
    with pytest.warns(BayesjptWarning) as told:
        as_table({f"c{k}": texts for k in range(6)} | {"y": ["a", "b", "a"]})
    assert [str(one.message) for one in told] == [
        "'1,234' in column 'c0' is read as 1234, '1,234' in column 'c1' as 1234, '1,234' in column 'c2' as 1234, "
        "'1,234' in column 'c3' as 1234 (decimal=',', or --decimal , reads them otherwise); and 2 columns more"
    ]


@pytest.mark.parametrize(
    ("text", "option"),
    [("03/04/2020", "day_first=True, or --day-first,"), ("03.04.2020", "day_first=False, or --month-first,")],
)
def test_an_ambiguous_date_tells_the_option_that_reads_it_otherwise(text, option):
    with pytest.warns(BayesjptWarning) as told:
        as_table({"d": [text, text.replace("03", "05")], "y": ["a", "b"]})
    assert f"({option} reads it otherwise)" in str(told[0].message)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1.234,56+", "12,30-", "7,00+"], [1234.56, -12.3, 7.0]),
        (["5+", "6-"], [5.0, -6.0]),
        (["5+", "6+"], None),
        (["65+", "18"], None),
        (["2+", "2", "2-", "3-"], None),  # marks: 2+ and 2 are not the same
        (["5+", "6-", "0"], [5.0, -6.0, 0.0]),
    ],
)
def test_a_plus_behind_numbers_is_a_sign_where_others_have_a_minus_there(texts, values):
    found = number_readings(texts)
    assert (None if found is None else found.values[0].tolist()) == values


def test_amounts_are_no_identifiers_whatever_their_name(rng):
    amounts = [f"₹{value:,}" for value in rng.integers(1_000, 900_000, 200)]
    with pytest.warns(BayesjptWarning, match="is read as"):  # 105,862 may have a decimal comma
        table = as_table(pd.DataFrame({"inr": amounts, "x": rng.normal(size=200)}))
    assert table.names == ("inr", "x")


@pytest.mark.parametrize(
    ("texts", "example", "value"),
    [(["1E5", "2E3", "105"], "1E5", "100000"), (["1.1", "1.2", "1.9", "1.10", "2.0"], "1.10", "1.1")],
)
def test_codes_that_are_read_as_numbers_are_told_and_kept_as_they_are_written_on_request(texts, example, value):
    frame = pd.DataFrame({"code": texts * 3, "y": np.arange(3.0 * len(texts)) / 7.0})
    with pytest.warns(BayesjptWarning, match=f"{example!r} in column 'code' is read as {value} .*--kind code=category"):
        as_table(frame)
    assert set(as_table(frame, kinds={"code": "category"}).schema.columns[0].labels) == set(texts)


@pytest.mark.parametrize("texts", [["1e+05", "2e+03"], ["1.0E5", "2.5E3"], ["1.10", "1.25", "2.00"]])
def test_numbers_that_programs_write_are_read_without_a_word(texts):
    column = as_table({"x": texts * 3, "y": np.arange(3.0 * len(texts)) / 7.0}).schema.columns[0]
    assert column.dtype == "number"
    assert column.notation is None or column.notation.is_plain


def test_versions_that_end_in_a_zero_are_labels_as_written_or_told():
    few = as_table({"v": ["1.9", "1.10", "2.1"] * 40, "y": np.arange(120.0) / 7.0})
    assert few.schema.columns[0].labels == ("1.10", "1.9", "2.1")
    many = [f"{major}.{minor}" for major in range(1, 5) for minor in range(1, 16)]
    many = [text for text in many if text not in ("1.1", "2.1", "3.1", "4.1")]
    with pytest.warns(BayesjptWarning, match=r"'1.10' in column 'v' is read as 1.1 .*--kind v=category"):
        as_table({"v": many * 2, "y": np.arange(2.0 * len(many)) / 7.0})


def test_numbers_keep_the_zeros_behind_the_point_that_all_are_written_with(tmp_path):
    written = [f"{x:.2f}" for x in np.linspace(0.5, 9.4, 90).round(1)]
    table = as_table({"price": written, "size": [f"{k / 4:g}" for k in range(90)]})
    write_table(table, tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv", dtype=str)["price"].tolist() == written
    assert table.schema.columns[0].resolution == 0.1
    assert table.schema.columns[1].notation is None


def test_versions_of_one_number_stay_apart_where_numbers_are_labels():
    table = as_table({"version": ["1.1", "1.10", "2.5", "8.0"] * 25, "y": np.arange(100.0) / 7.0})
    assert table.schema.columns[0].labels == ("1.1", "1.10", "2.5", "8.0")
    post = bj.fit(table, seed=1, n_structures=1, chains=1, tune=5, draws=5, progress=False)
    assert post.types()["version"].type == "nominal"


PLACES = [
    ("Namibia", "DE FR ZA BW US"),
    ("Namibia", "DE NZ ZA"),
    ("Namibia", "DE ZA"),
    ("North America", "AF EU OC"),
    ("North America", "AS EU"),
    ("", "FL CA TX NY WA"),
    ("", "SI NO"),
]


@pytest.mark.parametrize(("place", "others"), PLACES)
def test_a_missing_cell_that_is_also_the_code_of_a_place_is_told(tmp_path, place, others):
    path = tmp_path / "places.csv"
    codes = [*others.split(), "NA"] * 20
    path.write_text("\n".join(["place,n", *(f"{code},{k}" for k, code in enumerate(codes))]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table = bj.read_table(path)
    assert table.schema.columns[0].n_missing == 20
    found = [str(one.message) for one in told if "'NA'" in str(one.message)]
    assert [f"if it is {place}" in message for message in found] == [True] * bool(place)
