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
EDGE = np.array([0, 1, 2, 4, 5, 6, 7, 8])
"""Two dictionaries over one column, of a member of its first type and two of the second, and one over another column;
edge 3 is of another sum."""
ENTRY = np.array([0, 1, 1, 0, 1, 1, 2, 3])
FACTOR = np.array([3.0, 1.5, 1.5, 3.0, 1.5, 1.5, 2.0, 2.0])
PTR = np.array([0, 2, 4])
BASE = np.array([0.2, 0.2, 0.2, 5.0, 0.7, 0.7, 0.7, 0.4, 0.4])
COUNTS = {
    "no rows": (0, 0, 0, 9, 0, 0, 0, 0, 0),
    "one row": (1, 0, 0, 9, 0, 0, 0, 0, 1),
    "both types": (3, 0, 8, 9, 40, 1, 0, 20, 4),
    "one type": (0, 12, 0, 9, 0, 3, 3, 30, 0),
}
PLANTED = 2.0
"""Times the concentration: as if a type's families had not been counted."""


def chain(counts: tuple[int, ...], factor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return draws of the weight of the first type of each column, float64 (n_column, N_DRAW)."""
    weight, types = np.full(4, 0.5), ColumnTypes(EDGE, ENTRY, factor, PTR)
    draws = np.empty((PTR.size - 1, N_DRAW))
    for i in range(N_DRAW):
        concentration = BASE.copy()
        draw_type_prior(types, np.array(counts), weight, concentration, rng)
        draws[:, i] = weight[PTR[:-1]]
        assert concentration[3] == BASE[3]
    np.testing.assert_allclose(concentration[EDGE], BASE[EDGE] * factor * weight[ENTRY])
    np.testing.assert_allclose(np.add.reduceat(weight, PTR[:-1]), 1.0)
    return draws


def expected(counts: tuple[int, ...], column: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of weights of the first type of a column and their probabilities, by the definition."""
    grid = (np.arange(N_GRID) + 0.5) / N_GRID
    log_p = np.zeros(N_GRID)
    for edge, entry, factor in zip(EDGE, ENTRY, FACTOR, strict=True):
        if entry not in range(PTR[column], PTR[column + 1]):
            continue
        a = BASE[edge] * factor * (grid if entry == PTR[column] else 1.0 - grid)
        log_p += scipy.special.gammaln(a + counts[edge]) - scipy.special.gammaln(a)
    return grid, np.exp(log_p - scipy.special.logsumexp(log_p))


@pytest.mark.parametrize("name", COUNTS)
def test_draws_have_the_conditional_distribution(name, rng):
    for column, draws in enumerate(chain(COUNTS[name], FACTOR, rng)):
        grid, p = expected(COUNTS[name], column)
        for power in (1, 2, 3):
            assert abs(statistics.batch_z(draws**power, float(p @ grid**power))) < statistics.LARGEST_Z


def test_a_planted_error_is_caught(rng):
    for column, draws in enumerate(chain(COUNTS["both types"], PLANTED * FACTOR, rng)):
        grid, p = expected(COUNTS["both types"], column)
        assert abs(statistics.batch_z(draws, float(p @ grid))) > statistics.LARGEST_Z
