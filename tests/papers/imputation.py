"""A regression on a covariate with gaps: its slope by the model with missing cells as variables, and by others.

    python -m tests.papers.imputation --replications 20

Rows (x1, x2, y): y = x1 - x2 / 2 + noise, two sub-populations apart in x1 and x2; `--within` adds a slope of x2 on x1
within each of these, which a circuit of few leaves approximates by more sub-populations. A cell of x1 is missing at
random given x2 and y, .3 of them, so that complete cases are biased. Each contestant gives a 90 % interval for the
slope of x1: complete cases, and multiple imputation by scikit-learn's IterativeImputer (20 tables, Rubin's rules), by
least squares; and the posterior of a regression on a block with impute=True.
"""

from __future__ import annotations

import argparse
import logging
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import scipy.stats
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import bayesjpt as bj

SLOPE, LEVEL, MISSING, N_TABLE = 1.0, 0.9, 0.3, 20


def simulate(n_row: int, within: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows with gaps in x1, which depend on x2 and y."""
    group = rng.random(n_row) < 0.5
    centre = np.where(group, -1.5, 1.5)
    x1 = centre + rng.normal(0.0, 0.5, n_row)
    x2 = 0.7 * centre + within * (x1 - centre) + rng.normal(0.0, 0.7, n_row)
    y = SLOPE * x1 - 0.5 * x2 + rng.normal(0.0, 0.7, n_row)
    score = 2.0 * y + x2
    odds = score - np.quantile(score, 1.0 - MISSING)
    return pd.DataFrame(
        {"x1": np.where(rng.random(n_row) < scipy.special.expit(2.0 * odds), np.nan, x1), "x2": x2, "y": y}
    )


def least_squares(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the slope of x1 and its variance."""
    design = np.column_stack([np.ones(len(frame)), frame["x1"], frame["x2"]])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ frame["y"].to_numpy()
    residual = frame["y"].to_numpy() - design @ beta
    return float(beta[1]), float(inverse[1, 1] * residual @ residual / (len(frame) - 3))


def complete_cases(frame: pd.DataFrame, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return slope, lower and upper end, of the rows without gaps."""
    slope, variance = least_squares(frame.dropna())
    half = scipy.stats.norm.ppf(0.5 + 0.5 * LEVEL) * np.sqrt(variance)
    return slope, slope - half, slope + half


def iterative_imputer(frame: pd.DataFrame, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return the same of tables that IterativeImputer completed, pooled (Rubin 1987)."""
    found = []
    for _ in range(N_TABLE):
        imputer = IterativeImputer(sample_posterior=True, random_state=int(rng.integers(2**31)))
        found.append(least_squares(pd.DataFrame(imputer.fit_transform(frame), columns=frame.columns)))
    slopes, variances = np.array(found).T
    between = slopes.var(ddof=1) * (1.0 + 1.0 / N_TABLE)
    total = variances.mean() + between
    freedom = (N_TABLE - 1) * (total / between) ** 2
    half = scipy.stats.t.ppf(0.5 + 0.5 * LEVEL, freedom) * np.sqrt(total)
    return slopes.mean(), slopes.mean() - half, slopes.mean() + half


def model_of_gaps(frame: pd.DataFrame, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return the same of the posterior of a regression on a block with impute=True."""
    table = bj.as_table(frame[["x1", "x2"]])
    circuit = bj.learn_mspn(table, rng, min_rows=50)
    with pm.Model():
        x = bj.CircuitMixture("x", circuit, table, impute=True)
        slope, other, level = (pm.Normal(name, 0.0, 3.0) for name in ("slope", "other", "level"))
        pm.Normal("y", level + slope * x[:, 0] + other * x[:, 1], pm.HalfNormal("noise", 2.0), observed=frame["y"])
        idata: Any = pm.sample(
            draws=500, tune=500, chains=2, cores=1, random_seed=int(rng.integers(2**31)), progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    draws = idata["posterior"]["slope"].to_numpy().ravel()
    return draws.mean(), *np.quantile(draws, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL])


CONTESTANTS = {
    "complete cases": complete_cases,
    "IterativeImputer": iterative_imputer,
    "impute=True": model_of_gaps,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--within", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    found: dict[str, list] = {name: [] for name in CONTESTANTS}
    for replication in range(options.replications):
        frame = simulate(options.rows, options.within, np.random.default_rng([options.seed, replication]))
        for name, contestant in CONTESTANTS.items():
            found[name].append(contestant(frame, np.random.default_rng([options.seed, replication, 1])))
        print(replication + 1, *(f"{name} {answers[-1][0]:.3f}" for name, answers in found.items()), flush=True)
        if replication + 1 in (options.replications, 8):
            tell(found)


def tell(found: dict[str, list]) -> None:
    """Print each contestant's error and coverage."""
    for name, answers in found.items():
        slope, lower, upper = np.array(answers).T
        covered = ((lower <= SLOPE) & (upper >= SLOPE)).mean()
        print(
            f"{name:18} bias {slope.mean() - SLOPE:+.3f}  rmse {np.sqrt(((slope - SLOPE) ** 2).mean()):.3f}  "
            f"covered {covered:.2f}  width {(upper - lower).mean():.3f}"
        )


if __name__ == "__main__":
    main()
