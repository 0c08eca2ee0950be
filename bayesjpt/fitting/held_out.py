"""How probable rows are that a structure was not learned from, beside columns that have nothing to do with each other.

      [ held out | learn              ]      each quarter of the rows in turn: nats by which the learner's estimate from
      [          | held out |         ]      the others gives a row more than the product of its own columns does
      ...

The marginals of one and the same estimate stand on both sides, so what is measured is what hangs together, no more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults import FOLDS, INTERVAL

if TYPE_CHECKING:
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.report.contents import HeldOut
    from bayesjpt.table.table import Table

_COLUMNS = 32
"""Columns whose cells are judged at once."""
_LEAST_GAIN = -100.0
"""Nats of a row that the structure calls impossible, and its columns do not."""
_LEAST_ROWS = 20
"""Rows below which nothing is held out: five of them would tell nothing."""

_Z = 1.645
"""Standard errors on either side of a mean between which `INTERVAL` of a normal distribution lies."""

_TEST_PER_TRAIN = 1.0 / (FOLDS - 1)
"""Rows that judge a structure over rows that it was learned from: what these add to the variance of the mean, relative
to what the judged rows have. 1.33 in all; .18 (standard error .07) more than 1 was seen (docs/results.md)."""


def held_out_score(table: Table, learner: str, rng: np.random.Generator, *, n_row: int) -> HeldOut | None:
    """Return by how much held-out rows are more probable than under independent columns.

    Parameters
    ----------
    table : Table
    learner : str
        ``mspn``, ``jpt``, ``wmispn``, ``cutset``, ``tree_mixture`` or ``hclt``.
    rng : numpy.random.Generator
        Divides the rows, and is the learner's.
    n_row : int
        Rows to use at most, drawn at random.

    Returns
    -------
    HeldOut or None
        None for a table of one column, or too few rows.

    Notes
    -----
    The mean over rows of log p(row) - sum over columns of log p(cell), nats, of the estimate of a structure learned
    from the other rows, without sweeps. Its expectation is the total correlation of the columns less what the estimate
    misses: below zero where a structure sees more than there is. The interval is that of a normal mean over rows, with
    variance s^2 / n (1 + n_test / n_train), s^2 that of the rows: with other rows to learn from the structures would be
    others, by which the rows of a fold move together, and two folds share most of the rows they learn from, so that
    their difference shows little of it. No estimate from these rows alone is unbiased (Bengio and Grandvalet, 2004).

    References
    ----------
    Nadeau and Bengio (2003). Inference for the generalization error. Machine Learning 52, section 3: n_test / n_train.
    Bengio and Grandvalet (2004). No unbiased estimator of the variance of k-fold cross-validation. JMLR 5.
    """
    from bayesjpt.fitting.learning import learn
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.report.contents import HeldOut

    n = min(table.n_row, n_row)
    if n < _LEAST_ROWS or table.n_column < 2:
        return None
    used = table.take(rng.permutation(table.n_row)[:n])
    fold = np.arange(n) % FOLDS
    gains = []
    for number in range(FOLDS):
        circuit = learn(used.take(fold != number), learner, rng, False, {})
        gains.append(_gains(Posterior.from_circuit(circuit, table.schema), used.take(fold == number)))
    gain = np.concatenate(gains)
    gain = gain[np.isfinite(gain)]  # a cell may be impossible under histograms that end where training rows end
    if gain.size < _LEAST_ROWS // 2:
        return None
    mean, error = float(gain.mean()), _half_width(gain)
    return HeldOut(mean, mean - error, mean + error, int(gain.size), n - n // FOLDS)


def _half_width(gain: np.ndarray) -> float:
    """Return half of the width of the interval of the mean of float64 (n_row,), for other rows to learn from too."""
    assert INTERVAL == 0.9
    return _Z * float(gain.std(ddof=1)) * math.sqrt((1.0 + _TEST_PER_TRAIN) / gain.size)


def _gains(post: Posterior, rows: Table) -> np.ndarray:
    """Return log p(row) less the sum of log p(cell), nats, float64 (n_row,)."""
    from bayesjpt.queries.density import log_mass
    from bayesjpt.table.table import Table

    n = rows.n_row
    together, apart = log_mass(post, rows).values[0, 0], np.zeros(n)
    for first in range(0, rows.n_column, _COLUMNS):
        columns = range(first, min(first + _COLUMNS, rows.n_column))
        alone = np.zeros((rows.n_column, len(columns) * n), bool)
        for part, k in enumerate(columns):  # a row for each cell, that observes nothing else
            alone[k, part * n : (part + 1) * n] = rows.observed[k]
        cells = log_mass(post, Table(rows.schema, np.tile(rows.values, (1, len(columns))), alone)).values[0, 0]
        apart += cells.reshape(len(columns), n).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.maximum(together - apart, _LEAST_GAIN)  # -inf where the columns together alone say impossible
