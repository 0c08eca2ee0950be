"""Paths row by row: against the slow twin, against the sweep that keeps none, and in what they leave behind."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.paths import Condition
from bayesjpt.circuit.plan import make_plan
from bayesjpt.circuit.priors import make_priors
from bayesjpt.errors import ModelError, SamplingError
from bayesjpt.kernels import collapsed, gibbs, paths
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.collapsed_sweeper import CollapsedSweeper
from bayesjpt.kernels.routes import make_routes
from bayesjpt.kernels.samplers import check_sampler
from bayesjpt.kernels.swaps import make_swaps, propose_swaps
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.kernels.work import make_work
from bayesjpt.sampler.target import make_target
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, naive_collapsed
from tests.kernels import runs
from tests.naive_collapsed import Given, Path

KEY, NEXT = np.uint64(77), np.uint64(78)
N_ROW = 40
SUMS = 1e-9
MODES = ("by row", "coded", "mixed")
GAMMA, ALPHA = 0.7, 0.3


class Scanned:
    """A table under a circuit, its paths given parameters, and after scans."""

    def __init__(self, circuit: Circuit, table: Table, params: Params, mode: str = "mixed", n_block: int = 16):
        self.circuit, self.table, self.params = circuit, table, params
        plan = make_plan(circuit, table.schema)
        routes = make_routes(plan, table.values, table.observed)
        self.run = runs.Run(plan, make_cells(plan, table.values, table.observed, **runs.MODES[mode], routes=routes))
        layout = make_layout(circuit, table.schema)
        self.concentration = make_priors(
            circuit, table.schema, layout, gamma=GAMMA, alpha=ALPHA, prior="default"
        ).concentration
        self.hyper = runs.hyper_of(circuit, table.schema)
        self.work, self.swaps = make_work(*self.run, n_block), make_swaps(plan)
        self.stats, self.edge_count = np.zeros(plan.stat_at[-1]), np.zeros(circuit.n_edge, np.int64)
        self.kept = paths.make_paths(*self.run, *self.hyper, params.theta)
        self.found = paths.record(*self.run, *params, self.work, self.kept, KEY)

    @property
    def order(self) -> np.ndarray:
        row = self.run.cells.row
        return row if row.size else np.arange(self.table.n_row)

    def begin(self) -> None:
        collapsed.begin(*self.run, self.work, self.kept, self.concentration, *self.hyper, self.params.theta)

    def scan(self, key: np.uint64 = NEXT) -> None:
        collapsed.scan(*self.run, self.kept, self.concentration, *self.hyper, self.params.theta, key)

    def replay(self) -> None:
        paths.replay(*self.run, self.work, self.swaps, self.kept, self.stats, self.edge_count)

    def paths(self) -> list[Path]:
        """Return the paths by the number of the row."""
        out = [Path((), {})] * self.table.n_row
        for place, row in enumerate(self.order):
            taken, leaf = self.kept.taken[place], self.kept.leaf[place]
            columns = np.flatnonzero(leaf >= 0)
            out[row] = Path(tuple(taken[taken >= 0].tolist()), {int(c): int(leaf[c]) for c in columns})
        return out

    def given(self) -> Given:
        return Given(self.circuit, self.table, self.params, self.concentration, self.hyper)


def sets(path_of_rows: list[Path]) -> list[tuple[frozenset, dict]]:
    """Return the paths but for the order in which edges were met."""
    return [(frozenset(path.edges), path.leaves) for path in path_of_rows]


def case(name: str, rng: np.random.Generator, n_row: int = N_ROW) -> tuple[Circuit, Table]:
    """Return circuits that between them have every kind of node, leaf and cell."""
    if name == "all families":
        table = ex.make_table(ex.PLAIN, n_row, rng, missing=0.25)
        return ex.mixture(table), table
    if name == "two levels":
        table = ex.make_table(ex.COLUMNS, n_row, rng, missing=0.3)
        return ex.two_level(table), table
    if name == "atoms":
        table = ex.make_table((ex.ZEROS, ex.HEAPED, ex.FIXED), n_row, rng)
        return ex.mixture(table), table
    if name == "truncated":
        table = ex.make_table((ex.PLAIN[0], ex.PLAIN[2], ex.PLAIN[4]), n_row, rng, missing=0.1)
        conditions = Condition(0, 1.5), Condition(1, 2.5), Condition(2, 0.5, (1,))
        families = ex.only("normal", "poisson", "geometric", "categorical")
        return ex.hard(table, *conditions, dictionary=families), table
    if name == "a shared leaf":
        table = ex.make_table((ex.PLAIN[0], ex.PLAIN[2]), n_row, rng)
        return ex.shared_leaf(table), table
    table = ex.make_table((ex.PLAIN[0],), n_row, rng)
    return ex.independent(table, ex.only("normal")), table


CASES = ("all families", "two levels", "atoms", "truncated", "a shared leaf", "a single leaf")


def scanned(name: str, mode: str, rng: np.random.Generator, n_row: int = N_ROW) -> Scanned:
    circuit, table = case(name, rng, n_row)
    return Scanned(circuit, table, ex.random_params(circuit, table.schema, rng), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_a_scan_takes_the_paths_of_the_slow_twin(name, mode, rng):
    at = scanned(name, mode, rng)
    assert at.found[1] < 0
    expected = at.paths()
    at.begin()
    for key in (NEXT, NEXT + np.uint64(1)):
        at.scan(key)
        expected = naive_collapsed.scan(at.given(), expected, key, at.order)
        assert sets(at.paths()) == sets(expected)


def test_the_cases_hold_some_parameters_and_integrate_out_others(rng):
    modes = np.concatenate([scanned(name, "mixed", rng).kept.mode for name in CASES])
    assert set(modes) == {paths.HELD, paths.BY_MEAN, paths.BY_PREDICTIVE}


def kept_values(work) -> list[list[float]]:
    """Return the values that are kept of each column; behind them stands what memory held before."""
    return [values[:n].tolist() for values, n in zip(work.kept_value, work.n_kept, strict=True)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_recorded_paths_are_those_of_a_sweep_that_keeps_none(name, mode, rng):
    at = scanned(name, mode, rng, 300)
    stats, edge_count = np.zeros_like(at.stats), np.zeros_like(at.edge_count)
    propose_swaps(at.swaps, rng)
    expected = gibbs.allocate(*at.run, *at.params, at.work, at.swaps, KEY, False, stats, edge_count)
    n_reached, of_swaps = at.work.n_reached.copy(), at.swaps.stats.copy()
    kept = kept_values(at.work)
    tally = at.work.tally.copy()
    at.replay()
    assert at.found == expected
    assert at.stats.tobytes() == stats.tobytes()
    assert at.edge_count.tolist() == edge_count.tolist()
    assert at.work.n_reached.tolist() == n_reached.tolist()
    assert at.swaps.stats.tobytes() == of_swaps.tobytes()
    assert kept_values(at.work) == kept
    assert at.work.tally.tolist() == tally.tolist()


@pytest.mark.parametrize("name", CASES)
def test_counts_and_statistics_after_many_scans_are_those_of_the_paths(name, rng):
    at = scanned(name, "mixed", rng, 300)
    at.begin()
    for sweep in range(20):
        at.scan(NEXT + np.uint64(sweep))
    at.replay()
    assert at.kept.count.tolist() == at.edge_count.tolist()
    assert at.kept.leaf_count.tolist() == at.work.n_reached.tolist()
    plan = at.run.plan
    for leaf in np.flatnonzero(at.kept.mode != paths.HELD):
        own = slice(plan.stat_at[leaf], plan.stat_at[leaf + 1])
        np.testing.assert_allclose(at.kept.stats[own], at.stats[own], rtol=SUMS, atol=SUMS)


def test_a_leaf_forgets_a_distant_value_that_left_it(rng):
    table = ex.make_table((ex.PLAIN[0],), 3, rng)
    near = table.schema.columns[0].location + table.schema.columns[0].scale * np.array([1e-3, -1e-3])
    table = Table(table.schema, np.array([[*near, 1e9]]), table.observed)
    circuit = ex.mixture(table, dictionary=ex.only("normal"))
    at = Scanned(circuit, table, ex.start(circuit))
    at.kept.leaf[:] = at.kept.leaf[0]
    at.kept.taken[:] = at.kept.taken[0]
    at.begin()
    for sweep in range(30):
        at.scan(NEXT + np.uint64(sweep))
    near_ones = at.kept.leaf[:2, 0]
    assert at.kept.leaf[2, 0] not in near_ones
    first = at.run.plan.stat_at[near_ones]
    n, squares = at.kept.stats[first], at.kept.stats[first + 2]
    np.testing.assert_allclose(squares, 1e-6 * n, rtol=1e-6)


@pytest.mark.parametrize("name", ["all families", "truncated"])
def test_draws_depend_neither_on_blocks_nor_on_how_columns_are_evaluated(name, rng):
    circuit, table = case(name, rng, 2000)
    params = ex.random_params(circuit, table.schema, rng)
    found = []
    for mode, n_block in (("by row", 64), ("coded", 64), ("mixed", 7)):
        at = Scanned(circuit, table, params, mode, n_block)
        at.begin()
        at.scan()
        found.append(sets(at.paths()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("type_prior", ["members", "columns"])
def test_a_sweep_scans_between_its_allocations_and_its_draws(type_prior, rng):
    table = ex.make_table(ex.PLAIN, 200, rng, missing=0.1)
    circuit = ex.mixture(table)
    first, second, plain = (
        make_target(circuit, table, type_prior=type_prior, sampler=sampler).sweeper()
        for sampler in ("collapsed", "collapsed", "blocked")
    )
    assert isinstance(first, CollapsedSweeper)
    assert type(plain) is Sweeper
    states = [sweeper.learned() for sweeper in (first, second, plain)]
    scores = []
    for sweeper, params in zip((first, second, plain), states, strict=True):
        draws = np.random.default_rng(5)
        scores.append([sweeper.sweep(params, draws, 9, number) for number in range(3)])
    assert scores[0] == scores[1]
    assert scores[0][0] == scores[2][0]  # at the parameters that both found
    assert states[0].theta.tobytes() == states[1].theta.tobytes()
    assert states[0].theta.tobytes() != states[2].theta.tobytes()


def test_sweeps_with_even_weights_are_those_of_the_blocked_sampler(rng):
    table = ex.make_table(ex.COLUMNS, 100, rng)
    circuit = ex.two_level(table)
    states = []
    for sampler in ("collapsed", "blocked"):
        sweeper, draws = make_target(circuit, table, sampler=sampler).sweeper(), np.random.default_rng(5)
        states.append(sweeper.at_random(draws))
        sweeper.sweep(states[-1], draws, 9, 0, even=True)
    assert states[0].theta.tobytes() == states[1].theta.tobytes()


def test_draws_in_closed_form_need_no_scan(rng):
    table = ex.make_table((ex.REAL, ex.LABEL), 60, rng)
    circuit = ex.hard(table, Condition(1, 0.5, (1,)), dictionary=ex.only("normal", "categorical"))
    target = make_target(circuit, table, prior="abda", sampler="collapsed")
    assert target.is_closed_form
    assert type(target.sweeper()) is Sweeper


def test_an_impossible_row_is_named(rng):
    table = ex.make_table((ex.PLAIN[1],), 20, rng)
    values = table.values.copy()
    circuit = ex.independent(table, ex.only("exponential"))
    values[0, 7] = -3.0
    sweeper = make_target(circuit, Table(table.schema, values, table.observed), sampler="collapsed").sweeper()
    with pytest.raises(SamplingError, match="row 8"):
        sweeper.sweep(sweeper.learned(), rng, 1, 0)


def test_an_unknown_sampler_is_refused_with_the_choices():
    with pytest.raises(ModelError, match="sampler = 'nuts'; expected one of blocked, collapsed"):
        check_sampler("nuts")


def test_the_longest_path_counts_the_sums_of_all_columns(rng):
    table = ex.make_table(ex.COLUMNS, 30, rng)
    plan = make_plan(ex.two_level(table), table.schema)
    longest = max(len(edges) for edges, _ in naive.induced_paths(ex.two_level(table), np.ones(5, bool)))
    assert paths.longest_path(plan) == longest
