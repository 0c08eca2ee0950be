"""Events in Python: what comparisons make, and what the usual mistakes are answered with."""

from __future__ import annotations

import copy
import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.defaults import MAX_EVENT_DEPTH
from bayesjpt.errors import QueryError
from bayesjpt.queries.event import Between, Comparison, EventError, Membership, Place

a, b = bj.col("a"), bj.col("b")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (a > 12, "a > 12"),
        (12 < a, "a > 12"),  # noqa: SIM300  the order is the point
        (np.float64(12) < a, "a > 12"),
        (np.int64(3) >= a, "a <= 3"),
        (a == "red", "a == 'red'"),
        (a != "Bob's", "a != 'Bob''s'"),
        (a == True, "a == true"),  # noqa: E712  an event, not a test
        (a == np.False_, "a == false"),
        (a >= decimal.Decimal("0.1"), "a >= 0.1"),
        (a >= np.float32(5.1), "a >= 5.1"),
        (a >= 2.0**60, "a >= 1.152921504606847e+18"),
        (a < -0.0, "a < 0"),
        (a < np.inf, "a < inf"),
        (a > datetime.date(2020, 1, 31), "a > '2020-01-31'"),
        (a > datetime.datetime(2020, 1, 31, 12, 30), "a > '2020-01-31T12:30'"),
        (a > np.datetime64("2020-01-31T12:00", "s"), "a > '2020-01-31T12:00'"),
        (a > pd.Timestamp("2020-01-31 23:00", tz="America/New_York"), "a > '2020-02-01T04:00'"),
        (a.between(1, 2), "a between 1 and 2"),
        (a.between(1, 2, inclusive="left"), "1 <= a < 2"),
        (a.between(1, 2, inclusive="right"), "1 < a <= 2"),
        (a.between(1, 2, inclusive="neither"), "1 < a < 2"),
        (a.isin(["x", 1, True, 1]), "a in ('x', 1, true)"),
        (a.isin(range(3)), "a in (0, 1, 2)"),
        (a.isin(np.array([1.5, 2.0])), "a in (1.5, 2)"),
        (a.isin([]), "a in ()"),
        (~a.isin([1]), "a not in (1)"),
        (~(a > 1), "not a > 1"),
        (~~(a > 1), "a > 1"),
        (~a.between(1, 2), "not a between 1 and 2"),
        (~((a > 1) | (b > 1)), "not (a > 1 or b > 1)"),
        ((a > 1) & (b > 1) | (a < 0), "a > 1 and b > 1 or a < 0"),
        ((a > 1) & ((b > 1) | (a < 0)), "a > 1 and (b > 1 or a < 0)"),
        ((a > 1) & ((b > 1) & (a < 3)), "a > 1 and b > 1 and a < 3"),
        (bj.col("fixed acidity") > 1, "`fixed acidity` > 1"),
        (bj.col("a`b") > 1, "`a``b` > 1"),
        (bj.col("Not") > 1, "`Not` > 1"),
        (bj.col("") > 1, "`` > 1"),
        (bj.col("größe.2") > 1, "größe.2 > 1"),
        (bj.col("2nd") > 1, "`2nd` > 1"),
    ],
)
def test_event_reads_as_text(event, text):
    assert repr(event) == text


def test_column_reads_as_the_call_that_made_it():
    assert repr(bj.col("fixed acidity")) == "col('fixed acidity')"


def test_columns_of_an_event_are_named_once_in_order():
    assert ((b > 1) & (a > 1) & ~(b < 3)).columns == ("b", "a")


def test_events_are_equal_by_what_they_say_and_hash_alike():
    assert ((a > 1) & (b == "x")) == ((a > 1.0) & (b == "x"))
    assert hash((a > 1) & (b == "x")) == hash((a > 1) & (b == "x"))
    assert (a > 1) != (a >= 1)


def test_place_in_a_text_is_no_part_of_what_an_event_says():
    assert Comparison("a", ">", 1.0, (Place("a > 1", 0), Place("a > 1", 4))) == (a > 1)


def test_long_disjunction_in_a_loop_stays_flat():
    event = a == 0
    for number in range(1, 300):
        event = event | (a == number)
    assert len(event.parts) == 300
    assert event.depth == 1


