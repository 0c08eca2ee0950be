"""How far answers move when a fit is repeated with another seed, in widths of their own intervals.

    python -m tests.papers.repeatability --data DIR [--tables abalone wine diabetes] [--synthetic 14]

T1: movement of means and ends of 90 % intervals of the queries of `tests.papers.intervals`, two fits a table. T2:
nested R-hat of superchains from the learner's estimate and from random allocations, under one structure. T3: Monte
Carlo error of a row's log mass. T4: how often 90 % intervals hold the answer among held-out rows of the synthetic
tables. All but T2 for ensembles and, beside them, for fits of one structure.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.defaults import STRUCTURES
from bayesjpt.posterior.draws import Posterior
from bayesjpt.report.convergence import nested_rhat
from bayesjpt.report.stability import Stability
from bayesjpt.table.table import Table
from tests.papers.abda_data import our_tables, read_data
from tests.papers.intervals import QUERIES, SHARE, Pair, interval, judge, pairs_of, table_size
from tests.papers.programs import run

TABLES = ("abalone", "wine", "diabetes")
SEEDS = (1, 2)
N_ROW = 200
"""Rows whose log masses are followed."""
NESTED = {"chains": 16, "tune": 50, "draws": 25}
"""Sweeps of superchains: short ones, as in an ensemble."""


@dataclass
class Found:
    """What two fits of each table told.

    Parameters
    ----------
    moved, ends : list of float
        Movement of means, and of ends of intervals, in widths.
    held : list of bool
        Whether intervals hold the answers of held-out rows, with these' sampling error.
    error : list of float
        Monte Carlo errors of rows' log masses, nats.
    seconds : float
        Processor time of the fits.
    told : list of float
        Movement that `convergence` announced, in widths.
    """

    moved: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    seconds: float = 0.0
    told: list[float] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Task:
    """A table to fit, rows to ask about, and pairs of columns.

    Parameters
    ----------
    name : str
    train : Table
    rows : mapping from str to float64 (n_row,)
        Held-out values by column.
    pairs : list of Pair
    truth : bool
        Whether the held-out rows are many enough to count answers among them.
    """

    name: str
    train: Table
    rows: Mapping[str, np.ndarray]
    pairs: list[Pair]
    truth: bool


def abda_task(data: str, name: str, n_pair: int) -> Task:
    """Return the task of one of ABDA's tables: its test rows say which pairs are asked about."""
    read = read_data(data, name)
    train, _ = our_tables(read)
    complete = read.test[~np.isnan(read.test).any(axis=1)]
    rows = {column.name: complete[:, k] for k, column in enumerate(train.schema)}
    types = ["real" if column.base == "real" else "count" for column in train.schema]
    numbers = {column.name for column in train.schema if column.base != "category"}
    pairs = pairs_of(rows, types, 4 * n_pair, np.random.default_rng(1))
    return Task(name, train, rows, [pair for pair in pairs if {pair.name, pair.other} <= numbers][:n_pair], False)


def synthetic_task(path: Path, n_pair: int) -> Task | None:
    """Return the task of a synthetic table, of which a tenth is fitted; None where columns are left out."""
    with np.load(path) as arrays:
        values = np.concatenate([arrays[part] for part in ("train", "valid", "test")])
        types = arrays["types"].tolist()
    rng = np.random.default_rng(1)
    order = rng.permutation(len(values))
    n_fit = round(SHARE * len(values))
    train = bj.as_table(pd.DataFrame({f"x{k}": values[order[:n_fit], k] for k in range(values.shape[1])}))
    if train.schema.set_aside:
        return None
    rows = {f"x{k}": values[order[n_fit:], k] for k in range(values.shape[1])}
    numbers = {column.name for column in train.schema if column.base != "category"}
    pairs = [pair for pair in pairs_of(rows, types, n_pair, rng) if pair.name in numbers]
    return Task(path.stem, train, rows, pairs, True)


def questions(task: Task) -> list[tuple[int, Pair]]:
    """Return what is asked: numbers of queries, and pairs."""
    return [(k, pair) for pair in task.pairs for k, q in enumerate(QUERIES) if pair.continuous or not q.jumps]


def log_mass_error(post: Posterior, rows: Table) -> np.ndarray:
    """Return the Monte Carlo error of each row's log mass, nats: of independent structures, or of chains."""
    mass = np.exp(post.log_mass(rows).to_numpy())
    parts = [part.mean(axis=(0, 1)) for part in post.split(mass)]
    means = np.array(parts) if len(parts) > 1 else mass.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = means.std(axis=0, ddof=1) / np.sqrt(len(means)) / means.mean(axis=0)
    return error[np.isfinite(error)]


