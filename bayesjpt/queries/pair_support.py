"""Which pairs of columns rows themselves show to hang together, beside what the model makes of them.

A draw's mutual information is never negative, and noise in its sub-populations pushes it up: where others set many of
them apart, each with few rows of a column, by about the number of that column's parameters over the number of rows.
What rows say is not: the mean over them of

    log p(x, y) - log p(x) - log p(y)

is about the information where two columns hang together, and about 0 where they do not, since what their parameters
gain on the rows they were drawn from is what their noise loses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import log_mass
from bayesjpt.table.table import Table

_LEAST = 0.5
"""Of the information under the draws, that rows show where it is more than noise: .6 to 1.2 of pairs that were made up
to hang together, 0 to .3 of others with coefficients above .15 (`docs/explanation/dependence.md`)."""
_FEWEST = 30
"""Rows that have both columns, below which they show nothing either way."""


def nats_of(correlation: np.ndarray) -> np.ndarray:
    """Return the mutual information of informational coefficients of correlation; a large number of 1."""
    return -0.5 * np.log1p(-(np.minimum(correlation, 1.0 - 1e-9) ** 2))


def shown_by_rows(post: Posterior, pairs: Sequence[tuple[int, int]], information: Sequence[float]) -> list[bool]:
    """Return for pairs of columns whether the reference rows show that they hang together.

    Parameters
    ----------
    post : Posterior
        Of few draws, which decide what this costs.
    pairs : sequence of pairs of int
        Positions of columns.
    information : sequence of float
        Of each pair, in nats: mean over draws.

    Returns
    -------
    list of bool
        Also true where there are too few rows to show anything.
    """
    rows = post.reference
    if rows is None or not pairs:
        return [True] * len(pairs)
    singles = sorted({k for pair in pairs for k in pair})
    parts = _log_masses(post, rows, [*((k,) for k in singles), *pairs])
    alone = dict(zip(singles, parts, strict=False))
    found = []
    for (first, second), together, nats in zip(pairs, parts[len(singles) :], information, strict=True):
        both = rows.observed[first] & rows.observed[second]
        gain = (together - alone[first] - alone[second])[:, both]
        found.append(int(both.sum()) < _FEWEST or bool(gain.mean() >= _LEAST * nats))
    return found


def _log_masses(post: Posterior, rows: Table, groups: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the log mass of the cells of groups of columns alone, float64 (n_group, n_draw, n_row), in one pass."""
    observed = np.zeros((len(groups), *rows.observed.shape), bool)
    for group, columns in zip(observed, groups, strict=True):
        group[list(columns)] = rows.observed[list(columns)]
    stacked = Table(post.schema, np.tile(rows.values, len(groups)), np.concatenate(list(observed), axis=1))
    return log_mass(post, stacked).values.reshape(-1, len(groups), rows.n_row).swapaxes(0, 1)
