"""NUTS and Gibbs sweeps on the same blocks: do they agree, and which gives more for its time?

    python -m tests.statistical.nuts_and_gibbs

prints, for four small tables, the largest z-score between label-invariant posterior means and the effective sample
size per second of both. Times are those of sampling, compilation left out.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass

import arviz_stats
import numpy as np
import pymc as pm
import xarray as xr

import bayesjpt as bj
from bayesjpt.circuit.paths import Condition
from bayesjpt.posterior.invariants import marginal_cdf
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.conftest import SEED

GAMMA, ALPHA = 2.0, 1.0
"""Weak priors: few rows, and chains that move between components."""
N_ROW = 12
N_FIXED = 6
"""Rows whose log density is compared."""

TABLES = {
    "real and positive": ((ex.REAL, ex.POSITIVE), ("normal", "gamma", "exponential")),
    "counts and labels": ((ex.COUNT, ex.LABEL), ("poisson", "geometric", "categorical")),
    "splines": ((ex.REAL, ex.LABEL), ("spline", "categorical")),
    "a hard tree": ((ex.REAL, ex.LABEL), ("normal", "categorical"), Condition(0, 1.0), Condition(1, np.nan, (0,))),
}
"""Columns, families, and the conditions of a tree; without these it is a mixture."""
SAMPLERS = {
    "nuts": {"draws": 1500, "tune": 1000, "target_accept": 0.95, "nuts_sampler": "pymc"},
    "gibbs": {"draws": 6_000, "tune": 300},
}
LONGER = {"counts and labels": {"nuts": {"draws": 3000}}}
"""Of tables on which trajectories turn at bounds of parameters: chains move between components less often."""
N_CHAIN = 2
LEAST_ESS = 50.0
"""Below it a Monte Carlo error is a guess."""
N_ATTEMPT = 3
"""Chains of other seeds are sampled where one has hardly moved, which is decided without a look at what they say."""
SMALLEST_SD = 1e-9
"""Quantities that vary less are constants: a column's only likelihood has share 1."""


@dataclass(frozen=True)
class Comparison:
    """What both samplers say of the same quantities.

    Parameters
    ----------
    z : float64 (n_quantity,)
        Differences of means in units of their Monte Carlo error.
    ess : dict from sampler to float64 (n_quantity,)
    seconds : dict from sampler to float
        Of sampling, as PyMC tells them; printed, and no test looks at them.
    divergences : int
        Of NUTS, after tuning.
    """

    z: np.ndarray
    ess: dict[str, np.ndarray]
    seconds: dict[str, float]
    divergences: int

    def rate(self, sampler: str) -> float:
        """Return the median effective sample size per second."""
        return float(np.median(self.ess[sampler])) / self.seconds[sampler]


def make_case(name: str) -> tuple[Table, object]:
    """Return the table of a comparison, some cells missing, and its circuit."""
    columns, families, *conditions = TABLES[name]
    table = ex.make_table(columns, N_ROW, np.random.default_rng([SEED, len(name)]), missing=0.1)
    if conditions:
        return table, ex.hard(table, *conditions, dictionary=ex.only(*families))
    return table, ex.mixture(table, dictionary=ex.only(*families))


def quantities(post, table: Table) -> np.ndarray:
    """Return float64 (n_chain, n_draw, n_quantity) that do not depend on how components are labelled."""
    parts = [
        post.log_density(table.take(range(N_FIXED))).to_numpy(),
        post.types().shares.draws["likelihood_share"].to_numpy(),
        np.asarray(marginal_cdf(post)),
    ]
    flat = np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=-1)
    return flat[..., flat.reshape(-1, flat.shape[-1]).std(axis=0) > SMALLEST_SD]


def ess_of(draws: np.ndarray) -> np.ndarray:
    """Return the effective sample size of the mean of each quantity."""
    data = xr.Dataset({"q": (("chain", "draw", "quantity"), draws)})
    return arviz_stats.ess(data, method="mean")["q"].to_numpy()


def compare(name: str) -> Comparison:
    """Return the comparison of both samplers on one table."""
    table, circuit = make_case(name)
    means, variances, ess, seconds, divergences = {}, {}, {}, {}, 0
    for sampler, usual in SAMPLERS.items():
        options = usual | LONGER.get(name, {}).get(sampler, {})
        with bj.build_model(circuit, table, gamma=GAMMA, alpha=ALPHA, transforms=sampler == "nuts") as model:
            settings = {"chains": N_CHAIN, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
            for attempt in range(N_ATTEMPT):
                idata = pm.sample(random_seed=SEED % 2**31 + attempt, **settings, **options)
                draws = quantities(bj.Posterior.from_idata(idata, model), table)
                ess[sampler] = ess_of(draws)
                if ess[sampler].min() > LEAST_ESS:
                    break
        means[sampler] = draws.mean(axis=(0, 1))
        variances[sampler] = draws.var(axis=(0, 1))
        seconds[sampler] = float(idata["posterior"].attrs["sampling_time"])
        if sampler == "nuts":
            divergences = int(idata["sample_stats"]["diverging"].sum())
    error = np.sqrt(sum(variances[sampler] / ess[sampler] for sampler in SAMPLERS))
    return Comparison((means["nuts"] - means["gibbs"]) / error, ess, seconds, divergences)


def main() -> None:
    """Print all comparisons."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    for name in TABLES:
        found = compare(name)
        rates = {sampler: found.rate(sampler) for sampler in SAMPLERS}
        print(f"{name}: {found.z.size} quantities, largest |z| {np.abs(found.z).max():.2f}")
        for sampler in SAMPLERS:
            print(
                f"  {sampler:6s} {found.seconds[sampler]:7.1f} s   effective sample size: median "
                f"{np.median(found.ess[sampler]):8.0f}, least {found.ess[sampler].min():7.0f}; "
                f"{rates[sampler]:8.1f} a second"
            )
        print(f"  Gibbs over NUTS: {rates['gibbs'] / rates['nuts']:.0f}; divergences of NUTS: {found.divergences}")


if __name__ == "__main__":
    main()
