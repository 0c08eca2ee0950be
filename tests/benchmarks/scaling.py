"""How time grows with rows and columns, and what a second thread or process brings.

    python -m tests.benchmarks.scaling [--parts rows learning columns threads processes memory] [--rows 1000000]
        [--columns 30 100 300 1000] [--rounds 2]

Tables are drawn from sub-populations that each ten columns have of their own: numbers, whole numbers and labels.
Exponents are slopes of log processor seconds in log size over the upper half of the sizes. Efficiencies are one
worker's wall seconds over twice those of two, the least of some rounds in turns. Beside them stands the ratio of
processor seconds: what two workers do twice. Of a fit what comes behind learning is measured: arranging or counting,
and sweeps. Memory is the most that a driver held, whose rows lie in files and whose sweeps another process counts, for
all rows and a quarter of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import bayesjpt as bj

FILE_ROWS = 250_000
LEARNERS = ("mspn", "jpt")
"""A structure with latent sums, and one whose rows are counted once and for all."""
SWEEPS = {"n_structures": 1, "chains": 1, "tune": 2, "draws": 4, "cores": 1, "seed": 1, "progress": False}


def a_frame(n_row: int, n_column: int, seed: int = 1) -> pd.DataFrame:
    """Return rows of sub-populations that each ten columns have of their own."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for number in range(n_column):
        if number % 10 == 0:
            group = rng.integers(3, size=n_row)
        match number % 5:
            case 0 | 1:
                columns[f"x{number}"] = rng.normal(3.0 * group, 1.0).round(2)
            case 2:
                columns[f"x{number}"] = rng.poisson(2.0 + 3.0 * group)
            case 3:
                columns[f"x{number}"] = rng.gamma(2.0 + group, 10.0).round(1)
            case _:
                columns[f"x{number}"] = np.array(["red", "green", "blue"])[(group + (rng.random(n_row) < 0.2)) % 3]
    return pd.DataFrame(columns)


def in_files(frame: pd.DataFrame, folder: Path) -> bj.Dataset:
    write_files(frame, folder)
    return bj.dataset(folder, progress=False)


