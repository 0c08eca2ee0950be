"""Default priors have moments, near those of the column: draws of factors and parameters by SciPy, moments by SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.families import registry
from bayesjpt.families.record import Family
from bayesjpt.table.schema import Column
from tests.families.examples import reference
from tests.statistical.geweke import prior_leaf

N_DRAW = 20_000
N_COLUMN = 12
TRIMMED = 1e-3
"""Share of draws, those farthest out, that the estimates leave out: at a floor of the variance a factor near 0 still
widens the prior of the mean without bounds."""
MAX_SHIFT = 3.0
"""Of the prior predictive mean from the column's, in standard deviations of the column."""
MAX_VARIANCE = 20.0
"""Of the prior predictive variance, in variances of the column."""
KINDS = ("real", "positive", "count")
FOLLOWED = ("normal", "student_t", "lognormal", "gamma", "exponential", "poisson", "geometric", "negative_binomial")
"""Families with a shared factor whose moments SciPy has."""


def random_column(kind: str, rng: np.random.Generator) -> Column:
    """Return a column with the facts of random values: of any location and scale, from narrow to skewed."""
    n = 400
    if kind == "real":
        values = rng.normal(0.0, 100.0) + np.exp(rng.normal(0.0, 2.0)) * rng.normal(size=n)
    elif kind == "positive":
        values = np.exp(rng.normal(0.0, 2.0)) * rng.gamma(np.exp(rng.normal(1.0, 1.0)), size=n) + 0.02
    else:
        mean = np.exp(rng.normal(1.5, 1.0))
        values = rng.poisson(mean * rng.gamma(2.0, 0.5, n)).astype(float)
        values[0] += 1.0  # never constant
    resolution = 1.0 if kind == "count" else 0.01 * values.std()
    return Column(
        kind,
        "integer" if kind == "count" else "real",
        (-np.inf if kind == "real" else 0.0, np.inf),
        resolution=resolution,
        location=float(np.median(values)),
        scale=float(max(np.subtract(*np.percentile(values, (75.0, 25.0))) / 1.35, resolution)),
        mean=float(values.mean()),
        minimum=float(values.min()),
        maximum=float(values.max()),
        mean_without_atoms=float(values.mean()),
        deviation_without_atoms=float(values.std()),
    )


def default_hyper(family: Family, column: Column, rng: np.random.Generator) -> np.ndarray:
    """Return hyperparameters of the default prior under draws of the shared factor, float64 (n_hyper, N_DRAW)."""
    shared, start = family.shared_scale, np.ones(len(family.parameters))
    assert shared is not None
    shape = shared.shape(column)
    tau = rng.gamma(shape, 1.0 / shape, N_DRAW)
    hyper = np.repeat(family.priors["default"](column, start)[:, None], N_DRAW, axis=1)
    for j, name in enumerate(family.hyper_names):
        hyper[j] = hyper[j] * tau ** shared.exponents.get(name, 0.0) + shared.shifts.get(name, 0.0) * np.log(tau)
    return hyper


def moments(family: Family, column: Column, hyper: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Return shift and variance of the prior predictive, in standard deviations and variances of the column."""
    theta = prior_leaf(family.name, hyper, N_DRAW, rng)
    with np.errstate(divide="ignore"):  # SciPy computes the skewness, too
        mean, variance = reference(family.name, theta.T, column).stats(moments="mv")
    unit = column.scale if column.base == "real" else 1.0
    origin = column.location if family.name in ("normal", "student_t") else 0.0
    sd = column.deviation_without_atoms
    shift = (origin + unit * mean - column.mean_without_atoms) / sd
    square = variance * (unit / sd) ** 2 + (shift - np.median(shift)) ** 2
    kept = np.argsort(square)[: round((1.0 - TRIMMED) * N_DRAW)]
    return float(shift[kept].mean()), float(square[kept].mean())


def is_plausible(shift: float, variance: float) -> bool:
    return abs(shift) <= MAX_SHIFT and variance <= MAX_VARIANCE


@pytest.mark.parametrize("kind", KINDS)
def test_default_priors_have_moments_near_those_of_the_column(kind, rng):
    found = set()
    for _ in range(N_COLUMN):
        column = random_column(kind, rng)
        for family in registry.dictionary(column):
            if family.name in FOLLOWED:
                at = moments(family, column, default_hyper(family, column, rng), rng)
                assert is_plausible(*at), (family.name, column, at)
                found.add(family.name)
    assert len(found) >= 2


@pytest.mark.parametrize(
    ("kind", "name", "hyper"),
    [
        ("real", "normal", lambda column: [0.0, 100.0, 1.0, 0.05, 1e-6]),
        ("count", "geometric", lambda column: [1.0, column.mean, 0.0]),
    ],
)
def test_a_prior_without_moments_is_caught(kind, name, hyper, rng):
    column = random_column(kind, rng)
    planted = np.repeat(np.array(hyper(column))[:, None], N_DRAW, axis=1)
    assert not is_plausible(*moments(registry.family(name), column, planted, rng))
