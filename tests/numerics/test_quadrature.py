"""The rule of few nodes, for cells of recorded values, against that of many."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.numerics.quadrature import FEW_NODES, FEW_WEIGHTS, NODES, WEIGHTS, is_slight

LAST_DIGITS = 4e-16
MOST_SLOPE, MOST_BEND = 1.2, 0.2


def integral(nodes: np.ndarray, weights: np.ndarray, slope: float, bend: float) -> float:
    return float(weights @ np.exp(-slope * nodes - 0.5 * bend * nodes * nodes))


@pytest.mark.parametrize("slope", [-MOST_SLOPE, 0.0, 0.3, MOST_SLOPE])
@pytest.mark.parametrize("bend", [0.0, 0.05, MOST_BEND])
def test_few_nodes_are_exact_for_slight_intervals(slope, bend):
    assert is_slight(slope, bend)
    expected = integral(NODES, WEIGHTS, slope, bend)
    assert integral(FEW_NODES, FEW_WEIGHTS, slope, bend) == pytest.approx(expected, rel=LAST_DIGITS)


@pytest.mark.parametrize(("slope", "bend"), [(3.5, 0.0), (0.0, 3.0), (np.nan, 0.0), (0.0, np.inf)])
def test_intervals_along_which_the_density_changes_much_are_not_slight(slope, bend):
    assert not is_slight(slope, bend)


def test_few_nodes_would_not_be_exact_along_a_steep_interval():
    slope = 3.5
    assert integral(FEW_NODES, FEW_WEIGHTS, slope, 0.0) != pytest.approx(
        integral(NODES, WEIGHTS, slope, 0.0), rel=LAST_DIGITS
    )
