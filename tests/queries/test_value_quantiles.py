"""Quantiles of rows by points that rows share and points of their own, against distributions with closed forms."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bayesjpt.queries.value_quantiles import _smallest

LEVELS = np.array([0.05, 0.5, 0.95])


def column_of(minimum, maximum, *, base="real", atoms=(), resolution=0.0, support=(-np.inf, np.inf)):
    return SimpleNamespace(
        minimum=minimum, maximum=maximum, scale=(maximum - minimum) / 6.0, resolution=resolution, base=base,
        atoms=atoms, support=support,
    )  # fmt: skip


def smallest(column, cdf, n_row):
    """Return quantiles, and how many points each pass looked at; `cdf` maps points and row numbers to probabilities."""
    passes = []

    def below(points, rows):
        passes.append(points.shape)
        return cdf(points[:, None] if points.ndim == 1 else points, rows)

    return _smallest(below, column, LEVELS, np.arange(n_row)), passes


@pytest.mark.parametrize("n_row", [1, 5, 400])
def test_quantiles_of_normals_are_within_a_hundredth_of_a_resolution(n_row, rng):
    mean, sd = rng.normal(0.0, 3.0, n_row), rng.uniform(0.1, 2.0, n_row)
    found, passes = smallest(
        column_of(-10.0, 10.0, resolution=0.01), lambda x, rows: stats.norm.cdf(x, mean[rows], sd[rows]), n_row
    )
    exact = stats.norm.ppf(LEVELS[:, None], mean, sd)
    assert (found >= exact - 1e-12).all()
    assert (found - exact).max() <= 1e-4
    assert len(passes) <= 6  # bisection takes eighteen
    assert any(len(shape) == 2 for shape in passes) == (n_row == 400)


def test_quantiles_of_rows_that_reach_far_beyond_the_training_values(rng):
    mean = np.array([-80.0, 0.0, 40.0])
    found, _ = smallest(column_of(0.0, 1.0), lambda x, rows: stats.norm.cdf(x, mean[rows], 2.0), 3)
    np.testing.assert_allclose(found, stats.norm.ppf(LEVELS[:, None], mean, 2.0), atol=1e-8)


@pytest.mark.parametrize("top", [40, 100_000, 2**55])
def test_whole_numbers_are_the_smallest_that_reach_their_level(top, rng):
    share = rng.uniform(0.1, 0.9, 300)
    distribution = stats.randint if top > 1e6 else stats.binom
    parts = (0, np.floor(top * share)) if top > 1e6 else (top, share)

    def cdf(x, rows):
        return distribution.cdf(x, parts[0], np.broadcast_to(parts[1], 300)[rows])

    found, _ = smallest(column_of(0.0, float(top), base="integer", support=(0.0, np.inf)), cdf, 300)
    np.testing.assert_array_equal(found, np.floor(found))
    rows = np.arange(300)
    slack = 1.0 if top < 2**53 else 64.0  # there, floats are further apart
    assert (cdf(found, rows) >= LEVELS[:, None]).all()
    assert ((cdf(found - slack, rows) < LEVELS[:, None]) | (found <= 0.0)).all()


def test_a_jump_is_the_quantile_of_the_levels_within_it(rng):
    share = np.linspace(0.0, 1.0, 200)  # of the atom at 2.5; the others are uniform between 0 and 10

    def cdf(x, rows):
        return (1.0 - share[rows]) * np.clip(x / 10.0, 0.0, 1.0) + share[rows] * (x >= 2.5)

    found, _ = smallest(column_of(0.0, 10.0, atoms=(2.5,), support=(0.0, 10.0)), cdf, 200)
    before = (1.0 - share) * 0.25
    inside = (before < LEVELS[:, None]) & (before + share >= LEVELS[:, None])
    assert inside.any(axis=1).all()
    assert (found[inside] == 2.5).all()
    rest = np.where(before >= LEVELS[:, None], LEVELS[:, None], LEVELS[:, None] - share) * 10.0 / (1.0 - share + 1e-300)
    np.testing.assert_allclose(found[~inside], rest[~inside], atol=2e-8)


def test_of_a_stretch_without_mass_the_left_end_is_taken():
    # half lies in (0, 1), half in (9, 10): the median is 1
    found, _ = smallest(
        column_of(0.0, 10.0), lambda x, rows: 0.5 * np.clip(x, 0, 1) + 0.5 * np.clip(x - 9, 0, 1) + 0.0 * rows, 2
    )
    np.testing.assert_allclose(found[1], 1.0, atol=1e-7)


def test_levels_beyond_the_support_are_its_ends():
    found, _ = smallest(column_of(3.0, 8.0, support=(3.0, 8.0)), lambda x, rows: (x >= 3.0) * 0.5 + 0.0 * rows, 2)
    np.testing.assert_array_equal(found, [[3.0, 3.0], [3.0, 3.0], [8.0, 8.0]])


def test_columns_far_from_zero_end_the_search():
    centre = 1e15
    found, _ = smallest(
        column_of(centre - 1.0, centre + 1.0), lambda x, rows: stats.norm.cdf(x - centre, 0.0, 0.3) + 0.0 * rows, 2
    )
    assert (np.abs(found - centre) <= 1.5).all()


@pytest.mark.parametrize("base", ["real", "integer"])
def test_quantiles_beyond_the_training_values_end_the_search_where_floats_are_further_apart(base):
    top, far = 8932433943763214.0, 2e17
    found, _ = smallest(
        column_of(0.0, top, base=base, support=(0.0, np.inf)), lambda x, rows: (x >= far) + 0.0 * rows, 2
    )
    assert ((found >= far) & (found <= far + 1e-9 * (base == "real") * top + 4.0 * np.spacing(far))).all()
