"""How good the probabilities of types are: log loss and accuracy, each table judged by weights fitted to the others.

    python -m tests.papers.type_scores --data DIR [--weights]

Types are judged as the command line does, from the learner's estimate of some rows; with ``--draws``, from a fit of
``--structures``. On the raw tables with documented types and on the type benchmark (its columns of the kind other left
out), beside the rule of 20 distinct values, calibrated on the other tables: how often each label had its answer. Tables
that hold the same data are left out together. ``--weights`` prints the weights that all tables give, which the package
holds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bayesjpt as bj
from bayesjpt.defaults import TYPE_ROWS, TYPE_STRUCTURES, TYPE_TUNE
from bayesjpt.fitting.for_types import estimate_for_types, fit_for_types
from bayesjpt.queries.type_evidence import NOTHING, Parts
from bayesjpt.queries.type_features import describe
from bayesjpt.queries.type_probability import column_features, judged
from bayesjpt.table.schema import Column
from tests.papers.programs import run
from tests.papers.sweeps import add_options
from tests.papers.type_data import (
    Label,
    LabelledTable,
    documented_tables,
    kind_of_type,
    simple_types,
    source_of,
    type_benchmark_tables,
)
from tests.papers.type_weights import TABLE_COLUMNS, Example, fit_weights

TYPES = ("real", "positive", "count", "ordinal", "nominal", "binary")
KINDS = ("numeric", "categorical")
CLIP = 1e-3
SMOOTHING = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Counts that each label has before any column is seen."""

N_BOOTSTRAP = 10_000


@dataclass(frozen=True)
class Judged:
    """One labelled column: what it shows, what the rule says of it, and whether it was set aside."""

    label: Label
    features: Mapping[str, Mapping[str, float]]
    column: Column
    rule: str
    is_aside: bool

    @property
    def accepted(self) -> frozenset[str]:
        """Types that are right, the defensible ones among them; those of its kind where no type is documented."""
        if self.label.type is not None:
            return frozenset((self.label.type, *self.label.also))
        return frozenset(name for name in (*TYPES, "interval") if kind_of_type(name) == self.label.kind)

    @property
    def strict(self) -> frozenset[str]:
        return self.accepted if self.label.type is None else frozenset([self.label.type])


class Calibration(NamedTuple):
    """How the rule's answers are counted: each table for as much, or each column."""

    smoothing: float
    by_table: bool


CALIBRATIONS = tuple(Calibration(each, by_table) for each in SMOOTHING for by_table in (False, True))
"""The rule is given whichever is best for it, in hindsight."""


@dataclass(frozen=True)
class Measure:
    """What is right: the documented type, one of the defensible ones too, or the kind."""

    title: str
    is_strict: bool
    of_kind: bool

    @property
    def words(self) -> tuple[str, ...]:
        return KINDS if self.of_kind else TYPES

    def truth(self, each: Judged) -> str:
        return each.label.kind if self.of_kind else str(each.label.type)

    def rule(self, each: Judged) -> str:
        return kind_of_type(each.rule) if self.of_kind else each.rule

    def right(self, each: Judged) -> frozenset[str]:
        """Types that are right."""
        return each.strict if self.is_strict else each.accepted

    def right_words(self, each: Judged) -> frozenset[str]:
        """Words of the measure that are right."""
        return frozenset([each.label.kind]) if self.of_kind else self.right(each)


STRICT = Measure("documented type", True, False)
ALSO = Measure("or also defensible", False, False)
KIND = Measure("numeric or categorical", False, True)


