"""What families say of the factor that leaves of a column share, against the priors that they describe to PyMC."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.families import dispatch, registry
from tests.families.examples import EXAMPLES
from tests.families.grid import log_prior

TOLERANCE = 1e-9
N_LEAF = 4
N_SCALE = 6
WITH_SCALE = [family for family in registry.FAMILIES if family.shared_scale is not None]
GIVEN_PARAMETERS = [family for family in WITH_SCALE if family.shared_scale.accumulate is not None]
GIVEN_STATISTICS = [family for family in WITH_SCALE if family.shared_scale.log_evidence is not None]

each_family = pytest.mark.parametrize("family", WITH_SCALE, ids=lambda family: family.name)


def column_of(family):
    """Return a column on which the family is among the examples."""
    return next(example.column for example in EXAMPLES if example.name == family.name)


def hyper_at(family, hyper: dict[str, float], tau: float) -> dict[str, float]:
    """Return the hyperparameters at a factor, by the definition: h tau^e + s log tau."""
    shared = family.shared_scale
    return {
        name: value * tau ** shared.exponents.get(name, 0.0) + shared.shifts.get(name, 0.0) * np.log(tau)
        for name, value in hyper.items()
    }


def sum_of_log_priors(family, hyper: dict[str, float], thetas: np.ndarray) -> float:
    """Return the log density of several leaves' parameters, (n_leaf, n_theta), by SciPy."""
    total = 0.0
    for theta in thetas:
        earlier: dict[str, float] = {}
        for parameter, value in zip(family.parameters, theta, strict=True):
            total += float(log_prior(parameter, value, parameter.arguments(hyper, earlier)))
            earlier[parameter.name] = value
    return total


def leaves(family, hyper: dict[str, float], rng: np.random.Generator) -> np.ndarray:
    """Return parameters of several leaves of moderate size, inside their bounds, float64 (N_LEAF, n_theta)."""
    thetas = []
    while len(thetas) < N_LEAF:
        theta = [
            {
                "positive": lambda: rng.gamma(2.0, 0.4) + 0.1,
                "unit": lambda: rng.uniform(0.05, 0.95),
                "real": lambda: rng.normal(0.0, 0.6),
            }[parameter.constraint]()
            for parameter in family.parameters
        ]
        if family.name == "student_t":
            theta[2] += 3.0
        if np.isfinite(sum_of_log_priors(family, hyper, np.array([theta]))):
            thetas.append(theta)
    return np.array(thetas)


def log_conditional(family, tau: float, thetas: np.ndarray, hyper: np.ndarray) -> float:
    """Return A log tau - B tau - log Z(tau) by the family's kernels."""
    number, terms = registry.number(family.name), np.zeros(2)
    dispatch.accumulate_scale(number, thetas.ravel(), hyper, terms)
    return float(
        terms[0] * np.log(tau) - terms[1] * tau - dispatch.log_scale_normaliser(number, tau, thetas.ravel(), hyper)
    )


def difference(family, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return what the kernels and the definition say of random factors, both less their value at a factor of 1."""
    column = column_of(family)
    start = np.full(len(family.parameters), 0.5)
    values = family.priors["default"](column, start)
    hyper = dict(zip(family.hyper_names, values.tolist(), strict=True))
    thetas = leaves(family, hyper, rng)
    taus = [1.0, *np.exp(rng.normal(0.0, 1.0, N_SCALE))]
    kernels = np.array([log_conditional(family, tau, thetas, values) for tau in taus])
    definition = np.array([sum_of_log_priors(family, hyper_at(family, hyper, tau), thetas) for tau in taus])
    assert np.isfinite(definition).all()
    return kernels - kernels[0], definition - definition[0]


def log_probability_of_rows(rows: np.ndarray, hyper: np.ndarray) -> float:
    """Return the log probability of labels one after the other, each by those before it: Polya's urn."""
    urn, total = hyper.copy(), 0.0
    for label in rows:
        total += np.log(urn[label] / urn.sum())
        urn[label] += 1.0
    return total


@pytest.mark.parametrize("family", GIVEN_STATISTICS, ids=lambda family: family.name)
def test_evidence_at_a_factor_is_that_of_rows_one_by_one(family, rng):
    column, number = column_of(family), registry.number(family.name)
    hyper, constants = family.priors["default"](column, np.full(9, 0.5)), family.constants(column)
    whole = constants.size == 1 or bool(constants[hyper.size :].all())
    assert whole
    for n in (0, 1, 5, 60):
        rows = rng.choice(hyper.size, n, p=rng.dirichlet(np.ones(hyper.size)))
        stats = np.bincount(rows, minlength=hyper.size).astype(float)
        if family.name == "bernoulli":  # a0 is that of label 1, which is counted second
            stats = stats[::-1].copy()
        for tau in (1e-3, 0.2, 1.0, 30.0):
            found = dispatch.scale_evidence(number, tau, stats, hyper, constants, -np.inf, np.inf)
            np.testing.assert_allclose(found, log_probability_of_rows(rows, tau * hyper), rtol=1e-9, atol=1e-12)


def test_evidence_of_labels_on_a_cell_counts_no_others(rng):
    family = registry.family("categorical")
    column = next(e.column for e in EXAMPLES if e.name == "categorical" and len(e.column.levels) > 3)
    hyper, constants = family.priors["default"](column, np.ones(1)), family.constants(column)
    inside = np.arange(hyper.size) >= 2
    constants[hyper.size :][-1], inside[-1] = 0.0, False
    rows = rng.choice(np.flatnonzero(inside), 30)
    stats = np.bincount(rows, minlength=hyper.size).astype(float)
    place = np.cumsum(inside) - 1
    for tau in (0.1, 3.0):
        given = (tau, stats, hyper, constants, constants[2], np.inf)
        found = dispatch.scale_evidence(registry.number("categorical"), *given)
        np.testing.assert_allclose(found, log_probability_of_rows(place[rows], tau * hyper[inside]), rtol=1e-9)


@pytest.mark.parametrize("family", GIVEN_PARAMETERS, ids=lambda family: family.name)
def test_conditional_of_the_factor_is_the_density_of_parameters_at_scaled_hyperparameters(family, rng):
    for _ in range(5):
        kernels, definition = difference(family, rng)
        np.testing.assert_allclose(kernels, definition, rtol=TOLERANCE, atol=TOLERANCE * np.abs(definition).max())


@each_family
def test_exponents_and_shifts_name_hyperparameters_and_are_not_zero(family):
    named = {**family.shared_scale.exponents, **family.shared_scale.shifts}
    assert named
    assert set(named) <= set(family.hyper_names)
    assert all(named.values())


@each_family
def test_shape_of_the_factor_is_positive_on_every_column_of_the_examples(family):
    for example in EXAMPLES:
        if example.name == family.name:
            assert 0.0 < family.shared_scale.shape(example.column) < np.inf


def test_families_without_a_shared_factor_say_nothing_of_it():
    for number, family in enumerate(registry.FAMILIES):
        if family.shared_scale is None:
            assert dispatch.log_scale_normaliser(number, 2.0, np.ones(2), np.ones(8)) == 0.0
