"""ABDA's density experiment on its own splits, once with the paper's dictionary and priors, once with our defaults.

    python -m tests.papers.abda --data DIR --table abalone [--transductive [--lace-python PATH]]

Reference: Vergari, Molina, Peharz, Ghahramani, Kersting, Valera (2019). Automatic Bayesian Density Analysis. AAAI,
section 6 and Table 1.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from arviz_stats.base import array_stats

import bayesjpt as bj
from bayesjpt.circuit.arrays import LIKELIHOOD
from bayesjpt.errors import BayesjptWarning
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.type_shares import type_shares
from bayesjpt.table.table import Table
from tests.papers import lace_peer, measures, programs, transductive
from tests.papers.abda_data import ALPHA, GAMMA, Data, our_tables, paper_schema, read_data, under_schema

MIN_ROWS = {"abalone": 417, "n2000_d4_seed1111": 100}
"""Rows at which the structure ends; a tenth of the whole table's elsewhere."""

THRESHOLD = 0.3
SWEEPS, SYNTHETIC_SWEEPS = 150, 300
SEEDS = 5
CHAINS = 2

TARGETS: dict[str, tuple[str, float]] = {
    "abalone": ("mean of log", 1.59),
    "n2000_d4_seed1111": ("log of mean", -6.25),
}
"""What the median over structure seeds is to reach under the paper's priors, nats per test row."""


@dataclass(frozen=True)
class Settings:
    """How every fit is made.

    Parameters
    ----------
    min_rows : int
    threshold : float
    tune, draws : int
        Burn-in sweeps and kept sweeps of each chain.
    chains : int
        Even ones begin at the learner's estimate, odd ones at random allocations.
    ours : dict
        What our reading is told of the structure; nothing unless the command line says so.
    """

    min_rows: int
    threshold: float = THRESHOLD
    tune: int = SWEEPS // 2
    draws: int = SWEEPS - SWEEPS // 2
    chains: int = CHAINS
    ours: Mapping[str, float] = field(default_factory=dict)

    def options(self, prior: str) -> dict[str, float]:
        """Return the options of `bj.fit` by which one reading's structure and weights differ from its defaults."""
        if prior == "default":
            return dict(self.ours)
        return {"min_rows": self.min_rows, "threshold": self.threshold, "gamma": GAMMA, "alpha": ALPHA}

    def sentence(self) -> str:
        """Return what `options` and the numbers of sweeps are, in words."""
        ours = ", ".join(f"{name} {value:g}" for name, value in self.ours.items()) or "defaults"
        return (
            f"the paper's reading: minimum rows {self.min_rows}, threshold {self.threshold}, gamma {GAMMA:g}, alpha "
            f"{ALPHA:g}; ours: {ours}; {self.chains} chains of {self.tune} burn-in and {self.draws} kept sweeps"
        )


@dataclass(frozen=True)
class Scores:
    """What one structure seed gives; densities and mass in nats per test row.

    Parameters
    ----------
    n_leaf : int
    mean_of_log : float
        Mean over kept draws and rows of the log density.
    by_chain : tuple of float
        The same, chain by chain.
    log_of_mean : float
        Mean over rows of the log of the density's mean over kept draws.
    log_of_mean_mass : float
        Likewise of the mass of the recorded cells: it means something only where the schema's resolution is that of
        the records, so not under `paper_schema`.
    n_impossible : int
        Test rows with density zero, or not a number, under some draw. No row is left out: one such row makes the
        averages infinite.
    share_ess, leaf_ess : float64 (n_entry,)
        Effective sample size per kept draw within a chain (mean over chains): of the likelihood shares per column, and
        of the likelihood weights of single leaves. Entries that never vary are left out.
    share_rhat : float64 (n_entry,)
        R-hat of the likelihood shares over chains; empty for one chain.
    """

    n_leaf: int
    mean_of_log: float
    by_chain: tuple[float, ...]
    log_of_mean: float
    log_of_mean_mass: float
    n_impossible: int
    share_ess: np.ndarray
    leaf_ess: np.ndarray
    share_rhat: np.ndarray


def fit_and_score(train: Table, test: Table, prior: str, settings: Settings, seed: int) -> Scores:
    """Return the scores of one structure, learned from training rows with this seed and asked for test rows.

    Parameters
    ----------
    prior : str
        ``abda`` or ``default``.
    """
    post = bj.fit(
        train,
        learner="mspn",
        n_structures=1,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=1,
        seed=seed,
        prior=prior,
        progress=False,
        **settings.options(prior),
    )
    return score(post, test)