def described(table: LabelledTable, settings: argparse.Namespace) -> list[Judged]:
    """Return what the labelled columns of a table show, those of the kind other left out."""
    whole = bj.read_table(table.path)
    if settings.draws:
        sweeps = {"draws": settings.draws, "tune": settings.tune, "chains": settings.chains, "cores": 1}
        sweeps |= {"n_structures": settings.structures, "type_prior": settings.type_prior, "progress": False}
        post = fit_for_types(whole, n_rows=settings.max_rows, seed=settings.seed, **sweeps)
    else:
        post = estimate_for_types(whole, n_rows=settings.max_rows, seed=settings.seed)
    rules, parts = simple_types(table), Parts(post)
    found = []
    for label in table.labels:
        if label.kind == "other":
            continue
        is_aside = label.column not in post.schema.names
        if is_aside:
            column = _as_if_kept(table.path, label.column)
            features = describe(column).features
        else:
            position = post.schema.index(label.column)
            column = post.schema.columns[position]
            features = column_features(post, position, parts)[0]
        found.append(Judged(label, features, column, rules[label.column], is_aside))
    return found


def _as_if_kept(path: Path, name: str) -> Column:
    """Return the column that was set aside, as whole numbers if it holds them, and as labels otherwise."""
    try:
        read = bj.read_table(path, kinds={name: "integer"}).schema
        return read.columns[read.index(name)]
    except bj.errors.BayesjptError:
        return Column(name, "category", (0.0, np.inf), n_distinct=1000, dtype="text")


def by_rule(tables: Mapping[str, list[Judged]], name: str, measure: Measure, given: Calibration) -> list[np.ndarray]:
    """Return the calibrated rule's probabilities of the words of a measure for the columns of one table."""
    words = measure.words
    counts = {word: np.full(len(words), given.smoothing) for word in words}
    for other, columns in tables.items():
        if source_of(other) != source_of(name):
            for each in columns:
                weight = TABLE_COLUMNS / len(columns) if given.by_table else 1.0
                counts[measure.rule(each)][words.index(measure.truth(each))] += weight
    return [counts[measure.rule(each)] / counts[measure.rule(each)].sum() for each in tables[name]]


def losses(probabilities: Sequence[float]) -> float:
    """Return the mean log loss of the probabilities that were given to what is right."""
    return float(np.mean([-np.log(max(each, CLIP)) for each in probabilities]))


