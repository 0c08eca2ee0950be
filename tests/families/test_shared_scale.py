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


@each_family
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
