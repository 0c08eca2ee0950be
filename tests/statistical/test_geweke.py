"""The sweep leaves the joint distribution of parameters and data as it is: Geweke's test, family by family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.signal

from tests import zoo
from tests.statistical import geweke
from tests.statistical.geweke import Case

N_ROW = 10
N_QUICK = 20_000
N_LONG = 200_000
N_CODED = 30_000
MISSING = 0.25
ESS_TOLERANCE = 0.1
"""Relative; of estimated effective sample sizes of long chains with a known one."""

COARSE = replace(zoo.POSITIVE, resolution=0.6)
"""A tenth of its values or more are recorded as 0."""
FINE = replace(zoo.POSITIVE, resolution=1e-3)
COLUMN_OF = {
    "normal": zoo.REAL,
    "gamma": COARSE,
    "exponential": COARSE,
    "poisson": zoo.COUNT,
    "geometric": zoo.COUNT,
    "categorical": zoo.LABEL,
}


def one_family(name: str, rng: np.random.Generator) -> Case:
    """Return a single leaf."""
    table = zoo.make_table((COLUMN_OF[name],), N_ROW, rng)
    return geweke.make_case(zoo.independent(table, zoo.only(name)), table.schema, np.zeros((1, N_ROW), bool))


def dictionary(_name: str, rng: np.random.Generator) -> Case:
    """Return a dictionary of normal, gamma and exponential."""
    table = zoo.make_table((FINE,), N_ROW, rng)
    return geweke.make_case(zoo.independent(table), table.schema, np.zeros((1, N_ROW), bool))


def two_levels(_name: str, rng: np.random.Generator) -> Case:
    """Return sums below sums over dictionaries of three, two and one, a quarter of the cells and one row missing."""
    table = zoo.make_table((FINE, zoo.COUNT, zoo.LABEL), N_ROW, rng)
    missing = rng.random((3, N_ROW)) < MISSING
    missing[:, 3] = True
    missing[:, [0, -1]] = False
    return geweke.make_case(zoo.two_level(table), table.schema, missing)


CASES = {**dict.fromkeys(COLUMN_OF, one_family), "dictionary": dictionary, "two levels": two_levels}


def assert_agreement(comparison: geweke.Comparison) -> None:
    assert comparison.ess.min() > geweke.MIN_ESS
    assert comparison.agrees, comparison.worst


@pytest.mark.parametrize("name", CASES)
def test_sweeps_keep_the_joint_distribution(name, rng):
    assert_agreement(geweke.compare(CASES[name](name, rng), N_QUICK, rng))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_sweeps_keep_the_joint_distribution_in_a_long_run(name, rng):
    assert_agreement(geweke.compare(CASES[name](name, rng), N_LONG, rng))


@pytest.mark.slow
def test_sweeps_over_distinct_values_keep_the_joint_distribution(rng):
    assert_agreement(geweke.compare(two_levels("", rng), N_CODED, rng, coded=True))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_size_of_an_autoregression_is_known(correlation, rng):
    chain = scipy.signal.lfilter([1.0], [1.0, -correlation], rng.normal(size=(N_LONG, 1)), axis=0)
    expected = N_LONG * (1.0 - correlation) / (1.0 + correlation)
    np.testing.assert_allclose(geweke.effective_sizes(chain), expected, rtol=ESS_TOLERANCE)