def bootstrap(difference: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Return the 2.5 and 97.5 % quantiles of the mean over resampled tables, and how often it is below zero."""
    rng = np.random.default_rng(seed)
    means = difference[rng.integers(difference.size, size=(N_BOOTSTRAP, difference.size))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975)), float((means < 0.0).mean())


def ours(tables: Mapping[str, list[Judged]]) -> dict[str, list[dict[str, float]]]:
    """Return the probabilities of every column, by weights fitted to the tables of other data."""
    found = {}
    for name, columns in tables.items():
        others = [own for other, own in tables.items() if source_of(other) != source_of(name)]
        weights = fit_weights([examples(own) for own in others])
        found[name] = [judged(each.column, each.features, NOTHING, weights).probabilities for each in columns]
    return found


def examples(columns: Sequence[Judged]) -> list[Example]:
    """Return what the weights of types are fitted to."""
    return [Example(each.features, (each.strict, each.accepted)) for each in columns]


def report(tables: dict[str, list[Judged]], found: Mapping, measure: Measure, seed: int, show: Callable) -> None:
    """Show accuracy and log loss of ours and of the rule, by table and macro over tables."""
    lines = np.array([_figures(name, columns, found[name], measure) for name, columns in tables.items()])
    rules = [
        [
            losses(
                [
                    sum(own[measure.words.index(word)] for word in measure.right_words(each))
                    for own, each in zip(by_rule(tables, name, measure, given), columns, strict=True)
                ]
            )
            for name, columns in tables.items()
        ]
        for given in CALIBRATIONS
    ]
    best = min(range(len(rules)), key=lambda k: float(np.mean(rules[k])))
    rule = np.array(rules[best])
    show(f"\n{measure.title:<24}{'columns':>8}{'accuracy':>10}{'rule':>8}{'log loss':>10}{'rule':>8}")
    for name, (n, accuracy, plain, loss), of_rule in zip(tables, lines, rule, strict=True):
        show(f"{name:<24}{n:>8.0f}{accuracy:>10.3f}{plain:>8.3f}{loss:>10.3f}{of_rule:>8.3f}")
    n, accuracy, plain, loss = lines[:, 0].sum(), *lines[:, 1:].mean(axis=0)
    show(f"{'macro':<24}{n:>8.0f}{accuracy:>10.3f}{plain:>8.3f}{loss:>10.3f}{rule.mean():>8.3f}")
    lo, hi, below = bootstrap(lines[:, 3] - rule, seed)
    chosen = CALIBRATIONS[best]
    show(
        f"log loss less the rule's {loss - rule.mean():+.3f}, over resampled tables {lo:+.3f} to {hi:+.3f}, below 0 in "
        f"{below:.3f}; the rule with {chosen.smoothing:g} counts before, by {'table' if chosen.by_table else 'column'}"
    )
    aside = [np.mean([each.is_aside for each in columns]) for columns in tables.values()]
    show(f"set aside, macro: {np.mean(aside):.3f} of the columns, judged as if they had been kept")


def _figures(name: str, columns: list[Judged], found: list[dict[str, float]], measure: Measure) -> tuple[float, ...]:
    """Return (columns, accuracy, accuracy of the plain rule, log loss) of one table."""
    given, hits = [], []
    for each, probabilities in zip(columns, found, strict=True):
        right = measure.right(each)
        given.append(sum(probabilities.get(word, 0.0) for word in right))
        hits.append(given[-1] > 0.5 if measure.of_kind else max(probabilities, key=probabilities.__getitem__) in right)
    plain = [measure.rule(each) in measure.right_words(each) for each in columns]
    return len(columns), float(np.mean(hits)), float(np.mean(plain)), losses(given)


def _show_wrong(tables: Mapping[str, list[Judged]], found: Mapping[str, list[dict]], show: Callable) -> None:
    show("\nColumns whose label, the defensible ones included, was given less than a third:")
    for name, columns in tables.items():
        for each, probabilities in zip(columns, found[name], strict=True):
            if sum(probabilities.get(t, 0.0) for t in each.accepted) < 1 / 3:
                told = ", ".join(f"{t} {p:.2f}" for t, p in sorted(probabilities.items(), key=lambda x: -x[1])[:3])
                show(f"  {name}, {each.label.column}: {each.label.shown}; {told}{' (set aside)' * each.is_aside}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit all tables, judge them and print what was found; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.type_scores", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds columns.json, its files and type_benchmark/")
    add_options(parser)
    parser.set_defaults(draws=0, tune=TYPE_TUNE, chains=1)
    parser.add_argument("--structures", type=int, default=TYPE_STRUCTURES)
    parser.add_argument("--max-rows", type=int, default=TYPE_ROWS, help="rows of each fit at most; schemas see all")
    parser.add_argument("--weights", action="store_true", help="print the weights that all tables give")
    settings = parser.parse_args(arguments)
    began = time.perf_counter()
    parts = []
    sources = documented_tables(settings.data), type_benchmark_tables(settings.data)
    for tables in sources:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant columns and the like
            parts.append({table.name: described(table, settings) for table in tables})
    documented, benchmark = parts
    n_column = [sum(len(own) for own in part.values()) for part in parts]
    aside = [sum(each.is_aside for own in part.values() for each in own) for part in parts]
    print(
        f"{len(documented)} tables, {n_column[0]} columns ({aside[0]} set aside, judged as if kept) and "
        f"{len(benchmark)} tables, {n_column[1]} columns ({aside[1]}); seed {settings.seed}"
    )
    found = ours({**documented, **benchmark})
    for measure, tables in ((STRICT, documented), (ALSO, documented), (KIND, benchmark)):
        report(tables, found, measure, settings.seed, print)
    _show_wrong({**documented, **benchmark}, found, print)
    if settings.weights:
        for name, value in fit_weights([examples(own) for own in (documented | benchmark).values()]).items():
            print(f'    "{name}": {value:.2f},')
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    run(main)
