"""What a verb is given: events become boxes, mappings and frames become rows, the rest is refused."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, QueryError, SchemaError, TableError
from bayesjpt.queries.boxes import CERTAIN, boxes
from bayesjpt.queries.evidence import as_evidence, as_rows
from bayesjpt.table.schema import Schema, SetAside
from tests.queries.events import SCHEMA

NAMES = SCHEMA.names


def given_cells(evidence) -> dict[str, float]:
    """Return the observed cells of the one row that is given."""
    rows = evidence.rows
    assert rows.n_row == 1
    return {
        name: float(value)
        for name, value, seen in zip(NAMES, rows.values[:, 0], rows.observed[:, 0], strict=True)
        if seen
    }


def test_nothing_given_is_the_certain_event():
    evidence = as_evidence(None, SCHEMA)
    assert evidence.boxes == CERTAIN
    assert evidence.rows is None
    assert evidence.is_certain


@pytest.mark.parametrize("given", ["real > 1 or count < 3", (bj.col("real") > 1) | (bj.col("count") < 3)])
def test_event_given_as_text_or_in_python_becomes_boxes(given):
    evidence = as_evidence(given, SCHEMA)
    assert evidence.boxes == boxes("real > 1 or count < 3", SCHEMA)
    assert repr(evidence.event) == "real > 1 or count < 3"
    assert evidence.rows is None
    assert not evidence.is_certain


def test_contradiction_given_has_no_boxes():
    assert as_evidence("real > 1 and real < 0", SCHEMA).boxes == ()


def test_cap_on_boxes_holds_for_evidence():
    with pytest.raises(QueryError, match="at most 1"):
        as_evidence("real > 1 or count < 3", SCHEMA, max_boxes=1)


def test_mapping_is_one_row_of_which_only_the_named_columns_are_given():
    evidence = as_evidence(
        {
            "real": 1.25,
            "count": np.int64(3),
            "label": "b",
            "smoker": True,
            "grade": 2.5,
            "day": datetime.date(1970, 1, 3),
            "visit": "2020-01-01",
            "color": "<other>",
        },
        SCHEMA,
    )
    assert evidence.boxes is None
    assert evidence.one_row
    assert given_cells(evidence) == {
        "real": 1.25,
        "count": 3.0,
        "label": 1.0,
        "day": 2.0,
        "smoker": 1.0,
        "grade": 1.0,
        "visit": 0.0,
        "color": 3.0,
    }


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, float("nan")])
def test_missing_value_in_a_mapping_is_not_given(missing):
    assert given_cells(as_evidence({"real": missing, "count": 3}, SCHEMA)) == {"count": 3.0}


def test_mapping_reads_values_as_a_frame_does():
    values = {"real": 0.1, "positive": 0.0, "levels": 7, "label": "a", "with atoms": 5, "day": "2020-01-01T06:00"}
    mapping = as_evidence(values, SCHEMA).rows
    frame = as_evidence(pd.DataFrame([values]), SCHEMA).rows
    assert np.array_equal(mapping.values, frame.values)
    assert np.array_equal(mapping.observed, frame.observed)


@pytest.mark.parametrize("backend", [pd.DataFrame, pl.DataFrame])
def test_frame_is_read_under_the_schema(backend):
    evidence = as_evidence(backend({"count": [1, 2, None], "real": [0.5, None, 2.5]}), SCHEMA)
    assert not evidence.one_row
    assert evidence.rows.schema == SCHEMA
    assert evidence.rows.observed[[0, 2]].tolist() == [[True, False, True], [True, True, False]]


def test_table_under_the_schema_is_taken_as_it_is():
    table = bj.as_table(pd.DataFrame({"real": [0.5, 1.5]}), schema=SCHEMA)
    assert as_evidence(table, SCHEMA).rows is table


def test_unseen_label_of_a_frame_is_other_with_a_warning_or_refused():
    frame = pd.DataFrame({"label": ["a", "z"]})
    with pytest.warns(BayesjptWarning, match="'z' in column 'label'"):
        assert as_rows(frame, SCHEMA).values[NAMES.index("label")].tolist() == [0.0, 3.0]
    with pytest.raises(SchemaError, match="unseen label 'z'"):
        as_evidence(frame, SCHEMA, unseen="error")


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"cuont": 3}, QueryError, "no column 'cuont'; expected one like 'count'"),
        ({"patient": 3}, QueryError, "column 'patient' is not part of the model; it is left out: a key"),
        ({3.5: 3}, QueryError, "evidence for 3.5, of type float; expected the names of columns"),
        ({"label": "bb"}, QueryError, "column 'label' has no label 'bb'"),
        ({"label": "z"}, QueryError, "column 'label' has no label 'z'; expected one of 'a', 'b', 'c'$"),
        ({"real": "red"}, QueryError, "column 'real' holds numbers, and 'red' is a text"),
        ({"color": 3}, QueryError, "column 'color' holds texts, and 3 is a number"),
        ({"real": (1, 2)}, QueryError, "evidence for column 'real' of type tuple; expected one value"),
        ({"real": [1, 2]}, QueryError, "for several rows, a data frame"),
        ({"real": np.array([1.0])}, QueryError, "of type ndarray; expected one value"),
        ({"real": bj.col("real") > 1}, QueryError, "column 'real' compared with an event"),
        ({"real": np.inf}, TableError, "column 'real' holds inf"),
        ({"real": 1e300}, SchemaError, "column 'real' holds 1e\\+300"),
        ({"count": -1}, SchemaError, "column 'count' holds -1 .*expected whole numbers from 0"),
        ({"count": 2.5}, SchemaError, "column 'count' holds 2.5 .*expected whole numbers from 0"),
        ("real > nan", QueryError, "missing value"),
        ("3 < real < 1", QueryError, "the lower end is above the upper one"),
        (bj.col("real"), QueryError, "column 'real' alone was used as an event"),
        (True, QueryError, "evidence of type bool; expected an event"),
        (3, QueryError, "evidence of type int"),
        ([1, 2], QueryError, "evidence of type list"),
        (np.zeros(3), QueryError, "evidence of type ndarray"),
        (object(), TableError, "expected a data frame"),
        (pd.DataFrame({"reel": [1.0]}), SchemaError, "expected one like 'real'"),
    ],
)
def test_evidence_that_makes_no_sense_is_refused(given, kind, message):
    schema = Schema(SCHEMA.columns, (SetAside("patient", "a key"),))
    with pytest.raises(kind, match=message):
        as_evidence(given, schema)


def test_table_of_another_schema_is_refused():
    table = bj.as_table(pd.DataFrame({"real": [0.5, 1.5]}))
    with pytest.raises(SchemaError, match=r"another schema than the posterior's.*schema=post\.schema"):
        as_evidence(table, SCHEMA)
