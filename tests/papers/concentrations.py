"""The posterior of a concentration, drawn given the allocations and given the weights.

    python -m tests.papers.concentrations [--draws 1000] [--tune 500] [--seed 1]

prints for two sets of rows of the notebooks' abalone the mean and sd of alpha, its effective sample size within chains,
the autocorrelation of its logarithm, R-hat, and processor seconds. With 200 rows no weight comes near the smallest that
is kept, and both ways to draw have the same posterior; with 1,000 rows most weights do, and cut off there they bias
what is drawn given them.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import arviz_stats
import numpy as np
import pandas as pd
import pymc as pm

import bayesjpt as bj
from bayesjpt.model.gibbs_step import CircuitGibbs

TABLE = Path(__file__).resolve().parents[2] / "notebooks" / "data" / "abalone.csv"
N_CHAIN = 4
WAYS = ("given allocations", "given weights")


class Setting(NamedTuple):
    """Rows and columns of the table (all where none is named), options of the learner, and the prior of alpha."""

    n_row: int
    columns: tuple[str, ...]
    options: dict
    prior: Callable


SETTINGS = {
    "200 rows, 3 columns, LogNormal(log .3, .5)": Setting(
        200,
        ("length", "shell_weight", "rings"),
        {"min_rows": 0.4},
        lambda: pm.LogNormal("alpha", np.log(0.3), 0.5),
    ),
    "1,000 rows, 9 columns, HalfNormal(.5)": Setting(1_000, (), {}, lambda: pm.HalfNormal("alpha", 0.5)),
}


class Figures(NamedTuple):
    """What a chain says of alpha; the effective sample size is the sum of those of the chains."""

    mean: float
    sd: float
    ess: float
    autocorrelation: float
    r_hat: float
    error: float
    seconds: float


def make_model(setting: Setting) -> pm.Model:
    """Return a block over rows of the table with a random alpha."""
    frame = pd.read_csv(TABLE).sample(setting.n_row, random_state=0).reset_index(drop=True)
    table = bj.as_table(frame[list(setting.columns)] if setting.columns else frame)
    circuit = bj.learn_mspn(table, np.random.default_rng(1), **setting.options)
    with pm.Model() as model:
        bj.CircuitMixture("x", circuit, table, alpha=setting.prior())
    return model


def draws_of(model: pm.Model, way: str, *, draws: int, tune: int, seed: int) -> np.ndarray:
    """Return draws of alpha, (chain, draw)."""
    with model:
        step = CircuitGibbs()
        if way == "given weights":
            step = [pm.Slice([model["alpha"]]), CircuitGibbs([rv for rv in model.free_RVs if rv.name != "alpha"])]
        idata = pm.sample(
            draws,
            tune=tune,
            chains=N_CHAIN,
            cores=1,
            step=step,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return idata["posterior"]["alpha"].to_numpy()


def figures(draws: np.ndarray, seconds: float) -> Figures:
    """Return the Figures of draws, (chain, draw)."""
    log_alpha = np.log(draws)
    ess = np.array([float(arviz_stats.ess(chain[None])) for chain in log_alpha])
    autocorrelation = np.mean([np.corrcoef(chain[:-1], chain[1:])[0, 1] for chain in log_alpha])
    between = float(draws.mean(axis=1).std(ddof=1) / np.sqrt(len(draws)))
    within = float(np.sqrt((draws.var(axis=1) / ess).mean() / len(draws)))
    r_hat = float(arviz_stats.rhat(log_alpha))
    mean, sd = float(draws.mean()), float(draws.std())
    return Figures(mean, sd, float(ess.sum()), float(autocorrelation), r_hat, max(between, within), seconds)


def processor_seconds() -> float:
    """Return user seconds of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000, help="kept sweeps a chain")
    parser.add_argument("--tune", type=int, default=500, help="burn-in sweeps a chain")
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    print("| rows and prior | drawn | alpha | error | ESS | lag 1 | R-hat | s |", "| --- " * 8 + "|", sep="\n")
    for name, setting in SETTINGS.items():
        model = make_model(setting)
        for way in WAYS:
            start = processor_seconds()
            draws = draws_of(model, way, draws=settings.draws, tune=settings.tune, seed=settings.seed)
            f = figures(draws, processor_seconds() - start)
            print(
                f"| {name} | {way} | {f.mean:.4f} ± {f.sd:.4f} | {f.error:.4f} | {f.ess:.0f} of {draws.size} "
                f"| {f.autocorrelation:.2f} | {f.r_hat:.2f} | {f.seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
