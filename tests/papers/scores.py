"""Held-out mass of ABDA's tables with bayesjpt's defaults, beside lace, independent columns and ABDA's dictionary.

    python -m tests.papers.scores --data DIR [--tables abalone wine] [--seeds 3] [--lace-python PATH]

Reference: Vergari, Molina, Peharz, Ghahramani, Kersting, Valera (2019). Automatic Bayesian Density Analysis. AAAI,
section 6 (tables and split).
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np

from tests.papers import lace_peer, measures
from tests.papers.abda_data import read_data, table_names
from tests.papers.contestants import (
    Model,
    Settings,
    Task,
    fit_abda,
    fit_independent,
    fit_lace,
    fit_ours,
    make_task,
    with_even_cells,
)
from tests.papers.programs import run

OURS, LACE, INDEPENDENT, ABDA = "bayesjpt", "lace", "independent columns", "ABDA's dictionary"
EVEN = "even cells"
"""Ours asked for cells of one width a column: what it gains on peers without cells of favourite values."""

SEEDS = 3


@dataclass(frozen=True)
class Scores:
    """What a model gives to test rows, nats.

    Parameters
    ----------
    mass, mean_of_log, density, narrow, wide : float64 (n_row,)
        Log of mean mass; mean of log mass; log of mean density; log of mean mass of cells a tenth and ten times as wide
        (few draws).
    parts, alone : float64 (n_column, n_row)
        What the columns contribute to the mass, in the order of the table, and the mass of each cell by itself (few
        draws).
    n_impossible : int
        Rows of mass zero under some draw.
    processor_seconds, size, n_unknown : float
        As of the model.
    r_hat, n_effective : float
        Of the log mass of rows (`measures.mixing`).
    """

    mass: np.ndarray
    mean_of_log: np.ndarray
    density: np.ndarray
    narrow: np.ndarray
    wide: np.ndarray
    parts: np.ndarray
    alone: np.ndarray
    n_impossible: float
    processor_seconds: float
    size: float
    n_unknown: float
    r_hat: float
    n_effective: float


def score(model: Model, observed: np.ndarray) -> Scores:
    """Return the scores of test rows, of which the cells observed, bool (n_column, n_row), count."""
    mass = model.mass(1.0, False)(observed)
    narrow, wide = (measures.log_of_mean(model.mass(factor, True)(observed)) for factor in measures.SENSITIVITY)
    return Scores(
        mass=measures.log_of_mean(mass),
        mean_of_log=measures.mean_of_log(mass),
        density=measures.log_of_mean(model.density(observed)),
        narrow=narrow,
        wide=wide,
        parts=measures.contributions(model.mass(1.0, True), observed),
        alone=measures.alone(model.mass(1.0, True), observed),
        n_impossible=measures.n_impossible(mass),
        processor_seconds=model.processor_seconds,
        size=model.size,
        n_unknown=model.n_unknown,
        **measures.mixing(mass)._asdict(),
    )


def mean_of_seeds(scores: Sequence[Scores]) -> Scores:
    """Return the mean of each score over seeds, row by row."""
    return Scores(**{f.name: np.mean([getattr(one, f.name) for one in scores], axis=0) for f in fields(Scores)})


# --- what is shown


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Return ours less theirs with its standard error, in bold where it is below 0 by more than two of them."""
    pair = measures.paired(ours, theirs)
    text = f"{pair.difference:+.3f} ± {pair.error:.3f}"
    return f"**{text}**" if pair.difference < -2.0 * pair.error else text


def model_rows(scores: Mapping[str, Scores], repeated: np.ndarray) -> list[list[str]]:
    """Return a line of text for every model; differences are ours less the model's."""
    ours = scores[OURS]
    rows = []
    for name, one in scores.items():
        split = measures.split_score(one.parts, repeated)
        beside = name != OURS
        rows.append(
            [
                name,
                f"{one.mass.mean():.3f}",
                difference(ours.mass, one.mass) if beside else "",
                f"{one.mean_of_log.mean():.3f}",
                f"{one.density.mean():.3f}",
                f"{split.repeated:.3f} / {split.other:.3f}",
                difference(ours.narrow, one.narrow) if beside else "",
                difference(ours.wide, one.wide) if beside else "",
                f"{one.n_impossible:g}",
                f"{one.size:.1f}",
                f"{one.processor_seconds:.1f}",
                "" if np.isnan(one.r_hat) else f"{one.r_hat:.2f}, {one.n_effective:.0f}",
            ]
        )
    return rows


MODEL_HEADER = (
    "model", "mass", "ours less it", "mean of log", "density", "mass: repeated / other values", "at r/10", "at 10 r",
    "impossible", "parts", "processor s", "R-hat, effective draws",
)  # fmt: skip


def column_rows(task: Task, scores: Mapping[str, Scores], other: str) -> list[list[str]]:
    """Return a line of text for every column, ours against another model."""
    ours, theirs = scores[OURS], scores[other]
    return [
        [
            f"x{column}",
            f"{task.resolution[column]:g}",
            f"{ours.parts[column].mean():.3f}",
            difference(ours.parts[column], theirs.parts[column]),
            f"{ours.alone[column].mean():.3f}",
            difference(ours.alone[column], theirs.alone[column]),
        ]
        for column in range(len(ours.parts))
    ]


