"""How often 90 % intervals of ten queries hold what held-out rows say, with the structure learned, on ABDA's tables.

    python -m tests.papers.intervals --data DIR [--tables N] [--structures 4]

The generating parameters of ``DIR/abda_synthetic`` are not there, only rows. So a fit sees a tenth of each table's
rows, and the truth of a query is its value among the other nine tenths, which has a sampling error of its own. No
target: intervals are given the schema, and one or a few learned structures, and leave the rest of that uncertainty out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.defaults import STRUCTURES
from bayesjpt.errors import TableError
from bayesjpt.posterior.draws import Posterior
from tests.papers import sweeps
from tests.papers.programs import names_of, run

SHARE = 0.1
"""Rows that a fit sees, of all rows of a table."""
PAIRS = 4
SEED = 1
N_BOOTSTRAP = 200
LOWER, UPPER = 0.05, 0.95
CONTINUOUS = ("real", "pos")


@dataclass(frozen=True)
class Settings:
    """How every fit is made, and how much is asked of it; see `bayesjpt.fit`."""

    draws: int | None = None
    tune: int | None = None
    chains: int | None = None
    pairs: int = PAIRS
    seed: int = SEED
    structures: int = STRUCTURES


@dataclass(frozen=True)
class Pair:
    """Two columns, and what the queries ask of them.

    Parameters
    ----------
    name, other : str
        A column of numbers, and any other.
    continuous : bool
        Whether the first is: quantiles of counts jump, and are not asked.
    low, middle, high : float
        Quartiles of the first.
    label : float or None
        A code of the other, where it is a category.
    bound : float
        Median of the other, where it is of numbers.
    """

    name: str
    other: str
    continuous: bool
    low: float
    middle: float
    high: float
    label: float | None
    bound: float

    @property
    def event(self) -> bj.Event:
        """The event of the other column."""
        column = bj.col(self.other)
        return column == self.label if self.label is not None else column > self.bound

    def holds(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return bool (n_row,): whether the event of the other column holds."""
        values = rows[self.other]
        return values == self.label if self.label is not None else values > self.bound


@dataclass(frozen=True)
class Query:
    """One question, to a posterior and to rows.

    Parameters
    ----------
    text : str
    ask : callable
        (posterior, pair) to draws of the answer.
    count : callable
        (values of the first column, whether the other's event holds, pair) to the answer among these rows.
    jumps : bool
        Whether it is not asked of counts.
    """

    text: str
    ask: Callable[[Posterior, Pair], Any]
    count: Callable[[np.ndarray, np.ndarray, Pair], float]
    jumps: bool = False


def _x(pair: Pair) -> bj.Col:
    return bj.col(pair.name)


QUERIES = (
    Query("P(x <= median)", lambda p, c: p.probability(_x(c) <= c.middle), lambda x, y, c: np.mean(x <= c.middle)),
    Query("P(x > upper quartile)", lambda p, c: p.probability(_x(c) > c.high), lambda x, y, c: np.mean(x > c.high)),
    Query(
        "P(x <= median and Y)",
        lambda p, c: p.probability((_x(c) <= c.middle) & c.event),
        lambda x, y, c: np.mean((x <= c.middle) & y),
    ),
    Query(
        "P(x > upper quartile or Y)",
        lambda p, c: p.probability((_x(c) > c.high) | c.event),
        lambda x, y, c: np.mean((x > c.high) | y),
    ),
    Query(
        "P(Y | x > median)",
        lambda p, c: p.probability(c.event, _x(c) > c.middle),
        lambda x, y, c: np.mean(y[x > c.middle]),
    ),
    Query(
        "P(x <= lower quartile | Y)",
        lambda p, c: p.probability(_x(c) <= c.low, c.event),
        lambda x, y, c: np.mean(x[y] <= c.low),
    ),
    Query("E(x)", lambda p, c: p.expectation(c.name), lambda x, y, c: np.mean(x)),
    Query("E(x | Y)", lambda p, c: p.expectation(c.name, c.event), lambda x, y, c: np.mean(x[y])),
    Query("median of x", lambda p, c: p.quantile(0.5, c.name), lambda x, y, c: np.median(x), jumps=True),
    Query(
        "90 % quantile of x | Y",
        lambda p, c: p.quantile(0.9, c.name, c.event),
        lambda x, y, c: np.quantile(x[y], 0.9),
        jumps=True,
    ),
)


