"""Members of the averages that `tests.papers.binary` compares: cutset networks and chains, and what they say of rows.

A network is grown and scored by its arrays, at the posterior mean of its weights. A chain yields, sweep by sweep, the
posterior mean of its weights given the rows' allocations; its last sweeps score rows.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt import defaults
from bayesjpt.circuit.trees import codes_of
from bayesjpt.fitting.boosting import best_share, mixed
from bayesjpt.kernels.networks import fill_scores, mean_log_weights
from bayesjpt.structure import hclt, hidden_gibbs, tree_sampling
from bayesjpt.structure.bins import bins_of
from bayesjpt.structure.chow_liu import Bins
from bayesjpt.structure.cutset import SELECTS
from bayesjpt.structure.distinct_rows import DistinctRows, distinct_rows
from bayesjpt.structure.label_networks import Growth, grow_network
from bayesjpt.table.table import Table

PARTS = ("train", "valid", "test")
TREE_ESS = 4.0
"""Imaginary rows by which edges of a mixture's trees are judged."""
ENSEMBLES = ("even", "bagged", "boosted")
CELL_SWEEPS = 5 * 10**7
"""Cells of a set times sweeps of a hidden tree; within `HIDDEN_SWEEPS`."""
HIDDEN_SWEEPS = (30, 200)
KEPT = 0.4
"""Share of the sweeps of a chain, its last, of which every second scores rows."""
SAMPLED = ("tree_mixture", "hclt")
LEAVES = ("chow_liu", "bernoulli")


@dataclass(frozen=True)
class Data:
    """A set: its three tables under one schema, and the share of test rows that stand verbatim in train."""

    train: Table
    valid: Table
    test: Table
    repeated: float

    @cached_property
    def bins(self) -> Bins:
        """The cells of train, as learners take them."""
        return bins_of(self.train)[0]

    @cached_property
    def codes(self) -> list[np.ndarray]:
        """The cells of train, valid and test, row by row."""
        return [np.ascontiguousarray(codes_of(part).T, np.uint8) for part in (self.train, self.valid, self.test)]

    @cached_property
    def rows(self) -> tree_sampling.Rows:
        """The rows of train, as sampled learners take them."""
        return tree_sampling.rows_of(self.bins, np.ones(self.bins.n_bin.size, bool))

    @cached_property
    def others(self) -> list[DistinctRows]:
        """Those of valid and test."""
        return [distinct_rows(bins_of(part)[0], self.rows.distinct.usual) for part in (self.valid, self.test)]


@dataclass(frozen=True)
class Setting:
    """A learner and its options."""

    learner: str
    options: dict[str, Any]

    def __str__(self) -> str:
        return ",".join(str(value) for value in self.options.values())


@dataclass
class Clock:
    """CPU seconds of learning, of fitting, and of scoring valid and test."""

    learn: float = 0.0
    fit: float = 0.0
    score: float = 0.0


@dataclass(frozen=True)
class Score:
    """What an average of members says of each row, in nats, and what it took; the weights of groups where stacked."""

    valid: np.ndarray
    test: np.ndarray
    clock: Clock = field(default_factory=Clock)
    weights: dict[str, float] = field(default_factory=dict)


def read_set(folder: Path, name: str) -> Data:
    """Return a set; each column has the labels 0 and 1, whether or not train shows both."""
    parts = []
    for part in PARTS:
        with gzip.open(folder / f"{name}.{part}.data.gz") as file:
            text = file.read()
        n_column = text.split(b"\n", 1)[0].count(b",") + 1
        signs = np.frombuffer(text, np.int8)
        parts.append((signs[(signs == ord("0")) | (signs == ord("1"))] - ord("0")).reshape(-1, n_column))
    names = [f"v{k}" for k in range(parts[0].shape[1])]
    frames = [
        pd.DataFrame({name: pd.Categorical.from_codes(own, ["0", "1"]) for name, own in zip(names, x.T, strict=True)})
        for x in parts
    ]
    train = bj.as_table(frames[0], kinds=dict.fromkeys(names, "category"), other=False)
    known = {row.tobytes() for row in parts[0]}
    repeated = float(np.mean([row.tobytes() in known for row in parts[2]]))
    valid, test = (bj.as_table(frame, schema=train.schema) for frame in frames[1:])
    return Data(train, valid, test, repeated)


