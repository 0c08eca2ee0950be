"""Weights of a column's types given numbers of rows, against their density on a grid."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from bayesjpt.circuit.type_prior import ColumnTypes
from bayesjpt.kernels.type_prior import draw_type_prior
from tests import statistics

N_DRAW = 40_000
N_GRID = 4000
EDGE = np.array([0, 1, 2, 4, 5, 6])
"""Two dictionaries over one column: one member of the first type and two of the second; edge 3 is of another sum."""
ENTRY = np.array([0, 1, 1, 0, 1, 1])
FACTOR = np.array([3.0, 1.5, 1.5, 3.0, 1.5, 1.5])
PTR = np.array([0, 2])
BASE = np.array([0.2, 0.2, 0.2, 5.0, 0.7, 0.7, 0.7])
COUNTS = {
    "no rows": (0, 0, 0, 9, 0, 0, 0),
    "one row": (1, 0, 0, 9, 0, 0, 0),
    "both types": (3, 0, 8, 9, 40, 1, 0),
    "one type": (0, 12, 0, 9, 0, 3, 3),
}
PLANTED = 2.0
"""Times the concentration: as if a type's families had not been counted."""


def chain(counts: tuple[int, ...], factor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return draws of the weight of the first type."""
    weight, types = np.array([0.5, 0.5]), ColumnTypes(EDGE, ENTRY, factor, PTR)
    draws = np.empty(N_DRAW)
    for i in range(N_DRAW):
        concentration = BASE.copy()
        draw_type_prior(types, np.array(counts), weight, concentration, rng)
        draws[i] = weight[0]
        assert concentration[3] == BASE[3]
    np.testing.assert_allclose(concentration[EDGE], BASE[EDGE] * factor * weight[ENTRY])
    np.testing.assert_allclose(weight.sum(), 1.0)
    return draws


def expected(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of weights of the first type and their probabilities, by the definition."""
    grid = (np.arange(N_GRID) + 0.5) / N_GRID
    log_p = np.zeros(N_GRID)
    for edge, entry, factor in zip(EDGE, ENTRY, FACTOR, strict=True):
        a = BASE[edge] * factor * (grid if entry == 0 else 1.0 - grid)
        log_p += scipy.special.gammaln(a + counts[edge]) - scipy.special.gammaln(a)
    return grid, np.exp(log_p - scipy.special.logsumexp(log_p))


@pytest.mark.parametrize("name", COUNTS)
def test_draws_have_the_conditional_distribution(name, rng):
    draws = chain(COUNTS[name], FACTOR, rng)
    grid, p = expected(COUNTS[name])
    for power in (1, 2, 3):
        assert abs(statistics.batch_z(draws**power, float(p @ grid**power))) < statistics.LARGEST_Z


def test_a_planted_error_is_caught(rng):
    draws = chain(COUNTS["both types"], PLANTED * FACTOR, rng)
    grid, p = expected(COUNTS["both types"])
    assert abs(statistics.batch_z(draws, float(p @ grid))) > statistics.LARGEST_Z
