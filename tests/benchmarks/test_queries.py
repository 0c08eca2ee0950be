"""How fast events and conditional expectations are, under many draws; published figures of others stand beside them."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.plan import make_plan
from bayesjpt.families import registry
from bayesjpt.kernels.boxes import make_boxes
from bayesjpt.kernels.events import fill_box_log_probability
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table
from tests import zoo
from tests.benchmarks import cases
from tests.benchmarks.test_speed import best, exponential_ns

N_LEAF = 100
N_DRAW = 1000
AIM = 12.0
"""Scalar exponentials per (normal leaf, constrained column)."""

SPPL = (
    "SPPL, 100 leaves x 5 columns as 8-piece uniform leaves (4,601 nodes) on the same two cores: 86 ms a probability, "
    "for one distribution in place of 1,000 draws, and leaves of pieces in place of normals"
)


def one_family(family: str, rng: np.random.Generator) -> tuple[Table, bj.Posterior]:
    """Return a table of five columns, and a mixture of products of 100 leaves of one family each."""
    member = registry.family(family)
    base = member.bases[0]
    column = Column(
        "c", base, member.support if base != "category" else (0.0, 9.0), resolution=0.01 if base == "real" else 1.0,
        location=3.0, scale=2.0, mean=3.0, minimum=0.0, maximum=12.0,
        levels=tuple(float(k) for k in range(10)) if base == "integer" else (),
        frequencies=(0.1,) * 10 if base != "real" else (),
        labels=tuple("abcdefghi") if base == "category" else (),
    )  # fmt: skip
    if family == "bernoulli":
        column = zoo.FLAG
    columns = tuple(zoo.named(column, f"c{k}") for k in range(5))
    values = np.minimum(np.round(rng.gamma(3.0, 1.0, (5, 2000)), 2), 9.0)
    if base != "real":
        values = np.minimum(np.round(values), len(column.labels) - 1 if base == "category" else 9.0)
    table = Table(Schema(columns), values, np.ones(values.shape, bool))
    parts = tuple(
        Product(tuple(ColumnLeaf(c, np.sort(rng.choice(2000, 100, replace=False))) for c in range(5)))
        for _ in range(N_LEAF)
    )
    circuit = build_circuit(Sum(parts, (1,) * N_LEAF), table, lambda _column: (member,))
    points = [zoo.random_params(circuit, table.schema, rng) for _ in range(50)]
    params = Params(*(np.array([point[k] for point in points] * (N_DRAW // 50))[None] for k in (0, 1)))
    return table, bj.Posterior(circuit, table.schema, params)


@pytest.mark.parametrize("family", [member.name for member in registry.FAMILIES if member.name != "atom"])
def test_event(benchmark, figure, family):
    table, post = one_family(family, np.random.default_rng(1))
    plan = make_plan(post.circuit, table.schema)
    flat = post.flat()
    counts = plan.column_resolution[0] == 0.0
    lo, hi = (0.0, 1.0) if table.schema.columns[0].base == "category" else (2.0, 4.0)
    parts = []
    for n_column, interval in ((1, (lo, hi)), (1, (hi, np.inf)), (5, (lo, hi))):
        boxes = make_boxes(plan, [{c: np.array([interval]) for c in range(n_column)}])
        out = np.empty((N_DRAW, 1))

        def ask(boxes=boxes, out=out):
            fill_box_log_probability(plan, boxes, flat.log_weight, flat.theta, out)

        before = exponential_ns()
        nanoseconds = best(ask, 5) / N_DRAW * 1e9
        yard = min(before, exponential_ns())
        shown = f"{'values' if counts else 'interval'} {interval[0]:g}..{interval[1]:g}"
        parts.append(
            f"{n_column} column{'s' if n_column > 1 else ''}, {shown}: {nanoseconds / 1e3:.1f} µs a draw, "
            f"{nanoseconds / N_LEAF / n_column / yard:.1f} exp per (leaf, column)"
        )
    aim = f" (aim {AIM:g}; {SPPL})" if family == "normal" else ""
    figure(f"event, 100 {family} leaves", "; ".join(parts) + aim)
    benchmark.pedantic(ask, rounds=3)


@pytest.fixture(scope="module")
def abalone() -> tuple[Table, bj.Posterior]:
    """Return abalone, and 1,000 draws of a learned structure around its estimate."""
    table = bj.read_table(cases.DATA / "abalone.csv")
    rng = np.random.default_rng(1)
    circuit = bj.learn_mspn(table, rng, min_rows=0.2)
    points = [zoo.random_params(circuit, table.schema, rng) for _ in range(50)]
    params = Params(*(np.array([point[k] for point in points] * (N_DRAW // 50))[None] for k in (0, 1)))
    return table, bj.Posterior(circuit, table.schema, params)


def timed(function) -> float:
    began = time.thread_time()
    function()
    return time.thread_time() - began


def test_conditional_expectation(benchmark, figure, abalone):
    table, post = abalone
    rows = table.take(range(1000))
    observed = rows.observed.copy()
    target = table.schema.names[-1]
    observed[-1] = False
    rows = Table(table.schema, rows.values, observed)
    short = bj.Posterior(post.circuit, post.schema, Params(*(array[:, :5] for array in post.params)))
    short.expectation(target, rows)
    seconds = min(timed(lambda: post.expectation(target, rows)) for _ in range(3))
    tracemalloc.start()
    answer = short.expectation(target, rows)
    peak = tracemalloc.get_traced_memory()[1] - answer.nbytes
    tracemalloc.stop()
    others = {
        "variance": lambda: post.variance(target, rows),
        "cdf": lambda: post.cdf(10.0, target, rows),
        "probability of an event": lambda: post.probability(f"{target} > 10", rows),
    }
    spent = ", ".join(f"{name} {timed(ask):.2f} s" for name, ask in others.items())
    quantile = timed(lambda: short.quantile(0.5, target, rows)) * N_DRAW / 5
    figure(
        "expectation given 1,000 rows x 1,000 draws, abalone",
        f"{seconds:.2f} s on one core (aim 1.5 s), {post.circuit.n_leaf} leaves, workspace in Python "
        f"{peak / 2**20:.1f} MiB; {spent}; median {quantile:.1f} s (extrapolated from 5 draws)",
    )
    benchmark.pedantic(lambda: post.expectation(target, rows), rounds=1)
