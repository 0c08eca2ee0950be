"""Rows unit by unit: what is counted is what all rows at once would give, whoever counts which unit and when."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.circuit.build import Condition
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import make_plan
from bayesjpt.circuit.priors import make_priors
from bayesjpt.defaults import MAX_WORK_BYTES
from bayesjpt.errors import SamplingError
from bayesjpt.kernels import chain
from bayesjpt.kernels.gibbs import CHUNK
from bayesjpt.kernels.samplers import make_sweeper
from bayesjpt.kernels.statistics import list_values, sort_kept
from bayesjpt.kernels.unit_sweeper import Counted, SweepTask, count_units, make_buffers
from bayesjpt.kernels.units import ArraySource, Units
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.strategies import law

COLUMNS = (ex.PLAIN[0], ex.PLAIN[1], ex.COUNT, ex.LABEL)
SMALL = 64
BLOCKED = {"sampler": "blocked", "max_work_bytes": MAX_WORK_BYTES}
SHAPES = {
    "mixture": ex.mixture,
    "hard": lambda table: ex.hard(table, Condition(0, 1.0), Condition(3, np.nan, (0,))),
}


def a_case(shape: str, n_row: int, *, missing: float = 0.1, continuous: bool = True, seed: int = 1) -> SimpleNamespace:
    """Return a circuit over columns whose leaves are drawn from statistics, from values, and from counts of codes."""
    table = ex.make_table(COLUMNS, n_row, np.random.default_rng(seed), missing=missing, continuous=continuous)
    circuit = SHAPES[shape](table)
    plan = make_plan(circuit, table.schema)
    layout = make_layout(circuit, table.schema)
    priors = make_priors(circuit, table.schema, layout, gamma=1.0, alpha=1.0, prior="default")
    return SimpleNamespace(table=table, circuit=circuit, plan=plan, priors=priors)


@functools.cache
def the_case(shape: str) -> SimpleNamespace:
    return a_case(shape, 500)


def units_of(case, unit_rows: int, **options) -> Units:
    source = ArraySource(case.table.values, case.table.observed)
    limits = {"max_distinct_share": 0.5, "max_table_bytes": 10**6}
    return Units(case.plan, source, unit_rows=unit_rows, **limits, **options)


def sweeper_of(case, unit_rows: int, n_thread: int = 1, **options):
    given_rows = units_of(case, unit_rows, **options)
    return make_sweeper(
        case.circuit,
        case.plan,
        case.priors,
        given_rows,
        sampler="blocked",
        max_work_bytes=MAX_WORK_BYTES,
        n_thread=n_thread,
    )


def after(sweeper, n: int = 2) -> chain.ChainState:
    """Return the state of a chain from random allocations after some sweeps."""
    rng = np.random.default_rng(5)
    state = chain.init(sweeper, rng, 7, at_random=True)
    for _ in range(n):
        state = chain.step(state, sweeper, rng)
    return state


def bits(state: chain.ChainState) -> tuple:
    return state.params.theta.tobytes(), state.params.log_weight.tobytes(), state.log_likelihood, state.n_active


def lists(sweeper, leaf: int) -> list[np.ndarray]:
    n = list_values(sweeper.plan, sweeper.cells, sweeper._work, leaf)
    return [line[:n].copy() for line in sweeper._work.listed]


def by_leaf(values: np.ndarray, leaves: np.ndarray) -> list[tuple[int, float]]:
    order = np.argsort(leaves, kind="stable")
    return list(zip(leaves[order].tolist(), values[order].tolist(), strict=True))


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_counts_statistics_and_lists_are_those_of_all_rows_at_once(shape, continuous):
    case = a_case(shape, 500, continuous=continuous)
    whole, cut = sweeper_of(case, 500), sweeper_of(case, SMALL)
    found = []
    for sweeper in (whole, cut):
        log_likelihood = sweeper.allocate(sweeper.learned(), np.random.default_rng(3), 11, 0)
        sort_kept(sweeper.plan, sweeper._work)
        found.append(log_likelihood)
    assert found[1] == pytest.approx(found[0], rel=1e-12)
    assert cut._edge_count.tolist() == whole._edge_count.tolist()
    assert cut._work.n_reached.tolist() == whole._work.n_reached.tolist()
    size = np.maximum(np.abs(whole._stats), 1.0)
    assert (np.abs(cut._stats - whole._stats) <= 1e-10 * size).all()
    assert (np.abs(cut._swaps.stats - whole._swaps.stats) <= 1e-10 * np.maximum(np.abs(whole._swaps.stats), 1)).all()
    by_value = np.flatnonzero(case.plan.leaf_by_value)
    assert by_value.size > 0 or shape == "hard"  # leaves that end at a split are drawn from statistics
    for leaf in by_value:
        for one, other in zip(lists(whole, leaf), lists(cut, leaf), strict=True):
            assert np.sort(one).tolist() == np.sort(other).tolist()


def test_units_whose_rows_need_other_nodes_count_as_all_rows_at_once():
    """Rows in the order of a split: units have segments of their own, and some a single one."""
    case = a_case("hard", 500, missing=0.0)
    order = np.lexsort((case.table.values[3] == 0.0, case.table.values[0] > 1.0))
    case.table = Table(case.table.schema, np.ascontiguousarray(case.table.values[:, order]), case.table.observed)
    units = units_of(case, SMALL)
    assert {units[number].segment_ptr.size - 1 for number in range(8)} == {1, 2}
    whole, cut = sweeper_of(case, 500), sweeper_of(case, SMALL)
    for sweep in range(3):
        found = [each.allocate(each.learned(), np.random.default_rng(3), 11 + sweep, 0) for each in (whole, cut)]
        assert found[1] == pytest.approx(found[0], rel=1e-12)
        assert cut._edge_count.tolist() == whole._edge_count.tolist()
        assert cut._work.n_reached.tolist() == whole._work.n_reached.tolist()
        assert (np.abs(cut._stats - whole._stats) <= 1e-10 * np.maximum(np.abs(whole._stats), 1.0)).all()


@pytest.mark.parametrize("continuous", [True, False])
def test_two_chunks_have_the_draws_of_one_table_bit_for_bit(continuous):
    case = a_case("mixture", CHUNK + 900, continuous=continuous)
    whole, cut = sweeper_of(case, 2 * CHUNK), sweeper_of(case, CHUNK)
    assert (len(whole.cells.row), len(cut.cells.row)) == (0, CHUNK)
    assert bits(after(whole)) == bits(after(cut))


@pytest.mark.parametrize("shape", SHAPES)
def test_threads_and_units_that_are_not_kept_change_no_bit(shape):
    case = a_case(shape, 700)
    expected = bits(after(sweeper_of(case, SMALL)))
    for n_thread, resident in ((2, None), (3, None), (1, 1), (3, 2)):
        assert bits(after(sweeper_of(case, SMALL, n_thread, resident=resident))) == expected


@law(25)
@given(data=st.data(), shape=st.sampled_from(sorted(SHAPES)))
def test_any_division_of_units_among_workers_counts_the_same_bits(data, shape):
    case = the_case(shape)
    rows = units_of(case, SMALL, resident=1)
    sweeper = sweeper_of(case, SMALL)
    task = SweepTask(*sweeper.learned(), sweeper._swaps.other, 3, False)
    expected = sweeper._count(task)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    parts = [
        count_units(case.plan, rows, range(lo, hi), task, make_buffers(case.plan, rows[0], 16))
        for lo, hi in zip([0, *cuts], [*cuts, len(rows)], strict=True)
    ]
    whole = Counted()
    for part in data.draw(st.permutations(parts)):
        whole.merge(part)
    assert whole.sums.total().tobytes() == expected.sums.total().tobytes()
    assert np.asarray(whole.counts).tolist() == np.asarray(expected.counts).tolist()
    assert whole.kept.keys() == expected.kept.keys()
    for number, columns in whole.kept.items():
        for ours, theirs in zip(columns, expected.kept[number], strict=True):
            assert by_leaf(*ours) == by_leaf(*theirs)  # blocks of rows list their leaves one after the other


def test_gaps_in_one_unit_alone_are_those_of_the_whole_table(rng):
    case = a_case("mixture", 300, missing=0.0)
    observed = case.table.observed.copy()
    observed[1, 70:100] = False
    case.table = type(case.table)(case.table.schema, case.table.values, observed)
    whole, cut = sweeper_of(case, 300), sweeper_of(case, SMALL)
    for sweeper in (whole, cut):
        sweeper.allocate(sweeper.learned(), np.random.default_rng(3), 11, 0)
    assert cut._edge_count.tolist() == whole._edge_count.tolist()
    assert cut._work.n_reached.tolist() == whole._work.n_reached.tolist()


def test_columns_are_coded_by_the_values_of_all_units():
    case = a_case("mixture", 500, continuous=False)
    rows = units_of(case, SMALL)
    assert rows[0].n_distinct.max() > 0
    assert all(cells.n_distinct.tolist() == rows[0].n_distinct.tolist() for cells in rows)

    class Planted(Units):
        def _arranged(self, number, routes):
            values, observed = self._rows(number)
            self._known = {
                c: np.append(np.unique(values[c][observed[c]]), np.full(99, np.inf))[: self._known[c].size]
                for c in self._known
            }
            return super()._arranged(number, routes)

    source = ArraySource(case.table.values, case.table.observed)
    planted = Planted(case.plan, source, unit_rows=SMALL, max_distinct_share=0.5, max_table_bytes=10**6)
    cut = make_sweeper(case.circuit, case.plan, case.priors, planted, **BLOCKED)
    with pytest.raises(SamplingError, match="probability zero"):  # a code means another value
        cut.allocate(cut.learned(), np.random.default_rng(3), 11, 0)


def test_an_impossible_row_is_told_by_its_number_in_the_table():
    case = a_case("mixture", 300, missing=0.0)
    sweeper = sweeper_of(case, SMALL, n_thread=2)
    params = sweeper.learned()
    params.log_weight[:] = -np.inf
    with pytest.raises(SamplingError, match="row 1 of"):
        sweeper.sweep(params, np.random.default_rng(1), 1, 0)


def test_paths_of_several_units_are_not_those_of_the_first():
    sweeper = sweeper_of(a_case("mixture", 200), SMALL)
    with pytest.raises(AssertionError, match="within a unit"):
        sweeper.paths(sweeper.learned(), 1)
