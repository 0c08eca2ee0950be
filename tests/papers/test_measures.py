"""The measures against their definitions, on cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, poisson

from tests.papers import lace_peer, lace_worker, measures

AVERAGING = 1e-5
"""Relative error of a mean over 400 points of a cell as wide as the density's standard deviation."""

ARITHMETIC = 1e-12

NORMAL = 2e-6
"""Nats; differences of distribution functions near the narrowest cells that use them."""


def test_log_of_mean_averages_over_chains_and_draws():
    log_values = np.log([[[0.1, 0.2], [0.3, 0.2]], [[0.4, 0.8], [0.8, 0.4]]])
    assert np.exp(measures.log_of_mean(log_values)) == pytest.approx([0.4, 0.4])
    assert measures.mean_of_log(log_values) == pytest.approx(log_values.mean(axis=(0, 1)))


def test_log_of_mean_does_not_underflow():
    assert measures.log_of_mean(np.array([[[-2000.0], [-2000.0 + np.log(3.0)]]])) == pytest.approx(
        -2000.0 + np.log(2.0)
    )


def test_rows_that_are_impossible_under_any_draw_are_counted_once():
    values = np.zeros((2, 2, 4))
    values[0, 1, 0] = values[1, 1, 0] = -np.inf
    other = np.zeros((2, 2, 4))
    other[1, 0, 2] = np.nan
    assert measures.n_impossible(values, other) == 2


def test_paired_error_is_that_of_the_differences():
    ours, theirs = np.array([-10.0, -20.0, -31.0, -39.0]), np.array([-11.0, -22.0, -30.0, -42.0])
    found = measures.paired(ours, theirs)
    assert found.difference == pytest.approx(5.0 / 4.0)
    assert found.error == pytest.approx(np.sqrt(np.var([1.0, 2.0, -1.0, 3.0], ddof=1) / 4.0))


def test_cells_hold_their_values_and_do_not_overlap(rng):
    lo, hi = measures.cells(np.arange(-5, 6) * 0.02, 0.02)
    assert hi[:-1] == pytest.approx(lo[1:])
    values = rng.normal(size=100)
    lo, hi = measures.cells(values, 0.2)
    assert ((lo <= values) & (values <= hi)).all()


def test_mass_by_averaging_is_the_integral_of_a_normal():
    lo, hi = measures.cells(np.array([-2.0, 0.1, 3.0]), 0.5)
    found = measures.log_mass_by_averaging(norm(0.2, 0.5).logpdf, lo, hi)
    expected = np.log(norm(0.2, 0.5).cdf(hi) - norm(0.2, 0.5).cdf(lo))
    assert found == pytest.approx(expected, rel=AVERAGING)


def table_score(mass: np.ndarray) -> measures.Score:
    """Return the score of one row (0, 0) under a table of two binary columns."""

    def score(which: np.ndarray) -> np.ndarray:
        rows = mass[0] if which[0, 0] else mass.sum(axis=0)
        return np.log([[[rows[0] if which[1, 0] else rows.sum()]]])

    return score


def test_contributions_follow_the_chain_rule_and_add_up():
    score, observed = table_score(np.array([[0.3, 0.2], [0.1, 0.4]])), np.ones((2, 1), bool)
    parts = measures.contributions(score, observed)
    assert parts[:, 0] == pytest.approx(np.log([0.5, 0.6]))
    assert parts.sum() == pytest.approx(measures.log_of_mean(score(observed))[0])
    assert measures.alone(score, observed)[:, 0] == pytest.approx(np.log([0.5, 0.4]))


def test_missing_cells_contribute_nothing():
    observed = np.array([[False], [True]])
    parts = measures.contributions(table_score(np.array([[0.3, 0.2], [0.1, 0.4]])), observed)
    assert parts[:, 0] == pytest.approx([0.0, np.log(0.4)])


def test_split_parts_repeated_values_from_the_others():
    train = np.column_stack([np.repeat([0.0, 1.0], [90, 10]), np.arange(100.0)])
    test = np.array([[0.0, 3.0], [1.0, 4.0], [2.0, np.nan]])
    repeated = measures.repeated_cells(train, test)
    assert repeated.tolist() == [[True, True, False], [False, False, False]]
    split = measures.split_score(np.array([[-1.0, -2.0, -3.0], [-4.0, -5.0, 0.0]]), repeated)
    assert split == pytest.approx((-1.0, -4.0))


@pytest.fixture
def fitted() -> lace_peer.Lace:
    """Return two states over a number, a count and a label: one view, and two views."""
    numbers, rates, labels = [[0.0, 1.0], [4.0, 0.01]], [[2.0], [9.0]], [[0.25, 0.75], [0.9, 0.1]]
    one = [{"columns": [0, 1, 2], "weights": [0.3, 0.7], "parameters": [numbers, rates, labels]}]
    two = [
        {"columns": [0], "weights": [0.6, 0.4], "parameters": [numbers]},
        {"columns": [1, 2], "weights": [0.5, 0.5], "parameters": [rates, labels]},
    ]
    kinds = {"0": "Continuous", "1": "Count", "2": "Categorical"}
    return lace_peer.read_lace({"kinds": kinds, "states": [one, two], "processor_seconds": 1.0})


