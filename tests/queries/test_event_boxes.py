"""Boxes of events: their union is the event, they are disjoint, and there are as few as promised."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.errors import QueryError
from bayesjpt.queries.boxes import CERTAIN, Box, boxes, complement, contains, intersect, intersections, why_null
from bayesjpt.queries.event import all_of, any_of
from bayesjpt.queries.grammar import as_event
from bayesjpt.table.schema import Column, Schema
from tests import examples as ex
from tests.conftest import SEED
from tests.queries.events import ATOMIC, BALANCE, COLUMNS, DAY, SCHEMA, comparisons, events, holds, rows

N_ROW = 200
UP, DOWN = np.inf, -np.inf


def above(value: float) -> float:
    return float(np.nextafter(value, np.inf))


def below(value: float) -> float:
    return float(np.nextafter(value, -np.inf))


ROWS = st.integers(0, 9).map(lambda number: rows(N_ROW, np.random.default_rng([SEED, number, zlib.crc32(b"events")])))


def sets(event, schema: Schema = SCHEMA) -> list[dict[str, list]]:
    """Return the boxes of an event as plain lists by column name."""
    return [
        {schema.names[column]: intervals.tolist() for column, intervals in box.intervals.items()}
        for box in boxes(event, schema)
    ]


# --- laws


@settings(max_examples=70, deadline=None)
@given(event=events(), values=ROWS)
def test_boxes_hold_the_rows_that_the_definition_says(event, values):
    inside = sum((contains(box, values) for box in boxes(event, SCHEMA)), start=np.zeros(N_ROW, int))
    assert inside.tolist() == [int(holds(event, row)) for row in values.T]


@settings(max_examples=35, deadline=None)
@given(event=events())
def test_boxes_are_pairwise_disjoint(event):
    found = boxes(event, SCHEMA)
    assert all(intersect(box, other) is None for i, box in enumerate(found) for other in found[:i])


@settings(max_examples=35, deadline=None)
@given(event=events())
def test_intervals_are_closed_ascending_apart_and_whole_where_the_column_is(event):
    for box in boxes(event, SCHEMA):
        for position, intervals in box.intervals.items():
            column = COLUMNS[position]
            assert intervals.shape[0] >= 1
            assert (intervals[:, 0] <= intervals[:, 1]).all()
            gap = intervals[1:, 0] > np.nextafter(intervals[:-1, 1], np.inf)
            if column.base != "real":
                gap = intervals[1:, 0] > intervals[:-1, 1] + 1.0
                finite = intervals[np.isfinite(intervals)]
                assert (finite == np.rint(finite)).all()
                assert column is BALANCE or (intervals >= 0.0).all()
            assert gap.all()
            assert not intervals.flags.writeable


@settings(max_examples=35, deadline=None)
@given(event=events(), values=ROWS)
def test_complement_of_boxes_holds_exactly_the_other_rows(event, values):
    outside = sum(
        (contains(box, values) for box in complement(boxes(event, SCHEMA), SCHEMA)), start=np.zeros(N_ROW, int)
    )
    assert outside.tolist() == [int(not holds(event, row)) for row in values.T]


@settings(max_examples=20, deadline=None)
@given(first=events(), second=events(), values=ROWS)
def test_intersections_are_the_boxes_of_the_conjunction(first, second, values):
    found = intersections(boxes(first, SCHEMA), boxes(second, SCHEMA))
    inside = sum((contains(box, values) for box in found), start=np.zeros(N_ROW, int))
    assert inside.tolist() == [int(holds(first & second, row)) for row in values.T]


@settings(max_examples=20, deadline=None)
@given(event=events(max_leaves=4))
def test_an_event_or_its_complement_is_certain_and_both_are_impossible(event):
    assert boxes(event | ~event, SCHEMA) == CERTAIN
    assert boxes(event & ~event, SCHEMA) == ()


@settings(max_examples=20, deadline=None)
@given(st.lists(comparisons(), min_size=1, max_size=12))
def test_disjunction_of_comparisons_has_at_most_one_box_a_column(parts):
    n_column = len({part.column for part in parts})
    assert len(boxes(any_of(parts), SCHEMA)) <= n_column


@settings(max_examples=20, deadline=None)
@given(st.lists(comparisons(), min_size=1, max_size=12))
def test_conjunction_of_comparisons_has_at_most_one_box(parts):
    assert len(boxes(all_of(parts), SCHEMA)) <= 1


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(COLUMNS).flatmap(lambda column: events((column,), max_leaves=6)))
def test_event_of_one_column_has_at_most_one_box(event):
    assert len(boxes(event, SCHEMA)) <= 1


@settings(max_examples=20, deadline=None)
@given(st.lists(comparisons(), min_size=1, max_size=8))
def test_complement_of_a_box_has_at_most_as_many_boxes_as_it_has_columns(parts):
    for box in boxes(all_of(parts), SCHEMA):
        assert len(complement(box, SCHEMA)) <= len(box.columns)


# --- known answers


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("real > 1", [{"real": [[above(1.0), UP]]}]),
        ("real >= 1", [{"real": [[1.0, UP]]}]),
        ("real < 0", [{"real": [[DOWN, below(0.0)]]}]),
        ("real != 1", [{"real": [[DOWN, below(1.0)], [above(1.0), UP]]}]),
        ("1 < real <= 2", [{"real": [[above(1.0), 2.0]]}]),
        ("1 < real < 1", []),
        ("positive >= 0", [{"positive": [[0.0, UP]]}]),
        ("count > 2.5", [{"count": [[3.0, UP]]}]),
        ("count >= 2.5", [{"count": [[3.0, UP]]}]),
        ("count < 2.5", [{"count": [[0.0, 2.0]]}]),
        ("count <= 2.5", [{"count": [[0.0, 2.0]]}]),
        ("count > 2", [{"count": [[3.0, UP]]}]),
        ("count < 2", [{"count": [[0.0, 1.0]]}]),
        ("count = 2.5", []),
        ("count < 0", []),
        ("count >= -7", [{}]),
        ("count not in (1, 2, 4)", [{"count": [[0.0, 0.0], [3.0, 3.0], [5.0, UP]]}]),
        ("balance < -2.5", [{"balance": [[DOWN, -3.0]]}]),
        ("balance > -12", [{"balance": [[-11.0, UP]]}]),
        ("label = 'b'", [{"label": [[1.0, 1.0]]}]),
        ("label != 'b'", [{"label": [[0.0, 0.0], [2.0, 3.0]]}]),
        ("label = 'other'", [{"label": [[3.0, 3.0]]}]),
        ("label in ('a', 'b', 'c')", [{"label": [[0.0, 2.0]]}]),
        ("label in ('a', 'b', 'c', 'other')", [{}]),
        ("color = 'other'", [{"color": [[2.0, 2.0]]}]),
        ("color = '<other>'", [{"color": [[3.0, 3.0]]}]),
        ("smoker = true", [{"smoker": [[1.0, 1.0]]}]),
        ("smoker = 'TRUE' or smoker = 0", [{"smoker": [[0.0, 1.0]]}]),
        ("grade = '2.50'", [{"grade": [[1.0, 1.0]]}]),
        ("grade > 1", [{"grade": [[1.0, 2.0]]}]),
        ("not grade <= 1", [{"grade": [[1.0, 3.0]]}]),
        ("visit = '2020-02-01 12:00:00'", [{"visit": [[1.0, 1.0]]}]),
        ("visit > '2020-01-01'", [{"visit": [[1.0, 1.0]]}]),
        ("day >= '1970-01-02T12:00'", [{"day": [[1.5, UP]]}]),
        ("real < inf", [{}]),
        ("real > inf", []),
        ("real >= inf", []),
        ("count > -inf", [{}]),
        ("real in ()", []),
        ("real not in ()", [{}]),
        ("real < 1 or real >= 1", [{}]),
        ("real <= 1 or real > 1", [{}]),
        ("count <= 3 or count >= 4", [{}]),
        (
            "real > 1 or count > 2 or label = 'a'",
            [
                {"real": [[above(1.0), UP]]},
                {"real": [[DOWN, 1.0]], "count": [[3.0, UP]]},
                {"real": [[DOWN, 1.0]], "count": [[0.0, 2.0]], "label": [[0.0, 0.0]]},
            ],
        ),
    ],
)
def test_boxes_of_an_event_are_known(event, expected):
    assert sets(event) == expected


def test_whole_numbers_beyond_exact_ones_are_still_apart():
    event = (bj.col("count") > 2.0**60) | (bj.col("count") < 2.0**60)
    assert sets(event) == sets(bj.col("count") != 2.0**60)
    assert len(sets(event)[0]["count"]) == 2


def test_largest_number_has_nothing_above():
    assert sets(bj.col("real") > np.finfo(float).max) == []
    assert sets(bj.col("real") <= np.finfo(float).max) == [{}]


@pytest.mark.parametrize("n", [1, 7, 300])
def test_disjunction_over_n_columns_has_n_boxes(n):
    schema = Schema(tuple(Column(f"c{i}", "real", (DOWN, UP)) for i in range(n)))
    assert len(boxes(" or ".join(f"c{i} > {i}" for i in range(n)), schema)) == n


def test_many_points_of_one_column_make_one_box():
    event = any_of([bj.col("real") == number for number in range(3000)])
    (box,) = boxes(event, SCHEMA)
    assert box.intervals[0].shape == (3000, 2)


def test_contradiction_between_many_columns_has_no_boxes():
    schema = Schema(tuple(Column(f"c{i}", "real", (DOWN, UP)) for i in range(40)))
    each = " and ".join(f"(c{i} > 0 or c{i + 1} > 0)" for i in range(0, 40, 2))
    assert boxes(f"{each} and " + " and ".join(f"c{i} < 0" for i in range(40)), schema) == ()


@pytest.mark.parametrize("n", [3, 60])
def test_more_boxes_than_the_cap_are_refused_before_they_are_made(n):
    schema = Schema(tuple(Column(f"c{i}", "real", (DOWN, UP)) for i in range(2 * n)))
    event = " or ".join(f"(c{2 * i} > 0 and c{2 * i + 1} > 0)" for i in range(n))
    with pytest.raises(QueryError, match=r"splits into \d+ boxes or more; expected at most 6\. Ask for parts"):
        boxes(event, schema, max_boxes=6)


def test_number_of_boxes_at_the_cap_is_accepted():
    schema = Schema(tuple(Column(f"c{i}", "real", (DOWN, UP)) for i in range(6)))
    event = " or ".join(f"(c{2 * i} > 0 and c{2 * i + 1} > 0)" for i in range(3))
    assert len(boxes(event, schema, max_boxes=7)) == 7


def test_entangled_contradiction_is_refused_after_bounded_work():
    rng = np.random.default_rng(1)
    schema = Schema(tuple(Column(f"c{i}", "real", (DOWN, UP)) for i in range(30)))
    clauses = [
        " or ".join(f"c{i} {rng.choice(['>', '<='])} 0" for i in rng.choice(30, 3, replace=False)) for _ in range(150)
    ]
    event = " and ".join(f"({clause})" for clause in clauses)
    assert boxes(event, schema) == ()
    with pytest.raises(QueryError, match="too entangled: more than 34 cases"):
        boxes(event, schema, max_boxes=1)


@pytest.mark.parametrize("max_boxes", [0, -1])
def test_cap_below_one_is_refused(max_boxes):
    with pytest.raises(QueryError, match="expected at least 1"):
        boxes("real > 1", SCHEMA, max_boxes=max_boxes)


# --- a box


def test_boxes_are_equal_by_their_intervals_and_hash_alike():
    (box,) = boxes("real > 1 and count < 3", SCHEMA)
    (same,) = boxes("count <= 2 and not real <= 1", SCHEMA)
    (other,) = boxes("real > 1 and count < 4", SCHEMA)
    assert box == same
    assert hash(box) == hash(same)
    assert box != other
    assert box != Box()


def test_box_cannot_be_changed():
    (box,) = boxes("real > 1", SCHEMA)
    with pytest.raises(TypeError):
        box.intervals[1] = box.intervals[0]
    with pytest.raises(ValueError, match="read-only"):
        box.intervals[0][0, 0] = 7.0


def test_missing_value_lies_in_no_interval_but_in_an_unconstrained_column():
    values = np.full((len(COLUMNS), 1), np.nan)
    assert contains(Box(), values).tolist() == [True]
    assert contains(Box({0: [[DOWN, UP]]}), values).tolist() == [False]


def test_columns_of_single_values_are_null_unless_one_is_an_atom():
    names = ["real", ATOMIC.name, DAY.name, "count", "label"]
    event = all_of(
        [
            bj.col("real").isin([1, 2]),
            bj.col(ATOMIC.name).isin([3, 5]),
            bj.col(DAY.name) == "2020-01-01",
            bj.col("count") == 1,
            bj.col("label") == "a",
        ]
    )
    (box,) = boxes(event, SCHEMA)
    assert [SCHEMA.names[column] for column in box.columns] == sorted(names, key=SCHEMA.names.index)
    assert [SCHEMA.names[column] for column in box.null_columns(SCHEMA)] == ["real", "day"]


def test_null_event_is_explained_with_an_interval_that_has_probability():
    schema = Schema((ex.with_resolution(ex.REAL, 0.5),))
    why = why_null(boxes("real = 12", schema), schema)
    assert why == ("column 'real' is continuous: P(real == 12) is 0; ask for real between 11.75 and 12.25")
    assert boxes("real between 11.75 and 12.25", schema)[0].null_columns(schema) == ()


def test_null_event_of_prices_at_99_is_explained_with_an_interval_of_their_step():
    price = Column("price", "real", (0.0, np.inf), resolution=0.01, step=1.0, offset=0.99)
    why = why_null(boxes("price = 9.99", Schema((price,))), Schema((price,)))
    assert "ask for price between 9.49 and 10.49" in why


def test_null_date_is_explained_in_dates():
    why = why_null(boxes("day = '2020-01-02'", SCHEMA), SCHEMA)
    assert "ask for day between '2020-01-01T12:00' and '2020-01-02T12:00'" in why


def test_contradiction_is_explained_as_one():
    assert "contradicts itself" in why_null(boxes("real > 1 and real < 0", SCHEMA), SCHEMA)


@pytest.mark.parametrize(
    ("event", "fraction"),
    [
        ("count = 2.5", "count == 2.5"),
        ("count in (2.5, 3.5) and real > 1", "count in (2.5, 3.5)"),
        ("count between 2.2 and 2.8", "count between 2.2 and 2.8"),
        ("count = 2.5 or count = 3.5", "count == 2.5"),
    ],
)
def test_a_fraction_of_whole_numbers_is_explained_by_its_column(event, fraction):
    found = why_null(boxes(event, SCHEMA), SCHEMA, as_event(event))
    assert found == f"column 'count' holds whole numbers: no row can be in {fraction}"


@pytest.mark.parametrize(
    "event", ["count < 0", "count = 2.5 or (real > 1 and real < 0)", "not count = 2.5 and real > 1 and real < 0"]
)
def test_other_contradictions_are_not_laid_to_whole_numbers(event):
    assert "contradicts itself" in why_null((), SCHEMA, as_event(event))


@pytest.mark.parametrize("event", ["real = 1 or count = 1", "`with atoms` = 0", "real > 1", "count = 1"])
def test_event_that_may_have_probability_is_not_explained_away(event):
    assert why_null(boxes(event, SCHEMA), SCHEMA) is None
