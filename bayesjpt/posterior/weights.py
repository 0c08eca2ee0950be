"""Weights of several structures: stacking on held-out rows, and draws in proportion to them."""

from __future__ import annotations

import numpy as np

STACKING_TOLERANCE = 1e-6
"""Nats a row that the best weights may gain over those that were found; structures differ by 1e-3 and more."""

STACKING_STEPS = 20_000
"""Steps at most; two structures need tens, many that are alike thousands of a tenth of a millisecond."""


def stacking_weights(
    log_score: np.ndarray, *, tolerance: float = STACKING_TOLERANCE, n_step: int = STACKING_STEPS
) -> np.ndarray:
    """Return the weights under which held-out rows are most probable, float64 (n_structure,), with sum 1.

    Parameters
    ----------
    log_score : float64 (n_structure, n_row), nats
        Log probability of each row under each structure, learned and sampled without the row. Rows that are impossible
        under all structures say nothing and are left out.
    tolerance : float
        Nats a row that the best weights may gain at most.
    n_step : int
        Steps after which the search ends all the same.

    Notes
    -----
    The mean over rows of log sum_k w_k p_k(row) is concave in w. A step multiplies each weight by the mean over rows
    of p_k / sum_j w_j p_j (the EM algorithm of a mixture whose components are known), and never makes it worse. By
    concavity no weights are better by more than the largest of these factors, less one: so the answer is certified.

    References
    ----------
    Yao, Vehtari, Simpson, Gelman (2018). Using Stacking to Average Bayesian Predictive Distributions. Bayesian
    Analysis 13(3), equation 4.

    Examples
    --------
    >>> stacking_weights(np.log([[0.5, 0.5, 0.5], [0.1, 0.2, 0.1]])).round(3).tolist()
    [1.0, 0.0]
    """
    top = log_score.max(axis=0)
    known = top > -np.inf
    score = np.exp(log_score[:, known] - top[known])
    weights = np.full(score.shape[0], 1.0 / score.shape[0])
    if not known.any():
        return weights
    for _ in range(n_step):
        factor = (score / (weights @ score)).mean(axis=1)
        if factor.max() - 1.0 <= tolerance:
            break
        weights = weights * factor
    return weights / weights.sum()


def without_small(weights: np.ndarray, least: float) -> np.ndarray:
    """Return weights of which those below the least are 0, with sum 1; the largest always stays."""
    kept = np.where((weights >= least) | (weights == weights.max()), weights, 0.0)
    return kept / kept.sum()


def draws_for(weights: np.ndarray, n_draw: int) -> np.ndarray:
    """Return how many of so many draws each structure gets, int64 (n_structure,): in proportion, one at least.

    Those of weight 0 get none; the largest remainders round up.

    Examples
    --------
    >>> draws_for(np.array([0.62, 0.0, 0.375, 0.005]), 100).tolist()
    [62, 0, 37, 1]
    """
    wanted = weights * n_draw
    found = np.where(weights > 0.0, np.maximum(np.floor(wanted), 1.0), 0.0)
    while found.sum() != n_draw:
        step = np.sign(n_draw - found.sum())
        allowed = (weights > 0.0) & (found + step >= 1.0)
        found[np.argmax(np.where(allowed, step * (wanted - found), -np.inf))] += step
    return found.astype(np.int64)
