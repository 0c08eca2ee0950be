"""How held-out rows are scored, the same for every model and every script of this folder.

**Mass** comes first: the log probability of the cell that a recorded value stands for, [(k - 1/2) r, (k + 1/2) r) for
the value k r of a column recorded to r; of integers and labels, of the value itself. It is at most 0, has no units, and
a narrow density on a repeated value cannot inflate it. The widths r are those of `resolutions`, fixed per table from
training rows. **Density** is what each model says of the value per unit; it is shown beside the mass and compares only
where values do not repeat.

Scores come as arrays (chain, draw, row) of logarithms, in nats. Models that know densities alone have masses all the
same: their density averaged over the cell, times its width, in closed form where there is one (mixtures of normals), by
`log_mass_by_averaging` elsewhere. No row is left out: one of probability zero makes an average infinite, and is counted
by `n_impossible`.

Knows nothing of tables on disk, of models, or of sampling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from arviz_stats.base import array_stats

Score = Callable[[np.ndarray], np.ndarray]
"""From bool (n_column, n_row), the cells that count, to log scores (chain, draw, row); other cells are summed out."""

SENSITIVITY = (0.1, 10.0)
"""Factors of the widths of cells under which masses are given again."""

MIXING_ROWS = 200
"""Rows whose log mass is watched for agreement of chains."""

REPEATED_SHARE = 0.05
"""Share of a column's training cells from which a value counts as repeated: 20 cells of a fine grid hold such shares
only where the column piles up."""


def log_of_mean(log_values: np.ndarray) -> np.ndarray:
    """Return float64 (n_row,), the log of the mean over chains and draws of (chain, draw, row): what a posterior says.

    Examples
    --------
    >>> np.exp(log_of_mean(np.log([[[0.2], [0.4]]]))).round(6).tolist()
    [0.3]
    """
    flat = _flat(log_values)
    return np.logaddexp.reduce(flat, axis=0) - np.log(len(flat))


def mean_of_log(log_values: np.ndarray) -> np.ndarray:
    """Return float64 (n_row,), the mean over chains and draws of the log: what its single draws say, on average."""
    with np.errstate(invalid="ignore"):
        return _flat(log_values).mean(axis=0)


class Mixing(NamedTuple):
    """How chains agree about held-out rows: 95 % quantile of R-hat, 5 % quantile of effective draws, over rows."""

    r_hat: float
    n_effective: float


def mixing(log_values: np.ndarray, n_row: int = MIXING_ROWS) -> Mixing:
    """Return how well chains agree about the first rows of (chain, draw, row).

    R-hat is split and rank-normalised, the effective sample size that of the bulk, over all chains (Vehtari and others,
    2021, Rank-normalization, folding, and localization). NaN for one chain or fewer than four draws. Rows that are the
    same under all draws agree, whatever the chains do, and are left out.
    """
    values = log_values[..., :n_row]
    values = values[..., np.ptp(values, axis=(0, 1)) > 0.0]
    if values.shape[0] < 2 or values.shape[1] < 4 or not values.shape[2]:
        return Mixing(np.nan, np.nan)
    r_hat = array_stats.rhat(values, chain_axis=0, draw_axis=1)
    n_effective = array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk")
    return Mixing(float(np.quantile(r_hat, 0.95)), float(np.quantile(n_effective, 0.05)))


def n_impossible(*log_values: np.ndarray) -> int:
    """Return how many rows have score zero, or not a number, under some draw of any of the arrays."""
    return int(np.any([(~np.isfinite(_flat(values))).any(axis=0) for values in log_values], axis=0).sum())


def _flat(log_values: np.ndarray) -> np.ndarray:
    return log_values.reshape(-1, log_values.shape[-1])


class Paired(NamedTuple):
    """The mean over rows of a difference, and its standard error."""

    difference: float
    error: float


def paired(ours: np.ndarray, theirs: np.ndarray) -> Paired:
    """Return the mean of ours - theirs over test rows, float64 (n_row,), and the standard error of that mean.

    Rows are the units: two models find the same rows hard, which an error of each mean by itself would count twice.

    Examples
    --------
    >>> paired(np.array([-1.0, -2.0, -3.0]), np.array([-2.0, -2.0, -5.0]))
    Paired(difference=1.0, error=0.577...)
    """
    difference = ours - theirs
    return Paired(float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(difference.size)))


def cells(values: np.ndarray, resolution: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper ends of the cells of values, both of their shape.

    Parameters
    ----------
    values : float64 (n_row,) or (n_column, n_row)
    resolution : float, or float64 (n_column, 1)
        Width of a cell.
    """
    centre = np.round(values / resolution) * resolution
    return centre - 0.5 * resolution, centre + 0.5 * resolution


def log_mass_by_averaging(
    log_density: Callable[[np.ndarray], np.ndarray], lo: np.ndarray, hi: np.ndarray, n_point: int = 400
) -> np.ndarray:
    """Return the log of a density's mean over each cell times the cell's width, shape of `lo`.

    Parameters
    ----------
    log_density : callable
        Of an array of values.
    lo, hi : float64 (n_row,)
    n_point : int
        Points of a cell, in the middles of parts of equal width. A density narrower than such a part needs more.
    """
    share = (np.arange(n_point) + 0.5) / n_point
    points = lo + share[:, None] * (hi - lo)
    return np.logaddexp.reduce(log_density(points), axis=0) - np.log(n_point) + np.log(hi - lo)


def contributions(score: Score, observed: np.ndarray) -> np.ndarray:
    """Return float64 (n_column, n_row), log of mean, that add up to the score of each row.

    A column's is its score given the columns before it, in the order of the table (the chain rule).

    Parameters
    ----------
    score : Score
    observed : bool (n_column, n_row)
    """
    before = np.zeros(observed.shape[1])
    parts = np.empty(observed.shape)
    for column in range(len(observed)):
        up_to = observed & (np.arange(len(observed)) <= column)[:, None]
        now = log_of_mean(score(up_to))
        parts[column], before = now - before, now
    return parts


def alone(score: Score, observed: np.ndarray) -> np.ndarray:
    """Return float64 (n_column, n_row): the score of each cell by itself, log of mean."""
    columns = np.arange(len(observed))[:, None]
    return np.stack([log_of_mean(score(observed & (columns == column))) for column in range(len(observed))])


def repeated_cells(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return bool (n_column, n_row): test cells whose very value `REPEATED_SHARE` of the training cells hold.

    Parameters
    ----------
    train, test : float64 (n_row, n_column)
        NaN where missing.
    """
    repeated = np.zeros(test.T.shape, bool)
    for column, known in enumerate(train.T):
        known = known[~np.isnan(known)]
        values, counts = np.unique(known, return_counts=True)
        repeated[column] = np.isin(test[:, column], values[counts >= REPEATED_SHARE * known.size])
    return repeated


class SplitScore(NamedTuple):
    """A row's score in two parts, means over rows: of cells with repeated values, and of the other cells."""

    repeated: float
    other: float


def split_score(parts: np.ndarray, repeated: np.ndarray) -> SplitScore:
    """Return the score of repeated values and of other cells; both arrays (n_column, n_row), as of `contributions`."""
    return SplitScore(*(float(np.where(which, parts, 0.0).sum(axis=0).mean()) for which in (repeated, ~repeated)))
