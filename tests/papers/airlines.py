"""A joint tree of ten million rows that lie in files: time, memory and predictions.

    python -m tests.papers.airlines --data DIR [--rows 10000000] [--columns 10] [--learner jpt] [--structures 16]
        [--cores N] [--workers N] [--folder DIR]

The paper's table (Nyga et al., 2023, its Table 2) has 10 million rows of seven columns and is not at hand. A stand-in
is drawn, by a process of its own: rows of a fit of DIR/flights/airlines_1987_2008.csv.gz, 43,978 rows, the paper's
columns and, of ten, the year, month and day. So figures of time and memory mean something, and errors are those of
predicting rows of a model, not of flights.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import resource
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bayesjpt as bj
from bayesjpt.sampler.remote_workers import workers
from bayesjpt.table.table import Table
from tests.papers.jpt_data import FLIGHT_KINDS, read_texts
from tests.papers.jpt_predict import FLIGHT_SHARE, cart_predictions, joint_predictions, judge
from tests.papers.programs import run

KINDS = {**FLIGHT_KINDS, "Year": "integer", "Month": "integer", "DayofMonth": "integer"}
"""Ten columns: the paper's seven come first."""
FILE_ROWS = 250_000
TEST_ROWS = 10_000
CART_ROWS = 100_000
"""Rows that the trees of scikit-learn are trained on: what a structure of ours is learned from."""


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Print how long something took, and the most memory that the process held so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{what:<44}{time.perf_counter() - wall:8.1f} s, {time.process_time() - cpu:8.1f} CPU s, peak {peak:.2f} GiB",
        flush=True,
    )


def draw_stand_in(data: Path, folder: Path, n_row: int, kinds: dict[str, str]) -> None:
    """Fit the real table, and write rows of that posterior into parquet files, in batches; and others to predict."""
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True)
    with told("stand-in: fit of the real table"):
        table = bj.as_table(read_texts(data, "airlines_1987_2008")[list(kinds)], kinds=kinds)
        source = bj.fit(table, "jpt", n_structures=4, min_rows=0.005, seed=1, progress=False)
    with told(f"stand-in: {n_row} rows drawn"):
        rng = np.random.default_rng(1)
        for number, first in enumerate(range(0, n_row, FILE_ROWS)):
            rows = source.sample(min(FILE_ROWS, n_row - first), rng=rng)
            pq.write_table(as_arrow(rows), folder / f"part_{number:04d}.parquet")
    pq.write_table(as_arrow(source.sample(TEST_ROWS, rng=np.random.default_rng(2))), test_file(folder))


def test_file(folder: Path) -> Path:
    """Return where the rows to predict lie, beside the folder of the others."""
    return folder.with_name(f"{folder.name}_test.parquet")


def as_arrow(rows: Table) -> pa.Table:
    """Return rows without missing cells as Arrow has them: whole numbers, and labels as codes."""
    columns = {}
    for column, x in zip(rows.schema, rows.values, strict=True):
        is_label = column.base == "category"
        codes = pa.array(x.astype(np.int32 if is_label else np.int64))
        columns[column.name] = pa.DictionaryArray.from_arrays(codes, pa.array(column.labels)) if is_label else codes
    return pa.table(columns)


def predictions(post: Any, rows: bj.Dataset, test: Table) -> None:
    """Print errors of each column given the others, beside a tree of scikit-learn for each."""
    joint = joint_predictions(post, test)
    cart = cart_predictions(rows.sample(CART_ROWS), test, FLIGHT_SHARE)
    print(f"{'':<28}{'joint tree':>12}{'CART':>12}   of {test.n_row} other rows")
    for position, name in enumerate(test.names):
        ours, theirs = (judge(test, position, predict(position)) for predict in (joint, cart))
        for measure in ours:
            print(f"{name + ', ' + measure:<28}{ours[measure]:>12.4f}{theirs[measure]:>12.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--learner", default="jpt")
    parser.add_argument("--structures", type=int, default=16)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--workers", help="a number of processes, or the address of a Dask scheduler")
    parser.add_argument("--folder", type=Path, help="where the files are written, for another run; a temporary one")
    parser.add_argument("--columns", type=int, default=len(KINDS), choices=range(2, len(KINDS) + 1))
    chosen = parser.parse_args()
    kinds = dict(list(KINDS.items())[: chosen.columns])
    warnings.simplefilter("ignore")
    with contextlib.ExitStack() as stack:
        folder = chosen.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = folder / f"rows_{chosen.rows}_{chosen.columns}"
        if not test_file(files).is_file():
            maker = multiprocessing.get_context("spawn").Process(
                target=run, args=(partial(draw_stand_in, chosen.data, files, chosen.rows, kinds),)
            )
            maker.start()
            maker.join()
            if maker.exitcode:
                raise SystemExit(maker.exitcode)
        print(f"a stand-in for the paper's table: {chosen.rows} rows x {len(kinds)} columns, {chosen.learner}")
        begun = time.perf_counter()
        with told("files arranged"):
            rows = bj.dataset(files, kinds=kinds, progress=False)
        options = {"min_rows": FLIGHT_SHARE} if chosen.learner == "jpt" else {}
        executor = stack.enter_context(workers(chosen.workers)) if chosen.workers else None
        with told("learned and fitted"):
            post = bj.fit(
                rows,
                chosen.learner,
                n_structures=chosen.structures,
                cores=chosen.cores,
                executor=executor,
                seed=1,
                progress=False,
                **options,
            )
        print(f"{post!r}; {post.settings['tune']} sweeps discarded; {time.perf_counter() - begun:.0f} s in all")
        with told("other rows predicted"):
            predictions(post, rows, bj.as_table(pq.read_table(test_file(files)), schema=rows.schema))


if __name__ == "__main__":
    run(main)
