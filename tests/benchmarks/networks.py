"""How long cutset networks take: rows by tables and by the general pass, circuits, ensembles of many networks.

    python -m tests.benchmarks.networks --data DIR [--parts tables frames general circuit fits many]

DIR/binary20 is that of `tests.papers.binary`. Times are processor time, all threads together, least of several runs.
Each part has a process of its own: the memory of one is not that of another.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.circuit.check import check_circuit
from bayesjpt.circuit.networks import expand
from bayesjpt.circuit.plan import make_plan
from bayesjpt.kernels.networks import fill_scores
from bayesjpt.posterior.networks import rows_of
from bayesjpt.queries import density
from bayesjpt.structure.bins import bins_of
from bayesjpt.structure.cutset import SELECTS
from bayesjpt.structure.label_networks import Growth, grow_network
from bayesjpt.table.table import Table
from tests.papers.binary_members import Data, read_set

TABLE_SETS = {"nltcs": 4.0, "baudio": 2.0}
"""Of 16 and of 100 columns, with the nanoseconds a row and column aimed at."""
ESS = 0.2
GENERAL_ROWS, N_DRAW = 550, 10
"""Rows of a leaf of plants, which make about 150 trees; draws."""
N_RUN = 9


def seconds_of(function: Callable[[], object], n_run: int = N_RUN) -> float:
    """Return the least processor time of some runs after a first one."""
    times = []
    for _ in range(n_run + 1):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times[1:] or times)


def network_of(data: Data, min_rows: int):
    """Return (network, count) of the training rows, split at random."""
    growth = Growth(SELECTS.index("random"), True, min_rows, 4, ESS)
    return grow_network(bins_of(data.train)[0], growth, np.random.default_rng(1))


def posterior_of(data: Data, min_rows: int, n_draw: int = 1) -> bj.Posterior:
    """Return the posterior of one network with draws that are kept."""
    circuit = bj.learn_cutset(data.train, np.random.default_rng(1), min_rows=min_rows, ess=ESS)
    fit = bj.fit(data.train, lambda table, rng: circuit, n_structures=2, draws=n_draw, ess=ESS, seed=1, progress=False)
    return fit.by_structure()[0]


def frames_of(table: Table) -> dict[str, pd.DataFrame]:
    """Return the rows of 0 and 1 as labels, whole numbers, truth values and texts."""
    named = list(zip(table.schema.names, table.values.astype(np.int64), strict=True))
    labels = ["0", "1"]
    return {
        "labels": pd.DataFrame({name: pd.Categorical.from_codes(own, labels) for name, own in named}),
        "whole numbers": pd.DataFrame(dict(named)),
        "texts": pd.DataFrame({name: np.array(labels)[own] for name, own in named}),
    }


def tables(folder: Path) -> Iterator[str]:
    for name, aim in TABLE_SETS.items():
        yield f"{name}, {_by_tables(read_set(folder, name))} (aim {aim:g} by tables)"


def _by_tables(data: Data) -> str:
    post, table = posterior_of(data, 300), data.train
    found = post.recognised
    assert found is not None
    codes, out = rows_of(table), np.empty((1, table.n_row))
    log_weight = post.table_weights(np.array([0]))
    by_tables = seconds_of(lambda: fill_scores(found.network, log_weight, codes, out))
    coded = seconds_of(lambda: post.log_density(table))
    new = seconds_of(lambda: post.log_density(Table(table.schema, table.values, table.observed)))
    ns = [seconds / table.values.size * 1e9 for seconds in (by_tables, coded, new)]
    return (
        f"{table.n_row:,} x {len(table.schema)}, {found.network.n_tree} trees, ns a row and column: by tables "
        f"{ns[0]:.2f}, log_density of a table seen before {ns[1]:.2f}, of a new one {ns[2]:.2f}"
    )


def frames(folder: Path) -> Iterator[str]:
    for name in TABLE_SETS:
        data = read_set(folder, name)
        for part, table in (("test", data.test), ("train", data.train)):
            for what, frame in frames_of(table).items():
                read = seconds_of(lambda frame=frame, table=table: bj.as_table(frame, schema=table.schema), 3)
                n_cell = table.values.size
                yield (
                    f"{name}, {part}, {table.n_row:,} rows of {what}: read under a schema {read / n_cell * 1e9:.1f} ns "
                    f"a row and column, {read / len(table.schema) * 1e6:.0f} microseconds a column"
                )


def general(folder: Path) -> Iterator[str]:
    data = read_set(folder, "plants")
    post, table = posterior_of(data, GENERAL_ROWS, N_DRAW), data.test
    observed = table.observed.copy()
    observed[0] = False
    assert post.recognised is not None
    n_tree, holes = post.recognised.network.n_tree, Table(table.schema, table.values, observed)
    for what, rows in (("complete", table), ("without their first column", holes)):
        seconds = seconds_of(lambda rows=rows: density._conditional_of_any(post, rows, None, density._log_density), 5)
        yield (
            f"plants, {n_tree} trees, {N_DRAW} draws, {table.n_row:,} rows {what}, general pass: "
            f"{seconds / table.values.size / N_DRAW * 1e9:.1f} ns a row, column and draw (aim 26)"
        )


def circuit(folder: Path) -> Iterator[str]:
    data = read_set(folder, "plants")
    network, count = network_of(data, 300)
    made = expand(network, data.train.schema, count, ESS).circuit
    built = seconds_of(lambda: expand(network, data.train.schema, count, ESS))
    checked = seconds_of(lambda: check_circuit(made, len(data.train.schema)))
    planned = seconds_of(lambda: make_plan(made, data.train.schema))
    yield (
        f"plants, {network.n_tree} trees, {made.n_edge:,} edges, milliseconds: built {built * 1e3:.1f}, checked "
        f"{checked * 1e3:.1f}, planned {planned * 1e3:.1f}, together {(built + checked + planned) * 1e3:.1f} (aim 50)"
    )


def _fit(data: Data, n: int) -> tuple[bj.StackedPosterior, float]:
    began = time.process_time()
    post = bj.fit(data.train, "cutset", n_structures=n, min_rows=300, ess=ESS, seed=1, progress=False)
    return post, time.process_time() - began


def fits(folder: Path) -> Iterator[str]:
    data = read_set(folder, "plants")
    network_of(data, 300)
    bins = bins_of(data.train)[0]
    growth = Growth(SELECTS.index("random"), True, 300, 4, ESS)
    learned = seconds_of(lambda: [grow_network(bins, growth, np.random.default_rng(k)) for k in range(40)], 3)
    _fit(data, 2)
    yield f"plants, 40 networks: learned in {learned:.2f} s (aim .5), fitted in {_fit(data, 40)[1]:.2f} s (aim 5)"


def many(folder: Path) -> Iterator[str]:
    data = read_set(folder, "plants")
    _fit(data, 2)[0].log_density(data.test)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    post, seconds = _fit(data, 500)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield (
        f"plants, 500 networks of two draws: fitted in {seconds:.1f} s (aim 40), {memory / 1024:.0f} MB the whole "
        f"process, {(memory - before) / 1024:.0f} of them by the fit (aim 500)"
    )
    began = time.process_time()
    found = post.log_density(data.test)
    seconds = time.process_time() - began
    yield (
        f"{data.test.n_row:,} rows under them: {seconds:.1f} s (aim 10), log likelihood of their average "
        f"{np.logaddexp.reduce(found.values.reshape(-1, data.test.n_row), axis=0).mean() - np.log(1000):.3f}"
    )


PARTS = {part.__name__: part for part in (tables, frames, general, circuit, fits, many)}


def say(part: str, folder: Path) -> None:
    """Print the lines of a part as they are known."""
    for line in PARTS[part](folder):
        print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds binary20")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    told = parser.parse_args(arguments)
    for part in told.parts:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            process.submit(say, part, told.data / "binary20").result()


if __name__ == "__main__":
    main()
