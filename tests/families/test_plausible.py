"""What default priors promise of parts of a column: tails that end where it does, means inside it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesjpt.families import features, plausible, registry
from bayesjpt.families.record import OK
from bayesjpt.table.schema import Column
from bayesjpt.table.table import as_table
from tests.families.examples import COUNT, LEVELS, POSITIVE, draw_chain
from tests.families.ordered import ordered

N_DRAW = 400
CROWDS = ((0.0,) * 30 + (12.0,) * 4, (0.0,) * 10, (12.0,) * 6, (0.5, 1.0, 12.0), ())
"""Rows of a leaf of `POSITIVE`, which ends at 12: zeros, the largest value, both, few, none."""


def reach(name: str, theta: np.ndarray) -> np.ndarray:
    """Return sqrt(E z^3 / E z) of an exponential, a gamma or a lognormal, from its raw moments."""
    if name == "gamma":
        third, first = (scipy.stats.gamma.moment(k, theta[:, 0], scale=1.0 / theta[:, 1]) for k in (3, 1))
        return np.sqrt(third / first)
    if name == "exponential":
        return np.sqrt(6.0 / theta[:, 0] ** 3 * theta[:, 0])
    log_moment = [k * theta[:, 1] + 0.5 * k * k * theta[:, 0] for k in (1, 3)]
    return np.exp(0.5 * (log_moment[1] - log_moment[0]))


@pytest.mark.parametrize("name", ["exponential", "gamma", "lognormal"])
@pytest.mark.parametrize("rows", CROWDS, ids=len)
def test_parts_reach_no_farther_than_the_column(name, rows, rng):
    family = registry.family(name)
    farthest = plausible.farthest(POSITIVE)
    assert farthest == POSITIVE.maximum / POSITIVE.scale
    theta = features.initial_theta(family, POSITIVE, np.array(rows))
    hyper, draws = family.priors["default"](POSITIVE, theta), np.empty((N_DRAW, theta.size))
    assert draw_chain(family, POSITIVE, np.array(rows), hyper, theta, rng, draws) == OK
    assert (reach(name, draws) <= farthest * (1.0 + 1e-9)).all()


def test_the_gamma_leaves_where_zeros_are_recorded_not_where_a_value_lies_below_half_a_cell():
    def offered(minimum: float, atoms: tuple[float, ...] = ()) -> bool:
        column = dataclasses.replace(POSITIVE, resolution=0.5, minimum=minimum, atoms=atoms)
        return any(member.name == "gamma" for member in registry.dictionary(column))

    assert not offered(0.0)
    assert offered(0.0, atoms=(0.0,))
    assert offered(0.01)
    assert offered(3.0)


def test_splines_stand_beside_normals_where_numbers_below_zero_lean_to_one_side(rng):
    z = rng.normal(1.0, 1.0, 400)

    def offered(values: np.ndarray) -> bool:
        (column,) = as_table(pd.DataFrame({"x": values})).schema
        return any(member.name == "spline" for member in registry.dictionary(column))

    assert offered(-np.exp(z))
    assert offered(np.exp(z) - 1.0)
    assert offered(np.rint(1e3 * (np.exp(z) - 1.0)))
    clusters = rng.normal(0.0, 0.1, 400)
    for share in (0.1, 0.3):  # quartiles in one cluster, or in both
        assert not offered(clusters + 10.0 * (np.arange(400) >= 400 * share))
    assert not offered(np.exp(z))  # lognormal and gamma lean
    assert not offered(z)
    assert not offered(np.rint(np.where(z < 1.0, -1.0, 100.0 * np.exp(z))))  # -1 alone is below zero
    assert not offered(np.where(z < 0.0, -1.0, 100.0 * np.exp(z)))
    assert not offered(np.array([-1.0, 0.0, 0.0, 0.0, 3.0] * 80))  # levels have shares of their own


def test_splines_stand_where_numbers_lie_evenly_between_two_ends(rng):
    uniform, normal = rng.uniform(size=300), rng.normal(size=300)

    def offered(values: np.ndarray) -> bool:
        (column,) = as_table(pd.DataFrame({"x": values})).schema
        return any(member.name == "spline" for member in registry.dictionary(column))

    assert offered(18262.0 + 365.0 * uniform)
    assert offered(100.0 * uniform)
    assert offered(np.rint(10_000.0 + 50_000.0 * uniform))
    assert not offered(normal)
    assert not offered(np.where(uniform < 0.5, 0.0, 1.0) + 0.01 * normal)
    assert not offered(uniform + rng.uniform(size=300))  # a triangle
    assert not offered(np.exp(normal))
    assert not offered(np.arange(300) % 7)  # levels have shares of their own


def count_reach(name: str, theta: np.ndarray) -> np.ndarray:
    """Return sqrt(E z^3 / E z) of a geometric or a negative binomial, from sums of masses."""
    z = np.arange(4000.0)
    size, p = (np.ones(len(theta)), theta[:, 0]) if name == "geometric" else theta.T
    mass = scipy.stats.nbinom.pmf(z, size[:, None], p[:, None])
    return np.sqrt((mass * z**3).sum(axis=1) / (mass * z).sum(axis=1))


@pytest.mark.parametrize("name", ["poisson", "geometric", "negative_binomial"])
@pytest.mark.parametrize("rows", [(0.0,) * 30 + (12.0,) * 4, (12.0,) * 6, (0.0, 1.0, 12.0), ()], ids=len)
def test_parts_of_counts_reach_no_farther_than_the_column(name, rows, rng):
    column = dataclasses.replace(COUNT, maximum=12.0, mean=2.0, mean_without_atoms=2.0, deviation_without_atoms=4.0)
    family = registry.family(name)
    theta = features.initial_theta(family, column, np.array(rows))
    hyper, draws = family.priors["default"](column, theta), np.empty((N_DRAW, theta.size))
    assert draw_chain(family, column, np.array(rows), hyper, theta, rng, draws) == OK
    if name == "poisson":
        assert (draws <= 12.0).all()
        return
    assert (count_reach(name, draws) <= 12.0 * (1.0 + 1e-9)).all()
    if rows == (12.0,) * 6:  # planted: the same prior without its bound
        loose = np.append(hyper[:-1], 0.0)
        assert draw_chain(family, column, np.array(rows), loose, theta, rng, draws) == OK
        assert (count_reach(name, draws) > 12.0).mean() > 0.1


@pytest.mark.parametrize("name", ["normal", "gamma", "exponential", "lognormal", "student_t"])
def test_priors_do_not_depend_on_the_unit_up_to_the_largest_float(name):
    family, unit = registry.family(name), 2.0**1020
    here = dataclasses.replace(POSITIVE, mean_without_atoms=8.0, deviation_without_atoms=6.0)
    sizes = ("resolution", "scale", "mean", "minimum", "maximum", "mean_without_atoms", "deviation_without_atoms")
    other = dataclasses.replace(here, **{size: unit * getattr(here, size) for size in sizes})
    start = np.ones(len(family.parameters))
    hyper = family.priors["default"](other, start)
    assert np.isfinite(hyper).all()
    np.testing.assert_array_equal(hyper, family.priors["default"](here, start))


@pytest.mark.parametrize("variance", [0.5, 4.0, 26.0])
def test_a_lognormal_has_a_bounded_variance_beyond_any_cut(variance):
    """A leaf of a tree keeps the part beyond a split, however little of the lognormal that is."""
    family, farthest = registry.family("lognormal"), plausible.farthest(POSITIVE)
    constants = family.constants(POSITIVE)
    highest = np.log(farthest) - 2.0 * variance
    for cut in (0.1 * farthest, farthest):
        spread = family.moment(2, cut, np.inf, np.array([variance, highest]), constants)
        assert spread < 15.0 * max(cut, 0.5 * farthest) ** 2
    # planted: the root of the mean square is bounded alone
    widest = family.moment(2, farthest, np.inf, np.array([26.0, np.log(farthest) - 26.0]), constants)
    assert widest > 1e3 * farthest**2


def test_means_of_parts_are_spread_like_a_column_narrower_than_rounding():
    rare = Column("rare", "integer", (0.0, np.inf), mean=0.03, maximum=2.0, mean_without_atoms=0.03,
                  deviation_without_atoms=0.25)  # fmt: skip
    for column in (rare, COUNT):
        hyper = dict(
            zip(
                registry.family("truncated_rounded_normal").hyper_names,
                registry.family("truncated_rounded_normal").priors["default"](column, np.empty(0)),
                strict=True,
            )
        )
        at_most = hyper["v0"] * (hyper["floor"] + hyper["b0"] / (hyper["a0"] - 1.0))
        assert at_most == pytest.approx(plausible.squared_deviation(column), rel=1e-12)


def test_tails_heavier_than_a_poisson_are_offered_where_values_can_show_them():
    def names(column):
        return {family.name for family in registry.dictionary(column)}

    heavy = {"negative_binomial", "geometric"}
    facts = {"mean": 2.0, "mean_without_atoms": 2.0, "deviation_without_atoms": 3.0}
    few = dataclasses.replace(LEVELS, levels=(0.0, 1.0, 9.0), frequencies=(0.5, 0.3, 0.2), **facts)
    assert heavy.isdisjoint(names(few))
    assert "poisson" in names(few)  # a whole number that training never showed is possible
    assert heavy <= names(dataclasses.replace(LEVELS, **facts))


def test_ends_of_ordered_levels_stay_rare(rng):
    """Rows that are spread over the common levels, and none at an end."""
    share = np.array([0.0005, 0.2, 0.5, 0.2, 0.0985, 0.001])
    column = dataclasses.replace(LEVELS, levels=(-900.0, 1.0, 2.0, 3.0, 4.0, 3000.0), frequencies=tuple(share))
    family, rows = registry.family("ordinal"), np.array([1.0, 4.0] * 20)
    theta = features.initial_theta(family, column, rows)
    hyper, draws = family.priors["default"](column, theta), np.empty((N_DRAW, theta.size))
    assert draw_chain(family, column, rows, hyper, theta, rng, draws) == OK
    widest = draws[:, 0].max()
    assert draws[:, 0].mean() > 1.0
    at_ends = ordered(widest, 0.0, column).pmf([-900.0, 3000.0])
    assert (at_ends <= 1.55 * share[[0, -1]]).all()
    # planted: the scale that describes the common levels best
    assert ordered(1.3, 0.0, column).pmf(-900.0) > 5.0 * share[0]