def write_files(frame: pd.DataFrame, folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, len(frame), FILE_ROWS)):
        part = pa.Table.from_pandas(frame.iloc[first : first + FILE_ROWS], preserve_index=False)
        pq.write_table(part, folder / f"part_{number:03d}.parquet")


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of this process, and what the work returns."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def exponent(sizes: list[int], spent: list[float]) -> float:
    """Return the slope of log seconds in log size over the upper half of the sizes."""
    upper = slice(len(sizes) // 2 - (len(sizes) == 2), None)
    return float(np.polyfit(np.log(sizes[upper]), np.log(spent[upper]), 1)[0])


def show(what: str, sizes: list[int], spent: list[float]) -> None:
    told = "  ".join(f"{size:,}: {each:.2f}" for size, each in zip(sizes, spent, strict=True))
    print(f"{what:<28} exponent {exponent(sizes, spent):5.2f}   CPU s  {told}", flush=True)


def sampled(table: Any, learner: str, **options: Any) -> np.ndarray:
    """Return (wall seconds, processor seconds of this process) of a fit behind the learning of its structure."""
    clocks: dict[str, tuple[float, float]] = {}

    def note(phase: str, _: float = 0.0) -> None:
        clocks[phase] = time.perf_counter(), time.process_time()

    bj.fit(table, learner, on_phase=note, **SWEEPS | options)
    note("end")
    return np.subtract(clocks["end"], clocks["learn"])


def rows_part(n_row: int) -> None:
    """Show exponents in rows: of arranging files, and of what comes behind learning for both kinds of structures."""
    sizes = [n_row // 8, n_row // 4, n_row // 2, n_row]
    spent: dict[str, list[float]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            frame = a_frame(size, 10)
            cpu, rows = seconds(lambda frame=frame, folder=folder: in_files(frame, Path(folder) / "files"))
            spent.setdefault("files written and arranged", []).append(cpu)
            for learner in LEARNERS:
                spent.setdefault(f"{learner}: 6 sweeps", []).append(sampled(rows, learner)[1])
            del rows
    for what, each in spent.items():
        show(what, sizes, each)


def learning_part(sizes: list[int], n_row: int = 2_000) -> None:
    """Show exponents in columns of what is quick enough for a thousand: reading and learning."""
    spent: dict[str, list[float]] = {"reading": [], "learning": []}
    for size in sizes:
        cpu, table = seconds(lambda size=size: bj.as_table(a_frame(n_row, size)))
        spent["reading"].append(cpu)
        spent["learning"].append(seconds(lambda table=table: bj.learn_mspn(table, np.random.default_rng(1)))[0])
    for what, each in spent.items():
        show(what, sizes, each)


def columns_part(sizes: list[int], n_row: int = 2_000) -> None:
    """Show exponents in columns: learning, sweeps, types, convergence, saving."""
    spent: dict[str, list[float]] = {}
    for size in sizes:
        cpu, table = seconds(lambda size=size: bj.as_table(a_frame(n_row, size)))
        spent.setdefault("reading", []).append(cpu)
        cpu, _ = seconds(lambda table=table: bj.learn_mspn(table, np.random.default_rng(1)))
        spent.setdefault("learning", []).append(cpu)
        asked = SWEEPS | {"n_structures": 2, "tune": 10, "draws": 10}
        cpu, post = seconds(lambda table=table, asked=asked: bj.fit(table, **asked))
        spent.setdefault("fit of 2 structures", []).append(cpu)
        cpu, _ = seconds(post.types)
        spent.setdefault("types", []).append(cpu)
        cpu, _ = seconds(post.convergence)
        spent.setdefault("convergence", []).append(cpu)
        with tempfile.TemporaryDirectory() as folder:
            cpu, _ = seconds(lambda post=post, folder=folder: post.save(Path(folder) / "fit.nc"))
        spent.setdefault("saving", []).append(cpu)
    for what, each in spent.items():
        show(what, sizes, each)


def threads_part(n_row: int, rounds: int) -> None:
    """Show what a second thread brings to the sweeps of one chain, rows in memory."""
    table = bj.as_table(a_frame(n_row, 10))
    for learner in LEARNERS:
        spent: dict[int, list[np.ndarray]] = {1: [], 2: []}
        for _ in range(rounds):
            for cores, found in spent.items():
                found.append(sampled(table, learner, cores=cores, draws=12))
        tell(f"{learner}, threads", spent)


def processes_part(n_row: int, rounds: int) -> None:
    """Show what a second process of Dask brings, rows in files; workers are warm."""
    from bayesjpt.sampler.remote_workers import workers

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        rows = in_files(a_frame(n_row, 10), Path(folder) / "files")
        for learner in LEARNERS:
            spent: dict[int, list[np.ndarray]] = {1: [], 2: []}
            for n_worker, found in spent.items():
                with workers(n_worker) as executor:
                    client = executor._client
                    sampled(rows, learner, executor=executor, draws=2)
                    for _ in range(rounds):
                        before = sum(client.run(time.process_time).values())
                        wall, cpu = sampled(rows, learner, executor=executor, draws=12)
                        found.append(np.array([wall, cpu + sum(client.run(time.process_time).values()) - before]))
            tell(f"{learner}, processes", spent)


def most_memory(folder: Path, learner: str) -> float:
    """Return the most MiB that this process held when it had read and fitted files by the hands of another."""
    warnings.simplefilter("ignore")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        rows = bj.dataset(folder, folder=folder.with_name("arranged"), executor=executor, progress=False)
        bj.fit(rows, learner, executor=executor, **SWEEPS)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def memory_part(n_row: int) -> None:
    """Show the most memory of drivers in processes of their own, for a quarter of the rows and for all."""
    found: dict[str, list[float]] = {learner: [] for learner in LEARNERS}
    for size in (n_row // 4, n_row):
        with tempfile.TemporaryDirectory() as folder:
            write_files(a_frame(size, 10), Path(folder) / "files")
            for learner, most in found.items():
                with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as driver:
                    most.append(driver.submit(most_memory, Path(folder) / "files", learner).result())
    for learner, (fewer, all_rows) in found.items():
        sizes = f"{n_row // 4:,} rows {fewer:.0f} MiB, {n_row:,} rows {all_rows:.0f} MiB"
        print(f"{learner + ', driver':<28} {sizes}, {all_rows / fewer:.3f} times", flush=True)


def tell(what: str, spent: dict[int, list[np.ndarray]]) -> None:
    (one, one_cpu), (two, two_cpu) = (np.min(found, axis=0) for found in spent.values())
    print(
        f"{what:<28} 1: {one:.1f} s ({one_cpu:.1f} CPU s)  2: {two:.1f} s ({two_cpu:.1f} CPU s)"
        f"   efficiency {one / (2.0 * two):.2f}, of processor time {one_cpu / two_cpu:.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = ("rows", "learning", "columns", "threads", "processes", "memory")
    parser.add_argument("--parts", nargs="*", choices=parts, default=parts)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, nargs="*", default=[30, 100, 300, 1_000])
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    few = bj.as_table(a_frame(3_000, 10))
    bj.learn_mspn(few, np.random.default_rng(1))  # compiled before anything is measured
    for learner in LEARNERS if set(chosen.parts) - {"learning"} else ():
        sampled(few, learner)
    if "rows" in chosen.parts:
        rows_part(chosen.rows)
    if "learning" in chosen.parts:
        learning_part(chosen.columns)
    if "columns" in chosen.parts:
        columns_part(chosen.columns)
    if "threads" in chosen.parts:
        threads_part(chosen.rows, chosen.rounds)
    if "processes" in chosen.parts:
        processes_part(chosen.rows, chosen.rounds)
    if "memory" in chosen.parts:
        memory_part(chosen.rows)


if __name__ == "__main__":
    main()
