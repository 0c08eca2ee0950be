"""Upper tails of counts against the incomplete gamma and beta functions, wherever most of the mass lies."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

from bayesjpt.families import negative_binomial, poisson

EXACT = 1e-12  # relative, of log masses; absolute near 0
NOTHING = np.empty(0)


@pytest.mark.parametrize("first", [0.0, 1.0, 7.0, 20.0, 21.0, 60.0])
@pytest.mark.parametrize("rate", [1e-3, 0.9, 5.8, 20.0, 49.0, 51.0])
def test_tail_of_a_poisson_is_the_incomplete_gamma_function(first, rate):
    expected = math.log(scipy.special.gammainc(first, rate)) if first > 0.0 else 0.0
    found = poisson.log_mass(first - 0.4, np.inf, np.array([rate]), NOTHING)
    assert found == pytest.approx(expected, rel=EXACT, abs=EXACT)


@pytest.mark.parametrize("first", [0.0, 1.0, 7.0, 20.0, 21.0, 60.0])
@pytest.mark.parametrize(("size", "p"), [(0.3, 0.9), (0.3, 1e-3), (4.0, 0.4), (900.0, 0.99), (1e5, 0.9999)])
def test_tail_of_a_negative_binomial_is_the_incomplete_beta_function(first, size, p):
    expected = math.log(scipy.special.betaincc(size, first, p)) if first > 0.0 else 0.0
    found = negative_binomial.log_mass(first - 0.4, np.inf, np.array([size, p]), NOTHING)
    assert found == pytest.approx(expected, rel=EXACT, abs=EXACT)
