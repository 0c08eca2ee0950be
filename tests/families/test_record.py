"""How the record of a family is filled from the functions of its files."""

from __future__ import annotations

from types import ModuleType

import pytest

from bayesjpt.families import normal
from bayesjpt.families.record import Family

SLOTS = vars(normal)
METADATA = {"name": "another", "bases": ("real",), "statistical_type": "real", "priors": {}, "n_stats": 3}


def test_functions_fill_the_slots_of_their_names():
    made = Family.of(SLOTS, **METADATA)
    assert made.sample is normal.sample
    assert made.log_marginal is normal.log_marginal
    assert made.leaf_constants is None  # no function of the file has this name
    assert (made.name, made.support) == ("another", (float("-inf"), float("inf")))


def test_later_files_go_before_earlier_ones_and_metadata_before_all():
    other = ModuleType("other")
    other.sample, other.mode, other.cdf = len, len, len
    made = Family.of(SLOTS, other, **METADATA, cdf=max)
    assert (made.sample, made.mode, made.cdf) == (len, len, max)
    assert made.moment is normal.moment


def test_values_that_are_no_functions_fill_no_slot():
    assert Family.of({**SLOTS, "name": "of the file", "estimate": 3.0}, **METADATA).estimate is None


@pytest.mark.parametrize(("given", "named"), [({}, "sample"), ({"sampel": len, "sample": len}, "sampel")])
def test_a_slot_without_function_and_an_unknown_field_are_refused(given, named):
    with pytest.raises(TypeError, match=named):
        Family.of({name: value for name, value in SLOTS.items() if name != "sample"}, **METADATA, **given)
