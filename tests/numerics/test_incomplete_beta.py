"""The incomplete beta function and the digamma function against a decimal twin, SciPy where it holds, and laws."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.numerics import special
from bayesjpt.numerics.incomplete_beta import log_beta_above
from tests.numerics import reference

PROMISED = 1e-12
LOST_IN_SCIPY = 1e-10
"""SciPy's tails of large parameters are no better."""


def _sure(a: float, b: float, deviate: float) -> float:
    """Return the relative error of a tail whose argument is rounded: through its slope it grows with the parameters."""
    return 1e-13 + 4.0 * np.finfo(float).eps * math.sqrt(min(a, b)) * (1.0 + abs(deviate))


def _arguments() -> list[tuple[float, float, float]]:
    """Return (a, b, x) around the bulk; none with x so near 1 that the twin's series is too long."""
    found = []
    for a, b in itertools.product((1e-3, 0.5, 9.9, 10.1, 300.0, 2e4), (1e-2, 0.5, 3.0, 77.0, 1e4)):
        for deviate in (-5.0, -1.0, 0.1, 2.0):
            x = 1.0 / (1.0 + b / a * math.exp(-deviate / math.sqrt(min(a, b) + 0.3)))
            found += [(a, b, x)] if x < 0.99 else []
    return found


@pytest.mark.parametrize(("a", "b", "x"), _arguments())
def test_beta_tails_agree_with_decimal_arithmetic(a, b, x):
    log_p, log_q = reference.log_beta_tails(a, b, x)
    allowed = PROMISED * (1.0 + 1e-3 * (abs(log_p) + abs(log_q)))
    assert math.expm1(special.log_beta_p(a, b, x) - log_p) == pytest.approx(0.0, abs=allowed)
    assert math.expm1(special.log_beta_q(a, b, x) - log_q) == pytest.approx(0.0, abs=allowed)


@pytest.mark.parametrize("a", [1e-15, 1e-9, 1e-6, 1e-4, 0.0099])
@pytest.mark.parametrize("b", [0.3, 1.0, 7.0, 1e3, 1e10, 1e16])
def test_the_upper_tail_of_a_small_first_parameter_keeps_its_digits(a, b):
    """It is nearly nothing: as one less the lower tail it had none left."""
    for share in (1e-9, 0.01, 0.4, 1.0):
        x = share * 0.999 * (a + 1.0) / (a + b + 2.0)
        with mpmath.workdps(60):
            series = mpmath.hyp2f1(a, 1 - mpmath.mpf(b), 1 + mpmath.mpf(a), x)
            lower = mpmath.power(x, a) / (a * mpmath.beta(a, b)) * series
            log_p, log_q = float(mpmath.log(lower)), float(mpmath.log(1 - lower))
        assert special.log_beta_p(a, b, x) == pytest.approx(log_p, rel=PROMISED)
        assert special.log_beta_q(a, b, x) == pytest.approx(log_q, rel=PROMISED)
        # changed places, as long as 1 - (1 - x) is x
        if x > 0.1:
            assert special.log_beta_p(b, a, 1.0 - x) == pytest.approx(log_q, rel=1e-9)


def test_beta_tails_agree_with_scipy_in_the_bulk(rng):
    for a, b in 10.0 ** rng.uniform(-3, 4, (2000, 2)):
        x = scipy.special.betaincinv(a, b, rng.uniform(0.001, 0.999))
        if 0.0 < x < 0.999:
            assert special.beta_p(a, b, x) == pytest.approx(scipy.special.betainc(a, b, x), rel=LOST_IN_SCIPY)
            upper = math.exp(special.log_beta_q(a, b, x))
            assert upper == pytest.approx(scipy.special.betaincc(a, b, x), rel=LOST_IN_SCIPY)


@pytest.mark.parametrize("a", [0.02, 5.0, 40.0, 1e5])
@pytest.mark.parametrize("b", [0.5, 30.0])
def test_far_lower_tail_of_beta_follows_its_leading_terms(a, b):
    x = 1e-9 / (a + b)
    leading = a * math.log(x) - math.log(a) - scipy.special.betaln(a, b) + (1.0 - b) * x * a / (a + 1.0)
    assert special.log_beta_p(a, b, x) == pytest.approx(leading, rel=PROMISED)
    assert special.log_beta_tails(b, a, 1.0 - x, x)[1] == pytest.approx(leading, rel=PROMISED)


