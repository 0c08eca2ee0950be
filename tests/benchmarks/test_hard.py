"""How fast hard trees are: rows that are routed to their leaf, one draw, against a circuit without routes."""

from __future__ import annotations

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.circuit.plan import make_plan
from bayesjpt.defaults import MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.density import fill_log_density
from bayesjpt.kernels.gibbs import allocate
from bayesjpt.kernels.routes import make_routes
from bayesjpt.kernels.swaps import make_swaps
from bayesjpt.kernels.work import block_rows, make_work
from tests.benchmarks.test_speed import best

N_LEAF = 100
N_LEARN = 20_000
AIM = 300.0
"""Nanoseconds a row for the log density under one draw, all included."""


def mixed_table(n_row: int, rng: np.random.Generator) -> bj.Table:
    """Return seven columns, numbers and labels, that depend on a hidden group."""
    import pandas as pd

    group = rng.integers(0, 6, n_row)
    labels = np.array(list("uvwxyz"))
    return bj.as_table(
        pd.DataFrame(
            {
                "a": rng.normal(group, 1.0).round(3),
                "b": rng.gamma(2.0 + group, 1.0).round(3),
                "c": rng.poisson(3 + 2 * group),
                "d": labels[(group + rng.integers(0, 3, n_row)) % 6],
                "e": rng.normal(group % 3, 1.0).round(4),
                "f": np.exp(rng.normal(group / 3, 0.5)).round(3),
                "g": labels[(group + rng.integers(0, 2, n_row)) % 4],
            }
        )
    )


@pytest.mark.parametrize("n_row", [20_000, 1_000_000])
def test_routed_rows(benchmark, figure, n_row):
    rng = np.random.default_rng(1)
    table = mixed_table(n_row, rng)
    circuit = bj.learn_jpt(table.take(range(N_LEARN)), rng, min_rows=N_LEARN // (2 * N_LEAF), max_leaves=N_LEAF)
    plan = make_plan(circuit, table.schema)
    params = circuit.start_log_weight.copy(), circuit.start_theta.copy()
    stats, edge_count = np.zeros(plan.stat_at[-1]), np.zeros(circuit.n_edge, np.int64)
    out = np.empty(n_row)

    def nanoseconds(function, n: int = 3) -> float:
        return best(function, n) / n_row * 1e9

    def routes():
        return make_routes(plan, table.values, table.observed)

    swaps = make_swaps(plan)
    text = [f"{circuit.n_leaf} distributions in {N_LEAF} leaves; finding the order {nanoseconds(routes):.0f}"]
    for name, found in (("routed", routes()), ("all nodes", None)):
        if found is None and n_row > N_LEARN:
            continue
        cells = make_cells(
            plan, table.values, table.observed,
            max_distinct_share=MAX_DISTINCT_SHARE, max_table_bytes=MAX_TABLE_BYTES, routes=found,
        )  # fmt: skip
        work = make_work(plan, cells, block_rows(plan, MAX_WORK_BYTES, cells))
        density = nanoseconds(lambda cells=cells, work=work: fill_log_density(plan, cells, *params, work, out))
        sweep = nanoseconds(
            lambda cells=cells, work=work: allocate(
                plan, cells, *params, work, swaps, np.uint64(7), False, stats, edge_count
            )
        )
        text.append(f"{name}: log density {density:.0f}, paths and statistics {sweep:.0f}")
    post = bj.Posterior.from_circuit(circuit, table.schema)
    verb = nanoseconds(lambda: post.log_density(table))
    text.append(f"log_density, all included, {verb:.0f}, {'reached' if verb <= AIM else 'MISSED'} (aim {AIM:g})")
    figure(f"hard tree, {n_row:,} rows, ns a row", "; ".join(text))
    benchmark.pedantic(lambda: post.log_density(table), rounds=1)
