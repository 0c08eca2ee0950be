"""The schema as a value: looked up, shown, stored."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.errors import SchemaError
from bayesjpt.table.schema import Column, Schema, SetAside
from bayesjpt.table.table import as_table

numbers = st.floats(allow_nan=False)
columns = st.builds(
    Column,
    name=st.text(),
    base=st.sampled_from(["real", "integer", "category"]),
    support=st.tuples(numbers, numbers),
    labels=st.lists(st.text()).map(tuple),
    levels=st.lists(numbers).map(tuple),
    frequencies=st.lists(numbers).map(tuple),
    resolution=numbers,
    location=numbers,
    scale=numbers,
    mean=numbers,
    minimum=numbers,
    maximum=numbers,
    atoms=st.lists(numbers).map(tuple),
    atom_frequencies=st.lists(numbers).map(tuple),
    families=st.lists(st.text()).map(tuple),
    n_missing=st.integers(0, 10**12),
    n_distinct=st.integers(0, 10**12),
    dtype=st.text(),
    reason=st.text(),
)


@settings(derandomize=True, deadline=None)
@given(
    st.lists(columns, max_size=3),
    st.lists(st.builds(SetAside, name=st.text(), reason=st.text(), n_missing=st.integers(0, 9)), max_size=2),
)
def test_schema_survives_strict_json(members, aside):
    schema = Schema(tuple(members), tuple(aside))
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema


@pytest.fixture
def schema() -> Schema:
    frame = pd.DataFrame({"alcohol": [9.5, 10.0, 12.5] * 10, "color": ["red", "<b>", "red"] * 10, "id": np.arange(30)})
    return as_table(frame).schema


def test_decided_schema_survives_json(schema):
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_stored_schema_of_format_1_is_read_with_defaults(schema):
    plain = schema.to_dict()
    for entry in plain["columns"]:
        for name in ("minimum", "atoms", "atom_frequencies", "families"):
            del entry[name]
    old = Schema.from_dict({**plain, "format": 1})
    assert old.columns == tuple(replace(column, minimum=0.0) for column in schema)


def test_stored_schema_of_format_6_has_no_grid_where_its_reason_says_so(schema):
    plain = schema.to_dict()
    for entry in plain["columns"]:
        del entry["has_grid"]
    plain["columns"][0]["reason"] = "fractional values; no recording grid, so a thousandth of the spread"
    assert [column.has_grid for column in Schema.from_dict({**plain, "format": 6})][:2] == [False, True]


def test_stored_schema_of_format_9_has_no_steps_of_months(schema):
    plain = schema.to_dict()
    assert {entry.pop("months") for entry in plain["columns"]} == {0.0}
    assert Schema.from_dict({**plain, "format": 9}) == schema


@pytest.mark.parametrize(
    "damage",
    [
        lambda plain: [],
        lambda plain: {**plain, "format": 99},
        lambda plain: {key: value for key, value in plain.items() if key != "columns"},
        lambda plain: {**plain, "columns": [{"name": "x"}]},
        lambda plain: {**plain, "columns": [{**plain["columns"][0], "scale": "wide"}]},
        lambda plain: {**plain, "columns": [{**plain["columns"][0], "base": "complex"}]},
        lambda plain: {**plain, "set_aside": [3]},
    ],
)
def test_damaged_stored_schema_is_refused(schema, damage):
    with pytest.raises(SchemaError, match="stored schema"):
        Schema.from_dict(damage(schema.to_dict()))


def test_index_is_the_position_of_a_column(schema):
    assert schema.index("color") == 1


@pytest.mark.parametrize("name", ["alcool", "ALCOHOL"])
def test_index_of_an_unknown_column_suggests_the_closest(schema, name):
    with pytest.raises(SchemaError, match="one like 'alcohol'"):
        schema.index(name)


def test_index_of_a_name_like_no_other_lists_all(schema):
    with pytest.raises(SchemaError, match="one of 'alcohol', 'color'"):
        schema.index("zzz")


def test_log_jacobian_is_minus_log_scale_of_real_columns(schema):
    assert schema.log_jacobian().tolist() == [-math.log(schema.columns[0].scale), 0.0]


def test_repr_shows_each_column_with_its_reason(schema):
    lines = repr(schema).splitlines()
    assert len(lines) == 1 + len(schema) + len(schema.set_aside)
    for line, entry in zip(lines[1:], [*schema.columns, *schema.set_aside], strict=True):
        assert line.startswith(entry.name)
        assert entry.reason in line


def test_html_escapes_what_the_table_holds(schema):
    text = schema._repr_html_()
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


def test_repr_of_many_columns_is_short():
    schema = Schema(tuple(Column(f"c{i}", "integer", (0.0, math.inf)) for i in range(500)))
    assert len(repr(schema).splitlines()) < 60