def score(post: Posterior, test: Table) -> Scores:
    """Return densities of test rows and the mixing of type shares under a posterior."""
    log_density, log_mass = post.log_density(test).to_numpy(), post.log_mass(test).to_numpy()
    shares = type_shares(post).draws["likelihood_share"].to_numpy()
    edges = post.circuit.edges_of_kind(LIKELIHOOD)
    with np.errstate(invalid="ignore"):
        by_chain = log_density.mean(axis=(1, 2))
        log_of_mean = float(measures.log_of_mean(log_density).mean())
    return Scores(
        n_leaf=post.circuit.n_leaf,
        mean_of_log=float(by_chain.mean()),
        by_chain=tuple(by_chain.tolist()),
        log_of_mean=log_of_mean,
        log_of_mean_mass=float(measures.log_of_mean(log_mass).mean()),
        n_impossible=measures.n_impossible(log_density),
        share_ess=ess_per_draw(shares),
        leaf_ess=ess_per_draw(np.exp(post.params.log_weight[..., edges])),
        share_rhat=rhat(shares),
    )


def _varying(values: np.ndarray) -> np.ndarray:
    """Return (chain, draw, entry) of an array of draws, without entries that are constant within some chain."""
    values = values.reshape(*values.shape[:2], -1)
    return values[..., (np.ptp(values, axis=1) > 1e-12).all(axis=0)]


def ess_per_draw(values: np.ndarray) -> np.ndarray:
    """Return the bulk effective sample size within a chain, per draw, mean over chains, of (chain, draw, ...)."""
    values = _varying(values)
    if values.shape[1] < 4 or not values.shape[2]:
        return np.empty(0)
    chains = [np.atleast_1d(array_stats.ess(chain[None], chain_axis=0, draw_axis=1, method="bulk")) for chain in values]
    return np.mean(chains, axis=0) / values.shape[1]


def rhat(values: np.ndarray) -> np.ndarray:
    """Return split, rank-normalised R-hat of each entry of (chain, draw, ...); empty for one chain."""
    values = _varying(values)
    if values.shape[0] < 2 or values.shape[1] < 4 or not values.shape[2]:
        return np.empty(0)
    return np.atleast_1d(array_stats.rhat(values, chain_axis=0, draw_axis=1))


def run(data: Data, settings: Settings, seeds: int, show: Callable[[str], None]) -> dict[str, list[Scores]]:
    """Return the scores of each structure seed by prior, and show a line for each."""
    schema = paper_schema(data.train, data.discrete)
    readings = {
        "abda": (under_schema(schema, data.train), under_schema(schema, data.test)),
        "default": our_tables(data),
    }
    scores: dict[str, list[Scores]] = {}
    for prior, (train, test) in readings.items():
        show(f"\n{TITLES[prior]}")
        show(HEADER)
        scores[prior] = []
        for seed in range(seeds):
            one = fit_and_score(train, test, prior, settings, seed)
            scores[prior].append(one)
            chains = " ".join(f"{value:.3f}" for value in one.by_chain)
            show(_line(seed, one.n_leaf, [one], prior) + f"{one.n_impossible:>11}  {chains}")
        show(_line("median", "", scores[prior], prior))
        show(_mixing(scores[prior]))
    return scores


TITLES = {
    "abda": "The paper's priors (raw units) and dictionary; continuous or discrete is given",
    "default": "Our default priors; the schema is decided from the training rows",
}
HEADER = f"{'seed':>6}{'leaves':>8}{'mean of log':>13}{'log of mean':>13}{'mass':>10}{'impossible':>11}  by chain"


def _line(label: object, n_leaf: object, scores: Sequence[Scores], prior: str) -> str:
    mass = "-" if prior == "abda" else f"{median(scores, 'log_of_mean_mass'):.3f}"
    densities = f"{median(scores, 'mean_of_log'):>13.3f}{median(scores, 'log_of_mean'):>13.3f}"
    return f"{label!s:>6}{n_leaf!s:>8}{densities}{mass:>10}"


def median(scores: Sequence[Scores], name: str) -> float:
    """Return the median over structure seeds of one score."""
    return float(np.median([getattr(one, name) for one in scores]))


def _mixing(scores: Sequence[Scores]) -> str:
    lines = []
    for title, name in (("likelihood shares per column", "share_ess"), ("likelihood weights of leaves", "leaf_ess")):
        entries = np.concatenate([getattr(one, name) for one in scores])
        if entries.size:
            spread = f"median {np.median(entries):.3f}, least {entries.min():.3f}"
            lines.append(f"Effective sample size per draw within a chain, {title}: {spread} ({entries.size} entries)")
    entries = np.concatenate([one.share_rhat for one in scores])
    if entries.size:
        quantile = np.nanquantile(entries, 0.95)
        spread = f"median {np.nanmedian(entries):.3f}, 95 % {quantile:.3f}, worst {np.nanmax(entries):.3f}"
        lines.append(f"R-hat over chains, likelihood shares per column: {spread}")
    return "\n".join(lines)


