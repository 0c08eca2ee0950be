"""Geweke's test has teeth: each of these small errors of a sampler, planted on purpose, must be caught."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import make_plan
from bayesjpt.families import registry
from bayesjpt.families.rounded import EDGE
from tests import examples as ex
from tests.statistical import geweke
from tests.statistical.geweke import Case
from tests.statistical.test_geweke import FINE

N_DRAW = 50_000
N_ROW_FEW = 3
"""The prior weighs much: for errors in it."""
N_ROW_MORE = 10
WIDE_NORMAL = (0.3, 1.5, 0.7, 0.5, 0.01)
"""Components of very different scale, for an error that is about scale."""
CRITICAL = {
    "rounded_normal": (-0.3, 1.5, 3.0, 0.05, 0.014),
    "truncated_rounded_normal": (-1.6, 0.5, 3.0, 0.6, 0.02),
}
"""Standard deviations of a third of a whole number to one half; means near -1/2, where the normal is cut."""
ROUNDED = {"rounded_normal": ex.CHANGE, "truncated_rounded_normal": ex.PLAIN[2]}
M0, V0, A0 = 0, 1, 2


def two_normals(n_row: int, rng: np.random.Generator, **priors) -> Case:
    table = ex.make_table((ex.PLAIN[0],), n_row, rng)
    return geweke.make_case(
        ex.mixture(table, dictionary=ex.only("normal")), table.schema, np.zeros((1, n_row), bool), **priors
    )


def three_likelihoods(n_row: int, rng: np.random.Generator) -> Case:
    table = ex.make_table((FINE,), n_row, rng)
    circuit = ex.independent(table, ex.only("normal", "gamma", "exponential"))
    return geweke.make_case(circuit, table.schema, np.zeros((1, n_row), bool))


def with_atoms(rng: np.random.Generator) -> Case:
    """Return two dictionaries of a normal and two atoms each, on a column whose unit is not its scale."""
    table = ex.make_table((ex.HEAPED,), N_ROW_MORE, rng)
    assert ex.HEAPED.scale != 1.0
    circuit = ex.mixture(table, dictionary=ex.only("normal", "atom"))
    return geweke.make_case(circuit, table.schema, np.zeros((1, N_ROW_MORE), bool))


def two_rounded(family: str, rng: np.random.Generator) -> Case:
    """Return two rounded normals where rounding, or where the cut, matters most."""
    table = ex.make_table((ROUNDED[family],), N_ROW_MORE, rng)
    circuit = ex.mixture(table, dictionary=ex.only(family))
    return geweke.make_case(circuit, table.schema, np.zeros((1, N_ROW_MORE), bool), **{family: CRITICAL[family]})


def believing(case: Case, family: str) -> Case:
    """Return the case sampled as if all leaves were of another family with the same parameters."""
    number = np.full(case.circuit.n_leaf, registry.number(family), case.circuit.leaf_family.dtype)
    return case._replace(plan=make_plan(case.circuit._replace(leaf_family=number), case.schema))


def with_hyper(case: Case, index: int, change) -> Case:
    """Return the case with one hyperparameter of every (normal) leaf changed."""
    hyper = case.hyper.copy()
    at = case.hyper_at[:-1] + index
    hyper[at] = change(hyper[at])
    return case._replace(hyper=hyper)


def assert_caught(comparison: geweke.Comparison) -> None:
    assert comparison.ess.min() > geweke.MIN_ESS
    assert not comparison.agrees, comparison.worst


def test_one_count_too_many_at_every_edge_is_caught(rng):
    case = two_normals(N_ROW_FEW, rng)
    wrong = case._replace(concentration=case.concentration + (case.concentration > 0.0))
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=wrong))


@pytest.mark.parametrize("kind", [arrays.LATENT, arrays.LIKELIHOOD], ids=["sum", "dictionary"])
def test_a_concentration_divided_by_the_number_of_edges_is_caught(kind, rng):
    case = two_normals(N_ROW_FEW, rng) if kind == arrays.LATENT else three_likelihoods(N_ROW_FEW, rng)
    n_edge = case.circuit.edges_of_kind(kind).size
    wrong = case._replace(concentration=case.concentration / n_edge)
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=wrong))


def test_an_inverse_gamma_shape_short_of_one_half_is_caught(rng):
    case = two_normals(N_ROW_FEW, rng)
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=with_hyper(case, A0, lambda a0: a0 - 0.5)))


def test_a_mean_drawn_with_the_variance_of_one_row_more_is_caught(rng):
    case = two_normals(N_ROW_FEW, rng)
    # the row that the meddling adds also counts one half towards the shape
    wrong = with_hyper(case, A0, lambda a0: a0 - 0.5)
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=wrong, meddle=geweke.SHORT_STEP_OF_THE_MEAN))


def test_allocations_by_a_density_without_half_the_log_precision_are_caught(rng):
    case = two_normals(N_ROW_MORE, rng, normal=WIDE_NORMAL)
    assert_caught(geweke.compare(case, N_DRAW, rng, meddle=geweke.DENSITY_WITHOUT_LOG_SCALE))


def test_a_prior_precision_ten_percent_too_large_is_caught(rng):
    case = two_normals(N_ROW_FEW, rng)
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=with_hyper(case, V0, lambda v0: v0 / 1.1)))


def test_a_density_at_atoms_that_counts_like_their_mass_is_caught(rng):
    case = with_atoms(rng)
    wrong = case.plan._replace(atom_ptr=np.zeros_like(case.plan.atom_ptr))  # nothing is masked
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=case._replace(plan=wrong)))


def test_a_rounded_normal_scored_by_the_density_at_the_whole_number_is_caught(rng):
    case = two_rounded("rounded_normal", rng)
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=believing(case, "normal")))


def test_a_truncated_normal_without_its_normaliser_is_caught(rng):
    case = two_rounded("truncated_rounded_normal", rng)
    const = case.plan.const.copy()
    const[case.plan.const_at + EDGE] = -np.inf
    assert_caught(geweke.compare(case, N_DRAW, rng, sampled=case._replace(plan=case.plan._replace(const=const))))


@pytest.mark.parametrize("make", [with_atoms, *(functools.partial(two_rounded, family) for family in ROUNDED)])
def test_without_a_planted_error_the_same_runs_on_atoms_and_rounded_normals_agree(make, rng):
    comparison = geweke.compare(make(rng), N_DRAW, rng)
    assert comparison.agrees, comparison.worst


@pytest.mark.parametrize("n_row", [N_ROW_FEW, N_ROW_MORE])
def test_without_a_planted_error_the_same_runs_agree(n_row, rng):
    comparison = geweke.compare(two_normals(n_row, rng, normal=WIDE_NORMAL), N_DRAW, rng)
    assert comparison.agrees, comparison.worst


def test_an_exchange_by_the_evidence_under_another_prior_is_caught(rng):
    case = three_likelihoods(N_ROW_FEW, rng)
    assert_caught(geweke.compare(case, N_DRAW, rng, meddle=geweke.EXCHANGE_UNDER_ANOTHER_PRIOR))
