"""Starts of all members of a dictionary in one call, against each family asked by itself."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.families import features, registry
from bayesjpt.families.starts import fill_starts, make_members, start_by_kernel
from tests import examples as ex


@pytest.mark.parametrize("n_row", [0, 1, 40])
@pytest.mark.parametrize("position", range(len(ex.COLUMNS)))
def test_starts_of_a_dictionary_are_those_of_its_families(position, n_row):
    table = ex.make_table(ex.COLUMNS, 40, np.random.default_rng(2))
    column, x = table.schema.columns[position], table.values[position, :n_row].copy()
    families = [family for family in registry.dictionary(column) if start_by_kernel(family)]
    constants = [family.constants(column) for family in families]
    pairs = list(zip(families, constants, strict=True))
    hyper = [features.hyper_before_rows(family, column, own) for family, own in pairs]
    members = make_members(families, column, constants, hyper)
    found = np.full(int(members.theta_at[-1]), np.nan)
    fill_starts(members, x, found)
    expected = [features.initial_theta(family, column, x, own) for family, own in pairs]
    assert families
    assert found.tolist() == np.concatenate(expected).tolist()