def verdict(data: Data, scores: Sequence[Scores]) -> str:
    """Return one sentence on the target of a table, and the truth where it is known."""
    lines = []
    if data.true_density is not None:
        lines.append(f"Truth (the generating circuit's log density of the test rows): {data.true_density:.3f}")
    if data.name in TARGETS:
        name, target = TARGETS[data.name]
        value = median(scores, name.replace(" ", "_"))
        reached = "reached" if value >= target else "MISSED"
        lines.append(f"Target: median of the {name} >= {target:.2f} under the paper's priors: {value:.3f}, {reached}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and print it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.abda", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds abda/ and abda_synthetic/")
    parser.add_argument("--table", required=True, help="name of a table there, such as abalone or n2000_d4_seed1111")
    parser.add_argument(
        "--min-rows", type=int, help="rows at which structures end (the paper's reading: a tenth of all)"
    )
    parser.add_argument("--threshold", type=float, help=f"dependence that keeps columns together (there: {THRESHOLD})")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="structure seeds")
    parser.add_argument("--sweeps", type=int, help="sweeps a chain, burn-in included (150; 300 for synthetic tables)")
    parser.add_argument("--tune", type=int, help="burn-in sweeps (half of all)")
    parser.add_argument("--draws", type=int, help="kept sweeps (all after the burn-in)")
    parser.add_argument("--chains", type=int, default=CHAINS, help="chains a structure")
    parser.add_argument("--transductive", action="store_true", help="score and fill in hidden cells of all rows")
    parser.add_argument("--hidden", choices=transductive.SHARES, help="share of hidden cells (both)")
    parser.add_argument("--lace-python", type=Path, help="interpreter that has lace: it fills in the same cells")
    chosen = parser.parse_args(arguments)
    (_transductive if chosen.transductive else _experiment)(chosen, print)
    return 0


def _settings(chosen: argparse.Namespace, name: str, n_row: int, sweeps: int) -> Settings:
    sweeps = chosen.sweeps or sweeps
    tune = sweeps // 2 if chosen.tune is None else chosen.tune
    draws = max(sweeps - tune, 1) if chosen.draws is None else chosen.draws
    ours = {"min_rows": chosen.min_rows, "threshold": chosen.threshold}
    return Settings(
        min_rows=chosen.min_rows or MIN_ROWS.get(name, n_row // 10),
        threshold=THRESHOLD if chosen.threshold is None else chosen.threshold,
        tune=tune,
        draws=draws,
        chains=chosen.chains,
        ours={option: value for option, value in ours.items() if value is not None},
    )


def _experiment(chosen: argparse.Namespace, show: Callable[[str], None]) -> None:
    data = read_data(chosen.data, chosen.table)
    settings = _settings(chosen, data.name, data.n_row, SWEEPS if data.true_density is None else SYNTHETIC_SWEEPS)
    n_missing = int(np.isnan(data.test).sum())
    show(
        f"{data.name}: {len(data.train)} training and {len(data.test)} test rows, {data.train.shape[1]} columns "
        f"({int(data.discrete.sum())} discrete); rows left out: none ({n_missing} missing test cells, marginalised)"
    )
    show(f"{settings.sentence()}, every second one from random allocations")
    show("densities in nats per test row, in the table's units; mass: log of mean, of the recorded cells")
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BayesjptWarning)
        scores = run(data, settings, chosen.seeds, show)
    show(f"\n{verdict(data, scores['abda'])}".rstrip())
    for text in dict.fromkeys(str(entry.message) for entry in caught):
        show(f"Note: {text}")
    show(f"{time.perf_counter() - began:.0f} s")


def _transductive(chosen: argparse.Namespace, show: Callable[[str], None]) -> None:
    from rich.console import Console

    console = Console(width=200, highlight=False)
    lace = lace_peer.Settings(chosen.lace_python) if chosen.lace_python else None
    for share in (chosen.hidden,) if chosen.hidden else transductive.SHARES:
        data = transductive.read_masked(chosen.data, chosen.table, share)
        settings = _settings(chosen, data.name, len(data.values), SWEEPS)
        show(transductive.left_out(data))
        show(f"{settings.sentence()}; densities in nats per cell, in the table's units")
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scores = transductive.run(data, settings, chosen.seeds, console.print, lace)
        show(transductive.verdict(data, scores["abda"]))
        for text in dict.fromkeys(str(entry.message) for entry in caught):
            show(f"Note: {text}")
        show(f"{time.perf_counter() - began:.0f} s\n")


if __name__ == "__main__":
    programs.run(main)