def test_deeper_than_the_limit_is_an_error_of_ours():
    event = a > 1
    for _ in range(MAX_EVENT_DEPTH // 2):
        event = ~(event & (b > 1))
    with pytest.raises(QueryError, match=f"an event with {MAX_EVENT_DEPTH + 1} levels .* at most {MAX_EVENT_DEPTH}"):
        event & (b > 1)


ALONE = r"column 'b' alone was used as an event; .* \(bj\.col\('b'\) > 12\)"
TRUTH = r"used as true or false, as and, or, not, if and 1 < col < 2 do; expected &, \| and ~"


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: (a > 1) and (b > 1), TRUTH),
        (lambda: (a > 1) or (b > 1), TRUTH),
        (lambda: not (a > 1), TRUTH),
        (lambda: 1 < a < 2, TRUTH),
        (lambda: 1 if a.isin([1]) else 2, TRUTH),
        (lambda: (a > 1) < 2, r"an event was compared with 2; .*\.between\(lo, hi\)"),
        (lambda: a > 1 & b == 2, r"column 'b' alone was used as an event; & and \| bind tighter"),
        (lambda: a > 1 | b, ALONE),
        (lambda: a & (b > 1), "column 'a' alone"),
        (lambda: ~b, ALONE),
        (lambda: not b, ALONE),
        (lambda: (a > 1) & b, r"an event & col\('b'\); & binds tighter than comparisons.*Put each comparison in par"),
        (lambda: (a > 1) & True, "an event & True"),
        (lambda: 12 & (a > 1), "an event & 12; & binds tighter"),
        (lambda: True | (a > 1), r"an event \| True"),
        (lambda: a < b, "column 'a' compared with column 'b'; expected a value"),
        (lambda: a == b, "column 'a' compared with column 'b'"),
        (lambda: a > (b > 1), r"column 'a' compared with an event \(b > 1\)"),
        (lambda: a > np.nan, r"column 'a' compared with a missing value \(nan\).*leave the column out"),
        (lambda: a == None, "column 'a' compared with a missing value"),  # noqa: E711  the mistake
        (lambda: a == pd.NA, "missing value"),
        (lambda: a > pd.NaT, "missing value"),
        (lambda: a > np.datetime64("NaT", "D"), "missing value"),
        (lambda: a.between(1, np.nan), "missing value"),
        (lambda: a.between(3, 1), "column 'a' between 3 and 1: the lower end is above the upper one"),
        (lambda: a.between(1, 3, inclusive="yes"), "inclusive='yes'; expected one of 'both', 'left'"),
        (lambda: a == np.inf, "column 'a' compared with inf by ==; expected a finite value"),
        (lambda: a != -np.inf, "column 'a' compared with -inf by !="),
        (lambda: a.isin([1, np.inf]), "inf among the values of column 'a'"),
        (lambda: a.isin("red"), r"\.isin\('red'\); expected a list of values\. Write \.isin\(\['red'\]\)"),
        (lambda: a.isin(3), r"Write \.isin\(\[3\]\)"),
        (lambda: a == [1, 2], r"compared with \[1, 2\], of type list; .* use \.isin"),
        (lambda: a > 1j, "of type complex; expected one number, text or date"),
        (lambda: a > datetime.timedelta(1), "of type timedelta"),
        (lambda: a > 10**400, "a number beyond float64"),
        (lambda: a == 2**53 + 1, "9007199254740993, a whole number that float64 cannot hold"),
        (lambda: bj.col(3.5), "a column named 3.5, a float; expected a text"),
    ],
)
def test_mistake_in_python_is_answered_with_the_remedy(mistake, message):
    with pytest.raises(QueryError, match=message):
        mistake()


def test_columns_cannot_be_put_into_sets():
    with pytest.raises(TypeError, match="unhashable"):
        {a, b}  # noqa: B018  the mistake


def test_error_with_a_place_survives_a_copy_as_on_its_way_out_of_a_worker_process():
    error = EventError("found", "expected", "remedy", place=Place("a > 1", 2))
    again = copy.copy(error)
    assert (str(again), again.place) == (str(error), error.place)


def test_nodes_hold_floats_texts_and_booleans():
    assert a.between(1, 2) == Between("a", 1.0, 2.0, "both")
    assert a.isin([1, "x"]) == Membership("a", (1.0, "x"))
    assert type((a > np.int32(3)).value) is float