def test_mass_of_a_mixture_is_that_of_its_definition(fitted):
    values, widths = np.array([[0.5, np.nan], [3.0, 8.0], [1.0, 0.0]]), np.array([0.5, 1.0, 1.0])
    found = np.exp(fitted.score(values, widths)(~np.isnan(values)))
    number = [norm(mean, sd).cdf(0.75) - norm(mean, sd).cdf(0.25) for mean, sd in ((0.0, 1.0), (4.0, 0.01))]
    count, label = poisson([2.0, 9.0]), [0.75, 0.1]
    pairs = 0.5 * count.pmf(3) @ label
    expected = [np.sum([0.3, 0.7] * np.array(number) * count.pmf(3) * label), np.dot([0.6, 0.4], number) * pairs]
    assert found[0, :, 0] == pytest.approx(expected, rel=ARITHMETIC)
    expected = [np.sum([0.3, 0.7] * count.pmf(8) * [0.25, 0.9]), 0.5 * count.pmf(8) @ [0.25, 0.9]]
    assert found[0, :, 1] == pytest.approx(expected, rel=ARITHMETIC)


def test_mass_of_a_normal_is_its_density_averaged_over_the_cell(fitted):
    values = np.array([[-1.3, 0.4, 2.2]])
    parameters = fitted.states[1][0].parameters[0][:1]
    lo, hi = measures.cells(values[0], 0.7)
    averaged = measures.log_mass_by_averaging(norm(0.0, 1.0).logpdf, lo, hi)
    assert lace_peer.log_normal_mass(lo, hi, parameters)[0] == pytest.approx(averaged, rel=AVERAGING)


@pytest.mark.parametrize("centre", [-60.0, -8.0, 0.0, 8.0, 60.0])
@pytest.mark.parametrize("width", [1e-9, 1e-5, 0.1, 20.0])
def test_mass_of_a_normal_holds_in_tails_and_in_narrow_cells(centre, width):
    lo, hi = centre - width / 2.0, centre + width / 2.0
    top = min(max(lo, 0.0), hi)
    share, _ = quad(lambda x: np.exp(0.5 * (top - x) * (top + x)), max(lo, top - 9.0), min(hi, top + 9.0), points=[top])
    expected = norm.logpdf(top) + np.log(share)
    found = lace_peer.log_normal_mass(np.array([lo]), np.array([hi]), np.array([[0.0, 1.0]]))[0, 0]
    assert found == pytest.approx(expected, abs=NORMAL)


def test_count_in_a_wide_cell_has_the_mass_of_all_its_whole_numbers(fitted):
    values = np.array([[np.nan] * 2, [0.0, 4.0], [np.nan] * 2])
    found = np.exp(fitted.score(values, np.array([1.0, 4.0, 1.0]))(~np.isnan(values)))
    for row, numbers in enumerate(([0, 1], [2, 3, 4, 5])):
        expected = np.dot([0.3, 0.7], poisson([2.0, 9.0]).pmf(np.array(numbers)[:, None]).sum(axis=0))
        assert found[0, 0, row] == pytest.approx(expected)


def test_chains_that_stay_apart_on_a_tenth_of_the_rows_are_seen(rng):
    values = rng.standard_normal((4, 200, 300))
    together = measures.mixing(values)
    assert together.r_hat < 1.02
    assert together.n_effective > 500
    values[:2, :, :20] += 3.0
    apart = measures.mixing(values)
    assert apart.r_hat > 1.5
    assert apart.n_effective < 20
    values[:, :, :20] = 0.0  # rows that never change are no evidence
    assert measures.mixing(values).r_hat < 1.02
    assert np.isnan(measures.mixing(values[:1]).r_hat)


def test_label_without_a_probability_is_counted_and_certain(fitted):
    values = np.array([[np.nan] * 2, [np.nan] * 2, [1.0, 2.0], [5.0, np.nan]])
    assert fitted.unknown_cells(values).tolist() == [[False] * 2, [False] * 2, [False, True], [True, False]]
    assert fitted.score(values, np.ones(4))(~np.isnan(values))[0, :, 1] == pytest.approx([0.0, 0.0])


def test_weights_are_recovered_from_log_likelihoods(rng):
    weights = np.array([0.5, 0.3, 0.2])
    terms = norm(np.array([0.0, 3.0, 3.5]), np.array([1.0, 0.2, 2.0])).logpdf(rng.normal(1.5, 2.0, 200)[:, None])
    log_likelihood = np.logaddexp.reduce(terms + np.log(weights), axis=1)
    assert lace_worker.recover_weights(terms, log_likelihood) == pytest.approx(weights, rel=1e-6)
