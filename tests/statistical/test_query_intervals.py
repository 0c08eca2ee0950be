"""Intervals of queries: on tables from the prior of a known structure, 90 % intervals hold the truth 90 % of the time.

The answer under the parameters that made a table is compared with the answers under draws given the table.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import bayesjpt.queries.methods  # noqa: F401  # queries become methods
from bayesjpt.circuit.arrays import Params
from bayesjpt.posterior.draws import Posterior
from tests import examples as ex
from tests.statistical import geweke
from tests.statistical.geweke import Case

pytestmark = pytest.mark.slow

N_SIMULATION = 300
N_ROW = 12
N_FIRST = 150
N_SWEEP = 600
N_KEPT = 39
FIRST, LAST = 2, 38
"""Between the second and the last but one of 39 draws lies a 40th with probability 36 / 40."""

SMALLEST_P = 1e-5

QUERIES = (
    lambda post: post.probability("real > 1"),
    lambda post: post.probability("count <= 2"),
    lambda post: post.probability("real > 1 and count <= 2"),
    lambda post: post.probability("real > 0", {"count": 3}),
    lambda post: post.probability("count <= 2", "real between 0 and 2"),
    lambda post: post.expectation("real"),
    lambda post: post.expectation("real", {"count": 1}),
    lambda post: post.variance("real", "count > 0"),
    lambda post: post.quantile(0.9, "real"),
    lambda post: post.cdf(1, "count", {"real": 0.5}),
)


def small_mixture(rng: np.random.Generator) -> Case:
    """Return a mixture of two over a normal column and one with a dictionary of two, some cells missing."""
    table = ex.make_table((ex.REAL, ex.COUNT), N_ROW, rng)
    circuit = ex.mixture(table, dictionary=ex.only("normal", "poisson", "geometric"))
    return geweke.make_case(circuit, table.schema, rng.random((2, N_ROW)) < 0.15)


def answers(case: Case, params: Params) -> np.ndarray:
    """Return float64 (n_query, n_draw)."""
    post = Posterior(case.circuit, case.schema, Params(*(np.ascontiguousarray(array)[None] for array in params)))
    return np.array([query(post).to_numpy().ravel() for query in QUERIES])


def covered(case: Case, rng: np.random.Generator, sampled: Case) -> np.ndarray:
    """Return bool (n_simulation, n_query): whether the interval holds the truth."""
    truths, tables = geweke.joint_draws(case, N_SIMULATION, rng)
    starts = geweke.prior_draws(case, N_SIMULATION, rng)
    stride = N_SWEEP // N_KEPT
    found = []
    for simulation, table in enumerate(tables):
        truth = Params(*(array[simulation : simulation + 1] for array in truths))
        start = Params(*(array[simulation] for array in starts))
        draws, _ = geweke.run_chain(sampled, start, table, N_FIRST + N_SWEEP, rng, redraw=False, meddle=geweke.AS_IT_IS)
        kept = Params(*(array[N_FIRST::stride][:N_KEPT] for array in draws))
        rank = (answers(case, kept) < answers(case, truth)).sum(axis=1)
        found.append((rank >= FIRST) & (rank < LAST))
    return np.array(found)


def smallest_p(held: np.ndarray) -> float:
    """Return the smallest p-value of tests that an interval holds the truth with probability 0.9, one a query."""
    share = (LAST - FIRST) / (N_KEPT + 1)
    return min(scipy.stats.binomtest(int(column.sum()), column.size, share).pvalue for column in held.T)


def test_intervals_hold_the_truth_as_often_as_they_say(rng):
    case = small_mixture(rng)
    assert smallest_p(covered(case, rng, case)) > SMALLEST_P


def test_intervals_under_a_wrong_prior_do_not(rng):
    case = small_mixture(rng)
    wrong = case._replace(hyper=case.hyper * 3.0)
    assert smallest_p(covered(case, rng, wrong)) < SMALLEST_P
