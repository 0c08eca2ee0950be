"""Lists of the values that reached a leaf, for families that are drawn from them; atoms go to their own leaves."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.plan import ATOM
from bayesjpt.kernels.gibbs import CHUNK, draw_params
from bayesjpt.kernels.statistics import list_values, sort_kept
from tests import examples as ex
from tests import naive, strategies
from tests.kernels import runs

KEY = 987654321
ROUNDING = 1e-15  # of a value in a family's units
COLUMNS = (ex.PLAIN[0], ex.HEAPED, ex.PLAIN[2], ex.CHANGE)
BY_VALUE = {"student_t", "negative_binomial", "truncated_rounded_normal", "rounded_normal"}

Lists = dict[int, tuple[np.ndarray, np.ndarray]]


def made(n_row: int, rng: np.random.Generator) -> strategies.Case:
    """Return rows with missing cells under sums below sums, every likelihood of four columns at their leaves."""
    table = ex.make_table(COLUMNS, n_row, rng, missing=0.2)
    circuit = ex.two_level(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


@pytest.fixture
def case(rng) -> strategies.Case:
    return made(300, rng)


def lists(case: strategies.Case, mode: str, n_block: int = 64) -> Lists:
    """Return the values and counts of each leaf that is drawn by value, after one sweep of allocations."""
    run = runs.prepare(case.circuit, case.table, mode)
    work = runs.allocate(run, case.params, KEY, n_block).work
    sort_kept(run.plan, work)
    found = {}
    for leaf in np.flatnonzero(run.plan.leaf_by_value):
        n = list_values(run.plan, run.cells, work, leaf)
        found[int(leaf)] = work.listed[0, :n].copy(), work.listed[1, :n].copy()
    return found


def in_units(case: strategies.Case, leaf: int, x) -> np.ndarray:
    """Return values in the units of a leaf's family."""
    plan = runs.prepare(case.circuit, case.table).plan
    feature = plan.leaf_value[leaf]
    return (np.array(x) - plan.feature_offset[feature]) / plan.feature_scale[feature]


def assert_same(found: Lists, expected: Lists) -> None:
    assert found.keys() == expected.keys()
    for leaf, (values, counts) in found.items():
        assert values.tolist() == expected[leaf][0].tolist()
        assert counts.tolist() == expected[leaf][1].tolist()


def test_lists_hold_the_values_of_the_slow_twin_in_the_order_of_rows(case):
    cells = naive.allocate(case.circuit, case.params, case.table, np.uint64(KEY)).cells
    found = lists(case, "by row")
    assert {naive.leaf_family(case.circuit, leaf) for leaf in found} == BY_VALUE
    for leaf, (values, counts) in found.items():
        np.testing.assert_allclose(values, in_units(case, leaf, cells[leaf]), rtol=ROUNDING, atol=ROUNDING)
        assert (counts == 1.0).all()
    assert sum(values.size for values, _ in found.values()) > 300


def test_lists_of_coded_columns_hold_each_value_once_with_its_count(case):
    cells = naive.allocate(case.circuit, case.params, case.table, np.uint64(KEY)).cells
    for leaf, (values, counts) in lists(case, "coded").items():
        distinct, n_each = np.unique(cells[leaf], return_counts=True)
        np.testing.assert_allclose(values, in_units(case, leaf, distinct), rtol=ROUNDING, atol=ROUNDING)
        assert counts.tolist() == n_each.tolist()


@pytest.mark.parametrize("mode", runs.MODES)
@pytest.mark.parametrize("n_block", [1, 37, 1024])
def test_size_of_blocks_changes_no_list(n_block, mode, rng):
    case = made(CHUNK + 300, rng)
    assert_same(lists(case, mode, n_block), lists(case, mode, 256))


@pytest.mark.parametrize("mode", ["coded", "mixed"])
def test_lists_by_distinct_value_are_the_lists_by_row(mode, rng):
    case = made(CHUNK + 300, rng)
    by_row, other = lists(case, "by row"), lists(case, mode)
    for leaf, (values, counts) in other.items():
        assert np.sort(by_row[leaf][0]).tolist() == np.sort(np.repeat(values, counts.astype(int))).tolist()


@pytest.mark.parametrize("mode", runs.MODES)
def test_size_of_blocks_changes_no_bit_of_parameters_drawn_from_lists(case, mode):
    run = runs.prepare(case.circuit, case.table, mode)
    drawn = []
    for n_block in (1, 37, 256):
        found = runs.allocate(run, case.params, KEY, n_block)
        params = ex.start(case.circuit)
        hyper = runs.hyper_of(case.circuit, case.table.schema)
        ones = np.ones(case.circuit.n_edge)
        generator = np.random.default_rng(5)
        given = (run.plan, run.cells, found.work, found.stats, found.edge_count, ones)
        assert draw_params(*given, *hyper, *params, generator) == -1
        drawn.append(params.theta.tolist())
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.parametrize("mode", runs.MODES)
def test_every_atom_is_counted_by_a_leaf_of_atoms_and_no_other_value_is(case, mode):
    run = runs.prepare(case.circuit, case.table, mode)
    stats = runs.allocate(run, case.params, KEY).stats
    column = COLUMNS.index(ex.HEAPED)
    seen = case.table.values[column, case.table.observed[column]]
    counted = np.zeros(2)
    n_other = 0.0
    for leaf in range(case.circuit.n_leaf):
        of_leaf = stats[run.plan.stat_at[leaf] : run.plan.stat_at[leaf + 1]]
        if naive.leaf_column(case.circuit, leaf) != column:
            continue
        if naive.leaf_family(case.circuit, leaf) == ATOM:
            counted += of_leaf
        else:
            n_other += of_leaf[0]
    assert counted.tolist() == [(seen == atom).sum() for atom in ex.HEAPED.atoms]
    assert counted.min() > 0
    assert n_other == (~np.isin(seen, ex.HEAPED.atoms)).sum()
