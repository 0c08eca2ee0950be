"""The experiments of the paper on joint probability trees.

    python -m tests.papers.jpt --data DIR [--parts tables curve digits flights saving] [--tables iris abalone]

Reference: Nyga, Picklum, Schierenbeck and Beetz (2023). Joint Probability Trees. arXiv:2302.07167, Tables 1 to 3 and
Figure 3.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import bayesjpt as bj
from bayesjpt.circuit.arrays import PRODUCT, Circuit
from bayesjpt.errors import BayesjptError, BayesjptWarning
from bayesjpt.families import registry
from bayesjpt.posterior.draws import Posterior
from bayesjpt.structure.jpt import JPT_MIN_ROWS
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table
from tests.papers import jpt_curve, jpt_predict
from tests.papers.jpt_data import FLIGHTS, PAPER, SHARES, TABLES, Split, read_texts, split_of
from tests.papers.measures import log_of_mean
from tests.papers.programs import run

SPLITS = 5
DRAWS, TUNE, CHAINS = 20, 20, 2


@dataclass(frozen=True)
class Settings:
    """How every tree is made and fitted; `validation` is the share of rows that prune it."""

    draws: int = DRAWS
    tune: int = TUNE
    chains: int = CHAINS
    validation: float = 0.0


@dataclass(frozen=True)
class Scores:
    """What one tree says of one split; nats per row.

    Parameters
    ----------
    n_leaf : int
        Of the tree.
    train, test : float
        Mean log density, over draws before the logarithm, in the table's units.
    mass : float
        Likewise of the recorded cells, test rows.
    zero : float
        Share of test rows with density 0 under some draw.
    bare_train, bare_test, bare_zero : float
        Of the tree whose leaves hold nothing but quantiles, labels and atoms, at the learner's estimate: densities
        without rows of density 0, and the share of test rows with 0.
    """

    n_leaf: int
    train: float
    test: float
    mass: float
    zero: float
    bare_train: float
    bare_test: float
    bare_zero: float


def bare(column: Column) -> Sequence[registry.Family]:
    """Return the paper's only distribution of a column: quantiles of numbers, shares of labels; and atoms."""
    return registry.dictionary(replace(column, families=("categorical" if column.base == "category" else "quantile",)))


def n_tree_leaves(circuit: Circuit) -> int:
    return max(int((circuit.kind == PRODUCT).sum()), 1)


def fit(train: Table, min_rows: float, seed: int, settings: Settings) -> Posterior:
    """Return the posterior of a hard tree."""
    return bj.fit(
        train,
        learner="jpt",
        n_structures=1,
        min_rows=min_rows,
        validation=settings.validation,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=1,
        seed=seed,
        progress=False,
    )


def score(split: Split, share: float, settings: Settings, seed: int) -> Scores:
    """Return the scores of our tree and of the paper's."""
    post = fit(split.train, share, seed, settings)
    test = post.log_density(split.test).to_numpy()
    circuit = bj.learn_jpt(
        split.train,
        np.random.default_rng(seed),
        min_rows=share,
        validation=settings.validation,
        dictionary=bare,
    )
    estimate = Posterior.from_circuit(circuit, split.train.schema)
    theirs = [log_of_mean(estimate.log_density(rows).to_numpy()) for rows in split]
    return Scores(
        n_leaf=n_tree_leaves(post.circuit),
        train=float(log_of_mean(post.log_density(split.train).to_numpy()).mean()),
        test=float(log_of_mean(test).mean()),
        mass=float(log_of_mean(post.log_mass(split.test).to_numpy()).mean()),
        zero=float(np.isneginf(test).any(axis=(0, 1)).mean()),
        bare_train=_mean_where_finite(theirs[0]),
        bare_test=_mean_where_finite(theirs[1]),
        bare_zero=float(np.isneginf(theirs[1]).mean()),
    )


