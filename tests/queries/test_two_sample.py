"""Bayes factors of two samples: by quadrature from their definition, and right about made samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from bayesjpt.queries.two_sample import labels_log_factor, numbers_log_factor, parts_log_factor, probability_of


def test_factor_of_two_labels_is_that_of_quadrature():
    first, second = np.array([7.0, 3.0]), np.array([2.0, 9.0])

    def marginal(counts):
        prior = stats.beta(0.5, 0.5)
        return integrate.quad(
            lambda u: (p := np.sin(u) ** 2) ** counts[0] * (1 - p) ** counts[1] * prior.pdf(p) * np.sin(2 * u),
            1e-9,
            np.pi / 2 - 1e-9,
        )[0]

    expected = np.log(marginal(first) * marginal(second) / marginal(first + second))
    assert labels_log_factor(first, second) == pytest.approx(expected, abs=1e-6)
    assert labels_log_factor(np.append(first, 0.0), np.append(second, 0.0)) == pytest.approx(expected, abs=1e-6)


def test_factor_of_parts_is_that_of_quadrature():
    first, second = np.array([8.0, 2.0, 5.0]), np.array([1.0, 6.0, 3.0])
    p = second.sum() / (first + second).sum()
    factors = []
    for c in (2.0, 8.0, 32.0, 128.0):
        prior = stats.beta(c * p, c * (1 - p))
        marginal = [
            integrate.quad(lambda x, a=a, b=b, prior=prior: x**b * (1 - x) ** a * prior.pdf(x), 0, 1)[0]
            for a, b in zip(first, second, strict=True)
        ]
        factors.append(np.log(marginal).sum() - second.sum() * np.log(p) - first.sum() * np.log(1 - p))
    assert parts_log_factor(first, second) == pytest.approx(logsumexp(factors) - np.log(4), abs=1e-6)


def test_numbers_are_judged_by_their_order_alone(rng):
    first, second = rng.normal(size=80), rng.normal(0.4, 1.0, 60)
    factor = numbers_log_factor(first, second)
    assert numbers_log_factor(np.exp(first), np.exp(second)) == factor
    assert numbers_log_factor(second, first) == pytest.approx(factor, abs=1e-9)
    assert numbers_log_factor(-first, -second) == pytest.approx(factor, abs=0.5)  # parts of odd sizes lie elsewhere


@pytest.mark.parametrize("n", [(50, 50), (400, 400), (800, 60)])
def test_samples_of_one_distribution_are_hardly_ever_said_to_differ(rng, n):
    said = [
        probability_of(numbers_log_factor(rng.normal(size=n[0]).round(1), rng.normal(size=n[1]).round(1)))
        for _ in range(200)
    ]
    assert np.mean(np.array(said) > 0.95) <= 0.02
    assert np.mean(said) < 0.45


@pytest.mark.parametrize("other", [stats.norm(0.5, 1.0), stats.norm(0.0, 1.6), stats.laplace(0.0, 0.45)])
def test_place_spread_and_shape_are_found(rng, other):
    said = [
        probability_of(numbers_log_factor(rng.normal(size=600), other.rvs(600, random_state=rng))) for _ in range(10)
    ]
    assert np.min(said) > 0.95


def test_single_values_are_found_among_continuous_ones(rng):
    first, second = rng.normal(size=500), rng.normal(size=500)
    second[rng.random(500) < 0.15] = 0.0
    assert probability_of(numbers_log_factor(first, second)) > 0.95


def test_equal_constants_are_alike():
    assert numbers_log_factor(np.full(30, 4.0), np.full(20, 4.0)) == pytest.approx(0.0, abs=3.0)
    assert probability_of(labels_log_factor(np.array([30.0]), np.array([20.0]))) == pytest.approx(0.5)
