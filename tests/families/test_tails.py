"""Upper tails of counts against the incomplete gamma and beta functions, wherever most of the mass lies."""

from __future__ import annotations

import math

import mpmath
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


@pytest.mark.parametrize("size", [2.4e-15, 1e-6, 0.0099])
@pytest.mark.parametrize(
    ("p", "first", "last"),
    [(1.7e-16, 136395610059566.0, 762408560687267.0), (1e-9, 1e8, 9e8), (1e-4, 300.0, 9000.0)],
)
def test_masses_between_far_counts_of_a_negative_binomial_keep_their_digits(size, p, first, last):
    """The mass of all but few counts is 0's, and what is left keeps no digits beside it."""

    def beyond(k):
        series = mpmath.hyp2f1(size, 1 - mpmath.mpf(k), 1 + mpmath.mpf(size), p)
        return 1 - mpmath.power(p, size) / (size * mpmath.beta(size, k)) * series

    with mpmath.workdps(60):
        expected = float(mpmath.log(beyond(first) - beyond(last + 1.0)))
    found = negative_binomial.log_mass(first - 0.4, last + 0.4, np.array([size, p]), NOTHING)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_mass_of_which_two_tails_tell_no_digits_is_that_of_as_many_counts():
    theta, first, last = np.array([1e-6, 1e-25]), 9e15, 9e15 + 300.0
    one = negative_binomial.log_mass(first + 150.0, first + 150.0, theta, NOTHING)
    assert negative_binomial.log_mass(first, last, theta, NOTHING) == pytest.approx(one + math.log(301.0), rel=1e-12)
