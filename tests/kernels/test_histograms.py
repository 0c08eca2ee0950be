"""Rows counted by slot and value: the statistics, and the distribution of draws, of sweeps that look at each row."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.errors import SamplingError
from bayesjpt.families import registry
from bayesjpt.kernels import histogram_sweeper, histograms, remote
from bayesjpt.kernels.histogram_sweeper import HistogramSweeper
from bayesjpt.kernels.histograms import Counts, Histograms, count_in_threads, count_rows, make_bins
from bayesjpt.kernels.remote import count_through
from bayesjpt.kernels.samplers import make_sweeper
from bayesjpt.kernels.units import ArraySource
from tests.kernels.test_units import BLOCKED, a_case, after, bits, sweeper_of
from tests.strategies import law

MANY = 10**6


def a_hard_case(n_row: int = 400, *, open_rows: bool = False, seed: int = 1) -> SimpleNamespace:
    """Return a tree that splits columns 0 and 3, with gaps in the others; or in all."""
    case = a_case("hard", n_row, missing=0.0, continuous=False, seed=seed)
    observed = case.table.observed.copy()
    observed[slice(None) if open_rows else [1, 2], ::7] = False
    case.table = type(case.table)(case.table.schema, case.table.values, observed)
    case.source = ArraySource(case.table.values, observed)
    return case


def counted(case, n_thread: int = 1) -> Histograms:
    bins = make_bins(case.plan, case.source, MANY)
    assert bins is not None
    return Histograms(case.plan, case.source, bins, count_in_threads(case.plan, bins, case.source, n_thread))


def counting_sweeper(case, **options) -> HistogramSweeper:
    sweeper = make_sweeper(case.circuit, case.plan, case.priors, counted(case), **BLOCKED, **options)
    assert isinstance(sweeper, HistogramSweeper)
    return sweeper


def slow_counts(case, bins) -> np.ndarray:
    """Count by the table of a chain that looks at each row: which leaves each row reaches with which value."""
    whole = sweeper_of(case, case.table.n_row)
    cells, plan = whole.cells, case.plan
    found = np.zeros(int(bins.bin_at[-1]), np.int64)
    for slot, (node, column) in enumerate(zip(plan.slot_node, plan.slot_column, strict=True)):
        for segment in range(cells.segment_ptr.size - 1):
            live = cells.live[cells.live_ptr[segment] : cells.live_ptr[segment + 1]]
            if node not in live:
                continue
            rows = cells.row[cells.segment_ptr[segment] : cells.segment_ptr[segment + 1]]
            for row in rows[case.table.observed[column, rows]]:
                at = np.searchsorted(bins.values[column], case.table.values[column, row])
                found[bins.bin_at[slot] + at] += 1
    return found


def test_rows_are_counted_where_their_ways_end():
    case = a_hard_case()
    bins = make_bins(case.plan, case.source, MANY)
    counts = count_in_threads(case.plan, bins, case.source)
    assert (counts.n_open, counts.impossible) == (0, -1)
    assert counts.count.tolist() == slow_counts(case, bins).tolist()
    whole = sweeper_of(case, case.table.n_row)
    whole.allocate(whole.learned(), np.random.default_rng(1), 3, 0)
    hard = counts.taken > 0
    assert counts.taken[hard].tolist() == whole.edge_count[hard].tolist()
    slot = int(np.argmax(np.diff(bins.bin_at)))
    at = bins.bin_at[slot] + int(np.argmax(counts.count[bins.bin_at[slot] : bins.bin_at[slot + 1]]))
    column = case.plan.slot_column[slot]
    value = bins.values[column][at - bins.bin_at[slot]]
    assert value == case.table.values[column, counts.first[at]]


@pytest.mark.parametrize("by_prior", [False, True])
def test_what_a_sweep_counts_has_the_distribution_of_single_choices(by_prior):
    case = a_hard_case(300)
    whole, cut = sweeper_of(case, case.table.n_row), counting_sweeper(case)
    params = whole.learned()
    for sweeper in (whole, cut):
        sweeper._swaps.other[:] = -1
    seen = {
        sweeper: np.array(
            [
                (sweeper._allocate(params, np.uint64(key), by_prior), *sweeper._work.n_reached, *sweeper._stats)
                for key in range(400)
            ]
        )
        for sweeper in (whole, cut)
    }
    assert_same_distribution(seen[whole][:, by_prior:], seen[cut][:, by_prior:])
    if not by_prior:
        assert seen[cut][:, 0] == pytest.approx(seen[whole][0, 0], rel=1e-12)


def assert_same_distribution(one: np.ndarray, other: np.ndarray) -> None:
    """Compare means and spreads of two samples of vectors, (n_draw, n), within 5 standard errors."""
    n = len(one)
    spread = np.sqrt(0.5 * (one.var(axis=0) + other.var(axis=0))) + 1e-9 * (1.0 + np.abs(one).mean(axis=0))
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 5.0 * spread * np.sqrt(2.0 / n)).all()
    variances = one.var(axis=0), other.var(axis=0)
    heavy = np.maximum(((one - one.mean(axis=0)) ** 4).mean(axis=0) - variances[0] ** 2, 0.0)
    assert (np.abs(variances[0] - variances[1]) <= 5.0 * np.sqrt(2.0 * heavy / n) + 1e-9 * (1.0 + variances[0])).all()


def test_a_planted_error_of_the_shares_is_caught(monkeypatch):
    case = a_hard_case(300)
    whole, cut = sweeper_of(case, case.table.n_row), counting_sweeper(case)
    right = histogram_sweeper.allocate_counts

    def wrong(plan, cells, work, swaps, bins, log_weight, *rest):
        return right(plan, cells, work, swaps, bins, log_weight + 0.3 * (np.arange(log_weight.size) % 2), *rest)

    monkeypatch.setattr(histogram_sweeper, "allocate_counts", wrong)
    seen = []
    for sweeper in (whole, cut):
        params = sweeper.learned()
        sweeper._swaps.other[:] = -1
        seen.append([])
        for key in range(400):
            sweeper._allocate(params, np.uint64(key), False)
            seen[-1].append(sweeper._work.n_reached.copy())
    with pytest.raises(AssertionError):
        assert_same_distribution(*map(np.array, seen))


def test_proposed_pairs_hold_the_statistics_of_each_others_rows():
    case = a_hard_case(300)
    sweeper = counting_sweeper(case)
    sweeper.allocate(sweeper.learned(), np.random.default_rng(2), 5, 0)
    swaps, plan = sweeper._swaps, case.plan
    paired = np.flatnonzero(swaps.other >= 0)
    assert paired.size > 0
    names = [registry.FAMILIES[family].name for family in plan.leaf_family]
    for leaf in paired:
        other = swaps.other[leaf]
        own = swaps.stats[plan.stat_at[other] : plan.stat_at[other + 1]]
        if names[other] in ("normal", "student_t", "geometric", "negative_binomial"):  # the first counts rows
            assert own[0] == sweeper._work.n_reached[leaf]


@law(20)
@given(data=st.data())
def test_any_cut_counts_the_same(data):
    case = a_hard_case()
    bins = make_bins(case.plan, case.source, MANY)
    expected = count_in_threads(case.plan, bins, case.source)
    n_row = case.table.n_row
    cuts = sorted(data.draw(st.lists(st.integers(0, n_row), max_size=6)))
    whole = Counts.none(case.plan, bins)
    parts = list(zip([0, *cuts], [*cuts, n_row], strict=True))
    for first, last in data.draw(st.permutations(parts)):
        part = ArraySource(*case.source.arrays(first, last))
        whole.merge(count_rows(case.plan, bins, part, (0, last - first), first))
    assert all(
        getattr(whole, name).tobytes() == getattr(expected, name).tobytes() for name in ("count", "first", "taken")
    )


def test_threads_and_tasks_change_no_bit(monkeypatch):
    class Elsewhere:
        _max_workers = 2
        n_task = 0

        def submit(self, function, /, *args):
            self.n_task += 1
            future = Future()
            future.set_result(function(*args))
            return future

    case = a_hard_case()
    expected = counted(case)
    found = [counted(case, 3).counts]
    for where in (histograms, remote):
        monkeypatch.setattr(where, "UNIT_ROWS", 64)
    for part_units, n_task in ((1, 7), (4, 2)):  # 400 rows are seven units; one task a part, for all sweeps and chains
        monkeypatch.setattr(remote, "PART_UNITS", part_units)
        executor = Elsewhere()
        found.append(count_through(executor, case.plan, expected.bins, case.source))
        assert executor.n_task == n_task
    for counts in found:
        assert counts.count.tobytes() == expected.counts.count.tobytes()
        assert counts.first.tobytes() == expected.counts.first.tobytes()


def test_draws_are_a_function_of_the_seed():
    case = a_hard_case()
    one, other = (after(counting_sweeper(case), 3) for _ in range(2))
    assert bits(one) == bits(other)
    assert np.isfinite(one.params.theta).all()


def test_latent_sums_rows_without_a_way_and_too_many_values_are_looked_at_row_by_row():
    latent = a_case("mixture", 200)
    assert make_bins(latent.plan, ArraySource(latent.table.values, latent.table.observed), MANY) is None
    case = a_hard_case(open_rows=True)
    assert counted(case).counts.n_open > 0
    assert make_bins(case.plan, case.source, 20) is None


def test_an_impossible_row_is_told_by_its_number():
    case = a_hard_case()
    unsplit = case.plan.slot_node[np.isin(case.plan.slot_column, [1, 2])]
    edges = [np.arange(case.plan.child_ptr[node], case.plan.child_ptr[node + 1]) for node in unsplit]
    told = []
    for sweeper in (sweeper_of(case, case.table.n_row), counting_sweeper(case)):
        params = sweeper.learned()
        params.log_weight[np.concatenate(edges)] = -np.inf
        with pytest.raises(SamplingError, match="row 2 of") as caught:  # the first has no value but those that split
            sweeper.sweep(params, np.random.default_rng(1), 1, 0)
        told.append(str(caught.value))
    assert told[0] == told[1]