def repeat(task: Task, found: Found, options: Mapping[str, Any]) -> None:
    """Fit a table twice, and add what is found."""
    asked = questions(task)
    answers = []
    for seed in SEEDS:
        began = time.process_time()
        post = bj.fit(task.train, seed=seed, progress=False, **options)
        found.seconds += time.process_time() - began
        answers.append([np.asarray(QUERIES[k].ask(post, pair)).ravel() for k, pair in asked])
        found.error += log_mass_error(post, task.train.take(np.arange(min(N_ROW, task.train.n_row)))).tolist()
        judged = post.convergence()
        found.told += [judged.move] if isinstance(judged, Stability) else []
        if task.truth:
            rng = np.random.default_rng(5)
            pieces = zip(asked, answers[-1], strict=True)
            found.held += [judge(k, draws, pair, task.rows, rng).held_with_error for (k, pair), draws in pieces]
    for one, other in zip(*answers, strict=True):
        (lo, hi), (other_lo, other_hi) = interval(one), interval(other)
        width = 0.5 * (hi - lo + other_hi - other_lo)
        if not np.isfinite(width) or width <= 0.0:
            continue
        found.moved.append(abs(one.mean() - other.mean()) / width)
        found.ends += [abs(lo - other_lo) / width, abs(hi - other_hi) / width]


def nested(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return nested R-hat of answers and of rows' log masses, superchains begun in two ways under one structure."""
    post = bj.fit(task.train, n_structures=1, seed=SEEDS[0], progress=False, **NESTED)
    groups = np.arange(post.n_chain) % 2
    asked = [np.asarray(QUERIES[k].ask(post, pair)).reshape(post.n_chain, post.n_draw) for k, pair in questions(task)]
    rows = task.train.take(np.arange(min(N_ROW, task.train.n_row)))
    return nested_rhat(np.stack(asked, axis=-1), groups), nested_rhat(post.log_mass(rows).to_numpy(), groups)


def line(name: str, found: Found) -> str:
    """Return what is shown of fits of one kind."""
    moved, ends = (np.quantile(values, 0.95) for values in (found.moved, found.ends))
    held = f"{np.mean(found.held):.3f} of {len(found.held)}" if found.held else "-"
    told = f"{np.mean(found.told):.2f}" if found.told else "-"
    return f"{name:<26}{moved:>9.2f}{told:>7}{ends:>7.2f}{np.median(found.error):>10.2f}{held:>16}{found.seconds:>9.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and print it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.repeatability", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds abda/ and abda_synthetic/")
    parser.add_argument("--tables", nargs="*", default=TABLES, help="of abda/")
    parser.add_argument("--synthetic", type=int, default=14, help="how many synthetic tables, small ones first")
    parser.add_argument("--pairs", type=int, default=8, help="pairs of columns asked about in each table")
    parser.add_argument("--structures", nargs="+", type=int, default=[STRUCTURES, 1], help="kinds of fits")
    parser.add_argument("--no-nested", action="store_true", help="leave T2 out")
    chosen = parser.parse_args(arguments)
    _experiment(chosen, print)
    return 0


def _experiment(chosen: argparse.Namespace, show: Callable[[str], None]) -> None:
    paths = sorted((Path(chosen.data) / "abda_synthetic").glob("*.npz"), key=table_size)[: chosen.synthetic]
    tasks = {"synthetic": [task for path in paths if (task := synthetic_task(path, chosen.pairs)) is not None]}
    tasks |= {name: [abda_task(chosen.data, name, chosen.pairs)] for name in chosen.tables}
    show(f"{'structures, tables':<26}{'T1 moved':>9}{'told':>7}{'ends':>7}{'T3 nats':>10}{'T4 held':>16}{'CPU s':>9}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, group in tasks.items():
            for count in chosen.structures:
                found = Found()
                for task in group:
                    repeat(task, found, {"n_structures": count})
                if found.moved:
                    show(line(f"{count}, {name} ({len(group)})", found))
        if chosen.no_nested:
            return
        for name in chosen.tables:
            answers, rows = nested(tasks[name][0])
            show(
                f"T2 {name}: nested R-hat of answers {np.quantile(answers, 0.95):.3f} (95 %), of rows' log mass "
                f"{np.median(rows):.3f} (median), {np.quantile(rows, 0.95):.3f} (95 %)"
            )


if __name__ == "__main__":
    run(main)
