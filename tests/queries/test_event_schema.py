"""Events that do not fit the schema: columns, labels, kinds of values; and real tables, whose cells events find."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import QueryError
from bayesjpt.queries.boxes import boxes, contains
from bayesjpt.queries.event import EventError
from bayesjpt.queries.resolve import value_in, value_name
from bayesjpt.table.schema import Column, Schema, SetAside
from bayesjpt.table.written_numbers import NumberNotation
from tests.queries.events import COLOR, COLUMNS, DAY, GRADE, SCHEMA, SMOKER, VISIT

SCHEMA = Schema(SCHEMA.columns, (SetAside("patient", "identifier or free text: 40 distinct texts in 40 cells"),))


@pytest.mark.parametrize(
    ("text", "rest", "message"),
    [
        ("real > 1 and cuont > 2", "cuont > 2", "no column 'cuont'; expected one like 'count'"),
        ("pateint = 'p1'", "pateint = 'p1'", "no column 'pateint'; expected one like 'patient', which is left out"),
        ("Real > 1", "Real > 1", "no column 'Real'; expected one like 'real'"),
        ("not `xyz` > 1", "`xyz` > 1", "no column 'xyz'; expected one of 'real', 'positive', 'count'"),
        (
            "patient = 'p1'",
            "patient = 'p1'",
            "column 'patient' is not part of the model; it is left out: identifier or free text: 40 distinct texts",
        ),
        ("color = 'rde'", "'rde'", "column 'color' has no label 'rde'; expected one like 'red'"),
        ("color != 'rde'", "'rde'", "column 'color' has no label 'rde'"),
        ("color in ('red', 'blue')", "'blue')", "column 'color' has no label 'blue'; expected one of 'red', 'rosé'"),
        ("color = 3", "3", "column 'color' holds texts, and 3 is a number. Its labels are 'red', 'rosé', 'other'."),
        ("color = true", "true", "column 'color' holds texts, and true is true or false"),
        (
            "color > 'red'",
            "'red'",
            "the labels of column 'color' have no order in the model ('red', 'rosé', 'other'); expected ==, != "
            "or in. Name the labels: color in ('red', 'rosé').",
        ),
        ("color between 'a' and 'b'", "'a' and 'b'", "have no order"),
        ("smoker > false", "false", "the labels of column 'smoker' have no order in the model ('False', 'True')"),
        ("smoker = 2", "2", "column 'smoker' has no label '2'; expected one of 'False', 'True'"),
        ("smoker = 'yes'", "'yes'", "column 'smoker' has no label 'yes'"),
        ("grade = 3", "3", "column 'grade' has no label '3'"),
        ("grade = 'ten'", "'ten'", "column 'grade' has no label 'ten'"),
        ("grade > true", "true", "column 'grade' holds numbers, and true is true or false"),
        ("grade > 'ten'", "'ten'", "column 'grade' holds numbers, and 'ten' is a text"),
        ("visit = '2020-01-02'", "'2020-01-02'", "column 'visit' has no label '2020-01-02'"),
        ("visit > 3", "3", "column 'visit' holds dates, and 3 is a number. Write '2020-01-31'"),
        ("visit = 18262", "18262", "column 'visit' holds dates, and 18262 is a number. Write"),
        ("real > '12'", "'12'", "column 'real' holds numbers, and '12' is a text. Write it without quotes."),
        ("real = 'red'", "'red'", "column 'real' holds numbers, and 'red' is a text"),
        ("count = true", "true", "column 'count' holds numbers, and true is true or false"),
        ("real > '2020-01-31'", "'2020-01-31'", "column 'real' holds numbers, and '2020-01-31' is a date"),
        ("day > 3", "3", "column 'day' holds dates, and 3 is a number. Write '2020-01-31' or '2020-01-31T12:30'"),
        ("day > '31.1.2020'", "'31.1.2020'", "column 'day' holds dates, and '31.1.2020' is a text"),
        ("day > '2020-02-30'", "'2020-02-30'", "'2020-02-30' in column 'day' is no date: February 2020 has 29 days"),
        ("day > '2020-13-01'", "'2020-13-01'", "is no date: there is no month 13"),
        ("day > '2020-01-31 24:30'", "'2020-01-31 24:30'", "is no date: there is no time 24:30"),
        ("day = ''", "''", "column 'day' holds dates"),
        ("color = red", "red", "'red' is no column; expected a column and a value. Write 'red' in single quotes."),
        ("red = color", "red = color", "'red' is no column; expected a column and a value. Write 'red' in single"),
        ("color = rde", "rde", "'rde' is no column; column 'color' has no label 'rde'; expected one like 'red'"),
        ("real > count", "count", "columns 'real' and 'count' are compared; expected a column and a value. Two col"),
        ("patient = color", "color", "columns 'patient' and 'color' are compared"),
        ("real > M", "M", "'M' is no column; column 'real' holds numbers, and 'M' is a text"),
        ("real = null", "null", "'null' is no column; expected a column and a value. There is no test for missing"),
        ("foo = bar", "foo = bar", "no column 'foo'; expected one of"),
        ("day < '0000-01-01'", "'0000-01-01'", "column 'day' holds dates"),
        (
            "day between '2020-02-01' and '2020-01-01'",
            "'2020-02-01' and '2020-01-01'",
            "column 'day' between '2020-02-01' and '2020-01-01': the lower end is above the upper one",
        ),
    ],
)
def test_event_that_does_not_fit_is_refused_and_marked(text, rest, message):
    with pytest.raises(EventError) as caught:
        boxes(text, SCHEMA)
    found, line, caret = str(caught.value).split("\n")
    assert message in found
    assert line[len(caret) - 1 :] == rest


def test_yes_and_no_are_true_and_false():
    schema = Schema((replace(COLOR, labels=("nein", "ja"), is_yes_no=True),))
    assert boxes("color = true", schema) == boxes("color = 'ja'", schema)
    assert boxes("color != false", schema) == boxes("color != 'nein'", schema)
    assert boxes(bj.col("color") == False, schema) == boxes("color = 'nein'", schema)  # noqa: E712 - an event


def test_labels_that_are_offered_are_those_of_the_table():
    with pytest.raises(QueryError, match=r"expected one of 'False', 'True'$"):
        boxes(bj.col("smoker") == "perhaps", SCHEMA)
    assert boxes(bj.col("smoker") == "other", SCHEMA)  # what the table does not show may be asked for all the same


def test_event_of_python_that_does_not_fit_is_refused_in_one_line():
    with pytest.raises(QueryError) as caught:
        boxes(bj.col("cuont") > 2, SCHEMA)
    assert str(caught.value) == "no column 'cuont'; expected one like 'count'"


def test_labels_with_a_declared_order_are_compared_by_it():
    schema = Schema((replace(COLOR, labels=("red", "amber", "green"), families=("ordinal",)),))
    (box,) = boxes("color > 'red'", schema)
    assert box == boxes("color in ('amber', 'green')", schema)[0]
    assert boxes("color between 'red' and 'amber'", schema) == boxes("color in ('red', 'amber')", schema)
    with pytest.raises(QueryError, match="no label 'gren'; expected one like 'green'"):
        boxes("color > 'gren'", schema)
    for event in ("color <= 'other'", "color >= 'other'", "color between 'red' and 'other'"):
        with pytest.raises(QueryError, match=r"'other' is neither below nor above the labels of column 'color'"):
            boxes(event, schema)


def test_number_for_a_label_that_is_a_text_is_refused_with_the_quotes_to_write():
    schema = Schema((replace(COLOR, labels=("1", "2")),))
    with pytest.raises(QueryError, match=r"holds texts, and 1 is a number\. Write '1' in single quotes"):
        boxes("color = 1", schema)


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        (COLOR, "rosé", 1),
        (COLOR, " rosé\t", 1),
        (COLOR, "<other>", 3),
        (SMOKER, True, 1),
        (SMOKER, "false", 0),
        (SMOKER, 1.0, 1),
        (GRADE, 2.5, 1),
        (GRADE, "10.0", 2),
        (GRADE, True, 0),
        (GRADE, "other", 3),
        (VISIT, "2020-01-01T00:00", 0),
        (VISIT, "2020-02-01 12:00", 1),
        (DAY, "1970-01-02 12:00", 1.5),
    ],
)
def test_value_is_read_as_in_new_rows(column, value, code):
    assert value_in(column, value) == code


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_name_of_a_value_is_read_back_as_the_value(column):
    for value in (0.0, 1.0, 2.0):
        event = bj.parse_event(f"x = {value_name(column, value)}")
        assert value_in(column, event.value) == value


@pytest.fixture(scope="module")
def table():
    frame = pd.DataFrame(
        {
            "alcohol": np.linspace(8.0, 14.0, 60),
            "volatile acidity": np.tile([0.1, 0.2, 0.35], 20),
            "quality": np.arange(60) % 7 + 3,
            "color": np.where(np.arange(60) % 3 == 0, "red", "white"),
            "organic": np.arange(60) % 2 == 0,
            "bottled": pd.date_range("2020-01-01", periods=60, freq="12h"),
        }
    )
    return frame, bj.as_table(frame)


@pytest.mark.parametrize(
    ("event", "query"),
    [
        ("alcohol > 12 and quality >= 7", "alcohol > 12 and quality >= 7"),
        ("9 < alcohol <= 12", "9 < alcohol <= 12"),
        ("`volatile acidity` = 0.35 or color = 'red'", "`volatile acidity` == 0.35 or color == 'red'"),
        ("not (quality in (3, 4) or organic = true)", "not (quality in (3, 4) or organic == True)"),
        ("bottled >= '2020-01-20' and color != 'red'", "bottled >= '2020-01-20' and color != 'red'"),
        ("bottled < '2020-01-02T12:00'", "bottled < '2020-01-02T12:00'"),
    ],
)
def test_boxes_hold_the_rows_that_pandas_finds(table, event, query):
    frame, read = table
    inside = np.any([contains(box, read.values) for box in boxes(event, read.schema)], axis=0)
    assert 0 < inside.sum() < 60
    assert np.flatnonzero(inside).tolist() == frame.query(query).index.tolist()


def test_every_recorded_cell_is_found_by_its_own_value(table):
    frame, read = table
    for row in (0, 7, 59):
        event = bj.col("alcohol") == frame["alcohol"][row]
        event = event & (bj.col("bottled") == frame["bottled"][row]) & (bj.col("organic") == frame["organic"][row])
        (box,) = boxes(event, read.schema)
        assert np.flatnonzero(contains(box, read.values)).tolist() == [row]


@pytest.mark.parametrize(
    ("event", "named"),
    [
        ("pos <= '2nd'", "pos in ('1st', '2nd')"),
        ("pos < '3rd'", "pos in ('1st', '2nd')"),
        ("pos > '2nd'", "pos in ('3rd', '4th')"),
        ("pos between '2nd' and '4th'", "pos in ('2nd', '3rd', '4th')"),
        ("pos >= '2nd'", "pos in ('2nd', '3rd', '4th')"),
    ],
)
def test_the_remedy_for_an_order_of_labels_names_those_that_are_meant(event, named):
    frame = pd.DataFrame({"pos": ["1st", "2nd", "3rd", "4th"] * 10})
    schema = bj.as_table(frame).schema
    with pytest.raises(EventError) as told:
        boxes(event, schema)
    assert "1st < 2nd < 3rd < 4th" in str(told.value)
    assert named in str(told.value)


def test_amounts_in_several_currencies_are_to_be_written_in_one():
    """No kind would make numbers of them."""
    price = [f"{mark} {k}.50" for k in range(20) for mark in ("€", "$", "£")]
    schema = bj.as_table({"price": price, "size": [k * k % 17 for k in range(60)]}).schema
    with pytest.raises(EventError, match=r"in one unit they are read\. Write them in one unit, and fit again\."):
        boxes("price > 10", schema)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("price > 500.000", "Write 500000 or 500."),
        ("price between 1.250 and 90000", "Write 1250 or 1.25."),
        ("price in (1.999, 3)", "Write 1999 or 1.9990."),
    ],
)
def test_a_number_that_a_column_writes_for_another_one_is_refused(text, remedy):
    notation = NumberNotation(",", ".", suffix=" €")
    schema = Schema((Column("price", "real", (0.0, math.inf), location=40_000.0, notation=notation),))
    with pytest.raises(EventError, match=re.escape(remedy)):
        boxes(bj.parse_event(text), schema)
    for plain in ("price > 500000", "price > 1.9990", "price > 2.5", "price > '500.000'", "price < 12345.678"):
        assert boxes(bj.parse_event(plain), schema)
    near = Schema((Column("price", "real", (0.0, math.inf), location=2.0, notation=notation),))
    event = bj.parse_event("price > 1.999")
    assert boxes(event, near)
    assert boxes(bj.parse_event(repr(event)), near)
