"""Conditions of regions as text: whatever the columns are called and hold, the text means the region."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesjpt as bj
from bayesjpt.circuit.paths import Interval, regions, tree_nodes
from bayesjpt.queries.boxes import Box, boxes
from bayesjpt.queries.intervals import domain_of
from bayesjpt.queries.paths import condition, conditions
from bayesjpt.table.schema import Schema
from bayesjpt.table.written_dates import DateNotation
from bayesjpt.table.written_durations import DurationNotation
from tests import examples as ex
from tests.strategies import law

NAMES = ("in", "fixed acidity", "a`b", "x < 1 and y", "größe", '"', "'", "1e5", "<b>&")
LABELS = ("red", "Bob's", "", "other", "not in", "10.4", "\"<a href='x'>\"")
LASTS = replace(ex.COUNT, notation=DurationNotation("h:mm:ss"))
CLOCK = replace(ex.COUNT, notation=DateNotation("clock", "%H:%M"))
DATE = replace(ex.REAL, name="day", dtype="datetime", atoms=(), families=())


def box_of(region, schema: Schema) -> Box:
    """Return the region as a box."""
    intervals = {}
    for position, part in region.items():
        pieces = [part] if isinstance(part, Interval) else [(float(code), float(code)) for code in part]
        intervals[position] = np.array(domain_of(schema.columns[position]).canonical(pieces))
    return Box(intervals)


numbers = st.floats(-1e9, 1e9) | st.decimals(-1000, 1000, places=3).map(float)


@st.composite
def parts(draw):
    """Return a column and what a region may ask of it."""
    kind = draw(st.sampled_from(["real", "integer", "date", "label"]))
    name = draw(st.sampled_from(NAMES))
    if kind == "label":
        n = draw(st.integers(1, len(LABELS)))
        column = replace(ex.LABEL, name=name, labels=LABELS[:n], frequencies=(1.0 / (n + 1),) * (n + 1))
        codes = draw(st.sets(st.integers(0, n), min_size=1, max_size=n))
        return column, tuple(sorted(codes))
    column = {"real": ex.REAL, "integer": ex.CHANGE, "date": DATE}[kind]
    number = {"integer": st.integers(-100, 100).map(float), "date": st.integers(-9999, 9999).map(lambda n: n / 8)}
    lo, hi = sorted(draw(st.tuples(*[number.get(kind, numbers)] * 2)))
    if kind != "integer" and lo < hi and draw(st.booleans()):
        hi = math.nextafter(hi, -math.inf)  # as below a threshold
    lo, hi = draw(st.sampled_from([(lo, hi), (-math.inf, hi), (lo, math.inf)]))
    return replace(column, name=name), Interval(lo, hi)


@law(300)
@given(parts(), parts())
def test_the_text_means_the_region(first, second):
    schema = Schema((ex.named(first[0], "first " + first[0].name), second[0]))
    region = {1: second[1], 0: first[1]}
    assert boxes(conditions(region, schema), schema) == (box_of(region, schema),)


def test_nodes_of_a_learned_tree_are_named_by_what_they_hold(rng):
    columns = [column for column in ex.EVERY if column.name != "fixed"]
    table = ex.make_table(columns, 120, rng)
    circuit = bj.learn_jpt(table, rng, min_rows=3)
    nodes = tree_nodes(circuit)
    assert len(nodes) > 20
    for node in nodes[1:]:
        found = boxes(conditions(node.region, table.schema), table.schema)
        assert found == (box_of(node.region, table.schema),)
    assert regions(circuit, [circuit.n_node - 1]) == [{}]


@pytest.mark.parametrize(
    ("column", "part", "text"),
    [
        (ex.REAL, Interval(-math.inf, math.nextafter(0.3, 0.0)), "real < 0.3"),
        (ex.REAL, Interval(0.3, math.inf), "real >= 0.3"),
        (ex.REAL, Interval(math.nextafter(0.3, 1.0), 2.0), "0.3 < real <= 2"),
        (ex.REAL, Interval(2.5, 2.5), "real = 2.5"),
        (ex.COUNT, Interval(-math.inf, 3.0), "count <= 3"),
        (ex.COUNT, Interval(4.0, 7.0), "count between 4 and 7"),
        (DATE, Interval(-math.inf, math.nextafter(19000.5, 0.0)), "day < '2022-01-08T12:00'"),
        (LASTS, Interval(-math.inf, 3069.0), "count <= '0:51:09'"),
        (LASTS, Interval(60.0, 3069.0), "count between '0:01:00' and '0:51:09'"),
        (CLOCK, Interval(870.0, math.inf), "count >= '14:30'"),
        (CLOCK, Interval(-math.inf, 2000.0), "count <= 2000"),
        (ex.FLAG, (0, 2), "flag != 'yes'"),
        (ex.FLAG, Interval(0.0, 1.0), "flag != 'other'"),
    ],
)
def test_conditions_read_as_people_write_them(column, part, text):
    assert condition(column, part) == text
    (found,) = boxes(text, Schema((column,)))
    assert found == box_of({0: part}, Schema((column,)))


def test_a_region_without_conditions_is_no_text():
    assert conditions({}, Schema(())) == ""