def _mean_where_finite(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if kept.size else np.nan


def run_table(name: str, directory: str, n_split: int, settings: Settings, show: Callable[[str], None]) -> None:
    """Show the scores of a table at every size of leaf, means over random splits."""
    frame = read_texts(directory, name)
    splits = []
    for seed in range(n_split):
        test = np.random.default_rng(seed).permutation(len(frame))[: len(frame) // 10]
        splits.append(split_of(frame, test))
    columns = splits[0].train.n_column
    show(f"\n{name}: {len(frame)} rows, {len(frame) // 10} of them for testing, {columns} of {frame.shape[1]} columns")
    show(HEADER)
    for position, share in enumerate(SHARES):
        began = time.perf_counter()
        scores = [score(split, share, settings, seed) for seed, split in enumerate(splits)]
        mean = {key: _mean_where_finite(np.array([getattr(one, key) for one in scores])) for key in SCORES}
        paper = PAPER.get(name, [None] * len(SHARES))[position]
        show(
            f"{share:>6.0%}{mean['n_leaf']:>8.1f}{mean['train']:>9.2f}{mean['test']:>9.2f}{mean['mass']:>9.2f}"
            f"{mean['zero']:>7.1%} |{mean['bare_train']:>9.2f}{mean['bare_test']:>9.2f}{mean['bare_zero']:>7.1%} |"
            + (f"{paper.train:>9.2f}{paper.test:>9.2f}{paper.n_zero:>7.0%}" if paper else f"{'-':>25}")
            + f"{time.perf_counter() - began:>8.1f}"
        )


SCORES = tuple(Scores.__dataclass_fields__)
HEADER = (
    f"{'':>6}{'':>8}{'default: density':^18}{'':>9}{'':>7} |{'bare: density':^18}{'':>7} |{'printed: density':^18}\n"
    f"{'least':>6}{'leaves':>8}{'train':>9}{'test':>9}{'mass':>9}{'zero':>7} |{'train':>9}{'test':>9}{'zero':>7} |"
    f"{'train':>9}{'test':>9}{'zero':>7}{'seconds':>8}"
)

PARTS = ("tables", "curve", "digits", "flights", "saving")
N_SAMPLE = 200
"""Rows that are drawn from each fit in the part `saving`."""


def run_saving(directory: str, show: Callable[[str], None]) -> None:
    """Fit a hard tree to every table of uci/ as it is; draw rows, save, load, and show that nothing changed."""
    show("\nevery table, 2 chains of 5 sweeps after 5: log densities under the fit that was saved and loaded")
    show(f"{'':>32}{'rows':>9}{'columns':>9}{'leaves':>8}{'drawn':>9}{'recorded':>10}{'zero':>6}{'seconds':>9}")
    for path in sorted(Path(directory, "uci").glob("*.csv*")):
        began = time.perf_counter()
        table = bj.read_table(path)
        post = fit(table, JPT_MIN_ROWS, 1, Settings(draws=5, tune=5))
        drawn = post.sample(N_SAMPLE, rng=np.random.default_rng(1), recorded=False)
        with tempfile.TemporaryDirectory() as folder:
            post.save(Path(folder, "fit.nc"))
            loaded = bj.load(Path(folder, "fit.nc"))
        recorded = table.take(range(min(table.n_row, 2_000)))
        densities = [loaded.log_density(rows).to_numpy() for rows in (drawn, recorded)]
        if not np.array_equal(densities[0], post.log_density(drawn).to_numpy()):
            raise BayesjptError("densities that saving changed")
        zero = sum(int((~np.isfinite(found)).any(axis=(0, 1)).sum()) for found in densities)
        means = "".join(f"{log_of_mean(found).mean():>{w}.2f}" for found, w in zip(densities, (9, 10), strict=True))
        size = f"{table.n_row:>9,}{table.n_column:>9}{n_tree_leaves(post.circuit):>8}"
        show(f"{path.name:>32}{size}{means}{zero:>6}{time.perf_counter() - began:>9.1f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for and print them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.jpt", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds uci/ and flights/")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS[:3], help="%(default)s")
    parser.add_argument("--tables", nargs="+", default=TABLES, help="of uci/, for Table 3")
    parser.add_argument("--flights", nargs="+", choices=FLIGHTS, default=FLIGHTS)
    parser.add_argument("--splits", type=int, default=SPLITS, help="random splits of Table 3, and draws of the curve")
    parser.add_argument("--folds", type=int, default=jpt_predict.FOLDS, help="of the flights")
    parser.add_argument("--draws", type=int, default=DRAWS, help="kept sweeps a chain")
    parser.add_argument("--tune", type=int, default=TUNE, help="burn-in sweeps a chain")
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--validation", type=float, default=0.0, help="share of training rows that prune the tree")
    parser.add_argument("--picture", type=Path, help="file for the images of the digits, .svg or .png")
    chosen = parser.parse_args(arguments)
    settings = Settings(chosen.draws, chosen.tune, chosen.chains, chosen.validation)
    pruned = f", pruned by {settings.validation:.0%} of the rows" if settings.validation else ""
    print(f"hard trees{pruned}; {settings.chains} chains of {settings.tune} burn-in and {settings.draws} kept sweeps")
    with_settings = partial(fit, settings=settings)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesjptWarning)  # constant columns, unseen labels, few draws
        for part in chosen.parts:
            if part == "tables":
                for name in chosen.tables:
                    run_table(name, chosen.data, chosen.splits, settings, print)
            elif part == "curve":
                jpt_curve.run_curve(chosen.splits, with_settings, print)
            elif part == "saving":
                run_saving(chosen.data, print)
            elif part == "digits":
                jpt_predict.run_digits(chosen.data, chosen.picture, with_settings, print)
            else:
                for name in chosen.flights:
                    jpt_predict.run_flights(name, chosen.data, chosen.folds, with_settings, print)
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    run(main)