@dataclass(frozen=True)
class Trial:
    """One query of one pair of one table.

    Parameters
    ----------
    query : int
        Position in `QUERIES`.
    held : bool
        Whether the interval of the draws holds the answer among the held-out rows.
    held_with_error : bool
        The same of the draws with normal noise of the held-out answer's standard error added: what a posterior that is
        calibrated about the truth does in 90 % of cases.
    width_over_error : float
        Width of the interval in those standard errors.
    unbounded : bool
        Whether some draw's answer is not finite.
    """

    query: int
    held: bool
    held_with_error: bool
    width_over_error: float
    unbounded: bool


def interval(draws: np.ndarray) -> tuple[float, float]:
    """Return the ends of the equal-tailed 90 % interval, each of them a draw: infinite ones do not spread."""
    lo, hi = np.quantile(draws, (LOWER, UPPER), method="inverted_cdf")
    return float(lo), float(hi)


def judge(query: int, draws: np.ndarray, pair: Pair, rows: Mapping[str, np.ndarray], rng: np.random.Generator) -> Trial:
    """Return whether intervals hold the answer among rows; its standard error is that of 200 resamplings."""
    x, y, count = rows[pair.name], pair.holds(rows), QUERIES[query].count
    truth = count(x, y, pair)
    again = [count(x[index], y[index], pair) for index in rng.integers(0, x.size, (N_BOOTSTRAP, x.size))]
    error = float(np.std(again))
    lo, hi = interval(draws)
    noisy_lo, noisy_hi = interval(draws + error * rng.normal(size=draws.size))
    return Trial(
        query,
        held=bool(lo <= truth <= hi),
        held_with_error=bool(noisy_lo <= truth <= noisy_hi),
        width_over_error=(hi - lo) / error if error > 0.0 else np.inf,
        unbounded=not np.isfinite(draws).all(),
    )


def pairs_of(rows: Mapping[str, np.ndarray], types: Sequence[str], n: int, rng: np.random.Generator) -> list[Pair]:
    """Return n different pairs of a column of numbers and another, chosen at random, with bounds from these rows."""
    names = list(rows)
    possible = [(a, b) for a in range(len(names)) for b in range(len(names)) if a != b and types[a] != "cat"]
    found = []
    for number in rng.permutation(len(possible))[:n]:
        a, b = possible[number]
        low, middle, high = np.quantile(rows[names[a]], (0.25, 0.5, 0.75), method="inverted_cdf")
        codes, counts = np.unique(rows[names[b]], return_counts=True)
        label = float(codes[np.argmax(counts)]) if types[b] == "cat" else None
        bound = float(np.quantile(rows[names[b]], 0.5, method="inverted_cdf"))
        found.append(Pair(names[a], names[b], types[a] in CONTINUOUS, low, middle, high, label, bound))
    return found


def fit(values: np.ndarray, settings: Settings) -> Posterior:
    """Return the posterior of rows, float64 (n_row, n_column), under a schema and structure found from them.

    Columns that would be set aside as identifiers are kept.
    """
    frame = pd.DataFrame({f"x{k}": values[:, k] for k in range(values.shape[1])})
    table = bj.as_table(frame)
    if table.schema.set_aside:
        whole = {name: bool((frame[name] == frame[name].round()).all()) for name in frame}
        kinds = {aside.name: "integer" if whole[aside.name] else "real" for aside in table.schema.set_aside}
        table = bj.as_table(frame, kinds=kinds)
    return sweeps.fit(table, settings, n_structures=settings.structures)


