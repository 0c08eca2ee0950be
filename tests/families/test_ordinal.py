"""What is the ordinal family's own: the column's shares, neighbours together, and who is offered it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesjpt import defaults
from bayesjpt.families import registry
from tests.families.examples import ANSWER, COUNT, GRADES, LABELS, LEVELS, Example, draw_chain, listed_values

EXACT = 1e-13
N_DRAW = 2_000


def _example(column, scale: float, mu: float) -> Example:
    return Example("ordinal", column, (scale, mu), -np.inf, np.inf)


def _masses(column, scale: float, mu: float) -> np.ndarray:
    return np.exp(_example(column, scale, mu).log_density(listed_values(column)))


@pytest.mark.parametrize("column", [GRADES, LEVELS, LABELS], ids=lambda column: column.name)
def test_leaf_at_the_origin_has_the_shares_of_the_column(column):
    np.testing.assert_allclose(_masses(column, 1.0, 0.0), column.frequencies, rtol=EXACT)


def test_moved_leaf_keeps_what_jumps_between_neighbours():
    raised = _masses(GRADES, 1.0, 1.5)
    assert (np.diff(np.log(raised))[:20:2] > 0.0).all()  # of each pair of neighbours the second has more cells
    assert raised[-5:].sum() > 2.0 * sum(GRADES.frequencies[-5:])


def test_level_that_a_leaf_never_saw_is_more_likely_between_than_beyond_those_that_it_saw(rng):
    family = registry.family("ordinal")
    hyper = family.priors["default"](GRADES, np.empty(0))
    draws = np.empty((N_DRAW, 2))
    draw_chain(family, GRADES, [8.0] * 10 + [10.0] * 10, hyper, np.array([1.0, 0.0]), rng, draws)
    masses = np.mean([_masses(GRADES, scale, mu) for scale, mu in draws], axis=0)
    between, beyond = (masses[k] / GRADES.frequencies[k] for k in (8, 20))
    assert between > 10.0 * beyond


def test_mass_of_neighbours_is_exact_where_the_sum_of_levels_is_tiny():
    leaf = _example(GRADES, 0.01, -3.0)
    expected = np.logaddexp.reduce(leaf.log_density(np.arange(20.0, 26.0)))
    assert leaf.log_mass(20.0, 25.0) == pytest.approx(expected, rel=EXACT)
    assert expected < -300.0


def test_many_levels_have_ordinal_in_their_dictionary_and_categorical_by_name():
    assert len(GRADES.levels) > defaults.MAX_INTEGER_LEVELS
    names = [family.name for family in registry.dictionary(GRADES)]
    assert "ordinal" in names
    assert "categorical" not in names
    named = registry.dictionary(replace(GRADES, families=("categorical",)))
    assert [family.name for family in named] == ["categorical"]
    assert registry.fits(registry.family("categorical"), GRADES)


@pytest.mark.parametrize("column", [LEVELS, LABELS], ids=lambda column: column.name)
def test_few_levels_and_labels_have_ordinal_where_it_is_named(column):
    assert "ordinal" not in [family.name for family in registry.dictionary(column)]
    assert "ordinal" in [family.name for family in registry.fitting(column)]


@pytest.mark.parametrize("column", [ANSWER, COUNT], ids=["two labels", "no levels"])
def test_column_without_three_levels_is_not_offered_it(column):
    assert "ordinal" not in [family.name for family in registry.fitting(column)]