def network(
    bins: Bins, setting: Setting, rng: np.random.Generator, parts: Sequence[np.ndarray], clock: Clock
) -> list[np.ndarray]:
    """Return the log densities of some rows' codes under a cutset network at the mean of its weights."""
    own = setting.options
    has_trees, ess = own.get("leaf", LEAVES[0]) == LEAVES[0], own["ess"]
    select, subspace = SELECTS.index(own["select"]), own.get("subspace", 1.0)
    began = time.process_time()
    # imaginary rows of the trees are those of `bj.learn_cutset(ess=)`, which makes the same network
    growth = Growth(select, has_trees, own["min_rows"], defaults.CUTSET_MIN_COLUMNS, ess, subspace)
    grown, count = grow_network(bins, growth, rng)
    clock.learn += time.process_time() - began
    began = time.process_time()
    log_weight = mean_log_weights(grown, count, ess)[None]
    found = []
    for codes in parts:
        out = np.empty((1, codes.shape[0]))
        fill_scores(grown, log_weight, codes, out)
        found.append(out[0])
    clock.score += time.process_time() - began
    return found


def taken(bins: Bins, rows: np.ndarray) -> Bins:
    """Return some rows of bins, sorted."""
    return Bins(np.ascontiguousarray(bins.code[:, np.sort(rows)]), bins.n_bin)


def networks(data: Data, setting: Setting, seed: int, ensemble: str, clock: Clock) -> Iterator[list[np.ndarray]]:
    """Yield the log densities of valid and test under one network, of all rows or a bootstrap sample of them."""
    rng, bins = np.random.default_rng(seed), data.bins
    if ensemble == "bagged":
        bins = taken(bins, rng.integers(data.train.n_row, size=data.train.n_row))
    yield network(bins, setting, rng, data.codes[1:], clock)


def boosted(data: Data, setting: Setting, seeds: Sequence[int]) -> Score:
    """Return the score of networks of which each is learned from the rows that those before find improbable."""
    clock = Clock()
    total: list[np.ndarray] = []
    for seed in seeds:
        rng, bins = np.random.default_rng(seed), data.bins
        if total:
            weight = np.exp(total[0].min() - total[0])
            n_row = data.train.n_row
            bins = taken(bins, rng.choice(n_row, n_row, p=weight / weight.sum()))
        found = network(bins, setting, rng, data.codes, clock)
        if not total:
            total = found
            continue

        share = best_share(total[0], found[0])
        total = [mixed(share, old, new) for old, new in zip(total, found, strict=True)]
    return Score(total[1], total[2], clock)


def chain(data: Data, setting: Setting, seed: int, sweeps: int, clock: Clock) -> Iterator[list[np.ndarray]]:
    """Yield the log densities of valid and test under each draw of a chain, `sweeps` long if of a mixture."""
    rng = np.random.default_rng(seed)
    rows, parts = data.rows, data.others
    log_density: Callable[[DistinctRows, Any], np.ndarray]
    if setting.learner == "hclt":
        n_sweep = int(np.clip(CELL_SWEEPS // rows.distinct.bins.code.size, *HIDDEN_SWEEPS))
        draws = hclt.run(rows.distinct, setting.options["n_states"], rng, n_sweep=n_sweep)
        log_density = hidden_gibbs.log_density
    else:
        n_sweep = sweeps
        states = tree_sampling.run(
            rows,
            setting.options["n_components"],
            rng,
            edges=setting.options["edges"],
            ess=TREE_ESS,
            n_sweep=n_sweep,
        )
        draws = (state.estimate for state in states)

        def log_density(part, draw):
            return draw.log_density(part)

    began = time.process_time()
    for number, draw in enumerate(draws, 1):
        clock.fit += time.process_time() - began
        began = time.process_time()
        if number > (1.0 - KEPT) * n_sweep and (n_sweep - number) % 2 == 0:
            yield [log_density(part, draw) for part in parts]
            clock.score += time.process_time() - began
            began = time.process_time()


def score(data: Data, setting: Setting, seeds: Sequence[int], ensemble: str, sweeps: int) -> Score:
    """Return the score of the even average of one member a seed, all of its draws."""
    is_sampled = setting.learner in SAMPLED
    if not is_sampled and ensemble == "boosted":
        return boosted(data, setting, seeds)
    clock = Clock()
    total: list[np.ndarray] = []
    n_found = 0
    for seed in seeds:
        draws = (
            chain(data, setting, seed, sweeps, clock) if is_sampled else networks(data, setting, seed, ensemble, clock)
        )
        for found in draws:
            total = [np.logaddexp(*both) for both in zip(total, found, strict=True)] if total else found
            n_found += 1
    valid, test = (part - np.log(n_found) for part in total)
    return Score(valid, test, clock)
