"""What only the lognormal, the t, the uniform and the atom promise."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from bayesjpt.families import features, registry
from tests.families.examples import ATOMS, CONSTANT, POSITIVE, REAL, Example

QUADRATURE = 1e-9
EXACT = 1e-14


def _t(nu: float) -> Example:
    return Example("student_t", REAL, (0.25, 1.0, nu), -2.0, 40.0)


@pytest.mark.parametrize("nu", [1.0, 1.4, 2.0])
@pytest.mark.parametrize("k", [1, 2])
def test_truncated_moments_of_a_heavy_tailed_t_agree_with_quadrature(nu, k):
    example = _t(nu)
    density = example.reference().pdf
    ends = (example.lo, 0.9, 1.1, 5.0, example.hi)
    total = sum(scipy.integrate.quad(density, *piece)[0] for piece in pairwise(ends))
    expected = sum(scipy.integrate.quad(lambda x: x**k * density(x), *piece)[0] for piece in pairwise(ends))
    assert example.moment(k, example.lo, example.hi) == pytest.approx(expected / total, rel=QUADRATURE)


def test_moments_of_a_t_that_do_not_exist_are_infinite():
    assert _t(1.0).moment(1, 3.0, np.inf) == np.inf
    assert _t(1.0).moment(1, -np.inf, 3.0) == -np.inf
    assert _t(0.7).moment(1, -np.inf, np.inf) == np.inf
    assert _t(1.5).moment(1, -np.inf, np.inf) == 1.0
    assert _t(2.0).moment(2, -np.inf, np.inf) == np.inf
    assert np.isfinite(_t(1.5).moment(1, 3.0, np.inf))


def test_t_of_many_degrees_is_the_normal():
    normal, t = Example("normal", REAL, (0.25, 1.0), 1.5, 3.0), _t(1e18)
    z = np.linspace(-3.0, 5.0, 30)
    np.testing.assert_allclose(t.log_density(z), normal.log_density(z), rtol=1e-12)
    assert t.log_mass(1.5, 3.0) == pytest.approx(normal.log_mass(1.5, 3.0), rel=1e-10)
    assert t.moment(2, 1.5, 3.0) == pytest.approx(normal.moment(2, 1.5, 3.0), rel=1e-10)


def test_far_outlier_leaves_the_centre_of_a_t_alone(rng):
    family = registry.family("student_t")
    z = np.append(rng.normal(0.0, 1.0, 60), 1e6)
    theta = features.initial_theta(family, dataclasses.replace(REAL, location=0.0, scale=1.0), z)
    hyper = family.priors["default"](REAL, theta)
    draws = np.empty((400, 3))
    for draw in draws:
        assert family.draw_from_values(z, np.ones(z.size), hyper, np.empty(0), theta, rng) == 0
        draw[:] = theta
    assert np.abs(draws[100:, 1]).max() < 1.5
    assert draws[100:, 0].max() < 5.0


def test_floor_of_lognormal_variance_is_the_rounding_error_at_the_maximum():
    family = registry.family("lognormal")
    floor = family.hyper_names.index("floor")
    assert family.priors["default"](POSITIVE, np.empty(0))[floor] == pytest.approx((0.5 / 12.0) ** 2 / 12.0, rel=EXACT)
    zeros_alone = dataclasses.replace(POSITIVE, maximum=0.0)
    assert family.priors["default"](zeros_alone, np.empty(0))[floor] == pytest.approx(1.0 / 12.0, rel=EXACT)
    fine = dataclasses.replace(POSITIVE, resolution=1e-15)
    assert family.priors["default"](fine, np.empty(0))[floor] == 1e-11


def test_lognormal_of_enormous_variance_has_finite_samples_and_infinite_moments(rng):
    example = Example("lognormal", POSITIVE, (1e6, 0.0), 1.0, 2.0)
    draws = [example.family.sample(-np.inf, np.inf, example.parameters, example.constants, rng) for _ in range(200)]
    assert np.isfinite(draws).all()
    assert min(draws) > 0.0
    assert example.moment(1, -np.inf, np.inf) == np.inf
    assert example.moment(2, 0.0, np.inf) == np.inf
    assert 1.0 <= example.moment(1, 1.0, 2.0) <= 2.0


@pytest.mark.parametrize(("column", "ends"), [(REAL, (-11.0, 22.0)), (CONSTANT, (0.0, 8.0))])
def test_uniform_reaches_one_range_beyond_the_column_and_no_further(column, ends):
    example = Example("uniform", column, (), -1.0, 1.0)
    z = features.to_units(example.family, column, np.array([*ends, ends[0] - 1e-6, ends[1] + 1e-6]))
    level = -math.log((ends[1] - ends[0]) / column.scale)
    np.testing.assert_allclose(example.log_density(z), [level, level, -np.inf, -np.inf], rtol=EXACT)


def test_uniform_of_a_column_of_zeros_has_width_two():
    column = dataclasses.replace(CONSTANT, location=0.0, scale=1.0, minimum=0.0, maximum=0.0)
    np.testing.assert_array_equal(registry.family("uniform").constants(column), [-1.0, 1.0])


def test_uniform_of_the_largest_numbers_has_a_finite_density():
    column = dataclasses.replace(CONSTANT, location=0.0, scale=1.0, minimum=-1e308, maximum=1e308)
    example = Example("uniform", column, (), -1.0, 1.0)
    assert np.isfinite(example.log_density(3.0)).all()
    assert example.log_mass(0.0, np.inf) == pytest.approx(math.log(0.5), rel=EXACT)
    assert example.cdf(0.0) == 0.5
    assert example.mode(-np.inf, np.inf) == 0.0


def test_uniform_is_offered_to_constant_columns_or_where_it_is_named():
    def names(column):
        return [family.name for family in registry.dictionary(column)]

    assert "uniform" in names(CONSTANT)
    assert "uniform" not in names(REAL)
    assert names(dataclasses.replace(REAL, families=("normal", "uniform"))) == ["normal", "uniform"]


def test_density_at_an_atom_cancels_the_jacobian_of_the_column():
    column = dataclasses.replace(ATOMS, scale=4.0)
    example = Example("atom", column, (0.5, 0.05, 0.15, 0.3), 0.0, 1.0)
    got = example.log_density([0.0, 9.0, 9.0 + 1e-9, 3.0]) - math.log(column.scale)
    np.testing.assert_allclose(got, [math.log(0.5), math.log(0.3), -np.inf, -np.inf], rtol=EXACT)


def test_mass_around_an_atom_is_its_probability():
    example = Example("atom", dataclasses.replace(ATOMS, scale=4.0), (0.5, 0.05, 0.15, 0.3), 0.0, 1.0)
    assert example.log_mass(8.5, 9.5) == pytest.approx(math.log(0.3), rel=EXACT)
    assert example.log_mass(9.0, 9.0) == pytest.approx(math.log(0.3), rel=EXACT)
    assert example.log_mass(9.0 + 1e-9, 20.0) == -np.inf


def test_atom_is_offered_exactly_where_a_column_has_atoms():
    def names(column):
        return [family.name for family in registry.dictionary(column)]

    assert "atom" in names(ATOMS)
    assert "atom" not in names(REAL)
    assert names(dataclasses.replace(ATOMS, families=("normal",))) == ["normal", "atom"]


def test_values_that_are_no_atoms_add_nothing_to_the_statistics():
    stats = features.statistics(registry.family("atom"), ATOMS, np.array([0.0, 0.5, 9.0, 9.0, -3.0]))
    np.testing.assert_array_equal(stats, [1.0, 0.0, 0.0, 2.0])
