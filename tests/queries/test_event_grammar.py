"""Events as text: what is read, that reading undoes writing, and where mistakes are marked."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.defaults import MAX_EVENT_DEPTH
from bayesjpt.errors import QueryError
from bayesjpt.queries.event import Between, Comparison, EventError, Membership
from bayesjpt.queries.grammar import as_event
from tests.queries.events import events

a, b, c = bj.col("a"), bj.col("b"), bj.col("c")


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("a > 12", a > 12),
        ("a>12", a > 12),
        ("  a\n>\t12 ", a > 12),
        ("12 < a", a > 12),
        ("a = 1", a == 1),
        ("a == 1", a == 1),
        ("a != 1", a != 1),
        ("a <> 1", a != 1),
        ("a = -1.5e-3", a == -0.0015),
        ("a = +.5E2", a == 50),
        ("a = 5.", a == 5),
        ("a >-1", a > -1),
        ("a > -inf", a > float("-inf")),
        ("a < Infinity", a < float("inf")),
        ("a = 'red'", a == "red"),
        ("a = 'it''s'", a == "it's"),
        ("a = ''", a == ""),
        ("'red' = a", a == "red"),
        ("a = true", a == True),  # noqa: E712  an event, not a test
        ("a = FALSE", a == False),  # noqa: E712  likewise
        ("a >= '2020-01-31'", a >= "2020-01-31"),
        ("9 < a <= 12", a.between(9, 12, inclusive="right")),
        ("12 >= a > 9", a.between(9, 12, inclusive="right")),
        ("9 <= a <= 12", a.between(9, 12)),
        ("9 < a < 12", a.between(9, 12, inclusive="neither")),
        ("12 > a >= 9", a.between(9, 12, inclusive="left")),
        ("9 < a != 12", (a > 9) & (a != 12)),
        ("9 < a > 12", (a > 9) & (a > 12)),
        ("1 < a < 2 < b", (a > 1) & (a < 2) & (b > 2)),
        ("a < 2 <= b", (a < 2) & (b >= 2)),
        ("a between 1 and 2", a.between(1, 2)),
        ("a not between 1 and 2", ~a.between(1, 2)),
        ("a between 1 and 2 and b > 1", a.between(1, 2) & (b > 1)),
        ("a in ('x', 2, true)", a.isin(["x", 2, True])),
        ("a in ()", a.isin([])),
        ("a NOT IN (1)", ~a.isin([1])),
        ("not a in (1)", ~a.isin([1])),
        ("a > 1 and b > 1 or c > 1", ((a > 1) & (b > 1)) | (c > 1)),
        ("a > 1 or b > 1 and c > 1", (a > 1) | ((b > 1) & (c > 1))),
        ("(a > 1 or b > 1) and c > 1", ((a > 1) | (b > 1)) & (c > 1)),
        ("not a > 1 and b > 1", ~(a > 1) & (b > 1)),
        ("not (a > 1 and b > 1)", ~((a > 1) & (b > 1))),
        ("not not a > 1", a > 1),
        ("!a > 1 && b > 1 || c > 1", (~(a > 1) & (b > 1)) | (c > 1)),
        ("~(a > 1) & b > 1 | c > 1", (~(a > 1) & (b > 1)) | (c > 1)),
        ("a > 1 AND NOT b > 1 Or c > 1", ((a > 1) & ~(b > 1)) | (c > 1)),
        ("`fixed acidity` > 1", bj.col("fixed acidity") > 1),
        ('"fixed ""acidity" > 1', bj.col('fixed "acidity') > 1),
        ("`a``b` > 1", bj.col("a`b") > 1),
        ("`and` > 1", bj.col("and") > 1),
        ('"2nd" > 1', bj.col("2nd") > 1),
        ("größe > 1", bj.col("größe") > 1),
        ("身長 > 1", bj.col("身長") > 1),
        (
            "order > 1 and inner > 1 and notes = 1",
            (bj.col("order") > 1) & (bj.col("inner") > 1) & (bj.col("notes") == 1),
        ),
        ("in.x > 1 or true_ = 1", (bj.col("in.x") > 1) | (bj.col("true_") == 1)),
        ("information > 1", bj.col("information") > 1),
        ("a.b_2 > 1", bj.col("a.b_2") > 1),
    ],
)
def test_text_is_read_as_the_event_in_python(text, event):
    assert bj.parse_event(text) == event


_NAMES = st.text(max_size=8)
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
_VALUES = st.one_of(_NUMBERS, st.booleans(), st.text(max_size=8))


@st.composite
def any_leaf(draw):
    """Draw a comparison of a column of any name with any values."""
    column = bj.col(draw(_NAMES))
    match draw(st.integers(0, 3)):
        case 0:
            return column.isin(draw(st.lists(_VALUES, max_size=3)))
        case 1:
            lo, hi = sorted(draw(st.tuples(_NUMBERS, _NUMBERS)))
            return column.between(lo, hi, inclusive=draw(st.sampled_from(["both", "left", "right", "neither"])))
        case 2:
            return column > draw(st.one_of(_VALUES, st.sampled_from([float("inf"), float("-inf")])))
        case _:
            return column == draw(_VALUES)


@settings(max_examples=50, deadline=None)
@given(events(leaves=any_leaf()))
@example(bj.col("`") == "'")
@example(bj.col("\\") == "\n")
@example(bj.col("inf") == "nan")
@example(~(bj.col("x") == 1) | (bj.col("x").between(5e-324, 1.7976931348623157e308)))
def test_reading_undoes_writing(event):
    again = bj.parse_event(repr(event))
    assert again == event
    assert repr(again) == repr(event)


def marked(text: str) -> tuple[str, str]:
    """Return the message for a text that is no event, and what stands above its caret."""
    with pytest.raises(EventError) as caught:
        bj.parse_event(text)
    message, line, caret = str(caught.value).split("\n")
    assert caret.strip() == "^"
    return message, line[len(caret) - 1 :]


COLUMN_OR_VALUE = "expected a column or a value"


@pytest.mark.parametrize(
    ("text", "rest", "message"),
    [
        ("alcohol >", "", f"the event ends too early; {COLUMN_OR_VALUE}"),
        ("a > 1 and", "", "ends too early; expected a column, a value or '('"),
        ("a > > 1", "> 1", f"unexpected '>' in the event; {COLUMN_OR_VALUE}"),
        ("smoker", "", "ends too early; expected a comparison (<, <=, =, !=, >=, >), 'between' or 'in'"),
        ("smoker and a > 1", "and a > 1", "A column that is true or false is compared too: smoker = true."),
        ("a > 1 b > 2", "b > 2", "unexpected 'b' in the event; expected a comparison"),
        ("a > 1 and and b > 2", "and b > 2", "A column of that name stands in backticks: `and`."),
        ("(a > 1", "", "ends too early; expected ')'"),
        ("a > 1)", ")", "unexpected ')' in the event; expected the end"),
        ("a in 1", "1", "expected '('"),
        ("a in (1", "", "expected ')' or ','"),
        ("a in (red)", "red)", "Labels stand in single quotes."),
        ("a between 1", "", "ends too early; expected 'and'"),
        ("a between 3 and 1", "3 and 1", "column 'a' between 3 and 1: the lower end is above the upper one"),
        ("3 < a < 1", "3 < a < 1", "column 'a' between 3 and 1: the lower end is above the upper one"),
        ("a = red", "red", "two columns are compared; expected a column and a value. If red is a label, write 'red'"),
        ('a = "red"', '"red"', "If \"red\" is a label, write 'red' in single quotes"),
        ("3 < 4", "4", "two values are compared; expected a column and a value"),
        ("a = 'red", "'red", "a text begins with ' and has no end"),
        ("`fixed acidity > 1", "`fixed acidity > 1", "a column's name begins with ` and has no end"),
        ("volatile acidity > 3", "acidity > 3", "stands in backticks: `volatile acidity`."),
        ("capital-gain > 0", "-gain > 0", "A name with spaces or signs stands in backticks: `capital-gain`."),
        ("2nd > 0", "2nd > 0", "stands in backticks: `2nd`."),
        ("5 < 2nd floor", "2nd floor", "stands in backticks: `2nd floor`."),
        ("a >= 2020Q1", "2020Q1", "Texts stand in single quotes: '2020Q1'."),
        ("a > 3.3V and b > 1", "3.3V and b > 1", "Texts stand in single quotes: '3.3V'."),
        ("a = 2019-W05", "-W05", "Texts stand in single quotes: '2019-W05'."),
        ("a <= Jan-22", "-22", "Texts stand in single quotes: 'Jan-22'."),
        ("a in (2020Q1, 2020Q2)", "2020Q1, 2020Q2)", "Texts stand in single quotes: '2020Q1'."),
        ("a between 2020Q1 and 2020Q4", "2020Q1 and 2020Q4", "Texts stand in single quotes: '2020Q1'."),
        ("a > 1 and b $ 2", "$ 2", "unexpected '$' in the event"),
        ("a > nan", "nan", "column 'a' compared with a missing value"),
        ("a = inf", "inf", "column 'a' compared with inf by ==; expected a finite value"),
        ("a in (1, -inf)", "-inf)", "-inf among the values of column 'a'"),
        ("a > 1e999", "1e999", "the number 1e999 is beyond float64"),
        ("a > 1e-999", "1e-999", "the number 1e-999 is beyond float64"),
        ("a > 9007199254740993", "9007199254740993", "a whole number that float64 cannot hold"),
        ("a > 1,000", ",000", "unexpected ','"),
        ("a > 1,000", ",000", "Write 1000, or 1.000 if the comma is a decimal mark."),
        ("a > 1,5", ",5", "The decimal mark of a number is a point: 1.5."),
        ("a > 2021-06-01 and b > 1", "-06-01 and b > 1", "Dates stand in single quotes: '2021-06-01'."),
        ("a between 1.6.2021 and 2.6.2021", "1.6.2021 and 2.6.2021", "Dates stand in single quotes: '1.6.2021'."),
        ("a > 2021-06-01 10:30", "-06-01 10:30", "Dates stand in single quotes: '2021-06-01 10:30'."),
        ("a > 01:30:00", ":30:00", "Times stand in single quotes: '01:30:00'."),
        ("a = 7:30 or b > 1", ":30 or b > 1", "Times stand in single quotes: '7:30'."),
        ("a is null", "is null", "There is no test for missing cells: an event is about the values of a column."),
        ("b = 1 and a IS NOT NULL", "IS NOT NULL", "There is no test for missing cells"),
        ("a is 'red'", "is 'red'", "Write = in place of 'is'."),
        ("a is not 'red'", "is not 'red'", "Write != in place of 'is not'."),
        ("a > 5%", "%", "Numbers stand without their unit: 5."),
        ("a > $2.50", "$2.50", "Numbers stand without their unit: 2.50."),
        ("a > $ 2", "$ 2", "Numbers stand without their unit: 2."),
        ("a > -$5", "-$5", "Numbers stand without their unit: -5."),
        ("a > $1,000", "$1,000", "Write 1000, or 1.000 if the comma is a decimal mark."),
        ("a > €2,50", "€2,50", "The decimal mark of a number is a point: 2.50."),
        (
            "a between $1,000.00 and $2,000.00",
            "$1,000.00 and $2,000.00",
            "without their unit and marks between thousands",
        ),
        ("a > €1.000,50", "€1.000,50", "without their unit and marks between thousands, and with a decimal point."),
        ("a > 1,000.50", ",000.50", "Numbers stand without marks between thousands"),
        ("a ≥ 3", "≥ 3", "Write >= in place of ≥."),
        ("a ≠ 3", "≠ 3", "Write != in place of ≠."),
        ("a > \u22123", "\u22123", "Write - in place of \u2212, which is another sign."),
        ("a = “red”", "“red”", "Texts stand in straight single quotes: 'red'."),
        ("a in [1, 2] and b > 1", "[1, 2] and b > 1", "Values of a list stand in parentheses: (1, 2)."),
        ("a > 25°C", "°C", "Numbers stand without their unit: 25."),
        ("a > 100 m² and b > 1", "m² and b > 1", "Numbers stand without their unit: 100."),
        ("a > 12 years", "years", "Numbers stand without their unit: 12."),
        ("a > 1 given b > 2", "given b > 2", "Evidence is given apart (given=, or --given)."),
        ("a = 5 or 6", "", "Write in (5, 6) in place of = 5 or 6."),
        ("(b = 'red' or 'blue') and a > 1", ") and a > 1", "Write in ('red', 'blue') in place of = 'red' or 'blue'."),
        ("a = 5 or b", "", "the event ends too early; expected a comparison (<, <=, =, !=, >=, >), 'between' or 'in'"),
        ("a > 6:00 PM", ":00 PM", "Times stand in single quotes: '6:00 PM'."),
        ("a > 1.250.000", "1.250.000", "Numbers stand without marks between thousands"),
        ("a > 10,000,000", ",000,000", "Numbers stand without marks between thousands"),
        ("a > 5.000,00", ",00", "Numbers stand without marks between thousands"),
        ("P(a > 1)", "(a > 1)", "An event stands without P( ), and evidence is given apart (given=, or --given)."),
        ("GDP (US$ bn) > 1", "(US$ bn) > 1", "stands in backticks: `GDP (US$ bn)`."),
        ("a => 3", "> 3", "Write >=."),
        ("a > (1 + 2)", "(1 + 2)", f"unexpected '(' in the event; {COLUMN_OR_VALUE}"),
        ("__import__('os')", "('os')", "unexpected '('"),
    ],
)
def test_mistake_in_a_text_is_marked_where_it_is(text, rest, message):
    found, under = marked(text)
    assert under == rest
    assert message in found


def test_caret_stands_under_the_place_behind_wide_letters():
    with pytest.raises(EventError) as caught:
        bj.parse_event("身長 > > 1")
    _, line, caret = str(caught.value).split("\n")
    assert line == "    身長 > > 1"
    assert caret.index("^") == 4 + 2 * 2 + 3


def test_long_text_is_shown_around_the_place():
    text = " or ".join(f"a = {number}" for number in range(200))
    with pytest.raises(EventError) as caught:
        bj.parse_event(f"{text} or b = = 1 or {text}")
    _, line, caret = str(caught.value).split("\n")
    assert len(line) < 120
    assert line[len(caret) - 1 :].startswith("= 1 or a = 0")


def test_lines_of_a_text_are_shown_as_one():
    assert marked("a > 1 and\n b > > 2")[1] == "> 2"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_text_is_no_event(text):
    with pytest.raises(QueryError, match="an empty event; expected a text such as"):
        bj.parse_event(text)


@pytest.mark.parametrize("text", [None, 3, b"a > 1"])
def test_other_things_than_texts_are_refused(text):
    with pytest.raises(QueryError, match="an event of type"):
        bj.parse_event(text)


def test_thousands_of_parentheses_cost_no_depth():
    assert bj.parse_event("(" * 5000 + "a > 1" + ")" * 5000) == (a > 1)


@pytest.mark.parametrize(
    "text",
    ["not " * 5000 + "a > 1", "(a > 1 and not " * 5000 + "a > 1" + ")" * 5000, "!" * 5000 + "a > 1"],
    ids=["not", "and not", "!"],
)
def test_thousands_of_levels_are_an_error_of_ours(text):
    with pytest.raises(
        QueryError, match=f"levels of and, or, not inside each other; expected at most {MAX_EVENT_DEPTH}"
    ):
        bj.parse_event(text)


def test_thousands_of_open_parentheses_are_an_error_of_ours():
    with pytest.raises(QueryError, match="the event ends too early"):
        bj.parse_event("(" * 5000)


def test_deepest_event_that_python_makes_can_be_read_again():
    event = a > 1
    for _ in range(MAX_EVENT_DEPTH // 2):
        event = ~(event & (b > 1))
    assert event.depth == MAX_EVENT_DEPTH
    assert bj.parse_event(repr(event)) == event


def test_places_of_columns_and_values_are_kept():
    text = "a > 1 and (bb between 2 and 3 or c in ('x', 'y', 'x'))"
    first, second = bj.parse_event(text).parts
    between, among = second.parts
    assert isinstance(first, Comparison)
    assert isinstance(between, Between)
    assert isinstance(among, Membership)
    assert [place.position for place in first.places] == [0, 4]
    assert [text[place.position :][:2] for place in between.places] == ["bb", "2 ", "3 "]
    assert [text[place.position :][:3] for place in among.places] == ["c i", "'x'", "'y'"]


def test_as_event_reads_texts_and_keeps_events():
    event = a > 1
    assert as_event(event) is event
    assert as_event("a > 1") == event


@pytest.mark.parametrize(
    ("thing", "message"),
    [(a, "column 'a' alone"), (True, "an event of type bool"), (None, "an event of type NoneType")],
)
def test_as_event_refuses_other_things(thing, message):
    with pytest.raises(QueryError, match=message):
        as_event(thing)


@pytest.mark.parametrize("text", ["date > 2020-08-01", "a > # 3", "a >"])
def test_no_error_of_the_parser_stands_before_ours(text):
    with pytest.raises(EventError) as caught:
        as_event(text)
    assert caught.value.__context__ is None
