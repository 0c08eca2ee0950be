"""A simulated regression with regimes: piecewise linear in three covariates, with noise that changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.stats


def simulate(seed: int, n_row: int) -> tuple[pd.DataFrame, pd.DataFrame, float]:
    """Return rows to fit, as many new ones, and the mean log density of the new ones under the truth."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3.0, 3.0, (2 * n_row, 3))
    mean = np.where(x[:, 0] > 1, 2 * x[:, 1], np.where(x[:, 0] > -1, 1 - x[:, 1], 3 + 0.5 * x[:, 2]))
    spread = np.where(x[:, 0] > 1, 0.2, np.where(x[:, 0] > -1, 1.0, 0.5))
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=mean + spread * rng.normal(size=2 * n_row))
    new = frame.iloc[n_row:]
    truth = float(scipy.stats.norm.logpdf(new["y"], mean[n_row:], spread[n_row:]).mean())
    return frame.iloc[:n_row], new, truth
