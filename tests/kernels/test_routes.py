"""Routing: which nodes rows need, and that nothing but time depends on it."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit import arrays
from bayesjpt.circuit.paths import Condition
from bayesjpt.circuit.plan import make_plan
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.routes import make_routes, no_routes
from bayesjpt.kernels.work import block_rows
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, strategies
from tests.kernels import runs

N_ROW = 5000
N_FEW = 40
KEY = 98765432109876543210 % 2**64
MODES = list(runs.MODES)
ROUNDING = 1e-12
COLUMNS = (ex.HEAPED, ex.COUNT, ex.LABEL, ex.POSITIVE)


def hard_case(rng, missing: float, n_row: int = N_ROW) -> strategies.Case:
    """Return a tree that splits a column with atoms, at one of them, whole numbers, and labels."""
    table = ex.make_table(COLUMNS, n_row, rng, missing=missing)
    conditions = Condition(0, ex.HEAPED.atoms[1]), Condition(1, 2.5), Condition(2, 0.5, (1,))
    circuit = ex.hard(table, *conditions, dictionary=ex.only("normal", "atom", "poisson", "gamma", "categorical"))
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


@pytest.fixture(params=[0.0, 0.2], ids=["complete", "missing cells"])
def case(request, rng) -> strategies.Case:
    return hard_case(rng, request.param)


def prepare(case: strategies.Case, mode: str, *, routed: bool = True) -> runs.Run:
    plan = make_plan(case.circuit, case.table.schema)
    routes = make_routes(plan, case.table.values, case.table.observed) if routed else None
    return runs.Run(plan, make_cells(plan, case.table.values, case.table.observed, **runs.MODES[mode], routes=routes))


# --- answers


def test_log_densities_of_routed_rows_agree_with_recursion_in_the_log_domain(rng):
    case = hard_case(rng, 0.2, N_FEW)
    found = runs.log_scores(prepare(case, "mixed"), case.params) + runs.log_jacobian(case.table)
    np.testing.assert_allclose(found, naive.log_values(case.circuit, case.params, case.table), rtol=ROUNDING)


@pytest.mark.parametrize("mode", MODES)
def test_routing_changes_no_bit_of_a_log_density(case, mode):
    whole, routed = (runs.log_scores(prepare(case, mode, routed=flag), case.params) for flag in (False, True))
    assert np.isfinite(routed).all()
    np.testing.assert_array_equal(routed, whole)


def test_routing_changes_no_bit_of_a_log_mass(case):
    plan = make_plan(case.circuit, case.table.schema)
    values, half = recorded_cells(case.table.schema, case.table.values)
    answers = []
    for routes in (None, make_routes(plan, values, case.table.observed, half)):
        cells = make_cells(plan, values, case.table.observed, **runs.MODES["coded"], routes=routes, half=half)
        answers.append(runs.log_masses(runs.Run(plan, cells), case.params))
    assert np.isfinite(answers[1]).all()
    np.testing.assert_allclose(answers[1], answers[0], rtol=ROUNDING)


@pytest.mark.parametrize("by_prior", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_routed_rows_take_the_paths_that_they_take_unrouted(case, mode, by_prior):
    prepared = [prepare(case, mode, routed=routed) for routed in (False, True)]
    whole, routed = (runs.allocate(run, case.params, KEY, by_prior=by_prior) for run in prepared)
    assert routed.impossible == -1
    assert routed.edge_count.tolist() == whole.edge_count.tolist()
    np.testing.assert_allclose(routed.stats, whole.stats, rtol=ROUNDING, atol=ROUNDING)
    assert routed.log_likelihood == pytest.approx(whole.log_likelihood, rel=ROUNDING)


@pytest.mark.parametrize("n_block", [1, 37, 1024])
def test_size_of_blocks_changes_no_bit_of_a_routed_allocation(case, n_block):
    run = prepare(case, "mixed")
    one, other = (runs.allocate(run, case.params, KEY, n_block=n) for n in (256, n_block))
    assert (one.edge_count.tolist(), one.stats.tolist()) == (other.edge_count.tolist(), other.stats.tolist())
    assert one.log_likelihood == other.log_likelihood


def test_allocations_at_random_respect_the_splits(rng):
    case = hard_case(rng, 0.0)
    found = runs.allocate(prepare(case, "by row"), case.params, KEY, by_prior=True)
    root = naive.edges_of(case.circuit, case.circuit.n_node - 1)
    below = int((case.table.values[0] < ex.HEAPED.atoms[1]).sum())
    assert found.edge_count[list(root)].tolist() == [below, N_ROW - below]


def test_impossible_row_is_named_by_its_number_in_the_table(rng):
    case = hard_case(rng, 0.0)
    values = case.table.values.copy()
    values[1, [4321, 77]] = 2.5, 3.5  # no counts
    bad = case._replace(table=Table(case.table.schema, values, case.table.observed))
    assert runs.allocate(prepare(bad, "by row"), case.params, KEY).impossible == 77


# --- routes


def routes_of(case: strategies.Case, mass: bool = False):
    plan = make_plan(case.circuit, case.table.schema)
    values, half = recorded_cells(case.table.schema, case.table.values) if mass else (case.table.values, None)
    return plan, make_routes(plan, values, case.table.observed, half)


def test_every_row_stands_in_one_place(case):
    _, routes = routes_of(case)
    assert np.sort(routes.row).tolist() == list(range(N_ROW))
    assert (np.diff(routes.segment_ptr) > 0).all()
    assert routes.segment_ptr[[0, -1]].tolist() == [0, N_ROW]


def test_complete_rows_of_a_segment_need_one_leaf_of_the_tree(rng):
    case = hard_case(rng, 0.0)
    plan, routes = routes_of(case)
    products = np.flatnonzero(plan.kind == arrays.PRODUCT)
    of_segment = np.split(routes.live, routes.live_ptr[1:-1])
    assert sorted(np.intersect1d(products, live).tolist() for live in of_segment) == [[p] for p in products.tolist()]
    assert routes.n_needed.max() < plan.kind.size / 4


def test_rows_need_what_their_observed_cells_leave_open(rng):
    case = hard_case(rng, 0.2)
    plan, routes = routes_of(case)
    for segment in range(routes.segment_ptr.size - 1):
        live = routes.live[routes.live_ptr[segment] : routes.live_ptr[segment + 1]]
        rows = routes.row[routes.segment_ptr[segment] : routes.segment_ptr[segment + 1]]
        root = plan.kind.size - 1
        assert live[-1] == root
        x, known = case.table.values[0, rows], case.table.observed[0, rows]
        sides = (x < ex.HEAPED.atoms[1]) | ~known, (x >= ex.HEAPED.atoms[1]) | ~known
        children = plan.child[plan.child_ptr[root] :]
        assert [child in live for child in children] == [side.any() for side in sides]


def test_recorded_cell_across_a_threshold_needs_both_sides(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 200, rng)
    values = table.values.copy()
    values[0, 0] = 1.0
    table = Table(table.schema, values, table.observed)
    circuit = ex.hard(table, Condition(0, 1.02), dictionary=ex.only("normal", "poisson"))  # cells are 0.1 wide
    case = strategies.Case(table, circuit, ex.start(circuit))
    for mass, n_product in ((False, 1), (True, 2)):
        plan, routes = routes_of(case, mass)
        place = int(np.flatnonzero(routes.row == 0)[0])
        segment = int(np.searchsorted(routes.segment_ptr, place, side="right")) - 1
        live = routes.live[routes.live_ptr[segment] : routes.live_ptr[segment + 1]]
        assert (plan.kind[live] == arrays.PRODUCT).sum() == n_product


def test_rows_of_a_circuit_without_hard_sums_stay_in_their_places(rng):
    table = ex.make_table(ex.COLUMNS, 50, rng)
    plan = make_plan(ex.two_level(table), table.schema)
    routes = make_routes(plan, table.values, table.observed)
    for found, expected in zip(routes, no_routes(plan, 50), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert routes.row.size == 0


def test_blocks_are_longer_where_segments_need_little(case):
    run = prepare(case, "by row")
    few_bytes = 2**19
    assert block_rows(run.plan, few_bytes, run.cells) >= block_rows(run.plan, few_bytes)
