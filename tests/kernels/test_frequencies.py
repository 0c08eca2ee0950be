"""Allocations over many keys follow their exact probabilities, path by path."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bayesjpt.circuit.arrays import SUM_KINDS
from bayesjpt.numerics.counter_rng import sweep_key
from tests import examples as ex
from tests import naive, strategies
from tests.kernels import runs
from tests.statistics import FALSE_ALARM

N_KEY = 1_500
MIN_EXPECTED = 5.0


def path_probabilities(case, row, score):
    """Return {edges taken: probability} of one row, by enumeration."""
    x, observed = case.table.values[:, row], case.table.observed[:, row]
    paths = naive.induced_paths(case.circuit, observed)
    joint = [naive.path_log_joint(case.circuit, case.table.schema, case.params, x, path, score) for path in paths]
    share = np.exp(np.array(joint) - np.logaddexp.reduce(joint))
    return {tuple(sorted(edges)): p for (edges, _), p in zip(paths, share, strict=True)}


def path_counts(case, row, mode, by_prior=False):
    """Return {edges taken: number of keys}."""
    run = runs.prepare(case.circuit, case.table.rows(row), mode)
    of_sums = np.isin(case.circuit.kind[case.circuit.edge_parent()], SUM_KINDS)
    counts: dict[tuple[int, ...], int] = {}
    for sweep in range(N_KEY):
        key = sweep_key(np.uint64(99), np.uint64(sweep))
        found = runs.allocate(run, case.params, key, n_block=1, by_prior=by_prior)
        taken = tuple(np.flatnonzero(found.edge_count * of_sums).tolist())
        counts[taken] = counts.get(taken, 0) + 1
    return counts


def p_value(counts, probabilities):
    """Return the p-value of a chi-square test, rare paths pooled; 0 if a path was taken that cannot be."""
    if set(counts) - set(probabilities):
        return 0.0
    expected = N_KEY * np.array(list(probabilities.values()))
    found = np.array([counts.get(path, 0) for path in probabilities])
    rare = expected < MIN_EXPECTED
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        found = np.append(found[~rare], found[rare].sum())
    statistic = ((found - expected) ** 2 / expected).sum()
    return scipy.stats.chi2.sf(statistic, expected.size - 1)


@pytest.fixture
def case(rng) -> strategies.Case:
    """Return four rows, the last with missing cells, under a circuit with a few hundred paths."""
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT), 4, rng)
    table.observed.flags.writeable = True
    table.observed[1, 3] = False
    circuit = ex.two_level(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


@pytest.mark.parametrize(("row", "mode"), [(0, "by row"), (1, "coded"), (2, "mixed"), (3, "by row"), (3, "coded")])
def test_paths_are_taken_with_their_posterior_probabilities(case, row, mode):
    assert p_value(path_counts(case, row, mode), path_probabilities(case, row, naive.family_log_density)) > (
        FALSE_ALARM
    )


def test_paths_of_a_flat_allocation_are_taken_with_their_weights(case):
    assert p_value(path_counts(case, 0, "by row", by_prior=True), path_probabilities(case, 0, naive.flat)) > FALSE_ALARM


def test_prior_instead_of_posterior_probabilities_are_caught(case):
    assert p_value(path_counts(case, 0, "by row"), path_probabilities(case, 0, naive.flat)) < FALSE_ALARM


def test_one_row_repeated_takes_edges_with_their_probabilities(case):
    n_row = 20_000
    table = case.table.rows(np.zeros(n_row, int))
    found = runs.allocate(runs.prepare(case.circuit, table, "coded"), case.params, 5)
    share = np.zeros(case.circuit.n_edge)
    for edges, p in path_probabilities(case, 0, naive.family_log_density).items():
        share[list(edges)] += p
    z = (found.edge_count - n_row * share) / np.sqrt(n_row * np.maximum(share * (1.0 - share), 1.0 / n_row))
    assert np.abs(z).max() < scipy.stats.norm.isf(FALSE_ALARM / (2 * share.size))
