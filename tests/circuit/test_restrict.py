"""Families that the user chose: which columns keep which, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bayesjpt.circuit.restrict import restrict_families
from bayesjpt.errors import SchemaError
from bayesjpt.families import registry
from bayesjpt.table.schema import Schema
from tests import examples as ex

SCHEMA = Schema(ex.COLUMNS)


def chosen(schema: Schema) -> dict[str, tuple[str, ...]]:
    return {column.name: tuple(member.name for member in registry.dictionary(column)) for column in schema}


def test_of_names_for_all_columns_each_keeps_those_that_fit():
    found = chosen(restrict_families(SCHEMA, ["normal", "gamma", "poisson", "categorical"]))
    assert found["real"] == ("normal",)
    assert found["positive"] == ("normal", "gamma")
    assert found["count"] == ("poisson",)
    assert set(found["levels"]) == {"poisson", "categorical"}
    assert found["label"] == ("categorical",)


def test_column_that_none_of_the_names_fits_keeps_its_own_dictionary():
    found = chosen(restrict_families(SCHEMA, ["normal", "poisson"]))
    assert found["label"] == chosen(SCHEMA)["label"]
    assert found["real"] == ("normal",)


def test_names_for_one_column_leave_the_others_alone():
    found = chosen(restrict_families(SCHEMA, {"positive": ["gamma"], "count": "geometric"}))
    assert found == chosen(SCHEMA) | {"positive": ("gamma",), "count": ("geometric",)}


def test_restrictions_of_the_schema_hold_unless_the_column_is_named():
    schema = Schema((replace(ex.POSITIVE, families=("gamma", "exponential")),))
    assert chosen(restrict_families(schema, ["gamma"])) == {"positive": ("gamma",)}
    with pytest.raises(SchemaError, match="'normal' fits no column"):
        restrict_families(schema, ["normal"])
    assert chosen(restrict_families(schema, {"positive": ["normal"]})) == {"positive": ("normal",)}


@pytest.mark.parametrize(
    ("families", "words"),
    [
        (["normal", "gama"], ["'gama'", "'gamma'"]),
        ({"positive": ["gama"]}, ["'gama'", "'gamma'"]),
        ({"positve": ["gamma"]}, ["'positve'", "'positive'"]),
        ({"real": ["gamma"]}, ["'gamma' does not fit column 'real'", "normal"]),
        ([], ["no likelihood family is named"]),
        ({"real": []}, ["column 'real' is left without"]),
    ],
)
def test_choice_that_makes_no_sense_is_refused_by_name(families, words):
    with pytest.raises(SchemaError) as caught:
        restrict_families(SCHEMA, families)
    for word in words:
        assert word in str(caught.value)


def test_family_that_fits_no_column_is_refused():
    with pytest.raises(SchemaError, match=r"family 'poisson' fits no column.*integer"):
        restrict_families(Schema((ex.REAL,)), ["normal", "poisson"])
