"""Evidence of types: equal to its definition, added up cell by cell; orders are told from random ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bayesjpt.queries import type_evidence as module
from bayesjpt.queries.type_evidence import NOTHING, Parts, evidence_of_counts, type_evidence
from bayesjpt.table.table import Table
from tests import examples as ex

EXACT = 1e-9
VALUES = np.array([0.0, 1.0, 2.0, 5.0, 9.0])
COUNTS = np.array([[4.0, 2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 3.0, 5.0, 2.0]])


def log_mean_exp(values) -> float:
    return float(np.logaddexp.reduce(values) - math.log(len(values)))


def over_grid(cell_mass) -> float:
    """Return the log evidence of COUNTS: for each part the mean over grid points of the product over cells."""
    lo, hi = 0.0, 9.0  # the middle 98 % of so few cells is all of them
    spreads = [(hi - lo) * math.exp(-math.log(32.0) * (1.0 - k / 9.0)) for k in range(10)]
    centres = [lo + (hi - lo) * k / 32.0 for k in range(33)]
    total = 0.0
    for part in COUNTS:
        points = []
        for spread in spreads:
            for centre in centres:
                cells = 0.99 * cell_mass(VALUES, centre, spread) + 0.01 / len(VALUES)
                points.append(sum(n * math.log(cell) for n, cell in zip(part, cells, strict=True)))
        total += log_mean_exp(points)
    return total


def normal_cell(x: np.ndarray, centre: float, spread: float) -> np.ndarray:
    return stats.norm.cdf(x + 0.5, centre, spread) - stats.norm.cdf(x - 0.5, centre, spread)


def counted(x: np.ndarray, centre: float, spread: float) -> np.ndarray:
    mean = max(centre, 0.05)
    size = min(max(mean**2 / max(spread**2 - mean, 1e-9), 0.02), 1e4)
    return stats.nbinom.pmf(x, size, size / (size + mean))


def gamma_cell(x: np.ndarray, centre: float, spread: float) -> np.ndarray:
    mean = max(centre, 0.125)
    shape = min(max((mean / spread) ** 2, 1e-2), 1e4)
    return stats.gamma.cdf(x + 0.5, shape, scale=mean / shape) - stats.gamma.cdf(x - 0.5, shape, scale=mean / shape)


def test_evidence_of_real_is_the_mean_over_parameters_of_the_product_of_cells():
    nats, _ = evidence_of_counts([COUNTS], VALUES, 1.0, ("real",))
    assert nats["real"] == pytest.approx(over_grid(normal_cell), abs=EXACT)


def normal_above_zero(x: np.ndarray, centre: float, spread: float) -> np.ndarray:
    return normal_cell(x, centre, spread) / stats.norm.sf(-0.5, centre, spread)


def test_evidence_of_counts_averages_rounded_normals_and_negative_binomials():
    nats, _ = evidence_of_counts([COUNTS], VALUES, 1.0, ("count",))
    expected = log_mean_exp([over_grid(normal_above_zero), over_grid(counted)])
    assert nats["count"] == pytest.approx(expected, abs=1e-6)  # SciPy's pmf at sizes of 1e4


def test_counts_may_be_narrower_than_poisson():
    narrow = np.eye(5) * 20.0  # within each part all cells are alike
    nats, _ = evidence_of_counts([narrow], np.arange(20.0, 25.0), 1.0, ("count", "real"))
    assert nats["count"] > nats["real"] - 2.0


def test_evidence_of_positive_averages_gamma_and_lognormal():
    tables = module._tables_of_numbers(VALUES, 1.0, COUNTS.sum(axis=0), ("positive",))["positive"]
    only = [module._on_grid(COUNTS, np.log(0.99 * table + 0.01 / 5)) for table in tables]
    nats, _ = evidence_of_counts([COUNTS], VALUES, 1.0, ("positive",))
    assert only[1] == pytest.approx(over_grid(gamma_cell), abs=EXACT)
    assert nats["positive"] == pytest.approx(log_mean_exp(only), abs=EXACT)


def test_cells_of_a_family_have_no_more_than_all_mass():
    tables = module._tables_of_numbers(np.arange(40.0), 1.0, np.ones(40), ("real", "positive", "count"))
    for own in tables.values():
        assert all((table >= 0.0).all() and table.sum(axis=1).max() <= 1.0 + EXACT for table in own)


def test_evidence_of_nominal_is_that_of_an_urn_drawn_cell_by_cell():
    share = (COUNTS.sum(axis=0) + 0.5) / (COUNTS.sum() + 2.5)

    def urn(counts, start) -> float:
        """Return the log probability of drawing labels one by one, each put back with another of its kind."""
        held, total = np.array(start, float), 0.0
        for label, n in enumerate(counts.astype(int)):
            for _ in range(n):
                total += math.log(held[label] / held.sum())
                held[label] += 1.0
        return total

    parts = [sum(urn(part, c * share) for part in COUNTS) for c in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)]
    alike = float((COUNTS @ np.log(share)).sum())
    expected = urn(COUNTS.sum(axis=0), np.full(5, 0.5)) + log_mean_exp(parts) - alike
    nats, _ = evidence_of_counts([COUNTS], None, 1.0, ("nominal",))
    assert nats["nominal"] == pytest.approx(expected, abs=EXACT)


def test_levels_cut_a_latent_normal_where_the_whole_columns_shares_do():
    share = np.array([0.2, 0.5, 0.3])
    table = np.exp(module._latent_tables(share))
    middle, spread = 2.4, math.exp(0.2)  # the last point of the grid
    cut = stats.norm.ppf([0.2, 0.7])
    below = stats.norm.cdf((cut - middle) / spread)
    expected = 0.99 * np.diff([0.0, *below, 1.0]) + 0.01 * share
    assert np.abs(table[-1] - expected).max() < EXACT
    assert np.abs(table.sum(axis=1) - 1.0).max() < EXACT


def drifting(order) -> np.ndarray:
    """Return the counts of seven levels in six parts whose means move along an order of the levels."""
    centres = np.linspace(0.0, 6.0, 6)[:, None]
    return np.round(60.0 * stats.norm.pdf(np.asarray(order), centres, 1.3))


def test_order_that_parts_follow_is_better_than_random_ones():
    nats, order = evidence_of_counts([drifting(range(7))], np.arange(7.0), 1.0, ("ordinal", "nominal"))
    assert order > 2.0
    assert nats["ordinal"] > nats["nominal"] + 5.0


def test_levels_in_another_order_than_the_parts_follow_are_not_ordered():
    nats, order = evidence_of_counts([drifting([3, 0, 5, 1, 6, 2, 4])], np.arange(7.0), 1.0, ("ordinal", "nominal"))
    assert order < 1.0
    assert nats["nominal"] > nats["ordinal"] + 5.0


@pytest.mark.parametrize(("n_level", "n_order"), [(3, 3), (4, 12), (9, 21)])
def test_an_order_is_no_better_than_the_best_of_as_many_can_be(n_level, n_order):
    parts = np.eye(n_level)[[0, -1]] * 500.0 + np.eye(n_level)[[1, -2]] * 400.0
    _, order = evidence_of_counts([parts], np.arange(float(n_level)), 1.0, ("ordinal", "nominal"))
    assert order <= (n_order - 1) / math.sqrt(n_order)


def test_one_part_tells_nothing_of_an_order():
    _, order = evidence_of_counts([drifting(range(7)).sum(axis=0)[None]], np.arange(7.0), 1.0, ("ordinal", "nominal"))
    assert math.isnan(order)


def test_labels_that_are_no_numbers_say_as_much_for_ordinal_as_for_nominal():
    nats, order = evidence_of_counts([drifting(range(7))], None, 1.0, ("ordinal", "nominal"))
    assert nats["ordinal"] == nats["nominal"]
    assert math.isnan(order)


def test_evidence_is_the_mean_over_draws():
    merged = COUNTS.sum(axis=0)[None]
    both, first, second = (
        evidence_of_counts(counts, VALUES, 1.0, ("real", "nominal"))[0]
        for counts in ([COUNTS, merged], [COUNTS], [merged])
    )
    for name in ("real", "nominal"):
        assert both[name] == pytest.approx(0.5 * (first[name] + second[name]), abs=EXACT)
        assert first[name] != pytest.approx(second[name], abs=0.1)


# --- from a posterior


@pytest.fixture
def post(rng):
    table = ex.make_table((ex.POSITIVE, ex.COUNT, ex.LABEL), 40, rng)
    return ex.random_posterior(ex.mixture(table), table, rng, n_draw=3)


def test_columns_own_cells_do_not_part_the_rows(post):
    rows = post.reference
    changed = rows.values.copy()
    changed[1] = changed[1][::-1] + 3.0
    before = Parts(post).by_draw
    after = Parts(replace(post, reference=Table(rows.schema, changed, rows.observed))).by_draw
    assert len(before) >= 2
    assert all((one[1] == other[1]).all() for one, other in zip(before, after, strict=True))
    assert any((one[0] != other[0]).any() for one, other in zip(before, after, strict=True))


def test_posterior_without_reference_rows_has_no_evidence(post):
    assert type_evidence(replace(post, reference=None), 0, None, ("real", "positive")) == NOTHING


def test_atoms_are_left_out(rng):
    table = ex.make_table((ex.ZEROS, ex.COUNT), 40, rng)
    post = ex.random_posterior(ex.mixture(table), table, rng, n_draw=2)
    found = type_evidence(post, 0, None, ("real", "positive"))
    kept = ~np.isin(post.reference.values[0], ex.ZEROS.atoms)
    assert found.n_cell in (0, int(kept.sum()))
    assert kept.sum() < post.reference.n_row


@pytest.mark.parametrize("n_part", [1, 2, 4])
@pytest.mark.parametrize("shares", [(0.2, 0.2, 0.2, 0.2, 0.2), (0.05, 0.05, 0.1, 0.3, 0.5)])
def test_parts_that_are_alike_say_little_of_order_or_labels(shares, n_part):
    """Both allow for independence: what hangs together with nothing may be ordered or not."""
    counts = [np.tile(200.0 / n_part * np.array(shares), (n_part, 1))]
    nats, _ = evidence_of_counts(counts, np.arange(5.0), 1.0, ("ordinal", "nominal"))
    assert abs(nats["ordinal"] - nats["nominal"]) < 1.6
