"""The sweep leaves the joint distribution of parameters and data as it is: Geweke's test, family by family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.signal

from bayesjpt.table.schema import Column
from tests import examples as ex
from tests import naive
from tests.statistical import geweke
from tests.statistical.geweke import Case

N_ROW = 10
N_QUICK = 20_000
N_LONG = 100_000
N_CODED = 30_000
MISSING = 0.25
ESS_TOLERANCE = 0.1
"""Relative; of estimated effective sample sizes of long chains with a known one."""

COARSE = replace(ex.PLAIN[1], resolution=0.6)
"""A tenth of its values or more are recorded as 0."""
FINE = replace(ex.PLAIN[1], resolution=1e-3)
FINE_ZEROS = replace(ex.ZEROS, resolution=1e-3)
FIRST_SIX = ("normal", "gamma", "exponential", "poisson", "geometric", "categorical")
COLUMN_OF = {
    "normal": ex.PLAIN[0],
    "student_t": ex.PLAIN[0],
    "gamma": COARSE,
    "exponential": COARSE,
    "lognormal": COARSE,
    "poisson": ex.PLAIN[2],
    "geometric": ex.PLAIN[2],
    "negative_binomial": ex.PLAIN[2],
    "truncated_rounded_normal": ex.PLAIN[2],
    "rounded_normal": ex.CHANGE,
    "categorical": ex.PLAIN[4],
    "bernoulli": ex.FLAG,
    "quantile": ex.PLAIN[0],
    "ordinal": ex.PLAIN[3],
}
DICTIONARY_OF = {
    "all likelihoods of positive numbers": (FINE, ("normal", "gamma", "exponential", "lognormal")),
    "all likelihoods of counts": (
        ex.PLAIN[2],
        ("poisson", "geometric", "negative_binomial", "truncated_rounded_normal"),
    ),
    "atoms beside normal and student_t": (ex.HEAPED, ("normal", "student_t", "atom")),
    "an atom at zero beside positive likelihoods": (FINE_ZEROS, ("gamma", "lognormal", "atom")),
    "an atom over a background": (ex.FIXED, ("uniform", "atom")),
    "ordered levels beside their shares and counts": (ex.PLAIN[3], ("poisson", "categorical", "ordinal")),
    "pieces beside counts": (ex.PLAIN[2], ("poisson", "quantile")),
}


def one_family(name: str, rng: np.random.Generator) -> Case:
    """Return a single leaf."""
    return one_column(COLUMN_OF[name], (name,), rng)


def dictionary(name: str, rng: np.random.Generator) -> Case:
    """Return one dictionary."""
    return one_column(*DICTIONARY_OF[name], rng)


def one_column(column: Column, families: tuple[str, ...], rng: np.random.Generator) -> Case:
    table = ex.make_table((column,), N_ROW, rng)
    circuit = ex.independent(table, ex.only(*families))
    assert {naive.leaf_family(circuit, leaf) for leaf in range(circuit.n_leaf)} == set(families)
    return geweke.make_case(circuit, table.schema, np.zeros((1, N_ROW), bool))


def two_levels(_name: str, rng: np.random.Generator) -> Case:
    """Return sums below sums over dictionaries of three, two and one, a quarter of the cells and one row missing."""
    return deep((FINE, ex.PLAIN[2], ex.PLAIN[4]), FIRST_SIX, rng)


def deep(columns: tuple[Column, ...], families: tuple[str, ...], rng: np.random.Generator) -> Case:
    """Return sums below sums, a quarter of the cells and one row missing."""
    table = ex.make_table(columns, N_ROW, rng)
    missing = rng.random((len(columns), N_ROW)) < MISSING
    missing[:, 3] = True
    missing[:, [0, -1]] = False
    return geweke.make_case(ex.two_level(table, ex.only(*families)), table.schema, missing)


CASES = {
    **dict.fromkeys(COLUMN_OF, one_family),
    **dict.fromkeys(DICTIONARY_OF, dictionary),
    "two levels": two_levels,
}


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


@pytest.mark.slow
def test_sweeps_over_distinct_values_keep_the_joint_distribution_of_families_drawn_by_value(rng):
    columns = (ex.HEAPED, ex.PLAIN[2], ex.CHANGE)
    families = ("student_t", "atom", "negative_binomial", "truncated_rounded_normal", "rounded_normal")
    assert_agreement(geweke.compare(deep(columns, families, rng), N_CODED, rng, coded=True))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_size_of_an_autoregression_is_known(correlation, rng):
    chain = scipy.signal.lfilter([1.0], [1.0, -correlation], rng.normal(size=(N_LONG, 1)), axis=0)
    expected = N_LONG * (1.0 - correlation) / (1.0 + correlation)
    np.testing.assert_allclose(geweke.effective_sizes(chain), expected, rtol=ESS_TOLERANCE)