def run_table(
    task: Task, fits: Mapping[str, Callable[[Task, int], Model]], seeds: int, show: Callable[[str], None]
) -> dict[str, Scores]:
    """Show and return the mean scores of each model over seeds."""
    data, observed = task.data, ~np.isnan(task.rows.T)
    show(
        f"\n### {data.name}: {len(data.train)} training rows, {len(task.rows)} scored, {observed.shape[0]} columns; "
        f"rows left out: none ({int((~observed).sum())} missing cells, summed out)\n"
    )
    found: dict[str, list[Scores]] = {}
    for name, fit in fits.items():
        for seed in range(seeds):
            model = fit(task, seed)
            found.setdefault(name, []).append(score(model, observed))
            if name == OURS:
                found.setdefault(EVEN, []).append(score(with_even_cells(model, task), observed))
    scores = {name: mean_of_seeds(of_seeds) for name, of_seeds in found.items()}
    by_seed = {name: " ".join(f"{one.mass.mean():.3f}" for one in of_seeds) for name, of_seeds in found.items()}
    repeated = measures.repeated_cells(data.train, task.rows)
    show(markdown(MODEL_HEADER, model_rows(scores, repeated)))
    if seeds > 1:
        show("\nMass by seed: " + "; ".join(f"{name} {texts}" for name, texts in by_seed.items()))
    for name, one in scores.items():
        if one.n_unknown:
            show(f"\n{one.n_unknown:g} cells would stop {name} (labels, constants); they count as certain there.")
    show("")
    other = LACE if LACE in scores else INDEPENDENT
    header = ("column", "r", "given those before", f"less {other}'s", "alone", f"less {other}'s")
    show(markdown(header, column_rows(task, scores, other)))
    return scores


def summary(scores: Mapping[str, Mapping[str, Scores]]) -> str:
    """Return the mass of every model on every table."""
    others = [name for name in next(iter(scores.values())) if name != OURS]
    beside = [name for name in others if name == LACE]
    header = ["table", "mass", *(f"less {name}" for name in others), *(f"{EVEN} less {name}" for name in beside)]
    fitted = [OURS, *(name for name in others if name != EVEN)]
    header.append(f"processor s: {', '.join(fitted)}")
    rows = []
    for table, models in scores.items():
        ours = models[OURS]
        seconds = ", ".join(f"{one.processor_seconds:.1f}" for one in (models[name] for name in fitted))
        differences = [difference(ours.mass, models[name].mass) for name in others]
        differences += [difference(models[EVEN].mass, models[name].mass) for name in beside]
        rows.append([table, f"{ours.mass.mean():.3f}", *differences, seconds])
    return markdown(header, rows)


def option(text: str) -> tuple[str, int | float | str]:
    """Return the name and the value of an option of `bj.fit` or its learner.

    Examples
    --------
    >>> option("min_rows=0.02"), option("min_rows=50"), option("type_prior=columns")
    (('min_rows', 0.02), ('min_rows', 50), ('type_prior', 'columns'))

    Raises
    ------
    ValueError
        For text that is not NAME=VALUE.
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(text)
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, kind(value)
    return name, value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tables that were asked for and print them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.scores", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds abda/")
    parser.add_argument("--tables", nargs="+", help="of abda/ (all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="fits of each model")
    parser.add_argument("--chains", type=int, help="of our models, as those of the next two; defaults of a fit")
    parser.add_argument("--draws", type=int, help="kept sweeps a chain")
    parser.add_argument("--tune", type=int, help="burn-in sweeps a chain")
    parser.add_argument("--options", nargs="+", type=option, default=[], help="of our fit, such as min_rows=0.02")
    parser.add_argument("--part", choices=("test", "valid"), default="test", help="rows that are scored")
    parser.add_argument("--lace-python", type=Path, help="an interpreter that has lace; without it lace is left out")
    parser.add_argument("--lace-chains", type=int, default=4)
    parser.add_argument("--lace-iterations", type=int, default=100, help="of its sams kernel")
    chosen = parser.parse_args(arguments)
    settings = Settings(chosen.chains, chosen.draws, chosen.tune, dict(chosen.options))
    fits: dict[str, Callable[[Task, int], Model]] = {OURS: lambda task, seed: fit_ours(task, settings, seed)}
    if chosen.lace_python:
        peer = lace_peer.Settings(chosen.lace_python, chosen.lace_chains, chosen.lace_iterations)
        fits[LACE] = lambda task, seed: fit_lace(task, peer, seed)
        print(f"lace: sams kernel, {peer.n_state} chains of {peer.n_iteration} iterations")
    fits[INDEPENDENT] = lambda task, seed: fit_independent(task, settings, seed)
    fits[ABDA] = lambda task, seed: fit_abda(task, settings, seed)
    print(
        f"ours: {settings.chains or 'default'} chains of {settings.tune or 'default'} burn-in and "
        f"{settings.draws or 'default'} kept sweeps"
        f"{''.join(f', {key} {value}' for key, value in chosen.options)}; {chosen.seeds} seeds; {chosen.part} rows; "
        "nats per row; ±: standard error over rows, paired"
    )
    began = time.perf_counter()
    scores: dict[str, dict[str, Scores]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns, unseen labels, few draws
        for name in chosen.tables or table_names(chosen.data):
            task = make_task(read_data(chosen.data, name), chosen.part)
            scores[name] = run_table(task, fits, chosen.seeds, partial(print, flush=True))
    print(f"\n### All tables\n\n{summary(scores)}\n\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    run(main)
