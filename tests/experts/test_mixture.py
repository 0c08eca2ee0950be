"""Predictions by the mixture over draws and leaves: means and quantiles against SciPy's distributions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats

from bayesjpt.kernels.expert_mixture import _scaled_tail, fill_predicted
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, POISSON

CLOSE = 1e-9
N_DRAW, N_ROW, N_LEAF = 60, 5, 3


def _cells(kind: int, scale: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, means and dispersions of leaves that are apart and differ by draw."""
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.full(N_LEAF, 0.5), (N_DRAW, N_ROW))
    means = rng.normal(scale=3.0, size=(1, N_ROW, N_LEAF)) + rng.normal(scale=0.2, size=(N_DRAW, N_ROW, N_LEAF))
    if kind != GAUSSIAN:
        means = scale * np.exp(0.5 * means)
    return weight, means, np.exp(rng.normal(size=(N_DRAW, N_LEAF)))


def _leaf(kind: int, mean: np.ndarray, dispersion: np.ndarray):
    if kind == GAUSSIAN:
        return scipy.stats.norm(mean, np.sqrt(dispersion))
    return scipy.stats.poisson(mean) if kind == POISSON else scipy.stats.gamma(dispersion, scale=mean / dispersion)


def _predicted(kind: int, cells: tuple[np.ndarray, ...], levels: list[float]) -> np.ndarray:
    out = np.empty((cells[0].shape[1], 1 + len(levels)))
    fill_predicted(kind, *cells, np.array(levels), out)
    return out


@pytest.mark.parametrize(("kind", "scale"), [(GAUSSIAN, 1.0), (GAMMA, 1.0), (GAMMA, 1e-4)])
def test_means_and_quantiles_are_those_of_the_whole_mixture(kind, scale):
    weight, means, dispersion = cells = _cells(kind, scale)
    levels = [0.001, 0.05, 0.5, 0.95, 0.9999]
    found = _predicted(kind, cells, levels)
    for row in range(N_ROW):
        own = _leaf(kind, means[:, row], dispersion)
        share = weight[:, row] / N_DRAW
        np.testing.assert_allclose(found[row, 0], (share * means[:, row]).sum(), rtol=1e-12)
        spread = np.sqrt((share * (own.var() + (means[:, row] - found[row, 0]) ** 2)).sum())
        for k, level in enumerate(levels):
            below, above = ((share * own.cdf(found[row, 1 + k] + sign * CLOSE * spread)).sum() for sign in (-1.0, 1.0))
            assert below < level < above


@pytest.mark.parametrize("scale", [0.05, 3.0, 1e5])
def test_quantiles_of_counts_are_the_smallest_that_reach_their_level(scale):
    weight, means, dispersion = cells = _cells(POISSON, scale)
    levels = [0.01, 0.3, 0.95, 0.999]
    found = _predicted(POISSON, cells, levels)[:, 1:]
    for row in range(N_ROW):
        own = _leaf(POISSON, means[:, row], dispersion)
        for k, level in enumerate(levels):
            at, before = ((weight[:, row] / N_DRAW * own.cdf(found[row, k] - back)).sum() for back in (0.0, 1.0))
            assert before < level <= at * (1.0 + 1e-12)


@pytest.mark.parametrize("mean", [1e17, 1e20, 5e21])
def test_quantiles_of_counts_beyond_64_bits_are_those_of_the_normal_that_they_are_near(mean):
    levels = [0.025, 0.5, 0.975]
    alone = np.ones((1, 1, 1)), np.full((1, 1, 1), mean), np.ones((1, 1))
    found = _predicted(POISSON, alone, levels)[0]
    # numbers next to each other differ by less than 2e-5 deviations
    np.testing.assert_allclose((found - mean) / np.sqrt(mean), [0.0, *scipy.stats.norm.ppf(levels)], atol=1e-4)
    far = np.array([[[0.5, 0.5]]]), np.array([[[3.0, mean]]]), np.ones((1, 2))
    np.testing.assert_allclose(_predicted(POISSON, far, [0.25, 0.75])[0, 1:], [3.0, mean], rtol=1e-9)


def test_tails_of_normals_are_those_of_scipy():
    size = np.linspace(0.0, 8.5, 2_001)
    found = np.array([_scaled_tail(each) for each in size])
    np.testing.assert_allclose(found, 0.5 * scipy.special.erfcx(size / np.sqrt(2.0)), rtol=2e-14)


def test_a_level_between_two_far_normals_is_found():
    cells = np.array([[[0.5, 0.5]]]), np.array([[[-1e6, 1e6]]]), np.array([[1.0, 1e-6]])
    found = _predicted(GAUSSIAN, cells, [0.25, 0.5, 0.75])[0]
    assert found[0] == 0.0
    np.testing.assert_allclose(found[[1, 3]], [-1e6, 1e6], rtol=1e-12)
    assert -1e6 + 8.0 < found[2] < 1e6


def test_a_single_draw_of_a_single_leaf_has_the_quantiles_of_its_family():
    cells = np.ones((1, 1, 1)), np.full((1, 1, 1), 2.0), np.full((1, 1), 3.0)
    for kind in (GAUSSIAN, GAMMA, POISSON):
        found = _predicted(kind, cells, [0.1, 0.9])[0]
        np.testing.assert_allclose(found[1:], _leaf(kind, 2.0, 3.0).ppf([0.1, 0.9]), rtol=1e-10)