def trials(path: Path, settings: Settings) -> tuple[list[Trial], int]:
    """Return the trials of one table, and how many queries were not asked: they jump, or their column is labels."""
    with np.load(path) as arrays:
        values = np.concatenate([arrays[part] for part in ("train", "valid", "test")])
        types = arrays["types"].tolist()
    if np.isnan(values).any():
        raise TableError(f"missing cells in {path.name!r}", "complete rows, on which to count answers")
    rng = np.random.default_rng(settings.seed)
    order = rng.permutation(len(values))
    n_fit = round(SHARE * len(values))
    post = fit(values[order[:n_fit]], settings)
    rows = {f"x{k}": values[order[n_fit:], k] for k in range(values.shape[1])}
    found, n_left = [], 0
    numbers = {column.name for column in post.schema if column.base != "category"}
    for pair in pairs_of(rows, types, settings.pairs, rng):
        for number, query in enumerate(QUERIES):
            if pair.name not in numbers or (query.jumps and not pair.continuous):
                n_left += 1
                continue
            draws = np.asarray(query.ask(post, pair)).ravel()
            found.append(judge(number, draws, pair, rows, rng))
    return found, n_left


def show_trials(found: Sequence[Trial], show: Callable[[object], None]) -> None:
    """Show the share of intervals that hold, query by query."""
    from rich.table import Table as RichTable

    table = RichTable(title="90 % intervals, Y an event of another column", title_justify="left")
    for header in ("query", "asked", "held", "held with sampling error", "median width / standard error", "unbounded"):
        table.add_column(header, justify="left" if header == "query" else "right")
    for number in (*range(len(QUERIES)), None):
        part = [one for one in found if number is None or one.query == number]
        if not part:
            continue
        held, with_error = (
            np.mean([getattr(one, name) for one in part]) for name in ("held", "held_with_error")
        )  # fmt: skip
        table.add_row(
            "all" if number is None else QUERIES[number].text,
            str(len(part)),
            f"{held:.2f}",
            f"{with_error:.2f} ± {np.sqrt(with_error * (1.0 - with_error) / len(part)):.2f}",
            f"{np.median([one.width_over_error for one in part]):.1f}",
            str(sum(one.unbounded for one in part)),
        )
    show(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and print it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.intervals", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds abda_synthetic/")
    parser.add_argument("--tables", type=int, help="how many tables, small ones first (all)")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs of columns asked about in each table")
    parser.add_argument("--draws", type=int, help="kept sweeps of each chain")
    parser.add_argument("--tune", type=int, help="burn-in sweeps")
    parser.add_argument("--chains", type=int, help="chains of each fit")
    parser.add_argument("--seed", type=int, default=SEED, help="of rows, pairs and fits")
    parser.add_argument("--structures", type=int, default=STRUCTURES, help="structures that each fit averages")
    chosen = parser.parse_args(arguments)
    _experiment(chosen, print)
    return 0


def table_size(path: Path) -> tuple[int, ...]:
    """Return rows, columns and seed of a synthetic table, by its name."""
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in path.stem.split("_"))


def _experiment(chosen: argparse.Namespace, show: Callable[[str], None]) -> None:
    from rich.console import Console

    names = names_of(chosen.data, "abda_synthetic/*.npz")
    paths = sorted((Path(chosen.data) / "abda_synthetic" / name for name in names), key=table_size)[: chosen.tables]
    settings = Settings(chosen.draws, chosen.tune, chosen.chains, chosen.pairs, chosen.seed, chosen.structures)
    show(
        f"{len(paths)} tables; a fit sees {SHARE:.0%} of the rows, the truth is the answer among the others, with its "
        f"sampling error; {settings.chains or 'default'} chains of {settings.tune or 'default'} burn-in and "
        f"{settings.draws or 'default'} kept sweeps, structures: {settings.structures}, "
        f"default learner and priors, seed {settings.seed}; "
        f"{settings.pairs} pairs of columns a table"
    )
    began = time.perf_counter()
    found: list[Trial] = []
    n_left = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for path in paths:
            own, left = trials(path, settings)
            found += own
            n_left += left
            share = np.mean([one.held_with_error for one in own]) if own else np.nan
            show(f"{path.stem}: {len(own)} asked, {share:.2f} held with sampling error")
    show_trials(found, Console(width=140, highlight=False).print)
    show(f"Not asked: {n_left} (quantiles of counts, which jump; numbers of columns that were read as labels)")
    for text in dict.fromkeys(str(entry.message) for entry in caught):
        show(f"Note: {text}")
    show(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    run(main)
