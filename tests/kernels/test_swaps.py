"""Partners within dictionaries: who they are, what they would hold, and what an exchange moves."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Params
from bayesjpt.families import registry
from bayesjpt.kernels import gibbs
from bayesjpt.kernels.swaps import make_swaps, propose_swaps, swap_rows
from bayesjpt.kernels.work import make_work
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive
from tests.kernels import runs

KEY = 77
SUMS = 1e-9
MODES = ("by row", "coded", "mixed")
POSITIVE_FAMILIES = ("normal", "gamma", "exponential", "lognormal")


def allocated(run: runs.Run, params: Params, rng: np.random.Generator, n_block: int = 64):
    """Return (swaps, stats, edge_count) after swaps were proposed and rows allocated."""
    swaps = make_swaps(run.plan)
    propose_swaps(swaps, rng)
    stats, edge_count = np.zeros(run.plan.stat_at[-1]), np.zeros(run.plan.child.size, np.int64)
    work = make_work(run.plan, run.cells, n_block)
    gibbs.allocate(run.plan, run.cells, *params, work, swaps, np.uint64(KEY), False, stats, edge_count)
    return swaps, stats, edge_count


@pytest.mark.parametrize("mode", MODES)
def test_swaps_hold_the_statistics_of_the_other_leafs_rows(mode, rng):
    table = ex.make_table(ex.PLAIN, 300, rng, missing=0.3)
    circuit = ex.two_level(table)
    params = ex.random_params(circuit, table.schema, rng)
    run = runs.prepare(circuit, table, mode)
    swaps, _, _ = allocated(run, params, rng)
    cells = naive.allocate(circuit, params, table, np.uint64(KEY)).cells
    paired = np.flatnonzero(swaps.other >= 0)
    assert paired.size > 0
    for leaf in paired:
        assert swaps.other[swaps.other[leaf]] == leaf
        found = swaps.stats[run.plan.stat_at[leaf] : run.plan.stat_at[leaf + 1]]
        expected = naive.leaf_statistics(circuit, table.schema, int(leaf), cells[swaps.other[leaf]])
        np.testing.assert_allclose(found, expected, rtol=SUMS, atol=SUMS)


def test_statistics_of_swaps_do_not_depend_on_blocks(rng):
    table = ex.make_table(ex.PLAIN, 5000, rng)
    circuit = ex.mixture(table)
    run = runs.prepare(circuit, table, "mixed")
    first, second = (allocated(run, ex.start(circuit), np.random.default_rng(1), n)[0].stats for n in (7, 256))
    assert first.tobytes() == second.tobytes()


def test_every_pair_of_a_dictionary_meets(rng):
    table = ex.make_table((ex.PLAIN[1],), 20, rng)
    swaps = make_swaps(runs.prepare(ex.independent(table, ex.only(*POSITIVE_FAMILIES)), table).plan)
    met = set()
    for _ in range(200):
        propose_swaps(swaps, rng)
        met |= {(int(leaf), int(other)) for leaf, other in enumerate(swaps.other)}
    assert met == {(a, b) for a in range(4) for b in range(4) if a != b}


def test_families_without_evidence_truncated_leaves_and_shared_ones_take_no_part(rng):
    table = ex.make_table((ex.PLAIN[2],), 40, rng)
    circuit = ex.independent(table, ex.only("poisson", "geometric", "negative_binomial"))
    names = [naive.leaf_family(circuit, leaf) for leaf in make_swaps(runs.prepare(circuit, table).plan).member]
    assert sorted(names) == ["geometric", "poisson"]
    on_cell = ex.truncated(circuit, table.schema, rng, share=1.0)
    assert make_swaps(runs.prepare(on_cell, table).plan).member.size == 0
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    first, second = np.flatnonzero(circuit.kind == arrays.LIKELIHOOD)
    child = circuit.child.copy()
    child[circuit.child_ptr[second]] = child[circuit.child_ptr[first]]
    shared = make_swaps(runs.prepare(circuit._replace(child=child), table).plan)
    assert shared.member.size == 0


def test_rows_go_to_the_empty_member_that_explains_them_and_stay(rng):
    # 200 values near 10 scales, which no exponential explains, all with the exponential
    table = ex.make_table((ex.PLAIN[1],), 200, rng)
    values = table.schema.columns[0].scale * (10.0 + 0.1 * rng.standard_normal((1, 200)))
    table = Table(table.schema, values, table.observed)
    circuit = ex.independent(table, ex.only("normal", "exponential"))
    run, params, hyper = runs.prepare(circuit, table), ex.start(circuit), runs.hyper_of(circuit, table.schema)
    members = np.flatnonzero(circuit.leaf_of[circuit.child] >= 0)
    families = circuit.leaf_family[circuit.leaf_of[circuit.child[members]]]
    params.log_weight[members] = np.where(families == registry.number("exponential"), 0.0, -600.0)
    alpha = np.full(circuit.n_edge, 0.1)
    swaps, stats, edge_count = allocated(run, params, rng)
    held, offered, before = stats.copy(), swaps.stats.copy(), edge_count[members].copy()
    assert sorted(before) == [0, 200]
    assert swap_rows(run.plan, swaps, stats, edge_count, alpha, *hyper, params.theta, rng) == 1
    assert edge_count[members].tolist() == before[::-1].tolist()
    assert stats.tolist() == offered.tolist()
    swaps.stats[:] = held
    assert swap_rows(run.plan, swaps, stats, edge_count, alpha, *hyper, params.theta, rng) == 0
    assert stats.tolist() == offered.tolist()