@settings(max_examples=70, deadline=None)
@given(log_a=st.floats(-3, 12), log_b=st.floats(-3, 12), deviate=st.floats(-6, 6))
def test_beta_tails_add_to_one_and_change_places_with_the_arguments(log_a, log_b, deviate):
    a, b = 10.0**log_a, 10.0**log_b
    logit = math.log(a / b) + deviate / math.sqrt(min(a, b) + 0.1)
    x, y = 1.0 / (1.0 + math.exp(-logit)), 1.0 / (1.0 + math.exp(logit))
    log_p, log_q = special.log_beta_tails(a, b, x, y)
    assert math.exp(log_p) + math.exp(log_q) == pytest.approx(1.0, abs=1e-14)
    mirrored = special.log_beta_tails(b, a, y, x)
    sure = _sure(a, b, deviate) / min(a, b, 1.0)
    assert mirrored[0] == pytest.approx(log_q, rel=1e-13, abs=sure)
    assert mirrored[1] == pytest.approx(log_p, rel=1e-13, abs=sure)


@settings(max_examples=70, deadline=None)
@given(log_a=st.floats(-2, 10), log_b=st.floats(-2, 10), deviate=st.floats(-5, 5))
def test_beta_tails_obey_their_recurrence(log_a, log_b, deviate):
    # I_x(a, b) - I_x(a + 1, b) = x^a y^b / (a B(a, b)), with both sides crossing between methods
    a, b = 10.0**log_a, 10.0**log_b
    logit = math.log(a / b) + deviate / math.sqrt(min(a, b) + 0.1)
    x, y = 1.0 / (1.0 + math.exp(-logit)), 1.0 / (1.0 + math.exp(logit))
    step = math.exp(special.log_beta_kernel(a, b, x, y)) / a
    here, next_p = special.log_beta_tails(a, b, x, y), special.log_beta_tails(a + 1.0, b, x, y)
    sure = _sure(a, b, deviate)
    assert math.exp(next_p[0]) + step == pytest.approx(math.exp(here[0]), rel=sure)
    assert math.exp(here[1]) + step == pytest.approx(math.exp(next_p[1]), rel=sure / min(a, b, 1.0))


def test_beta_tails_at_the_ends_of_the_interval():
    assert special.log_beta_p(2.0, 3.0, 0.0) == -np.inf
    assert special.log_beta_q(2.0, 3.0, 0.0) == 0.0
    assert special.log_beta_p(2.0, 3.0, 1.0) == 0.0
    assert special.log_beta_q(2.0, 3.0, 1.0) == -np.inf
    assert math.isnan(special.log_beta_p(-1.0, 1.0, 0.5))
    assert math.isnan(special.log_beta_q(1.0, np.nan, 0.5))
    assert math.isnan(special.log_beta_p(1.0, 1.0, np.nan))


def test_log_beta_agrees_with_decimal_arithmetic(rng):
    for a, b in 10.0 ** rng.uniform(-6, 8, (100, 2)):
        assert special.log_beta(a, b) == pytest.approx(reference.log_beta(a, b), rel=1e-14, abs=1e-14)


def test_digamma_agrees_with_scipy(rng):
    for x in 10.0 ** rng.uniform(-8, 8, 1000):
        expected = scipy.special.digamma(x)
        assert special.digamma(x) == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_mass_above_agrees_with_both_tails_and_is_nothing_far_below_the_bulk(rng):
    n_skipped = 0
    for a, b in 10.0 ** rng.uniform(-2, 5, (3000, 2)):
        x = 1.0 / (1.0 + b / a * math.exp(rng.uniform(-1.0, 15.0) / math.sqrt(min(a, b))))
        above, tails = log_beta_above(a, b, x, 1.0 - x), special.log_beta_tails(a, b, x, 1.0 - x)
        assert above == tails[1] or (above == 0.0 and tails[0] < math.log(1e-17))
        n_skipped += above == 0.0 and tails[1] < 0.0
    assert n_skipped > 100


@pytest.mark.parametrize("x", [0.3, 0.68, 0.9])
def test_fraction_and_quadrature_agree_where_one_takes_over_from_the_other(x):
    for a, b in [(99.9, 3.0), (100.1, 3.0), (50.0, 9.99), (50.0, 10.01), (9.99, 70.0), (10.01, 70.0)]:
        log_p, log_q = reference.log_beta_tails(a, b, x)
        assert special.log_beta_p(a, b, x) == pytest.approx(log_p, rel=PROMISED, abs=PROMISED)
        assert special.log_beta_q(a, b, x) == pytest.approx(log_q, rel=PROMISED, abs=PROMISED)
